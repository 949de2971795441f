//! Reading MLIR text character by character: words, numbers, strings, places for errors.

use std::rc::Rc;

use helio_ir::{Error, Location, Result};

/// A position in a text, and what can be read there.
#[derive(Clone)]
pub(super) struct Scan<'a> {
    text: &'a str,
    pos: usize,
    /// The line of the text's first character, from 0.
    first_line: u32,
    lines: Rc<Lines>,
}

/// What tells line and column of a byte.
struct Lines {
    /// The byte at which each line begins.
    starts: Vec<usize>,
    /// Whether all characters are bytes.
    is_ascii: bool,
}

/// How deep brackets, types, attributes and regions may nest.
pub(super) const MAX_NESTING: usize = 128;

impl<'a> Scan<'a> {
    /// A scan whose text begins at this line, counted from 0, of a larger text.
    pub fn new(text: &'a str, first_line: u32) -> Self {
        let after = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        let starts = std::iter::once(0).chain(after.map(|(at, _)| at + 1)).collect();
        let lines = Rc::new(Lines { starts, is_ascii: text.is_ascii() });
        Scan { text, pos: 0, first_line, lines }
    }

    /// The byte at which the scan stands.
    pub fn pos(&self) -> usize {
        self.pos
    }

    /// Goes on at this byte.
    pub fn go_to(&mut self, pos: usize) {
        self.pos = pos;
    }

    /// The text between two bytes.
    pub fn between(&self, start: usize, end: usize) -> &'a str {
        &self.text[start..end]
    }

    /// What has not been read.
    pub fn rest(&self) -> &'a str {
        &self.text[self.pos..]
    }

    /// The place of a byte.
    pub fn location(&self, pos: usize) -> Location {
        let number = self.lines.starts.partition_point(|&start| start <= pos).saturating_sub(1);
        let start = self.lines.starts[number];
        let column = match self.lines.is_ascii {
            true => pos - start,
            false => self.text[start..pos].chars().count(),
        };
        Location::Text { line: self.first_line + number as u32 + 1, column: column as u32 + 1 }
    }

    /// An error at the next token.
    pub fn error(&mut self, detail: impl Into<String>) -> Error {
        self.space();
        self.error_at(self.pos, detail)
    }

    /// An error at a byte.
    pub fn error_at(&self, pos: usize, detail: impl Into<String>) -> Error {
        Error::invalid(detail).at(Some(self.location(pos)))
    }

    /// An error that says what is needed here and what stands here instead.
    pub fn expected(&mut self, what: &str) -> Error {
        self.space();
        let found: String = match self.rest().chars().next() {
            None => "the end of the text".to_owned(),
            Some(c) if word_char(c) => {
                let word = self.rest().split(|c| !word_char(c)).next().unwrap_or_default();
                format!("`{}`", word.chars().take(40).collect::<String>())
            }
            Some(c) => format!("`{c}`"),
        };
        self.error(format!("expected {what}, found {found}"))
    }

    /// Skips white space and comments.
    pub fn space(&mut self) {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.pos) {
                Some(b' ' | b'\t' | b'\r' | b'\n') => self.pos += 1,
                Some(b'/') if bytes.get(self.pos + 1) == Some(&b'/') => {
                    let rest = &bytes[self.pos..];
                    self.pos += rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
                }
                _ => return,
            }
        }
    }

    /// Whether nothing follows but space.
    pub fn at_end(&mut self) -> bool {
        self.space();
        self.pos == self.text.len()
    }

    /// The next character after space.
    pub fn peek(&mut self) -> Option<char> {
        self.space();
        self.rest().chars().next()
    }

    /// Whether this punctuation comes next.
    pub fn sees(&mut self, token: &str) -> bool {
        self.space();
        self.rest().starts_with(token)
    }

    /// Reads this punctuation, if it comes next.
    pub fn eat(&mut self, token: &str) -> bool {
        let seen = self.sees(token);
        if seen {
            self.pos += token.len();
        }
        seen
    }

    /// Reads this punctuation.
    pub fn expect(&mut self, token: &str) -> Result<()> {
        if self.eat(token) { Ok(()) } else { Err(self.expected(&format!("`{token}`"))) }
    }

    /// The word that comes next, without reading it; empty if none does.
    pub fn peek_word(&mut self) -> &'a str {
        self.space();
        let rest = self.rest();
        match rest.chars().next() {
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                &rest[..rest.find(|c| !word_char(c)).unwrap_or(rest.len())]
            }
            _ => "",
        }
    }

    /// Whether this whole word comes next.
    pub fn sees_word(&mut self, word: &str) -> bool {
        self.peek_word() == word
    }

    /// Reads this word, if it comes next as a whole.
    pub fn eat_word(&mut self, word: &str) -> bool {
        let seen = self.sees_word(word);
        if seen {
            self.pos += word.len();
        }
        seen
    }

    /// Reads this word.
    pub fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.eat_word(word) { Ok(()) } else { Err(self.expected(&format!("`{word}`"))) }
    }

    /// Reads a word: letters, digits, `_`, `.` and `$`, not beginning with a digit.
    pub fn word(&mut self, what: &str) -> Result<&'a str> {
        let word = self.peek_word();
        if word.is_empty() {
            return Err(self.expected(what));
        }
        self.pos += word.len();
        Ok(word)
    }

    /// Reads what follows `%`, `@`, `#` or `^`: also digits and `-` in it.
    pub fn suffix(&mut self, what: &str) -> Result<&'a str> {
        let rest = self.rest();
        let end = rest.find(|c| !(word_char(c) || c == '-')).unwrap_or(rest.len());
        // `%0->` is a name and an arrow.
        let end = rest[..end].find("->").unwrap_or(end);
        if end == 0 {
            return Err(self.expected(what));
        }
        self.pos += end;
        Ok(&rest[..end])
    }

    /// Reads an unsigned decimal number.
    pub fn unsigned(&mut self, what: &str) -> Result<u64> {
        self.space();
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number = rest[..end].parse();
        let number = number.map_err(|_| self.expected(what))?;
        self.pos += end;
        Ok(number)
    }

    /// Reads a decimal number that may have a sign.
    pub fn integer(&mut self, what: &str) -> Result<i64> {
        self.space();
        let rest = self.rest();
        let digits = rest.strip_prefix('-').unwrap_or(rest);
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        let end = rest.len() - digits.len() + end;
        let number = rest[..end].parse().map_err(|_| self.expected(what))?;
        self.pos += end;
        Ok(number)
    }

    /// Reads a number in any notation, with its sign; empty if none comes next.
    pub fn number(&mut self) -> &'a str {
        self.space();
        let rest = self.rest();
        let bytes = rest.as_bytes();
        let mut end = usize::from(bytes.first() == Some(&b'-'));
        if bytes.get(end).is_none_or(|b| !b.is_ascii_digit()) {
            return "";
        }
        if rest[end..].starts_with("0x") {
            end += 2;
            end += bytes[end..].iter().take_while(|b| b.is_ascii_hexdigit()).count();
        } else {
            let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit());
            end += digits(end).count();
            if bytes.get(end) == Some(&b'.') {
                end += 1 + digits(end + 1).count();
                if matches!(bytes.get(end), Some(b'e' | b'E')) {
                    let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
                    let count = digits(end + 1 + sign).count();
                    end += if count > 0 { 1 + sign + count } else { 0 };
                }
            }
        }
        self.pos += end;
        &rest[..end]
    }

    /// Reads a string in quotes. `\n`, `\t`, `\\`, `\"` and two hexadecimal digits are escapes.
    pub fn string(&mut self) -> Result<String> {
        let start = self.pos;
        let bytes = self.string_bytes()?;
        String::from_utf8(bytes).map_err(|_| self.error_at(start, "a string that is not UTF-8"))
    }

    fn string_bytes(&mut self) -> Result<Vec<u8>> {
        self.expect("\"")?;
        let start = self.pos;
        let bytes = self.text.as_bytes();
        let mut out = Vec::new();
        loop {
            let Some(&byte) = bytes.get(self.pos) else {
                return Err(self.error_at(start, "a string without its closing `\"`"));
            };
            self.pos += 1;
            match byte {
                b'"' => return Ok(out),
                b'\\' => {
                    let escape = bytes.get(self.pos).copied().unwrap_or_default();
                    self.pos += 1;
                    out.push(match escape {
                        b'n' => b'\n',
                        b't' => b'\t',
                        b'\\' | b'"' => escape,
                        _ => {
                            let hex = self.text.get(self.pos - 1..self.pos + 1);
                            self.pos += 1;
                            hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()).ok_or_else(
                                || self.error_at(start, "a string with an unknown escape"),
                            )?
                        }
                    });
                }
                byte => out.push(byte),
            }
        }
    }

    /// Reads text up to, and without, the bracket that closes what is open here; strings and
    /// brackets in it are kept whole.
    pub fn balanced(&mut self) -> Result<&'a str> {
        let start = self.pos;
        let mut open = Vec::new();
        while let Some(c) = self.rest().chars().next() {
            match c {
                '"' => {
                    self.string_bytes()?;
                    continue;
                }
                '(' => open.push(')'),
                '[' => open.push(']'),
                '{' => open.push('}'),
                '<' => open.push('>'),
                '>' if self.text[..self.pos].ends_with('-') => {}
                ')' | ']' | '}' | '>' => match open.pop() {
                    None => return Ok(&self.text[start..self.pos]),
                    Some(close) if close == c => {}
                    Some(close) => return Err(self.expected(&format!("`{close}`"))),
                },
                _ => {}
            }
            if open.len() > MAX_NESTING {
                return Err(self.too_deep());
            }
            self.pos += c.len_utf8();
        }
        Err(self.expected("a closing bracket"))
    }

    /// The error for what nests too deeply.
    pub fn too_deep(&mut self) -> Error {
        self.space();
        Error::exhausted(format!("nested more than {MAX_NESTING} deep"))
            .at(Some(self.location(self.pos)))
    }
}

fn word_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$')
}
