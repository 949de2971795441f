//! Gather and scatter against XLA's definitions, point by point.

use super::super::bytes::{Aligned, bytes_of, bytes_of_mut, cast, cast_mut};
use super::super::number::Fold;
use super::super::sort::Pairs;
use super::scatter::Division;
use super::*;
use crate::Pool;

fn index_vectors(sizes: &[usize]) -> Vec<Vec<usize>> {
    sizes.iter().fold(vec![vec![]], |all, &size| {
        all.iter().flat_map(|index| (0..size).map(move |i| [&index[..], &[i]].concat())).collect()
    })
}

fn place(index: &[usize], sizes: &[usize]) -> usize {
    index.iter().zip(sizes).fold(0, |place, (i, size)| place * size + i)
}

/// For each element of the list, in row-major order of index vectors and then of the window: its
/// place, the window's start in the array, and its place in the window.
fn definition(w: &IndexedWindows, indices: &[i32]) -> Vec<(usize, Vec<i64>, Vec<usize>)> {
    let batch_dims: Vec<usize> = (0..w.list.len()).filter(|d| !w.window_dims.contains(d)).collect();
    let vector_dims: Vec<usize> =
        (0..w.indices.len()).filter(|&d| d != w.index_vector_dim).collect();
    let batch_sizes: Vec<usize> = batch_dims.iter().map(|&d| w.list[d]).collect();
    let window_sizes: Vec<usize> = w.window_dims.iter().map(|&d| w.list[d]).collect();
    let in_window: Vec<usize> = (0..w.array.len())
        .filter(|d| !w.left_out.contains(d) && !w.batching.iter().any(|(a, _)| a == d))
        .collect();
    let mut all = Vec::new();
    for batch in index_vectors(&batch_sizes) {
        let mut start = vec![0i64; w.array.len()];
        let mut vector = vec![0; w.indices.len()];
        vector_dims.iter().zip(&batch).for_each(|(&d, &i)| vector[d] = i);
        for (component, &d) in w.index_map.iter().enumerate() {
            if w.index_vector_dim < w.indices.len() {
                vector[w.index_vector_dim] = component;
            }
            start[d] = indices[place(&vector, &w.indices)].into();
        }
        for &(array, d) in &w.batching {
            start[array] = batch[vector_dims.iter().position(|&v| v == d).unwrap()] as i64;
        }
        for window in index_vectors(&window_sizes) {
            let mut list = vec![0; w.list.len()];
            batch_dims.iter().zip(&batch).for_each(|(&d, &i)| list[d] = i);
            w.window_dims.iter().zip(&window).for_each(|(&d, &i)| list[d] = i);
            let mut offset = vec![0; w.array.len()];
            in_window.iter().zip(&window).for_each(|(&d, &i)| offset[d] = i);
            all.push((place(&list, &w.list), start.clone(), offset));
        }
    }
    all
}

/// The last start of a window along each dimension.
fn last_starts(w: &IndexedWindows) -> Vec<i64> {
    let mut sizes = vec![1; w.array.len()];
    let in_window = (0..w.array.len())
        .filter(|d| !w.left_out.contains(d) && !w.batching.iter().any(|(a, _)| a == d));
    in_window.zip(&w.window_dims).for_each(|(d, &list)| sizes[d] = w.list[list]);
    w.array.iter().zip(sizes).map(|(&dim, size)| dim as i64 - size as i64).collect()
}

/// Elements of an array without any, by indices into its first dimension.
fn elements() -> IndexedWindows {
    IndexedWindows {
        array: vec![],
        indices: vec![],
        list: vec![],
        index_type: NumberType::I32,
        index_vector_dim: 1,
        index_map: vec![0],
        window_dims: vec![],
        left_out: vec![0],
        batching: vec![],
        is_splat: false,
    }
}

fn cases() -> Vec<IndexedWindows> {
    let base = elements();
    let new = |array: &[usize], indices: &[usize], list: &[usize]| IndexedWindows {
        array: array.to_vec(),
        indices: indices.to_vec(),
        list: list.to_vec(),
        ..base.clone()
    };
    vec![
        // Rows, elements, columns.
        IndexedWindows { window_dims: vec![1], ..new(&[9, 7], &[300, 1], &[300, 7]) },
        IndexedWindows { window_dims: vec![1], ..new(&[9, 8], &[300, 1], &[300, 8]) },
        IndexedWindows { window_dims: vec![1], ..new(&[9, 16], &[300, 1], &[300, 16]) },
        IndexedWindows { ..new(&[50], &[600], &[600]) },
        IndexedWindows {
            index_map: vec![1],
            left_out: vec![1],
            window_dims: vec![0],
            ..new(&[5, 11], &[20, 1], &[5, 20])
        },
        // Windows that overlap, in the middle of the list.
        IndexedWindows {
            index_map: vec![1, 0],
            left_out: vec![],
            window_dims: vec![1, 2],
            index_vector_dim: 1,
            ..new(&[8, 9], &[4, 2, 3], &[4, 3, 2, 3])
        },
        IndexedWindows {
            index_map: vec![1, 0],
            left_out: vec![2],
            window_dims: vec![0, 3],
            index_vector_dim: 0,
            ..new(&[8, 9, 4], &[2, 4, 3], &[3, 4, 3, 2])
        },
        // Along a dimension, with batching: as `take_along_axis`.
        IndexedWindows {
            left_out: vec![1],
            index_map: vec![1],
            batching: vec![(0, 0), (2, 2)],
            index_vector_dim: 3,
            ..new(&[3, 6, 4], &[3, 5, 4, 1], &[3, 5, 4])
        },
        // One vector; no components; nothing.
        IndexedWindows { window_dims: vec![0], index_vector_dim: 0, ..new(&[9, 7], &[1], &[7]) },
        IndexedWindows {
            index_map: vec![],
            left_out: vec![],
            window_dims: vec![1, 2],
            ..new(&[3, 4], &[2, 0], &[2, 3, 4])
        },
        IndexedWindows { window_dims: vec![1], ..new(&[9, 0], &[3, 1], &[3, 0]) },
        IndexedWindows { window_dims: vec![1], ..new(&[9, 2], &[0, 1], &[0, 2]) },
    ]
    .into_iter()
    // Miri interprets: small ones are enough for it.
    .filter(|w| !cfg!(miri) || w.list.iter().product::<usize>() <= 60)
    .collect()
}

fn indices_of(w: &IndexedWindows) -> Vec<i32> {
    (0..w.indices.iter().product::<usize>() as u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 20) as i32 % 14 - 2)
        .collect()
}

#[test]
fn gather_takes_what_is_there() {
    for w in cases() {
        let indices = indices_of(&w);
        let array: Vec<u32> = (0..w.array.iter().product::<usize>() as u32).collect();
        let last = last_starts(&w);
        let mut expected = vec![0; w.list.iter().product()];
        for (list, start, offset) in definition(&w, &indices) {
            let index = start.iter().zip(&offset).zip(&last);
            let index: Vec<usize> =
                index.map(|((&s, o), &last)| s.clamp(0, last) as usize + o).collect();
            expected[list] = array[place(&index, &w.array)];
        }
        let plan = Gather::new(&w, 4).unwrap();
        let pool = Pool::new(2);
        let mut found = vec![0u32; expected.len()];
        let threads = pool.threads(2);
        plan.run(bytes_of(&array), bytes_of(&indices), bytes_of_mut(&mut found), threads);
        assert_eq!(found, expected, "{w:?}");

        let wide: Vec<[u64; 2]> = array.iter().map(|&v| [v.into(), 7]).collect();
        let mut found = vec![[0u64; 2]; expected.len()];
        let plan = Gather::new(&w, 16).unwrap();
        plan.run(bytes_of(&wide), bytes_of(&indices), bytes_of_mut(&mut found), threads);
        assert!(found.iter().map(|v| v[0] as u32).eq(expected), "{w:?}");
    }
}

#[test]
fn scatter_leaves_out_what_reaches_out() {
    for w in cases() {
        let indices = indices_of(&w);
        let updates: Vec<f32> =
            (0..w.list.iter().product::<usize>()).map(|i| (i as f32).sqrt()).collect();
        let array: Vec<f32> = (0..w.array.iter().product::<usize>()).map(|i| i as f32).collect();
        let last = last_starts(&w);
        let (mut sums, mut set) = (array.clone(), array.clone());
        for (list, start, offset) in definition(&w, &indices) {
            if !start.iter().zip(&last).all(|(s, last)| (0..=*last).contains(s)) {
                continue;
            }
            let index: Vec<usize> =
                start.iter().zip(&offset).map(|(&s, o)| s as usize + o).collect();
            sums[place(&index, &w.array)] += updates[list];
            set[place(&index, &w.array)] = updates[list];
        }
        let fold = Combine::Fold(NumberType::F32, Fold::Add);
        for (combine, expected) in [(fold, sums), (Combine::Set(4), set)] {
            let plan = Scatter::new(&w, combine).unwrap();
            let pool = Pool::new(3);
            let lists = (bytes_of(&indices), bytes_of(&updates));
            for way in plan.ways() {
                let mut scratch = Aligned::filled(0, plan.scratch_by(way));
                let mut found = array.clone();
                let to = bytes_of_mut(&mut found);
                plan.run_by(way, None, lists, to, &mut scratch, pool.threads(3));
                assert_eq!(found, expected, "{w:?} {combine:?} {way:?} in place");
                let mut found = vec![f32::NAN; array.len()];
                let to = bytes_of_mut(&mut found);
                plan.run_by(way, Some(bytes_of(&array)), lists, to, &mut scratch, pool.threads(3));
                assert_eq!(found, expected, "{w:?} {combine:?} {way:?}");
            }
        }
    }
}

/// Maxima and minima of zeros of both signs and of NaN, which are no matter of comparisons alone, among others.
#[test]
fn scatter_of_extremes() {
    let w = IndexedWindows { array: vec![40], indices: vec![1000], list: vec![1000], ..elements() };
    let indices = indices_of(&w);
    let values = [1.5, 0.0, -0.0, -2.5, f32::INFINITY, f32::NEG_INFINITY, 1e-42];
    let pool = Pool::new(2);
    for (fold, apply) in [
        (Fold::Max, (|a, b| if b > a { b } else { a }) as fn(f32, f32) -> f32),
        (Fold::Min, |a, b| if b < a { b } else { a }),
    ] {
        for most_are_nan in [false, true] {
            let value = |i: usize| match i % 61 {
                0 => f32::NAN,
                _ if most_are_nan && !i.is_multiple_of(3) => f32::NAN,
                n => values[n % values.len()],
            };
            let array: Vec<f32> = (0..40).map(|i| value(7 * i + 3)).collect();
            let updates: Vec<f32> = (0..1000).map(|i| value(5 * i + 1)).collect();
            let mut expected = array.clone();
            for (&index, &update) in indices.iter().zip(&updates) {
                let Some(to) = usize::try_from(index).ok().and_then(|at| expected.get_mut(at))
                else {
                    continue;
                };
                *to = match (*to, update) {
                    (a, b) if a.is_nan() || b.is_nan() => f32::NAN,
                    (a, b) if a == 0.0 && b == 0.0 => {
                        // 0 is above -0.
                        let (a, b) = (a.is_sign_negative(), b.is_sign_negative());
                        let negative = if fold == Fold::Max { a && b } else { a || b };
                        if negative { -0.0 } else { 0.0 }
                    }
                    (a, b) => apply(a, b),
                };
            }
            let scatter = Scatter::new(&w, Combine::Fold(NumberType::F32, fold)).expect("fits");
            for way in scatter.ways() {
                let mut found = vec![5.0f32; array.len()];
                let mut scratch = Aligned::filled(0, scatter.scratch_by(way));
                let lists = (bytes_of(&indices), bytes_of(&updates));
                let to = bytes_of_mut(&mut found);
                scatter.run_by(
                    way,
                    Some(bytes_of(&array)),
                    lists,
                    to,
                    &mut scratch,
                    pool.threads(2),
                );
                let same =
                    |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
                assert!(
                    found.iter().zip(&expected).all(same),
                    "{fold:?} {way:?}: {found:?} {expected:?}"
                );
            }
        }
    }
}

#[test]
fn scatter_of_one_number() {
    for w in cases() {
        let indices = indices_of(&w);
        let updates = vec![3.0f32; w.list.iter().product()];
        let splat = IndexedWindows { is_splat: true, ..w.clone() };
        let len = w.array.iter().product();
        let pool = Pool::new(3);
        for combine in [Combine::Fold(NumberType::F32, Fold::Add), Combine::Set(4)] {
            let run = |w: &IndexedWindows, way: Option<Division>, updates: &[f32]| {
                let plan = Scatter::new(w, combine).unwrap();
                let way = way.unwrap_or(Division::Whole);
                let mut scratch = Aligned::filled(0, plan.scratch_by(way));
                let mut found = vec![0.5f32; len];
                let lists = (bytes_of(&indices), bytes_of(updates));
                let to = bytes_of_mut(&mut found);
                plan.run_by(way, None, lists, to, &mut scratch, pool.threads(3));
                found
            };
            let expected = run(&w, None, &updates);
            for way in Scatter::new(&splat, combine).unwrap().ways() {
                assert_eq!(run(&splat, Some(way), &[3.0]), expected, "{splat:?} {way:?}");
            }
        }
    }
}

/// Code that folds pairs: `a ← 3a + u` and `b ← max(b, v) + 1`.
fn fold_pairs(count: usize, pairs: &Pairs<'_>, to: &mut [&mut [u8]]) {
    let [a, u] = pairs(0).map(cast::<u32>);
    let [b, v] = pairs(1).map(cast::<u64>);
    let [a_to, b_to] = to else { panic!("two arrays") };
    for i in 0..count {
        cast_mut::<u32>(a_to)[i] = a[i].wrapping_mul(3).wrapping_add(u[i]);
        cast_mut::<u64>(b_to)[i] = b[i].max(v[i]).wrapping_add(1);
    }
}

#[test]
fn scatter_by_code_keeps_the_order_of_updates() {
    let mut all = cases();
    // More elements than are told apart.
    all.push(IndexedWindows {
        array: vec![40_000],
        indices: vec![5],
        list: vec![5, 20_000],
        window_dims: vec![1],
        left_out: vec![],
        ..all[1].clone()
    });
    for w in all {
        let indices = indices_of(&w);
        let count: usize = w.list.iter().product();
        let updates: Vec<u32> = (0..count as u32).map(|i| i.wrapping_mul(77) >> 3).collect();
        let wide: Vec<u64> = updates.iter().map(|&u| u64::from(u) << 9).collect();
        let len: usize = w.array.iter().product();
        for is_splat in [false, true] {
            let (mut a, mut b) = (vec![1u32; len], vec![5u64; len]);
            let (mut found_a, mut found_b) = (a.clone(), b.clone());
            let last = last_starts(&w);
            for (list, start, offset) in definition(&w, &indices) {
                if start.iter().zip(&last).all(|(s, last)| (0..=*last).contains(s)) {
                    let index = start.iter().zip(&offset).map(|(&s, o)| s as usize + o);
                    let at = place(&index.collect::<Vec<_>>(), &w.array);
                    let list = if is_splat { 0 } else { list };
                    a[at] = a[at].wrapping_mul(3).wrapping_add(updates[list]);
                    b[at] = b[at].max(wide[list]).wrapping_add(1);
                }
            }
            let plan = ScatterByCode::new(&IndexedWindows { is_splat, ..w.clone() }, vec![4, 8]);
            let lists = [bytes_of(&updates), bytes_of(&wide)];
            let mut to = [bytes_of_mut(&mut found_a), bytes_of_mut(&mut found_b)];
            if lists[0].is_empty() && is_splat {
                continue;
            }
            plan.unwrap().run(&fold_pairs, bytes_of(&indices), &lists, &mut to);
            assert_eq!((found_a, found_b), (a, b), "{w:?}");
        }
    }
}

#[test]
fn indices_of_all_types() {
    let (array, indices, list) = (vec![50], vec![600], vec![600]);
    let index_type = NumberType::U64;
    let w = IndexedWindows { array, indices, list, index_type, ..elements() };
    let plan = Gather::new(&w, 1).unwrap();
    let array: Vec<u8> = (0..50).collect();
    let mut found = vec![0; 600];
    let indices: Vec<u64> =
        (0..600u64).map(|i| if i.is_multiple_of(2) { u64::MAX } else { i % 50 }).collect();
    plan.run(&array, bytes_of(&indices), &mut found, crate::Threads::single());
    let expected = |i: usize| if i.is_multiple_of(2) { 49 } else { (i % 50) as u8 };
    assert!(found.into_iter().eq((0..600).map(expected)));
    let wrong = IndexedWindows { list: vec![599], ..w.clone() };
    assert!(Gather::new(&wrong, 1).is_none());
    let floats = IndexedWindows { index_type: NumberType::F32, ..w };
    assert!(Gather::new(&floats, 1).is_none());
}
