//! The topology: the devices of a client as descriptions. All are virtual, in one process.
#![allow(non_camel_case_types)]

use helio::{Error, Result};

use crate::abi::*;
use crate::client::{PJRT_DeviceDescription, PLATFORM_NAME, platform_version};
use crate::raw::{Call, Out, give_bytes};

/// The devices of a client.
pub struct PJRT_TopologyDescription {
    pub(crate) descriptions: Vec<Out<PJRT_DeviceDescription>>,
}

impl Call for PJRT_Client_TopologyDescription_Args {
    fn call(&mut self) -> Result<()> {
        let client = self.client;
        self.topology = Out::of(&client.get("a client")?.shared.topology);
        Ok(())
    }
}

impl Call for PJRT_TopologyDescription_PlatformName_Args {
    fn call(&mut self) -> Result<()> {
        (self.platform_name, self.platform_name_size) = Out::text(PLATFORM_NAME);
        Ok(())
    }
}

impl Call for PJRT_TopologyDescription_PlatformVersion_Args {
    fn call(&mut self) -> Result<()> {
        (self.platform_version, self.platform_version_size) = Out::text(platform_version());
        Ok(())
    }
}

impl Call for PJRT_TopologyDescription_GetDeviceDescriptions_Args {
    fn call(&mut self) -> Result<()> {
        let topology = self.topology;
        let descriptions = &topology.get("a topology")?.descriptions;
        (self.descriptions, self.num_descriptions) = (Out::list(descriptions), descriptions.len());
        Ok(())
    }
}

impl Call for PJRT_TopologyDescription_Attributes_Args {
    fn call(&mut self) -> Result<()> {
        (self.attributes, self.num_attributes) = (Out::null(), 0);
        Ok(())
    }
}

impl Call for PJRT_TopologyDescription_Serialize_Args {
    fn call(&mut self) -> Result<()> {
        let topology = self.topology;
        let text = text(topology.get("a topology")?.descriptions.len());
        (
            self.serialized_bytes,
            self.serialized_bytes_size,
            self.serialized_topology,
            self.serialized_topology_deleter,
        ) = give_bytes(text.into_bytes());
        Ok(())
    }
}

impl Call for PJRT_TopologyDescription_Fingerprint_Args {
    fn call(&mut self) -> Result<()> {
        let topology = self.topology;
        let text = text(topology.get("a topology")?.descriptions.len());
        self.fingerprint = crate::executable::hash(&[text.as_bytes()]);
        Ok(())
    }
}

impl Call for PJRT_TopologyDescription_Destroy_Args {
    fn call(&mut self) -> Result<()> {
        // The one topology of a client is the client's, and no function makes another.
        Err(Error::invalid("a client's topology ends with the client"))
    }
}

fn text(devices: usize) -> String {
    format!("{PLATFORM_NAME} {devices}")
}
