//! Products against plain loops, on every instruction set of the machine.

use super::*;
use crate::kernels::bytes::{Aligned, bytes_of, bytes_of_mut, cast, cast_mut};
use crate::{FloatMode, Pool};

/// Small whole numbers, whose sums of products no rounding touches.
fn numbers(count: usize, seed: usize) -> Vec<i32> {
    (0..count).map(|i| ((i * 7919 + seed * 104_729) % 17) as i32 - 8).collect()
}

/// All the indices of some dimensions, as offsets in lhs, rhs and out.
fn indices(dims: &[Dim]) -> Vec<[usize; 3]> {
    let mut all = vec![[0; 3]];
    for dim in dims {
        let step = |[l, r, o]: [usize; 3], i| [l + i * dim.lhs, r + i * dim.rhs, o + i * dim.out];
        all = all.into_iter().flat_map(|at| (0..dim.size).map(move |i| step(at, i))).collect();
    }
    all
}

/// The product by plain loops, in the memory where it belongs, of the operands' lengths.
fn expected(dims: [&[Dim]; 4], lhs: &[i32], rhs: &[i32], out: &mut [i32]) {
    let [batch, rows, cols, steps] = dims.map(indices);
    for b in &batch {
        for r in &rows {
            for c in &cols {
                let sum = steps.iter().map(|s| lhs[b[0] + r[0] + s[0]] * rhs[b[1] + c[1] + s[1]]);
                out[b[2] + r[2] + c[2]] = sum.sum();
            }
        }
    }
}

/// The length of memory that holds all offsets in an operand or the result.
fn len(dims: [&[Dim]; 4], operand: usize) -> usize {
    let last = |axis: Vec<[usize; 3]>| axis.iter().map(|at| at[operand]).max().unwrap_or(0);
    dims.map(indices).map(last).iter().sum::<usize>() + 1
}

/// Compares all ways to compute this product.
fn check(dims: [&[Dim]; 4]) {
    // As in programs, unless they ask for something else: with the instructions for `bf16`.
    let _mode = FloatMode::FlushToZero.enter();
    let (lhs, rhs) = (numbers(len(dims, 0), 1), numbers(len(dims, 1), 2));
    let mut want = vec![77; len(dims, 2)];
    expected(dims, &lhs, &rhs, &mut want);
    let pool = Pool::new(2);
    let product = Contraction::new(dims[0], dims[1], dims[2], dims[3]);
    let f32s = |values: &[i32]| values.iter().map(|&v| v as f32).collect::<Vec<_>>();
    for isa in Isa::all() {
        for threads in [Threads::single(), pool.threads(2)] {
            let mut out = vec![77.0; want.len()];
            product.float(isa, &f32s(&lhs), &f32s(&rhs), &mut out, None, threads);
            assert!(out == f32s(&want), "f32 on {isa:?}, {dims:?}");
            if indices(dims[0]).len() == 1 {
                let mut packed = vec![77.0; product.packed_len(isa)];
                product.pack_on(isa, &f32s(&rhs), &mut packed, threads);
                let mut out = vec![77.0; want.len()];
                let operands = [&f32s(&lhs)[..], &packed];
                product.compute_packed_on(isa, operands, &mut out, None, threads);
                assert!(out == f32s(&want), "packed f32 on {isa:?}, {dims:?}");
            }
            for types in TYPES {
                // Where a type has no negative numbers there are none.
                let [lhs, rhs] = [(&lhs, types.lhs), (&rhs, types.rhs)].map(|(values, number)| {
                    let unsigned = format!("{number:?}").starts_with('U');
                    values.iter().map(|v| if unsigned { v.abs() } else { *v }).collect::<Vec<_>>()
                });
                let mut want = vec![77; want.len()];
                let mut out = encode(&want, types.out);
                expected(dims, &lhs, &rhs, &mut want);
                let [lhs, rhs] = [encode(&lhs, types.lhs), encode(&rhs, types.rhs)];
                let operands = [&lhs, &rhs].map(|bytes| &**bytes);
                product.compute_on(isa, types, operands, &mut out, None, threads);
                let want = encode(&want, types.out);
                assert!(*out == *want, "{types:?} on {isa:?}, {dims:?}");

                if isa != Isa::best() {
                    continue;
                }
                let mut out = encode(&vec![77; len(dims, 2)], types.out);
                let [lhs, rhs] = operands;
                let call =
                    types::Call { isa, types, lhs, rhs, epilogue: Epilogue::default(), threads };
                let tiles = amx::OnTiles { product: &product, call: &call, out: &mut out };
                if amx::with_tiles_of::<amx::Model>(types, tiles) {
                    assert!(*out == *want, "{types:?} in tiles, {dims:?}");
                }
            }
        }
    }
    check_complex(dims, &product);
}

const TYPES: [Types; 16] = {
    use ProductType::*;
    const fn types(lhs: ProductType, rhs: ProductType, out: ProductType) -> Types {
        Types { lhs, rhs, out }
    }
    [
        types(F64, F64, F64),
        types(Bf16, Bf16, Bf16),
        types(Bf16, Bf16, F32),
        types(F16, F16, F16),
        types(F16, Bf16, F32),
        types(F32, F16, F64),
        types(S8, S8, S32),
        types(U8, U8, S32),
        types(U8, S8, U32),
        types(S8, U8, S32),
        types(S8, U8, S8),
        types(S16, S8, S32),
        types(S16, S16, S16),
        types(U16, S32, S32),
        types(U32, S16, U64),
        types(S64, S64, S64),
    ]
};

/// Numbers of this type as bytes, aligned; negative ones wrap around in unsigned types.
pub(super) fn encode(values: &[i32], number: ProductType) -> Aligned {
    let encode = |&v: &i32| -> Vec<u8> {
        match number {
            ProductType::S8 | ProductType::U8 => vec![v as u8],
            ProductType::S16 | ProductType::U16 => (v as i16).to_ne_bytes().into(),
            ProductType::S32 | ProductType::U32 => v.to_ne_bytes().into(),
            ProductType::S64 | ProductType::U64 => i64::from(v).to_ne_bytes().into(),
            ProductType::F16 => F16::from_f32(v as f32).0.to_ne_bytes().into(),
            ProductType::Bf16 => Bf16::from_f32(v as f32).0.to_ne_bytes().into(),
            ProductType::F32 => (v as f32).to_ne_bytes().into(),
            ProductType::F64 => f64::from(v).to_ne_bytes().into(),
            ProductType::C64 | ProductType::C128 => {
                unreachable!("complex numbers are checked apart")
            }
        }
    };
    Aligned::new(&values.iter().flat_map(encode).collect::<Vec<u8>>())
}

/// Compares products of complex numbers.
fn check_complex(dims: [&[Dim]; 4], product: &Contraction) {
    let complex = |count, seed| -> Vec<[f64; 2]> {
        let part = |seed| numbers(count, seed).into_iter().map(f64::from);
        part(seed).zip(part(seed + 2)).map(|(re, im)| [re, im]).collect()
    };
    let (lhs, rhs) = (complex(len(dims, 0), 1), complex(len(dims, 1), 2));
    let mut want = vec![[77.0, 77.0]; len(dims, 2)];
    let f32s = |values: &[[f64; 2]]| -> Vec<[f32; 2]> {
        values.iter().map(|v| v.map(|part| part as f32)).collect()
    };
    let mut out = want.clone();
    let mut out32 = f32s(&want);
    let [batch, rows, cols, steps] = dims.map(indices);
    for b in &batch {
        for r in &rows {
            for c in &cols {
                let mut sum = [0.0; 2];
                for s in &steps {
                    let [a, b] = [lhs[b[0] + r[0] + s[0]], rhs[b[1] + c[1] + s[1]]];
                    sum[0] += a[0] * b[0] - a[1] * b[1];
                    sum[1] += a[0] * b[1] + a[1] * b[0];
                }
                want[b[2] + r[2] + c[2]] = sum;
            }
        }
    }
    let (types, threads) = (Types::same(ProductType::C128), Threads::single());
    let (a, b) = (bytes_of(&lhs), bytes_of(&rhs));
    product.compute(types, a, b, bytes_of_mut(&mut out), None, threads);
    assert!(out == want, "c128, {dims:?}");
    let (types, a, b) = (Types::same(ProductType::C64), f32s(&lhs), f32s(&rhs));
    product.compute(types, bytes_of(&a), bytes_of(&b), bytes_of_mut(&mut out32), None, threads);
    assert!(out32 == f32s(&want), "c64, {dims:?}");
}

fn dim(size: usize, [lhs, rhs, out]: [usize; 3]) -> Dim {
    Dim { size, lhs, rhs, out }
}

/// Dense operands, transposed or not.
fn check_sizes(batch: usize, rows: usize, steps: usize, cols: usize) {
    let batch = [dim(batch, [rows * steps, steps * cols, rows * cols])];
    for lhs_transposed in [false, true] {
        for rhs_transposed in [false, true] {
            let (row, lhs_step) = if lhs_transposed { (1, rows) } else { (steps, 1) };
            let (col, rhs_step) = if rhs_transposed { (steps, 1) } else { (1, cols) };
            let row = [dim(rows, [row, 0, cols])];
            let col = [dim(cols, [0, col, 1])];
            check([&batch, &row, &col, &[dim(steps, [lhs_step, rhs_step, 0])]]);
        }
    }
}

#[test]
fn small_under_miri() {
    // One with all operands dense, one with both turned: all transpositions of three sizes take Miri more than
    // half an hour.
    let dims = |[lhs_row, lhs_step, rhs_col, rhs_step]: [usize; 4]| {
        [
            [dim(1, [0; 3])],
            [dim(2, [lhs_row, 0, 5])],
            [dim(5, [0, rhs_col, 1])],
            [dim(3, [lhs_step, rhs_step, 0])],
        ]
    };
    for strides in [[3, 1, 1, 5], [1, 2, 3, 1]] {
        check(dims(strides).each_ref().map(|dims| &dims[..]));
    }
}

#[test]
fn sizes_around_tiles_and_blocks() {
    // Every number of rows of a tile, and of lanes of its last vector.
    for i in 1..=35 {
        check_sizes(1, i, 3 + i % 5, 36 - i);
    }
    check_sizes(3, 4, 5, 6);
    check_sizes(1, 57, 40, 70);
    check_sizes(1, 263, 33, 17);
    check_sizes(1, 3, 700, 23);
    check_sizes(1, 70, 2, 531);
    check_sizes(1, 1, 5, 4200);
    // Several blocks of steps, of pairs, too; a right operand in long rows, for many rows.
    check_sizes(1, 15, 1100, 40);
    check_sizes(1, 2, 2075, 3);
    check_sizes(1, 350, 3, 530);
    // Half a vector or less behind whole ones.
    for (rows, cols) in [(14, 8), (28, 24), (41, 21), (100, 40), (12, 70)] {
        check_sizes(1, rows, 9, cols);
    }
}

#[test]
fn few_rows() {
    // Several blocks of columns, and rows so short that many are taken at once.
    for rows in 1..=5 {
        check_sizes(1, rows, 21, 2100);
        check_sizes(1, rows, 300, 70);
        check_sizes(2, rows, 520, 64);
    }
    // Along the steps.
    for (few, many) in (1..=9).map(|few| (few, 23 - few)) {
        let steps = dim(67, [1, 1, 0]);
        check([&[], &[dim(few, [67, 0, many])], &[dim(many, [0, 67, 1])], &[steps]]);
        check([&[], &[dim(many, [67, 0, few])], &[dim(few, [0, 67, 1])], &[steps]]);
    }
    // Along lines of steps.
    for few in 1..=5 {
        let lines = [dim(3, [500, 70 * few, 0]), dim(70, [1, few, 0])];
        check([&[], &[dim(21, [4, 0, few])], &[dim(few, [0, 1, 1])], &lines]);
    }
}

#[test]
fn few_steps_of_many_rows() {
    // Whole tiles and a last one that has rows of the one before; all kinds of last vectors, and columns that go
    // elsewhere; steps that are taken at once, and those that are left.
    let sizes = [
        (112, 1, 8),
        (113, 4, 16),
        (125, 7, 24),
        (126, 16, 32),
        (131, 30, 45),
        (239, 128, 72),
        (112, 129, 40),
    ];
    for (rows, steps, cols) in sizes {
        // Rows that follow each other, and rows with others between them.
        for apart in [0, 3] {
            let row = [dim(rows, [steps + apart, 0, cols + apart])];
            for [col, rhs_step] in [[1, cols + apart], [steps, 1]] {
                check([&[], &row, &[dim(cols, [0, col, 1])], &[dim(steps, [1, rhs_step, 0])]]);
            }
        }
    }
    // Panels that are asked for; several tasks.
    check_sizes(1, 140, 126, 900);
    check_sizes(1, 2300, 20, 48);
    // Rows of images with padding between them are not equally far from each other.
    let rows = [dim(20, [500, 0, 20 * 24]), dim(20, [24, 0, 24])];
    check([&[], &rows, &[dim(24, [0, 1, 1])], &[dim(20, [1, 24, 0])]]);
    // Positions and taps of windows: rows and steps in runs, of which a block has some, or tasks.
    for (images, positions, taps, cols) in
        [(5, 28, 9, 24), (9, 27, 3, 16), (3, 42, 5, 40), (7, 17, 8, 16), (60, 41, 9, 32)]
    {
        let rows = [dim(images, [400, 0, positions * cols]), dim(positions, [6, 0, cols])];
        let steps = [dim(3, [130, taps * cols, 0]), dim(taps, [1, cols, 0])];
        check([&[], &rows, &[dim(cols, [0, 1, 1])], &steps]);
        // The result has others between its rows, too.
        let rows = [dim(images, [400, 0, (positions + 2) * cols]), dim(positions, [6, 0, cols])];
        check([&[], &rows, &[dim(cols, [0, 1, 1])], &steps]);
    }
}

#[test]
fn sums_that_wait_for_more_sub_blocks() {
    use ProductType::*;
    // Several tiles of rows, groups of columns and sub-blocks of steps, the last of each not whole; of `bf16` several
    // blocks of steps as well.
    let (rows, cols) = (39, 270);
    let _mode = FloatMode::FlushToZero.enter();
    for (lhs, rhs, out, steps) in [
        (Bf16, Bf16, Bf16, 2085),
        (Bf16, Bf16, F32, 2085),
        (Bf16, Bf16, Bf16, 515),
        (U8, S8, S32, 1023),
    ] {
        let types = Types { lhs, rhs, out };
        let (lhs, rhs) = (numbers(rows * steps, 1), numbers(steps * cols, 2));
        let lhs: Vec<i32> =
            lhs.iter().map(|v| if types.lhs == U8 { v.abs() } else { *v }).collect();
        for [[row, lhs_step], [col, rhs_step]] in
            [[[steps, 1], [1, cols]], [[1, rows], [1, cols]], [[steps, 1], [steps, 1]]]
        {
            let (row, cols) = ([dim(rows, [row, 0, cols])], [dim(cols, [0, col, 1])]);
            let dims = [&[], &row[..], &cols, &[dim(steps, [lhs_step, rhs_step, 0])]];
            let mut want = vec![0; len(dims, 2)];
            expected(dims, &lhs, &rhs, &mut want);
            let product = Contraction::new(dims[0], dims[1], dims[2], dims[3]);
            let want = encode(&want, out);
            let operands = [encode(&lhs, types.lhs), encode(&rhs, types.rhs)];
            let [lhs, rhs] = operands.each_ref().map(|bytes| &**bytes);
            let pool = Pool::new(2);
            for threads in [Threads::single(), pool.threads(2)] {
                let mut sums = encode(&vec![77; len(dims, 2)], out);
                product.compute_on(Isa::best(), types, [lhs, rhs], &mut sums, None, threads);
                assert!(*sums == *want, "{types:?}, {steps} steps");
            }
            let mut sums = encode(&vec![77; len(dims, 2)], out);
            let (isa, threads, epilogue) = (Isa::best(), Threads::single(), Epilogue::default());
            let call = types::Call { isa, types, lhs, rhs, epilogue, threads };
            let tiles = amx::OnTiles { product: &product, call: &call, out: &mut sums };
            assert!(amx::with_tiles_of::<amx::Model>(types, tiles));
            assert!(*sums == *want, "{types:?} in tiles, {steps} steps");
        }
    }
}

#[test]
fn rhs_larger_than_the_caches() {
    // One tile and several, one block of steps and several, with last panels and lines that are not whole.
    for (rows, steps, cols) in [(5, 300, 901), (17, 1100, 270), (300, 570, 470)] {
        let pool = Pool::new(2);
        let (lhs, rhs) = (numbers(rows * steps, 1), numbers(steps * cols, 2));
        for [col, step] in [[1, cols], [steps, 1]] {
            let row = [dim(rows, [steps, 0, cols])];
            let dims = [dim(cols, [0, col, 1])];
            let dims = [&[], &row[..], &dims, &[dim(steps, [1, step, 0])]];
            let mut want = vec![0; rows * cols];
            expected(dims, &lhs, &rhs, &mut want);
            let product = Contraction::new(dims[0], dims[1], dims[2], dims[3]);
            for number in [ProductType::F32, ProductType::Bf16, ProductType::S16] {
                let out =
                    if number == ProductType::S16 { ProductType::S32 } else { ProductType::F32 };
                let types = Types { lhs: number, rhs: number, out };
                let [lhs, rhs] = [&lhs, &rhs].map(|values| encode(values, number));
                let (operands, want) = ([&*lhs, &*rhs], encode(&want, out));
                for (isa, count) in Isa::all().zip([1, 2, 1].into_iter().cycle()) {
                    let mut sums = encode(&vec![77; rows * cols], out);
                    product.compute_on(isa, types, operands, &mut sums, None, pool.threads(count));
                    assert!(*sums == *want, "{types:?} on {isa:?}, {rows} by {steps} by {cols}");
                    if number == ProductType::F32 {
                        let threads = pool.threads(count);
                        let mut packed = vec![77.0; product.packed_len(isa)];
                        product.pack_on(isa, cast(&rhs), &mut packed, threads);
                        let mut sums = encode(&vec![77; rows * cols], out);
                        let (operands, out) = ([cast(&lhs), &packed], cast_mut(&mut sums));
                        product.compute_packed_on(isa, operands, out, None, threads);
                        assert!(*sums == *want, "packed on {isa:?}, {rows} by {steps} by {cols}");
                    }
                }
            }
        }
    }
}

#[test]
fn dots_of_what_no_cache_holds_are_the_same_in_either_direction() {
    // More than half of a second-level cache, in parts the last of which is not whole; as rhs and as lhs.
    let (steps, many) = (701, 1501);
    let (few, items) = (numbers(steps, 1), numbers(steps * many, 2));
    let sum = |item: usize| {
        let pairs = few.iter().zip(&items[item * steps..]);
        pairs.map(|(&a, &b)| a * b).sum::<i32>()
    };
    let want: Vec<f32> = (0..many).map(|item| sum(item) as f32).collect();
    let [few, items] = [&few, &items].map(|values| encode(values, ProductType::F32));
    let pool = Pool::new(2);
    let one = [dim(1, [0, 0, 0])];
    let [as_rhs, as_lhs] = [[0, steps, 1], [steps, 0, 1]].map(|strides| [dim(many, strides)]);
    let sums = [dim(steps, [1, 1, 0])];
    let rhs_many = Contraction::new(&[], &one, &as_rhs, &sums);
    let lhs_many = Contraction::new(&[], &as_lhs, &one, &sums);
    for (product, operands) in [(rhs_many, [&*few, &*items]), (lhs_many, [&*items, &*few])] {
        // (The same operand again and again: in turns from its beginning and from its end on.)
        for (isa, count) in Isa::all().flat_map(|isa| [(isa, 1), (isa, 1), (isa, 2), (isa, 2)]) {
            let mut sums = encode(&vec![77; many], ProductType::F32);
            let (types, threads) = (Types::same(ProductType::F32), pool.threads(count));
            product.compute_on(isa, types, operands, &mut sums, None, threads);
            assert!(cast::<f32>(&sums) == want, "on {isa:?}, {count} threads");
        }
    }
}

#[test]
fn few_rows_and_columns_of_the_largest_bytes() {
    // Along the steps and by rows of the matrix, with last vectors that are not whole.
    let (batch, steps) = (2, 70);
    for (rows, cols) in [(3, 37), (37, 3), (1, 16), (4, 33)] {
        for [col, step] in [[1, cols], [steps, 1]] {
            let row = [dim(rows, [steps, 0, cols])];
            let dims = [
                &[dim(batch, [rows * steps, steps * cols, rows * cols])][..],
                &row,
                &[dim(cols, [0, col, 1])],
                &[dim(steps, [1, step, 0])],
            ];
            for (number, extremes) in [(ProductType::S8, [-128, 127]), (ProductType::U8, [255, 0])]
            {
                let values = |count: usize, seed: usize| -> Vec<i32> {
                    (0..count).map(|i| extremes[(i * i + seed) % 7 % 2]).collect()
                };
                let (lhs, rhs) = (values(batch * rows * steps, 0), values(batch * steps * cols, 1));
                let mut want = vec![0; batch * rows * cols];
                expected(dims, &lhs, &rhs, &mut want);
                let product = Contraction::new(dims[0], dims[1], dims[2], dims[3]);
                let types = Types { lhs: number, rhs: number, out: ProductType::S32 };
                let [lhs, rhs] = [&lhs, &rhs].map(|values| encode(values, number));
                for isa in Isa::all() {
                    let mut out = encode(&vec![77; want.len()], ProductType::S32);
                    let operands = [&*lhs, &*rhs];
                    product.compute_on(isa, types, operands, &mut out, None, Threads::single());
                    let sums: &[i32] = cast(&out);
                    assert!(*sums == want, "{number:?} on {isa:?}, {rows} by {cols}");
                }
            }
        }
    }
}

#[test]
fn batches_of_small_products() {
    for i in 1..=20 {
        check_sizes(2 + i % 3, i, 1 + i % 7, 21 - i);
    }
    check_sizes(5, 3, 40, 40);
    check_sizes(2, 17, 9, 50);
    // Too many multiplications for one row, and for a task.
    check_sizes(3, 1, 60, 70);
    check_sizes(9, 40, 50, 40);
    check_sizes(2, 3, 600, 4);
    // Along the steps, of either operand.
    check_sizes(4, 1, 37, 1);
    check_sizes(3, 2, 16, 11);
    check_sizes(3, 13, 21, 4);
    // Few columns, which are turned.
    check_sizes(3, 33, 21, 4);
    check_sizes(2, 70, 65, 7);
    check_sizes(4, 20, 40, 2);
    // Narrow numbers that become words, with few rows and few columns.
    check_sizes(3, 8, 300, 16);
    check_sizes(3, 64, 30, 8);
    check_sizes(2, 16, 64, 64);
}

#[test]
fn nothing_to_sum_gives_zero_and_nothing_to_write_is_left_alone() {
    for (batch, rows, steps, cols) in [(1, 3, 0, 5), (0, 2, 2, 2), (1, 0, 2, 2), (2, 2, 2, 0)] {
        check_sizes(batch, rows, steps, cols);
    }
}

#[test]
fn dimensions_that_do_not_join() {
    // out[b0, b1, r0, r1, c] of lhs[b1, r1, s0, b0, r0, s1] and rhs[s1, b0, c, b1, s0].
    let (b0, b1, r0, r1, c, s0, s1) = (2, 3, 5, 4, 37, 6, 7);
    check([
        &[
            dim(b0, [r0 * s1, c * b1 * s0, b1 * r0 * r1 * c]),
            dim(b1, [r1 * s0 * b0 * r0 * s1, s0, r0 * r1 * c]),
        ],
        &[dim(r0, [s1, 0, r1 * c]), dim(r1, [s0 * b0 * r0 * s1, 0, c])],
        &[dim(c, [0, b1 * s0, 1])],
        &[dim(s0, [b0 * r0 * s1, 1, 0]), dim(s1, [1, b0 * c * b1 * s0, 0])],
    ]);
}

#[test]
fn the_result_may_have_gaps_and_any_order_of_rows() {
    check([
        &[dim(3, [35, 0, 5])],
        &[dim(7, [5, 0, 31])],
        &[dim(5, [0, 1, 1])],
        &[dim(5, [1, 5, 0])],
    ]);
}

#[test]
#[should_panic(expected = "the elements of the result are apart")]
fn rows_of_the_result_must_not_overlap() {
    Contraction::new(&[], &[dim(3, [1, 0, 4])], &[dim(5, [0, 1, 1])], &[]);
}

#[test]
#[should_panic(expected = "the operand lies in its memory")]
fn operands_must_be_long_enough() {
    let mut out = [0.0; 4];
    Contraction::dense(1, 2, 2, 2).f32(&[0.0; 3], &[0.0; 4], &mut out, None, Threads::single());
}

#[test]
fn complete_sums_are_finished_once() {
    let pool = Pool::new(2);
    // In whole rows, in several groups of columns, after several blocks of steps; dots, and a sweep.
    for (batch, rows, steps, cols) in
        [(2, 35, 40, 60), (1, 300, 70, 530), (1, 20, 1100, 2100), (3, 1, 50, 70), (1, 1, 9, 4000)]
    {
        let (lhs, rhs) = (vec![1.0; batch * rows * steps], vec![2.0; batch * steps * cols]);
        let add_place = |from: usize, sums: &mut [f32]| {
            assert!(from.is_multiple_of(cols) && sums.len().is_multiple_of(cols), "whole rows");
            for (i, sum) in sums.iter_mut().enumerate() {
                *sum += (from + i) as f32;
            }
        };
        for threads in [Threads::single(), pool.threads(2)] {
            let mut out = vec![0.0; batch * rows * cols];
            let product = Contraction::dense(batch, rows, steps, cols);
            product.f32(&lhs, &rhs, &mut out, Some(&add_place), threads);
            for (i, sum) in out.into_iter().enumerate() {
                assert_eq!(sum, (2 * steps + i) as f32);
            }
            if batch == 1 {
                let mut packed = vec![0.0; product.packed_len(Isa::best())];
                product.pack_on(Isa::best(), &rhs, &mut packed, threads);
                let mut out = vec![0.0; rows * cols];
                let finish = |from: usize, bytes: &mut [u8]| {
                    add_place(from / size_of::<f32>(), cast_mut(bytes));
                };
                let operands = [&lhs[..], &packed];
                product.compute_packed_on(Isa::best(), operands, &mut out, Some(&finish), threads);
                for (i, sum) in out.into_iter().enumerate() {
                    assert_eq!(sum, (2 * steps + i) as f32);
                }
            }
        }
    }
}

/// Compares tiles of whole vectors with those of any, bit by bit: wherever rows of lhs lie, whatever memory is asked
/// for, and whether steps are one run or several.
#[cfg(target_arch = "x86_64")]
fn check_whole_tiles<W: Plain, A: Plain + Default + PartialEq + std::fmt::Debug>(
    tiled: &dyn Tiled<W, A>,
    word: impl Fn(usize) -> W,
) {
    use super::tile::{Ahead, MAX_ROWS, Run, Tile, TileArgs};
    let format = tiled.format();
    let (width, most) = (format.width(), 45);
    let words: Vec<W> = (0..format.rows() * most * 2).map(&word).collect();
    let rhs: Vec<W> = (0..width * most).map(|i| word(i + 3)).collect();
    let mut compared = 0;
    for &rows in format.heights {
        for (packed, distance) in
            [(true, 0), (false, most), (false, most + 5), (false, most.wrapping_neg())]
        {
            // Tiles, the vectors of their rows, and how many lanes of the last one count.
            let whole = (1..=format.vecs).filter_map(|vecs| {
                tiled.whole_tile(rows, vecs, packed).map(|tile| (tile, vecs, format.lanes))
            });
            let halves = (1..=format.vecs).filter_map(|vecs| {
                let tile = tiled.half_tile(rows, vecs - 1, packed)?;
                Some([1, format.lanes / 2 - 1, format.lanes / 2].map(|lanes| (tile, vecs, lanes)))
            });
            let tiles: Vec<_> = whole.chain(halves.flatten()).collect();
            for lens in [&[1][..], &[2], &[8], &[17], &[most], &[3, 3, 3], &[9, 16], &[21, 1, 2]] {
                let steps: usize = lens.iter().sum();
                let mut runs = Vec::new();
                for &len in lens {
                    let offset = runs.last().map_or(0, |run: &Run| run.offset + run.len);
                    runs.push(Run { offset, len });
                }
                let runs = if packed { vec![Run { offset: 0, len: steps }] } else { runs };
                let first = if distance > most * 2 { (rows - 1) * most } else { 0 };
                let lhs_rows: [usize; MAX_ROWS] =
                    std::array::from_fn(|i| first.wrapping_add(i.wrapping_mul(distance)));
                let out_rows: [usize; MAX_ROWS] = std::array::from_fn(|i| i * width);
                let place = rhs.as_ptr().cast::<u8>();
                let column = Ahead {
                    start: place,
                    pace: 1 << 31,
                    stride: 64,
                    column_log2: 2,
                    next_column: 8,
                };
                for ahead in [Ahead::nothing(place), Ahead::rows(place, 16, 1 << 32), column] {
                    assert!(ahead.suits_pairs(width * size_of::<W>()), "{ahead:?}");
                    for (&(tile, vecs, last_lanes), add) in
                        tiles.iter().flat_map(|tile| [(tile, false), (tile, true)])
                    {
                        let compute = |tile: Tile<W, A>| {
                            let mut out = vec![A::default(); rows * width];
                            let args = TileArgs {
                                session: &(),
                                rows,
                                vecs,
                                lhs: words.as_ptr(),
                                lhs_rows: &lhs_rows,
                                runs: &runs,
                                lhs_step: 1,
                                rhs: rhs.as_ptr(),
                                rhs_step: width,
                                out: out.as_mut_ptr(),
                                out_rows: &out_rows,
                                out_is_even: true,
                                last_lanes,
                                add,
                                ahead,
                            };
                            // SAFETY: the token proves the features; all steps of all rows are among the words.
                            unsafe { tile(&args) };
                            out
                        };
                        let want = compute(tiled.tile(rows, vecs, packed));
                        assert_eq!(
                            compute(tile),
                            want,
                            "{rows} rows, {vecs}, {last_lanes}, {packed}, {distance}, {lens:?}"
                        );
                        compared += 1;
                    }
                }
            }
        }
    }
    assert!(compared > 100, "{compared}");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn tiles_of_whole_vectors_are_tiles() {
    use super::simd::{Avx512Bf16, Avx512F32, Avx512F64, Avx512Vnni};
    let real = |i: usize| ((i * 7919) % 1009) as f32 / 97.0 - 5.0;
    // Halves of words that are numbers of like size.
    let pair = |i: usize| real(i).to_bits() >> 16 | real(i + 1).to_bits() & 0xffff_0000;
    let isa = Isa::best();
    if let Some(tiled) = Avx512F32::get(isa) {
        assert!(tiled.whole_tile(14, 1, false).is_some() && tiled.whole_tile(8, 2, true).is_some());
        assert!(tiled.half_tile(14, 1, false).is_some() && tiled.half_tile(12, 0, true).is_some());
        check_whole_tiles::<f32, f32>(tiled, real);
    }
    if let Some(tiled) = Avx512F64::get(isa) {
        check_whole_tiles::<f64, f64>(tiled, |i| real(i).into());
    }
    if let Some(tiled) = Avx512Bf16::get(isa) {
        check_whole_tiles::<u32, f32>(tiled, pair);
    }
    if let Some(tiled) = Avx512Vnni::get(isa) {
        check_whole_tiles::<u32, i32>(tiled, |i| (i as u32).wrapping_mul(0x9e37_79b9));
    }
}
