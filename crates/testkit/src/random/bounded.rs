//! Random programs on arrays of bounded dimensions: what is computed from elements must be the same whatever
//! lies in the padding behind them, and sizes must be those that the interpreter gives.
//!
//! All elements are whole numbers that every type in use holds, so that engines must agree in all bits.
//! Operations are tried at random; those that the representation refuses are not taken.

use helio::ir::ops::{
    Broadcast, Clamp, Compare, Concatenate, Conditional, Constant, Convert, Convolution, Direction,
    Dot, DynamicReshape, DynamicSlice, DynamicUpdateSlice, Gather, GatherDims, GetDimensionSize,
    Iota, Pad, PadDim, Parameter, Reduce, ReduceWindow, Reshape, Reverse, Scatter, ScatterDims,
    Select, SetDimensionSize, Slice, Sort, TopK, Transpose, Tuple, While, Window, WindowDim,
};
use helio::ir::ops::{ConvDims, DotDims, GetTupleElement};
use helio::ir::types::{ArrayShape, DimKind};
use helio::ir::{BinaryOp, CompId, Computation, Instr, InstrId, Module, Op, UnaryOp, Verified};
use helio::unstable::ir::InferCx;
use helio::unstable::ir::types::IndexIter;
use helio::{Array, ElementType, Executable, Literal, RunOptions, Shape};
use oorandom::Rand64;

use super::ensure_compiled;
use crate::engines::{ENGINES, Engine};
use crate::tally::Tally;
use crate::tolerance::Tolerance;

/// Instructions that are tried for a program.
const TRIES: usize = 30;

/// The most elements of an array at its bounds.
const MAX_ELEMENTS: usize = 4096;

/// Runs the program of this number on the interpreter and on every engine, with several sizes; counts the
/// runs whose results were compared. Errors: a report of the first engine that differs, with the first
/// value that does.
pub fn check_bounded(seed: u64, tally: &mut Tally) -> Result<(), String> {
    let mut writer = Writer::new(seed);
    (0..TRIES).for_each(|_| writer.step());
    let runs: Vec<Vec<Literal>> = (0..3).map(|_| writer.arguments()).collect();
    let module = verified(writer.module(|writer| writer.unused()), seed)?;
    for (number, engine) in ENGINES.iter().enumerate().skip(1) {
        // One engine goes through all sizes.
        let runs = if number == 2 { &runs[..] } else { &runs[..1] };
        match check_on(engine, &module, runs) {
            Ok(program) => tally.ran(engine, &program),
            Err(error) => {
                let module = verified(writer.module(|writer| writer.values.clone()), seed)?;
                let first = check_on(engine, &module, runs).err().unwrap_or(error);
                let text = helio::ir::text::print(&module);
                let name = engine.name;
                return Err(format!("seed {seed}, {name}: {first}\n{text}\n{:?}", runs[0]));
            }
        }
    }
    Ok(())
}

fn verified(module: Module, seed: u64) -> Result<Verified<Module>, String> {
    let text = helio::ir::text::print(&module);
    helio::ir::verify(module)
        .map_err(|errors| format!("seed {seed}: the program is wrong: {errors:?}\n{text}"))
}

/// The engine's program. Errors: it is interpreted as a whole, or differs from the interpreter.
fn check_on(
    engine: &Engine,
    module: &Verified<Module>,
    runs: &[Vec<Literal>],
) -> Result<Executable, String> {
    let program = engine.compile(module).map_err(|e| e.to_string())?;
    ensure_compiled(&program)?;
    for arguments in runs {
        agree(engine, &program, module, arguments)?;
    }
    Ok(program)
}

fn agree(
    engine: &Engine,
    program: &Executable,
    module: &Verified<Module>,
    arguments: &[Literal],
) -> Result<(), String> {
    let options = RunOptions::default();
    let expected = ENGINES[0].run(module, arguments, &options);
    let found = engine.run_program(program, arguments, &options);
    match (found, expected) {
        (Err(_), Err(_)) => Ok(()),
        (Ok(_), Err(error)) => Err(format!("no error; the interpreter says: {error}")),
        (Err(error), Ok(_)) => Err(error.to_string()),
        (Ok(found), Ok(expected)) => {
            let (Some(found), Some(expected)) = (found.as_tuple(), expected.as_tuple()) else {
                return Err("a result is no tuple".to_owned());
            };
            for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
                let exact = Tolerance::Exact;
                let entry = module.entry();
                let name = &entry.instr(entry.instr(entry.root()).operands[i]).name;
                exact.compare(found, expected).map_err(|e| format!("{name}: {e}"))?;
            }
            Ok(())
        }
    }
}

/// A program as it grows.
struct Writer {
    rng: Rand64,
    module: Module,
    main: Computation,
    /// The arrays there are to choose from.
    values: Vec<InstrId>,
    params: Vec<ArrayShape>,
    /// Bounds, each of which has one size in a run, mostly.
    bounds: Vec<usize>,
    folds: Vec<(CompId, i32)>,
    pairs: CompId,
    less: CompId,
}

impl Writer {
    fn new(seed: u64) -> Self {
        let mut module = Module::new("bounded");
        let mut add = |computation: Computation| module.push(computation).expect("a computation");
        let folds = [
            (BinaryOp::Add, 0),
            (BinaryOp::Add, 5),
            (BinaryOp::Maximum, -100),
            (BinaryOp::Minimum, 3),
            (BinaryOp::Or, 0),
            (BinaryOp::And, -1),
        ];
        let folds = folds
            .iter()
            .enumerate()
            .map(|(i, &(op, init))| (add(scalar(&format!("fold{i}"), op)), init));
        let mut folds: Vec<(CompId, i32)> = folds.collect();
        // A fold that no operation is: (a | b) + (a & b), which is a sum.
        folds.push((add(sum_of_bits()), 1));
        let pairs = add(pairs());
        let less = add(less());
        let mut rng = Rand64::new(seed.into());
        let bounds = (0..2).map(|_| [1, 2, 3, 5, 8, 13, 17][rng.rand_range(0..7) as usize]);
        let bounds = bounds.collect();
        let main = Computation::new("main");
        let (values, params) = (Vec::new(), Vec::new());
        let mut writer = Writer { rng, module, main, values, params, bounds, folds, pairs, less };
        while writer.values.len() < 2 {
            writer.parameter();
        }
        writer
    }

    fn below(&mut self, count: usize) -> usize {
        self.rng.rand_range(0..count.max(1) as u64) as usize
    }

    fn chance(&mut self, one: usize, of: usize) -> bool {
        self.below(of) < one
    }

    /// Adds an operation, if its operands are any for it and its result is not too large.
    fn add(&mut self, op: impl Into<Op>, operands: &[InstrId]) -> Option<InstrId> {
        let op = op.into();
        let shapes: Vec<&Shape> = operands.iter().map(|&id| &self.main.instr(id).shape).collect();
        let shape = op.infer(&InferCx { operands: &shapes, module: &self.module }).ok()?;
        let is_large = |leaf: &&Shape| {
            leaf.as_array().is_some_and(|array| array.element_count() > MAX_ELEMENTS)
        };
        if shape.leaves().iter().any(is_large) || self.shows_padding(&op, operands, &shape) {
            return None;
        }
        let name = format!("v{}", self.main.instrs().len());
        self.main.push(Instr::new(op, operands, shape).named(name)).ok()
    }

    /// Whether the result may have padding of its first operand among its elements: a part of a bounded
    /// dimension has a static size.
    fn shows_padding(&self, op: &Op, operands: &[InstrId], result: &Shape) -> bool {
        let Some(result) = result.as_array() else { return false };
        let bounded =
            |array: &ArrayShape, d: usize| array.kinds().get(d) == Some(&DimKind::Bounded);
        match op {
            Op::Slice(_) | Op::DynamicSlice(_) => {
                let operand = self.array(operands[0]);
                (0..result.rank()).any(|d| bounded(operand, d) && !bounded(result, d))
            }
            // Numbers of rows are clamped to the bound.
            Op::Gather(_) => bounded(self.array(operands[0]), 0),
            _ => false,
        }
    }

    /// Adds an operation whose result is to be chosen from.
    fn keep(&mut self, op: impl Into<Op>, operands: &[InstrId]) -> Option<InstrId> {
        let id = self.add(op, operands)?;
        self.values.push(id);
        Some(id)
    }

    fn array(&self, id: InstrId) -> &ArrayShape {
        self.main.instr(id).shape.as_array().expect("values are arrays")
    }

    /// Some value, mostly a late one.
    fn choose(&mut self) -> InstrId {
        let count = self.values.len();
        let back = self.below(count).min(self.below(count));
        self.values[count - 1 - back]
    }

    /// A value of this shape, if there is another.
    fn like(&mut self, id: InstrId) -> InstrId {
        let shape = self.array(id).clone();
        let same = |&other: &InstrId| self.array(other).same(&shape) && other != id;
        let found: Vec<InstrId> = self.values.iter().copied().filter(same).collect();
        match found.is_empty() {
            true => id,
            false => found[self.below(found.len())],
        }
    }

    fn number(&mut self, value: i32) -> InstrId {
        self.add(Constant::new(Array::scalar(value)), &[]).expect("a constant")
    }

    fn parameter(&mut self) {
        let rank = [1, 1, 2, 2, 3][self.below(5)];
        let (mut dims, mut kinds) = (Vec::new(), Vec::new());
        for _ in 0..rank {
            let which = self.below(2);
            let bound = self.bounds[which];
            let is_bounded = self.chance(2, 3);
            dims.push(if is_bounded || self.chance(1, 2) {
                bound
            } else {
                [1, 2, 4][self.below(3)]
            });
            kinds.push(if is_bounded { DimKind::Bounded } else { DimKind::Static });
        }
        let shape = ArrayShape::with_kinds(ElementType::S32, dims, kinds).expect("a small array");
        let number = self.params.len();
        let op = Parameter { number, shape: Shape::Array(shape.clone()) };
        if self.keep(op, &[]).is_some() {
            self.params.push(shape);
        }
    }

    /// Arguments: small numbers, behind them large ones, which nobody should see.
    fn arguments(&mut self) -> Vec<Literal> {
        let of_bound: Vec<usize> =
            self.bounds.clone().into_iter().map(|b| self.below(b + 1)).collect();
        let params = self.params.clone();
        let argument = |shape: ArrayShape, writer: &mut Self| {
            let sizes = shape.dims_and_kinds().map(|(dim, kind)| match kind {
                DimKind::Bounded if writer.chance(1, 30) => writer.below(dim + 1),
                DimKind::Bounded => {
                    let which = writer.bounds.iter().position(|&bound| bound == dim);
                    which.map_or(dim, |which| of_bound[which])
                }
                _ => dim,
            });
            let sizes: Vec<usize> = sizes.collect();
            let mut points = IndexIter::new(shape.dims());
            let mut values = Vec::new();
            while let Some(point) = points.next_point() {
                let is_there = point.iter().zip(&sizes).all(|(&index, &size)| index < size);
                values.push(if is_there { writer.below(9) as i32 - 4 } else { 1 << 20 });
            }
            let data = <i32 as helio::ir::types::Native>::wrap(values);
            let array = Array::from_data(shape, data).and_then(|array| array.with_sizes(sizes));
            Literal::Array(array.expect("as many values as the shape has"))
        };
        params.into_iter().map(|shape| argument(shape, self)).collect()
    }

    /// What nothing else uses.
    fn unused(&self) -> Vec<InstrId> {
        let mut used = vec![false; self.main.instrs().len()];
        let mut results = Vec::new();
        for id in self.main.ids().rev() {
            if !used[id.index()] && self.values.contains(&id) {
                results.push(id);
                used[id.index()] = true;
            }
            if used[id.index()] {
                let operands = &self.main.instr(id).operands;
                operands.iter().for_each(|operand| used[operand.index()] = true);
            }
        }
        results
    }

    /// The program with these results.
    fn module(&self, results: impl FnOnce(&Self) -> Vec<InstrId>) -> Module {
        let (mut module, mut main) = (self.module.clone(), self.main.clone());
        let results = results(self);
        let shapes = results.iter().map(|&id| main.instr(id).shape.clone());
        let shape = Shape::Tuple(shapes.collect());
        let root = Instr::new(Tuple, &results[..], shape).named("results");
        let root = main.push(root).expect("a tuple");
        main.set_root(root);
        let entry = module.push(main).expect("a computation");
        module.set_entry(entry);
        module
    }

    /// Tries an instruction.
    fn step(&mut self) {
        let x = self.choose();
        let shape = self.array(x).clone();
        let rank = shape.rank();
        match self.below(30) {
            0 if self.params.len() < 4 => self.parameter(),
            0..=3 => {
                let y = self.like(x);
                let ops = [
                    BinaryOp::Add,
                    BinaryOp::Subtract,
                    BinaryOp::Maximum,
                    BinaryOp::Xor,
                    BinaryOp::Minimum,
                ];
                let op = ops[self.below(ops.len())];
                self.keep(op, &[x, y]);
            }
            4 => drop(self.keep(UnaryOp::Negate, &[x])),
            5 => drop(self.select(x)),
            6 => drop(self.bounded_again(x, &shape)),
            7 => drop(self.broadcast(x, &shape)),
            8 => {
                let mut permutation: Vec<usize> = (0..rank).collect();
                (1..rank).rev().for_each(|i| permutation.swap(i, self.below(i + 1)));
                self.keep(Transpose { permutation }, &[x]);
            }
            9 => {
                let dimensions = (0..rank).filter(|_| self.chance(1, 2)).collect();
                self.keep(Reverse { dimensions }, &[x]);
            }
            10..=11 => drop(self.concatenate(x)),
            12..=13 => drop(self.slice(x, &shape)),
            14..=15 => drop(self.pad(x, rank)),
            16 => drop(self.dynamic_slice(x, &shape)),
            17..=18 => drop(self.reshape(x, &shape)),
            19..=21 => drop(self.reduce(x, rank)),
            22 => drop(self.window(x, rank)),
            23 => drop(self.dot(x)),
            24 => drop(self.sort(x, rank)),
            25 => drop(self.gather(x, rank)),
            26 => drop(self.scatter(x)),
            27 => drop(self.control(x)),
            28 => drop(self.convolution(x)),
            _ if rank > 0 => {
                let size = self.keep(GetDimensionSize { dimension: 0 }, &[x]);
                if let Some(size) = size {
                    let broadcast = Broadcast { shape: one_line(3), dimensions: Vec::new() };
                    self.keep(broadcast, &[size]);
                }
            }
            _ => {}
        }
    }

    fn select(&mut self, x: InstrId) -> Option<InstrId> {
        let (y, z) = (self.like(x), self.like(x));
        let is_less = self.add(Compare::new(Direction::Lt), &[x, y])?;
        self.keep(Select, &[is_less, z, x])
    }

    /// A lesser size of a dimension, or one above the bound.
    fn bounded_again(&mut self, x: InstrId, shape: &ArrayShape) -> Option<InstrId> {
        let d = self.below(shape.rank());
        let bound = *shape.dims().get(d)?;
        if self.chance(1, 30) {
            let size = self.number(bound as i32 + 1);
            return self.keep(SetDimensionSize { dimension: d }, &[x, size]);
        }
        let other = match self.chance(1, 2) {
            true => {
                let size = self.below(bound + 1) as i32;
                self.number(size)
            }
            false => {
                let other = self.choose();
                let dimension = self.below(self.array(other).rank());
                self.add(GetDimensionSize { dimension }, &[other])?
            }
        };
        // Beyond the size lies anything.
        let size = self.add(GetDimensionSize { dimension: d }, &[x])?;
        let size = self.add(BinaryOp::Minimum, &[size, other])?;
        self.keep(SetDimensionSize { dimension: d }, &[x, size])
    }

    fn broadcast(&mut self, x: InstrId, shape: &ArrayShape) -> Option<InstrId> {
        let at = self.below(shape.rank() + 1);
        let (mut dims, mut kinds) = (shape.dims().to_vec(), shape.kinds().to_vec());
        kinds.resize(dims.len(), DimKind::Static);
        dims.insert(at, [1, 2, 5][self.below(3)]);
        kinds.insert(at, DimKind::Static);
        let shape = ArrayShape::with_kinds(shape.element(), dims, kinds).ok()?;
        let dimensions = (0..shape.rank()).filter(|&d| d != at).collect();
        self.keep(Broadcast { shape, dimensions }, &[x])
    }

    fn concatenate(&mut self, x: InstrId) -> Option<InstrId> {
        let (y, z) = (self.choose(), self.like(x));
        let dimension = self.below(self.array(x).rank());
        self.keep(Concatenate { dimension }, &[x, y, z])
            .or_else(|| self.keep(Concatenate { dimension }, &[x, z, x]))
    }

    fn slice(&mut self, x: InstrId, shape: &ArrayShape) -> Option<InstrId> {
        let (mut starts, mut limits, mut strides) = (Vec::new(), Vec::new(), Vec::new());
        for &dim in shape.dims() {
            let is_whole = self.chance(1, 2);
            let start = if is_whole { 0 } else { self.below(dim + 1) };
            starts.push(start);
            limits.push(if is_whole { dim } else { start + self.below(dim - start + 1) });
            strides.push([1, 1, 2, 3][self.below(4)]);
        }
        self.keep(Slice { starts, limits, strides }, &[x])
    }

    fn pad(&mut self, x: InstrId, rank: usize) -> Option<InstrId> {
        let dims = (0..rank).map(|_| PadDim {
            low: self.below(5) as i64 - 2,
            high: self.below(5) as i64 - 2,
            interior: [0, 0, 1, 2][self.below(4)],
        });
        let dims = dims.collect();
        let value = self.number(7);
        self.keep(Pad { dims }, &[x, value])
    }

    /// A box at a place that a size says, and the box written elsewhere.
    fn dynamic_slice(&mut self, x: InstrId, shape: &ArrayShape) -> Option<InstrId> {
        let sizes: Vec<usize> =
            shape.dims().iter().map(|&dim| dim - self.below(2).min(dim)).collect();
        let other = self.choose();
        let dimension = self.below(self.array(other).rank());
        let start = self.add(GetDimensionSize { dimension }, &[other])?;
        let starts = vec![start; shape.rank()];
        let with =
            |first: &[InstrId]| -> Vec<InstrId> { first.iter().chain(&starts).copied().collect() };
        let taken = self.keep(DynamicSlice { sizes }, &with(&[x]))?;
        let into = self.like(x);
        self.keep(DynamicUpdateSlice, &with(&[into, taken]))
    }

    fn reshape(&mut self, x: InstrId, shape: &ArrayShape) -> Option<InstrId> {
        let mut dims = shape.dims().to_vec();
        let at = self.below(dims.len() + 1);
        match self.below(4) {
            0..=1 if at + 1 < dims.len() => dims[at] *= dims.remove(at + 1),
            2 if at < dims.len() && dims[at].is_multiple_of(2) => {
                dims[at] /= 2;
                let place = at + self.below(2);
                dims.insert(place, 2);
            }
            _ => dims.insert(at, 1),
        }
        let op = match Reshape::to_sizes(shape, &dims) {
            Ok(op) => op,
            Err(_) => {
                let kinds = dims.iter().map(|_| match self.chance(1, 2) {
                    true => DimKind::Bounded,
                    false => DimKind::Static,
                });
                let kinds = kinds.collect();
                Reshape { shape: ArrayShape::with_kinds(shape.element(), dims, kinds).ok()? }
            }
        };
        if self.chance(1, 3) {
            // To sizes at run time: all in one dimension.
            let mut count = self.number(1);
            for dimension in 0..shape.rank() {
                let size = self.add(GetDimensionSize { dimension }, &[x])?;
                count = self.add(BinaryOp::Multiply, &[count, size])?;
            }
            let kinds = vec![DimKind::Bounded, DimKind::Static];
            let line = vec![shape.element_count(), 1];
            let shape = ArrayShape::with_kinds(shape.element(), line, kinds).ok()?;
            let one = self.number(1);
            return self.keep(DynamicReshape { shape }, &[x, count, one]);
        }
        self.keep(op, &[x])
    }

    fn reduce(&mut self, x: InstrId, rank: usize) -> Option<InstrId> {
        let dimensions: Vec<usize> = (0..rank).filter(|_| self.chance(1, 2)).collect();
        if self.chance(1, 4) {
            let y = self.like(x);
            let (zero, one) = (self.number(0), self.number(1));
            let both = Reduce { dimensions, to_apply: self.pairs };
            let both = self.add(both, &[x, y, zero, one])?;
            self.keep(GetTupleElement { index: 0 }, &[both])?;
            return self.keep(GetTupleElement { index: 1 }, &[both]);
        }
        let which = self.below(self.folds.len());
        let (to_apply, init) = self.folds[which];
        let init = self.number(init);
        self.keep(Reduce { dimensions, to_apply }, &[x, init])
    }

    fn window(&mut self, x: InstrId, rank: usize) -> Option<InstrId> {
        // The last fold has no identity that is known.
        let which = self.below(self.folds.len() - 1);
        let (to_apply, init) = self.folds[which];
        let dims = (0..rank).map(|_| WindowDim {
            size: [1, 1, 2, 3][self.below(4)],
            stride: [1, 1, 2][self.below(3)],
            pad_low: self.below(3) as i64,
            pad_high: self.below(3) as i64 - 1,
            base_dilation: [1, 1, 1, 2][self.below(4)],
            window_dilation: [1, 1, 2][self.below(3)],
            reversal: false,
        });
        let window = Window { dims: dims.collect() };
        let init = self.number(init);
        self.keep(ReduceWindow { window, to_apply }, &[x, init])
    }

    /// Products of elements that are made small first.
    fn dot(&mut self, x: InstrId) -> Option<InstrId> {
        let y = self.choose();
        let [x, y] = [self.small(x, ElementType::F32)?, self.small(y, ElementType::F32)?];
        let (of_x, of_y) = (self.array(x).rank(), self.array(y).rank());
        let dims = DotDims {
            lhs_contracting: vec![self.below(of_x)],
            rhs_contracting: vec![self.below(of_y)],
            ..DotDims::default()
        };
        let dot = Dot { dims, element: ElementType::F32, precision: Vec::new(), algorithm: None };
        let found = self.add(dot, &[x, y])?;
        self.keep(Convert { element: ElementType::S32 }, &[found])
    }

    /// The elements within -8..8, as another type.
    fn small(&mut self, x: InstrId, element: ElementType) -> Option<InstrId> {
        let (low, high) = (self.number(-8), self.number(8));
        let clamped = self.add(Clamp, &[low, x, high])?;
        self.add(Convert { element }, &[clamped])
    }

    fn convolution(&mut self, x: InstrId) -> Option<InstrId> {
        let shape = self.array(x).clone();
        if shape.rank() != 3 {
            return None;
        }
        let x = self.small(x, ElementType::F32)?;
        let kernel = ArrayShape::of_sizes(ElementType::F32, &[2, shape.dims()[2], 3]).ok()?;
        let kernel = self.add(Iota { shape: kernel, dimension: 0 }, &[])?;
        let dims = ConvDims {
            input_batch: 0,
            input_spatial: vec![1],
            input_feature: 2,
            kernel_spatial: vec![0],
            kernel_input_feature: 1,
            kernel_output_feature: 2,
            output_batch: 0,
            output_spatial: vec![1],
            output_feature: 2,
        };
        let window = Window {
            dims: vec![WindowDim {
                size: 2,
                stride: 1 + self.below(2),
                pad_low: self.below(2) as i64,
                pad_high: self.below(2) as i64,
                ..WindowDim::default()
            }],
        };
        if shape.kinds().get(2) == Some(&DimKind::Bounded) {
            // The kernel would have to be as long.
            return None;
        }
        let convolution = Convolution {
            window,
            dims,
            feature_group_count: 1,
            batch_group_count: 1,
            element: ElementType::F32,
            precision: Vec::new(),
            algorithm: None,
        };
        let found = self.add(convolution, &[x, kernel])?;
        self.keep(Convert { element: ElementType::S32 }, &[found])
    }

    fn sort(&mut self, x: InstrId, rank: usize) -> Option<InstrId> {
        match self.below(3) {
            0 => {
                // As many elements there are, whatever the sizes.
                let (k, largest) = (1 + self.below(3), self.chance(1, 2));
                let mut dims = vec![PadDim::default(); rank];
                dims.last_mut()?.low = k as i64;
                let value = self.number(-1);
                let x = self.add(Pad { dims }, &[x, value])?;
                let found = self.add(TopK { k, largest }, &[x])?;
                self.keep(GetTupleElement { index: 0 }, &[found])?;
                self.keep(GetTupleElement { index: 1 }, &[found])
            }
            1 => {
                let y = self.like(x);
                let dimension = self.below(rank);
                let sort = Sort { dimension, is_stable: true, to_apply: self.less };
                let found = self.add(sort, &[x, y])?;
                self.keep(GetTupleElement { index: 1 }, &[found])
            }
            _ => None,
        }
    }

    /// Rows by number.
    fn gather(&mut self, x: InstrId, rank: usize) -> Option<InstrId> {
        let indices = self.choose();
        let of_indices = self.array(indices).rank();
        let mut slice_sizes = self.array(x).dims().to_vec();
        *slice_sizes.first_mut()? = 1;
        let dims = GatherDims {
            offset_dims: (of_indices..of_indices + rank - 1).collect(),
            collapsed_slice_dims: vec![0],
            start_index_map: vec![0],
            index_vector_dim: of_indices,
            ..GatherDims::default()
        };
        self.keep(Gather { dims, slice_sizes, indices_are_sorted: false }, &[x, indices])
    }

    /// Single elements added where a line of numbers says.
    fn scatter(&mut self, x: InstrId) -> Option<InstrId> {
        let (indices, into) = (self.like(x), self.choose());
        let rank = self.array(x).rank();
        if self.array(into).rank() != 1 {
            return None;
        }
        let dims = ScatterDims {
            inserted_window_dims: vec![0],
            scatter_dims_to_operand_dims: vec![0],
            index_vector_dim: rank,
            ..ScatterDims::default()
        };
        let scatter = Scatter {
            dims,
            indices_are_sorted: false,
            unique_indices: false,
            to_apply: self.folds[0].0,
        };
        self.keep(scatter, &[into, indices, x])
    }

    /// A loop that halves a size, or a choice between two arrays.
    fn control(&mut self, x: InstrId) -> Option<InstrId> {
        let shape = self.main.instr(x).shape.clone();
        if self.array(x).rank() == 0 {
            return None;
        }
        let is_loop = self.chance(1, 2);
        let number = self.module.computations().len();
        let state = Shape::Tuple(vec![Shape::scalar(ElementType::S32), shape.clone()]);
        let mut part = Part::new(&self.module, format!("part{number}"));
        let param = if is_loop { state } else { shape };
        let p = part.add(Parameter { number: 0, shape: param }, &[])?;
        let (count, mut x_in) = match is_loop {
            true => (
                Some(part.add(GetTupleElement { index: 0 }, &[p])?),
                part.add(GetTupleElement { index: 1 }, &[p])?,
            ),
            false => (None, p),
        };
        x_in = part.add(BinaryOp::Add, &[x_in, x_in])?;
        let size = part.add(GetDimensionSize { dimension: 0 }, &[x_in])?;
        let two = part.add(Constant::new(Array::scalar(2)), &[])?;
        let half = part.add(BinaryOp::Divide, &[size, two])?;
        let is_bounded = self.array(x).kinds().first() == Some(&DimKind::Bounded);
        if is_bounded {
            x_in = part.add(SetDimensionSize { dimension: 0 }, &[x_in, half])?;
        }
        let root = match count {
            Some(count) => {
                let one = part.add(Constant::new(Array::scalar(1)), &[])?;
                let less = part.add(BinaryOp::Subtract, &[count, one])?;
                part.add(Tuple, &[less, x_in])?
            }
            None => x_in,
        };
        let computation = part.finish(root);
        let body = self.module.push(computation).ok()?;
        if !is_loop {
            let mut same = Part::new(&self.module, format!("same{number}"));
            let shape = self.main.instr(x).shape.clone();
            let root = same.add(Parameter { number: 0, shape }, &[])?;
            let computation = same.finish(root);
            let same = self.module.push(computation).ok()?;
            let size = self.add(GetDimensionSize { dimension: 0 }, &[x])?;
            let two = self.number(2);
            let is_small = self.add(Compare::new(Direction::Lt), &[size, two])?;
            let branches = Conditional { branches: vec![same, body] };
            return self.keep(branches, &[is_small, x, x]);
        }
        let mut condition = Part::new(&self.module, format!("goes_on{number}"));
        let shape = self.module.computation(body).result_shape().clone();
        let p = condition.add(Parameter { number: 0, shape }, &[])?;
        let count = condition.add(GetTupleElement { index: 0 }, &[p])?;
        let zero = condition.add(Constant::new(Array::scalar(0)), &[])?;
        let root = condition.add(Compare::new(Direction::Gt), &[count, zero])?;
        let computation = condition.finish(root);
        let condition = self.module.push(computation).ok()?;
        let two = self.number(2);
        let state = self.add(Tuple, &[two, x])?;
        let found = self.add(While { condition, body }, &[state])?;
        self.keep(GetTupleElement { index: 1 }, &[found])
    }
}

fn one_line(count: usize) -> ArrayShape {
    ArrayShape::of_sizes(ElementType::S32, &[count]).expect("a small array")
}

/// A called computation as it grows.
struct Part<'m> {
    module: &'m Module,
    computation: Computation,
}

impl<'m> Part<'m> {
    fn new(module: &'m Module, name: String) -> Self {
        Part { module, computation: Computation::new(name) }
    }

    fn add(&mut self, op: impl Into<Op>, operands: &[InstrId]) -> Option<InstrId> {
        let op = op.into();
        let shapes: Vec<&Shape> =
            operands.iter().map(|&id| &self.computation.instr(id).shape).collect();
        let shape = op.infer(&InferCx { operands: &shapes, module: self.module }).ok()?;
        let name = format!("p{}", self.computation.instrs().len());
        self.computation.push(Instr::new(op, operands, shape).named(name)).ok()
    }

    fn finish(mut self, root: InstrId) -> Computation {
        self.computation.set_root(root);
        self.computation
    }
}

/// The computation of `count` scalars that these instructions make.
fn small(
    name: &str,
    count: usize,
    make: impl FnOnce(&mut Part<'_>, &[InstrId]) -> Option<InstrId>,
) -> Computation {
    let module = Module::new("none");
    let mut part = Part::new(&module, name.to_owned());
    let params = (0..count).map(|number| {
        let shape = Shape::scalar(ElementType::S32);
        part.add(Parameter { number, shape }, &[]).expect("a parameter")
    });
    let params: Vec<InstrId> = params.collect();
    let root = make(&mut part, &params).expect("operations of s32");
    part.finish(root)
}

/// One operation of two numbers.
fn scalar(name: &str, op: BinaryOp) -> Computation {
    small(name, 2, |part, params| part.add(op, params))
}

fn sum_of_bits() -> Computation {
    small("sum_of_bits", 2, |part, params| {
        let or = part.add(BinaryOp::Or, params)?;
        let and = part.add(BinaryOp::And, params)?;
        part.add(BinaryOp::Add, &[or, and])
    })
}

/// The sum of the one, and the greater of the other.
fn pairs() -> Computation {
    small("pairs", 4, |part, params| {
        let sum = part.add(BinaryOp::Add, &[params[0], params[2]])?;
        let most = part.add(BinaryOp::Maximum, &[params[1], params[3]])?;
        part.add(Tuple, &[sum, most])
    })
}

fn less() -> Computation {
    small("less", 4, |part, params| part.add(Compare::new(Direction::Lt), &params[..2]))
}
