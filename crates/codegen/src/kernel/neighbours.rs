//! Elements that lanes want, as blocks of neighbours.

/// Neighbours in memory, as many as a block has or fewer, and the lanes that want one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Neighbours {
    /// The first of the neighbours.
    pub first: i64,
    /// How many there are; all lie between the least element that is wanted and the greatest.
    pub count: i64,
    /// The lanes, as bits.
    pub lanes: u64,
}

/// As few blocks of `most` neighbours as hold the element of each lane that wants one.
pub(crate) fn neighbours(elements: &[Option<i64>], most: i64) -> Vec<Neighbours> {
    let (least, greatest) =
        elements.iter().flatten().fold((i64::MAX, i64::MIN), |(l, g), &e| (l.min(e), g.max(e)));
    let wants = elements.iter().enumerate().filter_map(|(l, &element)| Some((l, element?)));
    let mut missing: Vec<(usize, i64)> = wants.collect();
    let mut blocks = Vec::new();
    while let Some(first) = missing.iter().map(|&(_, element)| element).min() {
        let first = first.min((greatest + 1 - most).max(least));
        let count = most.min(greatest + 1 - first);
        let is_within = |&(_, element): &(usize, i64)| (first..first + count).contains(&element);
        let within = missing.iter().filter(|wanted| is_within(wanted));
        let within = within.fold(0, |bits, (l, _)| bits | 1 << l);
        missing.retain(|wanted| !is_within(wanted));
        blocks.push(Neighbours { first, count, lanes: within });
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_hold_what_lanes_want() {
        let patterns: [(&[i64], usize); 7] = [
            (&[0, 1, 2, 3], 1),
            (&[0, 0, 1, 1], 1),
            (&[3, 2, 1, 0], 1),
            (&[0, 3, 6, 9], 2),
            (&[0, 100, 1, 101], 2),
            (&[5, 5, 5, 5], 1),
            (&[-7, 0, 7, 14], 4),
        ];
        for (elements, count) in patterns {
            check(&elements.iter().copied().map(Some).collect::<Vec<_>>(), count);
        }
    }

    #[test]
    fn lanes_that_want_nothing_have_no_block() {
        check(&[Some(0), Some(3), None, None], 1);
        check(&[None, Some(2), None, Some(9)], 2);
        check(&[Some(0), Some(3), Some(6), None, None, None, None, None], 1);
        check(&[None, None], 0);
    }

    fn check(elements: &[Option<i64>], count: usize) {
        let blocks = neighbours(elements, elements.len() as i64);
        assert_eq!(blocks.len(), count, "{elements:?}: {blocks:?}");
        let wanted = || elements.iter().flatten();
        for (l, element) in elements.iter().enumerate() {
            let of: Vec<&Neighbours> = blocks.iter().filter(|b| b.lanes >> l & 1 == 1).collect();
            let Some(element) = element else {
                assert!(of.is_empty(), "lane {l} of {elements:?} in {of:?}");
                continue;
            };
            let [block] = of[..] else { panic!("lane {l} of {elements:?} in {of:?}") };
            let end = block.first + block.count;
            assert!((block.first..end).contains(element));
            assert!(Some(&block.first) >= wanted().min() && Some(&(end - 1)) <= wanted().max());
            assert!(block.count <= elements.len() as i64);
        }
    }
}
