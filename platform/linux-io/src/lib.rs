//! The C library as light threads enter it: a call that blocks stops the thread, not its CPU.
//!
//! A program that links this crate calls its functions in place of the C library's, by the same
//! names and with the same results. A light thread's call that would block becomes an operation of
//! the [`Ring`] of its CPU; in the allocator and its relatives a preemption waits until the call is
//! over. Every other thread makes its calls as ever.
//!
//! ```text
//!   program --read(2)--> calls ---> transfer ---> nowait ------> the kernel, without waiting
//!                                      `--------> blocking ----> ring ---> the kernel
//!   program --malloc(3)-> interpose -> inside (counts the depth; a preemption waits)
//! ```
//!
//! One hook leads to the platform: [`install`] gives the function that names the light thread that
//! calls, as a [`Caller`]. Without it nobody is a light thread. The platform asks [`is_inside`]
//! before it preempts, and looks at its rings.
//!
//! It knows neither schedulers nor policies, and nothing of a light thread beside its [`Caller`].
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

mod around_fork;
mod backoff;
mod blocking;
mod caller;
mod calls;
mod futex;
mod inside;
mod interpose;
mod made;
mod nowait;
mod ring;
mod signals;
mod stack_of;
pub mod sys;
mod through;
mod transfer;

pub use backoff::Backoff;
pub use caller::{Caller, install};
pub use futex::FutexRequest;
pub use inside::{begin_thread, is_inside, set_wanted, undisturbed};
pub use ring::{Operation, Ring, Waiter};
pub use sys::StackBounds;
pub use sys::calls::Direction;
pub use sys::origin::{Asked, Origin};
