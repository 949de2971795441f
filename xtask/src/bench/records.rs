//! What programs took on machines of each kind: `xtask/bench.json`.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

/// What a program took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Record {
    /// The least time of a run, in milliseconds.
    pub(super) ms: f64,
    /// XLA's least time over it, if both were timed.
    pub(super) ratio: Option<f64>,
}

impl Record {
    /// How much slower this is than it was, as a part of that: by the ratios to XLA if both have one, by
    /// times if this has none.
    pub(super) fn loss_since(self, before: Record) -> Option<f64> {
        match (self.ratio, before.ratio) {
            (Some(now), Some(before)) => Some(before / now - 1.0),
            (None, _) => Some(self.ms / before.ms - 1.0),
            (Some(_), None) => None,
        }
    }
}

/// Kind of machine → how many threads → program → its record.
#[derive(Default)]
pub(super) struct Records(BTreeMap<String, BTreeMap<String, BTreeMap<String, Record>>>);

impl Records {
    /// Those of the repository. Errors: the file is not there, or is none of records.
    pub(super) fn read() -> Result<Self, String> {
        let path = path();
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Records::parse(&text).map_err(|e| format!("{}: {e}", path.display()))
    }

    fn parse(text: &str) -> Result<Self, String> {
        fn object(value: &Value) -> Result<&Map<String, Value>, String> {
            value.as_object().ok_or_else(|| format!("{value} is no object"))
        }
        let all: Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
        let mut records = Records::default();
        for (kind, threads) in object(&all)? {
            for (threads, programs) in object(threads)? {
                for (name, record) in object(programs)? {
                    let number = |key: &str| record.get(key).and_then(Value::as_f64);
                    let ms = number("ms").ok_or_else(|| format!("{name} has no \"ms\""))?;
                    let record = Record { ms, ratio: number("ratio") };
                    records.insert(kind, threads, name, record);
                }
            }
        }
        Ok(records)
    }

    fn insert(&mut self, kind: &str, threads: &str, name: &str, record: Record) {
        let of_kind = self.0.entry(kind.to_owned()).or_default();
        of_kind.entry(threads.to_owned()).or_default().insert(name.to_owned(), record);
    }

    /// What a program took.
    pub(super) fn find(&self, kind: &str, threads: u64, name: &str) -> Option<Record> {
        self.0.get(kind)?.get(&threads.to_string())?.get(name).copied()
    }

    /// Sets what a program took.
    pub(super) fn set(&mut self, kind: &str, threads: u64, name: &str, record: Record) {
        self.insert(kind, &threads.to_string(), name, record);
    }

    /// Writes them to the repository. Errors: the file cannot be written.
    pub(super) fn write(&self) -> Result<(), String> {
        let path = path();
        fs::write(&path, self.text()).map_err(|e| format!("{}: {e}", path.display()))
    }

    /// A line for each program, so that changes can be read.
    fn text(&self) -> String {
        let digits = |value: f64| format!("{value:.4}").parse::<f64>().unwrap_or(value);
        let mut kinds = Vec::new();
        for (kind, threads) in &self.0 {
            let mut counts = Vec::new();
            for (count, programs) in threads {
                let line = |(name, record): (&String, &Record)| {
                    let mut value = json!({ "ms": digits(record.ms) });
                    if let Some(ratio) = record.ratio {
                        value["ratio"] = json!(digits(ratio));
                    }
                    format!("      {}: {value}", json!(name))
                };
                let lines: Vec<String> = programs.iter().map(line).collect();
                counts.push(format!("    {}: {{\n{}\n    }}", json!(count), lines.join(",\n")));
            }
            kinds.push(format!("  {}: {{\n{}\n  }}", json!(kind), counts.join(",\n")));
        }
        format!("{{\n{}\n}}\n", kinds.join(",\n"))
    }
}

fn path() -> PathBuf {
    crate::root().join("xtask/bench.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_back_and_the_repository_has_some() {
        let mut records = Records::default();
        records.set("a b", 2, "x", Record { ms: 1.5, ratio: Some(2.25) });
        records.set("a b", 1, "\"y\"", Record { ms: 0.001, ratio: None });
        let again = Records::parse(&records.text()).unwrap();
        assert_eq!(again.0, records.0);
        let ours = Records::read().unwrap();
        assert_eq!(Records::parse(&ours.text()).unwrap().0, ours.0);
        assert!(Records::parse("[]").is_err() && Records::parse("{\"a\": 1}").is_err());
    }

    #[test]
    fn losses_are_of_ratios_or_of_times() {
        let record = |ms, ratio| Record { ms, ratio };
        let loss = record(3.0, Some(2.0)).loss_since(record(1.0, Some(3.0)));
        assert_eq!(loss, Some(0.5));
        assert_eq!(record(3.0, None).loss_since(record(1.0, Some(3.0))), Some(2.0));
        assert_eq!(record(3.0, Some(1.0)).loss_since(record(1.0, None)), None);
    }
}
