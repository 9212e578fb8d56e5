//! The policies that a C program can name.

use punctual_model::{Ns, PolicyKind, Span};

use crate::status::punctual_status as Status;

/// The policy that decides on a CPU: the values of `policy`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum punctual_policy {
    /// The earliest absolute deadline first.
    PUNCTUAL_EARLIEST_DEADLINE = 0,
    /// The highest priority first, with preemption.
    PUNCTUAL_FIXED_PRIORITY = 1,
    /// Every thread in turn, for `timeslice_ns` at most.
    PUNCTUAL_ROUND_ROBIN = 2,
    /// First come, first served, without preemption.
    PUNCTUAL_FIFO = 3,
    /// The highest priority first; a running thread goes on until it waits or its job is done.
    PUNCTUAL_FIXED_PRIORITY_UNPREEMPTED = 4,
}

/// One of `punctual_policy`.
pub(crate) fn policy(policy: u32, timeslice_ns: u64) -> Result<PolicyKind<Ns>, Status> {
    let timeslice = Span::from_ns(timeslice_ns);
    let policy = match (policy, timeslice_ns) {
        (0, 0) => PolicyKind::EarliestDeadlineFirst,
        (1, 0) => PolicyKind::FixedPriority { preemptive: true },
        (2, 1..) => PolicyKind::RoundRobin { timeslice },
        (3, 0) => PolicyKind::Fifo,
        (4, 0) => PolicyKind::FixedPriority { preemptive: false },
        _ => return Err(Status::PUNCTUAL_INVALID),
    };
    Ok(policy)
}
