//! From a system to its file: reading it gives the same system.
//!
//! For systems that no file described: drawn at random, mended by a suggestion, or built by a
//! program. Keys at their defaults are left out. The `toml` crate can write, too, but it gives a
//! list of tables headers of its own, away from the key that a reader of the file looks for.

mod task;

use std::fmt::{Display, Write};

use punctual_model::{
    AtBudgetEnd, Cpu, CpuId, Machine, Ns, PolicyKind, Requirement, Reserve, Resource, Scheduler,
    SchedulerId, Server, Share, Slot, Span, Supply, System, TaskId, Trust, Work, readable,
};

use crate::platform::Platform;
use task::write_task;

/// The text of a system file for `system`, which must be valid. O(size of the system).
///
/// A file cannot say everything that a program can. Values without a meaning in a class are lost
/// (the `jitter` of a reservation). So is that a CPU whose name is a number is not that host CPU,
/// and the order of requirements of different kinds.
pub fn write(system: &System) -> String {
    let mut out = Out(String::new());
    out.line("[system]");
    let names = system.cpus.iter().map(|cpu| match number_of(&cpu.name) {
        Some(number) => number.to_string(),
        None => quoted(&cpu.name),
    });
    out.key("cpus", list(names));
    for cpu in &system.cpus {
        write_cpu(cpu, &mut out);
    }
    for scheduler in &system.schedulers {
        write_scheduler(system, scheduler, &mut out);
    }
    for resource in &system.resources {
        write_resource(resource, &mut out);
    }
    write_machine(&system.machine, &mut out);
    for task in &system.tasks {
        write_task(system, task, &mut out);
    }
    write_requirements(system, &mut out);
    if system.run.duration.is_some() || system.run.seed.is_some() {
        out.line("\n[run]");
        out.given("for", system.run.duration.map(span));
        out.given("seed", system.run.seed);
    }
    out.0
}

/// The file so far.
struct Out(String);

impl Out {
    fn line(&mut self, line: impl Display) {
        // Writing into a text cannot fail.
        let _ = writeln!(self.0, "{line}");
    }

    fn header(&mut self, kind: &str, name: &str) {
        self.line(format_args!("\n[{kind}.{}]", key_of(name)));
    }

    fn key(&mut self, key: &str, value: impl Display) {
        self.line(format_args!("{key} = {value}"));
    }

    /// A key that is left out without a value.
    fn given(&mut self, key: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.key(key, value);
        }
    }

    /// A key that is left out at its default.
    fn unless<T: PartialEq>(&mut self, default: T, key: &str, value: T, text: impl Display) {
        if value != default {
            self.key(key, text);
        }
    }
}

/// A name as a part of a header: bare where TOML allows it.
fn key_of(name: &str) -> String {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !name.is_empty() && name.bytes().all(bare) {
        name.into()
    } else {
        quoted(name)
    }
}

/// A text as TOML quotes it.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted += &format!("\\U{:08X}", u32::from(c)),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

fn span(span: Span<Ns>) -> String {
    format!("\"{}\"", readable(span.as_ns()))
}

fn work(work: Work<Ns>) -> String {
    span(work.as_span())
}

fn list(values: impl Iterator<Item = String>) -> String {
    format!("[{}]", values.collect::<Vec<_>>().join(", "))
}

/// The number of a name that is one, as the reader sees it.
fn number_of(name: &str) -> Option<u32> {
    let number: u32 = name.parse().ok()?;
    (number.to_string() == name).then_some(number)
}

fn write_cpu(cpu: &Cpu, out: &mut Out) {
    out.header("cpu", &cpu.name);
    write_policy(&cpu.policy, out);
    if let Some(host) = cpu.host {
        out.unless(number_of(&cpu.name), "host", Some(host), host);
    }
}

fn write_policy(policy: &PolicyKind<Ns>, out: &mut Out) {
    out.key("policy", quoted(policy.name()));
    match policy {
        PolicyKind::RoundRobin { timeslice } => out.key("timeslice", span(*timeslice)),
        PolicyKind::FixedPriority { preemptive } => {
            out.unless(true, "preemptive", *preemptive, preemptive);
        }
        PolicyKind::Tdm { frame, scheduling } => {
            out.key("frame", span(*frame));
            out.unless(
                Span::ZERO,
                "scheduling-time",
                *scheduling,
                span(*scheduling),
            );
        }
        PolicyKind::Fifo | PolicyKind::EarliestDeadlineFirst => {}
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

fn write_scheduler(system: &System, scheduler: &Scheduler, out: &mut Out) {
    let (on, above) = parent_of(system, scheduler.cpu, scheduler.parent);
    out.header("scheduler", &scheduler.name);
    out.key("on", quoted(&on));
    write_policy(&scheduler.policy, out);
    let priority = scheduler.priority.number();
    if priority != 0 || matches!(above, Some(PolicyKind::FixedPriority { .. })) {
        out.key("priority", priority);
    }
    match &scheduler.supply {
        Supply::Shared => {}
        Supply::Server(Server {
            kind,
            budget,
            period,
        }) => {
            let (budget, period) = (work(*budget), span(*period));
            let kind = quoted(kind.name());
            out.key(
                "server",
                format_args!("{{ kind = {kind}, budget = {budget}, period = {period} }}"),
            );
        }
        Supply::Slots(slots) => write_slots(slots, out),
    }
    let trust = scheduler.trust;
    out.unless(Trust::default(), "trust", trust, quoted(trust.name()));
    out.given("quota", scheduler.quota);
}

fn write_slots(slots: &[Slot<Ns>], out: &mut Out) {
    let slots = slots.iter().map(|slot| {
        let (at, length) = (span(slot.at), span(slot.length));
        format!("{{ at = {at}, length = {length} }}")
    });
    out.key("slots", list(slots));
}

fn write_resource(resource: &Resource, out: &mut Out) {
    out.header("resource", &resource.name);
    out.key("protocol", quoted(resource.protocol.name()));
    let end = resource.at_budget_end;
    out.unless(
        AtBudgetEnd::default(),
        "at-budget-end",
        end,
        quoted(end.name()),
    );
}

/// The text of a platform file ([`crate::parse_platform`]).
pub fn write_platform(platform: &Platform) -> String {
    let mut out = Out(String::new());
    if !platform.measured.is_empty() {
        out.line("[measured]");
        for (name, value) in &platform.measured {
            out.key(key_of(name).as_ref(), quoted(value));
        }
        out.line("");
    }
    out.line("[machine]");
    write_terms(&platform.machine, &mut out);
    out.0
}

fn write_machine(machine: &Machine, out: &mut Out) {
    if *machine != Machine::default() {
        out.line("\n[machine]");
        write_terms(machine, out);
    }
}

fn write_terms(machine: &Machine, out: &mut Out) {
    for (key, term) in [
        ("switch", machine.switch),
        ("timer", machine.timer),
        ("preemption", machine.preemption),
        ("cache-delay", machine.cache_delay),
    ] {
        out.unless(Work::ZERO, key, term, work(term));
    }
    let amounts = |reserve: &Reserve| {
        let (budget, period) = (work(reserve.budget), span(reserve.period));
        format!("budget = {budget}, period = {period}")
    };
    if let Some(missing) = &machine.missing_time {
        out.key("missing-time", format_args!("{{ {} }}", amounts(missing)));
    }
    let limit = machine.limits.utilization;
    let (whole, parts) = (limit.ppm() / 10_000, limit.ppm() % 10_000);
    out.unless(
        Share::WHOLE,
        "limits",
        limit,
        format_args!("{{ utilization = \"{whole}.{parts:04}%\" }}"),
    );
    if !machine.reserves.is_empty() {
        let reserves = machine.reserves.iter().map(|reserve| {
            let name = quoted(&reserve.name);
            format!("{{ name = {name}, {} }}", amounts(reserve))
        });
        out.key("reserve", list(reserves));
    }
}

fn write_requirements(system: &System, out: &mut Out) {
    let name = |id: &TaskId| {
        let task = system.tasks.get(id.index());
        quoted(task.map_or("", |task| task.name.as_str()))
    };
    let (mut responses, mut chains, mut jitters) = (Vec::new(), Vec::new(), Vec::new());
    for requirement in &system.requirements {
        match requirement {
            Requirement::Response { task, within } => {
                let (task, within) = (name(task), span(*within));
                responses.push(format!("{{ task = {task}, within = {within} }}"));
            }
            Requirement::Chain { tasks, within } => {
                let (tasks, within) = (list(tasks.iter().map(name)), span(*within));
                chains.push(format!("{{ tasks = {tasks}, within = {within} }}"));
            }
            Requirement::Jitter { task, within } => {
                let (task, within) = (name(task), span(*within));
                jitters.push(format!("{{ task = {task}, within = {within} }}"));
            }
        }
    }
    if !system.requirements.is_empty() {
        out.line("\n[require]");
    }
    for (key, all) in [
        ("response", responses),
        ("chain", chains),
        ("jitter", jitters),
    ] {
        if !all.is_empty() {
            out.key(key, list(all.into_iter()));
        }
    }
}
