//! The attributes of an instruction in text: how operations read and write theirs.
//!
//! The parser splits `, dimensions={0,1}, to_apply=add` into names and values as written; an
//! operation's [`OpDef::read`](crate::OpDef::read) takes those it knows through [`AttrReader`].
//! Names nobody took become an error there, so that a misspelt attribute is not lost.

use std::fmt::{Display, Write as _};
use std::str::Chars;

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

/// At most 60 characters of a value, for messages.
fn shorten(value: &str) -> String {
    match value.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
}

/// A cursor over an attribute's value. White space and comments are skipped.
#[derive(Clone, Debug)]
pub struct Scan<'a> {
    rest: &'a str,
}

impl<'a> Scan<'a> {
    /// At the beginning of `text`.
    pub fn new(text: &'a str) -> Self {
        Scan { rest: text }
    }

    /// What is left, from the next token on.
    pub fn rest(&mut self) -> &'a str {
        self.skip();
        self.rest
    }

    /// Everything that is left, from the next token on; passes it.
    pub fn remainder(&mut self) -> &'a str {
        self.skip();
        std::mem::take(&mut self.rest)
    }

    /// Passes all that is left, for whoever reads it in another way.
    pub fn take_rest(&mut self) -> &'a str {
        std::mem::take(&mut self.rest)
    }

    fn skip(&mut self) {
        loop {
            self.rest = self.rest.trim_start();
            if let Some(comment) = self.rest.strip_prefix("/*") {
                self.rest = comment.find("*/").map_or("", |end| &comment[end + 2..]);
            } else if let Some(comment) = self.rest.strip_prefix("//") {
                self.rest = comment.find(['\n', '\r']).map_or("", |end| &comment[end..]);
            } else {
                return;
            }
        }
    }

    /// Whether the next characters are `token`; if so, passes them.
    pub fn eat(&mut self, token: &str) -> bool {
        self.skip();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Passes `token`. Errors: something else comes.
    pub fn expect(&mut self, token: &str) -> Result<()> {
        if self.eat(token) { Ok(()) } else { Err(self.unexpected(&format!("`{token}`"))) }
    }

    /// Errors: something is left.
    pub fn end(&mut self) -> Result<()> {
        if self.rest().is_empty() { Ok(()) } else { Err(self.unexpected("the end of the value")) }
    }

    /// The error that something other than `wanted` comes next.
    pub fn unexpected(&mut self, wanted: &str) -> Error {
        let found = match self.rest() {
            "" => "the end".to_owned(),
            rest => format!("`{}`", shorten(rest)),
        };
        Error::invalid(format!("expected {wanted}, found {found}"))
    }

    /// The longest run of letters, digits and `_ - . % + < > : # @`; not empty.
    pub fn word(&mut self) -> Result<&'a str> {
        self.skip();
        let is_part = |c: char| c.is_alphanumeric() || "_-.%+<>:#@".contains(c);
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        if end == 0 {
            return Err(self.unexpected("a word"));
        }
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        Ok(word)
    }

    fn digits(&mut self) -> &'a str {
        self.skip();
        let signed = self.rest.strip_prefix('-').unwrap_or(self.rest);
        let sign = self.rest.len() - signed.len();
        let end = signed.find(|c: char| !c.is_ascii_digit()).unwrap_or(signed.len());
        let (digits, rest) = self.rest.split_at(sign + end);
        self.rest = rest;
        digits
    }

    /// An integer.
    pub fn int(&mut self) -> Result<i64> {
        let before = self.clone();
        self.digits().parse().map_err(|_| before.clone().unexpected("an integer"))
    }

    /// An integer that is not negative.
    pub fn size(&mut self) -> Result<usize> {
        let before = self.clone();
        self.digits().parse().map_err(|_| before.clone().unexpected("a non-negative integer"))
    }

    /// A string in quotes of either kind, without quotes and escapes (those of C).
    pub fn string(&mut self) -> Result<String> {
        let quote = match self.rest().chars().next() {
            Some(quote @ ('"' | '\'')) => quote,
            _ => return Err(self.unexpected("a string")),
        };
        let unclosed = || Error::invalid("a string without its closing quote");
        let mut bytes = Vec::new();
        let mut chars = self.rest[1..].chars();
        loop {
            match chars.next().ok_or_else(unclosed)? {
                c if c == quote => break,
                '\\' => {
                    let c = chars.next().ok_or_else(unclosed)?;
                    unescape(c, &mut chars, &mut bytes)?;
                }
                c => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        self.rest = chars.as_str();
        String::from_utf8(bytes).map_err(|_| Error::invalid("the string is not UTF-8"))
    }

    /// `open item, item close`, possibly empty.
    pub fn list<T>(
        &mut self,
        open: char,
        close: char,
        mut item: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let (open, close) = (open.to_string(), close.to_string());
        self.expect(&open)?;
        let mut items = Vec::new();
        if self.eat(&close) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.eat(&close) {
                return Ok(items);
            }
            self.expect(",")?;
        }
    }
}

/// Writes what a backslash and `c` stand for.
fn unescape(c: char, rest: &mut Chars<'_>, bytes: &mut Vec<u8>) -> Result<()> {
    // Digits go on as long as they may; a byte that does not fit 8 bits is wrong.
    let mut number = |first: &str, radix: u32, max: usize| {
        let digits = rest.as_str().chars().take_while(|c| c.is_digit(radix)).take(max).count();
        let text = format!("{first}{}", &rest.as_str()[..digits]);
        rest.by_ref().take(digits).for_each(drop);
        u32::from_str_radix(&text, radix)
            .map_err(|_| Error::invalid("an escape without its digits"))
    };
    let byte =
        |code: u32| u8::try_from(code).map_err(|_| Error::invalid("an escape of more than 8 bits"));
    match c {
        'n' => bytes.push(b'\n'),
        'r' => bytes.push(b'\r'),
        't' => bytes.push(b'\t'),
        'a' => bytes.push(7),
        'b' => bytes.push(8),
        'v' => bytes.push(11),
        'f' => bytes.push(12),
        '0'..='7' => bytes.push(byte(number(&c.to_string(), 8, 2)?)?),
        'x' | 'X' => bytes.push(byte(number("", 16, usize::MAX)?)?),
        'u' | 'U' => {
            let code = number("", 16, if c == 'u' { 4 } else { 8 })?;
            let c = char::from_u32(code).ok_or_else(|| Error::invalid("no such character"))?;
            bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
        c => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
    }
    Ok(())
}

/// `text` in quotes, with escapes.
pub fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            control if control.is_ascii_control() => {
                let _ = write!(quoted, "\\{:03o}", control as u32); // cannot fail
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings() {
        let unquote = |text: &str| Scan::new(text).string();
        for text in ["", "a\"b\\c", "\n\t\r\0\u{7}1", "é'\u{1f600}"] {
            assert_eq!(unquote(&quote(text)).unwrap(), text);
        }
        assert_eq!(unquote(r#"'\a\x41\101\u00e9\"'"#).unwrap(), "\u{7}AAé\"");
        for text in ["a", "\"", "\"\\", "'\"", r#""\xg""#, r#""\777""#, r#""\ud800""#, r#""\xff""#]
        {
            assert!(unquote(text).is_err(), "{text}");
        }
    }
}
