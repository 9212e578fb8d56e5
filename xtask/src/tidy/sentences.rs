//! Sentences: short ones, with a thing or a person as their subject.
//!
//! Two rules for the prose of documents and of documentation comments. A sentence has at most
//! [`WORDS`] words. No clause opens with a pronoun that has no noun before it ("who waits",
//! "whoever holds", "what it costs"), unless it is a question. A document has no such sentence. A
//! design note or a crate has at most as many as its row in `ALLOWED` says; the figure may only
//! fall.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::Finding;
use super::tree::Tree;

/// Words of the longest sentence.
const WORDS: usize = 35;

/// Sentences in the documentation comments of a crate that still break a rule.
const ALLOWED: &[(&str, usize)] = &[
    ("bench/harness", 22),
    ("bench/rivals", 11),
    ("core/kern", 136),
    ("core/model", 4),
    ("core/order", 53),
    ("core/policy", 1),
    ("examples", 2),
    ("examples/composability", 4),
    ("examples/rosace", 11),
    ("examples/write-a-policy", 8),
    ("front/command", 32),
    ("front/facade/what_if", 1),
    ("front/terminal", 11),
    ("platform/direct", 24),
    ("platform/linux", 203),
    ("platform/linux-io", 37),
    ("platform/sim", 32),
    ("platform/switch", 29),
    ("record/trace", 102),
    ("runtime/capi", 78),
    ("runtime/capi/library", 2),
    ("runtime/thread", 22),
    ("verify/conform", 58),
    ("verify/generate", 15),
    ("verify/interleave", 18),
    ("verify/lab", 14),
    ("verify/rules", 71),
    ("verify/soak", 21),
    ("verify/soundness", 36),
    ("xtask", 26),
];

/// Pronouns that need a noun before them.
const HEADLESS: [&str; 6] = ["who", "whom", "whose", "whoever", "whomever", "what"];

/// Words after which a "who" has no noun to belong to.
const NO_NOUN: [&str; 22] = [
    "and", "or", "but", "than", "that", "as", "if", "when", "where", "while", "until", "before",
    "after", "of", "by", "to", "for", "from", "with", "beside", "against", "because",
];

/// Abbreviations whose full stop ends no sentence.
const ABBREVIATIONS: [&str; 7] = ["e.g.", "i.e.", "etc.", "al.", "vs.", "cf.", "no."];

/// Finds long and headless sentences.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut homes: Vec<(String, Vec<Finding>)> = Vec::new();
    for file in tree.files().filter(|file| file.path.ends_with(".md")) {
        homes.push((file.path.clone(), problems(&file.path, &file.text, 0)));
    }
    for (file, _) in tree.rust_files() {
        let found = in_comments(&file.path, &file.text);
        let home = home(&file.path);
        match homes.iter_mut().find(|(name, _)| *name == home) {
            Some((_, findings)) => findings.extend(found),
            None => homes.push((home, found)),
        }
    }
    for (name, found) in homes {
        let allowed = ALLOWED.iter().find(|(home, _)| *home == name);
        let allowed = allowed.map_or(0, |(_, allowed)| *allowed);
        if found.len() > allowed {
            if allowed > 0 {
                let message = format!(
                    "{} sentences are too long or headless; {allowed} are allowed",
                    found.len()
                );
                findings.push(Finding::new(&name, 0, message));
            }
            findings.extend(found);
        }
    }
    findings
}

/// The folder of the crate that a Rust file belongs to.
fn home(path: &str) -> String {
    let folders = ["/src/", "/tests/", "/examples/", "/benches/"];
    let end = folders.iter().filter_map(|folder| path.find(folder)).min();
    let end = end.or_else(|| path.rfind('/')).unwrap_or(0);
    path[..end].to_string()
}

/// Problems in the documentation comments of a Rust file: each block of them is a document.
fn in_comments(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut block = String::new();
    let mut first = 0;
    for (index, line) in text.lines().chain([""]).enumerate() {
        let line = line.trim_start();
        let comment = line.strip_prefix("//!").or_else(|| {
            let more = line.strip_prefix("///")?;
            (!more.starts_with('/')).then_some(more)
        });
        if let Some(comment) = comment {
            if block.is_empty() {
                first = index;
            }
            block.push_str(comment.strip_prefix(' ').unwrap_or(comment));
            block.push('\n');
        } else if !block.is_empty() {
            findings.extend(problems(path, &block, first));
            block.clear();
        }
    }
    findings
}

/// Problems in a Markdown text that begins below line `before` of its file.
fn problems(path: &str, text: &str, before: usize) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (start, prose) in blocks(text) {
        let line = before + 1 + text[..start].matches('\n').count();
        for sentence in sentences(&prose) {
            let count = sentence.iter().filter(|word| is_word(word)).count();
            let opening: Vec<&str> = sentence.iter().take(6).copied().collect();
            let opening = opening.join(" ");
            if count > WORDS {
                let message = format!("{count} words in one sentence: \"{opening} ...\"");
                findings.push(Finding::new(path, line, message));
            }
            if let Some(at) = headless(&sentence) {
                let last = sentence.len().min(at + 5);
                let clause = sentence[at..last].join(" ");
                let message = format!("a clause without a noun as its subject: \"{clause} ...\"");
                findings.push(Finding::new(path, line, message));
            }
        }
    }
    findings
}

/// Paragraphs, items and cells with their offsets, code spans as one word each. Headings and code
/// blocks are no sentences.
fn blocks(text: &str) -> Vec<(usize, String)> {
    let mut blocks: Vec<(usize, String)> = Vec::new();
    let mut open = false;
    let mut skipped = false;
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        let piece = match event {
            Event::Start(Tag::Heading { .. } | Tag::CodeBlock(_) | Tag::TableHead) => {
                skipped = true;
                continue;
            }
            Event::End(TagEnd::Heading(_) | TagEnd::CodeBlock | TagEnd::TableHead) => {
                skipped = false;
                open = false;
                continue;
            }
            Event::Start(Tag::Paragraph | Tag::Item | Tag::TableCell)
            | Event::End(TagEnd::Paragraph | TagEnd::Item | TagEnd::TableCell) => {
                open = false;
                continue;
            }
            Event::Text(piece) => piece.to_string(),
            Event::Code(_) => "`code`".to_string(),
            Event::SoftBreak | Event::HardBreak => " ".to_string(),
            _ => continue,
        };
        if skipped {
            continue;
        }
        match blocks.last_mut() {
            Some((_, block)) if open => block.push_str(&piece),
            _ => blocks.push((range.start, piece)),
        }
        open = true;
    }
    blocks
}

/// The sentences of a block, each as its words with their punctuation.
fn sentences(prose: &str) -> Vec<Vec<&str>> {
    let mut sentences = vec![Vec::new()];
    for word in prose.split_whitespace() {
        if let Some(sentence) = sentences.last_mut() {
            sentence.push(word);
        }
        let bare = word.trim_end_matches([')', '"', '\'', '*', '_']);
        let ends = bare.ends_with(['.', '?', '!']) && !ABBREVIATIONS.contains(&word);
        if ends {
            sentences.push(Vec::new());
        }
    }
    sentences.retain(|sentence| !sentence.is_empty());
    sentences
}

fn is_word(word: &str) -> bool {
    word.chars().any(char::is_alphanumeric)
}

/// Where a clause begins with a pronoun that belongs to no noun.
fn headless(sentence: &[&str]) -> Option<usize> {
    if sentence.last().is_some_and(|last| last.contains('?')) {
        return None;
    }
    let bare = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        word.to_lowercase()
    };
    (0..sentence.len()).find(|&at| {
        let word = bare(sentence[at]);
        if !HEADLESS.contains(&word.as_str()) {
            return false;
        }
        let before = at.checked_sub(1).map(|before| sentence[before]);
        let opens = before.is_none_or(|before| before.ends_with([';', ':', '–']));
        let alone = before.is_some_and(|before| NO_NOUN.contains(&bare(before).as_str()));
        match word.as_str() {
            "whoever" | "whomever" => true,
            "who" => opens || (alone && before.is_some_and(|before| !before.ends_with(','))),
            _ => opens,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(text: &str) -> Vec<String> {
        let found = check(&Tree::sample(&[("doc/a.md", text)]));
        found.into_iter().map(|finding| finding.message).collect()
    }

    fn sentence(words: usize) -> String {
        format!("{}end.", "word ".repeat(words - 1))
    }

    #[test]
    fn a_sentence_of_35_words_passes_and_one_more_does_not() {
        assert_eq!(messages(&sentence(35)), Vec::<String>::new());
        assert_eq!(
            messages(&sentence(36)),
            ["36 words in one sentence: \"word word word word word word ...\""]
        );
        assert_eq!(messages(&format!("{0} {0}", sentence(30))).len(), 0);
    }

    #[test]
    fn items_cells_headings_and_code_do_not_run_into_each_other() {
        let words = "word ".repeat(20);
        let list = format!("* {words}\n* {words}\n  * {words}\n");
        assert_eq!(messages(&list), Vec::<String>::new());
        let table = format!("| a | b |\n|---|---|\n| {words} | {words} |\n");
        assert_eq!(messages(&table), Vec::<String>::new());
        let code = format!("# {words}\n\n{words}\n\n```text\n{words}{words}\n```\n\n{words}\n");
        assert_eq!(messages(&code), Vec::<String>::new());
        assert_eq!(messages("`who waits`, `what`.").len(), 0);
    }

    #[test]
    fn clauses_that_open_with_a_pronoun_without_a_noun_are_found() {
        assert_eq!(
            messages("Who waits is served."),
            ["a clause without a noun as its subject: \"Who waits is served. ...\""]
        );
        assert_eq!(messages("What it costs is printed.").len(), 1);
        assert_eq!(messages("It is fair: who came first is first.").len(), 1);
        assert_eq!(messages("It is given to whoever waits.").len(), 1);
        assert_eq!(messages("It is as urgent as who waits for it.").len(), 1);
    }

    #[test]
    fn questions_and_relative_clauses_pass() {
        assert_eq!(messages("What does it cost? Who pays?").len(), 0);
        assert_eq!(messages("A user who waits is told what it costs.").len(), 0);
        assert_eq!(messages("What-if keeps the arrivals.").len(), 0);
    }

    #[test]
    fn comments_of_a_crate_without_a_row_have_none() {
        let text = "//! A file.\n\n/// Who waits\n/// is served.\nfn f() {}\n//// Who cares.\n";
        let found = check(&Tree::sample(&[("some/where/src/a.rs", text)]));
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].path.as_str(), found[0].line),
            ("some/where/src/a.rs", 3)
        );
        assert_eq!(home("core/kern/src/shard.rs"), "core/kern");
        assert_eq!(home("tests/scenarios.rs"), "tests");
        assert_eq!(home("front/facade/lib.rs"), "front/facade");
    }
}
