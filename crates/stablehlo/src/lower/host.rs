//! Exchange with the host and with other programs.

use helio_ir::ops::{Infeed, Outfeed, Recv, RecvDone, SEND_RECV_PAIRS, Send, SendDone};
use helio_ir::text::attrs::quote;
use helio_ir::{Error, InstrId, Result, Shape};

use super::body::Body;
use super::operation::Site;
use super::types;

impl<'m> Body<'_, 'm> {
    /// In StableHLO the values stand apart, and before the token; in HLO they are one, maybe a tuple.
    pub(super) fn host(&mut self, name: &str, site: &Site<'_, 'm>) -> Result<Vec<InstrId>> {
        let attrs = site.attrs;
        let token = site.operands.last().copied();
        let token = token.ok_or_else(|| Error::invalid("a token is needed"))?;
        let values = &site.operands[..site.operands.len() - 1];
        let counts = site.result_types.len().saturating_sub(1);
        let results = site.result_types[..counts].iter().map(|ty| types::shape(ty));
        let mut results: Vec<Shape> = results.collect::<Result<_>>()?;
        let shape = match results.len() {
            1 => results.remove(0),
            _ => Shape::Tuple(results),
        };
        let config = |name: &str| {
            let text = attrs.string(name)?.filter(|text| !text.is_empty());
            Ok::<_, Error>(text.map(quote))
        };
        let (channel_id, is_host_transfer) = self.channel(site)?;
        let (all, done) = match name {
            "infeed" => {
                attrs.get("layout");
                let config = config("infeed_config")?;
                let all = self.push(Infeed { shape, config }, &[token])?;
                (all, all)
            }
            "recv" => {
                let begun = self.push(Recv { shape, channel_id, is_host_transfer }, &[token])?;
                let all = self.push(RecvDone { channel_id, is_host_transfer }, &[begun])?;
                self.between(site, [begun, all])?;
                (all, all)
            }
            _ => {
                let value = match values {
                    [one] => *one,
                    _ => self.tuple(values)?,
                };
                if name == "outfeed" {
                    let shape = self.shape(value).clone();
                    let config = config("outfeed_config")?;
                    return Ok(vec![self.push(Outfeed { shape, config }, &[value, token])?]);
                }
                let begun = self.push(Send { channel_id, is_host_transfer }, &[value, token])?;
                let done = self.push(SendDone { channel_id, is_host_transfer }, &[begun])?;
                self.between(site, [begun, done])?;
                return Ok(vec![done]);
            }
        };
        let value = self.element_of(all, 0)?;
        let token = self.element_of(done, 1)?;
        let mut results = self.unpack(value, counts)?;
        results.push(token);
        Ok(results)
    }

    /// Notes who sends to whom, if it is stated, where HLO has it.
    fn between(&mut self, site: &Site<'_, 'm>, transfer: [InstrId; 2]) -> Result<()> {
        let Some((_, values)) = site.attrs.matrix("source_target_pairs")? else { return Ok(()) };
        let pairs = values.chunks_exact(2).map(|pair| format!("{{{},{}}}", pair[0], pair[1]));
        let pairs: Vec<String> = pairs.collect();
        if pairs.is_empty() {
            return Ok(());
        }
        let pairs = format!("{{{}}}", pairs.join(","));
        for id in transfer {
            let extra = self.comp.instr_mut(id).extra.get_or_insert_default();
            extra.frontend_attributes.retain(|(name, _)| name != SEND_RECV_PAIRS);
            extra.frontend_attributes.push((SEND_RECV_PAIRS.to_owned(), pairs.clone()));
        }
        Ok(())
    }

    /// Channel and whether the peer is the host.
    fn channel(&self, site: &Site<'_, 'm>) -> Result<(Option<i64>, bool)> {
        let handle = match site.attrs.fields("channel_handle")? {
            Some(fields) => {
                fields.get("type");
                fields.integer("handle")?
            }
            None => None,
        };
        Ok((handle, site.attrs.flag("is_host_transfer")?))
    }
}
