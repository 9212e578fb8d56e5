//! The section of a change.

use punctual_model::{Change, Class, Ns, PolicyKind, Span, Stage, Step, System, TaskId, Terms};

use super::value::{List, Out, Table, Toml};
use super::{code_table, delegation, receiver_of, server_table};

const KEYS: [&str; 8] = [
    "start",
    "stop",
    "move",
    "constraint",
    "supply",
    "policy",
    "delegate",
    "take-back",
];

/// Where a step about a slice stands, and its text: none where that goes without saying, because
/// the slice comes or goes with its giver.
fn slice_step(system: &System, change: &Change, step: &Step) -> Option<(usize, Option<String>)> {
    let (Step::Join(id) | Step::Leave(id)) = *step else {
        return None;
    };
    let slice = system.schedulers.get(id.index())?;
    let to = receiver_of(slice)?;
    let giver = slice.parent?;
    let from = system.schedulers.get(giver.index())?;
    let table = Table::new("from", format!("scheduler.{}", from.name));
    let in_section = Stage::at_start(system).scheduler(id).is_some();
    Some(match step {
        Step::Join(_) => {
            let implied = in_section && change.steps.contains(&Step::Join(giver));
            let entry = delegation(table, from, slice).filter(|_| !implied);
            (6, entry.map(|entry| entry.toml()))
        }
        _ => {
            let implied = change.steps.contains(&Step::Leave(giver));
            (7, (!implied).then(|| table.and("to", to).toml()))
        }
    })
}

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
    let mut transfer = None;
    let mut lists = KEYS.map(|key| (key, Vec::new()));
    for step in &change.steps {
        if let Some((list, text)) = slice_step(system, change, step) {
            lists[list].1.extend(text);
            continue;
        }
        let (list, text) = match *step {
            Step::Transfer { from, to, budget } => {
                let end = |id| format!("scheduler.{}", scheduler(id));
                let table = Table::new("from", end(from)).and("to", end(to));
                transfer = Some(table.and("budget", budget));
                continue;
            }
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
                let table = terms_table(system, id, terms, Table::new("task", task(id)));
                (3, table.toml())
            }
            Step::Supply(id, server) => {
                let table = Table::new("scheduler", scheduler(id));
                (4, table.and("server", server_table(&server)).toml())
            }
            Step::Reorder(id, policy, ref code) => {
                let of = format!("scheduler.{}", scheduler(id));
                let table = policy_table(&of, policy);
                let table = match code {
                    Some(code) => table.and("code", code_table(code)),
                    None => table,
                };
                (5, table.toml())
            }
            Step::ReorderCpu(id, policy) => {
                let cpu = system.cpus.get(id.index());
                let of = format!("cpu.{}", cpu.map_or("", |cpu| &cpu.name));
                (5, policy_table(&of, policy).toml())
            }
        };
        lists[list].1.push(text);
    }
    for (key, list) in lists {
        out.given(key, Some(List(list)).filter(|list| !list.0.is_empty()));
    }
    out.given("transfer", transfer);
}

/// The constraints that change, behind the name of the task.
fn terms_table(system: &System, id: TaskId, terms: Terms, table: Table) -> Table {
    let class = system.tasks.get(id.index()).map(|task| task.class);
    let (separation, budget) = match class {
        Some(Class::Sporadic { .. }) => ("min-separation", "wcet"),
        Some(Class::Reservation { .. }) => ("period", "slice"),
        _ => ("period", "wcet"),
    };
    let mut table = table;
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
    table
}

fn policy_table(of: &str, policy: PolicyKind<Ns>) -> Table {
    let table = Table::new("of", of).and("policy", policy.name());
    match policy {
        PolicyKind::RoundRobin { timeslice } => table.and("timeslice", timeslice),
        PolicyKind::FixedPriority { preemptive: false } => table.and("preemptive", false),
        _ => table,
    }
}

/// Whether a change may have something ordered by fixed priority, so that it needs one.
pub(super) fn brings_priorities(system: &System) -> bool {
    let mut steps = system.changes.iter().flat_map(|change| &change.steps);
    steps.any(|step| match step {
        Step::Reorder(_, policy, _) | Step::ReorderCpu(_, policy) => {
            matches!(policy, PolicyKind::FixedPriority { .. })
        }
        Step::Move(..) => true,
        _ => false,
    })
}
