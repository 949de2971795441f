//! Which participants have the same value: partitions of all participants into classes.

use std::collections::HashMap;
use std::hash::Hash;
use std::rc::Rc;

/// One way to divide the participants into classes; those of one class have the same value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Agreement(u32);

/// All that came up, each kept once.
pub(super) struct Agreements {
    count: usize,
    /// For each, the number of every participant's class, counted from 0 by first occurrence.
    numbers: Vec<Rc<[u32]>>,
    known: HashMap<Rc<[u32]>, Agreement>,
    joined: HashMap<(Agreement, Agreement), Agreement>,
    /// How many participants have been put into classes, again and again.
    pub(super) work: usize,
    /// All participants have the same value.
    pub(super) uniform: Agreement,
    /// Any two may have different values.
    pub(super) varying: Agreement,
}

impl Agreements {
    /// For this number of participants.
    pub(super) fn new(count: usize) -> Self {
        let mut classes = Agreements {
            count,
            numbers: Vec::new(),
            known: HashMap::new(),
            joined: HashMap::new(),
            work: 0,
            uniform: Agreement(0),
            varying: Agreement(0),
        };
        classes.uniform = classes.by(|_| 0);
        classes.varying = classes.by(|participant| participant);
        classes
    }

    /// Those participants together that have the same key.
    pub(super) fn by<K: Eq + Hash>(&mut self, key: impl Fn(usize) -> K) -> Agreement {
        self.work = self.work.saturating_add(self.count);
        let mut seen = HashMap::new();
        let numbers = (0..self.count).map(|participant| {
            let next = seen.len() as u32;
            *seen.entry(key(participant)).or_insert(next)
        });
        let numbers: Rc<[u32]> = numbers.collect();
        if let Some(&class) = self.known.get(&numbers) {
            return class;
        }
        let class = Agreement(self.numbers.len() as u32);
        self.numbers.push(numbers.clone());
        self.known.insert(numbers, class);
        class
    }

    /// The number of a participant's class.
    pub(super) fn number(&self, class: Agreement, participant: usize) -> u32 {
        self.numbers[class.0 as usize][participant]
    }

    /// What a function of two values has: those together that are together in both.
    pub(super) fn join(&mut self, a: Agreement, b: Agreement) -> Agreement {
        if a == b || b == self.uniform {
            return a;
        }
        if a == self.uniform {
            return b;
        }
        let key = (a.min(b), a.max(b));
        if let Some(&class) = self.joined.get(&key) {
            return class;
        }
        let numbers = [a, b].map(|class| self.numbers[class.0 as usize].clone());
        let class = self.by(|participant| [numbers[0][participant], numbers[1][participant]]);
        self.joined.insert(key, class);
        class
    }

    /// Two participants of a group that may have different values.
    pub(super) fn split(&self, class: Agreement, group: &[usize]) -> Option<(usize, usize)> {
        let first = *group.first()?;
        let number = self.number(class, first);
        let other = group.iter().find(|&&other| self.number(class, other) != number)?;
        Some((first, *other))
    }
}

impl Agreement {
    fn min(self, other: Agreement) -> Agreement {
        Agreement(self.0.min(other.0))
    }

    fn max(self, other: Agreement) -> Agreement {
        Agreement(self.0.max(other.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins() {
        let mut classes = Agreements::new(4);
        let (rows, columns) = (classes.by(|p| p / 2), classes.by(|p| p % 2));
        assert_ne!(rows, columns);
        assert_eq!(classes.join(rows, columns), classes.varying);
        assert_eq!(classes.join(rows, classes.uniform), rows);
        assert_eq!(classes.by(|p| 7 - p / 2), rows);
        assert_eq!(classes.split(rows, &[0, 1]), None);
        assert_eq!(classes.split(rows, &[1, 0, 3]), Some((1, 3)));
    }
}
