//! The tile machine's memory: the buffers of a call with checked access, and the conversion of
//! elements in them to lanes and back.

use std::ops::Range;

use half::{bf16, f16};
use helio_ir::{Error, Result};

use crate::kernel::{Buf, Kernel, Mem};

/// A buffer that the caller passes.
pub enum FunctionArg<'a> {
    /// Read only.
    Read(&'a [u8]),
    /// Written, and maybe read.
    Write(&'a mut [u8]),
    /// The buffer of the argument with this number: it is passed twice, to be updated in place.
    Same(usize),
}

/// All memory that a call sees.
pub(super) struct TileMemory<'k, 'a, 'b> {
    kernel: &'k Kernel,
    args: &'b mut [FunctionArg<'a>],
    scratch: Vec<u8>,
}

impl<'k, 'a, 'b> TileMemory<'k, 'a, 'b> {
    pub(super) fn new(kernel: &'k Kernel, args: &'b mut [FunctionArg<'a>]) -> Result<Self> {
        if args.len() != kernel.params.len() {
            let (found, expected) = (args.len(), kernel.params.len());
            return Err(Error::internal(format!("{found} buffers for {expected} parameters")));
        }
        // Scratch is undefined at entry; this makes a kernel that reads it so conspicuous.
        let mut memory = TileMemory { kernel, args, scratch: vec![0xa5; kernel.scratch_bytes] };
        for (n, param) in kernel.params.iter().enumerate() {
            let buf = Buf::Param(n as u32);
            let found =
                if param.write { memory.writable(buf)?.len() } else { memory.all(buf)?.len() };
            if found < param.bytes {
                let expected = param.bytes;
                return Err(Error::internal(format!("buffer {n}: {found} of {expected} bytes")));
            }
        }
        Ok(memory)
    }

    fn all(&self, buf: Buf) -> Result<&[u8]> {
        let n = match buf {
            Buf::Scratch => return Ok(&self.scratch),
            Buf::Param(n) => n as usize,
        };
        let named = match &self.args[n] {
            FunctionArg::Same(other) => self.args.get(*other),
            arg => Some(arg),
        };
        match named {
            Some(FunctionArg::Read(bytes)) => Ok(bytes),
            Some(FunctionArg::Write(bytes)) => Ok(bytes),
            _ => Err(Error::internal(format!("buffer {n} is that of no other"))),
        }
    }

    fn writable(&mut self, buf: Buf) -> Result<&mut [u8]> {
        let n = match buf {
            Buf::Scratch => return Ok(&mut self.scratch),
            Buf::Param(n) => n as usize,
        };
        let at = if let FunctionArg::Same(other) = self.args[n] { other } else { n };
        match self.args.get_mut(at) {
            Some(FunctionArg::Write(bytes)) => Ok(bytes),
            _ => Err(Error::internal(format!("buffer {n} may not be written"))),
        }
    }

    fn size(&self, buf: Buf) -> usize {
        match buf {
            Buf::Scratch => self.kernel.scratch_bytes,
            Buf::Param(n) => self.kernel.params[n as usize].bytes,
        }
    }

    /// The bytes `at..at + bytes`, if the buffer has them.
    fn range(&self, buf: Buf, at: i64, bytes: usize) -> Result<Range<usize>> {
        let size = self.size(buf);
        let start = usize::try_from(at).ok().filter(|&at| at <= size && bytes <= size - at);
        let start = start.ok_or_else(|| {
            Error::internal(format!("{bytes} bytes at {at} of {buf:?}, which has {size}"))
        })?;
        Ok(start..start + bytes)
    }

    /// The bytes `at..at + bytes` of a buffer.
    pub(super) fn read(&self, buf: Buf, at: i64, bytes: usize) -> Result<&[u8]> {
        let range = self.range(buf, at, bytes)?;
        Ok(&self.all(buf)?[range])
    }

    /// The bytes `at..at + bytes` of a buffer, to be overwritten.
    pub(super) fn write(&mut self, buf: Buf, at: i64, bytes: usize) -> Result<&mut [u8]> {
        let range = self.range(buf, at, bytes)?;
        Ok(&mut self.writable(buf)?[range])
    }
}

impl Mem {
    /// The lane that an element in memory becomes, in the low bits for 32-bit lanes.
    ///
    /// # Panics
    /// If `bytes` is not an element.
    pub(super) fn decode(self, bytes: &[u8]) -> u64 {
        let two = || u16::from_ne_bytes([bytes[0], bytes[1]]);
        let four = || u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        match self {
            Mem::U8 => bytes[0].into(),
            Mem::I8 => (bytes[0] as i8 as u32).into(),
            Mem::U16 => two().into(),
            Mem::I16 => (two() as i16 as u32).into(),
            Mem::F16 => f16::from_bits(two()).to_f32().to_bits().into(),
            Mem::BF16 => u64::from(two()) << 16,
            Mem::I32 | Mem::F32 => four().into(),
            Mem::I64 | Mem::F64 => u64::from_ne_bytes(bytes.try_into().expect("8 bytes")),
        }
    }

    /// Writes a lane as an element.
    ///
    /// # Panics
    /// If `bytes` has not the size of an element.
    pub(super) fn encode(self, lane: u64, bytes: &mut [u8]) {
        let float = f32::from_bits(lane as u32);
        match self {
            Mem::U8 | Mem::I8 => bytes[0] = lane as u8,
            Mem::U16 | Mem::I16 => bytes.copy_from_slice(&(lane as u16).to_ne_bytes()),
            Mem::F16 => bytes.copy_from_slice(&f16::from_f32(float).to_bits().to_ne_bytes()),
            Mem::BF16 => bytes.copy_from_slice(&bf16::from_f32(float).to_bits().to_ne_bytes()),
            Mem::I32 | Mem::F32 => bytes.copy_from_slice(&(lane as u32).to_ne_bytes()),
            Mem::I64 | Mem::F64 => bytes.copy_from_slice(&lane.to_ne_bytes()),
        }
    }
}
