//! A scheduler that decides on its own supply: its code runs on a stack of its own.
//!
//! To the carrier it is a light thread like any other, only that the core lets it run by the name
//! of its scheduler. It looks (the core's part, gate closed), decides (its own part, preempted
//! whenever its supply ends, however long it takes), and answers. A panic in its policy ends its
//! deciding: its fallback goes on, or from then on it answers that nobody shall run, and costs no
//! more than that. Other code may take its place (design note 0099). One whose
//! answer was refused waits on its own supply before it looks again, twice as long after each, so
//! that a liar fills no recorder (design note 0006).

use core::any::Any;
use core::sync::atomic::{Ordering, compiler_fence};
use std::panic::{AssertUnwindSafe, catch_unwind};

use punctual_child::ChildScheduler;
use punctual_kern::{ChildPick, Event, NodeId, Policy, Sink};
use punctual_model::{Span, ThreadId};

use crate::entry::code::Successor;
use crate::entry::cpu::Cpu;
use crate::entry::request::{leave, open_gate, rest};
use crate::record::body::{Body, describe};
use crate::record::light::Light;
use crate::record::local::{current_light, local};
use crate::record::per_cpu::PerCpu;
use crate::record::recovery::{Recovery, Role};

/// The light thread of a child, as its CPU knows it.
pub(crate) struct Child {
    pub(crate) node: NodeId,
    pub(crate) light: *const Light,
    /// A thread of its own that gave up its turn since it looked last.
    pub(crate) yielded: Option<ThreadId>,
    /// Other code for it.
    pub(crate) successor: Successor,
}

impl Child {
    pub(crate) fn new(node: NodeId, light: &Light) -> Child {
        Child {
            node,
            light,
            yielded: None,
            successor: Successor::none(),
        }
    }

    /// Whether it decides for this scheduler. One that comes again in a change has its place of
    /// before under a later id.
    pub(crate) fn is(&self, node: NodeId) -> bool {
        self.node.index() == node.index()
    }

    /// It is asked for this scheduler, which may have ended since and come again.
    pub(crate) fn asked_for(&mut self, node: NodeId) -> *const Light {
        if self.node != node {
            (self.node, self.yielded) = (node, None);
        }
        self.light
    }
}

/// The code that the light thread of a child executes, on a CPU of this policy and recorder.
pub(crate) fn body<P, S>(mut code: ChildScheduler) -> Body
where
    P: Policy + 'static,
    S: Sink + 'static,
{
    Box::new(move |_| {
        if let Some(light) = current_light() {
            begin::<P, S>(light, &mut code);
        }
    })
}

/// Where a child stands on its stack before it calls its policy. It goes on below this after a
/// crash, so many crashes need no more of the stack than one.
#[repr(C)]
struct Ground {
    /// Of this very word.
    address: u64,
    code: *mut ChildScheduler,
}

/// Its work. Unwinds when the run is over.
#[inline(never)]
fn begin<P: Policy + 'static, S: Sink + 'static>(light: &Light, code: &mut ChildScheduler) {
    let mut ground = Ground { address: 0, code };
    ground.address = (&raw mut ground).addr() as u64;
    let ground = &raw const ground;
    serve::<P, S>(light, core::hint::black_box(ground));
}

/// Decides, and after a failure again when it gets other code. Unwinds when the run is over.
fn serve<P: Policy + 'static, S: Sink + 'static>(light: &Light, ground: *const Ground) -> ! {
    loop {
        // SAFETY: both outlive this call, in the frames above; nobody else uses the code.
        let code = unsafe { &mut *(*ground).code };
        answers::<P, S>(light, code, ground);
        fails::<P, S>(light, code);
    }
}

/// Looks, decides and answers, until its policy fails. Unwinds when the run is over.
fn answers<P: Policy + 'static, S: Sink + 'static>(
    light: &Light,
    code: &mut ChildScheduler,
    ground: *const Ground,
) {
    let mut quarrel = Quarrel::default();
    loop {
        let yielded = see::<P, S>(light, code).yielded;
        match decide::<P, S>(light, code, (yielded, ground)) {
            Ok(pick) => answer(light, &mut quarrel, pick),
            Err(payload) => return light.note_panic(describe(payload.as_ref())),
        }
    }
}

/// Its policy has failed: its fallback goes on, if it has one, and again when its scheduler comes
/// again. Else nobody runs whenever it is asked. Returns when it has other code; unwinds when the
/// run is over.
fn fails<P: Policy, S: Sink>(light: &Light, code: &mut ChildScheduler) {
    let mut told = None;
    let mut quarrel = Quarrel::default();
    loop {
        if see::<P, S>(light, code).is_new {
            return;
        }
        if told.replace(code.node()) != Some(code.node()) {
            rest(Event::ChildFailed(code.node()));
            continue;
        }
        answer(light, &mut quarrel, code.decline());
    }
}

fn answer(light: &Light, quarrel: &mut Quarrel, pick: ChildPick) {
    quarrel.wait_before(&pick, light);
    rest(Event::ChildPicked(pick));
}

/// Has its policy decide. Where that crashes, this does not return, and the thread goes on in
/// [`crashed`].
#[inline(never)]
fn decide<P: Policy + 'static, S: Sink + 'static>(
    light: &Light,
    code: &mut ChildScheduler,
    (yielded, ground): (Option<ThreadId>, *const Ground),
) -> Result<ChildPick, Box<dyn Any + Send>> {
    let now = light.now();
    let code: *mut ChildScheduler = code;
    let recovery = Recovery {
        resume: crashed::<P, S>,
        argument: ground.cast_mut().cast(),
        stack: ground.cast(),
        role: Role::Policy,
    };
    local(|l| l.recovery.set(Some(recovery)));
    // The handler of faults reads it, in the midst of the call.
    compiler_fence(Ordering::SeqCst);
    let decided = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the caller's, who waits; after a crash nobody returns here.
        let code = unsafe { &mut *code };
        if let Some(thread) = yielded {
            code.yield_now(thread);
        }
        code.decide(now)
    }));
    compiler_fence(Ordering::SeqCst);
    local(|l| l.recovery.set(None));
    decided
}

/// A child whose policy has crashed goes on here, on its own stack, in place of its work.
///
/// # Safety
/// `ground` is a [`Ground`] below which nobody returns to any frame.
unsafe extern "C" fn crashed<P: Policy + 'static, S: Sink + 'static>(ground: *mut u8) -> ! {
    let Some(light) = current_light() else {
        std::process::abort()
    };
    light.note_panic(light.fault_in_words("its policy"));
    // The run is over, or something in here has failed.
    let _over = catch_unwind(AssertUnwindSafe(|| {
        let ground: *const Ground = ground.cast();
        // SAFETY: it lives in a frame above, and so does the code; nobody else uses that any more.
        fails::<P, S>(light, unsafe { &mut *(*ground).code });
        serve::<P, S>(light, ground)
    }));
    if !light.quit.get() {
        std::process::abort();
    }
    leave(light)
}

/// The first wait after a refused answer, and the longest.
const WAIT_NS: u64 = 1_000;
const MOST_WAIT_NS: u64 = 1_000_000;

/// Refused answers in a row.
#[derive(Default)]
struct Quarrel {
    /// The epoch that the last answer was decided on: an answer that is believed is asked for again
    /// on something else.
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

/// Looks, with the gate closed.
fn see<P: Policy, S: Sink>(light: &Light, code: &mut ChildScheduler) -> Look {
    let host = light.host();
    // SAFETY: the host outlives its threads; the gate is atomic.
    unsafe { (*host).gate.close() };
    // SAFETY: gate closed on the host's kernel thread; the child was made for a CPU of this type.
    let seen = unsafe { look::<P, S>(host, code) };
    open_gate(host);
    seen
}

/// The news that a child finds when it looks.
#[derive(Clone, Copy, Default)]
struct Look {
    /// A thread of its own that gave up its turn since the last time.
    yielded: Option<ThreadId>,
    /// It has other code now.
    is_new: bool,
}

/// Lets a child see its ready threads.
///
/// # Safety
/// `host` is the host of a `Cpu<P, S>`, its gate is closed by the caller on its kernel thread, and
/// no reference into the core is alive.
unsafe fn look<P: Policy, S: Sink>(host: *const PerCpu, code: &mut ChildScheduler) -> Look {
    let cpu = host.cast::<Cpu<P, S>>();
    // SAFETY: the host is the first field of the CPU (repr(C)), which outlives the run; the gate is
    // closed, so nobody else borrows the core until this function has returned.
    let core = unsafe { &mut *(*cpu).core() };
    let mut children = core.children.iter_mut();
    let child = children.find(|child| child.is(code.node()));
    let mut seen = Look::default();
    if let Some(child) = child {
        if child.node != code.node() {
            code.come_again(child.node);
        }
        seen.yielded = child.yielded.take();
        seen.is_new = child.successor.give(code);
    }
    code.look(&core.shard);
    seen
}
