//! From the keys of a policy to the policy.

use punctual_model::{Ns, PolicyKind, Span};

use crate::record::Record;

/// The longest turn under round robin that is not told otherwise.
const DEFAULT_TIMESLICE: Span<Ns> = Span::from_ms(10);

/// The policy of a CPU or a scheduler.
pub(super) fn lower_policy(record: &Record) -> PolicyKind<Ns> {
    match record.word("policy") {
        Some("round-robin") => PolicyKind::RoundRobin {
            timeslice: record.span("timeslice").unwrap_or(DEFAULT_TIMESLICE),
        },
        Some("fixed-priority") => PolicyKind::FixedPriority {
            preemptive: record.flag("preemptive").unwrap_or(true),
        },
        Some("edf") => PolicyKind::EarliestDeadlineFirst,
        Some("planned") => PolicyKind::Planned,
        Some("tdm") if has_policy(record) => PolicyKind::Tdm {
            frame: record.span("frame").unwrap_or_default(),
            scheduling: record.span("scheduling-time").unwrap_or_default(),
        },
        // Also for a broken section, whose mistake is known: nothing follows from this policy.
        _ => PolicyKind::Fifo,
    }
}

/// Whether the policy is known, so that something can follow from it for what stands below.
pub(super) fn has_policy(record: &Record) -> bool {
    match record.word("policy") {
        Some("tdm") => record.duration("frame").is_some(),
        word => word.is_some(),
    }
}
