//! From a system to its file: reading it gives the same system.
//!
//! For systems that no file described: drawn at random, mended by a suggestion, or built by a
//! program. Keys at their defaults are left out. The `toml` crate can write, too, but it gives a
//! list of tables headers of its own, away from the key that a reader of the file looks for.

mod change;
mod gang;
mod graph;
mod group;
mod task;
mod value;

use punctual_model::{
    AtBudgetEnd, Cpu, CpuId, Machine, Ns, PolicyCode, PolicyKind, Requirement, Resource, Scheduler,
    SchedulerId, Server, Share, Span, Stage, Supply, System, TaskId, Trust, Work,
};

use crate::platform::Platform;
use change::{brings_priorities, write_change};
use gang::write_gang;
use graph::write_graph;
use group::{write_group, write_planning};
use task::write_task;
use value::{Out, Table, Toml};

/// The text of a system file for `system`, which must be valid. O(size of the system).
///
/// A file cannot say everything that a program can. Values without a meaning in a class are lost
/// (the `jitter` of a reservation). So is that a CPU whose name is a number is not that host CPU,
/// and the order of requirements of different kinds.
pub fn write(system: &System) -> String {
    let mut out = Out(String::new());
    out.line("[system]");
    let names = system.cpus.iter().map(|cpu| match number_of(&cpu.name) {
        Some(number) => number.toml(),
        None => cpu.name.toml(),
    });
    out.key("cpus", value::List(names.collect()));
    for cpu in &system.cpus {
        write_cpu(cpu, &mut out);
    }
    for (id, scheduler) in (0..).map(SchedulerId).zip(&system.schedulers) {
        if scheduler.receiver.is_none() {
            write_scheduler(system, (id, scheduler), &mut out);
        }
    }
    for resource in &system.resources {
        write_resource(resource, &mut out);
    }
    if system.machine != Machine::default() {
        out.line("\n[machine]");
        write_terms(&system.machine, &mut out);
    }
    for task in &system.tasks {
        write_task(system, task, &mut out);
    }
    for gang in &system.gangs {
        write_gang(system, gang, &mut out);
    }
    for graph in &system.graphs {
        write_graph(system, graph, &mut out);
    }
    for group in &system.groups {
        write_group(system, group, &mut out);
    }
    write_planning(&system.planning, &mut out);
    write_requirements(system, &mut out);
    for change in &system.changes {
        write_change(system, change, &mut out);
    }
    if system.run.duration.is_some() || system.run.seed.is_some() {
        out.line("\n[run]");
        out.given("for", system.run.duration);
        out.given("seed", system.run.seed);
    }
    out.0
}

/// The number of a name that is one, as the reader sees it.
fn number_of(name: &str) -> Option<u32> {
    let number: u32 = name.parse().ok()?;
    (number.to_string() == name).then_some(number)
}

fn write_cpu(cpu: &Cpu, out: &mut Out) {
    out.header("cpu", &cpu.name);
    write_policy(&cpu.policy, out);
    out.given(
        "host",
        cpu.host.filter(|_| cpu.host != number_of(&cpu.name)),
    );
}

fn write_policy(policy: &PolicyKind<Ns>, out: &mut Out) {
    out.key("policy", policy.name());
    match *policy {
        PolicyKind::RoundRobin { timeslice } => out.key("timeslice", timeslice),
        PolicyKind::FixedPriority { preemptive } => out.unless(true, "preemptive", preemptive),
        PolicyKind::Tdm { frame, scheduling } => {
            out.key("frame", frame);
            out.unless(Span::ZERO, "scheduling-time", scheduling);
        }
        PolicyKind::Fifo | PolicyKind::EarliestDeadlineFirst | PolicyKind::Planned => {}
    }
}

/// The name of what orders something, and its policy.
fn parent_of(
    system: &System,
    cpu: CpuId,
    scheduler: Option<SchedulerId>,
) -> (String, Option<PolicyKind<Ns>>) {
    match scheduler.and_then(|id| system.schedulers.get(id.index())) {
        Some(parent) => (format!("scheduler.{}", parent.name), Some(parent.policy)),
        None => {
            let cpu = system.cpus.get(cpu.index());
            let name = cpu.map_or("", |cpu| cpu.name.as_str());
            (format!("cpu.{name}"), cpu.map(|cpu| cpu.policy))
        }
    }
}

fn write_scheduler(system: &System, (id, scheduler): (SchedulerId, &Scheduler), out: &mut Out) {
    let (on, above) = parent_of(system, scheduler.cpu, scheduler.parent);
    out.header("scheduler", &scheduler.name);
    out.key("on", on);
    write_policy(&scheduler.policy, out);
    let priority = scheduler.priority.number();
    let by_priority = matches!(above, Some(PolicyKind::FixedPriority { .. }));
    if priority != 0 || by_priority || brings_priorities(system) {
        out.key("priority", priority);
    }
    match &scheduler.supply {
        Supply::Shared => {}
        Supply::Server(server) => out.key("server", server_table(server)),
        Supply::Slots(slots) => out.key("slots", slots),
    }
    out.unless(Trust::default(), "trust", scheduler.trust);
    if let Some(code) = &scheduler.code {
        out.key("code", code_table(code));
    }
    if let Some(fallback) = &scheduler.fallback {
        let table = Table::new("policy", fallback.policy.name());
        out.key("fallback", table.and("after", fallback.after));
    }
    // Slices that come later stand in the change that delegates them.
    let stage = Stage::at_start(system);
    let slices = (0..).map(SchedulerId).zip(&system.schedulers);
    let slices =
        slices.filter(|(slice, s)| s.parent == Some(id) && stage.scheduler(*slice).is_some());
    let slices = slices.filter_map(|(_, s)| delegation(Table::default(), scheduler, s));
    let slices: Vec<Table> = slices.collect();
    if !slices.is_empty() {
        out.key("delegate", slices);
    }
    out.given("quota", scheduler.quota);
}

/// The receiver of a slice, as a file names it.
fn receiver_of(slice: &Scheduler) -> Option<String> {
    let receiver = slice.receiver.as_ref()?;
    Some(match (&receiver.task, &receiver.scheduler) {
        (Some(task), _) => format!("task.{task}"),
        (None, scheduler) => format!("scheduler.{}", scheduler.as_deref()?),
    })
}

/// The entry of the file for a slice of a scheduler's supply, behind what stands there already.
fn delegation(table: Table, giver: &Scheduler, slice: &Scheduler) -> Option<Table> {
    let Supply::Server(server) = &slice.supply else {
        return None;
    };
    let to = receiver_of(slice)?;
    let table = table.and("to", to).and("slice", server.budget);
    let table = table.and("every", server.period);
    let priority = slice.priority.number();
    let by_priority = matches!(giver.policy, PolicyKind::FixedPriority { .. });
    Some(match by_priority || priority != 0 {
        true => table.and("priority", priority),
        false => table,
    })
}

fn code_table(code: &PolicyCode) -> Table {
    Table::new("library", code.library.as_str()).and("symbol", code.symbol.as_str())
}

fn server_table(server: &Server<Ns>) -> Table {
    let table = Table::new("kind", server.kind.name());
    let table = table.and("budget", server.budget);
    table.and("period", server.period)
}

fn write_resource(resource: &Resource, out: &mut Out) {
    out.header("resource", &resource.name);
    out.key("protocol", resource.protocol.name());
    out.unless(
        AtBudgetEnd::default(),
        "at-budget-end",
        resource.at_budget_end,
    );
}

/// The text of a platform file ([`crate::parse_platform`]).
pub fn write_platform(platform: &Platform) -> String {
    let mut out = Out(String::new());
    if !platform.measured.is_empty() {
        out.line("[measured]");
        for (name, value) in &platform.measured {
            out.key(value::key_of(name).as_ref(), value);
        }
        out.line("");
    }
    out.line("[machine]");
    write_terms(&platform.machine, &mut out);
    out.0
}

fn write_terms(machine: &Machine, out: &mut Out) {
    out.unless(Work::ZERO, "switch", machine.switch);
    out.unless(Work::ZERO, "timer", machine.timer);
    out.unless(Work::ZERO, "budget-timer", machine.budget_timer);
    out.unless(Work::ZERO, "preemption", machine.preemption);
    out.unless(Work::ZERO, "cache-delay", machine.cache_delay);
    out.unless(Span::ZERO, "clock-error", machine.clock_error);
    let missing = machine.missing_time.as_ref();
    out.given(
        "missing-time",
        missing.map(|all| Table::new("budget", all.budget).and("period", all.period)),
    );
    let limit = machine.limits.utilization;
    if limit != Share::WHOLE {
        out.key("limits", Table::new("utilization", limit));
    }
    if !machine.reserves.is_empty() {
        out.key("reserve", &machine.reserves);
    }
}

/// The names of tasks.
fn names<'a>(system: &'a System, tasks: &[TaskId]) -> Vec<&'a str> {
    let name = |id: &TaskId| system.tasks.get(id.index()).map_or("", |task| &task.name);
    tasks.iter().map(name).collect()
}

fn write_requirements(system: &System, out: &mut Out) {
    let of_task = |task: &TaskId| Table::new("task", names(system, &[*task]).concat());
    let (mut responses, mut chains, mut jitters) = (Vec::new(), Vec::new(), Vec::new());
    for requirement in &system.requirements {
        match requirement {
            Requirement::Response { task, within } => {
                responses.push(of_task(task).and("within", *within));
            }
            Requirement::Chain { tasks, within } => {
                chains.push(Table::new("tasks", names(system, tasks)).and("within", *within));
            }
            Requirement::Jitter { task, within } => {
                jitters.push(of_task(task).and("within", *within));
            }
        }
    }
    let (mut periods, mut latencies) = (Vec::new(), Vec::new());
    for graph in &system.graphs {
        let of_graph = || Table::new("graph", graph.name.as_str());
        periods.extend(graph.every.map(|every| of_graph().and("every", every)));
        latencies.extend(graph.within.map(|within| of_graph().and("within", within)));
    }
    if !(system.requirements.is_empty() && periods.is_empty() && latencies.is_empty()) {
        out.line("\n[require]");
    }
    for (key, all) in [
        ("response", responses),
        ("chain", chains),
        ("jitter", jitters),
        ("throughput", periods),
        ("latency", latencies),
    ] {
        out.given(key, Some(all).filter(|all| !all.is_empty()));
    }
}
