//! Every way of asking for the verdict of one run gives the same verdict.
//!
//! A run is met, excused, missed by a deadline, missed by a requirement alone, or missed by results
//! that differ from their reference. The verbs are `sim`, `run`, `report` and `replay`, also with
//! `--policy`. The forms are text, `-q`, `--json`, the page and the exit code, each also with
//! `--strict`. `check`, `report`, `run` and `verify` are asked for admission in the same way, and
//! `doctor` for what the machine can promise.
//!
//! `compare` and `conform` have tests of their own beside their programs. `bench`, `sweep` and
//! `schema` have no verdict.

use std::process::Output;

use serde_json::Value;

use crate::common::{Folder, code, example, json, output, stdout};

/// A run in virtual time and its verdict.
struct Kind {
    name: &'static str,
    file: &'static str,
    arguments: &'static str,
    verdict: &'static str,
    /// Words that tell the reason in one line, if there is one.
    reason: &'static str,
}

const KINDS: [Kind; 5] = [
    Kind {
        name: "met",
        file: "two-tasks.toml",
        arguments: "--for 100ms",
        verdict: "met",
        reason: "",
    },
    Kind {
        name: "excused",
        file: "two-tasks.toml",
        arguments: "--for 1s --fault missing-time=200ms/300ms",
        verdict: "excused",
        reason: "late by missing-time",
    },
    Kind {
        name: "late",
        file: "two-tasks.toml",
        arguments: "--for 1s --fault overrun=fast:6",
        verdict: "missed",
        reason: "late by overrun",
    },
    Kind {
        name: "required",
        file: "two-tasks.toml",
        arguments: "--for 1s --fault late-timer=6ms",
        verdict: "missed",
        reason: "required response of slow 8ms",
    },
    Kind {
        name: "mismatch",
        file: "rosace.toml",
        arguments: "--for 200ms --fault crash=elevator@10",
        verdict: "missed",
        reason: "differ from the reference",
    },
];

/// The exit code of a verdict.
fn exit(verdict: &str, strict: bool) -> i32 {
    match verdict {
        "missed" => 1,
        "excused" => i32::from(strict),
        _ => 0,
    }
}

/// Runs the command with these words; each `FILE` stands for the next of the files.
fn told(words: &str, files: &[&str]) -> Output {
    let mut files = files.iter();
    let arguments = words.split(' ').map(|word| match word {
        "FILE" => files.next().copied().expect("a file"),
        word => word,
    });
    output(&arguments.collect::<Vec<_>>())
}

/// The verdict that a line of text begins with, in any of the lines.
fn in_text(text: &str) -> Option<&str> {
    let words = text.lines().filter_map(|line| line.split(':').next());
    let mut known = words.filter(|word| ["met", "excused", "MISSED"].contains(word));
    known.next()
}

fn in_page(page: &str) -> &str {
    let (_, rest) = page
        .split_once("<span class=\"verdict\">")
        .expect("a page with a verdict");
    rest.split('<').next().unwrap_or("")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).expect("written")
}

/// Asks for the verdict of a log in every form of a verb, and compares.
fn assert_forms_agree(verb: &str, log: &str, verdict: &str, reason: &str) {
    let page = format!("{log}.{verb}.html");
    let out = if verb == "report" {
        "--out"
    } else {
        "--report"
    };
    for strict in ["", " --strict"] {
        let expected = exit(verdict, !strict.is_empty());
        let form = |form: &str, page: &[&str]| {
            let files: Vec<&str> = [log].iter().chain(page).copied().collect();
            let done = told(&format!("{verb} FILE{form}{strict}"), &files);
            assert_eq!(code(&done), expected, "{verb}{form}{strict} of {log}");
            done
        };
        let text = form(&format!(" {out} FILE"), &[&page]);
        let word = in_text(&stdout(&text)).map(str::to_lowercase);
        assert_eq!(word.as_deref(), Some(verdict), "{verb} of {log}");
        assert_eq!(
            in_page(&read(&page)),
            verdict,
            "the page of {verb} of {log}"
        );
        let quiet = stdout(&form(&format!(" -q {out} FILE"), &[&page]));
        let word = in_text(&quiet).map(str::to_lowercase);
        assert_eq!(word.as_deref(), Some(verdict), "{verb} -q of {log}");
        assert!(quiet.contains(reason), "{verb} -q: {quiet}");
        assert_eq!(json(&form(" --json", &[]))["verdict"], verdict);
    }
}

#[test]
fn every_form_of_every_verb_tells_the_same_verdict_of_a_run() {
    for kind in &KINDS {
        let (name, verdict) = (kind.name, kind.verdict);
        let folder = Folder::new(&format!("agree-{name}"));
        let (log, page) = (folder.path("log"), folder.path("page.html"));
        let file = example(kind.file);
        let simulate = |more: &str, files: &[&str]| {
            let files: Vec<&str> = [file.as_str()].iter().chain(files).copied().collect();
            let done = told(&format!("sim FILE {}{more}", kind.arguments), &files);
            let strict = more.contains("--strict");
            assert_eq!(code(&done), exit(verdict, strict), "{name}{more}");
            done
        };
        let text = stdout(&simulate(" --record FILE --report FILE", &[&log, &page]));
        let word = in_text(&text).map(str::to_lowercase);
        assert_eq!(word.as_deref(), Some(verdict), "{text}");
        assert_eq!(in_page(&read(&page)), verdict);
        let quiet = stdout(&simulate(" -q --strict", &[]));
        let word = in_text(&quiet).map(str::to_lowercase);
        assert_eq!(word.as_deref(), Some(verdict), "{quiet}");
        assert!(quiet.contains(kind.reason), "{quiet}");
        let report = json(&simulate(" --json", &[]));
        assert_eq!(report["verdict"], verdict);
        for verb in ["report", "replay"] {
            assert_forms_agree(verb, &log, verdict, kind.reason);
        }
        // Another policy has a verdict of its own.
        let other = told("replay --policy edf FILE --json", &[&log]);
        let verdict = json(&other)["verdict"].as_str().map(str::to_owned);
        assert_forms_agree("replay --policy edf", &log, &verdict.expect("one"), "");
        // The difference of a run from itself is none, whatever its verdict.
        let same = told("diff FILE FILE --json", &[&log, &log]);
        assert_eq!(code(&same), 0);
        assert_eq!(json(&same)["identical"], true);
        assert_eq!(
            misses(&report),
            report["misses"].as_array().map_or(0, Vec::len)
        );
    }
}

/// The misses that the tasks of a report count.
fn misses(report: &Value) -> usize {
    let tasks = report["tasks"].as_array().expect("tasks");
    let counts = tasks.iter().filter_map(|task| task["misses"].as_u64());
    usize::try_from(counts.sum::<u64>()).expect("few")
}

#[test]
fn a_live_run_tells_what_is_told_of_its_log() {
    let folder = Folder::new("agree-live");
    let [log, page] = ["log", "page.html"].map(|name| folder.path(name));
    let file = example("rosace.toml");
    for form in ["", " -q", " --json"] {
        let words = format!("run FILE --for 200ms --force --record FILE --report FILE{form}");
        let done = told(&words, &[&file, &log, &page]);
        let told = stdout(&done);
        let word = match form {
            " --json" => json(&done)["verdict"].as_str().map(str::to_owned),
            _ => in_text(&told).map(str::to_lowercase),
        };
        let verdict = word.unwrap_or_else(|| panic!("no verdict: {told}"));
        assert_eq!(code(&done), exit(&verdict, false), "{told}");
        assert_eq!(in_page(&read(&page)), verdict);
        for verb in ["report", "replay"] {
            assert_forms_agree(verb, &log, &verdict, "");
        }
    }
}

#[test]
fn a_log_that_was_cut_has_one_verdict_and_one_exit_code() {
    let folder = Folder::new("agree-cut");
    let file = example("two-tasks.toml");
    for (fault, expected) in [("jitter", 3), ("overrun=fast:6", 1)] {
        let log = folder.path("log");
        let words = format!("sim FILE --for 1s --fault {fault} --record FILE -q");
        let _ = told(&words, &[&file, &log]);
        let text = read(&log);
        std::fs::write(&log, &text[..text.len() / 2]).expect("written");
        for verb in ["report", "replay"] {
            let done = told(&format!("{verb} FILE --json"), &[&log]);
            assert_eq!(code(&done), expected, "{verb}, {fault}");
        }
    }
}

#[test]
fn every_form_tells_the_same_of_a_certificate() {
    let folder = Folder::new("agree-verify");
    let [file, other] = ["two-tasks.toml", "waters2019.toml"].map(example);
    let certificate = folder.path("proof.json");
    let made = told("check FILE --certificate FILE", &[&file, &certificate]);
    assert_eq!(code(&made), 0);
    for (against, valid) in [(&file, true), (&other, false)] {
        let form = |form: &str| told(&format!("verify FILE FILE{form}"), &[&certificate, against]);
        let (text, value) = (form(""), form(" --json"));
        assert_eq!(
            (code(&text), code(&value)),
            (i32::from(!valid), i32::from(!valid))
        );
        assert_eq!(stdout(&text).starts_with("valid: admitted"), valid);
        assert_eq!(json(&value)["valid"], valid);
        assert_eq!(
            json(&value)["verdict"].as_str(),
            valid.then_some("admitted")
        );
    }
}

#[test]
fn the_text_and_the_json_of_doctor_tell_the_same_verdict() {
    let (text, value) = (told("doctor", &[]), told("doctor --json", &[]));
    assert_eq!((code(&text), code(&value)), (0, 0));
    let value = json(&value);
    let verdict = value["verdict"].as_str().expect("a verdict");
    assert!(
        stdout(&text).contains(verdict),
        "{verdict}: {}",
        stdout(&text)
    );
}

#[test]
fn every_form_tells_the_same_of_what_is_admitted() {
    let folder = Folder::new("agree-check");
    let page = folder.path("page.html");
    for (file, verdict) in [
        ("two-tasks.toml", "admitted"),
        ("waters2019.toml", "refused"),
    ] {
        let file = example(file);
        let expected = i32::from(verdict == "refused");
        let form = |words: &str, files: &[&str]| {
            let done = told(words, files);
            assert_eq!(code(&done), expected, "{words} {file}");
            done
        };
        let first = |done: &Output| stdout(done).split(':').next().map(str::to_owned);
        for words in ["check FILE", "check FILE -q"] {
            assert_eq!(first(&form(words, &[&file])).as_deref(), Some(verdict));
        }
        assert_eq!(
            json(&form("check FILE --json", &[&file]))["verdict"],
            verdict
        );
        let told = form("report FILE --out FILE", &[&file, &page]);
        assert_eq!(first(&told).as_deref(), Some(verdict));
        assert_eq!(in_page(&read(&page)), verdict);
        assert_eq!(
            json(&form("report FILE --json", &[&file]))["verdict"],
            verdict
        );
        if verdict == "refused" {
            assert_eq!(first(&form("run FILE", &[&file])).as_deref(), Some(verdict));
            assert_eq!(json(&form("run FILE --json", &[&file]))["verdict"], verdict);
        }
    }
}
