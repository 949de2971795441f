//! `dot` and `einsum`, as products of any dimensions.

use helio_ir::ops::{Dot, DotDims};
use helio_ir::{Error, InstrId, Result};

use super::body::Body;
use super::operation::Site;
use crate::table::{self, Algorithm};

impl<'m> Body<'_, 'm> {
    /// Products that are not written as `dot_general`.
    pub(super) fn product(&mut self, name: &str, site: &Site<'_, 'm>) -> Result<InstrId> {
        if name != "dot" {
            return self.einsum(name, site);
        }
        let [x, y] = site.operands()?;
        let dims = DotDims {
            lhs_contracting: vec![self.array(x)?.rank().saturating_sub(1)],
            rhs_contracting: vec![0],
            ..DotDims::default()
        };
        self.dot(site, x, y, dims)
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
            precision: table::precision(site.attrs)?,
            algorithm: self.reading(site, &[], |from| Algorithm.read(from))?,
        };
        self.push(op, &[x, y])
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
