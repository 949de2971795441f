//! Products of sparse matrices.

use helio_eval::Call;
use helio_ir::types::Plain;
use helio_ir::{ElementType, Error, Result};
use helio_linalg::Complex;

use super::arguments::{operand_shape, result_shape};

/// `values[nnz], row_starts[m+1], columns[nnz], dense[k,n] or dense[k]` → `product[m,n] or product[m]`: a
/// matrix whose rows are stored without their zeros, times one with all elements, by rows.
pub(super) fn csr_times_dense(call: &mut Call<'_>) -> Result<()> {
    let (found, made) = (call.operand_count(), call.result_count());
    if (found, made) != (4, 1) {
        let detail = format!("there must be 4 operands and 1 result, are {found} and {made}");
        return Err(Error::invalid(detail));
    }
    match operand_shape(call, 0)?.element() {
        ElementType::S32 => of_type::<i32>(call),
        ElementType::S64 => of_type::<i64>(call),
        ElementType::F32 => of_type::<f32>(call),
        ElementType::F64 => of_type::<f64>(call),
        ElementType::C64 => of_type::<Complex<f32>>(call),
        ElementType::C128 => of_type::<Complex<f64>>(call),
        other => {
            let detail =
                format!("operand 0 must be of s32, s64, f32, f64, c64 or c128, is {other}");
            Err(Error::invalid(detail))
        }
    }
}

/// Elements that can be multiplied; integers wrap.
trait Number: Plain + Default {
    fn times(self, other: Self) -> Self;
    fn plus(self, other: Self) -> Self;
}

macro_rules! integer {
    ($($ty:ty),*) => {$(
        impl Number for $ty {
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
        }
    )*};
}

integer!(i32, i64);

macro_rules! float {
    ($($ty:ty),*) => {$(
        impl Number for $ty {
            fn times(self, other: Self) -> Self {
                self * other
            }
            fn plus(self, other: Self) -> Self {
                self + other
            }
        }
    )*};
}

float!(f32, f64, Complex<f32>, Complex<f64>);

fn of_type<T: Number>(call: &mut Call<'_>) -> Result<()> {
    let (starts, columns) = (operand_shape(call, 1)?, operand_shape(call, 2)?);
    match (starts.element(), columns.element()) {
        (ElementType::S32, ElementType::S32) => with_indices::<T, i32>(call),
        (ElementType::S64, ElementType::S64) => with_indices::<T, i64>(call),
        (starts, columns) => {
            let detail = format!(
                "operands 1 and 2 must both be of s32 or of s64, are of {starts} and {columns}"
            );
            Err(Error::invalid(detail))
        }
    }
}

fn with_indices<T: Number, I: Plain + Into<i64>>(call: &mut Call<'_>) -> Result<()> {
    let dims = |number| operand_shape(call, number).map(|shape| shape.dims().to_vec());
    let (stored, starts, columns, dense) = (dims(0)?, dims(1)?, dims(2)?, dims(3)?);
    let made = result_shape(call, 0)?.dims().to_vec();
    let is_right = match (&dense[..], &made[..]) {
        ([_], [m]) => starts == [m + 1],
        ([_, n], [m, other]) => starts == [m + 1] && n == other,
        _ => false,
    };
    if !is_right || stored.len() != 1 || stored != columns {
        let shapes: Vec<String> = call.info().operands.iter().map(ToString::to_string).collect();
        let (shapes, result) = (shapes.join(", "), &call.info().result);
        return Err(Error::invalid(format!(
            "operands must be [nnz], [m+1], [nnz] and [k,n] or [k], and the result [m,n] or [m]; \
             found ({shapes}) -> {result}"
        )));
    }
    let (rows, width) = (made[0], dense.get(1).copied().unwrap_or(1));
    let values = call.operand(0)?.as_slice::<T>()?;
    let starts = call.operand(1)?.as_slice::<I>()?;
    let columns = call.operand(2)?.as_slice::<I>()?;
    let right = call.operand(3)?.as_slice::<T>()?;
    let product = call.result_mut(0)?.as_mut_slice::<T>()?;
    product.fill(T::default());
    let at = |index: I, limit: usize, what: &str| {
        let index: i64 = index.into();
        usize::try_from(index).ok().filter(|&index| index <= limit).ok_or_else(|| {
            Error::invalid(format!("{what} must be within 0 and {limit}, is {index}"))
        })
    };
    for row in 0..rows {
        let start = at(starts[row], values.len(), "where a row begins")?;
        let end = at(starts[row + 1], values.len(), "where a row ends")?;
        let to = &mut product[row * width..(row + 1) * width];
        for i in start..end {
            let limit = dense[0].wrapping_sub(1);
            let column = at(columns[i], limit, "the number of a column")?;
            let from = right.get(column * width..).and_then(|from| from.get(..width));
            let from =
                from.ok_or_else(|| Error::invalid("a matrix without columns has elements"))?;
            for (to, &from) in to.iter_mut().zip(from) {
                *to = to.plus(values[i].times(from));
            }
        }
    }
    Ok(())
}
