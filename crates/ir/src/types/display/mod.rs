//! Arrays as a person reads them, in the form of NumPy's.

mod float;

use std::fmt;

use self::float::FloatStyle;
use super::{Array, IndexIter, Number, strides};

/// Writes an array as NumPy prints one: nested brackets, columns aligned, at most eight digits behind
/// the point, lines of at most 75 characters; of one with more than 1000 elements the first three and
/// the last three along each axis.
///
/// ```
/// use helio_ir::Array;
/// let x = Array::new([2, 2], vec![1f32, 0.5, -2.0, 1.0 / 3.0])?;
/// assert_eq!(x.to_string(), "[[ 1.          0.5       ]\n [-2.          0.33333334]]");
/// assert_eq!(x.display().with_precision(2).to_string(), "[[ 1.    0.5 ]\n [-2.    0.33]]");
/// assert_eq!(x.display().with_threshold(3).with_edge(1).to_string(), x.to_string());
/// # Ok::<(), helio_ir::Error>(())
/// ```
///
/// Source: NumPy's `array2string`. Types that NumPy lacks have the fewest digits that tell a value from
/// its neighbours, as its own types do.
#[derive(Clone, Copy, Debug)]
pub struct ArrayDisplay<'a> {
    array: &'a Array,
    precision: usize,
    threshold: usize,
    edge: usize,
    /// Leading axes show their first index only, as many of them as it takes for this many elements.
    most: usize,
}

/// Characters in a line of elements.
const LINE_WIDTH: usize = 75;

impl Array {
    /// The array as text, with a choice of how much is shown.
    pub fn display(&self) -> ArrayDisplay<'_> {
        ArrayDisplay { array: self, precision: 8, threshold: 1000, edge: 3, most: usize::MAX }
    }
}

impl ArrayDisplay<'_> {
    /// At most this many digits behind the point.
    #[must_use]
    pub fn with_precision(mut self, digits: usize) -> Self {
        self.precision = digits.min(float::MAX_PRECISION);
        self
    }

    /// Arrays with more elements than this are shortened; `usize::MAX` for none.
    #[must_use]
    pub fn with_threshold(mut self, elements: usize) -> Self {
        self.threshold = elements;
        self
    }

    /// How many elements of a shortened axis are shown at each of its ends.
    #[must_use]
    pub fn with_edge(mut self, elements: usize) -> Self {
        self.edge = elements.max(1);
        self
    }
}

/// As [`Array::display`]; `{:.3}` shows three digits behind the point, `{:#}` all elements.
impl fmt::Display for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut display = self.display();
        if let Some(digits) = f.precision() {
            display = display.with_precision(digits);
        }
        if f.alternate() {
            display = display.with_threshold(usize::MAX);
        }
        display.fmt(f)
    }
}

/// The shape and some elements, on one line: `Array(f32[2,2] [[1. 2.] [3. 4.]])`.
impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 20;
        let display = self.display().with_threshold(SHOWN).with_edge(2);
        let elements = ArrayDisplay { most: SHOWN, ..display }.to_string();
        let elements: Vec<&str> = elements.split_whitespace().collect();
        let shape = self.shape().clone().without_layout();
        write!(f, "Array({shape} {})", elements.join(" ").replace("[ ", "[").replace(" ]", "]"))
    }
}

impl fmt::Display for ArrayDisplay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes = self.array.sizes();
        if sizes.is_empty() {
            return f.write_str(&scalar(self.array, self.precision));
        }
        let count = sizes.iter().fold(1usize, |count, &size| count.saturating_mul(size));
        if count == 0 {
            return f.write_str("[]");
        }
        let edge = (count > self.threshold).then_some(self.edge);
        let strides = strides(self.array.dims());
        let mut shown = Shown { array: self.array, edge, first_only: 0, strides };
        shown.first_only = shown.axes_beyond(self.most);
        let style = Style::of(&shown, self.precision);
        let mut text = String::new();
        shown.write(&style, Place { axis: 0, at: 0 }, LINE_WIDTH, &mut text);
        f.write_str(&text)
    }
}

/// The one element of a scalar, as NumPy prints it: without padding.
fn scalar(array: &Array, precision: usize) -> String {
    match array.number(0) {
        Number::Pred(value) => bool_name(value).to_owned(),
        Number::Int(value) => value.to_string(),
        Number::Float(value) => float::scalar(value, array.element(), precision),
        Number::Complex(value) => {
            let part = |part| float::scalar(part, array.element().real_part(), precision);
            let sign = if value.im.is_sign_negative() { "" } else { "+" };
            format!("({}{sign}{}j)", part(value.re), part(value.im))
        }
    }
}

fn bool_name(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}

/// What of an array is shown.
struct Shown<'a> {
    array: &'a Array,
    /// How many elements at each end of an axis; `None` for all.
    edge: Option<usize>,
    /// As many leading axes show their first index only.
    first_only: usize,
    strides: Vec<usize>,
}

/// Elements with the same leading indices.
#[derive(Clone, Copy)]
struct Place {
    /// The number of leading indices.
    axis: usize,
    /// The first of the elements.
    at: usize,
}

impl Shown<'_> {
    /// The indices along an axis; `None` stands for those left out.
    fn indices(&self, axis: usize) -> impl Iterator<Item = Option<usize>> {
        let size = self.array.sizes()[axis];
        let (head, tail) = match self.edge.filter(|&edge| edge < size.div_ceil(2)) {
            _ if axis < self.first_only => (1, 0),
            Some(edge) => (edge, edge),
            None => (size, 0),
        };
        let left_out = (head + tail < size).then_some(None);
        (0..head).map(Some).chain(left_out).chain((size - tail..size).map(Some))
    }

    /// How many leading axes there are beside those that show at most this many elements.
    fn axes_beyond(&self, most: usize) -> usize {
        let mut count = 1usize;
        let shown = |axis: &usize| {
            count = count.saturating_mul(self.indices(*axis).flatten().count());
            count <= most
        };
        let rank = self.array.sizes().len();
        rank - (0..rank).rev().take_while(shown).count()
    }

    /// All elements that are shown.
    fn numbers(&self) -> Vec<Number> {
        let axes = 0..self.array.sizes().len();
        let shown: Vec<Vec<usize>> =
            axes.map(|axis| self.indices(axis).flatten().collect()).collect();
        let counts: Vec<usize> = shown.iter().map(Vec::len).collect();
        let (mut points, mut numbers) = (IndexIter::new(&counts), Vec::new());
        while let Some(point) = points.next_point() {
            let index =
                point.iter().enumerate().map(|(axis, &i)| shown[axis][i] * self.strides[axis]);
            numbers.push(self.array.number(index.sum()));
        }
        numbers
    }

    fn write(&self, style: &Style, place: Place, width: usize, text: &mut String) {
        let rank = self.array.sizes().len();
        text.push('[');
        match place.axis + 1 == rank {
            true => self.write_row(style, place, width, text),
            false => {
                for (n, index) in self.indices(place.axis).enumerate() {
                    if n > 0 {
                        text.push_str(&"\n".repeat(rank - place.axis - 1));
                        text.push_str(&" ".repeat(place.axis + 1));
                    }
                    match index {
                        Some(index) => self.write(style, self.below(place, index), width - 1, text),
                        None => text.push_str("..."),
                    }
                }
            }
        }
        text.push(']');
    }

    fn below(&self, place: Place, index: usize) -> Place {
        Place { axis: place.axis + 1, at: place.at + index * self.strides[place.axis] }
    }

    /// The elements along the last axis, in lines of this width.
    fn write_row(&self, style: &Style, place: Place, width: usize, text: &mut String) {
        let indent = place.axis + 1;
        // The bracket at the end has room, too.
        let width = width - 1;
        let mut length = indent;
        for (n, index) in self.indices(place.axis).enumerate() {
            let word = match index {
                Some(index) => style.write(self.array.number(self.below(place, index).at)),
                None => "...".to_owned(),
            };
            let space = usize::from(n > 0);
            if n > 0 && length + space + word.len() > width {
                text.truncate(text.trim_end().len());
                text.push('\n');
                text.push_str(&" ".repeat(indent));
                length = indent;
            } else if n > 0 {
                text.push(' ');
                length += 1;
            }
            text.push_str(&word);
            length += word.len();
        }
    }
}

/// How the elements of an array are written: all as wide as the widest.
enum Style {
    Bool,
    Integer { width: usize },
    Float(FloatStyle),
    Complex([FloatStyle; 2]),
}

impl Style {
    fn of(shown: &Shown<'_>, precision: usize) -> Self {
        let (numbers, element) = (shown.numbers(), shown.array.element());
        let part = element.real_part();
        match numbers.first() {
            Some(Number::Pred(_)) => Style::Bool,
            Some(Number::Float(_)) => {
                let values: Vec<f64> = numbers.into_iter().map(Number::to_f64).collect();
                Style::Float(FloatStyle::of(&values, element, precision, false))
            }
            Some(Number::Complex(_)) => {
                let values: Vec<_> = numbers.into_iter().map(Number::to_complex).collect();
                let re: Vec<f64> = values.iter().map(|value| value.re).collect();
                let im: Vec<f64> = values.iter().map(|value| value.im).collect();
                Style::Complex([
                    FloatStyle::of(&re, part, precision, false),
                    FloatStyle::of(&im, part, precision, true),
                ])
            }
            Some(Number::Int(_)) | None => {
                let length =
                    |number: &Number| number.to_int(i128::MIN, i128::MAX).to_string().len();
                Style::Integer { width: numbers.iter().map(length).max().unwrap_or(0) }
            }
        }
    }

    fn write(&self, number: Number) -> String {
        match self {
            Style::Bool => format!("{:>5}", bool_name(number.to_bool())),
            Style::Integer { width } => format!("{:>width$}", number.to_int(i128::MIN, i128::MAX)),
            Style::Float(style) => style.write(number.to_f64()),
            Style::Complex([re, im]) => {
                let value = number.to_complex();
                let imaginary = im.write(value.im);
                // The unit comes before the padding.
                let digits = imaginary.trim_end();
                let padding = &imaginary[digits.len()..];
                format!("{}{digits}j{padding}", re.write(value.re))
            }
        }
    }
}

#[cfg(test)]
mod tests;
