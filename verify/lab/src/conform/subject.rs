//! The crate with the policy, as cargo sees it: where it is, what it is called, which kit fits it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::child::Limit;
use punctual_terminal::ending::Failure;

/// A crate that can be built together with the kit.
#[derive(Debug)]
pub(super) struct Subject {
    /// The package's name.
    pub(super) package: String,
    /// Its folder.
    pub(super) folder: PathBuf,
    /// Where its workspace is built.
    pub(super) target: PathBuf,
    /// The lock of its workspace, if it has one.
    pub(super) lock: Option<PathBuf>,
    /// The kit, as a value in a table of dependencies.
    pub(super) kit: String,
}

/// Cargo, as the user calls it: a toolchain that a folder asks for is found from there.
pub(super) fn cargo(folder: &Path) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(folder).stdin(Stdio::null());
    command
}

/// Asks cargo about the crate in `folder` (or the manifest of that path).
pub(super) fn find(folder: &Path, offline: bool, limit: &Limit) -> Result<Subject, Failure> {
    let manifest = if folder.is_dir() {
        folder.join("Cargo.toml")
    } else {
        folder.to_owned()
    };
    let manifest = manifest.canonicalize().map_err(|error| {
        Failure::input(format!("{}: {error}", manifest.display()))
            .with_help("--crate names the folder of a crate, where its Cargo.toml is")
    })?;
    // What is on this machine is enough in nearly all cases, and does not depend on a network.
    let metadata = match metadata(&manifest, true, limit) {
        Err(_) if !offline => metadata(&manifest, false, limit),
        result => result,
    }?;
    Subject::read(&metadata, &manifest)
}

fn metadata(manifest: &Path, offline: bool, limit: &Limit) -> Result<Value, Failure> {
    let temporary = |error: std::io::Error| Failure::run(format!("no temporary folder: {error}"));
    let notes = tempfile::tempdir().map_err(temporary)?;
    let (out, err) = (notes.path().join("out"), notes.path().join("err"));
    let mut command = cargo(manifest.parent().unwrap_or(Path::new(".")));
    command
        .args(["metadata", "--format-version", "1", "--manifest-path"])
        .arg(manifest)
        .args(offline.then_some("--offline"))
        .stdout(File::create(&out).map_err(temporary)?)
        .stderr(File::create(&err).map_err(temporary)?);
    let status = limit.run(&mut command, "asking cargo about the crate")?;
    if !status.success() {
        let said = fs::read_to_string(&err).unwrap_or_default();
        let crate_ = manifest.display();
        return Err(Failure::input(format!(
            "cargo does not understand {crate_}:\n{}",
            said.trim_end()
        )));
    }
    let text = fs::read_to_string(&out).map_err(temporary)?;
    serde_json::from_str(&text)
        .map_err(|error| Failure::run(format!("cargo metadata gave no JSON: {error}")))
}

impl Subject {
    fn read(metadata: &Value, manifest: &Path) -> Result<Subject, Failure> {
        let packages = metadata["packages"]
            .as_array()
            .map_or(&[][..], Vec::as_slice);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let shown = manifest.display();
        let Some(package) = packages
            .iter()
            .find(|package| package["manifest_path"].as_str().map(Path::new) == Some(manifest))
        else {
            return Err(Failure::input(format!("{shown} has no crate of its own"))
                .with_help("name the folder of one of the crates of this workspace"));
        };
        let name = text(&package["name"]);
        if !has_library(package) {
            return Err(Failure::input(format!("the crate `{name}` has no library"))
                .with_help("put the policy into src/lib.rs, or into a module of it"));
        }
        let root = PathBuf::from(text(&metadata["workspace_root"]));
        Ok(Subject {
            kit: kit(packages, &name)?,
            package: name,
            folder: manifest.parent().map(Path::to_owned).unwrap_or_default(),
            target: PathBuf::from(text(&metadata["target_directory"])),
            lock: Some(root.join("Cargo.lock")).filter(|lock| lock.is_file()),
        })
    }
}

fn has_library(package: &Value) -> bool {
    let targets = package["targets"].as_array().map_or(&[][..], Vec::as_slice);
    let kinds = targets
        .iter()
        .filter_map(|target| target["kind"].as_array());
    kinds.flatten().any(|kind| kind == "lib" || kind == "rlib")
}

/// The kit from the same place as the core that the crate is written for: a policy implements the
/// trait of one core, and of no other.
fn kit(packages: &[Value], name: &str) -> Result<String, Failure> {
    let named = |wanted: &str| packages.iter().find(|package| package["name"] == wanted);
    if let Some(kit) = named("punctual-conform").filter(|kit| kit["source"].is_null()) {
        return Ok(by_path(Path::new(
            kit["manifest_path"].as_str().unwrap_or_default(),
        )));
    }
    let Some(core) = named("punctual-kern") else {
        let message = format!("the crate `{name}` does not depend on punctual-kern");
        return Err(Failure::input(message).with_help("a policy implements punctual_kern::Policy"));
    };
    let Some(source) = core["source"].as_str() else {
        let beside = core["manifest_path"].as_str().unwrap_or_default();
        // The core stands in `core/kern`.
        let top = Path::new(beside).ancestors().nth(3);
        let kit = top.map(|top| top.join("verify/conform/Cargo.toml"));
        let found = kit.filter(|kit| kit.is_file());
        return found.map(|kit| by_path(&kit)).ok_or_else(|| {
            Failure::input(format!("there is no kit beside {beside}"))
                .with_help("add punctual-conform to the crate's dependencies")
        });
    };
    match source.strip_prefix("git+") {
        Some(git) => Ok(by_git(git)),
        None => Ok(format!(
            "\"={}\"",
            core["version"].as_str().unwrap_or_default()
        )),
    }
}

fn by_path(manifest: &Path) -> String {
    let folder = manifest.parent().unwrap_or(manifest);
    format!("{{ path = {} }}", quoted(&folder.display().to_string()))
}

/// `https://host/repository?branch=main#0123abcd`, as a dependency from the same place.
fn by_git(source: &str) -> String {
    let address = source.split('#').next().unwrap_or(source);
    match address.split_once('?') {
        Some((url, reference)) => {
            let (key, value) = reference.split_once('=').unwrap_or(("rev", reference));
            format!("{{ git = {}, {key} = {} }}", quoted(url), quoted(value))
        }
        None => format!("{{ git = {} }}", quoted(address)),
    }
}

/// A string of TOML.
pub(super) fn quoted(text: &str) -> String {
    // JSON strings are strings of TOML.
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn core(source: Value) -> Vec<Value> {
        vec![
            json!({ "name": "punctual-kern", "version": "0.3.1", "source": source,
            "manifest_path": "/nowhere/kern/Cargo.toml" }),
        ]
    }

    #[test]
    fn the_kit_comes_from_where_the_core_comes_from() {
        let git = "git+https://host/punctual?branch=main#0123abcd";
        assert_eq!(
            kit(&core(json!(git)), "mine").expect("found"),
            "{ git = \"https://host/punctual\", branch = \"main\" }"
        );
        let registry = "registry+https://github.com/rust-lang/crates.io-index";
        assert_eq!(
            kit(&core(json!(registry)), "mine").expect("found"),
            "\"=0.3.1\""
        );
    }

    #[test]
    fn a_crate_without_the_core_has_no_policy() {
        assert!(kit(&[], "mine").is_err());
        assert!(
            kit(&core(json!(null)), "mine").is_err(),
            "and no kit is beside it"
        );
    }
}
