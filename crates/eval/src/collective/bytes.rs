//! Values as the bytes that participants exchange, and back.

use helio_ir::{Array, Error, Literal, Result, memory};

use crate::Evaluator;
use crate::services::{Given, Rendezvous};

/// The operands of all participants, in the group's order. Errors: those of the exchange;
/// `InvalidArgument` if a participant gave values of other sizes.
pub(super) fn exchange(
    evaluator: &Evaluator<'_>,
    at: &Rendezvous<'_>,
    args: &[Literal],
) -> Result<Vec<Vec<Literal>>> {
    let arrays: Vec<&Array> =
        args.iter().flat_map(Literal::leaves).filter_map(Literal::as_array).collect();
    let bytes: Vec<_> = arrays.iter().map(|array| array.to_bytes()).collect();
    let mut mine: Vec<&[u8]> = bytes.iter().map(|bytes| &bytes[..]).collect();
    let sizes: Vec<u8> = arrays.iter().flat_map(|array| sizes_of(array)).collect();
    mine.push(&sizes);
    let total: usize = bytes.iter().map(|bytes| bytes.len()).sum();
    let mut literals: Vec<Vec<Literal>> = Vec::with_capacity(at.group.len());
    let cx = evaluator.cx;
    let mut sink = |given: Given<'_>| {
        for position in 0..given.participants() {
            let theirs = given.of(position);
            let lengths = |slices: &[&[u8]]| slices.iter().map(|s| s.len()).collect::<Vec<_>>();
            if lengths(theirs) != lengths(&mine) {
                let (found, want) = (lengths(theirs), lengths(&mine));
                return Err(Error::invalid(format!(
                    "participant {position} of the group gave arrays of {found:?} bytes, this one \
                     of {want:?}"
                )));
            }
            memory::ensure_available(total)?;
            let mut leaves = theirs.iter();
            let mut sizes = theirs.last().copied().unwrap_or_default();
            let values = args.iter().map(|arg| value(arg, &mut leaves, &mut sizes));
            literals.push(values.collect::<Result<_>>()?);
        }
        Ok(())
    };
    let exchange = || cx.collectives.exchange(at, cx.me, &mine, evaluator.meter(), &mut sink);
    crate::guarded(|| "the exchange among participants".to_owned(), exchange)??;
    Ok(literals)
}

/// The sizes of an array's dimensions at run time, if its shape leaves them open.
fn sizes_of(array: &Array) -> Vec<u8> {
    if array.shape().is_static() {
        return Vec::new();
    }
    array.sizes().iter().flat_map(|&size| (size as u64).to_ne_bytes()).collect()
}

/// A value of the same shape as another, from the bytes of its arrays and what is left of the sizes.
fn value<'b>(
    like: &Literal,
    leaves: &mut impl Iterator<Item = &'b &'b [u8]>,
    sizes: &mut &[u8],
) -> Result<Literal> {
    match like {
        Literal::Tuple(elements) => {
            let elements = elements.iter().map(|like| value(like, leaves, sizes));
            elements.collect::<Result<_>>().map(Literal::Tuple)
        }
        Literal::Array(like) => {
            let bytes = leaves.next().ok_or_else(|| Error::internal("an array is missing"))?;
            let array = Array::from_bytes(like.shape().clone(), bytes)?;
            if like.shape().is_static() {
                return Ok(Literal::Array(array));
            }
            let mut own = Vec::with_capacity(like.dims().len());
            for _ in like.dims() {
                let (size, rest) = sizes
                    .split_first_chunk()
                    .ok_or_else(|| Error::internal("a size is missing"))?;
                own.push(u64::from_ne_bytes(*size) as usize);
                *sizes = rest;
            }
            array.with_sizes(own).map(Literal::Array)
        }
        other => Ok(other.clone()),
    }
}
