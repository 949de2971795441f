//! Reductions over participants, always in the order of the group.
//!
//! Small arrays each participant folds whole. Large ones are cut: each folds its part of what all give,
//! into its own result, then takes the other parts from those who have folded them. That reads and folds
//! a fraction of what all have, and gives the same bits.

use std::ops::Range;

use helio_ir::Result;
use smallvec::SmallVec;

use super::perform::Site;
use crate::plan::bind::{Room, ScalarFold};

/// The bytes of all operands from which on they are cut: another meeting costs about as much as it
/// takes to read them.
const CUT_BYTES: usize = 256 << 10;

impl Site<'_> {
    /// Whether the participants fold parts. All decide alike, by the sizes of the operands.
    pub(super) fn is_worth_cutting(&self, inputs: &[&[u8]]) -> bool {
        let bytes: usize = inputs.iter().map(|input| input.len()).sum();
        self.group.len() > 1 && bytes >= CUT_BYTES
    }

    /// Folds blocks of all, or of each block this participant's one of `parts`.
    pub(super) fn fold_whole(
        &self,
        fold: &ScalarFold,
        room: &mut Room,
        parts: usize,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) -> Result<()> {
        self.meet(inputs, &mut |given| {
            self.check(given, inputs)?;
            for (i, (array, output)) in self.place.arrays.iter().zip(&mut *outputs).enumerate() {
                let part = array.block_bytes / parts;
                let first = if parts == 1 { 0 } else { self.me * part };
                for block in 0..array.blocks {
                    let from = block * array.block_bytes + first;
                    let theirs = |position: usize| &given.of(position)[i][from..][..part];
                    let output = &mut output[block * part..][..part];
                    fold.fold(given.participants(), theirs, output, room)?;
                }
            }
            Ok(())
        })
    }

    /// Folds this participant's part of what all give, and takes the other parts from the others.
    pub(super) fn fold_in_parts(
        &self,
        fold: &ScalarFold,
        room: &mut Room,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) -> Result<()> {
        let count = self.group.len();
        self.meet(inputs, &mut |given| {
            self.check(given, inputs)?;
            for (i, output) in outputs.iter_mut().enumerate() {
                let part = part(fold, output.len(), self.me, count);
                let theirs = |position: usize| &given.of(position)[i][part.clone()];
                fold.fold(count, theirs, &mut output[part.clone()], room)?;
            }
            Ok(())
        })?;
        let mut mine = SmallVec::<[&[u8]; 4]>::new();
        let mut others = SmallVec::<[[&mut [u8]; 2]; 4]>::new();
        for output in outputs {
            let part = part(fold, output.len(), self.me, count);
            let (before, rest) = output.split_at_mut(part.start);
            let (own, after) = rest.split_at_mut(part.len());
            mine.push(own);
            others.push([before, after]);
        }
        self.meet(&mine, &mut |given| {
            for (i, [before, after]) in others.iter_mut().enumerate() {
                let end = before.len() + mine[i].len();
                let whole = end + after.len();
                for position in (0..count).filter(|&position| position != self.me) {
                    let part = part(fold, whole, position, count);
                    let to = match position < self.me {
                        true => &mut before[part.clone()],
                        false => &mut after[part.start - end..part.end - end],
                    };
                    let theirs = given.of(position).get(i).copied().unwrap_or_default();
                    self.check_part(position, theirs.len(), to.len())?;
                    to.copy_from_slice(theirs);
                }
            }
            Ok(())
        })
    }

    fn check_part(&self, position: usize, found: usize, want: usize) -> Result<()> {
        if found == want {
            return Ok(());
        }
        let who = self.group[position];
        Err(helio_ir::Error::invalid(format!(
            "{who} gave {found} bytes for its part, which has {want}"
        )))
    }
}

/// The bytes that the participant at a position folds, of an array of `bytes`: whole pieces of those that
/// are folded at once.
fn part(fold: &ScalarFold, bytes: usize, position: usize, count: usize) -> Range<usize> {
    let piece = fold.piece_bytes();
    let pieces = bytes.div_ceil(piece);
    let at = |position: usize| (pieces * position / count * piece).min(bytes);
    at(position)..at(position + 1)
}
