//! The memory of a thread in the core, with its places in all tables. Alone in its process.

use std::fs;

use punctual_kern::{Capacity, Constraint, Event, NoSink, Shard, Tree};
use punctual_model::{Class, Instant, PolicyKind, Priority, Span, Work};
use punctual_policy::AnyPolicy;

/// The most that a thread may have in memory.
const MOST: usize = 400;

/// Bytes of this process that are in memory.
fn resident() -> usize {
    let all = fs::read_to_string("/proc/self/statm").expect("what the kernel tells");
    let pages = all.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    let pages: usize = pages.expect("a number of pages");
    pages * 4_096
}

/// Bytes per thread of a shard with so many periodic threads, all of which have been released.
fn of_each(threads: u32, policy: PolicyKind) -> usize {
    let before = resident();
    let capacity = Capacity::for_threads(threads as usize);
    let policy = AnyPolicy::new(policy, capacity.entities(), &[]);
    let mut shard = Shard::new(Tree::new(capacity, policy));
    let period = Span::from_ticks(u64::from(threads) * 4);
    for order in 0..threads {
        let class = Class::Periodic {
            period,
            wcet: Work::from_ticks(2),
            relative_deadline: period,
        };
        let constraint = Constraint {
            class,
            priority: Priority::new(order.wrapping_mul(2_654_435_761) % threads),
            order,
            ..Constraint::default()
        };
        shard.attach(constraint).expect("room");
    }
    let mut arm = Some(Instant::ZERO);
    while arm == Some(Instant::ZERO) {
        arm = shard.handle(Instant::ZERO, Event::Tick, &mut NoSink).arm;
    }
    assert_eq!(shard.unsettled(), u64::from(threads), "all are released");
    resident().saturating_sub(before) / threads as usize
}

#[test]
fn a_thread_of_the_core_has_at_most_400_bytes_in_memory() {
    let fixed_priority = PolicyKind::FixedPriority { preemptive: true };
    for policy in [fixed_priority, PolicyKind::EarliestDeadlineFirst] {
        // The code of the core comes into memory before it counts.
        let _few = of_each(64, policy);
        // A debug build looks at every thread after every entry.
        let each = of_each(10_000, policy);
        println!("{each} bytes per thread, {}", policy.name());
        assert!(each > 256, "{each}: this sees no threads");
        assert!(each <= MOST, "{each} bytes per thread");
    }
}
