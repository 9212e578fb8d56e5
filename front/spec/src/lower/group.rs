//! From the sections of planned groups, and of how they are planned, to the model.

use std::collections::BTreeMap;

use punctual_model::{
    CpuId, Group, GroupId, GroupSegment, GroupThread, Heuristic, Importance, Instant, Locality,
    Mode, Overload, Planning, Request, SegmentUse, Span, Spawn,
};

use super::task::{arrivals_of, lower_overrun, lower_work};
use super::{Names, find};
use crate::file::Named;
use crate::nearest::nearest;
use crate::places::{GroupPlaces, Places};
use crate::record::{Node, Record, Value};
use crate::report::{Report, quote};

/// The factor of a heuristic whose file does not say it.
const FACTOR: u32 = 4;

/// The name of the thread of segments that name none.
const MAIN: &str = "main";

/// The groups in the order of the file. With a mistake in one, nothing is said of what follows from
/// any of them.
pub(super) fn lower_groups(
    sections: Vec<Named>,
    names: &Names,
    places: &mut Places,
    report: &mut Report<'_>,
) -> Vec<Group> {
    let numbers = (0..=u16::MAX).map(GroupId);
    let groups: BTreeMap<String, GroupId> = sections
        .iter()
        .map(|section| section.name.clone())
        .zip(numbers)
        .collect();
    let mut lowered = Vec::new();
    for section in sections {
        let mut reader = Reader {
            section: &section,
            names,
            groups: &groups,
            resources: &places.resources,
            report,
            broken: section.record.broken,
        };
        lowered.push(reader.group());
        let broken = reader.broken;
        places.groups.push(GroupPlaces { section, broken });
    }
    lowered
}

/// One section.
struct Reader<'a, 'b> {
    section: &'a Named,
    names: &'a Names,
    groups: &'a BTreeMap<String, GroupId>,
    resources: &'a [Named],
    report: &'a mut Report<'b>,
    /// Whether a mistake in it has been reported.
    broken: bool,
}

impl<'a> Reader<'a, '_> {
    fn group(&mut self) -> Group {
        let record = &self.section.record;
        let span = |key| record.span(key).unwrap_or_default();
        let request = match record.word("request") {
            Some("periodic") => Request::Periodic {
                period: span("period"),
            },
            Some("on-line") => Request::OnLine {
                arrivals: arrivals_of(record.record("arrivals")),
                phase: span("phase"),
                min_separation: span("min-separation"),
            },
            Some("spawned") => Request::Spawned,
            _ => Request::Once {
                at: Instant::ZERO.saturating_add(span("at")),
            },
        };
        let deadline = record.span("deadline").or_else(|| record.span("period"));
        let mut group = Group::new(&*self.section.name, deadline.unwrap_or_default());
        group.request = request;
        group.release = span("release");
        group.importance = Importance(record.number("importance").unwrap_or(0));
        group.on_overrun = lower_overrun(record);
        self.threads(&mut group);
        let order: BTreeMap<&str, usize> = segments(record)
            .enumerate()
            .filter_map(|(at, segment)| Some((segment.text("name")?, at)))
            .collect();
        for segment in segments(record) {
            let lowered = self.segment(segment, &order, &mut group);
            group.segments.push(lowered);
        }
        group
    }

    fn threads(&mut self, group: &mut Group) {
        for node in self.section.record.list("threads") {
            let Value::Record(record) = &node.value else {
                continue;
            };
            let at = group.thread(record.text("name").unwrap_or_default());
            let home = record.get("home").and_then(|node| self.home(node));
            let thread: &mut GroupThread = &mut group.threads[at];
            thread.home = home;
            if let Some(process) = record.text("process") {
                thread.process = process.into();
            }
        }
    }

    fn home(&mut self, node: &Node) -> Option<CpuId> {
        let Value::Text(home) = &node.value else {
            return None;
        };
        let name = home.strip_prefix("cpu.");
        let found = name.and_then(|name| self.names.cpus.get(name)).copied();
        if found.is_none() {
            self.broken = true;
            let message = format!("`home` names {}, which is no CPU of this file", quote(home));
            let known = self.names.cpus.keys().map(|name| format!("cpu.{name}"));
            let known: Vec<String> = known.collect();
            self.report.add(&node.range, message, || {
                match nearest(home, known.iter().map(String::as_str)) {
                    Some(meant) => format!("did you mean \"{meant}\"?"),
                    None => "name one of them as \"cpu.NAME\"".into(),
                }
            });
        }
        found
    }

    fn segment(
        &mut self,
        record: &'a Record,
        order: &BTreeMap<&str, usize>,
        group: &mut Group,
    ) -> GroupSegment {
        let thread = record.text("thread").unwrap_or(MAIN);
        let known = group.threads.iter().position(|other| other.name == thread);
        let thread = known.unwrap_or_else(|| group.thread(thread));
        let after = record.list("after").iter();
        let after = after.filter_map(|node| self.other_segment(node, order));
        let after = after.collect();
        let kills = record.list("kills").iter();
        let kills = kills.filter_map(|node| self.other_group(node, "kills"));
        let kills = kills.collect();
        GroupSegment {
            name: record.text("name").unwrap_or_default().into(),
            thread,
            wcet: record.work("wcet").unwrap_or_default(),
            wcet_away: record.work("wcet-away"),
            uses: self.uses(record),
            after,
            spawn: record.record("spawns").and_then(|spawn| self.spawn(spawn)),
            kills,
            cleanup: record.work("cleanup").unwrap_or_default(),
            work: record.record("work").map(lower_work),
        }
    }

    fn other_segment(&mut self, node: &Node, order: &BTreeMap<&str, usize>) -> Option<usize> {
        let Value::Text(name) = &node.value else {
            return None;
        };
        let found = order.get(name.as_str()).copied();
        if found.is_none() {
            self.broken = true;
            let message = format!(
                "`after` names segment {}, which its group does not have",
                quote(name)
            );
            self.report.add(&node.range, message, || {
                match nearest(name, order.keys().copied()) {
                    Some(meant) => format!("did you mean \"{meant}\"?"),
                    None => "name a segment of the same group".into(),
                }
            });
        }
        found
    }

    fn other_group(&mut self, node: &Node, key: &str) -> Option<GroupId> {
        let found = find(node, key, "group", self.groups, self.report);
        self.broken |= found.is_none();
        found
    }

    fn uses(&mut self, record: &Record) -> Vec<SegmentUse> {
        let mut uses = Vec::new();
        for node in record.list("uses") {
            let Value::Record(given) = &node.value else {
                continue;
            };
            let resource = given.get("resource").and_then(|node| {
                find(
                    node,
                    "resource",
                    "resource",
                    &self.names.resources,
                    self.report,
                )
            });
            let section = resource.and_then(|id| self.resources.get(id.index()));
            self.broken |= section.is_none_or(|section| section.record.broken);
            uses.extend(resource.map(|resource| SegmentUse {
                resource,
                mode: match given.word("mode") {
                    Some("shared") => Mode::Shared,
                    _ => Mode::Exclusive,
                },
            }));
        }
        uses
    }

    fn spawn(&mut self, record: &Record) -> Option<Spawn> {
        if let Some(child) = record.get("dependent") {
            let group = self.other_group(child, "dependent")?;
            return Some(Spawn::Dependent { group });
        }
        let nodes = record.list("independent").iter();
        let groups = nodes.filter_map(|node| self.other_group(node, "independent"));
        Some(Spawn::Independent {
            groups: groups.collect(),
            max_wait: record.span("max-wait").unwrap_or(Span::ZERO),
        })
    }
}

/// The tables of the segments.
fn segments(record: &Record) -> impl Iterator<Item = &Record> {
    let nodes = record.list("segments").iter();
    nodes.filter_map(|node| match &node.value {
        Value::Record(segment) => Some(segment),
        _ => None,
    })
}

/// How groups are planned.
pub(super) fn lower_planning(record: &Record, report: &mut Report<'_>) -> Planning {
    let default = Planning::default();
    let span = |key| record.span(key).unwrap_or_default();
    let factor = record.number("factor").unwrap_or(FACTOR);
    let heuristic = match record.word("heuristic") {
        Some("first-come") => Heuristic::FirstCome,
        Some("shortest") => Heuristic::Shortest,
        Some("deadline") => Heuristic::Deadline,
        Some("start") => Heuristic::Start,
        Some("laxity") => Heuristic::Laxity,
        Some("deadline-and-work") => Heuristic::DeadlineAndWork { factor },
        _ => Heuristic::DeadlineAndStart { factor },
    };
    if let (Some(node), None) = (record.get("factor"), heuristic.factor()) {
        let message = format!(
            "`factor` has no meaning for heuristic \"{}\"",
            heuristic.name()
        );
        report.add(&node.range, message, || {
            "remove it, or say `heuristic = \"deadline-and-start\"`".into()
        });
    }
    Planning {
        heuristic,
        window: record.number("window"),
        backtracks: record.integer("backtracks").unwrap_or(default.backtracks),
        within: span("within"),
        margin: span("margin"),
        evaluation: record.work("evaluation").unwrap_or_default(),
        segment: record.work("segment"),
        overload: match record.word("overload") {
            Some("shed") => Overload::Shed,
            _ => Overload::Keep,
        },
        locality: match record.word("locality") {
            Some("only-local") => Locality::OnlyLocal,
            _ => Locality::Earliest,
        },
        within_process: record.flag("within-process").unwrap_or(false),
        process_switch: record.work("process-switch").unwrap_or_default(),
        reset: record.work("reset").unwrap_or_default(),
    }
}
