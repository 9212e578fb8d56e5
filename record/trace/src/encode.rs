//! Records as words: what [`crate::Recorder`] stores.
//!
//! On the scheduling path of a live run: each arm below is a handful of stores.

use punctual_kern::{Constraint, Decision, Event, Next, Refusal, Request, TraceEvent};
use punctual_model::{Class, Instant, Late, OnOverrun, Span, ThreadId, Trust, Work};

use crate::codes::{
    cause_word, flag, instant_word, mode_word, node_word, outcome_word, refusal_words, thread_word,
    woken_word,
};
use crate::form;
use crate::record::Record;
use crate::text::tree;

/// Words of the longest record.
pub(crate) const MAX_WORDS: usize = 17;

#[inline]
const fn head(kind: u8) -> u64 {
    kind as u64
}

/// Hands the words of an event to `put`; those of the most frequent ones without a call.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn event(now: Instant, event: &Event, put: impl FnOnce(&[u64])) {
    match event {
        Event::Tick => put(&[head(form::TICK), now.ticks()]),
        Event::Yield => put(&[head(form::YIELD), now.ticks()]),
        Event::Complete => put(&[head(form::COMPLETE), now.ticks()]),
        _ => other_event(now.ticks(), event, put),
    }
}

/// The words of a whole entry of the most frequent kind.
pub(crate) enum Entry {
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
) -> Option<Entry> {
    let kind = match event {
        Event::Tick => form::TICK,
        Event::Yield => form::YIELD,
        _ => return None,
    };
    let (kind, now) = (head(kind), now.ticks());
    let runs = head(form::RUN) | flag(1, arm);
    let (next, arm) = (thread_word(next), instant_word(arm));
    let Some(left) = left else {
        return Some(Entry::Same([kind, now, runs, next, arm]));
    };
    let (switched, left) = (head(form::SWITCHED), thread_word(left));
    Some(Entry::Switch([
        kind, now, switched, left, next, 1, runs, next, arm,
    ]))
}

#[inline(never)]
fn other_event(now: u64, event: &Event, put: impl FnOnce(&[u64])) {
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
        Event::BlockOn { .. } | Event::HandOver { .. } | Event::Raise(_) => loan(now, event, put),
        Event::Yield => put(&[head(form::YIELD), now]),
        Event::Exit => put(&[head(form::EXIT), now]),
        Event::Protect => put(&[head(form::PROTECT), now]),
        Event::Unprotect => put(&[head(form::UNPROTECT), now]),
        Event::Lock {
            resource,
            mode,
            until,
        } => put(&[
            head(form::LOCK) | flag(3, until),
            now,
            u64::from(resource),
            mode_word(mode),
            instant_word(until),
        ]),
        Event::Unlock { resource } => put(&[head(form::UNLOCK), now, u64::from(resource)]),
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
        Event::Manage { by, request } => manage(now, node_word(by), &request, put),
        Event::ChildPicked(pick) => put(&[
            head(form::CHILD_PICKED) | flag(3, pick.thread) | flag(4, pick.until),
            now,
            node_word(pick.child),
            u64::from(pick.epoch),
            pick.thread.map_or(0, thread_word),
            instant_word(pick.until),
        ]),
        Event::Remote(m) => put(&[
            head(form::REMOTE),
            now,
            u64::from(m.to.0),
            u64::from(m.slot),
            m.frontier,
        ]),
    }
}

/// What locks of a runtime make.
fn loan(now: u64, event: &Event, put: impl FnOnce(&[u64])) {
    match *event {
        Event::BlockOn { holder, key, until } => put(&[
            head(form::BLOCK_ON) | flag(3, until),
            now,
            thread_word(holder),
            u64::from(key),
            instant_word(until),
        ]),
        Event::HandOver { key, from, to } => put(&[
            head(form::HAND_OVER),
            now,
            u64::from(key),
            thread_word(from),
            thread_word(to),
        ]),
        Event::Raise(ceiling) => {
            let deadline = ceiling.map(|c| c.absolute_deadline);
            put(&[
                head(form::RAISE) | flag(1, ceiling) | flag(2, deadline),
                now,
                ceiling.map_or(0, |c| u64::from(c.priority.number())),
                instant_word(deadline),
            ]);
        }
        _ => {}
    }
}

/// What a scheduler asks for.
fn manage(now: u64, by: u64, request: &Request, put: impl FnOnce(&[u64])) {
    let n = node_word;
    match *request {
        Request::Create { home, constraint } => {
            let before = [head(form::CREATE_FOR), now, by, n(home)];
            with_constraint(&constraint, &before, put);
        }
        Request::Grant { thread, to } => {
            put(&[head(form::GRANT), now, by, thread_word(thread), n(to)]);
        }
        Request::Revoke { thread } => put(&[head(form::REVOKE), now, by, thread_word(thread)]),
        Request::Promote(terms) => {
            let (supply, budget, period) = tree::supply_words(&terms.supply);
            put(&[
                head(form::PROMOTE) | flag(3, budget) | flag(4, period) | flag(8, terms.quota),
                now,
                by,
                supply,
                budget.unwrap_or(0),
                period.unwrap_or(0),
                u64::from(terms.priority.number()),
                u64::from(terms.order),
                u64::from(terms.trust == Trust::OwnTime),
                terms.quota.map_or(0, u64::from),
            ]);
        }
        Request::Lend { to, work } => put(&[head(form::LEND), now, by, n(to), work.ticks()]),
        Request::Demote(node) => put(&[head(form::DEMOTE), now, by, n(node)]),
        Request::Block {
            thread,
            exclusive,
            until,
        } => put(&[
            head(form::BLOCK_BY) | flag(4, until),
            now,
            by,
            thread_word(thread),
            u64::from(exclusive),
            instant_word(until),
        ]),
        Request::Wake(thread) => put(&[head(form::WAKE_BY), now, by, thread_word(thread)]),
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
        T::ServerReplenished { node, budget } => put(&[
            head(form::SERVER_REPLENISHED),
            node_word(node),
            budget.ticks(),
        ]),
        T::ChildCharged { node, work } => {
            put(&[head(form::CHILD_CHARGED), node_word(node), work.ticks()]);
        }
        T::Moved { thread, home } => put(&[head(form::MOVED), t(thread), node_word(home)]),
        T::Promoted { node, parent } => {
            put(&[head(form::PROMOTED), node_word(node), node_word(parent)]);
        }
        T::Lent { from, to, work } => put(&[
            head(form::LENT),
            node_word(from),
            node_word(to),
            work.ticks(),
        ]),
        T::SchedulerEnded { node } => put(&[head(form::SCHEDULER_ENDED), node_word(node)]),
        T::ServerExhausted { node } => put(&[head(form::SERVER_EXHAUSTED), node_word(node)]),
        T::Locked { .. }
        | T::Waits { .. }
        | T::Postponed { .. }
        | T::Unlocked { .. }
        | T::SectionOverran { .. } => lock(event, put),
        T::Released { .. }
        | T::Skipped { .. }
        | T::Lost { .. }
        | T::Started { .. }
        | T::Completed { .. }
        | T::Overran { .. }
        | T::Throttled { .. }
        | T::Demoted { .. }
        | T::Blocked { .. } => job(event, put),
        T::CaughtUp | T::Ordered { .. } | T::Queued { .. } | T::Unqueued { .. } => key(event, put),
    }
}

/// By what ready threads and schedulers are queued.
#[inline(never)]
fn key(event: &TraceEvent, put: impl FnOnce(&[u64])) {
    use TraceEvent as T;
    match *event {
        T::CaughtUp => put(&[head(form::CAUGHT_UP)]),
        T::Ordered {
            thread,
            background,
            priority,
            deadline,
            release,
            yielded,
        } => put(&[
            head(form::ORDERED),
            thread_word(thread),
            u64::from(background),
            u64::from(priority.number()),
            deadline.ticks(),
            release.ticks(),
            u64::from(yielded),
        ]),
        T::Queued {
            node,
            priority,
            deadline,
            release,
            budget,
        } => put(&[
            head(form::QUEUED) | flag(4, budget),
            node_word(node),
            u64::from(priority.number()),
            deadline.ticks(),
            release.ticks(),
            budget.map_or(0, Work::ticks),
        ]),
        T::Unqueued { node, budget } => put(&[
            head(form::UNQUEUED) | flag(1, budget),
            node_word(node),
            budget.map_or(0, Work::ticks),
        ]),
        // The others are the business of `trace`.
        _ => {}
    }
}

/// The changes of resources.
#[inline]
fn lock(event: &TraceEvent, put: impl FnOnce(&[u64])) {
    use TraceEvent as T;
    let (kind, thread, resource, mode) = match *event {
        T::Locked {
            thread,
            resource,
            mode,
        } => (form::LOCKED, thread, resource, Some(mode)),
        T::Waits {
            thread,
            resource,
            mode,
        } => (form::WAITS, thread, resource, Some(mode)),
        T::Postponed { thread, resource } => (form::POSTPONED, thread, resource, None),
        T::Unlocked { thread, resource } => (form::UNLOCKED, thread, resource, None),
        T::SectionOverran { thread, resource } => (form::SECTION_OVERRAN, thread, resource, None),
        // The others are the business of `trace`.
        _ => return,
    };
    let (thread, resource) = (thread_word(thread), u64::from(resource));
    match mode {
        Some(mode) => put(&[head(kind), thread, resource, mode_word(mode)]),
        None => put(&[head(kind), thread, resource]),
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

/// Hands the words of a decision to `put`; those of the most frequent kind without a call, and
/// without its address, for which it would have to leave the registers.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn decision(decision: &Decision, put: impl FnOnce(&[u64])) {
    if let (Next::Thread(thread), None) = (decision.next, decision.refused) {
        put(&[
            head(form::RUN) | flag(1, decision.arm),
            thread_word(thread),
            instant_word(decision.arm),
        ]);
    } else {
        other_decision((decision.next, decision.arm, decision.refused), put);
    }
}

#[inline(never)]
fn other_decision(
    (next, arm, refused): (Next, Option<Instant>, Option<Refusal>),
    put: impl FnOnce(&[u64]),
) {
    let decision = Decision { next, arm, refused };
    let arm = instant_word(decision.arm);
    let (why, what) = match decision.refused {
        None => {
            return match decision.next {
                Next::Thread(thread) => put(&[
                    head(form::RUN) | flag(1, decision.arm),
                    thread_word(thread),
                    arm,
                ]),
                Next::RunChild(child) => put(&[
                    head(form::RUN_CHILD) | flag(1, decision.arm),
                    node_word(child),
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
        Next::RunChild(child) => put(&[
            head(form::RUN_CHILD_REFUSING) | flag(1, decision.arm) | flag(3, what),
            node_word(child),
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
