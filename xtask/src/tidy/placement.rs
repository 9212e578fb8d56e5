//! Where assembly, foreign calls and the parts of a module may stand: each has one address.

use super::Finding;
use super::rust::RustFile;
use super::tree::Tree;

/// Macros that hold assembly.
const ASSEMBLY: [&str; 3] = ["asm", "naked_asm", "global_asm"];

/// The folder with all assembly.
const ASSEMBLY_FOLDER: &str = "platform/switch/";

/// The modules with every call into the C library: a file each, and a folder of its parts.
const SYSTEM_CALLS: [&str; 3] = [
    "platform/linux/src/sys",
    "platform/linux-io/src/sys",
    "runtime/openmp/src/sys",
];

/// Tests that play a foreign program, rivals that we are measured against, the counter that steps
/// through itself, and the library that makes processes of a command: these call what they like.
const FOREIGN_PROGRAMS: [&str; 6] = [
    "platform/linux/tests/",
    "platform/linux-io/tests/",
    "bench/rivals/src/",
    "bench/count/src/interrupt.rs",
    "bench/count/src/stepper.rs",
    "verify/feed/src/lib.rs",
];

/// The file name that Rust also knows for a module with parts.
const OTHER_CONVENTION: &str = "/mod.rs";

/// Finds modules with parts whose own file is not beside the folder of its parts. A module of the
/// tests keeps cargo's `tests/common/mod.rs`: by another name it would be a test program.
pub(crate) fn modules(tree: &Tree) -> Vec<Finding> {
    tree.files()
        .filter_map(|file| {
            let folder = file.path.strip_suffix(OTHER_CONVENTION)?;
            let is_of_tests = folder.split('/').rev().nth(1) == Some("tests");
            let message = format!("a module with parts stands in {folder}.rs");
            (!is_of_tests).then(|| Finding::new(&file.path, 0, message))
        })
        .collect()
}

/// Finds assembly outside `platform/switch/` and foreign calls outside the files of system calls.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, rust) in tree.rust_files() {
        if !file.path.starts_with(ASSEMBLY_FOLDER) {
            for name in ASSEMBLY {
                for token in rust.find(&[name, "!"]) {
                    let message = format!("`{name}!` belongs under {ASSEMBLY_FOLDER}");
                    findings.push(Finding::new(&file.path, token.line, message));
                }
            }
        }
        let is_system_calls = SYSTEM_CALLS.iter().any(|module| {
            let rest = file.path.strip_prefix(module);
            rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        });
        let is_foreign = FOREIGN_PROGRAMS
            .iter()
            .any(|place| file.path.starts_with(place));
        if !is_system_calls && !is_foreign {
            // `switch` imports the labels of its own assembly; it names no library.
            let own_labels = file.path.starts_with(ASSEMBLY_FOLDER);
            for line in foreign_calls(rust, own_labels) {
                let message = format!("calls into the C library belong in {}.rs", SYSTEM_CALLS[0]);
                findings.push(Finding::new(&file.path, line, message));
            }
        }
    }
    findings
}

/// Lines that call the C library or import functions. Its constants and number types are no calls,
/// and defining a function for C to call is no import.
fn foreign_calls(rust: &RustFile, may_import: bool) -> Vec<usize> {
    let is_harmless =
        |name: &str| name.starts_with(|c: char| c.is_ascii_uppercase()) || name.starts_with("c_");
    let path = ["libc", ":", ":"];
    let named = rust.tokens().windows(4).filter(|window| {
        let in_library = window
            .iter()
            .zip(path)
            .all(|(token, text)| token.text == text);
        in_library && !is_harmless(&window[3].text)
    });
    let mut lines: Vec<usize> = named.map(|window| window[0].line).collect();
    lines.extend(rust.find(&["use", "libc", ";"]).map(|token| token.line));
    if !may_import {
        let imports = [&["extern", "\"", "{"][..], &["extern", "{"]];
        lines.extend(
            imports
                .iter()
                .flat_map(|pattern| rust.find(pattern))
                .map(|token| token.line),
        );
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name of the macro is put together here, lest a search for assembly find this file.
    fn assembly(path: &str) -> Tree {
        Tree::sample(&[(path, &format!("fn f() {{ {}!(\"nop\") }}", "asm"))])
    }

    #[test]
    fn assembly_has_one_folder() {
        assert_eq!(check(&assembly("platform/switch/src/arch/x86_64.rs")), []);
        assert_eq!(check(&assembly("core/kern/src/lib.rs")).len(), 1);
    }

    #[test]
    fn a_module_with_parts_has_one_name() {
        let of = |path: &str| modules(&Tree::sample(&[(path, "fn f() {}")])).len();
        assert_eq!(of("core/kern/src/shard.rs"), 0);
        assert_eq!(of("core/kern/src/shard/mod.rs"), 1);
        assert_eq!(of("core/kern/tests/common/mod.rs"), 0);
    }

    #[test]
    fn the_c_library_is_called_from_one_file() {
        let source = "use libc::{c_int, getpid};\nfn f() { unsafe { libc::getpid() }; }";
        assert_eq!(
            check(&Tree::sample(&[("platform/linux/src/sys.rs", source)])),
            []
        );
        let findings = check(&Tree::sample(&[(
            "platform/linux/src/entry/cpu.rs",
            source,
        )]));
        assert_eq!(
            findings.iter().map(|found| found.line).collect::<Vec<_>>(),
            [1, 2]
        );
    }

    #[test]
    fn constants_and_number_types_of_the_c_library_are_no_calls() {
        let source = "use libc::c_int;\nfn f() -> c_int { libc::EINVAL }";
        assert_eq!(
            check(&Tree::sample(&[(
                "platform/linux/src/entry/cpu.rs",
                source
            )])),
            []
        );
    }

    #[test]
    fn importing_a_foreign_function_is_found_and_defining_one_is_not() {
        let import = "unsafe extern \"C\" { fn getpid() -> i32; }";
        assert_eq!(
            check(&Tree::sample(&[("front/command/src/a.rs", import)])).len(),
            1
        );
        assert_eq!(
            check(&Tree::sample(&[("platform/switch/src/signal.rs", import)])),
            []
        );
        let definition = "extern \"C\" fn handler(signal: i32) {}";
        assert_eq!(
            check(&Tree::sample(&[("front/command/src/a.rs", definition)])),
            []
        );
        let mention = "//! Like libc::getpid.\nfn f() { g(\"libc::getpid\") }";
        assert_eq!(
            check(&Tree::sample(&[("front/command/src/a.rs", mention)])),
            []
        );
    }
}
