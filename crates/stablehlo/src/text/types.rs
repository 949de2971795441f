//! Types in MLIR text, read.

use helio_ir::Result;

use super::Parser;
use crate::mlir::{FloatType, Quantized, Signedness, TensorType, Type};

/// What the bounds of a tensor's dimensions stand in, now and in older versions.
const BOUNDS: [&str; 3] =
    ["#stablehlo.bounds<", "#stablehlo.type_extensions<", "#mhlo.type_extensions<"];

impl Parser<'_> {
    /// A type, also a function type.
    pub(super) fn ty(&mut self) -> Result<Type> {
        self.nested(Self::ty_here)
    }

    fn ty_here(&mut self) -> Result<Type> {
        if self.scan.sees("(") {
            let inputs = self.type_list_in_parentheses()?;
            self.scan.expect("->")?;
            let results = self.result_types()?;
            return Ok(Type::Function { inputs, results });
        }
        if self.scan.eat("!") {
            return self.dialect_type();
        }
        let start = self.scan.pos();
        let word = self.scan.peek_word();
        if let Some(ty) = scalar(word) {
            self.scan.eat_word(word);
            return Ok(ty);
        }
        match word {
            "tensor" => {
                self.scan.eat_word(word);
                self.scan.expect("<")?;
                let ty = self.tensor()?;
                self.scan.expect(">")?;
                Ok(ty)
            }
            "complex" => {
                self.scan.eat_word(word);
                self.scan.expect("<")?;
                let part = self.ty()?;
                self.scan.expect(">")?;
                Ok(Type::Complex(Box::new(part)))
            }
            "tuple" => {
                self.scan.eat_word(word);
                self.scan.expect("<")?;
                let elements = self.list(">", Self::ty)?;
                Ok(Type::Tuple(elements))
            }
            "" => Err(self.scan.expected("a type")),
            _ => Err(self.scan.error_at(start, format!("unknown type `{word}`"))),
        }
    }

    /// `(a, b)`
    pub(super) fn type_list_in_parentheses(&mut self) -> Result<Vec<Type>> {
        self.scan.expect("(")?;
        self.list(")", Self::ty)
    }

    /// What follows `->`: one type, or some in parentheses.
    pub(super) fn result_types(&mut self) -> Result<Vec<Type>> {
        if self.scan.sees("(") { self.type_list_in_parentheses() } else { Ok(vec![self.ty()?]) }
    }

    /// After `tensor<`.
    fn tensor(&mut self) -> Result<Type> {
        if self.scan.eat("*") {
            self.scan.expect("x")?;
            return Ok(Type::UnrankedTensor(Box::new(self.ty()?)));
        }
        let mut dims = Vec::new();
        loop {
            if self.scan.eat("?") {
                dims.push(None);
            } else if self.scan.peek().is_some_and(|c| c.is_ascii_digit()) {
                dims.push(Some(self.scan.unsigned("the size of a dimension")?));
            } else {
                break;
            }
            self.scan.expect("x")?;
        }
        let element = Box::new(self.ty()?);
        let mut tensor = TensorType { dims, element, bounds: Vec::new(), encoding: None };
        if self.scan.eat(",") {
            let start = self.scan.pos();
            let prefix = BOUNDS.into_iter().find(|prefix| self.scan.eat(prefix));
            match prefix {
                Some(prefix) => {
                    tensor.bounds = self.bounds(prefix)?;
                    if tensor.bounds.len() != tensor.dims.len() {
                        let detail = format!(
                            "{} bounds for {} dimensions; one for each",
                            tensor.bounds.len(),
                            tensor.dims.len()
                        );
                        return Err(self.scan.error_at(start, detail));
                    }
                }
                None => tensor.encoding = Some(Box::new(self.attribute()?)),
            }
        }
        Ok(Type::Tensor(tensor))
    }

    /// The bounds after one of [`BOUNDS`], the first of which is followed by the list itself.
    fn bounds(&mut self, prefix: &str) -> Result<Vec<Option<u64>>> {
        if prefix == BOUNDS[0] {
            return self.list(">", Self::bound);
        }
        self.scan.expect_word("bounds")?;
        self.scan.expect("=")?;
        self.scan.expect("[")?;
        let bounds = self.list("]", Self::bound)?;
        self.scan.expect(">")?;
        Ok(bounds)
    }

    fn bound(&mut self) -> Result<Option<u64>> {
        if self.scan.eat("?") { Ok(None) } else { self.scan.unsigned("a bound").map(Some) }
    }

    /// After `!`.
    fn dialect_type(&mut self) -> Result<Type> {
        let start = self.scan.pos();
        let name = self.scan.suffix("the name of a type")?;
        match name {
            "stablehlo.token" | "mhlo.token" => return Ok(Type::Token),
            "quant.uniform" => {
                self.scan.expect("<")?;
                let quantized = self.quantized()?;
                self.scan.expect(">")?;
                return Ok(Type::Quantized(Box::new(quantized)));
            }
            _ => {}
        }
        if !name.contains('.') {
            return self.type_alias(name, start);
        }
        let mut text = format!("!{name}");
        if self.scan.rest().starts_with('<') {
            self.scan.expect("<")?;
            text += &format!("<{}>", self.scan.balanced()?);
            self.scan.expect(">")?;
        }
        Ok(Type::Other(text))
    }

    /// After `!quant.uniform<`.
    fn quantized(&mut self) -> Result<Quantized> {
        let storage = match self.scan.word("the storage type")? {
            word if word.starts_with(['i', 'u']) && word[1..].parse::<u32>().is_ok() => {
                let width = word[1..].parse().unwrap_or(0);
                let is_signed = word.starts_with('i');
                let sign = if is_signed { Signedness::Signless } else { Signedness::Unsigned };
                Type::Integer { width, sign }
            }
            word => return Err(self.scan.error(format!("`{word}` is no storage type"))),
        };
        let mut quantized = Quantized {
            storage,
            expressed: Type::None,
            storage_min: None,
            storage_max: None,
            axis: None,
            scales: Vec::new(),
            zero_points: Vec::new(),
        };
        if self.scan.eat("<") {
            quantized.storage_min = Some(self.scan.integer("the smallest stored value")?);
            self.scan.expect(":")?;
            quantized.storage_max = Some(self.scan.integer("the largest stored value")?);
            self.scan.expect(">")?;
        }
        self.scan.expect(":")?;
        quantized.expressed = self.ty()?;
        if self.scan.eat(":") {
            if self.scan.sees("{") {
                let detail = "quantization by blocks of several dimensions";
                return Err(super::unimplemented(&mut self.scan, detail));
            }
            quantized.axis = Some(self.scan.unsigned("the dimension of the scales")? as usize);
        }
        self.scan.expect(",")?;
        let parameters =
            if self.scan.eat("{") { self.list("}", Self::scale)? } else { vec![self.scale()?] };
        (quantized.scales, quantized.zero_points) = parameters.into_iter().unzip();
        Ok(quantized)
    }

    /// `0.5:-3`
    fn scale(&mut self) -> Result<(f64, i64)> {
        let text = self.scan.number();
        let scale = text.parse().map_err(|_| self.scan.expected("a scale"))?;
        let zero_point = if self.scan.eat(":") { self.scan.integer("a zero point")? } else { 0 };
        Ok((scale, zero_point))
    }
}

/// The type that a word alone names.
fn scalar(word: &str) -> Option<Type> {
    if let Some(float) = FloatType::from_name(word) {
        return Some(Type::Float(float));
    }
    match word {
        "index" => return Some(Type::Index),
        "none" => return Some(Type::None),
        _ => {}
    }
    let (sign, digits) = if let Some(digits) = word.strip_prefix("ui") {
        (Signedness::Unsigned, digits)
    } else if let Some(digits) = word.strip_prefix("si") {
        (Signedness::Signed, digits)
    } else {
        (Signedness::Signless, word.strip_prefix('i')?)
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    Some(Type::Integer { width: digits.parse().ok().filter(|_| is_number)?, sign })
}
