//! Mutated files: a bounded number in every run of the tests, more with `cargo xtask fuzz spec`.
//!
//! `FUZZ_SECONDS` and `FUZZ_SEED` in the environment make it go on with all files that there are. A
//! failure prints its seed and its file.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it reports")]

use std::path::Path;
use std::time::{Duration, Instant};

use crate::mutations::{Tally, file_of, round};

/// Folders of files to mutate. Most mutations break a file, and there are many files that are
/// broken already: the valid ones count several times, so that what follows reading is reached,
/// too.
const CORPUS: [(&str, usize); 3] = [
    ("../../examples", 8),
    ("tests/valid", 16),
    ("tests/mistakes", 1),
];

#[test]
fn no_mutation_of_a_valid_file_makes_the_reader_panic() {
    let corpus = [
        include_str!("../valid/every-class.toml"),
        include_str!("../valid/machine.toml"),
        include_str!("../valid/composed.toml"),
        include_str!("../valid/graphs.toml"),
        include_str!("../valid/graph-orders.toml"),
        include_str!("../mistakes/many-at-once.toml"),
    ];
    let mut tally = Tally::default();
    for seed in 0..5_000 {
        tally.add(round(seed, &corpus));
    }
    assert_eq!(tally.rounds, 5_000);
    // Both outcomes are common, or the mutations would show little.
    assert!(tally.valid > 200, "{tally:?}");
    assert!(tally.mistakes > 5_000, "{tally:?}");
}

#[test]
fn no_mutation_of_any_file_makes_the_reader_panic_for_as_long_as_asked() {
    let asked = |name| std::env::var(name).map(|number| number.parse().expect("a number"));
    let Ok(seconds) = asked("FUZZ_SECONDS") else {
        return;
    };
    let first: u64 = asked("FUZZ_SEED").unwrap_or(1);
    let mut texts = Vec::new();
    for (folder, times) in CORPUS {
        let files = files(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder));
        texts.extend(std::iter::repeat_n(files, times).flatten());
    }
    let corpus: Vec<&str> = texts.iter().map(String::as_str).collect();
    let begin = Instant::now();
    let mut tally = Tally::default();
    for seed in first.. {
        match std::panic::catch_unwind(|| round(seed, &corpus)) {
            Ok(round) => tally.add(round),
            Err(_) => panic!("seed {seed} fails, with\n{}", file_of(seed, &corpus)),
        }
        if begin.elapsed() >= Duration::from_secs(seconds) {
            break;
        }
    }
    println!(
        "spec: {} files from seed {first}, {} valid, {} mistakes reported, no panic in {:.1} s",
        tally.rounds,
        tally.valid,
        tally.mistakes,
        begin.elapsed().as_secs_f64()
    );
}

/// The system files of a folder, sorted by name, so that one seed means one file.
fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    paths.sort();
    let texts = paths.iter().map(std::fs::read_to_string);
    texts.collect::<Result<_, _>>().expect("system files")
}

#[test]
fn a_round_depends_on_its_seed_alone() {
    let corpus = ["[system]\ncpus = [0]\n"];
    assert_eq!(round(7, &corpus), round(7, &corpus));
    let files: std::collections::BTreeSet<String> =
        (0..100).map(|seed| file_of(seed, &corpus)).collect();
    assert!(files.len() > 60, "{} different files", files.len());
}

#[test]
fn deep_nesting_and_long_keys_are_mistakes_like_others() {
    for text in [
        "a.".repeat(50_000) + "a = 1",
        "[".to_string() + &"a.".repeat(50_000) + "a]",
        "a = ".to_string() + &"[".repeat(50_000),
        "a = ".to_string() + &"{a = ".repeat(50_000),
        "x".repeat(1_000_000),
        "[task.".to_string() + &"x".repeat(100_000) + "]",
        "[system]\ncpus = [".to_string() + &"0, ".repeat(70_000) + "]",
    ] {
        assert!(punctual_spec::parse(&text, "deep.toml").is_err());
    }
}
