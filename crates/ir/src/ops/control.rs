//! Control flow, `while` and `conditional`, and what only orders or separates instructions:
//! `opt-barrier`, `after-all`, `add-dependency`, `domain`.

use super::Arity;
use super::check::{ensure_params, ensure_result, merge_shapes};
use crate::text::attrs::{AttrReader, AttrWriter};
use crate::{CompId, ElementType, Error, InferCx, OpDef, Result, Shape, ensure};

/// Runs the body as long as the condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct While {
    /// From the loop state to a `pred` scalar.
    pub condition: CompId,
    /// From the loop state to the next.
    pub body: CompId,
}

impl OpDef for While {
    const OPCODE: &'static str = "while";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let state = cx.operand(0)?;
        let (condition, body) = (cx.callee(self.condition), cx.callee(self.body));
        ensure_params("while.C1", "condition", condition, cx.operands.iter().copied())?;
        ensure_result("while.C2", "condition", condition, &Shape::scalar(ElementType::Pred))?;
        ensure_params("while.C3", "body", body, cx.operands.iter().copied())?;
        ensure_result("while.C4", "body", body, state)?;
        Ok(state.without_layout())
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        Ok(While {
            condition: attrs.needed("condition", AttrReader::computation)?,
            body: attrs.needed("body", AttrReader::computation)?,
        })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        attrs.computation("condition", self.condition);
        attrs.computation("body", self.body);
    }

    calls!(condition, body);
}

/// Runs one of several computations, chosen by a `pred` (true first) or an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conditional {
    /// The computations; for a `pred` first the one for true, then for false.
    pub branches: Vec<CompId>,
}

impl OpDef for Conditional {
    const OPCODE: &'static str = "conditional";
    const ARITY: Arity = Arity::AtLeast(2);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let selector = cx.scalar("conditional.C1", 0)?;
        ensure!(
            matches!(selector, ElementType::Pred | ElementType::S32),
            "conditional.C1",
            "operand 0 must be pred[] or s32[], is {selector}[]"
        );
        let count = self.branches.len();
        ensure!(
            if selector.is_pred() { count == 2 } else { count >= 1 },
            "conditional.C2",
            "{count} branches; a pred chooses between 2, an index between 1 or more"
        );
        let operands = cx.operands.get(1..).unwrap_or_default();
        ensure!(
            operands.len() == count,
            "conditional.C3",
            "{} operands for {count} branches; each takes one",
            operands.len()
        );
        let mut result: Option<Shape> = None;
        for (&branch, &operand) in self.branches.iter().zip(operands) {
            let branch = cx.callee(branch);
            ensure_params("conditional.C4", "branch", branch, std::iter::once(operand))?;
            let found = branch.result_shape();
            let merged = match &result {
                None => Some(found.without_layout()),
                Some(result) => merge_shapes(result, &found.without_layout()),
            };
            ensure!(
                merged.is_some(),
                "conditional.C5",
                "branch {} gives {found}, but one before it {}",
                branch.name,
                result.map_or_else(String::new, |result| result.to_string())
            );
            result = merged;
        }
        result.ok_or_else(|| Error::internal("a conditional without branches"))
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        if let Some(branches) = attrs.computations("branch_computations")? {
            return Ok(Conditional { branches });
        }
        let on_true = attrs.needed("true_computation", AttrReader::computation)?;
        let on_false = attrs.needed("false_computation", AttrReader::computation)?;
        Ok(Conditional { branches: vec![on_true, on_false] })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        let selector = attrs.operands.first().and_then(|shape| shape.as_array());
        match self.branches[..] {
            [on_true, on_false] if selector.is_some_and(|array| array.element().is_pred()) => {
                attrs.computation("true_computation", on_true);
                attrs.computation("false_computation", on_false);
            }
            _ => attrs.computations("branch_computations", &self.branches),
        }
    }

    fn callees(&self) -> Vec<CompId> {
        self.branches.clone()
    }

    fn callees_mut(&mut self) -> Vec<&mut CompId> {
        self.branches.iter_mut().collect()
    }
}

/// The operand itself, not to be moved across.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptimizationBarrier;

impl OpDef for OptimizationBarrier {
    const OPCODE: &'static str = "opt-barrier";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        cx.operand(0).map(Shape::without_layout)
    }

    fn read(_: &mut AttrReader<'_>) -> Result<Self> {
        Ok(OptimizationBarrier)
    }
}

/// A token that comes after all operand tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AfterAll;

impl OpDef for AfterAll {
    const OPCODE: &'static str = "after-all";
    const ARITY: Arity = Arity::AtLeast(0);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        (0..cx.operands.len()).try_for_each(|i| cx.ensure_token("after-all.C1", i))?;
        Ok(Shape::Token)
    }

    fn read(_: &mut AttrReader<'_>) -> Result<Self> {
        Ok(AfterAll)
    }
}

/// The first operand, after the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddDependency;

impl OpDef for AddDependency {
    const OPCODE: &'static str = "add-dependency";
    const ARITY: Arity = Arity::Exactly(2);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        cx.ensure_token("add-dependency.C1", 1)?;
        cx.operand(0).map(Shape::without_layout)
    }

    fn read(_: &mut AttrReader<'_>) -> Result<Self> {
        Ok(AddDependency)
    }
}

/// The operand itself, at the border of two domains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// The domain's metadata, as written.
    pub domain: String,
}

impl OpDef for Domain {
    const OPCODE: &'static str = "domain";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        cx.operand(0).map(Shape::without_layout)
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        let domain = attrs.take("domain");
        Ok(Domain { domain: attrs.require("domain", domain)?.to_owned() })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        attrs.put("domain", &self.domain);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{C0, C1, infer, infer_in, module};

    #[test]
    fn while_loop() {
        let state = "(f32[2], s32[])";
        let of = |condition: (&[&str], &str), body: (&[&str], &str)| {
            let module = module(&[condition, body]);
            infer_in(&module, While { condition: C0, body: C1 }, &[state])
        };
        let (condition, body): ((&[&str], _), (&[&str], _)) =
            ((&[state], "pred[]"), (&[state], state));
        assert_eq!(of(condition, body), state);
        assert_eq!(of((&["s32[]"], "pred[]"), body), "while.C1");
        assert_eq!(of((&[], "pred[]"), body), "while.C1");
        assert_eq!(of((&[state], "s32[]"), body), "while.C2");
        assert_eq!(of(condition, (&[state, state], state)), "while.C3");
        assert_eq!(of(condition, (&[state], "(f32[3], s32[])")), "while.C4");
    }

    #[test]
    fn conditional() {
        let module = module(&[(&["f32[2]"], "s32[<=4]"), (&["s32[]"], "s32[4]"), (&[], "s32[]")]);
        let of = |branches: &[u32], operands: &[&str]| {
            let branches = branches.iter().map(|&id| CompId(id)).collect();
            infer_in(&module, Conditional { branches }, operands)
        };
        assert_eq!(of(&[0, 1], &["pred[]", "f32[2]", "s32[]"]), "s32[<=4]");
        assert_eq!(of(&[1, 1, 1], &["s32[]", "s32[]", "s32[]", "s32[]"]), "s32[4]");
        assert_eq!(of(&[1], &["s32[]", "s32[]"]), "s32[4]");
        assert_eq!(of(&[0, 1], &["u32[]", "f32[2]", "s32[]"]), "conditional.C1");
        assert_eq!(of(&[0, 1], &["pred[1]", "f32[2]", "s32[]"]), "conditional.C1");
        assert_eq!(of(&[0], &["pred[]", "f32[2]"]), "conditional.C2");
        assert_eq!(of(&[], &["s32[]", "f32[2]"]), "conditional.C2");
        assert_eq!(of(&[0, 1], &["s32[]", "f32[2]"]), "conditional.C3");
        assert_eq!(of(&[0], &["s32[]", "f32[3]"]), "conditional.C4");
        assert_eq!(of(&[2], &["s32[]", "f32[3]"]), "conditional.C4");
    }

    #[test]
    fn branches_must_agree() {
        let results = ["s32[4]", "s32[5]", "f32[4]", "(s32[4])", "token[]"];
        for other in &results[1..] {
            let module = module(&[(&["f32[]"], results[0]), (&["f32[]"], other)]);
            let op = Conditional { branches: vec![C0, C1] };
            assert_eq!(infer_in(&module, op, &["pred[]", "f32[]", "f32[]"]), "conditional.C5");
        }
    }

    #[test]
    fn order() {
        assert_eq!(infer(OptimizationBarrier, &["(f32[2], token[])"]), "(f32[2], token[])");
        assert_eq!(infer(AfterAll, &[]), "token[]");
        assert_eq!(infer(AfterAll, &["token[]", "token[]"]), "token[]");
        assert_eq!(infer(AfterAll, &["token[]", "f32[]"]), "after-all.C1");
        assert_eq!(infer(AddDependency, &["f32[2]", "token[]"]), "f32[2]");
        assert_eq!(infer(AddDependency, &["f32[2]", "f32[]"]), "add-dependency.C1");
    }
}
