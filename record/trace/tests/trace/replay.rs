//! A recorded run goes through the core again; anything that was changed is found.

use crate::common::{FIXED, missing, overrunning, periodic, rich, simulate, two_tasks};
use punctual_model::{Instant, OnOverrun, PolicyKind, Span};
use punctual_policy::AnyPolicy;
use punctual_trace::{Difference, Log, Record, Records, replay, text};

fn records(log: &Log) -> Vec<Record> {
    log.cpus[0].records.iter().map(|(_, r)| r).collect()
}

#[test]
fn every_policy_decides_again_what_it_decided() {
    let turn = PolicyKind::RoundRobin {
        timeslice: Span::from_us(700),
    };
    let edf = PolicyKind::EarliestDeadlineFirst;
    let waiting = PolicyKind::FixedPriority { preemptive: false };
    for kind in [FIXED, waiting, edf, PolicyKind::Fifo, turn] {
        for seed in 0..5 {
            let mut faults = missing(300, 9);
            faults.late_timer = Span::from_us(200);
            faults.overruns = overrunning(&rich(kind), "second", OnOverrun::Throttle)
                .1
                .overruns;
            let log = simulate(&rich(kind), 500, seed, faults);
            let mut bytes = Vec::new();
            text::write(&log, &mut bytes).expect("memory takes it");
            let log = text::read(&mut bytes.as_slice()).expect("what was written");
            let stats = replay(&log, AnyPolicy::new).unwrap_or_else(|d| panic!("{kind:?}: {d}"));
            assert!(stats.decisions > 300, "{stats:?}");
            assert_eq!(stats.events, stats.decisions);
        }
    }
}

#[test]
fn another_policy_diverges_and_says_where() {
    let mut system = two_tasks();
    system.tasks[1] = periodic("slow", 0, 20, 9_000, 1);
    let log = simulate(&system, 100, 0, missing(100, 7));
    let divergence = replay(&log, |_, capacity, slots| {
        AnyPolicy::new(PolicyKind::Fifo, capacity, slots)
    })
    .expect_err("FIFO does not preempt");
    assert!(divergence.now >= Instant::ZERO && divergence.record > 0);
    assert!(divergence.to_string().starts_with("CPU 0, record "));
}

#[test]
fn a_record_that_was_changed_removed_or_added_is_found_at_its_place() {
    let mut log = simulate(&two_tasks(), 100, 0, missing(100, 7));
    let good = records(&log);
    let at = good
        .iter()
        .position(|r| matches!(r, Record::Decision(d) if d.arm.is_some()))
        .expect("something is armed");
    let mut changed = good.clone();
    if let Record::Decision(decision) = &mut changed[at] {
        decision.arm = None;
    }
    let mut removed = good.clone();
    let _ = removed.remove(at);
    let mut added = good.clone();
    added.insert(at, good[at]);
    let cut = good[..at].to_vec();
    for bad in [changed, removed, added, cut] {
        log.cpus[0].records = Records::from_iter(bad);
        let divergence = replay(&log, AnyPolicy::new).expect_err("it differs");
        assert!(divergence.record.abs_diff(at as u64) <= 1, "{divergence}");
    }
    log.cpus[0].records = Records::from_iter(good);
    assert!(replay(&log, AnyPolicy::new).is_ok());
    let _ = log.cpus.pop();
    let divergence = replay(&log, AnyPolicy::new).expect_err("a CPU is missing");
    assert_eq!(divergence.difference, Difference::Cpus);
}
