//! What errors of calls say.

use helio::ir::ArrayShape;
use helio::{Error, Location};

use super::{Fact, Resolution, Side, Sizes};
use crate::Dim;
use crate::graph::{Equation, Input, Source};

/// A call whose arguments do not fit, and what is known of its sizes.
pub(super) struct Explain<'a> {
    pub(super) resolution: &'a Resolution,
    pub(super) source: &'a Source,
    pub(super) arguments: &'a [&'a ArrayShape],
    pub(super) sizes: &'a Sizes,
}

impl Explain<'_> {
    /// No size of a name makes the fact hold.
    pub(super) fn unsolvable(&self, fact: &Fact, name: &str) -> Error {
        let (rule, what, at) = self.head(fact);
        let error = Error::rule(rule, format!("{what}, but no size of {name} gives that"));
        error.at(at)
    }

    /// The fact does not hold.
    pub(super) fn broken(&self, fact: &Fact) -> Error {
        let (rule, mut detail, at) = self.head(fact);
        let dim = &fact.left;
        if let Side::Argument { .. } = fact.right {
            if dim.size().is_some() {
                detail += &format!(", but must be {dim}");
            } else if dim.name().is_none() {
                detail += &format!(", but {}", self.with_value(dim));
            }
        }
        for because in self.because(dim) {
            let joint = if dim.name().is_some() { ", but" } else { ";" };
            detail += &format!("{joint} {because}");
        }
        Error::rule(rule, detail).at(at)
    }

    /// The rule, the fact in words, and where it was stated, if in a `rebind`.
    fn head(&self, fact: &Fact) -> (&'static str, String, Option<Location>) {
        match fact.right {
            Side::Argument { input, axis } => ("call.C2", self.argument(input, axis), None),
            Side::Rebind { equation } => {
                let Equation { found, required, axis, at } = &self.source.equations[equation];
                let (found, required) = (self.with_value(found), self.with_value(required));
                let what = format!("rebind asserts that axis {axis}, {found}, equals {required}");
                ("call.C3", what, Some(at.clone()))
            }
        }
    }

    /// `axis 0 of argument "x" (f32[batch, 4]) is 2`
    fn argument(&self, input: usize, axis: usize) -> String {
        let Input { name, ty, .. } = &self.source.inputs[input];
        let size = self.arguments[input].dims()[axis];
        format!("axis {axis} of argument {name:?} ({ty}) is {size}")
    }

    /// `n + 1 = 3`, or `3`
    fn with_value(&self, dim: &Dim) -> String {
        match self.sizes.value(dim) {
            Ok(value) if dim.size().is_none() => format!("{dim} = {value}"),
            _ => dim.to_string(),
        }
    }

    /// Why the names in a dimension have their sizes: `n is 2, since …`.
    fn because(&self, dim: &Dim) -> Vec<String> {
        let names = dim.names();
        let bindings = self.resolution.bindings.iter();
        let bindings = bindings.filter(|binding| names.contains(&binding.name));
        let because = bindings.map(|binding| {
            let name = &binding.name;
            let size = self.sizes.get(name).unwrap_or_default();
            let because = match binding.fact.right {
                Side::Argument { input, axis } => self.argument(input, axis),
                Side::Rebind { equation } => {
                    format!("the rebind at {} says so", self.source.equations[equation].at)
                }
            };
            format!("{name} is {size}, since {because}")
        });
        because.collect()
    }
}
