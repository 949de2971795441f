//! `dot`: transposes of operands and results become part of its dimension numbers, conversions of operands
//! part of it; what is no more than a sum becomes one; a batch with the same matrix is one product.

use helio_ir::ops::{Broadcast, Convert, Dot, DotDims, Reduce, Slice, Transpose};
use helio_ir::{ArrayShape, BinaryOp, ElementType, InstrId, Number, Op, Result};

use super::{Simplifier, shared};
use crate::draft::addition;

pub(super) fn simpler(
    cx: &mut Simplifier<'_, '_>,
    op: &Dot,
    operands: &[InstrId],
) -> Result<Option<InstrId>> {
    let &[lhs, rhs] = operands else { return Ok(None) };
    if let Some(merged) = shared::merged(cx, op, lhs, rhs)? {
        return Ok(Some(merged));
    }
    if let Some(products) = as_products(cx, op, lhs, rhs)? {
        return Ok(Some(products));
    }
    if let Some(sum) = as_sum(cx, op, lhs, rhs)? {
        return Ok(Some(sum));
    }
    if let Some(sums) = as_sums(cx, op, lhs, rhs)? {
        return Ok(Some(sums));
    }
    if let Some(sums) = as_sums_side_by_side(cx, op, lhs, rhs)? {
        return Ok(Some(sums));
    }
    if let Some(product) = with_batch_outside(cx, op, lhs, rhs)? {
        return Ok(Some(product));
    }
    let (mut folded, mut sources) = (op.clone(), [lhs, rhs]);
    let dims = &mut folded.dims;
    if let Some(source) = fold_transpose(cx, lhs, &mut dims.lhs_contracting, &mut dims.lhs_batch) {
        sources[0] = source;
    }
    if let Some(source) = fold_transpose(cx, rhs, &mut dims.rhs_contracting, &mut dims.rhs_batch) {
        sources[1] = source;
    }
    sources = sources.map(|operand| fold_convert(cx, op, operand).unwrap_or(operand));
    if sources == [lhs, rhs] {
        return Ok(None);
    }
    cx.add(folded, &sources).map(Some)
}

/// Elements from which on to write a converted operand to memory, and to read it there, takes longer than to convert
/// it whenever it is read. (Small products have kernels that take operands as they are.)
const MANY_ELEMENTS: usize = 1 << 15;

/// What is converted to the type in which sums are formed, if that changes no value: kernels of products take
/// numbers of 8 and 16 bits beside those of sums.
fn fold_convert(cx: &Simplifier<'_, '_>, op: &Dot, operand: InstrId) -> Option<InstrId> {
    let Op::Convert(_) = cx.draft.op(operand) else { return None };
    let source = cx.draft.operands(operand)[0];
    let (array, narrow) = (cx.draft.array(operand)?, cx.draft.array(source)?);
    let types = (narrow.element(), array.element());
    use ElementType::{BF16, F16, F32, S8, S16, S32, U8, U16};
    let is_taken = matches!(types, (BF16 | F16, F32) | (S8 | U8 | S16 | U16, S32));
    let is_plain = op.algorithm.is_none() && op.element == types.1;
    (is_taken && is_plain && array.element_count() >= MANY_ELEMENTS).then_some(source)
}

/// A vector times a matrix whose rows or columns have no more elements is written out.
const MAX_WRITTEN_OUT: usize = 8;
/// The most rows of a complex matrix that is written out as sums along rows. (Sums down the columns are for any: kernels
/// of products would pack the matrix for a single use. 300 numbers times 300×300 take 17 µs, and 86 with these.)
const MAX_COMPLEX_ROWS: usize = 64;

/// dot(x, y) → reduce(multiply(x, y)), if neither has dimensions of its own and their dimensions pair
/// up in order; with y repeated for those of x, if there are but a few products to add. Such sums fuse
/// with what is around them.
fn as_sum(
    cx: &mut Simplifier<'_, '_>,
    op: &Dot,
    lhs: InstrId,
    rhs: InstrId,
) -> Result<Option<InstrId>> {
    let (Some(x), Some(y)) = (cx.draft.array(lhs), cx.draft.array(rhs)) else { return Ok(None) };
    let is_plain =
        matches!(op.algorithm.as_deref(), None | Some("dot_f32_f32_f32" | "dot_f64_f64_f64"));
    let Some(ty) = summed_in([x.element(), y.element(), op.element]).filter(|_| is_plain) else {
        return Ok(None);
    };
    let dims = &op.dims;
    let real = |free: Vec<usize>, of: &ArrayShape| free.into_iter().any(|d| of.dims()[d] != 1);
    let own = [real(dims.lhs_free(x.rank()), x), real(dims.rhs_free(y.rank()), y)];
    // From the one that has dimensions of its own, if one does.
    let pairs = |a: &[usize], b: &[usize]| -> Vec<(usize, usize)> {
        a.iter().copied().zip(b.iter().copied()).collect()
    };
    let (of_lhs, of_rhs) = (
        [&dims.lhs_batch[..], &dims.lhs_contracting].concat(),
        [&dims.rhs_batch[..], &dims.rhs_contracting].concat(),
    );
    let (large, small, paired, batch, contracting) = match own {
        [true, true] => return Ok(None),
        [false, true] => {
            (rhs, lhs, pairs(&of_rhs, &of_lhs), &dims.rhs_batch, &dims.rhs_contracting)
        }
        _ => (lhs, rhs, pairs(&of_lhs, &of_rhs), &dims.lhs_batch, &dims.lhs_contracting),
    };
    let (large_shape, small_shape) = if large == lhs { (x, y) } else { (y, x) };
    let added: usize = contracting.iter().map(|&d| large_shape.dims()[d]).product();
    let in_memory = |&(d, _): &(usize, usize)| large_shape.dims()[d] != 1;
    let mut paired: Vec<(usize, usize)> = paired.into_iter().filter(in_memory).collect();
    paired.sort_unstable();
    // The result has batch dimensions first.
    let first_own = dims_of_its_own(large_shape, &paired).next().unwrap_or(usize::MAX);
    let in_order = paired.is_sorted_by_key(|&(_, d)| d)
        && batch.is_sorted()
        && batch.iter().all(|&d| d < first_own || large_shape.dims()[d] == 1);
    let rows: usize =
        dims_of_its_own(large_shape, &paired).map(|d| large_shape.dims()[d]).product();
    let is_down = contracting.iter().all(|&d| d < first_own);
    let is_short =
        added <= MAX_WRITTEN_OUT || ty.is_complex() && (is_down || rows <= MAX_COMPLEX_ROWS);
    if !in_order || added == 0 || own != [false, false] && !is_short {
        return Ok(None);
    }

    let result = cx.draft.infer(&op.clone().into(), &[lhs, rhs])?;
    let Some(result) = result.as_array().map(|array| array.dims().to_vec()) else {
        return Ok(None);
    };
    let sizes = large_shape.dims().to_vec();
    let small_sizes: Vec<usize> = small_shape.dims().iter().copied().filter(|&d| d != 1).collect();
    let dimensions: Vec<usize> = contracting.clone();
    let shape = ArrayShape::new(ty, &sizes[..])?;
    let x = converted(cx, large, ty)?;
    let y = converted(cx, small, ty)?;
    let y = cx.reshape(y, &small_sizes)?;
    let places = paired.iter().map(|&(d, _)| d).collect();
    let y = cx.add(Broadcast { shape, dimensions: places }, &[y])?;
    let product = cx.add(BinaryOp::Multiply, &[x, y])?;
    let zero = cx.scalar(ty, Number::Int(0))?;
    let sum = addition(ty)?;
    let to_apply = cx.draft.module().push(sum)?;
    let sum = cx.add(Reduce { dimensions, to_apply }, &[product, zero])?;
    let sum = cx.reshape(sum, &result)?;
    converted(cx, sum, op.element).map(Some)
}

/// The most products to add of a sum that is written out for matrices in a batch, ...
const MAX_ADDED: usize = 4;
/// ... the most rows and columns of these, ...
const MAX_SIDE: usize = 4;
/// ... and the fewest of them. (Kernels of products would compute one after the other, in tiles that are mostly
/// empty: 10,000 of 3×3 take 0.149 ms, written out 0.035.)
const MIN_MATRICES: usize = 16;

/// The fewest products to add for a few rows and columns that are sums by themselves.
const MIN_ADDED: usize = 16;

/// dot(x, y) → multiply(x, y), both repeated for the other's dimensions, if there is one product to add, or the sum
/// of such for many small matrices, or for many rows and one: that fuses with what is around it. (Products of a small
/// matrix and long rows of real numbers have kernels that take as long.)
fn as_products(
    cx: &mut Simplifier<'_, '_>,
    op: &Dot,
    lhs: InstrId,
    rhs: InstrId,
) -> Result<Option<InstrId>> {
    let (Some(x), Some(y)) = (cx.draft.array(lhs), cx.draft.array(rhs)) else { return Ok(None) };
    let Some(ty) = summed_in([x.element(), y.element(), op.element]) else { return Ok(None) };
    let (x, y) = (x.clone(), y.clone());
    let dims = &op.dims;
    let count = |list: &[usize]| list.iter().map(|&d| x.dims()[d]).product::<usize>();
    let (added, matrices) = (count(&dims.lhs_contracting), count(&dims.lhs_batch));
    let (lhs_free, rhs_free) = (dims.lhs_free(x.rank()), dims.rhs_free(y.rank()));
    let rows = count(&lhs_free);
    let cols: usize = rhs_free.iter().map(|&d| y.dims()[d]).product();
    // (Of a single sum `as_sum` makes one.)
    let is_small = |side: usize| (2..=MAX_SIDE).contains(&side) && (1..=MAX_ADDED).contains(&added);
    let (large, large_free, along) = match rows < cols {
        true => (&y, &rhs_free, &dims.rhs_contracting),
        false => (&x, &lhs_free, &dims.lhs_contracting),
    };
    let is_before = |&d: &usize| large_free.iter().all(|&free| d < free || large.dims()[free] == 1);
    let is_lone = is_small(rows.min(cols))
        && rows.max(cols) >= MIN_MATRICES
        && (ty.is_complex() || !along.iter().all(is_before));
    let pays = added == 1 || is_small(rows.max(cols)) && matrices >= MIN_MATRICES || is_lone;
    if !pays || op.algorithm.is_some() {
        return Ok(None);
    }
    // The pair of dimensions along which there is more than one element, if there is one.
    let pairs = || dims.lhs_contracting.iter().zip(&dims.rhs_contracting);
    let mut long = pairs().filter(|&(&d, _)| x.dims()[d] != 1);
    let (along, None) = (long.next(), long.next()) else { return Ok(None) };
    let batches = dims.lhs_batch.len();
    let of_x = places(&x, &dims.lhs_batch, &lhs_free, batches);
    let of_y = places(&y, &dims.rhs_batch, &rhs_free, batches + lhs_free.len());
    let (Some(of_x), Some(of_y)) = (of_x, of_y) else { return Ok(None) };
    let result = cx.draft.infer(&op.clone().into(), &[lhs, rhs])?;
    let Some(sizes) = result.as_array().map(|array| array.dims().to_vec()) else {
        return Ok(None);
    };
    let shape = ArrayShape::new(ty, sizes)?;
    let operands = [
        (converted(cx, lhs, ty)?, &x, along.map(|(&d, _)| d), of_x),
        (converted(cx, rhs, ty)?, &y, along.map(|(_, &d)| d), of_y),
    ];
    let mut sum = None;
    for step in 0..added {
        let mut factors = [lhs, rhs];
        for (factor, (operand, array, along, (own, dimensions))) in
            factors.iter_mut().zip(&operands)
        {
            let mut part = *operand;
            if let Some(along) = *along {
                let (mut starts, mut limits) = (vec![0; array.rank()], array.dims().to_vec());
                (starts[along], limits[along]) = (step, step + 1);
                let strides = vec![1; array.rank()];
                part = cx.add(Slice { starts, limits, strides }, &[part])?;
            }
            let part = cx.reshape(part, own)?;
            let repeated = Broadcast { shape: shape.clone(), dimensions: dimensions.clone() };
            *factor = cx.add(repeated, &[part])?;
        }
        let product = cx.add(BinaryOp::Multiply, &factors)?;
        sum = Some(match sum {
            None => product,
            Some(sum) => cx.add(BinaryOp::Add, &[sum, product])?,
        });
    }
    match sum {
        Some(sum) => converted(cx, sum, op.element).map(Some),
        None => Ok(None),
    }
}

/// dot(x, y) → reduce(multiply(x, y)), both repeated for the other's dimensions, if these are a few rows and columns and
/// products to add are many, in the same order in both operands: tiles of a product's kernels would be mostly empty.
/// (Real numbers to be added that lie side by side have kernels of their own.)
fn as_sums(
    cx: &mut Simplifier<'_, '_>,
    op: &Dot,
    lhs: InstrId,
    rhs: InstrId,
) -> Result<Option<InstrId>> {
    let (Some(x), Some(y)) = (cx.draft.array(lhs), cx.draft.array(rhs)) else { return Ok(None) };
    let (x, y) = (x.clone(), y.clone());
    let Some(ty) = summed_in([x.element(), y.element(), op.element]) else { return Ok(None) };
    let dims = &op.dims;
    let count = |of: &ArrayShape, list: &[usize]| list.iter().map(|&d| of.dims()[d]).product();
    let (lhs_free, rhs_free) = (dims.lhs_free(x.rank()), dims.rhs_free(y.rank()));
    let (rows, cols): (usize, usize) = (count(&x, &lhs_free), count(&y, &rhs_free));
    let added: usize = count(&x, &dims.lhs_contracting);
    let are_few = (2..=MAX_SIDE * MAX_SIDE).contains(&(rows * cols)) && rows.max(cols) <= MAX_SIDE;
    if !are_few || added < MIN_ADDED || op.algorithm.is_some() || !dims.lhs_batch.is_empty() {
        return Ok(None);
    }
    // How many dimensions stand before the free ones, if these stand together.
    let free_at = |of: &ArrayShape, free: &[usize], contracting: &[usize]| {
        let together = free.windows(2).all(|pair| pair[0] + 1 == pair[1]);
        let at = contracting.iter().filter(|&&d| free.first().is_some_and(|&first| d < first));
        (together && contracting.is_sorted() && of.rank() > free.len()).then(|| at.count())
    };
    let ats = [
        free_at(&x, &lhs_free, &dims.lhs_contracting),
        free_at(&y, &rhs_free, &dims.rhs_contracting),
    ];
    let [Some(at_of_lhs), Some(at_of_rhs)] = ats else { return Ok(None) };
    // What is transposed anyway takes the other's order.
    let is_transposed = |id: InstrId| matches!(cx.draft.op(id), Op::Transpose(_));
    let at = if is_transposed(lhs) { at_of_rhs } else { at_of_lhs };
    let have_kernels = at == 0 && !ty.is_complex();
    if have_kernels {
        return Ok(None);
    }
    let free = lhs_free.len() + rhs_free.len();
    let of = |list: &[usize], of: &ArrayShape| -> Vec<usize> {
        list.iter().map(|&d| of.dims()[d]).collect()
    };
    let (before, after) = dims.lhs_contracting.split_at(at);
    let sizes = [of(before, &x), of(&lhs_free, &x), of(&rhs_free, &y), of(after, &x)].concat();
    let rank = sizes.len();
    let shape = ArrayShape::new(ty, sizes)?;
    let places_of_free = [at..at + lhs_free.len(), at + lhs_free.len()..at + free];
    let mut factors = [lhs, rhs];
    let own = [(&lhs_free, &dims.lhs_contracting), (&rhs_free, &dims.rhs_contracting)];
    for ((factor, places), (free_dims, contracting)) in
        factors.iter_mut().zip(places_of_free).zip(own)
    {
        let dimensions = (0..at).chain(places).chain(at + free..rank).collect();
        let (before, after) = contracting.split_at(at);
        let permutation = [before, free_dims, after].concat();
        let mut operand = converted(cx, *factor, ty)?;
        if !permutation.is_sorted() {
            operand = cx.add(Transpose { permutation }, &[operand])?;
        }
        *factor = cx.add(Broadcast { shape: shape.clone(), dimensions }, &[operand])?;
    }
    let product = cx.add(BinaryOp::Multiply, &factors)?;
    let zero = cx.scalar(ty, Number::Int(0))?;
    let sum = addition(ty)?;
    let to_apply = cx.draft.module().push(sum)?;
    let dimensions = (0..at).chain(at + free..rank).collect();
    let sum = cx.add(Reduce { dimensions, to_apply }, &[product, zero])?;
    converted(cx, sum, op.element).map(Some)
}

/// The fewest rows and columns for which a transposed operand pays: each of its elements is used as often.
const MIN_TURNED_SIDE: usize = 32;

/// dot(x, y) → transpose(reduce(multiply(x, y))), both repeated for the other's dimensions, if the batch is innermost in both
/// operands: its products are computed side by side in lanes.
fn as_sums_side_by_side(
    cx: &mut Simplifier<'_, '_>,
    op: &Dot,
    lhs: InstrId,
    rhs: InstrId,
) -> Result<Option<InstrId>> {
    let (Some(x), Some(y)) = (cx.draft.array(lhs), cx.draft.array(rhs)) else { return Ok(None) };
    let (x, y) = (x.clone(), y.clone());
    let Some(ty) = summed_in([x.element(), y.element(), op.element]) else { return Ok(None) };
    let dims = &op.dims;
    let batches = dims.lhs_batch.len();
    let are_last =
        |of: &ArrayShape, batch: &[usize]| batch.iter().copied().eq(of.rank() - batches..of.rank());
    let matrices: usize = dims.lhs_batch.iter().map(|&d| x.dims()[d]).product();
    let are_side_by_side = are_last(&x, &dims.lhs_batch) && are_last(&y, &dims.rhs_batch);
    // Free dimensions, what is added up, and the batch.
    let (lhs_free, rhs_free) = (dims.lhs_free(x.rank()), dims.rhs_free(y.rank()));
    let rows: usize = lhs_free.iter().map(|&d| x.dims()[d]).product();
    let cols: usize = rhs_free.iter().map(|&d| y.dims()[d]).product();
    let are_few = ty.is_complex() || rows.min(cols) < MIN_TURNED_SIDE;
    if !are_side_by_side || !are_few || matrices < MIN_MATRICES || op.algorithm.is_some() {
        return Ok(None);
    }
    let sizes = |of: &ArrayShape, list: &[usize]| -> Vec<usize> {
        list.iter().map(|&d| of.dims()[d]).collect()
    };
    let (free, contracting) = (lhs_free.len() + rhs_free.len(), dims.lhs_contracting.len());
    let all = [
        sizes(&x, &lhs_free),
        sizes(&y, &rhs_free),
        sizes(&x, &dims.lhs_contracting),
        sizes(&x, &dims.lhs_batch),
    ];
    let shape = ArrayShape::new(ty, all.concat())?;
    let rank = shape.rank();
    let mut factors = [lhs, rhs];
    let own = [
        (&x, &lhs_free, 0, &dims.lhs_contracting, &dims.lhs_batch),
        (&y, &rhs_free, lhs_free.len(), &dims.rhs_contracting, &dims.rhs_batch),
    ];
    for (factor, (of, own_free, first, own_contracting, batch)) in factors.iter_mut().zip(own) {
        let place = |d: usize| {
            let among = |list: &[usize], first: usize| {
                list.iter().position(|&other| other == d).map(|i| first + i)
            };
            among(own_free, first)
                .or_else(|| among(own_contracting, free))
                .or_else(|| among(batch, free + contracting))
        };
        let dimensions = (0..of.rank()).filter_map(place).collect();
        let operand = converted(cx, *factor, ty)?;
        *factor = cx.add(Broadcast { shape: shape.clone(), dimensions }, &[operand])?;
    }
    let product = cx.add(BinaryOp::Multiply, &factors)?;
    let zero = cx.scalar(ty, Number::Int(0))?;
    let sum = addition(ty)?;
    let to_apply = cx.draft.module().push(sum)?;
    let dimensions = (free..free + contracting).collect();
    let sum = cx.add(Reduce { dimensions, to_apply }, &[product, zero])?;
    let permutation = (free..rank - contracting).chain(0..free).collect();
    let sum = cx.add(Transpose { permutation }, &[sum])?;
    converted(cx, sum, op.element).map(Some)
}

/// dot(x, y) → dot(transpose(x), transpose(y)), each if its innermost dimension is one of the batch: rows of its matrices are
/// neighbours then.
fn with_batch_outside(
    cx: &mut Simplifier<'_, '_>,
    op: &Dot,
    lhs: InstrId,
    rhs: InstrId,
) -> Result<Option<InstrId>> {
    let (Some(x), Some(y)) = (cx.draft.array(lhs), cx.draft.array(rhs)) else { return Ok(None) };
    let dims = &op.dims;
    let (lhs_free, rhs_free) = (dims.lhs_free(x.rank()), dims.rhs_free(y.rank()));
    let batches = dims.lhs_batch.len();
    let is_inside =
        |of: &ArrayShape, batch: &[usize]| innermost(of.dims()).is_some_and(|d| batch.contains(&d));
    let (of_lhs, of_rhs) = (is_inside(x, &dims.lhs_batch), is_inside(y, &dims.rhs_batch));
    if !of_lhs && !of_rhs {
        return Ok(None);
    }
    let (lhs_rank, rhs_rank) = (x.rank(), y.rank());
    let (mut turned, mut operands) = (op.clone(), [lhs, rhs]);
    if of_lhs {
        let permutation = [&dims.lhs_batch[..], &lhs_free, &dims.lhs_contracting].concat();
        operands[0] = cx.add(Transpose { permutation }, &[lhs])?;
        turned.dims.lhs_batch = (0..batches).collect();
        turned.dims.lhs_contracting = (batches + lhs_free.len()..lhs_rank).collect();
    }
    if of_rhs {
        let permutation = [&dims.rhs_batch[..], &dims.rhs_contracting, &rhs_free].concat();
        operands[1] = cx.add(Transpose { permutation }, &[rhs])?;
        turned.dims.rhs_batch = (0..batches).collect();
        turned.dims.rhs_contracting = (batches..rhs_rank - rhs_free.len()).collect();
    }
    cx.add(turned, &operands).map(Some)
}

/// The sizes of an operand's batch and free dimensions, in its order, and which dimensions of the result they
/// are, free ones from `first` on; `None` if they are in another order there.
fn places(
    shape: &ArrayShape,
    batch: &[usize],
    free: &[usize],
    first: usize,
) -> Option<(Vec<usize>, Vec<usize>)> {
    let place = |d: usize| {
        let among = |list: &[usize]| list.iter().position(|&other| other == d);
        among(batch)
            .or_else(|| among(free).map(|i| first + i))
            .map(|place| (shape.dims()[d], place))
    };
    let (sizes, places): (Vec<usize>, Vec<usize>) = (0..shape.rank()).filter_map(place).unzip();
    places.is_sorted().then_some((sizes, places))
}

/// Dimensions that are not paired with another array's, ones aside.
fn dims_of_its_own<'a>(
    shape: &'a ArrayShape,
    paired: &'a [(usize, usize)],
) -> impl Iterator<Item = usize> + 'a {
    let is_paired = |d: usize| paired.iter().any(|pair| pair.0 == d);
    (0..shape.rank()).filter(move |&d| shape.dims()[d] != 1 && !is_paired(d))
}

fn converted(cx: &mut Simplifier<'_, '_>, id: InstrId, element: ElementType) -> Result<InstrId> {
    match cx.draft.array(id) {
        Some(array) if array.element() != element => cx.add(Convert { element }, &[id]),
        _ => Ok(id),
    }
}

/// The type in which products of two types are formed and added for a result of a third; `None` if
/// none has all their values.
fn summed_in([x, y, result]: [ElementType; 3]) -> Option<ElementType> {
    let all = [x, y, result];
    if all.iter().all(|ty| ty.is_float() && ty.bits() >= 16) {
        let wide = all.contains(&ElementType::F64);
        return Some(if wide { ElementType::F64 } else { ElementType::F32 });
    }
    let is_held = |ty: ElementType| ty == result || ty.is_integer() && ty.bits() < result.bits();
    let adds = result.is_integer() || result.is_complex();
    (adds && is_held(x) && is_held(y) && (result.is_integer() || x == y)).then_some(result)
}

/// What is transposed, with contracting and batch dimensions numbered as there, if the product can
/// be taken there as well as here: contracting and free dimensions each must lie like a single one,
/// and one of them must be the innermost.
fn fold_transpose(
    cx: &Simplifier<'_, '_>,
    operand: InstrId,
    contracting: &mut Vec<usize>,
    batch: &mut Vec<usize>,
) -> Option<InstrId> {
    let Op::Transpose(transpose) = cx.draft.op(operand) else { return None };
    let source = cx.draft.operands(operand)[0];
    let dims = cx.draft.array(source)?.dims();
    let renamed =
        |list: &[usize]| -> Vec<usize> { list.iter().map(|&d| transpose.permutation[d]).collect() };
    let is_free = |d: &usize| !contracting.contains(d) && !batch.contains(d);
    let free: Vec<usize> = (0..dims.len()).filter(is_free).collect();
    let free = renamed(&free);
    let (new_contracting, new_batch) = (renamed(contracting), renamed(batch));
    // The result's dimensions are the free ones in order, so that order must stay.
    let fits = free.is_sorted()
        && lies_like_one(dims, &free)
        && lies_like_one(dims, &new_contracting)
        && innermost(dims).is_none_or(|d| !new_batch.contains(&d));
    if !fits {
        return None;
    }
    (*contracting, *batch) = (new_contracting, new_batch);
    Some(source)
}

/// The last dimension that is not 1.
fn innermost(dims: &[usize]) -> Option<usize> {
    (0..dims.len()).rev().find(|&d| dims[d] != 1)
}

/// Whether dimensions, ones aside, follow each other in an array of these sizes.
fn lies_like_one(dims: &[usize], list: &[usize]) -> bool {
    let list: Vec<usize> = list.iter().copied().filter(|&d| dims[d] != 1).collect();
    list.windows(2)
        .all(|pair| pair[0] < pair[1] && dims[pair[0] + 1..pair[1]].iter().all(|&size| size == 1))
}

/// transpose(dot(x, y)) → dot(y, x), when it makes the free dimensions change sides; batch
/// dimensions may be in any order.
pub(super) fn transposed(
    cx: &mut Simplifier<'_, '_>,
    dot: InstrId,
    permutation: &[usize],
) -> Result<Option<InstrId>> {
    let (Op::Dot(op), &[lhs, rhs]) = (cx.draft.op(dot), cx.draft.operands(dot)) else {
        return Ok(None);
    };
    let Some(rank) = cx.draft.array(lhs).map(|array| array.rank()) else { return Ok(None) };
    let batches = op.dims.lhs_batch.len();
    let lhs_free = rank - batches - op.dims.lhs_contracting.len();
    let all = permutation.len();
    let (new_batches, free) = permutation.split_at(batches);
    let in_order = batches..all;
    let swapped_free = (batches + lhs_free..all).chain(batches..batches + lhs_free);
    if new_batches.iter().any(|&d| d >= batches) {
        return Ok(None);
    }
    let batch = |list: &[usize]| new_batches.iter().map(|&d| list[d]).collect();
    let (lhs_batch, rhs_batch) = (batch(&op.dims.lhs_batch), batch(&op.dims.rhs_batch));
    let dims = DotDims { lhs_batch, rhs_batch, ..op.dims.clone() };
    let ordered = Dot { dims, ..(**op).clone() };
    if free.iter().copied().eq(in_order) {
        return cx.add(ordered, &[lhs, rhs]).map(Some);
    }
    if free.iter().copied().eq(swapped_free) {
        return cx.add(swapped(&ordered), &[rhs, lhs]).map(Some);
    }
    Ok(None)
}

/// The product with its operands the other way round.
pub(super) fn swapped(op: &Dot) -> Dot {
    let mut new = op.clone();
    std::mem::swap(&mut new.dims.lhs_contracting, &mut new.dims.rhs_contracting);
    std::mem::swap(&mut new.dims.lhs_batch, &mut new.dims.rhs_batch);
    new.precision.reverse();
    new
}
