//! The spectra of lines of reals, side by side: half of the points, the others are their conjugates.

use super::Real;
use super::lanes::{Lanes, Vector};
use super::stages::{Point, View};

/// Point `q` of the spectrum of a line of reals, of which the first half is there.
#[inline(always)]
pub(super) fn spectrum_point<L: Lanes>(
    view: View<L>,
    half: &[L::Real],
    q: usize,
    len: usize,
    scale: L::Vector,
) -> Point<L::Vector> {
    let zero = view.lanes.splat(L::Real::rounded(0.0));
    let point = view.get(half, if q <= len / 2 { q } else { len - q });
    let (re, im) = (point.re * scale, point.im * scale);
    match q {
        // A real line's spectrum has a real first point; what else it holds is left out.
        0 => Point { re, im: zero },
        _ if q <= len / 2 => Point { re, im },
        _ => Point { re, im: zero - im },
    }
}

/// From the spectrum of `m` complex points to that of the `2 * m` reals that they are.
#[inline(always)]
pub(super) fn reals_spectrum<L: Lanes>(
    view: View<L>,
    m: usize,
    twiddles: &[[L::Real; 2]],
    from: &[L::Real],
    to: &mut [L::Real],
) {
    let lanes = view.lanes;
    let (zero, half) = (lanes.splat(L::Real::rounded(0.0)), lanes.splat(L::Real::rounded(0.5)));
    let first = view.get(from, 0);
    view.set(to, 0, Point { re: first.re + first.im, im: zero });
    view.set(to, m, Point { re: first.re - first.im, im: zero });
    for (k, &twiddle) in (1..=m / 2).zip(twiddles) {
        let (a, b) = (view.get(from, k), view.get(from, m - k));
        // Those of the even and, turned, of the odd reals; each is the conjugate of its mirror.
        let even = Point { re: half * (a.re + b.re), im: half * (a.im - b.im) };
        let uneven = Point { re: half * (a.im + b.im), im: half * (b.re - a.re) };
        let uneven = uneven.times(view.splat(twiddle));
        view.set(to, k, even.plus(uneven));
        view.set(to, m - k, Point { re: even.re - uneven.re, im: uneven.im - even.im });
    }
}

/// The way back of [`reals_spectrum`], times `2 * scale`.
#[inline(always)]
pub(super) fn half_spectrum<L: Lanes>(
    view: View<L>,
    m: usize,
    twiddles: &[[L::Real; 2]],
    scale: L::Real,
    from: &[L::Real],
    to: &mut [L::Real],
) {
    let scale = view.lanes.splat(scale);
    // Real lines' spectra have real ends; what else they hold is left out.
    let (first, last) = (view.get(from, 0).re * scale, view.get(from, m).re * scale);
    view.set(to, 0, Point { re: first + last, im: first - last });
    for (k, &twiddle) in (1..=m / 2).zip(twiddles) {
        let (a, b) = (view.get(from, k), view.get(from, m - k));
        let even = Point { re: scale * (a.re + b.re), im: scale * (a.im - b.im) };
        let uneven = Point { re: scale * (a.re - b.re), im: scale * (a.im + b.im) };
        let [cos, sin] = view.splat(twiddle);
        // By the factor's conjugate.
        let uneven = Point {
            re: uneven.re.mul_add(cos, uneven.im * sin),
            im: uneven.re.neg_mul_add(sin, uneven.im * cos),
        };
        view.set(to, k, Point { re: even.re - uneven.im, im: even.im + uneven.re });
        view.set(to, m - k, Point { re: even.re + uneven.im, im: uneven.re - even.im });
    }
}
