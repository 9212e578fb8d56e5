//! Numbers as every command writes them.

use punctual_model::{CpuId, Ns, Span, System, TaskId, readable};

/// `1 task`, `2 tasks`, `1,500 jobs`.
pub(crate) fn count(n: usize, noun: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    let mut digits = n.to_string();
    let all = digits.len();
    for place in (1..all).rev() {
        if (all - place).is_multiple_of(3) {
            digits.insert(place, ',');
        }
    }
    format!("{digits} {noun}{plural}")
}

/// A span, or that there is none.
pub(crate) fn span(span: Option<Span<Ns>>) -> String {
    span.map_or("-".into(), |span| readable(span.as_ns()).to_string())
}

/// The name of a task in the file.
pub(crate) fn task_name(system: &System, task: TaskId) -> String {
    let task = system.tasks.get(task.index());
    task.map_or(String::new(), |task| task.name.clone())
}

/// The name of a CPU in the file.
pub(crate) fn cpu_name(system: &System, cpu: CpuId) -> String {
    let cpu = system.cpus.get(cpu.index());
    cpu.map_or(String::new(), |cpu| cpu.name.clone())
}
