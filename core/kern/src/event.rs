//! Events in, decisions out: the seam between the core and a platform.
//!
//! A platform makes one [`Entry`] at a time ([`crate::Shard::handle`]): an event, the instant at
//! which it reads the clock, and what it knows of the interval since the last one. Instants never
//! decrease on one shard. Between two entries exactly the thread of the last decision ran (or
//! nothing); the interval is charged to it, less missing time.

use punctual_model::{Constraint, CpuId, Instant, Mode, Span, ThreadId};
use punctual_order::{ChildPick, Next, NodeId, Refusal};

use crate::agenda::AgendaStep;
use crate::lock::Ceiling;
use crate::manage::Request;

/// An entry into the core: an event, and what the platform knows of the interval that it ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry<'a> {
    /// What the clock says.
    pub now: Instant,
    /// What of the interval since the last entry is charged to nobody.
    pub missing: Uncharged,
    /// How urgent the running thread is at least from now on, if that has changed; `Some(None)`: as
    /// urgent as by itself.
    pub ceiling: Option<Option<Ceiling>>,
    /// What happened.
    pub event: &'a Event,
}

impl<'a> Entry<'a> {
    /// An entry with nothing but an event.
    #[inline]
    pub const fn at(now: Instant, event: &'a Event) -> Entry<'a> {
        Entry {
            now,
            missing: Uncharged::NONE,
            ceiling: None,
            event,
        }
    }

    /// Whether there is nothing but an event.
    #[inline]
    pub const fn is_plain(&self) -> bool {
        self.missing.is_zero() && self.ceiling.is_none()
    }
}

/// Time that was charged to nobody, by its cause.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Uncharged {
    /// See [`MissingCause::Stolen`].
    pub stolen: Span,
    /// See [`MissingCause::GivenBack`].
    pub given_back: Span,
    /// Of what was stolen, or of most of it.
    pub taker: Taker,
}

impl Uncharged {
    /// No missing time.
    pub const NONE: Uncharged = Uncharged {
        stolen: Span::ZERO,
        given_back: Span::ZERO,
        taker: Taker::Unknown,
    };

    /// Missing time of one cause.
    pub const fn of(cause: MissingCause, span: Span) -> Uncharged {
        let (stolen, given_back) = match cause {
            MissingCause::Stolen => (span, Span::ZERO),
            MissingCause::GivenBack => (Span::ZERO, span),
        };
        Uncharged {
            stolen,
            given_back,
            taker: Taker::Unknown,
        }
    }

    /// Time that `taker` has stolen.
    pub const fn by(taker: Taker, stolen: Span) -> Uncharged {
        Uncharged {
            stolen,
            given_back: Span::ZERO,
            taker,
        }
    }

    /// Whether nothing is missing.
    #[inline]
    pub const fn is_zero(&self) -> bool {
        self.stolen.is_zero() && self.given_back.is_zero()
    }

    /// No more of it than `interval`.
    #[inline]
    pub(crate) fn within(self, interval: Span) -> Uncharged {
        let stolen = self.stolen.min(interval);
        let given_back = self.given_back.min(interval.saturating_sub(stolen));
        Uncharged {
            stolen,
            given_back,
            ..self
        }
    }

    /// What is missing by each cause, if anything, in the order in which it was: time is taken
    /// behind a slice that does not come back.
    pub fn by_cause(self) -> impl Iterator<Item = (MissingCause, Span)> {
        let causes = [
            (MissingCause::GivenBack, self.given_back),
            (MissingCause::Stolen, self.stolen),
        ];
        causes.into_iter().filter(|(_, span)| !span.is_zero())
    }

    /// How much is missing.
    #[inline]
    pub const fn total(&self) -> Span {
        self.stolen.saturating_add(self.given_back)
    }

    /// Adds what is missing, too.
    pub fn add(&mut self, other: Uncharged) {
        if other.stolen > self.stolen {
            self.taker = other.taker;
        }
        self.stolen = self.stolen.saturating_add(other.stolen);
        self.given_back = self.given_back.saturating_add(other.given_back);
    }
}

/// Something that happened, or that the running thread asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The armed instant has come, or the platform just wants the core to look again.
    Tick,
    /// The running thread has finished its job.
    Complete,
    /// The running thread waits for a wake-up, or until the given instant.
    Block {
        /// The timeout.
        until: Option<Instant>,
    },
    /// The running thread waits, as by [`Event::Block`], for a lock of its runtime that another
    /// thread holds, which inherits its priority until it goes on.
    BlockOn {
        /// Who holds it.
        holder: ThreadId,
        /// Which lock it is, by a number of the runtime's.
        key: u32,
        /// The timeout.
        until: Option<Instant>,
    },
    /// A lock of a runtime changes hands: `to` inherits from its waiters from now on, and goes on
    /// as by [`Event::Wake`].
    HandOver {
        /// Which lock.
        key: u32,
        /// Who held it.
        from: ThreadId,
        /// Who holds it.
        to: ThreadId,
    },
    /// The running thread gives up its turn, under a policy that has turns (round robin, background
    /// work); a reservation gives up the rest of its slice. Under policies that order by urgency
    /// alone the most urgent thread goes on.
    Yield,
    /// The running thread lets nobody preempt it until it says [`Event::Unprotect`], blocks,
    /// completes, or has no budget left.
    Protect,
    /// The running thread can be preempted again.
    Unprotect,
    /// The running thread wants a resource. It runs again only once it holds it: until then it
    /// waits, or has no budget for the section. A job that ends gives back what it holds.
    Lock {
        /// Number of the resource on this shard (by [`crate::Shard::add_resource`]).
        resource: u32,
        /// Alone, or with other readers.
        mode: Mode,
        /// Goes on without it at this instant ([`crate::Shard::holds`] tells).
        until: Option<Instant>,
    },
    /// The running thread gives a resource back.
    Unlock {
        /// Which.
        resource: u32,
    },
    /// The running thread ends for good.
    Exit,
    /// A thread may go on.
    Wake(ThreadId),
    /// A job arrives (sporadic threads, and threads whose releases the platform feeds).
    Arrive {
        /// Whose job.
        thread: ThreadId,
        /// When it arrived; at or before the instant of the event.
        arrival: Instant,
    },
    /// A new thread. Its id is in the trace and in [`crate::Shard::last_created`].
    Create(Constraint),
    /// A thread gets a new constraint, from its next zero-lag instant on. Admission has been asked
    /// beforehand; this is the commit.
    Change {
        /// Whose.
        thread: ThreadId,
        /// From now on.
        constraint: Constraint,
    },
    /// A thread is ended from outside.
    Kill(ThreadId),
    /// A message from the shard of another CPU.
    Remote(Message),
    /// A scheduler of the tree asks for something.
    Manage {
        /// Who asks; the platform vouches for it.
        by: NodeId,
        /// What for.
        request: Request,
    },
    /// The scheduler that was let run ([`Next::RunChild`]) has decided.
    ChildPicked(ChildPick),
    /// The code of the scheduler that was let run has failed: it decides no more.
    ChildFailed(NodeId),
    /// A part of a change of the plan that this CPU executes.
    Agenda(AgendaStep),
}

/// News for another shard: the predecessor behind `slot` has finished all jobs below `frontier`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    /// The CPU whose shard must hear it.
    pub to: CpuId,
    /// Which of that shard's remote predecessors ([`crate::Source::Remote`]), or which CPU whose
    /// segments those there need ([`AgendaStep::Need`]).
    pub slot: u32,
    /// Every job with a smaller index, or segment with a smaller number, is done.
    pub frontier: u64,
}

/// Why time was charged to nobody.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MissingCause {
    /// Taken from below: hypervisor, host interrupts, SMIs, other kernel threads.
    Stolen,
    /// Given back voluntarily to the rest of the system (fair-server slices).
    GivenBack,
}

/// The one that stole time, as far as the platform can tell.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Taker {
    /// Nobody told.
    #[default]
    Unknown,
    /// The kernel: it ran other threads here meanwhile, or had stopped the process.
    Kernel,
    /// The machine below the kernel's threads: a hypervisor, interrupts, firmware.
    Below,
    /// A slice that was given back and did not end as planned.
    LateSlice,
}

/// What the platform must do now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "the thread that was running may not run on"]
pub struct Decision {
    /// Who runs.
    pub next: Next,
    /// Enter again at this instant at the latest; `None`: nothing is due.
    pub arm: Option<Instant>,
    /// The event was refused and changed nothing (time was charged all the same).
    pub refused: Option<Refusal>,
}
