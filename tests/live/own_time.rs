//! A program's own policy for a scheduler that decides on its own supply, for real.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use punctual::{LiveOptions, RunReport, Span, Workloads, run};
use punctual_policy::AnyPolicy;
use punctual_rules::check;
use punctual_trace::replay;

use crate::common::own_time::{policies, system};

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
