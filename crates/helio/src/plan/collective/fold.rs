//! Reductions over participants, always in the order of the group.
//!
//! Small arrays each participant folds whole. Large ones are cut: in rounds, each folds a piece of its own
//! of what all give, into a buffer that stays in its cache, and copies the pieces of all into its result.
//! So each reads about as much as it has and writes its result once, folds a fraction, and gets the same
//! bits.

use std::ops::Range;

use helio_ir::Result;
use helio_runtime::Memory;
use helio_runtime::kernels::{STREAM_BYTES, copy_past_cache};
use smallvec::SmallVec;

use super::perform::Visit;
use crate::plan::bind::{Room, ScalarFolds};

/// The bytes of an operand from which on it is cut: another meeting costs about as much as it takes to
/// read them.
const CUT_BYTES: usize = 256 << 10;

/// The most bytes of a piece: two of them stay in the nearer caches of a processor.
const PIECE_BYTES: usize = 256 << 10;

/// What the participants fold between two meetings: of one operand, a piece each.
#[derive(Clone, Copy)]
struct Round {
    operand: usize,
    /// Where the pieces begin.
    begin: usize,
    /// Where the operand ends.
    end: usize,
    /// The bytes of each piece but the last.
    piece: usize,
}

impl Round {
    /// The piece of the participant at a position.
    fn piece(&self, position: usize) -> Range<usize> {
        let at = |position: usize| self.end.min(self.begin + position * self.piece);
        at(position)..at(position + 1)
    }
}

impl Visit<'_> {
    /// Folds blocks of all, or of each block this participant's one of `parts`.
    pub(super) fn fold_whole(
        &self,
        folds: &ScalarFolds,
        room: &mut Room,
        parts: usize,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) -> Result<()> {
        self.meet(inputs, &mut |given| {
            self.check(given, inputs)?;
            for (i, (array, output)) in self.collective.arrays.iter().zip(&mut *outputs).enumerate()
            {
                let part = array.block_bytes / parts;
                let first = if parts == 1 { 0 } else { self.me * part };
                for block in 0..array.blocks {
                    let from = block * array.block_bytes + first;
                    let theirs = |position: usize| &given.of(position)[i][from..][..part];
                    let output = &mut output[block * part..][..part];
                    folds.of(i).fold(given.participants(), theirs, output, room)?;
                }
            }
            Ok(())
        })
    }

    /// Whether operands are cut. All participants decide alike, by sizes.
    pub(super) fn is_cut(&self, inputs: &[&[u8]]) -> bool {
        self.group.len() > 1 && inputs.iter().any(|input| input.len() >= CUT_BYTES)
    }

    /// Folds large operands piece by piece, small ones whole. Errors: those of the exchange; memory.
    pub(super) fn fold_in_pieces(
        &self,
        folds: &ScalarFolds,
        room: &mut Room,
        memory: &Memory,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) -> Result<()> {
        let count = self.group.len();
        let mut pieces = room.take_pieces(memory, PIECE_BYTES)?;
        let mut rounds = rounds(folds, inputs, count);
        let (mut before, mut now) = (None, rounds.next());
        let mut is_first = true;
        // In a meeting all fold the pieces of one round and copy those of the round before.
        while is_first || before.is_some() {
            let [folded, folding] = &mut pieces;
            let mut mine = SmallVec::<[&[u8]; 8]>::from_slice(inputs);
            mine.push(folded.as_slice());
            self.meet(&mine, &mut |given| {
                self.check(given, &mine)?;
                let operand = |i: usize| move |position: usize| given.of(position)[i];
                if is_first {
                    let small = |i: &usize| inputs[*i].len() < CUT_BYTES;
                    for i in (0..inputs.len()).filter(small) {
                        folds.of(i).fold(count, operand(i), outputs[i], room)?;
                    }
                }
                if let Some(round) = now {
                    let piece = round.piece(self.me);
                    let theirs = |position| &operand(round.operand)(position)[piece.clone()];
                    let to = &mut folding.as_mut_slice()[..piece.len()];
                    folds.of(round.operand).fold(count, theirs, to, room)?;
                }
                if let Some(round) = before {
                    let round: Round = round;
                    let output = &mut *outputs[round.operand];
                    let is_large = output.len() >= STREAM_BYTES;
                    for position in 0..count {
                        let to = &mut output[round.piece(position)];
                        let theirs = &operand(inputs.len())(position)[..to.len()];
                        match is_large {
                            true => copy_past_cache(theirs, to),
                            false => to.copy_from_slice(theirs),
                        }
                    }
                }
                Ok(())
            })?;
            drop(mine);
            pieces.swap(0, 1);
            (before, now, is_first) = (now, rounds.next(), false);
        }
        room.keep_pieces(pieces);
        Ok(())
    }
}

/// The rounds for all operands that are cut.
fn rounds(
    folds: &ScalarFolds,
    inputs: &[&[u8]],
    count: usize,
) -> impl Iterator<Item = Round> + use<> {
    let size = |(i, input): (usize, &&[u8])| (i, input.len(), folds.of(i).piece_bytes());
    let sizes: SmallVec<[(usize, usize, usize); 8]> = inputs.iter().enumerate().map(size).collect();
    sizes.into_iter().filter(|&(_, end, _)| end >= CUT_BYTES).flat_map(
        move |(operand, end, unit)| {
            let share = end.div_ceil(count).next_multiple_of(unit);
            let piece = share.min(PIECE_BYTES);
            (0..end).step_by(piece * count).map(move |begin| Round { operand, begin, end, piece })
        },
    )
}
