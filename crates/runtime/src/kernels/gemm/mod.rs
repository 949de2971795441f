//! Products of matrices, and of anything else that sums products over common dimensions.
//!
//! The result is formed in tiles that stay in registers ([`tile`]), from operands packed in the
//! order in which tiles read them ([`pack`]), in blocks that fit the caches ([`engine`]). Packing
//! takes operands of any strides, so that none has to be transposed first.

mod axis;
pub mod conv;
mod engine;
mod isa;
mod pack;
mod simd;
mod tile;
mod transpose;

#[cfg(test)]
mod tests;

use self::axis::Axis;
use self::engine::{Product, Rhs, Shared, Sink};
use self::isa::Isa;
use self::pack::{Element, Output, Strided};
use self::simd::{MulAdd, Simd};
use crate::Threads;

/// A dimension of a product: its size, and how many elements apart its indices are in each operand
/// and in the result. Where it does not occur, that number is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dim {
    /// How many indices it has.
    pub size: usize,
    /// In the left operand.
    pub lhs: usize,
    /// In the right operand.
    pub rhs: usize,
    /// In the result.
    pub out: usize,
}

/// Part of a row of the result: which of the batch, which row, and its first column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// The index in the batch dimensions, run through as one.
    pub batch: usize,
    /// The index in the row dimensions.
    pub row: usize,
    /// The index of the first element in the column dimensions.
    pub col: usize,
}

/// What is done with part of a row once its sums are complete.
pub type Finish<'a, T> = &'a (dyn Fn(At, &mut [T]) + Sync);

/// What a product multiplies and sums: `out[b, r, c] = Σ lhs[b, r, s] * rhs[b, s, c]` over steps
/// `s`, where each of the four indices stands for any number of dimensions.
///
/// The dimensions may be listed in any order; it is that in which they are run through, the last
/// fastest. The columns of the result must be neighbours. If instead its rows are, swap the operands.
#[derive(Clone, Debug)]
pub struct Contraction {
    batch: [Axis; 3],
    lhs_rows: Axis,
    out_rows: Axis,
    rhs_cols: Axis,
    lhs_steps: Axis,
    rhs_steps: Axis,
}

impl Contraction {
    /// The product of the dimensions that both operands and the result have (`batch`), those of lhs
    /// and result (`rows`), of rhs and result (`cols`), and of the operands only (`steps`).
    ///
    /// # Panics
    /// If the columns of the result are not neighbours, or two elements of it are one in memory.
    pub fn new(batch: &[Dim], rows: &[Dim], cols: &[Dim], steps: &[Dim]) -> Self {
        let axis = |dims: &[Dim], stride: fn(&Dim) -> usize| {
            Axis::new(dims.iter().map(|dim| (dim.size, stride(dim))))
        };
        let (lhs, rhs, out) = (|dim: &Dim| dim.lhs, |dim: &Dim| dim.rhs, |dim: &Dim| dim.out);
        let out_cols = axis(cols, out);
        assert!(
            out_cols.len() == 0 || out_cols.stride() == Some(1),
            "the columns of the result are neighbours"
        );
        let all_rows = axis(&[batch, rows].concat(), out);
        assert!(
            all_rows.len() == 0 || all_rows.keeps_apart(out_cols.len()),
            "the elements of the result are apart"
        );
        Contraction {
            batch: [axis(batch, lhs), axis(batch, rhs), axis(batch, out)],
            lhs_rows: axis(rows, lhs),
            out_rows: axis(rows, out),
            rhs_cols: axis(cols, rhs),
            lhs_steps: axis(steps, lhs),
            rhs_steps: axis(steps, rhs),
        }
    }

    /// The product of dense matrices, `rows`×`steps` and `steps`×`cols`, for each of a batch.
    pub fn dense(batch: usize, rows: usize, steps: usize, cols: usize) -> Self {
        let dim = |size, lhs, rhs, out| [Dim { size, lhs, rhs, out }];
        Contraction::new(
            &dim(batch, rows * steps, steps * cols, rows * cols),
            &dim(rows, steps, 0, cols),
            &dim(cols, 0, 1, 1),
            &dim(steps, 1, cols, 0),
        )
    }

    /// Computes the product of `f32`. Each part of a row is given to `finish` once its sums are
    /// complete, while it is in cache.
    ///
    /// # Panics
    /// If an operand or the result is longer than its slice.
    pub fn f32(
        &self,
        lhs: &[f32],
        rhs: &[f32],
        out: &mut [f32],
        finish: Option<Finish<'_, f32>>,
        threads: Threads<'_>,
    ) {
        self.float(Isa::best(), lhs, rhs, out, finish, threads);
    }

    /// Computes the product of `f64`; see [`Contraction::f32`].
    ///
    /// # Panics
    /// If an operand or the result is longer than its slice.
    pub fn f64(
        &self,
        lhs: &[f64],
        rhs: &[f64],
        out: &mut [f64],
        finish: Option<Finish<'_, f64>>,
        threads: Threads<'_>,
    ) {
        self.float(Isa::best(), lhs, rhs, out, finish, threads);
    }

    fn float<T: Float>(
        &self,
        isa: Isa,
        lhs: &[T],
        rhs: &[T],
        out: &mut [T],
        finish: Option<Finish<'_, T>>,
        threads: Threads<'_>,
    ) {
        with_float!(T, isa, simd => self.run(simd, isa, lhs, rhs, out, finish, threads));
    }

    #[expect(clippy::too_many_arguments, reason = "operands, result, and what to do with them")]
    fn run<S: Simd, L: Element<S::Word>, R: Element<S::Word>, O: Output<S::Acc>>(
        &self,
        simd: S,
        isa: Isa,
        lhs: &[L],
        rhs: &[R],
        out: &mut [O],
        finish: Option<Finish<'_, O>>,
        threads: Threads<'_>,
    ) {
        let (rows, cols) = (self.lhs_rows.len(), self.rhs_cols.len());
        let batches = self.batch[0].len();
        if batches == 0 || rows == 0 || cols == 0 {
            return;
        }
        let last = self.batch[2].last() + self.out_rows.last() + cols - 1;
        assert!(last < out.len(), "the result lies in its memory");
        let out = Shared(out.as_mut_ptr());
        threads.for_each(batches, &|batch| {
            let [lhs_start, rhs_start, out_start] =
                self.batch.each_ref().map(|axis| axis.offset(batch));
            let (lhs, rhs) = (lhs.get(lhs_start..), rhs.get(rhs_start..));
            let (lhs, rhs) = (lhs.unwrap_or_default(), rhs.unwrap_or_default());
            let start = Shared(out.get().wrapping_add(out_start));
            let finish_same = |row, col, sums: &mut [S::Acc]| {
                // SAFETY: only called if `O` and the sum are the same type.
                let sums = unsafe { &mut *(std::ptr::from_mut(sums) as *mut [O]) };
                if let Some(finish) = finish {
                    finish(At { batch, row, col }, sums);
                }
            };
            let convert = |row, col, sums: &mut [S::Acc]| {
                let place = start.get().wrapping_add(self.out_rows.offset(row) + col);
                // SAFETY: this part of the result lies in its slice, as asserted above, and is
                // given to one call alone.
                let part = unsafe { std::slice::from_raw_parts_mut(place, sums.len()) };
                isa.run(
                    #[inline(always)]
                    || part.iter_mut().zip(sums).for_each(|(x, sum)| *x = O::from_sum(*sum)),
                );
                if let Some(finish) = finish {
                    finish(At { batch, row, col }, part);
                }
            };
            let sink = if O::SAME {
                let finish = finish.is_some().then_some(&finish_same as engine::Finish<'_, _>);
                Sink::Memory { start: Shared(start.get().cast()), rows: &self.out_rows, finish }
            } else {
                Sink::Function(&convert)
            };
            let product = Product {
                simd,
                rows,
                cols,
                steps: self.lhs_steps.len(),
                lhs: &Strided::new(isa, lhs, &self.lhs_rows, &self.lhs_steps),
                rhs: Rhs::Source(&Strided::new(isa, rhs, &self.rhs_cols, &self.rhs_steps)),
                sink,
                add: false,
            };
            // SAFETY: `Strided` checked that the operands lie in their slices; the result lies in
            // its own by the assertion above, and no two of its elements are one, by that of `new`.
            // Its elements are sums if they go to memory.
            unsafe { product.run(threads) };
        });
    }
}

/// Evaluates `$body`, which must be of the type of the surrounding function, with `$simd` for the
/// arithmetic of the [`Float`] `$T` that `$isa` has.
macro_rules! with_float {
    ($T:ty, $isa:expr, $simd:ident => $body:expr) => {{
        #[cfg(target_arch = "x86_64")]
        {
            if let Some($simd) = <$T as $crate::kernels::gemm::Float>::avx512($isa) {
                return $body;
            }
            if let Some($simd) = <$T as $crate::kernels::gemm::Float>::avx2($isa) {
                return $body;
            }
        }
        let $simd = $crate::kernels::gemm::simd::Portable::<$T>(std::marker::PhantomData);
        $body
    }};
}
use with_float;

/// A floating-point type and its instructions.
trait Float: MulAdd + Element<Self> + Output<Self> {
    #[cfg(target_arch = "x86_64")]
    type Avx512: Simd<Word = Self, Acc = Self>;
    #[cfg(target_arch = "x86_64")]
    type Avx2: Simd<Word = Self, Acc = Self>;

    #[cfg(target_arch = "x86_64")]
    fn avx512(isa: Isa) -> Option<Self::Avx512>;
    #[cfg(target_arch = "x86_64")]
    fn avx2(isa: Isa) -> Option<Self::Avx2>;
}

macro_rules! float {
    ($ty:ty, $avx512:ident, $avx2:ident) => {
        impl Float for $ty {
            #[cfg(target_arch = "x86_64")]
            type Avx512 = simd::$avx512;
            #[cfg(target_arch = "x86_64")]
            type Avx2 = simd::$avx2;

            #[cfg(target_arch = "x86_64")]
            fn avx512(isa: Isa) -> Option<Self::Avx512> {
                simd::$avx512::new(isa)
            }
            #[cfg(target_arch = "x86_64")]
            fn avx2(isa: Isa) -> Option<Self::Avx2> {
                simd::$avx2::new(isa)
            }
        }
    };
}
float!(f32, Avx512F32, Avx2F32);
float!(f64, Avx512F64, Avx2F64);
