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
    let options = LiveOptions {
        duration: Some(Span::from_ms(400)),
        // A loaded machine may measure overheads with which nothing fits.
        force: true,
        ..LiveOptions::default()
    };
    let log = run(&system, &options, &mut workloads(), &mut |_| true).unwrap();
    let mut turns = [0_u32; 4];
    for (now, record) in &log.cpus[0].records {
        if let Record::Trace(TraceEvent::Switched { to: Some(to), .. }) = record {
            let (slots, frame) = slots_of(&log, to);
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
    assert!(turns.iter().all(|&turns| turns > 10), "{turns:?}");
    is_replayed("mixed-frame", &log);
    obeys_the_rules("mixed-frame", &log);
    let seen = RunReport::new(&log).cpus[0]
        .boundaries
        .expect("it has slots");
    assert!(seen.work_ns.n > 100, "{seen}");
    assert!(seen.late_ns.n > 0 && seen.late_programs_ns.n > 0, "{seen}");
    assert_eq!(seen.declared_ns, 100_000);
}
