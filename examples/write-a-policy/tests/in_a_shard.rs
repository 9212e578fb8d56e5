//! The policy in a shard: what a platform would be told, one decision after another.

use punctual_kern::{Capacity, Constraint, Event, Next, NoSink, Shard, Tree};
use punctual_model::{Class, Instant, Late, OnOverrun, Priority, Span, Work};
use write_a_policy::Turns;

/// A job of 250,000 ticks, at this priority.
fn job(priority: u32, order: u32) -> Constraint {
    Constraint {
        class: Class::Once {
            size: Work::from_ticks(250_000),
            relative_deadline: Span::from_ticks(1_000_000),
        },
        priority: Priority::new(priority),
        phase: Span::ZERO,
        late: Late::default(),
        on_overrun: OnOverrun::default(),
        order,
        until: Instant::MAX,
        fed: false,
    }
}

#[test]
fn equals_take_turns_and_the_urgent_goes_first() {
    let capacity = Capacity::for_threads(3);
    let mut shard = Shard::new(Tree::new(capacity, Turns::new(capacity.threads)));
    for (order, priority) in [(0, 1), (1, 1), (2, 9)] {
        shard.attach(job(priority, order)).expect("there is room");
    }
    let mut now = Instant::ZERO;
    let mut turns = Vec::new();
    while turns.len() < 6 {
        let decision = shard.handle(now, Event::Tick, &mut NoSink);
        let Next::Thread(thread) = decision.next else {
            break;
        };
        turns.push((now.ticks() / 1_000, thread.index()));
        now = decision.arm.expect("a turn or a budget ends");
    }
    let expected = [(0, 2), (100, 2), (200, 2), (250, 0), (350, 1), (450, 0)];
    assert_eq!(turns, expected);
}
