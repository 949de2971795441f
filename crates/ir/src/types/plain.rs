//! Elements whose bytes in memory are their values.

use bytemuck::checked::{try_cast_slice, try_cast_slice_mut};
use half::{bf16, f16};
use num_complex::Complex;

use super::{Array, ArrayData, Native};

/// A type whose elements in memory are what [`Array::to_bytes`] gives, on machines whose lowest byte
/// comes first: numbers of 8 bits or more, 8-bit floats aside, and `bool`.
pub trait Plain: Native {
    /// The elements that bytes are. `None` if these begin at an address, or have a length, that
    /// elements cannot have; or are none, as `bool`s other than 0 and 1.
    fn from_bytes(bytes: &[u8]) -> Option<&[Self]>;
    /// The elements that bytes are, to be changed. `None` as for [`Plain::from_bytes`].
    fn from_bytes_mut(bytes: &mut [u8]) -> Option<&mut [Self]>;
}

macro_rules! plain {
    ($($ty:ty),*) => {$(
        impl Plain for $ty {
            fn from_bytes(bytes: &[u8]) -> Option<&[Self]> {
                if cfg!(target_endian = "big") { None } else { try_cast_slice(bytes).ok() }
            }
            fn from_bytes_mut(bytes: &mut [u8]) -> Option<&mut [Self]> {
                if cfg!(target_endian = "big") { None } else { try_cast_slice_mut(bytes).ok() }
            }
        }
    )*};
}

plain!(bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64, Complex<f32>, Complex<f64>);

impl Array {
    /// The elements as [`Array::to_bytes`] gives them, to be changed, where they are kept like this and
    /// any bytes are elements.
    pub fn as_bytes_mut(&mut self) -> Option<&mut [u8]> {
        use ArrayData::{BF16, C64, C128, F16, F32, F64, S8, S16, S32, S64, U8, U16, U32, U64};
        if cfg!(target_endian = "big") {
            return None;
        }
        Some(match self.data_mut() {
            S8(v) => bytemuck::cast_slice_mut(v),
            S16(v) => bytemuck::cast_slice_mut(v),
            S32(v) => bytemuck::cast_slice_mut(v),
            S64(v) => bytemuck::cast_slice_mut(v),
            U8(v) => v,
            U16(v) => bytemuck::cast_slice_mut(v),
            U32(v) => bytemuck::cast_slice_mut(v),
            U64(v) => bytemuck::cast_slice_mut(v),
            F16(v) => bytemuck::cast_slice_mut(v),
            BF16(v) => bytemuck::cast_slice_mut(v),
            F32(v) => bytemuck::cast_slice_mut(v),
            F64(v) => bytemuck::cast_slice_mut(v),
            C64(v) => bytemuck::cast_slice_mut(v),
            C128(v) => bytemuck::cast_slice_mut(v),
            _ => return None,
        })
    }
}
