//! Shardings: how a value is spread over devices.

use std::fmt;

use crate::ops::words;
use crate::text::MAX_DEPTH;
use crate::text::attrs::{Scan, is_balanced};
use crate::{Error, Result, ensure};

/// How a value is spread over devices.
///
/// ```
/// let sharding = helio_ir::Sharding::read("devices=[2,4]<=[4,2]T(1,0)")?;
/// let helio_ir::sharding::Placement::Tiled(tiles) = &sharding.placement else { panic!() };
/// assert_eq!(tiles.dims, [2, 4]);
/// assert_eq!(tiles.devices.count(), Some(8));
/// assert_eq!(sharding.to_string(), "{devices=[2,4]<=[4,2]T(1,0)}");
/// # Ok::<(), helio_ir::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sharding {
    /// Where it is.
    pub placement: Placement,
    /// The values with which it is to be spread alike.
    pub group: Option<ShardGroup>,
    /// Where the sharding comes from, as written in its braces.
    pub metadata: Option<String>,
}

/// Where a value is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Placement {
    /// Whole on each device.
    Replicated,
    /// Each device has what the program gives it.
    Manual,
    /// Not known.
    Unknown,
    /// Each device has a summand.
    Unreduced,
    /// Whole on one device.
    Maximal {
        /// Its number.
        device: usize,
    },
    /// In tiles.
    Tiled(Tiles),
    /// That of each element of a tuple.
    Tuple(Vec<Sharding>),
    /// Something else, as written between the braces.
    Other(String),
}

/// A value in tiles, and the devices that have them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiles {
    /// The number of tiles in each dimension; then the devices in each dimension of a subgroup.
    pub dims: Vec<usize>,
    /// The device of each tile, the last dimension's fastest.
    pub devices: Devices,
    /// What devices along the last dimensions have, which are none of the value's.
    pub subgroups: Subgroups,
}

/// What the devices of a subgroup have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subgroups {
    /// There are none.
    None,
    /// The last dimension's devices have the same tile.
    ReplicateLast,
    /// Each of the last dimensions has its kind.
    Kinds(Vec<SubgroupKind>),
}

/// The order of devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Devices {
    /// One by one.
    List(Vec<usize>),
    /// 0, 1, 2 and so on in an array of these dimensions, transposed.
    Iota {
        /// The dimensions.
        dims: Vec<usize>,
        /// For each dimension of the transposed array, which one it was; `None` if all stay.
        transpose: Option<Vec<usize>>,
    },
}

impl Devices {
    /// How many there are; `None` if they are too many to be counted.
    pub fn count(&self) -> Option<usize> {
        match self {
            Devices::List(devices) => Some(devices.len()),
            Devices::Iota { dims, .. } => product(dims),
        }
    }
}

fn product(dims: &[usize]) -> Option<usize> {
    dims.iter().try_fold(1_usize, |product, &dim| product.checked_mul(dim))
}

words! {
    /// What devices along a dimension of tiles have that is none of the value's.
    SubgroupKind {
        /// What the program gives them.
        Manual = "manual",
        /// The same tile.
        Replicated = "replicated",
        /// A summand of the tile.
        Unreduced = "unreduced",
    }
}

/// A group of values that are to be spread alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShardGroup {
    /// They must be.
    As(i64),
    /// They should be.
    Like(i64),
}

impl Sharding {
    /// What HLO text has between the braces of a sharding. What is of no known form is kept as
    /// written. Errors: `sharding.C1`; brackets that are not closed, or not opened.
    pub fn read(text: &str) -> Result<Self> {
        let text = text.trim();
        let mut scan = Scan::new(text);
        match Self::inner(&mut scan, 0).and_then(|sharding| scan.end().map(|()| sharding)) {
            Ok(sharding) => Ok(sharding),
            Err(error) if error.rule_id().is_some() => Err(error),
            // The braces around it would end elsewhere.
            Err(error) if !is_balanced(&format!("{{{text}}}")) => Err(error),
            Err(_) => Ok(Self::of(Placement::Other(text.to_owned()))),
        }
    }

    /// A sharding without group and metadata.
    pub fn of(placement: Placement) -> Self {
        Sharding { placement, group: None, metadata: None }
    }

    fn inner(scan: &mut Scan<'_>, depth: usize) -> Result<Self> {
        if depth == MAX_DEPTH {
            return Err(Error::exhausted("shardings are nested too deep"));
        }
        if scan.rest().is_empty() || scan.rest().starts_with(['{', '}']) {
            let mut elements = Vec::new();
            while scan.eat("{") {
                elements.push(Self::inner(scan, depth + 1)?);
                scan.expect("}")?;
                if !scan.eat(",") {
                    break;
                }
            }
            return Ok(Self::of(Placement::Tuple(elements)));
        }
        let mut sharding = Self::of(match scan.word()? {
            "replicated" => Placement::Replicated,
            "manual" => Placement::Manual,
            "unknown" => Placement::Unknown,
            "unreduced" => Placement::Unreduced,
            "maximal" => {
                scan.expect("device")?;
                scan.expect("=")?;
                Placement::Maximal { device: scan.size()? }
            }
            "devices" => Placement::Tiled(tiles(scan)?),
            _ => return Err(scan.unexpected("a sharding")),
        });
        while !(scan.rest().is_empty() || scan.rest().starts_with('}')) {
            match (scan.word()?, &mut sharding.placement) {
                ("last_tile_dim_replicate", Placement::Tiled(tiles)) => {
                    tiles.subgroups = Subgroups::ReplicateLast;
                }
                ("last_tile_dims", Placement::Tiled(tiles)) => {
                    scan.expect("=")?;
                    let kind = |scan: &mut Scan<'_>| SubgroupKind::from_word(scan.word()?);
                    tiles.subgroups = Subgroups::Kinds(scan.list('{', '}', kind)?);
                }
                ("shard_as", _) => sharding.group = Some(ShardGroup::As(scan.int()?)),
                ("shard_like", _) => sharding.group = Some(ShardGroup::Like(scan.int()?)),
                ("metadata", _) => {
                    scan.expect("=")?;
                    sharding.metadata = Some(braced(scan)?.to_owned());
                }
                _ => return Err(scan.unexpected("a part of a sharding")),
            }
        }
        if let Placement::Tiled(tiles) = &sharding.placement {
            tiles.check()?;
        }
        Ok(sharding)
    }
}

/// `=[2,4]<=[4,2]T(1,0)`, `=[2,2]0,1,2,3`
fn tiles(scan: &mut Scan<'_>) -> Result<Tiles> {
    scan.expect("=")?;
    let dims = scan.list('[', ']', Scan::size)?;
    let devices = if scan.eat("<=") {
        let dims = scan.list('[', ']', Scan::size)?;
        let transpose = scan.eat("T").then(|| scan.list('(', ')', Scan::size)).transpose()?;
        Devices::Iota { dims, transpose }
    } else {
        let mut devices = vec![scan.size()?];
        while scan.eat(",") {
            devices.push(scan.size()?);
        }
        Devices::List(devices)
    };
    Ok(Tiles { dims, devices, subgroups: Subgroups::None })
}

impl Tiles {
    /// Errors: `sharding.C1`.
    fn check(&self) -> Result<()> {
        let (tiles, devices) = (product(&self.dims), self.devices.count());
        let text = |count: Option<usize>| count.map_or("too many".to_owned(), |n| n.to_string());
        ensure!(
            tiles.is_some() && tiles == devices,
            "sharding.C1",
            "there must be a device for each tile, found {} tiles on {} devices",
            text(tiles),
            text(devices)
        );
        if let Devices::Iota { dims, transpose: Some(transpose) } = &self.devices {
            let mut sorted = transpose.clone();
            sorted.sort_unstable();
            ensure!(
                sorted.into_iter().eq(0..dims.len()),
                "sharding.C1",
                "the order of devices must name each of {} dimensions once",
                dims.len()
            );
        }
        let subgroups = match &self.subgroups {
            Subgroups::None => 0,
            Subgroups::ReplicateLast => 1,
            Subgroups::Kinds(kinds) => kinds.len(),
        };
        ensure!(
            subgroups <= self.dims.len(),
            "sharding.C1",
            "there are kinds for {subgroups} subgroups, but only {} dimensions",
            self.dims.len()
        );
        Ok(())
    }
}

/// `{…}` with all that it contains.
fn braced<'t>(scan: &mut Scan<'t>) -> Result<&'t str> {
    let text = scan.rest();
    let (mut depth, mut in_string, mut is_escaped) = (0_usize, false, false);
    for (at, c) in text.char_indices() {
        if in_string {
            in_string = is_escaped || c != '"';
            is_escaped = !is_escaped && c == '\\';
            continue;
        }
        match c {
            '"' => in_string = true,
            '{' => depth += 1,
            '}' if depth == 1 => {
                scan.take_rest();
                *scan = Scan::new(&text[at + 1..]);
                return Ok(&text[..=at]);
            }
            '}' if depth > 1 => depth -= 1,
            _ if depth == 0 => break,
            _ => {}
        }
    }
    Err(scan.unexpected("something in braces"))
}

/// As HLO text has it, braces included.
impl fmt::Display for Sharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        match &self.placement {
            Placement::Replicated => f.write_str("replicated")?,
            Placement::Manual => f.write_str("manual")?,
            Placement::Unknown => f.write_str("unknown")?,
            Placement::Unreduced => f.write_str("unreduced")?,
            Placement::Maximal { device } => write!(f, "maximal device={device}")?,
            Placement::Tiled(tiles) => tiles.fmt(f)?,
            Placement::Tuple(elements) => {
                for (i, element) in elements.iter().enumerate() {
                    write!(f, "{}{element}", if i == 0 { "" } else { ", " })?;
                }
            }
            Placement::Other(text) => f.write_str(text)?,
        }
        match self.group {
            Some(ShardGroup::As(group)) => write!(f, " shard_as {group}")?,
            Some(ShardGroup::Like(group)) => write!(f, " shard_like {group}")?,
            None => {}
        }
        if let Some(metadata) = &self.metadata {
            write!(f, " metadata={metadata}")?;
        }
        f.write_str("}")
    }
}

impl fmt::Display for Tiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list =
            |values: &[usize]| values.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        write!(f, "devices=[{}]", list(&self.dims))?;
        match &self.devices {
            Devices::List(devices) => f.write_str(&list(devices))?,
            Devices::Iota { dims, transpose } => {
                write!(f, "<=[{}]", list(dims))?;
                if let Some(transpose) = transpose {
                    write!(f, "T({})", list(transpose))?;
                }
            }
        }
        match &self.subgroups {
            Subgroups::None => Ok(()),
            Subgroups::ReplicateLast => f.write_str(" last_tile_dim_replicate"),
            Subgroups::Kinds(kinds) => {
                let kinds: Vec<&str> = kinds.iter().map(|kind| kind.word()).collect();
                write!(f, " last_tile_dims={{{}}}", kinds.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shardings_are_read_and_written() {
        for text in [
            "replicated",
            "manual",
            "unknown",
            "unreduced",
            "maximal device=3",
            "devices=[4,2]<=[8]",
            "devices=[2,4]<=[4,2]T(1,0)",
            "devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate",
            "devices=[1,1,4,2]<=[8] last_tile_dims={manual, replicated}",
            "devices=[2,2]0,2,1,3",
            "devices=[2]<=[2] metadata={op_name=\"s}\"}",
            "devices=[2]<=[2] shard_as 1 metadata={{op_name=\"a\"}, {op_name=\"b\"}}",
            "replicated shard_like 7",
            "{replicated}, {devices=[2]0,1}, {maximal device=0 metadata={op_name=\"c\"}}",
            "{{manual}}, {}",
            "",
        ] {
            let sharding = Sharding::read(text).unwrap();
            assert!(!sharding.to_string().contains("Other"), "{sharding:?}");
            assert_eq!(sharding.to_string(), format!("{{{text}}}"));
            assert_ne!(sharding.placement, Placement::Other(text.to_owned()), "{text}");
        }
        let spaced = Sharding::read("{ replicated },/*index=1*/{devices=[2] 0, 1}").unwrap();
        assert_eq!(spaced.to_string(), "{{replicated}, {devices=[2]0,1}}");
    }

    #[test]
    fn other_forms_are_kept() {
        for text in ["mesh['a'=2], [{'a'}]", "replicated for=ever", "devices=[2]<=[2] of {x}"] {
            let sharding = Sharding::read(text).unwrap();
            assert_eq!(sharding.placement, Placement::Other(text.to_owned()));
            assert_eq!(sharding.to_string(), format!("{{{text}}}"));
        }
        let deep = "{".repeat(10_000) + &"}".repeat(10_000);
        assert_eq!(Sharding::read(&deep).unwrap().to_string(), format!("{{{deep}}}"));
    }

    #[test]
    fn tiles_and_devices_are_as_many() {
        for text in [
            "devices=[4,2]<=[4]",
            "devices=[2]0",
            "devices=[2,2]<=[2,2]T(1,1)",
            "devices=[2]<=[2] last_tile_dims={manual, manual}",
            "devices=[18446744073709551615,2]<=[4]",
            "{replicated}, {devices=[2]<=[3]}",
        ] {
            assert_eq!(Sharding::read(text).unwrap_err().rule_id(), Some("sharding.C1"), "{text}");
        }
    }
}
