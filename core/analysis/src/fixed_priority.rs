//! Fixed priority and first come, first served: response-time analysis, preemptive or not
//!
//! # Assumptions
//! 1. The higher priority first; among equal priorities the earlier arrival, then the order in the
//!    file. First come, first served is one single priority.
//! 2. A section that lets nobody preempt stands anywhere in its job; one of a lower priority blocks
//!    when it began at least one tick before the busy window, hence for at most its length − 1.
//! 3. Preemptive unless the policy says otherwise; then, and when its section is the whole job, the
//!    fixed point is that of the start.
//! 4. Relative deadlines are arbitrary: every job of the busy window counts.
//!
//! Sources: Joseph and Pandya 1986; Audsley et al. 1993; Lehoczky 1990 (arbitrary deadlines).
//! Tindell, Burns and Wellings 1994 (release jitter). George, Rivierre and Spuri 1996, Theorem 15,
//! and Bril, Lukkien and Verhaegh 2009 (non-preemptive); Bozhko and Brandenburg, ECRTS 2020 (the
//! same bounds with machine-checked proofs: Prosa, `results/fixed_priority/rta/`).

use alloc::vec::Vec;
use core::cmp::Ordering;

use punctual_model::{Ns, PolicyKind};

use crate::busy_window::{Blocker, Interfering, Query, Until, Urgency, Urgent, Worst};
use crate::entity::{Entity, Who};
use crate::error::Checked;
use crate::fixed_point::SearchSteps;
use crate::node::Node;
use crate::units::{Span, TICK, UNIT};
use crate::utilization::{compare_with_one, hyperperiod};

/// Whether `other` goes before a job of `own`, and which of its jobs do.
fn urgency(policy: PolicyKind<Ns>, own: &Entity, other: &Entity) -> Option<Urgent> {
    let order = match policy {
        PolicyKind::Fifo => Ordering::Equal,
        _ => other.priority.cmp(&own.priority),
    };
    match order {
        Ordering::Greater => Some(Urgent::Always),
        // The k-th job at A goes first when its task stands earlier in the file. Jitter blurs who
        // arrived first: then ties count against the task.
        // A server is there as long as it has a budget: no release of it is the earlier one.
        Ordering::Equal if matches!((own.who, other.who), (Who::Task(_), Who::Task(_))) => {
            Some(Urgent::Earlier {
                ties: other.who < own.who
                    || !other.requests.jitter.max(own.requests.jitter).is_zero(),
            })
        }
        Ordering::Equal => Some(Urgent::Always),
        Ordering::Less => None,
    }
}

fn own_is_higher(policy: PolicyKind<Ns>, own: &Entity, unserved: &Entity) -> bool {
    policy == (PolicyKind::FixedPriority { preemptive: true }) && own.priority > unserved.priority
}

/// The query for the entity at `place`.
pub(crate) fn query(node: &Node, place: usize, enough: Option<Span>) -> Query<'_> {
    let own = &node.entities[place];
    let mut interfering = Vec::new();
    let mut blockers = Vec::new();
    for (index, other) in node.entities.iter().enumerate() {
        if index == place {
            continue;
        }
        match urgency(node.policy, own, other) {
            Some(urgent) => interfering.push(Interfering {
                entity: other,
                urgent,
            }),
            None if other.section > UNIT => {
                blockers.push(Blocker::of(other.who, other.section, i128::MAX));
            }
            None => {}
        }
    }
    // Work of children without a server interferes with the child's priority; its sections stay
    // inside the child.
    let unserved = node.unserved.iter().map(|g| &g.entity);
    let unserved = unserved.filter(|g| g.who != own.who && !own_is_higher(node.policy, own, g));
    interfering.extend(unserved.map(|g| Interfering {
        entity: g,
        urgent: Urgent::Always,
    }));
    if let Some((task, section)) = node.background {
        blockers.push(Blocker::of(Who::Task(task), section, i128::MAX));
    }
    let separations = interfering.iter().map(|r| r.entity.requests.separation);
    let separations = separations.chain([own.requests.separation]).flatten();
    let reserved = node.reserved.iter().filter_map(|t| t.requests.separation);
    let separations = separations.chain(reserved).chain(node.supply.period());
    // A single job adds no more than one step, at 0 or just after it, and the supply is late once;
    // from there on all repeats.
    let late = node.supply.delay();
    let or = hyperperiod(separations)
        .and_then(|h| h.checked_add(TICK)?.checked_add(TICK)?.checked_add(late));
    let or = or.unwrap_or(Span::MAX);
    Query {
        own,
        interfering,
        reserved: &node.reserved,
        supply: &node.supply,
        blockers,
        node,
        urgency: Urgency::Priority(own.priority),
        runs_through: own.whole,
        until: Until::Idle { or },
        enough,
    }
}

/// Whether the task, everything that goes before it and what is reserved fit the processor. A
/// single job has no share, and needs one that is left over.
pub(crate) fn fits(query: &Query<'_>) -> bool {
    match compare_with_one(query.ratios()) {
        Ordering::Less => true,
        Ordering::Equal => query.own.requests.separation.is_some(),
        Ordering::Greater => false,
    }
}

/// The worst response of the entity at `place`; `None` when nothing bounds it.
/// O(jobs of the busy window · iterations · tasks).
pub(crate) fn bound_response_time(
    node: &Node,
    place: usize,
    enough: Option<Span>,
    search_steps: &mut SearchSteps<'_>,
) -> Checked<Option<Worst>> {
    let query = query(node, place, enough);
    if !fits(&query) {
        return Ok(None);
    }
    query.worst(search_steps)
}
