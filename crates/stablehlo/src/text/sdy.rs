//! The operations of Shardy that JAX emits: meshes, manual computations, constraints.

use helio_ir::Result;

use super::Parser;
use super::operation::Written;
use crate::mlir::Attribute;

impl Parser<'_> {
    /// After `sdy.NAME`; `None` if it has no pretty form known here.
    pub(super) fn sdy(&mut self, name: &str) -> Result<Option<Written>> {
        let mut written = Written::new(&format!("sdy.{name}"));
        match name {
            "mesh" => {
                let symbol = self.symbol()?.join("::");
                self.scan.expect("=")?;
                self.scan.expect("<")?;
                let mesh = format!("#sdy.mesh<{}>", self.scan.balanced()?);
                self.scan.expect(">")?;
                written.op.attributes = vec![
                    ("sym_name".to_owned(), Attribute::String(symbol)),
                    ("mesh".to_owned(), Attribute::Other(mesh)),
                ];
                self.tail(&mut written, 0)?;
            }
            "sharding_constraint" | "reshard" => {
                written.op.operands = vec![self.value()?];
                self.scan.expect("<")?;
                let sharding = format!("#sdy.sharding<{}>", self.scan.balanced()?);
                self.scan.expect(">")?;
                written.op.attributes = vec![("sharding".to_owned(), Attribute::Other(sharding))];
                self.tail(&mut written, 1)?;
            }
            "manual_computation" => self.manual_computation(&mut written)?,
            "return" => {
                written.op.operands = self.values()?;
                self.tail(&mut written, 0)?;
            }
            _ => return Ok(None),
        }
        Ok(Some(written))
    }

    /// `(%a) in_shardings=[…] out_shardings=[…] manual_axes={…} (%b: type) {…} : (type) -> type`
    fn manual_computation(&mut self, written: &mut Written) -> Result<()> {
        self.scan.expect("(")?;
        written.op.operands = self.list(")", Self::value)?;
        for (key, open, close) in
            [("in_shardings", "[", "]"), ("out_shardings", "[", "]"), ("manual_axes", "{", "}")]
        {
            self.scan.expect_word(key)?;
            self.scan.expect("=")?;
            self.scan.expect(open)?;
            let text = format!("{open}{}{close}", self.scan.balanced()?);
            self.scan.expect(close)?;
            written.op.attributes.push((key.to_owned(), Attribute::Other(text)));
        }
        self.scan.expect("(")?;
        let arguments = self.list(")", Self::loose_argument)?;
        let arguments: Vec<_> = arguments.into_iter().map(|(n, value, _)| (n, value)).collect();
        written.op.regions = vec![self.region_with(&arguments)?];
        self.tail(written, 0)
    }
}
