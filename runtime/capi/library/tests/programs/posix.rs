//! Plain pthread programs, compiled with one header more, keep what POSIX claims of threads.

use super::*;

const POSIX: &str = "runtime/capi/library/tests/c/posix.c";
const ELSEWHERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/c/posix_elsewhere.c");
const MAPPED: [&str; 5] = [
    "cc",
    "-std=c11",
    "-include",
    "punctual_pthread.h",
    ELSEWHERE,
];
const IN_TURN: [&str; 8] = [
    "c++",
    "-std=c++17",
    "-x",
    "c++",
    "-DPUNCTUAL_PTHREAD_TIMESLICE_NS=1000000",
    "-include",
    "punctual_pthread.h",
    ELSEWHERE,
];

#[test]
fn claims_of_posix_are_kept_on_light_threads_by_priorities_and_in_turns() {
    for compiler in [&MAPPED[..], &IN_TURN] {
        if let Some(said) = says_by(POSIX, compiler) {
            assert!(said.ends_with(" claims are kept\n"), "{said}");
        }
    }
}

/// Each claim is one of POSIX, and not of this library.
#[test]
fn the_c_library_keeps_the_claims_itself() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("program");
    let compiled = Command::new("cc")
        .args(["-std=gnu11", "-D_GNU_SOURCE", "-pthread", "-O1", "-o"])
        .args([&program, &root().join(POSIX)])
        .status();
    if compiled.is_err() {
        eprintln!("NOT TESTED: there is no `cc` here");
        return;
    }
    let ran = bounded(&program).output().expect("it starts");
    let complained = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{complained}");
}

#[test]
fn the_guide_has_the_table_of_the_claims_that_are_kept() {
    let Some(said) = says_by(POSIX, &MAPPED) else {
        return;
    };
    let guide = std::fs::read_to_string(root().join("doc/guide/12-c.md")).expect("the guide");
    let missing: Vec<&str> = said.lines().filter(|line| !guide.contains(line)).collect();
    assert!(missing.is_empty(), "not in the guide: {missing:#?}");
}

#[test]
fn a_plain_program_ends_by_its_last_thread_by_its_code_or_by_a_call_from_below() {
    let Some((folder, program)) = compile(POSIX, &MAPPED) else {
        return;
    };
    for (way, code, said) in [
        ("exit", 0, "last\n"),
        ("code", 7, ""),
        ("deep", 3, "deep\n"),
    ] {
        let _alone = CPU.lock().unwrap_or_else(PoisonError::into_inner);
        let ran = bounded(&program)
            .arg(way)
            .env("LD_LIBRARY_PATH", folder.path())
            .output()
            .expect("a program that starts");
        assert_eq!(ran.status.code(), Some(code), "{way}");
        assert_eq!(String::from_utf8_lossy(&ran.stdout), said, "{way}");
    }
}
