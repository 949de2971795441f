//! The pretty forms of operations with regions: loops, reductions, scans.

use helio_ir::Result;

use super::Parser;
use super::operation::Written;
use crate::mlir::{Attribute, Block, Operation, Region, Type, ValueId};

impl<'a> Parser<'a> {
    /// `(%a = %init, …) : types attributes {…} cond {…} do {…}`
    pub(super) fn while_loop(&mut self, mut written: Written) -> Result<Written> {
        self.scan.space();
        let start = self.scan.pos();
        self.scan.expect("(")?;
        let mut names = Vec::new();
        written.op.operands = self.list(")", |parser| {
            parser.scan.expect("%")?;
            names.push(parser.scan.suffix("the name of a value")?);
            parser.scan.expect("=")?;
            parser.value()
        })?;
        let mut types = Vec::new();
        if self.scan.eat(":") {
            types.push(self.ty()?);
            while self.scan.eat(",") {
                types.push(self.ty()?);
            }
        }
        self.check_types(&written.op.operands, &types, start)?;
        if self.scan.eat_word("attributes") {
            written.op.attributes = self.dictionary()?;
        }
        for word in ["cond", "do"] {
            self.scan.expect_word(word)?;
            let arguments: Vec<(&'a str, ValueId)> = names
                .iter()
                .zip(&types)
                .map(|(&name, ty)| Ok((name, self.module.add_value(ty.clone())?)))
                .collect::<Result<_>>()?;
            written.op.regions.push(self.region_with(&arguments)?);
        }
        written.results = types;
        Ok(written)
    }

    /// `(%x init: %i), … applies OP across dimensions = […] {…} : (types) -> types`, or without
    /// `applies OP` and with `reducer(%a: type, %b: type) … {…}` behind.
    pub(super) fn reduce(&mut self, mut written: Written) -> Result<Written> {
        let mut inits = Vec::new();
        loop {
            self.scan.expect("(")?;
            written.op.operands.push(self.value()?);
            self.scan.expect_word("init")?;
            self.scan.expect(":")?;
            inits.push(self.value()?);
            self.scan.expect(")")?;
            if !self.scan.eat(",") {
                break;
            }
        }
        let count = inits.len();
        written.op.operands.extend(inits.iter().copied());
        self.scan.space();
        let start = self.scan.pos();
        let applied = match self.scan.eat_word("applies") {
            true => Some(self.scan.word("an operation")?),
            false => None,
        };
        self.scan.expect_word("across")?;
        self.scan.expect_word("dimensions")?;
        self.scan.expect("=")?;
        let dimensions = Attribute::Integers(self.integers()?);
        written.op.attributes.push(("dimensions".to_owned(), dimensions));
        self.tail(&mut written, count)?;
        let region = match applied {
            Some(_) if count != 1 => {
                return Err(self.scan.error_at(start, "`applies` is for one operand"));
            }
            Some(op) => self.region_of(op, inits[0])?,
            None => self.reducer(count)?,
        };
        written.op.regions.push(region);
        Ok(written)
    }

    /// `reducer(%a: type, %b: type) … {…}`: a pair of an accumulator and an element for each operand.
    fn reducer(&mut self, count: usize) -> Result<Region> {
        self.scan.expect_word("reducer")?;
        let (mut accumulators, mut elements) = (Vec::new(), Vec::new());
        for _ in 0..count {
            self.scan.expect("(")?;
            let (name, value, _) = self.loose_argument()?;
            accumulators.push((name, value));
            self.scan.expect(",")?;
            let (name, value, _) = self.loose_argument()?;
            elements.push((name, value));
            self.scan.expect(")")?;
        }
        accumulators.extend(elements);
        self.region_with(&accumulators)
    }

    /// The region that applies an operation of two operands, of the type of `init`.
    fn region_of(&mut self, name: &str, init: ValueId) -> Result<Region> {
        let ty = self.module.type_of(init).clone();
        let mut scalar = ty.clone();
        if let Type::Tensor(tensor) = &mut scalar {
            tensor.dims.clear();
            tensor.bounds.clear();
        }
        let mut value = || self.module.add_value(scalar.clone());
        let arguments = vec![value()?, value()?];
        let result = value()?;
        let mut apply = Operation::new(name);
        apply.operands = arguments.clone();
        apply.results = vec![result];
        let mut end = Operation::new("stablehlo.return");
        end.operands = vec![result];
        Ok(Region { blocks: vec![Block { arguments, operations: vec![apply, end] }] })
    }

    /// `(%x, …) inits(%i, …) dimension=0 attributes {…} {…} : (types) -> types`
    pub(super) fn scan_op(&mut self, mut written: Written, count: usize) -> Result<Written> {
        self.scan.expect("(")?;
        written.op.operands = self.list(")", Self::value)?;
        let inputs = written.op.operands.len();
        self.scan.expect_word("inits")?;
        self.scan.expect("(")?;
        let inits = self.list(")", Self::value)?;
        written.op.operands.extend(inits);
        self.scan.expect_word("dimension")?;
        self.scan.expect("=")?;
        let dimension = self.scan.integer("a dimension")?;
        written.op.attributes.push(("dimension".to_owned(), Attribute::i64(dimension)));
        let segments = [inputs, written.op.operands.len() - inputs].map(|n| n as i64);
        let segments = Attribute::Integers(segments.to_vec());
        written.op.attributes.push(("operandSegmentSizes".to_owned(), segments));
        if self.scan.eat_word("attributes") {
            written.op.attributes.extend(self.dictionary()?);
        }
        written.op.regions.push(self.region()?);
        self.tail(&mut written, count)?;
        Ok(written)
    }
}
