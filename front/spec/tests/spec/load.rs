//! Files that cannot be read say why, and where.

use std::path::PathBuf;

use punctual_spec::load;

/// A folder of this test's own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("punctual-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).expect("a file");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_missing_file_is_named_with_the_one_that_was_meant() {
    let folder = Folder::new("missing");
    folder.file("plant.toml", b"");
    let error = load(folder.0.join("plnat.toml")).expect_err("missing");
    let [diagnostic] = error.diagnostics() else {
        panic!("{error}")
    };
    assert_eq!(diagnostic.message, "there is no such file");
    assert!(
        diagnostic.help.contains("plant.toml"),
        "{}",
        diagnostic.help
    );
    assert!(diagnostic.file.ends_with("plnat.toml"));
    assert_eq!((diagnostic.line, diagnostic.column), (0, 0));
}

#[test]
fn a_file_that_is_not_utf8_is_refused_at_its_byte() {
    let folder = Folder::new("latin");
    let path = folder.file("latin.toml", b"[system]\ncpus = [\"K\xfcche\"]\n");
    let error = load(path).expect_err("not UTF-8");
    let [diagnostic] = error.diagnostics() else {
        panic!("{error}")
    };
    assert_eq!(diagnostic.message, "byte 19 (0xfc) is not UTF-8");
    assert_eq!((diagnostic.line, diagnostic.column), (2, 11));
    assert_eq!(diagnostic.text, "0xfc");
}

#[test]
fn a_folder_is_no_file() {
    let folder = Folder::new("folder");
    let error = load(&folder.0).expect_err("a folder");
    assert!(
        error.to_string().contains("cannot read this file"),
        "{error}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_without_end_is_given_up() {
    let error = load("/dev/zero").expect_err("too large");
    assert!(error.to_string().contains("larger than 64 MiB"), "{error}");
}

#[test]
fn mistakes_of_a_file_are_all_shown() {
    let folder = Folder::new("mistakes");
    let path = folder.file("bad.toml", b"[system]\ncpus = [0, 1]\n");
    let error = load(path).expect_err("mistakes");
    let text = error.to_string();
    assert!(text.contains("CPU `0` has no section") && text.contains("CPU `1` has no section"));
    assert!(text.contains("bad.toml:2:9"), "{text}");
}

#[test]
fn libraries_are_found_beside_the_file() {
    let folder = Folder::new("base");
    let path = folder.file(
        "good.toml",
        b"[system]\ncpus = [0]\n[cpu.0]\npolicy = \"edf\"\n",
    );
    let description = load(path).expect("valid");
    assert_eq!(description.base.join("libx.so"), folder.0.join("libx.so"));
    let absolute = PathBuf::from("/lib/x.so");
    assert_eq!(description.base.join(&absolute), absolute);
}

#[test]
fn a_diagnostic_serialises_to_its_words_alone() {
    let mistakes = punctual_spec::parse("[systm]\n", "a.toml").expect_err("mistakes");
    let json = serde_json::to_value(&mistakes[1]).expect("JSON");
    assert_eq!(
        json,
        serde_json::json!({
            "file": "a.toml",
            "line": 1,
            "column": 2,
            "text": "systm",
            "message": "unknown section `systm`",
            "help": "did you mean `[system]`?",
        })
    );
}
