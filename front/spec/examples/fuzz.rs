//! Reads mutated system files until the time is over: `fuzz [--seconds N] [--seed S] [--show]`.
//!
//! A failure is a panic that names its seed; `--seed S --show` prints that file.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

#[path = "../tests/mutations/mod.rs"]
mod fuzz;

/// Rounds between two looks at the clock.
const BATCH: u64 = 256;

/// Folders of files to mutate. Most mutations break a file, and there are many files that are
/// broken already: the valid ones count several times, so that what follows reading is reached,
/// too.
const CORPUS: [(&str, usize); 3] = [
    ("../../examples", 8),
    ("tests/valid", 16),
    ("tests/mistakes", 1),
];

struct Options {
    seconds: u64,
    seed: u64,
    show: bool,
}

fn main() -> ExitCode {
    let options = match options(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("{problem}\nusage: fuzz [--seconds N] [--seed S] [--show]");
            return ExitCode::from(2);
        }
    };
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut texts = Vec::new();
    for (folder, times) in CORPUS {
        let files = files(&workspace.join(folder));
        texts.extend(std::iter::repeat_n(files, times).flatten());
    }
    let corpus: Vec<&str> = texts.iter().map(String::as_str).collect();
    if options.show {
        print!("{}", fuzz::file_of(options.seed, &corpus));
        return ExitCode::SUCCESS;
    }
    run(&options, &corpus)
}

fn run(options: &Options, corpus: &[&str]) -> ExitCode {
    let begin = Instant::now();
    let mut tally = fuzz::Tally::default();
    let mut seed = options.seed;
    while begin.elapsed() < Duration::from_secs(options.seconds) {
        for _ in 0..BATCH {
            match std::panic::catch_unwind(|| fuzz::round(seed, corpus)) {
                Ok(round) => tally.add(round),
                Err(_) => {
                    eprintln!("seed {seed} fails; see it with --seed {seed} --show");
                    return ExitCode::FAILURE;
                }
            }
            seed = seed.wrapping_add(1);
        }
    }
    println!(
        "spec: {} files from seed {}, {} valid, {} mistakes reported, no panic in {:.1} s",
        tally.rounds,
        options.seed,
        tally.valid,
        tally.mistakes,
        begin.elapsed().as_secs_f64()
    );
    ExitCode::SUCCESS
}

fn options(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options {
        seconds: 10,
        seed: 1,
        show: false,
    };
    while let Some(argument) = arguments.next() {
        let mut number = || {
            let value = arguments
                .next()
                .ok_or(format!("{argument} needs a number"))?;
            value
                .parse()
                .map_err(|_| format!("{argument} {value}: not a number"))
        };
        match argument.as_str() {
            "--seconds" => options.seconds = number()?,
            "--seed" => options.seed = number()?,
            "--show" => options.show = true,
            _ => return Err(format!("unknown argument {argument}")),
        }
    }
    Ok(options)
}

/// The system files of a folder, sorted by name, so that one seed means one file.
fn files(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    paths.sort();
    paths
        .iter()
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .collect()
}
