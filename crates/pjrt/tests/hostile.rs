//! Programs, options and serialized executables with random mistakes, through the C ABI: errors, and
//! nothing worse, in bounded time and memory.
//!
//! `HELIO_MUTANTS=10000 cargo test -p helio-pjrt --test hostile -- --nocapture` tries so many of each.

mod support;

use std::time::{Duration, Instant};

use helio_pjrt::abi::*;
use helio_pjrt::api;
use helio_pjrt::executable::PJRT_LoadedExecutable;
use helio_pjrt::raw::Out;
use oorandom::Rand64;
use support::*;

/// The longest that one of them may take, on a machine that does other things, too.
const MAX_TIME: Duration = Duration::from_secs(60);

/// The most memory that the process may have at any time, in bytes.
const MAX_BYTES: usize = 4 << 30;

/// Random numbers, and mistakes.
struct Random(Rand64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0.rand_range(0..limit.max(1) as u64) as usize
    }

    /// The bytes with some of them changed, left out, put in or repeated.
    fn mutated(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for _ in 0..=self.below(3) {
            let at = self.below(bytes.len() + 1);
            match self.below(8) {
                0 | 1 if at < bytes.len() => drop(bytes.remove(at)),
                2 | 3 => bytes.insert(at, self.below(256) as u8),
                4 => bytes.truncate(at),
                5 => {
                    let end = (at + self.below(20)).min(bytes.len());
                    bytes.extend_from_within(at..end);
                    bytes[at..].rotate_right(end - at);
                }
                _ if at < bytes.len() => bytes[at] = self.below(256) as u8,
                _ => {}
            }
        }
        bytes
    }
}

/// What became of the mutants.
#[derive(Debug, Default)]
struct Tally {
    refused: usize,
    accepted: usize,
    slowest: Duration,
}

impl Tally {
    /// Tries one. An executable that is given is destroyed.
    fn count(&mut self, make: impl FnOnce() -> Result<Out<PJRT_LoadedExecutable>, Failure>) {
        let begin = Instant::now();
        match make() {
            Ok(executable) => {
                self.accepted += 1;
                call(api().PJRT_LoadedExecutable_Destroy, |args| {
                    args.executable = given(executable);
                })
                .unwrap();
            }
            Err((code, message)) => {
                self.refused += 1;
                assert_ne!(code, PJRT_Error_Code_INTERNAL, "{message}");
            }
        }
        self.slowest = self.slowest.max(begin.elapsed());
        assert!(self.slowest < MAX_TIME, "{:?}", self.slowest);
    }

    /// Prints it. Panics: fewer than a quarter were refused, or the process has had too much memory.
    fn check(&self) {
        println!("{self:?}");
        assert!(self.refused > (self.refused + self.accepted) / 4, "{self:?}");
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = peak.and_then(|text| text.split_whitespace().next()?.parse::<usize>().ok());
        assert!(kib.is_none_or(|kib| kib << 10 < MAX_BYTES), "{kib:?} KiB");
    }
}

/// How many mutants are tried of each kind.
fn count() -> usize {
    let count = std::env::var("HELIO_MUTANTS").ok().and_then(|text| text.parse().ok());
    count.unwrap_or(2000)
}

/// The compile options for two partitions, with their devices.
const TWO: &[u8] =
    &[0x1a, 18, 0x20, 1, 0x28, 2, 0x4a, 12, 8, 1, 16, 2, 0x1a, 2, 8, 0, 0x1a, 2, 8, 1];

/// A program that uses the memory of its argument, and names the memory of its result.
const TEXT: &str = "func.func public @main(%x: tensor<3xf32> {tf.aliasing_output = 0 : i32})
    -> (tensor<3xf32> {mhlo.memory_kind = \"pinned_host\"}) {
  %0 = stablehlo.add %x, %x : tensor<3xf32>
  return %0 : tensor<3xf32>
}";

/// A program whose values are cut up.
const SHARDED: &str = "sdy.mesh @m = <[\"x\"=2]>
  func.func public @main(%x: tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@m, [{\"x\"}, {}]>})
      -> tensor<2xf32> {
    %0 = stablehlo.constant dense<0.0> : tensor<f32>
    %1 = stablehlo.sine %x : tensor<4x2xf32>
    %2 = stablehlo.reduce(%1 init: %0) applies stablehlo.add across dimensions = [0]
      : (tensor<4x2xf32>, tensor<f32>) -> tensor<2xf32>
    return %2 : tensor<2xf32>
  }";

/// A program with a loop and branches on tiles.
const LOOPED: &str = "sdy.mesh @m = <[\"x\"=2]>
  func.func public @main(%x: tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@m, [{\"x\"}, {}]>})
      -> (tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {\"x\"}]>}) {
    %0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.constant dense<3> : tensor<i32>
    %2 = stablehlo.constant dense<1> : tensor<i32>
    %3 = stablehlo.constant dense<1.0> : tensor<4x2xf32>
    %4:2 = stablehlo.while(%i = %0, %y = %3) : tensor<i32>, tensor<4x2xf32>
      cond {
        %5 = stablehlo.compare LT, %i, %1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %5 : tensor<i1>
      } do {
        %6 = \"stablehlo.case\"(%i) ({
          %7 = stablehlo.add %y, %x : tensor<4x2xf32>
          stablehlo.return %7 : tensor<4x2xf32>
        }, {
          %8 = stablehlo.reverse %y, dims = [0] : tensor<4x2xf32>
          stablehlo.return %8 : tensor<4x2xf32>
        }) : (tensor<i32>) -> tensor<4x2xf32>
        %9 = stablehlo.add %i, %2 : tensor<i32>
        stablehlo.return %9, %6 : tensor<i32>, tensor<4x2xf32>
      }
    return %4#1 : tensor<4x2xf32>
  }";

/// A compiler option, as frameworks pass it.
const OVERRIDE: &[u8] = b"\x3a\x20\x0a\x18xla_cpu_enable_fast_math\x12\x04\x0a\x02no";

#[test]
fn mutated_programs_and_options_are_errors_at_most() {
    let client = client(2);
    let proto = optimized(executable(compile(client, TEXT, &[]).unwrap()));
    let programs: [(&str, &[u8]); 6] = [
        ("mlir", include_bytes!("../../stablehlo/tests/artifacts/shard_map.1.13.0.mlirbc")),
        ("mlir", include_bytes!("../../stablehlo/tests/artifacts/mixed.1.13.0.mlirbc")),
        ("mlir", TEXT.as_bytes()),
        ("mlir", SHARDED.as_bytes()),
        ("mlir", LOOPED.as_bytes()),
        ("hlo_with_config", &proto),
    ];
    for text in [TEXT, SHARDED, LOOPED] {
        let executable = compile_format(client, "mlir", text.as_bytes(), TWO).unwrap();
        call(api().PJRT_LoadedExecutable_Destroy, |args| args.executable = given(executable))
            .unwrap();
    }
    let mut random = Random(Rand64::new(1));
    let mut tally = Tally::default();
    for number in 0..count() {
        let (format, program) = programs[random.below(programs.len())];
        let options = [TWO, OVERRIDE].concat();
        let options = if random.below(4) == 0 { &options[..] } else { TWO };
        let (program, options) = match number % 3 {
            0 => (program.to_vec(), random.mutated(options)),
            1 => (random.mutated(program), TWO.to_vec()),
            _ => (random.mutated(program), random.mutated(options)),
        };
        tally.count(|| compile_format(client, format, &program, &options));
    }
    tally.check();
}

#[test]
fn mutated_executables_are_errors_at_most() {
    let client = client(2);
    let program = executable(compile(client, TEXT, &[]).unwrap());
    let bytes =
        call(api().PJRT_Executable_Serialize, |args| args.executable = given(program)).unwrap();
    let serialized = values(bytes.serialized_bytes, bytes.serialized_bytes_size);
    let mut random = Random(Rand64::new(2));
    let mut tally = Tally::default();
    for _ in 0..count() {
        let bytes = random.mutated(&serialized);
        let options = if random.below(2) == 0 { Vec::new() } else { random.mutated(TWO) };
        tally.count(|| {
            let args = call(api().PJRT_Executable_DeserializeAndLoad, |args| {
                args.client = given(client);
                args.serialized_executable = list(&bytes);
                args.serialized_executable_size = bytes.len();
                args.overridden_serialized_compile_options = list(&options);
                args.overridden_serialized_compile_options_size = options.len();
            })?;
            Ok(args.loaded_executable)
        });
    }
    tally.check();
}
