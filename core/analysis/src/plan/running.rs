//! The plan of a system that runs, and a request that is planned beside it
//!
//! # Assumptions
//! 1. The plan that runs was admitted, and no segment executes for longer than its wcet.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;

use punctual_model::{GroupId, Instant, Ns, Request, Span, System};
use punctual_planner::{Ask, Pace, Search};

use super::answer::{Plan, PlannedSegment};
use super::beside::{Beside, Executed, Family};
use super::expand::{Instance, MOST_SEGMENTS, Parts};
use super::length::Lengths;
use super::{Refused, refused};
use crate::error::{AnalysisError, Checked, in_range};
use crate::units::TICK;

const WHAT: &str = "an instant of a request";

/// The plan of a system that runs: groups that are executed, groups that repeat, and the last
/// cutoff.
///
/// It is told of early starts and ends. Without that, each segment starts and ends as planned.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RunningPlan {
    families: Vec<Family>,
    pub(super) cutoff: Instant<Ns>,
    /// Executed once, from the first instant on.
    first: Vec<Family>,
    /// Executed again and again; instants of its first time.
    repeating: Vec<Family>,
    /// Arrivals before that are among the families.
    until: Instant<Ns>,
    repeats_from: Instant<Ns>,
    period: Span<Ns>,
}

/// A request for one arrival of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupRequest {
    /// The group.
    pub group: GroupId,
    /// Which of its arrivals, counted from 0: with the group the name of what is planned.
    pub instance: u64,
    /// All its instants count from then.
    pub arrival: Instant<Ns>,
    /// When it is asked for.
    pub now: Instant<Ns>,
}

impl RunningPlan {
    /// The plan of a verdict before its first instant. Without one ([`RunningPlan::default`])
    /// nothing runs. O(n log n).
    ///
    /// # Errors
    /// [`AnalysisError::Invalid`]: a plan of another system.
    pub fn new(system: &System, plan: &Plan) -> Result<RunningPlan, AnalysisError> {
        let lengths = Lengths::new(system)?;
        RunningPlan::of(&Parts::new(system, &lengths), plan)
    }

    pub(super) fn of(parts: &Parts<'_>, plan: &Plan) -> Checked<RunningPlan> {
        let repeats_from = Instant::ZERO.saturating_add(plan.repeats_from);
        let mut running = RunningPlan {
            repeats_from,
            period: plan.period,
            ..RunningPlan::default()
        };
        let places: BTreeMap<_, &PlannedSegment> = plan
            .segments
            .iter()
            .map(|one| ((one.group, one.instance, one.segment), one))
            .collect();
        let is_root = |one: &&PlannedSegment| {
            let group = parts.system.groups.get(one.group.index());
            one.segment == 0 && group.is_some_and(|group| group.request != Request::Spawned)
        };
        for one in plan.segments.iter().filter(is_root) {
            let every = match parts.system.groups[one.group.index()].request {
                Request::Periodic { period } => period,
                _ => Span::ZERO,
            };
            let root = Instance {
                group: one.group,
                number: one.instance,
                arrival: one.arrival,
                every,
            };
            let expanded = parts.expand(&[root], None)?;
            let own = expanded.parts.iter().map(|&(own, segment)| {
                let group = expanded.instances[own].group;
                places.get(&(group, root.number, segment)).copied()
            });
            let own: Option<Vec<Executed>> = own.map(|one| Some(planned(one?.clone()))).collect();
            let segments = own.ok_or_else(another)?;
            let family = Family { root, segments };
            match root.arrival < repeats_from {
                true => running.first.push(family),
                false => running.repeating.push(family),
            }
        }
        Ok(running)
    }

    /// The segments that have not ended, with their places, as far as a request has reached. Groups
    /// that repeat go on behind that. In no order.
    pub fn segments(&self) -> impl Iterator<Item = &PlannedSegment> {
        let all = self.families.iter().flat_map(|family| &family.segments);
        let all = all.filter(|one| !one.has_ended && !one.is_gone);
        all.map(|one| &one.planned)
    }

    /// No segment that starts before is moved any more, and the next request is planned from then
    /// on.
    pub fn cutoff(&self) -> Instant<Ns> {
        self.cutoff
    }

    /// A segment has started then, earlier than planned: it stays, and is over earlier. `false`: it
    /// is not there. O(segments).
    pub fn started(&mut self, whose: (GroupId, u64), segment: usize, at: Instant<Ns>) -> bool {
        self.tell(whose, segment, at, |one| {
            let length = one.planned.end.since(one.planned.start);
            one.planned.start = at;
            one.planned.end = at.saturating_add(length);
            one.has_started = true;
        })
    }

    /// A segment has ended then, earlier than planned. `false`: it is not there. O(segments).
    ///
    /// Starts, ends and kills are told in the order of time, before a later request.
    pub fn ended(&mut self, whose: (GroupId, u64), segment: usize, at: Instant<Ns>) -> bool {
        self.tell(whose, segment, at, |one| {
            // It has started before those on its CPU that start at its end.
            let before = at.saturating_sub(TICK);
            (one.planned.start, one.planned.end) = (one.planned.start.min(before), at);
            (one.has_started, one.has_ended) = (true, true);
        })
    }

    fn tell(
        &mut self,
        (group, instance): (GroupId, u64),
        segment: usize,
        at: Instant<Ns>,
        what: impl Fn(&mut Executed),
    ) -> bool {
        if self.reach(at, at.saturating_add(TICK)).is_err() {
            return false;
        }
        let mut own = self.left_of(group, instance);
        own.find(|one| one.planned.segment == segment)
            .map(what)
            .is_some()
    }

    /// A group was killed then: its segments that have not started are not executed. The next
    /// request that is granted gives their room away, but for those before its cutoff, and those
    /// in whose place a handler may clean up. One that is passed over before is told as ended.
    /// `false`: nothing of it is left. O(segments).
    pub fn killed(&mut self, (group, instance): (GroupId, u64), at: Instant<Ns>) -> bool {
        if self.reach(at, at.saturating_add(TICK)).is_err() {
            return false;
        }
        let left = self.left_of(group, instance);
        left.map(|one| one.is_dead = true).count() > 0
    }

    /// The segments of an arrival that have not ended.
    fn left_of(&mut self, group: GroupId, instance: u64) -> impl Iterator<Item = &mut Executed> {
        let all = self.families.iter_mut().flat_map(|one| &mut one.segments);
        all.filter(move |one| {
            let planned = &one.planned;
            let is_it = (planned.group, planned.instance) == (group, instance);
            is_it && !one.has_ended && !one.is_gone
        })
    }

    /// Takes over all that repeats and arrives before `until`: at once all that was planned with
    /// it. Periods that are over by `now` are passed over. With each period, segments that are
    /// over are forgotten, as by a planner.
    fn reach(&mut self, now: Instant<Ns>, until: Instant<Ns>) -> Checked<()> {
        if self.until == Instant::ZERO {
            self.families.append(&mut self.first);
            self.until = self.repeats_from;
        }
        if self.period.is_zero() {
            return Ok(());
        }
        let period = self.period;
        let later = |from: Instant<Ns>, periods: u64| {
            let by = period.checked_mul(periods);
            in_range(by.and_then(|by| from.checked_add(by)), WHAT)
        };
        let mut at = later(self.until, now.since(self.until) / self.period)?;
        let of_one: usize = self.repeating.iter().map(|one| one.segments.len()).sum();
        let parts = until.since(at).div_ceil(self.period);
        if parts.saturating_mul(of_one as u64) > MOST_SEGMENTS as u64 {
            let what = format!("a request beside a plan of more than {MOST_SEGMENTS} segments");
            return Err(AnalysisError::Unsupported { what });
        }
        while at < until {
            self.forget(at.min(now));
            let by = at.since(self.repeats_from);
            for family in &self.repeating {
                self.families.push(family.later(by)?);
            }
            at = later(at, 1)?;
        }
        self.until = at;
        Ok(())
    }

    /// Each segment starts and ends as planned until `now`.
    fn go_on(&mut self, now: Instant<Ns>) {
        for one in self.families.iter_mut().flat_map(|one| &mut one.segments) {
            one.has_started |= one.planned.start < now;
            one.has_ended |= one.planned.end <= now;
        }
    }

    /// The segments that are over by `now` take no more time of a planner.
    fn forget(&mut self, now: Instant<Ns>) {
        for one in self.families.iter_mut().flat_map(|one| &mut one.segments) {
            let is_over = one.planned.end <= now;
            one.has_ended |= is_over;
            one.is_forgotten |= is_over;
        }
        let is_left = |one: &Executed| !one.is_forgotten && !one.is_gone;
        let lives = |family: &Family| family.segments.iter().any(is_left);
        self.families.retain(lives);
    }

    /// Takes over all that repeats as far as a request reaches: when it is planned, and the most
    /// that planning takes.
    pub(super) fn prepare(
        &mut self,
        parts: &Parts<'_>,
        request: &GroupRequest,
    ) -> Checked<(Instant<Ns>, Span<Ns>)> {
        let bound = match parts.system.groups[request.group.index()].is_off_line() {
            true => Span::ZERO,
            false => parts.system.planning.within,
        };
        let begin = request.now.max(self.cutoff);
        let cutoff = in_range(begin.checked_add(bound), WHAT)?;
        let end = request
            .arrival
            .checked_add(parts.end_of_family(request.group));
        let until = in_range(end, WHAT)?.max(cutoff.saturating_add(TICK));
        self.reach(begin, until)?;
        Ok((begin, bound))
    }

    /// The plan of the book is in force. The groups that gave way.
    fn take_over(&mut self, beside: &Beside, root: Instance) -> Vec<Instance> {
        let new = beside.new.parts.iter().map(|&(own, segment)| {
            let instance = beside.new.instances[own];
            planned(PlannedSegment {
                group: instance.group,
                instance: instance.number,
                segment,
                arrival: instance.arrival,
                node: 0,
                start: Instant::ZERO,
                end: Instant::ZERO,
            })
        });
        let segments = new.collect();
        self.families.push(Family { root, segments });
        let all = self.families.iter_mut().flat_map(|one| &mut one.segments);
        let mut all: Vec<&mut Executed> = all.collect();
        let segments = beside.book.segments();
        for one in all.iter_mut().filter(|one| !one.has_ended) {
            one.is_gone |= one.is_dead;
        }
        for (number, place) in beside.book.placements().iter().enumerate() {
            let tag = usize::try_from(segments.tag(number));
            let Some(one) = tag.ok().and_then(|tag| all.get_mut(tag)) else {
                continue;
            };
            one.is_gone = false;
            let one = &mut one.planned;
            (one.node, one.start, one.end) = (place.cpu, place.start, place.end);
        }
        let removed = beside.removed();
        self.families
            .retain(|family| !removed.contains(&family.root));
        removed
    }

    /// The segments that have not ended, in the order of their starts.
    pub(super) fn by_start(&self) -> Vec<PlannedSegment> {
        let mut all: Vec<PlannedSegment> = self.segments().cloned().collect();
        all.sort_by_key(|one| (one.start, one.node));
        all
    }
}

impl Family {
    fn later(&self, by: Span<Ns>) -> Checked<Family> {
        let later = |at: Instant<Ns>| in_range(at.checked_add(by), WHAT);
        let mut family = self.clone();
        let more = match self.root.every.is_zero() {
            true => 0,
            false => by / self.root.every,
        };
        family.root.number += more;
        family.root.arrival = later(family.root.arrival)?;
        for one in &mut family.segments {
            let one = &mut one.planned;
            one.instance += more;
            (one.arrival, one.start, one.end) =
                (later(one.arrival)?, later(one.start)?, later(one.end)?);
        }
        Ok(family)
    }
}

fn planned(planned: PlannedSegment) -> Executed {
    Executed {
        planned,
        has_started: false,
        has_ended: false,
        is_forgotten: false,
        is_dead: false,
        is_gone: false,
    }
}

fn another() -> AnalysisError {
    AnalysisError::Invalid {
        what: "a plan of another system".into(),
    }
}

/// A request and its outcome, without words.
pub(super) struct Asked {
    pub(super) cutoff: Instant<Ns>,
    /// The plan with it, or why there is none.
    pub(super) result: Result<RunningPlan, Refused>,
    pub(super) removed: Vec<(GroupId, u64)>,
    /// Evaluations, and places taken back.
    pub(super) effort: (u64, u64),
}

impl Asked {
    /// Plans this request.
    pub(super) fn new(
        parts: &Parts<'_>,
        running: &RunningPlan,
        request: &GroupRequest,
    ) -> Checked<Asked> {
        let planning = &parts.system.planning;
        let known = parts.system.groups[request.group.index()].is_off_line();
        let root = Instance {
            group: request.group,
            number: request.instance,
            arrival: request.arrival,
            every: Span::ZERO,
        };
        let mut next = running.clone();
        let (begin, bound) = next.prepare(parts, request)?;
        next.go_on(begin);
        let mut beside = Beside::new(parts, &next.families, begin, &[root])?;
        let pace = (!known && planning.counts()).then(|| Pace {
            evaluation: planning.evaluation.as_span(),
            segment: planning.segment_cost().as_span(),
            margin: planning.margin,
        });
        let waited = begin.since(request.now);
        let max_wait = parts.system.longest_wait(request.group);
        let ask = Ask {
            pace,
            max_wait: max_wait.map(|most| most.saturating_sub(waited)),
            overload: planning.overload,
            ..Ask::new(begin, bound, Search::of_request(planning))
        };
        let answer = beside.ask(&ask);
        let mut asked = Asked {
            cutoff: beside.book.cutoff().max(begin),
            result: Ok(RunningPlan::default()),
            removed: Vec::new(),
            effort: (0, 0),
        };
        match answer {
            Ok(accepted) => {
                let removed = next.take_over(&beside, root);
                next.forget(begin);
                let names = removed.iter().map(|one| (one.group, one.number));
                asked.removed = names.collect();
                asked.effort = (accepted.evaluations, accepted.backtracks);
                next.cutoff = accepted.cutoff;
                asked.result = Ok(next);
            }
            Err(refusal) => {
                asked.effort = (refusal.evaluations, refusal.backtracks);
                asked.result = Err(refused(parts, &beside, &refusal, asked.cutoff)?);
            }
        }
        Ok(asked)
    }
}
