//! From the `[require]` section to the requirements of the model.

use punctual_model::Requirement;

use super::{Names, find_task};
use crate::places::Places;
use crate::record::{Node, Record, Value};
use crate::report::Report;

/// The requirements, and their places: responses, chains, jitters, each in the order of the file.
/// Those about broken tasks are left out.
pub(super) fn lower_requirements(
    record: &Record,
    names: &Names,
    places: &mut Places,
    report: &mut Report<'_>,
) -> Vec<Requirement> {
    let mut requirements = Vec::new();
    for key in ["response", "chain", "jitter"] {
        for node in record.list(key) {
            let requirement = lower_requirement(key, node, names, places, report);
            if let Some(requirement) = requirement {
                requirements.push(requirement);
                places.requirements.push(node.range.clone());
            }
        }
    }
    requirements
}

fn lower_requirement(
    key: &str,
    node: &Node,
    names: &Names,
    places: &Places,
    report: &mut Report<'_>,
) -> Option<Requirement> {
    let Value::Record(given) = &node.value else {
        return None;
    };
    let mut find = |node, key| {
        let id = find_task(node, key, names, report)?;
        let broken = places.tasks.get(id.index()).is_some_and(|task| task.broken);
        (!broken).then_some(id)
    };
    let within = given.span("within");
    if key == "chain" {
        let nodes = given.list("tasks").iter();
        // Every dangling name is reported before the chain is given up.
        let tasks: Vec<_> = nodes.map(|node| find(node, "tasks")).collect();
        return Some(Requirement::Chain {
            tasks: tasks.into_iter().collect::<Option<_>>()?,
            within: within?,
        });
    }
    let task = find(given.get("task")?, "task")?;
    let within = within?;
    Some(match key {
        "jitter" => Requirement::Jitter { task, within },
        _ => Requirement::Response { task, within },
    })
}
