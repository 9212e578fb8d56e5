//! Effective priorities: a thread's own, or one that it inherits from a waiter or a ceiling.
//!
//! Priorities and deadlines compare among the users of one lock only, in the order that the policy
//! of their closest common scheduler keeps.

use punctual_model::{Instant, PolicyKind, Unit};
use punctual_order::{Attributes, Band};

/// The order in which a lock goes to its waiters, and by which its holder inherits from them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitOrder {
    /// Larger priorities first.
    Priority,
    /// Earlier deadlines first.
    Deadline,
    /// First come, first served among real-time work.
    Fifo,
}

impl WaitOrder {
    /// What this policy orders by.
    pub const fn of<U: Unit>(policy: PolicyKind<U>) -> WaitOrder {
        match policy {
            PolicyKind::FixedPriority { .. } => WaitOrder::Priority,
            PolicyKind::EarliestDeadlineFirst => WaitOrder::Deadline,
            PolicyKind::Fifo
            | PolicyKind::RoundRobin { .. }
            | PolicyKind::Tdm { .. }
            | PolicyKind::Planned => WaitOrder::Fifo,
        }
    }
}

/// A rank: smaller is more urgent.
pub(crate) type Rank = (bool, u64, Instant, u32);

/// Attributes with the band in which they count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Effective {
    pub(crate) band: Band,
    pub(crate) attributes: Attributes,
}

impl Effective {
    /// Where it ranks. Background work is ordered by priority under every policy.
    pub(crate) fn rank(&self, by: WaitOrder) -> Rank {
        let a = &self.attributes;
        let background = self.band == Band::Background;
        let by_priority = u64::from(u32::MAX - a.priority.number());
        match by {
            WaitOrder::Priority => (background, by_priority, a.release, a.order),
            _ if background => (background, by_priority, a.release, a.order),
            WaitOrder::Deadline => (background, a.absolute_deadline.ticks(), a.release, a.order),
            WaitOrder::Fifo => (background, 0, Instant::ZERO, 0),
        }
    }
}

/// What a thread inherits by the locks that it holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Inherited {
    pub(crate) by: WaitOrder,
    pub(crate) effective: Effective,
}

impl Inherited {
    /// Whether it is more urgent than the thread is by itself.
    #[inline]
    pub(crate) fn goes_before(&self, own: Effective) -> bool {
        self.effective.rank(self.by) < own.rank(self.by)
    }

    /// The more urgent of the two.
    pub(crate) fn or_own(&self, own: Effective) -> Effective {
        if self.goes_before(own) {
            self.effective
        } else {
            own
        }
    }

    /// The most urgent of several.
    pub(crate) fn most(one: Option<Inherited>, other: Inherited) -> Option<Inherited> {
        match one {
            Some(one) if one.effective.rank(one.by) <= other.effective.rank(one.by) => Some(one),
            _ => Some(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_model::Priority;

    fn effective(band: Band, priority: u32, deadline: u64, order: u32) -> Effective {
        let attributes = Attributes {
            priority: Priority::new(priority),
            absolute_deadline: Instant::from_ticks(deadline),
            release: Instant::ZERO,
            order,
        };
        Effective { band, attributes }
    }

    #[test]
    fn each_policy_compares_by_its_own_parameter() {
        let urgent = effective(Band::RealTime, 9, 100, 0);
        let early = effective(Band::RealTime, 1, 10, 1);
        assert!(urgent.rank(WaitOrder::Priority) < early.rank(WaitOrder::Priority));
        assert!(early.rank(WaitOrder::Deadline) < urgent.rank(WaitOrder::Deadline));
        assert_eq!(urgent.rank(WaitOrder::Fifo), early.rank(WaitOrder::Fifo));
    }

    #[test]
    fn background_work_is_below_all_real_time_work_and_ordered_by_priority() {
        let real = effective(Band::RealTime, 1, 1_000, 0);
        let (low, high) = (
            effective(Band::Background, 5, 10, 0),
            effective(Band::Background, 6, 20, 1),
        );
        for by in [WaitOrder::Priority, WaitOrder::Deadline] {
            assert!(real.rank(by) < high.rank(by) && high.rank(by) < low.rank(by));
        }
    }

    #[test]
    fn what_is_inherited_counts_only_where_it_is_more_urgent() {
        let inherited = Inherited {
            by: WaitOrder::Deadline,
            effective: effective(Band::RealTime, 1, 50, 0),
        };
        let (early, late) = (
            effective(Band::RealTime, 1, 40, 1),
            effective(Band::RealTime, 1, 60, 1),
        );
        assert_eq!(inherited.or_own(early), early);
        assert_eq!(inherited.or_own(late), inherited.effective);
    }
}
