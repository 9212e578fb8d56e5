//! Bodies of threads: what they are, what they know of their job, what unwinds them.

use core::any::Any;

/// The body of a task: called once per job on its light thread (once at all for endless classes).
pub type Body = Box<dyn FnMut(&JobInfo) + Send>;

/// What a body knows about the job that it executes. Times are nanoseconds since the run's start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JobInfo {
    /// Number of the job within its task, from 0.
    pub index: u64,
    /// When it arrived.
    pub arrival_ns: u64,
    /// Its absolute deadline, if it has one.
    pub absolute_deadline_ns: Option<u64>,
}

/// What unwinds a job that its overrun rule stops. Private to the job boundary that catches it.
pub(crate) struct StopJob;

pub(crate) fn describe(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a message").to_owned()
}
