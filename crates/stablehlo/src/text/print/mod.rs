//! Modules as text: functions, constants, calls and element-wise operations in their pretty form, all
//! others in the generic one, and locations by alias behind the module.

mod attribute;
mod dense;

use std::collections::HashMap;
use std::fmt::Write as _;

use helio_ir::{BinaryOp, UnaryOp};

use crate::mlir::{
    Attribute, Block, Field, LocId, Location, Module, Operation, Region, Type, ValueId,
};
use attribute::{symbol, write_attribute, write_fields};

/// The text of a module, which [`parse`](super::parse) reads back.
///
/// ```
/// let text = "func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
///     %0 = stablehlo.tanh %x : tensor<2xf32>
///     return %0 : tensor<2xf32>
/// }";
/// let module = helio_stablehlo::text::parse(text)?;
/// let text = helio_stablehlo::text::print(&module);
/// assert!(text.contains("%1 = stablehlo.tanh %arg0 : tensor<2xf32>"), "{text}");
/// # Ok::<(), helio_ir::Error>(())
/// ```
pub fn print(module: &Module) -> String {
    let mut printer = Printer { module, names: HashMap::new(), text: String::new(), count: 0 };
    printer.module();
    printer.text
}

/// How many blanks a region is indented by.
const INDENT: usize = 2;

struct Printer<'m> {
    module: &'m Module,
    names: HashMap<ValueId, String>,
    text: String,
    /// How many values of the function have a number for a name.
    count: usize,
}

impl Printer<'_> {
    fn module(&mut self) {
        self.text.push_str("module");
        if let Some(name) = &self.module.name {
            let _ = write!(self.text, " @{}", symbol(name));
        }
        if !self.module.attributes.is_empty() {
            self.text.push_str(" attributes ");
            write_fields(&mut self.text, self.module, &self.module.attributes);
        }
        self.text.push_str(" {\n");
        for operation in &self.module.operations {
            self.operation(operation, 1);
        }
        self.text.push_str("}\n");
        for (number, location) in self.module.locations.iter().enumerate().skip(1) {
            let _ = write!(self.text, "#loc{number} = loc(");
            write_location(&mut self.text, self.module, location);
            self.text.push_str(")\n");
        }
    }

    fn line(&mut self, depth: usize) {
        self.text.extend(std::iter::repeat_n(' ', depth * INDENT));
    }

    fn operation(&mut self, operation: &Operation, depth: usize) {
        self.line(depth);
        if operation.name == "func.func" && self.function(operation, depth).is_some() {
            return;
        }
        self.results(&operation.results);
        match operation.name.as_str() {
            "func.return" | "stablehlo.return" | "sdy.return" => self.end(operation),
            "func.call" => self.call(operation),
            "stablehlo.constant" => self.constant(operation),
            name if self.is_plain(operation, name) => {
                let _ = write!(self.text, "{name} ");
                self.uses(&operation.operands);
                let _ = write!(self.text, " : {}", self.module.type_of(operation.results[0]));
            }
            _ => self.generic(operation, depth),
        }
        self.location(operation.location);
        self.text.push('\n');
    }

    /// Whether an operation has the form `%0 = stablehlo.add %x, %y : type`.
    fn is_plain(&self, operation: &Operation, name: &str) -> bool {
        let unary = UnaryOp::ALL.iter().map(|op| op.stablehlo_names());
        let mut names = unary.chain(BinaryOp::ALL.iter().map(|op| op.stablehlo_names()));
        let [result] = operation.results[..] else { return false };
        let ty = self.module.type_of(result);
        operation.attributes.is_empty()
            && operation.operands.iter().all(|&operand| self.module.type_of(operand) == ty)
            && names.any(|names| names.contains(&name) && name.starts_with("stablehlo."))
    }

    /// `%0 = `, or `%0:2 = `
    fn results(&mut self, results: &[ValueId]) {
        if results.is_empty() {
            return;
        }
        let number = self.count;
        self.count += 1;
        if let [result] = results {
            self.names.insert(*result, format!("%{number}"));
            let _ = write!(self.text, "%{number} = ");
            return;
        }
        for (i, &result) in results.iter().enumerate() {
            self.names.insert(result, format!("%{number}#{i}"));
        }
        let _ = write!(self.text, "%{number}:{} = ", results.len());
    }

    fn uses(&mut self, values: &[ValueId]) {
        for (i, value) in values.iter().enumerate() {
            self.text.push_str(if i > 0 { ", " } else { "" });
            self.text.push_str(self.names.get(value).map_or("%undefined", String::as_str));
        }
    }

    /// `type, type`
    fn types(&mut self, values: &[ValueId]) {
        for (i, &value) in values.iter().enumerate() {
            let _ = write!(
                self.text,
                "{}{}",
                if i > 0 { ", " } else { "" },
                self.module.type_of(value)
            );
        }
    }

    fn end(&mut self, operation: &Operation) {
        let name = operation.name.strip_prefix("func.").unwrap_or(&operation.name);
        self.text.push_str(name);
        if !operation.operands.is_empty() {
            self.text.push(' ');
            self.uses(&operation.operands);
            self.text.push_str(" : ");
            self.types(&operation.operands);
        }
    }

    fn call(&mut self, operation: &Operation) {
        match &operation.attributes[..] {
            [(name, Attribute::Symbol(path))] if name == "callee" && path.len() == 1 => {
                let _ = write!(self.text, "call @{}(", symbol(&path[0]));
                self.uses(&operation.operands);
                self.text.push(')');
                self.signature(operation);
            }
            _ => self.generic(operation, 0),
        }
    }

    fn constant(&mut self, operation: &Operation) {
        match &operation.attributes[..] {
            [(name, value @ Attribute::Dense(_))] if name == "value" => {
                self.text.push_str("stablehlo.constant ");
                write_attribute(&mut self.text, self.module, value);
            }
            _ => self.generic(operation, 0),
        }
    }

    /// `"name"(%a, %b) ({regions}) {attributes} : (types) -> types`
    fn generic(&mut self, operation: &Operation, depth: usize) {
        let _ = write!(self.text, "\"{}\"(", operation.name);
        self.uses(&operation.operands);
        self.text.push(')');
        for (i, region) in operation.regions.iter().enumerate() {
            self.text.push_str(if i > 0 { ", " } else { " (" });
            self.region(region, depth);
        }
        self.text.push_str(if operation.regions.is_empty() { "" } else { ")" });
        if !operation.attributes.is_empty() {
            self.text.push(' ');
            write_fields(&mut self.text, self.module, &operation.attributes);
        }
        self.signature(operation);
    }

    /// ` : (types) -> type`
    fn signature(&mut self, operation: &Operation) {
        self.text.push_str(" : (");
        self.types(&operation.operands);
        self.text.push_str(") -> ");
        let is_one = operation.results.len() == 1;
        self.text.push_str(if is_one { "" } else { "(" });
        self.types(&operation.results);
        self.text.push_str(if is_one { "" } else { ")" });
    }

    fn region(&mut self, region: &Region, depth: usize) {
        self.text.push_str("{\n");
        for block in &region.blocks {
            if !block.arguments.is_empty() {
                self.line(depth);
                self.text.push_str("^bb0(");
                self.arguments(block, &[]);
                self.text.push_str("):\n");
            }
            for operation in &block.operations {
                self.operation(operation, depth + 1);
            }
        }
        self.line(depth);
        self.text.push('}');
    }

    /// `%arg0: type {attributes} loc(#loc1), …`
    fn arguments(&mut self, block: &Block, attributes: &[Attribute]) {
        for (i, &value) in block.arguments.iter().enumerate() {
            let name = format!("%arg{}", self.count);
            self.count += 1;
            let ty = self.module.type_of(value);
            let _ = write!(self.text, "{}{name}: {ty}", if i > 0 { ", " } else { "" });
            self.names.insert(value, name);
            if let Some(Attribute::Dictionary(fields)) = attributes.get(i)
                && !fields.is_empty()
            {
                self.text.push(' ');
                write_fields(&mut self.text, self.module, fields);
            }
            let location = self.module.argument_locations.get(&value).copied();
            self.location(location.unwrap_or(LocId::UNKNOWN));
        }
    }

    /// `func.func public @main(…) -> (…) {…}`; `None`, and nothing written, if it has no such form.
    fn function(&mut self, function: &Operation, depth: usize) -> Option<()> {
        let name = match function.attribute("sym_name")? {
            Attribute::String(name) => name,
            _ => return None,
        };
        let Attribute::Type(Type::Function { results, .. }) =
            function.attribute("function_type")?
        else {
            return None;
        };
        let [region] = &function.regions[..] else { return None };
        let [block] = &region.blocks[..] else { return None };
        self.names.clear();
        self.count = 0;
        self.text.push_str("func.func ");
        if let Some(Attribute::String(visibility)) = function.attribute("sym_visibility") {
            let _ = write!(self.text, "{visibility} ");
        }
        let _ = write!(self.text, "@{}(", symbol(name));
        let list = |name: &str| match function.attribute(name) {
            Some(Attribute::Array(list)) => &list[..],
            _ => &[],
        };
        self.arguments(block, list("arg_attrs"));
        self.text.push_str(") -> (");
        for (i, ty) in results.iter().enumerate() {
            let _ = write!(self.text, "{}{ty}", if i > 0 { ", " } else { "" });
            if let Some(Attribute::Dictionary(fields)) = list("res_attrs").get(i)
                && !fields.is_empty()
            {
                self.text.push(' ');
                write_fields(&mut self.text, self.module, fields);
            }
        }
        self.text.push(')');
        let shown = ["sym_name", "function_type", "sym_visibility", "arg_attrs", "res_attrs"];
        let is_other = |(name, _): &&Field| !shown.contains(&name.as_str());
        let others: Vec<Field> = function.attributes.iter().filter(is_other).cloned().collect();
        if !others.is_empty() {
            self.text.push_str(" attributes ");
            write_fields(&mut self.text, self.module, &others);
        }
        self.text.push_str(" {\n");
        for operation in &block.operations {
            self.operation(operation, depth + 1);
        }
        self.line(depth);
        self.text.push('}');
        self.location(function.location);
        self.text.push('\n');
        Some(())
    }

    /// ` loc(#loc1)`, unless it is unknown.
    fn location(&mut self, location: LocId) {
        if location != LocId::UNKNOWN {
            let _ = write!(self.text, " loc(#loc{})", location.0);
        }
    }
}

fn write_location(text: &mut String, module: &Module, location: &Location) {
    let alias = |id: LocId| match id {
        LocId::UNKNOWN => "unknown".to_owned(),
        LocId(number) => format!("#loc{number}"),
    };
    match location {
        Location::Unknown => text.push_str("unknown"),
        Location::File { file, line, column, end } => {
            let _ = write!(text, "{}:{line}:{column}", attribute::string(file));
            if let Some((line, column)) = end {
                let _ = write!(text, " to {line}:{column}");
            }
        }
        Location::Name { name, child } => {
            text.push_str(&attribute::string(name));
            if *child != LocId::UNKNOWN {
                let _ = write!(text, "({})", alias(*child));
            }
        }
        Location::CallSite { callee, caller } => {
            let _ = write!(text, "callsite({} at {})", alias(*callee), alias(*caller));
        }
        Location::Fused { locations, metadata } => {
            text.push_str("fused");
            if let Some(metadata) = metadata {
                text.push('<');
                write_attribute(text, module, metadata);
                text.push('>');
            }
            let locations: Vec<String> = locations.iter().map(|&id| alias(id)).collect();
            let _ = write!(text, "[{}]", locations.join(", "));
        }
    }
}
