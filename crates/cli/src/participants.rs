//! How many replicas and partitions a program runs as.

use std::num::NonZeroUsize;

use helio::{DeviceAssignment, Module};

/// How many replicas and partitions a program runs as.
#[derive(clap::Args)]
pub(crate) struct Participants {
    /// Run as N replicas, which exchange data in collective operations
    /// [default: as the program says, else 1].
    #[arg(long, value_name = "N")]
    replicas: Option<NonZeroUsize>,
    /// Run each replica as M partitions [default: as the program says, else 1].
    #[arg(long, value_name = "M")]
    partitions: Option<NonZeroUsize>,
}

impl Participants {
    /// A device for each of those that a module runs as. Errors: there are too many.
    pub(crate) fn assign(&self, module: &Module) -> helio::Result<DeviceAssignment> {
        let (replicas, partitions) = self.counts(module);
        DeviceAssignment::iota(replicas.unwrap_or(1), partitions)
    }

    /// How many replicas a module runs as, if it or the user says so, and how many partitions.
    pub(crate) fn counts(&self, module: &Module) -> (Option<usize>, usize) {
        let count = |asked: Option<NonZeroUsize>, stated: Option<usize>| {
            asked.map(NonZeroUsize::get).or(stated)
        };
        let config = &module.config;
        let partitions = count(self.partitions, config.num_partitions);
        (count(self.replicas, config.replica_count), partitions.unwrap_or(1))
    }
}
