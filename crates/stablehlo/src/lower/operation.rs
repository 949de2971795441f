//! One operation: which HLO it becomes, by name.

use std::borrow::Cow;

use helio_ir::sharding::Placement;
use helio_ir::{CompId, Error, InstrId, Op, Result, Shape, Sharding};

use super::attrs::Attrs;
use super::body::Body;
use super::{quantized, source, types};
use crate::front_end;
use crate::mlir::{Operation, Type};
use crate::table;

/// Operations whose results have elements that were there before.
const MOVES: &[&str] = &[
    "func.call",
    "stablehlo.broadcast_in_dim",
    "stablehlo.concatenate",
    "stablehlo.constant",
    "stablehlo.reshape",
    "stablehlo.reverse",
    "stablehlo.select",
    "stablehlo.slice",
    "stablehlo.transpose",
];

/// An operation being lowered: its operands, attributes, and the types of its results.
pub(super) struct Site<'s, 'm> {
    pub op: &'m Operation,
    pub attrs: &'s Attrs<'m>,
    pub operands: Vec<InstrId>,
    pub operand_types: Vec<&'m Type>,
    /// Of quantized results what the numbers stand for, once operands are that.
    pub result_types: Vec<Cow<'m, Type>>,
}

impl Site<'_, '_> {
    /// The only operand, the first two, or the first three. Errors: if there are fewer.
    pub fn operands<const N: usize>(&self) -> Result<[InstrId; N]> {
        self.operands.get(..N).and_then(|list| list.try_into().ok()).ok_or_else(|| {
            Error::invalid(format!("{N} operands are needed, found {}", self.operands.len()))
        })
    }

    /// The type of the first result. Errors: if there is none.
    pub fn result(&self) -> Result<&Type> {
        let first = self.result_types.first().map(Cow::as_ref);
        first.ok_or_else(|| Error::invalid("a result is needed, but none is named"))
    }

    /// The shape of the first result.
    pub fn result_array(&self) -> Result<helio_ir::ArrayShape> {
        match self.result()? {
            Type::Tensor(tensor) => types::array(tensor),
            ty => Err(Error::invalid(format!("the result must be a tensor, is {ty}"))),
        }
    }

    /// The element type of the first result.
    pub fn result_element(&self) -> Result<helio_ir::ElementType> {
        match self.result()? {
            Type::Tensor(tensor) => types::element(&tensor.element),
            ty => Err(Error::invalid(format!("the result must be a tensor, is {ty}"))),
        }
    }
}

impl<'m> Body<'_, 'm> {
    /// Lowers an operation and binds its results. Errors: with its name and its place.
    pub fn operation(&mut self, op: &'m Operation) -> Result<()> {
        self.comes_from(op.at.clone(), op.location);
        let around = self.has_attributes(front_end::attributes(&op.attributes));
        let result = self.operation_here(op);
        self.has_attributes(around);
        result.map_err(|e| {
            let place = match (&op.at, source::innermost(self.cx.source, op.location)) {
                (None, Some(place)) => format!("{} at {place}", op.name),
                _ => op.name.clone(),
            };
            e.in_instruction(&place).at(op.at.clone())
        })
    }

    fn operation_here(&mut self, op: &'m Operation) -> Result<()> {
        let first = self.comp.instrs().len();
        let attrs = Attrs::new(&op.attributes);
        let source = self.cx.source;
        let carried = op.results.iter().map(|&value| source.type_of(value));
        if let Some(ty) = carried.clone().find(|ty| types::is_carried(ty))
            && !MOVES.contains(&op.name.as_str())
        {
            return Err(Error::unimplemented(format!("arithmetic on {ty}")));
        }
        let site = Site {
            op,
            attrs: &attrs,
            operands: self.operands(op)?,
            operand_types: op.operands.iter().map(|&value| source.type_of(value)).collect(),
            result_types: op
                .results
                .iter()
                .map(|&value| Cow::Borrowed(source.type_of(value)))
                .collect(),
        };
        let results =
            if quantized::concerns(&site) { self.quantized(&site)? } else { self.plain(&site)? };
        attrs.finish()?;
        if results.len() != op.results.len() {
            let (found, named) = (results.len(), op.results.len());
            return Err(Error::invalid(format!("{found} results, but {named} are named")));
        }
        for (i, (&id, ty)) in results.iter().zip(&site.result_types).enumerate() {
            let found = self.shape(id);
            let ty: &Type = ty;
            if !types::agrees(found, ty) {
                let detail = format!("result {i} has the type {ty}, but is {found}");
                return Err(Error::invalid(detail));
            }
        }
        if let Some(sharding) = front_end::sharding(&op.attributes)? {
            self.spread(&results, first, sharding);
        }
        for (&value, id) in op.results.iter().zip(results) {
            self.bind(value, id);
        }
        Ok(())
    }

    /// Notes how the results of an operation, which are no instructions before `first`, are spread over
    /// devices; of several that is said of their tuple. A program for one of several partitions is in
    /// tiles already.
    pub fn spread(&mut self, results: &[InstrId], first: usize, sharding: Sharding) {
        let tuple_of = |id: InstrId| match self.comp.instr(id).op {
            Op::GetTupleElement(_) => Some(self.comp.instr(id).operands[0]),
            _ => None,
        };
        // A loop's tuple may have more elements than it has results.
        let has_all = |&tuple: &InstrId| {
            let elements = self.shape(tuple).as_tuple().map(<[Shape]>::len);
            elements == Some(results.len()) && results.iter().all(|&id| tuple_of(id) == Some(tuple))
        };
        let id = match *results {
            // The only element of a tuple is said to lie as the tuple does.
            [one] => tuple_of(one).filter(has_all).or(Some(one)),
            [one, ..] => tuple_of(one).filter(has_all),
            [] => None,
        };
        let Some(id) = id.filter(|id| id.index() >= first && self.cx.partitions.is_whole()) else {
            return;
        };
        let sharding = match (self.shape(id), sharding) {
            (Shape::Array(_), Sharding { placement: Placement::Tuple(mut list), .. })
                if list.len() == 1 =>
            {
                list.remove(0)
            }
            (Shape::Tuple(elements), one)
                if elements.len() == 1 && !matches!(one.placement, Placement::Tuple(_)) =>
            {
                Sharding::of(Placement::Tuple(vec![one]))
            }
            (_, sharding) => sharding,
        };
        self.comp.instr_mut(id).extra.get_or_insert_default().sharding = Some(sharding);
    }

    /// The results of an operation on values that are not quantized, or as if they were not.
    pub fn plain(&mut self, site: &Site<'_, 'm>) -> Result<Vec<InstrId>> {
        let name = site.op.name.as_str();
        if name == "stablehlo.cbrt" && self.element(site.operands::<1>()?[0])?.is_complex() {
            return Ok(vec![self.elementwise("cbrt", site)?]);
        }
        // What CHLO had before StableHLO has the same meaning.
        let moved = name.strip_prefix("chlo.").map(|name| format!("stablehlo.{name}"));
        let known = self.cx.elementwise.get(name);
        if let Some(op) = known.or(moved.and_then(|n| self.cx.elementwise.get(n.as_str()))) {
            let op: Op = op.clone();
            return Ok(vec![self.push(op, &site.operands)?]);
        }
        let dialect = name.split('.').next().unwrap_or_default();
        match dialect {
            "chlo" => self.chlo(site),
            "check" | "interpreter" => self.check(site),
            "func" | "sdy" | "builtin" => self.control(site),
            "stablehlo" | "mhlo" => self.stablehlo(site),
            _ => Err(unknown()),
        }
    }

    fn stablehlo(&mut self, site: &Site<'_, 'm>) -> Result<Vec<InstrId>> {
        let name = site.op.name.split_once('.').map_or("", |(_, name)| name);
        Ok(vec![match name {
            "select" | "convert" | "bitcast_convert" | "reduce_precision" => {
                self.elementwise(name, site)?
            }
            "constant" | "broadcast" | "broadcast_in_dim" | "get_dimension_size" => {
                self.movement(name, site)?
            }
            "dynamic_iota"
            | "dynamic_broadcast_in_dim"
            | "dynamic_reshape"
            | "dynamic_pad"
            | "dynamic_gather"
            | "dynamic_conv"
            | "real_dynamic_slice" => self.dynamic(name, site)?,
            "dot" | "einsum" | "unary_einsum" => self.product(name, site)?,
            "torch_index_select" => self.index_select(site)?,
            "rng" => self.rng(site)?,
            "all_gather" | "all_to_all" | "reduce_scatter" | "collective_reduce" => {
                return self.collective(name, site);
            }
            "collective_broadcast" if site.attrs.flag("has_dynamic_root")? => {
                return self.collective(name, site);
            }
            "while"
            | "if"
            | "case"
            | "tuple"
            | "get_tuple_element"
            | "optimization_barrier"
            | "composite"
            | "create_token" => return self.control(site),
            "custom_call" => return self.custom_call(site),
            "infeed" | "outfeed" | "send" | "recv" => return self.host(name, site),
            _ => return self.row(name, site),
        }])
    }

    /// An operation that has a row in the table.
    pub fn row(&mut self, name: &str, site: &Site<'_, 'm>) -> Result<Vec<InstrId>> {
        let opcode = table::opcode(&format!("stablehlo.{name}")).ok_or_else(unknown)?;
        let regions = 0..site.op.regions.len();
        let regions = regions.map(|index| self.element_region(site, index, name));
        let regions = regions.collect::<Result<Vec<_>>>()?;
        let op = self.reading(site, &regions, |from| table::read(opcode, from));
        let id = self.push(op.ok_or_else(unknown)??, &site.operands)?;
        self.unpack(id, site.result_types.len())
    }

    /// Runs what reads attributes by the table's codecs.
    pub fn reading<T>(
        &self,
        site: &Site<'_, 'm>,
        regions: &[CompId],
        read: impl FnOnce(&table::Reading<'_, 'm>) -> T,
    ) -> T {
        let operands: Vec<&Shape> = site.operands.iter().map(|&id| self.shape(id)).collect();
        let result = |ty: &Cow<'_, Type>| types::array(ty.as_tensor()?).ok();
        let results: Vec<_> = site.result_types.iter().map(result).collect();
        let attrs = site.attrs;
        read(&table::Reading { attrs, operands: &operands, results: &results, regions })
    }
}

/// The error for an operation that helio does not know.
pub(super) fn unknown() -> Error {
    Error::unimplemented("an operation that helio does not know")
}
