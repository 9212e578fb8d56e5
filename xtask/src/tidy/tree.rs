//! The files of the workspace, read once.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::rust::RustFile;

/// Endings of files that are read; of all others only the existence matters.
const TEXT_ENDINGS: [&str; 10] = [
    ".rs",
    ".md",
    ".toml",
    ".c",
    ".h",
    ".sh",
    "Makefile",
    "run",
    "LICENSE-MIT",
    "LICENSE-APACHE",
];

/// Every file and folder below the top folder, without build output and version control.
#[derive(Default)]
pub(crate) struct Tree {
    files: Vec<TextFile>,
    paths: BTreeSet<String>,
    functions: BTreeSet<String>,
}

/// One file that was read.
pub(crate) struct TextFile {
    /// Relative to the top folder, with `/`.
    pub path: String,
    /// Its content.
    pub text: String,
    /// Its tokens, for Rust.
    pub rust: Option<RustFile>,
}

/// One row of a table: all its cells, and the one that was asked for.
pub(crate) struct Row {
    pub cells: Vec<String>,
    pub cell: String,
}

/// The code spans of a cell.
pub(crate) fn spans(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

impl Tree {
    /// Reads the tree below `root`. Fails on what cannot be read and on Rust that has no tokens.
    pub(crate) fn read(root: &Path) -> Result<Tree, String> {
        let mut tree = Tree::default();
        tree.read_folder(root, "")?;
        Ok(tree)
    }

    fn read_folder(&mut self, root: &Path, folder: &str) -> Result<(), String> {
        let absolute = root.join(folder);
        let fail = |error: std::io::Error| format!("{}: {error}", absolute.display());
        let mut names = Vec::new();
        for entry in fs::read_dir(&absolute).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            names.push((name, entry.file_type().map_err(fail)?.is_dir()));
        }
        names.sort();
        for (name, is_folder) in names {
            let path = if folder.is_empty() {
                name
            } else {
                format!("{folder}/{name}")
            };
            if is_folder {
                // Cargo marks every target folder with this file.
                let built = root.join(&path).join("CACHEDIR.TAG").exists();
                if path != ".git" && path != "target" && !built {
                    self.read_folder(root, &path)?;
                    self.paths.insert(path);
                }
            } else if TEXT_ENDINGS.iter().any(|ending| path.ends_with(ending)) {
                let text = fs::read_to_string(root.join(&path))
                    .map_err(|error| format!("{path}: {error}"))?;
                self.add(&path, &text)?;
            } else {
                self.paths.insert(path);
            }
        }
        Ok(())
    }

    fn add(&mut self, path: &str, text: &str) -> Result<(), String> {
        let rust = if path.ends_with(".rs") {
            Some(RustFile::parse(text).map_err(|error| format!("{path}: {error}"))?)
        } else {
            None
        };
        let names = rust.iter().flat_map(RustFile::functions);
        self.functions.extend(names.map(str::to_string));
        self.paths.insert(path.to_string());
        self.files.push(TextFile {
            path: path.to_string(),
            text: text.to_string(),
            rust,
        });
        Ok(())
    }

    /// Files that were read.
    pub(crate) fn file_count(&self) -> usize {
        self.files.len()
    }

    /// All files that were read, in order of their paths.
    pub(crate) fn files(&self) -> impl Iterator<Item = &TextFile> {
        self.files.iter()
    }

    /// All Rust files with their tokens.
    pub(crate) fn rust_files(&self) -> impl Iterator<Item = (&TextFile, &RustFile)> {
        self.files
            .iter()
            .filter_map(|file| Some((file, file.rust.as_ref()?)))
    }

    /// The file at `path`, if it was read.
    pub(crate) fn file(&self, path: &str) -> Option<&TextFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The rows of the tables of a document that have a column of this name.
    pub(crate) fn rows(&self, path: &str, name: &str) -> Vec<Row> {
        let mut column = None;
        let mut rows = Vec::new();
        for line in self.file(path).map_or("", |file| &file.text).lines() {
            let line = line.trim().trim_matches('|');
            let cells: Vec<String> = line
                .split('|')
                .map(|cell| cell.trim().to_string())
                .collect();
            if cells.len() < 2 {
                column = None;
            } else if let Some(found) = cells.iter().position(|cell| *cell == name) {
                column = Some(found);
            } else if let Some(cell) = column.and_then(|column| cells.get(column)).cloned() {
                rows.push(Row { cells, cell });
            }
        }
        rows
    }

    /// Whether there is a file or folder at `path` (without a closing slash).
    pub(crate) fn has(&self, path: &str) -> bool {
        path.is_empty() || self.paths.contains(path)
    }

    /// Whether any Rust file defines a function of that name.
    pub(crate) fn has_function(&self, name: &str) -> bool {
        self.functions.contains(name)
    }

    /// A tree made of samples, for the tests of the rules.
    #[cfg(test)]
    pub(crate) fn sample(files: &[(&str, &str)]) -> Tree {
        let mut tree = Tree::default();
        for (path, text) in files {
            tree.add(path, text).expect("a sample has tokens");
            let mut folder = *path;
            while let Some((parent, _)) = folder.rsplit_once('/') {
                tree.paths.insert(parent.to_string());
                folder = parent;
            }
        }
        tree
    }
}
