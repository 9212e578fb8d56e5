//! Streaming applications: actors and FIFOs of a graph, executed on the tiles of Linux.
//!
//! An [`Application`] takes a graph, a function for each actor, and perhaps a task scheduler for
//! each tile. It becomes one [`Tile`] for each tile of the graph: the body of one light thread,
//! which decides in its own time or between its slots, and calls actors as functions. A firing
//! never waits, so all actors of a tile share its thread soundly (CompOSe §4.2.2). Where one may be
//! passed over halfway, each is a direct thread of its own. Where the core decides, each actor is
//! a [`Tile`] to itself and so a light thread.
//!
//! ```
//! use punctual_graph::{Application, Firing};
//! use punctual_model::{CpuId, Graph, Tile, Work};
//!
//! fn count(firing: &mut Firing<'_>) {
//!     let next = firing.inputs.tokens(0)[0] + 1;
//!     firing.outputs.tokens(0)[0] = next;
//!     firing.outputs.tokens(1)[0] = next;
//! }
//!
//! fn double(firing: &mut Firing<'_>) {
//!     assert_eq!(u64::from(firing.inputs.tokens(0)[0]), firing.number + 1);
//! }
//!
//! let (tile, wcet) = (Tile::cpu(CpuId(0)), Work::from_us(10));
//! let mut graph = Graph::new("pipeline");
//! let (first, second) = (graph.actor("count", tile, wcet), graph.actor("double", tile, wcet));
//! let state = graph.fifo("state", first, first);
//! (state.initial, state.capacity, state.token_size) = (1, Some(2), 1);
//! let numbers = graph.fifo("numbers", first, second);
//! (numbers.capacity, numbers.token_size) = (Some(4), 1);
//!
//! let mut application = Application::new(&graph)?;
//! application.actor("count", count)?;
//! application.actor("double", double)?;
//! let mut tiles = application.tiles()?;
//! // In a run, `Tile::body` is the body of a thread. Anywhere else it is asked step by step.
//! while tiles[0].book().firings("double") < 5 {
//!     tiles[0].step();
//! }
//! # Ok::<(), punctual_graph::GraphError>(())
//! ```
//!
//! Actors are functions without a value of their own (`fn` items), so they keep nothing between two
//! firings but tokens of FIFOs to themselves, and the parameter of their firing rule
//! ([`Application::actor_with`]).

#![forbid(unsafe_code)]

mod actor;
mod application;
mod applications;
mod between;
mod book;
mod burn;
mod call_word;
mod ends;
mod memory;
mod meter;
mod passing;
mod plain;
mod slots;
mod tile;
mod turns;

pub use actor::{Firing, Inputs, NextRule, Outputs, Shared};
pub use application::{Application, GraphError};
pub use applications::Applications;
pub use book::{ActorBook, Over, TileBook};
pub use plain::TaskFifos;
pub use punctual_fifo::CopyEngine;
pub use punctual_firing::{Moved, RoundRobin, State, StaticOrder, TaskScheduler, Tasks, Tdm};
pub use tile::Tile;
