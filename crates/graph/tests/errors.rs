//! What errors say, as `data/errors.txt` has it; `UPDATE=1` writes it anew.

mod common;

use std::fmt::Write as _;

use helio::Location;
use helio_graph::{
    Array, Dim, ElementType, Error, Gelu, Graph, Program, Replicas, Result, Tensor, TensorList,
    Tensors, promote,
};

/// The first error of a graph that `make` builds.
fn graph_error(make: impl FnOnce(&Graph)) -> Error {
    let g = Graph::new("wrong");
    make(&g);
    let error = g.error().expect("an error");
    let here = matches!(error.location(), Some(Location::Rust { file, .. }) if file.ends_with("errors.rs"));
    assert!(here, "the error stands where the graph is built: {error}");
    error
}

fn floats(g: &Graph, name: &str, shape: impl Into<helio_graph::Shape>) -> Tensor {
    g.input(name, ElementType::F32, shape)
}

fn zeros(dtype: ElementType, sizes: &[usize]) -> Array {
    Array::zeros(helio::ir::ArrayShape::new(dtype, sizes).unwrap()).unwrap()
}

/// The error of calling a program with arrays of these sizes.
fn call_error(program: &Program, sizes: &[&[usize]]) -> Error {
    let arguments: Vec<Array> = sizes.iter().map(|sizes| zeros(ElementType::F32, sizes)).collect();
    program.run(&arguments).expect_err("an error")
}

fn batch_program() -> Result<Program> {
    let g = Graph::new("batch");
    let (x, y) = (floats(&g, "x", ("batch", 4)), floats(&g, "y", ("batch", 1)));
    g.compile(x * y)
}

/// A list that gives a tensor, and takes none.
struct Forgetful(Tensor);

impl Tensors for Forgetful {
    fn tensors(&self) -> Vec<Tensor> {
        vec![self.0.clone()]
    }
}

impl TensorList for Forgetful {
    fn with_tensors(&self, _: &mut dyn FnMut() -> Tensor) -> Self {
        Forgetful(self.0.clone())
    }
}

#[test]
fn messages() {
    let mut said = String::new();
    // Lines of this file would change with every test that is added.
    let without_lines = |text: &str| {
        let mut parts = text.split("errors.rs:");
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |text, part| {
            let rest = part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ':');
            text + "errors.rs" + rest
        })
    };
    let mut say = |what: &str, error: Error| {
        let rule = error.rule_id().unwrap_or_else(|| panic!("{what} has no rule: {error}"));
        let call = error.instruction().map_or(String::new(), |call| format!("{call}: "));
        writeln!(said, "# {what}\n{rule}: {call}{}\n", without_lines(error.detail()))
            .expect("memory");
    };
    for (a, b) in [
        (ElementType::S32, ElementType::F32),
        (ElementType::U32, ElementType::S32),
        (ElementType::F16, ElementType::BF16),
        (ElementType::S64, ElementType::F64),
        (ElementType::S16, ElementType::F16),
        (ElementType::Pred, ElementType::F8E8M0FNU),
        (ElementType::F64, ElementType::C64),
    ] {
        say(&format!("{a} and {b}"), promote(a, b).expect_err("an error"));
    }
    say(
        "promotion in an operation",
        graph_error(|g| {
            drop(g.input("i", ElementType::S32, ("n",)) + floats(g, "x", ("n",)));
        }),
    );
    say(
        "an integer beyond the exact range",
        graph_error(|g| drop(floats(g, "x", ()) + 16_777_217)),
    );
    say(
        "an integer that does not fit",
        graph_error(|g| drop(g.input("x", ElementType::U8, ()) - -1)),
    );
    say("a float beside integers", graph_error(|g| drop(g.input("x", ElementType::S32, ()) * 0.5)));
    say(
        "a dimension beside floats",
        graph_error(|g| drop(floats(g, "x", ("n",)) * Dim::from("n"))),
    );
    say(
        "sizes that differ",
        graph_error(|g| {
            drop(floats(g, "x", (2, 3)) + floats(g, "y", (3, 2)));
        }),
    );
    say(
        "names that differ",
        graph_error(|g| {
            drop(floats(g, "x", ("n", 4)) + floats(g, "y", ("m", 4)));
        }),
    );
    say(
        "a name and a size",
        graph_error(|g| {
            drop(floats(g, "x", ("n",)) + floats(g, "y", (3,)));
        }),
    );
    say(
        "expressions that differ",
        graph_error(|g| {
            let n = Dim::from("n");
            drop(floats(g, "x", (&n + 1, 2)) + floats(g, "y", (&n + 2, 2)));
        }),
    );
    say(
        "what does not broadcast to a shape",
        graph_error(|g| {
            drop(floats(g, "x", (2, 3)).broadcast_to((2, 4)));
        }),
    );
    say("exp of integers", graph_error(|g| drop(g.input("x", ElementType::S32, ()).exp())));
    say(
        "gelu of integers",
        graph_error(|g| {
            drop(g.input("x", ElementType::S32, ()).gelu_with(Gelu::Quick));
        }),
    );
    say(
        "a sum of bools",
        graph_error(|g| {
            let x = g.input("x", ElementType::Pred, ());
            drop(&x + &x);
        }),
    );
    say(
        "logic on integers",
        graph_error(|g| {
            let x = g.input("x", ElementType::S32, ());
            drop(x.logical_and(&x));
        }),
    );
    say("an axis that there is not", graph_error(|g| drop(floats(g, "x", ("n", 3)).softmax(2))));
    say("an axis of a scalar", graph_error(|g| drop(floats(g, "x", ()).sum(0))));
    say("an axis twice", graph_error(|g| drop(floats(g, "x", ("n", 3)).sum([1, -1]))));
    say("a wrong name", graph_error(|g| drop(floats(g, "x", ("2n",)))));
    say("a negative size", graph_error(|g| drop(floats(g, "x", (-1,)))));
    say("a division by zero", graph_error(|g| drop(floats(g, "x", (Dim::from("n") / 0,)))));
    say(
        "an input twice",
        graph_error(|g| {
            drop(floats(g, "x", ()));
            drop(floats(g, "x", ()));
        }),
    );
    say(
        "an input in a loop",
        graph_error(|g| {
            let start = floats(g, "x", ());
            drop(g.while_loop(start, |x| x.less(1.0), |x| x + floats(g, "y", ())));
        }),
    );
    say(
        "a condition that is none",
        graph_error(|g| {
            drop(g.while_loop(floats(g, "x", ("n",)), |x| x.less(1.0), |x| x + 1.0));
        }),
    );
    say(
        "a state that changes its type",
        graph_error(|g| {
            let start = g.input("x", ElementType::S32, ());
            drop(g.while_loop(start, |x| x.less(1), |x| x / 2));
        }),
    );
    say(
        "a state that changes its shape",
        graph_error(|g| {
            let (x, y) = (floats(g, "x", ()), floats(g, "y", ("n",)));
            drop(g.while_loop(x, |x| x.less(1.0), |x| x + &y));
        }),
    );
    say(
        "branches that differ",
        graph_error(|g| {
            let (x, y) = (floats(g, "x", (2,)), floats(g, "y", (3,)));
            drop(g.cond(g.input("p", ElementType::Pred, ()), || x.clone(), || y.clone()));
        }),
    );
    say(
        "a predicate that is none",
        graph_error(|g| {
            let x = floats(g, "x", ());
            drop(g.cond(&x, || x.clone(), || x.clone()));
        }),
    );
    say(
        "a tensor of a body that is complete",
        graph_error(|g| {
            let mut leaked = None;
            let x = floats(g, "x", ());
            g.while_loop(
                x,
                |x| x.less(1.0),
                |x| {
                    leaked = Some(x.exp());
                    x + 1.0
                },
            );
            drop(leaked.expect("the body was called") + 1.0);
        }),
    );
    say(
        "a list that takes nothing",
        graph_error(|g| {
            let forgetful = Forgetful(floats(g, "x", ()));
            drop(g.while_loop(forgetful, |state| state.0.less(1.0), |state| state));
        }),
    );
    say(
        "a tensor of another graph",
        graph_error(|g| {
            let other = Graph::new("other");
            drop(floats(g, "x", ()) + floats(&other, "y", ()));
        }),
    );
    say("a rebind of a known size", graph_error(|g| drop(floats(g, "x", (3,)).rebind((1,)))));
    say("a rebind to another rank", graph_error(|g| drop(floats(g, "x", ("n",)).rebind(("n", 1)))));
    let replica_sum = |groups: Vec<Vec<usize>>| {
        graph_error(|g| drop(floats(g, "x", (2,)).replica_sum(&Replicas::groups(groups))))
    };
    say("a replica in two groups", replica_sum(vec![vec![0, 1], vec![1]]));
    say("groups of two sizes", replica_sum(vec![vec![0, 2], vec![1]]));
    say("a state of a generator", graph_error(|g| drop(g.random_from(floats(g, "x", (2,))))));
    say(
        "integers without room",
        graph_error(|g| {
            drop(g.random(1).integers(ElementType::S8, 0, 200, ("n",)));
        }),
    );
    say(
        "a choice by a float",
        graph_error(|g| {
            let x = floats(g, "x", ());
            drop(g.switch(&x, &[&|| vec![x.clone()]]));
        }),
    );
    say(
        "branches with other results",
        graph_error(|g| {
            let x = floats(g, "x", ());
            let i = g.input("i", ElementType::S32, ());
            drop(g.switch(&i, &[&|| vec![x.clone()], &|| vec![]]));
        }),
    );
    say("a name that no input has", {
        let g = Graph::new("wrong");
        let x = floats(&g, "x", (1,));
        g.compile(x.broadcast_to(("n",))).expect_err("an error")
    });
    say("a product that two names share", {
        let g = Graph::new("wrong");
        let x = floats(&g, "x", (Dim::from("n") * "m",));
        g.compile(x + 1.0).expect_err("an error")
    });

    let program = batch_program().expect("a program");
    say("a call with too few arguments", call_error(&program, &[&[2, 4]]));
    say("a call with another rank", call_error(&program, &[&[2, 4], &[2]]));
    say("a call with another size", call_error(&program, &[&[2, 5], &[2, 1]]));
    say("a call with two sizes for one name", call_error(&program, &[&[2, 4], &[3, 1]]));
    say("a call with another type", {
        let arguments = [zeros(ElementType::F64, &[2, 4]), zeros(ElementType::F32, &[2, 1])];
        program.run(&arguments).expect_err("an error")
    });
    let g = Graph::new("halves");
    let n = Dim::from("n");
    let (x, y) = (floats(&g, "x", (2 * &n,)), floats(&g, "y", (&n - 1,)));
    let program = g.compile(x.sum(0) + y.sum(0)).expect("a program");
    say("a call with an odd size", call_error(&program, &[&[5], &[1]]));
    say("a call that an expression refuses", call_error(&program, &[&[6], &[1]]));
    say("a call with a negative dimension", call_error(&program, &[&[0], &[1]]));
    let g = Graph::new("padded");
    let x = floats(&g, "x", ("n",));
    let program = g.compile(x.pad_interior([(0, 0, 1)], 0.0)).expect("a program");
    say("a call with nothing to pad between", call_error(&program, &[&[0]]));
    let g = Graph::new("rebound");
    let (x, y) = (floats(&g, "x", ("n",)), floats(&g, "y", ("m",)));
    let program = g.compile(x.rebind(("m",)) + y).expect("a program");
    say("a call that rebind refuses", call_error(&program, &[&[3], &[1]]));

    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/errors.txt");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, &said).expect("the file is written");
    }
    let expected = std::fs::read_to_string(path).expect("the file is read");
    for (found, expected) in said.split("\n\n").zip(expected.split("\n\n")) {
        assert_eq!(found, expected);
    }
    assert_eq!(said.len(), expected.len());
}
