//! Decisions of the core alone: events into a shard, with an instant each, and nothing around it.
//!
//! `core.yield.tree.D` is a yield among two threads of a scheduler D levels below the CPU's own;
//! `core.wake.tree.D` and `core.block.tree.D` are of two threads whose closest common scheduler is
//! D levels above theirs. Every level pays from a server.

use punctual_kern::{Decision, Event, Next, NoSink, Shard, Sink};
use punctual_model::{
    Class, Cpu, CpuId, Frequency, Instant, Ns, PolicyKind, Priority, Scheduler, SchedulerId,
    Server, ServerKind, Span, Supply, System, Task, ThreadId, Trust,
};
use punctual_policy::AnyPolicy;
use punctual_tables::Tables;
use punctual_trace::Recorder;

use crate::scenario::{Reading, Scenario};
use crate::stepper::{NONE, begin, mark};

/// The policies that are counted.
pub(crate) const POLICIES: [(&str, PolicyKind<Ns>); 2] = [
    (
        "fixed_priority",
        PolicyKind::FixedPriority { preemptive: true },
    ),
    ("edf", PolicyKind::EarliestDeadlineFirst),
];

/// Beyond any count.
pub(crate) const LONG: Span<Ns> = Span::from_ms(3_600_000);

/// Between two releases of the thread whose releases are counted.
const PERIOD: Span<Ns> = Span::from_us(100);

/// Levels of the trees that are counted.
const LEVELS: [u16; 4] = [1, 2, 4, 8];

/// Repetitions before the first window: queues and caches are as they stay.
const WARM_UP: u64 = 64;
const WINDOWS: usize = 6;

/// Room for the record.
pub(crate) const RECORD_BYTES: usize = 4 << 20;

pub(crate) fn scenarios() -> Vec<Scenario> {
    let mut all = trees();
    for (name, policy) in POLICIES {
        for threads in [2, 32, 1_000] {
            let of = |operations: &[&str], program: Program| {
                let row = |operation: &&str| format!("core.{operation}.{name}.{threads}");
                Scenario {
                    rows: operations.iter().map(row).collect(),
                    reading: Reading::Mean,
                    windows: operations.len() * WINDOWS,
                    program: Box::new(move || program(policy, threads)),
                }
            };
            all.push(of(&["yield"], |policy, threads| {
                yields(shard(policy, equals(threads))?, NoSink)
            }));
            all.push(of(&["yield_recorded"], |policy, threads| {
                yields(shard(policy, equals(threads))?, recorder()?)
            }));
            all.push(of(&["wake", "block"], |policy, threads| {
                let pair = [endless(threads + 1), endless(threads)];
                let tasks = pair.into_iter().chain(less_urgent(threads - 2));
                wakes(shard(policy, tasks.collect())?)
            }));
            all.push(of(&["release", "complete", "timer"], releases));
            all.push(of(&["block_on", "hand_over"], hand_overs));
        }
    }
    all
}

/// The same in trees of schedulers.
fn trees() -> Vec<Scenario> {
    let of = |operations: &[&str], levels: u16, program: fn(u16) -> Result<(), String>| Scenario {
        rows: operations
            .iter()
            .map(|operation| format!("core.{operation}.tree.{levels}"))
            .collect(),
        reading: Reading::Mean,
        windows: operations.len() * WINDOWS,
        program: Box::new(move || program(levels)),
    };
    let rows = |levels: u16| {
        [
            of(&["yield"], levels, |levels| {
                yields(tree(levels, &[equals(2)])?, NoSink)
            }),
            of(&["yield_recorded"], levels, |levels| {
                yields(tree(levels, &[equals(2)])?, recorder()?)
            }),
            of(&["wake", "block"], levels, |levels| {
                wakes(tree(levels, &[vec![endless(2)], vec![endless(1)]])?)
            }),
        ]
    };
    LEVELS.into_iter().flat_map(rows).collect()
}

/// Repeats operations of so many threads under a policy.
type Program = fn(PolicyKind<Ns>, u32) -> Result<(), String>;

pub(crate) fn recorder() -> Result<Recorder, String> {
    Recorder::with_capacity(RECORD_BYTES).map_err(|error| error.to_string())
}

/// A task with one job, which has come and whose budget nothing exhausts. A larger number is more
/// urgent, by priority and by deadline.
pub(crate) fn endless(urgency: u32) -> Task {
    let deadline = LONG.as_ns() / 2 - u64::from(urgency) * 1_000_000;
    task(urgency, LONG, Span::from_ns(deadline))
}

fn task(urgency: u32, period: Span<Ns>, relative_deadline: Span<Ns>) -> Task {
    let class = Class::Periodic {
        period,
        wcet: relative_deadline.as_work(),
        relative_deadline,
    };
    let mut task = Task::new("", CpuId(0), class);
    task.priority = Priority::new(urgency);
    task
}

/// Tasks that are less urgent than those which are counted, in no particular order, so that queues
/// have work to do.
fn less_urgent(count: u32) -> impl Iterator<Item = Task> {
    (0..count).map(move |index| endless(index.wrapping_mul(2_654_435_761) % count))
}

/// Tasks of one urgency.
pub(crate) fn equals(count: u32) -> Vec<Task> {
    (0..count).map(|_| endless(1)).collect()
}

/// The shard of one CPU with these tasks.
pub(crate) fn shard(policy: PolicyKind<Ns>, tasks: Vec<Task>) -> Result<Shard<AnyPolicy>, String> {
    shard_of(System {
        cpus: vec![cpu(policy)],
        tasks,
        ..System::default()
    })
}

pub(crate) fn cpu(policy: PolicyKind<Ns>) -> Cpu {
    Cpu {
        name: "0".to_owned(),
        host: None,
        policy,
    }
}

/// Branches of so many schedulers, one below the other, with these tasks at the end of each; the
/// first branch is the most urgent. All order by priority, and each pays from a server.
fn tree(levels: u16, branches: &[Vec<Task>]) -> Result<Shard<AnyPolicy>, String> {
    let policy = PolicyKind::FixedPriority { preemptive: true };
    let mut system = System {
        cpus: vec![cpu(policy)],
        ..System::default()
    };
    let mut urgency = 100;
    for tasks in branches {
        urgency -= 1;
        let mut home = None;
        for level in 0..levels {
            system.schedulers.push(Scheduler {
                name: format!("{urgency}.{level}"),
                cpu: CpuId(0),
                parent: home,
                policy,
                priority: Priority::new(urgency),
                supply: Supply::Server(Server {
                    kind: ServerKind::Deferrable,
                    budget: LONG.as_work(),
                    period: LONG,
                }),
                trust: Trust::Inline,
                quota: None,
                fallback: None,
                code: None,
                receiver: None,
            });
            let last = u16::try_from(system.schedulers.len() - 1);
            home = Some(SchedulerId(last.map_err(|error| error.to_string())?));
        }
        system.tasks.extend(tasks.iter().map(|task| Task {
            scheduler: home,
            ..task.clone()
        }));
    }
    shard_of(system)
}

pub(crate) fn shard_of(system: System) -> Result<Shard<AnyPolicy>, String> {
    let mut tables = Tables::new(&system, Frequency::NANOSECONDS);
    tables.set_duration(&system, LONG);
    let cpu = tables.cpus.pop().ok_or("no CPU")?;
    let shard = cpu.build(AnyPolicy::new);
    shard.map_err(|error| error.to_string())
}

/// A shard with its sink and a clock.
pub(crate) struct Core<S> {
    pub(crate) shard: Shard<AnyPolicy>,
    sink: S,
    pub(crate) now: Instant,
}

impl<S: Sink> Core<S> {
    /// All that is due at the start has been released.
    pub(crate) fn new(shard: Shard<AnyPolicy>, sink: S) -> Core<S> {
        let now = Instant::ZERO;
        let mut core = Core { shard, sink, now };
        for _ in 0..=core.shard.places() {
            let _ = core.enter(1, Event::Tick);
        }
        core
    }

    /// The event comes so many ticks after the one before.
    #[inline(always)]
    pub(crate) fn enter(&mut self, ticks: u64, event: Event) -> Decision {
        self.now = self.now.saturating_add(Span::from_ticks(ticks));
        self.shard.handle(self.now, event, &mut self.sink)
    }

    /// The decision must be that this thread runs; else the operation is not what its row says.
    fn expect(&self, thread: ThreadId, decision: &Decision) -> Result<(), String> {
        match decision.next == Next::Thread(thread) && decision.refused.is_none() {
            true => Ok(()),
            false => Err(format!("{decision:?}, not {thread:?}")),
        }
    }
}

/// A yield among equals.
fn yields<S: Sink>(shard: Shard<AnyPolicy>, sink: S) -> Result<(), String> {
    let mut core = Core::new(shard, sink);
    let threads = core.shard.places() as u64;
    for count in 0.. {
        let before = core.shard.running();
        if count == WARM_UP + threads {
            begin();
        }
        mark(0);
        let decision = core.enter(50, Event::Yield);
        mark(NONE);
        if before == core.shard.running() {
            return Err(format!("{before:?} goes on after its yield: {decision:?}"));
        }
    }
    Ok(())
}

/// The second thread wakes the first, which is more urgent and blocks again; all others are ready
/// and less urgent.
fn wakes(shard: Shard<AnyPolicy>) -> Result<(), String> {
    let mut core = Core::new(shard, NoSink);
    let (urgent, waking) = (ThreadId::new(0, 0), ThreadId::new(1, 0));
    let blocked = core.enter(1, Event::Block { until: None });
    core.expect(waking, &blocked)?;
    for count in 0.. {
        if count == WARM_UP {
            begin();
        }
        mark(0);
        let woken = core.enter(50, Event::Wake(urgent));
        mark(1);
        let blocked = core.enter(50, Event::Block { until: None });
        mark(NONE);
        core.expect(urgent, &woken)?;
        core.expect(waking, &blocked)?;
    }
    Ok(())
}

/// A more urgent thread is woken, waits for a lock of the runtime, is handed it, and waits again;
/// the second and third of these are counted.
fn hand_overs(policy: PolicyKind<Ns>, threads: u32) -> Result<(), String> {
    let pair = [endless(threads + 1), endless(threads)];
    let tasks = pair.into_iter().chain(less_urgent(threads - 2));
    let mut core = Core::new(shard(policy, tasks.collect())?, NoSink);
    let (urgent, holder) = (ThreadId::new(0, 0), ThreadId::new(1, 0));
    let (key, until) = (7, None);
    for count in 0.. {
        let blocked = core.enter(50, Event::Block { until });
        core.expect(holder, &blocked)?;
        let woken = core.enter(50, Event::Wake(urgent));
        core.expect(urgent, &woken)?;
        if count == WARM_UP {
            begin();
        }
        mark(0);
        let lent = core.enter(50, Event::BlockOn { holder, key, until });
        mark(1);
        let (from, to) = (holder, urgent);
        let handed = core.enter(50, Event::HandOver { key, from, to });
        mark(NONE);
        core.expect(holder, &lent)?;
        core.expect(urgent, &handed)?;
    }
    Ok(())
}

/// A periodic thread preempts one of many that are ready, and completes; then an entry of the timer
/// finds nothing due.
fn releases(policy: PolicyKind<Ns>, threads: u32) -> Result<(), String> {
    let pair = [task(threads + 1, PERIOD, PERIOD), endless(threads)];
    let tasks = pair.into_iter().chain(less_urgent(threads - 2));
    let mut core = Core::new(shard(policy, tasks.collect())?, NoSink);
    let (periodic, other) = (ThreadId::new(0, 0), ThreadId::new(1, 0));
    let first = core.enter(1, Event::Complete);
    core.expect(other, &first)?;
    for count in 1.. {
        if count == WARM_UP {
            begin();
        }
        let release = Instant::from_ticks(count * PERIOD.as_ns());
        let wait = release.since(core.now).ticks();
        mark(0);
        let released = core.enter(wait, Event::Tick);
        mark(1);
        let completed = core.enter(50, Event::Complete);
        mark(2);
        let ticked = core.enter(50, Event::Tick);
        mark(NONE);
        core.expect(periodic, &released)?;
        core.expect(other, &completed)?;
        core.expect(other, &ticked)?;
    }
    Ok(())
}
