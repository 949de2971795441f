//! What several tests of graphs need.
#![allow(dead_code, reason = "no test uses all of it")]

use std::borrow::Borrow;

use flate2::read::GzDecoder;
use helio::ir::ArrayShape;
use helio_graph::{Array, ElementType, Graph, Tensor};
use serde_json::Value;

/// The recorded edge cases.
pub fn cases() -> Value {
    let compressed = include_bytes!("../data/elementwise_cases.json.gz");
    serde_json::from_reader(GzDecoder::new(&compressed[..])).expect("JSON")
}

/// An array from recorded values, or their bits in hexadecimal.
pub fn array(dtype: ElementType, recorded: &Value, sizes: Option<&[usize]>) -> Array {
    let size = dtype.size_bytes();
    let bits: Vec<u64> = match (recorded["bits"].as_str(), recorded["values"].as_array()) {
        (Some(bits), _) => {
            let words = bits.split_whitespace();
            words.map(|word| u64::from_str_radix(word, 16).expect("hexadecimal")).collect()
        }
        (None, Some(values)) => values.iter().map(integer).collect(),
        (None, None) => panic!("no values in {recorded}"),
    };
    let bytes: Vec<u8> = bits.iter().flat_map(|bits| bits.to_le_bytes()[..size].to_vec()).collect();
    let shape = ArrayShape::new(dtype, sizes.map_or(vec![bits.len()], <[usize]>::to_vec));
    Array::from_bytes(shape.expect("a shape"), &bytes).expect("an array")
}

/// The bits of a recorded integer or bool.
fn integer(value: &Value) -> u64 {
    let signed = value.as_i64().map(|v| v as u64);
    signed.or(value.as_u64()).or(value.as_bool().map(u64::from)).expect("an integer or bool")
}

/// The elements as the nearest `f64`.
pub fn numbers(array: &Array) -> impl Iterator<Item = f64> + '_ {
    (0..array.data().len()).map(|i| array.number(i).to_f64())
}

/// The type that recorded cases call by this name.
pub fn dtype(name: &str) -> ElementType {
    match name {
        "bool" => ElementType::Pred,
        "uint8" => ElementType::U8,
        "uint16" => ElementType::U16,
        "uint32" => ElementType::U32,
        "uint64" => ElementType::U64,
        "int8" => ElementType::S8,
        "int16" => ElementType::S16,
        "int32" => ElementType::S32,
        "int64" => ElementType::S64,
        "float4_e2m1fn" => ElementType::F4E2M1FN,
        "float8_e8m0fnu" => ElementType::F8E8M0FNU,
        "float8_e4m3fn" => ElementType::F8E4M3FN,
        "float8_e4m3fnuz" => ElementType::F8E4M3FNUZ,
        "float8_e5m2" => ElementType::F8E5M2,
        "float8_e5m2fnuz" => ElementType::F8E5M2FNUZ,
        "float16" => ElementType::F16,
        "bfloat16" => ElementType::BF16,
        "float32" => ElementType::F32,
        "float64" => ElementType::F64,
        other => panic!("no type is called {other}"),
    }
}

/// What a function of tensors gives for these arrays.
pub fn call(arguments: &[impl Borrow<Array>], function: impl FnOnce(&[Tensor]) -> Tensor) -> Array {
    let g = Graph::new("test");
    let inputs: Vec<Tensor> = (arguments.iter().map(Borrow::borrow).enumerate())
        .map(|(i, array)| g.input(&format!("x{i}"), array.element(), array.dims()))
        .collect();
    let output = function(&inputs);
    let program = g.compile(output).unwrap_or_else(|e| panic!("{e}"));
    program.run(arguments).unwrap_or_else(|e| panic!("{e}")).remove(0)
}
