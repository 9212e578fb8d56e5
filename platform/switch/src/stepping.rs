//! For tests: a signal at exactly the instruction where it is wanted.
//!
//! The processor stops after every instruction while its trap flag is set, and the kernel turns
//! each stop into SIGTRAP. Its handler here decides whether the signal under test comes *now*: it
//! sends it to its own thread and returns; masked until then, it arrives before the next
//! instruction.
//!
//! Two ways to choose: at every address that has not been interrupted before, or at the step with a
//! number. A second signal can be asked for some steps into the handler of the first: a handler of
//! a test asks for it itself ([`enter_handler`]), any other is entered through [`wrap_handler`].
//!
//! A function of the test can look at the records at every stop, between two instructions of
//! whatever is going on ([`watch`]).
//!
//! All state is that of the process: one test at a time, on one kernel thread.

use core::arch::naked_asm;
use core::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering::Relaxed,
};

use crate::frame::SignalFrame;
use crate::instructions::step_instructions;
use crate::signal::signal_restorer;
use crate::system_call::system_call;

const SIGTRAP: i32 = 5;
const PLACES: usize = 1 << 15;
/// Stepping ends by itself after this many, unless [`stop_after`] says otherwise. Stepped code is
/// some thousand times slower: on a busy machine what it waits for may be due again before it is
/// done.
const MOST_STEPS: u64 = 40_000;

/// Addresses that have been interrupted; open addressing, because a handler fills it.
static COVERED: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];
static SIGNAL: AtomicI32 = AtomicI32::new(0);
/// Interrupt every new address (0), or the step with this number.
static AT_STEP: AtomicU64 = AtomicU64::new(0);
/// Whether code is stepped, other than a handler.
static ON: AtomicBool = AtomicBool::new(false);
static STEPS: AtomicU64 = AtomicU64::new(0);
static LIMIT: AtomicU64 = AtomicU64::new(MOST_STEPS);
static SENT: AtomicU64 = AtomicU64::new(0);
/// Steps inside the handler after which a second signal comes; 0: none.
static SECOND_AFTER: AtomicU64 = AtomicU64::new(0);
static INSIDE: AtomicBool = AtomicBool::new(false);
static INSIDE_STEPS: AtomicU64 = AtomicU64::new(0);
/// The instruction at which the handler came that is stepped.
static INTERRUPTED: AtomicU64 = AtomicU64::new(0);
static SECONDS: AtomicU64 = AtomicU64::new(0);
/// The handler that [`wrap_handler`] has found.
static WRAPPED: AtomicU64 = AtomicU64::new(0);
/// Not zero: the next signal under test is stepped from the first instruction of its handler on.
static STEP_IN: AtomicU32 = AtomicU32::new(0);
/// A [`Watcher`], or null.
static WATCHER: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());
static WATCHED: AtomicU64 = AtomicU64::new(0);
/// The number of the first invariant that was found broken; 0: none.
static BROKEN: AtomicU32 = AtomicU32::new(0);
/// The instruction of that stop.
static BROKEN_AT: AtomicU64 = AtomicU64::new(0);

/// The kernel's `struct sigaction`.
#[repr(C)]
struct Action {
    handler: u64,
    flags: u64,
    restorer: u64,
    mask: u64,
}

/// A `SA_SIGINFO` handler.
pub type Handler = unsafe extern "C" fn(i32, *mut u8, *mut u8);

/// Gives the kernel a handler that may interrupt itself; false: it refused.
///
/// # Safety
/// The handler is fit for the signal, at any instruction.
pub unsafe fn install(signal: i32, handler: Handler, masked: u64) -> bool {
    const SIGINFO_RESTORER_NODEFER: u64 = 4 | 0x0400_0000 | 0x4000_0000;
    let action = Action {
        handler: handler as *const () as u64,
        flags: SIGINFO_RESTORER_NODEFER,
        restorer: signal_restorer(),
        mask: masked,
    };
    let (number, address) = (u64::from(signal.cast_unsigned()), &raw const action as u64);
    // SAFETY: rt_sigaction reads the action, which outlives the call.
    unsafe { system_call(13, [number, address, 0, 8, 0, 0]) == 0 }
}

/// Takes SIGTRAP. `signal` is the one under test.
///
/// # Safety
/// Nobody else uses SIGTRAP.
pub unsafe fn prepare(signal: i32) -> bool {
    SIGNAL.store(signal, Relaxed);
    // SAFETY: `on_step` changes nothing that interrupted code knows.
    unsafe { install(SIGTRAP, on_step, 1 << (signal - 1)) }
}

/// Looks at the records between two instructions, given the second one and the stack pointer there;
/// answers with the number of the invariant that is broken, or 0. It runs inside a signal handler.
pub type Watcher = fn(instruction: u64, stack_pointer: u64) -> u32;

/// Has `watcher` look at every stop from now on.
pub fn watch(watcher: Watcher) {
    WATCHED.store(0, Relaxed);
    BROKEN.store(0, Relaxed);
    WATCHER.store(watcher as *mut (), Relaxed);
}

/// How often the watcher has looked, and the first invariant that it found broken (0: none).
pub fn watched() -> (u64, u32) {
    (WATCHED.load(Relaxed), BROKEN.load(Relaxed))
}

/// The instruction at which it found that one broken.
pub fn broken_at() -> u64 {
    BROKEN_AT.load(Relaxed)
}

fn look(frame: SignalFrame) {
    let watcher = WATCHER.load(Relaxed);
    if watcher.is_null() {
        return;
    }
    // SAFETY: only `watch` writes the word, and what it writes is a function of this type.
    let watcher = unsafe { core::mem::transmute::<*mut (), Watcher>(watcher) };
    let mut broken = watcher(frame.instruction(), frame.stack_pointer());
    if broken != 0 && INSIDE.load(Relaxed) {
        // A handler finds the records as the instruction that it has interrupted leaves them.
        broken = watcher(INTERRUPTED.load(Relaxed), frame.stack_pointer());
    }
    WATCHED.fetch_add(1, Relaxed);
    if broken != 0 && BROKEN.load(Relaxed) == 0 {
        BROKEN_AT.store(frame.instruction(), Relaxed);
        BROKEN.store(broken, Relaxed);
    }
}

/// Puts a few instructions before the present handler of the signal under test, which step it when
/// [`begin`] has asked for a second signal. Its other properties stay.
///
/// # Safety
/// As for [`prepare`], which has been called; the handler is there for as long as signals come.
pub unsafe fn wrap_handler() -> bool {
    let number = u64::from(SIGNAL.load(Relaxed).cast_unsigned());
    let mut action = Action {
        handler: 0,
        flags: 0,
        restorer: 0,
        mask: 0,
    };
    let present = &raw mut action as u64;
    // SAFETY: rt_sigaction writes the action, which outlives the call.
    let known = unsafe { system_call(13, [number, 0, present, 8, 0, 0]) } == 0;
    let entry = stepped_entry as *const () as u64;
    if !known || action.handler == entry {
        return known;
    }
    WRAPPED.store(action.handler, Relaxed);
    let wrapped = Action {
        handler: entry,
        ..action
    };
    let address = &raw const wrapped as u64;
    // SAFETY: it reads the action, which outlives the call and ends in the handler that was there.
    unsafe { system_call(13, [number, address, 0, 8, 0, 0]) == 0 }
}

/// In place of the handler under test: sets the trap flag if that is wanted, then goes there. All
/// that it touches is the flags, and the stack below the kernel's frame.
#[unsafe(naked)]
unsafe extern "C" fn stepped_entry(number: i32, information: *mut u8, context: *mut u8) {
    naked_asm!(
        "cmp dword ptr [rip + {step_in}], 0",
        "je 2f",
        "mov dword ptr [rip + {step_in}], 0",
        "mov byte ptr [rip + {inside}], 1",
        "pushfq",
        "or qword ptr [rsp], 0x100",
        "popfq",
        "2:",
        "jmp qword ptr [rip + {wrapped}]",
        step_in = sym STEP_IN,
        inside = sym INSIDE,
        wrapped = sym WRAPPED,
    )
}

/// Every address is new again.
pub fn forget() {
    for place in &COVERED {
        place.store(0, Relaxed);
    }
}

/// Whether the instruction at this address has been interrupted.
pub fn is_covered(address: u64) -> bool {
    let mut place = first_place(address);
    loop {
        match COVERED[place].load(Relaxed) {
            0 => return false,
            known if known == address => return true,
            _ => place = (place + 1) % PLACES,
        }
    }
}

/// How many addresses have been interrupted.
pub fn covered() -> usize {
    COVERED
        .iter()
        .filter(|place| place.load(Relaxed) != 0)
        .count()
}

/// From here on the calling thread is stepped. `at`: interrupt at every new address (0), or once,
/// at the step with this number; `second`: and again that many steps into the handler (0: not).
///
/// # Safety
/// [`prepare`] has been called.
#[inline(always)]
pub unsafe fn begin(at: u64, second: u64) {
    AT_STEP.store(at, Relaxed);
    SECOND_AFTER.store(second, Relaxed);
    INSIDE_STEPS.store(0, Relaxed);
    STEPS.store(0, Relaxed);
    ON.store(true, Relaxed);
    // SAFETY: `on_step` handles the stops.
    unsafe { step_instructions(true) };
}

/// The calling thread is not stepped any more.
#[inline(always)]
pub fn end() {
    ON.store(false, Relaxed);
    STEP_IN.store(0, Relaxed);
    INSIDE.store(false, Relaxed);
    // SAFETY: turning it off needs no handler.
    unsafe { step_instructions(false) };
}

/// From now on stepping ends by itself after this many steps.
pub fn stop_after(steps: u64) {
    LIMIT.store(steps, Relaxed);
}

/// Whether it has ended by itself since [`begin`].
pub fn was_cut() -> bool {
    STEPS.load(Relaxed) >= LIMIT.load(Relaxed)
}

/// Steps since [`begin`].
pub fn steps() -> u64 {
    STEPS.load(Relaxed)
}

/// Signals sent, and second ones among them, since the program started.
pub fn sent() -> (u64, u64) {
    (SENT.load(Relaxed), SECONDS.load(Relaxed))
}

/// First in the handler under test: steps through it if a second signal is wanted.
#[inline(always)]
pub fn enter_handler() {
    if SECOND_AFTER.load(Relaxed) > INSIDE_STEPS.load(Relaxed) {
        INSIDE.store(true, Relaxed);
        // SAFETY: `on_step` handles the stops.
        unsafe { step_instructions(true) };
    }
}

/// Last in the handler under test. `resumes`: it goes on with a thread that knows nothing of this,
/// which is stepped as the interrupted one was.
#[inline(always)]
pub fn leave_handler(resumes: bool) {
    INSIDE.store(false, Relaxed);
    let on = resumes && ON.load(Relaxed);
    // SAFETY: `on_step` handles the stops.
    unsafe { step_instructions(on) };
}

fn first_place(address: u64) -> usize {
    // The upper bits of a product spread best; a place has 15 of them.
    #[allow(clippy::cast_possible_truncation)]
    let place = (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 49) as usize;
    place
}

/// Whether the address is new; it is not from then on.
fn is_new(address: u64) -> bool {
    let mut place = first_place(address);
    loop {
        match COVERED[place].load(Relaxed) {
            0 => {
                COVERED[place].store(address, Relaxed);
                return true;
            }
            known if known == address => return false,
            _ => place = (place + 1) % PLACES,
        }
    }
}

unsafe extern "C" fn on_step(_: i32, _: *mut u8, context: *mut u8) {
    // SAFETY: the kernel's third argument, used here alone.
    let frame = unsafe { SignalFrame::new(context) };
    if INSIDE.load(Relaxed) {
        look(frame);
        let steps = INSIDE_STEPS.fetch_add(1, Relaxed) + 1;
        if steps == SECOND_AFTER.load(Relaxed) {
            frame.stop_stepping();
            // A wrapped handler does not say when it is left.
            INSIDE.store(WRAPPED.load(Relaxed) == 0, Relaxed);
            SECONDS.fetch_add(1, Relaxed);
            send();
        }
        return;
    }
    if !ON.load(Relaxed) {
        // A thread that was switched to, or interrupted, while it was stepped.
        frame.stop_stepping();
        return;
    }
    look(frame);
    let step = STEPS.fetch_add(1, Relaxed) + 1;
    if step >= LIMIT.load(Relaxed) {
        ON.store(false, Relaxed);
        frame.stop_stepping();
        return;
    }
    let at = AT_STEP.load(Relaxed);
    if at == 0 && is_new(frame.instruction()) {
        send();
    }
    if step == at {
        ON.store(false, Relaxed);
        frame.stop_stepping();
        let again = WRAPPED.load(Relaxed) != 0 && SECOND_AFTER.load(Relaxed) > 0;
        INTERRUPTED.store(frame.instruction(), Relaxed);
        STEP_IN.store(u32::from(again), Relaxed);
        send();
    }
}

/// Sends the signal, which arrives when the present handler returns.
fn send() {
    SENT.fetch_add(1, Relaxed);
    let signal = u64::from(SIGNAL.load(Relaxed).cast_unsigned());
    // SAFETY: none of the calls touches memory: getpid, gettid, tgkill.
    unsafe {
        let process = system_call(39, [0; 6]).cast_unsigned();
        let thread = system_call(186, [0; 6]).cast_unsigned();
        system_call(234, [process, thread, signal, 0, 0, 0]);
    }
}
