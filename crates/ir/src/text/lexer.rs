//! A cursor over HLO text: white space, comments, words, strings, balanced values, places.

use std::cell::Cell;

use smallvec::SmallVec;

use super::MAX_DEPTH;
use crate::{Error, Location, Result};

/// Where the lines of a text begin, to tell line and column of a position.
pub(crate) struct Lines<'a> {
    text: &'a str,
    starts: Vec<u32>,
    /// The characters before each block of [`BLOCK`] bytes; empty if all are ASCII. So a column
    /// costs one block to count, even if the whole text is one line.
    chars: Vec<u32>,
    /// The line that was found last: places are mostly asked for in order.
    last: Cell<usize>,
}

const BLOCK: usize = 256;

impl<'a> Lines<'a> {
    /// Errors: `ResourceExhausted` if positions do not fit 32 bits.
    pub(crate) fn new(text: &'a str) -> Result<Self> {
        if u32::try_from(text.len()).is_err() {
            let detail = format!("a text of {} bytes; at most 2^32 - 1", text.len());
            return Err(Error::exhausted(detail));
        }
        let ends = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        let starts = std::iter::once(0).chain(ends.map(|(i, _)| i as u32 + 1)).collect();
        let mut chars = Vec::new();
        if !text.is_ascii() {
            let mut before = 0;
            for block in text.as_bytes().chunks(BLOCK) {
                chars.push(before);
                before += count_chars(block);
            }
        }
        Ok(Lines { text, starts, chars, last: Cell::new(0) })
    }

    pub(crate) fn location(&self, pos: usize) -> Location {
        let line = self.line(pos);
        let start = self.starts[line] as usize;
        let column = self.chars_before(pos) - self.chars_before(start) + 1;
        Location::Text { line: line as u32 + 1, column }
    }

    /// The line of a position, from 0.
    fn line(&self, pos: usize) -> usize {
        let last = self.last.get();
        let has = |line: usize| {
            let end = self.starts.get(line + 1).map_or(usize::MAX, |&start| start as usize);
            self.starts.get(line).is_some_and(|&start| start as usize <= pos) && pos < end
        };
        let near = [last, last + 1].into_iter().find(|&line| has(line));
        let line =
            near.unwrap_or_else(|| self.starts.partition_point(|&start| start as usize <= pos) - 1);
        self.last.set(line);
        line
    }

    fn chars_before(&self, pos: usize) -> u32 {
        match self.chars.get(pos / BLOCK) {
            Some(before) => before + count_chars(&self.text.as_bytes()[pos / BLOCK * BLOCK..pos]),
            None if self.chars.is_empty() => pos as u32,
            // The end of a text that fills its last block.
            None => count_chars(&self.text.as_bytes()[..pos]),
        }
    }
}

fn count_chars(bytes: &[u8]) -> u32 {
    bytes.iter().filter(|&&byte| byte & 0xc0 != 0x80).count() as u32
}

/// A place in a text, and how deep it is nested.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a> {
    text: &'a str,
    lines: &'a Lines<'a>,
    pos: usize,
    depth: usize,
    /// Whether a literal was passed whose value is left out.
    pub(super) elided: bool,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(lines: &'a Lines<'a>) -> Self {
        Cursor { text: lines.text, lines, pos: 0, depth: 0, elided: false }
    }

    /// The position of the next token.
    pub(crate) fn pos(&mut self) -> usize {
        self.skip();
        self.pos
    }

    /// The place of the next token.
    pub(crate) fn location(&mut self) -> Location {
        let pos = self.pos();
        self.lines.location(pos)
    }

    /// The text from `start` to here.
    pub(crate) fn since(&self, start: usize) -> &'a str {
        &self.text[start..self.pos]
    }

    /// The same place in a text that ends after `part`, which comes next.
    pub(crate) fn limited_to(mut self, part: &str) -> Self {
        self.skip();
        self.text = &self.text[..self.pos + part.len()];
        self
    }

    /// An error at the next token.
    pub(crate) fn error(&mut self, detail: impl Into<String>) -> Error {
        Error::invalid(detail).at(Some(self.location()))
    }

    /// The error at the next token that a rule is broken.
    pub(crate) fn broken(&mut self, rule: &'static str, detail: impl Into<String>) -> Error {
        Error::rule(rule, detail).at(Some(self.location()))
    }

    /// The error that something other than `wanted` comes next.
    pub(crate) fn unexpected(&mut self, wanted: &str) -> Error {
        self.skip();
        let rest = &self.text[self.pos..];
        if rest.starts_with("/*") {
            return self.error("a comment without its end");
        }
        let found = match rest.chars().next() {
            None => "the end of the text".to_owned(),
            Some(c) if is_word(c as u32) => {
                let mut ahead = *self;
                let word: String = ahead.run(is_name_byte).chars().take(60).collect();
                format!("`{word}`")
            }
            Some(c) => format!("`{}`", c.escape_debug()),
        };
        self.error(format!("expected {wanted}, found {found}"))
    }

    /// Runs `read` one level deeper. Errors: `ResourceExhausted` beyond [`MAX_DEPTH`].
    pub(crate) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.enter()?;
        let result = read(self);
        self.leave();
        result
    }

    /// Goes one level deeper. Errors: `ResourceExhausted` beyond [`MAX_DEPTH`].
    pub(crate) fn enter(&mut self) -> Result<()> {
        if self.depth >= MAX_DEPTH {
            let detail = format!("nested more than {MAX_DEPTH} deep");
            return Err(Error::exhausted(detail).at(Some(self.location())));
        }
        self.depth += 1;
        Ok(())
    }

    /// The inverse of [`Cursor::enter`].
    pub(crate) fn leave(&mut self) {
        self.depth -= 1;
    }

    #[inline]
    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.pos + ahead).copied()
    }

    #[inline]
    fn starts_with(&self, token: &str) -> bool {
        self.text.as_bytes()[self.pos..].starts_with(token.as_bytes())
    }

    /// Passes white space and comments. (A comment without its end stays; nothing matches there.)
    #[inline]
    fn skip(&mut self) {
        // Mostly, what comes next is no space, or one of them.
        if self.byte(0) == Some(b' ') {
            self.pos += 1;
        }
        if !self.byte(0).is_some_and(|byte| byte > b' ' && byte != b'/') {
            self.skip_all();
        }
    }

    fn skip_all(&mut self) {
        loop {
            match (self.byte(0), self.byte(1)) {
                (Some(b' ' | b'\t' | b'\n' | b'\r'), _) => self.pos += 1,
                (Some(b'/'), Some(b'/')) => {
                    let rest = &self.text.as_bytes()[self.pos..];
                    let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
                    self.pos += end.unwrap_or(rest.len());
                }
                (Some(b'/'), Some(b'*')) => match self.text[self.pos + 2..].find("*/") {
                    Some(end) => self.pos += end + 4,
                    None => return,
                },
                _ => return,
            }
        }
    }

    /// Whether all is read.
    pub(crate) fn at_end(&mut self) -> bool {
        self.skip();
        self.pos == self.text.len()
    }

    /// The next character.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        self.skip();
        self.byte(0)
    }

    /// Whether `token` comes next.
    #[inline]
    pub(crate) fn peek_token(&mut self, token: &str) -> bool {
        self.skip();
        self.starts_with(token)
    }

    /// Whether `token` comes next; if so, passes it.
    #[inline]
    pub(crate) fn eat(&mut self, token: &str) -> bool {
        let found = self.peek_token(token);
        if found {
            self.pos += token.len();
        }
        found
    }

    /// Passes `token`. Errors: something else comes.
    #[inline]
    pub(crate) fn expect(&mut self, token: &str) -> Result<()> {
        if self.eat(token) { Ok(()) } else { Err(self.unexpected_for(token)) }
    }

    #[cold]
    fn unexpected_for(&mut self, token: &str) -> Error {
        self.unexpected(&format!("`{token}`"))
    }

    /// Errors: something is left.
    pub(crate) fn expect_end(&mut self) -> Result<()> {
        if self.at_end() { Ok(()) } else { Err(self.unexpected("the end of the text")) }
    }

    /// Passes the bytes that `part` says are one.
    fn run(&mut self, part: impl Fn(u8) -> bool) -> &'a str {
        let run = self.ahead(part);
        self.pos += run.len();
        run
    }

    /// The bytes that follow of which `part` says that they are one; they are ASCII.
    fn ahead(&self, part: impl Fn(u8) -> bool) -> &'a str {
        let rest = &self.text[self.pos..];
        let end = rest.bytes().position(|byte| !part(byte));
        &rest[..end.unwrap_or(rest.len())]
    }

    /// The word that comes next, `[A-Za-z_][A-Za-z0-9_.-]*`, if one does; it is not passed.
    pub(crate) fn peek_word(&mut self) -> Option<&'a str> {
        self.skip();
        self.byte(0).filter(|&byte| is_word(byte.into()))?;
        Some(self.ahead(is_name_byte))
    }

    /// Passes a word that was peeked.
    pub(crate) fn pass(&mut self, word: &str) {
        self.pos += word.len();
    }

    /// Whether this very word comes next; if so, passes it.
    pub(crate) fn eat_word(&mut self, word: &str) -> bool {
        let found = self.peek_word() == Some(word);
        if found {
            self.pass(word);
        }
        found
    }

    /// A word; `wanted` says of what kind, for the error.
    pub(crate) fn word(&mut self, wanted: &str) -> Result<&'a str> {
        let word = self.peek_word().ok_or_else(|| self.unexpected(wanted))?;
        self.pass(word);
        Ok(word)
    }

    /// A name with or without its sigil, without it.
    pub(crate) fn name(&mut self, wanted: &str) -> Result<&'a str> {
        self.skip();
        let sigil = usize::from(self.byte(0) == Some(b'%'));
        // No space may follow the sigil.
        if !self.byte(sigil).is_some_and(|byte| is_word(byte.into())) {
            return Err(self.unexpected(wanted));
        }
        self.pos += sigil;
        Ok(self.run(is_name_byte))
    }

    /// A run of digits. Errors: there are none, or the number does not fit.
    pub(crate) fn size(&mut self) -> Result<usize> {
        self.skip();
        let before = *self;
        let digits = self.run(|byte| byte.is_ascii_digit());
        digits.parse().map_err(|_| {
            let mut before = before;
            *self = before;
            match digits {
                "" => before.unexpected("a non-negative integer"),
                _ => before.error("the integer does not fit 64 bits"),
            }
        })
    }

    /// A number or a word as it may stand in a literal: letters, digits and `+ - .`; may be empty.
    pub(crate) fn literal_word(&mut self) -> &'a str {
        self.skip();
        self.run(|byte| byte.is_ascii_alphanumeric() || b"+-._".contains(&byte))
    }

    /// Passes a quoted string, and returns it as written, with its quotes.
    pub(crate) fn quoted(&mut self) -> Result<&'a str> {
        self.skip();
        let (start, mut ahead) = (self.pos, *self);
        let Some(quote @ (b'"' | b'\'')) = ahead.byte(0) else {
            return Err(self.unexpected("a string"));
        };
        ahead.pos += 1;
        loop {
            match ahead.byte(0) {
                None => return Err(self.error("a string without its closing quote")),
                Some(b'\\') if ahead.byte(1).is_some() => ahead.pos += 2,
                Some(byte) => {
                    ahead.pos += 1;
                    if byte == quote {
                        *self = ahead;
                        return Ok(self.since(start));
                    }
                }
            }
        }
    }

    /// Passes a bracket and all up to the one that closes it, and returns it as written.
    pub(crate) fn balanced(&mut self) -> Result<&'a str> {
        self.skip();
        let (start, mut ahead) = (self.pos, *self);
        let mut open = SmallVec::<[u8; 8]>::new();
        loop {
            match ahead.peek() {
                Some(bracket @ (b'(' | b'[' | b'{')) => {
                    if open.len() + self.depth >= MAX_DEPTH {
                        let detail = format!("brackets nested more than {MAX_DEPTH} deep");
                        return Err(Error::exhausted(detail).at(Some(ahead.location())));
                    }
                    open.push(bracket);
                    ahead.pos += 1;
                }
                Some(bracket @ (b')' | b']' | b'}')) => {
                    let opener = match bracket {
                        b')' => b'(',
                        b']' => b'[',
                        _ => b'{',
                    };
                    if open.pop() != Some(opener) {
                        return Err(ahead.unexpected("the bracket that closes this value"));
                    }
                    ahead.pos += 1;
                }
                Some(b'"' | b'\'') if !open.is_empty() => {
                    ahead.quoted()?;
                }
                Some(_) if !open.is_empty() => ahead.pos += 1,
                Some(_) => return Err(self.unexpected("a bracket")),
                None => return Err(self.error("a bracket that is not closed")),
            }
            if open.is_empty() {
                *self = ahead;
                return Ok(self.since(start));
            }
        }
    }

    /// Passes an attribute's value, and returns it as written: words, strings and balanced brackets,
    /// up to a comma or to white space that no part of a value can follow.
    pub(crate) fn value(&mut self) -> Result<&'a str> {
        self.skip();
        let start = self.pos;
        let mut end = start;
        loop {
            match self.byte(0) {
                Some(b'"' | b'\'') => {
                    self.quoted()?;
                }
                Some(b'(' | b'[' | b'{') => {
                    self.balanced()?;
                }
                Some(b',' | b')' | b']' | b'}') | None => break,
                Some(b' ' | b'\t' | b'\n' | b'\r' | b'/') => {
                    // `[2,4] <= [8] T(1,0)` goes on; `ROOT`, a name or `}` begins something else.
                    let transposed = self.text.as_bytes()[..end].ends_with(b"]");
                    self.skip();
                    let goes_on = ["<=", "->", "[", "{", "("];
                    let goes_on = goes_on.iter().any(|token| self.starts_with(token))
                        || (transposed && self.starts_with("T("));
                    if !goes_on {
                        break;
                    }
                    continue;
                }
                Some(_) => self.pos += 1,
            }
            end = self.pos;
        }
        if end == start {
            return Err(self.unexpected("a value"));
        }
        // Every branch above stops at an ASCII character or the end, so this is a boundary.
        Ok(&self.text[start..end])
    }

    /// Goes on to the next line that looks like the beginning of an instruction or the end of a
    /// computation, which may be this one, or to the end of the text.
    pub(crate) fn next_instruction(&mut self) {
        // Looking for an attribute may have led to the beginning of the next line.
        let before = self.text.as_bytes()[..self.pos].iter().rev();
        let is_blank = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\r');
        let at_begin = { before }.find(|byte| !is_blank(byte)).is_none_or(|&byte| byte == b'\n');
        if at_begin && self.begins_instruction() {
            return;
        }
        while self.next_line() {
            if self.begins_instruction() {
                return;
            }
        }
    }

    fn begins_instruction(&self) -> bool {
        let mut ahead = *self;
        ahead.eat_word("ROOT")
            || ahead.peek() == Some(b'}')
            || ahead.name("").is_ok_and(|_| ahead.byte(0) == Some(b' ') && ahead.eat("="))
    }

    /// Goes on to what follows the next line that begins with `}`, or to the end of the text.
    pub(crate) fn next_computation(&mut self) {
        while self.next_line() {
            if self.byte(0) == Some(b'}') {
                self.pos += 1;
                return;
            }
        }
    }

    fn next_line(&mut self) -> bool {
        match self.text.as_bytes()[self.pos..].iter().position(|&byte| byte == b'\n') {
            Some(end) => self.pos += end + 1,
            None => self.pos = self.text.len(),
        }
        self.pos < self.text.len()
    }
}

/// Whether text can name something so: `[A-Za-z_][A-Za-z0-9_.-]*`.
pub(crate) fn is_name(text: &str) -> bool {
    text.bytes().next().is_some_and(|byte| is_word(byte.into())) && text.bytes().all(is_name_byte)
}

fn is_word(c: u32) -> bool {
    u8::try_from(c).is_ok_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
}

fn is_name_byte(byte: u8) -> bool {
    IS_NAME_BYTE[usize::from(byte)]
}

/// Whether each byte may be in a name.
static IS_NAME_BYTE: [bool; 256] = {
    let mut is_name_byte = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let c = byte as u8;
        is_name_byte[byte] = c.is_ascii_alphanumeric() || matches!(c, b'_' | b'.' | b'-');
        byte += 1;
    }
    is_name_byte
};
