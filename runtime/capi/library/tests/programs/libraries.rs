//! Libraries beside this one, and this one opened by a program that runs.

use super::*;

#[test]
fn thread_locals_of_libraries_are_new_or_the_library_that_keeps_them_is_named() {
    let folder = linked();
    let cc = |name: &str, source: &str, rest: &[&str]| {
        let sources = root().join("runtime/capi/library/tests/c");
        let made = Command::new("cc")
            .arg("-o")
            .arg(folder.path().join(name))
            .arg(sources.join(source))
            .args(rest)
            .arg("-I")
            .arg(root().join("runtime/capi/include"))
            .arg("-L")
            .arg(folder.path())
            .status();
        made.map(|status| assert!(status.success(), "{source}"))
    };
    let shared = ["-shared", "-fPIC"];
    if cc("libwith_locals.so", "with_locals.c", &shared).is_err() {
        eprintln!("NOT TESTED: there is no `cc` here");
        return;
    }
    let with_keys = [&shared[..], &["-DKEYS"]].concat();
    cc("libwith_keys.so", "with_locals.c", &with_keys).expect("as before");
    let new = ["-lwith_locals", "-lpunctual"];
    cc("new", "stale.c", &new).expect("as before");
    let stale = ["-DKEYS", "-lwith_keys", "-lpunctual"];
    cc("stale", "stale.c", &stale).expect("as before");
    let _alone = CPU.lock().unwrap_or_else(PoisonError::into_inner);
    let says = |name: &str| {
        let mut program = bounded(&folder.path().join(name));
        let ran = program.env("LD_LIBRARY_PATH", folder.path()).output();
        let ran = ran.expect("a program that starts");
        let [said, complained] =
            [&ran.stdout, &ran.stderr].map(|out| String::from_utf8_lossy(out).into_owned());
        assert!(ran.status.success(), "{}: {said}{complained}", ran.status);
        [said, complained]
    };
    let [said, complained] = says("new");
    assert_eq!(said, "new in the library, too\n");
    assert!(!complained.contains("cannot be made new"), "{complained}");
    let words = "as those of `libwith_keys.so` cannot be made new";
    let [said, complained] = says("stale");
    assert!(said.contains(words), "the report: {said}");
    assert!(complained.contains(words), "the start: {complained}");
}

#[test]
fn a_run_beside_a_sanitizer_or_another_allocator_does_not_begin_and_says_why() {
    let source = "runtime/capi/library/tests/c/beside.c";
    for (flag, library) in [("address", "libasan.so"), ("thread", "libtsan.so")] {
        if !has_library(library) {
            continue;
        }
        let flags = format!("-fsanitize={flag}");
        let Some(built) = compile(source, &["cc", "-std=c11", &flags]) else {
            return;
        };
        let said = says_with(&built, &[]);
        let begins = format!("no run beside the {flag} sanitizer (");
        assert!(
            said.contains(&begins) && said.contains(library) && said.contains("build the program"),
            "{said}"
        );
    }
    let Some(built) = compile(source, &C) else {
        return;
    };
    let allocator = built.0.path().join("liballocator.so");
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-fno-builtin", "-o"])
        .arg(&allocator)
        .arg(root().join("runtime/capi/library/tests/c/allocator.c"))
        .status();
    assert!(compiled.expect("the same compiler").success());
    let allocator = allocator.display().to_string();
    let said = says_with(&built, &[("LD_PRELOAD", &allocator)]);
    let begins = "no run beside an allocator in the place of the C library's (";
    assert!(
        said.contains(begins) && said.contains(&allocator) && said.contains("LD_PRELOAD"),
        "{said}"
    );
}

#[test]
fn python_opens_the_library_and_its_code_is_a_light_thread() {
    let folder = linked();
    let _alone = CPU.lock().unwrap_or_else(PoisonError::into_inner);
    let script = root().join("runtime/capi/library/tests/opened.py");
    let starts = |python: &str| {
        let version = Command::new(python).arg("--version").output();
        version.is_ok_and(|version| version.status.success())
    };
    // The second may be a program that does not move.
    let pythons = ["python3", "/usr/bin/python3"];
    let mut tried = 0;
    for python in pythons.into_iter().filter(|python| starts(python)) {
        let mut python = bounded(Path::new(python));
        python
            .arg(&script)
            .arg(folder.path().join("libpunctual.so"));
        let ran = python.output().expect("it started before");
        let [said, complained] = [&ran.stdout, &ran.stderr].map(|out| String::from_utf8_lossy(out));
        assert!(ran.status.success(), "{}: {said}{complained}", ran.status);
        assert_eq!(said, "three runs in Python\n", "{complained}");
        tried += 1;
    }
    if tried == 0 {
        eprintln!("NOT TESTED: there is no `python3` here");
    }
}
