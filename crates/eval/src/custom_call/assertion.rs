//! `helio.assert`: what the compiler could not prove of sizes, checked in a run.

use helio_ir::{
    Array, BackendConfig, Computation, ElementType, Error, InstrId, Literal, Op, Result, Shape,
};

/// The target of a custom call with operands `(is_met: pred[], value: s32[], found: s32[]...)`, which gives
/// `value` if `is_met` is true. Otherwise the run ends with an error, whose message is the call's
/// `backend_config`; in it `{0}`, `{1}` and so on stand for what was found.
pub const ASSERT: &str = "helio.assert";

/// A call of [`ASSERT`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assertion {
    message: String,
}

impl Assertion {
    /// The assertion that an instruction is.
    pub fn of(computation: &Computation, id: InstrId) -> Option<Self> {
        let instr = computation.instr(id);
        let Op::CustomCall(op) = &instr.op else { return None };
        let is_scalar = |shape: &Shape, element: ElementType| *shape == Shape::scalar(element);
        let shapes: Vec<&Shape> =
            instr.operands.iter().map(|&operand| &computation.instr(operand).shape).collect();
        let (is_met, others) = shapes.split_first()?;
        let fits = op.target == ASSERT
            && is_scalar(is_met, ElementType::Pred)
            && !others.is_empty()
            && others.iter().chain([&&instr.shape]).all(|shape| is_scalar(shape, ElementType::S32));
        let config = instr.extra.as_ref().and_then(|extra| extra.backend_config.as_ref());
        let message = || config.map_or("", BackendConfig::as_str).to_owned();
        fits.then(|| Assertion { message: message() })
    }

    /// The value that is asserted something of. Errors: `InvalidArgument` if it is not met; `Internal`
    /// if the operands are not those of an assertion.
    pub fn check<'b>(&self, operands: &[&'b [u8]]) -> Result<&'b [u8]> {
        let [is_met, value, found @ ..] = operands else {
            return Err(Error::internal("an assertion of nothing"));
        };
        if is_met.first().is_some_and(|&byte| byte != 0) {
            return Ok(value);
        }
        let mut message = self.message.clone();
        for (i, bytes) in found.iter().enumerate() {
            let found = <[u8; 4]>::try_from(*bytes).map(i32::from_ne_bytes);
            let found = found.map_err(|_| Error::internal("what an assertion found is no s32"))?;
            message = message.replace(&format!("{{{i}}}"), &found.to_string());
        }
        Err(Error::invalid(message))
    }
}

/// An assertion by the interpreter. Errors: as for [`Assertion::check`]; the operands are none that the
/// target takes.
pub(super) fn assert(computation: &Computation, id: InstrId, args: &[Literal]) -> Result<Literal> {
    let assertion = Assertion::of(computation, id).ok_or_else(|| {
        Error::invalid(format!("custom call `{ASSERT}` of other operands than (pred[], s32[]...)"))
    })?;
    let bytes = args.iter().map(|arg| arg.as_array().map(Array::to_bytes).unwrap_or_default());
    let bytes: Vec<_> = bytes.collect();
    let operands: Vec<&[u8]> = bytes.iter().map(|bytes| &**bytes).collect();
    assertion.check(&operands)?;
    args.get(1).cloned().ok_or_else(|| Error::internal("an assertion of nothing"))
}
