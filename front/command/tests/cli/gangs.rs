//! Gangs through the command: one verdict for all members, skews, and barriers that time replaces.

use serde_json::Value;

use crate::common::{Folder, assert_obeys, code, example, json, output, run_until, stderr, stdout};

/// A gang on every CPU of `names`, and a task beside it on the last one.
fn file(names: &[String], wcet: &str, beside: &str) -> String {
    let list = names.iter().map(|name| format!("\"{name}\""));
    let mut text = format!(
        "[system]\ncpus = [{}]\n",
        list.collect::<Vec<_>>().join(", ")
    );
    for name in names {
        text += &format!("[cpu.{name}]\npolicy = \"fixed-priority\"\n");
    }
    let on = names.iter().map(|name| format!("\"cpu.{name}\""));
    let on = on.collect::<Vec<_>>().join(", ");
    let last = &names[names.len() - 1];
    text += &format!(
        "[gang.step]\non = [{on}]\nclass = \"periodic\"\nperiod = \"1ms\"\nwcet = \"{wcet}\"\n\
         priority = 1\n[task.beside]\nclass = \"reservation\"\non = \"cpu.{last}\"\n\
         period = \"10ms\"\nslice = \"{beside}\"\npriority = 2\n[run]\nfor = \"20ms\"\n"
    );
    text
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|cpu| format!("c{cpu}")).collect()
}

fn gang(verdict: &Value) -> &Value {
    &verdict["gangs"][0]
}

#[test]
fn a_gang_is_refused_on_all_cpus_for_one_and_its_fix_admits_it_everywhere() {
    let folder = Folder::new("gang-refused");
    let path = folder.write("gang.toml", &file(&names(3), "800us", "300us"));
    let refused = output(&["check", &path, "--json"]);
    assert_eq!(code(&refused), 1);
    let verdict = json(&refused);
    assert_obeys(&verdict, "check");
    assert_eq!(gang(&verdict)["refused_on"], serde_json::json!(["c2"]));
    let refusal = &verdict["refusals"][0];
    assert_eq!(refusal["subject"], "step.c2");
    assert_eq!(refusal["witness"]["kind"], "response");
    assert_eq!(refusal["fix"]["parameter"], "gang.step.wcet");
    let to = refusal["fix"]["to"].as_str().expect("a value");
    let path = folder.write("mended.toml", &file(&names(3), to, "300us"));
    assert_eq!(code(&output(&["check", &path])), 0);
    let text = stdout(&output(&[
        "check",
        &folder.write("again.toml", &file(&names(3), "800us", "300us")),
    ]));
    assert!(
        text.contains("refused on CPU c2: no member of it on 3 CPUs is admitted"),
        "{text}"
    );
}

#[test]
fn a_gang_on_256_cpus_is_admitted_and_executes_in_virtual_time() {
    let folder = Folder::new("gang-256");
    let path = folder.write("gang.toml", &file(&names(256), "300us", "200us"));
    let checked = output(&["check", &path, "--json"]);
    assert_eq!(code(&checked), 0);
    let verdict = json(&checked);
    let superstep = &gang(&verdict)["supersteps"][0];
    assert_eq!(superstep["members"].as_array().map(Vec::len), Some(256));
    assert_eq!(superstep["skew_bound_ns"], 200_000);
    let report = output(&["sim", &path, "--json"]);
    assert_eq!(code(&report), 0);
    assert_eq!(json(&report)["tasks"].as_array().map(Vec::len), Some(257));
}

#[test]
fn one_barrier_goes_and_one_stays_with_its_reason() {
    let checked = output(&["check", &example("bsp.toml"), "--json"]);
    assert_eq!(code(&checked), 0);
    let verdict = json(&checked);
    assert_obeys(&verdict, "check");
    let left_out = |gang: usize| {
        let barriers = verdict["gangs"][gang]["barriers"]
            .as_array()
            .expect("a list");
        let all = barriers.iter().map(|barrier| barrier["left_out"].clone());
        all.collect::<Vec<_>>()
    };
    assert_eq!(
        (left_out(0), left_out(1)),
        (
            vec![Value::from(true), Value::from(true)],
            vec![Value::from(false), Value::from(true)],
        )
    );
    let reason = verdict["gangs"][1]["barriers"][0]["reason"]
        .as_str()
        .expect("text");
    assert!(reason.ends_with("1.502ms too early"), "{reason}");
    assert_eq!(code(&output(&["sim", &example("bsp.toml")])), 0);
}

/// The gangs of a simulation of `examples/gang.toml` with faults.
fn simulated(faults: &[&str]) -> Value {
    let path = example("gang.toml");
    let mut arguments = vec!["sim", &path, "--json"];
    for fault in faults {
        arguments.extend(["--fault", fault]);
    }
    let report = output(&arguments);
    assert_eq!(code(&report), 0);
    let report = json(&report);
    assert_obeys(&report, "sim");
    report["gangs"][0].clone()
}

#[test]
fn a_run_compares_starts_in_true_time_and_says_from_when_on_clocks_are_wrong() {
    let of = |gang: &Value| {
        let [max, beyond] = [&gang["skew_ns"]["max"], &gang["beyond"]].map(Value::as_u64);
        (max, beyond, gang["clocks_differ_from_ns"].as_u64())
    };
    let exact = simulated(&[]);
    assert_eq!(of(&exact), (Some(0), Some(0), None));
    assert_eq!(exact["skew_ns"]["n"], 1_000);
    let within = simulated(&["clock-offset=1us@b"]);
    assert_eq!(of(&within), (Some(1_000), Some(0), None));
    let beyond = simulated(&["clock-offset=1001ns@b"]);
    assert_eq!(of(&beyond), (Some(1_001), Some(1_000), Some(0)));
    // 10 ppm take 100 ms to be 1 us. There it is kept still: the arrival after it is the first.
    let (max, beyond, from) = of(&simulated(&["clock-drift=10ppm@b"]));
    assert_eq!((max, from), (Some(9_989), Some(101_000_000)));
    assert_eq!(beyond, Some(899));
    let drawn = simulated(&["clock-offset=1us", "clock-drift=0.001ppm"]);
    assert_eq!(drawn["bound_ns"], 1_000);
    assert!(
        drawn["skew_ns"]["max"]
            .as_u64()
            .is_some_and(|max| (1..=1_001).contains(&max))
    );
}

#[test]
fn a_recorded_run_keeps_its_clocks_and_a_report_says_what_is_beyond_the_bound() {
    let folder = Folder::new("gang-log");
    let log = folder.path("gang.log");
    let (file, fault) = (example("gang.toml"), "clock-offset=5us@b");
    let run = output(&["sim", &file, "--fault", fault, "--record", &log]);
    let said = "BEYOND the bound at 1000 arrivals; from 0s on clocks differ by more than 1us";
    assert!(stdout(&run).contains(said), "{}", stdout(&run));
    let replayed = output(&["replay", &log]);
    assert_eq!(code(&replayed), 0);
    assert!(stdout(&replayed).contains(said), "{}", stdout(&replayed));
}

/// Without barriers that are proved needless, no CPU hears of another; with one, the member with
/// the slow clock keeps the others waiting in true time.
#[test]
fn a_kept_barrier_holds_in_true_time_whatever_the_clocks_say() {
    let folder = Folder::new("gang-barrier");
    let log = folder.path("bsp.log");
    let file = example("bsp.toml");
    let faults = ["--fault", "clock-offset=900us@left"];
    let arguments = [
        "sim", &file, faults[0], faults[1], "--record", &log, "--json",
    ];
    let run = output(&arguments);
    // Clocks that are wrong by so much keep no gang in step.
    assert_eq!(code(&run), 1);
    // `close.write` waits for the computation of the right, which ends at 2.9 ms of true time. Then
    // both begin. Were messages carried at the times of clocks, the left would begin earlier.
    let gangs = json(&run)["gangs"].clone();
    let max = |place: usize| gangs[place]["skew_ns"]["max"].as_u64();
    assert_eq!((max(0), max(2)), (Some(900_000), Some(900_000)));
    assert_eq!(max(3), Some(0));
}

/// Terms that admit the examples on any machine: a run by measured ones may be refused when it is
/// busy.
const TERMS: &str = "[machine]\nswitch = \"1us\"\ntimer = \"5us\"\nclock-error = \"3us\"\n";

/// Runs `examples/bsp.toml` for real until each gang was compared at 45 arrivals: the report and
/// the log. `None`: it needs CPUs 0 and 1.
fn flown(folder: &Folder, flags: &[&str]) -> Option<(Value, String)> {
    let allowed = punctual_linux::allowed_cpus().expect("known");
    if !allowed.contains(&0) || !allowed.contains(&1) {
        println!("skipped: needs CPUs 0 and 1");
        return None;
    }
    let (log, terms) = (folder.path("run.log"), folder.write("here.toml", TERMS));
    let file = example("bsp.toml");
    let fixed = [&file, "--json", "--platform", &terms, "--record", &log];
    let report = run_until(&[&fixed[..], flags].concat(), |run| {
        // A machine of others may let it miss.
        assert!(code(run) <= 1, "{}", stderr(run));
        let report = json(run);
        assert_obeys(&report, "run");
        let gangs = report["gangs"].as_array().expect("a list");
        let often = |gang: &Value| gang["skew_ns"]["n"].as_u64() >= Some(45);
        let often = gangs.iter().all(often) && report["oracle"]["steps"].as_u64() >= Some(90);
        often.then_some(report)
    });
    Some((report, log))
}

/// Waits for threads of other CPUs that a log has.
fn waits_between_cpus(log: &str) -> usize {
    let text = std::fs::read_to_string(log).expect("the log");
    let mut lines = text.lines().map(|line| line.split(' ').next());
    lines
        .by_ref()
        .filter(|key| matches!(key, Some("after-remote" | "follows-remote")))
        .count()
}

#[test]
fn a_live_run_waits_at_kept_barriers_alone_and_its_replay_is_identical() {
    let folder = Folder::new("gang-live");
    let Some((report, log)) = flown(&folder, &[]) else {
        return;
    };
    let gangs = report["gangs"].as_array().expect("a list");
    assert_eq!(gangs.len(), 4);
    for gang in gangs {
        assert!(
            gang["bound_ns"].is_u64() && gang["forced"] == false,
            "{gang}"
        );
    }
    // Of the four barriers one is kept: each member waits for the other one.
    assert_eq!(waits_between_cpus(&log), 2);
    let in_step = gangs[..2].iter().all(|gang| gang["not_in_step"] == false);
    assert!(!in_step || report["oracle"]["mismatches"] == 0, "{report}");
    if gangs.iter().any(|gang| gang["not_in_step"] == true) {
        assert_eq!(report["verdict"], "missed");
    }
    let replayed = stdout(&output(&["replay", &log]));
    assert!(replayed.starts_with("identical: "), "{replayed}");
}

#[test]
fn a_barrier_that_is_left_out_by_force_makes_the_result_unsafe() {
    let folder = Folder::new("gang-forced");
    let Some((report, log)) = flown(&folder, &["--force"]) else {
        return;
    };
    let forced = |at: usize| report["gangs"][at]["forced"].as_bool();
    assert_eq!(
        [0, 1, 2, 3].map(forced),
        [false, false, true, false].map(Some)
    );
    assert_eq!(waits_between_cpus(&log), 0);
    let told = stdout(&output(&["replay", &log]));
    assert!(
        told.contains("UNSAFE: its barrier was left out without proof"),
        "{told}"
    );
}

/// In virtual time: the missing time of one CPU goes beyond what was declared, which is nothing.
#[test]
fn a_phase_that_ends_late_is_counted_and_the_run_is_labelled() {
    let folder = Folder::new("gang-late");
    let log = folder.path("late.log");
    let file = example("bsp.toml");
    let fault = "missing-time=2500us/7ms@right";
    let run = output(&["sim", &file, "--fault", fault, "--json", "--record", &log]);
    assert_eq!(code(&run), 1);
    let report = json(&run);
    assert_obeys(&report, "sim");
    let late: Vec<_> = (0..4)
        .map(|at| report["gangs"][at]["late_ends"].as_u64())
        .collect();
    assert!(late[0] > Some(0), "{late:?}");
    assert_eq!(
        (&report["gangs"][0]["not_in_step"], &report["verdict"]),
        (&true.into(), &"missed".into())
    );
    // Behind a barrier that is kept nothing is too late.
    assert_eq!(late[2], Some(0), "{late:?}");
    let told = output(&["replay", &log, "-q"]);
    assert_eq!(code(&told), 1);
    let text = stdout(&output(&["replay", &log]));
    assert!(text.contains("NOT KEPT IN STEP"), "{text}");
    let quiet = json(&output(&["sim", &file, "--json"]));
    let not = (0..4).map(|at| quiet["gangs"][at]["not_in_step"].clone());
    assert!(not.into_iter().all(|label| label == false), "{quiet}");
    assert_eq!(
        quiet["oracle"],
        serde_json::json!({"steps": 200, "mismatches": 0})
    );
}

/// One page of the verdict, one of a run with a clock that runs away.
#[test]
fn the_pages_have_gangs_with_their_skews_and_barriers() {
    let folder = Folder::new("gang-pages");
    let page = |arguments: &[&str]| {
        let out = folder.path("page.html");
        let done = output(&[arguments, &["--out", &out]].concat());
        assert!(code(&done) < 2, "{}", stderr(&done));
        std::fs::read_to_string(out).expect("the page")
    };
    let bsp = page(&["report", &example("bsp.toml")]);
    for said in [
        "Gang apart",
        "Gang close",
        "apart.write",
        "1.502ms too early",
    ] {
        assert!(bsp.contains(said), "{said}");
    }
    let log = folder.path("run.log");
    let drift = ["--fault", "clock-drift=10ppm@b", "--record", &log];
    let _ = output(&[&["sim", &example("gang.toml")], &drift[..]].concat());
    let run = page(&["report", &log]);
    for said in [
        "<h2>Gangs</h2>",
        "899",
        "clocks differ by more than allowed",
    ] {
        assert!(run.contains(said), "{said}");
    }
    let other = page(&["report", &example("two-tasks.toml")]);
    assert!(!other.contains("Gang"));
}

#[test]
fn a_certificate_of_gangs_says_skews_and_barriers_and_a_forged_one_is_refused() {
    let folder = Folder::new("gang-certificate");
    let (file, path) = (example("bsp.toml"), folder.path("bsp.json"));
    let made = output(&["check", &file, "--quiet", "--certificate", &path]);
    assert_eq!(code(&made), 0, "{}", stderr(&made));
    let verified = output(&["verify", &path, &file]);
    assert_eq!(code(&verified), 0);
    let text = stdout(&verified);
    for words in [
        "2 members of apart.compute start within 501.999us of each other",
        "apart.compute - apart.write goes: apart.compute ends by 1.499999ms",
        "close.compute - close.write stays: close.compute ends by 4ms",
    ] {
        assert!(text.contains(words), "{words} in {text}");
    }
    // The certificate says what `check` says.
    let verdict = json(&output(&["check", &file, "--json"]));
    let whole: Value = serde_json::from_str(&std::fs::read_to_string(&path).expect("written"))
        .expect("a certificate");
    let claims = &whole["claims"]["admitted"]["gangs"];
    for (gang, claim) in [0, 1].map(|at| (&verdict["gangs"][at], &claims[at])) {
        for step in [0, 1] {
            let skew = &gang["supersteps"][step]["skew_bound_ns"];
            assert_eq!(&claim["supersteps"][step]["skew"], skew);
            let goes = &gang["barriers"][step]["left_out"];
            assert_eq!(&claim["barriers"][step]["left_out"], goes);
        }
    }
    for (number, forged) in [
        ("\"skew\": 501999", "\"skew\": 501998"),
        ("\"end\": 4000000", "\"end\": 2400000"),
    ] {
        let text = std::fs::read_to_string(&path).expect("written");
        assert!(text.contains(number), "{number}");
        let path = folder.write("forged.json", &text.replacen(number, forged, 1));
        let refused = output(&["verify", &path]);
        assert_eq!(code(&refused), 1);
        let said = stdout(&refused);
        let (_, was) = number.split_once(": ").expect("a number");
        assert!(said.contains("claims.admitted.gangs["), "{said}");
        assert!(said.contains(&format!("but {was} follows")), "{said}");
    }
}
