//! Files of arrays, byte for byte as other programs write them.

use std::io::Cursor;

use helio::data::{Format, TensorElement, read_from};
use helio::ir::ArrayShape;
use helio::{Code, ElementType};

/// A NumPy file as the format's description says: magic, version, length, header, data.
fn npy(version: u8, header: &str, data: &[u8]) -> Vec<u8> {
    let mut file = b"\x93NUMPY".to_vec();
    file.extend([version, 0]);
    let header = format!("{header}\n");
    match version {
        1 => file.extend((header.len() as u16).to_le_bytes()),
        _ => file.extend((header.len() as u32).to_le_bytes()),
    }
    file.extend(header.as_bytes());
    file.extend(data);
    file
}

fn read(file: &[u8]) -> helio::Result<helio::data::Tensor> {
    read_from(Format::Npy, Cursor::new(file)).map(|mut tensors| tensors.remove("in0").expect("one"))
}

#[test]
fn order_and_endianness_are_undone() {
    let data = [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6];
    for version in [1, 2, 3] {
        let header = "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }";
        let tensor = read(&npy(version, header, &data)).unwrap();
        assert_eq!(tensor.element, TensorElement::Known(ElementType::S16));
        let shape = ArrayShape::new(ElementType::S16, [2, 3]).unwrap();
        let array = tensor.to_array(&shape).unwrap();
        assert_eq!(array.as_slice(), Some(&[1i16, 3, 5, 2, 4, 6][..]));
    }
}

/// What `numpy.save` makes of an `ml_dtypes.float8_e5m2` array.
#[test]
fn one_byte_floats_are_raw_bytes() {
    let header = "{'descr': '<f1', 'fortran_order': False, 'shape': (2,), }";
    let tensor = read(&npy(1, header, &[0x3c, 0xc0])).unwrap();
    assert_eq!(tensor.element, TensorElement::Raw(1));
    let shape = ArrayShape::new(ElementType::F8E5M2, [2]).unwrap();
    let array = tensor.to_array(&shape).unwrap();
    assert_eq!([array.number(0).to_f64(), array.number(1).to_f64()], [1.0, -2.0]);
    let wide = ArrayShape::new(ElementType::F32, [2]).unwrap();
    assert_eq!(tensor.to_array(&wide).unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn announced_sizes_make_no_memory() {
    let vast = "{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 16), }";
    let long = "{'descr': '<f8', 'fortran_order': False, 'shape': (100000000,), }";
    let before = helio::memory::live_bytes();
    for header in [vast, long] {
        assert!(read(&npy(1, header, &[0; 16])).is_err());
    }
    // A header of four gigabytes, announced in twelve bytes.
    assert!(read(b"\x93NUMPY\x02\x00\xff\xff\xff\xff").is_err());
    assert_eq!(helio::memory::live_bytes(), before);
}

#[test]
fn what_hlo_lacks_is_refused_by_name() {
    for descr in ["'<f16'", "'|S3'", "'<M8[s]'", "[('a', '<f4')]", "'|O'"] {
        let header = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (1,), }}");
        let error = read(&npy(1, &header, &[0; 16])).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{descr}: {error}");
    }
}
