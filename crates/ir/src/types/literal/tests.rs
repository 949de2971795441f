//! Literals.

use super::*;

fn rule<T>(result: Result<T>) -> Option<&'static str> {
    result.err().and_then(|e| e.rule_id())
}

#[test]
fn values_must_fit_the_shape() {
    let shape = ArrayShape::new(ElementType::S32, [3]).expect("a shape");
    assert_eq!(rule(Array::new([3], vec![1, 2])), Some("literal.C1"));
    let floats = ArrayData::F32(vec![0.0; 3]);
    assert_eq!(rule(Array::from_data(shape.clone(), floats)), Some("literal.C1"));
    assert_eq!(rule(Array::from_bytes(shape.clone(), &[0; 11])), Some("literal.C1"));
    let array = Array::new([1, 3], vec![1, 2, 3]).expect("three values");
    assert!(array.with_shape(shape).is_ok());
    assert_eq!(rule(array.with_shape(ArrayShape::scalar(ElementType::S32))), Some("literal.C1"));
}

#[test]
fn bytes_of_every_type_come_back() {
    for &element in ElementType::ALL {
        let shape = ArrayShape::new(element, [5]).expect("a shape");
        let bytes: Vec<u8> = (0..shape.size_bytes()).map(|i| (i % 2) as u8).collect();
        let array = Array::from_bytes(shape, &bytes).expect("as many bytes");
        assert_eq!(array.to_bytes(), bytes, "{element}");
        let mut copy = vec![0; bytes.len()];
        array.write_to(&mut copy).expect("as many bytes");
        assert_eq!(copy, bytes, "{element}");
        assert_eq!(rule(array.write_to(&mut copy[1..])), Some("literal.C1"));
    }
}

#[test]
fn elements_may_not_be_left_away() {
    let mut literal = Literal::scalar(1f32);
    assert_eq!(rule(literal.ensure_whole()), None);
    for data in [ArrayData::F32(vec![]), ArrayData::S32(vec![1])] {
        if let Literal::Array(array) = &mut literal {
            *array.data_mut() = data;
        }
        let nested = Literal::Tuple(vec![Literal::Token, literal.clone()]);
        assert_eq!(rule(nested.ensure_whole()), Some("literal.C1"));
    }
}

#[test]
fn arrays_are_compared_by_their_bits() {
    let floats = |values: &[f32]| Array::new([values.len()], values.to_vec()).expect("floats");
    assert!(floats(&[f32::NAN, 0.0]).same_bits(&floats(&[f32::NAN, 0.0])));
    assert!(!floats(&[0.0]).same_bits(&floats(&[-0.0])));
    assert!(!floats(&[0.0]).same_bits(&floats(&[0.0, 0.0])));
    assert!(floats(&[]).is_uniform() && floats(&[1.0]).is_uniform());
    assert!(floats(&[f32::NAN; 5]).is_uniform());
    assert!(!floats(&[0.0, 0.0, -0.0]).is_uniform());
    for &element in ElementType::ALL {
        let shape = ArrayShape::new(element, [3]).expect("a shape");
        let array = |last: u8| {
            let size = element.size_bytes();
            let mut bytes = vec![1; 3 * size];
            bytes[2 * size] = last;
            Array::from_bytes(shape.clone(), &bytes).expect("as many bytes")
        };
        assert!(array(1).is_uniform() && !array(0).is_uniform(), "{element}");
        assert!(array(0).same_bits(&array(0)) && !array(1).same_bits(&array(0)), "{element}");
        assert_eq!(array(0).as_bytes().is_some(), array(0).data().as_bytes().is_some());
    }
}

#[test]
fn sizes_must_fit_the_bounds() {
    let kinds = vec![DimKind::Bounded, DimKind::Static];
    let shape = ArrayShape::with_kinds(ElementType::S32, vec![2, 2], kinds).expect("a shape");
    let array = Array::from_data(shape, ArrayData::S32(vec![0; 4])).expect("four values");
    let with = |sizes: &[usize]| rule(array.clone().with_sizes(sizes.to_vec()));
    assert_eq!(with(&[0, 2]), None);
    assert_eq!(with(&[2, 2]), None);
    assert_eq!(with(&[3, 2]), Some("literal.C2"));
    assert_eq!(with(&[2, 1]), Some("literal.C2"));
    assert_eq!(with(&[2]), Some("literal.C2"));
}
