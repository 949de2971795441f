//! Steps of generated code.

use std::sync::Arc;

use helio_codegen::kernel::Kernel as Code;
use helio_codegen::tile::{self, Tile};
use helio_codegen::x86;
use helio_runtime::program::{Failure, Kernel, RawParam, Step};
use helio_runtime::{Jit, Threads};

use super::{Planned, Planner, StorageId};

/// Kernels state the work of a unit in cycles or so; processors have about so many each nanosecond.
const CYCLES_PER_NANO: f64 = 4.0;

impl Planner<'_> {
    /// The step that runs a kernel: machine code if there can be, else the tile machine.
    pub(super) fn kernel_step(
        &mut self,
        code: Code,
        cost: u64,
        slots: Vec<StorageId>,
    ) -> Planned<Step> {
        if let Some(isa) = self.target.isa
            && let Ok(bytes) = x86::compile(&code, isa)
        {
            let param = |param: &helio_codegen::kernel::Param| RawParam {
                bytes: param.bytes,
                read: param.read,
                write: param.write,
                align: param.align(),
            };
            let kernel = self.machine_code.add(Jit {
                name: format!("kernel {}", self.machine_code.len()),
                code: bytes.bytes().to_vec(),
                params: code.params.iter().map(param).collect(),
                scratch_bytes: code.scratch_bytes,
                range: code.range,
                grain: code.grain,
                nanos: cost as f64 / CYCLES_PER_NANO,
            });
            return Ok(Step::Raw { kernel, slots });
        }
        let tile = Portable::new(&code)?;
        let (outputs, inputs): (Vec<_>, Vec<_>) =
            slots.into_iter().zip(&code.params).partition(|(_, param)| param.write);
        let ids = |slots: Vec<(StorageId, _)>| slots.into_iter().map(|(id, _)| id).collect();
        Ok(Step::Kernel { kernel: Arc::new(tile), inputs: ids(inputs), outputs: ids(outputs) })
    }
}

/// A kernel on the portable tile machine.
struct Portable {
    tile: Tile,
    range: i64,
    /// For each parameter, whether it is written.
    writes: Vec<bool>,
}

impl Portable {
    fn new(code: &Code) -> Planned<Self> {
        let tile = Tile::new(code).map_err(|error| error.to_string())?;
        let writes = code.params.iter().map(|param| param.write).collect();
        Ok(Portable { tile, range: code.range, writes })
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
        _: Threads<'_>,
    ) -> Result<(), Failure> {
        let (mut inputs, mut outputs) = (inputs.iter(), outputs.iter_mut());
        let arg = |&write: &bool| match write {
            true => outputs.next().map(|bytes| tile::Arg::Write(bytes)),
            false => inputs.next().map(|bytes| tile::Arg::Read(bytes)),
        };
        let args: Option<Vec<tile::Arg<'_>>> = self.writes.iter().map(arg).collect();
        let mut args = args.ok_or("a parameter is missing")?;
        Ok(self.tile.run(&mut args, 0, self.range)?)
    }
}
