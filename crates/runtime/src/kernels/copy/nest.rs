//! The loops of a copy between two orders of memory: which axes are innermost, and the pieces that
//! tasks move.

use std::ops::Range;

use super::super::isa::vectorised;
use super::super::stream::{self, STREAM_BYTES};
use super::{Step, line, tile};
use crate::Threads;

/// Loops over inner loops.
#[derive(Clone, Debug)]
pub(super) struct Nest {
    outer: Vec<Step>,
    /// Where inner loops begin, from each place that the outer ones come to.
    near: Box<[Place]>,
    inner: Inner,
    /// What the inner loop moves at once.
    element_size: usize,
    /// How many pieces the inner loop is cut into.
    pieces: usize,
    /// How many pieces, of all rounds of the outer loops, make a task.
    grain: usize,
    /// The target is too large to stay in the cache, so that it need not pass through it.
    is_streamed: bool,
}

/// Offsets in source and target, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    from: isize,
    to: isize,
}

/// The innermost loops.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Inner {
    /// A row of contiguous bytes.
    Row { bytes: usize },
    /// Short rows of `bytes` bytes, along an axis.
    Rows { axis: Step, bytes: usize },
    /// A plane of very short rows: dense in the source along one axis, in the target along the other.
    PlaneOfRows { source: Step, target: Step, bytes: usize },
    /// One element at a time.
    Elements(Step),
    /// An element of each of a few lines, in turn: both axes are dense in the target.
    Interleaved { line: Step, short: Step },
    /// Every few elements of a line, from the first on, then from the next on, and so forth: the short axis is dense
    /// in the source, and the line in the target.
    Unwoven { line: Step, short: Step },
    /// A plane: the source is contiguous along one axis, the target along the other.
    Plane { source: Step, target: Step },
    /// A plane each of whose axes is made of several: where its lines begin in the target, and its columns in
    /// the source.
    PlaneOfPlaces { lines: Side, columns: Side },
    /// Elements that are neighbours in the target: where each is in the source.
    Places(Box<[isize]>),
}

/// Lines or columns of a plane.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Side {
    /// Where those of a part begin.
    places: Box<[isize]>,
    /// What is outermost of them, if that is too long to be written down: an axis of which a part has only some
    /// steps. Otherwise of one step.
    cut: Step,
    /// How many steps of it a part has; the last part may have fewer.
    steps: usize,
}

/// Bytes that a task moves, about.
const TASK_BYTES: usize = 1 << 18;
/// Bytes of a piece of a row; a multiple of the cache line.
const ROW_PIECE_BYTES: usize = 1 << 16;
/// Elements of a piece of a line.
const LINE_PIECE: usize = 1 << 13;
/// The most dense lines of the source whose elements are interleaved in one pass.
const MAX_INTERLEAVED: usize = 8;
/// Bytes of a piece whose elements are read several times, so that it stays in the first-level cache.
const UNWOVEN_PIECE_BYTES: usize = 1 << 14;
/// The fewest elements of a line of which every few are read in turn. (Where lines are short, those of one remainder
/// are better written one after the other, as they follow each other in the target: 4·16·32 pairs of rows of 32
/// take 106 µs so and 155 in turn.)
const MIN_UNWOVEN: usize = 1 << 8;
/// The most bytes of such a copy: beyond, to write in several places holds it up more than to read several times (a
/// million times four numbers, one thread of a Zen 4: bf16 0.46 ms remainder by remainder, 0.37 so; f32 1.06 and
/// 1.25).
const MAX_UNWOVEN_BYTES: usize = STREAM_BYTES / 2;
/// Elements of a band of a plane, along the target's contiguous axis. The source lines of a band are
/// read side by side.
const BAND: usize = 64;
/// Bytes of the shortest row that is stored past the caches.
const MIN_STREAMED: usize = 1 << 10;
/// Lines of the source that are read side by side in a plane of rows, unless a line's rows fill
/// cache lines by themselves.
const BAND_OF_ROWS: usize = 32;
const MIN_ALONE: usize = 64;
/// Lines of the source that are shorter are read element by element.
const MIN_TILED: usize = MAX_INTERLEAVED + 1;
/// Shorter loops had better not be the innermost.
const MIN_INNER: usize = 16;
/// The fewest lines, and columns, of a plane made of several axes. Fewer leave most of a tile of 16 by 16
/// empty, and go element by element.
const MIN_JOINED: usize = 8;
/// Lines or columns that are enough not to take another axis to them.
const LONG: usize = 64;
/// The most places that are written down for an inner loop.
const MAX_PLACES: usize = 1 << 10;
/// Lines, or columns, of a part of a plane with more of them.
const LINES_OF_A_PART: usize = 1 << 8;
/// Bytes of a piece that takes no longer than to find out where it is.
const SHORT_PIECE: usize = 1 << 10;
/// The most places of inner loops that are written down.
const MAX_NEAR: usize = 1 << 7;

impl Nest {
    /// The loops for these axes, none of which can be merged, in order of the target.
    pub(super) fn new(mut outer: Vec<Step>, mut element_size: usize) -> Self {
        let is_row =
            |step: &Step, size: usize| (step.from, step.to) == (size as isize, size as isize);
        let mut row = None;
        if let Some(&last) = outer.last().filter(|last| is_row(last, element_size)) {
            outer.pop();
            let bytes = last.size * element_size;
            // A row as short as an element is one.
            if [2, 4, 8, 16].contains(&bytes) && !outer.is_empty() {
                element_size = bytes;
            } else if bytes <= line::MAX_ROW && !outer.is_empty() {
                row = Some(Inner::of_rows(&mut outer, bytes));
            } else {
                row = Some(Inner::Row { bytes });
            }
        }
        let inner = match row {
            Some(row) => row,
            None => Inner::of_elements(&mut outer, element_size),
        };
        let (pieces, piece_bytes) = match &inner {
            &Inner::Row { bytes } => (bytes.div_ceil(ROW_PIECE_BYTES), bytes.min(ROW_PIECE_BYTES)),
            &Inner::Rows { axis, bytes } => {
                let rows = rows_of_a_piece(bytes);
                (axis.size.div_ceil(rows), axis.size.min(rows) * bytes)
            }
            &Inner::PlaneOfRows { source, target, bytes } => {
                let band = target.size.min(BAND_OF_ROWS);
                (target.size.div_ceil(BAND_OF_ROWS), source.size * band * bytes)
            }
            &Inner::Elements(step) => {
                (step.size.div_ceil(LINE_PIECE), step.size.min(LINE_PIECE) * element_size)
            }
            &Inner::Interleaved { line, short } => {
                let bytes = line.size.min(LINE_PIECE) * short.size * element_size;
                (line.size.div_ceil(LINE_PIECE), bytes)
            }
            &Inner::Unwoven { line, short } => {
                let bytes = short.size * element_size;
                let elements = elements_of_a_piece(bytes);
                (line.size.div_ceil(elements), line.size.min(elements) * bytes)
            }
            &Inner::Plane { source, target } => {
                let band = target.size.min(BAND);
                (target.size.div_ceil(BAND), source.size * band * element_size)
            }
            Inner::PlaneOfPlaces { lines, columns } => (
                lines.parts() * columns.parts(),
                lines.places.len() * columns.places.len() * element_size,
            ),
            Inner::Places(places) => (1, places.len() * element_size),
        };
        let rounds: usize = outer.iter().map(|step| step.size).product();
        let is_streamed = rounds * pieces * piece_bytes >= STREAM_BYTES;
        let grain = (TASK_BYTES / piece_bytes.max(1)).max(1);
        let most_near = if piece_bytes < SHORT_PIECE { MAX_NEAR } else { 1 };
        let near = take_places(&mut outer, |_, count| count <= most_near);
        Nest { outer, near, inner, element_size, pieces, grain, is_streamed }
    }

    /// Runs all loops.
    ///
    /// # Safety
    ///
    /// Every element of the box at `from` may be read, and every one at `to` written; no two
    /// elements of the target overlap.
    pub(super) unsafe fn run(&self, from: *const u8, to: *mut u8, threads: Threads<'_>) {
        let rounds: usize = self.outer.iter().map(|step| step.size).product();
        let ends = Ends { from, to };
        let (pieces, near) = (self.pieces, self.near.len());
        threads.for_ranges(rounds * near * pieces, self.grain, &|range| {
            vectorised(
                #[inline(always)]
                || {
                    let mut cursor = Cursor::new(&self.outer, range.start / (pieces * near));
                    let (mut piece, mut at) = (range.start % pieces, range.start / pieces % near);
                    for _ in range {
                        // SAFETY: cursor and place are at an element of the box, and this is a piece of
                        // the inner loops there. Tasks have different pieces of the target.
                        unsafe { self.piece(piece, ends.at(&cursor, self.near[at])) };
                        piece += 1;
                        if piece == pieces {
                            (piece, at) = (0, at + 1);
                            if at == near {
                                at = 0;
                                cursor.advance();
                            }
                        }
                    }
                },
            );
            if self.is_streamed {
                stream::finish();
            }
        });
    }

    /// Runs one piece of the inner loops.
    ///
    /// # Safety
    ///
    /// The box of the inner loops at these ends is one that [`Nest::run`] may be given.
    #[inline(always)]
    unsafe fn piece(&self, piece: usize, (from, to): (*const u8, *mut u8)) {
        match &self.inner {
            &Inner::Row { bytes } => {
                let range = part(piece, ROW_PIECE_BYTES, bytes);
                // SAFETY: the range is part of the row, which is inside both arrays; source and
                // target do not overlap, since one is borrowed mutably.
                unsafe {
                    let (from, to) = (from.add(range.start), to.add(range.start));
                    match self.is_streamed && range.len() >= MIN_STREAMED {
                        true => stream::copy(from, to, range.len()),
                        false => from.copy_to_nonoverlapping(to, range.len()),
                    }
                }
            }
            &Inner::Rows { axis, bytes } => {
                let range = part(piece, rows_of_a_piece(bytes), axis.size);
                // SAFETY: these are rows of the box, and no two of the target overlap.
                unsafe { line::rows(axis, bytes, range, (from, to)) };
            }
            &Inner::PlaneOfRows { source, target, bytes } => {
                let band = part(piece, BAND_OF_ROWS, target.size);
                for i in 0..source.size as isize {
                    let from = from.wrapping_offset(i * source.from);
                    let to = to.wrapping_offset(i * source.to);
                    // SAFETY: these are rows of the box, and no two of the target overlap.
                    unsafe { line::rows(target, bytes, band.clone(), (from, to)) };
                }
            }
            &Inner::Elements(step) => {
                let range = part(piece, LINE_PIECE, step.size);
                // SAFETY: these are elements of the box. They may be anywhere: addresses are as
                // unaligned as their distances in bytes.
                unsafe { line::elements(step, self.element_size, range, (from, to)) };
            }
            &Inner::Interleaved { line, short } => {
                let range = part(piece, LINE_PIECE, line.size);
                // SAFETY: these are elements of the box, which is dense in the target along both
                // axes.
                unsafe { line::interleaved((line, short), self.element_size, range, (from, to)) };
            }
            &Inner::Unwoven { line, short } => {
                let elements = elements_of_a_piece(short.size * self.element_size);
                let range = part(piece, elements, line.size);
                for i in 0..short.size as isize {
                    let from = from.wrapping_offset(i * short.from);
                    let to = to.wrapping_offset(i * short.to);
                    // SAFETY: these are elements of the box.
                    unsafe { line::elements(line, self.element_size, range.clone(), (from, to)) };
                }
            }
            &Inner::Plane { source, target } => {
                let band = part(piece, BAND, target.size);
                let plane = tile::Plane {
                    lines: source.size,
                    line: |i| i as isize * source.to,
                    columns: band.len(),
                    column: |i| (band.start + i) as isize * target.from,
                    element_size: self.element_size,
                    from,
                    to: to.wrapping_offset(band.start as isize * target.to),
                };
                // SAFETY: `source` and `target` are axes of the box, the one contiguous in the
                // source and the other in the target.
                unsafe { plane.transpose(self.is_streamed) };
            }
            Inner::PlaneOfPlaces { lines, columns } => {
                let parts = lines.parts();
                let (lines, line) = lines.part(piece % parts);
                let (columns, column) = columns.part(piece / parts);
                let plane = tile::Plane {
                    lines: lines.len(),
                    line: |i| lines[i],
                    columns: columns.len(),
                    column: |i| columns[i],
                    element_size: self.element_size,
                    from: from.wrapping_offset(line.from + column.from),
                    to: to.wrapping_offset(line.to + column.to),
                };
                // SAFETY: these are axes of the box, the lines' contiguous in the source and the columns' in
                // the target.
                unsafe { plane.transpose(false) };
            }
            Inner::Places(places) => {
                // SAFETY: these are axes of the box, contiguous in the target.
                unsafe { line::places(places, self.element_size, (from, to)) };
            }
        }
    }
}

impl Inner {
    /// The inner loops over short rows, taken away from all loops, of which there are some.
    fn of_rows(steps: &mut Vec<Step>, bytes: usize) -> Self {
        let is_dense = |distance: isize| distance == bytes as isize;
        let source = steps.iter().position(|step| is_dense(step.from));
        match (source, steps.last()) {
            // (An axis that is dense in both would be part of the row.)
            (Some(source), Some(&target)) if is_dense(target.to) && bytes < MIN_ALONE => {
                steps.pop();
                Inner::PlaneOfRows { source: steps.remove(source), target, bytes }
            }
            _ => Inner::Rows { axis: longest(steps), bytes },
        }
    }

    /// Loops over several axes at once, taken away from all loops, where single ones would be short: a plane of
    /// axes that follow each other in the source and of others that do in the target, or the latter alone.
    fn of_places(steps: &mut Vec<Step>, element_size: usize) -> Option<Self> {
        let element = element_size as isize;
        let mut lines = Joined::new(element, |step| step.from);
        let mut columns = Joined::new(element, |step| step.to);
        loop {
            let line = lines.next(steps, |at| columns.axes.contains(&at));
            let column = columns.next(steps, |at| lines.axes.contains(&at));
            match (line, column) {
                (Some(at), None) => lines.add(steps, at),
                // An axis that both could have goes to the shorter.
                (Some(at), Some(_)) if lines.size < columns.size => lines.add(steps, at),
                (_, Some(at)) => columns.add(steps, at),
                (None, None) => break,
            }
        }
        let is_plane = lines.size.min(columns.size) >= MIN_JOINED;
        if is_plane && lines.axes.len().max(columns.axes.len()) > 1 {
            let sides =
                (lines.side(steps, |place| place.to), columns.side(steps, |place| place.from));
            let mut axes = [lines.axes, columns.axes].concat();
            axes.sort_unstable();
            for at in axes.into_iter().rev() {
                steps.remove(at);
            }
            return Some(Inner::PlaneOfPlaces { lines: sides.0, columns: sides.1 });
        }
        let last = steps.last()?;
        if is_plane || last.size >= MIN_INNER {
            return None;
        }
        let mut columns = Joined::new(element, |step| step.to);
        while let Some(at) = columns.next(steps, |_| false)
            && columns.size * steps[at].size <= MAX_PLACES
        {
            columns.add(steps, at);
        }
        let places = columns.places(steps).iter().map(|place| place.from).collect();
        // The axes of the result that are innermost are the last.
        steps.truncate(steps.len() - columns.axes.len());
        Some(Inner::Places(places))
    }

    /// The inner loops over elements, taken away from all loops.
    fn of_elements(steps: &mut Vec<Step>, element_size: usize) -> Self {
        let element = element_size as isize;
        let Some(&last) = steps.last() else { return Inner::Row { bytes: element_size } };
        let dense = |step: &Step| step.to == last.to * last.size as isize;
        let lines = steps.len().checked_sub(2).filter(|&at| dense(&steps[at]));
        // Whether a tile has as many lines. (What is repeated has none.)
        let has_tiles = element_size == 8 && super::super::isa::has_avx512();
        let fills_tile = |step: &Step| has_tiles && step.size == 8 && step.from != 0;
        let is_few = |step: &Step| step.size <= MAX_INTERLEAVED && !fills_tile(step);
        if let Some(at) = lines.filter(|_| last.to == element && is_few(&last))
            && (steps[at].from == element || last.from == 0)
        {
            let line = steps.remove(at);
            steps.pop();
            return Inner::Interleaved { line, short: last };
        }
        let is_short = |step: &Step| {
            step.from == element && last.from == element * step.size as isize && is_few(step)
        };
        let elements: usize = steps.iter().map(|step| step.size).product();
        if last.to == element
            && last.size >= MIN_UNWOVEN
            && elements * element_size <= MAX_UNWOVEN_BYTES
            && let Some(at) = steps.iter().position(is_short)
        {
            steps.pop();
            return Inner::Unwoven { line: last, short: steps.remove(at) };
        }
        if last.to == element
            && let Some(joined) = Inner::of_places(steps, element_size)
        {
            return joined;
        }
        let is_line =
            |step: &Step| step.from == element && (step.size >= MIN_TILED || fills_tile(step));
        let line = steps.iter().position(is_line);
        let is_plane = last.to == element && last.from != 0 && last.size > 3;
        if let (Some(line), true) = (line, is_plane) {
            // The last axis has another distance in the source, or it would have been a row.
            steps.pop();
            return Inner::Plane { source: steps.remove(line), target: last };
        }
        Inner::Elements(longest(steps))
    }
}

/// Axes that follow each other in one of the arrays.
struct Joined {
    /// Which of all, innermost first.
    axes: Vec<usize>,
    /// The product of their sizes.
    size: usize,
    /// The distance of an axis that follows.
    distance: isize,
    /// The distance of an axis' neighbours in this array.
    of: fn(&Step) -> isize,
}

impl Joined {
    /// No axes, of elements of so many bytes.
    fn new(element: isize, of: fn(&Step) -> isize) -> Self {
        Joined { axes: Vec::new(), size: 1, distance: element, of }
    }

    /// The axis that follows, if there is one that is not `taken`, and more are needed.
    fn next(&self, steps: &[Step], taken: impl Fn(usize) -> bool) -> Option<usize> {
        let follows = |step: &Step| (self.of)(step) == self.distance;
        let at = steps.iter().position(follows).filter(|&at| !taken(at))?;
        (self.size < LONG).then_some(at)
    }

    fn add(&mut self, steps: &[Step], at: usize) {
        self.axes.push(at);
        self.size *= steps[at].size;
        self.distance *= steps[at].size as isize;
    }

    /// All of these axes as lines or columns of a plane.
    fn side(&self, steps: &[Step], place: fn(&Place) -> isize) -> Side {
        let mut places = vec![Place { from: 0, to: 0 }];
        let mut side =
            Side { places: Box::default(), cut: Step { size: 1, from: 0, to: 0 }, steps: 1 };
        for &at in &self.axes {
            let mut step = steps[at];
            if places.len() * step.size > MAX_PLACES {
                (side.cut, side.steps) = (step, LINES_OF_A_PART.div_ceil(places.len()));
                step.size = side.steps;
            }
            append(&mut places, step);
        }
        side.places = places.iter().map(place).collect();
        side
    }

    /// Where elements are, in the order of this array.
    fn places(&self, steps: &[Step]) -> Vec<Place> {
        let mut places = vec![Place { from: 0, to: 0 }];
        self.axes.iter().for_each(|&at| append(&mut places, steps[at]));
        places
    }
}

impl Side {
    /// How many parts there are.
    fn parts(&self) -> usize {
        self.cut.size.div_ceil(self.steps)
    }

    /// The places of a part, counted from the place that comes with them.
    #[inline(always)]
    fn part(&self, index: usize) -> (&[isize], Place) {
        let range = part(index, self.steps, self.cut.size);
        let start = range.start as isize;
        let places = &self.places[..self.places.len() / self.steps * range.len()];
        (places, Place { from: start * self.cut.from, to: start * self.cut.to })
    }
}

/// Takes the last axes away, as long as `joins` allows one with how many places there are with it: all places
/// of these axes, of the last first.
fn take_places(steps: &mut Vec<Step>, joins: impl Fn(&Step, usize) -> bool) -> Box<[Place]> {
    let mut places = vec![Place { from: 0, to: 0 }];
    while let Some(step) = steps.pop_if(|step| joins(step, places.len() * step.size)) {
        append(&mut places, step);
    }
    places.into()
}

/// Lets an axis run around places.
fn append(places: &mut Vec<Place>, step: Step) {
    let count = places.len();
    for i in 1..step.size as isize {
        for at in 0..count {
            let Place { from, to } = places[at];
            places.push(Place { from: from + i * step.from, to: to + i * step.to });
        }
    }
}

/// Takes the innermost loop away, or a much longer one if that is short.
///
/// # Panics
///
/// If there is none.
fn longest(steps: &mut Vec<Step>) -> Step {
    let last = steps[steps.len() - 1].size;
    let longest = steps.iter().rposition(|step| last < MIN_INNER && step.size > 4 * last);
    steps.remove(longest.unwrap_or(steps.len() - 1))
}

/// The number of rows of `bytes` bytes that a piece has.
fn rows_of_a_piece(bytes: usize) -> usize {
    ROW_PIECE_BYTES / bytes
}

/// The number of elements of a line that a piece has, of `bytes` bytes from one to the next in the source.
fn elements_of_a_piece(bytes: usize) -> usize {
    UNWOVEN_PIECE_BYTES / bytes
}

/// The numbers in piece `piece` of `0..count`, cut into pieces of `size`, of which the last may be
/// shorter.
fn part(piece: usize, size: usize, count: usize) -> Range<usize> {
    piece * size..count.min((piece + 1) * size)
}

/// Where the box begins in both arrays.
struct Ends {
    from: *const u8,
    to: *mut u8,
}

// SAFETY: two addresses; whoever reads or writes there answers for it.
unsafe impl Sync for Ends {}

impl Ends {
    /// Where the inner loops begin.
    ///
    /// # Safety
    ///
    /// The cursor runs over the outer axes of the box, and the place is one of those near.
    unsafe fn at(&self, cursor: &Cursor<'_>, place: Place) -> (*const u8, *mut u8) {
        let (from, to) = (cursor.from + place.from, cursor.to + place.to);
        // SAFETY: an element of the box is inside both arrays.
        unsafe { (self.from.offset(from), self.to.offset(to)) }
    }
}

/// A round of the outer loops.
struct Cursor<'a> {
    axes: &'a [Step],
    index: Vec<usize>,
    from: isize,
    to: isize,
}

impl<'a> Cursor<'a> {
    fn new(axes: &'a [Step], mut round: usize) -> Self {
        let mut cursor = Cursor { axes, index: vec![0; axes.len()], from: 0, to: 0 };
        for (axis, index) in axes.iter().zip(&mut cursor.index).rev() {
            *index = round % axis.size;
            round /= axis.size;
            cursor.from += *index as isize * axis.from;
            cursor.to += *index as isize * axis.to;
        }
        cursor
    }

    fn advance(&mut self) {
        for (axis, index) in self.axes.iter().zip(&mut self.index).rev() {
            *index += 1;
            self.from += axis.from;
            self.to += axis.to;
            if *index < axis.size {
                return;
            }
            *index = 0;
            self.from -= axis.size as isize * axis.from;
            self.to -= axis.size as isize * axis.to;
        }
    }
}
