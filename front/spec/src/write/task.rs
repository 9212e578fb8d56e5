//! From a task to its section.

use punctual_model::{
    Arrivals, Class, IdleTime, Late, Mode, OnOverrun, PolicyKind, ResourceId, Span, System, Task,
    Work, WorkSource,
};

use super::change::brings_priorities;
use super::value::{Out, Table};
use super::{names, parent_of};

pub(super) fn write_task(system: &System, task: &Task, out: &mut Out) {
    let (on, policy) = parent_of(system, task.cpu, system.care_of(task));
    out.header("task", &task.name);
    out.key("class", task.class.name());
    out.key("on", on);
    if !task.slots.is_empty() {
        out.key("slots", &task.slots);
    }
    write_class(task, out);
    let is_once = matches!(task.class, Class::Once { .. });
    let needs_priority = matches!(policy, Some(PolicyKind::FixedPriority { .. }))
        || is_once
        || brings_priorities(system)
        || matches!(task.class, Class::Aperiodic);
    if needs_priority || task.priority.number() != 0 {
        out.key("priority", task.priority.number());
    }
    out.unless(0, "importance", task.importance.0);
    if is_once || !task.phase.is_zero() {
        out.key("phase", task.phase);
    }
    if task.class.runs_per_job() {
        write_recurring(system, task, out);
    }
    if task.class.runs_per_job() || is_once {
        write_job(system, task, out);
    }
    out.unless(Work::ZERO, "non-preemptive", task.non_preemptive);
    out.given("thread", task.kernel_backed.then_some("kernel-backed"));
    out.given("idle", (task.idle == IdleTime::Keep).then_some("keep"));
    out.given("work", task.work.as_ref().map(work));
}

fn write_class(task: &Task, out: &mut Out) {
    match task.class {
        Class::Periodic {
            period,
            wcet,
            relative_deadline,
        } => {
            out.key("period", period);
            out.key("wcet", wcet);
            if task.own_deadline {
                out.key("deadline", relative_deadline);
            } else {
                out.unless(period, "deadline", relative_deadline);
            }
        }
        Class::Sporadic {
            min_separation,
            wcet,
            relative_deadline,
        } => {
            out.key("min-separation", min_separation);
            out.key("wcet", wcet);
            out.key("deadline", relative_deadline);
            let densest = task.arrivals == Arrivals::Every(min_separation);
            let source = arrivals(&task.arrivals);
            out.given("arrivals", Some(source).filter(|_| !densest));
        }
        Class::Reservation { period, slice } => {
            out.key("period", period);
            out.key("slice", slice);
        }
        Class::Once {
            size,
            relative_deadline,
        } => {
            out.key("size", size);
            out.key("deadline", relative_deadline);
        }
        Class::Aperiodic => {}
    }
}

pub(super) fn arrivals(arrivals: &Arrivals) -> Table {
    match arrivals {
        Arrivals::Every(every) => Table::new("every", every),
        Arrivals::Random { mean } => Table::new("random", mean),
        Arrivals::At(instants) => {
            let spans = instants.iter().map(|at| Span::from_ns(at.as_ns()));
            Table::new("at", spans.collect::<Vec<_>>())
        }
        Arrivals::External => Table::new("external", true),
    }
}

/// The word for a rule of overruns.
pub(super) const fn overrun_word(rule: OnOverrun) -> &'static str {
    match rule {
        OnOverrun::Throttle => "throttle",
        OnOverrun::Demote => "demote",
        OnOverrun::Stop => "stop",
        OnOverrun::Signal => "signal",
    }
}

/// The keys of jobs that come again.
fn write_recurring(system: &System, task: &Task, out: &mut Out) {
    out.unless(Span::ZERO, "jitter", task.jitter);
    match task.late {
        Late::Skip => out.key("late", "skip"),
        late @ Late::Queue { backlog } => {
            out.given("backlog", Some(backlog).filter(|_| late != Late::default()));
        }
    }
    let rule = overrun_word(task.on_overrun);
    out.unless(overrun_word(OnOverrun::default()), "on-overrun", rule);
    let name = |id: ResourceId| system.resources.get(id.index()).map_or("", |r| &r.name);
    let uses = task.uses.iter().map(|section| {
        let table = Table::new("resource", name(section.resource)).and("for", section.length);
        let table = match section.mode {
            Mode::Exclusive => table,
            mode => table.and("mode", mode),
        };
        match section.inside {
            Some(outer) => table.and("inside", name(outer)),
            None => table,
        }
    });
    let uses: Vec<Table> = uses.collect();
    out.given("uses", Some(uses).filter(|uses| !uses.is_empty()));
}

/// The keys of jobs that complete.
fn write_job(system: &System, task: &Task, out: &mut Out) {
    out.unless(Span::ZERO, "max-suspension", task.max_suspension);
    // Once is what the reader assumes of a suspension that has a length.
    if !task.max_suspension.is_zero() {
        out.unless(1, "suspensions", task.suspensions);
    }
    for (key, edges) in [("after", &task.after), ("follows", &task.follows)] {
        let names = Some(names(system, edges));
        out.given(key, names.filter(|names| !names.is_empty()));
    }
}

pub(super) fn work(source: &WorkSource) -> Table {
    match source {
        WorkSource::Burn(amount) => Table::new("burn", amount),
        WorkSource::Call { symbol, library } => Table::new("call", symbol).and("library", library),
        WorkSource::Function(name) => Table::new("function", name),
        WorkSource::Command(words) => Table::new("command", words),
    }
}
