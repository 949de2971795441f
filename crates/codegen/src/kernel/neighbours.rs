//! Elements that lanes want, as blocks of neighbours.

/// Neighbours in memory, as many as there are lanes or fewer, and the lanes that want one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Neighbours {
    /// The first of the neighbours.
    pub first: i64,
    /// How many there are; all lie between the least element that is wanted and the greatest.
    pub count: i64,
    /// The lanes, as bits.
    pub lanes: u64,
}

/// As few blocks as hold the element of each lane.
pub(crate) fn neighbours(elements: &[i64]) -> Vec<Neighbours> {
    let lanes = elements.len() as i64;
    let (least, greatest) =
        elements.iter().fold((i64::MAX, i64::MIN), |(l, g), &e| (l.min(e), g.max(e)));
    let last = (greatest + 1 - lanes).max(least);
    let mut missing: Vec<usize> = (0..elements.len()).collect();
    let mut blocks = Vec::new();
    while let Some(first) = missing.iter().map(|&l| elements[l]).min() {
        let first = first.min(last);
        let count = lanes.min(greatest + 1 - first);
        let is_within = |&l: &usize| (first..first + count).contains(&elements[l]);
        let within = missing.iter().filter(|l| is_within(l));
        let within = within.fold(0, |bits, l| bits | 1 << l);
        missing.retain(|l| !is_within(l));
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
            let blocks = neighbours(elements);
            assert_eq!(blocks.len(), count, "{elements:?}: {blocks:?}");
            let (least, greatest) =
                (elements.iter().min().unwrap(), elements.iter().max().unwrap());
            for (l, element) in elements.iter().enumerate() {
                let of: Vec<&Neighbours> =
                    blocks.iter().filter(|b| b.lanes >> l & 1 == 1).collect();
                let [block] = of[..] else { panic!("lane {l} of {elements:?} in {of:?}") };
                assert!((block.first..block.first + block.count).contains(element));
                assert!(block.first >= *least && block.first + block.count - 1 <= *greatest);
                assert!(block.count <= elements.len() as i64);
            }
        }
    }
}
