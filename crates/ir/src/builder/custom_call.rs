//! The builder's methods for custom calls.

use super::scope::{ensure_balanced, ensure_word};
use super::{XlaBuilder, XlaComputation, XlaOp, check, refs};
use crate::ops::CustomCall;
use crate::{BackendConfig, Result, Shape};

pub use crate::ops::{ApiVersion, OutputOperandAlias};

/// Everything about a custom call but its target, operands and shape.
#[derive(Clone, Debug, Default)]
pub struct CustomCallOptions {
    /// The configuration handed to the function (`opaque`, `backend_config`).
    pub backend_config: Option<BackendConfig>,
    /// Whether the call must not be removed, repeated or reordered.
    pub has_side_effect: bool,
    /// The calling convention.
    pub api_version: ApiVersion,
    /// Computations that the function may run.
    pub called_computations: Vec<XlaComputation>,
    /// The operands' shapes with the layouts that the function wants.
    pub operand_shapes_with_layout: Vec<Shape>,
    /// Outputs that share buffers with operands.
    pub output_operand_aliasing: Vec<OutputOperandAlias>,
    /// When the call is to be scheduled, as XLA names it (`SCHEDULE_LATEST`).
    pub schedule: Option<String>,
    /// Other attributes, by name and value as in HLO text (`("dim_labels", "bf01_oi01->bf01")`).
    pub attributes: Vec<(String, String)>,
}

helio_limits::with_methods! { CustomCallOptions {
    with_backend_config(backend_config: impl Into<Option<BackendConfig>>);
    with_has_side_effect(has_side_effect: bool);
    with_api_version(api_version: ApiVersion);
    with_called_computations(called_computations: impl Into<Vec<XlaComputation>>);
    with_operand_shapes_with_layout(operand_shapes_with_layout: impl Into<Vec<Shape>>);
    with_output_operand_aliasing(output_operand_aliasing: impl Into<Vec<OutputOperandAlias>>);
    with_schedule(schedule: impl Into<Option<String>>);
    with_attributes(attributes: impl Into<Vec<(String, String)>>);
} }

impl CustomCallOptions {
    /// The attributes without effect on the value, by name and value as in HLO text. Errors:
    /// `builder.C8`, text that is none.
    fn attributes(&self) -> Result<Vec<(String, String)>> {
        let mut attributes = Vec::new();
        if let Some(schedule) = &self.schedule {
            ensure_word(schedule)?;
            attributes.push(("schedule".to_owned(), schedule.clone()));
        }
        attributes.extend(self.attributes.iter().cloned());
        for (name, value) in &attributes {
            ensure_word(name)?;
            ensure_balanced(value)?;
        }
        Ok(attributes)
    }
}

impl XlaBuilder {
    /// Calls a function that the user has registered under the name `target`.
    ///
    /// Shapes: whatever the function wants; the result is `shape`. The function must be pure
    /// unless [`XlaBuilder::custom_call_with`] says otherwise. Errors: the rules of `custom-call`.
    /// Source: E1–E4 "CustomCall".
    ///
    /// ```
    /// # use helio_ir::{ElementType::F32, Shape, builder::XlaBuilder};
    /// let b = XlaBuilder::new("b");
    /// let x = b.constant_r1(&[1f32, 2.0]);
    /// let y = b.constant_r2(&[[10f32, 20.0, 30.0], [40.0, 50.0, 60.0]]);
    /// let z = b.custom_call("myfunc", &[x, y], Shape::array(F32, [3, 3])?);
    /// # b.build()?;
    /// # Ok::<(), helio_ir::Error>(())
    /// ```
    #[track_caller]
    pub fn custom_call(
        &self,
        target: &str,
        operands: &[impl AsRef<XlaOp>],
        shape: impl Into<Shape>,
    ) -> XlaOp {
        self.custom_call_with(target, operands, shape, &CustomCallOptions::default())
    }

    /// [`XlaBuilder::custom_call`] with everything that can be said about one. Errors: the rules of
    /// `custom-call`, `builder.C8`. Source: XLA's `CustomCall`, `CustomCallWithComputation`,
    /// `CustomCallWithLayout`, `CustomCallWithConvDnums`.
    #[track_caller]
    pub fn custom_call_with(
        &self,
        target: &str,
        operands: &[impl AsRef<XlaOp>],
        shape: impl Into<Shape>,
        options: &CustomCallOptions,
    ) -> XlaOp {
        let shape = shape.into();
        let called = options.called_computations.iter().map(|called| self.import(called));
        let called_computations = check!(self, called.collect());
        let layouts = &options.operand_shapes_with_layout;
        let op = CustomCall {
            target: target.to_owned(),
            shape: shape.clone(),
            has_side_effect: options.has_side_effect,
            api_version: options.api_version,
            operand_layouts: (!layouts.is_empty()).then(|| layouts.clone()),
            output_to_operand_aliasing: options.output_operand_aliasing.clone(),
            called_computations,
            attributes: check!(self, options.attributes()),
        };
        let call = self.apply_named(op, &refs(operands), None, Some(shape));
        if let Some(config) = &options.backend_config {
            call.configure(config.clone());
        }
        call
    }
}
