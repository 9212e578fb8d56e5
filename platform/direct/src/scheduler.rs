//! Making a direct scheduler, giving it threads, and running it to its end.

use core::cell::{Cell, RefCell, UnsafeCell};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use punctual_switch::instructions::read_thread_pointer;
use punctual_switch::{
    Control, DispatchRecord, Dispatched, RecordCell, SchedulerRecord, dispatch_call,
};

use crate::choice::Choice;
use crate::group::{DirectBody, DirectThread, Group, MAIN, Named, State};
use crate::platform::{
    DirectScheduler, Library, LightThread, Registration, Stack, Storage, can_write_thread_pointer,
    contain,
};
use crate::{DirectError, DirectId, GROUP, is_over};

/// What a direct scheduler did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectReport {
    /// Threads that came to their end.
    pub ended: usize,
    /// Threads that wait for somebody who will not come.
    pub blocked: usize,
    /// What panics of its threads said, each with its thread.
    pub panics: Vec<(DirectId, String)>,
    /// Dispatches that its threads decided on.
    pub dispatches: u64,
    /// How many of them a preemption made stale.
    pub stale: u64,
    /// How often a thread gave its turn to the holder of a [`super::HelpingLock`].
    pub helped: u64,
    /// How often one of its threads was preempted.
    pub preemptions: u64,
    /// Records that said something impossible, and were not believed.
    pub refused: u64,
    /// What each thread has executed, in nanoseconds, in the order of their making.
    pub executed_ns: Vec<u64>,
}

/// The number of the next scheduler; 0 is nobody's.
static NUMBERS: AtomicU64 = AtomicU64::new(1);

/// A direct scheduler; see the crate.
pub struct Scheduler {
    group: Box<Group>,
    stack_bytes: usize,
    library: Library,
}

impl core::fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let threads = self.group.threads.len() - 1;
        f.debug_struct("Scheduler")
            .field("threads", &threads)
            .finish_non_exhaustive()
    }
}

impl Scheduler {
    /// For at most this many threads, each with a stack of this many bytes, in the light thread
    /// that calls.
    ///
    /// # Errors
    /// [`DirectError::NoRun`], [`DirectError::NoThreadPointer`].
    pub fn try_new(capacity: usize, stack_bytes: usize) -> Result<Scheduler, DirectError> {
        let light = LightThread::current().ok_or(DirectError::NoRun)?;
        let library = Library::find().map_err(|_| DirectError::NoRun)?;
        if !can_write_thread_pointer() {
            return Err(DirectError::NoThreadPointer);
        }
        let pointer = read_thread_pointer();
        let cell = |_| RecordCell::new(DispatchRecord::running(pointer, Control::Kept));
        let mut threads = Vec::with_capacity(capacity + 1);
        threads.push(thread(None, None, None));
        let group = Box::new(Group {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            record: SchedulerRecord::new(core::ptr::null_mut()),
            records: (0..=capacity).map(cell).collect(),
            threads,
            light,
            clock: light.clock(),
            choice: None,
            since: AtomicU64::new(0),
            preemptions: Cell::new(0),
            refused: Cell::new(0),
            wanted: AtomicBool::new(false),
            busy: AtomicBool::new(false),
            running: Cell::new(MAIN),
            ready: RefCell::new(VecDeque::with_capacity(2 * capacity + 2)),
            named: Cell::new(Named::Nobody),
            blocked_until: Cell::new(None),
            dispatches: Cell::new(0),
            stale: Cell::new(0),
            helped: Cell::new(0),
            stopping: Cell::new(None),
        });
        group.threads[MAIN].state.set(State::Running);
        group.record.set_current(group.records[MAIN].get());
        Ok(Scheduler {
            group,
            stack_bytes,
            library,
        })
    }

    /// Adds a thread with thread-local storage of its own, which may do whatever a light thread
    /// may. It runs when [`Scheduler::run`] does.
    ///
    /// # Errors
    /// [`DirectError::Full`], [`DirectError::Memory`].
    pub fn spawn(&mut self, body: impl FnOnce() + Send + 'static) -> Result<DirectId, DirectError> {
        let out = || DirectError::Memory(std::io::ErrorKind::OutOfMemory.into());
        let storage = Storage::try_new(self.library).ok_or_else(out)?;
        let id = self.add(Box::new(body), Some(storage))?;
        self.start(id.0);
        Ok(id)
    }

    /// Adds a thread that shares the thread-local storage of the light thread: no system call and
    /// no thread pointer to write in a dispatch (note 0003 has the figures).
    ///
    /// # Errors
    /// As [`Scheduler::spawn`].
    ///
    /// # Safety
    /// The threads that share see each other's `thread_local!` values and `errno` change at every
    /// instruction. The body must use none, directly or through others: no allocation, no printing,
    /// no lock of the library, no panic that is caught.
    pub unsafe fn spawn_sharing(
        &mut self,
        body: impl FnOnce() + Send + 'static,
    ) -> Result<DirectId, DirectError> {
        self.add(Box::new(body), None)
    }

    /// Puts a choice in the place of turns, before the scheduler runs. Its threads keep it, too,
    /// and name the next thread by it.
    pub fn choose_by(&mut self, choice: Arc<Choice>) {
        self.group.choice = Some(choice);
    }

    fn add(&mut self, body: DirectBody, storage: Option<Storage>) -> Result<DirectId, DirectError> {
        let place = self.group.threads.len();
        if place >= self.group.records.len() {
            return Err(DirectError::Full);
        }
        let stack = Stack::try_new(self.stack_bytes).map_err(DirectError::Memory)?;
        let pointer = storage
            .as_ref()
            .map_or_else(read_thread_pointer, Storage::thread_pointer);
        let argument = (&raw const *self.group).cast_mut().cast();
        // SAFETY: the stack is fresh; stack, storage and group outlive the thread, or are leaked.
        let mut record =
            unsafe { DispatchRecord::prepare(stack.top(), pointer, Control::Kept, main, argument) };
        record.set_tag(place as u64);
        // SAFETY: nobody runs by this record yet.
        unsafe { *self.group.records[place].get() = record };
        self.group
            .threads
            .push(thread(Some(body), Some(stack), storage));
        self.group.ready.borrow_mut().push_back(place);
        Ok(DirectId(place))
    }

    /// Lets a new thread with storage of its own run up to its body, with no preemption: a signal
    /// does not find its CPU before the thread has written it down.
    fn start(&self, place: usize) {
        let group = &*self.group;
        group.light.without_preemption(|| {
            group.running.set(place);
            let (from, to) = (group.records[MAIN].get(), group.records[place].get());
            let epoch = group.record.epoch();
            // SAFETY: gate closed; the new thread comes back at once (see `main`).
            let outcome = unsafe { dispatch_call(&raw const group.record, from, to, epoch) };
            debug_assert_eq!(outcome, Dispatched::Away);
            group.running.set(MAIN);
        });
    }

    /// Runs until no thread can go on. On the light thread that made the scheduler.
    pub fn run(self) -> DirectReport {
        let group = &*self.group;
        let hook: &dyn DirectScheduler = group;
        let _running = Running::start(group, &hook);
        loop {
            group.threads[MAIN].state.set(State::Ready);
            group.reschedule(MAIN);
            if let Some(end) = group.stopping.take() {
                resume_unwind(end);
            }
            match group.blocked_until.get() {
                Some(until) if until > group.now() => group.light.wait_until(until),
                Some(_) => {}
                None if group.ready.borrow().is_empty() => return self.report(),
                None => {}
            }
        }
    }

    fn report(&self) -> DirectReport {
        let group = &*self.group;
        let threads = &group.threads[1..];
        let count = |over| {
            threads
                .iter()
                .filter(|t| is_over(t.state.get()) == over)
                .count()
        };
        let said =
            |(place, t): (usize, &DirectThread)| Some((DirectId(place + 1), t.panic.take()?));
        let executed = |t: &DirectThread| group.clock.ns(t.executed.get());
        DirectReport {
            ended: count(true),
            blocked: count(false),
            panics: threads.iter().enumerate().filter_map(said).collect(),
            dispatches: group.dispatches.get(),
            stale: group.stale.get(),
            helped: group.helped.get(),
            preemptions: group.preemptions.get(),
            refused: group.refused.get(),
            executed_ns: threads.iter().map(executed).collect(),
        }
    }
}

fn thread(
    body: Option<DirectBody>,
    stack: Option<Stack>,
    storage: Option<Storage>,
) -> DirectThread {
    DirectThread {
        state: Cell::new(State::Ready),
        until: Cell::new(None),
        woken: Cell::new(false),
        wants: Cell::new(core::ptr::null()),
        executed: Cell::new(0),
        unposted: AtomicU64::new(0),
        panic: Cell::new(None),
        body: UnsafeCell::new(body),
        stack,
        storage,
    }
}

/// While it lives, the signal and the calling thread know the group.
struct Running<'a> {
    _registered: Registration<'a>,
}

impl<'a> Running<'a> {
    fn start(group: &Group, hook: &'a &'a dyn DirectScheduler) -> Running<'a> {
        GROUP.set(group);
        // SAFETY: dropped with the value, which stays where it is on this thread's stack.
        let registered = unsafe { group.light.register(hook) };
        // A preemption before this is charged to the scheduler's own thread, which nobody reports.
        group.since.store(group.now().ticks(), Ordering::Relaxed);
        Running {
            _registered: registered,
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        GROUP.set(core::ptr::null());
    }
}

/// The first function on a direct thread's stack.
unsafe extern "C" fn main(argument: *mut u8) -> ! {
    // SAFETY: the argument is the group, which outlives its threads.
    let group = unsafe { &*argument.cast::<Group>() };
    let me = group.running.get();
    let thread = &group.threads[me];
    let library = Library::find().ok().filter(|_| thread.storage.is_some());
    if let Some(library) = &library {
        // SAFETY: the thread's storage is its own; the light thread outlives its scheduler.
        unsafe { group.light.bind_storage(library) };
        GROUP.set(group);
        let (from, to) = (group.records[me].get(), group.records[MAIN].get());
        let epoch = group.record.epoch();
        // SAFETY: gate closed; `start` waits.
        let _ = unsafe { dispatch_call(&raw const group.record, from, to, epoch) };
    }
    // SAFETY: nobody else takes the body.
    let body = unsafe { (*thread.body.get()).take() };
    if let Some(body) = body {
        // Panics are contained; what unwinds further ends the job of the light thread.
        match catch_unwind(AssertUnwindSafe(|| contain(body))) {
            Ok(Ok(())) => {}
            Ok(Err(message)) => thread.panic.set(Some(message)),
            Err(end) => group.stopping.set(Some(end)),
        }
    }
    if let Some(library) = &library {
        library.end_thread();
    }
    group.end()
}
