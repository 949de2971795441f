//! The worked examples of "Operation Semantics" that are about the builder's interface, each run
//! through the interpreter. A test names the editions (E1 oldest, E4 newest) and the section that
//! its values come from.

mod arithmetic;
mod folds;
mod movement;
mod world;

use helio_eval::{Context, evaluate};
use helio_ir::builder::{XlaBuilder, XlaComputation, XlaOp};
use helio_ir::{BinaryOp, ElementType, Literal, Shape, text, verify};

/// A shape from its text.
#[track_caller]
fn shape(text: &str) -> Shape {
    text::parse_shape(text).unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// A literal of this shape from its text.
#[track_caller]
fn literal(shape_text: &str, value: &str) -> Literal {
    text::parse_literal(value, &shape(shape_text)).unwrap_or_else(|e| panic!("{value}: {e}"))
}

/// A constant of this shape.
#[track_caller]
fn constant(b: &XlaBuilder, shape: &str, value: &str) -> XlaOp {
    b.constant_literal(literal(shape, value))
}

/// A computation of parameters of these shapes.
#[track_caller]
fn computation<const N: usize>(
    name: &str,
    shapes: [&str; N],
    body: impl FnOnce(&XlaBuilder, [XlaOp; N]) -> XlaOp,
) -> XlaComputation {
    let b = XlaBuilder::new(name);
    let parameters = std::array::from_fn(|i| b.parameter(i, shape(shapes[i]), ""));
    let root = body(&b, parameters);
    b.build_with_root(root).unwrap_or_else(|e| panic!("{e}"))
}

fn scalar(op: BinaryOp, element: ElementType) -> XlaComputation {
    XlaComputation::scalar(op, element).unwrap_or_else(|e| panic!("{e}"))
}

/// What a program without parameters gives.
#[track_caller]
fn run_in(cx: &Context, body: impl FnOnce(&XlaBuilder) -> XlaOp) -> Literal {
    let program = computation("program", [], |b, []| body(b));
    let module = verify(program.into_module()).unwrap_or_else(|e| panic!("{e:?}"));
    evaluate(&module, &[], cx).unwrap_or_else(|e| panic!("{e}"))
}

#[track_caller]
fn run(body: impl FnOnce(&XlaBuilder) -> XlaOp) -> Literal {
    run_in(&Context::default(), body)
}

#[track_caller]
fn ensure_same(found: &Literal, expected: &Literal) {
    let [found_text, expected_text] = [found, expected].map(text::print_literal);
    let shapes = (found.shape(), expected.shape());
    assert!(shapes.0.same(&shapes.1), "{} {found_text}, expected {}", shapes.0, shapes.1);
    assert!(found.same_bits(expected), "{found_text}, expected {expected_text}");
}

/// The program must give this value.
#[track_caller]
fn check(shape: &str, expected: &str, body: impl FnOnce(&XlaBuilder) -> XlaOp) {
    ensure_same(&run(body), &literal(shape, expected));
}
