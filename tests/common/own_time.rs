//! A program's own policy for a scheduler that decides on its own supply.

use punctual::{ChildPolicies, System};
use punctual_kern::{Attributes, Pick, Policy};
use punctual_model::{Instant, ThreadId};

/// A scheduler that decides on its own supply, beside a task.
pub(crate) const FILE: &str = r#"
[system]
cpus = [0]

[cpu.0]
policy = "fixed-priority"

[scheduler.plugin]
on = "cpu.0"
policy = "fifo"
priority = 2
server = { kind = "deferrable", budget = "8ms", period = "20ms" }
trust = "own-time"

[task.first]
class = "periodic"
on = "scheduler.plugin"
period = "20ms"
deadline = "20ms"
wcet = "2ms"
work = { burn = "1ms" }

[task.second]
class = "periodic"
on = "scheduler.plugin"
period = "20ms"
wcet = "2ms"
work = { burn = "1ms" }

[task.rest]
class = "periodic"
on = "cpu.0"
period = "20ms"
wcet = "2ms"
priority = 1
work = { burn = "1ms" }
"#;

pub(crate) fn system() -> System {
    let description = punctual_spec::parse(FILE, "own-time.toml");
    description
        .map_err(|errors| format!("{errors:?}"))
        .unwrap()
        .system
}

/// Last come, first served: the whole policy.
pub(crate) struct LastFirst(pub(crate) Vec<ThreadId>);

impl Policy for LastFirst {
    fn wake(&mut self, thread: ThreadId, _: &Attributes) {
        self.0.push(thread);
    }
    fn block(&mut self, thread: ThreadId) {
        self.0.retain(|&other| other != thread);
    }
    fn pick(&mut self, _: Instant) -> Pick {
        self.0
            .last()
            .map_or(Pick::NOBODY, |&thread| Pick::run(thread))
    }
}

pub(crate) fn policies() -> ChildPolicies {
    ChildPolicies::new().with("plugin", |threads| LastFirst(Vec::with_capacity(threads)))
}
