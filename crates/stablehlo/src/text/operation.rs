//! Operations: results, the generic form, regions and blocks.

use helio_ir::{Error, Result};

use super::Parser;
use crate::mlir::{Block, Operation, Region, Type, ValueId};

/// An operation as written, before its results are values.
pub(super) struct Written {
    pub op: Operation,
    pub results: Vec<Type>,
}

impl Written {
    pub fn new(name: &str) -> Self {
        Written { op: Operation::new(name), results: Vec::new() }
    }
}

/// The largest number of results of an operation.
const MAX_RESULTS: u64 = 1 << 16;

/// The name of a result, and how many results it stands for, which `%name#i` then picks.
struct ResultName<'a> {
    name: &'a str,
    count: usize,
}

impl<'a> Parser<'a> {
    /// An operation with its results and its location.
    pub(super) fn operation(&mut self) -> Result<Operation> {
        self.nested(Self::operation_here)
    }

    fn operation_here(&mut self) -> Result<Operation> {
        self.scan.space();
        let start = self.scan.pos();
        let at = self.scan.location(start);
        let names = self.result_names()?;
        let count = names.iter().map(|name| name.count).sum();
        let mut written = if self.scan.sees("\"") { self.generic()? } else { self.pretty(count)? };
        written.op.at = Some(at);
        written.op.location = self.trailing_location()?;
        let found = written.results.len();
        if count != found && !(names.is_empty() && found > 0) {
            let name = &written.op.name;
            let detail = format!("{count} names for the {found} results of {name}");
            return Err(self.scan.error_at(start, detail));
        }
        for ty in written.results {
            let value = self.module.add_value(ty)?;
            written.op.results.push(value);
        }
        let mut rest = &written.op.results[..];
        for ResultName { name, count } in names {
            let (values, after) = rest.split_at(count);
            self.define(name, values.to_vec(), start)?;
            rest = after;
        }
        Ok(written.op)
    }

    /// `%a, %b:2 =`
    fn result_names(&mut self) -> Result<Vec<ResultName<'a>>> {
        let mut names: Vec<ResultName<'a>> = Vec::new();
        let mut total = 0;
        if !self.scan.sees("%") {
            return Ok(names);
        }
        loop {
            self.scan.expect("%")?;
            let name = self.scan.suffix("the name of a value")?;
            let mut count = 1;
            if self.scan.eat(":") {
                count = self.scan.unsigned("the number of results")?;
            }
            total += count.min(MAX_RESULTS + 1);
            if count == 0 || total > MAX_RESULTS {
                let detail = format!("{count} results; an operation has 1 to {MAX_RESULTS}");
                return Err(self.scan.error(detail));
            }
            names.push(ResultName { name, count: count as usize });
            if self.scan.eat("=") {
                return Ok(names);
            }
            self.scan.expect(",")?;
        }
    }

    /// Gives values a name in the innermost region.
    pub(super) fn define(
        &mut self,
        name: &'a str,
        values: Vec<ValueId>,
        start: usize,
    ) -> Result<()> {
        let scope = self.scopes.last_mut();
        let scope = scope.ok_or_else(|| Error::internal("a value outside of all regions"))?;
        match scope.insert(name, values) {
            None => Ok(()),
            Some(_) => Err(self.scan.error_at(start, format!("`%{name}` is defined twice"))),
        }
    }

    /// `%name` or `%name#1`
    pub(super) fn value(&mut self) -> Result<ValueId> {
        self.scan.space();
        let start = self.scan.pos();
        if !self.scan.eat("%") {
            return Err(self.scan.expected("a value, `%name`"));
        }
        let name = self.scan.suffix("the name of a value")?;
        let mut index = 0;
        if self.scan.rest().starts_with('#') {
            self.scan.expect("#")?;
            index = self.scan.unsigned("the number of a result")? as usize;
        }
        let values = self.scopes.iter().rev().find_map(|scope| scope.get(name));
        let values = values
            .ok_or_else(|| self.scan.error_at(start, format!("`%{name}` is not defined here")))?;
        values.get(index).copied().ok_or_else(|| {
            let detail = format!("`%{name}#{index}`, but `%{name}` has {} values", values.len());
            self.scan.error_at(start, detail)
        })
    }

    /// Values separated by commas; none if no `%` comes next.
    pub(super) fn values(&mut self) -> Result<Vec<ValueId>> {
        let mut values = Vec::new();
        if !self.scan.sees("%") {
            return Ok(values);
        }
        loop {
            values.push(self.value()?);
            let back = self.scan.pos();
            if !(self.scan.eat(",") && self.scan.sees("%")) {
                self.scan.go_to(back);
                return Ok(values);
            }
        }
    }

    /// Errors: unless the types of these values are the ones written.
    pub(super) fn check_types(
        &mut self,
        values: &[ValueId],
        types: &[Type],
        start: usize,
    ) -> Result<()> {
        if values.len() != types.len() {
            let detail = format!("{} types for {} operands", types.len(), values.len());
            return Err(self.scan.error_at(start, detail));
        }
        for (i, (&value, ty)) in values.iter().zip(types).enumerate() {
            let found = self.module.type_of(value);
            if found != ty {
                let detail = format!("operand {i} is of type {found}, but is said to be {ty}");
                return Err(self.scan.error_at(start, detail));
            }
        }
        Ok(())
    }

    /// `"name"(%operands) <{properties}> ({regions}) {attributes} : (types) -> types`
    fn generic(&mut self) -> Result<Written> {
        let start = self.scan.pos();
        let mut written = Written::new(&self.scan.string()?);
        let op = &mut written.op;
        self.scan.expect("(")?;
        op.operands = self.list(")", Self::value)?;
        if self.scan.eat("<") {
            op.attributes = self.dictionary()?;
            self.scan.expect(">")?;
        }
        if self.scan.eat("(") {
            op.regions = self.list(")", Self::region)?;
        }
        if self.scan.sees("{") {
            op.attributes.extend(self.dictionary()?);
        }
        self.scan.expect(":")?;
        let inputs = self.type_list_in_parentheses()?;
        self.scan.expect("->")?;
        written.results = self.result_types()?;
        self.check_types(&written.op.operands, &inputs, start)?;
        Ok(written)
    }

    /// `{ ^bb0(%x: type): operations }`
    pub(super) fn region(&mut self) -> Result<Region> {
        self.region_with(&[])
    }

    /// A region whose entry block has these arguments, which were named before it.
    pub(super) fn region_with(&mut self, arguments: &[(&'a str, ValueId)]) -> Result<Region> {
        self.scan.space();
        let start = self.scan.pos();
        self.scan.expect("{")?;
        self.scopes.push(Default::default());
        let mut block = Block::default();
        for &(name, value) in arguments {
            self.define(name, vec![value], start)?;
            block.arguments.push(value);
        }
        if self.scan.eat("^") {
            self.scan.suffix("the name of a block")?;
            if self.scan.eat("(") {
                for (_, value) in self.list(")", Self::argument)? {
                    block.arguments.push(value);
                }
            }
            self.scan.expect(":")?;
        }
        while !self.scan.eat("}") {
            if self.scan.sees("^") {
                return Err(super::unimplemented(&mut self.scan, "a region of several blocks"));
            }
            block.operations.push(self.operation()?);
        }
        self.scopes.pop();
        Ok(Region { blocks: vec![block] })
    }

    /// `%name: type loc(…)`, which becomes a value of the innermost region.
    pub(super) fn argument(&mut self) -> Result<(&'a str, ValueId)> {
        let (name, value, start) = self.loose_argument()?;
        self.define(name, vec![value], start)?;
        Ok((name, value))
    }

    /// `%name: type loc(…)`, for a region that comes later.
    pub(super) fn loose_argument(&mut self) -> Result<(&'a str, ValueId, usize)> {
        self.scan.space();
        let start = self.scan.pos();
        self.scan.expect("%")?;
        let name = self.scan.suffix("the name of a value")?;
        self.scan.expect(":")?;
        let ty = self.ty()?;
        let location = self.trailing_location()?;
        let value = self.module.add_value(ty)?;
        self.module.locate_argument(value, location);
        Ok((name, value, start))
    }
}
