//! Recorded real runs under another policy keep the numbers and the work of their jobs.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use punctual::{LiveOptions, Log, PolicyChange, PolicyKind, Span, run, what_if};
use punctual_rules::check;
use punctual_trace::Behavior;

use crate::common::examples::{example, workloads};

/// Work received, by task and job.
fn work(log: &Log) -> BTreeMap<(String, u64), u64> {
    let mut all = BTreeMap::new();
    for cpu in 0..log.cpus.len() {
        let behavior = Behavior::new(log, cpu);
        for job in behavior.jobs.iter().filter(|job| job.ended.is_some()) {
            let name = log.task_name(cpu, job.thread).to_string();
            let _ = all.insert((name, job.index), job.received.ticks());
        }
    }
    all
}

#[test]
fn jobs_of_a_live_run_keep_their_number_and_their_work() {
    let _alone = crate::alone();
    let options = LiveOptions {
        duration: Some(Span::from_ms(300)),
        force: true,
        ..LiveOptions::default()
    };
    for name in ["two-tasks", "rosace", "inheritance-chain"] {
        let log = run(&example(name), &options, &mut workloads(), &mut |_| true).unwrap();
        for changes in [
            vec![],
            vec![PolicyChange {
                on: None,
                policy: PolicyKind::FixedPriority { preemptive: true },
            }],
        ] {
            let answer = what_if(&log, &changes, &mut |_| true).unwrap().log;
            let (before, now) = (work(&log), work(&answer));
            let kept = before.iter().filter(|(job, _)| now.contains_key(*job));
            assert!(kept.clone().count() * 10 >= before.len() * 9, "{name}");
            for (job, work) in kept {
                assert_eq!(now[job], *work, "{name}: {job:?}");
            }
            assert!(check(&answer).is_empty(), "{name}");
            assert!(punctual::replay(&answer).is_ok(), "{name}");
        }
    }
}
