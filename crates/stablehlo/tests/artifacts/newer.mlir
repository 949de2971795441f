module @newer {
  func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
    %0 = stablehlo.composite "my.op" %x {composite_attributes = {k = 3 : i64, name = "n"}, decomposition = @impl, version = 2 : i32} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %1 = stablehlo.tan %0 : tensor<4x8xf32>
    %2 = "stablehlo.exponential"(%1) <{result_accuracy = #stablehlo.result_accuracy<ulps = 10, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>}> : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %3 = stablehlo.dot_general %2, %2, batching_dims = [0] x [0], contracting_dims = [1] x [1], algorithm = <lhs_precision_type = bf16, rhs_precision_type = bf16, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 3, allow_imprecise_accumulation = false> : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4xf32>
    %4 = stablehlo.constant dense<[1.0, -0.5]> : tensor<2xf8E4M3FN>
    %5 = stablehlo.constant dense<[1.0, -0.5]> : tensor<2xf4E2M1FN>
    %6 = "stablehlo.collective_broadcast"(%2) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %7 = stablehlo.custom_call @ffi(%6) {api_version = 4 : i32, backend_config = {a = 1 : i32, b = "s", c = [1.5 : f32, true]}, mhlo.frontend_attributes = {x = "y"}} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    return %7 : tensor<4x8xf32>
  }
  func.func private @impl(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
    return %x : tensor<4x8xf32>
  }
}
