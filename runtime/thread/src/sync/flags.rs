//! Events as bits: threads wait for any or for all of several.

use punctual_linux::{Monitor, SectionEnd, Step};
use punctual_model::{Instant, Ns, Span};

use super::{WaitError, after, instant};

/// Whether a waiter wants all of its flags, and whether it takes them away: beside its mask.
const ALL: u64 = 1 << 63;
const TAKE: u64 = 1 << 62;

/// 62 flags that threads raise and wait for.
#[derive(Debug, Default)]
pub struct Flags {
    raised: Monitor<u64, 1>,
}

/// The flags that a thread waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Want(u64);

impl Want {
    /// One of these, which stay raised. Bits from 62 on do not count.
    pub const fn any(mask: u64) -> Want {
        Want(mask & Flags::MASK)
    }

    /// All of these, which stay raised.
    pub const fn all(mask: u64) -> Want {
        Want(mask & Flags::MASK | ALL)
    }

    /// The same; those of the mask that are raised then are lowered with it, for one thread only.
    #[must_use]
    pub const fn take(self) -> Want {
        Want(self.0 | TAKE)
    }

    /// The flags of the mask that are raised, if that is enough.
    fn found(self, raised: u64) -> Option<u64> {
        let mask = self.0 & Flags::MASK;
        let found = raised & mask;
        let enough = match self.0 & ALL {
            0 => found != 0,
            _ => found == mask,
        };
        enough.then_some(found)
    }

    /// The raised flags after a thread with this wish was served.
    fn after(self, raised: u64) -> u64 {
        match self.0 & TAKE {
            0 => raised,
            _ => raised & !(self.0 & Flags::MASK),
        }
    }
}

impl Flags {
    /// The bits that are flags.
    pub const MASK: u64 = TAKE - 1;

    /// None raised.
    pub const fn new() -> Flags {
        Flags {
            raised: Monitor::new(0),
        }
    }

    /// As [`Flags::new`], for threads of every CPU of a run; served in the order of coming.
    pub const fn cross_cpu() -> Flags {
        Flags {
            raised: Monitor::cross_cpu(0),
        }
    }

    /// Raises flags. Each thread that has enough then goes on, the most urgent first, until the
    /// rest is too little. O(waiters · those that go on).
    ///
    /// # Errors
    /// [`WaitError::NoRun`], [`WaitError::OtherCpu`].
    pub fn raise(&self, mask: u64) -> Result<(), WaitError> {
        self.raised.critical_section(None, |raised, waiters| {
            *raised |= mask & Flags::MASK;
            let mut now = *raised;
            while let Some(served) = waiters.answer_if(0, |ask| Want(ask).found(now)) {
                now = Want(served).after(now);
            }
            *raised = now;
            Step::Done(())
        })?;
        Ok(())
    }

    /// Lowers flags.
    ///
    /// # Errors
    /// As [`Flags::raise`].
    pub fn lower(&self, mask: u64) -> Result<(), WaitError> {
        Ok(self.raised.look(|raised| *raised &= !mask)?)
    }

    /// The flags that are raised; `None` where that cannot be seen.
    pub fn raised(&self) -> Option<u64> {
        self.raised.look(|raised| *raised).ok()
    }

    /// Waits for flags; returns those of them that were raised then.
    ///
    /// # Errors
    /// [`WaitError::NoRun`], [`WaitError::OtherCpu`], [`WaitError::Over`].
    pub fn wait(&self, want: Want) -> Result<u64, WaitError> {
        self.wait_by(want, None)
    }

    /// As [`Flags::wait`], until an instant of the run (nanoseconds) at most.
    ///
    /// # Errors
    /// As [`Flags::wait`], and [`WaitError::TimedOut`].
    pub fn wait_until(&self, want: Want, at: Instant<Ns>) -> Result<u64, WaitError> {
        self.wait_by(want, instant(at))
    }

    /// As [`Flags::wait`], for `span` at most.
    ///
    /// # Errors
    /// As [`Flags::wait_until`].
    pub fn wait_within(&self, want: Want, span: Span<Ns>) -> Result<u64, WaitError> {
        self.wait_by(want, after(span))
    }

    fn wait_by(&self, want: Want, until: Option<Instant>) -> Result<u64, WaitError> {
        let visit = self
            .raised
            .critical_section(until, |raised, _| match want.found(*raised) {
                Some(found) => {
                    *raised = want.after(*raised);
                    Step::Done(found)
                }
                None => Step::wait(0, want.0),
            })?;
        match visit {
            SectionEnd::Done(found) | SectionEnd::Answered(found) => Ok(found),
        }
    }
}
