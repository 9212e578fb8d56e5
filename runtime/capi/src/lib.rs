//! The C interface: what `punctual.h` declares, and nothing else.
//!
//! The header is written from these sources by cbindgen and checked in; a test compares. Types and
//! constants have the names of the header here too, so that one search finds both.
//!
//! Rules that hold for every function ([note 0013](../../../doc/design/0013-the-c-interface.md)):
//!
//! * It returns a [`punctual_status`], is documented with the codes that are its own, and changes
//!   nothing when the code is not 0 (what is filled in is filled in on success).
//! * Nothing unwinds into C: a panic becomes `PUNCTUAL_INTERNAL`, a cancellation
//!   `PUNCTUAL_CANCELLED`; a thread that the end of the run finds in a call ends there.
//! * Things are named by handles, numbers with a generation (`table`): a null pointer, a number
//!   that names nothing and one of a thing that is gone are codes.
//! * The library keeps no pointer of the caller's beyond the call, but for functions with their
//!   argument or parameter, and gives none away that would have to be freed.
//!
//! What is behind it is `runtime/thread`; there is no scheduling of its own here.
#![allow(
    non_camel_case_types,
    reason = "types and constants have the names that they have in C"
)]

mod admission;
mod application;
mod authority;
mod backed;
mod barrier;
mod condition;
mod constraint;
mod edge;
mod ending;
mod fault;
mod file_actor;
mod firing;
mod flags;
mod gang;
mod graph;
mod held;
mod mutex;
mod notify;
mod policy;
mod queue;
mod report;
mod run;
mod rwlock;
mod scheduler;
mod semaphore;
mod slice;
mod spin;
mod spread;
mod status;
mod table;
mod task;
mod thread;
mod time;
mod tree_file;
mod work;

pub use admission::*;
pub use application::*;
pub use backed::*;
pub use barrier::*;
pub use condition::*;
pub use constraint::*;
pub use ending::*;
pub use fault::*;
pub use file_actor::application_of_file;
pub use firing::*;
pub use flags::*;
pub use gang::*;
pub use graph::*;
pub use mutex::*;
pub use notify::*;
pub use policy::*;
pub use queue::*;
pub use report::*;
pub use run::*;
pub use rwlock::*;
pub use scheduler::*;
pub use semaphore::*;
pub use slice::*;
pub use spin::*;
pub use spread::*;
pub use status::*;
pub use task::*;
pub use thread::*;
pub use time::*;
pub use work::*;
