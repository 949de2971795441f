//! Shardings: as messages, and as the text between the braces of `sharding={…}`.

use helio_ir::text::attrs::{Scan, braced};
use helio_ir::{Error, Result};

use crate::messages::OpSharding;
use crate::words::{self, SUBGROUP};

const REPLICATED: i32 = 0;
const MAXIMAL: i32 = 1;
const TUPLE: i32 = 2;
const OTHER: i32 = 3;
const MANUAL: i32 = 4;
const UNKNOWN: i32 = 5;
const UNREDUCED: i32 = 6;

/// Kinds that are one word.
const PLAIN: words::Words = &[
    (REPLICATED, "replicated"),
    (MANUAL, "manual"),
    (UNKNOWN, "unknown"),
    (UNREDUCED, "unreduced"),
];

/// `[2,1]`, of numbers.
fn bracketed<T: ToString>(numbers: &[T]) -> String {
    format!("[{}]", joined(numbers))
}

fn joined<T: ToString>(numbers: &[T]) -> String {
    numbers.iter().map(T::to_string).collect::<Vec<_>>().join(",")
}

/// The text of a sharding, without the outer braces.
pub(crate) fn read(proto: &OpSharding) -> Result<String> {
    Ok(match proto.kind {
        TUPLE => {
            let parts = proto.tuple_shardings.iter().map(|part| match part.kind {
                TUPLE => Err(Error::invalid("a sharding of a tuple inside of one")),
                _ => read(part).map(|text| format!("{{{text}}}")),
            });
            parts.collect::<Result<Vec<_>>>()?.join(", ")
        }
        MAXIMAL => {
            let device = proto.tile_assignment_devices.first().copied().unwrap_or(0);
            format!("maximal device={device}")
        }
        OTHER => tiled(proto)?,
        kind => words::word(PLAIN, kind, "a sharding of kind")?.to_owned(),
    })
}

/// `devices=[2,1]<=[2]T(1,0) last_tile_dim_replicate`
fn tiled(proto: &OpSharding) -> Result<String> {
    let mut text = format!("devices={}", bracketed(&proto.tile_assignment_dimensions));
    if proto.iota_reshape_dims.is_empty() {
        text += &joined(&proto.tile_assignment_devices);
    } else {
        text += &format!("<={}", bracketed(&proto.iota_reshape_dims));
        let order = &proto.iota_transpose_perm;
        if order.len() > 1 {
            text += &format!("T({})", joined(order));
        }
    }
    if proto.replicate_on_last_tile_dim {
        text += " last_tile_dim_replicate";
    }
    if !proto.last_tile_dims.is_empty() {
        let names = proto.last_tile_dims.iter();
        let names = names.map(|&kind| words::word(SUBGROUP, kind, "a sharding's subgroup"));
        text += &format!(" last_tile_dims={{{}}}", names.collect::<Result<Vec<_>>>()?.join(", "));
    }
    Ok(text)
}

/// The message for the text of a sharding. Errors: `Unimplemented` for one that is not of these
/// forms.
pub(crate) fn write(text: &str) -> Result<OpSharding> {
    let unknown = || Error::unimplemented(format!("sharding={{{text}}} as a message"));
    let mut scan = Scan::new(text);
    if scan.rest().starts_with('{') {
        let list = braced(&[text]);
        let mut scan = Scan::new(&list);
        let parts = scan.list('{', '}', |scan| {
            scan.expect("{")?;
            let part = one(scan)?;
            scan.expect("}")?;
            Ok(part)
        });
        let tuple_shardings = parts.map_err(|_| unknown())?;
        return Ok(OpSharding { kind: TUPLE, tuple_shardings, ..OpSharding::default() });
    }
    let sharding = one(&mut scan).map_err(|_| unknown())?;
    scan.end().map_err(|_| unknown())?;
    Ok(sharding)
}

fn one(scan: &mut Scan<'_>) -> Result<OpSharding> {
    let mut sharding = OpSharding::default();
    if scan.eat("maximal") {
        scan.expect("device=")?;
        sharding.kind = MAXIMAL;
        sharding.tile_assignment_dimensions = vec![1];
        sharding.tile_assignment_devices = vec![scan.int()?];
        return Ok(sharding);
    }
    if !scan.eat("devices=") {
        sharding.kind = words::number(PLAIN, scan.word()?, "a sharding")?;
        return Ok(sharding);
    }
    sharding.kind = OTHER;
    sharding.tile_assignment_dimensions = scan.list('[', ']', Scan::int)?;
    if scan.eat("<=") {
        sharding.iota_reshape_dims = scan.list('[', ']', Scan::int)?;
        sharding.iota_transpose_perm = match scan.eat("T") {
            true => scan.list('(', ')', |scan| Ok(scan.size()? as i32))?,
            false => (0..sharding.iota_reshape_dims.len() as i32).collect(),
        };
    } else {
        sharding.tile_assignment_devices.push(scan.int()?);
        while scan.eat(",") {
            sharding.tile_assignment_devices.push(scan.int()?);
        }
    }
    if scan.eat("last_tile_dim_replicate") {
        sharding.replicate_on_last_tile_dim = true;
    } else if scan.eat("last_tile_dims=") {
        let kind = |scan: &mut Scan<'_>| words::number(SUBGROUP, scan.word()?, "a subgroup");
        sharding.last_tile_dims = scan.list('{', '}', kind)?;
    }
    Ok(sharding)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips() {
        for text in [
            "replicated",
            "manual",
            "maximal device=3",
            "devices=[2,1]0,1",
            "devices=[2,2]<=[4]",
            "devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate",
            "devices=[2,1,2]<=[4] last_tile_dims={manual, replicated}",
            "{replicated}, {devices=[2]0,1}",
        ] {
            assert_eq!(read(&write(text).unwrap()).unwrap(), text);
        }
        assert!(write("devices=[2").is_err());
    }
}
