//! The builder's methods for folds over dimensions and windows.

use super::window::{WindowSpec, padded_window};
use super::{Operand, Padding, XlaBuilder, XlaComputation, XlaOp, array, check, refs};
use crate::Error;
use crate::ops::{Reduce, ReduceWindow, SelectAndScatter, Window};

impl XlaOp {
    /// Folds dimensions away with a computation, beginning with `init`.
    ///
    /// Shapes: `T[D]`, `T[]`, a computation `(T[], T[]) -> T[]`, result `T[D without dimensions]`.
    /// The order of the fold is open, and `init` may enter more than once. Errors: the rules of
    /// `reduce`, `builder.C6`. Source: E1–E4 "Reduce"; for several arrays see
    /// [`XlaBuilder::reduce`].
    ///
    /// ```
    /// # use helio_ir::{BinaryOp, ElementType::F32, Shape, builder::{XlaBuilder, XlaComputation}};
    /// let add = XlaComputation::scalar(BinaryOp::Add, F32)?;
    /// let b = XlaBuilder::new("b");
    /// let x = b.parameter(0, Shape::array(F32, [4, 2, 3])?, "x");
    /// assert_eq!(x.reduce(0, &add, &[0, 1]).shape()?.to_string(), "f32[3]");
    /// # Ok::<(), helio_ir::Error>(())
    /// ```
    #[track_caller]
    pub fn reduce(
        &self,
        init: impl Operand,
        computation: &XlaComputation,
        dimensions: &[usize],
    ) -> XlaOp {
        self.builder.reduce(&[self], &[init.into_op(self)], computation, dimensions)
    }

    /// [`XlaOp::reduce`] of all dimensions, to a scalar. Source: XLA's `ReduceAll`.
    #[track_caller]
    pub fn reduce_all(&self, init: impl Operand, computation: &XlaComputation) -> XlaOp {
        let rank = check!(self.builder, self.array_shape()).rank();
        self.reduce(init, computation, &(0..rank).collect::<Vec<_>>())
    }

    /// Folds each position of a window with a computation; the edges are padded in a word, with
    /// `init`.
    ///
    /// Shapes: `T[D]`, `T[]`, a computation `(T[], T[]) -> T[]`, result `T[positions]`. Errors: the
    /// rules of `reduce-window`, `builder.C4`, `builder.C5`, `builder.C6`. Source: E1–E4
    /// "ReduceWindow", in the order of arguments of E4.
    #[track_caller]
    pub fn reduce_window(
        &self,
        init: impl Operand,
        computation: &XlaComputation,
        window_dimensions: &[usize],
        window_strides: &[usize],
        padding: Padding,
    ) -> XlaOp {
        let init = init.into_op(self);
        self.builder.reduce_window(
            &[self],
            &[init],
            computation,
            window_dimensions,
            window_strides,
            padding,
        )
    }

    /// [`XlaOp::reduce_window`] with padding in numbers, and dilations. Errors: as there. Source:
    /// E4 "ReduceWindow" (dilations), XLA's `ReduceWindowWithGeneralPadding`.
    #[track_caller]
    pub fn reduce_window_with_general_padding(
        &self,
        init: impl Operand,
        computation: &XlaComputation,
        window: &WindowSpec<'_>,
    ) -> XlaOp {
        let init = init.into_op(self);
        self.builder.reduce_window_with_general_padding(&[self], &[init], computation, window)
    }

    /// Picks an element in each window, and combines into it the element of `source` for that
    /// window; begins with all elements `init`.
    ///
    /// Shapes: `T[D]`, `source: T[positions]`, `init: T[]`, `select: (T[], T[]) -> pred[]`, `scatter:
    /// (T[], T[]) -> T[]`, result `T[D]`. Errors: the rules of `select-and-scatter`, `builder.C4`,
    /// `builder.C5`. Source: E1–E4 "SelectAndScatter".
    #[expect(clippy::too_many_arguments, reason = "the arguments are the specification's")]
    #[track_caller]
    pub fn select_and_scatter(
        &self,
        select: &XlaComputation,
        window_dimensions: &[usize],
        window_strides: &[usize],
        padding: Padding,
        source: impl AsRef<XlaOp>,
        init: impl Operand,
        scatter: &XlaComputation,
    ) -> XlaOp {
        let shape = check!(self.builder, self.array_shape());
        let window = padded_window(&shape, window_dimensions, window_strides, padding);
        let window = check!(self.builder, window);
        self.select_and_scatter_window(select, window, source.as_ref(), init, scatter)
    }

    /// [`XlaOp::select_and_scatter`] with padding in numbers. Errors: as there. Source: XLA's
    /// `SelectAndScatterWithGeneralPadding`.
    #[track_caller]
    pub fn select_and_scatter_with_general_padding(
        &self,
        select: &XlaComputation,
        window: &WindowSpec<'_>,
        source: impl AsRef<XlaOp>,
        init: impl Operand,
        scatter: &XlaComputation,
    ) -> XlaOp {
        let window = check!(self.builder, window.window());
        self.select_and_scatter_window(select, window, source.as_ref(), init, scatter)
    }

    #[track_caller]
    fn select_and_scatter_window(
        &self,
        select: &XlaComputation,
        window: Window,
        source: &XlaOp,
        init: impl Operand,
        scatter: &XlaComputation,
    ) -> XlaOp {
        let init = init.into_op(self);
        let select = check!(self.builder, self.builder.import(select));
        let scatter = check!(self.builder, self.builder.import(scatter));
        self.builder.apply(SelectAndScatter { window, select, scatter }, &[self, source, &init])
    }
}

impl XlaBuilder {
    /// Folds dimensions of several arrays together.
    ///
    /// Shapes: `N` arrays `T_i[D]`, `N` scalars `T_i[]`, a computation from `N` values so far and
    /// `N` elements to `N` values (a tuple if `N` is not 1), result likewise. Errors: the rules of
    /// `reduce`. Source: E4 "Reduce", "Variadic Reduce".
    #[track_caller]
    pub fn reduce(
        &self,
        operands: &[impl AsRef<XlaOp>],
        inits: &[impl AsRef<XlaOp>],
        computation: &XlaComputation,
        dimensions: &[usize],
    ) -> XlaOp {
        let to_apply = check!(self, self.import(computation));
        let op = Reduce { dimensions: dimensions.to_vec(), to_apply };
        self.apply(op, &[refs(operands), refs(inits)].concat())
    }

    /// Folds each position of a window over several arrays together; the edges are padded in a
    /// word. Shapes: as for [`XlaBuilder::reduce`]. Errors: the rules of `reduce-window`,
    /// `builder.C4`, `builder.C5`. Source: E4 "ReduceWindow".
    #[track_caller]
    pub fn reduce_window(
        &self,
        operands: &[impl AsRef<XlaOp>],
        inits: &[impl AsRef<XlaOp>],
        computation: &XlaComputation,
        window_dimensions: &[usize],
        window_strides: &[usize],
        padding: Padding,
    ) -> XlaOp {
        let operands = refs(operands);
        let Some(&first) = operands.first() else {
            let detail = "reduce-window takes 1 array or more, found 0";
            return self.report_error(Error::rule("operands.C1", detail));
        };
        let base = check!(self, self.shape(first).and_then(array));
        let window = padded_window(&base, window_dimensions, window_strides, padding);
        let window = check!(self, window);
        let to_apply = check!(self, self.import(computation));
        self.apply(ReduceWindow { window, to_apply }, &[operands, refs(inits)].concat())
    }

    /// [`XlaBuilder::reduce_window`] with padding in numbers, and dilations. Errors: as there.
    /// Source: E4 "ReduceWindow" (dilations), XLA's `ReduceWindowWithGeneralPadding`.
    #[track_caller]
    pub fn reduce_window_with_general_padding(
        &self,
        operands: &[impl AsRef<XlaOp>],
        inits: &[impl AsRef<XlaOp>],
        computation: &XlaComputation,
        window: &WindowSpec<'_>,
    ) -> XlaOp {
        let window = check!(self, window.window());
        let to_apply = check!(self, self.import(computation));
        self.apply(ReduceWindow { window, to_apply }, &[refs(operands), refs(inits)].concat())
    }
}
