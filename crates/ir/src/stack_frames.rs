//! The tables of source places that a framework writes after a module's first line.

/// Files, functions, places in them, and calls, which [`Metadata::stack_frame`] refers to. Entries
/// refer to each other by number, from 1.
///
/// [`Metadata::stack_frame`]: crate::Metadata::stack_frame
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackFrames {
    /// The names of source files.
    pub files: Vec<String>,
    /// The names of functions.
    pub functions: Vec<String>,
    /// Places in files.
    pub locations: Vec<FileLocation>,
    /// Calls.
    pub frames: Vec<StackFrame>,
}

/// A range of a source file. Lines and columns are the framework's: JAX counts lines from 1 and
/// columns from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileLocation {
    /// The file, by number from 1.
    pub file: u32,
    /// The function, by number from 1.
    pub function: u32,
    /// The first line.
    pub line: u32,
    /// The last line.
    pub end_line: u32,
    /// The first column.
    pub column: u32,
    /// The column after the last.
    pub end_column: u32,
}

/// A call in progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackFrame {
    /// Where it is, by number from 1.
    pub location: u32,
    /// The call that it was made from, by number from 1; `None` for the outermost.
    pub parent: Option<u32>,
}

/// A call in progress, with names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The source file.
    pub file: &'a str,
    /// The function.
    pub function: &'a str,
    /// Where in the file.
    pub location: FileLocation,
}

impl StackFrames {
    /// The calls in progress at a frame, the innermost first. What refers to entries that are not
    /// there ends the list; a parent stands before its child, so it has an end.
    pub fn calls(&self, frame: u32) -> impl Iterator<Item = Frame<'_>> {
        let mut next = Some(frame);
        std::iter::from_fn(move || {
            let id = next?;
            let frame = entry(&self.frames, id)?;
            next = frame.parent.filter(|&parent| parent < id);
            let location = *entry(&self.locations, frame.location)?;
            Some(Frame {
                file: entry(&self.files, location.file)?,
                function: entry(&self.functions, location.function)?,
                location,
            })
        })
    }
}

/// The entry of this number, from 1.
fn entry<T>(table: &[T], number: u32) -> Option<&T> {
    table.get((number as usize).checked_sub(1)?)
}
