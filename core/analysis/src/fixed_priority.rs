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
use crate::units::{Span, UNIT};
use crate::utilization::compare_with_one;

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

/// The work that may go before the entity at `place`: of its node, and of children without a
/// server, which has the child's priority; its sections stay inside the child.
pub(crate) fn interfering(node: &Node, place: usize) -> impl Iterator<Item = Interfering<'_>> {
    let own = &node.entities[place];
    let others = node.entities.iter().enumerate();
    let others = others.filter(move |&(index, _)| index != place);
    let before = others.filter_map(move |(_, other)| {
        urgency(node.policy, own, other).map(|urgent| Interfering {
            entity: other,
            urgent,
        })
    });
    let unserved = node.unserved.iter().map(|g| &g.entity);
    let unserved =
        unserved.filter(move |g| g.who != own.who && !own_is_higher(node.policy, own, g));
    before.chain(unserved.map(|entity| Interfering {
        entity,
        urgent: Urgent::Always,
    }))
}

/// The sections that may have begun before a job of the entity at `place` is released.
fn blockers(node: &Node, place: usize) -> Vec<Blocker> {
    let own = &node.entities[place];
    let sections = node.entities.iter().enumerate();
    let sections = sections.filter(|&(index, other)| {
        index != place && other.section > UNIT && urgency(node.policy, own, other).is_none()
    });
    let sections = sections.map(|(_, other)| (other.who, other.section));
    let background = node
        .background
        .map(|(task, section)| (Who::Task(task), section));
    let all = sections.chain(background);
    all.map(|(who, section)| Blocker::of(who, section, i128::MAX))
        .collect()
}

/// The query for the entity at `place`.
pub(crate) fn query(node: &Node, place: usize, enough: Option<Span>) -> Query<'_> {
    let own = &node.entities[place];
    Query {
        own,
        interfering: interfering(node, place).collect(),
        reserved: &node.reserved,
        supply: &node.supply,
        blockers: blockers(node, place),
        node,
        urgency: Urgency::Priority(own.priority),
        runs_through: own.whole,
        until: Until::Idle,
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
