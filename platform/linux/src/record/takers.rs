//! The threads of the machine that took time from a CPU of a run, by name where the kernel tells.

use std::collections::BTreeMap;

use punctual_model::Instant;

use crate::record::outcome::TakingThread;

/// A run notes so many of them per CPU.
pub(crate) const MOST_TAKERS: usize = 1_024;

/// A thread that an entry found to have had the CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub(crate) at: Instant,
    pub(crate) ns: u64,
    /// The kernel's number of the thread.
    pub(crate) thread: u32,
}

/// The same with names. The kernel tells the name of a thread as long as that lives.
pub(crate) fn named(takers: &[Taken]) -> Vec<TakingThread> {
    let mut names = BTreeMap::new();
    let of = |taken: &Taken| {
        let name = names.entry(taken.thread).or_insert_with_key(name_of);
        TakingThread {
            at: taken.at,
            ns: taken.ns,
            name: name.clone(),
        }
    };
    takers.iter().map(of).collect()
}

fn name_of(thread: &u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{thread}/comm"));
    name.map_or_else(
        |_| format!("thread {thread}"),
        |name| name.trim_end().into(),
    )
}
