//! The extension for layouts: all arrays are dense and row-major.
#![allow(non_camel_case_types)]

use std::mem::size_of;
use std::sync::OnceLock;

use helio::{Error, Result};

use super::shardings;
use crate::abi::*;
use crate::raw::{Call, Out, entry, give_bytes};

/// The most dimensions of an array whose layout can be asked for.
const MAX_RANK: usize = 1024;

/// A layout: that of arrays of some rank.
#[derive(Debug)]
pub struct PJRT_Layouts_MemoryLayout {
    rank: usize,
}

/// The dimensions of row-major arrays of a rank, the fastest-varying first. Errors: more dimensions than
/// any array has.
pub(crate) fn row_major(rank: usize) -> Result<&'static [i64]> {
    static DIMENSIONS: OnceLock<Vec<i64>> = OnceLock::new();
    let all = DIMENSIONS.get_or_init(|| (0..MAX_RANK as i64).rev().collect());
    let from = all.len().checked_sub(rank);
    let from = from.ok_or_else(|| Error::exhausted(format!("an array of {rank} dimensions")))?;
    Ok(&all[from..])
}

/// The extension, which lives as long as the process.
pub(super) fn extension() -> &'static PJRT_Layouts_Extension {
    static EXTENSION: OnceLock<Shared> = OnceLock::new();
    let extension = EXTENSION.get_or_init(|| {
        Shared(PJRT_Layouts_Extension {
            base: PJRT_Extension_Base {
                struct_size: size_of::<PJRT_Layouts_Extension>(),
                type_: PJRT_Extension_Type_Layouts,
                next: shardings::extension(),
            },
            PJRT_Layouts_MemoryLayout_Destroy: entry::<PJRT_Layouts_MemoryLayout_Destroy_Args>,
            PJRT_Layouts_MemoryLayout_Serialize: entry::<PJRT_Layouts_MemoryLayout_Serialize_Args>,
            PJRT_Layouts_PJRT_Client_GetDefaultLayout: entry::<
                PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args,
            >,
            PJRT_Layouts_PJRT_Buffer_MemoryLayout: entry::<
                PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args,
            >,
            PJRT_Layouts_PJRT_Topology_GetDefaultLayout: entry::<
                PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args,
            >,
            PJRT_Layouts_PJRT_Executable_GetOutputLayouts: entry::<
                PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args,
            >,
            PJRT_Layouts_PJRT_Executable_GetParameterLayouts: entry::<
                PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args,
            >,
        })
    });
    &extension.0
}

struct Shared(PJRT_Layouts_Extension);

// SAFETY: functions, and a pointer to an extension that lives as long as the process; nobody changes it.
unsafe impl Send for Shared {}
// SAFETY: as for `Send`.
unsafe impl Sync for Shared {}

impl Call for PJRT_Layouts_MemoryLayout_Destroy_Args {
    fn call(&mut self) -> Result<()> {
        // SAFETY: layouts are given as boxes, and the caller gives this one up.
        drop(unsafe { self.layout.take() });
        Ok(())
    }
}

impl Call for PJRT_Layouts_MemoryLayout_Serialize_Args {
    fn call(&mut self) -> Result<()> {
        let layout = self.layout;
        let order = row_major(layout.get("a layout")?.rank)?;
        let order: Vec<String> = order.iter().map(i64::to_string).collect();
        (
            self.serialized_bytes,
            self.serialized_bytes_size,
            self.serialized_layout,
            self.serialized_layout_deleter,
        ) = give_bytes(format!("{{{}}}", order.join(",")).into_bytes());
        Ok(())
    }
}

impl Call for PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args {
    fn call(&mut self) -> Result<()> {
        self.layout = Out::give(PJRT_Layouts_MemoryLayout { rank: self.num_dims });
        Ok(())
    }
}

impl Call for PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args {
    fn call(&mut self) -> Result<()> {
        self.layout = Out::give(PJRT_Layouts_MemoryLayout { rank: self.num_dims });
        Ok(())
    }
}

impl Call for PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args {
    fn call(&mut self) -> Result<()> {
        let buffer = self.buffer;
        let rank = buffer.get("a buffer")?.buffer.shape().dims().len();
        self.layout = Out::give(PJRT_Layouts_MemoryLayout { rank });
        Ok(())
    }
}

impl Call for PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args {
    fn call(&mut self) -> Result<()> {
        let executable = self.executable;
        let layouts = &executable.get("an executable")?.compiled.sharded.output_layouts;
        (self.layouts, self.num_outputs) = (Out::list(layouts), layouts.len());
        Ok(())
    }
}

impl Call for PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args {
    fn call(&mut self) -> Result<()> {
        let executable = self.executable;
        let layouts = &executable.get("an executable")?.compiled.sharded.argument_layouts;
        (self.layouts, self.num_parameters) = (Out::list(layouts), layouts.len());
        Ok(())
    }
}

/// Layouts of arrays of these ranks.
pub(super) fn of_ranks(ranks: impl Iterator<Item = usize>) -> Vec<PJRT_Layouts_MemoryLayout> {
    ranks.map(|rank| PJRT_Layouts_MemoryLayout { rank }).collect()
}
