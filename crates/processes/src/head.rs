//! What messages say, as bytes. All processes run the same program on the same kind of machine, so
//! numbers are in its own byte order.

use helio::services::{Channel, RendezvousId};
use helio::{Code, Error, Participant, Result};

use crate::mutual::{Answer, Awaited, Origin, Question};

/// What a message says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Head {
    /// What a participant gives at a rendezvous.
    Give(Give),
    /// The run of a participant has ended: how.
    Leave { run: RunId, who: Participant, error: Option<(Code, String)> },
    /// A value for a participant's channel; its arrays are in the body.
    Send { run: RunId, channel: Channel, shape: String, sizes: Vec<u64> },
    /// The process lives; a number that grows whenever one of its participants moves.
    Beat { moved: u64 },
    /// For whom does a participant wait?
    Ask(Question),
    /// Where a wait leads.
    Answer(Answer),
    /// What the process gives all, or the first, outside of runs: the body.
    Part { sequence: u64 },
    /// The process ends; nothing comes from it any more. Whether it waits until all others end, too.
    Bye { in_order: bool },
}

/// What a participant gives at a rendezvous.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Give {
    pub(crate) run: RunId,
    pub(crate) point: PointId,
    /// How many are in the group.
    pub(crate) group: u32,
    /// The position of who gives.
    pub(crate) from: u32,
    /// How often it has come before.
    pub(crate) visit: u64,
    /// How many participants of the receiving process take it.
    pub(crate) takers: u32,
    /// How many slices it gives in all.
    pub(crate) slices: u32,
    /// Those that are sent: number and bytes.
    pub(crate) sent: Vec<(u32, u64)>,
}

/// A run, by which all processes that have a part in it know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RunId {
    /// Which processes have a part in it, as a hash.
    pub(crate) processes: u64,
    /// How many runs these have begun before.
    pub(crate) number: u64,
}

/// A rendezvous of a run: its operation, and which of the operation's groups it is, as a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PointId {
    pub(crate) operation: RendezvousId,
    pub(crate) group: u64,
}

impl PointId {
    /// That of an operation and a group.
    pub(crate) fn new(operation: RendezvousId, group: &[Participant]) -> Self {
        // Groups of one operation differ in their first participant, or are few.
        let numbers = group.iter().flat_map(|who| [who.replica as u64, who.partition as u64]);
        PointId { operation, group: hash(numbers) }
    }
}

/// The same number for the same numbers, in every process: FNV-1a.
pub(crate) fn hash(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers
        .fold(0xcbf2_9ce4_8422_2325, |hash, number| (hash ^ number).wrapping_mul(0x0100_0000_01b3))
}

impl Head {
    /// As bytes, which [`Head::read`] reads.
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = Writer(Vec::with_capacity(96));
        match self {
            Head::Give(give) => {
                out.number(0);
                give.write(&mut out);
            }
            Head::Leave { run, who, error } => {
                out.number(1).run(*run).participant(*who);
                match error {
                    None => out.number(0),
                    Some((code, text)) => out.number(*code as u64).text(text),
                };
            }
            Head::Send { run, channel, shape, sizes } => {
                let (source, target) = channel.pair.unwrap_or((usize::MAX, usize::MAX));
                out.number(2).run(*run).number(channel.id as u64);
                out.number(channel.is_host_transfer.into());
                out.number(source as u64).number(target as u64).text(shape);
                out.number(sizes.len() as u64);
                for &size in sizes {
                    out.number(size);
                }
            }
            Head::Beat { moved } => {
                out.number(3).number(*moved);
            }
            Head::Part { sequence } => {
                out.number(4).number(*sequence);
            }
            Head::Ask(question) => {
                out.number(5);
                question.write(&mut out);
            }
            Head::Answer(Answer { run, origin, chain }) => {
                out.number(6).run(*run).origin(*origin).texts(chain);
            }
            Head::Bye { in_order } => {
                out.number(7).number((*in_order).into());
            }
        }
        out.0
    }

    /// What bytes say, and those after it. Errors: `Internal` unless they begin as
    /// [`Head::write`] writes them.
    pub(crate) fn read(bytes: &[u8]) -> Result<(Head, &[u8])> {
        let mut input = Reader(bytes);
        let head = input.head().ok_or_else(|| Error::internal("a message that says nothing"))?;
        Ok((head, input.0))
    }
}

impl Give {
    fn write(&self, out: &mut Writer) {
        out.run(self.run).point(self.point);
        out.number(self.group.into()).number(self.from.into()).number(self.visit);
        out.number(self.takers.into()).number(self.slices.into()).number(self.sent.len() as u64);
        for &(slice, bytes) in &self.sent {
            out.number(slice.into()).number(bytes);
        }
    }
}

impl Question {
    fn write(&self, out: &mut Writer) {
        out.run(self.run).origin(self.origin).participant(self.waiter).participant(self.from);
        match self.awaited {
            Awaited::Visit(point, before) => out.number(0).point(point).number(before),
            Awaited::Value(before) => out.number(1).number(before),
        };
        out.texts(&self.chain);
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, number: u64) -> &mut Self {
        self.0.extend(number.to_ne_bytes());
        self
    }

    fn run(&mut self, run: RunId) -> &mut Self {
        self.number(run.processes).number(run.number)
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.number(text.len() as u64).0.extend(text.as_bytes());
        self
    }

    fn texts(&mut self, texts: &[String]) -> &mut Self {
        self.number(texts.len() as u64);
        texts.iter().fold(self, |out, text| out.text(text))
    }

    fn point(&mut self, point: PointId) -> &mut Self {
        let (kind, a, b) = match point.operation {
            RendezvousId::Channel(channel) => (0, channel as u64, 0),
            RendezvousId::Place(computation, instr) => (1, computation.into(), instr.into()),
        };
        self.number(kind).number(a).number(b).number(point.group)
    }

    fn participant(&mut self, who: Participant) -> &mut Self {
        self.number(who.replica as u64).number(who.partition as u64)
    }

    fn origin(&mut self, origin: Origin) -> &mut Self {
        self.participant(origin.who).number(origin.wait).participant(origin.about)
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_ne_bytes(*number))
    }

    fn run(&mut self) -> Option<RunId> {
        Some(RunId { processes: self.number()?, number: self.number()? })
    }

    fn small(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    fn size(&mut self) -> Option<usize> {
        self.number()?.try_into().ok()
    }

    /// The length of a list whose items take at least `bytes` each.
    fn length(&mut self, bytes: usize) -> Option<usize> {
        self.size().filter(|&length| length <= self.0.len() / bytes)
    }

    fn text(&mut self) -> Option<String> {
        let length = self.length(1)?;
        let (text, rest) = self.0.split_at(length);
        self.0 = rest;
        Some(String::from_utf8_lossy(text).into_owned())
    }

    fn texts(&mut self) -> Option<Vec<String>> {
        let count = self.length(8)?;
        (0..count).map(|_| self.text()).collect()
    }

    fn origin(&mut self) -> Option<Origin> {
        let (who, wait) = (self.participant()?, self.number()?);
        Some(Origin { who, wait, about: self.participant()? })
    }

    fn participant(&mut self) -> Option<Participant> {
        Some(Participant { replica: self.size()?, partition: self.size()? })
    }

    fn head(&mut self) -> Option<Head> {
        Some(match self.number()? {
            0 => Head::Give(self.give()?),
            1 => {
                let (run, who) = (self.run()?, self.participant()?);
                let error = match self.number()? {
                    0 => None,
                    code => Some((Code::from_number(code)?, self.text()?)),
                };
                Head::Leave { run, who, error }
            }
            2 => {
                let (run, id) = (self.run()?, self.number()? as i64);
                let is_host_transfer = self.number()? != 0;
                let (source, target) = (self.size()?, self.size()?);
                let pair = (source != usize::MAX).then_some((source, target));
                let (shape, count) = (self.text()?, self.length(8)?);
                let sizes = (0..count).map(|_| self.number()).collect::<Option<_>>()?;
                Head::Send { run, channel: Channel { id, pair, is_host_transfer }, shape, sizes }
            }
            3 => Head::Beat { moved: self.number()? },
            4 => Head::Part { sequence: self.number()? },
            5 => Head::Ask(self.question()?),
            6 => {
                let (run, origin) = (self.run()?, self.origin()?);
                Head::Answer(Answer { run, origin, chain: self.texts()? })
            }
            7 => Head::Bye { in_order: self.number()? != 0 },
            _ => return None,
        })
    }

    fn point(&mut self) -> Option<PointId> {
        let operation = match (self.number()?, self.number()?, self.number()?) {
            (0, channel, _) => RendezvousId::Channel(channel as i64),
            (_, a, b) => RendezvousId::Place(a.try_into().ok()?, b.try_into().ok()?),
        };
        Some(PointId { operation, group: self.number()? })
    }

    fn question(&mut self) -> Option<Question> {
        let (run, origin) = (self.run()?, self.origin()?);
        let (waiter, from) = (self.participant()?, self.participant()?);
        let awaited = match self.number()? {
            0 => Awaited::Visit(self.point()?, self.number()?),
            _ => Awaited::Value(self.number()?),
        };
        let chain = self.texts()?;
        Some(Question { run, origin, chain, waiter, from, awaited })
    }

    fn give(&mut self) -> Option<Give> {
        let (run, point) = (self.run()?, self.point()?);
        let (group, from, visit) = (self.small()?, self.small()?, self.number()?);
        let (takers, slices, sent) = (self.small()?, self.small()?, self.length(16)?);
        let sent = (0..sent).map(|_| Some((self.small()?, self.number()?)));
        let sent = sent.collect::<Option<_>>()?;
        Some(Give { run, point, group, from, visit, takers, slices, sent })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let who = Participant { replica: 3, partition: 1 };
        let run = |number| RunId { processes: hash([0, 3].into_iter()), number };
        let place = PointId::new(RendezvousId::Place(4, 7), &[who, Participant::from(0)]);
        let point = PointId::new(RendezvousId::Channel(-1), &[who]);
        let give = |point| Give {
            run: run(2),
            point,
            group: 4,
            from: 3,
            visit: u64::MAX - 1,
            takers: 2,
            slices: 9,
            sent: vec![(0, 12), (8, 1 << 40)],
        };
        let origin = Origin { who, wait: 9, about: Participant::from(0) };
        let chain = vec!["replica 3 in y for replica 0".to_owned(); 2];
        let question = |awaited| Question {
            run: run(1),
            origin,
            chain: chain.clone(),
            waiter: who,
            from: Participant::from(0),
            awaited,
        };
        let channel = Channel { id: 5, pair: Some((0, 3)), is_host_transfer: false };
        let error = Some((Code::DeadlineExceeded, "replica 1 waits in y".to_owned()));
        let shape = "(f32[2], s32[<=4])".to_owned();
        for head in [
            Head::Give(give(place)),
            Head::Give(give(point)),
            Head::Leave { run: run(1), who, error },
            Head::Leave { run: run(1), who, error: None },
            Head::Send { run: run(0), channel, shape, sizes: vec![2] },
            Head::Beat { moved: 77 },
            Head::Part { sequence: 6 },
            Head::Ask(question(Awaited::Visit(point, 3))),
            Head::Ask(question(Awaited::Value(4))),
            Head::Answer(Answer { run: run(2), origin, chain: chain.clone() }),
            Head::Bye { in_order: true },
            Head::Bye { in_order: false },
        ] {
            let mut bytes = head.write();
            let length = bytes.len();
            bytes.extend([1, 2, 3]);
            assert_eq!(Head::read(&bytes).unwrap(), (head, &[1u8, 2, 3][..]));
            // Whatever is cut off, or changed, is an error or another message.
            (0..length).for_each(|end| assert!(Head::read(&bytes[..end]).is_err()));
            for at in 0..length {
                let mut changed = bytes.clone();
                changed[at] ^= 0xff;
                let _ = Head::read(&changed);
            }
        }
        assert_ne!(place.group, point.group);
    }
}
