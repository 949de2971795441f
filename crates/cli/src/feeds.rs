//! Infeed from files, and outfeed to files.

use std::path::{Path, PathBuf};

use helio::data::{Format, Tensor};
use helio::{DeviceAssignment, HostQueues, Literal, Module, Shape};

use crate::arguments::{Share, missing, take_literal};
use crate::failure::Failure;
use crate::files;

/// What participants of a run read from and write to the host.
#[derive(clap::Args)]
pub(crate) struct Feeds {
    /// Values for infeed, in order: arrays feed0, feed1, … (tuples flattened). Of several replicas or
    /// partitions, each gets its part of them, as of --inputs; or the option stands once for each.
    #[arg(long, value_name = "FILE")]
    infeed: Vec<PathBuf>,
    /// Save what outfeed writes as arrays feed0, feed1, … (tuples flattened), as --infeed reads them.
    /// Of several replicas or partitions, each writes its own file: the option stands once for each.
    #[arg(long, value_name = "FILE")]
    outfeed: Vec<PathBuf>,
}

impl Feeds {
    /// Fills the infeeds of the participants of this process. Nobody feeds them while the program runs: what they lack is an error, not a
    /// wait. Errors: the files are not as many as participants, or do not have what the infeeds read.
    pub(crate) fn fill(
        &self,
        queues: &HostQueues,
        module: &Module,
        assignment: &DeviceAssignment,
    ) -> Result<(), Failure> {
        let participants = assignment.participants();
        if !matches!(self.infeed.len(), 0 | 1) {
            ensure_one_each("infeed", &self.infeed, participants)?;
        }
        if !self.outfeed.is_empty() {
            ensure_one_each("outfeed", &self.outfeed, participants)?;
            self.outfeed.iter().try_for_each(|path| Format::of(path).map(drop))?;
        }
        for share in Share::each_here(assignment) {
            let who = assignment.participant(share.participant);
            let (path, share) = match &self.infeed[..] {
                [] => break,
                [one] => (one, share),
                own => (&own[share.participant], Share { participant: 0, participants: 1 }),
            };
            for value in values(path, module, share)? {
                let pushed = queues.infeed(who).push(value);
                pushed.map_err(|e| Failure::internal(e.to_string()))?;
            }
        }
        queues.close_inputs();
        Ok(())
    }

    /// What each participant of this process has written; saved if there are files for it. Errors: a file cannot be
    /// written.
    pub(crate) fn empty(
        &self,
        queues: &HostQueues,
        assignment: &DeviceAssignment,
    ) -> Result<Vec<Vec<Literal>>, Failure> {
        let written = assignment.here().map(|participant| {
            let queue = queues.outfeed(assignment.participant(participant));
            std::iter::from_fn(|| queue.try_pop()).collect::<Vec<_>>()
        });
        let written: Vec<Vec<Literal>> = written.collect();
        let paths = assignment.here().filter_map(|participant| self.outfeed.get(participant));
        for (path, values) in paths.zip(&written) {
            let arrays = values.iter().flat_map(Literal::leaves).filter_map(Literal::as_array);
            let named = arrays.enumerate();
            let tensors = named.map(|(i, array)| (format!("feed{i}"), Tensor::from_array(array)));
            helio::data::write(path, &tensors.collect())?;
        }
        Ok(written)
    }

    /// Whether what outfeed writes goes to files.
    pub(crate) fn are_saved(&self) -> bool {
        !self.outfeed.is_empty()
    }
}

fn ensure_one_each(option: &str, paths: &[PathBuf], participants: usize) -> Result<(), Failure> {
    if paths.len() == participants {
        return Ok(());
    }
    let (found, s) = (paths.len(), if paths.len() == 1 { "" } else { "s" });
    Err(Failure::bad_input(format!(
        "--{option}: {found} file{s} for {participants} participants: give one for each"
    )))
}

/// The values that a file has for a participant, of the shapes that the program's infeeds have in the
/// order of its text.
fn values(path: &Path, module: &Module, share: Share) -> Result<Vec<Literal>, Failure> {
    let tensors = files::read_arrays(path)?;
    let shapes = helio::infeed_shapes(module);
    let (mut next, mut values) = (0, Vec::new());
    let first = shapes.iter().flat_map(Shape::leaves).find_map(Shape::as_array);
    if let (Some(shape), false) = (first, tensors.contains_key("feed0")) {
        return Err(missing(&tensors, "feed0", shape).context(path.display()).into());
    }
    // Infeeds in loops read again and again: go round the shapes until the file is used up.
    while !shapes.is_empty() && tensors.contains_key(&format!("feed{next}")) {
        let shape = &shapes[values.len() % shapes.len()];
        let value = take_literal(&tensors, "feed", &mut next, shape, share);
        values.push(value.map_err(|e| e.context(path.display()))?);
    }
    Ok(values)
}
