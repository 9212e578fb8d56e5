//! Records as words, and back: what [`crate::Recorder`] stores.
//!
//! The most frequent records are stored without a look at the table of forms: they are on the
//! scheduling path of a live run.

use punctual_kern::{
    Ceiling, Decision, Event, Next, Outcome, Run, Taker, TraceEvent, Uncharged, WakeCause,
};
use punctual_model::{Class, Instant, Late, OnOverrun, ThreadId};

use crate::form::{self, Prefix};
use crate::record::{Record, RecordedEntry};
use crate::value::Scalar;

#[inline]
const fn head(kind: u8) -> u64 {
    kind as u64
}

/// The flag that says that the second column is absent.
#[inline]
fn no_arm(arm: Option<Instant>) -> u64 {
    if arm.is_none() { 1 << 9 } else { 0 }
}

#[inline]
fn arm_word(arm: Option<Instant>) -> u64 {
    arm.map_or(0, Instant::ticks)
}

/// Hands the words of an event to `put`; those of the most frequent ones without a call.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn event(now: Instant, event: &Event, put: impl FnOnce(&[u64])) {
    match event {
        Event::Tick => put(&[head(form::TICK), now.ticks()]),
        Event::Yield => put(&[head(form::YIELD), now.ticks()]),
        Event::Complete => put(&[head(form::COMPLETE), now.ticks()]),
        _ => form::store_event((&now, event), put),
    }
}

/// Hands what the entry has beside its event to `put`, piece by piece.
#[cold]
pub(crate) fn prefixes(
    missing: Uncharged,
    ceiling: Option<Option<Ceiling>>,
    mut put: impl FnMut(&[u64]),
) {
    if !missing.is_zero() {
        let prefix = Prefix::Uncharged(missing.stolen, missing.given_back);
        form::store_prefix(&prefix, &mut put);
    }
    if let Some(ceiling) = ceiling {
        form::store_prefix(&Prefix::Ceiling(ceiling), &mut put);
    }
    if missing.taker != Taker::Unknown {
        form::store_prefix(&Prefix::Taker(missing.taker), &mut put);
    }
}

/// The words of a whole entry of the most frequent kind.
pub(crate) enum Short {
    /// Another thread runs.
    Switch([u64; 9]),
    /// The same one goes on.
    Same([u64; 5]),
}

/// An entry that did no more than to change who runs, in one piece; `None`: not of that kind.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn entry(
    now: Instant,
    event: &Event,
    left: Option<ThreadId>,
    next: ThreadId,
    arm: Option<Instant>,
) -> Option<Short> {
    let kind = match event {
        Event::Tick => form::TICK,
        Event::Yield => form::YIELD,
        _ => return None,
    };
    let (kind, now) = (head(kind), now.ticks());
    let runs = head(form::RUN) | no_arm(arm);
    let (next, arm) = (ThreadId::word(next), arm_word(arm));
    let Some(left) = left else {
        return Some(Short::Same([kind, now, runs, next, arm]));
    };
    let (switched, left) = (head(form::SWITCHED), ThreadId::word(left));
    Some(Short::Switch([
        kind, now, switched, left, next, 1, runs, next, arm,
    ]))
}

/// The words of a whole entry in which a thread is woken, or waits, and another one runs.
pub(crate) enum Turn {
    /// The thread that was woken runs.
    Woken([u64; 13]),
    /// The thread that ran waits.
    Waits([u64; 14]),
}

/// An entry that did no more than to wake a thread, or to have the running one wait, and to switch,
/// in one piece; `None`: not of that kind.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn turn(
    now: Instant,
    event: &Event,
    change: &TraceEvent,
    (from, to, arm): (ThreadId, ThreadId, Option<Instant>),
) -> Option<Turn> {
    let (now, id) = (now.ticks(), ThreadId::word);
    let (switched, runs) = (head(form::SWITCHED), head(form::RUN) | no_arm(arm));
    let (left, next, arm) = (id(from), id(to), arm_word(arm));
    match (event, change) {
        (Event::Wake(woken), TraceEvent::Woken { thread, cause }) => {
            let (kind, change) = (head(form::WAKE), head(form::WOKEN));
            let (woken, thread, cause) = (id(*woken), id(*thread), WakeCause::word(*cause));
            Some(Turn::Woken([
                kind, now, woken, change, thread, cause, switched, left, next, 1, runs, next, arm,
            ]))
        }
        (
            Event::Block { until: None },
            TraceEvent::Blocked {
                thread,
                job,
                for_predecessors: false,
            },
        ) => {
            let kind = head(form::BLOCK) | 1 << 9;
            let (change, thread) = (head(form::BLOCKED), id(*thread));
            Some(Turn::Waits([
                kind, now, 0, change, thread, *job, 0, switched, left, next, 0, runs, next, arm,
            ]))
        }
        _ => None,
    }
}

/// The words of a whole entry in which a lock of a runtime is wanted, or handed on.
pub(crate) enum Passing {
    /// The thread that ran waits for the lock, and its holder runs.
    Inherits([u64; 23]),
    /// The thread that ran hands the lock on, and the one that waited runs.
    Handed([u64; 22]),
}

/// As [`turn`] where a thread is queued by another key besides, for a lock of a runtime.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn passing(
    now: Instant,
    event: &Event,
    changes: &(TraceEvent, TraceEvent),
    (from, to, arm): (ThreadId, ThreadId, Option<Instant>),
) -> Option<Passing> {
    let TraceEvent::Ordered {
        thread: keyed,
        background: false,
        priority,
        deadline,
        release,
        yielded: false,
    } = changes.1
    else {
        return None;
    };
    let (now, id) = (now.ticks(), ThreadId::word);
    let (switched, runs) = (head(form::SWITCHED), head(form::RUN) | no_arm(arm));
    let (left, next, arm) = (id(from), id(to), arm_word(arm));
    let (ordered, keyed) = (head(form::ORDERED), id(keyed));
    let (priority, deadline) = (u64::from(priority.number()), deadline.ticks());
    let release = release.ticks();
    match (event, &changes.0) {
        (
            Event::BlockOn {
                holder,
                key,
                until: None,
            },
            TraceEvent::Blocked {
                thread,
                job,
                for_predecessors: false,
            },
        ) => {
            // The fourth column, `until`, is absent.
            let kind = head(form::BLOCK_ON) | 1 << 11;
            let (holder, key) = (id(*holder), u64::from(*key));
            let (blocked, thread) = (head(form::BLOCKED), id(*thread));
            Some(Passing::Inherits([
                kind, now, holder, key, 0, blocked, thread, *job, 0, ordered, keyed, 0, priority,
                deadline, release, 0, switched, left, next, 0, runs, next, arm,
            ]))
        }
        (Event::HandOver { key, from, to }, TraceEvent::Woken { thread, cause }) => {
            let (kind, key) = (head(form::HAND_OVER), u64::from(*key));
            let (from, to) = (id(*from), id(*to));
            let (woken, thread, cause) = (head(form::WOKEN), id(*thread), WakeCause::word(*cause));
            Some(Passing::Handed([
                kind, now, key, from, to, woken, thread, cause, ordered, keyed, 0, priority,
                deadline, release, 0, switched, left, next, 1, runs, next, arm,
            ]))
        }
        _ => None,
    }
}

/// As [`turn`] where a job is released and starts; or where the running thread ends, and with it
/// its job.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn coming(
    now: Instant,
    event: &Event,
    changes: &(TraceEvent, TraceEvent),
    (from, to, arm): (ThreadId, ThreadId, Option<Instant>),
) -> Option<[u64; 18]> {
    let (now, id) = (now.ticks(), ThreadId::word);
    let (switched, runs) = (head(form::SWITCHED), head(form::RUN) | no_arm(arm));
    let (left, next, arm) = (id(from), id(to), arm_word(arm));
    match (event, changes) {
        (Event::Tick, (released, started)) => {
            let [r0, r1, r2, r3, r4] = released_words(released)?;
            let [s0, s1, s2, s3] = started_words(started)?;
            let kind = head(form::TICK);
            Some([
                kind, now, r0, r1, r2, r3, r4, s0, s1, s2, s3, switched, left, next, 1, runs, next,
                arm,
            ])
        }
        (Event::Exit, (completed, TraceEvent::Ended { thread: gone })) => {
            let [c0, c1, c2, c3, c4, c5, c6] = completed_words(completed)?;
            let (kind, ended, gone) = (head(form::EXIT), head(form::ENDED), id(*gone));
            Some([
                kind, now, c0, c1, c2, c3, c4, c5, c6, ended, gone, switched, left, next, 0, runs,
                next, arm,
            ])
        }
        _ => None,
    }
}

/// The words of a whole entry in which a job comes on an idle CPU, or ends.
pub(crate) enum Job {
    /// One is released, and runs.
    Comes([u64; 18]),
    /// The one that ran ends, and nobody runs.
    Last([u64; 15]),
    /// It ends, and another one runs.
    Ends([u64; 16]),
}

/// An entry that did no more than that, in one piece; `None`: not of that kind.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn job(
    now: Instant,
    event: &Event,
    changes: &(TraceEvent, Option<TraceEvent>),
    (from, to, arm): Run,
) -> Option<Job> {
    let (now, id, until) = (now.ticks(), ThreadId::word, arm_word(arm));
    let (switched, runs) = (head(form::SWITCHED), head(form::RUN) | no_arm(arm));
    match (event, changes, from, to) {
        (Event::Tick, (released, Some(started)), None, Some(to)) => {
            let [r0, r1, r2, r3, r4] = released_words(released)?;
            let [s0, s1, s2, s3] = started_words(started)?;
            let (kind, to) = (head(form::TICK), id(to));
            // The first column of the switch is absent.
            let switched = switched | 1 << 8;
            Some(Job::Comes([
                kind, now, r0, r1, r2, r3, r4, s0, s1, s2, s3, switched, 0, to, 0, runs, to, until,
            ]))
        }
        (Event::Complete, (completed, None), Some(from), to) => {
            let [c0, c1, c2, c3, c4, c5, c6] = completed_words(completed)?;
            let (kind, from) = (head(form::COMPLETE), id(from));
            Some(match to.map(id) {
                Some(to) => Job::Ends([
                    kind, now, c0, c1, c2, c3, c4, c5, c6, switched, from, to, 0, runs, to, until,
                ]),
                None => {
                    // The second column of the switch is absent; when to enter again is the first
                    // of this decision.
                    let switched = switched | 1 << 9;
                    let idle = head(form::IDLE) | no_arm(arm) >> 1;
                    Job::Last([
                        kind, now, c0, c1, c2, c3, c4, c5, c6, switched, from, 0, 0, idle, until,
                    ])
                }
            })
        }
        _ => None,
    }
}

#[cfg_attr(not(debug_assertions), inline(always))]
fn completed_words(completed: &TraceEvent) -> Option<[u64; 7]> {
    let TraceEvent::Completed {
        thread,
        job,
        outcome,
        arrival,
        deadline,
        received,
    } = *completed
    else {
        return None;
    };
    let (kind, thread) = (head(form::COMPLETED), ThreadId::word(thread));
    let (outcome, received) = (Outcome::word(outcome), received.ticks());
    let (arrival, deadline) = (arrival.ticks(), deadline.ticks());
    Some([kind, thread, job, outcome, arrival, deadline, received])
}

/// As [`coming`] where a thread of periodic jobs is created.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn birth(
    now: Instant,
    event: &Event,
    (created, released, started): &(TraceEvent, TraceEvent, TraceEvent),
    (from, to, arm): (ThreadId, ThreadId, Option<Instant>),
) -> Option<[u64; 32]> {
    let (Event::Create(c), TraceEvent::Created { thread }) = (event, created) else {
        return None;
    };
    let Class::Periodic {
        period,
        wcet,
        relative_deadline,
    } = c.class
    else {
        return None;
    };
    let (late, backlog, absent) = match c.late {
        Late::Queue { backlog } => (0, backlog.into(), 0),
        // The ninth column is absent.
        Late::Skip => (1, 0, 1 << 16),
    };
    let [r0, r1, r2, r3, r4] = released_words(released)?;
    let [s0, s1, s2, s3] = started_words(started)?;
    let (now, id) = (now.ticks(), ThreadId::word);
    let (kind, born, thread) = (
        head(form::CREATE) | absent,
        head(form::CREATED),
        id(*thread),
    );
    let (period, wcet, relative) = (period.ticks(), wcet.ticks(), relative_deadline.ticks());
    let (priority, phase) = (u64::from(c.priority.number()), c.phase.ticks());
    let (rule, order) = (OnOverrun::word(c.on_overrun), u64::from(c.order));
    let (until, fed) = (c.until.ticks(), u64::from(c.fed));
    let (switched, runs) = (head(form::SWITCHED), head(form::RUN) | no_arm(arm));
    let (left, next, arm) = (id(from), id(to), arm_word(arm));
    Some([
        kind, now, 0, period, wcet, relative, priority, phase, late, backlog, rule, order, until,
        fed, born, thread, r0, r1, r2, r3, r4, s0, s1, s2, s3, switched, left, next, 1, runs, next,
        arm,
    ])
}

#[cfg_attr(not(debug_assertions), inline(always))]
fn released_words(released: &TraceEvent) -> Option<[u64; 5]> {
    let TraceEvent::Released {
        thread,
        job,
        arrival,
        deadline,
    } = *released
    else {
        return None;
    };
    let (kind, thread) = (head(form::RELEASED), ThreadId::word(thread));
    Some([kind, thread, job, arrival.ticks(), deadline.ticks()])
}

/// A job that starts on a budget.
#[cfg_attr(not(debug_assertions), inline(always))]
fn started_words(started: &TraceEvent) -> Option<[u64; 4]> {
    let TraceEvent::Started {
        thread,
        job,
        budget: Some(budget),
    } = *started
    else {
        return None;
    };
    let (kind, thread) = (head(form::STARTED), ThreadId::word(thread));
    Some([kind, thread, job, budget.ticks()])
}

/// Hands the words of a decision to `put`; those of the most frequent kind without a call, and
/// without its address, for which it would have to leave the registers.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn decision(decision: &Decision, put: impl FnOnce(&[u64])) {
    if let (Next::Thread(thread), None) = (decision.next, decision.refused) {
        let runs = head(form::RUN) | no_arm(decision.arm);
        put(&[runs, ThreadId::word(thread), arm_word(decision.arm)]);
    } else {
        form::store_decision(&Decision { ..*decision }, put);
    }
}

/// Hands the words of any record to `put`; those of an entry piece by piece.
pub(crate) fn record(record: &Record, mut put: impl FnMut(&[u64])) {
    match record {
        Record::Entry(entry) => {
            prefixes(entry.missing, entry.ceiling, &mut put);
            event(entry.now, &entry.event, put);
        }
        Record::Trace(t) => form::store_trace(t, put),
        Record::Decision(d) => decision(d, put),
    }
}

/// The record at the front of `words` and its length; `None` at the end, and for words that no
/// record has.
#[inline]
pub(crate) fn decode(words: &[u64]) -> Option<(Record, usize)> {
    let (kind, mut fields, length) = form::split(words)?;
    let record = match kind {
        0..29 | 128.. => {
            let (now, event) = form::event(kind, &mut fields)?;
            Record::Entry(RecordedEntry::at(now, event))
        }
        29..32 => return decode_prefixed(words),
        32..72 => Record::Trace(form::trace(kind, &mut fields)?),
        _ => Record::Decision(form::decision(kind, &mut fields)?),
    };
    Some((record, length))
}

/// An entry that has more than an event.
#[cold]
fn decode_prefixed(words: &[u64]) -> Option<(Record, usize)> {
    let (mut missing, mut ceiling, mut at) = (Uncharged::NONE, None, 0);
    loop {
        let (kind, mut fields, length) = form::split(&words[at..])?;
        at += length;
        if !(29..128).contains(&kind) {
            let (now, event) = form::event(kind, &mut fields)?;
            let entry = RecordedEntry {
                missing,
                ceiling,
                ..RecordedEntry::at(now, event)
            };
            return Some((Record::Entry(entry), at));
        }
        match form::prefix(kind, &mut fields)? {
            Prefix::Uncharged(stolen, given_back) => {
                (missing.stolen, missing.given_back) = (stolen, given_back);
            }
            Prefix::Taker(taker) => missing.taker = taker,
            Prefix::Ceiling(news) => ceiling = Some(news),
        }
    }
}

/// Whether the words are one line of records.
pub(crate) fn is_line(words: &[u64]) -> bool {
    match form::split(words) {
        Some((kind @ 29..32, mut fields, _)) => form::prefix(kind, &mut fields).is_some(),
        _ => decode(words).is_some(),
    }
}
