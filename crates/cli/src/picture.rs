//! Arrays of two dimensions as pictures: of characters, or in a PNG.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use helio::Array;

use crate::failure::Failure;

/// From the least value to the greatest.
const SHADES: &[u8] = b" .:-=+*#%@";

/// What is no number.
const NO_NUMBER: char = '?';

/// Characters in a line.
const MAX_COLUMNS: usize = 100;

/// Lines.
const MAX_ROWS: usize = 100;

/// Numbers in rows and columns, as shares of the way from the least finite one to the greatest.
pub(crate) struct Picture {
    rows: usize,
    columns: usize,
    /// From 0 to 1, row by row; NaN for what is no number.
    shares: Vec<f64>,
}

impl Picture {
    /// The picture of an array; `None` unless it has two dimensions, elements, and no complex numbers.
    pub(crate) fn of(array: &Array) -> Option<Self> {
        let &[rows, columns] = array.sizes() else { return None };
        if rows == 0 || columns == 0 || array.element().is_complex() {
            return None;
        }
        let at = |row, column| array.get([row, column]).map_or(f64::NAN, |number| number.to_f64());
        let values = (0..rows).flat_map(|row| (0..columns).map(move |column| at(row, column)));
        let values: Vec<f64> = values.collect();
        let finite = || values.iter().copied().filter(|value| value.is_finite());
        let least = finite().fold(f64::INFINITY, f64::min);
        let greatest = finite().fold(f64::NEG_INFINITY, f64::max);
        // Halves, so that the distance is finite.
        let distance = greatest / 2.0 - least / 2.0;
        let share = |value: f64| match value.is_infinite() {
            true => f64::from(u8::from(value > 0.0)),
            false if distance > 0.0 || value.is_nan() => (value / 2.0 - least / 2.0) / distance,
            false => 0.0,
        };
        let shares = values.iter().map(|&value| share(value)).collect();
        Some(Picture { rows, columns, shares })
    }

    /// A character for each number, or for the mean of a few where there are too many for a terminal.
    pub(crate) fn characters(&self) -> String {
        let step = self.columns.div_ceil(MAX_COLUMNS).max(self.rows.div_ceil(MAX_ROWS));
        // A character is about twice as high as it is wide; small arrays are drawn as they are.
        let (high, wide) = if step == 1 { (1, 1) } else { (2 * step, step) };
        let mut text = String::new();
        for row in (0..self.rows).step_by(high) {
            let line = (0..self.columns).step_by(wide);
            let line: String =
                line.map(|column| shade(self.mean(row, column, high, wide))).collect();
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text.truncate(text.trim_end_matches('\n').len());
        text
    }

    fn mean(&self, row: usize, column: usize, high: usize, wide: usize) -> f64 {
        let rows = row..(row + high).min(self.rows);
        let columns = column..(column + wide).min(self.columns);
        let count = rows.len() * columns.len();
        let share = |row: usize, column: usize| self.shares[row * self.columns + column];
        let shares = rows.flat_map(|row| columns.clone().map(move |column| share(row, column)));
        shares.sum::<f64>() / count as f64
    }

    /// Writes shades of grey, a pixel for each number; what is no number is black. Errors: the file
    /// cannot be written, or the picture is larger than its format allows.
    pub(crate) fn write_png(&self, path: &Path) -> Result<(), Failure> {
        let failure =
            |e: &dyn std::fmt::Display| Failure::bad_input(format!("{}: {e}", path.display()));
        let size = |size: usize| u32::try_from(size).map_err(|e| failure(&e));
        let file = BufWriter::new(File::create(path).map_err(|e| failure(&e))?);
        let mut encoder = png::Encoder::new(file, size(self.columns)?, size(self.rows)?);
        encoder.set_color(png::ColorType::Grayscale);
        encoder.set_depth(png::BitDepth::Eight);
        // NaN becomes 0.
        let pixels: Vec<u8> =
            self.shares.iter().map(|share| (share * 255.0).round() as u8).collect();
        let mut writer = encoder.write_header().map_err(|e| failure(&e))?;
        writer.write_image_data(&pixels).map_err(|e| failure(&e))?;
        writer.finish().map_err(|e| failure(&e))
    }
}

fn shade(share: f64) -> char {
    match share.is_nan() {
        true => NO_NUMBER,
        false => char::from(SHADES[((share * SHADES.len() as f64) as usize).min(SHADES.len() - 1)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_go_from_the_least_to_the_greatest() {
        let picture =
            Picture::of(&Array::from([[0f32, 5.0, 10.0], [f32::NAN, f32::INFINITY, 2.0]]));
        assert_eq!(picture.expect("a picture").characters(), " +@\n?@:");
        let flat = Picture::of(&Array::from([[7u8; 2]; 2])).expect("a picture");
        assert_eq!(flat.characters(), "");
        assert!(Picture::of(&Array::from([1f32])).is_none());
        let extreme = Picture::of(&Array::from([[f64::MIN, f64::MAX]])).expect("a picture");
        assert_eq!(extreme.characters(), " @");
    }

    #[test]
    fn large_arrays_become_small_pictures() {
        let values = (0..400 * 300).map(|i| (i % 300) as f32).collect();
        let array = Array::new([400, 300], values).expect("an array");
        let text = Picture::of(&array).expect("a picture").characters();
        assert_eq!(text.lines().count(), 50);
        assert!(text.lines().all(|line| line.len() == 75 && line.ends_with('@')), "{text}");
    }
}
