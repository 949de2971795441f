//! A module that a pass is writing, computation by computation, from the one that it reads.

use std::collections::hash_map::Entry;
use std::fmt::Write as _;
use std::hash::BuildHasher;

use helio_ir::{CompId, Computation, Error, Instr, InstrId, Module, Name, Op, OriginSet, Result};
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::effects::Effects;
use crate::watch::Watch;

/// A module as far as a pass has made it.
#[derive(Debug)]
pub struct NewModule {
    module: Module,
    effects: Effects,
    names: Names,
    watch: Watch,
    /// Where instructions come from that are made now.
    pub(crate) origins: OriginSet,
    /// How many instructions there are so far.
    instrs: usize,
}

impl NewModule {
    /// Adds a computation, under a name of its own. Errors: as for [`Module::push`]; the limits of
    /// the compilation.
    pub fn push(&mut self, mut computation: Computation) -> Result<CompId> {
        let new = |id: &InstrId| computation.instr(*id).origins.is_empty();
        for id in computation.ids().filter(new).collect::<Vec<_>>() {
            self.give_origins(computation.instr_mut(id));
        }
        self.add(computation)
    }

    /// Adds a computation whose instructions have origins.
    fn add(&mut self, mut computation: Computation) -> Result<CompId> {
        let count = computation.instrs().len();
        self.instrs += count;
        self.watch.count_steps(count)?;
        self.watch.ensure_memory(self.instrs)?;
        computation.name = self.names.unique(computation.name.into()).into();
        let has_effect = self.effects.in_computation(&computation);
        let id = self.module.push(computation)?;
        self.effects.push(has_effect);
        Ok(id)
    }

    /// A computation that nothing calls any more. What is left in its place has no instructions, and must
    /// be dropped.
    pub(crate) fn take(&mut self, id: CompId) -> Computation {
        let computation = self.module.computation_mut(id);
        let empty = Computation::new(computation.name.clone());
        std::mem::replace(computation, empty)
    }

    /// Whether an instruction must stay even if nobody takes its value.
    pub fn has_effect(&self, op: &Op) -> bool {
        self.effects.has_effect(op)
    }

    /// Whether running a computation, which calls those that are made already, does more than compute a value.
    pub(crate) fn computation_has_effect(&self, computation: &Computation) -> bool {
        self.effects.in_computation(computation)
    }

    /// Gives an instruction without origins those of what it is made for.
    pub(crate) fn give_origins(&self, instr: &mut Instr) {
        if instr.origins.is_empty() {
            instr.origins.clone_from(&self.origins);
        }
    }

    /// Counts instructions looked at. Errors: the limits of the compilation.
    pub fn count_steps(&self, steps: usize) -> Result<()> {
        self.watch.count_steps(steps)
    }
}

impl std::ops::Deref for NewModule {
    type Target = Module;
    fn deref(&self) -> &Module {
        &self.module
    }
}

/// Makes a new module out of an old one, a computation at a time, callees first; those that the
/// entry does not need are dropped.
///
/// `rewrite` gets the module as far as it is made, to which it may add computations of its own, and
/// the old computation, which calls the new ones already; it gives what takes its place. Errors:
/// those of `rewrite`.
pub fn rebuild(
    mut module: Module,
    watch: &Watch,
    mut rewrite: impl FnMut(&mut NewModule, Computation) -> Result<Computation>,
) -> Result<Module> {
    let needed = needed(&module);
    let entry = module.entry_id();
    let mut new = Module::new(std::mem::take(&mut module.name));
    new.config = std::mem::take(&mut module.config);
    new.origins = std::mem::take(&mut module.origins);
    // Names of old computations are kept: those that are added give way to them.
    let mut names = Names::default();
    for (computation, needed) in module.computations().iter().zip(&needed) {
        if *needed {
            names.reserve(&computation.name);
        }
    }
    let (effects, watch) = (Effects::default(), watch.clone());
    let mut new =
        NewModule { module: new, effects, names, watch, origins: OriginSet::default(), instrs: 0 };
    let mut new_ids: Vec<Option<CompId>> = Vec::with_capacity(needed.len());
    for (mut computation, needed) in module.into_computations().into_iter().zip(needed) {
        if !needed {
            new_ids.push(None);
            continue;
        }
        renumber_callees(&mut computation, &new_ids)?;
        new.names.release(&computation.name);
        let computation = rewrite(&mut new, computation)?;
        new_ids.push(Some(new.add(computation)?));
    }
    let entry = new_ids.get(entry.index()).copied().flatten();
    let entry = entry.ok_or_else(|| Error::internal("the entry is not among the computations"))?;
    new.module.set_entry(entry);
    Ok(new.module)
}

/// Gives instructions without a name that of their operation, and those that have one name different
/// ones.
pub(crate) fn name_instrs(mut module: Module) -> Module {
    for id in module.ids() {
        let computation = module.computation_mut(id);
        let mut names = Names::for_so_many(computation.instrs().len());
        computation.name_instrs(|name, op| {
            if name.is_empty() {
                *name = op.opcode().into();
            }
            *name = names.unique(std::mem::take(name));
        });
    }
    module
}

/// Drops computations that the entry does not need.
pub(crate) fn drop_unused(module: Module, watch: &Watch) -> Result<Module> {
    if needed(&module).into_iter().all(|needed| needed) {
        return Ok(module);
    }
    rebuild(module, watch, |_, computation| Ok(computation))
}

/// Whether there is such an operation among those that call computations: a pass that looks for it can be
/// left out if not.
pub(crate) fn calls(module: &Module, is_wanted: impl Fn(&Op) -> bool) -> bool {
    let is_wanted = |computation: &Computation| {
        computation.callers().iter().any(|&id| is_wanted(&computation.instr(id).op))
    };
    module.computations().iter().any(is_wanted)
}

fn renumber_callees(computation: &mut Computation, new_ids: &[Option<CompId>]) -> Result<()> {
    computation.change_callees(|callee| {
        let new = new_ids.get(callee.index()).copied().flatten();
        *callee = new.ok_or_else(|| Error::internal("a needed computation was dropped"))?;
        Ok(())
    })
}

/// For each computation, whether the entry calls it, directly or not.
fn needed(module: &Module) -> Vec<bool> {
    let mut needed = vec![false; module.computations().len()];
    needed[module.entry_id().index()] = true;
    for id in (0..=module.entry_id().0).rev().map(CompId) {
        if needed[id.index()] {
            let computation = module.computation(id);
            for &caller in computation.callers() {
                for callee in computation.instr(caller).op.callees() {
                    needed[callee.index()] = true;
                }
            }
        }
    }
    needed
}

/// The names of one scope.
#[derive(Debug, Default)]
struct Names {
    /// How many have each hash: where two have the same, the second only gets a number that it does
    /// not need.
    taken: FxHashMap<u64, u32>,
    /// For the hash of each base, the number that its next variant tries: where two have the same, numbers
    /// are left out.
    next: FxHashMap<u64, usize>,
    /// What variants are written to.
    variant: String,
}

impl Names {
    fn for_so_many(count: usize) -> Self {
        let taken = FxHashMap::with_capacity_and_hasher(count, FxBuildHasher);
        Names { taken, ..Names::default() }
    }

    fn reserve(&mut self, name: &str) {
        *self.taken.entry(hash(name)).or_default() += 1;
    }

    fn release(&mut self, name: &str) {
        if let Entry::Occupied(mut taken) = self.taken.entry(hash(name)) {
            *taken.get_mut() -= 1;
            if *taken.get() == 0 {
                taken.remove();
            }
        }
    }

    /// The name if it is free, else one with another number at its end.
    fn unique(&mut self, name: Name) -> Name {
        if take(&mut self.taken, &name) {
            return name;
        }
        let base = match name.rsplit_once('.') {
            Some((base, number)) if number.bytes().all(|b| b.is_ascii_digit()) => base,
            _ => &name,
        };
        let next = self.next.entry(hash(base)).or_insert(1);
        let mut variant = std::mem::take(&mut self.variant);
        loop {
            variant.clear();
            let _ = write!(variant, "{base}.{next}"); // writing to a String cannot fail
            *next += 1;
            if take(&mut self.taken, &variant) {
                let name = variant.as_str().into();
                self.variant = variant;
                return name;
            }
        }
    }
}

/// Takes a name, if it is free.
fn take(taken: &mut FxHashMap<u64, u32>, name: &str) -> bool {
    match taken.entry(hash(name)) {
        Entry::Occupied(_) => false,
        Entry::Vacant(free) => {
            free.insert(1);
            true
        }
    }
}

fn hash(name: &str) -> u64 {
    FxBuildHasher.hash_one(name)
}
