//! Every example that is admitted: virtual time keeps the bounds of `check`.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use punctual::{RunReport, Span, admit};
use punctual_model::Graph;
use punctual_trace::RunVerdict;

use crate::common::examples::{
    COMPOSED, folder, in_virtual_time, is_replayed, load, obeys_the_rules,
};

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
        // Firings are shorter than jobs, and each is five lines of the log.
        let graphs = &description.system.graphs;
        let slow = |graph: &Graph| graph.every.is_some_and(|every| every > Span::from_ms(50));
        let ms = match graphs.is_empty() || graphs.iter().any(slow) {
            // Groups are seldom asked for.
            true if !description.system.groups.is_empty() => 20_000,
            true => 1_000,
            false => 100,
        };
        let log = in_virtual_time(&description, ms);
        is_replayed(&name, &log);
        obeys_the_rules(&name, &log);
        let report = RunReport::new(&log);
        for task in &report.tasks {
            let seen = task.response_ns.max.unwrap_or(0);
            let bound = task.bound_ns.unwrap_or(u64::MAX);
            assert!(task.misses == 0 && seen <= bound, "{name}: {task:?}");
        }
        for graph in &report.graphs {
            let kept = graph.verdict == RunVerdict::Met && !graph.exceeds_bound();
            let fires = graph.varies || !graph.real_time || graph.iterations > 10;
            assert!(kept && fires, "{name}: {graph}");
        }
        admitted.push(name);
    }
    for name in COMPOSED {
        assert!(admitted.iter().any(|a| a == name), "{name} is not admitted");
    }
}
