//! What transforms say of the memory that they take is never less than what they take.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use helio_runtime::Threads;
use helio_runtime::kernels::fft::{Fft, FftKind};

/// The system's allocator, and how much is in use of it.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is left to the system's allocator, with the caller's arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn tables_and_scratch_are_no_more_than_stated() {
    let lengths = [
        1,
        2,
        3,
        7,
        16,
        30,
        97,
        101,
        127,
        128,
        251,
        257,
        509,
        521,
        1000,
        1009,
        1023,
        1031,
        2039,
        2048,
        2053,
        2187,
        3125,
        4093,
        4099,
        5040,
        8191,
        9973,
        10_007,
        16_384,
        16_411,
        16_807,
        17 * 1009,
        30_030,
        30_031,
        32_749,
        59_049,
        65_521,
        65_536,
        65_537,
        65_539,
        99_991,
        100_000,
        100_003,
        131_071,
        2 * 65_521,
        3 * 43_691,
        4 * 32_749,
        151 * 1009,
        199_999,
        17 * 17 * 17 * 17 * 3,
        262_144,
        262_147,
        371_293,
        524_287,
        524_288,
    ];
    for kind in [FftKind::Forward, FftKind::RealForward, FftKind::RealInverse] {
        for length in lengths {
            for shape in [vec![length], vec![length, 4], vec![4, length]] {
                check(kind, &shape);
            }
        }
    }
}

fn check(kind: FftKind, lengths: &[usize]) {
    let fft = Fft::new(kind, 1, lengths.to_vec());
    let points = lengths.iter().product::<usize>() * 2 + 16 * lengths[0].max(1);
    let [from, mut to] = [(); 2].map(|()| vec![0u64; points]);
    let mut scratch = vec![0u64; fft.scratch_bytes(4).div_ceil(8) + 8];
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let single = Threads::single();
    fft.f32(words(&from), words_mut(&mut to), words_mut(&mut scratch), single);
    let peak = PEAK.load(Ordering::Relaxed) - before;
    let stated = fft.table_bytes(4);
    assert!(
        peak <= stated + fft.thread_bytes(4),
        "{kind:?} of {lengths:?}: {peak}, {stated} stated"
    );
}

fn words(values: &[u64]) -> &[u8] {
    helio_runtime::kernels::bytes::bytes_of(values)
}

fn words_mut(values: &mut [u64]) -> &mut [u8] {
    helio_runtime::kernels::bytes::bytes_of_mut(values)
}
