//! Who sends to whom: pairs of a source and a target.

use crate::text::attrs::Scan;
use crate::{Error, Instr, Op, Result, ensure};

/// The attribute of the front end that says for `send`, `recv` and their ends who sends to whom.
pub const SEND_RECV_PAIRS: &str = "_xla_send_recv_source_target_pairs";

/// Reads `{{0,1},{1,2}}`.
pub(crate) fn read_pairs(scan: &mut Scan<'_>) -> Result<Vec<(usize, usize)>> {
    scan.list('{', '}', |scan| {
        scan.expect("{")?;
        let source = scan.size()?;
        scan.expect(",")?;
        let target = scan.size()?;
        scan.expect("}")?;
        Ok((source, target))
    })
}

/// Errors: `rule` if a source or a target occurs twice.
pub(crate) fn ensure_once(rule: &'static str, pairs: &[(usize, usize)]) -> Result<()> {
    let sources = pairs.iter().map(|pair| pair.0).collect::<Vec<_>>();
    let targets = pairs.iter().map(|pair| pair.1).collect();
    for (what, mut ids) in [("source", sources), ("target", targets)] {
        ids.sort_unstable();
        let twice = ids.windows(2).find(|pair| pair[0] == pair[1]);
        ensure!(
            twice.is_none(),
            rule,
            "source_target_pairs: {} occurs more than once as a {what}",
            twice.map_or(0, |pair| pair[0])
        );
    }
    Ok(())
}

/// The sources and targets, `replica * partitions + partition`, that a `send`, a `recv` or an end of
/// one states in [`SEND_RECV_PAIRS`]; `None` if it states none, or is another operation. Errors:
/// `channel.C1`.
pub fn transfer_pairs(instr: &Instr) -> Result<Option<Vec<(usize, usize)>>> {
    if !matches!(instr.op, Op::Send(_) | Op::SendDone(_) | Op::Recv(_) | Op::RecvDone(_)) {
        return Ok(None);
    }
    let mut attributes = instr.extra.iter().flat_map(|extra| &extra.frontend_attributes);
    let Some((_, value)) = attributes.find(|(name, _)| name == SEND_RECV_PAIRS) else {
        return Ok(None);
    };
    let text = value.trim().trim_matches('"');
    let mut scan = Scan::new(text);
    let pairs = read_pairs(&mut scan).and_then(|pairs| scan.end().map(|()| pairs));
    let pairs = pairs.map_err(|e| {
        let text: String = text.chars().take(100).collect();
        Error::rule("channel.C1", format!("{SEND_RECV_PAIRS}={text}: {}", e.detail()))
    })?;
    ensure_once("channel.C1", &pairs)?;
    Ok(Some(pairs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_transfers() {
        let pairs = |value: &str| {
            let text = format!(
                "ENTRY e {{ t = token[] after-all()
                 ROOT r = (f32[], u32[], token[]) recv(t), channel_id=1, frontend_attributes={{{SEND_RECV_PAIRS}={value}}} }}"
            );
            let module = crate::text::parse(&text).unwrap();
            let entry = module.entry();
            transfer_pairs(entry.instr(entry.root())).map_err(|e| e.rule_id())
        };
        assert_eq!(pairs("{{0,1},{1,0}}"), Ok(Some(vec![(0, 1), (1, 0)])));
        assert_eq!(pairs("\"{{2,1}}\""), Ok(Some(vec![(2, 1)])));
        assert_eq!(pairs("{}"), Ok(Some(vec![])));
        assert_eq!(pairs("{{0,1},{2,1}}"), Err(Some("channel.C1")));
        assert_eq!(pairs("{{0,1},{0,2}}"), Err(Some("channel.C1")));
        assert_eq!(pairs("\"{0,1}\""), Err(Some("channel.C1")));
    }
}
