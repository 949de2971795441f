//! Index arithmetic: what a row, a column or a step of a product is in memory.

/// Nested dimensions that are run through as one, the last fastest: size and stride of each.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Axis {
    dims: Vec<(usize, usize)>,
}

impl Axis {
    /// Joins dimensions where one continues the next. Sizes of 1 leave nothing behind.
    ///
    /// # Panics
    /// If there are more indices, or they reach further, than memory does: no offset of an index can
    /// overflow after this.
    pub(crate) fn new(dims: impl IntoIterator<Item = (usize, usize)>) -> Self {
        let mut joined: Vec<(usize, usize)> = Vec::new();
        for (size, stride) in dims {
            match joined.last_mut() {
                _ if size == 1 => {}
                Some(last)
                    if size.checked_mul(stride) == Some(last.1)
                        && last.0.checked_mul(size).is_some() =>
                {
                    *last = (last.0 * size, stride);
                }
                _ => joined.push((size, stride)),
            }
        }
        let axis = Axis { dims: joined };
        assert!(axis.fits_memory(), "dimensions reach further than memory: {:?}", axis.dims);
        axis
    }

    fn fits_memory(&self) -> bool {
        const MAX_OFFSET: usize = isize::MAX as usize;
        let more = |(len, last): (usize, usize), &(size, stride): &(usize, usize)| {
            let (len, reach) = (len.checked_mul(size)?, (size - 1).checked_mul(stride)?);
            Some((len, last.checked_add(reach)?)).filter(|&(len, last)| len.max(last) <= MAX_OFFSET)
        };
        let is_empty = self.dims.iter().any(|&(size, _)| size == 0);
        is_empty || self.dims.iter().try_fold((1, 0), more).is_some()
    }

    /// With all strides multiplied, and if asked for an innermost dimension of 2 indices at this
    /// distance.
    pub(crate) fn scaled(&self, factor: usize, pair: Option<usize>) -> Axis {
        let dims = self.dims.iter().map(|&(size, stride)| (size, stride.saturating_mul(factor)));
        Axis::new(dims.chain(pair.map(|stride| (2, stride))))
    }

    /// How many indices there are.
    pub(crate) fn len(&self) -> usize {
        self.dims.iter().map(|dim| dim.0).product()
    }

    /// The stride, if all indices are equally far apart. (The stride of a single one is 1.)
    pub(crate) fn stride(&self) -> Option<usize> {
        match self.dims[..] {
            [] => Some(1),
            [(_, stride)] => Some(stride),
            _ => None,
        }
    }

    /// The highest offset. Must not be empty.
    pub(crate) fn last(&self) -> usize {
        self.dims.iter().map(|&(size, stride)| (size - 1) * stride).sum()
    }

    /// Whether different indices have offsets that differ by at least `width`.
    pub(crate) fn keeps_apart(&self, width: usize) -> bool {
        let mut dims = self.dims.clone();
        dims.sort_by_key(|dim| dim.1);
        let mut span = width;
        for (size, stride) in dims {
            if stride < span {
                return false;
            }
            let Some(wider) = span.checked_add((size - 1) * stride) else { return false };
            span = wider;
        }
        true
    }

    /// The offset of an index.
    pub(crate) fn offset(&self, index: usize) -> usize {
        if let Some(stride) = self.stride() {
            return index * stride;
        }
        let mut rest = index;
        let mut offset = 0;
        for &(size, stride) in self.dims.iter().rev() {
            let size = size.max(1); // an empty axis has a start
            offset += rest % size * stride;
            rest /= size;
        }
        offset
    }

    /// Writes the offsets of consecutive indices, from `first` on.
    pub(crate) fn offsets(&self, first: usize, offsets: &mut [usize]) {
        if let Some(stride) = self.stride() {
            for (i, offset) in offsets.iter_mut().enumerate() {
                *offset = (first + i) * stride;
            }
            return;
        }
        let mut index = first;
        let mut rest = offsets;
        while !rest.is_empty() {
            let (start, len, stride) = self.run(index, rest.len());
            let (now, later) = rest.split_at_mut(len);
            for (i, offset) in now.iter_mut().enumerate() {
                *offset = start + i * stride;
            }
            index += len;
            rest = later;
        }
    }

    /// The offset of an index, how many from there on, of `most`, are equally far apart, and how
    /// far.
    pub(crate) fn run(&self, index: usize, most: usize) -> (usize, usize, usize) {
        let &(size, stride) = self.dims.last().unwrap_or(&(1, 1));
        (self.offset(index), most.min(size - index % size.max(1)), stride)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_that_continue_each_other_are_joined() {
        assert_eq!(Axis::new([(3, 20), (1, 7), (4, 5), (5, 1)]), Axis::new([(60, 1)]));
        let axis = Axis::new([(3, 50), (4, 5)]);
        assert_eq!((axis.len(), axis.stride(), axis.last()), (12, None, 115));
        let mut offsets = [0; 8];
        axis.offsets(2, &mut offsets);
        assert_eq!(offsets, [10, 15, 50, 55, 60, 65, 100, 105]);
        assert!(axis.keeps_apart(5) && !axis.keeps_apart(6));
        assert!(Axis::new([(2, 4), (3, 10)]).keeps_apart(4));
    }

    #[test]
    #[should_panic(expected = "reach further than memory")]
    fn what_reaches_further_than_memory_is_refused() {
        Axis::new([(3, usize::MAX), (2, 1)]);
    }
}
