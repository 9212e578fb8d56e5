//! Slots: against a twin that colours every nanosecond of a small frame.

use alloc::vec;
use alloc::vec::Vec;

use super::trees::{below, scheduler, server, tree};
use super::{mistake, periodic};
use crate::{
    Fault, Ns, PolicyKind, Scheduler, SchedulerId, Slot, Span, Supply, System, Task, TaskId,
};

fn slot(at: u64, length: u64) -> Slot<Ns> {
    Slot {
        at: Span::from_ns(at),
        length: Span::from_ns(length),
    }
}

fn tdm(frame: u64, scheduling: u64) -> PolicyKind<Ns> {
    PolicyKind::Tdm {
        frame: Span::from_ns(frame),
        scheduling: Span::from_ns(scheduling),
    }
}

fn with_slots(name: &str, slots: Vec<Slot<Ns>>) -> Scheduler {
    Scheduler {
        supply: Supply::Slots(slots),
        ..scheduler(name, 0, None)
    }
}

/// The first CPU divides a frame of 10 ns between schedulers.
fn divided(schedulers: Vec<Scheduler>, scheduling: u64) -> System {
    let mut system = tree(schedulers);
    system.cpus[0].policy = tdm(10, scheduling);
    system
}

#[test]
fn every_child_and_every_task_of_a_divided_node_needs_slots() {
    let shared = divided(vec![scheduler("a", 0, None)], 0);
    assert_eq!(
        mistake(&shared).0,
        Fault::Scheduler(SchedulerId(0), "slots")
    );
    let empty = divided(vec![with_slots("a", vec![])], 0);
    assert_eq!(mistake(&empty).0, Fault::Scheduler(SchedulerId(0), "slots"));
    let mut served = divided(vec![scheduler("a", 0, None)], 0);
    served.schedulers[0].supply = server(1, 10);
    assert_eq!(
        mistake(&served).0,
        Fault::Scheduler(SchedulerId(0), "server")
    );
    let mut alone = divided(vec![], 0);
    alone.tasks = vec![periodic("t", 0, 10, 1)];
    assert_eq!(mistake(&alone).0, Fault::Task(TaskId(0), "slots"));
}

#[test]
fn slots_mean_nothing_under_other_policies() {
    let mut elsewhere = tree(vec![with_slots("a", vec![slot(0, 1)])]);
    assert_eq!(
        mistake(&elsewhere).0,
        Fault::Scheduler(SchedulerId(0), "slots")
    );
    elsewhere.schedulers.clear();
    elsewhere.tasks = vec![Task {
        slots: vec![slot(0, 1)],
        ..periodic("t", 0, 10, 1)
    }];
    assert_eq!(mistake(&elsewhere).0, Fault::Task(TaskId(0), "slots"));
}

#[test]
fn tasks_and_schedulers_share_one_frame() {
    let mut both = divided(vec![with_slots("a", vec![slot(0, 5)])], 0);
    both.tasks = vec![Task {
        slots: vec![slot(6, 1), slot(4, 2)],
        ..periodic("t", 0, 10, 1)
    }];
    let (fault, message) = mistake(&both);
    assert_eq!(fault, Fault::TaskSlot(TaskId(0), 1));
    assert_eq!(
        message,
        "task `t`: its slot from 4ns to 6ns overlaps the one of scheduler `a` from 0s to 5ns"
    );
}

#[test]
fn a_nested_frame_is_divided_by_itself() {
    let mut nested = divided(vec![with_slots("a", vec![slot(0, 5)])], 5);
    nested.schedulers[0].policy = tdm(4, 0);
    nested.tasks = vec![Task {
        slots: vec![slot(0, 4)],
        ..below("t", 0)
    }];
    assert_eq!(nested.validate(), Ok(()));
    nested.tasks[0].slots = vec![slot(0, 5)];
    assert_eq!(mistake(&nested).0, Fault::TaskSlot(TaskId(0), 0));
}

#[test]
fn lengths_at_the_end_of_the_range_do_not_wrap() {
    let huge = divided(vec![with_slots("a", vec![slot(u64::MAX, u64::MAX)])], 0);
    assert_eq!(mistake(&huge).0, Fault::SchedulerSlot(SchedulerId(0), 0));
    let mut whole = divided(vec![with_slots("a", vec![slot(0, u64::MAX)])], 0);
    whole.cpus[0].policy = tdm(u64::MAX, u64::MAX);
    assert_eq!(mistake(&whole).0, Fault::SchedulerSlot(SchedulerId(0), 0));
    whole.cpus[0].policy = tdm(u64::MAX, 0);
    assert_eq!(whole.validate(), Ok(()));
}

/// Whether a frame of 10 ns has these slots `scheduling` apart: by colouring.
fn twin(slots: &[(u64, u64)], scheduling: u64) -> bool {
    let mut colours = [false; 10];
    for &(at, length) in slots {
        for t in at..at + length {
            match colours.get_mut(usize::try_from(t).expect("small")) {
                Some(colour) if !*colour => *colour = true,
                _ => return false,
            }
        }
    }
    slots.iter().all(|&(at, length)| {
        // The instants after the slot, around the end of the frame.
        (at + length..at + length + scheduling)
            .all(|t| !colours[usize::try_from(t % 10).expect("small")])
    })
}

#[test]
fn two_slots_are_accepted_exactly_when_the_twin_finds_them_apart() {
    let mut accepted = 0;
    for scheduling in 0..4 {
        for at in 0..10 {
            for length in 1..6 {
                for other_at in 0..10 {
                    for other in 1..6 {
                        let slots = [(at, length), (other_at, other)];
                        let nodes = vec![
                            with_slots("a", vec![slot(at, length)]),
                            with_slots("b", vec![slot(other_at, other)]),
                        ];
                        let valid = divided(nodes, scheduling).validate().is_ok();
                        assert_eq!(valid, twin(&slots, scheduling), "{slots:?} {scheduling}");
                        accepted += u32::from(valid);
                    }
                }
            }
        }
    }
    assert!(accepted > 500, "{accepted}");
}

#[test]
fn a_long_slot_is_not_forgotten_behind_a_short_one() {
    let nodes = vec![
        with_slots("a", vec![slot(0, 8)]),
        with_slots("b", vec![slot(1, 1)]),
        with_slots("c", vec![slot(4, 1)]),
    ];
    let errors = divided(nodes, 0).validate().expect_err("two overlaps");
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(errors[1].message.contains("the one of scheduler `a`"));
}

#[test]
fn what_a_message_tells_to_do_is_enough() {
    let close = divided(
        vec![
            with_slots("a", vec![slot(0, 3)]),
            with_slots("b", vec![slot(4, 3)]),
        ],
        2,
    );
    let errors = close.validate().expect_err("too close");
    assert_eq!(errors.len(), 1);
    assert!(errors[0].help.starts_with("begin it at 5ns or later"));
    let moved = divided(
        vec![
            with_slots("a", vec![slot(0, 3)]),
            with_slots("b", vec![slot(5, 3)]),
        ],
        2,
    );
    assert_eq!(moved.validate(), Ok(()));
}
