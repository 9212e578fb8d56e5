//! From the sections of resources, and from `uses`, to the model.

use punctual_model::{AtBudgetEnd, Mode, Protocol, Resource, ResourceId, Use};

use super::{Names, find};
use crate::file::Named;
use crate::record::{Record, Value};
use crate::report::Report;

/// The resources in the order of the file. A broken one has the default protocol; its users are
/// left out, so that nothing follows from it.
pub(super) fn lower_resources(sections: &[Named]) -> Vec<Resource> {
    let resources = sections.iter().map(|section| {
        let word = section.record.word("protocol");
        let protocol = Protocol::ALL
            .into_iter()
            .find(|protocol| Some(protocol.name()) == word);
        Resource {
            name: section.name.clone(),
            protocol: protocol.unwrap_or_default(),
            at_budget_end: match section.record.word("at-budget-end") {
                Some("check-first") => AtBudgetEnd::CheckFirst,
                _ => AtBudgetEnd::Overrun,
            },
        }
    });
    resources.collect()
}

/// The critical sections of a task; none when one of them, or a resource of theirs, has a mistake
/// that has been reported: the others may be nested in it.
pub(super) fn lower_uses(
    record: &Record,
    names: &Names,
    resources: &[Named],
    report: &mut Report<'_>,
) -> Vec<Use> {
    let mut uses = Vec::new();
    let mut all = true;
    for node in record.list("uses") {
        let Value::Record(given) = &node.value else {
            all = false;
            continue;
        };
        let mut find = |key| {
            let node = given.get(key)?;
            find(node, key, "resource", &names.resources, report)
        };
        let (resource, inside) = (find("resource"), find("inside"));
        let dangling = inside.is_none() && given.get("inside").is_some();
        let broken = |id: ResourceId| {
            let section = resources.get(id.index());
            section.is_none_or(|section| section.record.broken)
        };
        let (Some(resource), Some(length)) = (resource, given.work("for")) else {
            all = false;
            continue;
        };
        all &= !dangling && !given.broken && !broken(resource) && !inside.is_some_and(broken);
        uses.push(Use {
            resource,
            length,
            mode: match given.word("mode") {
                Some("shared") => Mode::Shared,
                _ => Mode::Exclusive,
            },
            inside,
        });
    }
    if all { uses } else { Vec::new() }
}
