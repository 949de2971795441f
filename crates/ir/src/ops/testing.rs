//! Helpers for the unit tests of operations: shapes and calls of `infer` in a few characters.

use crate::ops::Parameter;
use crate::types::DimKind;
use crate::{ArrayShape, CompId, Computation, InferCx, Instr, Module, Op, Shape};

/// The shape with this text: `f32[2,<=3,?]`, `token[]`, `(s32[], (f32[2]))`.
pub(crate) fn shape(text: &str) -> Shape {
    let (shape, rest) = scan(text);
    assert_eq!(rest, "", "after the shape in {text}");
    shape
}

/// The array shape with this text.
pub(crate) fn array(text: &str) -> ArrayShape {
    shape(text).as_array().expect("an array").clone()
}

fn scan(text: &str) -> (Shape, &str) {
    if let Some(mut rest) = text.strip_prefix('(') {
        let mut elements = Vec::new();
        loop {
            rest = rest.trim_start_matches([',', ' ']);
            if let Some(rest) = rest.strip_prefix(')') {
                return (Shape::Tuple(elements), rest);
            }
            let (element, after) = scan(rest);
            elements.push(element);
            rest = after;
        }
    }
    let (name, rest) = text.split_once('[').expect("a bracket");
    let (dims, rest) = rest.split_once(']').expect("a closing bracket");
    let shape = match name {
        "token" => Shape::Token,
        "opaque" => Shape::Opaque,
        name => {
            let dim = |dim: &str| match (dim, dim.strip_prefix("<=")) {
                ("?", _) => (0, DimKind::Unbounded),
                (_, Some(bound)) => (bound.parse().expect("a bound"), DimKind::Bounded),
                (size, None) => (size.parse().expect("a size"), DimKind::Static),
            };
            let (sizes, kinds) = dims.split(',').filter(|d| !d.is_empty()).map(dim).unzip();
            let element = name.parse().expect("an element type");
            Shape::Array(ArrayShape::with_kinds(element, sizes, kinds).expect("a valid shape"))
        }
    };
    (shape, rest)
}

/// An instruction for tests.
fn instr(name: &str, op: impl Into<Op>, operands: &[u32], shape: Shape) -> Instr {
    let operands: Vec<_> = operands.iter().map(|&id| crate::InstrId(id)).collect();
    Instr::new(op, operands, shape).named(name)
}

/// A module whose computation `i` takes and gives the shapes of `signatures[i]`. What it computes
/// is of no use to anyone: only the shapes matter to inference.
pub(crate) fn module(signatures: &[(&[&str], &str)]) -> Module {
    let mut module = Module::new("test");
    for (c, (params, result)) in signatures.iter().enumerate() {
        let mut computation = Computation::new(format!("c{c}"));
        for (number, param) in params.iter().enumerate() {
            let param = Parameter { number, shape: shape(param) };
            let shape = param.shape.clone();
            computation.push(instr(&format!("p{number}"), param, &[], shape)).expect("a parameter");
        }
        let root = instr("root", crate::ops::AfterAll, &[], shape(result));
        computation.push(root).expect("a root");
        module.push(computation).expect("a computation");
    }
    module
}

/// The ids of the first computations of [`module`].
pub(crate) const C0: CompId = CompId(0);
/// The second one.
pub(crate) const C1: CompId = CompId(1);

/// What `infer` says of `op` on these operands in a module with these computations: the shape as
/// text, or the identifier of the broken rule.
pub(crate) fn infer_in(module: &Module, op: impl Into<Op>, operands: &[&str]) -> String {
    let operands: Vec<Shape> = operands.iter().map(|text| shape(text)).collect();
    let operands: Vec<&Shape> = operands.iter().collect();
    match op.into().infer(&InferCx { operands: &operands, module }) {
        Ok(shape) => shape.to_string(),
        Err(e) => e.rule_id().map_or_else(|| e.to_string(), str::to_owned),
    }
}

/// [`infer_in`] a module without computations.
pub(crate) fn infer(op: impl Into<Op>, operands: &[&str]) -> String {
    infer_in(&Module::new("test"), op, operands)
}
