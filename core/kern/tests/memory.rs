//! The memory of a thread in the core, with its places in all tables. Alone in its process.

use std::env;
use std::fs;
use std::process::Command;

use punctual_kern::{Capacity, Constraint, Event, NoSink, Shard, Tree};
use punctual_model::{Class, Instant, PolicyKind, Priority, Span, Work};
use punctual_policy::AnyPolicy;

/// The most that a thread may have in memory.
const MOST: usize = 336;

/// Bytes of this process that are in memory and of no file. Counted page by page: the sum that the
/// kernel keeps may be off by many.
fn resident() -> usize {
    let all = fs::read_to_string("/proc/self/smaps_rollup").expect("what the kernel tells");
    let mut words = all.split_whitespace();
    let _ = words.find(|word| *word == "Anonymous:");
    let kib: usize = words.next().and_then(|n| n.parse().ok()).expect("a number");
    kib * 1_024
}

/// Bytes of a shard with so many periodic threads, all of which have been released.
fn of_all(threads: u32, policy: PolicyKind) -> usize {
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
    resident().saturating_sub(before)
}

/// Says of which policy a process is to measure.
const POLICY: &str = "MEMORY_OF_POLICY";

#[test]
fn a_thread_of_the_core_has_at_most_336_bytes_in_memory() {
    let policies = [
        PolicyKind::FixedPriority { preemptive: true },
        PolicyKind::EarliestDeadlineFirst,
    ];
    let Ok(asked) = env::var(POLICY) else {
        // Memory that was given back and is used again would not count: a process for each.
        for policy in policies {
            let program = env::current_exe().expect("this program");
            let mut child = Command::new(program);
            let child = child.arg("--nocapture").env(POLICY, policy.name());
            // Every table comes from the system, as those of more threads do.
            let child = child.env("GLIBC_TUNABLES", "glibc.malloc.mmap_threshold=4096");
            let status = child.status().expect("it starts");
            assert!(status.success(), "{}", policy.name());
        }
        return;
    };
    let policy = policies.into_iter().find(|policy| policy.name() == asked);
    let policy = policy.expect("one of them");
    // All that is in memory once comes there before it counts.
    let _once = of_all(5_000, policy);
    // A page of each table does not depend on how many threads there are. A debug build looks at
    // every thread after every entry.
    let (some, twice) = (of_all(5_000, policy), of_all(10_000, policy));
    let each = (twice - some) / 5_000;
    println!("{each} bytes per thread, {}", policy.name());
    assert!(each > 256, "{each}: this sees no threads");
    assert!(each <= MOST, "{each} bytes per thread");
}
