//! Random changes to the text of a program.

use std::sync::LazyLock;

use helio::ir::Op;
use helio::unstable::ir::ops::OpInfo;
use oorandom::Rand32;

static OPERATIONS: LazyLock<Vec<OpInfo>> = LazyLock::new(Op::table);

/// One to three random changes to a program in [`super::normal_form`].
pub fn mutate(program: &str, rng: &mut Rand32) -> String {
    let mut lines: Vec<String> = program.lines().map(str::to_owned).collect();
    for _ in 0..=pick(rng, 3) {
        match pick(rng, 9) {
            0 | 1 => size(&mut lines, rng),
            2 => element_type(&mut lines, rng),
            3 => operand(&mut lines, rng),
            4 => opcode(&mut lines, rng),
            5 => constant(&mut lines, rng),
            6 => attribute(&mut lines, rng),
            _ => number(&mut lines, rng),
        }
    }
    let lines: Vec<String> = lines.iter().map(|line| without_inferred_shape(line)).collect();
    lines.join("\n")
}

fn pick(rng: &mut Rand32, count: usize) -> usize {
    rng.rand_range(0..count.max(1) as u32) as usize
}

fn one_of<'a, T: ?Sized>(rng: &mut Rand32, items: &[&'a T]) -> Option<&'a T> {
    items.get(pick(rng, items.len())).copied()
}

/// Sizes, dimensions and bounds that rules change at.
const SIZES: &[&str] = &["0", "1", "2", "3", "5", "8", "17", "64"];

/// Gives everything in the program that has a certain size another one.
fn size(lines: &mut [String], rng: &mut Rand32) {
    let sizes: Vec<String> = lines.iter().flat_map(|line| shape_sizes(line)).collect();
    let sizes: Vec<&str> = sizes.iter().map(String::as_str).collect();
    let (Some(old), Some(new)) = (one_of(rng, &sizes), one_of(rng, SIZES)) else { return };
    for line in lines {
        // Not in the text of constants, nor in names.
        if !line.contains(" constant(") {
            *line = replace_numbers(line, |number| (number == old).then_some(new));
        }
    }
}

/// The sizes in a line's first shape.
fn shape_sizes(line: &str) -> Vec<String> {
    let Some((_, after)) = line.split_once('[') else { return Vec::new() };
    let Some((sizes, _)) = after.split_once(']') else { return Vec::new() };
    sizes.split(',').filter(|s| s.parse::<usize>().is_ok()).map(str::to_owned).collect()
}

/// The line with some of the numbers that stand between brackets of any kind replaced.
fn replace_numbers<'a>(line: &str, new: impl Fn(&str) -> Option<&'a str>) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    let mut previous = ' ';
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        out.push_str(&rest[..start]);
        previous = rest[..start].chars().next_back().unwrap_or(previous);
        let number = &rest[start..];
        let end = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
        let (number, after) = number.split_at(end);
        let is_whole = "[,{:=_x-".contains(previous) && !after.starts_with(['.', '(']);
        out.push_str(new(number).filter(|_| is_whole).unwrap_or(number));
        previous = '0';
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Gives everything of one element type another one.
fn element_type(lines: &mut [String], rng: &mut Rand32) {
    const TYPES: &[&str] = &[
        "f32",
        "f64",
        "bf16",
        "f16",
        "f8e4m3fn",
        "f8e5m2",
        "f8e4m3b11fnuz",
        "f4e2m1fn",
        "s32",
        "u8",
        "s64",
        "u32",
        "s4",
        "pred",
        "c64",
    ];
    let used: Vec<&str> = TYPES
        .iter()
        .copied()
        .filter(|ty| lines.iter().any(|line| line.contains(&format!("{ty}["))))
        .collect();
    let (Some(old), Some(new)) = (one_of(rng, &used), one_of(rng, TYPES)) else { return };
    for line in lines {
        *line = line.replace(&format!(" {old}["), &format!(" {new}["));
        *line = line.replace(&format!("({old}["), &format!("({new}["));
    }
}

/// A line's parts: what precedes the operands, the operands, what follows them.
fn parts(line: &str) -> Option<(&str, &str, &str)> {
    let (_, instruction) = line.split_once(" = ")?;
    // A tuple's shape has parentheses of its own.
    let shape = if instruction.starts_with('(') { closing(instruction)? + 1 } else { 0 };
    let open = line.len() - instruction.len() + shape + instruction[shape..].find('(')?;
    let close = open + closing(&line[open..])?;
    Some((&line[..=open], &line[open + 1..close], &line[close..]))
}

/// The place of the parenthesis that closes the one a text begins with.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    text.char_indices().find_map(|(at, c)| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(at)
    })
}

/// Another operand for an instruction, from further up in its computation.
fn operand(lines: &mut [String], rng: &mut Rand32) {
    let at = pick(rng, lines.len());
    let begin = lines[..at].iter().rposition(|line| line.ends_with('{')).map_or(0, |line| line + 1);
    let names: Vec<&str> = lines[begin..at]
        .iter()
        .filter_map(|line| line.trim().trim_start_matches("ROOT ").split_once(" = "))
        .map(|(name, _)| name)
        .collect();
    let Some(name) = one_of(rng, &names) else { return };
    let Some((before, operands, after)) = parts(&lines[at]) else { return };
    let mut operands: Vec<&str> = operands.split(", ").collect();
    let which = pick(rng, operands.len());
    operands[which] = name;
    lines[at] = format!("{before}{}{after}", operands.join(", "));
}

/// Operations that may stand for each other.
const FAMILIES: &[&[&str]] = &[
    &["add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "remainder", "atan2"],
    &["and", "or", "xor", "maximum", "minimum", "add", "shift-left", "shift-right-logical"],
    &[
        "negate",
        "abs",
        "sign",
        "exponential",
        "log",
        "sqrt",
        "rsqrt",
        "tanh",
        "sine",
        "floor",
        "not",
        "popcnt",
        "count-leading-zeros",
        "cbrt",
        "logistic",
        "expm1",
        "copy",
        "erf",
    ],
    &["reduce-window", "reduce"],
    &["dynamic-slice", "slice"],
    &["EQ", "NE", "LT", "LE", "GT", "GE"],
    &["reverse", "broadcast", "transpose"],
];

/// Another operation of the same family.
fn opcode(lines: &mut [String], rng: &mut Rand32) {
    let found: Vec<(usize, &str, &[&str])> = lines
        .iter()
        .enumerate()
        .flat_map(|(at, line)| {
            let of = move |family: &'static [&'static str]| {
                let names = family.iter().filter(move |&&name| names(line, name));
                names.map(move |&name| (at, name, family))
            };
            FAMILIES.iter().copied().flat_map(of).collect::<Vec<_>>()
        })
        .collect();
    let Some(&(at, old, family)) = found.get(pick(rng, found.len())) else { return };
    let Some(new) = one_of(rng, family) else { return };
    lines[at] = match old.starts_with(|c: char| c.is_uppercase()) {
        true => lines[at].replacen(&format!("direction={old}"), &format!("direction={new}"), 1),
        false => lines[at].replacen(&format!(" {old}("), &format!(" {new}("), 1),
    };
}

fn names(line: &str, name: &str) -> bool {
    line.contains(&format!(" {name}(")) || line.contains(&format!("direction={name}"))
}

/// Another value for a scalar constant.
fn constant(lines: &mut [String], rng: &mut Rand32) {
    const VALUES: &[&str] =
        &["0", "-0", "1", "-1", "2", "7", "nan", "inf", "-inf", "1e-40", "3e38", "0.5", "100000"];
    let found: Vec<usize> =
        (0..lines.len()).filter(|&at| lines[at].contains("[] constant(")).collect();
    let Some(&at) = found.get(pick(rng, found.len())) else { return };
    let Some(value) = one_of(rng, VALUES) else { return };
    if let Some((before, _, after)) = parts(&lines[at]) {
        lines[at] = format!("{before}{value}{after}");
    }
}

/// Drops an attribute.
fn attribute(lines: &mut [String], rng: &mut Rand32) {
    let at = pick(rng, lines.len());
    let Some((before, operands, after)) = parts(&lines[at]) else { return };
    let attributes: Vec<&str> = after.split(", ").collect();
    if attributes.len() < 2 {
        return;
    }
    let dropped = 1 + pick(rng, attributes.len() - 1);
    let kept: Vec<&str> =
        attributes.iter().enumerate().filter(|&(i, _)| i != dropped).map(|(_, a)| *a).collect();
    lines[at] = format!("{before}{operands}{}", kept.join(", "));
}

/// Another number somewhere in the attributes or the shape of one line.
fn number(lines: &mut [String], rng: &mut Rand32) {
    let at = pick(rng, lines.len());
    let line = &lines[at];
    if line.contains(" constant(") {
        return;
    }
    let counter = std::cell::Cell::new(0_usize);
    let count = || counter.replace(counter.get() + 1);
    replace_numbers(line, |_| {
        count();
        None
    });
    let chosen = pick(rng, counter.replace(0));
    let Some(new) = one_of(rng, SIZES) else { return };
    lines[at] = replace_numbers(line, |_| (count() == chosen).then_some(new));
}

/// The line without its result's shape, if the operation determines it.
fn without_inferred_shape(line: &str) -> String {
    let Some((name, instruction)) = line.split_once(" = ") else { return line.to_owned() };
    let shape = match instruction.starts_with('(') {
        true => closing(instruction).map(|end| end + 1),
        false => instruction.find(' '),
    };
    let Some(shape) = shape else { return line.to_owned() };
    let operation = instruction[shape..].trim_start();
    let opcode = operation.split('(').next().unwrap_or_default();
    let needs_shape = OPERATIONS.iter().any(|row| row.name == opcode && row.needs_shape);
    // The type of a product is free.
    if needs_shape || matches!(opcode, "dot" | "convolution" | "ragged-dot") {
        return line.to_owned();
    }
    format!("{name} = {operation}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::normal_form;

    #[test]
    fn numbers_between_brackets_are_replaced() {
        let replaced =
            replace_numbers("  s.5 = f32[5,15] slice(p.5), slice={[0:5], [1:5:5]}", |n| {
                (n == "5").then_some("0")
            });
        assert_eq!(replaced, "  s.5 = f32[0,15] slice(p.5), slice={[0:0], [1:0:0]}");
    }

    #[test]
    fn most_mutants_of_a_program_are_programs() {
        let program = "ENTRY e {
            x = f32[4,6] parameter(0)
            y = f32[4,6] exponential(x)
            t = f32[6,4] transpose(y), dimensions={1,0}
            ROOT s = f32[3,2] slice(t), slice={[0:6:2], [1:3]}
        }";
        let program = normal_form(program).expect("a program");
        let mut rng = Rand32::new(0);
        let mutants = (0..100).map(|_| mutate(&program, &mut rng));
        let valid = mutants.filter(|text| helio::parse(text).and_then(helio::ir::verify).is_ok());
        assert!(valid.count() > 30);
    }
}
