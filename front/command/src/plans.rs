//! The verdict on planned groups, for people and for programs.

use std::fmt::Write as _;

use anstyle::Style;
use punctual_analysis::{GroupVerdict, Plan, PlanVerdict, PlannedSegment, Verdict};
use punctual_model::{Ns, Span, System, readable};

use crate::words::{count, span};
use punctual_terminal::json::{Json, list};
use punctual_terminal::object;
use punctual_terminal::output::styled;
use punctual_terminal::table::Table;

const HEADING: Style = Style::new().bold();
/// Most segments of a plan that a text shows.
const SHOWN: usize = 60;

/// How much there is of it: `2 groups of 5 segments`.
pub(crate) fn size(system: &System) -> Option<String> {
    let segments = system.groups.iter().map(|group| group.segments.len()).sum();
    let groups = count(system.groups.len(), "group");
    (!system.groups.is_empty()).then(|| format!("{groups} of {}", count(segments, "segment")))
}

/// All groups and their plan in words.
pub(crate) fn text(system: &System, verdict: &Verdict, coloured: bool) -> String {
    let Some(answer) = &verdict.plan else {
        return String::new();
    };
    let mut text = format!("\n{}\n", styled("Groups", HEADING, coloured));
    let mut table = Table::new(&["group", ">instances", ">ends", ">deadline", ">slack", "of"]);
    for group in &answer.groups {
        let least = group.slack.iter().min_by_key(|slack| slack.slack);
        table.row(vec![
            group.name.clone(),
            instances(group),
            span(group.ends),
            readable(group.relative_deadline.as_ns()).to_string(),
            least.map_or("-".into(), |slack| slack.slack.to_string()),
            least.map_or(String::new(), |slack| slack.segment.clone()),
        ]);
    }
    let _ = write!(text, "{table}");
    for group in &answer.groups {
        let _ = writeln!(text, "  why: {}: {}", group.name, group.explanation);
    }
    for granted in assumptions(answer) {
        let _ = writeln!(text, "  taken for granted: {granted}");
    }
    if let Some(plan) = &answer.plan {
        text += &timeline(system, plan, coloured);
    }
    text
}

/// Its instances in the plan, or that it is asked for on line.
pub(crate) fn instances(group: &GroupVerdict) -> String {
    match group.off_line {
        true => group.instances.to_string(),
        false => "on line".into(),
    }
}

/// The assumptions of all groups, each once.
pub(crate) fn assumptions(answer: &PlanVerdict) -> Vec<&String> {
    let all = answer.groups.iter().flat_map(|group| &group.assumptions);
    let mut granted = Vec::new();
    for assumption in all {
        if !granted.contains(&assumption) {
            granted.push(assumption);
        }
    }
    granted
}

/// Who has which node when.
fn timeline(system: &System, plan: &Plan, coloured: bool) -> String {
    let mut text = format!(
        "\n{} {}\n",
        styled("Plan", HEADING, coloured),
        repeats(plan)
    );
    for (place, node) in plan.nodes.iter().enumerate() {
        let _ = writeln!(text, "  {node}");
        let own = || plan.segments.iter().filter(|s| s.node == place);
        let mut table = Table::new(&[">  start", ">end", "segment", "resources"]);
        for segment in own().take(SHOWN) {
            table.row(vec![
                since_start(segment.start),
                since_start(segment.end),
                name_of(system, segment),
                resources(system, segment),
            ]);
        }
        let _ = write!(text, "{table}");
        if let Some(more) = own().count().checked_sub(SHOWN).filter(|more| *more > 0) {
            let _ = writeln!(text, "  and {more} more (--json has all)");
        }
    }
    text
}

/// From when on, and after how long, a plan repeats.
pub(crate) fn repeats(plan: &Plan) -> String {
    match (plan.period.is_zero(), plan.repeats_from.is_zero()) {
        (true, _) => "of what arrives once".into(),
        (false, true) => format!("repeats every {}", plan.period.readable()),
        (false, false) => format!(
            "repeats every {} from {} on",
            plan.period.readable(),
            plan.repeats_from.readable()
        ),
    }
}

fn since_start(at: punctual_model::Instant<Ns>) -> String {
    readable(at.as_ns()).to_string()
}

/// `group.segment`, with the number of the instance where there are several.
pub(crate) fn name_of(system: &System, planned: &PlannedSegment) -> String {
    let Some(group) = system.groups.get(planned.group.index()) else {
        return String::new();
    };
    let segment = group.segments.get(planned.segment);
    let segment = segment.map_or("", |segment| segment.name.as_str());
    match planned.instance {
        0 => format!("{}.{segment}", group.name),
        instance => format!("{}.{segment} #{instance}", group.name),
    }
}

/// The planned resources of a segment, with `shared` behind those that it shares.
pub(crate) fn resources(system: &System, planned: &PlannedSegment) -> String {
    let group = system.groups.get(planned.group.index());
    let segment = group.and_then(|group| group.segments.get(planned.segment));
    let uses = segment.map_or(&[][..], |segment| &segment.uses);
    let names = uses.iter().filter_map(|used| {
        let resource = system.resources.get(used.resource.index())?;
        Some(match used.mode {
            punctual_model::Mode::Exclusive => resource.name.clone(),
            mode => format!("{} {}", resource.name, mode.name()),
        })
    });
    names.collect::<Vec<_>>().join(", ")
}

/// All groups and their plan for programs; `None` without groups.
pub(crate) fn json(system: &System, verdict: &Verdict) -> Option<Json> {
    let answer = verdict.plan.as_ref()?;
    Some(object! {
        groups: list(&answer.groups, of_group),
        evaluations: answer.evaluations,
        plan: answer.plan.as_ref().map(|plan| of_plan(system, plan)),
    })
}

fn of_group(group: &GroupVerdict) -> Json {
    object! {
        name: &group.name,
        off_line: group.off_line,
        instances: group.instances,
        ends_ns: group.ends.map(Span::as_ns),
        relative_deadline_ns: group.relative_deadline.as_ns(),
        exactness: group.exactness.name(),
        test: group.test.to_string(),
        explanation: &group.explanation,
        slack: list(&group.slack, |slack| object! {
            segment: &slack.segment,
            wcet_ns: slack.wcet.as_ns(),
            slack_percent: crate::verdict_json::tenths(slack.slack.tenths_of_a_percent()),
        }),
        assumptions: &group.assumptions,
    }
}

fn of_plan(system: &System, plan: &Plan) -> Json {
    object! {
        nodes: &plan.nodes,
        repeats_from_ns: plan.repeats_from.as_ns(),
        period_ns: plan.period.as_ns(),
        segments: list(&plan.segments, |planned| {
            let group = system.groups.get(planned.group.index());
            let segment = group.and_then(|group| group.segments.get(planned.segment));
            object! {
                group: group.map_or("", |group| group.name.as_str()),
                segment: segment.map_or("", |segment| segment.name.as_str()),
                instance: planned.instance,
                node: planned.node as u64,
                start_ns: planned.start.as_ns(),
                end_ns: planned.end.as_ns(),
            }
        }),
    }
}
