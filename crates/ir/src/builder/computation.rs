//! Finished computations, which other builders call.

use std::fmt;
use std::sync::Arc;

use super::XlaBuilder;
use super::state::ComputationKey;
use crate::ops::Direction;
use crate::text::attrs::Scan;
use crate::{BinaryOp, CompId, ElementType, Module, ProgramShape, Result, Shape, Verified};

/// A module whose entry computation is meant: to run it, or to pass it to an operation that calls
/// computations. Cloning is cheap.
///
/// Passing the same computation to several operations of a builder copies it into the builder's
/// module once, also by way of other computations that call it.
#[derive(Clone)]
pub struct XlaComputation {
    module: Arc<Module>,
    /// One for each computation of the module.
    origins: Arc<[ComputationKey]>,
}

impl XlaComputation {
    pub(super) fn new(module: Arc<Module>, origins: Arc<[ComputationKey]>) -> Self {
        XlaComputation { module, origins }
    }

    pub(super) fn origin(&self, id: CompId) -> ComputationKey {
        self.origins[id.index()]
    }

    /// The entry computation of a module, however it was made.
    pub fn from_module(module: Verified<Module>) -> Self {
        let module = module.into_inner();
        let origins = module.ids().map(|_| ComputationKey::new()).collect();
        XlaComputation { module: Arc::new(module), origins }
    }

    /// A computation of two scalars: `(T[], T[]) -> U[]`, as reductions want them. Errors: the
    /// operation's rules for the element type. Source: XLA's `CreateScalarAddComputation` and kin.
    ///
    /// ```
    /// # use helio_ir::{BinaryOp, ElementType, builder::XlaComputation};
    /// let add = XlaComputation::scalar(BinaryOp::Add, ElementType::S32)?;
    /// assert_eq!(add.program_shape().to_string(), "(s32[], s32[])->s32[]");
    /// # Ok::<(), helio_ir::Error>(())
    /// ```
    #[track_caller]
    pub fn scalar(op: BinaryOp, element: ElementType) -> Result<Self> {
        let b = XlaBuilder::new(&format!("{}_{element}", op.name()));
        let [x, y] = [0, 1].map(|number| b.parameter(number, Shape::scalar(element), ""));
        b.build_with_root(x.binary(op, y))
    }

    /// A computation that compares two scalars, floats by their total order:
    /// `(T[], T[]) -> pred[]`. Errors: the rules of `compare`. Source: XLA's
    /// `CreateScalarLtComputation` and kin.
    #[track_caller]
    pub fn scalar_compare(direction: Direction, element: ElementType) -> Result<Self> {
        let b = XlaBuilder::new(&format!("compare_{direction}_{element}"));
        let [x, y] = [0, 1].map(|number| b.parameter(number, Shape::scalar(element), ""));
        b.build_with_root(x.compare_total_order(direction, y))
    }

    /// The thread that the computation is for, if not the main one.
    pub(super) fn execution_thread(&self) -> Result<Option<String>> {
        let mut attributes = self.module.entry().attributes.iter();
        let thread = attributes.find(|(name, _)| name == "execution_thread");
        thread.map(|(_, value)| Scan::new(value).string()).transpose()
    }

    /// The module.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// The module, to keep.
    pub fn into_module(self) -> Module {
        Arc::unwrap_or_clone(self.module)
    }

    /// The name of the entry computation.
    pub fn name(&self) -> &str {
        &self.module.entry().name
    }

    /// What the computation takes and gives.
    pub fn program_shape(&self) -> ProgramShape {
        self.module.entry().program_shape()
    }
}

impl AsRef<XlaComputation> for XlaComputation {
    fn as_ref(&self) -> &XlaComputation {
        self
    }
}

impl fmt::Debug for XlaComputation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "XlaComputation({}: {})", self.name(), self.program_shape())
    }
}
