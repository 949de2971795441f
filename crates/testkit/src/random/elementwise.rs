//! Random element-wise instructions.

use helio::ElementType;
use helio::ir::ops::{BinaryOp, UnaryOp};

use super::Generator;
use super::block::Value;
use super::bound::{Bound, Likeness, Precision};

/// A function that is smooth where it is asked for: its value, and how fast it grows.
struct Smooth {
    value: fn(f64) -> f64,
    slope: fn(f64) -> f64,
    /// Where its value and slope are monotone enough that the ends bound them.
    domain: [f64; 2],
}

fn smooth(op: UnaryOp) -> Option<Smooth> {
    type Function = fn(f64) -> f64;
    let (value, slope, low, high): (Function, Function, f64, f64) = match op {
        UnaryOp::Exp => (f64::exp, f64::exp, -9.0, 6.0),
        UnaryOp::Expm1 => (f64::exp_m1, f64::exp, -9.0, 6.0),
        UnaryOp::Log => (f64::ln, |x| 1.0 / x, 0.5, 1e5),
        UnaryOp::Log1p => (f64::ln_1p, |x| 1.0 / (1.0 + x), -0.5, 1e5),
        UnaryOp::Sqrt => (f64::sqrt, |x| 0.5 / x.sqrt(), 0.25, 1e5),
        UnaryOp::Rsqrt => (|x| 1.0 / x.sqrt(), |x| 0.5 / (x * x.sqrt()), 0.25, 1e5),
        UnaryOp::Cbrt => (f64::cbrt, |x| 1.0 / (3.0 * x.cbrt().powi(2)), 0.25, 1e5),
        UnaryOp::Tanh => (f64::tanh, |_| 1.0, -1e5, 1e5),
        UnaryOp::Logistic => (|x| 1.0 / (1.0 + (-x).exp()), |_| 0.25, -30.0, 1e5),
        // Not the function itself, which the standard library lacks, but what bounds it.
        UnaryOp::Erf => (|x| (1.2 * x).clamp(-1.0, 1.0), |_| 1.2, -1e5, 1e5),
        UnaryOp::Atan => (f64::atan, |_| 1.0, -1e5, 1e5),
        UnaryOp::Asinh => (f64::asinh, |_| 1.0, -1e5, 1e5),
        UnaryOp::Sinh => (f64::sinh, f64::cosh, -5.0, 5.0),
        UnaryOp::Tan => (f64::tan, |x| 1.0 + x.tan().powi(2), -1.2, 1.2),
        UnaryOp::Asin => (f64::asin, |x| 1.0 / (1.0 - x * x).sqrt(), -0.9, 0.9),
        UnaryOp::Acos => (f64::acos, |x| 1.0 / (1.0 - x * x).sqrt(), -0.9, 0.9),
        UnaryOp::Atanh => (f64::atanh, |x| 1.0 / (1.0 - x * x), -0.9, 0.9),
        UnaryOp::Acosh => (f64::acosh, |x| 1.0 / (x * x - 1.0).sqrt(), 1.5, 1e5),
        _ => return None,
    };
    Some(Smooth { value, slope, domain: [low, high] })
}

impl Generator {
    pub(super) fn elementwise(&mut self) {
        match self.below(16) {
            0..=4 => drop(self.unary()),
            5..=10 => drop(self.binary()),
            11 => drop(self.compare()),
            12 => drop(self.select()),
            13 => drop(self.clamp()),
            14 => drop(self.convert()),
            _ => drop(self.bits_as()),
        }
    }

    pub(super) fn unary(&mut self) -> Option<Value> {
        let op = *self.pick(UnaryOp::ALL);
        let accepts = op.accepts();
        let mut operand = self.choose(|value| accepts.includes(value.element))?;
        if let Some(smooth) = smooth(op).filter(|_| operand.bound.is_plain()) {
            operand = self.within(operand, smooth.domain)?;
        }
        let bound = unary_bound(op, &operand)?;
        let element = op.result_rule().apply(operand.element)?;
        Some(self.block.push(element, &operand.dims, op.name(), &[&operand], "", bound))
    }

    /// The value, brought into a range by clamping if need be.
    fn within(&mut self, value: Value, [low, high]: [f64; 2]) -> Option<Value> {
        let bound = value.bound;
        if low <= bound.low && bound.high <= high {
            return Some(value);
        }
        // Not to the very ends: clamped values keep their errors.
        let (low, high) = (low.ceil().max(-100.0), high.floor().min(100.0));
        let (low, high) = if low < high { (low, high) } else { return None };
        if !value.element.is_float() {
            return None;
        }
        let [least, most] = [low, high].map(|end| self.scalar(value.element, end as i64));
        let bound = clamped(bound, low, high);
        let operands = [&least, &value, &most];
        Some(self.block.push(value.element, &value.dims, "clamp", &operands, "", bound))
    }

    /// A value of the same shape as another.
    fn partner(&mut self, value: &Value) -> Value {
        let same = self.choose(|other| other.element == value.element && other.dims == value.dims);
        if let (Some(same), true) = (same, self.chance(4, 5)) {
            return same;
        }
        let scalar = self.choose(|other| other.element == value.element && other.dims.is_empty());
        let scalar = match scalar {
            Some(scalar) if self.chance(1, 2) => scalar,
            _ => {
                let number = self.between(0, 3);
                self.scalar(value.element, number)
            }
        };
        if value.dims.is_empty() { scalar } else { self.fill(&scalar, &value.dims) }
    }

    pub(super) fn binary(&mut self) -> Option<Value> {
        let op = *self.pick(BinaryOp::ALL);
        let accepts = op.accepts();
        let lhs = self.choose(|value| accepts.includes(value.element))?;
        let mut rhs = self.partner(&lhs);
        let is_plain = rhs.element.is_float() && rhs.bound.is_plain();
        if is_plain && matches!(op, BinaryOp::Divide | BinaryOp::Atan2 | BinaryOp::Remainder) {
            rhs = self.within(rhs, [1.0, 100.0])?;
        }
        let bound = binary_bound(op, &lhs, &rhs)?;
        let element = op.result_rule().apply(lhs.element)?;
        Some(self.block.push(element, &lhs.dims, op.name(), &[&lhs, &rhs], "", bound))
    }

    /// A `pred`.
    pub(super) fn compare(&mut self) -> Option<Value> {
        let lhs = self.choose(|value| value.bound.is_exact())?;
        let rhs = self.partner(&lhs);
        if !rhs.bound.is_exact() {
            return None;
        }
        let directions: &[&str] = if lhs.element.is_complex() {
            &["EQ", "NE"]
        } else {
            &["EQ", "NE", "LT", "LE", "GT", "GE"]
        };
        let attributes = format!(", direction={}", self.pick(directions));
        let bound = Bound::any(ElementType::Pred);
        Some(self.block.push(
            ElementType::Pred,
            &lhs.dims,
            "compare",
            &[&lhs, &rhs],
            &attributes,
            bound,
        ))
    }

    fn select(&mut self) -> Option<Value> {
        let pred = self.choose(|value| value.element.is_pred())?;
        let on_true = self.choose(|value| value.dims == pred.dims)?;
        let on_false = self.partner(&on_true);
        let bound = on_true.bound.or(on_false.bound);
        let operands = [&pred, &on_true, &on_false];
        Some(self.block.push(on_true.element, &on_true.dims, "select", &operands, "", bound))
    }

    fn clamp(&mut self) -> Option<Value> {
        let value = self.choose(|value| !value.element.is_complex() && !value.element.is_pred())?;
        if value.bound.special || Precision::of(value.element).is_none() && value.element.is_float()
        {
            return None;
        }
        let (low, high) = (self.between(0, 1), self.between(1, 3));
        let [least, most] = [low, high].map(|end| self.scalar(value.element, end));
        let bound = clamped(value.bound, low as f64, high as f64);
        let operands = [&least, &value, &most];
        Some(self.block.push(value.element, &value.dims, "clamp", &operands, "", bound))
    }

    fn convert(&mut self) -> Option<Value> {
        let element = self.element();
        let value = self.choose(|value| value.element != element)?;
        let bound = convert_bound(&value, element)?;
        Some(self.block.push(element, &value.dims, "convert", &[&value], "", bound))
    }

    /// The bits of a value as another type of the same width.
    fn bits_as(&mut self) -> Option<Value> {
        let element = self.element();
        let fits = |value: &Value| {
            let (from, to) = (value.element, element);
            from.bits() == to.bits()
                && from != to
                && value.bound.likeness == Likeness::Bits
                // Bits of NaN are nobody's business.
                && value.bound.is_plain()
                && ![from, to].iter().any(|e| e.is_pred() || e.is_complex())
        };
        let value = self.choose(fits)?;
        let bound = Bound::any(element);
        Some(self.block.push(element, &value.dims, "bitcast-convert", &[&value], "", bound))
    }
}

fn clamped(bound: Bound, low: f64, high: f64) -> Bound {
    let to = |x: f64| x.clamp(low, high);
    Bound { low: to(bound.low), high: to(bound.high), ..bound }
}

fn unary_bound(op: UnaryOp, operand: &Value) -> Option<Bound> {
    let (element, x) = (operand.element, operand.bound);
    if element.is_integer() || element.is_pred() {
        return Some(Bound::any(element));
    }
    let computed = Precision::of(element).is_some();
    match op {
        UnaryOp::IsFinite if x.is_exact() => Some(Bound::any(ElementType::Pred)),
        UnaryOp::Real | UnaryOp::Imag => {
            let zero = Bound::exact(0.0, 0.0, true);
            Some(if op == UnaryOp::Imag { x.or(zero) } else { x })
        }
        UnaryOp::Negate if computed => Some(Bound { low: -x.high, high: -x.low, ..x }),
        UnaryOp::Abs if computed && element.is_float() => {
            Some(Bound { low: 0.0, high: x.magnitude(), ..x })
        }
        // A special value's magnitude may overflow.
        UnaryOp::Abs if element.is_complex() && x.is_plain() => {
            let most = x.magnitude() * std::f64::consts::SQRT_2;
            Bound::function(element, [0.0, most], x.error * 2.0, f64::INFINITY)
        }
        UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::RoundNearestAfz | UnaryOp::RoundNearestEven
            if computed && x.is_exact() =>
        {
            Some(Bound { low: x.low.floor(), high: x.high.ceil(), whole: x.is_plain(), ..x })
        }
        UnaryOp::Sign if computed && element.is_float() && x.is_exact() => {
            Some(Bound { low: -1.0, high: 1.0, whole: x.is_plain(), ..x })
        }
        UnaryOp::Sin | UnaryOp::Cos if x.is_plain() && element.is_float() => {
            Bound::function(element, [-1.0, 1.0], x.error, f64::INFINITY)
        }
        _ => {
            let Smooth { value, slope, domain } = smooth(op)?;
            let [low, high] = [x.low, x.high];
            if !element.is_float() || x.special || low < domain[0] || high > domain[1] {
                return None;
            }
            let (a, b) = (value(low), value(high));
            let slope = [low, high, 0.0f64.clamp(low, high)].map(|x| slope(x).abs());
            let slope = slope.into_iter().fold(0.0, f64::max);
            let relative = if x.is_exact() { 0.0 } else { f64::INFINITY };
            Bound::function(element, [a.min(b), a.max(b)], x.error * slope, relative)
        }
    }
}

fn binary_bound(op: BinaryOp, lhs: &Value, rhs: &Value) -> Option<Bound> {
    let (element, x, y) = (lhs.element, lhs.bound, rhs.bound);
    if element.is_integer() || element.is_pred() {
        return Some(Bound::any(element));
    }
    Precision::of(element)?;
    let operands = [x, y];
    match op {
        BinaryOp::Complex => return Some(x.or(y)),
        BinaryOp::Maximum | BinaryOp::Minimum if element.is_float() => return Some(x.or(y)),
        _ => {}
    }
    if x.special || y.special {
        return None;
    }
    let (a, b) = (x.magnitude(), y.magnitude());
    match op {
        BinaryOp::Add | BinaryOp::Subtract => {
            let range = match op {
                BinaryOp::Add => [x.low + y.low, x.high + y.high],
                _ => [x.low - y.high, x.high - y.low],
            };
            // What has one sign cannot cancel.
            let same_sign = op == BinaryOp::Add && x.low.min(y.low) >= 0.0;
            let relative = if same_sign { x.relative.max(y.relative) } else { f64::INFINITY };
            let relative = if x.is_exact() && y.is_exact() { 0.0 } else { relative };
            Bound::arithmetic(element, range, &operands, x.error + y.error, relative, 1.0)
        }
        BinaryOp::Multiply if element.is_complex() => {
            let most = 2.0 * a * b;
            let error = 2.0 * (x.error * b + y.error * a);
            Bound::arithmetic(element, [-most, most], &operands, error, f64::INFINITY, 4.0)
        }
        BinaryOp::Multiply => {
            let ends = [x.low * y.low, x.low * y.high, x.high * y.low, x.high * y.high];
            let range = [
                ends.into_iter().fold(f64::MAX, f64::min),
                ends.into_iter().fold(f64::MIN, f64::max),
            ];
            let error = x.error * b + y.error * a;
            Bound::arithmetic(element, range, &operands, error, x.relative + y.relative, 1.0)
        }
        BinaryOp::Divide if element.is_float() && y.low >= 0.5 => {
            let most = a / y.low;
            let error = (x.error + y.error * most) / y.low;
            Bound::function(element, [-most, most], error, x.relative + y.relative)
        }
        // Its result jumps, but for whole numbers it is exact.
        BinaryOp::Remainder
            if element.is_float() && x.is_exact() && y.is_exact() && y.low >= 0.5 =>
        {
            let most = a.min(b);
            Some(Bound {
                whole: x.whole && y.whole,
                likeness: x.likeness.max(y.likeness),
                ..Bound::exact(-most, most, false)
            })
        }
        BinaryOp::Atan2 if element.is_float() && y.low >= 0.5 => {
            Bound::function(element, [-1.6, 1.6], 2.0 * (x.error + y.error), f64::INFINITY)
        }
        BinaryOp::Power if element.is_float() && x.low >= 0.5 && a <= 8.0 && b <= 4.0 => {
            let most = x.low.recip().max(a).powf(b);
            let error = most * (b * x.error / x.low + 3.0 * y.error);
            let exact = x.is_exact() && y.is_exact();
            let relative = if exact { 0.0 } else { f64::INFINITY };
            Bound::function(element, [0.0, most], error, relative)
        }
        _ => None,
    }
}

fn convert_bound(value: &Value, element: ElementType) -> Option<Bound> {
    let x = value.bound;
    let to_complex = element.is_complex();
    if value.element.is_complex() && !to_complex {
        return None;
    }
    if element.is_integer() || element.is_pred() {
        // What is nearly a whole number is not nearly the same integer.
        return x.is_exact().then(|| Bound::any(element));
    }
    let Some(precision) = Precision::of(element) else {
        // Narrow floats are only moved.
        return x.is_exact().then(|| Bound { likeness: x.likeness, ..Bound::any(element) });
    };
    if x.special || value.element.is_float() && Precision::of(value.element).is_none() {
        return x.is_exact().then(|| Bound { likeness: x.likeness, ..Bound::any(element) });
    }
    if x.magnitude() > precision.most && x.magnitude() > precision.whole {
        return x.is_exact().then(|| Bound { likeness: x.likeness, ..Bound::any(element) });
    }
    if x.is_exact() {
        return Some(Bound { whole: x.whole && x.magnitude() <= precision.whole, ..x });
    }
    let relative = if x.relative.is_finite() { x.relative } else { f64::INFINITY };
    Bound::function(element, [x.low, x.high], x.error, relative)
}
