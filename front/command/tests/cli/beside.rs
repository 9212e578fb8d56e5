//! `punctual bench`, `compare`, `conform` and `sweep`: programs that stand beside the command.

use std::fs;
use std::process::Command;

use crate::common::{Folder, assert_obeys, code, json, stdout};

/// The command in a folder of its own, where nothing else stands. A link and not a copy: a file
/// that was just written cannot be executed while a child of another test still has it open.
fn alone(folder: &Folder) -> String {
    let link = folder.path("punctual");
    let command = env!("CARGO_BIN_EXE_punctual");
    if fs::hard_link(command, &link).is_ok() {
        return link;
    }
    // Another file system.
    fs::copy(command, &link).expect("a copy");
    link
}

/// A program. A child writes it, for the same reason.
fn script(folder: &Folder, name: &str, text: &str) {
    let writes = "printf '%s' \"$1\" > \"$0\" && chmod 755 \"$0\"";
    let path = folder.path(name);
    let mut child = Command::new("/bin/sh");
    let written = child.args(["-c", writes, &path, text]).status();
    assert!(written.expect("a shell").success());
}

#[test]
fn the_program_beside_the_command_gets_all_arguments_and_gives_its_exit_code() {
    let folder = Folder::new("beside");
    let command = alone(&folder);
    script(
        &folder,
        "punctual-bench",
        "#!/bin/sh\necho \"$@\"\nexit 7\n",
    );
    let arguments = ["bench", "switch", "--json", "--help"];
    let told = Command::new(&command)
        .args(arguments)
        .output()
        .expect("it starts");
    assert_eq!(code(&told), 7);
    assert_eq!(stdout(&told), "switch --json --help\n");
}

#[test]
fn a_program_on_the_path_is_found_too() {
    let (folder, elsewhere) = (Folder::new("beside-path"), Folder::new("beside-elsewhere"));
    let command = alone(&folder);
    script(&elsewhere, "punctual-sweep", "#!/bin/sh\necho here\n");
    let path = format!("{}:/usr/bin:/bin", elsewhere.path(""));
    let told = Command::new(&command)
        .arg("sweep")
        .env("PATH", path)
        .output()
        .expect("it starts");
    assert_eq!((code(&told), stdout(&told).as_str()), (0, "here\n"));
}

#[test]
fn a_program_that_is_not_there_is_told_with_the_remedy() {
    let folder = Folder::new("beside-nothing");
    let command = alone(&folder);
    for name in ["bench", "conform", "study", "sweep"] {
        let told = Command::new(&command)
            .args([name, "--json"])
            .env("PATH", "")
            .output()
            .expect("it starts");
        assert_eq!(code(&told), 3, "{name}");
        let error = json(&told);
        assert_obeys(&error, "error");
        assert!(
            error["help"]
                .as_str()
                .is_some_and(|help| help.contains("cargo build")),
            "{error}"
        );
    }
}

#[test]
fn a_program_of_openmp_finds_the_library_first_and_gets_all_its_arguments() {
    let folder = Folder::new("omp");
    let command = alone(&folder);
    script(
        &folder,
        "program",
        "#!/bin/sh\necho \"$LD_LIBRARY_PATH $@\"\nexit 5\n",
    );
    let program = folder.path("program");
    let omp = |arguments: &[&str]| {
        let mut omp = Command::new(&command);
        omp.arg("omp")
            .args(arguments)
            .env("LD_LIBRARY_PATH", "/before");
        omp.output().expect("it starts")
    };
    let missing = omp(&["--library", &folder.path(""), &program]);
    assert_eq!(code(&missing), 2, "there is no library yet");
    assert!(String::from_utf8_lossy(&missing.stderr).contains("cargo xtask install"));
    fs::write(folder.path("libgomp.so.1"), "").expect("a file");
    let told = omp(&["--library", &folder.path(""), &program, "--help", "7"]);
    assert_eq!(code(&told), 5);
    let place = fs::canonicalize(folder.path("")).expect("a folder");
    let expected = format!("{}:/before --help 7\n", place.display());
    assert_eq!(stdout(&told), expected);
}
