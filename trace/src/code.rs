//! Records as words and back: what [`crate::Recorder`] stores and [`crate::Records`] yields.
//!
//! Encoding is on the scheduling path of a live run: each arm below is a handful of stores.
//! Decoding is total: words that no encoder wrote give `None`, never a panic.

use punctual_kern::{
    Constraint, Decision, Event, Message, MissingCause, Next, Outcome, Refusal, TraceEvent,
    WakeCause,
};
use punctual_model::{Class, CpuId, Instant, Late, OnOverrun, Priority, Span, ThreadId, Work};

use crate::form;
use crate::record::Record;

/// Words of the longest record.
pub(crate) const MAX_WORDS: usize = 17;

#[inline]
const fn head(kind: u8) -> u64 {
    kind as u64
}

/// The flag that says that column `column` is absent.
#[inline]
const fn absent(column: u32) -> u64 {
    1 << (8 + column)
}

#[inline]
fn flag<T>(column: u32, value: Option<T>) -> u64 {
    if value.is_none() { absent(column) } else { 0 }
}

#[inline]
pub(crate) fn thread_word(thread: ThreadId) -> u64 {
    u64::from(thread.generation()) << 32 | thread.index() as u64
}

#[inline]
fn instant_word(at: Option<Instant>) -> u64 {
    at.map_or(0, Instant::ticks)
}

#[inline]
fn cause_word(cause: MissingCause) -> u64 {
    match cause {
        MissingCause::Stolen => 0,
        MissingCause::GivenBack => 1,
    }
}

/// Hands the words of an event to `put`.
#[inline]
pub(crate) fn event(now: Instant, event: &Event, put: impl FnOnce(&[u64])) {
    let now = now.ticks();
    match *event {
        Event::Tick => put(&[head(form::TICK), now]),
        Event::Missing { span, cause } => put(&[
            head(form::EVENT_MISSING),
            now,
            span.ticks(),
            cause_word(cause),
        ]),
        Event::Complete => put(&[head(form::COMPLETE), now]),
        Event::Block { until } => {
            put(&[head(form::BLOCK) | flag(1, until), now, instant_word(until)])
        }
        Event::Yield => put(&[head(form::YIELD), now]),
        Event::Exit => put(&[head(form::EXIT), now]),
        Event::Protect => put(&[head(form::PROTECT), now]),
        Event::Unprotect => put(&[head(form::UNPROTECT), now]),
        Event::Wake(thread) => put(&[head(form::WAKE), now, thread_word(thread)]),
        Event::Arrive { thread, arrival } => put(&[
            head(form::ARRIVE),
            now,
            thread_word(thread),
            arrival.ticks(),
        ]),
        Event::Create(c) => with_constraint(&c, &[head(form::CREATE), now], put),
        Event::Change { thread, constraint } => {
            let before = [head(form::CHANGE), now, thread_word(thread)];
            with_constraint(&constraint, &before, put);
        }
        Event::Kill(thread) => put(&[head(form::KILL), now, thread_word(thread)]),
        Event::Remote(m) => put(&[
            head(form::REMOTE),
            now,
            u64::from(m.to.0),
            u64::from(m.slot),
            m.frontier,
        ]),
    }
}

/// Hands the words of a change to `put`.
#[inline]
pub(crate) fn trace(event: &TraceEvent, put: impl FnOnce(&[u64])) {
    use TraceEvent as T;
    let t = thread_word;
    match *event {
        T::Created { thread } => put(&[head(form::CREATED), t(thread)]),
        T::Ended { thread } => put(&[head(form::ENDED), t(thread)]),
        T::Changed { thread } => put(&[head(form::CHANGED), t(thread)]),
        T::Replenished { thread, budget } => {
            put(&[head(form::REPLENISHED), t(thread), budget.ticks()]);
        }
        T::Woken { thread, cause } => put(&[head(form::WOKEN), t(thread), woken_word(cause)]),
        T::Switched {
            from,
            to,
            preempted,
        } => put(&[
            head(form::SWITCHED) | flag(0, from) | flag(1, to),
            from.map_or(0, t),
            to.map_or(0, t),
            u64::from(preempted),
        ]),
        T::Missing { span, cause } => {
            put(&[head(form::MISSING), span.ticks(), cause_word(cause)]);
        }
        T::Released { .. }
        | T::Skipped { .. }
        | T::Lost { .. }
        | T::Started { .. }
        | T::Completed { .. }
        | T::Overran { .. }
        | T::Throttled { .. }
        | T::Demoted { .. }
        | T::Blocked { .. } => job(event, put),
    }
}

/// The changes of a job.
#[inline]
fn job(event: &TraceEvent, put: impl FnOnce(&[u64])) {
    use TraceEvent as T;
    let t = thread_word;
    match *event {
        T::Released {
            thread,
            job,
            arrival,
            deadline,
        } => put(&[
            head(form::RELEASED),
            t(thread),
            job,
            arrival.ticks(),
            deadline.ticks(),
        ]),
        T::Skipped { thread, job } => put(&[head(form::SKIPPED), t(thread), job]),
        T::Lost { thread, job } => put(&[head(form::LOST), t(thread), job]),
        T::Started {
            thread,
            job,
            budget,
        } => put(&[
            head(form::STARTED) | flag(2, budget),
            t(thread),
            job,
            budget.map_or(0, Work::ticks),
        ]),
        T::Completed {
            thread,
            job,
            outcome,
            arrival,
            deadline,
            received,
        } => put(&[
            head(form::COMPLETED),
            t(thread),
            job,
            outcome_word(outcome),
            arrival.ticks(),
            deadline.ticks(),
            received.ticks(),
        ]),
        T::Overran { thread, job } => put(&[head(form::OVERRAN), t(thread), job]),
        T::Throttled { thread, job } => put(&[head(form::THROTTLED), t(thread), job]),
        T::Demoted { thread, job } => put(&[head(form::DEMOTED), t(thread), job]),
        T::Blocked {
            thread,
            job,
            for_predecessors,
        } => put(&[
            head(form::BLOCKED),
            t(thread),
            job,
            u64::from(for_predecessors),
        ]),
        // The others are the business of `trace`.
        _ => {}
    }
}

/// Hands the words of a decision to `put`.
#[inline]
pub(crate) fn decision(decision: &Decision, put: impl FnOnce(&[u64])) {
    let arm = instant_word(decision.arm);
    let (why, what) = match decision.refused {
        None => {
            return match decision.next {
                Next::Thread(thread) => put(&[
                    head(form::RUN) | flag(1, decision.arm),
                    thread_word(thread),
                    arm,
                ]),
                _ => put(&[head(form::IDLE) | flag(0, decision.arm), arm]),
            };
        }
        Some(refusal) => refusal_words(refusal),
    };
    let what_word = what.unwrap_or(0);
    match decision.next {
        Next::Thread(thread) => put(&[
            head(form::RUN_REFUSING) | flag(1, decision.arm) | flag(3, what),
            thread_word(thread),
            arm,
            why,
            what_word,
        ]),
        _ => put(&[
            head(form::IDLE_REFUSING) | flag(0, decision.arm) | flag(2, what),
            arm,
            why,
            what_word,
        ]),
    }
}

/// Hands the words of any record to `put`.
pub(crate) fn record(record: &Record, put: impl FnOnce(&[u64])) {
    match record {
        Record::Event { now, event: e } => event(*now, e, put),
        Record::Trace(t) => trace(t, put),
        Record::Decision(d) => decision(d, put),
    }
}

fn outcome_word(outcome: Outcome) -> u64 {
    match outcome {
        Outcome::Done => 0,
        Outcome::Stopped => 1,
        Outcome::Aborted => 2,
        Outcome::Short => 3,
    }
}

fn woken_word(cause: WakeCause) -> u64 {
    match cause {
        WakeCause::Wake => 0,
        WakeCause::EarlyWake => 1,
        WakeCause::Timeout => 2,
        WakeCause::Predecessors => 3,
    }
}

fn refusal_words(refusal: Refusal) -> (u64, Option<u64>) {
    match refusal {
        Refusal::StaleThread(thread) => (0, Some(thread_word(thread))),
        Refusal::NobodyRuns => (1, None),
        Refusal::NoThreadLeft => (2, None),
        Refusal::NotSporadic(thread) => (3, Some(thread_word(thread))),
        Refusal::NoSuchSlot(slot) => (4, Some(u64::from(slot))),
        Refusal::InvalidConstraint => (5, None),
    }
}

/// Hands `before` and the twelve words of a constraint to `put`. `before[0]` is the head.
pub(crate) fn with_constraint(c: &Constraint, before: &[u64], put: impl FnOnce(&[u64])) {
    let class = match c.class {
        Class::Periodic { .. } => 0,
        Class::Sporadic { .. } => 1,
        Class::Reservation { .. } => 2,
        Class::Once { .. } => 3,
        Class::Aperiodic => 4,
    };
    let separation = c.class.min_separation().map(Span::ticks);
    let budget = c.class.budget().map(Work::ticks);
    let deadline = match c.class {
        Class::Reservation { .. } => None,
        other => other.relative_deadline().map(Span::ticks),
    };
    let (late, backlog) = match c.late {
        Late::Queue { backlog } => (0, Some(u64::from(backlog))),
        Late::Skip => (1, None),
    };
    let overrun = match c.on_overrun {
        OnOverrun::Throttle => 0,
        OnOverrun::Demote => 1,
        OnOverrun::Stop => 2,
        OnOverrun::Signal => 3,
    };
    let fields = [
        Some(class),
        separation,
        budget,
        deadline,
        Some(u64::from(c.priority.number())),
        Some(c.phase.ticks()),
        Some(late),
        backlog,
        Some(overrun),
        Some(u64::from(c.order)),
        Some(c.until.ticks()),
        Some(u64::from(c.fed)),
    ];
    let mut words = [0; MAX_WORDS];
    words[..before.len()].copy_from_slice(before);
    for (index, field) in fields.iter().enumerate() {
        let at = before.len() + index;
        words[0] |= u64::from(field.is_none()) << (8 + at - 1);
        words[at] = field.unwrap_or(0);
    }
    put(&words[..before.len() + fields.len()]);
}

/// The fields of one record, read in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a> {
    absent: u64,
    words: &'a [u64],
}

impl<'a> Fields<'a> {
    /// The record at the front of `words`: its kind, its fields, its length in words.
    pub(crate) fn split(words: &'a [u64]) -> Option<(u8, Fields<'a>, usize)> {
        let first = *words.first()?;
        let kind = u8::try_from(first & 0xff).ok()?;
        let length = 1 + form::of_kind(kind)?.columns.len();
        let fields = Fields {
            absent: first >> 8,
            words: words.get(1..length)?,
        };
        Some((kind, fields, length))
    }

    pub(crate) fn maybe(&mut self) -> Option<u64> {
        let (first, rest) = self.words.split_first()?;
        let present = self.absent & 1 == 0;
        self.absent >>= 1;
        self.words = rest;
        present.then_some(*first)
    }

    fn small(&mut self) -> Option<u32> {
        u32::try_from(self.maybe()?).ok()
    }

    fn thread(&mut self) -> Option<ThreadId> {
        self.maybe().and_then(thread_of)
    }

    fn instant(&mut self) -> Option<Instant> {
        self.maybe().map(Instant::from_ticks)
    }

    fn span(&mut self) -> Option<Span> {
        self.maybe().map(Span::from_ticks)
    }

    fn work(&mut self) -> Option<Work> {
        self.maybe().map(Work::from_ticks)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.maybe()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn cause(&mut self) -> Option<MissingCause> {
        match self.maybe()? {
            0 => Some(MissingCause::Stolen),
            1 => Some(MissingCause::GivenBack),
            _ => None,
        }
    }

    pub(crate) fn constraint(&mut self) -> Option<Constraint> {
        let class = self.maybe()?;
        let (separation, budget, deadline) = (self.span(), self.work(), self.span());
        let class = match class {
            0 => Class::Periodic {
                period: separation?,
                wcet: budget?,
                relative_deadline: deadline?,
            },
            1 => Class::Sporadic {
                min_separation: separation?,
                wcet: budget?,
                relative_deadline: deadline?,
            },
            2 => Class::Reservation {
                period: separation?,
                slice: budget?,
            },
            3 => Class::Once {
                size: budget?,
                relative_deadline: deadline?,
            },
            4 => Class::Aperiodic,
            _ => return None,
        };
        let priority = Priority::new(self.small()?);
        let phase = self.span()?;
        let (late, backlog) = (self.maybe()?, self.small());
        Some(Constraint {
            class,
            priority,
            phase,
            late: match late {
                0 => Late::Queue { backlog: backlog? },
                1 => Late::Skip,
                _ => return None,
            },
            on_overrun: match self.maybe()? {
                0 => OnOverrun::Throttle,
                1 => OnOverrun::Demote,
                2 => OnOverrun::Stop,
                3 => OnOverrun::Signal,
                _ => return None,
            },
            order: self.small()?,
            until: self.instant()?,
            fed: self.flag()?,
        })
    }
}

/// The thread that [`thread_word`] packed.
pub(crate) fn thread_of(word: u64) -> Option<ThreadId> {
    let index = u32::try_from(word & u64::from(u32::MAX)).ok()?;
    let generation = u32::try_from(word >> 32).ok()?;
    Some(ThreadId::new(index, generation))
}

/// The record at the front of `words` and its length; `None` at the end and for nonsense.
#[inline]
pub(crate) fn decode(words: &[u64]) -> Option<(Record, usize)> {
    let (kind, fields, length) = Fields::split(words)?;
    let record = match kind {
        form::TICK..form::CREATED => decode_event(kind, fields)?,
        form::CREATED..form::RUN => Record::Trace(decode_trace(kind, fields)?),
        _ => Record::Decision(decode_decision(kind, fields)?),
    };
    Some((record, length))
}

fn decode_event(kind: u8, mut f: Fields<'_>) -> Option<Record> {
    let now = f.instant()?;
    let event = match kind {
        form::TICK => Event::Tick,
        form::EVENT_MISSING => Event::Missing {
            span: f.span()?,
            cause: f.cause()?,
        },
        form::COMPLETE => Event::Complete,
        form::BLOCK => Event::Block { until: f.instant() },
        form::YIELD => Event::Yield,
        form::EXIT => Event::Exit,
        form::PROTECT => Event::Protect,
        form::UNPROTECT => Event::Unprotect,
        form::WAKE => Event::Wake(f.thread()?),
        form::ARRIVE => Event::Arrive {
            thread: f.thread()?,
            arrival: f.instant()?,
        },
        form::CREATE => Event::Create(f.constraint()?),
        form::CHANGE => Event::Change {
            thread: f.thread()?,
            constraint: f.constraint()?,
        },
        form::KILL => Event::Kill(f.thread()?),
        form::REMOTE => Event::Remote(Message {
            to: CpuId(u16::try_from(f.maybe()?).ok()?),
            slot: f.small()?,
            frontier: f.maybe()?,
        }),
        _ => return None,
    };
    Some(Record::Event { now, event })
}

fn decode_trace(kind: u8, mut f: Fields<'_>) -> Option<TraceEvent> {
    use TraceEvent as T;
    if kind == form::SWITCHED {
        return Some(T::Switched {
            from: f.thread(),
            to: f.thread(),
            preempted: f.flag()?,
        });
    }
    if kind == form::MISSING {
        return Some(T::Missing {
            span: f.span()?,
            cause: f.cause()?,
        });
    }
    let thread = f.thread()?;
    Some(match kind {
        form::CREATED => T::Created { thread },
        form::ENDED => T::Ended { thread },
        form::CHANGED => T::Changed { thread },
        form::REPLENISHED => T::Replenished {
            thread,
            budget: f.work()?,
        },
        form::WOKEN => T::Woken {
            thread,
            cause: match f.maybe()? {
                0 => WakeCause::Wake,
                1 => WakeCause::EarlyWake,
                2 => WakeCause::Timeout,
                3 => WakeCause::Predecessors,
                _ => return None,
            },
        },
        _ => decode_job(kind, thread, f)?,
    })
}

fn decode_job(kind: u8, thread: ThreadId, mut f: Fields<'_>) -> Option<TraceEvent> {
    use TraceEvent as T;
    let job = f.maybe()?;
    Some(match kind {
        form::RELEASED => T::Released {
            thread,
            job,
            arrival: f.instant()?,
            deadline: f.instant()?,
        },
        form::SKIPPED => T::Skipped { thread, job },
        form::LOST => T::Lost { thread, job },
        form::STARTED => T::Started {
            thread,
            job,
            budget: f.work(),
        },
        form::COMPLETED => T::Completed {
            thread,
            job,
            outcome: match f.maybe()? {
                0 => Outcome::Done,
                1 => Outcome::Stopped,
                2 => Outcome::Aborted,
                3 => Outcome::Short,
                _ => return None,
            },
            arrival: f.instant()?,
            deadline: f.instant()?,
            received: f.work()?,
        },
        form::OVERRAN => T::Overran { thread, job },
        form::THROTTLED => T::Throttled { thread, job },
        form::DEMOTED => T::Demoted { thread, job },
        form::BLOCKED => T::Blocked {
            thread,
            job,
            for_predecessors: f.flag()?,
        },
        _ => return None,
    })
}

fn decode_decision(kind: u8, mut f: Fields<'_>) -> Option<Decision> {
    let next = match kind {
        form::RUN | form::RUN_REFUSING => Next::Thread(f.thread()?),
        form::IDLE | form::IDLE_REFUSING => Next::Idle,
        _ => return None,
    };
    let arm = f.instant();
    let refused = match kind {
        form::RUN_REFUSING | form::IDLE_REFUSING => {
            let (why, what) = (f.maybe()?, f.maybe());
            Some(match why {
                0 => Refusal::StaleThread(thread_of(what?)?),
                1 => Refusal::NobodyRuns,
                2 => Refusal::NoThreadLeft,
                3 => Refusal::NotSporadic(thread_of(what?)?),
                4 => Refusal::NoSuchSlot(u32::try_from(what?).ok()?),
                5 => Refusal::InvalidConstraint,
                _ => return None,
            })
        }
        _ => None,
    };
    Some(Decision { next, arm, refused })
}
