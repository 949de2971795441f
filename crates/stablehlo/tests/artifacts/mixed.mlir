module @fixture attributes {mhlo.num_partitions = 1 : i32} {
  func.func public @main(%x: tensor<2x3xf32> {jax.arg_info = "x"}, %i: tensor<2x1xi32>, %p: tensor<i1>) -> (tensor<2x2xf32> {jax.result_info = "out"}, tensor<3xf32>) {
    %w = stablehlo.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, -6.5]]> : tensor<3x2xf32>
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %t = stablehlo.constant dense<[true, false, true]> : tensor<3xi1>
    %f = stablehlo.constant dense<true> : tensor<3xi1>
    %c = stablehlo.constant dense<(1.0, -2.0)> : tensor<2xcomplex<f32>>
    %i4 = stablehlo.constant dense<[1, -2]> : tensor<2xi4>
    %h = stablehlo.constant dense<[1.5, -2.0]> : tensor<2xbf16>
    %d = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0], precision = [HIGHEST, DEFAULT] : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
    %r = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32>
    %g = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = true, slice_sizes = array<i64: 1, 3>}> : (tensor<2x3xf32>, tensor<2x1xi32>) -> tensor<2x3xf32>
    %s = "stablehlo.scatter"(%x, %i, %g) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = true}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %m = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %m : tensor<f32>
    }) : (tensor<2x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %k:2 = stablehlo.while(%a = %r, %n = %z) : tensor<3xf32>, tensor<f32>
      cond {
        %q = stablehlo.compare LT, %n, %n, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %q : tensor<i1>
      } do {
        %e = stablehlo.exponential %a : tensor<3xf32>
        stablehlo.return %e, %n : tensor<3xf32>, tensor<f32>
      }
    %v = "stablehlo.if"(%p) ({
      %u = func.call @helper(%r) : (tensor<3xf32>) -> tensor<3xf32>
      stablehlo.return %u : tensor<3xf32>
    }, {
      stablehlo.return %k#0 : tensor<3xf32>
    }) : (tensor<i1>) -> tensor<3xf32>
    %cc = stablehlo.custom_call @thing(%v) {api_version = 2 : i32, backend_config = "opaque", has_side_effect = true, operand_layouts = [dense<0> : tensor<1xindex>], result_layouts = [dense<0> : tensor<1xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>]} : (tensor<3xf32>) -> tensor<3xf32>
    %rw = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 2>, padding = dense<[[0, 0], [1, 0]]> : tensor<2x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %m = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %m : tensor<f32>
    }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x2xf32>
    %cv = stablehlo.constant dense<1.0> : tensor<1x4x4x1xf32>
    %ck = stablehlo.constant dense<2.0> : tensor<2x2x1x1xf32>
    %cw = stablehlo.convolution(%cv, %ck) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[1, 0], [0, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [true, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x4x1xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x1xf32>
    %ar = "stablehlo.all_reduce"(%d) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 3, type = 0>, use_global_device_ids}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %m = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %m : tensor<f32>
    }) {mhlo.sharding = "{replicated}"} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    %so:2 = "stablehlo.sort"(%r, %r) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>, %a2: tensor<f32>, %b2: tensor<f32>):
      %m = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %m : tensor<i1>
    }) : (tensor<3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>)
    %ust = stablehlo.constant dense<[1, 18446744073709551615]> : tensor<2xui64>
    %rg:2 = "stablehlo.rng_bit_generator"(%ust) <{rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>}> : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
    %sz = stablehlo.constant dense<2> : tensor<i32>
    %dy = stablehlo.set_dimension_size %r, %sz, dim = 0 : (tensor<3xf32>, tensor<i32>) -> tensor<?xf32, #stablehlo.bounds<3>>
    %tk = stablehlo.create_token : !stablehlo.token
    %of = "stablehlo.outfeed"(%r, %tk) <{outfeed_config = "cfg"}> : (tensor<3xf32>, !stablehlo.token) -> !stablehlo.token
    %ts = "stablehlo.triangular_solve"(%d, %d) <{left_side = true, lower = false, transpose_a = #stablehlo<transpose ADJOINT>, unit_diagonal = false}> : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    %ff = stablehlo.fft %c, type = FFT, length = [2] : (tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>>
    %io = stablehlo.iota dim = 0 : tensor<5xi64>
    %pd = stablehlo.pad %r, %z, low = [1], high = [-1], interior = [2] : (tensor<3xf32>, tensor<f32>) -> tensor<7xf32>
    return %ar, %cc : tensor<2x2xf32>, tensor<3xf32>
  }
  func.func private @helper(%x: tensor<3xf32>) -> tensor<3xf32> {
    %0 = stablehlo.logistic %x : tensor<3xf32>
    return %0 : tensor<3xf32>
  }
}
