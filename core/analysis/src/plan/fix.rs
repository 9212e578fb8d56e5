//! One parameter that mends a refusal, found by planning with it
//!
//! # Assumptions
//! 1. A search of few orders is not sustainable: a longer deadline may be refused where a shorter
//!    one is granted. So a value counts only once the system was planned with it.

use alloc::format;
use alloc::string::{String, ToString};

use punctual_model::{GroupId, Request, Spawn, System, Work};

use super::Refused;
use crate::error::{AnalysisError, Checked};
use crate::units::{Span, border};
use crate::verdict::{Fix, FixTarget};

/// A deadline of a group that arrives once is raised up to this many times itself.
const TIMES: u64 = 16;

/// A later deadline of the late group, else a shorter late segment; `None`: neither alone mends it.
///
/// `are_granted` plans with a changed system.
pub(super) fn find(
    system: &System,
    refused: &Refused,
    are_granted: &Granted<'_>,
) -> Checked<Option<Fix>> {
    match later_deadline(system, refused, are_granted)? {
        Some(fix) => Ok(Some(fix)),
        None => shorter_segment(system, refused, are_granted),
    }
}

/// Says whether a changed system has a plan.
type Granted<'a> = dyn Fn(&System) -> Checked<bool> + 'a;

/// The fix in words, or that there is none.
pub(super) fn words(fix: Option<&Fix>) -> String {
    match fix {
        Some(fix) => format!("{fix}; the system was planned with it"),
        None => "neither a later deadline of this group nor a shorter segment alone was found to \
                 mend it"
            .to_string(),
    }
}

fn later_deadline(
    system: &System,
    refused: &Refused,
    are_granted: &Granted<'_>,
) -> Checked<Option<Fix>> {
    let group = &system.groups[refused.group.index()];
    let now = group.relative_deadline;
    let most = match period_of_family(system, refused.group) {
        Some(period) => period,
        None => now.saturating_mul(TIMES),
    };
    let holds = |deadline: Span| {
        let mut changed = system.clone();
        changed.groups[refused.group.index()].relative_deadline = deadline;
        granted(&changed, are_granted)
    };
    if most <= now || !holds(most)? {
        return Ok(None);
    }
    let to = border(now, most, holds)?;
    let target = FixTarget::GroupDeadline(refused.group);
    Ok(Some(fix(system, target, now, to)))
}

fn shorter_segment(
    system: &System,
    refused: &Refused,
    are_granted: &Granted<'_>,
) -> Checked<Option<Fix>> {
    let group = &system.groups[refused.group.index()];
    let segment = &group.segments[refused.segment];
    let floor = system.machine.timer.saturating_add(system.planning.reset);
    let floor = floor.saturating_add(segment.cleanup).max(Work::from_ns(1));
    let holds = |wcet: Work<_>| {
        let mut changed = system.clone();
        changed.groups[refused.group.index()].segments[refused.segment].wcet = wcet;
        granted(&changed, are_granted)
    };
    if floor >= segment.wcet || !holds(floor)? {
        return Ok(None);
    }
    let to = border(segment.wcet, floor, holds)?;
    let target = FixTarget::SegmentWcet(refused.group, refused.segment);
    Ok(Some(fix(
        system,
        target,
        segment.wcet.as_span(),
        to.as_span(),
    )))
}

fn fix(system: &System, target: FixTarget, from: Span, to: Span) -> Fix {
    Fix {
        target,
        parameter: crate::fix::parameter(system, target),
        from,
        to,
    }
}

/// Whether a changed system has a plan. One that takes too long to look at counts for nothing.
fn granted(system: &System, are_granted: &Granted<'_>) -> Checked<bool> {
    match are_granted(system) {
        Err(AnalysisError::TooLong { .. } | AnalysisError::Unsupported { .. }) => Ok(false),
        found => found,
    }
}

/// The period of the group that arrives, of a group that is planned with it.
fn period_of_family(system: &System, group: GroupId) -> Option<Span> {
    let mut at = group;
    for _ in 0..=system.groups.len() {
        match system.groups[at.index()].request {
            Request::Periodic { period } => return Some(period),
            Request::Spawned => {}
            _ => return None,
        }
        let child = Spawn::Dependent { group: at };
        let spawns = |group: &punctual_model::Group| {
            let mut segments = group.segments.iter();
            segments.any(|segment| segment.spawn.as_ref() == Some(&child))
        };
        let parent = system.groups.iter().position(spawns)?;
        at = GroupId(u16::try_from(parent).unwrap_or(u16::MAX));
    }
    None
}
