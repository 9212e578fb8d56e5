//! A thread of the pool that changes its own constraint.

use core::sync::atomic::Ordering;

use punctual_kern::{Constraint, Event};
use punctual_model::{Instant, Ns, Priority};

use crate::entry::request::{enter, open_gate};
use crate::record::light::{Light, Phase};
use crate::record::local::current_light;
use crate::record::pool::{Kind, Stage};
use crate::run::pool::SpawnError;

/// From when on the phase of another constraint of the calling thread would count (nanoseconds of
/// the run): the zero-lag instant of its last job. `None` on no thread of the pool.
pub fn own_lag_until() -> Option<Instant<Ns>> {
    let (light, frequency) = mine()?;
    let host = light.host();
    // SAFETY: the host outlives its threads; its cells and atomics are used, with the gate closed.
    let until = unsafe {
        (*host).gate.close();
        let (lag, now) = ((*host).by_policy.lag, light.now());
        lag(host, light.id(), now)
    };
    open_gate(host);
    Some(Instant::from_ns(frequency.ns_up(until.ticks())))
}

/// The number that the calling thread had as background work last, whatever is in force; that of
/// its creation for one that has never been background work. `None` on no thread of the pool.
pub fn own_priority() -> Option<Priority> {
    current_light().map(|light| light.pooled.background.get())
}

/// Nanoseconds by which the clocks of two CPUs of this run may differ; `None`: not known, or on no
/// light thread.
pub fn run_clock_error() -> Option<u64> {
    let light = current_light()?;
    // SAFETY: the host outlives its threads; only an atomic is used.
    let host = unsafe { &*light.host() };
    let error = host.shared.clock_error.load(Ordering::Relaxed);
    (error < u64::MAX).then_some(error)
}

/// From now on the CPUs of this run compare their clocks while they have nothing to do, and
/// [`crate::Outcome::clocks`] says from when on two surely differed by more than
/// [`run_clock_error`]. Does nothing where that is not known, where the clocks are watched already
/// ([`crate::RunOptions::watch_clocks`]), or on no light thread.
pub fn watch_clocks() {
    let (Some(light), Some(error)) = (current_light(), run_clock_error()) else {
        return;
    };
    // SAFETY: the host outlives its threads; only its clock and atomics are used.
    let host = unsafe { &*light.host() };
    if let Some(clocks) = &host.shared.clocks {
        clocks.allow(host.clock().ticks(error));
    }
}

/// From when on (nanoseconds of the run) two clocks of this run were seen to differ by more than
/// [`run_clock_error`], while they were watched; `None`: not so far, or on no thread of the pool.
pub fn run_clocks_apart() -> Option<u64> {
    let (light, frequency) = mine()?;
    // SAFETY: the host outlives its threads; only atomics are used.
    let host = unsafe { &*light.host() };
    let (_, apart) = host.shared.clocks.as_ref()?.found();
    apart.map(|at| frequency.ns_up(at))
}

/// Changes the constraint of the calling thread to `constraint` (nanoseconds), whose first arrival
/// is at `at`, or at its zero-lag instant where that is later. The present job ends here; returns
/// in the first job under the new constraint, and does not look whether the thread is to end. A
/// scheduling point. Nothing is asked of the analysis here.
///
/// # Errors
/// The core's refusal; [`SpawnError::NoRun`] on no thread of the pool, or when the run is over.
pub fn change_own(constraint: Constraint<Ns>, at: Instant<Ns>) -> Result<(), SpawnError> {
    let (light, frequency) = mine().ok_or(SpawnError::NoRun)?;
    let constraint = Constraint {
        // Its place among those that arrive with it stays its own.
        order: light.pooled.order.get(),
        ..constraint.in_ticks(frequency)
    };
    let first_ns = at.as_ns();
    let at = Instant::from_ticks(frequency.ticks_up(first_ns));
    let host = light.host();
    // SAFETY: the host outlives its threads; only its cells and atomics are used.
    let change = unsafe {
        (*host).gate.close();
        (*host).by_policy.change
    };
    let former = light.pooled.kind.replace(Kind::of(&constraint.class));
    light.phase.set(Phase::Resting);
    // SAFETY: gate closed on the host's kernel thread, and no reference into the core is alive.
    unsafe { change(host, light.id(), constraint, at) };
    let refused = light.refused.get();
    let ends_by = match former {
        Kind::Job => Some(Event::Complete),
        Kind::Slice => Some(Event::Yield),
        // An endless body without a guarantee has changed at once.
        Kind::Endless => None,
    };
    let mut ends_by = ends_by.filter(|_| refused.is_none());
    while let Some(event) = ends_by.filter(|_| !light.quit.get()) {
        let _ = enter(light, event);
        // Jobs that were released before wait in its backlog, and come first.
        ends_by = ends_by.filter(|_| light.job_info().arrival_ns.saturating_add(1) < first_ns);
    }
    light.phase.set(Phase::Inside);
    if light.quit.get() {
        // The carrier resumed this thread to end it: it keeps the gate closed.
        return Err(SpawnError::NoRun);
    }
    open_gate(host);
    match refused {
        Some(refusal) => {
            light.pooled.kind.set(former);
            Err(SpawnError::Refused(refusal))
        }
        None => {
            light
                .pooled
                .is_under(&constraint.class, constraint.priority);
            Ok(())
        }
    }
}

/// The calling thread, if it is one of the pool at work with its gate open; and its clock's rate.
fn mine() -> Option<(&'static Light, punctual_model::Frequency)> {
    let light = current_light()?;
    // SAFETY: the host outlives its threads; only its cells and atomics are used.
    let host = unsafe { &*light.host() };
    let works = light.pooled.stage.get() == Stage::Working;
    (works && !light.quit.get() && !host.gate.is_closed())
        .then(|| (light, host.clock().frequency()))
}
