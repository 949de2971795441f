//! Attributes in MLIR text, read.

use helio_ir::types::Number;
use helio_ir::{Native, Result, dispatch_type};

use super::{Parser, unimplemented};
use crate::mlir::{Attribute, Field, FloatType, Signedness, Type};

impl<'a> Parser<'a> {
    /// An attribute.
    pub(super) fn attribute(&mut self) -> Result<Attribute> {
        self.nested(Self::attribute_here)
    }

    fn attribute_here(&mut self) -> Result<Attribute> {
        match self.scan.peek() {
            Some('"') => {
                let string = self.scan.string()?;
                if self.scan.eat(":") {
                    self.ty()?;
                }
                Ok(Attribute::String(string))
            }
            Some('[') => {
                self.scan.expect("[")?;
                Ok(Attribute::Array(self.list("]", Self::attribute)?))
            }
            Some('{') => Ok(Attribute::Dictionary(self.dictionary()?)),
            Some('@') => Ok(Attribute::Symbol(self.symbol()?)),
            Some('#') => self.dialect_attribute(),
            Some('-' | '0'..='9') => self.number(),
            Some('!' | '(') => Ok(Attribute::Type(self.ty()?)),
            _ => self.word_attribute(),
        }
    }

    fn word_attribute(&mut self) -> Result<Attribute> {
        let word = self.scan.peek_word();
        match word {
            "true" | "false" | "unit" | "loc" | "dense" | "dense_resource" | "array" => {
                self.scan.eat_word(word);
            }
            "opaque" | "sparse" | "affine_map" | "affine_set" | "strided" | "distinct" => {
                return Err(unimplemented(&mut self.scan, &format!("an attribute `{word}`")));
            }
            _ => return Ok(Attribute::Type(self.ty()?)),
        }
        match word {
            "true" => Ok(Attribute::Bool(true)),
            "false" => Ok(Attribute::Bool(false)),
            "unit" => Ok(Attribute::Unit),
            "loc" => Ok(Attribute::Location(self.location_in_parentheses()?)),
            "dense" => self.dense(),
            "dense_resource" => self.dense_resource(),
            _ => self.dense_array(),
        }
    }

    /// `3`, `-3 : i32`, `0x7FF0 : f64`, `1.5e+00 : f32`
    fn number(&mut self) -> Result<Attribute> {
        self.number_of(true)
    }

    /// `3`, `1.5e+00`
    pub(super) fn untyped_number(&mut self) -> Result<Attribute> {
        self.number_of(false)
    }

    fn number_of(&mut self, has_type: bool) -> Result<Attribute> {
        let start = self.scan.pos();
        let text = self.scan.number();
        if text.is_empty() {
            return Err(self.scan.expected("a number"));
        }
        let has_point = text.contains('.');
        let ty = if has_type && self.scan.eat(":") {
            self.ty()?
        } else if has_point {
            Type::Float(FloatType::F64)
        } else {
            Type::signless(64)
        };
        match ty {
            Type::Float(float) => {
                let bad = || self.scan.error_at(start, format!("`{text}` is no value of {ty}"));
                let value = match super::dense::hexadecimal(text) {
                    Some(bits) => super::dense::float_of_bits(bits, float).ok_or_else(bad)?,
                    None => rounded(text.parse().map_err(|_| bad())?, float),
                };
                Ok(Attribute::Float { value, ty })
            }
            _ => {
                let value = super::dense::integer(text);
                let value = value.ok_or_else(|| {
                    self.scan.error_at(start, format!("`{text}` is no value of {ty}"))
                })?;
                Ok(Attribute::Integer { value, ty })
            }
        }
    }

    /// `@root::@nested`, names in quotes or not.
    pub(super) fn symbol(&mut self) -> Result<Vec<String>> {
        let mut path = Vec::new();
        loop {
            self.scan.expect("@")?;
            path.push(if self.scan.rest().starts_with('"') {
                self.scan.string()?
            } else {
                self.scan.suffix("the name of a symbol")?.to_owned()
            });
            if !self.scan.eat("::") {
                return Ok(path);
            }
        }
    }

    /// `{a = 1, "b.c" = 2, flag}`
    pub(super) fn dictionary(&mut self) -> Result<Vec<Field>> {
        self.scan.expect("{")?;
        self.list("}", Self::field)
    }

    fn field(&mut self) -> Result<Field> {
        let name = if self.scan.sees("\"") {
            self.scan.string()?
        } else {
            self.scan.word("the name of an attribute")?.to_owned()
        };
        let value =
            if self.scan.eat("=") { self.nested(Self::attribute)? } else { Attribute::Unit };
        Ok((name, value))
    }

    /// `#alias`, `#stablehlo<precision HIGH>`, `#stablehlo.gather<…>`, or an attribute of a dialect
    /// that is kept as text.
    fn dialect_attribute(&mut self) -> Result<Attribute> {
        let start = self.scan.pos();
        self.scan.expect("#")?;
        let name = self.scan.suffix("the name of an attribute")?;
        if !self.scan.rest().starts_with('<') {
            if !name.contains('.') {
                return self.attribute_alias(name, start);
            }
            return Ok(Attribute::Other(format!("#{name}")));
        }
        self.scan.expect("<")?;
        let (dialect, kind) = name.split_once('.').unwrap_or((name, ""));
        if !matches!(dialect, "stablehlo" | "chlo" | "mhlo") {
            let text = format!("#{name}<{}>", self.scan.balanced()?);
            self.scan.expect(">")?;
            return Ok(Attribute::Other(text));
        }
        let dialect = dialect.to_owned();
        if kind.is_empty() {
            let name = self.scan.word("the name of an enumeration")?.to_owned();
            let word = self.scan.word("a word")?.to_owned();
            self.scan.expect(">")?;
            return Ok(Attribute::Word { dialect, name, word });
        }
        let name = kind.to_owned();
        if kind == "conv" {
            let fields = self.conv_dims()?;
            self.scan.expect(">")?;
            return Ok(Attribute::Struct { dialect, name, fields });
        }
        let mut fields = self.list(">", Self::struct_field)?;
        let is_word = |field: &Field| {
            field.1 == Attribute::Unit && field.0.bytes().all(|b| b.is_ascii_uppercase())
        };
        if fields.len() == 1 && is_word(&fields[0]) {
            let (word, _) = fields.remove(0);
            return Ok(Attribute::Word { dialect, name, word });
        }
        Ok(Attribute::Struct { dialect, name, fields })
    }

    fn struct_field(&mut self) -> Result<Field> {
        let name = self.scan.word("the name of a field")?.to_owned();
        if !self.scan.eat("=") {
            return Ok((name, Attribute::Unit));
        }
        if self.scan.sees("[") {
            return Ok((name, Attribute::Integers(self.integers()?)));
        }
        Ok((name, self.attribute()?))
    }

    /// `[0, 1]` or `array<i64: 0, 1>`
    pub(super) fn integers(&mut self) -> Result<Vec<i64>> {
        if self.scan.eat_word("array") {
            return match self.dense_array()? {
                Attribute::Integers(values) => Ok(values),
                _ => Err(self.scan.error("a list of integers is needed")),
            };
        }
        self.scan.expect("[")?;
        self.list("]", |parser| parser.scan.integer("an integer"))
    }

    /// After `array`.
    fn dense_array(&mut self) -> Result<Attribute> {
        self.scan.expect("<")?;
        let ty = self.ty()?;
        let is_empty = !self.scan.eat(":");
        if is_empty {
            self.scan.expect(">")?;
        }
        Ok(match ty {
            Type::Integer { width: 1, .. } if !is_empty => {
                Attribute::Bools(self.list(">", Self::truth)?)
            }
            Type::Integer { width: 1, .. } => Attribute::Bools(Vec::new()),
            Type::Float(_) if is_empty => Attribute::Floats(Vec::new()),
            Type::Float(_) => Attribute::Floats(self.list(">", |parser| {
                let text = parser.scan.number();
                text.parse().map_err(|_| parser.scan.expected("a number"))
            })?),
            _ if is_empty => Attribute::Integers(Vec::new()),
            _ => Attribute::Integers(self.list(">", |parser| parser.scan.integer("an integer"))?),
        })
    }

    /// `true` or `false`
    pub(super) fn truth(&mut self) -> Result<bool> {
        if self.scan.eat_word("true") {
            Ok(true)
        } else if self.scan.eat_word("false") {
            Ok(false)
        } else {
            match self.scan.number() {
                "0" => Ok(false),
                "1" => Ok(true),
                _ => Err(self.scan.expected("`true` or `false`")),
            }
        }
    }

    /// `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`
    pub(super) fn conv_dims(&mut self) -> Result<Vec<Field>> {
        let mut fields = Vec::new();
        for (part, first, second) in [
            ("input", ("b", "batch"), ("f", "feature")),
            ("kernel", ("i", "input_feature"), ("o", "output_feature")),
            ("output", ("b", "batch"), ("f", "feature")),
        ] {
            match part {
                "kernel" => self.scan.expect("x")?,
                "output" => self.scan.expect("->")?,
                _ => {}
            }
            let start = self.scan.pos();
            self.scan.expect("[")?;
            let dims = self.list("]", Self::conv_dim)?;
            let place = |name: &str| dims.iter().position(|dim| dim == name);
            for (letter, name) in [first, second] {
                let at = place(letter).ok_or_else(|| {
                    self.scan.error_at(start, format!("no dimension `{letter}` is listed"))
                })?;
                fields.push((format!("{part}_{name}_dimension"), Attribute::i64(at as i64)));
            }
            let spatial = (0..dims.len().saturating_sub(2))
                .map(|d| place(&d.to_string()).map(|at| at as i64))
                .collect::<Option<Vec<_>>>();
            let spatial = spatial.ok_or_else(|| {
                self.scan.error_at(start, "spatial dimensions are numbered from 0 without gaps")
            })?;
            fields.push((format!("{part}_spatial_dimensions"), Attribute::Integers(spatial)));
        }
        Ok(fields)
    }

    fn conv_dim(&mut self) -> Result<String> {
        if self.scan.peek().is_some_and(|c| c.is_ascii_digit()) {
            return Ok(self.scan.unsigned("a dimension")?.to_string());
        }
        if self.scan.eat("?") {
            return Ok("?".to_owned());
        }
        Ok(self.scan.word("a dimension")?.to_owned())
    }

    /// Entries between a bracket that has been read and this one, with commas between them.
    pub(super) fn list<T>(
        &mut self,
        close: &str,
        mut entry: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut entries = Vec::new();
        if self.scan.eat(close) {
            return Ok(entries);
        }
        loop {
            entries.push(entry(self)?);
            if self.scan.eat(close) {
                return Ok(entries);
            }
            if !self.scan.eat(",") {
                return Err(self.scan.expected(&format!("`,` or `{close}`")));
            }
        }
    }
}

/// Whether the bits of an integer type are read with a sign.
pub(super) fn is_signed(sign: Signedness) -> bool {
    sign != Signedness::Unsigned
}

/// The number of this type that is nearest, as files in other forms have it.
fn rounded(value: f64, ty: FloatType) -> f64 {
    match ty.element() {
        Some(element) => {
            let number = Number::Float(value);
            dispatch_type!(element, T => T::from_number(number).to_number()).to_f64()
        }
        None => value,
    }
}
