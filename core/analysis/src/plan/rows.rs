//! A row for each group: its end, its slack, its words
//!
//! # Assumptions
//! 1. None of its own: it prints the plan that was found.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use punctual_model::{GroupId, Instant, Request};

use super::Found;
use super::answer::{GroupVerdict, Plan, PlannedSegment, SegmentSlack};
use super::expand::Parts;
use super::running::{Asked, GroupRequest, RunningPlan};
use super::slack::Ordered;
use crate::error::Checked;
use crate::units::{Span, Work};
use crate::verdict::{Exactness, Test};

/// The way to every plan.
const TEST: Test = Test {
    name: "plan",
    source: "Spring §2.2; Ramamritham, Stankovic and Shiah 1990",
};

/// The planned nodes as the file writes them.
pub(super) fn node_names(parts: &Parts<'_>) -> Vec<String> {
    let system = parts.system;
    let name = |node: &punctual_model::PlannedNode| match node.scheduler {
        Some(id) => format!("scheduler.{}", system.schedulers[id.index()].name),
        None => format!("cpu.{}", system.cpus[node.cpu.index()].name),
    };
    parts.nodes.iter().map(name).collect()
}

/// A row for each group.
pub(super) fn rows(parts: &Parts<'_>, found: &Found) -> Checked<Vec<GroupVerdict>> {
    let system = parts.system;
    let plan = found.result.as_ref().ok();
    let segments = plan.map_or(&[][..], |plan| &plan.segments);
    let ordered = Ordered::new(parts, segments);
    let running = plan.map(|plan| RunningPlan::of(parts, plan)).transpose()?;
    let ids = (0..=u16::MAX).map(GroupId).zip(&system.groups);
    let mut rows = Vec::new();
    for (id, group) in ids {
        let planned = segments.iter().any(|segment| segment.group == id);
        let mut row = row(parts, id);
        row.off_line = group.is_off_line() || planned;
        match (plan, &running) {
            (Some(plan), Some(_)) if planned => {
                of_plan(parts, (plan, ordered.as_ref()), &mut row)?;
            }
            (Some(plan), Some(running)) => on_line(parts, (plan, running), &mut row)?,
            _ => row.explanation = "without a plan nothing is said of it".into(),
        }
        row.explanation += &kill(parts, id)?;
        rows.push(row);
    }
    Ok(rows)
}

/// How long a group executes after a kill, if one is planned. A segment that has started is not
/// cut, and no other starts.
fn kill(parts: &Parts<'_>, id: GroupId) -> Checked<String> {
    let mut segments = parts.system.groups.iter().flat_map(|group| &group.segments);
    if !segments.any(|segment| segment.kills.contains(&id)) {
        return Ok(String::new());
    }
    let mut longest = (Work::ZERO, "");
    for (place, segment) in parts.system.groups[id.index()].segments.iter().enumerate() {
        let length = parts.lengths.of(id, place)?;
        longest = longest.max((length.home.max(length.away), &segment.name));
    }
    let (length, name) = (longest.0.as_span().readable(), longest.1);
    let own = &parts.system.groups[id.index()].segments;
    let handled = match own.iter().any(|segment| !segment.cleanup.is_zero()) {
        true => "; its handler follows in the place of the next segment",
        false => "",
    };
    Ok(format!(
        "; a kill ends it at its next boundary, {length} later at the latest (`{name}`){handled}"
    ))
}

/// The row of a group that is asked for, of which nothing is said yet.
pub(super) fn row(parts: &Parts<'_>, id: GroupId) -> GroupVerdict {
    let group = &parts.system.groups[id.index()];
    GroupVerdict {
        group: id,
        name: group.name.clone(),
        off_line: false,
        instances: 0,
        ends: None,
        relative_deadline: group.relative_deadline,
        exactness: Exactness::Sufficient,
        test: TEST,
        explanation: String::new(),
        assumptions: assumptions(parts),
        slack: Vec::new(),
    }
}

/// A group with places in the plan.
fn of_plan(
    parts: &Parts<'_>,
    (plan, ordered): (&Plan, Option<&Ordered<'_>>),
    row: &mut GroupVerdict,
) -> Checked<()> {
    let own = || plan.segments.iter().filter(|s| s.group == row.group);
    let ends = own()
        .map(|segment| segment.end.since(segment.arrival))
        .max();
    let mut arrivals: Vec<Instant<_>> = own().map(|segment| segment.arrival).collect();
    arrivals.dedup();
    arrivals.sort_unstable();
    arrivals.dedup();
    row.instances = arrivals.len() as u64;
    row.ends = ends;
    row.explanation = format!(
        "ends {} after its arrival at the latest, of {}",
        ends.unwrap_or(Span::ZERO).readable(),
        row.relative_deadline.readable()
    );
    if row.instances > 1 {
        row.explanation += &format!("; {} instances are planned", row.instances);
    }
    slack(parts, ordered, row)
}

/// How far its segments may grow in the plan.
fn slack(parts: &Parts<'_>, ordered: Option<&Ordered<'_>>, row: &mut GroupVerdict) -> Checked<()> {
    let Some(ordered) = ordered else {
        let words = "slack is not computed for plans of this size";
        row.assumptions.push(words.into());
        return Ok(());
    };
    let group = &parts.system.groups[row.group.index()];
    for (place, segment) in group.segments.iter().enumerate() {
        row.slack.push(SegmentSlack {
            segment: segment.name.clone(),
            wcet: segment.wcet,
            slack: ordered.slack(row.group, place)?,
        });
    }
    Ok(())
}

/// A group whose request was granted: one instance of the plan with it, in order of starts.
pub(super) fn granted(
    parts: &Parts<'_>,
    segments: &[PlannedSegment],
    instance: u64,
    row: &mut GroupVerdict,
) -> Checked<()> {
    let own = |one: &&PlannedSegment| (one.group, one.instance) == (row.group, instance);
    let own = segments.iter().filter(own);
    row.instances = 1;
    row.ends = own.map(|segment| segment.end.since(segment.arrival)).max();
    row.explanation = format!(
        "ends {} after its arrival, of {}",
        row.ends.unwrap_or(Span::ZERO).readable(),
        row.relative_deadline.readable()
    );
    slack(parts, Ordered::new(parts, segments).as_ref(), row)
}

/// A group that is asked for on line: could it be granted, if nothing else were asked for?
fn on_line(
    parts: &Parts<'_>,
    (plan, running): (&Plan, &RunningPlan),
    row: &mut GroupVerdict,
) -> Checked<()> {
    let asked = match parts.system.groups[row.group.index()].request {
        Request::Spawned => "its parent asks for it",
        _ => "its requests are answered when they come",
    };
    let now = Instant::ZERO.saturating_add(plan.repeats_from);
    let request = GroupRequest {
        group: row.group,
        instance: 0,
        arrival: now,
        now,
    };
    match Asked::new(parts, running, &request)?.result {
        Ok(next) => {
            let own = next.segments().filter(|one| one.group == row.group);
            row.ends = own.map(|segment| segment.end.since(segment.arrival)).max();
            let ends = row.ends.unwrap_or(Span::ZERO).readable();
            row.explanation = format!(
                "{asked}; alone beside the periodic groups one that arrives with them ends {ends} \
                 after its arrival, of {}",
                row.relative_deadline.readable()
            );
        }
        Err(refused) => {
            row.exactness = refused.exactness;
            row.explanation = format!(
                "{asked}; none that arrives with the periodic groups is granted: {}",
                refused.reason
            );
        }
    }
    Ok(())
}

/// The assumptions of every plan of a system.
fn assumptions(parts: &Parts<'_>) -> Vec<String> {
    let mut list = Vec::from([
        "no segment executes for longer than its wcet".to_string(),
        "how far a segment may grow holds for this plan: everybody else keeps his place"
            .to_string(),
    ]);
    if !parts.lengths.are_whole() {
        list.push(
            "planned lengths are those of the least supply that a node may get from any instant on"
                .into(),
        );
    }
    if !parts.lengths.are_wcets() {
        list.push("not exact: lengths are more than wcets, by overheads or by supply".into());
    }
    list
}
