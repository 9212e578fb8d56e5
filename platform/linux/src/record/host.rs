//! One CPU of a run, as far as it does not depend on the policy: gate, timer, counters.
//!
//! Who may touch what:
//! * the [`Gate`]: by its own protocol (INV-7, INV-8 of `switch`);
//! * fields under *gate closed*: whoever holds this CPU's gate closed, that is the one kernel
//!   thread that carries the CPU, outside of any code that a signal might interrupt half-way;
//! * fields under *any time*: single atomic words, also read by the running light thread while a
//!   signal may come between two of its instructions. One kernel thread: relaxed order is enough.

use core::cell::{Cell, UnsafeCell};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use punctual_kern::Event;
use punctual_model::{Instant, Span};
use punctual_switch::instructions::read_thread_pointer;
use punctual_switch::{
    DispatchRecord, Dispatched, Gate, RecordCell, SchedulerRecord, dispatch,
    dispatch_by_system_call,
};

use crate::carrier::WAKE_MARGIN_NS;
use crate::clock::Clock;
use crate::cpu::{ANSWER_LOOK_NS, LOOK_NS};
use crate::deferral::Deferral;
use crate::forgo;
use crate::interpose::undisturbed;
use crate::kicks::{Kicks, WINDOW_NS};
use crate::light::Light;
use crate::missing::{STRETCH_NS, suspicious_ns};
use crate::outcome::CpuCounters;
use crate::outcome::Panic;
use crate::pool::Pool;
use crate::post::Post;
use crate::sys::{self, SwitchWatch};
use crate::text::LibraryText;
use crate::uring::Uring;

/// How long before the armed instant a timer may fire and be waited for on the spot.
pub(crate) const EARLY_SPIN_NS: u64 = 2_000;
/// A timer that a library interrupted fires again after this.
pub(crate) const RETRY_NS: u64 = 4_000;
/// Preemption inside library text without a counted entry is deferred for at most this long
/// (design note 0004: it is safe at any time, deferring it only avoids waiting for its locks).
pub(crate) const DEFERRAL_LIMIT_NS: u64 = 500_000;
/// A timer later than this while user code runs: the processor did not run us.
pub(crate) const LATE_LIMIT_NS: u64 = 50_000;
/// What is due within this may be due before its entry is over: only then is the clock read again.
const NEAR_NS: u64 = 5_000;

/// Why the carrier has the processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reason {
    /// No thread wants to run before the given instant.
    Idle(Option<Instant>),
    /// A slice is given back to the rest of the system.
    GiveBack,
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
    /// Somebody's crew is not lowered to SCHED_IDLE, from where it would not come back.
    pub(crate) crews_stay: AtomicBool,
}

impl Shared {
    pub(crate) fn new(post: Post, number: u64, stop: Arc<AtomicBool>) -> Shared {
        Shared {
            post,
            number,
            stop,
            abort: AtomicBool::new(false),
            panics: Mutex::new(Vec::new()),
            crews_stay: AtomicBool::new(false),
        }
    }

    /// Keeps what a thread of the pool said when it panicked.
    pub(crate) fn note_panic(&self, cpu: usize, light: &Light) {
        let panic = Panic {
            cpu,
            thread: light.id(),
            name: light.name().to_owned(),
            message: light.said(),
        };
        undisturbed(|| {
            let mut panics = self.panics.lock().unwrap_or_else(PoisonError::into_inner);
            panics.push(panic);
        });
    }
}

/// Samples that come more often leave nothing to be sampled.
const SHORTEST_SAMPLE_NS: u64 = 50_000;

/// How often a thread that runs on is looked at when so many nanoseconds are asked for: within
/// reason.
pub fn sample_in_force(ns: u64) -> u64 {
    ns.clamp(SHORTEST_SAMPLE_NS, LOOK_NS)
}

/// The limits that every entry compares with, in ticks: a conversion divides 128 bits, which takes
/// longer than a decision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// [`LATE_LIMIT_NS`].
    pub(crate) late: u64,
    /// [`suspicious_ns`].
    pub(crate) suspicious: u64,
    /// [`STRETCH_NS`].
    pub(crate) stretch: Span,
    /// [`crate::run::RunOptions::sample_ns`].
    pub(crate) look: Span,
    /// [`crate::cpu::ANSWER_LOOK_NS`].
    pub(crate) answer_look: Span,
    /// [`NEAR_NS`].
    pub(crate) near: Span,
    /// [`WINDOW_NS`].
    pub(crate) kick_window: Span,
}

impl Limits {
    fn of(clock: &Clock, watch: &SwitchWatch) -> Limits {
        Limits {
            late: clock.ticks(LATE_LIMIT_NS),
            suspicious: clock.ticks(suspicious_ns(watch)),
            stretch: Span::from_ticks(clock.ticks(STRETCH_NS)),
            look: Span::from_ticks(clock.ticks(LOOK_NS)),
            answer_look: Span::from_ticks(clock.ticks(ANSWER_LOOK_NS)),
            near: Span::from_ticks(clock.ticks(NEAR_NS)),
            kick_window: Span::from_ticks(clock.ticks(WINDOW_NS)),
        }
    }

    /// A thread that runs on is looked at every so many nanoseconds, within reason.
    pub(crate) fn sample(&mut self, clock: &Clock, ns: u64) {
        self.look = Span::from_ticks(clock.ticks(sample_in_force(ns)));
    }
}

/// The functions that depend on the policy, called through here by code that does not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByPolicy {
    pub(crate) enter: unsafe fn(host: *const Host, event: Event),
    /// The same for [`Event::Yield`], which switches most often.
    pub(crate) give_way: unsafe fn(host: *const Host),
}

/// One CPU. The gate comes first: assembly reaches it through the address of the whole.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) gate: Gate,
    pub(crate) index: usize,
    pub(crate) by_policy: ByPolicy,
    /// User code may not set the thread pointer here: a dispatch does it by a system call.
    switches_by_call: bool,
    pub(crate) shared: Arc<Shared>,
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
    armed: Cell<Option<Instant>>,
    /// Preemptions that had to wait.
    pub(crate) deferral: Deferral,
    /// Whether they do; see [`crate::forgo`].
    pub(crate) defers: bool,
    /// How long before it is due the idle CPU wakes up and spins, in nanoseconds.
    pub(crate) wake_margin_ns: Cell<u64>,
    pub(crate) counters: Cell<CpuCounters>,
    /// How often others have interrupted this CPU.
    pub(crate) kicks: Cell<Kicks>,
    /// What blocking calls of its light threads go through; `None`: the kernel has no such ring.
    pub(crate) uring: UnsafeCell<Option<Uring>>,
    /// The light threads of this CPU, for a look at who waits; set once before the run.
    pub(crate) lights: UnsafeCell<Vec<*const Light>>,
    /// The names of this CPU's resources, by number; does not change.
    pub(crate) resources: Vec<String>,

    /// Threads that can be created, and what their monitors need.
    pub(crate) pool: Pool,

    // Any time.
    /// Entries so far; also counts signals that interrupted without an entry.
    pub(crate) entries: AtomicU64,
    /// Instant of the last entry.
    pub(crate) last_entry: AtomicU64,
    /// Ticks since the last entry that are known to have been nobody's.
    pub(crate) known_missing: AtomicU64,
    /// How many light threads wait on futexes of the program.
    pub(crate) futex_waiters: AtomicU32,
}

const _: () = assert!(core::mem::offset_of!(Host, gate) == 0);

impl Host {
    #[allow(clippy::too_many_arguments)] // One value per thing that a CPU is made of.
    pub(crate) fn new(
        index: usize,
        by_policy: ByPolicy,
        clock: Clock,
        shared: Arc<Shared>,
        text: LibraryText,
        timer: sys::Timer,
        watch: SwitchWatch,
        carrier: DispatchRecord,
        resources: Vec<String>,
    ) -> Host {
        Host {
            gate: Gate::new(),
            index,
            by_policy,
            switches_by_call: !sys::can_write_thread_pointer(),
            limits: Limits::of(&clock, &watch),
            watch,
            clock: Cell::new(clock),
            shared,
            text,
            current: Cell::new(core::ptr::null()),
            record: SchedulerRecord::new(core::ptr::null_mut()),
            carrier: RecordCell::new(carrier),
            reason: Cell::new(Reason::Idle(None)),
            timer,
            armed: Cell::new(None),
            deferral: Deferral::new(),
            defers: forgo::keeps_deferral(),
            wake_margin_ns: Cell::new(WAKE_MARGIN_NS),
            counters: Cell::new(CpuCounters::default()),
            kicks: Cell::new(Kicks::default()),
            uring: UnsafeCell::new(None),
            lights: UnsafeCell::new(Vec::new()),
            resources,
            pool: Pool::default(),
            entries: AtomicU64::new(0),
            last_entry: AtomicU64::new(0),
            known_missing: AtomicU64::new(0),
            futex_waiters: AtomicU32::new(0),
        }
    }

    /// The clock of the run.
    #[inline]
    pub(crate) fn clock(&self) -> Clock {
        self.clock.get()
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

    /// What the timer is armed for. Gate closed.
    #[inline]
    pub(crate) fn armed_for(&self) -> Option<Instant> {
        self.armed.get()
    }

    /// The timer has fired, or may have. Gate closed.
    #[inline]
    pub(crate) fn timer_fired(&self) -> Option<Instant> {
        self.armed.take()
    }

    /// Makes sure that an entry happens at `due` (or a little earlier). Gate closed. A timer that
    /// is armed for an earlier instant stays: it costs one needless entry instead of a system call
    /// now, and that entry arms again (rule 6 of design note 0004).
    #[inline]
    pub(crate) fn arm(&self, due: Instant, now: Instant) {
        let armed = self.armed.get();
        if !armed.is_some_and(|armed| armed <= due && armed > now) {
            self.set_timer(due);
        }
    }

    /// [`Host::arm`] for a thread that looks at the clock itself and comes in at `due`: the timer
    /// stands behind it, `within` later. It is set again when less than half of that is left, not
    /// at each entry. Gate closed.
    #[cold]
    pub(crate) fn arm_behind(&self, due: Instant, within: Span, now: Instant) {
        let last = due.saturating_add(within);
        let left = |armed: Instant| armed.since(now).ticks();
        let stays = |armed: Instant| armed <= last && left(armed) > within.ticks() / 2;
        if !self.armed.get().is_some_and(stays) {
            self.set_timer(last);
        }
    }

    /// The timer counts from the call, so the entry's reading of the clock is too old here.
    #[cold]
    fn set_timer(&self, due: Instant) {
        let now = self.clock().now();
        self.armed.set(Some(due.max(now)));
        self.timer.arm(self.clock().ns(due.since(now).ticks()));
        self.count(|c| c.timer_settings += 1);
    }

    /// A preemption could not be taken now: ask again soon. Gate closed.
    pub(crate) fn retry(&self) {
        self.retry_in(RETRY_NS);
    }

    /// [`Host::retry`] after so many nanoseconds. Gate closed.
    pub(crate) fn retry_in(&self, ns: u64) {
        let now = self.clock().now();
        let ticks = self.clock().ticks(ns);
        self.armed
            .set(Some(Instant::from_ticks(now.ticks().saturating_add(ticks))));
        self.timer.arm(ns);
    }

    /// Notes that a preemption is being deferred, for how long so far in nanoseconds. Gate closed.
    pub(crate) fn defer(&self, now: Instant) -> u64 {
        let (waited, is_new) = self.deferral.go_on(now);
        if is_new {
            self.count(|c| c.deferrals += 1);
        }
        self.clock().ns(waited.ticks())
    }

    /// Puts the distribution of the deferrals into the counters. Gate closed, after the run.
    pub(crate) fn count_deferrals(&self) {
        let ns = |span: Span| self.clock().ns(span.ticks());
        self.count(|c| {
            c.deferred_p50_ns = ns(self.deferral.quantile(500));
            c.deferred_p99_ns = ns(self.deferral.quantile(990));
            c.deferred_max_ns = ns(self.deferral.longest());
        });
    }

    /// Whether nothing has come up that an entry would have to look into, as far as flags tell it:
    /// a signal that found the gate closed, somebody else on this CPU, mail, bells, time that was
    /// nobody's, a deferral, threads to be woken in company, calls that are on their way. Gate
    /// closed. The long way takes note of the signal; an entry that did not would be followed by
    /// the next, again and again.
    #[inline]
    pub(crate) fn is_undisturbed(&self) -> bool {
        // SAFETY: gate closed; the borrow ends here.
        let uring = unsafe { &*self.uring.get() };
        !self.gate.has_pending()
            && !self.watch.has_news()
            && self.shared.post.is_quiet(self.index)
            && self.known_missing.load(Ordering::Relaxed) == 0
            && !self.deferral.is_open()
            && self.pool.waking.get().is_null()
            && !uring.as_ref().is_some_and(Uring::is_busy)
    }

    /// Before the rings are read: others may kick again, unless they have done so too often. Gate
    /// closed.
    pub(crate) fn hear_kick(&self, now: Instant) {
        if !self.shared.post.is_signalled(self.index) {
            return;
        }
        let before = self.kicks.get();
        let mut kicks = before;
        if kicks.hear(now, self.limits.kick_window) {
            self.shared.post.acknowledge(self.index);
            self.count(|c| c.kicks += 1);
        } else if before.due().is_none() {
            self.count(|c| c.kicks_held += 1);
        }
        self.kicks.set(kicks);
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
    pub(crate) fn book_calmly(&self, now: Instant, light: &Light, executed: u64) {
        self.last_entry.store(now.ticks(), Ordering::Relaxed);
        self.count_entry();
        light.add_executed(executed);
        light.tell(None);
    }

    /// Takes what [`Host::note_missing`] noted. Gate closed.
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
        self.known_missing.fetch_add(ticks, Ordering::Relaxed);
    }
}

/// A light thread that carries direct threads is left with the storage of one of those: so that is
/// what it has to come back to.
#[cold]
fn correct_thread_pointer(light: &Light, leaves: *const Light) {
    if core::ptr::eq(light, leaves) {
        // SAFETY: the record of the running thread, behind the gate; no other reference is alive.
        unsafe { (*light.context()).set_thread_pointer(read_thread_pointer()) };
    }
}

/// Leaves the running thread (or the carrier) for `target` (null: the carrier); returns when
/// somebody comes back.
///
/// # Safety
/// The gate of `host` is closed, the caller runs on its kernel thread, `target` is null or a light
/// thread of this host that can be resumed, and no reference into scheduler state is alive.
#[inline(never)]
pub(crate) unsafe fn switch_to(host: *const Host, target: *const Light) {
    // SAFETY: as the caller vouches.
    unsafe { switch_here(host, target) }
}

/// [`switch_to`] inlined, for the entries through which most switches go: the compiler saves what
/// is alive there and nothing else.
///
/// # Safety
/// As for [`switch_to`].
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) unsafe fn switch_here(host: *const Host, target: *const Light) {
    // SAFETY: the host outlives the run; the reference ends before the switch.
    let (record, from, to, by_call) = unsafe {
        let host = &*host;
        let current = host.current.replace(target);
        if current == target {
            return;
        }
        let context = |light: *const Light| match light.as_ref() {
            Some(light) => {
                if !light.direct.get().is_null() {
                    correct_thread_pointer(light, current);
                }
                light.context()
            }
            None => host.carrier.get(),
        };
        let record = &raw const host.record;
        (
            record,
            context(current),
            context(target),
            host.switches_by_call,
        )
    };
    // SAFETY: as the caller vouches.
    unsafe { leave(record, from, to, by_call) };
}

/// Leaves the running thread for another one, of which both are known: [`switch_to`] without a
/// look for the carrier.
///
/// # Safety
/// As for [`switch_to`]; `from` is the running light thread, `to` another one.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) unsafe fn switch_between(host: *const Host, from: *const Light, to: *const Light) {
    // SAFETY: the host and its threads outlive the run; the references end before the switch.
    let (record, from, to, by_call) = unsafe {
        let (host, from) = (&*host, &*from);
        host.current.set(to);
        if !from.direct.get().is_null() {
            correct_thread_pointer(from, from);
        }
        let by_call = host.switches_by_call;
        (
            &raw const host.record,
            from.context(),
            (*to).context(),
            by_call,
        )
    };
    // SAFETY: as the caller vouches.
    unsafe { leave(record, from, to, by_call) };
}

/// # Safety
/// The gate is closed; `from` is the record of the running thread or the carrier, `to` that of
/// another one of this CPU, and no reference into scheduler state is alive.
#[cfg_attr(not(debug_assertions), inline(always))]
unsafe fn leave(
    record: *const SchedulerRecord,
    from: *mut DispatchRecord,
    to: *mut DispatchRecord,
    by_call: bool,
) {
    // SAFETY: a look at our own data, with the gate closed.
    let resumable = unsafe { (*to).is_resumable() };
    debug_assert!(resumable, "INV-1: the target is suspended");
    // SAFETY: (1) gate closed, `from` is the record of the running thread (INV-7, by the caller);
    // (2) `to` is in store (INV-2, INV-5) and belongs to this CPU; (3) only raw pointers are alive
    // here; (4) the way is the one that the kernel allows.
    let outcome = unsafe {
        let epoch = (*record).epoch();
        if by_call {
            dispatch_by_system_call(record, from, to, epoch)
        } else {
            dispatch(record, from, to, epoch)
        }
    };
    debug_assert_eq!(
        outcome,
        Dispatched::Away,
        "behind the gate nothing becomes stale"
    );
}
