//! The planned groups of a system in virtual time, and what became of them in its log

use punctual_analysis::{AnalysisError, PlanVerdict, PlannedSegment};
use punctual_model::{Arrivals, Frequency, Instant, Ns, Request, Span, System, WorkSource};
use punctual_sim::{GroupOutcome, GroupTerms, Outcome, Placed, Why};
use punctual_trace::{Fate, Recorder, RequestInfo};

use crate::{Error, Verdict, admit};

/// What the analysis says about the groups of a system, `None` without any. Without a verdict it is
/// asked.
///
/// # Errors
/// A segment with a function, or those of [`admit`].
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
    let of = |verdict: &Verdict| verdict.plan.as_ref().map(of_answer);
    match verdict {
        Some(verdict) => Ok(of(verdict)),
        None => Ok(of(&admit(system)?)),
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

fn of_answer(answer: &PlanVerdict) -> GroupTerms {
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

/// What became of the requests for groups.
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
