//! MLIR in memory: modules of operations, with their values, blocks and regions.

use std::collections::HashMap;

use helio_ir::{Error, Result};

use super::{Attribute, Field, LocId, Location, Type};

/// A value: a result of an operation, or an argument of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub u32);

impl ValueId {
    /// The place in [`Module::values`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// An operation.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The name with its dialect: `stablehlo.add`.
    pub name: String,
    /// The operands.
    pub operands: Vec<ValueId>,
    /// The results; their types are in [`Module::values`].
    pub results: Vec<ValueId>,
    /// Attributes (and properties), in the order written.
    pub attributes: Vec<Field>,
    /// The regions.
    pub regions: Vec<Region>,
    /// Where it comes from.
    pub location: LocId,
    /// Where it stands in the text; `None` if it was not read from text.
    pub at: Option<helio_ir::Location>,
}

impl Operation {
    /// An operation without operands, results, attributes and regions.
    pub fn new(name: impl Into<String>) -> Self {
        Operation {
            name: name.into(),
            operands: Vec::new(),
            results: Vec::new(),
            attributes: Vec::new(),
            regions: Vec::new(),
            location: LocId::UNKNOWN,
            at: None,
        }
    }

    /// The attribute with this name.
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|(n, _)| n == name).map(|(_, attribute)| attribute)
    }
}

/// Blocks; StableHLO's regions have one, a declaration's none.
#[derive(Clone, Debug, Default)]
pub struct Region {
    /// The blocks; the first is the entry.
    pub blocks: Vec<Block>,
}

/// Operations in order, the last of which ends the block.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// The values that the block is given.
    pub arguments: Vec<ValueId>,
    /// The operations.
    pub operations: Vec<Operation>,
}

/// A module: functions and the values in them.
#[derive(Clone, Debug)]
pub struct Module {
    /// The name, if it has one: `jit_f`.
    pub name: Option<String>,
    /// Attributes: `mhlo.num_partitions` and the like.
    pub attributes: Vec<Field>,
    /// `func.func`, `sdy.mesh` and other operations of the top level.
    pub operations: Vec<Operation>,
    /// The type of each value, by [`ValueId`].
    pub values: Vec<Type>,
    /// The locations, by [`LocId`]; the first is [`Location::Unknown`].
    pub locations: Vec<Location>,
    /// Where arguments of blocks come from, of those for which it is stated: the parameters of a
    /// function have the names of the user's there.
    pub argument_locations: HashMap<ValueId, LocId>,
}

impl Default for Module {
    fn default() -> Self {
        Module {
            name: None,
            attributes: Vec::new(),
            operations: Vec::new(),
            values: Vec::new(),
            locations: vec![Location::Unknown],
            argument_locations: HashMap::new(),
        }
    }
}

impl Module {
    /// A new value of this type. Errors: `ResourceExhausted` if there are 2^32 already.
    pub fn add_value(&mut self, ty: Type) -> Result<ValueId> {
        let id = u32::try_from(self.values.len())
            .map_err(|_| Error::exhausted("more than 2^32 values in one module"))?;
        self.values.push(ty);
        Ok(ValueId(id))
    }

    /// A new location. Errors: `ResourceExhausted` if there are 2^32 already.
    pub fn add_location(&mut self, location: Location) -> Result<LocId> {
        let id = u32::try_from(self.locations.len())
            .map_err(|_| Error::exhausted("more than 2^32 locations in one module"))?;
        self.locations.push(location);
        Ok(LocId(id))
    }

    /// Notes where an argument of a block comes from.
    pub fn locate_argument(&mut self, value: ValueId, location: LocId) {
        if location != LocId::UNKNOWN {
            self.argument_locations.insert(value, location);
        }
    }

    /// The type of a value of this module.
    pub fn type_of(&self, value: ValueId) -> &Type {
        &self.values[value.index()]
    }
}
