//! A scheduler that decides on its own supply: its code runs on a stack of its own.
//!
//! To the carrier it is a light thread like any other, only that the core lets it run by the name
//! of its scheduler. It looks (the core's part, gate closed), decides (its own part, preempted
//! whenever its supply ends, however long it takes), and answers. A panic in its policy ends its
//! deciding: its fallback goes on, or from then on it answers that nobody shall run, and costs no
//! more than that. One whose
//! answer was refused waits on its own supply before it looks again, twice as long after each, so
//! that a liar fills no recorder (design note 0006).

use std::panic::{AssertUnwindSafe, catch_unwind};

use punctual_child::ChildScheduler;
use punctual_kern::{ChildPick, Event, NodeId, Policy, Sink};
use punctual_model::{Span, ThreadId};

use crate::entry::cpu::look;
use crate::entry::request::{open_gate, rest};
use crate::record::body::{Body, describe};
use crate::record::light::Light;
use crate::record::local::current_light;

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

/// What the light thread of a child executes, on a CPU of this policy and recorder.
pub(crate) fn body<P, S>(mut code: ChildScheduler) -> Body
where
    P: Policy + 'static,
    S: Sink + 'static,
{
    Box::new(move |_| {
        let Some(light) = current_light() else { return };
        let mut failed = false;
        let mut quarrel = Quarrel::default();
        loop {
            let yielded = see::<P, S>(light, &mut code);
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
                        // Its fallback goes on, if it has one; else it is asked again.
                        rest(Event::ChildFailed(code.node()));
                        continue;
                    }
                }
            };
            quarrel.wait_before(&pick, light);
            // Unwinds from here when the run is over.
            rest(Event::ChildPicked(pick));
        }
    })
}

/// The first wait after a refused answer, and the longest.
const WAIT_NS: u64 = 1_000;
const MOST_WAIT_NS: u64 = 1_000_000;

/// Refused answers in a row.
#[derive(Default)]
struct Quarrel {
    /// What the last answer was decided on: an answer that is believed is asked for again on
    /// something else.
    epoch: Option<u32>,
    refused: u32,
}

impl Quarrel {
    /// Executes for a while when the answer before this one was refused.
    fn wait_before(&mut self, pick: &ChildPick, light: &Light) {
        if self.epoch.replace(pick.epoch) != Some(pick.epoch) {
            self.refused = 0;
            return;
        }
        let wait = WAIT_NS.checked_shl(self.refused).unwrap_or(MOST_WAIT_NS);
        self.refused = (self.refused + 1).min(MOST_WAIT_NS.ilog2());
        // SAFETY: the host outlives its threads; only its clock is read.
        let ticks = unsafe { (*light.host()).clock().ticks(wait.min(MOST_WAIT_NS)) };
        let end = light.now().saturating_add(Span::from_ticks(ticks));
        while light.now() < end {
            std::hint::spin_loop();
        }
    }
}

/// Looks, with the gate closed; returns who gave up its turn meanwhile.
fn see<P: Policy, S: Sink>(light: &Light, code: &mut ChildScheduler) -> Option<ThreadId> {
    let host = light.host();
    // SAFETY: the host outlives its threads; the gate is atomic.
    unsafe { (*host).gate.close() };
    // SAFETY: gate closed on the host's kernel thread; the child was made for a CPU of this type.
    let yielded = unsafe { look::<P, S>(host, code) };
    open_gate(host);
    yielded
}
