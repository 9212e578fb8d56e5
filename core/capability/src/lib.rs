//! Temporal capabilities: slices of time that schedulers hand to each other.
//!
//! ```text
//!   mint            delegate               delegate
//!   ----> root's 10 --------> a's 4, as 7 --------> c's 1, as (7 at root, 2 at a)
//!                   --------> b's 3, as 9             |
//!                               ^-----------------------'  transfer: root sees it
//! ```
//!
//! A capability is a slice of time and one urgency per scheduler that has delegated it. Executing
//! expends the time; the urgencies decide preemption between work of schedulers that do not trust
//! each other, without asking any of them. Source: Slite paper §V.A; Gadepalli, Gifford, Baier,
//! Kelly and Parmer 2017. Their hole, a transfer between descendants that a common delegator cannot
//! see, is closed here: a transfer without room in the ledger of whom it concerns is refused.
//!
//! INV-TIME: the time that all capabilities hold, and the time expended, add up to the time minted.
//! Every operation keeps that, and each is done whole or refused whole.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod table;

use core::fmt;

use punctual_model::Work;
use punctual_order::NodeId;

pub use table::Capabilities;

/// Most delegations between a minted capability and one delegated from it.
pub const MAX_DELEGATIONS: usize = 8;

/// A capability: its place in the table and the generation of that place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CapabilityId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// Time went from one capability to another that is not delegated from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// The scheduler that delegated to both and must see it; `None`: they were minted apart, so the
    /// one that mints.
    pub seen_by: Option<NodeId>,
    /// The giver.
    pub from: NodeId,
    /// The receiver.
    pub to: NodeId,
    /// The amount.
    pub time: Work,
}

/// Why an operation was refused; nothing has changed then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CapabilityError {
    /// It was revoked, or never was.
    Stale(CapabilityId),
    /// The caller does not hold it, nor anything that it was delegated from.
    NotHeld(CapabilityId),
    /// It has less time than asked for.
    TooLittle {
        /// Its time.
        left: Work,
    },
    /// The table is full (capacity given at construction).
    NoRoom,
    /// More than [`MAX_DELEGATIONS`] schedulers would have a say.
    TooManyDelegations,
    /// Transfers wait to be seen, and there is no room for one more.
    LedgerFull,
}

impl fmt::Display for CapabilityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CapabilityError::Stale(_) => write!(f, "the capability was revoked, or never was"),
            CapabilityError::NotHeld(_) => write!(f, "the capability is somebody else's"),
            CapabilityError::TooLittle { left } => {
                write!(f, "the capability has {} ticks left", left.ticks())
            }
            CapabilityError::NoRoom => write!(f, "no room for another capability"),
            CapabilityError::TooManyDelegations => {
                write!(f, "more than {MAX_DELEGATIONS} schedulers would have a say")
            }
            CapabilityError::LedgerFull => write!(f, "transfers wait to be seen"),
        }
    }
}

impl core::error::Error for CapabilityError {}

/// The urgency of a capability to each scheduler that delegated it; larger is more urgent.
/// Wide enough for instants, so that a scheduler may order by deadline (Slite paper §V.A).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Opinions {
    list: [Option<(NodeId, u64)>; MAX_DELEGATIONS],
}

impl Opinions {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (NodeId, u64)> + '_ {
        self.list.iter().flatten().copied()
    }

    pub(crate) fn of(&self, scheduler: NodeId) -> Option<u64> {
        let mut opinions = self.iter();
        let found = opinions.find(|(who, _)| *who == scheduler);
        found.map(|(_, urgency)| urgency)
    }

    /// One more has a say, or the same one thinks less of it now.
    pub(crate) fn join(&mut self, scheduler: NodeId, urgency: u64) -> bool {
        for (who, old) in self.list.iter_mut().flatten() {
            if *who == scheduler {
                *old = (*old).min(urgency);
                return true;
            }
        }
        match self.list.iter_mut().find(|opinion| opinion.is_none()) {
            Some(place) => {
                *place = Some((scheduler, urgency));
                true
            }
            None => false,
        }
    }

    /// Whether everybody who has a say in both finds this one at least as urgent, and somebody
    /// more.
    pub(crate) fn outrank(&self, other: &Opinions) -> bool {
        let mut higher = false;
        for (scheduler, urgency) in self.iter() {
            match other.of(scheduler) {
                Some(theirs) if urgency < theirs => return false,
                Some(theirs) => higher |= urgency > theirs,
                None => {}
            }
        }
        higher
    }
}
