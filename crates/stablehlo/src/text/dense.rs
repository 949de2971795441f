//! `dense<…>`: the elements of tensors in text, and the bytes they stand for.

use helio_ir::types::{Native, Number};
use helio_ir::{ElementType, Error, Result, dispatch_type};

use super::Parser;
use super::attribute::is_signed;
use super::scan::MAX_NESTING;
use crate::mlir::{Attribute, Dense, FloatType, Type};

/// What stands between `dense<` and `>`.
enum Written<'a> {
    Nothing,
    /// `"0x…"`: bytes.
    Hexadecimal(&'a str),
    One(Element<'a>),
    /// Elements in row-major order, and the sizes that the brackets show.
    List(Vec<usize>, Vec<Element<'a>>),
}

/// One element as written, and where.
#[derive(Clone, Copy)]
struct Element<'a> {
    at: usize,
    real: &'a str,
    /// Of a complex number.
    imaginary: Option<&'a str>,
}

impl<'a> Parser<'a> {
    /// After `dense`.
    pub(super) fn dense(&mut self) -> Result<Attribute> {
        let start = self.scan.pos();
        self.scan.expect("<")?;
        let written = self.elements()?;
        self.scan.expect(">")?;
        self.scan.expect(":")?;
        let ty = self.ty()?;
        self.dense_of(written, ty).map(Attribute::Dense).map_err(|e| {
            let at = self.scan.location(start);
            e.at(Some(at))
        })
    }

    fn elements(&mut self) -> Result<Written<'a>> {
        match self.scan.peek() {
            Some('>') => Ok(Written::Nothing),
            Some('"') => {
                let start = self.scan.pos() + 1;
                self.scan.string()?;
                Ok(Written::Hexadecimal(self.scan.between(start, self.scan.pos() - 1)))
            }
            Some('[') => {
                let (mut sizes, mut elements) = (Vec::new(), Vec::new());
                self.nested_elements(0, &mut sizes, &mut elements)?;
                let sizes = sizes.into_iter().map(Option::unwrap_or_default).collect();
                Ok(Written::List(sizes, elements))
            }
            _ => Ok(Written::One(self.element()?)),
        }
    }

    /// A list in brackets at this depth; `sizes` has what the lists at each depth have so far.
    fn nested_elements(
        &mut self,
        depth: usize,
        sizes: &mut Vec<Option<usize>>,
        elements: &mut Vec<Element<'a>>,
    ) -> Result<()> {
        if depth > MAX_NESTING {
            return Err(self.scan.too_deep());
        }
        if sizes.len() == depth {
            sizes.push(None);
        }
        let start = self.scan.pos();
        self.scan.expect("[")?;
        let mut size = 0;
        let mut ended = self.scan.eat("]");
        while !ended {
            if self.scan.sees("[") {
                self.nested_elements(depth + 1, sizes, elements)?;
            } else if sizes.len() > depth + 1 {
                return Err(self.scan.expected("`[`"));
            } else {
                elements.push(self.element()?);
            }
            size += 1;
            ended = self.scan.eat("]");
            if !ended {
                self.scan.expect(",")?;
            }
        }
        match &mut sizes[depth] {
            Some(other) if *other != size => {
                let detail = format!("a list of {size} beside one of {other}");
                Err(self.scan.error_at(start, detail))
            }
            known => {
                *known = Some(size);
                Ok(())
            }
        }
    }

    fn element(&mut self) -> Result<Element<'a>> {
        self.scan.space();
        let at = self.scan.pos();
        if self.scan.eat("(") {
            let real = self.part()?;
            self.scan.expect(",")?;
            let imaginary = Some(self.part()?);
            self.scan.expect(")")?;
            return Ok(Element { at, real, imaginary });
        }
        Ok(Element { at, real: self.part()?, imaginary: None })
    }

    fn part(&mut self) -> Result<&'a str> {
        let word = self.scan.peek_word();
        if matches!(word, "true" | "false") {
            self.scan.eat_word(word);
            return Ok(word);
        }
        match self.scan.number() {
            "" => Err(self.scan.expected("an element")),
            text => Ok(text),
        }
    }

    fn dense_of(&mut self, written: Written<'a>, ty: Type) -> Result<Dense> {
        let (count, sizes, format) = static_tensor(&ty)?;
        let needed = |bytes: usize| {
            helio_ir::memory::ensure_available(bytes)?;
            Ok::<_, Error>(bytes)
        };
        match written {
            Written::Nothing if count == 0 => Ok(Dense { ty, bytes: [].into(), is_splat: false }),
            Written::Nothing => Err(Error::invalid(format!("no elements for {ty}"))),
            Written::One(element) => {
                let mut bytes = Vec::new();
                self.encode(&format, element, &mut bytes)?;
                Ok(Dense { ty, bytes: bytes.into(), is_splat: true })
            }
            Written::List(found, elements) => {
                // An empty list shows no sizes behind the empty one.
                let same = found == sizes || count == 0 && elements.is_empty();
                if !same {
                    let detail = format!("elements of sizes {found:?} for {ty}");
                    return Err(Error::invalid(detail));
                }
                let mut bytes = Vec::with_capacity(needed(count.saturating_mul(format.bytes()))?);
                for element in elements {
                    self.encode(&format, element, &mut bytes)?;
                }
                Ok(Dense { ty, bytes: bytes.into(), is_splat: false })
            }
            Written::Hexadecimal(text) => {
                needed(text.len() / 2)?;
                let raw = unhex(text)?;
                let (bytes, is_splat) = unpack(raw, count, &format, &ty)?;
                Ok(Dense { ty, bytes: bytes.into(), is_splat })
            }
        }
    }

    fn encode(&self, format: &Format, element: Element<'a>, bytes: &mut Vec<u8>) -> Result<()> {
        let wrong = |what: &str| {
            self.scan.error_at(element.at, format!("`{what}` is no value of {}", format.name()))
        };
        let mut put = |text: &str, part: &Format| {
            let bits = part.bits_of(text).ok_or_else(|| wrong(text))?;
            bytes.extend_from_slice(&bits.to_le_bytes()[..part.bytes()]);
            Ok(())
        };
        match (format, element.imaginary) {
            (Format::Complex(part), Some(imaginary)) => {
                put(element.real, part)?;
                put(imaginary, part)
            }
            (Format::Complex(_), None) | (_, Some(_)) => Err(wrong(element.real)),
            (real, None) => put(element.real, real),
        }
    }

    /// After `dense_resource`.
    pub(super) fn dense_resource(&mut self) -> Result<Attribute> {
        let start = self.scan.pos();
        self.scan.expect("<")?;
        let key = if self.scan.sees("\"") {
            self.scan.string()?
        } else {
            self.scan.space();
            self.scan.suffix("the name of a resource")?.to_owned()
        };
        self.scan.expect(">")?;
        self.scan.expect(":")?;
        let ty = self.ty()?;
        let Some(text) = self.resources.get(&key).copied() else {
            return Ok(Attribute::DenseResource { key, ty });
        };
        let dense = || {
            let (count, _, format) = static_tensor(&ty)?;
            helio_ir::memory::ensure_available(text.len() / 2)?;
            // The alignment comes first, in four bytes.
            let mut raw = unhex(text)?;
            if raw.len() < 4 {
                return Err(Error::invalid("a resource without its alignment"));
            }
            unpack(raw.split_off(4), count, &format, &ty)
        };
        let (bytes, is_splat) = dense().map_err(|e| e.at(Some(self.scan.location(start))))?;
        Ok(Attribute::Dense(Dense { ty, bytes: bytes.into(), is_splat }))
    }

    /// `{-# dialect_resources: { builtin: { key: "0x…" } } #-}`: keeps the bytes of resources.
    pub(super) fn file_metadata(&mut self) -> Result<()> {
        self.scan.expect("{-#")?;
        while !self.scan.eat("#-}") {
            let section = self.scan.word("a section")?;
            self.scan.expect(":")?;
            self.scan.expect("{")?;
            if section != "dialect_resources" {
                self.scan.balanced()?;
                self.scan.expect("}")?;
            } else {
                self.list("}", |parser| {
                    parser.scan.word("a dialect")?;
                    parser.scan.expect(":")?;
                    parser.scan.expect("{")?;
                    parser.list("}", Self::resource)
                })?;
            }
            self.scan.eat(",");
        }
        Ok(())
    }

    fn resource(&mut self) -> Result<()> {
        let key = if self.scan.sees("\"") {
            self.scan.string()?
        } else {
            self.scan.space();
            self.scan.suffix("the name of a resource")?.to_owned()
        };
        self.scan.expect(":")?;
        self.scan.space();
        let start = self.scan.pos() + 1;
        self.scan.string()?;
        self.resources.insert(key, self.scan.between(start, self.scan.pos() - 1));
        Ok(())
    }
}

/// How an element is written in bytes.
enum Format {
    Truth,
    Integer { width: u32, signed: bool },
    Float(FloatType),
    Complex(Box<Format>),
}

impl Format {
    fn of(ty: &Type) -> Option<Format> {
        match ty {
            Type::Integer { width: 1, .. } => Some(Format::Truth),
            Type::Integer { width, sign } if *width <= 64 => {
                Some(Format::Integer { width: *width, signed: is_signed(*sign) })
            }
            Type::Index => Some(Format::Integer { width: 64, signed: true }),
            Type::Float(float) if float.bits() <= 64 => Some(Format::Float(*float)),
            Type::Complex(part) => match Format::of(part)? {
                Format::Complex(_) => None,
                part => Some(Format::Complex(Box::new(part))),
            },
            Type::Quantized(quantized) => Format::of(&quantized.storage),
            _ => None,
        }
    }

    fn name(&self) -> String {
        match self {
            Format::Truth => "i1".to_owned(),
            Format::Integer { width, signed } => {
                format!("{}{width}", if *signed { "i" } else { "ui" })
            }
            Format::Float(float) => float.name().to_owned(),
            Format::Complex(part) => format!("complex<{}>", part.name()),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Format::Truth => 1,
            Format::Integer { width, .. } => (*width as usize).div_ceil(8),
            Format::Float(float) => (float.bits() as usize).div_ceil(8),
            Format::Complex(part) => 2 * part.bytes(),
        }
    }

    /// The bits of a number that is not complex.
    fn bits_of(&self, text: &str) -> Option<u64> {
        match self {
            Format::Truth => match text {
                "true" | "1" | "-1" => Some(1),
                "false" | "0" => Some(0),
                _ => None,
            },
            Format::Integer { width, signed } => {
                let value = match text {
                    "true" => 1,
                    "false" => 0,
                    text => integer(text)?,
                };
                // Hexadecimal notation gives the bits of a negative number, too.
                let low = if *signed { -(1i128 << (width - 1)) } else { 0 };
                let above = match *signed && hexadecimal(text).is_none() {
                    true => 1i128 << (width - 1),
                    false => 1i128 << width,
                };
                (low..above).contains(&value).then_some(value as u64)
            }
            Format::Float(float) => match hexadecimal(text) {
                Some(bits) if bits >> float.bits() == 0 => Some(bits as u64),
                Some(_) => None,
                None => float_bits(text.parse().ok()?, *float),
            },
            Format::Complex(_) => None,
        }
    }
}

/// Element count, sizes and format of a tensor of static size.
fn static_tensor(ty: &Type) -> Result<(usize, Vec<usize>, Format)> {
    let needs =
        || Error::invalid(format!("dense elements of type {ty}; a static tensor is needed"));
    let tensor = ty.as_tensor().ok_or_else(needs)?;
    let sizes = tensor.dims.iter().map(|dim| usize::try_from((*dim)?).ok());
    let sizes: Vec<usize> = sizes.collect::<Option<_>>().ok_or_else(needs)?;
    let count = sizes.iter().try_fold(1usize, |n, &size| n.checked_mul(size));
    let count = count.filter(|&n| n <= isize::MAX as usize / 16).ok_or_else(needs)?;
    let format = Format::of(&tensor.element).ok_or_else(|| {
        Error::unimplemented(format!("dense elements of type {}", tensor.element))
    })?;
    Ok((count, sizes, format))
}

/// `0x…` as bits; `None` if it is not hexadecimal.
pub(super) fn hexadecimal(text: &str) -> Option<u128> {
    u128::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// A decimal or hexadecimal integer.
pub(super) fn integer(text: &str) -> Option<i128> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let magnitude = match hexadecimal(digits) {
        Some(bits) => i128::try_from(bits).ok()?,
        None => digits.parse().ok()?,
    };
    Some(sign * magnitude)
}

/// The value with these bits.
pub(crate) fn float_of_bits(bits: u128, float: FloatType) -> Option<f64> {
    if bits >> float.bits() != 0 {
        return None;
    }
    match float.element() {
        Some(element) => {
            dispatch_type!(element, T => Some(<T as Native>::from_bits(bits).to_number().to_f64()))
        }
        None => six_bits(float).map(|mantissa| value_of_six(bits as u8, mantissa)),
    }
}

/// The bits of the value of this format that is nearest, ties to even.
fn float_bits(value: f64, float: FloatType) -> Option<u64> {
    if let Some(element) = float.element() {
        let number = Number::Float(value);
        if element == ElementType::F8E8M0FNU && value == 0.0 {
            // It has no zero; MLIR takes its least number.
            return Some(0);
        }
        return Some(dispatch_type!(element, T => Native::to_bits(T::from_number(number))) as u64);
    }
    let mantissa = six_bits(float)?;
    let distance = |code: u8| (value_of_six(code, mantissa) - value).abs();
    let codes = (0..64u8).filter(|&code| (code >> 5 == 1) == value.is_sign_negative());
    let nearest =
        codes.min_by(|&a, &b| distance(a).total_cmp(&distance(b)).then((a & 1).cmp(&(b & 1))));
    nearest.filter(|_| value.is_finite()).map(u64::from)
}

/// The mantissa bits of a six-bit format.
fn six_bits(float: FloatType) -> Option<u32> {
    match float {
        FloatType::F6E2M3FN => Some(3),
        FloatType::F6E3M2FN => Some(2),
        _ => None,
    }
}

/// The value of a code of a six-bit format, which has no infinities and no NaN.
fn value_of_six(code: u8, mantissa_bits: u32) -> f64 {
    let exponent_bits = 5 - mantissa_bits;
    let bias = (1 << (exponent_bits - 1)) - 1;
    let exponent = i32::from(code & 31) >> mantissa_bits;
    let fraction = f64::from(code & ((1 << mantissa_bits) - 1)) / f64::from(1 << mantissa_bits);
    let magnitude = match exponent {
        0 => fraction * 2f64.powi(1 - bias),
        _ => (1.0 + fraction) * 2f64.powi(exponent - bias),
    };
    if code & 32 != 0 { -magnitude } else { magnitude }
}

/// The bytes that `0x…` spells.
fn unhex(text: &str) -> Result<Vec<u8>> {
    let bad =
        || Error::invalid("a string of bytes is written `0x` and pairs of hexadecimal digits");
    let digits = text.strip_prefix("0x").filter(|digits| digits.len() % 2 == 0).ok_or_else(bad)?;
    let digit = |byte: u8| (byte as char).to_digit(16).ok_or_else(bad);
    let pairs = digits.as_bytes().chunks_exact(2);
    pairs.map(|pair| Ok((digit(pair[0])? * 16 + digit(pair[1])?) as u8)).collect()
}

/// Bytes as MLIR has them in memory, as those of [`Dense`], and whether they are one element for
/// all.
fn unpack(raw: Vec<u8>, count: usize, format: &Format, ty: &Type) -> Result<(Vec<u8>, bool)> {
    let size = format.bytes();
    if Some(raw.len()) == count.checked_mul(size) {
        let is_truth = matches!(format, Format::Truth);
        return match is_truth && raw.iter().any(|&byte| byte > 1) {
            // Eight elements, or one, whose bits are packed.
            true if count == 1 => Ok((vec![raw[0] & 1], false)),
            true => Err(Error::invalid(format!("bytes other than 0 and 1 for {ty}"))),
            false => Ok((raw, false)),
        };
    }
    if matches!(format, Format::Truth) {
        if raw.len() == 1 && matches!(raw[0], 0 | 0xff) {
            return Ok((vec![raw[0] & 1], true));
        }
        if raw.len() == count.div_ceil(8) {
            return Ok(((0..count).map(|i| raw[i / 8] >> (i % 8) & 1).collect(), false));
        }
    }
    if raw.len() == size {
        return Ok((raw, true));
    }
    let detail = format!("{} bytes for {ty}, which needs {count} times {size}", raw.len());
    Err(Error::invalid(detail))
}
