//! Light threads: a body on a stack of its own, with thread-local storage of its own.
//!
//! INV-L1: a light thread's record, stack and storage outlive its last instruction. Threads that
//! are `Finished` are freed when the run ends; one that was abandoned in the middle of a job is
//! leaked, because other threads may hold references into its stack.

use core::cell::{Cell, UnsafeCell};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use punctual_kern::{Ceiling, JobStamp, JobView, Refusal};
use punctual_linux_io::Backoff;
use punctual_model::{Instant, ThreadId};
use punctual_switch::{Control, DispatchRecord, RecordCell};

use crate::record::body::{Body, JobInfo};
use crate::record::direct::DirectScheduler;
use crate::record::library_wait::LibraryWait;
use crate::record::name::Name;
use crate::record::per_cpu::PerCpu;
use crate::record::pool::{Pooled, Stage};
use crate::record::thread_group::ThreadGroup;
use crate::record::wait_queue::WaitNode;
use crate::shared::pending::{Link, Linked};
use crate::storage::stack::Stack;
use crate::storage::tls::{Library, Storage};
use crate::sys;

/// Where a light thread is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    New,
    /// Suspended between two jobs, with nothing of the body on its stack.
    Between,
    /// In a job.
    Inside,
    /// In a job, suspended by a call that can end it by unwinding.
    Resting,
    /// The run is over, and on its way out it waits for a lock of the program.
    Held,
    /// Ended in the middle of a call, with all of its frames: others may know what lies there.
    Left,
    Finished,
}

/// One light thread. What a switch looks at comes first, in as few cache lines as it fits into.
#[repr(C)]
pub(crate) struct Light {
    context: RecordCell,

    // The second cache line.
    host: *const PerCpu,
    id: Cell<ThreadId>,
    /// The scheduler that it carries; null: none. Set and cleared by itself, in one store.
    direct: Cell<*const &'static dyn DirectScheduler>,
    /// Of which job `job` is.
    pub(crate) stamp: Cell<JobStamp>,
    /// The word of `stamp`, if a switch to it has nothing else to look at: it was not cancelled,
    /// and has neither asked for a resource nor promised checkpoints. Else that of no stamp. Any
    /// time.
    usual: AtomicU64,
    /// Ticks executed up to the last entry. Any time.
    pub(crate) executed: AtomicU64,
    /// The resource that it asked for last; [`NOTHING`]: none. Any time.
    pub(crate) asked: AtomicU32,

    // One word, with the gate closed: see `is_plain`.
    /// Nobody runs in its place.
    stands_alone: Cell<bool>,
    /// Its run, its job or the thread may have to end: where this is not set none of them has.
    pub(crate) may_end: Cell<bool>,
    /// `refused` may say something.
    has_refusal: Cell<bool>,
    /// It wants another urgency than the core knows of.
    has_news: Cell<bool>,

    /// Gate closed, as all that is not of any time.
    pub(crate) phase: Cell<Phase>,
    /// The run is over: end at the next opportunity.
    pub(crate) quit: Cell<bool>,
    /// The job is to end at its next scheduling point. Any time.
    pub(crate) stop: AtomicBool,

    /// Why its last request was refused, if it was.
    pub(crate) refused: Cell<Option<Refusal>>,
    /// The group that runs in its place while it has the processor.
    group: Cell<Option<&'static ThreadGroup>>,
    /// Whether it holds what it asked for, as of its last entry. Any time.
    pub(crate) granted: AtomicBool,
    /// It passes a checkpoint at least once in so many ticks; 0: it has not promised that. Any
    /// time.
    pub(crate) promise: AtomicU64,
    /// At which checkpoint to come in, if it has: the first at this instant or later. Any time.
    pub(crate) due: AtomicU64,
    /// When it last read the clock in a loop that does nothing else; 0: it is in no such loop. Any
    /// time.
    pub(crate) looked: AtomicU64,
    /// Where it waits.
    pub(crate) wait_node: WaitNode,

    /// Changed with the gate closed, by those of its own CPU.
    name: UnsafeCell<Name>,
    stack: Stack,
    // Never read again, but must live as long as the thread.
    _storage: Storage,
    library: Library,
    /// Taken by the thread itself.
    body: UnsafeCell<Option<Body>>,
    /// What it is in the pool.
    pub(crate) pooled: Pooled,
    /// The job it works on. What it received and has left are those of the entry at which
    /// something else about it changed.
    pub(crate) job: Cell<Option<JobView>>,
    /// It waits in a call that cannot be unwound: for the kernel, or for a lock of the program.
    pub(crate) awaits: Cell<bool>,
    /// How many calls it is in that must not be left half done ([`crate::held_alive`]).
    pub(crate) held_alive: Cell<u32>,
    /// The run is over when the body has returned from the present job ([`crate::end_run`]).
    pub(crate) ends_run: Cell<bool>,
    /// Its wait for a lock inside the C library, if it is in one.
    pub(crate) library_wait: LibraryWait,
    /// How often it was found waiting inside the kernel, and in which call, if that was known.
    waits: Cell<(u64, Option<i64>)>,
    /// How often its calls are tried before they wait, by [`punctual_linux_io::Direction`].
    pub(crate) backoff: [Backoff; 2],
    /// What its panic said.
    panic: UnsafeCell<Option<String>>,
    /// So many calls of it, of its direct threads too, contain panics and tell them. Any time.
    pub(crate) contains: AtomicU32,
    /// The fault after which it went on there: the signal and the address.
    pub(crate) fault: Cell<(i32, u64)>,
    /// The address of the futex it waits for; 0: none, or it has been woken. Any time.
    pub(crate) waits_for: AtomicUsize,
}

const _: () = assert!(core::mem::offset_of!(Light, host) == 64);
const _: () = assert!(core::mem::offset_of!(Light, refused) == 128);
const _: () = assert!(core::mem::offset_of!(Light, stands_alone) % 4 == 0);
const _: () = assert!(
    core::mem::offset_of!(Light, has_news) == core::mem::offset_of!(Light, stands_alone) + 3
);

impl Linked for Light {
    fn link(&self) -> &Link<Light> {
        &self.wait_node.link
    }
}

/// No resource.
pub(crate) const NOTHING: u32 = u32::MAX;

impl Light {
    /// A thread that is ready to be started on the host's kernel thread, which must be the caller.
    /// It begins with `main`, which gets this record.
    #[allow(clippy::too_many_arguments)] // One value per thing that a thread is made of.
    pub(crate) fn new(
        host: *const PerCpu,
        id: ThreadId,
        name: &str,
        body: Option<Body>,
        stack: Stack,
        storage: Storage,
        library: Library,
        main: unsafe extern "C" fn(*mut u8) -> !,
    ) -> Box<Light> {
        let thread_pointer = storage.thread_pointer();
        let top = stack.top();
        let mut light = Box::new(Light {
            context: RecordCell::new(DispatchRecord::running(thread_pointer, Control::Kept)),
            host,
            id: Cell::new(id),
            name: UnsafeCell::new(Name::new(name)),
            stack,
            _storage: storage,
            library,
            wait_node: WaitNode::new(),
            pooled: Pooled::new(match body {
                Some(_) => Stage::NotPooled,
                None => Stage::Free,
            }),
            body: UnsafeCell::new(body),
            phase: Cell::new(Phase::New),
            direct: Cell::new(core::ptr::null()),
            job: Cell::new(None),
            stamp: Cell::new(JobStamp::NONE),
            usual: AtomicU64::new(JobStamp::NO_WORD),
            quit: Cell::new(false),
            awaits: Cell::new(false),
            held_alive: Cell::new(0),
            ends_run: Cell::new(false),
            library_wait: LibraryWait::default(),
            waits: Cell::new((0, None)),
            backoff: [Backoff::new(), Backoff::new()],
            group: Cell::new(None),
            stands_alone: Cell::new(true),
            has_refusal: Cell::new(false),
            has_news: Cell::new(false),
            refused: Cell::new(None),
            panic: UnsafeCell::new(None),
            contains: AtomicU32::new(0),
            fault: Cell::new((0, 0)),
            executed: AtomicU64::new(0),
            looked: AtomicU64::new(0),
            promise: AtomicU64::new(0),
            due: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            may_end: Cell::new(false),
            waits_for: AtomicUsize::new(0),
            asked: AtomicU32::new(NOTHING),
            granted: AtomicBool::new(false),
        });
        let argument = (&raw mut *light).cast();
        // SAFETY: the stack is fresh and large enough, the storage is a valid control block, and
        // both live in the record, which outlives the thread (INV-L1).
        let context =
            unsafe { DispatchRecord::prepare(top, thread_pointer, Control::Kept, main, argument) };
        light.context = RecordCell::new(context);
        light
    }

    /// The scheduler that it carries, with threads of its own.
    #[inline]
    pub(crate) fn direct(&self) -> Option<&'static dyn DirectScheduler> {
        // SAFETY: the word is set while the scheduler and the reference to it live.
        unsafe { self.direct.get().as_ref() }.copied()
    }

    /// It carries this scheduler from now on. Called by the thread itself, which clears it before
    /// the reference ends.
    pub(crate) fn set_direct(&self, scheduler: &&dyn DirectScheduler) {
        self.direct.set(core::ptr::from_ref(scheduler).cast());
    }

    /// It carries none any more.
    pub(crate) fn clear_direct(&self) {
        self.direct.set(core::ptr::null());
    }

    /// The group that runs in its place while it has the processor.
    #[inline]
    pub(crate) fn group(&self) -> Option<&'static ThreadGroup> {
        self.group.get()
    }

    /// Somebody runs in its place from now on, or nobody. Called by the thread itself.
    pub(crate) fn set_group(&self, group: Option<&'static ThreadGroup>) {
        self.stands_alone.set(group.is_none());
        self.group.set(group);
    }

    /// How urgent it wants to be at least, from now on. Whether the core has been told otherwise
    /// before. Gate closed.
    #[inline]
    pub(crate) fn set_ceiling(&self, ceiling: Option<Ceiling>) -> bool {
        let told = self.wait_node.set_ceiling(ceiling);
        self.has_news.set(ceiling != told);
        told.is_some()
    }

    /// Its wish, if the core knows another; from now on the core knows it. Gate closed.
    pub(crate) fn take_ceiling(&self) -> Option<Option<Ceiling>> {
        self.has_news.get().then(|| {
            self.has_news.set(false);
            self.wait_node.tell_ceiling()
        })
    }

    /// Whether it wants another urgency than the core knows of. Gate closed.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        self.has_news.get()
    }

    /// Nothing about it is left of the thread before. Gate closed.
    pub(crate) fn clear(&self) {
        self.has_news.set(false);
        self.wait_node.clear();
    }

    /// Whether an entry of it has to look at nothing but the event: nobody runs in its place, it
    /// need not end, was refused nothing, and is as urgent as the core knows. Gate closed. (One of
    /// the flags is set as a rule: a word that is compared with zero is looked at byte by byte.)
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn is_plain(&self) -> bool {
        let (alone, may_end) = (self.stands_alone.get().into(), self.may_end.get().into());
        let (refusal, news) = (self.has_refusal.get().into(), self.has_news.get().into());
        u32::from_le_bytes([alone, may_end, refusal, news]) == u32::from_le_bytes([1, 0, 0, 0])
    }

    pub(crate) fn context(&self) -> *mut DispatchRecord {
        self.context.get()
    }

    pub(crate) fn id(&self) -> ThreadId {
        self.id.get()
    }

    /// Waits by `entry`, in a call that cannot be unwound. Called by the thread itself.
    pub(crate) fn wait_by(&self, entry: impl FnOnce()) {
        self.awaits.set(true);
        entry();
        self.awaits.set(false);
    }

    /// Whether it waits in a call that cannot be unwound, a lock of the C library included.
    pub(crate) fn waits_inside(&self) -> bool {
        self.awaits.get() || self.library_wait.is_open()
    }

    /// Whether its CPU's gate is closed: it is inside the scheduler, or its run is over.
    pub(crate) fn has_gate_closed(&self) -> bool {
        // SAFETY: the host outlives its threads.
        unsafe { (*self.host).gate.is_closed() }
    }

    /// Whether it is in a call that must not be left half done.
    pub(crate) fn is_held_alive(&self) -> bool {
        self.held_alive.get() > 0
    }

    /// Whether it is of the pool and waits for something to do.
    pub(crate) fn is_free(&self) -> bool {
        self.pooled.stage.get() == Stage::Free
    }

    /// It is another thread from now on. Gate closed.
    pub(crate) fn set_id(&self, id: ThreadId) {
        self.id.set(id);
        self.stamp.set(JobStamp::NONE);
        self.asked.store(NOTHING, Ordering::Relaxed);
        self.look_again();
    }

    /// Whether a switch to it, whose job has this stamp, has nothing to tell it, and no more than
    /// the timer to see to.
    #[inline]
    pub(crate) fn is_usual(&self, stamp: JobStamp) -> bool {
        self.usual.load(Ordering::Relaxed) == stamp.word()
    }

    /// The next switch to it looks at what it was told, and at what it asked and promised. Any
    /// time; by the thread itself before it changes that, and behind it.
    #[inline]
    pub(crate) fn look_again(&self) {
        self.usual.store(JobStamp::NO_WORD, Ordering::Relaxed);
    }

    /// It asks for a resource. By the thread itself.
    pub(crate) fn ask(&self, resource: u32) {
        self.look_again();
        self.asked.store(resource, Ordering::Relaxed);
        self.look_again();
        self.refused.set(None);
    }

    /// Somebody wants it to end, unless it does. Gate closed.
    pub(crate) fn cancel(&self) {
        self.wait_node.cancelled.set(!self.pooled.ending.get());
        self.look_again();
        self.may_end.set(true);
    }

    /// It has been told of all. Gate closed.
    pub(crate) fn note_usual(&self) {
        let is_usual = !self.wait_node.cancelled.get()
            && self.asked.load(Ordering::Relaxed) == NOTHING
            && self.promise.load(Ordering::Relaxed) == 0;
        let word = match is_usual {
            true => self.stamp.get().word(),
            false => JobStamp::NO_WORD,
        };
        self.usual.store(word, Ordering::Relaxed);
    }

    /// Gate closed, while nobody else can run on this record.
    pub(crate) fn set_name(&self, name: &str) {
        // SAFETY: one kernel thread with its gate closed: nobody reads it meanwhile.
        unsafe { *self.name.get() = Name::new(name) };
    }

    pub(crate) fn name(&self) -> &str {
        // SAFETY: it changes only while no thread runs on this record.
        unsafe { (*self.name.get()).as_str() }
    }

    pub(crate) fn host(&self) -> *const PerCpu {
        self.host
    }

    /// What it is to execute; once.
    ///
    /// # Safety
    /// The caller is the thread itself.
    pub(crate) unsafe fn take_body(&self) -> Option<Body> {
        // SAFETY: the thread alone looks at its body, and this borrow ends here.
        unsafe { (*self.body.get()).take() }
    }

    pub(crate) fn library(&self) -> &Library {
        &self.library
    }

    pub(crate) fn has_on_stack(&self, pointer: u64) -> bool {
        self.stack.contains(pointer)
    }

    pub(crate) fn stack(&self) -> &Stack {
        &self.stack
    }

    pub(crate) fn guards(&self, address: u64) -> bool {
        self.stack.guards(address)
    }

    /// It was found waiting inside the kernel, where it stops its CPU. Gate closed.
    pub(crate) fn note_wait(&self, call: Option<i64>) {
        let (times, known) = self.waits.get();
        self.waits.set((times + 1, call.or(known)));
    }

    /// How often it was found so, and in which call, if that was known.
    pub(crate) fn waits(&self) -> (u64, Option<i64>) {
        self.waits.get()
    }

    /// What its panic said; only after the thread has finished.
    pub(crate) fn take_panic(&self) -> Option<String> {
        // SAFETY: the thread has finished or is over, so nobody else looks at it.
        unsafe { (*self.panic.get()).take() }
    }

    /// What its panic said. Called by the thread itself.
    pub(crate) fn said(&self) -> String {
        // SAFETY: the thread has not finished, so only it looks here.
        unsafe { (*self.panic.get()).clone().unwrap_or_default() }
    }

    /// The fault after which it went on at its recovery, in words.
    pub(crate) fn fault_in_words(&self, of: &str) -> String {
        let (signal, address) = self.fault.get();
        format!("{of} {} at {address:#x}", sys::fault_name(signal))
    }

    /// Says what a panic that the thread survived said. Called by the thread itself.
    pub(crate) fn note_panic(&self, message: String) {
        // SAFETY: the thread has not finished, so only it looks here.
        unsafe { *self.panic.get() = Some(message) };
    }

    /// Why its request was refused, if it was. Hardly any is, and a word that has just been written
    /// in part would be read here as a whole: so it is only copied when there is something to say.
    #[inline]
    pub(crate) fn tell(&self, refused: Option<Refusal>) {
        if refused.is_some() || self.has_refusal.get() {
            self.refused.set(refused);
            self.has_refusal.set(refused.is_some());
        }
    }

    /// Books executed ticks. Gate closed: nobody else writes the word, so it needs no atomic
    /// addition.
    #[inline]
    pub(crate) fn add_executed(&self, ticks: u64) {
        let before = self.executed.load(Ordering::Relaxed);
        self.executed
            .store(before.wrapping_add(ticks), Ordering::Relaxed);
    }

    /// The instant.
    pub(crate) fn now(&self) -> Instant {
        // SAFETY: the host outlives its threads.
        unsafe { (*self.host).clock().now() }
    }

    pub(crate) fn job_info(&self) -> JobInfo {
        // SAFETY: the host outlives its threads.
        let clock = unsafe { (*self.host).clock() };
        let job = self.job.get();
        let deadline = job.map_or(Instant::MAX, |job| job.absolute_deadline);
        JobInfo {
            index: job.map_or(0, |job| job.index),
            arrival_ns: clock
                .frequency()
                .ns_down(job.map_or(0, |job| job.arrival.ticks())),
            absolute_deadline_ns: (deadline != Instant::MAX)
                .then(|| clock.frequency().ns_down(deadline.ticks())),
        }
    }
}

/// Ticks that the running thread had executed at `now`, a reading of its own, less what is known to
/// have been nobody's. One subtraction; `None` when an entry came in between.
pub(crate) fn executed_at(light: &Light, now: Instant) -> Option<u64> {
    // SAFETY: the host outlives its threads.
    let host = unsafe { &*light.host };
    let entries = host.entries.load(Ordering::Relaxed);
    let before = light.executed.load(Ordering::Relaxed);
    let last = Instant::from_ticks(host.last_entry.load(Ordering::Relaxed));
    let missing = host.known_missing.load(Ordering::Relaxed);
    if last > now || host.entries.load(Ordering::Relaxed) != entries {
        return None;
    }
    Some(before + now.since(last).ticks().saturating_sub(missing))
}

/// [`executed_at`] this moment.
pub(crate) fn executed_now(light: &Light) -> u64 {
    loop {
        // SAFETY: the host outlives its threads.
        let now = unsafe { (*light.host).clock().now() };
        if let Some(executed) = executed_at(light, now) {
            return executed;
        }
    }
}
