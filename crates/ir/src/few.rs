//! Lists of ids in few words.

use std::ops::{Deref, DerefMut};

/// The most ids that are held without memory of their own: most lists have no more.
const INLINE: usize = 3;

/// A list of small values, most often of a few, which then lie in it.
#[derive(Clone, Debug)]
pub(crate) enum Few<T> {
    /// How many values there are, and a place for each that may be: those behind do not count.
    Inline(u8, [T; INLINE]),
    /// Values in memory of their own. (Behind one pointer, so that the list is two words.)
    #[expect(clippy::box_collection)]
    Many(Box<Vec<T>>),
}

impl<T: Copy + Default> Few<T> {
    fn many(values: Vec<T>) -> Self {
        Few::Many(Box::new(values))
    }

    /// Appends a value.
    #[inline]
    pub fn push(&mut self, value: T) {
        match self {
            Few::Inline(count, few) => match few.get_mut(usize::from(*count)) {
                Some(free) => {
                    *free = value;
                    *count += 1;
                }
                None => *self = Few::many(few.iter().copied().chain([value]).collect()),
            },
            Few::Many(many) => many.push(value),
        }
    }

    /// Takes a value out; those behind it move up.
    ///
    /// # Panics
    /// If there is no value of this number.
    pub fn remove(&mut self, number: usize) -> T {
        match self {
            Few::Inline(count, few) => {
                let value = few[..usize::from(*count)][number];
                few.copy_within(number + 1.., number);
                *count -= 1;
                value
            }
            Few::Many(many) => many.remove(number),
        }
    }
}

impl<T: Copy + Default> Default for Few<T> {
    #[inline]
    fn default() -> Self {
        Few::Inline(0, [T::default(); INLINE])
    }
}

impl<T> Deref for Few<T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Few::Inline(count, few) => &few[..usize::from(*count)],
            Few::Many(many) => many,
        }
    }
}

impl<T> DerefMut for Few<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Few::Inline(count, few) => &mut few[..usize::from(*count)],
            Few::Many(many) => many,
        }
    }
}

impl<T: Copy + Default> From<&[T]> for Few<T> {
    #[inline]
    fn from(values: &[T]) -> Self {
        let mut few = [T::default(); INLINE];
        match few.get_mut(..values.len()) {
            Some(held) => {
                held.copy_from_slice(values);
                Few::Inline(values.len() as u8, few)
            }
            None => Few::many(values.to_vec()),
        }
    }
}

impl<T: Copy + Default> From<Vec<T>> for Few<T> {
    fn from(values: Vec<T>) -> Self {
        if values.len() <= INLINE { values[..].into() } else { Few::many(values) }
    }
}

impl<T: Copy + Default> FromIterator<T> for Few<T> {
    #[inline]
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut all = Few::default();
        values.into_iter().for_each(|value| all.push(value));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_words() {
        assert_eq!(size_of::<Few<u32>>(), 16);
    }

    #[test]
    fn few_and_many() {
        for count in 0..6 {
            let values: Vec<u32> = (0..count).collect();
            let few: Few<u32> = values.clone().into();
            assert_eq!(*few, values[..]);
            assert_eq!(*few, *values.iter().copied().collect::<Few<u32>>());
            for number in 0..values.len() {
                let (mut fewer, mut expected) = (few.clone(), values.clone());
                assert_eq!(fewer.remove(number), expected.remove(number));
                assert_eq!(*fewer, expected[..]);
            }
        }
    }
}
