//! Programs for several partitions: what each does on its tiles, and what it gathers.

use helio_ir::text::print;
use helio_stablehlo::{Partitioned, lower_partitioned, text};

/// The program of one of four partitions, in a mesh of two by two, and its text. Lines of a program are
/// those of a function `main` of `x`, an array of 8 by 4 whose rows lie along `a`.
fn lowered(lines: &str, result: &str) -> (Partitioned, String) {
    let program = format!(
        "sdy.mesh @m = <[\"a\"=2, \"b\"=2]>
        func.func public @main(%x: tensor<8x4xf32> {{sdy.sharding = #sdy.sharding<@m, [{{\"a\"}}, {{}}]>}})
            -> {result} {{
          {lines}
        }}
        func.func private @twice(%y: tensor<8x4xf32>) -> tensor<8x4xf32> {{
          %0 = stablehlo.add %y, %y : tensor<8x4xf32>
          return %0 : tensor<8x4xf32>
        }}"
    );
    let lowered = lower_partitioned(&text::parse(&program).unwrap(), 4).unwrap();
    let text = print(&lowered.module);
    (lowered, text)
}

#[test]
fn what_is_element_by_element_stays_in_tiles() {
    let lines = "%c = stablehlo.constant dense<2.0> : tensor<8x4xf32>
        %i = stablehlo.iota dim = 0 : tensor<8x4xf32>
        %j = stablehlo.multiply %i, %c : tensor<8x4xf32>
        %0 = stablehlo.sine %x : tensor<8x4xf32>
        %1 = stablehlo.add %0, %j : tensor<8x4xf32>
        %2 = call @twice(%1) : (tensor<8x4xf32>) -> tensor<8x4xf32>
        %3 = call @twice(%2) : (tensor<8x4xf32>) -> tensor<8x4xf32>
        %4 = stablehlo.transpose %3, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
        return %4 : tensor<4x8xf32>";
    let (lowered, text) = lowered(lines, "tensor<4x8xf32>");
    assert_eq!((lowered.replicated, &lowered.results[0].tiles[..]), (0, &[1, 2][..]));
    assert!(!text.contains("[8,4]") && !text.contains("[4,8]"), "{text}");
    assert!(!text.contains("all-"), "{text}");
    assert!(text.contains("f32[4,4]") && text.contains("partition-id"), "{text}");
}

#[test]
fn sums_are_finished_among_partitions() {
    let lines = "%z = stablehlo.constant dense<1.0> : tensor<f32>
        %0 = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0]
          : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
        %1 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0, 1]
          : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32>
        %2 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1]
          : (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>
        return %0, %1, %2 : tensor<4x4xf32>, tensor<f32>, tensor<8xf32>";
    let (lowered, text) = lowered(lines, "(tensor<4x4xf32>, tensor<f32>, tensor<8xf32>)");
    let tiles: Vec<&[usize]> = lowered.results.iter().map(|tiling| &tiling.tiles[..]).collect();
    assert_eq!(tiles, [&[1, 1][..], &[], &[2]]);
    assert_eq!(text.matches(" all-reduce(").count(), 2, "{text}");
    assert!(!text.contains("all-gather"), "{text}");
    assert_eq!(lowered.replicated, 0);
}

#[test]
fn products_have_a_tile_for_each_pair_of_partitions() {
    // Both operands along the same axis would leave tiles that nobody has.
    for (axis, tiles) in [("b", [2, 2]), ("a", [2, 1])] {
        let lines = format!(
            "%w = sdy.sharding_constraint %x <@m, [{{\"{axis}\"}}, {{}}]> : tensor<8x4xf32>
            %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1]
              : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
            return %0 : tensor<8x8xf32>"
        );
        let (lowered, text) = lowered(&lines, "tensor<8x8xf32>");
        assert_eq!(lowered.results[0].tiles, tiles, "{text}");
        // To lie along the other axis, or to be whole, it is gathered once.
        assert_eq!(text.matches(" all-gather(").count(), 1, "{text}");
    }
}

#[test]
fn what_needs_whole_arrays_gathers_them_once() {
    let lines = "%0 = stablehlo.reverse %x, dims = [0] : tensor<8x4xf32>
        %1 = stablehlo.reverse %x, dims = [1] : tensor<8x4xf32>
        %2 = stablehlo.add %0, %1 : tensor<8x4xf32>
        return %2 : tensor<8x4xf32>";
    let (lowered, text) = lowered(lines, "tensor<8x4xf32>");
    assert_eq!(text.matches(" all-gather(").count(), 1, "{text}");
    assert_eq!((lowered.replicated, lowered.results[0].is_whole()), (3, true));
}
