//! The attributes of an instruction in text: how operations read and write theirs.
//!
//! The parser splits `, dimensions={0,1}, to_apply=add` into names and values as written; an
//! operation's [`OpDef::read`](crate::OpDef::read) takes those it knows through [`AttrReader`].
//! Names nobody took become an error there, so that a misspelt attribute is not lost.

use std::fmt::{Display, Write as _};

pub(crate) use super::scan::is_balanced;
use super::scan::shorten;
pub use super::scan::{Scan, quote, quote_unless_braced};
use crate::{ArrayShape, CompId, Error, Location, Result, Shape};

/// One attribute: its name, its value as written, and where the value begins.
#[derive(Clone, Debug)]
pub struct Attr<'a> {
    /// The name before `=`.
    pub name: &'a str,
    /// The value, a single word, string, or anything in balanced brackets.
    pub value: &'a str,
    /// Where it stands.
    pub at: Location,
    /// Whether an operation has taken it.
    pub taken: bool,
}

/// The attributes of one instruction, for [`OpDef::read`](crate::OpDef::read).
pub struct AttrReader<'a> {
    /// The operation's name in the text.
    pub opcode: &'a str,
    /// The shapes of the operands.
    pub operands: &'a [&'a Shape],
    /// The shape before the opcode.
    pub result: &'a Shape,
    /// The attributes.
    pub attrs: Vec<Attr<'a>>,
    /// Finds a computation by its name (without sigil).
    pub find_computation: &'a dyn Fn(&str) -> Option<CompId>,
}

impl<'a> AttrReader<'a> {
    /// The value as written, if the attribute is there.
    pub fn take(&mut self, name: &str) -> Option<&'a str> {
        self.take_attr(name).map(|(value, _)| value)
    }

    fn take_attr(&mut self, name: &str) -> Option<(&'a str, Location)> {
        let attr = self.attrs.iter_mut().find(|attr| attr.name == name)?;
        attr.taken = true;
        Some((attr.value, attr.at.clone()))
    }

    /// Reads the value with `read`, which must use all of it.
    pub fn parse<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&mut Scan<'a>) -> Result<T>,
    ) -> Result<Option<T>> {
        let Some((value, at)) = self.take_attr(name) else { return Ok(None) };
        let mut scan = Scan::new(value);
        read(&mut scan).and_then(|parsed| scan.end().map(|()| Some(parsed))).map_err(|e| {
            e.context(format_args!("attribute {name}={}", shorten(value))).at(Some(at))
        })
    }

    /// The error for an attribute that must be there.
    pub fn missing(&self, name: &str) -> Error {
        Error::invalid(format!("{} needs the attribute `{name}`", self.opcode))
    }

    /// The value, or the error that it is missing.
    pub fn require<T>(&self, name: &str, value: Option<T>) -> Result<T> {
        value.ok_or_else(|| self.missing(name))
    }

    /// The value that `read` finds (`attrs.needed("dimensions", AttrReader::sizes)`), or the error
    /// that the attribute is missing.
    pub fn needed<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&mut Self, &str) -> Result<Option<T>>,
    ) -> Result<T> {
        let value = read(self, name)?;
        self.require(name, value)
    }

    /// The shape before the opcode, without layout. Errors: it is not an array.
    pub fn result_array(&self) -> Result<ArrayShape> {
        let array = self.result.as_array().cloned().map(ArrayShape::without_layout);
        array.ok_or_else(|| {
            let detail = format!("the result must be an array, is {}", self.result);
            Error::invalid(detail)
        })
    }

    /// The first element of the tuple before the opcode, without layout. Errors: there is none.
    pub fn result_element(&self) -> Result<Shape> {
        let first = self.result.as_tuple().and_then(|elements| elements.first());
        first.map(Shape::without_layout).ok_or_else(|| {
            let detail =
                format!("the result must be a tuple that is not empty, is {}", self.result);
            Error::invalid(detail)
        })
    }

    /// `name={3}`.
    pub fn one_size(&mut self, name: &str) -> Result<Option<usize>> {
        self.parse(name, |scan| {
            scan.expect("{")?;
            let size = scan.size()?;
            scan.expect("}")?;
            Ok(size)
        })
    }

    /// `name=true`.
    pub fn flag(&mut self, name: &str) -> Result<Option<bool>> {
        self.parse(name, |scan| match scan.word()? {
            "true" => Ok(true),
            "false" => Ok(false),
            other => Err(Error::invalid(format!("`{other}` is neither true nor false"))),
        })
    }

    /// `name=-3`.
    pub fn int(&mut self, name: &str) -> Result<Option<i64>> {
        self.parse(name, Scan::int)
    }

    /// `name=3`.
    pub fn size(&mut self, name: &str) -> Result<Option<usize>> {
        self.parse(name, Scan::size)
    }

    /// `name=0.001`.
    pub fn float(&mut self, name: &str) -> Result<Option<f64>> {
        self.parse(name, |scan| {
            let word = scan.word()?;
            word.parse().map_err(|_| Error::invalid(format!("`{word}` is not a number")))
        })
    }

    /// `name=word`; the word is returned as written.
    pub fn word(&mut self, name: &str) -> Result<Option<&'a str>> {
        self.parse(name, Scan::word)
    }

    /// `name="text"`, without quotes and escapes.
    pub fn string(&mut self, name: &str) -> Result<Option<String>> {
        self.parse(name, Scan::string)
    }

    /// `name={0,1}`.
    pub fn sizes(&mut self, name: &str) -> Result<Option<Vec<usize>>> {
        self.parse(name, |scan| scan.list('{', '}', Scan::size))
    }

    /// `name={0,-1}`.
    pub fn ints(&mut self, name: &str) -> Result<Option<Vec<i64>>> {
        self.parse(name, |scan| scan.list('{', '}', Scan::int))
    }

    /// `name={{0,1},{2}}`.
    pub fn size_lists(&mut self, name: &str) -> Result<Option<Vec<Vec<usize>>>> {
        self.parse(name, |scan| scan.list('{', '}', |scan| scan.list('{', '}', Scan::size)))
    }

    /// `name={word, word}`.
    pub fn words(&mut self, name: &str) -> Result<Option<Vec<&'a str>>> {
        self.parse(name, |scan| scan.list('{', '}', Scan::word))
    }

    /// `name=%computation`.
    pub fn computation(&mut self, name: &str) -> Result<Option<CompId>> {
        let find = self.find_computation;
        self.parse(name, |scan| computation(scan, find))
    }

    /// `name={%computation, %computation}`.
    pub fn computations(&mut self, name: &str) -> Result<Option<Vec<CompId>>> {
        let find = self.find_computation;
        self.parse(name, |scan| scan.list('{', '}', |scan| computation(scan, find)))
    }
}

fn computation(scan: &mut Scan<'_>, find: &dyn Fn(&str) -> Option<CompId>) -> Result<CompId> {
    let name = scan.word()?;
    let name = name.strip_prefix('%').unwrap_or(name);
    find(name).ok_or_else(|| {
        let detail = format!("no computation `{name}` stands before this instruction");
        Error::rule("module.C3", detail)
    })
}

/// The attributes of one instruction as text, for [`OpDef::write`](crate::OpDef::write).
pub struct AttrWriter<'a> {
    text: String,
    computation_name: &'a dyn Fn(CompId) -> String,
    /// The shape of the result.
    pub result: &'a Shape,
    /// The shapes of the operands.
    pub operands: &'a [&'a Shape],
}

impl<'a> AttrWriter<'a> {
    /// No attributes yet; `computation_name` gives the name to print, with its sigil if any.
    pub fn new(
        computation_name: &'a dyn Fn(CompId) -> String,
        result: &'a Shape,
        operands: &'a [&'a Shape],
    ) -> Self {
        AttrWriter { text: String::new(), computation_name, result, operands }
    }

    /// `, name=value`.
    pub fn put(&mut self, name: &str, value: impl Display) {
        let _ = write!(self.text, ", {name}={value}"); // writing to a String cannot fail
    }

    /// `, name=true`, if so.
    pub fn flag(&mut self, name: &str, value: bool) {
        if value {
            self.put(name, "true");
        }
    }

    /// `, name={0,1}`.
    pub fn list<T: Display>(&mut self, name: &str, values: &[T]) {
        self.put(name, braced(values));
    }

    /// `, name={3}`.
    pub fn one_size(&mut self, name: &str, size: usize) {
        self.list(name, &[size]);
    }

    /// `, name={0,1}`, unless there are none.
    pub fn list_unless_empty<T: Display>(&mut self, name: &str, values: &[T]) {
        if !values.is_empty() {
            self.list(name, values);
        }
    }

    /// `, name="text"`.
    pub fn string(&mut self, name: &str, text: &str) {
        self.put(name, quote(text));
    }

    /// `, name=%computation`.
    pub fn computation(&mut self, name: &str, id: CompId) {
        self.put(name, (self.computation_name)(id));
    }

    /// `, name={%computation, %computation}`.
    pub fn computations(&mut self, name: &str, ids: &[CompId]) {
        let names: Vec<_> = ids.iter().map(|&id| (self.computation_name)(id)).collect();
        self.put(name, format_args!("{{{}}}", names.join(", ")));
    }

    /// All of it.
    pub fn finish(self) -> String {
        self.text
    }
}

/// `{0,1}`
pub fn braced<T: Display>(values: &[T]) -> String {
    let values: Vec<_> = values.iter().map(T::to_string).collect();
    format!("{{{}}}", values.join(","))
}
