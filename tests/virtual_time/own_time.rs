//! A program's own policy for a scheduler that decides on its own supply, in virtual time.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use punctual::{
    ChildPolicies, Error, Faults, Log, RunReport, SimOptions, Span, Workloads, simulate,
    simulate_unjudged,
};
use punctual_model::Work;
use punctual_rules::check;

use crate::common::own_time::{FILE, LastFirst, policies, system};

fn in_virtual_time(policies: ChildPolicies) -> Result<Log, Error> {
    let options = SimOptions {
        duration: Some(Span::from_ms(200)),
        policies,
        ..SimOptions::default()
    };
    simulate(&system(), &options, &mut Workloads::new(), &mut |_| true)
}

fn longest_ns(log: &Log) -> [Option<u64>; 3] {
    let report = RunReport::new(log);
    [0, 1, 2].map(|task: usize| report.tasks[task].response_ns.max)
}

#[test]
fn a_program_brings_the_order_of_its_own_scheduler() {
    let by_file = in_virtual_time(ChildPolicies::new()).unwrap();
    assert_eq!(
        longest_ns(&by_file),
        [1, 2, 3].map(|ms| Some(ms * 1_000_000))
    );
    let by_program = in_virtual_time(policies()).unwrap();
    assert_eq!(
        longest_ns(&by_program),
        [2, 1, 3].map(|ms| Some(ms * 1_000_000))
    );
    assert!(check(&by_program).is_empty());
}

#[test]
fn a_miss_says_how_long_schedulers_decided() {
    // Deciding uses up the budget of the first period; and `rest` has 5 ms beside 8 of budget.
    let impatient = FILE.replace(
        "on = \"cpu.0\"\nperiod",
        "on = \"cpu.0\"\ndeadline = \"5ms\"\nperiod",
    );
    let system = punctual_spec::parse(&impatient, "own-time.toml")
        .unwrap()
        .system;
    let options = SimOptions {
        duration: Some(Span::from_ms(200)),
        faults: Faults {
            decision_cost: Work::from_ms(9),
            ..Faults::default()
        },
        ..SimOptions::default()
    };
    let log = simulate_unjudged(&system, &options, &mut Workloads::new(), &mut |_| true).unwrap();
    let report = RunReport::new(&log);
    let detail = |task: &str| {
        let miss = report.misses.iter().find(|miss| miss.task == task);
        miss.unwrap_or_else(|| panic!("{task}: {report}"))
            .detail
            .clone()
    };
    assert!(
        detail("first").contains("its schedulers deciding"),
        "{report}"
    );
    assert!(
        detail("rest").contains("other schedulers deciding"),
        "{report}"
    );
}

#[test]
fn a_policy_for_a_scheduler_that_decides_inside_is_an_error() {
    let wrong = ChildPolicies::new().with("plug", |_| LastFirst(Vec::new()));
    let error = in_virtual_time(wrong).map(|_| ()).unwrap_err();
    assert!(matches!(&error, Error::NotOwnTime(name) if name == "plug"));
}

#[test]
fn a_scheduler_that_comes_again_decides_again() {
    let parts = r#"["task.first", "task.second", "scheduler.plugin"]"#;
    let changes = format!(
        "[change.away]\nat = \"55ms\"\nstop = {parts}\n[change.back]\nat = \"105ms\"\nstart = {parts}\n"
    );
    let text = [FILE, &changes].concat();
    let system = punctual_spec::parse(&text, "own-time.toml").unwrap().system;
    let options = SimOptions {
        duration: Some(Span::from_ms(205)),
        ..SimOptions::default()
    };
    let log = simulate(&system, &options, &mut Workloads::new(), &mut |_| true).unwrap();
    let report = RunReport::new(&log);
    let done = report.tasks.iter().map(|task| (task.jobs, task.misses));
    // Three jobs before it goes, and one in each period after.
    assert_eq!(done.collect::<Vec<_>>(), [(8, 0), (8, 0), (11, 0)]);
}
