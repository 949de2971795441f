//! NumPy's `.npy` (one array) and `.npz` (a zip of them).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;

use helio_ir::{ElementType, Error, Result, memory};
use npyz::{DType, Endianness, TypeChar, TypeStr, WriterBuilder};
use py_literal::Value;

use super::{Tensor, TensorElement, io_error};

/// The longest header taken for one; NumPy's own are some hundred bytes long.
const MAX_HEADER_BYTES: usize = 64 << 10;

/// The most brackets taken for a header's; one pair around all, one for the shape, and those of a
/// record's fields, which are refused by name.
const MAX_HEADER_BRACKETS: usize = 100;

/// NumPy's type for an element type, if it has one.
pub(super) fn type_char(element: ElementType) -> Option<TypeChar> {
    use ElementType as E;
    Some(match element {
        E::Pred => TypeChar::Bool,
        E::S8 | E::S16 | E::S32 | E::S64 => TypeChar::Int,
        E::U8 | E::U16 | E::U32 | E::U64 => TypeChar::Uint,
        E::F16 | E::F32 | E::F64 => TypeChar::Float,
        E::C64 | E::C128 => TypeChar::Complex,
        _ => return None,
    })
}

fn element_of(ty: &TypeStr) -> Result<TensorElement> {
    let size = usize::try_from(ty.size_field()).unwrap_or(usize::MAX);
    if ty.type_char() == TypeChar::RawData {
        return Ok(TensorElement::Raw(size));
    }
    ElementType::ALL
        .iter()
        .find(|&&e| type_char(e) == Some(ty.type_char()) && e.size_bytes() == size)
        .map(|&e| TensorElement::Known(e))
        .ok_or_else(|| Error::invalid(format!("arrays of NumPy type {ty} have no HLO type")))
}

pub(super) fn read_npz(mut reader: impl Read + Seek) -> Result<BTreeMap<String, Tensor>> {
    let zip_error = |e: zip::result::ZipError| Error::invalid(e.to_string());
    let size = reader.seek(SeekFrom::End(0)).map_err(io_error)?;
    let mut archive = zip::ZipArchive::new(reader).map_err(|_| {
        let detail = format!(
            "not an .npz file (a zip, its directory at the end), or cut short: {size} bytes"
        );
        Error::invalid(detail)
    })?;
    let mut tensors = BTreeMap::new();
    for i in 0..archive.len() {
        let entry = archive.by_index(i).map_err(zip_error)?;
        let name = entry.name().map_err(zip_error)?;
        let Some(name) = name.strip_suffix(".npy").map(str::to_owned) else { continue };
        let tensor = read_array(entry).map_err(|e| e.context(&name))?;
        tensors.insert(name, tensor);
    }
    Ok(tensors)
}

pub(super) fn read_npy(reader: impl Read) -> Result<BTreeMap<String, Tensor>> {
    Ok(BTreeMap::from([("in0".to_owned(), read_array(reader)?)]))
}

fn read_array(mut reader: impl Read) -> Result<Tensor> {
    let Header { ty, fortran_order, dims } = read_header(&mut reader)?;
    let element = element_of(&ty)?;
    let size = match element {
        TensorElement::Known(element) => element.size_bytes(),
        TensorElement::Raw(size) => size,
    };
    let len = dims.iter().try_fold(size, |len, &dim| len.checked_mul(dim)).ok_or_else(|| {
        Error::invalid(format!("an array of {dims:?} elements of {size} bytes is too large"))
    })?;
    memory::ensure_available(len)?;
    // Read at most one byte more than announced, and let the vector grow with what is there: a
    // header alone makes no memory.
    let mut bytes = Vec::new();
    reader.take(len as u64 + 1).read_to_end(&mut bytes).map_err(io_error)?;
    if bytes.len() != len {
        let found = if bytes.len() > len { "more".to_owned() } else { bytes.len().to_string() };
        return Err(Error::invalid(format!("{len} bytes of data announced, {found} found")));
    }
    if ty.endianness() == Endianness::Big {
        // Each part of a complex number has its own order of bytes.
        let part = if ty.type_char() == TypeChar::Complex { size / 2 } else { size };
        bytes.chunks_exact_mut(part.max(1)).for_each(<[u8]>::reverse);
    }
    if fortran_order {
        bytes = fortran_to_row_major(&bytes, &dims, size);
    }
    Ok(Tensor { dims, element, bytes })
}

/// What stands before the data.
struct Header {
    ty: TypeStr,
    fortran_order: bool,
    dims: Vec<usize>,
}

/// Reads magic, version, length, and a dictionary in Python's notation. (Not `npyz::NpyHeader`: it
/// takes the announced length for granted, and multiplies sizes unchecked.)
fn read_header(reader: &mut impl Read) -> Result<Header> {
    let mut magic = [0; 8];
    reader.read_exact(&mut magic).map_err(io_error)?;
    if !magic.starts_with(b"\x93NUMPY") {
        return Err(Error::invalid("not an array in NumPy's format"));
    }
    let mut length = [0; 4];
    let width = if magic[6] == 1 { 2 } else { 4 };
    reader.read_exact(&mut length[..width]).map_err(io_error)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_HEADER_BYTES {
        return Err(Error::invalid(format!(
            "a header of {length} bytes; at most {MAX_HEADER_BYTES} are read"
        )));
    }
    let mut text = vec![0; length];
    reader.read_exact(&mut text).map_err(io_error)?;
    let malformed = || Error::invalid("the header of the array is malformed");
    let text = String::from_utf8(text).map_err(|_| malformed())?;
    // The parser of Python's notation recurses.
    let open = text.matches(['(', '[', '{']).count();
    if open > MAX_HEADER_BRACKETS {
        return Err(malformed());
    }
    let Ok(Value::Dict(entries)) = text.trim().parse::<Value>() else { return Err(malformed()) };
    let entry = |name: &str| {
        let is_named = |key: &Value| matches!(key, Value::String(key) if key == name);
        entries.iter().find(|(key, _)| is_named(key)).map(|(_, value)| value).ok_or_else(malformed)
    };
    let Value::String(descr) = entry("descr")? else {
        return Err(Error::invalid("arrays of records have no HLO type"));
    };
    // The 8-bit floats of Python's `ml_dtypes` are written as one-byte floats, a type that NumPy
    // itself does not have: raw bytes, for all that the file says.
    let descr = if descr.ends_with("f1") { "|V1" } else { descr.as_str() };
    let ty = descr
        .parse()
        .map_err(|_| Error::invalid(format!("arrays of NumPy type {descr} have no HLO type")))?;
    let Value::Boolean(fortran_order) = *entry("fortran_order")? else { return Err(malformed()) };
    let Value::Tuple(shape) = entry("shape")? else { return Err(malformed()) };
    let dims = shape.iter().map(|dim| match dim {
        Value::Integer(dim) => dim.to_string().parse().map_err(|_| malformed()),
        _ => Err(malformed()),
    });
    Ok(Header { ty, fortran_order, dims: dims.collect::<Result<_>>()? })
}

fn fortran_to_row_major(bytes: &[u8], dims: &[usize], size: usize) -> Vec<u8> {
    let mut row_major = Vec::with_capacity(bytes.len());
    let mut points = helio_ir::types::IndexIter::new(dims);
    while let Some(point) = points.next_point() {
        let at = point.iter().zip(dims).rev().fold(0, |at, (&i, &dim)| at * dim + i);
        row_major.extend_from_slice(&bytes[at * size..][..size]);
    }
    row_major
}

pub(super) fn write_npz(path: &Path, tensors: &BTreeMap<String, Tensor>) -> Result<()> {
    let zip_error = |e: zip::result::ZipError| Error::invalid(e.to_string());
    let mut file = BufWriter::new(File::create(path).map_err(io_error)?);
    let mut writer = StickyWriter { inner: &mut file, at: 0, error: None };
    let mut archive = zip::ZipWriter::new(&mut writer);
    // Stored, as `numpy.savez` does, and with room for more than 4 GiB.
    let options = zip::write::SimpleFileOptions::default()
        .compression_method(zip::CompressionMethod::Stored)
        .large_file(true);
    for (name, tensor) in tensors {
        archive.start_file(format!("{name}.npy"), options).map_err(zip_error)?;
        write_array(&mut archive, tensor)?;
    }
    archive.finish().map_err(zip_error)?;
    match writer.error {
        Some(error) => Err(io_error(error)),
        None => file.flush().map_err(io_error),
    }
}

/// A writer that keeps its first error, and from then on only pretends: `ZipWriter` would write its
/// directory all the same when it is dropped, and print that this fails.
struct StickyWriter<'w, W> {
    inner: &'w mut W,
    /// The position.
    at: u64,
    error: Option<std::io::Error>,
}

impl<W: Write> Write for StickyWriter<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = match self.error {
            None => self.inner.write(bytes),
            Some(_) => Ok(bytes.len()),
        };
        let count = match written {
            Err(error) if error.kind() == ErrorKind::Interrupted => return Err(error),
            Err(error) => {
                self.error = Some(error);
                bytes.len()
            }
            Ok(count) => count,
        };
        self.at += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        if self.error.is_none() {
            self.error = self.inner.flush().err();
        }
        Ok(())
    }
}

impl<W: Seek> Seek for StickyWriter<'_, W> {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        if self.error.is_none() {
            match self.inner.seek(to) {
                Ok(at) => self.at = at,
                Err(error) => self.error = Some(error),
            }
        }
        if self.error.is_some()
            && let SeekFrom::Start(at) = to
        {
            self.at = at;
        }
        Ok(self.at)
    }
}

pub(super) fn write_npy(path: &Path, tensors: &BTreeMap<String, Tensor>) -> Result<()> {
    let [tensor] = tensors.values().collect::<Vec<_>>()[..] else {
        let count = tensors.len();
        return Err(Error::invalid(format!("an .npy file holds one array, not {count}")));
    };
    let mut writer = BufWriter::new(File::create(path).map_err(io_error)?);
    write_array(&mut writer, tensor)?;
    writer.flush().map_err(io_error)
}

fn write_array(writer: &mut impl Write, tensor: &Tensor) -> Result<()> {
    let (char, size) = match tensor.element {
        TensorElement::Known(element) => {
            (type_char(element).unwrap_or(TypeChar::RawData), element.size_bytes())
        }
        TensorElement::Raw(size) => (TypeChar::RawData, size),
    };
    let endianness = if size == 1 || char == TypeChar::RawData {
        Endianness::Irrelevant
    } else {
        Endianness::Little
    };
    let ty: TypeStr = format!("{}{}{size}", endianness.to_str(), char.to_str())
        .parse()
        .map_err(|e| Error::internal(format!("NumPy type: {e}")))?;
    let dims: Vec<u64> = tensor.dims.iter().map(|&dim| dim as u64).collect();
    npyz::WriteOptions::new_header_only()
        .dtype(DType::Plain(ty))
        .shape(&dims)
        .writer(&mut *writer)
        .write_header_only()
        .map_err(io_error)?;
    writer.write_all(&tensor.bytes).map_err(io_error)
}
