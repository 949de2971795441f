//! Convolutions with channels first and so few positions that they would leave many lanes of vectors
//! empty, as the last layers of networks have: the patches of the input times the kernel.
//!
//! Rows are positions, of all images together; columns are outputs, steps features and taps in the order
//! of the kernel. So the kernel is what the weights of a linear layer are, read from memory once and
//! turned panel by panel while tiles run, or packed once for all runs. The sums are dense rows of outputs,
//! and turned around at the end.

use super::patches::{LANES, Patches};
use super::tasks::store;
use super::{Convolution, Route};
use crate::Threads;
use crate::kernels::bytes::Plain;
use crate::kernels::gemm::TASKS;
use crate::kernels::gemm::axis::Axis;
use crate::kernels::gemm::engine::{Product, Rhs, Shared, Sink};
use crate::kernels::gemm::output::Destination;
use crate::kernels::gemm::pack::{Elements, Strided};
use crate::kernels::gemm::tile::Tiled;
use crate::kernels::isa::Isa;
use crate::kernels::scratch;

/// Positions up to which a large kernel is read once, for all of them.
const MOST_POSITIONS: usize = 320;
/// Steps from which on turning the sums around does not show.
const LEAST_STEPS: usize = 128;

/// The kernel of a convolution.
#[derive(Clone, Copy)]
pub(in crate::kernels::gemm) enum Kernel<'a, W> {
    /// As it lies in memory.
    Elements(&'a dyn Elements<W>),
    /// As [`Convolution::pack`] has packed it for the route: panels of one product, or rows of channels.
    Packed(&'a [W]),
}

impl<'a, W> Kernel<'a, W> {
    /// The elements, of a kernel for a route that packs none.
    ///
    /// # Panics
    /// If it is packed.
    pub(super) fn plain(self) -> &'a dyn Elements<W> {
        match self {
            Kernel::Elements(elements) => elements,
            Kernel::Packed(_) => panic!("the kernels of this route are not packed"),
        }
    }
}

impl Convolution {
    /// Whether its kernel is the right operand of one product, which can be packed.
    pub(super) fn takes_panels(&self) -> bool {
        matches!(self.route, Route::Patches)
            && self.fills_vectors_with_outputs()
            && self.group.size == 1
    }

    /// The outputs of a group in the kernel.
    pub(super) fn kernel_cols(&self) -> Axis {
        Axis::new([(self.outputs.size, self.outputs.rhs)])
    }

    /// Features and taps in the kernel, in its order.
    pub(super) fn kernel_steps(&self) -> Axis {
        let taps = self.spatial.iter().map(|dim| (dim.kernel, dim.rhs));
        Axis::new([(self.features.size, self.features.rhs)].into_iter().chain(taps))
    }

    /// Whether outputs fill vectors and the positions do not, if the result has neighbouring positions.
    pub(super) fn fills_vectors_with_outputs(&self) -> bool {
        let positions = self.spatial.iter().map(|dim| dim.output);
        let positions = positions.fold(self.batch.size, usize::saturating_mul);
        let steps = self.spatial.iter().map(|dim| dim.kernel);
        let steps = steps.fold(self.features.size, usize::saturating_mul);
        let joined = self.batch.size == 1 || self.joins_images(LANES);
        let leaves_lanes = |count: usize, part: usize| {
            let lanes = count.next_multiple_of(LANES);
            (lanes - count) * part > lanes
        };
        (1..=MOST_POSITIONS).contains(&positions)
            && joined
            && steps >= LEAST_STEPS
            && leaves_lanes(positions, 10)
            && !leaves_lanes(self.outputs.size, 20)
    }

    /// Computes the convolution as patches times the kernel, from an input of words, in which all elements
    /// lie.
    ///
    /// # Safety
    /// As for [`Convolution::run_tasks`].
    pub(super) unsafe fn run_few_positions<W: Plain + Default, A: Plain + Default>(
        &self,
        (tiled, isa): (&dyn Tiled<W, A>, Isa),
        words: &[W],
        kernel: Kernel<'_, W>,
        out: &dyn Destination<A>,
        threads: Threads<'_>,
    ) {
        let positions: usize = self.spatial.iter().map(|dim| dim.output).product();
        let (kernel_cols, kernel_steps) = (self.kernel_cols(), self.kernel_steps());
        let (rows, cols) = (self.batch.size * positions, self.outputs.size);
        let sum_rows = Axis::new([(rows.max(2), cols)]); // one row has a stride, too
        let out_rows = Axis::new([(self.batch.size, self.batch.out), (positions, 1)]);
        let out_cols = Axis::new([(cols, self.outputs.out)]);
        let tasks = TASKS.div_ceil(self.group.size);
        threads.for_each(self.group.size, &|group| {
            let start = group * self.group.lhs;
            let patches = Patches { conv: self, isa, words, start, first: 0, positions };
            let compute = |sums: &mut [A], rhs: Rhs<'_, W>| {
                let start = Shared(sums.as_mut_ptr());
                let product = Product {
                    tiled,
                    rows,
                    cols,
                    steps: kernel_steps.len(),
                    lhs: &patches,
                    rhs,
                    sink: Sink::Memory { start, rows: &sum_rows, finish: None },
                    done: None,
                    add: false,
                    tasks,
                    batches: 1,
                };
                // SAFETY: `Strided` checked that a kernel lies in its memory, and the product has all panels;
                // patches are packed; the sums have a place for each row and column.
                unsafe { product.run(threads) };
            };
            scratch::with(rows * cols, |sums: &mut [A]| {
                match kernel {
                    Kernel::Packed(panels) => compute(&mut *sums, Rhs::Panels(panels)),
                    Kernel::Elements(elements) => {
                        let start = group * self.group.rhs;
                        let kernel =
                            Strided::new(isa, elements, start, &kernel_cols, &kernel_steps);
                        compute(&mut *sums, Rhs::Source(&kernel));
                    }
                }
                let place = (out, group * self.group.out);
                // SAFETY: the caller's promise: each group has other elements of the result.
                unsafe { store(isa, sums, place, &out_rows, (&out_cols, 0..cols)) };
            });
        });
    }
}
