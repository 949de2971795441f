//! Vectors as arrays: what the compiler makes of plain loops, on any machine.

use std::marker::PhantomData;
use std::ops::Range;

use super::{Loops, Simd, Sums};
use crate::kernels::bytes::Plain;
use crate::kernels::gemm::tile::{self, Format, Tile, TileArgs, Tiled, block_steps, tiles};

/// A number that can be multiplied and added.
pub(in crate::kernels) trait MulAdd: Plain + Default {
    /// `self + a * b`; integers wrap.
    fn mul_add(self, a: Self, b: Self) -> Self;

    /// `self + other`; integers wrap.
    fn add(self, other: Self) -> Self;
}

macro_rules! mul_add {
    ($($ty:ty: |$sum:ident, $a:ident, $b:ident| $mul_add:expr, $add:expr;)*) => { $(
        impl MulAdd for $ty {
            #[inline(always)]
            fn mul_add(self, $a: Self, $b: Self) -> Self {
                let $sum = self;
                $mul_add
            }
            #[inline(always)]
            fn add(self, $b: Self) -> Self {
                let $sum = self;
                $add
            }
        }
    )* };
}
mul_add! {
    f32: |sum, a, b| sum + a * b, sum + b;
    f64: |sum, a, b| sum + a * b, sum + b;
    i32: |sum, a, b| sum.wrapping_add(a.wrapping_mul(b)), sum.wrapping_add(b);
    i64: |sum, a, b| sum.wrapping_add(a.wrapping_mul(b)), sum.wrapping_add(b);
}

/// Any numbers, without special instructions.
#[derive(Clone, Copy)]
pub(in crate::kernels::gemm) struct Portable<T>(pub PhantomData<T>);

const LANES: usize = 8;

impl<T: MulAdd> Tiled<T, T> for Portable<T> {
    fn format(&self) -> Format {
        Format {
            lanes: LANES,
            heights: &[1, 3],
            vecs: 1,
            in_place: false,
            in_blocks: false,
            most_steps: block_steps::<T>(),
        }
    }

    fn tile(&self, rows: usize, vecs: usize, packed: bool) -> Tile<T, T> {
        tiles!(run, (rows, vecs, packed), false, [1 3], [1])
    }

    fn loops(&self) -> Option<&dyn Loops<T, T>> {
        Some(self)
    }
}

impl<T: MulAdd> Simd for Portable<T> {
    type Word = T;
    type Acc = T;
    type Vec = [T; LANES];
    type Words = [T; LANES];
    /// The first lane that counts, and the first after it that does not.
    type Mask = (usize, usize);

    const LANES: usize = LANES;

    #[inline(always)]
    fn vectorise<R>(self, body: impl FnOnce() -> R) -> R {
        body()
    }

    #[inline(always)]
    fn zero() -> Self::Vec {
        [T::default(); LANES]
    }

    #[inline(always)]
    fn mask(lanes: usize) -> Self::Mask {
        (0, lanes)
    }

    #[inline(always)]
    unsafe fn load(from: *const T) -> Self::Words {
        // SAFETY: the caller's promise.
        unsafe { from.cast::<Self::Words>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn load_masked(from: *const T, (first, end): (usize, usize)) -> Self::Words {
        if (first, end) == (0, LANES) {
            // SAFETY: the caller's promise.
            return unsafe { Self::load(from) };
        }
        let mut words = [T::default(); LANES];
        for (lane, word) in words.iter_mut().enumerate().take(end).skip(first) {
            // SAFETY: the caller's promise; lanes outside the mask are not accessed.
            *word = unsafe { from.wrapping_add(lane).read() };
        }
        words
    }

    #[inline(always)]
    unsafe fn splat(from: *const T) -> Self::Words {
        // SAFETY: the caller's promise.
        [unsafe { from.read() }; LANES]
    }

    #[inline(always)]
    unsafe fn mul_add(a: Self::Words, b: Self::Words, sum: Self::Vec) -> Self::Vec {
        std::array::from_fn(|i| sum[i].mul_add(a[i], b[i]))
    }

    #[inline(always)]
    unsafe fn store(to: *mut T, (first, end): (usize, usize), sums: Self::Vec, add: bool) {
        for (lane, sum) in sums.into_iter().enumerate().take(end).skip(first) {
            // SAFETY: the caller's promise; lanes outside the mask are not accessed.
            unsafe {
                let to = to.add(lane);
                to.write(if add { to.read().add(sum) } else { sum });
            }
        }
    }
}

impl Sums for Portable<f32> {
    #[inline(always)]
    fn mask_of(lanes: Range<usize>) -> (usize, usize) {
        (lanes.start, lanes.end)
    }

    #[inline(always)]
    unsafe fn even(low: [f32; LANES], high: [f32; LANES]) -> [f32; LANES] {
        every_second::<0>(low, high)
    }

    #[inline(always)]
    unsafe fn odd(low: [f32; LANES], high: [f32; LANES]) -> [f32; LANES] {
        every_second::<1>(low, high)
    }

    #[inline(always)]
    unsafe fn add(a: [f32; LANES], b: [f32; LANES]) -> [f32; LANES] {
        std::array::from_fn(|i| a[i] + b[i])
    }

    #[inline(always)]
    unsafe fn sub(a: [f32; LANES], b: [f32; LANES]) -> [f32; LANES] {
        std::array::from_fn(|i| a[i] - b[i])
    }
}

#[inline(always)]
fn every_second<const FIRST: usize>(low: [f32; LANES], high: [f32; LANES]) -> [f32; LANES] {
    let at = |i: usize| if i < LANES { low[i] } else { high[i - LANES] };
    std::array::from_fn(|i| at(2 * i + FIRST))
}

/// # Safety
/// That of [`Tile`].
unsafe fn run<S: Simd, const ROWS: usize, const VECS: usize, const PACKED: bool>(
    args: &TileArgs<'_, S::Word, S::Acc>,
) {
    // SAFETY: the caller's promise.
    unsafe { tile::run::<S, ROWS, VECS, PACKED>(args) }
}
