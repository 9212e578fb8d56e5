//! Guarantees: short rows, each with its evidence, on pages that the index links.

use super::Finding;
use super::tree::Tree;

/// The page that says what evidence is, and the folder of the pages with the rows.
const INDEX: &str = "GUARANTEES.md";
const PAGES: &str = "doc/guarantees/";

/// Characters of the longest row, evidence included.
const ROW_CHARACTERS: usize = 400;

/// How the cell of evidence begins.
const EVIDENCE: [&str; 4] = ["analysis", "tested", "measured", "review"];

/// Whether `path` is a document whose promises name their tests.
pub(super) fn is_guarantees(path: &str) -> bool {
    path == INDEX || path.starts_with(PAGES)
}

/// Finds long rows, rows without evidence, and pages that no reader would find.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let index = tree.file(INDEX).map_or("", |file| &file.text);
    for file in tree.files().filter(|file| is_guarantees(&file.path)) {
        let is_page = file.path != INDEX;
        if is_page && !index.contains(&format!("({})", file.path)) {
            let message = format!("{INDEX} has no link to this page");
            findings.push(Finding::new(&file.path, 0, message));
        }
        let mut head = true;
        for (index, line) in file.text.lines().enumerate() {
            let is_row = line.starts_with('|');
            let is_first = is_row && head;
            head = !is_row;
            if !is_row || is_first || line.starts_with("|---") {
                continue;
            }
            let characters = line.chars().count();
            if characters > ROW_CHARACTERS {
                let message =
                    format!("a row of {characters} characters; {ROW_CHARACTERS} are enough");
                findings.push(Finding::new(&file.path, index + 1, message));
            }
            let cell = line.trim_end_matches(['|', ' ']).rsplit("| ").next();
            let has_evidence = EVIDENCE
                .iter()
                .any(|word| cell.unwrap_or_default().starts_with(word));
            if is_page && !has_evidence {
                let message = format!("a promise whose evidence is none of {EVIDENCE:?}");
                findings.push(Finding::new(&file.path, index + 1, message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(row: &str) -> usize {
        let page = format!("# Page\n\n| guarantee | evidence |\n|---|---|\n{row}\n");
        let files = [
            ("GUARANTEES.md", "See [it](doc/guarantees/a.md).\n"),
            ("doc/guarantees/a.md", page.as_str()),
        ];
        check(&Tree::sample(&files)).len()
    }

    #[test]
    fn a_row_of_400_characters_passes_and_one_more_does_not() {
        let row = |length: usize| format!("| {} | tested: it |", "a".repeat(length - 17));
        assert_eq!(row(400).len(), 400);
        assert_eq!([problems(&row(400)), problems(&row(401))], [0, 1]);
    }

    #[test]
    fn a_promise_without_evidence_is_found() {
        assert_eq!(problems("| It works. | analysis: `a_b_c_d` |"), 0);
        assert_eq!(problems("| It works. | measured by `bench` |"), 0);
        assert_eq!(problems("| It works. | surely |"), 1);
    }

    #[test]
    fn a_page_that_the_index_does_not_name_is_found() {
        let files = [
            ("GUARANTEES.md", "None.\n"),
            ("doc/guarantees/a.md", "# A\n"),
        ];
        assert_eq!(check(&Tree::sample(&files)).len(), 1);
    }
}
