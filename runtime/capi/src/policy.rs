//! The policies that a C program can name, and those that it brings.

use ::punctual_thread::Runtime;
use punctual_linux::{ForeignMaker, PolicyMaker, clock_rate};
use punctual_model::{Fallback, Ns, PolicyKind, Scheduler, Span, Trust};

use crate::edge::is_place;
use crate::status::punctual_status as Status;

/// The policy that decides on a CPU: the values of `policy`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum punctual_policy_kind {
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
    /// Each of its schedulers in its own slots of a frame of `timeslice_ns`, which repeats, and
    /// nobody in those that their owner leaves idle (`punctual_slot`). It has no threads itself:
    /// the first thread of such a CPU is in the care of its first branch that divides no time and
    /// has no policy of the program's.
    PUNCTUAL_TIME_DIVISION = 5,
}

/// One of `punctual_policy_kind`.
pub(crate) fn policy(policy: u32, timeslice_ns: u64) -> Result<PolicyKind<Ns>, Status> {
    let timeslice = Span::from_ns(timeslice_ns);
    let policy = match (policy, timeslice_ns) {
        (0, 0) => PolicyKind::EarliestDeadlineFirst,
        (1, 0) => PolicyKind::FixedPriority { preemptive: true },
        (2, 1..) => PolicyKind::RoundRobin { timeslice },
        (3, 0) => PolicyKind::Fifo,
        (4, 0) => PolicyKind::FixedPriority { preemptive: false },
        (5, 1..) => PolicyKind::Tdm {
            frame: timeslice,
            scheduling: Span::ZERO,
        },
        _ => return Err(Status::PUNCTUAL_INVALID),
    };
    Ok(policy)
}

/// The same, with the constant time that the scheduler has between two slots.
pub(crate) fn with_scheduling(policy: PolicyKind<Ns>, scheduling_ns: u64) -> PolicyKind<Ns> {
    match policy {
        PolicyKind::Tdm { frame, .. } => PolicyKind::Tdm {
            frame,
            scheduling: Span::from_ns(scheduling_ns),
        },
        other => other,
    }
}

/// As `punctual_policy.h` has it; null: none.
///
/// cbindgen:ignore
pub type punctual_policy_maker = Option<PolicyMaker>;

/// A policy of the program's own, for a branch: `policies` of `punctual_options`. The branch
/// decides on its own supply then, and has threads only. A policy that is slow, wrong or endless,
/// or crashes, costs nobody but its own threads.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct punctual_own_policy {
    /// The branch: its place in `schedulers`, counted from 1.
    pub branch: u32,
    /// So many periods of its supply may pass without a lawful answer before its threads go on
    /// under `fallback`; at once when it crashes. 0: it has none.
    pub fallback_after: u32,
    /// One of `punctual_policy_kind`.
    pub fallback: u32,
    /// For `PUNCTUAL_ROUND_ROBIN` the longest turn, else 0.
    pub fallback_timeslice_ns: u64,
    /// Makes it, once, during the call that starts the run (`punctual_policy.h`).
    pub make: punctual_policy_maker,
}

/// Has branches of a tree decide by policies of the program's own.
///
/// # Safety
/// `from` is null with a `count` of 0, or to that many; each function keeps the contract of
/// `punctual_policy.h`.
pub(crate) unsafe fn with_policies(
    mut runtime: Runtime,
    tree: &mut [Scheduler],
    (from, count): (*const punctual_own_policy, usize),
) -> Result<Runtime, Status> {
    if from.is_null() && count > 0 {
        return Err(Status::PUNCTUAL_INVALID);
    }
    for place in 0..count {
        let own = from.wrapping_add(place);
        is_place(own)?;
        // SAFETY: one of as many (the caller).
        let own = unsafe { own.read() };
        let make = own.make.ok_or(Status::PUNCTUAL_INVALID)?;
        // SAFETY: as the caller vouches.
        let maker = unsafe { ForeignMaker::of(make) };
        let branch = usize::try_from(own.branch)
            .ok()
            .and_then(|n| n.checked_sub(1));
        let branch = branch.and_then(|branch| tree.get_mut(branch));
        let branch = branch.ok_or(Status::PUNCTUAL_INVALID)?;
        branch.trust = Trust::OwnTime;
        branch.fallback = fallback(&own)?;
        runtime = runtime.try_policy(&branch.name, move |threads| {
            maker.make(threads, clock_rate().frequency)
        });
    }
    Ok(runtime)
}

fn fallback(own: &punctual_own_policy) -> Result<Option<Fallback>, Status> {
    let (kind, timeslice) = (own.fallback, own.fallback_timeslice_ns);
    match own.fallback_after {
        0 if kind == 0 && timeslice == 0 => Ok(None),
        0 => Err(Status::PUNCTUAL_INVALID),
        after => Ok(Some(Fallback {
            policy: policy(kind, timeslice)?,
            after,
        })),
    }
}
