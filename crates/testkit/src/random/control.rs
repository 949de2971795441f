//! Random calls, conditionals and loops.

use helio::ElementType;

use super::Generator;
use super::block::{Block, Value, shape};
use super::bound::Bound;

impl Generator {
    pub(super) fn control(&mut self) {
        match self.below(6) {
            0 => drop(self.call()),
            1..=2 => drop(self.conditional()),
            3 => drop(self.loop_of_components()),
            _ => drop(self.loop_of_integers()),
        }
    }

    /// The name of a computation of these parameters, and its result, grown by `grow`.
    fn callee(
        &mut self,
        params: &[&Value],
        grow: impl FnOnce(&mut Self, &[Value]) -> Value,
    ) -> (String, Value) {
        let outer = std::mem::take(&mut self.block);
        let inner: Vec<Value> = params
            .iter()
            .map(|value| self.block.parameter(value.element, &value.dims, value.bound, None))
            .collect();
        let result = grow(self, &inner);
        let block = std::mem::replace(&mut self.block, outer);
        (self.close(&block, &result), result)
    }

    /// The name of a block that has been grown.
    fn close(&mut self, block: &Block, result: &Value) -> String {
        let root = format!("r = {} copy({})", result.shape(), result.name());
        let (body, _) = block.text(&root, &[result.line], false);
        let name = format!("c{}.f", self.computations.len());
        self.computations.push((name.clone(), format!("{name} {{\n{body}}}\n\n")));
        name
    }

    /// A few element-wise instructions; the last result that has the shape of the first parameter.
    fn grow(&mut self, params: &[Value]) -> Value {
        for _ in 0..=self.below(4) {
            if self.chance(2, 3) {
                self.binary();
            } else {
                self.unary();
            }
        }
        let first = &params[0];
        let fits = |value: &&Value| value.element == first.element && value.dims == first.dims;
        self.block.values.iter().rev().find(fits).unwrap_or(first).clone()
    }

    fn call(&mut self) -> Option<Value> {
        let first = self.choose(|_| true)?;
        let second = self.choose(|value| value.dims == first.dims)?;
        let (callee, result) =
            self.callee(&[&first, &second], |generator, params| generator.grow(params));
        let attributes = format!(", to_apply={callee}");
        Some(self.block.push(
            first.element,
            &first.dims,
            "call",
            &[&first, &second],
            &attributes,
            result.bound,
        ))
    }

    fn conditional(&mut self) -> Option<Value> {
        let first = self.choose(|_| true)?;
        let second =
            self.choose(|value| value.element == first.element && value.dims == first.dims)?;
        let by_index = self.chance(1, 2);
        let selector = match by_index {
            true => self.choose(|v| v.dims.is_empty() && v.element == ElementType::S32),
            false => self.choose(|v| v.dims.is_empty() && v.element.is_pred()),
        };
        let selector = match selector {
            Some(selector) => selector,
            None => {
                self.parameter_of(if by_index { ElementType::S32 } else { ElementType::Pred }, &[])
            }
        };
        let branches = if by_index { 1 + self.below(3) } else { 2 };
        let (mut names, mut bounds, mut operands) = (Vec::new(), Vec::new(), vec![selector]);
        for _ in 0..branches {
            let operand = if self.chance(1, 2) { &first } else { &second };
            let (name, result) =
                self.callee(&[operand], |generator, params| generator.grow(params));
            names.push(name);
            bounds.push(result.bound);
            operands.push(operand.clone());
        }
        let attributes = match &names[..] {
            [on_true, on_false] if !by_index => {
                format!(", true_computation={on_true}, false_computation={on_false}")
            }
            names => format!(", branch_computations={{{}}}", names.join(", ")),
        };
        let bound = bounds.into_iter().reduce(Bound::or)?;
        let operands: Vec<&Value> = operands.iter().collect();
        Some(self.block.push(
            first.element,
            &first.dims,
            "conditional",
            &operands,
            &attributes,
            bound,
        ))
    }

    /// A loop that counts, and changes integers and what it writes row by row in each iteration.
    fn loop_of_integers(&mut self) -> Option<Value> {
        let fits = |value: &Value| value.element.is_integer() || value.element.is_pred();
        let carried = self.choose(fits)?;
        let constant = self.choose(|value| fits(value) && value.dims == carried.dims)?;
        Some(self.loop_of(&carried, &constant, |generator, params| {
            let grown = generator.grow(params);
            if grown.dims.is_empty() || generator.chance(1, 2) {
                return grown;
            }
            let is_like = params[1].element == grown.element;
            let from = if is_like { &params[1] } else { &grown };
            generator.scatter_at(&grown, from, &params[2])
        }))
    }

    /// A loop over arrays with a dimension of a few elements, along which its iterations take them apart, move and fold
    /// elements, and put them together.
    pub(super) fn loop_of_components(&mut self) -> Option<Value> {
        let element =
            *self.pick(&[ElementType::S32, ElementType::S32, ElementType::S64, ElementType::U8]);
        let few = 2 + self.below(4);
        let mut dims = vec![*self.pick(&[8, 9, 16, 33])];
        for size in [few, 2] {
            if dims.len() == 1 || self.chance(1, 3) {
                dims.insert(self.below(dims.len() + 1), size);
            }
        }
        let carried = self.parameter_of(element, &dims);
        let constant = self.parameter_of(element, &dims);
        Some(self.loop_of(&carried, &constant, |generator, params| {
            let outer = std::mem::replace(&mut generator.sizes, dims.clone());
            for _ in 0..4 + generator.below(8) {
                match generator.below(8) {
                    0..=3 => generator.movement(),
                    4 => drop(generator.reduce()),
                    5 => drop(generator.spread()),
                    _ => drop(generator.binary()),
                }
            }
            generator.sizes = outer;
            let mut next = params[0].clone();
            for _ in 0..2 {
                let fits = |value: &Value| value.element == element && value.rank() == dims.len();
                if let Some(grown) = generator.choose(fits) {
                    let fitted = generator.fitted(&grown, &dims);
                    let bound = Bound::any(element);
                    next =
                        generator.block.push(element, &dims, "add", &[&next, &fitted], "", bound);
                }
            }
            next
        }))
    }

    /// A value cut off, or filled with ones, where it has other sizes.
    fn fitted(&mut self, value: &Value, dims: &[usize]) -> Value {
        let sizes = value.dims.iter().zip(dims);
        let padding = sizes.map(|(&size, &wanted)| format!("0_{}", wanted as i64 - size as i64));
        let attributes = format!(", padding={}", padding.collect::<Vec<_>>().join("x"));
        let one = self.scalar(value.element, 1);
        let bound = Bound::any(value.element);
        self.block.push(value.element, dims, "pad", &[value, &one], &attributes, bound)
    }

    /// A loop that counts, and whose iterations make the next of two values by `grow` of both and the counter.
    fn loop_of(
        &mut self,
        carried: &Value,
        constant: &Value,
        grow: impl FnOnce(&mut Self, &[Value]) -> Value,
    ) -> Value {
        // Its values wander; any are possible.
        let wide = |value: &Value| Value { bound: Bound::any(value.element), ..value.clone() };
        let (carried_in, constant_in) = (wide(carried), wide(constant));
        let trips = *self.pick(&[0, 1, 2, 5, 9]);
        let s32 = ElementType::S32;
        let (counter, limit) = (self.scalar(s32, 0), self.scalar(s32, trips));
        let state =
            format!("({}, {}, {}, s32[])", shape(s32, &[]), carried.shape(), constant.shape());
        let condition = self.computation(format!("while {state}"), |name| {
            format!(
                "{name} {{\n  p = {state} parameter(0)\n  i = s32[] get-tuple-element(p), index=0\n  \
                 n = s32[] get-tuple-element(p), index=3\n  ROOT r = pred[] compare(i, n), direction=LT\n}}\n\n"
            )
        });
        let steps = [&counter, &carried_in, &constant_in];
        let (step, _) = self.callee(&[steps[1], steps[2], steps[0]], grow);
        let (x, c) = (carried.shape(), constant.shape());
        let body = self.computation(format!("body {step} {state}"), |name| {
            format!(
                "{name} {{\n  p = {state} parameter(0)\n  i = s32[] get-tuple-element(p), index=0\n  \
                 x = {x} get-tuple-element(p), index=1\n  c = {c} get-tuple-element(p), index=2\n  \
                 n = s32[] get-tuple-element(p), index=3\n  y = {x} call(x, c, i), to_apply={step}\n  \
                 one = s32[] constant(1)\n  j = s32[] add(i, one)\n  ROOT r = {state} tuple(j, y, c, n)\n}}\n\n"
            )
        });
        let operands = [&counter, carried, constant, &limit];
        let names: Vec<String> = operands.iter().map(|value| value.name()).collect();
        let lines: Vec<usize> = operands.iter().map(|value| value.line).collect();
        let init = self.block.push_tuple(format!("{state} tuple({})", names.join(", ")), &lines);
        let text = format!("{state} while(v{init}), condition={condition}, body={body}");
        let result = self.block.push_tuple(text, &[init]);
        self.block.element(result, 0, s32, &[], Bound::exact(0.0, 9.0, true));
        let bound = Bound::any(carried.element);
        self.block.element(result, 1, carried.element, &carried.dims, bound)
    }
}
