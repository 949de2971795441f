//! Results do not depend on the number of threads: programs large enough to be cut up, on one, two
//! and five.

use helio::{
    Buffer, Client, ClientOptions, CompileOptions, ExecuteOptions, Keep, Literal, random_arguments,
};
use helio_testkit::engines::not_compiled;

const PROGRAMS: &[(&str, &str)] = &[
    (
        "element-wise, summed up",
        "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
         ENTRY e { x = f32[777,1031] parameter(0) z = f32[] constant(0) t = f32[777,1031] tanh(x)
         s = f32[] reduce(t, z), dimensions={0,1}, to_apply=add
         r = f32[777] reduce(t, z), dimensions={1}, to_apply=add
         c = f32[1031] reduce(x, z), dimensions={0}, to_apply=add
         ROOT q = (f32[], f32[777], f32[1031], f32[777,1031]) tuple(s, r, c, t) }",
    ),
    (
        "softmax",
        "max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT m = f32[] maximum(a, b) }
         add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
         ENTRY e { x = f32[511,513] parameter(0) l = f32[] constant(-inf) z = f32[] constant(0)
         m = f32[511] reduce(x, l), dimensions={1}, to_apply=max
         n = f32[511,513] broadcast(m), dimensions={0} d = f32[511,513] subtract(x, n)
         e = f32[511,513] exponential(d) s = f32[511] reduce(e, z), dimensions={1}, to_apply=add
         t = f32[511,513] broadcast(s), dimensions={0} ROOT r = f32[511,513] divide(e, t) }",
    ),
    (
        "products",
        "ENTRY e { x = f32[301,257] parameter(0) y = f32[257,399] parameter(1)
         a = f32[301,399] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
         v = f32[399] parameter(2)
         m = f32[301] dot(a, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
         ROOT t = (f32[301,399], f32[301]) tuple(a, m) }",
    ),
    (
        "a convolution",
        "ENTRY e { x = f32[2,28,28,32] parameter(0) k = f32[3,3,32,48] parameter(1)
         ROOT y = f32[2,28,28,48] convolution(x, k), window={size=3x3 pad=1_1x1_1},
           dim_labels=b01f_01io->b01f }",
    ),
    (
        "sorts and a transpose",
        "less { a = f32[] parameter(0) b = f32[] parameter(1) i = s32[] parameter(2)
         j = s32[] parameter(3) ROOT r = pred[] compare(a, b), direction=LT }
         ENTRY e { x = f32[3,70001] parameter(0) i = s32[3,70001] iota(), iota_dimension=1
         s = (f32[3,70001], s32[3,70001]) sort(x, i), dimensions={1}, is_stable=true, to_apply=less
         a = f32[3,70001] get-tuple-element(s), index=0
         b = s32[3,70001] get-tuple-element(s), index=1
         t = f32[70001,3] transpose(a), dimensions={1,0}
         ROOT r = (f32[70001,3], s32[3,70001]) tuple(t, b) }",
    ),
    (
        "a running sum, windows, rows gathered and added",
        "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
         ENTRY e { x = f32[200003] parameter(0) z = f32[] constant(0)
         c = f32[200003] reduce-window(x, z), window={size=200003 pad=200002_0}, to_apply=add
         y = f32[1000,130] parameter(1) i = s32[5000] parameter(2)
         g = f32[5000,130] gather(y, i), offset_dims={1}, collapsed_slice_dims={0},
           start_index_map={0}, index_vector_dim=1, slice_sizes={1,130}
         s = f32[1000,130] scatter(y, i, g), update_window_dims={1}, inserted_window_dims={0},
           scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
         w = f32[500,130] reduce-window(s, z), window={size=3x3 stride=2x1 pad=1_1x1_1}, to_apply=add
         ROOT t = (f32[200003], f32[1000,130], f32[500,130]) tuple(c, s, w) }",
    ),
];

#[test]
fn results_are_the_same_for_any_number_of_threads() {
    let mut options = ClientOptions::default();
    options.threads = Some(5);
    let client = Client::new(&options);
    for (name, text) in PROGRAMS {
        let module = helio::parse(text).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        let program = client.compile(module, &CompileOptions::default().with_proofs(true));
        let program = program.unwrap_or_else(|e| panic!("{name}: {e:?}"));
        assert!(not_compiled(&program).is_empty(), "{name}: {:?}", program.interpreted());
        let arguments = random_arguments(&program.program_shape().params, 7).expect("arguments");
        let arrays = arguments.iter().filter_map(Literal::as_array);
        let device = client.default_device();
        let buffers: Vec<Buffer> = arrays
            .map(|array| client.buffer_from_array(array, device.clone()).expect("memory"))
            .collect();
        let buffers: Vec<&Buffer> = buffers.iter().collect();
        let run = |threads| {
            let mut options = ExecuteOptions::default();
            options.keep = Keep::All;
            options.run.threads = Some(threads);
            let results = program.execute(&buffers, &options);
            let results = results.unwrap_or_else(|e| panic!("{name}: {e}"));
            let bytes = results.iter().map(|buffer| buffer.view().expect("a value"));
            bytes.map(|view| view.as_slice().to_vec()).collect::<Vec<_>>()
        };
        let expected = run(1);
        for threads in [2, 5, 5] {
            assert!(run(threads) == expected, "{name} differs on {threads} threads");
        }
    }
}
