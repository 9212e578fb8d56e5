//! The numbers that stand for single values in an encoded log.

use punctual_kern::{MissingCause, NodeId, Outcome, Refusal, WakeCause};
use punctual_model::{Instant, Mode, ThreadId};

/// The flag that says that column `column` is absent.
#[inline]
pub(crate) const fn absent(column: u32) -> u64 {
    1 << (8 + column)
}

#[inline]
pub(crate) fn flag<T>(column: u32, value: Option<T>) -> u64 {
    if value.is_none() { absent(column) } else { 0 }
}

#[inline]
pub(crate) fn thread_word(thread: ThreadId) -> u64 {
    u64::from(thread.generation()) << 32 | thread.index() as u64
}

#[inline]
pub(crate) fn node_word(node: NodeId) -> u64 {
    u64::from(node.generation()) << 32 | node.index() as u64
}

#[inline]
pub(crate) fn instant_word(at: Option<Instant>) -> u64 {
    at.map_or(0, Instant::ticks)
}

#[inline]
pub(crate) fn cause_word(cause: MissingCause) -> u64 {
    match cause {
        MissingCause::Stolen => 0,
        MissingCause::GivenBack => 1,
    }
}

pub(crate) fn mode_word(mode: Mode) -> u64 {
    match mode {
        Mode::Exclusive => 0,
        Mode::Shared => 1,
    }
}

pub(crate) fn outcome_word(outcome: Outcome) -> u64 {
    match outcome {
        Outcome::Done => 0,
        Outcome::Stopped => 1,
        Outcome::Aborted => 2,
        Outcome::Short => 3,
    }
}

pub(crate) fn woken_word(cause: WakeCause) -> u64 {
    match cause {
        WakeCause::Wake => 0,
        WakeCause::EarlyWake => 1,
        WakeCause::Timeout => 2,
        WakeCause::Predecessors => 3,
        WakeCause::Lock => 4,
        WakeCause::Supply => 5,
    }
}

pub(crate) fn refusal_words(refusal: Refusal) -> (u64, Option<u64>) {
    match refusal {
        Refusal::StaleThread(thread) => (0, Some(thread_word(thread))),
        Refusal::NobodyRuns => (1, None),
        Refusal::NoThreadLeft => (2, None),
        Refusal::NotSporadic(thread) => (3, Some(thread_word(thread))),
        Refusal::NoSuchSlot(slot) => (4, Some(u64::from(slot))),
        Refusal::InvalidConstraint => (5, None),
        Refusal::NoSuchNode(node) => (6, Some(node_word(node))),
        Refusal::NoNodeLeft => (7, None),
        Refusal::TooDeep(node) => (8, Some(node_word(node))),
        Refusal::NotAParent(node) => (9, Some(node_word(node))),
        Refusal::QuotaExhausted(node) => (10, Some(node_word(node))),
        Refusal::NotDeciding(node) => (11, Some(node_word(node))),
        Refusal::StalePick(node) => (12, Some(node_word(node))),
        Refusal::NotItsOwn(thread) => (13, Some(thread_word(thread))),
        Refusal::NotReady(thread) => (14, Some(thread_word(thread))),
        Refusal::NotItsChild(node) => (15, Some(node_word(node))),
        Refusal::OnlyRootCreates(node) => (16, Some(node_word(node))),
        Refusal::BlockedByTrusted(thread) => (17, Some(thread_word(thread))),
        Refusal::NotGrantable(node) => (18, Some(node_word(node))),
        Refusal::NotDeclared(resource) => (19, Some(u64::from(resource))),
        Refusal::AlreadyHeld(resource) => (20, Some(u64::from(resource))),
        Refusal::NotHeld(resource) => (21, Some(u64::from(resource))),
        Refusal::NestedTooDeep(resource) => (22, Some(u64::from(resource))),
        Refusal::Deadlock(resource) => (23, Some(u64::from(resource))),
        Refusal::NotASibling(node) => (24, Some(node_word(node))),
        Refusal::TooLittleBudget(node) => (25, Some(node_word(node))),
        Refusal::UsesResources(thread) => (26, Some(thread_word(thread))),
    }
}
