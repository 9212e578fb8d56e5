//! Spreading work that has not started: an idle CPU looks at two others, drawn at random.
//!
//! Source: Nautilus paper §3.4: idle CPUs steal aperiodic threads by the power of two random
//! choices (Mitzenmacher 2001). The longer of two random queues is nearly as good as the longest of
//! all, and two looks are a constant cost. Gives up: work conservation, since both looks may find
//! nothing while a third queue is long.

/// From which CPU the idle CPU `me` takes a job: the longer of two different others that hold at
/// least one that has not started. O(1).
///
/// `draws` are two random numbers, any; `queues` is how many jobs wait unstarted on each CPU.
/// `None`: nothing was found, or there is no other CPU. Ties go to the first draw.
pub fn two_random_choices(queues: &[usize], me: usize, draws: [u64; 2]) -> Option<usize> {
    let others = queues.len().checked_sub(1)?;
    // The n-th of the CPUs without `skipped`, in order.
    let without = |n: usize, skipped: usize| n + usize::from(n >= skipped);
    let first = without(draw(draws[0], others)?, me);
    let waits = |cpu: usize| queues.get(cpu).copied().unwrap_or(0);
    let mut best = first;
    if let Some(n) = others.checked_sub(1).and_then(|rest| draw(draws[1], rest)) {
        let (low, high) = (first.min(me), first.max(me));
        let second = without(without(n, low), high);
        if waits(second) > waits(first) {
            best = second;
        }
    }
    (waits(best) > 0).then_some(best)
}

/// A number below `n` from a random one.
fn draw(random: u64, n: usize) -> Option<usize> {
    let n = u64::try_from(n).ok()?;
    usize::try_from(random.checked_rem(n)?).ok()
}
