//! `punctual check`: verdicts, exit codes, and mistakes that are told.

use std::process::Stdio;

use crate::common::{Folder, assert_obeys, code, example, json, output, punctual, stderr, stdout};
use serde_json::json;

/// A refusal by the sum of its loads.
pub(crate) const OVERLOAD: &str = r#"
[system]
cpus = [0]
[cpu.0]
policy = "edf"
[task.a]
class = "periodic"
on = "cpu.0"
period = "10ms"
wcet = "6ms"
[task.b]
class = "periodic"
on = "cpu.0"
period = "10ms"
wcet = "5ms"
"#;

#[test]
fn the_two_tasks_of_the_contract_have_the_figures_of_the_contract() {
    let output = output(&["check", &example("two-tasks.toml"), "--json"]);
    assert_eq!(code(&output), 0);
    let verdict = json(&output);
    assert_obeys(&verdict, "check");
    assert_eq!(verdict["format"], 1);
    assert_eq!(verdict["verdict"], "admitted");
    let figures = |index: usize| {
        let task = &verdict["tasks"][index];
        json!([
            task["name"],
            task["response_bound_ns"],
            task["exactness"],
            task["slack_percent"]
        ])
    };
    assert_eq!(figures(0), json!(["fast", 2_000_000, "exact", 50.0]));
    assert_eq!(figures(1), json!(["slow", 7_000_000, "exact", 20.0]));
    assert_eq!(verdict["tasks"][0]["on"], "cpu.0");
    assert_eq!(verdict["refusals"], json!([]));
}

#[test]
fn the_time_in_front_of_slots_has_its_price_in_the_verdict() {
    let (file, folder) = (example("mixed-frame.toml"), Folder::new("touching"));
    let out = output(&["check", &file, "--json"]);
    let verdict = json(&out);
    assert_obeys(&verdict, "check");
    let price = &verdict["cpus"][0]["between_slots"];
    let expected = json!({"each_ns": 100_000, "all_ns": 500_000, "frame_ns": 10_000_000});
    assert_eq!(*price, expected);
    let words = stdout(&output(&["check", &file]));
    assert!(words.contains("500us in every 10ms (5.0 %)"), "{words}");
    // Without it nobody is woken early, and there is nothing to pay.
    let text = std::fs::read_to_string(&file).expect("an example");
    let without = text.replace("scheduling-time = \"100us\"", "scheduling-time = \"0us\"");
    assert_ne!(text, without);
    let touching = folder.write("touching.toml", &without);
    let verdict = json(&output(&["check", &touching, "--json"]));
    assert_eq!(verdict["cpus"][0]["between_slots"], json!(null));
}

#[test]
fn each_change_of_a_file_has_its_instant_and_its_ground() {
    let output = output(&["check", &example("live-tree.toml"), "--json"]);
    assert_eq!(code(&output), 0);
    let verdict = json(&output);
    assert_obeys(&verdict, "check");
    let changes = verdict["changes"].as_array().expect("a list");
    let when: Vec<_> = changes.iter().map(|change| &change["when"]).collect();
    let expected = [
        "at-once", "zero-lag", "zero-lag", "idle", "idle", "zero-lag", "idle", "zero-lag", "idle",
        "at-once",
    ];
    assert_eq!(when, expected);
    assert_eq!(changes[5]["name"], "lend");
    assert_eq!(changes[9]["name"], "again");
}

#[test]
fn a_refused_change_has_its_witness_and_its_fix_and_the_answer_is_no() {
    let folder = Folder::new("refused-change");
    let file = std::fs::read_to_string(example("live-tree.toml")).expect("an example");
    let more =
        "[change.more]\nat = \"3300ms\"\nconstraint = [{ task = \"decode\", wcet = \"39ms\" }]\n";
    let file = folder.write("more.toml", &(file + "\n" + more));
    let said = output(&["check", &file, "--json"]);
    assert_eq!(code(&said), 1);
    let verdict = json(&said);
    assert_obeys(&verdict, "check");
    assert_eq!(verdict["verdict"], "refused");
    let refused = &verdict["changes"][10];
    assert_eq!(
        (&refused["when"], &refused["verdict"]),
        (&json!("never"), &json!("refused"))
    );
    assert_eq!(refused["refusals"][0]["subject"], "media");
    assert!(refused["refusals"][0]["witness"].is_object(), "{refused:#}");
    let words = output(&["check", &file]);
    assert!(
        stdout(&words).contains("after change more: media"),
        "{}",
        stdout(&words)
    );
    let quiet = stdout(&output(&["check", &file, "--quiet"]));
    for text in [&stdout(&words), &quiet] {
        let first = text.lines().next().unwrap_or("");
        assert!(first.starts_with("refused: "), "{first}");
        assert!(first.ends_with("refused change: more"), "{first}");
    }
    assert_eq!(quiet.lines().count(), 1);
    // A run in virtual time does without it, and says so.
    let flown = output(&["sim", &file, "--json"]);
    assert_eq!(code(&flown), 0);
    let report = json(&flown);
    assert_obeys(&report, "sim");
    assert_eq!(report["changes"][10]["done_ns"], json!(null));
    let forced = output(&["check", &file, "--suggest", "priorities"]);
    assert_eq!(code(&forced), 2);
}

#[test]
fn a_transfer_that_a_lender_needs_itself_is_refused_and_its_fix_mends_it() {
    let folder = Folder::new("refused-transfer");
    let file = std::fs::read_to_string(example("transfer.toml")).expect("an example");
    let wcet = "wcet = \"2ms\"\npriority = 1";
    assert_eq!(file.matches(wcet).count(), 1, "the player");
    let file = file.replace(wcet, &format!("deadline = \"30ms\"\n{wcet}"));
    let answer = |budget: &str| {
        let file = file.replace("budget = \"2ms\" }", &format!("budget = \"{budget}\" }}"));
        let output = output(&["check", &folder.write("more.toml", &file), "--json"]);
        let verdict = json(&output);
        (code(&output), verdict["changes"][0].clone())
    };
    let (refused, change) = answer("3ms");
    assert_eq!((refused, &change["when"]), (1, &"never".into()), "{change}");
    let why = &change["refusals"][0];
    assert_eq!(why["subject"], "player", "{change}");
    assert_eq!(why["witness"]["response_ns"], 37_500_000, "{change}");
    let fix = &why["fix"];
    assert_eq!(fix["parameter"], "change.help.transfer.budget", "{change}");
    assert_eq!(
        (&fix["from"], &fix["to"]),
        (&"3ms".into(), &"2ms".into()),
        "{change}"
    );
    let (refused, change) = answer("2000001ns");
    assert_eq!((refused, &change["when"]), (1, &"never".into()), "{change}");
    let (mended, change) = answer("2ms");
    let longer = &change["meanwhile"][0];
    assert_eq!(longer["name"], "player", "{change}");
    assert_eq!(longer["response_bound_ns"], 20_500_000, "{change}");
    assert_eq!(
        (mended, &change["when"]),
        (0, &"at-once".into()),
        "{change}"
    );
}

#[test]
fn the_shipped_change_that_is_refused_says_what_the_guide_says_and_its_fix_mends_it() {
    let file = example("live-tree-refused.toml");
    let refused = output(&["check", &file]);
    assert_eq!(code(&refused), 1);
    let said = stdout(&refused);
    let why = said.find("after change more: ").expect("the reason");
    let why = said[why..].trim_end();
    assert_eq!(why.lines().count(), 4, "{why}");
    let guide = example("../doc/guide/13-changes.md");
    let guide = std::fs::read_to_string(guide).expect("the guide");
    assert!(guide.contains(why), "{why}");
    let folder = Folder::new("refused-example");
    let text = std::fs::read_to_string(&file).expect("an example");
    let mended = text.replacen("wcet = \"1ms\"", "wcet = \"250us\"", 1);
    let mended = folder.write("mended.toml", &mended);
    assert_eq!(code(&output(&["check", &mended])), 0);
}

#[test]
fn the_answer_stands_in_the_first_line_for_people() {
    let admitted = output(&["check", &example("two-tasks.toml")]);
    assert!(
        stdout(&admitted).starts_with("admitted: 2 tasks on 1 CPU"),
        "{}",
        stdout(&admitted)
    );
    let quiet = output(&["check", &example("two-tasks.toml"), "--quiet"]);
    assert_eq!(stdout(&quiet).lines().count(), 1);
}

#[test]
fn a_refused_system_exits_1_and_its_fix_admits_it() {
    let folder = Folder::new("check-fix");
    let file = folder.write("overload.toml", OVERLOAD);
    let refused = output(&["check", &file, "--json"]);
    assert_eq!(code(&refused), 1);
    let verdict = json(&refused);
    assert_obeys(&verdict, "check");
    let fix = &verdict["refusals"][0]["fix"];
    let text = |key: &str| fix[key].as_str().expect("text").to_owned();
    let parameter = text("parameter");
    let task = if parameter.contains(".a.") {
        ("\"6ms\"", "a")
    } else {
        ("\"5ms\"", "b")
    };
    assert_eq!(parameter, format!("task.{}.wcet", task.1));
    assert_eq!(format!("\"{}\"", text("from")), task.0);
    let mended = OVERLOAD.replace(task.0, &format!("\"{}\"", text("to")));
    let file = folder.write("mended.toml", &mended);
    assert_eq!(code(&output(&["check", &file])), 0);
}

#[test]
fn the_refused_automobile_names_planner_and_core3() {
    let refused = output(&["check", &example("waters2019.toml"), "--json"]);
    assert_eq!(code(&refused), 1);
    let verdict = json(&refused);
    assert_obeys(&verdict, "check");
    let refusals = verdict["refusals"].as_array().expect("a list");
    let subjects: Vec<_> = refusals
        .iter()
        .map(|r| r["subject"].as_str().unwrap_or(""))
        .collect();
    assert_eq!(subjects, ["Planner", "Core3"]);
    assert_eq!(refusals[0]["witness"]["response_ns"], 12_437_000);
}

#[test]
fn declared_missing_time_lengthens_bounds() {
    let file = example("two-tasks.toml");
    let verdict = json(&output(&[
        "check",
        &file,
        "--json",
        "--missing-time",
        "100us/10ms",
    ]));
    assert_eq!(verdict["tasks"][0]["response_bound_ns"], 2_100_000);
    assert_eq!(
        code(&output(&["check", &file, "--missing-time", "10ms/10ms"])),
        2
    );
    assert_eq!(
        code(&output(&["check", &file, "--missing-time", "lots"])),
        2
    );
}

#[test]
fn mistakes_of_a_file_are_told_with_their_line_to_people_and_programs() {
    let folder = Folder::new("check-mistakes");
    let file = folder.write(
        "typo.toml",
        &OVERLOAD.replace("wcet = \"5ms\"", "wect = \"5ms\""),
    );
    let told = output(&["check", &file, "--json"]);
    assert_eq!(code(&told), 2);
    let failure = json(&told);
    assert_obeys(&failure, "error");
    let diagnostic = &failure["diagnostics"][0];
    assert_eq!(diagnostic["line"], 15);
    assert_eq!(diagnostic["help"], "did you mean `wcet`?");
    let shown = output(&["check", &file]);
    assert_eq!(stdout(&shown), "");
    let shown = String::from_utf8(shown.stderr).expect("UTF-8");
    assert!(
        shown.contains("wect = \"5ms\"") && shown.contains("did you mean"),
        "{shown}"
    );
}

#[test]
fn what_is_no_system_file_is_bad_input() {
    let folder = Folder::new("check-input");
    let binary = folder.path("binary.toml");
    std::fs::write(&binary, [0xff, 0xfe, 0x00]).expect("written");
    let missing = folder.path("missing.toml");
    for file in [missing, folder.path(""), binary, "/dev/null".into()] {
        let told = output(&["check", &file, "--json"]);
        assert_eq!(code(&told), 2, "{file}");
        assert_obeys(&json(&told), "error");
    }
    assert_eq!(code(&output(&["check"])), 2);
    assert_eq!(code(&output(&["chekc", "file"])), 2);
    assert_eq!(code(&output(&[])), 2);
}

#[test]
fn paths_need_not_be_text_and_files_need_not_be_writable() {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("check-paths");
    let name = std::ffi::OsStr::from_bytes(b"plan\xff.toml");
    let path = std::path::PathBuf::from(folder.path("")).join(name);
    std::fs::copy(example("two-tasks.toml"), &path).expect("copied");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o444)).expect("read-only");
    let output = punctual(&["check"])
        .arg(&path)
        .current_dir("/")
        .output()
        .expect("starts");
    assert_eq!(code(&output), 0);
}

#[test]
fn a_full_disk_is_a_failure_of_the_run_and_a_reader_that_left_is_none() {
    for arguments in [
        &["check", "FILE", "--json"][..],
        &["check", "FILE"],
        &["--help"],
    ] {
        let file = example("two-tasks.toml");
        let arguments: Vec<&str> = arguments
            .iter()
            .map(|&a| if a == "FILE" { file.as_str() } else { a })
            .collect();
        let full = std::fs::File::create("/dev/full").expect("Linux has it");
        let output = punctual(&arguments).stdout(full).output().expect("starts");
        assert_eq!(code(&output), 3);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("standard output"), "{said}");

        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let gone = punctual(&arguments)
            .stdout(writer)
            .stderr(Stdio::piped())
            .output();
        let gone = gone.expect("starts");
        assert_eq!(code(&gone), 0);
        assert_eq!(String::from_utf8_lossy(&gone.stderr), "");
    }
}

/// Of a pipe, and more than once where a command looks whether it is a log.
#[test]
fn a_dash_is_standard_input() {
    let folder = Folder::new("dash");
    let log = folder.path("run.log");
    let text = std::fs::read(example("two-tasks.toml")).expect("the example");
    assert_eq!(
        code(&output(&[
            "sim",
            &example("two-tasks.toml"),
            "--record",
            &log
        ])),
        0
    );
    let recorded = std::fs::read(&log).expect("the log");
    let with = |bytes: &[u8], arguments: &[&str]| {
        let mut command = punctual(arguments);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().expect("starts");
        let mut pipe = child.stdin.take().expect("a pipe");
        std::io::Write::write_all(&mut pipe, bytes).expect("written");
        drop(pipe);
        child.wait_with_output().expect("ends")
    };
    for (bytes, arguments) in [
        (&text, &["check", "-"][..]),
        (&text, &["sim", "-", "-q"]),
        (&text, &["report", "-"]),
        (&recorded, &["report", "-"]),
        (&recorded, &["replay", "-"]),
        (&recorded, &["diff", &log, "-"]),
    ] {
        let done = with(bytes, arguments);
        assert_eq!(code(&done), 0, "{arguments:?}: {}", stderr(&done));
    }
    let wrong = with(b"[system]\ncpus = []\n", &["check", "-"]);
    assert_eq!(code(&wrong), 2);
    assert!(
        stderr(&wrong).contains("--> standard input:2:"),
        "{}",
        stderr(&wrong)
    );
}

#[test]
fn results_that_are_no_terminal_have_no_colours() {
    let refused = output(&["check", &example("waters2019.toml")]);
    assert!(!refused.stdout.contains(&0x1b));
}

#[test]
fn suggested_priorities_admit_the_file_that_they_are_put_into() {
    let folder = Folder::new("suggest");
    let text = |fast: u32, slow: u32| {
        format!(
            "[system]\ncpus = [0]\n[cpu.0]\npolicy = \"fixed-priority\"\n\
             [task.slow]\nclass = \"periodic\"\non = \"cpu.0\"\nperiod = \"20ms\"\nwcet = \"8ms\"\n\
             priority = {slow}\n\
             [task.fast]\nclass = \"periodic\"\non = \"cpu.0\"\nperiod = \"5ms\"\nwcet = \"2ms\"\n\
             priority = {fast}\n"
        )
    };
    let file = folder.write("a.toml", &text(0, 0));
    assert_eq!(code(&output(&["check", &file])), 1);
    let found = output(&["check", &file, "--suggest", "priorities", "--json"]);
    assert_eq!(code(&found), 0);
    let found = json(&found);
    assert_obeys(&found, "suggest");
    let to = |index: usize| {
        let to = found["changes"][index]["to"].as_str().expect("a number");
        to.parse::<u32>().expect("a number")
    };
    assert_eq!(found["changes"][1]["parameter"], "task.fast.priority");
    let file = folder.write("b.toml", &text(to(1), to(0)));
    assert_eq!(code(&output(&["check", &file])), 0);
}

#[test]
fn where_nothing_can_be_suggested_the_reason_is_told() {
    let found = output(&[
        "check",
        &example("two-tasks.toml"),
        "--suggest",
        "partition",
        "--json",
    ]);
    assert_eq!(json(&found)["found"], true);
    assert_eq!(
        json(&found)["ground"],
        "the admission, which admits it as it is"
    );
    let found = output(&[
        "check",
        &example("waters2019.toml"),
        "--suggest",
        "priorities",
    ]);
    assert_eq!(code(&found), 1);
    assert!(
        stdout(&found).starts_with("no suggestion: "),
        "{}",
        stdout(&found)
    );
}

#[test]
fn a_certificate_is_verified_and_a_changed_one_is_not() {
    let folder = Folder::new("certificate");
    let system = example("two-tasks.toml");
    let path = folder.path("two.json");
    let made = output(&["check", &system, "--certificate", &path]);
    assert_eq!(code(&made), 0);
    let verified = output(&["verify", &path, &system, "--json"]);
    assert_eq!(code(&verified), 0);
    assert_obeys(&json(&verified), "verify");
    assert_eq!(json(&verified)["verdict"], "admitted");
    // It is about that system alone.
    let other = example("rosace.toml");
    let verified = output(&["verify", &path, &other]);
    assert_eq!(code(&verified), 1);
    assert!(
        stdout(&verified).contains("system."),
        "{}",
        stdout(&verified)
    );
    // One number changed.
    let text = std::fs::read_to_string(&path).expect("it was written");
    let changed = text.replace("\"completion\": 7000000", "\"completion\": 7000001");
    assert_ne!(text, changed);
    let path = folder.write("changed.json", &changed);
    let verified = output(&["verify", &path, "--json"]);
    assert_eq!(code(&verified), 1);
    let wrong = json(&verified)["wrong"].to_string();
    assert!(
        wrong.contains("completion is 7000001, but 7000000"),
        "{wrong}"
    );
    let path = folder.write("broken.json", &text[..text.len() / 2]);
    assert_eq!(code(&output(&["verify", &path])), 2);
}

#[test]
fn a_refusal_is_certified_by_its_witness() {
    let folder = Folder::new("refusal");
    let system = folder.write("over.toml", OVERLOAD);
    let path = folder.path("over.json");
    assert_eq!(
        code(&output(&["check", &system, "--certificate", &path])),
        1
    );
    let verified = output(&["verify", &path, &system, "--json"]);
    assert_eq!(code(&verified), 0);
    assert_eq!(json(&verified)["verdict"], "refused");
}

#[test]
fn simulation_stands_beside_the_bounds() {
    let found = output(&["check", &example("two-tasks.toml"), "--simulate", "--json"]);
    assert_eq!(code(&found), 0);
    assert_obeys(&json(&found), "check");
    let tasks = &json(&found)["simulation"]["tasks"];
    assert_eq!(tasks[0]["response_ns"], 2_000_000);
    assert_eq!(tasks[1]["response_ns"], 7_000_000);
    let text = stdout(&output(&[
        "check",
        &example("two-tasks.toml"),
        "--simulate",
    ]));
    assert!(
        text.contains("Simulated until all repeats: 3 jobs of 2 tasks"),
        "{text}"
    );
}

#[test]
fn every_example_is_certified_or_the_reason_is_told() {
    let folder = Folder::new("examples");
    let files = std::fs::read_dir(example("")).expect("the examples");
    let (mut certified, mut told) = (0, 0);
    for file in files.filter_map(|file| Some(file.ok()?.path())) {
        if file.extension().is_none_or(|ending| ending != "toml") {
            continue;
        }
        let file = file.to_string_lossy().into_owned();
        let path = folder.path("certificate.json");
        let made = output(&["check", &file, "--quiet", "--certificate", &path]);
        if code(&made) == 3 {
            let said = String::from_utf8_lossy(&made.stderr).into_owned();
            assert!(said.contains("not certified: "), "{file}: {said}");
            told += 1;
        } else {
            let verified = output(&["verify", &path, &file]);
            assert_eq!(code(&verified), 0, "{file}: {}", stdout(&verified));
            certified += 1;
        }
    }
    assert!(certified >= 8, "{certified} certified, {told} not");
    let flagships = [
        "rosace",
        "c-tasks",
        "gang",
        "bsp",
        "three-levels",
        "nautilus-reservations",
    ];
    for flagship in flagships.map(|name| format!("{name}.toml")) {
        let path = folder.path(&flagship);
        let made = output(&["check", &example(&flagship), "--certificate", &path]);
        assert_eq!(code(&made), 0, "{flagship}");
    }
}

#[test]
fn every_term_of_a_bound_is_printed_on_request() {
    let file = example("two-tasks.toml");
    let found = output(&["check", &file, "--explain", "slow"]);
    assert_eq!(code(&found), 0);
    assert_eq!(
        stdout(&found).trim(),
        "slow: 7ms = 5ms (own slow) + 2ms (fast)"
    );
    let found = output(&["check", &file, "--explain", "slow", "--json"]);
    let words = "7ms = 5ms (own slow) + 2ms (fast)";
    assert_eq!(json(&found)["explanation"], words);
    let nobody = output(&["check", &file, "--explain", "nobody"]);
    assert_eq!(code(&nobody), 2);
}
