//! `cargo xtask api`: the public items of each API crate, compared with the list in `doc/api`.
//!
//! The source is rustdoc's pages: they know what is reachable, and the toolchain is pinned.
//! The page of an item gives its declaration, its own methods and constants, and the traits
//! that it implements. Order and form are rustdoc's, so equal sources give equal lists.

use std::fs;
use std::path::{Path, PathBuf};

use crate::step::{self, Outcome};
use crate::workspace::Workspace;

/// The crates whose public items are for users outside the workspace (CONTRIBUTING.md).
const CRATES: [&str; 12] = [
    "punctual-model",
    "punctual-order",
    "punctual-kern",
    "punctual-tables",
    "punctual-child",
    "punctual-analysis",
    "punctual-policy",
    "punctual-certificate",
    "punctual-conform",
    "punctual-trace",
    "punctual-thread",
    "punctual",
];

/// Options of the chore.
#[derive(clap::Args)]
pub(crate) struct ApiOptions {
    /// Write the lists instead of comparing them
    #[arg(long)]
    set: bool,
}

/// Builds the pages, then compares the lists or writes them; whether they are equal.
pub(crate) fn run(workspace: &Workspace, options: &ApiOptions) -> bool {
    let mut command = workspace.cargo();
    command
        .args(["doc", "--quiet", "--no-deps", "--lib"])
        .args(CRATES.map(|name| format!("--package={name}")))
        // As in the documentation of the whole workspace, where the command has this feature.
        .args(["--features", "punctual-trace/serde"])
        .env("RUSTDOCFLAGS", "-D warnings");
    if !step::passes_in_the_open(command) {
        return false;
    }
    let outcome = if options.set {
        set(workspace).map_or_else(Outcome::Failed, |()| Outcome::Passed("written".into()))
    } else {
        step(workspace)
    };
    match outcome {
        Outcome::Passed(remark) => {
            println!("api: {remark}");
            true
        }
        Outcome::Failed(message) | Outcome::Skipped(message) => {
            println!("{message}");
            false
        }
    }
}

/// Compares the lists with pages that are built.
pub(crate) fn step(workspace: &Workspace) -> Outcome {
    let mut changes = Vec::new();
    for name in CRATES {
        let now = match list(&pages(workspace, name)) {
            Ok(now) => now,
            Err(error) => return Outcome::Failed(error),
        };
        let before = fs::read_to_string(file(workspace, name)).unwrap_or_default();
        changes.extend(differences(&before, &now).map(|change| format!("{name}: {change}")));
    }
    if changes.is_empty() {
        return Outcome::Passed(format!("{} crates as listed", CRATES.len()));
    }
    Outcome::Failed(format!(
        "{}\npublic items changed; if that is meant, `cargo xtask api --set`, and a line in CHANGELOG.md",
        changes.join("\n")
    ))
}

fn set(workspace: &Workspace) -> Result<(), String> {
    for name in CRATES {
        let path = file(workspace, name);
        let folder = path.parent().unwrap_or(&path);
        let list = list(&pages(workspace, name))?;
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, list))
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// The folder of rustdoc's pages of a crate.
fn pages(workspace: &Workspace, name: &str) -> PathBuf {
    workspace.target.join("doc").join(name.replace('-', "_"))
}

/// The file with the list of a crate.
fn file(workspace: &Workspace, name: &str) -> PathBuf {
    let name = format!("{name}.txt");
    workspace.root.join("doc").join("api").join(name)
}

/// Lines that one of the texts has and the other has not, each behind its item.
fn differences(before: &str, now: &str) -> impl Iterator<Item = String> {
    let (before, now) = (under_their_items(before), under_their_items(now));
    let gone: Vec<String> = missing(&before, &now).map(|l| format!("- {l}")).collect();
    let new = missing(&now, &before).map(|l| format!("+ {l}"));
    gone.into_iter().chain(new).collect::<Vec<_>>().into_iter()
}

fn missing<'a>(from: &'a [String], to: &'a [String]) -> impl Iterator<Item = &'a String> {
    from.iter().filter(|line| !to.contains(line))
}

fn under_their_items(text: &str) -> Vec<String> {
    let mut item = "";
    let mut lines = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        if line.starts_with(' ') {
            lines.push(format!("{item}: {}", line.trim()));
        } else {
            item = line;
            lines.push(line.to_string());
        }
    }
    lines
}

/// The list of a crate: re-exports by module, then each item with everything below it.
fn list(pages: &Path) -> Result<String, String> {
    let mut text = String::new();
    for (module, page) in modules(pages)? {
        for line in reexports(&page) {
            text.push_str(&format!("{module}: {line}\n"));
        }
    }
    let all = read(&pages.join("all.html"))?;
    let items = all.split_once("class=\"all-items\"");
    let items = items.map_or("", |(_, items)| items);
    for link in links(items) {
        let page = read(&pages.join(&link))?;
        text.push_str(&format!("\n{}\n", link.trim_end_matches(".html")));
        for line in item(&page) {
            text.push_str(&format!("    {line}\n"));
        }
    }
    Ok(text)
}

/// The root and all modules that it leads to, each with its page.
fn modules(pages: &Path) -> Result<Vec<(String, String)>, String> {
    let mut found = vec![("index".to_string(), read(&pages.join("index.html"))?)];
    let mut next = 0;
    while let Some((path, page)) = found.get(next).cloned() {
        let folder = path.trim_end_matches("index");
        for link in links(&page).filter(|link| link.ends_with("/index.html")) {
            let own = !link.starts_with("..") && link.matches('/').count() == 1;
            let module = format!("{folder}{}", link.trim_end_matches(".html"));
            if own && !found.iter().any(|(known, _)| *known == module) {
                let page = read(&pages.join(format!("{module}.html")))?;
                found.push((module, page));
            }
        }
        next += 1;
    }
    Ok(found)
}

/// The re-exports that a module's page lists.
fn reexports(page: &str) -> Vec<String> {
    let parts = page.split("<code>pub use ").skip(1);
    let codes = parts.filter_map(|part| part.split_once("</code>"));
    codes
        .map(|(code, _)| format!("pub use {}", plain(code)))
        .collect()
}

/// Relative destinations of the links of a page, in order.
fn links(page: &str) -> impl Iterator<Item = String> {
    let parts = page.split("href=\"").skip(1);
    let links = parts.filter_map(|part| part.split_once('"'));
    links
        .map(|(link, _)| link.to_string())
        .filter(|link| link.ends_with(".html") && !link.contains("://"))
}

/// What the page of an item says of it: declaration, own methods and constants, traits.
fn item(page: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let declaration = between(
        page,
        "<pre class=\"rust item-decl\"><code>",
        "</code></pre>",
    );
    for line in without_summaries(declaration).lines() {
        let line = plain(line);
        if !line.is_empty() && !line.starts_with("//") {
            lines.push(line);
        }
    }
    let own = between(page, "id=\"implementations-list\"", "<h2 id=");
    lines.extend(headers(own).filter(|line| !line.starts_with("impl")));
    let traits = between(page, "id=\"trait-implementations-list\"", "<h2 id=");
    let traits = headers(traits).filter(|line| line.starts_with("impl"));
    lines.extend(traits.filter(|line| !line.contains("StructuralPartialEq")));
    lines
}

/// The text from behind `start` to `end`, or to the end of the page; nothing without `start`.
fn between<'a>(page: &'a str, start: &str, end: &str) -> &'a str {
    let rest = page.split_once(start).map_or("", |(_, rest)| rest);
    rest.split_once(end).map_or(rest, |(part, _)| part)
}

/// The code of all headers of sections.
fn headers(part: &str) -> impl Iterator<Item = String> {
    let headers = part.split("class=\"code-header\">").skip(1);
    headers.map(|header| {
        let end = header.find("</h3>").into_iter().chain(header.find("</h4>"));
        let header = &header[..end.min().unwrap_or(header.len())];
        plain(header)
    })
}

/// A declaration without the labels that rustdoc folds long ones under.
fn without_summaries(text: &str) -> String {
    let mut parts = text.split("<summary");
    let mut whole = parts.next().unwrap_or_default().to_string();
    for part in parts {
        whole.push_str(part.split_once("</summary>").map_or("", |(_, rest)| rest));
    }
    whole
}

/// Text without tags and entities, with single spaces.
fn plain(html: &str) -> String {
    let mut text = String::new();
    let mut in_tag = false;
    // Clauses of their own line, and the mark of types that are iterators or futures.
    let html = html.replace("<div", " <div").replace('ⓘ', "");
    for c in html.chars() {
        match c {
            '<' => in_tag = true,
            '>' if in_tag => in_tag = false,
            c if !in_tag => text.push(c),
            _ => {}
        }
    }
    for (entity, c) in [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&#60;", "<"),
        ("&#62;", ">"),
        ("&#39;", "'"),
        ("&#x27;", "'"),
        ("&quot;", "\""),
        ("&nbsp;", " "),
        ("&amp;", "&"),
    ] {
        text = text.replace(entity, c);
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "<pre class=\"rust item-decl\"><code>pub struct Span<details>\
        <summary class=\"hideme\">Show</summary>(<span class=\"comment\">/* private fields */</span>);\
        </code></pre><h2 id=\"implementations\">x</h2><div id=\"implementations-list\">\
        <h3 class=\"code-header\">impl <a href=\"struct.Span.html\">Span</a></h3>\
        <h4 class=\"code-header\">pub fn <a>ticks</a>(&amp;self) -&gt; <a>u64</a></h4></div>\
        <h2 id=\"trait-implementations\">y</h2><div id=\"trait-implementations-list\">\
        <h3 class=\"code-header\">impl <a>Clone</a> for <a>Span</a></h3>\
        <h4 class=\"code-header\">fn <a>clone</a>(&amp;self) -&gt; Self</h4></div>\
        <h2 id=\"synthetic-implementations\">z</h2><h3 class=\"code-header\">impl Send for Span</h3>";

    #[test]
    fn a_page_gives_its_declaration_its_methods_and_its_traits() {
        assert_eq!(
            item(PAGE),
            [
                "pub struct Span(/* private fields */);",
                "pub fn ticks(&self) -> u64",
                "impl Clone for Span"
            ]
        );
    }

    #[test]
    fn reexports_are_listed() {
        let page = "<code>pub use <a href=\"x\">a</a>::<a>B</a>;</code> <code>no</code>";
        assert_eq!(reexports(page), ["pub use a::B;"]);
    }

    #[test]
    fn a_change_is_named_with_its_item() {
        let before = "struct.A\n    pub fn a()\n    pub fn b()\n";
        let now = "struct.A\n    pub fn a()\n    pub fn c()\n\nstruct.B\n";
        let changes: Vec<String> = differences(before, now).collect();
        assert_eq!(
            changes,
            [
                "- struct.A: pub fn b()",
                "+ struct.A: pub fn c()",
                "+ struct.B"
            ]
        );
        assert_eq!(differences(now, now).count(), 0);
    }
}
