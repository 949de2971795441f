//! Where instructions come from, as locations.

use helio_ir::{Instr, Metadata, Result};

use super::Raising;
use crate::mlir::{LocId, Location};

/// What has a location of its own: a name of the framework's over a place, a place in a file, or a
/// call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Name(String, LocId),
    File(String, u32, u32),
    Frame(u32),
}

/// How many calls of a place are written.
const MAX_FRAMES: usize = 64;

impl Raising<'_> {
    /// The location of an instruction; unknown if nothing is said of it.
    pub(super) fn location(&mut self, instr: &Instr) -> Result<LocId> {
        let Some(metadata) = instr.metadata().cloned() else { return Ok(LocId::UNKNOWN) };
        let place = self.place(&metadata)?;
        match &metadata.op_name {
            Some(name) => {
                let location = Location::Name { name: name.clone(), child: place };
                self.known(Key::Name(name.clone(), place), location)
            }
            None => Ok(place),
        }
    }

    fn place(&mut self, metadata: &Metadata) -> Result<LocId> {
        if let Some(frame) = metadata.stack_frame
            && let Some(place) = self.frame(frame, 0)?
        {
            return Ok(place);
        }
        let Some(file) = &metadata.source_file else { return Ok(LocId::UNKNOWN) };
        let line = metadata.source_line.and_then(|line| u32::try_from(line).ok()).unwrap_or(0);
        self.file(file, line, 0)
    }

    fn file(&mut self, file: &str, line: u32, column: u32) -> Result<LocId> {
        let location = Location::File { file: file.to_owned(), line, column, end: None };
        self.known(Key::File(file.to_owned(), line, column), location)
    }

    /// The place of a frame, and of the calls that led there; `None` if it is not in the tables.
    fn frame(&mut self, number: u32, depth: usize) -> Result<Option<LocId>> {
        if let Some(&known) = self.sources.get(&Key::Frame(number)) {
            return Ok(Some(known));
        }
        let Some(frames) = self.hlo.config.stack_frames.clone() else { return Ok(None) };
        let entry = |number: u32| (number as usize).checked_sub(1);
        let Some(frame) = entry(number).and_then(|i| frames.frames.get(i)) else {
            return Ok(None);
        };
        let Some(at) = entry(frame.location).and_then(|i| frames.locations.get(i)) else {
            return Ok(None);
        };
        let text = |list: &[String], number| entry(number).and_then(|i| list.get(i).cloned());
        let file = text(&frames.files, at.file).unwrap_or_default();
        let mut place = self.file(&file, at.line, at.column)?;
        if let Some(name) = text(&frames.functions, at.function).filter(|name| !name.is_empty()) {
            let location = Location::Name { name: name.clone(), child: place };
            place = self.known(Key::Name(name, place), location)?;
        }
        let parent = frame.parent.filter(|_| depth < MAX_FRAMES);
        if let Some(parent) = parent
            && let Some(caller) = self.frame(parent, depth + 1)?
        {
            place = self.output.add_location(Location::CallSite { callee: place, caller })?;
        }
        self.sources.insert(Key::Frame(number), place);
        Ok(Some(place))
    }

    fn known(&mut self, key: Key, location: Location) -> Result<LocId> {
        if let Some(&known) = self.sources.get(&key) {
            return Ok(known);
        }
        let id = self.output.add_location(location)?;
        self.sources.insert(key, id);
        Ok(id)
    }
}
