//! `compare`: two arrays compared element by element.

use super::Arity;
use super::check::{ensure_same_element, merge_arrays};
use crate::text::attrs::{AttrReader, AttrWriter};
use crate::{ArrayShape, ElementType, Error, InferCx, OpDef, Result, Shape, ensure};

/// Element-wise comparison; the result is `pred`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compare {
    /// Which comparison.
    pub direction: Direction,
    /// IEEE comparison, or the total order of all floats.
    pub order: Order,
}

impl Compare {
    /// An IEEE comparison of floats, or one by value of anything else.
    pub fn new(direction: Direction) -> Self {
        Compare { direction, order: Order::Default }
    }
}

impl OpDef for Compare {
    const OPCODE: &'static str = "compare";
    const ARITY: Arity = Arity::Exactly(2);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let operands = cx.arrays("compare.C1")?;
        ensure_same_element("compare.C2", &operands)?;
        let merged = merge_arrays("compare.C3", &operands)?;
        let element = merged.element();
        ensure!(
            !element.is_complex() || matches!(self.direction, Direction::Eq | Direction::Ne),
            "compare.C4",
            "direction={} of {element}; complex numbers have only EQ and NE",
            self.direction
        );
        ensure!(
            self.order == Order::Default || element.is_float(),
            "compare.C5",
            "type={TOTAL} of {element}; only floats have a total order of their own"
        );
        merged.with_element(ElementType::Pred).map(Shape::Array)
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        let direction = attrs.parse("direction", |scan| Direction::from_word(scan.word()?))?;
        let direction = attrs.require("direction", direction)?;
        let operand = attrs.operands.first().and_then(|shape| shape.as_array());
        let element = operand.map(ArrayShape::element);
        let order = attrs.parse("type", |scan| read_order(scan.word()?, element))?;
        Ok(Compare { direction, order: order.unwrap_or_default() })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        attrs.put("direction", self.direction);
        if self.order == Order::Total {
            attrs.put("type", TOTAL);
        }
    }
}

crate::ops::words! {
    /// A comparison.
    Direction {
        /// Equal.
        Eq = "EQ",
        /// Not equal.
        Ne = "NE",
        /// Greater or equal.
        Ge = "GE",
        /// Greater.
        Gt = "GT",
        /// Less or equal.
        Le = "LE",
        /// Less.
        Lt = "LT",
    }
}

/// How floats are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// IEEE comparison of floats: NaN is unequal to everything, -0 equals +0. Of integers, by value.
    #[default]
    Default,
    /// -NaN < -Inf < finite < -0 < +0 < finite < +Inf < +NaN.
    Total,
}

/// The word of [`Order::Total`] for the attribute `type`. The other words (`FLOAT`, `SIGNED`,
/// `UNSIGNED`) only repeat what the operand type says: they are checked and not kept.
const TOTAL: &str = "TOTALORDER";

fn read_order(word: &str, element: Option<ElementType>) -> Result<Order> {
    let (order, fits): (_, fn(ElementType) -> bool) = match word {
        TOTAL => (Order::Total, ElementType::is_float),
        "FLOAT" => (Order::Default, |ty| ty.is_float() || ty.is_complex()),
        "SIGNED" => (Order::Default, ElementType::is_signed_integer),
        "UNSIGNED" => (Order::Default, |ty| ty.is_unsigned_integer() || ty.is_pred()),
        _ => {
            let detail = format!("`{word}` is none of FLOAT, {TOTAL}, SIGNED, UNSIGNED");
            return Err(Error::invalid(detail));
        }
    };
    if let Some(element) = element {
        ensure!(fits(element), "compare.C5", "type={word} does not fit operands of {element}");
    }
    Ok(order)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::infer;

    #[test]
    fn compare() {
        let is = |direction, operands: &[&str]| infer(Compare::new(direction), operands);
        let total = |element: &str| {
            infer(Compare { direction: Direction::Lt, order: Order::Total }, &[element; 2])
        };
        assert_eq!(is(Direction::Lt, &["f32[2,<=3]", "f32[2,3]"]), "pred[2,<=3]");
        assert_eq!(is(Direction::Ne, &["c64[2]", "c64[2]"]), "pred[2]");
        assert_eq!(total("bf16[2]"), "pred[2]");
        assert_eq!(is(Direction::Lt, &["f32[2]", "()"]), "compare.C1");
        assert_eq!(is(Direction::Lt, &["f32[2]", "s32[2]"]), "compare.C2");
        assert_eq!(is(Direction::Lt, &["f32[2]", "f32[3]"]), "compare.C3");
        assert_eq!(is(Direction::Lt, &["c64[2]", "c64[2]"]), "compare.C4");
        assert_eq!(total("s32[2]"), "compare.C5");
    }
}
