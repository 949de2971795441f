//! Shardings: as messages, and as the text between the braces of `sharding={…}`.

use helio_ir::sharding::{Devices, Placement, ShardGroup, SubgroupKind, Subgroups, Tiles};
use helio_ir::text::{parse_metadata, print_metadata};
use helio_ir::{Error, Result, Sharding};

use crate::header::{read_metadata, write_metadata};
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

/// What ties a sharding to those of its group.
const SHARD_GROUP: words::Words = &[(0, "shard_as"), (1, "shard_like")];

/// `[2,1]`, of numbers.
fn bracketed<T: ToString>(numbers: &[T]) -> String {
    format!("[{}]", joined(numbers))
}

fn joined<T: ToString>(numbers: &[T]) -> String {
    numbers.iter().map(T::to_string).collect::<Vec<_>>().join(",")
}

/// The text of a sharding, without the outer braces.
pub(crate) fn read(proto: &OpSharding) -> Result<String> {
    let mut text = match proto.kind {
        TUPLE => {
            let parts = proto.tuple_shardings.iter().map(|part| match part.kind {
                TUPLE => Err(Error::invalid("a sharding of a tuple inside of one")),
                _ => read(part).map(|text| format!("{{{text}}}")),
            });
            return Ok(parts.collect::<Result<Vec<_>>>()?.join(", "));
        }
        MAXIMAL => {
            let device = proto.tile_assignment_devices.first().copied().unwrap_or(0);
            format!("maximal device={device}")
        }
        OTHER => tiled(proto)?,
        kind => words::word(PLAIN, kind, "a sharding of kind")?.to_owned(),
    };
    if proto.is_shard_group {
        let kind = words::word(SHARD_GROUP, proto.shard_group_type, "a group of shardings")?;
        text += &format!(" {kind} {}", proto.shard_group_id);
    }
    let metadata = proto.metadata.iter().map(|metadata| print_metadata(&read_metadata(metadata)));
    match &metadata.collect::<Vec<_>>()[..] {
        [] => {}
        [one] => text += &format!(" metadata={one}"),
        several => text += &format!(" metadata={{{}}}", several.join(", ")),
    }
    Ok(text)
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

/// The message for a sharding. Errors: `Unimplemented` for one that messages do not have.
pub(crate) fn write(sharding: &Sharding) -> Result<OpSharding> {
    let unknown = || Error::unimplemented(format!("sharding={sharding} as a message"));
    let mut proto = OpSharding::default();
    proto.kind = match &sharding.placement {
        Placement::Replicated => REPLICATED,
        Placement::Manual => MANUAL,
        Placement::Unknown => UNKNOWN,
        Placement::Unreduced => UNREDUCED,
        Placement::Maximal { device } => {
            proto.tile_assignment_dimensions = vec![1];
            proto.tile_assignment_devices = vec![*device as i64];
            MAXIMAL
        }
        Placement::Tiled(tiles) => {
            write_tiles(tiles, &mut proto)?;
            OTHER
        }
        Placement::Tuple(parts) => {
            let is_tuple = |part: &Sharding| matches!(part.placement, Placement::Tuple(_));
            if parts.iter().any(is_tuple) {
                return Err(unknown());
            }
            proto.tuple_shardings = parts.iter().map(write).collect::<Result<_>>()?;
            TUPLE
        }
        _ => return Err(unknown()),
    };
    if let Some(group) = sharding.group {
        let (ShardGroup::As(id) | ShardGroup::Like(id)) = group;
        let kind = if matches!(group, ShardGroup::As(_)) { "shard_as" } else { "shard_like" };
        proto.is_shard_group = true;
        proto.shard_group_id = id;
        proto.shard_group_type = words::number(SHARD_GROUP, kind, "a group of shardings")?;
    }
    if let Some(metadata) = &sharding.metadata {
        let metadata = parse_metadata(metadata)?;
        proto.metadata = metadata.iter().map(write_metadata).collect::<Result<_>>()?;
    }
    Ok(proto)
}

fn write_tiles(tiles: &Tiles, proto: &mut OpSharding) -> Result<()> {
    proto.tile_assignment_dimensions = words::ints(&tiles.dims);
    match &tiles.devices {
        Devices::List(devices) => proto.tile_assignment_devices = words::ints(devices),
        Devices::Iota { dims, transpose } => {
            proto.iota_reshape_dims = words::ints(dims);
            proto.iota_transpose_perm = match transpose {
                Some(order) => order.iter().map(|&d| d as i32).collect(),
                None => (0..dims.len() as i32).collect(),
            };
        }
    }
    match &tiles.subgroups {
        Subgroups::None => {}
        Subgroups::ReplicateLast => proto.replicate_on_last_tile_dim = true,
        Subgroups::Kinds(kinds) => {
            let number = |kind: &SubgroupKind| words::number(SUBGROUP, kind.word(), "a subgroup");
            proto.last_tile_dims = kinds.iter().map(number).collect::<Result<_>>()?;
        }
    }
    Ok(())
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
            "{replicated}, {devices=[2]0,1 shard_as 3}",
            "replicated shard_like -1",
            "devices=[2]<=[2] shard_as 1 metadata={op_name=\"a\"}",
            "devices=[2]<=[2] metadata={{op_name=\"a\" source_line=3}, {op_type=\"b\"}}",
        ] {
            let sharding = Sharding::read(text).unwrap();
            assert_eq!(read(&write(&sharding).unwrap()).unwrap(), text);
        }
        assert!(write(&Sharding::read("mesh['a'=2], [{'a'}]").unwrap()).is_err());
    }
}
