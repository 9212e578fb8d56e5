//! Which crate may use which, held against `cargo metadata`.
//!
//! Only what a crate ships counts: tests, benches and examples may use every public interface
//! (a policy is best tried in the simulator), so dev-dependencies are free.

use serde_json::Value;

use super::Finding;

/// One crate: what it may use of the workspace, and why no more.
struct Rule {
    package: &'static str,
    may_use: &'static [&'static str],
    reason: &'static str,
}

/// Stands for every crate of the workspace.
const ANY: &str = "*";

const RULES: &[Rule] = &[
    Rule {
        package: "punctual-model",
        may_use: &[],
        reason: "the words depend on nothing",
    },
    Rule {
        package: "punctual-order",
        may_use: &["punctual-model"],
        reason: "the order of one CPU knows no jobs, no locks and no platform",
    },
    Rule {
        package: "punctual-kern",
        may_use: &["punctual-model", "punctual-order"],
        reason: "the core knows no policy, no platform and no proof",
    },
    Rule {
        package: "punctual-tables",
        may_use: &["punctual-model", "punctual-kern"],
        reason: "a system becomes tables for the core: no policy, no platform and no proof",
    },
    Rule {
        package: "punctual-capability",
        may_use: &["punctual-model", "punctual-order"],
        reason: "time that schedulers hand on knows schedulers and time, and neither jobs nor locks",
    },
    Rule {
        package: "punctual-analysis",
        may_use: &["punctual-model"],
        reason: "a verdict is a pure function of the model",
    },
    Rule {
        package: "punctual-certificate",
        may_use: &[],
        reason: "a checker that shared code with what it checks would repeat its mistakes",
    },
    Rule {
        package: "punctual-policy",
        may_use: &["punctual-model", "punctual-order"],
        reason: "a policy sees neither platform nor admission",
    },
    Rule {
        package: "punctual-conform",
        may_use: &["punctual-model", "punctual-kern"],
        reason: "the kit knows the seam, no policy and no platform: it judges anyone's",
    },
    Rule {
        package: "punctual-switch",
        may_use: &[],
        reason: "assembly knows no policy and no time",
    },
    Rule {
        package: "punctual-sim",
        may_use: &["punctual-model", "punctual-kern", "punctual-tables"],
        reason: "a platform sees neither policy, trace nor analysis",
    },
    Rule {
        package: "punctual-linux-io",
        may_use: &["punctual-model", "punctual-switch"],
        reason: "a call of the C library knows who makes it by one hook, and no scheduler",
    },
    Rule {
        package: "punctual-linux",
        may_use: &[
            "punctual-model",
            "punctual-kern",
            "punctual-switch",
            "punctual-linux-io",
        ],
        reason: "a platform sees neither policy, trace nor analysis",
    },
    Rule {
        package: "punctual-direct",
        may_use: &["punctual-model", "punctual-switch", "punctual-linux"],
        reason: "it schedules inside a light thread: the core does not know of it",
    },
    Rule {
        package: "punctual-trace",
        may_use: &["punctual-model", "punctual-kern", "punctual-tables"],
        reason: "the proof must not depend on what it judges: no policy, no platform",
    },
    Rule {
        package: "punctual-rules",
        may_use: &[
            "punctual-model",
            "punctual-kern",
            "punctual-tables",
            "punctual-trace",
        ],
        reason: "predicates judge what the log states: no policy, no platform, no code of the core",
    },
    Rule {
        package: "punctual-spec",
        may_use: &["punctual-model"],
        reason: "a file becomes a model and nothing else",
    },
    Rule {
        package: "punctual-generate",
        may_use: &["punctual-model"],
        reason: "what draws a system does not know whether it is feasible",
    },
    Rule {
        package: "punctual-thread",
        may_use: &[
            "punctual-model",
            "punctual-kern",
            "punctual-tables",
            "punctual-analysis",
            "punctual-policy",
            "punctual-linux",
        ],
        reason: "threads ask the analysis and live on one platform (note 0011)",
    },
    Rule {
        package: "punctual-capi",
        may_use: &[
            "punctual-model",
            "punctual-kern",
            "punctual-analysis",
            "punctual-linux",
            "punctual-thread",
        ],
        reason: "C gets what Rust programs have, by another edge (note 0013)",
    },
    Rule {
        package: "punctual-library",
        may_use: &["punctual-capi"],
        reason: "what is linked is what is declared",
    },
    Rule {
        package: "punctual-rosace",
        may_use: &["punctual-model", "punctual-thread"],
        reason: "a workload is a guest: it sees what a user's program sees",
    },
    Rule {
        package: "punctual-interleave",
        may_use: &["punctual-model"],
        reason: "it compiles single files again: what they use beside words must be values",
    },
    Rule {
        package: "punctual-rivals",
        may_use: &[],
        reason: "what we are measured against must not be made of our own parts",
    },
    Rule {
        package: "punctual-count",
        may_use: &[ANY],
        reason: "a counter may use all that is public",
    },
    Rule {
        package: "write-a-policy",
        may_use: &["punctual-model", "punctual-kern"],
        reason: "an example of a policy sees what a policy sees",
    },
    Rule {
        package: "punctual",
        may_use: &[
            "punctual-model",
            "punctual-kern",
            "punctual-tables",
            "punctual-analysis",
            "punctual-policy",
            "punctual-sim",
            "punctual-linux",
            "punctual-rules",
            "punctual-trace",
            "punctual-spec",
            "punctual-thread",
        ],
        reason: "the facade puts the parts together, but links no workload and no tool",
    },
    Rule {
        package: "punctual-soundness",
        may_use: &[
            "punctual",
            "punctual-model",
            "punctual-analysis",
            "punctual-generate",
            "punctual-rules",
            "punctual-trace",
        ],
        reason: "what judges the analysis by schedules sees verdicts and logs, and no code of either",
    },
    Rule {
        package: "punctual-soak",
        may_use: &[
            "punctual-model",
            "punctual-kern",
            "punctual-tables",
            "punctual-generate",
            "punctual-linux",
            "punctual-policy",
            "punctual-thread",
            "punctual-rules",
            "punctual-trace",
        ],
        reason: "soak flies what it draws and judges by the log: it admits nothing (note 0018)",
    },
    Rule {
        package: "punctual-terminal",
        may_use: &["punctual-model", "punctual-spec"],
        reason: "how a command prints and ends has nothing to do with what it does",
    },
    Rule {
        package: "punctual-tools",
        may_use: &[
            "punctual",
            "punctual-model",
            "punctual-analysis",
            "punctual-capi",
            "punctual-certificate",
            "punctual-linux",
            "punctual-rosace",
            "punctual-spec",
            "punctual-terminal",
            "punctual-trace",
        ],
        reason: "the command is built by everybody: what measures or verifies stands beside it",
    },
    Rule {
        package: "punctual-bench",
        may_use: &[ANY],
        reason: "a benchmark may use all that is public",
    },
    Rule {
        package: "punctual-lab",
        may_use: &[
            "punctual-model",
            "punctual-kern",
            "punctual-analysis",
            "punctual-conform",
            "punctual-generate",
            "punctual-policy",
            "punctual-spec",
            "punctual-terminal",
        ],
        reason: "studies judge policies and the analysis, and run nothing live",
    },
    Rule {
        package: "xtask",
        may_use: &[],
        reason: "chores must build when the rest does not",
    },
];

/// Compares every edge between crates of the workspace with the table.
pub(crate) fn check(metadata: &Value) -> Vec<Finding> {
    let packages = metadata["packages"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let name_of = |package: &Value| package["name"].as_str().unwrap_or_default().to_string();
    let members: Vec<String> = packages.iter().map(name_of).collect();
    let mut findings = Vec::new();
    for package in packages {
        let name = name_of(package);
        let Some(rule) = RULES.iter().find(|rule| rule.package == name) else {
            findings.push(Finding::new(
                "Cargo.toml",
                0,
                format!("`{name}` has no rule in xtask/src/tidy/edges.rs: say what it may use"),
            ));
            continue;
        };
        for used in shipped_dependencies(package).filter(|used| members.contains(used)) {
            if !rule.may_use.contains(&used.as_str()) && !rule.may_use.contains(&ANY) {
                let message = format!("`{name}` may not use `{used}`: {}", rule.reason);
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
