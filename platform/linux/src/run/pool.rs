//! Threads that are ready before anybody asks for them.
//!
//! ```text
//!   Free --spawn--> Born --runs--> Working --returns, panics, is cancelled--> Over
//!    ^                                                                          |
//!    +-------------------- joined, or nobody will -------------------------------+
//!
//!   Working --abandoned--> out of use
//! ```
//!
//! Stacks and storages of the pool are made before the run, and every thread has run up to its
//! first wait. To create one is to take a record off a list, put the closure into its room, and one
//! entry of the core: nothing is allocated (unless a closure or its result is larger than the
//! room) and the system is not called. A record goes back to the list when its result has been
//! taken; its thread-locals are new then (`tls_reset`).

use core::sync::atomic::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;

use punctual_kern::{Constraint, Event, NodeId, Request};

use crate::entry::request::{enter_birth, open_gate, promise};
use crate::record::body::{StopJob, describe};
use crate::record::light::{Light, Phase};
use crate::record::outcome::Panic;
use crate::record::per_cpu::PerCpu;
use crate::record::pool::{Kind, OnFault, Pooled, Stage, discard};
use crate::run::manage::home_of;
use crate::run::tls_reset;
use crate::wait::forked::end_child;
use punctual_linux_io::undisturbed;

/// Why there is no new thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SpawnError {
    /// The caller is on no light thread of a run.
    NoRun,
    /// All threads of the pool are in use.
    PoolIsEmpty,
    /// The core refused the constraint.
    Refused(punctual_kern::Refusal),
}

/// Creates a thread in the care of `home` (`None`: of whose care the running thread is in), whose
/// closure is put into the room by `put`. Gate: open before and after. O(log n).
pub(crate) fn create(
    light: &Light,
    (name, home): (&str, Option<NodeId>),
    mut constraint: Constraint,
    put: impl FnOnce(&Pooled),
) -> Result<(*const Light, u64), SpawnError> {
    // SAFETY: the host outlives its threads; only its cells and atomics are used.
    let host = unsafe { &*light.host() };
    if host.gate.is_closed() {
        return Err(SpawnError::NoRun);
    }
    host.gate.close();
    let Some(child) = host.pool.take() else {
        open_gate(host);
        return Err(SpawnError::PoolIsEmpty);
    };
    let pooled = &child.pooled;
    pooled.stage.set(Stage::Working);
    pooled.generation.set(pooled.generation.get() + 1);
    pooled.kind.set(Kind::of(&constraint.class));
    pooled.background.set(constraint.priority);
    pooled.ending.set(false);
    pooled.detached.set(false);
    pooled.joiner.set(core::ptr::null());
    child.set_name(name);
    child.clear();
    put(pooled);
    let generation = pooled.generation.get();
    constraint.order = constraint.order.saturating_add(host.pool.created.get());
    pooled.order.set(constraint.order);
    host.pool.created.set(host.pool.created.get() + 1);
    host.pool.spawning.set(child);
    let home = home.unwrap_or_else(|| match host.pool.has_one_home.get() {
        true => NodeId::ROOT,
        false => home_of(light),
    });
    let refused = enter_birth(light, &creation(home, constraint));
    if light.quit.get() {
        return Err(SpawnError::NoRun);
    }
    let reason = light.refused.get();
    open_gate(host);
    let Some(reason) = reason.filter(|_| refused) else {
        return Ok((child, generation));
    };
    discard(pooled);
    host.gate.close();
    host.pool.spawning.set(core::ptr::null());
    host.pool.put(child);
    open_gate(host);
    Err(SpawnError::Refused(reason))
}

/// A platform creates threads in the name of the root: it is the root's pool that they come from.
fn creation(home: NodeId, constraint: Constraint) -> Event {
    match home {
        NodeId::ROOT => Event::Create(constraint),
        home => Event::Manage {
            by: NodeId::ROOT,
            request: Request::Create { home, constraint },
        },
    }
}

/// The life of a record of the pool. Gate: closed on entry and on return, and the run is over then.
pub(crate) fn serve(light: &Light) {
    let pooled = &light.pooled;
    // SAFETY: the host outlives its threads; only its cells and atomics are used.
    let host = unsafe { &*light.host() };
    while !light.quit.get() {
        light.phase.set(Phase::Inside);
        open_gate(host);
        let call = pooled.call.take();
        pooled.discard.set(None);
        let result = catch_unwind(AssertUnwindSafe(|| {
            if let Some(call) = call {
                // SAFETY: the room holds the closure that this function was made for.
                unsafe { call(&pooled.room) };
            }
        }));
        end_child(light);
        let stage = match result {
            Ok(()) => {
                pooled.discard.set(pooled.discard_result.get());
                Stage::Returned
            }
            Err(payload) if payload.is::<StopJob>() => Stage::Cancelled,
            Err(payload) => {
                light.note_panic(describe(payload.as_ref()));
                keep_panic(host, light);
                if pooled.on_fault.get() == OnFault::EndRun {
                    host.shared.stop.store(true, Ordering::Relaxed);
                }
                Stage::Panicked
            }
        };
        if light.quit.get() {
            pooled.stage.set(stage);
            return;
        }
        let goes_on = let_go_of_locals(light, host);
        pooled.stage.set(stage);
        if !goes_on {
            return;
        }
        light.phase.set(Phase::Between);
        if pooled.detached.get() {
            host.pool.put(light);
        }
        host.wake_also(pooled.joiner.get());
        let _ = enter_birth(light, &Event::Exit);
    }
}

/// Keeps what a thread of the pool said when it panicked.
fn keep_panic(host: &PerCpu, light: &Light) {
    let panic = Panic {
        cpu: host.index,
        thread: light.id(),
        name: light.name().to_owned(),
        message: light.said(),
    };
    undisturbed(|| {
        let mut panics = host
            .shared
            .panics
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        panics.push(panic);
    });
}

/// Lets go of what the thread has beside its stack: its result, if nobody will take it, and its
/// thread-locals. These are destructors of the program: they may wait. Gate: open on entry; closed
/// on return, unless the run is over (`false`).
fn let_go_of_locals(light: &Light, host: &PerCpu) -> bool {
    let pooled = &light.pooled;
    // A wish to end has come true; unwinding out of a destructor would end the process.
    pooled.ending.set(true);
    light.wait_node.cancelled.set(false);
    light.stop.store(false, Ordering::Relaxed);
    promise(light, 0);
    loop {
        if pooled.detached.get() {
            discard(pooled);
        }
        if tls_reset::resets() {
            light.library().end_thread();
        }
        if light.quit.get() {
            return false;
        }
        host.gate.close();
        let late = pooled.detached.get() && pooled.discard.get().is_some();
        if !late {
            // SAFETY: the destructors have run, and nothing of this thread but its service in the
            // pool goes on.
            unsafe { tls_reset::reset() };
            return true;
        }
        // Whoever would have taken the result has let go of it meanwhile.
        open_gate(host);
    }
}
