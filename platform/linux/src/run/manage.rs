//! Requests about the tree of a CPU, in a scheduler's name.
//!
//! The platform vouches to the core for the scheduler that asks ([`punctual_kern::Event::Manage`]),
//! and believes its caller: which scheduler a program may name is the business of the runtime.

use core::any::Any;

use punctual_kern::{Event, NodeId, Refusal, Request};
use punctual_model::{PolicyKind, ThreadId};

use crate::entry::code::OwnCode;
use crate::entry::request::{enter, open_gate};
use crate::record::light::Light;
use crate::record::local::current_light;
use crate::record::per_cpu::Standing;

/// Why a request about the tree was not done; nothing has changed then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ManageError {
    /// The caller is on no light thread of a run, or the run is over.
    NoRun,
    /// This thread is in the middle of a job.
    HasJob(ThreadId),
    /// The thread that would be blocked is held alive ([`crate::held_alive`]): others wait for it.
    HeldAlive,
    /// Somebody waits for a lock in the order of the policy that would be replaced.
    Contended,
    /// The core refused.
    Refused(Refusal),
}

/// Has the core of the caller's CPU do what `by` asks for, provided that none of the threads in
/// `rest` has a job that is not done. The scheduler that was made, if that was asked. A scheduling
/// point. O(`rest`), beside what the core needs.
///
/// # Errors
/// See [`ManageError`].
pub fn manage(
    by: NodeId,
    request: Request,
    rest: &[ThreadId],
) -> Result<Option<NodeId>, ManageError> {
    behind_gate(|me| {
        is_ready_for(me, &request, rest)?;
        ask(me, by, request)?;
        Ok(match request {
            Request::Promote(_) => standing(me, me.id()).promoted,
            _ => None,
        })
    })
}

/// Has another policy order what `node` orders, on the caller's CPU, from this instant on: before
/// any thread goes on it knows everything. `place` is an `Option<P>`, for the type `P` of the CPU's
/// policies, with a new one that keeps the order of `policy`. What is in it afterwards is to be
/// freed: the policy that was replaced, or the new one, where that was refused. None of the threads
/// in `rest` may have a job that is not done. A scheduling point. O(`rest` + places of the CPU).
///
/// # Errors
/// See [`ManageError`].
pub fn replace(
    (node, policy): (NodeId, PolicyKind),
    place: &mut dyn Any,
    rest: &[ThreadId],
) -> Result<(), ManageError> {
    replaces((node, policy), place, rest)
}

/// Has other code decide for `node`, which decides on its own supply, on the caller's CPU. It takes
/// over at its next look. From this instant on the core believes no answer of the one before.
/// `policy` is the order that it claims to keep. The caller frees all that is in `place`
/// afterwards. None of the threads in `rest` may have a job that is not done. A scheduling point.
/// O(`rest`).
///
/// # Errors
/// See [`ManageError`]; [`Refusal::NothingShelved`]: the scheduler decides inside the core.
pub fn replace_own(
    (node, policy): (NodeId, PolicyKind),
    place: &mut OwnCode,
    rest: &[ThreadId],
) -> Result<(), ManageError> {
    replaces((node, policy), place, rest)
}

fn replaces(
    (node, policy): (NodeId, PolicyKind),
    place: &mut dyn Any,
    rest: &[ThreadId],
) -> Result<(), ManageError> {
    let request = Request::Replace { node, policy };
    behind_gate(|me| {
        is_ready_for(me, &request, rest)?;
        let done = match shelve(me, (node, policy), place) {
            true => ask(me, node, request),
            false => Err(ManageError::Contended),
        };
        if !me.quit.get() {
            let _ = shelve(me, (node, policy), place);
        }
        done
    })
}

/// Does something with the gate closed.
fn behind_gate<R>(does: impl FnOnce(&Light) -> Result<R, ManageError>) -> Result<R, ManageError> {
    let me = current_light().ok_or(ManageError::NoRun)?;
    // SAFETY: the host outlives its threads; only its cells and atomics are used.
    let host = unsafe { &*me.host() };
    if me.quit.get() || host.gate.is_closed() {
        return Err(ManageError::NoRun);
    }
    host.gate.close();
    let result = does(me);
    if me.quit.get() {
        // The carrier resumed this thread to end it: it keeps the gate closed.
        return Err(ManageError::NoRun);
    }
    open_gate(host);
    result
}

/// The request of a scheduler. Gate closed.
fn ask(me: &Light, by: NodeId, request: Request) -> Result<(), ManageError> {
    let refused = enter(me, Event::Manage { by, request });
    let reason = me.refused.get().filter(|_| refused);
    reason.map_or(Ok(()), |reason| Err(ManageError::Refused(reason)))
}

/// Changes what stands beside a scheduler for what is in `place`. Gate closed.
fn shelve(me: &Light, (node, policy): (NodeId, PolicyKind), place: &mut dyn Any) -> bool {
    let host = me.host();
    // SAFETY: the host outlives its threads; the reference ends with the statement.
    let shelve = unsafe { (*host).by_policy.shelve };
    // SAFETY: gate closed (the caller), and no reference into the core is alive.
    unsafe { shelve(host, node, policy, place) }
}

/// Gate closed.
fn is_ready_for(me: &Light, request: &Request, rest: &[ThreadId]) -> Result<(), ManageError> {
    if let Some(busy) = rest.iter().find(|thread| standing(me, **thread).has_job) {
        return Err(ManageError::HasJob(*busy));
    }
    match *request {
        Request::Block { thread, .. } if standing(me, thread).is_held_alive => {
            Err(ManageError::HeldAlive)
        }
        _ => Ok(()),
    }
}

/// The scheduler that has the calling thread in its care; `None` on no light thread of a run.
pub fn home() -> Option<NodeId> {
    let me = current_light()?;
    // SAFETY: the host outlives its threads; only its cells and atomics are used.
    let host = unsafe { &*me.host() };
    if me.quit.get() || host.gate.is_closed() {
        return None;
    }
    host.gate.close();
    let home = home_of(me);
    open_gate(host);
    Some(home)
}

/// The scheduler that has the running thread in its care. Gate closed.
pub(crate) fn home_of(me: &Light) -> NodeId {
    standing(me, me.id()).home
}

/// Gate closed.
fn standing(me: &Light, thread: ThreadId) -> Standing {
    let host = me.host();
    // SAFETY: the host outlives its threads; the reference ends with the statement.
    let standing = unsafe { (*host).by_policy.standing };
    // SAFETY: gate closed (the caller), and no reference into the core is alive.
    unsafe { standing(host, thread) }
}
