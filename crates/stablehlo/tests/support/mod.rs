//! Modules in a form in which those that mean the same are equal.

use std::collections::HashMap;
use std::fmt::Write as _;

use helio_stablehlo::mlir::{Attribute, Block, Module, Operation, ValueId};

/// The module as text, without locations: values are numbered as they are defined, attributes
/// stand alphabetically.
pub fn canonical(module: &Module) -> String {
    let mut printer = Printer { module, numbers: HashMap::new(), text: String::new() };
    let mut attributes = module.attributes.clone();
    attributes.sort_by(|a, b| a.0.cmp(&b.0));
    let _ = writeln!(printer.text, "module {:?} {attributes:?}", module.name);
    for operation in &module.operations {
        printer.operation(operation, 1);
    }
    printer.text
}

struct Printer<'a> {
    module: &'a Module,
    numbers: HashMap<ValueId, usize>,
    text: String,
}

impl Printer<'_> {
    fn define(&mut self, values: &[ValueId]) -> Vec<String> {
        let mut names = Vec::new();
        for &value in values {
            let number = self.numbers.len();
            self.numbers.insert(value, number);
            names.push(format!("%{number}: {}", self.module.type_of(value)));
        }
        names
    }

    fn operation(&mut self, operation: &Operation, depth: usize) {
        let operands: Vec<_> =
            operation.operands.iter().map(|value| format!("%{}", self.numbers[value])).collect();
        let results = self.define(&operation.results);
        let mut attributes: Vec<_> =
            operation.attributes.iter().map(|(n, a)| (n.clone(), simple(a.clone()))).collect();
        attributes.sort_by(|a, b| a.0.cmp(&b.0));
        let (indent, name) = ("  ".repeat(depth), &operation.name);
        let _ = writeln!(self.text, "{indent}{name} {operands:?} -> {results:?} {attributes:?}");
        for region in &operation.regions {
            for block in &region.blocks {
                self.block(block, depth + 1);
            }
        }
    }

    fn block(&mut self, block: &Block, depth: usize) {
        let arguments = self.define(&block.arguments);
        let _ = writeln!(self.text, "{}block {arguments:?}", "  ".repeat(depth));
        for operation in &block.operations {
            self.operation(operation, depth + 1);
        }
    }
}

/// One of the forms that an attribute may have.
fn simple(attribute: Attribute) -> Attribute {
    match attribute {
        Attribute::Struct { dialect, name, fields } => {
            let mut fields: Vec<_> = fields.into_iter().map(|(n, a)| (n, simple(a))).collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            fields.retain(|field| field.1 != Attribute::Integers(Vec::new()));
            Attribute::Struct { dialect, name, fields }
        }
        Attribute::Dictionary(mut fields) => {
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            Attribute::Dictionary(fields.into_iter().map(|(n, a)| (n, simple(a))).collect())
        }
        Attribute::Array(elements) => Attribute::Array(elements.into_iter().map(simple).collect()),
        attribute => attribute,
    }
}
