//! Whether a kernel may be given one buffer as two of its parameters: a proof from its loads and
//! stores alone, independent of what decided that it may (`docs/design/in-place.md`).
//!
//! For a load of the one parameter and a store to the other, addresses are sums of loop variables
//! with factors. Their difference is a sum of differences of variables, each of which must be zero
//! for the two to meet if its factor is larger than all smaller ones together can make up for. If so,
//! they meet only in the same iteration of all loops around both, in the same piece of the range, and
//! the load must stand before the store.

mod form;
mod spread;
#[cfg(test)]
mod tests;
mod walk;

use rustc_hash::FxHashSet;

use super::Kernel;
use form::{AtomId, Form};
use spread::{LanePair, Spread};
use walk::{Access, Walk};

impl Kernel {
    /// Proves that the kernel computes the same if the buffers of two of its parameters, one that it
    /// reads and one that it writes, are one: whatever it reads there has not been written before,
    /// neither by this call nor by one that runs another piece of the range. Errors: the load and the
    /// store for which that is not certain.
    pub fn check_shared(&self, read: u32, written: u32) -> Result<(), String> {
        let [one, other] = [read, written].map(|n| self.params[n as usize]);
        if one.write || !other.write {
            return Err(format!("buffers {read} and {written} are not one read and one written"));
        }
        let mut walk = Walk::new(self);
        let accesses = std::mem::take(&mut walk.accesses);
        let pairs = Pairs { walk: &walk, one_piece: self.range <= self.grain };
        let all = || accesses.iter().enumerate();
        for (i, load) in all().filter(|(_, access)| access.param == read) {
            for (j, store) in all().filter(|(_, a)| a.param == written && a.writes) {
                pairs.check(load, store, Some(i < j)).map_err(|why| {
                    format!("load {i} of buffer {read}, store {j} to buffer {written}: {why}")
                })?;
            }
        }
        Ok(())
    }

    /// Proves that what one piece of the range writes no other piece reads or writes by the same
    /// parameter, so that pieces may run on several threads at once. Errors: the accesses for which
    /// that is not certain.
    pub fn check_pieces(&self) -> Result<(), String> {
        if self.range <= self.grain {
            return Ok(());
        }
        let mut walk = Walk::new(self);
        let accesses = std::mem::take(&mut walk.accesses);
        let pairs = Pairs { walk: &walk, one_piece: false };
        let all = || accesses.iter().enumerate();
        for (j, store) in all().filter(|(_, access)| access.writes) {
            // (Each pair of stores once.)
            let others = all().filter(|(i, a)| a.param == store.param && (!a.writes || *i <= j));
            for (i, other) in others {
                let param = store.param;
                pairs.check(other, store, None).map_err(|why| {
                    format!("access {i} and store {j}, both of buffer {param}: {why}")
                })?;
            }
        }
        Ok(())
    }

    /// Proves that number `n` of the range touches, of a buffer, only the bytes from `n * unit_bytes` to
    /// `(n + 1) * unit_bytes`. Errors: the access that may go elsewhere.
    pub fn check_units(&self, param: u32, unit_bytes: usize) -> Result<(), String> {
        // A range that is never cut: whoever runs it has all units, and no access leaves the buffer.
        if self.range <= self.grain {
            return Ok(());
        }
        let mut walk = Walk::new(self);
        let accesses = std::mem::take(&mut walk.accesses);
        for (i, access) in accesses.iter().enumerate().filter(|(_, a)| a.param == param) {
            let stays = units(&walk, access, unit_bytes as i128);
            stays.map_err(|why| format!("access {i} to buffer {param}: {why}"))?;
        }
        Ok(())
    }
}

/// A term of the difference of two addresses: a number of bytes, `factor`, times the difference of two
/// integers.
struct DifferenceTerm {
    /// In bytes.
    factor: i128,
    /// The least and the greatest difference of the integers.
    span: (i128, i128),
    of: DifferenceKind,
}

impl DifferenceTerm {
    /// The least and the greatest value, in bytes.
    fn range(&self) -> (i128, i128) {
        ends(self.factor, self.span.0, self.span.1)
    }
}

/// What a term is the difference of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DifferenceKind {
    /// One variable's values at the load and at the store.
    Atom(AtomId),
    /// The values of two different variables.
    Pair,
    /// The numbers of two lanes.
    Lanes,
}

/// The difference of the addresses of a load and a store: a sum of terms, and the least and the most
/// that is added to it.
struct AddressDifference {
    terms: Vec<DifferenceTerm>,
    rest: (i128, i128),
}

/// What is known of two accesses if they touch the same bytes.
struct Meeting {
    /// The variables that have one value at both accesses.
    equal: FxHashSet<AtomId>,
    /// Whether it is the same `x` (see [`Spread`]) at both.
    lanes_equal: bool,
}

impl AddressDifference {
    fn plus(&mut self, (low, high): (i128, i128)) {
        self.rest.0 = self.rest.0.saturating_add(low);
        self.rest.1 = self.rest.1.saturating_add(high);
    }

    /// What must be zero if the sum of all terms is; `None` if it cannot be.
    fn solve(mut self) -> Option<Meeting> {
        self.terms.retain(|term| term.span != (0, 0) || term.of != DifferenceKind::Pair);
        self.terms.sort_by_key(|term| term.factor.abs());
        // For each term the range of all that is smaller.
        let mut sum = self.rest;
        let mut ranges = Vec::with_capacity(self.terms.len());
        for (low, high) in self.terms.iter().map(DifferenceTerm::range) {
            ranges.push(sum);
            sum = (sum.0.saturating_add(low), sum.1.saturating_add(high));
        }
        let has_zero = |(low, high): (i128, i128)| low <= 0 && 0 <= high;
        let mut meeting = Meeting { equal: FxHashSet::default(), lanes_equal: false };
        if !has_zero(sum) {
            return None;
        }
        for (term, (low, high)) in self.terms.iter().zip(ranges).rev() {
            if term.span != (0, 0) && term.factor.abs() <= low.abs().max(high.abs()) {
                return Some(meeting);
            }
            match term.of {
                DifferenceKind::Atom(atom) => drop(meeting.equal.insert(atom)),
                DifferenceKind::Lanes => meeting.lanes_equal = true,
                DifferenceKind::Pair => {}
            }
            // This difference being zero, smaller ones have to make up for the rest.
            if !has_zero(term.span) || !has_zero((low, high)) {
                return None;
            }
        }
        Some(meeting)
    }
}

/// Proofs about pairs of a kernel's accesses.
struct Pairs<'w, 'k> {
    walk: &'w Walk<'k>,
    /// Whether the range is run in one piece, always.
    one_piece: bool,
}

impl Pairs<'_, '_> {
    /// Errors: a store may be to where a load is from in another piece of the range, or, if
    /// `load_is_first` says which of them stands first, it may happen before the load.
    fn check(
        &self,
        load: &Access,
        store: &Access,
        load_is_first: Option<bool>,
    ) -> Result<(), String> {
        let (walk, both) = (self.walk, (load, store));
        let (Some(from), Some(to)) = (&load.at, &store.at) else {
            return Err("it is read at indices from memory".to_owned());
        };
        let Some((meeting, lanes)) = self.meeting((load, from), (store, to)) else {
            return Ok(());
        };
        // What is said of lanes is said of the same lane.
        let lanes = lanes.as_ref().filter(|_| meeting.lanes_equal);
        if lanes.is_some_and(LanePair::is_beside) {
            return Ok(());
        }
        let common = load.path.iter().zip(&store.path).take_while(|(a, b)| a == b);
        let common: Vec<usize> = common.map(|(&n, _)| n).collect();
        let is_equal = |&n: &usize| {
            lanes.is_some_and(|lanes| lanes.is_of_one_iteration(walk, both, n))
                || self.is_equal(&Form::atom(walk.loops[n].var), &meeting)
        };
        let same_piece = self.one_piece
            || common.iter().any(|n| walk.loops[*n].in_piece && is_equal(n))
            || lanes.is_some_and(|lanes| lanes.is_in_one_piece(walk, both));
        if !same_piece {
            return Err("another piece of the range may have written it".to_owned());
        }
        let Some(load_is_first) = load_is_first else { return Ok(()) };
        if !common.iter().all(is_equal) {
            return Err("another iteration may have written it".to_owned());
        }
        // In the same iteration, but other lanes, or one of the two only.
        let apart = || {
            lanes.is_some_and(|lanes| lanes.is_apart(walk, both, &common))
                || self.are_in_other_segments(both, &meeting)
        };
        if load_is_first || apart() { Ok(()) } else { Err("it is written before".to_owned()) }
    }

    /// Whether two accesses that meet stand in segments of one loop that have no number in common, so that
    /// an iteration of that loop does but one of them.
    fn are_in_other_segments(&self, (load, store): (&Access, &Access), meeting: &Meeting) -> bool {
        let Walk { atoms, loops, .. } = self.walk;
        let ends_before = |low: usize, high: usize| {
            let begin = loops[high].lowers.iter().filter_map(Form::number).max();
            let end = loops[low].uppers.iter().filter_map(Form::number).min();
            begin.zip(end).is_some_and(|(begin, end)| end <= begin)
        };
        load.path.iter().any(|&n| {
            let number = atoms.expand(&Form::atom(loops[n].var));
            self.is_equal(&number, meeting)
                && store.path.iter().any(|&m| {
                    atoms.expand(&Form::atom(loops[m].var)) == number
                        && (ends_before(n, m) || ends_before(m, n))
                })
        })
    }

    /// What is known of a load and a store if they touch the same bytes, and how their lanes lie if these
    /// are of one distance; `None` if they never do.
    fn meeting(
        &self,
        (load, from): (&Access, &Form),
        (store, to): (&Access, &Form),
    ) -> Option<(Meeting, Option<LanePair>)> {
        let walk = self.walk;
        let spreads = Spread::of(walk, load, from).zip(Spread::of(walk, store, to));
        let spreads = spreads.filter(|(a, b)| {
            let scale = |s: &Spread| s.around.map(|(_, scale)| scale);
            let alike = scale(a).is_none() || scale(b).is_none() || scale(a) == scale(b);
            a.stride == b.stride && alike
        });
        let rest = (1 - store.width, load.width - 1);
        let Some((a, b)) = spreads else {
            let mut difference = AddressDifference { terms: Vec::new(), rest };
            let span = |access: &Access| {
                let end = access.lane_stride * (access.lanes - 1);
                (end.min(0), end.max(0))
            };
            let ((a, b), (c, d)) = (span(load), span(store));
            difference.plus((a - d, b - c));
            let (from, to) = (walk.atoms.expand(from), walk.atoms.expand(to));
            self.differences(&from, &to, &mut difference);
            return Some((difference.solve()?, None));
        };
        // What is known if the addresses, without lanes, are taken for `by` lanes apart.
        let known = |by: i128| {
            let offsets = (by.max(0), (-by).max(0));
            let lanes = LanePair::new(walk, (a.clone(), load), (b.clone(), store), offsets)?;
            let (factor, span) = (a.stride, lanes.span());
            let terms = vec![DifferenceTerm { factor, span, of: DifferenceKind::Lanes }];
            let mut difference = AddressDifference { terms, rest };
            let from = a.rest.plus(&Form::constant(by * a.stride), -1);
            self.differences(&from, &b.rest, &mut difference);
            Some((difference.solve()?, lanes))
        };
        // Whole strides may be lanes, or the distance of two places, and what is left may be of the lane
        // before or of that after (parts of a complex number): what any view shows is so.
        let (mut meeting, mut lanes) = known(0)?;
        let distance = a.rest.constant - b.rest.constant;
        let (by, left) = (distance.div_euclid(a.stride), distance.rem_euclid(a.stride));
        for by in by..=by + i128::from(left > 0) {
            let (seen, pair) = known(by)?;
            if seen.lanes_equal || !meeting.lanes_equal {
                (lanes, meeting.lanes_equal) = (pair, seen.lanes_equal);
            }
            meeting.equal.extend(seen.equal);
        }
        Some((meeting, Some(lanes)))
    }

    /// Whether a number is the same at two accesses that meet, all that is below it being.
    fn is_equal(&self, form: &Form, meeting: &Meeting) -> bool {
        let atoms = &self.walk.atoms;
        atoms.expand(form).terms.keys().all(|&atom| {
            let (least, greatest) = atoms.atom_range(atom);
            least == greatest || atoms.is_fixed(atom) || meeting.equal.contains(&atom)
        })
    }

    /// Adds the terms of the difference of two addresses, `from` less `to`.
    fn differences(&self, from: &Form, to: &Form, difference: &mut AddressDifference) {
        let atoms = &self.walk.atoms;
        difference.plus((from.constant - to.constant, from.constant - to.constant));
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for (&atom, &factor) in &from.terms {
            let (least, greatest) = atoms.atom_range(atom);
            match to.factor(atom) == factor {
                true if atoms.is_fixed(atom) => {}
                true => {
                    let step = self.step(atom);
                    let reach = (greatest - least) / step;
                    let (span, of) = ((-reach, reach), DifferenceKind::Atom(atom));
                    difference.terms.push(DifferenceTerm { factor: factor * step, span, of });
                }
                false => ours.push((factor, least, greatest)),
            }
        }
        for (&atom, &factor) in &to.terms {
            if from.factor(atom) != factor {
                let (least, greatest) = atoms.atom_range(atom);
                theirs.push((factor, least, greatest));
            }
        }
        for (factor, least, greatest) in ours {
            match theirs.iter().position(|other| other.0 == factor) {
                Some(n) => {
                    let (_, low, high) = theirs.swap_remove(n);
                    let span = (least - high, greatest - low);
                    // Segments of a loop: one of the variables is always the greater.
                    match span.0 > 0 || span.1 < 0 {
                        true => difference.plus(ends(factor, span.0, span.1)),
                        false => {
                            let of = DifferenceKind::Pair;
                            difference.terms.push(DifferenceTerm { factor, span, of });
                        }
                    }
                }
                None => difference.plus(ends(factor, least, greatest)),
            }
        }
        for (factor, least, greatest) in theirs {
            difference.plus(ends(-factor, least, greatest));
        }
    }

    /// By how much two different values of an atom differ at least.
    fn step(&self, atom: AtomId) -> i128 {
        let of = self.walk.loops.iter().find(|l| l.var == atom);
        of.map_or(1, |l| l.step)
    }
}

/// The least and the greatest product of a factor and a number between two others.
fn ends(factor: i128, least: i128, greatest: i128) -> (i128, i128) {
    let (a, b) = (factor.saturating_mul(least), factor.saturating_mul(greatest));
    (a.min(b), a.max(b))
}

/// Checks that an access stays in the unit of the range that it belongs to.
fn units(walk: &Walk<'_>, access: &Access, unit_bytes: i128) -> Result<(), String> {
    let Some(at) = &access.at else {
        return Err("indices from memory".to_owned());
    };
    let within = |(least, greatest): (i128, i128)| {
        let fits = 0 <= least && greatest + access.width <= unit_bytes;
        if fits { Ok(()) } else { Err(format!("bytes {least} to {greatest} of a unit")) }
    };
    // A number of the range is an iteration of a loop, ...
    let is_unit = |&&n: &&usize| walk.loops[n].in_piece && walk.loops[n].step == 1;
    if let Some(&n) = access.path.iter().find(is_unit) {
        let unit = Form::atom(walk.loops[n].var);
        let at = walk.atoms.expand(&at.plus(&unit, -unit_bytes));
        let Some(spread) = Spread::of(walk, access, &at) else {
            let (least, greatest) = walk.atoms.range(&at);
            let end = access.lane_stride * (access.lanes - 1);
            return within((least + end.min(0), greatest + end.max(0)));
        };
        let by = spread.rest.constant.div_euclid(spread.stride.abs()) * spread.stride.signum();
        let rest = spread.rest.plus(&Form::constant(by * spread.stride), -1);
        let (least, greatest) = walk.atoms.range(&rest);
        let Some((low, high)) = spread.range(walk, access, by) else { return Ok(()) };
        let (a, b) = ends(spread.stride, low, high);
        return within((least + a, greatest + b));
    }
    // ... or where lanes are.
    let spread = Spread::of(walk, access, at).ok_or("no loop over the range")?;
    let by = spread.rest.constant.div_euclid(spread.stride.abs()) * spread.stride.signum();
    let rest = spread.rest.plus(&Form::constant(by * spread.stride), -1);
    let scale = spread.around.filter(|&(n, _)| walk.loops[n].in_piece).map(|(_, scale)| scale);
    let is_unit = scale.is_some_and(|scale| scale * spread.stride == unit_bytes);
    if !is_unit || by < 0 || !spread.is_below_uppers(walk, access, by) {
        return Err("lanes that may be of another unit".to_owned());
    }
    let (least, greatest) = walk.atoms.range(&rest);
    let fits = 0 <= least && greatest + access.width <= spread.stride;
    if fits { Ok(()) } else { Err(format!("bytes {least} to {greatest} of a lane")) }
}
