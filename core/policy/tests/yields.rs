//! Giving way: behind all equals that are ready, ahead of all who are less urgent.

use punctual_model::{Instant, Priority, ThreadId, Work};
use punctual_order::{Attributes, Policy};
use punctual_policy::{EarliestDeadlineFirst, Fifo, FixedPriority};

const A: ThreadId = ThreadId::new(0, 0);
const B: ThreadId = ThreadId::new(1, 0);
const C: ThreadId = ThreadId::new(2, 0);
/// Less urgent than those.
const LAST: ThreadId = ThreadId::new(3, 0);
/// More urgent than all.
const FIRST: ThreadId = ThreadId::new(4, 0);
/// As urgent as the first three, released later.
const LATER: ThreadId = ThreadId::new(5, 0);

fn attributes(urgency: u32, release: u64, order: u32) -> Attributes {
    Attributes {
        priority: Priority::new(urgency),
        absolute_deadline: Instant::from_ticks(1_000_000 - u64::from(urgency)),
        release: Instant::from_ticks(release),
        order,
    }
}

/// Wakes the first four.
fn begin(policy: &mut impl Policy) {
    for (order, thread) in (0..).zip([A, B, C, LAST]) {
        let urgency = if thread == LAST { 1 } else { 2 };
        policy.attach(thread);
        policy.wake(thread, &attributes(urgency, 10, order));
    }
}

/// Who runs, and gives way; so often.
fn turns(policy: &mut impl Policy, count: usize) -> Vec<ThreadId> {
    let now = Instant::from_ticks(500);
    let mut who = Vec::new();
    for _ in 0..count {
        let Some(thread) = policy.pick(now).entity else {
            break;
        };
        who.push(thread);
        // Every other turn in one step, where the policy can: it names the thread that runs next.
        let next = (who.len() % 2 == 0).then(|| policy.yield_to_next(thread));
        match next.flatten() {
            Some(next) => assert_eq!(policy.pick(now).entity, Some(next)),
            None => {
                policy.charge(thread, Work::from_ticks(1));
                policy.yield_now(thread);
                let _ = policy.pick(now);
            }
        }
    }
    who
}

fn equals_take_turns(mut policy: impl Policy) {
    begin(&mut policy);
    assert_eq!(turns(&mut policy, 7), [A, B, C, A, B, C, A]);
    // Somebody more urgent takes over, gives way to nobody, and leaves the order as it was.
    policy.wake(FIRST, &attributes(3, 20, 4));
    assert_eq!(turns(&mut policy, 2), [FIRST, FIRST]);
    policy.block(FIRST);
    // Who comes later queues behind them, and who leaves is not missed.
    policy.wake(LATER, &attributes(2, 600, 5));
    policy.block(C);
    assert_eq!(turns(&mut policy, 5), [B, A, LATER, B, A]);
    for thread in [A, B, LATER] {
        policy.block(thread);
    }
    assert_eq!(turns(&mut policy, 2), [LAST, LAST]);
}

#[test]
fn equals_take_turns_when_they_yield_and_nobody_else_is_let_in() {
    equals_take_turns(FixedPriority::new(6));
    equals_take_turns(EarliestDeadlineFirst::new(6));
}

#[test]
fn who_began_gives_way_to_its_equals_also_where_nobody_is_preempted() {
    let mut policy = FixedPriority::non_preemptive(6);
    begin(&mut policy);
    assert_eq!(turns(&mut policy, 4), [A, B, C, A]);
}

#[test]
fn a_thread_that_becomes_ready_again_has_its_place_by_release_again() {
    let mut policy = FixedPriority::new(6);
    begin(&mut policy);
    assert_eq!(turns(&mut policy, 1), [A]);
    policy.block(A);
    policy.wake(A, &attributes(2, 10, 0));
    assert_eq!(turns(&mut policy, 2), [A, B]);
}

#[test]
fn first_come_first_served_gives_way_to_nobody() {
    let mut policy = Fifo::new(6);
    begin(&mut policy);
    assert_eq!(turns(&mut policy, 3), [A, A, A]);
}

/// `A` runs and yields in the very entry in which somebody more urgent joins.
fn yields_late(mut policy: impl Policy) {
    begin(&mut policy);
    let now = Instant::from_ticks(500);
    assert_eq!(policy.pick(now).entity, Some(A));
    policy.charge(A, Work::from_ticks(1));
    policy.wake(FIRST, &attributes(3, 20, 4));
    policy.yield_now(A);
    assert_eq!(policy.pick(now).entity, Some(FIRST));
    policy.block(FIRST);
    assert_eq!(turns(&mut policy, 4), [B, C, A, B]);
}

#[test]
fn a_yield_counts_although_somebody_more_urgent_is_ready() {
    yields_late(FixedPriority::new(6));
    yields_late(EarliestDeadlineFirst::new(6));
    yields_late(FixedPriority::non_preemptive(6));
}

#[test]
fn new_attributes_or_a_new_budget_end_the_turn_that_was_given() {
    let mut policy = FixedPriority::new(6);
    begin(&mut policy);
    assert_eq!(turns(&mut policy, 2), [A, B]);
    policy.update(A, &attributes(2, 10, 0));
    assert_eq!(turns(&mut policy, 2), [A, C]);
    policy.renew(B, &attributes(2, 10, 1));
    assert_eq!(turns(&mut policy, 2), [B, A]);
}

/// Only equals are ready: the order of the queue alone decides.
fn a_yield_among_equals_takes_one_step(mut policy: impl Policy) {
    begin(&mut policy);
    assert_eq!(policy.yield_to_next(A), None, "`LAST` would come before");
    policy.block(LAST);
    let now = Instant::from_ticks(500);
    for (thread, next) in [(A, B), (B, C), (C, A)] {
        assert_eq!(policy.pick(now).entity, Some(thread));
        assert_eq!(policy.yield_to_next(thread), Some(next));
    }
    assert_eq!(policy.yield_to_next(B), None, "it is not the first");
    assert_eq!(turns(&mut policy, 5), [A, B, C, A, B]);
    for thread in [A, B] {
        policy.block(thread);
    }
    assert_eq!(policy.yield_to_next(C), None, "nobody else is ready");
    assert_eq!(turns(&mut policy, 2), [C, C]);
}

#[test]
fn equals_yield_in_one_step_where_nobody_else_is_ready() {
    a_yield_among_equals_takes_one_step(FixedPriority::new(6));
    a_yield_among_equals_takes_one_step(EarliestDeadlineFirst::new(6));
}
