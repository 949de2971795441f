//! Arrays in files: NumPy's `.npy` and `.npz`, and `.safetensors`.
//!
//! Files know fewer types than HLO does. What NumPy lacks (`bf16`, 8-bit floats, 4-bit integers…)
//! travels as raw bits, in a void or unsigned type of the same width; [`Tensor::to_array`]
//! reinterprets it by the shape that the program states.
//!
//! No file can make a reader take more memory than its contents, or [`crate::memory`]'s limit,
//! allow.

mod npz;
mod safetensors;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::Path;

use helio_ir::types::{DimKind, IndexIter};
use helio_ir::{Array, ArrayShape, ElementType, Error, Result};

/// An array as a file has it: sizes, a type (or only a width) and bytes.
///
/// ```
/// use helio::data::Tensor;
/// let array = helio::Array::from([[1f32, 2.0], [3.0, 4.0]]);
/// let tensor = Tensor::from_array(&array);
/// assert_eq!((&tensor.dims[..], tensor.bytes.len()), (&[2, 2][..], 16));
/// assert_eq!(tensor.to_array(array.shape())?, array);
/// # Ok::<(), helio::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Tensor {
    /// The size of each dimension.
    pub dims: Vec<usize>,
    /// The type of the elements.
    pub element: TensorElement,
    /// The elements in row-major order, little-endian, sub-byte types one byte each.
    pub bytes: Vec<u8>,
}

/// What a file says of the elements' type.
///
/// ```
/// use helio::data::{Tensor, TensorElement};
/// // Two bytes each, of a type that NumPy lacks: the program's shape says which.
/// let tensor = Tensor { dims: vec![1], element: TensorElement::Raw(2), bytes: vec![0x80, 0x3f] };
/// let shape = helio::ir::ArrayShape::new(helio::ElementType::BF16, [1])?;
/// assert_eq!(tensor.to_array(&shape)?.number(0), helio::ir::Number::Float(1.0));
/// # Ok::<(), helio::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorElement {
    /// A type that HLO has, too.
    Known(ElementType),
    /// A type that HLO lacks, whose elements have this many bytes.
    Raw(usize),
}

impl Tensor {
    /// The array in the form of a file. A dynamic dimension is as long as its run-time size: files
    /// hold no padding.
    pub fn from_array(array: &Array) -> Self {
        let element = TensorElement::Known(array.element());
        let (dims, sizes) = (array.dims(), array.sizes());
        let size_bytes = array.element().size_bytes();
        let bytes = match dims == sizes {
            true => array.to_bytes().into_owned(),
            false => {
                let mut cut = vec![0; sizes.iter().product::<usize>() * size_bytes];
                copy_box(&array.to_bytes(), dims, &mut cut, sizes, sizes, size_bytes);
                cut
            }
        };
        Tensor { dims: sizes.to_vec(), element, bytes }
    }

    /// The array of this shape. Raw bytes, and unsigned integers for a type that files lack, are
    /// reinterpreted if the width agrees. The size that a dynamic dimension has in the file is its
    /// run-time size. Errors: `InvalidArgument` if sizes or types differ; `ResourceExhausted`.
    pub fn to_array(&self, shape: &ArrayShape) -> Result<Array> {
        let want = shape.element();
        let same_type = match self.element {
            TensorElement::Known(found) => {
                found == want
                    || (found.is_unsigned_integer()
                        && npz::type_char(want).is_none()
                        && found.size_bytes() == want.size_bytes())
            }
            TensorElement::Raw(bytes) => bytes == want.size_bytes(),
        };
        if !same_type || !self.fits(shape) {
            let found = match self.element {
                TensorElement::Known(element) => element.to_string(),
                TensorElement::Raw(bytes) => format!("{bytes} raw bytes"),
            };
            return Err(Error::invalid(format!(
                "expected {}, found {found}{:?}",
                shape.clone().without_layout(),
                self.dims
            )));
        }
        if self.dims == shape.dims() {
            return Array::from_bytes(shape.clone(), &self.bytes);
        }
        crate::memory::ensure_available(shape.size_bytes())?;
        let mut padded = vec![0; shape.size_bytes()];
        copy_box(&self.bytes, &self.dims, &mut padded, shape.dims(), &self.dims, want.size_bytes());
        Array::from_bytes(shape.clone(), &padded)?.with_sizes(self.dims.clone())
    }

    /// Part `index` along the first dimension, without that dimension; `None` if there is none.
    pub fn row(&self, index: usize) -> Option<Self> {
        let (&rows, dims) = self.dims.split_first()?;
        let row_bytes = self.bytes.len().checked_div(rows)?;
        let bytes = self.bytes.chunks_exact(row_bytes.max(1)).nth(index).unwrap_or_default();
        let is_there = index < rows;
        is_there.then(|| Tensor { dims: dims.to_vec(), element: self.element, bytes: bytes.into() })
    }

    /// Tensors one after the other along a new first dimension: what [`Tensor::row`] takes apart.
    /// Errors: `InvalidArgument` if there is none, or they have not all the same sizes and type;
    /// `ResourceExhausted`.
    pub fn stack(rows: &[Tensor]) -> Result<Self> {
        let Some(first) = rows.first() else { return Err(Error::invalid("a stack of nothing")) };
        let is_alike = |row: &&Tensor| row.dims == first.dims && row.element == first.element;
        if let Some(other) = rows.iter().find(|row| !is_alike(row)) {
            let (found, wanted) = (&other.dims, &first.dims);
            return Err(Error::invalid(format!(
                "arrays of sizes {wanted:?} and {found:?} do not stack"
            )));
        }
        crate::memory::ensure_available(first.bytes.len().saturating_mul(rows.len()))?;
        let dims = [&[rows.len()], &first.dims[..]].concat();
        let bytes = rows.iter().map(|row| &row.bytes[..]).collect::<Vec<_>>().concat();
        Ok(Tensor { dims, element: first.element, bytes })
    }

    /// Whether its sizes are those of a shape: the same, or in dynamic dimensions smaller.
    fn fits(&self, shape: &ArrayShape) -> bool {
        self.dims.len() == shape.rank()
            && self
                .dims
                .iter()
                .zip(shape.dims_and_kinds())
                .all(|(&size, (dim, kind))| size == dim || (kind != DimKind::Static && size < dim))
    }
}

/// Copies the first `sizes[d]` indices of each dimension `d` between row-major arrays.
fn copy_box(
    from: &[u8],
    from_dims: &[usize],
    to: &mut [u8],
    to_dims: &[usize],
    sizes: &[usize],
    size_bytes: usize,
) {
    let Some((&row, outer)) = sizes.split_last() else { return };
    let begin = |point: &[usize], dims: &[usize]| {
        let index = point.iter().chain([&0]).zip(dims).fold(0, |at, (&i, &dim)| at * dim + i);
        index * size_bytes
    };
    let mut points = IndexIter::new(outer);
    while let Some(point) = points.next_point() {
        let (source, target) = (begin(point, from_dims), begin(point, to_dims));
        let bytes = row * size_bytes;
        to[target..target + bytes].copy_from_slice(&from[source..source + bytes]);
    }
}

/// Reads all arrays of an `.npz` or `.safetensors` file (or the one of an `.npy`, as `in0`).
///
/// Errors: `InvalidArgument` if the file cannot be read, is of another kind, damaged, or cut short;
/// `ResourceExhausted` if it does not fit memory.
///
/// ```
/// use std::collections::BTreeMap;
/// use helio::data::{self, Tensor};
/// let path = std::env::temp_dir().join(format!("helio-read-{}.npz", std::process::id()));
/// let arrays = BTreeMap::from([("x".to_owned(), Tensor::from_array(&[1f32, 2.0].into()))]);
/// data::write(&path, &arrays)?;
/// assert_eq!(data::read(&path)?["x"].dims, [2]);
/// # std::fs::remove_file(&path).ok();
/// # Ok::<(), helio::Error>(())
/// ```
pub fn read(path: impl AsRef<Path>) -> Result<BTreeMap<String, Tensor>> {
    let path = path.as_ref();
    let format = Format::of(path)?;
    File::open(path)
        .map_err(io_error)
        .and_then(|file| read_from(format, BufReader::new(file)))
        .map_err(|e| e.context(path.display()))
}

/// Reads all arrays of a file that is open, or in memory. Errors: as for [`read`].
///
/// ```
/// use helio::data::{Format, read_from};
/// let damaged = std::io::Cursor::new(b"no zip");
/// assert!(read_from(Format::Npz, damaged).is_err());
/// ```
pub fn read_from(format: Format, reader: impl Read + Seek) -> Result<BTreeMap<String, Tensor>> {
    match format {
        Format::Npz => npz::read_npz(reader),
        Format::Npy => npz::read_npy(reader),
        Format::Safetensors => safetensors::read(reader),
    }
}

/// Writes arrays to an `.npz` or `.safetensors` file, or a single one to an `.npy`.
///
/// Errors: `InvalidArgument` if the file cannot be written or cannot hold an array's type.
///
/// ```
/// use std::collections::BTreeMap;
/// use helio::data::{self, Tensor};
/// let path = std::env::temp_dir().join(format!("helio-write-{}.npz", std::process::id()));
/// let arrays = BTreeMap::from([("x".to_owned(), Tensor::from_array(&[1f32, 2.0].into()))]);
/// data::write(&path, &arrays)?;
/// assert_eq!(data::read(&path)?["x"].dims, [2]);
/// # std::fs::remove_file(&path).ok();
/// # Ok::<(), helio::Error>(())
/// ```
pub fn write(path: impl AsRef<Path>, tensors: &BTreeMap<String, Tensor>) -> Result<()> {
    let path = path.as_ref();
    let describe = |e: Error| e.context(path.display());
    match Format::of(path)? {
        Format::Npz => npz::write_npz(path, tensors).map_err(describe),
        Format::Npy => npz::write_npy(path, tensors).map_err(describe),
        Format::Safetensors => safetensors::write(path, tensors).map_err(describe),
    }
}

/// The format of a file with arrays.
///
/// ```
/// use std::path::Path;
/// use helio::data::Format;
/// assert_eq!(Format::of(Path::new("weights.safetensors"))?, Format::Safetensors);
/// assert!(Format::of(Path::new("weights.txt")).is_err());
/// # Ok::<(), helio::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// A zip of NumPy arrays.
    Npz,
    /// One NumPy array.
    Npy,
    /// The safetensors format.
    Safetensors,
}

impl Format {
    /// Whether files of this format say of elements that they are of this type; others are written as raw
    /// bits, which only a shape tells apart.
    ///
    /// ```
    /// use helio::{ElementType, data::Format};
    /// assert!(Format::Safetensors.has(ElementType::BF16) && !Format::Npz.has(ElementType::BF16));
    /// ```
    pub fn has(self, element: ElementType) -> bool {
        match self {
            Format::Npz | Format::Npy => npz::type_char(element).is_some(),
            Format::Safetensors => safetensors::dtype_of(element).is_some(),
        }
    }

    /// The format that a path's extension names. Errors: `InvalidArgument` if it names none.
    pub fn of(path: &Path) -> Result<Self> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("npz") => Ok(Format::Npz),
            Some("npy") => Ok(Format::Npy),
            Some("safetensors") => Ok(Format::Safetensors),
            _ => Err(Error::invalid(format!(
                "{}: the name of a file with arrays ends in .npz, .npy or .safetensors",
                path.display()
            ))),
        }
    }
}

fn io_error(error: std::io::Error) -> Error {
    match error.kind() {
        // The library's own words are about a buffer.
        std::io::ErrorKind::UnexpectedEof => Error::invalid("the file is cut short"),
        _ => Error::invalid(error.to_string()),
    }
}
