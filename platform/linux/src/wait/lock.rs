//! Resources for bodies: to hold one for as long as a value lives.
//!
//! ```no_run
//! use punctual_linux::job;
//!
//! let bus = job::lock("bus")?;
//! job::burn_ns(100_000); // nobody else holds the bus
//! drop(bus);
//! # Ok::<(), job::LockError>(())
//! ```

use core::marker::PhantomData;
use core::sync::atomic::Ordering;
use std::fmt;

use punctual_kern::{Event, Refusal};
use punctual_model::{Instant, Mode};

use crate::entry::request::{request, rest};
use crate::record::light::Light;
use crate::record::local::current_light;

/// A resource that the running job holds, until this is dropped or the job ends.
#[derive(Debug)]
#[must_use = "what is dropped at once is unlocked at once"]
pub struct Held {
    resource: u32,
    /// It stays on the thread that locked.
    here: PhantomData<*const ()>,
}

/// Why a job does not hold what it asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LockError {
    /// The caller is on no light thread of a run.
    NoRun,
    /// No resource of this CPU has that name.
    Unknown(String),
    /// The core refused: the task does not declare it, holds it already, or would wait for itself.
    Refused(Refusal),
    /// It did not come free in time.
    TimedOut,
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LockError::NoRun => write!(f, "resources exist in a run only"),
            LockError::Unknown(name) => write!(f, "no task of this CPU uses a resource `{name}`"),
            LockError::Refused(refusal) => {
                let why = match refusal {
                    Refusal::NotDeclared(_) => "its task does not declare this use",
                    Refusal::AlreadyHeld(_) => "the job holds it already",
                    Refusal::NestedTooDeep(_) => "the job holds too many resources",
                    Refusal::Deadlock(_) => "its holder waits for this job",
                    _ => "the core does not allow it now",
                };
                write!(f, "not locked: {why}")
            }
            LockError::TimedOut => write!(f, "not locked: it did not come free in time"),
        }
    }
}

impl std::error::Error for LockError {}

/// Locks a resource for this job alone; waits for it if need be, under its protocol. A scheduling
/// point. The task declares its uses (`uses` in a file), and the section may not be longer than
/// declared: a longer one goes on without the priority that it inherited.
///
/// # Errors
/// See [`LockError`]; nothing is held then.
pub fn lock(resource: &str) -> Result<Held, LockError> {
    named(resource, Mode::Exclusive, None)
}

/// Locks a resource together with others that only read.
///
/// # Errors
/// As [`lock`].
pub fn lock_shared(resource: &str) -> Result<Held, LockError> {
    named(resource, Mode::Shared, None)
}

/// Locks a resource if that is possible within `ns` nanoseconds.
///
/// # Errors
/// As [`lock`], and [`LockError::TimedOut`].
pub fn lock_within(resource: &str, mode: Mode, ns: u64) -> Result<Held, LockError> {
    named(resource, mode, Some(ns))
}

/// [`lock`] by the number of the resource on its CPU, its place in
/// [`crate::CpuInput::resources`].
///
/// # Errors
/// As [`lock`].
pub fn lock_number(resource: u32, mode: Mode) -> Result<Held, LockError> {
    let light = current_light().ok_or(LockError::NoRun)?;
    take(light, resource, mode, None)
}

/// [`unlock_number`] by name, where names are how a resource was locked and not dropped.
pub fn unlock_named(resource: &str) -> Result<(), LockError> {
    let light = current_light().ok_or(LockError::NoRun)?;
    let number = number(light, resource).ok_or_else(|| LockError::Unknown(resource.to_owned()))?;
    request(light, Event::Unlock { resource: number });
    Ok(())
}

/// Gives back what was locked by this number and not dropped; what is not held stays as it is.
pub fn unlock_number(resource: u32) {
    if let Some(light) = current_light() {
        request(light, Event::Unlock { resource });
    }
}

fn named(resource: &str, mode: Mode, within: Option<u64>) -> Result<Held, LockError> {
    let light = current_light().ok_or(LockError::NoRun)?;
    let number = number(light, resource).ok_or_else(|| LockError::Unknown(resource.to_owned()))?;
    take(light, number, mode, within)
}

fn number(light: &Light, resource: &str) -> Option<u32> {
    // SAFETY: the host outlives its threads, and its list of names does not change.
    let names = unsafe { &(*light.host()).resources };
    let place = names.iter().position(|name| name == resource)?;
    u32::try_from(place).ok()
}

fn take(light: &Light, resource: u32, mode: Mode, within: Option<u64>) -> Result<Held, LockError> {
    let until = within.map(|ns| {
        // SAFETY: the host outlives its threads.
        let clock = unsafe { (*light.host()).clock() };
        Instant::from_ticks(clock.now().ticks().saturating_add(clock.ticks(ns)))
    });
    light.ask(resource);
    rest(Event::Lock {
        resource,
        mode,
        until,
    });
    // The core says so whenever this thread runs again.
    if let Some(refusal) = light.refused.take() {
        return Err(LockError::Refused(refusal));
    }
    if !light.granted.load(Ordering::Relaxed) {
        return Err(LockError::TimedOut);
    }
    Ok(Held {
        resource,
        here: PhantomData,
    })
}

impl Drop for Held {
    fn drop(&mut self) {
        unlock_number(self.resource);
    }
}
