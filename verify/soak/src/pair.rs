//! Games for two: one ball, thrown by every means of waking that there is.
//!
//! A ball that was thrown is caught once, and at once if its catcher waits: who gives up waiting
//! while a ball lay there before its deadline has met a lost wake-up; who catches what was not
//! thrown, a duplicate.

use std::sync::Mutex as HostMutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use punctual_generate::Random;
use punctual_model::{Instant, Ns, Span};
use punctual_thread::sync::{Condvar, Flags, Mutex, Queue, Semaphore, WaitError, Want};
use punctual_thread::thread::{self, Waker};

use crate::field::{Field, compute, now};

/// By what a ball is thrown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Medium {
    Wake,
    Flags,
    Queue,
    /// A queue of no length: who throws waits for who catches.
    Meeting,
    Semaphore,
    Condition,
}

impl Medium {
    pub(crate) const ALL: [Medium; 6] = [
        Medium::Wake,
        Medium::Flags,
        Medium::Queue,
        Medium::Meeting,
        Medium::Semaphore,
        Medium::Condition,
    ];
}

/// What lies on one side.
#[derive(Debug)]
struct Side {
    waker: HostMutex<Option<Waker>>,
    queue: Queue<u64>,
    permits: Semaphore,
    told: Condvar,
    /// Balls thrown to it, counted before the throw; thrown by the other side alone.
    thrown: AtomicU64,
    /// The number of the last ball whose throw was over, and when it was.
    over: AtomicU64,
    over_at: AtomicU64,
    caught: AtomicU64,
    stopped: AtomicBool,
    holds: AtomicBool,
}

/// One game.
#[derive(Debug)]
pub(crate) struct Pair {
    medium: Medium,
    sides: [Side; 2],
    flags: Flags,
    /// Where the ball is, for the game by condition variables.
    ball: Mutex<[bool; 2]>,
}

/// Instants are rounded to ticks on their way.
const ROUNDING_NS: u64 = 1_000;

impl Pair {
    pub(crate) fn new(medium: Medium) -> Pair {
        let side = || Side {
            waker: HostMutex::new(None),
            queue: Queue::new(usize::from(medium == Medium::Queue)),
            permits: Semaphore::new(0),
            told: Condvar::new(),
            thrown: AtomicU64::new(0),
            over: AtomicU64::new(0),
            over_at: AtomicU64::new(0),
            caught: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            holds: AtomicBool::new(false),
        };
        Pair {
            medium,
            sides: [side(), side()],
            flags: Flags::new(),
            ball: Mutex::new([false; 2]),
        }
    }

    /// Plays one side until the field is closed. Side 0 has the ball at first.
    pub(crate) fn play(&self, me: usize, field: &Field, dice: &mut Random) {
        let mine = &self.sides[me];
        *mine.waker.lock().unwrap_or_else(PoisonError::into_inner) = thread::waker();
        let mut holds = me == 0;
        while !field.is_over() {
            field.step();
            let until = now().saturating_add(Span::from_ns(1_000 * (dice.within(20, 5_000))));
            let done = if holds {
                self.throw(1 - me, until)
            } else {
                self.catch(me, until, field)
            };
            match done {
                Ok(true) => holds = !holds,
                Ok(false) | Err(WaitError::TimedOut) => {}
                Err(error) => field.note(format!("{:?}, side {me}: {error}", self.medium)),
            }
            // Long enough to be preempted in: else a game fills the records with hand-overs alone.
            compute(dice.below(6_000), field);
        }
        mine.stopped.store(true, Ordering::SeqCst);
        while !self.sides[1 - me].stopped.load(Ordering::SeqCst) && !field.is_given_up() {
            thread::sleep(Span::from_us(100));
        }
        if !holds {
            let shortly = now().saturating_add(Span::from_ns(50_000));
            holds = matches!(self.catch(me, shortly, field), Ok(true));
        }
        mine.holds.store(holds, Ordering::SeqCst);
    }

    /// Throws the ball to a side; whether it is gone.
    fn throw(&self, to: usize, until: Instant<Ns>) -> Result<bool, WaitError> {
        let side = &self.sides[to];
        let number = side.thrown.fetch_add(1, Ordering::SeqCst) + 1;
        let gone = match self.medium {
            Medium::Wake => {
                let waker = *side.waker.lock().unwrap_or_else(PoisonError::into_inner);
                Ok(waker.is_some_and(Waker::wake))
            }
            Medium::Flags => self.flags.raise(1 << to).map(|()| true),
            Medium::Queue | Medium::Meeting => {
                let sent = side.queue.send_until(number, until);
                sent.map(|()| true).map_err(|error| error.why)
            }
            Medium::Semaphore => side.permits.release().map(|()| true),
            Medium::Condition => self.put(to),
        };
        if gone == Ok(true) {
            side.over_at.store(now().as_ns(), Ordering::SeqCst);
            side.over.store(number, Ordering::SeqCst);
        } else {
            side.thrown.fetch_sub(1, Ordering::SeqCst);
        }
        gone
    }

    fn put(&self, to: usize) -> Result<bool, WaitError> {
        let mut ball = self.ball.lock()?;
        ball[to] = true;
        self.sides[to].told.notify_one()?;
        Ok(true)
    }

    /// Waits for the ball; whether it came.
    fn catch(&self, me: usize, until: Instant<Ns>, field: &Field) -> Result<bool, WaitError> {
        let side = &self.sides[me];
        let came = match self.medium {
            Medium::Wake => Ok(thread::block_until(until)),
            Medium::Flags => {
                let raised = self.flags.wait_until(Want::any(1 << me).take(), until);
                raised.map(|raised| raised == 1 << me)
            }
            Medium::Queue | Medium::Meeting => {
                let number = side.queue.receive_until(until);
                number.map(|number| number == side.caught.load(Ordering::SeqCst) + 1)
            }
            Medium::Semaphore => side.permits.acquire_until(until).map(|()| true),
            Medium::Condition => self.take(me, until, field),
        };
        let caught = side.caught.load(Ordering::SeqCst);
        let thrown = side.thrown.load(Ordering::SeqCst);
        match came {
            Ok(true) if thrown != caught + 1 => {
                field.note(format!(
                    "{:?}: caught {caught} of {thrown} balls, and one more",
                    self.medium
                ));
                side.caught.store(caught + 1, Ordering::SeqCst);
            }
            Ok(true) => side.caught.store(caught + 1, Ordering::SeqCst),
            _ if self.lay_there(me, until) => field.note(self.lost(me, until)),
            _ => {}
        }
        came
    }

    fn take(&self, me: usize, until: Instant<Ns>, field: &Field) -> Result<bool, WaitError> {
        let mut ball = self.ball.lock()?;
        if !ball[me] {
            let (again, told) = self.sides[me].told.wait_until(ball, until)?;
            ball = again;
            if ball[me] && !told && self.lay_there(me, until) {
                field.note(self.lost(me, until));
            }
        }
        Ok(core::mem::take(&mut ball[me]))
    }

    /// Whether a ball was thrown to this side before `until` and not caught.
    fn lay_there(&self, me: usize, until: Instant<Ns>) -> bool {
        let side = &self.sides[me];
        let over = side.over.load(Ordering::SeqCst);
        over > side.caught.load(Ordering::SeqCst)
            && side.over_at.load(Ordering::SeqCst) + ROUNDING_NS < until.as_ns()
    }

    fn lost(&self, me: usize, until: Instant<Ns>) -> String {
        let at = self.sides[me].over_at.load(Ordering::SeqCst);
        format!(
            "{:?}: a lost wake-up: thrown at {at} ns, waited for until {} ns",
            self.medium,
            until.as_ns()
        )
    }

    /// Balls caught on both sides. The game is over, and the caller on its CPU.
    pub(crate) fn settle(&self, field: &Field) -> u64 {
        let mut balls = 0;
        let ball = self.ball.try_lock().map(|ball| *ball).unwrap_or_default();
        for (place, side) in self.sides.iter().enumerate() {
            balls += u64::from(side.holds.load(Ordering::SeqCst));
            balls += u64::from(side.queue.try_receive().is_ok());
            balls += u64::from(side.permits.try_acquire().is_ok());
            balls += u64::from(ball[place]);
        }
        balls += u64::from(self.flags.raised().unwrap_or(0).count_ones());
        if balls != 1 {
            field.note(format!(
                "{:?}: {balls} balls at the end: {self:?}",
                self.medium
            ));
        }
        let caught = self.sides.iter().map(|s| s.caught.load(Ordering::SeqCst));
        caught.sum()
    }
}
