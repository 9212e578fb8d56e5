//! The command as it is installed: a small program that calls the library.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// Beside this test: cargo has put the libraries there.
fn built(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    test.with_file_name(name)
}

/// `bin/punctual` and the library in `lib`; `None`, loudly, where there is no compiler.
fn installed() -> Option<(TempDir, PathBuf)> {
    let folder = tempfile::tempdir().expect("a folder");
    let [bin, lib] = ["bin", "lib"].map(|name| folder.path().join(name));
    for made in [&bin, &lib] {
        std::fs::create_dir(made).expect("a folder");
    }
    let library = lib.join("libpunctual.so.0");
    symlink(built("libpunctual_installed.so"), &library).expect("a link");
    let program = bin.join("punctual");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/punctual.c");
    let linked = Command::new("cc")
        .args([&source, &library])
        .arg("-Wl,-rpath,$ORIGIN/../lib")
        .arg("-o")
        .arg(&program)
        .status();
    let Ok(linked) = linked else {
        eprintln!("NOT TESTED: there is no `cc` here");
        return None;
    };
    assert!(linked.success());
    Some((folder, program))
}

fn said(output: &Output) -> (Option<i32>, String, String) {
    let [out, err] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    (output.status.code(), out, err)
}

#[test]
fn the_command_of_the_library_hears_its_words_and_ends_with_their_code() {
    let Some((_folder, program)) = installed() else {
        return;
    };
    let ran = |words: &[&str]| {
        said(
            &Command::new(&program)
                .args(words)
                .output()
                .expect("it runs"),
        )
    };
    let (code, out, _) = ran(&["--version"]);
    let version = format!("punctual {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!((code, out), (Some(0), version));
    let (code, _, err) = ran(&["check", "/no/such.toml"]);
    assert!(code == Some(2) && err.contains("/no/such.toml"), "{err}");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (code, out, err) = ran(&[
        "check",
        &root.join("examples/two-tasks.toml").display().to_string(),
    ]);
    assert_eq!(code, Some(0), "{out}{err}");
}

#[test]
fn what_nobody_reads_ends_the_command_of_the_library_with_words_and_no_signal() {
    let Some((_folder, program)) = installed() else {
        return;
    };
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = Command::new(&program);
    let output = command.arg("schema").stdout(writer).output();
    let output = output.expect("it runs");
    assert!(output.status.code().is_some(), "{}", output.status);
}

#[test]
fn a_log_is_not_taken_for_a_standard_stream_that_is_closed() {
    let Some((folder, program)) = installed() else {
        return;
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let logged = |name: &str, redirection: &str| {
        let log = folder.path().join(name);
        let script = format!(r#"exec "$0" sim "$1" --record "$2" {redirection}"#);
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).arg(&program);
        shell
            .arg(root.join("examples/two-tasks.toml"))
            .arg(&log)
            .output()
            .expect("a shell");
        std::fs::read(&log).expect("a log")
    };
    let [open, closed] =
        [("open", ""), ("closed", "<&- >&- 2>&-")].map(|(name, way)| logged(name, way));
    assert!(!open.is_empty() && open == closed);
}

#[test]
fn the_library_with_the_command_has_one_name_more_than_that_without() {
    let names = |library: &str| -> Option<BTreeSet<String>> {
        let mut list = Command::new("nm");
        let listed = list.args(["-D", "--defined-only"]).arg(built(library));
        let listed = listed.output().ok()?;
        let text = String::from_utf8_lossy(&listed.stdout).into_owned();
        let names = text.lines().filter_map(|line| line.split(' ').nth(2));
        Some(names.map(str::to_owned).collect())
    };
    let Some(plain) = names("libpunctual_library.so") else {
        eprintln!("NOT TESTED: there is no `nm` here");
        return;
    };
    let whole = names("libpunctual_installed.so").expect("as before");
    assert!(plain.contains("punctual_run") && plain.is_subset(&whole));
    let more: Vec<_> = whole.difference(&plain).collect();
    assert_eq!(more, ["punctual_command"]);
}
