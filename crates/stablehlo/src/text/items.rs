//! What stands between the operands of a pretty form and its types: `, dims = [0, 1]`.

use helio_ir::Result;

use super::Parser;
use super::operation::Written;
use crate::mlir::{Attribute, Dense, Field, TensorType, Type};

impl Parser<'_> {
    /// `, key = value` until something else comes.
    pub(super) fn items(&mut self, written: &mut Written) -> Result<()> {
        // What has no operands begins without a comma; or there is nothing but its location.
        let word = self.scan.peek_word();
        let mut is_first = written.op.operands.is_empty() && !word.is_empty() && word != "loc";
        while std::mem::take(&mut is_first) || self.scan.eat(",") {
            self.scan.space();
            let start = self.scan.pos();
            let key = self.scan.word("an attribute")?;
            self.scan.expect("=")?;
            let op = written.op.name.split_once('.').map_or("", |(_, op)| op);
            let fields = self.item(op, key)?;
            let attributes = &mut written.op.attributes;
            for (name, value) in fields {
                merge(attributes, name, value)
                    .map_err(|detail| self.scan.error_at(start, detail))?;
            }
        }
        Ok(())
    }

    /// The attributes that `key =` of this operation gives.
    fn item(&mut self, op: &str, key: &str) -> Result<Vec<Field>> {
        let integers = |parser: &mut Self, name: &str| {
            Ok(vec![(name.to_owned(), Attribute::Integers(parser.integers()?))])
        };
        let integer = |parser: &mut Self, name: &str| {
            let value = parser.scan.integer("an integer")?;
            Ok(vec![(name.to_owned(), Attribute::i64(value))])
        };
        match (op, key) {
            ("broadcast_in_dim" | "dynamic_broadcast_in_dim", "dims") => {
                integers(self, "broadcast_dimensions")
            }
            ("transpose", "dims") => integers(self, "permutation"),
            (_, "dims") => integers(self, "dimensions"),
            ("broadcast", "sizes") => integers(self, "broadcast_sizes"),
            (_, "sizes") => integers(self, "slice_sizes"),
            ("iota" | "dynamic_iota", "dim") => integer(self, "iota_dimension"),
            (_, "dim") => integer(self, "dimension"),
            (_, "low" | "high") => integers(self, &format!("edge_padding_{key}")),
            (_, "interior") => integers(self, "interior_padding"),
            ("einsum" | "unary_einsum", "config") => {
                Ok(vec![("einsum_config".to_owned(), self.untyped()?)])
            }
            ("fft", "length") => integers(self, "fft_length"),
            ("fft", "type") => self.word_item("fft_type", "fft_type"),
            (_, "distribution") => self.word_item("rng_distribution", "rng_distribution"),
            ("rng_bit_generator", "algorithm") => self.word_item("rng_algorithm", "rng_algorithm"),
            ("reduce_precision", "format") => self.float_format(),
            (_, "batching_dims") => self.pair_of_lists("batching"),
            (_, "contracting_dims") => self.pair_of_lists("contracting"),
            (_, "precision") => {
                self.scan.expect("[")?;
                let words = self.list("]", |parser| {
                    let word = parser.scan.word("a precision")?;
                    Ok(Attribute::word("stablehlo", "precision", word))
                })?;
                Ok(vec![("precision_config".to_owned(), Attribute::Array(words))])
            }
            (_, "algorithm") => {
                self.scan.expect("<")?;
                let fields = self.list(">", Self::algorithm_field)?;
                let [dialect, name] = ["stablehlo", "dot_algorithm"].map(str::to_owned);
                Ok(vec![(key.to_owned(), Attribute::Struct { dialect, name, fields })])
            }
            _ => Ok(vec![(key.to_owned(), self.untyped()?)]),
        }
    }

    /// An attribute; after a number or a string, `:` begins the types of the operation.
    fn untyped(&mut self) -> Result<Attribute> {
        match self.scan.peek() {
            Some('"') => Ok(Attribute::String(self.scan.string()?)),
            Some('-' | '0'..='9') => self.untyped_number(),
            _ => self.attribute(),
        }
    }

    fn word_item(&mut self, name: &str, kind: &str) -> Result<Vec<Field>> {
        let word = self.scan.word("a word")?;
        Ok(vec![(name.to_owned(), Attribute::word("stablehlo", kind, word))])
    }

    fn algorithm_field(&mut self) -> Result<Field> {
        let name = self.scan.word("the name of a field")?.to_owned();
        self.scan.expect("=")?;
        Ok((name, self.attribute()?))
    }

    /// `e5m10`
    fn float_format(&mut self) -> Result<Vec<Field>> {
        let word = self.scan.word("a format like `e5m10`")?;
        let parts = word.strip_prefix('e').and_then(|rest| rest.split_once('m'));
        let bits = parts.and_then(|(e, m)| Some((e.parse().ok()?, m.parse().ok()?)));
        let (exponent, mantissa): (i64, i64) =
            bits.ok_or_else(|| self.scan.error(format!("`{word}` is no format like `e5m10`")))?;
        Ok(vec![
            ("exponent_bits".to_owned(), Attribute::i64(exponent)),
            ("mantissa_bits".to_owned(), Attribute::i64(mantissa)),
        ])
    }

    /// `[0] x [1]`, as fields of `dot_dimension_numbers`.
    fn pair_of_lists(&mut self, kind: &str) -> Result<Vec<Field>> {
        let lhs = Attribute::Integers(self.integers()?);
        self.scan.expect("x")?;
        let rhs = Attribute::Integers(self.integers()?);
        let fields =
            vec![(format!("lhs_{kind}_dimensions"), lhs), (format!("rhs_{kind}_dimensions"), rhs)];
        let [dialect, name] = ["stablehlo", "dot"].map(str::to_owned);
        let dims = Attribute::Struct { dialect, name, fields };
        Ok(vec![("dot_dimension_numbers".to_owned(), dims)])
    }

    /// After the operands of a convolution: `dim_numbers = […]x[…]->[…], window = {…}`
    pub(super) fn convolution(&mut self, written: &mut Written) -> Result<()> {
        self.scan.expect_word("dim_numbers")?;
        self.scan.expect("=")?;
        let fields = self.conv_dims()?;
        let [dialect, name] = ["stablehlo", "conv"].map(str::to_owned);
        let dims = Attribute::Struct { dialect, name, fields };
        written.op.attributes.push(("dimension_numbers".to_owned(), dims));
        if !self.scan.eat(",") {
            return Ok(());
        }
        self.scan.expect_word("window")?;
        self.scan.expect("=")?;
        self.scan.expect("{")?;
        let fields = self.list("}", Self::window_field)?;
        written.op.attributes.extend(fields);
        Ok(())
    }

    fn window_field(&mut self) -> Result<Field> {
        self.scan.space();
        let start = self.scan.pos();
        let key = self.scan.word("an attribute of the window")?;
        self.scan.expect("=")?;
        let (name, value) = match key {
            "stride" => ("window_strides", Attribute::Integers(self.integers()?)),
            "lhs_dilate" => ("lhs_dilation", Attribute::Integers(self.integers()?)),
            "rhs_dilate" => ("rhs_dilation", Attribute::Integers(self.integers()?)),
            "reverse" => {
                self.scan.expect("[")?;
                ("window_reversal", Attribute::Bools(self.list("]", Self::truth)?))
            }
            "pad" => {
                self.scan.expect("[")?;
                let pairs = self.list("]", Self::integers)?;
                if pairs.iter().any(|pair| pair.len() != 2) {
                    return Err(self.scan.error_at(start, "padding is written `[[low, high], …]`"));
                }
                ("padding", pairs_of_integers(&pairs))
            }
            _ => return Err(self.scan.error_at(start, format!("a window has no `{key}`"))),
        };
        Ok((name.to_owned(), value))
    }
}

/// `dense<[[a, b], …]> : tensor<Nx2xi64>`
fn pairs_of_integers(pairs: &[Vec<i64>]) -> Attribute {
    Attribute::Dense(Dense {
        ty: Type::Tensor(TensorType::new([pairs.len() as u64, 2], Type::signless(64))),
        bytes: pairs.iter().flatten().flat_map(|value| value.to_le_bytes()).collect(),
        is_splat: false,
    })
}

/// Adds an attribute; the fields of two structures of one name become those of one. Errors: what is
/// wrong, if there is another attribute of the name.
fn merge(
    attributes: &mut Vec<Field>,
    name: String,
    value: Attribute,
) -> std::result::Result<(), String> {
    let Some((_, old)) = attributes.iter_mut().find(|(n, _)| *n == name) else {
        attributes.push((name, value));
        return Ok(());
    };
    match (old, value) {
        (Attribute::Struct { fields, .. }, Attribute::Struct { fields: more, .. }) => {
            fields.extend(more);
            Ok(())
        }
        _ => Err(format!("attribute `{name}` is given twice")),
    }
}
