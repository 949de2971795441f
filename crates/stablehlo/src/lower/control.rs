//! Calls, loops, branches, tuples, tokens: and what regions take from around them.

use std::collections::HashSet;

use helio_ir::ops::{AfterAll, Call, Conditional, OptimizationBarrier, While};
use helio_ir::{CompId, Error, InstrId, Op, Result, Shape, UnaryOp};

use super::body::Body;
use super::checks::visit;
use super::operation::{Site, unknown};
use super::probes::Probe;
use super::types::Elements;
use super::{MAX_DEPTH, MAX_INLINED_OPERATIONS, function_block, signature};
use crate::mlir::{Block, Operation, Region, ValueId};

impl<'m> Body<'_, 'm> {
    pub(super) fn control(&mut self, site: &Site<'_, 'm>) -> Result<Vec<InstrId>> {
        let operands = &site.operands;
        match site.op.name.as_str() {
            "func.call" => self.call(site.attrs.symbol("callee")?, operands),
            "stablehlo.composite" => self.composite(site),
            "stablehlo.while" => self.while_loop(site),
            "stablehlo.if" | "stablehlo.case" => self.conditional(site),
            "stablehlo.tuple" => Ok(vec![self.tuple(operands)?]),
            "stablehlo.get_tuple_element" => {
                let [tuple] = site.operands()?;
                Ok(vec![self.element_of(tuple, site.attrs.size("index")?)?])
            }
            "stablehlo.create_token" => Ok(vec![self.push(AfterAll, &[])?]),
            "stablehlo.optimization_barrier" => match operands[..] {
                [] => Ok(Vec::new()),
                [one] => Ok(vec![self.push(OptimizationBarrier, &[one])?]),
                _ => {
                    let tuple = self.tuple(operands)?;
                    let barrier = self.push(OptimizationBarrier, &[tuple])?;
                    self.unpack(barrier, operands.len())
                }
            },
            // Where values lie is not a matter of what they are.
            "sdy.sharding_constraint" | "sdy.reshard" => {
                site.attrs.get("sharding");
                Ok(operands.clone())
            }
            "sdy.manual_computation" => self.manual_computation(site),
            "builtin.unrealized_conversion_cast" => Ok(operands.clone()),
            _ => Err(unknown()),
        }
    }

    /// The results of a function for these arguments.
    fn call(&mut self, name: &str, arguments: &[InstrId]) -> Result<Vec<InstrId>> {
        let function = self.cx.functions.get(name).copied();
        let function =
            function.ok_or_else(|| Error::invalid(format!("there is no function `{name}`")))?;
        let (inputs, results) = signature(function)?;
        if inputs.len() != arguments.len() {
            let (found, needed) = (arguments.len(), inputs.len());
            return Err(Error::invalid(format!("{found} arguments for {needed} of `{name}`")));
        }
        if self.cx.inlined.contains(name) {
            return self.inline(function, arguments);
        }
        let shapes: Vec<Shape> = arguments.iter().map(|&id| self.shape(id).clone()).collect();
        let to_apply = self.cx.function(function, &shapes)?;
        let call = self.push(Call { to_apply, is_composite: false }, arguments)?;
        self.unpack(call, results.len())
    }

    /// The operations of a function, here.
    fn inline(&mut self, function: &'m Operation, arguments: &[InstrId]) -> Result<Vec<InstrId>> {
        let name = super::symbol_name(function).unwrap_or_default();
        if self.cx.open.contains(&name) || self.cx.open.len() >= MAX_DEPTH {
            return Err(Error::unimplemented(format!("function `{name}` calls itself")));
        }
        let block = function_block(function)?;
        visit(function, &mut |_| self.cx.inlined_operations += 1);
        if self.cx.inlined_operations > MAX_INLINED_OPERATIONS {
            let detail = format!(
                "function `{name}` is inlined, which makes more than {MAX_INLINED_OPERATIONS} \
                 operations"
            );
            return Err(Error::exhausted(detail));
        }
        self.cx.open.push(name);
        for (&value, &id) in block.arguments.iter().zip(arguments) {
            self.bind(value, id);
        }
        let results = self.block(block);
        self.cx.open.pop();
        results
    }

    /// What a composite stands for: an operation of HLO's, or what its decomposition gives.
    fn composite(&mut self, site: &Site<'_, 'm>) -> Result<Vec<InstrId>> {
        let attrs = site.attrs;
        let name = attrs.string("name")?.unwrap_or_default();
        for name in ["composite_attributes", "version"] {
            attrs.get(name);
        }
        if !site.op.regions.is_empty() {
            return Err(Error::unimplemented("a composite with regions"));
        }
        let decomposition = attrs.symbol("decomposition")?;
        match self.function_of_chlo(name, &site.operands)? {
            Some(op) => Ok(vec![self.push(op, &site.operands)?]),
            None => self.call(decomposition, &site.operands),
        }
    }

    /// The operation of HLO's for a function of CHLO's, if it is native for these operands. Decompositions
    /// are good to fewer digits: that of `cosh x` rounds `x - ln 2` before it is an exponent.
    fn function_of_chlo(&self, name: &str, operands: &[InstrId]) -> Result<Option<Op>> {
        let op = self.cx.elementwise.get(name).filter(|_| name.starts_with("chlo."));
        let (Some(Op::Unary(op)), [x]) = (op, operands) else { return Ok(None) };
        let element = self.element(*x)?;
        let is_native = !element.is_complex() || matches!(op, UnaryOp::Cosh | UnaryOp::Sinh);
        Ok((is_native && op.accepts().includes(element)).then_some(Op::Unary(*op)))
    }

    fn while_loop(&mut self, site: &Site<'_, 'm>) -> Result<Vec<InstrId>> {
        let [condition, step] = &site.op.regions[..] else {
            return Err(Error::invalid("a loop has two regions"));
        };
        let mut around = captures(condition);
        around.extend(captures(step));
        let taken = self.taken(&around)?;
        let mut state = site.operands.clone();
        state.extend(taken.values.iter().map(|&(_, id)| id));
        let probes = self.probes_of_loop(step)?;
        let first_probe = state.len();
        state.extend(self.empty_records(&probes)?);
        let (count, init) = (site.operands.len(), self.tuple(&state)?);
        let shape = self.shape(init).clone();
        let state = State { shape: &shape, count, taken: &taken, probes: &probes };
        let condition = self.region_of_tuple("condition", condition, &state, false)?;
        let body = self.region_of_tuple("body", step, &state, true)?;
        let result = self.push(While { condition, body }, &[init])?;
        self.take_records(result, first_probe, &probes)?;
        (0..count).map(|index| self.element_of(result, index)).collect()
    }

    fn conditional(&mut self, site: &Site<'_, 'm>) -> Result<Vec<InstrId>> {
        let [index] = site.operands()?;
        let count = site.op.results.len();
        let mut operands = vec![index];
        let mut branches = Vec::new();
        for region in &site.op.regions {
            let taken = self.taken(&captures(region))?;
            let ids: Vec<InstrId> = taken.values.iter().map(|&(_, id)| id).collect();
            let operand = self.tuple(&ids)?;
            let shape = self.shape(operand).clone();
            let state = State { shape: &shape, count: 0, taken: &taken, probes: &[] };
            branches.push(self.region_of_tuple("branch", region, &state, false)?);
            operands.push(operand);
        }
        let result = self.push(Conditional { branches }, &operands)?;
        self.unpack(result, count)
    }

    /// The computation of a region whose one parameter is a tuple. `goes_on`: whether all of it belongs
    /// to the result, too.
    fn region_of_tuple(
        &mut self,
        name: &str,
        region: &'m Region,
        state: &State<'_>,
        goes_on: bool,
    ) -> Result<CompId> {
        let State { shape, count, taken, probes } = *state;
        let block = only_block(region)?;
        if block.arguments.len() != count {
            let found = block.arguments.len();
            return Err(Error::invalid(format!("a block of {found} arguments; must be {count}")));
        }
        self.deeper(|body| {
            let mut inner = body.inner(name);
            let tuple = inner.parameter(0, shape.clone(), "state")?;
            let mut rest = Vec::new();
            let values = taken.values.iter().map(|&(value, _)| value);
            for (index, value) in block.arguments.iter().copied().chain(values).enumerate() {
                let id = inner.element_of(tuple, index)?;
                inner.bind(value, id);
                if index >= count {
                    rest.push(id);
                }
            }
            for (value, constant) in &taken.constants {
                let id = inner.elements(constant.clone())?;
                inner.bind(*value, id);
            }
            inner.find_records(tuple, count + taken.values.len(), probes)?;
            let mut results = inner.block(block)?;
            if goes_on {
                results.extend(rest);
                results.extend(inner.records(probes)?);
                let root = inner.tuple(&results)?;
                results = vec![root];
            }
            inner.finish(results)
        })
    }

    /// Divides what regions take from around them into constants and other values.
    fn taken(&self, around: &[ValueId]) -> Result<Taken> {
        let mut taken = Taken { values: Vec::new(), constants: Vec::new() };
        let mut seen = HashSet::new();
        for &value in around.iter().filter(|&&value| seen.insert(value)) {
            let id = self.value(value)?;
            match self.repeated(id)? {
                Some(constant) => taken.constants.push((value, constant)),
                None => taken.values.push((value, id)),
            }
        }
        Ok(taken)
    }

    /// The constant that regions repeat instead of taking this value from around them.
    pub(super) fn repeated(&self, id: InstrId) -> Result<Option<Elements>> {
        let is_size = self.shape(id).as_array().is_some_and(|array| {
            array.element().is_integer() && array.element_count() <= MAX_REPEATED_SIZES
        });
        let is_constant = match &self.comp.instr(id).op {
            Op::Constant(_) => true,
            // Sizes that later operations need while lowering.
            _ => is_size,
        };
        if is_constant { self.repeatable(id) } else { Ok(None) }
    }

    /// What an instruction gives, if it depends on constants alone, to be a constant elsewhere.
    pub(super) fn repeatable(&self, id: InstrId) -> Result<Option<Elements>> {
        if let Op::Broadcast(op) = &self.comp.instr(id).op {
            let from = self.comp.instr(id).operands[0];
            if let Op::Constant(scalar) = &self.comp.instr(from).op
                && scalar.literal.as_array().is_some_and(|array| array.shape().is_scalar())
            {
                return Ok(Some(Elements::Splat(scalar.literal.clone(), op.shape.clone())));
            }
        }
        Ok(self.known(id)?.map(Elements::All))
    }

    /// Runs what lowers a region. Errors: if regions nest too deeply.
    pub(super) fn deeper<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.cx.depth >= MAX_DEPTH {
            return Err(Error::exhausted(format!("regions nested more than {MAX_DEPTH} deep")));
        }
        self.cx.depth += 1;
        let result = run(self);
        self.cx.depth -= 1;
        result
    }
}

/// The parameter of a region: a tuple.
#[derive(Clone, Copy)]
struct State<'s> {
    shape: &'s Shape,
    /// How many elements the arguments of its block are; they come first.
    count: usize,
    /// What it takes from around it comes next.
    taken: &'s Taken,
    /// The records of probes come last.
    probes: &'s [Probe],
}

/// How many integers a value may have that is repeated in regions because sizes may depend on it.
const MAX_REPEATED_SIZES: usize = 64;

/// What a region takes from around it.
struct Taken {
    values: Vec<(ValueId, InstrId)>,
    constants: Vec<(ValueId, Elements)>,
}

/// The block of a region. Errors: unless there is just one.
pub(super) fn only_block(region: &Region) -> Result<&Block> {
    match &region.blocks[..] {
        [block] => Ok(block),
        blocks => Err(Error::unimplemented(format!("a region of {} blocks", blocks.len()))),
    }
}

/// The values that a region uses and does not define, in the order of use.
pub(super) fn captures(region: &Region) -> Vec<ValueId> {
    let (mut defined, mut used): (HashSet<ValueId>, Vec<ValueId>) = Default::default();
    let mut pending: Vec<&Region> = vec![region];
    while let Some(region) = pending.pop() {
        for block in &region.blocks {
            defined.extend(&block.arguments);
            for op in &block.operations {
                used.extend(&op.operands);
                defined.extend(&op.results);
                pending.extend(&op.regions);
            }
        }
    }
    let mut seen = HashSet::new();
    used.retain(|value| !defined.contains(value) && seen.insert(*value));
    used
}
