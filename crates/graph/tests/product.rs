//! Products of matrices and Einstein's sums; what is expected is NumPy's.

mod reference;

use helio_graph::{Array, ElementType, Graph, Tensor, einsum};
use reference::{Cases, assert_error};

fn cases() -> Cases {
    Cases::new(include_str!("data/product.json"))
}

#[test]
fn products_of_matrices() {
    let cases = cases();
    for (name, shapes) in [
        ("matrices", "n 3; 3 5"),
        ("inner", "n; n"),
        ("row", "n; n 5"),
        ("column", "n 3; 3"),
        ("row_batch", "3; n 3 5"),
        ("column_batch", "n 7 3; 3"),
        ("batch", "n 3 4; n 4 5"),
        ("batch_left", "n 3 4; 4 5"),
        ("batch_right", "3 4; n 4 5"),
        ("stretch", "n 1 3 4; 5 4 2"),
        ("stretch_both", ""),
        ("empty_sum", "n 0; 0 3"),
        ("heads", "b 3 n 4; b 3 4 n"),
    ] {
        cases.check(name, shapes, |_, x| x[0].matmul(&x[1]));
    }
}

#[test]
fn all_types() {
    let cases = cases();
    for name in [
        "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "f64", "c64", "c128", "f16", "bf16",
        "f8e4m3fn", "f8e5m2",
    ] {
        let shapes =
            if name.starts_with(['b', 'f']) && name != "f64" { "3 n; n 2" } else { "n 17; 17 5" };
        cases.check(&format!("types_{name}"), shapes, |_, x| x[0].matmul(&x[1]));
    }
    cases.check("promoted", "n 3; 3 2", |_, x| x[0].matmul(&x[1]));
}

#[test]
fn other_products() {
    let cases = cases();
    cases.check("dot", "n 3; 4 3 5", |_, x| x[0].dot(&x[1]));
    cases.check("dot_vectors", "n; n", |_, x| x[0].dot(&x[1]));
    cases.check("dot_column", "n 2 3; 3", |_, x| x[0].dot(&x[1]));
    cases.check("dot_scalar", "n 3; ", |_, x| x[0].dot(&x[1]));
    cases.check("tensordot", "n 3 4; 4 n 5", |_, x| x[0].tensordot(&x[1], &[0, -1], &[1, 0]));
    cases.check("tensordot_none", "n 3; 4", |_, x| x[0].tensordot(&x[1], &[0; 0], &[0; 0]));
    cases.check("outer", "n 3; 4", |_, x| x[0].outer(&x[1]));
    let g = Graph::new("with_an_array");
    let x = g.input("x", ElementType::F32, ("n", 2));
    let y = g.compile(x.matmul(Array::new([2], vec![1f32, 10.0]).unwrap())).unwrap();
    let results = y.run(&[Array::new([1, 2], vec![3f32, 4.0]).unwrap()]).unwrap();
    assert_eq!(results[0].as_slice::<f32>(), Some(&[43.0][..]));
}

#[test]
fn einsteins_sums() {
    let cases = cases();
    for (name, formula, shapes) in [
        ("matmul", "ij,jk->ik", "n 3; 3 5"),
        ("matmul_implied", "ij,jk", "n 3; 3 5"),
        ("implied_order", "ba,cb", "n 3; 5 n"),
        ("transposed", "ij,kj->ki", "n 3; 5 3"),
        ("scores", "bqhd,bkhd->bhqk", "b n 2 4; b m 2 4"),
        ("elementwise", "ij,ij->ij", "n 3; n 3"),
        ("all", "ij,ij->", "n 3; n 3"),
        ("outer", "i,j->ji", "n; 3"),
        ("alone", "ij,k->k", "n 3; 4"),
        ("ellipsis", "...ij,...jk->...ik", "n 1 3 4; 5 4 2"),
        ("ellipsis_implied", "...ij,jk", "n 3 4; 4 2"),
        ("ellipsis_inside", "i...j,j->i...", "n 3 4; 4"),
        ("upper", " aB, Bc -> ca", "n 3; 3 5"),
        ("diagonal", "ii,ij->j", "n n; n 2"),
        ("hadamard_batch", "bi,bi->b", "n 4; n 4"),
        ("stretch", "ij,jk->ik", ""),
        ("trace", "ii", "n n"),
        ("diagonal_of", "ii->i", "n n"),
        ("diagonals", "iji->ji", "n 2 n"),
        ("transpose", "ij->ji", "n 3"),
        ("sum", "ij->", "n 3"),
        ("sum_rows", "ij->j", "n 3"),
        ("transpose_last", "...ij->...ji", "n 3 4"),
        ("implied_transpose", "ba", "n 3"),
        ("three", "ij,jk,kl->il", "n 3; 3 4; 4 5"),
        ("bilinear", "bi,ioj,bj->bo", "n 3; 3 5 4; n 4"),
    ] {
        cases.check(&format!("einsum_{name}"), shapes, |_, x| einsum(formula, x));
    }
}

fn wrong(rule: &str, words: &[&str], of: impl Fn(&Tensor, &Tensor) -> Tensor) {
    let g = Graph::new("wrong");
    let x = g.input("x", ElementType::F32, ("n", 28));
    let y = g.input("y", ElementType::F32, (10, 28));
    assert_error(&of(&x, &y), rule, words);
}

#[test]
fn errors_say_what_to_do() {
    wrong(
        "matmul.C1",
        &[
            "[n, 28] and [10, 28]: the sum runs over dimension 28 (axis 1 of the left operand) and \
             dimension 10 (axis 0 of the right operand)",
            "y.swap_axes(-2, -1)",
        ],
        |x, y| x.matmul(y),
    );
    wrong("matmul.C1", &["dimension n (axis 1", "dimension 10", "rebind"], |x, y| x.t().matmul(y));
    wrong("matmul.C2", &["1 axis or more", "x * y"], |x, _| x.matmul(2.0));
    wrong(
        "broadcast.C1",
        &["the axes before the matrices of [n, 28, 1] and [10, 1, 28]", "[n] and [10]"],
        |x, y| x.expand_dims(-1).matmul(y.expand_dims(1)),
    );
    wrong("promotion.C1", &["f32 and s32"], |x, y| x.matmul(y.t().cast(ElementType::S32)));
    wrong("elementwise.C1", &["matmul: needs numbers, found pred", "cast"], |x, y| {
        x.greater(0.0).matmul(y.t().greater(0.0))
    });
    wrong("tensordot.C1", &["1 axes of the left operand and 2"], |x, y| {
        x.tensordot(y, &[0], &[0, 1])
    });
    wrong("shape.C1", &["axis 2 of [n, 28]"], |x, y| x.tensordot(y, &[2], &[0]));
    let sum = |formula: &'static str| move |x: &Tensor, y: &Tensor| einsum(formula, &[x, y]);
    wrong("einsum.C1", &["\"ij,k1\", at byte 4: '1'"], sum("ij,k1"));
    wrong("einsum.C1", &["at byte 4: `...`"], sum("ij,k."));
    wrong("einsum.C1", &["the result has 'i' twice"], sum("ij,kj->ii"));
    wrong("einsum.C1", &["at byte 8: no operand has 'z'"], sum("ij,kj->iz"));
    wrong("einsum.C1", &["`...` must be in the result"], sum("...j,kj->k"));
    wrong("einsum.C2", &["has 1 operands, found 2 tensors"], sum("ij->i"));
    wrong("einsum.C2", &["\"ijk\" of \"ij,ijk\" is for 3 axes, the tensor has 2"], sum("ij,ijk"));
    wrong("einsum.C2", &["\"k\" of \"ij,k\" is for 1 axes"], sum("ij,k"));
    wrong("einsum.C3", &["'i' stands for dimensions n and 10", "rebind"], sum("ij,ij->ij"));
    wrong("einsum.C3", &["'k' stands for dimensions 10 and 28"], sum("ij,kk->"));
    wrong("einsum.C3", &["an axis of `...` stands for dimensions n and 10"], sum("...j,...j->..."));
    wrong("elementwise.C1", &["einsum: needs numbers"], |x, _| einsum("ij->i", &[x.equal(x)]));
}
