//! Calls of the user's functions across the C ABI.

use std::ffi::{c_char, c_void};
use std::fmt;
use std::sync::Arc;

/// What the address of memory that a C function gets is divisible by.
const ALIGN: usize = 16;

/// Sixteen bytes at an address divisible by as many.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Line([u8; ALIGN]);

/// Bytes that begin at an address divisible by [`ALIGN`].
struct Aligned {
    lines: Vec<Line>,
    len: usize,
}

impl Aligned {
    fn copy_of(bytes: &[u8]) -> Self {
        let mut lines = vec![Line([0; ALIGN]); bytes.len().div_ceil(ALIGN)];
        for (line, chunk) in lines.iter_mut().zip(bytes.chunks(ALIGN)) {
            line.0[..chunk.len()].copy_from_slice(chunk);
        }
        Aligned { lines, len: bytes.len() }
    }

    fn copy_to(&self, bytes: &mut [u8]) {
        debug_assert_eq!(bytes.len(), self.len, "the bytes that were copied");
        for (line, chunk) in self.lines.iter().zip(bytes.chunks_mut(ALIGN)) {
            chunk.copy_from_slice(&line.0[..chunk.len()]);
        }
    }
}

fn is_aligned(bytes: &[u8]) -> bool {
    bytes.as_ptr().addr().is_multiple_of(ALIGN)
}

/// How the memory of a value is laid out: an array's bytes, or for a tuple a table of pointers to its
/// elements'.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tree {
    /// An array of this many bytes; a token is an array of none.
    Array(usize),
    /// A tuple.
    Tuple(Vec<Tree>),
}

impl Tree {
    /// How many bytes an array has; `None` of a tuple. (Of a token, an array of none stands here.)
    pub fn array_bytes(&self) -> Option<usize> {
        match self {
            Tree::Array(bytes) => Some(*bytes),
            Tree::Tuple(_) => None,
        }
    }

    /// A pointer to the value as C sees it: to the bytes of an array, the next of `arrays`, or to a
    /// table of the pointers of a tuple's elements. Tables are kept in `tables`, whose heap blocks
    /// stay where they are when it grows. `None` if an array is missing or has another size.
    fn pointer(
        &self,
        arrays: &mut impl Iterator<Item = (*mut c_void, usize)>,
        tables: &mut Vec<Box<[*mut c_void]>>,
    ) -> Option<*mut c_void> {
        match self {
            Tree::Array(bytes) => {
                let (pointer, len) = arrays.next()?;
                (len == *bytes).then_some(pointer)
            }
            Tree::Tuple(elements) => {
                let table: Option<Box<[_]>> =
                    elements.iter().map(|element| element.pointer(arrays, tables)).collect();
                tables.push(table?);
                let last = tables.len() - 1;
                Some(tables[last].as_mut_ptr().cast())
            }
        }
    }
}

/// What a C function says of its outcome: success, unless it says otherwise.
#[derive(Debug, Default)]
pub struct CallStatus {
    failure: Option<String>,
}

impl CallStatus {
    /// The call has failed, for this reason.
    pub fn set_failure(&mut self, message: impl Into<String>) {
        self.failure = Some(message.into());
    }

    /// The call has not failed after all.
    pub fn set_success(&mut self) {
        self.failure = None;
    }
}

/// [`CallStatus::set_failure`] for functions that are not written in Rust:
/// `void helio_custom_call_status_set_failure(void* status, const char* message, size_t length)`.
///
/// # Safety
/// `status` is the one that the function was called with, and the call is not over; `message` points
/// to `length` bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn helio_custom_call_status_set_failure(
    status: *mut CallStatus,
    message: *const c_char,
    length: usize,
) {
    let message: &[u8] = if message.is_null() {
        &[]
    } else {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(message.cast(), length) }
    };
    // SAFETY: the caller's promise; nothing else refers to the status during the call.
    unsafe { &mut *status }.set_failure(String::from_utf8_lossy(message));
}

/// A C function by what it is called with.
#[derive(Clone, Copy, Debug)]
enum Target {
    /// `API_VERSION_ORIGINAL`.
    Plain(unsafe extern "C" fn(out: *mut c_void, ins: *mut *mut c_void)),
    /// With the opaque string of the call.
    Opaque(
        // SAFETY: `CFunction::with_opaque` states what the function relies on and what it promises.
        unsafe extern "C" fn(
            out: *mut c_void,
            ins: *mut *mut c_void,
            opaque: *const c_char,
            opaque_len: usize,
        ),
    ),
    /// `API_VERSION_STATUS_RETURNING_UNIFIED`.
    Status(
        // SAFETY: `CFunction::with_status` states what the function relies on and what it promises.
        unsafe extern "C" fn(
            out: *mut c_void,
            ins: *mut *const c_void,
            opaque: *const c_char,
            opaque_len: usize,
            status: *mut CallStatus,
        ),
    ),
}

/// Whether a function takes these operands, and this result to be written.
type Accepts = dyn Fn(&[Tree], &Tree) -> bool + Send + Sync;

/// A C function that custom calls may name.
///
/// It is not told sizes, which a program may state as it likes; so it is called only where a condition
/// gives true that is registered with it. Let that compare the lengths of arrays
/// ([`Tree::array_bytes`]) with those that the function reads and writes.
#[derive(Clone)]
pub struct CFunction {
    target: Target,
    accepts: Arc<Accepts>,
    /// Whether an operand may lie where a result does.
    shares: bool,
}

/// What a C function is called with.
pub struct CArguments<'a, 'b> {
    /// How the operands are laid out.
    pub operand_trees: &'a [Tree],
    /// How the result is laid out.
    pub result_tree: &'a Tree,
    /// The arrays of the operands, tuples taken apart.
    pub operands: &'a [COperand<'b>],
    /// The arrays of the result, tuples taken apart.
    pub results: &'a mut [&'b mut [u8]],
    /// The string that the call has for the function.
    pub opaque: &'a str,
}

/// An array of the operands of a C function.
#[derive(Clone, Copy, Debug)]
pub enum COperand<'b> {
    /// Its bytes.
    Bytes(&'b [u8]),
    /// It is what the array of this number, of the result, holds when the call begins.
    Result(usize),
}

/// Why a C function has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CFailure {
    /// It does not take operands like these, or such a result.
    NotAccepted,
    /// It has said so.
    Failed(String),
}

impl fmt::Display for CFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CFailure::NotAccepted => {
                f.write_str("the function does not take operands and a result of these sizes")
            }
            CFailure::Failed(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for CFailure {}

impl CFunction {
    /// A function of `API_VERSION_ORIGINAL`.
    ///
    /// # Safety
    /// Called with operands and a result that `accepts` gives true for, the function must read no more
    /// than the operands, write no more than the result, keep no pointer, be callable from any thread,
    /// and return.
    pub unsafe fn new(
        function: unsafe extern "C" fn(out: *mut c_void, ins: *mut *mut c_void),
        accepts: impl Fn(&[Tree], &Tree) -> bool + Send + Sync + 'static,
    ) -> Self {
        CFunction::of(Target::Plain(function), accepts)
    }

    /// A function that gets the call's opaque string, too.
    ///
    /// # Safety
    /// As for [`CFunction::new`]; of the string it reads `opaque_len` bytes at most.
    pub unsafe fn with_opaque(
        function: unsafe extern "C" fn(
            out: *mut c_void,
            ins: *mut *mut c_void,
            opaque: *const c_char,
            opaque_len: usize,
        ),
        accepts: impl Fn(&[Tree], &Tree) -> bool + Send + Sync + 'static,
    ) -> Self {
        CFunction::of(Target::Opaque(function), accepts)
    }

    /// A function of `API_VERSION_STATUS_RETURNING_UNIFIED`, whose status is a [`CallStatus`].
    ///
    /// # Safety
    /// As for [`CFunction::with_opaque`]; the status is used during the call alone.
    pub unsafe fn with_status(
        function: unsafe extern "C" fn(
            out: *mut c_void,
            ins: *mut *const c_void,
            opaque: *const c_char,
            opaque_len: usize,
            status: *mut CallStatus,
        ),
        accepts: impl Fn(&[Tree], &Tree) -> bool + Send + Sync + 'static,
    ) -> Self {
        CFunction::of(Target::Status(function), accepts)
    }

    fn of(
        target: Target,
        accepts: impl Fn(&[Tree], &Tree) -> bool + Send + Sync + 'static,
    ) -> Self {
        CFunction { target, accepts: Arc::new(accepts), shares: false }
    }

    /// The same function, which gets an operand that shares memory with a result
    /// (`output_to_operand_aliasing`) at the result's own address, to be changed in place. Without
    /// this, such an operand is copied, so that nothing that is read overlaps what is written.
    ///
    /// # Safety
    /// The function keeps its promises also where an operand and a result of the same size are one
    /// memory.
    pub unsafe fn sharing(mut self) -> Self {
        self.shares = true;
        self
    }

    /// Calls it: it reads the operands and writes the result, where they lie; those at addresses
    /// not divisible by 16 are copied. Errors: it does not take them, or reports a failure.
    pub fn call(&self, arguments: CArguments<'_, '_>) -> Result<(), CFailure> {
        let CArguments { operand_trees, result_tree, operands, results, opaque } = arguments;
        let is_there = |operand: &COperand<'_>| match *operand {
            COperand::Bytes(_) => true,
            COperand::Result(n) => n < results.len(),
        };
        if !(self.accepts)(operand_trees, result_tree) || !operands.iter().all(is_there) {
            return Err(CFailure::NotAccepted);
        }
        let copy = |operand: &COperand<'_>| match *operand {
            COperand::Bytes(bytes) => (!is_aligned(bytes)).then(|| Aligned::copy_of(bytes)),
            COperand::Result(n) => (!self.shares).then(|| Aligned::copy_of(results[n])),
        };
        let copied: Vec<Option<Aligned>> = operands.iter().map(copy).collect();
        let mut out_copied: Vec<Option<Aligned>> =
            results.iter().map(|b| (!is_aligned(b)).then(|| Aligned::copy_of(b))).collect();
        let mut tables = Vec::new();
        let outs = out_copied.iter_mut().zip(&mut *results).map(|(copy, bytes)| {
            let len = bytes.len();
            let pointer: *mut u8 = match copy {
                Some(copy) => copy.lines.as_mut_ptr().cast(),
                None => bytes.as_mut_ptr(),
            };
            (pointer.cast(), len)
        });
        let outs: Vec<(*mut c_void, usize)> = outs.collect();
        let mut arrays = copied.iter().zip(operands).map(|(copy, operand)| {
            let of = |bytes: *const u8, len: usize| (bytes.cast_mut().cast(), len);
            match (copy, *operand) {
                (Some(copy), _) => of(copy.lines.as_ptr().cast(), copy.len),
                (None, COperand::Bytes(bytes)) => of(bytes.as_ptr(), bytes.len()),
                (None, COperand::Result(n)) => outs[n],
            }
        });
        let ins: Option<Vec<*mut c_void>> =
            operand_trees.iter().map(|tree| tree.pointer(&mut arrays, &mut tables)).collect();
        let out = result_tree.pointer(&mut outs.iter().copied(), &mut tables);
        let (Some(mut ins), Some(out)) = (ins, out) else { return Err(CFailure::NotAccepted) };
        let (text, len): (*const c_char, _) = (opaque.as_ptr().cast(), opaque.len());
        let mut status = CallStatus::default();
        // SAFETY: `ins` and `out` point, by way of `tables`, which live until the call returns, to
        // the bytes of `operands`, which are only read, and of `results`, borrowed mutably, or to
        // their copies; each has the size that its tree says. They overlap only where `sharing` has
        // promised that they may. That the function stays within what is laid out there, which
        // `accepts` has seen, was promised when it was wrapped.
        unsafe {
            match self.target {
                Target::Plain(function) => function(out, ins.as_mut_ptr()),
                Target::Opaque(function) => function(out, ins.as_mut_ptr(), text, len),
                Target::Status(function) => {
                    function(out, ins.as_mut_ptr().cast(), text, len, &raw mut status);
                }
            }
        }
        drop(tables);
        for (copy, to) in out_copied.iter().zip(results) {
            if let Some(copy) = copy {
                copy.copy_to(to);
            }
        }
        status.failure.map_or(Ok(()), |message| Err(CFailure::Failed(message)))
    }
}

impl fmt::Debug for CFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CFunction").field(&self.target).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// out = (ins[0][0] + ins[1].1[0], ins[0][1])
    ///
    /// # Safety
    /// `ins` has an array of two numbers, and a pair of nothing and a number; `out` a pair of numbers.
    unsafe extern "C" fn sample(out: *mut c_void, ins: *mut *mut c_void) {
        // SAFETY: the caller has laid out the memory that is read and written here.
        unsafe {
            let x: *const f32 = (*ins).cast();
            let pair: *const *const f32 = (*ins.add(1)).cast();
            let outs: *const *mut f32 = out.cast();
            **outs = *x + **pair.add(1);
            **outs.add(1) = *x.add(1);
        }
    }

    /// Fails with its opaque string, unless that is empty.
    ///
    /// # Safety
    /// The string has its length, the status is the call's.
    unsafe extern "C" fn fails(
        _: *mut c_void,
        _: *mut *const c_void,
        opaque: *const c_char,
        opaque_len: usize,
        status: *mut CallStatus,
    ) {
        if opaque_len > 0 {
            // SAFETY: the caller's promise.
            unsafe { helio_custom_call_status_set_failure(status, opaque, opaque_len) }
        }
    }

    fn bytes(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|v| v.to_ne_bytes()).collect()
    }

    #[test]
    fn passes_arrays_and_tuples_as_pointers() {
        let pair = |a, b| Tree::Tuple(vec![Tree::Array(a), Tree::Array(b)]);
        let trees = [Tree::Array(8), pair(0, 4)];
        let accepted = (trees.clone(), pair(4, 4));
        let accepts =
            move |operands: &[Tree], result: &Tree| operands == accepted.0 && *result == accepted.1;
        // SAFETY: `sample` stays within memory laid out as `accepts` wants it.
        let function = unsafe { CFunction::new(sample, accepts) };
        let (x, y) = (bytes(&[1.0, 2.0]), bytes(&[10.0]));
        let call = |operand_trees: &[Tree], result_tree: &Tree, shift: usize| {
            // At any address.
            let mut memory = [Line([0; ALIGN]); 2];
            let memory: &mut [u8] = &mut {
                let mut bytes = Vec::new();
                memory.iter_mut().for_each(|line| bytes.extend_from_slice(&line.0));
                bytes
            };
            let (_, memory) = memory.split_at_mut(shift);
            let (a, rest) = memory.split_at_mut(4);
            let b = &mut rest[..4];
            let operands: [&[u8]; 3] = [&x, &[], &y];
            let operands = &operands.map(COperand::Bytes)[..];
            let results: &mut [&mut [u8]] = &mut [&mut *a, &mut *b];
            let opaque = "";
            let arguments = CArguments { operand_trees, result_tree, operands, results, opaque };
            function.call(arguments)?;
            Ok([a, b].map(|part| f32::from_ne_bytes((&*part).try_into().unwrap())))
        };
        assert_eq!(call(&trees[..1], &pair(4, 4), 0), Err(CFailure::NotAccepted));
        assert_eq!(call(&trees, &pair(4, 0), 0), Err(CFailure::NotAccepted));
        for shift in 0..8 {
            assert_eq!(call(&trees, &pair(4, 4), shift), Ok([11.0, 2.0]));
        }
    }

    /// out[0] = in[0] + 1, and whether the two are one.
    ///
    /// # Safety
    /// `ins` has an array of a number, and `out` is a pair of numbers.
    unsafe extern "C" fn next(out: *mut c_void, ins: *mut *mut c_void) {
        // SAFETY: the caller has laid out the memory that is read and written here.
        unsafe {
            let (x, outs): (*const f32, *const *mut f32) = ((*ins).cast(), out.cast());
            **outs.add(1) = f32::from(u8::from(x == (*outs).cast_const()));
            **outs = *x + 1.0;
        }
    }

    #[test]
    fn operands_lie_where_results_do_if_the_function_may_share_them() {
        let accepts = |operands: &[Tree], result: &Tree| {
            operands == [Tree::Array(4)]
                && *result == Tree::Tuple(vec![Tree::Array(4), Tree::Array(4)])
        };
        // SAFETY: `next` stays within memory laid out as `accepts` wants it.
        let apart = unsafe { CFunction::new(next, accepts) };
        // SAFETY: `next` reads its operand before it writes the result.
        let shared = unsafe { apart.clone().sharing() };
        for (function, is_shared) in [(apart, 0.0), (shared, 1.0)] {
            let (mut a, mut b) = (Aligned::copy_of(&bytes(&[5.0])), Aligned::copy_of(&[0; 4]));
            let [a, b] = [&mut a, &mut b].map(|array| &mut array.lines[0].0[..4]);
            let call = |n, results: &mut [&mut [u8]]| {
                function.call(CArguments {
                    operand_trees: &[Tree::Array(4)],
                    result_tree: &Tree::Tuple(vec![Tree::Array(4), Tree::Array(4)]),
                    operands: &[COperand::Result(n)],
                    results,
                    opaque: "",
                })
            };
            assert_eq!(call(2, &mut [&mut *a, &mut *b]), Err(CFailure::NotAccepted));
            assert_eq!(call(0, &mut [&mut *a, &mut *b]), Ok(()));
            assert_eq!([&*a, &*b], [bytes(&[6.0]), bytes(&[is_shared])]);
        }
    }

    #[test]
    fn functions_report_failures() {
        // SAFETY: `fails` touches neither operands nor result.
        let function = unsafe { CFunction::with_status(fails, |_, _| true) };
        let call = |opaque| {
            let (operand_trees, result_tree) = (&[][..], &Tree::Array(0));
            let (operands, results): (&[COperand<'_>], &mut [&mut [u8]]) = (&[], &mut [&mut []]);
            function.call(CArguments { operand_trees, result_tree, operands, results, opaque })
        };
        assert_eq!(call(""), Ok(()));
        assert_eq!(call("as planned"), Err(CFailure::Failed("as planned".to_owned())));
    }
}
