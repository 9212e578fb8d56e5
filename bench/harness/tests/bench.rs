//! `punctual bench`: figures with rivals, one JSON.

#[allow(dead_code)] // Each of its users needs another part of it.
#[path = "../../../front/command/tests/cli/common.rs"]
mod common;

use common::{assert_obeys, code, json, output, stdout};

#[test]
fn figures_are_told_as_documented() {
    let done = output(&["bench", "kern event, edf, 2 threads", "--json"]);
    assert_eq!(code(&done), 0);
    let report = json(&done);
    assert_obeys(&report, "bench");
    let figures = report["figures"].as_array().expect("a list");
    assert_eq!(figures.len(), 1);
    assert_eq!(figures[0]["name"], "kern event, edf, 2 threads");
    assert!(figures[0]["instructions"].as_u64() > Some(50), "{report:#}");
    assert!(figures[0]["not_counted"].is_null());
}

#[test]
fn a_switch_through_the_core_is_measured_beside_those_of_others() {
    let done = output(&["bench", "switch.fixed_priority.2", "--json", "--turns", "1"]);
    assert_eq!(code(&done), 0);
    let report = json(&done);
    assert_obeys(&report, "bench");
    let figure = &report["figures"][0];
    assert_eq!(figure["name"], "switch.fixed_priority.2");
    assert!(figure["missing_ns"].is_u64());
    let names = |key: &str| -> Vec<String> {
        let all = figure[key].as_array().cloned().unwrap_or_default();
        let name = |rival: &serde_json::Value| rival["name"].as_str().map(str::to_owned);
        all.iter().filter_map(name).collect()
    };
    let (there, skipped) = (names("rivals"), names("skipped"));
    for always in ["corosensei", "swapcontext", "sched_yield", "futex", "pipe"] {
        assert!(
            there.iter().any(|name| name == always),
            "{always}: {figure:#}"
        );
    }
    // Installed or not: it is never passed over in silence.
    let boost = |names: &[String]| names.iter().any(|name| name == "boost.context");
    assert!(boost(&there) != boost(&skipped), "{figure:#}");
}

#[test]
fn turns_give_a_ratio_its_spread_and_rivals_say_what_they_do() {
    let done = output(&["bench", "mutex.uncontended", "--json", "--turns", "3"]);
    assert_eq!(code(&done), 0);
    let report = json(&done);
    assert_obeys(&report, "bench");
    let figure = &report["figures"][0];
    assert!(figure["instructions"].as_u64() > Some(0), "{figure:#}");
    let rivals = figure["rivals"].as_array().expect("a list");
    assert_eq!(rivals.len(), 2);
    for rival in rivals {
        let number = |key: &str| rival[key].as_f64().expect("a number");
        assert_eq!(rival["turns"], 3);
        assert!(number("least") <= number("ratio") && number("ratio") <= number("most"));
        assert_ne!(rival["does"], "");
    }
}

#[test]
fn a_row_whose_instructions_are_not_counted_says_why() {
    let done = output(&["bench", "plan.within.10us.10", "--json", "-q"]);
    assert_eq!(code(&done), 0);
    let report = json(&done);
    assert_obeys(&report, "bench");
    for figure in report["figures"].as_array().expect("a list") {
        let why = figure["not_counted"].as_str().unwrap_or_default();
        assert!(
            figure["instructions"].is_null() && !why.is_empty(),
            "{figure:#}"
        );
    }
}

#[test]
fn the_figures_have_the_names_that_they_are_known_by() {
    for name in [
        "switch.direct_full",
        "switch.edf.32",
        "thread.create_join",
        "mutex.uncontended",
        "mutex.contended",
        "queue.low_to_high",
        "queue.high_to_low",
        "queue.one_to_one",
        "lock.scheduler",
        "preempt.resume",
        "preempt.checkpoint",
        "timer.latency",
        "tdm.boundary.light",
        "tdm.boundary.program",
        "io.read_ready",
        "io.read_blocking",
    ] {
        let done = output(&["bench", name, "--json", "-q", "--turns", "1"]);
        assert_eq!(code(&done), 0, "{name}");
        let report = json(&done);
        assert_obeys(&report, "bench");
        let figures = report["figures"].as_array().expect("a list");
        assert_eq!(figures[0]["name"], name);
        assert!(figures[0]["p50"].as_f64() > Some(0.0), "{name}");
    }
}

#[test]
fn gangs_of_two_are_measured_beside_the_barriers_of_others() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        eprintln!("SKIPPED: a gang of two takes two CPUs");
        return;
    }
    for (name, rivals) in [
        ("gang.barrier.linear.spin.2", 6),
        ("gang.barrier.tree.spin.2", 6),
        ("gang.barrier.tree.block.2", 6),
        ("gang.barrier.time.2", 6),
        ("gang.reduce.linear.2", 0),
        ("gang.admit.tree.2", 0),
        ("gang.skew.spin", 1),
        ("gang.skew.timer", 0),
    ] {
        let done = output(&["bench", name, "--json", "-q", "--turns", "1"]);
        assert_eq!(code(&done), 0, "{name}");
        let report = json(&done);
        assert_obeys(&report, "bench");
        let figure = &report["figures"][0];
        assert_eq!(figure["name"], name, "{report:#}");
        let count = |key: &str| figure[key].as_array().map_or(0, Vec::len);
        // Each rival is there, or it is said why not.
        assert_eq!(count("rivals") + count("skipped"), rivals, "{figure:#}");
    }
}

#[test]
fn a_filter_that_fits_nothing_is_bad_input() {
    let told = output(&["bench", "warp drive", "--json"]);
    assert_eq!(code(&told), 2);
    assert_obeys(&json(&told), "error");
}

#[test]
fn its_help_has_examples_under_the_name_that_users_type() {
    let help = output(&["bench", "--help"]);
    assert_eq!(code(&help), 0);
    let text = stdout(&help);
    assert!(
        text.contains("Examples:") && text.contains("punctual bench "),
        "{text}"
    );
}

/// The program that is tried, and its arguments: those behind the name of the command.
fn program<'a>(arguments: &'a [&'a str]) -> (&'static str, &'a [&'a str]) {
    assert_eq!(arguments[0], "bench");
    (env!("CARGO_BIN_EXE_punctual-bench"), &arguments[1..])
}

/// The schema that `punctual schema SUBJECT` prints.
fn schema(subject: &str) -> serde_json::Value {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../front/command/schema");
    let text = std::fs::read_to_string(format!("{folder}/{subject}.json")).expect("a schema");
    serde_json::from_str(&text).expect("JSON")
}
