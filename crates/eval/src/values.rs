//! The values of a computation while it runs.
//!
//! A value is dropped with its last use, and an element of a tuple with the last use of the element
//! if nobody takes the tuple as a whole. So memory follows liveness, and whoever is last to use an
//! array may change it in place: a loop that updates a large array a little each time does not copy
//! it each time.

use std::collections::HashSet;

use helio_ir::{Computation, Error, InstrId, Literal, Op, Result};

/// The values that are still needed.
pub(crate) struct Values {
    values: Vec<Option<Literal>>,
    /// How many uses of each value are still to come; one of them is that as the root.
    uses: Vec<usize>,
    /// Which instructions are the last to take their element of a tuple.
    takes_last: Vec<bool>,
}

impl Values {
    /// None yet.
    pub(crate) fn new(computation: &Computation) -> Self {
        let count = computation.instrs().len();
        let (mut uses, mut whole) = (vec![0; count], vec![false; count]);
        uses[computation.root().index()] = 1;
        whole[computation.root().index()] = true;
        for instr in computation.instrs() {
            for operand in &instr.operands {
                uses[operand.index()] += 1;
                whole[operand.index()] |= !matches!(instr.op, Op::GetTupleElement(_));
            }
        }
        let mut takes_last = vec![false; count];
        let mut seen = HashSet::new();
        for id in computation.ids().rev() {
            let instr = computation.instr(id);
            if let (Op::GetTupleElement(op), [tuple]) = (&instr.op, &instr.operands[..]) {
                takes_last[id.index()] = !whole[tuple.index()] && seen.insert((*tuple, op.index));
            }
        }
        Values { values: vec![None; count], uses, takes_last }
    }

    /// Keeps a value for its uses.
    pub(crate) fn put(&mut self, id: InstrId, value: Literal) {
        if self.uses[id.index()] > 0 {
            self.values[id.index()] = Some(value);
        }
    }

    /// A value, for one of its uses. Errors: `Internal` if there is none.
    pub(crate) fn take(&mut self, id: InstrId) -> Result<Literal> {
        let is_last = self.is_last_use(id);
        let slot = &mut self.values[id.index()];
        let value = if is_last { slot.take() } else { slot.clone() };
        value.ok_or_else(|| Error::internal("an operand has no value"))
    }

    /// The element of a tuple that the instruction `user` takes. Errors: `Internal`.
    pub(crate) fn take_element(
        &mut self,
        user: InstrId,
        tuple: InstrId,
        index: usize,
    ) -> Result<Literal> {
        let is_last = self.is_last_use(tuple);
        let slot = &mut self.values[tuple.index()];
        let element = match slot {
            Some(Literal::Tuple(elements)) => elements.get_mut(index),
            _ => None,
        };
        let element =
            element.ok_or_else(|| Error::internal("an operand is no tuple with this element"))?;
        let element = if self.takes_last[user.index()] {
            std::mem::replace(element, Literal::Token)
        } else {
            element.clone()
        };
        if is_last {
            *slot = None;
        }
        Ok(element)
    }

    /// Counts a use.
    fn is_last_use(&mut self, id: InstrId) -> bool {
        let uses = &mut self.uses[id.index()];
        *uses -= 1;
        *uses == 0
    }
}

#[cfg(test)]
mod tests {
    use helio_ir::text::parse;

    use super::*;

    /// The values of `p`, a tuple of two scalars, and of what takes its elements.
    fn values_of(instructions: &str) -> Values {
        let text = format!("ENTRY e {{ p = (s32[], s32[]) parameter(0) {instructions} }}");
        let module = parse(&text).unwrap();
        let mut values = Values::new(module.entry());
        values.put(P, Literal::Tuple(vec![Literal::scalar(1), Literal::scalar(2)]));
        values
    }

    const P: InstrId = InstrId(0);

    fn is_gone(values: &Values, element: usize) -> bool {
        let tuple = values.values[P.index()].as_ref().and_then(Literal::as_tuple);
        matches!(tuple.unwrap()[element], Literal::Token)
    }

    #[test]
    fn elements_are_dropped_with_their_last_use() {
        let mut values = values_of(
            "a = s32[] get-tuple-element(p), index=1
             b = s32[] get-tuple-element(p), index=1
             c = s32[] get-tuple-element(p), index=0
             ROOT r = (s32[], s32[], s32[]) tuple(a, b, c)",
        );
        let mut take = |user, index| {
            let element = values.take_element(InstrId(user), P, index).unwrap();
            assert_eq!(element.as_array().unwrap().values::<i32>().unwrap(), [1 + index as i32]);
            values.values[P.index()].is_some().then(|| is_gone(&values, 1))
        };
        assert_eq!(take(1, 1), Some(false));
        assert_eq!(take(2, 1), Some(true));
        assert_eq!(take(3, 0), None);
    }

    #[test]
    fn a_tuple_that_is_needed_stays_whole() {
        let mut values = values_of(
            "a = s32[] get-tuple-element(p), index=1
             ROOT r = (s32[], (s32[], s32[])) tuple(a, p)",
        );
        values.take_element(InstrId(1), P, 1).unwrap();
        assert!(!is_gone(&values, 1));
        assert_eq!(values.take(P).unwrap().leaves().len(), 2);
        assert!(values.take_element(InstrId(1), InstrId(2), 0).is_err(), "no value yet");
    }
}
