//! Which crate may use which: the table of ARCHITECTURE.md, held against `cargo metadata`.
//!
//! Only what a crate ships counts: tests, benches and examples may use every public interface
//! (a policy is best tried in the simulator), so dev-dependencies are free.

use serde_json::Value;

use super::Finding;
use super::tree::{Row, Tree, spans};

const PATH: &str = "ARCHITECTURE.md";
/// The second column of the table.
const COLUMN: &str = "may use";
/// In that column: every crate of the workspace.
const ANY: &str = "everything";
/// The table leaves it out.
const PREFIX: &str = "punctual-";

/// Compares every edge between crates of the workspace with the table.
pub(crate) fn check(metadata: &Value, tree: &Tree) -> Vec<Finding> {
    let packages = metadata["packages"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let name_of = |package: &Value| package["name"].as_str().unwrap_or_default().to_string();
    let members: Vec<String> = packages.iter().map(name_of).collect();
    let rows = tree.rows(PATH, COLUMN);
    let names = |cell: &str, name: &str| {
        let mut spans = spans(cell);
        spans.any(|span| span == name || name.strip_prefix(PREFIX) == Some(span))
    };
    let mut findings = Vec::new();
    for package in packages {
        let name = name_of(package);
        let Some(Row { cells, cell }) = rows.iter().find(|row| names(&row.cells[0], &name)) else {
            let message = format!("`{name}` has no row in its table of who may use whom");
            findings.push(Finding::new(PATH, 0, message));
            continue;
        };
        for used in shipped_dependencies(package).filter(|used| members.contains(used)) {
            if cell != ANY && !names(cell, &used) {
                let reason = cells.last().map_or("", String::as_str);
                let message = format!("`{name}` may not use `{used}`: {reason}");
                findings.push(Finding::new(&manifest(metadata, package), 0, message));
            }
        }
    }
    findings
}

/// Names of the dependencies that are not only for development.
fn shipped_dependencies(package: &Value) -> impl Iterator<Item = String> {
    let dependencies = package["dependencies"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    dependencies
        .iter()
        .filter(|dependency| dependency["kind"] != "dev")
        .filter_map(|dependency| Some(dependency["name"].as_str()?.to_string()))
}

/// The path of a package's manifest, relative to the top folder.
fn manifest(metadata: &Value, package: &Value) -> String {
    let path = package["manifest_path"].as_str().unwrap_or_default();
    let root = metadata["workspace_root"].as_str().unwrap_or_default();
    path.strip_prefix(root)
        .unwrap_or(path)
        .trim_start_matches('/')
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(metadata: &Value) -> Vec<Finding> {
        let table = "| crate | may use | because |\n|---|---|---|\n\
            | `model` | nothing | words |\n| `policy` | everything | any |\n\
            | `linux` | `model` | a platform sees no policy |\n";
        super::check(metadata, &Tree::sample(&[(PATH, table)]))
    }

    fn workspace(dependencies: Value) -> Value {
        json!({
            "workspace_root": "/top",
            "packages": [
                { "name": "punctual-model", "manifest_path": "/top/model/Cargo.toml",
                  "dependencies": [] },
                { "name": "punctual-policy", "manifest_path": "/top/policy/Cargo.toml",
                  "dependencies": [] },
                { "name": "punctual-linux", "manifest_path": "/top/platform/linux/Cargo.toml",
                  "dependencies": dependencies },
            ],
        })
    }

    #[test]
    fn a_platform_may_use_the_model_and_a_foreign_library() {
        let metadata = workspace(json!([
            { "name": "punctual-model", "kind": null },
            { "name": "libc", "kind": null },
        ]));
        assert_eq!(check(&metadata), []);
    }

    #[test]
    fn a_platform_may_see_a_policy_only_in_its_tests() {
        let tests = workspace(json!([{ "name": "punctual-policy", "kind": "dev" }]));
        assert_eq!(check(&tests), []);
        let shipped = workspace(json!([{ "name": "punctual-policy", "kind": null }]));
        let findings = check(&shipped);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].path, "platform/linux/Cargo.toml");
    }

    #[test]
    fn a_new_crate_needs_a_rule() {
        let metadata = json!({ "packages": [{ "name": "punctual-new", "dependencies": [] }] });
        assert_eq!(check(&metadata).len(), 1);
    }
}
