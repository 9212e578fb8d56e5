//! Words that must not stand in the tree: rejected ones and left-overs.
//!
//! GLOSSARY.md has a column headed "not in code". Its code spans are searched in the identifiers of
//! every Rust file, so that the table that people read is the table that is held. A second column,
//! "in code only in", names the folders in which an identifier may have the word of its row.

use super::Finding;
use super::tree::{Row, Tree, spans};

const GLOSSARY: &str = "GLOSSARY.md";
const COLUMN: &str = "not in code";
const FOLDERS_COLUMN: &str = "in code only in";

/// In the second column: no folder.
const NOWHERE: &str = "nowhere";

/// Where the words of others are used for the things of others.
const RIVALS: &str = "bench/rivals/src/";

/// Macros that mark unfinished or debugged code.
const LEFTOVER_MACROS: [&str; 3] = ["todo", "unimplemented", "dbg"];

/// Marks of unfinished work, in two halves so that this file does not hold them.
const LEFTOVER_WORDS: [(&str, &str); 2] = [("FIX", "ME"), ("XX", "X")];

/// Top folders of the machines that the project was built on, likewise.
const MACHINE_FOLDERS: [(&str, &str); 2] = [("/wor", "k/"), ("/far", "m/")];

/// Finds rejected words, leftovers and paths of one machine.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let rejected = rejected_words(tree);
    let mut findings = strays(tree);
    for (file, rust) in tree.rust_files() {
        for name in LEFTOVER_MACROS {
            for token in rust.find(&[name, "!"]) {
                findings.push(Finding::new(
                    &file.path,
                    token.line,
                    format!("`{name}!` is left"),
                ));
            }
        }
        if file.path.starts_with(RIVALS) {
            continue;
        }
        for token in rust.tokens() {
            let words = words_of(&token.text);
            let hit = rejected.iter().find(|(word, _)| contains(&words, word));
            if let Some((word, ours)) = hit {
                let message = format!("`{}` says `{}`; {ours}", token.text, word.join("_"));
                findings.push(Finding::new(&file.path, token.line, message));
            }
        }
    }
    for file in tree.files() {
        for (index, line) in file.text.lines().enumerate() {
            if let Some(message) = left_behind(line) {
                findings.push(Finding::new(&file.path, index + 1, message));
            }
        }
    }
    findings
}

/// Identifiers with a word that belongs to other folders. Names of tests are sentences, and free.
fn strays(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for Row { cells, cell } in tree.rows(GLOSSARY, FOLDERS_COLUMN) {
        let folders: Vec<&str> = spans(&cell).collect();
        if folders.is_empty() && cell != NOWHERE {
            continue;
        }
        for word in spans(&cells[0]).map(words_of) {
            for (file, rust) in tree.rust_files() {
                let at_home = folders
                    .iter()
                    .any(|folder| file.path.starts_with(&format!("{folder}/")));
                let is_test = file.path.split('/').any(|part| part.starts_with("tests"));
                if at_home || is_test {
                    continue;
                }
                let code = rust.tokens().iter().filter(|token| !token.in_test);
                for token in code.filter(|token| contains(&words_of(&token.text), &word)) {
                    let message = format!(
                        "`{}` says `{}`, which the glossary keeps for: {}",
                        token.text,
                        word.join("_"),
                        cells[1]
                    );
                    findings.push(Finding::new(&file.path, token.line, message));
                }
            }
        }
    }
    findings
}

/// The rejected words of the glossary, each split into its parts, with the advice to give.
fn rejected_words(tree: &Tree) -> Vec<(Vec<String>, String)> {
    let mut rejected = Vec::new();
    for Row { cells, cell } in tree.rows(GLOSSARY, COLUMN) {
        let advice = format!("the glossary has {} for {}", cells[1], cells[0]);
        rejected.extend(spans(&cell).map(|span| (words_of(span), advice.clone())));
    }
    rejected
}

/// The words of an identifier, in lower case: `NextTask`, `next_task` and `NEXT_TASK` are equal.
fn words_of(identifier: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_lower = false;
    for c in identifier.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && after_lower) {
            words.push(String::new());
        }
        if c.is_alphanumeric() {
            words
                .iter_mut()
                .last()
                .into_iter()
                .for_each(|word| word.extend(c.to_lowercase()));
        }
        after_lower = c.is_lowercase() || c.is_numeric();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether `part` stands in `words` without a gap.
fn contains(words: &[String], part: &[String]) -> bool {
    !part.is_empty() && words.windows(part.len()).any(|window| window == part)
}

/// What a line holds that belongs to the work and not to the result.
fn left_behind(line: &str) -> Option<String> {
    for (start, end) in LEFTOVER_WORDS {
        let word = format!("{start}{end}");
        if line
            .split(|c: char| !c.is_alphanumeric())
            .any(|found| found == word)
        {
            return Some(format!("`{word}` marks unfinished work"));
        }
    }
    for (start, end) in MACHINE_FOLDERS {
        let folder = format!("{start}{end}");
        let foreign = line.match_indices(&folder).any(|(at, _)| {
            !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '.')
        });
        if foreign {
            return Some(format!("`{folder}...` is a path of one machine"));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: (&str, &str) = (
        "GLOSSARY.md",
        "| concept | ours | not in code |\n|---|---|---|\n| stack and registers | `Thread` | \
         `fiber`, `green_thread`, process |\n",
    );

    fn problems(text: &str) -> Vec<String> {
        let files = [TABLE, ("core/kern/src/a.rs", text)];
        check(&Tree::sample(&files))
            .into_iter()
            .map(|finding| finding.message)
            .collect()
    }

    #[test]
    fn rejected_words_are_found_in_identifiers_of_any_case() {
        let advice = "the glossary has `Thread` for stack and registers";
        assert_eq!(
            problems("fn next_fiber() {}"),
            [format!("`next_fiber` says `fiber`; {advice}")]
        );
        assert_eq!(problems("struct GreenThread;").len(), 1);
        assert_eq!(problems("const GREEN_THREAD: u8 = 0;").len(), 1);
    }

    #[test]
    fn rejected_words_are_free_in_prose_and_inside_other_words() {
        let prose = "//! A fiber elsewhere.\nfn fiberglass() { g(\"fiber\") } // process, fiber\n";
        assert_eq!(problems(prose), Vec::<String>::new());
        assert_eq!(problems("fn process() {}"), Vec::<String>::new());
    }

    #[test]
    fn a_word_of_one_meaning_stays_in_its_folders() {
        let table = (
            "GLOSSARY.md",
            "| word | its only meaning | in code only in |\n|---|---|---|\n\
             | `ring` | buffer | `platform/linux` |\n| `tile` | processor | nowhere |\n\
             | `run` | execution | – |\n",
        );
        let problems = |path: &str, text: &str| check(&Tree::sample(&[table, (path, text)])).len();
        let text = "fn make_ring() { run() }";
        assert_eq!(problems("platform/linux/src/io.rs", text), 0);
        assert_eq!(problems("core/kern/src/a.rs", text), 1);
        assert_eq!(problems("core/kern/src/a.rs", "fn first_tile() {}"), 1);
        assert_eq!(problems("core/kern/tests/a.rs", "fn first_tile() {}"), 0);
        assert_eq!(
            problems("core/kern/src/a.rs", "fn string_of_textiles() {}"),
            0
        );
    }

    #[test]
    fn leftovers_are_found() {
        assert_eq!(
            problems(&format!("fn f() {{ {}{} }}", "to", "do!()")).len(),
            1
        );
        assert_eq!(problems(&format!("// {}{}: later\n", "FIX", "ME")).len(), 1);
        assert_eq!(
            problems("fn todo() {} // the word todo alone says nothing\n").len(),
            0
        );
    }

    #[test]
    fn paths_of_one_machine_are_found_and_relative_ones_are_not() {
        let line = |path: &str| problems(&format!("// see {path}\n")).len();
        assert_eq!(line(&format!("{}{}main", "/wor", "k/")), 1);
        assert_eq!(line(&format!("doc{}{}notes", "/wor", "k/")), 0);
        assert_eq!(line(&format!("..{}{}notes", "/wor", "k/")), 0);
    }
}
