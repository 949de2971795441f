//! The operands of an instruction, in few words.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, DerefMut};
use std::slice::{Iter, IterMut};

use crate::InstrId;

/// The most operands that are held without memory of their own: most instructions have no more.
const INLINE: usize = 3;

/// The operands of an instruction, a slice of [`InstrId`] as a vector is. A few of them lie in the
/// instruction itself, since passes copy instructions and look at operands all the time.
///
/// ```
/// use helio_ir::{InstrId, Operands};
/// let mut operands: Operands = [InstrId(3), InstrId(1)].into();
/// operands.push(InstrId(2));
/// assert_eq!(operands[..], [InstrId(3), InstrId(1), InstrId(2)]);
/// ```
#[derive(Clone)]
pub struct Operands(Held);

#[derive(Clone)]
enum Held {
    /// So many of these.
    Few(u8, [InstrId; INLINE]),
    Many(Vec<InstrId>),
}

impl Operands {
    /// Appends an operand.
    pub fn push(&mut self, operand: InstrId) {
        match &mut self.0 {
            Held::Few(count, few) => match few.get_mut(usize::from(*count)) {
                Some(free) => {
                    *free = operand;
                    *count += 1;
                }
                None => self.0 = Held::Many(few.iter().copied().chain([operand]).collect()),
            },
            Held::Many(many) => many.push(operand),
        }
    }

    /// Takes an operand out; those behind it move up.
    ///
    /// # Panics
    /// If there is no operand of this number.
    pub fn remove(&mut self, number: usize) -> InstrId {
        match &mut self.0 {
            Held::Few(count, few) => {
                let operand = few[..usize::from(*count)][number];
                few.copy_within(number + 1.., number);
                *count -= 1;
                operand
            }
            Held::Many(many) => many.remove(number),
        }
    }
}

impl Default for Operands {
    fn default() -> Self {
        Operands(Held::Few(0, [InstrId(0); INLINE]))
    }
}

impl Deref for Operands {
    type Target = [InstrId];
    fn deref(&self) -> &[InstrId] {
        match &self.0 {
            Held::Few(count, few) => &few[..usize::from(*count)],
            Held::Many(many) => many,
        }
    }
}

impl DerefMut for Operands {
    fn deref_mut(&mut self) -> &mut [InstrId] {
        match &mut self.0 {
            Held::Few(count, few) => &mut few[..usize::from(*count)],
            Held::Many(many) => many,
        }
    }
}

impl From<&[InstrId]> for Operands {
    fn from(operands: &[InstrId]) -> Self {
        let mut few = [InstrId(0); INLINE];
        match few.get_mut(..operands.len()) {
            Some(held) => {
                held.copy_from_slice(operands);
                Operands(Held::Few(operands.len() as u8, few))
            }
            None => Operands(Held::Many(operands.to_vec())),
        }
    }
}

impl From<Vec<InstrId>> for Operands {
    fn from(operands: Vec<InstrId>) -> Self {
        if operands.len() <= INLINE {
            (&operands[..]).into()
        } else {
            Operands(Held::Many(operands))
        }
    }
}

impl<const N: usize> From<[InstrId; N]> for Operands {
    fn from(operands: [InstrId; N]) -> Self {
        (&operands[..]).into()
    }
}

impl<const N: usize> From<&[InstrId; N]> for Operands {
    fn from(operands: &[InstrId; N]) -> Self {
        (&operands[..]).into()
    }
}

impl FromIterator<InstrId> for Operands {
    fn from_iter<I: IntoIterator<Item = InstrId>>(operands: I) -> Self {
        let mut all = Operands::default();
        all.extend(operands);
        all
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
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a> IntoIterator for &'a mut Operands {
    type Item = &'a mut InstrId;
    type IntoIter = IterMut<'a, InstrId>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl PartialEq for Operands {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many() {
        let ids = |count: u32| (0..count).map(InstrId).collect::<Vec<_>>();
        for count in 0..6 {
            let operands: Operands = ids(count).into();
            assert_eq!(*operands, ids(count)[..]);
            assert_eq!(operands, ids(count).into_iter().collect::<Operands>());
            for number in 0..count as usize {
                let (mut fewer, mut expected) = (operands.clone(), ids(count));
                assert_eq!(fewer.remove(number), expected.remove(number));
                assert_eq!(*fewer, expected[..]);
            }
        }
    }
}
