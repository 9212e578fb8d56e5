//! Threads: created, joined, woken, changed and ended by each other.

use core::fmt;

use punctual_analysis::Verdict;
use punctual_kern::{NodeId, Refusal};
use punctual_linux::{Child, JobInfo, ManageError, NoNextJob, OnFault, Who, job, spawn_with};
use punctual_model::{Instant, Ns, Span};

use crate::admission::{Grant, NotAdmitted};
use crate::constraint::Constraint;
use crate::place::{Place, place};
use crate::sync::{WaitError, after, instant};

pub use punctual_linux::JoinError;

/// Why something that was asked of a run was refused: a new thread, another constraint, a change of
/// its tree. Nothing has changed then.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SpawnError {
    /// The caller is on no thread of a runtime.
    NoRun,
    /// As many threads as the runtime was made for exist already.
    PoolIsEmpty,
    /// The analysis says no, and why.
    NotAdmitted(NotAdmitted),
    /// The core refused.
    Refused(punctual_kern::Refusal),
    /// Another thread that asks at the same time is in the way.
    Busy(WaitError),
    /// The thread or the scheduler belongs to another CPU, or to a run that is over; or the thread
    /// has ended.
    NotHere,
    /// A thread with a guarantee is in the middle of a job: it changes its home between two jobs,
    /// and so do all that another policy is to order.
    HasJob,
    /// Somebody waits for a lock in the order of the policy that is to be replaced.
    Contended,
    /// The thread that would be blocked asks for admission at this moment, and others would wait
    /// for its answer.
    Asks,
    /// The root of a CPU is given to its first thread, once.
    NotItsRoot,
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpawnError::NoRun => write!(f, "the caller is on no thread of a runtime"),
            SpawnError::PoolIsEmpty => write!(
                f,
                "the runtime has no thread left: make it for more (`Runtime::threads`)"
            ),
            SpawnError::NotAdmitted(why) => write!(f, "{why}"),
            SpawnError::Refused(refusal) => write!(f, "the core refused: {refusal}"),
            SpawnError::Busy(error) => write!(f, "admission could not be asked: {error}"),
            SpawnError::NotHere => write!(
                f,
                "it belongs to another CPU or to a run that is over, or has ended"
            ),
            SpawnError::HasJob => write!(
                f,
                "a thread with a guarantee is in the middle of a job, and the change comes between two: ask again"
            ),
            SpawnError::Contended => write!(
                f,
                "somebody waits for a lock in the order of the old policy: ask again"
            ),
            SpawnError::Asks => {
                write!(f, "the thread asks for admission at this moment: ask again")
            }
            SpawnError::NotItsRoot => {
                write!(f, "the root of a CPU is given to its first thread, once")
            }
        }
    }
}

impl std::error::Error for SpawnError {}

impl From<punctual_linux::SpawnError> for SpawnError {
    fn from(error: punctual_linux::SpawnError) -> SpawnError {
        match error {
            punctual_linux::SpawnError::PoolIsEmpty => SpawnError::PoolIsEmpty,
            punctual_linux::SpawnError::Refused(refusal) => SpawnError::Refused(refusal),
            _ => SpawnError::NoRun,
        }
    }
}

impl From<NotAdmitted> for SpawnError {
    fn from(why: NotAdmitted) -> SpawnError {
        match why {
            NotAdmitted::NoScheduler(node) => SpawnError::Refused(Refusal::NoSuchNode(node)),
            why => SpawnError::NotAdmitted(why),
        }
    }
}

impl From<ManageError> for SpawnError {
    fn from(error: ManageError) -> SpawnError {
        match error {
            ManageError::HasJob(_) => SpawnError::HasJob,
            ManageError::HeldAlive => SpawnError::Asks,
            ManageError::Contended => SpawnError::Contended,
            ManageError::Refused(refusal) => SpawnError::Refused(refusal),
            _ => SpawnError::NoRun,
        }
    }
}

/// A thread that was created, until it is joined. Dropped, it lets the thread go on alone.
#[derive(Debug)]
pub struct Thread<T> {
    child: Child<T>,
    grant: Option<Grant>,
}

/// How a thread is created; see [`spawn`] for the short form.
#[derive(Clone, Copy, Debug)]
pub struct Builder<'a> {
    name: &'a str,
    constraint: Constraint,
    on_fault: OnFault,
}

impl<'a> Builder<'a> {
    /// A thread with this name, of which 63 bytes are kept, and this constraint.
    pub fn new(name: &'a str, constraint: Constraint) -> Builder<'a> {
        Builder {
            name,
            constraint,
            on_fault: OnFault::EndThread,
        }
    }

    /// The rule for its panic.
    #[must_use]
    pub fn on_fault(self, on_fault: OnFault) -> Builder<'a> {
        Builder { on_fault, ..self }
    }

    /// Asks for admission, if the constraint has a guarantee, and creates the thread on the CPU of
    /// the caller. Without a guarantee: less than a microsecond, without allocation (if the closure
    /// and its result fit into 256 bytes each) or system call.
    ///
    /// # Errors
    /// See [`SpawnError`]; nothing has changed then.
    pub fn spawn<T, F>(self, body: F) -> Result<Thread<T>, SpawnError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.spawn_at(None, body)
    }

    /// As [`Builder::spawn`], in the care of a scheduler; `None`: the caller's.
    pub(crate) fn spawn_at<T, F>(
        self,
        home: Option<NodeId>,
        body: F,
    ) -> Result<Thread<T>, SpawnError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let Builder {
            name,
            constraint,
            on_fault,
        } = self;
        if !constraint.has_guarantee() {
            let in_core = constraint.in_core(punctual_model::Work::ZERO);
            let child = spawn_with(name, in_core, (on_fault, home), body)?;
            return Ok(Thread { child, grant: None });
        }
        let place = place().ok_or(SpawnError::NoRun)?;
        let home = home
            .or_else(punctual_linux::home)
            .ok_or(SpawnError::NoRun)?;
        let grant = place.ask(|admission, now| {
            let grant = admission.add((name, home), &constraint, now)?;
            Ok(grant)
        })?;
        let in_core = constraint.in_core(place.overhead());
        let granted = Granted {
            place: place.clone(),
            grant,
        };
        let body = move || {
            let _until_its_end = granted;
            body()
        };
        let child = spawn_with(name, in_core, (on_fault, Some(home)), body).inspect_err(|_| {
            // It never had a job, so nothing has to pass. This fails only when the run is over.
            let _ = place.ask(|admission, _| {
                admission.withdraw(grant);
                Ok(())
            });
        })?;
        // It fails only when the run is over.
        let _ = place.ask(|admission, _| {
            admission.bind(grant, child.who());
            Ok(())
        });
        Ok(Thread {
            child,
            grant: Some(grant),
        })
    }
}

/// The bandwidth of a thread, until it ends, however it ends.
pub(crate) struct Granted {
    pub(crate) place: Place,
    pub(crate) grant: Grant,
}

impl Drop for Granted {
    fn drop(&mut self) {
        give_back(&self.place, self.grant);
    }
}

/// Its bandwidth is free when its lag is zero.
fn give_back(place: &Place, grant: Grant) {
    // It fails only when the run is over.
    let _ = place.ask(|admission, now| {
        admission.remove(grant, now);
        Ok(())
    });
}

/// The bandwidth that a thread has asked for itself: it was abandoned.
fn give_back_all(place: &Place, who: Option<Who>) {
    let Some(who) = who else { return };
    // It fails only when the run is over.
    let _ = place.ask(|admission, now| {
        admission.remove_all_of(who, now);
        Ok(())
    });
}

/// A thread as schedulers name it. It has no power over the thread by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadRef {
    pub(crate) who: Option<Who>,
    pub(crate) grant: Option<Grant>,
}

impl<T> From<&Thread<T>> for ThreadRef {
    fn from(thread: &Thread<T>) -> ThreadRef {
        ThreadRef {
            who: thread.child.who(),
            grant: thread.grant,
        }
    }
}

/// Creates a thread; see [`Builder::spawn`].
///
/// # Errors
/// See [`SpawnError`].
pub fn spawn<T, F>(name: &str, constraint: Constraint, body: F) -> Result<Thread<T>, SpawnError>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    Builder::new(name, constraint).spawn(body)
}

impl<T> Thread<T> {
    /// Waits for its end and takes its result.
    ///
    /// # Errors
    /// See [`JoinError`].
    pub fn join(self) -> Result<T, JoinError> {
        self.child.join(None).map_err(|(error, _)| error)
    }

    /// Waits for its end until an instant of the run (nanoseconds) at most.
    ///
    /// # Errors
    /// See [`JoinError`]; when it has not ended in time, the thread comes back beside the error.
    pub fn join_until(self, at: Instant<Ns>) -> Result<T, (JoinError, Option<Thread<T>>)> {
        self.join_by(instant(at))
    }

    /// Waits for its end for `span` at most.
    ///
    /// # Errors
    /// As [`Thread::join_until`].
    pub fn join_within(self, span: Span<Ns>) -> Result<T, (JoinError, Option<Thread<T>>)> {
        self.join_by(after(span))
    }

    fn join_by(self, until: Option<Instant>) -> Result<T, (JoinError, Option<Thread<T>>)> {
        let grant = self.grant;
        self.child.join(until).map_err(|(error, child)| {
            let thread = child.map(|child| Thread { child, grant });
            (error, thread)
        })
    }

    /// Waits for its end for `span` at most (as long as it takes if `None`), and leaves its result
    /// to [`Thread::join`]: for callers that only have it lent.
    ///
    /// # Errors
    /// See [`JoinError`].
    pub fn wait_end(&self, span: Span<Ns>) -> Result<(), JoinError> {
        self.child.wait_end(after(span))
    }

    /// Has it end, and takes the processor from it if it has not ended after `span`: a loop without
    /// scheduling points does not end otherwise.
    ///
    /// A thread that is abandoned so unlocks nothing and drops nothing. A thread that waits for its
    /// locks waits on, and its pool entry is lost until the run is over. Its share of the processor
    /// is free as if it had ended.
    ///
    /// # Errors
    /// As [`Thread::join_within`], [`JoinError::Cancelled`] when it ended itself, and
    /// [`JoinError::Abandoned`]. With [`JoinError::TimedOut`] it comes back: it waits, or has not
    /// begun, and would end itself if it got the processor. So it does, at once and told to end,
    /// with [`JoinError::Taken`].
    pub fn kill_within(self, span: Span<Ns>) -> Result<T, (JoinError, Option<Thread<T>>)> {
        let _ = self.cancel();
        let thread = match self.join_within(span) {
            Err((JoinError::TimedOut, Some(thread))) => thread,
            ended => return ended,
        };
        match thread.abandon() {
            true => Err((JoinError::Abandoned, None)),
            false => Err((JoinError::TimedOut, Some(thread))),
        }
    }

    /// Takes the processor from it for good, as [`Thread::kill_within`] does when the time is over;
    /// whether that was possible. A thread that joins it is told ([`JoinError::Abandoned`]).
    pub fn abandon(&self) -> bool {
        let who = self.child.who();
        if !self.child.abandon() {
            return false;
        }
        if let Some(place) = place() {
            if let Some(grant) = self.grant {
                give_back(&place, grant);
            }
            give_back_all(&place, who);
        }
        true
    }

    /// Whether the caller is on its CPU, in its run. Elsewhere it can be detached or dropped, and
    /// nothing else.
    pub fn is_here(&self) -> bool {
        self.child.is_here()
    }

    /// Lets it go on alone: nobody will ask for its result. On any CPU.
    pub fn detach(self) {
        drop(self);
    }

    /// Whether it has ended.
    pub fn is_finished(&self) -> bool {
        self.child.is_finished()
    }

    /// Bytes of its stack that were ever used, by it or by threads before it in its place of the
    /// pool, and how many there are; `None` on another CPU.
    pub fn stack_used(&self) -> Option<(usize, usize)> {
        self.child.stack_used()
    }

    /// Has it end at its next scheduling point, by unwinding: it unlocks its locks and drops its
    /// values. `false` when it has ended.
    pub fn cancel(&self) -> bool {
        self.child.cancel()
    }

    /// Ends its [`block`], the present or the next one. `false` when it has ended.
    pub fn wake(&self) -> bool {
        self.child.wake()
    }

    /// Gives way to this thread in particular, which inherits the caller's priority: waits until
    /// somebody wakes the caller ([`Waker::wake`]), for `most` at most; whether the caller
    /// was woken. `false` at once when that thread has ended or waits for the caller.
    pub fn yield_to(&self, most: Span<Ns>) -> bool {
        self.child.yield_to(after(most))
    }

    /// Releases a job of a sporadic thread. One that comes too early waits for its time.
    ///
    /// # Errors
    /// [`SpawnError::Refused`] when it is not sporadic or has ended.
    pub fn release(&self) -> Result<(), SpawnError> {
        Ok(self.child.release()?)
    }

    /// Asks for another constraint, in force from the next zero-lag instant on: the present job is
    /// finished under the old one.
    ///
    /// # Errors
    /// See [`SpawnError`]; the old constraint stays then. A thread that was created without a
    /// guarantee cannot get one later ([`SpawnError::NotAdmitted`]).
    pub fn change(&self, constraint: Constraint) -> Result<(), SpawnError> {
        let place = place().ok_or(SpawnError::NoRun)?;
        let in_core = |overhead| {
            if !self.is_here() || self.is_finished() {
                return Err(SpawnError::NotHere);
            }
            Ok(self.child.change(constraint.in_core(overhead))?)
        };
        match self.grant {
            _ if !constraint.has_guarantee() => in_core(punctual_model::Work::ZERO),
            Some(grant) if self.is_here() => place.ask(|admission, now| {
                if !admission.lives(grant) {
                    return Err(SpawnError::NotHere);
                }
                let changed = admission.replaces(grant, &constraint, now)?;
                in_core(place.overhead())?;
                admission.accept(Some(changed), self::now().unwrap_or(now));
                Ok(())
            }),
            Some(_) => Err(SpawnError::NotHere),
            None => {
                let what = "it was created without a guarantee".to_owned();
                Err(SpawnError::NotAdmitted(NotAdmitted::Meaningless(what)))
            }
        }
    }
}

/// Wakes the thread that made it, from any thread of its CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Waker(Who);

impl Waker {
    /// Ends the thread's [`block`], the present or the next one. `false` when it has ended, or is
    /// on another CPU.
    pub fn wake(self) -> bool {
        self.0.wake()
    }
}

/// A handle that wakes the calling thread; `None` on no thread of a run.
pub fn waker() -> Option<Waker> {
    Who::this().map(Waker)
}

/// Ends the present job and returns with the next: the body of a periodic thread is a loop around
/// this call. A sporadic thread returns at its next release, a reservation in its next period.
///
/// # Errors
/// [`NoNextJob`] when the calling thread has one job only.
pub fn wait_next_period() -> Result<JobInfo, NoNextJob> {
    punctual_linux::next_job()
}

/// The promises to the threads that have a guarantee now, and why: the verdict of the analysis.
///
/// # Errors
/// [`SpawnError::NoRun`] outside of a runtime; as for [`spawn`] when the analysis cannot finish.
pub fn verdict() -> Result<Verdict, SpawnError> {
    let place = place().ok_or(SpawnError::NoRun)?;
    let failed = |error| SpawnError::NotAdmitted(NotAdmitted::Analysis(error));
    place.ask(|admission, _| admission.verdict().map_err(failed))
}

/// The job that the calling thread works on; `None` on no thread of a run.
pub fn current_job() -> Option<JobInfo> {
    punctual_linux::this_job()
}

/// The name of the calling thread; `None` on no thread of a run.
pub fn current_name() -> Option<String> {
    punctual_linux::this_name()
}

/// Nanoseconds since the start of the run; `None` outside of a run.
pub fn now() -> Option<Instant<Ns>> {
    job::now_ns().map(Instant::from_ns)
}

/// Bytes of the calling thread's stack that were ever used, and how many there are; `None` on no
/// thread of a run.
pub fn stack_used() -> Option<(usize, usize)> {
    punctual_linux::stack_used()
}

/// Lets others of the same urgency go first.
pub fn yield_now() {
    job::yield_now();
}

/// Suspends the calling thread.
pub fn sleep(span: Span<Ns>) {
    job::sleep_ns(span.as_ns());
}

/// Suspends the calling thread until an instant of the run (nanoseconds).
pub fn sleep_until(at: Instant<Ns>) {
    let left = at.as_ns().saturating_sub(job::now_ns().unwrap_or(0));
    if left > 0 {
        job::sleep_ns(left);
    }
}

/// Waits until somebody wakes this thread ([`Thread::wake`]); a wake-up that has come since the
/// last wait counts.
pub fn block() {
    let _ = punctual_linux::block(None);
}

/// Waits as [`block`], for `span` at most; whether it was woken.
pub fn block_within(span: Span<Ns>) -> bool {
    punctual_linux::block(after(span))
}

/// Waits as [`block`], until an instant of the run (nanoseconds) at most; whether it was woken.
pub fn block_until(at: Instant<Ns>) -> bool {
    punctual_linux::block(instant(at))
}
