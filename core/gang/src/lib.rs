//! Gangs: members that elect, meet, reduce, broadcast and are admitted together
//!
//! A [`Gang`] is a few words that its members share. A [`Member`] is one party's state machine over
//! these words. It has neither clock nor CPU: [`Member::step`] takes one small step and says
//! whether the [`Operation`] is done, goes on, waits for a word, or will never end.
//!
//! ```text
//!  step(operation) -> More | Wait { word, seen } | End(Done(value) | Broken { member, why })
//! ```
//!
//! A driver repeats that: it spins, or sleeps, until [`Gang::look`] sees another value of the word.
//! After a limit of its own it calls [`Member::accuse`]. So the same code runs live, in a model
//! checker, and with hundreds of members in virtual time.
//!
//! [`Form`] chooses between the paper's linear form (one shared counter) and a tree. [`Admission`]
//! is Algorithm 1 of the paper on top of these operations. [`Names`] finds gangs by their names.
//!
//! # Invariants
//!
//! * **One decision for each round**: one exchange of one word says whether a round is whole or
//!   broken. No two members see different ends of the same round.
//! * **A broken gang stays broken**, by the name of the member that broke it and the reason. The
//!   rest may create the next generation under the same name.
//! * **Nobody waits without an end**: a driver with a limit of L is told within 2 L of the last
//!   news about a member that takes no step, and at once about one that leaves.
//! * **Bounded**: a gang of n has n + 7 cache lines of words. A step changes one shared word at
//!   most, except that to break a gang rings n bells.
//!
//! Source: Dinda et al., "Hard Real-time Scheduling for Parallel Run-time Systems" (Nautilus),
//! §4.2-4.4 and Algorithm 1. The tree is that of Mellor-Crummey and Scott 1991 (arrival by fours).
//!
//! # Examples
//!
//! ```
//! use punctual_gang::{Form, Gang, Member, Operation, Outcome, Step};
//!
//! let gang = Gang::new(2, Form::Linear, 1)?;
//! let mut members = [Member::join(&gang)?, Member::join(&gang)?];
//! let mut ends = [None; 2];
//! while ends.contains(&None) {
//!     for ((member, value), end) in members.iter_mut().zip([3, 4]).zip(&mut ends) {
//!         let fold = u64::wrapping_add;
//!         let sum = Operation::Reduce { value, fold };
//!         if end.is_none() && let Step::End(outcome) = member.step(sum) {
//!             *end = Some(outcome);
//!         }
//!     }
//! }
//! assert_eq!(ends, [Some(Outcome::Done(7)); 2]);
//! # Ok::<(), punctual_gang::JoinError>(())
//! ```

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod admission;
mod atomic;
mod gang;
mod member;
mod names;

pub use admission::{Admission, Admitted, LocalScheduler, Progress, Refusal, Stage};
pub use gang::{Attached, Broken, Form, Gang, JoinError, MOST, Wait, Why, Word};
pub use member::{Member, Operation, Outcome, Step};
pub use names::{CreateError, Names};
