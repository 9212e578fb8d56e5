//! How urgent a thread is, by its own parameters and by what others wait for.
//!
//! A resource can make its holder more urgent than it is by itself. The core compares urgencies
//! only among the users of one resource, in the order that the policy of their scheduler keeps.

use punctual_model::{Instant, PolicyKind, Unit};

use crate::hierarchy::Band;
use crate::policy::Attributes;

/// By what the users of a resource are ordered among each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Urgency {
    /// Larger priorities first.
    Priority,
    /// Earlier deadlines first.
    Deadline,
    /// In turn: no thread is more urgent than another.
    Turn,
}

impl Urgency {
    /// What this policy orders by.
    pub const fn of<U: Unit>(policy: PolicyKind<U>) -> Urgency {
        match policy {
            PolicyKind::FixedPriority { .. } => Urgency::Priority,
            PolicyKind::EarliestDeadlineFirst => Urgency::Deadline,
            PolicyKind::Fifo | PolicyKind::RoundRobin { .. } | PolicyKind::Tdm { .. } => {
                Urgency::Turn
            }
        }
    }
}

/// A rank: smaller is more urgent.
pub(crate) type Rank = (bool, u64, Instant, u32);

/// Attributes with the band in which they count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Standing {
    pub(crate) band: Band,
    pub(crate) attributes: Attributes,
}

impl Standing {
    /// Where it ranks. Background work is ordered by priority under every policy.
    pub(crate) fn rank(&self, by: Urgency) -> Rank {
        let a = &self.attributes;
        let background = self.band == Band::Background;
        let by_priority = u64::from(u32::MAX - a.priority.number());
        match by {
            Urgency::Priority => (background, by_priority, a.release, a.order),
            _ if background => (background, by_priority, a.release, a.order),
            Urgency::Deadline => (background, a.absolute_deadline.ticks(), a.release, a.order),
            Urgency::Turn => (background, 0, Instant::ZERO, 0),
        }
    }
}

/// What resources lend to a thread that holds them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Boost {
    pub(crate) by: Urgency,
    pub(crate) standing: Standing,
}

impl Boost {
    /// The more urgent of the two.
    pub(crate) fn or_own(&self, own: Standing) -> Standing {
        if self.standing.rank(self.by) < own.rank(self.by) {
            self.standing
        } else {
            own
        }
    }

    /// The most urgent of several.
    pub(crate) fn most(one: Option<Boost>, other: Boost) -> Option<Boost> {
        match one {
            Some(one) if one.standing.rank(one.by) <= other.standing.rank(one.by) => Some(one),
            _ => Some(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_model::Priority;

    fn standing(band: Band, priority: u32, deadline: u64, order: u32) -> Standing {
        let attributes = Attributes {
            priority: Priority::new(priority),
            absolute_deadline: Instant::from_ticks(deadline),
            release: Instant::ZERO,
            order,
        };
        Standing { band, attributes }
    }

    #[test]
    fn each_policy_compares_by_its_own_parameter() {
        let urgent = standing(Band::RealTime, 9, 100, 0);
        let early = standing(Band::RealTime, 1, 10, 1);
        assert!(urgent.rank(Urgency::Priority) < early.rank(Urgency::Priority));
        assert!(early.rank(Urgency::Deadline) < urgent.rank(Urgency::Deadline));
        assert_eq!(urgent.rank(Urgency::Turn), early.rank(Urgency::Turn));
    }

    #[test]
    fn background_work_is_below_all_real_time_work_and_ordered_by_priority() {
        let real = standing(Band::RealTime, 1, 1_000, 0);
        let (low, high) = (
            standing(Band::Background, 5, 10, 0),
            standing(Band::Background, 6, 20, 1),
        );
        for by in [Urgency::Priority, Urgency::Deadline] {
            assert!(real.rank(by) < high.rank(by) && high.rank(by) < low.rank(by));
        }
    }

    #[test]
    fn a_boost_counts_only_where_it_is_more_urgent() {
        let boost = Boost {
            by: Urgency::Deadline,
            standing: standing(Band::RealTime, 1, 50, 0),
        };
        let (early, late) = (
            standing(Band::RealTime, 1, 40, 1),
            standing(Band::RealTime, 1, 60, 1),
        );
        assert_eq!(boost.or_own(early), early);
        assert_eq!(boost.or_own(late), boost.standing);
    }
}
