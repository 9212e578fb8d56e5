//! FIFOs of graphs: tokens from one actor to another, in order, without a lock and without a call.
//!
//! A FIFO has one [`Writer`], one [`Reader`], and room for a number of tokens of equal size. Each
//! end claims, uses its claim as one slice, and releases (the protocol of C-HEAP, Nieuwland et al.
//! 2002; CompOSe §3.1, §4.4). Nobody is told: an end that waits looks again.
//!
//! ```
//! use punctual_fifo::{CopyEngine, Shape, fifo};
//!
//! let mut engine = CopyEngine::default();
//! let (mut writer, mut reader) = fifo(Shape::new(4, 2))?;
//! assert!(writer.claim(2));
//! writer.claimed().copy_from_slice(b"abcd");
//! writer.release(2, &mut engine);
//! assert_eq!(reader.tokens(), 2);
//! assert!(reader.claim(2, &mut engine));
//! assert_eq!(reader.claimed(), b"abcd");
//! reader.release(2);
//! # Ok::<(), punctual_fifo::FifoError>(())
//! ```
//!
//! Its code runs wherever there is an allocator before the start; a microcontroller has it, too.

#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod atomic;
mod pieces;
mod ring;
#[cfg(test)]
mod tests;

pub use ring::{CopyEngine, FifoError, Gauge, Reader, Shape, Writer, fifo};
