//! Calls of the user's functions across the C ABI, `void target(void* out, void** in)`.

use std::ffi::c_void;

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
#[derive(Clone, Copy, Debug)]
pub struct CFunction(unsafe extern "C" fn(out: *mut c_void, ins: *mut *mut c_void));

impl CFunction {
    /// Wraps a function.
    ///
    /// # Safety
    /// Called with memory for the result and the operands of the custom calls that name it, the
    /// function must read no more than the operands, write no more than the result, keep no
    /// pointer, be callable from any thread, and return.
    pub unsafe fn new(
        function: unsafe extern "C" fn(out: *mut c_void, ins: *mut *mut c_void),
    ) -> Self {
        CFunction(function)
    }

    /// Calls it: it reads `operands` and writes `result`.
    pub fn call(&self, operands: &mut [Tree], result: &mut Tree) {
        let mut tables = Vec::new();
        let mut ins: Vec<*mut c_void> =
            operands.iter_mut().map(|operand| operand.pointer(&mut tables)).collect();
        let out = result.pointer(&mut tables);
        // SAFETY: `out` and `ins` point to memory of `result` and `operands`, borrowed mutably for the
        // call, by way of `tables`, which live until it returns; that the function stays within what
        // the caller laid out there was promised to `CFunction::new`.
        unsafe { (self.0)(out, ins.as_mut_ptr()) }
        drop(tables);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// out = (ins[0][0] + ins[1].1[0], ins[0][1])
    unsafe extern "C" fn sample(out: *mut c_void, ins: *mut *mut c_void) {
        // SAFETY: the test below lays out the memory that is read and written here.
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
        // SAFETY: `sample` stays within the memory laid out here.
        unsafe { CFunction::new(sample) }.call(&mut operands, &mut result);
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
