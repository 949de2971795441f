//! `compare`.

use super::Arity;
use crate::{Error, InferCx, OpDef, Result, Shape};

/// Element-wise comparison; the result is `pred`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compare {
    /// Which comparison.
    pub direction: Direction,
    /// IEEE comparison, or the total order of all floats.
    pub order: Order,
}

impl OpDef for Compare {
    const OPCODE: &'static str = "compare";
    const ARITY: Arity = Arity::Exactly(2);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer compare"))
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
