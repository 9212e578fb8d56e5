//! Closures as kernel-backed threads: a kernel thread that runs in place of a light thread.
//!
//! For what no light thread may do: libraries that wait in the kernel by ways of their own,
//! runtimes with threads of their own, whatever keeps state in its kernel thread. The closure gets
//! the processor when its light thread does, and loses it when that one does (see `group`), so
//! budgets, servers and slots hold for it without its help.

use core::marker::PhantomData;
use std::fmt;
use std::io::{self, PipeReader, PipeWriter, pipe};
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, Result as Ended};

use punctual_kern::Event;

use crate::entry::request::rest;
use crate::record::local::current_light;
use crate::record::thread_group::ThreadGroup;
use crate::run::stand_in::lowest;
use crate::sys::program::{number, own_priority};
use crate::sys::{allowed_cpus, current_thread, pin};

/// A closure that waits for the light thread in whose place it is to run.
///
/// ```no_run
/// use punctual_linux::Backed;
///
/// // Before the run, on an ordinary thread.
/// let logger = Backed::try_new("logger", |group| {
///     while !group.is_over() {
///         std::thread::sleep(std::time::Duration::from_millis(5)); // the kernel's own sleep
///     }
/// })?;
/// // In the body of a light thread, of a reservation for example.
/// let body = move || logger.run();
/// # drop(body);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Backed<R> {
    group: &'static ThreadGroup,
    thread: i32,
    /// Lets the closure begin; dropped, it never does.
    begin: Sender<()>,
    /// Closed at the other end when the closure has ended.
    ended: PipeReader,
    result: Arc<Mutex<Option<Ended<R>>>>,
}

/// Why a closure did not run in place of the caller.
#[derive(Debug)]
#[non_exhaustive]
pub enum NotBacked {
    /// The caller is on no light thread of a run, or on one that carries a scheduler.
    NoRun,
    /// Its kernel thread could not be moved to the CPU of the caller.
    Cpu(io::Error),
}

impl fmt::Display for NotBacked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotBacked::NoRun => write!(f, "only a light thread of a run can be stood in for"),
            NotBacked::Cpu(error) => write!(f, "no kernel thread for its CPU: {error}"),
        }
    }
}

impl std::error::Error for NotBacked {}

/// What a closure knows of the group that it belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    group: &'static ThreadGroup,
}

impl Member {
    /// Whether the run is over, or the thread in whose place the group runs was cancelled: time to
    /// return. Who does not stays, last of all on its CPU.
    pub fn is_over(&self) -> bool {
        self.group.is_dismissed()
    }

    /// The calling kernel thread, which the closure has started, runs and waits with the group
    /// from the next turn on, until the value is dropped or the closure returns: then it is an
    /// ordinary thread again. Threads that are not joined compete for the CPU like everybody.
    /// `None`: the group has 256 members already, or its closure has returned.
    pub fn join(&self) -> Option<Joined> {
        let thread = number(current_thread());
        self.group.join(thread).then_some(Joined {
            group: self.group,
            thread,
            stays: PhantomData,
        })
    }
}

/// A kernel thread that belongs to a group.
#[derive(Debug)]
#[must_use = "what is dropped at once is a member no more"]
pub struct Joined {
    group: &'static ThreadGroup,
    thread: i32,
    /// Dropped on the thread that it speaks of: the number may be another's after that one's end.
    stays: PhantomData<*const ()>,
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.group.remove(self.thread);
    }
}

impl<R: Send + 'static> Backed<R> {
    /// Starts a kernel thread of this name that waits for [`Backed::run`]. On an ordinary thread,
    /// before the run; a kibibyte per closure stays allocated for good.
    ///
    /// # Errors
    /// When no thread or pipe can be made; `Unsupported` on a light thread, which cannot start
    /// kernel threads.
    pub fn try_new(
        name: &str,
        closure: impl FnOnce(&Member) -> R + Send + 'static,
    ) -> io::Result<Backed<R>> {
        if current_light().is_some() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        // A light thread that is abandoned in the middle of it keeps looking at it.
        let group = ThreadGroup::to_stay(0, lowest()?);
        let (begin, begins) = channel();
        let (tell, told) = channel();
        let (ended, open) = pipe()?;
        let result = Arc::new(Mutex::new(None));
        let kept = Arc::clone(&result);
        let serve = move || {
            // Whoever waits for it below is alive.
            let _ = tell.send(number(current_thread()));
            if begins.recv().is_ok() {
                let ended = catch_unwind(AssertUnwindSafe(|| closure(&Member { group })));
                *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(ended);
                close(group, open);
            }
        };
        Builder::new().name(name.to_owned()).spawn(serve)?;
        let thread = told.recv().map_err(io::Error::other)?;
        Ok(Backed {
            group,
            thread,
            begin,
            ended,
            result,
        })
    }

    /// It is to have nothing of its CPU's idle time: as [`Program::keep_out_of_idle_time`].
    ///
    /// [`Program::keep_out_of_idle_time`]: crate::Program::keep_out_of_idle_time
    pub fn keep_out_of_idle_time(&self) {
        self.group.kept_out.store(true, Ordering::Relaxed);
    }

    /// Runs the closure in place of the calling light thread until it ends, and returns what it
    /// returned. It has the processor whenever the light thread would have it; user space cannot
    /// see it wait, so it is charged for that, too. If the run ends before, this does not return.
    ///
    /// Under SCHED_FIFO, just below the run, if that is permitted; else it is as urgent as every
    /// ordinary thread while it has its turn. Where ordinary users' threads do not come back from
    /// SCHED_IDLE, it stays that between its turns, too: the outcome's `lost` has `SCHED_IDLE`
    /// then.
    ///
    /// # Errors
    /// See [`NotBacked`]; the closure is dropped then.
    ///
    /// # Panics
    /// When the closure does: its panic is the light thread's own, with its name and its rule.
    pub fn run(self) -> Result<R, NotBacked> {
        let light = current_light().filter(|light| light.direct().is_none());
        let light = light.ok_or(NotBacked::NoRun)?;
        let cpus = allowed_cpus().map_err(NotBacked::Cpu)?;
        pin(Some(crate::sys::program::thread(self.thread)), &cpus).map_err(NotBacked::Cpu)?;
        self.group.set_priority(own_priority() - 1);
        self.group.add(self.thread);
        // It waits for this, until the other end is dropped below.
        let begin = || {
            let _ = self.begin.send(());
        };
        let ended = Some(self.ended.as_raw_fd());
        self.group.stand_in(light, begin, ended);
        let mut result = self.result.lock().unwrap_or_else(PoisonError::into_inner);
        match result.take() {
            Some(Ok(result)) => Ok(result),
            Some(Err(panic)) => resume_unwind(panic),
            None => Err(NotBacked::NoRun),
        }
    }
}

impl Backed<()> {
    /// [`Backed::run`], and waits for the end of the run then: the whole body of a reservation.
    /// Returns at once when it cannot run.
    ///
    /// # Errors
    /// As [`Backed::run`].
    pub fn run_for_good(self) -> Result<(), NotBacked> {
        self.run()?;
        loop {
            // Unwinds from here when the run is over.
            rest(Event::Block { until: None });
        }
    }
}

/// The last acts of the kernel thread: who outlives it is ordinary again, and nobody raises or
/// lowers its number any more, which may soon be another thread's.
fn close(group: &ThreadGroup, open: PipeWriter) {
    group.end();
    group.clear(number(current_thread()));
    drop(open);
}
