//! Conversions between element types against tables that others computed; `data/small_floats.py`
//! says who and how.

use helio_ir::{ElementType, Native, Number, dispatch_type};

/// The values after type name and keyword, for each row with this keyword.
fn rows(keyword: &str) -> Vec<(ElementType, Vec<&'static str>)> {
    let table = include_str!("data/small_floats.txt");
    let rows = table.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let mut words = line.split(' ');
        let element = words.next().unwrap().parse().unwrap();
        (words.next().unwrap() == keyword).then(|| (element, words.collect()))
    });
    rows.collect()
}

/// An `f64` from the digits of its bits, the last of which may be left out if zero.
fn f64_of(digits: &str) -> f64 {
    f64::from_bits(u64::from_str_radix(&format!("{digits:0<16}"), 16).unwrap())
}

/// The bits that a number converts to.
fn encode(element: ElementType, number: Number) -> u128 {
    dispatch_type!(element, T => Native::to_bits(T::from_number(number)))
}

/// The number that bits stand for.
fn decode(element: ElementType, bits: u128) -> f64 {
    dispatch_type!(element, T => <T as Native>::from_bits(bits).to_number().to_f64())
}

#[test]
fn every_code_of_narrow_floats_decodes() {
    let rows = rows("decode");
    assert_eq!(rows.len(), 9);
    for (element, words) in rows {
        assert_eq!(words.len(), 1 << element.bits());
        for (code, word) in words.iter().enumerate() {
            let found = decode(element, code as u128);
            if *word == "nan" {
                assert!(found.is_nan(), "{element} {code:#x}: {found}");
            } else {
                let expected = f64::from(f32::from_bits(u32::from_str_radix(word, 16).unwrap()));
                assert_eq!(found.to_bits(), expected.to_bits(), "{element} {code:#x}: {found}");
            }
        }
    }
}

#[test]
fn narrow_floats_round_to_nearest_even() {
    for (element, words) in rows("encode") {
        for word in words {
            let (input, code) = word.split_once(':').unwrap();
            let (input, code) = (f64_of(input), u128::from_str_radix(code, 16).unwrap());
            let found = encode(element, Number::Float(input));
            let both_nan = decode(element, found).is_nan() && decode(element, code).is_nan();
            assert!(found == code || both_nan, "{element} of {input:e}: {found:#x}, not {code:#x}");
        }
    }
}

#[test]
fn every_narrow_float_survives_a_round_trip() {
    for &element in ElementType::ALL.iter().filter(|e| e.is_float() && e.bits() <= 16) {
        for code in 0..1u128 << element.bits() {
            let number = decode(element, code);
            let found = encode(element, Number::Float(number));
            assert!(
                found == code || number.is_nan() && decode(element, found).is_nan(),
                "{element} {code:#x}: {found:#x}"
            );
        }
    }
}

#[test]
fn nan_without_a_code_is_negative_zero() {
    // XLA:CPU (jaxlib 0.10.2) gives -0 for NaN of either sign.
    for nan in [f64::NAN, -f64::NAN] {
        assert_eq!(encode(ElementType::F4E2M1FN, Number::Float(nan)), 8);
    }
}

#[test]
fn wide_numbers_are_rounded_once() {
    for (element, words) in rows("from_f64") {
        for word in words {
            let (input, expected) = word.split_once(':').unwrap();
            let (input, expected) = (f64_of(input), f64_of(expected));
            let found = decode(element, encode(element, Number::Float(input)));
            assert_eq!(found.abs(), expected.abs(), "{element} of {input:e}");
            assert_eq!(
                found.is_sign_negative(),
                input.is_sign_negative(),
                "{element} of {input:e}"
            );
        }
    }
    for (element, words) in rows("from_s64") {
        for word in words {
            let (input, expected) = word.split_once(':').unwrap();
            let (input, expected) = (input.parse::<i64>().unwrap(), f64_of(expected));
            let found = decode(element, encode(element, input.to_number()));
            assert_eq!(found, expected, "{element} of {input}");
        }
    }
}

#[test]
fn floats_to_integers_truncate_and_saturate() {
    // semantics §3, measured on XLA:CPU.
    let cases = [
        (ElementType::S8, -1.9, -1i128),
        (ElementType::S8, 300.0, 127),
        (ElementType::S8, f64::NEG_INFINITY, -128),
        (ElementType::U8, -3.0, 0),
        (ElementType::U8, 255.9, 255),
        (ElementType::S4, 100.0, 7),
        (ElementType::S2, -100.0, -2),
        (ElementType::U2, 3.5, 3),
        (ElementType::S64, 1e30, i64::MAX.into()),
        (ElementType::U64, 1e30, u64::MAX.into()),
        (ElementType::S32, f64::NAN, 0),
    ];
    for (element, input, expected) in cases {
        let found = dispatch_type!(element, T => {
            T::from_number(Number::Float(input)).to_number().to_int(i128::MIN, i128::MAX)
        });
        assert_eq!(found, expected, "{element} of {input}");
    }
}

#[test]
fn integers_keep_their_low_bits() {
    assert_eq!(i8::from_number(300i32.to_number()), 44);
    assert_eq!(u32::from_number((-1i8).to_number()), u32::MAX);
    assert_eq!(u64::from_number(200u8.to_number()), 200);
    assert_eq!(encode(ElementType::S4, 9u8.to_number()), 9);
    assert_eq!(f32::from_number(16_777_219i32.to_number()), 16_777_220.0);
}

#[test]
fn whatever_is_not_zero_is_true() {
    assert!(bool::from_number(Number::Float(f64::NAN)));
    assert!(bool::from_number(Number::Float(0.5)));
    assert!(!bool::from_number(Number::Float(-0.0)));
    assert_eq!(f32::from_number(Number::Pred(true)), 1.0);
}

#[test]
fn complex_numbers_drop_or_gain_an_imaginary_part() {
    use helio_ir::types::{C64, C128};
    assert_eq!(f32::from_number(C64::new(1.5, 2.0).to_number()), 1.5);
    assert_eq!(C64::from_number(Number::Int(3)), C64::new(3.0, 0.0));
    assert_eq!(C64::from_number(C128::new(0.1, 1e300).to_number()), C64::new(0.1, f32::INFINITY));
}

#[test]
fn bits_survive_in_every_type() {
    for &element in ElementType::ALL.iter().filter(|element| !element.is_pred()) {
        let mask = u128::MAX >> (128 - element.bits());
        for pattern in [0, 1, 0x5555_5555_5555_5555_5555, u128::MAX / 3, 0x3ff8_0000_c000_0001] {
            let bits = dispatch_type!(element, T => {
                Native::to_bits(<T as Native>::from_bits(pattern))
            });
            assert_eq!(bits, pattern & mask, "{element}");
        }
    }
}
