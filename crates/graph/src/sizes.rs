//! What the names of dimensions stand for: found out from the arguments of each call.

mod explain;

use std::collections::BTreeMap;
use std::sync::Arc;

use helio::ir::ArrayShape;
use helio::{Error, Result};

use crate::Dim;
use crate::dim::Monomial;

use crate::graph::{Equation, Input, Source, needed_nodes};
use explain::Explain;

/// Names and their sizes.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Sizes(BTreeMap<Arc<str>, i64>);

impl Sizes {
    fn get(&self, name: &str) -> Option<i64> {
        self.0.get(name).copied()
    }

    pub(crate) fn value(&self, dim: &Dim) -> Result<i64> {
        dim.value(&|name| self.get(name))
    }

    pub(crate) fn size(&self, dim: &Dim) -> Result<usize> {
        let value = self.value(dim)?;
        usize::try_from(value).map_err(|_| {
            let detail = format!("dimension {dim} is {value}{}", self.where_names_are(dim));
            Error::rule("dim.C2", detail)
        })
    }

    /// `, where n is 2 and m is 3`
    fn where_names_are(&self, dim: &Dim) -> String {
        let names = dim.names();
        let known = names.iter().filter_map(|name| Some((name, self.get(name)?)));
        let known: Vec<_> = known.map(|(name, size)| format!("{name} is {size}")).collect();
        if known.is_empty() { String::new() } else { format!(", where {}", known.join(" and ")) }
    }
}

/// How names get their sizes and what is checked, decided once for all calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resolution {
    /// Each makes a name known, from what is known before.
    bindings: Vec<Binding>,
    /// What must hold once all names are known.
    checks: Vec<Fact>,
}

/// A name's size is `(right - rest) / factor` of a fact.
#[derive(Clone, Debug)]
struct Binding {
    name: Arc<str>,
    factor: i64,
    /// The fact's left side without the term that has the name.
    rest: Dim,
    fact: Fact,
}

/// An equation of two dimensions, or of a dimension and an argument's size.
#[derive(Clone, Debug)]
struct Fact {
    left: Dim,
    right: Side,
}

#[derive(Clone, Debug)]
enum Side {
    /// An axis of an input.
    Argument { input: usize, axis: usize },
    /// What `rebind` requires; the equation by its number.
    Rebind { equation: usize },
}

impl Resolution {
    /// Errors: `graph.C3` if inputs and rebinds do not determine what all names stand for.
    pub(crate) fn of(source: &Source) -> Result<Self> {
        let mut resolution = Resolution::default();
        let mut open = Vec::new();
        for (input, Input { ty, .. }) in source.inputs.iter().enumerate() {
            for (axis, dim) in ty.shape.iter().enumerate() {
                open.push(Fact { left: dim.clone(), right: Side::Argument { input, axis } });
            }
        }
        for (number, Equation { found, required, .. }) in source.equations.iter().enumerate() {
            let right = Side::Rebind { equation: number };
            open.push(Fact { left: found - required, right });
        }
        let mut known: Vec<Arc<str>> = Vec::new();
        // Names that stand alone first, so that errors speak of these.
        for alone in [true, false] {
            loop {
                let before = open.len();
                open.retain(|fact| {
                    let unknown: Vec<_> =
                        fact.left.names().into_iter().filter(|n| !known.contains(n)).collect();
                    match &*unknown {
                        [] => resolution.checks.push(fact.clone()),
                        [name] if !alone || fact.left.name().is_some() => {
                            let Some(binding) = Binding::of(fact, name) else { return true };
                            resolution.bindings.push(binding);
                            known.push(name.clone());
                        }
                        _ => return true,
                    }
                    false
                });
                if open.len() == before {
                    break;
                }
            }
        }
        resolution.ensure_all_known(source, &known)?;
        Ok(resolution)
    }

    fn ensure_all_known(&self, source: &Source, known: &[Arc<str>]) -> Result<()> {
        let mut needed = needed_nodes(&source.nodes, &source.outputs);
        needed.extend(source.input_nodes());
        let shapes = needed.into_iter().flat_map(|number| {
            let node = &source.nodes[number as usize];
            node.outputs.iter().map(move |ty| (&ty.shape, node))
        });
        for (shape, node) in shapes {
            let names = shape.iter().flat_map(|dim| dim.names());
            if let Some(name) = names.into_iter().find(|name| !known.contains(name)) {
                return Err(Error::rule(
                    "graph.C3",
                    format!(
                        "nothing says what {name} of shape {shape} is when the program is called\n  \
                         help: name it {name:?} alone in the shape of an input, as in \
                         g.input(\"x\", ElementType::F32, ({name:?},)), or rebind a dimension to it"
                    ),
                )
                .in_instruction(node.name)
                .at(Some(node.at.clone())));
            }
        }
        Ok(())
    }

    /// The sizes of one call. Errors: `call.C1` if number, types or ranks of the arguments are not
    /// those of the inputs; `call.C2` if a size is not the one that a shape states, or a name would
    /// stand for two; `call.C3` if what `rebind` asserts does not hold; `dim.C2`.
    pub(crate) fn sizes(&self, source: &Source, arguments: &[&ArrayShape]) -> Result<Sizes> {
        check_types(&source.inputs, arguments)?;
        let mut sizes = Sizes::default();
        for binding in &self.bindings {
            let Binding { name, factor, rest, fact } = binding;
            let right = match fact.right {
                Side::Argument { input, axis } => arguments[input].dims()[axis] as i64,
                Side::Rebind { .. } => 0,
            };
            let numerator = right.checked_sub(sizes.value(rest)?);
            let exact = numerator.filter(|numerator| numerator.checked_rem(*factor) == Some(0));
            let size = exact.and_then(|numerator| numerator.checked_div(*factor));
            match size.filter(|&size| size >= 0) {
                Some(size) => drop(sizes.0.insert(name.clone(), size)),
                None => {
                    let explain = Explain { resolution: self, source, arguments, sizes: &sizes };
                    return Err(explain.unsolvable(fact, name));
                }
            }
        }
        for fact in &self.checks {
            let holds = match fact.right {
                Side::Argument { input, axis } => {
                    sizes.size(&fact.left)? == arguments[input].dims()[axis]
                }
                Side::Rebind { .. } => sizes.value(&fact.left)? == 0,
            };
            if !holds {
                let explain = Explain { resolution: self, source, arguments, sizes: &sizes };
                return Err(explain.broken(fact));
            }
        }
        Ok(sizes)
    }
}

impl Binding {
    /// How a fact gives the size of its only unknown name: it must be a term of its own.
    fn of(fact: &Fact, name: &Arc<str>) -> Option<Self> {
        let terms = fact.left.terms();
        let is_it = |monomial: &Monomial| monomial.as_symbol() == Some(name);
        let (_, factor) = terms.iter().find(|(monomial, _)| is_it(monomial))?;
        let rest = &fact.left - Dim::from(&**name) * *factor;
        let alone = rest.ensure_valid().is_ok() && !rest.names().contains(name);
        alone.then(|| Binding { name: name.clone(), factor: *factor, rest, fact: fact.clone() })
    }
}

fn check_types(inputs: &[Input], arguments: &[&ArrayShape]) -> Result<()> {
    if inputs.len() != arguments.len() {
        let names: Vec<_> =
            inputs.iter().map(|input| format!("{:?} ({})", input.name, input.ty)).collect();
        return Err(Error::rule(
            "call.C1",
            format!(
                "the program takes {} arguments, found {}; they are {}",
                inputs.len(),
                arguments.len(),
                if names.is_empty() { "none".to_owned() } else { names.join(", ") }
            ),
        ));
    }
    for (Input { name, ty, .. }, found) in inputs.iter().zip(arguments) {
        if ty.dtype != found.element() || ty.shape.rank() != found.rank() || !found.is_static() {
            let detail = format!("argument {name:?} must be {ty}, found {found}");
            return Err(Error::rule("call.C1", detail));
        }
    }
    Ok(())
}
