//! A program's own policy for a scheduler that decides on its own supply, for real.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use punctual::{LiveOptions, RunReport, Span, Workloads, run};
use punctual_policy::AnyPolicy;
use punctual_rules::check;
use punctual_trace::{Behavior, JobRecord, replay};

use crate::common::own_time::{FILE, policies, system};

#[test]
fn the_same_policy_decides_for_real() {
    let options = LiveOptions {
        duration: Some(Span::from_ms(400)),
        // A loaded machine may measure overheads with which nothing fits.
        force: true,
        policies: policies(),
        ..LiveOptions::default()
    };
    let _alone = crate::alone();
    let log = run(&system(), &options, &mut Workloads::new(), &mut |_| true).unwrap();
    let report = RunReport::new(&log);
    assert!(report.tasks.iter().all(|task| task.jobs == 20), "{report}");
    let _ = replay(&log, AnyPolicy::new).unwrap_or_else(|difference| panic!("{difference}"));
    let violations = check(&log);
    assert!(violations.is_empty(), "{}", violations[0]);
}

#[test]
fn a_scheduler_that_comes_again_decides_again_for_real() {
    let parts = r#"["task.first", "task.second", "scheduler.plugin"]"#;
    let changes = format!(
        "[change.away]\nat = \"110ms\"\nstop = {parts}\n[change.back]\nat = \"210ms\"\nstart = {parts}\n"
    );
    let system = punctual_spec::parse(&[FILE, &changes].concat(), "own-time.toml").unwrap();
    let _alone = crate::alone();
    // A CPU that is away for a second is away for all of a short run.
    let decided_again = [400, 1_600, 6_400, 25_600].into_iter().any(|ms| {
        let options = LiveOptions {
            duration: Some(Span::from_ms(ms)),
            force: true,
            policies: policies(),
            ..LiveOptions::default()
        };
        let on = &mut |_| true;
        let log = run(&system.system, &options, &mut Workloads::new(), on).unwrap();
        let _ = replay(&log, AnyPolicy::new).unwrap_or_else(|difference| panic!("{difference}"));
        let violations = check(&log);
        assert!(violations.is_empty(), "{}", violations[0]);
        let jobs = Behavior::new(&log, 0).jobs;
        [0, 1].into_iter().all(|thread| {
            // Six jobs are of its first life.
            let second = |job: &JobRecord| {
                job.thread.index() == thread && job.index >= 6 && job.ended.is_some()
            };
            jobs.iter().any(second)
        })
    });
    assert!(decided_again, "nobody of its second life ran in 25 s");
}
