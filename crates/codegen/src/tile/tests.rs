//! Loops, memory and lanes; what operations compute is tested where they are used.

use super::*;
use crate::kernel::{Addr, BinOp, Buf, Builder, Cmp, Conv, Fold, Lane, Mem, UnOp, Value};

fn at(buf: Buf, terms: &[(Value, i64)], lane_stride: i64) -> Addr {
    Addr { buf, offset: 0, terms: terms.to_vec(), lane_stride }
}

fn bytes(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|x| x.to_ne_bytes()).collect()
}

fn ints(bytes: &[u8]) -> Vec<i32> {
    bytes.chunks_exact(4).map(|x| i32::from_ne_bytes(x.try_into().unwrap())).collect()
}

/// `y = f(x)` over `n` elements of 32 bits, with a masked tail.
fn mapped(lanes: usize, n: usize, f: impl Fn(&mut Builder, Value) -> Value) -> Kernel {
    let mut b = Builder::new(lanes);
    b.set_range(n as i64, lanes as i64);
    let x = b.param(4 * n, true, false);
    let y = b.param(4 * n, false, true);
    let (lo, hi) = (b.begin(), b.end());
    b.for_loop(lo, hi, lanes as i64, &[], |b, i, _| {
        let mask = b.mask_below(i, hi);
        let value = b.load(Mem::I32, at(x, &[(i, 4)], 4), Some(mask));
        let value = f(b, value);
        b.store(value, Mem::I32, at(y, &[(i, 4)], 4), Some(mask));
        vec![]
    });
    b.finish()
}

#[test]
fn a_range_may_be_cut_and_updated_in_place() {
    for lanes in [1, 4, 16, 64] {
        let kernel = mapped(lanes, 100, |b, x| b.add(x, x));
        let data = bytes(&(0..100).collect::<Vec<_>>());
        let expected: Vec<i32> = (0..100).map(|x| 2 * x).collect();
        let mut out = vec![0; 400];
        run(&kernel, &mut [FunctionArg::Read(&data), FunctionArg::Write(&mut out)], 64, 100)
            .unwrap();
        run(&kernel, &mut [FunctionArg::Read(&data), FunctionArg::Write(&mut out)], 0, 64).unwrap();
        assert_eq!(ints(&out), expected);
        let mut data = data;
        run(&kernel, &mut [FunctionArg::Same(1), FunctionArg::Write(&mut data)], 0, 100).unwrap();
        assert_eq!(ints(&data), expected);
    }
}

#[test]
fn calls_that_do_not_fit_are_errors() {
    let kernel = mapped(4, 8, |_, x| x);
    let (data, mut out) = (vec![0; 32], vec![0; 32]);
    let call =
        |args: &mut [FunctionArg<'_>], end| run(&kernel, args, 0, end).unwrap_err().to_string();
    assert!(call(&mut [FunctionArg::Read(&data)], 8).contains("1 buffers for 2 parameters"));
    assert!(
        call(&mut [FunctionArg::Read(&data), FunctionArg::Read(&data)], 8)
            .contains("may not be written")
    );
    assert!(
        call(&mut [FunctionArg::Read(&data[4..]), FunctionArg::Write(&mut out)], 8)
            .contains("28 of 32")
    );
    assert!(
        call(&mut [FunctionArg::Same(0), FunctionArg::Write(&mut out)], 8)
            .contains("that of no other")
    );
    assert!(
        call(&mut [FunctionArg::Read(&data), FunctionArg::Write(&mut out)], 9)
            .contains("4 bytes at 32")
    );
}

#[test]
fn carried_values_move_at_once() {
    // (a, b) = (b, a + b) ten times.
    let mut b = Builder::new(4);
    let out = b.param(8, false, true);
    let (zero, ten) = (b.index(0), b.index(10));
    let init = [b.int(Lane::I32, 0), b.int(Lane::I32, 1)];
    let last = b.for_loop(zero, ten, 1, &init, |b, _, now| vec![now[1], b.add(now[0], now[1])]);
    b.store(last[0], Mem::I32, at(out, &[], 0), None);
    let four = b.index(4);
    b.store(last[1], Mem::I32, at(out, &[(four, 1)], 0), None);
    let mut found = [0; 8];
    run(&b.finish(), &mut [FunctionArg::Write(&mut found)], 0, 1).unwrap();
    assert_eq!(ints(&found), [55, 89]);
}

#[test]
fn loops_that_do_not_run_keep_what_they_were_given() {
    let mut b = Builder::new(4);
    let out = b.param(8, false, true);
    let seven = b.int(Lane::I32, 7);
    let zero = b.index(0);
    let first = b.for_loop(zero, zero, 1, &[seven], |b, _, x| vec![b.add(x[0], x[0])])[0];
    let second = b.while_loop(
        &[first],
        |b, x| b.compare(Cmp::Gt, x[0], seven),
        |b, x| vec![b.add(x[0], x[0])],
    )[0];
    let third = b.while_loop(
        &[second],
        |b, x| {
            let limit = b.int(Lane::I32, 1000);
            b.compare(Cmp::Lt, x[0], limit)
        },
        |b, x| vec![b.add(x[0], x[0])],
    )[0];
    b.store(second, Mem::I32, at(out, &[], 0), None);
    let four = b.index(4);
    b.store(third, Mem::I32, at(out, &[(four, 1)], 0), None);
    let mut found = [0; 8];
    run(&b.finish(), &mut [FunctionArg::Write(&mut found)], 0, 1).unwrap();
    assert_eq!(ints(&found), [7, 1792]);
}

#[test]
fn lanes_move_and_combine() {
    for lanes in [4usize, 32] {
        let kernel = mapped(lanes, lanes, |b, x| {
            let fill = b.int(Lane::I32, -1);
            let up = b.shift_up(x, fill, 3);
            let sum = b.reduce(Fold::Bin(BinOp::Add), x);
            let least = b.reduce(Fold::Bin(BinOp::Min), x);
            let ids = b.lane_ids(Lane::I32);
            let both = b.add(up, sum);
            let rest = b.add(least, ids);
            b.add(both, rest)
        });
        let data: Vec<i32> = (0..lanes as i32).map(|l| l - 1).collect();
        let sum: i32 = data.iter().sum();
        let expected: Vec<i32> =
            (0..lanes).map(|l| if l < 3 { -1 } else { data[l - 3] } + sum - 1 + l as i32).collect();
        let mut out = vec![0; 4 * lanes];
        let data = bytes(&data);
        let args = &mut [FunctionArg::Read(&data), FunctionArg::Write(&mut out)];
        run(&kernel, args, 0, lanes as i64).unwrap();
        assert_eq!(ints(&out), expected);
    }
}

#[test]
fn sums_combine_by_halves() {
    // In f32, (1e8 + -1e8) + (1 + 1) is 2, and in order it would be 1 + 1 too, but 1e8 + 1 loses 1.
    let kernel = mapped(4, 4, |b, x| {
        let x = b.convert(Conv::Bits, Lane::F32, x);
        let sum = b.reduce(Fold::Bin(BinOp::Add), x);
        b.convert(Conv::Bits, Lane::I32, sum)
    });
    let data: Vec<u8> = [1e8f32, 1.0, -1e8, 1.0].iter().flat_map(|x| x.to_ne_bytes()).collect();
    let mut out = vec![0; 16];
    run(&kernel, &mut [FunctionArg::Read(&data), FunctionArg::Write(&mut out)], 0, 4).unwrap();
    assert_eq!(f32::from_bits(ints(&out)[3] as u32), 2.0);
}

#[test]
fn elements_of_every_format_come_back() {
    use Mem::{BF16, F16, F32, F64, I8, I16, I32, I64, U8, U16};
    for mem in [U8, I8, U16, I16, I32, I64, F16, BF16, F32, F64] {
        let (n, size) = (8, mem.bytes());
        let mut b = Builder::new(n);
        let x = b.param(2 * n * size, true, false);
        let y = b.param(n * size, false, true);
        let z = b.param(n * size, false, true);
        // Every other element, then backwards through an index.
        let even = b.load(mem, at(x, &[], 2 * size as i64), None);
        b.store(even, mem, at(y, &[], size as i64), None);
        let ids = b.lane_ids(Lane::I64);
        let last = b.index(n as i64 - 1);
        let from = at(x, &[(last, size as i64)], 0);
        let back = b.gather(mem, from, ids, -(size as i64), None);
        b.store(back, mem, at(z, &[], size as i64), None);
        // No exponent is all ones, so that no format has a NaN.
        let data: Vec<u8> = (0..2 * n * size).map(|i| (i * 37 % 120) as u8).collect();
        let (mut y, mut z) = (vec![0; n * size], vec![0; n * size]);
        run(
            &b.finish(),
            &mut [FunctionArg::Read(&data), FunctionArg::Write(&mut y), FunctionArg::Write(&mut z)],
            0,
            1,
        )
        .unwrap();
        let elements: Vec<&[u8]> = data.chunks(size).collect();
        let even: Vec<&[u8]> = elements.iter().copied().step_by(2).collect();
        let back: Vec<&[u8]> = elements[..n].iter().rev().copied().collect();
        assert_eq!(y, even.concat(), "{mem:?}");
        assert_eq!(z, back.concat(), "{mem:?}");
    }
}

#[test]
fn stores_to_one_element_take_lane_0_and_masks_are_kept() {
    let mut b = Builder::new(4);
    let out = b.param(4, true, true);
    let ids = b.lane_ids(Lane::I32);
    let two = b.int(Lane::I32, 2);
    let low = b.compare(Cmp::Lt, ids, two);
    let high = b.mask_not(low);
    let value = b.add(ids, two);
    b.store(value, Mem::U8, at(out, &[], 0), Some(high));
    let zero = b.index(1);
    b.store(value, Mem::U8, at(out, &[(zero, 1)], 0), Some(low));
    let two_at = b.index(2);
    let read = b.load(Mem::U8, at(out, &[], 1), Some(low));
    let last = b.reduce(Fold::Bin(BinOp::Add), read);
    b.store(last, Mem::U8, at(out, &[(two_at, 1)], 0), None);
    let mut found = [9; 4];
    run(&b.finish(), &mut [FunctionArg::Write(&mut found)], 0, 1).unwrap();
    assert_eq!(found, [9, 2, 11, 9]);
}

#[test]
fn subnormal_numbers_are_flushed_if_that_is_asked() {
    type Recipe = fn(&mut Builder, Value) -> Value;
    let recipes: [Recipe; 7] = [
        |b, x| b.add(x, x),
        |b, x| {
            let half = b.float(Lane::F32, 0.5);
            b.bin(BinOp::Mul, x, half)
        },
        |b, x| b.un(UnOp::Floor, x),
        |b, x| b.bin(BinOp::Maximum, x, x),
        |b, x| {
            let wide = b.convert(Conv::Value, Lane::F64, x);
            b.convert(Conv::Value, Lane::F32, wide)
        },
        |b, x| {
            let zero = b.float(Lane::F32, 0.0);
            let equal = b.compare(Cmp::Eq, x, zero);
            let one = b.float(Lane::F32, 1.0);
            b.select(equal, one, zero)
        },
        // What moves keeps all bits.
        |b, x| {
            let equal = b.compare(Cmp::Eq, x, x);
            let zero = b.float(Lane::F32, 0.0);
            b.select(equal, x, zero)
        },
    ];
    let values = [0x0040_0000u32, 0x8040_0000, 0x0080_0000, 1];
    let run = |recipe: Recipe, flushes_subnormals: bool| -> Vec<u32> {
        let kernel = mapped(4, values.len(), |b, x| {
            let x = b.convert(Conv::Bits, Lane::F32, x);
            let y = recipe(b, x);
            b.convert(Conv::Bits, Lane::I32, y)
        });
        let data: Vec<u8> = values.iter().flat_map(|x| x.to_ne_bytes()).collect();
        let mut out = vec![0; data.len()];
        let options = CodeOptions { flushes_subnormals, ..CodeOptions::default() };
        let tile = Tile::new(&kernel, &options).unwrap();
        tile.run(&mut [FunctionArg::Read(&data), FunctionArg::Write(&mut out)], 0, 4).unwrap();
        out.chunks_exact(4).map(|x| u32::from_ne_bytes(x.try_into().unwrap())).collect()
    };
    let (minus_zero, one) = (0x8000_0000u32, 0x3f80_0000u32);
    let least = 0x0080_0000;
    let kept = [
        [least, least | minus_zero, 2 * least, 2],
        [least / 4, (least / 4) | minus_zero, least / 2, 0],
        [0, one | minus_zero, 0, 0],
        values,
        values,
        [0; 4],
        values,
    ];
    let flushed = [
        [0, minus_zero, 2 * least, 0],
        [0, minus_zero, 0, 0],
        [0, minus_zero, 0, 0],
        [0, minus_zero, least, 0],
        [0, minus_zero, least, 0],
        [one, one, 0, one],
        values,
    ];
    for (recipe, (kept, flushed)) in recipes.into_iter().zip(kept.into_iter().zip(flushed)) {
        assert_eq!(run(recipe, false), kept);
        assert_eq!(run(recipe, true), flushed);
    }
}
