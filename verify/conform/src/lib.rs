//! The conformance kit: seeded random histories over any policy.
//!
//! A policy is short, and wrong in ways that no single example shows: it loses the thread that woke
//! while another blocked, it keeps two entries of one thread, it lets the one who is updated often
//! starve. [`check`] makes thousands of histories that the scheduler core could make, calls the
//! policy as the core would, and compares each answer with a slow and obvious reference beside it.
//! The first history that breaks a [`Property`] is shrunk to the shortest that still breaks it, and
//! comes back as a list of steps to read:
//!
//! ```
//! use punctual_conform::{Claims, Options, check};
//! # use punctual_kern::{Attributes, Pick, Policy};
//! # use punctual_model::{Instant, ThreadId};
//! /// The latest to wake goes first.
//! struct Stack(Vec<ThreadId>);
//!
//! impl Policy for Stack {
//!     fn wake(&mut self, thread: ThreadId, _: &Attributes) {
//!         self.0.push(thread);
//!     }
//!     fn block(&mut self, _: ThreadId) {
//!         self.0.pop(); // wrong: another one may be on top
//!     }
//!     fn pick(&mut self, _: Instant) -> Pick {
//!         self.0.last().map_or(Pick::NOBODY, |&thread| Pick::run(thread))
//!     }
//! }
//!
//! let make = |capacity| Stack(Vec::with_capacity(capacity));
//! let broken = check(&Claims::default(), make, &Options::default()).expect_err("it is wrong");
//! assert_eq!(broken.property.name(), "unknown-thread");
//! println!("{broken}");
//! ```
//!
//! What every policy promises is checked always; what only some promise (an order, turns, work
//! conservation) is checked when the author says so in [`Claims`]. In a test, `check(..)?` or
//! `.unwrap()` is all there is to write. `punctual conform` does the same from a shell.
//!
//! Histories come in three levels ([`Level`]): calls of the policy's own methods in any order that
//! its contract allows; events of the core, with jobs, budgets, wake-ups and sections; a tree with
//! a child scheduler that answers nonsense. Equal seeds make equal histories.
//!
//! A server (when budget comes, and when it goes) is checked alone, by [`check_server`].
//! Delegations, transfers and revocations under a policy are checked by [`check_slices`].
//!
//! It does not know how long anything takes, and it proves nothing: a policy that passes has not
//! been seen to break. [`Report`] says how much was seen.
#![forbid(unsafe_code)]

mod claims;
mod core_level;
mod coverage;
mod dice;
mod harness;
mod held;
mod history;
mod judge;
mod level;
mod naming;
mod property;
mod quiet;
mod reference;
mod report;
mod run;
mod seam_level;
mod server;
mod shrink;
mod slices;
mod symptom;
mod tree_level;
mod turns;
mod watched;

pub use claims::{Budget, Claims, ClaimsError, Order, Ties};
pub use coverage::Coverage;
pub use harness::{Answer, harness};
pub use held::{Held, check_held};
pub use history::check;
pub use level::{Level, Options};
pub use property::Property;
pub use report::{Broken, Report};
pub use server::check_server;
pub use slices::{Sliced, check_slices};
