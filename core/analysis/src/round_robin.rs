//! Round robin, and any other order that never idles: the longest busy window bounds every response
//!
//! # Assumptions
//! 1. The processor does not idle while a real-time job is ready (work conservation), in whatever
//!    order it serves them.
//! 2. A job that waits for a predecessor on its own CPU leaves that predecessor to run, so the
//!    processor is still busy.
//!
//! A job released in a busy window completes before the window ends, hence within its length. The
//! bound is sufficient only: it knows nothing of turns.
//!
//! Source: Lehoczky 1990 (busy period); the processor-sharing refinement is not attempted.

use core::cmp::Ordering;

use crate::busy_window::longest;
use crate::error::Checked;
use crate::fixed_point::SearchSteps;
use crate::node::Node;
use crate::units::Span;

/// The longest busy window of all work of the node; `None` when nothing bounds it: the utilization
/// is above 1, or is 1 and the backlog never drains. O(iterations · tasks).
pub(crate) fn bound_any_order(
    node: &Node,
    search_steps: &mut SearchSteps<'_>,
) -> Checked<Option<Span>> {
    match node.load() {
        Ordering::Less => longest(node, Span::MAX, search_steps),
        Ordering::Equal => {
            let repeats = node.hyperperiod().unwrap_or(Span::MAX);
            longest(
                node,
                repeats.saturating_add(node.supply.delay()),
                search_steps,
            )
        }
        Ordering::Greater => Ok(None),
    }
}
