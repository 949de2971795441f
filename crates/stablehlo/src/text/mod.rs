//! MLIR text, as StableHLO's tools and JAX write it: the generic form of any operation, and the
//! pretty form of `builtin`, `func`, `stablehlo`, `chlo`, `check`, `interpreter`, and of the parts
//! of `sdy` that JAX emits.
//!
//! ```
//! let text = "func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
//!     %0 = stablehlo.tanh %x : tensor<2xf32>
//!     return %0 : tensor<2xf32>
//! }";
//! let module = helio_stablehlo::text::parse(text)?;
//! assert_eq!(module.operations[0].name, "func.func");
//! # Ok::<(), helio_ir::Error>(())
//! ```

mod attribute;
mod dense;
mod func;
mod items;
mod location;
mod operation;
mod pretty;
mod print;
mod region_ops;
mod scan;
mod sdy;
mod types;

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use helio_ir::{Error, Result};

use crate::mlir::{Attribute, Module, Type, ValueId};
pub(crate) use dense::float_of_bits;
pub use print::print;
use scan::{MAX_NESTING, Scan};

/// The one module that the text has. Errors: what is wrong with the text and where;
/// `Unimplemented` for parts of MLIR that no StableHLO program needs.
pub fn parse(text: &str) -> Result<Module> {
    Parser::new(text, 0)?.module()
}

/// Whether a text begins as MLIR does, not as HLO text: with an alias, a `module`, or an operation in
/// generic or pretty form. Comments are passed over.
pub fn is_mlir(text: &str) -> bool {
    let mut scan = Scan::new(text, 0);
    if scan.sees("#") || scan.sees("!") || scan.sees("\"") || scan.sees("{-#") {
        return true;
    }
    let word = scan.peek_word();
    word == "module" || ["builtin.", "func.", "sdy."].iter().any(|name| word.starts_with(name))
}

/// The module of a part that [`split`] gives, whose first line is this one of the text, from 0.
/// Errors: as for [`parse`], at their place in the text.
pub fn parse_part(part: &str, first_line: u32) -> Result<Module> {
    Parser::new(part, first_line)?.module()
}

/// The modules of a text, which lines `// -----` separate. A part without operations is an empty
/// module. Errors: as for [`parse`], those of the first module that has any.
pub fn parse_all(text: &str) -> Result<Vec<Module>> {
    split(text).into_iter().map(|(line, part)| parse_part(part, line)).collect()
}

/// The parts between lines `// -----`, each with the number of its first line from 0.
pub fn split(text: &str) -> Vec<(u32, &str)> {
    let mut parts = Vec::new();
    let (mut start, mut first_line, mut at) = (0, 0, 0);
    for (number, whole) in text.split_inclusive('\n').enumerate() {
        // MLIR's own tools also take the marker in a comment.
        let line = whole.trim_end();
        if line.starts_with("//") && line.ends_with("// -----") {
            parts.push((first_line, &text[start..at]));
            start = at + whole.len();
            first_line = number as u32 + 1;
        }
        at += whole.len();
    }
    parts.push((first_line, &text[start..]));
    parts
}

/// A name given to an attribute or a type: where it is defined, and what it stands for.
enum Alias {
    /// Defined at this byte, and not read yet.
    At(usize),
    /// Being read: whoever comes here again stands for itself.
    Open,
    Attribute(Attribute),
    Type(Type),
}

struct Parser<'a> {
    scan: Scan<'a>,
    module: Module,
    /// By name with its `#` or `!`.
    aliases: HashMap<&'a str, Alias>,
    /// The hexadecimal text of each resource.
    resources: HashMap<String, &'a str>,
    /// The values by name, of the regions around, outermost first.
    scopes: Vec<HashMap<&'a str, Vec<ValueId>>>,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, first_line: u32) -> Result<Self> {
        let mut parser = Parser {
            scan: Scan::new(text, first_line),
            module: Module::default(),
            aliases: HashMap::new(),
            resources: HashMap::new(),
            scopes: vec![HashMap::new()],
            depth: 0,
        };
        parser.find_definitions(text)?;
        Ok(parser)
    }

    /// Finds the definitions of aliases, which may follow their uses, and reads the resources.
    fn find_definitions(&mut self, text: &'a str) -> Result<()> {
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            if line.starts_with("{-#") {
                self.scan.go_to(at);
                self.file_metadata()?;
                self.scan.go_to(0);
            } else if line.starts_with(['#', '!'])
                && let Some((name, _)) = line.split_once('=')
            {
                let name = name.trim_end();
                let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '-');
                if name.len() > 1 && name[1..].chars().all(is_name) {
                    let after = at + line.find('=').map_or(0, |equals| equals + 1);
                    if self.aliases.insert(name, Alias::At(after)).is_some() {
                        let detail = format!("`{name}` is defined twice");
                        return Err(self.scan.error_at(at, detail));
                    }
                }
            }
            at += line.len();
        }
        Ok(())
    }

    /// Runs a function one level deeper.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_NESTING {
            return Err(self.scan.too_deep());
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    fn attribute_alias(&mut self, name: &str, start: usize) -> Result<Attribute> {
        match self.alias('#', name, start)? {
            Alias::Attribute(attribute) => Ok(attribute),
            _ => Err(self.scan.error_at(start, format!("`#{name}` is not an attribute"))),
        }
    }

    fn type_alias(&mut self, name: &str, start: usize) -> Result<Type> {
        match self.alias('!', name, start)? {
            Alias::Type(ty) => Ok(ty),
            _ => Err(self.scan.error_at(start, format!("`!{name}` is not a type"))),
        }
    }

    /// What an alias that is used at `start` stands for.
    fn alias(&mut self, kind: char, name: &str, start: usize) -> Result<Alias> {
        let full = format!("{kind}{name}");
        let Some(alias) = self.aliases.get_mut(full.as_str()) else {
            return Err(self.scan.error_at(start, format!("`{full}` is not defined")));
        };
        let at = match std::mem::replace(alias, Alias::Open) {
            Alias::At(at) => at,
            Alias::Open => {
                let detail = format!("`{full}` is defined by itself");
                return Err(self.scan.error_at(start, detail));
            }
            known => {
                let copy = match &known {
                    Alias::Type(ty) => Alias::Type(ty.clone()),
                    Alias::Attribute(attribute) => Alias::Attribute(attribute.clone()),
                    Alias::At(_) | Alias::Open => Alias::Open,
                };
                *alias = known;
                return Ok(copy);
            }
        };
        let back = self.scan.pos();
        self.scan.go_to(at);
        let [value, copy] = if kind == '!' {
            let ty = self.ty()?;
            [Alias::Type(ty.clone()), Alias::Type(ty)]
        } else {
            let attribute = self.attribute()?;
            [Alias::Attribute(attribute.clone()), Alias::Attribute(attribute)]
        };
        self.scan.go_to(back);
        if let Some(alias) = self.aliases.get_mut(full.as_str()) {
            *alias = value;
        }
        Ok(copy)
    }

    /// Reads the definition of an alias where it stands.
    fn skip_alias(&mut self) -> Result<()> {
        let start = self.scan.pos();
        let kind = if self.scan.eat("#") { '#' } else { '!' };
        if kind == '!' {
            self.scan.expect("!")?;
        }
        let name = self.scan.suffix("the name of an alias")?;
        self.scan.expect("=")?;
        self.alias(kind, name, start)?;
        // Once more, to know where it ends; what it stands for is known.
        if kind == '!' { self.ty().map(drop) } else { self.attribute().map(drop) }
    }
}

/// The error for a part of MLIR that helio does not read.
fn unimplemented(scan: &mut Scan<'_>, what: &str) -> Error {
    scan.space();
    Error::unimplemented(format!("{what} is not supported")).at(Some(scan.location(scan.pos())))
}
