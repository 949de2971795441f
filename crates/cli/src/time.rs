//! Durations as a person reads them.

use std::fmt;
use std::time::Duration;

/// Three digits in the unit that suits: `12.3 µs`.
pub(crate) struct Time(pub(crate) Duration);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs_f64();
        let units = [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs")];
        // Not what would be rounded to 1000 of the unit below.
        let suits = |&&(unit, _): &&(f64, &str)| seconds >= 0.9995 * unit;
        let &(unit, name) = units.iter().find(suits).unwrap_or(&(1e-9, "ns"));
        let value = seconds / unit;
        let digits = match value {
            _ if value >= 99.95 => 0,
            _ if value >= 9.995 => 1,
            _ => 2,
        };
        write!(f, "{value:.digits$} {name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits() {
        for (nanoseconds, text) in [
            (0, "0.00 ns"),
            (850, "850 ns"),
            (1_234, "1.23 µs"),
            (12_345, "12.3 µs"),
            (999_600, "1.00 ms"),
            (99_960_000, "100 ms"),
            (61_000_000_000, "61.0 s"),
        ] {
            assert_eq!(Time(Duration::from_nanos(nanoseconds)).to_string(), text);
        }
    }
}
