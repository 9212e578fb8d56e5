//! The ends of FIFOs on one tile, and its copy engine

use std::sync::Arc;

use punctual_fifo::{CopyEngine, Reader, Writer};
use punctual_firing::{Fifos, Rule};

use crate::memory::Memory;

/// By the places of FIFOs in the graph: those ends whose actors are on this tile.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    readers: Vec<Option<Reader>>,
    writers: Vec<Option<Writer>>,
    copies: CopyEngine,
    memories: Arc<[Memory]>,
}

/// The ends, the memory that tiles share, and what copies to and from it.
pub(crate) type Split<'a> = (
    &'a [Option<Reader>],
    &'a mut [Option<Writer>],
    (&'a [Memory], &'a mut CopyEngine),
);

impl Ends {
    pub(crate) fn new(fifos: usize, memories: &Arc<[Memory]>) -> Ends {
        Ends {
            readers: (0..fifos).map(|_| None).collect(),
            writers: (0..fifos).map(|_| None).collect(),
            copies: CopyEngine::default(),
            memories: Arc::clone(memories),
        }
    }

    pub(crate) fn set_reader(&mut self, fifo: usize, reader: Reader) {
        self.readers[fifo] = Some(reader);
    }

    pub(crate) fn set_writer(&mut self, fifo: usize, writer: Writer) {
        self.writers[fifo] = Some(writer);
    }

    pub(crate) fn split(&mut self) -> Split<'_> {
        let shared = (&*self.memories, &mut self.copies);
        (&self.readers, &mut self.writers, shared)
    }

    /// Makes the input of a firing local, and reserves its output. The rule holds. O(ports), and
    /// O(bytes) where tokens have to be copied.
    #[inline]
    pub(crate) fn claim(&mut self, rule: &Rule) {
        for port in rule.inputs() {
            if let Some(reader) = &mut self.readers[port.fifo] {
                let claimed = reader.claim(port.rate, &mut self.copies);
                debug_assert!(claimed, "the rule holds");
            }
        }
        for port in rule.outputs() {
            if let Some(writer) = &mut self.writers[port.fifo] {
                let claimed = writer.claim(port.rate);
                debug_assert!(claimed, "the rule holds");
            }
        }
    }

    /// Copies so far, and their bytes.
    pub(crate) fn copies(&self) -> (u64, u64) {
        (self.copies.copies, self.copies.bytes)
    }
}

impl Fifos for Ends {
    #[inline]
    fn tokens(&self, fifo: usize) -> u32 {
        let reader = self.readers.get(fifo).and_then(Option::as_ref);
        reader.map_or(0, Reader::tokens)
    }

    #[inline]
    fn space(&self, fifo: usize) -> u32 {
        let writer = self.writers.get(fifo).and_then(Option::as_ref);
        writer.map_or(0, Writer::space)
    }

    #[inline]
    fn consume(&mut self, fifo: usize, count: u32) {
        if let Some(reader) = &mut self.readers[fifo] {
            reader.release(count);
        }
    }

    #[inline]
    fn produce(&mut self, fifo: usize, count: u32) {
        if let Some(writer) = &mut self.writers[fifo] {
            writer.release(count, &mut self.copies);
        }
    }
}
