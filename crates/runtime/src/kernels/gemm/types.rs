//! Products and convolutions of numbers of any types that go together.

use super::amx::{self, OnTiles};
use super::arithmetic::Arithmetic;
use super::axis::Axis;
use super::conv::{Convolution, Kernel};
use super::engine::Shared;
use super::narrow::Joined;
use super::number::{Bf16, ProductType, Types};
use super::operand::{Complex, Each, Operand};
use super::pack::{Block, Elements, Items, MAX_WIDTH};
use super::tile::Tiled;
use super::{Contraction, Epilogue, Finish, Out};
use crate::Threads;
use crate::float_mode::FloatMode;
use crate::kernels::bytes::{Plain, cast, cast_mut};
use crate::kernels::isa::Isa;
use crate::kernels::scratch;

impl ProductType {
    /// How many bytes one has.
    pub fn size(self) -> usize {
        match self {
            ProductType::S8 | ProductType::U8 => 1,
            ProductType::S16 | ProductType::U16 | ProductType::F16 | ProductType::Bf16 => 2,
            ProductType::S32 | ProductType::U32 | ProductType::F32 => 4,
            ProductType::S64 | ProductType::U64 | ProductType::F64 | ProductType::C64 => 8,
            ProductType::C128 => 16,
        }
    }
}

/// The most sums that have a place of their own until they are converted, all at once.
pub(super) const MOST_SUMS: usize = 1 << 22;
/// Multiplications of the largest product of a batch whose narrow numbers become words first.
const MAX_WIDENED_WORK: usize = 1 << 13;
/// How many if there are few rows or few columns, as many as one of these: what is packed is hardly used then.
const MAX_WIDENED_FEW_WORK: usize = 1 << 17;
const FEW: usize = 8;
const QUITE_FEW: usize = 16;
/// With more steps bytes of few columns are packed all the same: four are multiplied at once.
const MAX_WIDENED_BYTES: usize = 64;
/// The most columns of bytes, neighbours, that are not packed for few rows.
const MAX_WIDENED_COLS: usize = 32;

/// Writes the words that elements become, as many as there are places.
fn widen<T: Plain>(isa: Isa, elements: &dyn Elements<T>, words: &mut [T]) {
    let (rows, rest) = words.as_chunks_mut::<MAX_WIDTH>();
    let block = Block {
        start: 0,
        items: Items::Row(MAX_WIDTH),
        steps: rows.len(),
        stride: MAX_WIDTH,
        pitch: MAX_WIDTH,
        padding: 0,
    };
    let done = rows.len() * MAX_WIDTH;
    if done > 0 {
        elements.copy(isa, &block, rows.as_flattened_mut());
    }
    if !rest.is_empty() {
        let items = Items::Row(rest.len());
        elements.copy(isa, &Block { start: done, items, steps: 1, ..block }, rest);
    }
}

/// The types in which sums are formed.
#[derive(Clone, Copy)]
enum Sums {
    F32,
    F64,
    I32,
    I64,
    C64,
    C128,
}

impl Types {
    /// All of one type.
    pub fn same(number: ProductType) -> Self {
        Types { lhs: number, rhs: number, out: number }
    }

    fn sums(self) -> Option<Sums> {
        let fits = |takes: fn(ProductType) -> bool, makes: fn(ProductType) -> bool| {
            takes(self.lhs) && takes(self.rhs) && makes(self.out)
        };
        Some(match self {
            _ if fits(f32::takes, f32::makes) => Sums::F32,
            _ if fits(f64::takes, f64::makes) => Sums::F64,
            _ if fits(i32::takes, i32::makes) => Sums::I32,
            _ if fits(i64::takes, i64::makes) => Sums::I64,
            _ if self == Types::same(ProductType::C64) => Sums::C64,
            _ if self == Types::same(ProductType::C128) => Sums::C128,
            _ => return None,
        })
    }

    /// Whether a [`Contraction`] computes with these types.
    pub fn multiply(self) -> bool {
        self.sums().is_some()
    }

    /// Whether a [`Convolution`] computes with these types.
    pub fn convolve(self) -> bool {
        self.sums().is_some_and(|sums| !matches!(sums, Sums::C64 | Sums::C128))
    }
}

impl Contraction {
    /// Computes the product of arrays of these types, given as bytes. Rows are given to `finish` once
    /// they are complete, as by [`Contraction::f32`], but as bytes and at which byte they begin.
    ///
    /// Where subnormal numbers are flushed to zero ([`FloatMode`]), products of two `bf16` are computed by
    /// the instructions that processors have for them, which do so always.
    ///
    /// # Panics
    /// If the types do not [`multiply`](Types::multiply), bytes are not aligned for their type, an
    /// operand or the result is longer than its slice, or rows are to be finished that are no
    /// neighbours ([`Contraction::row_len`]).
    pub fn compute(
        &self,
        types: Types,
        lhs: &[u8],
        rhs: &[u8],
        out: &mut [u8],
        finish: Option<Finish<'_, u8>>,
        threads: Threads<'_>,
    ) {
        self.compute_on(Isa::best(), types, [lhs, rhs], out, finish, threads);
    }

    pub(super) fn compute_on(
        &self,
        isa: Isa,
        types: Types,
        [lhs, rhs]: [&[u8]; 2],
        out: &mut [u8],
        finish: Option<Finish<'_, u8>>,
        threads: Threads<'_>,
    ) {
        let epilogue = Epilogue { part: None, rows: finish };
        let call = Call { isa, types, lhs, rhs, epilogue, threads };
        let product = self;
        if self.compute_few(&call, out) {
            return;
        }
        let sums = types.sums().expect("types that multiply");
        let is_done = match sums {
            Sums::F32 => self.compute_widened::<f32>(&call, out),
            Sums::I32 => self.compute_widened::<i32>(&call, out),
            _ => false,
        };
        if is_done {
            return;
        }
        match sums {
            Sums::F32 | Sums::I32
                if amx::with_tiles(types, OnTiles { product, call: &call, out }) => {}
            Sums::F32 => {
                if !self.compute_bf16(&call, out) {
                    self.compute_as::<f32>(&call, out);
                }
            }
            Sums::F64 => self.compute_as::<f64>(&call, out),
            Sums::I32 => {
                if !self.compute_bytes(&call, out) && !self.compute_pairs(&call, out) {
                    self.compute_as::<i32>(&call, out);
                }
            }
            Sums::I64 => self.compute_as::<i64>(&call, out),
            Sums::C64 => self.compute_complex::<f32>(&call, out),
            Sums::C128 => self.compute_complex::<f64>(&call, out),
        }
    }

    /// With a word for each number.
    fn compute_as<T: Arithmetic>(&self, call: &Call<'_>, out: &mut [u8]) {
        let &Call { isa, types, epilogue, threads, .. } = call;
        let tiled = T::instructions(isa);
        T::with_places(types.out, out, &mut |out| {
            T::with_elements(types.lhs, call.lhs, &mut |lhs| {
                T::with_elements(types.rhs, call.rhs, &mut |rhs| {
                    let (lhs, rhs) = (&Each::all(lhs), &Each::all(rhs));
                    // SAFETY: the result is borrowed mutably.
                    unsafe { self.run(tiled, isa, [lhs, rhs], out, epilogue, threads) };
                });
            });
        });
    }

    /// How many sums are formed.
    pub(super) fn sums(&self) -> usize {
        let sizes = [self.batch[0].len(), self.lhs_rows.len(), self.rhs_cols.len()];
        sizes.into_iter().fold(1, usize::saturating_mul)
    }

    /// A batch of small products of numbers that are narrower than a word, if this is one: all of them become words
    /// first, and what is decided about a product is decided once. Otherwise returns false.
    fn compute_widened<T: Arithmetic>(&self, call: &Call<'_>, out: &mut [u8]) -> bool {
        let &Call { isa, types, lhs, rhs, .. } = call;
        let steps = self.lhs_steps.len();
        let work = [self.lhs_rows.len(), self.rhs_cols.len(), steps];
        let work = work.into_iter().fold(1, usize::saturating_mul);
        let (rows, cols) = (self.lhs_rows.len(), self.rhs_cols.len());
        let are_cols_neighbours = self.rhs_cols.stride() == Some(1);
        let is_slim = match types.lhs.size().max(types.rhs.size()) {
            1 if cols <= FEW => steps <= MAX_WIDENED_BYTES,
            1 => rows <= FEW && cols <= MAX_WIDENED_COLS && are_cols_neighbours,
            // Integers of 16 bits are packed in pairs, rows as columns.
            _ if matches!(types.sums(), Some(Sums::I32)) => rows.min(cols) <= QUITE_FEW,
            _ => cols <= FEW || are_cols_neighbours && rows.min(cols) <= QUITE_FEW,
        };
        let most_work = if is_slim { MAX_WIDENED_FEW_WORK } else { MAX_WIDENED_WORK };
        let is_small = self.batch[0].len() > 1 && (1..=most_work).contains(&work);
        let are_narrow = types.lhs.size().max(types.rhs.size()) < size_of::<T>();
        let counts = [lhs.len() / types.lhs.size(), rhs.len() / types.rhs.size()];
        // An operand may be a small part of its array.
        let most = self.sums().saturating_mul(steps).min(MOST_SUMS);
        if !is_small || !are_narrow || self.sums() > MOST_SUMS || counts.iter().any(|&n| n > most) {
            return false;
        }
        scratch::with(counts[0], |lhs_words: &mut [T]| {
            T::with_elements(types.lhs, lhs, &mut |lhs| widen(isa, lhs, lhs_words));
            scratch::with(counts[1], |rhs_words: &mut [T]| {
                T::with_elements(types.rhs, rhs, &mut |rhs| widen(isa, rhs, rhs_words));
                let (lhs, rhs) = (&*lhs_words, &*rhs_words);
                let operands: [&dyn Operand<T>; 2] = [&Each::all(&lhs), &Each::all(&rhs)];
                self.compute_sums(T::instructions(isa), operands, call, out);
            });
        });
        true
    }

    /// Computes the product of operands that are best read in place. If results are of another type than sums, sums have
    /// a place first, so that what reads operands in place can write them; there are at most [`MOST_SUMS`].
    pub(super) fn compute_sums<W: Plain + Default, T: Arithmetic>(
        &self,
        tiled: &dyn Tiled<W, T>,
        operands: [&dyn Operand<W>; 2],
        call: &Call<'_>,
        out: &mut [u8],
    ) {
        let &Call { isa, types, epilogue, threads, .. } = call;
        T::with_places(types.out, out, &mut |out| {
            if out.places.sums().is_some() {
                // SAFETY: the result is borrowed mutably.
                unsafe { self.run(tiled, isa, operands, out, epilogue, threads) };
                return;
            }
            let (batches, rows, cols) =
                (self.batch[0].len(), self.lhs_rows.len(), self.rhs_cols.len());
            let dense = Contraction {
                batch: [
                    self.batch[0].clone(),
                    self.batch[1].clone(),
                    Axis::new([(batches, rows * cols)]),
                ],
                out_rows: Axis::new([(rows, cols)]),
                ..self.clone()
            };
            scratch::with(self.sums(), |sums: &mut [T]| {
                let places = &Shared(sums.as_mut_ptr());
                let (all, none) = (Out { len: sums.len(), places }, Epilogue::default());
                // SAFETY: `sums` is borrowed mutably.
                unsafe { dense.run(tiled, isa, operands, all, none, threads) };
                // SAFETY: the result is borrowed mutably.
                unsafe { self.convert(isa, sums, out, epilogue) };
            });
        });
    }

    /// Writes dense sums to their places, and calls the epilogue.
    ///
    /// # Safety
    /// Nothing else accesses the places of `out`.
    unsafe fn convert<T: Arithmetic>(
        &self,
        isa: Isa,
        sums: &[T],
        out: Out<'_, T>,
        epilogue: Epilogue<'_>,
    ) {
        let (rows, cols) = (self.lhs_rows.len(), self.rhs_cols.len());
        if sums.is_empty() {
            return;
        }
        let last = self.batch[2].last() + self.out_rows.last() + cols - 1;
        assert!(last < out.len, "the result lies in its memory");
        for (batch, sums) in sums.chunks_exact(rows * cols).enumerate() {
            let start = self.batch[2].offset(batch);
            for (row, sums) in sums.chunks_exact(cols).enumerate() {
                // SAFETY: the caller's promise; the row lies in memory, as just checked.
                unsafe { out.places.write(isa, start + self.out_rows.offset(row), 1, sums) };
            }
            if let Some(finish) = epilogue.rows {
                assert!(self.row_len().is_some(), "the rows are neighbours");
                // SAFETY: the rows lie in memory, as checked, are neighbours, and complete.
                let bytes = unsafe { out.places.bytes(start, rows * cols) };
                finish(bytes.len() / (rows * cols) * start, bytes);
            }
        }
    }

    /// Complex numbers as pairs of real ones: lhs as it is in memory times a matrix of twice the
    /// rows and columns of rhs, see [`Complex`].
    fn compute_complex<T: Arithmetic + Default + std::ops::Neg<Output = T>>(
        &self,
        call: &Call<'_>,
        out: &mut [u8],
    ) {
        let &Call { isa, epilogue, threads, .. } = call;
        let parts = |axis: &Axis, part: Option<usize>| axis.scaled(2, part);
        let real = Contraction {
            batch: self.batch.each_ref().map(|axis| parts(axis, None)),
            lhs_rows: parts(&self.lhs_rows, None),
            out_rows: parts(&self.out_rows, None),
            rhs_cols: parts(&self.rhs_cols, Some(1)),
            lhs_steps: parts(&self.lhs_steps, Some(1)),
            rhs_steps: parts(&self.rhs_steps, Some(0)),
        };
        let (lhs, rhs) = (cast::<T>(call.lhs), Complex(cast::<T>(call.rhs)));
        let out = cast_mut::<T>(out);
        let out = Out { len: out.len(), places: &Shared(out.as_mut_ptr()) };
        let operands: [&dyn Operand<T>; 2] = [&Each::all(&lhs), &rhs];
        // SAFETY: `out` is borrowed mutably.
        unsafe { real.run(T::instructions(isa), isa, operands, out, epilogue, threads) };
    }

    /// There are no such instructions.
    #[cfg(not(target_arch = "x86_64"))]
    fn compute_few(&self, _: &Call<'_>, _: &mut [u8]) -> bool {
        false
    }

    /// With instructions for `bf16`, if the machine has them and both operands are; otherwise
    /// returns false.
    fn compute_bf16(&self, call: &Call<'_>, out: &mut [u8]) -> bool {
        let &Call { isa, types, epilogue, threads, .. } = call;
        #[cfg(target_arch = "x86_64")]
        if FloatMode::current() == FloatMode::FlushToZero
            && (types.lhs, types.rhs) == (ProductType::Bf16, ProductType::Bf16)
            && let Some(simd) = super::simd::Avx512Bf16::if_faster(isa)
        {
            let joined = |bytes| Joined { data: cast::<Bf16>(bytes), flip: Bf16(0) };
            let (lhs, rhs) = (&joined(call.lhs), &joined(call.rhs));
            f32::with_places(types.out, out, &mut |out| {
                // SAFETY: the result is borrowed mutably.
                unsafe { self.run(simd, isa, [lhs, rhs], out, epilogue, threads) };
            });
            return true;
        }
        let _ = (isa, types, epilogue, threads, out);
        false
    }
}

impl Convolution {
    /// Computes the convolution of arrays of these types, given as bytes.
    ///
    /// Rows that are complete are given to `finish`, at which byte they begin and their bytes, each once; or, if some
    /// have to be computed anew, all of the result once more. While others are computed only if the convolution
    /// [does that](Convolution::finishes_rows).
    ///
    /// # Panics
    /// If the types do not [`convolve`](Types::convolve), bytes are not aligned for their type, or
    /// an operand or the result is longer than its slice.
    pub fn compute(
        &self,
        types: Types,
        lhs: &[u8],
        rhs: &[u8],
        out: &mut [u8],
        finish: Option<Finish<'_, u8>>,
        threads: Threads<'_>,
    ) {
        let epilogue = Epilogue { part: None, rows: finish };
        let call = Call { isa: Isa::best(), types, lhs, rhs, epilogue, threads };
        self.compute_call(&call, out);
    }

    pub(super) fn compute_call(&self, call: &Call<'_>, out: &mut [u8]) {
        if !self.compute_winograd(call, out) {
            self.compute_products(call, out);
        }
    }

    /// Computes each product.
    pub(super) fn compute_products(&self, call: &Call<'_>, out: &mut [u8]) {
        let sums = call.types.sums();
        let is_finished = match sums {
            Some(Sums::F32 | Sums::I32) if self.compute_joined(call, out) => false,
            Some(Sums::F32) => self.compute_as::<f32>(call, out),
            Some(Sums::F64) => self.compute_as::<f64>(call, out),
            Some(Sums::I32) => self.compute_as::<i32>(call, out),
            Some(Sums::I64) => self.compute_as::<i64>(call, out),
            _ => panic!("types that convolve"),
        };
        match sums {
            _ if is_finished => return,
            Some(Sums::F32) => self.skip_holes::<f32>(call, out),
            Some(Sums::F64) => self.skip_holes::<f64>(call, out),
            _ => {}
        }
        if let Some(finish) = call.epilogue.rows {
            finish(0, out);
        }
    }

    /// Returns whether rows have been finished.
    fn compute_as<T: Arithmetic>(&self, call: &Call<'_>, out: &mut [u8]) -> bool {
        let &Call { isa, types, threads, .. } = call;
        let loops = T::instructions(isa);
        let finish = self.finish_early(call, out);
        let mut is_finished = false;
        T::with_places(types.out, out, &mut |out| {
            T::with_elements(types.lhs, call.lhs, &mut |lhs| {
                T::with_elements(types.rhs, call.rhs, &mut |rhs| {
                    let operands = (lhs, Kernel::Elements(rhs));
                    // SAFETY: the result is borrowed mutably.
                    is_finished = unsafe { self.run((loops, isa), operands, out, finish, threads) };
                });
            });
        });
        is_finished
    }
}

/// What to compute with.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub isa: Isa,
    pub types: Types,
    pub lhs: &'a [u8],
    pub rhs: &'a [u8],
    pub epilogue: Epilogue<'a>,
    pub threads: Threads<'a>,
}
