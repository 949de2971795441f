//! AMX on the processor itself: its tile registers behind the safe interface that the model has,
//! too.

use std::arch::asm;
use std::arch::x86_64::{__cpuid_count, _xgetbv};
use std::marker::PhantomData;
use std::sync::OnceLock;

use super::model::Model;
use super::{Config, Dot, LANES, Operands, Place, REGISTERS, ROWS, Tiles, config, multiply};

/// The tile registers of this thread.
///
/// They keep their content from one method to the next: code that the compiler makes by itself never
/// touches them.
pub(super) struct Hardware {
    config: Config,
    /// The registers belong to a thread.
    thread: PhantomData<*const ()>,
}

/// What `ldtilecfg` reads.
#[repr(C, align(64))]
struct ConfigBytes {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

impl ConfigBytes {
    fn of(config: &Config) -> Self {
        let (mut row_bytes, mut rows) = ([0; 16], [0; 16]);
        for i in 0..REGISTERS {
            (row_bytes[i], rows[i]) = (config.row_bytes[i] as u16, config.rows[i] as u8);
        }
        ConfigBytes { palette: 1, start_row: 0, reserved: [0; 14], row_bytes, rows }
    }
}

// One instruction each. The registers are named, so that the bytes are known (`tests`).

/// # Safety
/// The machine has the instruction, and the configuration is one that it takes.
#[inline(always)]
unsafe fn ldtilecfg(from: *const ConfigBytes) {
    // SAFETY: the caller's promise.
    unsafe { asm!("ldtilecfg [rax]", in("rax") from, options(nostack, preserves_flags)) }
}

/// # Safety
/// The machine has the instruction.
#[inline(always)]
unsafe fn tilerelease() {
    // SAFETY: the caller's promise.
    unsafe { asm!("tilerelease", options(nostack, preserves_flags)) }
}

/// # Safety
/// The machine has the instruction, and the tile is configured.
#[inline(always)]
unsafe fn tilezero<const TILE: usize>() {
    // SAFETY: the caller's promise.
    unsafe { asm!("tilezero tmm{}", const TILE, options(nostack, preserves_flags)) }
}

/// # Safety
/// The machine has the instruction, the tile is configured, and its rows, `stride` bytes apart, may
/// be read.
#[inline(always)]
unsafe fn tileloadd<const TILE: usize>(from: *const u32, stride: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!(
            "tileloadd tmm{}, [rax + rcx * 1]",
            const TILE, in("rax") from, in("rcx") stride,
            options(nostack, preserves_flags)
        )
    }
}

/// # Safety
/// The machine has the instruction, the tile is configured, and its rows, `stride` bytes apart, may
/// be written.
#[inline(always)]
unsafe fn tilestored<const TILE: usize>(to: *mut u32, stride: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!(
            "tilestored [rax + rcx * 1], tmm{}",
            const TILE, in("rax") to, in("rcx") stride,
            options(nostack, preserves_flags)
        )
    }
}

/// Wrappers of instructions that multiply tiles.
macro_rules! dots {
    ($($name:ident)*) => { $(
        /// # Safety
        /// The machine has the instruction, and the tiles are configured, different, and match.
        #[inline(always)]
        unsafe fn $name<const SUM: usize, const LHS: usize, const RHS: usize>() {
            // SAFETY: the caller's promise.
            unsafe {
                asm!(
                    concat!(stringify!($name), " tmm{}, tmm{}, tmm{}"),
                    const SUM, const LHS, const RHS,
                    options(nostack, preserves_flags)
                )
            }
        }
    )* };
}
dots!(tdpbf16ps tdpbssd tdpbsud tdpbusd tdpbuud);

impl Tiles for Hardware {
    fn new() -> Option<Self> {
        is_usable().then_some(Hardware { config: Config::default(), thread: PhantomData })
    }

    fn configure(&mut self, config: &Config) {
        for (&rows, &row_bytes) in config.rows.iter().zip(&config.row_bytes) {
            assert!(rows <= ROWS && row_bytes <= 4 * LANES && (rows == 0) == (row_bytes == 0));
        }
        // SAFETY: a value exists only where the instructions are; the shapes were checked.
        unsafe { ldtilecfg(&ConfigBytes::of(config)) };
        self.config = *config;
    }

    #[inline(always)]
    fn config(&self) -> &Config {
        &self.config
    }

    #[inline(always)]
    unsafe fn zero<const TILE: usize>(&mut self) {
        // SAFETY: a value exists only where the instructions are; the caller's promise.
        unsafe { tilezero::<TILE>() };
    }

    #[inline(always)]
    unsafe fn load<const TILE: usize>(&mut self, from: *const u32, stride: usize) {
        // SAFETY: a value exists only where the instructions are; the caller's promise.
        unsafe { tileloadd::<TILE>(from, stride.wrapping_mul(4)) };
    }

    #[inline(always)]
    unsafe fn store<const TILE: usize>(&mut self, to: *mut u32, stride: usize) {
        // SAFETY: a value exists only where the instructions are; the caller's promise.
        unsafe { tilestored::<TILE>(to, stride.wrapping_mul(4)) };
    }

    #[inline(always)]
    unsafe fn dot<const SUM: usize, const LHS: usize, const RHS: usize>(&mut self, dot: Dot) {
        const { assert!(SUM != LHS && SUM != RHS && LHS != RHS, "tiles are different") };
        // SAFETY: a value exists only where the instructions are; the caller's promise.
        unsafe {
            match dot {
                Dot::Bf16 => tdpbf16ps::<SUM, LHS, RHS>(),
                Dot::Bytes { signed: [true, true] } => tdpbssd::<SUM, LHS, RHS>(),
                Dot::Bytes { signed: [true, false] } => tdpbsud::<SUM, LHS, RHS>(),
                Dot::Bytes { signed: [false, true] } => tdpbusd::<SUM, LHS, RHS>(),
                Dot::Bytes { signed: [false, false] } => tdpbuud::<SUM, LHS, RHS>(),
            }
        }
    }

    fn release(&mut self) {
        // SAFETY: a value exists only where the instructions are.
        unsafe { tilerelease() };
        self.config = Config::default();
    }
}

/// Whether processor and system let this process use the tiles: found out once.
fn is_usable() -> bool {
    static USABLE: OnceLock<bool> = OnceLock::new();
    *USABLE.get_or_init(|| has_instructions() && is_permitted())
}

/// Whether the processor has all the instructions, and tiles as large as they are here, and the
/// system keeps them for each thread.
fn has_instructions() -> bool {
    if __cpuid_count(0, 0).eax < 0x1d || !is_x86_feature_detected!("xsave") {
        return false;
    }
    // XSAVE is in use by the system, and AMX-BF16, AMX-TILE and AMX-INT8 are there.
    let osxsave = __cpuid_count(1, 0).ecx >> 27 & 1 == 1;
    let features = __cpuid_count(7, 0).edx;
    if !osxsave || ![22, 24, 25].iter().all(|bit| features >> bit & 1 == 1) {
        return false;
    }
    // The state components of the configuration and of the data.
    // SAFETY: the system uses XSAVE, so the register can be read.
    let enabled = unsafe { _xgetbv(0) };
    if enabled >> 17 & 3 != 3 || __cpuid_count(0x1d, 0).eax < 1 {
        return false;
    }
    let palette = __cpuid_count(0x1d, 1);
    let bytes_per_tile = palette.eax >> 16;
    let (bytes_per_row, registers, rows) =
        (palette.ebx & 0xffff, palette.ebx >> 16, palette.ecx & 0xffff);
    (bytes_per_tile, bytes_per_row) == (1024, 64) && registers == 8 && rows == 16
}

/// Asks the system for the registers, which it gives only to processes that ask.
fn is_permitted() -> bool {
    const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
    const XFEATURE_XTILEDATA: libc::c_long = 18;
    // SAFETY: a system call that accesses no memory of the process.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0 }
}

/// Whether there are tiles that compute what the model does: found out once.
pub(super) fn works() -> bool {
    static WORKS: OnceLock<bool> = OnceLock::new();
    *WORKS.get_or_init(|| {
        let kinds = [false, true].into_iter().flat_map(|lhs| {
            [false, true].into_iter().map(move |rhs| Dot::Bytes { signed: [lhs, rhs] })
        });
        // (Miri has neither the instructions nor the one that asks for them.)
        !cfg!(miri) && is_usable() && kinds.chain([Dot::Bf16]).all(agrees)
    })
}

/// Whether a product of small numbers, which no rounding touches, is the model's.
fn agrees(dot: Dot) -> bool {
    let (rows, steps, rhs_step) = (21, 2 * LANES, 2 * LANES);
    let word = |i: usize| -> u32 {
        let number = |i: usize| (i * 7919 % 15) as i8 - 7;
        match dot {
            Dot::Bf16 => {
                let bits = |i| f32::from(number(i)).to_bits() >> 16;
                bits(2 * i) | bits(2 * i + 1) << 16
            }
            Dot::Bytes { .. } => {
                u32::from_le_bytes([0, 1, 2, 3].map(|k| number(4 * i + k).cast_unsigned()))
            }
        }
    };
    let lhs: Vec<u32> = (0..rows * steps).map(word).collect();
    let rhs: Vec<u32> = (lhs.len()..lhs.len() + steps * rhs_step).map(word).collect();
    fn product<T: Tiles>(
        dot: Dot,
        rows: usize,
        lhs: &[u32],
        rhs: (&[u32], usize),
    ) -> Option<[u32; 2 * ROWS * 2 * LANES]> {
        let mut sums = [0; 2 * ROWS * 2 * LANES];
        let mut tiles = T::new()?;
        tiles.configure(&config(rows));
        let place = Place { start: sums.as_mut_ptr(), stride: 2 * LANES, add: false };
        let (rhs, rhs_step) = rhs;
        let blocks = rhs.len() / (rhs_step * LANES);
        let operands = Operands { lhs: lhs.as_ptr(), rhs: rhs.as_ptr(), rhs_step, blocks };
        // SAFETY: the tiles are configured; the operands have so many blocks; there are 32 rows of 32 sums.
        unsafe { multiply(&mut tiles, dot, (rows, true), operands, place) };
        tiles.release();
        Some(sums)
    }
    let sums = product::<Hardware>(dot, rows, &lhs, (&rhs, rhs_step));
    sums.is_some() && sums == product::<Model>(dot, rows, &lhs, (&rhs, rhs_step))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts that a function's first bytes contain those of an instruction.
    fn assert_contains(function: unsafe fn(*mut u32, usize), bytes: &[u8], name: &str) {
        // SAFETY: each of the functions below has more bytes of code, which can be read, behind it.
        let code = unsafe { std::slice::from_raw_parts(function as *const u8, 64) };
        let found = code.windows(bytes.len()).any(|window| window == bytes);
        assert!(found, "{name}: {code:02x?}");
    }

    /// A function that holds an instruction and nothing that matters besides.
    macro_rules! assert_bytes {
        ($name:ident, |$at:ident, $stride:ident| $call:expr, $bytes:expr) => {{
            /// # Safety
            /// It is never called: its code is looked at.
            #[inline(never)]
            unsafe fn $name($at: *mut u32, $stride: usize) {
                let _ = ($at, $stride);
                // SAFETY: never called.
                unsafe { $call }
            }
            assert_contains($name, &$bytes, stringify!($name));
        }};
    }

    /// As LLVM 21 and GNU binutils 2.40 encode and decode them.
    #[test]
    fn instructions_have_the_bytes_of_the_manual() {
        assert_bytes!(ld, |at, _s| ldtilecfg(at.cast()), [0xc4, 0xe2, 0x78, 0x49, 0x00]);
        assert_bytes!(release, |_at, _s| tilerelease(), [0xc4, 0xe2, 0x78, 0x49, 0xc0]);
        assert_bytes!(zero3, |_at, _s| tilezero::<3>(), [0xc4, 0xe2, 0x7b, 0x49, 0xd8]);
        assert_bytes!(zero0, |_at, _s| tilezero::<0>(), [0xc4, 0xe2, 0x7b, 0x49, 0xc0]);
        let load = [0xc4, 0xe2, 0x7b, 0x4b, 0x24, 0x08];
        assert_bytes!(load4, |at, s| tileloadd::<4>(at, s), load);
        let store = [0xc4, 0xe2, 0x7a, 0x4b, 0x2c, 0x08];
        assert_bytes!(store5, |at, s| tilestored::<5>(at, s), store);
        let dot = |prefix| [0xc4, 0xe2, prefix, 0x5e, 0xc4];
        assert_bytes!(bf, |_at, _s| tdpbf16ps::<0, 4, 6>(), [0xc4, 0xe2, 0x4a, 0x5c, 0xc4]);
        assert_bytes!(ss, |_at, _s| tdpbssd::<0, 4, 6>(), dot(0x4b));
        assert_bytes!(su, |_at, _s| tdpbsud::<0, 4, 6>(), dot(0x4a));
        assert_bytes!(us, |_at, _s| tdpbusd::<0, 4, 6>(), dot(0x49));
        assert_bytes!(uu, |_at, _s| tdpbuud::<0, 4, 6>(), dot(0x48));
        assert_bytes!(last, |_at, _s| tdpbssd::<3, 5, 7>(), [0xc4, 0xe2, 0x43, 0x5e, 0xdd]);
    }

    #[test]
    fn the_configuration_has_64_bytes_in_their_places() {
        assert_eq!(size_of::<ConfigBytes>(), 64);
        let bytes = ConfigBytes::of(&config(21));
        assert_eq!(std::mem::offset_of!(ConfigBytes, row_bytes), 16);
        assert_eq!(std::mem::offset_of!(ConfigBytes, rows), 48);
        assert_eq!((bytes.palette, bytes.start_row), (1, 0));
        assert_eq!(bytes.rows[..9], [16, 16, 5, 5, 16, 5, 16, 16, 0]);
        assert_eq!(bytes.row_bytes[..9], [64, 64, 64, 64, 64, 64, 64, 64, 0]);
    }

    #[test]
    fn tiles_that_are_there_work() {
        assert_eq!(works(), is_usable());
    }
}
