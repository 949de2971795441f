//! Programs and options with random mistakes, through the C ABI: errors, and nothing worse.
//!
//! `HELIO_MUTANTS=10000 cargo test -p helio-pjrt --test hostile` tries so many.

mod support;

use helio_pjrt::abi::*;
use helio_pjrt::api;
use oorandom::Rand64;
use support::*;

/// Random numbers, and mistakes.
struct Random(Rand64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0.rand_range(0..limit.max(1) as u64) as usize
    }

    /// The bytes with some of them changed, left out or put in.
    fn mutated(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for _ in 0..=self.below(3) {
            let at = self.below(bytes.len() + 1);
            match self.below(4) {
                0 if at < bytes.len() => drop(bytes.remove(at)),
                1 => bytes.insert(at, self.below(256) as u8),
                2 => bytes.truncate(at),
                _ if at < bytes.len() => bytes[at] = self.below(256) as u8,
                _ => {}
            }
        }
        bytes
    }
}

#[test]
fn mutated_programs_and_options_are_errors_at_most() {
    let count = std::env::var("HELIO_MUTANTS").ok().and_then(|text| text.parse().ok());
    let count = count.unwrap_or(300);
    let client = client(2);
    let artifact = include_bytes!("../../stablehlo/tests/artifacts/shard_map.1.13.0.mlirbc");
    let text = b"func.func public @main(%x: tensor<3xf32> {tf.aliasing_output = 0 : i32})
        -> (tensor<3xf32> {mhlo.memory_kind = \"pinned_host\"}) {
      %0 = stablehlo.add %x, %x : tensor<3xf32>
      return %0 : tensor<3xf32>
    }";
    // Two partitions with their devices.
    let options = [0x1a, 18, 0x20, 1, 0x28, 2, 0x4a, 12, 8, 1, 16, 2, 0x1a, 2, 8, 0, 0x1a, 2, 8, 1];
    let mut random = Random(Rand64::new(1));
    let (mut refused, mut compiled) = (0, 0);
    for number in 0..count {
        let program: &[u8] = if number % 2 == 0 { artifact } else { text };
        let (program, options) = match number % 3 {
            0 => (program.to_vec(), random.mutated(&options)),
            1 => (random.mutated(program), options.to_vec()),
            _ => (random.mutated(program), random.mutated(&options)),
        };
        match compile_format(client, "mlir", &program, &options) {
            Ok(executable) => {
                compiled += 1;
                call(api().PJRT_LoadedExecutable_Destroy, |args| {
                    args.executable = given(executable);
                })
                .unwrap();
            }
            Err((code, message)) => {
                refused += 1;
                assert_ne!(code, PJRT_Error_Code_INTERNAL, "{message}");
            }
        }
    }
    println!("{refused} refused, {compiled} compiled");
    assert!(refused > count / 4, "only {refused} of {count} were refused");
}
