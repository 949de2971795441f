//! Modules and functions in MLIR text, read.

use helio_ir::Result;

use super::Parser;
use super::operation::Written;
use crate::mlir::{Attribute, Module, Operation, Region, Type};

impl<'a> Parser<'a> {
    /// All of the text: a `module`, or operations of a module that is not written.
    pub(super) fn module(mut self) -> Result<Module> {
        let mut modules = 0;
        while !self.scan.at_end() {
            if self.scan.sees("#") || self.scan.sees("!") {
                self.skip_alias()?;
            } else if self.scan.sees("{-#") {
                self.file_metadata()?;
            } else if self.scan.sees_word("module") || self.scan.sees_word("builtin.module") {
                modules += 1;
                if modules > 1 || !self.module.operations.is_empty() {
                    let detail = "a second module; a line `// -----` must come between two";
                    return Err(self.scan.error(detail));
                }
                self.module_here()?;
            } else {
                let op = self.operation()?;
                self.module.operations.push(op);
            }
        }
        Ok(self.module)
    }

    fn module_here(&mut self) -> Result<()> {
        self.scan.word("`module`")?;
        if self.scan.sees("@") {
            self.module.name = Some(self.symbol()?.join("::"));
        }
        if self.scan.eat_word("attributes") {
            self.module.attributes = self.dictionary()?;
        }
        self.scan.expect("{")?;
        while !self.scan.eat("}") {
            if self.scan.sees_word("module") || self.scan.sees_word("builtin.module") {
                return Err(super::unimplemented(&mut self.scan, "a module in a module"));
            }
            let op = self.operation()?;
            self.module.operations.push(op);
        }
        self.trailing_location()?;
        Ok(())
    }

    /// After `func.func`: `private @f(%x: type {…}) -> (type {…}) attributes {…} {…}`
    pub(super) fn function(&mut self) -> Result<Written> {
        let mut written = Written::new("func.func");
        let mut attributes = Vec::new();
        for visibility in ["public", "private", "nested"] {
            if self.scan.eat_word(visibility) {
                let word = Attribute::String(visibility.to_owned());
                attributes.push(("sym_visibility".to_owned(), word));
            }
        }
        let name = self.symbol()?.join("::");
        attributes.push(("sym_name".to_owned(), Attribute::String(name)));
        self.scan.expect("(")?;
        let mut arguments = Vec::new();
        let mut inputs = Vec::new();
        let argument_attributes = self.list(")", |parser| {
            if parser.scan.sees("%") {
                let (name, value, _) = parser.loose_argument()?;
                arguments.push((name, value));
                inputs.push(parser.module.type_of(value).clone());
            } else {
                inputs.push(parser.ty()?);
            }
            let attributes = parser.optional_dictionary()?;
            let location = parser.trailing_location()?;
            if let Some(&(_, value)) = arguments.last() {
                parser.module.locate_argument(value, location);
            }
            Ok(attributes)
        })?;
        let (results, result_attributes) = self.function_results()?;
        attributes.push((
            "function_type".to_owned(),
            Attribute::Type(Type::Function { inputs, results }),
        ));
        for (name, list) in [("arg_attrs", argument_attributes), ("res_attrs", result_attributes)] {
            if list.iter().any(|each| *each != Attribute::Dictionary(Vec::new())) {
                attributes.push((name.to_owned(), Attribute::Array(list)));
            }
        }
        if self.scan.eat_word("attributes") {
            attributes.extend(self.dictionary()?);
        }
        let region = if self.scan.sees("{") {
            // A function sees nothing of what is around it.
            let around = std::mem::take(&mut self.scopes);
            let region = self.region_with(&arguments)?;
            self.scopes = around;
            region
        } else {
            Region::default()
        };
        written.op = Operation { attributes, regions: vec![region], ..written.op };
        Ok(written)
    }

    /// Types of a function's results, and the attributes of each.
    fn function_results(&mut self) -> Result<(Vec<Type>, Vec<Attribute>)> {
        if !self.scan.eat("->") {
            return Ok((Vec::new(), Vec::new()));
        }
        if !self.scan.sees("(") {
            return Ok((vec![self.ty()?], vec![Attribute::Dictionary(Vec::new())]));
        }
        self.scan.expect("(")?;
        let results = self.list(")", |parser| Ok((parser.ty()?, parser.optional_dictionary()?)))?;
        Ok(results.into_iter().unzip())
    }

    /// `{…}` if it comes next, else an empty one.
    pub(super) fn optional_dictionary(&mut self) -> Result<Attribute> {
        let fields = if self.scan.sees("{") { self.dictionary()? } else { Vec::new() };
        Ok(Attribute::Dictionary(fields))
    }
}
