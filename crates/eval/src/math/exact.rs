//! Arithmetic without rounding errors, for sums that cancel.

/// `x + y` as the rounded sum and its error.
pub(crate) fn two_sum(x: f64, y: f64) -> (f64, f64) {
    let sum = x + y;
    let y_part = sum - x;
    (sum, (x - (sum - y_part)) + (y - y_part))
}

/// `x * x` as the rounded square and its error; exact unless the error is below the normal range.
pub(crate) fn two_square(x: f64) -> (f64, f64) {
    let square = x * x;
    (square, libm::fma(x, x, -square))
}

/// `x * y` as the rounded product and its error; exact unless the error is below the normal range.
pub(crate) fn two_product(x: f64, y: f64) -> (f64, f64) {
    let product = x * y;
    (product, libm::fma(x, y, -product))
}

/// The sum of finite numbers, rounded hardly more than once, whatever cancels.
///
/// Shewchuk's expansion ("Adaptive precision floating-point arithmetic", 1997): each number is added
/// to a list of partial sums that do not overlap, and only the list is summed with rounding.
pub(crate) fn sum<const N: usize>(terms: [f64; N]) -> f64 {
    let mut partials = [0.0; N];
    for (count, mut term) in terms.into_iter().enumerate() {
        for partial in &mut partials[..count] {
            let (sum, error) = two_sum(*partial, term);
            *partial = error;
            term = sum;
        }
        partials[count] = term;
    }
    partials.iter().sum()
}
