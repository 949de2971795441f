//! Locations in MLIR text, read: `loc("file":1:2)`.

use helio_ir::Result;

use super::Parser;
use crate::mlir::{Attribute, LocId, Location};

impl Parser<'_> {
    /// `loc(…)` if it comes next; else the unknown location.
    pub(super) fn trailing_location(&mut self) -> Result<LocId> {
        if self.scan.sees_word("loc") {
            self.scan.eat_word("loc");
            return self.location_in_parentheses();
        }
        Ok(LocId::UNKNOWN)
    }

    /// After `loc`.
    pub(super) fn location_in_parentheses(&mut self) -> Result<LocId> {
        self.scan.expect("(")?;
        let location = self.nested(Self::location)?;
        self.scan.expect(")")?;
        Ok(location)
    }

    fn location(&mut self) -> Result<LocId> {
        match self.scan.peek() {
            Some('#') => {
                let start = self.scan.pos();
                self.scan.expect("#")?;
                let name = self.scan.suffix("the name of a location")?;
                match self.attribute_alias(name, start)? {
                    Attribute::Location(location) => Ok(location),
                    _ => Err(self.scan.error_at(start, format!("`#{name}` is not a location"))),
                }
            }
            Some('"') => self.named_location(),
            _ if self.scan.eat_word("unknown") => Ok(LocId::UNKNOWN),
            _ if self.scan.eat_word("loc") => self.location_in_parentheses(),
            _ if self.scan.eat_word("callsite") => {
                self.scan.expect("(")?;
                let callee = self.nested(Self::location)?;
                self.scan.expect_word("at")?;
                let caller = self.nested(Self::location)?;
                self.scan.expect(")")?;
                self.module.add_location(Location::CallSite { callee, caller })
            }
            _ if self.scan.eat_word("fused") => {
                let mut metadata = None;
                if self.scan.eat("<") {
                    metadata = Some(Box::new(self.attribute()?));
                    self.scan.expect(">")?;
                }
                self.scan.expect("[")?;
                let locations = self.list("]", |parser| parser.nested(Self::location))?;
                self.module.add_location(Location::Fused { locations, metadata })
            }
            _ => Err(self.scan.expected("a location")),
        }
    }

    /// `"file":1:2`, `"file":1:2 to 3:4`, `"name"`, or `"name"(child)`
    fn named_location(&mut self) -> Result<LocId> {
        let name = self.scan.string()?;
        if self.scan.eat(":") {
            let (line, column) = self.line_and_column()?;
            let mut end = None;
            if self.scan.eat_word("to") {
                // A range in one line leaves the line out.
                end = Some(if self.scan.eat(":") {
                    (line, self.number_of_place()?)
                } else {
                    self.line_and_column()?
                });
            }
            return self.module.add_location(Location::File { file: name, line, column, end });
        }
        let mut child = LocId::UNKNOWN;
        if self.scan.eat("(") {
            child = self.nested(Self::location)?;
            self.scan.expect(")")?;
        }
        self.module.add_location(Location::Name { name, child })
    }

    fn line_and_column(&mut self) -> Result<(u32, u32)> {
        let line = self.number_of_place()?;
        self.scan.expect(":")?;
        Ok((line, self.number_of_place()?))
    }

    fn number_of_place(&mut self) -> Result<u32> {
        let number = self.scan.unsigned("a line or column")?;
        u32::try_from(number).map_err(|_| self.scan.error("a line or column beyond 2^32"))
    }
}
