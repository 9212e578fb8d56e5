//! Circles of files that name each other, counted for every crate.

use std::collections::BTreeSet;

use super::Finding;
use super::modules::{Crate, Module, crates};
use super::tree::Tree;

/// The files in each circle of a crate, by the crate's folder. A crate that is not here has none.
/// The figures only fall: a larger one fails, a smaller one asks to be written down.
const CIRCLES: &[(&str, &[usize])] = &[
    ("front/spec", &[2]),
    ("platform/linux", &[5, 2]),
    ("platform/switch", &[3]),
    ("record/trace", &[2]),
    ("runtime/thread", &[3]),
    ("verify/certificate", &[2, 2]),
    ("verify/soak", &[3]),
];

/// Compares each crate with its row.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let crates = crates(tree);
    crates
        .iter()
        .filter_map(|part| of(part, held(part)))
        .collect()
}

fn held(part: &Crate) -> &'static [usize] {
    let row = CIRCLES.iter().find(|(folder, _)| *folder == part.folder);
    row.map_or(&[], |(_, sizes)| sizes)
}

fn of(part: &Crate, held: &[usize]) -> Option<Finding> {
    let circles = circles(part);
    let sizes: Vec<usize> = circles.iter().map(Vec::len).collect();
    if sizes == held {
        return None;
    }
    let grown = sizes.iter().sum::<usize>() > held.iter().sum::<usize>();
    let message = if grown {
        let names = circles.iter().map(|circle| {
            let names = circle.iter().map(|module| module.join("::"));
            names.collect::<Vec<_>>().join(", ")
        });
        let names = names.collect::<Vec<_>>().join("; ");
        format!("circles of {sizes:?} files, more than the {held:?} of tidy/circles.rs: {names}")
    } else {
        format!("circles of {sizes:?} files: lower the {held:?} of tidy/circles.rs")
    };
    Some(Finding::new(&format!("{}/src", part.folder), 0, message))
}

/// The files that reach each other, in groups, the largest first.
fn circles(part: &Crate) -> Vec<Vec<&Module>> {
    let reached: Vec<(&Module, BTreeSet<&Module>)> = part
        .uses
        .keys()
        .map(|module| (module, reached_from(part, module)))
        .collect();
    let mut circles: Vec<Vec<&Module>> = Vec::new();
    for (module, reaches) in &reached {
        if circles.iter().any(|circle| circle.contains(module)) || !reaches.contains(module) {
            continue;
        }
        let with = reached
            .iter()
            .filter(|(other, back)| reaches.contains(other) && back.contains(module));
        circles.push(with.map(|(other, _)| *other).collect());
    }
    circles.sort_by_key(|circle| core::cmp::Reverse(circle.len()));
    circles
}

fn reached_from<'a>(part: &'a Crate, from: &Module) -> BTreeSet<&'a Module> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&Module> = part.uses[from].iter().map(|found| &found.target).collect();
    while let Some(module) = next.pop() {
        if reached.insert(module) {
            next.extend(part.uses[module].iter().map(|found| &found.target));
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(held: &[usize], of_y: &str) -> Vec<String> {
        let tree = Tree::sample(&[
            ("a/src/lib.rs", "mod x;\nmod y;\n"),
            ("a/src/x.rs", "use crate::y::Y;\n"),
            ("a/src/y.rs", of_y),
        ]);
        let found = crates(&tree)
            .iter()
            .filter_map(|part| of(part, held))
            .collect::<Vec<_>>();
        found.iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_circle_more_than_is_held_is_named_file_by_file() {
        let found = findings(&[], "use crate::x::X;\n");
        assert!(found[0].ends_with("x, y"), "{found:?}");
    }

    #[test]
    fn a_circle_less_asks_for_a_lower_figure() {
        let found = findings(&[2], "use std::fmt;\n");
        assert!(found[0].contains("lower"), "{found:?}");
    }

    #[test]
    fn what_is_held_passes() {
        assert!(findings(&[2], "use crate::x::X;\n").is_empty());
        assert!(findings(&[], "use std::fmt;\n").is_empty());
    }
}
