//! `infeed` and `outfeed`: values that the host queues for the program, and the other way round.

use super::Arity;
use super::check::tuple_of;
use crate::text::attrs::{AttrReader, AttrWriter};
use crate::text::parse_shape;
use crate::{Error, InferCx, OpDef, Result, Shape, ensure};

/// Reads a value from the host; the operand is a token, the result (value, token).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Infeed {
    /// The shape of the value.
    pub shape: Shape,
    /// The text of `infeed_config`, as written; without effect on the value.
    pub config: Option<String>,
}

impl Infeed {
    /// An infeed of a value of this shape, without configuration.
    pub fn new(shape: Shape) -> Self {
        Infeed { shape, config: None }
    }
}

impl OpDef for Infeed {
    const OPCODE: &'static str = "infeed";
    const ARITY: Arity = Arity::Exactly(1);
    const NEEDS_SHAPE: bool = true;

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        cx.ensure_token("infeed.C1", 0)?;
        let elements = self.shape.as_tuple().unwrap_or_default();
        ensure!(
            elements.iter().all(|element| element.as_tuple().is_none()),
            "infeed.C2",
            "the value must not be a tuple of tuples, is {}",
            self.shape
        );
        tuple_of(&[&self.shape, &Shape::Token])
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        let config = attrs.take("infeed_config").map(str::to_owned);
        Ok(Infeed { shape: attrs.result_element()?, config })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        if let Some(config) = &self.config {
            attrs.put("infeed_config", config);
        }
    }
}

/// Writes operand 0 to the host once operand 1, a token, is there; the result is a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outfeed {
    /// The shape of the value as the host sees it: the operand's, perhaps in another layout.
    pub shape: Shape,
    /// The text of `outfeed_config`, as written; without effect on the value.
    pub config: Option<String>,
}

impl Outfeed {
    /// An outfeed of a value of this shape, without configuration.
    pub fn new(shape: Shape) -> Self {
        Outfeed { shape, config: None }
    }
}

impl OpDef for Outfeed {
    const OPCODE: &'static str = "outfeed";
    const ARITY: Arity = Arity::Exactly(2);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        cx.ensure_token("outfeed.C1", 1)?;
        let operand = cx.operand(0)?;
        ensure!(
            operand.same(&self.shape),
            "outfeed.C2",
            "outfeed_shape must be that of the operand, {operand}; is {}",
            self.shape
        );
        Ok(Shape::Token)
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        let config = attrs.take("outfeed_config").map(str::to_owned);
        let shape = attrs.parse("outfeed_shape", |scan| {
            // The error is located at the whole attribute: a place inside of its value counts from
            // there.
            parse_shape(scan.take_rest()).map_err(|e| Error::new(e.code(), e.detail()))
        })?;
        let shape = match shape {
            Some(shape) => shape,
            None => attrs.operands.first().map_or(Shape::Opaque, |&operand| operand.clone()),
        };
        Ok(Outfeed { shape, config })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        attrs.put("outfeed_shape", &self.shape);
        if let Some(config) = &self.config {
            attrs.put("outfeed_config", config);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{infer, shape};

    #[test]
    fn host() {
        let infeed = |text, operand| infer(Infeed::new(shape(text)), &[operand]);
        let outfeed = |text, operands: &[&str]| infer(Outfeed::new(shape(text)), operands);
        assert_eq!(infeed("(f32[2], s32[])", "token[]"), "((f32[2], s32[]), token[])");
        assert_eq!(infeed("()", "token[]"), "((), token[])");
        assert_eq!(infeed("f32[2]", "f32[2]"), "infeed.C1");
        assert_eq!(infeed("((f32[2]))", "token[]"), "infeed.C2");
        assert_eq!(outfeed("f32[2]", &["f32[2]", "token[]"]), "token[]");
        assert_eq!(outfeed("f32[2]", &["f32[2]", "f32[2]"]), "outfeed.C1");
        assert_eq!(outfeed("f32[3]", &["f32[2]", "token[]"]), "outfeed.C2");
    }
}
