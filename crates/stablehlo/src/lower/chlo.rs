//! Operations of CHLO that HLO does not have: broadcasting, tests, selection.

use helio_ir::ops::{Direction, RaggedDot, Reshape, TopK};
use helio_ir::{ArrayShape, BinaryOp, DimKind, ElementType, Error, InstrId, Op, Result, UnaryOp};

use super::body::Body;
use super::elementwise::unsigned;
use super::operation::{Site, unknown};
use super::types;
use crate::mlir::Attribute;
use crate::table::{DotDimensions, precision};

impl<'m> Body<'_, 'm> {
    pub(super) fn chlo(&mut self, site: &Site<'_, 'm>) -> Result<Vec<InstrId>> {
        let name = site.op.name.strip_prefix("chlo.").unwrap_or_default();
        if let Some(op) = name.strip_prefix("broadcast_") {
            return Ok(vec![self.broadcasting(op, site)?]);
        }
        match name {
            "top_k" => return self.top_k(site),
            "scan" => return self.scan(site),
            "constant" => {
                let Some(Attribute::Dense(dense)) = site.attrs.get("value") else {
                    return Err(Error::invalid("attribute `value` must be `dense<…>`"));
                };
                return Ok(vec![self.elements(types::elements(dense)?)?]);
            }
            _ => {}
        }
        let [x] = site.operands()?;
        Ok(vec![match name {
            "constant_like" => self.constant_like(site, x)?,
            "conj" => self.conj(x)?,
            "is_inf" => {
                let magnitude = self.unary(UnaryOp::Abs, x)?;
                self.equals(magnitude, f64::INFINITY)?
            }
            "is_pos_inf" => self.equals(x, f64::INFINITY)?,
            "is_neg_inf" => self.equals(x, f64::NEG_INFINITY)?,
            "square" => self.square(x)?,
            "next_after" | "zeta" | "polygamma" => {
                let [x, y] = site.operands()?;
                self.of_two_floats(name, x, y)?
            }
            "ragged_dot" => self.ragged_dot(site)?,
            "dynamic_reshape" => {
                let [x, sizes] = site.operands()?;
                let sizes = self.known_sizes(sizes, "the size of a dimension")?;
                let shape = ArrayShape::new(self.element(x)?, sizes)?;
                self.push(Reshape { shape }, &[x])?
            }
            "erf_inv" => self.wide(x, Self::erf_inv)?,
            "erfc" => self.wide(x, Self::erfc)?,
            "lgamma" => self.wide(x, Self::lgamma)?,
            "digamma" => self.wide(x, Self::digamma)?,
            "bessel_i1e" => self.wide(x, Self::bessel_i1e)?,
            _ => return Err(unknown()),
        }])
    }

    /// `next_after`, `zeta` or `polygamma` of two arrays of one shape. Errors: for other names.
    fn of_two_floats(&mut self, name: &str, x: InstrId, y: InstrId) -> Result<InstrId> {
        let function = match name {
            "next_after" => return self.next_after(x, y),
            "zeta" => Self::zeta,
            "polygamma" => Self::polygamma,
            _ => return Err(unknown()),
        };
        let element = self.element(x)?;
        let [x, y] = [self.widened(x)?, self.widened(y)?];
        let wide = function(self, x, y)?;
        self.convert(wide, element)
    }

    /// Half-precision numbers as `f32`, in which special functions compute.
    fn widened(&mut self, x: InstrId) -> Result<InstrId> {
        let element = self.element(x)?;
        let is_narrow = element.is_float() && element.bits() < 32;
        if is_narrow { self.convert(x, ElementType::F32) } else { Ok(x) }
    }

    fn wide(
        &mut self,
        x: InstrId,
        function: impl FnOnce(&mut Self, InstrId) -> Result<InstrId>,
    ) -> Result<InstrId> {
        let element = self.element(x)?;
        if !element.is_float() {
            return Err(Error::invalid(format!("a function of floats, not of {element}")));
        }
        let wide = self.widened(x)?;
        let result = function(self, wide)?;
        self.convert(result, element)
    }

    fn equals(&mut self, x: InstrId, value: f64) -> Result<InstrId> {
        let value = self.like(x, value)?;
        self.compare(Direction::Eq, x, value)
    }

    fn constant_like(&mut self, site: &Site<'_, 'm>, x: InstrId) -> Result<InstrId> {
        let element = self.element(x)?;
        let scalar = match site.attrs.get("value") {
            Some(Attribute::Integer { value, .. }) => self.integer(element, *value)?,
            Some(Attribute::Float { value, .. }) => self.number(element, *value)?,
            _ => return Err(Error::unimplemented("a constant that is no real number")),
        };
        self.fill(scalar, x)
    }

    fn conj(&mut self, x: InstrId) -> Result<InstrId> {
        if !self.element(x)?.is_complex() {
            return Ok(x);
        }
        let real = self.unary(UnaryOp::Real, x)?;
        let imaginary = self.unary(UnaryOp::Imag, x)?;
        let imaginary = self.unary(UnaryOp::Negate, imaginary)?;
        self.binary(BinaryOp::Complex, real, imaginary)
    }

    /// x². Of a complex number: `(a - b)(a + b)` does not cancel as `a² - b²` does.
    fn square(&mut self, x: InstrId) -> Result<InstrId> {
        if !self.element(x)?.is_complex() {
            return self.mul(x, x);
        }
        let a = self.unary(UnaryOp::Real, x)?;
        let b = self.unary(UnaryOp::Imag, x)?;
        let (difference, sum) = (self.sub(a, b)?, self.add(a, b)?);
        let product = self.mul(difference, sum)?;
        // 0 · Inf where both parts are large and the same.
        let (size_a, size_b) = (self.unary(UnaryOp::Abs, a)?, self.unary(UnaryOp::Abs, b)?);
        let same = self.compare(Direction::Eq, size_a, size_b)?;
        let finite = self.unary(UnaryOp::IsFinite, a)?;
        let same = self.binary(BinaryOp::And, same, finite)?;
        let zero = self.like(a, 0.0)?;
        let real = self.select(same, zero, product)?;
        let half = self.mul(a, b)?;
        let imaginary = self.add(half, half)?;
        self.binary(BinaryOp::Complex, real, imaginary)
    }

    /// The neighbour of x in the direction of y: the bits, as an integer, one up or down.
    fn next_after(&mut self, x: InstrId, y: InstrId) -> Result<InstrId> {
        let element = self.element(x)?;
        let bits = unsigned(element.bits())?;
        let [a, b] = [self.bitcast(x, bits)?, self.bitcast(y, bits)?];
        let scalar = self.integer(bits, 1i128 << (element.bits() - 1))?;
        let sign = self.fill(scalar, a)?;
        let (one, zero) = (self.like(a, 1.0)?, self.like(a, 0.0)?);
        let rest = self.sub(sign, one)?;
        let (size_a, size_b) =
            (self.binary(BinaryOp::And, a, rest)?, self.binary(BinaryOp::And, b, rest)?);
        let (sign_a, sign_b) =
            (self.binary(BinaryOp::And, a, sign)?, self.binary(BinaryOp::And, b, sign)?);
        let differ = self.compare(Direction::Ne, sign_a, sign_b)?;
        let larger = self.compare(Direction::Gt, size_a, size_b)?;
        let toward_zero = self.binary(BinaryOp::Or, differ, larger)?;
        let (down, up) = (self.sub(a, one)?, self.add(a, one)?);
        let moved = self.select(toward_zero, down, up)?;
        // From zero: the smallest number with y's sign.
        let smallest = self.binary(BinaryOp::Or, sign_b, one)?;
        let is_zero = self.compare(Direction::Eq, size_a, zero)?;
        let moved = self.select(is_zero, smallest, moved)?;
        let moved = self.bitcast(moved, element)?;
        let same = self.compare(Direction::Eq, x, y)?;
        let moved = self.select(same, y, moved)?;
        let (bad_x, bad_y) =
            (self.compare(Direction::Ne, x, x)?, self.compare(Direction::Ne, y, y)?);
        let moved = self.select(bad_y, y, moved)?;
        self.select(bad_x, x, moved)
    }

    fn ragged_dot(&mut self, site: &Site<'_, 'm>) -> Result<InstrId> {
        let fields = site.attrs.needed_fields("ragged_dot_dimension_numbers")?;
        let op = RaggedDot {
            dims: DotDimensions::fields(&fields)?,
            lhs_ragged: fields.sizes("lhs_ragged_dimensions")?,
            rhs_group: fields.sizes("rhs_group_dimensions")?,
            element: site.result_element()?,
            precision: precision(site.attrs)?,
        };
        fields.finish()?;
        self.push(op, &site.operands)
    }

    fn top_k(&mut self, site: &Site<'_, 'm>) -> Result<Vec<InstrId>> {
        let [x] = site.operands()?;
        let is_pred = self.element(x)?.is_pred();
        let numbers = if is_pred { self.convert(x, ElementType::U8)? } else { x };
        let result = self.push(TopK { k: site.attrs.size("k")?, largest: true }, &[numbers])?;
        let mut results = self.unpack(result, 2)?;
        if is_pred {
            results[0] = self.convert(results[0], ElementType::Pred)?;
        }
        Ok(results)
    }

    /// An operation of two operands (or `select`) after both have got the same shape.
    fn broadcasting(&mut self, name: &str, site: &Site<'_, 'm>) -> Result<InstrId> {
        let dimensions = site.attrs.integers("broadcast_dimensions")?;
        let shapes = site.operands.iter().map(|&id| self.array(id)).collect::<Result<Vec<_>>>()?;
        let rank = shapes.iter().map(ArrayShape::rank).max().unwrap_or(0);
        let mut dims = vec![1; rank];
        let mut places = Vec::new();
        for shape in &shapes {
            let from: Vec<usize> = match &dimensions {
                Some(list) if list.len() == shape.rank() && shape.rank() < rank => {
                    list.iter().map(|&d| usize::try_from(d).unwrap_or(usize::MAX)).collect()
                }
                _ => (rank - shape.rank()..rank).collect(),
            };
            for (d, &to) in from.iter().enumerate() {
                let (size, kind) = shape.dim(d);
                let known = dims.get_mut(to).filter(|known| {
                    kind == DimKind::Static && (**known == 1 || size == 1 || **known == size)
                });
                let known = known.ok_or_else(|| {
                    let detail = format!("shapes {} and {} do not fit", shapes[0], shape);
                    Error::invalid(detail)
                })?;
                if *known == 1 {
                    *known = size;
                }
            }
            places.push(from);
        }
        let mut operands = Vec::new();
        for ((&id, shape), from) in site.operands.iter().zip(&shapes).zip(&places) {
            let to = ArrayShape::new(shape.element(), dims.clone())?;
            let same = shape.dims() == to.dims();
            operands.push(if same { id } else { self.broadcast(id, to, from)? });
        }
        let plain = format!("stablehlo.{name}");
        let op: Option<Op> = self.cx.elementwise.get(plain.as_str()).cloned();
        if let Some(op) = op {
            return self.push(op, &operands);
        }
        match (name, &operands[..]) {
            ("compare" | "select", _) => {
                let site = Site {
                    operands,
                    operand_types: site.operand_types.clone(),
                    result_types: site.result_types.clone(),
                    ..*site
                };
                match name {
                    "select" => self.elementwise(name, &site),
                    _ => Ok(self.row(name, &site)?.remove(0)),
                }
            }
            (_, &[x, y]) => self.of_two_floats(name, x, y),
            _ => Err(unknown()),
        }
    }
}
