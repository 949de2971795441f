//! Telling the user what of a program has no native code.

use std::collections::BTreeMap;

use helio::{Executable, Reason};
use serde_json::{Value, json};

/// Says on standard error, in one line, what has no native code although compiled code was asked
/// for; nothing if everything has.
pub(crate) fn note(program: &Executable) {
    if let Some(line) = line(program) {
        // Nothing is left to do if standard error is closed.
        let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{line}\n"));
    }
}

fn line(program: &Executable) -> Option<String> {
    let instructions = program.interpreted();
    let first = instructions.first()?;
    if first.reason.concerns_program() {
        return Some(format!("note: the whole program is interpreted because of {first}"));
    }
    if let [only] = instructions {
        return Some(format!("note: one instruction has no native code: {only}"));
    }
    let mut groups: BTreeMap<(Reason, &str), usize> = BTreeMap::new();
    for instruction in instructions {
        *groups.entry((instruction.reason, instruction.operation)).or_default() += 1;
    }
    let groups = groups.into_iter().map(|((reason, operation), count)| match count {
        1 => format!("{operation}: {reason}"),
        _ => format!("{count} of {operation}: {reason}"),
    });
    let groups = groups.collect::<Vec<_>>().join("; ");
    Some(format!("note: {} instructions have no native code ({groups})", instructions.len()))
}

/// The same for programs: an object for each instruction.
pub(crate) fn list(program: &Executable) -> Value {
    let instructions = program.interpreted().iter();
    let object = |i: &helio::Interpreted| {
        json!({
            "instruction": i.instruction,
            "operation": i.operation,
            "reason": i.reason.name(),
            "whole": i.reason.concerns_program(),
        })
    };
    instructions.map(object).collect()
}
