//! Products of integers as wide as the lane.

use crate::kernel::{BinOp, Builder, Value};

/// The high half of the product of two unsigned numbers, by halves of the factors, whose products
/// fit the lane.
pub(crate) fn mulhi_unsigned(b: &mut Builder, x: Value, y: Value) -> Value {
    let lane = b.lane(x);
    let width = 4 * lane.bytes() as i64;
    let (half, mask) = (b.int(lane, width), b.int(lane, (1 << width) - 1));
    let multiply = if lane.bytes() == 8 { BinOp::MulWide } else { BinOp::Mul };
    let [x1, y1] = [x, y].map(|v| b.bin(BinOp::ShrL, v, half));
    let [x0, y0] = [x, y].map(|v| b.bin(BinOp::And, v, mask));
    let low = b.bin(multiply, x0, y0);
    let (cross, other) = (b.bin(multiply, x1, y0), b.bin(multiply, x0, y1));
    let top = b.bin(multiply, x1, y1);
    let carried = b.bin(BinOp::ShrL, low, half);
    let middle = b.add(cross, carried);
    let middle_low = b.bin(BinOp::And, middle, mask);
    let other = b.add(other, middle_low);
    let middle_high = b.bin(BinOp::ShrL, middle, half);
    let other_high = b.bin(BinOp::ShrL, other, half);
    let top = b.add(top, middle_high);
    b.add(top, other_high)
}
