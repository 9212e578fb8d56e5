//! One CPU's scheduler on this platform: an entry takes the time, feeds the core, finds the target.
//!
//! An entry happens with the gate closed, on the stack of whoever was running. It borrows the core,
//! takes the decision, ends the borrow, and only then switches (rule of the house: decide, return a
//! value, act at the edge).

mod begin;
mod birth;
mod change;
mod enter;
mod fast;

use core::any::Any;
use core::cell::UnsafeCell;
use core::sync::atomic::Ordering;

use punctual_kern::{
    Decision, Entry, Event, Message, Next, NodeId, Plan, Policy, Shard, Sink, Uncharged,
};
use punctual_model::{Instant, PolicyKind, Span, ThreadId};

use crate::entry::child::Child;
use crate::entry::end::End;
use crate::entry::give_back::{Owed, Runs, of_slice};
use crate::entry::missing::{MissingTime, note_hole};
use crate::entry::switch::running_group;
use crate::entry::wakes::{awaits_answers, new_ceiling, next_answered, next_notified, next_woken};
use crate::record::input::RunOptions;
use crate::record::light::Light;
use crate::record::per_cpu::{ByPolicy, PerCpu, Reason, Standing};

/// Arrivals and messages fed in one entry; more wait for the next, which is armed at once.
const FED_PER_ENTRY: usize = 64;
/// Messages that did not fit into a ring are sent again after this.
const RESEND_NS: u64 = 50_000;

/// One CPU with its policy and its recorder. The host comes first: an address of one is an address
/// of the other.
#[repr(C)]
pub(crate) struct Cpu<P, S> {
    pub(crate) host: PerCpu,
    core: UnsafeCell<Core<P, S>>,
}

/// Touched with the gate closed only.
pub(crate) struct Core<P, S> {
    pub(crate) shard: Shard<P>,
    pub(crate) sink: S,
    /// Arrivals of sporadic threads, in order.
    pub(crate) arrivals: Vec<(Instant, ThreadId)>,
    next_arrival: usize,
    /// The changes while it runs.
    pub(crate) plan: Plan,
    /// Light threads by the index of their thread.
    pub(crate) threads: Vec<*const Light>,
    /// The schedulers that decide on their own supply.
    pub(crate) children: Vec<Child>,
    unsent: Vec<Message>,
    pub(crate) missing: MissingTime,
    /// `None`: this run gives nothing back.
    pub(crate) owed: Option<Owed>,
    end: End,
    /// An idle CPU looks for the predecessors of its jobs.
    looks: bool,
    /// From here on background work is to give a slice back.
    owing_from: Instant,
}

impl<P: Policy, S: Sink> Core<P, S> {
    pub(crate) fn new(
        mut shard: Shard<P>,
        sink: S,
        arrivals: Vec<(Instant, ThreadId)>,
        options: &RunOptions,
    ) -> Core<P, S> {
        let end = End::of(options);
        shard.set_horizon(end.horizon);
        Core {
            shard,
            sink,
            arrivals,
            next_arrival: 0,
            plan: Plan::default(),
            threads: Vec::new(),
            children: Vec::new(),
            unsent: Vec::with_capacity(1_024),
            missing: MissingTime::default(),
            owed: None,
            end,
            looks: options.look_for_predecessors,
            owing_from: Instant::MAX,
        }
    }

    /// Registers the light thread of a thread.
    pub(crate) fn set_thread(&mut self, light: &Light) {
        let index = light.id().index();
        if self.threads.len() <= index {
            self.threads.resize(index + 1, core::ptr::null());
        }
        self.threads[index] = light;
    }

    pub(crate) fn handle(&mut self, host: &PerCpu, now: Instant, event: Event) -> Decision {
        self.handle_entry(host, Entry::at(now, &event))
    }

    fn handle_entry(&mut self, host: &PerCpu, entry: Entry<'_>) -> Decision {
        let decision = self.shard.handle_apart(entry, &mut self.sink);
        self.send_messages(host);
        decision
    }

    /// Sends what other CPUs are to hear.
    fn send_messages(&mut self, host: &PerCpu) {
        while let Some(message) = self.shard.take_message() {
            if !host.shared.post.send(host.index, message) {
                // A newer frontier says all that an older one said.
                self.unsent
                    .retain(|m| (m.to, m.slot) != (message.to, message.slot));
                self.unsent.push(message);
            }
        }
    }

    /// The slow path through an entry: what is due, the event, and who goes on (null: the carrier).
    fn step_slowly(
        &mut self,
        host: &PerCpu,
        now: Instant,
        event: Event,
        given_back: Option<Instant>,
    ) -> *const Light {
        host.hear_news(now);
        let overdue = match host.gate.take_pending() {
            true if self.lets_begin(host, now, event) => return host.current.get(),
            // It may have been the timer's.
            true => host.timer_fired(),
            false => host.fires_at(),
        };
        match host.arrived.take() {
            Some(arrived) => host.note_work_since(arrived, now),
            None if given_back.is_none() => note_hole(host, now, overdue),
            None => {}
        }
        host.deferral.end(now);
        let missing = self.charge(host, now, given_back);
        self.note_yield(event);
        let entry = Entry {
            missing,
            ceiling: new_ceiling(host),
            ..Entry::at(now, &event)
        };
        let mut decision = self.handle_entry(host, entry);
        decision = self.attend(host, now, event, decision);
        // A signal's entry may come before the thread has read what was refused.
        // SAFETY: records of light threads outlive the run (INV-L1 of `light`).
        if let Some(light) = unsafe { host.current.get().as_ref() }
            && event != Event::Tick
        {
            light.tell(decision.refused);
        }
        self.conclude(host, now, decision)
    }

    /// What follows an event: news from outside, what became due meanwhile, the choice.
    fn conclude(
        &mut self,
        host: &PerCpu,
        mut now: Instant,
        mut decision: Decision,
    ) -> *const Light {
        let mut more = self.feed(host, now, &mut decision);
        let mut rounds = 0;
        while (more || self.has_overdue(host, now, decision.arm)) && rounds < self.follow_ups() {
            // What was decided ahead is not taken back.
            now = host.clock().now().max(now);
            host.note_entry_until(now);
            let entry = Entry {
                missing: self.charge(host, now, None),
                ..Entry::at(now, &Event::Tick)
            };
            decision = self.handle_entry(host, entry);
            more = self.feed(host, now, &mut decision);
            rounds += 1;
        }
        self.choose(host, now, decision, more)
    }

    /// A child learns that a thread of its own gave up its turn.
    fn note_yield(&mut self, event: Event) {
        let (Event::Yield, Some(thread)) = (event, self.shard.running()) else {
            return;
        };
        let tree = self.shard.tree();
        for child in &mut self.children {
            if tree.is_in_subtree(thread, child.node) {
                child.yielded = Some(thread);
            }
        }
    }

    /// Books the interval since the last entry: to the thread that ran, less what was nobody's,
    /// which it returns. `given_back`: the CPU was left alone, and was to be up to then.
    fn charge(&mut self, host: &PerCpu, now: Instant, given_back: Option<Instant>) -> Uncharged {
        let last = Instant::from_ticks(host.last_entry.load(Ordering::Relaxed));
        let interval = now.since(last);
        let light = host.current.get();
        let known = host.take_known_missing();
        let missing = if let Some(until) = given_back {
            let late = Span::from_ticks(host.limits.late);
            of_slice(interval, until.since(last), late)
        } else {
            let group = running_group(host).is_some();
            let executing = !light.is_null() && !group;
            let missing = self.missing.assess(host, last, now, known, executing);
            match group {
                // The carrier slept, which is no news, and the group had that time.
                true => self.missing = MissingTime::starting(host.clock(), &host.watch),
                false => self.note_others(now),
            }
            missing
        };
        for (cause, span) in missing.by_cause() {
            let ns = host.clock().ns(span.ticks());
            host.count(|c| c.add_missing(ns, cause));
        }
        host.last_entry.store(now.ticks(), Ordering::Relaxed);
        host.count_entry();
        // SAFETY: records of light threads outlive the run (INV-L1 of `light`).
        if let Some(light) = unsafe { light.as_ref() } {
            let executed = interval.saturating_sub(missing.total()).ticks();
            light.add_executed(executed);
        }
        missing
    }

    /// Feeds arrivals and messages that have come; `true`: there are more.
    fn feed(&mut self, host: &PerCpu, now: Instant, decision: &mut Decision) -> bool {
        let mut room = FED_PER_ENTRY;
        while room > 0
            && let Some(message) = host.shared.post.receive(host.index)
        {
            *decision = self.handle(host, now, Event::Remote(message));
            room -= 1;
        }
        while room > 0
            && let Some(thread) = next_notified(host)
                .or_else(|| next_woken(host))
                .or_else(|| next_answered(host))
        {
            *decision = self.handle(host, now, Event::Wake(thread));
            room -= 1;
        }
        // What arrives at the instant of a change finds it done.
        while room > 0
            && let Some(event) = self.plan.next(now, &self.shard)
        {
            *decision = self.handle(host, now, event);
            self.recode(&event, decision.refused);
            self.plan.hear(decision);
            room -= 1;
        }
        while room > 0
            && let Some(&(arrival, thread)) = self.arrivals.get(self.next_arrival)
            && arrival <= now
        {
            *decision = self.handle(host, now, Event::Arrive { thread, arrival });
            self.next_arrival += 1;
            room -= 1;
        }
        for _ in 0..self.unsent.len() {
            let Some(message) = self.unsent.pop() else {
                break;
            };
            if !host.shared.post.send(host.index, message) {
                self.unsent.push(message);
                break;
            }
        }
        room == 0
    }

    /// Turns a decision into a target, and sees to it that the next entry comes in time.
    fn choose(
        &mut self,
        host: &PerCpu,
        now: Instant,
        decision: Decision,
        more: bool,
    ) -> *const Light {
        let chosen = match decision.next {
            Next::Thread(id) => self.threads.get(id.index()).copied(),
            Next::RunChild(node) => {
                let child = self.children.iter_mut().find(|child| child.is(node));
                child.map(|child| child.asked_for(node))
            }
            _ => None,
        };
        let light = chosen.unwrap_or(core::ptr::null());
        // SAFETY: records of light threads outlive the run (INV-L1 of `light`).
        let runs = unsafe { light.as_ref() };
        if let Some(light) = runs {
            self.publish(light);
        }
        if self
            .end
            .is_reached(&host.shared, now, self.shard.unsettled())
        {
            host.reason.set(Reason::End);
            return core::ptr::null();
        }
        let due = self.next_due(host, now, decision.arm, more, light.is_null());
        if self.owed.is_some_and(|owed| owed.due <= now)
            && self.gives_back(host, now, decision.next, due)
        {
            return core::ptr::null();
        }
        let Some(runs) = runs else {
            let owes = self.owed.is_some_and(|owed| owed.due <= now);
            host.reason.set(Reason::Idle {
                due: Some(due),
                owes,
                awaits: self.awaits(),
            });
            return light;
        };
        let look = if awaits_answers(host) {
            host.limits.answer_look
        } else {
            host.limits.look
        };
        let next = due.min(now.saturating_add(look));
        host.arm_for(runs, next, now, || self.comes_by_clock(next));
        self.open_fast_path(host, now);
        if more {
            // The next entry feeds the rest, also where a promise has put the timer off.
            host.disturb();
        }
        light
    }

    /// Until when an idle CPU looks for predecessors, and owes no sleep to others.
    fn awaits(&self) -> Option<Instant> {
        let until = self.shard.awaits_predecessors().filter(|_| self.looks)?;
        Some(self.owed.map_or(until, |owed| owed.due.min(until)))
    }

    /// Whether a thread, or supply, comes at this instant, by the clock or by an arrival.
    fn comes_by_clock(&self, due: Instant) -> bool {
        let arrival = self.arrivals.get(self.next_arrival);
        self.shard.next_timer() == Some(due) || arrival.is_some_and(|&(at, _)| at == due)
    }

    /// Whether a CPU in debt gives a slice back now instead of working for whoever is next.
    #[cold]
    fn gives_back(&mut self, host: &PerCpu, now: Instant, next: Next, due: Instant) -> bool {
        let working = self.working_for(host, next);
        let slice = self
            .owed
            .as_mut()
            .and_then(|owed| owed.slice(now, working, due));
        if let Some(until) = slice {
            let listens = working != Runs::Urgent;
            host.reason.set(Reason::GiveBack { until, listens });
        }
        slice.is_some()
    }

    /// For whom the CPU works if this is next.
    fn working_for(&self, host: &PerCpu, next: Next) -> Runs {
        match next {
            // Below another scheduler others may wait behind it, for what is left of the CPU.
            Next::Thread(id) if !self.shard.is_above_background(id) && self.is_at_root(id) => {
                Runs::Background
            }
            Next::Thread(_) | Next::RunChild(_) => Runs::Urgent,
            _ if host.keeps_idle_time() => Runs::Background,
            _ => Runs::Nobody,
        }
    }

    /// Whether a ready thread stands in the queue of the CPU's own scheduler.
    fn is_at_root(&self, thread: ThreadId) -> bool {
        let tree = self.shard.tree();
        let home = tree.supplier(thread);
        home.is_some_and(|home| tree.parent(home).is_none())
    }
}

impl<P: Policy, S: Sink> Cpu<P, S> {
    pub(crate) fn new(host: PerCpu, core: Core<P, S>) -> Box<Cpu<P, S>> {
        let cpu = Box::new(Cpu {
            host,
            core: UnsafeCell::new(core),
        });
        cpu.host.record.set_current(cpu.host.carrier.get());
        cpu
    }

    /// The core. To be borrowed with the gate closed only, and never across a switch.
    pub(crate) fn core(&self) -> *mut Core<P, S> {
        self.core.get()
    }

    /// Takes the CPU apart after the run: its recorder and counters.
    pub(crate) fn into_sink(self) -> S {
        self.core.into_inner().sink
    }

    /// Adds the core's counters to the host's, at the end of a run.
    pub(crate) fn finish_counters(&self) {
        // SAFETY: the run is over, so nobody borrows the core.
        let core = unsafe { (*self.core.get()).shard.counters() };
        self.host.count(|c| {
            c.decisions = core.decisions;
            c.switches = core.switches;
            c.preemptions = core.preemptions;
        });
        self.host.count_distributions();
    }
}

/// Takes one entry on the slow path and returns the thread that runs then (null: the carrier). Does
/// not switch. `given_back`: the CPU was left to the rest of the system, and was to be up to then.
///
/// # Safety
/// `host` is the host of a `Cpu<P, S>`, its gate is closed by the caller on its kernel thread, and
/// no reference into the core is alive.
pub(crate) unsafe fn decide<P: Policy, S: Sink>(
    host: *const PerCpu,
    now: Instant,
    event: Event,
    given_back: Option<Instant>,
) -> *const Light {
    // SAFETY: the host is the first field of the CPU (repr(C)), which outlives the run.
    let cpu = unsafe { &*host.cast::<Cpu<P, S>>() };
    // SAFETY: the gate is closed, so nobody else borrows the core until this function has returned
    // (INV-7), and the borrow ends before any switch.
    let core = unsafe { &mut *cpu.core.get() };
    core.step_slowly(&cpu.host, now, event, given_back)
}

/// The entries of a CPU with this policy and this recorder; `DIVIDES`: they measure the
/// boundaries of slots, which no other CPU pays for. `SWIFT`: user code reads the clock and sets
/// the thread pointer; else the most frequent events have no way of their own.
pub(crate) const fn by_policy<
    P: Policy + 'static,
    S: Sink,
    const DIVIDES: bool,
    const SWIFT: bool,
>() -> ByPolicy {
    ByPolicy {
        enter: enter::enter::<P, S, DIVIDES>,
        give_way: enter::give_way::<P, S, DIVIDES, SWIFT>,
        preempt: fast::preempt::<P, S, DIVIDES>,
        birth: birth::birth::<P, S, DIVIDES>,
        wake: enter::wake::<P, S, DIVIDES, SWIFT>,
        hand: enter::hand::<P, S, DIVIDES, SWIFT>,
        block: enter::block::<P, S, DIVIDES, SWIFT>,
        wait_for: enter::wait_for::<P, S, DIVIDES, SWIFT>,
        change: change::change::<P, S, DIVIDES>,
        lag: change::lag::<P, S>,
        goes_before: goes_before::<P, S>,
        standing: standing::<P, S>,
        shelve: shelve::<P, S>,
    }
}

/// Where a thread stands.
///
/// # Safety
/// As for [`decide`].
unsafe fn standing<P: Policy, S: Sink>(host: *const PerCpu, thread: ThreadId) -> Standing {
    let cpu = host.cast::<Cpu<P, S>>();
    // SAFETY: as in `decide`.
    unsafe { (*(*cpu).core()).standing(thread) }
}

/// [`Core::shelve`] on this CPU.
///
/// # Safety
/// As for [`decide`].
unsafe fn shelve<P: Policy + 'static, S: Sink>(
    host: *const PerCpu,
    node: NodeId,
    policy: PolicyKind,
    place: &mut dyn Any,
) -> bool {
    let cpu = host.cast::<Cpu<P, S>>();
    // SAFETY: as in `decide`; the borrow ends with the statement.
    unsafe { (*(*cpu).core()).shelve(node, policy, place) }
}

/// Whether thread `a` goes before `b` on this CPU.
///
/// # Safety
/// As for [`decide`].
unsafe fn goes_before<P: Policy, S: Sink>(host: *const PerCpu, a: ThreadId, b: ThreadId) -> bool {
    let cpu = host.cast::<Cpu<P, S>>();
    // SAFETY: as in `decide`.
    let core = unsafe { &*(*cpu).core.get() };
    core.shard.goes_before(a, b)
}

/// Tells the core that its CPU slept of its own will.
///
/// # Safety
/// As for [`decide`].
pub(crate) unsafe fn note_sleep<P: Policy, S: Sink>(
    host: *const PerCpu,
    from: Instant,
    to: Instant,
) {
    let cpu = host.cast::<Cpu<P, S>>();
    // SAFETY: as in `decide`.
    let (core, host) = unsafe { (&mut *(*cpu).core.get(), &(*cpu).host) };
    core.slept(host, from, to);
}
