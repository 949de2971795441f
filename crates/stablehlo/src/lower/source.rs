//! Locations as HLO's metadata and tables of source ranges.

use std::collections::HashMap;
use std::sync::Arc;

use helio_ir::Metadata;
use helio_ir::stack_frames::{FileLocation, StackFrame, StackFrames};

use crate::mlir::{LocId, Location, Module};

/// How many calls of a location are followed, and how many names of one source range.
const MAX_DEPTH: usize = 64;

/// The tables so far, and where what is in them already stands, by number from 1.
#[derive(Default)]
pub(super) struct Sources {
    pub frames: StackFrames,
    files: HashMap<String, u32>,
    functions: HashMap<String, u32>,
    locations: HashMap<(u32, u32, u32, u32, u32, u32), u32>,
    known_frames: HashMap<(u32, Option<u32>), u32>,
    known: HashMap<LocId, Option<Arc<Metadata>>>,
}

/// A stretch of a source file, and the function that it is in.
struct SourceRange<'m> {
    function: &'m str,
    file: &'m str,
    start: (u32, u32),
    end: (u32, u32),
}

impl Sources {
    /// What HLO keeps of a location: the framework's name of the operation, file, line, and calls.
    pub fn metadata(&mut self, module: &Module, location: LocId) -> Option<Arc<Metadata>> {
        if let Some(known) = self.known.get(&location) {
            return known.clone();
        }
        let found = self.find(module, location).map(Arc::new);
        self.known.insert(location, found.clone());
        found
    }

    fn find(&mut self, module: &Module, location: LocId) -> Option<Metadata> {
        let (mut op_name, mut at) = (None, location);
        // The outermost name is the operation's; those of the calls are functions'.
        if let Some(Location::Name { name, child }) = get(module, at)
            && !name.is_empty()
        {
            (op_name, at) = (Some(name.clone()), *child);
        }
        let ranges = ranges(module, at);
        let innermost = ranges.first();
        let mut metadata = Metadata { op_name, ..Metadata::default() };
        if let Some(range) = innermost {
            metadata.source_file = Some(range.file.to_owned());
            metadata.source_line = Some(i64::from(range.start.0));
        }
        let mut parent = None;
        for range in ranges.iter().rev() {
            parent = Some(self.frame(range, parent));
        }
        metadata.stack_frame = parent;
        (metadata != Metadata::default()).then_some(metadata)
    }

    fn frame(&mut self, range: &SourceRange<'_>, parent: Option<u32>) -> u32 {
        let file = intern(&mut self.files, &mut self.frames.files, range.file);
        let function = intern(&mut self.functions, &mut self.frames.functions, range.function);
        let ((line, column), (end_line, end_column)) = (range.start, range.end);
        let key = (file, function, line, column, end_line, end_column);
        let location = *self.locations.entry(key).or_insert_with(|| {
            let location = FileLocation { file, function, line, end_line, column, end_column };
            push(&mut self.frames.locations, location)
        });
        let frames = &mut self.frames.frames;
        let frame = StackFrame { location, parent };
        *self.known_frames.entry((location, parent)).or_insert_with(|| push(frames, frame))
    }
}

/// Appends an entry; its number, from 1.
fn push<T>(table: &mut Vec<T>, entry: T) -> u32 {
    table.push(entry);
    table.len() as u32
}

fn intern(known: &mut HashMap<String, u32>, table: &mut Vec<String>, name: &str) -> u32 {
    if let Some(&number) = known.get(name) {
        return number;
    }
    let number = push(table, name.to_owned());
    known.insert(name.to_owned(), number);
    number
}

fn get(module: &Module, location: LocId) -> Option<&Location> {
    module.locations.get(location.0 as usize)
}

/// The places of the calls in progress, the innermost first.
fn ranges(module: &Module, location: LocId) -> Vec<SourceRange<'_>> {
    let (mut at, mut found) = (location, Vec::new());
    for _ in 0..MAX_DEPTH {
        match get(module, at) {
            Some(Location::CallSite { callee, caller }) => {
                found.extend(range(module, *callee));
                at = *caller;
            }
            _ => {
                found.extend(range(module, at));
                break;
            }
        }
    }
    found
}

/// The file of a location, and the name that is nearest to it.
fn range(module: &Module, location: LocId) -> Option<SourceRange<'_>> {
    let (mut at, mut function) = (location, "");
    for _ in 0..MAX_DEPTH {
        at = match get(module, at)? {
            Location::File { file, line, column, end } => {
                let start = (*line, *column);
                return Some(SourceRange { function, file, start, end: end.unwrap_or(start) });
            }
            Location::Name { name, child } => {
                function = name;
                *child
            }
            Location::CallSite { callee, .. } => *callee,
            Location::Fused { locations, .. } => *locations.first()?,
            Location::Unknown => return None,
        };
    }
    None
}

/// File and line of the innermost place of a location, if it has any.
pub(super) fn innermost(module: &Module, location: LocId) -> Option<String> {
    range(module, location).map(|range| format!("{}:{}", range.file, range.start.0))
}
