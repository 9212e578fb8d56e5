//! A closed upper bound on responses under fixed priority: many tasks need no fixed point
//!
//! ```text
//! R ≤ J + (B + C + Σ (C_j + U_j·J_j)) / (1 − Σ U_j)      over everything that goes before it
//! ```
//!
//! In a window of length t interfering tasks request at most Σ (U_j·(t + J_j) + C_j), for
//! ⌈x⌉ ≤ x + 1. The first t that covers this, the own job and the blocking is the bound above. The
//! k-th later job of the window ends C/(1 − Σ U_j) later and arrives T later: no worse than the
//! first one, where the own share fits besides. A task that this bound does not show in time is
//! left to the exact test, so the answer of both together is exact.
//!
//! # Assumptions
//! 1. Those of the response-time analysis (`fixed_priority`), on a dedicated processor.
//! 2. Shares are rounded up to 2⁻⁴⁰, so nothing is in time by rounding.
//!
//! Source: Bini, Nguyen, Richard and Baruah, IEEE Transactions on Computers 2009, Theorem 1,
//! without its refinement of C to C·(1 − U), and with jitter and blocking.

use alloc::vec;
use alloc::vec::Vec;

use punctual_model::PolicyKind;

use crate::demand::RequestBound;
use crate::entity::{Entity, Who};
use crate::node::Node;
use crate::supply::Supply;
use crate::units::{Span, TICK, UNIT, Work};

/// A whole processor, as a share.
const WHOLE: u128 = 1 << 40;

/// The demand before a task, added up.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    /// Σ U, each rounded up.
    share: u128,
    /// Σ C.
    cost: u128,
    /// Σ U·J, in shares.
    early: u128,
}

impl Load {
    fn of(requests: &RequestBound) -> Load {
        let each = u128::from(requests.cost.as_ns());
        let cost = each + u128::from(requests.once.as_ns());
        let share = requests.separation.map_or(0, |t| {
            (each * WHOLE).div_ceil(u128::from(t.max(TICK).as_ns()))
        });
        Load {
            share,
            cost,
            early: share.saturating_mul(u128::from(requests.jitter.as_ns())),
        }
    }

    fn plus(self, other: Load) -> Load {
        Load {
            share: self.share.saturating_add(other.share),
            cost: self.cost.saturating_add(other.cost),
            early: self.early.saturating_add(other.early),
        }
    }

    fn minus(self, other: Load) -> Load {
        Load {
            share: self.share - other.share,
            cost: self.cost - other.cost,
            early: self.early.saturating_sub(other.early),
        }
    }
}

/// By place: whether this bound alone shows that the entity responds within what is `allowed`.
/// All `false` where the bound does not apply. O(n log n).
pub(crate) fn in_time(node: &Node, allowed: &[Span]) -> Vec<bool> {
    let shown = responses(node).into_iter().zip(allowed);
    shown
        .map(|(response, allowed)| response.is_some_and(|r| r <= *allowed))
        .collect()
}

/// By place: this bound on the response; all `None` where it does not apply. O(n log n).
pub(crate) fn responses(node: &Node) -> Vec<Option<Span>> {
    let mut answers = vec![None; node.entities.len()];
    if !applies(node) {
        return answers;
    }
    let places = by_urgency(node);
    let reserved = node.reserved.iter().map(|t| Load::of(&t.requests));
    let mut above = reserved.fold(Load::default(), Load::plus);
    let mut blocking = blocking_below(node, &places);
    for level in places.chunk_by(same_level(node)) {
        // Equal priorities may go before each other.
        let requests = level
            .iter()
            .map(|&place| Load::of(&node.entities[place].requests));
        let together = requests.fold(above, Load::plus);
        let below = blocking.pop().unwrap_or_default();
        for &place in level {
            let own = &node.entities[place];
            let interfering = together.minus(Load::of(&own.requests));
            answers[place] = response(own, interfering, below);
        }
        above = together;
    }
    answers
}

/// The places of all entities, the most urgent first, equals in the order of the file.
pub(crate) fn by_urgency(node: &Node) -> Vec<usize> {
    let mut places: Vec<usize> = (0..node.entities.len()).collect();
    if node.policy != PolicyKind::Fifo {
        places.sort_by_key(|&place| core::cmp::Reverse(node.entities[place].priority));
    }
    places
}

/// Whether nothing but the order of arrivals decides between two places.
pub(crate) fn same_level(node: &Node) -> impl Fn(&usize, &usize) -> bool + '_ {
    let fifo = node.policy == PolicyKind::Fifo;
    move |a, b| fifo || node.entities[*a].priority == node.entities[*b].priority
}

/// Whether it is a whole processor with tasks alone, under preemptive priorities, without locks.
pub(crate) fn applies(node: &Node) -> bool {
    let plain = |c: &Entity| matches!(c.who, Who::Task(_)) && !c.requests.is_fluid;
    node.policy == (PolicyKind::FixedPriority { preemptive: true })
        && node.supply == Supply::Dedicated
        && node.unserved.is_empty()
        && node.locks.is_empty()
        && node.held_above.is_zero()
        && node.entities.iter().all(plain)
        && node.reserved.iter().all(|t| !t.requests.is_fluid)
}

/// For every level of priority, the lowest first: the longest section below it, less the tick in
/// which it began.
pub(crate) fn blocking_below(node: &Node, places: &[usize]) -> Vec<Work> {
    let background = node.background.map(|(_, section)| section);
    let mut longest = background.unwrap_or_default().saturating_sub(UNIT);
    let mut levels = Vec::new();
    let all: Vec<&[usize]> = places.chunk_by(same_level(node)).collect();
    for level in all.into_iter().rev() {
        levels.push(longest);
        let sections = level.iter().map(|&place| node.entities[place].section);
        longest = longest.max(sections.max().unwrap_or_default().saturating_sub(UNIT));
    }
    levels
}

/// The bound of `own`; `None`: its share does not fit, or the bound is beyond 64 bits.
fn response(own: &Entity, interfering: Load, blocking: Work) -> Option<Span> {
    let mine = Load::of(&own.requests);
    if interfering.share.saturating_add(mine.share) > WHOLE || interfering.share >= WHOLE {
        return None;
    }
    let work = u128::from(blocking.as_ns())
        .saturating_add(mine.cost)
        .saturating_add(interfering.cost);
    let needed = work.checked_mul(WHOLE)?.checked_add(interfering.early)?;
    let window = u64::try_from(needed.div_ceil(WHOLE - interfering.share)).ok()?;
    Span::from_ns(window).checked_add(own.requests.jitter)
}
