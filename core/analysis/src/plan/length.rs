//! How long a segment takes in a plan: its wcet, every overhead, and the supply of its node
//!
//! A segment is charged with a switch in and one out, a preemption and the caches that it fills
//! again, a timer entry for its start and one for the end of its budget. It is also charged with
//! the longest section of background work that may have begun before it. On a node without a whole
//! CPU it is planned for as long as all that takes at worst, wherever in the supply it begins (Shin
//! and Lee 2003).
//!
//! # Assumptions
//! 1. Supply is the least that may come in any window, so a plan that counts on it does not ask
//!    where slots lie. Segments behind each other each count its worst beginning.
//! 2. The longest of all planned nodes counts: the planner takes CPUs for alike.

use alloc::vec::Vec;

use punctual_model::{GroupId, GroupSegment, System};

use crate::bounds;
use crate::entity::Reserved;
use crate::error::{AnalysisError, Checked, in_range};
use crate::precedence;
use crate::solve::{self, Options};
use crate::supply::Supply;
use crate::units::Work;

const WHAT: &str = "the length of a segment";

/// Most steps of a length with reserves.
const STEPS: u32 = 100_000;

/// The planned lengths of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Length {
    /// At home, or anywhere if it has none.
    pub(crate) home: Work,
    /// Elsewhere.
    pub(crate) away: Work,
}

/// The supply of one planned node.
struct Node {
    supply: Supply,
    reserved: Vec<Reserved>,
    /// The longest section of background work.
    background: Work,
}

/// The supplies and costs with which the segments of a system are planned.
pub(crate) struct Lengths<'a> {
    system: &'a System,
    nodes: Vec<Node>,
}

impl<'a> Lengths<'a> {
    /// The supplies of the planned nodes, as the tests of their parents have found them.
    pub(crate) fn new(system: &'a System) -> Checked<Lengths<'a>> {
        let edges = precedence::edges(system);
        let solution = solve::solve(system, &edges, &Options::all(&bounds::query()))?;
        let nodes = system.planned_nodes().into_iter().map(|planned| {
            let own = solution.nodes.iter().map(|solved| &solved.node);
            let mut own = own.filter(|node| node.is_whole);
            let node =
                own.find(|node| node.cpu == planned.cpu && node.scheduler == planned.scheduler);
            let section = node.and_then(|node| node.background);
            Node {
                supply: node.map_or(Supply::Nothing, |node| node.supply.clone()),
                reserved: node.map_or_else(Vec::new, |node| node.reserved.clone()),
                background: section.map_or(Work::ZERO, |(_, section)| section),
            }
        });
        Ok(Lengths {
            system,
            nodes: nodes.collect(),
        })
    }

    /// Whether all nodes have whole CPUs, of which nobody takes anything.
    pub(crate) fn are_whole(&self) -> bool {
        let mut nodes = self.nodes.iter();
        nodes.all(|node| node.supply == Supply::Dedicated && node.reserved.is_empty())
    }

    /// Whether a planned length is the wcet itself.
    pub(crate) fn are_wcets(&self) -> bool {
        let planning = &self.system.planning;
        self.are_whole()
            && self.nodes.iter().all(|node| node.background.is_zero())
            && self.overhead() == Work::ZERO
            && planning.process_switch.is_zero()
    }

    /// The cost of a switch between processes, where the planner adds it: on whole CPUs.
    pub(crate) fn switch(&self) -> Work {
        match self.are_whole() {
            true => self.system.planning.process_switch,
            false => Work::ZERO,
        }
    }

    /// The costs of one segment beyond its work.
    fn overhead(&self) -> Work {
        let machine = &self.system.machine;
        let entries = machine.timer.saturating_add(machine.budget_timer);
        machine.stretch().saturating_add(entries)
    }

    /// The planned lengths of a segment of a group.
    pub(crate) fn of(&self, group: GroupId, segment: usize) -> Checked<Length> {
        let segment = &self.system.groups[group.index()].segments[segment];
        self.of_wcet(segment, segment.wcet)
    }

    /// The same if its wcet were another; away from home it grows by as much.
    pub(crate) fn of_wcet(&self, segment: &GroupSegment, wcet: Work) -> Checked<Length> {
        let grown = wcet.saturating_sub(segment.wcet);
        let away = segment.wcet_away.unwrap_or(segment.wcet);
        let away = in_range(away.checked_add(grown), WHAT)?;
        Ok(Length {
            home: self.planned(segment, wcet)?,
            away: self.planned(segment, away)?,
        })
    }

    fn planned(&self, segment: &GroupSegment, wcet: Work) -> Checked<Work> {
        let cost = wcet.checked_add(segment.wait().as_work());
        let cost = cost.and_then(|cost| cost.checked_add(self.overhead()));
        let switch = match self.are_whole() {
            true => Work::ZERO,
            false => self.system.planning.process_switch,
        };
        let cost = in_range(cost.and_then(|cost| cost.checked_add(switch)), WHAT)?;
        let mut longest = Work::ZERO;
        for node in &self.nodes {
            longest = longest.max(node.time_for(cost)?);
        }
        Ok(longest)
    }
}

impl Node {
    /// The longest that work takes from any beginning: the least t with t ≥ supply for (work and
    /// what is reserved in t). Nothing comes for ever where nothing is sure of the supply.
    fn time_for(&self, work: Work) -> Checked<Work> {
        let own = in_range(work.checked_add(self.background), WHAT)?;
        let mut window = own.as_span();
        for _ in 0..STEPS {
            let mut demand = own;
            for reserved in &self.reserved {
                let taken = reserved.requests.request_bound(window)?;
                demand = in_range(demand.checked_add(taken), WHAT)?;
            }
            let Some(next) = self.supply.time_for(demand)? else {
                return Ok(Work::MAX);
            };
            if next <= window {
                return Ok(window.max(next).as_work());
            }
            window = next;
        }
        Err(AnalysisError::TooLong { what: WHAT })
    }
}
