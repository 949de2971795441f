//! The names of one scope: those in the text are kept, made-up ones give way to them.

use std::borrow::Cow;
use std::collections::hash_map::Entry;

use foldhash::{HashMap, HashMapExt};

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named<Id> {
    /// Something read without error.
    Good(Id),
    /// Something with an error, which has been reported: its users are passed over in silence.
    Bad,
}

/// The names of a scope.
pub(crate) struct Names<'a, Id> {
    ids: HashMap<Cow<'a, str>, (Named<Id>, bool)>,
    /// For each base, the number that the next made-up name tries.
    next: HashMap<String, usize>,
}

impl<'a, Id: Copy> Names<'a, Id> {
    pub(crate) fn new() -> Self {
        Names { ids: HashMap::new(), next: HashMap::new() }
    }

    pub(crate) fn get(&self, name: &str) -> Option<Named<Id>> {
        self.ids.get(name).map(|&(named, _)| named)
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.ids.get(name).is_some_and(|&(_, made_up)| !made_up)
    }

    /// Records a name from the text, unless the text has it already. Returns what had made up the
    /// same name and needs another now.
    pub(crate) fn declare(&mut self, name: &'a str, named: Named<Id>) -> Option<Id> {
        match self.ids.entry(Cow::Borrowed(name)) {
            Entry::Vacant(entry) => {
                entry.insert((named, false));
                None
            }
            Entry::Occupied(mut entry) => match *entry.get() {
                (Named::Good(evicted), true) => {
                    entry.insert((named, false));
                    Some(evicted)
                }
                _ => None,
            },
        }
    }

    /// Records a key that no name in a text can be.
    pub(crate) fn alias(&mut self, key: String, id: Id) {
        self.ids.insert(Cow::Owned(key), (Named::Good(id), true));
    }

    /// A name for something the text gives none: `base`, or `base.1`, `base.2` …
    pub(crate) fn make_up(&mut self, base: &str, id: Id) -> String {
        let next = self.next.entry(base.to_owned()).or_insert(0);
        loop {
            let name = if *next == 0 { base.to_owned() } else { format!("{base}.{next}") };
            *next += 1;
            if let Entry::Vacant(entry) = self.ids.entry(Cow::Owned(name.clone())) {
                entry.insert((Named::Good(id), true));
                return name;
            }
        }
    }
}
