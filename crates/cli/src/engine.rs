//! What turns a program into results, and with what means.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use helio::{
    Backend, CheckEngine, Client, ClientOptions, CompileOptions, DeviceAssignment, Error, Errors,
    Executable, Limits, Module, OptLevel, Subnormals,
};

/// What turns a program into results, and with what means.
#[derive(clap::Args)]
pub(crate) struct Engine {
    /// What runs the program: cpu is code compiled for this machine's processor; interpreter is slow
    /// and obvious; x86-64-v4, x86-64-v3 (levels of the architecture) and portable (a machine in
    /// software) are code of that kind, where the processor can run it.
    #[arg(long, default_value = "cpu", value_parser = backend)]
    backend: String,
    /// How much work goes into making the program fast, 0 to 3; the interpreter runs it as it is.
    #[arg(long, value_name = "LEVEL", default_value = "2", value_parser = opt_level)]
    opt_level: OptLevel,
    #[command(flatten)]
    arithmetic: Arithmetic,
    /// How many threads may work at once [default: as many as the process may use].
    #[arg(long, value_name = "T")]
    threads: Option<NonZeroUsize>,
    #[command(flatten)]
    bounds: Bounds,
}

/// How programs compute.
#[derive(clap::Args)]
pub(crate) struct Arithmetic {
    /// What arithmetic does with numbers so close to zero that their mantissa is not full: flush takes
    /// them for zeros and gives zeros for them, as XLA does; keep computes with them as with any other,
    /// which takes processors up to a hundred times as long [default: flush; keep for programs that check
    /// themselves, as StableHLO's do, since what they expect has subnormal numbers].
    #[arg(long, value_name = "flush|keep", value_parser = subnormals)]
    subnormals: Option<Subnormals>,
}

impl Arithmetic {
    /// Says so to a compilation.
    pub(crate) fn set(&self, options: &mut CompileOptions) {
        options.subnormals = self.subnormals.unwrap_or_default();
    }
}

/// What compilations and runs may take.
#[derive(clap::Args)]
pub(crate) struct Bounds {
    /// How many bytes arrays and what computing takes may have together, as 1000000, 500K, 64M or 2G
    /// (units of 1024)
    /// [default: nine tenths of what is free].
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    memory_limit: Option<usize>,
    /// Stop a run with an error after N steps: instructions, and for those with much work its parts
    /// (elements of a reduction if interpreted, tasks of up to a millisecond if compiled). A compilation
    /// may look at N instructions, plus 1000 for each instruction of the program.
    #[arg(long, value_name = "N")]
    max_steps: Option<u64>,
    /// Stop a compilation, and each run, with an error after SECONDS seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    time_limit: Option<Duration>,
    /// Stop a run with an error when it has waited for SECONDS seconds for other replicas, or for the
    /// host, and none of them has sent, received or come to a collective operation [default: 600].
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    max_wait: Option<Duration>,
}

/// What a compilation may look at, for each instruction of the program, whatever the limit of steps.
const COMPILE_STEPS: u64 = 1000;

impl Bounds {
    /// Sets the limits of this process.
    pub(crate) fn set(&self) {
        if let Some(bytes) = self.memory_limit {
            helio::memory::set_limit_bytes(bytes);
        }
    }

    /// The limits of a run that begins now.
    pub(crate) fn of_run(&self) -> Limits {
        let deadline = self.time_limit.and_then(|time| Instant::now().checked_add(time));
        let (max_steps, max_wait) = (self.max_steps, self.max_wait);
        Limits { max_steps, deadline, max_wait, ..Limits::default() }
    }

    /// The limits of a compilation that begins now.
    pub(crate) fn of_compilation(&self, module: &Module) -> Limits {
        let instrs = module.computations().iter().map(|c| c.instrs().len() as u64).sum::<u64>();
        let own = instrs.saturating_mul(COMPILE_STEPS);
        Limits { max_steps: self.max_steps.map(|steps| steps.saturating_add(own)), ..self.of_run() }
    }
}

impl Engine {
    /// A client with these means and so many devices; sets the limits of this process.
    pub(crate) fn client(&self, devices: usize) -> Client {
        self.bounds.set();
        let mut options = ClientOptions::default();
        options.devices = devices;
        options.threads = self.threads.map(NonZeroUsize::get);
        Client::new(&options)
    }

    /// The limits of a run that begins now.
    pub(crate) fn limits(&self) -> Limits {
        self.bounds.of_run()
    }

    /// Compiles a program for as many replicas and partitions as are assigned. Errors: everything
    /// wrong with it.
    pub(crate) fn compile(
        &self,
        client: &Client,
        module: Module,
        assignment: &DeviceAssignment,
    ) -> Result<Executable, Errors> {
        let mut options = self.options()?;
        options.assignment = Some(assignment.clone());
        options.limits = self.bounds.of_compilation(&module);
        client.compile(module, &options)
    }

    /// What runs programs that check themselves. Errors: there is no such back end.
    pub(crate) fn checks(&self) -> Result<CheckEngine, Error> {
        let mut options = self.options()?;
        options.subnormals = self.arithmetic.subnormals.unwrap_or(Subnormals::Keep);
        let mut engine = CheckEngine::new(options);
        engine.client = self.client(1);
        engine.run.limits = self.limits();
        Ok(engine)
    }

    /// How programs are compiled, without limits.
    fn options(&self) -> Result<CompileOptions, Error> {
        let mut options = CompileOptions::default();
        options.backend = Backend::named(&self.backend)?;
        options.opt_level = self.opt_level;
        self.arithmetic.set(&mut options);
        Ok(options)
    }
}

/// A name that [`Backend::named`] knows.
fn backend(name: &str) -> Result<String, String> {
    Backend::named(name).map(|_| name.to_owned()).map_err(|error| error.to_string())
}

fn subnormals(text: &str) -> Result<Subnormals, String> {
    Subnormals::named(text).ok_or_else(|| "must be flush or keep".to_owned())
}

fn opt_level(text: &str) -> Result<OptLevel, String> {
    let level = text.parse().ok().and_then(OptLevel::from_number);
    level.ok_or_else(|| "must be a number from 0 to 3".to_owned())
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|secs| Duration::try_from_secs_f64(secs).ok());
    seconds.ok_or_else(|| "must be a number of seconds that is not negative".to_owned())
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
