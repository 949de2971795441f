//! The instructions' model by hand, and whole products with it.

use super::*;

fn model(rows: [usize; 3], row_bytes: [usize; 3]) -> Model {
    let mut tiles = Model::new().expect("a model");
    let mut config = Config::default();
    config.rows[..3].copy_from_slice(&rows);
    config.row_bytes[..3].copy_from_slice(&row_bytes);
    tiles.configure(&config);
    tiles
}

/// `sum`, to which a tile of one row and column adds the products of these words.
fn added(sum: u32, lhs: &[u32], rhs: &[u32], dot: Dot) -> u32 {
    let mut tiles = model([1, 1, rhs.len()], [4, 4 * lhs.len(), 4]);
    let mut result = 0;
    // SAFETY: the tiles are configured, match, and have as many words as the slices.
    unsafe {
        tiles.load::<0>(&sum, 1);
        tiles.load::<1>(lhs.as_ptr(), lhs.len());
        tiles.load::<2>(rhs.as_ptr(), 1);
        tiles.dot::<0, 1, 2>(dot);
        tiles.store::<0>(&mut result, 1);
    }
    result
}

/// The pairs of `bf16` with these values, of which `f32` keeps the upper halves.
fn pair(low: f32, high: f32) -> u32 {
    low.to_bits() >> 16 | high.to_bits() & 0xffff_0000
}

#[test]
fn bytes_are_taken_with_their_signs() {
    let (lhs, rhs) = ([0x80ff_0102_u32], [0xff7f_03fe_u32]);
    for (signed, want) in [
        // 2·254 + 1·3 + 255·127 + 128·255, and with 254 as -2, 255 as -1, 128 as -128.
        ([false, false], 508 + 3 + 32385 + 32640),
        ([false, true], -4 + 3 + 32385 - 128),
        ([true, false], 508 + 3 - 127 - 32640),
        ([true, true], -4 + 3 - 127 + 128),
    ] {
        let sum = added(100, &lhs, &rhs, Dot::Bytes { signed });
        assert_eq!(sum.cast_signed(), 100 + want, "{signed:?}");
    }
}

#[test]
fn sums_of_bytes_wrap() {
    let dot = Dot::Bytes { signed: [true, true] };
    assert_eq!(added(i32::MAX.cast_unsigned(), &[1], &[1], dot).cast_signed(), i32::MIN);
}

#[test]
fn pairs_are_summed_by_their_places_and_subnormal_numbers_are_zero() {
    let subnormal = f32::from_bits(0x0040_0000);
    let (big, one) = (2_f32.powi(30), 1.0);
    let cases = [
        // Rows of lhs, columns of rhs: two words each.
        ([pair(3.0, 4.0), pair(5.0, 6.0)], [pair(1.0, 2.0), pair(-1.0, 0.5)], 10.0 + 9.0),
        // The even products cancel before the odd one is added.
        ([pair(big, one), pair(-big, 0.0)], [pair(1.0, 1.0), pair(1.0, 0.0)], 10.0 + 1.0),
        ([pair(subnormal, 0.0), 0], [pair(big, 0.0), 0], 10.0),
        // A product that is subnormal.
        ([pair(2_f32.powi(-100), 0.0), 0], [pair(2_f32.powi(-30), 0.0), 0], 10.0),
    ];
    for (lhs, rhs, want) in cases {
        assert_eq!(f32::from_bits(added(10_f32.to_bits(), &lhs, &rhs, Dot::Bf16)), want);
    }
}

#[test]
#[should_panic(expected = "tile 2 is configured")]
fn tiles_must_be_configured() {
    // SAFETY: the model looks for itself.
    unsafe { model([1, 1, 0], [4, 4, 0]).zero::<2>() };
}

#[test]
#[should_panic(expected = "rhs has a row for each word of lhs")]
fn tiles_must_match() {
    // SAFETY: the model looks for itself.
    unsafe { model([1, 1, 1], [4, 8, 4]).dot::<0, 1, 2>(Dot::Bf16) };
}
