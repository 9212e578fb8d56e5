//! What histories exercised.

use serde::{Deserialize, Serialize};

/// What histories exercised: a check that saw nothing proves nothing.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Coverage {
    /// Steps that did something.
    pub steps: u64,
    /// Picks.
    pub picks: u64,
    /// Picks with at least two ready threads.
    pub contested: u64,
    /// Picks of nobody.
    pub idle: u64,
    /// Picks of another thread while the last one was still ready.
    pub preemptions: u64,
    /// Turns that were executed to their end.
    pub turns: u64,
    /// Times that a thread had no budget left.
    pub exhausted: u64,
}
