//! Regions of loops and branches on tiles: computations of their own, whose parameter is a tuple. What a
//! region needs of the values around it becomes an element of that tuple, in the form in which it is needed.

use std::collections::HashMap;

use helio_ir::{Computation, Error, InstrId, Op, Result, Shape};

use super::body::{Aside, Body};
use super::forms::{Forms, Node, Origin};
use super::wishes::Wishes;
use crate::mlir::ValueId;
use crate::tiling::Tiling;

/// A region being lowered.
pub(super) struct Scope {
    /// Its number among all regions, from 1.
    number: usize,
    kind: ScopeKind,
    /// The computation around it.
    around: Aside,
    /// In which tiles values around it are wanted.
    wishes: Wishes,
    parameter: InstrId,
    /// For each element of the parameter, the instruction around that gives it, and the one in it, once it
    /// is needed.
    elements: Vec<(InstrId, Option<InstrId>)>,
    /// The places of values here that are those of other places around.
    taken: HashMap<usize, usize>,
}

/// What a region belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScopeKind {
    /// What it needs in other tiles than those in which it is there is exchanged before it, once.
    Loop,
    /// What it needs in other tiles is exchanged in it, as it may not run.
    Branch,
}

/// A region that is lowered: its computation is still to be ended.
pub(super) struct Region {
    pub(super) aside: Aside,
    parameter: InstrId,
    /// The instructions around it that are the elements of its parameter.
    pub(super) state: Vec<InstrId>,
}

impl Region {
    /// Makes the parameter one of more elements.
    pub(super) fn widen<'s>(&mut self, shapes: impl Iterator<Item = &'s Shape>) {
        shapes.for_each(|shape| widen(&mut self.aside.comp, self.parameter, shape));
    }
}

/// Makes a parameter that is a tuple one of one more element.
fn widen(comp: &mut Computation, parameter: InstrId, shape: &Shape) {
    let instr = comp.instr_mut(parameter);
    if let Shape::Tuple(elements) = &mut instr.shape {
        elements.push(shape.clone());
    }
    if let Op::Parameter(op) = &mut instr.op {
        op.shape.clone_from(&instr.shape);
    }
}

impl<'m> Forms<'m> {
    /// The number of the innermost region; 0 for the entry.
    pub(super) fn region(&self) -> usize {
        self.scopes.last().map_or(0, |scope| scope.number)
    }

    /// Begins a region whose parameter has these elements first.
    pub(super) fn enter(
        &mut self,
        body: &mut Body<'_, 'm>,
        name: &str,
        kind: ScopeKind,
        state: &[InstrId],
        wishes: Wishes,
    ) -> Result<()> {
        let shapes = state.iter().map(|&id| body.shape(id).clone()).collect();
        let around = body.begin(name);
        let parameter = body.parameter(0, Shape::Tuple(shapes), "state")?;
        self.regions += 1;
        self.scopes.push(Scope {
            number: self.regions,
            kind,
            around,
            wishes: std::mem::replace(&mut self.wishes, wishes),
            parameter,
            elements: state.iter().map(|&id| (id, None)).collect(),
            taken: HashMap::new(),
        });
        Ok(())
    }

    /// Leaves the innermost region for the computation around it.
    pub(super) fn leave(&mut self, body: &mut Body<'_, 'm>) -> Result<Region> {
        let scope = self.scopes.pop().ok_or_else(no_region)?;
        let mut aside = scope.around;
        body.swap(&mut aside);
        self.wishes = scope.wishes;
        let state = scope.elements.into_iter().map(|element| element.0).collect();
        Ok(Region { aside, parameter: scope.parameter, state })
    }

    /// An element of the innermost region's parameter.
    pub(super) fn element(&mut self, body: &mut Body<'_, 'm>, index: usize) -> Result<InstrId> {
        let scope = self.scopes.last_mut().ok_or_else(no_region)?;
        let element = scope.elements.get_mut(index).ok_or_else(no_region)?;
        match element.1 {
            Some(id) => Ok(id),
            None => Ok(*element.1.insert(body.element_of(scope.parameter, index)?)),
        }
    }

    /// How many elements the innermost region's parameter has so far.
    pub(super) fn element_count(&self) -> usize {
        self.scopes.last().map_or(0, |scope| scope.elements.len())
    }

    /// The place of a value in the innermost region, which may be one of those around it. Errors: it is
    /// none of these.
    pub(super) fn place(&mut self, value: ValueId) -> Result<usize> {
        let unknown = || Error::unimplemented("a value that is used where it is not known");
        let mut place = self.places.get(&value).copied().ok_or_else(unknown)?;
        let depth = match self.nodes[place].region {
            0 => 0,
            of => 1 + self.scopes.iter().position(|s| s.number == of).ok_or_else(unknown)?,
        };
        for within in depth..self.scopes.len() {
            place = self.place_within(within, place);
        }
        Ok(place)
    }

    /// The place that a value of the region around this one has in it.
    fn place_within(&mut self, scope: usize, around: usize) -> usize {
        let scope = &mut self.scopes[scope];
        *scope.taken.entry(around).or_insert_with(|| {
            let Node { shape, spread, .. } = &self.nodes[around];
            let (shape, spread) = (shape.clone(), spread.clone());
            let (region, origin) = (scope.number, Origin::Around(around));
            self.nodes.push(Node { shape, spread, region, forms: Vec::new(), origin });
            self.nodes.len() - 1
        })
    }

    /// Takes a form of a value from around the innermost region. `None` if it is to be made here, from the
    /// one in which the value is there now.
    pub(super) fn take(
        &mut self,
        body: &mut Body<'_, 'm>,
        place: usize,
        around: usize,
        tiling: &Tiling,
    ) -> Result<Option<InstrId>> {
        let is_branch = self.scopes.last().is_some_and(|s| s.kind == ScopeKind::Branch);
        let there = self.nodes[around].tiles();
        if let Some(there) = there.filter(|&there| is_branch && there != tiling).cloned() {
            self.form(body, place, &there)?;
            return Ok(None);
        }
        let mut scope = self.scopes.pop().ok_or_else(no_region)?;
        body.swap(&mut scope.around);
        let form = self.form(body, around, tiling).and_then(|id| {
            let constant = body.repeated(id)?;
            Ok((id, body.shape(id).clone(), constant))
        });
        body.swap(&mut scope.around);
        let (id, shape, constant) = form?;
        let index = scope.elements.iter().position(|element| element.0 == id);
        let index = index.unwrap_or(scope.elements.len());
        if index == scope.elements.len() && constant.is_none() {
            scope.elements.push((id, None));
            widen(&mut body.comp, scope.parameter, &shape);
        }
        self.scopes.push(scope);
        let here = match constant {
            Some(constant) => body.elements(constant)?,
            None => self.element(body, index)?,
        };
        self.nodes[place].forms.push((tiling.clone(), here));
        Ok(Some(here))
    }
}

fn no_region() -> Error {
    Error::internal("an element of a region that is not there")
}
