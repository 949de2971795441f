//! Tables of a flatbuffer, as far as the files of `jax.export` need them.
//!
//! A table begins with the distance back to a list of its fields' places, each counted from the
//! table, or 0 for a field that is absent. Strings, vectors and tables are named by the distance
//! from where they are named. All numbers are little-endian.

use std::cell::Cell;

use helio_ir::{Error, Result};

/// How many bytes of strings, paths and tables may be made for each byte of the file. What is named
/// twice is read twice, so a small file could ask for any amount.
const GROWTH: usize = 64;

/// A file, and how much may still be made of it.
pub(super) struct File<'a> {
    bytes: &'a [u8],
    room: Cell<usize>,
}

impl<'a> File<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        File { bytes, room: Cell::new(bytes.len().saturating_mul(GROWTH)) }
    }

    /// Counts what is made of the file. Errors: it is more than a limit.
    pub(super) fn charge(&self, bytes: usize) -> Result<()> {
        let room = self.room.get().checked_sub(bytes);
        self.room.set(room.ok_or_else(|| {
            Error::exhausted(format!("flatbuffer: more than {GROWTH} times the size of the file"))
        })?);
        Ok(())
    }

    /// The outermost table.
    pub(super) fn root(&'a self) -> Result<Table<'a>> {
        Table::new(self, follow(self.bytes, 0)?)
    }
}

/// A table: the file, and where the table begins.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    pub(super) file: &'a File<'a>,
    at: usize,
}

/// The error for a file that is not as JAX writes it.
pub(super) fn wrong(detail: &str) -> Error {
    Error::invalid(format!("flatbuffer: {detail}"))
}

fn number<const N: usize>(file: &[u8], at: usize) -> Result<[u8; N]> {
    let bytes = at.checked_add(N).and_then(|end| file.get(at..end));
    bytes.and_then(|bytes| bytes.try_into().ok()).ok_or_else(|| {
        let size = file.len();
        wrong(&format!("{N} bytes are needed at byte {at} of {size}"))
    })
}

fn u16_at(file: &[u8], at: usize) -> Result<u16> {
    number(file, at).map(u16::from_le_bytes)
}

fn u32_at(file: &[u8], at: usize) -> Result<u32> {
    number(file, at).map(u32::from_le_bytes)
}

/// What is named at a place: the place itself and the distance that stands there.
fn follow(file: &[u8], at: usize) -> Result<usize> {
    let distance = u32_at(file, at)? as usize;
    at.checked_add(distance).ok_or_else(|| wrong("a distance beyond all memory"))
}

impl<'a> Table<'a> {
    fn new(file: &'a File<'a>, at: usize) -> Result<Self> {
        number::<4>(file.bytes, at)?;
        file.charge(size_of::<Table<'_>>())?;
        Ok(Table { file, at })
    }

    fn data(&self) -> &'a [u8] {
        self.file.bytes
    }

    /// Where a field stands, if it is there.
    fn field(&self, field: usize) -> Result<Option<usize>> {
        let back = i32::from_le_bytes(number(self.data(), self.at)?) as i64;
        let places = usize::try_from(self.at as i64 - back);
        let places = places.map_err(|_| wrong("a table whose fields begin before the file"))?;
        let size = usize::from(u16_at(self.data(), places)?);
        let place = 4 + 2 * field;
        if place + 2 > size {
            return Ok(None);
        }
        let offset = usize::from(u16_at(self.data(), places + place)?);
        Ok((offset > 0).then_some(self.at + offset))
    }

    /// A number of one byte; 0 if it is absent.
    pub(super) fn u8(&self, field: usize) -> Result<u8> {
        let at = self.field(field)?;
        at.map_or(Ok(0), |at| number::<1>(self.data(), at).map(|[byte]| byte))
    }

    /// A number of two bytes; 0 if it is absent.
    pub(super) fn u16(&self, field: usize) -> Result<u16> {
        self.field(field)?.map_or(Ok(0), |at| u16_at(self.data(), at))
    }

    /// A table in this one.
    pub(super) fn table(&self, field: usize) -> Result<Option<Table<'a>>> {
        let Some(at) = self.field(field)? else { return Ok(None) };
        Table::new(self.file, follow(self.data(), at)?).map(Some)
    }

    /// The first element of a vector of elements of this size, and how many there are.
    fn vector(&self, field: usize, size: usize) -> Result<Option<(usize, usize)>> {
        let Some(at) = self.field(field)? else { return Ok(None) };
        let at = follow(self.data(), at)?;
        let count = u32_at(self.data(), at)? as usize;
        let first = at + 4;
        match count.checked_mul(size).and_then(|bytes| bytes.checked_add(first)) {
            Some(end) if end <= self.data().len() => Ok(Some((first, count))),
            _ => Err(wrong(&format!("a vector of {count} elements at byte {at}"))),
        }
    }

    /// A vector of bytes.
    pub(super) fn bytes(&self, field: usize) -> Result<Option<&'a [u8]>> {
        let found = self.vector(field, 1)?;
        Ok(found.map(|(first, count)| &self.data()[first..first + count]))
    }

    /// A vector of numbers of two bytes; empty if it is absent.
    pub(super) fn u16s(&self, field: usize) -> Result<Vec<u16>> {
        let (first, count) = self.vector(field, 2)?.unwrap_or_default();
        (0..count).map(|i| u16_at(self.data(), first + 2 * i)).collect()
    }

    /// A vector of tables; empty if it is absent.
    pub(super) fn tables(&self, field: usize) -> Result<Vec<Table<'a>>> {
        let (first, count) = self.vector(field, 4)?.unwrap_or_default();
        (0..count).map(|i| Table::new(self.file, follow(self.data(), first + 4 * i)?)).collect()
    }

    /// A string.
    pub(super) fn string(&self, field: usize) -> Result<Option<String>> {
        self.bytes(field)?.map(text).transpose()
    }

    /// A vector of strings; empty if it is absent.
    pub(super) fn strings(&self, field: usize) -> Result<Vec<String>> {
        let (first, count) = self.vector(field, 4)?.unwrap_or_default();
        let string = |i: usize| {
            let at = follow(self.data(), first + 4 * i)?;
            let length = u32_at(self.data(), at)? as usize;
            self.file.charge(length.saturating_add(size_of::<String>()))?;
            let bytes = (at + 4).checked_add(length).and_then(|end| self.data().get(at + 4..end));
            text(bytes.ok_or_else(|| wrong(&format!("a string of {length} bytes at byte {at}")))?)
        };
        (0..count).map(string).collect()
    }
}

fn text(bytes: &[u8]) -> Result<String> {
    let text = std::str::from_utf8(bytes).map_err(|_| wrong("a string that is not UTF-8"))?;
    Ok(text.to_owned())
}
