//! Attributes from text, in JSON's notation and in MLIR's.

use super::{Attribute, Dictionary};
use crate::ElementType;
use crate::text::MAX_DEPTH;

/// The dictionary that JSON text is; `None` if it is none.
pub(super) fn json(text: &str) -> Option<Dictionary> {
    let mut reader = Reader { rest: text, depth: 0 };
    let Attribute::Dictionary(dictionary) = reader.json()? else { return None };
    reader.skip();
    reader.rest.is_empty().then_some(dictionary)
}

/// The dictionary that text in MLIR's notation is; `None` if it is none.
pub(super) fn typed(text: &str) -> Option<Dictionary> {
    let mut reader = Reader { rest: text, depth: 0 };
    let dictionary = reader.dictionary()?;
    reader.skip();
    reader.rest.is_empty().then_some(dictionary)
}

/// Whether MLIR writes a name without quotes.
pub(super) fn is_bare(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && bare_len(name) == name.len()
}

fn bare_len(text: &str) -> usize {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.');
    text.find(|c| !is_part(c)).unwrap_or(text.len())
}

/// The element type of MLIR's name.
fn element(name: &str) -> Option<ElementType> {
    match name {
        "i1" => Some(ElementType::Pred),
        _ => {
            let name = match (name.strip_prefix("ui"), name.strip_prefix('i')) {
                (Some(bits), _) => format!("u{bits}"),
                (_, Some(bits)) => format!("s{bits}"),
                _ if name.starts_with(['f', 'b']) => name.to_ascii_lowercase(),
                _ => return None,
            };
            name.parse().ok()
        }
    }
}

struct Reader<'t> {
    rest: &'t str,
    depth: usize,
}

impl<'t> Reader<'t> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn eat(&mut self, token: &str) -> Option<()> {
        self.skip();
        self.rest = self.rest.strip_prefix(token)?;
        Some(())
    }

    /// Takes the next bytes, as many as are asked for.
    fn take(&mut self, len: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(len);
        self.rest = rest;
        taken
    }

    /// `open item, item close`, possibly empty.
    fn list<T>(
        &mut self,
        open: &str,
        close: &str,
        mut item: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        self.eat(open)?;
        if self.depth == MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let mut items = Vec::new();
        if self.eat(close).is_none() {
            loop {
                items.push(item(self)?);
                if self.eat(",").is_none() {
                    break;
                }
            }
            self.eat(close)?;
        }
        self.depth -= 1;
        Some(items)
    }

    /// A value in JSON.
    fn json(&mut self) -> Option<Attribute> {
        self.skip();
        match self.rest.bytes().next()? {
            b'{' => {
                let entry = |reader: &mut Self| {
                    let name = reader.json_string()?;
                    reader.eat(":")?;
                    Some((name, reader.json()?))
                };
                let entries = self.list("{", "}", entry)?;
                Dictionary::new(entries).ok().map(Attribute::Dictionary)
            }
            b'[' => self.list("[", "]", Self::json).map(Attribute::List),
            b'"' => self.json_string().map(Attribute::String),
            b'-' | b'0'..=b'9' => self.number(false),
            _ => match self.take(bare_len(self.rest)) {
                "true" => Some(Attribute::Bool(true)),
                "false" => Some(Attribute::Bool(false)),
                "null" => Some(Attribute::Other("null".to_owned())),
                _ => None,
            },
        }
    }

    fn json_string(&mut self) -> Option<String> {
        self.eat("\"")?;
        let mut text = String::new();
        loop {
            let mut chars = self.rest.chars();
            let c = chars.next()?;
            self.rest = chars.as_str();
            match c {
                '"' => return Some(text),
                '\\' => text.push(self.json_escape()?),
                c => text.push(c),
            }
        }
    }

    fn json_escape(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let c = chars.next()?;
        self.rest = chars.as_str();
        Some(match c {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            '"' | '\\' | '/' => c,
            'u' => {
                let high = self.unit()?;
                if !(0xd800..0xdc00).contains(&high) {
                    return char::from_u32(high);
                }
                self.rest = self.rest.strip_prefix("\\u")?;
                let low = self.unit()?;
                return char::decode_utf16([high as u16, low as u16]).next()?.ok();
            }
            _ => return None,
        })
    }

    /// Four hexadecimal digits.
    fn unit(&mut self) -> Option<u32> {
        let digits = self.rest.get(..4)?;
        digits.bytes().all(|b| b.is_ascii_hexdigit()).then_some(())?;
        self.rest = &self.rest[4..];
        u32::from_str_radix(digits, 16).ok()
    }

    /// A number; with its type behind a colon if `typed`.
    fn number(&mut self, typed: bool) -> Option<Attribute> {
        self.skip();
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '-');
        let text = self.take(self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len()));
        let is_float = !text.starts_with("0x") && text.contains(['.', 'e', 'E']);
        let mut ty = if is_float { ElementType::F64 } else { ElementType::S64 };
        if typed && self.eat(":").is_some() {
            self.skip();
            ty = element(self.take(bare_len(self.rest)))?;
        }
        number(text, ty)
    }

    /// `{name = value, name = value}` in MLIR's notation.
    fn dictionary(&mut self) -> Option<Dictionary> {
        let entry = |reader: &mut Self| {
            reader.skip();
            let name = match reader.rest.starts_with('"') {
                true => reader.string()?,
                false => reader.take(bare_len(reader.rest)).to_owned(),
            };
            if name.is_empty() {
                return None;
            }
            match reader.eat("=") {
                Some(()) => Some((name, reader.value()?)),
                None => Some((name, Attribute::Other("unit".to_owned()))),
            }
        };
        Dictionary::new(self.list("{", "}", entry)?).ok()
    }

    /// A value in MLIR's notation.
    fn value(&mut self) -> Option<Attribute> {
        self.skip();
        let before = Reader { rest: self.rest, depth: self.depth };
        if let Some(value) = self.known().filter(|_| self.is_at_end()) {
            return Some(value);
        }
        *self = before;
        self.other().map(Attribute::Other)
    }

    /// Whether a value ends here.
    fn is_at_end(&mut self) -> bool {
        self.skip();
        self.rest.is_empty() || self.rest.starts_with([',', '}', ']'])
    }

    fn known(&mut self) -> Option<Attribute> {
        match self.rest.bytes().next()? {
            b'{' => self.dictionary().map(Attribute::Dictionary),
            b'[' => self.list("[", "]", Self::value).map(Attribute::List),
            b'"' => self.string().map(Attribute::String),
            b'-' | b'+' | b'0'..=b'9' => self.number(true),
            _ => match self.take(bare_len(self.rest)) {
                "true" => Some(Attribute::Bool(true)),
                "false" => Some(Attribute::Bool(false)),
                "array" => self.array(),
                "dense" => self.dense(),
                _ => None,
            },
        }
    }

    /// `<i64: 1, 2>`
    fn array(&mut self) -> Option<Attribute> {
        self.eat("<")?;
        self.skip();
        let ty = element(self.take(bare_len(self.rest)))?;
        if self.eat(">").is_some() {
            return Some(Attribute::Numbers(ty, Vec::new()));
        }
        let values = self.list(":", ">", |reader| reader.plain(ty))?;
        Some(Attribute::Numbers(ty, values))
    }

    /// `<[1, 2]> : tensor<2xi64>`, of one dimension.
    fn dense(&mut self) -> Option<Attribute> {
        self.eat("<")?;
        self.skip();
        let text = self.rest;
        let end = text.find('>')?;
        self.take(end + 1);
        self.eat(":")?;
        self.eat("tensor<")?;
        let (size, name) = self.take(self.rest.find('>')?).split_once('x')?;
        self.eat(">")?;
        let (size, ty) = (size.parse::<usize>().ok()?, element(name)?);
        let mut inner = Reader { rest: &text[..end], depth: self.depth };
        let values = inner.list("[", "]", |reader| reader.plain(ty))?;
        inner.skip();
        (inner.rest.is_empty() && values.len() == size).then_some(Attribute::Numbers(ty, values))
    }

    /// An element of a list whose type is known.
    fn plain(&mut self, ty: ElementType) -> Option<Attribute> {
        self.skip();
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '-');
        match self.take(self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len())) {
            "true" if ty.is_pred() => Some(Attribute::Bool(true)),
            "false" if ty.is_pred() => Some(Attribute::Bool(false)),
            text => number(text, ty),
        }
    }

    /// A string in MLIR's notation, where escapes are hexadecimal.
    fn string(&mut self) -> Option<String> {
        self.eat("\"")?;
        let mut bytes = Vec::new();
        loop {
            let c = *self.rest.as_bytes().first()?;
            // Bytes of longer characters are none of these.
            let (byte, len) = match (c, self.rest.as_bytes().get(1)) {
                (b'"', _) => {
                    self.rest = &self.rest[1..];
                    return String::from_utf8(bytes).ok();
                }
                (b'\\', Some(b'n')) => (b'\n', 2),
                (b'\\', Some(b't')) => (b'\t', 2),
                (b'\\', Some(&c @ (b'"' | b'\\'))) => (c, 2),
                (b'\\', _) => {
                    let digits = self.rest.get(1..3)?;
                    (u8::from_str_radix(digits, 16).ok()?, 3)
                }
                (c, _) if c.is_ascii() => (c, 1),
                _ => {
                    let len = self.rest.chars().next()?.len_utf8();
                    bytes.extend_from_slice(self.take(len).as_bytes());
                    continue;
                }
            };
            bytes.push(byte);
            self.take(len);
        }
    }

    /// What comes before the next comma or closing bracket on this level.
    fn other(&mut self) -> Option<String> {
        let (mut depth, mut in_string, mut end) = (0_usize, false, self.rest.len());
        let mut previous = ' ';
        let mut is_escaped = false;
        for (at, c) in self.rest.char_indices() {
            if in_string {
                in_string = is_escaped || c != '"';
                is_escaped = !is_escaped && c == '\\';
                continue;
            }
            match c {
                '"' => in_string = true,
                '{' | '[' | '(' | '<' => depth += 1,
                '>' if previous == '-' => {}
                ',' if depth == 0 => end = at,
                '}' | ']' | ')' | '>' if depth == 0 => end = at,
                '}' | ']' | ')' | '>' => depth -= 1,
                _ => {}
            }
            if end == at {
                break;
            }
            previous = c;
        }
        let text = self.take(end).trim();
        (depth == 0 && !in_string && !text.is_empty()).then(|| text.to_owned())
    }
}

/// A number of a type.
fn number(text: &str, ty: ElementType) -> Option<Attribute> {
    let hex = text.strip_prefix("0x").map(|digits| u64::from_str_radix(digits, 16));
    if ty.is_float() {
        let value = match hex {
            None => text.parse().ok().filter(|value: &f64| value.is_finite())?,
            Some(bits) => match (bits.ok()?, ty) {
                (bits, ElementType::F64) => f64::from_bits(bits),
                (bits, ElementType::F32) => f32::from_bits(u32::try_from(bits).ok()?).into(),
                (bits, ElementType::F16) => {
                    half::f16::from_bits(u16::try_from(bits).ok()?).to_f64()
                }
                (bits, ElementType::BF16) => {
                    half::bf16::from_bits(u16::try_from(bits).ok()?).to_f64()
                }
                _ => return None,
            },
        };
        return Some(Attribute::Float(value, ty));
    }
    let value: i128 = match hex {
        None => text.parse().ok()?,
        Some(bits) => bits.ok()?.into(),
    };
    (ty.is_integer() || ty.is_pred()).then_some(Attribute::Integer(value, ty))
}
