//! `custom-call` raised to StableHLO.

use helio_ir::attribute::{Attribute as Typed, ConfigValue, Dictionary};
use helio_ir::ops::{ApiVersion, CustomCall, OutputOperandAlias};
use helio_ir::{ArrayShape, BackendConfig, ElementType, Error, Instr, Result, Shape};

use super::computation::Frame;
use super::{Value, types};
use crate::mlir::{Attribute, Dense, Field, TensorType, Type};

impl Frame<'_, '_, '_> {
    /// The function sees tuples, so that only a flat one for its results is the same to it.
    pub(super) fn custom_call(&mut self, op: &CustomCall, instr: &Instr) -> Result<Value> {
        let is_tuple = |shape: &Shape| matches!(shape, Shape::Tuple(_));
        let takes_tuple = instr.operands.iter().any(|&id| is_tuple(self.shape(id)));
        let results = match &op.shape {
            Shape::Tuple(parts) => parts.clone(),
            shape => vec![shape.clone()],
        };
        if takes_tuple || results.iter().any(is_tuple) {
            return Err(Error::unimplemented("a custom call that takes or gives tuples in tuples"));
        }
        let mut attributes = vec![
            ("call_target_name".to_owned(), Attribute::String(op.target.clone())),
            ("has_side_effect".to_owned(), Attribute::Bool(op.has_side_effect)),
        ];
        let config = instr.extra.as_ref().and_then(|extra| extra.backend_config.as_ref());
        attributes.extend(backend_config(config, op.api_version)?);
        let version = match op.api_version {
            ApiVersion::Original => 1,
            ApiVersion::StatusReturning => 2,
            ApiVersion::StatusReturningUnified => 3,
            ApiVersion::TypedFfi => 4,
        };
        let ty = Type::signless(32);
        attributes.push(("api_version".to_owned(), Attribute::Integer { value: version, ty }));
        let called = op.called_computations.iter().map(|&id| self.symbol(id)).collect::<Vec<_>>();
        if !called.is_empty() {
            attributes.push(("called_computations".to_owned(), Attribute::Array(called)));
        }
        if let Some(operands) = &op.operand_layouts {
            attributes.push(("operand_layouts".to_owned(), layouts(operands)?));
            attributes.push(("result_layouts".to_owned(), layouts(&results)?));
        }
        let aliases = op.output_to_operand_aliasing.iter().map(alias);
        let aliases = aliases.collect::<Vec<_>>();
        if !aliases.is_empty() {
            attributes.push(("output_operand_aliases".to_owned(), Attribute::Array(aliases)));
        }
        let operands = self.leaves(instr)?;
        let name = "stablehlo.custom_call";
        self.emit_shape(name, operands, attributes, &instr.shape, Vec::new())
    }
}

/// StableHLO's verifier wants a dictionary of a typed call, and at most a string of others.
fn backend_config(config: Option<&BackendConfig>, version: ApiVersion) -> Result<Option<Field>> {
    let is_typed = version == ApiVersion::TypedFfi;
    let text = |config: &BackendConfig| Attribute::String(config.as_str().to_owned());
    let attribute = match config.map(|config| (config, config.value())) {
        None if is_typed => Attribute::Dictionary(Vec::new()),
        None => return Ok(None),
        Some((_, ConfigValue::Typed(dictionary))) if is_typed => {
            Attribute::Dictionary(fields(dictionary)?)
        }
        Some((config, ConfigValue::Json(dictionary))) if is_typed => {
            fields(dictionary).map_or_else(|_| text(config), Attribute::Dictionary)
        }
        Some((config, _)) => text(config),
    };
    Ok(Some(("backend_config".to_owned(), attribute)))
}

fn fields(dictionary: &Dictionary) -> Result<Vec<Field>> {
    let field = |(name, value): (&str, &Typed)| Ok((name.to_owned(), untyped(value)?));
    dictionary.iter().map(field).collect()
}

fn untyped(value: &Typed) -> Result<Attribute> {
    Ok(match value {
        Typed::Bool(value) => Attribute::Bool(*value),
        Typed::Integer(value, ty) => Attribute::Integer { value: *value, ty: types::element(*ty) },
        Typed::Float(value, ty) => Attribute::Float { value: *value, ty: types::element(*ty) },
        Typed::String(text) => Attribute::String(text.clone()),
        Typed::List(values) => Attribute::Array(values.iter().map(untyped).collect::<Result<_>>()?),
        Typed::Dictionary(dictionary) => Attribute::Dictionary(fields(dictionary)?),
        Typed::Numbers(ElementType::S64, values) => {
            let number = |value: &Typed| match value {
                Typed::Integer(value, _) => i64::try_from(*value).ok(),
                _ => None,
            };
            let numbers = values.iter().map(number).collect::<Option<_>>();
            Attribute::Integers(numbers.ok_or_else(unknown)?)
        }
        _ => return Err(unknown()),
    })
}

fn unknown() -> Error {
    Error::unimplemented("an attribute of this kind in a backend_config")
}

/// Orders of dimensions, the fastest first, as a list of `dense<…> : tensor<…xindex>`.
fn layouts(shapes: &[Shape]) -> Result<Attribute> {
    let layout = |shape: &Shape| match shape {
        Shape::Array(array) => Ok(order(array)),
        Shape::Token => Ok(Vec::new()),
        _ => Err(Error::unimplemented("the layout of a value that is no array")),
    };
    let dense = |order: Vec<usize>| {
        let ty = Type::Tensor(TensorType::new([order.len() as u64], Type::Index));
        let bytes = order.into_iter().flat_map(|d| (d as u64).to_le_bytes()).collect();
        Attribute::Dense(Dense { ty, bytes, is_splat: false })
    };
    let each = shapes.iter().map(|shape| layout(shape).map(dense));
    each.collect::<Result<_>>().map(Attribute::Array)
}

fn order(array: &ArrayShape) -> Vec<usize> {
    match array.layout() {
        Some(layout) => layout.minor_to_major.clone(),
        None => (0..array.rank()).rev().collect(),
    }
}

/// `#stablehlo.output_operand_alias<…>`
fn alias(alias: &OutputOperandAlias) -> Attribute {
    let list = |path: &[usize]| Attribute::Integers(path.iter().map(|&i| i as i64).collect());
    let fields = vec![
        ("output_tuple_indices".to_owned(), list(&alias.output)),
        ("operand_index".to_owned(), Attribute::i64(alias.operand as i64)),
        ("operand_tuple_indices".to_owned(), list(&alias.operand_index)),
    ];
    let [dialect, name] = ["stablehlo", "output_operand_alias"].map(str::to_owned);
    Attribute::Struct { dialect, name, fields }
}
