//! Positions that reach beyond the input, where weights are not finite.
//!
//! A tap that meets no element of the input is no product. Regions have zeros in its place, and zero
//! times infinity or NaN is NaN. So a result that such zeros have spoiled is NaN, and a weight is not
//! finite: only if both are found, results at these positions are computed again, from the taps that
//! meet the input alone. To look for one of the two takes next to no time: weights are looked at first
//! where they are fewer than the results, and these, where they are not, cost many products each.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use super::phases::{From, PlacesFrom};
use super::region::Window;
use super::{Convolution, Route, Spatial};
use crate::kernels::bytes::{Plain, cast};
use crate::kernels::gemm::Finish;
use crate::kernels::gemm::arithmetic::Float;
use crate::kernels::gemm::axis::Axis;
use crate::kernels::gemm::number::ProductType;
use crate::kernels::gemm::types::Call;
use crate::kernels::isa::vectorised;

/// Results that a task looks at.
const TASK_RESULTS: usize = 1 << 15;

/// Positions of the result: a range in each spatial dimension.
pub(super) type Positions = Vec<Range<usize>>;

/// Some positions of a convolution without dilated input, or of a phase of one, and where its kernel
/// and its result begin.
struct PhasePositions<'c> {
    conv: &'c Convolution,
    rhs: usize,
    out: usize,
    positions: Positions,
}

impl Convolution {
    /// Computes anew what zeros in the place of elements that there are not have spoiled.
    pub(in crate::kernels::gemm) fn skip_holes<T: Float>(&self, call: &Call<'_>, out: &mut [u8]) {
        let mut parts = Vec::new();
        self.beyond((0, 0), &mut parts);
        if parts.is_empty() || self.are_unspoiled(call, out) {
            return;
        }
        let is_spoiled = match call.types.out {
            ProductType::F32 => any(&parts, call, cast::<f32>(out), &|v| v.is_nan()),
            ProductType::F64 => any(&parts, call, cast::<f64>(out), &|v| v.is_nan()),
            ProductType::F16 => any(&parts, call, cast::<u16>(out), &|v| v & 0x7fff > 0x7c00),
            ProductType::Bf16 => any(&parts, call, cast::<u16>(out), &|v| v & 0x7fff > 0x7f80),
            _ => false,
        };
        if !is_spoiled || all(call.types.rhs, call.rhs, Kind::Finite) {
            return;
        }
        T::with_elements(call.types.rhs, call.rhs, &mut |rhs| {
            if (0..rhs.count()).all(|i| rhs.word(i).is_finite()) {
                return;
            }
            T::with_places(call.types.out, out, &mut |out| {
                T::with_elements(call.types.lhs, call.lhs, &mut |lhs| {
                    for PhasePositions { conv, rhs: rhs_start, out: start, positions } in &parts {
                        let rhs = From { elements: rhs, start: *rhs_start };
                        let places = PlacesFrom { places: out.places, start: *start };
                        // SAFETY: `out` is borrowed mutably, and the convolution that has just been
                        // computed has seen that the result lies in its memory.
                        unsafe {
                            conv.run_loops(call.isa, lhs, &rhs, &places, positions, call.threads);
                        }
                    }
                });
            });
        });
    }

    /// What is done with complete rows, if they are handed over one by one and it is known before any are computed
    /// that none has to be computed anew.
    pub(in crate::kernels::gemm) fn finish_early<'a>(
        &self,
        call: &Call<'a>,
        out: &[u8],
    ) -> Option<Finish<'a, u8>> {
        let finish = call.epilogue.rows.filter(|_| self.route_finishes_rows())?;
        let mut parts = Vec::new();
        self.beyond((0, 0), &mut parts);
        let is_right = parts.is_empty()
            || call.rhs.len() <= out.len() && all(call.types.rhs, call.rhs, Kind::Finite);
        is_right.then_some(finish)
    }

    /// Whether all weights are finite or no result is NaN, by a look at whichever are fewer, in the order in
    /// which they lie in memory. The look at results takes in those that no zeros can have spoiled.
    fn are_unspoiled(&self, call: &Call<'_>, out: &[u8]) -> bool {
        if call.rhs.len() <= out.len() {
            return all(call.types.rhs, call.rhs, Kind::Finite);
        }
        all(call.types.out, out, Kind::NotNan)
    }

    /// Adds the positions with a tap that meets no element, each once.
    fn beyond<'c>(&'c self, (rhs, out): (usize, usize), parts: &mut Vec<PhasePositions<'c>>) {
        match &self.route {
            Route::Zeros => return,
            Route::Phases(phases) => {
                for phase in phases {
                    phase.conv.beyond((rhs + phase.rhs, out + phase.out), parts);
                }
                return;
            }
            Route::Product { .. }
            | Route::Tasks
            | Route::Patches
            | Route::Planes
            | Route::Grouped
            | Route::Loops => {}
        }
        let whole: Vec<Range<usize>> = self.spatial.iter().map(inside).collect();
        for (d, inside) in whole.iter().enumerate() {
            for beyond in [0..inside.start, inside.end..self.spatial[d].output] {
                // Whole in the dimensions before, anywhere in those behind.
                let rest = self.spatial[d + 1..].iter().map(|dim| 0..dim.output);
                let positions = whole[..d].iter().cloned().chain([beyond]).chain(rest);
                let positions: Positions = positions.collect();
                if positions.iter().all(|range| !range.is_empty()) {
                    parts.push(PhasePositions { conv: self, rhs, out, positions });
                }
            }
        }
    }

    /// All positions.
    pub(super) fn everywhere(&self) -> Positions {
        self.spatial.iter().map(|dim| 0..dim.output).collect()
    }
}

/// The positions in a dimension where every tap meets an element.
fn inside(dim: &Spatial) -> Range<usize> {
    let window = Window(dim);
    let (first, last) = (window.start(0), (dim.kernel as i128 - 1) * dim.rhs_dilation as i128);
    if dim.lhs_dilation > 1 && dim.input > 1 {
        return 0..0;
    }
    let stride = dim.stride.max(1) as i128;
    let start = (-first).max(0) + stride - 1;
    let end = (dim.input as i128 - 1 - last - first).div_euclid(stride) + 1;
    let output = dim.output as i128;
    let start = (start / stride).min(output);
    start as usize..end.clamp(start, output) as usize
}

/// What numbers are looked at for.
#[derive(Clone, Copy)]
enum Kind {
    Finite,
    NotNan,
}

/// Whether all numbers are known to be of this kind. (All are looked at, so that neighbours become vector
/// code.)
fn all(number: ProductType, bytes: &[u8], kind: Kind) -> bool {
    // The greatest of all, as bits without a sign: those of infinity are followed by those of NaN.
    fn greatest<E: Plain + Ord + Default>(
        bytes: &[u8],
        without_sign: impl Fn(E) -> E,
        most: E,
    ) -> bool {
        let values = cast::<E>(bytes);
        vectorised(
            #[inline(always)]
            || {
                let most_of =
                    |some: &[E]| some.iter().fold(E::default(), |m, &v| m.max(without_sign(v)));
                values.chunks(1 << 12).all(|some| most_of(some) <= most)
            },
        )
    }
    let below = match kind {
        Kind::Finite => 1,
        Kind::NotNan => 0,
    };
    match number {
        ProductType::F32 => {
            greatest::<u32>(bytes, |v| v & 0x7fff_ffff, f32::INFINITY.to_bits() - below)
        }
        ProductType::F64 => {
            let most = f64::INFINITY.to_bits() - u64::from(below);
            greatest::<u64>(bytes, |v| v & (u64::MAX >> 1), most)
        }
        ProductType::F16 => greatest::<u16>(bytes, |v| v & 0x7fff, 0x7c00 - below as u16),
        ProductType::Bf16 => greatest::<u16>(bytes, |v| v & 0x7fff, 0x7f80 - below as u16),
        _ => false,
    }
}

/// Whether a result at one of these positions is so.
fn any<E: Plain>(
    parts: &[PhasePositions<'_>],
    call: &Call<'_>,
    out: &[E],
    is: &(dyn Fn(E) -> bool + Sync),
) -> bool {
    let found = AtomicBool::new(false);
    for PhasePositions { conv, out: start, positions, .. } in parts {
        let rows = [conv.group, conv.batch, conv.outputs].map(|dim| (dim.size, dim.out));
        let spatial = || conv.spatial.iter().zip(positions);
        let places = spatial().map(|(dim, range)| (range.len(), dim.out));
        let mut dims: Vec<_> = rows.into_iter().chain(places).collect();
        dims.sort_by_key(|&(_, stride)| std::cmp::Reverse(stride));
        let axis = Axis::new(dims);
        let start = start + spatial().map(|(dim, range)| range.start * dim.out).sum::<usize>();
        call.threads.for_ranges(axis.len(), TASK_RESULTS, &|range| {
            let mut i = range.start;
            while i < range.end && !found.load(Ordering::Relaxed) {
                let (place, count, stride) = axis.run(i, range.end - i);
                let results = &out[start + place..];
                // (All are looked at, so that neighbours become vector code.)
                let is_any = match stride {
                    1 => results[..count].iter().fold(false, |any, &v| any | is(v)),
                    _ => results.iter().step_by(stride.max(1)).take(count).any(|&v| is(v)),
                };
                if is_any {
                    found.store(true, Ordering::Relaxed);
                }
                i += count;
            }
        });
    }
    found.into_inner()
}
