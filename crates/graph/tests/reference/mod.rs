//! Programs run on arrays and compared with what NumPy and JAX compute: `data/expected.py` writes
//! inputs and outputs of named cases down.
#![allow(dead_code, reason = "no test uses all of it")]

use std::collections::BTreeMap;

use helio::ir::types::C128;
use helio::ir::{Native, Number, dispatch_type};
use helio_graph::{Array, Dim, ElementType, Graph, Shape, Tensor, TensorList};
use serde_json::Value;

/// The cases of a file by name: for each call inputs, outputs and how far they may differ.
pub struct Cases(BTreeMap<String, Value>);

impl Cases {
    pub fn new(json: &str) -> Self {
        Cases(serde_json::from_str(json).expect("cases"))
    }

    /// Builds the program for the shapes of each call, and runs it; then, unless `shapes` is empty,
    /// once for these, and runs it on all calls. `shapes` has sizes and names for each input:
    /// `"n 3; n"`.
    pub fn check<L: TensorList>(
        &self,
        name: &str,
        shapes: &str,
        build: impl Fn(&Graph, &[Tensor]) -> L,
    ) {
        let calls = self.0.get(name).unwrap_or_else(|| panic!("no case {name}"));
        let calls = calls.as_array().expect("calls");
        for (number, call) in calls.iter().enumerate() {
            let inputs = arrays(&call["inputs"]);
            let types = inputs.iter().map(|x| (x.element(), x.dims().into())).collect::<Vec<_>>();
            let program = compile(name, &types, &build);
            compare(&format!("{name}, call {number}"), call, &program.run(&inputs).unwrap());
        }
        if shapes.is_empty() {
            return;
        }
        let shapes = shapes.split(';').map(|shape| {
            let dims = shape.split_whitespace();
            dims.map(|dim| dim.parse::<usize>().map_or_else(|_| Dim::from(dim), Dim::from))
                .collect::<Shape>()
        });
        let inputs = arrays(&calls[0]["inputs"]);
        let types: Vec<_> = inputs.iter().map(Array::element).zip(shapes).collect();
        assert_eq!(types.len(), inputs.len(), "{name}: a shape for each input");
        let program = compile(name, &types, &build);
        for (number, call) in calls.iter().enumerate() {
            let results = program.run(arrays(&call["inputs"]));
            let results = results.unwrap_or_else(|e| panic!("{name}, symbolic {number}: {e}"));
            compare(&format!("{name}, symbolic call {number}"), call, &results);
        }
    }
}

fn compile<L: TensorList>(
    name: &str,
    types: &[(ElementType, Shape)],
    build: &impl Fn(&Graph, &[Tensor]) -> L,
) -> helio_graph::Program {
    let g = Graph::new("case");
    let inputs = types.iter().enumerate();
    let inputs = inputs.map(|(i, (dtype, shape))| g.input(&format!("x{i}"), *dtype, shape));
    let inputs: Vec<Tensor> = inputs.collect();
    g.compile(build(&g, &inputs)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn arrays(list: &Value) -> Vec<Array> {
    list.as_array().expect("a list").iter().map(array).collect()
}

fn array(value: &Value) -> Array {
    let dtype = dtype(value["dtype"].as_str().expect("dtype"));
    let dims = value["dims"].as_array().expect("dims").iter();
    let dims: Vec<usize> = dims.map(|dim| dim.as_u64().expect("a size") as usize).collect();
    let values = value["values"].as_array().expect("values").iter().map(number);
    dispatch_type!(dtype, T => {
        Array::new(dims, values.map(<T as Native>::from_number).collect::<Vec<T>>()).unwrap()
    })
}

fn dtype(name: &str) -> ElementType {
    let all = ElementType::ALL.iter().copied();
    all.into_iter().find(|t| t.to_string() == name).unwrap_or_else(|| panic!("no type {name}"))
}

fn number(value: &Value) -> Number {
    match value {
        Value::Bool(value) => Number::Int((*value).into()),
        Value::String(text) => Number::Float(text.parse().expect("inf or nan")),
        Value::Array(parts) => {
            let part = |i: usize| parts[i].as_f64().expect("a number");
            Number::Complex(C128::new(part(0), part(1)))
        }
        value => match value.as_i64() {
            Some(value) => Number::Int(value.into()),
            None => Number::Float(value.as_f64().expect("a number")),
        },
    }
}

fn parts(number: Number) -> [f64; 2] {
    match number {
        Number::Pred(value) => [f64::from(u8::from(value)), 0.0],
        Number::Int(value) => [value as f64, 0.0],
        Number::Float(value) => [value, 0.0],
        Number::Complex(value) => [value.re, value.im],
    }
}

fn compare(what: &str, call: &Value, found: &[Array]) {
    let expected = arrays(&call["outputs"]);
    let tolerance = call["tolerance"].as_f64().expect("tolerance");
    assert_eq!(found.len(), expected.len(), "{what}: number of results");
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found.shape().to_string(), expected.shape().to_string(), "{what}");
        for i in 0..found.data().len() {
            let [a, b] = [found, expected].map(|x| parts(x.number(i)));
            let close = a.iter().zip(b).all(|(&a, b)| {
                a == b
                    || (a.is_nan() && b.is_nan())
                    || (a - b).abs() <= tolerance * b.abs().max(1.0)
            });
            assert!(close, "{what}: element {i} of {found:?} must be {b:?} of {expected:?}");
        }
    }
}

/// The graph's error, which must be of this rule and contain these words.
pub fn assert_error(tensor: &Tensor, rule: &str, words: &[&str]) {
    let error = tensor.graph().error().unwrap_or_else(|| panic!("no error, but {rule} expected"));
    let text = error.to_string();
    assert_eq!(error.rule_id(), Some(rule), "{text}");
    for word in words {
        assert!(text.contains(word), "{word:?} is not in {text}");
    }
    assert!(text.contains("tests/"), "it does not say where: {text}");
}
