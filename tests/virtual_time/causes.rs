//! In virtual time every miss has its cause.
//!
//! Nothing can happen there that is not in the log: random systems with every feature of the model,
//! under every kind of fault, alone and together.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use punctual::trace::Cause;
use punctual::{
    Crash, Faults, Log, Misconduct, MissingTime, Ns, Overrun, SimOptions, Span, System, Workloads,
    judge, simulate_unjudged, what_if,
};
use punctual_generate::{Feature, Mix, Random};
use punctual_model::{SchedulerId, TaskId, Trust, Work};
use punctual_trace::diff;

/// How many systems are drawn.
const SYSTEMS: u64 = 2_000;
/// How many jobs of the slowest task a run has.
const JOBS: u64 = 12;

/// The kinds of `--fault`.
const KINDS: [&str; 9] = [
    "missing-time",
    "late-timer",
    "jitter",
    "overrun",
    "crash",
    "cache-delay",
    "decision-cost",
    "misconduct",
    "none",
];

fn task(random: &mut Random, system: &System) -> TaskId {
    let last = system.tasks.len() as u64 - 1;
    TaskId(u32::try_from(random.within(0, last)).unwrap())
}

/// Adds a fault of one kind, in proportion to the longest period.
fn add(kind: &str, faults: &mut Faults, random: &mut Random, (system, longest): (&System, u64)) {
    let mut part = |of: u64| random.within(1, (longest / of).max(1));
    match kind {
        "missing-time" => faults.missing.push(MissingTime {
            cpu: None,
            length: Span::from_ns(part(3)),
            every: Span::from_ns(longest + part(1)),
        }),
        "late-timer" => faults.late_timer = Span::from_ns(part(10)),
        "jitter" => faults.jitter = true,
        "cache-delay" => faults.cache_delay = Work::from_ns(part(30)),
        "decision-cost" => faults.decision_cost = Work::from_ns(part(50)),
        "overrun" => faults.overruns.push(Overrun {
            per_mille: u32::try_from(random.within(1_001, 4_000)).unwrap(),
            task: task(random, system),
        }),
        "crash" => faults.crashes.push(Crash {
            job: random.within(0, JOBS / 2),
            task: task(random, system),
        }),
        "misconduct" => {
            let all = (0..).map(SchedulerId).zip(&system.schedulers);
            let own_time = all.filter(|(_, scheduler)| scheduler.trust == Trust::OwnTime);
            let does = [Misconduct::Loops, Misconduct::Lies, Misconduct::Silent];
            for (id, _) in own_time {
                let at = usize::try_from(random.within(0, 2)).unwrap();
                faults.children.push((id, does[at]));
            }
        }
        _ => {}
    }
}

/// A random system's run under faults of one or two kinds, and what they are.
fn run(seed: u64) -> Option<(Log, Vec<&'static str>)> {
    let mut random = Random::new(seed);
    let system = Mix::of(&Feature::ALL).draw(&mut random).system;
    let periods = system.tasks.iter().filter_map(|t| t.class.min_separation());
    let longest = periods.map(Span::<Ns>::as_ns).max()?;
    let mut kinds = vec![KINDS[usize::try_from(seed).unwrap() % KINDS.len()]];
    if random.happens(300) {
        kinds.extend(random.pick(&KINDS));
    }
    let mut faults = Faults::default();
    for kind in &kinds {
        add(kind, &mut faults, &mut random, (&system, longest));
    }
    let options = SimOptions {
        duration: Some(Span::from_ns(longest.saturating_mul(JOBS))),
        seed: Some(seed),
        faults,
        ..SimOptions::default()
    };
    let run = simulate_unjudged(&system, &options, &mut Workloads::new(), &mut |_| true);
    // Some have more resources on several CPUs than virtual time knows.
    Some((run.ok()?, kinds))
}

#[test]
fn no_miss_in_virtual_time_is_unattributed() {
    let mut causes: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in 0..SYSTEMS {
        let Some((log, kinds)) = run(seed) else {
            continue;
        };
        let name = format!("seed {seed}, {kinds:?}");
        let report = judge(&log);
        assert_eq!(report.unexcused, None, "{name}");
        for miss in &report.misses {
            assert_ne!(miss.cause, Cause::Unattributed, "{name}: {miss:?}");
            let is_taken = miss.cause == Cause::MissingTime;
            assert_eq!(miss.excused, is_taken, "{name}: {miss:?}");
            *causes.entry(miss.cause.name()).or_default() += 1;
        }
    }
    eprintln!("{causes:?}");
    // Each cause that virtual time has.
    let all = [
        "aborted",
        "blocked",
        "higher-priority",
        "late-timer",
        "missing-time",
        "overrun",
        "suspension",
    ];
    assert_eq!(causes.keys().copied().collect::<Vec<_>>(), all);
}

#[test]
fn a_random_run_that_is_played_again_chooses_the_same_to_the_tick() {
    // A run that is played again has no late timers, and its schedulers decide at once. A gap
    // may divide work elsewhere.
    let on_time = ["jitter", "overrun", "cache-delay", "none"];
    let mut played = 0;
    for seed in 0..SYSTEMS {
        let Some((log, kinds)) = run(seed) else {
            continue;
        };
        if kinds.iter().any(|kind| !on_time.contains(kind)) {
            continue;
        }
        let again = what_if(&log, &[], &mut |_| true).unwrap().log;
        let found = diff(&log, &again);
        let same = found.cpus.iter().all(|cpu| cpu.first_other.is_none());
        assert!(same, "seed {seed}, {kinds:?}: {found:#?}");
        played += 1;
    }
    assert!(played > SYSTEMS / 5, "{played}");
}
