//! Closed forms for 2×2 matrices, each of high relative accuracy.

use crate::scalar::Real;

/// The singular values of `[f g; 0 h]`: the smaller, the larger.
pub(crate) fn singular_values<R: Real>(f: R, g: R, h: R) -> (R, R) {
    let (zero, one) = (R::default(), R::of(1.0));
    let (f, g, h) = (f.abs(), g.abs(), h.abs());
    let (small, large) = (f.min(h), f.max(h));
    if small == zero {
        if large == zero {
            return (zero, g);
        }
        let (low, high) = (large.min(g), large.max(g));
        let ratio = low / high;
        return (zero, high * (one + ratio * ratio).sqrt());
    }
    let sum = one + small / large;
    let difference = (large - small) / large;
    if g < large {
        let ratio = g / large;
        let square = ratio * ratio;
        let c =
            R::of(2.0) / ((sum * sum + square).sqrt() + (difference * difference + square).sqrt());
        return (small * c, large / c);
    }
    let ratio = large / g;
    if ratio == zero {
        return (small * large / g, g);
    }
    let (left, right) = (sum * ratio, difference * ratio);
    let c = one / ((one + left * left).sqrt() + (one + right * right).sqrt());
    let low = (small * c) * ratio;
    (low + low, g / (c + c))
}

/// `[f g; 0 h]` with its singular values, which have signs, and vectors:
/// `[cl sl; −sl cl] [f g; 0 h] [cr −sr; sr cr] = [large 0; 0 small]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SingularPair<R> {
    pub(crate) small: R,
    pub(crate) large: R,
    pub(crate) right: (R, R),
    pub(crate) left: (R, R),
}

pub(crate) fn singular_pair<R: Real>(f: R, g: R, h: R) -> SingularPair<R> {
    let (zero, half, one, two, four) =
        (R::default(), R::of(0.5), R::of(1.0), R::of(2.0), R::of(4.0));
    let sign = |x: R| one.copysign(x);
    let (mut ft, mut ht) = (f, h);
    // Which of the three is the largest in magnitude.
    let mut largest = 1;
    let is_swapped = h.abs() > f.abs();
    if is_swapped {
        largest = 3;
        (ft, ht) = (ht, ft);
    }
    let (fa, ha, ga) = (ft.abs(), ht.abs(), g.abs());
    let (small, large, cl, sl, cr, sr);
    if ga == zero {
        (small, large, cl, cr, sl, sr) = (ha, fa, one, one, zero, zero);
    } else {
        let mut is_moderate = true;
        let mut far = (zero, zero, zero, zero, zero, zero);
        if ga > fa {
            largest = 2;
            if fa / ga < R::EPS {
                is_moderate = false;
                let low = if ha > one { fa / (ga / ha) } else { (fa / ga) * ha };
                far = (low, ga, one, ht / g, one, ft / g);
            }
        }
        if is_moderate {
            let d = fa - ha;
            let l = if d == fa { one } else { d / fa };
            let m = g / ft;
            let t = two - l;
            let (mm, tt) = (m * m, t * t);
            let s = (tt + mm).sqrt();
            let r = if l == zero { m.abs() } else { (l * l + mm).sqrt() };
            let a = half * (s + r);
            (small, large) = (ha / a, fa * a);
            let t = if mm == zero {
                if l == zero { two.copysign(ft) * sign(g) } else { g / d.copysign(ft) + m / t }
            } else {
                (m / (s + t) + m / (r + l)) * (one + a)
            };
            let l = (t * t + four).sqrt();
            cr = two / l;
            sr = t / l;
            cl = (cr + sr * m) / a;
            sl = (ht / ft) * sr / a;
        } else {
            (small, large, cl, sl, sr, cr) = far;
        }
    }
    let (left, right) = if is_swapped { ((sr, cr), (sl, cl)) } else { ((cl, sl), (cr, sr)) };
    let sign_of_large = match largest {
        1 => sign(right.0) * sign(left.0) * sign(f),
        2 => sign(right.1) * sign(left.0) * sign(g),
        _ => sign(right.1) * sign(left.1) * sign(h),
    };
    SingularPair {
        small: small.copysign(sign_of_large * sign(f) * sign(h)),
        large: large.copysign(sign_of_large),
        right,
        left,
    }
}

/// The eigenvalues of `[a b; b c]`, the one of larger magnitude first, and the unit eigenvector
/// `(cos, sin)` of that.
pub(crate) fn symmetric<R: Real>(a: R, b: R, c: R) -> (R, R, R, R) {
    let (zero, half, one) = (R::default(), R::of(0.5), R::of(1.0));
    let (sum, difference) = (a + c, a - c);
    let (distance, twice) = (difference.abs(), (b + b).abs());
    let (high, low) = if a.abs() > c.abs() { (a, c) } else { (c, a) };
    let root = if distance > twice {
        let ratio = twice / distance;
        distance * (one + ratio * ratio).sqrt()
    } else if distance < twice {
        let ratio = distance / twice;
        twice * (one + ratio * ratio).sqrt()
    } else {
        twice * R::of(2.0).sqrt()
    };
    let (first, second, is_first_less);
    if sum < zero {
        first = half * (sum - root);
        is_first_less = true;
        second = (high / first) * low - (b / first) * b;
    } else if sum > zero {
        first = half * (sum + root);
        is_first_less = false;
        second = (high / first) * low - (b / first) * b;
    } else {
        first = half * root;
        second = -half * root;
        is_first_less = false;
    }
    let is_difference_less = difference < zero;
    let cs = if is_difference_less { difference - root } else { difference + root };
    let (cos, sin);
    if cs.abs() > twice {
        let cotangent = -(b + b) / cs;
        sin = one / (one + cotangent * cotangent).sqrt();
        cos = cotangent * sin;
    } else if twice == zero {
        (cos, sin) = (one, zero);
    } else {
        let tangent = -cs / (b + b);
        cos = one / (one + tangent * tangent).sqrt();
        sin = tangent * cos;
    }
    if is_first_less == is_difference_less {
        (first, second, -sin, cos)
    } else {
        (first, second, cos, sin)
    }
}

/// Schur's form of a real 2×2 matrix, and the rotation that gives it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standard<R> {
    /// `[a b; c d]`: either `c` is 0, or `a = d` and `b c < 0`.
    pub(crate) form: [R; 4],
    /// The eigenvalues, real and imaginary parts.
    pub(crate) values: [(R, R); 2],
    pub(crate) cos: R,
    pub(crate) sin: R,
}

/// `[a b; c d] = [cs −sn; sn cs] form [cs sn; −sn cs]`.
pub(crate) fn standard<R: Real>(mut a: R, mut b: R, mut c: R, mut d: R) -> Standard<R> {
    let (zero, half, one) = (R::default(), R::of(0.5), R::of(1.0));
    let sign = |x: R| one.copysign(x);
    let (mut cos, mut sin) = (one, zero);
    if c == zero {
    } else if b == zero {
        (cos, sin) = (zero, one);
        (a, d) = (d, a);
        (b, c) = (-c, zero);
    } else if a - d == zero && sign(b) != sign(c) {
    } else {
        let difference = a - d;
        let p = half * difference;
        let max = b.abs().max(c.abs());
        let min = b.abs().min(c.abs()) * sign(b) * sign(c);
        let scale = p.abs().max(max);
        let z = (p / scale) * p + (max / scale) * min;
        if z >= R::of(8.0) * R::EPS {
            let z = p + (scale.sqrt() * z.sqrt()).copysign(p);
            a = d + z;
            d -= (max / z) * min;
            let length = c.hypot(z);
            (cos, sin) = (z / length, c / length);
            b -= c;
            c = zero;
        } else {
            let sum = b + c;
            let length = sum.hypot(difference);
            cos = (half * (one + sum.abs() / length)).sqrt();
            sin = -(p / (length * cos)) * sign(sum);
            let (aa, bb) = (a * cos + b * sin, -a * sin + b * cos);
            let (cc, dd) = (c * cos + d * sin, -c * sin + d * cos);
            b = bb * cos + dd * sin;
            c = -aa * sin + cc * cos;
            let mean = half * ((aa * cos + cc * sin) + (-bb * sin + dd * cos));
            (a, d) = (mean, mean);
            if c != zero {
                if b == zero {
                    (b, c) = (-c, zero);
                    (cos, sin) = (-sin, cos);
                } else if sign(b) == sign(c) {
                    let (root_b, root_c) = (b.abs().sqrt(), c.abs().sqrt());
                    let p = (root_b * root_c).copysign(c);
                    let down = one / (b + c).abs().sqrt();
                    (a, d) = (mean + p, mean - p);
                    (b, c) = (b - c, zero);
                    let (cos1, sin1) = (root_b * down, root_c * down);
                    (cos, sin) = (cos * cos1 - sin * sin1, cos * sin1 + sin * cos1);
                }
            }
        }
    }
    let imaginary = if c == zero { zero } else { b.abs().sqrt() * c.abs().sqrt() };
    Standard { form: [a, b, c, d], values: [(a, imaginary), (d, -imaginary)], cos, sin }
}
