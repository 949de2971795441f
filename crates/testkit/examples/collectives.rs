//! Collectives of every kind on every element type for 1, 2, 4 and 8 replicas, as a case file with
//! directly computed results: `cargo run -p helio-testkit --example collectives -- COUNT [SEED] > FILE`
//! writes COUNT of each.
//!
//! `tests/cases/check_with_xla.py FILE` compares them with XLA:CPU.

use std::process::ExitCode;

use helio_testkit::collectives::model::Counts;
use helio_testkit::collectives::{Kind, elements, program};

fn main() -> ExitCode {
    let args: Vec<Option<u64>> = std::env::args().skip(1).map(|arg| arg.parse().ok()).collect();
    let (count, seed) = match args[..] {
        [Some(count)] => (count, 0),
        [Some(count), Some(seed)] => (count, seed),
        _ => {
            eprintln!("usage: collectives COUNT [SEED]");
            return ExitCode::from(2);
        }
    };
    println!("// source: computed directly (crates/testkit/src/collectives), seeds from {seed}\n");
    for kind in Kind::ALL {
        for element in elements() {
            for replicas in [1, 2, 4, 8] {
                for seed in seed..seed.saturating_add(count) {
                    let counts = Counts { replicas, partitions: 1 };
                    println!("{}// -----", program(kind, element, counts, seed).case());
                }
            }
        }
    }
    ExitCode::SUCCESS
}
