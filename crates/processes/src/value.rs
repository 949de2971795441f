//! Values as bytes: of channels, and of results that are gathered.

use helio::ir::Shape;
use helio::ir::text::parse_shape;
use helio::{Array, Error, Literal, Memory, Result};

/// What is sent of a value: its shape as text, the sizes at run time of arrays whose shapes leave them
/// open, and the bytes of all arrays. Errors: `ResourceExhausted`.
pub(crate) fn write(value: &Literal, memory: &Memory) -> Result<(String, Vec<u64>, helio::Block)> {
    let leaves = value.leaves();
    let arrays: Vec<&Array> = leaves.iter().filter_map(|leaf| leaf.as_array()).collect();
    let total = arrays.iter().map(|array| array.shape().size_bytes()).sum();
    let mut block = memory.allocate(total)?;
    let (mut rest, mut sizes) = (block.as_mut_slice(), Vec::new());
    for array in arrays {
        let (own, others) = rest.split_at_mut(array.shape().size_bytes());
        array.write_to(own)?;
        rest = others;
        if !array.shape().is_static() {
            sizes.extend(array.sizes().iter().map(|&size| size as u64));
        }
    }
    Ok((value.shape().to_string(), sizes, block))
}

/// The value of which [`write`] gave this. Errors: it did not.
pub(crate) fn read(shape: &str, sizes: &[u64], bytes: &[u8]) -> Result<Literal> {
    let (mut sizes, mut bytes) = (sizes, bytes);
    let value = of_shape(&parse_shape(shape)?, &mut sizes, &mut bytes)?;
    match (sizes, bytes) {
        ([], []) => Ok(value),
        _ => Err(Error::internal(format!("{} bytes after a value of {shape}", bytes.len()))),
    }
}

fn of_shape(shape: &Shape, sizes: &mut &[u64], bytes: &mut &[u8]) -> Result<Literal> {
    match shape {
        Shape::Tuple(elements) => {
            let elements = elements.iter().map(|element| of_shape(element, sizes, bytes));
            elements.collect::<Result<_>>().map(Literal::Tuple)
        }
        Shape::Array(shape) => {
            let missing = || Error::internal(format!("less than a value of {shape}"));
            let (own, rest) = bytes.split_at_checked(shape.size_bytes()).ok_or_else(missing)?;
            *bytes = rest;
            let array = Array::from_bytes(shape.clone(), own)?;
            if shape.is_static() {
                return Ok(Literal::Array(array));
            }
            let (own, rest) = sizes.split_at_checked(shape.rank()).ok_or_else(missing)?;
            *sizes = rest;
            array.with_sizes(own.iter().map(|&size| size as usize).collect()).map(Literal::Array)
        }
        Shape::Token | Shape::Opaque => Ok(Literal::Token),
    }
}

/// Values as bytes, which [`read_all`] reads. Errors: `ResourceExhausted`.
pub fn write_all(values: &[Literal]) -> Result<Vec<u8>> {
    let memory = Memory::new();
    let mut out = Vec::new();
    for value in values {
        let (shape, sizes, block) = write(value, &memory)?;
        for number in [shape.len(), sizes.len(), block.len()] {
            out.extend((number as u64).to_ne_bytes());
        }
        out.extend(shape.as_bytes());
        sizes.iter().for_each(|size| out.extend(size.to_ne_bytes()));
        out.extend(block.as_slice());
    }
    Ok(out)
}

/// The values of which [`write_all`] gave these bytes. Errors: it did not.
pub fn read_all(mut bytes: &[u8]) -> Result<Vec<Literal>> {
    let mut values = Vec::new();
    while !bytes.is_empty() {
        let value = read_first(&mut bytes).ok_or_else(|| Error::internal("bytes of no value"))?;
        values.push(value?);
    }
    Ok(values)
}

fn read_first(bytes: &mut &[u8]) -> Option<Result<Literal>> {
    let mut number = || {
        let (number, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        usize::try_from(u64::from_ne_bytes(*number)).ok()
    };
    let (shape, sizes, body) = (number()?, number()?, number()?);
    let mut part = |length: usize| {
        let (part, rest) = bytes.split_at_checked(length)?;
        *bytes = rest;
        Some(part)
    };
    let (shape, sizes) = (part(shape)?, part(sizes.checked_mul(8)?)?);
    let sizes: Vec<u64> =
        sizes.as_chunks().0.iter().map(|&chunk| u64::from_ne_bytes(chunk)).collect();
    Some(read(std::str::from_utf8(shape).ok()?, &sizes, part(body)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back() {
        let pair = Literal::Tuple(vec![
            Literal::array([2, 2], vec![1f32, 2.0, 3.0, f32::NAN]).unwrap(),
            Literal::Token,
            Literal::scalar(7i8),
        ]);
        let Ok(Shape::Array(open)) = parse_shape("s32[<=3]") else { panic!("a shape") };
        let open = Array::new([3], vec![1i32, 2, 3]).unwrap().with_shape(open).unwrap();
        let open = Literal::Array(open.with_sizes(vec![2]).unwrap());
        let values = [pair, open, Literal::Tuple(Vec::new())];
        let bytes = write_all(&values).unwrap();
        let back = read_all(&bytes).unwrap();
        assert!(values.iter().zip(&back).all(|(a, b)| a.same_bits(b)), "{back:?}");
        assert_eq!(back.len(), 3);
        for end in 1..bytes.len() {
            let _ = read_all(&bytes[..end]);
        }
    }
}
