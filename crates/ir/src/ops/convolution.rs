//! `convolution`: sums of products under a window that slides over spatial dimensions.

use super::Arity;
use super::check::ensure_permutation;
use super::shared::{
    ConvDims, Precision, Window, check_algorithm, read_algorithm, write_algorithm,
};
use crate::text::attrs::{AttrReader, AttrWriter};
use crate::types::DimKind;
use crate::{ArrayShape, ElementType, Error, InferCx, OpDef, Result, Shape, ensure};

/// Slides a kernel (rhs) over an input (lhs) and sums products.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Convolution {
    /// Size, stride, padding, dilation and reversal of each spatial dimension.
    pub window: Window,
    /// Which dimension of input, kernel and output means what.
    pub dims: ConvDims,
    /// Into how many groups the features fall.
    pub feature_group_count: usize,
    /// Into how many groups the batch falls.
    pub batch_group_count: usize,
    /// The type of the result.
    pub element: ElementType,
    /// Precision wished for each operand; empty for the default.
    pub precision: Vec<Precision>,
    /// The algorithm prescribed (`dot_bf16_bf16_f32`).
    pub algorithm: Option<String>,
}

impl Convolution {
    /// Errors: the numbers of dimensions are wrong, or labels do not name each dimension once.
    fn check_dims(&self, input: &ArrayShape, kernel: &ArrayShape) -> Result<()> {
        let dims = &self.dims;
        let spatial = dims.input_spatial.len();
        ensure!(
            spatial == dims.kernel_spatial.len() && spatial == dims.output_spatial.len(),
            "convolution.C2",
            "dim_labels={dims}: input, kernel and output must have as many spatial dimensions"
        );
        ensure!(
            spatial == self.window.dims.len(),
            "convolution.C3",
            "the window {} must have a dimension for each of the {spatial} spatial dimensions of \
             dim_labels={dims}",
            self.window
        );
        for (i, array) in [input, kernel].into_iter().enumerate() {
            ensure!(
                array.rank() == spatial + 2,
                "convolution.C4",
                "operand {i} must have {} dimensions for dim_labels={dims}, is {array}",
                spatial + 2
            );
        }
        // The output has as many dimensions as the operands have.
        for (what, one, two, spatial, array) in [
            ("input", dims.input_batch, dims.input_feature, &dims.input_spatial, input),
            (
                "kernel",
                dims.kernel_input_feature,
                dims.kernel_output_feature,
                &dims.kernel_spatial,
                kernel,
            ),
            ("output", dims.output_batch, dims.output_feature, &dims.output_spatial, input),
        ] {
            let all = [&[one, two][..], spatial].concat();
            let what = format!("the {what} part of dim_labels={dims}");
            ensure_permutation("convolution.C5", &what, &all, array)?;
        }
        Ok(())
    }

    /// Errors: the group counts do not divide what they have to.
    fn check_groups(&self, input: &ArrayShape, kernel: &ArrayShape) -> Result<()> {
        let (features, batches) = (self.feature_group_count, self.batch_group_count);
        ensure!(
            features > 0 && batches > 0,
            "convolution.C6",
            "feature_group_count={features}, batch_group_count={batches}: must be positive"
        );
        ensure!(
            features == 1 || batches == 1,
            "convolution.C7",
            "feature_group_count={features}, batch_group_count={batches}: one of them must be 1"
        );
        let unknown = |(_, kind)| kind == DimKind::Unbounded;
        let input_features = input.dim(self.dims.input_feature);
        let kernel_features = kernel.dim(self.dims.kernel_input_feature);
        ensure!(
            unknown(input_features)
                || unknown(kernel_features)
                || kernel_features.0.checked_mul(features) == Some(input_features.0),
            "convolution.C8",
            "the input {input} has {} features, which must be feature_group_count={features} times \
             the {} input features of the kernel {kernel}",
            input_features.0,
            kernel_features.0
        );
        let output_features = kernel.dim(self.dims.kernel_output_feature);
        for (name, count) in [("feature_group_count", features), ("batch_group_count", batches)] {
            ensure!(
                unknown(output_features) || output_features.0.is_multiple_of(count),
                "convolution.C9",
                "{name}={count} must divide the {} output features of the kernel {kernel}",
                output_features.0
            );
        }
        let batch = input.dim(self.dims.input_batch);
        ensure!(
            unknown(batch) || batch.0.is_multiple_of(batches),
            "convolution.C10",
            "batch_group_count={batches} must divide the batch of {} of the input {input}",
            batch.0
        );
        Ok(())
    }
}

impl OpDef for Convolution {
    const OPCODE: &'static str = "convolution";
    const ARITY: Arity = Arity::Exactly(2);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let (input, kernel) = (cx.array("convolution.C1", 0)?, cx.array("convolution.C1", 1)?);
        let dims = &self.dims;
        self.check_dims(input, kernel)?;
        self.check_groups(input, kernel)?;
        for (i, (window, &d)) in self.window.dims.iter().zip(&dims.kernel_spatial).enumerate() {
            let (size, kind) = kernel.dim(d);
            ensure!(
                kind == DimKind::Unbounded || window.size == size,
                "convolution.C11",
                "window dimension {i}: the size must be {size}, as dimension {d} of the kernel \
                 {kernel}, is {}",
                window.size
            );
        }
        let output_features = kernel.dim(dims.kernel_output_feature);
        ensure!(
            output_features.1 == DimKind::Static,
            "convolution.C12",
            "the output features, dimension {} of the kernel {kernel}, must have a static size",
            dims.kernel_output_feature
        );
        Precision::check_list(&self.precision)?;
        check_algorithm(&self.algorithm)?;

        let base: Vec<_> = dims.input_spatial.iter().map(|&d| input.dim(d)).collect();
        let spatial = self.window.output_dims(&base)?;
        // `convolution.C5`: every place is filled once.
        let mut result = vec![(0, DimKind::Static); input.rank()];
        let (batch, batch_kind) = input.dim(dims.input_batch);
        result[dims.output_batch] = (batch / self.batch_group_count, batch_kind);
        result[dims.output_feature] = output_features;
        for (i, (size, kind)) in spatial.into_iter().enumerate() {
            // A kernel of bounded size gives a bounded result, too.
            let is_static = kernel.dim(dims.kernel_spatial[i]).1 == DimKind::Static;
            let kind = if kind == DimKind::Static && !is_static { DimKind::Bounded } else { kind };
            result[dims.output_spatial[i]] = (size, kind);
        }
        let (sizes, kinds) = result.into_iter().unzip();
        ArrayShape::with_kinds(self.element, sizes, kinds).map(Shape::Array)
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        // Forms that the text may name, and that mean other operations.
        let kind = attrs.word("convolution_kind")?;
        if let Some(kind) = kind.filter(|&kind| kind != "unset" && kind != "fprop") {
            return Err(Error::unimplemented(format!("convolution_kind={kind}")));
        }
        if let Some(config) = attrs.take("sparsity_config").filter(|&config| config != "{}") {
            return Err(Error::unimplemented(format!("sparsity_config={config}")));
        }
        let labels = |attrs: &mut AttrReader<'_>, name: &str| {
            attrs.parse(name, |scan| ConvDims::from_labels(scan.remainder().trim_end()))
        };
        Ok(Convolution {
            window: attrs.parse("window", Window::read)?.unwrap_or_default(),
            dims: attrs.needed("dim_labels", labels)?,
            feature_group_count: attrs.size("feature_group_count")?.unwrap_or(1),
            batch_group_count: attrs.size("batch_group_count")?.unwrap_or(1),
            element: attrs.result_array()?.element(),
            precision: Precision::read_list(attrs)?,
            algorithm: read_algorithm(attrs)?,
        })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        if !self.window.dims.is_empty() {
            attrs.put("window", &self.window);
        }
        attrs.put("dim_labels", &self.dims);
        if self.feature_group_count != 1 {
            attrs.put("feature_group_count", self.feature_group_count);
        }
        if self.batch_group_count != 1 {
            attrs.put("batch_group_count", self.batch_group_count);
        }
        Precision::write_list(&self.precision, attrs);
        write_algorithm(&self.algorithm, attrs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::infer;
    use crate::text::attrs::Scan;

    fn conv(window: &str, labels: &str) -> Convolution {
        Convolution {
            window: Window::read(&mut Scan::new(window)).expect("a window"),
            dims: ConvDims::from_labels(labels).expect("labels"),
            feature_group_count: 1,
            batch_group_count: 1,
            element: ElementType::F32,
            precision: Vec::new(),
            algorithm: None,
        }
    }

    #[test]
    fn results() {
        let plain = conv("{size=3x2 stride=2x1 pad=1_1x0_0}", "b01f_01io->b01f");
        assert_eq!(infer(plain, &["f32[2,8,9,3]", "f32[3,2,3,5]"]), "f32[2,4,8,5]");
        let order = conv("{size=3}", "f0b_o0i->0bf");
        assert_eq!(infer(order, &["f32[3,8,2]", "f32[5,3,3]"]), "f32[6,2,5]");
        let no_window = conv("{}", "bf_io->bf");
        assert_eq!(infer(no_window, &["f32[2,3]", "f32[3,5]"]), "f32[2,5]");
        let mut groups = conv("{size=1}", "b0f_0io->b0f");
        groups.feature_group_count = 3;
        assert_eq!(infer(groups.clone(), &["f32[2,8,6]", "f32[1,2,9]"]), "f32[2,8,9]");
        (groups.feature_group_count, groups.batch_group_count) = (1, 2);
        assert_eq!(infer(groups, &["f32[4,8,6]", "f32[1,6,4]"]), "f32[2,8,4]");
        // An empty input has room for no window.
        let empty = conv("{size=3}", "b0f_0io->b0f");
        assert_eq!(infer(empty, &["f32[2,0,3]", "f32[3,3,5]"]), "f32[2,0,5]");
    }

    #[test]
    fn bounds() {
        let plain = conv("{size=3}", "b0f_0io->b0f");
        assert_eq!(infer(plain.clone(), &["f32[<=2,<=8,3]", "f32[3,3,5]"]), "f32[<=2,<=6,5]");
        assert_eq!(infer(plain.clone(), &["f32[?,?,?]", "f32[3,3,5]"]), "f32[?,?,5]");
        assert_eq!(infer(plain.clone(), &["f32[2,8,3]", "f32[<=3,3,5]"]), "f32[2,<=6,5]");
        assert_eq!(infer(plain, &["f32[2,8,3]", "f32[3,3,?]"]), "convolution.C12");
    }

    #[test]
    fn hostile_sizes() {
        let mut wide = conv("{size=1 lhs_dilate=18446744073709551615}", "b0f_0io->b0f");
        assert_eq!(infer(wide.clone(), &["f32[1,9,1]", "f32[1,1,1]"]), "window.C6");
        assert_eq!(infer(wide.clone(), &["f32[1,2,1]", "f32[1,1,1]"]), "window.C6");
        wide.feature_group_count = usize::MAX;
        assert_eq!(infer(wide.clone(), &["f32[1,2,1]", "f32[1,2,1]"]), "convolution.C8");
        wide.dims.input_batch = usize::MAX;
        assert_eq!(infer(wide, &["f32[1,2,1]", "f32[1,2,1]"]), "convolution.C5");
    }
}
