//! What can be told of a program's communication before it runs: who would wait for whom in vain.
//!
//! The rules are numbered in `docs/spec/communication.md`. What is certainly wrong are errors, which
//! [`verify`](crate::verify()) reports with all others; what goes wrong only for some values, or only
//! if no other program is at the other end, are [`warnings`].

mod channels;
mod classes;
mod cycle;
mod divergence;
mod meeting;
mod order;
#[cfg(test)]
mod tests;

use channels::Channels;

use crate::ops::Effect;
use crate::{Computation, Error, Instr, InstrAt, Module, Op, Verified};

/// What may go wrong when the program communicates, in the order of the text: `infeed.C3`,
/// `outfeed.C3`, `channel.C6`–`channel.C8`, `collective.C1`, `collective.C2`.
///
/// ```
/// use helio_ir::{communication, text, verify};
/// let text = "ENTRY e {
///   t = token[] after-all()
///   u = token[] after-all()
///   a = (f32[2], token[]) infeed(t)
///   ROOT b = (f32[2], token[]) infeed(u) }";
/// let warnings = communication::warnings(&verify(text::parse(text)?)?);
/// assert_eq!(warnings[0].rule_id(), Some("infeed.C3"));
/// # Ok::<(), helio_ir::Errors>(())
/// ```
pub fn warnings(module: &Verified<Module>) -> Vec<Error> {
    if !communicates(module) {
        return Vec::new();
    }
    let mut found = order::warnings(module);
    if let Ok(channels) = Channels::of(module) {
        found.extend(channels.warnings());
        found.extend(cycle::warning(module, &channels));
    }
    found.extend(meeting::warnings(module));
    found.extend(divergence::warnings(module));
    in_order(module, found)
}

/// What is certainly wrong: `channel.C1`–`channel.C5`, in the order of the text.
pub(crate) fn errors(module: &Module) -> Vec<Error> {
    if !communicates(module) {
        return Vec::new();
    }
    let found = match Channels::of(module) {
        Ok(channels) => {
            let mut found = channels.errors();
            found.extend(cycle::error(module, &channels));
            found
        }
        Err(found) => found,
    };
    in_order(module, found)
}

/// What was found, in the order of the text.
fn in_order(module: &Module, mut found: Vec<Found>) -> Vec<Error> {
    found.sort_by_key(|(at, _)| *at);
    let placed = |((computation, instr), error): Found| {
        module.place(error, module.computation(computation).instr(instr))
    };
    found.into_iter().map(placed).collect()
}

/// What was found, and where it stands: instructions are sorted as the text has them.
type Found = (InstrAt, Error);

/// A finding about an instruction.
fn found(place: InstrAt, instr: &Instr, rule: &'static str, detail: String) -> Found {
    (place, Error::rule(rule, detail).in_instruction(&instr.name).at(instr.at.clone()))
}

/// Every instruction of a module with its place.
fn places(module: &Module) -> impl Iterator<Item = (InstrAt, &Instr)> {
    module.ids().flat_map(move |id| {
        let computation = module.computation(id);
        computation.ids().map(move |instr| ((id, instr), computation.instr(instr)))
    })
}

/// Whether any instruction exchanges something; most programs have none.
fn communicates(module: &Module) -> bool {
    let exchanges = |computation: &Computation| {
        let mut effects = computation.effects().iter().map(|&id| computation.instr(id).op.effect());
        effects.any(|effect| effect == Effect::Exchange)
    };
    module.computations().iter().any(exchanges)
}

/// For each computation, whether an instruction of it, or of a computation that it calls, is of a kind.
fn contains(module: &Module, is_kind: impl Fn(&Op) -> bool) -> Vec<bool> {
    let mut contains: Vec<bool> = Vec::with_capacity(module.computations().len());
    for computation in module.computations() {
        let has = |instr: &Instr| {
            is_kind(&instr.op) || instr.op.callees().iter().any(|callee| contains[callee.index()])
        };
        let any = computation.instrs().iter().any(has);
        contains.push(any);
    }
    contains
}
