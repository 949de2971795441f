//! The extension for shardings: how arguments and results lie on the devices of a program.
#![allow(non_camel_case_types)]

use std::mem::size_of;
use std::sync::OnceLock;

use helio::Result;
use helio_proto::messages::OpSharding;
use helio_stablehlo::tiling::Tiling;
use prost::Message;

use super::layouts::{PJRT_Layouts_MemoryLayout, of_ranks};
use crate::abi::*;
use crate::program::Tilings;
use crate::raw::{Call, Out, entry};

/// How the arguments and results of a program lie on its devices and in their memory, as callers read
/// it.
pub(crate) struct Sharded {
    pub(super) argument_layouts: Vec<Out<PJRT_Layouts_MemoryLayout>>,
    pub(super) output_layouts: Vec<Out<PJRT_Layouts_MemoryLayout>>,
    arguments: Lists,
    outputs: Lists,
    /// What the lists of layouts point to; it never grows.
    _layouts: Vec<PJRT_Layouts_MemoryLayout>,
}

/// Serialized shardings: where each lies, and its size.
#[derive(Default)]
struct Lists {
    starts: Vec<Out<u8>>,
    sizes: Vec<usize>,
    _bytes: Vec<Vec<u8>>,
}

/// XLA's number for arrays in tiles; that for whole arrays is 0.
const OTHER: i32 = 3;

/// XLA's number for tiles of which devices have summands; that for tiles that several devices have is 0.
const UNREDUCED: i32 = 6;

/// A tiling as XLA says it.
fn op_sharding(tiling: &Tiling) -> OpSharding {
    if tiling.is_whole() {
        return OpSharding::default();
    }
    let partitions = tiling.partitions();
    let summands = tiling.summands.max(1);
    let copies = partitions.first().map_or(1, Vec::len) / summands;
    let mut dims: Vec<i64> = tiling.tiles.iter().map(|&tiles| tiles as i64).collect();
    dims.extend([copies, summands].into_iter().filter(|&n| n > 1).map(|n| n as i64));
    let kinds = [(copies, 0), (summands, UNREDUCED)].into_iter().filter(|kind| kind.0 > 1);
    let last_tile_dims = if summands > 1 { kinds.map(|kind| kind.1).collect() } else { vec![] };
    OpSharding {
        kind: OTHER,
        tile_assignment_dimensions: dims,
        tile_assignment_devices: partitions.concat().into_iter().map(|id| id as i64).collect(),
        replicate_on_last_tile_dim: copies > 1 && summands == 1,
        last_tile_dims,
        ..OpSharding::default()
    }
}

impl Lists {
    fn of(shardings: Vec<OpSharding>) -> Self {
        let bytes: Vec<Vec<u8>> = shardings.iter().map(Message::encode_to_vec).collect();
        Lists {
            starts: bytes.iter().map(|bytes| Out::list(bytes)).collect(),
            sizes: bytes.iter().map(Vec::len).collect(),
            _bytes: bytes,
        }
    }
}

impl Sharded {
    /// Of a program with parameters and results of these ranks. For one device, nothing is said of
    /// shardings.
    pub(crate) fn of(
        parameters: &[usize],
        results: &[usize],
        tilings: &Option<Tilings>,
        participants: usize,
    ) -> Self {
        let tilings = tilings.as_ref();
        let layouts = of_ranks(parameters.iter().chain(results).copied());
        let handles: Vec<Out<PJRT_Layouts_MemoryLayout>> = layouts.iter().map(Out::of).collect();
        let (argument_layouts, output_layouts) = handles.split_at(parameters.len());
        let lists = |tilings: Option<&Vec<Tiling>>, count: usize| match (tilings, participants) {
            (_, 1) => Lists::default(),
            (None, _) => Lists::of(vec![OpSharding::default(); count]),
            (Some(tilings), _) => Lists::of(tilings.iter().map(op_sharding).collect()),
        };
        Sharded {
            argument_layouts: argument_layouts.to_vec(),
            output_layouts: output_layouts.to_vec(),
            arguments: lists(tilings.map(|all| &all.arguments), parameters.len()),
            outputs: lists(tilings.map(|all| &all.results), results.len()),
            _layouts: layouts,
        }
    }
}

/// The extension, which lives as long as the process.
pub(super) fn extension() -> *mut PJRT_Extension_Base {
    static EXTENSION: OnceLock<Shared> = OnceLock::new();
    let extension = EXTENSION.get_or_init(|| {
        Shared(PJRT_Shardings_Extension {
            base: PJRT_Extension_Base {
                struct_size: size_of::<PJRT_Shardings_Extension>(),
                type_: PJRT_Extension_Type_Shardings,
                next: std::ptr::null_mut(),
            },
            PJRT_Shardings_PJRT_Executable_ParameterShardings: entry::<
                PJRT_Shardings_PJRT_Executable_ParameterShardings_Args,
            >,
            PJRT_Shardings_PJRT_Executable_OutputShardings: entry::<
                PJRT_Shardings_PJRT_Executable_OutputShardings_Args,
            >,
        })
    });
    // Nobody writes to what is lent as a constant, though C's type says that it may.
    std::ptr::from_ref(&extension.0).cast_mut().cast()
}

struct Shared(PJRT_Shardings_Extension);

// SAFETY: functions, and no pointers to anything else; nobody changes it.
unsafe impl Send for Shared {}
// SAFETY: as for `Send`.
unsafe impl Sync for Shared {}

impl Call for PJRT_Shardings_PJRT_Executable_ParameterShardings_Args {
    fn call(&mut self) -> Result<()> {
        let executable = self.executable;
        let lists = &executable.get("an executable")?.compiled.sharded.arguments;
        self.num_parameters = lists.sizes.len();
        (self.shardings, self.sharding_sizes) = lists.lend();
        Ok(())
    }
}

impl Call for PJRT_Shardings_PJRT_Executable_OutputShardings_Args {
    fn call(&mut self) -> Result<()> {
        let executable = self.executable;
        let lists = &executable.get("an executable")?.compiled.sharded.outputs;
        self.num_outputs = lists.sizes.len();
        (self.shardings, self.sharding_sizes) = lists.lend();
        Ok(())
    }
}

impl Lists {
    /// The lists; null if nothing is said.
    fn lend(&self) -> (Out<Out<u8>>, Out<usize>) {
        match self.sizes.is_empty() {
            true => (Out::null(), Out::null()),
            false => (Out::list(&self.starts), Out::list(&self.sizes)),
        }
    }
}
