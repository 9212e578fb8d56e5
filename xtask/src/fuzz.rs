//! `cargo xtask fuzz`: mutated files for every command that reads one.
//!
//! A command is started once, and makes a process of its own for each input (`verify/feed`), under
//! limits of address space, processor time and time. It has to answer an input or to refuse it:
//! exit code 0, 1 or 2, and 3 of a log that was cut off. Everything else is wrong, and the input is
//! kept. An input is a pure function of its seed and of the files that are mutated.

mod mutate;
mod readers;
mod server;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;

use crate::step;
use crate::workspace::Workspace;
use mutate::mutated;
use readers::{Corpus, READERS, Reader};
use server::{Ended, Limits, Server};

/// Of each input.
const LIMITS: Limits = Limits {
    kib: 1 << 20,
    seconds: 60,
    wall: 600,
};

/// Memory of a reader, in KiB: as much as for any file, and for each byte of this one.
const MEMORY: (u64, u64) = (128 << 10, 1);

/// Of a hundred inputs this many have to be accepted, or what follows reading was not reached.
const ACCEPTED: u64 = 1;

#[derive(Args)]
pub(crate) struct FuzzOptions {
    /// Only these; all when left out
    #[arg(value_parser = PossibleValuesParser::new(READERS.iter().map(|reader| reader.name)))]
    readers: Vec<String>,
    /// Inputs of each reader
    #[arg(long, value_name = "NUMBER", default_value_t = 20_000)]
    inputs: u64,
    /// End each reader after so many seconds of processor time, with as many inputs as it had
    #[arg(long)]
    seconds: Option<u64>,
    /// Seed of the first input; the same seed makes the same input
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Feeds all readers that were asked for; whether each answered or refused everything.
pub(crate) fn run(workspace: &Workspace, options: &FuzzOptions) -> bool {
    let feed = match build(workspace) {
        Ok(feed) => feed,
        Err(why) => {
            eprintln!("xtask: {why}");
            return false;
        }
    };
    println!(
        "each input within {} MiB of address space, {} s of a processor and {} s\n\n\
         | reader | seed | inputs | refused | accepted | wrong | processor time: longest, all | most memory |\n\
         |---|---|---|---|---|---|---|---|",
        LIMITS.kib >> 10,
        LIMITS.seconds,
        LIMITS.wall
    );
    let asked = |reader: &&Reader| {
        options.readers.is_empty() || options.readers.iter().any(|name| name == reader.name)
    };
    let mut passed = true;
    let mut files: Option<(Corpus, Vec<Vec<u8>>)> = None;
    for reader in READERS.iter().filter(asked) {
        let mut feeding = Feeding {
            workspace,
            feed: &feed,
            options,
            reader,
            folder: workspace.target.join("fuzz").join(reader.name),
            files: &[],
            next: AtomicU64::new(0),
            found: Mutex::default(),
        };
        // Readers of the same files stand beside each other.
        let same = files.take().filter(|(corpus, _)| *corpus == reader.corpus);
        let (_, files) = files.insert(same.unwrap_or_else(|| feeding.made()));
        feeding.files = files;
        passed &= match feeding.all() {
            Ok(found) => told(reader, options.seed, &found),
            Err(why) => {
                eprintln!("xtask: {}: {why}", reader.name);
                false
            }
        };
    }
    passed
}

/// Builds the commands as all tests do, so that after them there is nothing left to build; the
/// library that is loaded before them.
fn build(workspace: &Workspace) -> Result<PathBuf, String> {
    let words: [&[&str]; 2] = [
        // Tests of these names need the programs.
        &[
            "test",
            "--workspace",
            "--no-run",
            "--test",
            "cli",
            "--test",
            "sweep",
        ],
        &["build", "--package", "punctual-feed"],
    ];
    for words in words {
        let mut build = workspace.cargo();
        build.args(words).arg("--quiet");
        if !step::passes_in_the_open(build) {
            return Err("the commands cannot be built".into());
        }
    }
    Ok(workspace.target.join("debug/libpunctual_feed.so"))
}

/// The findings of all inputs of a reader.
#[derive(Default)]
struct Found {
    refused: u64,
    accepted: u64,
    /// The words about refused inputs, without names and numbers.
    refusals: BTreeSet<String>,
    /// Processor time of all.
    took: Duration,
    /// That of one, and its seed.
    longest: (Duration, u64),
    /// KiB, the bytes of the file, and the seed.
    most: (u64, usize, u64),
    wrong: Vec<String>,
}

/// All inputs of a reader.
struct Feeding<'a> {
    workspace: &'a Workspace,
    feed: &'a Path,
    options: &'a FuzzOptions,
    reader: &'a Reader,
    folder: PathBuf,
    /// The files that are mutated.
    files: &'a [Vec<u8>],
    next: AtomicU64,
    found: Mutex<Found>,
}

impl Feeding<'_> {
    fn made(&self) -> (Corpus, Vec<Vec<u8>>) {
        let files = match fs::create_dir_all(&self.folder) {
            Ok(()) => self.reader.files(self.workspace, &self.folder),
            Err(_) => Vec::new(),
        };
        (self.reader.corpus, files)
    }

    fn all(self) -> Result<Found, String> {
        if self.files.is_empty() {
            return Err("it has nothing to mutate".into());
        }
        fs::create_dir_all(&self.folder).map_err(|error| error.to_string())?;
        let this = &self;
        let failed: Vec<String> = std::thread::scope(|scope| {
            let workers = std::thread::available_parallelism().map_or(1, usize::from);
            let workers = (0..workers).map(|worker| scope.spawn(move || this.work(worker)));
            let workers: Vec<_> = workers.collect();
            let ended = workers.into_iter().map(std::thread::ScopedJoinHandle::join);
            let ended =
                ended.map(|ended| ended.unwrap_or_else(|_| Err("a worker panicked".into())));
            ended.filter_map(Result::err).collect()
        });
        let mut found = self.found.into_inner().map_err(|error| error.to_string())?;
        // A worker that cannot go on does not hide what the others found.
        found.wrong.extend(failed);
        Ok(found)
    }

    /// Processor time of the inputs up to now.
    fn took(&self) -> Result<Duration, String> {
        let found = self.found.lock().map_err(|error| error.to_string())?;
        Ok(found.took)
    }

    /// Takes inputs until there are no more.
    fn work(&self, worker: usize) -> Result<(), String> {
        let (reader, options) = (self.reader, self.options);
        let [input, whole, out] = ["input", "whole", "out.pftrace"]
            .map(|name| self.folder.join(format!("{worker}-{name}")));
        let place = |word: &str| match word {
            "{}" => Some(input.clone()),
            "{whole}" => Some(whole.clone()),
            "{out}" => Some(out.clone()),
            _ => None,
        };
        let failed = |error: std::io::Error| format!("{}: {error}", reader.program);
        let command = reader.command(self.workspace, reader.words, place);
        let mut server =
            Server::start(self.feed, command, input.clone(), LIMITS).map_err(failed)?;
        let limit = options.seconds.map_or(Duration::MAX, Duration::from_secs);
        while self.took()? < limit {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= options.inputs {
                break;
            }
            let seed = options.seed.wrapping_add(number);
            let (bytes, from) = mutated(seed, self.files);
            let _ = fs::remove_file(&out);
            fs::write(&whole, &self.files[from]).map_err(failed)?;
            let ended = server.feed(&bytes).map_err(failed)?;
            let mut found = self.found.lock().map_err(|error| error.to_string())?;
            found.add(&self.folder, seed, &bytes, &ended);
        }
        Ok(())
    }
}

impl Found {
    /// Judges one input. The folder keeps those that are wrong, took longest or most memory.
    fn add(&mut self, folder: &Path, seed: u64, input: &[u8], ended: &Ended) {
        self.took += ended.took;
        if ended.took > self.longest.0 {
            self.longest = (ended.took, seed);
            keep(folder, "slowest", input);
        }
        if ended.peak > self.most.0 {
            self.most = (ended.peak, input.len(), seed);
            keep(folder, "largest", input);
        }
        let most = MEMORY.0 + MEMORY.1 * input.len() as u64;
        // A log that was cut off has a result, which is said not to be whole.
        let is_cut = ended.said.contains("this log ends before");
        let wrong = match ended.status.code() {
            Some(0..=3) if ended.peak > most => format!("{} KiB of memory", ended.peak),
            Some(0 | 1) => return self.accepted += 1,
            Some(3) if is_cut => return self.accepted += 1,
            Some(2) => {
                self.refused += 1;
                self.refusals.insert(kind(&ended.said));
                return;
            }
            _ => format!("{}: {}", ended.status, ended.said),
        };
        let kept = keep(folder, &format!("wrong-{seed}"), input);
        let wrong: String = wrong.chars().take(400).collect();
        self.wrong.push(format!("{}: {wrong}", kept.display()));
    }
}

/// Keeps an input to be looked at.
fn keep(folder: &Path, name: &str, input: &[u8]) -> PathBuf {
    let kept = folder.join(name);
    let _ = fs::write(&kept, input);
    kept
}

/// The first line of a refusal, without its names and numbers.
fn kind(said: &str) -> String {
    let line = said.lines().next().unwrap_or_default();
    let mut kind = String::new();
    for (number, part) in line.split(['`', '"', '\'']).enumerate() {
        if number % 2 == 0 {
            let words = part.split_whitespace();
            let words = words.filter(|word| {
                !word.contains(|letter: char| letter.is_ascii_digit() || letter == '/')
            });
            words.for_each(|word| kind += word);
        }
    }
    kind
}

/// A number with a comma before every three digits, as in the tables of the documentation.
fn thousands(number: u64) -> String {
    match number / 1_000 {
        0 => number.to_string(),
        above => format!("{},{:03}", thousands(above), number % 1_000),
    }
}

/// Prints the findings; whether nothing is wrong.
fn told(reader: &Reader, seed: u64, found: &Found) -> bool {
    let wrong = found.wrong.len() as u64;
    let inputs = found.refused + found.accepted + wrong;
    let (longest, slow) = found.longest;
    let (peak, bytes, large) = found.most;
    println!(
        "| {} | {seed} | {} | {}, in {} ways | {} | {wrong} | {:.2} s (seed {slow}), {:.0} s \
         | {:.1} MiB, of {} bytes (seed {large}) |",
        reader.name,
        thousands(inputs),
        thousands(found.refused),
        found.refusals.len(),
        thousands(found.accepted),
        longest.as_secs_f64(),
        found.took.as_secs_f64(),
        peak as f64 / 1024.0,
        thousands(bytes as u64),
    );
    for wrong in found.wrong.iter().take(10) {
        eprintln!("{wrong}");
    }
    let reached = found.accepted > 0 && found.accepted * 100 >= inputs * ACCEPTED;
    if !reached {
        eprintln!(
            "xtask: {}: hardly anything is accepted, so what follows reading was not reached",
            reader.name
        );
    }
    wrong == 0 && reached
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::process::Command;

    use super::*;

    /// A shell that reads each input as its program, below the library that cargo put beside this
    /// test.
    fn fed(test: &str, (seconds, wall): (u32, u32), scripts: &[&str]) -> (Found, Vec<Ended>) {
        let feed = std::env::current_exe()
            .unwrap()
            .with_file_name("libpunctual_feed.so");
        let folder = std::env::temp_dir().join(format!("punctual-{test}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let input = folder.join("input");
        let mut shell = Command::new("/bin/sh");
        shell.arg(&input);
        let limits = Limits {
            kib: 128 << 10,
            seconds,
            wall,
        };
        let mut server = Server::start(&feed, shell, input, limits).unwrap();
        let mut found = Found::default();
        let ended = scripts.iter().zip(1..).map(|(script, seed)| {
            let ended = server.feed(script.as_bytes()).unwrap();
            found.add(&folder, seed, script.as_bytes(), &ended);
            ended
        });
        let ended = ended.collect();
        fs::remove_dir_all(&folder).unwrap();
        (found, ended)
    }

    #[test]
    fn a_reader_that_neither_answers_nor_refuses_is_found_and_the_next_input_is_read() {
        let (found, ended) = fed(
            "fed",
            (60, 60),
            &[
                "exit 0",
                "kill -6 $$",
                "echo 'line 7 of `one` is wrong' >&2; exit 2",
                "echo 'line 8 of `other` is wrong' >&2; exit 2",
                "exit 3",
                "echo this log ends before its run did >&2; exit 3",
            ],
        );
        assert_eq!(
            (found.accepted, found.refused, found.wrong.len()),
            (2, 2, 2)
        );
        assert_eq!(found.refusals.len(), 1, "{:?}", found.refusals);
        assert_eq!(ended[0].said, "");
    }

    #[test]
    fn a_reader_beyond_a_limit_is_ended() {
        let (found, ended) = fed(
            "ended",
            (1, 60),
            &[
                "while :; do :; done",
                "test $(ulimit -v) -eq 131072 && exit 1; exit 3",
                "x=0123456789abcdef; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do \
             x=$x$x; done",
            ],
        );
        assert_eq!(found.wrong.len(), 1, "{:?}", found.wrong);
        assert_eq!(found.accepted, 2, "{:?}", found.refusals);
        assert!(
            ended[0].took >= Duration::from_millis(900),
            "{:?}",
            ended[0].took
        );
        assert!(
            ended[2].peak > 16 << 10 && found.most.2 == 3,
            "{}",
            ended[2].peak
        );
        assert!(ended[1].peak < 16 << 10, "{}", ended[1].peak);
    }

    #[test]
    fn a_reader_that_waits_for_ever_is_ended() {
        let scripts = ["mkfifo $0.pipe; read line < $0.pipe", "exit 0"];
        let (found, _) = fed("waits", (60, 3), &scripts);
        assert_eq!((found.accepted, found.wrong.len()), (1, 1));
    }

    #[test]
    fn numbers_are_printed_with_commas() {
        let printed = [0, 999, 1_000, 20_007, 1_234_567].map(thousands);
        assert_eq!(printed, ["0", "999", "1,000", "20,007", "1,234,567"]);
    }
}
