//! Asynchronous operations, a pair of instructions each: one begins the work (`all-reduce-start`,
//! `copy-start`, `async-start`, …), one waits for its result (`…-done`).

use super::Arity;
use super::check::tuple_of;
use super::collective::{AllGather, AllReduce, CollectivePermute};
use crate::text::attrs::{AttrReader, AttrWriter, quote};
use crate::{CompId, Computation, ElementType, Error, InferCx, OpDef, Result, Shape, ensure};

/// The shapes of what an operation began with and of its result, which are the first two elements
/// of operand 0. Errors: `rule`, unless it is such a tuple.
fn begun<'a>(cx: &InferCx<'a>, rule: &'static str) -> Result<(&'a Shape, &'a Shape)> {
    let shape = cx.operand(0)?;
    match shape.as_tuple() {
        Some([operands, result, ..]) => Ok((operands, result)),
        _ => Err(Error::rule(
            rule,
            format!("the operand must be a tuple (operands, result, …), is {shape}"),
        )),
    }
}

/// The operands' shapes: that of the only one, or a tuple.
fn operands(cx: &InferCx<'_>) -> Shape {
    match cx.operands {
        [only] => only.without_layout(),
        several => Shape::Tuple(several.iter().map(|shape| shape.without_layout()).collect()),
    }
}

/// Begins an all-reduce; the result stands for the operands until it is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllReduceStart {
    /// What is begun.
    pub op: AllReduce,
}

impl OpDef for AllReduceStart {
    const OPCODE: &'static str = "all-reduce-start";
    const ARITY: Arity = Arity::AtLeast(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        self.op.infer(cx)
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        Ok(AllReduceStart { op: AllReduce::read(attrs)? })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        self.op.write(attrs);
    }

    fn callees(&self) -> Vec<CompId> {
        self.op.callees()
    }

    fn callees_mut(&mut self) -> Vec<&mut CompId> {
        self.op.callees_mut()
    }
}

/// The result of an all-reduce that was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllReduceDone;

impl OpDef for AllReduceDone {
    const OPCODE: &'static str = "all-reduce-done";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        Ok(cx.operand(0)?.without_layout())
    }

    fn read(_: &mut AttrReader<'_>) -> Result<Self> {
        Ok(AllReduceDone)
    }
}

/// Begins an all-gather; the result is (operands, results).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllGatherStart {
    /// What is begun.
    pub op: AllGather,
}

impl OpDef for AllGatherStart {
    const OPCODE: &'static str = "all-gather-start";
    const ARITY: Arity = Arity::AtLeast(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let result = self.op.infer(cx)?;
        Ok(Shape::Tuple(vec![operands(cx), result]))
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        let result = attrs.result.as_tuple().and_then(|elements| elements.get(1));
        Ok(AllGatherStart { op: AllGather::read_with(attrs, result)? })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        self.op.write(attrs);
    }
}

/// The result of an all-gather that was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllGatherDone;

impl OpDef for AllGatherDone {
    const OPCODE: &'static str = "all-gather-done";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        Ok(begun(cx, "all-gather-done.C1")?.1.without_layout())
    }

    fn read(_: &mut AttrReader<'_>) -> Result<Self> {
        Ok(AllGatherDone)
    }
}

/// Begins a collective-permute; the result is (operand, result) and maybe contexts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectivePermuteStart {
    /// What is begun.
    pub op: CollectivePermute,
    /// The shapes of the contexts, which some back ends add; without effect on the value.
    pub contexts: Vec<Shape>,
}

impl OpDef for CollectivePermuteStart {
    const OPCODE: &'static str = "collective-permute-start";
    const ARITY: Arity = Arity::AtLeast(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let result = self.op.infer(cx)?;
        let contexts = self.contexts.iter().map(Shape::without_layout);
        Ok(Shape::Tuple([operands(cx), result].into_iter().chain(contexts).collect()))
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        let contexts = attrs.result.as_tuple().and_then(|elements| elements.get(2..));
        let contexts = contexts.unwrap_or_default().iter().map(Shape::without_layout).collect();
        Ok(CollectivePermuteStart { op: CollectivePermute::read(attrs)?, contexts })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        self.op.write(attrs);
    }
}

/// The result of a collective-permute that was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectivePermuteDone;

impl OpDef for CollectivePermuteDone {
    const OPCODE: &'static str = "collective-permute-done";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        Ok(begun(cx, "collective-permute-done.C1")?.1.without_layout())
    }

    fn read(_: &mut AttrReader<'_>) -> Result<Self> {
        Ok(CollectivePermuteDone)
    }
}

/// Begins a copy; the result is (destination, source, context).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyStart {
    /// Kept for the back ends that prefetch across programs; without effect on the value.
    pub cross_program_prefetch_index: Option<i64>,
}

impl OpDef for CopyStart {
    const OPCODE: &'static str = "copy-start";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let source = cx.operand(0)?;
        // A chain of these doubles the shape at each step.
        tuple_of(&[source, source, &Shape::scalar(ElementType::U32)])
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        let index = attrs.int("cross_program_prefetch_index")?;
        Ok(CopyStart { cross_program_prefetch_index: index })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        if let Some(index) = self.cross_program_prefetch_index {
            attrs.put("cross_program_prefetch_index", index);
        }
    }
}

/// The result of a copy that was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyDone;

impl OpDef for CopyDone {
    const OPCODE: &'static str = "copy-done";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let (destination, source) = begun(cx, "copy-done.C1")?;
        ensure!(
            destination.same(source),
            "copy-done.C2",
            "the operand must begin with destination and source of one shape, has {destination} \
             and {source}"
        );
        Ok(destination.without_layout())
    }

    fn read(_: &mut AttrReader<'_>) -> Result<Self> {
        Ok(CopyDone)
    }
}

/// The thread on which a computation runs unless it says otherwise.
const MAIN_THREAD: &str = "main";

/// The thread on which a computation is to run, quoted.
fn thread_of(computation: &Computation) -> String {
    let mut attributes = computation.attributes.iter();
    let stated = attributes.find(|(name, _)| name == "execution_thread");
    stated.map_or_else(|| quote(MAIN_THREAD), |(_, value)| value.clone())
}

/// Begins a computation; the result is ((operands), result, context).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsyncStart {
    /// The computation.
    pub calls: CompId,
    /// The thread that it runs on; `None` is `main`.
    pub execution_thread: Option<String>,
    /// The shape of the result, ((operands), result, context).
    pub shape: Shape,
    /// Which outputs share the buffers of operands, as written; without effect on the value.
    pub output_to_operand_aliasing: Option<String>,
}

impl OpDef for AsyncStart {
    const OPCODE: &'static str = "async-start";
    const ARITY: Arity = Arity::AtLeast(0);
    const NEEDS_SHAPE: bool = true;

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let callee = cx.callee(self.calls);
        let program = callee.program_shape();
        let (params, result) = match self.shape.as_tuple() {
            Some([Shape::Tuple(params), result, ..]) => (params, result),
            _ => {
                let found = &self.shape;
                return Err(Error::rule(
                    "async-start.C1",
                    format!("the result must be ((operands), result, …), is {found}"),
                ));
            }
        };
        ensure!(
            params.len() == cx.operands.len()
                && params.iter().zip(cx.operands).all(|(param, operand)| param.same(operand)),
            "async-start.C2",
            "the result must begin with the operands' shapes, {}; is {}",
            Shape::Tuple(cx.operands.iter().map(|&shape| shape.clone()).collect()),
            self.shape
        );
        ensure!(
            params.len() == program.params.len()
                && params.iter().zip(&program.params).all(|(a, b)| a.same(b)),
            "async-start.C3",
            "{} must take the operands, {}; takes {}",
            callee.name,
            Shape::Tuple(params.clone()),
            Shape::Tuple(program.params)
        );
        ensure!(
            result.same(&program.result),
            "async-start.C4",
            "{} must give element 1 of the result, {result}; gives {}",
            callee.name,
            program.result
        );
        let thread = quote(self.execution_thread.as_deref().unwrap_or(MAIN_THREAD));
        ensure!(
            thread == thread_of(callee),
            "async-start.C5",
            "async_execution_thread={thread} must be the execution_thread of {}, {}",
            callee.name,
            thread_of(callee)
        );
        // Whoever chains these has a shape of more than twice the size at each step.
        tuple_of(&self.shape.as_tuple().unwrap_or_default().iter().collect::<Vec<_>>())
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        let thread = attrs.string("async_execution_thread")?;
        Ok(AsyncStart {
            calls: attrs.needed("calls", AttrReader::computation)?,
            execution_thread: thread.filter(|thread| thread != MAIN_THREAD),
            shape: attrs.result.without_layout(),
            output_to_operand_aliasing: attrs
                .take("output_to_operand_aliasing")
                .map(|text| text.trim().to_owned()),
        })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        if let Some(thread) = &self.execution_thread {
            attrs.string("async_execution_thread", thread);
        }
        if let Some(aliasing) = &self.output_to_operand_aliasing {
            attrs.put("output_to_operand_aliasing", aliasing);
        }
        attrs.computation("calls", self.calls);
    }

    calls!(calls);
}

/// Reads attributes that older versions of XLA repeated from `async-start`, where they count.
fn read_repeated(attrs: &mut AttrReader<'_>) -> Result<()> {
    attrs.computation("calls")?;
    attrs.string("async_execution_thread")?;
    Ok(())
}

/// The result of the operation begun, from the shape of `async-start` or `async-update`.
fn async_result<'a>(cx: &InferCx<'a>, rule: &'static str) -> Result<&'a Shape> {
    let (operands, result) = begun(cx, rule)?;
    ensure!(
        operands.as_tuple().is_some(),
        rule,
        "the operand must begin with a tuple of operands, is {}",
        cx.operand(0)?
    );
    Ok(result)
}

/// Lets a computation that was begun go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsyncUpdate;

impl OpDef for AsyncUpdate {
    const OPCODE: &'static str = "async-update";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        async_result(cx, "async-update.C1")?;
        Ok(cx.operand(0)?.without_layout())
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        read_repeated(attrs).map(|()| AsyncUpdate)
    }
}

/// The result of a computation that was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsyncDone;

impl OpDef for AsyncDone {
    const OPCODE: &'static str = "async-done";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        Ok(async_result(cx, "async-done.C1")?.without_layout())
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        read_repeated(attrs).map(|()| AsyncDone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::shared::CollectiveAttrs;
    use crate::ops::testing::{C0, infer, infer_in, module, shape};
    use crate::{Code, Module};

    #[test]
    fn beginnings_and_ends() {
        let f32s = module(&[(&["f32[]", "f32[]"], "f32[]")]);
        let attrs = CollectiveAttrs::default();
        let op = AllReduce { attrs: attrs.clone(), to_apply: C0 };
        assert_eq!(infer_in(&f32s, AllReduceStart { op }, &["f32[4]"]), "f32[4]");
        assert_eq!(infer(AllReduceDone, &["(f32[4], f32[5])"]), "(f32[4], f32[5])");
        let op = AllGather { attrs, dimension: 0, shard_count: 2 };
        let start = AllGatherStart { op };
        assert_eq!(infer(start.clone(), &["f32[4]"]), "(f32[4], f32[8])");
        assert_eq!(infer(start, &["f32[4]", "s8[1]"]), "((f32[4], s8[1]), (f32[8], s8[2]))");
        assert_eq!(infer(AllGatherDone, &["(f32[4], f32[8])"]), "f32[8]");
        assert_eq!(infer(AllGatherDone, &["(f32[4])"]), "all-gather-done.C1");
        let op = CollectivePermute { pairs: vec![(0, 1)], channel_id: None };
        let start = CollectivePermuteStart { op, contexts: vec![shape("u32[]")] };
        assert_eq!(infer(start, &["f32[4]"]), "(f32[4], f32[4], u32[])");
        let context = "(f32[4], f32[5], u32[])";
        assert_eq!(infer(CollectivePermuteDone, &[context]), "f32[5]");
        assert_eq!(infer(CopyStart::default(), &["f32[4]"]), "(f32[4], f32[4], u32[])");
        assert_eq!(infer(CopyDone, &[context]), "copy-done.C2");
    }

    #[test]
    fn copies_of_copies_end_with_an_error() {
        let module = Module::new("test");
        let mut value = shape("f32[]");
        let error = loop {
            match CopyStart::default().infer(&InferCx { operands: &[&value], module: &module }) {
                Ok(larger) => value = larger,
                Err(error) => break error,
            }
        };
        assert_eq!(error.code(), Code::ResourceExhausted);
    }

    #[test]
    fn computations() {
        let module = module(&[(&["f32[4]", "s8[2]"], "f32[3]")]);
        let start = |text: &str| AsyncStart {
            calls: C0,
            execution_thread: None,
            shape: shape(text),
            output_to_operand_aliasing: None,
        };
        let begun = "((f32[4], s8[2]), f32[3], u32[])";
        let operands = ["f32[4]", "s8[2]"];
        assert_eq!(infer_in(&module, start(begun), &operands), begun);
        assert_eq!(infer_in(&module, start(begun), &["f32[4]"]), "async-start.C2");
        let elsewhere = AsyncStart { execution_thread: Some("io".to_owned()), ..start(begun) };
        assert_eq!(infer_in(&module, elsewhere, &operands), "async-start.C5");
        assert_eq!(infer(AsyncUpdate, &[begun]), begun);
        assert_eq!(infer(AsyncDone, &[begun]), "f32[3]");
        // The parser refuses these, so that there is no program for them.
        assert_eq!(infer(AsyncUpdate, &["(f32[4], f32[4])"]), "async-update.C1");
        assert_eq!(infer(AsyncDone, &["f32[4]"]), "async-done.C1");
    }
}
