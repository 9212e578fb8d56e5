//! A scheduler that decides on its own supply: its code runs on a stack of its own.
//!
//! To the carrier it is a light thread like any other, only that the core lets it run by the name
//! of its scheduler. It looks (the core's part, gate closed), decides (its own part, preempted
//! whenever its supply ends, however long it takes), and answers. A panic in its policy ends its
//! deciding: from then on it answers that nobody shall run, and costs no more than that.

use std::panic::{AssertUnwindSafe, catch_unwind};

use punctual_kern::{ChildScheduler, Event, Hierarchy, NodeId, Sink};
use punctual_model::ThreadId;

use crate::cpu::look;
use crate::job::{Body, rest};
use crate::light::{Light, describe, open_gate};
use crate::local::current_light;

/// The light thread of a child, as its CPU knows it.
pub(crate) struct Child {
    pub(crate) node: NodeId,
    pub(crate) light: *const Light,
    /// A thread of its own that gave up its turn since it looked last.
    pub(crate) yielded: Option<ThreadId>,
}

impl Child {
    pub(crate) fn new(node: NodeId, light: &Light) -> Child {
        Child {
            node,
            light,
            yielded: None,
        }
    }
}

/// What the light thread of a child executes, on a CPU of this hierarchy and recorder.
pub(crate) fn body<H, S>(mut code: ChildScheduler) -> Body
where
    H: Hierarchy + 'static,
    S: Sink + 'static,
{
    Box::new(move |_| {
        let Some(light) = current_light() else { return };
        let mut failed = false;
        loop {
            let yielded = see::<H, S>(light, &mut code);
            let pick = if failed {
                code.decline()
            } else {
                let now = light.now();
                let decide = || {
                    if let Some(thread) = yielded {
                        code.yield_now(thread);
                    }
                    code.decide(now)
                };
                match catch_unwind(AssertUnwindSafe(decide)) {
                    Ok(pick) => pick,
                    Err(payload) => {
                        light.note_panic(describe(payload.as_ref()));
                        failed = true;
                        code.decline()
                    }
                }
            };
            // Unwinds from here when the run is over.
            rest(Event::ChildPicked(pick));
        }
    })
}

/// Looks, with the gate closed; returns who gave up its turn meanwhile.
fn see<H: Hierarchy, S: Sink>(light: &Light, code: &mut ChildScheduler) -> Option<ThreadId> {
    let host = light.host();
    // SAFETY: the host outlives its threads; the gate is atomic.
    unsafe { (*host).gate.close() };
    // SAFETY: gate closed on the host's kernel thread; the child was made for a CPU of this type.
    let yielded = unsafe { look::<H, S>(host, code) };
    open_gate(host);
    yielded
}
