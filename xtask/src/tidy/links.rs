//! Documents point at what exists: links, anchors, named files, named tests.

use std::collections::BTreeMap;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::Finding;
use super::guarantees::is_guarantees;
use super::tree::{TextFile, Tree};

/// Beside the guarantees, the document whose code spans in the form of a test's name must name a
/// test (or any function).
const PAPERS: &str = "doc/papers.md";

/// What a rule wants to know of one Markdown file.
#[derive(Default)]
struct Document {
    /// Anchors of its headings.
    anchors: Vec<String>,
    /// Destinations of its links, each with its line.
    links: Vec<(String, usize)>,
    /// Texts of its code spans, each with its line.
    spans: Vec<(String, usize)>,
}

/// Finds dead links in every Markdown file.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let is_markdown = |file: &&TextFile| file.path.ends_with(".md");
    let documents: BTreeMap<&str, Document> = tree
        .files()
        .filter(is_markdown)
        .map(|file| (file.path.as_str(), Document::parse(&file.text)))
        .collect();
    let mut findings = Vec::new();
    for (path, document) in &documents {
        for (link, line) in &document.links {
            if let Some(problem) = dead(tree, &documents, path, link) {
                findings.push(Finding::new(path, *line, problem));
            }
        }
        for (span, line) in &document.spans {
            if names_a_file(tree, span) && !tree.has(span.trim_end_matches('/')) {
                findings.push(Finding::new(path, *line, format!("there is no `{span}`")));
            }
            let has_evidence = is_guarantees(path) || *path == PAPERS;
            if has_evidence && !names_a_known_test(tree, span) {
                findings.push(Finding::new(
                    path,
                    *line,
                    format!("there is no test `{span}`"),
                ));
            }
        }
    }
    findings
}

impl Document {
    fn parse(text: &str) -> Document {
        let mut document = Document::default();
        let mut heading: Option<String> = None;
        let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
        for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
            let line = 1 + text[..range.start].matches('\n').count();
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    document.add_anchor(&heading.take().unwrap_or_default());
                }
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    document.links.push((dest_url.to_string(), line));
                }
                Event::Code(code) => {
                    document.spans.push((code.to_string(), line));
                    heading
                        .iter_mut()
                        .for_each(|heading| heading.push_str(&code));
                }
                Event::Text(text) => heading
                    .iter_mut()
                    .for_each(|heading| heading.push_str(&text)),
                _ => {}
            }
        }
        document
    }

    /// Anchors as the usual hosts make them: lower case, spaces to hyphens, repeated ones counted.
    fn add_anchor(&mut self, heading: &str) {
        let slug: String = heading
            .to_lowercase()
            .chars()
            .filter_map(|c| match c {
                ' ' => Some('-'),
                '-' | '_' => Some(c),
                c => c.is_alphanumeric().then_some(c),
            })
            .collect();
        let numbered = (1..).map(|number| format!("{slug}-{number}"));
        let free = std::iter::once(slug.clone())
            .chain(numbered)
            .find(|anchor| !self.anchors.contains(anchor));
        self.anchors.extend(free);
    }
}

/// Why `link`, written in the file at `from`, leads nowhere.
fn dead(
    tree: &Tree,
    documents: &BTreeMap<&str, Document>,
    from: &str,
    link: &str,
) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() {
        from.to_string()
    } else {
        resolve(from, path)?
    };
    if !tree.has(&target) {
        return Some(format!("dead link: there is no `{target}`"));
    }
    let document = documents.get(target.as_str())?;
    let found = anchor.is_empty() || document.anchors.iter().any(|known| known == anchor);
    (!found).then(|| format!("dead link: `{target}` has no heading `#{anchor}`"))
}

/// `path` relative to the folder of the file `from`, as a path from the top folder.
fn resolve(from: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// Whether a code span is the path of a source file in one of our folders.
fn names_a_file(tree: &Tree, span: &str) -> bool {
    let Some((top, _)) = span.split_once('/') else {
        return false;
    };
    let is_path = span
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
    let source = [".rs", ".toml", ".md", "/"]
        .iter()
        .any(|ending| span.ends_with(ending));
    is_path && source && tree.has(top)
}

/// Whether a code span is no test's name, or the name of a function that exists.
fn names_a_known_test(tree: &Tree, span: &str) -> bool {
    let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let is_name = span.matches('_').count() >= 3 && span.chars().all(word);
    !is_name || tree.has_function(span)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(document: &str) -> Vec<String> {
        let code = "//! Code.\nfn a_test_of_four_words() {}\n";
        let other = "# Title\n\n## The `kern` & more\n\n## Twice\n\n## Twice\n";
        let files = [
            ("doc/a.md", document),
            ("doc/b.md", other),
            ("core/kern/src/lib.rs", code),
        ];
        check(&Tree::sample(&files))
            .into_iter()
            .map(|finding| finding.message)
            .collect()
    }

    #[test]
    fn links_to_files_folders_and_headings_that_exist_are_silent() {
        let document = "# Here\n\n[b](b.md) [up](../core/kern/src/lib.rs) [folder](../core/kern) \
            [head](b.md#the-kern--more) [own](#here) [again](b.md#twice-1) \
            [far](https://example.org/x)\n\n```text\n[no](link.md)\n```\n";
        assert_eq!(problems(document), Vec::<String>::new());
    }

    #[test]
    fn dead_links_are_found_with_their_kind() {
        assert_eq!(problems("[x](c.md)"), ["dead link: there is no `doc/c.md`"]);
        assert_eq!(
            problems("[x](b.md#gone)"),
            ["dead link: `doc/b.md` has no heading `#gone`"]
        );
        assert_eq!(
            problems("[x][r]\n\n[r]: ../gone.md\n"),
            ["dead link: there is no `gone.md`"]
        );
    }

    #[test]
    fn code_spans_that_name_source_files_are_held_to_them() {
        assert_eq!(
            problems("`core/kern/src/lib.rs` `core/kern/` `target/x.rs`"),
            Vec::<String>::new()
        );
        assert_eq!(
            problems("`core/kern/src/gone.rs`"),
            ["there is no `core/kern/src/gone.rs`"]
        );
    }

    #[test]
    fn evidence_names_tests_that_exist() {
        let code = (
            "core/kern/src/lib.rs",
            "//! Code.\nfn a_test_of_four_words() {}\n",
        );
        for page in ["GUARANTEES.md", "doc/guarantees/core.md"] {
            let problems = |text: &str| check(&Tree::sample(&[(page, text), code])).len();
            assert_eq!(problems("`a_test_of_four_words`, `relative_deadline`"), 0);
            assert_eq!(problems("`a_test_that_was_renamed`"), 1);
        }
    }
}
