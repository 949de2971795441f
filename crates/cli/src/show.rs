//! Arrays as a person reads them.

use helio::ir::{Array, Number};

/// Arrays with more elements than this are shortened.
const SHOWN_ELEMENTS: usize = 1000;
/// Elements shown at each end of a shortened dimension.
const EDGE: usize = 3;

/// One number, as short as it stays exact for its type's precision.
pub(crate) fn number(number: Number) -> String {
    match number {
        Number::Pred(value) => value.to_string(),
        Number::Int(value) => value.to_string(),
        Number::Float(value) => float(value),
        Number::Complex(value) => format!("({}, {})", float(value.re), float(value.im)),
    }
}

/// At most seven significant digits: enough to read, and the same for f32 and f64.
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

/// An array in nested brackets, columns aligned, shortened if it is large.
pub(crate) fn array(array: &Array) -> String {
    let sizes = array.sizes();
    let count: usize = sizes.iter().product();
    let mut view = View { array, shorten: count > SHOWN_ELEMENTS, width: 0, text: String::new() };
    if count == 0 {
        return format!("(no elements: {sizes:?})");
    }
    view.measure(0, 0);
    view.write(0, 0);
    view.text
}

struct View<'a> {
    array: &'a Array,
    shorten: bool,
    width: usize,
    text: String,
}

impl View<'_> {
    /// The indices shown along a dimension; `None` stands for those left out.
    fn indices(&self, d: usize) -> Vec<Option<usize>> {
        let size = self.array.sizes()[d];
        if self.shorten && size > 2 * EDGE + 1 {
            let head = (0..EDGE).map(Some);
            let tail = (size - EDGE..size).map(Some);
            head.chain([None]).chain(tail).collect()
        } else {
            (0..size).map(Some).collect()
        }
    }

    fn below(&self, d: usize, at: usize, i: usize) -> usize {
        at * self.array.dims()[d] + i
    }

    fn measure(&mut self, d: usize, at: usize) {
        if d == self.array.dims().len() {
            self.width = self.width.max(number(self.array.number(at)).len());
            return;
        }
        for i in self.indices(d).into_iter().flatten() {
            self.measure(d + 1, self.below(d, at, i));
        }
    }

    fn write(&mut self, d: usize, at: usize) {
        let rank = self.array.dims().len();
        if d == rank {
            let text = number(self.array.number(at));
            self.text.push_str(&format!("{text:>width$}", width = self.width));
            return;
        }
        self.text.push('[');
        for (n, i) in self.indices(d).into_iter().enumerate() {
            if n > 0 {
                self.text.push_str(if d + 1 == rank { ", " } else { ",\n" });
                if d + 1 < rank {
                    self.text.push_str(&" ".repeat(d + 1));
                }
            }
            match i {
                Some(i) => self.write(d + 1, self.below(d, at, i)),
                None => self.text.push_str("..."),
            }
        }
        self.text.push(']');
    }
}
