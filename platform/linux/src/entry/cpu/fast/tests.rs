//! The fast path through an entry of the platform leads where the slow one leads.
//!
//! Two CPUs that no kernel thread carries get the same entries at instants of the test's own: one
//! may take the fast path, the other never does. Their clock stands before its origin, so nothing
//! but the entry's own instant says what time it is.

mod begin;
mod flags;
mod histories;
mod timer;

use core::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use io_uring::opcode;
use io_uring::types::Timespec;
use punctual_generate::Dice;
use punctual_kern::{
    Capacity, Ceiling, Constraint, Decision, Entry, Event, Front, JobStamp, Message, Refusal,
    Shard, Sink, SlotTerms, TraceEvent, Tree, Uncharged,
};
use punctual_linux_io::{Operation, Origin, Ring};
use punctual_model::{
    Class, CpuId, Frequency, Instant, Late, PolicyKind, Priority, Span, Task, ThreadId, Work,
};
use punctual_policy::AnyPolicy;
use punctual_switch::instructions::read_thread_pointer;
use punctual_switch::{Control, DispatchRecord};

use crate::entry::cpu::{Core, Cpu, by_policy};
use crate::entry::end::End;
use crate::entry::give_back::Owed;
use crate::entry::request::{open_gate, promise};
use crate::measure::overhead::{Short, short_run};
use crate::record::body::Body;
use crate::record::input::{GiveBack, RunOptions};
use crate::record::light::Light;
use crate::record::limits::LOOK_NS;
use crate::record::local::current_light;
use crate::record::outcome::CpuCounters;
use crate::record::per_cpu::{PerCpu, Reason, Shared};
use crate::record::post::Post;
use crate::record::text::LibraryText;
use crate::record::thread_group::ThreadGroup;
use crate::run::life::{end_run, main};
use crate::storage::stack::Stack;
use crate::storage::tls::{Library, Storage};
use crate::sys::program::Standing;
use crate::sys::{self, SwitchWatch};
use crate::time::clock::{Clock, clock_rate};
use crate::wait::job;
use crate::wait::notify::Notify;

/// Everything that a core tells.
#[derive(Default, PartialEq, Debug)]
struct Told {
    events: Vec<(Instant, Uncharged, Event)>,
    traces: Vec<(Instant, TraceEvent)>,
    decisions: Vec<(Instant, Decision)>,
}

impl Sink for Told {
    fn begin(&mut self, entry: &Entry<'_>) {
        self.events.push((entry.now, entry.missing, *entry.event));
    }
    fn trace(&mut self, now: Instant, event: TraceEvent) {
        self.traces.push((now, event));
    }
    fn decision(&mut self, now: Instant, decision: &Decision) {
        self.decisions.push((now, *decision));
    }
}

const THREADS: u32 = 6;

/// A CPU that nobody carries; entries are made by hand.
struct Bench {
    cpu: Box<Cpu<AnyPolicy, Told>>,
    #[allow(clippy::vec_box)] // The CPU has their addresses.
    lights: Vec<Box<Light>>,
    /// How many yields, wake-ups, waits, waits for a lock and hand-overs took the shortest way.
    turns: [u32; 5],
    /// How many creations and ends of threads did.
    births: u32,
    /// How many of those it followed to the next thread.
    followed: u32,
}

/// A kernel thread ignores it unless it says otherwise: nobody is to be interrupted here.
const IGNORED: i32 = libc::SIGURG;

fn at(ticks: u64) -> Instant {
    Instant::from_ticks(ticks)
}

fn host() -> PerCpu {
    let clock = Clock::starting_in(clock_rate(), 3_600_000_000_000);
    assert_eq!(clock.now(), Instant::ZERO);
    let shared = Shared::new(
        Post::new(1, IGNORED),
        1,
        Arc::default(),
        (Origin::of_caller(&[]), None),
    );
    PerCpu::new(
        0,
        by_policy::<AnyPolicy, Told, false, true>(),
        clock,
        Arc::new(shared),
        LibraryText::find(),
        sys::Timer::try_new(IGNORED).expect("a timer"),
        (SwitchWatch::of_nobody(), sys::SwitchLog::of_nobody()),
        DispatchRecord::running(read_thread_pointer(), Control::Kept),
        Vec::new(),
    )
}

/// The halves of a frame, for the first two threads.
fn halves(kind: PolicyKind) -> Vec<SlotTerms> {
    let PolicyKind::Tdm { frame, .. } = kind else {
        return Vec::new();
    };
    let length = Span::from_ticks(frame.ticks() / 2);
    let half = |entity: u32| SlotTerms {
        node: 0,
        entity,
        at: Span::from_ticks(u64::from(entity) * length.ticks()),
        length,
    };
    [0, 1].map(half).into()
}

impl Bench {
    fn new(kind: PolicyKind, constraints: &[Constraint], feeds: &Feeds) -> Bench {
        let mut capacity = Capacity::for_threads(THREADS as usize);
        capacity.background_turn = Span::from_ticks(40_000);
        capacity.grace = Work::from_ticks(100);
        capacity.entry = Work::from_ticks(50);
        let policy = AnyPolicy::new(kind, capacity.entities(), &halves(kind));
        let mut shard = Shard::new(Tree::new(capacity, policy));
        let attach = |constraint: &Constraint| shard.attach(*constraint).expect("a valid one");
        let ids: Vec<ThreadId> = constraints.iter().map(attach).collect();
        let arrivals = feeds.arrivals.clone();
        let mut core = Core::new(shard, Told::default(), arrivals, &RunOptions::default());
        core.owed = feeds.owed;
        core.end = feeds.end;
        core.shard.set_horizon(feeds.end.horizon);
        let cpu = Cpu::new(host(), core);
        cpu.host.gate.close();
        let library = Library::find().expect("glibc");
        let light = |id: &ThreadId| {
            let stack = Stack::try_new(16 * 1024).expect("memory");
            let storage = Storage::try_new(library).expect("memory");
            Light::new(
                &raw const cpu.host,
                *id,
                "",
                None,
                stack,
                storage,
                library,
                main,
            )
        };
        let lights: Vec<Box<Light>> = ids.iter().map(light).collect();
        for light in &lights {
            // SAFETY: nobody else knows the core.
            unsafe { (*cpu.core()).set_thread(light) };
        }
        Bench {
            cpu,
            lights,
            turns: [0; 5],
            births: 0,
            followed: 0,
        }
    }

    fn core(&mut self) -> &mut Core<AnyPolicy, Told> {
        // SAFETY: nobody else knows the core, and `self` is borrowed as long as it is.
        unsafe { &mut *self.cpu.core() }
    }

    /// One entry; `None`: it was to take the fast path, which is closed.
    fn enter(&mut self, now: Instant, event: Event, fast: bool) -> Option<()> {
        let host = &raw const self.cpu.host;
        // SAFETY: the host lives as long as `self`, and only cells and atomics of it are changed.
        let host = unsafe { &*host };
        // As `complete` does.
        if event == Event::Complete {
            host.end_budget();
        }
        let running = host.current.get();
        let target = match (fast, event) {
            // As `preempt` does.
            (true, Event::Tick) => {
                let target = self.core().step_due(host, now);
                target.or_else(|| self.core().step_fast(host, now, &event))?
            }
            // As `birth` does.
            (true, Event::Create(_) | Event::Exit) => self.enter_birth(host, now, &event)?,
            (true, _) => self.enter_front(host, now, &event)?,
            (false, _) => self.core().step_slowly(host, now, event, None),
        };
        host.current.set(target);
        // Its record waits for the next that is created.
        if event == Event::Exit {
            host.pool.spawning.set(running);
        }
        // As the carrier does.
        if target.is_null() {
            host.disarm_stale();
        }
        Some(())
    }

    /// As `birth` does.
    fn enter_birth(&mut self, host: &PerCpu, now: Instant, event: &Event) -> Option<*const Light> {
        let core = self.core();
        let interval = core.fast_interval(host, now)?;
        let front = core.birth_front(host, now, event);
        let Front::Turn(turn) = front else {
            return core.step_birth(host, now, event, (interval, front));
        };
        interval.0.tell(None);
        let to = core.take_turn(host, now, interval, turn);
        self.births += 1;
        match to {
            Some(to) => Some(to),
            None => Some(self.core().end_turn(host, now, turn.next, turn.arm)),
        }
    }

    /// As `enter_front` does, which `give_way`, `wake`, `block`, `wait_for` and `hand` call.
    fn enter_front(&mut self, host: &PerCpu, now: Instant, event: &Event) -> Option<*const Light> {
        let core = self.core();
        let is_any = !matches!(
            event,
            Event::Yield
                | Event::Wake(_)
                | Event::Block { until: None }
                | Event::BlockOn { until: None, .. }
                | Event::HandOver { .. }
        );
        // SAFETY: lights live as long as `self`.
        let light = unsafe { host.current.get().as_ref() }?;
        if is_any || !light.is_plain() {
            return core.step_fast(host, now, event);
        }
        let executed = core.plain_interval(host, light, now.ticks())?;
        let interval = (light, executed);
        let (shard, sink) = (&mut core.shard, &mut core.sink);
        let (kind, front) = match *event {
            Event::Yield => (0, shard.yield_front(now, sink)),
            Event::Wake(other) => (1, shard.wake_front(now, other, sink)),
            Event::Block { until: None } => (2, shard.block_front(now, sink)),
            Event::BlockOn { holder, key, until } if until.is_none() => {
                (3, shard.wait_front(now, (holder, key), sink))
            }
            Event::HandOver { key, from, to } => (4, shard.hand_front(now, (key, from, to), sink)),
            _ => return core.step_fast(host, now, event),
        };
        let Front::Turn(turn) = front else {
            return core.step_behind(host, now, event, (interval, front));
        };
        let to = core.take_turn(host, now, interval, turn);
        self.turns[kind] += 1;
        self.followed += u32::from(to.is_some());
        match to {
            Some(to) => Some(to),
            None => Some(self.core().end_turn(host, now, turn.next, turn.arm)),
        }
    }

    /// The timer's signal comes, if it stands for an instant that is over.
    fn signal(&self, now: Instant) {
        let host = &self.cpu.host;
        if host.fires_at().is_some_and(|at| at <= now) {
            let _ = host.timer_fired();
            host.arrived.set(Some(now));
        }
    }

    /// The running thread, until when it runs, and the counters.
    fn state(&self) -> State {
        let host = &self.cpu.host;
        // SAFETY: lights live as long as `self`.
        let runs = unsafe { host.current.get().as_ref() };
        let counters = host.counters.get();
        State {
            runs: runs.map(Light::id),
            reason: runs.is_none().then(|| host.reason.get()),
            armed: host.armed_for(),
            entries: host.entries.load(Ordering::Relaxed),
            last_entry: host.last_entry.load(Ordering::Relaxed),
            executed: runs.map(|light| light.executed.load(Ordering::Relaxed)),
            stop: runs.map(|light| light.stop.load(Ordering::Relaxed)),
            job: runs.and_then(|light| light.job.get()).map(|job| job.index),
            refused: self
                .lights
                .iter()
                .map(|light| light.refused.get())
                .collect(),
            counters,
        }
    }
}

#[derive(PartialEq, Debug)]
struct State {
    runs: Option<ThreadId>,
    reason: Option<Reason>,
    armed: Option<Instant>,
    entries: u64,
    last_entry: u64,
    executed: Option<u64>,
    stop: Option<bool>,
    job: Option<u64>,
    /// The answer that each thread would read about its last request.
    refused: Vec<Option<Refusal>>,
    counters: CpuCounters,
}

/// The work that the platform has of its own.
struct Feeds {
    arrivals: Vec<(Instant, ThreadId)>,
    owed: Option<Owed>,
    end: End,
}

impl Feeds {
    fn nothing() -> Feeds {
        let (horizon, limit) = (Instant::MAX, Instant::MAX);
        Feeds {
            arrivals: Vec::new(),
            owed: None,
            end: End { horizon, limit },
        }
    }

    fn random(dice: &mut Dice) -> Feeds {
        let end = 2_000_000 + dice.below(1_000_000);
        let mut arrivals: Vec<(Instant, ThreadId)> = (0..dice.below(40))
            .map(|_| (at(dice.below(end)), ThreadId::new(0, 0)))
            .collect();
        arrivals.sort_unstable_by_key(|(arrival, _)| *arrival);
        let how = match dice.below(3) {
            0 => GiveBack::Nothing,
            1 => GiveBack::Holes,
            _ => GiveBack::Slices { every_ns: 160_000 },
        };
        let due = at(dice.below(end));
        let mut owed = Owed::new(how, &host().clock());
        if let Some(owed) = &mut owed {
            owed.due = due;
        }
        let (horizon, limit) = (at(end), at(end + 200_000));
        Feeds {
            arrivals,
            owed,
            end: End { horizon, limit },
        }
    }
}

fn constraint(dice: &mut Dice, order: u32) -> Constraint {
    let period = 50_000 + dice.below(300_000);
    let work = Work::from_ns(5_000 + dice.below(period / 3));
    let span = Span::from_ns(period);
    let class = match dice.below(4) {
        // The first one is fed by the platform.
        _ if order == 0 => Class::Sporadic {
            min_separation: span,
            wcet: work,
            relative_deadline: span,
        },
        0 => Class::Aperiodic,
        1 => Class::Reservation {
            period: span,
            slice: work,
        },
        _ => Class::Periodic {
            period: span,
            wcet: work,
            relative_deadline: span,
        },
    };
    let mut task = Task::new("any", CpuId(0), class);
    task.priority = Priority::new(dice.small(5));
    task.phase = Span::from_ns(dice.below(100_000));
    if dice.below(2) == 0 {
        task.late = Late::Skip;
    }
    Constraint::of_task(&task, order).in_ticks(Frequency::NANOSECONDS)
}

/// The disturbance that makes an entry ask the kernel for the time of this thread, which is no time
/// of the test: in histories it does not occur.
const AWAY: u64 = 100;

/// Something that an entry has to look into, whatever was due: as signals and other CPUs leave it.
fn disturb(bench: &mut Bench, what: u64, now: Instant, amount: u64) {
    let host = &bench.cpu.host;
    // SAFETY: lights live as long as the bench.
    let running = unsafe { host.current.get().as_ref() };
    match what {
        0 => host.gate.note_pending(),
        1 => host.note_missing(amount),
        2 => {
            let _ = host.defer(now);
        }
        // Nobody carries this CPU, so nobody is signalled.
        3 => host.shared.post.kick(0),
        4 => {
            let (to, slot, frontier) = (CpuId(0), 0, amount);
            assert!(host.shared.post.send(0, Message { to, slot, frontier }));
        }
        5 => {
            if let Some(light) = running {
                let ceiling = Ceiling {
                    priority: Priority::new(u32::try_from(amount % 5).expect("small")),
                    absolute_deadline: now.saturating_add(Span::from_ticks(amount)),
                };
                let _ = light.set_ceiling(Some(ceiling));
            }
        }
        6 => {
            if let Some(light) = running {
                let _ = light.set_ceiling(None);
            }
        }
        7 => host.wake_also(running.map_or(core::ptr::null(), |l| l)),
        8 => Notify::made_on(host).notify_from(host),
        AWAY => host.watch.pretend(),
        _ => {}
    }
}

const POLICIES: [PolicyKind; 4] = [
    PolicyKind::FixedPriority { preemptive: true },
    PolicyKind::FixedPriority { preemptive: false },
    PolicyKind::EarliestDeadlineFirst,
    PolicyKind::Fifo,
];

/// A CPU on which an endless thread runs, and nothing is due.
fn on_the_fast_path() -> Bench {
    let task = Task::new("any", CpuId(0), Class::Aperiodic);
    let constraints = [Constraint::of_task(&task, 0).in_ticks(Frequency::NANOSECONDS)];
    let mut bench = Bench::new(POLICIES[0], &constraints, &Feeds::nothing());
    assert_eq!(bench.enter(at(1), Event::Tick, true), None, "nothing armed");
    assert!(bench.enter(at(1), Event::Tick, false).is_some());
    bench
}

#[test]
fn whatever_comes_up_between_two_entries_closes_the_fast_path() {
    assert_eq!(on_the_fast_path().enter(at(2), Event::Tick, true), Some(()));
    assert_eq!(on_the_fast_path().enter(at(2), Event::Exit, true), Some(()));
    for what in [0, 1, 2, 3, 4, 5, 7, 8, AWAY] {
        let mut bench = on_the_fast_path();
        disturb(&mut bench, what, at(2), 1);
        let ended = bench.enter(at(2), Event::Exit, true);
        assert_eq!(ended, None, "its end after disturbance {what}");
        let taken = bench.enter(at(2), Event::Tick, true);
        assert_eq!(taken, None, "after disturbance {what}");
        assert!(bench.enter(at(2), Event::Tick, false).is_some());
        // The slow path has looked into it; a note that stayed would be served again and again.
        let next = bench.enter(at(3), Event::Tick, true);
        assert_eq!(next, Some(()), "after disturbance {what}");
    }
}

#[test]
fn a_thread_group_at_work_a_timer_that_is_not_set_or_due_and_a_long_interval_close_the_fast_path() {
    let mut bench = on_the_fast_path();
    // SAFETY: lights live as long as the bench.
    let light = unsafe { bench.cpu.host.current.get().as_ref() }.expect("it runs");
    let group: &'static ThreadGroup = Box::leak(Box::new(ThreadGroup::new(0, Standing::Idle)));
    light.set_group(Some(group));
    assert_eq!(bench.enter(at(2), Event::Tick, true), None);
    light.set_group(None);
    assert_eq!(bench.enter(at(2), Event::Tick, true), Some(()));
    let suspicious = bench.cpu.host.limits.suspicious;
    assert_eq!(bench.enter(at(2 + suspicious), Event::Tick, true), None);
    let armed = bench.cpu.host.armed_for().expect("somebody runs");
    assert_eq!(bench.enter(armed, Event::Tick, true), None);
    let _ = bench.cpu.host.timer_fired();
    assert_eq!(bench.enter(at(3), Event::Tick, true), None);
    assert_eq!(bench.enter(at(3), Event::Exit, true), None);
}

#[test]
fn a_thread_that_runs_on_is_looked_at_as_often_as_was_asked_for() {
    for ns in [1_000_000, 300_000, LOOK_NS] {
        let mut bench = on_the_fast_path();
        let clock = bench.cpu.host.clock();
        bench.cpu.host.limits.sample(&clock, ns);
        let _ = bench.cpu.host.timer_fired();
        bench.enter(at(5), Event::Tick, false);
        let armed = bench.cpu.host.armed_for().expect("somebody runs");
        assert!(armed <= at(5 + clock.ticks(ns)), "{ns}: {armed:?}");
        // The fast path leaves the timer as it is.
        assert_eq!(bench.enter(at(6), Event::Tick, true), Some(()));
        assert_eq!(bench.cpu.host.armed_for(), Some(armed));
    }
}

#[test]
fn both_ways_through_an_entry_say_when_a_thread_that_promised_checkpoints_is_to_come() {
    for fast in [true, false] {
        let mut bench = on_the_fast_path();
        // SAFETY: lights live as long as the bench.
        let light = unsafe { bench.cpu.host.current.get().as_ref() }.expect("it runs");
        light.promise.store(1_000, Ordering::Relaxed);
        light.due.store(0, Ordering::Relaxed);
        assert_eq!(bench.enter(at(2), Event::Tick, fast), Some(()));
        let due = light.due.load(Ordering::Relaxed);
        // Nothing is due: it is looked at, whether the run is to end.
        let look = bench.cpu.host.limits.look;
        assert_eq!(at(due), at(if fast { 1 } else { 2 }).saturating_add(look));
        // Entries of the fast path do not put that off, though they set the timer again. The timer
        // from before the promise may stand a tick before `due`: an entry then is the slow path's.
        let timer = bench.cpu.host.armed_for().expect("somebody runs").ticks();
        let step = usize::try_from(bench.cpu.host.limits.suspicious / 2).expect("small");
        for now in (2..due.min(timer)).step_by(step).skip(1) {
            assert_eq!(bench.enter(at(now), Event::Tick, true), Some(()));
            let armed = bench.cpu.host.armed_for().expect("somebody runs");
            assert!(armed > at(now) && armed.ticks() <= due + 1_000);
        }
        assert_eq!(bench.enter(at(due), Event::Tick, true), None);
    }
}

#[test]
fn a_blocking_call_on_its_way_closes_the_fast_path() {
    let mut bench = on_the_fast_path();
    let cpu = sys::allowed_cpus().expect("known").pop().expect("one");
    let Ok(mut ring) = Ring::try_new(cpu) else {
        return; // This kernel has no such ring, and no call is ever on its way.
    };
    let operation = Box::leak(Box::new(Operation::new()));
    let hour = Box::leak(Box::new(Timespec::new().sec(3_600)));
    let entry = opcode::Timeout::new(&raw const *hour).build();
    // SAFETY: what they name is never freed.
    assert!(unsafe { ring.start(entry, operation) });
    // SAFETY: nobody else looks at the ring.
    unsafe { *bench.cpu.host.ring.get() = Some(ring) };
    bench.cpu.host.disturb();
    assert_eq!(bench.enter(at(2), Event::Tick, true), None);
    assert!(bench.enter(at(2), Event::Tick, false).is_some());
    assert_eq!(bench.enter(at(3), Event::Tick, true), None);
}
