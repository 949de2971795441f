//! The primitives of MLIR bytecode: bytes, variable-width integers, blobs, sections.

use std::fmt::Display;

use helio_ir::{Error, Result};

/// What fills the space before aligned data.
const PADDING: u8 = 0xCB;

/// A position in a part of the file. All parts know the whole file, so that errors and alignment
/// count from its beginning.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    file: &'a [u8],
    /// The byte of the file that is read next.
    at: usize,
    /// The first byte of the file behind this part.
    end: usize,
    /// What the part is, for errors.
    part: &'static str,
}

/// A section as it stands in the file.
pub(super) struct Section<'a> {
    /// What is in it, without the flag of alignment.
    pub(super) kind: u8,
    /// What it holds.
    pub(super) data: Cursor<'a>,
}

impl<'a> Cursor<'a> {
    /// The beginning of a file.
    pub(super) fn new(file: &'a [u8], part: &'static str) -> Self {
        Cursor { file, at: 0, end: file.len(), part }
    }

    /// The same bytes as another part.
    pub(super) fn named(self, part: &'static str) -> Self {
        Cursor { part, ..self }
    }

    /// The number of bytes left in this part.
    pub(super) fn left(&self) -> usize {
        self.end - self.at
    }

    pub(super) fn is_empty(&self) -> bool {
        self.at == self.end
    }

    /// The place in the file, for errors.
    pub(super) fn error(&self, detail: impl Display) -> Error {
        Error::invalid(format!("bytecode, {} at byte {}: {detail}", self.part, self.at))
    }

    /// The error for what helio does not know but MLIR may.
    pub(super) fn unknown(&self, detail: impl Display) -> Error {
        Error::unimplemented(format!("bytecode, {} at byte {}: {detail}", self.part, self.at))
    }

    /// Puts the place in the file before an error that has none.
    pub(super) fn placed(&self, e: Error) -> Error {
        e.context(format_args!("bytecode, {} at byte {}", self.part, self.at))
    }

    /// Errors unless everything has been read.
    pub(super) fn expect_end(&self) -> Result<()> {
        match self.left() {
            0 => Ok(()),
            left => Err(self.error(format!("{left} more bytes; nothing more belongs here"))),
        }
    }

    /// The next byte; `what` it is, for the error.
    pub(super) fn byte(&mut self, what: &str) -> Result<u8> {
        Ok(self.bytes(1, what)?[0])
    }

    /// The next bytes; `what` they are, for the error.
    pub(super) fn bytes(&mut self, count: u64, what: &str) -> Result<&'a [u8]> {
        let left = self.left();
        let Some(count) = usize::try_from(count).ok().filter(|&count| count <= left) else {
            let detail = format!("{what} needs {count} bytes, {left} are left in this part");
            return Err(self.error(detail));
        };
        let bytes = &self.file[self.at..self.at + count];
        self.at += count;
        Ok(bytes)
    }

    /// The next bytes as a part of their own.
    pub(super) fn part(&mut self, count: u64, what: &str) -> Result<Cursor<'a>> {
        let start = self.at;
        self.bytes(count, what)?;
        Ok(Cursor { at: start, end: self.at, ..*self })
    }

    /// A variable-width integer: the number of zero bits at the end of the first byte is that of the
    /// bytes after it.
    pub(super) fn int(&mut self, what: &str) -> Result<u64> {
        let first = self.byte(what)?;
        let more = first.trailing_zeros() as usize; // 8 for zero
        let mut bytes = [0; 8];
        if more == 8 {
            bytes.copy_from_slice(self.bytes(8, what)?);
            return Ok(u64::from_le_bytes(bytes));
        }
        bytes[0] = first;
        bytes[1..=more].copy_from_slice(self.bytes(more as u64, what)?);
        Ok(u64::from_le_bytes(bytes) >> (more + 1))
    }

    /// A variable-width integer whose lowest bit is the sign.
    pub(super) fn signed(&mut self, what: &str) -> Result<i64> {
        let bits = self.int(what)?;
        Ok((bits >> 1) as i64 ^ -((bits & 1) as i64))
    }

    /// A variable-width integer whose lowest bit is a flag.
    pub(super) fn int_and_flag(&mut self, what: &str) -> Result<(u64, bool)> {
        let bits = self.int(what)?;
        Ok((bits >> 1, bits & 1 == 1))
    }

    /// The number of entries that follow, each of which takes a byte or more.
    pub(super) fn count(&mut self, what: &str) -> Result<usize> {
        let count = self.int(what)?;
        self.fits(count, what)
    }

    /// Checks the number of entries that follow, each of which takes a byte or more.
    pub(super) fn fits(&self, count: u64, what: &str) -> Result<usize> {
        let left = self.left();
        let count = usize::try_from(count).ok().filter(|&count| count <= left).ok_or(count);
        count.map_err(|count| {
            self.error(format!("{what} is {count}, with {left} bytes left in this part"))
        })
    }

    /// A list: its length, then its elements.
    pub(super) fn list<T>(
        &mut self,
        what: &str,
        mut element: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let count = self.count(what)?;
        // Elements may be much larger than the byte that announces each, so the list grows as they
        // are read.
        let mut list = Vec::new();
        for _ in 0..count {
            list.push(element(self)?);
        }
        Ok(list)
    }

    /// A list of signed integers.
    pub(super) fn signed_list(&mut self, what: &str) -> Result<Vec<i64>> {
        self.list(what, |cursor| cursor.signed(what))
    }

    /// An integer of `bits` bits: one byte up to 8, a signed variable-width integer up to 64.
    pub(super) fn known_width(&mut self, bits: usize, what: &str) -> Result<u64> {
        match bits {
            0..=8 => Ok(self.byte(what)?.into()),
            9..=64 => Ok(self.signed(what)? as u64),
            _ => Err(self.unknown(format!("{what} has {bits} bits, more than 64"))),
        }
    }

    /// An `f64`, by its bits.
    pub(super) fn f64(&mut self, what: &str) -> Result<f64> {
        Ok(f64::from_bits(self.known_width(64, what)?))
    }

    /// A length and as many bytes.
    pub(super) fn blob(&mut self, what: &str) -> Result<&'a [u8]> {
        let length = self.int(what)?;
        self.bytes(length, what)
    }

    /// Text that ends with a zero byte.
    pub(super) fn zero_terminated(&mut self, what: &str) -> Result<&'a str> {
        let rest = &self.file[self.at..self.end];
        let length = rest.iter().position(|&byte| byte == 0);
        let length = length.ok_or_else(|| self.error(format!("{what} does not end")))?;
        let text = std::str::from_utf8(&rest[..length]);
        let text = text.map_err(|_| self.error(format!("{what} is not UTF-8")))?;
        self.at += length + 1;
        Ok(text)
    }

    /// Passes over padding up to the next multiple of `alignment` bytes from the file's beginning.
    pub(super) fn align(&mut self, alignment: u64) -> Result<()> {
        if !alignment.is_power_of_two() {
            return Err(self.error(format!("alignment is {alignment}, must be a power of two")));
        }
        while !(self.at as u64).is_multiple_of(alignment) {
            let found = self.byte("padding")?;
            if found != PADDING {
                let detail = format!("padding before aligned data is {found:#04x}, must be 0xcb");
                return Err(self.error(detail));
            }
        }
        Ok(())
    }

    /// A section, whatever is in it.
    pub(super) fn section(&mut self) -> Result<Section<'a>> {
        let kind = self.byte("the kind of a section")?;
        let length = self.int("the length of a section")?;
        if kind & 0x80 != 0 {
            let alignment = self.int("the alignment of a section")?;
            self.align(alignment)?;
        }
        Ok(Section { kind: kind & 0x7F, data: self.part(length, "a section")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_all_widths() {
        let read = |bytes: &[u8]| Cursor::new(bytes, "test").int("it").unwrap();
        assert_eq!(read(&[0x0D]), 6);
        assert_eq!(read(&[0x02, 0x01]), 1 << 6);
        assert_eq!(read(&[0xC2, 0x02]), 0xB0);
        assert_eq!(read(&[0x80, 1, 0, 0, 0, 0, 0, 0x80]), (0x80 << 48) | 1);
        assert_eq!(read(&[0x00, 1, 2, 3, 4, 5, 6, 7, 8]), 0x0807_0605_0403_0201);
    }

    #[test]
    fn signs() {
        let read = |byte: u8| Cursor::new(&[byte << 1 | 1], "test").signed("it").unwrap();
        assert_eq!([0, 1, 2, 3].map(read), [0, -1, 1, -2]);
    }

    #[test]
    fn errors_say_where_and_what() {
        let mut cursor = Cursor::new(&[0x03, 0x00, 0x01], "test");
        cursor.int("a count").unwrap();
        let e = cursor.int("a length").unwrap_err();
        assert_eq!(
            e.detail(),
            "bytecode, test at byte 2: a length needs 8 bytes, 1 are left in this part"
        );
    }
}
