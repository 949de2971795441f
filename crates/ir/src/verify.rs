//! Checks of whole modules; the only maker of [`Verified`].
//!
//! The rules are numbered in `docs/spec/module.md`; those of single operations are checked by
//! [`Op::infer`], which this calls for every instruction.

mod config;

use std::collections::BTreeMap;

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};
use smallvec::SmallVec;

use crate::communication;
use crate::ops::{self, InferCx};
use crate::text::{MAX_ERRORS, is_name};
use crate::{CompId, Computation, Error, Errors, Instr, InstrId, Module, Op, OpDef, Result, Shape};

/// The most tuples and leaves of shapes that inference over a whole module looks at. (An operand takes
/// one word of text, but may be a tuple of a hundred thousand.)
pub const MAX_VISITED_LEAVES: usize = 1 << 26;

/// A module that [`verify`] has found nothing wrong with.
#[derive(Clone, Debug)]
pub struct Verified<M>(M);

impl<M> Verified<M> {
    /// The module itself, free to be changed, no longer verified.
    pub fn into_inner(self) -> M {
        self.0
    }
}

impl<M> std::ops::Deref for Verified<M> {
    type Target = M;
    fn deref(&self) -> &M {
        &self.0
    }
}

/// Checks the module.
///
/// Errors: what is wrong with it, in the order of the text, at most
/// [`MAX_ERRORS`]: `module.C1`–`module.C8`, `computation.C1`–`computation.C4`, `instruction.C1`,
/// `instruction.C2`, `channel.C1`–`channel.C5`, the rules of its operations; `Unimplemented` for sizes that are not known (`?`), `ResourceExhausted`
/// beyond [`MAX_VISITED_LEAVES`].
pub fn verify(module: Module) -> Result<Verified<Module>, Errors> {
    let mut verifier = Verifier::new(&module);
    verifier.run();
    let mut errors = verifier.errors;
    errors.truncate(MAX_ERRORS);
    if errors.is_empty() { Ok(Verified(module)) } else { Err(errors.into()) }
}

/// What is wrong with the computations of a module that is not whole, and with the instructions of
/// unfinished computations, which may call those of the module.
pub(crate) fn verify_parts(module: &Module, unfinished: &[Computation]) -> Vec<Error> {
    let mut verifier = Verifier::new(module);
    for id in module.ids() {
        if let Err(e) = verifier.computation(id) {
            verifier.errors.push(e);
            return verifier.errors;
        }
    }
    for computation in unfinished {
        let mut sizes = Vec::with_capacity(computation.instrs().len());
        for instr in computation.instrs() {
            sizes.push(leaves(&instr.shape));
            match verifier.instruction(computation, instr, &sizes) {
                Ok(()) => {}
                Err(Stop::Rule(e)) => verifier.errors.push(module.place(e, instr)),
                Err(Stop::Limit(e)) => {
                    verifier.errors.push(module.place(e, instr));
                    return verifier.errors;
                }
            }
        }
    }
    verifier.errors
}

struct Verifier<'a> {
    module: &'a Module,
    /// For each computation checked so far, the leaves of what it takes and gives.
    sizes: Vec<usize>,
    visited_leaves: usize,
    /// Whether there is a dimension of unknown size.
    is_unbounded: bool,
    errors: Vec<Error>,
}

impl<'a> Verifier<'a> {
    fn new(module: &'a Module) -> Self {
        let (sizes, errors) = (Vec::new(), Vec::new());
        Verifier { module, sizes, visited_leaves: 0, is_unbounded: false, errors }
    }

    fn run(&mut self) {
        let module = self.module;
        if module.computations().is_empty() {
            self.errors.push(Error::rule("module.C1", "a module has at least one computation"));
            return;
        }
        // Everything else may ask for results.
        let empty = module.computations().iter().find(|c| c.instrs().is_empty());
        if let Some(empty) = empty {
            let detail = format!("computation {} has no instructions", empty.name);
            self.errors.push(Error::rule("module.C1", detail).at(empty.at.clone()));
            return;
        }
        self.errors.extend(config::check(module));
        self.errors.extend(word("module.C2", "module", &module.name).err());
        let mut names = HashMap::new();
        for id in module.ids() {
            let computation = module.computation(id);
            let named = word("module.C2", "computation", &computation.name);
            self.errors.extend(named.err().map(|e| e.at(computation.at.clone())));
            if let Some(other) = names.insert(computation.name.as_str(), id) {
                let e = Error::rule(
                    "module.C2",
                    format!(
                        "two computations are named `{}`; the other is number {}",
                        computation.name, other.0
                    ),
                );
                self.errors.push(e.at(computation.at.clone()));
            }
            if let Err(e) = self.computation(id) {
                // No later computation can be checked within the limit.
                self.errors.push(e);
                return;
            }
            if self.errors.len() >= MAX_ERRORS {
                return;
            }
        }
        // An operation that cannot have such a size has said so, with a rule.
        let is_told = |e: &Error| {
            let at = (e.instruction(), e.location());
            self.errors.iter().any(|told| (told.instruction(), told.location()) == at)
        };
        if self.is_unbounded
            && let Some(e) = unbounded(module).filter(|e| !is_told(e))
        {
            self.errors.push(e);
        }
        if self.errors.is_empty() {
            self.errors.extend(communication::errors(module));
        }
    }

    /// Errors: the limit is reached; all else is collected.
    fn computation(&mut self, id: CompId) -> Result<()> {
        let computation = self.module.computation(id);
        self.errors.extend(parameters(self.module, computation));
        let mut names = HashSet::with_capacity(computation.instrs().len());
        let mut sizes = Vec::with_capacity(computation.instrs().len());
        for instr_id in computation.ids() {
            let instr = computation.instr(instr_id);
            sizes.push(leaves(&instr.shape));
            self.is_unbounded |= is_unbounded(instr);
            let named = word("computation.C2", "instruction", &instr.name);
            self.errors.extend(named.err().map(|e| self.module.place(e, instr)));
            if !names.insert(instr.name.as_str()) {
                let detail = format!("two instructions are named `{}`", instr.name);
                let e = Error::rule("computation.C2", detail);
                self.errors.push(self.module.place(e, instr));
            }
            let result = order(id, instr_id, instr, self.module).map_err(Stop::Rule);
            match result.and_then(|()| self.instruction(computation, instr, &sizes)) {
                Ok(()) => {}
                Err(Stop::Rule(e)) => self.errors.push(self.module.place(e, instr)),
                Err(Stop::Limit(e)) => return Err(self.module.place(e, instr)),
            }
            if self.errors.len() >= MAX_ERRORS {
                break;
            }
        }
        let params = computation.params();
        let ends = params.values().copied().chain([computation.root()]);
        self.sizes.push(ends.filter_map(|id| sizes.get(id.index())).sum());
        Ok(())
    }

    /// instruction.C1: the shape is the one that the operation gives; instruction.C2. Operands and
    /// callees precede.
    fn instruction(
        &mut self,
        computation: &Computation,
        instr: &Instr,
        sizes: &[usize],
    ) -> Result<(), Stop> {
        let operands: SmallVec<[_; 4]> =
            instr.operands.iter().map(|&id| &computation.instr(id).shape).collect();
        // The most frequent users of large tuples by far; they need no copy.
        if tuple_shape(instr, &operands) {
            return Ok(());
        }
        let given = instr.operands.iter().map(|id| sizes[id.index()]);
        let called = instr.op.callees().into_iter().map(|id| self.sizes[id.index()]);
        let visited = given.chain(called).fold(0, usize::saturating_add);
        self.visited_leaves = self.visited_leaves.saturating_add(visited);
        if self.visited_leaves > MAX_VISITED_LEAVES {
            return Err(Stop::Limit(Error::exhausted(format!(
                "the shapes of all operands together have more than {MAX_VISITED_LEAVES} leaves"
            ))));
        }
        let cx = InferCx { operands: &operands, module: self.module };
        let inferred = instr.op.infer(&cx).map_err(Stop::Rule)?;
        if !inferred.same(&instr.shape) {
            let (declared, inferred) = (brief(&instr.shape), brief(&inferred));
            let detail = format!("declared {declared}, but {} gives {inferred}", instr.op.opcode());
            return Err(Stop::Rule(Error::rule("instruction.C1", detail)));
        }
        pair(computation, instr).map_err(Stop::Rule)
    }
}

/// module.C2, computation.C2: a name is one that text can have.
fn word(rule: &'static str, what: &str, name: &str) -> Result<()> {
    crate::ensure!(
        is_name(name),
        rule,
        "`{}` names no {what}: letters, digits and `_.-` do, not beginning with a digit or `.-`",
        name.escape_debug()
    );
    Ok(())
}

/// instruction.C2: what ends an asynchronous operation, or lets it go on, is given what began it.
/// (Inference sees shapes alone, and any tuple may have that of a beginning.)
fn pair(computation: &Computation, instr: &Instr) -> Result<()> {
    let beginnings = beginnings(&instr.op);
    if let (false, [first, ..]) = (beginnings.is_empty(), &instr.operands[..]) {
        let operand = computation.instr(*first);
        crate::ensure!(
            beginnings.contains(&operand.op.opcode()),
            "instruction.C2",
            "the operand of {} must be {}; `{}` is {}",
            instr.op.opcode(),
            beginnings.join(" or "),
            operand.name,
            operand.op.opcode()
        );
    }
    Ok(())
}

/// The opcodes that the operand of an operation may have; empty if any may.
fn beginnings(op: &Op) -> &'static [&'static str] {
    match op {
        Op::AllReduceDone(_) => &[ops::AllReduceStart::OPCODE],
        Op::AllGatherDone(_) => &[ops::AllGatherStart::OPCODE],
        Op::CollectivePermuteDone(_) => &[ops::CollectivePermuteStart::OPCODE],
        Op::CopyDone(_) => &[ops::CopyStart::OPCODE],
        Op::AsyncUpdate(_) | Op::AsyncDone(_) => {
            &[ops::AsyncStart::OPCODE, ops::AsyncUpdate::OPCODE]
        }
        // A loop may carry a transfer from one iteration to the next.
        Op::SendDone(_) => &[ops::Send::OPCODE, ops::GetTupleElement::OPCODE],
        Op::RecvDone(_) => &[ops::Recv::OPCODE, ops::GetTupleElement::OPCODE],
        _ => &[],
    }
}

enum Stop {
    /// The instruction breaks a rule.
    Rule(Error),
    /// The module is too large to be checked.
    Limit(Error),
}

/// Whether this is a `tuple` or `get-tuple-element` with the shape that it should have.
fn tuple_shape(instr: &Instr, operands: &[&Shape]) -> bool {
    match (&instr.op, operands, &instr.shape) {
        (Op::GetTupleElement(op), [Shape::Tuple(elements)], shape) => {
            elements.get(op.index).is_some_and(|element| element.same(shape))
        }
        (Op::Tuple(_), operands, Shape::Tuple(elements)) => {
            operands.len() == elements.len()
                && operands.iter().zip(elements).all(|(operand, element)| operand.same(element))
        }
        _ => false,
    }
}

/// The tuples and leaves of a shape.
fn leaves(shape: &Shape) -> usize {
    match shape {
        Shape::Tuple(elements) => 1 + elements.iter().map(leaves).sum::<usize>(),
        _ => 1,
    }
}

/// module.C3, computation.C3, computation.C4: what an instruction refers to stands before it.
fn order(id: CompId, instr_id: InstrId, instr: &Instr, module: &Module) -> Result<()> {
    for callee in instr.op.callees() {
        crate::ensure!(
            callee < id,
            "module.C3",
            "calls computation number {}, which does not precede number {}",
            callee.0,
            id.0
        );
    }
    let computation = module.computation(id);
    let name = |id: InstrId| {
        let instr = computation.instrs().get(id.index());
        instr.map_or_else(|| format!("number {}", id.0), |instr| format!("`{}`", instr.name))
    };
    for &operand in &instr.operands {
        crate::ensure!(
            operand < instr_id,
            "computation.C3",
            "the operand {} does not precede it",
            name(operand)
        );
    }
    for &before in instr.extra.iter().flat_map(|extra| &extra.control_predecessors) {
        crate::ensure!(
            before < instr_id,
            "computation.C4",
            "the control predecessor {} does not precede it",
            name(before)
        );
    }
    Ok(())
}

/// computation.C1: parameters are numbered 0, 1, 2 …, each once.
fn parameters(module: &Module, computation: &Computation) -> Vec<Error> {
    let mut errors = Vec::new();
    let mut numbers = BTreeMap::new();
    for instr in computation.instrs() {
        if let Op::Parameter(op) = &instr.op
            && let Some(other) = numbers.insert(op.number, instr)
        {
            let detail = format!("parameter {} is `{}` already", op.number, other.name);
            errors.push(module.place(Error::rule("computation.C1", detail), instr));
        }
    }
    let count = numbers.len();
    if let Some((number, instr)) = numbers.iter().find(|&(&number, _)| number >= count) {
        let detail = format!("parameter {number} of {count}; they are numbered from 0");
        errors.push(module.place(Error::rule("computation.C1", detail), instr));
    }
    errors
}

/// One error if there is any shape with a dimension of unknown size: it needs refinement, and then
/// all do.
fn unbounded(module: &Module) -> Option<Error> {
    let mut instrs = module.computations().iter().flat_map(Computation::instrs);
    let instr = instrs.find(|instr| is_unbounded(instr))?;
    let shape = brief(&instr.shape);
    let detail = format!("{shape} has a size that is not known (`?`); the module needs refinement");
    Some(module.place(Error::unimplemented(detail), instr))
}

/// Whether a dimension of an instruction's shape has an unknown size.
fn is_unbounded(instr: &Instr) -> bool {
    if let Shape::Array(array) = &instr.shape {
        return array.is_unbounded();
    }
    // A stack of its own: shapes that the builder made may be nested deep.
    let mut stack = vec![&instr.shape];
    while let Some(shape) = stack.pop() {
        match shape {
            Shape::Array(array) if array.is_unbounded() => return true,
            Shape::Tuple(elements) => stack.extend(elements),
            _ => {}
        }
    }
    false
}

/// At most 300 characters of a shape, for messages.
pub(crate) fn brief(shape: &Shape) -> String {
    let text = shape.to_string();
    match text.char_indices().nth(300) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::Call;
    use crate::ops::Parameter;
    use crate::text::parse;
    use crate::{ElementType, Extra, UnaryOp};

    /// The rules that a module breaks, in order.
    fn rules(module: Module) -> Vec<&'static str> {
        let errors = verify(module).err().map(Vec::from).unwrap_or_default();
        errors.iter().map(|e| e.rule_id().unwrap_or("none")).collect()
    }

    fn instr(name: &str, op: impl Into<Op>, operands: &[u32], shape: Shape) -> Instr {
        let operands: Vec<_> = operands.iter().copied().map(InstrId).collect();
        Instr::new(op, operands, shape).named(name)
    }

    fn f32() -> Shape {
        Shape::scalar(ElementType::F32)
    }

    fn param() -> Instr {
        instr("x", Parameter { number: 0, shape: f32() }, &[], f32())
    }

    /// What text cannot say, since its parser would find it.
    #[test]
    fn modules_made_by_hand() {
        assert_eq!(rules(Module::new("empty")), ["module.C1"]);
        let mut module = parse("ENTRY e { x = f32[] parameter(0) }").unwrap();
        *module.computation_mut(CompId(0)) = Computation::new("empty");
        assert_eq!(rules(module), ["module.C1"]);

        let mut module = Module::new("twins");
        for _ in 0..2 {
            let mut computation = Computation::new("same");
            computation.push(param()).unwrap();
            computation.push(param()).unwrap();
            module.push(computation).unwrap();
        }
        let once = ["computation.C1", "computation.C2"];
        assert_eq!(rules(module), [&once[..], &["module.C2"], &once].concat());

        let mut module = Module::new("new line\n");
        let mut computation = Computation::new("");
        computation.push(Instr { name: "0".to_owned().into(), ..param() }).unwrap();
        module.push(computation).unwrap();
        assert_eq!(rules(module), ["module.C2", "module.C2", "computation.C2"]);

        let mut module = Module::new("order");
        let mut computation = Computation::new("c");
        let x = computation.push(param()).unwrap();
        let y = computation.push(instr("y", UnaryOp::Abs, &[0], f32())).unwrap();
        let extra = Extra { control_predecessors: vec![y], ..Extra::default() };
        computation.instr_mut(x).extra = Some(Box::new(extra));
        computation.instr_mut(y).operands = vec![y].into();
        let z = computation.push(instr("z", UnaryOp::Abs, &[0], f32())).unwrap();
        module.push(computation).unwrap();
        module.computation_mut(CompId(0)).instr_mut(z).op =
            Op::Call(Call { to_apply: CompId(0), is_composite: false });
        assert_eq!(rules(module), ["computation.C4", "computation.C3", "module.C3"]);
    }

    #[test]
    fn places_and_words() {
        let text = "HloModule m, entry_computation_layout={(f32[3])->f32[2]}
            ENTRY e {
              x = f32[2] parameter(0)
              y = f32[3] negate(x)
              ROOT z = f32[2] negate(x)
            }";
        let errors = verify(parse(text).unwrap()).unwrap_err();
        let texts: Vec<_> = errors.iter().map(Error::to_string).collect();
        assert_eq!(
            texts,
            [
                "2:19: invalid argument[module.C4]: entry_computation_layout: parameter 0 is f32[3], \
                 but f32[2] in the entry computation",
                "4:15: invalid argument[instruction.C1]: y: declared f32[3], but negate gives f32[2]",
            ]
        );
    }

    #[test]
    fn errors_name_the_line_of_the_framework_s_program() {
        let text = "HloModule m
            FileNames
            1 \"model.py\"
            FunctionNames
            1 \"loss\"
            FileLocations
            1 {file_name_id=1 function_name_id=1 line=7 end_line=7 column=1 end_column=9}
            StackFrames
            1 {file_location_id=1 parent_frame_id=1}
            ENTRY e {
              x = f32[2] parameter(0)
              y = f32[3] negate(x), metadata={op_name=\"jit(f)/neg\" source_file=\"a.py\" source_line=31}
              ROOT z = f32[3] add(y, x), metadata={stack_frame_id=1}
            }";
        let texts = |errors: Errors| errors.iter().map(Error::to_string).collect::<Vec<_>>();
        assert_eq!(
            texts(verify(parse(text).unwrap()).unwrap_err())[0],
            "12:15: invalid argument[instruction.C1]: y (a.py:31, jit(f)/neg): declared f32[3], but \
             negate gives f32[2]",
        );
        // Where no shape is written, the parser itself looks.
        let text = text.replace("z = f32[3] add", "z = add");
        let error = &texts(parse(&text).unwrap_err())[0];
        assert!(error.contains(": z (model.py:7): "), "{error}");
    }

    #[test]
    fn unknown_sizes_need_refinement() {
        let text = "ENTRY e { x = f32[?] parameter(0) ROOT y = f32[?] abs(x) }";
        let errors = verify(parse(text).unwrap()).unwrap_err();
        assert_eq!(errors.len(), 1);
        assert_eq!(errors[0].code(), crate::Code::Unimplemented);
    }

    #[test]
    fn a_limit_for_shapes() {
        let leaves = 1 << 16;
        let large = format!("({})", vec!["f32[]"; leaves].join(","));
        let mut text = format!("ENTRY e {{ x = {large} parameter(0)\n");
        for i in 0..MAX_VISITED_LEAVES / leaves {
            text += &format!("c{i} = f32[] custom-call(x), custom_call_target=\"f\"\n");
        }
        let errors = verify(parse(&(text + "}")).unwrap()).unwrap_err();
        assert_eq!(errors.len(), 1);
        assert_eq!(errors[0].code(), crate::Code::ResourceExhausted);

        // Elements are looked at one by one.
        let mut text = format!("ENTRY e {{ x = {large} parameter(0)\n");
        for i in 0..MAX_VISITED_LEAVES / leaves {
            text += &format!("g{i} = f32[] get-tuple-element(x), index={i}\n");
        }
        assert!(verify(parse(&(text + "}")).unwrap()).is_ok());
    }
}
