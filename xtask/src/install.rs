//! `cargo xtask install`: the C library, its header and its pkg-config file, where users have them.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use crate::step::{Outcome, Tally, passes_in_the_open, run_logged};
use crate::test::log_folder;
use crate::workspace::Workspace;

/// What programs ask the loader for; the first number of the version of the interface.
const SONAME: &str = "libpunctual.so.0";

/// What a program that links the static library needs beside it.
const BESIDE_STATIC: &str = "-lgcc_s -lutil -lrt -lpthread -lm -ldl -lc";

/// Where to.
#[derive(Args)]
pub(crate) struct InstallOptions {
    /// The folder above `include` and `lib`
    #[arg(long, default_value = "/usr/local")]
    prefix: PathBuf,
    /// Put before every path that is written, but into none: for packages
    #[arg(long)]
    destdir: Option<PathBuf>,
    /// A quick build, for tries
    #[arg(long)]
    debug: bool,
}

/// Builds and installs; whether both went well.
pub(crate) fn run(workspace: &Workspace, options: &InstallOptions) -> bool {
    let mut build = workspace.cargo();
    build.args([
        "build",
        "--quiet",
        "--locked",
        "--package",
        "punctual-library",
    ]);
    build.args((!options.debug).then_some("--release"));
    if !passes_in_the_open(build) {
        return false;
    }
    let profile = if options.debug { "debug" } else { "release" };
    match install(workspace, &workspace.target.join(profile), options) {
        Ok(written) => {
            written
                .iter()
                .for_each(|path| println!("{}", path.display()));
            true
        }
        Err(message) => {
            eprintln!("xtask: {message}");
            false
        }
    }
}

/// As a step of the tests: what they have built is installed, found by pkg-config, linked and run.
pub(crate) fn step(tally: &mut Tally, workspace: &Workspace) {
    tally.run("install: a program in C by pkg-config", |tests| {
        let folder = log_folder(workspace).join("installed");
        // What an earlier run left, if it did.
        let _ = fs::remove_dir_all(&folder);
        let options = InstallOptions {
            prefix: folder.clone(),
            destdir: None,
            debug: true,
        };
        if let Err(message) = install(workspace, &workspace.target.join("debug/deps"), &options) {
            return Outcome::Failed(message);
        }
        let present = |tool: &str| Command::new(tool).arg("--version").output().is_ok();
        if let Some(tool) = ["pkg-config", "cc"].into_iter().find(|tool| !present(tool)) {
            return Outcome::Skipped(format!("there is no `{tool}` here"));
        }
        let mut command = Command::new("sh");
        // The program asks the loader for the soname, which is a link in the installed folder.
        command.arg("-ec").arg(
            "cc -o \"$1/control\" \"$2\" $(pkg-config --cflags --libs punctual)
             test \"$(pkg-config --modversion punctual)\" = \"$3\"
             \"$1/control\"",
        );
        let source = workspace.root.join("examples/c/control.c");
        command.arg("sh").arg(&folder).arg(source);
        command.arg(env!("CARGO_PKG_VERSION"));
        command.env("PKG_CONFIG_PATH", folder.join("lib/pkgconfig"));
        command.env("LD_LIBRARY_PATH", folder.join("lib"));
        let outcome = run_logged(log_folder(workspace), "install", command, tests);
        // A hundred megabytes and more, in a debug build.
        let _ = fs::remove_dir_all(&folder);
        outcome
    });
}

/// What was written.
fn install(
    workspace: &Workspace,
    built: &Path,
    options: &InstallOptions,
) -> Result<Vec<PathBuf>, String> {
    let prefix = std::path::absolute(&options.prefix).map_err(|error| error.to_string())?;
    let top = match &options.destdir {
        Some(destdir) => destdir.join(prefix.strip_prefix("/").unwrap_or(&prefix)),
        None => prefix.clone(),
    };
    let version = env!("CARGO_PKG_VERSION");
    let [library, include] = ["lib", "include"].map(|folder| top.join(folder));
    let shared = format!("libpunctual.so.{version}");
    let header = workspace.root.join("runtime/capi/include/punctual.h");
    let mut written = Written(Vec::new());
    written.copy(&header, &include.join("punctual.h"))?;
    written.copy(
        &built.join("libpunctual_library.so"),
        &library.join(&shared),
    )?;
    written.link(&shared, &library.join(SONAME))?;
    written.link(SONAME, &library.join("libpunctual.so"))?;
    let archive = built.join("libpunctual_library.a");
    written.copy(&archive, &library.join("libpunctual.a"))?;
    let description = library.join("pkgconfig/punctual.pc");
    written.text(&pkg_config(&prefix, version), &description)?;
    Ok(written.0)
}

/// What `pkg-config punctual` reads.
fn pkg_config(prefix: &Path, version: &str) -> String {
    let lines = [
        format!("prefix={}", prefix.display()),
        "includedir=${prefix}/include".to_owned(),
        "libdir=${prefix}/lib".to_owned(),
        String::new(),
        "Name: punctual".to_owned(),
        "Description: Hard real time for ordinary Linux programs".to_owned(),
        format!("Version: {version}"),
        "Cflags: -I${includedir}".to_owned(),
        "Libs: -L${libdir} -lpunctual".to_owned(),
        format!("Libs.private: {BESIDE_STATIC}"),
    ];
    lines.join("\n") + "\n"
}

struct Written(Vec<PathBuf>);

impl Written {
    /// A new file or link at `path`: what was there goes, so that programs that use it keep theirs.
    fn at(
        &mut self,
        path: &Path,
        write: impl FnOnce(&Path) -> io::Result<()>,
    ) -> Result<(), String> {
        let fail = |error: io::Error| format!("{}: {error}", path.display());
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(fail)?;
        }
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fail(error)),
            _ => write(path).map_err(fail)?,
        }
        self.0.push(path.to_path_buf());
        Ok(())
    }

    fn copy(&mut self, from: &Path, to: &Path) -> Result<(), String> {
        let told =
            |error: io::Error| io::Error::new(error.kind(), format!("from {from:?}: {error}"));
        self.at(to, |to| fs::copy(from, to).map(drop).map_err(told))
    }

    fn link(&mut self, target: &str, at: &Path) -> Result<(), String> {
        self.at(at, |at| symlink(target, at))
    }

    fn text(&mut self, text: &str, at: &Path) -> Result<(), String> {
        self.at(at, |at| fs::write(at, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_names_the_prefix_once_and_the_version() {
        let text = pkg_config(Path::new("/opt/p"), "1.2.3");
        assert_eq!(text.matches("/opt/p").count(), 1);
        assert!(text.contains("\nVersion: 1.2.3\n") && text.ends_with('\n'));
    }
}
