//! One-dimensional transforms of any length.
//!
//! A length whose prime factors are small is split factor by factor (Cooley and Tukey). Any other is
//! turned into a convolution, done with transforms of a power of two (Bluestein): `jk` is
//! `(j² + k² - (k - j)²) / 2`.

use helio_ir::memory::Counted;
use std::f64::consts::TAU;

use helio_ir::types::C128;
use helio_ir::{Error, Result};

use crate::products::zeros;

/// Up to this prime, the sums of products of the definition are no slower than Bluestein's way.
const LARGEST_DIRECT_PRIME: usize = 61;

/// How to transform lines of one length.
pub(super) struct FftPlan {
    length: usize,
    /// `exp(∓2πi k / length)` for each `k`.
    roots: Counted<C128>,
    method: Method,
}

enum Method {
    /// The prime factors of the length.
    Factors(Vec<usize>),
    Bluestein(Box<Bluestein>),
}

impl FftPlan {
    /// Errors: `ResourceExhausted`.
    pub(super) fn new(length: usize, inverse: bool) -> Result<Self> {
        let factors = prime_factors(length);
        if factors.last().is_some_and(|&largest| largest > LARGEST_DIRECT_PRIME) {
            let bluestein = Bluestein::new(length, inverse)?;
            let method = Method::Bluestein(Box::new(bluestein));
            return Ok(FftPlan { length, roots: zeros(0)?, method });
        }
        let mut roots = zeros(length)?;
        for (k, root) in roots.iter_mut().enumerate() {
            *root = root_of_unity(k, length, inverse);
        }
        Ok(FftPlan { length, roots, method: Method::Factors(factors) })
    }

    /// Room that [`FftPlan::run`] works in. Errors: `ResourceExhausted`.
    pub(super) fn scratch(&self) -> Result<Counted<C128>> {
        match &self.method {
            Method::Factors(factors) => zeros(factors.last().copied().unwrap_or(0)),
            Method::Bluestein(bluestein) => zeros(2 * bluestein.length + 2),
        }
    }

    /// Transforms a line of the plan's length, without scaling.
    pub(super) fn run(&self, from: &[C128], to: &mut [C128], scratch: &mut [C128]) {
        match &self.method {
            Method::Factors(factors) => self.split(factors, from, 1, to, scratch),
            Method::Bluestein(bluestein) => bluestein.run(from, to, scratch),
        }
    }

    /// Transforms every `step`-th element of `from` into `to`, whose length is the product of the
    /// factors. The recursion is as deep as there are factors: at most 63.
    fn split(
        &self,
        factors: &[usize],
        from: &[C128],
        step: usize,
        to: &mut [C128],
        scratch: &mut [C128],
    ) {
        let Some((&radix, rest)) = factors.split_first() else {
            to.copy_from_slice(&from[..1]);
            return;
        };
        let part = to.len() / radix;
        for (r, to) in to.chunks_exact_mut(part).enumerate() {
            self.split(rest, &from[r * step..], step * radix, to, scratch);
        }
        // Here `exp(∓2πi k / to.len())` is root `k * step`.
        let parts = &mut scratch[..radix];
        for k in 0..part {
            parts[0] = to[k];
            for (r, v) in parts.iter_mut().enumerate().skip(1) {
                *v = to[r * part + k] * self.roots[r * k * step];
            }
            if let [a, b] = *parts {
                (to[k], to[part + k]) = (a + b, a - b);
                continue;
            }
            for s in 0..radix {
                let mut sum = C128::new(0.0, 0.0);
                for (r, v) in parts.iter().enumerate() {
                    sum += v * self.roots[r * s % radix * (self.length / radix)];
                }
                to[s * part + k] = sum;
            }
        }
    }
}

/// In ascending order.
fn prime_factors(mut n: usize) -> Vec<usize> {
    let mut factors = Vec::new();
    let mut p = 2;
    while p * p <= n {
        while n.is_multiple_of(p) {
            factors.push(p);
            n /= p;
        }
        p += 1;
    }
    if n > 1 {
        factors.push(n);
    }
    factors
}

/// `exp(∓2πi k / n)` for `k < n`, the sign being minus unless `inverse`.
fn root_of_unity(k: usize, n: usize, inverse: bool) -> C128 {
    // Eighths of a turn are exact, and angles small, if octants are taken off as integers.
    let (octant, rest) = ((8 * k as u128 / n as u128) as u32, 8 * k as u128 % n as u128);
    let (octant, rest) =
        if octant % 2 == 1 { (octant + 1, rest as f64 - n as f64) } else { (octant, rest as f64) };
    let (sin, cos) = libm::sincos(TAU / 8.0 * (rest / n as f64));
    let (cos, sin) = match octant % 8 {
        0 => (cos, sin),
        2 => (-sin, cos),
        4 => (-cos, -sin),
        _ => (sin, -cos),
    };
    C128::new(cos, if inverse { sin } else { -sin })
}

/// A transform as a convolution with `exp(±πi k² / n)`.
struct Bluestein {
    /// The length of the convolution, a power of two.
    length: usize,
    /// `exp(∓πi k² / n)` for each `k`.
    chirp: Counted<C128>,
    /// The transform of the conjugate of the chirp, wrapped around, over the length.
    kernel: Counted<C128>,
    forward: FftPlan,
}

impl Bluestein {
    fn new(n: usize, inverse: bool) -> Result<Self> {
        let length = n.checked_mul(2).and_then(usize::checked_next_power_of_two);
        let length =
            length.ok_or_else(|| Error::exhausted(format!("a transform of {n} points")))?;
        let mut chirp = zeros(n)?;
        for (k, v) in chirp.iter_mut().enumerate() {
            let square = (k as u128 * k as u128 % (2 * n as u128)) as usize;
            *v = root_of_unity(square, 2 * n, inverse);
        }
        let mut wrapped = zeros::<C128>(length)?;
        for (k, v) in chirp.iter().enumerate() {
            wrapped[k] = v.conj();
            wrapped[(length - k) % length] = v.conj();
        }
        let forward = FftPlan::new(length, false)?;
        let mut kernel = zeros(length)?;
        forward.run(&wrapped, &mut kernel, &mut forward.scratch()?);
        for v in kernel.iter_mut() {
            *v /= length as f64;
        }
        Ok(Bluestein { length, chirp, kernel, forward })
    }

    fn run(&self, from: &[C128], to: &mut [C128], scratch: &mut [C128]) {
        let (padded, rest) = scratch.split_at_mut(self.length);
        let (product, scratch) = rest.split_at_mut(self.length);
        padded.fill(C128::new(0.0, 0.0));
        for ((v, a), chirp) in padded.iter_mut().zip(from).zip(self.chirp.iter()) {
            *v = a * chirp;
        }
        self.forward.run(padded, product, scratch);
        // The inverse transform is the conjugate of the forward one of the conjugate.
        for (v, kernel) in product.iter_mut().zip(self.kernel.iter()) {
            *v = (*v * kernel).conj();
        }
        self.forward.run(product, padded, scratch);
        for ((v, a), chirp) in to.iter_mut().zip(padded.iter()).zip(self.chirp.iter()) {
            *v = a.conj() * chirp;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    /// The definition, with angles reduced exactly.
    fn direct(values: &[C128], inverse: bool) -> Vec<C128> {
        let n = values.len();
        let sign = if inverse { 1.0 } else { -1.0 };
        let term = |j: usize, k: usize| {
            let angle = sign * TAU * ((j * k % n) as f64 / n as f64);
            values[j] * C128::new(angle.cos(), angle.sin())
        };
        (0..n).map(|k| (0..n).map(|j| term(j, k)).sum()).collect()
    }

    #[test]
    fn every_length_agrees_with_the_definition() {
        let mut random = Random(7);
        let lengths = (1..=140).chain([169, 256, 251, 360, 625, 1009, 1024, 2 * 509]);
        for n in lengths {
            let mut part = || random.below(2001) as f64 / 1000.0 - 1.0;
            let values: Vec<_> = (0..n).map(|_| C128::new(part(), part())).collect();
            for inverse in [false, true] {
                let plan = FftPlan::new(n, inverse).unwrap();
                let mut found = vec![C128::new(0.0, 0.0); n];
                plan.run(&values, &mut found, &mut plan.scratch().unwrap());
                let expected = direct(&values, inverse);
                let error = found.iter().zip(&expected).map(|(a, b)| (a - b).norm());
                let worst = error.fold(0.0, f64::max);
                assert!(worst < 1e-14 * (n as f64 + 10.0), "length {n}: {worst}");
            }
        }
    }

    #[test]
    fn roots_at_eighths_of_a_turn_are_exact() {
        assert_eq!(root_of_unity(0, 4, false), C128::new(1.0, 0.0));
        assert_eq!(root_of_unity(1, 4, false), C128::new(0.0, -1.0));
        assert_eq!(root_of_unity(2, 4, true), C128::new(-1.0, 0.0));
        assert_eq!(root_of_unity(3, 4, true), C128::new(0.0, -1.0));
        let eighth = root_of_unity(7, 8, true);
        assert!((eighth.re - 0.5f64.sqrt()).abs() < 1e-16 && eighth.im < 0.0);
    }
}
