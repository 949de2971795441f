//! The tables in `docs/spec/elementwise.md` are those of the code.

use std::fs;
use std::path::Path;

use helio_ir::ops::{Accepts, ResultRule};
use helio_ir::{BinaryOp, UnaryOp};

#[test]
fn every_elementwise_operation_has_its_row() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/spec/elementwise.md");
    let spec = fs::read_to_string(path).expect("a readable file");
    let unary =
        UnaryOp::ALL.iter().map(|op| row(op.name(), op.accepts(), op.result_rule(), op.doc()));
    let binary =
        BinaryOp::ALL.iter().map(|op| row(op.name(), op.accepts(), op.result_rule(), op.doc()));
    let missing: Vec<_> =
        unary.chain(binary).filter(|row| !spec.lines().any(|line| line == row)).collect();
    assert!(missing.is_empty(), "rows to add:\n{}", missing.join("\n"));
}

fn row(name: &str, accepts: Accepts, result: ResultRule, doc: &str) -> String {
    let gives = match result {
        ResultRule::Same => "the same",
        ResultRule::RealPart => "the same, or a complex number's part",
        ResultRule::Pred => "pred",
        ResultRule::Complex => "complex numbers of such parts",
    };
    format!("| `{name}` | {accepts} | {gives} | {} |", doc.trim())
}
