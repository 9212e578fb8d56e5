//! The memory of a thread in the core, with its places in all tables. Alone in its process.

use std::env;
use std::fs;
use std::process::Command;

use punctual_kern::{Capacity, Constraint, Event, NoSink, Shard, Tree};
use punctual_model::{Class, Instant, PolicyKind, Priority, Span, Work};
use punctual_policy::AnyPolicy;

/// The most that a thread may have in memory.
const MOST: usize = 320;

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

const POLICIES: [PolicyKind; 2] = [
    PolicyKind::FixedPriority { preemptive: true },
    PolicyKind::EarliestDeadlineFirst,
];

/// Says of which policy and of how many threads a process is to measure.
const ASKED: &str = "MEMORY_OF";

/// Goes before the answer.
const ANSWER: &str = "bytes of all: ";

/// [`of_all`] in a process of its own: memory that was given back and is used again would not
/// count.
fn of_all_apart(threads: u32, policy: PolicyKind) -> usize {
    let mut child = Command::new(env::current_exe().expect("this program"));
    let child = child.arg("--nocapture");
    let child = child.env(ASKED, format!("{} {threads}", policy.name()));
    // Every table comes from the system, as those of more threads do.
    let child = child.env("GLIBC_TUNABLES", "glibc.malloc.mmap_threshold=4096");
    let output = child.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let answer = said.split_once(ANSWER).map(|(_, rest)| rest.lines().next());
    let bytes = answer.flatten().and_then(|bytes| bytes.parse().ok());
    bytes.unwrap_or_else(|| panic!("{}: {output:?}", policy.name()))
}

fn answer(asked: &str) {
    let (policy, threads) = asked.split_once(' ').expect("two words");
    let policy = POLICIES.into_iter().find(|known| known.name() == policy);
    let bytes = of_all(
        threads.parse().expect("a number"),
        policy.expect("one of them"),
    );
    println!("{ANSWER}{bytes}");
}

#[test]
fn a_thread_of_the_core_has_at_most_320_bytes_in_memory() {
    if let Ok(asked) = env::var(ASKED) {
        return answer(&asked);
    }
    // A huge page is in memory where a byte of it is used. This holds for the children, too.
    rustix::thread::disable_transparent_huge_pages(true).expect("the kernel is asked");
    for policy in POLICIES {
        // Pages that do not depend on how many threads there are go out of the difference; among
        // 10,000 there are more of them than among 20,000. A debug build looks at every thread
        // after every entry, so there are not more threads.
        let [some, more] = [20_000, 30_000].map(|threads| of_all_apart(threads, policy));
        let each = (more - some) / 10_000;
        println!("{each} bytes per thread, {}", policy.name());
        assert!(each > 256, "{each}: this sees no threads");
        assert!(each <= MOST, "{each} bytes per thread, {}", policy.name());
    }
}
