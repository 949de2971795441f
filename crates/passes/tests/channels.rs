//! Networks of convolutions made up at random, before and after channels are put last: the interpreter gives the same.

mod numbers;

use std::fmt::Write as _;

use helio_codegen::elementwise::Recipes;
use helio_eval::{Context, evaluate};
use helio_ir::text::{parse, print};
use helio_ir::{Array, Literal, verify};
use helio_passes::watch::Watch;
use helio_passes::{PassCx, find_pass, run_passes};
use numbers::Numbers;

impl Numbers {
    /// A constant of small integers, sums of whose products are exact in any order.
    fn constant(&mut self, dims: &[usize]) -> String {
        match dims {
            [] => ["-1", "0", "1", "2"][self.below(4)].to_owned(),
            [count, rest @ ..] => {
                let parts: Vec<_> = (0..*count).map(|_| self.constant(rest)).collect();
                format!("{{{}}}", parts.join(", "))
            }
        }
    }
}

/// A program in the making, and the arrays with channels that it has: names and sizes.
struct Program {
    text: String,
    arrays: Vec<(String, Vec<usize>)>,
}

impl Program {
    fn add(&mut self, dims: Vec<usize>, op: &str) -> String {
        let name = format!("v{}", self.arrays.len());
        writeln!(self.text, "  {name} = {} {op}", shape(&dims)).expect("a string takes it");
        self.arrays.push((name.clone(), dims));
        name
    }
}

fn shape(dims: &[usize]) -> String {
    let dims: Vec<_> = dims.iter().map(usize::to_string).collect();
    format!("f32[{}]", dims.join(","))
}

/// One number for each dimension in a list like `1x1x3x3`, the last ones being `spatial`.
fn by_dim(spatial: &[String], outer: &str) -> String {
    [&[outer.to_owned(), outer.to_owned()], spatial].concat().join("x")
}

/// Elements of an array at most, which the interpreter computes.
const MOST_ELEMENTS: usize = 1 << 16;

/// A network of arrays of this rank.
fn program(numbers: &mut Numbers, rank: usize) -> String {
    let spatial = rank - 2;
    let labels = format!("bf{0}_oi{0}->bf{0}", &"012"[..spatial]);
    let mut dims = vec![1 + numbers.below(2), 1 + numbers.below(3)];
    dims.extend((0..spatial).map(|_| 4 + numbers.below(5)));
    let mut program = Program { text: String::new(), arrays: Vec::new() };
    program.add(dims, "parameter(0)");
    for i in 0..10 {
        let (from, dims) = program.arrays
            [program.arrays.len() - 1 - numbers.below(program.arrays.len().min(3))]
        .clone();
        let (mut to, features) = (dims.clone(), dims[1]);
        let text = &mut program.text;
        match if i == 0 { 0 } else { numbers.below(14) } {
            0..=2 => {
                let (outputs, size) = (16 * (1 + numbers.below(2)), [1, 3][numbers.below(2)]);
                to[1] = outputs;
                let kernel = [&[outputs, features], &vec![size; spatial][..]].concat();
                let values = numbers.constant(&kernel);
                writeln!(text, "  k{i} = {} constant({values})", shape(&kernel)).expect("a string");
                let pad = size / 2;
                let sizes = vec![size.to_string(); spatial].join("x");
                let pads = vec![format!("{pad}_{pad}"); spatial].join("x");
                let op = format!(
                    "convolution({from}, k{i}), window={{size={sizes} pad={pads}}}, dim_labels={labels}"
                );
                let name = program.add(to.clone(), &op);
                // Numbers stay small.
                program.text +=
                    &format!("  low{i} = f32[] constant(-3)\n  high{i} = f32[] constant(3)\n");
                let [low, high] = ["low", "high"].map(|bound| {
                    program.add(to.clone(), &format!("broadcast({bound}{i}), dimensions={{}}"))
                });
                program.add(to, &format!("clamp({low}, {name}, {high})"));
            }
            3 => {
                let values = numbers.constant(&[features]);
                writeln!(text, "  b{i} = f32[{features}] constant({values})").expect("a string");
                let bias = program.add(to.clone(), &format!("broadcast(b{i}), dimensions={{1}}"));
                program.add(to, &format!("add({from}, {bias})"));
            }
            4 if dims[2..].iter().all(|&size| size > 2) => {
                writeln!(text, "  i{i} = f32[] constant(-inf)").expect("a string");
                let sizes: Vec<_> = (0..spatial).map(|_| 1 + numbers.below(3)).collect();
                let strides: Vec<_> = (0..spatial).map(|_| 1 + numbers.below(2)).collect();
                for d in 0..spatial {
                    to[d + 2] = (dims[d + 2] - sizes[d]) / strides[d] + 1;
                }
                let text = |list: &[usize]| list.iter().map(usize::to_string).collect::<Vec<_>>();
                let (sizes, strides) = (by_dim(&text(&sizes), "1"), by_dim(&text(&strides), "1"));
                let window = format!("size={sizes} stride={strides}");
                program.add(
                    to,
                    &format!("reduce-window({from}, i{i}), window={{{window}}}, to_apply=max"),
                );
            }
            5 => {
                writeln!(text, "  z{i} = f32[] constant(1)").expect("a string");
                let pads: Vec<_> = (0..spatial).map(|d| format!("{d}_1")).collect();
                (0..spatial).for_each(|d| to[d + 2] += d + 1);
                program.add(to, &format!("pad({from}, z{i}), padding={}", by_dim(&pads, "0_0")));
            }
            6 if dims[2..].iter().all(|&size| size > 2) => {
                (0..spatial).for_each(|d| to[d + 2] -= 2);
                let limits = dims.iter().enumerate();
                let limits = limits.map(|(d, size)| {
                    if d < 2 { format!("[0:{size}]") } else { format!("[1:{}]", size - 1) }
                });
                program.add(
                    to,
                    &format!("slice({from}), slice={{{}}}", limits.collect::<Vec<_>>().join(", ")),
                );
            }
            7 | 8 => {
                let mut like = program.arrays.iter().rev();
                let fits = |other: &[usize]| other[0] == dims[0] && other[2..] == dims[2..];
                let other = like.find(|(name, other)| fits(other) && *name != from);
                let Some((other, others)) = other.cloned() else { continue };
                if others == dims && numbers.below(2) == 0 {
                    program.add(to, &format!("maximum({from}, {other})"));
                } else if dims[1] + others[1] <= 64 {
                    to[1] += others[1];
                    program.add(to, &format!("concatenate({from}, {other}), dimensions={{1}}"));
                }
            }
            9 => {
                // To channels last and back, as layer norms are.
                let last: Vec<_> = [0].into_iter().chain(2..rank).chain([1]).collect();
                let back: Vec<_> = [0, rank - 1].into_iter().chain(1..rank - 1).collect();
                let moved: Vec<_> = last.iter().map(|&d| dims[d]).collect();
                let text = |list: &[usize]| {
                    list.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
                };
                program.text += &format!(
                    "  t{i} = {} transpose({from}), dimensions={{{}}}\n",
                    shape(&moved),
                    text(&last)
                );
                program.text += &format!("  n{i} = {} negate(t{i})\n", shape(&moved));
                program.add(to, &format!("transpose(n{i}), dimensions={{{}}}", text(&back)));
            }
            10 | 11 => {
                // Positions in one dimension, channels in two, or both, and back.
                let ways = numbers.below(3);
                let channels = match (ways, features % 2) {
                    (0, _) | (_, 1) => vec![features],
                    _ => vec![2, features / 2],
                };
                let positions = match ways {
                    1 => dims[2..].to_vec(),
                    _ => vec![dims[2..].iter().product()],
                };
                let parts = [&dims[..1], &channels, &positions].concat();
                let parts = shape(&parts);
                program.text += &format!("  s{i} = {parts} reshape({from})\n");
                program.text += &format!("  m{i} = {parts} minimum(s{i}, s{i})\n");
                program.add(to, &format!("reshape(m{i})"));
            }
            12 => {
                let along = 2 + numbers.below(spatial);
                let size = dims[along];
                let places: Vec<_> = (0..2 * size).map(|at| (at / 2).to_string()).collect();
                to[along] = places.len();
                let places = places.join(", ");
                program.text += &format!("  p{i} = s32[{}] constant({{{places}}})\n", to[along]);
                let text = |list: Vec<usize>| {
                    list.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
                };
                let others = text((0..rank).filter(|&d| d != along).collect());
                let sizes = text((0..rank).map(|d| if d == along { 1 } else { dims[d] }).collect());
                let op = format!(
                    "gather({from}, p{i}), offset_dims={{{others}}}, collapsed_slice_dims={{{along}}}, \
                     start_index_map={{{along}}}, index_vector_dim=1, slice_sizes={{{sizes}}}"
                );
                if to.iter().product::<usize>() <= MOST_ELEMENTS {
                    program.add(to, &op);
                }
            }
            _ => {
                program.add(to, &format!("abs({from})"));
            }
        }
    }
    let (last, dims) = program.arrays.last().cloned().expect("a parameter at least");
    let mut results = vec![(last.clone(), shape(&dims))];
    program.text += "  low = f32[] constant(-inf)\n";
    for (i, dim) in [1, rank - 1].into_iter().enumerate() {
        let mut left = dims.clone();
        left.remove(dim);
        program.text += &format!(
            "  r{i} = {} reduce({last}, low), dimensions={{{dim}}}, to_apply=max\n",
            shape(&left)
        );
        results.push((format!("r{i}"), shape(&left)));
    }
    let (names, shapes): (Vec<_>, Vec<_>) = results.into_iter().unzip();
    let max = "max {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] maximum(a, b)\n}\n";
    let root = format!("  ROOT out = ({}) tuple({})\n", shapes.join(", "), names.join(", "));
    format!("HloModule network\n{max}ENTRY main {{\n{}{root}}}\n", program.text)
}

#[test]
fn networks_compute_the_same() {
    let pass = find_pass("put-channels-last").expect("a pass");
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut turned = 0;
    for case in 0..200 {
        let text = program(&mut numbers, 3 + case % 3);
        let module = verify(parse(&text).expect(&text)).expect(&text);
        let watch = Watch::new(&module, &Default::default());
        let new = run_passes(module.clone(), [pass], &PassCx::new(&watch, &Recipes)).expect(&text);
        turned += usize::from(print(&new).contains("transpose") && print(&new) != print(&module));
        let params = module.entry().program_shape().params;
        let param = params[0].as_array().expect("an array");
        let values: Vec<f32> =
            (0..param.element_count()).map(|_| numbers.below(7) as f32 - 3.0).collect();
        let args = [Literal::Array(Array::new(param.dims().to_vec(), values).expect("an array"))];
        let run = |module| evaluate(module, &args, &Context::default()).expect(&text);
        assert_eq!(run(&module), run(&new), "{text}\nbecomes\n{}", print(&new));
    }
    assert!(turned > 100, "{turned} of 200 have channels last");
}
