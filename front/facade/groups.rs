//! The planned groups of a system in virtual time, and what became of them in its log

use punctual_analysis::{AnalysisError, PlanVerdict, PlannedSegment, bounds_only};
use punctual_model::{Arrivals, Frequency, Instant, Ns, Request, Span, System, WorkSource};
use punctual_sim::{GroupOutcome, GroupTerms, Groups, Outcome, Placed, Why};
use punctual_tables::Tables;
use punctual_trace::{Fate, Recorder, RequestInfo};

use crate::simulate::Lowered;
use crate::{Error, Verdict, admit_by};

/// No live platform executes groups yet.
///
/// # Errors
/// [`Error::Group`] with the first of them.
pub(crate) fn refuse(system: &System) -> Result<(), Error> {
    match system.groups.first() {
        Some(group) => Err(Error::Group(group.name.clone())),
        None => Ok(()),
    }
}

/// The groups of a system with its threads, where the tables have room for their plans.
pub(crate) fn planned(
    (system, lowered): (&System, &Lowered<'_>),
    tables: &mut Tables,
    (duration, seed): (Span<Ns>, u64),
) -> Option<Groups> {
    let terms = lowered.terms.as_ref()?;
    let threads = (system, lowered.planned);
    let groups = Groups::of_system(threads, tables, terms, (duration, seed));
    let (tasks, room) = groups.agendas(lowered.planned);
    tables.add_agendas(&tasks, room);
    Some(groups)
}

/// The answers of the analysis about the groups of a system, `None` without any. Without a verdict
/// it is asked.
///
/// # Errors
/// A segment with a function, or those of [`crate::admit`].
pub(crate) fn terms(
    system: &System,
    verdict: Option<&Verdict>,
) -> Result<Option<GroupTerms>, Error> {
    for group in &system.groups {
        for segment in &group.segments {
            if !matches!(segment.work, None | Some(WorkSource::Burn(_))) {
                return Err(Error::SegmentFunction {
                    group: group.name.clone(),
                    segment: segment.name.clone(),
                });
            }
        }
    }
    if system.groups.is_empty() {
        return Ok(None);
    }
    let of = |verdict: &Verdict| verdict.plan.as_ref().map(group_terms);
    match verdict {
        Some(verdict) => Ok(of(verdict)),
        None => Ok(of(&admit_by(system, bounds_only)?)),
    }
}

/// Most arrivals of one group in a run.
const MOST_ARRIVALS: u64 = 1 << 20;

/// A run keeps what became of every arrival, so they are bounded.
///
/// # Errors
/// [`Error::Analysis`] with the group that has too many.
pub(crate) fn check_count(system: &System, duration: Span<Ns>) -> Result<(), Error> {
    for group in &system.groups {
        let apart = match &group.request {
            Request::Periodic { period } => *period,
            Request::OnLine { arrivals, .. } => match arrivals {
                Arrivals::Every(span) => *span,
                Arrivals::Random { mean } => *mean,
                Arrivals::At(_) | Arrivals::External => continue,
            },
            Request::Once { .. } | Request::Spawned => continue,
        };
        if duration / apart.max(Span::from_ns(1)) >= MOST_ARRIVALS {
            let what = format!(
                "a run with more than {MOST_ARRIVALS} arrivals of group `{}`",
                group.name
            );
            return Err(Error::Analysis(AnalysisError::Unsupported { what }));
        }
    }
    Ok(())
}

/// The answer of the analysis about groups, as virtual time takes it ([`Groups::of_system`]).
/// O(segments).
pub fn group_terms(answer: &PlanVerdict) -> GroupTerms {
    let lengths = answer.lengths.iter();
    let lengths = lengths.map(|group| {
        let both = group.iter().map(|length| [length.home, length.away]);
        both.collect()
    });
    let place = |segment: &PlannedSegment| Placed {
        group: segment.group,
        arrival: segment.arrival,
        segment: segment.segment,
        node: segment.node,
        start: segment.start,
        end: segment.end,
    };
    let plan = answer.plan.as_ref();
    GroupTerms {
        lengths: lengths.collect(),
        process_switch: answer.process_switch,
        plan: plan.map(|plan| plan.segments.iter().map(place).collect()),
        repeats_from: plan.map_or_else(Default::default, |plan| plan.repeats_from),
        period: plan.map_or_else(Default::default, |plan| plan.period),
    }
}

/// The requests for groups, and their ends.
pub(crate) fn requests(system: &System, outcome: &Outcome<Recorder>) -> Vec<RequestInfo> {
    let of = |request: &GroupOutcome| {
        let group = &system.groups[request.kind];
        let deadline = group.relative_deadline.ticks_up(Frequency::NANOSECONDS);
        let (fate, at) = fate(request, outcome.end);
        let behind = request.arrival.saturating_add(deadline) <= outcome.end;
        RequestInfo {
            group: request.kind,
            arrival: request.arrival,
            asked: request.requested,
            answered: request.answered,
            fate,
            at,
            late: request.missed || fate == Fate::Open && behind,
            executed: request.executions.iter().flatten().count() as u64,
            cleaned: request.cleaned.len() as u64,
        }
    };
    outcome.groups.iter().map(of).collect()
}

fn fate(request: &GroupOutcome, end: Instant) -> (Fate, Instant) {
    let ended = [
        (Fate::Shed, request.removed),
        (Fate::Done, request.done),
        (Fate::Killed, request.killed),
    ];
    let mut ended = ended.into_iter().filter_map(|(fate, at)| Some((fate, at?)));
    match &request.refused {
        Some(refusal) if refusal.why == Why::OutOfTime => (Fate::OutOfTime, request.answered),
        Some(_) => (Fate::Refused, request.answered),
        None => ended.next().unwrap_or((Fate::Open, end)),
    }
}
