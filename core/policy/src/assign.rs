//! Priorities from periods and deadlines: rate-monotonic and deadline-monotonic.
//!
//! Sources: Liu and Layland 1973 (shorter period first: optimal when deadlines are periods); Leung
//! and Whitehead 1982 (shorter relative deadline first: optimal when deadlines are at most periods,
//! for tasks released together). Give up: sets with deadlines beyond periods, with jitter or with
//! offsets, for which Audsley's search (in the analysis) finds more.

use alloc::vec::Vec;

use punctual_model::{Ns, Priority, Span, Task};

/// Assigns priorities so that a shorter period (or separation) is more urgent. O(n log n).
///
/// Tasks without one (work that arrives once, or without deadline) come below all others; equals
/// in the order given. The lowest priority is 1.
pub fn rate_monotonic(tasks: &mut [Task]) {
    assign(tasks, |task| task.class.min_separation());
}

/// Assigns priorities so that a shorter relative deadline is more urgent. O(n log n).
///
/// As [`rate_monotonic`] otherwise.
pub fn deadline_monotonic(tasks: &mut [Task]) {
    assign(tasks, |task| task.class.relative_deadline());
}

fn assign(tasks: &mut [Task], key: impl Fn(&Task) -> Option<Span<Ns>>) {
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|&index| (key(&tasks[index]).unwrap_or(Span::MAX), index));
    for (rank, index) in (1_u32..).zip(order.into_iter().rev()) {
        tasks[index].priority = Priority::new(rank);
    }
}
