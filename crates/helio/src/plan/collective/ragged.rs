//! `ragged-all-to-all` on bytes: the rows that each participant sends, written where they belong.

use helio_eval::services::Given;
use helio_ir::{ArrayShape, ElementType, Error, Result};

/// How the operands of a `ragged-all-to-all` lie in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ragged {
    /// The bytes of a row of the first two operands.
    row_bytes: usize,
    /// The rows of the first operand and of the second.
    rows: [usize; 2],
    /// The type of the numbers in lists.
    index: ElementType,
    /// How many numbers each list has in front, and how many belong to each of them.
    slots: usize,
}

impl Ragged {
    /// Those of these shapes; `None` if they are others than the operation has.
    pub(super) fn of(operands: &[&ArrayShape]) -> Option<Self> {
        let [input, output, lists, ..] = operands else { return None };
        let (&from, &to) = (input.dims().first()?, output.dims().first()?);
        let row_elements: usize = output.dims()[1..].iter().product();
        let row_bytes = row_elements * output.element().size_bytes();
        let is_native = matches!(
            lists.element(),
            ElementType::S8
                | ElementType::S16
                | ElementType::S32
                | ElementType::S64
                | ElementType::U8
                | ElementType::U16
                | ElementType::U32
                | ElementType::U64
        );
        let slots = lists.element_count();
        is_native.then_some(Ragged { row_bytes, rows: [from, to], index: lists.element(), slots })
    }

    /// Writes into `to`, which begins as the second operand, the rows that all send to participant
    /// `me`. Errors: `InvalidArgument` if an array lacks rows that lists name.
    pub(super) fn take(&self, given: Given<'_>, me: usize, to: &mut [u8]) -> Result<()> {
        let count = given.participants();
        to.copy_from_slice(given.of(me)[1]);
        let per_receiver = self.slots / count;
        for position in 0..count {
            let [rows, _, offsets, sizes, targets, ..] = given.of(position) else {
                return Err(Error::internal("a ragged-all-to-all without its lists"));
            };
            for slot in me * per_receiver..(me + 1) * per_receiver {
                let [offset, size, target] =
                    [offsets, sizes, targets].map(|list| self.number(list, slot));
                let from = self.range(self.rows[0], offset, size)?;
                let into = self.range(self.rows[1], target, size)?;
                to[into].copy_from_slice(&rows[from]);
            }
        }
        Ok(())
    }

    /// The bytes of `size` rows from `start` on, of an array with `rows` rows.
    fn range(&self, rows: usize, start: i128, size: i128) -> Result<std::ops::Range<usize>> {
        if start < 0 || size < 0 || size > rows as i128 || start > rows as i128 - size {
            let detail = format!("{size} rows from row {start} on, of an array with {rows}");
            return Err(Error::invalid(detail));
        }
        let (start, size) = (start as usize, size as usize);
        Ok(start * self.row_bytes..(start + size) * self.row_bytes)
    }

    fn number(&self, list: &[u8], at: usize) -> i128 {
        let bytes = self.index.size_bytes();
        let mut wide = [0; 8];
        wide[..bytes].copy_from_slice(&list[at * bytes..][..bytes]);
        let (wide, shift) = (u64::from_le_bytes(wide), 64 - 8 * bytes);
        match self.index.is_unsigned_integer() {
            true => wide.into(),
            false => (((wide << shift) as i64) >> shift).into(),
        }
    }
}
