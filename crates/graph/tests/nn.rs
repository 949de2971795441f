//! Layers of neural networks; what is expected is JAX's, or NumPy's in f64.

mod reference;

use helio_graph::{Array, ElementType, Graph, Mask, Result, attention};
use reference::{Cases, assert_error};

fn cases() -> Cases {
    Cases::new(include_str!("data/nn.json"))
}

#[test]
fn attentions() {
    let cases = cases();
    let shapes = "batch time 4; batch time 4; batch time 4";
    cases.check("attention", shapes, |_, x| attention(&x[0], &x[1], &x[2], &Mask::None));
    cases.check("attention_bf16", shapes, |_, x| attention(&x[0], &x[1], &x[2], &Mask::None));
    cases.check("attention_causal", shapes, |_, x| attention(&x[0], &x[1], &x[2], &Mask::Causal));
    cases.check("attention_where", "", |_, x| {
        attention(&x[0], &x[1], &x[2], &Mask::Where(x[3].clone()))
    });
    cases.check("attention_add", "", |_, x| {
        attention(&x[0], &x[1], &x[2], &Mask::Add(x[3].clone()))
    });
}

#[test]
fn norms() {
    let cases = cases();
    for dtype in ["f32", "f64", "bf16"] {
        cases.check(&format!("layer_norm_{dtype}"), "n 5", |_, x| x[0].layer_norm(-1, 1e-5));
        cases.check(&format!("rms_norm_{dtype}"), "n 5", |_, x| x[0].rms_norm(-1, 1e-5));
    }
}

#[test]
fn cross_entropies() {
    cases().check("cross_entropy", "n 5; n", |_, x| x[0].cross_entropy(&x[1]));
    let g = Graph::new("wrong");
    let x = g.input("x", ElementType::F32, ("n", 5));
    let wrong = x.cross_entropy(g.input("labels", ElementType::S32, ("n", 1)));
    assert_error(&wrong, "cross_entropy.C1", &["integers of shape [n]", "s32[n, 1]"]);
}

#[test]
fn dropout_keeps_the_mean() -> Result<()> {
    const N: usize = 40_000;
    let g = Graph::new("dropout");
    let x = g.ones(ElementType::F32, [N]);
    let dropped = x.dropout(0.2, &g.random(5));
    let result = g.compile(dropped)?.run(&[] as &[Array])?.remove(0);
    let values = result.as_slice::<f32>().expect("f32");
    assert!(values.iter().all(|&v| v == 0.0 || v == 1.25));
    let zeros = values.iter().filter(|&&v| v == 0.0).count() as f64 / N as f64;
    assert!((zeros - 0.2).abs() < 0.012, "{zeros}");
    let g = Graph::new("wrong");
    let random = g.random(0);
    let wrong = g.input("x", ElementType::F32, ("n",)).dropout(1.0, &random);
    assert_error(&wrong, "dropout.C1", &["less than 1"]);
    Ok(())
}
