//! Hostile input: the bodies of the fuzz targets under `fuzz/`, and mutations that feed the same
//! bodies in ordinary tests.
//!
//! A body must neither panic nor hang nor take memory without bound, whatever the bytes; it asserts
//! a few properties besides.

use std::io::Cursor;

use helio::data::Format;
use helio::{CompileOptions, RunOptions};
use oorandom::Rand32;

/// How far a body has come with its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reached {
    /// It was read, and rejected.
    Read,
    /// It was read, and is what it should be; of a program, it does not verify or compile.
    Parsed,
    /// It is a program that compiles; its arguments are too large, or it ends with an error.
    Compiled,
    /// It is a program, and gives a result.
    Ran,
}

/// Parses, verifies, prints and runs whatever is in `bytes`, on made-up arguments.
pub fn hlo_text(bytes: &[u8]) -> Reached {
    let text = String::from_utf8_lossy(bytes);
    let Ok(module) = helio::parse(&text) else { return Reached::Read };
    let Ok(program) = helio::compile(module, &CompileOptions::default()) else {
        return Reached::Parsed;
    };
    let printed = helio::print(program.module());
    let again = helio::parse(&printed)
        .and_then(helio::ir::verify)
        .unwrap_or_else(|e| panic!("printed text is rejected: {e:?}\n{printed}"));
    assert_eq!(printed, helio::print(&again), "printing is a fixpoint");
    let shape = program.program_shape();
    let bytes: usize = shape.params.iter().map(helio::Shape::size_bytes).sum();
    if bytes > 1 << 20 {
        return Reached::Compiled;
    }
    let Ok(args) = helio::random_arguments(&shape.params, 0) else { return Reached::Compiled };
    let mut options = RunOptions::default();
    options.limits.max_steps = Some(20_000);
    let Ok(value) = program.run_with(&args, &options) else { return Reached::Compiled };
    assert!(value.shape().same(&shape.result), "the result has the shape that was inferred");
    Reached::Ran
}

/// Reads `bytes` as the value of a constant of some shapes.
pub fn literal_text(bytes: &[u8]) -> Reached {
    let text = String::from_utf8_lossy(bytes);
    let mut reached = Reached::Read;
    for shape in ["f32[2,3]", "s4[]", "(pred[2], c64[1])", "f8e4m3fn[<=4]"] {
        let shape = helio::ir::text::parse_shape(shape).expect("a shape");
        if let Ok(value) = helio::ir::text::parse_literal(&text, &shape) {
            let printed = helio::ir::text::print_literal(&value);
            let again = helio::ir::text::parse_literal(&printed, &shape).expect("printed by us");
            assert!(value.same_bits(&again), "{printed} keeps all bits");
            reached = Reached::Parsed;
        }
    }
    reached
}

/// Reads `bytes` as a file of arrays.
pub fn data_file(format: Format, bytes: &[u8]) -> Reached {
    let Ok(tensors) = helio::data::read_from(format, Cursor::new(bytes)) else {
        return Reached::Read;
    };
    for tensor in tensors.values() {
        let elements: usize = tensor.dims.iter().product();
        assert!(tensor.bytes.len() >= elements.min(1), "elements take bytes");
    }
    Reached::Parsed
}

/// Words that mean something in HLO text, to put where they do not belong.
const TOKENS: &[&str] = &[
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ",",
    "=",
    "%",
    "ROOT",
    "ENTRY",
    "f32[]",
    "s32[2]",
    "pred[]",
    "0",
    "-1",
    "9223372036854775807",
    "18446744073709551616",
    "1e400",
    "nan",
    "inf",
    "<=",
    "?",
    "->",
    "/*",
    "*/",
    "//",
    "\"",
    "\\",
    "\n",
    "dimensions={",
    "to_apply=",
    "window={size=",
    "x",
    "_",
    "{...}",
    "parameter(0)",
    "constant(",
    "T(8,128)",
    "\u{0}",
    "é",
    "f32[99999999999]",
    "s4[4294967296,4294967296]",
    "while",
    "tuple(",
    "async-start",
];

/// One random change to a text: a token inserted, replaced, dropped, doubled or swapped, a number
/// changed, a cut.
pub fn mutate(text: &str, rng: &mut Rand32) -> String {
    let tokens = split(text);
    if tokens.is_empty() {
        return TOKENS[pick(rng, TOKENS.len())].to_owned();
    }
    let mut tokens = tokens;
    for _ in 0..=pick(rng, 3) {
        let at = pick(rng, tokens.len());
        let word = TOKENS[pick(rng, TOKENS.len())];
        match pick(rng, 8) {
            0 => tokens.insert(at, word),
            1 => tokens[at] = word,
            2 => drop(tokens.remove(at)),
            3 => tokens.insert(at, tokens[at]),
            4 => {
                let other = pick(rng, tokens.len());
                tokens.swap(at, other);
            }
            5 => {
                let other = pick(rng, tokens.len());
                tokens[at] = tokens[other];
            }
            6 => tokens.truncate(at),
            _ => {
                // A number elsewhere: sizes, dimensions, indices, strides.
                let numbers: Vec<usize> = (0..tokens.len())
                    .filter(|&i| tokens[i].bytes().all(|b| b.is_ascii_digit()))
                    .collect();
                if !numbers.is_empty() {
                    let n = numbers[pick(rng, numbers.len())];
                    tokens[n] = ["0", "1", "2", "3", "7", "64", "4294967296"][pick(rng, 7)];
                }
            }
        }
        if tokens.is_empty() {
            break;
        }
    }
    tokens.concat()
}

/// One random change to bytes: a bit flipped, a byte set, a cut, a run doubled.
pub fn mutate_bytes(bytes: &[u8], rng: &mut Rand32) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=pick(rng, 4) {
        if bytes.is_empty() {
            break;
        }
        let at = pick(rng, bytes.len());
        match pick(rng, 4) {
            0 => bytes[at] ^= 1 << pick(rng, 8),
            1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][pick(rng, 5)],
            2 => bytes.truncate(at),
            _ => {
                let end = (at + 1 + pick(rng, 16)).min(bytes.len());
                let run = bytes[at..end].to_vec();
                bytes.splice(at..at, run);
            }
        }
    }
    bytes
}

fn pick(rng: &mut Rand32, count: usize) -> usize {
    rng.rand_range(0..count as u32) as usize
}

/// Words, numbers, and single other characters, together all of the text.
fn split(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        let end = if is_word(c) {
            rest.find(|c| !is_word(c)).unwrap_or(rest.len())
        } else {
            c.len_utf8()
        };
        let (token, after) = rest.split_at(end);
        tokens.push(token);
        rest = after;
    }
    tokens
}
