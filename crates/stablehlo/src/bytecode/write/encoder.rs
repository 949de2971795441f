//! The primitives of MLIR bytecode, to be written.

/// Bytes that grow.
#[derive(Clone, Debug, Default)]
pub(super) struct Encoder {
    pub(super) bytes: Vec<u8>,
}

impl Encoder {
    pub(super) fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    /// A variable-width integer: as many zero bits at the end of the first byte as bytes follow it.
    pub(super) fn int(&mut self, value: u64) {
        for count in 1..=8 {
            if value < 1 << (7 * count) {
                let bits = (value << count) | (1 << (count - 1));
                self.bytes.extend_from_slice(&bits.to_le_bytes()[..count]);
                return;
            }
        }
        self.byte(0);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// A variable-width integer whose lowest bit is the sign.
    pub(super) fn signed(&mut self, value: i64) {
        self.int((value << 1) as u64 ^ (value >> 63) as u64);
    }

    /// A variable-width integer whose lowest bit is a flag.
    pub(super) fn int_and_flag(&mut self, value: u64, flag: bool) {
        self.int((value << 1) | u64::from(flag));
    }

    /// A list: its length, then its elements.
    pub(super) fn list<T>(&mut self, list: &[T], mut write: impl FnMut(&mut Self, &T)) {
        self.int(list.len() as u64);
        for element in list {
            write(self, element);
        }
    }

    pub(super) fn ints(&mut self, list: &[u64]) {
        self.list(list, |encoder, &value| encoder.int(value));
    }

    pub(super) fn signed_list(&mut self, list: &[i64]) {
        self.list(list, |encoder, &value| encoder.signed(value));
    }

    /// A length and as many bytes.
    pub(super) fn blob(&mut self, bytes: &[u8]) {
        self.int(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    /// An integer of `bits` bits: one byte up to 8, else a signed variable-width integer.
    pub(super) fn known_width(&mut self, value: u64, bits: u32) {
        if bits <= 8 { self.byte(value as u8) } else { self.signed(value as i64) }
    }

    pub(super) fn section(&mut self, kind: u8, data: &Encoder) {
        self.byte(kind);
        self.blob(&data.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::cursor::Cursor;
    use super::*;

    #[test]
    fn integers_are_read_back() {
        for shift in 0..64 {
            for value in [1_u64 << shift, (1 << shift) - 1, u64::MAX >> shift] {
                let mut encoder = Encoder::default();
                encoder.int(value);
                encoder.signed(value as i64);
                encoder.signed((value as i64).wrapping_neg());
                let mut cursor = Cursor::new(&encoder.bytes, "test");
                assert_eq!(cursor.int("it").unwrap(), value);
                assert_eq!(cursor.signed("it").unwrap(), value as i64);
                assert_eq!(cursor.signed("it").unwrap(), (value as i64).wrapping_neg());
                cursor.expect_end().unwrap();
            }
        }
    }
}
