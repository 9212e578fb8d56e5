//! The ends of FIFOs on one tile, and its copy engine

use std::sync::Arc;

use punctual_fifo::{CopyEngine, Gauge, Reader, Writer};
use punctual_firing::{Fifos, Port, Rule};

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
    pub(crate) fn claim(&mut self, inputs: &[Port], outputs: &[Port]) {
        for port in inputs {
            if let Some(reader) = &mut self.readers[port.fifo] {
                let claimed = reader.claim(port.rate, &mut self.copies);
                debug_assert!(claimed, "the rule holds");
            }
        }
        for port in outputs {
            if let Some(writer) = &mut self.writers[port.fifo] {
                let claimed = writer.claim(port.rate);
                debug_assert!(claimed, "the rule holds");
            }
        }
    }

    /// The ends of one actor, taken out; with a copy engine of their own.
    pub(crate) fn take(&mut self, rule: &Rule) -> Ends {
        let mut part = Ends::new(self.readers.len(), &self.memories);
        for port in rule.inputs() {
            part.readers[port.fifo] = self.readers[port.fifo].take();
        }
        for port in rule.outputs() {
            part.writers[port.fifo] = self.writers[port.fifo].take();
        }
        part
    }

    /// The numbers of all FIFOs that have an end here.
    pub(crate) fn gauges(&self) -> Gauges {
        let reads = self.readers.iter().map(Option::as_ref);
        let ends = reads.zip(self.writers.iter().map(Option::as_ref));
        let gauge = |(reader, writer): (Option<&Reader>, Option<&Writer>)| {
            reader.map(Reader::gauge).or(writer.map(Writer::gauge))
        };
        Gauges(ends.map(gauge).collect())
    }

    /// The numbers of all ends that are here, for one who waits for a change of them.
    pub(crate) fn watch(&self) -> Watch {
        Watch {
            read: self.readers.iter().flatten().map(Reader::gauge).collect(),
            written: self.writers.iter().flatten().map(Writer::gauge).collect(),
        }
    }

    /// Copies the output of a firing to where its FIFOs are. O(bytes).
    pub(crate) fn send(&mut self, outputs: &[Port]) {
        for port in outputs {
            if let Some(writer) = &mut self.writers[port.fifo] {
                writer.send(&mut self.copies);
            }
        }
    }

    pub(crate) fn reader(&self, fifo: usize) -> Option<&Reader> {
        self.readers.get(fifo)?.as_ref()
    }

    pub(crate) fn writer(&self, fifo: usize) -> Option<&Writer> {
        self.writers.get(fifo)?.as_ref()
    }

    /// Moves tokens into a buffer, where they are there.
    pub(crate) fn read(&mut self, fifo: usize, into: &mut [u8]) -> bool {
        let reader = self.readers.get_mut(fifo).and_then(Option::as_mut);
        reader.is_some_and(|reader| reader.read(into, &mut self.copies))
    }

    /// Copies tokens from a buffer, where there is space.
    pub(crate) fn write(&mut self, fifo: usize, from: &[u8]) -> bool {
        let writer = self.writers.get_mut(fifo).and_then(Option::as_mut);
        writer.is_some_and(|writer| writer.write(from, &mut self.copies))
    }

    /// Gives tokens back without a look at them.
    pub(crate) fn skip(&mut self, fifo: usize, tokens: u32) -> bool {
        let reader = self.readers.get_mut(fifo).and_then(Option::as_mut);
        reader.is_some_and(|reader| {
            let claimed = reader.claim(tokens, &mut self.copies);
            if claimed {
                core::hint::black_box(reader.claimed().first());
                reader.release(tokens);
            }
            claimed
        })
    }

    /// Hands on tokens of one value.
    pub(crate) fn fill(&mut self, fifo: usize, tokens: u32, value: u8) -> bool {
        let writer = self.writers.get_mut(fifo).and_then(Option::as_mut);
        writer.is_some_and(|writer| {
            let claimed = writer.claim(tokens);
            if claimed {
                writer.claimed().fill(value);
                writer.release(tokens, &mut self.copies);
            }
            claimed
        })
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

/// FIFOs of a tile. While none of its actors fires, other tiles only add tokens and space.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch {
    read: Vec<Gauge>,
    written: Vec<Gauge>,
}

impl Watch {
    /// All tokens and all space. O(FIFOs).
    pub(crate) fn sum(&self) -> u64 {
        let tokens = self.read.iter().map(Gauge::tokens);
        let space = self.written.iter().map(Gauge::space);
        tokens.chain(space).map(u64::from).sum()
    }
}

/// The numbers of FIFOs, by their places in the graph, for a look without any end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gauges(Vec<Option<Gauge>>);

impl Gauges {
    /// Whether a FIFO ever holds so many tokens.
    pub(crate) fn holds(&self, fifo: usize, tokens: u32) -> bool {
        let gauge = self.0.get(fifo).and_then(Option::as_ref);
        gauge.is_some_and(|gauge| tokens <= gauge.capacity())
    }
}

/// FIFOs as one actor of a tile changes them: numbers of all, and the ends of its own.
pub(crate) struct Part<'a> {
    pub(crate) gauges: &'a Gauges,
    /// `None`: a look that changes nothing.
    pub(crate) own: Option<&'a mut Ends>,
}

impl Fifos for Part<'_> {
    fn tokens(&self, fifo: usize) -> u32 {
        let gauge = self.gauges.0.get(fifo).and_then(Option::as_ref);
        gauge.map_or(0, Gauge::tokens)
    }

    fn space(&self, fifo: usize) -> u32 {
        let gauge = self.gauges.0.get(fifo).and_then(Option::as_ref);
        gauge.map_or(0, Gauge::space)
    }

    fn consume(&mut self, fifo: usize, count: u32) {
        if let Some(own) = &mut self.own {
            own.consume(fifo, count);
        }
    }

    fn produce(&mut self, fifo: usize, count: u32) {
        if let Some(own) = &mut self.own {
            own.produce(fifo, count);
        }
    }
}
