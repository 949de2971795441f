//! Files of the `.safetensors` format: arrays by name, read and written.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use helio_ir::{ElementType, Error, Result, memory};
use safetensors::tensor::{Metadata, TensorInfo};
use safetensors::{Dtype, SafeTensorError, SafeTensors};

use super::{Tensor, TensorElement, io_error};

fn element_of(dtype: Dtype) -> Result<ElementType> {
    ElementType::ALL
        .iter()
        .copied()
        .find(|&element| dtype_of(element) == Some(dtype))
        .ok_or_else(|| Error::unimplemented(format!("arrays of safetensors type {dtype:?}")))
}

pub(super) fn dtype_of(element: ElementType) -> Option<Dtype> {
    use ElementType as E;
    Some(match element {
        E::Pred => Dtype::BOOL,
        E::S8 => Dtype::I8,
        E::S16 => Dtype::I16,
        E::S32 => Dtype::I32,
        E::S64 => Dtype::I64,
        E::U8 => Dtype::U8,
        E::U16 => Dtype::U16,
        E::U32 => Dtype::U32,
        E::U64 => Dtype::U64,
        E::F4E2M1FN => Dtype::F4,
        E::F8E4M3FN => Dtype::F8_E4M3,
        E::F8E4M3FNUZ => Dtype::F8_E4M3FNUZ,
        E::F8E5M2 => Dtype::F8_E5M2,
        E::F8E5M2FNUZ => Dtype::F8_E5M2FNUZ,
        E::F8E8M0FNU => Dtype::F8_E8M0,
        E::F16 => Dtype::F16,
        E::BF16 => Dtype::BF16,
        E::F32 => Dtype::F32,
        E::F64 => Dtype::F64,
        E::C64 => Dtype::C64,
        E::S2 | E::S4 | E::U2 | E::U4 => return None,
        E::F8E3M4 | E::F8E4M3 | E::F8E4M3B11FNUZ | E::C128 => return None,
    })
}

pub(super) fn read(mut reader: impl Read + Seek) -> Result<BTreeMap<String, Tensor>> {
    let len = reader.seek(SeekFrom::End(0)).map_err(io_error)?;
    memory::ensure_available(usize::try_from(len).unwrap_or(usize::MAX))?;
    reader.rewind().map_err(io_error)?;
    let mut file = Vec::new();
    // No further: a device may say that it is empty and never end.
    reader.take(len).read_to_end(&mut file).map_err(io_error)?;
    let tensors = SafeTensors::deserialize(&file).map_err(|e| damaged(&file, e))?;
    let convert = |(name, view): (&str, safetensors::tensor::TensorView<'_>)| {
        let element = element_of(view.dtype()).map_err(|e| e.context(name))?;
        let bytes = match view.dtype() {
            Dtype::F4 => unpack_nibbles(view.data()),
            _ => view.data().to_vec(),
        };
        let element = TensorElement::Known(element);
        Ok((name.to_owned(), Tensor { dims: view.shape().to_vec(), element, bytes }))
    };
    tensors.iter().map(convert).collect()
}

/// What is wrong with a file, in terms of the format.
fn damaged(file: &[u8], error: SafeTensorError) -> Error {
    use SafeTensorError as E;
    let size = file.len();
    let announced = || file.first_chunk().map_or(0, |length| u64::from_le_bytes(*length));
    let what = match error {
        E::HeaderTooSmall => {
            format!(
                "not a .safetensors file, or cut short: {size} bytes, the length of its header takes 8"
            )
        }
        E::InvalidHeaderLength | E::HeaderTooLarge => {
            let header = announced();
            format!(
                "not a .safetensors file, or cut short: a header of {header} bytes, the file has {size}"
            )
        }
        E::InvalidHeader(_) | E::InvalidHeaderDeserialization(_) => {
            format!("not a .safetensors file, or damaged: its header ({error})")
        }
        E::MetadataIncompleteBuffer => {
            let data = (size as u64).saturating_sub(8).saturating_sub(announced());
            format!("cut short, or damaged: its arrays do not take the {data} bytes of data it has")
        }
        E::TensorInvalidInfo => {
            "damaged: sizes and type of an array do not take the bytes that its header gives it"
                .into()
        }
        E::InvalidOffset(name) => {
            format!("damaged: array {name:?} does not begin where another ends")
        }
        other => other.to_string(),
    };
    Error::invalid(what)
}

pub(super) fn write(path: &Path, tensors: &BTreeMap<String, Tensor>) -> Result<()> {
    let views = tensors.iter().map(|(name, tensor)| {
        let (dtype, size) = match tensor.element {
            TensorElement::Known(element) => (dtype_of(element), element.size_bytes()),
            TensorElement::Raw(size) => (None, size),
        };
        // What the format lacks travels as unsigned integers of its width.
        let dtype = dtype
            .or(match size {
                1 => Some(Dtype::U8),
                2 => Some(Dtype::U16),
                _ => None,
            })
            .ok_or_else(|| Error::unimplemented(format!("{name}: safetensors lacks its type")))?;
        let bytes = match dtype {
            Dtype::F4 => Cow::Owned(pack_nibbles(&tensor.bytes)),
            _ => Cow::Borrowed(tensor.bytes.as_slice()),
        };
        Ok((name.as_str(), Packed { dtype, dims: &tensor.dims, bytes }))
    });
    let mut views = views.collect::<Result<Vec<_>>>()?;
    // As the library writes them: by falling alignment, so that all are aligned.
    views.sort_by(|(a, x), (b, y)| y.dtype.cmp(&x.dtype).then(a.cmp(b)));
    // Not the library's own function, which writes a file of its own that only its owner may read,
    // and puts it in the place of a link.
    let mut writer = BufWriter::new(File::create(path).map_err(io_error)?);
    let header = header(&views)?;
    writer.write_all(&(header.len() as u64).to_le_bytes()).map_err(io_error)?;
    writer.write_all(&header).map_err(io_error)?;
    for (_, packed) in &views {
        writer.write_all(&packed.bytes).map_err(io_error)?;
    }
    writer.flush().map_err(io_error)
}

struct Packed<'a> {
    dtype: Dtype,
    dims: &'a [usize],
    bytes: Cow<'a, [u8]>,
}

/// Names, types, sizes and places of tensors that follow each other, as JSON.
fn header(views: &[(&str, Packed<'_>)]) -> Result<Vec<u8>> {
    let mut end = 0;
    let infos = views.iter().map(|(name, packed)| {
        let begin = end;
        end += packed.bytes.len();
        let shape = packed.dims.to_vec();
        let info = TensorInfo { dtype: packed.dtype, shape, data_offsets: (begin, end) };
        ((*name).to_owned(), info)
    });
    let metadata = Metadata::new(None, infos.collect());
    let metadata = metadata.map_err(|e| Error::invalid(format!("safetensors: {e}")))?;
    let mut header =
        serde_json::to_vec(&metadata).map_err(|e| Error::internal(format!("safetensors: {e}")))?;
    // What comes behind it is aligned.
    header.resize(header.len().next_multiple_of(8), b' ');
    Ok(header)
}

/// Two 4-bit elements a byte, the first in the low half.
fn unpack_nibbles(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().flat_map(|&byte| [byte & 15, byte >> 4]).collect()
}

fn pack_nibbles(elements: &[u8]) -> Vec<u8> {
    let pack = |pair: &[u8]| pair[0] & 15 | pair.get(1).map_or(0, |high| high << 4);
    elements.chunks(2).map(pack).collect()
}
