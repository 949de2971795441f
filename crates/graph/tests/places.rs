//! Whatever goes wrong in a graph is told at the line of the user's program that made the call, is
//! never called a defect, and leaves the graph usable.

mod operations;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use helio::{Code, Location};
use helio_graph::{Array, ElementType, Error, Graph, Shape, Tensor, TensorList, Tensors, stack};
use operations::{OPERATIONS, Operands};

fn is_here(file: &str) -> bool {
    file.contains("places.rs") || file.contains("operations")
}

/// Errors where these files made the call, which are no defects.
fn ensure_here(error: &Error, what: &dyn std::fmt::Display) {
    let here = matches!(error.location(), Some(Location::Rust { file, .. }) if is_here(file));
    assert!(here, "{what}: the place is not the caller's: {error}");
    assert_ne!(error.code(), Code::Internal, "{what}: {error}");
    assert!(!error.detail().contains("src/"), "{what}: {error}");
}

#[test]
fn every_operation_is_tried() {
    let mut missing = Vec::new();
    let this = [include_str!("operations/mod.rs"), include_str!("places.rs")].concat();
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/src/ops");
    for file in std::fs::read_dir(dir).expect("the sources") {
        let text = std::fs::read_to_string(file.expect("a file").path()).expect("a source");
        let names = text.lines().filter_map(|line| {
            let name = line.strip_prefix("    pub fn ").or_else(|| {
                // A row of a table of operations.
                let row = line.strip_prefix("    ").filter(|row| row.ends_with(';'));
                row.filter(|row| row.contains(": ") && !row.contains('='))
            })?;
            let end =
                name.find(|c: char| !c.is_ascii_lowercase() && c != '_' && !c.is_ascii_digit());
            // Options' own methods are no operations.
            Some(name[..end?].to_owned()).filter(|name| !name.starts_with("with_"))
        });
        missing
            .extend(names.filter(|name| !name.is_empty() && !this.contains(&format!("{name}("))));
    }
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_operation_refuses_tensors_of_other_graphs_and_of_bodies() {
    for foreign in [false, true] {
        for (name, apply) in OPERATIONS {
            let mut refused = 0;
            for role in 0..9 {
                let g = Graph::new("mine");
                let good = Operands::inputs(&g, 4);
                let bad = match foreign {
                    true => Operands::inputs(&Graph::new("other"), 4),
                    false => {
                        let leaked = RefCell::new(None);
                        let zero = g.constant(Array::scalar(0i32));
                        g.while_loop(
                            zero,
                            |i| i.less(3),
                            |i| {
                                let copy = |x: &Tensor| {
                                    x.slice_axes(Vec::new()).reshape(x.shape().expect("a shape"))
                                };
                                let plus = |x: &Tensor| match x.dtype() {
                                    Ok(ElementType::Pred) => x.logical_not(),
                                    _ => copy(x) + 1,
                                };
                                *leaked.borrow_mut() = Some(good.with(plus));
                                i + 1
                            },
                        );
                        leaked.into_inner().expect("the body was called")
                    }
                };
                assert_eq!(g.error().map(|e| e.to_string()), None);
                let mut mixed = good.with(Tensor::clone);
                match role {
                    0 => {}
                    1 => mixed.x = bad.x,
                    2 => mixed.y = bad.y,
                    3 => mixed.images = bad.images,
                    4 => mixed.pred = bad.pred,
                    5 => mixed.ints = bad.ints,
                    6 => mixed.yes = bad.yes,
                    7 => mixed.number = bad.number,
                    _ => mixed.random = bad.random,
                }
                let made = apply(&mixed);
                let outputs: Vec<Tensor> =
                    made.into_iter().filter(|x| role == 0 || x.graph().error().is_none()).collect();
                let error = g.compile(outputs).err();
                if role == 0 {
                    assert_eq!(error.map(|e| e.to_string()), None, "{name}");
                    continue;
                }
                if let Some(error) = error {
                    let rule = if foreign { "graph.C4" } else { "graph.C5" };
                    ensure_here(&error, name);
                    assert_eq!(error.rule_id(), Some(rule), "{name}: {error}");
                    refused += 1;
                }
            }
            assert!(refused > 0, "{name} uses none of its operands");
        }
    }
}

#[test]
fn what_is_made_of_nothing_is_refused_where_it_is_asked_for() {
    let makers: [fn(&Graph) -> Tensor; 13] = [
        |g| g.zeros(ElementType::F32, (-1,)),
        |g| g.zeros(ElementType::F8E8M0FNU, ()),
        |g| g.ones(ElementType::F32, ("1n",)),
        |g| g.full(ElementType::F32, (-1,), 0),
        |g| g.full(ElementType::S32, (), 0.5),
        |g| g.iota(ElementType::F32, (2,), 1),
        |g| g.arange(ElementType::F32, -1),
        |g| g.arange_by(ElementType::F32, 0, 5, 0),
        |g| g.linspace(ElementType::S32, 0.0, 1.0, 3),
        |g| g.eye(ElementType::F32, -1),
        |g| g.dim(""),
        |g| g.input("x", ElementType::F32, (-1,)),
        |g| g.random(1).bits(ElementType::F32, ()),
    ];
    for (number, make) in makers.iter().enumerate() {
        let g = Graph::new("nothing");
        drop(make(&g));
        ensure_here(&g.error().expect("an error"), &number);
        // What comes too late to be checked when it is said is told by the program.
        let g = Graph::new("nothing");
        let unknown = g.zeros(ElementType::F32, ("n",));
        let error = g.compile(unknown).expect_err("nothing says what n is");
        ensure_here(&error, &"an unknown name");
    }
}

#[test]
fn errors_of_sizes_have_the_place_of_the_call() {
    let too_large = ["zeros", "ones", "outer", "eye", "tile"];
    let mut refused = 0;
    for (name, apply) in OPERATIONS {
        // 2^60 bytes can be described; much of what is made of them cannot.
        let g = Graph::new("huge");
        let operands = Operands::inputs(&g, 1 << 29);
        let made = apply(&operands);
        if let Some(error) = g.compile(made).err() {
            ensure_here(&error, name);
            refused += 1;
        }
    }
    assert!(refused > 0, "nothing was large enough to be refused");
    for name in too_large {
        let g = Graph::new("huge");
        let n = 1usize << 40;
        let x = g.input("x", ElementType::F32, (n,));
        let made = match name {
            "zeros" => g.zeros(ElementType::F32, (n, n)),
            "ones" => g.ones(ElementType::F32, (n, n)),
            "eye" => g.eye(ElementType::F32, n),
            "tile" => x.tile((n, 1)),
            _ => x.outer(&x),
        };
        let error = g.compile(made).expect_err("too large");
        ensure_here(&error, &name);
    }
    // Found in a call, in a body.
    let g = Graph::new("negative");
    let x = g.input("x", ElementType::F32, ("n",));
    let start = g.zeros(ElementType::F32, ());
    let y = g.for_loop(0, 3, start, |_, sum| {
        sum + x.slice(0, ..-5).sum(0)
            + g.zeros(ElementType::F32, (helio_graph::Dim::from("n") - 7,)).sum(0)
    });
    let program = g.compile(y).expect("a program");
    let short = Array::new([2], vec![0f32; 2]).expect("an array");
    ensure_here(&program.run(&[short]).expect_err("an error"), &"a negative size");
}

/// Where tensors are taken out of a body.
type Leak = fn(&Graph, &Tensor, &RefCell<Option<Tensor>>);

const LEAKS: &[(&str, Leak)] = &[
    ("a condition's parameter", |g, x, out| {
        let keep = |x: &Tensor| drop(out.replace(Some(x.clone())));
        g.while_loop(x.clone(), |x| (keep(&x), x.less(1.0)).1, |x| x + 1.0);
    }),
    ("a condition's result", |g, x, out| {
        let keep = |x: Tensor| (out.replace(Some(x.cast(ElementType::F32))), x).1;
        g.while_loop(x.clone(), |x| keep(x.less(1.0)), |x| x + 1.0);
    }),
    ("a body's parameter", |g, x, out| {
        let keep = |x: Tensor| (out.replace(Some(x.clone())), x).1;
        g.while_loop(x.clone(), |x| x.less(1.0), |x| keep(x) + 1.0);
    }),
    ("a body's result", |g, x, out| {
        let keep = |x: Tensor| (out.replace(Some(x.clone())), x).1;
        g.while_loop(x.clone(), |x| x.less(1.0), |x| keep(x + 1.0));
    }),
    ("an index", |g, x, out| {
        g.for_loop(0, 3, x.clone(), |i, x| (out.replace(Some(i.cast(ElementType::F32))), x).1);
    }),
    ("an index itself", |g, x, out| {
        g.for_loop(0, 3, x.clone(), |i, x| (out.replace(Some(i.clone())), x).1);
    }),
    ("a branch", |g, x, out| {
        let keep = |x: Tensor| (out.replace(Some(x.clone())), x).1;
        g.cond(x.less(1.0), || keep(x.exp()), || x.clone());
    }),
    ("the other branch", |g, x, out| {
        let keep = |x: Tensor| (out.replace(Some(x.clone())), x).1;
        g.cond(x.less(1.0), || x.clone(), || keep(x.exp()));
    }),
    ("a switch", |g, x, out| {
        let keep = |x: Tensor| (out.replace(Some(x.clone())), x).1;
        g.switch(x.cast(ElementType::S32), &[&|| vec![keep(x.exp())], &|| vec![x.clone()]]);
    }),
    ("a body in a body", |g, x, out| {
        let keep = |x: Tensor| (out.replace(Some(x.clone())), x).1;
        g.for_loop(0, 2, x.clone(), |_, x| g.for_loop(0, 2, x, |_, x| keep(x * 2.0)));
    }),
    ("a body that panics", |g, x, out| {
        let broken = catch_unwind(AssertUnwindSafe(|| {
            g.for_loop(0, 2, x.clone(), |_, x| -> Tensor {
                out.replace(Some(x * 2.0));
                panic!("on purpose")
            })
        }));
        assert!(broken.is_err());
    }),
];

/// What is then done with one. What can be compiled must be an error by then.
type Use = fn(&Graph, &Tensor, &Tensor) -> Vec<Tensor>;

const USES: &[(&str, Use)] = &[
    ("compiled", |_, _, leaked| vec![leaked.clone()]),
    ("on the left", |_, x, leaked| vec![leaked + &x.cast(ElementType::F32)]),
    ("on the right", |_, x, leaked| vec![x + leaked.cast(ElementType::F32)]),
    ("converted to its own type", |_, _, leaked| vec![leaked.cast(ElementType::F32)]),
    ("a state", |g, _, leaked| vec![g.while_loop(leaked.clone(), |x| x.less(1), |x| x + 1)]),
    ("in a condition", |g, x, leaked| {
        vec![g.while_loop(x.clone(), |_| leaked.less(1), |x| x + 1.0)]
    }),
    ("a body's result", |g, x, leaked| vec![g.for_loop(0, 2, x.clone(), |_, _| leaked.clone())]),
    ("in a body", |g, x, leaked| {
        vec![g.for_loop(0, 2, x.clone(), |_, x| x + leaked.cast(ElementType::F32))]
    }),
    ("where a loop ends", |g, x, leaked| {
        vec![g.for_loop(0, leaked.clone(), x.clone(), |_, x| x + 1.0)]
    }),
    ("where a loop starts", |g, x, leaked| {
        vec![g.for_loop(leaked.clone(), 3, x.clone(), |_, x| x + 1.0)]
    }),
    ("a branch's result", |g, x, leaked| {
        vec![g.cond(x.less(1.0), || leaked.clone(), || x.clone())]
    }),
    ("the other branch's result", |g, x, leaked| {
        vec![g.cond(x.less(1.0), || x.clone(), || leaked.clone())]
    }),
    ("a predicate", |g, x, leaked| vec![g.cond(leaked, || x.clone(), || x.clone())]),
    ("an index", |g, x, leaked| g.switch(leaked, &[&|| vec![x.clone()]])),
    ("among others", |_, x, leaked| vec![stack(&[x, leaked], 0)]),
    ("first of others", |_, x, leaked| vec![stack(&[leaked, x], 0)]),
    ("by the standard library", |_, _, leaked| [leaked.clone()].iter().map(Tensor::relu).collect()),
    ("in a body in a body", |g, x, leaked| {
        vec![g.for_loop(0, 2, x.clone(), |_, x| {
            g.cond(x.less(1.0), || &x + leaked.cast(ElementType::F32), || x.clone())
        })]
    }),
];

#[test]
fn what_leaks_out_of_a_body_is_an_error_wherever_it_is_used() {
    for (how, leak) in LEAKS {
        for (which, use_it) in USES {
            for other in [false, true] {
                let g = Graph::new("leaky");
                let x = g.input("x", ElementType::F32, ());
                let out = RefCell::new(None);
                leak(&g, &x, &out);
                assert_eq!(g.error().map(|e| e.to_string()), None, "{how}");
                let leaked = out.into_inner().expect("a tensor");
                let another = Graph::new("another");
                let (g, x, rule) = match other {
                    false => (g, x, "graph.C5"),
                    true => (another.clone(), another.input("x", ElementType::F32, ()), "graph.C4"),
                };
                let made = use_it(&g, &x, &leaked);
                // What was made of it in its own graph alone is an error of that.
                let error = made.first().and_then(|made| made.graph().error());
                let error = error.or_else(|| g.compile(made).err());
                let error = error.unwrap_or_else(|| panic!("{how}, {which}: no error"));
                ensure_here(&error, &format!("{how}, {which}, {other}"));
                assert!(
                    error.rule_id() == Some(rule) || other && error.rule_id() == Some("graph.C5"),
                    "{how}, {which}: {error}"
                );
            }
        }
    }
}

#[test]
fn a_program_is_not_made_of_what_a_body_has() {
    let g = Graph::new("early");
    let x = g.input("x", ElementType::F32, ());
    let said = RefCell::new(None);
    let y = g.for_loop(0, 3, x.clone(), |_, y| {
        said.replace(g.compile(&y * 2.0).err());
        // What is outside is complete.
        assert!(g.compile(&x * 2.0).is_err() || g.error().is_none());
        y + 1.0
    });
    let error = said.into_inner().expect("an error");
    ensure_here(&error, &"compile in a body");
    assert_eq!(error.rule_id(), Some("graph.C5"), "{error}");
    assert!(g.compile(y).is_ok());
}

#[test]
fn a_generator_does_not_outlive_the_body_that_used_it() {
    let g = Graph::new("noise");
    let random = g.random(1);
    let x = g.input("x", ElementType::F32, ());
    let y = g.for_loop(0, 3, x, |_, x| x + random.uniform(ElementType::F32, ()));
    let error = g.compile(y + random.uniform(ElementType::F32, ())).expect_err("an error");
    ensure_here(&error, &"a generator");
    assert_eq!(error.rule_id(), Some("graph.C5"));
    assert!(error.detail().starts_with("the state of the generator"), "{error}");
}

/// A list that gives and takes different numbers of tensors, or panics.
#[derive(Clone)]
struct Odd {
    given: Vec<Tensor>,
    taken: usize,
    panics: bool,
}

impl Tensors for Odd {
    fn tensors(&self) -> Vec<Tensor> {
        assert!(!self.panics, "on purpose");
        self.given.clone()
    }
}

impl TensorList for Odd {
    fn with_tensors(&self, next: &mut dyn FnMut() -> Tensor) -> Self {
        let given = (0..self.taken).map(|_| next()).collect();
        Odd { given, ..self.clone() }
    }
}

#[test]
fn lists_must_take_what_they_give() {
    for (count, taken) in [(1, 0), (1, 2), (0, 1), (2, 1)] {
        let g = Graph::new("odd");
        let x = g.input("x", ElementType::F32, ());
        let odd = Odd { given: vec![x.clone(); count], taken, panics: false };
        let looped = count % 2 == 0;
        let state = match looped {
            true => g.while_loop(odd, |_| x.less(1.0), |odd| odd),
            false => g.cond(x.less(1.0), || odd.clone(), || odd.clone()),
        };
        let error = g.compile(state).expect_err("an error");
        ensure_here(&error, &format!("{count} {taken}"));
        assert_eq!(error.rule_id(), Some("graph.C6"), "{error}");
    }
}

#[test]
fn a_panic_of_the_users_leaves_the_graph_as_it_was() {
    struct Bomb;
    impl From<Bomb> for Shape {
        fn from(_: Bomb) -> Shape {
            panic!("on purpose")
        }
    }
    let g = Graph::new("careful");
    let x = g.input("x", ElementType::F32, (2,));
    let odd = || Odd { given: vec![x.clone()], taken: 1, panics: true };
    let bombs: [&dyn Fn(); 10] =
        [
            &|| drop(g.while_loop(x.clone(), |_| panic!("on purpose"), |x| x)),
            &|| drop(g.while_loop(x.clone(), |x| x.sum(0).less(1.0), |_| panic!("on purpose"))),
            &|| drop(g.for_loop(0, 3, x.clone(), |_, _| panic!("on purpose"))),
            &|| drop(g.cond(x.sum(0).less(1.0), || panic!("on purpose"), || x.clone())),
            &|| drop(g.cond(x.sum(0).less(1.0), || x.clone(), || panic!("on purpose"))),
            &|| drop(g.switch(x.sum(0).cast(ElementType::S32), &[&|| panic!("on purpose")])),
            &|| drop(g.zeros(ElementType::F32, Bomb)),
            &|| drop(x.pad((0..2).map(|_| -> (i64, i64) { panic!("on purpose") }), 0.0)),
            &|| drop(g.for_loop(0, 3, odd(), |_, odd| odd)),
            &|| {
                drop(g.for_loop(0, 3, x.clone(), |_, x| {
                    g.for_loop(0, 2, x, |_, _| panic!("on purpose"))
                }))
            },
        ];
    for (number, bomb) in bombs.iter().enumerate() {
        assert!(catch_unwind(AssertUnwindSafe(bomb)).is_err(), "{number}");
        assert_eq!(g.error().map(|e| e.to_string()), None, "{number}");
        let y = g.for_loop(0, 3, x.clone(), |_, x| x * 2.0);
        let program = g.compile(y).unwrap_or_else(|e| panic!("{number}: {e}"));
        let ones = Array::new([2], vec![1f32; 2]).expect("an array");
        let results = program.run(&[ones]).expect("it runs");
        assert_eq!(results[0].as_slice::<f32>(), Some(&[8.0, 8.0][..]), "{number}");
    }
    // The next call is a call of its own.
    drop(x.sum(5));
    let error = g.error().expect("an error");
    ensure_here(&error, &"after panics");
    assert_eq!(error.instruction(), Some("sum"), "{error}");
}
