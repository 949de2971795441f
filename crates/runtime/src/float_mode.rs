//! What the processor's floating-point unit does with subnormal numbers.
//!
//! It is said in a control register that each thread has of its own: in MXCSR on x86-64 and in FPCR on
//! AArch64. Other processors are left as they are, and so are threads under Miri, which knows no control
//! registers.

use std::fmt;
use std::marker::PhantomData;

/// What the floating-point unit does with subnormal numbers of `f32` and `f64`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FloatMode {
    /// They are numbers like any other.
    #[default]
    Ieee,
    /// Operands that are subnormal count as zeros of their sign, and results that would be subnormal
    /// become such zeros.
    FlushToZero,
}

impl FloatMode {
    /// Whether this processor has both modes; without them, subnormal numbers are kept in either.
    pub const CAN_FLUSH: bool = register::FLUSH != 0;

    /// That of the calling thread.
    pub fn current() -> Self {
        match Control::current().0 & register::FLUSH {
            0 => FloatMode::Ieee,
            _ => FloatMode::FlushToZero,
        }
    }

    /// Makes this the mode of the calling thread until the guard is dropped, which then gives it the mode
    /// that it has now. So guards that a thread has at the same time are dropped in the reverse order. It
    /// takes some nanoseconds.
    pub fn enter(self) -> FloatModeGuard {
        FloatModeGuard::enter(Control::current().in_mode(self))
    }
}

/// What the control register of a thread says.
#[derive(Clone, Copy)]
pub(crate) struct Control(register::Bits);

impl Control {
    /// That of the calling thread.
    #[inline]
    pub(crate) fn current() -> Self {
        Control(register::read())
    }

    /// The same but for the mode.
    fn in_mode(self, mode: FloatMode) -> Self {
        match mode {
            FloatMode::Ieee => Control(self.0 & !register::FLUSH),
            FloatMode::FlushToZero => Control(self.0 | register::FLUSH),
        }
    }

    /// Whether subnormal numbers are treated alike. (Flags of what has happened are no treatment.)
    fn has_mode_of(self, other: Control) -> bool {
        (self.0 ^ other.0) & register::FLUSH == 0
    }
}

/// While it lives, its thread has the mode that it was made for; then that of before.
#[must_use = "the mode is left when this is dropped"]
pub struct FloatModeGuard {
    before: Control,
    is_changed: bool,
    /// The register belongs to a thread.
    thread: PhantomData<*const ()>,
}

impl FloatModeGuard {
    /// Gives the calling thread the mode that another, or it, had at some time.
    #[inline]
    pub(crate) fn enter(control: Control) -> Self {
        let before = Control::current();
        let is_changed = !before.has_mode_of(control);
        if is_changed {
            register::write(control.0);
        }
        FloatModeGuard { before, is_changed, thread: PhantomData }
    }

    /// Calls a function in the mode that the thread had before.
    #[inline]
    pub(crate) fn outside<R>(&self, function: impl FnOnce() -> R) -> R {
        let _outside = FloatModeGuard::enter(self.before);
        function()
    }
}

impl Drop for FloatModeGuard {
    #[inline]
    fn drop(&mut self) {
        if self.is_changed {
            register::write(self.before.0);
        }
    }
}

impl fmt::Debug for FloatModeGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FloatModeGuard").field("is_changed", &self.is_changed).finish()
    }
}

// What writes such a register owes an argument, for all that is compiled supposes its usual content. Rust
// and LLVM may compute with floats beforehand, move arithmetic on them, or leave it out, as if subnormal
// numbers were kept. What that can change is which number a computation gives where a subnormal one takes
// part: a value of its type either way. No address, length or branch on which the soundness of unsafe code
// rests depends on such a number, in this crate or in those that it calls. And the arithmetic that is meant
// lies behind calls of generated code or of trait objects, which are made between the two writes: these are
// `asm!` blocks that may access memory, so no call moves past them. All but the bits of the mode (rounding,
// masks of exceptions) stays as it is, and is what compiled code supposes.

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod register {
    use std::arch::asm;

    /// What MXCSR holds.
    pub(super) type Bits = u32;
    /// The bits FTZ (results) and DAZ (operands).
    pub(super) const FLUSH: Bits = 1 << 15 | 1 << 6;

    #[inline]
    pub(super) fn read() -> Bits {
        let mut bits: Bits = 0;
        // SAFETY: every x86-64 has the instruction, which writes four bytes to the place given: those of
        // `bits`, which nothing else refers to.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut bits, options(nostack, preserves_flags)) };
        bits
    }

    #[inline]
    pub(super) fn write(bits: Bits) {
        // (The flags that this may change are in MXCSR as well, so they are not said to be preserved.)
        // SAFETY: every x86-64 has the instruction, which reads four bytes from the place given. They were
        // read from the register, and differ from what it held at most in FTZ, DAZ (which every x86-64 that
        // still runs Linux has) and flags, so it is no reserved bit that is set. What follows from the mode
        // is argued above.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const bits, options(nostack)) };
    }
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
mod register {
    use std::arch::asm;

    /// What FPCR holds.
    pub(super) type Bits = u64;
    /// The bit FZ, of `f32` and `f64`; `f16` has one of its own.
    pub(super) const FLUSH: Bits = 1 << 24;

    #[inline]
    pub(super) fn read() -> Bits {
        let bits: Bits;
        // SAFETY: every AArch64 processor has the register, which may be read at any level of privilege.
        unsafe { asm!("mrs {}, fpcr", out(reg) bits, options(nostack, preserves_flags)) };
        bits
    }

    #[inline]
    pub(super) fn write(bits: Bits) {
        // SAFETY: every AArch64 processor has the register, which may be written at any level of privilege.
        // The bits were read from it, and differ from what it held at most in FZ. What follows from the
        // mode is argued above.
        unsafe { asm!("msr fpcr, {}", in(reg) bits, options(nostack, preserves_flags)) };
    }
}

#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod register {
    /// Nothing is held.
    pub(super) type Bits = u32;
    /// There is no bit.
    pub(super) const FLUSH: Bits = 0;

    pub(super) fn read() -> Bits {
        0
    }

    pub(super) fn write(_: Bits) {}
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Mutex;

    use super::*;
    use crate::Pool;

    /// Whether this thread keeps subnormal results and operands.
    fn keeps() -> [bool; 2] {
        let least = black_box(f32::MIN_POSITIVE);
        // Products are used up here, so that the compiler cannot put them off to another mode.
        let result = black_box(least * black_box(0.5)).to_bits() != 0;
        // Half of the least normal number, doubled.
        let doubled = black_box(black_box(f32::from_bits(0x0040_0000)) * black_box(2.0));
        [result, doubled != 0.0]
    }

    #[test]
    fn modes_are_entered_and_left() {
        assert_eq!(keeps(), [true; 2]);
        let flush = FloatMode::FlushToZero.enter();
        assert_eq!(keeps(), [!FloatMode::CAN_FLUSH; 2]);
        assert_eq!(flush.outside(keeps), [true; 2]);
        assert_eq!(keeps(), [!FloatMode::CAN_FLUSH; 2]);
        let keep = FloatMode::Ieee.enter();
        assert_eq!(keeps(), [true; 2]);
        drop(keep);
        assert_eq!(keeps(), [!FloatMode::CAN_FLUSH; 2]);
        drop(flush);
        assert_eq!(keeps(), [true; 2]);
    }

    #[test]
    fn a_panic_leaves_the_mode() {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let _flush = FloatMode::FlushToZero.enter();
            std::panic::resume_unwind(Box::new("a panic"));
        }));
        assert!(outcome.is_err());
        assert_eq!(keeps(), [true; 2]);
    }

    /// Workers are started in one mode and work in another: new threads inherit their starter's.
    #[test]
    fn helpers_have_their_callers_mode() {
        let pool = Pool::new(3);
        for mode in [FloatMode::FlushToZero, FloatMode::Ieee, FloatMode::FlushToZero] {
            let _mode = mode.enter();
            let (expected, found) = (keeps(), Mutex::new(Vec::new()));
            pool.threads(3).for_each(100, &|_| {
                std::thread::yield_now();
                found.lock().unwrap().push(keeps());
            });
            assert_eq!(found.into_inner().unwrap(), vec![expected; 100]);
        }
    }
}
