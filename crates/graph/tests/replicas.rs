//! Programs that several replicas run.

use helio_graph::{Array, ElementType, Graph, Program, ProgramOptions, Replicas, Result, Tensor};

/// A program of four replicas that applies `f` to an input `x` of these dimensions.
fn program<L: helio_graph::TensorList>(
    dims: &[usize],
    f: impl FnOnce(&Graph, &Tensor) -> L,
) -> Result<Program> {
    let g = Graph::new("replicas");
    let x = g.input("x", ElementType::F32, dims);
    let outputs = f(&g, &x);
    g.compile_with(outputs, &ProgramOptions::replicas(4)?)
}

/// What four replicas give, where replica `r` has the numbers `10 * r`, `10 * r + 1`, …
fn run<L: helio_graph::TensorList>(
    dims: &[usize],
    f: impl FnOnce(&Graph, &Tensor) -> L,
) -> Vec<Vec<f32>> {
    let program = program(dims, f).expect("a program");
    let size: usize = dims.iter().product();
    let arguments = (0..4).map(|replica| {
        let numbers = (0..size).map(|i| (10 * replica + i) as f32).collect();
        vec![Array::new(dims.to_vec(), numbers).expect("an array")]
    });
    let arguments: Vec<_> = arguments.collect();
    let results = program.run_all(&arguments, &Default::default()).expect("it runs");
    let values = |own: &Vec<Array>| own[0].values::<f32>().expect("floats").to_vec();
    results.iter().map(values).collect()
}

fn pairs() -> Replicas {
    Replicas::groups([[0, 2], [3, 1]])
}

#[test]
fn replicas_fold() {
    let all = Replicas::all(4);
    assert_eq!(run(&[2], |_, x| x.replica_sum(&all)), vec![[60.0, 64.0]; 4]);
    assert_eq!(run(&[2], |_, x| x.replica_mean(&all)), vec![[15.0, 16.0]; 4]);
    assert_eq!(run(&[2], |_, x| x.replica_max(&all)), vec![[30.0, 31.0]; 4]);
    let least = run(&[1], |_, x| x.replica_min(&pairs()));
    assert_eq!(least, [[0.0], [10.0], [0.0], [10.0]]);
    // Summed in f32, rounded once: 1 + 3 * 2^-9 of bf16.
    let narrow = run(&[1], |_, x| {
        let small = (x * 0.0 + 2f32.powi(-9)).where_(x.greater(0.0), 1.0).cast(ElementType::BF16);
        small.replica_sum(&all).cast(ElementType::F32)
    });
    assert_eq!(narrow, vec![[1.0 + 2f32.powi(-7)]; 4]);
}

#[test]
fn replicas_exchange_parts() {
    let joined = run(&[2], |_, x| x.replica_concat(0, &pairs()));
    assert_eq!(joined[0], [0.0, 1.0, 20.0, 21.0]);
    assert_eq!(joined[1], [30.0, 31.0, 10.0, 11.0]);
    let part = run(&[4], |_, x| x.replica_sum_part(0, &Replicas::all(4)));
    assert_eq!(part, [[60.0], [64.0], [68.0], [72.0]]);
    let transposed = run(&[2, 1], |_, x| x.replica_transpose(0, 1, &pairs()));
    assert_eq!(transposed, [[0.0, 20.0], [31.0, 11.0], [1.0, 21.0], [30.0, 10.0]]);
    let moved = run(&[1], |_, x| x.replica_permute([(0, 1), (1, 3)]));
    assert_eq!(moved, [[0.0], [0.0], [0.0], [10.0]]);
    let first = run(&[1], |_, x| x.replica_broadcast(&pairs()));
    assert_eq!(first, [[0.0], [30.0], [0.0], [30.0]]);
    let ids = run(&[1], |g, x| x * 0.0 + g.replica_id().cast(ElementType::F32));
    assert_eq!(ids, [[0.0], [1.0], [2.0], [3.0]]);
}

#[test]
fn symbolic_dimensions_are_known_in_all_replicas() {
    let g = Graph::new("symbolic");
    let x = g.input("x", ElementType::F32, ["n"]);
    let y = x.replica_concat(0, &Replicas::all(2)) - x.sum(0);
    assert_eq!(y.shape().expect("a shape").to_string(), "[2*n]");
    let program = g.compile_with(y, &ProgramOptions::replicas(2).expect("two")).expect("a program");
    for n in [1, 3] {
        let own = |r: usize| vec![Array::new([n], vec![r as f32; n]).expect("an array")];
        let results = program.run_all(&[own(1), own(2)], &Default::default()).expect("it runs");
        assert_eq!(results[1][0].dims(), [2 * n]);
    }
}

#[test]
fn groups_that_cannot_be_are_refused_where_they_are_written() {
    let refused = |f: &dyn Fn(&Tensor) -> Tensor| {
        let error = program(&[4], |_, x| f(x)).map(drop).expect_err("refused");
        error.rule_id().unwrap_or("none").to_owned()
    };
    assert_eq!(
        refused(&|x| x.replica_sum(&Replicas::groups([vec![0, 1], vec![1]]))),
        "replicas.C1"
    );
    assert_eq!(refused(&|x| x.replica_sum(&Replicas::all(0))), "replicas.C1");
    assert_eq!(
        refused(&|x| x.replica_concat(0, &Replicas::groups([vec![0, 2], vec![1]]))),
        "replicas.C2"
    );
    assert_eq!(refused(&|x| x.equal(0.0).replica_sum(&Replicas::all(4))), "elementwise.C1");
    assert_eq!(
        refused(&|x| x.cast(ElementType::S32).replica_mean(&Replicas::all(4))),
        "elementwise.C1"
    );
    // There are four replicas.
    assert_eq!(refused(&|x| x.replica_sum(&Replicas::all(2))), "groups.C3");
    assert_eq!(refused(&|x| x.replica_permute([(0, 1), (0, 2)])), "collective-permute.C2");
}
