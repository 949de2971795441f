// Forms of text that need care: each module checks what it computes.
#loc0 = loc("forms.py":1:2)
!pair = tensor<2xf32>
module @aliases attributes {mhlo.num_replicas = 1 : i32} {
  func.func public @main() attributes {jax.uses_shape_polymorphism = false} {
    %0 = stablehlo.constant dense<[1.0, 2.0]> : !pair loc(#loc0)
    %1 = call @double(%0) : (!pair) -> !pair loc("jit(f)/double"(#loc0))
    check.expect_eq_const %1, dense<[2.0, 4.0]> : tensor<2xf32>
    func.return
  } loc(callsite("inner" at fused<"why">["a", #loc1]))
  func.func private @double(%x: !pair {mhlo.layout_mode = "default"} loc("x")) -> (!pair {jax.result_info = ""}) {
    %0 = "stablehlo.add"(%x, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    return %0 : !pair
  }
}
#loc1 = loc(unknown)

// -----

func.func @loop_takes_values_from_around_it() {
  %step = stablehlo.constant dense<3> : tensor<i32>
  %factors = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi32>
  %doubled = stablehlo.add %factors, %factors : tensor<3xi32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %end = stablehlo.constant dense<9> : tensor<i32>
  %init = stablehlo.constant dense<0> : tensor<3xi32>
  %0:2 = stablehlo.while(%i = %zero, %sum = %init) : tensor<i32>, tensor<3xi32>
  cond {
    %1 = stablehlo.compare LT, %i, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.add %i, %step : tensor<i32>
    %is_first = stablehlo.compare EQ, %i, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %2 = "stablehlo.if"(%is_first) ({
      stablehlo.return %doubled : tensor<3xi32>
    }, {
      %3 = stablehlo.add %sum, %factors : tensor<3xi32>
      stablehlo.return %3 : tensor<3xi32>
    }) : (tensor<i1>) -> tensor<3xi32>
    stablehlo.return %1, %2 : tensor<i32>, tensor<3xi32>
  }
  check.expect_eq_const %0#0, dense<9> : tensor<i32>
  check.expect_eq_const %0#1, dense<[4, 8, 12]> : tensor<3xi32>
  func.return
}

// -----

func.func @fold_with_a_constant_from_around_it() {
  %x = stablehlo.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi64>
  %zero = stablehlo.constant dense<0> : tensor<i64>
  %two = stablehlo.constant dense<2> : tensor<i64>
  %0 = stablehlo.reduce(%x init: %zero) across dimensions = [1] : (tensor<2x2xi64>, tensor<i64>) -> tensor<2xi64>
   reducer(%a: tensor<i64>, %b: tensor<i64>) {
    %1 = stablehlo.multiply %b, %two : tensor<i64>
    %2 = stablehlo.add %a, %1 : tensor<i64>
    stablehlo.return %2 : tensor<i64>
  }
  check.expect_eq_const %0, dense<[6, 14]> : tensor<2xi64>
  func.return
}

// -----

// Sizes that are open follow the arguments.
module @sizes {
  func.func @main() {
    %0 = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
    %1 = call @ones_like(%0) : (tensor<3xf32>) -> tensor<3xf32>
    check.expect_eq_const %1, dense<1.0> : tensor<3xf32>
    func.return
  }
  func.func private @ones_like(%x: tensor<3xf32>) -> tensor<3xf32> {
    %0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<3xf32>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = call @fill(%1) : (tensor<1xi32>) -> tensor<?xf32>
    %3 = stablehlo.reshape %2 : (tensor<?xf32>) -> tensor<3xf32>
    return %3 : tensor<3xf32>
  }
  func.func private @fill(%size: tensor<1xi32>) -> tensor<?xf32> {
    %one = stablehlo.constant dense<1.0> : tensor<f32>
    %0 = stablehlo.dynamic_broadcast_in_dim %one, %size, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
    return %0 : tensor<?xf32>
  }
}

// -----

func.func @products() {
  %a = stablehlo.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %b = stablehlo.constant dense<[[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]]> : tensor<2x3xf32>
  %0 = "stablehlo.einsum"(%a, %b) {einsum_config = "ij,jk->ki"} : (tensor<2x2xf32>, tensor<2x3xf32>) -> tensor<3x2xf32>
  check.expect_eq_const %0, dense<[[1.0, 3.0], [2.0, 4.0], [4.0, 10.0]]> : tensor<3x2xf32>
  %1 = "stablehlo.unary_einsum"(%b) {einsum_config = "ab->b"} : (tensor<2x3xf32>) -> tensor<3xf32>
  check.expect_eq_const %1, dense<[1.0, 1.0, 3.0]> : tensor<3xf32>
  %2 = stablehlo.dot %a, %b, precision = [HIGH, DEFAULT] : (tensor<2x2xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  check.expect_eq_const %2, dense<[[1.0, 2.0, 4.0], [3.0, 4.0, 10.0]]> : tensor<2x3xf32>
  %3 = stablehlo.dot_general %a, %a, batching_dims = [0] x [0], contracting_dims = [1] x [1], algorithm = <lhs_precision_type = f32, rhs_precision_type = f32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2xf32>
  check.expect_eq_const %3, dense<[5.0, 25.0]> : tensor<2xf32>
  func.return
}

// -----

func.func @places() {
  %x = stablehlo.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>
  %i = stablehlo.constant dense<[2, 0]> : tensor<2xi32>
  %0 = "stablehlo.torch_index_select"(%x, %i) {dim = 1 : i64, batch_dims = 0 : i64} : (tensor<2x3xi32>, tensor<2xi32>) -> tensor<2x2xi32>
  check.expect_eq_const %0, dense<[[3, 1], [6, 4]]> : tensor<2x2xi32>
  %j = stablehlo.constant dense<[[1], [2]]> : tensor<2x1xi32>
  %1 = "stablehlo.torch_index_select"(%x, %j) {dim = 1 : i64, batch_dims = 1 : i64} : (tensor<2x3xi32>, tensor<2x1xi32>) -> tensor<2x1xi32>
  check.expect_eq_const %1, dense<[[2], [6]]> : tensor<2x1xi32>
  %start = stablehlo.constant dense<[0, 1]> : tensor<2xi64>
  %limit = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
  %stride = stablehlo.constant dense<1> : tensor<2xi64>
  %2 = stablehlo.real_dynamic_slice %x, %start, %limit, %stride : (tensor<2x3xi32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<2x2xi32>
  check.expect_eq_const %2, dense<[[2, 3], [5, 6]]> : tensor<2x2xi32>
  %3 = "stablehlo.broadcast"(%i) {broadcast_sizes = array<i64: 2>} : (tensor<2xi32>) -> tensor<2x2xi32>
  check.expect_eq_const %3, dense<[[2, 0], [2, 0]]> : tensor<2x2xi32>
  func.return
}

// -----

// log Γ near its zeros, and ζ where powers of s or of 1 / q leave the range of the type (by hand, with 40
// digits).
func.func @special_functions_to_their_last_digits() {
  %x = stablehlo.constant dense<[1.0, 2.0, 1.0000001, 1.99, 2.25, 0.75, 1.5, 1.25]> : tensor<8xf64>
  %expected = stablehlo.constant dense<[0.0, 0.0, -5.772155829918507e-08, -0.004195529088791668, 0.1248717148923966, 0.20328095143129538, -0.12078223763524522, -0.09827183642181316]> : tensor<8xf64>
  %lgamma = chlo.lgamma %x : tensor<8xf64> -> tensor<8xf64>
  check.expect_close %lgamma, %expected, max_ulp_difference = 8 : tensor<8xf64>, tensor<8xf64>
  %x32 = stablehlo.constant dense<[1.0, 2.0, 1.99, 2.25, 0.75, 1.5]> : tensor<6xf32>
  %expected32 = stablehlo.constant dense<[0.0, 0.0, -0.00419552, 0.1248717148923966, 0.20328095143129538, -0.12078223763524522]> : tensor<6xf32>
  %lgamma32 = chlo.lgamma %x32 : tensor<6xf32> -> tensor<6xf32>
  check.expect_close %lgamma32, %expected32, max_ulp_difference = 32 : tensor<6xf32>, tensor<6xf32>
  %s = stablehlo.constant dense<[100.0, 50.0, 1.0000001, 12.0]> : tensor<4xf64>
  %q = stablehlo.constant dense<[1.5, 100.0, 1.0e-8, 1000.0]> : tensor<4xf64>
  %zeta_expected = stablehlo.constant dense<[2.4596544265798292e-18, 2.58230007191163e-100, 110000184.77835418, 9.141009090605759e-35]> : tensor<4xf64>
  %zeta = chlo.zeta %s, %q : tensor<4xf64>, tensor<4xf64> -> tensor<4xf64>
  check.expect_close %zeta, %zeta_expected, max_ulp_difference = 64 : tensor<4xf64>, tensor<4xf64>
  %s32 = stablehlo.constant dense<[100.0, 171.0, 170.6, 89.0, 12.0]> : tensor<5xf32>
  %q32 = stablehlo.constant dense<[1.5, 1.0e-30, 7.9999, 170.6, 1000.0]> : tensor<5xf32>
  %zeta_expected32 = stablehlo.constant dense<[2.4596544e-18, 0x7F800000, 0.0, 0.0, 9.141009e-35]> : tensor<5xf32>
  %zeta32 = chlo.zeta %s32, %q32 : tensor<5xf32>, tensor<5xf32> -> tensor<5xf32>
  check.expect_close %zeta32, %zeta_expected32, max_ulp_difference = 64 : tensor<5xf32>, tensor<5xf32>
  func.return
}

// -----

func.func @special_functions() {
  %lgamma_x = stablehlo.constant dense<[0.5, 10.0, -0.5]> : tensor<3xf64>
  %lgamma_expected = stablehlo.constant dense<[0.5723649429247, 12.801827480081469, 1.2655121234846454]> : tensor<3xf64>
  %lgamma = chlo.lgamma %lgamma_x : tensor<3xf64> -> tensor<3xf64>
  check.expect_close %lgamma, %lgamma_expected, max_ulp_difference = 32 : tensor<3xf64>, tensor<3xf64>
  %digamma_x = stablehlo.constant dense<[1.0, -1.5]> : tensor<2xf64>
  %digamma_expected = stablehlo.constant dense<[-0.5772156649015329, 0.7031566406452434]> : tensor<2xf64>
  %digamma = chlo.digamma %digamma_x : tensor<2xf64> -> tensor<2xf64>
  check.expect_close %digamma, %digamma_expected, max_ulp_difference = 32 : tensor<2xf64>, tensor<2xf64>
  %erf_inv_x = stablehlo.constant dense<[0.5, 0.999]> : tensor<2xf64>
  %erf_inv_expected = stablehlo.constant dense<[0.4769362762044699, 2.326753765513524]> : tensor<2xf64>
  %erf_inv = chlo.erf_inv %erf_inv_x : tensor<2xf64> -> tensor<2xf64>
  check.expect_close %erf_inv, %erf_inv_expected, max_ulp_difference = 32 : tensor<2xf64>, tensor<2xf64>
  %erfc_x = stablehlo.constant dense<[0.25, 2.0, 9.0]> : tensor<3xf64>
  %erfc_expected = stablehlo.constant dense<[0.7236736098317631, 0.004677734981047266, 4.137031746513811e-37]> : tensor<3xf64>
  %erfc = chlo.erfc %erfc_x : tensor<3xf64> -> tensor<3xf64>
  check.expect_close %erfc, %erfc_expected, max_ulp_difference = 32 : tensor<3xf64>, tensor<3xf64>
  %bessel_i1e_x = stablehlo.constant dense<[1.0, 20.0]> : tensor<2xf64>
  %bessel_i1e_expected = stablehlo.constant dense<[0.2079104153497085, 0.08750622218328867]> : tensor<2xf64>
  %bessel_i1e = chlo.bessel_i1e %bessel_i1e_x : tensor<2xf64> -> tensor<2xf64>
  check.expect_close %bessel_i1e, %bessel_i1e_expected, max_ulp_difference = 32 : tensor<2xf64>, tensor<2xf64>
  %s = stablehlo.constant dense<2.5> : tensor<f64>
  %q = stablehlo.constant dense<1.5> : tensor<f64>
  %zeta = chlo.zeta %s, %q : tensor<f64>, tensor<f64> -> tensor<f64>
  %zeta_expected = stablehlo.constant dense<0.5902563850764314> : tensor<f64>
  check.expect_close %zeta, %zeta_expected, max_ulp_difference = 32 : tensor<f64>, tensor<f64>
  %n = stablehlo.constant dense<2.0> : tensor<f64>
  %half = stablehlo.constant dense<0.5> : tensor<f64>
  %polygamma = chlo.polygamma %n, %half : tensor<f64>, tensor<f64> -> tensor<f64>
  %polygamma_expected = stablehlo.constant dense<-16.828796644234316> : tensor<f64>
  check.expect_close %polygamma, %polygamma_expected, max_ulp_difference = 64 : tensor<f64>, tensor<f64>
  func.return
}

// -----

func.func @broadcasting() {
  %x = stablehlo.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>
  %y = stablehlo.constant dense<[10, 20]> : tensor<2xi32>
  %0 = chlo.broadcast_add %x, %y : (tensor<2x2xi32>, tensor<2xi32>) -> tensor<2x2xi32>
  check.expect_eq_const %0, dense<[[11, 22], [13, 24]]> : tensor<2x2xi32>
  %1 = chlo.broadcast_multiply %x, %y {broadcast_dimensions = array<i64: 0>} : (tensor<2x2xi32>, tensor<2xi32>) -> tensor<2x2xi32>
  check.expect_eq_const %1, dense<[[10, 20], [60, 80]]> : tensor<2x2xi32>
  %2 = chlo.broadcast_compare %x, %y {comparison_direction = #chlo<comparison_direction LT>} : (tensor<2x2xi32>, tensor<2xi32>) -> tensor<2x2xi1>
  check.expect_eq_const %2, dense<true> : tensor<2x2xi1>
  %3 = "chlo.constant_like"(%x) {value = 7 : i32} : (tensor<2x2xi32>) -> tensor<2x2xi32>
  check.expect_eq_const %3, dense<7> : tensor<2x2xi32>
  func.return
}

// -----

sdy.mesh @mesh = <["x"=1]> {stablehlo.mesh = {axes = [{name = "x", size = 1 : i64}]}}
func.func @main(){
  %0 = stablehlo.constant dense<[1, 2]> : tensor<2xi8>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"x"}]> : tensor<2xi8>
  %2, %3 = stablehlo.optimization_barrier %1, %0 : tensor<2xi8>, tensor<2xi8>
  check.expect_eq %2, %3 : tensor<2xi8>
  return
}

// -----

func.func @averages() {
  %x = stablehlo.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %scale = stablehlo.constant dense<1.0> : tensor<2xf32>
  %offset = stablehlo.constant dense<[0.0, 1.0]> : tensor<2xf32>
  %0:3 = "stablehlo.batch_norm_training"(%x, %scale, %offset) {epsilon = 0.0 : f32, feature_index = 1 : i64} : (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>)
  check.expect_almost_eq_const %0#0, dense<[[-1.0, 0.0], [1.0, 2.0]]> : tensor<2x2xf32>
  check.expect_almost_eq_const %0#1, dense<[2.0, 3.0]> : tensor<2xf32>
  func.return
}

// -----

func.func @quantized_along_an_axis() {
  %x = stablehlo.constant dense<[[1.0, 1.0], [2.0, 2.0]]> : tensor<2x2xf32>
  %0 = stablehlo.uniform_quantize %x : (tensor<2x2xf32>) -> tensor<2x2x!quant.uniform<i8<-100:3>:f32:1, {0.5:0, 0.25:-1}>>
  %1 = stablehlo.add %0, %0 : tensor<2x2x!quant.uniform<i8<-100:3>:f32:1, {0.5:0, 0.25:-1}>>
  %2 = stablehlo.bitcast_convert %1 : (tensor<2x2x!quant.uniform<i8<-100:3>:f32:1, {0.5:0, 0.25:-1}>>) -> tensor<2x2xi8>
  check.expect_eq_const %2, dense<3> : tensor<2x2xi8>
  func.return
}

// -----

func.func @functions_of_two_narrow_floats() {
  %s = stablehlo.constant dense<[2.5, 3.5]> : tensor<2xf16>
  %q = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf16>
  %zeta = chlo.broadcast_zeta %s, %q : (tensor<2xf16>, tensor<2xf16>) -> tensor<2xf16>
  %zeta_expected = stablehlo.constant dense<[1.3414872572509171, 0.1267338673170566]> : tensor<2xf16>
  check.expect_close %zeta, %zeta_expected, max_ulp_difference = 1 : tensor<2xf16>, tensor<2xf16>
  %n = stablehlo.constant dense<1.0> : tensor<1xbf16>
  %x = stablehlo.constant dense<2.0> : tensor<1xbf16>
  %polygamma = chlo.broadcast_polygamma %n, %x : (tensor<1xbf16>, tensor<1xbf16>) -> tensor<1xbf16>
  %polygamma_expected = stablehlo.constant dense<0.6449340668482264> : tensor<1xbf16>
  check.expect_close %polygamma, %polygamma_expected, max_ulp_difference = 1 : tensor<1xbf16>, tensor<1xbf16>
  %one = stablehlo.constant dense<1.0> : tensor<f16>
  %next = chlo.broadcast_next_after %s, %one : (tensor<2xf16>, tensor<f16>) -> tensor<2xf16>
  check.expect_eq_const %next, dense<[2.498046875, 3.498046875]> : tensor<2xf16>
  func.return
}

// -----

// The decomposition is good to five digits at the first two.
func.func @composite_of_a_function_of_chlo() {
  %x = stablehlo.constant dense<[50.25, -60.5, 0.001, 11.0]> : tensor<4xf32>
  %0 = stablehlo.composite "chlo.cosh" %x {decomposition = @chlo.cosh.impl, version = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  check.expect_eq_const %0, dense<[3.3286467948615293e+21, 9.414258944529522e+25, 1.0000004768371582, 29937.0703125]> : tensor<4xf32>
  // What has another name is decomposed, whatever its function is called.
  %1 = stablehlo.composite "my.cosh" %x {decomposition = @doubled} : (tensor<4xf32>) -> tensor<4xf32>
  check.expect_eq_const %1, dense<[100.5, -121.0, 0.002, 22.0]> : tensor<4xf32>
  func.return
}
func.func private @chlo.cosh.impl(%x: tensor<4xf32>) -> tensor<4xf32> {
  %half = stablehlo.constant dense<0.5> : tensor<4xf32>
  %log = stablehlo.log %half : tensor<4xf32>
  %0 = stablehlo.add %x, %log : tensor<4xf32>
  %1 = stablehlo.exponential %0 : tensor<4xf32>
  %2 = stablehlo.subtract %log, %x : tensor<4xf32>
  %3 = stablehlo.exponential %2 : tensor<4xf32>
  %4 = stablehlo.add %1, %3 : tensor<4xf32>
  return %4 : tensor<4xf32>
}
func.func private @doubled(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// XLA:CPU gives these values.
func.func @poles_and_zeros_of_special_functions() {
  %s = stablehlo.constant dense<[2.0, 3.0, 1.5, 0.0, 1.0, 2.5]> : tensor<6xf64>
  %q = stablehlo.constant dense<[-1.0, -1.0, 0.0, 0.0, 0.0, -0.5]> : tensor<6xf64>
  %zeta = chlo.zeta %s, %q : tensor<6xf64>, tensor<6xf64> -> tensor<6xf64>
  %zeta_expected = stablehlo.constant dense<[0x7FF0000000000000, 0x7FF8000000000000, 0x7FF8000000000000, 0x7FF0000000000000, 0x7FF0000000000000, 0x7FF8000000000000]> : tensor<6xf64>
  check.expect_close %zeta, %zeta_expected, max_ulp_difference = 0 : tensor<6xf64>, tensor<6xf64>
  %zero = stablehlo.constant dense<[-0.0, 0.0]> : tensor<2xf32>
  %one = stablehlo.constant dense<1.0> : tensor<2xf32>
  %bessel_i1e = chlo.bessel_i1e %zero : tensor<2xf32> -> tensor<2xf32>
  %inverse = stablehlo.divide %one, %bessel_i1e : tensor<2xf32>
  check.expect_eq_const %inverse, dense<[0xFF800000, 0x7F800000]> : tensor<2xf32>
  func.return
}

// -----

func.func @einsum_has_a_short_form() {
  %x = stablehlo.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %y = stablehlo.constant dense<[[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]]> : tensor<2x3xf32>
  %0 = stablehlo.einsum %x, %y, config = "ab,bc->ca" : (tensor<2x2xf32>, tensor<2x3xf32>) -> tensor<3x2xf32>
  check.expect_eq_const %0, dense<[[1.0, 3.0], [2.0, 4.0], [4.0, 10.0]]> : tensor<3x2xf32>
  %1 = stablehlo.unary_einsum %y, config = "bc->c" : (tensor<2x3xf32>) -> tensor<3xf32>
  check.expect_eq_const %1, dense<[1.0, 1.0, 3.0]> : tensor<3xf32>
  func.return
}

// -----

func.func @tangents_of_older_programs() {
  %x = stablehlo.constant dense<[0.0, 0.5]> : tensor<2xf32>
  %0 = stablehlo.custom_call @mhlo.tan(%x) {mhlo.attributes = {}, mhlo.version = 1 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  %1 = stablehlo.tan %x : tensor<2xf32>
  check.expect_eq %0, %1 : tensor<2xf32>
  func.return
}
