//! What indices are multiples of, which says which addresses are aligned.

use crate::kernel::{Block, IndexOp, Inst, Kernel};

/// For each index value, a number that it is a multiple of whenever it is computed; 0 is a multiple
/// of everything, 1 says nothing.
pub(super) fn multiples(kernel: &Kernel) -> Vec<i64> {
    let mut multiples = vec![1; kernel.types.len()];
    visit(kernel, &kernel.body, &mut multiples);
    multiples
}

/// (Values are defined before they are used.)
fn visit(kernel: &Kernel, block: &Block, multiples: &mut Vec<i64>) {
    for inst in &block.insts {
        match inst {
            Inst::Begin { dst } => multiples[dst.0 as usize] = kernel.grain,
            Inst::IndexConst { dst, value } => multiples[dst.0 as usize] = *value,
            Inst::Index { dst, op, a, b } => {
                let [a, b] = [a, b].map(|value| multiples[value.0 as usize]);
                multiples[dst.0 as usize] = match op {
                    IndexOp::Add | IndexOp::Sub | IndexOp::Min | IndexOp::Max => gcd(a, b),
                    IndexOp::Mul => a.checked_mul(b).unwrap_or(1),
                    // The low bits that are zero in one are in the result.
                    IndexOp::And => 1 << a.trailing_zeros().max(b.trailing_zeros()).min(62),
                    IndexOp::Div => 1,
                };
            }
            Inst::Loop { var, lo, step, body, .. } => {
                multiples[var.0 as usize] = gcd(multiples[lo.0 as usize], *step);
                visit(kernel, body, multiples);
            }
            Inst::While { cond, body, .. } => {
                visit(kernel, cond, multiples);
                visit(kernel, body, multiples);
            }
            _ => {}
        }
    }
}

fn gcd(mut a: i64, mut b: i64) -> i64 {
    while b != 0 {
        (a, b) = (b, a.wrapping_rem(b));
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Builder;

    #[test]
    fn sums_and_products_and_loops() {
        let mut b = Builder::new(16);
        b.set_range(1 << 20, 48);
        let (begin, end, six) = (b.begin(), b.end(), b.index(6));
        let product = b.index_op(IndexOp::Mul, begin, six);
        let sum = b.index_op(IndexOp::Add, begin, six);
        let mask = b.index(-64);
        let whole = b.index_op(IndexOp::And, end, mask);
        let zero = b.index(0);
        let mut vars = Vec::new();
        for lo in [zero, begin, six] {
            b.for_loop(lo, end, 64, &[], |_, var, _| {
                vars.push(var);
                Vec::new()
            });
        }
        let kernel = b.finish();
        let multiples = multiples(&kernel);
        let of = |value: crate::kernel::Value| multiples[value.0 as usize].abs();
        assert_eq!([begin, end, product, sum, whole].map(of), [48, 1, 288, 6, 64]);
        assert_eq!(vars.into_iter().map(of).collect::<Vec<_>>(), [64, 16, 2]);
    }
}
