//! A target that is not built for tests has none: nobody would notice that they do not run.

use serde_json::Value;

use super::Finding;
use super::tree::Tree;

/// How a test begins, or a module of tests.
const TESTS: [&[&str]; 3] = [
    &["#", "[", "test", "]"],
    &["cfg", "(", "test"],
    &["all", "(", "test"],
];

/// Finds tests in libraries and programs with `test = false`. A module of such a program would
/// stand among those of the library, so it may have none.
pub(crate) fn check(metadata: &Value, tree: &Tree) -> Vec<Finding> {
    let root = metadata["workspace_root"].as_str().unwrap_or_default();
    let mut findings = Vec::new();
    for package in list(&metadata["packages"]) {
        let targets: Vec<Target> = list(&package["targets"])
            .iter()
            .filter_map(|target| Target::of(target, root))
            .collect();
        for target in targets.iter().filter(|target| !target.is_tested) {
            let is_of_another = |path: &str| {
                let mut others = targets.iter().filter(|other| other.path != target.path);
                others.any(|other| other.path == path)
            };
            for (file, rust) in tree.rust_files() {
                let path = file.path.as_str();
                let is_inside = match target.is_program {
                    true => path == target.path,
                    false => path.starts_with(target.folder()) && !is_of_another(path),
                };
                if !is_inside {
                    continue;
                }
                let module: &[&str] = &["mod"];
                let modules = target.is_program.then_some(module);
                for token in TESTS
                    .iter()
                    .copied()
                    .chain(modules)
                    .flat_map(|p| rust.find(p))
                {
                    let message = "its target has `test = false`, so no test of it would run";
                    findings.push(Finding::new(path, token.line, message));
                }
            }
        }
    }
    findings
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// A library or a program of a package.
struct Target<'a> {
    /// Of its first file, relative to the top folder.
    path: &'a str,
    is_program: bool,
    is_tested: bool,
}

impl<'a> Target<'a> {
    /// `None`: an example, a test program, or a script of a build.
    fn of(target: &'a Value, root: &str) -> Option<Target<'a>> {
        let kinds = list(&target["kind"]);
        let has = |kind: &str| kinds.iter().any(|has| has == kind);
        let is_program = has("bin");
        let is_library = ["lib", "rlib", "cdylib", "staticlib"].into_iter().any(has);
        let path = target["src_path"].as_str()?.strip_prefix(root)?;
        (is_program || is_library).then_some(Target {
            path: path.trim_start_matches('/'),
            is_program,
            is_tested: target["test"] != false,
        })
    }

    /// The folder of its first file, with a slash at its end.
    fn folder(&self) -> &str {
        let end = self.path.rfind('/').map_or(0, |slash| slash + 1);
        &self.path[..end]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The lines with findings of a package with a library and a program.
    fn found([library, program]: [bool; 2], files: &[(&str, &str)]) -> Vec<(String, usize)> {
        let metadata = json!({
            "workspace_root": "/top",
            "packages": [{ "targets": [
                { "kind": ["rlib", "cdylib"], "src_path": "/top/p/src/lib.rs", "test": library },
                { "kind": ["bin"], "src_path": "/top/p/src/main.rs", "test": program },
                { "kind": ["example"], "src_path": "/top/p/examples/e.rs", "test": false },
                { "kind": ["test"], "src_path": "/top/p/tests/t.rs", "test": true },
            ] }],
        });
        let findings = check(&metadata, &Tree::sample(files));
        findings.into_iter().map(|f| (f.path, f.line)).collect()
    }

    #[test]
    fn a_library_that_is_not_built_for_tests_has_none_in_any_of_its_files() {
        let files = [
            ("p/src/lib.rs", "mod part;\n#[test]\nfn one() {}"),
            ("p/src/part.rs", "#[cfg(test)]\nmod tests {}"),
            (
                "p/src/main.rs",
                "fn main() {}\n#[cfg(all(test, unix))]\nmod t {}",
            ),
            ("p/tests/t.rs", "#[test]\nfn two() {}"),
            ("p/examples/e.rs", "#[test]\nfn three() {}"),
            ("q/src/lib.rs", "#[test]\nfn four() {}"),
        ];
        assert_eq!(found([true, true], &files), []);
        let both = [("p/src/lib.rs", 2), ("p/src/part.rs", 1)];
        assert_eq!(
            found([false, true], &files),
            both.map(|(p, l)| (p.to_owned(), l))
        );
    }

    #[test]
    fn a_program_that_is_not_built_for_tests_has_none_and_no_modules() {
        let main = |text| found([true, false], &[("p/src/main.rs", text)]);
        assert_eq!(main("fn main() {}"), []);
        assert_eq!(main("fn main() {}\n#[test]\nfn one() {}").len(), 1);
        assert_eq!(main("mod part;\nfn main() {}").len(), 1);
    }
}
