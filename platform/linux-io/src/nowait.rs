//! A call that is tried without waiting, before it is handed to the ring.
//!
//! A try reads data that is there by one system call, as any other thread does; an operation of the
//! ring takes two to three times as long. A thread that mostly has to wait tries less and less
//! often, so that a wait costs one call in vain in 64 ([`crate::Backoff`]).

use core::ffi::c_long;

use crate::caller::current;
use crate::sys;
use crate::sys::calls::Direction;

/// Transfers `bytes` bytes. First as many as a try does, which does not wait and gives a count or a
/// negated error. Then, as a call of the C library, the rest, by `rest`, which is told how many are
/// done. `is_whole` says whether so many, if fewer, are all that the call is to transfer.
pub(crate) fn try_first(
    direction: Direction,
    bytes: usize,
    attempt: impl FnOnce() -> c_long,
    is_whole: impl FnOnce(usize) -> bool,
    rest: impl FnOnce(usize) -> c_long,
) -> c_long {
    let Some(caller) = current() else {
        return rest(0);
    };
    let backoff = caller.backoff(direction);
    // Of nothing a try tells that it is done, though an empty message is one.
    if bytes == 0 || !backoff.is_worth_it() {
        return rest(0);
    }
    let is_whole = |done| done >= bytes || is_whole(done);
    let (result, in_vain) = tried(attempt, is_whole, rest);
    backoff.learn(in_vain);
    result
}

/// [`try_first`], where the try must be made, because only the kernel knows whether there is
/// anything to transfer.
pub(crate) fn try_always(
    attempt: impl FnOnce() -> c_long,
    is_whole: impl FnOnce(usize) -> bool,
    rest: impl FnOnce(usize) -> c_long,
) -> c_long {
    match current() {
        Some(_) => tried(attempt, is_whole, rest).0,
        None => rest(0),
    }
}

/// The result of a try and of the rest, and whether the try was in vain.
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
    use core::cell::Cell;

    #[test]
    fn outside_of_light_threads_nothing_is_tried() {
        let tried = Cell::new(false);
        let attempt = || {
            tried.set(true);
            1
        };
        assert_eq!(
            try_first(
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
