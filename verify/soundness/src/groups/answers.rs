//! Each request as the analysis answers it: does virtual time plan the same at the same instant?

use std::collections::BTreeMap;

use punctual::kern::{AgendaStep, Event, TraceEvent};
use punctual_analysis::{
    GroupRequest, Plan, PlanVerdict, PlannedSegment, RunningPlan, admit_request,
};
use punctual_model::{Group, GroupId, Instant, Ns, Request, Span, System};
use punctual_sim::{Execution, GroupOutcome, Why};
use punctual_trace::{Log, Record};

use super::draw::DURATION;
use super::play::Played;

/// The news of a group for an analysis, in this order at one instant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Told {
    Ended,
    Killed,
    Started,
}

/// A run without missing time on whole CPUs, and the analysis beside it.
struct Answers<'a> {
    system: &'a System,
    plan: Option<&'a Plan>,
    played: &'a Played,
    /// By group: its segments as a run numbers them.
    orders: Vec<Vec<usize>>,
    /// By CPU and instant of a start: how many requests that CPU had heard of before it.
    heard: BTreeMap<(usize, Instant), u64>,
    running: RunningPlan,
}

/// Holds each request of a run against the answer of the analysis beside the same plan, as long as
/// all that it is planned with is in the run; how many there were.
///
/// # Errors
/// The first answer or start that is another one, in words.
pub(super) fn compare(
    system: &System,
    answer: &PlanVerdict,
    played: &Played,
) -> Result<u64, String> {
    let running = match &answer.plan {
        Some(plan) => RunningPlan::new(system, plan).map_err(|error| error.to_string())?,
        None => RunningPlan::default(),
    };
    let mut answers = Answers {
        system,
        plan: answer.plan.as_ref(),
        played,
        orders: system.groups.iter().map(Group::in_order).collect(),
        heard: heard(&played.log),
        running,
    };
    answers.all()
}

impl Answers<'_> {
    fn all(&mut self) -> Result<u64, String> {
        let mut count = 0;
        for (number, outcome) in self.played.outcomes.iter().enumerate() {
            if outcome.family != number || self.is_planned_before(outcome) {
                continue;
            }
            if !self.is_whole(outcome) {
                return Ok(count);
            }
            let now = at(outcome.requested).max(self.running.cutoff());
            self.tell(now, count);
            if self.passes_over(now) {
                return Ok(count);
            }
            self.one(outcome)?;
            count += 1;
        }
        self.starts()?;
        Ok(count)
    }

    /// It stands in the plan that was made before the run.
    fn is_planned_before(&self, outcome: &GroupOutcome) -> bool {
        self.plan.is_some() && self.system.groups[outcome.kind].is_off_line()
    }

    /// All with which it is planned arrives within the run, and there was room.
    fn is_whole(&self, outcome: &GroupOutcome) -> bool {
        let full = outcome.refused.as_ref();
        if full.is_some_and(|refusal| refusal.why == Why::TooLarge) {
            return false;
        }
        let Some(plan) = self.plan.filter(|plan| !plan.period.is_zero()) else {
            return true;
        };
        let deadlines = self
            .system
            .groups
            .iter()
            .map(|group| group.relative_deadline);
        let deadline = deadlines.max().unwrap_or(Span::ZERO);
        let arrival = at(outcome.arrival).saturating_add(deadline);
        let answered = at(outcome.answered).saturating_add(Span::from_ns(1));
        let reach = arrival.max(answered).since(Instant::ZERO);
        let parts = reach
            .saturating_sub(plan.repeats_from)
            .div_ceil(plan.period);
        let end = plan
            .repeats_from
            .saturating_add(plan.period.saturating_mul(parts));
        end.as_ns() <= DURATION
    }

    /// The name of an arrival in the plan of the analysis.
    fn instance(&self, outcome: &GroupOutcome) -> (GroupId, u64) {
        let group = GroupId(u16::try_from(outcome.kind).unwrap_or(u16::MAX));
        let root = &self.played.outcomes[outcome.family];
        let instance = match &self.system.groups[root.kind].request {
            Request::Once { .. } => 0,
            Request::Periodic { period } => root.arrival.ticks() / period.as_ns(),
            _ => outcome.family as u64,
        };
        (group, instance)
    }

    /// The plan hears of all that was executed before so many requests were planned and this one
    /// is, in the order of time. A segment may start at the instant of a plan because of it.
    fn tell(&mut self, now: Instant<Ns>, before: u64) {
        let mut heard = Vec::new();
        for outcome in &self.played.outcomes {
            let whose = self.instance(outcome);
            let order = &self.orders[outcome.kind];
            let segments = outcome.executions.iter().enumerate();
            let segments = segments.filter_map(|(place, one)| Some((place, (*one)?)));
            for (place, one) in segments.chain(outcome.cleaned.iter().copied()) {
                if self.heard_before(&one) <= before {
                    heard.push(match at(one.end) <= now {
                        true => (at(one.end), Told::Ended, whose, order[place]),
                        false => (at(one.start), Told::Started, whose, order[place]),
                    });
                }
            }
            let killed = outcome.killed.map(at).filter(|killed| *killed <= now);
            heard.extend(killed.map(|at| (at, Told::Killed, whose, 0)));
        }
        heard.sort_unstable();
        for (when, told, whose, segment) in heard {
            let _ = match told {
                Told::Started => self.running.started(whose, segment, when),
                Told::Ended => self.running.ended(whose, segment, when),
                Told::Killed => self.running.killed(whose, when),
            };
        }
    }

    /// Something of the dead has its place before the cutoff of a request, or a handler, or takes
    /// time of the planner. A log does not say which segment was passed over when.
    fn passes_over(&self, now: Instant<Ns>) -> bool {
        let planning = &self.system.planning;
        let cutoff = now.saturating_add(planning.within);
        let unknown = |one: &PlannedSegment| {
            let segment = &self.system.groups[one.group.index()].segments[one.segment];
            planning.counts() || !segment.cleanup.is_zero() || one.start < cutoff
        };
        let dead = |outcome: &&GroupOutcome| outcome.killed.is_some_and(|killed| at(killed) <= now);
        let mut dead = self.played.outcomes.iter().filter(dead);
        dead.any(|outcome| {
            let whose = self.instance(outcome);
            let left = self.running.segments();
            let mut left = left.filter(|one| (one.group, one.instance) == whose);
            left.any(unknown)
        })
    }

    fn heard_before(&self, one: &Execution) -> u64 {
        let heard = self.heard.get(&(one.cpu, one.start));
        heard.copied().unwrap_or(u64::MAX)
    }

    fn one(&mut self, outcome: &GroupOutcome) -> Result<(), String> {
        let (group, instance) = self.instance(outcome);
        let request = GroupRequest {
            group,
            instance,
            arrival: at(outcome.arrival),
            now: at(outcome.requested),
        };
        let verdict = admit_request(self.system, &mut self.running, &request);
        let verdict = verdict.map_err(|error| error.to_string())?;
        let name = &self.system.groups[outcome.kind].name;
        let differ = |what: &str, theirs: String, ours: String| {
            let at = outcome.requested.ticks();
            Err(format!(
                "{name}, asked for at {at}: {what} {theirs}, and {ours} by the analysis"
            ))
        };
        let (theirs, ours) = (outcome.answered.ticks(), verdict.cutoff.as_ns());
        if theirs != ours {
            return differ("answered at", theirs.to_string(), ours.to_string());
        }
        let effort = outcome.refused.as_ref().map(|refusal| refusal.evaluations);
        let own = verdict.refusal.as_ref().map(|_| verdict.evaluations);
        if effort != own {
            return differ("refused after", format!("{effort:?}"), format!("{own:?}"));
        }
        let planning = &self.system.planning;
        let looked = planning
            .evaluation
            .as_span()
            .saturating_mul(verdict.evaluations);
        let known = self.system.groups[outcome.kind].is_off_line();
        if !planning.evaluation.is_zero()
            && !known
            && verdict.evaluations > 0
            && looked.saturating_add(planning.margin) > planning.within
        {
            return differ(
                "answered within",
                looked.readable().to_string(),
                "later".into(),
            );
        }
        Ok(())
    }

    /// A segment that was not told starts where the analysis has planned it.
    fn starts(&self) -> Result<(), String> {
        let mut executed = BTreeMap::new();
        for outcome in &self.played.outcomes {
            let order = &self.orders[outcome.kind];
            for (&segment, one) in order.iter().zip(&outcome.executions) {
                let whose = self.instance(outcome);
                let _ = executed.insert((whose, segment), (outcome.removed, one));
            }
        }
        for planned in self.running.segments() {
            let key = ((planned.group, planned.instance), planned.segment);
            let Some((removed, one)) = executed.get(&key) else {
                continue;
            };
            // One that had started when the analysis was told of it has its start from that.
            let same = one.is_none_or(|one| {
                let starts = [one.start.ticks(), one.planned.ticks()];
                starts.contains(&planned.start.as_ns())
            });
            if !same || removed.is_some() {
                return Err(format!("{planned:?} by the analysis, and {one:?}"));
            }
        }
        Ok(())
    }
}

/// By CPU and instant of a start: the requests that the CPU had heard of.
fn heard(log: &Log) -> BTreeMap<(usize, Instant), u64> {
    let mut all = BTreeMap::new();
    for (cpu, log) in log.cpus.iter().enumerate() {
        let (mut now, mut count) = (Instant::ZERO, 0);
        for (_, record) in &log.records {
            match record {
                Record::Entry(entry) => {
                    now = entry.now;
                    let cutoff = match entry.event {
                        Event::Agenda(AgendaStep::Hold { cutoff }) => cutoff,
                        _ => None,
                    };
                    count += u64::from(cutoff.is_some());
                }
                Record::Trace(TraceEvent::SegmentStarted { .. }) => {
                    let _ = all.insert((cpu, now), count);
                }
                _ => {}
            }
        }
    }
    all
}

fn at(ticks: Instant) -> Instant<Ns> {
    Instant::from_ns(ticks.ticks())
}
