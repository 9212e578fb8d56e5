//! Studies: pieces of work that resume, shard and merge, and drawings of the results
//!
//! A [`Study`] is cut into units. The result of a unit depends on the study and the unit alone, so
//! shards need no word with each other, and their results merge to the bytes of a single run.
//! Results are appended line by line in the order of the units; a run that was ended goes on where
//! its file ends. `punctual sweep` and `punctual study` are studies.

#![forbid(unsafe_code)]

pub mod command;
pub mod pieces;
pub mod results;
pub mod svg;

pub use pieces::{Shard, Study};
