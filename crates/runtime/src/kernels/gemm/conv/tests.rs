//! Convolutions against plain loops, on every instruction set of the machine.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::joined::OnTiles;
use super::*;
use crate::kernels::bytes::{Aligned, cast};
use crate::kernels::gemm::amx;
use crate::kernels::gemm::number::{ProductType, Types};
use crate::kernels::gemm::tests::encode;
use crate::kernels::gemm::types::Call;
use crate::{FloatMode, Pool};

/// Of a spatial dimension: input, kernel, stride, padding before and after, dilations, reversal.
type Sizes = (usize, usize, usize, [i64; 2], [usize; 2], bool);

/// Sizes of a convolution, dense, with dimensions in a given order.
#[derive(Clone)]
struct Case {
    groups: usize,
    batch_groups: bool,
    batch: usize,
    features: usize,
    outputs: usize,
    spatial: Vec<Sizes>,
    /// Orders of [batch, features, spatial…], [features, outputs, spatial…] and
    /// [batch, outputs, spatial…].
    orders: [Vec<usize>; 3],
}

/// Strides of dense dimensions with these sizes, of which `order` lists the slowest first.
fn strides(sizes: &[usize], order: &[usize]) -> Vec<usize> {
    let mut strides = vec![0; sizes.len()];
    let mut stride = 1;
    for &dim in order.iter().rev() {
        strides[dim] = stride;
        stride *= sizes[dim];
    }
    strides
}

impl Case {
    fn check(&self) {
        self.check_by(|_| true);
    }

    /// Checks the convolution, which must be computed in the way that the test is about.
    fn check_by(&self, is_meant: impl Fn(&Convolution) -> bool) {
        // As in programs, unless they ask for something else: with the instructions for `bf16`.
        let _mode = FloatMode::FlushToZero.enter();
        let (conv, [lhs, rhs], want) = self.convolution();
        assert!(is_meant(&conv), "by {:?}", conv.route);
        let f32s = |values: &[f64]| values.iter().map(|&v| v as f32).collect::<Vec<_>>();
        let pool = Pool::new(2);
        for isa in Isa::all() {
            for threads in [Threads::single(), pool.threads(2)] {
                let mut got = vec![7.0; want.len()];
                conv.float(isa, &lhs, &rhs, &mut got, threads);
                assert!(got == want, "f64 on {isa:?} by {:?}", conv.route);
                let mut got = vec![7.0; want.len()];
                conv.float(isa, &f32s(&lhs), &f32s(&rhs), &mut got, threads);
                assert!(got == f32s(&want), "f32 on {isa:?} by {:?}", conv.route);
            }
        }
        if let winograd @ Some(_) = conv.winograd_layout() {
            // Whether it pays or not.
            check_winograd(&Convolution { winograd, ..conv.clone() }, &lhs, &rhs, &want);
        }
        check_joined(&conv, &lhs, &rhs, want.len());
        check_finite(&conv, &lhs, &rhs, want.len());
        check_infinite(&conv, &lhs, &rhs, want.len());
    }

    /// The convolution, two operands, and the result.
    fn convolution(&self) -> (Convolution, [Vec<f64>; 2], Vec<f64>) {
        let spatial = &self.spatial;
        let output = |&(input, kernel, stride, pad, [base, window], _): &Sizes| {
            let dilated = |n: usize, by: usize| if n == 0 { 0 } else { (n - 1) * by + 1 } as i64;
            let room = dilated(input, base) + pad[0] + pad[1] - dilated(kernel, window);
            if room < 0 { 0 } else { room as usize / stride + 1 }
        };
        let outputs: Vec<usize> = spatial.iter().map(output).collect();
        let sizes =
            |first: usize, second: usize, rest: Vec<usize>| [vec![first, second], rest].concat();
        let (by_batch, by_feature) =
            if self.batch_groups { (self.groups, 1) } else { (1, self.groups) };
        let all_outputs = self.groups * self.outputs;
        let lhs_sizes = sizes(
            self.batch * by_batch,
            self.features * by_feature,
            spatial.iter().map(|dim| dim.0).collect(),
        );
        let rhs_sizes =
            sizes(self.features, all_outputs, spatial.iter().map(|dim| dim.1).collect());
        let out_sizes = sizes(self.batch, all_outputs, outputs.clone());
        let lhs = strides(&lhs_sizes, &self.orders[0]);
        let rhs = strides(&rhs_sizes, &self.orders[1]);
        let out = strides(&out_sizes, &self.orders[2]);
        let dim = |size, lhs, rhs, out| Dim { size, lhs, rhs, out };
        let group_lhs =
            if self.batch_groups { self.batch * lhs[0] } else { self.features * lhs[1] };
        let dims: Vec<Spatial> = (0..spatial.len())
            .map(|i| {
                let (input, kernel, stride, [pad_low, _], [lhs_dilation, rhs_dilation], reversed) =
                    spatial[i];
                Spatial {
                    input,
                    kernel,
                    output: outputs[i],
                    lhs: lhs[i + 2],
                    rhs: rhs[i + 2],
                    out: out[i + 2],
                    stride,
                    pad_low,
                    lhs_dilation,
                    rhs_dilation,
                    reversed,
                }
            })
            .collect();
        let conv = Convolution::new(
            dim(self.groups, group_lhs, self.outputs * rhs[1], self.outputs * out[1]),
            dim(self.batch, lhs[0], 0, out[0]),
            dim(self.features, lhs[1], rhs[0], 0),
            dim(self.outputs, 0, rhs[1], out[1]),
            &dims,
        );
        let numbers = |sizes: &[usize], seed: usize| -> Vec<f64> {
            let count = sizes.iter().product();
            (0..count).map(|i| ((i * 7919 + seed * 31) % 17) as f64 - 8.0).collect()
        };
        let (lhs, rhs) = (numbers(&lhs_sizes, 1), numbers(&rhs_sizes, 2));
        let mut want = vec![7.0; out_sizes.iter().product()];
        let places = Shared(want.as_mut_ptr());
        // SAFETY: the result lies in `want`, which nothing else accesses.
        unsafe { by_loops(&conv, &lhs, &rhs, &places) };
        (conv, [lhs, rhs], want)
    }

    /// By sums of elements alone.
    fn check_sums(&self) {
        let _mode = FloatMode::FlushToZero.enter();
        let (conv, [lhs, rhs], want) = self.convolution();
        let winograd = conv.winograd_layout();
        assert!(winograd.is_some(), "by {:?}", conv.route);
        check_winograd(&Convolution { winograd, ..conv }, &lhs, &rhs, &want);
    }

    /// With channels last, channels first, and in an odd order.
    fn check_orders(&self) {
        let rank = self.spatial.len();
        let spatial: Vec<usize> = (2..rank + 2).collect();
        let last = [&[0], &spatial[..], &[1]].concat();
        let kernel_last = [&spatial[..], &[0, 1]].concat();
        let first = [&[0, 1], &spatial[..]].concat();
        let kernel_first = [&[1, 0], &spatial[..]].concat();
        let odd = [&[1], &spatial[..], &[0]].concat();
        for orders in [
            [last.clone(), kernel_last.clone(), last],
            [first.clone(), kernel_first, first],
            [odd.clone(), odd.clone(), [&spatial[..], &[0, 1]].concat()],
            [odd.clone(), kernel_last, odd],
        ] {
            Case { orders, ..self.clone() }.check();
        }
    }
}

/// The convolution by plain loops.
///
/// # Safety
/// The result lies in `places`, which nothing else accesses.
unsafe fn by_loops(conv: &Convolution, lhs: &[f64], rhs: &[f64], places: &dyn Destination<f64>) {
    let (everywhere, threads) = (conv.everywhere(), Threads::single());
    // SAFETY: the caller's promise.
    unsafe { conv.run_loops::<f64>(Isa::best(), &lhs, &rhs, places, &everywhere, threads) };
}

/// By sums of elements, with a kernel that lies as it is and one that is packed; and with elements of the
/// input that are not finite.
fn check_winograd(conv: &Convolution, lhs: &[f64], rhs: &[f64], want: &[f64]) {
    let pool = Pool::new(2);
    let types = Types::same(ProductType::F32);
    let rhs_bytes = float_bytes(rhs, ProductType::F32);
    for special in [None, Some(f64::INFINITY), Some(f64::NAN)] {
        let (mut lhs, mut want) = (lhs.to_vec(), want.to_vec());
        if let Some(special) = special {
            let middle = lhs.len() / 2;
            lhs[middle] = special;
            // SAFETY: the result lies in `want`, which nothing else accesses.
            unsafe { by_loops(conv, &lhs, rhs, &Shared(want.as_mut_ptr())) };
        }
        let lhs = float_bytes(&lhs, ProductType::F32);
        for isa in Isa::all() {
            for threads in [Threads::single(), pool.threads(2)] {
                let (rhs, epilogue) = (&rhs_bytes, Epilogue::default());
                let call = Call { isa, types, lhs: &lhs, rhs, epilogue, threads };
                let mut got = float_bytes(&vec![7.0; want.len()], ProductType::F32);
                let is_computed = conv.compute_winograd(&call, &mut got);
                assert_eq!(is_computed, conv.pays_for_sums_of_kernel());
                if is_computed {
                    check_floats(conv, &got, &want, types, isa);
                }
                conv.compute_call(&call, &mut got);
                check_floats(conv, &got, &want, types, isa);
                check_finished(conv, &call, None, &got);
                let mut packed = vec![7.0; conv.packed_len(isa)];
                conv.pack_on(isa, cast(rhs), &mut packed, threads);
                let mut got = float_bytes(&vec![7.0; want.len()], ProductType::F32);
                conv.compute_packed_on(&call, &packed, &mut got);
                check_floats(conv, &got, &want, types, isa);
                check_finished(conv, &call, Some(&packed), &got);
            }
        }
    }
}

/// Compares a result with that of another run, in which each byte is changed once it is complete: once, or as often as
/// it has been computed.
fn check_finished(conv: &Convolution, call: &Call<'_>, packed: Option<&[f32]>, want: &[u8]) {
    const FLIP: u8 = 0x5a;
    let flip = |bytes: &mut [u8]| bytes.iter_mut().for_each(|byte| *byte ^= FLIP);
    let calls = AtomicUsize::new(0);
    let rows = |_: usize, bytes: &mut [u8]| {
        calls.fetch_add(1, Ordering::Relaxed);
        flip(bytes);
    };
    let call = Call { epilogue: Epilogue { part: None, rows: Some(&rows) }, ..*call };
    let mut got = float_bytes(&vec![7.0; want.len() / call.types.out.size()], call.types.out);
    match packed {
        Some(packed) => conv.compute_packed_on(&call, packed, &mut got),
        None => conv.compute_call(&call, &mut got),
    }
    flip(&mut got);
    let calls = calls.load(Ordering::Relaxed);
    assert!(want.is_empty() || calls > 0, "no calls by {:?}", conv.route);
    // (Which of all NaN one is may differ from run to run, where Miri runs it.)
    let numbers = got.chunks(call.types.out.size()).zip(want.chunks(call.types.out.size()));
    let are_same = numbers.into_iter().all(|(got, want)| is_same(got, want, call.types.out));
    assert!(are_same, "rows are finished, on {:?} by {:?}", call.isa, conv.route);
}

/// All weights are finite: no result is computed anew.
fn check_finite(conv: &Convolution, lhs: &[f64], rhs: &[f64], len: usize) {
    let pool = Pool::new(2);
    for number in [ProductType::F32, ProductType::Bf16] {
        let types = Types::same(number);
        let [lhs, rhs] = [lhs, rhs].map(|values| float_bytes(values, number));
        for (isa, threads) in
            Isa::all().zip([pool.threads(2), Threads::single(), Threads::single()])
        {
            let epilogue = Epilogue::default();
            let call = Call { isa, types, lhs: &lhs, rhs: &rhs, epilogue, threads };
            let mut got = float_bytes(&vec![7.0; len], number);
            conv.compute_call(&call, &mut got);
            check_finished(conv, &call, None, &got);
            if conv.takes_packed() && number == ProductType::F32 {
                let mut packed = vec![7.0; conv.packed_len(isa)];
                conv.pack_on(isa, cast(&rhs), &mut packed, threads);
                let mut got = float_bytes(&vec![7.0; len], number);
                conv.compute_packed_on(&call, &packed, &mut got);
                check_finished(conv, &call, Some(&packed), &got);
            }
        }
    }
}

/// Some weights are infinite or NaN: taps that meet no element of the input are no products.
fn check_infinite(conv: &Convolution, lhs: &[f64], rhs: &[f64], len: usize) {
    let special = |(i, &v): (usize, &f64)| match i % 23 {
        3 => f64::INFINITY,
        9 => f64::NEG_INFINITY,
        17 if i % 2 == 0 => f64::NAN,
        _ => v,
    };
    let rhs: Vec<f64> = rhs.iter().enumerate().map(special).collect();
    let mut want = vec![7.0; len];
    // SAFETY: the result lies in `want`, which nothing else accesses.
    unsafe { by_loops(conv, lhs, &rhs, &Shared(want.as_mut_ptr())) };
    let pool = Pool::new(2);
    let numbers = [ProductType::F32, ProductType::F64, ProductType::Bf16];
    let mixed = (ProductType::Bf16, ProductType::F32);
    for (from, to) in numbers.map(|number| (number, number)).into_iter().chain([mixed]) {
        let types = Types { lhs: from, rhs: from, out: to };
        let [lhs, rhs] = [lhs, &rhs].map(|values| float_bytes(values, from));
        for (isa, threads) in
            Isa::all().zip([pool.threads(2), Threads::single(), Threads::single()])
        {
            let call =
                Call { isa, types, lhs: &lhs, rhs: &rhs, epilogue: Epilogue::default(), threads };
            let mut got = float_bytes(&vec![7.0; len], to);
            conv.compute_call(&call, &mut got);
            check_floats(conv, &got, &want, types, isa);
            check_finished(conv, &call, None, &got);
            if conv.takes_packed() && types == Types::same(ProductType::F32) {
                let mut packed = vec![7.0; conv.packed_len(isa)];
                conv.pack_on(isa, cast(&rhs), &mut packed, threads);
                let mut got = float_bytes(&vec![7.0; len], to);
                conv.compute_packed_on(&call, &packed, &mut got);
                check_floats(conv, &got, &want, types, isa);
            }
            if isa == Isa::best() && to == ProductType::F32 {
                let mut done = false;
                let mut got = float_bytes(&vec![7.0; len], to);
                let tiles = OnTiles { conv, call: &call, out: &mut got, done: &mut done };
                if amx::with_tiles_of::<amx::Model>(types, tiles) && done {
                    conv.skip_holes::<f32>(&call, &mut got);
                    check_floats(conv, &got, &want, types, isa);
                }
            }
        }
    }
}

/// Whether two numbers have the same bits, or are NaN both.
fn is_same(a: &[u8], b: &[u8], number: ProductType) -> bool {
    a == b || [a, b].into_iter().all(|v| is_nan(v, number))
}

fn check_floats(conv: &Convolution, got: &[u8], want: &[f64], types: Types, isa: Isa) {
    let size = types.out.size();
    let rounded = float_bytes(want, types.out);
    for (i, (got, want)) in got.chunks(size).zip(rounded.chunks(size)).enumerate() {
        assert!(
            is_same(got, want, types.out),
            "{types:?} on {isa:?} by {:?}: {i} is {got:x?}, not {want:x?}",
            conv.route
        );
    }
}

/// Numbers as bytes, rounded to nearest.
fn float_bytes(values: &[f64], number: ProductType) -> Aligned {
    let bytes = |&v: &f64| match number {
        ProductType::F64 => v.to_ne_bytes().to_vec(),
        ProductType::F32 => (v as f32).to_ne_bytes().to_vec(),
        _ => half::bf16::from_f64(v).to_ne_bytes().to_vec(),
    };
    Aligned::new(&values.iter().flat_map(bytes).collect::<Vec<u8>>())
}

fn is_nan(bytes: &[u8], number: ProductType) -> bool {
    match number {
        ProductType::F64 => f64::from_ne_bytes(bytes.try_into().unwrap()).is_nan(),
        ProductType::F32 => f32::from_ne_bytes(bytes.try_into().unwrap()).is_nan(),
        _ => half::bf16::from_ne_bytes(bytes.try_into().unwrap()).is_nan(),
    }
}

/// Compares the ways that join numbers, where they are taken.
fn check_joined(conv: &Convolution, lhs: &[f64], rhs: &[f64], len: usize) {
    for (lhs_type, rhs_type, out_type) in [
        (ProductType::S8, ProductType::S8, ProductType::S32),
        (ProductType::S8, ProductType::S8, ProductType::S16),
        (ProductType::S8, ProductType::S8, ProductType::S8),
        (ProductType::U8, ProductType::S8, ProductType::S32),
        (ProductType::U8, ProductType::S8, ProductType::S16),
        (ProductType::Bf16, ProductType::Bf16, ProductType::F32),
    ] {
        let unsigned = |v: &f64| if lhs_type == ProductType::U8 { v.abs() } else { *v };
        let lhs: Vec<f64> = lhs.iter().map(unsigned).collect();
        let mut want = vec![7.0; len];
        // SAFETY: the result lies in `want`, which nothing else accesses.
        unsafe {
            let places = Shared(want.as_mut_ptr());
            by_loops(conv, &lhs, rhs, &places);
        }
        let integers =
            |values: &[f64]| values.iter().map(|&value| value as i32).collect::<Vec<_>>();
        let encode = |values: &[f64], number| encode(&integers(values), number);
        let (lhs, rhs, want) =
            (encode(&lhs, lhs_type), encode(rhs, rhs_type), encode(&want, out_type));
        let types = Types { lhs: lhs_type, rhs: rhs_type, out: out_type };
        let pool = Pool::new(2);
        for (isa, threads) in
            Isa::all().zip([pool.threads(2), Threads::single(), Threads::single()])
        {
            let (lhs, rhs, epilogue) = (&*lhs, &*rhs, Epilogue::default());
            let call = Call { isa, types, lhs, rhs, epilogue, threads };
            let mut got = encode(&vec![7.0; len], out_type);
            if conv.compute_vectors(&call, &mut got) {
                assert!(*got == *want, "{types:?} on {isa:?} by {:?}", conv.route);
            }
            if isa == Isa::best() {
                let mut got = encode(&vec![7.0; len], out_type);
                let mut done = false;
                let out = &mut got;
                let tiles = OnTiles { conv, call: &call, out, done: &mut done };
                assert!(amx::with_tiles_of::<amx::Model>(types, tiles));
                assert!(!done || *got == *want, "{types:?} in tiles by {:?}", conv.route);
            }
        }
    }
}

fn case(sizes: [usize; 4]) -> Case {
    let [groups, batch, features, outputs] = sizes;
    Case {
        groups,
        batch_groups: false,
        batch,
        features,
        outputs,
        spatial: vec![],
        orders: [vec![], vec![], vec![]],
    }
}

const PLAIN: Sizes = (9, 3, 1, [0, 0], [1, 1], false);

#[test]
fn small_under_miri() {
    let holes = (3, 2, 1, [1, 1], [2, 1], true);
    for (window, sizes) in [
        ((4, 2, 1, [0, 1], [1, 1], false), [1, 1, 2, 3]),
        ((4, 2, 1, [0, 1], [1, 1], false), [8, 1, 1, 1]),
        (holes, [1, 1, 1, 2]),
    ] {
        Case { spatial: vec![window], ..case(sizes) }.check_orders();
    }
}

#[test]
fn windows_of_all_kinds() {
    let windows = [
        PLAIN,
        (9, 3, 1, [1, 1], [1, 1], false),
        (10, 3, 2, [0, 1], [1, 1], false),
        (9, 1, 3, [0, 0], [1, 1], false),
        (9, 4, 1, [-2, -1], [1, 1], false),
        (9, 3, 2, [5, 0], [1, 2], false),
        (5, 3, 1, [2, 2], [3, 1], true),
        (5, 2, 3, [4, -3], [2, 3], false),
        (1, 1, 1, [2, 3], [1, 1], true),
        (2, 5, 1, [0, 0], [1, 1], false),
    ];
    for window in windows {
        let sizes = [[1, 2, 3, 5], [1, 5, 9, 33], [2, 1, 4, 17], [9, 2, 1, 1], [8, 1, 3, 2]];
        for sizes in sizes.into_iter().chain([[1, 2, 1, 1], [2, 1, 3, 2], [1, 1, 35, 3]]) {
            Case { spatial: vec![window], ..case(sizes) }.check_orders();
            Case { spatial: vec![PLAIN, window], ..case(sizes) }.check_orders();
        }
    }
}

#[test]
fn channels_first() {
    let orders = || [vec![0, 1, 2, 3], vec![1, 0, 2, 3], vec![0, 1, 2, 3]];
    let check = |spatial: [Sizes; 2], sizes| {
        Case { orders: orders(), spatial: spatial.to_vec(), ..case(sizes) }.check();
    };
    let odd = (11, 3, 2, [1, 1], [1, 1], false);
    check([odd, odd], [1, 2, 3, 5]);
    check([odd, odd], [8, 2, 1, 1]);
    // Rows of one position, several in a vector.
    check([odd, (3, 3, 2, [0, 0], [1, 1], false)], [1, 5, 2, 3]);
    // More planes' rows than a strip has.
    check([(4200, 3, 1, [1, 1], [1, 1], false), odd], [8, 1, 1, 1]);
    // Several blocks of columns, with positions of two images, and of steps.
    let padded = (23, 3, 1, [1, 1], [1, 1], false);
    check([padded, padded], [1, 2, 120, 3]);
}

#[test]
fn rows_are_finished_while_others_are_computed() {
    let (last, kernel) = (vec![0, 2, 3, 1], vec![2, 3, 0, 1]);
    let check = |groups, features, outputs, dim: Sizes, route: &str| {
        let orders = [last.clone(), kernel.clone(), last.clone()];
        let spatial = vec![(7, dim.1, dim.2, dim.3, dim.4, dim.5), dim];
        let case = Case { orders, spatial, ..case([groups, 2, features, outputs]) };
        case.check_by(|conv| {
            format!("{:?}", conv.route).starts_with(route) && conv.finishes_rows()
        });
    };
    let plain = |input, kernel, pad| (input, kernel, 1, [pad; 2], [1, 1], false);
    check(1, 5, 40, plain(33, 1, 0), "Product");
    check(1, 5, 40, plain(33, 3, 1), "Tasks");
    check(24, 1, 1, plain(33, 3, 1), "Grouped");
    check(6, 8, 8, plain(33, 3, 1), "Grouped");
    // By sums of elements, and those that are not finite at all.
    check(1, 48, 48, plain(34, 3, 1), "Tasks");
    // With channels first there are no rows.
    let first = vec![0, 1, 2, 3];
    let orders = [first.clone(), vec![1, 0, 2, 3], first];
    let case = Case { orders, spatial: vec![plain(9, 3, 1); 2], ..case([1, 1, 5, 40]) };
    case.check_by(|conv| conv.row_len().is_none() && !conv.finishes_rows());
}

#[test]
fn filters() {
    let orders = || [vec![0, 1, 2, 3], vec![1, 0, 2, 3], vec![0, 1, 2, 3]];
    let planes = |conv: &Convolution| matches!(conv.route, Route::Planes);
    for sizes in [[1, 1, 1, 1], [1, 2, 3, 2]] {
        for window in [(300, 65, 1, [32, 32], [1, 1], false), (90, 4, 3, [2, 5], [1, 2], true)] {
            let orders = orders().map(|order| order[..3].to_vec());
            Case { orders, spatial: vec![window], ..case(sizes) }.check_by(planes);
        }
        let window = (37, 3, 1, [1, 1], [1, 1], false);
        Case { orders: orders(), spatial: vec![window; 2], ..case(sizes) }.check_by(planes);
    }
}

#[test]
fn windows_of_a_few_rows() {
    let orders = || [vec![0, 1, 2, 3], vec![1, 0, 2, 3], vec![0, 1, 2, 3]];
    let read_in_place =
        |conv: &Convolution| matches!(conv.route, Route::Planes) && conv.windows().is_some();
    let check = |spatial: [Sizes; 2], sizes, is_meant: &dyn Fn(&Convolution) -> bool| {
        Case { orders: orders(), spatial: spatial.to_vec(), ..case(sizes) }.check_by(is_meant);
    };
    for (kernel, strides) in [(3, 1..=2), (5, 1..=2), (7, 1..=2), (9, 1..=1)] {
        for stride in strides {
            let low = kernel as i64 / 2;
            // Blocks of 2, 7 and 14 rows, also such that the last one has rows of the one before; vectors that are
            // full, that are not, and that begin before the input.
            for (rows, columns) in [(8, 9), (14, 14), (29, 16), (15, 33), (45, 64)] {
                let dim = |size| (size, kernel, stride, [low, low], [1, 1], false);
                check([dim(rows), dim(columns)], [9, 2, 1, 1], &read_in_place);
            }
            // Padding on one side, elements left out, columns far apart, a window turned around; several features
            // and outputs.
            let dim = (20, kernel, stride, [0, low + 1], [1, 1], false);
            check([dim, (21, 4, stride, [3, 0], [1, 3], true)], [8, 1, 2, 2], &read_in_place);
            let dim = (20, kernel, stride, [-1, -2], [1, 1], true);
            check([dim, (39, 2, stride, [-3, 2], [1, 1], false)], [8, 1, 1, 2], &read_in_place);
            // Vectors that are all padding.
            let dim = (9, kernel, stride, [low, low], [1, 1], false);
            check([dim, (3, 3, stride, [40, 40], [1, 1], false)], [8, 1, 1, 1], &read_in_place);
            // Many columns.
            let dim = (9, kernel, stride, [low, low], [1, 1], false);
            for (columns, are_few) in [(16, true), (17, false)] {
                let wide = (30, columns, stride, [9, 9], [1, 1], false);
                check([dim, wide], [8, 1, 1, 1], &|conv| conv.windows().is_some() == are_few);
            }
            // Windows that are all padding, and steps that differ.
            let dim = (9, kernel, stride, [kernel as i64, kernel as i64], [1, 1], false);
            check([dim, dim], [8, 1, 1, 1], &|conv| conv.windows().is_none());
            let dim = (19, kernel, stride, [low, low], [1, 1], false);
            let other = (19, kernel, 3 - stride, [low, low], [1, 1], false);
            check([dim, other], [8, 1, 1, 1], &|conv| conv.windows().is_none());
        }
    }
}

#[test]
fn depthwise_windows_with_channels_last() {
    let last = || vec![0, 2, 3, 1];
    let check = |groups, batch, spatial: [Sizes; 2]| {
        // Weights whose channels are neighbours, and those of frameworks that have channels first.
        for kernel in [vec![2, 3, 0, 1], vec![1, 0, 2, 3]] {
            let orders = [last(), kernel, last()];
            Case { orders, spatial: spatial.to_vec(), ..case([groups, batch, 1, 1]) }.check_by(
                |conv| conv.channel_windows().is_some() && matches!(conv.route, Route::Grouped),
            );
        }
    };
    let near = |input, kernel, stride, pad: i64| (input, kernel, stride, [pad; 2], [1, 1], false);
    for (kernel, strides) in [(3, 1..=2), (5, 1..=2), (7, 1..=2), (9, 1..=1)] {
        for (stride, input) in [(1, 9), (2, 16), (1, 15)] {
            if !strides.contains(&stride) {
                continue;
            }
            let pad = kernel as i64 / 2;
            check(21, 2, [near(input, kernel, stride, pad), near(7, kernel, stride, pad)]);
        }
    }
    // Many rows, channels and positions; columns of another kind than rows; padding on one side alone, or beyond the
    // input, or elements left out.
    check(16, 1, [near(45, 3, 1, 1), near(3, 3, 1, 1)]);
    check(150, 1, [near(6, 3, 1, 1), near(5, 3, 1, 1)]);
    check(33, 3, [near(8, 3, 1, 0), (11, 4, 3, [2, 0], [1, 2], false)]);
    check(9, 1, [(8, 3, 1, [-1, 2], [1, 1], false), (9, 1, 2, [-2, 0], [1, 1], false)]);
    check(8, 1, [near(6, 5, 1, 4), (2, 3, 1, [7, 9], [1, 1], false)]);
    // Turned around.
    check(18, 1, [(6, 3, 1, [1; 2], [1, 1], true), (6, 3, 1, [1; 2], [1, 1], true)]);
}

#[test]
fn few_outputs_along_lines() {
    let orders = [vec![0, 2, 3, 1], vec![2, 3, 0, 1], vec![0, 2, 3, 1]];
    let near = (6, 3, 1, [1; 2], [1, 1], false);
    for outputs in [1, 4, 5, 7, 8, 9] {
        // Lines of two vectors and a number, of three, and of six and of more with a rest.
        for features in [11, 16, 32, 37] {
            let sizes = [1, 2, features, outputs];
            let case = Case { orders: orders.clone(), spatial: vec![near; 2], ..case(sizes) };
            case.check_by(|conv| matches!(conv.route, Route::Tasks));
        }
    }
    // One dimension, with fewer steps than dots of many outputs have.
    let orders = [vec![0, 2, 1], vec![2, 0, 1], vec![0, 2, 1]];
    for outputs in [4, 7] {
        let case = Case { orders: orders.clone(), ..case([1, 2, 12, outputs]) };
        Case { spatial: vec![near], ..case }.check();
    }
}

#[test]
fn windows_of_groups_with_channels_last() {
    let last = || vec![0, 2, 3, 1];
    let check = |groups, batch, features, outputs, spatial: [Sizes; 2]| {
        // Weights whose outputs are neighbours, and those of frameworks that have channels first.
        for kernel in [vec![2, 3, 0, 1], vec![1, 0, 2, 3]] {
            let orders = [last(), kernel, last()];
            let sizes = [groups, batch, features, outputs];
            Case { orders, spatial: spatial.to_vec(), ..case(sizes) }.check_by(|conv| {
                conv.group_windows().is_some() && matches!(conv.route, Route::Grouped)
            });
        }
    };
    let near = |input, stride, pad: i64| (input, 3, stride, [pad; 2], [1, 1], false);
    // Several groups to a vector, the last of which is full or not; one group to a vector, to one and a half.
    let sizes = [(16, 2, 2), (9, 2, 2), (8, 4, 4), (5, 4, 4), (4, 8, 8), (3, 8, 8)];
    for (groups, features, outputs) in sizes.into_iter().chain([(3, 5, 16), (2, 24, 24)]) {
        // Blocks of 2, 7 and 14 rows, also such that the last one has rows of the one before.
        for (rows, stride) in [(3, 1), (9, 1), (14, 1), (29, 1), (16, 2), (5, 2)] {
            check(groups, 2, features, outputs, [near(rows, stride, 1), near(6, stride, 1)]);
        }
    }
    // More columns than are copied at once; columns of another kind than rows; padding on one side alone, or beyond the
    // input, or elements left out.
    check(8, 1, 4, 4, [near(16, 1, 1), near(150, 1, 1)]);
    check(2, 1, 3, 16, [near(8, 2, 1), near(131, 2, 0)]);
    check(4, 3, 4, 4, [near(8, 1, 0), (11, 4, 3, [2, 0], [1, 2], false)]);
    check(4, 1, 8, 8, [(8, 3, 1, [-1, 2], [1, 1], false), (9, 1, 2, [-2, 0], [1, 1], false)]);
    check(2, 1, 5, 16, [near(6, 1, 2), (2, 3, 1, [7, 9], [1, 1], false)]);
    // Turned around.
    check(8, 1, 2, 2, [(6, 3, 1, [1; 2], [1, 1], true), (6, 3, 1, [1; 2], [1, 1], true)]);
    // Of one output and many features, or of many, there are no such loops.
    for (features, outputs) in [(2, 4), (16, 12), (32, 32)] {
        let orders = [last(), vec![2, 3, 0, 1], last()];
        let case =
            Case { orders, spatial: vec![near(9, 1, 1); 2], ..case([4, 1, features, outputs]) };
        case.check_by(|conv| conv.group_windows().is_none());
    }
}

#[test]
fn long_rows_of_groups_are_cut_into_fewer_channels() {
    // A region of 64 channels of rows like these would take more than tasks may have.
    const ROW: usize = 100_000;
    let channels = |groups| {
        let outputs = 2 * groups;
        let dim = |size, lhs, rhs, out| Dim { size, lhs, rhs, out };
        let window = |input, lhs, rhs, out| {
            let near = Spatial { pad_low: 1, kernel: 3, lhs, rhs, out, ..POINT };
            Spatial { input, output: input, ..near }
        };
        let rows = window(3, ROW * groups, 3 * outputs, ROW * outputs);
        let columns = window(ROW, groups, outputs, outputs);
        let conv = Convolution::new(
            dim(groups, 1, 2, 2),
            dim(1, 3 * ROW * groups, 0, 3 * ROW * outputs),
            dim(1, 1, 9 * outputs, 0),
            dim(2, 0, 1, 1),
            &[rows, columns],
        );
        assert!(matches!(conv.route, Route::Grouped));
        conv.grouped_cut().map(|(_, channels)| channels)
    };
    assert_eq!([20, 50, 500].map(channels), [Some(40), Some(16), Some(16)]);
}

#[test]
fn large_windows_have_no_patches() {
    // Where each of their taps lies would be found for every panel and block of steps: a window of 224 by
    // 224, as in gradients of weights, took 50 times as long.
    let orders = [vec![0, 1, 2, 3], vec![1, 0, 2, 3], vec![0, 1, 2, 3]];
    for (size, has_patches) in [(22, true), (23, false)] {
        let window = (size + 4, size, 1, [0, 1], [1, 1], false);
        let case = Case { orders: orders.clone(), ..case([1, 1, 2, 5]) };
        Case { spatial: vec![window; 2], ..case }.check_by(|conv| {
            conv.has_patches() == has_patches && matches!(conv.route, Route::Patches) == has_patches
        });
    }
}

#[test]
fn few_positions() {
    let orders = || [vec![0, 1, 2, 3], vec![1, 0, 2, 3], vec![0, 1, 2, 3]];
    let is_meant = |conv: &Convolution| {
        matches!(conv.route, Route::Patches) && conv.fills_vectors_with_outputs()
    };
    let check = |spatial: [Sizes; 2], sizes| {
        let case = Case { orders: orders(), spatial: spatial.to_vec(), ..case(sizes) };
        case.check_by(is_meant);
    };
    let padded = |input| (input, 3, 1, [1, 1], [1, 1], false);
    check([padded(7), padded(7)], [1, 1, 15, 48]);
    // Of two images, and of more groups than one.
    check([padded(5), padded(5)], [2, 2, 16, 47]);
    // No window, every second position, and so few that they are dots.
    check([(7, 1, 1, [0, 0], [1, 1], false); 2], [1, 1, 131, 47]);
    check([(9, 1, 2, [0, 0], [1, 1], false); 2], [1, 1, 131, 32]);
    check([(9, 3, 2, [1, 1], [1, 1], false), padded(2)], [1, 1, 23, 32]);
    check([(4, 2, 2, [0, 0], [1, 1], false); 2], [1, 1, 64, 16]);
    // Every third, taps that lie apart, a kernel that is turned around.
    check([(11, 3, 3, [1, 1], [1, 2], true), padded(4)], [1, 1, 17, 32]);
    // Several blocks of steps, and a kernel that is read panel by panel.
    check([padded(5), padded(5)], [1, 1, 131, 142]);
}

#[test]
fn inputs_with_holes() {
    let windows = [
        (6, 4, 1, [2, 2], [2, 1], false),
        (6, 3, 1, [2, 1], [2, 1], true),
        (5, 1, 1, [0, 1], [2, 1], false),
        (5, 2, 1, [1, 0], [3, 1], true),
        (7, 3, 3, [-1, 4], [2, 1], false),
        (5, 4, 2, [3, -2], [4, 6], true),
        (4, 3, 6, [2, 2], [4, 2], false),
        (3, 5, 1, [-3, 9], [9, 2], true),
    ];
    for window in windows {
        for sizes in [[1, 2, 3, 5], [2, 1, 4, 17], [9, 2, 1, 1]] {
            Case { spatial: vec![window], ..case(sizes) }.check_orders();
            Case { spatial: vec![window, (6, 4, 1, [2, 2], [2, 1], true)], ..case(sizes) }
                .check_orders();
        }
    }
    // More phases than are worth it.
    let far = (2, 90, 1, [1, 2], [80, 1], false);
    Case { spatial: vec![far], ..case([1, 2, 3, 5]) }.check_orders();
}

#[test]
fn any_number_of_spatial_dimensions() {
    let padded = (4, 3, 2, [1, 1], [1, 1], false);
    for rank in [0, 1, 3, 4] {
        Case { spatial: vec![padded; rank], ..case([1, 3, 5, 7]) }.check_orders();
        Case { spatial: vec![padded; rank], ..case([10, 3, 1, 1]) }.check_orders();
    }
}

#[test]
fn groups_of_the_batch() {
    let padded = (7, 5, 1, [1, 1], [1, 1], false);
    for sizes in [[2, 2, 3, 5], [19, 1, 4, 1], [300, 1, 2, 2]] {
        Case { batch_groups: true, spatial: vec![padded, padded], ..case(sizes) }.check_orders();
    }
}

#[test]
fn several_tasks_and_blocks() {
    let padded = (40, 3, 1, [1, 1], [1, 1], false);
    Case { spatial: vec![padded, padded], ..case([1, 2, 4, 18]) }.check_orders();
    // More input features than a region has room for.
    let (wide, low) = ((400, 2, 1, [1, 1], [1, 1], false), (20, 20, 1, [0, 1], [1, 1], false));
    Case { spatial: vec![low, wide], ..case([1, 1, 20, 2]) }.check_orders();
    Case { spatial: vec![low, wide], ..case([9, 1, 3, 1]) }.check_orders();
}

#[test]
fn nothing_to_compute_or_to_sum() {
    for sizes in [[1, 0, 2, 2], [1, 2, 0, 2], [1, 2, 2, 0]] {
        Case { spatial: vec![PLAIN], ..case(sizes) }.check_orders();
    }
    Case { spatial: vec![(0, 3, 1, [4, 4], [1, 1], false)], ..case([1, 2, 2, 2]) }.check_orders();
    Case { spatial: vec![(2, 3, 1, [0, 0], [1, 1], false)], ..case([1, 2, 2, 2]) }.check_orders();
}

#[test]
fn windows_too_sparse_for_a_region() {
    let sparse = (3, 2, 1 << 30, [0, 1 << 30], [1 << 29, 3], false);
    Case { spatial: vec![sparse, sparse], ..case([1, 1, 2, 3]) }.check_orders();
}

#[test]
fn sums_of_elements_of_fewer_channels_than_a_vector_has() {
    // Tiles reach beyond the result, which is smaller than one.
    for (rows, columns) in [(3, 4), (1, 40), (2, 2)] {
        let spatial =
            vec![(rows, 3, 1, [1, 1], [1, 1], false), (columns, 3, 1, [1, 2], [1, 1], true)];
        for order in [[0, 2, 3, 1], [0, 1, 2, 3]] {
            let orders = [order.to_vec(), vec![2, 3, 0, 1], order.to_vec()];
            for sizes in [[1, 1, 2, 1], [1, 2, 7, 9], [1, 1, 9, 15]] {
                Case { spatial: spatial.clone(), orders: orders.clone(), ..case(sizes) }
                    .check_sums();
            }
        }
    }
}

#[test]
fn windows_of_three_by_three_by_sums_of_elements() {
    let dim = |input, pad, reversed| (input, 3, 1, pad, [1, 1], reversed);
    for (batch, features, outputs, spatial) in [
        (1, 32, 16, vec![dim(12, [1, 1], false), dim(35, [1, 1], false)]),
        (1, 17, 90, vec![dim(21, [0, 0], false), dim(24, [5, 1], true)]),
        (1, 48, 48, vec![dim(12, [1, 1], false), dim(16, [1, 1], false)]),
        (2, 53, 49, vec![dim(9, [0, 1], false), dim(15, [2, 0], false)]),
        (4, 49, 66, vec![dim(7, [1, 1], true), dim(7, [1, 1], true)]),
        (1, 56, 51, vec![dim(20, [-1, 2], false), dim(37, [3, -2], true)]),
        (1, 48, 80, vec![dim(3, [4, 4], true), dim(70, [1, 1], false)]),
        (7, 80, 48, vec![dim(5, [1, 1], false), dim(6, [1, 1], false)]),
    ] {
        let case = |orders: [&[usize]; 3]| Case {
            groups: 1,
            batch_groups: false,
            batch,
            features,
            outputs,
            spatial: spatial.clone(),
            orders: orders.map(<[usize]>::to_vec),
        };
        let (first, last) = ([0, 1, 2, 3], [0, 2, 3, 1]);
        // Kernels as PyTorch and as JAX have them.
        for kernel in [[1, 0, 2, 3], [2, 3, 0, 1]] {
            case([&first, &kernel, &first])
                .check_by(|conv| conv.winograd == Some(Layout::ChannelsFirst));
            case([&last, &kernel, &last])
                .check_by(|conv| conv.winograd == Some(Layout::ChannelsLast));
        }
    }
}

#[test]
fn sums_of_elements_are_left_out_where_they_save_nothing() {
    let case = |batch, features, outputs, size| Case {
        groups: 1,
        batch_groups: false,
        batch,
        features,
        outputs,
        spatial: vec![(size, 3, 1, [1, 1], [1, 1], false), (size, 3, 1, [1, 1], [1, 1], false)],
        orders: [vec![0, 1, 2, 3], vec![1, 0, 2, 3], vec![0, 1, 2, 3]],
    };
    case(1, 48, 48, 14).check_by(|conv| conv.winograd.is_some());
    case(1, 16, 40, 24).check_by(|conv| conv.winograd.is_some());
    // No whole vector of features, or of outputs.
    case(1, 15, 64, 24).check_by(|conv| conv.winograd.is_none());
    case(1, 64, 15, 24).check_by(|conv| conv.winograd.is_none());
    // Few products, and few of which few are saved.
    case(1, 32, 32, 6).check_by(|conv| conv.winograd.is_none());
    case(1, 16, 16, 14).check_by(|conv| conv.winograd.is_none());
    // Four tiles for nine positions.
    case(20, 48, 48, 3).check_by(|conv| conv.winograd.is_none());
}
