//! The operands of an instruction.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, DerefMut};
use std::slice::{Iter, IterMut};

use crate::InstrId;
use crate::few::Few;

/// The operands of an instruction: a slice of [`InstrId`], as a vector is. A few of them lie in the
/// instruction itself, since passes copy instructions and look at operands all the time.
///
/// ```
/// use helio_ir::{InstrId, Operands};
/// let mut operands: Operands = [InstrId(3), InstrId(1)].into();
/// operands.push(InstrId(2));
/// assert_eq!(operands[..], [InstrId(3), InstrId(1), InstrId(2)]);
/// ```
#[derive(Clone, Default)]
pub struct Operands(Few<InstrId>);

impl Operands {
    /// Appends an operand.
    pub fn push(&mut self, operand: InstrId) {
        self.0.push(operand);
    }

    /// Takes an operand out; those behind it move up.
    ///
    /// # Panics
    /// If there is no operand of this number.
    pub fn remove(&mut self, number: usize) -> InstrId {
        self.0.remove(number)
    }
}

impl Deref for Operands {
    type Target = [InstrId];
    #[inline]
    fn deref(&self) -> &[InstrId] {
        &self.0
    }
}

impl DerefMut for Operands {
    #[inline]
    fn deref_mut(&mut self) -> &mut [InstrId] {
        &mut self.0
    }
}

impl From<&[InstrId]> for Operands {
    #[inline]
    fn from(operands: &[InstrId]) -> Self {
        Operands(operands.into())
    }
}

impl From<Vec<InstrId>> for Operands {
    fn from(operands: Vec<InstrId>) -> Self {
        Operands(operands.into())
    }
}

impl<const N: usize> From<[InstrId; N]> for Operands {
    fn from(operands: [InstrId; N]) -> Self {
        Operands(operands[..].into())
    }
}

impl<const N: usize> From<&[InstrId; N]> for Operands {
    fn from(operands: &[InstrId; N]) -> Self {
        Operands(operands[..].into())
    }
}

impl FromIterator<InstrId> for Operands {
    #[inline]
    fn from_iter<I: IntoIterator<Item = InstrId>>(operands: I) -> Self {
        Operands(operands.into_iter().collect())
    }
}

impl Extend<InstrId> for Operands {
    fn extend<I: IntoIterator<Item = InstrId>>(&mut self, operands: I) {
        operands.into_iter().for_each(|operand| self.push(operand));
    }
}

impl<'a> IntoIterator for &'a Operands {
    type Item = &'a InstrId;
    type IntoIter = Iter<'a, InstrId>;
    #[inline]
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a> IntoIterator for &'a mut Operands {
    type Item = &'a mut InstrId;
    type IntoIter = IterMut<'a, InstrId>;
    #[inline]
    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl PartialEq for Operands {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(&**other)
    }
}

impl Eq for Operands {}

impl Hash for Operands {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl fmt::Debug for Operands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
