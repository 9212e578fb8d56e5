//! A recorded run again.

use punctual_policy::AnyPolicy;
use punctual_trace::{Divergence, Log, ReplayStats};

/// Runs the events of a log through the scheduler again, with the policies of its tables, and
/// compares every change and every decision. A program's own policies for schedulers that decide
/// on their own supply are not needed: their answers are events. O(records · log threads).
///
/// # Errors
/// The first difference: the log was changed, or the run was made by another version.
pub fn replay(log: &Log) -> Result<ReplayStats, Box<Divergence>> {
    punctual_trace::replay(log, AnyPolicy::new)
}
