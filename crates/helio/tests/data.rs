//! Files of arrays, byte for byte as other programs write them.

use std::io::Cursor;

use helio::data::{Format, Tensor, TensorElement, read_from};
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

fn read(file: &[u8]) -> helio::Result<Tensor> {
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
    // The process' account counts what other tests make, too.
    let account = helio::memory::Account::within_process(usize::MAX);
    let _entered = account.enter();
    for header in [vast, long] {
        assert!(read(&npy(1, header, &[0; 16])).is_err());
    }
    // A header of four gigabytes, announced in twelve bytes.
    assert!(read(b"\x93NUMPY\x02\x00\xff\xff\xff\xff").is_err());
    assert_eq!(account.live_bytes(), 0);
    assert!(account.peak_bytes() < 1 << 20, "{}", account.peak_bytes());
}

#[test]
fn what_hlo_lacks_is_refused_by_name() {
    for descr in ["'<f16'", "'|S3'", "'<M8[s]'", "[('a', '<f4')]", "'|O'"] {
        let header = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (1,), }}");
        let error = read(&npy(1, &header, &[0; 16])).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{descr}: {error}");
    }
}

/// A directory of its own, removed at the end.
struct Scratch(std::path::PathBuf);

impl Scratch {
    fn new(test: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("helio-data-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Scratch(dir)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Every format is written as files are: with the permissions of new files, and through links.
#[cfg(unix)]
#[test]
fn files_are_written_in_place() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new("place");
    let plain = scratch.0.join("plain");
    std::fs::write(&plain, "").unwrap();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode();
    let array = helio::Array::new([2], vec![1f32, 2.0]).unwrap();
    let tensors = [("in0".to_owned(), Tensor::from_array(&array))].into();
    for extension in ["npz", "npy", "safetensors"] {
        let (target, link) = (scratch.0.join(extension), scratch.0.join(format!("l.{extension}")));
        std::os::unix::fs::symlink(&target, &link).unwrap();
        helio::data::write(&link, &tensors).unwrap();
        assert_eq!(mode(&target), mode(&plain), "{extension}");
        assert!(link.is_symlink(), "{extension}");
        let back = helio::data::read(&link).unwrap()["in0"].to_array(array.shape()).unwrap();
        assert!(back.same_bits(&array), "{extension}");
    }
}

/// Arrays in files are as long as they are; a bound is the program's.
#[test]
fn padding_is_not_written() {
    let shape = helio::ir::text::parse_shape("f32[<=3,2,<=4]").unwrap();
    let shape = shape.as_array().unwrap();
    let values = (0..24).map(|i| i as f32).collect();
    let array = helio::Array::from_data(shape.clone(), helio::ir::Native::wrap(values)).unwrap();
    let array = array.with_sizes(vec![2, 2, 3]).unwrap();
    let tensor = Tensor::from_array(&array);
    assert_eq!(tensor.dims, [2, 2, 3]);
    let values = [0f32, 1.0, 2.0, 4.0, 5.0, 6.0, 8.0, 9.0, 10.0, 12.0, 13.0, 14.0];
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    assert_eq!(tensor.bytes, bytes);
    let back = tensor.to_array(shape).unwrap();
    assert_eq!(back.sizes(), [2, 2, 3]);
    assert_eq!(back.number(12), array.number(12));
    // A static dimension has its size, and no dimension more than its bound.
    for dims in [[2, 1, 3], [4, 2, 3]] {
        let bytes = vec![0; dims.iter().product::<usize>() * 4];
        let tensor = Tensor { dims: dims.to_vec(), bytes, ..tensor.clone() };
        assert!(tensor.to_array(shape).is_err(), "{dims:?}");
    }
}
