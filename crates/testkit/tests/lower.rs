//! Computations lowered to kernels and run by the tile machine, against the interpreter.

use std::iter::zip;
use std::ops::Range;

use helio_codegen::elementwise::Recipes;
use helio_codegen::lower::{Arg, Lowered, Stage, Target, lower};
use helio_codegen::tile;
use helio_ir::text::parse;
use helio_ir::{Array, Literal, Module, Shape, Verified, verify};
use helio_testkit::tolerance::Tolerance;

/// Runs the stages on operands given as bytes. With `in_place`, results share the buffers of
/// operands where they may.
fn run(module: &Module, lowered: &Lowered, args: &[Literal], in_place: bool) -> Literal {
    let mut operands: Vec<Vec<u8>> = Vec::new();
    args.iter().for_each(|arg| bytes_of(arg, &mut operands));
    let shape = module.entry().result_shape();
    let leaves = shape.leaves();
    let mut results: Vec<Vec<u8>> =
        leaves.iter().map(|leaf| vec![0xcd; leaf.size_bytes()]).collect();
    let mut shared: Vec<(usize, usize)> = Vec::new();
    for &(operand, result) in &lowered.in_place {
        let free = shared.iter().all(|&(o, r)| o != operand && r != result);
        if in_place && free {
            shared.push((operand, result));
        }
    }
    shared.extend(&lowered.updates);
    for &(operand, result) in &shared {
        results[result].clone_from(&operands[operand]);
    }
    let mut temps: Vec<Vec<u8>> = lowered.temps.iter().map(|&bytes| vec![0xcd; bytes]).collect();
    for stage in &lowered.stages {
        stage.kernel.check().unwrap_or_else(|e| panic!("{e}\n{:#?}", stage.kernel));
        // In pieces, from the last to the first: no piece may depend on another.
        let (range, grain) = (stage.kernel.range, stage.kernel.grain);
        let cut = range / 2 / grain * grain;
        for (begin, end) in [(cut, range), (0, cut)] {
            if begin < end {
                let before = results.clone();
                piece(stage, &mut operands, &mut results, &mut temps, &shared, begin, end);
                check_run(stage, &before, &results, begin..end);
            }
        }
    }
    let mut results = results.into_iter();
    literal(shape, &mut results)
}

/// Where a stage says which elements of the result a piece of the range computes, it has changed no
/// others.
fn check_run(stage: &Stage, before: &[Vec<u8>], after: &[Vec<u8>], piece: Range<i64>) {
    let Some(run) = stage.run else { return };
    let result = stage.args.iter().find_map(|arg| match arg {
        Arg::Result(i) => Some(*i),
        _ => None,
    });
    let result = result.expect("the result that a run is of");
    let (before, after) = (&before[result], &after[result]);
    let unit = before.len() / stage.kernel.range as usize;
    assert!(unit.is_multiple_of(run) && unit * stage.kernel.range as usize == before.len());
    let (from, to) = (piece.start as usize * unit, piece.end as usize * unit);
    assert!(before[..from] == after[..from] && before[to..] == after[to..], "run of {run}");
}

fn piece(
    stage: &Stage,
    operands: &mut [Vec<u8>],
    results: &mut [Vec<u8>],
    temps: &mut [Vec<u8>],
    shared: &[(usize, usize)],
    begin: i64,
    end: i64,
) {
    let mut slots: Vec<Option<tile::FunctionArg<'_>>> = stage.args.iter().map(|_| None).collect();
    let place = |arg: Arg| stage.args.iter().position(|&a| a == arg);
    let written = |at: usize| stage.kernel.params[at].write;
    let lists = [operands, results, temps];
    for (kind, list) in lists.into_iter().enumerate() {
        for (i, bytes) in list.iter_mut().enumerate() {
            let arg = [Arg::Operand(i), Arg::Result(i), Arg::Temp(i)][kind];
            let Some(at) = place(arg) else { continue };
            let partner = shared.iter().find(|&&(o, _)| arg == Arg::Operand(o));
            let partner = partner.and_then(|&(_, r)| place(Arg::Result(r)));
            slots[at] = Some(match partner {
                Some(partner) => tile::FunctionArg::Same(partner),
                None if written(at) => tile::FunctionArg::Write(bytes),
                None => tile::FunctionArg::Read(bytes),
            });
        }
    }
    let mut slots: Vec<_> = slots.into_iter().map(|slot| slot.expect("every buffer")).collect();
    tile::run(&stage.kernel, &mut slots, begin, end)
        .unwrap_or_else(|e| panic!("{e}\n{:#?}", stage.kernel));
}

fn bytes_of(literal: &Literal, to: &mut Vec<Vec<u8>>) {
    match literal {
        Literal::Array(array) => to.push(array.to_bytes().into_owned()),
        Literal::Tuple(elements) => elements.iter().for_each(|element| bytes_of(element, to)),
        Literal::Token => to.push(Vec::new()),
    }
}

fn literal(shape: &Shape, bytes: &mut impl Iterator<Item = Vec<u8>>) -> Literal {
    match shape {
        Shape::Array(array) => {
            let bytes = bytes.next().expect("a buffer for each leaf");
            Array::from_bytes(array.clone(), &bytes).unwrap().into()
        }
        Shape::Tuple(elements) => {
            Literal::Tuple(elements.iter().map(|element| literal(element, bytes)).collect())
        }
        _ => panic!("{shape} of a fusion"),
    }
}

/// The module that `text` is the body of the entry of; computations may stand before `ENTRY`.
fn module(text: &str) -> Verified<Module> {
    let text = match text.contains("ENTRY") {
        true => format!("HloModule m\n{REDUCERS}\n{text}"),
        false => format!("HloModule m\n{REDUCERS}\nENTRY e {{\n{text}\n}}"),
    };
    let module = parse(&text).unwrap_or_else(|e| panic!("{text}: {e:?}"));
    verify(module).unwrap_or_else(|e| panic!("{text}: {e:?}"))
}

/// Lowers the entry computation and compares what it gives on random arguments.
fn check_with(text: &str, tolerance: Tolerance, vector_bytes: usize) -> Lowered {
    let module = module(text);
    let target = Target { vector_bytes, wide: false, capabilities: &Recipes };
    let lowered = lower(&module, module.entry_id(), target)
        .unwrap_or_else(|e| panic!("{}: {text}", e.reason));
    let params = module.entry().program_shape().params;
    let args = helio::random_arguments(&params, 1).unwrap();
    let expected = helio_eval::evaluate(&module, &args, &Default::default()).unwrap();
    for in_place in [false, true] {
        let found = run(&module, &lowered, &args, in_place);
        if let Err(e) = tolerance.compare(&found, &expected) {
            panic!("{e} (in place: {in_place}) {text}\n{:#?}", lowered.stages[0].kernel);
        }
    }
    lowered
}

fn check(text: &str, tolerance: Tolerance) -> Lowered {
    check_with(text, tolerance, 16);
    check_with(text, tolerance, 256);
    check_with(text, tolerance, 64)
}

fn exact(text: &str) -> Lowered {
    check(text, Tolerance::Exact)
}

/// Sums in another order than the interpreter's.
fn close(text: &str) -> Lowered {
    check(text, Tolerance::Distance { rtol: 1e-5, atol: 1e-4 })
}

fn unsupported(text: &str) -> String {
    let module = module(text);
    match lower(&module, module.entry_id(), Target::of(&tile::Portable, false)) {
        Err(e) => e.reason,
        Ok(_) => panic!("lowered: {text}"),
    }
}

const REDUCERS: &str = "
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }
adds { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = s32[] add(a, b) }
and { a = pred[] parameter(0) b = pred[] parameter(1) ROOT r = pred[] and(a, b) }
addb { a = bf16[] parameter(0) b = bf16[] parameter(1) ROOT r = bf16[] add(a, b) }
addc { a = c64[] parameter(0) b = c64[] parameter(1) ROOT r = c64[] add(a, b) }
addd { a = f64[] parameter(0) b = f64[] parameter(1) ROOT r = f64[] add(a, b) }
digits { a = s32[] parameter(0) b = s32[] parameter(1) ten = s32[] constant(10)
  t = s32[] multiply(a, ten) ROOT r = s32[] add(t, b) }
argmax {
  a = f32[] parameter(0) x = f32[] parameter(2)
  gt = pred[] compare(a, x), direction=GT
  ne = pred[] compare(a, a), direction=NE
  keep = pred[] or(gt, ne)
  v = f32[] select(keep, a, x)
  eq = pred[] compare(a, x), direction=EQ
  i = s32[] parameter(1) j = s32[] parameter(3)
  lt = pred[] compare(i, j), direction=LT
  tie = pred[] and(eq, lt)
  first = pred[] or(keep, tie)
  k = s32[] select(first, i, j)
  ROOT r = (f32[], s32[]) tuple(v, k)
}";

#[test]
fn elementwise_of_all_sizes() {
    for n in [1, 2, 3, 15, 16, 17, 31, 63, 64, 65, 127, 1009] {
        exact(&format!(
            "x = f32[{n}] parameter(0) y = f32[{n}] parameter(1) s = f32[] parameter(2)
             b = f32[{n}] broadcast(s), dimensions={{}}
             p = f32[{n}] add(x, b) ROOT r = f32[{n}] multiply(p, y)"
        ));
    }
    exact("x = f32[] parameter(0) ROOT r = f32[] negate(x)");
    exact("x = f32[0] parameter(0) ROOT r = f32[0] negate(x)");
    exact("x = f32[1,1] parameter(0) ROOT r = f32[1,1] negate(x)");
}

/// What a program of three parameters of 37 numbers, made up of `seed`, gives by kernels.
fn of_three(text: &str, seed: u64) -> ([Vec<f32>; 3], Literal) {
    let module = module(&format!(
        "x = f32[37] parameter(0) y = f32[37] parameter(1) z = f32[37] parameter(2) {text}"
    ));
    let target = Target { vector_bytes: 64, wide: false, capabilities: &Recipes };
    let lowered = lower(&module, module.entry_id(), target).unwrap();
    let args = helio::random_arguments(&module.entry().program_shape().params, seed).unwrap();
    let found = run(&module, &lowered, &args, false);
    let numbers = |i: usize| args[i].as_array().unwrap().values::<f32>().unwrap().to_vec();
    ([numbers(0), numbers(1), numbers(2)], found)
}

/// A product that is used for a sum or a difference alone is not rounded before; one that is used elsewhere as well is.
#[test]
fn products_that_are_added() {
    type Fused = fn(f32, f32, f32) -> f32;
    let forms: [(&str, Fused); 4] = [
        ("add(p, z)", |x, y, z| x.mul_add(y, z)),
        ("add(z, p)", |x, y, z| x.mul_add(y, z)),
        ("subtract(p, z)", |x, y, z| x.mul_add(y, -z)),
        ("subtract(z, p)", |x, y, z| (-x).mul_add(y, z)),
    ];
    for (form, fused) in forms {
        let text = format!("p = f32[37] multiply(x, y) ROOT r = f32[37] {form}");
        let ([x, y, z], found) = of_three(&text, 1);
        let expected: Vec<f32> = (0..37).map(|i| fused(x[i], y[i], z[i])).collect();
        assert_eq!(found.as_array().unwrap().values::<f32>().unwrap(), expected, "{form}");
        exact(&format!(
            "x = f32[37] parameter(0) y = f32[37] parameter(1) z = f32[37] parameter(2)
             p = f32[37] multiply(x, y) s = f32[37] {form}
             ROOT t = (f32[37], f32[37]) tuple(s, p)"
        ));
        exact(&format!(
            "x = f32[37] parameter(0) y = f32[37] parameter(1) z = f32[37] parameter(2)
             p = f32[37] multiply(x, y) s = f32[37] {form} ROOT r = f32[37] divide(s, p)"
        ));
    }
    // The first of two products.
    let text = "p = f32[37] multiply(x, y) q = f32[37] multiply(y, z) ROOT r = f32[37] add(p, q)";
    let ([x, y, z], found) = of_three(text, 2);
    let expected: Vec<f32> = (0..37).map(|i| x[i].mul_add(y[i], y[i] * z[i])).collect();
    assert_eq!(found.as_array().unwrap().values::<f32>().unwrap(), expected);
    // Squares that fill one vector, one for each lane: what is added is exact.
    let text = "p = f32[37] multiply(x, y) i = f32[] constant(0)
                ROOT r = f32[] reduce(p, i), dimensions={0}, to_apply=add";
    let ([x, y, _], found) = of_three(text, 3);
    let exact_sum: f64 = zip(&x, &y).map(|(&x, &y)| f64::from(x) * f64::from(y)).sum();
    let found = f64::from(found.as_array().unwrap().values::<f32>().unwrap()[0]);
    assert!((found - exact_sum).abs() <= 1e-6 * exact_sum.abs().max(1.0), "{found} {exact_sum}");
}

/// Bits that are shifted to both sides and joined, as one rotation does it.
#[test]
fn rotations() {
    for (ty, width) in [("u32", 32), ("s32", 32), ("u64", 64), ("s64", 64), ("u16", 16), ("u8", 8)]
    {
        for by in [0, 1, 7, width / 2, width - 1, width] {
            for join in ["or", "xor", "add"] {
                let shifts = format!(
                    "x = {ty}[37] parameter(0) c = {ty}[] constant({by})
                     d = {ty}[] constant({})
                     l = {ty}[37] broadcast(c), dimensions={{}}
                     r = {ty}[37] broadcast(d), dimensions={{}}
                     high = {ty}[37] shift-left(x, l)
                     low = {ty}[37] shift-right-logical(x, r)",
                    width - by
                );
                exact(&format!("{shifts} ROOT o = {ty}[37] {join}(high, low)"));
                exact(&format!("{shifts} ROOT o = {ty}[37] {join}(low, high)"));
                // The shifts are used for something else, too.
                exact(&format!(
                    "{shifts} o = {ty}[37] {join}(high, low) p = {ty}[37] multiply(o, high)
                     ROOT q = {ty}[37] subtract(p, low)"
                ));
            }
        }
    }
    // No rotations: the counts do not add up, or other numbers are shifted.
    exact(
        "x = u32[37] parameter(0) y = u32[37] parameter(1) c = u32[] constant(5)
         l = u32[37] broadcast(c), dimensions={} d = u32[] constant(26)
         r = u32[37] broadcast(d), dimensions={} high = u32[37] shift-left(x, l)
         low = u32[37] shift-right-logical(x, r) o = u32[37] or(high, low)
         e = u32[] constant(27) s = u32[37] broadcast(e), dimensions={}
         other = u32[37] shift-right-logical(y, s) ROOT p = u32[37] xor(o, other)",
    );
}

#[test]
fn elementwise_of_other_types() {
    for ty in ["s8", "u16", "s64", "bf16", "f16", "f64", "c64", "c128", "u4"] {
        exact(&format!(
            "x = {ty}[7,11] parameter(0) y = {ty}[7,11] parameter(1)
             s = {ty}[7,11] add(x, y) ROOT r = {ty}[7,11] subtract(s, x)"
        ));
    }
    exact(
        "x = pred[77] parameter(0) y = f32[77] parameter(1) z = f32[77] parameter(2)
         s = f32[77] select(x, y, z) ROOT r = (f32[77], pred[77]) tuple(s, x)",
    );
}

#[test]
fn movements() {
    exact(
        "x = f32[5,7,9] parameter(0) t = f32[9,5,7] transpose(x), dimensions={2,0,1}
         r = f32[9,35] reshape(t) ROOT n = f32[9,35] negate(r)",
    );
    exact(
        "x = f32[24] parameter(0) y = f32[4,6] parameter(1) a = f32[4,6] reshape(x)
         t = f32[6,4] transpose(a), dimensions={1,0} u = f32[6,4] transpose(y), dimensions={1,0}
         s = f32[6,4] add(t, u) ROOT r = f32[2,3,2,2] reshape(s)",
    );
    exact(
        "x = f32[10,20] parameter(0) s = f32[4,6] slice(x), slice={[1:9:2], [2:20:3]}
         s2 = f32[4,5] slice(s), slice={[0:4], [1:6]}
         v = f32[4,5] reverse(s2), dimensions={0,1} ROOT r = f32[4,5] negate(v)",
    );
    exact(
        "x = f32[10,37] parameter(0) v = f32[10,37] reverse(x), dimensions={1}
         ROOT r = f32[10,37] add(x, v)",
    );
    exact(
        "x = f32[7] parameter(0) b = f32[5,7,3] broadcast(x), dimensions={1}
         i = f32[5,7,3] iota(), iota_dimension=0 j = f32[5,7,3] iota(), iota_dimension=2
         s = f32[5,7,3] add(b, i) ROOT r = f32[5,7,3] multiply(s, j)",
    );
    for ty in ["u8", "s64", "bf16", "c64", "f64", "s32"] {
        exact(&format!("ROOT r = {ty}[3,90] iota(), iota_dimension=1"));
    }
}

/// Channels and coordinates: the last dimension is short, and the loop over lanes is another one.
#[test]
fn short_last_dimensions() {
    for (ty, channels) in [("f32", 3), ("u8", 3), ("s16", 4), ("bf16", 2), ("f64", 5), ("c64", 3)] {
        for pixels in [16, 64, 131] {
            exact(&format!(
                "x = {ty}[{pixels},{channels}] parameter(0) p = {ty}[{channels}] parameter(1)
                 b = {ty}[{pixels},{channels}] broadcast(p), dimensions={{1}}
                 ROOT r = {ty}[{pixels},{channels}] subtract(x, b)"
            ));
            exact(&format!(
                "x = {ty}[2,{pixels},{channels}] parameter(0) p = {ty}[{channels}] parameter(1)
                 t = {ty}[2,{channels},{pixels}] transpose(x), dimensions={{0,2,1}}
                 b = {ty}[2,{channels},{pixels}] broadcast(p), dimensions={{1}}
                 a = {ty}[2,{channels},{pixels}] add(t, b)
                 ROOT r = {ty}[2,{pixels},{channels}] transpose(a), dimensions={{0,2,1}}"
            ));
        }
    }
    // Cross products.
    exact(
        "x = f32[131,3] parameter(0) y = f32[131,3] parameter(1)
         a = f32[131,1] slice(x), slice={[0:131],[0:1]} b = f32[131,1] slice(x), slice={[0:131],[1:2]}
         c = f32[131,1] slice(y), slice={[0:131],[1:2]} d = f32[131,1] slice(y), slice={[0:131],[2:3]}
         p = f32[131,1] multiply(b, d) q = f32[131,1] multiply(a, d) r = f32[131,1] multiply(a, c)
         k = f32[131,3] concatenate(p, q, r), dimensions={1}
         t = f32[3,131] transpose(k), dimensions={1,0} ROOT n = f32[3,131] negate(t)",
    );
}

#[test]
fn short_rows() {
    // Some are longer than a vector, but no whole number of them.
    for k in [2, 3, 4, 5, 7, 10, 12, 15, 20, 24, 36, 40, 72, 136] {
        for n in [1, 7, 16, 33, 100] {
            let flat = n * k;
            // A number for each column, and one for each row.
            exact(&format!(
                "x = f32[{n},{k}] parameter(0) c = f32[{k}] parameter(1) r = f32[{n}] parameter(2)
                 cb = f32[{n},{k}] broadcast(c), dimensions={{1}}
                 rb = f32[{n},{k}] broadcast(r), dimensions={{0}}
                 s = f32[{n},{k}] add(x, cb) ROOT p = f32[{n},{k}] multiply(s, rb)"
            ));
            // Columns put together, in the order of another array, and by their number.
            exact(&format!(
                "x = u8[{n},1] parameter(0) y = u8[{n},{k}] parameter(1) t = u8[{k},{n}] parameter(2)
                 c = u8[{n},{j}] concatenate(x, y), dimensions={{1}}
                 d = u8[{n},{k}] slice(c), slice={{[0:{n}], [0:{k}]}}
                 u = u8[{n},{k}] transpose(t), dimensions={{1,0}}
                 s = u8[{n},{k}] add(d, u) i = u8[{n},{k}] iota(), iota_dimension=1
                 q = u8[{n},{k}] multiply(s, i) m = u8[{n},{k}] iota(), iota_dimension=0
                 ROOT r = u8[{n},{k}] subtract(q, m)",
                j = k + 1
            ));
            // Elements repeated.
            exact(&format!(
                "x = bf16[{n}] parameter(0) b = bf16[{n},{k}] broadcast(x), dimensions={{0}}
                 y = bf16[{flat}] parameter(1) f = bf16[{flat}] reshape(b)
                 ROOT r = bf16[{flat}] subtract(f, y)"
            ));
            // Batches, 64-bit lanes, margins.
            exact(&format!(
                "x = f64[3,{n},{h}] parameter(0) f = f64[] parameter(1) y = f64[{k},3] parameter(2)
                 p = f64[3,{n},{k}] pad(x, f), padding=0_0x0_0x1_0
                 b = f64[3,{n},{k}] broadcast(y), dimensions={{2,0}}
                 ROOT r = f64[3,{n},{k}] add(p, b)",
                h = k - 1
            ));
            exact(&format!(
                "x = c64[{n},{k}] parameter(0) c = c64[{k}] parameter(1)
                 b = c64[{n},{k}] broadcast(c), dimensions={{1}}
                 v = c64[{n},{k}] reverse(x), dimensions={{1}}
                 s = c64[{n},{k}] subtract(v, b) ROOT r = (c64[{n},{k}], c64[{n},{k}]) tuple(s, b)"
            ));
        }
    }
}

#[test]
fn pads_and_joins() {
    exact(
        "x = f32[20,10] parameter(0) y = f32[20,12] parameter(1) z = s32[] constant(7)
         c = f32[20,22] concatenate(x, y), dimensions={1}
         s = f32[20,17] slice(c), slice={[0:20], [3:20]} f = f32[] convert(z)
         ROOT p = f32[22,22] pad(s, f), padding=1_1x2_3",
    );
    exact(
        "x = f32[40,50] parameter(0) f = f32[] constant(1)
         ROOT p = f32[39,50] pad(x, f), padding=-3_2x5_-5",
    );
    exact(
        "x = f32[0] parameter(0) f = f32[] parameter(1)
         ROOT p = f32[50] pad(x, f), padding=30_20",
    );
    // A roll, up and to the left.
    exact(
        "x = f32[12,33] parameter(0)
         a = f32[11,33] slice(x), slice={[1:12], [0:33]} b = f32[1,33] slice(x), slice={[0:1], [0:33]}
         c = f32[12,33] concatenate(a, b), dimensions={0}
         d = f32[12,32] slice(x), slice={[0:12], [1:33]} e = f32[12,1] slice(x), slice={[0:12], [0:1]}
         f = f32[12,33] concatenate(d, e), dimensions={1}
         ROOT r = f32[12,33] add(c, f)",
    );
    exact(
        "x = f32[4,1] parameter(0) y = f32[4,1] parameter(1) z = f32[4,0] parameter(2)
         n = f32[4,1] negate(y) ROOT c = f32[4,3] concatenate(x, z, n, x), dimensions={1}",
    );
    exact(
        "x = f32[9,40] parameter(0) f = f32[] constant(1)
         p = f32[9,45] pad(x, f), padding=0_0x2_3 r = f32[9,45] reverse(p), dimensions={1}
         ROOT s = f32[9,15] slice(r), slice={[0:9], [0:45:3]}",
    );
    // Of one dimension, and more rows than units of a range.
    exact(
        "x = f32[700] parameter(0) y = f32[613] parameter(1) n = f32[613] negate(y)
         c = f32[1313] concatenate(x, n), dimensions={0} f = f32[] parameter(2)
         ROOT p = f32[1400] pad(c, f), padding=37_50",
    );
    exact(
        "x = f32[1500] parameter(0) y = f32[300] parameter(1) i = f32[1500,3] iota(), iota_dimension=1
         a = f32[1500,3] broadcast(x), dimensions={0} b = f32[300,3] broadcast(y), dimensions={0}
         c = f32[1800,3] concatenate(a, b), dimensions={0} j = f32[1800,3] iota(), iota_dimension=1
         ROOT s = f32[1800,3] add(c, j)",
    );
    exact(
        "x = f32[40,30,50] parameter(0) y = f32[40,50] parameter(1)
         b = f32[40,12,50] broadcast(y), dimensions={0,2}
         c = f32[40,42,50] concatenate(x, b), dimensions={1} f = f32[] constant(-2)
         p = f32[43,42,54] pad(c, f), padding=1_2x0_0x3_1
         ROOT t = f32[43,42,54] abs(p)",
    );
    // Cut in two of the loops that the range counts.
    exact(
        "x = f32[20,30,9] parameter(0) f = f32[] constant(3)
         p = f32[23,35,9] pad(x, f), padding=1_2x3_2x0_0 ROOT n = f32[23,35,9] negate(p)",
    );
    assert_eq!(
        unsupported(
            "x = f32[9] parameter(0) f = f32[] constant(1)
             ROOT p = f32[17] pad(x, f), padding=0_0_1"
        ),
        "padding between elements"
    );
}

/// Two grids side by side whose rows do not fill vectors, of what differs from row to row of a grid: lanes
/// beyond the end of a row are in neither grid.
#[test]
fn joins_of_grids() {
    for (ty, count, rows, columns) in [
        ("f64", 2, 7, 7),
        ("f64", 180, 7, 7),
        ("f32", 3, 7, 7),
        ("f32", 2, 5, 19),
        ("f64", 2, 9, 3),
        ("s8", 2, 11, 37),
        ("f32", 4, 3, 31),
    ] {
        let (grid, both) = (rows * columns, 2 * rows * columns);
        let array = |dims: &[usize]| {
            let dims: Vec<String> = dims.iter().map(usize::to_string).collect();
            format!("{ty}[{}]", dims.join(","))
        };
        let all = array(&[count, rows, columns]);
        let bits = format!("pred[{count},{rows}]");
        let chosen = format!("pred[{count},{rows},{columns}]");
        let (each, line) = (array(&[count, rows]), array(&[count, grid]));
        exact(&format!(
            "x = {all} parameter(0) y = {all} parameter(1) z = {all} parameter(2)
             p = {bits} parameter(3) q = {bits} parameter(4) u = {bits} parameter(5) w = {each} parameter(6)
             pq = {bits} and(p, q) a = {chosen} broadcast(pq), dimensions={{0,1}}
             b = {chosen} broadcast(u), dimensions={{0,1}} e = {all} broadcast(w), dimensions={{0,1}}
             s = {all} select(a, x, z) m = {all} multiply(s, e) t = {all} select(b, y, z)
             l = {line} reshape(m) r = {line} reshape(t)
             ROOT c = {} concatenate(l, r), dimensions={{1}}",
            array(&[count, both])
        ));
    }
}

#[test]
fn folds_of_pads_and_joins() {
    let sum = "sum { x = f32[] parameter(0) y = f32[] parameter(1) ROOT s = f32[] add(x, y) }";
    for (dims, kept) in [("{1}", 40), ("{0}", 107), ("{0,1}", 0)] {
        let kept = if kept == 0 { String::new() } else { kept.to_string() };
        close(&format!(
            "{sum} ENTRY e {{ x = f32[40,50] parameter(0) y = f32[40,50] parameter(1)
             c = f32[40,100] concatenate(x, y), dimensions={{1}} f = f32[] constant(0.5)
             p = f32[40,107] pad(c, f), padding=0_0x3_4 z = f32[] constant(1)
             ROOT r = f32[{kept}] reduce(p, z), dimensions={dims}, to_apply=sum }}"
        ));
    }
    // In parts, and in several passes.
    close(&format!(
        "{sum} ENTRY e {{ x = f32[40000] parameter(0) y = f32[30000] parameter(1)
         e = f32[30000] exponential(y) c = f32[70000] concatenate(x, e), dimensions={{0}}
         z = f32[] constant(0) ROOT r = f32[] reduce(c, z), dimensions={{0}}, to_apply=sum }}"
    ));
    for dims in ["{0}", "{1}"] {
        let (kept, dim) = if dims == "{1}" { (9, 0) } else { (64, 1) };
        close(&format!(
            "{sum} ENTRY e {{ x = f32[9,30] parameter(0) y = f32[9,34] parameter(1)
             e = f32[9,34] exponential(y) c = f32[9,64] concatenate(x, e), dimensions={{1}}
             t = f32[9,64] tanh(c) z = f32[] constant(0)
             s = f32[{kept}] reduce(t, z), dimensions={dims}, to_apply=sum
             b = f32[9,64] broadcast(s), dimensions={{{dim}}} ROOT d = f32[9,64] subtract(t, b) }}"
        ));
    }
}

#[test]
fn places_known_at_run_time() {
    for ty in ["s32", "u32", "u8", "s64"] {
        exact(&format!(
            "x = f32[9,50] parameter(0) i = {ty}[] parameter(1) j = {ty}[] parameter(2)
             d = f32[3,37] dynamic-slice(x, i, j), dynamic_slice_sizes={{3,37}}
             ROOT n = f32[3,37] negate(d)"
        ));
    }
    exact(
        "x = f32[9,50] parameter(0) i = s32[] parameter(1) n = s32[] negate(i) z = s32[] constant(2)
         d = f32[3,37] dynamic-slice(x, n, z), dynamic_slice_sizes={3,37}
         ROOT r = f32[3,37] negate(d)",
    );
    let updated = exact(
        "x = f32[9,50] parameter(0) u = f32[2,30] parameter(1) i = s32[] parameter(2)
         z = s32[] constant(3) n = f32[2,30] negate(u)
         ROOT d = f32[9,50] dynamic-update-slice(x, n, z, i)",
    );
    assert_eq!(updated.updates, [(0, 0)]);
    // By nothing.
    exact(
        "x = f32[298,9] parameter(0) u = f32[98,0] parameter(1) i = s32[] parameter(2)
         n = s32[] negate(i) ROOT d = f32[298,9] dynamic-update-slice(x, u, n, n)",
    );
    // What is updated is what was read.
    exact(
        "x = f32[9,50] parameter(0) i = s32[] parameter(1) z = s32[] constant(0)
         s = f32[1,50] dynamic-slice(x, i, z), dynamic_slice_sizes={1,50} n = f32[1,50] negate(s)
         ROOT d = f32[9,50] dynamic-update-slice(x, n, i, z)",
    );
    exact(
        "x = f32[9,50] parameter(0) u = f32[2,30] parameter(1) i = s32[] parameter(2)
         z = s32[] constant(3) n = f32[9,50] negate(x)
         d = f32[9,50] dynamic-update-slice(n, u, z, i) ROOT r = f32[9,50] negate(d)",
    );
}

#[test]
fn gathers() {
    // Rows, and single elements in each lane.
    exact(
        "x = f32[40,23] parameter(0) i = s32[17,1] parameter(1)
         g = f32[17,23] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},
           index_vector_dim=1, slice_sizes={1,23} ROOT n = f32[17,23] negate(g)",
    );
    exact(
        "x = f32[40] parameter(0) i = s32[77] parameter(1)
         g = f32[77] gather(x, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0},
           index_vector_dim=1, slice_sizes={1} ROOT n = f32[77] negate(g)",
    );
    exact(
        "x = f64[10,20] parameter(0) i = s64[33,2] parameter(1)
         g = f64[33] gather(x, i), offset_dims={}, collapsed_slice_dims={0,1}, start_index_map={1,0},
           index_vector_dim=1, slice_sizes={1,1} ROOT n = f64[33] negate(g)",
    );
    // Wide indices of whole rows leave lanes narrow; those of single elements do not.
    let rows = exact(
        "x = f32[40,23] parameter(0) i = s64[17] parameter(1)
         g = f32[17,23] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},
           index_vector_dim=1, slice_sizes={1,23} ROOT n = f32[17,23] negate(g)",
    );
    assert_eq!(rows.stages[0].kernel.lanes, 16);
    let elements = exact(
        "x = f32[40] parameter(0) i = s64[77] parameter(1)
         g = f32[77] gather(x, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0},
           index_vector_dim=1, slice_sizes={1} ROOT n = f32[77] negate(g)",
    );
    assert_eq!(elements.stages[0].kernel.lanes, 8);
}

/// Indices that a program counts by itself: windows, with counters below zero made positive as NumPy does, lie
/// where lanes read them side by side; what leaves the range of its type is no index expression.
#[test]
fn gathers_by_counters() {
    let windows = |ty: &str, first: i32, step: i32, size: i32| {
        exact(&format!(
            "x = f32[{size}] parameter(0)
             first = {ty}[] constant({first})  f = {ty}[9] broadcast(first), dimensions={{}}
             step = {ty}[] constant({step})  b = {ty}[9] broadcast(step), dimensions={{}}
             i = {ty}[9] iota(), iota_dimension=0  m = {ty}[9] multiply(i, b)  d = {ty}[9] add(m, f)
             e = {ty}[9,33] broadcast(d), dimensions={{0}}  c = {ty}[9,33] iota(), iota_dimension=1
             s = {ty}[9,33] add(e, c)
             z = {ty}[] constant(0)  zs = {ty}[9,33] broadcast(z), dimensions={{}}
             n = {ty}[] constant({size})  ns = {ty}[9,33] broadcast(n), dimensions={{}}
             below = pred[9,33] compare(s, zs), direction=LT
             more = {ty}[9,33] add(s, ns)  at = {ty}[9,33] select(below, more, s)
             k = s32[9,33] convert(at)  v = s32[9,33,1] reshape(k)
             g = f32[9,33] gather(x, v), offset_dims={{}}, collapsed_slice_dims={{0}},
               start_index_map={{0}}, index_vector_dim=2, slice_sizes={{1}}
             ROOT h = f32[9,33] negate(g)"
        ))
    };
    for ty in ["s32", "s64", "u32", "u8"] {
        let side_by_side = windows(ty, 0, 3, 100);
        let lanes = side_by_side.stages[0].kernel.lanes;
        assert_eq!(lanes, 16, "{ty}: what indices are made of takes no lanes");
        // Beyond the array places are moved inside; of `u8` they wrap.
        windows(ty, 0, 3, 40);
        windows(ty, 7, 40, 100);
    }
    // Below zero at first, and in the end.
    windows("s32", -20, 3, 100);
    windows("s64", 8, -3, 100);
    windows("s8", 60, 9, 100);
}

/// What a program makes of counters: clamps, remainders, magnitudes, where it is known which of their operands they give,
/// and where it is not.
#[test]
fn gathers_by_arithmetic_on_counters() {
    let gathers = |ty: &str, at: &str| {
        let at = at.replace('S', &format!("{ty}[9,33]"));
        let lowered = exact(&format!(
            "x = f32[100] parameter(0)
             a = {ty}[9,33] iota(), iota_dimension=0  b = {ty}[9,33] iota(), iota_dimension=1
             s = {ty}[9,33] add(a, b)
             c0 = {ty}[] constant(0)  zero = {ty}[9,33] broadcast(c0), dimensions={{}}
             c20 = {ty}[] constant(20)  twenty = {ty}[9,33] broadcast(c20), dimensions={{}}
             c40 = {ty}[] constant(40)  forty = {ty}[9,33] broadcast(c40), dimensions={{}}
             c41 = {ty}[] constant(41)  more = {ty}[9,33] broadcast(c41), dimensions={{}}
             {at}
             k = s32[9,33] convert(at)  v = s32[9,33,1] reshape(k)
             g = f32[9,33] gather(x, v), offset_dims={{}}, collapsed_slice_dims={{0}},
               start_index_map={{0}}, index_vector_dim=2, slice_sizes={{1}}
             ROOT h = f32[9,33] negate(g)"
        ));
        format!("{:?}", lowered.stages[0].kernel.body).contains("Gather {")
    };
    for ty in ["s32", "s64", "u32", "s16"] {
        let known = [
            "at = S clamp(zero, s, forty)",
            "at = S clamp(forty, s, twenty)",
            "at = S clamp(forty, s, more)",
            "at = S clamp(zero, forty, s)",
            "at = S remainder(s, more)",
            "q = S divide(s, more)  at = S add(q, s)",
        ];
        let unknown = [
            "at = S clamp(twenty, s, forty)",
            "at = S clamp(zero, s, twenty)",
            "at = S clamp(s, twenty, forty)",
            "at = S remainder(s, forty)",
            "q = S divide(s, twenty)  at = S add(q, s)",
        ];
        for at in known {
            assert!(!gathers(ty, at), "{ty}: {at}");
        }
        for at in unknown {
            assert!(gathers(ty, at), "{ty}: {at}");
        }
    }
    for ty in ["s32", "s64", "s16"] {
        for (at, jumps) in [
            ("n = S negate(s)  at = S add(forty, n)", false),
            ("at = S abs(s)", false),
            ("m = S subtract(s, forty)  at = S abs(m)", false),
            ("m = S subtract(s, twenty)  at = S abs(m)", true),
            ("m = S subtract(s, forty)  at = S remainder(m, more)", true),
        ] {
            assert_eq!(gathers(ty, at), jumps, "{ty}: {at}");
        }
    }
}

#[test]
fn sums_over_rows_columns_and_all() {
    for (rows, columns) in [(1, 1), (3, 9), (5, 1000), (70, 33), (9, 16), (300, 64), (2, 70000)] {
        for (dims, out) in
            [("0", format!("{columns}")), ("1", format!("{rows}")), ("0,1", String::new())]
        {
            close(&format!(
                "x = f32[{rows},{columns}] parameter(0) z = f32[] constant(0)
                 n = f32[{rows},{columns}] negate(x)
                 s = f32[{out}] reduce(n, z), dimensions={{{dims}}}, to_apply=add
                 ROOT r = f32[{out}] negate(s)"
            ));
        }
    }
    close(
        "x = f32[3,50,4,20] parameter(0) z = f32[] parameter(1)
         ROOT s = f32[50,20] reduce(x, z), dimensions={0,2}, to_apply=add",
    );
    close(
        "x = f32[3,50,4,20] parameter(0) z = f32[] parameter(1)
         ROOT s = f32[3,4] reduce(x, z), dimensions={1,3}, to_apply=add",
    );
    exact(
        "x = f32[3,0] parameter(0) z = f32[] parameter(1)
         ROOT s = f32[3] reduce(x, z), dimensions={1}, to_apply=add",
    );
    close(
        "x = f32[100000,3] parameter(0) z = f32[] parameter(1)
         ROOT s = f32[3] reduce(x, z), dimensions={0}, to_apply=add",
    );
}

/// Of arrays so long that some rows are folded at a time, at all columns.
#[test]
fn long_columns() {
    close(
        "b = s8[4201,2003] parameter(0) z = f32[] parameter(1)
         x = f32[4201,2003] convert(b)
         s = f32[2003] reduce(x, z), dimensions={0}, to_apply=add
         ROOT n = f32[2003] negate(s)",
    );
    exact(
        "b = s8[2,2100,2003] parameter(0) t = pred[] constant(true) zero = s8[] constant(3)
         zeros = s8[2,2100,2003] broadcast(zero), dimensions={}
         c = pred[2,2100,2003] compare(b, zeros), direction=NE
         ROOT s = pred[2,2003] reduce(c, t), dimensions={1}, to_apply=and",
    );
    // Whether each row counts depends on the row; the rows begin with padding.
    exact(
        "b = s8[3001,2800] parameter(0) z = s8[] constant(0) i = s32[] constant(0)
         p = s8[3016,2800] pad(b, z), padding=14_1x0_0
         x = s32[3016,2800] convert(p)
         ROOT s = s32[2800] reduce(x, i), dimensions={0}, to_apply=adds",
    );
}

/// Of each two rows of two arrays: iterations of the loop over the first array's rows are folded together.
#[test]
fn folds_of_pairs_of_rows() {
    for (rows, others, length) in [(8, 16, 5), (13, 70, 9), (67, 33, 4), (1, 40, 12), (9, 300, 1)] {
        let pairs = format!(
            "x = f32[{rows},{length}] parameter(0) y = f32[{others},{length}] parameter(1)
             z = f32[] constant(0)
             xs = f32[{rows},{others},{length}] broadcast(x), dimensions={{0,2}}
             ys = f32[{rows},{others},{length}] broadcast(y), dimensions={{1,2}}
             d = f32[{rows},{others},{length}] subtract(xs, ys)
             q = f32[{rows},{others},{length}] multiply(d, d)"
        );
        close(&format!(
            "{pairs} ROOT s = f32[{rows},{others}] reduce(q, z), dimensions={{2}}, to_apply=add"
        ));
        // Functions of what is folded, and of which row it is.
        close(&format!(
            "{pairs} s = f32[{rows},{others}] reduce(q, z), dimensions={{2}}, to_apply=add
             i = s32[{rows},{others}] iota(), iota_dimension=0
             f = f32[{rows},{others}] convert(i)
             n = f32[{rows},{others}] multiply(s, f)
             ROOT e = f32[{rows},{others}] sqrt(n)"
        ));
    }
    // Batches of them; of each, several iterations of the last outer loop.
    exact(
        "x = s32[3,11,6] parameter(0) y = s32[3,35,6] parameter(1) z = s32[] constant(7)
         xs = s32[3,11,35,6] broadcast(x), dimensions={0,1,3}
         ys = s32[3,11,35,6] broadcast(y), dimensions={0,2,3}
         m = s32[3,11,35,6] multiply(xs, ys)
         ROOT s = s32[3,11,35] reduce(m, z), dimensions={3}, to_apply=adds",
    );
    close(
        "x = f64[10,6] parameter(0) y = f64[37,6] parameter(1) z = f64[] constant(0)
         xs = f64[10,37,6] broadcast(x), dimensions={0,2}
         ys = f64[10,37,6] broadcast(y), dimensions={1,2}
         d = f64[10,37,6] subtract(xs, ys) a = f64[10,37,6] abs(d)
         ROOT s = f64[10,37] reduce(a, z), dimensions={2}, to_apply=addd",
    );
}

#[test]
fn sums_of_other_types() {
    exact(
        "x = s32[40,33] parameter(0) z = s32[] parameter(1)
         ROOT s = s32[40] reduce(x, z), dimensions={1}, to_apply=adds",
    );
    exact(
        "x = f32[40,33] parameter(0) y = f32[40,33] parameter(1) t = pred[] constant(true)
         c = pred[40,33] compare(x, y), direction=NE
         ROOT s = pred[40] reduce(c, t), dimensions={1}, to_apply=and",
    );
    check(
        "x = bf16[40,330] parameter(0) z = bf16[] constant(0)
         ROOT s = bf16[40] reduce(x, z), dimensions={1}, to_apply=addb",
        Tolerance::Distance { rtol: 0.05, atol: 1.0 },
    );
    close(
        "x = c64[40,33] parameter(0) z = c64[] constant((0,0))
         ROOT s = c64[40] reduce(x, z), dimensions={1}, to_apply=addc",
    );
    close(
        "x = f64[4,33,7] parameter(0) z = f64[] constant(0)
         ROOT s = f64[33] reduce(x, z), dimensions={0,2}, to_apply=addd",
    );
    // In order, from the left.
    exact(
        "x = s32[5,9] parameter(0) z = s32[] constant(0)
         ROOT s = s32[5] reduce(x, z), dimensions={1}, to_apply=digits",
    );
    exact(
        "x = s32[90] parameter(0) z = s32[] constant(0)
         ROOT s = s32[] reduce(x, z), dimensions={0}, to_apply=digits",
    );
}

#[test]
fn truth_over_rows() {
    for (rows, columns) in [(40, 16), (300, 7), (3, 100), (1, 50000)] {
        for (op, init) in [("and", true), ("or", false), ("xor", false)] {
            // Few are equal, so that each answer comes up.
            exact(
                &format!(
                "p {{ a = pred[] parameter(0) b = pred[] parameter(1) ROOT c = pred[] {op}(a, b) }}
                 ENTRY e {{
                   x = s8[{rows},{columns}] parameter(0) y = s8[{rows},{columns}] parameter(1)
                   m = s8[] constant(15) ms = s8[{rows},{columns}] broadcast(m), dimensions={{}}
                   a = s8[{rows},{columns}] and(x, ms) c = s8[{rows},{columns}] and(y, ms)
                   t = pred[{rows},{columns}] compare(a, c), direction={{}}
                   i = pred[] constant({init})
                   ROOT r = pred[{rows}] reduce(t, i), dimensions={{1}}, to_apply=p
                 }}"
            )
                .replace("direction={}", if op == "and" { "direction=NE" } else { "direction=EQ" }),
            );
        }
    }
}

#[test]
fn largest_and_their_places() {
    for (rows, columns) in [(7, 1000), (1, 70000), (90, 10), (40, 3)] {
        for (dim, out) in [(0, columns), (1, rows)] {
            exact(&format!(
                "x = f32[{rows},{columns}] parameter(0) i = s32[{rows},{columns}] iota(), iota_dimension={dim}
                 c = f32[{rows},{columns}] sqrt(x)
                 low = f32[] constant(-inf) z = s32[] constant(0)
                 ROOT m = (f32[{out}], s32[{out}]) reduce(c, i, low, z), dimensions={{{dim}}}, to_apply=argmax"
            ));
        }
    }
}

/// Rows whose columns are read together, in the lanes of vectors, and folded one after the other.
#[test]
fn columns_of_rows_are_folded() {
    for columns in [9, 12, 16, 17, 20, 24] {
        for rows in [50, 64, 79, 100] {
            // A part of each row, the greatest element and its place, and a result for each element.
            let part = columns - 3;
            close(&format!(
                "x = f32[{rows},{columns}] parameter(0) z = f32[] constant(0) low = f32[] constant(-inf)
                 t = f32[{rows},{part}] slice(x), slice={{[0:{rows}], [2:{end}]}}
                 s = f32[{rows}] reduce(t, z), dimensions={{1}}, to_apply=add
                 sb = f32[{rows},{part}] broadcast(s), dimensions={{0}} d = f32[{rows},{part}] subtract(t, sb)
                 m = f32[{rows}] reduce(d, low), dimensions={{1}}, to_apply=max
                 ROOT r = (f32[{rows}], f32[{rows},{part}], f32[{rows}]) tuple(s, d, m)",
                end = part + 2
            ));
            for (ty, reducer) in [("f64", "addd"), ("s32", "adds"), ("s32", "digits")] {
                close(&format!(
                    "x = {ty}[{rows},{columns}] parameter(0) z = {ty}[] constant(0)
                     xx = {ty}[{rows},{columns}] multiply(x, x)
                     s = {ty}[{rows}] reduce(xx, z), dimensions={{1}}, to_apply={reducer}
                     ROOT r = {ty}[{rows}] add(s, s)"
                ));
            }
            close(&format!(
                "x = f32[{rows},{columns}] parameter(0) i = s32[{rows},{columns}] iota(), iota_dimension=1
                 low = f32[] constant(-inf) n = s32[] constant(0)
                 ROOT r = (f32[{rows}], s32[{rows}]) reduce(x, i, low, n), dimensions={{1}}, to_apply=argmax"
            ));
        }
    }
}

#[test]
fn rows_in_several_passes() {
    let sizes =
        [10, 16, 19, 20, 21, 32, 64, 1000].map(|columns| [30, 3, 100].map(|rows| (rows, columns)));
    for (rows, columns) in sizes.into_iter().flatten() {
        // With 1 / (1 + d²) for the exponential.
        let softmax = format!(
            "x = f32[{rows},{columns}] parameter(0) low = f32[] constant(-inf) z = f32[] constant(0) one = f32[] constant(1)
             m = f32[{rows}] reduce(x, low), dimensions={{1}}, to_apply=max
             mb = f32[{rows},{columns}] broadcast(m), dimensions={{0}}
             d = f32[{rows},{columns}] subtract(x, mb) q = f32[{rows},{columns}] multiply(d, d) o = f32[{rows},{columns}] broadcast(one), dimensions={{}}
             a = f32[{rows},{columns}] add(q, o) e = f32[{rows},{columns}] divide(o, a)
             s = f32[{rows}] reduce(e, z), dimensions={{1}}, to_apply=add
             sb = f32[{rows},{columns}] broadcast(s), dimensions={{0}}
             ROOT r = f32[{rows},{columns}] divide(e, sb)"
        );
        let lowered = close(&softmax);
        assert_eq!(lowered.stages.len(), 1);
        assert_eq!(lowered.in_place, [(0, 0)]);
    }
    // Along the columns, and over everything.
    close(
        "x = f32[30,100] parameter(0) low = f32[] constant(-inf) z = f32[] constant(0) one = f32[] constant(1)
         m = f32[100] reduce(x, low), dimensions={0}, to_apply=max
         mb = f32[30,100] broadcast(m), dimensions={1}
         d = f32[30,100] subtract(x, mb) q = f32[30,100] multiply(d, d) o = f32[30,100] broadcast(one), dimensions={}
             a = f32[30,100] add(q, o) e = f32[30,100] divide(o, a)
         s = f32[100] reduce(e, z), dimensions={0}, to_apply=add
         sb = f32[30,100] broadcast(s), dimensions={1}
         ROOT r = f32[30,100] divide(e, sb)",
    );
    let all = close(
        "x = f32[100003] parameter(0) low = f32[] constant(-inf) z = f32[] constant(0) one = f32[] constant(1)
         m = f32[] reduce(x, low), dimensions={0}, to_apply=max
         mb = f32[100003] broadcast(m), dimensions={}
         d = f32[100003] subtract(x, mb) q = f32[100003] multiply(d, d) o = f32[100003] broadcast(one), dimensions={}
             a = f32[100003] add(q, o) e = f32[100003] divide(o, a)
         s = f32[] reduce(e, z), dimensions={0}, to_apply=add
         sb = f32[100003] broadcast(s), dimensions={}
         ROOT r = f32[100003] divide(e, sb)",
    );
    assert_eq!(all.stages.len(), 5);
    close(
        "x = f32[6,5,40] parameter(0) z = f32[] constant(0) n = f32[] constant(40)
         s = f32[6,5] reduce(x, z), dimensions={2}, to_apply=add
         c = f32[6,5,1] reshape(s) nb = f32[6,5,1] broadcast(n), dimensions={}
         m = f32[6,5,1] divide(c, nb) mr = f32[6,5] reshape(m)
         mb = f32[6,5,40] broadcast(mr), dimensions={0,1}
         d = f32[6,5,40] subtract(x, mb) q = f32[6,5,40] multiply(d, d)
         v = f32[6,5] reduce(q, z), dimensions={2}, to_apply=add
         vb = f32[6,5,40] broadcast(v), dimensions={0,1}
         o = f32[6,5,40] divide(d, vb)
         ROOT t = (f32[6,5,40], f32[6,5], f32[6,5,1]) tuple(o, v, m)",
    );
}

#[test]
fn folds_written_out() {
    close(
        "x = f32[40,3] parameter(0) z = f32[] constant(0)
         a = f32[40,40,3] broadcast(x), dimensions={1,2} b = f32[40,40,3] broadcast(x), dimensions={0,2}
         d = f32[40,40,3] subtract(a, b) q = f32[40,40,3] multiply(d, d)
         s = f32[40,40] reduce(q, z), dimensions={2}, to_apply=add
         w = f32[40,40,3] broadcast(s), dimensions={0,1} p = f32[40,40,3] multiply(d, w)
         ROOT r = f32[40,3] reduce(p, z), dimensions={1}, to_apply=add",
    );
}

#[test]
fn several_results_in_place() {
    let lowered = exact(
        "x = f32[1000] parameter(0) y = f32[1000] parameter(1)
         s = f32[1000] add(x, y) d = f32[1000] subtract(x, y) m = f32[1000] multiply(s, x)
         ROOT t = (f32[1000], f32[1000], f32[1000]) tuple(s, d, m)",
    );
    assert_eq!(lowered.in_place.len(), 6);
    // What the sums are folded of is read again when the difference is stored.
    let lowered = close(
        "x = f32[40,70] parameter(0) w = f32[40] parameter(1) z = f32[] constant(0)
         s = f32[40] reduce(x, z), dimensions={1}, to_apply=add
         t = f32[40] add(s, w) u = f32[40] multiply(s, w)
         b = f32[40,70] broadcast(t), dimensions={0} d = f32[40,70] subtract(x, b)
         e = f32[40,70] maximum(x, b)
         ROOT r = (f32[40,70], f32[40,70], f32[40], f32[40]) tuple(d, e, t, u)",
    );
    assert!(lowered.in_place.contains(&(0, 0)) && lowered.in_place.contains(&(0, 1)));
}

#[test]
fn results_of_several_sizes() {
    exact(
        "x = f32[40,30] parameter(0) i = s32[] parameter(1) one = s32[] constant(1)
         n = f32[40,30] negate(x) j = s32[] add(i, one) v = f32[1200] reshape(x)
         e = f32[0] iota(), iota_dimension=0
         ROOT t = (f32[40,30], s32[], f32[1200], f32[0]) tuple(n, j, v, e)",
    );
}
