//! Kernels that are packed once for any number of convolutions: weights that do not change.

use super::few_positions::Kernel;
use super::phases::Phase;
use super::{Convolution, Layout};
use super::{Route, winograd};
use crate::Threads;
use crate::kernels::bytes::{cast, cast_mut};
use crate::kernels::gemm::arithmetic::Arithmetic;
use crate::kernels::gemm::number::{ProductType, Types};
use crate::kernels::gemm::pack::Strided;
use crate::kernels::gemm::panels::{pack_whole, whole_len};
use crate::kernels::gemm::prepared::{Form, RightLayout};
use crate::kernels::gemm::streamed::is_large;
use crate::kernels::gemm::types::Call;
use crate::kernels::gemm::{Epilogue, Finish};
use crate::kernels::isa::Isa;

impl Convolution {
    /// How the kernel of one group lies in memory, and what it is packed as.
    pub fn right_layout(&self) -> RightLayout {
        let panels = |(cols, steps)| {
            let window = self.spatial.iter().map(|dim| (dim.kernel, dim.reversed));
            let form = match self.is_reversed() {
                true => Form::Turned { window: window.collect() },
                false => Form::Panels,
            };
            RightLayout { cols, steps, form }
        };
        match &self.route {
            _ if self.winograd.is_some() => {
                let reversed = self.spatial.iter().map(|dim| dim.reversed).collect();
                let form = Form::Points { reversed };
                RightLayout { cols: self.kernel_cols(), steps: self.kernel_steps(), form }
            }
            Route::Product { product, .. } => product.right_layout(),
            Route::Tasks => panels(self.task_kernel_axes()),
            Route::Grouped => {
                let (cols, steps) = (self.filter_channels(), self.kernel_steps());
                RightLayout { cols, steps, form: Form::Rows }
            }
            Route::Phases(phases) => {
                let phases = phases.iter().map(|phase| (phase.rhs, phase.conv.right_layout()));
                let form = Form::Phases(phases.collect());
                RightLayout { cols: self.kernel_cols(), steps: self.kernel_steps(), form }
            }
            _ => panels((self.kernel_cols(), self.kernel_steps())),
        }
    }

    /// The bytes that the kernel takes when it is packed ([`Convolution::pack`]), if convolutions of these
    /// types are faster with one that is.
    pub fn packed_bytes(&self, types: Types) -> Option<usize> {
        if types != Types::same(ProductType::F32) {
            return None;
        }
        let pays = match &self.route {
            _ if self.winograd.is_some() => true,
            Route::Product { product, swapped: false, .. } => return product.packed_bytes(types),
            Route::Patches => {
                let steps = self.kernel_steps().len();
                self.takes_panels() && is_large::<f32>(self.outputs.size, steps)
            }
            _ => self.takes_packed(),
        };
        pays.then(|| self.packed_len(Isa::best()) * size_of::<f32>())
    }

    /// Whether it can be computed from a kernel that is packed.
    pub(super) fn takes_packed(&self) -> bool {
        match &self.route {
            _ if self.winograd.is_some() => true,
            Route::Product { swapped, .. } => !swapped && self.group.size == 1,
            Route::Patches => self.takes_panels(),
            Route::Tasks => self.keeps_kernel(),
            Route::Phases(phases) => phases.iter().all(|Phase { conv, .. }| {
                matches!(conv.route, Route::Zeros) || conv.takes_packed()
            }),
            // (One whose channels are neighbours is read where it lies.)
            Route::Grouped => !self.is_reversed() && self.filter_channels().stride() != Some(1),
            _ => false,
        }
    }

    /// Packs the kernel of convolutions of `f32`.
    ///
    /// # Panics
    /// If it is longer than its slice, bytes are not aligned for their type, or `packed` has not as many
    /// bytes as [`Convolution::packed_bytes`] says.
    pub fn pack(&self, rhs: &[u8], packed: &mut [u8], threads: Threads<'_>) {
        self.pack_on(Isa::best(), cast(rhs), cast_mut(packed), threads);
    }

    /// Computes the convolution of arrays of `f32`, given as bytes, from the kernel and what
    /// [`Convolution::pack`] has made of it.
    ///
    /// # Panics
    /// As [`Convolution::compute`], and if [`Convolution::packed_bytes`] gives another number of bytes than
    /// `packed` has, or none.
    pub fn compute_packed(
        &self,
        lhs: &[u8],
        (rhs, packed): (&[u8], &[u8]),
        out: &mut [u8],
        finish: Option<Finish<'_, u8>>,
        threads: Threads<'_>,
    ) {
        let types = Types::same(ProductType::F32);
        let epilogue = Epilogue { part: None, rows: finish };
        assert_eq!(self.packed_bytes(types), Some(packed.len()), "a kernel that is packed");
        let call = Call { isa: Isa::best(), types, lhs, rhs, epilogue, threads };
        self.compute_packed_on(&call, cast(packed), out);
    }

    /// The words that the kernel takes when it is packed.
    pub(super) fn packed_len(&self, isa: Isa) -> usize {
        if let Some(layout) = self.winograd {
            return self.points_len(isa, layout);
        }
        match &self.route {
            Route::Grouped => return self.filter_len(),
            Route::Zeros => return 0,
            Route::Phases(phases) => {
                return phases.iter().map(|phase| phase.conv.packed_len(isa)).sum();
            }
            _ => {}
        }
        let RightLayout { cols, steps, .. } = self.right_layout();
        whole_len(f32::instructions(isa).format(), cols.len(), steps.len())
    }

    pub(super) fn pack_on(&self, isa: Isa, rhs: &[f32], packed: &mut [f32], threads: Threads<'_>) {
        assert_eq!(packed.len(), self.packed_len(isa), "room for what is packed");
        if self.winograd.is_some() {
            return self.kernel_points(isa, rhs, packed, threads);
        }
        match &self.route {
            Route::Grouped => return self.pack_filter(&rhs, packed),
            Route::Zeros => return,
            Route::Phases(phases) => {
                let mut rest = packed;
                for Phase { conv, rhs: start, .. } in phases {
                    let (packed, others) = rest.split_at_mut(conv.packed_len(isa));
                    conv.pack_on(isa, rhs.get(*start..).unwrap_or_default(), packed, threads);
                    rest = others;
                }
                return;
            }
            _ => {}
        }
        let RightLayout { cols, steps, .. } = self.right_layout();
        let format = f32::instructions(isa).format();
        self.turn(Kernel::Elements(&rhs), |kernel| {
            let source = Strided::new(isa, kernel.plain(), 0, &cols, &steps);
            pack_whole(format, &source, cols.len(), steps.len(), packed, threads);
        });
    }

    pub(super) fn compute_packed_on(&self, call: &Call<'_>, packed: &[f32], out: &mut [u8]) {
        let &Call { isa, lhs, epilogue, threads, .. } = call;
        if let Some(layout) = self.winograd {
            return self.compute_sums(call, layout, winograd::Kernel::Points(packed), out);
        }
        let (finish, mut is_finished) = (self.finish_early(call, out), false);
        f32::with_places(ProductType::F32, out, &mut |out| {
            let loops = f32::instructions(isa);
            let operands = (&cast::<f32>(lhs) as _, Kernel::Packed(packed));
            // SAFETY: the result is borrowed mutably.
            is_finished = unsafe { self.run((loops, isa), operands, out, finish, threads) };
        });
        if !is_finished {
            self.skip_holes::<f32>(call, out);
            if let Some(finish) = epilogue.rows {
                finish(0, out);
            }
        }
    }

    /// Computes the convolution by Winograd's products; if some of these are not finite, by products of elements.
    fn compute_sums(
        &self,
        call: &Call<'_>,
        layout: Layout,
        kernel: winograd::Kernel<'_>,
        out: &mut [u8],
    ) {
        let &Call { isa, threads, .. } = call;
        let finish = call.epilogue.rows;
        let early = finish.filter(|_| self.finishes_rows());
        let operands = (cast(call.lhs), kernel);
        let is_right = self.run_winograd(isa, layout, operands, cast_mut(out), early, threads);
        if !is_right {
            self.compute_products(&Call { epilogue: Epilogue::default(), ..*call }, out);
        }
        if let (Some(finish), true) = (finish, early.is_none() || !is_right) {
            finish(0, out);
        }
    }

    /// Computes the convolution of `f32` by Winograd's products, if it is one that is faster so. Returns
    /// whether it is computed.
    pub(in crate::kernels::gemm) fn compute_winograd(
        &self,
        call: &Call<'_>,
        out: &mut [u8],
    ) -> bool {
        let Some(layout) = self.winograd else { return false };
        if call.types != Types::same(ProductType::F32) || !self.pays_for_sums_of_kernel() {
            return false;
        }
        self.compute_sums(call, layout, winograd::Kernel::Elements(cast(call.rhs)), out);
        true
    }
}
