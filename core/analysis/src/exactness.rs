//! When a refusal is certain: whether the critical instant of a test can happen
//!
//! A bound is *exact* when legal arrivals reach it (under EDF: when a refusal of the deadline means
//! that legal arrivals miss it). Each doubt found here makes it *sufficient*, and is told.
//!
//! # Assumptions
//! 1. Sporadic tasks may arrive at any time; tasks by the clock arrive at phase + k·period for
//!    ever, with any jitter up to the largest.
//! 2. Releases of tasks by the clock fall together at some instant exactly when each two do
//!    (Chinese remainder theorem, for moduli that need not be coprime).
//! 3. Overheads and suspension are counted at their most, which no run may show.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use punctual_model::{Class, PolicyKind, Scheduler, SchedulerId, System, Task};

use crate::bounds::{self, Basis, Bound};
use crate::entity::{Arrival, Entity, Reserved, Source, Unserved};
use crate::lookup::{ancestors, children, tasks_of};
use crate::node::Node;
use crate::supply::Supply;
use crate::units::{Span, TICK, Work};
use crate::utilization::gcd;

/// Most tasks whose dropped releases are told one by one.
const MOST_NAMES: usize = 32;

/// Two tasks whose releases never fall together.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Apart {
    /// Tasks of this priority and below count both.
    level: u32,
    names: (String, String),
}

/// Something that is released now and then, at a level.
struct Released<'a> {
    level: u32,
    name: &'a str,
    arrival: Arrival,
    separation: Option<Span>,
}

/// Doubts about one node, computed once for all its tasks.
#[derive(Clone, Debug)]
pub(crate) struct Doubts<'a> {
    system: &'a System,
    node: &'a Node,
    bounds: &'a [Option<Bound>],
    apart: Option<Apart>,
    /// Of all: costs, and work above.
    of_all: Vec<String>,
    /// Of all: releases that are dropped.
    skipping: Vec<String>,
    /// Entities that are no tasks.
    servers: Vec<&'a Entity>,
    /// By level: its entities, and whether one of them has jitter.
    levels: BTreeMap<u32, (usize, bool)>,
    /// Whether any section may block.
    has_sections: bool,
}

impl<'a> Doubts<'a> {
    /// O(tasks · log) when all are released together at first; else O(tasks² · log).
    pub(crate) fn of(
        system: &'a System,
        node: &'a Node,
        bounds: &'a [Option<Bound>],
    ) -> Doubts<'a> {
        let mut levels: BTreeMap<u32, (usize, bool)> = BTreeMap::new();
        for entity in &node.entities {
            let (count, jitter) = levels.entry(level(node, entity)).or_default();
            *count += 1;
            *jitter |= !entity.requests.jitter.is_zero();
        }
        let mut doubts = Doubts {
            system,
            node,
            bounds,
            apart: most_urgent_apart(&released(system, node)),
            of_all: Vec::new(),
            skipping: Vec::new(),
            servers: node
                .all_entities()
                .filter(|c| c.who.task().is_none())
                .collect(),
            levels,
            has_sections: node.has_sections(),
        };
        doubts.of_all = doubts.about_costs();
        doubts.of_all.extend(doubts.about_above());
        doubts.skipping = doubts.about_skipping();
        doubts
    }

    /// Every reason why the bound of the entity at `place` is not exact; empty: it is exact.
    pub(crate) fn about(&self, place: usize, allowed: Span) -> Vec<String> {
        let mut doubts = self.of_all.clone();
        let own = &self.node.entities[place];
        let Some(bound) = self.bounds[place] else {
            // Nothing bounds it: the processor is overloaded whatever the phases are, unless what
            // it cannot do in time is dropped, or budgets that load it are not used.
            doubts.extend_from_slice(&self.skipping);
            self.about_children(own, &mut doubts);
            if !matches!(self.node.supply, Supply::Dedicated | Supply::Slots(_)) {
                self.about_supply(own, 0, &mut doubts);
            }
            return doubts;
        };
        match bound.basis {
            Basis::Window(_) => doubts.push("the bound is the busy window, not a job in it".into()),
            Basis::Feasible => doubts.push("the bound is the deadline, not a response".into()),
            Basis::Closed => doubts.push("the bound is a closed sum, not a response".into()),
            Basis::Job(worst) => {
                self.about_alignment(own, &mut doubts);
                self.about_supply(own, worst.phase, &mut doubts);
                self.about_children(own, &mut doubts);
                self.about_offset(own, worst.offset, &mut doubts);
                self.about_blocking(place, worst.offset, &mut doubts);
                self.about_locks(place, worst.offset, &mut doubts);
            }
        }
        doubts.extend_from_slice(&self.skipping);
        let edf = self.node.policy == PolicyKind::EarliestDeadlineFirst;
        if edf && allowed < own.deadline {
            doubts.push(
                "a response is required below the deadline, and the EDF response bound assumes any \
                 offsets and the worst order of equal deadlines"
                    .into(),
            );
        }
        doubts
    }

    fn name(&self, entity: &Entity) -> &str {
        entity.who.name(self.system)
    }

    fn about_costs(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        let machine = &self.system.machine;
        let overheads = [
            machine.switch,
            machine.timer,
            machine.budget_timer,
            machine.preemption,
            machine.cache_delay,
        ];
        if overheads.iter().any(|o| !o.is_zero()) {
            doubts.push("every job is charged all overheads at their most".into());
        }
        if let Some(c) = self.node.all_entities().find(|c| c.cost.is_padded()) {
            doubts.push(format!(
                "the suspension of {} is counted as computation (Chen et al. 2019, §4.1)",
                self.name(c)
            ));
        }
        if let Some(c) = self.node.all_entities().find(|c| !c.waiting.is_zero()) {
            doubts.push(format!(
                "{} waits for predecessors that are less urgent or on another CPU; the wait is \
                 counted as release jitter",
                self.name(c)
            ));
        }
        let sporadic = |c: &&Entity| c.arrival == Arrival::Free && c.own_jitter() > c.waiting;
        if let Some(c) = self.node.all_entities().find(sporadic) {
            doubts.push(format!(
                "the sporadic {} has jitter: deadlines count from the arrival here, from the \
                 release in a run",
                self.name(c)
            ));
        }
        doubts
    }

    fn about_alignment(&self, own: &Entity, doubts: &mut Vec<String>) {
        let level = level(self.node, own);
        let Some(apart) = self.apart.as_ref().filter(|a| a.level >= level) else {
            return;
        };
        let (a, b) = &apart.names;
        doubts.push(format!(
            "{a} and {b} are never released together (their phases differ), the test assumes that \
             they are"
        ));
    }

    /// Whether the worst beginning of a window in the supply can meet the worst releases.
    fn about_supply(&self, own: &Entity, phase: usize, doubts: &mut Vec<String>) {
        let table = match &self.node.supply {
            Supply::Dedicated => return,
            Supply::Slots(table) => table,
            Supply::Budget(_) | Supply::Nothing => {
                doubts.push(
                    "its server's budgets are taken to come as late as they may just when its \
                     tasks are released"
                        .into(),
                );
                return;
            }
        };
        let end = Arrival::Clock(table.begins(phase));
        let level = level(self.node, own);
        let all = released(self.system, self.node);
        let apart = all.iter().find(|r| {
            let frame = (end, Some(table.frame()));
            r.level >= level && !fall_together((r.arrival, r.separation), frame)
        });
        if let Some(apart) = apart {
            doubts.push(format!(
                "{} is never released where the worst window of the slots begins",
                apart.name
            ));
        }
    }

    /// Interference through other schedulers, which may be less than counted.
    fn about_children(&self, own: &Entity, doubts: &mut Vec<String>) {
        let level = level(self.node, own);
        let servers = self.servers.iter().filter(|c| c.who != own.who);
        let server = servers
            .filter(|c| self::level(self.node, c) >= level)
            .map(|c| c.who.name(self.system));
        let budgets = self
            .node
            .reserved
            .iter()
            .filter(|t| t.source == Source::Budget);
        if let Some(name) = server.chain(budgets.map(|t| t.name.as_str())).next() {
            doubts.push(format!(
                "the whole budget of {name} is counted, used or not"
            ));
        }
        let beside = |g: &&Unserved| self::level(self.node, &g.entity) == level;
        if let Some(unserved) = self.node.unserved.iter().find(beside) {
            doubts.push(format!(
                "{} has the same priority as the scheduler above it, and is taken to go first",
                self.name(&unserved.entity)
            ));
        }
    }

    /// More urgent work in the nodes above, which may not always be so.
    fn about_above(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        let shared = |s: &&Scheduler| s.supply == punctual_model::Supply::Shared;
        let above = ancestors(self.system, self.node.scheduler).map(|(_, scheduler)| scheduler);
        for scheduler in above.take_while(shared) {
            let parent = (self.node.cpu, scheduler.parent);
            let mut siblings = tasks_of(self.system, parent).map(|(_, task)| task);
            let task = siblings.find(|t| t.priority == scheduler.priority);
            let mut others = children(self.system, parent).map(|(_, other)| other);
            let other =
                others.find(|s| s.name != scheduler.name && s.priority == scheduler.priority);
            if let Some(name) = task.map(|t| &t.name).or(other.map(|s| &s.name)) {
                doubts.push(format!(
                    "{name} has the same priority as the scheduler {} beside it, and is taken to \
                     go first",
                    scheduler.name
                ));
            }
        }
        let mut here = self.system.tasks.iter().filter(|t| t.cpu == self.node.cpu);
        let edf = self.node.policy == PolicyKind::EarliestDeadlineFirst;
        if let Some(task) =
            here.find(|t| !t.uses.is_empty() && (edf || !t.non_preemptive.is_zero()))
        {
            doubts.push(format!(
                "a section of {} is taken to begin at the very instant of a release, and to follow \
                 another at once",
                task.name
            ));
        }
        let from_work = |t: &Reserved| matches!(t.source, Source::Work(_));
        let elsewhere = self.system.tasks.iter().filter(|t| t.cpu == self.node.cpu);
        let mut elsewhere = elsewhere.filter(|t| t.scheduler != self.node.scheduler);
        let waits = |t: &&punctual_model::Task| {
            !t.max_suspension.is_zero() || !t.after.is_empty() || !t.follows.is_empty()
        };
        if let (true, Some(task)) = (
            self.node.reserved.iter().any(from_work),
            elsewhere.find(waits),
        ) {
            doubts.push(format!(
                "{} waits or suspends itself above, which is counted at its most",
                task.name
            ));
        }
        doubts
    }

    /// Under FIFO and equal priorities the worst job may have to be released apart from the others.
    fn about_offset(&self, own: &Entity, offset: Span, doubts: &mut Vec<String>) {
        let edf = self.node.policy == PolicyKind::EarliestDeadlineFirst;
        let together = own
            .requests
            .separation
            .map_or(offset.is_zero(), |t| (offset % t).is_zero());
        if !edf && !together && own.arrival != Arrival::Free {
            doubts.push(
                "the worst job is released apart from the others, which its clock may not allow"
                    .into(),
            );
        }
        let here = self.levels.get(&level(self.node, own));
        if !edf && here.is_some_and(|&(count, is_blurred)| count > 1 && is_blurred) {
            doubts.push("with jitter, ties of equal priority are counted against the task".into());
        }
    }

    fn about_blocking(&self, place: usize, offset: Span, doubts: &mut Vec<String>) {
        if !self.has_sections {
            return;
        }
        let query = bounds::query_of(self.node, place);
        // Under EDF feasibility counts sections at every deadline, not only at the worst job's.
        let edf = self.node.policy == PolicyKind::EarliestDeadlineFirst;
        let blocks = query.blocker(offset).is_some() || (edf && !query.blockers.is_empty());
        let clock = self
            .node
            .entities
            .iter()
            .find(|c| c.arrival != Arrival::Free);
        if let (true, Some(clock)) = (blocks, clock) {
            doubts.push(format!(
                "a section has to begin one tick before the others are released, which the clock \
                 of {} may not allow",
                self.name(clock)
            ));
        }
        if blocks {
            self.about_turns(doubts);
        }
    }

    /// Whether background work can be at the beginning of its section when it suits.
    fn about_turns(&self, doubts: &mut Vec<String>) {
        let in_turns = |t: &&Task| {
            let here = (t.cpu, t.scheduler) == (self.node.cpu, self.node.scheduler);
            here && t.class == Class::Aperiodic
        };
        let Some((section, _)) = self.node.background else {
            return;
        };
        let whose = self.system.tasks.get(section.index());
        if let Some(task) = whose.filter(|t| self.is_below(t.scheduler)) {
            doubts.push(format!(
                "a section of {} is taken to be finished for more urgent work beside it",
                task.name
            ));
        }
        if self.system.tasks.iter().filter(in_turns).count() > 1
            && let Some(task) = self.system.tasks.get(section.index())
        {
            doubts.push(format!(
                "a section of {} begins when the turns of background work let it, not one tick \
                 before the others are released",
                task.name
            ));
        }
    }

    /// Whether `node` is below this one.
    fn is_below(&self, scheduler: Option<SchedulerId>) -> bool {
        ancestors(self.system, scheduler).any(|(_, s)| s.parent == self.node.scheduler)
    }

    fn about_locks(&self, place: usize, offset: Span, doubts: &mut Vec<String>) {
        let edf = self.node.policy == PolicyKind::EarliestDeadlineFirst;
        let sections = || {
            bounds::query_of(self.node, place)
                .locks(offset)
                .map(|l| l.sections.len())
        };
        let held = self.node.has_locks() && sections().is_ok_and(|count| count > 0);
        if held || self.node.held_above > Work::ZERO || (edf && self.node.has_locks()) {
            doubts.push(
                "every section that may block it is taken to be held, for its whole length, when \
                 it is released"
                    .into(),
            );
        }
    }

    /// Releases that are dropped, of each task by name, or of many together.
    fn about_skipping(&self) -> Vec<String> {
        let mut dropping = Vec::new();
        for (entity, bound) in self.node.entities.iter().zip(self.bounds) {
            let task = entity.who.task();
            let task = task.and_then(|task| self.system.tasks.get(task.index()));
            let late = task.map(|t| t.late).unwrap_or_default();
            let overtaken = match (bound, entity.requests.separation) {
                (Some(bound), Some(t)) => bound.response.saturating_sub(TICK) / t,
                // As long as it keeps its deadline.
                (None, Some(t)) => entity.deadline.saturating_sub(TICK) / t,
                _ => 0,
            };
            if overtaken >= late.places() {
                dropping.push(self.name(entity));
            }
        }
        let more = dropping.split_off(dropping.len().min(MOST_NAMES));
        let mut doubts: Vec<String> = Vec::new();
        for name in dropping {
            doubts.push(format!("late releases of {name} are dropped"));
        }
        if !more.is_empty() {
            doubts.push(format!("late releases of {} more are dropped", more.len()));
        }
        doubts
    }
}

/// The level of an entity: its priority where that decides, one level otherwise.
fn level(node: &Node, entity: &Entity) -> u32 {
    match node.policy {
        PolicyKind::FixedPriority { .. } => entity.priority,
        _ => 0,
    }
}

/// Everything that is released in a node or takes from it, but for the machine.
fn released<'a>(system: &'a System, node: &'a Node) -> Vec<Released<'a>> {
    let own = node.all_entities().map(|c| Released {
        level: level(node, c),
        name: c.who.name(system),
        arrival: c.arrival,
        separation: c.requests.separation,
    });
    let above = node.reserved.iter().filter_map(|t| match t.source {
        Source::Work(arrival) => Some(Released {
            level: u32::MAX,
            name: &t.name,
            arrival,
            separation: t.requests.separation,
        }),
        Source::Machine | Source::Budget => None,
    });
    own.chain(above).collect()
}

/// Whether two streams of releases fall together at some instant.
fn fall_together(a: (Arrival, Option<Span>), b: (Arrival, Option<Span>)) -> bool {
    let period = |(_, separation): (Arrival, Option<Span>)| separation.unwrap_or_default();
    match (a.0, b.0) {
        (Arrival::Free, _) | (_, Arrival::Free) => true,
        (Arrival::Once(x), Arrival::Once(y)) => x == y,
        (Arrival::Once(once), Arrival::Clock(first)) => met(once, first, period(b)),
        (Arrival::Clock(first), Arrival::Once(once)) => met(once, first, period(a)),
        (Arrival::Clock(x), Arrival::Clock(y)) => {
            let common = gcd(period(a), period(b));
            !common.is_zero() && (x.abs_diff(y) % common).is_zero()
        }
    }
}

fn met(once: Span, first: Span, period: Span) -> bool {
    let since = once.checked_sub(first).filter(|_| !period.is_zero());
    since.is_some_and(|since| (since % period).is_zero())
}

/// The pair that is never released together and counts for the most urgent task.
fn most_urgent_apart(all: &[Released<'_>]) -> Option<Apart> {
    let first = all.first()?.arrival;
    if all
        .iter()
        .all(|r| r.arrival == first && r.separation.is_some())
    {
        return None;
    }
    let mut most: Option<(u32, usize, usize)> = None;
    for (i, a) in all.iter().enumerate() {
        for (j, b) in all.iter().enumerate().skip(i + 1) {
            let level = a.level.min(b.level);
            let together = || fall_together((a.arrival, a.separation), (b.arrival, b.separation));
            if most.is_none_or(|m| level > m.0) && !together() {
                most = Some((level, i, j));
            }
        }
    }
    most.map(|(level, i, j)| Apart {
        level,
        names: (all[i].name.to_string(), all[j].name.to_string()),
    })
}

/// The assumptions of every bound of this policy.
pub(crate) fn assumptions(node: &Node) -> Vec<String> {
    let mut list = alloc::vec![
        "no job exceeds its wcet (budgets see to it) nor arrives before its separation".to_string(),
    ];
    list.push(match node.policy {
        PolicyKind::EarliestDeadlineFirst => {
            "exact means: what is refused can miss a deadline; the response bound is reached by \
             some arrivals when equal deadlines go before the task"
                .into()
        }
        PolicyKind::FixedPriority { .. } => {
            "equal priorities: the earlier arrival first, then the order in the file".into()
        }
        PolicyKind::Fifo => "the earlier arrival first, then the order in the file".into(),
        PolicyKind::RoundRobin { .. } | PolicyKind::Tdm { .. } | PolicyKind::Planned => {
            "the processor never idles while a job is ready".into()
        }
    });
    list
}
