//! How programs write work: threads, what they share, and workloads for files.
//!
//! A program starts a run with [`Runtime::start`] and creates threads in it ([`thread::spawn`]),
//! each under a [`Constraint`] that is admitted before it runs and enforced while it does. They
//! wait for each other with what is in [`sync`].
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use punctual_model::{PolicyKind, Span, Work};
//! use punctual_thread::{Constraint, Runtime, sync::Mutex, thread};
//!
//! let runtime = Runtime::on(1, PolicyKind::EarliestDeadlineFirst);
//! let finished = runtime.start(|| {
//!     let count = Arc::new(Mutex::new(0));
//!     let shared = Arc::clone(&count);
//!     let every = Constraint::periodic(Span::from_ms(10), Work::from_ms(1));
//!     let control = thread::spawn("control", every, move || {
//!         for _ in 0..100 {
//!             *shared.lock()? += 1;
//!             thread::wait_next_period().ok();
//!         }
//!         Ok::<(), punctual_thread::sync::WaitError>(())
//!     })?;
//!     control.join().ok();
//!     let jobs = count.lock().map(|count| *count);
//!     Ok::<_, thread::SpawnError>(jobs)
//! })?;
//! println!("{:?}, real time: {}", finished.result, finished.is_real_time());
//! # Ok::<(), punctual_thread::StartError>(())
//! ```
//!
//! Work that any CPU of a run may begin is offered to all of them ([`spread`]).
//!
//! A [`Workload`] is a library of named steps that share state; [`Workloads`] finds the step that a
//! file names. Both are the same for the shipped workloads and for a user's own.

mod admission;
mod constraint;
mod entry_cost;
mod guarantee;
mod place;
mod registry;
mod runtime;
mod slots;
pub mod spread;
mod start_error;
mod strict;
pub mod sync;
mod tally;
pub mod thread;
mod timer;
pub mod tree;
mod workload;

pub use admission::{NotAdmitted, Promise};
pub use constraint::Constraint;
pub use guarantee::Guarantee;
pub use place::FIRST;
pub use punctual_linux::{JobInfo, NoNextJob, OnFault};
pub use registry::{UnknownFunction, Workloads};
pub use runtime::{Finished, Runtime};
pub use start_error::StartError;
pub use tally::{Jobs, OTHERS};
pub use thread::Thread;
pub use timer::Timer;
pub use workload::{JobContext, Oracle, Step, Workload};
