//! Codecs of who takes part in an exchange.

use helio_ir::ops::{CollectiveAttrs, ReplicaGroups};
use helio_ir::{Error, Result};

use super::codec::{integer, matrix, put};
use super::{Reading, Writing};
use crate::mlir::Attribute;

/// Pairs of participants: from, to.
pub(crate) struct Pairs(pub &'static str);

impl Pairs {
    pub(super) fn read(&self, from: &Reading<'_, '_>) -> Result<Vec<(usize, usize)>> {
        let pairs = from.attrs.matrix(self.0)?;
        let missing = || Error::invalid(format!("attribute `{}` is needed", self.0));
        let (_, values) = pairs.ok_or_else(missing)?;
        let number =
            |n: i64| usize::try_from(n).map_err(|_| Error::invalid(format!("participant {n}")));
        let pair = |pair: &[i64]| Ok((number(pair[0])?, number(pair[1])?));
        values.chunks_exact(2).map(pair).collect()
    }

    pub(crate) fn write(&self, pairs: &[(usize, usize)], to: &mut Writing<'_>) -> Result<()> {
        let values = pairs.iter().flat_map(|&(source, target)| [source, target]);
        let values = values.map(integer).collect::<Result<Vec<_>>>()?;
        put(to, self.0, matrix([pairs.len(), 2], values));
        Ok(())
    }
}

/// The channel, if there is one: 0 stands for none.
pub(super) struct Channel;

impl Channel {
    pub(super) fn read(&self, from: &Reading<'_, '_>) -> Result<Option<i64>> {
        let Some(fields) = from.attrs.fields("channel_handle")? else { return Ok(None) };
        fields.get("type");
        Ok(fields.integer("handle")?.filter(|&handle| handle > 0))
    }

    pub(super) fn write(&self, id: &Option<i64>, to: &mut Writing<'_>) -> Result<()> {
        if let Some(id) = id {
            put(to, "channel_handle", channel_handle(*id, DEVICE_TO_DEVICE));
        }
        Ok(())
    }
}

/// The type of a channel between devices.
const DEVICE_TO_DEVICE: i64 = 1;

/// `#stablehlo.channel_handle<handle = 1, type = 1>`
pub(crate) fn channel_handle(handle: i64, ty: i64) -> Attribute {
    let fields = [("handle", Attribute::i64(handle)), ("type", Attribute::i64(ty))];
    let fields = fields.map(|(name, value)| (name.to_owned(), value)).to_vec();
    let [dialect, name] = ["stablehlo", "channel_handle"].map(str::to_owned);
    Attribute::Struct { dialect, name, fields }
}

/// Who takes part in a collective.
pub(crate) struct Collective;

impl Collective {
    pub(crate) fn read(&self, from: &Reading<'_, '_>) -> Result<CollectiveAttrs> {
        Ok(CollectiveAttrs {
            replica_groups: groups(from)?,
            channel_id: Channel.read(from)?,
            use_global_device_ids: from.attrs.flag("use_global_device_ids")?,
            constrain_layout: false,
        })
    }

    pub(crate) fn write(&self, attrs: &CollectiveAttrs, to: &mut Writing<'_>) -> Result<()> {
        put(to, "replica_groups", group_matrix(&attrs.replica_groups)?);
        Channel.write(&attrs.channel_id, to)?;
        if attrs.use_global_device_ids {
            put(to, "use_global_device_ids", Attribute::Unit);
        }
        Ok(())
    }
}

fn groups(from: &Reading<'_, '_>) -> Result<ReplicaGroups> {
    let Some((dims, values)) = from.attrs.matrix("replica_groups")? else {
        return Ok(ReplicaGroups::List(Vec::new()));
    };
    let size = dims.get(1).copied().unwrap_or(0);
    if size == 0 {
        return Ok(ReplicaGroups::List(Vec::new()));
    }
    // Rows that are shorter than others are filled up with -1.
    let row = |row: &[i64]| row.iter().filter_map(|&n| usize::try_from(n).ok()).collect();
    Ok(ReplicaGroups::List(values.chunks(size).map(row).collect()))
}

/// Groups as rows of a matrix, shorter ones filled up with -1.
fn group_matrix(groups: &ReplicaGroups) -> Result<Attribute> {
    let groups = groups.lists()?;
    let size = groups.iter().map(Vec::len).max().unwrap_or(0);
    let mut values = Vec::new();
    for group in &groups {
        for &member in group {
            values.push(integer(member)?);
        }
        values.extend(std::iter::repeat_n(-1, size - group.len()));
    }
    Ok(matrix([groups.len(), size], values))
}
