//! `punctual sweep`: shards, interruptions and merging never change a byte of the results.

#[allow(dead_code)] // Each of its users needs another part of it.
#[path = "../../../front/command/tests/cli/common.rs"]
mod common;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use common::{Folder, assert_obeys, code, example, hearing, json, output, punctual, send, stdout};

/// A study of a few hundred small sets.
const STUDY: &str = "policies = [\"fixed-priority\", \"edf\"]\n\
    generators = [\"uunifast-discard\", \"waters-2015\"]\ntasks = [4]\n\
    utilization = \"70%..100%:15%\"\nsets = 120\nseed = 7\n";

fn sweep(study: &str, out: &str, more: &[&str]) -> Output {
    let mut arguments = vec!["sweep", study, "--out", out];
    arguments.extend(more);
    output(&arguments)
}

fn read(path: &str) -> Vec<u8> {
    std::fs::read(path).expect("a file of results")
}

/// A finished run of the study, in one piece.
fn whole(folder: &Folder, study: &str) -> Vec<u8> {
    let path = folder.path("whole.jsonl");
    assert_eq!(code(&sweep(study, &path, &["--quiet"])), 0);
    read(&path)
}

#[test]
fn any_number_of_shards_merges_to_the_bytes_of_a_single_run() {
    let folder = Folder::new("sweep-shards");
    let study = folder.write("study.toml", STUDY);
    let whole = whole(&folder, &study);
    for count in [1, 2, 3, 5] {
        let mut parts = Vec::new();
        for index in 1..=count {
            let part = folder.path(&format!("part-{index}-of-{count}.jsonl"));
            let shard = format!("{index}/{count}");
            let ended = sweep(
                &study,
                &part,
                &["--shard", &shard, "--quiet", "--threads", "1"],
            );
            assert_eq!(code(&ended), 0);
            parts.push(part);
        }
        // Their order does not matter.
        parts.reverse();
        let mut arguments = vec!["sweep", "merge"];
        arguments.extend(parts.iter().map(String::as_str));
        let merged = output(&arguments);
        assert_eq!(code(&merged), 0);
        assert_eq!(merged.stdout, whole, "{count} shards");
    }
}

#[test]
fn a_run_that_was_cut_off_anywhere_is_completed_to_the_same_bytes() {
    let folder = Folder::new("sweep-resume");
    let study = folder.write("study.toml", STUDY);
    let whole = whole(&folder, &study);
    let path = folder.path("cut.jsonl");
    for cut in [0, 1, 100, whole.len() / 2, whole.len() - 1, whole.len()] {
        std::fs::write(&path, &whole[..cut]).expect("written");
        assert_eq!(code(&sweep(&study, &path, &["--quiet"])), 0);
        assert_eq!(read(&path), whole, "cut at {cut}");
    }
}

#[test]
fn nothing_else_than_its_own_results_is_overwritten() {
    let folder = Folder::new("sweep-foreign");
    let study = folder.write("study.toml", STUDY);
    let notes = folder.write("notes.txt", "do not lose this\n");
    let ended = sweep(&study, &notes, &[]);
    assert_eq!(code(&ended), 2);
    assert_eq!(read(&notes), b"do not lose this\n");
    assert_eq!(code(&sweep(&study, &study, &[])), 2);
    let results = folder.path("results.jsonl");
    assert_eq!(code(&sweep(&study, &results, &["--quiet"])), 0);
    let before = read(&results);
    let other = sweep(&study, &results, &["--seed", "8"]);
    assert_eq!(code(&other), 2);
    assert!(String::from_utf8_lossy(&other.stderr).contains("another seed"));
    assert_eq!(read(&results), before);
}

#[test]
fn a_study_may_be_standard_input() {
    let folder = Folder::new("sweep-dash");
    let study = folder.write("study.toml", STUDY);
    let whole = whole(&folder, &study);
    let path = folder.path("dash.jsonl");
    let file = std::fs::File::open(&study).expect("just written");
    let mut asked = punctual(&["sweep", "-", "--out", &path, "--quiet"]);
    assert_eq!(code(&asked.stdin(file).output().expect("starts")), 0);
    assert_eq!(read(&path), whole);
}

#[test]
fn a_full_disk_is_told_as_by_every_command_and_nothing_finished_is_lost() {
    let folder = Folder::new("sweep-full");
    let study = folder.write("study.toml", STUDY);
    let told = sweep(&study, "/dev/full", &["--json"]);
    assert_eq!(code(&told), 3);
    assert_obeys(&json(&told), "error");
    let path = folder.path("whole.jsonl");
    let plot = sweep(&study, &path, &["--quiet", "--plot", "/dev/full"]);
    assert_eq!(code(&plot), 3);
    assert!(String::from_utf8_lossy(&plot.stderr).contains("/dev/full"));
    let full = std::fs::File::create("/dev/full").expect("Linux has it");
    let mut table = punctual(&["sweep", &study, "--out", &path]);
    assert_eq!(code(&table.stdout(full).output().expect("starts")), 3);
    assert_eq!(code(&sweep(&study, &path, &["--quiet"])), 0);
    assert_eq!(read(&path), whole(&Folder::new("sweep-full-not"), &study));
}

#[test]
fn a_merge_tells_what_is_missing_and_what_does_not_belong() {
    let folder = Folder::new("sweep-merge");
    let study = folder.write("study.toml", STUDY);
    let (one, other) = (folder.path("1.jsonl"), folder.path("2.jsonl"));
    assert_eq!(
        code(&sweep(&study, &one, &["--quiet", "--shard", "1/2"])),
        0
    );
    let half = output(&["sweep", "merge", &one]);
    assert_eq!(code(&half), 2);
    assert!(String::from_utf8_lossy(&half.stderr).contains("9 of 18 lines are missing"));
    assert!(String::from_utf8_lossy(&half.stderr).contains("shard 2/2"));
    let more = ["--quiet", "--shard", "2/2", "--seed", "8"];
    assert_eq!(code(&sweep(&study, &other, &more)), 0);
    let mixed = output(&["sweep", "merge", &one, &other]);
    assert_eq!(code(&mixed), 2);
    assert!(String::from_utf8_lossy(&mixed.stderr).contains("another study"));
    let claims = String::from_utf8(read(&one)).expect("text");
    let claims = claims.replacen("\"sets\":", "\"sets\":4294967296", 1);
    let claiming = folder.write("claims.jsonl", &claims);
    let refused = output(&["sweep", "merge", &claiming]);
    assert_eq!(code(&refused), 2);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("in all"));
    let mut broken = read(&one);
    broken.truncate(broken.len() - 10);
    std::fs::write(&one, broken).expect("written");
    assert_eq!(code(&output(&["sweep", "merge", &one])), 2);
}

#[test]
fn the_shares_are_those_of_theory_and_obey_the_schema() {
    let folder = Folder::new("sweep-json");
    let study = folder.write("study.toml", STUDY);
    let (out, plot) = (folder.path("r.jsonl"), folder.path("r.svg"));
    let ended = sweep(&study, &out, &["--json", "--plot", &plot]);
    assert_eq!(code(&ended), 0);
    let summary = json(&ended);
    assert_obeys(&summary, "sweep");
    assert_eq!(summary["complete"], true);
    let points = summary["points"].as_array().expect("points");
    assert_eq!(points.len(), 6);
    for point in points {
        let admitted = |policy: usize| point["admitted"][policy].as_u64().expect("a count");
        // EDF schedules every set with implicit deadlines up to the whole processor, and no
        // policy schedules one that EDF does not.
        assert_eq!(point["sets"], 120);
        assert_eq!(admitted(1), 120, "{point}");
        assert!(admitted(0) <= admitted(1));
    }
    let drawing = String::from_utf8(read(&plot)).expect("text");
    assert_eq!(drawing.matches("<polyline").count(), 4);
    assert!(drawing.ends_with("</svg>\n"));
}

#[test]
fn a_study_that_makes_no_sense_is_told_before_anything_is_drawn() {
    let folder = Folder::new("sweep-wrong");
    let wrong = [
        ("tasks = [0]", "tasks"),
        ("utilisation = \"50%\"", "utilisation"),
        ("utilization = \"50\"", "not a percentage"),
        ("periods = \"1s..10ms\"", "contains nothing"),
        ("tasks = [2]\nutilization = \"250%\"", "cannot need"),
        ("policies = [\"lottery\"]", "lottery"),
        ("sets = 4294967296", "more than 100000000 in all"),
    ];
    for (index, (text, said)) in wrong.into_iter().enumerate() {
        let study = folder.write("wrong.toml", text);
        let out = folder.path(&format!("{index}.jsonl"));
        let ended = sweep(&study, &out, &[]);
        assert_eq!(code(&ended), 2, "{text}");
        let message = String::from_utf8_lossy(&ended.stderr);
        assert!(message.contains(said), "{text}: {message}");
        assert!(!std::path::Path::new(&out).exists(), "{text}");
    }
    assert_eq!(code(&output(&["sweep", "--shard", "3/2"])), 2);
}

/// The folder of a template with the study in it, and the results of one whole run.
fn template(name: &str) -> (Folder, String, Vec<u8>) {
    let folder = Folder::new(name);
    let study = folder.write("study.toml", STUDY);
    let whole = whole(&folder, &study);
    std::fs::remove_file(folder.path("whole.jsonl")).expect("removed");
    (folder, study, whole)
}

#[test]
fn the_template_for_gnu_parallel_ends_with_the_bytes_of_a_single_run() {
    let parallel = Command::new("parallel").arg("--version").output();
    if !parallel.is_ok_and(|out| stdout(&out).starts_with("GNU parallel")) {
        eprintln!("*** NOT CHECKED: examples/sweep/gnu-parallel.sh: GNU parallel is not installed");
        return;
    }
    let (folder, study, whole) = template("sweep-parallel");
    let ended = Command::new(example("sweep/gnu-parallel.sh"))
        .args([&study, &folder.path("results"), "5"])
        .env("PUNCTUAL", command(&folder))
        .env("HOME", folder.path(""))
        .output()
        .expect("the script starts");
    assert_eq!(
        code(&ended),
        0,
        "{}",
        String::from_utf8_lossy(&ended.stderr)
    );
    assert_eq!(read(&folder.path("results/whole.jsonl")), whole);
}

#[test]
fn the_template_for_slurm_does_every_shard_of_its_array() {
    let (folder, study, whole) = template("sweep-slurm");
    for index in ["1", "2", "3"] {
        let ended = Command::new(example("sweep/slurm.sbatch"))
            .args([&study, &folder.path("results")])
            .env("PUNCTUAL", command(&folder))
            .env("SLURM_ARRAY_TASK_ID", index)
            .env("SLURM_ARRAY_TASK_MAX", "3")
            .output()
            .expect("the script starts");
        assert_eq!(
            code(&ended),
            0,
            "{}",
            String::from_utf8_lossy(&ended.stderr)
        );
    }
    let part = |index: u32| folder.path(&format!("results/part-{index}.jsonl"));
    let merged = punctual(&["sweep", "merge", &part(1), &part(2), &part(3)]);
    assert_eq!({ merged }.output().expect("starts").stdout, whole);
}

#[test]
fn the_shipped_study_is_one() {
    let folder = Folder::new("sweep-example");
    let out = folder.path("r.jsonl");
    let few = ["--sets", "1", "--quiet", "--threads", "2"];
    assert_eq!(code(&sweep(&example("sweep/study.toml"), &out, &few)), 0);
}

#[test]
fn ctrl_c_ends_a_sweep_with_130_and_the_same_command_goes_on() {
    let folder = Folder::new("sweep-interrupt");
    let sets = |count: u32| STUDY.replace("sets = 120", &format!("sets = {count}"));
    let study = folder.write("study.toml", &sets(5_000_000));
    let out = folder.path("out.jsonl");
    let asked = punctual(&["sweep", &study, "--out", &out]);
    let mut started = hearing(asked.get_program());
    let started = started.args(asked.get_args());
    let started = started.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = started.spawn().expect("starts");
    // Written after the signals are listened to.
    while !Path::new(&out).exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    send("-INT", child.id());
    let ended = child.wait_with_output().expect("ends");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(code(&ended), 130, "{said}");
    assert!(said.contains("the same command goes on"), "{said}");
    assert!(!stdout(&ended).is_empty(), "what was finished");
}

#[test]
fn its_help_has_examples_under_the_name_that_users_type() {
    let help = output(&["sweep", "--help"]);
    assert_eq!(code(&help), 0);
    let text = stdout(&help);
    assert!(
        text.contains("Examples:") && text.contains("punctual sweep "),
        "{text}"
    );
}

/// The program that is tried, and its arguments: those behind the name of the command.
fn program<'a>(arguments: &'a [&'a str]) -> (&'static str, &'a [&'a str]) {
    assert_eq!(arguments[0], "sweep");
    (env!("CARGO_BIN_EXE_punctual-sweep"), &arguments[1..])
}

/// The schema that `punctual schema SUBJECT` prints.
fn schema(subject: &str) -> serde_json::Value {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../front/command/schema");
    let text = std::fs::read_to_string(format!("{folder}/{subject}.json")).expect("a schema");
    serde_json::from_str(&text).expect("JSON")
}

/// `punctual`, as the templates call it, with what it starts.
fn command(folder: &Folder) -> String {
    let text = format!(
        "#!/bin/sh\nshift\nexec '{}' \"$@\"\n",
        env!("CARGO_BIN_EXE_punctual-sweep")
    );
    let path = folder.write("punctual", &text);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("a program");
    path
}
