//! The library, linked as it is for users, and programs that gcc compiles.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::Duration;

use tempfile::TempDir;

/// No program here takes that long, on a busy machine either.
const BOUND: Duration = Duration::from_secs(120);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A folder with the library, made once by the system's linker; `None`, loudly, without one.
pub(crate) fn library() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<TempDir>> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let test = std::env::current_exe().expect("the path of this test");
        let archive = test.with_file_name("libpunctual_openmp.a");
        let mut link = Command::new("sh");
        link.arg(root().join("runtime/openmp/link.sh"));
        let Ok(linked) = link.arg(archive).arg(folder.path()).output() else {
            eprintln!("NOT TESTED: there is no `sh` here");
            return None;
        };
        let said = String::from_utf8_lossy(&linked.stderr);
        assert!(linked.status.success(), "link.sh: {said}");
        Some(folder)
    });
    folder.as_ref().map(TempDir::path)
}

/// A program, compiled once per test.
pub(crate) struct Program {
    _folder: TempDir,
    pub(crate) path: PathBuf,
}

impl Program {
    /// Compiles a source; `None`, loudly, where there is no compiler with OpenMP.
    pub(crate) fn compile(source: &str) -> Option<Program> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("program");
        let compiler = if source.ends_with(".cpp") {
            "g++"
        } else {
            "gcc"
        };
        let mut command = Command::new(compiler);
        command.args(["-O2", "-g", "-fopenmp", "-o"]).arg(&path);
        command.arg(root().join(source));
        let Ok(compiled) = command.output() else {
            eprintln!("NOT TESTED: there is no `{compiler}` here");
            return None;
        };
        let said = String::from_utf8_lossy(&compiled.stderr);
        if !compiled.status.success() && said.contains("libgomp.spec") {
            eprintln!("NOT TESTED: `{compiler}` has no OpenMP here");
            return None;
        }
        assert!(compiled.status.success(), "{source}: {said}");
        Some(Program {
            _folder: folder,
            path,
        })
    }

    pub(crate) fn command(&self) -> Command {
        // A program that hangs is ended by another.
        let mut command = Command::new("timeout");
        command.arg(BOUND.as_secs().to_string()).arg(&self.path);
        command
    }

    /// Runs it on this library, with such an environment.
    pub(crate) fn ours(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
        let mut command = self.command();
        command.args(arguments).envs(environment.iter().copied());
        command.env("LD_LIBRARY_PATH", library().expect("linked before"));
        command.output().expect("it runs")
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The output of a program that has to end well.
pub(crate) fn printed(output: &Output) -> String {
    let said = text(&output.stderr);
    let told = text(&output.stdout);
    assert!(output.status.success(), "{:?}\n{told}{said}", output.status);
    told
}

pub(crate) fn compiled(source: &str) -> Option<Program> {
    library()?;
    Program::compile(source)
}
