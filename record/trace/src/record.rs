//! Records: what one shard was told, changed and decided, as one compact stream of words.
//!
//! ```text
//!   word 0                    words 1..
//!   +--------+-------+------+ +--------+--------+
//!   | 0      | flags | kind | | field  | field  | ...      as many as the kind has
//!   +--------+-------+------+ +--------+--------+
//!    63    16 15    8 7    0
//! ```
//!
//! A line has two to fifteen words, mostly two to five: recording is a bounds check and a few
//! stores. The instant stands once per entry, with its event: what follows happens at that instant.

use std::collections::TryReserveError;

use punctual_kern::{Ceiling, Decision, Entry, Event, TraceEvent, Uncharged};
use punctual_model::Instant;

use crate::encode;

/// One thing that a shard was told, changed or decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Record {
    /// An entry begins.
    Entry(RecordedEntry),
    /// A state changed, within the entry.
    Trace(TraceEvent),
    /// The entry ends.
    Decision(Decision),
}

/// An entry as it was recorded (see [`Entry`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordedEntry {
    /// What the clock said.
    pub now: Instant,
    /// What of the interval since the last entry was charged to nobody.
    pub missing: Uncharged,
    /// How urgent the running thread is at least from then on, if that has changed.
    pub ceiling: Option<Option<Ceiling>>,
    /// What happened.
    pub event: Event,
}

impl RecordedEntry {
    /// An entry with nothing but an event.
    pub const fn at(now: Instant, event: Event) -> RecordedEntry {
        RecordedEntry {
            now,
            missing: Uncharged::NONE,
            ceiling: None,
            event,
        }
    }

    /// The record of an entry.
    pub const fn of(entry: &Entry<'_>) -> RecordedEntry {
        RecordedEntry {
            now: entry.now,
            missing: entry.missing,
            ceiling: entry.ceiling,
            event: *entry.event,
        }
    }

    /// Whether there is nothing but an event.
    pub const fn is_plain(&self) -> bool {
        self.as_entry().is_plain()
    }

    /// The entry to be handled again.
    pub const fn as_entry(&self) -> Entry<'_> {
        Entry {
            now: self.now,
            missing: self.missing,
            ceiling: self.ceiling,
            event: &self.event,
        }
    }
}

/// Everything recorded on one CPU, in order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Records {
    words: Vec<u64>,
}

impl Records {
    pub(crate) fn from_words(words: Vec<u64>) -> Records {
        Records { words }
    }

    /// Makes room for so many bytes more, which take no memory before they are there. O(1)
    /// amortized.
    ///
    /// # Errors
    /// When there is not that much memory.
    pub fn try_reserve(&mut self, bytes: usize) -> Result<(), TryReserveError> {
        self.words.try_reserve(bytes.div_ceil(size_of::<u64>()))
    }

    /// Appends a record. O(1) amortized.
    pub fn push(&mut self, record: &Record) {
        encode::record(record, |words| self.words.extend_from_slice(words));
    }

    /// The records in order, each with the instant of its entry. O(1) per step.
    pub fn iter(&self) -> Iter<'_> {
        Iter {
            words: &self.words,
            now: Instant::ZERO,
        }
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Bytes that the records take.
    pub fn bytes(&self) -> usize {
        self.words.len() * size_of::<u64>()
    }
}

impl FromIterator<Record> for Records {
    fn from_iter<T: IntoIterator<Item = Record>>(records: T) -> Records {
        let mut all = Records::default();
        for record in records {
            all.push(&record);
        }
        all
    }
}

impl<'a> IntoIterator for &'a Records {
    type Item = (Instant, Record);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// See [`Records::iter`].
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    words: &'a [u64],
    now: Instant,
}

impl Iterator for Iter<'_> {
    type Item = (Instant, Record);

    fn next(&mut self) -> Option<(Instant, Record)> {
        let (record, length) = encode::decode(self.words)?;
        self.words = self.words.get(length..)?;
        if let Record::Entry(entry) = record {
            // As the core does: its time never goes back.
            self.now = self.now.max(entry.now);
        }
        Some((self.now, record))
    }
}
