//! Slots of a frame for real: light threads, a kernel-backed thread and a whole program.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use punctual::{LiveOptions, Log, PolicyKind, RunReport, Span, run};
use punctual_kern::TraceEvent;
use punctual_model::ThreadId;
use punctual_trace::Record;

use crate::common::examples::{example, is_replayed, obeys_the_rules, workloads};

/// The slots of the entity that a thread stands for in the frame of its CPU, and the frame.
fn slots_of(log: &Log, thread: ThreadId) -> (Vec<(u64, u64)>, u64) {
    let tables = &log.tables.cpus[0];
    let PolicyKind::Tdm { frame, .. } = tables.policy else {
        panic!("{:?} divides no time", tables.policy)
    };
    let entity = match tables.homes[thread.index()] {
        0 => u32::try_from(thread.index()).unwrap(),
        home => tables.capacity.entity_of(home),
    };
    let own = tables.slots.iter().filter(|slot| slot.entity == entity);
    let ticks = own.map(|slot| (slot.at.ticks(), slot.at.ticks() + slot.length.ticks()));
    (ticks.collect(), frame.ticks())
}

#[test]
fn three_kinds_of_application_go_on_in_their_own_slots_only_and_boundaries_are_measured() {
    let _alone = crate::alone();
    let system = example("mixed-frame");
    // A CPU that is away for a second is away for all of a short run.
    let enough = [400, 1_600, 6_400, 25_600].into_iter().any(|ms| {
        let options = LiveOptions {
            duration: Some(Span::from_ms(ms)),
            // A loaded machine may measure overheads with which nothing fits.
            force: true,
            ..LiveOptions::default()
        };
        let log = run(&system, &options, &mut workloads(), &mut |_| true).unwrap();
        all_go_on_in_their_slots(&log)
    });
    assert!(enough, "too few turns in 25 s");
}

/// Each was there in its own slots alone; whether often enough.
fn all_go_on_in_their_slots(log: &Log) -> bool {
    let mut turns = [0_u32; 4];
    for (now, record) in &log.cpus[0].records {
        if let Record::Trace(TraceEvent::Switched { to: Some(to), .. }) = record {
            let (slots, frame) = slots_of(log, to);
            let at = now.ticks() % frame;
            let inside = slots
                .iter()
                .any(|(start, end)| (*start..*end).contains(&at));
            assert!(
                inside,
                "{to:?} goes on at {at} of {frame}, not in {slots:?}"
            );
            turns[to.index()] += 1;
        }
    }
    let seen = RunReport::new(log).cpus[0]
        .boundaries
        .expect("it has slots");
    assert_eq!(seen.declared_ns, 100_000);
    obeys_the_rules("mixed-frame", log);
    let boundaries = seen.work_ns.n > 100 && seen.late_ns.n > 0 && seen.late_programs_ns.n > 0;
    eprintln!("{turns:?} turns, {seen}");
    let enough = boundaries && turns.iter().all(|&turns| turns > 10);
    if enough {
        is_replayed("mixed-frame", log);
    }
    enough
}
