//! Spreading work that has not started: an idle CPU looks at every other queue, once.
//!
//! Source: Slite paper §VII.B: a random queue that has not been tried yet, until none is left. No
//! job waits unstarted while a CPU has looked everywhere and found nothing (work conservation), and
//! no queue is tried twice (a bound). Gives up: the constant cost of two looks.

/// From which CPU the idle CPU `me` takes a job: the first other that holds one that has not
/// started, from a random one on, going around once. O(CPUs).
///
/// `queues` is how many jobs wait unstarted on each CPU, `draw` a random number, any: idle CPUs
/// that begin at different places do not crowd at the same queue. `None`: nothing waits anywhere
/// else.
pub fn every_queue_once(queues: &[usize], me: usize, draw: u64) -> Option<usize> {
    let count = queues.len();
    let start = draw.checked_rem(u64::try_from(count).ok()?)?;
    let start = usize::try_from(start).ok()?;
    (0..count)
        .map(|step| (start + step) % count)
        .find(|&cpu| cpu != me && queues[cpu] > 0)
}
