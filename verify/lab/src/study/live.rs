//! The studies on the CPUs of this machine, and the prices that it asks.

mod admission;
mod bsp;
mod clocks;
mod held;
mod prices;
mod starts;

use std::sync::{Arc, Mutex, PoisonError};

use punctual_model::{Ns, PolicyKind, Span};
use punctual_thread::thread;

use crate::answers::Row;
use crate::asked::{Asked, Question, Unit};
pub(crate) use prices::costs;

/// The policy of every live study.
const POLICY: PolicyKind<Ns> = PolicyKind::FixedPriority { preemptive: true };

/// A member that is silent for so long is named, and the study ends.
const LIMIT: Span<Ns> = Span::from_ms(5_000);

/// A unit of a live study takes no longer: its runs are ended then, and so is the study.
const LONGEST: Span<Ns> = Span::from_ms(60_000);

/// After so much work of a thread its CPU is left to others for a part of that.
const PART_OF_OTHERS: u64 = 4;

/// How often a member looks whether the other one has told.
const LOOK: Span<Ns> = Span::from_ms(5);

/// Measures a unit.
pub(crate) fn measure(asked: &Asked, (first, second): Unit) -> Result<Vec<Row>, String> {
    match &asked.question {
        Question::Clocks { .. } => clocks::unit(second),
        Question::GangAdmission { .. } => admission::unit(second),
        Question::Skew { .. } => starts::unit(&asked.costs, second),
        Question::Bsp { grains, rivals, .. } => {
            let mut rows = bsp::unit(&asked.costs, (first, second), grains)?;
            if *rivals {
                rows.extend(held::unit(first, second, grains)?);
            }
            Ok(rows)
        }
        _ => Err("this study is of virtual time".into()),
    }
}

/// Leaves the CPU of the calling thread to all others, after so many nanoseconds of work.
fn rest(worked_ns: u64) {
    thread::sleep(Span::from_ns(worked_ns / PART_OF_OTHERS + 1));
}

/// The last two CPUs that this process may use.
fn two_cpus() -> Result<[u32; 2], String> {
    let all = punctual_linux::allowed_cpus().map_err(|error| error.to_string())?;
    match all.as_slice() {
        [.., first, second] => Ok([*first, *second]),
        _ => Err("this process may use one CPU only".into()),
    }
}

/// What a member on another CPU tells when it has come to its end.
struct Told<T>(Arc<Mutex<Option<T>>>);

impl<T> Told<T> {
    /// Both ends: of the one that tells, and of the one that hears it.
    fn both() -> (Self, Self) {
        let told = Arc::new(Mutex::new(None));
        (Self(Arc::clone(&told)), Self(told))
    }

    fn tell(&self, what: T) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
    }

    /// Waits for it as a thread of the run, at most [`LIMIT`]: the other CPU may be away.
    fn hear(&self) -> Result<T, String> {
        for _ in 0..LIMIT.as_ns() / LOOK.as_ns() {
            let told = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
            match told {
                Some(what) => return Ok(what),
                None => thread::sleep(LOOK),
            }
        }
        Err("the other member did not come to its end".into())
    }
}
