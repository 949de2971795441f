//! `scatter`: updates combined into an array at the places that an array of indices lists.

use super::Arity;
use super::check::{ensure_ascending, ensure_dims, ensure_unique, merge_dim};
use super::gather::{index_vector_size, indices_dims};
use super::reducer::{ensure_reducer, same_sizes};
use crate::text::attrs::{AttrReader, AttrWriter};
use crate::types::DimKind;
use crate::{ArrayShape, CompId, InferCx, OpDef, Result, Shape, ensure};

/// Combines slices into arrays at the places listed; operands: arrays, indices, updates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scatter {
    /// Which dimension means what.
    pub dims: ScatterDims,
    /// A promise; without effect on the value.
    pub indices_are_sorted: bool,
    /// A promise; without effect on the value.
    pub unique_indices: bool,
    /// From current values, then updates, to new values.
    pub to_apply: CompId,
}

/// Which dimension of operand, indices and updates means what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScatterDims {
    /// Dimensions of the updates that index into a window.
    pub update_window_dims: Vec<usize>,
    /// Dimensions of the operand (window size 1) that the updates leave out.
    pub inserted_window_dims: Vec<usize>,
    /// For each component of an index vector, the operand's dimension it is for.
    pub scatter_dims_to_operand_dims: Vec<usize>,
    /// Dimensions of the operand (window size 1) that go along with `scatter_indices_batching_dims`.
    pub input_batching_dims: Vec<usize>,
    /// Dimensions of the indices that go along with `input_batching_dims`.
    pub scatter_indices_batching_dims: Vec<usize>,
    /// The dimension of the indices that holds index vectors; its rank if they are scalars.
    pub index_vector_dim: usize,
}

impl ScatterDims {
    /// The dimensions of the operand, of this rank, that `update_window_dims` stand for, in their
    /// order.
    pub fn window_operand_dims(&self, operand_rank: usize) -> Vec<usize> {
        let left_out = |d: &usize| {
            self.inserted_window_dims.contains(d) || self.input_batching_dims.contains(d)
        };
        (0..operand_rank).filter(|d| !left_out(d)).collect()
    }

    /// The dimensions of the updates, of this rank, that number the windows: all but
    /// `update_window_dims`. They stand for [`indices_dims`] in this order.
    pub fn scatter_dims(&self, updates_rank: usize) -> Vec<usize> {
        (0..updates_rank).filter(|d| !self.update_window_dims.contains(d)).collect()
    }

    /// Errors: the numbers are wrong for an operand, indices and updates of these shapes.
    fn check(
        &self,
        operand: &ArrayShape,
        indices: &ArrayShape,
        updates: &ArrayShape,
    ) -> Result<()> {
        ensure!(
            self.index_vector_dim <= indices.rank(),
            "scatter.C6",
            "index_vector_dim={} must be at most {}, the number of dimensions of the indices \
             {indices}",
            self.index_vector_dim,
            indices.rank()
        );
        let scatter_dims = indices_dims(indices.rank(), self.index_vector_dim);
        let rank = scatter_dims.len() + self.update_window_dims.len();
        ensure!(
            updates.rank() == rank,
            "scatter.C7",
            "the updates {updates} must have {rank} dimensions: {} of the indices {indices} and \
             update_window_dims={:?}",
            scatter_dims.len(),
            self.update_window_dims
        );
        ensure_ascending("scatter.C8", "update_window_dims", &self.update_window_dims)?;
        ensure_dims("scatter.C9", "update_window_dims", &self.update_window_dims, updates)?;
        ensure_ascending("scatter.C10", "inserted_window_dims", &self.inserted_window_dims)?;
        ensure_dims("scatter.C11", "inserted_window_dims", &self.inserted_window_dims, operand)?;
        let named = self.update_window_dims.len()
            + self.inserted_window_dims.len()
            + self.input_batching_dims.len();
        ensure!(
            named == operand.rank(),
            "scatter.C12",
            "update_window_dims, inserted_window_dims and input_batching_dims are {named} \
             together; must be {}, the dimensions of operand 0, {operand}",
            operand.rank()
        );
        let vector = index_vector_size(indices, self.index_vector_dim);
        let to_operand = &self.scatter_dims_to_operand_dims;
        ensure!(
            vector.is_none_or(|size| size == to_operand.len()),
            "scatter.C13",
            "scatter_dims_to_operand_dims={to_operand:?} must have an entry for each of the {} \
             components of an index vector in {indices}, dimension {}",
            vector.unwrap_or_default(),
            self.index_vector_dim
        );
        ensure_dims("scatter.C14", "scatter_dims_to_operand_dims", to_operand, operand)?;
        ensure_unique("scatter.C15", "scatter_dims_to_operand_dims", to_operand)?;
        self.check_batching(operand, indices)?;
        self.check_sizes(operand, indices, updates)
    }

    /// Errors: the sizes of the updates do not fit the operand or the indices.
    fn check_sizes(
        &self,
        operand: &ArrayShape,
        indices: &ArrayShape,
        updates: &ArrayShape,
    ) -> Result<()> {
        let scatter_dims = indices_dims(indices.rank(), self.index_vector_dim);
        let window_dims = self.window_operand_dims(operand.rank());
        for (&u, o) in self.update_window_dims.iter().zip(window_dims) {
            let ((size, _), (limit, kind)) = (updates.dim(u), operand.dim(o));
            ensure!(
                kind == DimKind::Unbounded || size <= limit,
                "scatter.C25",
                "dimension {u} of the updates {updates} must be at most {limit}, the size of \
                 dimension {o} of {operand}"
            );
        }
        for (u, i) in self.scatter_dims(updates.rank()).into_iter().zip(scatter_dims) {
            ensure!(
                merge_dim(updates.dim(u), indices.dim(i)).is_some(),
                "scatter.C26",
                "dimension {u} of the updates {updates} must have the size of dimension {i} of the \
                 indices {indices}"
            );
        }
        Ok(())
    }

    /// Errors: the lists of batching dimensions do not fit each other or the operands.
    fn check_batching(&self, operand: &ArrayShape, indices: &ArrayShape) -> Result<()> {
        let (of_operand, of_indices) =
            (&self.input_batching_dims, &self.scatter_indices_batching_dims);
        ensure!(
            of_operand.len() == of_indices.len(),
            "scatter.C16",
            "input_batching_dims={of_operand:?} and scatter_indices_batching_dims={of_indices:?} \
             must have the same length"
        );
        ensure_ascending("scatter.C17", "input_batching_dims", of_operand)?;
        ensure_dims("scatter.C18", "input_batching_dims", of_operand, operand)?;
        ensure_dims("scatter.C19", "scatter_indices_batching_dims", of_indices, indices)?;
        ensure_unique("scatter.C20", "scatter_indices_batching_dims", of_indices)?;
        for (rule, name, list) in [
            ("scatter.C21", "inserted_window_dims", &self.inserted_window_dims),
            ("scatter.C22", "scatter_dims_to_operand_dims", &self.scatter_dims_to_operand_dims),
        ] {
            let both = list.iter().find(|d| of_operand.contains(d));
            ensure!(
                both.is_none(),
                rule,
                "{name}={list:?} and input_batching_dims={of_operand:?} must have no dimension in \
                 common"
            );
        }
        ensure!(
            !of_indices.contains(&self.index_vector_dim),
            "scatter.C23",
            "scatter_indices_batching_dims={of_indices:?} must not have index_vector_dim={}",
            self.index_vector_dim
        );
        for (&o, &i) in of_operand.iter().zip(of_indices) {
            ensure!(
                merge_dim(operand.dim(o), indices.dim(i)).is_some(),
                "scatter.C24",
                "batching dimensions {o} of operand 0, {operand}, and {i} of the indices {indices} \
                 must have the same size"
            );
        }
        Ok(())
    }
}

impl OpDef for Scatter {
    const OPCODE: &'static str = "scatter";
    const ARITY: Arity = Arity::AtLeast(3);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let operands = cx.operands.len();
        ensure!(
            !operands.is_multiple_of(2),
            "scatter.C1",
            "there must be as many updates as arrays, and indices between them; {operands} \
             operands is an even number"
        );
        let arrays = cx.arrays("scatter.C2")?;
        let count = operands / 2;
        let (inputs, rest) = arrays.split_at(count);
        let (indices, updates) = (rest[0], &rest[1..]);
        for (rule, list, offset) in [("scatter.C3", inputs, 0), ("scatter.C4", updates, count + 1)]
        {
            for (i, array) in list.iter().enumerate() {
                ensure!(
                    same_sizes(array, list[0]),
                    rule,
                    "operand {} must have the sizes of operand {offset}, {}; is {array}",
                    offset + i,
                    list[0]
                );
            }
        }
        ensure!(
            indices.element().is_integer(),
            "scatter.C5",
            "operand {count}, the indices, must hold integers, is {indices}"
        );
        self.dims.check(inputs[0], indices, updates[0])?;
        let elements = |list: &[&ArrayShape]| list.iter().map(|a| a.element()).collect::<Vec<_>>();
        ensure_reducer(cx, self.to_apply, &elements(inputs), &elements(updates))?;
        let mut results: Vec<Shape> =
            inputs.iter().map(|&input| Shape::Array(input.clone().without_layout())).collect();
        Ok(if count == 1 { results.remove(0) } else { Shape::Tuple(results) })
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        let dims = ScatterDims {
            update_window_dims: attrs.needed("update_window_dims", AttrReader::sizes)?,
            inserted_window_dims: attrs.needed("inserted_window_dims", AttrReader::sizes)?,
            scatter_dims_to_operand_dims: attrs
                .needed("scatter_dims_to_operand_dims", AttrReader::sizes)?,
            input_batching_dims: attrs.sizes("input_batching_dims")?.unwrap_or_default(),
            scatter_indices_batching_dims: attrs
                .sizes("scatter_indices_batching_dims")?
                .unwrap_or_default(),
            index_vector_dim: attrs.needed("index_vector_dim", AttrReader::size)?,
        };
        Ok(Scatter {
            dims,
            indices_are_sorted: attrs.flag("indices_are_sorted")?.unwrap_or(false),
            unique_indices: attrs.flag("unique_indices")?.unwrap_or(false),
            to_apply: attrs.needed("to_apply", AttrReader::computation)?,
        })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        let dims = &self.dims;
        attrs.list("update_window_dims", &dims.update_window_dims);
        attrs.list("inserted_window_dims", &dims.inserted_window_dims);
        attrs.list("scatter_dims_to_operand_dims", &dims.scatter_dims_to_operand_dims);
        attrs.list_unless_empty("input_batching_dims", &dims.input_batching_dims);
        attrs.list_unless_empty(
            "scatter_indices_batching_dims",
            &dims.scatter_indices_batching_dims,
        );
        attrs.put("index_vector_dim", dims.index_vector_dim);
        attrs.flag("indices_are_sorted", self.indices_are_sorted);
        attrs.flag("unique_indices", self.unique_indices);
        attrs.computation("to_apply", self.to_apply);
    }

    calls!(to_apply);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{C0, infer_in, module};

    fn rows() -> Scatter {
        Scatter {
            dims: ScatterDims {
                update_window_dims: vec![1],
                inserted_window_dims: vec![0],
                scatter_dims_to_operand_dims: vec![0],
                index_vector_dim: 1,
                ..ScatterDims::default()
            },
            indices_are_sorted: false,
            unique_indices: false,
            to_apply: C0,
        }
    }

    #[test]
    fn results() {
        let f32s = module(&[(&["f32[]", "f32[]"], "f32[]")]);
        let operands = ["f32[4,5]", "s32[3,1]", "f32[3,5]"];
        assert_eq!(infer_in(&f32s, rows(), &operands), "f32[4,5]");
        assert_eq!(infer_in(&f32s, rows(), &["f32[4,5]", "s32[3]", "f32[3,2]"]), "f32[4,5]");
        let bounded = ["f32[<=4,5]", "s32[<=3,1]", "f32[3,5]"];
        assert_eq!(infer_in(&f32s, rows(), &bounded), "f32[<=4,5]");
        assert_eq!(infer_in(&f32s, rows(), &["f32[?,?]", "s32[?,1]", "f32[3,5]"]), "f32[?,?]");
        // The operand keeps its type where updates and computation are wider.
        assert_eq!(infer_in(&f32s, rows(), &["bf16[4,5]", "s32[3]", "f32[3,2]"]), "bf16[4,5]");

        let pair = module(&[(&["f32[]", "s8[]", "f32[]", "s8[]"], "(f32[], s8[])")]);
        let operands = ["f32[4,5]", "s8[4,5]", "s32[3,1]", "f32[3,5]", "s8[3,5]"];
        assert_eq!(infer_in(&pair, rows(), &operands), "(f32[4,5], s8[4,5])");
        assert_eq!(rows().dims.window_operand_dims(2), [1]);
        assert_eq!(rows().dims.scatter_dims(2), [0]);
    }

    #[test]
    fn hostile_numbers() {
        let f32s = module(&[(&["f32[]", "f32[]"], "f32[]")]);
        let operands = ["f32[4,5]", "s32[3,1]", "f32[3,5]"];
        let mut op = rows();
        op.dims.index_vector_dim = usize::MAX;
        assert_eq!(infer_in(&f32s, op, &operands), "scatter.C6");
        op = rows();
        op.dims.inserted_window_dims = vec![usize::MAX];
        assert_eq!(infer_in(&f32s, op, &operands), "scatter.C11");
        assert_eq!(infer_in(&f32s, rows(), &["f32[4,5]", "s32[]", "f32[]"]), "scatter.C6");
    }
}
