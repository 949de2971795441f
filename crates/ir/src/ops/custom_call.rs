//! `custom-call`.

use super::{Arity, TopK};
use crate::text::attrs::{AttrReader, AttrWriter};
use crate::{CompId, Error, InferCx, OpDef, Result, Shape, ensure};

/// Calls a function that the user has registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomCall {
    /// The name it was registered under.
    pub target: String,
    /// The shape of the result.
    pub shape: Shape,
    /// Whether it must not be removed, repeated or reordered.
    pub has_side_effect: bool,
    /// The calling convention, as XLA names it.
    pub api_version: Option<String>,
    /// Computations that the function may run.
    pub called_computations: Vec<CompId>,
    /// Attributes without effect on the value, name and value as written.
    pub attributes: Vec<(String, String)>,
}

/// The names that [`CustomCall::attributes`] can have, in the order of XLA's text, each with the
/// value that is never written. The target stands after the sixth, the flag for side effects after
/// the seventh.
const ATTRIBUTES: [(&str, &str); 10] = [
    ("window", "{}"),
    ("dim_labels", ""),
    ("feature_group_count", "1"),
    ("batch_group_count", "1"),
    ("operand_precision", ""),
    ("padding_type", "PADDING_INVALID"),
    ("operand_layout_constraints", ""),
    ("literal", ""),
    ("output_to_operand_aliasing", "{}"),
    ("schedule", "SCHEDULE_NONE"),
];

/// The target that is [`TopK`] of the largest, in order.
const TOP_K: &str = "TopK";

/// Targets that annotate their operands, which they give as they are: one, or a tuple of several.
const SAME_SHAPE: [&str; 5] =
    ["LayoutConstraint", "MoveToDevice", "MoveToHost", "Sharding", "annotate_device_placement"];

/// The calling conventions, but for `API_VERSION_ORIGINAL`, which is never written.
const API_VERSIONS: [&str; 3] = [
    "API_VERSION_STATUS_RETURNING",
    "API_VERSION_STATUS_RETURNING_UNIFIED",
    "API_VERSION_TYPED_FFI",
];

impl CustomCall {
    /// A call without side effects or attributes.
    pub fn new(target: impl Into<String>, shape: Shape) -> Self {
        CustomCall {
            target: target.into(),
            shape,
            has_side_effect: false,
            api_version: None,
            called_computations: Vec::new(),
            attributes: Vec::new(),
        }
    }

    /// The value of one of [`Self::attributes`], as written.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// The shape of the result, for targets whose meaning XLA defines; `None` for all others, which
    /// the user registers. Errors: the operands are none that the target takes.
    fn meant(&self, cx: &InferCx<'_>) -> Result<Option<Shape>> {
        match self.target.as_str() {
            TOP_K => {
                ensure!(
                    cx.operands.len() == 1,
                    "custom-call.C2",
                    "target `{TOP_K}` takes one operand, found {}",
                    cx.operands.len()
                );
                // How many are asked for stands in the result alone.
                let values = self.shape.as_tuple().and_then(|parts| parts.first()?.as_array());
                let k = values.and_then(|values| values.dims().last().copied());
                let k = k.ok_or_else(|| {
                    let stated = &self.shape;
                    let detail = format!("target `{TOP_K}` gives values and indices, not {stated}");
                    Error::rule("custom-call.C1", detail)
                })?;
                TopK { k, largest: true }.infer(cx).map(Some)
            }
            target if SAME_SHAPE.contains(&target) => {
                let shapes: Vec<Shape> =
                    cx.operands.iter().map(|shape| shape.without_layout()).collect();
                let one = <[Shape; 1]>::try_from(shapes);
                Ok(Some(one.map_or_else(Shape::Tuple, |[one]| one)))
            }
            _ => Ok(None),
        }
    }

    fn write_all(&self, names: &[(&str, &str)], attrs: &mut AttrWriter<'_>) {
        for (name, _) in names {
            if let Some(value) = self.attribute(name) {
                attrs.put(name, value);
            }
        }
    }
}

impl OpDef for CustomCall {
    const OPCODE: &'static str = "custom-call";
    const ARITY: Arity = Arity::AtLeast(0);
    const NEEDS_SHAPE: bool = true;

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let stated = self.shape.without_layout();
        let Some(meant) = self.meant(cx)? else { return Ok(stated) };
        let target = &self.target;
        ensure!(
            meant.same(&stated),
            "custom-call.C1",
            "target `{target}` gives {meant} for these operands; the program says {stated}"
        );
        Ok(stated)
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        let target = attrs.needed("custom_call_target", AttrReader::string)?;
        let mut op = CustomCall::new(target, attrs.result.without_layout());
        for (name, default) in ATTRIBUTES {
            if let Some(value) = attrs.take(name).filter(|&value| value != default) {
                op.attributes.push((name.to_owned(), value.to_owned()));
            }
        }
        op.has_side_effect = attrs.flag("custom_call_has_side_effect")?.unwrap_or(false);
        op.api_version =
            attrs.parse("api_version", |scan| read_api_version(scan.word()?))?.flatten();
        let one = attrs.computation("to_apply")?;
        let many = attrs.computations("called_computations")?;
        op.called_computations = match (one, many) {
            (Some(_), Some(_)) => {
                return Err(Error::invalid("either to_apply or called_computations, not both"));
            }
            (one, many) => many.unwrap_or_else(|| one.into_iter().collect()),
        };
        Ok(op)
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        let (first, rest) = ATTRIBUTES.split_at(6);
        let (layouts, last) = rest.split_at(1);
        self.write_all(first, attrs);
        attrs.string("custom_call_target", &self.target);
        self.write_all(layouts, attrs);
        attrs.flag("custom_call_has_side_effect", self.has_side_effect);
        self.write_all(last, attrs);
        if let Some(api_version) = &self.api_version {
            attrs.put("api_version", api_version);
        }
        if !self.called_computations.is_empty() {
            attrs.computations("called_computations", &self.called_computations);
        }
    }

    fn callees(&self) -> Vec<CompId> {
        self.called_computations.clone()
    }

    fn callees_mut(&mut self) -> Vec<&mut CompId> {
        self.called_computations.iter_mut().collect()
    }
}

fn read_api_version(word: &str) -> Result<Option<String>> {
    match word {
        "API_VERSION_ORIGINAL" => Ok(None),
        word if API_VERSIONS.contains(&word) => Ok(Some(word.to_owned())),
        word => Err(Error::invalid(format!(
            "`{word}` is none of API_VERSION_ORIGINAL, {}",
            API_VERSIONS.join(", ")
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{infer, shape};

    #[test]
    fn any_operands_and_any_result() {
        let op = CustomCall::new("f", shape("(f32[2], token[])"));
        assert_eq!(infer(op, &["s32[]", "token[]"]), "(f32[2], token[])");
    }

    #[test]
    fn targets_that_are_known_give_what_they_mean() {
        let call = |target, operands: &[&str], result| {
            infer(CustomCall::new(target, shape(result)), operands)
        };
        let top_k = |operands: &[&str], result| call("TopK", operands, result);
        assert_eq!(top_k(&["f32[2,5]"], "(f32[2,3], s32[2,3])"), "(f32[2,3], s32[2,3])");
        for wrong in [
            "(f32[2,3], s64[2,3])",
            "(f32[2,3], s32[2,4])",
            "(f32[3], s32[3])",
            "(s32[2,3], s32[2,3])",
            "(f32[2,3], s32[2,3], s32[2,3])",
            "(f32[2,3])",
            "f32[2,3]",
            "()",
        ] {
            assert_eq!(top_k(&["f32[2,5]"], wrong), "custom-call.C1", "{wrong}");
        }
        assert_eq!(top_k(&["f32[2,5]"], "(f32[2,6], s32[2,6])"), "topk.C3");
        assert_eq!(top_k(&["f32[]"], "(f32[1], s32[1])"), "topk.C1");
        assert_eq!(top_k(&["c64[5]"], "(c64[1], s32[1])"), "topk.C2");
        assert_eq!(top_k(&["f32[5]", "f32[5]"], "(f32[1], s32[1])"), "custom-call.C2");
        assert_eq!(call("Sharding", &["f32[2]"], "f32[2]"), "f32[2]");
        assert_eq!(call("Sharding", &["f32[2]"], "f32[3]"), "custom-call.C1");
        assert_eq!(call("MoveToHost", &["f32[2]", "s32[]"], "(f32[2], s32[])"), "(f32[2], s32[])");
        // What becomes of the shape depends on the partitions.
        assert_eq!(call("SPMDFullToShardShape", &["f32[4]"], "f32[2]"), "f32[2]");
    }
}
