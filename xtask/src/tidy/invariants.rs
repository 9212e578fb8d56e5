//! Every numbered invariant of `switch` has a test that names it.

use std::collections::BTreeMap;

use super::Finding;
use super::tree::Tree;

/// The folder whose documents number the invariants.
const DEFINING_FOLDER: &str = "platform/switch/src/";

/// Finds invariants that no test in the workspace names (`INV-3`, or `inv_3` in a test's name).
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut defined: BTreeMap<u32, (String, usize)> = BTreeMap::new();
    let mut tested: Vec<u32> = Vec::new();
    for (file, _) in tree.rust_files() {
        let in_tests_folder = file
            .path
            .split('/')
            .any(|part| part == "tests" || part == "tests.rs");
        let mut in_tests = in_tests_folder;
        for (index, line) in file.text.lines().enumerate() {
            in_tests |= line.trim_start().starts_with("#[cfg(test)]");
            for number in named(line) {
                if in_tests {
                    tested.push(number);
                } else if file.path.starts_with(DEFINING_FOLDER) {
                    defined
                        .entry(number)
                        .or_insert_with(|| (file.path.clone(), index + 1));
                }
            }
        }
    }
    defined.retain(|number, _| !tested.contains(number));
    defined
        .into_iter()
        .map(|(number, (path, line))| {
            Finding::new(
                &path,
                line,
                format!("INV-{number} has no test that names it"),
            )
        })
        .collect()
}

/// The numbers of the invariants that a line names.
fn named(line: &str) -> Vec<u32> {
    let lower = line.to_ascii_lowercase();
    let mut numbers = Vec::new();
    for start in ["inv-", "inv_"] {
        for (at, _) in lower.match_indices(start) {
            let digits: String = lower[at + start.len()..]
                .chars()
                .take_while(char::is_ascii_digit)
                .collect();
            numbers.extend(digits.parse::<u32>());
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTRACT: (&str, &str) = (
        "platform/switch/src/lib.rs",
        "//! Switching.\n//!\n//! INV-1: one. INV-2: two.\n",
    );

    #[test]
    fn an_invariant_without_a_test_is_found() {
        let test = "//! Tests.\n#[cfg(test)]\nmod tests {\n    fn inv_1_holds() {}\n}\n";
        let findings = check(&Tree::sample(&[
            CONTRACT,
            ("platform/linux/src/entry/cpu.rs", test),
        ]));
        assert_eq!(findings.len(), 1);
        assert!(findings[0].message.contains("INV-2"), "{findings:?}");
    }

    #[test]
    fn a_comment_in_a_tests_folder_names_an_invariant_too() {
        let tests = "//! Both.\n/// INV-1.\nfn a() {}\n/// INV-2.\nfn b() {}\n";
        assert_eq!(
            check(&Tree::sample(&[
                CONTRACT,
                ("platform/switch/tests/switch.rs", tests)
            ])),
            []
        );
    }
}
