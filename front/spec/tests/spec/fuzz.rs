//! Mutated files: a system that is read is valid and can be written; a refusal names its place.
//!
//! `cargo xtask fuzz` feeds the command with many more, under limits.

use crate::mutations::{Tally, file_of, round};

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
