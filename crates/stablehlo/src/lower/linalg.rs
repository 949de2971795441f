//! Products, factorisations, transforms.

use helio_ir::ops::{
    Cholesky, ConvDims, Convolution, Dot, DotDims, Fft, FftKind, Precision, TransposeA,
    TriangularSolve, Window, WindowDim,
};
use helio_ir::{Error, InstrId, Result};

use super::attrs::Attrs;
use super::body::Body;
use super::operation::Site;
use crate::mlir::{Attribute, Type};

impl<'m> Body<'_, 'm> {
    pub(super) fn linear_algebra(&mut self, name: &str, site: &Site<'_, 'm>) -> Result<InstrId> {
        let attrs = site.attrs;
        match name {
            "dot" => {
                let [x, y] = site.operands()?;
                let rank = self.array(x)?.rank();
                let dims = DotDims {
                    lhs_contracting: vec![rank.saturating_sub(1)],
                    rhs_contracting: vec![0],
                    ..DotDims::default()
                };
                self.dot(site, x, y, dims)
            }
            "dot_general" => {
                let [x, y] = site.operands()?;
                let dims = match attrs.fields("dot_dimension_numbers")? {
                    Some(fields) => dot_dims(&fields)?,
                    None => DotDims::default(),
                };
                self.dot(site, x, y, dims)
            }
            "einsum" | "unary_einsum" => self.einsum(name, site),
            "convolution" => {
                let [x, kernel] = site.operands()?;
                let padding = attrs.matrix("padding")?.map(|(_, values)| values);
                self.convolution(site, x, kernel, padding)
            }
            "cholesky" => {
                let [x] = site.operands()?;
                self.push(Cholesky { lower: attrs.flag("lower")? }, &[x])
            }
            "triangular_solve" => {
                let [a, b] = site.operands()?;
                let op = TriangularSolve {
                    left_side: attrs.flag("left_side")?,
                    lower: attrs.flag("lower")?,
                    unit_diagonal: attrs.flag("unit_diagonal")?,
                    transpose_a: TransposeA::from_word(attrs.needed_word("transpose_a")?)?,
                };
                self.push(op, &[a, b])
            }
            _ => {
                let [x] = site.operands()?;
                let kind = FftKind::from_word(attrs.needed_word("fft_type")?)?;
                self.push(Fft { kind, lengths: attrs.needed_sizes("fft_length")? }, &[x])
            }
        }
    }

    fn dot(
        &mut self,
        site: &Site<'_, 'm>,
        x: InstrId,
        y: InstrId,
        dims: DotDims,
    ) -> Result<InstrId> {
        let op = Dot {
            dims,
            element: site.result_element()?,
            precision: precision(site.attrs)?,
            algorithm: algorithm(site.attrs)?,
        };
        self.push(op, &[x, y])
    }

    pub(super) fn convolution(
        &mut self,
        site: &Site<'_, 'm>,
        x: InstrId,
        kernel: InstrId,
        padding: Option<Vec<i64>>,
    ) -> Result<InstrId> {
        let attrs = site.attrs;
        let fields = attrs.needed_fields("dimension_numbers")?;
        let dims = ConvDims {
            input_batch: fields.size("input_batch_dimension")?,
            input_feature: fields.size("input_feature_dimension")?,
            input_spatial: fields.sizes("input_spatial_dimensions")?,
            kernel_input_feature: fields.size("kernel_input_feature_dimension")?,
            kernel_output_feature: fields.size("kernel_output_feature_dimension")?,
            kernel_spatial: fields.sizes("kernel_spatial_dimensions")?,
            output_batch: fields.size("output_batch_dimension")?,
            output_feature: fields.size("output_feature_dimension")?,
            output_spatial: fields.sizes("output_spatial_dimensions")?,
        };
        fields.finish()?;
        let rank = dims.input_spatial.len();
        let list = |name: &str| {
            let values = attrs.sizes(name)?;
            Ok::<_, Error>(if values.is_empty() { vec![1; rank] } else { values })
        };
        let lists = [list("window_strides")?, list("lhs_dilation")?, list("rhs_dilation")?];
        let reversal = attrs.flags("window_reversal")?.unwrap_or_else(|| vec![false; rank]);
        attrs.get("padding");
        let padding = padding.unwrap_or_else(|| vec![0; 2 * rank]);
        let fits = lists.iter().all(|list| list.len() == rank)
            && reversal.len() == rank
            && padding.len() == 2 * rank;
        if !fits {
            let detail = format!("a window must have one entry for each of {rank} dimensions");
            return Err(Error::invalid(detail));
        }
        let shape = self.array(kernel)?;
        let size = |d: usize| {
            let dim = shape.dims().get(dims.kernel_spatial.get(d).copied().unwrap_or(usize::MAX));
            dim.copied()
                .ok_or_else(|| Error::invalid(format!("the kernel {shape} lacks dimensions")))
        };
        let [strides, base, dilation] = lists;
        let window = (0..rank).map(|d| {
            Ok(WindowDim {
                size: size(d)?,
                stride: strides[d],
                pad_low: padding[2 * d],
                pad_high: padding[2 * d + 1],
                base_dilation: base[d],
                window_dilation: dilation[d],
                reversal: reversal[d],
            })
        });
        let op = Convolution {
            window: Window { dims: window.collect::<Result<_>>()? },
            dims,
            feature_group_count: attrs.size_or("feature_group_count", 1)?,
            batch_group_count: attrs.size_or("batch_group_count", 1)?,
            element: site.result_element()?,
            precision: precision(attrs)?,
            algorithm: None,
        };
        self.push(op, &[x, kernel])
    }

    /// `ij,jk->ik` as a product and a transposition; letters that only one side has are summed.
    fn einsum(&mut self, name: &str, site: &Site<'_, 'm>) -> Result<InstrId> {
        let config = site.attrs.string("einsum_config")?.unwrap_or_default();
        let bad = || Error::unimplemented(format!("einsum_config = \"{config}\""));
        let (inputs, output) = config.split_once("->").ok_or_else(bad)?;
        let letters = |text: &str| text.trim().chars().collect::<Vec<char>>();
        let mut inputs: Vec<Vec<char>> = inputs.split(',').map(letters).collect();
        let output = letters(output);
        let mut operands = site.operands.clone();
        let needed = if name == "einsum" { 2 } else { 1 };
        let is_plain = |list: &Vec<char>| {
            list.iter().all(|c| c.is_ascii_alphabetic())
                && (1..list.len()).all(|i| !list[..i].contains(&list[i]))
        };
        let all_plain = inputs.iter().all(is_plain) && is_plain(&output);
        if inputs.len() != needed || operands.len() != needed || !all_plain {
            return Err(bad());
        }
        for i in 0..needed {
            if self.array(operands[i])?.rank() != inputs[i].len() {
                return Err(bad());
            }
            let others: Vec<char> =
                (0..needed).filter(|&j| j != i).flat_map(|j| inputs[j].clone()).collect();
            let summed: Vec<usize> = (0..inputs[i].len())
                .filter(|&d| !others.contains(&inputs[i][d]) && !output.contains(&inputs[i][d]))
                .collect();
            if !summed.is_empty() {
                let mut d = 0;
                operands[i] =
                    self.fold(helio_ir::BinaryOp::Add, operands[i], summed.clone(), 0.0)?;
                inputs[i].retain(|_| {
                    d += 1;
                    !summed.contains(&(d - 1))
                });
            }
        }
        let (mut product, mut order) = (operands[0], inputs[0].clone());
        if needed == 2 {
            let shared = |keep: bool| -> Vec<char> {
                let both = inputs[0].iter().filter(|c| inputs[1].contains(c));
                both.copied().filter(|c| output.contains(c) == keep).collect()
            };
            let (batch, contracting) = (shared(true), shared(false));
            let places = |side: usize, list: &[char]| -> Vec<usize> {
                list.iter().filter_map(|c| inputs[side].iter().position(|d| d == c)).collect()
            };
            let dims = DotDims {
                lhs_contracting: places(0, &contracting),
                rhs_contracting: places(1, &contracting),
                lhs_batch: places(0, &batch),
                rhs_batch: places(1, &batch),
            };
            product = self.dot(site, operands[0], operands[1], dims)?;
            let free = inputs.iter().flatten().copied();
            let free: Vec<char> =
                free.filter(|c| !batch.contains(c) && !contracting.contains(c)).collect();
            order = batch;
            order.extend(free);
        }
        let permutation = output.iter().map(|c| order.iter().position(|d| d == c));
        let permutation: Vec<usize> = permutation.collect::<Option<_>>().ok_or_else(bad)?;
        self.transpose(product, permutation)
    }
}

/// The dimensions of a product.
pub(super) fn dot_dims(fields: &Attrs<'_>) -> Result<DotDims> {
    Ok(DotDims {
        lhs_contracting: fields.sizes("lhs_contracting_dimensions")?,
        rhs_contracting: fields.sizes("rhs_contracting_dimensions")?,
        lhs_batch: fields.sizes("lhs_batching_dimensions")?,
        rhs_batch: fields.sizes("rhs_batching_dimensions")?,
    })
}

/// The precision wished for each operand; none if all are the default.
pub(super) fn precision(attrs: &Attrs<'_>) -> Result<Vec<Precision>> {
    let words = attrs.words("precision_config")?;
    let list = words.iter().map(|word| Precision::from_word(&word.to_ascii_lowercase()));
    let list: Vec<Precision> = list.collect::<Result<_>>()?;
    let is_default = list.iter().all(|&precision| precision == Precision::Default);
    Ok(if is_default { Vec::new() } else { list })
}

/// HLO's name of the algorithm that a product prescribes: `dot_bf16_bf16_f32_x3`.
fn algorithm(attrs: &Attrs<'_>) -> Result<Option<String>> {
    let Some(fields) = attrs.fields("algorithm")? else { return Ok(None) };
    let ty = |name: &str| match fields.get(name) {
        Some(Attribute::Type(Type::Other(text))) => Ok(text.clone()),
        Some(Attribute::Type(ty)) => Ok(ty.to_string().to_ascii_lowercase()),
        _ => Err(Error::invalid(format!("an algorithm's `{name}` must be a type"))),
    };
    let types = [ty("lhs_precision_type")?, ty("rhs_precision_type")?, ty("accumulation_type")?];
    let operations = fields.size_or("num_primitive_operations", 1)?;
    fields.get("lhs_component_count");
    fields.get("rhs_component_count");
    let is_loose = fields.flag("allow_imprecise_accumulation")?;
    fields.finish()?;
    let names = types.map(|name| if name.starts_with("f8") { "any_f8".to_owned() } else { name });
    let mut name = format!("dot_{}", names.join("_"));
    if operations > 1 {
        name += &format!("_x{operations}");
    }
    if is_loose {
        name += "_fast_accum";
    }
    Ok(Some(name))
}
