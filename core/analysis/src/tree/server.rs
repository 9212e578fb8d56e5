//! Servers: entities of their parent, supply of the tasks below
//!
//! # Assumptions
//! 1. Those of the tree, number 2.

use alloc::format;
use alloc::vec::Vec;

use punctual_model::{Ns, PolicyKind, SchedulerId, ServerKind, System};

use super::{PREEMPTIVE, Walk};
use crate::blocking::budget_end;
use crate::bounds::STEPS;
use crate::demand::{Cost, RequestBound};
use crate::edf;
use crate::entity::{Arrival, Entity, Unserved, Who};
use crate::error::{Checked, in_range, invalid};
use crate::fixed_point::StepBudget;
use crate::fixed_priority;
use crate::lookup::{is_below, tasks_of};
use crate::node::Node;
use crate::overhead;
use crate::supply::budget::{Budget, Lateness, Served};
use crate::units::{Span, TICK, UNIT, Work, border};

/// Amounts of a sporadic server that come back each on its own (`kern` keeps as many).
const REPLENISHMENTS: u64 = 8;
/// Most steps of the lateness of a budget that are told apart.
const MOST_STEPS: usize = 12;

impl Walk<'_> {
    /// A holder below a server may go on beyond its budget, which the next one pays back: once. A
    /// polling server has work from the beginning of its period up to there. Others may wake up
    /// shortly before their deadline: then what is beyond has less time than any deadline.
    pub(super) fn add_overrun(
        &self,
        node: &mut Node,
        id: SchedulerId,
        server: &Entity,
    ) -> Checked<()> {
        let overrun = budget_end::overrun(self.system, id)?;
        if !overrun.is_zero() {
            let mut entity = server.clone();
            if server.arrival == Arrival::Free || !self.is_polling(id) {
                entity.kept = server.deadline;
            }
            entity.requests = RequestBound::of_jobs(None, overrun, entity.kept);
            entity.section = Work::ZERO;
            entity.arrival = Arrival::Free;
            node.unserved.push(Unserved { child: id, entity });
        }
        Ok(())
    }

    fn is_polling(&self, id: SchedulerId) -> bool {
        let scheduler = self.system.schedulers.get(id.index());
        scheduler.is_some_and(|s| {
            matches!(s.supply, punctual_model::Supply::Server(server)
                if server.kind == ServerKind::Polling)
        })
    }

    /// The budget of the server at `place`, which is given within `response`.
    pub(super) fn supply_of(
        &self,
        node: &Node,
        place: usize,
        response: Option<Span>,
    ) -> Checked<Option<Budget>> {
        let entity = &node.entities[place];
        let (Who::Server(id), Some(response)) = (entity.who, response) else {
            return Ok(None);
        };
        let punctual_model::Supply::Server(server) = self.system.schedulers[id.index()].supply
        else {
            return Ok(None);
        };
        let overheads = self.lost_to_overheads(id, response)?;
        let overrun = budget_end::overrun(self.system, id)?;
        let lost = budget_end::lost(self.system, id, server.kind)?;
        let usable = server.budget.saturating_sub(lost.saturating_add(overheads));
        Ok(Budget::new(&Served {
            kind: server.kind,
            usable,
            period: server.period,
            response,
            // What overheads take may come first.
            steps: if overheads.is_zero() {
                steps(node, place, usable, self.step_budget)?
            } else {
                Vec::new()
            },
            merges: self.may_merge(id, server.period),
            rests_are_late: node.policy == PolicyKind::EarliestDeadlineFirst
                && !edf::keeps_short_deadlines(node),
            overrun,
        }))
    }

    /// The part of a budget that overheads use: each starts cold, and again after each job that may
    /// preempt it.
    fn lost_to_overheads(&self, id: SchedulerId, response: Span) -> Checked<Work> {
        let episode = overhead::episode(&self.system.machine)?;
        if episode.is_zero() {
            return Ok(Work::ZERO);
        }
        let mut times = 1_u64;
        for task in self.system.tasks.iter().filter(|t| t.cpu == self.cpu) {
            let inside = is_below(self.system, task.scheduler, id);
            let Some(separation) = task.class.min_separation() else {
                times = times.saturating_add(u64::from(!inside));
                continue;
            };
            if !inside {
                let reach = response.saturating_add(task.jitter);
                let jobs = reach.div_ceil(separation.max(TICK));
                let resumes = u64::from(task.suspensions).saturating_add(1);
                times = times.saturating_add(jobs.saturating_mul(resumes));
            }
        }
        in_range(episode.checked_mul(times), "overheads of a budget")
    }

    /// Whether a sporadic server's amounts may come to have more instants than it can remember.
    /// Each instant is one at which work arrived, any number of periods later: where all arrive by
    /// the clock at rates that fit the period, there are only so many.
    fn may_merge(&self, id: SchedulerId, period: Span) -> bool {
        let mut instants = 0_u64;
        for (scheduler, _) in self.schedulers() {
            if !is_below(self.system, Some(scheduler), id) {
                continue;
            }
            if scheduler != id {
                return true;
            }
            for (_, task) in tasks_of(self.system, (self.cpu, Some(scheduler))) {
                let steady = task.class.arrives_by_clock()
                    && task.jitter.is_zero()
                    && task.max_suspension.is_zero()
                    && task.after.is_empty()
                    && task.follows.is_empty()
                    && task.uses.is_empty();
                let separation = task.class.min_separation().unwrap_or_default();
                let fits = !separation.is_zero()
                    && ((separation % period).is_zero() || (period % separation).is_zero());
                if !steady || !fits {
                    return true;
                }
                instants = instants.saturating_add(period.div_ceil(separation));
            }
        }
        instants >= REPLENISHMENTS
    }
}

/// How late the first parts of a budget come: under preemptive priorities their own responses
/// (Davis and Burns 2005, whom only the last budget of a job meets in full). Each step is as late
/// as its last unit; where the lateness has too many steps, some are counted as late as the next.
fn steps(
    node: &Node,
    place: usize,
    usable: Work,
    step_budget: &StepBudget,
) -> Checked<Vec<Lateness>> {
    let mut steps = Vec::new();
    if node.policy != PREEMPTIVE || usable <= UNIT {
        return Ok(steps);
    }
    // Where anything waits for predecessors the bound may be another than this response.
    if node.all_entities().any(|c| !c.waiting.is_zero()) {
        return Ok(steps);
    }
    let mut own = node.entities[place].clone();
    let mut late = |service: Work| -> Checked<Option<Span>> {
        own.requests.cost = service;
        let query = fixed_priority::query(node, place, None);
        let first = query.first_response(&own, &mut step_budget.search_steps(STEPS))?;
        Ok(first.map(|response| response.saturating_sub(service.as_span())))
    };
    let Some(mut at) = late(UNIT)? else {
        return Ok(steps);
    };
    let mut begin = UNIT;
    for _ in 0..MOST_STEPS {
        // The last unit that is as late as the first one of this step.
        let same = border(usable, begin, |service| Ok(late(service)? == Some(at)))?;
        let later = same.saturating_add(UNIT);
        steps.push(Lateness {
            service: same,
            late: at,
        });
        if later == usable {
            return Ok(steps);
        }
        begin = later;
        match late(begin)? {
            Some(found) => at = found,
            None => return Ok(steps),
        }
    }
    Ok(steps)
}

/// A server among the entities of its parent.
pub(super) fn entity_of(
    system: &System,
    id: SchedulerId,
    child: &punctual_model::Scheduler,
    server: &punctual_model::Server<punctual_model::Ns>,
    policy: PolicyKind<Ns>,
) -> Checked<Entity> {
    let (budget, period) = (server.budget, server.period);
    if budget.is_zero() || budget.as_span() > period {
        let what = format!(
            "the server of `{}` has no budget within its period",
            child.name
        );
        return Err(invalid(&what));
    }
    let by_clock = matches!(
        server.kind,
        ServerKind::Polling | ServerKind::PeriodicResource
    );
    let keeps = match server.kind {
        ServerKind::Deferrable => true,
        // While a section waits for the next budget, nothing passes of this one.
        ServerKind::Polling | ServerKind::PeriodicResource => {
            !budget_end::unused(system, id).is_zero()
        }
        ServerKind::Sporadic | ServerKind::ConstantBandwidth => false,
    };
    let kept = match keeps {
        true => period.saturating_sub(budget.as_span()),
        false => Span::ZERO,
    };
    let runs_through = matches!(
        policy,
        PolicyKind::Fifo | PolicyKind::FixedPriority { preemptive: false }
    );
    Ok(Entity {
        who: Who::Server(id),
        requests: RequestBound {
            separation: Some(period),
            cost: budget,
            jitter: kept,
            is_fluid: server.kind == ServerKind::ConstantBandwidth,
            once: Work::ZERO,
        },
        kept,
        deadline: period,
        priority: child.priority.number(),
        section: if runs_through { budget } else { Work::ZERO },
        whole: false,
        arrival: match by_clock && !keeps {
            true => Arrival::Clock(Span::ZERO),
            false => Arrival::Free,
        },
        cost: Cost {
            wcet: budget,
            ..Cost::default()
        },
        waiting: Span::ZERO,
    })
}
