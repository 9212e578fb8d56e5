//! Sizes: policies stay small, files hold one concept, their subtitle is one line.

use super::Finding;
use super::tree::{TextFile, Tree};

/// Code lines of one policy. The papers' policies are of this size; queues live in `kern` and
/// admission in `analysis`, so nothing else needs to be in the file.
const POLICY_CODE_LINES: usize = 150;

/// Lines of any Rust file; beyond it a file holds more than one concept.
const FILE_LINES: usize = 600;

/// Characters of a comment line (rustfmt wraps everything else).
const LINE_CHARACTERS: usize = 100;

/// Measures every Rust file.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, rust) in tree.rust_files() {
        if is_policy(&file.path) && rust.code_lines() > POLICY_CODE_LINES {
            let lines = rust.code_lines();
            let message = format!("{lines} code lines; a policy has at most {POLICY_CODE_LINES}");
            findings.push(Finding::new(&file.path, 0, message));
        }
        let lines = file.text.lines().count();
        if lines > FILE_LINES {
            let message = format!("{lines} lines, more than {FILE_LINES}: is it one concept?");
            findings.push(Finding::new(&file.path, 0, message));
        }
        findings.extend(subtitle(file));
        findings.extend(long_comments(file));
    }
    findings
}

fn is_policy(path: &str) -> bool {
    path.starts_with("core/policy/src/") && path != "core/policy/src/lib.rs"
}

/// Every file opens with `//! A subtitle.` alone on its line.
fn subtitle(file: &TextFile) -> Option<Finding> {
    let mut lines = file.text.lines();
    let first = lines.next().unwrap_or_default();
    let problem = match first.strip_prefix("//! ") {
        None => "opens without a `//!` subtitle that says what the file is",
        Some(_)
            if lines
                .next()
                .is_some_and(|second| second.starts_with("//! ")) =>
        {
            "its subtitle runs on: an empty `//!` line belongs below it"
        }
        Some(_) => return None,
    };
    Some(Finding::new(&file.path, 1, problem))
}

fn long_comments(file: &TextFile) -> impl Iterator<Item = Finding> {
    let lines = file.text.lines().enumerate();
    lines
        .filter(|(_, line)| line.trim_start().starts_with("//"))
        .filter(|(_, line)| line.chars().count() > LINE_CHARACTERS)
        .map(|(index, _)| {
            let message = format!("a comment of more than {LINE_CHARACTERS} characters");
            Finding::new(&file.path, index + 1, message)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(lines: usize) -> String {
        format!("//! A policy.\n\n{}", "fn f() {}\n".repeat(lines))
    }

    #[test]
    fn a_policy_of_150_code_lines_passes_and_one_more_does_not() {
        assert_eq!(
            check(&Tree::sample(&[("core/policy/src/edf.rs", &code(150))])),
            []
        );
        assert_eq!(
            check(&Tree::sample(&[("core/policy/src/edf.rs", &code(151))])).len(),
            1
        );
        assert_eq!(
            check(&Tree::sample(&[("core/policy/src/lib.rs", &code(151))])),
            []
        );
    }

    #[test]
    fn tests_and_comments_of_a_policy_are_free() {
        let tests = format!(
            "#[cfg(test)]\nmod tests {{\n{}}}\n",
            "// words\nfn t() {}\n".repeat(99)
        );
        let source = format!("{}{tests}", code(150));
        assert_eq!(
            check(&Tree::sample(&[("core/policy/src/edf.rs", &source)])),
            []
        );
    }

    #[test]
    fn a_file_of_601_lines_is_too_long() {
        assert_eq!(
            check(&Tree::sample(&[("core/kern/src/a.rs", &code(598))])),
            []
        );
        assert_eq!(
            check(&Tree::sample(&[("core/kern/src/a.rs", &code(599))])).len(),
            1
        );
    }

    #[test]
    fn a_file_opens_with_a_subtitle_on_a_line_of_its_own() {
        let problem = |text: &str| check(&Tree::sample(&[("core/kern/src/a.rs", text)])).len();
        assert_eq!(problem("//! What this is.\n//!\n//! More.\n"), 0);
        assert_eq!(problem("fn f() {}\n"), 1);
        assert_eq!(problem("//! One thing\n//! and the same thing still.\n"), 1);
    }

    #[test]
    fn comments_have_at_most_100_characters_a_line() {
        let problem = |length: usize| {
            let text = format!("//! A file.\n// {}\n", "ä".repeat(length - 3));
            check(&Tree::sample(&[("core/kern/src/a.rs", &text)])).len()
        };
        assert_eq!([problem(100), problem(101)], [0, 1]);
    }
}
