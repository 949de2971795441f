//! Loops and choices.

use helio::{ElementType, Error, Result};

use crate::call::Call;
use crate::graph::{Kind, TensorType};
use crate::operand::resolve;
use crate::{Graph, Operand, Tensor, TensorList};

impl Graph {
    /// Repeats `body` on a state of any tensors while `condition` gives true for it; gives the last
    /// state. Both may use tensors from outside.
    ///
    /// `condition` and `body` are called once, to see what they do. Types and shapes of the state
    /// stay the same. Errors: `while.C1` unless the condition gives one `pred`; `while.C2` unless
    /// the body gives tensors of the types and shapes that it takes. Source: JAX's `while_loop`.
    ///
    /// ```
    /// use helio_graph::{Array, ElementType, Graph};
    /// let g = Graph::new("collatz");
    /// let n = g.input("n", ElementType::S64, ());
    /// let steps = g.constant(Array::scalar(0i64));
    /// let (_, steps) = g.while_loop(
    ///     (n, steps),
    ///     |(n, _)| n.greater(1),
    ///     |(n, steps)| {
    ///         let even = n.modulo(2).equal(0);
    ///         (n.floor_div(2).where_(&even, 3 * &n + 1), steps + 1)
    ///     },
    /// );
    /// let collatz = g.compile(steps)?;
    /// assert_eq!(collatz.run(&[Array::scalar(27i64)])?[0].as_slice::<i64>(), Some(&[111][..]));
    /// # Ok::<(), helio_graph::Error>(())
    /// ```
    #[track_caller]
    pub fn while_loop<S: TensorList>(
        &self,
        state: S,
        condition: impl FnOnce(S) -> Tensor,
        body: impl FnOnce(S) -> S,
    ) -> S {
        self.loop_at(Call { name: "while_loop", at: self.caller() }, state, condition, body)
    }

    fn loop_at<S: TensorList>(
        &self,
        call: Call,
        state: S,
        condition: impl FnOnce(S) -> Tensor,
        body: impl FnOnce(S) -> S,
    ) -> S {
        let made = self.perform_at(call, || {
            let init = state.tensors();
            self.ensure_operands(&init)?;
            let types = init.iter().map(Tensor::ty).collect::<Result<Vec<_>>>()?;
            let (condition, found) =
                self.scope(&types, |tensors| Ok(vec![condition(self.in_form(&state, tensors)?)]))?;
            let pred = TensorType::new(ElementType::Pred, ());
            if found != [pred] {
                let detail = format!("the condition must give one pred[], found {}", found[0]);
                return Err(Error::rule("while.C1", detail));
            }
            let (body, found) =
                self.scope(&types, |tensors| Ok(body(self.in_form(&state, tensors)?).tensors()))?;
            ensure_same("while.C2", "the body", "the state", &found, &types)?;
            let operands: Vec<&Tensor> = init.iter().collect();
            let made = self.add(&operands, types, Kind::While { condition, body })?;
            self.in_form(&state, made)
        });
        made.unwrap_or_else(|| self.void_list(&state))
    }

    /// Performs `body` for each index from `start` to before `end`, scalars of type `s64`, on a
    /// state; gives the last one. Errors: as for [`Graph::while_loop`]. Source: JAX's `fori_loop`.
    ///
    /// ```
    /// # use helio_graph::{ElementType, Graph};
    /// # let g = Graph::new("power");
    /// let x = g.input("x", ElementType::F32, ("n",));
    /// let x8 = g.for_loop(0, 7, x.clone(), |_, power| power * &x);
    /// # assert!(g.compile(x8).is_ok());
    /// ```
    #[track_caller]
    pub fn for_loop<S: TensorList>(
        &self,
        start: impl Operand,
        end: impl Operand,
        state: S,
        body: impl FnOnce(&Tensor, S) -> S,
    ) -> S {
        let call = Call { name: "for_loop", at: self.caller() };
        let bounds = self.perform_at(call.clone(), || {
            let start = resolve(start, self, ElementType::S64)?.cast(ElementType::S64);
            Ok((start, resolve(end, self, ElementType::S64)?.cast(ElementType::S64)))
        });
        let Some((start, end)) = bounds else { return self.void_list(&state) };
        // What a loop over indices adds to condition and body stands where the loop does.
        let added = |make: &dyn Fn() -> Tensor| {
            let made = self.perform_at(call.clone(), || Ok(make()));
            made.unwrap_or_else(|| Tensor::void(self))
        };
        let (_, state) = self.loop_at(
            call.clone(),
            (start, state),
            |(i, _)| added(&|| i.less(&end)),
            |(i, state)| {
                let state = body(&i, state);
                (added(&|| &i + 1), state)
            },
        );
        state
    }

    /// What `on_true` or `on_false` gives, depending on a scalar `pred`; only that one is run. Both
    /// may use tensors from outside, and must give tensors of the same types and shapes.
    ///
    /// Errors: `cond.C1` unless the predicate is one `pred`, `cond.C2`. Source: JAX's `cond`. To
    /// choose element by element see [`Tensor::where_`].
    ///
    /// ```
    /// # use helio_graph::{ElementType, Graph};
    /// # let g = Graph::new("maybe_sort");
    /// let x = g.input("x", ElementType::F32, ("n",));
    /// let total = x.sum(0);
    /// let y = g.cond(total.greater(0.0), || &x / &total, || x.clone());
    /// # assert!(g.compile(y).is_ok());
    /// ```
    #[track_caller]
    pub fn cond<S: TensorList>(
        &self,
        predicate: impl Operand,
        mut on_true: impl FnMut() -> S,
        on_false: impl FnOnce() -> S,
    ) -> S {
        let mut results = None;
        let made = self.perform("cond", || {
            let predicate = resolve(predicate, self, ElementType::Pred)?;
            let found = predicate.ty()?;
            if found != TensorType::new(ElementType::Pred, ()) {
                let detail = format!("the predicate must be one pred[], found {found}");
                return Err(Error::rule("cond.C1", detail));
            }
            let (on_true, types) = self.scope(&[], |_| Ok(results.insert(on_true()).tensors()))?;
            let (on_false, found) = self.scope(&[], |_| Ok(on_false().tensors()))?;
            ensure_same("cond.C2", "on_false", "on_true", &found, &types)?;
            let index = predicate.cast(ElementType::S32);
            let kind = Kind::Select { branches: vec![on_false, on_true] };
            let made = self.add(&[&index], types, kind)?;
            results.as_ref().map(|form| self.in_form(form, made)).transpose()
        });
        // Without a branch that ran, what `on_true` gives is void, but has the right form.
        made.flatten().unwrap_or_else(|| self.void_list(&results.unwrap_or_else(on_true)))
    }

    /// What the branch of this number gives: `index` is a scalar integer; numbers that are too low
    /// mean the first, too high the last one. Errors: `switch.C1` unless the index is one integer
    /// and there is a branch, `switch.C2` unless all give tensors of the same types and shapes.
    /// Source: JAX's `switch`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant(3f32);
    /// let [double, square] = [&x * 2, x.square()];
    /// let chosen = g.switch(g.constant(1), &[&|| vec![double.clone()], &|| vec![square.clone()]]);
    /// assert_eq!(chosen[0].eval()?, 9f32.into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn switch(
        &self,
        index: impl Operand,
        branches: &[&dyn Fn() -> Vec<Tensor>],
    ) -> Vec<Tensor> {
        let made = self.perform("switch", || {
            let index = resolve(index, self, ElementType::S64)?;
            let found = index.ty()?;
            if !found.dtype.is_integer() || found.shape.rank() != 0 || branches.is_empty() {
                let detail = format!(
                    "the index must be one integer, and there must be a branch; found {found} and {} \
                     branches",
                    branches.len()
                );
                return Err(Error::rule("switch.C1", detail));
            }
            let mut bodies = Vec::new();
            let mut types: Vec<TensorType> = Vec::new();
            for (number, branch) in branches.iter().enumerate() {
                let (body, found) = self.scope(&[], |_| Ok(branch()))?;
                match number {
                    0 => types = found,
                    _ => {
                        let this = format!("branch {number}");
                        ensure_same("switch.C2", &this, "branch 0", &found, &types)?;
                    }
                }
                bodies.push(body);
            }
            let last = i64::try_from(branches.len() - 1).unwrap_or(i64::MAX);
            let index = index.cast(ElementType::S64).clamp(0, last).cast(ElementType::S32);
            self.add(&[&index], types, Kind::Select { branches: bodies })
        });
        made.unwrap_or_default()
    }
}

/// Errors: the rule unless what a body gives has the types that are asked of it.
fn ensure_same(
    rule: &'static str,
    who: &str,
    whose: &str,
    found: &[TensorType],
    wanted: &[TensorType],
) -> Result<()> {
    if found.len() != wanted.len() {
        let (found, wanted) = (found.len(), wanted.len());
        let detail = format!("{who} gives {found} tensors, {whose} has {wanted}");
        return Err(Error::rule(rule, detail));
    }
    let mut pairs = found.iter().zip(wanted).enumerate();
    let Some((number, (found, wanted))) = pairs.find(|(_, (found, wanted))| found != wanted) else {
        return Ok(());
    };
    let help = if found.dtype != wanted.dtype {
        format!("convert one, as in .cast(ElementType::{:?})", wanted.dtype)
    } else {
        "broadcast, reshape or rebind one of them".to_owned()
    };
    let detail = format!(
        "tensor {number} of what {who} gives is {found}, of {whose} {wanted}; they must be the \
         same\n  help: {help}"
    );
    Err(Error::rule(rule, detail))
}
