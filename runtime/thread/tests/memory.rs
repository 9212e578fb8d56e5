//! The memory of a thread that waits, with a stack of 16 KiB. Alone in its process.

mod common;

use std::fs;
use std::sync::Arc;

use common::{FIXED, test_cpu};
use punctual_model::Machine;
use punctual_thread::sync::Semaphore;
use punctual_thread::{Constraint, Runtime, thread};

const DECLARED: usize = 16 * 1024;

/// The most that such a thread may have in memory, stack and all.
const MOST: usize = 32_000;

/// Bytes of this process that are in memory.
fn resident() -> usize {
    let all = fs::read_to_string("/proc/self/statm").expect("what the kernel tells");
    let pages = all.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    let pages: usize = pages.expect("a number of pages");
    pages * 4_096
}

/// Bytes in memory while so many threads wait.
fn with_waiting(threads: usize) -> usize {
    let runtime = Runtime::on(test_cpu(), FIXED)
        .terms(Machine::default())
        .threads(threads + 1)
        .stack_bytes(DECLARED)
        .main(Constraint::aperiodic(5))
        .real_time(false);
    let finished = runtime.start(move || {
        let permits = Arc::new(Semaphore::new(0));
        let wait = |_| {
            let permits = Arc::clone(&permits);
            let waits = move || permits.acquire().is_ok();
            thread::spawn("waits", Constraint::aperiodic(9), waits).expect("a thread")
        };
        let all: Vec<_> = (0..threads).map(wait).collect();
        let resident = resident();
        for _ in 0..threads {
            permits.release().expect("in a run");
        }
        let ended = all.into_iter().filter_map(|thread| thread.join().ok());
        assert_eq!(ended.filter(|&got| got).count(), threads);
        resident
    });
    finished.expect("a run").result
}

#[test]
fn a_thread_with_a_stack_of_16_kib_has_at_most_32_kb_in_memory() {
    let (few, many) = (100, 1_100);
    // What is made once, and what the allocator keeps, is there before.
    with_waiting(few);
    let before = with_waiting(few);
    let each = with_waiting(many).saturating_sub(before) / (many - few);
    println!("{each} bytes per thread");
    assert!(each > DECLARED, "{each}: this sees no stacks");
    assert!(each <= MOST, "{each} bytes per thread");
}
