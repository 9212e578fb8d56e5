//! Seeded random task sets and systems, by the generators of the field.
//!
//! Four ways to make something:
//!
//! * [`SetParameters::draw`]: a *task set* for acceptance studies. How many tasks, which
//!   utilization, and by which published generator: UUniFast-discard, random fixed sum, or the
//!   WATERS 2015 statistics of a real engine control unit.
//! * [`Mix::draw`]: a *whole system* for soundness runs. Every feature of the model with a
//!   probability of its own; what it draws is a system that means something, mostly not an easy
//!   one.
//! * [`SegmentMix::draw`]: *segments* that fill some CPUs without a gap, so that a plan exists.
//! * [`draw_graph`]: a *dataflow graph* whose rates agree, small enough to be executed.
//!
//! What this crate decides: shapes and numbers. What it does not know: whether a system is
//! feasible, how it is analysed, and who runs it.
//!
//! **The same seed makes the same system on every machine.** The random numbers are counted, not
//! kept ([`Random`]), and powers and logarithms come from a library in Rust (`libm`), because those
//! of C libraries differ in their last bit. A study can therefore be cut into shards that never
//! talk to each other, and a failure is a seed and a commit.
//!
//! # Examples
//!
//! ```
//! use punctual_generate::{Deadlines, Generator, Periods, Random, SetParameters};
//!
//! let parameters = SetParameters {
//!     generator: Generator::UUniFastDiscard,
//!     tasks: 8,
//!     utilization_ppm: 750_000,
//!     largest_share_ppm: 1_000_000,
//!     periods: Periods::log_uniform_ms(10, 1_000),
//!     deadlines: Deadlines::Implicit,
//! };
//! let set = parameters.draw(&mut Random::new(42))?;
//! assert_eq!(set.len(), 8);
//! assert_eq!(set, parameters.draw(&mut Random::new(42))?);
//! # Ok::<(), punctual_generate::GenerateError>(())
//! ```
#![forbid(unsafe_code)]

mod dice;
mod error;
mod fixed_sum;
mod graph;
mod mix;
mod period;
mod random;
mod segments;
mod set;
mod tiles;
mod uunifast;
pub mod waters;

pub use dice::Dice;
pub use error::GenerateError;
pub use fixed_sum::fixed_sum;
pub use graph::draw_graph;
pub use mix::{Drawn, Feature, Mix, Scale};
pub use period::Periods;
pub use random::Random;
pub use segments::{DrawnSegment, SegmentMix};
pub use set::{Deadlines, Generator, Row, SetParameters, one_cpu};
pub use tiles::draw_graph_system;
pub use uunifast::{uunifast, uunifast_discard};
