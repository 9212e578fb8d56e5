//! Kernel-backed threads: threads of the kernel that run in place of a light thread.

use core::sync::atomic::Ordering;
use std::io;
use std::sync::mpsc::{RecvError, channel};
use std::thread::Builder;

use punctual_kern::Event;

use crate::entry::request::{promise, rest};
use crate::record::body::Body;
use crate::record::light::Light;
use crate::record::local::current_light;
use crate::record::thread_group::ThreadGroup;
use crate::sys::program::{Standing, hold_signals, nap, number, set_standing, thread};
use crate::sys::{current_thread, set_mask};

/// What a group is to be when it is not its turn: the last of all, unless its threads would stay
/// that for good. The kernel lets a thread leave SCHED_IDLE only with the capability
/// `CAP_SYS_NICE` (of the first user namespace) or a limit `RLIMIT_NICE` of 20, so a thread
/// tries. On an ordinary thread.
pub(crate) fn lowest() -> io::Result<Standing> {
    let (tell, told) = channel();
    let (end, ends) = channel::<()>();
    let wait = move || {
        // Whoever waits for it below is alive.
        let _ = tell.send(number(current_thread()));
        let _: Result<(), RecvError> = ends.recv();
    };
    Builder::new()
        .name("punctual/standing".to_owned())
        .spawn(wait)?;
    let tries = thread(told.recv().map_err(io::Error::other)?);
    let returns = set_standing(tries, Standing::Idle) && set_standing(tries, Standing::Ordinary);
    // It ends when its processor has nothing else to do, if it has to; nobody waits for that.
    drop(end);
    Ok(if returns {
        Standing::Idle
    } else {
        Standing::Ordinary
    })
}

/// The body of a light thread that its group stands in for.
pub(crate) fn body(group: &'static ThreadGroup) -> Body {
    Box::new(move |_| {
        let Some(light) = current_light() else { return };
        group.stand_in(light, || (), None);
        loop {
            rest(Event::Block { until: None });
        }
    })
}

/// A group that is not interrupted is looked at this often.
const LOOK_NS: u64 = 20_000_000;

impl ThreadGroup {
    /// Runs in place of the calling light thread, from `begin` until there is nothing left to run.
    /// `ended` is closed at its other end then; without it, the end is noticed when somebody looks.
    pub(crate) fn stand_in(&'static self, light: &Light, begin: impl FnOnce(), ended: Option<i32>) {
        // First, so that whoever has begun is told of the end of the run.
        light.set_group(Some(self));
        // Its group comes to no checkpoint of this thread's.
        promise(light, 0);
        if self.low != Standing::Idle {
            // SAFETY: hosts outlive the light threads that run on them.
            let shared = unsafe { &(*light.host()).shared };
            shared.groups_stay.store(true, Ordering::Relaxed);
        }
        begin();
        // Preempted between the two calls below, it would sleep with its group lowered.
        let open = hold_signals();
        let is_kept_out = self.kept_out.load(Ordering::Relaxed);
        // SAFETY: hosts outlive the light threads that run on them.
        let kept_out = unsafe { &(*light.host()).kept_out };
        kept_out.set(kept_out.get() + u32::from(is_kept_out));
        while !self.over.load(Ordering::Acquire) {
            if light.wait_node.cancelled.get() {
                self.dismiss();
            }
            if !self.was_raised_ahead() {
                self.raise();
            }
            // SAFETY: as above; signals are held back, so that nobody else is in there.
            let host = unsafe { &*light.host() };
            if let Some(boundaries) = &host.boundaries {
                boundaries.raised(host.clock().now());
            }
            nap(LOOK_NS, ended, open);
        }
        kept_out.set(kept_out.get() - u32::from(is_kept_out));
        set_mask(open);
        light.set_group(None);
    }
}
