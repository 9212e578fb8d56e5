//! What the system's compiler links of an installation.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Built, Places};
use crate::step::passes_in_the_open;
use crate::workspace::Workspace;

/// Makes the command: a program that calls the library. It finds that from its own place, and under
/// the prefix: a program with capabilities looks at no place of its own.
pub(super) fn command(workspace: &Workspace, places: &Places, path: &Path) -> io::Result<()> {
    let mut link = Command::new("cc");
    link.args(["-O1", "-s", "-o"]).arg(path);
    link.arg(workspace.root.join("front/installed/src/punctual.c"));
    link.arg(&places.shared()[0]);
    // Before LD_LIBRARY_PATH, which may lead to another version.
    link.args(["-Wl,--disable-new-dtags", "-Wl,-rpath,$ORIGIN/../lib"]);
    let under_prefix = places.prefix.join("lib");
    link.arg(format!("-Wl,-rpath,{}", under_prefix.display()));
    match passes_in_the_open(link) {
        true => Ok(()),
        false => Err(io::Error::other("not linked (it takes `cc`)")),
    }
}

/// Makes the libraries for programs of OpenMP: the system's linker gives names their versions.
pub(super) fn openmp(
    workspace: &Workspace,
    built: &Built,
    places: &Places,
) -> Result<[PathBuf; 2], String> {
    let libraries = places.openmp();
    let folder = libraries[0].parent().unwrap_or(&places.library);
    let mut link = Command::new("sh");
    link.arg(workspace.root.join("runtime/openmp/link.sh"));
    link.arg(built.libraries.join("libpunctual_openmp.a"));
    link.arg(folder);
    match passes_in_the_open(link) {
        true => Ok(libraries),
        false => Err("libgomp.so.1 was not linked (it takes `cc` and `objcopy`)".to_owned()),
    }
}
