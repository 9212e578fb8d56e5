//! The jobs of a thread that was created with one closure: from one to the next.

use punctual_kern::{Event, Refusal};
use punctual_model::{Instant, ThreadId};

use crate::entry::request::{enter, open_gate};
use crate::record::body::JobInfo;
use crate::record::light::Light;
use crate::record::local::current_light;
use crate::record::pool::{Kind, Stage};
use crate::wait::job::checkpoint;
use crate::wait::monitor::rest_closed;

/// The thread that asks has no next job: it was not created with [`crate::spawn`], its class has
/// one job only, or it is on no light thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoNextJob;

/// Ends the job of the calling thread of the pool and returns with its next one; a reservation
/// returns in its next period. A scheduling point. A job that was released meanwhile begins at
/// once.
///
/// # Errors
/// [`NoNextJob`]; nothing has happened then.
pub fn next_job() -> Result<JobInfo, NoNextJob> {
    let light = current_light().ok_or(NoNextJob)?;
    let kind = light.pooled.kind.get();
    // SAFETY: the host outlives its threads.
    let host = unsafe { &*light.host() };
    let gate = &host.gate;
    if light.pooled.stage.get() != Stage::Working || kind == Kind::Endless || gate.is_closed() {
        return Err(NoNextJob);
    }
    gate.close();
    let event = match kind {
        Kind::Job => Event::Complete,
        _ => Event::Yield,
    };
    host.end_budget();
    if rest_closed(light, event).is_ok() {
        open_gate(light.host());
    }
    checkpoint();
    Ok(light.job_info())
}

/// The job of the calling light thread; `None` on no light thread.
pub fn this_job() -> Option<JobInfo> {
    current_light().map(Light::job_info)
}

/// The place of the calling light thread's CPU in the input of the run; `None` on no light thread.
pub fn this_cpu() -> Option<usize> {
    // SAFETY: the host outlives its threads.
    current_light().map(|light| unsafe { (*light.host()).index })
}

/// The name of the calling light thread; `None` on no light thread.
pub fn this_name() -> Option<String> {
    current_light().map(|light| light.name().to_owned())
}

/// Bytes of the calling light thread's stack that were ever used, and how many there are; `None` on
/// no light thread. O(what has not been used).
pub fn stack_used() -> Option<(usize, usize)> {
    let stack = current_light()?.stack();
    Some((stack.high_water(), stack.bytes()))
}

/// The instant `ns` nanoseconds after the start of the run, on the run's own timeline, as the calls
/// that wait want it; `None` outside of a run. The first tick at or after it.
pub fn at_ns(ns: u64) -> Option<Instant> {
    let light = current_light()?;
    // SAFETY: the host outlives its threads.
    let clock = unsafe { (*light.host()).clock() };
    Some(Instant::from_ticks(clock.frequency().ticks_up(ns)))
}

/// A job of a sporadic thread arrives now. Gate: closed on entry, open on return.
pub(crate) fn arrive(me: &Light, thread: ThreadId) -> Result<(), Refusal> {
    let arrival = me.now();
    let refused = enter(me, Event::Arrive { thread, arrival });
    let reason = me.refused.get().filter(|_| refused);
    if !me.quit.get() {
        open_gate(me.host());
    }
    reason.map_or(Ok(()), Err)
}
