//! Stable sorting by a comparator that may say anything.

/// Brings indices into the order that `is_less` gives, stably, from the bottom up. Whatever it
/// says, this ends after `n log n` calls with a permutation, which the standard library does not
/// promise. `spare` is as long as `order`; what it holds is of no meaning.
pub fn sort_by(order: &mut [u32], spare: &mut [u32], is_less: &mut dyn FnMut(u32, u32) -> bool) {
    // Short runs are sorted in place, by insertion: fewer passes over memory.
    const RUN: usize = 8;
    for run in order.chunks_mut(RUN) {
        for end in 1..run.len() {
            let mut at = end;
            while at > 0 && is_less(run[at], run[at - 1]) {
                run.swap(at, at - 1);
                at -= 1;
            }
        }
    }
    let (mut from, mut to) = (&mut *order, &mut *spare);
    let mut width = RUN;
    let mut is_in_spare = false;
    while width < from.len() {
        let runs = from.chunks(2 * width).zip(to.chunks_mut(2 * width));
        for (run, merged) in runs {
            let (mut left, mut right) = run.split_at(width.min(run.len()));
            for slot in merged {
                let takes_right = match (left.first(), right.first()) {
                    (Some(&l), Some(&r)) => is_less(r, l),
                    (None, _) => true,
                    (_, None) => false,
                };
                let source = if takes_right { &mut right } else { &mut left };
                if let [next, rest @ ..] = *source {
                    (*slot, *source) = (*next, rest);
                }
            }
        }
        (from, to) = (to, from);
        is_in_spare = !is_in_spare;
        width *= 2;
    }
    if is_in_spare {
        order.copy_from_slice(spare);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_elements_keep_their_order() {
        for count in [0, 1, 2, 7, 8, 9, 31, 64, 100, 1000] {
            let key = |i: u32| i.wrapping_mul(2_654_435_761) >> 28;
            let mut order: Vec<u32> = (0..count).collect();
            let mut expected = order.clone();
            expected.sort_by_key(|&i| key(i));
            let mut spare = vec![0; order.len()];
            sort_by(&mut order, &mut spare, &mut |a, b| key(a) < key(b));
            assert_eq!(order, expected);
        }
    }

    #[test]
    fn any_comparator_leaves_a_permutation() {
        for mask in 0..8u32 {
            let mut order: Vec<u32> = (0..99).collect();
            let mut spare = vec![0; order.len()];
            sort_by(&mut order, &mut spare, &mut |a, b| (a ^ b).count_ones() & mask != 0);
            order.sort();
            assert!(order.into_iter().eq(0..99));
        }
    }
}
