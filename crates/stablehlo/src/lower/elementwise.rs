//! Element-wise operations of StableHLO and CHLO lowered to HLO's.

use std::collections::HashMap;

use helio_ir::ops::{BitcastConvert, Direction, ReducePrecision};
use helio_ir::types::Number;
use helio_ir::{
    Array, ArrayShape, BinaryOp, CompId, DimKind, ElementType, Error, InstrId, Literal, Native, Op,
    Result, UnaryOp, dispatch_type,
};

use super::body::Body;
use super::operation::Site;

/// The operations without attributes, by StableHLO's or CHLO's name.
pub(super) fn table() -> HashMap<&'static str, Op> {
    let unary = UnaryOp::ALL.iter().map(|&op| (op.stablehlo_names(), Op::Unary(op)));
    let binary = BinaryOp::ALL.iter().map(|&op| (op.stablehlo_names(), Op::Binary(op)));
    let rows = unary.chain(binary);
    rows.flat_map(|(names, op)| names.iter().map(move |&name| (name, op.clone()))).collect()
}

impl<'m> Body<'_, 'm> {
    pub(super) fn elementwise(&mut self, name: &str, site: &Site<'_, 'm>) -> Result<InstrId> {
        match name {
            "select" => {
                let [pred, yes, no] = site.operands()?;
                let (from, to) = (self.array(pred)?, self.array(yes)?);
                let is_one = from.is_scalar() && !to.is_scalar();
                let pred = if is_one { self.fill(pred, yes)? } else { pred };
                self.select(pred, yes, no)
            }
            "convert" => {
                let [x] = site.operands()?;
                let to = site.result_element()?;
                // (Of what becomes a truth value, too: HLO counts either part.)
                let is_part = self.element(x)?.is_complex() && !to.is_complex();
                let x = if is_part { self.unary(UnaryOp::Real, x)? } else { x };
                self.convert(x, to)
            }
            "bitcast_convert" => self.bitcast_convert(site),
            "reduce_precision" => self.reduce_precision(site),
            // HLO has a cubic root of real numbers alone.
            _ => {
                let [x] = site.operands()?;
                let exponent = self.like(x, 1.0 / 3.0)?;
                self.binary(BinaryOp::Power, x, exponent)
            }
        }
    }

    fn reduce_precision(&mut self, site: &Site<'_, 'm>) -> Result<InstrId> {
        let [x] = site.operands()?;
        let bits = |name| Ok::<_, Error>(site.attrs.size(name)?.min(u32::MAX as usize));
        let op = ReducePrecision {
            exponent_bits: bits("exponent_bits")? as u32,
            mantissa_bits: bits("mantissa_bits")? as u32,
        };
        let result = self.push(op, &[x])?;
        if op.mantissa_bits > 0 {
            return Ok(result);
        }
        // Without a mantissa there is no NaN: it becomes the infinity of its sign.
        let element = self.element(x)?;
        let word = self.bitcast(x, unsigned(element.bits())?)?;
        let scalar = self.integer(self.element(word)?, 1i128 << (element.bits() - 1))?;
        let sign_bit = self.fill(scalar, word)?;
        let is_negative = self.compare(Direction::Ge, word, sign_bit)?;
        let (up, down) = (self.like(x, f64::INFINITY)?, self.like(x, f64::NEG_INFINITY)?);
        let infinity = self.select(is_negative, down, up)?;
        let is_nan = self.compare(Direction::Ne, x, x)?;
        self.select(is_nan, infinity, result)
    }

    fn bitcast_convert(&mut self, site: &Site<'_, 'm>) -> Result<InstrId> {
        let [x] = site.operands()?;
        let (from, to) = (self.element(x)?, site.result_element()?);
        match (from.is_pred(), to.is_pred()) {
            (true, true) => Ok(x),
            (true, false) => self.bits_to_number(x, to),
            (false, true) => self.number_to_bits(x),
            _ if from == to => Ok(x),
            _ => self.push(BitcastConvert { element: to }, &[x]),
        }
    }

    /// Truth values along the last dimension, least significant first, as the bits of numbers.
    fn bits_to_number(&mut self, x: InstrId, to: ElementType) -> Result<InstrId> {
        let shape = self.array(x)?;
        let bits = unsigned(to.bits())?;
        let last = shape.rank().checked_sub(1);
        let last = last.filter(|&d| shape.dim(d) == (to.bits(), DimKind::Static));
        let last = last.ok_or_else(|| {
            Error::invalid(format!("{} truth values make one {to}; found {shape}", to.bits()))
        })?;
        let ones = self.convert(x, bits)?;
        let amounts = self.iota(shape.with_element(bits)?, last)?;
        let placed = self.binary(BinaryOp::ShiftLeft, ones, amounts)?;
        let packed = self.fold(BinaryOp::Or, placed, vec![last], 0.0)?;
        if bits == to {
            return Ok(packed);
        }
        self.push(BitcastConvert { element: to }, &[packed])
    }

    fn number_to_bits(&mut self, x: InstrId) -> Result<InstrId> {
        let shape = self.array(x)?;
        let bits = unsigned(shape.element().bits())?;
        let mut x = x;
        if bits != shape.element() {
            x = self.push(BitcastConvert { element: bits }, &[x])?;
        }
        let mut dims = shape.dims().to_vec();
        dims.push(bits.bits());
        let wide = ArrayShape::new(bits, dims)?;
        let dimensions: Vec<usize> = (0..shape.rank()).collect();
        let x = self.broadcast(x, wide.clone(), &dimensions)?;
        let amounts = self.iota(wide, shape.rank())?;
        let shifted = self.binary(BinaryOp::ShiftRightLogical, x, amounts)?;
        let one = self.like(shifted, 1.0)?;
        let low = self.binary(BinaryOp::And, shifted, one)?;
        self.compare(Direction::Eq, low, one)
    }

    /// A fold of an array with an operation along dimensions, beginning with a number.
    pub(super) fn fold(
        &mut self,
        op: BinaryOp,
        x: InstrId,
        dimensions: Vec<usize>,
        init: f64,
    ) -> Result<InstrId> {
        let element = self.element(x)?;
        let init = match element {
            ElementType::Pred => self.scalar(init != 0.0)?,
            _ => self.number(element, init)?,
        };
        let to_apply = self.reducer(op, element)?;
        self.push(helio_ir::ops::Reduce { dimensions, to_apply }, &[x, init])
    }

    /// The computation of an operation on two numbers.
    pub(super) fn reducer(&mut self, op: BinaryOp, element: ElementType) -> Result<CompId> {
        let shape = helio_ir::Shape::scalar(element);
        let mut inner = self.inner(&format!("{}_{element}", op.name()));
        let a = inner.parameter(0, shape.clone(), "x")?;
        let b = inner.parameter(1, shape, "y")?;
        let result = inner.binary(op, a, b)?;
        inner.finish(vec![result])
    }

    /// An integer exactly, in this type.
    pub(super) fn integer(&mut self, element: ElementType, value: i128) -> Result<InstrId> {
        let array = dispatch_type!(element, T => {
            Array::scalar(T::from_number(Number::Int(value)))
        });
        self.literal(Literal::Array(array))
    }

    /// The bits of a float as an unsigned integer, or the other way round.
    pub(super) fn bitcast(&mut self, x: InstrId, element: ElementType) -> Result<InstrId> {
        self.push(BitcastConvert { element }, &[x])
    }
}

/// The unsigned type of this width.
pub(super) fn unsigned(bits: usize) -> Result<ElementType> {
    match bits {
        2 => Ok(ElementType::U2),
        4 => Ok(ElementType::U4),
        8 => Ok(ElementType::U8),
        16 => Ok(ElementType::U16),
        32 => Ok(ElementType::U32),
        64 => Ok(ElementType::U64),
        _ => Err(Error::unimplemented(format!("numbers of {bits} bits as bits"))),
    }
}
