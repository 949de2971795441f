//! Tests of the builder: each method's HLO text, and where errors are.

mod collective;
mod control;
mod elementwise;
mod errors;
mod host;
mod indexing;
mod legacy;
mod linalg;
mod movement;
mod names;
mod reduce;
mod scope;

use super::*;
use crate::ops::Direction;
use crate::{BinaryOp, ElementType, Location, text, verify};

/// A shape from its text.
#[track_caller]
fn shape(text: &str) -> Shape {
    text::parse_shape(text).unwrap_or_else(|e| panic!("{text}: {e:?}"))
}

/// A parameter for each shape.
#[track_caller]
fn parameters<const N: usize>(b: &XlaBuilder, shapes: [&str; N]) -> [XlaOp; N] {
    let names = ["x", "y", "z", "u", "v", "w"];
    std::array::from_fn(|i| b.parameter(i, shape(shapes[i]), names[i]))
}

fn scalar(op: BinaryOp, element: ElementType) -> XlaComputation {
    XlaComputation::scalar(op, element).expect("the operation takes the type")
}

fn add() -> XlaComputation {
    scalar(BinaryOp::Add, ElementType::F32)
}

fn less(element: ElementType) -> XlaComputation {
    XlaComputation::scalar_compare(Direction::Lt, element).expect("the type has an order")
}

/// A computation of one parameter.
fn function(name: &str, parameter: &str, body: impl FnOnce(&XlaOp)) -> XlaComputation {
    let b = XlaBuilder::new(name);
    body(&b.parameter(0, shape(parameter), "x"));
    b.build().expect("the computation is right")
}

/// What `body` builds must verify, survive printing and parsing, and have these instructions after
/// its parameters: one a line, `opcode.N` shortened to `%N`.
#[track_caller]
fn check(body: impl FnOnce(&XlaBuilder), expected: &str) {
    let b = XlaBuilder::new("test");
    body(&b);
    let module = b.build().unwrap_or_else(|e| panic!("{e}")).into_module();
    let printed = text::print(&module);
    let parsed = text::parse(&printed).unwrap_or_else(|e| panic!("{e:?}\n{printed}"));
    assert_eq!(text::print(&parsed), printed);
    let entry = module.entry().clone();
    verify(module).unwrap_or_else(|e| panic!("{e:?}\n{printed}"));

    let lines = printed.lines().skip_while(|line| !line.starts_with("ENTRY")).skip(1);
    let lines = lines.map(str::trim).filter(|line| !line.contains(" parameter(") && *line != "}");
    let mut found = lines.collect::<Vec<_>>().join("\n");
    // Longer names first: `add.1` begins `add.10`.
    for instr in entry.instrs().iter().rev() {
        let number = instr.name.rsplit('.').next().unwrap_or_default();
        let short = match instr.op {
            Op::Parameter(_) => instr.name[..instr.name.len() - number.len() - 1].to_owned(),
            _ => format!("%{number}"),
        };
        found = found.replace(instr.name.as_str(), &short);
    }
    let expected: Vec<_> = expected.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    assert_eq!(found.lines().collect::<Vec<_>>(), expected, "\nfound:\n{found}\n");
}

/// Where `errors.rs` has the call that is wrong.
enum Place {
    /// On the line of this number.
    Line(u32),
    /// On the line that begins with this name.
    Row(&'static str),
}

/// `body` must break this rule; the error must name the place of the call.
#[track_caller]
fn check_error(rule: &str, body: impl FnOnce(&XlaBuilder) -> Place) {
    let b = XlaBuilder::new("test");
    let place = body(&b);
    let error = b.build().expect_err("the program is wrong");
    assert_eq!(error.rule_id(), Some(rule), "{error}");
    let Some(Location::Rust { file, line: found, .. }) = error.location() else {
        panic!("no place in {error}");
    };
    assert!(file.ends_with("errors.rs"), "{error}");
    let expected = match place {
        Place::Line(line) => line,
        Place::Row(name) => {
            let mut lines = include_str!("errors.rs").lines().map(str::trim_start);
            let row = lines.position(|line| line.split(' ').next() == Some(name));
            row.expect("the row is there") as u32 + 1
        }
    };
    assert_eq!(*found, expected, "{error}");
    assert!(b.first_error().is_none_or(|first| first == error));
}
