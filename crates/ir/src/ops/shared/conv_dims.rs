//! `dim_labels` of convolutions.

use std::fmt::{self, Display};

use crate::types::MAX_RANK;
use crate::{Error, Result};

/// Which dimension of a convolution's input, kernel and output means what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConvDims {
    /// Batch dimension of the input.
    pub input_batch: usize,
    /// Feature dimension of the input.
    pub input_feature: usize,
    /// Spatial dimensions of the input, in the window's order.
    pub input_spatial: Vec<usize>,
    /// Input-feature dimension of the kernel.
    pub kernel_input_feature: usize,
    /// Output-feature dimension of the kernel.
    pub kernel_output_feature: usize,
    /// Spatial dimensions of the kernel, in the window's order.
    pub kernel_spatial: Vec<usize>,
    /// Batch dimension of the output.
    pub output_batch: usize,
    /// Feature dimension of the output.
    pub output_feature: usize,
    /// Spatial dimensions of the output, in the window's order.
    pub output_spatial: Vec<usize>,
}

/// Reads the labels of one array: the positions of `first`, of `second`, and of each digit.
fn read_labels(labels: &str, first: char, second: char) -> Result<(usize, usize, Vec<usize>)> {
    let error = |detail: String| Err(Error::invalid(format!("`{labels}`: {detail}")));
    let (mut one, mut two, mut spatial) = (None, None, [None; 10]);
    for (d, label) in labels.chars().enumerate() {
        let place = match label {
            // A dimension without a meaning, which only an array of a wrong shape can have.
            '?' => continue,
            c if c == first => &mut one,
            c if c == second => &mut two,
            c => match c.to_digit(10) {
                Some(digit) => &mut spatial[digit as usize],
                None => return error(format!("`{c}` is none of {first}, {second}, 0 to 9, ?")),
            },
        };
        if place.replace(d).is_some() {
            return error(format!("`{label}` occurs more than once"));
        }
    }
    let (Some(one), Some(two)) = (one, two) else {
        return error(format!("`{first}` and `{second}` must occur"));
    };
    let count = spatial.iter().flatten().count();
    let spatial: Vec<_> = spatial[..count].iter().copied().flatten().collect();
    if spatial.len() != count {
        return error(format!("the {count} spatial dimensions must be numbered from 0"));
    }
    Ok((one, two, spatial))
}

/// Writes the labels of one array; positions that nothing names become `?`. Positions that no array
/// can have are left out, so that the text of wrong numbers is not without bounds.
fn write_labels(one: (char, usize), two: (char, usize), spatial: &[usize]) -> String {
    let spatial = spatial.iter().enumerate().map(|(i, &d)| (i.to_string(), d));
    let named = [(one.0.to_string(), one.1), (two.0.to_string(), two.1)].into_iter().chain(spatial);
    let mut labels = Vec::new();
    for (label, d) in named.filter(|&(_, d)| d < MAX_RANK) {
        if labels.len() <= d {
            labels.resize(d + 1, "?".to_owned());
        }
        labels[d] = label;
    }
    labels.concat()
}

impl ConvDims {
    /// Reads `b01f_01io->b01f`: input, kernel, output.
    pub fn from_labels(text: &str) -> Result<Self> {
        let parts = text
            .split_once('_')
            .and_then(|(input, rest)| rest.split_once("->").map(|(k, o)| (input, k, o)));
        let (input, kernel, output) = parts.ok_or_else(|| {
            Error::invalid(format!("`{text}` must have the form input_kernel->output"))
        })?;
        let (input_batch, input_feature, input_spatial) = read_labels(input, 'b', 'f')?;
        let (kernel_input_feature, kernel_output_feature, kernel_spatial) =
            read_labels(kernel, 'i', 'o')?;
        let (output_batch, output_feature, output_spatial) = read_labels(output, 'b', 'f')?;
        Ok(ConvDims {
            input_batch,
            input_feature,
            input_spatial,
            kernel_input_feature,
            kernel_output_feature,
            kernel_spatial,
            output_batch,
            output_feature,
            output_spatial,
        })
    }
}

/// `b01f_01io->b01f`
impl Display for ConvDims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let input =
            write_labels(('b', self.input_batch), ('f', self.input_feature), &self.input_spatial);
        let kernel = write_labels(
            ('i', self.kernel_input_feature),
            ('o', self.kernel_output_feature),
            &self.kernel_spatial,
        );
        let output = write_labels(
            ('b', self.output_batch),
            ('f', self.output_feature),
            &self.output_spatial,
        );
        write!(f, "{input}_{kernel}->{output}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips() {
        for text in ["b01f_01io->b01f", "bf_io->bf", "fb10_i01o->10bf", "b?f_io->bf"] {
            assert_eq!(ConvDims::from_labels(text).unwrap().to_string(), text);
        }
        let dims = ConvDims::from_labels("f10b_o01i->b01f").unwrap();
        assert_eq!((dims.input_batch, dims.input_feature), (3, 0));
        assert_eq!(dims.input_spatial, [2, 1]);
        assert_eq!((dims.kernel_input_feature, dims.kernel_output_feature), (3, 0));
    }

    #[test]
    fn text_errors() {
        for text in
            ["", "b01f", "b01f_01io", "bb_io->bf", "b1f_0io->b0f", "b0x_0io->b0f", "b00f_0io->b0f"]
        {
            assert!(ConvDims::from_labels(text).is_err(), "{text}");
        }
    }
}
