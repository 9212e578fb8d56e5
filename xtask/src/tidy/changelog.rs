//! The change log is open, and ready for a tag: "Unreleased", then the version of the workspace.

use super::Finding;
use super::tree::Tree;

const PATH: &str = "CHANGELOG.md";

/// Finds a change log without a place for the next entry.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(file) = tree.file(PATH) else {
        return vec![Finding::new(PATH, 0, "is missing")];
    };
    let mut sections = file
        .text
        .lines()
        .filter_map(|line| line.strip_prefix("## "));
    let mut findings = Vec::new();
    if sections.next() != Some("Unreleased") {
        let message = "its first section is not `## Unreleased`";
        findings.push(Finding::new(PATH, 0, message));
    }
    let manifest = tree.file("Cargo.toml").map_or("", |file| &file.text);
    let version = manifest
        .lines()
        .find_map(|line| line.strip_prefix("version = "));
    let version = version.map(|version| version.trim_matches('"'));
    if version.is_some() && sections.next() != version {
        let message = "its second section is not the version of the workspace";
        findings.push(Finding::new(PATH, 0, message));
    }
    findings
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

    #[test]
    fn the_second_section_is_the_version_of_the_workspace() {
        let manifest = ("Cargo.toml", "[workspace.package]\nversion = \"0.2.0\"\n");
        let problems = |text: &str| check(&Tree::sample(&[(PATH, text), manifest])).len();
        assert_eq!(problems("# Changes\n\n## Unreleased\n\n## 0.2.0\n"), 0);
        assert_eq!(problems("# Changes\n\n## Unreleased\n\n## 0.1.0\n"), 1);
    }
}
