//! The types behind the API's handles.

pub use crate::buffer::PJRT_Buffer;
pub use crate::client::{
    PJRT_Client, PJRT_Device, PJRT_Device_Attributes, PJRT_DeviceDescription, PJRT_Memory,
};
pub use crate::error::PJRT_Error;
pub use crate::event::PJRT_Event;
pub use crate::executable::{PJRT_Executable, PJRT_LoadedExecutable};
pub use crate::execute::PJRT_ExecuteContext;
pub use crate::extensions::layouts::PJRT_Layouts_MemoryLayout;
pub use crate::raw::PJRT_Bytes;
pub use crate::topology::PJRT_TopologyDescription;
