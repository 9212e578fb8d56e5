//! A system in a few lines, for reports of violations.

use std::fmt::Write;

use punctual_model::{Class, Ns, System, Task};

/// Every parameter that is not at its default, a line per CPU, scheduler and task.
pub fn describe(system: &System) -> String {
    let mut text = String::new();
    for cpu in &system.cpus {
        line(
            &mut text,
            format_args!("cpu {}: {:?}", cpu.name, cpu.policy),
        );
    }
    for s in &system.schedulers {
        line(
            &mut text,
            format_args!(
                "scheduler {}: cpu {}, below {:?}, {:?}, p{}, {:?}, {:?}",
                s.name,
                s.cpu.0,
                s.parent.map(|p| p.0),
                s.policy,
                s.priority.number(),
                s.supply,
                s.trust
            ),
        );
    }
    for r in &system.resources {
        line(
            &mut text,
            format_args!(
                "resource {}: {:?}, {:?}",
                r.name, r.protocol, r.at_budget_end
            ),
        );
    }
    for task in &system.tasks {
        let words = words(task);
        line(&mut text, format_args!("task {}:{words}", task.name));
    }
    for group in &system.groups {
        line(&mut text, format_args!("{group:?}"));
    }
    if !system.groups.is_empty() {
        line(&mut text, format_args!("{:?}", system.planning));
    }
    if system.machine != punctual_model::Machine::default() {
        line(&mut text, format_args!("{:?}", system.machine));
    }
    for change in &system.changes {
        line(
            &mut text,
            format_args!(
                "change {} at {}: {:?}",
                change.name,
                change.at.as_ns(),
                change.steps
            ),
        );
    }
    for requirement in &system.requirements {
        line(&mut text, format_args!("{requirement:?}"));
    }
    text
}

fn line(text: &mut String, words: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "    {words}");
}

fn words(task: &Task) -> String {
    let mut words = format!(" cpu {}", task.cpu.0);
    let mut add = |shown: bool, what: String| {
        if shown {
            words.push(' ');
            words.push_str(&what);
        }
    };
    add(
        task.scheduler.is_some(),
        format!("in s{}", task.scheduler.map_or(0, |s| s.0)),
    );
    add(true, format!("p{}", task.priority.number()));
    add(true, class(&task.class));
    let phase = task.phase.as_ns();
    add(phase > 0, format!("phase {phase}"));
    let jitter = task.jitter.as_ns();
    add(jitter > 0, format!("jitter {jitter}"));
    add(
        task.suspensions > 0,
        format!(
            "suspends {} in {}",
            task.max_suspension.as_ns(),
            task.suspensions
        ),
    );
    let section = task.non_preemptive.as_ns();
    add(section > 0, format!("section {section}"));
    add(!task.after.is_empty(), format!("after {:?}", task.after));
    add(
        !task.follows.is_empty(),
        format!("follows {:?}", task.follows),
    );
    add(!task.uses.is_empty(), format!("uses {:?}", task.uses));
    add(!task.slots.is_empty(), format!("slots {:?}", task.slots));
    add(task.late != Default::default(), format!("{:?}", task.late));
    add(task.work.is_some(), format!("{:?}", task.work));
    words
}

fn class(class: &Class<Ns>) -> String {
    let budget = class.budget().map_or(0, |w| w.as_ns());
    let deadline = class.relative_deadline().map_or(0, |d| d.as_ns());
    match class.min_separation() {
        Some(t) => format!("{} C{budget} T{} D{deadline}", class.name(), t.as_ns()),
        None => format!("{} C{budget} D{deadline}", class.name()),
    }
}
