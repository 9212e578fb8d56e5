//! Locks of programs: `critical`, `atomic`, `omp_lock_t`.
//!
//! A waiter stands in a list, by the address of the word, and its identity goes on with other work.
//! So an item that waits for a lock never keeps the holder from going on. A free lock goes to the
//! first that tries; one waiter is made ready to try again.

use core::cell::Cell;
use core::sync::atomic::AtomicU32;

use crate::carry::make_ready;
use crate::lock::Lock;
use crate::me::me;
use crate::parts::{Identity, Thread};
use crate::wait::{Atop, wait};
use crate::wish::{Wish, let_go};

/// Lists of waiters: addresses that share one are told apart in it.
const LISTS: usize = 64;

struct Waiters(Vec<&'static Thread>);

// SAFETY: addresses of threads that are never unmade.
unsafe impl Send for Waiters {}

static WAITERS: [Lock<Waiters>; LISTS] = [const { Lock::new(Waiters(Vec::new())) }; LISTS];

fn list(word: &AtomicU32) -> &'static Lock<Waiters> {
    let address = word.as_ptr().addr();
    &WAITERS[(address >> 3 ^ address >> 9) % LISTS]
}

/// Takes the lock if nobody has it.
#[inline]
pub(crate) fn try_lock(word: &AtomicU32) -> bool {
    Wish::new().take(word)
}

/// Waits for the lock.
#[inline]
pub(crate) fn lock(word: &AtomicU32) {
    if !try_lock(word) {
        lock_slowly(word);
    }
}

#[cold]
fn lock_slowly(word: &AtomicU32) {
    let identity = me();
    let wish = Wish::new();
    let taken = Cell::new(false);
    let is_done = || {
        taken.get() || {
            taken.set(wish.take(word));
            taken.get()
        }
    };
    wait(identity, Atop::Nothing, is_done, |thread| {
        let mut waiters = list(word).lock();
        if wish.wait(word) {
            taken.set(true);
            return false;
        }
        thread.waits_at.set(word.as_ptr().addr());
        waiters.0.push(thread);
        true
    });
}

/// Lets the lock go.
#[inline]
pub(crate) fn unlock(word: &AtomicU32) {
    if let_go(word) {
        tell_one(word);
    }
}

/// Before a fork: the child is to find all lists whole.
pub(crate) fn hold_lists() {
    WAITERS.iter().for_each(Lock::hold);
}

/// After it.
pub(crate) fn let_go_of_lists() {
    WAITERS.iter().for_each(Lock::let_go);
}

/// In the child of a fork: only threads of the identity that forked can go on there.
pub(crate) fn forget_others(identity: Option<&'static Identity>) {
    let is_own = |thread: &&'static Thread| match (thread.identity.get(), identity) {
        (Some(waits), Some(own)) => core::ptr::eq(waits, own),
        _ => false,
    };
    WAITERS.iter().for_each(|list| list.lock().0.retain(is_own));
}

#[cold]
fn tell_one(word: &AtomicU32) {
    let address = word.as_ptr().addr();
    let mut waiters = list(word).lock();
    let first = waiters
        .0
        .iter()
        .position(|thread| thread.waits_at.get() == address);
    let thread = first.map(|first| waiters.0.remove(first));
    drop(waiters);
    if let Some(thread) = thread {
        make_ready(thread);
    }
}
