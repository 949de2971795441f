//! What a caller must know of a program besides its shapes: names, donation, memory, shardings.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use helio_ir::{Error, Literal, Result, Sharding};

use crate::front_end;
use crate::lower::{self, Attrs};
use crate::mlir::{Attribute, Field, LocId, Location, Module, Operation};
use crate::sharding::Meshes;

/// What is known of a program's parameters and results besides their shapes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interface {
    /// The parameters of the entry, in order.
    pub parameters: Vec<ParameterInfo>,
    /// The results of the entry, in order; of a tuple, its elements.
    pub results: Vec<ResultInfo>,
}

/// What is known of a parameter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParameterInfo {
    /// The user's name for it, as JAX states it: `x`, `params['w']`.
    pub name: Option<String>,
    /// The result that may take its memory (`tf.aliasing_output`).
    pub aliased_result: Option<usize>,
    /// Whether any result may take its memory (`jax.buffer_donor`).
    pub is_donor: bool,
    /// The kind of memory that it lies in (`mhlo.memory_kind`): `device`, `pinned_host`.
    pub memory_kind: Option<String>,
    /// How it is spread over devices (`mhlo.sharding`, or `sdy.sharding` in HLO's terms).
    pub sharding: Option<Sharding>,
}

/// What is known of a result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResultInfo {
    /// The place in what the user's function gives, as JAX states it: `result['loss']`.
    pub name: Option<String>,
    /// The kind of memory that it lies in (`mhlo.memory_kind`).
    pub memory_kind: Option<String>,
    /// How it is spread over devices (`mhlo.sharding`, or `sdy.sharding` in HLO's terms).
    pub sharding: Option<Sharding>,
}

impl Interface {
    /// What a module says of its entry. Errors: there is no entry, or an attribute is wrong.
    pub fn of(module: &Module) -> Result<Self> {
        let entry = lower::entry(module)?;
        let (inputs, results) = lower::signature(entry)?;
        let meshes = Meshes::of(module)?;
        let block = lower::function_block(entry)?;
        let mut parameters = Vec::new();
        for (i, fields) in attributes(entry, "arg_attrs", inputs.len())?.into_iter().enumerate() {
            let location = block.arguments.get(i).and_then(|v| module.argument_locations.get(v));
            let found = parameter(&Attrs::new(fields), &meshes)
                .map_err(|e| placed(e, entry, &format!("argument {i}")))?;
            let name = location.and_then(|&location| user_name(module, location));
            parameters.push(ParameterInfo { name, ..found });
        }
        let mut infos = Vec::new();
        for (i, fields) in attributes(entry, "res_attrs", results.len())?.into_iter().enumerate() {
            let found = result(&Attrs::new(fields), &meshes);
            infos.push(found.map_err(|e| placed(e, entry, &format!("result {i}")))?);
        }
        Ok(Interface { parameters, results: infos })
    }
}

impl Interface {
    /// Arguments by name, in the order of the parameters.
    ///
    /// Errors: a parameter without a name or an argument; an argument that no parameter has the name of.
    pub fn arguments(&self, mut named: BTreeMap<String, Literal>) -> Result<Vec<Literal>> {
        let mut arguments = Vec::new();
        for (i, info) in self.parameters.iter().enumerate() {
            let Some(name) = &info.name else {
                return Err(Error::invalid(format!("parameter {i} has no name")));
            };
            let argument = named.remove(name);
            arguments.push(argument.ok_or_else(|| {
                Error::invalid(format!("there is no argument `{name}` (parameter {i})"))
            })?);
        }
        match named.keys().next() {
            None => Ok(arguments),
            Some(name) => Err(Error::invalid(format!("there is no parameter `{name}`"))),
        }
    }

    /// What a run gives, by the names of the results; those without a name are `result[0]`, `result[1]`
    /// and so on, and an only one `result`. Errors: there are more or fewer results; two have one name.
    pub fn results(&self, value: Literal) -> Result<BTreeMap<String, Literal>> {
        let values = match value {
            Literal::Tuple(values) if self.results.len() != 1 => values,
            value => vec![value],
        };
        if values.len() != self.results.len() {
            let (found, named) = (values.len(), self.results.len());
            return Err(Error::invalid(format!("{found} results, but {named} are named")));
        }
        let is_one = values.len() == 1;
        let unnamed = |i: usize| if is_one { "result".to_owned() } else { format!("result[{i}]") };
        let mut results = BTreeMap::new();
        for (i, (info, value)) in self.results.iter().zip(values).enumerate() {
            let name = info.name.clone().unwrap_or_else(|| unnamed(i));
            match results.entry(name) {
                Entry::Vacant(place) => drop(place.insert(value)),
                Entry::Occupied(place) => {
                    return Err(Error::invalid(format!("two results are named `{}`", place.key())));
                }
            }
        }
        Ok(results)
    }
}

/// An error located at the entry's argument or result that `what` names.
fn placed(error: Error, entry: &Operation, what: &str) -> Error {
    error.in_instruction(&format!("{}, {what}", entry.name)).at(entry.at.clone())
}

/// The attributes of each of `count` arguments or results of a function, from its attribute `name`. Errors:
/// it is no list of as many dictionaries.
fn attributes<'m>(function: &'m Operation, name: &str, count: usize) -> Result<Vec<&'m [Field]>> {
    let list = match function.attribute(name) {
        None => return Ok(vec![&[]; count]),
        Some(Attribute::Array(list)) if list.is_empty() => return Ok(vec![&[]; count]),
        Some(Attribute::Array(list)) if list.len() == count => list,
        Some(_) => {
            let detail = format!("attribute `{name}` must be a list of {count} dictionaries");
            return Err(Error::invalid(detail).at(function.at.clone()));
        }
    };
    let fields = list.iter().map(|each| match each {
        Attribute::Dictionary(fields) => Ok(&fields[..]),
        _ => Err(Error::invalid(format!("attribute `{name}` must be a list of dictionaries"))),
    });
    fields.collect::<Result<_>>().map_err(|e| e.at(function.at.clone()))
}

fn parameter(attrs: &Attrs<'_>, meshes: &Meshes) -> Result<ParameterInfo> {
    Ok(ParameterInfo {
        name: None,
        aliased_result: attrs
            .get("tf.aliasing_output")
            .map(|_| attrs.size("tf.aliasing_output"))
            .transpose()?,
        is_donor: attrs.flag("jax.buffer_donor")?,
        memory_kind: attrs.string("mhlo.memory_kind")?.map(str::to_owned),
        sharding: sharding(attrs, meshes)?,
    })
}

fn result(attrs: &Attrs<'_>, meshes: &Meshes) -> Result<ResultInfo> {
    let name = attrs.string("jax.result_info")?.filter(|name| !name.is_empty());
    Ok(ResultInfo {
        name: name.map(str::to_owned),
        memory_kind: attrs.string("mhlo.memory_kind")?.map(str::to_owned),
        sharding: sharding(attrs, meshes)?,
    })
}

fn sharding(attrs: &Attrs<'_>, meshes: &Meshes) -> Result<Option<Sharding>> {
    if let Some(text) = attrs.string("mhlo.sharding")? {
        return front_end::read_sharding(text).map(Some);
    }
    match attrs.get("sdy.sharding") {
        None => Ok(None),
        Some(Attribute::Other(text)) => meshes.sharding(text).map(Some),
        Some(_) => Err(Error::invalid("attribute `sdy.sharding` must be `#sdy.sharding<…>`")),
    }
}

/// The user's name for an argument, if its location is one.
pub(crate) fn user_name(module: &Module, location: LocId) -> Option<String> {
    match module.locations.get(location.0 as usize)? {
        Location::Name { name, .. } if !name.is_empty() => Some(name.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_results(names: &[&str]) -> Interface {
        let result = |name: &&str| {
            let name = Some((*name).to_owned()).filter(|name| !name.is_empty());
            ResultInfo { name, ..ResultInfo::default() }
        };
        Interface { parameters: Vec::new(), results: names.iter().map(result).collect() }
    }

    #[test]
    fn each_result_has_a_name_of_its_own() {
        let pair = || Literal::Tuple(vec![Literal::scalar(1f32), Literal::scalar(2f32)]);
        let names = |names: &[&str], value| -> Result<Vec<String>> {
            Ok(with_results(names).results(value)?.into_keys().collect())
        };
        assert_eq!(names(&["loss", ""], pair()).unwrap(), ["loss", "result[1]"]);
        assert_eq!(names(&[""], Literal::scalar(1f32)).unwrap(), ["result"]);
        let error = names(&["loss", "loss"], pair()).unwrap_err();
        assert_eq!(error.detail(), "two results are named `loss`");
        let error = names(&["result[1]", ""], pair()).unwrap_err();
        assert_eq!(error.detail(), "two results are named `result[1]`");
        let error = names(&["loss"; 3], pair()).unwrap_err();
        assert_eq!(error.detail(), "2 results, but 3 are named");
    }
}
