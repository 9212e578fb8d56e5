//! Graphs in the XML of SDF3, the field's collection of dataflow tools: read and written.
//!
//! Of such a file is read: actors with their ports and rates, channels with their initial tokens,
//! execution times, buffer sizes and token sizes, for graphs of the kinds `sdf` and `csdf`. A unit
//! of time is a nanosecond; token sizes are bits there and bytes here. Everything else is passed
//! over. Each actor gets a CPU of its own, because the format has no tiles of ours; nor has it
//! orders, work, places and requirements, so these are lost on the way out.
//!
//! Actors there may overlap with themselves. Ours fire once at a time.

mod read;
mod write;

pub use read::read_sdf3;
pub use write::write_sdf3;
