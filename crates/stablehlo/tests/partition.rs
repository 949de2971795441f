//! Programs for several partitions: what each does on its tiles, and what it gathers.

use std::time::Instant;

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
        }}
        func.func private @thrice(%y: tensor<8x4xf32>) -> tensor<8x4xf32> {{
          %0 = stablehlo.add %y, %y : tensor<8x4xf32>
          %1 = stablehlo.add %0, %y : tensor<8x4xf32>
          return %1 : tensor<8x4xf32>
        }}
        func.func private @cut(%y: tensor<8x4xf32>) -> tensor<8x4xf32> {{
          %0 = sdy.sharding_constraint %y <@m, [{{\"a\"}}, {{}}]> : tensor<8x4xf32>
          return %0 : tensor<8x4xf32>
        }}
        func.func private @calls_cut(%y: tensor<8x4xf32>) -> tensor<8x4xf32> {{
          %0 = call @cut(%y) : (tensor<8x4xf32>) -> tensor<8x4xf32>
          return %0 : tensor<8x4xf32>
        }}
        func.func private @is_greater(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>)
            -> tensor<i1> {{
          %0 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
          return %0 : tensor<i1>
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
fn rows_that_are_added_are_summed_among_partitions() {
    let lines = "%t = stablehlo.constant dense<1.0> : tensor<16x4xf32>
        %i = stablehlo.convert %x : (tensor<8x4xf32>) -> tensor<8x4xi32>
        %rows = stablehlo.slice %i [0:8, 0:1] : (tensor<8x4xi32>) -> tensor<8x1xi32>
        %0 = \"stablehlo.scatter\"(%t, %rows, %x) <{
          scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
            inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
          ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %c = stablehlo.add %a, %b : tensor<f32>
            stablehlo.return %c : tensor<f32>
        }) : (tensor<16x4xf32>, tensor<8x1xi32>, tensor<8x4xf32>) -> tensor<16x4xf32>
        return %0 : tensor<16x4xf32>";
    let (lowered, text) = lowered(lines, "tensor<16x4xf32>");
    assert_eq!((lowered.replicated, lowered.results[0].is_whole()), (0, true), "{text}");
    assert!(text.contains("f32[16,4] all-reduce(") && !text.contains("all-gather"), "{text}");
    // One of the summands begins with the operand.
    assert!(text.contains("f32[16,4] select("), "{text}");
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

/// What touches dimensions along which `x` is whole: each line gives `%0` of this type, in two tiles along
/// its first dimension.
#[test]
fn what_touches_only_whole_dimensions_is_done_on_tiles() {
    let kept = "tensor<8x4xf32>";
    let programs = [
        (
            "%0 = \"stablehlo.sort\"(%x) <{dimension = 1 : i64}> ({
               ^bb0(%a: tensor<f32>, %b: tensor<f32>):
                 %c = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
                 stablehlo.return %c : tensor<i1>
             }) : (tensor<8x4xf32>) -> tensor<8x4xf32>",
            kept,
        ),
        ("%0 = stablehlo.reverse %x, dims = [1] : tensor<8x4xf32>", kept),
        ("%0 = stablehlo.slice %x [0:8, 1:4:2] : (tensor<8x4xf32>) -> tensor<8x2xf32>", "tensor<8x2xf32>"),
        (
            "%0 = stablehlo.pad %x, %z, low = [0, 1], high = [0, -1], interior = [0, 2]
               : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x10xf32>",
            "tensor<8x10xf32>",
        ),
        (
            "%0 = stablehlo.dynamic_slice %x, %i, %i, sizes = [8, 2]
               : (tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> tensor<8x2xf32>",
            "tensor<8x2xf32>",
        ),
        (
            "%u = stablehlo.slice %x [0:8, 0:1] : (tensor<8x4xf32>) -> tensor<8x1xf32>
             %0 = stablehlo.dynamic_update_slice %x, %u, %i, %i
               : (tensor<8x4xf32>, tensor<8x1xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>",
            kept,
        ),
        (
            "%k = stablehlo.constant dense<[[3], [0], [9]]> : tensor<3x1xi32>
             %0 = \"stablehlo.gather\"(%x, %k) <{
               dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1],
                 start_index_map = [1], index_vector_dim = 1>,
               slice_sizes = array<i64: 8, 1>}>
               : (tensor<8x4xf32>, tensor<3x1xi32>) -> tensor<8x3xf32>",
            "tensor<8x3xf32>",
        ),
        (
            "%c = stablehlo.convert %x : (tensor<8x4xf32>) -> tensor<8x4xi32>
             %t = stablehlo.constant dense<1.0> : tensor<5xf32>
             %0 = \"stablehlo.gather\"(%t, %c) <{
               dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0],
                 start_index_map = [0], index_vector_dim = 2>,
               slice_sizes = array<i64: 1>}>
               : (tensor<5xf32>, tensor<8x4xi32>) -> tensor<8x4xf32>",
            kept,
        ),
        (
            "%0 = \"stablehlo.reduce_window\"(%x, %z) <{
               window_dimensions = array<i64: 1, 4>, padding = dense<[[0, 0], [3, 0]]> : tensor<2x2xi64>}> ({
               ^bb0(%a: tensor<f32>, %b: tensor<f32>):
                 %c = stablehlo.add %a, %b : tensor<f32>
                 stablehlo.return %c : tensor<f32>
             }) : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>",
            kept,
        ),
        ("%0 = stablehlo.reshape %x : (tensor<8x4xf32>) -> tensor<4x1x2x4xf32>", "tensor<4x1x2x4xf32>"),
        ("%0 = stablehlo.reshape %x : (tensor<8x4xf32>) -> tensor<16x2xf32>", "tensor<16x2xf32>"),
        ("%0 = stablehlo.optimization_barrier %x : tensor<8x4xf32>", kept),
        (
            "%b = stablehlo.reshape %x : (tensor<8x4xf32>) -> tensor<8x2x2xf32>
             %0, %tau = stablehlo.custom_call @Qr(%b) {
               operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>],
               result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<[1, 0]> : tensor<2xindex>]
             } : (tensor<8x2x2xf32>) -> (tensor<8x2x2xf32>, tensor<8x2xf32>)",
            "tensor<8x2x2xf32>",
        ),
        (
            "%0, %places = stablehlo.custom_call @mhlo.topk(%x) {mhlo.attributes = {k = 2 : i64, largest = true}}
               : (tensor<8x4xf32>) -> (tensor<8x2xf32>, tensor<8x2xi32>)",
            "tensor<8x2xf32>",
        ),
        (
            "%places = stablehlo.iota dim = 1 : tensor<8x4xi32>
             %0, %at = stablehlo.custom_call @ApproxTopK(%x, %places, %z, %i) {
               called_computations = [@is_greater],
               mhlo.backend_config = {reduction_dim = 1 : i64, top_k = 2 : i64, is_fallback = true,
                 recall_target = 0.95 : f32, aggregate_to_topk = true}
             } : (tensor<8x4xf32>, tensor<8x4xi32>, tensor<f32>, tensor<i32>)
               -> (tensor<8x2xf32>, tensor<8x2xi32>)",
            "tensor<8x2xf32>",
        ),
        (
            "%0 = stablehlo.composite \"my.triple\" %x {decomposition = @thrice}
               : (tensor<8x4xf32>) -> tensor<8x4xf32>",
            kept,
        ),
    ];
    for (line, ty) in programs {
        let lines = format!(
            "%z = stablehlo.constant dense<0.0> : tensor<f32>
             %i = stablehlo.constant dense<1> : tensor<i32>
             {line}
             return %0 : {ty}"
        );
        let (lowered, text) = lowered(&lines, ty);
        assert!(!text.contains("all-"), "{line}: {text}");
        assert_eq!((lowered.replicated, lowered.results[0].tiles[0]), (0, 2), "{line}: {text}");
    }
}

#[test]
fn functions_say_how_what_is_whole_is_cut_up() {
    let lines = "%w = sdy.sharding_constraint %x <@m, [{}, {}]> : tensor<8x4xf32>
        %0 = call @calls_cut(%w) : (tensor<8x4xf32>) -> tensor<8x4xf32>
        %1 = stablehlo.sine %0 : tensor<8x4xf32>
        return %1 : tensor<8x4xf32>";
    let (lowered, text) = lowered(lines, "tensor<8x4xf32>");
    assert_eq!((lowered.replicated, &lowered.results[0].tiles[..]), (0, &[2, 1][..]));
    assert!(text.contains("f32[4,4] sine("), "{text}");
}

#[test]
fn what_a_function_gives_is_made_in_the_tiles_that_are_wanted() {
    let lines =
        "%w = stablehlo.constant dense<\"0x0000803F000000400000404000008040\"> : tensor<4xf32>
        %r = stablehlo.reverse %w, dims = [0] : tensor<4xf32>
        %s = stablehlo.broadcast_in_dim %r, dims = [1] : (tensor<4xf32>) -> tensor<8x4xf32>
        %v = sdy.sharding_constraint %s <@m, [{}, {}]> : tensor<8x4xf32>
        %0 = call @twice(%v) : (tensor<8x4xf32>) -> tensor<8x4xf32>
        return %0 : tensor<8x4xf32>";
    let result = "(tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{\"b\"}, {}]>})";
    let (lowered, text) = lowered(lines, result);
    assert_eq!(lowered.results[0].tiles, [2, 1]);
    assert!(text.contains("f32[4,4] add(") && !text.contains("f32[8,4] add("), "{text}");
}

#[test]
fn random_bits_are_made_in_the_tiles_that_are_wanted() {
    let bits = |algorithm: &str, words: usize, ty: &str, wanted: &str| {
        let state = format!("tensor<{words}xui64>");
        let lines = format!(
            "%s = stablehlo.constant dense<7> : {state}
             %next, %0 = stablehlo.rng_bit_generator %s, algorithm = {algorithm} : ({state}) -> ({state}, {ty})
             %1 = stablehlo.not %0 : {ty}
             return %1, %next : {ty}, {state}"
        );
        let wanted = format!("{{sdy.sharding = #sdy.sharding<@m, {wanted}>}}");
        lowered(&lines, &format!("({ty} {wanted}, {state})"))
    };
    let in_rows = [
        ("PHILOX", 3, "tensor<8x2xui32>", "u32[4,2]", "u64[3]"),
        ("DEFAULT", 2, "tensor<8x2xui32>", "u32[4,2]", "u64[3]"),
        ("DEFAULT", 2, "tensor<4xui64>", "u64[2]", "u64[3]"),
        ("THREE_FRY", 2, "tensor<4x3xui32>", "u32[2,3]", "u64[2]"),
        ("THREE_FRY", 2, "tensor<2xui64>", "u64[1]", "u64[2]"),
    ];
    for (algorithm, words, ty, tile, state) in in_rows {
        let wanted = if tile.contains(',') { "[{\"a\"}, {}]" } else { "[{\"a\"}]" };
        let (lowered, text) = bits(algorithm, words, ty, wanted);
        assert_eq!(lowered.replicated, 0, "{text}");
        assert!(text.contains(&format!("({state}, {tile}) rng-bit-generator(")), "{text}");
    }
    let whole = [
        // Tiles of columns, of half a block, and of what a block has two rows of.
        ("PHILOX", 3, "tensor<8x4xui32>", "[{}, {\"a\"}]"),
        ("PHILOX", 3, "tensor<4xui32>", "[{\"a\"}]"),
        ("THREE_FRY", 2, "tensor<2x2xui32>", "[{\"a\"}, {}]"),
    ];
    for (algorithm, words, ty, wanted) in whole {
        let (lowered, text) = bits(algorithm, words, ty, wanted);
        assert_eq!(lowered.replicated, 1, "{text}");
    }
}

#[test]
fn what_touches_a_dimension_in_tiles_keeps_the_others() {
    let lines = "%y = sdy.sharding_constraint %x <@m, [{\"a\"}, {\"b\"}]> : tensor<8x4xf32>
        %0 = stablehlo.concatenate %y, %y, dim = 1
          : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
        return %0 : tensor<8x8xf32>";
    let (lowered, text) = lowered(lines, "tensor<8x8xf32>");
    assert_eq!((lowered.replicated, &lowered.results[0].tiles[..]), (0, &[2, 1][..]));
    assert!(text.contains("f32[4,4] all-gather("), "{text}");
}

#[test]
fn tiles_are_turned_around() {
    let lines = "%0 = stablehlo.reverse %x, dims = [0, 1] : tensor<8x4xf32>
        return %0 : tensor<8x4xf32>";
    let (lowered, text) = lowered(lines, "tensor<8x4xf32>");
    assert_eq!((lowered.replicated, &lowered.results[0].tiles[..]), (0, &[2, 1][..]));
    assert!(text.contains("source_target_pairs={{2,0},{3,1},{0,2},{1,3}}"), "{text}");
}

#[test]
fn the_greatest_of_all_tiles_is_the_greatest() {
    let lines = "%z = stablehlo.constant dense<0.0> : tensor<f32>
        %0 = stablehlo.reduce(%x init: %z) applies stablehlo.maximum across dimensions = [0, 1]
          : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32>
        return %0 : tensor<f32>";
    let (lowered, text) = lowered(lines, "tensor<f32>");
    assert_eq!(lowered.replicated, 0);
    assert!(text.contains(" maximum(") && text.contains(" all-reduce("), "{text}");
    assert!(!text.contains("all-gather"), "{text}");
}

#[test]
fn tiles_that_all_users_want_are_made() {
    let lines =
        "%w = stablehlo.constant dense<\"0x0000803F000000400000404000008040\"> : tensor<4xf32>
        %r = stablehlo.reverse %w, dims = [0] : tensor<4xf32>
        %s = stablehlo.broadcast_in_dim %r, dims = [1] : (tensor<4xf32>) -> tensor<8x4xf32>
        %t = stablehlo.slice %s [0:8, 0:2] : (tensor<8x4xf32>) -> tensor<8x2xf32>
        return %t : tensor<8x2xf32>";
    let result = "(tensor<8x2xf32> {sdy.sharding = #sdy.sharding<@m, [{\"b\"}, {}]>})";
    let (lowered, text) = lowered(lines, result);
    assert_eq!(lowered.results[0].tiles, [2, 1]);
    // Rows are cut out of the constant's, not of the result's.
    assert!(text.contains("f32[4,2] slice(") && !text.contains("f32[8,"), "{text}");
}

#[test]
fn manual_computations_are_in_tiles_along_other_axes() {
    let lines = "%0 = sdy.manual_computation(%x) in_shardings=[<@m, [{?}, {\"b\", ?}]>]
          out_shardings=[<@m, [{?}, {\"b\", ?}]>] manual_axes={\"b\"} (%y: tensor<8x2xf32>) {
            %1 = stablehlo.multiply %y, %y : tensor<8x2xf32>
            %z = stablehlo.constant dense<0.0> : tensor<f32>
            %2 = stablehlo.reduce(%1 init: %z) applies stablehlo.add across dimensions = [0]
              : (tensor<8x2xf32>, tensor<f32>) -> tensor<2xf32>
            %3 = stablehlo.broadcast_in_dim %2, dims = [1] : (tensor<2xf32>) -> tensor<8x2xf32>
            %4 = stablehlo.add %1, %3 : tensor<8x2xf32>
            sdy.return %4 : tensor<8x2xf32>
          } : (tensor<8x4xf32>) -> tensor<8x4xf32>
        return %0 : tensor<8x4xf32>";
    let (lowered, text) = lowered(lines, "tensor<8x4xf32>");
    assert_eq!((lowered.replicated, &lowered.results[0].tiles[..]), (0, &[2, 2][..]), "{text}");
    // Sums are among those that have the same columns.
    assert!(text.contains("replica_groups={{0,2},{1,3}}"), "{text}");
    assert!(!text.contains("all-gather"), "{text}");
}

#[test]
fn results_of_other_types_than_stated_are_errors() {
    let program = "sdy.mesh @m = <[\"a\"=2]>
        func.func public @main(%x: tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@m, [{\"a\"}, {}]>})
            -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{\"a\"}]>}) {
          %0 = stablehlo.reverse %x, dims = [1] : tensor<4x2xf32>
          return %0 : tensor<4x2xf32>
        }";
    let error = lower_partitioned(&text::parse(program).unwrap(), 2).unwrap_err();
    assert!(error.to_string().contains("tiles of 1 dimensions"), "{error}");
}

/// A loop of three iterations that carries `%y` of this type, from `%init` on: `body` gives `%next`.
fn looped(init: &str, ty: &str, body: &str) -> String {
    format!(
        "%zero = stablehlo.constant dense<0> : tensor<i32>
        %one = stablehlo.constant dense<1> : tensor<i32>
        %three = stablehlo.constant dense<3> : tensor<i32>
        %init = {init} : {ty}
        %0:2 = stablehlo.while(%i = %zero, %y = %init) : tensor<i32>, {ty}
          cond {{
            %c = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
            stablehlo.return %c : tensor<i1>
          }} do {{
            {body}
            %j = stablehlo.add %i, %one : tensor<i32>
            stablehlo.return %j, %next : tensor<i32>, {ty}
          }}
        return %0#1 : {ty}"
    )
}

#[test]
fn what_a_loop_carries_stays_in_tiles() {
    let kept = "tensor<8x4xf32>";
    let body = "%1 = stablehlo.sine %y : tensor<8x4xf32>
        %2 = func.call @twice(%x) : (tensor<8x4xf32>) -> tensor<8x4xf32>
        %next = stablehlo.add %1, %2 : tensor<8x4xf32>";
    // What begins as a whole, or in any tiles, is in those that an iteration gives.
    for init in ["stablehlo.cosine %x", "stablehlo.constant dense<0.0>"] {
        let (lowered, text) = lowered(&looped(init, kept, body), kept);
        assert_eq!((lowered.replicated, &lowered.results[0].tiles[..]), (0, &[2, 1][..]), "{text}");
        assert!(!text.contains("[8,4]") && !text.contains("all-"), "{text}");
        assert!(text.contains(" while("), "{text}");
        assert!(lowered.exchanged.is_empty(), "{:?}", lowered.exchanged);
    }
}

#[test]
fn slices_of_a_loop_are_put_together_in_tiles() {
    let ty = "tensor<3x8x4xf32>";
    let body = "%1 = stablehlo.reshape %x : (tensor<8x4xf32>) -> tensor<1x8x4xf32>
        %next = stablehlo.dynamic_update_slice %y, %1, %i, %zero, %zero
          : (tensor<3x8x4xf32>, tensor<1x8x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>)
            -> tensor<3x8x4xf32>";
    let (lowered, text) = lowered(&looped("stablehlo.constant dense<0.0>", ty, body), ty);
    assert_eq!((lowered.replicated, &lowered.results[0].tiles[..]), (0, &[1, 2, 1][..]), "{text}");
    assert!(!text.contains("8,4]") && !text.contains("all-"), "{text}");
}

#[test]
fn a_loop_sums_once_in_each_iteration() {
    // A layer whose weights are in tiles along what is summed.
    let kept = "tensor<8x4xf32>";
    let body = "%a = stablehlo.dot_general %y, %x, contracting_dims = [1] x [1]
          : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
        %next = stablehlo.dot_general %a, %x, contracting_dims = [1] x [0]
          : (tensor<8x8xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>";
    let (lowered, text) = lowered(&looped("stablehlo.constant dense<1.0>", kept, body), kept);
    assert_eq!((lowered.replicated, lowered.results[0].is_whole()), (0, true), "{text}");
    assert_eq!(text.matches(" all-reduce(").count(), 1, "{text}");
    assert!(text.contains("f32[8,4] all-reduce(") && !text.contains("all-gather"), "{text}");
}

#[test]
fn what_iterations_need_whole_is_gathered_before_the_loop() {
    let kept = "tensor<8x4xf32>";
    let body = "%1 = stablehlo.slice %x [0:1, 0:4] : (tensor<8x4xf32>) -> tensor<1x4xf32>
        %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<1x4xf32>) -> tensor<8x4xf32>
        %next = stablehlo.add %y, %2 : tensor<8x4xf32>";
    let (_, text) = lowered(&looped("stablehlo.cosine %x", kept, body), kept);
    let (regions, entry) = text.split_once("ENTRY").unwrap();
    assert!(!regions.contains("all-gather"), "{text}");
    assert_eq!(entry.matches(" all-gather(").count(), 1, "{text}");
}

#[test]
fn loops_that_change_tiles_are_named() {
    let ty = "tensor<8x8xf32>";
    let square = "%square = stablehlo.dot_general %x, %x, contracting_dims = [1] x [1]
        : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>";
    let body =
        "%next = stablehlo.transpose %y, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>";
    let lines = looped("stablehlo.sine %square", ty, body);
    let lines = format!("{square}\n{lines}");
    let (lowered, text) = lowered(&lines, ty);
    assert_eq!(&lowered.results[0].tiles[..], [2, 1], "{text}");
    assert!(lowered.exchanged[0].contains("carried value 1, tensor<8x8xf32>"), "{lowered:?}");
    let (regions, entry) = text.split_once("ENTRY").unwrap();
    assert_eq!(regions.matches(" all-gather(").count(), 1, "{text}");
    // That of the product's operand.
    assert_eq!(entry.matches(" all-gather(").count(), 1, "{text}");
}

#[test]
fn loops_within_loops_end_when_tiles_say_so() {
    let kept = "tensor<8x4xf32>";
    let body = "%bound = stablehlo.constant dense<100.0> : tensor<f32>
        %none = stablehlo.constant dense<0.0> : tensor<f32>
        %next = stablehlo.while(%z = %y) : tensor<8x4xf32>
          cond {
            %s = stablehlo.reduce(%z init: %none) applies stablehlo.add across dimensions = [0, 1]
              : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32>
            %c = stablehlo.compare LT, %s, %bound : (tensor<f32>, tensor<f32>) -> tensor<i1>
            stablehlo.return %c : tensor<i1>
          } do {
            %w = stablehlo.add %z, %x : tensor<8x4xf32>
            stablehlo.return %w : tensor<8x4xf32>
          }";
    let (lowered, text) = lowered(&looped("stablehlo.constant dense<0.0>", kept, body), kept);
    assert_eq!((lowered.replicated, &lowered.results[0].tiles[..]), (0, &[2, 1][..]), "{text}");
    assert!(text.contains("f32[] all-reduce(") && !text.contains("[8,4]"), "{text}");
    assert_eq!(text.matches(" while(").count(), 2, "{text}");
}

#[test]
fn loops_in_many_loops_are_looked_at_so_often_and_no_more() {
    // In each round of a loop the one in it has at least two.
    let mut body = "%r0 = stablehlo.add %y0, %x : tensor<8x4xf32>".to_owned();
    for depth in 0..40 {
        let (y, r) = (format!("%y{depth}"), depth + 1);
        body = format!(
            "%r{r} = stablehlo.while({y} = %zeros) : tensor<8x4xf32>
              cond {{ stablehlo.return %true : tensor<i1> }}
              do {{ {body} stablehlo.return %r{depth} : tensor<8x4xf32> }}"
        );
    }
    let lines = format!(
        "%true = stablehlo.constant dense<true> : tensor<i1>
        %zeros = stablehlo.constant dense<0.0> : tensor<8x4xf32>
        {body}
        return %r40 : tensor<8x4xf32>"
    );
    let begin = Instant::now();
    let (_, text) = lowered(&lines, "tensor<8x4xf32>");
    assert_eq!(text.matches(" while(").count(), 40);
    assert!(begin.elapsed().as_secs() < 30, "{:?}", begin.elapsed());
}

#[test]
fn branches_are_in_tiles() {
    let lines = "%none = stablehlo.constant dense<0.0> : tensor<f32>
        %s = stablehlo.reduce(%x init: %none) applies stablehlo.add across dimensions = [0, 1]
          : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32>
        %c = stablehlo.compare LT, %s, %none : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %0 = \"stablehlo.if\"(%c) ({
          %1 = stablehlo.sine %x : tensor<8x4xf32>
          stablehlo.return %1 : tensor<8x4xf32>
        }, {
          %2 = stablehlo.constant dense<1.0> : tensor<8x4xf32>
          %3 = stablehlo.slice %x [0:1, 0:4] : (tensor<8x4xf32>) -> tensor<1x4xf32>
          %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<1x4xf32>) -> tensor<8x4xf32>
          %5 = stablehlo.add %2, %4 : tensor<8x4xf32>
          stablehlo.return %5 : tensor<8x4xf32>
        }) : (tensor<i1>) -> tensor<8x4xf32>
        return %0 : tensor<8x4xf32>";
    let (lowered, text) = lowered(lines, "tensor<8x4xf32>");
    assert_eq!(&lowered.results[0].tiles[..], [2, 1], "{text}");
    assert!(text.contains("f32[] all-reduce("), "{text}");
    // What only one branch needs whole is gathered in it.
    let (regions, entry) = text.split_once("ENTRY").unwrap();
    assert_eq!(regions.matches(" all-gather(").count(), 1, "{text}");
    assert!(!entry.contains("all-gather") && !entry.contains("[8,4]"), "{text}");
}

#[test]
fn what_nobody_needs_is_looked_at() {
    let program = "func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
          %c = stablehlo.constant dense<1.0> : tensor<4xf32>
          %u = \"stablehlo.add\"(%c, %c) <{bogus = 1 : i64}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
          return %x : tensor<4xf32>
        }";
    let error = lower_partitioned(&text::parse(program).unwrap(), 2).unwrap_err();
    assert!(error.to_string().contains("`bogus`"), "{error}");
}

#[test]
fn what_needs_whole_arrays_gathers_them_once() {
    let lines = "%0 = stablehlo.slice %x [1:3, 0:4] : (tensor<8x4xf32>) -> tensor<2x4xf32>
        %1 = stablehlo.slice %x [0:4:2, 0:4] : (tensor<8x4xf32>) -> tensor<2x4xf32>
        %2 = stablehlo.add %0, %1 : tensor<2x4xf32>
        return %2 : tensor<2x4xf32>";
    let (lowered, text) = lowered(lines, "tensor<2x4xf32>");
    assert_eq!(text.matches(" all-gather(").count(), 1, "{text}");
    assert_eq!((lowered.replicated, lowered.results[0].is_whole()), (3, true));
}
