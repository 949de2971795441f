//! Programs whose arguments are cut up give what they give as a whole.

mod support;

use support::*;

/// Two rows of `x` on each of two devices, and all of `w` on both.
const PROGRAM: &str = "sdy.mesh @m = <[\"a\"=2]>
  func.func public @main(%x: tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@m, [{\"a\"}, {}]>},
      %w: tensor<2x2xf32>)
      -> (tensor<4x2xf32>, tensor<2x2xf32>, tensor<2xf32>, tensor<4x2xf32>, tensor<4x2xf32>) {
    %ten = stablehlo.constant dense<10.0> : tensor<f32>
    %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
    %g = stablehlo.dot_general %x, %p, contracting_dims = [0] x [0]
      : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<2x2xf32>
    %s = stablehlo.reduce(%x init: %ten) applies stablehlo.add across dimensions = [0]
      : (tensor<4x2xf32>, tensor<f32>) -> tensor<2xf32>
    %i = stablehlo.iota dim = 0 : tensor<4xf32>
    %j = stablehlo.broadcast_in_dim %i, dims = [0] : (tensor<4xf32>) -> tensor<4x2xf32>
    %k = stablehlo.add %x, %j : tensor<4x2xf32>
    %r = stablehlo.reverse %j, dims = [0] : tensor<4x2xf32>
    return %p, %g, %s, %k, %r
      : tensor<4x2xf32>, tensor<2x2xf32>, tensor<2xf32>, tensor<4x2xf32>, tensor<4x2xf32>
  }";

#[test]
fn tiles_give_what_the_whole_gives() {
    let client = client(2);
    let program = compile(client, PROGRAM, &[0x1a, 2, 0x28, 2]).unwrap();
    let x = [[1.0f32, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]];
    let w = [1.0f32, 0.0, -1.0, 2.0];
    let mut arguments = Vec::new();
    for (device, x) in devices(client).into_iter().zip(&x) {
        let put = |data: &[f32]| {
            let shape = (helio_pjrt::abi::PJRT_Buffer_Type_F32, &[2, 2][..], &[][..]);
            let (buffer, event) = put(client, device, shape, data.as_ptr()).unwrap();
            destroy_event(event);
            buffer
        };
        arguments.push(vec![put(x), put(&w)]);
    }
    let (results, events) = execute(program, &arguments, &[]).unwrap();
    for event in events {
        wait(event).unwrap();
    }
    let of = |device: usize, i: usize| read::<f32>(results[device][i]).unwrap();
    let product = [[-1.0, 4.0], [-1.0, 8.0], [-1.0, 12.0], [-1.0, 16.0]];
    assert_eq!([of(0, 0), of(1, 0)].concat(), product.concat());
    for device in 0..2 {
        // x' p: the columns of x with those of p.
        assert_eq!(of(device, 1), [-16.0, 200.0, -20.0, 240.0]);
        assert_eq!(of(device, 2), [26.0, 30.0]);
        assert_eq!(of(device, 4), [3.0, 3.0, 2.0, 2.0, 1.0, 1.0, 0.0, 0.0]);
    }
    assert_eq!([of(0, 3), of(1, 3)].concat(), [1.0, 2.0, 4.0, 5.0, 7.0, 8.0, 10.0, 11.0]);
}
