//! What is known of a custom call before it runs.

use helio_ir::ops::ApiVersion;
use helio_ir::{
    ArrayShape, BackendConfig, CompId, Dictionary, Error, InstrId, Module, Op, Result, Shape,
};

/// What is known of a custom call before it runs.
///
/// Operands and result are numbered by their parts: arrays and tokens, tuples taken apart.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CallInfo {
    /// The name that the function is registered under.
    pub target: String,
    /// The instruction that calls it.
    pub instruction: String,
    /// How the program wants it to be called.
    pub api_version: ApiVersion,
    /// What it is told besides its operands.
    pub config: Option<BackendConfig>,
    /// Whether the call does more than compute its result.
    pub has_side_effect: bool,
    /// The shapes of the operands, with the layouts in which the function gets them; those without
    /// layouts are row-major.
    pub operands: Vec<Shape>,
    /// The shape of the result, with its layout likewise.
    pub result: Shape,
    /// Parts of the result that share the memory of a part of the operands, and hold its value when
    /// the call begins: (result, operand).
    pub aliases: Vec<(usize, usize)>,
}

impl CallInfo {
    /// Of an instruction. Errors: `Internal` if it is no custom call.
    pub fn of(module: &Module, computation: CompId, id: InstrId) -> Result<Self> {
        let computation = module.computation(computation);
        let instr = computation.instr(id);
        let Op::CustomCall(op) = &instr.op else {
            return Err(Error::internal(format!("{} is no custom call", instr.name)));
        };
        let row_major = |id: &InstrId| computation.instr(*id).shape.without_layout();
        let operands = match &op.operand_layouts {
            Some(layouts) => layouts.clone(),
            None => instr.operands.iter().map(row_major).collect(),
        };
        let part = |alias: &helio_ir::ops::OutputOperandAlias| {
            let before: usize =
                operands[..alias.operand].iter().map(|shape| shape.leaves().len()).sum();
            let operand = before + leaf(&operands[alias.operand], &alias.operand_index);
            let count = at(&op.shape, &alias.output).leaves().len();
            let output = leaf(&op.shape, &alias.output);
            (0..count).map(move |i| (output + i, operand + i))
        };
        let aliases = op.output_to_operand_aliasing.iter().flat_map(part).collect();
        Ok(CallInfo {
            target: op.target.clone(),
            instruction: instr.name.to_string(),
            api_version: op.api_version,
            config: instr.extra.as_ref().and_then(|extra| extra.backend_config.clone()),
            has_side_effect: op.has_side_effect,
            aliases,
            operands,
            result: op.shape.clone(),
        })
    }

    /// The attributes. Errors: the call has none.
    pub fn attributes(&self) -> Result<&Dictionary> {
        let config = self.config.as_ref();
        config.and_then(BackendConfig::attributes).ok_or_else(|| {
            Error::invalid(match config {
                Some(config) => format!("there are no attributes in backend_config={config}"),
                None => "there are no attributes: the call has no backend_config".to_owned(),
            })
        })
    }

    /// The string that the function is told; empty if there is none.
    pub fn opaque(&self) -> &str {
        self.config.as_ref().map_or("", BackendConfig::as_str)
    }

    /// Whether a part of the operands shares the memory of a result.
    pub fn is_shared(&self, operand: usize) -> bool {
        self.aliases.iter().any(|&(_, shared)| shared == operand)
    }

    /// How many parts the operands have.
    pub fn operand_count(&self) -> usize {
        let count = |shape: &Shape| match shape {
            Shape::Tuple(_) => shape.leaves().len(),
            _ => 1,
        };
        self.operands.iter().map(count).sum()
    }

    /// The arrays of the operands, by number; tokens are none.
    pub(super) fn operand_arrays(&self) -> Vec<Option<&ArrayShape>> {
        let mut arrays = Vec::with_capacity(self.operands.len());
        self.operands.iter().for_each(|shape| push_arrays(shape, &mut arrays));
        arrays
    }

    /// The arrays of the result, by number; tokens are none.
    pub(super) fn result_arrays(&self) -> Vec<Option<&ArrayShape>> {
        let mut arrays = Vec::new();
        push_arrays(&self.result, &mut arrays);
        arrays
    }
}

/// Appends the parts of a shape, each an array or none.
fn push_arrays<'s>(shape: &'s Shape, to: &mut Vec<Option<&'s ArrayShape>>) {
    match shape {
        Shape::Tuple(elements) => elements.iter().for_each(|element| push_arrays(element, to)),
        part => to.push(part.as_array()),
    }
}

/// The shape at a path that the operation has checked.
fn at<'s>(shape: &'s Shape, path: &[usize]) -> &'s Shape {
    let inner = |shape: &'s Shape, &index: &usize| {
        shape.as_tuple().and_then(|elements| elements.get(index)).unwrap_or(shape)
    };
    path.iter().fold(shape, inner)
}

/// How many parts stand before the one at a path.
fn leaf(shape: &Shape, path: &[usize]) -> usize {
    let Some((&index, rest)) = path.split_first() else { return 0 };
    let elements = shape.as_tuple().unwrap_or_default();
    let before: usize = elements.iter().take(index).map(|shape| shape.leaves().len()).sum();
    before + elements.get(index).map_or(0, |element| leaf(element, rest))
}
