//! What the instructions on tiles mean, in plain code: Intel 64 and IA-32 Architectures Software
//! Developer's Manual, volume 2, and volume 1, chapter 18.

use super::{Config, Dot, LANES, REGISTERS, ROWS, Tiles};
use crate::kernels::gemm::number::Bf16;

/// Tile registers in memory.
#[derive(Clone)]
pub(in crate::kernels::gemm) struct Model {
    config: Config,
    tiles: [[[u32; LANES]; ROWS]; REGISTERS],
}

impl Tiles for Model {
    fn new() -> Option<Self> {
        let tiles = [[[0; LANES]; ROWS]; REGISTERS];
        Some(Model { config: Config::default(), tiles })
    }

    fn configure(&mut self, config: &Config) {
        for (&rows, &row_bytes) in config.rows.iter().zip(&config.row_bytes) {
            // Palette 1. The instruction faults unless both are zero or neither is.
            assert!(rows <= ROWS && row_bytes <= 4 * LANES && (rows == 0) == (row_bytes == 0));
        }
        self.config = *config;
        self.tiles = [[[0; LANES]; ROWS]; REGISTERS];
    }

    unsafe fn zero<const TILE: usize>(&mut self) {
        self.check(TILE);
        self.tiles[TILE] = [[0; LANES]; ROWS];
    }

    unsafe fn load<const TILE: usize>(&mut self, from: *const u32, stride: usize) {
        let words = self.check(TILE);
        self.tiles[TILE] = [[0; LANES]; ROWS];
        for i in 0..self.config.rows[TILE] {
            let row = from.wrapping_add(i.wrapping_mul(stride));
            // SAFETY: the caller promises that the row may be read.
            let row = unsafe { std::slice::from_raw_parts(row, words) };
            self.tiles[TILE][i][..words].copy_from_slice(row);
        }
    }

    unsafe fn store<const TILE: usize>(&mut self, to: *mut u32, stride: usize) {
        let words = self.check(TILE);
        for i in 0..self.config.rows[TILE] {
            let row = to.wrapping_add(i.wrapping_mul(stride));
            // SAFETY: the caller promises that the row may be written.
            let row = unsafe { std::slice::from_raw_parts_mut(row, words) };
            row.copy_from_slice(&self.tiles[TILE][i][..words]);
        }
    }

    fn config(&self) -> &Config {
        &self.config
    }

    unsafe fn dot<const SUM: usize, const LHS: usize, const RHS: usize>(&mut self, dot: Dot) {
        let (cols, steps) = (self.check(SUM), self.check(LHS));
        // The instruction faults if tiles are not different, or do not match.
        assert!(SUM != LHS && SUM != RHS && LHS != RHS, "tiles are different");
        let Config { rows, row_bytes } = self.config;
        assert_eq!(rows[SUM], rows[LHS], "sums have the rows of lhs");
        assert_eq!(row_bytes[SUM], row_bytes[RHS], "sums have the columns of rhs");
        assert_eq!(steps, rows[RHS], "rhs has a row for each word of lhs");
        let (lhs, rhs) = (self.tiles[LHS], self.tiles[RHS]);
        for (sums, lhs) in self.tiles[SUM].iter_mut().zip(&lhs[..rows[SUM]]) {
            for (j, sum) in sums[..cols].iter_mut().enumerate() {
                let pairs = lhs[..steps].iter().zip(&rhs).map(|(&a, row)| (a, row[j]));
                *sum = match dot {
                    Dot::Bf16 => bf16(f32::from_bits(*sum), pairs).to_bits(),
                    Dot::Bytes { signed } => bytes(*sum, signed, pairs),
                };
            }
        }
    }

    fn release(&mut self) {
        self.config = Config::default();
    }
}

impl Model {
    /// Words in a row of a tile. The instructions fault on tiles that are not configured.
    fn check(&self, tile: usize) -> usize {
        assert!(self.config.rows[tile] > 0, "tile {tile} is configured");
        self.config.row_bytes[tile] / 4
    }
}

/// TDPBF16PS: the products of even and of odd numbers are summed apart, then these sums are added,
/// then what there was. Subnormal operands and results are zero; rounding is to nearest, ties to even.
fn bf16(sum: f32, words: impl Iterator<Item = (u32, u32)>) -> f32 {
    let mut parts = [0.0_f32; 2];
    for (a, b) in words {
        for (i, part) in parts.iter_mut().enumerate() {
            let number = |word: u32| flush(Bf16((word >> (16 * i)) as u16).to_f32());
            *part = flush(number(a).mul_add(number(b), *part));
        }
    }
    flush(flush(sum) + flush(parts[0] + parts[1]))
}

/// Zero, with the same sign, for a subnormal number.
fn flush(x: f32) -> f32 {
    if x.is_subnormal() { 0.0_f32.copysign(x) } else { x }
}

/// TDPBSSD, TDPBSUD, TDPBUSD and TDPBUUD.
fn bytes(sum: u32, signed: [bool; 2], words: impl Iterator<Item = (u32, u32)>) -> u32 {
    let value = |byte: u8, signed| if signed { i32::from(byte as i8) } else { i32::from(byte) };
    words.fold(sum, |sum, (a, b)| {
        let bytes = a.to_le_bytes().into_iter().zip(b.to_le_bytes());
        let products = bytes.map(|(a, b)| value(a, signed[0]) * value(b, signed[1]));
        sum.wrapping_add(products.sum::<i32>().cast_unsigned())
    })
}
