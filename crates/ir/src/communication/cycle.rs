//! Cycles of waiting: schedules in which a transfer comes after what comes after it.
//!
//! On each channel a `recv` comes before the `send`, a `send` before its `send-done` and before the
//! `recv-done`, a `recv` before its `recv-done`; and within a program one instruction comes before
//! another that depends on it, or that stands after it in a schedule. A cycle of these is a deadlock.
//!
//! Only what happens exactly once is looked at: transfers outside of loops whose channel (and source
//! and target, where the program states them) no other transfer has.

use std::collections::HashMap;

use super::channels::{Channels, Kind, Use};
use super::{Found, contains, found};
use crate::{CompId, InstrAt, InstrId, Module, Op};

/// The most events, of all participants together, among which cycles are looked for.
const MAX_EVENTS: usize = 1 << 20;

/// The most steps from instruction to operand that are followed, and pairs of events of which one
/// comes before the other.
const MAX_STEPS: usize = 1 << 22;

/// How deep calls are followed.
const MAX_DEPTH: usize = 64;

/// `channel.C4`: no transfer waits for itself, whatever the order in which instructions run that do
/// not depend on each other.
pub(super) fn error(module: &Module, channels: &Channels<'_>) -> Option<Found> {
    let order = if module.config.is_scheduled { Order::Text } else { Order::Dependence };
    let cycle = find(module, channels, order, false)?;
    Some(
        cycle.found(
            "channel.C4",
            "each of these waits for the one before, and the first for the last",
        ),
    )
}

/// `channel.C8`: the order of the text is a schedule without a deadlock, even where a `send` waits for
/// its `recv`.
pub(super) fn warning(module: &Module, channels: &Channels<'_>) -> Option<Found> {
    let (what, cycle) = match find(module, channels, Order::Text, false) {
        Some(cycle) => (
            "in the order of the text, each of these waits for the one before, and the first for the last",
            cycle,
        ),
        None => (
            "where a send waits for its receive, which it does not in helio, each of these waits for \
             the one before, and the first for the last",
            find(module, channels, Order::Text, true)?,
        ),
    };
    Some(cycle.found("channel.C8", what))
}

/// What of a program comes before what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// Operands and control predecessors.
    Dependence,
    /// The instruction that stands earlier.
    Text,
}

/// The events of a cycle, in order: uses of channels, each with the participant if there are several.
struct Cycle<'a>(Vec<(&'a Use<'a>, Option<usize>)>);

impl Cycle<'_> {
    fn found(&self, rule: &'static str, what: &str) -> Found {
        const SHOWN: usize = 12;
        let one = |(of, who): &(&Use<'_>, Option<usize>)| match who {
            Some(who) => format!("`{}` of participant {who}", of.instr.name),
            None => format!("`{}`", of.instr.name),
        };
        let mut names: Vec<String> = self.0.iter().take(SHOWN).map(one).collect();
        if self.0.len() > SHOWN {
            names.push("…".to_owned());
        }
        let detail = format!("{what}: {}", names.join(", "));
        let ends = self.0.iter().filter(|(of, _)| of.kind == Kind::RecvDone);
        let first = ends.chain(&self.0).min_by_key(|(of, _)| (of.kind != Kind::RecvDone, of.place));
        let of = first.map_or(self.0[0].0, |(of, _)| of);
        found(of.place, of.instr, rule, detail)
    }
}

fn find<'a>(
    module: &Module,
    channels: &'a Channels<'a>,
    order: Order,
    sends_wait: bool,
) -> Option<Cycle<'a>> {
    let all: Vec<(i64, &Use<'_>)> =
        channels.uses.iter().flat_map(|(&id, uses)| uses.iter().map(move |of| (id, of))).collect();
    let (paired, alone): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, of)| of.pairs.is_some());
    let cycle = |uses: &[(i64, &'a Use<'a>)]| {
        let events = EventOrder::of(module, uses, order)?;
        events.cycle(uses, sends_wait)
    };
    cycle(&paired).or_else(|| cycle(&alone))
}

/// The events of one run of a program, and which comes before which.
struct EventOrder<'m> {
    module: &'m Module,
    order: Order,
    /// For each event, the use of a channel that it is, by position; `None` where a call begins or
    /// ends.
    events: Vec<Option<usize>>,
    before: Vec<(usize, usize)>,
    /// The positions of uses by their place.
    uses: HashMap<InstrAt, usize>,
    /// For each computation, whether there is a use in it.
    contains: Vec<bool>,
    /// Steps taken so far, of [`MAX_STEPS`].
    steps: usize,
}

impl<'m> EventOrder<'m> {
    /// `None` if there is nothing to look at, or too much.
    fn of(module: &'m Module, uses: &[(i64, &Use<'_>)], order: Order) -> Option<Self> {
        if uses.is_empty() {
            return None;
        }
        let is_transfer =
            |op: &Op| matches!(op, Op::Send(_) | Op::SendDone(_) | Op::Recv(_) | Op::RecvDone(_));
        let mut events = EventOrder {
            module,
            order,
            events: vec![None, None],
            before: Vec::new(),
            uses: uses.iter().enumerate().map(|(i, (_, of))| (of.place, i)).collect(),
            contains: contains(module, is_transfer),
            steps: 0,
        };
        let entry =
            module.ids().find(|&id| std::ptr::eq(module.computation(id), module.entry()))?;
        events.enter(entry, (0, 1), 0)?;
        Some(events)
    }

    /// Adds the events of a computation that runs between two events. `None` if there are too many.
    fn enter(&mut self, id: CompId, between: (usize, usize), depth: usize) -> Option<()> {
        let module = self.module;
        // The first and the last event of each instruction that has any.
        let mut of_instr: HashMap<usize, (usize, usize)> = HashMap::new();
        let mut previous = between.0;
        for (i, instr) in module.computation(id).instrs().iter().enumerate() {
            let (first, last) = if let Some(&of) = self.uses.get(&(id, InstrId(i as u32))) {
                let event = self.event(Some(of))?;
                (event, event)
            } else {
                let callees = match &instr.op {
                    Op::Call(op) => std::slice::from_ref(&op.to_apply),
                    Op::Conditional(op) => &op.branches[..],
                    _ => continue,
                };
                if !callees.iter().any(|callee| self.contains[callee.index()]) || depth >= MAX_DEPTH
                {
                    continue;
                }
                let (first, last) = (self.event(None)?, self.event(None)?);
                self.before.push((first, last));
                for &callee in callees {
                    self.enter(callee, (first, last), depth + 1)?;
                }
                (first, last)
            };
            self.before.extend([(between.0, first), (last, between.1)]);
            match self.order {
                Order::Text => self.before.push((previous, first)),
                Order::Dependence => {
                    let dependences = self.dependences(id, i, &of_instr)?;
                    self.before.extend(dependences.into_iter().map(|before| (before, first)));
                }
            }
            previous = last;
            of_instr.insert(i, (first, last));
        }
        Some(())
    }

    fn event(&mut self, of: Option<usize>) -> Option<usize> {
        self.events.push(of);
        (self.events.len() <= MAX_EVENTS).then_some(self.events.len() - 1)
    }

    /// The last events of those instructions with events on which an instruction depends through
    /// instructions without. `None` if there are too many steps.
    fn dependences(
        &mut self,
        id: CompId,
        instr: usize,
        of_instr: &HashMap<usize, (usize, usize)>,
    ) -> Option<Vec<usize>> {
        let computation = self.module.computation(id);
        // The table below has an entry for each instruction.
        self.steps += instr / 64;
        let (mut pending, mut seen, mut found) = (vec![instr], vec![false; instr + 1], Vec::new());
        while let Some(i) = pending.pop() {
            let instr = &computation.instrs()[i];
            let control = instr.extra.iter().flat_map(|extra| &extra.control_predecessors);
            for before in instr.operands.iter().chain(control).copied().map(InstrId::index) {
                self.steps += 1;
                if self.steps > MAX_STEPS {
                    return None;
                }
                if std::mem::replace(&mut seen[before], true) {
                    continue;
                }
                match of_instr.get(&before) {
                    Some(&(_, last)) => found.push(last),
                    None => pending.push(before),
                }
            }
        }
        Some(found)
    }

    /// A cycle among the events of all participants that the pairs of uses name; of one, if they
    /// name none.
    fn cycle<'a>(&self, uses: &[(i64, &'a Use<'a>)], sends_wait: bool) -> Option<Cycle<'a>> {
        let named = uses.iter().flat_map(|(_, of)| of.pairs.iter().flatten());
        let mut participants: Vec<usize> = named.flat_map(|&(s, t)| [s, t]).collect();
        participants.sort_unstable();
        participants.dedup();
        let size = self.events.len();
        let count = participants.len().max(1);
        let relations = self.before.len().saturating_mul(count);
        if size.saturating_mul(count) > MAX_EVENTS || relations > MAX_STEPS {
            return None;
        }
        let mut before = Vec::new();
        for participant in 0..count {
            let event = |event: usize| participant * size + event;
            before.extend(self.before.iter().map(|&(a, b)| (event(a), event(b))));
        }
        for transfer in self.transfers(uses) {
            let number = |id: usize| participants.binary_search(&id).unwrap_or(0);
            let (source, target) = transfer.pair.map_or((0, 0), |(s, t)| (number(s), number(t)));
            let send = source * size + transfer.send;
            before.push((send, target * size + transfer.recv_done));
            if sends_wait {
                before.push((target * size + transfer.recv, send));
            }
        }
        let events = cycle(size * count, &before)?;
        let is_paired = !participants.is_empty();
        let event = |event: usize| {
            let of = uses[self.events[event % size]?].1;
            Some((of, is_paired.then(|| participants[event / size])))
        };
        Some(Cycle(events.into_iter().filter_map(event).collect()))
            .filter(|cycle| !cycle.0.is_empty())
    }

    /// What is sent and received exactly once.
    fn transfers(&self, uses: &[(i64, &Use<'_>)]) -> Vec<Transfer> {
        let mut times = vec![Vec::new(); uses.len()];
        for (event, of) in self.events.iter().enumerate() {
            if let Some(of) = *of {
                times[of].push(event);
            }
        }
        // For each channel and pair, the events of its sends, receives, and ends of receives. What
        // does not happen once counts as twice.
        let mut by_key: HashMap<ChannelEnds, [Vec<usize>; 3]> = HashMap::new();
        for (&(id, of), times) in uses.iter().zip(&times) {
            let kind = match of.kind {
                Kind::Send => 0,
                Kind::Recv => 1,
                Kind::RecvDone => 2,
                Kind::SendDone => continue,
            };
            let keys: Vec<_> = match &of.pairs {
                Some(pairs) => pairs.iter().copied().map(Some).collect(),
                None => vec![None],
            };
            for key in keys {
                let events = &mut by_key.entry((id, key)).or_default()[kind];
                match times[..] {
                    [event] => events.push(event),
                    _ => events.extend([0, 0]),
                }
            }
        }
        let once = |((_, pair), events): (ChannelEnds, [Vec<usize>; 3])| match events
            .each_ref()
            .map(|events| &events[..])
        {
            [&[send], &[recv], &[recv_done]] => Some(Transfer { pair, send, recv, recv_done }),
            _ => None,
        };
        by_key.into_iter().filter_map(once).collect()
    }
}

/// A channel, and of its source-target pairs one, if it states pairs.
type ChannelEnds = (i64, Option<(usize, usize)>);

/// One transfer, by its events.
struct Transfer {
    pair: Option<(usize, usize)>,
    send: usize,
    recv: usize,
    recv_done: usize,
}

/// A cycle in a graph of `count` nodes, in the direction of its edges; `None` if it has none.
fn cycle(count: usize, edges: &[(usize, usize)]) -> Option<Vec<usize>> {
    let (mut next, mut left) = (vec![Vec::new(); count], vec![0usize; count]);
    for &(a, b) in edges {
        next[a].push(b);
        left[b] += 1;
    }
    let mut ready: Vec<usize> = (0..count).filter(|&node| left[node] == 0).collect();
    while let Some(node) = ready.pop() {
        for &after in &next[node] {
            left[after] -= 1;
            if left[after] == 0 {
                ready.push(after);
            }
        }
    }
    // Each node that is left has one before it that is left, too.
    let mut back = vec![None; count];
    for &(a, b) in edges {
        if left[a] > 0 && left[b] > 0 {
            back[b] = Some(a);
        }
    }
    let (mut at, mut order) = ((0..count).find(|&node| left[node] > 0)?, Vec::new());
    let mut seen = vec![false; count];
    while !std::mem::replace(&mut seen[at], true) {
        order.push(at);
        at = back[at]?;
    }
    let begin = order.iter().position(|&node| node == at)?;
    let mut cycle = order.split_off(begin);
    cycle.reverse();
    Some(cycle)
}
