//! Graphs in the XML of SDF3, the field's collection of dataflow tools: read and written.
//!
//! Of such a file is read: actors with their ports and rates, channels with their initial tokens,
//! execution times, buffer sizes and token sizes, for graphs of the kinds `sdf` and `csdf`. A unit
//! of time is a nanosecond; token sizes are bits there and bytes here. Everything else is passed
//! over. Each actor gets a CPU of its own, because the format has no tiles of ours; nor has it
//! orders, work, places and requirements, so these are lost on the way out.
//!
//! Actors there may overlap with themselves. Ours fire once at a time. So each gets a channel to
//! itself with one token on the way out, unless it has one. On the way in such a channel says what
//! is implied, and becomes no FIFO.

use punctual_model::Fifo;

mod read;
mod write;

pub use read::read_sdf3;
pub use write::write_sdf3;

/// How the name of a channel begins that keeps firings of an actor apart. The actor's name follows,
/// and as many hyphens as make it the only one.
const ONCE: &str = "once-";

/// Whether firings of the actor of this FIFO cannot overlap because of it.
fn keeps_apart(fifo: &Fifo) -> bool {
    let ones = |rates: &[u32]| rates.iter().all(|rate| *rate == 1);
    fifo.from == fifo.to && fifo.initial == 1 && ones(&fifo.produce) && ones(&fifo.consume)
}
