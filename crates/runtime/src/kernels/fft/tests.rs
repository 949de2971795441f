//! Transforms against their definition.

use super::*;
use crate::kernels::bytes::{Aligned, bytes_of, bytes_of_mut};

/// The transform of a line by its definition.
fn plain(line: &[Complex<f64>], sign: f64) -> Vec<Complex<f64>> {
    let n = line.len();
    let sum = |k: usize| {
        let term = |(i, v): (usize, &Complex<f64>)| {
            let angle = sign * std::f64::consts::TAU * ((i * k) % n) as f64 / n as f64;
            v * Complex::from_polar(1.0, angle)
        };
        line.iter().enumerate().map(term).sum()
    };
    (0..n).map(sum).collect()
}

/// The same in two dimensions.
fn plain_2d(data: &[Complex<f64>], cols: usize, sign: f64) -> Vec<Complex<f64>> {
    let mut data: Vec<_> = data.chunks(cols).flat_map(|row| plain(row, sign)).collect();
    for c in 0..cols {
        let column: Vec<_> = data[c..].iter().step_by(cols).copied().collect();
        for (r, v) in plain(&column, sign).into_iter().enumerate() {
            data[r * cols + c] = v;
        }
    }
    data
}

fn signal(len: usize) -> Vec<Complex<f64>> {
    (0..len).map(|i| Complex::new((i as f64 * 0.7).sin(), (i as f64 * 1.3).cos())).collect()
}

fn close(a: &[Complex<f64>], b: &[Complex<f64>]) {
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).norm() < 1e-9, "{a} and {b}");
    }
}

#[test]
fn two_dimensions_of_odd_sizes() {
    for (rows, cols) in [(1, 1), (3, 5), (8, 17), (19, 4)] {
        if cfg!(miri) && rows > 3 {
            continue; // Miri interprets: small ones are enough for it.
        }
        let data = signal(rows * cols);
        for (kind, sign, scale) in
            [(FftKind::Forward, -1.0, 1.0), (FftKind::Inverse, 1.0, (rows * cols) as f64)]
        {
            let mut found = vec![Complex::new(0.0, 0.0); data.len()];
            let fft = Fft::new(kind, 1, vec![rows, cols]);
            fft.f64(bytes_of(&data), bytes_of_mut(&mut found), &mut [], Threads::single());
            let expected: Vec<_> =
                plain_2d(&data, cols, sign).into_iter().map(|v| v / scale).collect();
            close(&found, &expected);
        }
    }
}

#[test]
fn real_lines_there_and_back() {
    for (rows, cols) in
        [(1, 1), (1, 2), (1, 8), (3, 7), (4, 6), (2, 100), (1, 38), (2, 27), (7, 64)]
    {
        let data: Vec<f64> = signal(2 * rows * cols).iter().map(|v| v.re).collect();
        let half = cols / 2 + 1;
        let mut spectrum = vec![Complex::new(0.0, 0.0); 2 * rows * half];
        let forward = Fft::new(FftKind::RealForward, 2, vec![rows, cols]);
        forward.f64(bytes_of(&data), bytes_of_mut(&mut spectrum), &mut [], Threads::single());
        for (data, found) in data.chunks(rows * cols).zip(spectrum.chunks(rows * half)) {
            let data: Vec<_> = data.iter().map(|&v| Complex::new(v, 0.0)).collect();
            let all = plain_2d(&data, cols, -1.0);
            let expected: Vec<_> = all.chunks(cols).flat_map(|row| &row[..half]).copied().collect();
            close(found, &expected);
        }
        let mut back = vec![0.0; data.len()];
        let inverse = Fft::new(FftKind::RealInverse, 2, vec![rows, cols]);
        let mut scratch = Aligned::filled(0, inverse.scratch_bytes(size_of::<f64>()));
        let to = bytes_of_mut(&mut back);
        inverse.f64(bytes_of(&spectrum), to, &mut scratch, Threads::single());
        assert!(back.iter().zip(&data).all(|(a, b)| (a - b).abs() < 1e-12));
    }
}

/// Lengths of all kinds: small factors, larger ones, primes whose predecessor has small factors or
/// has not, and others with a large factor.
const LENGTHS: [usize; 31] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 15, 16, 20, 25, 27, 30, 37, 49, 64, 67, 74, 96, 99, 127,
    131, 134, 257, 262, 263, 393,
];

#[test]
fn lines_side_by_side() {
    for n in LENGTHS {
        let lines = 19;
        let data = signal(lines * n);
        for (kind, sign, scale) in
            [(FftKind::Forward, -1.0, 1.0), (FftKind::Inverse, 1.0, n as f64)]
        {
            let mut found = vec![Complex::new(0.0, 0.0); data.len()];
            let fft = Fft::new(kind, lines, vec![n]);
            fft.f64(bytes_of(&data), bytes_of_mut(&mut found), &mut [], Threads::single());
            let lines = data.chunks(n).flat_map(|line| plain(line, sign));
            close(&found, &lines.map(|v| v / scale).collect::<Vec<_>>());
        }
        let reals: Vec<f64> = data.iter().map(|v| v.re).collect();
        let half = n / 2 + 1;
        let mut spectrum = vec![Complex::new(0.0, 0.0); lines * half];
        let forward = Fft::new(FftKind::RealForward, lines, vec![n]);
        forward.f64(bytes_of(&reals), bytes_of_mut(&mut spectrum), &mut [], Threads::single());
        let expected = reals.chunks(n).flat_map(|line| {
            let line: Vec<_> = line.iter().map(|&v| Complex::new(v, 0.0)).collect();
            plain(&line, -1.0)[..half].to_vec()
        });
        close(&spectrum, &expected.collect::<Vec<_>>());
        // What the ends of a real line's spectrum have besides is left out.
        for line in spectrum.chunks_mut(half) {
            line[0].im += 1.0;
            line[half - 1].im += if n % 2 == 0 { 1.0 } else { 0.0 };
        }
        let mut back = vec![0.0; reals.len()];
        let inverse = Fft::new(FftKind::RealInverse, lines, vec![n]);
        inverse.f64(bytes_of(&spectrum), bytes_of_mut(&mut back), &mut [], Threads::single());
        assert!(back.iter().zip(&reals).all(|(a, b)| (a - b).abs() < 1e-12), "{n}");
    }
}

#[test]
fn every_instruction_set_has_the_same_sums() {
    struct Columns<'a>(&'a Side<f32>, &'a mut [Complex<f32>]);
    impl lanes::LaneWork<f32> for Columns<'_> {
        type Result = ();

        fn run<L: lanes::Lanes<Real = f32>>(self, lanes: L) {
            let data = Disjoint::new(self.1);
            // SAFETY: one row is used at a time.
            let row =
                |i: usize, first: usize, count: usize| unsafe { data.part(i * 5 + first, count) };
            self.0.columns_by(lanes, 5, row);
        }
    }
    for n in LENGTHS {
        let Some(side) = Side::new(FftKind::Forward, n) else { continue };
        let single: Vec<Complex<f32>> =
            signal(n * 5).iter().map(|v| Complex::new(v.re as f32, v.im as f32)).collect();
        let (mut wide, mut plain) = (single.clone(), single);
        lanes::with_f32(Columns(&side, &mut wide));
        lanes::LaneWork::run(Columns(&side, &mut plain), lanes::Portable(std::marker::PhantomData));
        let norm = (n as f32).sqrt();
        assert!(wide.iter().zip(&plain).all(|(a, b)| (a - b).norm() < 1e-5 * norm), "{n}");
    }
}
