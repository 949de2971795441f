//! Arrays as a person, or a program, reads them.

use std::path::PathBuf;

use helio::ir::Number;
use helio::{Array, ElementType};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::picture::Picture;

/// How results are shown.
#[derive(Clone, clap::Args)]
pub(crate) struct Show {
    /// Print all elements of large arrays, with --json too.
    #[arg(long)]
    full: bool,
    /// Print at most D digits behind the point [default: 8; with --json as many as tell a number from others].
    #[arg(long, value_name = "D")]
    precision: Option<usize>,
    /// Draw arrays of two dimensions with characters from the least value to the greatest; with
    /// =FILE.png, write the first of them to this file, in shades of grey.
    #[arg(long, value_name = "FILE.png", num_args = 0..=1, require_equals = true, value_parser = png_path)]
    show: Option<Option<PathBuf>>,
}

/// Arrays with more elements than this are shortened.
const SHOWN_ELEMENTS: usize = 1000;

impl Show {
    /// An array as text.
    pub(crate) fn text(&self, array: &Array) -> String {
        if let (Some(None), Some(picture)) = (&self.show, Picture::of(array)) {
            return picture.characters();
        }
        let mut display = array.display();
        if let Some(digits) = self.precision {
            display = display.with_precision(digits);
        }
        display.with_threshold(self.most_elements()).to_string()
    }

    /// The elements of an array as nested lists; `null` if they are many.
    pub(crate) fn json(&self, array: &Array) -> Value {
        let count: usize = array.sizes().iter().product();
        match count > self.most_elements() {
            true => Value::Null,
            // One list: there may be more empty ones than anybody can write.
            false if count == 0 => json!([]),
            false => nested(array, &mut Vec::new(), self.precision),
        }
    }

    fn most_elements(&self) -> usize {
        if self.full { usize::MAX } else { SHOWN_ELEMENTS }
    }

    /// Draws the first array that can be drawn, if there is a file for it. Errors: none can; the file
    /// cannot be written.
    pub(crate) fn draw<'a>(
        &self,
        arrays: impl IntoIterator<Item = &'a Array>,
    ) -> Result<(), Failure> {
        let Some(Some(path)) = &self.show else { return Ok(()) };
        match arrays.into_iter().find_map(Picture::of) {
            Some(picture) => picture.write_png(path),
            None => Err(Failure::bad_input(
                "--show: no result has two dimensions and elements that are real numbers",
            )),
        }
    }
}

/// A file for a picture. Errors: its name says that it is none that is written.
fn png_path(name: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(name);
    match path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("png")) {
        true => Ok(path),
        false => Err("pictures are PNG files, whose names end with .png".to_owned()),
    }
}

/// The elements below an index.
fn nested(array: &Array, index: &mut Vec<usize>, precision: Option<usize>) -> Value {
    let Some(&size) = array.sizes().get(index.len()) else {
        let is_wide = matches!(array.element(), ElementType::F64 | ElementType::C128);
        let number = array.get(&index[..]).map(|number| rounded(number, precision));
        return number.map_or(Value::Null, |number| value(number, is_wide));
    };
    let elements = (0..size).map(|i| {
        index.push(i);
        let element = nested(array, index, precision);
        index.pop();
        element
    });
    elements.collect()
}

/// A number, of whose parts there are at most so many digits behind the point.
fn rounded(number: Number, precision: Option<usize>) -> Number {
    let Some(digits) = precision else { return number };
    // (Of a double, no more than these are ever other than zero.)
    let digits = digits.min(1074);
    let part = |value: f64| format!("{value:.digits$}").parse().unwrap_or(value);
    match number {
        Number::Float(value) => Number::Float(part(value)),
        Number::Complex(mut parts) => {
            (parts.re, parts.im) = (part(parts.re), part(parts.im));
            Number::Complex(parts)
        }
        Number::Pred(_) | Number::Int(_) => number,
    }
}

/// A number, with the digits that tell it from others of its type, `f64` or narrower ones; of what JSON
/// has no numbers, its name.
fn value(number: Number, is_wide: bool) -> Value {
    match number {
        Number::Pred(value) => value.into(),
        Number::Int(value) => match (u64::try_from(value), i64::try_from(value)) {
            (Ok(value), _) => value.into(),
            (_, Ok(value)) => value.into(),
            _ => value.to_string().into(),
        },
        Number::Float(value) if value.is_finite() && !is_wide => {
            (value as f32).to_string().parse().map_or(Value::Null, |value: f64| value.into())
        }
        Number::Float(value) if value.is_finite() => value.into(),
        Number::Float(value) => value.to_string().to_lowercase().into(),
        Number::Complex(parts) => {
            let part = |part| value(Number::Float(part), is_wide);
            json!([part(parts.re), part(parts.im)])
        }
    }
}

/// One number, with at most seven significant digits.
pub(crate) fn number(number: Number) -> String {
    match number {
        Number::Pred(value) => value.to_string(),
        Number::Int(value) => value.to_string(),
        Number::Float(value) => float(value),
        Number::Complex(value) => format!("({}, {})", float(value.re), float(value.im)),
    }
}

fn float(value: f64) -> String {
    let magnitude = value.abs();
    if value == 0.0 || !value.is_finite() {
        format!("{value}")
    } else if (1e-4..1e7).contains(&magnitude) {
        let digits = (6 - magnitude.log10().floor() as i32).clamp(0, 10) as usize;
        let text = format!("{value:.digits$}");
        let text = if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.')
        } else {
            &text
        };
        text.to_owned()
    } else {
        format!("{value:.6e}")
    }
}
