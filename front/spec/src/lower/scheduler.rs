//! From the sections of schedulers to the trees of the model.

use punctual_model::{
    Fallback, Ns, PolicyCode, Priority, Scheduler, Server, ServerKind, Slot, Supply, Trust,
};

use super::parent::{Parent, Parents};
use super::policy::lower_policy;
use crate::file::Named;
use crate::places::SchedulerPlaces;
use crate::record::{Record, Value};
use crate::report::Report;

/// The schedulers in the order of the file. A broken value is left out of it, and its place
/// remembers that.
pub(super) fn lower_schedulers(
    sections: Vec<Named>,
    parents: &Parents,
    report: &mut Report<'_>,
) -> Vec<(Scheduler, SchedulerPlaces)> {
    let lowered = sections.into_iter().enumerate().map(|(index, section)| {
        let parent = parents.of_scheduler(index);
        let record = &section.record;
        let supply = lower_supply(record, report);
        let lacks_priority = parent
            .is_some_and(|parent| parents.lacks_priority(parent, &section, "scheduler", report));
        let broken = record.broken || parent.is_none() || supply.is_none() || lacks_priority;
        let unplaced = parent.is_none_or(|parent| parents.policy_of(parent).is_none());
        let scheduler = Scheduler {
            name: section.name.clone(),
            cpu: parents.cpu_of_scheduler(index),
            parent: parent.and_then(|parent| match parent {
                Parent::Cpu(_) => None,
                Parent::Scheduler(id) => Some(id),
            }),
            policy: lower_policy(record),
            priority: Priority::new(record.number("priority").unwrap_or(0)),
            supply: supply.unwrap_or(Supply::Shared),
            trust: match record.word("trust") {
                Some("own-time") => Trust::OwnTime,
                _ => Trust::Inline,
            },
            quota: record.number("quota"),
            receiver: None,
            code: lower_code(record),
            fallback: record.record("fallback").map(|fallback| Fallback {
                policy: lower_policy(fallback),
                after: fallback.number("after").unwrap_or(Fallback::AFTER),
            }),
        };
        let places = SchedulerPlaces {
            section,
            broken,
            unplaced,
        };
        (scheduler, places)
    });
    lowered.collect()
}

/// The supply from the parent; `None` when a mistake in it has been reported.
fn lower_supply(record: &Record, report: &mut Report<'_>) -> Option<Supply> {
    match (record.get("server"), record.get("slots")) {
        (Some(_), Some(slots)) => {
            report.add(
                &slots.range,
                "a scheduler has either a server or slots",
                || "remove one of them; slots are granted by a parent with tdm".into(),
            );
            None
        }
        (Some(node), None) => match &node.value {
            Value::Record(server) => lower_server(server).map(Supply::Server),
            _ => None,
        },
        (None, Some(_)) => Some(Supply::Slots(lower_slots(record))),
        (None, None) => Some(Supply::Shared),
    }
}

/// The code in C that `code` of a record names.
pub(super) fn lower_code(record: &Record) -> Option<PolicyCode> {
    let Value::Record(code) = &record.get("code")?.value else {
        return None;
    };
    let text = |key| code.text(key).unwrap_or("").to_string();
    Some(PolicyCode {
        library: text("library"),
        symbol: text("symbol"),
    })
}

pub(super) fn lower_server(record: &Record) -> Option<Server<Ns>> {
    let word = record.word("kind")?;
    let kind = ServerKind::ALL
        .into_iter()
        .find(|kind| kind.name() == word)?;
    Some(Server {
        kind,
        budget: record.work("budget")?,
        period: record.span("period")?,
    })
}

/// The slots of a scheduler or a task, without those that are broken.
pub(super) fn lower_slots(record: &Record) -> Vec<Slot<Ns>> {
    let slots = record.list("slots").iter().filter_map(|node| {
        let Value::Record(slot) = &node.value else {
            return None;
        };
        Some(Slot {
            at: slot.span("at")?,
            length: slot.span("length")?,
        })
    });
    slots.collect()
}
