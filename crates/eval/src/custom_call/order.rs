//! Arrays in the order of a layout: for functions that want other layouts than row-major ones.

use helio_ir::{ArrayShape, Result, memory};

/// Copies of the arrays that are not row-major for the function, by number.
pub(super) struct Reordered {
    copies: Vec<Option<Words>>,
}

/// Bytes at an address that suits every element.
struct Words {
    words: Vec<u128>,
    len: usize,
}

impl Words {
    fn new(len: usize) -> Result<Self> {
        memory::ensure_available(len)?;
        Ok(Words { words: vec![0; len.div_ceil(size_of::<u128>())], len })
    }

    fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.len]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.len]
    }
}

impl Reordered {
    /// The operands, copied where their order is another.
    pub(super) fn operands(shapes: &[Option<&ArrayShape>], operands: &[&[u8]]) -> Result<Self> {
        let copy = |(shape, bytes): (&Option<&ArrayShape>, &&[u8])| {
            let Some(shape) = shape.filter(|shape| !is_row_major(shape)) else { return Ok(None) };
            let mut words = Words::new(bytes.len())?;
            let to = words.bytes_mut();
            each(shape, |logical, physical| to[physical.clone()].copy_from_slice(&bytes[logical]));
            Ok(Some(words))
        };
        let copies = shapes.iter().zip(operands).map(copy).collect::<Result<_>>()?;
        Ok(Reordered { copies })
    }

    /// Room for results whose order is another, with what is there now.
    pub(super) fn results(shapes: &[Option<&ArrayShape>], results: &[&mut [u8]]) -> Result<Self> {
        let operands: Vec<&[u8]> = results.iter().map(|bytes| &**bytes).collect();
        Self::operands(shapes, &operands)
    }

    /// What the function reads.
    pub(super) fn operand_slices<'s>(&'s self, operands: &[&'s [u8]]) -> Vec<&'s [u8]> {
        let each = self.copies.iter().zip(operands);
        each.map(|(copy, &bytes)| copy.as_ref().map_or(bytes, Words::bytes)).collect()
    }

    /// What the function writes.
    pub(super) fn result_slices<'s>(
        &'s mut self,
        results: &'s mut [&mut [u8]],
    ) -> Vec<&'s mut [u8]> {
        let each = self.copies.iter_mut().zip(results);
        each.map(|(copy, bytes)| match copy {
            Some(words) => words.bytes_mut(),
            None => &mut **bytes,
        })
        .collect()
    }

    /// Puts results where they belong.
    pub(super) fn put_back(&self, shapes: &[Option<&ArrayShape>], results: &mut [&mut [u8]]) {
        for ((copy, shape), to) in self.copies.iter().zip(shapes).zip(results) {
            let (Some(words), Some(shape)) = (copy, shape) else { continue };
            let from = words.bytes();
            each(shape, |logical, physical| to[logical].copy_from_slice(&from[physical]));
        }
    }
}

fn is_row_major(shape: &ArrayShape) -> bool {
    shape.layout().is_none_or(|layout| {
        layout.minor_to_major.len() != shape.rank()
            || layout.minor_to_major.iter().rev().copied().eq(0..shape.rank())
    })
}

/// Visits the bytes of each element: where it is in row-major order, and where in its layout's.
fn each(shape: &ArrayShape, mut visit: impl FnMut(std::ops::Range<usize>, std::ops::Range<usize>)) {
    let size = shape.element().size_bytes();
    let dims = shape.dims();
    let mut strides = vec![0; dims.len()];
    let mut next = size;
    for &dim in shape.layout().map_or(&[][..], |layout| &layout.minor_to_major) {
        strides[dim] = next;
        next *= dims[dim];
    }
    let mut index = vec![0; dims.len()];
    let mut physical = 0;
    for logical in 0..shape.element_count() {
        let from = logical * size;
        visit(from..from + size, physical..physical + size);
        for dim in (0..dims.len()).rev() {
            index[dim] += 1;
            physical += strides[dim];
            if index[dim] < dims[dim] {
                break;
            }
            physical -= strides[dim] * dims[dim];
            index[dim] = 0;
        }
    }
}
