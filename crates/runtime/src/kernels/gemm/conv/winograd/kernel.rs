//! The sums of taps, at all points.

use super::{POINTS, sums_of_taps};
use crate::Threads;
use crate::kernels::disjoint::Disjoint;
use crate::kernels::gemm::arithmetic::Arithmetic;
use crate::kernels::gemm::conv::{Convolution, Spatial};
use crate::kernels::gemm::pack::{Source, Strided};
use crate::kernels::gemm::simd::{Sums, sum_loops};
use crate::kernels::isa::Isa;
use crate::kernels::scratch;

/// Taps of a window.
pub(in crate::kernels::gemm) const TAPS: usize = 9;
/// Features whose taps are turned around at once.
const FEATURES: usize = 16;

impl Convolution {
    /// Writes the sums of the kernel at all points, in the panels that products take.
    ///
    /// # Panics
    /// If the kernel is longer than its slice.
    pub(in crate::kernels::gemm::conv) fn kernel_points(
        &self,
        isa: Isa,
        rhs: &[f32],
        points: &mut [f32],
        threads: Threads<'_>,
    ) {
        let [rows, columns] = &self.spatial[..] else { unreachable!("two spatial dimensions") };
        let turned = |dim: &Spatial, at| if dim.reversed { 2 - at } else { at };
        let taps_at: [usize; TAPS] =
            std::array::from_fn(|i| turned(rows, i / 3) * 3 + turned(columns, i % 3));
        let (outputs, features) = (self.outputs.size, self.features.size);
        let (cols, steps) = (self.kernel_cols(), self.kernel_steps());
        let source = Strided::new(isa, &rhs, 0, &cols, &steps);
        let width = f32::instructions(isa).format().width();
        let (panels, parts) = (outputs.div_ceil(width), features.div_ceil(FEATURES));
        let (loops, point_len) = (sum_loops(isa), points.len() / POINTS);
        let points = Disjoint::new(points);
        threads.for_each(panels * parts, &|task| {
            let (first, feature) = (task / parts * width, task % parts * FEATURES);
            let items = first..outputs.min(first + width);
            let count = FEATURES.min(features - feature);
            scratch::with(width * TAPS * count, |packed: &mut [f32]| {
                let steps = feature * TAPS..(feature + count) * TAPS;
                source.pack(items, steps, width, packed);
                for (i, taps) in packed.chunks_exact(width * TAPS).enumerate() {
                    let place = first * features + (feature + i) * width;
                    // SAFETY: each task has its own panel, or other features of it.
                    unsafe { loops.of_taps(taps, &taps_at, points, (place, point_len)) };
                }
            });
        });
    }
}

/// Writes the sums of the taps of a feature, which are a number of vectors each.
///
/// # Safety
/// Nothing else accesses as many elements as a tap has outputs from `place` on, and those that are a multiple of
/// `point_len` on. The features of the processor are there.
#[inline(always)]
pub(in crate::kernels::gemm) unsafe fn of_taps<S: Sums>(
    taps: &[f32],
    taps_at: &[usize; TAPS],
    points: Disjoint<'_, f32>,
    (place, point_len): (usize, usize),
) {
    let width = taps.len() / TAPS;
    assert!(
        width.is_multiple_of(S::LANES) && taps_at.iter().all(|&tap| tap < TAPS),
        "taps are vectors"
    );
    assert!(place + (POINTS - 1) * point_len + width <= points.len(), "the sums have their places");
    for first in (0..width).step_by(S::LANES) {
        let tap = |i: usize| taps.as_ptr().wrapping_add(taps_at[i] * width + first);
        let to = points.start().wrapping_add(place + first);
        // SAFETY: the caller's promise; whole vectors of the taps, and of the sums, are there.
        unsafe {
            let mut columns = [[S::zero(); 4]; 3];
            for (j, column) in columns.iter_mut().enumerate() {
                let taps = [S::load(tap(j)), S::load(tap(3 + j)), S::load(tap(6 + j))];
                *column = sums_of_taps::<S>(taps);
            }
            let [left, middle, right] = columns;
            for i in 0..4 {
                let sums = sums_of_taps::<S>([left[i], middle[i], right[i]]);
                for (j, sums) in sums.into_iter().enumerate() {
                    S::store_all(to.wrapping_add((4 * i + j) * point_len), sums, false);
                }
            }
        }
    }
}
