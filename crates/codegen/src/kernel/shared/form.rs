//! Index values as sums: what an address is made of, and how large each part can be.

use std::collections::BTreeMap;

/// Something that index values are made of, by its place in [`Atoms`].
pub(super) type AtomId = usize;

/// `constant + Σ factor · atom`, no factor being zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Form {
    pub constant: i128,
    pub terms: BTreeMap<AtomId, i128>,
}

impl Form {
    pub fn constant(constant: i128) -> Self {
        Form { constant, ..Form::default() }
    }

    pub fn atom(atom: AtomId) -> Self {
        Form { constant: 0, terms: BTreeMap::from([(atom, 1)]) }
    }

    /// `self + factor · other`
    #[must_use]
    pub fn plus(&self, other: &Form, factor: i128) -> Form {
        let mut sum = self.clone();
        sum.constant += factor * other.constant;
        for (&atom, &f) in &other.terms {
            sum.add(atom, factor * f);
        }
        sum
    }

    fn add(&mut self, atom: AtomId, factor: i128) {
        let sum = self.terms.entry(atom).or_default();
        *sum += factor;
        if *sum == 0 {
            self.terms.remove(&atom);
        }
    }

    #[must_use]
    pub fn times(&self, factor: i128) -> Form {
        Form::default().plus(self, factor)
    }

    /// The positive number of which this is the product with another form, if there is one.
    pub fn multiple_of(&self, other: &Form) -> Option<i128> {
        let by = other.terms.iter().next().map_or(1, |(&atom, factor)| self.factor(atom) / factor);
        (by > 0 && *self == other.times(by)).then_some(by)
    }

    /// The factor of an atom.
    pub fn factor(&self, atom: AtomId) -> i128 {
        self.terms.get(&atom).copied().unwrap_or(0)
    }

    /// The number that it is, if it is one.
    pub fn number(&self) -> Option<i128> {
        self.terms.is_empty().then_some(self.constant)
    }
}

/// What is known of an atom.
#[derive(Clone, Debug)]
struct Atom {
    /// The least and the greatest value.
    range: (i128, i128),
    /// Whether it is one number in all calls of the kernel, whichever piece of its range they run.
    fixed: bool,
    /// What it is made of, if that is known.
    parts: Option<Form>,
}

/// All atoms of a kernel.
#[derive(Default)]
pub(super) struct Atoms {
    all: Vec<Atom>,
}

/// The bounds of an integer of which nothing is known: beyond any index, and small enough for sums of
/// products with strides not to overflow.
const ANYTHING: (i128, i128) = (-(1 << 63), 1 << 63);

impl Atoms {
    fn push(&mut self, range: (i128, i128), fixed: bool, parts: Option<Form>) -> AtomId {
        self.all.push(Atom { range, fixed, parts });
        self.all.len() - 1
    }

    /// A number between two others.
    pub fn between(&mut self, least: i128, greatest: i128, fixed: bool) -> AtomId {
        self.push((least, greatest.max(least)), fixed, None)
    }

    /// A number of which nothing is known.
    pub fn any(&mut self, fixed: bool) -> AtomId {
        self.push(ANYTHING, fixed, None)
    }

    /// Another name for a form.
    pub fn named(&mut self, form: Form) -> AtomId {
        let range = self.range(&form);
        self.push(range, false, Some(form))
    }

    pub fn is_fixed(&self, atom: AtomId) -> bool {
        self.all[atom].fixed
    }

    pub fn atom_range(&self, atom: AtomId) -> (i128, i128) {
        self.all[atom].range
    }

    /// A form in atoms that are not made of others.
    pub fn expand(&self, form: &Form) -> Form {
        let mut sum = Form::constant(form.constant);
        for (&atom, &factor) in &form.terms {
            match &self.all[atom].parts {
                Some(parts) => sum = sum.plus(&self.expand(parts), factor),
                None => sum.add(atom, factor),
            }
        }
        sum
    }

    /// The least and the greatest value of a form.
    pub fn range(&self, form: &Form) -> (i128, i128) {
        let form = self.expand(form);
        let start = (form.constant, form.constant);
        form.terms.iter().fold(start, |(least, greatest), (&atom, &factor)| {
            let (low, high) = self.all[atom].range;
            let (a, b) = (low.saturating_mul(factor), high.saturating_mul(factor));
            (least.saturating_add(a.min(b)), greatest.saturating_add(a.max(b)))
        })
    }

    /// The quotient of a form that is not negative and a positive number. A number that counts two
    /// loops becomes two atoms: `atom = by · quotient + rest`.
    pub fn divide(&mut self, form: &Form, by: i128) -> Option<Form> {
        let form = self.expand(form);
        if self.range(&form).0 < 0 {
            return None;
        }
        let (mut quotient, mut rest) = (
            Form::constant(form.constant.div_euclid(by)),
            Form::constant(form.constant.rem_euclid(by)),
        );
        for (&atom, &factor) in &form.terms {
            match factor % by == 0 {
                true => quotient.add(atom, factor / by),
                false => rest.add(atom, factor),
            }
        }
        let (least, greatest) = self.range(&rest);
        if 0 <= least && greatest < by {
            return Some(quotient);
        }
        let mut terms = form.terms.iter();
        let (Some((&atom, 1)), None, 0) = (terms.next(), terms.next(), form.constant) else {
            return None;
        };
        let Atom { range: (_, greatest), fixed, .. } = self.all[atom];
        let quotient = self.between(0, greatest / by, fixed);
        let rest = self.between(0, greatest.min(by - 1), fixed);
        let parts = Form { constant: 0, terms: BTreeMap::from([(quotient, by), (rest, 1)]) };
        self.all[atom].parts = Some(parts);
        Some(Form::atom(quotient))
    }
}
