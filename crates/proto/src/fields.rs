//! Lists of attributes in text: `, name=value, name=value`.

use helio_ir::text::attrs::{Scan, quote_unless_braced};
use helio_ir::{Error, Result};

/// Cuts `, a={1,2}, b="x, y", c=3` into names and values.
pub(crate) fn split(text: &str) -> Vec<(&str, &str)> {
    let mut parts = Vec::new();
    let (mut start, mut depth, mut quoted, mut escaped) = (0, 0_usize, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.into_iter().filter_map(|part| part.trim().split_once('=')).collect()
}

/// The text inside of quotes, or the text itself if it has none.
pub(crate) fn unquoted(text: &str) -> Result<String> {
    if !text.starts_with('"') {
        return Ok(text.to_owned());
    }
    let mut scan = Scan::new(text);
    let inner = scan.string()?;
    scan.end()?;
    Ok(inner)
}

/// Bytes of the front end or the back end as text has them: JSON as it is, all else in quotes.
pub(crate) fn configuration(bytes: &[u8], what: &str) -> Result<String> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| Error::unimplemented(format!("{what} that is not UTF-8")))?;
    Ok(quote_unless_braced(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_cut_at_commas_outside() {
        let text = r#", a={1,2}, b="x, \"y=", c={{0}: (1, {})}, d=b01f_01io->b01f"#;
        let wanted = [
            ("a", "{1,2}"),
            ("b", r#""x, \"y=""#),
            ("c", "{{0}: (1, {})}"),
            ("d", "b01f_01io->b01f"),
        ];
        assert_eq!(split(text), wanted);
    }
}
