//! Compilation takes time in proportion to the program's length.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use helio::CompileOptions;

/// The text of a program of this many parts.
type Shape = fn(usize) -> String;

const SHAPES: [(&str, Shape); 9] = [
    ("a chain", chain),
    ("a recurrence and its values", recurrence),
    ("one value for many", fan),
    ("products in a row", products),
    ("many constants", constants),
    ("many parameters and a tuple of them", parameters),
    ("one concatenation", concatenation),
    ("loops one after the other", loops),
    ("a loop with a long body", long_body),
];

fn entry(body: &str) -> String {
    format!(
        "add {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }}
         c {{ t = (s32[], f32[64]) parameter(0) i = s32[] get-tuple-element(t), index=0
           n = s32[] constant(100) ROOT r = pred[] compare(i, n), direction=LT }}
         w {{ t = (s32[], f32[64]) parameter(0) i = s32[] get-tuple-element(t), index=0
           x = f32[64] get-tuple-element(t), index=1 one = s32[] constant(1)
           j = s32[] add(i, one) y = f32[64] sine(x) ROOT r = (s32[], f32[64]) tuple(j, y) }}
         ENTRY e {{ {body} }}"
    )
}

fn chain(n: usize) -> String {
    let mut text = "x0 = f32[64] parameter(0)\n".to_owned();
    for i in 1..n {
        let _ = writeln!(text, "x{i} = f32[64] sine(x{})", i - 1);
    }
    entry(&text)
}

/// Each step keeps its state, which the last ones read in the opposite order, as a gradient does.
fn recurrence(n: usize) -> String {
    let mut text = "x0 = f32[8,8] parameter(0) k = f32[8,8] parameter(1)\n".to_owned();
    let dot = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";
    for i in 1..=n {
        let _ = writeln!(
            text,
            "d{i} = f32[8,8] dot(x{}, k), {dot}\n e{i} = f32[8,8] tanh(d{i})
             f{i} = f32[8,8] logistic(d{i})\n x{i} = f32[8,8] multiply(e{i}, f{i})",
            i - 1
        );
    }
    let _ = writeln!(text, "y{n} = f32[8,8] negate(x{n})");
    for i in (1..=n).rev() {
        let _ = writeln!(
            text,
            "p{i} = f32[8,8] multiply(y{i}, e{i})\n q{i} = f32[8,8] multiply(p{i}, f{i})
             s{i} = f32[8,8] subtract(q{i}, d{i})\n y{} = f32[8,8] dot(s{i}, k), {dot}",
            i - 1
        );
    }
    entry(&text)
}

fn fan(n: usize) -> String {
    let mut text = "x = f32[64] parameter(0) y = f32[64] exponential(x)\n".to_owned();
    for i in 0..n {
        let _ = writeln!(
            text,
            "c{i} = f32[] constant({i}) b{i} = f32[64] broadcast(c{i}), dimensions={{}}"
        );
        let _ = writeln!(
            text,
            "m{i} = f32[64] multiply(y, b{i}) z{i} = f32[64] sort(m{i}), dimensions={{0}}, to_apply=lt"
        );
    }
    let all: Vec<String> = (0..n).map(|i| format!("z{i}")).collect();
    let shape = vec!["f32[64]"; n].join(", ");
    let _ = writeln!(text, "ROOT r = ({shape}) tuple({})", all.join(", "));
    format!(
        "lt {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=LT }}\n{}",
        entry(&text)
    )
}

fn products(n: usize) -> String {
    let mut text = "x0 = f32[8,8] parameter(0)\n".to_owned();
    for i in 1..n {
        let _ = writeln!(
            text,
            "d{i} = f32[8,8] dot(x{}, x0), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
             x{i} = f32[8,8] maximum(d{i}, x0)",
            i - 1
        );
    }
    entry(&text)
}

fn constants(n: usize) -> String {
    let mut text = "x0 = f32[4] parameter(0)\n".to_owned();
    for i in 1..n {
        let _ = writeln!(
            text,
            "c{i} = f32[4] constant({{1, 2, 3, {i}}}) x{i} = f32[4] add(x{}, c{i})",
            i - 1
        );
    }
    entry(&text)
}

fn parameters(n: usize) -> String {
    let mut text = String::new();
    let mut all = Vec::new();
    for i in 0..n {
        let _ = writeln!(text, "p{i} = f32[4] parameter({i}) x{i} = f32[4] negate(p{i})");
        all.push(format!("x{i}"));
    }
    let shape = vec!["f32[4]"; n].join(", ");
    let _ = writeln!(text, "ROOT r = ({shape}) tuple({})", all.join(", "));
    entry(&text)
}

fn concatenation(n: usize) -> String {
    let mut text = "x = f32[4] parameter(0)\n".to_owned();
    let mut all = Vec::new();
    for i in 0..n {
        let _ = writeln!(
            text,
            "c{i} = f32[] constant({i}) b{i} = f32[4] broadcast(c{i}), dimensions={{}} x{i} = f32[4] power(x, b{i})"
        );
        all.push(format!("x{i}"));
    }
    let _ =
        writeln!(text, "ROOT r = f32[{}] concatenate({}), dimensions={{0}}", 4 * n, all.join(", "));
    entry(&text)
}

fn loops(n: usize) -> String {
    let mut text = "x0 = f32[64] parameter(0) i = s32[] constant(0)\n".to_owned();
    for k in 1..n {
        let _ = writeln!(
            text,
            "t{k} = (s32[], f32[64]) tuple(i, x{})
             l{k} = (s32[], f32[64]) while(t{k}), condition=c, body=w
             x{k} = f32[64] get-tuple-element(l{k}), index=1",
            k - 1
        );
    }
    entry(&text)
}

fn long_body(n: usize) -> String {
    let mut body = "x0 = f32[9,3] copy(s)\n".to_owned();
    for k in 1..n {
        let before = k - 1;
        let _ = writeln!(
            body,
            "a{k} = f32[9,1] slice(x{before}), slice={{[0:9], [1:2]}}
             b{k} = f32[9,2] slice(x{before}), slice={{[0:9], [0:2]}}
             c{k} = f32[9,3] concatenate(a{k}, b{k}), dimensions={{1}}
             d{k} = f32[9,3] tanh(c{k}) x{k} = f32[9,3] reverse(d{k}), dimensions={{0}}"
        );
    }
    format!(
        "c {{ t = (s32[], f32[9,3]) parameter(0) i = s32[] get-tuple-element(t), index=0
           n = s32[] constant(100) ROOT r = pred[] compare(i, n), direction=LT }}
         w {{ t = (s32[], f32[9,3]) parameter(0) i = s32[] get-tuple-element(t), index=0
           s = f32[9,3] get-tuple-element(t), index=1 one = s32[] constant(1) j = s32[] add(i, one)
           {body} ROOT r = (s32[], f32[9,3]) tuple(j, x{}) }}
         ENTRY e {{ s = f32[9,3] parameter(0) i = s32[] constant(0) t = (s32[], f32[9,3]) tuple(i, s)
           ROOT w = (s32[], f32[9,3]) while(t), condition=c, body=w }}",
        n - 1
    )
}

/// The least time of a few compilations.
fn time(text: &str) -> Duration {
    let module = helio::parse(text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    let once = || {
        let begin = Instant::now();
        helio::compile(module.clone(), &CompileOptions::default()).expect("it compiles");
        begin.elapsed()
    };
    (0..3).map(|_| once()).min().expect("there are some")
}

#[test]
fn eight_times_as_long_takes_about_eight_times_as_long() {
    let mut slow = Vec::new();
    for (name, shape) in SHAPES {
        let (short, long) = (time(&shape(100)), time(&shape(800)));
        let ratio = long.as_secs_f64() / short.as_secs_f64().max(1e-4);
        println!("{name}: {short:?}, {long:?}: {ratio:.1}");
        // Quadratic would be 64.
        if ratio > 28.0 {
            slow.push(format!("{name}: {short:?}, then {long:?}"));
        }
    }
    assert!(slow.is_empty(), "{slow:#?}");
}
