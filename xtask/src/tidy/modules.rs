//! The files of a crate as modules, and which of them names which.
//!
//! Names are followed through `use` to the file that declares them, so that a list of re-exports
//! ties nobody. What a file takes from a module that it lies in is not counted: a child that uses
//! its parent's struct is Rust's habit. Tests are not counted either.

use std::collections::{BTreeMap, BTreeSet};

use super::rust::{RustFile, Token};
use super::tree::Tree;

/// A module by its path from the root of its crate.
pub(crate) type Module = Vec<String>;

/// One name of a file's code: where it is, and the module that declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Use {
    pub line: usize,
    pub target: Module,
}

/// One crate.
pub(crate) struct Crate {
    /// Its folder.
    pub folder: String,
    /// What each module names of others.
    pub uses: BTreeMap<Module, Vec<Use>>,
}

/// A path as it is written: from where it is looked up, its segments, its line.
struct Written {
    base: Module,
    segments: Vec<String>,
    line: usize,
    is_import: bool,
}

/// Every crate of the tree that has a `src` folder.
pub(crate) fn crates(tree: &Tree) -> Vec<Crate> {
    let folders = tree.rust_files().filter_map(|(file, _)| {
        let root = file.path.strip_suffix("/src/lib.rs");
        root.or_else(|| file.path.strip_suffix("/src/main.rs"))
    });
    let folders: BTreeSet<&str> = folders.collect();
    folders
        .into_iter()
        .map(|folder| of_crate(tree, folder))
        .collect()
}

fn of_crate(tree: &Tree, folder: &str) -> Crate {
    let sources = format!("{folder}/src/");
    let mut parsed: BTreeMap<Module, &RustFile> = BTreeMap::new();
    for (file, rust) in tree.rust_files() {
        let Some(module) = file.path.strip_prefix(&sources).and_then(module) else {
            continue;
        };
        parsed.insert(module, rust);
    }
    let modules: BTreeSet<&Module> = parsed.keys().collect();
    let written: BTreeMap<&Module, Vec<Written>> = parsed
        .iter()
        .map(|(module, rust)| (module, paths(module, rust.tokens(), &modules)))
        .collect();
    let uses = parsed.keys().map(|module| {
        let resolved = written[module].iter().map(|path| Use {
            line: path.line,
            target: resolve(path.base.clone(), &path.segments, &written, &mut Vec::new()),
        });
        let others = resolved.filter(|found| !module.starts_with(&found.target));
        (module.clone(), others.collect())
    });
    let uses = uses.collect();
    Crate {
        folder: folder.to_owned(),
        uses,
    }
}

/// The module of a file below `src`; `None`: a test, or a program of its own.
fn module(path: &str) -> Option<Module> {
    let path = path.strip_suffix(".rs")?;
    let mut parts: Module = path.split('/').map(str::to_owned).collect();
    if parts.iter().any(|part| part == "tests" || part == "bin") {
        return None;
    }
    if parts == ["lib"] || parts == ["main"] {
        parts.clear();
    }
    Some(parts)
}

/// The module that a path leads to: as deep as its segments are modules, then through imports.
fn resolve(
    mut at: Module,
    segments: &[String],
    written: &BTreeMap<&Module, Vec<Written>>,
    seen: &mut Vec<(Module, String)>,
) -> Module {
    let mut rest = segments.iter();
    for segment in rest.by_ref() {
        at.push(segment.clone());
        if written.contains_key(&at) {
            continue;
        }
        at.pop();
        let place = (at.clone(), segment.clone());
        if seen.contains(&place) {
            return at;
        }
        let imports = written[&at].iter().filter(|path| path.is_import);
        let mut named = imports.filter(|path| path.segments.last() == Some(segment));
        if let Some(import) = named.next() {
            seen.push(place);
            let through: Vec<String> = import.segments.iter().chain(rest).cloned().collect();
            return resolve(import.base.clone(), &through, written, seen);
        }
        return at;
    }
    at
}

/// All paths of a file that begin at a module of its own crate.
fn paths(module: &Module, tokens: &[Token], modules: &BTreeSet<&Module>) -> Vec<Written> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let token = &tokens[at];
        let begins = at == 0 || tokens[at - 1].text != ":";
        if token.in_test || !begins {
            at += 1;
            continue;
        }
        let mut names = Vec::new();
        let is_import = token.text == "use";
        let next = if is_import {
            import(tokens, at + 1, &[], &mut names)
        } else {
            let (path, next) = path(tokens, at);
            names.push((path, token.line));
            next
        };
        for (segments, line) in names {
            found.extend(based(module, segments, line, is_import, modules));
        }
        at = next.max(at + 1);
    }
    found
}

/// The names joined by `::` from here on, and where they end.
fn path(tokens: &[Token], mut at: usize) -> (Vec<String>, usize) {
    let is = |at: usize, text: &str| tokens.get(at).is_some_and(|token| token.text == text);
    let mut segments = Vec::new();
    while let Some(token) = tokens.get(at).filter(|token| is_name(&token.text)) {
        segments.push(token.text.clone());
        at += 1;
        if !(is(at, ":") && is(at + 1, ":")) {
            break;
        }
        at += 2;
    }
    (segments, at)
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The tree of names behind `use`, each with its line; returns where it ends.
fn import(
    tokens: &[Token],
    at: usize,
    before: &[String],
    found: &mut Vec<(Vec<String>, usize)>,
) -> usize {
    let (segments, mut at) = path(tokens, at);
    let whole: Vec<String> = before.iter().cloned().chain(segments).collect();
    let text = |at: usize| tokens.get(at).map_or(";", |token| token.text.as_str());
    if text(at) != "{" {
        found.push((whole, tokens.get(at).map_or(0, |token| token.line)));
        // `*`, or `as` and another name.
        while ![",", "}", ";"].contains(&text(at)) {
            at += 1;
        }
        return at;
    }
    at += 1;
    while text(at) != "}" && text(at) != ";" {
        at = import(tokens, at, &whole, found);
        if text(at) == "," {
            at += 1;
        }
    }
    at + 1
}

/// The path from the module at which it begins, if that is one of this crate.
fn based(
    module: &Module,
    mut segments: Vec<String>,
    line: usize,
    is_import: bool,
    modules: &BTreeSet<&Module>,
) -> Option<Written> {
    let mut base = module.clone();
    let first = segments.first()?.clone();
    match first.as_str() {
        "crate" => {
            base.clear();
            segments.remove(0);
        }
        "self" | "super" => {
            while let Some(step) = segments.first().cloned() {
                match step.as_str() {
                    "super" => drop(base.pop()),
                    "self" => {}
                    _ => break,
                }
                segments.remove(0);
            }
        }
        child => {
            let mut inside = module.clone();
            inside.push(child.to_owned());
            if segments.len() < 2 || !modules.contains(&inside) {
                return None;
            }
        }
    }
    // `{self, ...}` names the module itself.
    segments.retain(|segment| segment != "self");
    Some(Written {
        base,
        segments,
        line,
        is_import,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(files: &[(&str, &str)], of: &[&str]) -> Vec<String> {
        let crates = crates(&Tree::sample(files));
        let module: Module = of.iter().map(|&part| part.to_owned()).collect();
        let found = &crates[0].uses[&module];
        found.iter().map(|found| found.target.join("::")).collect()
    }

    #[test]
    fn names_are_followed_to_the_file_that_declares_them() {
        let files = [
            ("a/src/lib.rs", "mod x;\nmod y;\npub use y::Thing;\n"),
            ("a/src/x.rs", "use crate::{Thing, y::{self, Other}};\n"),
            ("a/src/y.rs", "pub struct Thing;\npub struct Other;\n"),
        ];
        assert_eq!(uses(&files, &["x"]), ["y", "y", "y"]);
    }

    #[test]
    fn a_child_may_name_its_parent_and_a_sibling_is_found() {
        let files = [
            ("a/src/lib.rs", "mod x;\n"),
            ("a/src/x.rs", "mod one;\nmod two;\nfn f() { one::g() }\n"),
            ("a/src/x/one.rs", "use super::Own;\nuse super::two::Two;\n"),
            ("a/src/x/two.rs", "fn f() { super::one::g() }\n"),
        ];
        assert_eq!(uses(&files, &["x", "one"]), ["x::two"]);
        assert_eq!(uses(&files, &["x", "two"]), ["x::one"]);
        assert_eq!(uses(&files, &["x"]), ["x::one"]);
    }

    #[test]
    fn tests_and_other_crates_are_no_uses() {
        let files = [
            ("a/src/lib.rs", "mod x;\nmod y;\n"),
            (
                "a/src/x.rs",
                "use y::Z;\nuse std::fmt;\n#[cfg(test)]\nmod tests { use crate::y::Z; }\n",
            ),
            ("a/src/y.rs", "pub struct Z;\n"),
        ];
        assert!(uses(&files, &["x"]).is_empty());
    }
}
