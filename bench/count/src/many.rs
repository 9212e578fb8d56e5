//! Many threads in one core, to count or to time what an event costs among them.

use punctual_kern::{Capacity, Constraint, Shard, Tree};
use punctual_model::{Class, CpuId, Frequency, PolicyKind, Priority, Span, Task, Work};
use punctual_policy::AnyPolicy;

/// The period of so many threads, in ticks: all of them complete within it.
#[must_use]
pub fn period(threads: u32) -> u64 {
    u64::from(threads) * 4 + 1_000
}

/// Priorities and deadlines in no particular order, so that the queues have work to do.
#[must_use]
pub fn constraint(index: u32, threads: u32, period: u64) -> Constraint {
    let shuffled = index.wrapping_mul(2_654_435_761) % threads;
    let class = Class::Periodic {
        period: Span::from_ns(period),
        wcet: Work::from_ns(2),
        relative_deadline: Span::from_ns(period - u64::from(shuffled)),
    };
    let mut task = Task::new("", CpuId(0), class);
    task.priority = Priority::new(shuffled);
    Constraint::of_task(&task, index).in_ticks(Frequency::NANOSECONDS)
}

/// The shard of one CPU with so many threads, which are all released at the same instants.
///
/// # Errors
/// Never, as long as the constraints have a meaning.
pub fn shard(kind: PolicyKind, threads: u32) -> Result<Shard<AnyPolicy>, String> {
    let capacity = Capacity::for_threads(threads as usize);
    let policy = AnyPolicy::new(kind, capacity.entities(), &[]);
    let mut shard = Shard::new(Tree::new(capacity, policy));
    for index in 0..threads {
        let constraint = constraint(index, threads, period(threads));
        let attached = shard.attach(constraint);
        attached.map_err(|error| error.to_string())?;
    }
    Ok(shard)
}
