//! Calls of the user's functions across the C ABI, `void target(void* out, void** in)`.

use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

/// 64 bytes at an address divisible by 64: the alignment XLA promises its custom calls.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// Bytes that begin at an address divisible by 64.
pub struct Bytes {
    lines: Vec<Line>,
    len: usize,
}

impl Bytes {
    /// Zeros.
    pub fn zeroed(len: usize) -> Self {
        Bytes { lines: vec![Line([0; 64]); len.div_ceil(64)], len }
    }

    /// A copy of `bytes`.
    pub fn copy_of(bytes: &[u8]) -> Self {
        let mut copy = Self::zeroed(bytes.len());
        for (line, chunk) in copy.lines.iter_mut().zip(bytes.chunks(64)) {
            line.0[..chunk.len()].copy_from_slice(chunk);
        }
        copy
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: `Line` is 64 initialised bytes without padding, and `lines` holds at least `len`
        // bytes (`zeroed` is the only constructor), contiguous in one allocation.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

/// The memory of a value: an array's bytes, or for a tuple a table of pointers to its elements'.
pub enum Tree {
    /// An array.
    Array(Bytes),
    /// A tuple.
    Tuple(Vec<Tree>),
}

impl Tree {
    /// How many bytes an array has; `None` of a tuple. (Of a token, an array of none stands here.)
    pub fn array_bytes(&self) -> Option<usize> {
        match self {
            Tree::Array(bytes) => Some(bytes.len),
            Tree::Tuple(_) => None,
        }
    }

    /// A pointer to the value as C sees it: to the bytes of an array, or to a table of the
    /// pointers of a tuple's elements. Tables are kept in `tables`, whose heap blocks stay where
    /// they are when it grows.
    fn pointer(&mut self, tables: &mut Vec<Box<[*mut c_void]>>) -> *mut c_void {
        match self {
            Tree::Array(bytes) => bytes.lines.as_mut_ptr().cast(),
            Tree::Tuple(elements) => {
                let table: Box<[_]> = elements.iter_mut().map(|e| e.pointer(tables)).collect();
                tables.push(table);
                let last = tables.len() - 1;
                tables[last].as_mut_ptr().cast()
            }
        }
    }
}

/// A C function with the classic custom-call signature.
type Target = unsafe extern "C" fn(out: *mut c_void, ins: *mut *mut c_void);

/// Whether a function takes these operands, and this result to be written.
type Accepts = dyn Fn(&[Tree], &Tree) -> bool + Send + Sync;

/// A C function that custom calls may name.
#[derive(Clone)]
pub struct CFunction {
    target: Target,
    accepts: Arc<Accepts>,
}

/// The error that a C function does not take such operands, or such a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAccepted;

impl fmt::Display for NotAccepted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the function does not take operands and a result of these sizes")
    }
}

impl std::error::Error for NotAccepted {}

impl CFunction {
    /// Wraps a function that takes the operands and the result that `accepts` says it does.
    ///
    /// The function is not told sizes, which a program may state as it likes; so it is called only
    /// where `accepts` gives true. Let that compare the lengths of arrays
    /// ([`Tree::array_bytes`]) with those that the function reads and writes.
    ///
    /// # Safety
    /// Called with operands and a result that `accepts` gives true for, the function must read no more
    /// than the operands, write no more than the result, keep no pointer, be callable from any thread,
    /// and return.
    pub unsafe fn new(
        function: unsafe extern "C" fn(out: *mut c_void, ins: *mut *mut c_void),
        accepts: impl Fn(&[Tree], &Tree) -> bool + Send + Sync + 'static,
    ) -> Self {
        CFunction { target: function, accepts: Arc::new(accepts) }
    }

    /// Calls it: it reads `operands` and writes `result`. Errors: it does not take them.
    pub fn call(&self, operands: &mut [Tree], result: &mut Tree) -> Result<(), NotAccepted> {
        if !(self.accepts)(operands, result) {
            return Err(NotAccepted);
        }
        let mut tables = Vec::new();
        let mut ins: Vec<*mut c_void> =
            operands.iter_mut().map(|operand| operand.pointer(&mut tables)).collect();
        let out = result.pointer(&mut tables);
        // SAFETY: `out` and `ins` point to memory of `result` and `operands`, borrowed mutably for the
        // call, by way of `tables`, which live until it returns; that the function stays within what
        // is laid out there, which `accepts` has seen, was promised to `CFunction::new`.
        unsafe { (self.target)(out, ins.as_mut_ptr()) }
        drop(tables);
        Ok(())
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

    #[test]
    fn passes_arrays_and_tuples_as_pointers() {
        let floats = |values: &[f32]| {
            let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_ne_bytes()).collect();
            Tree::Array(Bytes::copy_of(&bytes))
        };
        let pair = Tree::Tuple(vec![floats(&[]), floats(&[10.0])]);
        let mut operands = [floats(&[1.0, 2.0]), pair];
        let mut result =
            Tree::Tuple(vec![Tree::Array(Bytes::zeroed(4)), Tree::Array(Bytes::zeroed(4))]);
        let accepts = |operands: &[Tree], result: &Tree| {
            let has = |tree: &Tree, bytes| tree.array_bytes() == Some(bytes);
            let pair = |tree: &Tree, bytes: [usize; 2]| match tree {
                Tree::Tuple(parts) => {
                    parts.len() == 2
                        && parts.iter().zip(bytes).all(|(tree, bytes)| has(tree, bytes))
                }
                Tree::Array(_) => false,
            };
            operands.len() == 2
                && has(&operands[0], 8)
                && pair(&operands[1], [0, 4])
                && pair(result, [4, 4])
        };
        // SAFETY: `sample` stays within memory laid out as `accepts` wants it.
        let function = unsafe { CFunction::new(sample, accepts) };
        assert_eq!(function.call(&mut operands[..1], &mut result), Err(NotAccepted));
        assert_eq!(function.call(&mut operands, &mut Tree::Tuple(vec![])), Err(NotAccepted));
        assert_eq!(function.call(&mut operands, &mut result), Ok(()));
        let Tree::Tuple(parts) = result else { panic!("a tuple") };
        let read = |tree: &Tree| match tree {
            Tree::Array(bytes) => f32::from_ne_bytes(bytes.as_slice().try_into().unwrap()),
            Tree::Tuple(_) => panic!("an array"),
        };
        assert_eq!([read(&parts[0]), read(&parts[1])], [11.0, 2.0]);
    }

    #[test]
    fn bytes_are_aligned() {
        for len in [0, 1, 64, 65] {
            let bytes = Bytes::copy_of(&vec![7; len]);
            assert_eq!(bytes.as_slice().as_ptr() as usize % 64, 0);
            assert_eq!(bytes.as_slice(), vec![7; len]);
        }
    }
}
