//! Steps of generated code.

use std::sync::Arc;

use helio_codegen::kernel::Kernel as Code;
use helio_codegen::lower::{Arg, Stage, lower_scalar};
use helio_codegen::tile::{Arg as TileArg, Tile};
use helio_codegen::{Vouched, x86};
use helio_ir::{Code as ErrorCode, CompId, Error, Module, Verified};
use helio_runtime::program::{Action, Failure, Kernel, RawKernel};
use helio_runtime::{Jit, JitArg, JitBatch, LateFunction, Threads};
use smallvec::SmallVec;

use super::native::Written;
use super::{Planned, Planner, StorageId, Target};

/// Kernels state the work of a unit in cycles or so; processors have about so many each nanosecond.
const CYCLES_PER_NANO: f64 = 4.0;

impl Planner<'_> {
    /// What runs a kernel: machine code if there can be, else the tile machine.
    pub(super) fn kernel_step(
        &mut self,
        code: Vouched<Code>,
        cost: u64,
        slots: Vec<StorageId>,
    ) -> Planned<Action> {
        if let Some(kernel) = machine_code(&code, cost, self.target, &mut self.machine_code)? {
            let kernel: Arc<dyn RawKernel> = kernel;
            self.proofs.keep(&kernel, &code);
            if self.compact.is_some() {
                self.written.push(Written::new(&kernel, code, cost));
            }
            return Ok(Action::Raw { kernel, slots });
        }
        if let Some(reason) = self.target.why_portable() {
            self.note(reason);
        }
        let tile = Portable::new(&code, cost)?;
        let (outputs, inputs): (Vec<_>, Vec<_>) =
            slots.into_iter().zip(&code.params).partition(|(_, param)| param.write);
        let ids = |slots: Vec<(StorageId, _)>| slots.into_iter().map(|(id, _)| id).collect();
        Ok(Action::Kernel { kernel: Arc::new(tile), inputs: ids(inputs), outputs: ids(outputs) })
    }
}

/// Adds the machine code of a kernel to a batch, if there can be. Errors: the kernel is not well
/// formed.
fn machine_code(
    code: &Vouched<Code>,
    cost: u64,
    target: &Target,
    batch: &mut JitBatch,
) -> Result<Option<Arc<LateFunction>>, Error> {
    let Some(isa) = target.isa else { return Ok(None) };
    let code = match target.bounds_checks {
        true => x86::compile_checked_vouched(code, isa),
        false => x86::compile_vouched(code, isa),
    };
    let code = match code {
        Ok(code) => code,
        Err(error) if error.code() == ErrorCode::Unimplemented => return Ok(None),
        Err(error) => return Err(error),
    };
    let name = format!("kernel {}", batch.len());
    Ok(Some(batch.add(Jit::new(name, code, cost as f64 / CYCLES_PER_NANO))))
}

/// Scalar code that runs on many arguments at once, as machine code or on the tile machine.
pub(super) struct ScalarCode {
    engine: Engine,
    args: Vec<Arg>,
    range: i64,
    grain: i64,
}

enum Engine {
    Machine(Arc<LateFunction>),
    Tile(Tile),
}

impl ScalarCode {
    /// Code for `count` arguments at once, if the computation can be lowered. Errors: what it was
    /// lowered to is not well formed.
    pub(super) fn new(
        module: &Verified<Module>,
        scalar: CompId,
        count: usize,
        target: &Target,
        batch: &mut JitBatch,
    ) -> Result<Option<Self>, Error> {
        let lowered = lower_scalar(module, scalar, count, target.vectors(false));
        let Ok(Stage { kernel, args, cost, .. }) = lowered else { return Ok(None) };
        let (range, grain) = (kernel.range, kernel.grain.max(1));
        let engine = match machine_code(&kernel, cost, target, batch)? {
            Some(function) => Engine::Machine(function),
            None => Engine::Tile(Tile::new(&kernel)?),
        };
        Ok(Some(ScalarCode { engine, args, range, grain }))
    }

    /// Whether it runs on the tile machine.
    pub(super) fn is_portable(&self) -> bool {
        matches!(self.engine, Engine::Tile(_))
    }

    /// The parameters that the code reads, in ascending order.
    pub(super) fn reads(&self) -> Vec<usize> {
        let operand = |arg: &Arg| match arg {
            Arg::Operand(i) => Some(*i),
            _ => None,
        };
        let mut reads: Vec<usize> = self.args.iter().filter_map(operand).collect();
        reads.sort_unstable();
        reads
    }

    /// Runs the code, whose results go to `to`, for the first `count` arguments and maybe more.
    /// `operand` gives the arguments for a parameter.
    pub(super) fn call<'a>(
        &self,
        count: usize,
        operand: impl Fn(usize) -> &'a [u8],
        to: &mut [&mut [u8]],
    ) -> Result<(), Failure> {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let end = count.saturating_add(self.grain - 1) / self.grain * self.grain;
        let end = end.min(self.range);
        match &self.engine {
            Engine::Machine(function) => {
                let mut args = SmallVec::<[JitArg<'_>; 8]>::new();
                let mut to = to.iter_mut();
                for arg in &self.args {
                    args.push(match arg {
                        Arg::Operand(i) => JitArg::Read(operand(*i)),
                        // Results are stored in order.
                        _ => to.next().map_or(JitArg::Read(&[]), |to| JitArg::Write(to)),
                    });
                }
                Ok(function.call(&mut args, 0..end)?)
            }
            Engine::Tile(tile) => {
                let mut to = to.iter_mut();
                let arg = |arg: &Arg| match arg {
                    Arg::Operand(i) => TileArg::Read(operand(*i)),
                    _ => to.next().map_or(TileArg::Read(&[]), |to| TileArg::Write(to)),
                };
                let mut args: Vec<TileArg<'_>> = self.args.iter().map(arg).collect();
                Ok(tile.run(&mut args, 0, end)?)
            }
        }
    }
}

/// The work, in a processor's cycles or so, of a piece that the tile machine runs at once. (It takes
/// some ten times as long for it: about a millisecond.)
const PIECE_CYCLES: u64 = 1 << 18;

/// A kernel on the portable tile machine.
struct Portable {
    tile: Tile,
    range: i64,
    /// How much of the range is run before it is asked whether the run has stopped; a multiple of the
    /// grain.
    piece: i64,
    /// For each parameter, whether it is written.
    writes: Vec<bool>,
}

impl Portable {
    fn new(code: &Code, cost: u64) -> Planned<Self> {
        let tile = Tile::new(code)?;
        let writes = code.params.iter().map(|param| param.write).collect();
        let grain = code.grain.max(1);
        let units = i64::try_from(PIECE_CYCLES / cost.max(1)).unwrap_or(i64::MAX);
        let piece = (units / grain).max(1).saturating_mul(grain);
        Ok(Portable { tile, range: code.range, piece, writes })
    }
}

impl Kernel for Portable {
    fn name(&self) -> &str {
        "tile"
    }

    fn run(
        &self,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
        threads: Threads<'_>,
    ) -> Result<(), Failure> {
        let (mut inputs, mut outputs) = (inputs.iter(), outputs.iter_mut());
        let arg = |&write: &bool| match write {
            true => outputs.next().map(|bytes| TileArg::Write(bytes)),
            false => inputs.next().map(|bytes| TileArg::Read(bytes)),
        };
        let args: Option<Vec<TileArg<'_>>> = self.writes.iter().map(arg).collect();
        let mut args = args.ok_or("a parameter is missing")?;
        let mut begin = 0;
        while begin < self.range && !threads.is_stopped() {
            let end = self.range.min(begin.saturating_add(self.piece));
            self.tile.run(&mut args, begin, end)?;
            begin = end;
        }
        Ok(())
    }
}
