//! Systems in a few words, and a sink that keeps what tests ask about.

use punctual_kern::{
    Decision, Entry, Event, NoSink, Outcome as JobOutcome, Sink, TraceEvent, Uncharged,
};
use punctual_model::{
    Class, Cpu, CpuId, Frequency, Instant, Ns, PolicyKind, Priority, Span, System, Task, Work,
};
use punctual_policy::AnyPolicy;
use punctual_sim::{CpuInput, Faults, Observer, Options, Outcome, prepare, run};
use punctual_tables::Tables;

/// A system of `cpus` CPUs under `policy` without tasks.
pub(crate) fn system(cpus: usize, policy: PolicyKind<Ns>) -> System {
    let cpu = |i: usize| Cpu {
        name: i.to_string(),
        host: None,
        policy,
    };
    System {
        cpus: (0..cpus).map(cpu).collect(),
        ..System::default()
    }
}

/// A periodic task on CPU 0: (wcet, period, deadline), urgency by the order of calls.
pub(crate) fn periodic(name: &str, wcet: u64, period: u64, deadline: u64) -> Task {
    let class = Class::Periodic {
        period: Span::from_ns(period),
        wcet: Work::from_ns(wcet),
        relative_deadline: Span::from_ns(deadline),
    };
    Task::new(name, CpuId(0), class)
}

/// Priorities by the order in the list, the first the most urgent.
pub(crate) fn in_order_of_urgency(mut tasks: Vec<Task>) -> Vec<Task> {
    let n = u32::try_from(tasks.len()).expect("few tasks");
    for (i, task) in (0_u32..).zip(&mut tasks) {
        task.priority = Priority::new(n - i);
    }
    tasks
}

/// Everything of one CPU, in order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Tape {
    pub(crate) events: Vec<(Instant, Event)>,
    /// The missing time of each entry.
    pub(crate) missing: Vec<Uncharged>,
    pub(crate) trace: Vec<(Instant, TraceEvent)>,
    pub(crate) decisions: Vec<(Instant, Decision)>,
}

impl Sink for Tape {
    fn begin(&mut self, entry: &Entry<'_>) {
        self.events.push((entry.now, *entry.event));
        self.missing.push(entry.missing);
    }
    fn trace(&mut self, now: Instant, event: TraceEvent) {
        self.trace.push((now, event));
    }
    fn decision(&mut self, now: Instant, decision: &Decision) {
        self.decisions.push((now, *decision));
    }
}

impl Tape {
    /// Responses of the completed jobs of a thread, in ticks.
    pub(crate) fn responses(&self, index: usize) -> Vec<u64> {
        let response = |(now, event): &(Instant, TraceEvent)| match event {
            TraceEvent::Completed {
                thread,
                arrival,
                outcome: JobOutcome::Done,
                ..
            } if thread.index() == index => Some(now.since(*arrival).ticks()),
            _ => None,
        };
        self.trace.iter().filter_map(response).collect()
    }

    pub(crate) fn count(&self, wanted: impl Fn(&TraceEvent) -> bool) -> usize {
        self.trace.iter().filter(|(_, event)| wanted(event)).count()
    }

    /// Who runs from when: thread index, or none.
    pub(crate) fn lane(&self) -> Vec<(u64, Option<usize>)> {
        let switch = |(now, event): &(Instant, TraceEvent)| match event {
            TraceEvent::Switched { to, .. } => Some((now.ticks(), to.map(|id| id.index()))),
            _ => None,
        };
        self.trace.iter().filter_map(switch).collect()
    }
}

pub(crate) fn simulate(system: &System, duration: u64, faults: Faults, seed: u64) -> Outcome<Tape> {
    simulate_watched(system, duration, faults, seed, &mut ())
}

pub(crate) fn simulate_watched(
    system: &System,
    duration: u64,
    faults: Faults,
    seed: u64,
    observer: &mut impl Observer,
) -> Outcome<Tape> {
    let duration = Span::from_ns(duration);
    let mut tables = Tables::new(system, Frequency::NANOSECONDS);
    tables.set_duration(system, duration);
    prepare(system, &mut tables, &faults);
    let input = |cpu: &punctual_tables::CpuTables| CpuInput {
        shard: cpu.build(AnyPolicy::new).expect("valid tables"),
        sink: Tape::default(),
    };
    let inputs = tables.cpus.iter().map(input).collect();
    let options = Options {
        duration,
        seed,
        faults,
        plans: Vec::new(),
    };
    let outcome = run(system, &tables, inputs, &options, observer).expect("a valid system");
    for (tape, cpu) in outcome.cpus.iter().zip(&tables.cpus) {
        replays(&tape.sink, cpu);
    }
    outcome
}

/// Feeds the taped events through a new shard: the decisions must be the taped ones.
fn replays(tape: &Tape, tables: &punctual_tables::CpuTables) {
    let mut shard = tables.build(AnyPolicy::new).expect("built before");
    let entries = tape.events.iter().zip(&tape.missing);
    for (((now, event), missing), (_, decision)) in entries.zip(&tape.decisions) {
        let entry = Entry {
            missing: *missing,
            ..Entry::at(*now, event)
        };
        assert_eq!(shard.handle_entry(&entry, &mut NoSink), *decision);
    }
}
