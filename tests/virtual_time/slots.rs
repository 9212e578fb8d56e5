//! Slots start where the frame says, whatever the boundaries before them took.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use punctual::{Faults, Instant, Log, MissingTime, SimOptions, Span, simulate};
use punctual_kern::TraceEvent;
use punctual_model::ThreadId;
use punctual_trace::Record;

use crate::common::examples::{example, workloads};

const FRAME_NS: u64 = 10_000_000;
/// Of `guest`, whose work never ends, in the frame.
const STARTS_NS: [u64; 2] = [3_200_000, 6_600_000];
const LENGTH_NS: u64 = 1_500_000;
const RUN_MS: u64 = 1_000;

fn log(faults: Faults) -> Log {
    let options = SimOptions {
        duration: Some(Span::from_ms(RUN_MS)),
        faults,
        ..SimOptions::default()
    };
    let system = example("mixed-frame");
    simulate(&system, &options, &mut workloads(), &mut |_| true).unwrap()
}

/// When thread 3 had the processor: from, to.
fn stretches(log: &Log) -> BTreeMap<u64, u64> {
    let mut all = BTreeMap::new();
    let mut since = None;
    for (now, record) in &log.cpus[0].records {
        if let Record::Trace(TraceEvent::Switched { from, to, .. }) = record {
            let is_guest = |thread: ThreadId| thread.index() == 3;
            if from.is_some_and(is_guest)
                && let Some(since) = since.take()
            {
                all.insert(since, now.ticks());
            }
            if to.is_some_and(is_guest) {
                since = Some(now.ticks());
            }
        }
    }
    all
}

/// The slot of the guest in which an instant lies.
fn slot_of(ns: u64) -> Option<(u64, u64)> {
    let frame = ns / FRAME_NS * FRAME_NS;
    let slots = STARTS_NS.map(|at| (frame + at, frame + at + LENGTH_NS));
    slots
        .into_iter()
        .find(|(start, end)| (*start..*end).contains(&ns))
}

#[test]
fn no_boundary_that_takes_longer_moves_the_start_of_a_slot() {
    let calm = stretches(&log(Faults::default()));
    let slots = 2 * RUN_MS * 1_000_000 / FRAME_NS;
    assert_eq!(calm.len() as u64, slots);
    for (from, to) in &calm {
        assert_eq!(
            slot_of(*from),
            Some((*from, *to)),
            "from its start to its end"
        );
    }
    // A standstill across the start of every other slot, and timers that come late everywhere.
    let missing = MissingTime {
        cpu: None,
        length: Span::from_us(300),
        every: Span::from_ns(2 * FRAME_NS),
    };
    let faults = Faults {
        missing: vec![missing],
        missing_from: Some(Instant::from_ns(STARTS_NS[0] - 200_000)),
        late_timer: Span::from_us(80),
        ..Faults::default()
    };
    let late = stretches(&log(faults));
    let mut moved = 0;
    for (from, to) in &late {
        let (start, end) = slot_of(*from).unwrap_or_else(|| panic!("{from}: in nobody's slot"));
        assert!(calm.contains_key(&start));
        // Late by what the machine took of it, and by no more: the next ones begin on time.
        assert!(from - start <= 180_000, "{from}: {}", from - start);
        assert!(*to <= end + 80_000, "{to}");
        moved += u64::from(from - start > 80_000);
    }
    assert_eq!(late.len() as u64, slots, "each slot was had");
    assert!(moved >= slots / 8, "{moved}: the fault hits starts");
}
