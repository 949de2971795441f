//! What the pages that rustdoc writes declare.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The page of a public item, or of a module.
pub(super) struct Page {
    /// Its path, as a program writes it: `helio::ir::Op`.
    pub(super) place: String,
    /// The name of its file, by which the same item is known in other modules and crates:
    /// `enum.Op.html`.
    pub(super) file: String,
    /// The lines of its declaration, its public methods and the traits that it implements.
    pub(super) declared: Vec<String>,
    /// The items of other crates of the project that its declaration and its methods name: their paths,
    /// and the files of their pages.
    pub(super) foreign: BTreeSet<(String, String)>,
    /// Whether it is an item of the crate itself, not of another one that it exports, and no module.
    pub(super) is_own: bool,
    /// Whether there is an example on it.
    pub(super) has_example: bool,
    /// Its public methods without an example.
    pub(super) without_example: Vec<String>,
}

/// The pages of a crate's items and modules, by their paths, shorter ones first. Errors: there are none.
pub(super) fn all(doc: &Path, crate_name: &str) -> Result<Vec<Page>, String> {
    let dir = doc.join(crate_name);
    let read = |file: &str| {
        let path = dir.join(file);
        fs::read_to_string(&path).map_err(|e| format!("{}: {e}; run cargo doc", path.display()))
    };
    // Pages of items that are gone may still lie there, so the list is asked.
    let list = read("all.html")?;
    let mut files = BTreeSet::from(["index.html".to_owned()]);
    let items = between(&list, "<li><a href=\"", "\"").filter(|file| file.ends_with(".html"));
    for file in items {
        files.insert(file.to_owned());
        let modules = file.match_indices('/').map(|(at, _)| format!("{}/index.html", &file[..at]));
        files.extend(modules);
    }
    let mut pages = Vec::new();
    for file in &files {
        pages.push(Page::new(crate_name, file, &read(file)?));
    }
    pages.sort_by_key(|page| (page.place.matches("::").count(), page.place.clone()));
    match pages.iter().any(|page| !page.declared.is_empty()) {
        true => Ok(pages),
        false => {
            Err(format!("{}: no declarations, rustdoc writes them in another way", dir.display()))
        }
    }
}

impl Page {
    /// What a file of a crate's pages says.
    fn new(crate_name: &str, file: &str, html: &str) -> Self {
        let (modules, name) = file.rsplit_once('/').unwrap_or(("", file));
        let mut place = crate_name.to_owned();
        let item = name.split('.').nth(1).filter(|_| name != "index.html");
        for part in modules.split('/').filter(|part| !part.is_empty()).chain(item) {
            place.push_str("::");
            place.push_str(part);
        }
        let source = between(html, "class=\"src\" href=\"", "\"").next().unwrap_or_default();
        let own = own_part(html);
        let html = own.as_str();
        let declaration =
            between(html, "item-decl\"><code>", "</code></pre>").next().unwrap_or_default();
        let headers: Vec<&str> = between(html, "<h4 class=\"code-header\">", "</h4>").collect();
        let signatures = headers.iter().copied().chain([declaration]);
        Page {
            place,
            file: name.to_owned(),
            foreign: signatures
                .flat_map(links)
                .filter(|link| is_foreign(link, crate_name))
                .collect(),
            declared: declared(html, declaration, &headers),
            is_own: name != "index.html" && source.contains(&format!("/src/{crate_name}/")),
            has_example: html.contains(EXAMPLE),
            without_example: without_example(html),
        }
    }
}

/// What marks an example.
const EXAMPLE: &str = "class=\"example-wrap";

/// A page without the methods that its type has because it dereferences to another one, and without the
/// traits that the compiler or other crates implement by themselves: they follow the version of Rust.
fn own_part(html: &str) -> String {
    const FOREIGN: [&str; 3] =
        ["deref-methods", "synthetic-implementations", "blanket-implementations"];
    const SECTION: &str = "<h2 id=\"";
    let is_foreign = |part: &&str| FOREIGN.iter().any(|name| part.starts_with(name));
    let parts: Vec<&str> = html.split(SECTION).filter(|part| !is_foreign(part)).collect();
    parts.join(SECTION)
}

fn declared(html: &str, declaration: &str, headers: &[&str]) -> Vec<String> {
    let text = plain(declaration);
    let mut lines: Vec<String> = match text.starts_with("pub fn ") {
        true => vec![on_one_line(&text)],
        false => text.lines().map(on_one_line).filter(|line| !line.is_empty()).collect(),
    };
    let one_line = |html: &&str| on_one_line(&plain(html));
    let mut methods: Vec<String> = headers.iter().map(one_line).collect();
    methods.retain(|text| text.starts_with("pub "));
    let impls = between(html, "<h3 class=\"code-header\">", "</h3>");
    let mut impls: Vec<String> = impls.map(|html| one_line(&html)).collect();
    impls.retain(|text| text.starts_with("impl") && text.contains(" for "));
    let exports = between(html, "<code>pub use ", "</code>");
    let mut exports: Vec<String> = exports.map(|html| format!("pub use {}", plain(html))).collect();
    for part in [&mut methods, &mut impls, &mut exports] {
        part.sort();
        lines.append(part);
    }
    lines
}

/// The methods of a page's own type that have no example.
fn without_example(html: &str) -> Vec<String> {
    let own = html.split("<h2 id=\"trait-implementations\"").next().unwrap_or_default();
    let methods = own.split("<section id=\"method.").skip(1);
    let methods = methods.filter(|text| !text.contains(EXAMPLE));
    methods.filter_map(|text| text.split('"').next()).map(str::to_owned).collect()
}

/// The items to which a piece of a page has links: their paths and the files of their pages.
fn links(html: &str) -> impl Iterator<Item = (String, String)> {
    between(html, "<a class=\"", "</a>").filter_map(|link| {
        let file = between(link, "href=\"", "\"").next()?.rsplit('/').next()?;
        // "struct helio::ir::Module"
        let title = between(link, "title=\"", "\"").next()?;
        let (_, path) = title.split_once(' ')?;
        Some((path.to_owned(), file.to_owned()))
    })
}

/// Whether a link leads to another crate of the project.
fn is_foreign((path, _): &(String, String), crate_name: &str) -> bool {
    let of = path.split("::").next().unwrap_or_default();
    of != crate_name && of.starts_with("helio")
}

fn between<'a>(html: &'a str, begin: &'a str, end: &'a str) -> impl Iterator<Item = &'a str> {
    html.split(begin).skip(1).filter_map(move |rest| Some(rest.split_once(end)?.0))
}

/// A declaration on one line, whatever its length. (The mark leads to traits of what a method gives.)
fn on_one_line(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().filter(|&word| word != "ⓘ").collect();
    words.join(" ").replace("( ", "(").replace(", )", ")")
}

/// The text of a piece of a page.
fn plain(html: &str) -> String {
    let mut text = String::with_capacity(html.len());
    let mut rest = html;
    while let Some((before, behind)) = rest.split_once('<') {
        text.push_str(before);
        let (tag, mut behind) = behind.split_once('>').unwrap_or((behind, ""));
        // What unfolds a long declaration says how long it is.
        if tag.starts_with("summary") {
            behind = behind.split_once("</summary>").map_or(behind, |(_, behind)| behind);
        }
        if ["div", "/div", "br"].iter().any(|block| tag.starts_with(block)) {
            text.push(' ');
        }
        rest = behind;
    }
    text.push_str(rest);
    let escapes = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&nbsp;", " ")];
    for (escape, character) in escapes {
        text = text.replace(escape, character);
    }
    text.replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "<pre class=\"rust item-decl\"><code><div class=\"code-attribute\">#[must_use]</div>pub \
        struct Axis {\n    pub at: <a class=\"enum\" href=\"../helio_ir/enum.Side.html\" title=\"enum \
        helio_ir::side::Side\">Side</a>,\n}</code></pre><h3 class=\"code-header\">impl \
        Axis</h3><section id=\"method.of\"><h4 class=\"code-header\">pub fn of(\n  &amp;self,\n) -&gt; \
        u8<div class=\"where\">where Self: Sized</div></h4></section><section id=\"method.end\"><h4 \
        class=\"code-header\">pub fn end(self)</h4><div class=\"example-wrap\"></div></section><h2 \
        id=\"deref-methods-u8\"><h4 class=\"code-header\">pub fn len(&amp;self)</h4><h2 \
        id=\"trait-implementations\"><h3 class=\"code-header\">impl Debug for Axis</h3><section \
        id=\"method.fmt\"><h4 class=\"code-header\">fn fmt(&amp;self)</h4></section><h2 \
        id=\"blanket-implementations\"><h3 class=\"code-header\">impl Any for T</h3>";

    #[test]
    fn pages_say_what_they_declare() {
        let page = Page::new("helio", "ir/struct.Axis.html", PAGE);
        assert_eq!((&*page.place, &*page.file), ("helio::ir::Axis", "struct.Axis.html"));
        let expected = [
            "#[must_use] pub struct Axis {",
            "pub at: Side,",
            "}",
            "pub fn end(self)",
            "pub fn of(&self) -> u8 where Self: Sized",
            "impl Debug for Axis",
        ];
        assert_eq!(page.declared, expected);
        assert_eq!((page.has_example, page.is_own), (true, false));
        assert_eq!(page.without_example, ["of"]);
        let side = ("helio_ir::side::Side".to_owned(), "enum.Side.html".to_owned());
        assert_eq!(page.foreign, BTreeSet::from([side]));
        assert!(Page::new("helio_ir", "struct.Axis.html", PAGE).foreign.is_empty());
    }

    #[test]
    fn modules_are_what_they_export() {
        let html = "<code>pub use crate::<a class=\"struct\" href=\"x\">Dim</a>;</code>";
        let page = Page::new("helio_graph", "prelude/index.html", html);
        assert_eq!(
            (&*page.place, &*page.declared),
            ("helio_graph::prelude", &["pub use crate::Dim;".to_owned()][..])
        );
    }
}
