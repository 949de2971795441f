//! Sorting, places, cumulative folds, statistics; what is expected is NumPy's, or JAX's where that is
//! named.

mod reference;

use helio_graph::{Array, ElementType, Graph, Scan, Tensor, keep};
use reference::{Cases, assert_error};

fn cases() -> Cases {
    Cases::new(include_str!("data/order.json"))
}

#[test]
fn every_type_is_sorted() {
    let cases = cases();
    for dtype in
        ["s8", "u8", "s16", "s32", "u32", "s64", "u64", "pred", "f16", "bf16", "f32", "f64"]
    {
        cases.check(&format!("sort_{dtype}"), "n 3", |_, x| {
            let x = &x[0];
            (x.sort(0), x.sort_descending(-1), x.argsort(-1), x.argsort_descending(0))
        });
    }
    cases.check("sort_f8e4m3fn", "n 3", |_, x| (x[0].sort(0), x[0].argsort(-1)));
    cases.check("sort_long", "n 1000", |_, x| (x[0].sort(-1), x[0].argsort(-1)));
}

#[test]
fn places_of_the_greatest() {
    let cases = cases();
    for dtype in ["s8", "u8", "s64", "pred", "f16", "bf16", "f32", "f64"] {
        cases.check(&format!("argmax_{dtype}"), "n 3", |_, x| {
            (x[0].argmax(0), x[0].argmin(-1), x[0].argmin(0))
        });
    }
    cases.check("argmax_extremes", "n 2", |_, x| {
        (x[0].argmax(0), x[0].argmax(1), x[0].negate().argmin(1))
    });
    cases.check("argmax_long", "n 1037", |_, x| (x[0].argmax(1), x[0].argmin(1), x[0].argmax(0)));
    for dtype in ["f32", "bf16", "s32", "u8", "pred"] {
        cases.check(&format!("top_k_{dtype}"), "n 7 3", |_, x| x[0].top_k(4, 1));
    }
    cases.check("top_k_f32", "n m 3", |_, x| x[0].top_k(4, 1));
}

#[test]
fn folds_up_to_each_element() {
    let cases = cases();
    let backwards = Scan { reverse: true, ..Scan::default() };
    let before = Scan { exclusive: true, ..Scan::default() };
    let behind = Scan { reverse: true, exclusive: true };
    macro_rules! all {
        ($($fold:ident $with:ident),*) => {$(
            for dtype in ["s8", "s32", "u64", "f32", "f64", "bf16", "f16"] {
                cases.check(&format!("{}_{dtype}", stringify!($fold)), "n 4", |_, x| {
                    let with = |scan| x[0].$with(0, scan);
                    let others = [backwards, before, behind].map(with);
                    (x[0].$fold(0), x[0].$fold(-1), others)
                });
            }
        )*};
    }
    all!(cumsum cumsum_with, cumprod cumprod_with, cummax cummax_with, cummin cummin_with);
    cases.check("cummax_nan", "n 3", |_, x| x[0].cummax(0));
    cases.check("cumsum_complex", "n 4", |_, x| x[0].cumsum(0));
    cases.check("cumsum_long", "2 n", |_, x| x[0].cumsum(-1));
}

#[test]
fn statistics() {
    let cases = cases();
    for dtype in ["f32", "f64", "bf16", "f16", "s32", "s64", "s8"] {
        cases.check(&format!("std_{dtype}"), "n 3", |_, x| {
            (x[0].std(0, 0), x[0].std(.., 1), x[0].std(keep(1), 1))
        });
    }
    cases.check("var_complex", "n 3", |_, x| {
        (&x[0] * helio::ir::types::C64::new(1.0, 2.0)).var(0, 0)
    });
    cases.check("logsumexp", "n 3", |_, x| {
        (x[0].logsumexp(0), x[0].logsumexp(keep(1)), x[0].logsumexp(..))
    });
    cases.check("logsumexp_f16", "n 3", |_, x| x[0].logsumexp(0));
    cases.check("norm", "n 3", |_, x| (x[0].norm(0), x[0].norm(..), x[0].norm(keep(-1))));
    cases.check("norm_complex", "n 3", |_, x| {
        (&x[0] * helio::ir::types::C64::new(1.0, 2.0)).norm(0)
    });
    cases.check("count_nonzero", "n 3", |_, x| {
        (x[0].count_nonzero(0), x[0].count_nonzero(..), x[0].count_nonzero(keep(1)))
    });
    cases.check("median", "n 3", |_, x| (x[0].median(0), x[0].median(keep(1)), x[0].median(..)));
    cases.check("median_axes", "n 5 4", |_, x| (x[0].median([0, 2]), x[0].median(keep([0, 1]))));
    cases.check("median_s32", "n 3", |_, x| x[0].median(0));
    cases.check("median_f16", "n 3", |_, x| x[0].median(0));
}

#[test]
fn what_is_empty_has_no_greatest() {
    let g = Graph::new("nothing");
    let x = g.input("x", ElementType::F32, ("n", 0));
    let program = g.compile(x.argmax(0)).unwrap();
    let call = |n: usize| program.run(&[Array::new([n, 0], Vec::<f32>::new()).unwrap()]);
    assert_eq!(call(2).unwrap()[0].dims(), [0]);
    let error = call(0).unwrap_err();
    assert_eq!(error.rule_id(), Some("argmax.C1"));
    assert!(error.to_string().contains("tests/order.rs"), "{error}");
}

fn wrong(rule: &str, words: &[&str], of: impl Fn(&Tensor) -> Tensor) {
    let g = Graph::new("wrong");
    let x = g.input("x", ElementType::F32, ("n", 4));
    assert_error(&of(&x), rule, words);
}

#[test]
fn errors_say_what_to_do() {
    wrong("shape.C1", &["axis 2 of [n, 4]"], |x| x.sort(2));
    wrong("shape.C1", &["axis 0 of a scalar"], |x| x.sum(..).argsort(0));
    wrong("elementwise.C1", &["sort: needs", "c64"], |x| x.cast(ElementType::C64).sort(0));
    wrong("elementwise.C1", &["argmax: needs", "c64"], |x| x.cast(ElementType::C64).argmax(0));
    wrong("argmax.C1", &["without elements"], |x| x.slice(1, 4..).argmin(1));
    wrong("top_k.C1", &["5 elements of an axis that has 4"], |x| x.top_k(5, 1)[0].clone());
    wrong("dim.C1", &["cannot be -1"], |x| x.top_k(-1, 0)[1].clone());
    wrong("elementwise.C1", &["cumsum: needs numbers, found pred", "cast"], |x| {
        x.equal(x).cumsum(0)
    });
    wrong("elementwise.C1", &["cummax: needs"], |x| x.cast(ElementType::C64).cummax(0));
    wrong("elementwise.C1", &["logsumexp: needs floats, found s32"], |x| {
        x.cast(ElementType::S32).logsumexp(0)
    });
    wrong("elementwise.C1", &["norm: needs floats"], |x| x.cast(ElementType::S32).norm(0));
    wrong("elementwise.C1", &["median: needs"], |x| x.cast(ElementType::C64).median(0));
    wrong("slice.C2", &["of a dimension that is 0"], |x| x.slice(1, 4..).median(1));
}
