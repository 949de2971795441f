//! Custom calls: those that mean something to the compiler, and those of the user.

use helio_ir::attribute::{Attribute as Typed, Dictionary};
use helio_ir::ops::{ApiVersion, CustomCall, OutputOperandAlias, TopK};
use helio_ir::types::{Layout, Number};
use helio_ir::{BackendConfig, ElementType, Error, InstrId, Literal, Result, Shape};

use super::body::Body;
use super::operation::Site;
use super::types;
use crate::mlir::{Attribute, Field};

impl<'m> Body<'_, 'm> {
    pub(super) fn custom_call(&mut self, site: &Site<'_, 'm>) -> Result<Vec<InstrId>> {
        let attrs = site.attrs;
        let target = attrs.string("call_target_name")?;
        let target = target.ok_or_else(|| Error::invalid("`call_target_name` is needed"))?;
        let has_side_effect = attrs.flag("has_side_effect")?;
        if target.starts_with("check.") {
            return self.check(site);
        }
        if target == "shape_assertion" {
            return self.shape_assertion(site);
        }
        if let Some(name) = target.strip_prefix("mhlo.") {
            // The one operation that was called like this before StableHLO had it.
            let dialect = if name == "tan" { "stablehlo" } else { "chlo" };
            let op = self.cx.elementwise.get(format!("{dialect}.{name}").as_str()).cloned();
            if let Some(op) = op {
                attrs.get("backend_config");
                attrs.get("version");
                return Ok(vec![self.push(op, &site.operands)?]);
            }
        }
        if target == "mhlo.topk" {
            return self.known_top_k(site);
        }
        let op = self.call_of(site, target, has_side_effect)?;
        let call = self.push(op, &site.operands)?;
        let config = match attrs.get("mhlo.backend_config").or(attrs.get("backend_config")) {
            Some(Attribute::String(text)) if text.is_empty() => None,
            Some(Attribute::Dictionary(fields)) if fields.is_empty() => None,
            Some(Attribute::String(text)) => Some(BackendConfig::of(text)),
            Some(Attribute::Dictionary(fields)) => Some(BackendConfig::typed(dictionary(fields)?)),
            Some(_) => return Err(Error::unimplemented("a backend_config of another kind")),
            None => None,
        };
        if config.is_some() {
            self.comp.instr_mut(call).extra.get_or_insert_default().backend_config = config;
        }
        self.unpack(call, site.result_types.len())
    }

    /// The call of a function of the user.
    fn call_of(
        &mut self,
        site: &Site<'_, 'm>,
        target: &str,
        has_side_effect: bool,
    ) -> Result<CustomCall> {
        let attrs = site.attrs;
        let mut shapes =
            site.result_types.iter().map(|ty| types::shape(ty)).collect::<Result<Vec<_>>>()?;
        let mut shape = if shapes.len() == 1 { shapes.remove(0) } else { Shape::Tuple(shapes) };
        let api_version = match attrs.integer("api_version")? {
            None | Some(0 | 1) => ApiVersion::Original,
            Some(2) => ApiVersion::StatusReturning,
            Some(3) => ApiVersion::StatusReturningUnified,
            Some(4) => ApiVersion::TypedFfi,
            Some(other) => return Err(Error::unimplemented(format!("api_version {other}"))),
        };
        let operand_layouts = match layouts(attrs.get("operand_layouts"))? {
            None => None,
            Some(layouts) => {
                let shapes = site.operands.iter().map(|&id| self.shape(id).clone());
                Some(with_layouts(shapes.collect(), layouts)?)
            }
        };
        if let Some(layouts) = layouts(attrs.get("result_layouts"))? {
            shape = match shape {
                Shape::Tuple(parts) => Shape::Tuple(with_layouts(parts, layouts)?),
                one => with_layouts(vec![one], layouts)?.remove(0),
            };
        }
        let output_to_operand_aliasing = match attrs.get("output_operand_aliases") {
            Some(Attribute::Array(list)) => list.iter().map(alias).collect::<Result<_>>()?,
            _ => Vec::new(),
        };
        let mut called_computations = Vec::new();
        if let Some(Attribute::Array(list)) = attrs.get("called_computations") {
            for callee in list {
                called_computations.push(self.callee(callee)?);
            }
        }
        Ok(CustomCall {
            target: target.to_owned(),
            shape,
            has_side_effect,
            api_version,
            operand_layouts,
            output_to_operand_aliasing,
            called_computations,
            attributes: Vec::new(),
        })
    }

    /// `mhlo.topk`, whose attributes are those of HLO's operation.
    fn known_top_k(&mut self, site: &Site<'_, 'm>) -> Result<Vec<InstrId>> {
        for name in ["api_version", "backend_config", "operand_layouts", "result_layouts"] {
            site.attrs.get(name);
        }
        let Some(Attribute::Dictionary(fields)) = site.attrs.get("mhlo.attributes") else {
            return Err(Error::invalid("attribute `mhlo.attributes` must be a dictionary"));
        };
        let fields = super::Attrs::new(fields);
        let op = TopK { k: fields.size("k")?, largest: fields.flag("largest")? };
        let result = self.push(op, &site.operands)?;
        self.unpack(result, 2)
    }

    fn callee(&mut self, attribute: &Attribute) -> Result<helio_ir::CompId> {
        let path = match attribute {
            Attribute::Symbol(path) => path.join("::"),
            _ => return Err(Error::invalid("called_computations must be symbols")),
        };
        let function = self.cx.functions.get(path.as_str()).copied();
        let function =
            function.ok_or_else(|| Error::invalid(format!("there is no function `{path}`")))?;
        let (inputs, _) = super::signature(function)?;
        let shapes = inputs.iter().map(types::shape).collect::<Result<Vec<_>>>()?;
        self.cx.function(function, &shapes)
    }

    /// What JAX's exporter demands of sizes, which are known now.
    fn shape_assertion(&mut self, site: &Site<'_, 'm>) -> Result<Vec<InstrId>> {
        let message = site.attrs.string("error_message")?.unwrap_or("an assertion on sizes");
        for name in ["api_version", "backend_config", "operand_layouts", "result_layouts"] {
            site.attrs.get(name);
        }
        let [holds] = site.operands()?;
        let value = self.known(holds)?;
        match value.as_ref().and_then(Literal::as_array).map(|array| array.number(0)) {
            Some(Number::Pred(true)) => Ok(Vec::new()),
            Some(_) => Err(Error::invalid(self.with_values(message, &site.operands[1..])?)),
            None => Err(Error::unimplemented(
                "an assertion on sizes that the program leaves open\n  help: state the shapes of its \
                 arguments, as ProgramFile::module_for and helio run --inputs do",
            )),
        }
    }
}

impl Body<'_, '_> {
    /// A message in which `{0}`, `{1}` and so on stand for these values.
    fn with_values(&self, message: &str, values: &[InstrId]) -> Result<String> {
        let mut message = message.to_owned();
        for (i, &id) in values.iter().enumerate() {
            let value = self.known(id)?;
            let number = value.as_ref().and_then(Literal::as_array).map(|array| array.number(0));
            if let Some(Number::Int(value)) = number {
                message = message.replace(&format!("{{{i}}}"), &value.to_string());
            }
        }
        Ok(message)
    }
}

/// The attributes of a typed call.
fn dictionary(fields: &[Field]) -> Result<Dictionary> {
    let entry = |(name, value): &Field| Ok((name.clone(), typed(value)?));
    Dictionary::new(fields.iter().map(entry).collect::<Result<_>>()?)
}

fn typed(attribute: &Attribute) -> Result<Typed> {
    Ok(match attribute {
        Attribute::Bool(value) => Typed::Bool(*value),
        Attribute::Integer { value, ty } => Typed::Integer(*value, types::element(ty)?),
        Attribute::Float { value, ty } => Typed::Float(*value, types::element(ty)?),
        Attribute::String(value) => Typed::String(value.clone()),
        Attribute::Array(values) => Typed::List(values.iter().map(typed).collect::<Result<_>>()?),
        Attribute::Integers(values) => {
            let ty = ElementType::S64;
            let number = |&value: &i64| Typed::Integer(value.into(), ty);
            Typed::Numbers(ty, values.iter().map(number).collect())
        }
        Attribute::Dictionary(fields) => Typed::Dictionary(dictionary(fields)?),
        other => {
            return Err(Error::unimplemented(format!("{other:?} in a backend_config")));
        }
    })
}

/// Lists of dimensions from the fastest-varying to the slowest, if there are any.
fn layouts(attribute: Option<&Attribute>) -> Result<Option<Vec<Vec<usize>>>> {
    let Some(Attribute::Array(list)) = attribute else { return Ok(None) };
    list.iter()
        .map(|each| super::attrs::size_list("layouts", each))
        .collect::<Result<_>>()
        .map(Some)
}

fn with_layouts(shapes: Vec<Shape>, layouts: Vec<Vec<usize>>) -> Result<Vec<Shape>> {
    if shapes.len() != layouts.len() {
        let detail = format!("{} layouts for {} arrays", layouts.len(), shapes.len());
        return Err(Error::invalid(detail));
    }
    let pairs = shapes.into_iter().zip(layouts);
    pairs
        .map(|(shape, minor_to_major)| match shape {
            Shape::Array(array) => {
                let layout = Layout { minor_to_major, attributes: String::new() };
                array.with_layout(Some(layout)).map(Shape::Array)
            }
            other => Ok(other),
        })
        .collect()
}

/// `#stablehlo.output_operand_alias<…>`
fn alias(attribute: &Attribute) -> Result<OutputOperandAlias> {
    let Attribute::Struct { fields, .. } = attribute else {
        return Err(Error::invalid("an alias must be #stablehlo.output_operand_alias<…>"));
    };
    let fields = super::attrs::Attrs::new(fields);
    Ok(OutputOperandAlias {
        output: fields.sizes("output_tuple_indices")?,
        operand: fields.size("operand_index")?,
        operand_index: fields.sizes("operand_tuple_indices")?,
    })
}
