//! What `helio run` tells of a run.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use helio::data::Tensor;
use helio::{Array, DeviceAssignment, Literal};
use serde_json::{Value, json};

use crate::arguments::{Share, missing, superfluous};
use crate::compare::{Tolerance, compare};
use crate::failure::Failure;
use crate::say;
use crate::show::{self, Show};

/// The arrays of a value, tuples taken apart.
pub(crate) fn arrays(value: &Literal) -> Vec<Array> {
    value.leaves().into_iter().filter_map(|leaf| leaf.as_array().cloned()).collect()
}

/// What comparing one result has found.
pub(crate) struct Compared {
    line: String,
    ok: bool,
    json: Value,
}

/// Compares the results of each participant with its part of those expected. Errors: there are fewer
/// or more than results.
pub(crate) fn compare_all(
    outputs: &[Vec<Array>],
    expected: &BTreeMap<String, Tensor>,
    path: &Path,
    tolerance: (Option<f64>, Option<f64>),
    assignment: &DeviceAssignment,
) -> Result<Vec<Compared>, Failure> {
    let count = outputs.first().map_or(0, Vec::len);
    if let Some((name, extra)) = superfluous(expected, "out", count) {
        return Err(Failure::differs(format!(
            "{}: {name} {:?} has no counterpart: the program has {count} results",
            path.display(),
            extra.dims,
        )));
    }
    let mut compared = Vec::new();
    for (share, own) in Share::each(outputs.len()).zip(outputs) {
        let who = assignment.name(assignment.participant(share.participant));
        for (i, output) in own.iter().enumerate() {
            let name = format!("out{i}");
            let tensor = expected
                .get(&name)
                .ok_or_else(|| missing(expected, &name, output.shape()).context(path.display()))?;
            let found = compare_one(output, share.array(tensor, output.shape()), tolerance);
            compared.push(found.of(&who, &name));
        }
    }
    Ok(compared)
}

/// Compares a result with what is expected, if that is an array of its shape.
fn compare_one(
    output: &Array,
    expected: helio::Result<Array>,
    (rtol, atol): (Option<f64>, Option<f64>),
) -> Compared {
    let expected = match expected {
        Ok(expected) => expected,
        Err(e) => return Compared::failed(e.detail().to_owned()),
    };
    // Other programs save arrays of dynamic sizes at their bounds.
    let is_bound = expected.sizes() == expected.dims();
    if expected.sizes() != output.sizes() && !is_bound {
        let (found, wanted) = (output.sizes(), expected.sizes());
        return Compared::failed(format!("found sizes {found:?}, expected {wanted:?}"));
    }
    let found = compare(output, &expected, Tolerance::of(output, rtol, atol));
    let ok = found.differing == 0;
    let mut line = format!(
        "{} {} of {} elements differ, largest distance {}",
        output.shape(),
        found.differing,
        found.elements,
        show::number(helio::ir::Number::Float(found.max_distance)),
    );
    if let Some((at, x, y)) = &found.first {
        line.push_str(&format!("; first at {at:?}: found {x}, expected {y}"));
    }
    let json = json!({
        "ok": ok,
        "elements": found.elements,
        "differing": found.differing,
        "max_distance": found.max_distance,
    });
    Compared { line, ok, json }
}

impl Compared {
    /// There was nothing to compare with.
    fn failed(error: String) -> Self {
        let json = json!({ "ok": false, "error": error });
        Compared { line: error, ok: false, json }
    }

    /// Says which result it was, and whose if there are several participants.
    fn of(self, who: &str, name: &str) -> Self {
        let Compared { line, ok, mut json } = self;
        json["name"] = name.into();
        if !who.is_empty() {
            json["participant"] = who.into();
        }
        Compared { line: format!("{}: {line}", join(who, name)), ok, json }
    }
}

/// `replica 1 out0`, or without participant `out0`.
fn join(who: &str, name: &str) -> String {
    if who.is_empty() { name.to_owned() } else { format!("{who} {name}") }
}

/// What came of a run.
pub(crate) struct Report {
    /// How results are shown.
    pub(crate) show: Show,
    pub(crate) assignment: DeviceAssignment,
    /// The results of each participant.
    pub(crate) outputs: Vec<Vec<Array>>,
    /// Whether they are printed unless they are compared.
    pub(crate) prints_outputs: bool,
    /// What each participant has written to its outfeed.
    pub(crate) outfed: Vec<Vec<Literal>>,
    /// Whether it is printed.
    pub(crate) prints_outfed: bool,
    pub(crate) compared: Option<Vec<Compared>>,
    /// What has no native code.
    pub(crate) interpreted: Value,
    pub(crate) compile_time: Duration,
    pub(crate) run_time: Duration,
}

impl Report {
    /// Prints what the run gave, for a person.
    pub(crate) fn print_text(&self) -> Result<(), Failure> {
        let names = |participant| self.assignment.name(self.assignment.participant(participant));
        for (participant, values) in self.outfed.iter().enumerate().filter(|_| self.prints_outfed) {
            for array in values.iter().flat_map(arrays) {
                let (what, shape) = (join(&names(participant), "outfeed"), array.shape());
                say(format_args!("{what}: {shape}\n{}", self.show.text(&array)))?;
            }
        }
        if let Some(compared) = &self.compared {
            return compared.iter().try_for_each(|c| say(&c.line));
        }
        for (participant, own) in self.outputs.iter().enumerate().filter(|_| self.prints_outputs) {
            for (i, output) in own.iter().enumerate() {
                let what = join(&names(participant), &format!("out{i}"));
                let shape = output.shape().clone().without_layout();
                say(format_args!("{what}: {shape}\n{}", self.show.text(output)))?;
            }
        }
        Ok(())
    }

    /// Prints an object: the results (shapes, and the elements of the first participant's), times, and what comparing
    /// has found.
    pub(crate) fn print_json(&self) -> Result<(), Failure> {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let own = self.outputs.iter().take(1).flatten().enumerate();
        let outputs = own.map(|(i, output)| {
            let shape = output.shape().clone().without_layout().to_string();
            let values = self.show.json(output);
            json!({ "name": format!("out{i}"), "shape": shape, "values": values })
        });
        let mut report = json!({
            "replicas": self.assignment.replicas(),
            "partitions": self.assignment.partitions(),
            "outputs": outputs.collect::<Vec<Value>>(),
            "compile_ms": ms(self.compile_time),
            "run_ms": ms(self.run_time),
            "interpreted": self.interpreted,
        });
        if let Some(compared) = &self.compared {
            report["ok"] = compared.iter().all(|c| c.ok).into();
            report["compared"] = compared.iter().map(|c| c.json.clone()).collect();
        }
        say(report)
    }

    /// Errors: results that differ from those expected.
    pub(crate) fn verdict(&self) -> Result<(), Failure> {
        let compared = self.compared.as_deref().unwrap_or_default();
        let differing = compared.iter().filter(|compared| !compared.ok).count();
        if differing == 0 {
            return Ok(());
        }
        Err(Failure::differs(format!("{differing} of {} results differ", compared.len())))
    }
}
