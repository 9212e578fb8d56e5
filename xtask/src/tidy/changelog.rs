//! The change log is there and open: its first section is the unreleased one.

use super::Finding;
use super::tree::Tree;

const PATH: &str = "CHANGELOG.md";

/// Finds a change log without a place for the next entry.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(file) = tree.file(PATH) else {
        return vec![Finding::new(PATH, 0, "is missing")];
    };
    let first = file.text.lines().find(|line| line.starts_with("## "));
    if first.is_some_and(|heading| heading.contains("Unreleased")) {
        return Vec::new();
    }
    vec![Finding::new(
        PATH,
        0,
        "its first section is not `## Unreleased`",
    )]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_section_is_the_unreleased_one() {
        let problems = |text: &str| check(&Tree::sample(&[(PATH, text)])).len();
        assert_eq!(problems("# Changes\n\n## Unreleased\n\n## 0.1.0\n"), 0);
        assert_eq!(problems("# Changes\n\n## 0.1.0\n\n## Unreleased\n"), 1);
        assert_eq!(check(&Tree::sample(&[])).len(), 1);
    }
}
