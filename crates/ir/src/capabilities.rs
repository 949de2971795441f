//! What kernels can compute, in HLO's terms.

use crate::{ElementType, Op};

/// What the kernels of a back end can compute.
///
/// Passes ask it which instructions may share a kernel, and lowering asks it again before it writes
/// one; neither knows for which processor. An answer depends on nothing but its arguments, so that
/// whatever is fused can be lowered.
pub trait Capabilities {
    /// Whether kernels have values of this element type, and so can load, move and store them.
    fn holds(&self, ty: ElementType) -> bool;

    /// Whether kernels can perform an element-wise operation, with its attributes, on elements of
    /// these types. False for operations that are not element-wise.
    fn supports(&self, op: &Op, operands: &[ElementType], result: ElementType) -> bool;
}
