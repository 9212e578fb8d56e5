//! Bounds in words: every term with its value, and what it was assumed to be
//!
//! # Assumptions
//! 1. None of its own: it prints what the tests found.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use punctual_model::{PolicyKind, System};

use crate::bounds::{self, Basis, Bound};
use crate::busy_window::Worst;
use crate::entity::Entity;
use crate::error::Checked;
use crate::node::Node;
use crate::schedulers;
use crate::supply::Supply;
use crate::units::{Span, Work};
use crate::verdict::{Term, Test};

/// The test behind a bound under this policy.
pub(crate) fn test_of(node: &Node, entity: &Entity, basis: Option<Basis>) -> Test {
    let policy = node.policy;
    let named = |name, source| Test { name, source };
    match (policy, basis) {
        (_, Some(Basis::Window(_)))
        | (PolicyKind::RoundRobin { .. } | PolicyKind::Tdm { .. } | PolicyKind::Planned, _) => {
            named("longest busy window", "Lehoczky 1990")
        }
        (PolicyKind::Fifo, _) => named(
            "first come, first served busy window",
            "George and Minet 1997; Bozhko and Brandenburg 2020",
        ),
        (PolicyKind::FixedPriority { .. }, _) if entity.whole => named(
            "non-preemptive response-time analysis",
            "George, Rivierre and Spuri 1996, Theorem 15; Bril, Lukkien and Verhaegh 2009",
        ),
        (PolicyKind::FixedPriority { .. }, _) => named(
            "response-time analysis",
            "Joseph and Pandya 1986; Lehoczky 1990; Tindell, Burns and Wellings 1994",
        ),
        (PolicyKind::EarliestDeadlineFirst, Some(Basis::Feasible)) => {
            named("processor demand (QPA)", "Zhang and Burns 2009, Theorem 3")
        }
        (PolicyKind::EarliestDeadlineFirst, _) => named(
            "processor demand (QPA), response by Spuri's analysis",
            "Zhang and Burns 2009, Theorem 3; Spuri 1996, Theorem 5",
        ),
    }
}

/// The summands of the completion of the worst job, the largest own term first.
pub(crate) fn terms(system: &System, node: &Node, place: usize, w: &Worst) -> Checked<Vec<Term>> {
    let query = bounds::query_of(node, place);
    let own = &node.entities[place];
    let mut terms = Vec::new();
    let mut push = |what: String, count: u64, each: Work| {
        if count > 0 && !each.is_zero() {
            terms.push(Term { what, count, each });
        }
    };
    push(
        own.who.name(system).to_string(),
        w.job + 1,
        own.requests.cost,
    );
    for interferer in &query.interfering {
        let what = interferer.entity.who.name(system).to_string();
        if interferer.entity.requests.is_fluid {
            push(what, 1, interferer.work(w.reach, w.offset)?);
        } else {
            let jobs = interferer.jobs(w.reach, w.offset)?;
            let requests = &interferer.entity.requests;
            let beyond = format!("overruns of {what}");
            push(what, jobs, requests.cost);
            push(beyond, jobs.min(1), requests.once);
        }
    }
    if let Some(blocker) = query.blocker(w.offset) {
        let whose = blocker
            .who
            .map_or("background work", |who| who.name(system));
        push(
            format!("blocking by a section of {whose}"),
            1,
            blocker.length,
        );
    }
    for section in query.locks(w.offset)?.sections {
        let holder = system.tasks.get(section.holder.index());
        let resource = system.resources.get(section.resource.index());
        let (Some(holder), Some(resource)) = (holder, resource) else {
            continue;
        };
        let what = format!("blocked by {} in {}", holder.name, resource.name);
        push(what, 1, section.length);
    }
    push(
        "blocked by locks held above or in the background".into(),
        1,
        node.held_above,
    );
    for reserved in &node.reserved {
        if reserved.requests.is_fluid {
            push(
                reserved.name.clone(),
                1,
                reserved.requests.request_bound(w.completion)?,
            );
            continue;
        }
        push(
            reserved.name.clone(),
            reserved.requests.releases(w.completion)?,
            reserved.requests.cost,
        );
    }
    Ok(terms)
}

/// The bound in words.
pub(crate) fn bound(node: &Node, place: usize, bound: &Bound, terms: &[Term]) -> String {
    let own = &node.entities[place];
    match bound.basis {
        Basis::Feasible => format!(
            "at most its deadline of {}: the processor demand never exceeds the supply; the worst \
             response itself would take too long to search for",
            bound.response.readable()
        ),
        Basis::Window(window) => {
            let jitter = jitter_words(own);
            format!(
                "{} = {} (longest busy window of the {}){jitter}",
                bound.response.readable(),
                window.readable(),
                if node.scheduler.is_none() {
                    "CPU"
                } else {
                    "scheduler"
                }
            )
        }
        Basis::Job(worst) => job_words(own, bound.response, &worst, terms),
    }
}

fn jitter_words(own: &Entity) -> String {
    let released = own.requests.jitter.saturating_sub(own.waiting);
    let mut words = String::new();
    if !released.is_zero() {
        words += &format!(" + {} (release jitter)", released.readable());
    }
    if !own.waiting.is_zero() {
        words += &format!(" + {} (waiting for predecessors)", own.waiting.readable());
    }
    words
}

fn job_words(own: &Entity, response: Span, worst: &Worst, terms: &[Term]) -> String {
    let mut words = format!("{} =", response.readable());
    for (index, term) in terms.iter().enumerate() {
        let each = term.each.readable();
        let plus = if index == 0 { "" } else { " +" };
        let own = if index == 0 { "own " } else { "" };
        words += &match term.count {
            1 => format!("{plus} {each} ({own}{})", term.what),
            count => format!("{plus} {count} x {each} ({own}{})", term.what),
        };
    }
    let work = terms.iter().map(|t| t.each.saturating_mul(t.count));
    let work = work.fold(Work::ZERO, Work::saturating_add);
    let late = worst.completion.saturating_sub(work.as_span());
    if !late.is_zero() {
        words += &format!(" + {} (without supply)", late.readable());
    }
    if !worst.offset.is_zero() {
        words += &format!(
            " - {} (released that late in the busy window)",
            worst.offset.readable()
        );
    }
    words += &jitter_words(own);
    let cost = &own.cost;
    if !cost.overhead.is_zero() || cost.is_padded() {
        words += &format!("; each own job: {} wcet", cost.wcet.readable());
        if !cost.overhead.is_zero() {
            words += &format!(
                " + {} switches, preemption and caches",
                cost.overhead.readable()
            );
        }
        if cost.is_padded() {
            words += &format!(" + {} suspension", cost.suspension.readable());
        }
    }
    words
}

/// The supply of a node in words; `None` for a whole CPU.
pub(crate) fn supply(node: &Node) -> Option<String> {
    match node.supply {
        Supply::Dedicated | Supply::Nothing => None,
        _ => Some(schedulers::in_words(&node.supply)),
    }
}

/// A share in percent, with one decimal, rounded up.
pub(crate) fn percent(ppm: u64) -> String {
    let tenths = ppm.div_ceil(1_000);
    format!("{}.{} %", tenths / 10, tenths % 10)
}
