//! What a builder holds, and how instructions and computations get into it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::XlaComputation;
use super::scope::Scope;
use crate::text::attrs::quote;
use crate::{
    CompId, Computation, ElementType, Error, Extra, InferCx, Instr, InstrId, Location, Module,
    ModuleConfig, Op, Result, Shape,
};

pub(super) struct State {
    computation: Computation,
    /// The computations that this one calls, callees before callers.
    module: Module,
    error: Option<Error>,
    /// Where the imported computations are, by origin.
    imports: HashMap<ComputationKey, CompId>,
    /// Computations made for operations that need one and are given none, by operation and type.
    pub(super) scalars: HashMap<(&'static str, ElementType), XlaComputation>,
    names: Names,
    computation_names: Names,
    pub(super) scope: Scope,
    /// The end of the chain of infeeds and outfeeds without tokens of their own.
    pub(super) token: Option<InstrId>,
    pub(super) config: ModuleConfig,
}

/// Tells computations apart wherever they are copied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ComputationKey(u64);

impl ComputationKey {
    pub(super) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        ComputationKey(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl State {
    pub(super) fn new(name: &str) -> Self {
        let name = sanitize(name, "computation");
        State {
            computation: Computation::new(name.clone()),
            module: Module::new(name),
            error: None,
            imports: HashMap::new(),
            scalars: HashMap::new(),
            names: Names::default(),
            computation_names: Names::default(),
            scope: Scope::default(),
            token: None,
            config: ModuleConfig::default(),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.computation.name
    }

    pub(super) fn error(&self) -> Option<&Error> {
        self.error.as_ref()
    }

    pub(super) fn set_execution_thread(&mut self, thread: Option<&str>) {
        let attribute = |thread| ("execution_thread".to_owned(), quote(thread));
        self.computation.attributes = thread.into_iter().map(attribute).collect();
    }

    /// Keeps the first error, with the line of the framework's program that the next instruction is to
    /// have.
    pub(super) fn fail(&mut self, error: Error) {
        if self.error.is_none() {
            let line = self.scope.metadata().and_then(|told| self.module.source_line(told));
            self.error = Some(error.from_line(line));
        }
    }

    /// An instruction; ids come from [`State::add`] alone, so there is one.
    pub(super) fn instr(&self, id: InstrId) -> &Instr {
        self.computation.instr(id)
    }

    /// What an instruction carries besides its operation, to change it.
    pub(super) fn extra_mut(&mut self, id: InstrId) -> &mut Extra {
        self.computation.instr_mut(id).extra.get_or_insert_default()
    }

    /// Appends an instruction. `shape`, if given, is the inferred one with a layout.
    pub(super) fn add(
        &mut self,
        op: Op,
        operands: Vec<InstrId>,
        name: Option<&str>,
        shape: Option<Shape>,
        at: Location,
    ) -> Result<InstrId> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        let name = self.names.numbered(&sanitize(name.unwrap_or_default(), op.opcode()));
        let shapes: Vec<&Shape> = operands.iter().map(|&id| &self.instr(id).shape).collect();
        let inferred = op
            .infer(&InferCx { operands: &shapes, module: &self.module })
            .map_err(|e| e.in_instruction(&name).at(Some(at.clone())))?;
        let shape = shape.filter(|shape| shape.same(&inferred)).unwrap_or(inferred);
        let extra = self.scope.extra();
        let instr = Instr::new(op, operands, shape).named(name);
        self.computation.push(Instr { extra, at: Some(at), ..instr })
    }

    /// Copies a computation and those it calls, except what is here already.
    pub(super) fn import(&mut self, computation: &XlaComputation) -> Result<CompId> {
        let source = computation.module();
        let mut needed = vec![false; source.computations().len()];
        needed[source.entry_id().index()] = true;
        // Callees precede callers, so one walk backwards finds them all.
        for id in source.ids().rev() {
            if needed[id.index()] {
                for callee in source.computation(id).instrs().iter().flat_map(|i| i.op.callees()) {
                    needed[callee.index()] = true;
                }
            }
        }
        let mut here: Vec<Option<CompId>> = vec![None; needed.len()];
        for id in source.ids().filter(|id| needed[id.index()]) {
            let origin = computation.origin(id);
            let copy = match self.imports.get(&origin) {
                Some(&copy) => copy,
                None => {
                    let copy = self.copy(source.computation(id), &here)?;
                    self.imports.insert(origin, copy);
                    copy
                }
            };
            here[id.index()] = Some(copy);
        }
        lookup(&here, source.entry_id())
    }

    fn copy(&mut self, source: &Computation, here: &[Option<CompId>]) -> Result<CompId> {
        let mut copy = source.clone();
        copy.name = self.computation_names.unique(&copy.name);
        for id in copy.ids() {
            let instr = copy.instr_mut(id);
            instr.name = self.names.unique(&instr.name).into();
            for callee in instr.op.callees_mut() {
                *callee = lookup(here, *callee)?;
            }
        }
        self.module.push(copy)
    }

    /// A module of everything so far.
    pub(super) fn build(&self, root: Option<InstrId>) -> Result<XlaComputation> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        let mut entry = self.computation.clone();
        crate::ensure!(
            !entry.instrs().is_empty(),
            "builder.C7",
            "computation {} has no instructions, so no root",
            entry.name
        );
        if let Some(root) = root {
            entry.set_root(root);
        }
        self.check_parameters()?;
        let mut names = self.computation_names.clone();
        entry.name = names.unique(&entry.name);
        let mut module = self.module.clone();
        module.config = self.config.clone();
        let id = module.push(entry)?;
        let mut origins = vec![ComputationKey::new(); id.index() + 1];
        for (&origin, copy) in &self.imports {
            origins[copy.index()] = origin;
        }
        Ok(XlaComputation::new(Arc::new(module), origins.into()))
    }

    fn check_parameters(&self) -> Result<()> {
        let mut parameters = BTreeMap::new();
        for instr in self.computation.instrs() {
            let Op::Parameter(op) = &instr.op else { continue };
            if parameters.insert(op.number, instr).is_some() {
                let detail = format!("there are two parameters of number {}", op.number);
                return Err(Error::rule("builder.C2", detail)
                    .in_instruction(&instr.name)
                    .at(instr.at.clone()));
            }
        }
        for (expected, (number, instr)) in parameters.into_iter().enumerate() {
            if expected != number {
                let detail = format!("there is a parameter {number}, but no parameter {expected}");
                return Err(Error::rule("builder.C2", detail)
                    .in_instruction(&instr.name)
                    .at(instr.at.clone()));
            }
        }
        Ok(())
    }
}

fn lookup(here: &[Option<CompId>], id: CompId) -> Result<CompId> {
    let found = here.get(id.index()).copied().flatten();
    found.ok_or_else(|| Error::internal("a called computation does not precede its caller"))
}

/// The names in use, of instructions or of computations.
#[derive(Clone, Default)]
struct Names {
    used: HashSet<String>,
    last: u64,
}

impl Names {
    /// `base.N` with the next number that makes it unique.
    fn numbered(&mut self, base: &str) -> String {
        loop {
            self.last += 1;
            let name = format!("{base}.{}", self.last);
            if self.used.insert(name.clone()) {
                return name;
            }
        }
    }

    /// The name itself if it is free, else one with another number.
    fn unique(&mut self, name: &str) -> String {
        if self.used.insert(name.to_owned()) {
            return name.to_owned();
        }
        let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
        let base = name[..name.len() - digits].strip_suffix('.').filter(|_| digits > 0);
        self.numbered(base.unwrap_or(name))
    }
}

/// `name` with all characters replaced that HLO's names cannot have; `default` for an empty one.
fn sanitize(name: &str, default: &str) -> String {
    if name.is_empty() {
        return default.to_owned();
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let clean: String = name.chars().map(|c| if allowed(c) { c } else { '_' }).collect();
    match clean.as_bytes()[0] {
        b'a'..=b'z' | b'A'..=b'Z' | b'_' => clean,
        _ => format!("_{clean}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names = Names::default();
        assert_eq!(names.numbered("add"), "add.1");
        assert_eq!(names.unique("add.1"), "add.2");
        assert_eq!(names.unique("add.3"), "add.3");
        assert_eq!(names.numbered("add"), "add.4");
        assert_eq!(names.unique("max"), "max");
        assert_eq!(names.unique("max"), "max.5");
        assert_eq!(names.unique("x7"), "x7");
        assert_eq!(names.unique("x7"), "x7.6");
    }

    #[test]
    fn names_are_clean() {
        assert_eq!(sanitize("", "add"), "add");
        assert_eq!(sanitize("a b%ü", ""), "a_b__");
        assert_eq!(sanitize("0.x", ""), "_0.x");
    }
}
