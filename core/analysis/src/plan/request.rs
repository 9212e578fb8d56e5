//! A request for a group while a system runs: planned beside all that is guaranteed, or refused
//!
//! # Assumptions
//! 1. A planner while a system runs has fixed room and may refuse for want of it. This one has
//!    room.

use alloc::format;
use alloc::vec::Vec;

use punctual_model::{GroupId, Instant, Ns, System};

use super::answer::GroupVerdict;
use super::expand::Parts;
use super::length::Lengths;
use super::running::{Asked, GroupRequest, RunningPlan};
use super::{Refused, fix, rows};
use crate::error::{AnalysisError, Checked};
use crate::verdict::{Refusal, Subject};

/// The answer to a request.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use]
pub struct RequestVerdict {
    /// The answer is there then. An accepted plan is in force from then on.
    pub cutoff: Instant<Ns>,
    /// The group: its end from its arrival on, its slack in the plan with it, its exactness.
    pub row: GroupVerdict,
    /// Why it is refused; `None`: it is granted.
    pub refusal: Option<Refusal>,
    /// Groups that gave way, with their instances.
    pub removed: Vec<(GroupId, u64)>,
    /// Segments looked at.
    pub evaluations: u64,
    /// Places taken back.
    pub backtracks: u64,
}

/// Plans a group beside the plan that runs, as virtual time does, or refuses it.
///
/// A segment that starts before the cutoff stays where it is, and everything behind it is planned
/// together with the group. The cutoff is `[planning] within` after the request, or after the
/// cutoff of the request before where that is later. Groups that are known before the run take no
/// time. With nothing that runs it is [`admit`](crate::admit) of this one arrival.
///
/// A refusal leaves all segments and their places as they were. Only the cutoff moves, and groups
/// that repeat are told out as far as the request reached. It is exact after a complete search or
/// by a necessary test. Slack holds in this plan, and a fix is one with which the same request was
/// granted.
///
/// The cost is that of one plan of all that runs and the group, and of some sixty for a fix.
///
/// Sources: Humphrey and Stankovic (Spring) §3.3-3.4.
///
/// # Errors
/// [`AnalysisError`]: no such group, a plan of another system, or one that is too large.
pub fn admit_request(
    system: &System,
    running: &mut RunningPlan,
    request: &GroupRequest,
) -> Result<RequestVerdict, AnalysisError> {
    if system.groups.get(request.group.index()).is_none() {
        return Err(AnalysisError::Invalid {
            what: format!("a request for group {}, which is none", request.group.0),
        });
    }
    let lengths = Lengths::new(system)?;
    let parts = Parts::new(system, &lengths);
    let asked = Asked::new(&parts, running, request)?;
    let mut verdict = RequestVerdict {
        cutoff: asked.cutoff,
        row: rows::row(&parts, request.group),
        refusal: None,
        removed: asked.removed,
        evaluations: asked.effort.0,
        backtracks: asked.effort.1,
    };
    match asked.result {
        Ok(next) => {
            rows::granted(&parts, &next.by_start(), request.instance, &mut verdict.row)?;
            *running = next;
        }
        Err(refused) => {
            verdict.row.exactness = refused.exactness;
            verdict.row.explanation.clone_from(&refused.reason);
            verdict.refusal = Some(refusal((system, running), request, &refused)?);
            let _ = running.prepare(&parts, request)?;
            running.cutoff = asked.cutoff.max(running.cutoff);
        }
    }
    Ok(verdict)
}

/// The refusal of a request in words, and a change of the group with which it is granted.
fn refusal(
    (system, running): (&System, &RunningPlan),
    request: &GroupRequest,
    refused: &Refused,
) -> Checked<Refusal> {
    let name = &system.groups[request.group.index()].name;
    let mut refusal = Refusal::new(Subject::Group(request.group), name, refused.reason.clone());
    refusal.witness = refused.witness;
    refusal.situation.clone_from(&refused.situation);
    let mut own = refused.clone();
    if own.group != request.group {
        // Another one would be late behind it.
        let segments = &system.groups[request.group.index()].segments;
        let longest = (0..segments.len()).max_by_key(|at| segments[*at].wcet);
        (own.group, own.segment) = (request.group, longest.unwrap_or(0));
    }
    let granted = |changed: &System| {
        let lengths = Lengths::new(changed)?;
        let asked = Asked::new(&Parts::new(changed, &lengths), running, request)?;
        Ok(asked.result.is_ok())
    };
    refusal.fix = fix::find(system, &own, &granted)?;
    refusal.advice = fix::words(refusal.fix.as_ref());
    Ok(refusal)
}
