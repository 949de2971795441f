//! What has come for a run, until its participants take it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use helio::services::{Channel, Collectives};
use helio::{Block, DeviceAssignment, Error, HostQueues, Literal, Participant, Result};

use crate::deeds::Deeds;
use crate::head::{Give, PointId, hash};
use crate::mutual::{Question, RemoteWait};
use crate::processes::Shared;
use crate::value;
use crate::wire::Message;

/// What the slices of a message begin at multiples of, in its body.
const ALIGN: usize = Block::ALIGN;

/// A run of this process and others. It may exist before it begins here: others may be faster.
#[derive(Default)]
pub(crate) struct Run {
    /// What it is here, once it has begun.
    pub(crate) begun: Option<Begun>,
    points: HashMap<PointId, Point>,
    /// What its collectives are yet to be told, in order.
    pub(crate) news: Vec<News>,
    /// Whose run has ended.
    left: HashSet<Participant>,
    /// Who waits for a participant of another process.
    pub(crate) waits: HashMap<Participant, RemoteWait>,
}

/// What a run is in this process.
#[derive(Clone)]
pub(crate) struct Begun {
    pub(crate) collectives: Arc<dyn Collectives>,
    pub(crate) host: Arc<HostQueues>,
    pub(crate) assignment: Arc<DeviceAssignment>,
    pub(crate) places: Arc<Places>,
    pub(crate) deeds: Arc<Deeds>,
}

/// Which process runs each participant of a run.
pub(crate) struct Places {
    /// The process of each participant, by number.
    pub(crate) of: Vec<usize>,
    /// The processes that run any, in order.
    pub(crate) processes: Vec<usize>,
    /// These processes as a hash, by which they know their runs.
    pub(crate) id: u64,
}

impl Places {
    /// Those of the participants of a run, by number.
    pub(crate) fn new(of: Vec<usize>) -> Self {
        let mut processes = of.clone();
        processes.sort_unstable();
        processes.dedup();
        let id = hash(processes.iter().map(|&process| process as u64));
        Places { of, processes, id }
    }

    /// Errors: `InvalidArgument` unless the participants that `rank`, one of `size` processes, runs are
    /// those that the assignment has here.
    pub(crate) fn check(
        &self,
        assignment: &DeviceAssignment,
        rank: usize,
        size: usize,
    ) -> Result<()> {
        let (count, found) = (assignment.participants(), self.of.len());
        if count != found {
            return Err(Error::invalid(format!(
                "places of {found} participants, which are {count}"
            )));
        }
        if let Some(&process) = self.processes.iter().find(|&&process| process >= size) {
            let detail = format!("a participant in process {process}, of {size} from 0");
            return Err(Error::invalid(detail));
        }
        let differs = |number: &usize| assignment.is_here(*number) != (self.of[*number] == rank);
        match (0..count).find(differs) {
            None => Ok(()),
            Some(number) => {
                let is_here = if assignment.is_here(number) { "has it" } else { "lacks it" };
                Err(Error::invalid(format!(
                    "participant {number} runs in process {}; the assignment of process {rank} \
                     {is_here}",
                    self.of[number]
                )))
            }
        }
    }
}

/// What has happened in another process.
pub(crate) enum News {
    /// A participant's run has ended.
    Left(Participant, Result<()>),
    /// A value for a channel.
    Value { channel: Channel, shape: String, sizes: Vec<u64>, body: Option<Arc<Block>> },
    /// Another process asks for whom a participant waits.
    Asked(Question),
}

/// Where the participants of a group give each other slices.
struct Point {
    arrivals: Arc<Arrivals>,
    /// What those at each position have given and somebody here has not taken yet.
    given: Vec<VecDeque<Given>>,
}

/// For each position of a group, one more than the last visit of which something has come.
pub(crate) type Arrivals = [AtomicU64];

struct Given {
    visit: u64,
    /// How many participants here are yet to take it.
    takers: u32,
    slices: Arc<Slices>,
}

impl Point {
    fn new(group: usize) -> Self {
        Point {
            arrivals: (0..group).map(|_| AtomicU64::new(0)).collect(),
            given: (0..group).map(|_| VecDeque::new()).collect(),
        }
    }
}

impl Run {
    /// What has come of each position of a group.
    pub(crate) fn arrivals(&mut self, point: PointId, group: usize) -> Arc<Arrivals> {
        self.points.entry(point).or_insert_with(|| Point::new(group)).arrivals.clone()
    }

    /// Keeps what a participant has given, until all have taken it for whom it is.
    pub(crate) fn keep(&mut self, give: Give, message: Message, rest: usize) {
        let point =
            self.points.entry(give.point).or_insert_with(|| Point::new(give.group as usize));
        let from = give.from as usize;
        let (Some(arrived), Some(given)) = (point.arrivals.get(from), point.given.get_mut(from))
        else {
            return;
        };
        let (visit, takers) = (give.visit, give.takers);
        let slices = Arc::new(Slices::new(give, message, rest));
        given.push_back(Given { visit, takers, slices });
        arrived.store(visit + 1, Ordering::Release);
    }

    /// What the participant at a position gave at its n-th visit, for one of those for whom it is.
    pub(crate) fn take(&mut self, point: PointId, from: usize, visit: u64) -> Option<Arc<Slices>> {
        let given = self.points.get_mut(&point)?.given.get_mut(from)?;
        let at = given.iter().position(|given| given.visit == visit)?;
        let found = &mut given[at];
        found.takers = found.takers.saturating_sub(1);
        if found.takers > 0 {
            return Some(found.slices.clone());
        }
        given.remove(at).map(|given| given.slices)
    }

    /// Notes that a participant's run has ended; whether it had not before.
    pub(crate) fn leave(&mut self, who: Participant) -> bool {
        self.left.insert(who)
    }

    /// Whether all participants' runs have ended, and this process has heard of it.
    pub(crate) fn is_over(&self) -> bool {
        let count = self.begun.as_ref().map(|begun| begun.assignment.participants());
        self.news.is_empty() && count.is_some_and(|count| self.left.len() >= count)
    }
}

impl Begun {
    /// The number of a participant.
    pub(crate) fn number(&self, who: Participant) -> usize {
        who.replica * self.assignment.partitions() + who.partition
    }

    /// Whether this process runs a participant.
    pub(crate) fn is_here(&self, who: Participant) -> bool {
        self.assignment.is_here(self.number(who))
    }

    /// Tells of what has happened in another process. Not called with a lock held: whoever is told
    /// has locks of its own.
    pub(crate) fn tell(&self, shared: &Shared, news: News) {
        match news {
            News::Asked(question) => shared.answer(self, question),
            News::Left(who, outcome) => self.collectives.leave(who, outcome.as_ref().map(|&()| ())),
            News::Value { channel, shape, sizes, body } => {
                let bytes = body.as_ref().map_or(&[][..], |block| block.as_slice());
                let value = value::read(&shape, &sizes, bytes);
                let delivered = value.and_then(|value: Literal| self.host.deliver(channel, value));
                // Nobody who would receive it can be told; that it does not come, they notice.
                if let (Ok(()), Some((source, target))) = (delivered, channel.pair) {
                    let [source, target] = [source, target].map(|i| self.assignment.participant(i));
                    self.deeds.lock().note_delivered(source, target);
                }
            }
        }
    }
}

/// What a participant has given: its slices, as far as they were sent.
pub(crate) struct Slices {
    count: usize,
    /// Number, and where it lies.
    sent: Vec<(usize, Range<usize>)>,
    message: Message,
}

impl Slices {
    /// Those of a message, whose head has small ones from byte `rest` on.
    fn new(give: Give, message: Message, rest: usize) -> Self {
        let sizes: Vec<usize> = give.sent.iter().map(|&(_, bytes)| bytes as usize).collect();
        let is_inline = message.body.is_none();
        let (ranges, _) = layout(&sizes, if is_inline { 1 } else { ALIGN });
        let base = if is_inline { rest } else { 0 };
        let moved = ranges.into_iter().map(|r| r.start + base..r.end + base);
        let sent = give.sent.iter().map(|&(slice, _)| slice as usize).zip(moved).collect();
        Slices { count: give.slices as usize, sent, message }
    }

    /// Adds them to a list, one for each; those that were not sent are empty.
    pub(crate) fn list<'a>(&'a self, to: &mut impl Extend<&'a [u8]>) {
        let bytes = match &self.message.body {
            Some(body) => body.as_slice(),
            None => &self.message.head,
        };
        let mut sent = self.sent.iter().peekable();
        for slice in 0..self.count {
            let range =
                sent.next_if(|(number, _)| *number == slice).map(|(_, range)| range.clone());
            let bytes = range.and_then(|range| bytes.get(range)).unwrap_or_default();
            to.extend([bytes]);
        }
    }
}

/// Where slices of these sizes lie one after the other, each at a multiple of `align`, and how many
/// bytes they take.
pub(crate) fn layout(sizes: &[usize], align: usize) -> (Vec<Range<usize>>, usize) {
    let mut end = 0usize;
    let range = |&size: &usize| {
        let begin = end.next_multiple_of(align);
        end = begin.saturating_add(size);
        begin..end
    };
    let ranges = sizes.iter().map(range).collect();
    (ranges, end)
}
