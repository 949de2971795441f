//! Folds of windows made up at random, before and after they are unfolded: the interpreter gives the same.

mod numbers;

use helio_codegen::elementwise::Recipes;
use helio_eval::{Context, evaluate};
use helio_ir::text::{parse, print};
use helio_ir::{Array, Literal, verify};
use helio_passes::watch::Watch;
use helio_passes::{PassCx, find_pass, run_passes};
use numbers::Numbers;

/// A fold of windows over an array of up to three dimensions; `None` if there is no position.
fn program(numbers: &mut Numbers) -> Option<String> {
    let rank = 1 + numbers.below(3);
    let (op, init) =
        [("add", "0"), ("maximum", "-inf"), ("minimum", "2"), ("multiply", "1")][numbers.below(4)];
    let mut columns = [const { Vec::new() }; 5];
    let (mut from, mut to) = (Vec::new(), Vec::new());
    for _ in 0..rank {
        let base = 1 + numbers.below(9);
        let is_plain = numbers.below(3) == 0;
        let mut below = |count| if is_plain { 0 } else { numbers.below(count) };
        let (size, stride) = (1 + below(6), 1 + below(3));
        let (pads, dilation, apart) =
            ([below(5) as i64 - 1, below(5) as i64 - 1], 1 + below(2), 1 + below(5));
        let pads = if is_plain { [0, 0] } else { pads };
        // Some of either kind, and some of both.
        let (stride, dilation) =
            if apart > 1 && size % 3 > 0 { (1, 1) } else { (stride, dilation) };
        let reach = ((size - 1) * dilation + 1) as i64;
        let room = ((base - 1) * apart + 1) as i64 + pads[0] + pads[1] - reach;
        if room < 0 {
            return None;
        }
        from.push(base.to_string());
        to.push((room as usize / stride + 1).to_string());
        let values = [
            size.to_string(),
            stride.to_string(),
            format!("{}_{}", pads[0], pads[1]),
            apart.to_string(),
            dilation.to_string(),
        ];
        values.into_iter().zip(&mut columns).for_each(|(value, column)| column.push(value));
    }
    let [sizes, strides, pads, apart, dilations] = columns.map(|column| column.join("x"));
    let window = format!(
        "size={sizes} stride={strides} pad={pads} lhs_dilate={apart} rhs_dilate={dilations}"
    );
    Some(format!(
        "HloModule windows
f {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] {op}(a, b) }}
ENTRY e {{
  x = f32[{}] parameter(0)
  init = f32[] constant({init})
  ROOT w = f32[{}] reduce-window(x, init), window={{{window}}}, to_apply=f
}}
",
        from.join(","),
        to.join(",")
    ))
}

#[test]
fn windows_fold_the_same() {
    let pass = find_pass("unfold-windows").expect("a pass");
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let (mut unfolded, mut apart) = (0, 0);
    for _ in 0..2000 {
        let Some(text) = program(&mut numbers) else { continue };
        let module = verify(parse(&text).expect(&text)).expect(&text);
        let watch = Watch::new(&module, &Default::default());
        let new = run_passes(module.clone(), [pass], &PassCx::new(&watch, &Recipes)).expect(&text);
        let (before, after) = (print(&module), print(&new));
        unfolded += usize::from(!after.contains("reduce-window"));
        apart += usize::from(after.contains("concatenate"));
        let param = module.entry().program_shape().params;
        let param = param[0].as_array().expect("an array");
        // Sums and products of these are exact in any order.
        let values: Vec<f32> =
            (0..param.element_count()).map(|_| [-2.0, -1.0, 1.0, 2.0][numbers.below(4)]).collect();
        let args = [Literal::Array(Array::new(param.dims().to_vec(), values).expect("an array"))];
        let run = |module| evaluate(module, &args, &Context::default()).expect(&text);
        assert_eq!(run(&module), run(&new), "{before}\nbecomes\n{after}");
    }
    assert!(unfolded > 500 && apart > 100, "{unfolded} are unfolded, {apart} with elements apart");
}
