//! The section of a change.

use punctual_model::{Change, Class, Ns, PolicyKind, Span, Step, System};

use super::server_table;
use super::value::{List, Out, Table, Toml};

pub(super) fn write_change(system: &System, change: &Change, out: &mut Out) {
    out.header("change", &change.name);
    out.key("at", Span::from_ns(change.at.as_ns()));
    let task = |id: punctual_model::TaskId| {
        let task = system.tasks.get(id.index());
        task.map_or(String::new(), |task| task.name.clone())
    };
    let scheduler = |id: punctual_model::SchedulerId| {
        let scheduler = system.schedulers.get(id.index());
        scheduler.map_or(String::new(), |scheduler| scheduler.name.clone())
    };
    let mut lists: [(&str, Vec<String>); 6] =
        ["start", "stop", "move", "constraint", "supply", "policy"].map(|key| (key, Vec::new()));
    for step in &change.steps {
        let (list, text) = match *step {
            Step::Start(id) => (0, format!("task.{}", task(id)).toml()),
            Step::Join(id) => (0, format!("scheduler.{}", scheduler(id)).toml()),
            Step::Stop(id) => (1, format!("task.{}", task(id)).toml()),
            Step::Leave(id) => (1, format!("scheduler.{}", scheduler(id)).toml()),
            Step::Move(id, to) => {
                let cpu = system.tasks.get(id.index()).map(|task| task.cpu.index());
                let cpu = cpu.and_then(|cpu| system.cpus.get(cpu));
                let home = match to {
                    Some(to) => format!("scheduler.{}", scheduler(to)),
                    None => format!("cpu.{}", cpu.map_or("", |cpu| &cpu.name)),
                };
                (2, Table::new("task", task(id)).and("to", home).toml())
            }
            Step::Constrain(id, terms) => {
                let class = system.tasks.get(id.index()).map(|task| task.class);
                let (separation, budget) = match class {
                    Some(Class::Sporadic { .. }) => ("min-separation", "wcet"),
                    Some(Class::Reservation { .. }) => ("period", "slice"),
                    _ => ("period", "wcet"),
                };
                let mut table = Table::new("task", task(id));
                if let Some(span) = terms.separation {
                    table = table.and(separation, span);
                }
                if let Some(work) = terms.budget {
                    table = table.and(budget, work);
                }
                if let Some(span) = terms.relative_deadline {
                    table = table.and("deadline", span);
                }
                if let Some(priority) = terms.priority {
                    table = table.and("priority", priority.number());
                }
                (3, table.toml())
            }
            Step::Supply(id, server) => {
                let table = Table::new("scheduler", scheduler(id));
                (4, table.and("server", server_table(&server)).toml())
            }
            Step::Reorder(id, policy) => {
                let of = format!("scheduler.{}", scheduler(id));
                (5, policy_table(&of, policy))
            }
            Step::ReorderCpu(id, policy) => {
                let cpu = system.cpus.get(id.index());
                let of = format!("cpu.{}", cpu.map_or("", |cpu| &cpu.name));
                (5, policy_table(&of, policy))
            }
        };
        lists[list].1.push(text);
    }
    for (key, list) in lists {
        out.given(key, Some(List(list)).filter(|list| !list.0.is_empty()));
    }
}

fn policy_table(of: &str, policy: PolicyKind<Ns>) -> String {
    let table = Table::new("of", of).and("policy", policy.name());
    let table = match policy {
        PolicyKind::RoundRobin { timeslice } => table.and("timeslice", timeslice),
        PolicyKind::FixedPriority { preemptive: false } => table.and("preemptive", false),
        _ => table,
    };
    table.toml()
}

/// Whether a change has something order by fixed priority, so that what it orders needs one.
pub(super) fn brings_priorities(system: &System) -> bool {
    let mut steps = system.changes.iter().flat_map(|change| &change.steps);
    steps.any(|step| {
        let (Step::Reorder(_, policy) | Step::ReorderCpu(_, policy)) = step else {
            return false;
        };
        matches!(policy, PolicyKind::FixedPriority { .. })
    })
}
