//! Planned groups: a plan for all that is known before the run, or the reason why there is none
//!
//! The periodic groups get a plan of one hyperperiod that repeats. Groups that arrive once are
//! planned together with all periodic instances up to the first multiple of the hyperperiod at
//! which they have ended (design note 0072). A group that is asked for on line is planned beside
//! the plan that runs (`running`, `request`, design note 0091).
//!
//! ```text
//!   admit            ── off_line ── search ──┐
//!   admit_request    ──────────── Asked ─────┴── Beside ── Book ──> places | Refused
//! ```
//!
//! # Assumptions
//! 1. An accepted plan is its own proof: nodes, resources, precedence and deadlines hold.
//! 2. A refusal is exact after a complete search, or by a necessary test: a segment that is late in
//!    every plan, or more work between two instants than fits ([`necessary`]).
//! 3. Lengths are those of [`length`]. Where they are more than wcets, no refusal is exact.
//!
//! Sources: Humphrey and Stankovic (Spring) §2.2, §3.4; Ramamritham, Stankovic and Shiah 1990.

pub(crate) mod answer;
mod beside;
mod expand;
mod fix;
mod length;
mod necessary;
pub(crate) mod request;
mod rows;
pub(crate) mod running;
mod slack;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use punctual_model::{GroupId, Instant, Ns, Request, System};
use punctual_planner::{Placement, Search, Why, evaluations};

use crate::error::{AnalysisError, Checked, in_range};
use crate::units::Span;
use crate::utilization::hyperperiod;
use crate::verdict::{CpuVerdict, Exactness, Refusal, Subject, Witness};
use answer::{Plan, PlanVerdict, PlannedLength, PlannedSegment};
use beside::{Beside, before_the_run};
use expand::{Expanded, Instance, MOST_SEGMENTS, Parts};
use length::Lengths;

/// Most segments that one search looks at.
const EVALUATIONS: u64 = 4_000_000;
/// No fix is searched for where one plan takes more than this.
const FIX_EVALUATIONS: u64 = 400_000;
/// Up to so many segments every order is tried.
const COMPLETE: usize = 8;

/// Whether the answer about groups comes with what mends a refusal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mending {
    /// Nobody reads it.
    Unasked,
    /// Something else of the system is refused, and no fix of a group mends that.
    InVain,
    /// It is searched for.
    Sought,
}

/// The answer about the groups of a system, `None` without any, and why it is refused.
///
/// The cost is that of a plan of each kind, and of some sixty for the fix of a refusal.
pub(crate) fn verdicts(
    system: &System,
    mending: Mending,
) -> Checked<(Option<PlanVerdict>, Vec<Refusal>)> {
    if system.groups.is_empty() {
        return Ok((None, Vec::new()));
    }
    let lengths = Lengths::new(system)?;
    if !system.changes.is_empty() && !lengths.are_whole() {
        let what = String::from("groups on a part of a CPU, in a system that changes");
        return Err(AnalysisError::Unsupported { what });
    }
    let parts = Parts::new(system, &lengths);
    let found = off_line(&parts)?;
    let mut rows = rows::rows(&parts, &found)?;
    let mut refusals = Vec::new();
    if let Err(refused) = &found.result {
        let id = refused.group;
        let name = &system.groups[id.index()].name;
        let mut refusal = Refusal::new(Subject::Group(id), name, refused.reason.clone());
        refusal.witness = refused.witness;
        refusal.situation.clone_from(&refused.situation);
        if mending != Mending::Unasked {
            let is_sought = mending == Mending::Sought && found.evaluations <= FIX_EVALUATIONS;
            refusal.fix = match is_sought {
                true => fix::find(system, refused, &are_admitted)?,
                false => None,
            };
            refusal.advice = fix::words(refusal.fix.as_ref());
        }
        rows[id.index()].exactness = refused.exactness;
        refusals.push(refusal);
    }
    let answer = PlanVerdict {
        groups: rows,
        lengths: all_lengths(system, &lengths)?,
        process_switch: lengths.switch(),
        evaluations: found.evaluations,
        plan: found.result.ok(),
    };
    Ok((Some(answer), refusals))
}

fn all_lengths(system: &System, lengths: &Lengths<'_>) -> Checked<Vec<Vec<PlannedLength>>> {
    let groups = (0..=u16::MAX).map(GroupId).zip(&system.groups);
    let of_group = |(id, group): (GroupId, &punctual_model::Group)| {
        let places = 0..group.segments.len();
        let length = |place| {
            let length = lengths.of(id, place)?;
            Ok(PlannedLength {
                home: length.home,
                away: length.away,
            })
        };
        places.map(length).collect()
    };
    groups.map(of_group).collect()
}

/// Whether all that is planned before the run has a plan.
pub(crate) fn are_admitted(system: &System) -> Checked<bool> {
    if system.groups.is_empty() {
        return Ok(true);
    }
    let lengths = Lengths::new(system)?;
    Ok(off_line(&Parts::new(system, &lengths))?.result.is_ok())
}

/// Adds the share that the part of a plan which repeats takes of whole CPUs. Of others it is in
/// their supply.
pub(crate) fn add_utilization(
    system: &System,
    answer: Option<&PlanVerdict>,
    cpus: &mut [CpuVerdict],
) {
    let plan = answer.and_then(|answer| answer.plan.as_ref());
    let Some(plan) = plan.filter(|plan| !plan.period.is_zero()) else {
        return;
    };
    for (place, node) in system.planned_nodes().into_iter().enumerate() {
        let whole = cpus.iter_mut().find(|row| row.cpu == node.cpu);
        let Some(row) = whole.filter(|_| node.scheduler.is_none()) else {
            continue;
        };
        let from = Instant::ZERO.saturating_add(plan.repeats_from);
        let own = plan.segments.iter();
        let own = own.filter(|segment| segment.node == place && segment.arrival >= from);
        let busy = own.map(|segment| u128::from(segment.end.since(segment.start).as_ns()));
        let ppm = (busy.sum::<u128>() * 1_000_000).div_ceil(u128::from(plan.period.as_ns()));
        row.utilization_ppm += u64::try_from(ppm).unwrap_or(u64::MAX);
    }
}

/// A plan of all that is known before the run, or its refusal.
pub(crate) struct Found {
    pub(crate) result: Result<Plan, Refused>,
    pub(crate) evaluations: u64,
}

/// Why there is no plan.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    pub(crate) group: GroupId,
    /// The segment that could not be in time, by its place in the group.
    pub(crate) segment: usize,
    pub(crate) reason: String,
    pub(crate) exactness: Exactness,
    pub(crate) witness: Option<Witness>,
    pub(crate) situation: String,
}

/// Plans the periodic groups, then those that arrive once with them.
fn off_line(parts: &Parts<'_>) -> Checked<Found> {
    let period = match parts.periodic().next() {
        None => None,
        Some(_) => {
            let all = hyperperiod(parts.periodic().map(|(_, period)| period));
            Some(in_range(all, "the hyperperiod of the groups")?)
        }
    };
    let (first, repeats_from) = head(parts, period)?;
    let base = period_of(parts, period.unwrap_or(Span::ZERO))?;
    let mut evaluations = 0;
    // What repeats is looked at first: without it nothing else has a place.
    let mut result = search(parts, &base, repeats_from, &mut evaluations)?;
    if let Ok(segments) = &mut result
        && !first.is_empty()
    {
        match search(parts, &first, Span::ZERO, &mut evaluations)? {
            Ok(once) => segments.extend(once),
            Err(refused) => result = Err(refused),
        }
    }
    let result = match result {
        Err(refused) => Err(refused),
        Ok(mut segments) => {
            segments.sort_by_key(|segment| (segment.start, segment.node));
            Ok(Plan {
                nodes: rows::node_names(parts),
                segments,
                repeats_from,
                period: period.unwrap_or(Span::ZERO),
            })
        }
    };
    Ok(Found {
        result,
        evaluations,
    })
}

/// All arrivals of periodic groups before `until`.
fn period_of(parts: &Parts<'_>, until: Span) -> Checked<Vec<Instance>> {
    let mut instances = Vec::new();
    for (group, period) in parts.periodic() {
        // Each of them has a segment at least, so more would only fill memory.
        let count = until / period;
        if count.saturating_add(instances.len() as u64) > MOST_SEGMENTS as u64 {
            return Err(parts.too_many(group));
        }
        for number in 0..count {
            let at = in_range(period.checked_mul(number), "an arrival")?;
            instances.push(Instance {
                group,
                number,
                arrival: Instant::ZERO.saturating_add(at),
                every: period,
            });
        }
    }
    Ok(instances)
}

/// The groups that arrive once, with all periodic instances until they have ended, and that
/// instant; empty without such groups.
fn head(parts: &Parts<'_>, period: Option<Span>) -> Checked<(Vec<Instance>, Span)> {
    let (mut once, mut latest) = (Vec::new(), Span::ZERO);
    for (id, group) in (0..=u16::MAX).map(GroupId).zip(&parts.system.groups) {
        if let Request::Once { at } = group.request {
            once.push(Instance {
                group: id,
                number: 0,
                arrival: at,
                every: Span::ZERO,
            });
            let end = at.since(Instant::ZERO).checked_add(parts.end_of_family(id));
            latest = latest.max(in_range(end, "the end of a group")?);
        }
    }
    if once.is_empty() {
        return Ok((once, Span::ZERO));
    }
    let until = match period {
        None => latest,
        Some(period) => in_range(
            period.checked_mul(latest.div_ceil(period)),
            "the end of a group",
        )?,
    };
    once.extend(period_of(parts, until)?);
    Ok((once, until))
}

/// A plan for these arrivals, `later` by so much, or why there is none.
pub(crate) fn search(
    parts: &Parts<'_>,
    arrivals: &[Instance],
    later: Span,
    spent: &mut u64,
) -> Checked<Result<Vec<PlannedSegment>, Refused>> {
    let mut beside = Beside::new(parts, &[], Instant::ZERO, arrivals)?;
    let count = beside.new.segments.len();
    let wanted = wanted(parts.system, count);
    let mut answer = beside.ask(&before_the_run(wanted));
    if let Err(first) = answer {
        *spent += first.evaluations;
        let all = Search {
            locality: wanted.locality,
            within_process: wanted.within_process,
            evaluations: EVALUATIONS,
            ..Search::complete()
        };
        let again = count <= COMPLETE && first.why != Why::NoPlanFound { complete: true };
        if again {
            answer = beside.ask(&before_the_run(all));
        }
    }
    match answer {
        Ok(accepted) => {
            *spent += accepted.evaluations;
            Ok(Ok(placed(&beside.new, beside.book.placements(), later)?))
        }
        Err(refusal) => Ok(Err(refused(parts, &beside, &refusal, Instant::ZERO)?)),
    }
}

/// The search that the file asks for, within the evaluations that one may take.
fn wanted(system: &System, count: usize) -> Search {
    let planning = &system.planning;
    let widest = Search::within(count, EVALUATIONS).map_or(1, |search| search.window);
    let window = planning.window.map_or(widest, |window| window as usize);
    // What going back may cost beyond one way to the end.
    let more = EVALUATIONS.saturating_sub(evaluations(count, window));
    Search {
        heuristic: planning.heuristic,
        window,
        backtracks: planning.backtracks,
        evaluations: evaluations(count, window).saturating_add(more),
        locality: planning.locality,
        within_process: planning.within_process,
    }
}

fn placed(expanded: &Expanded, places: &[Placement<Ns>], by: Span) -> Checked<Vec<PlannedSegment>> {
    let later = |at: Instant<Ns>| in_range(at.checked_add(by), "an instant of a plan");
    let mut all = Vec::with_capacity(places.len());
    for (place, &(own, segment)) in places.iter().zip(&expanded.parts) {
        let instance = expanded.instances[own];
        let before = match instance.every.is_zero() {
            true => 0,
            false => by / instance.every,
        };
        all.push(PlannedSegment {
            group: instance.group,
            instance: instance.number + before,
            segment,
            arrival: later(instance.arrival)?,
            node: place.cpu,
            start: later(place.start)?,
            end: later(place.end)?,
        });
    }
    Ok(all)
}

/// The refusal in words, with the strongest reason that there is. Nothing that could be moved
/// starts before `from`.
pub(crate) fn refused(
    parts: &Parts<'_>,
    beside: &Beside,
    refusal: &punctual_planner::Refusal<Ns>,
    from: Instant<Ns>,
) -> Checked<Refused> {
    let (segments, _) = beside.book.looked_at();
    let late = refusal.late.map(|late| late.segment);
    let late = late.filter(|late| *late < segments.len());
    let tag = late.map_or(u64::MAX, |late| segments.tag(late));
    let (instance, segment) = beside.part(tag);
    let group = &parts.system.groups[instance.group.index()];
    let name = format!("{}.{}", group.name, group.segments[segment].name);
    let certain = match parts.lengths.are_wcets() {
        true => Exactness::Exact,
        false => Exactness::Sufficient,
    };
    let mut found = Refused {
        group: instance.group,
        segment,
        reason: String::new(),
        exactness: Exactness::Sufficient,
        witness: None,
        situation: String::new(),
    };
    if let Some(excess) = necessary::excess(parts, beside, from)? {
        found.group = excess.group;
        found.segment = excess.segment;
        found.reason = excess.reason;
        found.exactness = certain;
        found.witness = Some(excess.witness);
        found.situation = excess.situation;
        return Ok(found);
    }
    let by = |at: Instant<Ns>| at.since(instance.arrival).readable();
    let late_in_words = refusal.late.map_or_else(String::new, |late| {
        format!(
            "`{name}` of the arrival at {} could not start before {} after it, and has to end by {}",
            instance.arrival.since(Instant::ZERO).readable(),
            by(late.start),
            by(late.effective_deadline)
        )
    });
    found.reason = match (refusal.why, refusal.late.map(|late| late.behind)) {
        (_, Some(0)) if from == Instant::ZERO || !beside.is_located() => {
            found.exactness = certain;
            format!("{late_in_words}, in every plan")
        }
        (Why::NoPlanFound { complete: true }, _) if !beside.is_located() => {
            found.exactness = certain;
            format!("there is no plan, all orders were tried: {late_in_words}")
        }
        (Why::OutOfTime, _) => format!(
            "no plan was found within {} evaluations: {late_in_words}",
            refusal.evaluations
        ),
        (_, behind) => format!(
            "no plan was found, with {} places taken back: behind {} other segments {late_in_words}",
            refusal.backtracks,
            behind.unwrap_or(0)
        ),
    };
    Ok(found)
}
