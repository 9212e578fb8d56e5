//! `cargo xtask fuzz`: broken input for a reader inside its test, or for the command as it is.
//!
//! A command reads each mutated file in a process of its own, under a limit of address space and of
//! processor time. It has to answer or to refuse it: exit code 0, 1 or 2, and 3 of a log that was
//! cut off. An input is a pure function of its seed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Args;

use crate::step;
use crate::workspace::Workspace;

/// The test of a parser that feeds itself.
const FUZZ_TEST: &str = "fuzz::no_mutation_of_any_file_makes_the_reader_panic_for_as_long_as_asked";

/// Address space of a reader, in KiB, and processor time, in seconds.
const LIMITS: (u32, u32) = (1 << 20, 10);

/// Numbers that readers may stumble over.
const NUMBERS: [&str; 8] = [
    "0",
    "1",
    "2147483648",
    "36028797018963968",
    "18446744073709551615",
    "99999999999999999999",
    "-1",
    "1e400",
];

/// A command that reads files, and where those come from that are mutated.
struct Reader {
    name: &'static str,
    /// Its program in the target folder.
    program: &'static str,
    /// Its words; `{}` is the file.
    words: &'static [&'static str],
    /// Words that make a file of an example, `{}` to `{out}`; the examples themselves when empty.
    makes: &'static [&'static str],
    /// The file itself, where no quick command makes one.
    text: &'static str,
}

/// Terms of a machine, which `doctor` measures for seconds.
const PLATFORM: &str = "[machine]\nswitch = \"1us\"\ntimer = \"2us\"\npreemption = \"3us\"\n\
    missing-time = { budget = \"10us\", period = \"10ms\" }\n[measured]\ncpu = \"0\"\n";

/// Every command that reads a file from outside.
const READERS: [Reader; 7] = [
    reader("system", &["check", "{}"], &[]),
    reader(
        "certificate",
        &["verify", "{}"],
        &["check", "{}", "--certificate", "{out}"],
    ),
    reader(
        "log",
        &["report", "{}"],
        &["sim", "{}", "--for", "5ms", "--record", "{out}"],
    ),
    reader(
        "replay",
        &["replay", "{}"],
        &["sim", "{}", "--for", "5ms", "--record", "{out}"],
    ),
    reader("sdf3", &["import", "{}"], &["export", "{}"]),
    Reader {
        text: PLATFORM,
        ..reader(
            "platform",
            &["check", "examples/two-tasks.toml", "--platform", "{}"],
            &[],
        )
    },
    Reader {
        name: "sweep",
        program: "punctual-sweep",
        words: &["merge", "{}"],
        makes: &[
            "--out",
            "{out}",
            "--sets",
            "4",
            "--tasks",
            "3",
            "--utilization",
            "70%..90%:10%",
        ],
        text: "",
    },
];

const fn reader(
    name: &'static str,
    words: &'static [&'static str],
    makes: &'static [&'static str],
) -> Reader {
    Reader {
        name,
        program: "punctual",
        words,
        makes,
        text: "",
    }
}

#[derive(Args)]
pub(crate) struct FuzzOptions {
    /// Readers inside their tests: spec, virtual_time; commands, a process for each input: system,
    /// certificate, log, replay, sdf3, platform, sweep
    #[arg(value_parser = ["spec", "virtual_time", "system", "certificate", "log", "replay", "sdf3", "platform", "sweep"])]
    target: String,
    /// How long, in seconds
    #[arg(long, default_value_t = 20)]
    seconds: u32,
    /// For commands: end after so many inputs, however long that takes
    #[arg(long, value_name = "NUMBER")]
    inputs: Option<u64>,
    /// Seed of the first input; the same seed makes the same inputs
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Feeds what was asked for; whether it answered or refused everything.
pub(crate) fn run(workspace: &Workspace, options: &FuzzOptions) -> bool {
    match READERS.iter().find(|reader| reader.name == options.target) {
        Some(reader) => feed(workspace, reader, options).unwrap_or_else(|why| {
            eprintln!("xtask: {why}");
            false
        }),
        None => in_its_test(workspace, options),
    }
}

fn in_its_test(workspace: &Workspace, options: &FuzzOptions) -> bool {
    let command = |mode: &str| {
        let mut command = workspace.cargo();
        // Built as all tests are, so that after them there is nothing left to build.
        command.args(["test", "--quiet", "--workspace", "--test", &options.target]);
        command.args(["--", mode, "--exact", FUZZ_TEST]);
        command.env("FUZZ_SECONDS", options.seconds.to_string());
        command.env("FUZZ_SEED", options.seed.to_string());
        command
    };
    // Where there is no such test, the program passes without having run any.
    let listed = command("--list").stderr(Stdio::inherit()).output();
    let listed = listed.map_or_else(|error| error.to_string().into(), |output| output.stdout);
    if !String::from_utf8_lossy(&listed).contains(&format!("{FUZZ_TEST}: test")) {
        eprintln!("xtask: `{}` has no test `{FUZZ_TEST}`", options.target);
        return false;
    }
    step::passes_in_the_open(command("--nocapture"))
}

/// The findings of all inputs of a reader.
#[derive(Default)]
struct Found {
    refused: u64,
    read: u64,
    longest: (Duration, u64),
    wrong: Vec<String>,
}

fn feed(workspace: &Workspace, reader: &Reader, options: &FuzzOptions) -> Result<bool, String> {
    let mut build = workspace.cargo();
    // Tests of these names need the programs, so this builds them as all tests do.
    build.args([
        "test",
        "--quiet",
        "--workspace",
        "--no-run",
        "--test",
        "cli",
        "--test",
        "sweep",
    ]);
    if !step::passes_in_the_open(build) {
        return Err("the commands cannot be built".into());
    }
    let program = workspace.target.join("debug").join(reader.program);
    let folder = workspace.target.join("fuzz").join(reader.name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let corpus = corpus(&workspace.root.join("examples"), &program, reader, &folder);
    if corpus.is_empty() {
        return Err(format!("`{}` has nothing to mutate", reader.name));
    }
    let (begin, next) = (Instant::now(), AtomicU64::new(0));
    let limit = Duration::from_secs(options.seconds.into());
    let found = Mutex::new(Found::default());
    std::thread::scope(|scope| {
        for worker in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            let (program, corpus, found, next) = (&program, &corpus, &found, &next);
            let file = folder.join(format!("input-{worker}"));
            let _ = scope.spawn(move || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let over = match options.inputs {
                        Some(inputs) => number >= inputs,
                        None => begin.elapsed() >= limit,
                    };
                    if over {
                        return;
                    }
                    let seed = options.seed + number;
                    one(program, reader, &file, seed, corpus, found);
                }
            });
        }
    });
    let found = found.into_inner().map_err(|error| error.to_string())?;
    told(reader, options.seed, &found)
}

/// Prints the findings; whether nothing is wrong.
fn told(reader: &Reader, seed: u64, found: &Found) -> Result<bool, String> {
    for wrong in found.wrong.iter().take(10) {
        eprintln!("{wrong}");
    }
    let (name, wrong) = (reader.name, found.wrong.len());
    let inputs = found.refused + found.read + wrong as u64;
    println!(
        "{name}: {inputs} inputs from seed {seed}: {} refused, {} read, {wrong} wrong; the longest \
         took {:.2} s (seed {}), each within {} MiB and {} s of a processor",
        found.refused,
        found.read,
        found.longest.0.as_secs_f64(),
        found.longest.1,
        LIMITS.0 >> 10,
        LIMITS.1
    );
    // Where everything is refused, what follows reading was not reached.
    Ok(wrong == 0 && found.read > 0)
}

/// Files that the command reads as they are, in the order of their names.
fn corpus(examples: &Path, program: &Path, reader: &Reader, folder: &Path) -> Vec<Vec<u8>> {
    if !reader.text.is_empty() {
        return vec![reader.text.into()];
    }
    let entries = fs::read_dir(examples).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    paths.sort();
    // Words without an example make one file.
    if !reader.makes.is_empty() && !reader.makes.contains(&"{}") {
        paths.truncate(1);
    }
    let out = folder.join("made");
    let made = paths.iter().filter_map(|path| {
        let _ = fs::remove_file(&out);
        if reader.makes.is_empty() {
            return fs::read(path).ok();
        }
        let output = command(program, reader.makes, path, &out).output().ok()?;
        // A command that takes no other file prints what it makes.
        fs::read(&out).ok().or(Some(output.stdout))
    });
    let mut made: Vec<_> = made
        .filter(|file| (1..64 << 10).contains(&file.len()))
        .collect();
    made.dedup();
    made
}

/// The command under its limits, with the file and the output in their places.
fn command(program: &Path, words: &[&str], file: &Path, out: &Path) -> Command {
    let mut command = Command::new("sh");
    let (kib, seconds) = LIMITS;
    command.arg("-c");
    command.arg(format!(
        "ulimit -v {kib}; ulimit -t {seconds}; ulimit -c 0; exec \"$@\""
    ));
    command.arg("sh").arg(program);
    for word in words {
        match *word {
            "{}" => command.arg(file),
            "{out}" => command.arg(out),
            word => command.arg(word),
        };
    }
    command.stdin(Stdio::null());
    command
}

fn one(
    program: &Path,
    reader: &Reader,
    file: &Path,
    seed: u64,
    corpus: &[Vec<u8>],
    found: &Mutex<Found>,
) {
    let input = mutated(seed, corpus);
    let begin = Instant::now();
    let run = fs::write(file, &input).and_then(|()| {
        let mut command = command(program, reader.words, file, file);
        command.stdout(Stdio::null()).output()
    });
    let took = begin.elapsed();
    let Ok(mut found) = found.lock() else { return };
    // A log that was cut off has a result, which is said not to be whole.
    let is_cut = |said: &[u8]| String::from_utf8_lossy(said).contains("this log ends before");
    let code = run.as_ref().map(|output| output.status.code());
    match code.map(|code| {
        code.filter(|code| *code != 3 || run.as_ref().is_ok_and(|run| is_cut(&run.stderr)))
    }) {
        Ok(Some(2)) => found.refused += 1,
        Ok(Some(0 | 1 | 3)) => found.read += 1,
        _ => {
            let kept = file.with_file_name(format!("wrong-{seed}"));
            let _ = fs::write(&kept, &input);
            let said = run.map_or_else(
                |error| error.to_string(),
                |run| format!("{}: {}", run.status, String::from_utf8_lossy(&run.stderr)),
            );
            let said: String = said.chars().take(400).collect();
            found.wrong.push(format!("{}: {said}", kept.display()));
        }
    }
    found.longest = found.longest.max((took, seed));
}

/// The input of a seed.
fn mutated(seed: u64, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut random = Random(seed);
    let mut bytes = corpus[random.below(corpus.len())].clone();
    for _ in 0..[1, 1, 1, 2, 4][random.below(5)] {
        let at = random.below(bytes.len());
        match random.below(10) {
            0 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = random.next().to_le_bytes()[0];
                }
            }
            1 => bytes.truncate(at),
            2 => {
                let (line, other) = (line(&bytes, at), random.below(bytes.len()));
                let copied = bytes[line].to_vec();
                drop(bytes.splice(other..other, copied));
            }
            3 => {
                let (one, other) = (token(&bytes, at), token(&bytes, random.below(bytes.len())));
                let copied = bytes[other].to_vec();
                drop(bytes.splice(one, copied));
            }
            _ => renumber(&mut bytes, at, &mut random),
        }
    }
    bytes
}

/// Changes the first number behind `at`.
fn renumber(bytes: &mut Vec<u8>, at: usize, random: &mut Random) {
    let is_digit = u8::is_ascii_digit;
    if let Some(from) = bytes.iter().skip(at).position(is_digit) {
        let from = at + from;
        let length = bytes[from..]
            .iter()
            .take_while(|byte| is_digit(byte))
            .count();
        let number = NUMBERS[random.below(NUMBERS.len())];
        drop(bytes.splice(from..from + length, number.bytes()));
    }
}

/// The line around `at`, with its end.
fn line(bytes: &[u8], at: usize) -> std::ops::Range<usize> {
    around(bytes, at, |byte| byte != b'\n')
}

/// The word or the number around `at`.
fn token(bytes: &[u8], at: usize) -> std::ops::Range<usize> {
    around(bytes, at, |byte| byte.is_ascii_alphanumeric())
}

fn around(bytes: &[u8], at: usize, inside: impl Fn(u8) -> bool) -> std::ops::Range<usize> {
    let before = bytes[..at].iter().rev().take_while(|byte| inside(**byte));
    let behind = bytes[at..].iter().take_while(|byte| inside(**byte));
    at - before.count()..at + behind.count()
}

/// Steele, Lea and Flood's SplitMix64 (OOPSLA 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`; 0 when that is 0.
    fn below(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next() % limit).unwrap_or(0)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_input_depends_on_its_seed_and_differs_from_its_file() {
        let corpus = [b"period = \"10ms\"\nwcet = \"2ms\"\n".to_vec()];
        assert_eq!(mutated(7, &corpus), mutated(7, &corpus));
        let all: std::collections::BTreeSet<_> =
            (0..200).map(|seed| mutated(seed, &corpus)).collect();
        assert!(all.len() > 60, "{}", all.len());
        assert!((0..200).all(|seed| mutated(seed, &[vec![]]).is_empty()));
    }

    /// A program that ends by a signal, as one that panics or is out of memory does, is wrong.
    #[test]
    fn a_reader_that_neither_answers_nor_refuses_is_found() {
        let folder = std::env::temp_dir().join(format!("punctual-fuzz-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let reader = |words: &'static [&'static str]| reader("system", words, &[]);
        let shell = Path::new("/bin/sh");
        let found = Mutex::new(Found::default());
        let file = folder.join("input");
        let scripts: [&'static [&'static str]; 4] = [
            &["-c", "exit 0"],
            &["-c", "exit 2"],
            &["-c", "exit 3"],
            &["-c", "kill -6 $$"],
        ];
        for words in scripts {
            one(
                shell,
                &reader(words),
                &file,
                1,
                &[b"a = 1".to_vec()],
                &found,
            );
        }
        let found = found.into_inner().unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!((found.read, found.refused, found.wrong.len()), (1, 1, 2));
    }
}
