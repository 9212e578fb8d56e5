//! The recorder of one CPU: a [`Sink`] with a fixed buffer that never allocates.

use std::collections::TryReserveError;

use punctual_kern::{Decision, Entry, Event, Sink, TraceEvent};
use punctual_model::{Instant, ThreadId};

use crate::encode::{self, Short};
use crate::form;
use crate::record::Records;

/// Records everything that a shard reports, until its buffer is full; then it stops and says from
/// when. What it holds is always whole entries.
///
/// All memory is taken (and touched) at construction: recording costs a bounds check and two to
/// seven stores, and no page fault.
#[derive(Debug)]
pub struct Recorder {
    words: Box<[u64]>,
    /// Where the next one goes; at the end when some were lost, so that nothing goes anywhere.
    length: usize,
    /// Where the entry that is being recorded begins, and its instant.
    entry: usize,
    now: Instant,
    lost_from: Option<Instant>,
    /// How many words are whole entries, if some were lost.
    kept: usize,
}

impl Recorder {
    /// Records that a typical job makes take about this many bytes (release, start, two switches,
    /// completion, and their events and decisions).
    pub const TYPICAL_BYTES_PER_JOB: usize = 512;

    /// A recorder that holds `bytes` bytes of records.
    ///
    /// # Errors
    /// When there is not that much memory.
    pub fn with_capacity(bytes: usize) -> Result<Recorder, TryReserveError> {
        let capacity = bytes / size_of::<u64>();
        let mut words = Vec::new();
        words.try_reserve_exact(capacity)?;
        // Written once, so that the pages exist before the run.
        words.resize(capacity, 1);
        Ok(Recorder {
            words: words.into_boxed_slice(),
            length: 0,
            entry: 0,
            now: Instant::ZERO,
            lost_from: None,
            kept: 0,
        })
    }

    /// From when on entries are missing; `None`: everything is there.
    pub fn lost_from(&self) -> Option<Instant> {
        self.lost_from
    }

    /// The instant of the last entry, recorded or not.
    pub fn last_entry(&self) -> Instant {
        self.now
    }

    /// What was recorded, and from when on it is missing.
    pub fn finish(self) -> (Records, Option<Instant>) {
        let mut words = self.words.into_vec();
        words.truncate(match self.lost_from {
            None => self.length,
            Some(_) => self.kept,
        });
        (Records::from_words(words), self.lost_from)
    }

    /// Inlined wherever a record is made, so that its words go from registers to their place.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn put(&mut self, words: &[u64]) {
        let rest = self.words.get_mut(self.length..);
        match rest.and_then(|rest| rest.get_mut(..words.len())) {
            Some(place) => {
                place.copy_from_slice(words);
                self.length += words.len();
            }
            None => self.give_up(),
        }
    }

    #[cold]
    fn give_up(&mut self) {
        if self.lost_from.is_none() {
            self.lost_from = Some(self.now);
            self.kept = self.entry;
        }
        self.length = self.words.len();
    }
}

impl Sink for Recorder {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn begin(&mut self, entry: &Entry<'_>) {
        self.entry = self.length;
        self.now = entry.now;
        if !entry.is_plain() {
            encode::prefixes(entry.missing, entry.ceiling, |words| self.put(words));
        }
        encode::event(entry.now, entry.event, |words| self.put(words));
    }

    #[inline]
    fn trace(&mut self, _: Instant, event: TraceEvent) {
        form::store_trace(&event, |words| self.put(words));
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn decision(&mut self, _: Instant, decision: &Decision) {
        encode::decision(decision, |words| self.put(words));
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn entry(
        &mut self,
        now: Instant,
        event: &Event,
        left: Option<ThreadId>,
        (next, arm): (ThreadId, Option<Instant>),
    ) {
        self.entry = self.length;
        self.now = now;
        match encode::entry(now, event, left, next, arm) {
            Some(Short::Switch(words)) => self.put(&words),
            Some(Short::Same(words)) => self.put(&words),
            None => self.entry_in_parts(now, event, left, (next, arm)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;
    use punctual_kern::Next;

    fn entry(recorder: &mut Recorder, at: u64) {
        let now = Instant::from_ticks(at);
        recorder.begin(&Entry::at(now, &Event::Tick));
        let idle = Decision {
            next: Next::Idle,
            arm: None,
            refused: None,
        };
        recorder.decision(now, &idle);
    }

    #[test]
    fn an_entry_told_at_once_is_recorded_as_one_told_in_parts() {
        let thread = |index| punctual_model::ThreadId::new(index, 3);
        let at = Instant::from_ticks;
        let entries = [
            (Event::Tick, None, Some(at(77))),
            (Event::Yield, Some(thread(1)), None),
            (Event::Yield, Some(thread(3)), Some(at(80))),
            (Event::Tick, Some(thread(1)), None),
            (Event::Complete, Some(thread(1)), None),
            (Event::Wake(thread(4)), None, Some(at(90))),
        ];
        let recorder = || Recorder::with_capacity(4_096).expect("a page");
        let (mut whole, mut parts) = (recorder(), recorder());
        let to = thread(2);
        for (now, (event, left, arm)) in (5..).map(at).zip(entries) {
            whole.entry(now, &event, left, (to, arm));
            parts.begin(&Entry::at(now, &event));
            if left.is_some() {
                let switched = TraceEvent::Switched {
                    from: left,
                    to: Some(to),
                    preempted: true,
                };
                parts.trace(now, switched);
            }
            let (next, refused) = (Next::Thread(to), None);
            parts.decision(now, &Decision { next, arm, refused });
        }
        assert_eq!(whole.words, parts.words);
        assert_eq!((whole.length, whole.entry), (parts.length, parts.entry));
    }

    #[test]
    fn a_full_recorder_keeps_whole_entries_and_says_from_when_it_lost() {
        // An idle tick takes four words: two and a half of them fit.
        let mut recorder = Recorder::with_capacity(10 * 8).expect("80 bytes");
        let allocated = recorder.words.as_ptr();
        for at in [5, 6, 7, 8] {
            entry(&mut recorder, at);
        }
        assert_eq!(recorder.words.as_ptr(), allocated, "it never grows");
        let (records, lost_from) = recorder.finish();
        assert_eq!(lost_from, Some(Instant::from_ticks(7)));
        let events: Vec<u64> = records
            .iter()
            .filter(|(_, r)| matches!(r, Record::Entry(_)))
            .map(|(now, _)| now.ticks())
            .collect();
        assert_eq!(events, [5, 6]);
        assert_eq!(records.iter().count(), 4);
    }
}
