//! The ROSACE flight controller as a workload with a sequential reference.
//!
//! ROSACE is the longitudinal flight controller of a medium-range airliner, published as a case
//! study of real-time scheduling (Pagetti, Saussié, Gratia, Noulard, Siron: *The ROSACE Case Study:
//! From Simulink Specification to Multi/Many-Core Execution*, RTAS 2014). It is the main example of
//! Punctual because it has two kinds of truth: timing (rates, precedence, deadlines) and function
//! (a published trajectory).
//!
//! ```text
//!        200 Hz               200 Hz             100 Hz, 50 Hz               50 Hz
//!
//!               delta_e                h    +-----------+  h_f    +---------------+
//!   elevator -----------+         +-------->| h filter  |-------->| altitude hold |
//!      ^                v         |         +-----------+         +---------------+
//!      |           +----------+   |                                       | vz_c
//!      |           | dynamics |---+                                       v
//!      |           +----------+   | vz, va  +-----------+ vz_f ...   +------------+
//!      |                ^         +-------->| 4 filters |----------->| vz control |--+
//!      |  engine -------+           q, az   +-----------+      |     +------------+  |
//!      |    ^        thrust                                    |     +------------+  |
//!      |    |                                                  +---->| va control |  |
//!      |    |    delta_th_c                                          +------------+  |
//!      |    +----------------------------------------------------------------+       |
//!      +-----------------------------------------------------------------------------+
//!           delta_e_c
//! ```
//!
//! Inside one step of 5 ms the order is: elevator, engine, dynamics, the filters that are due, the
//! controllers that are due. Any schedule that keeps the rates and the precedence of
//! `examples/rosace.toml` reproduces [`reference()`] bit for bit, whatever is delayed, preempted or
//! moved to another CPU; [`RosaceWorkload`]'s `check` says whether it did.
//!
//! What this crate does not know: when its steps run, on which CPU, and who calls them.
#![forbid(unsafe_code)]

mod control;
mod filter;
mod plant;
mod recording;
mod reference;
mod signal;
mod workload;

pub use control::{AltitudeHold, Mode, Targets, VaControl, VzControl};
pub use filter::Filter;
pub use plant::{Dynamics, Elevator, Engine, State};
pub use reference::{Row, csv, reference};
pub use workload::RosaceWorkload;
