//! Collective operations of every kind on every element type, with the results that a direct
//! computation gives ([`model`]): programs for as many replicas and partitions as asked for.

pub mod model;

use std::fmt::Write as _;

use helio::ElementType;
use oorandom::Rand32;

use self::model::{Counts, Groups, Mode, Numbers, fold, join};

/// A program, its inputs and what it gives.
#[derive(Clone, Debug)]
pub struct Program {
    /// How many run it.
    pub counts: Counts,
    /// HLO text.
    pub text: String,
    /// For each participant, the values of its parameters as text.
    pub inputs: Vec<Vec<String>>,
    /// For each participant, the result as text.
    pub results: Vec<String>,
}

impl Program {
    /// The program as a case file has it, which knows replicas only.
    pub fn case(&self) -> String {
        let mut case = format!("// replicas: {}\n", self.counts.replicas);
        for (replica, (inputs, result)) in self.inputs.iter().zip(&self.results).enumerate() {
            for input in inputs {
                // Writing to a string cannot fail.
                let _ = writeln!(case, "// input[{replica}]: {input}");
            }
            let _ = writeln!(case, "// expect[{replica}]: {result}");
        }
        case + &self.text
    }
}

/// A kind of program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `all-reduce` and what it may be written as, of one operand or several.
    AllReduce,
    /// `all-gather`.
    AllGather,
    /// `reduce-scatter`.
    ReduceScatter,
    /// `all-to-all` that splits a dimension.
    AllToAll,
    /// `all-to-all` of one operand for each participant.
    AllToAllTuple,
    /// `collective-permute`.
    Permute,
    /// `collective-broadcast`.
    Broadcast,
    /// `ragged-all-to-all`.
    Ragged,
    /// `replica-id` and `partition-id`.
    Ids,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 9] = [
        Kind::AllReduce,
        Kind::AllGather,
        Kind::ReduceScatter,
        Kind::AllToAll,
        Kind::AllToAllTuple,
        Kind::Permute,
        Kind::Broadcast,
        Kind::Ragged,
        Kind::Ids,
    ];
}

/// The element types of arrays that are exchanged: all that a byte or more belongs to and that have a 0.
pub fn elements() -> Vec<ElementType> {
    let all = ElementType::ALL.iter().copied().filter(|&element| element != ElementType::F8E8M0FNU);
    all.filter(|element| element.bits() >= 8 || *element == ElementType::Pred).collect()
}

/// A program of a kind on a type, its form drawn by `seed`.
pub fn program(kind: Kind, element: ElementType, counts: Counts, seed: u64) -> Program {
    let random = Rand32::new(seed ^ ((kind as u64) << 40) ^ ((element as u64) << 48));
    let mut draw = Draw { random, counts, element };
    match kind {
        Kind::AllReduce => draw.all_reduce(),
        Kind::AllGather => draw.all_gather(),
        Kind::ReduceScatter => draw.reduce_scatter(),
        Kind::AllToAll => draw.all_to_all(),
        Kind::AllToAllTuple => draw.all_to_all_tuple(),
        Kind::Permute => draw.permute(),
        Kind::Broadcast => draw.broadcast(),
        Kind::Ragged => draw.ragged(),
        Kind::Ids => draw.ids(),
    }
}

/// Draws from what a collective may consist of.
struct Draw {
    random: Rand32,
    counts: Counts,
    element: ElementType,
}

/// Groups as text, what they are, and the attributes that go with them.
struct Grouping {
    attributes: String,
    mode: Mode,
    groups: Groups,
}

/// A scalar computation of two numbers.
#[derive(Clone, Copy)]
struct Function {
    /// Its instructions after the parameters `x` and `y`, with `T` for the type.
    text: &'static str,
    value: fn(i64, i64) -> i64,
}

const ADD: Function = Function { text: "ROOT r = T[] add(x, y)", value: |x, y| x + y };
const MULTIPLY: Function = Function { text: "ROOT r = T[] multiply(x, y)", value: |x, y| x * y };
const MAXIMUM: Function = Function { text: "ROOT r = T[] maximum(x, y)", value: i64::max };
const MINIMUM: Function = Function { text: "ROOT r = T[] minimum(x, y)", value: i64::min };
const AND: Function = Function { text: "ROOT r = T[] and(x, y)", value: |x, y| x & y };
const OR: Function = Function { text: "ROOT r = T[] or(x, y)", value: |x, y| x | y };
const XOR: Function = Function { text: "ROOT r = T[] xor(x, y)", value: |x, y| x ^ y };
/// Shows in which order participants are folded.
const SUBTRACT: Function = Function { text: "ROOT r = T[] subtract(x, y)", value: |x, y| x - y };
/// Gives the later of two.
const LAST: Function = Function { text: "ROOT r = T[] copy(y)", value: |_, y| y };

impl Draw {
    fn below(&mut self, end: usize) -> usize {
        self.random.rand_range(0..end as u32) as usize
    }

    fn one_of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    fn shuffled(&mut self, count: usize) -> Vec<usize> {
        let mut ids: Vec<usize> = (0..count).collect();
        (1..ids.len()).rev().for_each(|i| ids.swap(i, self.below(i + 1)));
        ids
    }

    /// Groups of one size that hold every one of `count` numbers: as text and lists.
    fn equal_groups(&mut self, count: usize) -> (String, Groups) {
        let sizes: Vec<usize> = (1..=count).filter(|size| count.is_multiple_of(*size)).collect();
        let size = self.one_of(&sizes);
        let groups = count / size;
        let chunks = |ids: &[usize]| ids.chunks(size).map(<[usize]>::to_vec).collect::<Groups>();
        let ids: Vec<usize> = (0..count).collect();
        match self.below(4) {
            0 => ("{}".to_owned(), vec![ids]),
            1 => (format!("[{groups},{size}]<=[{count}]"), chunks(&ids)),
            // Transposed: number `i * groups + j` is number `i` of group `j`.
            2 => {
                let order: Vec<usize> =
                    (0..groups).flat_map(|j| (0..size).map(move |i| i * groups + j)).collect();
                (format!("[{groups},{size}]<=[{size},{groups}]T(1,0)"), chunks(&order))
            }
            _ => {
                let lists = chunks(&self.shuffled(count));
                (text_of(&lists), lists)
            }
        }
    }

    /// How participants are grouped, for operations that know `use_global_device_ids`.
    fn grouping(&mut self, is_equal: bool) -> Grouping {
        let mode =
            self.one_of(&[Mode::CrossReplica, Mode::CrossReplicaAndPartition, Mode::Flattened]);
        let channel = match mode {
            Mode::CrossReplica => "",
            Mode::Flattened => ", channel_id=1, use_global_device_ids=true",
            _ => ", channel_id=1",
        };
        self.grouped(mode, channel, is_equal)
    }

    /// How participants are grouped, for operations that do not.
    fn grouping_by_channel(&mut self) -> Grouping {
        match self.below(3) {
            0 if self.counts.partitions > 1 => {
                self.grouped(Mode::CrossPartition, ", channel_id=1", true)
            }
            _ => self.grouped(Mode::CrossReplica, "", true),
        }
    }

    fn grouped(&mut self, mode: Mode, channel: &str, is_equal: bool) -> Grouping {
        let count = self.counts.of(mode);
        let (mut text, mut groups) = self.equal_groups(count);
        // Groups of all are not written as such where ids are global.
        if mode == Mode::Flattened && text == "{}" {
            text = text_of(&groups);
        }
        if !is_equal && count > 2 && self.below(3) == 0 {
            let ids = self.shuffled(count);
            let cut = self.below(count - 1) + 1;
            groups = vec![ids[..cut].to_vec(), ids[cut..].to_vec()];
            text = text_of(&groups);
        }
        Grouping { attributes: format!("replica_groups={text}{channel}"), mode, groups }
    }

    /// The participants in the group of each participant.
    fn members(&self, grouping: &Grouping) -> Vec<Option<Vec<usize>>> {
        let all = 0..self.counts.participants();
        all.map(|me| self.counts.group(grouping.mode, &grouping.groups, me)).collect()
    }

    /// An array for each participant, of numbers so small that sums over all are exact in the type.
    fn operand(&mut self, dims: &[usize]) -> Vec<Numbers> {
        let element = self.element;
        let end = match element.bits() {
            _ if element == ElementType::Pred => 2,
            8 if element.is_float() => 2,
            8 => 8,
            _ => 16,
        };
        let each = (0..self.counts.participants()).map(|_| {
            let mut numbers = Numbers::zeros(dims);
            numbers.values.iter_mut().for_each(|value| *value = self.below(end) as i64);
            numbers
        });
        each.collect()
    }

    /// A function that folds numbers of the type, as far as they stay exact.
    fn function(&mut self, operands: &mut [Vec<Numbers>]) -> Function {
        let element = self.element;
        let functions: &[Function] = if element == ElementType::Pred {
            &[AND, OR, XOR, MAXIMUM, LAST]
        } else if element.is_complex() {
            &[ADD, MULTIPLY, SUBTRACT, LAST]
        } else if element.is_float() {
            &[ADD, MAXIMUM, MINIMUM, MULTIPLY, SUBTRACT, LAST]
        } else if element.is_unsigned_integer() {
            &[ADD, MAXIMUM, MINIMUM, MULTIPLY, AND, OR, XOR, LAST]
        } else {
            &[ADD, MAXIMUM, MINIMUM, MULTIPLY, AND, OR, XOR, SUBTRACT, LAST]
        };
        let at = self.below(functions.len());
        let function = functions[at];
        if function.text == MULTIPLY.text {
            let all = operands.iter_mut().flatten().flat_map(|numbers| &mut numbers.values);
            all.for_each(|value| *value &= 1);
        }
        function
    }

    /// A number as text of the type.
    fn number(&self, value: i64) -> String {
        match self.element {
            ElementType::Pred => (value != 0).to_string(),
            element if element.is_complex() => format!("({value}, 0)"),
            _ => value.to_string(),
        }
    }

    fn literal(&self, numbers: &Numbers) -> String {
        nested(&numbers.dims, &numbers.values, &|value| self.number(value))
    }

    fn shape(&self, dims: &[usize]) -> String {
        let dims: Vec<String> = dims.iter().map(usize::to_string).collect();
        format!("{}[{}]", self.element, dims.join(","))
    }

    /// A program that applies an operation to operands of the type, and gives these results.
    fn write(
        &mut self,
        operation: &str,
        attributes: &str,
        fold: Option<Function>,
        operands: &[Vec<Numbers>],
        results: &[Vec<Numbers>],
        is_tuple: bool,
    ) -> Program {
        let mut text = String::new();
        let mut attributes = attributes.to_owned();
        if let Some(function) = fold {
            let (element, body) = (self.element, function.text.replace("T[]", &self.shape(&[])));
            text += &format!(
                "fold {{ x = {element}[] parameter(0) y = {element}[] parameter(1) {body} }}\n"
            );
            attributes += ", to_apply=fold";
        }
        text += "ENTRY main {\n";
        for (i, each) in operands.iter().enumerate() {
            text += &format!("  p{i} = {} parameter({i})\n", self.shape(&each[0].dims));
        }
        let names: Vec<String> = (0..operands.len()).map(|i| format!("p{i}")).collect();
        let names = names.join(", ");
        let shapes: Vec<String> = results[0].iter().map(|r| self.shape(&r.dims)).collect();
        let result = match &shapes[..] {
            [one] if !is_tuple => one.clone(),
            _ => format!("({})", shapes.join(", ")),
        };
        let shapes: Vec<String> = operands.iter().map(|each| self.shape(&each[0].dims)).collect();
        let begun = match (operation, &shapes[..]) {
            ("all-reduce", _) => Some(result.clone()),
            ("all-gather", [one]) => Some(format!("({one}, {result})")),
            ("collective-permute", [one]) => Some(format!("({one}, {result}, u32[], u32[])")),
            ("reduce-scatter", [one]) => Some(format!("(({one}), {result})")),
            _ => None,
        };
        text += &match begun.filter(|_| self.below(3) == 0) {
            Some(begun) => format!(
                "  s = {begun} {operation}-start({names}), {attributes}\n  ROOT r = {result} \
                 {operation}-done(s)\n}}\n"
            ),
            None => format!("  ROOT r = {result} {operation}({names}), {attributes}\n}}\n"),
        };
        let participants = 0..self.counts.participants();
        let inputs =
            participants.map(|me| operands.iter().map(|each| self.literal(&each[me])).collect());
        let inputs: Vec<Vec<String>> = inputs.collect();
        let results = results.iter().map(|arrays| {
            let arrays: Vec<String> = arrays.iter().map(|array| self.literal(array)).collect();
            match &arrays[..] {
                [one] if !is_tuple => one.clone(),
                _ => format!("({})", arrays.join(", ")),
            }
        });
        let results = results.collect();
        Program { counts: self.counts, text, inputs, results }
    }

    /// For each participant, what `f` makes of its place in its group, and for each operand of what
    /// the group gives; zeros of the same shape for who is in no group.
    fn results(
        &self,
        grouping: &Grouping,
        operands: &[Vec<Numbers>],
        f: impl Fn(usize, &[Numbers]) -> Numbers,
    ) -> Vec<Vec<Numbers>> {
        let one = |me: usize, group: &Option<Vec<usize>>, operand: &Vec<Numbers>| match group {
            Some(group) => {
                let place = group.iter().position(|&who| who == me).unwrap_or_default();
                let given: Vec<Numbers> = group.iter().map(|&who| operand[who].clone()).collect();
                f(place, &given)
            }
            None => Numbers::zeros(&operand[me].dims),
        };
        let members = self.members(grouping);
        let each = members.iter().enumerate();
        each.map(|(me, group)| operands.iter().map(|o| one(me, group, o)).collect()).collect()
    }

    fn all_reduce(&mut self) -> Program {
        const SHAPES: &[&[&[usize]]] = &[&[&[3]], &[&[]], &[&[2, 2], &[3]], &[&[70, 33]]];
        let grouping = self.grouping(false);
        let dims = self.one_of(SHAPES);
        let mut operands: Vec<_> = dims.iter().map(|dims| self.operand(dims)).collect();
        let function = self.function(&mut operands);
        let results = self.results(&grouping, &operands, |_, given| fold(given, function.value));
        self.write("all-reduce", &grouping.attributes, Some(function), &operands, &results, false)
    }

    fn all_gather(&mut self) -> Program {
        let grouping = self.grouping(true);
        let (dim, count) = (self.below(2), self.below(2) + 1);
        let operands: Vec<_> = (0..count).map(|_| self.operand(&[2, 3])).collect();
        let results = self.results(&grouping, &operands, |_, given| join(given, dim));
        let attributes = format!("{}, dimensions={{{dim}}}", grouping.attributes);
        self.write("all-gather", &attributes, None, &operands, &results, false)
    }

    fn reduce_scatter(&mut self) -> Program {
        let grouping = self.grouping(true);
        let (dim, count) = (self.below(2), self.below(2) + 1);
        let most = self.counts.participants();
        let mut operands: Vec<_> = (0..count).map(|_| self.operand(&[most, most])).collect();
        let function = self.function(&mut operands);
        let results = self.results(&grouping, &operands, |place, given| {
            fold(given, function.value).part(dim, place, given.len())
        });
        let attributes = format!("{}, dimensions={{{dim}}}", grouping.attributes);
        self.write("reduce-scatter", &attributes, Some(function), &operands, &results, false)
    }

    fn all_to_all(&mut self) -> Program {
        let grouping = self.grouping_by_channel();
        let dim = self.below(2);
        let most = self.counts.participants();
        let operands = [self.operand(&[most, most])];
        let results = self.results(&grouping, &operands, |place, given| {
            let parts: Vec<_> = given.iter().map(|g| g.part(dim, place, given.len())).collect();
            join(&parts, dim)
        });
        let attributes = format!("{}, dimensions={{{dim}}}", grouping.attributes);
        self.write("all-to-all", &attributes, None, &operands, &results, false)
    }

    fn all_to_all_tuple(&mut self) -> Program {
        let grouping = self.grouping_by_channel();
        let size = grouping.groups[0].len();
        let operands: Vec<_> = (0..size).map(|_| self.operand(&[2])).collect();
        let members = self.members(&grouping);
        let each = members.iter().enumerate().map(|(me, group)| {
            let group = group.as_deref().unwrap_or_default();
            let place = group.iter().position(|&who| who == me).unwrap_or_default();
            group.iter().map(|&who| operands[place][who].clone()).collect()
        });
        let results: Vec<_> = each.collect();
        self.write("all-to-all", &grouping.attributes, None, &operands, &results, true)
    }

    fn permute(&mut self) -> Program {
        let mode = match self.below(3) {
            0 if self.counts.partitions > 1 => Mode::CrossPartition,
            _ => Mode::CrossReplica,
        };
        let count = self.counts.of(mode);
        let (sources, targets) = (self.shuffled(count), self.shuffled(count));
        let used = self.below(count) + 1;
        let pairs: Vec<_> = sources.into_iter().zip(targets).take(used).collect();
        let written: Vec<_> = pairs.iter().map(|(s, t)| format!("{{{s},{t}}}")).collect();
        let channel = if mode == Mode::CrossPartition { ", channel_id=1" } else { "" };
        let attributes = format!("source_target_pairs={{{}}}{channel}", written.join(","));
        let grouping =
            Grouping { attributes: String::new(), mode, groups: vec![(0..count).collect()] };
        let operands: Vec<_> = (0..self.below(2) + 1).map(|_| self.operand(&[3])).collect();
        let results = self.results(&grouping, &operands, |place, given| {
            let source = pairs.iter().find(|&&(_, target)| target == place);
            source.map_or(Numbers::zeros(&[3]), |&(source, _)| given[source].clone())
        });
        self.write("collective-permute", &attributes, None, &operands, &results, false)
    }

    fn broadcast(&mut self) -> Program {
        let mut grouping = self.grouping_by_channel();
        let count = self.counts.of(grouping.mode);
        // Some may be in no group.
        if grouping.mode == Mode::CrossReplica && count > 1 && self.below(2) == 0 {
            let ids = self.shuffled(count);
            let kept = self.below(count - 1) + 1;
            grouping.groups = vec![ids[..kept].to_vec()];
            grouping.attributes = format!("replica_groups={}", text_of(&grouping.groups));
        }
        let operands = [self.operand(&[3])];
        let results = self.results(&grouping, &operands, |_, given| given[0].clone());
        self.write("collective-broadcast", &grouping.attributes, None, &operands, &results, false)
    }

    /// Each sends a row to each of its group, which puts it where the sender's rows belong.
    fn ragged(&mut self) -> Program {
        let grouping = self.grouping_by_channel();
        let size = grouping.groups[0].len();
        let (input, output) = (self.operand(&[size, 2]), self.operand(&[size + 1, 2]));
        let members = self.members(&grouping);
        let place = |me: usize| {
            let group = members[me].as_deref().unwrap_or_default();
            group.iter().position(|&who| who == me).unwrap_or_default()
        };
        let mut results = Vec::new();
        for (me, group) in members.iter().enumerate() {
            let mut rows = output[me].clone();
            for (from, &who) in group.iter().flatten().enumerate() {
                let row = &input[who].values[place(me) * 2..][..2];
                rows.values[from * 2..][..2].copy_from_slice(row);
            }
            results.push(vec![rows]);
        }
        let operands = [input, output];
        let mut program =
            self.write("ragged-all-to-all", &grouping.attributes, None, &operands, &results, false);
        let index = self.one_of(&["s32", "s64"]);
        let lists: String =
            (2..6).map(|i| format!("  p{i} = {index}[{size}] parameter({i})\n")).collect();
        program.text = program.text.replace("  ROOT", &format!("{lists}  ROOT"));
        program.text = program.text.replace("(p0, p1)", "(p0, p1, p2, p3, p4, p5)");
        for (me, inputs) in program.inputs.iter_mut().enumerate() {
            let list = |f: &dyn Fn(usize) -> usize| {
                let items: Vec<String> = (0..size).map(|i| f(i).to_string()).collect();
                format!("{{{}}}", items.join(", "))
            };
            inputs.extend([list(&|i| i), list(&|_| 1), list(&|_| place(me)), list(&|_| 1)]);
        }
        program
    }

    fn ids(&mut self) -> Program {
        let text = "ENTRY main {\n  r = u32[] replica-id()\n  p = u32[] partition-id()\n  \
                    ROOT t = (u32[], u32[]) tuple(r, p)\n}\n";
        let partitions = self.counts.partitions;
        let participants = 0..self.counts.participants();
        let ids = participants.map(|me| format!("({}, {})", me / partitions, me % partitions));
        let inputs = vec![Vec::new(); self.counts.participants()];
        Program { counts: self.counts, text: text.to_owned(), inputs, results: ids.collect() }
    }
}

fn text_of(groups: &Groups) -> String {
    let list = |group: &Vec<usize>| {
        let ids: Vec<String> = group.iter().map(usize::to_string).collect();
        format!("{{{}}}", ids.join(","))
    };
    format!("{{{}}}", groups.iter().map(list).collect::<Vec<_>>().join(","))
}

/// Values of an array in braces, one pair for each dimension.
fn nested(dims: &[usize], values: &[i64], number: &dyn Fn(i64) -> String) -> String {
    match dims {
        [] => number(values[0]),
        [size, rest @ ..] => {
            let part = values.len() / size;
            let parts = values.chunks(part).map(|part| nested(rest, part, number));
            format!("{{{}}}", parts.collect::<Vec<_>>().join(", "))
        }
    }
}
