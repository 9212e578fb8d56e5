//! Messages from thread to thread, in a queue of fixed length.

use core::cell::Cell;
use core::fmt;
use std::collections::VecDeque;

use punctual_linux::{Monitor, Step, Waiters};
use punctual_model::{Instant, Ns, Span};

use super::{WaitError, after, instant};

const CONSUMERS: usize = 0;
const PRODUCERS: usize = 1;

/// A bounded queue of messages between threads, in the order of their sending.
///
/// A message that a thread waits for does not go through the queue: it goes straight to the most
/// urgent waiter. If that one is more urgent than the sender, the processor goes with it in the
/// same entry. A queue of no length is a meeting: a sender waits for a receiver.
pub struct Queue<T> {
    state: Monitor<Messages<T>, 2>,
}

struct Messages<T> {
    /// Never longer than `most`, for which it has room.
    messages: VecDeque<T>,
    most: usize,
}

impl<T> Messages<T> {
    fn of(most: usize) -> Messages<T> {
        Messages {
            messages: VecDeque::with_capacity(most),
            most,
        }
    }

    /// Nobody waits for the message of `place`: it stays here, if there is room. Apart, so that the
    /// way of one that somebody waits for is short.
    #[inline(never)]
    fn keep(&mut self, place: &Place<T>) -> Step<()> {
        if self.messages.len() >= self.most {
            return Step::wait(PRODUCERS, ask_of(place));
        }
        if let Some(message) = place.take() {
            self.messages.push_back(message);
        }
        Step::Done(())
    }

    /// The message of the most urgent producer that waits, if there is one, which goes on. A call
    /// would want what the section has in registers in memory.
    #[inline(always)]
    fn take_sent(waiters: &mut Waiters<'_>) -> Option<T> {
        let ask = waiters.answer_if(PRODUCERS, |_| Some(0))?;
        // SAFETY: the place of a producer that waits in this queue until this visit ends.
        unsafe { swap::<T>(ask, None) }
    }
}

/// The message that was not sent, and the reason.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SendError<T> {
    /// The message.
    pub message: T,
    /// Why it was not sent.
    pub why: WaitError,
}

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SendError({:?})", self.why)
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not sent: {}", self.why)
    }
}

impl<T> std::error::Error for SendError<T> {}

/// Where a waiting thread has its message, or wants it: a cell of its own, alive while it waits.
type Place<T> = Cell<Option<T>>;

/// A key of a wait queue of the monitor.
fn ask_of<T>(place: &Place<T>) -> u64 {
    core::ptr::from_ref(place).expose_provenance() as u64
}

/// Puts a message in a place, or takes it out, and leaves what was not put there.
///
/// # Safety
/// `ask` came from [`ask_of`] of a place of this type, whose thread waits in the line that the
/// caller visits.
unsafe fn swap<T>(ask: u64, message: Option<T>) -> Option<T> {
    let address = usize::try_from(ask).unwrap_or(0);
    let place = core::ptr::with_exposed_provenance::<Place<T>>(address);
    // SAFETY: the place is alive while its thread waits (the caller), and who visits the line does
    // so alone, so that nobody uses it at the same time.
    unsafe { (*place).replace(message) }
}

impl<T: Send> Queue<T> {
    /// A queue for `most` messages, whose memory is taken here and once.
    pub fn new(most: usize) -> Queue<T> {
        Queue {
            state: Monitor::new(Messages::of(most)),
        }
    }

    /// As [`Queue::new`], for threads of every CPU of a run; waiters are served in the order of
    /// arrival.
    pub fn cross_cpu(most: usize) -> Queue<T> {
        Queue {
            state: Monitor::cross_cpu(Messages::of(most)),
        }
    }

    /// Sends a message; waits for room if need be.
    ///
    /// # Errors
    /// [`WaitError::NoRun`], [`WaitError::OtherCpu`], [`WaitError::Over`], with the message.
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        self.send_by(message, None)
    }

    /// Sends a message until an instant of the run (nanoseconds) at most.
    ///
    /// # Errors
    /// As [`Queue::send`], and [`WaitError::TimedOut`].
    pub fn send_until(&self, message: T, at: Instant<Ns>) -> Result<(), SendError<T>> {
        self.send_by(message, instant(at))
    }

    /// Sends a message within `span`.
    ///
    /// # Errors
    /// As [`Queue::send_until`].
    pub fn send_within(&self, message: T, span: Span<Ns>) -> Result<(), SendError<T>> {
        self.send_by(message, after(span))
    }

    /// Sends a message if there is room.
    ///
    /// # Errors
    /// [`WaitError::TimedOut`] when there is none.
    pub fn try_send(&self, message: T) -> Result<(), SendError<T>> {
        self.send_by(message, Some(Instant::ZERO))
    }

    fn send_by(&self, message: T, until: Option<Instant>) -> Result<(), SendError<T>> {
        let place = Cell::new(Some(message));
        let visit = self.state.critical_section(until, |state, waiters| {
            let Some(ask) = waiters.answer_if(CONSUMERS, |_| Some(0)) else {
                return state.keep(&place);
            };
            // SAFETY: the place of a consumer that waits in this queue until this visit ends.
            let _ = unsafe { swap(ask, place.take()) };
            Step::Done(())
        });
        match (visit, place.take()) {
            (Err(why), Some(message)) => Err(SendError {
                message,
                why: why.into(),
            }),
            _ => Ok(()),
        }
    }

    /// Receives a message; waits for one if need be.
    ///
    /// # Errors
    /// [`WaitError::NoRun`], [`WaitError::OtherCpu`], [`WaitError::Over`].
    pub fn receive(&self) -> Result<T, WaitError> {
        self.receive_by(None)
    }

    /// Receives a message until an instant of the run (nanoseconds) at most.
    ///
    /// # Errors
    /// As [`Queue::receive`], and [`WaitError::TimedOut`].
    pub fn receive_until(&self, at: Instant<Ns>) -> Result<T, WaitError> {
        self.receive_by(instant(at))
    }

    /// Receives a message within `span`.
    ///
    /// # Errors
    /// As [`Queue::receive_until`].
    pub fn receive_within(&self, span: Span<Ns>) -> Result<T, WaitError> {
        self.receive_by(after(span))
    }

    /// Receives a message if there is one.
    ///
    /// # Errors
    /// [`WaitError::TimedOut`] when there is none.
    pub fn try_receive(&self) -> Result<T, WaitError> {
        self.receive_by(Some(Instant::ZERO))
    }

    fn receive_by(&self, until: Option<Instant>) -> Result<T, WaitError> {
        let place: Place<T> = Cell::new(None);
        let visit = self.state.critical_section(until, |state, waiters| {
            let first = state.messages.pop_front();
            let sent = match waiters.is_empty(PRODUCERS) {
                true if first.is_none() => return Step::wait(CONSUMERS, ask_of(&place)),
                true => None,
                false => Messages::take_sent(waiters),
            };
            if first.is_none() {
                place.set(sent);
                return Step::Done(());
            }
            place.set(first);
            if let Some(sent) = sent {
                // There is room: the first has just left.
                state.messages.push_back(sent);
            }
            Step::Done(())
        });
        match (visit, place.take()) {
            (_, Some(message)) => Ok(message),
            (Err(why), None) => Err(why.into()),
            // Nobody is answered without a message.
            (Ok(_), None) => Err(WaitError::Over),
        }
    }

    /// Messages in the queue; `None` where that cannot be seen.
    pub fn len(&self) -> Option<usize> {
        self.state.look(|state| state.messages.len()).ok()
    }

    /// Whether there is no message; `None` where that cannot be seen.
    pub fn is_empty(&self) -> Option<bool> {
        self.len().map(|length| length == 0)
    }
}

impl<T> fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").finish_non_exhaustive()
    }
}
