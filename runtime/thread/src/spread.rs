//! Work that has not started goes to a CPU that has time for it.
//!
//! ```text
//!   offer --> queue of this CPU --> a worker of this CPU, when nothing more urgent runs there
//!                              \--> a worker of another CPU whose own queue is empty
//! ```
//!
//! Every CPU has a queue and some workers: threads of background priority. A worker takes from its
//! own queue, and from another's when that is empty; which other is asked of one of two policies
//! ([`Choice`]). Before it begins, work is a function that any CPU can begin; once it has begun it
//! stays, because its stack and its thread-local storage do.

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::VecDeque;
use std::sync::Arc;

use punctual_linux::{Monitor, MonitorError, SectionEnd, Step, job};
use punctual_model::{Instant, Ns, Span};
use punctual_policy::{every_queue_once, two_random_choices};

use crate::constraint::Constraint;
use crate::place::place;
use crate::sync::{WaitError, after, instant};
use crate::thread::{Builder, JoinError, SpawnError};

/// Where a CPU looks for work when its own queue is empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// Two queues drawn at random, the longer one first (Nautilus §3.4). Two looks however many
    /// CPUs there are; a CPU may find nothing while a third one has work.
    TwoRandom,
    /// Every queue once, from a random one on (Slite §VII.B). No CPU stays idle while work waits.
    EveryQueue,
}

/// How a run spreads work; see [`crate::Runtime::spread`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spread {
    /// Where an idle CPU looks.
    pub choice: Choice,
    /// Threads of each CPU that do such work.
    pub workers: usize,
    /// Their priority as background work.
    pub priority: u32,
    /// Work that may wait in the queue of each CPU.
    pub room: usize,
}

/// The fate of work, by CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Spreads {
    /// Offered there.
    pub offered: u64,
    /// Begun there of what was offered there.
    pub own: u64,
    /// Begun there of what was offered elsewhere.
    pub taken: u64,
}

/// Why work was not accepted.
pub enum OfferError<F> {
    /// The caller is on no thread of a runtime, or that spreads nothing.
    NoSpread(F),
    /// The queue of its CPU is full.
    Full(F),
}

impl<F> OfferError<F> {
    /// The work.
    pub fn into_inner(self) -> F {
        match self {
            OfferError::NoSpread(body) | OfferError::Full(body) => body,
        }
    }
}

impl<F> fmt::Debug for OfferError<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OfferError::NoSpread(_) => "NoSpread",
            OfferError::Full(_) => "Full",
        })
    }
}

impl<F> fmt::Display for OfferError<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OfferError::NoSpread(_) => "no runtime that spreads work is here (`Runtime::spread`)",
            OfferError::Full(_) => "the queue of this CPU is full",
        })
    }
}

impl<F> std::error::Error for OfferError<F> {}

type Work = Box<dyn FnOnce() + Send>;

/// The queues of a run.
pub(crate) struct Board {
    queues: Monitor<Queues, 1>,
    counts: Vec<Counts>,
}

struct Queues {
    choice: Choice,
    waiting: Vec<VecDeque<Work>>,
    /// Their lengths.
    lengths: Vec<usize>,
    /// Places of each that are taken, by work that waits or is about to.
    places: Vec<usize>,
    room: usize,
    random: u64,
}

#[derive(Debug, Default)]
struct Counts {
    offered: AtomicU64,
    own: AtomicU64,
    taken: AtomicU64,
}

impl fmt::Debug for Board {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Board")
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

impl Queues {
    fn draw(&mut self) -> u64 {
        // xorshift64 (Marsaglia 2003): never 0.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    /// Work for CPU `me`, and whose it was. O(CPUs).
    fn take(&mut self, me: usize) -> Option<(Work, usize)> {
        let draws = [self.draw(), self.draw()];
        let from = match (self.lengths[me], self.choice) {
            (1.., _) => me,
            (0, Choice::TwoRandom) => two_random_choices(&self.lengths, me, draws)?,
            (0, Choice::EveryQueue) => every_queue_once(&self.lengths, me, draws[0])?,
        };
        let work = self.waiting[from].pop_front()?;
        self.lengths[from] -= 1;
        self.places[from] -= 1;
        Some((work, from))
    }
}

impl Board {
    pub(crate) fn new(spread: Spread, cpus: usize) -> Board {
        let queue = |_| VecDeque::with_capacity(spread.room);
        Board {
            queues: Monitor::cross_cpu(Queues {
                choice: spread.choice,
                waiting: (0..cpus).map(queue).collect(),
                lengths: vec![0; cpus],
                places: vec![0; cpus],
                room: spread.room,
                random: 0x9E37_79B9_7F4A_7C15,
            }),
            counts: (0..cpus).map(|_| Counts::default()).collect(),
        }
    }

    /// Starts the workers of the calling thread's CPU.
    pub(crate) fn serve(self: &Arc<Self>, me: usize, spread: Spread) -> Result<(), SpawnError> {
        for _ in 0..spread.workers {
            let board = Arc::clone(self);
            let worker = Builder::new("worker", Constraint::aperiodic(spread.priority));
            worker
                .spawn(move || while board.work_once(me).is_ok() {})?
                .detach();
        }
        Ok(())
    }

    pub(crate) fn counts(&self) -> Vec<Spreads> {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let all = self.counts.iter();
        all.map(|counts| Spreads {
            offered: of(&counts.offered),
            own: of(&counts.own),
            taken: of(&counts.taken),
        })
        .collect()
    }

    /// Waits for work, and does it.
    fn work_once(&self, me: usize) -> Result<(), MonitorError> {
        let ask = me as u64;
        let visit = self
            .queues
            .critical_section(None, |queues, _| match queues.take(me) {
                Some(found) => Step::Done(found),
                None => Step::wait(0, ask),
            })?;
        // Who is answered looks again: another worker may have been faster.
        if let SectionEnd::Done((work, from)) = visit {
            let counts = &self.counts[me];
            let which = if from == me {
                &counts.own
            } else {
                &counts.taken
            };
            which.fetch_add(1, Ordering::Relaxed);
            work();
        }
        Ok(())
    }

    /// Takes a place in the queue of a CPU, if there is one.
    fn reserve(&self, cpu: usize) -> Result<bool, MonitorError> {
        self.queues.look(|queues| {
            let free = queues.places[cpu] < queues.room;
            queues.places[cpu] += usize::from(free);
            free
        })
    }

    /// Puts work into a place that was taken, and tells one worker of each CPU. A CPU that executes
    /// something is not interrupted: it is not idle. O(CPUs · workers).
    fn put(&self, cpu: usize, work: Work) -> Result<(), MonitorError> {
        self.counts[cpu].offered.fetch_add(1, Ordering::Relaxed);
        self.queues.critical_section(None, |queues, waiters| {
            queues.waiting[cpu].push_back(work);
            queues.lengths[cpu] += 1;
            for other in 0..queues.lengths.len() {
                let of_it = |ask| (ask == other as u64).then_some(0);
                let _ = waiters.answer_idly(0, of_it);
            }
            Step::Done(())
        })?;
        Ok(())
    }
}

/// Work that was offered, until its result is taken. Dropped, it lets the work go on alone.
pub struct Offered<T> {
    result: Arc<Monitor<Option<Result<T, String>>, 1>>,
}

impl<T> fmt::Debug for Offered<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Offered").finish_non_exhaustive()
    }
}

impl<T: Send> Offered<T> {
    /// Waits for its end and takes its result, on any CPU of the run.
    ///
    /// # Errors
    /// [`JoinError::Panicked`], [`JoinError::NotHere`].
    pub fn join(self) -> Result<T, JoinError> {
        self.join_by(None).map_err(|(error, _)| error)
    }

    /// As [`Offered::join`], until an instant of the run (nanoseconds) at most.
    ///
    /// # Errors
    /// As [`Offered::join`], and [`JoinError::TimedOut`], with which the work comes back.
    pub fn join_until(self, at: Instant<Ns>) -> Result<T, (JoinError, Option<Offered<T>>)> {
        self.join_by(instant(at))
    }

    /// As [`Offered::join_until`], for `span` at most.
    ///
    /// # Errors
    /// As [`Offered::join_until`].
    pub fn join_within(self, span: Span<Ns>) -> Result<T, (JoinError, Option<Offered<T>>)> {
        self.join_by(after(span))
    }

    /// Waits for its end for `span` at most (as long as it takes if `None`), and leaves its result
    /// to [`Offered::join`]: for callers that only have it lent.
    ///
    /// # Errors
    /// [`JoinError::Panicked`], [`JoinError::NotHere`], [`JoinError::TimedOut`].
    pub fn wait_end(&self, span: Span<Ns>) -> Result<(), JoinError> {
        let ended = |result: &mut Option<Result<T, String>>| {
            let result = result.as_ref()?;
            Some(result.as_ref().map(|_| ()).map_err(Clone::clone))
        };
        let ended = self.wait_by(after(span), ended)?;
        ended.map_err(JoinError::Panicked)
    }

    fn join_by(self, until: Option<Instant>) -> Result<T, (JoinError, Option<Offered<T>>)> {
        match self.wait_by(until, Option::take) {
            Ok(result) => result.map_err(|said| (JoinError::Panicked(said), None)),
            Err(JoinError::TimedOut) => Err((JoinError::TimedOut, Some(self))),
            Err(error) => Err((error, None)),
        }
    }

    /// Waits until `look` finds a result.
    fn wait_by<R>(
        &self,
        until: Option<Instant>,
        mut look: impl FnMut(&mut Option<Result<T, String>>) -> Option<R>,
    ) -> Result<R, JoinError> {
        loop {
            let visit = self
                .result
                .critical_section(until, |result, _| match look(result) {
                    Some(found) => Step::Done(found),
                    None => Step::wait(0, 0),
                });
            match visit.map_err(WaitError::from) {
                Ok(SectionEnd::Done(found)) => return Ok(found),
                Ok(SectionEnd::Answered(_)) => {}
                Err(WaitError::TimedOut) => return Err(JoinError::TimedOut),
                Err(_) => return Err(JoinError::NotHere),
            }
        }
    }
}

/// Offers work to all CPUs of the run, that of the caller first. Allocates.
///
/// # Errors
/// See [`OfferError`], with the work.
pub fn offer<T, F>(body: F) -> Result<Offered<T>, OfferError<F>>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let Some((board, cpu)) = place().and_then(|place| place.board()) else {
        return Err(OfferError::NoSpread(body));
    };
    match board.reserve(cpu) {
        Ok(true) => {}
        Ok(false) => return Err(OfferError::Full(body)),
        Err(_) => return Err(OfferError::NoSpread(body)),
    }
    let result = Arc::new(Monitor::cross_cpu(None));
    let slot = Arc::clone(&result);
    let work = Box::new(move || {
        let outcome = job::contain(body);
        // It can fail only when the run is over, and then nobody waits.
        let _ = slot.critical_section(None, |result, waiters| {
            *result = Some(outcome);
            while waiters.answer_if(0, |_| Some(0)).is_some() {}
            Step::Done(())
        });
    });
    // It can fail only when the run is over: the caller is about to end.
    let _ = board.put(cpu, work);
    Ok(Offered { result })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queues(choice: Choice, lengths: &[usize]) -> Queues {
        let queue = |&n: &usize| (0..n).map(|_| Box::new(|| ()) as Work).collect();
        Queues {
            choice,
            waiting: lengths.iter().map(queue).collect(),
            lengths: lengths.to_vec(),
            places: lengths.to_vec(),
            room: 8,
            random: 1,
        }
    }

    #[test]
    fn a_cpu_takes_its_own_work_first_and_then_that_of_others_until_none_is_left() {
        for choice in [Choice::TwoRandom, Choice::EveryQueue] {
            let mut two = queues(choice, &[2, 3]);
            let order: Vec<usize> =
                core::iter::from_fn(|| two.take(0).map(|(_, from)| from)).collect();
            assert_eq!(order, [0, 0, 1, 1, 1], "{choice:?}");
            assert_eq!((two.lengths, two.places), (vec![0, 0], vec![0, 0]));
        }
    }

    #[test]
    fn looking_at_every_queue_finds_what_two_looks_may_miss() {
        let finds = |choice| {
            (1..200).filter(move |&random| {
                let mut four = queues(choice, &[0, 0, 0, 1]);
                four.random = random * 0x9E37_79B9;
                four.take(0).is_some()
            })
        };
        assert_eq!(finds(Choice::EveryQueue).count(), 199);
        assert!(finds(Choice::TwoRandom).count() < 199);
    }
}
