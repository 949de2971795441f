//! What turns a program into results, and with what means.

use std::num::NonZeroUsize;

use clap::ValueEnum;
use helio::{CompileOptions, Error, Executable, Module};

/// What turns a program into results, and with what means.
#[derive(clap::Args)]
pub(crate) struct Engine {
    /// What runs the program.
    #[arg(long, value_enum, default_value_t = Backend::Interpreter)]
    backend: Backend,
    /// How many threads may work at once [default: as many as the process may use].
    #[arg(long, value_name = "T")]
    threads: Option<NonZeroUsize>,
    /// How many bytes all arrays together may have, as 1000000, 500K, 64M or 2G (units of 1024)
    /// [default: nine tenths of what is free].
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    memory_limit: Option<usize>,
}

/// What turns a program into results.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Backend {
    /// The reference interpreter: slow, obvious.
    Interpreter,
}

impl Engine {
    /// Sets the limits of this process and compiles. Errors: everything wrong with the program.
    pub(crate) fn compile(&self, module: Module) -> Result<Executable, Vec<Error>> {
        if let Some(bytes) = self.memory_limit {
            helio::memory::set_limit_bytes(bytes);
        }
        let mut options = CompileOptions::default();
        options.backend = match self.backend {
            Backend::Interpreter => helio::Backend::Interpreter,
        };
        helio::compile(module, &options)
    }

    /// How many threads may work at once.
    pub(crate) fn threads(&self) -> usize {
        let available = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        self.threads.map_or_else(available, NonZeroUsize::get)
    }
}

/// A number of bytes, maybe with a unit.
fn bytes(text: &str) -> Result<usize, String> {
    let shift = match text.as_bytes().last() {
        Some(b'K' | b'k') => 10,
        Some(b'M' | b'm') => 20,
        Some(b'G' | b'g') => 30,
        _ => 0,
    };
    let digits = if shift == 0 { text } else { &text[..text.len() - 1] };
    let number = digits.parse::<usize>().ok();
    number
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| "must be a number of bytes, maybe followed by K, M or G".to_owned())
}

#[cfg(test)]
mod tests {
    #[test]
    fn bytes_have_units() {
        let read = |text| super::bytes(text).ok();
        assert_eq!(["7", "2K", "3m", "1G"].map(read), [7, 2048, 3 << 20, 1 << 30].map(Some));
        assert_eq!(["", "K", "-1", "1.5G", "1T", "é", "99999999999999G"].map(read), [None; 7]);
    }
}
