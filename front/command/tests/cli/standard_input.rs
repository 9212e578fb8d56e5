//! `-` in place of every file that a command reads, and Ctrl-C while it has no verdict yet.

use std::any::TypeId;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use clap::ValueHint;

use crate::check::OVERLOAD;
use crate::common::{Folder, code, example, hearing, json, output, punctual, send, stderr, stdout};

/// Paths that a command writes, and folders: none of them is read.
const OTHERS: [(&str, &str); 13] = [
    ("check", "certificate"),
    ("sim", "trace"),
    ("sim", "record"),
    ("sim", "report"),
    ("run", "trace"),
    ("run", "record"),
    ("run", "report"),
    ("replay", "trace"),
    ("replay", "record"),
    ("replay", "report"),
    ("report", "out"),
    ("report", "trace"),
    ("doctor", "platform"),
];

/// The command with its standard input from a file.
fn with_input(arguments: &[&str], file: &str) -> Output {
    let mut command = punctual(arguments);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("starts");
    let text = std::fs::read(file).expect("a file");
    // One that refuses its arguments reads nothing.
    let _ = child.stdin.take().expect("a pipe").write_all(&text);
    child.wait_with_output().expect("ends")
}

/// A way to try each file argument: the command line, with `@` where the file stands, and the file.
fn tries(folder: &Folder) -> Vec<(&'static str, &'static str, String, String)> {
    let two = example("two-tasks.toml");
    let graph = example("graph-h263.toml");
    let (certificate, log) = (folder.path("two.json"), folder.path("two.log"));
    let made = output(&["check", &two, "-q", "--certificate", &certificate]);
    assert_eq!(code(&made), 0);
    let made = output(&["sim", &two, "-q", "--for", "100ms", "--record", &log]);
    assert_eq!(code(&made), 0);
    let xml = output(&["export", &graph]).stdout;
    let xml = folder.write("graph.xml", &String::from_utf8(xml).expect("text"));
    let terms = folder.write("here.toml", "[machine]\npreemption = \"4ms\"\n");
    let too_much = folder.write("too-much.toml", OVERLOAD);
    let record = "punctual-openmp record 1\nclock 1 cycles 1 ns\ncarrier 0 pool lost 0\n";
    let record = folder.write("record", record);
    let with = |words: &str| words.replace("TWO", &two).replace("LOG", &log);
    vec![
        ("check", "file", "@".into(), two.clone()),
        ("check", "platform", with("TWO --platform @"), terms.clone()),
        ("verify", "certificate", "@".into(), certificate.clone()),
        ("verify", "file", format!("{certificate} @"), two.clone()),
        ("sim", "file", "@ --for 100ms".into(), two.clone()),
        ("run", "file", "@".into(), too_much),
        ("run", "platform", with("TWO --for 1s --platform @"), terms),
        ("report", "file", "@ --json".into(), log.clone()),
        ("replay", "log", "@ --json".into(), log.clone()),
        ("diff", "before", with("@ LOG"), log.clone()),
        ("diff", "now", with("LOG @"), log.clone()),
        ("omp", "draw", "--draw @".into(), record),
        ("import", "file", "@".into(), xml),
        ("export", "file", "@".into(), graph),
    ]
}

/// All paths of the command line, as its definition has them: the command, the argument, and
/// whether it is a file to be read.
fn paths() -> Vec<(String, String, ValueHint)> {
    let mut all = Vec::new();
    for command in punctual_tools::definition().get_subcommands() {
        for argument in command.get_arguments() {
            let is_path = argument.get_value_parser().type_id() == TypeId::of::<PathBuf>();
            let names = (command.get_name(), argument.get_id().as_str());
            if is_path {
                all.push((names.0.into(), names.1.into(), argument.get_value_hint()));
            }
        }
    }
    all
}

#[test]
fn every_file_of_every_command_may_be_standard_input() {
    let folder = Folder::new("standard-input");
    let tries = tries(&folder);
    let mut tried = 0;
    for (command, argument, hint) in paths() {
        let is = |names: (&str, &str)| names == (command.as_str(), argument.as_str());
        if hint != ValueHint::FilePath {
            let known = OTHERS.into_iter().any(is) || hint == ValueHint::DirPath;
            assert!(
                known,
                "{command} {argument}: read it by `input`, and hint at a file"
            );
            continue;
        }
        let way = tries.iter().find(|way| is((way.0, way.1)));
        let (_, _, words, file) = way.unwrap_or_else(|| panic!("try {command} {argument}, too"));
        let words: Vec<&str> = std::iter::once(&*command).chain(words.split(' ')).collect();
        let of = |path| {
            words
                .iter()
                .map(|&word| if word == "@" { path } else { word })
                .collect()
        };
        let (by_name, by_input): (Vec<&str>, Vec<&str>) = (of(file), of("-"));
        let (named, piped) = (output(&by_name), with_input(&by_input, file));
        assert_eq!(
            code(&named),
            code(&piped),
            "{by_input:?}: {}",
            stderr(&piped)
        );
        assert!(code(&named) < 2, "{by_name:?}: {}", stderr(&named));
        // But for its name it is the same.
        let short = Path::new(file)
            .file_name()
            .and_then(|name| name.to_str())
            .expect("a name");
        let told = |output: &Output| {
            let text = stdout(output)
                .replace(&**file, "FILE")
                .replace(short, "FILE");
            text.replace("standard input", "FILE")
                .replace("- on ", "FILE on ")
        };
        assert_eq!(told(&named), told(&piped), "{by_input:?}");
        tried += 1;
    }
    assert_eq!(tried, tries.len(), "a way of a file that is no more");
}

#[test]
fn standard_input_is_one_file() {
    let two = example("two-tasks.toml");
    for arguments in [
        &["check", "-", "--platform", "-"][..],
        &["diff", "-", "-"],
        &["verify", "-", "-"],
        &["run", "-", "--platform", "-"],
        &["omp", "--draw", "-", "-"],
    ] {
        let told = with_input(arguments, &two);
        assert_eq!(code(&told), 2, "{arguments:?}");
        let said = stderr(&told);
        let sentence = "2 arguments are `-`, and standard input is read once";
        assert!(said.contains(sentence), "{arguments:?}: {said}");
        assert_eq!(stdout(&told), "");
    }
    let told = with_input(&["check", "-", "--platform", "-", "--json"], &two);
    assert!(
        json(&told)["error"]
            .as_str()
            .is_some_and(|error| error.contains("`-`"))
    );
}

/// So many tasks, most of them late, that a verdict with its fixes takes seconds, and bounds alone
/// a part of one.
fn three_thousand_tasks() -> String {
    let mut text = String::from("[system]\ncpus = [\"a\"]\n[cpu.a]\npolicy = \"fixed-priority\"\n");
    for number in 0..3_001_u64 {
        let (period, priority) = (10 + number * 7 % 90, number * 7_919 % 3_001);
        let wcet = period * 330;
        let _ = write!(
            text,
            "[task.t{number}]\nclass = \"periodic\"\non = \"cpu.a\"\npriority = {priority}\n\
             period = \"{period}ms\"\nwcet = \"{wcet}ns\"\nwork = {{ burn = \"{wcet}ns\" }}\n"
        );
    }
    text
}

/// Whether a process catches SIGINT.
fn listens(id: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 2 != 0)
}

/// Waits until a process catches SIGINT, for a minute.
fn until_it_listens(id: u32) {
    let mut looks = 0;
    while !listens(id) && looks < 60_000 {
        std::thread::sleep(Duration::from_millis(1));
        looks += 1;
    }
}

/// The first Ctrl-C ends it: no verdict follows, no report, and no file is left.
#[test]
fn ctrl_c_ends_a_command_that_has_no_verdict_yet() {
    let folder = Folder::new("no-verdict-yet");
    let file = folder.write("many.toml", &three_thousand_tasks());
    let log = folder.path("log");
    for words in [&["check"][..], &["sim", "--for", "1s", "--record", &log]] {
        let asked = punctual(&[&words[..1], &[&file, "--json"], &words[1..]].concat());
        let mut command = hearing(asked.get_program());
        let command = command.args(asked.get_args());
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts");
        let id = child.id();
        until_it_listens(id);
        send("-INT", id);
        let ended = child.wait_with_output().expect("ends");
        let said = stderr(&ended);
        assert!(
            said.contains("stopped by request, before the end"),
            "{words:?}: {said}"
        );
        // A shell calls this 130.
        let signal = std::os::unix::process::ExitStatusExt::signal(&ended.status);
        assert_eq!(signal, Some(2), "{words:?}: {said}");
        assert_eq!(stdout(&ended), "");
        assert!(!Path::new(&log).exists());
    }
}
