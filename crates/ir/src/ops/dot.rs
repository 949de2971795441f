//! `dot` and `ragged-dot`: products of arrays that sum over contracting dimensions.

use super::Arity;
use super::check::{ensure_dims, ensure_unique, merge_dim};
use super::shared::{DotDims, Precision, check_algorithm, read_algorithm, write_algorithm};
use crate::text::attrs::{AttrReader, AttrWriter};
use crate::types::DimKind;
use crate::{ArrayShape, ElementType, InferCx, OpDef, Result, Shape, ensure};

/// Sum of products over contracting dimensions; result: batch, lhs free, rhs free dimensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dot {
    /// Contracting and batch dimensions.
    pub dims: DotDims,
    /// The type of the result, in which sums are formed.
    pub element: ElementType,
    /// Precision wished for each operand; empty for the default.
    pub precision: Vec<Precision>,
    /// The algorithm prescribed (`dot_bf16_bf16_f32`).
    pub algorithm: Option<String>,
}

/// Errors: `rule` unless the lists of dimensions pair up in number and size. `what` they are.
fn ensure_pairs(
    [count_rule, size_rule]: [&'static str; 2],
    what: &str,
    lhs: (&ArrayShape, &[usize]),
    rhs: (&ArrayShape, &[usize]),
) -> Result<()> {
    ensure!(
        lhs.1.len() == rhs.1.len(),
        count_rule,
        "lhs and rhs must have the same number of {what} dimensions, have {:?} and {:?}",
        lhs.1,
        rhs.1
    );
    for (&l, &r) in lhs.1.iter().zip(rhs.1) {
        ensure!(
            merge_dim(lhs.0.dim(l), rhs.0.dim(r)).is_some(),
            size_rule,
            "{what} dimensions {l} of lhs {} and {r} of rhs {} must have the same size",
            lhs.0,
            rhs.0
        );
    }
    Ok(())
}

/// The dimensions that a product has: batch, lhs free, rhs free except those in `leave_out`.
fn product_dims(
    dims: &DotDims,
    lhs: &ArrayShape,
    rhs: &ArrayShape,
    leave_out: &[usize],
) -> Result<Vec<(usize, DimKind)>> {
    for (array, name, contracting, batch) in [
        (lhs, "lhs", &dims.lhs_contracting, &dims.lhs_batch),
        (rhs, "rhs", &dims.rhs_contracting, &dims.rhs_batch),
    ] {
        let all = [contracting.as_slice(), batch].concat();
        let what = format!("{name}_contracting_dims and {name}_batch_dims");
        ensure_dims("dot.C2", &what, &all, array)?;
        ensure_unique("dot.C3", &what, &all)?;
    }
    let rules = ["dot.C4", "dot.C5"];
    ensure_pairs(rules, "contracting", (lhs, &dims.lhs_contracting), (rhs, &dims.rhs_contracting))?;
    ensure_pairs(["dot.C6", "dot.C7"], "batch", (lhs, &dims.lhs_batch), (rhs, &dims.rhs_batch))?;
    let lhs_free = dims.lhs_free(lhs.rank());
    let rhs_free = dims.rhs_free(rhs.rank());
    let lhs_dims = dims.lhs_batch.iter().chain(&lhs_free).map(|&d| lhs.dim(d));
    let rhs_free = rhs_free.iter().filter(|d| !leave_out.contains(d));
    Ok(lhs_dims.chain(rhs_free.map(|&d| rhs.dim(d))).collect())
}

fn array(element: ElementType, dims: Vec<(usize, DimKind)>) -> Result<Shape> {
    let (sizes, kinds) = dims.into_iter().unzip();
    ArrayShape::with_kinds(element, sizes, kinds).map(Shape::Array)
}

impl OpDef for Dot {
    const OPCODE: &'static str = "dot";
    const ARITY: Arity = Arity::Exactly(2);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let (lhs, rhs) = (cx.array("dot.C1", 0)?, cx.array("dot.C1", 1)?);
        let dims = product_dims(&self.dims, lhs, rhs, &[])?;
        Precision::check_list(&self.precision)?;
        check_algorithm(&self.algorithm)?;
        array(self.element, dims)
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        Ok(Dot {
            dims: DotDims::read(attrs)?,
            element: attrs.result_array()?.element(),
            precision: Precision::read_list(attrs)?,
            algorithm: read_algorithm(attrs)?,
        })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        self.dims.write(attrs);
        Precision::write_list(&self.precision, attrs);
        write_algorithm(&self.algorithm, attrs);
    }
}

/// Dot whose lhs, contracting or batch dimension falls into groups of sizes given at run time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RaggedDot {
    /// Contracting and batch dimensions.
    pub dims: DotDims,
    /// The dimension of lhs that falls into groups (just one).
    pub lhs_ragged: Vec<usize>,
    /// The dimension of rhs that numbers the groups, if any.
    pub rhs_group: Vec<usize>,
    /// The type of the result.
    pub element: ElementType,
    /// Precision wished for each operand; empty for the default.
    pub precision: Vec<Precision>,
}

/// Which kind of dimension falls into groups in a [`RaggedDot`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RaggedMode {
    /// A free dimension of lhs: each group of it meets its own part of rhs.
    Free,
    /// A contracting dimension: each group gives a product of its own, all stacked.
    Contracting,
    /// A batch dimension.
    Batch,
}

impl RaggedDot {
    /// What kind of dimension is ragged; `None` unless exactly one is.
    pub fn mode(&self) -> Option<RaggedMode> {
        let [ragged] = self.lhs_ragged[..] else { return None };
        Some(if self.dims.lhs_batch.contains(&ragged) {
            RaggedMode::Batch
        } else if self.dims.lhs_contracting.contains(&ragged) {
            RaggedMode::Contracting
        } else {
            RaggedMode::Free
        })
    }

    /// The dimensions of lhs for each point of which there may be group sizes of its own: the batch
    /// dimensions, and the dimensions of the ragged one's kind, that stand before the ragged one.
    pub fn group_dims(&self, lhs_rank: usize) -> Vec<usize> {
        let before = |dims: &[usize]| -> Vec<usize> {
            dims.iter().copied().take_while(|d| !self.lhs_ragged.contains(d)).collect()
        };
        let batch = before(&self.dims.lhs_batch);
        let kin = match self.mode() {
            Some(RaggedMode::Free) => before(&self.dims.lhs_free(lhs_rank)),
            Some(RaggedMode::Contracting) => before(&self.dims.lhs_contracting),
            Some(RaggedMode::Batch) | None => Vec::new(),
        };
        [batch, kin].concat()
    }
}

impl OpDef for RaggedDot {
    const OPCODE: &'static str = "ragged-dot";
    const ARITY: Arity = Arity::Exactly(3);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let (lhs, rhs) = (cx.array("dot.C1", 0)?, cx.array("dot.C1", 1)?);
        let mut dims = product_dims(&self.dims, lhs, rhs, &self.rhs_group)?;
        Precision::check_list(&self.precision)?;

        let sizes = cx.array("ragged-dot.C1", 2)?;
        ensure!(
            sizes.element().is_integer(),
            "ragged-dot.C1",
            "operand 2 must hold integers, the sizes of the groups; is {sizes}"
        );
        let mode = self.mode();
        ensure!(
            mode.is_some(),
            "ragged-dot.C2",
            "lhs_ragged_dims: must be one dimension, are {:?}",
            self.lhs_ragged
        );
        ensure_dims("ragged-dot.C3", "lhs_ragged_dims", &self.lhs_ragged, lhs)?;
        let prefix: Vec<_> = self.group_dims(lhs.rank()).iter().map(|&d| lhs.dim(d)).collect();
        let groups = (sizes.rank() > 0).then(|| sizes.dim(sizes.rank() - 1));
        let is_full = sizes.rank() == prefix.len() + 1
            && prefix.iter().enumerate().all(|(d, &dim)| merge_dim(dim, sizes.dim(d)).is_some());
        let (Some(groups), true) = (groups, sizes.rank() == 1 || is_full) else {
            let prefix: Vec<_> = prefix.iter().map(|dim| dim.0).collect();
            return Err(crate::Error::rule(
                "ragged-dot.C4",
                format!(
                    "operand 2 must have dimensions [g] or {prefix:?} and then g, the number of \
                     groups; is {sizes}"
                ),
            ));
        };
        ensure_dims("ragged-dot.C5", "rhs_group_dims", &self.rhs_group, rhs)?;
        let taken = self
            .rhs_group
            .iter()
            .find(|d| self.dims.rhs_batch.contains(d) || self.dims.rhs_contracting.contains(d));
        ensure!(
            taken.is_none(),
            "ragged-dot.C5",
            "rhs_group_dims: {:?} has a batch or contracting dimension of rhs",
            self.rhs_group
        );
        let expected = usize::from(mode == Some(RaggedMode::Free));
        ensure!(
            self.rhs_group.len() == expected,
            "ragged-dot.C6",
            "rhs_group_dims: {:?}; must be one dimension if the ragged one is neither contracting \
             nor batch, else none",
            self.rhs_group
        );
        for &d in &self.rhs_group {
            ensure!(
                merge_dim(rhs.dim(d), groups).is_some(),
                "ragged-dot.C7",
                "rhs_group_dims: dimension {d} of rhs {rhs} must have a size of {}, the number of \
                 groups in {sizes}",
                groups.0
            );
        }
        if mode == Some(RaggedMode::Contracting) {
            dims.insert(0, groups);
        }
        array(self.element, dims)
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        Ok(RaggedDot {
            dims: DotDims::read(attrs)?,
            lhs_ragged: attrs.sizes("lhs_ragged_dims")?.unwrap_or_default(),
            rhs_group: attrs.sizes("rhs_group_dims")?.unwrap_or_default(),
            element: attrs.result_array()?.element(),
            precision: Precision::read_list(attrs)?,
        })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        self.dims.write(attrs);
        attrs.list_unless_empty("lhs_ragged_dims", &self.lhs_ragged);
        attrs.list_unless_empty("rhs_group_dims", &self.rhs_group);
        Precision::write_list(&self.precision, attrs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::infer;

    fn dot(lists: [&[usize]; 4]) -> Dot {
        let [lhs_batch, lhs_contracting, rhs_batch, rhs_contracting] = lists.map(<[_]>::to_vec);
        let dims = DotDims { lhs_contracting, rhs_contracting, lhs_batch, rhs_batch };
        Dot { dims, element: ElementType::F32, precision: Vec::new(), algorithm: None }
    }

    #[test]
    fn results() {
        let matrices = dot([&[], &[1], &[], &[0]]);
        assert_eq!(infer(matrices.clone(), &["f32[2,3]", "f32[3,4]"]), "f32[2,4]");
        assert_eq!(infer(matrices.clone(), &["s8[2,3]", "bf16[3]"]), "f32[2]");
        let batched = dot([&[1], &[2], &[0], &[2]]);
        assert_eq!(infer(batched.clone(), &["f32[4,2,3]", "f32[2,5,3]"]), "f32[2,4,5]");
        // A bound stays with a free or a batch dimension.
        assert_eq!(infer(batched, &["f32[4,<=2,3]", "f32[2,<=5,<=3]"]), "f32[<=2,4,<=5]");
        assert_eq!(infer(matrices, &["f32[2,?]", "f32[3,4]"]), "f32[2,4]");
        let outer = dot([&[], &[], &[], &[]]);
        assert_eq!(infer(outer.clone(), &["f32[2]", "f32[3]"]), "f32[2,3]");
        assert_eq!(infer(outer, &["f32[]", "f32[]"]), "f32[]");
    }

    #[test]
    fn hostile_sizes() {
        let outer = dot([&[], &[], &[], &[]]);
        assert_eq!(infer(outer.clone(), &["pred[4611686018427387904]", "pred[4]"]), "shape.C2");
        assert_eq!(infer(dot([&[usize::MAX], &[], &[], &[]]), &["f32[1]", "f32[1]"]), "dot.C2");
    }

    #[test]
    fn ragged_results() {
        let ragged =
            |lhs_contracting: &[usize], rhs_contracting: &[usize], ragged, group: &[usize]| {
                let dims = dot([&[], lhs_contracting, &[], rhs_contracting]).dims;
                let (lhs_ragged, rhs_group) = (vec![ragged], group.to_vec());
                let element = ElementType::F32;
                RaggedDot { dims, lhs_ragged, rhs_group, element, precision: Vec::new() }
            };
        // Shapes from the comment on RaggedDot in XLA's shape inference, without a batch.
        let free = ragged(&[1], &[1], 0, &[0]);
        assert_eq!(free.mode(), Some(RaggedMode::Free));
        assert_eq!(infer(free, &["f32[9,3]", "f32[2,3,5]", "s32[2]"]), "f32[9,5]");
        let contracting = ragged(&[1], &[0], 1, &[]);
        assert_eq!(contracting.mode(), Some(RaggedMode::Contracting));
        assert_eq!(infer(contracting, &["f32[9,3]", "f32[3,5]", "s32[2]"]), "f32[2,9,5]");
        let mut batch = ragged(&[2], &[1], 0, &[]);
        batch.dims.lhs_batch = vec![0];
        batch.dims.rhs_batch = vec![0];
        assert_eq!(batch.mode(), Some(RaggedMode::Batch));
        assert_eq!(infer(batch.clone(), &["f32[7,9,3]", "f32[7,3,5]", "s64[2]"]), "f32[7,9,5]");
        // Sizes for each batch, where a free dimension is ragged.
        let mut each = RaggedDot { lhs_ragged: vec![1], rhs_group: vec![2], ..batch };
        assert_eq!(each.group_dims(3), [0]);
        assert_eq!(infer(each.clone(), &["f32[7,9,3]", "f32[7,3,2,5]", "s32[7,2]"]), "f32[7,9,5]");
        assert_eq!(
            infer(each.clone(), &["f32[7,9,3]", "f32[7,3,2,5]", "s32[6,2]"]),
            "ragged-dot.C4"
        );
        assert_eq!(infer(each.clone(), &["f32[7,9,3]", "f32[7,3,2,5]", "s32[]"]), "ragged-dot.C4");
        each.lhs_ragged = vec![usize::MAX];
        assert_eq!(infer(each, &["f32[7,9,3]", "f32[7,3,2,5]", "s32[2]"]), "ragged-dot.C3");
    }
}
