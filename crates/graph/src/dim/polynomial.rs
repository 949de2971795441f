//! Polynomials with integer coefficients over names and floor-divisions of polynomials.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// More terms than any program's dimensions have; products of sums would grow without bound.
const MAX_TERMS: usize = 1000;
/// Floor-divisions in floor-divisions.
const MAX_NESTING: u32 = 32;

/// A sum of monomials with coefficients, none of which is 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Polynomial {
    terms: BTreeMap<Monomial, i64>,
}

/// A product of powers of atoms: atoms ascend, exponents are at least 1.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Monomial(Vec<(Atom, u32)>);

/// What stands for one integer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Atom {
    Symbol(Arc<str>),
    /// The floor of a quotient that is no polynomial, and how deeply such quotients are nested in it.
    FloorDiv {
        nesting: u32,
        dividend: Arc<Polynomial>,
        divisor: Arc<Polynomial>,
    },
}

type Outcome = Result<Polynomial, String>;

const TOO_LARGE: &str = "a number in an expression of dimensions is too large";

/// The floor of a quotient; `None` if the divisor is 0 or the quotient too large.
pub(super) fn floor_div(a: i64, b: i64) -> Option<i64> {
    let quotient = a.checked_div(b)?;
    let inexact = a % b != 0;
    Some(if inexact && (a < 0) != (b < 0) { quotient - 1 } else { quotient })
}

impl Polynomial {
    pub(super) fn constant(value: i64) -> Self {
        Self::term(Monomial::ONE, value)
    }

    pub(super) fn symbol(name: Arc<str>) -> Self {
        Self::term(Monomial(vec![(Atom::Symbol(name), 1)]), 1)
    }

    fn term(monomial: Monomial, coefficient: i64) -> Self {
        let terms = (coefficient != 0).then_some((monomial, coefficient));
        Polynomial { terms: terms.into_iter().collect() }
    }

    pub(super) fn as_constant(&self) -> Option<i64> {
        match self.terms.len() {
            0 => Some(0),
            1 => self.terms.get(&Monomial::ONE).copied(),
            _ => None,
        }
    }

    pub(super) fn as_symbol(&self) -> Option<&Arc<str>> {
        match self.single()? {
            Atom::Symbol(name) => Some(name),
            Atom::FloorDiv { .. } => None,
        }
    }

    /// The atom, if it is nothing else.
    fn single(&self) -> Option<&Atom> {
        let (monomial, &coefficient) = self.terms.first_key_value()?;
        match (&*monomial.0, coefficient, self.terms.len()) {
            ([(atom, 1)], 1, 1) => Some(atom),
            _ => None,
        }
    }

    pub(super) fn terms(&self) -> impl Iterator<Item = (&Monomial, i64)> {
        self.terms.iter().map(|(monomial, &coefficient)| (monomial, coefficient))
    }

    pub(super) fn visit_symbols(&self, visit: &mut impl FnMut(&Arc<str>)) {
        for (atom, _) in self.terms.keys().flat_map(|monomial| &monomial.0) {
            match atom {
                Atom::Symbol(name) => visit(name),
                Atom::FloorDiv { dividend, divisor, .. } => {
                    dividend.visit_symbols(visit);
                    divisor.visit_symbols(visit);
                }
            }
        }
    }

    fn nesting(&self) -> u32 {
        let atoms = self.terms.keys().flat_map(|monomial| &monomial.0);
        let nesting = |(atom, _): &(Atom, u32)| match atom {
            Atom::Symbol(_) => 0,
            Atom::FloorDiv { nesting, .. } => *nesting,
        };
        atoms.map(nesting).max().unwrap_or(0)
    }

    fn add_term(&mut self, monomial: &Monomial, coefficient: i64) -> Result<(), String> {
        let sum = self.terms.get(monomial).copied().unwrap_or(0).checked_add(coefficient);
        match sum.ok_or(TOO_LARGE)? {
            0 => drop(self.terms.remove(monomial)),
            sum => drop(self.terms.insert(monomial.clone(), sum)),
        }
        if self.terms.len() > MAX_TERMS {
            return Err(format!("an expression of dimensions has more than {MAX_TERMS} terms"));
        }
        Ok(())
    }

    /// Adds a multiple of another polynomial.
    fn add_scaled(&mut self, other: &Self, by: &Monomial, factor: i64) -> Result<(), String> {
        for (monomial, coefficient) in &other.terms {
            let coefficient = coefficient.checked_mul(factor).ok_or(TOO_LARGE)?;
            self.add_term(&monomial.times(by)?, coefficient)?;
        }
        Ok(())
    }

    pub(super) fn add(&self, other: &Self) -> Outcome {
        let mut sum = self.clone();
        sum.add_scaled(other, &Monomial::ONE, 1)?;
        Ok(sum)
    }

    pub(super) fn sub(&self, other: &Self) -> Outcome {
        let mut difference = self.clone();
        difference.add_scaled(other, &Monomial::ONE, -1)?;
        Ok(difference)
    }

    pub(super) fn mul(&self, other: &Self) -> Outcome {
        let mut product = Polynomial::default();
        for (monomial, &coefficient) in &self.terms {
            product.add_scaled(other, monomial, coefficient)?;
        }
        Ok(product)
    }

    /// `self = quotient * divisor + rest`, so the floor of the whole is the quotient plus the floor
    /// of the rest: terms that the divisor's leading term divides go to the quotient.
    pub(super) fn floor_div(&self, divisor: &Self) -> Outcome {
        let Some((lead, &lead_coefficient)) = divisor.terms.last_key_value() else {
            return Err(format!("division of {self} by 0"));
        };
        let by_constant = divisor.as_constant().is_some();
        let (mut left, mut quotient, mut rest) =
            (self.clone(), Polynomial::default(), Polynomial::default());
        while let Some((monomial, coefficient)) = left.terms.pop_last() {
            let factor = if by_constant {
                floor_div(coefficient, lead_coefficient)
            } else {
                coefficient
                    .checked_rem(lead_coefficient)
                    .filter(|&rem| rem == 0)
                    .and_then(|_| coefficient.checked_div(lead_coefficient))
            };
            match (monomial.over(lead), factor) {
                (Some(by), Some(factor)) if factor != 0 => {
                    quotient.add_term(&by, factor)?;
                    left.add_term(&monomial, coefficient)?;
                    left.add_scaled(divisor, &by, factor.checked_neg().ok_or(TOO_LARGE)?)?;
                    // What a constant does not divide stays.
                    if let Some(remainder) = left.terms.remove(&monomial) {
                        rest.add_term(&monomial, remainder)?;
                    }
                }
                _ => rest.add_term(&monomial, coefficient)?,
            }
        }
        if rest.terms.is_empty() {
            return Ok(quotient);
        }
        quotient.add(&rest.irreducible_floor_div(divisor)?)
    }

    /// The floor of a quotient to which the divisor's leading term contributes nothing.
    fn irreducible_floor_div(&self, divisor: &Self) -> Outcome {
        if let (Some(a), Some(b)) = (self.as_constant(), divisor.as_constant()) {
            return floor_div(a, b).map(Self::constant).ok_or_else(|| TOO_LARGE.into());
        }
        // A common factor of all coefficients changes nothing.
        let common = self.terms.values().chain(divisor.terms.values());
        let common = common.fold(0, |gcd, &c| greatest_common_divisor(gcd, c.unsigned_abs()));
        let common = i64::try_from(common).unwrap_or(1).max(1);
        let (dividend, divisor) = (self.over(common), divisor.over(common));
        // The floor of (floor(a/b) + c)/d is that of (a + c*b)/(b*d), if b and d are positive.
        if let (Some((inner, inner_divisor, more)), Some(by)) =
            (dividend.as_floor_div_and_constant(), divisor.as_constant())
            && by > 0
        {
            let more = more.checked_mul(inner_divisor).ok_or(TOO_LARGE)?;
            let dividend = inner.add(&Self::constant(more))?;
            let divisor = inner_divisor.checked_mul(by).ok_or(TOO_LARGE)?;
            return dividend.floor_div(&Self::constant(divisor));
        }
        let nesting = 1 + dividend.nesting().max(divisor.nesting());
        if nesting > MAX_NESTING {
            return Err(format!(
                "more than {MAX_NESTING} floor-divisions are nested in an expression of dimensions"
            ));
        }
        let (dividend, divisor) = (Arc::new(dividend), Arc::new(divisor));
        let atom = Atom::FloorDiv { nesting, dividend, divisor };
        Ok(Self::term(Monomial(vec![(atom, 1)]), 1))
    }

    /// All coefficients divided by a number that divides them.
    fn over(&self, factor: i64) -> Self {
        let terms = self.terms.iter().map(|(monomial, c)| (monomial.clone(), c / factor));
        Polynomial { terms: terms.collect() }
    }

    /// `a`, `b` and `c` of `floor(a/b) + c`, where `b` is a positive constant.
    fn as_floor_div_and_constant(&self) -> Option<(&Self, i64, i64)> {
        let constant = self.terms.get(&Monomial::ONE).copied();
        if self.terms.len() != 1 + usize::from(constant.is_some()) {
            return None;
        }
        let (monomial, &coefficient) = self.terms.last_key_value()?;
        match &*monomial.0 {
            [(Atom::FloorDiv { dividend, divisor, .. }, 1)] if coefficient == 1 => {
                let divisor = divisor.as_constant().filter(|&divisor| divisor > 0)?;
                Some((dividend, divisor, constant.unwrap_or(0)))
            }
            _ => None,
        }
    }

    /// The value if symbols stand for these numbers. Errors: what went wrong.
    pub(super) fn value(&self, of: &dyn Fn(&str) -> Option<i64>) -> Result<i64, String> {
        let mut sum = 0i64;
        for (monomial, &coefficient) in &self.terms {
            let mut product = coefficient;
            for (atom, exponent) in &monomial.0 {
                let value = atom.value(of)?;
                for _ in 0..*exponent {
                    product = product.checked_mul(value).ok_or("the number is too large")?;
                }
            }
            sum = sum.checked_add(product).ok_or("the number is too large")?;
        }
        Ok(sum)
    }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl Atom {
    fn value(&self, of: &dyn Fn(&str) -> Option<i64>) -> Result<i64, String> {
        match self {
            Atom::Symbol(name) => of(name).ok_or_else(|| format!("nothing says what {name} is")),
            Atom::FloorDiv { dividend, divisor, .. } => {
                let (a, b) = (dividend.value(of)?, divisor.value(of)?);
                floor_div(a, b).ok_or_else(|| format!("{divisor}, a divisor, is {b}"))
            }
        }
    }
}

impl Monomial {
    /// The empty product.
    pub(crate) const ONE: Monomial = Monomial(Vec::new());

    /// The name, if it is one to the power of 1.
    pub(crate) fn as_symbol(&self) -> Option<&Arc<str>> {
        match &*self.0 {
            [(Atom::Symbol(name), 1)] => Some(name),
            _ => None,
        }
    }

    fn degree(&self) -> u64 {
        self.0.iter().map(|&(_, exponent)| u64::from(exponent)).sum()
    }

    fn times(&self, other: &Self) -> Result<Self, String> {
        let mut powers: BTreeMap<&Atom, u32> = BTreeMap::new();
        for (atom, exponent) in self.0.iter().chain(&other.0) {
            let sum = powers.entry(atom).or_default();
            *sum = sum.checked_add(*exponent).filter(|&e| e < 64).ok_or(TOO_LARGE)?;
        }
        Ok(Monomial(powers.into_iter().map(|(atom, exponent)| (atom.clone(), exponent)).collect()))
    }

    /// The quotient, if the other one divides it.
    fn over(&self, other: &Self) -> Option<Self> {
        let mut powers = self.0.clone();
        for (atom, exponent) in &other.0 {
            let (_, left) = powers.iter_mut().find(|(found, _)| found == atom)?;
            *left = left.checked_sub(*exponent)?;
        }
        powers.retain(|&(_, exponent)| exponent > 0);
        Some(Monomial(powers))
    }
}

/// By degree, then by the exponents of the atoms in their order: an order that products keep, as
/// division asks for.
impl Ord for Monomial {
    fn cmp(&self, other: &Self) -> Ordering {
        self.degree().cmp(&other.degree()).then_with(|| {
            for (mine, theirs) in self.0.iter().zip(&other.0) {
                let by = theirs.0.cmp(&mine.0).then(mine.1.cmp(&theirs.1));
                if by != Ordering::Equal {
                    return by;
                }
            }
            self.0.len().cmp(&other.0.len())
        })
    }
}

impl PartialOrd for Monomial {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Terms of higher degree first, those that are subtracted last: `n*m + 2*n - 1`.
impl fmt::Display for Polynomial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.terms.is_empty() {
            return f.write_str("0");
        }
        let descending = || self.terms.iter().rev();
        let added = descending().filter(|&(_, &coefficient)| coefficient > 0);
        let subtracted = descending().filter(|&(_, &coefficient)| coefficient < 0);
        for (i, (monomial, &coefficient)) in added.chain(subtracted).enumerate() {
            f.write_str(match (i > 0, coefficient < 0) {
                (true, false) => " + ",
                (true, true) => " - ",
                (false, true) => "-",
                (false, false) => "",
            })?;
            let magnitude = coefficient.unsigned_abs();
            let powers = monomial.0.iter().flat_map(|&(ref atom, n)| (0..n).map(move |_| atom));
            let alone = self.terms.len() == 1 && magnitude == 1 && monomial.degree() == 1;
            if magnitude != 1 || monomial.0.is_empty() {
                write!(f, "{magnitude}")?;
            }
            for (j, atom) in powers.enumerate() {
                if j > 0 || magnitude != 1 {
                    f.write_str("*")?;
                }
                match atom {
                    Atom::FloorDiv { .. } if !alone => write!(f, "({atom})")?,
                    _ => write!(f, "{atom}")?,
                }
            }
        }
        Ok(())
    }
}

impl fmt::Display for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Atom::Symbol(name) => f.write_str(name),
            Atom::FloorDiv { dividend, divisor, .. } => {
                for (i, part) in [dividend, divisor].into_iter().enumerate() {
                    if i > 0 {
                        f.write_str("/")?;
                    }
                    let simple = part.as_symbol().is_some() || part.as_constant().is_some();
                    if simple { write!(f, "{part}")? } else { write!(f, "({part})")? }
                }
                Ok(())
            }
        }
    }
}
