//! Crates that promise to be free of `unsafe` forbid it.

use super::Finding;
use super::tree::Tree;

/// Folders of crates whose every root forbids unsafe code.
const SAFE_CRATES: [&str; 11] = [
    "core/model",
    "core/analysis",
    "core/kern",
    "core/order",
    "core/policy",
    "core/tables",
    "core/child",
    "platform/sim",
    "front/spec",
    "record/trace",
    "front/command",
];

/// Finds crate roots without `#![forbid(unsafe_code)]`.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let roots = SAFE_CRATES.iter().flat_map(|folder| {
        [
            format!("{folder}/src/lib.rs"),
            format!("{folder}/src/main.rs"),
        ]
    });
    let mut findings = Vec::new();
    for root in roots {
        let Some(rust) = tree.file(&root).and_then(|file| file.rust.as_ref()) else {
            continue;
        };
        let forbids = ["#", "!", "[", "forbid", "(", "unsafe_code", ")", "]"];
        if rust.find(&forbids).next().is_none() {
            findings.push(Finding::new(&root, 1, "lacks `#![forbid(unsafe_code)]`"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_that_promises_safety_forbids_its_absence() {
        let forbidding = "//! The core.\n#![no_std]\n#![forbid(unsafe_code)]\n";
        assert_eq!(
            check(&Tree::sample(&[("core/kern/src/lib.rs", forbidding)])),
            []
        );
        let talking = "//! The core: `#![forbid(unsafe_code)]`.\n#![no_std]\n";
        assert_eq!(
            check(&Tree::sample(&[("core/kern/src/lib.rs", talking)])).len(),
            1
        );
        assert_eq!(
            check(&Tree::sample(&[(
                "platform/switch/src/lib.rs",
                "//! Assembly.\n"
            )])),
            []
        );
    }
}
