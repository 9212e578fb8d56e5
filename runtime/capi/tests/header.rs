//! `punctual.h` is what the sources say, and C and C++ take it without a warning.

use std::path::{Path, PathBuf};
use std::process::Command;

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn checked_in() -> PathBuf {
    folder().join("include/punctual.h")
}

/// What the header must be.
fn written() -> String {
    let config = cbindgen::Config::from_file(folder().join("cbindgen.toml")).expect("its file");
    let bindings = cbindgen::Builder::new()
        .with_config(config)
        .with_src(folder().join("src/lib.rs"))
        .generate()
        .expect("sources that cbindgen understands");
    let mut bytes = Vec::new();
    bindings.write(&mut bytes);
    let text = String::from_utf8(bytes).expect("text");
    // What Rust calls safety is what C must be told of pointers.
    text.replace(" * # Safety\n", " * Pointers:\n")
}

#[test]
fn the_header_is_what_the_sources_say() {
    let (now, must) = (std::fs::read_to_string(checked_in()), written());
    if now.is_ok_and(|now| now == must) {
        return;
    }
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("punctual.h");
    std::fs::write(&place, must).expect("a file of the test's own");
    panic!(
        "compare and copy: {} -> {}",
        place.display(),
        checked_in().display()
    );
}

#[test]
fn c_and_cpp_take_the_header_without_a_warning() {
    let languages = [
        ("c", "c99"),
        ("c", "c11"),
        ("c", "c23"),
        ("c++", "c++11"),
        ("c++", "c++20"),
    ];
    let headers = ["punctual.h", "punctual_pthread.h"];
    let include = folder().join("include");
    let each = languages
        .iter()
        .flat_map(|one| headers.map(|header| (*one, header)));
    for ((language, standard), header) in each {
        let header = include.join(header);
        let compiler = if language == "c" { "cc" } else { "c++" };
        let mut command = Command::new(compiler);
        command.args([
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
            "-fsyntax-only",
            "-I",
        ]);
        command.arg(&include);
        // Included, so that functions that are not used are not warned of.
        command
            .args([&format!("-std={standard}"), "-include"])
            .arg(&header)
            // As headers of a program that both need it do.
            .arg("-include")
            .arg(&header);
        let ran = command.args(["-x", language, "/dev/null"]).output();
        let Ok(ran) = ran else {
            eprintln!("NOT TESTED: there is no `{compiler}` here");
            continue;
        };
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        if said.contains("unrecognized command-line option") {
            eprintln!("NOT TESTED: this `{compiler}` knows no {standard}");
            continue;
        }
        assert!(
            ran.status.success(),
            "{}, {standard}: {said}",
            header.display()
        );
    }
}

#[test]
fn the_guide_names_nothing_that_the_header_does_not_have() {
    let names = |text: &str| -> std::collections::BTreeSet<String> {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let ours = words.filter(|word| word.to_ascii_lowercase().starts_with("punctual_"));
        ours.map(str::to_owned).collect()
    };
    let guide = std::fs::read_to_string(folder().join("../../doc/guide/12-c.md")).expect("a guide");
    let headers = std::fs::read_dir(folder().join("include")).expect("a folder");
    let header: std::collections::BTreeSet<String> = headers
        .map(|file| file.expect("an entry").path())
        .map(|path| std::fs::read_to_string(path).expect("a header"))
        .flat_map(|text| names(&text))
        .collect();
    let unknown: Vec<String> = names(&guide).difference(&header).cloned().collect();
    assert!(header.len() > 100 && unknown.is_empty(), "{unknown:?}");
}
