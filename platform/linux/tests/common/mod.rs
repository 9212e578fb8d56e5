//! Small inputs for live tests: a CPU under fixed priorities, tasks in nanoseconds, a flat log.

#![allow(dead_code, unreachable_pub)] // Each test program includes this file and uses a part of it.

use std::sync::Mutex;

use punctual_child::ChildScheduler;
use punctual_kern::{
    Capacity, Constraint, Decision, Entry, Event, NodeId, Plan, Policy, Shard, Sink, TraceEvent,
    Tree,
};
use punctual_linux::{ChildInput, CpuInput, JobInfo, RunOptions, ThreadInput, clock_rate};
use punctual_model::{
    Class, Cpu, CpuId, Instant, PolicyKind, Priority, Span, System, Task, ThreadId, Trust, Work,
};
use punctual_policy::{AnyPolicy, FixedPriority};
use punctual_tables::Tables;

/// One run at a time: they share CPUs, and a process has one run at a time.
pub static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Waits for its turn, also after a test that failed.
pub fn alone() -> std::sync::MutexGuard<'static, ()> {
    ONE_AT_A_TIME
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Keeps everything that passes by.
#[derive(Debug, Default)]
pub struct Log {
    pub events: Vec<(Instant, Event)>,
    pub traces: Vec<(Instant, TraceEvent)>,
    pub decisions: Vec<(Instant, Decision)>,
}

impl Log {
    /// A log that does not allocate for the next `n` entries of each kind.
    pub fn with_room(n: usize) -> Log {
        Log {
            events: Vec::with_capacity(n),
            traces: Vec::with_capacity(n),
            decisions: Vec::with_capacity(n),
        }
    }
}

impl Sink for Log {
    fn begin(&mut self, entry: &Entry<'_>) {
        if self.events.len() < self.events.capacity() {
            self.events.push((entry.now, *entry.event));
        }
    }
    fn trace(&mut self, now: Instant, event: TraceEvent) {
        if self.traces.len() < self.traces.capacity() {
            self.traces.push((now, event));
        }
    }
    fn decision(&mut self, now: Instant, decision: &Decision) {
        if self.decisions.len() < self.decisions.capacity() {
            self.decisions.push((now, *decision));
        }
    }
}

/// A task with its body.
pub struct Spec {
    pub task: Task,
    pub body: Box<dyn FnMut(&JobInfo) + Send>,
}

/// A task without deadline that runs below all others, in turns with its equals.
pub fn background(name: &str, priority: u32, body: impl FnMut(&JobInfo) + Send + 'static) -> Spec {
    let mut task = Task::new(name, CpuId(0), Class::Aperiodic);
    task.priority = Priority::new(priority);
    Spec {
        task,
        body: Box::new(body),
    }
}

/// A periodic task with an implicit deadline.
pub fn periodic(
    name: &str,
    priority: u32,
    period_us: u64,
    wcet_us: u64,
    body: impl FnMut(&JobInfo) + Send + 'static,
) -> Spec {
    let class = Class::Periodic {
        period: Span::from_us(period_us),
        wcet: Work::from_us(wcet_us),
        relative_deadline: Span::from_us(period_us),
    };
    let mut task = Task::new(name, CpuId(0), class);
    task.priority = Priority::new(priority);
    Spec {
        task,
        body: Box::new(body),
    }
}

/// The host CPU that tests use: the last one, so that CPU 0 stays free where there are two.
pub fn test_cpu() -> u32 {
    let list = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = list
        .lines()
        .find(|l| l.starts_with("Cpus_allowed_list:"))
        .expect("known since 2.6");
    let last = line
        .rsplit([',', '-', '\t', ' '])
        .next()
        .expect("a list has an end");
    last.trim().parse().expect("a number")
}

/// The input of one CPU. Background threads change turns every `turn_us`.
pub fn input<S>(specs: Vec<Spec>, turn_us: u64, sink: S) -> CpuInput<FixedPriority, S> {
    let rate = clock_rate().frequency;
    let capacity = Capacity {
        threads: specs.len(),
        pending: 64 * specs.len(),
        background_turn: Span::from_ticks(rate.ticks_up(turn_us * 1_000)),
        nodes: 0,
        grace: Work::ZERO,
        stop_cost: Work::ZERO,
        entry: Work::ZERO,
        cache_delay: Work::ZERO,
    };
    let mut shard = Shard::new(Tree::new(capacity, FixedPriority::new(specs.len())));
    let mut threads = Vec::new();
    for (order, spec) in (0..).zip(specs) {
        let constraint = Constraint::of_task(&spec.task, order).in_ticks(rate);
        let id: ThreadId = shard.attach(constraint).expect("a valid task");
        threads.push(ThreadInput {
            id,
            name: spec.task.name,
            body: spec.body,
        });
    }
    CpuInput {
        host: test_cpu(),
        name: "0".to_owned(),
        shard,
        sink,
        threads,
        children: Vec::new(),
        resources: Vec::new(),
        arrivals: Vec::new(),
        plan: Plan::default(),
    }
}

/// Options for a run of `ms` milliseconds, whose timers are set early as in runs of users.
pub fn for_ms(ms: u64) -> RunOptions {
    RunOptions {
        duration_ns: Some(ms * 1_000_000),
        grace_ns: 2_000_000_000,
        early_ns: 20_000,
        ..RunOptions::default()
    }
}

/// Options for a run that somebody stops when enough has happened, however long a loaded machine
/// takes for it. One that nobody stops ends all the same, completely, and its test fails.
pub fn until_stopped() -> RunOptions {
    for_ms(60_000)
}

/// The input for the one CPU of a system: bodies by task, code by child.
pub fn input_of<S>(
    system: &System,
    bodies: Vec<punctual_linux::Body>,
    children: Vec<Box<dyn Policy + Send>>,
    sink: S,
) -> CpuInput<AnyPolicy, S> {
    let tables = Tables::new(system, clock_rate().frequency);
    let cpu = &tables.cpus[0];
    let thread = |(index, body)| ThreadInput {
        id: ThreadId::new(index, 0),
        name: system.tasks[index as usize].name.clone(),
        body,
    };
    let nodes = (1..).zip(&cpu.nodes);
    let own_time = nodes.filter(|(_, node)| node.terms.trust == Trust::OwnTime);
    let child = |((place, _), policy)| ChildInput {
        name: format!("child {place}"),
        code: ChildScheduler::new(NodeId::new(place, 0), cpu.threads.len(), policy),
    };
    CpuInput {
        host: test_cpu(),
        name: "0".to_owned(),
        shard: cpu.build(AnyPolicy::new).expect("a valid system"),
        sink,
        threads: (0..).zip(bodies).map(thread).collect(),
        children: own_time.zip(children).map(child).collect(),
        resources: system.resources.iter().map(|r| r.name.clone()).collect(),
        arrivals: Vec::new(),
        plan: Plan::default(),
    }
}

/// A system of one CPU under fixed priorities.
pub fn one_cpu(tasks: Vec<Task>) -> System {
    System {
        cpus: vec![Cpu {
            name: "0".to_owned(),
            host: None,
            policy: PolicyKind::FixedPriority { preemptive: true },
        }],
        tasks,
        ..System::default()
    }
}
