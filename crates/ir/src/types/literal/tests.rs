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

#[test]
fn numbers_become_arrays_and_come_back() {
    let square = Array::from([[1, 2, 3], [4, 5, 6]]);
    assert_eq!(square.dims(), [2, 3]);
    assert_eq!(square.to_vec::<i32>().unwrap(), [1, 2, 3, 4, 5, 6]);
    assert_eq!(Array::from([[[0u8; 4]; 3]; 2]).dims(), [2, 3, 4]);
    assert_eq!(Array::from([[[[true; 1]; 2]; 3]; 4]).dims(), [4, 3, 2, 1]);
    assert_eq!(Array::from(vec![1.5f64]), Array::from([1.5]));
    assert_eq!(Array::from(&[1i8, 2][..]).item::<i8>().ok(), None);
    assert_eq!(Literal::from(7), Literal::Array(Array::from(7)));
    assert_eq!(square.to_vec::<f32>().unwrap_err().code(), crate::Code::InvalidArgument);
    assert_eq!(square.get([0, 3]), None);
    assert_eq!(square.get([1]), None);
    assert_eq!(Array::from(3).get([]), Some(Number::Int(3)));
}

#[test]
fn a_vector_is_taken_out_without_a_copy() {
    let array = Array::from(vec![1f32, 2.0]);
    let at = array.as_slice::<f32>().unwrap().as_ptr();
    let shared = array.clone();
    let copy = shared.into_vec::<f32>().unwrap();
    assert_ne!(copy.as_ptr(), at);
    assert!(array.clone().into_vec::<i32>().is_err());
    let own = array.into_vec::<f32>().unwrap();
    assert_eq!((own.as_ptr(), own.len()), (at, 2));
}

#[test]
fn arrays_are_equal_as_numbers_are() {
    let nan = Array::from([f32::NAN]);
    assert_ne!(nan, nan);
    assert_eq!(Array::from([0.0]), Array::from([-0.0]));
    assert_ne!(Array::from([1i32]), Array::from([1i64]));
    assert_ne!(Array::from([1]), Array::from([[1]]));
    let bounded = |bound: usize, values: Vec<i32>| {
        let shape =
            ArrayShape::with_kinds(ElementType::S32, vec![bound], vec![DimKind::Bounded]).unwrap();
        Array::from_data(shape, ArrayData::S32(values)).unwrap().with_sizes(vec![2]).unwrap()
    };
    // What lies beyond the size means nothing.
    assert_eq!(bounded(3, vec![1, 2, 3]), bounded(4, vec![1, 2, 8, 9]));
    assert_ne!(bounded(3, vec![1, 2, 3]), bounded(3, vec![1, 3, 3]));
    assert_eq!(bounded(3, vec![1, 2, 3]), Array::from([1, 2]));
}
