//! What a program asked of `futex(2)`, as far as light threads treat it specially.

use core::sync::atomic::AtomicU32;

use crate::sys::{self, KernelClock, futex};

/// An operation that a light thread does in its own way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FutexRequest {
    /// Wait while the word has this value; until an instant of `CLOCK_MONOTONIC`, or for ever.
    Wait {
        /// The word.
        word: *const AtomicU32,
        /// Its expected value.
        value: u32,
        /// When to give up.
        until_ns: Option<u64>,
    },
    /// Wake waiters of this word.
    Wake {
        /// The word.
        word: *const AtomicU32,
    },
}

impl FutexRequest {
    /// Understands the arguments of `futex(2)`; `None`: nothing special.
    ///
    /// # Safety
    /// The caller keeps the contract of futex(2): the timeout of a wait is null or points at one.
    pub(crate) unsafe fn read(a: [u64; 6]) -> Option<FutexRequest> {
        let asked = i32::try_from(a[1]).ok()?;
        let word: *const AtomicU32 =
            core::ptr::with_exposed_provenance(usize::try_from(a[0]).ok()?);
        let value = u32::try_from(a[2] & u64::from(u32::MAX)).ok()?;
        // Only waits have a timeout: for others the argument is whatever the register held.
        // SAFETY: as the caller vouches, and called for waits only.
        let time = || unsafe { sys::timespec_at(a[3]) };
        let on_wall_clock = asked & futex::WALL_CLOCK != 0;
        let until_ns = match asked & !(futex::PRIVATE | futex::WALL_CLOCK) {
            futex::WAIT => {
                time().map(|ns| sys::read_clock(KernelClock::Monotonic).saturating_add(ns))
            }
            futex::WAIT_BITSET if !on_wall_clock => time(),
            futex::WAKE | futex::WAKE_BITSET => return Some(FutexRequest::Wake { word }),
            _ => return None,
        };
        Some(FutexRequest::Wait {
            word,
            value,
            until_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_does_not_look_at_the_timeout() {
        // The fourth argument of a wake is whatever the register held, here an address of nothing.
        let arguments = [64, futex::WAKE.cast_unsigned().into(), 1, 1, 0, 0];
        // SAFETY: a wake has no timeout.
        let request = unsafe { FutexRequest::read(arguments) };
        let word = core::ptr::with_exposed_provenance(64);
        assert_eq!(request, Some(FutexRequest::Wake { word }));
    }

    #[test]
    fn a_wait_without_timeout_is_for_ever() {
        let operation = u64::from((futex::WAIT_BITSET | futex::PRIVATE).cast_unsigned());
        // SAFETY: the timeout is null.
        let request = unsafe { FutexRequest::read([64, operation, 7, 0, 0, 0]) };
        let word = core::ptr::with_exposed_provenance(64);
        assert_eq!(
            request,
            Some(FutexRequest::Wait {
                word,
                value: 7,
                until_ns: None
            })
        );
    }
}
