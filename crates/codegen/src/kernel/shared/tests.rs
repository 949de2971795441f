use crate::kernel::{Addr, Buf, Builder, IndexOp, Kernel, Mem, Value};

const LANES: usize = 16;

fn at(buf: Buf, offset: i64, terms: &[(Value, i64)], lane_stride: i64) -> Addr {
    Addr { buf, offset, terms: terms.to_vec(), lane_stride }
}

/// A kernel that reads buffer 0 and writes buffer 1.
fn kernel(bytes: usize, write: impl FnOnce(&mut Builder, Buf, Buf)) -> Kernel {
    let mut b = Builder::new(LANES);
    let (from, to) = (b.param(bytes, true, false), b.param(bytes, false, true));
    write(&mut b, from, to);
    let kernel = b.finish();
    kernel.check().unwrap();
    kernel
}

/// One element after the other, `ahead` elements further on than they are written.
fn lanes(count: i64, ahead: i64) -> Kernel {
    kernel(count as usize * 4, |b, from, to| {
        b.set_range(count, LANES as i64);
        let (begin, end) = (b.begin(), b.end());
        b.for_loop(begin, end, LANES as i64, &[], |b, var, _| {
            let mask = Some(b.mask_below(var, end));
            let some = b.load(Mem::F32, at(from, 4 * ahead, &[(var, 4)], 4), mask);
            b.store(some, Mem::F32, at(to, 0, &[(var, 4)], 4), mask);
            Vec::new()
        });
    })
}

/// Rows, each a number of the range, of `count` elements; `times` rows are read for one that is
/// written.
fn rows(count: i64, masked: bool, offset: i64) -> Kernel {
    kernel(64 * count as usize * 4, |b, from, to| {
        b.set_range(64, 1);
        let (begin, end) = (b.begin(), b.end());
        b.for_loop(begin, end, 1, &[], |b, row, _| {
            let (lo, hi) = (b.index(0), b.index(count));
            b.for_loop(lo, hi, LANES as i64, &[], |b, var, _| {
                let mask = masked.then(|| b.mask_below(var, hi));
                let terms = [(row, 4 * count), (var, 4)];
                let some = b.load(Mem::F32, at(from, offset, &terms, 4), mask);
                b.store(some, Mem::F32, at(to, 0, &terms, 4), mask);
                Vec::new()
            });
            Vec::new()
        });
    })
}

#[track_caller]
fn fails(kernel: &Kernel, why: &str) {
    let error = kernel.check_shared(0, 1).unwrap_err();
    assert!(error.contains(why), "{error}");
}

#[test]
fn elements_are_changed_where_they_are() {
    assert_eq!(lanes(1000, 0).check_shared(0, 1), Ok(()));
    assert_eq!(rows(1024, false, 0).check_shared(0, 1), Ok(()));
    assert_eq!(rows(100, true, 0).check_shared(0, 1), Ok(()));
}

#[test]
fn elements_beside_are_not() {
    fails(&lanes(1000, 1), "piece");
    fails(&rows(1024, false, 4), "piece");
    fails(&rows(1024, false, -4), "piece");
    // The lanes after the last are those of the next row.
    fails(&rows(100, false, 0), "piece");
}

#[test]
fn a_store_before_the_load_is_found() {
    let kernel = kernel(4096, |b, from, to| {
        b.set_range(1024, LANES as i64);
        let (begin, end) = (b.begin(), b.end());
        b.for_loop(begin, end, LANES as i64, &[], |b, var, _| {
            let (zero, mask) = (b.float(crate::kernel::Lane::F32, 0.0), b.mask_below(var, end));
            b.store(zero, Mem::F32, at(to, 0, &[(var, 4)], 4), Some(mask));
            let some = b.load(Mem::F32, at(from, 0, &[(var, 4)], 4), Some(mask));
            b.store(some, Mem::F32, at(to, 0, &[(var, 4)], 4), Some(mask));
            Vec::new()
        });
    });
    fails(&kernel, "before");
}

/// What the kernel of `inplace_two_threads` did: a vector that every row reads, and a result that
/// every row writes, over the vector.
#[test]
fn a_vector_that_every_row_reads_is_not_overwritten() {
    let of = |shared: bool| {
        kernel(256, |b, from, to| {
            let (begin, end) = match shared {
                true => {
                    b.set_range(64, 1);
                    (b.begin(), b.end())
                }
                false => (b.index(0), b.index(64)),
            };
            b.for_loop(begin, end, 1, &[], |b, row, _| {
                let (lo, hi) = (b.index(0), b.index(64));
                b.for_loop(lo, hi, LANES as i64, &[], |b, var, _| {
                    let number = b.splat(crate::kernel::Lane::I32, row);
                    let number =
                        b.convert(crate::kernel::Conv::Value, crate::kernel::Lane::F32, number);
                    let some = b.load(Mem::F32, at(from, 0, &[(var, 4)], 4), None);
                    let sum = b.add(some, number);
                    b.store(sum, Mem::F32, at(to, 0, &[(var, 4)], 4), None);
                    Vec::new()
                });
                Vec::new()
            });
        })
    };
    fails(&of(true), "piece");
    // On one thread, too: in an earlier iteration.
    fails(&of(false), "iteration");
}

/// Numbers of the range that count two loops.
#[test]
fn loops_that_are_counted_together() {
    let transposed = |factors: [i64; 2]| {
        kernel(24 * 64 * 4, |b, from, to| {
            b.set_range(24, 1);
            let (begin, end) = (b.begin(), b.end());
            b.for_loop(begin, end, 1, &[], |b, unit, _| {
                let six = b.index(6);
                let outer = b.index_op(IndexOp::Div, unit, six);
                let whole = b.index_op(IndexOp::Mul, outer, six);
                let inner = b.index_op(IndexOp::Sub, unit, whole);
                let (lo, hi) = (b.index(0), b.index(64));
                b.for_loop(lo, hi, LANES as i64, &[], |b, var, _| {
                    let read = [(outer, 6 * 256), (inner, 256), (var, 4)];
                    let written = [(outer, factors[0] * 256), (inner, factors[1] * 256), (var, 4)];
                    let some = b.load(Mem::F32, at(from, 0, &read, 4), None);
                    b.store(some, Mem::F32, at(to, 0, &written, 4), None);
                    Vec::new()
                });
                Vec::new()
            });
        })
    };
    assert_eq!(transposed([6, 1]).check_shared(0, 1), Ok(()));
    fails(&transposed([1, 4]), "piece");
}

#[test]
fn units_hold_what_they_touch() {
    assert_eq!(rows(100, true, 0).check_units(0, 400), Ok(()));
    assert!(rows(100, true, 4).check_units(0, 400).is_err());
    assert!(rows(100, false, 0).check_units(0, 400).is_err());
    assert!(rows(100, true, 0).check_units(0, 200).is_err());
    assert_eq!(lanes(1000, 0).check_units(1, 4), Ok(()));
    assert!(lanes(1000, 1).check_units(0, 4).is_err());
    // One piece has all units, without a loop that says which.
    let one = kernel(4, |b, from, to| {
        b.set_range(1, 1);
        let some = b.load(Mem::F32, at(from, 0, &[], 0), None);
        b.store(some, Mem::F32, at(to, 0, &[], 0), None);
    });
    assert_eq!(one.check_units(1, 4), Ok(()));
}

#[test]
fn pieces_write_what_no_other_touches() {
    assert_eq!(lanes(1000, 0).check_pieces(), Ok(()));
    assert_eq!(rows(100, true, 0).check_pieces(), Ok(()));
    // Buffers that are not the same may be read anywhere.
    assert_eq!(rows(100, true, 4).check_pieces(), Ok(()));
    // Lanes after the last of a row are the next row's.
    assert!(rows(100, false, 0).check_pieces().is_err());
}

/// As in a loop in registers: one parameter is read and written.
#[test]
fn pieces_that_read_what_another_writes_are_found() {
    let updating = |ahead: i64| {
        let mut b = Builder::new(LANES);
        let state = b.param(4096, true, true);
        b.set_range(1000, LANES as i64);
        let (begin, end) = (b.begin(), b.end());
        b.for_loop(begin, end, LANES as i64, &[], |b, var, _| {
            let mask = Some(b.mask_below(var, end));
            let some = b.load(Mem::F32, at(state, 4 * ahead, &[(var, 4)], 4), mask);
            b.store(some, Mem::F32, at(state, 0, &[(var, 4)], 4), mask);
            Vec::new()
        });
        b.finish()
    };
    assert_eq!(updating(0).check_pieces(), Ok(()));
    assert!(updating(1).check_pieces().is_err());
}

/// Segments of rows: a number of the range is in one of them, unless they overlap.
#[test]
fn segments_exclude_each_other() {
    let segments = |second: i64| {
        kernel(64 * 32, |b, from, to| {
            b.set_range(64, 1);
            let (begin, end) = (b.begin(), b.end());
            b.for_loop(begin, end, 1, &[], |b, row, _| {
                let one = b.index(1);
                let next = b.index_op(IndexOp::Add, row, one);
                for (first, last) in [(0, 40), (second, 64)] {
                    let (first, last) = (b.index(first), b.index(last));
                    let lo = b.index_op(IndexOp::Max, row, first);
                    let hi = b.index_op(IndexOp::Min, next, last);
                    let hi = b.index_op(IndexOp::Max, lo, hi);
                    b.for_loop(lo, hi, 1, &[], |b, row, _| {
                        let (zero, eight) = (b.index(0), b.index(8));
                        let mask = Some(b.mask_below(zero, eight));
                        let some = b.load(Mem::F32, at(from, 0, &[(row, 32)], 4), mask);
                        b.store(some, Mem::F32, at(to, 0, &[(row, 32)], 4), mask);
                        Vec::new()
                    });
                }
                Vec::new()
            });
        })
    };
    assert_eq!(segments(40).check_shared(0, 1), Ok(()));
    fails(&segments(39), "before");
}
