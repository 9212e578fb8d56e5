//! One CPU of a run, as far as it does not depend on the policy: gate, timer, counters.
//!
//! Who may touch what:
//! * the [`Gate`]: by its own protocol (INV-7, INV-8 of `switch`);
//! * fields under *gate closed*: whoever holds this CPU's gate closed, that is the one kernel
//!   thread that carries the CPU, outside of any code that a signal might interrupt half-way;
//! * fields under *any time*: single atomic words, also read by the running light thread while a
//!   signal may come between two of its instructions. One kernel thread: relaxed order is enough.

mod open;

use core::any::Any;
use core::cell::{Cell, RefCell, UnsafeCell};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use punctual_kern::{Constraint, Event, NodeId};
use punctual_linux_io::{Origin, Ring};
use punctual_model::{Instant, PolicyKind, Span, ThreadId};
use punctual_switch::{DispatchRecord, Gate, RecordCell, SchedulerRecord};

use crate::record::boundary::{Boundaries, SlotFrame};
use crate::record::early::{Early, STEP_NS};
use crate::record::forgo;
use crate::record::light::Light;
use crate::record::limits::{GAP_NS, Limits, RETRY_NS, WAKE_MARGIN_NS};
use crate::record::outcome::{CpuCounters, HeldUp, Panic};
use crate::record::pool::Pool;
use crate::record::post::{Mail, Post};
use crate::record::takers::{MOST_TAKERS, Questions, Taken};
use crate::record::text::LibraryText;
use crate::shared::kicks::Kicks;
use crate::sys::{self, OwnAccount, SwitchLog, SwitchWatch};
use crate::time::clock::Clock;
use crate::time::clock_watch::ClockWatch;
use crate::time::deferral::Deferral;

/// Why the carrier has the processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reason {
    /// No thread wants to run before the given instant, if there is one. A CPU that owes sleep to
    /// the rest of the system sleeps all the while; else one looks for news until `awaits`.
    Idle {
        due: Option<Instant>,
        owes: bool,
        awaits: Option<Instant>,
    },
    /// The CPU is left to the rest of the system until then; unless somebody comes who is more
    /// urgent, where that ends it.
    GiveBack { until: Instant, listens: bool },
    /// The run is over on this CPU.
    End,
}

/// What the CPUs of a run and its watchdog share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) post: Post,
    /// Runs are numbered from 1, so that what belonged to an earlier one is refused.
    pub(crate) number: u64,
    /// The caller wants the run to end (Ctrl-C).
    pub(crate) stop: Arc<AtomicBool>,
    /// The watchdog wants the run to end.
    pub(crate) abort: AtomicBool,
    /// Threads of the pool that panicked.
    pub(crate) panics: Mutex<Vec<Panic>>,
    /// The most by which the corrected clocks of two CPUs of this run may differ, in nanoseconds;
    /// [`u64::MAX`]: not known.
    pub(crate) clock_error: AtomicU64,
    /// Where CPUs with nothing to do compare their clocks.
    pub(crate) clocks: Option<ClockWatch>,
    /// Somebody's group is not lowered to SCHED_IDLE, from where it would not come back.
    pub(crate) groups_stay: AtomicBool,
    /// What the program's own threads are.
    pub(crate) origin: Origin,
    /// Questions of the entries of each CPU about threads that took time, and notes about them.
    pub(crate) questions: Vec<Questions>,
    pub(crate) taken: Mutex<Vec<(usize, Vec<Taken>)>>,
}

impl Shared {
    pub(crate) fn new(
        post: Post,
        number: u64,
        stop: Arc<AtomicBool>,
        (origin, clocks): (Origin, Option<ClockWatch>),
    ) -> Shared {
        let questions = (0..post.cpus()).map(|_| Questions::default()).collect();
        Shared {
            post,
            number,
            stop,
            abort: AtomicBool::new(false),
            panics: Mutex::new(Vec::new()),
            clock_error: AtomicU64::new(u64::MAX),
            clocks,
            groups_stay: AtomicBool::new(false),
            origin,
            questions,
            taken: Mutex::new(Vec::new()),
        }
    }
}

impl Shared {
    /// Whether somebody wants the run to end.
    #[inline]
    pub(crate) fn is_to_end(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.abort.load(Ordering::Relaxed)
    }
}

/// The functions that depend on the policy, called through here by code that does not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByPolicy {
    pub(crate) enter: unsafe fn(host: *const PerCpu, event: Event),
    /// The whole call of the running thread by which it yields; it opens the gate, too.
    pub(crate) give_way: unsafe fn(light: &Light),
    /// `enter` for [`Event::Tick`] in the preemption signal.
    pub(crate) preempt: unsafe fn(host: *const PerCpu),
    /// `enter` for an event by which a thread comes or goes.
    pub(crate) birth: unsafe fn(host: *const PerCpu, event: &Event),
    /// `enter` by the thread that runs for [`Event::Wake`], and so on; waits have no time-out.
    pub(crate) wake: unsafe fn(light: &Light, thread: ThreadId),
    pub(crate) hand: unsafe fn(light: &Light, (u32, ThreadId, ThreadId)),
    pub(crate) block: unsafe fn(light: &Light),
    pub(crate) wait_for: unsafe fn(light: &Light, (ThreadId, u32)),
    /// Another constraint for a thread, whose first arrival is at an instant, or a phase after its
    /// zero-lag instant where that is later.
    pub(crate) change: unsafe fn(*const PerCpu, ThreadId, Constraint, Instant),
    /// The zero-lag instant of a thread, seen from now.
    pub(crate) lag: unsafe fn(*const PerCpu, ThreadId, Instant) -> Instant,
    /// Whether thread `a` goes before thread `b`.
    pub(crate) goes_before: unsafe fn(host: *const PerCpu, a: ThreadId, b: ThreadId) -> bool,
    /// Where a thread stands in the tree, and what was promoted last.
    pub(crate) standing: unsafe fn(host: *const PerCpu, thread: ThreadId) -> Standing,
    /// Changes what stands beside a scheduler for what is in an `Option` of the CPU's policy.
    /// Whether one that keeps this order would come at once.
    pub(crate) shelve: unsafe fn(*const PerCpu, NodeId, PolicyKind, &mut dyn Any) -> bool,
}

/// Where a thread stands in the tree of its CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    /// The scheduler that has it in its care.
    pub(crate) home: NodeId,
    /// Whether it has a job that is not done.
    pub(crate) has_job: bool,
    /// Whether others wait for what it is doing.
    pub(crate) is_held_alive: bool,
    /// The scheduler that was promoted last on this CPU, whoever asked for it.
    pub(crate) promoted: Option<NodeId>,
}

/// One CPU. The gate comes first: assembly reaches it through the address of the whole.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct PerCpu {
    pub(crate) gate: Gate,
    pub(crate) index: usize,
    pub(crate) by_policy: ByPolicy,
    /// User code may not set the thread pointer here: a dispatch does it by a system call.
    pub(crate) switches_by_call: bool,
    pub(crate) shared: Arc<Shared>,
    mail: Arc<Mail>,
    pub(crate) text: LibraryText,

    // Gate closed.
    /// Replaced once, when all CPUs are ready and the run gets its origin.
    clock: Cell<Clock>,
    /// What entries compare with; does not change.
    pub(crate) limits: Limits,
    /// The light thread that has the processor; null: the carrier.
    pub(crate) current: Cell<*const Light>,
    /// What the core's own dispatches say: always behind the gate, so never stale.
    pub(crate) record: SchedulerRecord,
    pub(crate) carrier: RecordCell,
    pub(crate) reason: Cell<Reason>,
    pub(crate) timer: sys::Timer,
    /// Whether the kernel has let somebody else on to this CPU.
    pub(crate) watch: SwitchWatch,
    /// Who that was, and the threads that took time from this CPU, as far as there is room.
    pub(crate) switches: SwitchLog,
    pub(crate) account: OwnAccount,
    pub(crate) takers: RefCell<Vec<Taken>>,
    armed: Cell<Option<Instant>>,
    /// Before this instant the platform has nothing of its own to do.
    fast_until: Cell<Instant>,
    /// The timer stands for a budget that nobody uses any more, and fires then if nothing sets it.
    stale: Cell<Option<Instant>>,
    /// How much earlier than due the timer of a release is set.
    pub(crate) early: Early,
    /// When the signal came that is on its way into the scheduler.
    pub(crate) arrived: Cell<Option<Instant>>,
    /// Preemptions that had to wait.
    pub(crate) deferral: Deferral,
    /// Whether they do; see [`crate::forgo`].
    pub(crate) defers: bool,
    /// How long before it is due the idle CPU wakes up and spins, in nanoseconds.
    pub(crate) wake_margin_ns: Cell<u64>,
    /// Groups that are kept out of its idle time: while there are any, it stays awake.
    pub(crate) kept_out: Cell<u32>,
    /// How long it looks for news before it sleeps, in nanoseconds.
    pub(crate) watch_ns: Cell<u64>,
    pub(crate) counters: Cell<CpuCounters>,
    /// The boundaries of its frame; `None`: it does not divide time.
    pub(crate) boundaries: Option<Boundaries>,
    /// How often others have interrupted this CPU.
    pub(crate) kicks: Cell<Kicks>,
    /// What blocking calls of its light threads go through; `None`: the kernel has no such ring.
    pub(crate) ring: UnsafeCell<Option<Ring>>,
    /// The light threads of this CPU, for a look at who waits; set once before the run.
    pub(crate) lights: UnsafeCell<Vec<*const Light>>,
    /// The names of this CPU's resources, by number; does not change.
    pub(crate) resources: Vec<String>,

    /// Threads that can be created, and what their monitors need.
    pub(crate) pool: Pool,

    // Any time.
    /// Until when an entry may take the fast path, as far as this CPU itself knows, in ticks: the
    /// least of what is due, or 0 ([`PerCpu::disturb`]).
    open_until: AtomicU64,
    /// The timer stays for an entry that is due later than this, in ticks; [`u64::MAX`]: for none.
    stays_after: AtomicU64,
    /// Since the slow path nothing has begun that the next entry is to look into.
    is_at_rest: AtomicBool,
    /// Entries so far; also counts signals that interrupted without an entry.
    pub(crate) entries: AtomicU64,
    /// Instant of the last entry.
    pub(crate) last_entry: AtomicU64,
    /// When an entry was last seen to set the timer, which is among the last things that it does.
    pub(crate) left: AtomicU64,
    /// Ticks since the last entry that are known to have been nobody's.
    pub(crate) known_missing: AtomicU64,
    /// How many light threads wait on futexes of the program.
    pub(crate) futex_waiters: AtomicU32,
}

const _: () = assert!(core::mem::offset_of!(PerCpu, gate) == 0);

impl PerCpu {
    #[allow(clippy::too_many_arguments)] // One value per thing that a CPU is made of.
    pub(crate) fn new(
        index: usize,
        by_policy: ByPolicy,
        clock: Clock,
        shared: Arc<Shared>,
        text: LibraryText,
        timer: sys::Timer,
        (watch, switches): (SwitchWatch, SwitchLog),
        carrier: DispatchRecord,
        resources: Vec<String>,
    ) -> PerCpu {
        PerCpu {
            gate: Gate::new(),
            index,
            by_policy,
            switches_by_call: !sys::can_write_thread_pointer(),
            limits: Limits::of(&clock, &watch),
            watch,
            switches,
            account: OwnAccount::open(),
            takers: RefCell::new(Vec::with_capacity(MOST_TAKERS)),
            clock: Cell::new(clock),
            mail: shared.post.mail(index),
            shared,
            text,
            current: Cell::new(core::ptr::null()),
            record: SchedulerRecord::new(core::ptr::null_mut()),
            carrier: RecordCell::new(carrier),
            reason: Cell::new(Reason::Idle {
                due: None,
                owes: false,
                awaits: None,
            }),
            timer,
            armed: Cell::new(None),
            fast_until: Cell::new(Instant::ZERO),
            stale: Cell::new(None),
            early: Early::default(),
            arrived: Cell::new(None),
            deferral: Deferral::new(),
            defers: forgo::keeps_deferral(),
            wake_margin_ns: Cell::new(WAKE_MARGIN_NS),
            kept_out: Cell::new(0),
            watch_ns: Cell::new(0),
            counters: Cell::new(CpuCounters::default()),
            boundaries: None,
            kicks: Cell::new(Kicks::default()),
            ring: UnsafeCell::new(None),
            lights: UnsafeCell::new(Vec::new()),
            resources,
            pool: Pool::default(),
            open_until: AtomicU64::new(0),
            stays_after: AtomicU64::new(u64::MAX),
            is_at_rest: AtomicBool::new(false),
            entries: AtomicU64::new(0),
            last_entry: AtomicU64::new(0),
            left: AtomicU64::new(0),
            known_missing: AtomicU64::new(0),
            futex_waiters: AtomicU32::new(0),
        }
    }

    /// The questions of its entries to the onlooker.
    pub(crate) fn questions(&self) -> &Questions {
        &self.shared.questions[self.index]
    }

    /// Whether it stays awake when it has nothing to do, and gives slices back as out of the time
    /// of background work: a group that runs here is kept out of its idle time.
    pub(crate) fn keeps_idle_time(&self) -> bool {
        self.kept_out.get() > 0
    }

    /// Whether one thread goes before another. Gate closed. O(1).
    pub(crate) fn goes_before(&self, a: ThreadId, b: ThreadId) -> bool {
        // SAFETY: made for this CPU's types, and the caller has closed the gate.
        unsafe { (self.by_policy.goes_before)(self, a, b) }
    }

    /// The clock of the run.
    #[inline]
    pub(crate) fn clock(&self) -> Clock {
        self.clock.get()
    }

    /// Timers of releases may be set so many nanoseconds early. Before the run.
    pub(crate) fn allow_early(&mut self, ns: u64) {
        let clock = self.clock();
        self.early = Early::new(clock.ticks(ns), clock.ticks(STEP_NS));
    }

    /// The CPU divides time like this, if it does. Before the run.
    pub(crate) fn divide(&mut self, frame: Option<SlotFrame>) {
        let noise = Span::from_ticks(self.clock().ticks(GAP_NS));
        self.boundaries = frame.map(|frame| Boundaries::new(frame, noise));
    }

    /// The slots of its frame that were held up. After the run.
    pub(crate) fn held_up(&self) -> Vec<HeldUp> {
        let ns = |ticks| self.clock().ns(ticks);
        let boundaries = self.boundaries.as_ref();
        boundaries.map_or_else(Vec::new, |all| all.held_up(ns))
    }

    /// Gives the run its origin. Gate closed, before the first entry.
    pub(crate) fn set_clock(&self, clock: Clock) {
        self.clock.set(clock);
    }

    /// Changes the counters. Gate closed.
    #[inline]
    pub(crate) fn count(&self, change: impl FnOnce(&mut CpuCounters)) {
        let mut counters = self.counters.get();
        change(&mut counters);
        self.counters.set(counters);
    }

    /// The instant that the timer is armed for; the end of time, if that is the budget of a job
    /// that is done. Gate closed.
    #[inline]
    pub(crate) fn armed_for(&self) -> Option<Instant> {
        self.armed.get()
    }

    /// When the timer fires, for a budget that nobody uses, too. Gate closed.
    pub(crate) fn fires_at(&self) -> Option<Instant> {
        self.stale.get().or(self.armed.get())
    }

    /// The timer has fired, or may have. Gate closed.
    #[inline]
    pub(crate) fn timer_fired(&self) -> Option<Instant> {
        let armed = self.take_armed();
        self.stale.take().or(armed)
    }

    /// The running thread's job is done: nobody waits for the end of its budget. The entry that
    /// follows sets the timer anew where something later is due. Gate closed. A timer that is
    /// overdue stays: it is evidence of a hole.
    pub(crate) fn end_budget(&self) {
        let now = self.clock().now();
        if self.stale.get().is_none()
            && let Some(armed) = self.armed.get().filter(|&armed| armed > now)
        {
            self.stale.set(Some(armed));
            // Earlier than nothing, so it does not stay; `armed` costs no entry a comparison more.
            self.set_armed(Some(Instant::MAX));
        }
    }

    /// No thread runs on: a timer that stands for nobody's budget would only delay who comes. Gate
    /// closed.
    pub(crate) fn disarm_stale(&self) {
        if self.stale.take().is_some() {
            self.set_armed(None);
            self.timer.disarm();
            self.count(|c| c.timer_settings += 1);
        }
    }

    /// Makes sure that an entry happens at `due` (or a little earlier). Gate closed. A timer that
    /// is armed for an earlier instant stays: it costs one needless entry instead of a system call
    /// now, and that entry arms again. After [`PerCpu::end_budget`] it does not stay (rule 6 of
    /// design note 0004).
    ///
    /// `comes`: whether somebody comes by the clock then, for whom a timer is set early.
    #[inline]
    pub(crate) fn arm(&self, due: Instant, now: Instant, comes: impl FnOnce() -> bool) {
        let armed = self.armed.get();
        if !armed.is_some_and(|armed| armed <= due && armed > now) {
            self.set_timer(due, comes());
        }
    }

    /// Sees to it that the next entry comes at `due` while `light` runs; see [`PerCpu::arm`].
    #[inline]
    pub(crate) fn arm_for(
        &self,
        light: &Light,
        due: Instant,
        now: Instant,
        comes: impl FnOnce() -> bool,
    ) {
        match light.promise.load(Ordering::Relaxed) {
            0 => self.arm(due, now, comes),
            promise => {
                light.due.store(due.ticks(), Ordering::Relaxed);
                self.arm_behind(due, Span::from_ticks(promise), now);
            }
        }
    }

    /// [`PerCpu::arm`] for a thread that looks at the clock itself and comes in at `due`: the timer
    /// stands behind it, `within` later. It is set again when less than half of that is left, not
    /// at each entry. Gate closed.
    #[cold]
    pub(crate) fn arm_behind(&self, due: Instant, within: Span, now: Instant) {
        let last = due.saturating_add(within);
        let left = |armed: Instant| armed.since(now).ticks();
        let stays = |armed: Instant| armed <= last && left(armed) > within.ticks() / 2;
        if !self.armed.get().is_some_and(stays) {
            self.set_timer(last, false);
        }
    }

    /// The timer counts from the call, so the entry's reading of the clock is too old here: much
    /// too old, if the processor stood still meanwhile.
    #[cold]
    fn set_timer(&self, due: Instant, comes: bool) {
        let now = self.clock().now();
        if self.stale.take() == Some(due) && due > now {
            // It stood for more than a budget.
            self.set_armed(Some(due));
            return;
        }
        self.note_entry_until(now);
        self.left.store(now.ticks(), Ordering::Relaxed);
        self.set_armed(Some(due.max(now)));
        let at = if comes {
            self.early.before(due, now)
        } else {
            self.early.exactly(due)
        };
        self.timer.arm(self.clock().ns(at.since(now).ticks()));
        // A virtual machine leaves its processor in this call, and may be long in coming back.
        let after = self.clock().now();
        if after.since(now).ticks() > self.limits.call {
            self.note_hole_in_call(due, after);
        }
        self.count(|c| c.timer_settings += 1);
    }

    /// The call that set the timer for `due` came back at `after` only. That is noted once: from
    /// here on it is as if the timer had been set then, overdue or not. Gate closed.
    #[cold]
    pub(crate) fn note_hole_in_call(&self, due: Instant, after: Instant) {
        // Before the entry's instant (one that was taken ahead) it was nobody's time anyway.
        self.note_missing(after.ticks().saturating_sub(self.left_at()));
        self.left.store(after.ticks(), Ordering::Relaxed);
        self.set_armed(Some(due.max(after)));
    }

    /// When the thread that runs was let go on, as far as is known. Any time.
    pub(crate) fn left_at(&self) -> u64 {
        let entered = self.last_entry.load(Ordering::Relaxed);
        entered.max(self.left.load(Ordering::Relaxed))
    }

    /// The entry is still at work. Gate closed.
    pub(crate) fn note_entry_until(&self, now: Instant) {
        let entered = Instant::from_ticks(self.last_entry.load(Ordering::Relaxed));
        self.note_work_since(entered, now);
    }

    /// The scheduler, or the way into it, is still at work. If that takes far too long it did not
    /// execute all the while. Gate closed.
    pub(crate) fn note_work_since(&self, since: Instant, now: Instant) {
        let spent = now.since(since).ticks();
        if spent > self.limits.entry {
            self.note_missing(spent);
        }
    }

    /// A preemption could not be taken now: ask again soon. Gate closed.
    pub(crate) fn retry(&self) {
        self.retry_in(RETRY_NS);
    }

    /// [`PerCpu::retry`] after so many nanoseconds. Gate closed.
    pub(crate) fn retry_in(&self, ns: u64) {
        let now = self.clock().now();
        let ticks = self.clock().ticks(ns);
        self.stale.set(None);
        let at = Instant::from_ticks(now.ticks().saturating_add(ticks));
        self.set_armed(Some(self.early.exactly(at)));
        self.timer.arm(ns);
    }

    /// Notes that a preemption is being deferred, for how long so far in nanoseconds. Gate closed.
    pub(crate) fn defer(&self, now: Instant) -> u64 {
        let (waited, is_new) = self.deferral.go_on(now);
        self.disturb();
        if is_new {
            self.count(|c| c.deferrals += 1);
        }
        self.clock().ns(waited.ticks())
    }

    /// Puts the distributions of deferrals and boundaries into the counters. Gate closed, after the
    /// run.
    pub(crate) fn count_distributions(&self) {
        let ns = |span: Span| self.clock().ns(span.ticks());
        let waits = self.deferral.waits();
        self.count(|c| {
            c.deferred_p50_ns = ns(waits.quantile(500));
            c.deferred_p99_ns = ns(waits.quantile(990));
            c.deferred_max_ns = ns(waits.longest());
        });
        if let Some(boundaries) = &self.boundaries {
            let seen = boundaries.counters(|ticks| self.clock().ns(ticks));
            self.count(|c| c.boundaries = seen);
        }
    }

    /// Counts an entry, or a signal without one. Gate closed: nobody else writes the word, so it
    /// needs no atomic addition.
    #[inline]
    pub(crate) fn count_entry(&self) {
        let entries = self.entries.load(Ordering::Relaxed);
        self.entries
            .store(entries.wrapping_add(1), Ordering::Relaxed);
    }

    /// Books a short entry: `light` has executed so many ticks since the last one, all of them its
    /// own, and was refused nothing. Gate closed.
    #[inline]
    pub(crate) fn book_fast(&self, now: Instant, light: &Light, executed: u64) {
        self.last_entry.store(now.ticks(), Ordering::Relaxed);
        self.count_entry();
        light.add_executed(executed);
    }

    /// Takes what [`PerCpu::note_missing`] noted. Gate closed.
    #[inline]
    pub(crate) fn take_known_missing(&self) -> Span {
        // Reading is cheap, and there hardly ever is any; who notes may be interrupted half-way.
        if self.known_missing.load(Ordering::Relaxed) == 0 {
            return Span::ZERO;
        }
        Span::from_ticks(self.known_missing.swap(0, Ordering::Relaxed))
    }

    /// Notes time that was nobody's since the last entry. Any time.
    pub(crate) fn note_missing(&self, ticks: u64) {
        // Before it too, for an entry of a signal that comes in between.
        self.disturb();
        self.known_missing.fetch_add(ticks, Ordering::Relaxed);
        self.disturb();
    }
}
