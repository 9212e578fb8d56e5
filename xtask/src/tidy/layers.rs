//! Layers inside a crate: each folder of modules uses those before it, and none behind it.

use super::Finding;
use super::modules::crates;
use super::tree::Tree;

/// The folders of one crate, the lowest first. All of them are named here.
struct Layers {
    folder: &'static str,
    order: &'static [&'static str],
}

const CRATES: &[Layers] = &[Layers {
    folder: "platform/linux",
    order: &[
        "sys", "shared", "time", "storage", "record", "entry", "wait", "run", "measure",
    ],
}];

/// Holds the layers of each crate that has some.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    check_with(CRATES, tree)
}

fn check_with(layers: &[Layers], tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for part in crates(tree) {
        let Some(layers) = layers.iter().find(|layers| layers.folder == part.folder) else {
            continue;
        };
        let rank = |folder: &String| layers.order.iter().position(|layer| layer == folder);
        for (module, uses) in &part.uses {
            let path = format!("{}/src/{}.rs", part.folder, module.join("/"));
            let Some(folder) = module.first() else {
                continue;
            };
            let Some(own) = rank(folder) else {
                let message = "in no layer of xtask/src/tidy/layers.rs";
                findings.push(Finding::new(&path, 0, message));
                continue;
            };
            let later = uses.iter().filter(|used| {
                let other = used.target.first().and_then(rank);
                other.is_some_and(|other| other > own)
            });
            findings.extend(later.map(|used| {
                let message = format!("`{}` is of a later layer", used.target.join("::"));
                Finding::new(&path, used.line, message)
            }));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(of_low: &str, order: &'static [&'static str]) -> Vec<String> {
        let layers = [Layers { folder: "a", order }];
        let tree = Tree::sample(&[
            ("a/src/lib.rs", "mod low;\nmod high;\n"),
            ("a/src/low.rs", "pub(crate) mod x;\n"),
            ("a/src/low/x.rs", of_low),
            ("a/src/high.rs", "use crate::low::x::X;\npub struct H;\n"),
        ]);
        let found = check_with(&layers, &tree);
        found.iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_later_layer_may_use_an_earlier_one_and_not_the_other_way() {
        let order = &["low", "high"];
        assert!(findings("pub struct X;\n", order).is_empty());
        let found = findings("use crate::high::H;\npub struct X;\n", order);
        assert_eq!(found, ["a/src/low/x.rs:1: `high` is of a later layer"]);
    }

    #[test]
    fn a_new_folder_needs_a_layer() {
        let found = findings("pub struct X;\n", &["low"]);
        assert_eq!(
            found,
            ["a/src/high.rs: in no layer of xtask/src/tidy/layers.rs"]
        );
    }
}
