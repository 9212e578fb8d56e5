//! Real runs of the shipped examples: their records replay, obey the rules, and are correct.
//!
//! They assert order, counts and results, never times: the machine may be loaded and unprivileged.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use punctual::{LiveOptions, Log, Progress, RunReport, SimOptions, Span, Workloads, run, simulate};
use punctual_policy::AnyPolicy;
use punctual_rosace::RosaceWorkload;
use punctual_rules::check;
use punctual_spec::Description;
use punctual_trace::{Record, replay};

fn example(name: &str) -> Description {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("examples")
        .join(name);
    let description = punctual_spec::load(&path).map_err(|e| e.to_string());
    description.unwrap()
}

fn fly(description: &Description, ms: u64) -> Log {
    fly_watched(description, ms, |_| ())
}

/// As `fly`; `watch` is told the progress about ten times a second.
fn fly_watched(description: &Description, ms: u64, mut watch: impl FnMut(Progress) + Send) -> Log {
    let options = LiveOptions {
        duration: Some(Span::from_ms(ms)),
        // A loaded machine may measure overheads with which nothing fits.
        force: true,
        base: description.base.clone(),
        ..LiveOptions::default()
    };
    let mut workloads = Workloads::new().with(RosaceWorkload::new());
    let mut on = |progress| {
        watch(progress);
        true
    };
    run(&description.system, &options, &mut workloads, &mut on).unwrap()
}

fn replays(log: &Log) {
    let stats = replay(log, AnyPolicy::new);
    let stats = stats.unwrap_or_else(|divergence| panic!("{divergence}"));
    assert!(stats.decisions > 100, "only {} decisions", stats.decisions);
}

fn obeys_the_rules(log: &Log) {
    let violations = check(log);
    assert!(
        violations.is_empty(),
        "{} violations, first: {}",
        violations.len(),
        violations[0]
    );
}

#[test]
fn a_recorded_flight_goes_through_the_core_again_and_gives_the_same_decisions() {
    let _alone = crate::alone();
    let log = fly(&example("rosace.toml"), 1_000);
    replays(&log);
    obeys_the_rules(&log);
    let oracle = log.oracle.unwrap();
    assert_eq!((oracle.steps, oracle.mismatches), (200, 0));
}

#[test]
fn the_same_file_has_the_same_jobs_for_real_and_in_virtual_time() {
    let _alone = crate::alone();
    let description = example("two-tasks.toml");
    let jobs = |log: &Log| -> Vec<(String, u64)> {
        RunReport::new(log)
            .tasks
            .iter()
            .map(|t| (t.name.clone(), t.jobs))
            .collect()
    };
    let real = jobs(&fly(&description, 1_000));
    let options = SimOptions {
        duration: Some(Span::from_ms(1_000)),
        ..SimOptions::default()
    };
    let system = &description.system;
    let log = simulate(system, &options, &mut Workloads::new(), &mut |_| true).unwrap();
    assert_eq!(real, jobs(&log));
    assert_eq!(real, [("fast".to_string(), 100), ("slow".to_string(), 50)]);
    replays(&log);
    obeys_the_rules(&log);
}

/// Stops this very process for 200 ms, from outside, while it flies.
fn stop_for_200_ms() -> Child {
    let script = "kill -STOP $0; sleep 0.2; kill -CONT $0";
    let me = std::process::id().to_string();
    Command::new("sh")
        .args(["-c", script, &me])
        .spawn()
        .unwrap()
}

#[test]
fn a_flight_that_is_stopped_in_the_middle_still_equals_its_reference() {
    let _alone = crate::alone();
    let mut stopper = None;
    let log = fly_watched(&example("rosace.toml"), 2_000, |progress| {
        if progress.passed >= Span::from_ms(500) && stopper.is_none() {
            stopper = Some(stop_for_200_ms());
        }
    });
    assert!(stopper.unwrap().wait().unwrap().success());
    let oracle = log.oracle.unwrap();
    assert_eq!((oracle.steps, oracle.mismatches), (400, 0));
    replays(&log);
    let report = RunReport::new(&log);
    let stood_still = Duration::from_nanos(report.cpus[0].missing_time_ns);
    assert!(
        stood_still >= Duration::from_millis(150),
        "{stood_still:?} of 200 ms noticed"
    );
}

/// The shared object of the C example, built into a folder of its own.
fn built_in_c() -> PathBuf {
    let folder = std::env::temp_dir().join(format!("punctual-c-tasks-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("c")).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/c/tasks.c");
    let mut cc = Command::new("cc");
    let _ = cc.args([
        "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o",
    ]);
    let built = cc.arg(folder.join("c/libtasks.so")).arg(source).status();
    assert!(built.unwrap().success(), "cc builds examples/c/tasks.c");
    folder
}

#[test]
fn tasks_can_be_c_functions_in_a_shared_object() {
    let _alone = crate::alone();
    let folder = built_in_c();
    let mut description = example("c-tasks.toml");
    description.base.clone_from(&folder);
    let completed = |log: &Log| {
        let done = |r: &Record| {
            matches!(
                r,
                Record::Trace(punctual_kern::TraceEvent::Completed { .. })
            )
        };
        log.cpus[0].records.iter().filter(|(_, r)| done(r)).count()
    };
    // A CPU that is away for a second is away for all of a short run.
    let often = [500, 2_000, 8_000].into_iter().any(|ms| {
        let log = fly(&description, ms);
        let often = completed(&log) > 50;
        if often {
            replays(&log);
        }
        often
    });
    assert!(often, "fewer than 50 jobs in 8 s");
    std::fs::remove_dir_all(folder).unwrap();
}
