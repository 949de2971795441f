//! Where instructions come from: the program as it was given, before any pass changed it.

use std::fmt;
use std::sync::Arc;

use crate::few::Few;
use crate::{Location, Metadata, Name};

/// An instruction of the program as it was given: its place in [`Module::origins`](crate::Module).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OriginId(pub u32);

impl OriginId {
    /// The place in [`Module::origins`](crate::Module::origins).
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What is remembered of an instruction of the program as it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The name of the computation that it stood in.
    pub computation: Arc<str>,
    /// Its name.
    pub instruction: Name,
    /// What the framework says of it.
    pub metadata: Option<Arc<Metadata>>,
    /// Where it was written.
    pub at: Option<Location>,
}

/// The instructions of the given program that an instruction computes, or computes a part of.
///
/// Passes keep it: what takes an instruction's place has its origins, and what takes the place of
/// several has those of all, up to [`OriginSet::MAX`].
#[derive(Clone, Debug, Default)]
pub struct OriginSet(Few<OriginId>);

impl PartialEq for OriginSet {
    fn eq(&self, other: &Self) -> bool {
        *self.0 == *other.0
    }
}

impl Eq for OriginSet {}

impl OriginSet {
    /// How many origins are remembered of one instruction. A constant may be shared by thousands of
    /// instructions; joining all of them would take time that grows with the square of their number.
    pub const MAX: usize = 8;

    /// Whether nothing is known.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds an origin, unless it is there or there are [`OriginSet::MAX`].
    #[inline]
    pub fn insert(&mut self, id: OriginId) {
        if self.0.len() < Self::MAX && !self.0.contains(&id) {
            self.0.push(id);
        }
    }

    /// Adds the origins of another instruction, as [`OriginSet::insert`] does.
    #[inline]
    pub fn join(&mut self, other: &OriginSet) {
        other.iter().for_each(|id| self.insert(id));
    }

    /// The origins: first that whose value the instruction has, if it has the value of one.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = OriginId> {
        self.0.iter().copied()
    }
}

/// Puts sets of origins together, many times over.
#[derive(Debug, Default)]
pub struct OriginUnions {
    /// For each origin, the last union that it is in.
    last: Vec<u32>,
    unions: u32,
}

impl OriginUnions {
    /// All origins of these sets, however many: for an instruction that does what several did, so that
    /// each origin is in few such unions.
    pub fn of<'a>(&mut self, sets: impl IntoIterator<Item = &'a OriginSet>) -> OriginSet {
        self.unions += 1;
        let mut all = OriginSet::default();
        for id in sets.into_iter().flat_map(OriginSet::iter) {
            if id.index() >= self.last.len() {
                self.last.resize(id.index() + 1, 0);
            }
            if std::mem::replace(&mut self.last[id.index()], self.unions) != self.unions {
                all.0.push(id);
            }
        }
        all
    }
}

impl FromIterator<OriginId> for OriginSet {
    fn from_iter<I: IntoIterator<Item = OriginId>>(ids: I) -> Self {
        let mut set = OriginSet::default();
        ids.into_iter().for_each(|id| set.insert(id));
        set
    }
}

/// Where an instruction stands in the program that a framework compiled: a line of Python, say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceLine {
    /// The file.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: Option<i64>,
    /// The framework's name of the operation, with the scopes around it.
    pub op_name: Option<String>,
}

impl SourceLine {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        *self == SourceLine::default()
    }
}

/// `model.py:31, transformer/attention`
impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SourceLine { file, line, op_name } = self;
        match (file, line) {
            (Some(file), Some(line)) => write!(f, "{file}:{line}")?,
            (Some(file), None) => f.write_str(file)?,
            (None, Some(line)) => write!(f, "line {line}")?,
            (None, None) => {}
        }
        let Some(op_name) = op_name else { return Ok(()) };
        if file.is_some() || line.is_some() {
            f.write_str(", ")?;
        }
        f.write_str(op_name)
    }
}
