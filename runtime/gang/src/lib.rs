//! Gangs of threads of a run: they elect, meet, reduce and broadcast, each with a limit
//!
//! A program creates a [`Gang`] by name; threads join it, on any CPU of the run. Every operation
//! ends: with its value, or with the member that is no more and the reason. A member that panics or
//! is cancelled is named at once, one that is silent after the limit of the gang (twice that in a
//! tree).
//!
//! A [`Waiting`] member spins, which is for a member alone on its CPU, or sleeps between looks.
//!
//! The protocol is that of `punctual_gang`; this drives it.
//!
//! Source: Nautilus §4.2.

#![forbid(unsafe_code)]

mod admission;
pub mod bsp;
mod supersteps;
mod words;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use punctual_gang::{Member as Party, Names, Operation, Outcome, Step, Wait};
use punctual_linux::job;
use punctual_model::{Ns, Span};
use punctual_thread::{Guarantee, thread};

use admission::Refusals;

pub use admission::{Admitted, Correction, NotAll, Refused};
pub use punctual_gang::{Broken, CreateError, Form, JoinError, MOST, Why};
pub use supersteps::{Kept, NotApart, Proof, Supersteps};

/// So many gangs may live at a time.
const GANGS: usize = 256;

/// The gangs of this program, by name and as they were created.
struct Known {
    names: Names,
    gangs: Vec<Gang>,
}

static KNOWN: Mutex<Known> = Mutex::new(Known {
    names: Names::new(GANGS),
    gangs: Vec::new(),
});

fn known() -> std::sync::MutexGuard<'static, Known> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The way in which a member waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waiting {
    /// It looks again and again, and keeps its CPU: for members that are alone on theirs.
    Spin,
    /// It sleeps for so long between two looks, so that others execute meanwhile.
    Sleep(Span<Ns>),
}

/// Parameters of a gang.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// One counter, or a tree.
    pub form: Form,
    /// How members wait.
    pub waiting: Waiting,
    /// A member that is silent for so long is named, and the gang is broken.
    pub limit: Span<Ns>,
}

impl Default for Options {
    /// Linear, spinning, one second.
    fn default() -> Options {
        Options {
            form: Form::Linear,
            waiting: Waiting::Spin,
            limit: Span::from_ms(1_000),
        }
    }
}

/// A gang under a name of the program.
#[derive(Clone, Debug)]
pub struct Gang {
    words: Arc<punctual_gang::Gang>,
    options: Options,
    /// A phase of some member ended late.
    late: Arc<AtomicBool>,
    refusals: Arc<Refusals>,
}

impl Gang {
    /// A gang of `members` under a name that no living gang has. O(members).
    ///
    /// # Errors
    /// All of [`CreateError`]; 256 gangs may live at a time.
    pub fn create(name: &str, members: usize, options: Options) -> Result<Gang, CreateError> {
        let mut known = known();
        let words = known.names.create(name, members, options.form)?;
        known.gangs.retain(|gang| gang.broken().is_none());
        let gang = Gang {
            words,
            options,
            late: Arc::default(),
            refusals: Arc::default(),
        };
        known.gangs.push(gang.clone());
        Ok(gang)
    }

    /// The living gang of a name, with the options of the thread that created it; `None`: there is
    /// none, or it is broken. O(gangs).
    pub fn named(name: &str) -> Option<Gang> {
        let known = known();
        let words = known.names.find(name)?;
        let mut gangs = known.gangs.iter();
        let gang = gangs.find(|gang| Arc::ptr_eq(&gang.words, &words));
        gang.cloned()
    }

    /// Makes the calling thread a member. The handle belongs to the thread that drops it.
    ///
    /// # Errors
    /// [`JoinError::Full`], [`JoinError::Broken`].
    pub fn join(&self) -> Result<Member, JoinError> {
        Ok(Member {
            party: Party::join(Arc::clone(&self.words))?,
            options: self.options,
            late: Arc::clone(&self.late),
            refusals: Arc::clone(&self.refusals),
            guarantee: None,
        })
    }

    /// The member that broke it, if one did.
    pub fn broken(&self) -> Option<Broken> {
        self.words.broken()
    }

    /// Tells gangs of one name apart.
    pub fn generation(&self) -> u64 {
        self.words.generation()
    }

    /// Destroys it: members that wait are told, and the name is free.
    pub fn destroy(self) {
        let why = Why::Destroyed;
        self.words.end(Broken { member: 0, why });
    }
}

/// Membership of one thread. To drop it is to leave, which breaks the gang for the rest.
#[derive(Debug)]
pub struct Member {
    party: Party<Arc<punctual_gang::Gang>>,
    options: Options,
    late: Arc<AtomicBool>,
    refusals: Arc<Refusals>,
    /// By the gang's admission.
    guarantee: Option<Guarantee>,
}

impl Member {
    /// From 0, in the order of joining.
    pub fn place(&self) -> usize {
        self.party.place()
    }

    /// Waits until all members have come.
    ///
    /// # Errors
    /// The member that broke the gang.
    pub fn barrier(&mut self) -> Result<(), Broken> {
        self.drive(Operation::Barrier).map(|_| ())
    }

    /// As [`Member::barrier`]; returns the release order, 0 first.
    ///
    /// # Errors
    /// As [`Member::barrier`].
    pub fn ordered_barrier(&mut self) -> Result<usize, Broken> {
        let order = self.drive(Operation::Order)?;
        Ok(usize::try_from(order).unwrap_or(usize::MAX))
    }

    /// The place with the highest bid, the first among equals.
    ///
    /// # Errors
    /// As [`Member::barrier`].
    pub fn elect(&mut self, bid: u32) -> Result<usize, Broken> {
        let place = self.drive(Operation::Elect { bid })?;
        Ok(usize::try_from(place).unwrap_or(usize::MAX))
    }

    /// The values of all, folded in any order: `fold` is associative and commutative.
    ///
    /// # Errors
    /// As [`Member::barrier`].
    pub fn reduce(&mut self, value: u64, fold: fn(u64, u64) -> u64) -> Result<u64, Broken> {
        self.drive(Operation::Reduce { value, fold })
    }

    /// The value of the member at `root`.
    ///
    /// # Errors
    /// As [`Member::barrier`].
    pub fn broadcast(&mut self, root: usize, value: u64) -> Result<u64, Broken> {
        self.drive(Operation::Broadcast { root, value })
    }

    fn drive(&mut self, operation: Operation) -> Result<u64, Broken> {
        loop {
            match self.party.step(operation) {
                Step::More => {}
                Step::Wait(wait) => self.wait(wait),
                Step::End(Outcome::Done(value)) => return Ok(value),
                Step::End(Outcome::Broken(broken)) => return Err(broken),
            }
        }
    }

    /// Until the word changes. After the limit the member that is missing is named.
    fn wait(&mut self, wait: Wait) {
        let begin = now();
        while self.party.gang().look(wait.word) == wait.seen {
            if now().saturating_sub(begin) >= self.options.limit.as_ns() {
                self.party.accuse();
                return;
            }
            match self.options.waiting {
                Waiting::Spin => std::hint::spin_loop(),
                Waiting::Sleep(span) => thread::sleep(span),
            }
        }
    }
}

/// Nanoseconds of the run; outside of one those of the program, so that a wait ends there, too.
fn now() -> u64 {
    thread::now().map_or_else(outside, |now| now.as_ns())
}

#[cold]
fn outside() -> u64 {
    static BEGUN: OnceLock<Instant> = OnceLock::new();
    let passed = BEGUN.get_or_init(Instant::now).elapsed();
    u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX)
}

impl Drop for Member {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let why = match job::should_stop() {
                true => Why::Cancelled,
                false => Why::Panicked,
            };
            self.party.set_reason(why);
        }
    }
}
