//! Which operations on windows (`reduce-window`, `select-and-scatter`) the runtime's kernels
//! compute, and how they are called.

use std::ops::AddAssign;

use helio_ir::ops::{BinaryOp, Direction, Order};
use helio_ir::{ArrayShape, CompId, ElementType, InstrId, Module, Op, ops};
use helio_passes::recognize;
use helio_runtime::kernels::bytes::{bytes_of, cast, cast_mut};
use helio_runtime::kernels::number::{Fold, NumberType};
use helio_runtime::kernels::sort::PAIRS;
use helio_runtime::kernels::window::{self, Select, WindowDim};

use super::{Bound, Codes, Failed, InstrShapes, Reducer};

pub(super) fn number_type(element: ElementType) -> Option<NumberType> {
    Some(match element {
        ElementType::S8 => NumberType::I8,
        ElementType::S16 => NumberType::I16,
        ElementType::S32 => NumberType::I32,
        ElementType::S64 => NumberType::I64,
        ElementType::Pred | ElementType::U8 => NumberType::U8,
        ElementType::U16 => NumberType::U16,
        ElementType::U32 => NumberType::U32,
        ElementType::U64 => NumberType::U64,
        ElementType::F16 => NumberType::F16,
        ElementType::BF16 => NumberType::BF16,
        ElementType::F32 => NumberType::F32,
        ElementType::F64 => NumberType::F64,
        _ => return None,
    })
}

/// What a reducer folds with, if elements, accumulators and its parameters are of this type.
pub(super) fn fold(module: &Module, reducer: CompId, element: ElementType) -> Option<Fold> {
    Some(match (recognize::reducer(module, reducer, element)?, element.is_pred()) {
        // `pred` is 0 and 1.
        (BinaryOp::And | BinaryOp::Minimum | BinaryOp::Multiply, true) => Fold::Min,
        (BinaryOp::Or | BinaryOp::Maximum | BinaryOp::Add, true) => Fold::Max,
        (BinaryOp::Add, false) => Fold::Add,
        (BinaryOp::Multiply, false) => Fold::Mul,
        (BinaryOp::Maximum, false) => Fold::Max,
        (BinaryOp::Minimum, false) => Fold::Min,
        _ => return None,
    })
}

/// The dimensions of a window over `base`, at as many positions as `positions` has elements.
fn dims(window: &ops::Window, base: &ArrayShape, positions: &ArrayShape) -> Vec<WindowDim> {
    let sizes = base.dims().iter().zip(positions.dims());
    let dims = window.dims.iter().zip(sizes);
    dims.map(|(dim, (&base, &positions))| WindowDim {
        size: dim.size,
        stride: dim.stride,
        pad_low: dim.pad_low,
        window_dilation: dim.window_dilation,
        base_dilation: dim.base_dilation,
        base,
        positions,
    })
    .collect()
}

pub(super) fn reduce_window(
    site: &InstrShapes<'_>,
    op: &ops::ReduceWindow,
    code: &mut Codes<'_>,
) -> Option<Bound> {
    fold_window(site, op).or_else(|| fold_by_code(site, op, code))
}

/// By a reducer that is known.
fn fold_window(site: &InstrShapes<'_>, op: &ops::ReduceWindow) -> Option<Bound> {
    let ([operand, init], [result]) = (&site.operands[..], &site.results[..]) else { return None };
    if op.window.dims.iter().any(|dim| dim.reversal) || init.element() != operand.element() {
        return None;
    }
    let element = operand.element();
    let fold = fold(site.module, op.to_apply, element)?;
    let ty = number_type(element.real_part())?;
    let dims = dims(&op.window, operand, result);
    if element.is_complex() {
        return if fold == Fold::Add { complex_sums(dims, ty) } else { None };
    }
    let plan = window::ReduceWindow::new(&dims, ty, fold)?;
    Some(Bound::new("reduce-window", move |inputs, outputs, threads| {
        plan.run(inputs[0], inputs[1], outputs[0], threads);
    }))
}

/// By a reducer that can be generated code, of any number of arrays.
fn fold_by_code(
    site: &InstrShapes<'_>,
    op: &ops::ReduceWindow,
    code: &mut Codes<'_>,
) -> Option<Bound> {
    let arrays = site.results.len();
    let elements = |shapes: &[&ArrayShape]| shapes.iter().map(|s| s.element()).collect::<Vec<_>>();
    let (operands, inits) = site.operands.split_at_checked(arrays)?;
    let types = elements(operands);
    if elements(inits) != types || elements(&site.results) != types {
        return None;
    }
    let dims = dims(&op.window, operands.first()?, site.results.first()?);
    let sizes = types.iter().map(|element| element.size_bytes()).collect();
    let may_reorder = !recognize::is_ordered(site.module, op.to_apply);
    let plan = window::FoldWindow::new(&dims, sizes, may_reorder)?;
    let reducer = Reducer::new(site.module, op.to_apply, operands, code)?;
    Some(Bound::fallible("reduce-window by code", move |inputs, outputs, threads| {
        let (from, inits) = inputs.split_at(arrays);
        reducer.run(|fold| plan.run(fold, from, inits, outputs, threads))
    }))
}

/// Sums of complex numbers: those of their parts, which are neighbours like any others.
fn complex_sums(mut dims: Vec<WindowDim>, ty: NumberType) -> Option<Bound> {
    let parts = WindowDim {
        size: 1,
        stride: 1,
        pad_low: 0,
        window_dilation: 1,
        base_dilation: 1,
        base: 2,
        positions: 2,
    };
    dims.push(parts);
    let plan = window::ReduceWindow::new(&dims, ty, Fold::Add)?;
    Some(Bound::new("reduce-window", move |inputs, outputs, threads| {
        let (re, im) = inputs[1].split_at(inputs[1].len() / 2);
        if re == im {
            return plan.run(inputs[0], re, outputs[0], threads);
        }
        // The parts of the initial value differ, so sums begin with what changes nothing, and it is
        // added afterwards.
        match ty {
            NumberType::F32 => {
                plan.run(inputs[0], bytes_of(&[-0.0_f32]), outputs[0], threads);
                add::<f32>(cast(inputs[1]), cast_mut(outputs[0]));
            }
            _ => {
                plan.run(inputs[0], bytes_of(&[-0.0_f64]), outputs[0], threads);
                add::<f64>(cast(inputs[1]), cast_mut(outputs[0]));
            }
        }
    }))
}

/// Adds a complex number to others.
fn add<T: Copy + AddAssign>(number: &[T], to: &mut [T]) {
    for (to, &part) in to.iter_mut().zip(number.iter().cycle()) {
        *to += part;
    }
}

/// Whether all parameters of a computation are scalars of this type.
fn takes(module: &Module, id: CompId, element: ElementType) -> bool {
    let params = module.computation(id).program_shape().params;
    params.iter().all(|param| param.as_array().is_some_and(|array| array.element() == element))
}

/// When the left of two elements is selected.
fn select(module: &Module, id: CompId) -> Option<Select> {
    let computation = module.computation(id);
    let root = computation.instr(computation.root());
    let Op::Compare(compare) = &root.op else { return None };
    let param = |id: InstrId| match &computation.instr(id).op {
        Op::Parameter(param) => Some(param.number),
        _ => None,
    };
    let params = [param(root.operands[0])?, param(root.operands[1])?];
    let element = computation.instr(root.operands[0]).shape.as_array()?.element();
    if compare.order == Order::Total && element.is_float() {
        return None;
    }
    Some(match (compare.direction, params) {
        (Direction::Ge, [0, 1]) | (Direction::Le, [1, 0]) => Select::Ge,
        (Direction::Gt, [0, 1]) | (Direction::Lt, [1, 0]) => Select::Gt,
        (Direction::Le, [0, 1]) | (Direction::Ge, [1, 0]) => Select::Le,
        (Direction::Lt, [0, 1]) | (Direction::Gt, [1, 0]) => Select::Lt,
        _ => return None,
    })
}

pub(super) fn select_and_scatter(
    site: &InstrShapes<'_>,
    op: &ops::SelectAndScatter,
    code: &mut Codes<'_>,
) -> Option<Bound> {
    let [operand, source, init] = site.operands[..] else { return None };
    let element = operand.element();
    let is_uniform = [source.element(), init.element()] == [element; 2]
        && takes(site.module, op.select, element);
    if !is_uniform || op.window.dims.iter().any(|dim| dim.reversal) {
        return None;
    }
    select_known(site, op).or_else(|| select_by_code(site, op, code))
}

/// By functions that are known.
fn select_known(site: &InstrShapes<'_>, op: &ops::SelectAndScatter) -> Option<Bound> {
    let [operand, source, _] = site.operands[..] else { return None };
    let ty = number_type(operand.element())?;
    let select = select(site.module, op.select)?;
    let fold = fold(site.module, op.scatter, operand.element())?;
    let window = dims(&op.window, operand, source);
    let plan = window::SelectAndScatter::new(&window, ty, select, fold)?;
    Some(Bound::new("select-and-scatter", move |inputs, outputs, threads| {
        plan.run(inputs[0], inputs[1], inputs[2], outputs[0], threads);
    }))
}

/// By functions that can be generated code.
fn select_by_code(
    site: &InstrShapes<'_>,
    op: &ops::SelectAndScatter,
    code: &mut Codes<'_>,
) -> Option<Bound> {
    let [operand, source, _] = site.operands[..] else { return None };
    let window = dims(&op.window, operand, source);
    let plan = window::SelectByCode::new(&window, operand.element().size_bytes())?;
    let select = code.scalar(site.module, op.select, PAIRS)?;
    let reducer = Reducer::new(site.module, op.scatter, &[operand], code)?;
    let scratch_bytes = plan.scratch_bytes();
    let bound = Bound::fallible("select-and-scatter by code", move |inputs, outputs, threads| {
        let ([operand, source, init], [to, scratch]) = (inputs, outputs) else { return Ok(()) };
        let failed = Failed::default();
        let stays = |count: usize, pairs: [&[u8]; 2], stays: &mut [u8]| {
            failed.note(select.call(count, |param| pairs[param], &mut [stays]));
        };
        reducer.run(|fold| {
            plan.run((&stays, fold), (operand, source, init), to, scratch, threads);
        })?;
        failed.outcome()
    });
    Some(bound.with_scratch(scratch_bytes))
}
