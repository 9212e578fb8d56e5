//! Slots in a frame: boundaries, idle slots, and the end of the frame.

use punctual_model::{Instant, Priority, Span, ThreadId};
use punctual_order::{Attributes, Pick, Policy, SlotTerms};
use punctual_policy::Tdm;

fn entity(index: u32) -> ThreadId {
    ThreadId::new(index, 0)
}

fn t(ticks: u64) -> Instant {
    Instant::from_ticks(ticks)
}

/// Entity 0 has [1, 3) and [6, 10), entity 1 has [4, 6), of every 10.
fn tdm() -> Tdm {
    let slot = |entity, at, end| SlotTerms {
        node: 0,
        entity,
        at: Span::from_ticks(at),
        length: Span::from_ticks(end - at),
    };
    let slots = [slot(0, 6, 10), slot(1, 4, 6), slot(0, 1, 3)];
    Tdm::new(2, Span::from_ticks(10), &slots)
}

fn wake(tdm: &mut Tdm, index: u32) {
    let attributes = Attributes {
        priority: Priority::new(index),
        absolute_deadline: Instant::MAX,
        release: Instant::ZERO,
        order: index,
    };
    tdm.wake(entity(index), &attributes);
}

fn pick(tdm: &mut Tdm, now: u64) -> (Option<usize>, Option<u64>) {
    let Pick { entity, until } = tdm.pick(t(now));
    (entity.map(ThreadId::index), until.map(Instant::ticks))
}

#[test]
fn a_slot_is_its_owners_from_its_start_up_to_its_end() {
    let mut tdm = tdm();
    wake(&mut tdm, 0);
    wake(&mut tdm, 1);
    let expected = [
        (0, (None, Some(1))),
        (1, (Some(0), Some(3))),
        (2, (Some(0), Some(3))),
        (3, (None, Some(4))),
        (4, (Some(1), Some(6))),
        (6, (Some(0), Some(10))),
        (9, (Some(0), Some(10))),
        (10, (None, Some(11))),
        (34, (Some(1), Some(36))),
    ];
    for (now, choice) in expected {
        assert_eq!(pick(&mut tdm, now), choice, "at {now}");
    }
}

#[test]
fn what_an_owner_leaves_idle_stays_idle() {
    let mut tdm = tdm();
    wake(&mut tdm, 1);
    assert_eq!(pick(&mut tdm, 1), (None, Some(4)));
    assert_eq!(pick(&mut tdm, 7), (None, Some(11)));
    tdm.block(entity(1));
    assert_eq!(pick(&mut tdm, 4), (None, None), "nobody, so nothing is due");
}

#[test]
fn work_without_guarantees_has_slots_too() {
    assert!(tdm().orders_background());
}

#[test]
fn a_table_without_slots_lets_nobody_run() {
    let mut empty = Tdm::new(1, Span::ZERO, &[]);
    wake(&mut empty, 0);
    assert_eq!(pick(&mut empty, 5), (None, None));
}
