//! A row for each group: its end, its slack, its words
//!
//! # Assumptions
//! 1. None of its own: it prints the plan that was found.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use punctual_model::{GroupId, Instant, Request};

use super::answer::{GroupVerdict, Plan, SegmentSlack};
use super::expand::{Instance, Parts};
use super::slack::Ordered;
use super::{Found, period_of, search};
use crate::error::{Checked, in_range};
use crate::units::Span;
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
    let segments = found.result.as_ref().map_or(&[][..], |plan| &plan.segments);
    let ordered = Ordered::new(parts, segments);
    let ids = (0..=u16::MAX).map(GroupId).zip(&system.groups);
    let mut rows = Vec::new();
    for (id, group) in ids {
        let planned = segments.iter().any(|segment| segment.group == id);
        let mut row = GroupVerdict {
            group: id,
            name: group.name.clone(),
            off_line: group.is_off_line() || planned,
            instances: 0,
            ends: None,
            relative_deadline: group.relative_deadline,
            exactness: Exactness::Sufficient,
            test: TEST,
            explanation: String::new(),
            assumptions: assumptions(parts),
            slack: Vec::new(),
        };
        match &found.result {
            Err(_) => row.explanation = "without a plan nothing is said of it".into(),
            Ok(plan) if planned => of_plan(parts, (plan, ordered.as_ref()), &mut row)?,
            Ok(_) => on_line(parts, found.period, &mut row)?,
        }
        rows.push(row);
    }
    Ok(rows)
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
    let group = &parts.system.groups[row.group.index()];
    match ordered {
        Some(ordered) => {
            for (place, segment) in group.segments.iter().enumerate() {
                row.slack.push(SegmentSlack {
                    segment: segment.name.clone(),
                    wcet: segment.wcet,
                    slack: ordered.slack(row.group, place)?,
                });
            }
        }
        None => row
            .assumptions
            .push("slack is not computed for plans of this size".into()),
    }
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
    Ok(())
}

/// A group that is asked for on line: could it be granted, if nothing else were asked for?
fn on_line(parts: &Parts<'_>, period: Option<Span>, row: &mut GroupVerdict) -> Checked<()> {
    let end = parts.end_of_family(row.group);
    let until = match period {
        None => Span::ZERO,
        Some(period) => in_range(
            period.checked_mul(end.div_ceil(period)),
            "the end of a group",
        )?,
    };
    let mut arrivals = period_of(parts, until)?;
    arrivals.push(Instance {
        group: row.group,
        number: 0,
        arrival: Instant::ZERO,
        every: Span::ZERO,
    });
    let asked = match parts.system.groups[row.group.index()].request {
        Request::Spawned => "its parent asks for it",
        _ => "its requests are answered when they come",
    };
    match search(parts, &arrivals, Span::ZERO, &mut 0)? {
        Ok(segments) => {
            let own = segments.iter().filter(|segment| segment.group == row.group);
            row.ends = own.map(|segment| segment.end.since(segment.arrival)).max();
            let ends = row.ends.unwrap_or(Span::ZERO).readable();
            row.explanation = format!(
                "{asked}; alone beside the periodic groups one that arrives with them ends {ends} \
                 after its arrival, of {}",
                row.relative_deadline.readable()
            );
        }
        Err(refused) => {
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
