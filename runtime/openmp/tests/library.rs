//! The library as a file: its names, its size, and what a program pays that does not use it.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

mod common;

use common::{compiled, library, printed, text};

/// Names and versions that a shared object defines, `NAME@@VERSION`.
fn names(library: &Path) -> Option<Vec<String>> {
    let mut nm = Command::new("nm");
    nm.args(["--dynamic", "--defined-only", "--with-symbol-versions"])
        .arg(library);
    let Ok(output) = nm.output() else {
        eprintln!("NOT TESTED: there is no `nm` here");
        return None;
    };
    let lines = printed(&output);
    let words = lines.lines().filter_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        // The versions themselves are absolute.
        words.next().filter(|kind| *kind != "A")?;
        words.next().map(str::to_owned)
    });
    Some(words.collect())
}

#[test]
fn the_names_are_those_of_libgomp() {
    let Some(program) = compiled("runtime/openmp/tests/c/constructs.c") else {
        return;
    };
    let Some(ours) = names(&library().expect("linked").join("libgomp.so.1")) else {
        return;
    };
    let listed = printed(
        &Command::new("ldd")
            .arg(&program.path)
            .output()
            .expect("ldd runs"),
    );
    let line = listed.lines().find(|line| line.contains("libgomp.so.1"));
    let path = line
        .and_then(|line| line.split_whitespace().nth(2))
        .expect("libgomp");
    let theirs = names(Path::new(path)).expect("nm ran before");
    assert!(theirs.len() > 400, "{}", theirs.len());
    if theirs.iter().any(|name| name.ends_with("@@OMP_5.1.1")) {
        eprintln!("NOT TESTED: the libgomp here is newer than that of gcc 12");
        return;
    }
    let missing: Vec<_> = theirs.iter().filter(|name| !ours.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    // The header of gcc declares these, and libgomp lacks them.
    let hinted = |name: &&String| !name.contains("_with_hint@");
    let more: Vec<_> = ours
        .iter()
        .filter(|name| !theirs.contains(name))
        .filter(hinted)
        .collect();
    assert!(more.is_empty(), "{more:?}");
}

/// The names in the lists of `absent.rs`, and the versions of those that are not the default.
fn absent() -> Vec<String> {
    let source = include_str!("../src/abi/absent.rs");
    let lists = source.split("\nabsent! {").skip(1);
    let words = lists.flat_map(|list| {
        list.split('}')
            .next()
            .unwrap_or_default()
            .split_whitespace()
    });
    let old = |word: &str| {
        word.strip_prefix("old_")
            .map(|name| format!("{name} OMP_1.0"))
    };
    words
        .map(|word| old(word).unwrap_or_else(|| word.to_owned()))
        .collect()
}

#[test]
fn every_name_that_is_not_here_yet_ends_the_program_with_a_line() {
    let Some(program) = compiled("runtime/openmp/tests/c/absent.c") else {
        return;
    };
    let names = absent();
    assert!(names.len() > 250, "{} names", names.len());
    let mut command = program.command();
    command.env("LD_LIBRARY_PATH", library().expect("linked before"));
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("it runs");
    let mut input = child.stdin.take().expect("piped");
    // What it says is less than a pipe holds.
    input
        .write_all((names.join("\n") + "\n").as_bytes())
        .expect("it reads");
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(printed(&output), format!("{} ended\n", names.len()));
    let named = |name: &String| {
        format!(
            "punctual-openmp: `{}` is not here yet\n",
            name.replace(' ', "@")
        )
    };
    let expected: String = names.iter().map(named).collect();
    assert_eq!(text(&output.stderr), expected);
}

#[test]
fn a_mistake_of_the_library_is_a_line_and_the_end() {
    let Some(program) = compiled("runtime/openmp/tests/c/absent.c") else {
        return;
    };
    let output = program.ours(&["mistake"], &[]);
    assert!(!output.status.success() && output.stdout.is_empty());
    let said = text(&output.stderr);
    assert!(
        said.starts_with("punctual-openmp: a mistake of the library: panicked at runtime/openmp/"),
        "{said}"
    );
}

/// The words of `readelf` about the library that programs load.
fn parts(option: &str) -> Option<String> {
    let file = library()?.join("libgomp.so.1");
    let told = Command::new("readelf")
        .args(["-W", option])
        .arg(file)
        .output();
    if told.is_err() {
        eprintln!("NOT TESTED: there is no `readelf` here");
    }
    told.ok().as_ref().map(printed)
}

#[test]
fn the_library_is_small_takes_little_of_each_thread_and_stays() {
    let (Some(segments), Some(dynamic)) = (parts("-l"), parts("-d")) else {
        return;
    };
    let bytes = std::fs::metadata(library().expect("linked").join("libgomp.so.1"));
    let bytes = bytes.expect("a file").len();
    assert!(bytes <= 1 << 20, "{bytes} bytes");
    let storage = segments
        .lines()
        .find(|line| line.trim_start().starts_with("TLS "));
    let size = storage
        .and_then(|line| line.split_whitespace().nth(5))
        .expect("a size");
    let size = u64::from_str_radix(size.trim_start_matches("0x"), 16).expect("a number");
    assert!((1..=64).contains(&size), "{size} bytes of every thread");
    assert!(dynamic.contains("soname: [libgomp.so.1]"), "{dynamic}");
    assert!(dynamic.contains("NODELETE"), "{dynamic}");
}

#[test]
fn there_is_no_thread_before_the_first_region_and_no_work_behind_one() {
    let Some(program) = compiled("runtime/openmp/tests/c/quiet.c") else {
        return;
    };
    for (members, policy) in [("2", "active"), ("4", "active"), ("8", "passive")] {
        let told = printed(&program.ours(&[members], &[("OMP_WAIT_POLICY", policy)]));
        let items = 15 * members.parse::<u32>().expect("a number");
        let expected = format!("1 threads after 3\nquiet, {items} items\n");
        assert_eq!(told, expected, "{members} members, {policy}");
    }
    // Members of libgomp that spin for ever are seen, unless others leave them no time.
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        eprintln!("NOT TESTED: members that spin, on one CPU");
        return;
    }
    let spun = (0..10).any(|_| {
        let mut spins = program.command();
        spins.envs([
            ("OMP_WAIT_POLICY", "active"),
            ("GOMP_SPINCOUNT", "INFINITY"),
        ]);
        printed(&spins.output().expect("it runs")).contains("not quiet, 30 items")
    });
    assert!(spun, "members of libgomp that spin were not seen");
}

#[test]
fn backtraces_end_at_the_first_frame_of_an_item() {
    let Some(program) = compiled("runtime/openmp/tests/c/frames.c") else {
        return;
    };
    let expected = "84 traces, 84 ends, on other stacks\n";
    assert_eq!(printed(&program.ours(&[], &[])), expected);
    // A debugger goes the same way.
    let mut debugger = Command::new("timeout");
    debugger.args([
        "120",
        "gdb",
        "-batch",
        "-nx",
        "-iex",
        "set debuginfod enabled off",
    ]);
    debugger.args(["-ex", "set breakpoint pending on", "-ex"]);
    debugger.args(["break inside if omp_get_thread_num() != 0", "-ex", "run"]);
    debugger
        .args(["-ex", "backtrace", "-ex", "kill"])
        .arg(&program.path);
    debugger.env("LD_LIBRARY_PATH", library().expect("linked before"));
    match debugger.output() {
        Ok(output) => check_backtrace(&output),
        Err(error) => eprintln!("NOT TESTED: there is no `timeout` here: {error}"),
    }
}

fn check_backtrace(output: &Output) {
    let (told, said) = (text(&output.stdout), text(&output.stderr));
    if output.status.code() == Some(127) || said.contains("No such file") || said.contains("ptrace")
    {
        eprintln!("NOT TESTED: there is no `gdb` here that may trace: {said}");
        return;
    }
    let frames = told.lines().filter(|line| line.starts_with('#')).count();
    assert!((2..60).contains(&frames), "{told}{said}");
    assert!(told.contains(" inside "), "{told}{said}");
    assert!(
        !(told + &said).contains("Backtrace stopped"),
        "the end is not one"
    );
}
