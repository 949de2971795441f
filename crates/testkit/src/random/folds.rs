//! Random reductions, windows, products and sorts.

use helio::ElementType;
use helio::ir::ops::BinaryOp;

use super::block::{Value, list, shape};
use super::bound::{Bound, Precision};
use super::{Fill, Generator};

/// The most steps of a fold, which the interpreter performs one by one.
const MAX_WORK: usize = 200_000;

impl Generator {
    pub(super) fn fold(&mut self) {
        match self.below(13) {
            0..=3 => drop(self.reduce()),
            4 => drop(self.arg_reduce()),
            5 => drop(self.reduce_window()),
            6..=8 => drop(self.dot()),
            9 => drop(self.convolution()),
            10 => drop(self.sort()),
            11 => drop(self.reduce_windows()),
            _ => drop(self.sort_pairs()),
        }
    }

    /// The name of a computation that folds two scalars into one.
    pub(super) fn reducer(&mut self, op: BinaryOp, element: ElementType) -> String {
        let (op, ty) = (op.name(), shape(element, &[]));
        self.computation(format!("{op} {ty}"), |name| {
            format!(
                "{name} {{\n  a = {ty} parameter(0)\n  b = {ty} parameter(1)\n  ROOT r = {ty} {op}(a, b)\n}}\n\n"
            )
        })
    }

    /// A fold that suits a value, with what it begins with and the bound of `count` elements.
    fn folding(&mut self, value: &Value, count: usize) -> Option<(BinaryOp, i64, Bound)> {
        use BinaryOp::{Add, And, Maximum, Minimum, Multiply, Or, Xor};
        let element = value.element;
        let ops: &[BinaryOp] = match element {
            e if e.is_pred() => &[And, Or],
            e if e.is_integer() => &[Add, Maximum, Minimum, Multiply, And, Or, Xor],
            e if e.is_complex() => &[Add],
            _ => &[Add, Add, Add, Maximum, Minimum],
        };
        let op = *self.pick(ops);
        // Often not neutral: what folds begin with tells them apart.
        let has_three = !element.is_pred() && element.bits() >= 4;
        let initial = self.between(0, if has_three { 3 } else { 1 });
        let x = value.bound;
        let bound = if element.is_integer() || element.is_pred() {
            Bound::any(element)
        } else {
            Precision::of(element)?;
            match op {
                Add => {
                    let (n, start) = (count as f64 + 1.0, initial as f64);
                    // (Padding of a window is the initial value again.)
                    let range = [(x.low * n).min(0.0), (x.high * n).max(0.0) + n * start];
                    let one_sign = x.low >= 0.0 && x.relative.is_finite();
                    let relative = if one_sign { x.relative } else { f64::INFINITY };
                    if x.special {
                        return None;
                    }
                    Bound::arithmetic(element, range, &[x], n * x.error, relative, n)?
                }
                _ => x.or(Bound::exact(initial as f64, initial as f64, true)),
            }
        };
        Some((op, initial, bound))
    }

    pub(super) fn reduce(&mut self) -> Option<Value> {
        let value = self.choose(|value| value.rank() >= 1)?;
        let folded: Vec<usize> = (0..value.rank()).filter(|_| self.chance(1, 2)).collect();
        let kept = (0..value.rank()).filter(|d| !folded.contains(d));
        let dims: Vec<usize> = kept.map(|d| value.dims[d]).collect();
        let count: usize = folded.iter().map(|&d| value.dims[d]).product();
        let (op, initial, bound) = self.folding(&value, count.max(1))?;
        let initial = self.scalar(value.element, initial);
        let callee = self.reducer(op, value.element);
        let attributes = format!(", dimensions={{{}}}, to_apply={callee}", list(&folded));
        Some(self.block.push(
            value.element,
            &dims,
            "reduce",
            &[&value, &initial],
            &attributes,
            bound,
        ))
    }

    /// The greatest (or least) element along a dimension and where it is first.
    fn arg_reduce(&mut self) -> Option<Value> {
        let value = self.choose(|value| {
            let sortable = value.element.is_integer() || Precision::of(value.element).is_some();
            value.rank() >= 1
                && sortable
                && !value.element.is_complex()
                && value.bound.is_exact()
                && value.bound.is_plain()
        })?;
        let along = self.below(value.rank());
        let mut dims = value.dims.clone();
        dims.remove(along);
        let direction = *self.pick(&["GT", "LT"]);
        let (ty, index) = (shape(value.element, &[]), "s32[]");
        let callee = self.computation(format!("arg {direction} {ty}"), |name| {
            format!(
                "{name} {{\n  a = {ty} parameter(0)\n  i = {index} parameter(1)\n  b = {ty} parameter(2)\n  \
                 j = {index} parameter(3)\n  better = pred[] compare(a, b), direction={direction}\n  \
                 same = pred[] compare(a, b), direction=EQ\n  earlier = pred[] compare(i, j), direction=LT\n  \
                 tie = pred[] and(same, earlier)\n  first = pred[] or(better, tie)\n  \
                 x = {ty} select(first, a, b)\n  k = {index} select(first, i, j)\n  \
                 ROOT r = ({ty}, {index}) tuple(x, k)\n}}\n\n"
            )
        });
        let s32 = ElementType::S32;
        let indices = self.block.push(
            s32,
            &value.dims,
            "iota",
            &[],
            &format!(", iota_dimension={along}"),
            Bound::exact(0.0, value.dims[along] as f64, true),
        );
        let (initial, zero) = (self.scalar(value.element, 0), self.scalar(s32, 0));
        let operands = [&value, &indices, &initial, &zero];
        let names: Vec<String> = operands.iter().map(|operand| operand.name()).collect();
        let text = format!(
            "({}, {}) reduce({}), dimensions={{{along}}}, to_apply={callee}",
            shape(value.element, &dims),
            shape(s32, &dims),
            names.join(", ")
        );
        let lines: Vec<usize> = operands.iter().map(|operand| operand.line).collect();
        let tuple = self.block.push_tuple(text, &lines);
        let bound = value.bound.or(initial.bound);
        self.block.element(tuple, 0, value.element, &dims, bound);
        Some(self.block.element(
            tuple,
            1,
            s32,
            &dims,
            Bound::exact(0.0, value.dims[along] as f64, true),
        ))
    }

    /// A window over an array of these sizes, as text, with the sizes of the result and the points of the
    /// window: one that pools, or all along a dimension, up to each position or from it on. `None` if
    /// there would be too much to fold.
    fn window(&mut self, of: &[usize]) -> Option<(String, Vec<usize>, usize)> {
        let along = self.below(of.len());
        let (running, backwards) = (self.chance(1, 2), self.chance(1, 2));
        let (mut dims, mut sizes, mut strides, mut pads) = (vec![], vec![], vec![], vec![]);
        let mut count = 1;
        for (d, &size) in of.iter().enumerate() {
            let (window, stride, [low, high]) = match (running, d == along) {
                (true, true) if backwards => (size.max(1), 1, [0, size.saturating_sub(1)]),
                (true, true) => (size.max(1), 1, [size.saturating_sub(1), 0]),
                (true, false) => (1, 1, [0, 0]),
                (false, _) => {
                    let window = 1 + self.below(size.clamp(1, 3));
                    (window, 1 + self.below(2), [self.below(window), self.below(window)])
                }
            };
            count *= window;
            // (Windows over nothing but padding there are, too.)
            dims.push((size + low + high + stride).saturating_sub(window) / stride);
            sizes.push(window.to_string());
            strides.push(stride.to_string());
            pads.push(format!("{low}_{high}"));
        }
        let [sizes, strides, pads] = [sizes, strides, pads].map(|all| all.join("x"));
        let text = format!("window={{size={sizes} stride={strides} pad={pads}}}");
        (count * dims.iter().product::<usize>() <= MAX_WORK).then_some((text, dims, count))
    }

    /// Pools, or sums up along a dimension.
    fn reduce_window(&mut self) -> Option<Value> {
        let value = self.choose(|value| value.rank() >= 1)?;
        let (window, dims, count) = self.window(&value.dims)?;
        let (op, initial, bound) = self.folding(&value, count)?;
        let initial = self.scalar(value.element, initial);
        let callee = self.reducer(op, value.element);
        Some(self.block.push(
            value.element,
            &dims,
            "reduce-window",
            &[&value, &initial],
            &format!(", {window}, to_apply={callee}"),
            bound,
        ))
    }

    /// As [`Self::reduce_window`], of two arrays of integers at once, each by an operation of its own for
    /// which the order may matter.
    fn reduce_windows(&mut self) -> Option<Value> {
        use BinaryOp::{Add, Maximum, Multiply, ShiftLeft, Subtract, Xor};
        let x = self.choose(|value| value.rank() >= 1 && value.element.is_integer())?;
        let y = self.choose(|value| value.dims == x.dims && value.element.is_integer())?;
        let (window, dims, _) = self.window(&x.dims)?;
        let ops = [Add, Maximum, Multiply, ShiftLeft, Subtract, Xor];
        let [first, second] = [0; 2].map(|_| self.pick(&ops).name());
        let [tx, ty] = [&x, &y].map(|value| shape(value.element, &[]));
        let callee = self.computation(format!("{first} {tx} {second} {ty}"), |name| {
            format!(
                "{name} {{\n  a = {tx} parameter(0)\n  b = {ty} parameter(1)\n  c = {tx} parameter(2)\n  \
                 d = {ty} parameter(3)\n  x = {tx} {first}(a, c)\n  y = {ty} {second}(b, d)\n  \
                 ROOT r = ({tx}, {ty}) tuple(x, y)\n}}\n\n"
            )
        });
        let [begin, start] = [&x, &y].map(|value| self.scalar(value.element, 1));
        let operands = [&x, &y, &begin, &start];
        let names: Vec<String> = operands.iter().map(|operand| operand.name()).collect();
        let text = format!(
            "({}, {}) reduce-window({}), {window}, to_apply={callee}",
            shape(x.element, &dims),
            shape(y.element, &dims),
            names.join(", ")
        );
        let lines: Vec<usize> = operands.iter().map(|operand| operand.line).collect();
        let tuple = self.block.push_tuple(text, &lines);
        self.block.element(tuple, 0, x.element, &dims, Bound::any(x.element));
        Some(self.block.element(tuple, 1, y.element, &dims, Bound::any(y.element)))
    }

    /// What `count` products of elements of two values sum up to.
    fn products(&mut self, lhs: &Value, rhs: &Value, count: usize) -> Option<(ElementType, Bound)> {
        let (x, y) = (lhs.bound, rhs.bound);
        let element = match lhs.element {
            ElementType::S8 | ElementType::U8 if self.chance(1, 2) => ElementType::S32,
            ElementType::BF16 | ElementType::F16 if self.chance(1, 2) => ElementType::F32,
            element => element,
        };
        if element.is_integer() || element.is_pred() {
            return Some((element, Bound::any(element)));
        }
        if x.special || y.special {
            return None;
        }
        let n = count as f64 * if element.is_complex() { 2.0 } else { 1.0 };
        let most = n * x.magnitude() * y.magnitude();
        let error = n * (x.error * y.magnitude() + y.error * x.magnitude());
        let bound =
            Bound::arithmetic(element, [-most, most], &[x, y], error, f64::INFINITY, n + 1.0)?;
        Some((element, bound))
    }

    fn dot(&mut self) -> Option<Value> {
        let lhs = self.choose(|value| value.rank() >= 1 && !value.element.is_pred())?;
        let rhs = self.choose(|value| {
            value.element == lhs.element && value.dims.iter().any(|d| lhs.dims.contains(d))
        })?;
        // Dimensions of one size pair up: mostly one contracts, and some are batches.
        let (mut contracting, mut batch): (Vec<[usize; 2]>, Vec<[usize; 2]>) = (vec![], vec![]);
        for i in 0..lhs.rank() {
            let taken = |j: usize| contracting.iter().chain(&batch).any(|pair| pair[1] == j);
            let free: Vec<usize> =
                (0..rhs.rank()).filter(|&j| rhs.dims[j] == lhs.dims[i] && !taken(j)).collect();
            if free.is_empty() {
                continue;
            }
            let j = *self.pick(&free);
            match self.below(4) {
                0 => batch.push([i, j]),
                1..=2 if contracting.len() < 2 => contracting.push([i, j]),
                _ => {}
            }
        }
        let of = |pairs: &[[usize; 2]], side: usize| -> Vec<usize> {
            pairs.iter().map(|pair| pair[side]).collect()
        };
        let free = |value: &Value, side: usize| -> Vec<usize> {
            let used = [of(&contracting, side), of(&batch, side)].concat();
            (0..value.rank()).filter(|d| !used.contains(d)).map(|d| value.dims[d]).collect()
        };
        let batches: Vec<usize> = batch.iter().map(|pair| lhs.dims[pair[0]]).collect();
        let dims = [batches, free(&lhs, 0), free(&rhs, 1)].concat();
        let count: usize = contracting.iter().map(|pair| lhs.dims[pair[0]]).product();
        let results: usize = dims.iter().product();
        if results > self.most || results * count.max(1) > MAX_WORK {
            return None;
        }
        let (element, bound) = self.products(&lhs, &rhs, count.max(1))?;
        let mut attributes = format!(
            ", lhs_contracting_dims={{{}}}, rhs_contracting_dims={{{}}}",
            list(&of(&contracting, 0)),
            list(&of(&contracting, 1))
        );
        if !batch.is_empty() {
            attributes.push_str(&format!(
                ", lhs_batch_dims={{{}}}, rhs_batch_dims={{{}}}",
                list(&of(&batch, 0)),
                list(&of(&batch, 1))
            ));
        }
        Some(self.block.push(element, &dims, "dot", &[&lhs, &rhs], &attributes, bound))
    }

    /// A small convolution of two spatial dimensions on parameters of its own.
    fn convolution(&mut self) -> Option<Value> {
        let element = *self.pick(&[
            ElementType::F32,
            ElementType::F32,
            ElementType::F64,
            ElementType::BF16,
            ElementType::S32,
        ]);
        let groups = *self.pick(&[1, 1, 2]);
        let some = |generator: &mut Self, most: usize| {
            let least = usize::from(!generator.chance(1, 16));
            least + generator.below(most)
        };
        let (batch, inputs, outputs) = (some(self, 3), some(self, 3), groups * (1 + self.below(3)));
        let (mut sizes, mut kernel, mut result) = ([0; 2], [0; 2], [0; 2]);
        let mut window: [Vec<String>; 6] = Default::default();
        for d in 0..2 {
            sizes[d] = some(self, 8);
            kernel[d] = 1 + self.below(3);
            let stride = 1 + self.below(2);
            let [low, high] = [self.below(2), self.below(2)];
            let [base, dilation] = [*self.pick(&[1, 1, 2]), *self.pick(&[1, 1, 2])];
            let reversal = self.below(2);
            let reach = (kernel[d] - 1) * dilation + 1;
            let dilated = sizes[d].checked_sub(1).map_or(0, |gaps| gaps * base + 1);
            let length = dilated + low + high;
            result[d] = (length + 1).saturating_sub(reach).div_ceil(stride);
            let texts = [
                kernel[d].to_string(),
                stride.to_string(),
                format!("{low}_{high}"),
                base.to_string(),
                dilation.to_string(),
                reversal.to_string(),
            ];
            window.iter_mut().zip(texts).for_each(|(list, text)| list.push(text));
        }
        let bound = Bound::exact(-2.0, 3.0, true);
        let fill = if self.chance(1, 2) || element == ElementType::S32 {
            Fill::Whole
        } else {
            Fill::Normal
        };
        let bound = Bound { whole: matches!(fill, Fill::Whole), ..bound };
        let order = *self.pick(&["b01f_01io->b01f", "bf01_oi01->bf01", "fb01_io01->bf01"]);
        let place = |labels: &str, letters: [char; 4], values: [usize; 4]| -> Vec<usize> {
            let of = |label| letters.iter().position(|&letter| letter == label).map(|i| values[i]);
            labels.chars().filter_map(of).collect()
        };
        let (input, rest) = order.split_once('_')?;
        let (weights, output) = rest.split_once("->")?;
        let data = ['b', 'f', '0', '1'];
        let input = place(input, data, [batch, inputs * groups, sizes[0], sizes[1]]);
        let weights = place(weights, ['i', 'o', '0', '1'], [inputs, outputs, kernel[0], kernel[1]]);
        let output = place(output, data, [batch, outputs, result[0], result[1]]);
        let lhs = self.parameter_with(element, &input, bound, fill);
        let rhs = self.parameter_with(element, &weights, bound, fill);
        let count = (inputs * kernel[0] * kernel[1]).max(1);
        let (element, bound) = self.products(&lhs, &rhs, count)?;
        let [size, stride, pad, base, dilation, reversal] = window.map(|list| list.join("x"));
        let attributes = format!(
            ", window={{size={size} stride={stride} pad={pad} lhs_dilate={base} rhs_dilate={dilation} \
             rhs_reversal={reversal}}}, dim_labels={order}, feature_group_count={groups}"
        );
        Some(self.block.push(element, &output, "convolution", &[&lhs, &rhs], &attributes, bound))
    }

    /// The name of a comparator of `count` arrays that looks at the first.
    /// A comparator of the first elements, or of what is computed from them, so that more are equal.
    fn comparator(&mut self, elements: &[ElementType]) -> String {
        let direction = *self.pick(&["LT", "GT"]);
        let types: Vec<String> = elements.iter().map(|&element| shape(element, &[])).collect();
        let ty = &types[0];
        let mask = format!("{ty} and");
        let floor = format!("{ty} floor");
        let computed = match elements[0] {
            element if element.is_integer() && element.bits() >= 8 => Some(mask),
            element if element.is_float() => Some(floor),
            _ => None,
        };
        let computed = computed.filter(|_| self.below(2) == 0);
        let name = format!("sort {direction} {computed:?} {}", types.join(" "));
        self.computation(name, |name| {
            let mut text = format!("{name} {{\n");
            for (i, ty) in types.iter().enumerate() {
                text.push_str(&format!("  a{i} = {ty} parameter({})\n", 2 * i));
                text.push_str(&format!("  b{i} = {ty} parameter({})\n", 2 * i + 1));
            }
            let keys = match &computed {
                Some(op) => {
                    let second = if op.ends_with("and") { ", m" } else { "" };
                    text.push_str(&format!("  m = {ty} constant(6)\n"));
                    text.push_str(&format!("  c = {op}(a0{second})\n  d = {op}(b0{second})\n"));
                    "c, d"
                }
                None => "a0, b0",
            };
            text.push_str(&format!(
                "  ROOT r = pred[] compare({keys}), direction={direction}\n}}\n\n"
            ));
            text
        })
    }

    fn key(&mut self) -> Option<Value> {
        self.choose(|value| {
            let sortable = value.element.is_integer() || Precision::of(value.element).is_some();
            value.rank() >= 1
                && sortable
                && !value.element.is_complex()
                && value.bound.is_exact()
                && value.bound.is_plain()
        })
    }

    pub(super) fn sort(&mut self) -> Option<Value> {
        let key = self.key()?;
        let along = self.below(key.rank());
        let callee = self.comparator(&[key.element]);
        let attributes = format!(", dimensions={{{along}}}, is_stable=true, to_apply={callee}");
        Some(self.block.push(key.element, &key.dims, "sort", &[&key], &attributes, key.bound))
    }

    pub(super) fn sort_pairs(&mut self) -> Option<Value> {
        let key = self.key()?;
        let payload = self.choose(|value| value.dims == key.dims)?;
        let along = self.below(key.rank());
        let callee = self.comparator(&[key.element, payload.element]);
        let text = format!(
            "({}, {}) sort({}, {}), dimensions={{{along}}}, is_stable=true, to_apply={callee}",
            key.shape(),
            payload.shape(),
            key.name(),
            payload.name()
        );
        let tuple = self.block.push_tuple(text, &[key.line, payload.line]);
        self.block.element(tuple, 0, key.element, &key.dims, key.bound);
        Some(self.block.element(tuple, 1, payload.element, &payload.dims, payload.bound))
    }
}
