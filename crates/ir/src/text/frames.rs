//! The tables of source places after the first line, each begun by its word:
//!
//! ```text
//! FileNames
//! 1 "model.py"
//! FunctionNames
//! 1 "attention"
//! FileLocations
//! 1 {file_name_id=1 function_name_id=1 line=5 end_line=5 column=15 end_column=32}
//! StackFrames
//! 1 {file_location_id=1 parent_frame_id=1}
//! ```
//!
//! XLA writes a parent as one more than its number, so that 1 says that there is none.

use std::fmt::Write as _;

use super::attrs::{Scan, quote};
use super::extra::placed_pairs;
use super::lexer::Cursor;
use crate::stack_frames::{FileLocation, StackFrame, StackFrames};
use crate::{Error, Result};

/// The tables, if they are there: all four, in this order.
pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Option<StackFrames>> {
    if cursor.peek_word() != Some("FileNames") {
        return Ok(None);
    }
    let files = table(cursor, "FileNames", string)?;
    let functions = table(cursor, "FunctionNames", string)?;
    let locations = table(cursor, "FileLocations", location)?;
    let frames = table(cursor, "StackFrames", frame)?;
    Ok(Some(StackFrames { files, functions, locations, frames }))
}

/// A table's word and its entries, which are numbered from 1.
fn table<T>(
    cursor: &mut Cursor<'_>,
    word: &str,
    mut entry: impl FnMut(&mut Cursor<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    if !cursor.eat_word(word) {
        return Err(cursor.unexpected(&format!("`{word}`")));
    }
    let mut entries = Vec::new();
    while cursor.peek().is_some_and(|byte| byte.is_ascii_digit()) {
        let mut at = *cursor;
        let (found, required) = (cursor.size()?, entries.len() + 1);
        if found != required {
            return Err(at.error(format!("entry {found} of {word} where {required} is due")));
        }
        entries.push(entry(cursor)?);
    }
    Ok(entries)
}

fn string(cursor: &mut Cursor<'_>) -> Result<String> {
    let at = cursor.location();
    Scan::new(cursor.quoted()?).string().map_err(|e| e.at(Some(at)))
}

fn location(cursor: &mut Cursor<'_>) -> Result<FileLocation> {
    const NAMES: [&str; 6] =
        ["file_name_id", "function_name_id", "line", "end_line", "column", "end_column"];
    let [file, function, line, end_line, column, end_column] = numbers(cursor, NAMES)?;
    Ok(FileLocation { file, function, line, end_line, column, end_column })
}

fn frame(cursor: &mut Cursor<'_>) -> Result<StackFrame> {
    let [location, parent] = numbers(cursor, ["file_location_id", "parent_frame_id"])?;
    Ok(StackFrame { location, parent: (parent > 1).then(|| parent - 1) })
}

/// `{name=3 name=4}`: the numbers of these names, 0 for those that are not there.
fn numbers<const N: usize>(cursor: &mut Cursor<'_>, names: [&str; N]) -> Result<[u32; N]> {
    let mut at = *cursor;
    let mut numbers = [0; N];
    for (name, value, value_at) in placed_pairs(cursor)? {
        let Some(place) = names.iter().position(|known| *known == name) else {
            return Err(at.error(format!("unknown attribute `{name}` of a source place")));
        };
        numbers[place] = number(value).map_err(|e| e.context(name).at(Some(value_at)))?;
    }
    Ok(numbers)
}

/// The number of an entry, a line or a column.
pub(super) fn number(value: &str) -> Result<u32> {
    let mut scan = Scan::new(value);
    let number = scan.size()?;
    scan.end()?;
    u32::try_from(number).map_err(|_| Error::invalid(format!("{number} is more than 2^32 - 1")))
}

/// The tables, each begun by an empty line.
pub(super) fn write(tables: &StackFrames, out: &mut String) {
    let StackFrames { files, functions, locations, frames } = tables;
    let names = |names: &[String]| names.iter().map(|name| quote(name)).collect();
    let location = |location: &FileLocation| {
        let FileLocation { file, function, line, end_line, column, end_column } = location;
        format!(
            "{{file_name_id={file} function_name_id={function} line={line} end_line={end_line} \
             column={column} end_column={end_column}}}"
        )
    };
    let frame = |frame: &StackFrame| {
        let parent = frame.parent.map_or(1, |parent| parent.saturating_add(1));
        format!("{{file_location_id={} parent_frame_id={parent}}}", frame.location)
    };
    let tables: [(&str, Vec<String>); 4] = [
        ("FileNames", names(files)),
        ("FunctionNames", names(functions)),
        ("FileLocations", locations.iter().map(location).collect()),
        ("StackFrames", frames.iter().map(frame).collect()),
    ];
    for (word, entries) in tables {
        let _ = writeln!(out, "\n{word}"); // writing to a String cannot fail
        for (i, entry) in entries.iter().enumerate() {
            let _ = writeln!(out, "{} {entry}", i + 1); // writing to a String cannot fail
        }
    }
}
