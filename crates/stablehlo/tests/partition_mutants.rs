//! Programs for several partitions with random mistakes: errors, and nothing worse, in bounded time.
//!
//! `HELIO_MUTANTS=10000 cargo test -p helio-stablehlo --test partition_mutants -- --nocapture` tries so many.

use std::time::{Duration, Instant};

use helio_ir::verify;
use helio_stablehlo::mlir::{Attribute, Module, Operation, Type, ValueId};
use helio_stablehlo::{lower_partitioned, text};
use oorandom::Rand32;

/// The longest that one of them may take, on a machine that does other things, too.
const MAX_TIME: Duration = Duration::from_secs(20);

/// A program of two axes: functions, loops within loops, branches, sums, slices, calls for batches, and
/// computations for each partition.
const PROGRAM: &str = r#"sdy.mesh @m = <["a"=2, "b"=2]>
func.func public @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {}]>},
    %w: tensor<3x4x4xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {"b"}, {}]>}, %v: tensor<8x4xf32>)
    -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"b"}, {"a"}]>}, tensor<3x8x4xf32>, tensor<8x4xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %none = stablehlo.constant dense<0.0> : tensor<f32>
  %all = stablehlo.constant dense<0.0> : tensor<3x8x4xf32>
  %l:3 = stablehlo.while(%i = %zero, %h = %x, %ys = %all) : tensor<i32>, tensor<8x4xf32>, tensor<3x8x4xf32>
    cond {
      %c = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %s = stablehlo.dynamic_slice %w, %i, %zero, %zero, sizes = [1, 4, 4]
        : (tensor<3x4x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x4xf32>
      %m = stablehlo.reshape %s : (tensor<1x4x4xf32>) -> tensor<4x4xf32>
      %p = func.call @layer(%h, %m) : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
      %q = sdy.sharding_constraint %p <@m, [{"a"}, {"b"}]> : tensor<8x4xf32>
      %u = stablehlo.reshape %q : (tensor<8x4xf32>) -> tensor<1x8x4xf32>
      %z = stablehlo.dynamic_update_slice %ys, %u, %i, %zero, %zero
        : (tensor<3x8x4xf32>, tensor<1x8x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x8x4xf32>
      %f = stablehlo.while(%g = %q) : tensor<8x4xf32>
        cond {
          %t = stablehlo.reduce(%g init: %none) applies stablehlo.add across dimensions = [0, 1]
            : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32>
          %d = stablehlo.compare LT, %t, %none : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %d : tensor<i1>
        } do {
          %r = stablehlo.reverse %g, dims = [0, 1] : tensor<8x4xf32>
          %e = stablehlo.add %r, %v : tensor<8x4xf32>
          stablehlo.return %e : tensor<8x4xf32>
        }
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %f, %z : tensor<i32>, tensor<8x4xf32>, tensor<3x8x4xf32>
    }
  %k = "stablehlo.case"(%l#0) ({
    %1 = stablehlo.sine %x : tensor<8x4xf32>
    stablehlo.return %1 : tensor<8x4xf32>
  }, {
    %2 = stablehlo.slice %x [0:8:1, 0:4:2] : (tensor<8x4xf32>) -> tensor<8x2xf32>
    %3 = stablehlo.concatenate %2, %2, dim = 1 : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x4xf32>
    stablehlo.return %3 : tensor<8x4xf32>
  }) : (tensor<i32>) -> tensor<8x4xf32>
  %n = sdy.manual_computation(%k) in_shardings=[<@m, [{"b"}, {?}]>] out_shardings=[<@m, [{"b"}, {?}]>]
    manual_axes={"b"} (%y: tensor<4x4xf32>) {
      %4 = stablehlo.multiply %y, %y : tensor<4x4xf32>
      sdy.return %4 : tensor<4x4xf32>
    } : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %b = stablehlo.reshape %l#1 : (tensor<8x4xf32>) -> tensor<8x2x2xf32>
  %o:2 = stablehlo.custom_call @Qr(%b) : (tensor<8x2x2xf32>) -> (tensor<8x2x2xf32>, tensor<8x2xf32>)
  %5 = stablehlo.reshape %o#0 : (tensor<8x2x2xf32>) -> tensor<8x4xf32>
  %6 = stablehlo.add %n, %5 : tensor<8x4xf32>
  return %6, %l#2, %l#1 : tensor<8x4xf32>, tensor<3x8x4xf32>, tensor<8x4xf32>
}
func.func private @layer(%x1: tensor<8x4xf32>, %x2: tensor<4x4xf32>) -> tensor<8x4xf32> {
  %x3 = stablehlo.dot_general %x1, %x2, contracting_dims = [1] x [0]
    : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %x4 = stablehlo.tanh %x3 : tensor<8x4xf32>
  return %x4 : tensor<8x4xf32>
}
"#;

/// Words that mean something, to put where they do not belong.
const WORDS: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "5",
    "7",
    "16",
    "-1",
    "4294967296",
    "9223372036854775807",
    "\"a\"",
    "\"b\"",
    "\"c\"",
    "\"a\", \"b\"",
    "?",
    "{}",
    "[]",
    "x",
    "f32",
    "i1",
    "i32",
    "tensor<f32>",
    "tensor<0x4xf32>",
    "tensor<?x4xf32>",
    "tensor<4x8xf32>",
    "tensor<8x4xf32>",
    "stablehlo.add",
    "stablehlo.cosine",
    "stablehlo.transpose",
    "stablehlo.return",
    "stablehlo.while",
    "func.call",
    "@main",
    "@layer",
    "@m",
];

/// Words, numbers and names, single characters, and what is between them.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_part =
            |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '%' | '@' | '#' | '"');
        let is_alike = |c: char| match first.is_whitespace() {
            true => c.is_whitespace(),
            false => is_part(first) && is_part(c),
        };
        let end = rest.find(|c| !is_alike(c)).unwrap_or(rest.len()).max(first.len_utf8());
        let (word, after) = rest.split_at(end);
        words.push(word);
        rest = after;
    }
    words
}

/// The program with some words changed, left out, doubled or exchanged; most often for one that stands
/// elsewhere in the program.
fn mutated(program: &str, random: &mut Rand32) -> String {
    let mut below = |limit: usize| random.rand_range(0..limit.max(1) as u32) as usize;
    let mut words = words(program);
    for _ in 0..=below(3) {
        if words.is_empty() {
            words.push("0");
        }
        let (at, other) = (below(words.len()), below(words.len()));
        match below(10) {
            0 => drop(words.remove(at)),
            1 => words.insert(at, words[other]),
            2 => words.swap(at, other),
            3 | 4 => words[at] = WORDS[below(WORDS.len())],
            5 => {
                // Some lines again, or not at all.
                let end = (at + below(60)).min(words.len());
                match below(2) {
                    0 => drop(words.drain(at..end)),
                    _ => {
                        let again: Vec<&str> = words[at..end].to_vec();
                        words.splice(end..end, again);
                    }
                }
            }
            _ => {
                // A value, a number or a name for another of its kind.
                let kind = |word: &str| {
                    word.chars().next().map(|c| (c.is_ascii_digit(), c == '%', c == '"'))
                };
                let is_like = |word: &&&str| kind(word) == kind(words[at]);
                let alike: Vec<&str> = words.iter().filter(is_like).copied().collect();
                words[at] = alike[below(alike.len())];
            }
        }
    }
    words.concat()
}

/// The operations of a block and of those in them, in order.
fn operations<'o>(block: &'o mut [Operation], visit: &mut dyn FnMut(&mut Operation)) {
    for op in block {
        visit(op);
        let blocks = op.regions.iter_mut().flat_map(|region| &mut region.blocks);
        blocks.for_each(|block| operations(&mut block.operations, visit));
    }
}

/// Another list of sizes, or other shardings, for these.
fn change(attribute: &mut Attribute, random: &mut Rand32) {
    let mut below = |limit: usize| random.rand_range(0..limit.max(1) as u32) as usize;
    match attribute {
        Attribute::Integers(list) => match (below(3), list.len()) {
            (0, _) | (_, 0) => list.push(below(9) as i64 - 1),
            (1, _) => drop(list.pop()),
            (_, count) => list[below(count)] = [-1, 0, 1, 2, 3, 4, 1 << 40][below(7)],
        },
        Attribute::Integer { value, .. } => *value = [-1, 0, 1, 2, 3, 1 << 62][below(6)],
        Attribute::Other(text) => *text = mutated(text, random),
        Attribute::Struct { fields, .. } | Attribute::Dictionary(fields) => {
            let count = fields.len();
            if let Some(field) = fields.get_mut(below(count)) {
                change(&mut field.1, random);
            }
        }
        _ => {}
    }
}

/// Changes something about one operation of a module, most often for what another one has.
fn change_one(module: &mut Module, random: &mut Rand32) {
    let mut all = Vec::new();
    operations(&mut module.operations, &mut |op| all.push(op.clone()));
    let mut below = |limit: usize| random.rand_range(0..limit.max(1) as u32) as usize;
    let (at, other) = (below(all.len()), &all[below(all.len())]);
    let value = ValueId(below(module.values.len()) as u32);
    let (kind, place) = (below(16), below(4));
    if kind == 0 {
        let tensor = match &mut module.values[value.index()] {
            Type::Tensor(tensor) => tensor,
            _ => return,
        };
        match place {
            0 => tensor.dims.push(Some(2)),
            1 => drop(tensor.dims.pop()),
            _ => tensor.dims.iter_mut().for_each(|dim| *dim = Some(below(9) as u64)),
        }
        return;
    }
    if kind == 1 {
        let ty = module.values[below(module.values.len())].clone();
        module.values[value.index()] = ty;
        return;
    }
    let mut number = 0;
    operations(&mut module.operations, &mut |op| {
        number += 1;
        if number != at + 1 {
            return;
        }
        let block = op.regions.first_mut().and_then(|region| region.blocks.first_mut());
        match (kind, block) {
            (2, _) => op.name.clone_from(&other.name),
            (3, _) => op.attributes.clone_from(&other.attributes),
            (4, _) => op.operands.clone_from(&other.operands),
            (5, _) => drop(op.operands.pop()),
            (6, _) => drop(op.results.pop()),
            (7, _) => op.regions.clone_from(&other.regions),
            (8, Some(block)) => block.operations.truncate(place),
            (9, Some(block)) if place < block.operations.len() => {
                let last = block.operations.len() - 1;
                block.operations.swap(place, last);
            }
            (9, Some(block)) => drop(block.arguments.pop()),
            (10, Some(block)) if place < block.operations.len() => {
                drop(block.operations.remove(place));
            }
            (10, _) => *op = other.clone(),
            (11 | 12, _) if !op.attributes.is_empty() => {
                let count = op.attributes.len();
                change(&mut op.attributes[place % count].1, random);
            }
            _ => match op.operands.len() {
                0 => op.operands.push(value),
                count => op.operands[place % count] = value,
            },
        }
    });
}

/// How many mutants are tried.
fn count() -> usize {
    let count = std::env::var("HELIO_MUTANTS").ok().and_then(|text| text.parse().ok());
    count.unwrap_or(1000)
}

/// Lowers a mutant for some partitions; whether it can be, and in valid HLO.
fn lowers(module: &Module, random: &mut Rand32) -> bool {
    let partitions = [4, 4, 4, 1, 2, 8][random.rand_range(0..6) as usize];
    let lowered = lower_partitioned(module, partitions);
    lowered.is_ok_and(|lowered| match verify(lowered.module) {
        Ok(_) => true,
        Err(error) => {
            println!("does not verify: {error:?}");
            false
        }
    })
}

#[test]
fn mutated_texts_are_errors_at_most() {
    let mut random = Rand32::new(7);
    let (mut read, mut lowered, mut slowest) = (0, 0, Duration::ZERO);
    for _ in 0..count() {
        let program = mutated(PROGRAM, &mut random);
        let begin = Instant::now();
        if let Ok(module) = text::parse(&program) {
            read += 1;
            lowered += usize::from(lowers(&module, &mut random));
        }
        slowest = slowest.max(begin.elapsed());
        assert!(slowest < MAX_TIME, "{slowest:?}: {program}");
    }
    println!("{read} read, {lowered} lowered, slowest {slowest:?}");
    assert!(lowered > 0 && read > lowered);
}

#[test]
fn mutated_modules_are_errors_at_most() {
    let module = text::parse(PROGRAM).unwrap();
    let mut random = Rand32::new(8);
    assert!(lowers(&module, &mut random));
    let (mut lowered, mut slowest) = (0, Duration::ZERO);
    for number in 0..count() {
        let mut module = module.clone();
        for _ in 0..=random.rand_range(0..3) {
            change_one(&mut module, &mut random);
        }
        let begin = Instant::now();
        lowered += usize::from(lowers(&module, &mut random));
        slowest = slowest.max(begin.elapsed());
        assert!(slowest < MAX_TIME, "{slowest:?}: mutant {number}");
    }
    println!("{lowered} lowered, slowest {slowest:?}");
    assert!(lowered > 0 && lowered < count());
}
