//! Convolutions over inputs with holes.
//!
//! Where the input is dilated, a tap meets an element only at positions of the result that are a
//! fixed distance apart, and at any one position only every n-th tap does. Positions that are met
//! by the same taps are a phase: a convolution of its own, without holes, of the same input with
//! some of the taps, whose results lie apart.

use super::{Convolution, Spatial};
use crate::kernels::gemm::engine::Shared;
use crate::kernels::gemm::output::Destination;
use crate::kernels::gemm::pack::{Block, Elements};
use crate::kernels::isa::Isa;
use crate::kernels::window::gcd;

/// More phases than these are not taken apart.
const MAX_PHASES: usize = 64;

/// A phase of a convolution.
#[derive(Clone, Debug)]
pub(super) struct Phase {
    pub conv: Convolution,
    /// Where its part of the kernel begins.
    pub rhs: usize,
    /// Where its part of the result begins.
    pub out: usize,
}

/// A phase along one dimension.
#[derive(Clone, Copy)]
struct LinePhase {
    dim: Spatial,
    rhs: usize,
    out: usize,
}

impl Convolution {
    /// The phases of the convolution, if its input is dilated; `None` if they are too many.
    pub(super) fn phases(&self) -> Option<Vec<Phase>> {
        let has_holes = |dim: &Spatial| dim.lhs_dilation > 1 && dim.input > 1;
        if !self.spatial.iter().any(has_holes) {
            return None;
        }
        let mut phases = vec![(Vec::new(), 0, 0)];
        for dim in &self.spatial {
            let lines = line_phases(dim, MAX_PHASES / phases.len())?;
            let add = |(dims, rhs, out): &(Vec<Spatial>, usize, usize)| {
                let (dims, rhs, out) = (dims.clone(), *rhs, *out);
                lines.iter().map(move |line| {
                    ([&dims[..], &[line.dim]].concat(), rhs + line.rhs, out + line.out)
                })
            };
            phases = phases.iter().flat_map(add).collect();
        }
        let phases = phases.into_iter().map(|(dims, rhs, out)| {
            let conv = Convolution::new(self.group, self.batch, self.features, self.outputs, &dims);
            Phase { conv: conv.without_winograd(), rhs, out }
        });
        Some(phases.collect())
    }
}

/// The phases along a dimension; `None` if they are more than `most`, or numbers become too large.
fn line_phases(dim: &Spatial, most: usize) -> Option<Vec<LinePhase>> {
    let holes = dim.lhs_dilation.max(1);
    // The same taps meet elements at every `positions`-th position, where one tap in `taps` does.
    let every = |distance: usize| holes / gcd(distance as i128, holes as i128) as usize;
    let (positions, taps) = (every(dim.stride), every(dim.rhs_dilation));
    let count = positions.min(dim.output);
    if count > most {
        return None;
    }
    let phase = |first: usize| {
        let start = first as i128 * dim.stride as i128 - i128::from(dim.pad_low);
        let place = |tap: usize| start + tap as i128 * dim.rhs_dilation as i128;
        let met = (0..taps.min(dim.kernel)).find(|&tap| place(tap) % holes as i128 == 0);
        // If no tap meets an element there is nothing to sum.
        let (tap, kernel) = met.map_or((0, 0), |tap| (tap, (dim.kernel - tap).div_ceil(taps)));
        let pad_low = if kernel == 0 { 0 } else { -place(tap) / holes as i128 };
        // In memory a kernel that is turned around begins with its last tap.
        let begin = match dim.reversed {
            true if kernel > 0 => dim.kernel - 1 - tap - (kernel - 1) * taps,
            _ => tap,
        };
        Some(LinePhase {
            dim: Spatial {
                kernel,
                output: (dim.output - first).div_ceil(positions),
                rhs: dim.rhs.checked_mul(taps)?,
                out: dim.out.checked_mul(positions)?,
                stride: dim.stride.checked_mul(positions)? / holes,
                pad_low: i64::try_from(pad_low).ok()?,
                lhs_dilation: 1,
                rhs_dilation: dim.rhs_dilation.checked_mul(taps)? / holes,
                ..*dim
            },
            rhs: begin * dim.rhs,
            out: first * dim.out,
        })
    };
    (0..count).map(phase).collect()
}

/// Elements from some place on.
pub(super) struct From<'a, W> {
    pub elements: &'a dyn Elements<W>,
    pub start: usize,
}

impl<W> Elements<W> for From<'_, W> {
    fn count(&self) -> usize {
        self.elements.count().saturating_sub(self.start)
    }

    fn words(&self) -> Option<&[W]> {
        self.elements.words()?.get(self.start..)
    }

    fn word(&self, at: usize) -> W {
        self.elements.word(self.start + at)
    }

    fn hole(&self) -> W {
        self.elements.hole()
    }

    fn copy(&self, isa: Isa, block: &Block<'_>, to: &mut [W]) {
        self.elements.copy(isa, &Block { start: self.start + block.start, ..*block }, to);
    }
}

/// Destination from some place on.
pub(super) struct PlacesFrom<'a, A> {
    pub places: &'a dyn Destination<A>,
    pub start: usize,
}

impl<A> Destination<A> for PlacesFrom<'_, A> {
    fn sums(&self) -> Option<Shared<A>> {
        Some(Shared(self.places.sums()?.get().wrapping_add(self.start)))
    }

    unsafe fn write(&self, isa: Isa, at: usize, stride: usize, sums: &[A]) {
        // SAFETY: the caller's promise, which is about these places.
        unsafe { self.places.write(isa, self.start + at, stride, sums) };
    }

    unsafe fn bytes(&self, at: usize, count: usize) -> &mut [u8] {
        // SAFETY: the caller's promise, for the same place under its other number.
        unsafe { self.places.bytes(self.start + at, count) }
    }
}
