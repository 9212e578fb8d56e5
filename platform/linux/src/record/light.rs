//! Light threads: a body on a stack of its own, with thread-local storage of its own.
//!
//! ```text
//!   New --carrier starts it--> Between --job--> Inside --done--> Between ... --run ends-->
//!   Finished
//!                                                  |  (a panic ends the thread: Finished)
//!                                                  +--run ends in the middle of a job: abandoned
//! ```
//!
//! INV-L1: a light thread's record, stack and storage outlive its last instruction. Threads that
//! are `Finished` are freed when the run ends; one that was abandoned in the middle of a job is
//! leaked, because other threads may hold references into its stack.

use core::any::Any;
use core::cell::{Cell, UnsafeCell};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::panic::{AssertUnwindSafe, catch_unwind};

use punctual_kern::{Event, JobStamp, JobView, Refusal};
use punctual_model::{Instant, ThreadId};
use punctual_switch::{Control, DispatchRecord, RecordCell};

use crate::attempt::Eagerness;
use crate::crew::Crew;
use crate::direct::Group;
use crate::host::{ByPolicy, Host, switch_to};
use crate::job::{Body, JobInfo, StopJob, promise};
use crate::local::{current_light, local};
use crate::name::Name;
use crate::news::{Link, Linked};
use crate::pool::{Pooled, Stage, serve};
use crate::seat::Seat;
use crate::stack::Stack;
use crate::tls::{Library, Storage};

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
    host: *const Host,
    id: Cell<ThreadId>,
    /// The scheduler outside the core that it carries; null: none. Set and cleared by itself.
    pub(crate) direct: Cell<*const Group>,
    /// Who runs in its place while it has the processor.
    pub(crate) crew: Cell<Option<&'static Crew>>,
    /// Of which job `job` is.
    pub(crate) stamp: Cell<JobStamp>,
    /// Ticks executed up to the last entry. Any time.
    pub(crate) executed: AtomicU64,
    /// The resource that it asked for last; [`NOTHING`]: none. Any time.
    pub(crate) asked: AtomicU32,
    /// Gate closed, as all that is not of any time.
    pub(crate) phase: Cell<Phase>,
    /// The run is over: end at the next opportunity.
    pub(crate) quit: Cell<bool>,
    /// The job is to end at its next scheduling point. Any time.
    pub(crate) stop: AtomicBool,
    /// Whether it holds what it asked for, as of its last entry. Any time.
    pub(crate) granted: AtomicBool,

    /// Why its last request was refused, if it was.
    pub(crate) refused: Cell<Option<Refusal>>,
    /// It passes a checkpoint at least once in so many ticks; 0: it has not promised that. Any
    /// time.
    pub(crate) promise: AtomicU64,
    /// At which checkpoint to come in, if it has: the first at this instant or later. Any time.
    pub(crate) due: AtomicU64,
    /// Where it waits.
    pub(crate) seat: Seat,

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
    /// How many calls it is in that must not be left half done ([`held_alive`]).
    held_alive: Cell<u32>,
    /// The run is over when the body has returned from the present job ([`end_run`]).
    ends_run: Cell<bool>,
    /// How often in a row it was found waiting for a lock inside the C library.
    pub(crate) lock_looks: Cell<u32>,
    /// How often it was found waiting inside the kernel, and in which call, if that was known.
    waits: Cell<(u64, Option<i64>)>,
    /// Whether its calls are tried before they wait, by [`crate::sys::calls::Direction`].
    pub(crate) eagerness: [Eagerness; 2],
    /// What its panic said.
    panic: UnsafeCell<Option<String>>,
    /// The address of the futex it waits for; 0: none, or it has been woken. Any time.
    pub(crate) waits_for: AtomicUsize,
}

const _: () = assert!(core::mem::offset_of!(Light, host) == 64);
const _: () = assert!(core::mem::offset_of!(Light, refused) == 128);

impl Linked for Light {
    fn link(&self) -> &Link<Light> {
        &self.seat.link
    }
}

/// No resource.
pub(crate) const NOTHING: u32 = u32::MAX;

impl Light {
    /// A thread that is ready to be started on the host's kernel thread, which must be the caller.
    pub(crate) fn new(
        host: *const Host,
        id: ThreadId,
        name: &str,
        body: Option<Body>,
        stack: Stack,
        storage: Storage,
        library: Library,
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
            seat: Seat::new(),
            pooled: Pooled::new(match body {
                Some(_) => Stage::Planned,
                None => Stage::Free,
            }),
            body: UnsafeCell::new(body),
            phase: Cell::new(Phase::New),
            direct: Cell::new(core::ptr::null()),
            job: Cell::new(None),
            stamp: Cell::new(JobStamp::NONE),
            quit: Cell::new(false),
            awaits: Cell::new(false),
            held_alive: Cell::new(0),
            ends_run: Cell::new(false),
            lock_looks: Cell::new(0),
            waits: Cell::new((0, None)),
            eagerness: [Eagerness::new(), Eagerness::new()],
            crew: Cell::new(None),
            refused: Cell::new(None),
            panic: UnsafeCell::new(None),
            executed: AtomicU64::new(0),
            promise: AtomicU64::new(0),
            due: AtomicU64::new(0),
            stop: AtomicBool::new(false),
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
        self.awaits.get() || self.lock_looks.get() > 0
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

    pub(crate) fn host(&self) -> *const Host {
        self.host
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

    /// Says what a panic that the thread survived said. Called by the thread itself.
    pub(crate) fn note_panic(&self, message: String) {
        // SAFETY: the thread has not finished, so only it looks here.
        unsafe { *self.panic.get() = Some(message) };
    }

    /// Why its request was refused, if it was. Hardly any is, and a word that has just been written
    /// in part would be read here as a whole: so it is only copied when there is something to say.
    #[inline]
    pub(crate) fn tell(&self, refused: Option<Refusal>) {
        if refused.is_some() || self.refused.get().is_some() {
            self.refused.set(refused);
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

/// The first function on a light thread's stack. Entered and left with the gate closed.
unsafe extern "C" fn main(argument: *mut u8) -> ! {
    // SAFETY: the argument is this thread's own record (INV-L1).
    let light = unsafe { &*argument.cast::<Light>() };
    local(|l| {
        l.host.set(light.host);
        l.light.set(light);
    });
    light.library.begin_thread();
    warm_up();
    light.phase.set(Phase::Between);
    // SAFETY: gate closed; the carrier waits.
    unsafe { switch_to(light.host, core::ptr::null()) };
    if light.pooled.stage.get() != Stage::Planned {
        serve(light);
    }
    // SAFETY: nobody else takes the body.
    let body = unsafe { (*light.body.get()).take() };
    if let Some(mut body) = body.filter(|_| !light.quit.get()) {
        let message = work(light, &mut body);
        // The body's own destructor may panic too; that must not leave this stack.
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(body)));
        let dropped = dropped.err().map(|payload| describe(payload.as_ref()));
        if let Some(message) = message.or(dropped) {
            light.note_panic(message);
        }
    }
    light.pooled.ending.set(true);
    light.stop.store(false, Ordering::Relaxed);
    promise(light, 0);
    light.library.end_thread();
    finish(light)
}

/// Runs jobs until the run or the thread ends; returns what a panic said. Gate: closed on entry,
/// open on return.
fn work(light: &Light, body: &mut Body) -> Option<String> {
    open_gate(light.host);
    while !light.quit.get() {
        light.phase.set(Phase::Inside);
        let info = light.job_info();
        let result = catch_unwind(AssertUnwindSafe(|| body(&info)));
        match result {
            Err(payload) if !payload.is::<StopJob>() => return Some(describe(payload.as_ref())),
            _ if light.quit.get() => break,
            _ => {
                light.phase.set(Phase::Between);
                end_run_if_asked(light);
                request(light, Event::Complete);
            }
        }
    }
    None
}

/// Ends the calling thread where it is, without unwinding, because the run is over. Its stack and
/// its storage stay, as those of a thread that is abandoned: others, on CPUs that have not ended
/// yet, may have been lent what lies there. Gate closed (by the carrier).
pub(crate) fn leave(light: &Light) -> ! {
    light.phase.set(Phase::Left);
    loop {
        // SAFETY: gate closed; the carrier does not come back.
        unsafe { switch_to(light.host, core::ptr::null()) };
    }
}

/// Ends for good. Gate: open, unless the run is over (then the carrier has closed it).
fn finish(light: &Light) -> ! {
    // SAFETY: the host outlives its threads.
    let gate = unsafe { &(*light.host).gate };
    if !light.quit.get() {
        gate.close();
        light.phase.set(Phase::Finished);
        end_run_if_asked(light);
        // SAFETY: gate closed; `enter` picks another thread and never this one again.
        unsafe { ((*light.host).by_policy.enter)(light.host, Event::Exit) };
    }
    light.phase.set(Phase::Finished);
    loop {
        // SAFETY: gate closed; the carrier frees this stack afterwards and does not come back.
        unsafe { switch_to(light.host, core::ptr::null()) };
    }
}

/// Ends the run as soon as the body of the calling light thread is left, by return or by panic. A
/// body that raised the stop flag itself could be preempted before it returns, and the run would
/// end with this thread in the middle of its job: abandoned, though its work is done. Does nothing
/// outside of a run.
pub fn end_run() {
    if let Some(light) = current_light() {
        light.ends_run.set(true);
    }
}

/// Calls `call`, during which [`crate::Child::abandon`] refuses to take the calling light thread:
/// it has something that the caller of `abandon` does not know of and will need. O(1) beside it.
pub fn held_alive<R>(call: impl FnOnce() -> R) -> R {
    struct Hold(Option<&'static Light>);
    impl Drop for Hold {
        fn drop(&mut self) {
            if let Some(light) = self.0 {
                light.held_alive.set(light.held_alive.get() - 1);
            }
        }
    }
    let light = current_light();
    if let Some(light) = light {
        light.held_alive.set(light.held_alive.get() + 1);
    }
    let _hold = Hold(light);
    call()
}

/// With the body left, so that whoever is preempted here can still be ended.
fn end_run_if_asked(light: &Light) {
    if light.ends_run.get() {
        // SAFETY: the host outlives its threads.
        let shared = unsafe { &(*light.host).shared };
        shared.stop.store(true, Ordering::Relaxed);
    }
}

pub(crate) fn describe(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a message").to_owned()
}

/// Makes the first job as fast as the others: the allocator prepares its arena for this thread.
fn warm_up() {
    drop(std::hint::black_box(vec![0_u8; 4_096]));
    drop(std::hint::black_box(String::from("warm")));
}

/// Opens the gate and serves what came meanwhile (INV-8). Called on a light thread.
#[inline]
pub(crate) fn open_gate(host: *const Host) {
    loop {
        // SAFETY: the host outlives its threads; the reference ends before the next entry.
        let (pending, enter) = unsafe { ((*host).gate.open(), (*host).by_policy.enter) };
        if !pending {
            return;
        }
        // SAFETY: as above.
        unsafe { (*host).gate.close() };
        // SAFETY: gate closed, no reference into scheduler state is alive.
        unsafe { enter(host, Event::Tick) };
    }
}

/// Tells the scheduler something as the running thread; returns when the thread runs again.
/// Does nothing when the run is over or the caller is inside the scheduler already.
pub(crate) fn request(light: &Light, event: Event) {
    // SAFETY: gate closed (by `ask`), and nothing of the scheduler's is borrowed.
    ask(light, |host, by| unsafe { (by.enter)(host, event) });
}

/// [`request`] of [`Event::Yield`], by its own way in.
#[inline]
pub(crate) fn give_way(light: &Light) {
    // SAFETY: as in `request`.
    ask(light, |host, by| unsafe { (by.give_way)(host) });
}

#[inline(always)]
fn ask(light: &Light, enter: impl FnOnce(*const Host, ByPolicy)) {
    let host = light.host;
    // SAFETY: the host outlives its threads; the reference ends with the statement.
    let (gate, by_policy) = unsafe { (&(*host).gate, (*host).by_policy) };
    if light.quit.get() || gate.is_closed() {
        return;
    }
    gate.close();
    // Gate closed, and the references above are not used across the call in any way that assumes
    // that nothing changed: the gate is atomic.
    enter(host, by_policy);
    if light.quit.get() {
        // The carrier resumed this thread to end it: it keeps the gate closed.
        return;
    }
    open_gate(host);
}

/// The end of a counted entry of the C library at which a preemption had been put off; the entry
/// returns to `caller`. The library itself may hold a lock around such a call, so it is left first.
#[cold]
pub(crate) fn take_wanted_preemption(caller: usize) {
    local(|l| l.wanted.set(false));
    let Some(light) = current_light() else { return };
    let host = light.host;
    // SAFETY: the host outlives its threads.
    let (gate, text) = unsafe { (&(*host).gate, &(*host).text) };
    if !text.contains(caller as u64) || light.quit.get() || gate.is_closed() {
        return request(light, Event::Tick);
    }
    gate.close();
    // SAFETY: as above; the gate is closed.
    unsafe { (*host).retry() };
    open_gate(host);
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
