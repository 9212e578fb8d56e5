//! Where the workspace is, and what cargo knows about it.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

/// The workspace that the current folder belongs to.
pub(crate) struct Workspace {
    /// Its top folder.
    pub root: PathBuf,
    /// Where cargo puts what it builds.
    pub target: PathBuf,
    /// The answer of `cargo metadata --no-deps`.
    pub metadata: Value,
}

impl Workspace {
    /// Asks cargo. Fails with a message when the current folder is in no workspace.
    pub(crate) fn find() -> Result<Workspace, String> {
        let output = cargo()
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .output()
            .map_err(|error| format!("cannot start cargo: {error}"))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).trim().to_string());
        }
        let metadata: Value = serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("cargo metadata is not JSON: {error}"))?;
        let folder = |key: &str| {
            metadata[key]
                .as_str()
                .map(PathBuf::from)
                .ok_or_else(|| format!("cargo metadata has no `{key}`"))
        };
        let (root, target) = (folder("workspace_root")?, folder("target_directory")?);
        Ok(Workspace {
            root,
            target,
            metadata,
        })
    }

    /// Where the outputs of steps are kept.
    pub(crate) fn log_folder(&self) -> PathBuf {
        self.target.join("xtask")
    }

    /// A cargo that works at the top of the workspace.
    pub(crate) fn cargo(&self) -> Command {
        let mut command = cargo();
        command.current_dir(&self.root);
        command
    }
}

/// The cargo that started us, so that both use the same toolchain.
fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}
