//! `custom-call`: a function from outside of HLO, found by its name.

use super::{Arity, TopK};
use crate::text::attrs::{AttrReader, AttrWriter, Scan, braced};
use crate::text::parse_shape;
use crate::{CompId, Error, InferCx, OpDef, Result, Shape, ensure};

/// Calls a function that the user has registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomCall {
    /// The name it was registered under.
    pub target: String,
    /// The shape of the result; with its layout, if the operands have theirs.
    pub shape: Shape,
    /// Whether it must not be removed, repeated or reordered.
    pub has_side_effect: bool,
    /// The calling convention.
    pub api_version: ApiVersion,
    /// The operands' shapes with the layouts in which the function wants them, and gives its result in
    /// that of [`Self::shape`]; without them, all arrays are row-major.
    pub operand_layouts: Option<Vec<Shape>>,
    /// Outputs that share their memory with operands.
    pub output_to_operand_aliasing: Vec<OutputOperandAlias>,
    /// Computations that the function may run.
    pub called_computations: Vec<CompId>,
    /// Attributes without effect on the value, name and value as written.
    pub attributes: Vec<(String, String)>,
}

/// An output of a custom call that shares its memory with an operand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputOperandAlias {
    /// Path to the output through nested tuples.
    pub output: Vec<usize>,
    /// The operand's number.
    pub operand: usize,
    /// Path into the operand through nested tuples.
    pub operand_index: Vec<usize>,
}

words! {
    /// How a custom call's function is called.
    #[derive(Default)]
    ApiVersion {
        /// With the result and the operands.
        #[default]
        Original = "API_VERSION_ORIGINAL",
        /// It reports a status, too.
        StatusReturning = "API_VERSION_STATUS_RETURNING",
        /// It gets an opaque string and reports a status.
        StatusReturningUnified = "API_VERSION_STATUS_RETURNING_UNIFIED",
        /// With attributes that have names and types.
        TypedFfi = "API_VERSION_TYPED_FFI",
    }
}

/// The names that [`CustomCall::attributes`] can have, in the order of XLA's text, each with the
/// value that is never written. The target stands after the sixth, with layouts, the flag for side
/// effects and aliases.
const ATTRIBUTES: [(&str, &str); 8] = [
    ("window", "{}"),
    ("dim_labels", ""),
    ("feature_group_count", "1"),
    ("batch_group_count", "1"),
    ("operand_precision", ""),
    ("padding_type", "PADDING_INVALID"),
    ("literal", ""),
    ("schedule", "SCHEDULE_NONE"),
];

/// The target that is [`TopK`] of the largest, in order.
const TOP_K: &str = "TopK";

/// Targets that annotate their operands, which they give as they are: one, or a tuple of several.
const SAME_SHAPE: [&str; 5] =
    ["LayoutConstraint", "MoveToDevice", "MoveToHost", "Sharding", "annotate_device_placement"];

impl CustomCall {
    /// A call without side effects or attributes.
    pub fn new(target: impl Into<String>, shape: Shape) -> Self {
        CustomCall {
            target: target.into(),
            shape,
            has_side_effect: false,
            api_version: ApiVersion::Original,
            operand_layouts: None,
            output_to_operand_aliasing: Vec::new(),
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

    /// Errors: layouts are not those of the operands' shapes.
    fn check_layouts(&self, cx: &InferCx<'_>) -> Result<()> {
        let Some(layouts) = &self.operand_layouts else { return Ok(()) };
        let (wanted, found) = (cx.operands.len(), layouts.len());
        ensure!(
            wanted == found,
            "custom-call.C3",
            "operand_layout_constraints has {found} shapes for {wanted} operands"
        );
        for (i, (layout, operand)) in layouts.iter().zip(cx.operands).enumerate() {
            ensure!(
                layout.same(operand),
                "custom-call.C3",
                "operand_layout_constraints has {layout} for operand {i}, which is {operand}"
            );
        }
        Ok(())
    }

    /// Errors: an output and an operand that share memory have different shapes, or do not exist.
    fn check_aliasing(&self, cx: &InferCx<'_>) -> Result<()> {
        for alias in &self.output_to_operand_aliasing {
            let output = at(&self.shape, &alias.output);
            let operand = cx.operands.get(alias.operand);
            let operand = operand.and_then(|operand| at(operand, &alias.operand_index));
            ensure!(
                output.zip(operand).is_some_and(|(output, operand)| output.same(operand)),
                "custom-call.C4",
                "output {} shares its memory with operand {} {}: they must have one shape, found {} \
                 and {}",
                braced(&alias.output),
                alias.operand,
                braced(&alias.operand_index),
                output.map_or_else(|| "none".to_owned(), Shape::to_string),
                operand.map_or_else(|| "none".to_owned(), Shape::to_string)
            );
        }
        Ok(())
    }

    fn write_all(&self, names: &[(&str, &str)], attrs: &mut AttrWriter<'_>) {
        for (name, _) in names {
            if let Some(value) = self.attribute(name) {
                attrs.put(name, value);
            }
        }
    }
}

/// The shape at a path through nested tuples.
fn at<'s>(shape: &'s Shape, path: &[usize]) -> Option<&'s Shape> {
    path.iter().try_fold(shape, |shape, &index| shape.as_tuple()?.get(index))
}

impl OpDef for CustomCall {
    const OPCODE: &'static str = "custom-call";
    const ARITY: Arity = Arity::AtLeast(0);
    const NEEDS_SHAPE: bool = true;

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let stated = self.shape.without_layout();
        self.check_layouts(cx)?;
        self.check_aliasing(cx)?;
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
        op.operand_layouts = attrs.parse("operand_layout_constraints", layouts)?;
        if op.operand_layouts.is_some() {
            op.shape = attrs.result.clone();
        }
        let aliasing = attrs.parse("output_to_operand_aliasing", aliasing)?;
        op.output_to_operand_aliasing = aliasing.unwrap_or_default();
        for (name, default) in ATTRIBUTES {
            if let Some(value) = attrs.take(name).filter(|&value| value != default) {
                op.attributes.push((name.to_owned(), value.to_owned()));
            }
        }
        op.has_side_effect = attrs.flag("custom_call_has_side_effect")?.unwrap_or(false);
        let api_version =
            attrs.parse("api_version", |scan| ApiVersion::from_word_of_any_case(scan.word()?))?;
        op.api_version = api_version.unwrap_or_default();
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
        let (literal, schedule) = rest.split_at(1);
        self.write_all(first, attrs);
        attrs.string("custom_call_target", &self.target);
        if let Some(layouts) = &self.operand_layouts {
            let shapes: Vec<_> = layouts.iter().map(Shape::to_string).collect();
            attrs.put("operand_layout_constraints", format_args!("{{{}}}", shapes.join(", ")));
        }
        attrs.flag("custom_call_has_side_effect", self.has_side_effect);
        self.write_all(literal, attrs);
        if !self.output_to_operand_aliasing.is_empty() {
            let entry = |alias: &OutputOperandAlias| {
                let (output, index) = (braced(&alias.output), braced(&alias.operand_index));
                format!("{output}: ({}, {index})", alias.operand)
            };
            let entries: Vec<_> = self.output_to_operand_aliasing.iter().map(entry).collect();
            attrs.put("output_to_operand_aliasing", format_args!("{{{}}}", entries.join(", ")));
        }
        self.write_all(schedule, attrs);
        if self.api_version != ApiVersion::Original {
            attrs.put("api_version", self.api_version);
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

/// `{f32[2]{0}, (s32[], f32[3,4]{0,1})}`
fn layouts(scan: &mut Scan<'_>) -> Result<Vec<Shape>> {
    let text = scan.remainder().trim_end();
    let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    let inner = inner.ok_or_else(|| Error::invalid("expected shapes in braces"))?;
    // Between parentheses the same stands for the elements of a tuple.
    match parse_shape(&format!("({inner})"))? {
        Shape::Tuple(shapes) => Ok(shapes),
        _ => Err(Error::internal("a tuple is no tuple")),
    }
}

/// `{{0}: (1, {}), {1}: (0, {})}`
fn aliasing(scan: &mut Scan<'_>) -> Result<Vec<OutputOperandAlias>> {
    scan.list('{', '}', |scan| {
        let output = scan.list('{', '}', Scan::size)?;
        scan.expect(":")?;
        scan.expect("(")?;
        let operand = scan.size()?;
        scan.expect(",")?;
        let operand_index = scan.list('{', '}', Scan::size)?;
        scan.expect(")")?;
        Ok(OutputOperandAlias { output, operand, operand_index })
    })
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
