//! The life of a light thread: from its first function to its last.
//!
//! ```text
//!   New --carrier starts it--> Between --job--> Inside --done--> Between ... --run ends-->
//!   Finished
//!                                                  |  (a panic ends the thread: Finished)
//!                                                  +--run ends in the middle of a job: abandoned
//! ```

use core::sync::atomic::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind};

use punctual_kern::Event;

use super::pool::serve;
use crate::entry::request::{complete, open_gate, promise};
use crate::entry::switch::switch_to;
use crate::record::body::{Body, StopJob, describe};
use crate::record::light::{Light, Phase};
use crate::record::local::{current_light, local};
use crate::record::pool::Stage;
use crate::wait::forked::end_child;

/// The first function on a light thread's stack. Entered and left with the gate closed.
pub(crate) unsafe extern "C" fn main(argument: *mut u8) -> ! {
    // SAFETY: the argument is this thread's own record (INV-L1).
    let light = unsafe { &*argument.cast::<Light>() };
    local(|l| {
        l.host.set(light.host());
        l.light.set(light);
        l.recovery.set(None);
    });
    light.library().begin_thread();
    warm_up();
    light.phase.set(Phase::Between);
    // SAFETY: gate closed; the carrier waits.
    unsafe { switch_to(light.host(), core::ptr::null()) };
    if light.pooled.stage.get() != Stage::NotPooled {
        serve(light);
    }
    // SAFETY: nobody else takes the body.
    let body = unsafe { light.take_body() };
    if let Some(mut body) = body.filter(|_| !light.quit.get()) {
        let message = work(light, &mut body);
        // The body's own destructor may panic too; that must not leave this stack.
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(body)));
        let dropped = dropped.err().map(|payload| describe(payload.as_ref()));
        if let Some(message) = message.or(dropped) {
            light.note_panic(message);
        }
    }
    light.pooled.ending.set(true);
    light.stop.store(false, Ordering::Relaxed);
    promise(light, 0);
    light.library().end_thread();
    finish(light)
}

/// Runs jobs until the run or the thread ends; returns what a panic said. Gate: closed on entry,
/// open on return.
fn work(light: &Light, body: &mut Body) -> Option<String> {
    open_gate(light.host());
    while !light.quit.get() {
        light.phase.set(Phase::Inside);
        let info = light.job_info();
        let result = catch_unwind(AssertUnwindSafe(|| body(&info)));
        end_child(light);
        match result {
            Err(payload) if !payload.is::<StopJob>() => return Some(describe(payload.as_ref())),
            _ if light.quit.get() => break,
            _ => {
                light.phase.set(Phase::Between);
                end_run_if_asked(light);
                complete(light);
            }
        }
    }
    None
}

/// Ends for good. Gate: open, unless the run is over (then the carrier has closed it).
fn finish(light: &Light) -> ! {
    // SAFETY: the host outlives its threads.
    let gate = unsafe { &(*light.host()).gate };
    if !light.quit.get() {
        gate.close();
        light.phase.set(Phase::Finished);
        end_run_if_asked(light);
        // SAFETY: gate closed; `enter` picks another thread and never this one again.
        unsafe { ((*light.host()).by_policy.birth)(light.host(), &Event::Exit) };
    }
    light.phase.set(Phase::Finished);
    loop {
        // SAFETY: gate closed; the carrier frees this stack afterwards and does not come back.
        unsafe { switch_to(light.host(), core::ptr::null()) };
    }
}

/// Ends the run as soon as the body of the calling light thread is left, by return or by panic. A
/// body that raised the stop flag itself could be preempted before it returns, and the run would
/// end with this thread in the middle of its job: abandoned, though its work is done. Does nothing
/// outside of a run.
pub fn end_run() {
    if let Some(light) = current_light() {
        light.ends_run.set(true);
    }
}

/// Calls `call`, during which [`crate::Child::abandon`] refuses to take the calling light thread:
/// it has something that the caller of `abandon` does not know of and will need. For the same
/// reason a wait in it does not end because the thread is cancelled: the next one after it does.
/// O(1) beside it.
pub fn held_alive<R>(call: impl FnOnce() -> R) -> R {
    struct Hold(Option<&'static Light>);
    impl Drop for Hold {
        fn drop(&mut self) {
            if let Some(light) = self.0 {
                light.held_alive.set(light.held_alive.get() - 1);
            }
        }
    }
    let light = current_light();
    if let Some(light) = light {
        light.held_alive.set(light.held_alive.get() + 1);
    }
    let _hold = Hold(light);
    call()
}

/// With the body left, so that whoever is preempted here can still be ended.
fn end_run_if_asked(light: &Light) {
    if light.ends_run.get() {
        // SAFETY: the host outlives its threads.
        let shared = unsafe { &(*light.host()).shared };
        shared.stop.store(true, Ordering::Relaxed);
    }
}

/// Makes the first job as fast as the others: the allocator prepares its arena for this thread.
fn warm_up() {
    drop(std::hint::black_box(vec![0_u8; 4_096]));
    drop(std::hint::black_box(String::from("warm")));
}
