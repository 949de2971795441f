//! Reductions over participants, always in the order of the group.
//!
//! Small arrays each participant folds whole. Large ones are cut: in rounds, each folds a piece of its own
//! of what all give, into a buffer that stays in its cache, and copies the pieces of all into its result.
//! So each reads about as much as it has and writes its result once, folds a fraction, and gets the same
//! bits. Of arrays that no cache holds, each folds one part, and writes it past the caches into the results
//! of all, where these can be reached: the memory's traffic is the same, and nothing goes from one
//! processor's cache to another's.

use std::ops::Range;

use helio_eval::services::Reads;
use helio_ir::{Error, Result};
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

/// The bytes that are folded before they are written to the results of all: they stay in the nearest cache.
/// Few, so that the memory reads and writes at the same time: of 8 to 128 KiB, 8 were the fastest.
const PART_BYTES: usize = 8 << 10;

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
        let (count, is_dealt) = (self.group.len(), parts > 1 && self.collective.is_dealt());
        let mine = self.collective.slices(inputs, count);
        let reads = |from, to, slice| self.collective.reads(count, from, to, slice);
        let reads = Reads::These(&reads);
        self.meet(&mine, reads, &mut |given| {
            self.check(given, reads, |_, slice| mine[slice].len(), mine.len())?;
            for (i, (array, output)) in self.collective.arrays.iter().zip(&mut *outputs).enumerate()
            {
                if is_dealt {
                    let theirs = |position: usize| given.of(position)[i * count + self.me];
                    folds.of(i).fold(count, theirs, output, room)?;
                    continue;
                }
                let part = array.block_bytes / parts;
                let first = if parts == 1 { 0 } else { self.me * part };
                for block in 0..array.blocks {
                    let from = block * array.block_bytes + first;
                    let theirs = |position: usize| &given.of(position)[i][from..][..part];
                    let output = &mut output[block * part..][..part];
                    folds.of(i).fold(count, theirs, output, room)?;
                }
            }
            Ok(())
        })
    }

    /// Whether operands are cut. All participants decide alike, by sizes.
    pub(super) fn is_cut(&self, inputs: &[&[u8]]) -> bool {
        self.group.len() > 1 && inputs.iter().any(|input| input.len() >= CUT_BYTES)
    }

    /// Folds operands that are not cut, whole. Errors: those of the exchange.
    fn fold_small(
        &self,
        folds: &ScalarFolds,
        room: &mut Room,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) -> Result<()> {
        let is_small = |input: &&&[u8]| input.len() < CUT_BYTES;
        let mine: SmallVec<[&[u8]; 8]> = inputs.iter().filter(is_small).copied().collect();
        if mine.is_empty() {
            return Ok(());
        }
        self.meet(&mine, Reads::All, &mut |given| {
            self.check(given, Reads::All, |_, slice| mine[slice].len(), mine.len())?;
            let outputs = outputs.iter_mut().enumerate();
            let small = outputs.filter(|(_, output)| output.len() < CUT_BYTES);
            for (slice, (operand, output)) in small.enumerate() {
                let theirs = |position: usize| given.of(position)[slice];
                folds.of(operand).fold(self.group.len(), theirs, output, room)?;
            }
            Ok(())
        })
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
        self.fold_small(folds, room, inputs, outputs)?;
        let is_done = self.fold_into_all(folds, room, memory, inputs, outputs)?;
        let (count, me) = (self.group.len(), self.me);
        let mut pieces = room.take_pieces(memory, PIECE_BYTES)?;
        let most = if is_done { STREAM_BYTES } else { usize::MAX };
        let mut rounds = rounds(folds, inputs, count, most);
        let (mut before, mut now): (Option<Round>, _) = (None, rounds.next());
        // Each gives a piece for each to fold, and then the one that it has folded itself. In a meeting
        // all fold the pieces of one round and copy those of the round before.
        let reads = |_, to, slice| slice == to || slice == count;
        let reads = Reads::These(&reads);
        let bytes = |round: Option<Round>, position| round.map_or(0, |r| r.piece(position).len());
        while now.is_some() || before.is_some() {
            let [folded, folding] = &mut pieces;
            let piece = |position| now.map_or(&[][..], |r| &inputs[r.operand][r.piece(position)]);
            let mut mine: SmallVec<[&[u8]; 8]> = (0..count).map(piece).collect();
            mine.push(&folded.as_slice()[..bytes(before, me)]);
            self.meet(&mine, reads, &mut |given| {
                let size = |position, slice| match slice == count {
                    true => bytes(before, position),
                    false => bytes(now, slice),
                };
                self.check(given, reads, size, count + 1)?;
                if let Some(round) = now {
                    let to = &mut folding.as_mut_slice()[..round.piece(me).len()];
                    let theirs = |position: usize| given.of(position)[me];
                    folds.of(round.operand).fold(count, theirs, to, room)?;
                }
                let Some(round) = before else { return Ok(()) };
                let output = &mut *outputs[round.operand];
                let is_large = output.len() >= STREAM_BYTES;
                for position in 0..count {
                    let (theirs, to) =
                        (given.of(position)[count], &mut output[round.piece(position)]);
                    match is_large {
                        true => copy_past_cache(theirs, to),
                        false => to.copy_from_slice(theirs),
                    }
                }
                Ok(())
            })?;
            drop(mine);
            pieces.swap(0, 1);
            (before, now) = (now, rounds.next());
        }
        room.keep_pieces(pieces);
        Ok(())
    }

    /// Folds operands that no cache holds, if participants can write to the results of each other: each
    /// folds one part of all. Whether they can, or there are no such operands. Errors: those of the
    /// exchange; memory.
    fn fold_into_all(
        &self,
        folds: &ScalarFolds,
        room: &mut Room,
        memory: &Memory,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) -> Result<bool> {
        let count = self.group.len();
        for (i, (&input, output)) in inputs.iter().zip(outputs).enumerate() {
            if input.len() < STREAM_BYTES {
                continue;
            }
            let fold = folds.of(i);
            let share = input.len().div_ceil(count).next_multiple_of(fold.piece_bytes());
            let mut parts: SmallVec<[&mut [u8]; 8]> = output.chunks_mut(share).collect();
            parts.resize_with(count, Default::default);
            let begin = input.len().min(self.me * share);
            let pieces = room.take_pieces(memory, PIECE_BYTES)?;
            let [mut folded, other] = pieces;
            let is_done = self.meet_with_room(&[input], &mut parts, &mut |given, to| {
                self.check(given, Reads::All, |_, _| input.len(), 1)?;
                let size = share.min(input.len() - begin);
                if to.len() != count || to.iter().any(|to| to.len() != size) {
                    return Err(Error::internal("participants lend other room than they need"));
                }
                let step = PART_BYTES.next_multiple_of(fold.piece_bytes());
                for at in (0..size).step_by(step) {
                    let bytes = step.min(size - at);
                    let folded = &mut folded.as_mut_slice()[..bytes];
                    let theirs = |position: usize| &given.of(position)[0][begin + at..][..bytes];
                    fold.fold(count, theirs, folded, room)?;
                    to.iter_mut().for_each(|to| copy_past_cache(folded, &mut to[at..][..bytes]));
                }
                Ok(())
            })?;
            room.keep_pieces([folded, other]);
            if !is_done {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The rounds for all operands that are cut, but are smaller than `most` bytes.
fn rounds(
    folds: &ScalarFolds,
    inputs: &[&[u8]],
    count: usize,
    most: usize,
) -> impl Iterator<Item = Round> + use<> {
    let size = |(i, input): (usize, &&[u8])| (i, input.len(), folds.of(i).piece_bytes());
    let sizes: SmallVec<[(usize, usize, usize); 8]> = inputs.iter().enumerate().map(size).collect();
    sizes.into_iter().filter(move |&(_, end, _)| (CUT_BYTES..most).contains(&end)).flat_map(
        move |(operand, end, unit)| {
            let share = end.div_ceil(count).next_multiple_of(unit);
            let piece = share.min(PIECE_BYTES);
            (0..end).step_by(piece * count).map(move |begin| Round { operand, begin, end, piece })
        },
    )
}
