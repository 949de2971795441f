//! Operands, results and attributes of calls, checked and brought into the order that routines take.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use helio_eval::{Call, Work};
use helio_ir::types::Plain;
use helio_ir::{ArrayShape, Dictionary, Error, Result, Shape, memory};
use helio_linalg::Run;

/// The threads of a call, for routines.
#[derive(Clone, Copy)]
pub(super) struct OfCall<'c>(Work<'c>);

impl Run for OfCall<'_> {
    fn for_each(&self, tasks: usize, body: &(dyn Fn(usize) + Sync)) {
        self.0.for_each(tasks, body);
    }

    fn is_stopped(&self) -> bool {
        self.0.is_stopped()
    }
}

/// How many operations a task should do at least, so that handing it out is worth while.
pub(crate) const TASK_OPERATIONS: usize = 200_000;

/// The dimensions that all arrays of a call begin with: a batch of problems.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    dims: Vec<usize>,
    /// How many problems there are.
    pub(super) count: usize,
}

impl Batch {
    /// Of a call with so many operands and results, and what follows the batch in the shape of operand
    /// `of`, which has `rank` dimensions behind it. Errors: there are others.
    pub(super) fn of<const RANK: usize>(
        call: &Call<'_>,
        operands: usize,
        results: Range<usize>,
        of: usize,
    ) -> Result<(Self, [usize; RANK])> {
        let (found, made) = (call.operand_count(), call.result_count());
        if found != operands {
            let detail = format!("there must be {operands} operands, are {found}");
            return Err(Error::invalid(detail));
        }
        if !results.contains(&made) {
            let wanted = match results.len() {
                1 => results.start.to_string(),
                _ => format!("{} or {}", results.start, results.end - 1),
            };
            return Err(Error::invalid(format!("there must be {wanted} results, are {made}")));
        }
        let shape = operand_shape(call, of)?;
        let dims = shape.dims();
        let Some(at) = dims.len().checked_sub(RANK) else {
            let detail = format!("operand {of} must have {RANK} dimensions or more, is {shape}");
            return Err(Error::invalid(detail));
        };
        let mut last = [0; RANK];
        last.copy_from_slice(&dims[at..]);
        let dims = dims[..at].to_vec();
        let count = dims.iter().product();
        Ok((Batch { dims, count }, last))
    }

    /// Errors: the shape is not that of the batch with these dimensions behind it.
    fn ensure_shape<T: Plain>(
        &self,
        shape: &ArrayShape,
        last: &[usize],
        what: &str,
        number: usize,
    ) -> Result<()> {
        let dims = self.dims.iter().chain(last);
        if shape.element() == T::TYPE && shape.is_static() && shape.dims().iter().eq(dims) {
            return Ok(());
        }
        let wanted = ArrayShape::new(T::TYPE, [&self.dims[..], last].concat())?;
        Err(Error::invalid(format!("{what} {number} must be {wanted}, is {shape}")))
    }

    /// The elements of an operand, problem by problem, matrices by columns. Errors: it is of another
    /// shape than the batch with these dimensions.
    pub(super) fn operand<T: Plain + Default>(
        &self,
        call: &mut Call<'_>,
        number: usize,
        last: &[usize],
    ) -> Result<Vec<T>> {
        let shape = operand_shape(call, number)?;
        self.ensure_shape::<T>(shape, last, "operand", number)?;
        let order = Order::of(shape, last.len())?;
        memory::ensure_available(shape.size_bytes())?;
        match call.result_of(number) {
            Some(result) => {
                let view = call.result_mut(result)?;
                Ok(order.read(last, view.as_mut_slice::<T>()?))
            }
            None => Ok(order.read(last, call.operand(number)?.as_slice::<T>()?)),
        }
    }

    /// Zeros for a result. Errors: it is of another shape than the batch with these dimensions.
    pub(super) fn result<T: Plain + Default + Clone>(
        &self,
        call: &Call<'_>,
        number: usize,
        last: &[usize],
    ) -> Result<Vec<T>> {
        let shape = self.expect::<T>(call, number, last)?;
        memory::ensure_available(shape.size_bytes())?;
        Ok(vec![T::default(); shape.element_count()])
    }

    /// Errors: a result is of another shape than the batch with these dimensions.
    pub(super) fn expect<'c, T: Plain>(
        &self,
        call: &Call<'c>,
        number: usize,
        last: &[usize],
    ) -> Result<&'c ArrayShape> {
        let shape = result_shape(call, number)?;
        self.ensure_shape::<T>(shape, last, "result", number).map(|()| shape)
    }

    /// Writes a result, problem by problem, matrices by columns.
    pub(super) fn write<T: Plain + Default>(
        &self,
        call: &mut Call<'_>,
        number: usize,
        last: &[usize],
        from: &[T],
    ) -> Result<()> {
        let shape = self.expect::<T>(call, number, last)?;
        let order = Order::of(shape, last.len())?;
        order.write(last, from, call.result_mut(number)?.as_mut_slice::<T>()?);
        Ok(())
    }

    /// The part of each problem.
    pub(super) fn split<'s, T>(
        &self,
        all: &'s mut [T],
    ) -> impl Iterator<Item = &'s mut [T]> + use<'s, T> {
        let size = all.len() / self.count.max(1);
        let mut rest = all;
        (0..self.count).map(move |_| {
            let (part, others) = std::mem::take(&mut rest).split_at_mut(size);
            rest = others;
            part
        })
    }

    /// Has each problem worked on, of so many operations. Errors: the run is to stop.
    pub(super) fn each<I: Send>(
        &self,
        call: &Call<'_>,
        operations: usize,
        problems: impl Iterator<Item = I>,
        body: impl Fn(&OfCall<'_>, &mut I) + Sync,
    ) -> Result<()> {
        let run = OfCall(call.work());
        let mut problems: Vec<I> = problems.collect();
        if let [problem] = &mut problems[..] {
            // It may use the threads itself.
            body(&run, problem);
            return call.ensure_running();
        }
        let group = (TASK_OPERATIONS / operations.max(1)).max(1);
        let groups: Vec<_> = problems.chunks_mut(group).map(Mutex::new).collect();
        run.for_each(groups.len(), &|task| {
            let mut group = groups[task].lock().unwrap_or_else(PoisonError::into_inner);
            for problem in group.iter_mut() {
                if !run.is_stopped() {
                    body(&run, problem);
                }
            }
        });
        call.ensure_running()
    }
}

/// Errors: there is none of this number, or it is no array.
pub(super) fn operand_shape<'c>(call: &Call<'c>, number: usize) -> Result<&'c ArrayShape> {
    array_of(&call.info().operands, number, "operand")
}

/// Errors: there is none of this number, or it is no array.
pub(super) fn result_shape<'c>(call: &Call<'c>, number: usize) -> Result<&'c ArrayShape> {
    let results = match &call.info().result {
        Shape::Tuple(elements) => elements,
        one => std::slice::from_ref(one),
    };
    array_of(results, number, "result")
}

/// Errors: part `number` of these shapes, tuples taken apart, is missing or no array.
fn array_of<'s>(shapes: &'s [Shape], number: usize, what: &str) -> Result<&'s ArrayShape> {
    // Where there are no tuples, which is nearly always, parts are numbered as they stand.
    let shape = match shapes.iter().any(|shape| matches!(shape, Shape::Tuple(_))) {
        false => shapes.get(number),
        true => shapes.iter().flat_map(Shape::leaves).nth(number),
    };
    shape.and_then(Shape::as_array).ok_or_else(|| {
        let found = shape.map_or_else(|| "missing".to_owned(), Shape::to_string);
        Error::invalid(format!("{what} {number} must be an array, is {found}"))
    })
}

/// How the last two dimensions of an array lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// As routines take them: vectors, and matrices by columns.
    Columns,
    /// Matrices by rows.
    Rows,
}

impl Order {
    /// Errors: the layout is neither by rows nor by columns.
    fn of(shape: &ArrayShape, rank: usize) -> Result<Self> {
        let dims = shape.rank();
        let by_rows = if rank < 2 { Order::Columns } else { Order::Rows };
        let Some(layout) = shape.layout() else { return Ok(by_rows) };
        let order = &layout.minor_to_major;
        if order.iter().rev().copied().eq(0..dims) {
            return Ok(by_rows);
        }
        let by_columns = dims >= 2
            && rank == 2
            && order[..2] == [dims - 2, dims - 1]
            && order[2..].iter().rev().copied().eq(0..dims - 2);
        if by_columns {
            return Ok(Order::Columns);
        }
        Err(Error::unimplemented(format!(
            "matrices lie by rows or by columns, and batches before them; found {shape}"
        )))
    }

    fn read<T: Copy + Default>(self, last: &[usize], from: &[T]) -> Vec<T> {
        let mut to = from.to_vec();
        if self == Order::Rows {
            transpose(last[1], last[0], from, &mut to);
        }
        to
    }

    fn write<T: Copy>(self, last: &[usize], from: &[T], to: &mut [T]) {
        match self {
            Order::Columns => to.copy_from_slice(from),
            Order::Rows => transpose(last[0], last[1], from, to),
        }
    }
}

/// Writes the transposes of matrices that have `rows` rows and lie by columns; in other words, by rows what
/// lies by columns, or the other way round.
pub(crate) fn transpose<T: Copy>(rows: usize, columns: usize, from: &[T], to: &mut [T]) {
    const BLOCK: usize = 16;
    let size = rows * columns;
    if size == 0 {
        return;
    }
    for (from, to) in from.chunks(size).zip(to.chunks_mut(size)) {
        for j0 in (0..columns).step_by(BLOCK) {
            for i0 in (0..rows).step_by(BLOCK) {
                for j in j0..columns.min(j0 + BLOCK) {
                    for i in i0..rows.min(i0 + BLOCK) {
                        to[j + i * columns] = from[i + j * rows];
                    }
                }
            }
        }
    }
}

/// Whether matrices of an array lie by rows or by columns, as functions take them.
pub(crate) fn is_by_rows_or_columns(shape: &ArrayShape) -> bool {
    Order::of(shape, 2).is_ok()
}

/// An attribute that is one of some letters, as the number of its ASCII character. Errors: it is missing
/// or another.
pub(super) fn letter(call: &Call<'_>, name: &str, allowed: &str) -> Result<char> {
    letter_of(call.info().attributes()?, name, allowed)
}

/// The same of a call's attributes.
pub(crate) fn letter_of(attributes: &Dictionary, name: &str, allowed: &str) -> Result<char> {
    let value = attributes.integer(name)?;
    let found = u8::try_from(value).map(char::from).ok();
    found.filter(|&letter| allowed.contains(letter)).ok_or_else(|| {
        let letters: Vec<String> =
            allowed.chars().map(|letter| format!("{} ('{letter}')", u32::from(letter))).collect();
        let wanted = letters.join(" or ");
        Error::invalid(format!("attribute `{name}` must be {wanted}, is {value}"))
    })
}

/// Errors: the matrix is not square.
pub(super) fn square([rows, columns]: [usize; 2]) -> Result<usize> {
    if rows == columns {
        return Ok(rows);
    }
    let detail = format!("operand 0 must have square matrices, has {rows}×{columns}");
    Err(Error::invalid(detail))
}

/// A product of sizes, for estimates.
pub(crate) fn operations(sizes: &[usize]) -> usize {
    sizes.iter().fold(1, |product: usize, &size| product.saturating_mul(size))
}
