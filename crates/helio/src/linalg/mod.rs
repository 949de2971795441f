//! Custom calls of linear algebra that every client knows: LAPACK's functions by the names that JAX gives
//! them, and the targets that XLA itself defines.
//!
//! Operands, results and attributes are those of JAX's own handlers (`jaxlib/cpu/lapack_kernels.cc` at
//! jax-v0.10.2). Matrices may lie column by column, as JAX has them, or row by row; the dimensions before
//! their last two count a batch, whose matrices are worked on by all threads of the run.

mod arguments;
mod eigen;
mod factors;
mod solves;
mod sparse;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use helio_eval::Call;
use helio_eval::services::CustomFunction;
use helio_ir::types::Plain;
use helio_ir::{ElementType, Error, Result};
use helio_linalg::{Complex, Lapack};

pub(crate) use arguments::{
    TASK_OPERATIONS, is_by_rows_or_columns, letter_of, operations, transpose,
};

/// The function of a target, if it is one of linear algebra.
pub(crate) fn find(target: &str) -> Option<&'static Arc<CustomFunction>> {
    static FUNCTIONS: LazyLock<HashMap<String, Arc<CustomFunction>>> = LazyLock::new(functions);
    FUNCTIONS.get(target)
}

/// A function that writes the results of a call.
type Function = fn(&mut Call<'_>) -> Result<()>;

/// Element types of matrices.
pub(crate) trait Element: Lapack<Real: Plain> + Plain {}

impl<T: Lapack<Real: Plain> + Plain> Element for T {}

/// Calls the function for the type of the first operand. Errors: there is none for it.
macro_rules! by_type {
    ($call:expr, $($function:ident)::+) => {
        match element_of_first($call)? {
            ElementType::F32 => $($function)::+::<f32>($call),
            ElementType::F64 => $($function)::+::<f64>($call),
            ElementType::C64 => $($function)::+::<Complex<f32>>($call),
            _ => $($function)::+::<Complex<f64>>($call),
        }
    };
}

fn functions() -> HashMap<String, Arc<CustomFunction>> {
    let mut functions: HashMap<String, Arc<CustomFunction>> = HashMap::new();
    let mut put = |name: &str, function: Function| {
        functions.insert(name.to_owned(), Arc::new(function));
    };
    of_type::<f32>("s", &mut put);
    of_type::<f64>("d", &mut put);
    of_type::<Complex<f32>>("c", &mut put);
    of_type::<Complex<f64>>("z", &mut put);
    put("Qr", |call| by_type!(call, factors::geqrf));
    put("ProductOfElementaryHouseholderReflectors", |call| by_type!(call, factors::orgqr));
    put("cholesky_update", |call| by_type!(call, factors::cholesky_update));
    put("tridiagonal_solve_perturbed_ffi", |call| by_type!(call, solves::perturbed));
    put("cpu_csr_sparse_dense_ffi", sparse::csr_times_dense);
    functions
}

/// LAPACK's functions for a type, whose names begin with a letter.
fn of_type<T: Element>(letter: &str, put: &mut impl FnMut(&str, Function))
where
    Complex<T::Real>: Plain,
{
    let mut put = |name: &str, function: Function| {
        put(&format!("lapack_{letter}{name}_ffi"), function);
    };
    let (orthogonal, symmetric) = if T::IS_COMPLEX { ("un", "he") } else { ("or", "sy") };
    put("potrf", factors::potrf::<T>);
    put("getrf", factors::getrf::<T>);
    put("geqrf", factors::geqrf::<T>);
    put("geqp3", factors::geqp3::<T>);
    put(&format!("{orthogonal}gqr"), factors::orgqr::<T>);
    put(&format!("{orthogonal}mqr"), factors::ormqr::<T>);
    put("gesdd", eigen::gesdd::<T>);
    put("gesvd", eigen::gesdd::<T>);
    put(&format!("{symmetric}evd"), eigen::heevd::<T>);
    put(&format!("{symmetric}trd"), eigen::hetrd::<T>);
    put("geev", eigen::geev::<T>);
    put("gees", eigen::gees::<T>);
    put("gehrd", eigen::gehrd::<T>);
    put("gtsv", solves::gtsv::<T>);
    put("trsm", solves::trsm::<T>);
}

/// Errors: the first operand is of none of the types that matrices can have.
fn element_of_first(call: &Call<'_>) -> Result<ElementType> {
    let shape = arguments::operand_shape(call, 0)?;
    match shape.element() {
        element @ (ElementType::F32 | ElementType::F64 | ElementType::C64 | ElementType::C128) => {
            Ok(element)
        }
        _ => Err(Error::invalid(format!("operand 0 must be of f32, f64, c64 or c128, is {shape}"))),
    }
}
