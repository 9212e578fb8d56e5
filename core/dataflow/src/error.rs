//! Reasons for no answer: none of them says anything about the graph's speed

use core::fmt;

/// Why there is no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DataflowError {
    /// A number left its range.
    Overflow {
        /// The quantity that was computed.
        what: &'static str,
    },
    /// An iteration has too many firings.
    TooLarge {
        /// Firings of one iteration; `None`: more than 64 bits can count.
        firings: Option<u64>,
        /// The most that are analysed.
        most: u64,
    },
    /// A search did not end within its steps.
    TooLong {
        /// The search.
        what: &'static str,
        /// Its limit.
        limit: u64,
    },
    /// An order of firings that is not one iteration of its tile.
    Order {
        /// The place among the orders of the graph.
        order: usize,
        /// The actor.
        actor: usize,
        /// How often the order has it.
        listed: u64,
        /// How often it fires in an iteration.
        needed: u64,
    },
}

impl fmt::Display for DataflowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DataflowError::Overflow { what } => write!(f, "{what} leaves the range of 64 bits"),
            DataflowError::TooLarge { firings, most } => match firings {
                Some(firings) => write!(
                    f,
                    "an iteration has {firings} firings, more than the {most} that are analysed"
                ),
                None => write!(
                    f,
                    "an iteration has more firings than 64 bits can count, and {most} are analysed"
                ),
            },
            DataflowError::TooLong { what, limit } => {
                write!(f, "{what} did not end within {limit} steps")
            }
            DataflowError::Order {
                actor,
                listed,
                needed,
                ..
            } => write!(
                f,
                "an order has actor number {actor} {listed} times, and an iteration {needed} times"
            ),
        }
    }
}

impl core::error::Error for DataflowError {}
