//! Windows against loops over all points.

use super::super::bytes::{Aligned, bytes_of, bytes_of_mut, cast, cast_mut};
use super::super::isa::Isa;
use super::super::number::{Fold, Number, NumberType};
use super::super::sort::{Lanes, Pairs};
use super::*;
use crate::{Pool, Threads};

fn dim(
    base: usize,
    size: usize,
    stride: usize,
    pad: (i64, i64),
    dilation: (usize, usize),
) -> WindowDim {
    let (base_dilation, window_dilation) = dilation;
    let dilated = if base == 0 { 0 } else { (base as i64 - 1) * base_dilation as i64 + 1 };
    let reach = (size as i64 - 1) * window_dilation as i64 + 1;
    let room = dilated + pad.0 + pad.1 - reach;
    let positions = if room < 0 { 0 } else { room as usize / stride + 1 };
    WindowDim { size, stride, pad_low: pad.0, window_dilation, base_dilation, base, positions }
}

const PLAIN: (usize, usize) = (1, 1);

/// All index vectors of a box.
fn indices(sizes: &[usize]) -> Vec<Vec<usize>> {
    sizes.iter().fold(vec![vec![]], |all, &size| {
        all.iter().flat_map(|index| (0..size).map(move |i| [&index[..], &[i]].concat())).collect()
    })
}

/// For each position, the places of the elements under the window.
fn covered(window: &[WindowDim]) -> Vec<Vec<usize>> {
    let positions: Vec<usize> = window.iter().map(|dim| dim.positions).collect();
    let sizes: Vec<usize> = window.iter().map(|dim| dim.size).collect();
    let under = |position: &[usize], point: &[usize]| {
        window.iter().enumerate().try_fold(0, |place, (d, dim)| {
            let at =
                (position[d] * dim.stride + point[d] * dim.window_dilation) as i64 - dim.pad_low;
            let base = dim.base_dilation as i64;
            let inside = at >= 0 && at % base == 0 && at / base < dim.base as i64;
            inside.then(|| place * dim.base + (at / base) as usize)
        })
    };
    let points = indices(&sizes);
    let place = |position: Vec<usize>| points.iter().filter_map(|p| under(&position, p)).collect();
    indices(&positions).into_iter().map(place).collect()
}

fn cases() -> Vec<Vec<WindowDim>> {
    let whole = |base| dim(base, 1, 1, (0, 0), PLAIN);
    vec![
        vec![],
        vec![whole(7)],
        vec![dim(20, 3, 1, (1, 1), PLAIN)],
        vec![dim(23, 3, 2, (0, 1), PLAIN)],
        vec![dim(9, 4, 3, (-1, 5), (3, 2))],
        vec![dim(8, 2, 1, (0, 0), (6, 4)), whole(3)],
        vec![dim(11, 3, 2, (2, 0), (2, 1)), whole(2), dim(9, 2, 1, (1, 0), (2, 1))],
        vec![whole(2), dim(12, 3, 2, (0, 1), PLAIN), dim(11, 3, 2, (1, 1), PLAIN), whole(69)],
        vec![whole(2), dim(6, 3, 1, (1, 1), (2, 1)), dim(5, 2, 1, (0, 0), (1, 2)), whole(128)],
        vec![whole(3), dim(13, 3, 2, (1, 1), PLAIN), dim(14, 3, 2, (1, 1), PLAIN)],
        vec![whole(3), dim(13, 5, 1, (9, 9), PLAIN), dim(14, 3, 3, (5, 4), PLAIN), whole(3)],
        vec![dim(4, 5, 1, (0, 0), PLAIN), whole(3)],
        vec![whole(3), dim(200, 16, 1, (7, 8), PLAIN)],
        vec![whole(2), dim(90, 5, 1, (8, -1), (1, 3)), whole(3)],
        vec![whole(2), dim(9, 2, 1, (0, 1), PLAIN), whole(27)],
        vec![whole(3), dim(9, 2, 2, (0, 0), PLAIN)],
        vec![whole(3), dim(9, 2, 2, (0, 1), PLAIN), whole(2)],
        vec![dim(5, 2, 1, (1, 1), PLAIN), whole(7), dim(7, 2, 2, (0, 1), PLAIN)],
        vec![dim(0, 2, 1, (2, 2), PLAIN)],
        vec![dim(0, 2, 1, (2, 2), PLAIN), whole(20)],
        vec![whole(3), dim(100, 100, 1, (99, 0), PLAIN)],
        vec![whole(3), dim(9, 9, 1, (0, 8), PLAIN), whole(70)],
        // Several vectors and blocks of rows; padding wider than a vector; more rows than a block may meet.
        vec![whole(2), whole(2), dim(37, 3, 2, (1, 1), PLAIN), dim(67, 3, 2, (0, 1), PLAIN)],
        vec![whole(2), dim(21, 2, 2, (0, 0), PLAIN), dim(50, 3, 1, (1, 1), PLAIN)],
        vec![whole(2), dim(19, 2, 3, (-2, 1), (1, 5)), dim(40, 4, 2, (1, -3), (1, 2))],
        vec![dim(3, 2, 1, (9, 12), PLAIN), dim(5, 16, 1, (40, 44), PLAIN)],
        vec![whole(2), dim(40, 33, 1, (8, 8), PLAIN), dim(20, 17, 1, (8, 8), PLAIN)],
        vec![whole(2), dim(40, 32, 4, (8, 8), PLAIN), dim(20, 5, 2, (3, 2), PLAIN)],
        vec![whole(5), whole(9), dim(33, 2, 2, (0, 1), PLAIN)],
        vec![whole(3), dim(9000, 3, 1, (1, 1), PLAIN)],
        vec![whole(2), dim(13, 3, 2, (1, 1), PLAIN), dim(15, 3, 2, (0, 2), PLAIN), whole(20)],
        vec![
            whole(2),
            dim(9, 3, 1, (1, 1), PLAIN),
            dim(9, 2, 3, (-1, 1), (1, 2)),
            whole(2),
            whole(8),
        ],
        vec![dim(30, 4, 4, (0, 0), PLAIN), whole(3000)],
        // Vectors of several positions side by side, at the edges and between them.
        vec![dim(9, 3, 2, (1, 1), PLAIN), dim(14, 3, 2, (1, 0), PLAIN), whole(41)],
        vec![dim(6, 2, 2, (0, 0), PLAIN), dim(22, 2, 2, (1, 1), PLAIN), whole(16)],
        // Rows that are cut within a position.
        vec![dim(5, 3, 2, (1, 1), PLAIN), dim(10, 2, 2, (0, 0), PLAIN), whole(1000)],
        // Positions so far beyond the array that no address is there.
        vec![
            dim(2, 1, 1 << 29, (0, 1 << 50), PLAIN),
            dim(1 << 16, 1, 1, (0, 1 - (1 << 16)), PLAIN),
        ],
        vec![whole(600), dim(6, 2, 2, (0, 0), PLAIN), dim(6, 2, 2, (0, 0), PLAIN)],
        // Along one dimension before others, with points apart, beyond both ends, and as far apart as rows may be.
        vec![whole(3), dim(40, 5, 1, (7, 4), (1, 3)), whole(20)],
        vec![dim(60, 33, 1, (40, 10), PLAIN), whole(17)],
        vec![whole(2), dim(61, 48, 1, (3, 50), PLAIN), whole(16)],
        vec![whole(2), dim(61, 49, 1, (3, 50), PLAIN), whole(16)],
        // Vectors without an edge, many in a row.
        vec![whole(2), dim(9, 9, 1, (4, 4), PLAIN), dim(30, 13, 1, (6, 6), PLAIN), whole(16)],
        vec![dim(5, 3, 1, (1, 1), PLAIN), dim(301, 4, 2, (1, 2), PLAIN)],
        vec![dim(5, 3, 1, (1, 1), PLAIN), dim(262, 5, 2, (2, 2), (1, 2))],
    ]
}

#[test]
fn extremes_of_nan_and_zeros() {
    let zeros = [0.0_f32, -0.0];
    for window in cases() {
        let size = base_size(&window);
        for nan in [f32::NAN, -f32::NAN] {
            // Mostly zeros of both signs, some of which are alone.
            let number = |i: usize| match i.wrapping_mul(0x9e37_79b9) >> 5 & 127 {
                0 => nan,
                1 => f32::NEG_INFINITY,
                bits => zeros[bits / 16 % 2],
            };
            let from: Vec<f32> = (0..size).map(number).collect();
            for fold in [Fold::Max, Fold::Min] {
                let init = if fold == Fold::Max { -0.0 } else { 0.0 };
                let apply = if fold == Fold::Max { Number::max } else { Number::min };
                let plan = ReduceWindow::new(&window, NumberType::F32, fold).unwrap();
                let fold_all = |places: &Vec<usize>| {
                    places.iter().fold(init, |folded, &at| apply(folded, from[at]))
                };
                let expected: Vec<f32> = covered(&window).iter().map(fold_all).collect();
                for isa in Isa::all() {
                    let mut to = vec![1.0_f32; expected.len()];
                    let (from, init) = (bytes_of(&from), [init]);
                    let to_bytes = bytes_of_mut(&mut to);
                    plan.run_on(isa, from, bytes_of(&init), to_bytes, Threads::single());
                    let is_same = |(a, b): (&f32, &f32)| {
                        a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
                    };
                    let same = to.iter().zip(&expected).all(is_same);
                    assert!(same, "{window:?} {fold:?} {isa:?}");
                }
            }
        }
    }
}

fn numbers(count: usize) -> Vec<f32> {
    (0..count as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 22) as f32 - 500.0).collect()
}

fn base_size(window: &[WindowDim]) -> usize {
    window.iter().map(|dim| dim.base).product()
}

fn check_reduce<T: Number + std::fmt::Debug>(
    window: &[WindowDim],
    ty: NumberType,
    fold: Fold,
    (from, init): (&[T], T),
    apply: fn(T, T) -> T,
) {
    let plan = ReduceWindow::new(window, ty, fold).unwrap();
    let expected: Vec<T> = covered(window)
        .iter()
        .map(|places| places.iter().fold(init, |sum, &at| apply(sum, from[at])))
        .collect();
    let pool = Pool::new(2);
    for (isa, threads) in
        Isa::all().flat_map(|isa| [(isa, Threads::single()), (isa, pool.threads(2))])
    {
        let mut to = vec![init; expected.len()];
        plan.run_on(isa, bytes_of(from), bytes_of(&[init]), bytes_of_mut(&mut to), threads);
        assert_eq!(to, expected, "{window:?} {fold:?} {isa:?}");
    }
}

#[test]
fn small_under_miri() {
    let whole = |base| dim(base, 1, 1, (0, 0), PLAIN);
    for window in [vec![dim(7, 3, 1, (1, 1), PLAIN)], vec![dim(5, 2, 2, (0, 1), PLAIN), whole(3)]] {
        let from = numbers(base_size(&window));
        check_reduce(&window, NumberType::F32, Fold::Add, (&from, 3.0), |a, b| a + b);
    }
}

#[test]
fn windows_fold_what_they_cover() {
    for window in cases() {
        // Sums of these numbers are exact in any order.
        let from = numbers(base_size(&window));
        check_reduce(&window, NumberType::F32, Fold::Add, (&from, 3.0), |a, b| a + b);
        check_reduce(&window, NumberType::F32, Fold::Max, (&from, -9.0), f32::max);
        check_reduce(&window, NumberType::F32, Fold::Min, (&from, f32::INFINITY), f32::min);
        let bytes: Vec<u8> = from.iter().map(|&v| v as i32 as u8).collect();
        check_reduce(&window, NumberType::U8, Fold::Mul, (&bytes, 1), u8::wrapping_mul);
        let wide: Vec<i64> = from.iter().map(|&v| v as i64).collect();
        check_reduce(&window, NumberType::I64, Fold::Add, (&wide, -1), i64::wrapping_add);
    }
}

#[test]
fn long_cumulative_sums_in_both_directions() {
    for count in [1, 511, 512, 513, 5000] {
        for inner in [1, 5] {
            for is_reversed in [false, true] {
                let lanes = Lanes { outer: 2, count, inner };
                let from: Vec<i32> =
                    (0..2 * count * inner).map(|i| (i as i32).wrapping_mul(77_777)).collect();
                let mut expected = vec![0; from.len()];
                for (outer, lane) in (0..2).flat_map(|o| (0..inner).map(move |j| (o, j))) {
                    let mut sum = 5i32;
                    for i in 0..count {
                        let i = if is_reversed { count - 1 - i } else { i };
                        let at = (outer * count + i) * inner + lane;
                        sum = sum.wrapping_add(from[at]);
                        expected[at] = sum;
                    }
                }
                let scan = Scan { lanes, ty: NumberType::I32, fold: Fold::Add, is_reversed };
                let mut to = vec![0i32; from.len()];
                scan.run(
                    bytes_of(&from),
                    bytes_of(&[5i32]),
                    bytes_of_mut(&mut to),
                    Threads::single(),
                );
                assert_eq!(to, expected, "{scan:?}");
            }
        }
    }
}

#[test]
fn windows_send_to_what_they_select() {
    for window in cases() {
        let mut operand = numbers(base_size(&window));
        // Equal elements, and one that compares with nothing.
        operand.iter_mut().for_each(|v| *v = (*v / 100.0).trunc());
        if let Some(v) = operand.get_mut(40) {
            *v = f32::NAN;
        }
        let covered = covered(&window);
        let source = numbers(covered.len());
        type Stays = fn(&f32, &f32) -> bool;
        let stays: [(Select, Stays); 4] = [
            (Select::Ge, f32::ge),
            (Select::Gt, f32::gt),
            (Select::Le, f32::le),
            (Select::Lt, f32::lt),
        ];
        for (select, stays) in stays {
            let mut expected = vec![2.0f32; operand.len()];
            for (places, value) in covered.iter().zip(&source) {
                let best = places.iter().copied();
                let best = best.reduce(|a, b| if stays(&operand[a], &operand[b]) { a } else { b });
                if let Some(at) = best {
                    expected[at] += value;
                }
            }
            let plan = SelectAndScatter::new(&window, NumberType::F32, select, Fold::Add).unwrap();
            let mut to = vec![0f32; operand.len()];
            let init = [2.0f32];
            let pool = Pool::new(2);
            plan.run(
                bytes_of(&operand),
                bytes_of(&source),
                bytes_of(&init),
                bytes_of_mut(&mut to),
                pool.threads(2),
            );
            assert_eq!(to, expected, "{window:?} {select:?}");

            let plan = SelectByCode::new(&window, 4).unwrap();
            let selecting = |count: usize, [left, right]: [&[u8]; 2], to: &mut [u8]| {
                let (left, right) = (cast::<f32>(left), cast::<f32>(right));
                (0..count).for_each(|i| to[i] = stays(&left[i], &right[i]).into());
            };
            let adding = |count: usize, pairs: &Pairs<'_>, to: &mut [&mut [u8]]| {
                let [left, right] = pairs(0).map(cast::<f32>);
                let to = cast_mut::<f32>(to[0]);
                (0..count).for_each(|i| to[i] = left[i] + right[i]);
            };
            let mut to = vec![0f32; operand.len()];
            plan.run(
                (&selecting, &adding),
                (bytes_of(&operand), bytes_of(&source), bytes_of(&init)),
                bytes_of_mut(&mut to),
                &mut Aligned::filled(0, plan.scratch_bytes()),
                pool.threads(2),
            );
            assert_eq!(to, expected, "{window:?} {select:?} by code");
        }
    }
}

#[test]
fn empty_arrays_cost_nothing() {
    let nothing = [dim(0, 1, 1, (0, 0), PLAIN), dim(1 << 50, 3, 1, (0, 0), PLAIN)];
    let plan = ReduceWindow::new(&nothing, NumberType::F32, Fold::Add).unwrap();
    plan.run(&[], &[0; 4], &mut [], Threads::single());
    let plan = SelectAndScatter::new(&nothing, NumberType::F32, Select::Ge, Fold::Add).unwrap();
    plan.run(&[], &[], &[0; 4], &mut [], Threads::single());
}

#[test]
fn positions_without_elements_are_not_listed() {
    let beside = |size, pad| [dim(1 << 50, 1, 1, (0, 0), PLAIN), dim(0, size, 1, pad, PLAIN)];
    let plan = ReduceWindow::new(&beside(3, (0, 0)), NumberType::F32, Fold::Add).unwrap();
    plan.run(&[], &[0; 4], &mut [], Threads::single());
    assert!(ReduceWindow::new(&beside(3, (2, 2)), NumberType::F32, Fold::Add).is_none());
    let line = dim(1 << 40, 3, 1, (1, 1), PLAIN);
    assert!(ReduceWindow::new(&[line], NumberType::F32, Fold::Add).is_some());
    assert!(FoldWindow::new(&[line], vec![4], true).is_none());
}

#[test]
fn windows_that_cost_too_much_are_refused() {
    let huge = dim(1 << 21, (1 << 20) + 1, 1, (1 << 20, 0), PLAIN);
    assert!(ReduceWindow::new(&[huge], NumberType::F32, Fold::Add).is_none());
    let dilated = dim(4, 2, 1, (0, 0), (1 << 20, 1));
    assert!(ReduceWindow::new(&[dilated], NumberType::F32, Fold::Add).is_none());
    let cumulative = dim(1 << 21, 1 << 21, 1, ((1 << 21) - 1, 0), PLAIN);
    assert!(ReduceWindow::new(&[cumulative], NumberType::F32, Fold::Add).is_some());
}

/// Two arrays folded together: the smaller key and what goes with it, and sums that wrap.
#[test]
fn folds_by_code() {
    let code = |count: usize, pairs: &Pairs<'_>, to: &mut [&mut [u8]]| {
        let (keys, sums) = (pairs(0).map(cast::<u32>), pairs(1).map(cast::<u64>));
        for i in 0..count {
            let [key, other] = keys.map(|keys| keys[i]);
            cast_mut::<u32>(to[0])[i] = Ord::min(key, other);
            cast_mut::<u64>(to[1])[i] = sums[0][i].wrapping_mul(sums[1][i]);
        }
    };
    let long = |base: usize, pad: (i64, i64)| dim(base, base, 1, pad, PLAIN);
    let scans = [
        vec![long(4099, (4098, 0))],
        vec![long(4096, (0, 4095)), dim(1, 1, 1, (0, 0), PLAIN)],
        vec![dim(3, 1, 1, (0, 0), PLAIN), long(333, (0, 332)), dim(5, 1, 1, (0, 0), PLAIN)],
    ];
    let pool = Pool::new(2);
    for window in cases().into_iter().chain(scans) {
        let count = base_size(&window);
        let keys: Vec<u32> = (0..count as u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
        let factors: Vec<u64> = (0..count as u64).map(|i| 2 * i + 3).collect();
        let expected = covered(&window);
        let plan = FoldWindow::new(&window, vec![4, 8], true).unwrap();
        for threads in [Threads::single(), pool.threads(2)] {
            let mut least = vec![7u32; expected.len()];
            let mut product = vec![7u64; expected.len()];
            let mut to = [bytes_of_mut(&mut least), bytes_of_mut(&mut product)];
            let from = [bytes_of(&keys), bytes_of(&factors)];
            let inits = [bytes_of(&[u32::MAX - 1]), bytes_of(&[5u64])];
            plan.run(&code, &from, &inits, &mut to, threads);
            for (i, places) in expected.iter().enumerate() {
                let key = places.iter().map(|&at| keys[at]).min().unwrap_or(u32::MAX - 1);
                let product_of = |product: u64, &at: &usize| product.wrapping_mul(factors[at]);
                assert_eq!(least[i], Ord::min(key, u32::MAX - 1), "{window:?}");
                assert_eq!(product[i], places.iter().fold(5, product_of), "{window:?}");
            }
        }
    }
}
