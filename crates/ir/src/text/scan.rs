//! Words, numbers, strings and lists in the value of an attribute.

use std::fmt::Write as _;
use std::str::Chars;

use crate::{Error, Result};

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
        let is_part = |c: char| {
            let is_sign = matches!(c, '_' | '-' | '.' | '%' | '+' | '<' | '>' | ':' | '#' | '@');
            is_sign || c.is_alphanumeric()
        };
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
        let (mut begin, mut end) = ([0; 4], [0; 4]);
        let (open, close) = (open.encode_utf8(&mut begin), close.encode_utf8(&mut end));
        self.expect(open)?;
        let mut items = Vec::new();
        if self.eat(close) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.eat(close) {
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

/// A value as text has it: balanced braces as they are, all else in quotes.
pub fn quote_unless_braced(text: &str) -> String {
    if text.starts_with('{') && is_balanced(text) { text.to_owned() } else { quote(text) }
}

/// Whether each bracket is closed, and the last one ends the text, which has no comments.
pub(crate) fn is_balanced(text: &str) -> bool {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    let (mut ended, mut before) = (false, ' ');
    for c in text.chars() {
        if ended {
            return false;
        }
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            // A comment, which hides what closes a bracket.
            '/' | '*' if before == '/' => return false,
            '{' | '[' => depth += 1,
            '}' | ']' if depth == 0 => return false,
            '}' | ']' => {
                depth -= 1;
                ended = depth == 0;
            }
            _ => {}
        }
        before = c;
    }
    ended
}

/// At most 60 characters of a value, for messages.
pub(super) fn shorten(value: &str) -> String {
    match value.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_stay_as_they_are() {
        assert_eq!(quote_unless_braced(r#"{"a":"}"}"#), r#"{"a":"}"}"#);
        assert_eq!(quote_unless_braced("{a"), r#""{a""#);
        assert_eq!(quote_unless_braced("{a}}"), r#""{a}}""#);
        assert_eq!(quote_unless_braced("x\"y"), r#""x\"y""#);
        assert_eq!(quote_unless_braced("{// }"), r#""{// }""#);
        assert_eq!(quote_unless_braced(r#"{"http://a/*"}"#), r#"{"http://a/*"}"#);
    }

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
