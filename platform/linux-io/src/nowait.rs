//! A call that is tried without waiting, before it is handed to the ring.
//!
//! What is there is read by one system call then, as by any other thread; an operation of the ring
//! takes two to three times as long. Who mostly has to wait tries less and less often, so that a
//! wait costs one call in vain in [`RAREST`].

use core::cell::Cell;
use core::ffi::c_long;

use crate::local::current_light;
use crate::sys;
use crate::sys::calls::Direction;

/// An attempt is made in one of so many calls at least.
const RAREST: u8 = 64;

/// Whether the calls of a light thread in one direction are worth an attempt.
#[derive(Debug)]
pub(crate) struct Eagerness {
    /// So many calls are not tried.
    skip: Cell<u8>,
    /// So many after the next attempt in vain.
    next: Cell<u8>,
}

impl Eagerness {
    pub(crate) const fn new() -> Eagerness {
        Eagerness {
            skip: Cell::new(0),
            next: Cell::new(1),
        }
    }

    fn is_worth_it(&self) -> bool {
        let skip = self.skip.get();
        self.skip.set(skip.saturating_sub(1));
        skip == 0
    }

    fn learn(&self, in_vain: bool) {
        let next = self.next.get();
        self.skip.set(if in_vain { next } else { 0 });
        self.next
            .set(if in_vain { (next * 2).min(RAREST) } else { 1 });
    }
}

/// Transfers `bytes` bytes: as many as an attempt does that does not wait and gives a count or a
/// negated error, and the rest, as a call of the C library, by `rest`, which is told how many are
/// done. `is_whole` says whether so many, if fewer, are all that the call is to transfer.
pub(crate) fn eagerly(
    direction: Direction,
    bytes: usize,
    attempt: impl FnOnce() -> c_long,
    is_whole: impl FnOnce(usize) -> bool,
    rest: impl FnOnce(usize) -> c_long,
) -> c_long {
    let Some(light) = current_light() else {
        return rest(0);
    };
    let eagerness = &light.eagerness[direction as usize];
    // Of nothing an attempt tells that it is done, though an empty message is one.
    if bytes == 0 || !eagerness.is_worth_it() {
        return rest(0);
    }
    let is_whole = |done| done >= bytes || is_whole(done);
    let (result, in_vain) = tried(attempt, is_whole, rest);
    eagerness.learn(in_vain);
    result
}

/// [`eagerly`], where the attempt must be made, because only the kernel knows whether there is
/// anything to transfer.
pub(crate) fn at_once(
    attempt: impl FnOnce() -> c_long,
    is_whole: impl FnOnce(usize) -> bool,
    rest: impl FnOnce(usize) -> c_long,
) -> c_long {
    match current_light() {
        Some(_) => tried(attempt, is_whole, rest).0,
        None => rest(0),
    }
}

/// The result of an attempt and of the rest, and whether the attempt was in vain.
fn tried(
    attempt: impl FnOnce() -> c_long,
    is_whole: impl FnOnce(usize) -> bool,
    rest: impl FnOnce(usize) -> c_long,
) -> (c_long, bool) {
    let result = attempt();
    let Ok(done) = usize::try_from(result) else {
        return match i32::try_from(-result).unwrap_or(sys::EINVAL) {
            // Nothing there yet, or nothing to be had in this way, which a filter may forbid.
            sys::EAGAIN | sys::EINTR | sys::EINVAL | sys::EOPNOTSUPP | sys::ENOSYS | sys::EPERM => {
                (rest(0), true)
            }
            // Told once only by some descriptors, so it is the answer.
            error => (sys::fail(error), false),
        };
    };
    if done == 0 || is_whole(done) {
        return (result, false);
    }
    match rest(done) {
        more if more > 0 => (result + more, false),
        _ => (result, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_in_vain_become_rare_and_one_that_is_not_makes_them_usual_again() {
        let eagerness = Eagerness::new();
        let mut tried = 0;
        for _ in 0..1_000 {
            if eagerness.is_worth_it() {
                tried += 1;
                eagerness.learn(true);
            }
        }
        // After 1, 2, 4, ... 64 calls without one, then one in 65.
        assert_eq!(tried, 7 + (1_000 - 7 - 127) / 65 + 1);
        while !eagerness.is_worth_it() {}
        eagerness.learn(false);
        assert!((0..100).all(|_| {
            let tries = eagerness.is_worth_it();
            eagerness.learn(false);
            tries
        }));
    }

    #[test]
    fn outside_of_light_threads_nothing_is_tried() {
        let tried = Cell::new(false);
        let attempt = || {
            tried.set(true);
            1
        };
        assert_eq!(
            eagerly(
                Direction::In,
                4,
                attempt,
                |_| true,
                |done| done as c_long + 9
            ),
            9
        );
        assert!(!tried.get());
    }
}
