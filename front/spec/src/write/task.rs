//! From a task to its section.

use punctual_model::{
    Arrivals, Class, Late, Mode, Ns, OnOverrun, PolicyKind, ResourceId, Span, System, Task, TaskId,
    Work, WorkSource,
};

use super::{Out, list, parent_of, quoted, span, work, write_slots};

pub(super) fn write_task(system: &System, task: &Task, out: &mut Out) {
    let (on, policy) = parent_of(system, task.cpu, task.scheduler);
    out.header("task", &task.name);
    out.key("class", quoted(task.class.name()));
    out.key("on", quoted(&on));
    if !task.slots.is_empty() {
        write_slots(&task.slots, out);
    }
    write_class(task, out);
    let is_once = matches!(task.class, Class::Once { .. });
    let needs_priority = matches!(policy, Some(PolicyKind::FixedPriority { .. }))
        || is_once
        || matches!(task.class, Class::Aperiodic);
    if needs_priority || task.priority.number() != 0 {
        out.key("priority", task.priority.number());
    }
    out.unless(0, "importance", task.importance.0, task.importance.0);
    if is_once || !task.phase.is_zero() {
        out.key("phase", span(task.phase));
    }
    if task.class.runs_per_job() {
        write_recurring(system, task, out);
    }
    if task.class.runs_per_job() || is_once {
        write_job(system, task, out);
    }
    let section = task.non_preemptive;
    out.unless(Work::ZERO, "non-preemptive", section, work(section));
    if let Some(source) = &task.work {
        write_work(source, out);
    }
}

fn write_class(task: &Task, out: &mut Out) {
    match task.class {
        Class::Periodic {
            period,
            wcet,
            relative_deadline,
        } => {
            out.key("period", span(period));
            out.key("wcet", work(wcet));
            let deadline = relative_deadline;
            out.unless(period, "deadline", deadline, span(deadline));
        }
        Class::Sporadic {
            min_separation,
            wcet,
            relative_deadline,
        } => {
            out.key("min-separation", span(min_separation));
            out.key("wcet", work(wcet));
            out.key("deadline", span(relative_deadline));
            write_arrivals(&task.arrivals, min_separation, out);
        }
        Class::Reservation { period, slice } => {
            out.key("period", span(period));
            out.key("slice", work(slice));
        }
        Class::Once {
            size,
            relative_deadline,
        } => {
            out.key("size", work(size));
            out.key("deadline", span(relative_deadline));
        }
        Class::Aperiodic => {}
    }
}

fn write_arrivals(arrivals: &Arrivals, min_separation: Span<Ns>, out: &mut Out) {
    let form = match arrivals {
        Arrivals::Every(every) if *every == min_separation => return,
        Arrivals::Every(every) => format!("every = {}", span(*every)),
        Arrivals::Random { mean } => format!("random = {}", span(*mean)),
        Arrivals::At(instants) => {
            let spans = instants.iter().map(|at| span(Span::from_ns(at.as_ns())));
            format!("at = {}", list(spans))
        }
        Arrivals::External => "external = true".into(),
    };
    out.key("arrivals", format_args!("{{ {form} }}"));
}

/// The keys of jobs that come again.
fn write_recurring(system: &System, task: &Task, out: &mut Out) {
    out.unless(Span::ZERO, "jitter", task.jitter, span(task.jitter));
    match task.late {
        Late::Skip => out.key("late", quoted("skip")),
        late @ Late::Queue { backlog } => out.unless(Late::default(), "backlog", late, backlog),
    }
    let rule = match task.on_overrun {
        OnOverrun::Throttle => "throttle",
        OnOverrun::Demote => "demote",
        OnOverrun::Stop => "stop",
        OnOverrun::Signal => "signal",
    };
    out.unless(
        OnOverrun::default(),
        "on-overrun",
        task.on_overrun,
        quoted(rule),
    );
    if task.uses.is_empty() {
        return;
    }
    let name = |id: ResourceId| {
        let resource = system.resources.get(id.index());
        quoted(resource.map_or("", |resource| resource.name.as_str()))
    };
    let uses = task.uses.iter().map(|section| {
        let (resource, length) = (name(section.resource), work(section.length));
        let mode = match section.mode {
            Mode::Exclusive => String::new(),
            mode => format!(", mode = {}", quoted(mode.name())),
        };
        let inside = section
            .inside
            .map(|outer| format!(", inside = {}", name(outer)));
        let inside = inside.unwrap_or_default();
        format!("{{ resource = {resource}, for = {length}{mode}{inside} }}")
    });
    out.key("uses", list(uses));
}

/// The keys of jobs that complete.
fn write_job(system: &System, task: &Task, out: &mut Out) {
    let most = task.max_suspension;
    out.unless(Span::ZERO, "max-suspension", most, span(most));
    // Once is what the reader assumes of a suspension that has a length.
    if !most.is_zero() {
        out.unless(1, "suspensions", task.suspensions, task.suspensions);
    }
    let name = |id: &TaskId| {
        let task = system.tasks.get(id.index());
        quoted(task.map_or("", |task| task.name.as_str()))
    };
    for (key, edges) in [("after", &task.after), ("follows", &task.follows)] {
        if !edges.is_empty() {
            out.key(key, list(edges.iter().map(name)));
        }
    }
}

fn write_work(source: &WorkSource, out: &mut Out) {
    let form = match source {
        WorkSource::Burn(amount) => format!("burn = {}", work(*amount)),
        WorkSource::Call { symbol, library } => {
            format!("call = {}, library = {}", quoted(symbol), quoted(library))
        }
        WorkSource::Function(name) => format!("function = {}", quoted(name)),
        WorkSource::Command(words) => {
            format!("command = {}", list(words.iter().map(|word| quoted(word))))
        }
    };
    out.key("work", format_args!("{{ {form} }}"));
}
