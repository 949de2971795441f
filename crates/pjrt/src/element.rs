//! Element types by their numbers in the API, and shapes.

use helio::ir::ArrayShape;
use helio::{ElementType, Error, Result};

use crate::abi::*;
use crate::raw::In;

/// The API's number of each element type.
const NUMBERS: &[(ElementType, u32)] = &[
    (ElementType::Pred, PJRT_Buffer_Type_PRED),
    (ElementType::S8, PJRT_Buffer_Type_S8),
    (ElementType::S16, PJRT_Buffer_Type_S16),
    (ElementType::S32, PJRT_Buffer_Type_S32),
    (ElementType::S64, PJRT_Buffer_Type_S64),
    (ElementType::U8, PJRT_Buffer_Type_U8),
    (ElementType::U16, PJRT_Buffer_Type_U16),
    (ElementType::U32, PJRT_Buffer_Type_U32),
    (ElementType::U64, PJRT_Buffer_Type_U64),
    (ElementType::F16, PJRT_Buffer_Type_F16),
    (ElementType::F32, PJRT_Buffer_Type_F32),
    (ElementType::F64, PJRT_Buffer_Type_F64),
    (ElementType::BF16, PJRT_Buffer_Type_BF16),
    (ElementType::C64, PJRT_Buffer_Type_C64),
    (ElementType::C128, PJRT_Buffer_Type_C128),
    (ElementType::F8E5M2, PJRT_Buffer_Type_F8E5M2),
    (ElementType::F8E4M3FN, PJRT_Buffer_Type_F8E4M3FN),
    (ElementType::F8E4M3B11FNUZ, PJRT_Buffer_Type_F8E4M3B11FNUZ),
    (ElementType::F8E5M2FNUZ, PJRT_Buffer_Type_F8E5M2FNUZ),
    (ElementType::F8E4M3FNUZ, PJRT_Buffer_Type_F8E4M3FNUZ),
    (ElementType::S4, PJRT_Buffer_Type_S4),
    (ElementType::U4, PJRT_Buffer_Type_U4),
    (ElementType::S2, PJRT_Buffer_Type_S2),
    (ElementType::U2, PJRT_Buffer_Type_U2),
    (ElementType::F8E4M3, PJRT_Buffer_Type_F8E4M3),
    (ElementType::F8E3M4, PJRT_Buffer_Type_F8E3M4),
    (ElementType::F8E8M0FNU, PJRT_Buffer_Type_F8E8M0FNU),
    (ElementType::F4E2M1FN, PJRT_Buffer_Type_F4E2M1FN),
];

/// The API's number of an element type.
pub(crate) fn number(element: ElementType) -> u32 {
    let row = NUMBERS.iter().find(|row| row.0 == element);
    row.map_or(PJRT_Buffer_Type_INVALID, |row| row.1)
}

/// The element type of a number. Errors: `Unimplemented` if helio has no such type.
pub(crate) fn element(number: u32) -> Result<ElementType> {
    let row = NUMBERS.iter().find(|row| row.1 == number);
    row.map(|row| row.0).ok_or_else(|| {
        Error::unimplemented(format!(
            "arrays of PJRT_Buffer_Type {number}, which helio does not have"
        ))
    })
}

/// The shape of these elements and sizes. Errors: `InvalidArgument` for negative sizes, and for more
/// bytes than memory can have; as for [`element`].
///
/// # Safety
/// `dims` has `rank` values unless it is null.
pub(crate) unsafe fn shape(ty: u32, dims: In<i64>, rank: usize) -> Result<ArrayShape> {
    // SAFETY: the promise of the caller.
    let dims = unsafe { dims.slice(rank, "dimensions")? };
    let size = |&dim: &i64| {
        usize::try_from(dim).map_err(|_| Error::invalid(format!("a dimension of size {dim}")))
    };
    ArrayShape::new(element(ty)?, dims.iter().map(size).collect::<Result<Vec<_>>>()?)
}

/// Sizes as the API has them.
pub(crate) fn dims(shape: &ArrayShape) -> Vec<i64> {
    shape.dims().iter().map(|&dim| dim as i64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_type_has_its_number() {
        for &each in ElementType::ALL {
            assert_eq!(element(number(each)), Ok(each), "{each:?}");
        }
        assert!(element(PJRT_Buffer_Type_TOKEN).is_err() && element(99).is_err());
    }
}
