//! Dataflow graphs: rates, deadlock, throughput, latency, buffers
//!
//! A [`Timed`] is a graph of `punctual_model` with the time of every firing. In order:
//!
//! * [`firings_per_iteration`]: how often each actor fires until the FIFOs are again as at first.
//!   Or the circle whose rates contradict each other ([`Contradiction`]).
//! * [`deadlock`]: one iteration without time; if it does not end, the tokens that actors wait for.
//! * [`Firings`]: one node for each firing of an iteration. [`worst_circle`] finds the period by
//!   Howard's policy iteration, and the circle that holds it. [`schedule`] gives a periodic
//!   schedule, hence latencies.
//! * [`period_by_states`]: the same period by executing the graph until a state comes again. Both
//!   ways begin with the same rates, the same [`Timed`] and the same connected parts. It shares
//!   neither nodes nor arithmetic with the other way after that.
//! * [`front`]: which capacities buy which period.
//!
//! [`Tokens`] is the state of a graph without any clock: the firing rules, and the effects of a
//! start and an end. An engine that executes graphs needs the same.
//!
//! # Assumptions
//! 1. An actor fires once at a time. A firing starts when all its tokens are there, and all space
//!    for its output; it takes them at its start and gives both kinds at its end.
//! 2. An earlier end never delays anybody: rates do not depend on data, FIFOs keep their order.
//! 3. All arithmetic is exact: integers and fractions, checked.
//!
//! Sources: Lee and Messerschmitt 1987 (rates); Bilsen et al. 1996 (phases); Ghamarian et al. 2006
//! (throughput by states); Cochet-Terrasson et al. 1998, Dasdan 2004 (Howard); Stuijk, Geilen and
//! Basten 2006 (capacities).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod buffers;
mod circle;
mod components;
mod deadlock;
mod error;
mod firings;
mod fraction;
mod rates;
mod schedule;
mod states;
mod timed;
mod tokens;

pub use buffers::{Front, MAX_DISTRIBUTIONS, Point, front, least_capacity};
pub use circle::{Circle, worst_circle};
pub use deadlock::{Deadlock, Wait, deadlock};
pub use error::DataflowError;
pub use firings::{Arc, Firings};
pub use fraction::Fraction;
pub use rates::{Contradiction, MAX_FIRINGS, Rates, firings_per_iteration};
pub use schedule::{Schedule, schedule};
pub use states::{MAX_STATE_WORDS, MAX_STEPS, first_output, period_by_states};
pub use timed::{Edge, Link, Timed, outputs};
pub use tokens::Tokens;
