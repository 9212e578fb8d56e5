//! Tells the commands their commit.

use std::path::Path;
use std::process::Command;

/// The repository, seen from this package.
const REPOSITORY: &str = "../../.git";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Each commit adds a line to this file. A source archive has none, and no commit.
    let log = format!("{REPOSITORY}/logs/HEAD");
    if Path::new(&log).exists() {
        println!("cargo:rerun-if-changed={log}");
        let git = Command::new("git")
            .args(["rev-parse", "--short=12", "HEAD"])
            .output();
        if let Some(commit) = git.ok().filter(|git| git.status.success()) {
            let commit = String::from_utf8_lossy(&commit.stdout);
            println!("cargo:rustc-env=PUNCTUAL_COMMIT={}", commit.trim());
        }
    }
}
