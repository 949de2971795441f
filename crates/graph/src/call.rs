//! Public calls: what they make stands where the user's program makes them, and so do their errors.
//!
//! Calls run code of the user: the bodies of loops and branches, lists of tensors, conversions. When
//! that panics, the panic goes on up the user's stack, and the graph is as if the call had not been
//! made. So whatever a call begins is ended by a guard's `drop`.

use std::rc::Rc;

use helio::{Error, Location, Result};

use crate::graph::{Body, Graph, Kind, ScopeId, State, TensorType, ValueId};
use crate::{Tensor, TensorList};

/// A public call.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) name: &'static str,
    pub(crate) at: Caller,
}

/// Where the user's program makes a call.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) place: Location,
    /// Whether the standard library made the call, as it does for `map(Tensor::exp)`. The place is
    /// then that of the graph's call before.
    by_std: bool,
}

impl Call {
    fn explain(&self, error: Error) -> Error {
        // An error of another graph has its own place.
        let error = match self.at.by_std && error.location().is_none() {
            true => error.context(
                "called by a function of the standard library, some time after the place above",
            ),
            false => error,
        };
        error.in_instruction(self.name).at(Some(self.at.place.clone()))
    }
}

/// Whether a file is the standard library's, as the compiler names it.
fn is_std(file: &str) -> bool {
    let Some((_, inside)) = file.split_once("library") else { return false };
    let mut folders = inside.split(['/', '\\']).skip(1);
    let [name, src] = [folders.next(), folders.next()];
    matches!(name, Some("core" | "alloc" | "std")) && src == Some("src")
}

/// A call that is being made. Calls that it makes itself stand where it was made.
struct OpenCall<'g> {
    graph: &'g Graph,
    is_outermost: bool,
}

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        if self.is_outermost {
            self.graph.state.borrow_mut().call = None;
        }
    }
}

/// A scope that is open. The calls made in it are the user's own.
struct Open<'g> {
    graph: &'g Graph,
    scope: ScopeId,
    /// How many scopes surround it.
    depth: usize,
    /// The call that opened it.
    call: Option<Call>,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let mut state = self.graph.state.borrow_mut();
        state.open.truncate(self.depth);
        state.call = self.call.take();
    }
}

/// Loops and branches may be nested so deep.
const MAX_SCOPES: usize = 64;

impl Graph {
    /// Performs a public call: operations that it makes stand where it was made. Its error becomes
    /// the graph's; after one, nothing is done any more.
    #[track_caller]
    pub(crate) fn call(&self, name: &'static str, make: impl FnOnce() -> Result<Tensor>) -> Tensor {
        self.perform(name, make).unwrap_or_else(|| Tensor::void(self))
    }

    /// The same for calls with other results; `None` after an error.
    #[track_caller]
    pub(crate) fn perform<T>(
        &self,
        name: &'static str,
        make: impl FnOnce() -> Result<T>,
    ) -> Option<T> {
        self.perform_at(Call { name, at: self.caller() }, make)
    }

    /// The same for a call whose place is known.
    pub(crate) fn perform_at<T>(&self, call: Call, make: impl FnOnce() -> Result<T>) -> Option<T> {
        let (call, ongoing) = {
            let mut state = self.state.borrow_mut();
            if state.error.is_some() {
                return None;
            }
            let is_outermost = state.call.is_none();
            let call = state.call.get_or_insert(call).clone();
            (call, OpenCall { graph: self, is_outermost })
        };
        let made = make();
        drop(ongoing);
        match made {
            Ok(made) => Some(made),
            Err(error) => {
                self.state.borrow_mut().error.get_or_insert(call.explain(error));
                None
            }
        }
    }

    /// Where the user's program makes the call that is being made.
    #[track_caller]
    pub(crate) fn caller(&self) -> Caller {
        let place = Location::caller();
        let mut state = self.state.borrow_mut();
        let by_std = matches!(&place, Location::Rust { file, .. } if is_std(file));
        if !by_std && state.call.is_none() {
            state.last_place = Some(place.clone());
        }
        match state.last_place.clone().filter(|_| by_std) {
            Some(place) => Caller { place, by_std },
            None => Caller { place, by_std: false },
        }
    }

    /// The value that a tensor stands for, to be used in the innermost scope. Errors: `graph.C4` if
    /// it is not of this graph, `graph.C5` if it belongs to the body of a loop or to a branch that is
    /// complete; the error that made it void.
    pub(crate) fn operand(&self, tensor: &Tensor) -> Result<ValueId> {
        if !Rc::ptr_eq(&self.state, &tensor.graph().state) {
            return Err(self.foreign(tensor));
        }
        let (value, _) = tensor.value().ok_or_else(|| self.first_error())?;
        let state = self.state.borrow();
        match state.open.contains(&state.nodes[value.node as usize].scope) {
            true => Ok(value),
            false => Err(state.belongs_to_body(value, "that is complete")),
        }
    }

    /// The value of a program's output. Errors: as for [`Graph::operand`], and `graph.C5` if it
    /// belongs to a body that is not complete.
    pub(crate) fn output(&self, tensor: &Tensor) -> Result<ValueId> {
        let value = self.operand(tensor)?;
        let state = self.state.borrow();
        match state.nodes[value.node as usize].scope {
            ScopeId::PROGRAM => Ok(value),
            _ => Err(state.belongs_to_body(value, "that is not complete")),
        }
    }

    /// Errors: as for [`Graph::operand`].
    pub(crate) fn ensure_operands<'t>(
        &self,
        tensors: impl IntoIterator<Item = &'t Tensor>,
    ) -> Result<()> {
        tensors.into_iter().try_for_each(|tensor| self.operand(tensor).map(drop))
    }

    /// Runs `make`, code of the user, in a scope of its own, whose parameters have these types.
    pub(crate) fn scope(
        &self,
        parameters: &[TensorType],
        make: impl FnOnce(Vec<Tensor>) -> Result<Vec<Tensor>>,
    ) -> Result<(Body, Vec<TensorType>)> {
        let open = self.open()?;
        let scope = open.scope;
        let tensors = parameters.iter().enumerate().map(|(number, ty)| {
            Ok(self.add(&[], vec![ty.clone()], Kind::Parameter(number))?.remove(0))
        });
        let tensors = tensors.collect::<Result<Vec<_>>>()?;
        let parameters =
            tensors.iter().map(|tensor| self.operand(tensor)).collect::<Result<_>>()?;
        // The calls that a body makes have their own names and places.
        self.state.borrow_mut().call = None;
        let made = make(tensors);
        if let Some(error) = self.error() {
            return Err(error);
        }
        let made = made?;
        let results = made.iter().map(|result| self.operand(result)).collect::<Result<_>>()?;
        let types = made.iter().map(Tensor::ty).collect::<Result<_>>()?;
        drop(open);
        Ok((Body { scope, parameters, results }, types))
    }

    fn open(&self) -> Result<Open<'_>> {
        let mut state = self.state.borrow_mut();
        let depth = state.open.len();
        if depth > MAX_SCOPES {
            let detail = format!("more than {MAX_SCOPES} loops and branches are nested");
            return Err(Error::exhausted(detail));
        }
        let scope = ScopeId(state.scopes);
        state.scopes += 1;
        state.open.push(scope);
        Ok(Open { graph: self, scope, depth, call: state.call.clone() })
    }

    /// Tensors in the form of a list. Errors: `graph.C6` unless the list takes as many as it gives.
    pub(crate) fn in_form<L: TensorList>(&self, form: &L, tensors: Vec<Tensor>) -> Result<L> {
        let (given, mut taken) = (tensors.len(), 0);
        let mut tensors = tensors.into_iter();
        let list = form.with_tensors(&mut || {
            taken += 1;
            tensors.next().unwrap_or_else(|| Tensor::void(self))
        });
        if taken != given {
            let detail = format!(
                "a list of {given} tensors takes {taken} in return: the two methods of its \
                 TensorList must agree"
            );
            return Err(Error::rule("graph.C6", detail));
        }
        Ok(list)
    }

    /// A list of this form of tensors that stand for nothing.
    pub(crate) fn void_list<L: TensorList>(&self, form: &L) -> L {
        form.with_tensors(&mut || Tensor::void(self))
    }

    /// The error of using a tensor of another graph: that graph's, if there is one.
    fn foreign(&self, tensor: &Tensor) -> Error {
        let (mine, other) = (self.state.borrow(), tensor.graph());
        let other = other.state.borrow();
        if let Some(error) = &other.error {
            return error.clone();
        }
        let detail = format!("a tensor of graph {:?} is used in graph {:?}", other.name, mine.name);
        Error::rule("graph.C4", detail)
    }

    /// The error that made a tensor void.
    pub(crate) fn first_error(&self) -> Error {
        self.error().unwrap_or_else(|| Error::internal("a void tensor without an error"))
    }
}

impl State {
    fn belongs_to_body(&self, value: ValueId, which: &str) -> Error {
        let made = &self.nodes[value.node as usize];
        let what = match made.kind {
            Kind::Parameter(_) => "what the body takes from",
            _ => "the result of",
        };
        Error::rule(
            "graph.C5",
            format!(
                "{what} {} ({}) belongs to the body of a loop or to a branch {which}; it exists \
                 only while that runs\n  help: make it a result of the body or branch",
                made.name, made.at
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::is_std;

    #[test]
    fn files_of_the_standard_library() {
        for file in [
            "/rustc/0a1b/library/core/src/ops/function.rs",
            r"/rustc/0a1b\library\alloc\src\vec\mod.rs",
            "/home/me/.rustup/toolchains/stable/lib/rustlib/src/rust/library/std/src/thread/mod.rs",
        ] {
            assert!(is_std(file), "{file}");
        }
        for file in
            ["src/main.rs", "src/library/model.rs", "library/core.rs", "library/core/main.rs"]
        {
            assert!(!is_std(file), "{file}");
        }
    }
}
