//! The pretty forms of operations without regions.

use helio_ir::Result;

use super::operation::Written;
use super::{Parser, unimplemented};
use crate::mlir::{Attribute, Type};

impl Parser<'_> {
    /// An operation that begins with its name, and that has this number of names for its results.
    pub(super) fn pretty(&mut self, count: usize) -> Result<Written> {
        self.scan.space();
        let start = self.scan.pos();
        let name = self.scan.word("an operation")?;
        let name = match name {
            "return" => "func.return",
            "call" => "func.call",
            name => name,
        };
        if let Some(sdy) = name.strip_prefix("sdy.") {
            return match self.sdy(sdy)? {
                Some(written) => Ok(written),
                None => Err(unimplemented(&mut self.scan, &format!("the text of {name}"))),
            };
        }
        let known = ["stablehlo.", "chlo.", "check.", "func.", "interpreter.", "mhlo."];
        if !known.iter().any(|dialect| name.starts_with(dialect)) {
            return Err(self.scan.error_at(start, format!("unknown operation `{name}`")));
        }
        let mut written = Written::new(name);
        match name {
            "func.func" => return self.function(),
            "stablehlo.constant" | "chlo.constant" | "mhlo.constant" => {
                return self.constant(written);
            }
            "check.expect_eq_const" | "check.expect_almost_eq_const" => {
                return self.expect_const(written);
            }
            "stablehlo.while" => return self.while_loop(written),
            "stablehlo.reduce" => return self.reduce(written),
            "chlo.scan" => return self.scan_op(written, count),
            _ => self.operands_and_attributes(name, &mut written)?,
        }
        self.tail(&mut written, count)?;
        Ok(written)
    }

    /// What stands between the name of an operation and its attributes in braces.
    fn operands_and_attributes(&mut self, name: &str, written: &mut Written) -> Result<()> {
        match name {
            "func.call" => {
                let callee = Attribute::Symbol(self.symbol()?);
                written.op.attributes.push(("callee".to_owned(), callee));
                self.operands_in_parentheses(written)?;
            }
            "stablehlo.compare" => self.compare(written)?,
            "stablehlo.slice" => self.slice(written)?,
            "stablehlo.get_tuple_element" => {
                written.op.operands = vec![self.value()?];
                self.scan.expect("[")?;
                let index = self.scan.unsigned("the number of an element")?;
                self.scan.expect("]")?;
                written.op.attributes.push(("index".to_owned(), Attribute::i64(index as i64)));
            }
            "stablehlo.custom_call" => {
                let target = Attribute::String(self.symbol()?.join("::"));
                written.op.attributes.push(("call_target_name".to_owned(), target));
                self.operands_in_parentheses(written)?;
            }
            "stablehlo.composite" => {
                let name = Attribute::String(self.scan.string()?);
                written.op.attributes.push(("name".to_owned(), name));
                written.op.operands = self.values()?;
            }
            "stablehlo.convolution" | "stablehlo.dynamic_conv" => {
                self.operands_in_parentheses(written)?;
                self.convolution(written)?;
            }
            "chlo.top_k" => {
                self.scan.expect("(")?;
                written.op.operands = vec![self.value()?];
                self.items(written)?;
                self.scan.expect(")")?;
            }
            _ => {
                written.op.operands = self.values()?;
                self.items(written)?;
            }
        }
        Ok(())
    }

    fn operands_in_parentheses(&mut self, written: &mut Written) -> Result<()> {
        self.scan.expect("(")?;
        written.op.operands = self.list(")", Self::value)?;
        Ok(())
    }

    /// `{attributes} : types`, in any of the forms that say what an operation takes and gives:
    /// `(a, b) -> c`, `a, b -> c`, or the types of the results alone.
    pub(super) fn tail(&mut self, written: &mut Written, count: usize) -> Result<()> {
        if self.scan.sees("{") {
            written.op.attributes.extend(self.dictionary()?);
        }
        self.scan.space();
        let start = self.scan.pos();
        if !self.scan.eat(":") {
            if !written.op.operands.is_empty() || count > 0 {
                return Err(self.scan.expected("`:` and types"));
            }
            return Ok(());
        }
        let mut types = vec![self.ty()?];
        while self.scan.eat(",") {
            types.push(self.ty()?);
        }
        let operands = written.op.operands.clone();
        if let [Type::Function { inputs, results }] = &mut types[..] {
            written.results = std::mem::take(results);
            let inputs = std::mem::take(inputs);
            return self.check_types(&operands, &inputs, start);
        }
        if self.scan.eat("->") {
            written.results = self.result_types()?;
            return self.check_types(&operands, &types, start);
        }
        written.results = match types.len() {
            n if n == count && (n != 1 || operands.is_empty()) => types,
            _ if count == 0 => {
                if types.len() == operands.len() {
                    self.check_types(&operands, &types, start)?;
                }
                Vec::new()
            }
            _ if count == 1 => vec![types.swap_remove(types.len() - 1)],
            n => {
                let detail = format!("{n} types for {count} results");
                return Err(self.scan.error_at(start, detail));
            }
        };
        Ok(())
    }

    /// `{…} dense<…> : type`, or `() {value = dense<…>} : () -> type`
    fn constant(&mut self, mut written: Written) -> Result<Written> {
        if self.scan.eat("(") {
            self.scan.expect(")")?;
            if self.scan.eat("<") {
                written.op.attributes = self.dictionary()?;
                self.scan.expect(">")?;
            }
            self.tail(&mut written, 1)?;
            return Ok(written);
        }
        if self.scan.sees("{") {
            written.op.attributes = self.dictionary()?;
        }
        let value = self.attribute()?;
        written.results = match &value {
            Attribute::Dense(dense) => vec![dense.ty.clone()],
            Attribute::DenseResource { ty, .. } => vec![ty.clone()],
            _ => return Err(self.scan.error("the value of a constant is `dense<…>`")),
        };
        written.op.attributes.push(("value".to_owned(), value));
        Ok(written)
    }

    /// `%x, dense<…> : type {…}`
    fn expect_const(&mut self, mut written: Written) -> Result<Written> {
        written.op.operands = vec![self.value()?];
        self.scan.expect(",")?;
        let value = self.attribute()?;
        written.op.attributes.push(("value".to_owned(), value));
        if self.scan.sees("{") {
            written.op.attributes.extend(self.dictionary()?);
        }
        Ok(written)
    }

    /// `LT, %a, %b, FLOAT`
    fn compare(&mut self, written: &mut Written) -> Result<()> {
        let mut word = |parser: &mut Self, kind: &str| {
            let word = parser.scan.word("a word")?;
            let value = Attribute::word("stablehlo", kind, word);
            let name = if kind == "comparison_type" { "compare_type" } else { kind };
            written.op.attributes.push((name.to_owned(), value));
            Ok::<_, helio_ir::Error>(())
        };
        word(self, "comparison_direction")?;
        self.scan.expect(",")?;
        let operands = self.values()?;
        if self.scan.eat(",") {
            word(self, "comparison_type")?;
        }
        written.op.operands = operands;
        Ok(())
    }

    /// `%x [0:4, 1:9:2]`
    fn slice(&mut self, written: &mut Written) -> Result<()> {
        written.op.operands = vec![self.value()?];
        self.scan.expect("[")?;
        let (mut starts, mut limits, mut strides) = (Vec::new(), Vec::new(), Vec::new());
        self.list("]", |parser| {
            starts.push(parser.scan.integer("the first index")?);
            parser.scan.expect(":")?;
            limits.push(parser.scan.integer("the end")?);
            let has_stride = parser.scan.eat(":");
            strides.push(if has_stride { parser.scan.integer("the distance")? } else { 1 });
            Ok(())
        })?;
        for (name, list) in
            [("start_indices", starts), ("limit_indices", limits), ("strides", strides)]
        {
            written.op.attributes.push((name.to_owned(), Attribute::Integers(list)));
        }
        Ok(())
    }
}
