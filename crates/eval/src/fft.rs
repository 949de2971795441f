//! `fft`: discrete Fourier transforms over the last dimensions, in `C128` whatever the element type.

mod plan;

use helio_ir::memory::Counted;
use helio_ir::ops::FftKind;
use helio_ir::types::C128;
use helio_ir::{Array, Literal, Result, Shape, ops};

use crate::Evaluator;
use crate::dynamic::with_bounded_sizes;
use crate::frame::{array, array_shape};
use crate::products::{finish_in_order, terms, zeros};
use plan::FftPlan;

/// Forward transforms are not scaled, inverse ones by the inverse of the number of points.
pub(crate) fn fft(
    op: &ops::Fft,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let (operand, shape) = (array(args, 0)?, array_shape(shape)?);
    let (Some(&length), false) = (op.lengths.last(), shape.dims().contains(&0)) else {
        return Array::zeros(shape.clone()).map(Literal::Array);
    };
    let mut spectrum =
        Spectrum { evaluator, dims: operand.dims().to_vec(), values: terms(operand)? };
    let rank = spectrum.dims.len();
    let last = rank - 1;
    let inverse = matches!(op.kind, FftKind::Ifft | FftKind::Irfft);
    let outer = rank - op.lengths.len()..last;
    match op.kind {
        FftKind::Fft | FftKind::Ifft => spectrum.transform(last, inverse)?,
        FftKind::Rfft => {
            spectrum.transform(last, inverse)?;
            spectrum = spectrum.resized(length / 2 + 1, |line, half| {
                half.copy_from_slice(&line[..half.len()]);
            })?;
        }
        FftKind::Irfft => {}
    }
    for d in outer {
        spectrum.transform(d, inverse)?;
    }
    if op.kind == FftKind::Irfft {
        // Real numbers have a symmetric spectrum; what the middle of the line says twice, or what
        // contradicts the symmetry in the bins that are their own mirror image, is ignored.
        spectrum = spectrum.resized(length, |half, line| {
            for (k, v) in line.iter_mut().enumerate() {
                let mirrored = length - k;
                *v = if k <= length / 2 { half[k] } else { half[mirrored].conj() };
                if k == 0 || k == mirrored {
                    v.im = 0.0;
                }
            }
        })?;
        spectrum.transform(last, inverse)?;
    }
    let result = if inverse {
        let points: f64 = op.lengths.iter().map(|&n| n as f64).product();
        let scaled: Vec<_> = spectrum.values.iter().map(|v| v / points).collect();
        finish_in_order(&scaled, shape)
    } else {
        finish_in_order(&spectrum.values, shape)
    };
    let mut sizes = operand.sizes().to_vec();
    sizes[last] = shape.dims()[last];
    with_bounded_sizes(result?, &sizes).map(Literal::Array)
}

/// An array on its way through the transforms.
struct Spectrum<'a> {
    evaluator: &'a Evaluator<'a>,
    dims: Vec<usize>,
    values: Counted<C128>,
}

impl Spectrum<'_> {
    /// Transforms along one dimension, without scaling.
    fn transform(&mut self, dim: usize, inverse: bool) -> Result<()> {
        let length = self.dims[dim];
        let plan = FftPlan::new(length, inverse)?;
        let inner: usize = self.dims[dim + 1..].iter().product();
        let (mut line, mut transformed) = (zeros(length)?, zeros(length)?);
        let mut scratch = plan.scratch()?;
        for block in self.values.chunks_exact_mut(length * inner) {
            for first in 0..inner {
                self.evaluator.count_steps(1)?;
                for (v, &element) in line.iter_mut().zip(block[first..].iter().step_by(inner)) {
                    *v = element;
                }
                plan.run(&line, &mut transformed, &mut scratch);
                for (element, &v) in
                    block[first..].iter_mut().step_by(inner).zip(transformed.iter())
                {
                    *element = v;
                }
            }
        }
        Ok(())
    }

    /// The array with another size of the last dimension; `fill` makes each new line of an old one.
    fn resized(mut self, size: usize, fill: impl Fn(&[C128], &mut [C128])) -> Result<Self> {
        let last = self.dims.len() - 1;
        let old = self.dims[last];
        let lines = self.values.len() / old;
        let mut values = zeros(lines.saturating_mul(size))?;
        for (old, new) in self.values.chunks_exact(old).zip(values.chunks_exact_mut(size)) {
            fill(old, new);
        }
        self.dims[last] = size;
        self.values = values;
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use helio_ir::types::C64;
    use helio_ir::{ElementType, Native};

    use super::*;
    use crate::testing::{of, pattern, run, shape};

    fn reals(dims: &[usize]) -> Array {
        let values = pattern(dims.iter().product(), 7, 3, 11);
        of(dims, &values.into_iter().map(f64::from).collect::<Vec<_>>())
    }

    fn complexes(dims: &[usize]) -> Array {
        let count = dims.iter().product();
        let parts = pattern(count, 7, 3, 11).into_iter().zip(pattern(count, 5, 2, 7));
        of(dims, &parts.map(|(re, im)| C128::new(re.into(), im.into())).collect::<Vec<_>>())
    }

    fn transform(kind: FftKind, operand: &Array, lengths: &[usize], result: &[usize]) -> Array {
        let element = if kind == FftKind::Irfft { ElementType::F64 } else { ElementType::C128 };
        let op = ops::Fft { kind, lengths: lengths.to_vec() };
        run(fft, op, &[operand], &shape(element, result)).unwrap()
    }

    fn check_complex(found: &Array, expected: &[(f64, f64)]) {
        let found = found.values::<C128>().unwrap();
        assert_eq!(found.len(), expected.len());
        for (found, &(re, im)) in found.iter().zip(expected) {
            assert!((found - C128::new(re, im)).norm() < 1e-13, "{found} instead of ({re}, {im})");
        }
    }

    fn check_real(found: &Array, expected: &[f64]) {
        let found = found.values::<f64>().unwrap();
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-13, "{found} instead of {expected}");
        }
    }

    // Expected values are NumPy's (`numpy.fft`).

    #[test]
    fn complex_transforms() {
        let found = transform(FftKind::Fft, &complexes(&[6]), &[6], &[6]);
        check_complex(
            &found,
            &[
                (5.0, -1.0),
                (-0.732050807568877, -2.73205080756888),
                (-18.6602540378444, -7.92820323027551),
                (1.0, -1.0),
                (-1.33974596215561, 5.92820323027551),
                (2.73205080756888, 0.732050807568877),
            ],
        );
        let found = transform(FftKind::Ifft, &complexes(&[6]), &[6], &[6]);
        check_complex(
            &found,
            &[
                (0.833333333333333, -0.166666666666667),
                (0.455341801261479, 0.122008467928146),
                (-0.223290993692602, 0.988033871712585),
                (0.166666666666667, -0.166666666666667),
                (-3.11004233964073, -1.32136720504592),
                (-0.122008467928146, -0.455341801261479),
            ],
        );
        let found = transform(FftKind::Ifft, &complexes(&[2, 3, 2]), &[2, 3, 2], &[2, 3, 2]);
        check_complex(
            &found,
            &[
                (-0.166666666666667, -0.333333333333333),
                (0.166666666666667, -0.166666666666667),
                (0.188995766035927, -1.19935873711777),
                (-1.83333333333333, 0.583333333333333),
                (0.47767090063074, 0.532692070451105),
                (-1.83333333333333, 0.583333333333333),
                (1.0, 0.166666666666667),
                (0.0, 0.0),
                (0.0, -0.583333333333333),
                (-1.01036297108184, 0.0),
                (0.0, -0.583333333333333),
                (1.01036297108184, 0.0),
            ],
        );
    }

    #[test]
    fn real_transforms() {
        let found = transform(FftKind::Rfft, &reals(&[2, 5]), &[5], &[2, 3]);
        check_complex(
            &found,
            &[
                (5.0, 0.0),
                (2.39918693812442, -3.30219752546505),
                (-9.89918693812442, 3.21644081288814),
                (-7.0, 0.0),
                (-4.39918693812442, -3.30219752546505),
                (7.89918693812442, 3.21644081288814),
            ],
        );
        let found = transform(FftKind::Rfft, &reals(&[2, 5]), &[2, 5], &[2, 3]);
        check_complex(
            &found,
            &[
                (-2.0, 0.0),
                (-2.0, -6.60439505093009),
                (-2.0, 6.43288162577628),
                (12.0, 0.0),
                (6.79837387624884, 0.0),
                (-17.7983738762488, 0.0),
            ],
        );
        let found = transform(FftKind::Irfft, &complexes(&[3, 3]), &[3, 4], &[3, 4]);
        check_real(
            &found,
            &[
                1.25,
                0.25,
                -2.75,
                -1.75,
                0.28349364905389,
                0.610843918243516,
                -0.505181485540922,
                0.399519052838329,
                0.71650635094611,
                -0.110843918243516,
                0.505181485540923,
                -0.899519052838329,
            ],
        );
        let found = transform(FftKind::Irfft, &complexes(&[3, 3]), &[3, 5], &[3, 5]);
        check_real(
            &found,
            &[
                1.0,
                0.498529670091379,
                -1.1705839181539,
                -2.61827046384594,
                -0.709675288091547,
                -0.0196152422706632,
                0.509699078721411,
                0.163343611041533,
                -0.662894536723859,
                0.798142223826391,
                1.01961524227066,
                -0.442761940092669,
                0.579000631899538,
                -0.0794497062172119,
                -0.865079362455133,
            ],
        );
    }

    /// The example of `semantics.md` §8.
    #[test]
    fn inverse_transforms_are_scaled() {
        let zero = C64::new(0.0, 0.0);
        let operand = of(&[3], &[C64::new(4.0, 0.0), zero, zero]);
        let op = ops::Fft { kind: FftKind::Irfft, lengths: vec![4] };
        let found = run(fft, op, &[&operand], &shape(ElementType::F32, &[4])).unwrap();
        assert_eq!(found.values::<f32>().unwrap(), [1.0; 4]);
    }

    #[test]
    fn empty_and_single_transforms() {
        let found = transform(FftKind::Fft, &complexes(&[2, 0]), &[0], &[2, 0]);
        assert!(found.data().is_empty());
        let found = transform(FftKind::Rfft, &reals(&[0]), &[0], &[0]);
        assert!(found.data().is_empty());
        let found = transform(FftKind::Fft, &complexes(&[0, 3]), &[3], &[0, 3]);
        assert!(found.data().is_empty());
        let found = transform(FftKind::Fft, &complexes(&[2, 1]), &[1], &[2, 1]);
        assert!(found.same_bits(&complexes(&[2, 1])));
        let found = transform(FftKind::Irfft, &complexes(&[1]), &[1], &[1]);
        check_real(&found, &[-2.0]);
    }

    #[test]
    fn single_precision_is_rounded_once() {
        let operand = of(&[3], &[0.1f32, 0.2, 0.3]);
        let op = ops::Fft { kind: FftKind::Rfft, lengths: vec![3] };
        let found = run(fft, op, &[&operand], &shape(ElementType::C64, &[2])).unwrap();
        let sum = f64::from(0.1f32) + f64::from(0.2f32) + f64::from(0.3f32);
        assert_eq!(found.number(0), C64::new(sum as f32, 0.0).to_number());
    }
}
