//! Bounds in words: every term with its value, and what it was assumed to be
//!
//! # Assumptions
//! 1. None of its own: it prints what the tests found.

use alloc::collections::BinaryHeap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::{Ordering, Reverse};

use punctual_model::{PolicyKind, System};

use crate::bounds::{self, Basis, Bound};
use crate::busy_window::{Interfering, Worst};
use crate::entity::{Entity, Who};
use crate::error::Checked;
use crate::largest::{Before, MOST_TERMS};
use crate::node::Node;
use crate::supply::Supply;
use crate::units::{Span, Work};
use crate::verdict::{Term, Test};
use crate::{fixed_priority, schedulers, spuri};

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
        (PolicyKind::FixedPriority { .. }, Some(Basis::Closed)) => named(
            "closed upper bound on responses",
            "Bini, Nguyen, Richard and Baruah 2009, Theorem 1",
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

/// The name of a summand: only for those that are listed it is looked up.
#[derive(Clone, Copy)]
enum Name<'a> {
    Work(Who),
    Overruns(Who),
    /// A section; `None`: of background work.
    Section(Option<Who>),
    Reserved(&'a str),
    Held(&'a str, &'a str),
    HeldAbove,
}

impl Name<'_> {
    fn in_words(self, system: &System) -> String {
        match self {
            Name::Work(who) => who.name(system).into(),
            Name::Overruns(who) => format!("overruns of {}", who.name(system)),
            Name::Section(whose) => {
                let whose = whose.map_or("background work", |who| who.name(system));
                format!("blocking by a section of {whose}")
            }
            Name::Reserved(name) => name.into(),
            Name::Held(holder, resource) => format!("blocked by {holder} in {resource}"),
            Name::HeldAbove => "blocked by locks held above or in the background".into(),
        }
    }
}

/// A summand of a bound, ordered by its work, then by its place among all.
struct Summand<'a> {
    work: Work,
    place: usize,
    name: Name<'a>,
    count: u64,
    each: Work,
}

impl Summand<'_> {
    fn order(&self) -> (Work, Reverse<usize>) {
        (self.work, Reverse(self.place))
    }
}

impl PartialEq for Summand<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}

impl Eq for Summand<'_> {}

impl PartialOrd for Summand<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Summand<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order().cmp(&other.order())
    }
}

/// The summands of the completion of the worst job, its own first; with `fold` the largest, and the
/// sum of the rest. `before`: the summands of what goes before it, where those are known already.
/// O(n · log of those listed) for n entities of the node, and without n where they are known.
pub(crate) fn terms(
    system: &System,
    node: &Node,
    of: (usize, &Worst),
    fold: bool,
    before: Option<&Before>,
) -> Checked<Vec<Term>> {
    let most = if fold { 2 * MOST_TERMS } else { usize::MAX };
    let before = before.filter(|_| fold);
    let mut own = None;
    let mut largest: BinaryHeap<Reverse<Summand<'_>>> = BinaryHeap::new();
    let (mut all, mut work) = (0, Work::ZERO);
    visit(system, node, of, before, |name, count, each| {
        if count == 0 || each.is_zero() {
            return;
        }
        let summand = Summand {
            work: each.saturating_mul(count),
            place: all,
            name,
            count,
            each,
        };
        all += 1;
        if own.is_none() {
            own = Some(summand);
            return;
        }
        work = work.saturating_add(summand.work);
        if all <= most {
            largest.push(Reverse(summand));
        } else if let Some(mut least) = largest.peek_mut()
            && least.0 < summand
        {
            *least = Reverse(summand);
        }
    })?;
    if let Some(before) = before {
        // All that goes before it, in place of those that were looked at.
        let listed = before.largest.iter();
        let seen = listed.map(|&(at, jobs)| node.entities[at].requests.cost.saturating_mul(jobs));
        let seen = seen.fold(Work::ZERO, Work::saturating_add);
        work = work.saturating_add(before.work.saturating_sub(seen));
        all += before.tasks - before.largest.len();
    }
    if all > most {
        while largest.len() >= MOST_TERMS {
            largest.pop();
        }
    }
    let mut listed: Vec<Summand<'_>> = largest.into_iter().map(|summand| summand.0).collect();
    listed.sort_unstable_by_key(|summand| summand.place);
    let mut terms = Vec::with_capacity(listed.len() + 2);
    for summand in own.into_iter().chain(listed) {
        if summand.place > 0 {
            work = work.saturating_sub(summand.work);
        }
        terms.push(Term {
            what: summand.name.in_words(system),
            count: summand.count,
            each: summand.each,
        });
    }
    let folded = all - terms.len();
    if folded > 0 {
        terms.push(Term {
            what: format!("{folded} more"),
            count: 1,
            each: work,
        });
    }
    Ok(terms)
}

/// Shows each summand to `see`, the own one first; some may be zero.
fn visit<'a>(
    system: &'a System,
    node: &'a Node,
    (place, w): (usize, &Worst),
    before: Option<&Before>,
    mut see: impl FnMut(Name<'a>, u64, Work),
) -> Checked<()> {
    let own = &node.entities[place];
    see(Name::Work(own.who), w.job + 1, own.requests.cost);
    match (before, node.policy) {
        (Some(before), _) => {
            for &(place, jobs) in &before.largest {
                let other = &node.entities[place];
                see(Name::Work(other.who), jobs, other.requests.cost);
            }
        }
        (None, PolicyKind::EarliestDeadlineFirst) => {
            interference(spuri::interfering(node, place), w, &mut see)?;
        }
        (None, _) => interference(fixed_priority::interfering(node, place), w, &mut see)?,
    }
    if node.has_sections() || node.has_locks() {
        blocked(system, node, (place, w), &mut see)?;
    }
    see(Name::HeldAbove, 1, node.held_above);
    for reserved in &node.reserved {
        let name = Name::Reserved(&reserved.name);
        if reserved.requests.is_fluid {
            see(name, 1, reserved.requests.request_bound(w.completion)?);
            continue;
        }
        let count = reserved.requests.releases(w.completion)?;
        see(name, count, reserved.requests.cost);
    }
    Ok(())
}

/// The summands of work that goes before it.
fn interference<'a>(
    interfering: impl Iterator<Item = Interfering<'a>>,
    w: &Worst,
    see: &mut impl FnMut(Name<'a>, u64, Work),
) -> Checked<()> {
    for interferer in interfering {
        let (who, requests) = (interferer.entity.who, &interferer.entity.requests);
        if requests.is_fluid {
            see(Name::Work(who), 1, interferer.work(w.reach, w.offset)?);
        } else {
            let jobs = interferer.jobs(w.reach, w.offset)?;
            see(Name::Work(who), jobs, requests.cost);
            see(Name::Overruns(who), jobs.min(1), requests.once);
        }
    }
    Ok(())
}

/// The summands of sections.
fn blocked<'a>(
    system: &'a System,
    node: &'a Node,
    (place, w): (usize, &Worst),
    see: &mut impl FnMut(Name<'a>, u64, Work),
) -> Checked<()> {
    let query = bounds::query_of(node, place);
    if let Some(blocker) = query.blocker(w.offset) {
        see(Name::Section(blocker.who), 1, blocker.length);
    }
    for section in query.locks(w.offset)?.sections {
        let holder = system.tasks.get(section.holder.index());
        let resource = system.resources.get(section.resource.index());
        let (Some(holder), Some(resource)) = (holder, resource) else {
            continue;
        };
        see(Name::Held(&holder.name, &resource.name), 1, section.length);
    }
    Ok(())
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
        Basis::Closed => format!(
            "at most {}: all work that may go before it, once whole and then by its share of the \
             CPU; the worst response itself would take too long to search for",
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
