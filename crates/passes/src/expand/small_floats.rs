//! Products of floats of 8 and fewer bits, as products of wider ones that have the same values.

use helio_ir::ops::Convert;
use helio_ir::{Computation, ElementType, Instr, InstrId, Op, Result, Shape};

use crate::draft::Draft;

/// Whether an instruction is a product of floats of 8 or fewer bits, or gives some.
pub(super) fn is_product(computation: &Computation, instr: &Instr) -> bool {
    let element = match &instr.op {
        Op::Dot(op) => op.element,
        Op::Convolution(op) => op.element,
        _ => return false,
    };
    let mut operands = instr.operands.iter().map(|&id| &computation.instr(id).shape);
    let has_small = |shape: &Shape| shape.as_array().is_some_and(|array| is_small(array.element()));
    is_small(element) || operands.any(has_small)
}

/// A product of numbers that are first converted to a type for which there are kernels.
pub(super) fn product(
    draft: &mut Draft<'_>,
    op: &Op,
    operands: &[InstrId],
) -> Result<Option<InstrId>> {
    let (element, algorithm) = match op {
        Op::Dot(op) => (op.element, &op.algorithm),
        Op::Convolution(op) => (op.element, &op.algorithm),
        _ => return Ok(None),
    };
    let types: Option<Vec<ElementType>> =
        operands.iter().map(|&id| draft.array(id).map(|array| array.element())).collect();
    let Some(types) = types.filter(|types| types.iter().chain([&element]).any(|&ty| is_small(ty)))
    else {
        return Ok(None);
    };
    // These say no more than that sums are formed in f32.
    let is_plain = |name: &str| name.starts_with("dot_any_f8_any_f8_f32");
    if !types.iter().all(|ty| ty.is_float()) || algorithm.as_deref().is_some_and(|a| !is_plain(a)) {
        return Ok(None);
    }
    let result = if is_small(element) { ElementType::F32 } else { element };
    let fits =
        |&ty: &ElementType| ty == ElementType::BF16 || is_small(ty) && ty != ElementType::F8E8M0FNU;
    let wide = if types.iter().chain([&result]).any(|&ty| ty == ElementType::F64) {
        ElementType::F64
    } else if types.iter().all(fits) {
        ElementType::BF16
    } else {
        ElementType::F32
    };
    let operands = operands.iter().zip(&types).map(|(&id, &ty)| match ty == wide {
        true => Ok(id),
        false => draft.add(Convert { element: wide }, &[id]),
    });
    let operands = operands.collect::<Result<Vec<_>>>()?;
    let op = match op.clone() {
        Op::Dot(op) => Op::from(helio_ir::ops::Dot { element: result, algorithm: None, ..*op }),
        Op::Convolution(op) => {
            Op::from(helio_ir::ops::Convolution { element: result, algorithm: None, ..*op })
        }
        other => other,
    };
    let product = draft.add(op, &operands)?;
    Ok(Some(match result == element {
        true => product,
        false => draft.add(Convert { element }, &[product])?,
    }))
}

fn is_small(ty: ElementType) -> bool {
    ty.is_float() && ty.bits() <= 8
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn products_of_small_floats() {
        check(
            "expand",
            "ENTRY e {
              x = f8e4m3fn[2,3] parameter(0)
              y = f8e5m2[3] parameter(1)
              d = f32[2] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}, algorithm=dot_any_f8_any_f8_f32
              c = f32[2] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}, algorithm=dot_f32_f32_f32
              ROOT t = (f32[2], f32[2]) tuple(d, c)
            }",
            "
            ENTRY e {
              x = f8e4m3fn[2,3] parameter(0)
              y = f8e5m2[3] parameter(1)
              convert = bf16[2,3] convert(x)
              convert.1 = bf16[3] convert(y)
              dot = f32[2] dot(convert, convert.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
              c = f32[2] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}, algorithm=dot_f32_f32_f32
              ROOT t = (f32[2], f32[2]) tuple(dot, c)
            }",
        );
        check(
            "expand",
            "ENTRY e {
              x = f8e4m3fn[2,3] parameter(0)
              y = f32[3] parameter(1)
              ROOT d = f8e4m3fn[2] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
            }",
            "
            ENTRY e {
              x = f8e4m3fn[2,3] parameter(0)
              y = f32[3] parameter(1)
              convert = f32[2,3] convert(x)
              dot = f32[2] dot(convert, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
              ROOT convert.1 = f8e4m3fn[2] convert(dot)
            }",
        );
    }
}
