//! Runs of virtual time under another policy: some of it is kept, some decided again, some refused.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use punctual::kern::Grant;
use punctual::{
    Faults, Log, MissingTime, PolicyChange, PolicyKind, RunReport, SimOptions, Span, WhatIfError,
    simulate, what_if,
};
use punctual_model::{Ns, System, Work};
use punctual_rules::check;
use punctual_trace::diff;

use crate::common::examples::{example, workloads};

const FIXED: PolicyKind<Ns> = PolicyKind::FixedPriority { preemptive: true };
const EDF: PolicyKind<Ns> = PolicyKind::EarliestDeadlineFirst;

fn parse(text: &str) -> System {
    punctual_spec::parse(text, "test.toml").unwrap().system
}

fn virtually(system: &System, ms: u64, faults: Faults) -> Log {
    let options = SimOptions {
        duration: Some(Span::from_ms(ms)),
        faults,
        ..SimOptions::default()
    };
    simulate(system, &options, &mut workloads(), &mut |_| true).unwrap()
}

fn under(log: &Log, policy: PolicyKind<Ns>) -> Log {
    let change = PolicyChange { on: None, policy };
    what_if(log, &[change], &mut |_| true).unwrap().log
}

/// Two tasks that need each other's priorities: fixed ones miss, EDF does not.
const FULL: &str = r#"
[system]
cpus = [0]
[cpu.0]
policy = "fixed-priority"
[task.short]
class = "periodic"
on = "cpu.0"
period = "10ms"
wcet = "5ms"
priority = 2
[task.long]
class = "periodic"
on = "cpu.0"
period = "14ms"
wcet = "7ms"
priority = 1
"#;

#[test]
fn without_a_change_a_virtual_run_is_reproduced_to_the_tick() {
    for name in [
        "two-tasks",
        "rosace",
        "waters2019",
        "avionics-two-cpus",
        "three-levels",
        "deferrable-server",
        "inheritance-chain",
        "greedy-neighbour",
        "compose-decoders",
        "nautilus-reservations",
        "composite-a",
        "composite-d",
    ] {
        let log = virtually(&example(name), 300, Faults::default());
        let again = what_if(&log, &[], &mut |_| true).unwrap();
        let found = diff(&log, &again.log);
        assert!(found.identical, "{name}: {found:#?}");
        assert!(check(&again.log).is_empty(), "{name}");
    }
}

#[test]
fn another_policy_does_what_it_would_have_done_from_the_start() {
    let log = virtually(&parse(FULL), 700, Faults::default());
    assert!(RunReport::new(&log).tasks[1].misses > 0);
    let mut edf = parse(FULL);
    edf.cpus[0].policy = EDF;
    let answer = under(&log, EDF);
    let from_the_start = virtually(&edf, 700, Faults::default());
    assert_eq!(RunReport::new(&answer).exit_code(), 0);
    assert_eq!(answer.cpus[0].records, from_the_start.cpus[0].records);
    assert!(answer.tasks.iter().all(|task| task.bound.is_none()));
    assert!(check(&answer).is_empty());
    let back = under(&answer, FIXED);
    assert_eq!(back.cpus[0].records, log.cpus[0].records);
}

#[test]
fn missing_time_stays_where_it_was() {
    let faults = Faults {
        missing: vec![MissingTime {
            cpu: None,
            length: Span::from_us(700),
            every: Span::from_us(9_100),
        }],
        ..Faults::default()
    };
    let log = virtually(&example("two-tasks"), 1_000, faults);
    let again = what_if(&log, &[], &mut |_| true).unwrap().log;
    let found = diff(&log, &again);
    for task in &found.tasks {
        assert!(task.compared >= 50, "{task:?}");
        assert_eq!((task.longer, task.shorter), (0, 0), "{task:?}");
    }
    let missing = |log: &Log| RunReport::new(log).cpus[0].missing_time_ns;
    assert_eq!(missing(&log), missing(&again));
}

#[test]
fn a_policy_that_cannot_stand_there_is_refused_with_words() {
    let refused = |log: &Log, on: Option<&str>, policy: PolicyKind<Ns>| {
        let on = on.map(str::to_string);
        let answer = what_if(log, &[PolicyChange { on, policy }], &mut |_| true);
        answer.expect_err("refused")
    };
    let log = virtually(&example("two-tasks"), 50, Faults::default());
    let unknown = refused(&log, Some("mars"), EDF);
    assert!(matches!(unknown, WhatIfError::Unknown { .. }), "{unknown}");
    let slots = PolicyKind::Tdm {
        frame: Span::from_ms(1),
        scheduling: Span::ZERO,
    };
    assert!(refused(&log, None, slots).to_string().contains("slots"));
    let divided = virtually(&example("greedy-neighbour"), 50, Faults::default());
    let tdm = refused(&divided, None, EDF);
    assert!(tdm.to_string().contains("slots"), "{tdm}");
    let mut locks = example("inheritance-chain");
    for resource in &mut locks.resources {
        resource.protocol = punctual_model::Protocol::ImmediateCeiling;
    }
    let log = virtually(&locks, 50, Faults::default());
    let ceiling = refused(&log, None, EDF);
    assert!(ceiling.to_string().contains("ceiling"), "{ceiling}");
}

#[test]
fn budgets_and_turns_every_few_ticks_are_refused_and_named() {
    let refused = |log: &Log, policy: PolicyKind<Ns>, named: &str| {
        let mut questions = 0;
        let answer = what_if(log, &[PolicyChange { on: None, policy }], &mut |_| {
            questions += 1;
            true
        });
        let refused = answer.expect_err("refused");
        assert!(
            matches!(refused, WhatIfError::TooLong { most, .. } if questions * 4_096 <= most),
            "{refused} after {questions} questions"
        );
        assert!(refused.to_string().contains(named), "{refused}");
    };
    let turns = PolicyKind::RoundRobin {
        timeslice: Span::from_ns(2),
    };
    let log = virtually(&parse(FULL), 100, Faults::default());
    refused(&log, turns, "`0` gives a turn every 2 ticks, ");
    let mut log = virtually(&example("deferrable-server"), 100, Faults::default());
    for node in &mut log.tables.cpus[0].nodes {
        if let Grant::Server(server) = &mut node.terms.supply {
            (server.budget, server.period) = (Work::from_ticks(1), Span::from_ticks(2));
        }
    }
    refused(&log, FIXED, " gets its budget every 2 ticks, ");
}
