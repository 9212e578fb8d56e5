//! Mutated logs: every reader of a log answers or refuses, and none panics or goes on for ever.
//!
//! `cargo xtask fuzz` feeds the commands with many more, under limits.
#![allow(clippy::unwrap_used, reason = "it is a test")]

use punctual::{Log, PolicyChange, PolicyKind, RunReport, admit, what_if};
use punctual_generate::Random;
use punctual_rules::check;
use punctual_trace::{diff, html, text};

use crate::common::examples::{folder, in_virtual_time, load};

/// The longest log that is mutated, in bytes: a short one has every kind of line.
const MAX_BYTES: usize = 32 * 1024;

/// Numbers that readers may stumble over.
const NUMBERS: [u64; 14] = [
    0,
    1,
    2,
    7,
    255,
    65_535,
    65_536,
    1_048_576,
    u32::MAX as u64,
    1 << 32,
    1 << 55,
    1 << 56,
    i64::MAX as u64,
    u64::MAX,
];

/// Logs of the examples, in the order of their names.
fn corpus() -> Vec<String> {
    let entries = std::fs::read_dir(folder()).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    paths.sort();
    let mut logs = Vec::new();
    for path in paths {
        let description = load(&path);
        if admit(&description.system).is_ok_and(|verdict| verdict.admitted) {
            let mut written = Vec::new();
            text::write(&in_virtual_time(&description, 12), &mut written).unwrap();
            logs.push(String::from_utf8(written).unwrap());
        }
    }
    logs.retain(|log| log.len() < MAX_BYTES);
    logs
}

fn pick(random: &mut Random, count: usize) -> usize {
    usize::try_from(random.below(count as u64)).unwrap()
}

/// Changes one number of a line, if it has any.
fn renumber(random: &mut Random, line: &str) -> Option<String> {
    let is_digit = |at: usize| line.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
    let begins = (0..line.len()).filter(|at| is_digit(*at) && (*at == 0 || !is_digit(at - 1)));
    let begins: Vec<usize> = begins.collect();
    let from = *begins.get(pick(random, begins.len()))?;
    let to = (from..).find(|at| !is_digit(*at))?;
    let old: u64 = line[from..to].parse().ok()?;
    let new = match random.below(4) {
        0 => old.wrapping_add(1),
        1 => old.saturating_sub(1),
        _ => NUMBERS[pick(random, NUMBERS.len())],
    };
    Some(format!("{}{new}{}", &line[..from], &line[to..]))
}

/// The file of a seed: a pure function of it and the corpus.
fn file_of(seed: u64, corpus: &[String]) -> String {
    let random = &mut Random::new(seed);
    let log = &corpus[pick(random, corpus.len())];
    let mut lines: Vec<String> = log.lines().map(String::from).collect();
    for _ in 0..[1, 1, 1, 2, 4][pick(random, 5)] {
        let (at, other) = (pick(random, lines.len()), pick(random, lines.len()));
        match random.below(8) {
            0 => drop(lines.remove(at)),
            1 => lines.insert(other, lines[at].clone()),
            2 => lines.swap(at, other),
            _ => {
                if let Some(line) = renumber(random, &lines[at]) {
                    lines[at] = line;
                }
            }
        }
    }
    lines.join("\n") + "\n"
}

/// Reads the log of a seed, and does with it what the commands do. Whether it could be read.
fn round(seed: u64, corpus: &[String], intact: &Log) -> bool {
    let file = file_of(seed, corpus);
    let Ok(log) = text::read(&mut file.as_bytes()) else {
        return false;
    };
    let report = RunReport::new(&log);
    assert!(!report.to_string().is_empty());
    match seed % 5 {
        0 => assert!(!html::page(&log, &report).is_empty()),
        1 => drop(punctual::replay(&log)),
        2 => drop(check(&log)),
        3 => drop(diff(intact, &log)),
        _ => {
            let policy = [
                PolicyKind::Fifo,
                PolicyKind::EarliestDeadlineFirst,
                PolicyKind::FixedPriority { preemptive: true },
            ][(seed / 5 % 3) as usize];
            drop(what_if(
                &log,
                &[PolicyChange { on: None, policy }],
                &mut |_| true,
            ));
        }
    }
    true
}

#[test]
fn no_mutation_of_a_log_makes_a_reader_panic() {
    let corpus = corpus();
    let intact = text::read(&mut corpus[0].as_bytes()).unwrap();
    let rounds = 2_000;
    let read = (0..rounds).filter(|seed| round(*seed, &corpus, &intact));
    let read = read.count() as u64;
    // Both outcomes are common, or the mutations would show little.
    assert!(rounds / 4 < read && read < rounds * 9 / 10, "{read}");
}
