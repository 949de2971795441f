//! Folds by a computation: of dimensions (`reduce`), of the elements under a window
//! (`reduce-window`), and into the elements that windows select (`select-and-scatter`).

use super::Arity;
use super::check::{ensure_dims, ensure_unique};
use super::reducer::{Reducer, ensure_reducer, fits, same_sizes};
use super::shared::Window;
use crate::text::attrs::{AttrReader, AttrWriter};
use crate::types::DimKind;
use crate::{ArrayShape, CompId, ElementType, InferCx, OpDef, Result, Shape, ensure};

/// Folds dimensions away with a computation; operands: arrays, then initial values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reduce {
    /// The dimensions to fold.
    pub dimensions: Vec<usize>,
    /// From accumulators, then elements, to accumulators.
    pub to_apply: CompId,
}

/// The arrays folded and the types of their initial values.
type Folded<'a> = (Vec<&'a ArrayShape>, Vec<ElementType>);

/// The operands of a fold: N arrays of the same sizes, N scalars. Errors: `rules`, in this order:
/// another number of operands, not arrays, not of the same sizes, not scalars.
fn folded<'a>(cx: &InferCx<'a>, rules: [&'static str; 4]) -> Result<Folded<'a>> {
    let [count_rule, array_rule, sizes_rule, scalar_rule] = rules;
    let operands = cx.operands.len();
    ensure!(
        operands.is_multiple_of(2),
        count_rule,
        "there must be as many initial values as arrays, but {operands} operands is an odd number"
    );
    let count = operands / 2;
    let arrays: Vec<_> = (0..count).map(|i| cx.array(array_rule, i)).collect::<Result<_>>()?;
    for (i, array) in arrays.iter().enumerate() {
        ensure!(
            same_sizes(array, arrays[0]),
            sizes_rule,
            "operand {i} must have the sizes of operand 0, {}; is {array}",
            arrays[0]
        );
    }
    let inits = (count..operands).map(|i| cx.scalar(scalar_rule, i)).collect::<Result<_>>()?;
    Ok((arrays, inits))
}

fn element_types(arrays: &[&ArrayShape]) -> Vec<ElementType> {
    arrays.iter().map(|array| array.element()).collect()
}

/// Arrays of these types with the same dimensions: a tuple of them if the computation gives one.
fn results(
    reducer: &Reducer,
    elements: &[ElementType],
    dims: Vec<(usize, DimKind)>,
) -> Result<Shape> {
    let (sizes, kinds): (Vec<_>, Vec<_>) = dims.into_iter().unzip();
    let array =
        |&element| ArrayShape::with_kinds(element, sizes.clone(), kinds.clone()).map(Shape::Array);
    let mut arrays: Vec<Shape> = elements.iter().map(array).collect::<Result<_>>()?;
    match arrays.pop() {
        Some(only) if arrays.is_empty() && !reducer.is_tuple => Ok(only),
        last => Ok(Shape::Tuple(arrays.into_iter().chain(last).collect())),
    }
}

impl OpDef for Reduce {
    const OPCODE: &'static str = "reduce";
    const ARITY: Arity = Arity::AtLeast(2);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let (arrays, inits) = folded(cx, ["reduce.C1", "reduce.C2", "reduce.C3", "reduce.C4"])?;
        let first = arrays[0];
        ensure_dims("reduce.C5", "dimensions", &self.dimensions, first)?;
        ensure_unique("reduce.C6", "dimensions", &self.dimensions)?;
        let reducer = ensure_reducer(cx, self.to_apply, &inits, &element_types(&arrays))?;
        let kept = (0..first.rank()).filter(|d| !self.dimensions.contains(d));
        results(&reducer, &reducer.accumulators, kept.map(|d| first.dim(d)).collect())
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        Ok(Reduce {
            dimensions: attrs.needed("dimensions", AttrReader::sizes)?,
            to_apply: attrs.needed("to_apply", AttrReader::computation)?,
        })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        attrs.list("dimensions", &self.dimensions);
        attrs.computation("to_apply", self.to_apply);
    }

    calls!(to_apply);
}

/// Folds each position of a window with a computation; operands: arrays, then initial values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReduceWindow {
    /// The window.
    pub window: Window,
    /// From accumulators, then elements, to accumulators.
    pub to_apply: CompId,
}

fn all_dims(array: &ArrayShape) -> Vec<(usize, DimKind)> {
    (0..array.rank()).map(|d| array.dim(d)).collect()
}

impl OpDef for ReduceWindow {
    const OPCODE: &'static str = "reduce-window";
    const ARITY: Arity = Arity::AtLeast(2);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let rules =
            ["reduce-window.C1", "reduce-window.C2", "reduce-window.C3", "reduce-window.C4"];
        let (arrays, inits) = folded(cx, rules)?;
        let reducer = ensure_reducer(cx, self.to_apply, &inits, &element_types(&arrays))?;
        // Unlike those of reduce, the results have the initial values' types.
        results(&reducer, &inits, self.window.output_dims(&all_dims(arrays[0]))?)
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        Ok(ReduceWindow {
            window: attrs.parse("window", Window::read)?.unwrap_or_default(),
            to_apply: attrs.needed("to_apply", AttrReader::computation)?,
        })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        if !self.window.dims.is_empty() {
            attrs.put("window", &self.window);
        }
        attrs.computation("to_apply", self.to_apply);
    }

    calls!(to_apply);
}

/// Picks an element in each window of the first operand and adds to it the second's element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectAndScatter {
    /// The window.
    pub window: Window,
    /// Whether its first argument is picked rather than its second.
    pub select: CompId,
    /// From current value and new value to the combined one.
    pub scatter: CompId,
}

impl OpDef for SelectAndScatter {
    const OPCODE: &'static str = "select-and-scatter";
    const ARITY: Arity = Arity::Exactly(3);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let operand = cx.array("select-and-scatter.C1", 0)?;
        let source = cx.array("select-and-scatter.C1", 1)?;
        let init = cx.scalar("select-and-scatter.C2", 2)?;

        let select = cx.callee(self.select);
        let params = select.params();
        let is_element = |id| {
            let shape: &Shape = &select.instr(id).shape;
            let scalar = shape.as_array().filter(|array| array.is_scalar());
            scalar.is_some_and(|scalar| fits(scalar.element(), operand.element()))
        };
        ensure!(
            params.len() == 2 && params.values().all(|&id| is_element(id)),
            "select-and-scatter.C3",
            "select {} must take 2 parameters of type {}[], is {}",
            select.name,
            operand.element(),
            select.program_shape()
        );
        ensure!(
            select.result_shape().same(&Shape::scalar(ElementType::Pred)),
            "select-and-scatter.C4",
            "select {} must give pred[], gives {}",
            select.name,
            select.result_shape()
        );
        ensure_reducer(cx, self.scatter, &[init], &[source.element()])?;

        let dims = self.window.output_dims(&all_dims(operand))?;
        let (sizes, kinds) = dims.into_iter().unzip();
        let expected = ArrayShape::with_kinds(operand.element(), sizes, kinds)?;
        ensure!(
            same_sizes(source, &expected) && fits(source.element(), expected.element()),
            "select-and-scatter.C5",
            "operand 1 must be {expected}, an element for each position of the window; is {source}"
        );
        Ok(Shape::Array(operand.clone().without_layout()))
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        Ok(SelectAndScatter {
            window: attrs.parse("window", Window::read)?.unwrap_or_default(),
            select: attrs.needed("select", AttrReader::computation)?,
            scatter: attrs.needed("scatter", AttrReader::computation)?,
        })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        if !self.window.dims.is_empty() {
            attrs.put("window", &self.window);
        }
        attrs.computation("select", self.select);
        attrs.computation("scatter", self.scatter);
    }

    calls!(select, scatter);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{C0, C1, infer_in, module};
    use crate::text::attrs::Scan;

    fn window(text: &str) -> Window {
        Window::read(&mut Scan::new(text)).expect("a window")
    }

    #[test]
    fn reduce_results() {
        let f32s = module(&[(&["f32[]", "f32[]"], "f32[]")]);
        let reduce =
            |dimensions: &[usize]| Reduce { dimensions: dimensions.to_vec(), to_apply: C0 };
        assert_eq!(infer_in(&f32s, reduce(&[0, 2]), &["f32[2,3,4]", "f32[]"]), "f32[3]");
        assert_eq!(infer_in(&f32s, reduce(&[]), &["f32[2]", "f32[]"]), "f32[2]");
        assert_eq!(infer_in(&f32s, reduce(&[0]), &["f32[2,<=3,?]", "f32[]"]), "f32[<=3,?]");

        let pair = module(&[(&["f32[]", "s32[]", "f32[]", "s32[]"], "(f32[], s32[])")]);
        let operands = ["f32[2,3]", "s32[2,3]", "f32[]", "s32[]"];
        assert_eq!(infer_in(&pair, reduce(&[1]), &operands), "(f32[2], s32[2])");
        // A tuple of one stays a tuple.
        let single = module(&[(&["f32[]", "f32[]"], "(f32[])")]);
        assert_eq!(infer_in(&single, reduce(&[0]), &["f32[2]", "f32[]"]), "(f32[])");
    }

    #[test]
    fn floats_of_other_precision_fold() {
        // As XLA's VerifyReducerShape has it: the result has the accumulator's type.
        let wide = module(&[(&["f32[]", "bf16[]"], "f32[]")]);
        let reduce = Reduce { dimensions: vec![0], to_apply: C0 };
        assert_eq!(infer_in(&wide, reduce.clone(), &["bf16[2]", "f32[]"]), "f32[]");
        assert_eq!(infer_in(&wide, reduce.clone(), &["f16[2]", "f64[]"]), "f32[]");
        assert_eq!(infer_in(&wide, reduce.clone(), &["s32[2]", "f32[]"]), "reducer.C5");
        let mixed = module(&[(&["s32[]", "f32[]"], "s32[]")]);
        assert_eq!(infer_in(&mixed, reduce, &["f32[2]", "s32[]"]), "reducer.C5");
        // That of a window, the initial value's.
        let window = ReduceWindow { window: window("{size=1}"), to_apply: C0 };
        assert_eq!(infer_in(&wide, window, &["bf16[2]", "f64[]"]), "f64[2]");
    }

    #[test]
    fn window_results() {
        let f32s = module(&[(&["f32[]", "f32[]"], "f32[]")]);
        let op = |text| ReduceWindow { window: window(text), to_apply: C0 };
        let valid = op("{size=1x2 stride=1x2}");
        assert_eq!(infer_in(&f32s, valid, &["f32[3,5]", "f32[]"]), "f32[3,2]");
        assert_eq!(infer_in(&f32s, op("{}"), &["f32[]", "f32[]"]), "f32[]");
        let bounded = op("{size=2x1x1}");
        assert_eq!(infer_in(&f32s, bounded, &["f32[<=3,5,?]", "f32[]"]), "f32[<=2,5,?]");
        let cropped = op("{size=1 pad=-9223372036854775808_0}");
        assert_eq!(infer_in(&f32s, cropped, &["f32[3]", "f32[]"]), "f32[0]");
        let padded = op("{size=1 pad=9223372036854775807_9223372036854775807}");
        assert_eq!(infer_in(&f32s, padded, &["f32[3]", "f32[]"]), "window.C6");
        assert_eq!(infer_in(&f32s, op("{size=0}"), &["f32[3]", "f32[]"]), "window.C1");
    }

    #[test]
    fn select_and_scatter_results() {
        let module = module(&[(&["f32[]", "f32[]"], "pred[]"), (&["f32[]", "f32[]"], "f32[]")]);
        let op = |text| SelectAndScatter { window: window(text), select: C0, scatter: C1 };
        let operands = ["f32[4,6]", "f32[2,2]", "f32[]"];
        let two_by_three = op("{size=2x3 stride=2x3}");
        assert_eq!(infer_in(&module, two_by_three.clone(), &operands), "f32[4,6]");
        let other = ["f32[4,6]", "f32[2,3]", "f32[]"];
        assert_eq!(infer_in(&module, two_by_three, &other), "select-and-scatter.C5");
        let swapped = SelectAndScatter { select: C1, scatter: C0, ..op("{size=2x3 stride=2x3}") };
        assert_eq!(infer_in(&module, swapped, &operands), "select-and-scatter.C4");
    }
}
