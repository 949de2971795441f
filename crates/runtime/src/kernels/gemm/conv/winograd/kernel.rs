//! The sums of taps, at all points.

use super::{LANES, POINTS, load, of_taps, store};
use crate::Threads;
use crate::kernels::disjoint::Disjoint;
use crate::kernels::gemm::arithmetic::Arithmetic;
use crate::kernels::gemm::conv::{Convolution, Spatial};
use crate::kernels::gemm::pack::{Source, Strided};
use crate::kernels::isa::Isa;
use crate::kernels::scratch;

/// Taps of a window.
const TAPS: usize = 9;
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
        let point_len = points.len() / POINTS;
        let points = Disjoint::new(points);
        threads.for_each(panels * parts, &|task| {
            let (first, feature) = (task / parts * width, task % parts * FEATURES);
            let items = first..outputs.min(first + width);
            let count = FEATURES.min(features - feature);
            scratch::with(width * TAPS * count, |packed: &mut [f32]| {
                let steps = feature * TAPS..(feature + count) * TAPS;
                source.pack(items, steps, width, packed);
                isa.run(
                    #[inline(always)]
                    || {
                        for (i, taps) in packed.chunks_exact(width * TAPS).enumerate() {
                            let place = first * features + (feature + i) * width;
                            // SAFETY: each task has its own panel, or other features of it.
                            unsafe { sums(taps, width, &taps_at, points, (place, point_len)) };
                        }
                    },
                );
            });
        });
    }
}

/// Writes the sums of the taps of a feature.
///
/// # Safety
/// Nothing else accesses `width` elements from `place` on, and those that are a multiple of `point_len` on.
#[inline(always)]
unsafe fn sums(
    taps: &[f32],
    width: usize,
    taps_at: &[usize; TAPS],
    points: Disjoint<'_, f32>,
    (place, point_len): (usize, usize),
) {
    for first in (0..width).step_by(LANES) {
        let count = LANES.min(width - first);
        let mut columns = [[[0.0; LANES]; 4]; 3];
        for (j, column) in columns.iter_mut().enumerate() {
            let mut lanes = [[0.0; LANES]; 3];
            for (i, lanes) in lanes.iter_mut().enumerate() {
                *lanes = load(&taps[taps_at[3 * i + j] * width + first..], count);
            }
            *column = of_taps(lanes);
        }
        let [left, middle, right] = columns;
        for (i, taps) in left.into_iter().zip(middle).zip(right).enumerate() {
            let ((left, middle), right) = taps;
            for (j, sums) in of_taps([left, middle, right]).into_iter().enumerate() {
                let at = (4 * i + j) * point_len + place + first;
                // SAFETY: the caller's promise.
                store(sums, unsafe { points.part(at, count) });
            }
        }
    }
}
