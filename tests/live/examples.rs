//! Every example: virtual time keeps the bounds of `check`, and a real run obeys the same rules.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use punctual::{
    Class, LiveOptions, Log, RunReport, SimOptions, Span, Workloads, admit, run, simulate,
};
use punctual_policy::AnyPolicy;
use punctual_rosace::RosaceWorkload;
use punctual_rules::check;
use punctual_spec::Description;
use punctual_trace::replay;

/// Those of composed schedulers and shared resources.
const COMPOSED: [&str; 10] = [
    "deferrable-server",
    "three-levels",
    "greedy-neighbour",
    "inheritance-chain",
    "composite-a",
    "composite-b",
    "composite-c",
    "composite-d",
    "compose-decoders",
    "nautilus-reservations",
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")
}

fn load(path: &Path) -> Description {
    let description = punctual_spec::load(path).map_err(|error| error.to_string());
    description.unwrap()
}

fn workloads() -> Workloads {
    Workloads::new().with(RosaceWorkload::new())
}

fn in_virtual_time(description: &Description, ms: u64) -> Log {
    let options = SimOptions {
        duration: Some(Span::from_ms(ms)),
        ..SimOptions::default()
    };
    let system = &description.system;
    simulate(system, &options, &mut workloads(), &mut |_| true).unwrap()
}

fn is_replayed(name: &str, log: &Log) {
    let stats = replay(log, AnyPolicy::new);
    let stats = stats.unwrap_or_else(|divergence| panic!("{name}: {divergence}"));
    assert!(
        stats.decisions > 100,
        "{name}: {} decisions",
        stats.decisions
    );
}

fn obeys_the_rules(name: &str, log: &Log) {
    let violations = check(log);
    assert!(
        violations.is_empty(),
        "{name}: {} violations, first: {}",
        violations.len(),
        violations[0]
    );
}

#[test]
fn no_job_of_an_admitted_example_exceeds_its_bound_in_virtual_time() {
    let mut admitted = Vec::new();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let description = load(&path);
        let verdict = admit(&description.system).unwrap();
        if !verdict.admitted {
            continue;
        }
        let log = in_virtual_time(&description, 1_000);
        is_replayed(&name, &log);
        obeys_the_rules(&name, &log);
        let report = RunReport::new(&log);
        for task in &report.tasks {
            let seen = task.response_ns.max.unwrap_or(0);
            let bound = task.bound_ns.unwrap_or(u64::MAX);
            assert!(task.misses == 0 && seen <= bound, "{name}: {task:?}");
        }
        admitted.push(name);
    }
    for name in COMPOSED {
        assert!(admitted.iter().any(|a| a == name), "{name} is not admitted");
    }
}

/// Jobs by task, of those that are released by the clock.
fn jobs(description: &Description, log: &Log) -> BTreeMap<String, u64> {
    let report = RunReport::new(log);
    let tasks = description.system.tasks.iter().zip(&report.tasks);
    let periodic = tasks.filter(|(task, _)| matches!(task.class, Class::Periodic { .. }));
    periodic
        .map(|(_, seen)| (seen.name.clone(), seen.jobs))
        .collect()
}

#[test]
fn the_composed_examples_run_for_real_by_the_rules_of_virtual_time() {
    let _alone = crate::alone();
    for name in COMPOSED {
        let description = load(&folder().join(name).with_extension("toml"));
        let options = LiveOptions {
            duration: Some(Span::from_ms(400)),
            // A loaded machine may measure overheads with which nothing fits.
            force: true,
            ..LiveOptions::default()
        };
        let log = run(&description.system, &options, &mut workloads(), &mut |_| {
            true
        })
        .unwrap();
        is_replayed(name, &log);
        obeys_the_rules(name, &log);
        let virtually = in_virtual_time(&description, 400);
        assert_eq!(
            jobs(&description, &log),
            jobs(&description, &virtually),
            "{name}"
        );
    }
}
