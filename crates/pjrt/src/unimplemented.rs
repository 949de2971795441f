//! Functions of the table that helio has no use for: each answers that it is not there.

use helio::{Error, Result};

use crate::abi::*;
use crate::raw::{Call, Layout};

macro_rules! unimplemented {
    ($($args:ident)*) => {
        $(impl Call for $args {
            fn call(&mut self) -> Result<()> {
                let name = Self::NAME.strip_suffix("_Args").unwrap_or(Self::NAME);
                Err(Error::unimplemented(format!("{name} is not implemented by helio")))
            }
        })*
    };
}

unimplemented! {
    // Streams and transfers in pieces: all arrays are in the host's memory already.
    PJRT_CopyToDeviceStream_Destroy_Args
    PJRT_CopyToDeviceStream_AddChunk_Args
    PJRT_CopyToDeviceStream_TotalBytes_Args
    PJRT_CopyToDeviceStream_GranuleSize_Args
    PJRT_CopyToDeviceStream_CurrentBytes_Args
    PJRT_Client_CreateBuffersForAsyncHostToDevice_Args
    PJRT_AsyncHostToDeviceTransferManager_Destroy_Args
    PJRT_AsyncHostToDeviceTransferManager_TransferData_Args
    PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args
    PJRT_AsyncHostToDeviceTransferManager_Device_Args
    PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args
    PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args
    PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args
    PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args
    PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args
    PJRT_Client_DmaMap_Args
    PJRT_Client_DmaUnmap_Args
    PJRT_Buffer_CopyRawToHostFuture_Args
    // Topologies without a client.
    PJRT_TopologyDescription_Create_Args
    PJRT_TopologyDescription_Deserialize_Args
    PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args
    PJRT_TopologyDescription_GetMemorySpaceKindIds_Args
    // What only transfers between processes ask for.
    PJRT_Client_CreateAliasBuffer_Args
    PJRT_Client_FulfillAliasBuffer_Args
    PJRT_Buffer_DonateWithControlDependency_Args
    PJRT_Buffer_Bitcast_Args
}
