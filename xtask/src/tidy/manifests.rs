//! Every foreign dependency has its reason in a comment above it.

use super::Finding;
use super::tree::{TextFile, Tree};

/// Finds dependencies without a reason. Those of the workspace have theirs in the edges' table, and
/// those taken from the top manifest have theirs there.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let is_manifest =
        |file: &&TextFile| file.path == "Cargo.toml" || file.path.ends_with("/Cargo.toml");
    tree.files()
        .filter(is_manifest)
        .flat_map(check_manifest)
        .collect()
}

fn check_manifest(file: &TextFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut section = "";
    let mut line_above = "";
    for (index, line) in file.text.lines().map(str::trim).enumerate() {
        if line.starts_with('[') {
            section = line.trim_matches(['[', ']']);
        } else if section.ends_with("dependencies") && line.contains('=') && !line.starts_with('#')
        {
            let explained = line_above.starts_with('#');
            if !explained && !line.contains("workspace") && !line.contains("path = ") {
                let name = line.split(['=', '.', ' ']).next().unwrap_or_default();
                let message = format!("the dependency `{name}` has no reason in a comment above");
                findings.push(Finding::new(&file.path, index + 1, message));
            }
        }
        line_above = line;
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_has_its_reason_above_it() {
        let text = "[workspace.dependencies]\nours = { path = \"ours\" }\n\n# To read it.\n\
            good = \"1\"\nbad = \"1\"\n\n[profile.release]\nlto = true\n";
        let findings = check(&Tree::sample(&[("Cargo.toml", text)]));
        assert_eq!(
            findings.iter().map(|found| found.line).collect::<Vec<_>>(),
            [6]
        );
    }

    #[test]
    fn what_the_workspace_explains_needs_no_second_reason() {
        let text = "[dependencies]\ngood.workspace = true\nalso = { workspace = true }\n\n\
            [dev-dependencies]\nbad = \"1\"\n";
        let findings = check(&Tree::sample(&[("core/kern/Cargo.toml", text)]));
        assert_eq!(
            findings.iter().map(|found| found.line).collect::<Vec<_>>(),
            [6]
        );
    }
}
