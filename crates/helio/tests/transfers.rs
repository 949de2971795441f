//! Arrays between the host's memory and buffers.

use std::sync::Arc;

use helio::ir::ArrayShape;
use helio::{Array, Client, Code, ElementType, Error, ExecuteOptions, HostLayout, MemoryKind};

fn shape(dims: &[usize]) -> ArrayShape {
    ArrayShape::new(ElementType::S32, dims.to_vec()).expect("a shape")
}

fn code<T>(result: Result<T, Error>) -> Option<Code> {
    result.err().map(|e| e.code())
}

/// The numbers from 0 on, as the bytes of 32-bit integers.
fn counting(count: i32) -> Vec<u8> {
    (0..count).flat_map(i32::to_ne_bytes).collect()
}

#[test]
fn strides_go_in_any_direction() {
    let client = Client::default();
    let (shape, bytes) = (shape(&[2, 3]), counting(24));
    // Each layout, with the numbers that it reads from where they are counted.
    for (first, strides, expected) in [
        (0, vec![12, 4], [0, 1, 2, 3, 4, 5]),
        (0, vec![4, 8], [0, 2, 4, 1, 3, 5]),
        (80, vec![-48, -4], [20, 19, 18, 8, 7, 6]),
        (4, vec![40, 12], [1, 4, 7, 11, 14, 17]),
        (8, vec![0, 4], [2, 3, 4, 2, 3, 4]),
        (0, vec![4, 0], [0, 0, 0, 1, 1, 1]),
    ] {
        let layout = HostLayout::new(first, strides);
        let device = client.default_device();
        let x = client.buffer_from_strided(&shape, &bytes, &layout, device).expect("a buffer");
        assert_eq!(*x.view_as::<i32>().expect("integers"), expected, "{layout:?}");
        // Back to where it came from, and nothing else is touched.
        let mut copy = vec![0xff; bytes.len()];
        x.copy_to_host(&mut copy, &layout).expect("room");
        for (number, (to, from)) in copy.chunks(4).zip(bytes.chunks(4)).enumerate() {
            let wanted = if expected.contains(&(number as i32)) { from } else { &[0xff; 4] };
            assert_eq!(to, wanted, "{layout:?} at {number}");
        }
    }
}

#[test]
fn strides_that_leave_the_memory_are_refused() {
    let client = Client::default();
    let read = |dims: &[usize], bytes: usize, first: usize, strides: &[isize]| {
        let layout = HostLayout::new(first, strides.to_vec());
        let (bytes, device) = (vec![0; bytes], client.default_device());
        let buffer = client.buffer_from_strided(&shape(dims), &bytes, &layout, device);
        let there = client.buffer_from_array(
            &Array::zeros(shape(dims)).expect("an array"),
            client.default_device(),
        );
        let back = there.expect("memory").copy_to_host(&mut vec![0; bytes.len()], &layout);
        assert_eq!(code(back), code(buffer.as_ref().map(drop).map_err(Clone::clone)));
        code(buffer)
    };
    assert_eq!(read(&[2, 3], 24, 0, &[12, 4]), None);
    assert_eq!(read(&[2, 3], 23, 0, &[12, 4]), Some(Code::OutOfRange));
    assert_eq!(read(&[2, 3], 24, 4, &[12, 4]), Some(Code::OutOfRange));
    assert_eq!(read(&[2, 3], 24, 8, &[12, -4]), None);
    assert_eq!(read(&[2, 3], 24, 4, &[12, -4]), Some(Code::InvalidArgument));
    assert_eq!(read(&[2, 3], 24, 0, &[4]), Some(Code::InvalidArgument));
    assert_eq!(read(&[2, 3], 24, 0, &[isize::MAX, isize::MAX]), Some(Code::InvalidArgument));
    assert_eq!(read(&[2, 3], 24, usize::MAX, &[12, 4]), Some(Code::InvalidArgument));
    // Nothing is read where a dimension has size 0, and a stride means nothing where it has size 1.
    assert_eq!(read(&[0, 3], 0, 0, &[isize::MIN, isize::MAX]), None);
    assert_eq!(read(&[1, 3], 12, 0, &[isize::MAX, 4]), None);
    assert_eq!(read(&[1, 3], 20, 0, &[isize::MIN, 8]), None);
    assert_eq!(read(&[], 4, 0, &[]), None);
}

#[test]
fn the_host_hears_when_its_memory_is_not_used_any_more() {
    #[repr(align(64))]
    struct Aligned([u8; 8]);
    impl AsRef<[u8]> for Aligned {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    let (client, shape) = (Client::default(), shape(&[2]));
    let device = client.default_device();
    let host: Arc<Aligned> = Arc::new(Aligned([1; 8]));
    let (x, done) =
        client.buffer_from_host_until(&shape, host.clone(), device.clone()).expect("a buffer");
    let view = x.view().expect("a view");
    assert_eq!(view.as_slice().as_ptr(), host.0.as_ptr());
    drop(x);
    assert!(!done.is_ready());
    drop(view);
    assert_eq!((done.outcome(), Arc::strong_count(&host)), (Some(&Ok(())), 1));
    // What does not suit is copied, and free at once.
    struct Odd(Aligned);
    impl AsRef<[u8]> for Odd {
        fn as_ref(&self) -> &[u8] {
            &self.0.0[1..5]
        }
    }
    let one = ArrayShape::new(ElementType::S32, [1]).expect("a shape");
    let odd = Arc::new(Odd(Aligned([7; 8])));
    let (x, done) = client.buffer_from_host_until(&one, odd, device).expect("a buffer");
    assert!(done.is_ready());
    assert_eq!(x.view().expect("a view").as_slice(), [7; 4]);
}

#[test]
fn a_vector_becomes_a_buffer_where_it_is() {
    let client = Client::default();
    let numbers = vec![1i32; 1 << 16];
    let address = numbers.as_ptr();
    let array = Array::new([1 << 16], numbers).expect("an array");
    let x = client.buffer_from_owned(array, client.default_device()).expect("a buffer");
    let view = x.view_as::<i32>().expect("integers");
    if address.align_offset(16) == 0 {
        assert_eq!(view.as_ptr(), address);
    }
    assert_eq!((view.len(), view[12]), (1 << 16, 1));
    assert_eq!(code(x.view_as::<f32>()), Some(Code::InvalidArgument));
    // A program that may write it gets a copy as long as somebody looks.
    let text = "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }
        ENTRY e { x = s32[65536] parameter(0) ROOT y = s32[65536] add(x, x) }";
    let program = client.compile(helio::parse(text).expect("text"), &Default::default());
    let y = program.expect("it compiles").execute(&[&x], &ExecuteOptions::default());
    assert_eq!(y.expect("it runs")[0].view_as::<i32>().expect("integers")[5], 2);
    assert_eq!(view[5], 1);
}

#[test]
fn memories_have_the_names_that_jax_uses() {
    let client = Client::default();
    let device = client.default_device();
    let layout = HostLayout::row_major(&shape(&[2]));
    let x = client.buffer_from_strided(&shape(&[2]), &counting(2), &layout, device.clone());
    let x = x.expect("a buffer");
    assert_eq!(x.memory_kind().name(), "device");
    for &kind in MemoryKind::ALL {
        assert_eq!(MemoryKind::from_name(kind.name()), Some(kind));
        let there = x.copy_to_memory(&device, kind).expect("a copy");
        assert_eq!(
            (there.memory_kind(), &there.view_as::<i32>().expect("integers")[..]),
            (kind, &[0, 1][..])
        );
        assert_eq!(there.copy_to(&device).expect("a copy").memory_kind(), kind);
    }
    assert_eq!(MemoryKind::from_name("vmem"), None);
}
