//! Bytes that the threads of a group lend each other, again and again.
//!
//! Participants of a collective operation read each other's arrays where they lie: nothing is copied
//! first, however large they are, and nothing is allocated from the second visit on. They may lend each
//! other room to write to as well: a part of it for each.

use std::cell::UnsafeCell;
use std::fmt;
use std::hint;
use std::slice;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use smallvec::SmallVec;

/// Where the members of a group lend each other bytes. Members are numbered; each comes as often as
/// all others, and each time reads what all have brought.
///
/// A visit has four steps, which `Place::progress` counts: a member comes and shows its slices;
/// waits until all have come; reads; and waits until all have read. Only then do its slices belong to
/// it alone again.
pub struct Board {
    places: Box<[Place]>,
}

/// What one member shows the others. Each has cache lines of its own (two: they are fetched in pairs).
#[repr(align(128))]
#[derive(Default)]
struct Place {
    /// [`STEPS`] for each visit that has ended, and the step of the present one.
    progress: AtomicU64,
    /// Whether a call is under way: only its thread changes `slices` and `room`.
    is_taken: AtomicBool,
    /// One more than `progress` was before the visit that the member left before all had read; 0 if it has
    /// left none. Then it never comes again, and its slices are read no more.
    left: AtomicU64,
    slices: UnsafeCell<Vec<(*const u8, usize)>>,
    /// For each member, what it alone may write to; or nothing at all.
    room: UnsafeCell<Vec<(*mut u8, usize)>>,
}

impl Place {
    fn is_gone(&self) -> bool {
        self.left.load(Ordering::SeqCst) > 0
    }
}

/// What a visit adds to [`Place::progress`] in all.
const STEPS: u64 = 3;
/// The member has come: its slices are there.
const CAME: u64 = 1;
/// It reads the others' slices.
const READS: u64 = 2;

// SAFETY: the pointers are those of `&[u8]`, which may be read from any thread, and of `&mut [u8]`, each of
// which one thread alone uses. `slices` and `room` are changed only by the thread that has set `is_taken`,
// before it says `CAME`, and read by others only from then until they end the visit, which
// `Board::meet_with_room` waits for before it changes them again or returns.
unsafe impl Send for Board {}
// SAFETY: other threads only read `slices` and `room`, when the rules of `Send` let them; all else is
// atomic.
unsafe impl Sync for Board {}

/// How a member waits for the others in [`Board::meet`].
pub trait Waits {
    /// Why a wait ended early.
    type Error;

    /// Returns when all have come, which `have_come` tells. Errors: it is not to wait any longer.
    fn until_come(&self, have_come: &dyn Fn() -> bool) -> Result<(), Self::Error>;

    /// Returns when all have read, which `have_read` tells. They never wait meanwhile.
    fn until_read(&self, have_read: &dyn Fn() -> bool);

    /// This member has come, or has read. `are_all` tells whether it was the last.
    fn moved(&self, are_all: &dyn Fn() -> bool);
}

/// Why members did not meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotMet<E> {
    /// There is no member of this number, or another call is under way for it.
    Taken,
    /// This member had left before.
    Gone(usize),
    /// What the waits, or the reader, returned.
    Failed(E),
}

impl Board {
    /// A board for `members` members.
    pub fn new(members: usize) -> Self {
        Board { places: (0..members).map(|_| Place::default()).collect() }
    }

    /// How often a member has come.
    pub fn visits(&self, member: usize) -> u64 {
        let progress = self.places.get(member).map_or(0, |p| p.progress.load(Ordering::SeqCst));
        progress.div_ceil(STEPS)
    }

    /// A number that grows with every step of every member.
    pub fn progress(&self) -> u64 {
        let each = self.places.iter().map(|place| place.progress.load(Ordering::SeqCst));
        each.fold(0, u64::wrapping_add)
    }

    /// A visit of `member`, who brings `mine`: waits until all have come, calls `read` once with the
    /// slices of all, one member's after the other's, and where those of each end; then waits until all
    /// have read. `read` should wait for nothing: the others wait for it.
    ///
    /// Errors: those of `waits` and of `read`, and members who are not there. After an error the member
    /// does not come again: its visits fail.
    pub fn meet<W: Waits>(
        &self,
        member: usize,
        mine: &[&[u8]],
        waits: &W,
        read: impl FnOnce(&[&[u8]], &[usize]) -> Result<(), W::Error>,
    ) -> Result<(), NotMet<W::Error>> {
        self.meet_with_room(member, mine, &mut [], waits, |slices, ends, _| read(slices, ends))
    }

    /// The same, where each member lends `room` as well: a slice for each member, in order, to which that
    /// one writes; or none at all. `read` also gets what each member lends to this one, in order; what one
    /// without room lends is empty. Errors: as for [`Board::meet`]; of a member that lends room also if
    /// another left this visit, as what that one had to write may be missing.
    pub fn meet_with_room<W: Waits>(
        &self,
        member: usize,
        mine: &[&[u8]],
        room: &mut [&mut [u8]],
        waits: &W,
        read: impl FnOnce(&[&[u8]], &[usize], &mut [&mut [u8]]) -> Result<(), W::Error>,
    ) -> Result<(), NotMet<W::Error>> {
        let place = self.places.get(member).ok_or(NotMet::Taken)?;
        if place.is_gone() {
            return Err(NotMet::Gone(member));
        }
        if place.is_taken.swap(true, Ordering::SeqCst) {
            return Err(NotMet::Taken);
        }
        let before = place.progress.load(Ordering::SeqCst);
        // SAFETY: `is_taken` was false, so no other thread changes them; nobody reads them, since the
        // last visit ended when all had read (one that ends early leaves `is_taken` set).
        let slices = unsafe { &mut *place.slices.get() };
        slices.clear();
        slices.extend(mine.iter().map(|slice| (slice.as_ptr(), slice.len())));
        // SAFETY: `is_taken` was false, so no other thread changes it; who reads it reads `slices` as well.
        let lent = unsafe { &mut *place.room.get() };
        lent.clear();
        lent.extend(room.iter_mut().map(|slice| (slice.as_mut_ptr(), slice.len())));
        let visit = Visit { board: self, member, before, is_whole: false };
        self.step(member, before + CAME, waits);
        let have_come = || self.have(before + CAME);
        while !have_come() {
            waits.until_come(&have_come).map_err(NotMet::Failed)?;
        }
        place.progress.store(before + READS, Ordering::SeqCst);
        self.read(member, read)?;
        self.step(member, before + STEPS, waits);
        let have_read = || self.have(before + STEPS);
        while !have_read() {
            waits.until_read(&have_read);
        }
        // Who left has perhaps not written all that it should.
        let left = |place: &Place| place.left.load(Ordering::SeqCst) == before + 1;
        if let Some(gone) = self.places.iter().position(left).filter(|_| !room.is_empty()) {
            return Err(NotMet::Gone(gone));
        }
        visit.end();
        Ok(())
    }

    /// Reads the slices of all, of a thread that has said [`READS`] after all have come.
    fn read<E>(
        &self,
        member: usize,
        read: impl FnOnce(&[&[u8]], &[usize], &mut [&mut [u8]]) -> Result<(), E>,
    ) -> Result<(), NotMet<E>> {
        if let Some(gone) = self.places.iter().position(Place::is_gone) {
            return Err(NotMet::Gone(gone));
        }
        let mut slices = SmallVec::<[&[u8]; 16]>::new();
        let mut ends = SmallVec::<[usize; 8]>::new();
        let mut rooms = SmallVec::<[&mut [u8]; 8]>::new();
        for place in &self.places {
            // SAFETY: the member has come and is not gone, so its slices are borrowed by a call of
            // `meet`. That call returns when all have ended the visit, or once it has set `left`
            // and then seen that nobody reads: this thread said that it reads before it saw that
            // `left` is not set, so (both are sequentially consistent) that call waits for this
            // thread to end the visit, longer than `slices` lives (`read` cannot keep them, whatever
            // their lifetime).
            let theirs = unsafe { &*place.slices.get() };
            slices.extend(theirs.iter().map(|&(start, len)| {
                // SAFETY: the slices are borrowed by the member's call of `meet`, which waits for this thread.
                unsafe { slice::from_raw_parts(start, len) }
            }));
            ends.push(slices.len());
            // SAFETY: the member changes `room` together with `slices`, so it does not while this thread reads.
            let room = unsafe { &*place.room.get() };
            let own = room.get(member).map(|&(start, len)| {
                // SAFETY: the slice is borrowed mutably by the member's call, together with those for the
                // other members, so it overlaps none of them; that call waits for this thread. Its position
                // in the list is this thread's member, for which one call at a time is under way
                // (`is_taken`), so that nobody else makes a slice of it.
                unsafe { slice::from_raw_parts_mut(start, len) }
            });
            rooms.push(own.unwrap_or_default());
        }
        read(&slices, &ends, &mut rooms).map_err(NotMet::Failed)
    }

    /// Whether every member has come to this progress.
    fn have(&self, progress: u64) -> bool {
        self.places.iter().all(|place| place.progress.load(Ordering::SeqCst) >= progress)
    }

    fn step(&self, member: usize, progress: u64, waits: &impl Waits) {
        self.places[member].progress.store(progress, Ordering::SeqCst);
        waits.moved(&|| self.have(progress));
    }
}

/// A visit that is under way. If it ends early, a panic included, its member is gone.
struct Visit<'a> {
    board: &'a Board,
    member: usize,
    before: u64,
    is_whole: bool,
}

impl Visit<'_> {
    fn end(mut self) {
        self.is_whole = true;
        self.board.places[self.member].is_taken.store(false, Ordering::SeqCst);
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        if self.is_whole {
            return;
        }
        let place = &self.board.places[self.member];
        place.left.store(self.before + 1, Ordering::SeqCst);
        // It reads nothing any more, for which others wait.
        place.progress.store(self.before + STEPS, Ordering::SeqCst);
        let reads = |other: &Place| other.progress.load(Ordering::SeqCst) == self.before + READS;
        let mut looks = 0u32;
        while self.board.places.iter().any(reads) {
            looks += 1;
            match looks {
                0..100 => hint::spin_loop(),
                100..200 => thread::yield_now(),
                _ => thread::sleep(Duration::from_micros(100)),
            }
        }
    }
}

impl fmt::Debug for Board {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let progress = self.places.iter().map(|place| place.progress.load(Ordering::SeqCst));
        f.debug_list().entries(progress).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc::channel;

    use super::*;

    /// Looks again and again; gives up when told.
    #[derive(Default)]
    struct Looks {
        gives_up: AtomicBool,
    }

    impl Waits for Looks {
        type Error = &'static str;

        fn until_come(&self, have_come: &dyn Fn() -> bool) -> Result<(), &'static str> {
            while !have_come() {
                if self.gives_up.load(Ordering::SeqCst) {
                    return Err("given up");
                }
                thread::yield_now();
            }
            Ok(())
        }

        fn until_read(&self, _: &dyn Fn() -> bool) {
            thread::yield_now();
        }

        fn moved(&self, _: &dyn Fn() -> bool) {}
    }

    #[test]
    fn everybody_reads_what_everybody_brings_each_time() {
        let (board, waits) = (Board::new(3), Looks::default());
        let visits = if cfg!(miri) { 5 } else { 500 };
        let member = |me: usize| {
            for visit in 0..visits {
                let mine = [vec![me as u8; 3], vec![visit as u8; me]];
                let mine: Vec<&[u8]> = mine.iter().map(Vec::as_slice).collect();
                let outcome = board.meet(me, &mine, &waits, |slices, ends| {
                    assert_eq!(ends, [2, 4, 6]);
                    for (member, theirs) in slices.chunks(2).enumerate() {
                        assert_eq!(theirs[0], [member as u8; 3]);
                        assert_eq!(theirs[1], vec![visit as u8; member]);
                    }
                    Ok(())
                });
                assert_eq!(outcome, Ok(()));
                assert_eq!(board.visits(me), visit + 1);
            }
        };
        thread::scope(|scope| (0..3).for_each(|me| drop(scope.spawn(move || member(me)))));
        assert_eq!(board.progress(), 3 * STEPS * visits);
    }

    #[test]
    fn room_that_somebody_did_not_fill_is_an_error_of_all() {
        let (board, waits) = (Board::new(3), Looks::default());
        let member = |me: usize| {
            let mut own = [[0u8; 2]; 3];
            let mut room: Vec<&mut [u8]> = own.iter_mut().map(|part| &mut part[..]).collect();
            board.meet_with_room(me, &[], &mut room, &waits, |_, _, rooms| {
                if me == 1 {
                    return Err("half of it is not there");
                }
                rooms.iter_mut().for_each(|room| room.fill(1));
                Ok(())
            })
        };
        let outcomes = thread::scope(|scope| {
            let all: Vec<_> = (0..3).map(|me| scope.spawn(move || member(me))).collect();
            all.into_iter().map(|thread| thread.join().expect("a member")).collect::<Vec<_>>()
        });
        assert_eq!(outcomes[1], Err(NotMet::Failed("half of it is not there")));
        // (Who finds that out is gone as well, for those who look later.)
        assert!(matches!(outcomes[0], Err(NotMet::Gone(1 | 2))), "{outcomes:?}");
        assert!(matches!(outcomes[2], Err(NotMet::Gone(0 | 1))), "{outcomes:?}");
    }

    #[test]
    fn everybody_writes_to_the_part_that_everybody_lends_it() {
        let (board, waits) = (Board::new(3), Looks::default());
        let visits = if cfg!(miri) { 5 } else { 500 };
        let member = |me: usize| {
            for visit in 0..visits {
                let mut own = [[0u8; 2]; 3];
                // One of them lends nothing every now and then.
                let lends = me != 1 || visit % 3 > 0;
                let room = own.iter_mut().map(|part| &mut part[..]);
                let mut room: Vec<&mut [u8]> = room.take(if lends { 3 } else { 0 }).collect();
                let outcome = board.meet_with_room(me, &[], &mut room, &waits, |_, _, rooms| {
                    let lengths: Vec<usize> = rooms.iter().map(|room| room.len()).collect();
                    assert_eq!(lengths, [2, if visit % 3 > 0 { 2 } else { 0 }, 2]);
                    rooms.iter_mut().for_each(|room| room.fill((visit + me) as u8));
                    Ok(())
                });
                assert_eq!(outcome, Ok(()));
                let written = [0, 1, 2].map(|writer| [(visit + writer) as u8; 2]);
                assert_eq!(own, if lends { written } else { [[0; 2]; 3] });
            }
        };
        thread::scope(|scope| (0..3).for_each(|me| drop(scope.spawn(move || member(me)))));
    }

    #[test]
    fn who_leaves_early_is_gone_and_is_read_no_more() {
        let (board, waits) = (Board::new(2), Looks::default());
        waits.gives_up.store(true, Ordering::SeqCst);
        let meet = |me, mine: &[&[u8]]| board.meet(me, mine, &waits, |_, _| Ok(()));
        assert_eq!(meet(0, &[&[1]]), Err(NotMet::Failed("given up")));
        assert_eq!(meet(1, &[&[2]]), Err(NotMet::Gone(0)));
        assert_eq!([meet(0, &[]), meet(1, &[])], [Err(NotMet::Gone(0)), Err(NotMet::Gone(1))]);
        assert_eq!(meet(2, &[]), Err(NotMet::Taken));
    }

    #[test]
    fn one_call_at_a_time_is_under_way_for_a_member() {
        let (board, waits) = (Board::new(1), Looks::default());
        let outcome = board.meet(0, &[], &waits, |_, _| {
            assert_eq!(board.meet(0, &[], &waits, |_, _| Ok(())), Err(NotMet::Taken));
            Ok(())
        });
        assert_eq!(outcome, Ok(()));
    }

    #[test]
    fn whoever_leaves_by_a_panic_waits_for_those_who_read_and_write() {
        let (board, waits) = (Board::new(2), Looks::default());
        let (begun, begin) = channel();
        let mut own = [[0u8; 2]; 2];
        thread::scope(|scope| {
            let (board, waits) = (&board, &waits);
            scope.spawn(move || {
                let outcome =
                    board.meet_with_room(1, &[&[2]], &mut [], waits, |slices, _, rooms| {
                        begun.send(()).expect("a test");
                        thread::sleep(Duration::from_millis(20));
                        assert_eq!(slices, [&[1u8][..], &[2]]);
                        assert_eq!([rooms[0].len(), rooms[1].len()], [2, 0]);
                        rooms[0].fill(7);
                        Ok(())
                    });
                assert_eq!(outcome, Ok(()));
            });
            let room = own.iter_mut().map(|part| &mut part[..]);
            let mut room: Vec<&mut [u8]> = room.collect();
            let fails = || {
                board.meet_with_room(0, &[&[1u8][..]], &mut room, waits, |_, _, _| {
                    begin.recv().expect("a reader");
                    panic!("on purpose")
                })
            };
            assert!(catch_unwind(AssertUnwindSafe(fails)).is_err());
            assert_eq!(own, [[0, 0], [7, 7]], "the other was done before");
        });
        assert_eq!(board.meet(0, &[], &waits, |_, _| Ok(())), Err(NotMet::Gone(0)));
    }
}
