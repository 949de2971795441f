//! `tuple` and `get-tuple-element`.

use super::Arity;
use super::check::tuple_of;
use crate::text::attrs::{AttrReader, AttrWriter};
use crate::{Error, InferCx, OpDef, Result, Shape, ensure};

/// A tuple of the operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuple;

impl OpDef for Tuple {
    const OPCODE: &'static str = "tuple";
    const ARITY: Arity = Arity::AtLeast(0);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        tuple_of(cx.operands)
    }

    fn read(_: &mut AttrReader<'_>) -> Result<Self> {
        Ok(Tuple)
    }
}

/// An element of a tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GetTupleElement {
    /// Which element, from 0.
    pub index: usize,
}

impl OpDef for GetTupleElement {
    const OPCODE: &'static str = "get-tuple-element";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let operand = cx.operand(0)?;
        let elements = operand.as_tuple().ok_or_else(|| {
            let detail = format!("the operand must be a tuple, is {operand}");
            Error::rule("get-tuple-element.C1", detail)
        })?;
        let (index, count) = (self.index, elements.len());
        ensure!(index < count, "get-tuple-element.C2", "index={index} of a tuple of {count}");
        Ok(elements[index].without_layout())
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        Ok(GetTupleElement { index: attrs.needed("index", AttrReader::size)? })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        attrs.put("index", self.index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{infer, shape};
    use crate::{InferCx, Module};

    #[test]
    fn tuples() {
        assert_eq!(infer(Tuple, &[]), "()");
        assert_eq!(infer(Tuple, &["f32[2]", "(s32[], token[])"]), "(f32[2], (s32[], token[]))");
        let get = |index, operand| infer(GetTupleElement { index }, &[operand]);
        assert_eq!(get(1, "(f32[2], (s32[]))"), "(s32[])");
        assert_eq!(get(0, "f32[2]"), "get-tuple-element.C1");
        assert_eq!(get(2, "(f32[2], s32[])"), "get-tuple-element.C2");
        assert_eq!(get(0, "()"), "get-tuple-element.C2");
    }

    #[test]
    fn tuples_of_themselves_end_with_an_error() {
        let module = Module::new("test");
        for copies in [1, 2, 1000] {
            let mut value = shape("f32[]");
            let error = loop {
                let operands = vec![&value; copies];
                match Tuple.infer(&InferCx { operands: &operands, module: &module }) {
                    Ok(larger) => value = larger,
                    Err(e) => break e,
                }
            };
            assert_eq!(error.code(), crate::Code::ResourceExhausted, "{copies}: {error}");
        }
    }
}
