//! The recorder of one CPU: a [`Sink`] with a fixed buffer that never allocates.

use std::collections::TryReserveError;
use std::fmt;

use punctual_kern::{Decision, Entry, Event, Run, Sink, TraceEvent};
use punctual_model::{Instant, ThreadId};

use crate::encode::{self, Job, Passing, Short, Turn};
use crate::form;
use crate::record::Records;
use crate::ring::{Outlet, Ring};

/// Records everything that a shard reports, until its buffer is full; then it stops and says from
/// when. What it holds is always whole entries.
///
/// All memory is taken (and touched) at construction: recording costs a bounds check and two to
/// seven stores, and no page fault. A [`Drain`] makes room while the run goes on.
pub struct Recorder {
    ring: Ring,
    /// The instant of the entry that is being recorded.
    now: Instant,
    lost_from: Option<Instant>,
}

/// Takes what a recorder has recorded, from another thread, while it records.
pub struct Drain(Outlet);

impl Drain {
    /// All entries that are whole and were not taken before. After [`Recorder::finish`] these are
    /// the last. O(those).
    pub fn take(&mut self) -> Records {
        let mut words = Vec::new();
        self.0.take(&mut words);
        Records::from_words(words)
    }
}

impl fmt::Debug for Drain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drain").finish_non_exhaustive()
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("Recorder");
        let f = f.field("now", &self.now);
        f.field("lost_from", &self.lost_from)
            .finish_non_exhaustive()
    }
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
        Ok(Recorder {
            ring: Ring::with_capacity(bytes / size_of::<u64>())?,
            now: Instant::ZERO,
            lost_from: None,
        })
    }

    /// The drain of this recorder, whose buffer holds from now on what was not taken yet. To be
    /// called once, before the run.
    pub fn drain(&mut self) -> Drain {
        Drain(self.ring.outlet())
    }

    /// From when on entries are missing; `None`: everything is there.
    pub fn lost_from(&self) -> Option<Instant> {
        self.lost_from
    }

    /// The instant of the last entry, recorded or not.
    pub fn last_entry(&self) -> Instant {
        self.now
    }

    /// What was recorded (nothing if there is a drain, which has it), and from when on it is
    /// missing.
    pub fn finish(self) -> (Records, Option<Instant>) {
        (Records::from_words(self.ring.into_words()), self.lost_from)
    }

    /// Inlined wherever a record is made, so that its words go from registers to their place.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn put(&mut self, words: &[u64]) {
        if !self.ring.put(words) {
            self.give_up();
        }
    }

    /// The same for a whole entry, behind others.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn put_whole<const N: usize>(&mut self, words: [u64; N]) {
        if !self.ring.put_whole(words) {
            self.give_up();
        }
    }

    #[cold]
    fn give_up(&mut self) {
        self.lost_from = self.lost_from.or(Some(self.now));
    }
}

impl Sink for Recorder {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn begin(&mut self, entry: &Entry<'_>) {
        self.ring.commit();
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
        self.now = now;
        match encode::entry(now, event, left, next, arm) {
            Some(Short::Switch(words)) => self.put_whole(words),
            Some(Short::Same(words)) => self.put_whole(words),
            None => self.entry_in_parts(now, event, left, (next, arm)),
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn entry_of_change(
        &mut self,
        now: Instant,
        event: &Event,
        change: TraceEvent,
        run: (ThreadId, ThreadId, Option<Instant>),
    ) {
        self.now = now;
        match encode::turn(now, event, &change, run) {
            Some(Turn::Woken(words)) => self.put_whole(words),
            Some(Turn::Waits(words)) => self.put_whole(words),
            None => self.entry_of_change_in_parts(now, event, change, run),
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn entry_of_changes(
        &mut self,
        now: Instant,
        event: &Event,
        changes: (TraceEvent, TraceEvent),
        run: (ThreadId, ThreadId, Option<Instant>),
    ) {
        self.now = now;
        if let Some(words) = encode::coming(now, event, &changes, run) {
            return self.put_whole(words);
        }
        match encode::passing(now, event, &changes, run) {
            Some(Passing::Inherits(words)) => self.put_whole(words),
            Some(Passing::Handed(words)) => self.put_whole(words),
            None => self.entry_of_changes_in_parts(now, event, changes, run),
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn entry_of_job(
        &mut self,
        now: Instant,
        event: &Event,
        changes: (TraceEvent, Option<TraceEvent>),
        run: Run,
    ) {
        self.now = now;
        match encode::job(now, event, &changes, run) {
            Some(Job::Comes(words)) => self.put_whole(words),
            Some(Job::Last(words)) => self.put_whole(words),
            Some(Job::Ends(words)) => self.put_whole(words),
            None => self.entry_of_job_in_parts(now, event, changes, run),
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn entry_of_birth(
        &mut self,
        now: Instant,
        event: &Event,
        changes: (TraceEvent, TraceEvent, TraceEvent),
        run: (ThreadId, ThreadId, Option<Instant>),
    ) {
        self.now = now;
        match encode::birth(now, event, &changes, run) {
            Some(words) => self.put_whole(words),
            None => self.entry_of_birth_in_parts(now, event, changes, run),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;
    use punctual_kern::{Constraint, Next, Outcome, WakeCause};
    use punctual_model::{Class, Late, Priority, Span, Work};

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
        let records = whole.finish();
        assert_eq!(records, parts.finish());
        assert_eq!(records.0.iter().count(), 16);
    }

    #[test]
    fn a_wake_up_or_a_wait_told_at_once_is_recorded_as_one_told_in_parts() {
        let thread = |index| punctual_model::ThreadId::new(index, 3);
        let at = Instant::from_ticks;
        let woken = |cause| TraceEvent::Woken {
            thread: thread(2),
            cause,
        };
        let blocked = |for_predecessors| TraceEvent::Blocked {
            thread: thread(1),
            job: 5,
            for_predecessors,
        };
        let (wake, block) = (Event::Wake(thread(2)), Event::Block { until: None });
        let until = Some(at(9));
        let entries = [
            (wake, woken(WakeCause::Wake), None),
            (wake, woken(WakeCause::EarlyWake), Some(at(80))),
            (block, blocked(false), Some(at(90))),
            (block, blocked(false), None),
            (block, blocked(true), None),
            (Event::Block { until }, blocked(false), None),
            (Event::Tick, woken(WakeCause::Timeout), None),
        ];
        let recorder = || Recorder::with_capacity(4_096).expect("a page");
        let (mut whole, mut parts) = (recorder(), recorder());
        for (now, (event, change, arm)) in (5..).map(at).zip(entries) {
            let run = (thread(1), thread(2), arm);
            whole.entry_of_change(now, &event, change, run);
            parts.entry_of_change_in_parts(now, &event, change, run);
        }
        let records = whole.finish();
        assert_eq!(records, parts.finish());
        assert_eq!(records.0.iter().count(), 4 * entries.len());
    }

    #[test]
    fn a_lock_that_is_lent_for_or_handed_on_is_recorded_at_once_as_in_parts() {
        let thread = |index| punctual_model::ThreadId::new(index, 3);
        let at = Instant::from_ticks;
        let (holder, key, to) = (thread(2), 77, thread(4));
        let blocks = |until| Event::BlockOn { holder, key, until };
        let from = holder;
        let hands = Event::HandOver { key, from, to };
        let waits = TraceEvent::Blocked {
            thread: thread(1),
            job: 5,
            for_predecessors: false,
        };
        let cause = WakeCause::Wake;
        let woken = TraceEvent::Woken { thread: to, cause };
        let keyed = |yielded| TraceEvent::Ordered {
            thread: holder,
            background: yielded,
            priority: Priority::new(6),
            deadline: at(700),
            release: at(3),
            yielded,
        };
        let entries = [
            (blocks(None), waits, keyed(false), None),
            (blocks(None), waits, keyed(false), Some(at(80))),
            (blocks(Some(at(9))), waits, keyed(false), None),
            (blocks(None), waits, keyed(true), None),
            (hands, woken, keyed(false), Some(at(80))),
            (hands, woken, keyed(false), None),
            (hands, waits, keyed(false), None),
        ];
        let recorder = || Recorder::with_capacity(4_096).expect("a page");
        let (mut whole, mut parts) = (recorder(), recorder());
        for (now, (event, change, ordered, arm)) in (5..).map(at).zip(entries) {
            let (changes, run) = ((change, ordered), (thread(1), thread(2), arm));
            whole.entry_of_changes(now, &event, changes, run);
            parts.entry_of_changes_in_parts(now, &event, changes, run);
        }
        let records = whole.finish();
        assert_eq!(records, parts.finish());
        assert_eq!(records.0.iter().count(), 5 * entries.len());
    }

    #[test]
    fn a_thread_that_comes_or_goes_is_recorded_at_once_as_in_parts() {
        let (from, to) = (ThreadId::new(1, 3), ThreadId::new(2, 4));
        let at = Instant::from_ticks;
        let class = Class::Periodic {
            period: Span::from_ticks(90),
            wcet: Work::from_ticks(7),
            relative_deadline: Span::from_ticks(80),
        };
        let constraint = |late, class| Constraint {
            class,
            priority: Priority::new(6),
            late,
            order: 12,
            ..Constraint::default()
        };
        let created = TraceEvent::Created { thread: to };
        let released = TraceEvent::Released {
            thread: to,
            job: 5,
            arrival: at(4),
            deadline: at(84),
        };
        let started = |budget| TraceEvent::Started {
            thread: to,
            job: 5,
            budget,
        };
        let completed = TraceEvent::Completed {
            thread: from,
            job: 8,
            outcome: Outcome::Aborted,
            arrival: at(2),
            deadline: at(82),
            received: Work::from_ticks(3),
        };
        let ended = TraceEvent::Ended { thread: from };
        let some = started(Some(Work::from_ticks(7)));
        let changes = [
            (Event::Tick, released, some),
            (Event::Tick, released, started(None)),
            (Event::Yield, released, some),
            (Event::Exit, completed, ended),
            (Event::Exit, ended, completed),
        ];
        let births = [
            (constraint(Late::Queue { backlog: 9 }, class), some),
            (constraint(Late::Skip, class), some),
            (constraint(Late::Skip, class), started(None)),
            (constraint(Late::Skip, Class::Aperiodic), some),
        ];
        let recorder = || Recorder::with_capacity(8_192).expect("two pages");
        let (mut whole, mut parts) = (recorder(), recorder());
        for (now, arm) in [(at(5), Some(at(80))), (at(6), None)] {
            let run = (from, to, arm);
            for (event, one, other) in changes {
                whole.entry_of_changes(now, &event, (one, other), run);
                parts.entry_of_changes_in_parts(now, &event, (one, other), run);
            }
            for (constraint, started) in births {
                let (event, all) = (Event::Create(constraint), (created, released, started));
                whole.entry_of_birth(now, &event, all, run);
                parts.entry_of_birth_in_parts(now, &event, all, run);
            }
        }
        let records = whole.finish();
        assert_eq!(records, parts.finish());
        assert_eq!(records.0.iter().count(), 2 * (5 * 5 + 4 * 6));
    }

    #[test]
    fn a_job_that_comes_on_an_idle_cpu_or_ends_is_recorded_at_once_as_in_parts() {
        let (thread, at) = (ThreadId::new(2, 3), Instant::from_ticks);
        let (one, other) = (Some(thread), Some(ThreadId::new(4, 5)));
        let (job, arrival, deadline) = (6, at(40), at(90));
        let completed = |outcome| TraceEvent::Completed {
            thread,
            job,
            outcome,
            arrival,
            deadline,
            received: Work::from_ticks(7),
        };
        let released = TraceEvent::Released {
            thread,
            job,
            arrival,
            deadline,
        };
        let started = |budget| {
            Some(TraceEvent::Started {
                thread,
                job,
                budget,
            })
        };
        let budget = Some(Work::from_ticks(9));
        let entries = [
            (Event::Complete, (completed(Outcome::Done), None)),
            (Event::Complete, (completed(Outcome::Stopped), None)),
            (Event::Tick, (completed(Outcome::Done), None)),
            (Event::Tick, (released, started(budget))),
            (Event::Tick, (released, started(None))),
            (Event::Yield, (released, started(budget))),
        ];
        let recorder = || Recorder::with_capacity(16_384).expect("four pages");
        let (mut whole, mut parts) = (recorder(), recorder());
        let mut now = 40;
        for (from, to) in [(None, None), (None, one), (other, None), (other, one)] {
            for arm in [None, Some(at(80))] {
                for (event, changes) in entries {
                    now += 1;
                    whole.entry_of_job(at(now), &event, changes, (from, to, arm));
                    parts.entry_of_job_in_parts(at(now), &event, changes, (from, to, arm));
                }
            }
        }
        let records = whole.finish();
        assert_eq!(records, parts.finish());
        assert_eq!(records.0.iter().count(), 8 * 3 * (4 + 5));
    }

    #[test]
    fn a_full_recorder_keeps_whole_entries_and_says_from_when_it_lost() {
        // An idle tick takes four words: two and a half of them fit.
        let mut recorder = Recorder::with_capacity(10 * 8).expect("80 bytes");
        for at in [5, 6, 7, 8] {
            entry(&mut recorder, at);
        }
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

    #[test]
    fn a_drain_makes_room_and_takes_each_whole_entry_once_in_order() {
        // Three and a half idle ticks fit: they go around the end in every way.
        let mut recorder = Recorder::with_capacity(14 * 8).expect("112 bytes");
        let mut drain = recorder.drain();
        let mut seen = Vec::new();
        let mut take = |drain: &mut Drain| {
            let records = drain.take();
            assert_eq!(records.iter().count() % 2, 0, "whole entries");
            let entries = records
                .iter()
                .filter(|(_, r)| matches!(r, Record::Entry(_)));
            seen.extend(entries.map(|(now, _)| now.ticks()));
        };
        for at in 0..50 {
            entry(&mut recorder, at);
            if at % 2 == 1 {
                take(&mut drain);
            }
        }
        // Nobody takes any: it stops, and goes on no more.
        for at in 50..54 {
            entry(&mut recorder, at);
        }
        take(&mut drain);
        entry(&mut recorder, 54);
        let (rest, lost_from) = recorder.finish();
        take(&mut drain);
        let lost = lost_from.map(Instant::ticks);
        assert!(rest.is_empty() && lost.is_some_and(|at| (51..54).contains(&at)));
        assert_eq!(seen, (0..lost.unwrap_or(0)).collect::<Vec<u64>>());
    }
}
