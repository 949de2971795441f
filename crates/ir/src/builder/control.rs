//! The builder's methods for calls, loops, conditionals, tokens and asynchronous operations.

use super::scope::{ensure_balanced, ensure_word};
use super::{XlaBuilder, XlaComputation, XlaOp, check, refs};
use crate::ops::{
    AddDependency, AfterAll, AsyncDone, AsyncStart, AsyncUpdate, Call, Conditional, CopyDone,
    CopyStart, Domain, Fusion, Map, OptimizationBarrier, While,
};
use crate::{CompId, ElementType, Result, Shape};

impl XlaBuilder {
    /// Runs a computation on arguments.
    ///
    /// Shapes: the arguments' are the parameters', the result's the computation's. Errors: the
    /// rules of `call`. Source: E1–E4 "Call".
    ///
    /// ```
    /// # use helio_ir::{BinaryOp, ElementType::F32, builder::{XlaBuilder, XlaComputation}};
    /// let add = XlaComputation::scalar(BinaryOp::Add, F32)?;
    /// let b = XlaBuilder::new("b");
    /// let (x, y) = (b.constant_r0(1f32), b.constant_r0(2f32));
    /// b.call(&add, &[x, y]);
    /// assert_eq!(b.build()?.module().computations().len(), 2);
    /// # Ok::<(), helio_ir::Error>(())
    /// ```
    #[track_caller]
    pub fn call(&self, computation: &XlaComputation, args: &[impl AsRef<XlaOp>]) -> XlaOp {
        let to_apply = check!(self, self.import(computation));
        self.apply(Call { to_apply, is_composite: false }, &refs(args))
    }

    /// A call that stands for an operation with a name of its own, of which the computation is the
    /// meaning: a `call` marked as composite, with name, attributes and version as attributes of
    /// the front end. Without attributes these are `{}`.
    ///
    /// Errors: the rules of `call`. Source: E4 "CompositeCall" (version 0 by default there).
    #[track_caller]
    pub fn composite_call(
        &self,
        computation: &XlaComputation,
        args: &[impl AsRef<XlaOp>],
        name: &str,
        attributes: Option<&str>,
        version: u64,
    ) -> XlaOp {
        let to_apply = check!(self, self.import(computation));
        let call = self.apply(Call { to_apply, is_composite: true }, &refs(args));
        call.set_frontend_attribute("composite.name", name);
        call.set_frontend_attribute("composite.attributes", attributes.unwrap_or("{}"));
        call.set_frontend_attribute("composite.version", &version.to_string());
        call
    }

    /// Applies a computation of scalars to each element of arrays.
    ///
    /// Shapes: `N` arrays `T_i[D]`, where scalars repeat; the computation takes `T_i[]` and gives
    /// `S[]`; the result is `S[D]`. `dimensions` are all dimensions in order. Errors: the rules of
    /// `map`. Source: E3–E4 "Map"; for static operands and the form without dimensions (E1–E3) see
    /// [`XlaBuilder::map_with_static_operands`].
    #[track_caller]
    pub fn map(
        &self,
        operands: &[impl AsRef<XlaOp>],
        computation: &XlaComputation,
        dimensions: &[usize],
    ) -> XlaOp {
        let operands = refs(operands);
        let mut target = None;
        for operand in &operands {
            let shape = check!(self, self.shape(*operand).and_then(super::array));
            if !shape.is_scalar() {
                target.get_or_insert(shape);
            }
        }
        let mut repeated = Vec::with_capacity(operands.len());
        for operand in operands {
            repeated.push(match &target {
                Some(target) => operand.scalar_to(target),
                None => operand.clone(),
            });
        }
        let to_apply = check!(self, self.import(computation));
        let op = Map { dimensions: dimensions.to_vec(), to_apply };
        self.apply(op, &repeated.iter().collect::<Vec<_>>())
    }

    /// A computation that a compiler has put together, with XLA's word for its kind (`kLoop`).
    ///
    /// Errors: the rules of `fusion`, `builder.C8`. Source: the opcode `fusion`, which no edition
    /// documents.
    #[track_caller]
    pub fn fusion(
        &self,
        kind: &str,
        computation: &XlaComputation,
        operands: &[impl AsRef<XlaOp>],
    ) -> XlaOp {
        check!(self, ensure_word(kind));
        let calls = check!(self, self.import(computation));
        let op = Fusion { kind: kind.to_owned(), calls, output_to_operand_aliasing: None };
        self.apply(op, &refs(operands))
    }

    /// A token with nothing before it. Source: XLA's `CreateToken`.
    #[track_caller]
    pub fn create_token(&self) -> XlaOp {
        self.after_all(XlaOp::NONE)
    }

    /// A token that comes after all these tokens. Errors: the rules of `after-all`. Source: E4
    /// "AfterAll".
    #[track_caller]
    pub fn after_all(&self, tokens: &[impl AsRef<XlaOp>]) -> XlaOp {
        self.apply(AfterAll, &refs(tokens))
    }

    /// Begins a computation, on the thread that [`XlaBuilder::set_execution_thread`] gave it;
    /// [`XlaOp::async_done`] gives its result.
    ///
    /// Shapes: the result is `((operands…), result, u32[])`. Errors: the rules of `async-start`.
    /// Source: the opcode `async-start`, which no edition documents.
    #[track_caller]
    pub fn async_start(
        &self,
        computation: &XlaComputation,
        operands: &[impl AsRef<XlaOp>],
    ) -> XlaOp {
        let operands = refs(operands);
        let shapes: Result<_> = operands.iter().map(|operand| self.shape(*operand)).collect();
        let result = computation.program_shape().result.without_layout();
        let context = Shape::scalar(ElementType::U32);
        let shape = Shape::Tuple(vec![Shape::Tuple(check!(self, shapes)), result, context]);
        let execution_thread = check!(self, computation.execution_thread());
        let calls = check!(self, self.import(computation));
        let op = AsyncStart { calls, execution_thread, shape, output_to_operand_aliasing: None };
        self.apply(op, &operands)
    }

    fn import_all(&self, computations: &[impl AsRef<XlaComputation>]) -> Result<Vec<CompId>> {
        computations.iter().map(|computation| self.import(computation.as_ref())).collect()
    }
}

impl XlaOp {
    /// Runs `body` on a value as long as `condition` holds of it; this is the first value.
    ///
    /// Shapes: `self: T`, `condition: T -> pred[]`, `body: T -> T`, result `T`. Loops may nest
    /// (E4; not in E1–E3). Errors: the rules of `while`. Source: E1–E4 "While(condition, body,
    /// init)".
    ///
    /// ```
    /// # use helio_ir::{ElementType::S32, Shape, builder::XlaBuilder};
    /// let condition = XlaBuilder::new("condition");
    /// condition.parameter(0, Shape::scalar(S32), "i").lt(1000);
    /// let body = XlaBuilder::new("body");
    /// body.parameter(0, Shape::scalar(S32), "i").add(1);
    /// let b = XlaBuilder::new("b");
    /// b.constant_r0(0i32).while_loop(&condition.build()?, &body.build()?);
    /// assert_eq!(b.build()?.program_shape().to_string(), "()->s32[]");
    /// # Ok::<(), helio_ir::Error>(())
    /// ```
    #[track_caller]
    pub fn while_loop(&self, condition: &XlaComputation, body: &XlaComputation) -> XlaOp {
        let imported = self.builder.import_all(&[condition, body]);
        let imported = check!(self.builder, imported);
        self.builder.apply(While { condition: imported[0], body: imported[1] }, &[self])
    }

    /// Runs one of two computations, the first if this is true, each on its operand.
    ///
    /// Shapes: `self: pred[]`, `on_true: T_0`, `true_computation: T_0 -> S`, `on_false: T_1`,
    /// `false_computation: T_1 -> S`, result `S`. Errors: the rules of `conditional`. Source: E3–E4
    /// "Conditional(pred, …)".
    #[track_caller]
    pub fn conditional(
        &self,
        on_true: impl AsRef<XlaOp>,
        true_computation: &XlaComputation,
        on_false: impl AsRef<XlaOp>,
        false_computation: &XlaComputation,
    ) -> XlaOp {
        let branches = self.builder.import_all(&[true_computation, false_computation]);
        let branches = check!(self.builder, branches);
        let operands = [self, on_true.as_ref(), on_false.as_ref()];
        self.builder.apply(Conditional { branches }, &operands)
    }

    /// Runs the computation of this number on its operand; the last one if there is no such number.
    ///
    /// Shapes: `self: s32[]`, operand `i: T_i`, computation `i: T_i -> S`, result `S`. Errors: the
    /// rules of `conditional`. Source: E4 "Conditional(branch_index, branch_computations,
    /// branch_operands)".
    #[track_caller]
    pub fn conditional_indexed(
        &self,
        branch_computations: &[impl AsRef<XlaComputation>],
        branch_operands: &[impl AsRef<XlaOp>],
    ) -> XlaOp {
        let branches = check!(self.builder, self.builder.import_all(branch_computations));
        let mut operands = vec![self];
        operands.extend(refs(branch_operands));
        self.builder.apply(Conditional { branches }, &operands)
    }

    /// The value itself, across which no optimisation moves anything. Source: E4
    /// "OptimizationBarrier".
    #[track_caller]
    pub fn optimization_barrier(&self) -> XlaOp {
        self.builder.apply(OptimizationBarrier, &[self])
    }

    /// The value itself, after a token. Errors: the rules of `add-dependency`. Source: that opcode,
    /// which no edition documents.
    #[track_caller]
    pub fn add_dependency(&self, token: impl AsRef<XlaOp>) -> XlaOp {
        self.builder.apply(AddDependency, &[self, token.as_ref()])
    }

    /// The value itself, at the border of two domains, given as HLO text has them
    /// (`{kind="sharding", entry={…}, exit={…}}`). Errors: `builder.C8`. Source: the opcode
    /// `domain`, which no edition documents.
    #[track_caller]
    pub fn domain(&self, domain: &str) -> XlaOp {
        check!(self.builder, ensure_balanced(domain));
        self.builder.apply(Domain { domain: domain.to_owned() }, &[self])
    }

    /// Lets a computation that was begun go on. Errors: the rules of `async-update`. Source: that
    /// opcode, which no edition documents.
    #[track_caller]
    pub fn async_update(&self) -> XlaOp {
        self.builder.apply(AsyncUpdate, &[self])
    }

    /// The result of a computation that was begun. Errors: the rules of `async-done`. Source: that
    /// opcode, which no edition documents.
    #[track_caller]
    pub fn async_done(&self) -> XlaOp {
        self.builder.apply(AsyncDone, &[self])
    }

    /// Begins a copy: `(destination, source, u32[])`. Errors: the rules of `copy-start`. Source:
    /// that opcode, which no edition documents.
    #[track_caller]
    pub fn copy_start(&self) -> XlaOp {
        self.builder.apply(CopyStart::default(), &[self])
    }

    /// The result of a copy that was begun. Errors: the rules of `copy-done`. Source: that opcode,
    /// which no edition documents.
    #[track_caller]
    pub fn copy_done(&self) -> XlaOp {
        self.builder.apply(CopyDone, &[self])
    }
}
