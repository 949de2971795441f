//! `gather`: slices of an array at the places that an array of indices lists.

use super::Arity;
use super::check::{ensure_ascending, ensure_dims, ensure_one_per_dim, ensure_unique, merge_dim};
use crate::text::attrs::{AttrReader, AttrWriter};
use crate::types::DimKind;
use crate::{ArrayShape, InferCx, OpDef, Result, Shape, ensure};

/// Collects slices of the first operand at the places that the second lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gather {
    /// Which dimension means what.
    pub dims: GatherDims,
    /// The sizes of each slice.
    pub slice_sizes: Vec<usize>,
    /// A promise; without effect on the value.
    pub indices_are_sorted: bool,
}

/// Which dimension of operand, indices and result means what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatherDims {
    /// Dimensions of the result that index into a slice.
    pub offset_dims: Vec<usize>,
    /// Dimensions of the operand (slice size 1) that are left out of the result.
    pub collapsed_slice_dims: Vec<usize>,
    /// For each component of an index vector, the operand's dimension it is for.
    pub start_index_map: Vec<usize>,
    /// Dimensions of the operand (slice size 1) that go along with `start_indices_batching_dims`.
    pub operand_batching_dims: Vec<usize>,
    /// Dimensions of the indices that go along with `operand_batching_dims`.
    pub start_indices_batching_dims: Vec<usize>,
    /// The dimension of the indices that holds index vectors; its rank if they are scalars.
    pub index_vector_dim: usize,
}

impl GatherDims {
    /// The dimensions of the operand, of this rank, that `offset_dims` stand for, in their order.
    pub fn offset_operand_dims(&self, operand_rank: usize) -> Vec<usize> {
        let left_out = |d: &usize| {
            self.collapsed_slice_dims.contains(d) || self.operand_batching_dims.contains(d)
        };
        (0..operand_rank).filter(|d| !left_out(d)).collect()
    }

    /// The dimensions of the result, of this rank, that number the slices: all but `offset_dims`.
    /// They stand for [`indices_dims`] in this order.
    pub fn batch_dims(&self, result_rank: usize) -> Vec<usize> {
        (0..result_rank).filter(|d| !self.offset_dims.contains(d)).collect()
    }
}

/// The dimensions of the indices, of this rank, that number index vectors: all but the one that
/// holds them.
pub fn indices_dims(indices_rank: usize, index_vector_dim: usize) -> Vec<usize> {
    (0..indices_rank).filter(|&d| d != index_vector_dim).collect()
}

/// The length of an index vector; `None` if it is unknown before the run.
pub(super) fn index_vector_size(indices: &ArrayShape, index_vector_dim: usize) -> Option<usize> {
    if index_vector_dim == indices.rank() {
        return Some(1);
    }
    let (size, kind) = indices.dim(index_vector_dim);
    (kind != DimKind::Unbounded).then_some(size)
}

impl Gather {
    fn check(&self, operand: &ArrayShape, indices: &ArrayShape) -> Result<()> {
        let dims = &self.dims;
        ensure!(
            indices.element().is_integer(),
            "gather.C2",
            "operand 1 must hold integers, is {indices}"
        );
        ensure!(
            dims.index_vector_dim <= indices.rank(),
            "gather.C3",
            "index_vector_dim={} must be at most {}, the number of dimensions of the indices \
             {indices}",
            dims.index_vector_dim,
            indices.rank()
        );
        ensure_ascending("gather.C4", "offset_dims", &dims.offset_dims)?;
        let batch_rank = indices_dims(indices.rank(), dims.index_vector_dim).len();
        let result_rank = batch_rank + dims.offset_dims.len();
        let outside = dims.offset_dims.iter().find(|&&d| d >= result_rank);
        ensure!(
            outside.is_none(),
            "gather.C5",
            "offset_dims={:?}: must be below {result_rank}, the number of dimensions of the result",
            dims.offset_dims
        );
        let vector = index_vector_size(indices, dims.index_vector_dim);
        ensure!(
            vector.is_none_or(|size| size == dims.start_index_map.len()),
            "gather.C6",
            "start_index_map={:?} must have an entry for each of the {} components of an index \
             vector in {indices}, dimension {}",
            dims.start_index_map,
            vector.unwrap_or_default(),
            dims.index_vector_dim
        );
        ensure_dims("gather.C7", "start_index_map", &dims.start_index_map, operand)?;
        ensure_unique("gather.C8", "start_index_map", &dims.start_index_map)?;
        ensure_dims("gather.C9", "collapsed_slice_dims", &dims.collapsed_slice_dims, operand)?;
        ensure_ascending("gather.C10", "collapsed_slice_dims", &dims.collapsed_slice_dims)?;
        self.check_batching(operand, indices)?;
        self.check_slice_sizes(operand)
    }

    /// Errors: the sizes of slices do not fit the operand or the lists of its dimensions.
    fn check_slice_sizes(&self, operand: &ArrayShape) -> Result<()> {
        let dims = &self.dims;
        ensure_one_per_dim("gather.C16", "slice_sizes", self.slice_sizes.len(), operand)?;
        let named = dims.offset_dims.len()
            + dims.collapsed_slice_dims.len()
            + dims.operand_batching_dims.len();
        ensure!(
            named == operand.rank(),
            "gather.C17",
            "offset_dims, collapsed_slice_dims and operand_batching_dims are {named} together; \
             must be {}, the dimensions of the operand {operand}",
            operand.rank()
        );
        for (d, &size) in self.slice_sizes.iter().enumerate() {
            let (limit, kind) = operand.dim(d);
            ensure!(
                kind == DimKind::Unbounded || size <= limit,
                "gather.C18",
                "slice_sizes: {size} for dimension {d} of the operand {operand} must be at most \
                 {limit}"
            );
        }
        for (rule, name, list) in [
            ("gather.C19", "collapsed_slice_dims", &dims.collapsed_slice_dims),
            ("gather.C20", "operand_batching_dims", &dims.operand_batching_dims),
        ] {
            for &d in list {
                let size = self.slice_sizes[d];
                ensure!(
                    size <= 1,
                    rule,
                    "slice_sizes: {size} for dimension {d}, which is one of {name}; must be 1 or 0"
                );
            }
        }
        Ok(())
    }

    /// Errors: the lists of batching dimensions do not fit each other or the operands.
    fn check_batching(&self, operand: &ArrayShape, indices: &ArrayShape) -> Result<()> {
        let dims = &self.dims;
        let (of_operand, of_indices) =
            (&dims.operand_batching_dims, &dims.start_indices_batching_dims);
        ensure!(
            of_operand.len() == of_indices.len(),
            "gather.C11",
            "operand_batching_dims={of_operand:?} and start_indices_batching_dims={of_indices:?} \
             must have the same length"
        );
        ensure_dims("gather.C12", "operand_batching_dims", of_operand, operand)?;
        ensure_ascending("gather.C13", "operand_batching_dims", of_operand)?;
        ensure_dims("gather.C14", "start_indices_batching_dims", of_indices, indices)?;
        ensure_unique("gather.C15", "start_indices_batching_dims", of_indices)?;
        for (rule, name, list) in [
            ("gather.C21", "collapsed_slice_dims", &dims.collapsed_slice_dims),
            ("gather.C22", "start_index_map", &dims.start_index_map),
        ] {
            let both = list.iter().find(|d| of_operand.contains(d));
            ensure!(
                both.is_none(),
                rule,
                "{name}={list:?} and operand_batching_dims={of_operand:?} must have no dimension \
                 in common"
            );
        }
        ensure!(
            !of_indices.contains(&dims.index_vector_dim),
            "gather.C23",
            "start_indices_batching_dims={of_indices:?} must not have index_vector_dim={}",
            dims.index_vector_dim
        );
        for (&o, &i) in of_operand.iter().zip(of_indices) {
            ensure!(
                merge_dim(operand.dim(o), indices.dim(i)).is_some(),
                "gather.C24",
                "batching dimensions {o} of the operand {operand} and {i} of the indices {indices} \
                 must have the same size"
            );
        }
        Ok(())
    }
}

impl OpDef for Gather {
    const OPCODE: &'static str = "gather";
    const ARITY: Arity = Arity::Exactly(2);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let (operand, indices) = (cx.array("gather.C1", 0)?, cx.array("gather.C1", 1)?);
        self.check(operand, indices)?;
        let batch = indices_dims(indices.rank(), self.dims.index_vector_dim);
        let mut batch = batch.into_iter().map(|d| indices.dim(d));
        let offset = self.dims.offset_operand_dims(operand.rank());
        let mut offset = offset.into_iter().map(|d| {
            let (size, (whole, kind)) = (self.slice_sizes[d], operand.dim(d));
            // Only all of a bounded dimension stays bounded: a part of it is always there.
            let is_bounded = kind == DimKind::Bounded && size == whole;
            (size, if is_bounded { DimKind::Bounded } else { DimKind::Static })
        });
        let rank = batch.len() + offset.len();
        let next =
            |d| if self.dims.offset_dims.contains(&d) { offset.next() } else { batch.next() };
        // `gather.C5` and `gather.C17`: both have as many as are asked for.
        let (sizes, kinds) = (0..rank).filter_map(next).unzip();
        ArrayShape::with_kinds(operand.element(), sizes, kinds).map(Shape::Array)
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        let dims = GatherDims {
            offset_dims: attrs.needed("offset_dims", AttrReader::sizes)?,
            collapsed_slice_dims: attrs.needed("collapsed_slice_dims", AttrReader::sizes)?,
            start_index_map: attrs.needed("start_index_map", AttrReader::sizes)?,
            operand_batching_dims: attrs.sizes("operand_batching_dims")?.unwrap_or_default(),
            start_indices_batching_dims: attrs
                .sizes("start_indices_batching_dims")?
                .unwrap_or_default(),
            index_vector_dim: attrs.needed("index_vector_dim", AttrReader::size)?,
        };
        Ok(Gather {
            dims,
            slice_sizes: attrs.needed("slice_sizes", AttrReader::sizes)?,
            indices_are_sorted: attrs.flag("indices_are_sorted")?.unwrap_or(false),
        })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        let dims = &self.dims;
        attrs.list("offset_dims", &dims.offset_dims);
        attrs.list("collapsed_slice_dims", &dims.collapsed_slice_dims);
        attrs.list("start_index_map", &dims.start_index_map);
        attrs.list_unless_empty("operand_batching_dims", &dims.operand_batching_dims);
        attrs.list_unless_empty("start_indices_batching_dims", &dims.start_indices_batching_dims);
        attrs.put("index_vector_dim", dims.index_vector_dim);
        attrs.list("slice_sizes", &self.slice_sizes);
        attrs.flag("indices_are_sorted", self.indices_are_sorted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::infer;

    fn rows() -> Gather {
        Gather {
            dims: GatherDims {
                offset_dims: vec![1],
                collapsed_slice_dims: vec![0],
                start_index_map: vec![0],
                index_vector_dim: 1,
                ..GatherDims::default()
            },
            slice_sizes: vec![1, 5],
            indices_are_sorted: false,
        }
    }

    #[test]
    fn results() {
        assert_eq!(infer(rows(), &["f32[4,5]", "s32[3,1]"]), "f32[3,5]");
        // Scalars are index vectors of one component.
        assert_eq!(infer(rows(), &["f32[4,5]", "u8[3]"]), "f32[3,5]");
        // From the StableHLO specification, "gather": batching, and slices before index vectors.
        let batched = Gather {
            dims: GatherDims {
                offset_dims: vec![3, 4],
                collapsed_slice_dims: vec![1],
                start_index_map: vec![2, 1],
                operand_batching_dims: vec![0],
                start_indices_batching_dims: vec![1],
                index_vector_dim: 3,
            },
            slice_sizes: vec![1, 1, 2, 2],
            indices_are_sorted: false,
        };
        assert_eq!(infer(batched.clone(), &["s32[2,3,4,2]", "s64[2,2,3,2]"]), "s32[2,2,3,2,2]");
        assert_eq!(batched.dims.offset_operand_dims(4), [2, 3]);
        assert_eq!(batched.dims.batch_dims(5), [0, 1, 2]);
        assert_eq!(indices_dims(4, 3), [0, 1, 2]);
        assert_eq!(indices_dims(2, 2), [0, 1]);
    }

    #[test]
    fn bounds() {
        assert_eq!(infer(rows(), &["f32[<=4,5]", "s32[<=3,1]"]), "f32[<=3,5]");
        // All of a bounded dimension is bounded, a part of it is not.
        assert_eq!(infer(rows(), &["f32[4,<=5]", "s32[3,1]"]), "f32[3,<=5]");
        assert_eq!(infer(rows(), &["f32[4,<=6]", "s32[3,1]"]), "f32[3,5]");
        assert_eq!(infer(rows(), &["f32[?,?]", "s32[?,?]"]), "f32[?,5]");
    }

    #[test]
    fn hostile_numbers() {
        let mut op = rows();
        op.dims.index_vector_dim = usize::MAX;
        assert_eq!(infer(op.clone(), &["f32[4,5]", "s32[3,1]"]), "gather.C3");
        op = rows();
        op.dims.collapsed_slice_dims = vec![usize::MAX];
        assert_eq!(infer(op.clone(), &["f32[4,5]", "s32[3,1]"]), "gather.C9");
        op = rows();
        op.slice_sizes = vec![1, usize::MAX];
        assert_eq!(infer(op.clone(), &["f32[4,5]", "s32[3,1]"]), "gather.C18");
        // An unbounded dimension limits no slice: the size of the result does.
        assert_eq!(infer(op, &["f32[4,?]", "s32[3,1]"]), "shape.C2");
    }
}
