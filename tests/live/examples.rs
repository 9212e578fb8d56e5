//! The examples of composed schedulers: a real run obeys the rules of virtual time.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use punctual::{Class, LiveOptions, Log, RunReport, Span, run};
use punctual_spec::Description;

use crate::common::examples::{
    COMPOSED, folder, in_virtual_time, is_replayed, load, obeys_the_rules, workloads,
};

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
