//! Products that are written out as sums, which fuse with what is around them: kernels of products would compute them
//! in tiles that are mostly empty, or pack an operand for a single use.

use helio_ir::ops::{Broadcast, Convert, Dot, Reduce, Slice, Transpose};
use helio_ir::{ArrayShape, BinaryOp, ElementType, InstrId, Number, Op, Result};

use super::Simplifier;
use super::movement::without_units;
use crate::draft::addition;

/// The product as sums, if that is better.
pub(super) fn simpler(
    cx: &mut Simplifier<'_, '_>,
    op: &Dot,
    lhs: InstrId,
    rhs: InstrId,
) -> Result<Option<InstrId>> {
    for rule in [as_products, as_sum, as_sums, as_sums_side_by_side] {
        if let Some(sums) = rule(cx, op, lhs, rhs)? {
            return Ok(Some(sums));
        }
    }
    Ok(None)
}

/// A vector times a matrix whose rows or columns have no more elements is written out.
const MAX_WRITTEN_OUT: usize = 8;
/// The most rows of a complex matrix that is written out as sums along rows. (Sums down the columns are for any: kernels
/// of products would pack the matrix for a single use. 300 numbers times 300×300 take 17 µs, and 86 with these.)
const MAX_COMPLEX_ROWS: usize = 64;

/// The fewest products of a matrix and a vector that are sums: a number of a matrix is used once, and kernels of products
/// would begin anew for each. (Of 200, with 2 to 64 rows and 12 to 480 products to add, sums take 0.1 to 0.88 of the time where these
/// go down the matrix, 0.47 to 0.98 along up to 16 rows, and 0.04 to 0.15 where rows lie between; of 4 0.3 to 0.88; Zen 5.)
const MIN_VECTORS: usize = 4;
/// The most products of numbers in each.
const MAX_OF_VECTOR: usize = 1 << 15;
/// The most products to add for vectors that lie side by side, if rows lie around them. (Of 100 and 500 vectors and 4 to 400 rows, in
/// either order, 16 products take 0.2 to 0.9 of the time of products of matrices, 64 1.1 to 3 times as long; of complex numbers
/// that lie otherwise, sums of 16 to 256 take 0.04 to 0.2; Zen 4.)
const MAX_SIDE_BY_SIDE: usize = 16;
/// The most rows along which there are sums: 32 and 64 of 12 numbers take 1.11 and 1.23 of the time of products.
const MAX_LONG_ROWS: usize = 16;

/// dot(x, y) → reduce(multiply(x, y)), if neither has dimensions of its own; with y repeated for those of x, if there are but
/// a few products to add, or a batch of vectors. Such sums fuse with what is around them.
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
    let first_own = dims_of_its_own(large_shape, &paired).next().unwrap_or(usize::MAX);
    let rows: usize =
        dims_of_its_own(large_shape, &paired).map(|d| large_shape.dims()[d]).product();
    let is_down = contracting.iter().all(|&d| d < first_own);
    let is_along = contracting.iter().all(|&d| d > first_own);
    let is_short =
        added <= MAX_WRITTEN_OUT || ty.is_complex() && (is_down || rows <= MAX_COMPLEX_ROWS);
    // The result has batch dimensions first.
    let kept: Vec<usize> = (0..large_shape.rank()).filter(|d| !contracting.contains(d)).collect();
    let free = kept.iter().copied().filter(|d| !batch.contains(d));
    let order: Vec<usize> = batch.iter().copied().chain(free).collect();
    let in_order = order.iter().filter(|&&d| large_shape.dims()[d] != 1).is_sorted();
    let vectors: usize = batch.iter().map(|&d| large_shape.dims()[d]).product();
    let are_vectors = vectors >= MIN_VECTORS
        && rows.saturating_mul(added) <= MAX_OF_VECTOR
        && (!is_along || rows <= MAX_LONG_ROWS)
        && !ty.is_complex();
    // What is apart from other numbers of its matrix is read where it is, and what follows is computed in that order.
    let last = (0..large_shape.rank()).rfind(|&d| large_shape.dims()[d] != 1);
    let are_apart = match last.is_some_and(|last| batch.contains(&last)) {
        true => vectors >= MIN_MATRICES && added <= MAX_SIDE_BY_SIDE,
        false => vectors >= MIN_VECTORS && ty.is_complex(),
    };
    let are_vectors = (are_vectors && (in_order || is_short) || are_apart && !in_order)
        && [x.element(), y.element()] == [ty; 2];
    // Only a vector, which is small beside a matrix, is worth to be transposed.
    let pairs_up = paired.is_sorted_by_key(|&(_, d)| d);
    let is_one = match own {
        [false, false] => pairs_up,
        _ => are_vectors || pairs_up && is_short,
    };
    if added == 0 || !is_one || !in_order && added == 1 {
        return Ok(None);
    }
    let order = order.iter().map(|d| kept.iter().position(|of| of == d));
    let Some(order) = order.collect::<Option<Vec<usize>>>() else { return Ok(None) };

    let result = cx.draft.infer(&op.clone().into(), &[lhs, rhs])?;
    let Some(result) = result.as_array().map(|array| array.dims().to_vec()) else {
        return Ok(None);
    };
    let sizes = large_shape.dims().to_vec();
    let (small_places, small_sizes) = without_units(small_shape.dims());
    // For each dimension of the small one, the one in whose place it comes.
    let places = paired.iter().map(|&(_, d)| small_places.iter().position(|&place| place == d));
    let Some(permutation) = places.collect::<Option<Vec<usize>>>() else { return Ok(None) };
    let dimensions: Vec<usize> = contracting.clone();
    let shape = ArrayShape::new(ty, &sizes[..])?;
    let x = converted(cx, large, ty)?;
    let y = converted(cx, small, ty)?;
    let mut y = cx.reshape(y, &small_sizes)?;
    if !permutation.is_sorted() {
        y = cx.add(Transpose { permutation }, &[y])?;
    }
    let places = paired.iter().map(|&(d, _)| d).collect();
    let y = cx.add(Broadcast { shape, dimensions: places }, &[y])?;
    let product = cx.add(BinaryOp::Multiply, &[x, y])?;
    let zero = cx.scalar(ty, Number::Int(0))?;
    let sum = addition(ty)?;
    let to_apply = cx.draft.module().push(sum)?;
    let sum = cx.add(Reduce { dimensions, to_apply }, &[product, zero])?;
    let sum = cx.transpose(sum, order)?;
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

/// The most multiplications of a product of complex numbers that is sums by itself: a call of its kernel takes longer.
const MAX_COMPLEX_PRODUCTS: usize = 1 << 12;
/// The most results of a product of complex numbers that is sums, if these go down both operands, ...
const MAX_DOWN_BOTH: usize = 1 << 10;
/// ... down the left one only, ...
const MAX_DOWN_LEFT: usize = 1 << 6;
/// ... or along its rows, ...
const MAX_ALONG_ROWS: usize = 1 << 8;
/// ... and the most of these rows. (Kernels would pack both operands number by number. 2000 numbers for each of 8×8
/// results take, in this order, 91, 106 and 32 or 48 µs, written out 16, 61 and 16 or 13.)
const MAX_ROWS_ALONG: usize = 16;

/// The most bits of all results of a product of real numbers that is sums down both operands, ...
const MAX_DOWN_BOTH_BITS: usize = 320;
/// ... if these have more products to add. (A kernel for a few rows takes 10.5 µs for 10,000 products and up to a vector of
/// columns; sums of f64 19 for 3×3 results and 45 for 4×4. For 40 products its call takes longer.)
const SHORT_SUM: usize = 128;

/// dot(x, y) → reduce(multiply(x, y)), both repeated for the other's dimensions, if these are a few rows and columns and
/// products to add are many, in the same order in both operands: tiles of a product's kernels would be mostly empty; and
/// of complex numbers if there is little to multiply, or there are more rows and columns, but not many.
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
    let are_few = rows * cols > 1 && rows.max(cols) <= MAX_SIDE && added >= MIN_ADDED;
    let results = rows.saturating_mul(cols);
    let is_small =
        ty.is_complex() && (1..=MAX_COMPLEX_PRODUCTS).contains(&results.saturating_mul(added));
    let may_pay = are_few || ty.is_complex() && results > 1 && results <= MAX_DOWN_BOTH;
    if !may_pay && !is_small || op.algorithm.is_some() || !dims.lhs_batch.is_empty() {
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
    let most = match (at > 0, at_of_rhs > 0) {
        (true, true) => MAX_DOWN_BOTH,
        (true, false) => MAX_DOWN_LEFT,
        (false, _) if rows <= MAX_ROWS_ALONG => MAX_ALONG_ROWS,
        (false, _) => 0,
    };
    let steps = dims.lhs_contracting.len();
    let is_down_both = at == steps && at_of_rhs == steps;
    let pays = match ty.is_complex() {
        true => are_few || is_small || added >= MIN_ADDED && results <= most,
        false if is_down_both => results * ty.bits() <= MAX_DOWN_BOTH_BITS || added <= SHORT_SUM,
        false => at > 0,
    };
    if !pays {
        return Ok(None);
    }
    let rows = (0..lhs_free.len()).map(Loop::Row);
    let columns = (0..rhs_free.len()).map(Loop::Column);
    let between = is_small && at_of_lhs == 0 && at_of_rhs == steps;
    let order: Vec<Loop> = match between {
        true => rows.chain((0..steps).map(Loop::Step)).chain(columns).collect(),
        false => {
            let [before, after] = [0..at, at..steps].map(|steps| steps.map(Loop::Step));
            before.chain(rows).chain(columns).chain(after).collect()
        }
    };
    sum_over(cx, op, ty, [lhs, rhs], &order)
}

/// A loop of a product.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Loop {
    /// Over a dimension of the batch,
    Batch(usize),
    /// a free one of the left operand,
    Row(usize),
    /// a free one of the right operand,
    Column(usize),
    /// or one that is contracted.
    Step(usize),
}

/// reduce(multiply(x, y)), both repeated for the other's dimensions, with the dimensions of the product in this order.
/// `None` if the product is no array for its size.
fn sum_over(
    cx: &mut Simplifier<'_, '_>,
    op: &Dot,
    ty: ElementType,
    operands: [InstrId; 2],
    order: &[Loop],
) -> Result<Option<InstrId>> {
    let dims = &op.dims;
    let [Some(x), Some(y)] = operands.map(|id| cx.draft.array(id).cloned()) else {
        return Ok(None);
    };
    let (lhs_free, rhs_free) = (dims.lhs_free(x.rank()), dims.rhs_free(y.rank()));
    let size = |&each: &Loop| match each {
        Loop::Batch(i) => x.dims()[dims.lhs_batch[i]],
        Loop::Row(i) => x.dims()[lhs_free[i]],
        Loop::Column(i) => y.dims()[rhs_free[i]],
        Loop::Step(i) => x.dims()[dims.lhs_contracting[i]],
    };
    let sizes: Vec<usize> = order.iter().map(size).collect();
    // (So many dimensions or elements may be more than an array has.)
    let Ok(shape) = ArrayShape::new(ty, sizes) else { return Ok(None) };
    let place = |wanted: Loop| order.iter().position(|&each| each == wanted);
    let mut factors = operands;
    for (side, factor) in factors.iter_mut().enumerate() {
        let (array, batch, contracting, free) = match side {
            0 => (&x, &dims.lhs_batch, &dims.lhs_contracting, &lhs_free),
            _ => (&y, &dims.rhs_batch, &dims.rhs_contracting, &rhs_free),
        };
        let own = if side == 0 { Loop::Row } else { Loop::Column };
        let loop_of = |d: usize| {
            let among = |list: &[usize]| list.iter().position(|&other| other == d);
            let shared = among(batch).map(Loop::Batch).or(among(contracting).map(Loop::Step));
            shared.or(among(free).map(own)).and_then(place)
        };
        let dimensions = (0..array.rank()).filter_map(loop_of).collect();
        let operand = converted(cx, *factor, ty)?;
        *factor = cx.add(Broadcast { shape: shape.clone(), dimensions }, &[operand])?;
    }
    let product = cx.add(BinaryOp::Multiply, &factors)?;
    let zero = cx.scalar(ty, Number::Int(0))?;
    let sum = addition(ty)?;
    let to_apply = cx.draft.module().push(sum)?;
    let is_step = |each: &Loop| matches!(each, Loop::Step(_));
    let dimensions = (0..order.len()).filter(|&i| is_step(&order[i])).collect();
    let sum = cx.add(Reduce { dimensions, to_apply }, &[product, zero])?;
    // The result has batch dimensions first, then rows.
    let kept: Vec<Loop> = order.iter().copied().filter(|each| !is_step(each)).collect();
    let batch = (0..dims.lhs_batch.len()).map(Loop::Batch);
    let wanted = batch.chain((0..lhs_free.len()).map(Loop::Row));
    let wanted = wanted.chain((0..rhs_free.len()).map(Loop::Column));
    let permutation: Vec<usize> =
        wanted.filter_map(|wanted| kept.iter().position(|&each| each == wanted)).collect();
    let sum = match permutation.is_sorted() {
        true => sum,
        false => cx.add(Transpose { permutation }, &[sum])?,
    };
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
    let is_empty = x.element_count() == 0 || y.element_count() == 0;
    if is_empty
        || !are_side_by_side
        || !are_few
        || matrices < MIN_MATRICES
        || op.algorithm.is_some()
    {
        return Ok(None);
    }
    let order: Vec<Loop> = (0..lhs_free.len())
        .map(Loop::Row)
        .chain((0..rhs_free.len()).map(Loop::Column))
        .chain((0..dims.lhs_contracting.len()).map(Loop::Step))
        .chain((0..batches).map(Loop::Batch))
        .collect();
    sum_over(cx, op, ty, [lhs, rhs], &order)
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
