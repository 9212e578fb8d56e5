//! The properties, by name.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a history can show to be broken. Its name is the same everywhere: here, in `Display`, in
/// the JSON and in the guide.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Property {
    /// A ready thread that nobody will ever pick again.
    LostThread,
    /// A thread that stands in the ready set twice: it left, and is still there.
    Duplicate,
    /// A pick that is not ready: it never woke, it has left, or its id is another thread's.
    UnknownThread,
    /// Somebody more urgent was ready (claimed by [`crate::Order`]).
    PriorityOrder,
    /// Among equally urgent threads the wrong one (claimed by [`crate::Ties::Release`]).
    OrderAmongEquals,
    /// Two turns for one thread while an equal waited for its first, or turns without end (claimed
    /// by [`crate::Ties::Turns`]).
    FairTurns,
    /// A job that had begun was preempted (claimed by `preemptive: false`).
    NoPreemption,
    /// The processor idles although somebody is ready (claimed, or without saying until when).
    WorkConservation,
    /// Two policies that were told the same decide differently.
    Determinism,
    /// Asked twice without a change in between, it answers differently; or it names the thread
    /// that is next after a yield, and picks another.
    StablePick,
    /// A thread executes without budget, or beyond the one that is claimed.
    BudgetConservation,
    /// A wake-up and a block between the same two picks are not taken in their order.
    WakeBeforeBlock,
    /// A pick that holds until an instant that has come already: the core would never get out.
    TurnEnd,
    /// An illegal answer of a child scheduler is not contained: others run at other instants than
    /// after lawful ones.
    IllegalChildAnswer,
    /// It panics on calls that its contract allows.
    Panic,
    /// It does not come back from a call.
    DoesNotReturn,
}

impl Property {
    /// All of them.
    pub const ALL: [Property; 16] = [
        Property::LostThread,
        Property::Duplicate,
        Property::UnknownThread,
        Property::PriorityOrder,
        Property::OrderAmongEquals,
        Property::FairTurns,
        Property::NoPreemption,
        Property::WorkConservation,
        Property::Determinism,
        Property::StablePick,
        Property::BudgetConservation,
        Property::WakeBeforeBlock,
        Property::TurnEnd,
        Property::IllegalChildAnswer,
        Property::Panic,
        Property::DoesNotReturn,
    ];

    /// Its name in output and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Property::LostThread => "lost-thread",
            Property::Duplicate => "duplicate",
            Property::UnknownThread => "unknown-thread",
            Property::PriorityOrder => "priority-order",
            Property::OrderAmongEquals => "order-among-equals",
            Property::FairTurns => "fair-turns",
            Property::NoPreemption => "no-preemption",
            Property::WorkConservation => "work-conservation",
            Property::Determinism => "determinism",
            Property::StablePick => "stable-pick",
            Property::BudgetConservation => "budget-conservation",
            Property::WakeBeforeBlock => "wake-before-block",
            Property::TurnEnd => "turn-end",
            Property::IllegalChildAnswer => "illegal-child-answer",
            Property::Panic => "panic",
            Property::DoesNotReturn => "does-not-return",
        }
    }

    /// What a policy that keeps it does, in one line.
    pub const fn promise(self) -> &'static str {
        match self {
            Property::LostThread => "every ready thread is picked in the end",
            Property::Duplicate => "a thread stands in the ready set once",
            Property::UnknownThread => "only ready threads are picked",
            Property::PriorityOrder => "nobody runs while somebody more urgent is ready",
            Property::OrderAmongEquals => "equals run by release, then by the order in the file",
            Property::FairTurns => "nobody has a second turn while an equal waits for its first",
            Property::NoPreemption => "a job that has begun runs until it blocks or completes",
            Property::WorkConservation => "nobody idles while somebody is ready",
            Property::Determinism => "equal calls give equal decisions",
            Property::StablePick => "without a change, picking again picks the same",
            Property::BudgetConservation => "nobody executes without budget",
            Property::WakeBeforeBlock => "a wake-up and a block count in the order they come in",
            Property::TurnEnd => "a choice holds at least until a later instant",
            Property::IllegalChildAnswer => {
                "an illegal answer of a child scheduler costs only its own supply"
            }
            Property::Panic => "no lawful call panics",
            Property::DoesNotReturn => "every call comes back",
        }
    }
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_json_has_the_same_names() {
        for property in Property::ALL {
            let json = serde_json::to_value(property).expect("a name");
            assert_eq!(json, property.name());
        }
    }
}
