//! The functions of an application while they execute: firings, updates of rules, decisions.
//!
//! Each may make the calls that are about it, and no others: what is theirs is known by the thread,
//! from the beginning of the function to its end. It is gone after a crash, too.

use core::cell::{Cell, RefCell};
use core::ffi::{c_int, c_void};

use ::punctual_graph::{Firing, NextRule, Shared, TaskFifos, TaskScheduler, Tasks};
use punctual_linux::contained_call;

use crate::edge::{answer, is_place};
use crate::status::{Answer, punctual_status, punctual_status as Status};

/// The tokens of one FIFO in a firing, in one piece.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct punctual_tokens {
    /// All of them; those of an input are to be read only.
    pub data: *mut c_void,
    /// How many bytes they are together.
    pub bytes: usize,
    /// Bytes of one of them.
    pub token_size: usize,
}

/// One execution of an actor: all its input is there, and all its output has space.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct punctual_firing {
    /// `sizeof(punctual_firing)`.
    pub size: usize,
    /// Firings of the actor before this one.
    pub number: u64,
    /// The phase of its rates, from 0.
    pub phase: u64,
    /// The one of the actor.
    pub parameter: *mut c_void,
    /// How many FIFOs it reads.
    pub inputs: usize,
    /// Their tokens, in the order of the FIFOs of the graph.
    pub input: *const punctual_tokens,
    /// How many FIFOs it writes.
    pub outputs: usize,
    /// Places for their tokens, with old content, in the order of the FIFOs of the graph.
    pub output: *const punctual_tokens,
}

/// The work of an actor, called once per firing. It returns 0; any other answer ends its
/// application on its tile, as a crash does. It does not wait, keeps no pointer to tokens, and is
/// left by return alone.
pub type punctual_fire = Option<unsafe extern "C" fn(firing: *const punctual_firing) -> c_int>;

/// A task: any code, which runs to its end on its tile, on a stack of its own of 256 KiB. Its calls
/// of `punctual_read_fifo` and `punctual_write_fifo` wait where tokens or space are missing.
/// Another task of the tile goes on meanwhile. It is left by return alone.
pub type punctual_complete = Option<unsafe extern "C" fn(parameter: *mut c_void)>;

/// Updates the firing rule of an actor, after each of its firings: it says by `punctual_consume`
/// and `punctual_produce` how many tokens the next one takes and hands on. It gets the parameter of
/// the actor, in which the firing may have left what it needs.
pub type punctual_update_firing_rule = Option<unsafe extern "C" fn(parameter: *mut c_void)>;

/// The task scheduler of an application on a tile: the place of the actor that fires next among the
/// actors of that tile, or `PUNCTUAL_IDLE_TASK`. It asks `punctual_check_firing_rules` and
/// `punctual_get_task_id`. It is not believed: an answer that may not fire means the idle task.
pub type punctual_decide = Option<unsafe extern "C" fn(parameter: *mut c_void) -> c_int>;

/// The answer of a task scheduler that lets nobody fire, and the task before the first firing.
pub const PUNCTUAL_IDLE_TASK: i32 = -1;

/// The function of an application that the calling thread executes, and what is its own. The
/// pointers are good while it executes: [`within`] ends that.
#[derive(Clone, Copy)]
enum Within {
    Nobody,
    Deciding(*const dyn Tasks),
    Updating(*mut NextRule<'static>),
    Firing(*const Claims<'static>),
    Task(*mut TaskFifos),
}

/// A firing of a function in C.
struct Claims<'a> {
    firing: &'a punctual_firing,
    shared: RefCell<Shared<'a>>,
    /// Bytes of each input and then of each output that have been copied.
    copied: &'a [Cell<usize>],
}

thread_local! {
    static WITHIN: Cell<Within> = const { Cell::new(Within::Nobody) };
}

/// A thread begins: what another left in its place is not its own.
pub(crate) fn forget_within() {
    WITHIN.set(Within::Nobody);
}

/// Does `call` with this for its own.
fn within<R>(own: Within, call: impl FnOnce() -> R) -> R {
    let outer = WITHIN.replace(own);
    let result = call();
    WITHIN.set(outer);
    result
}

pub(crate) type Fire = unsafe extern "C" fn(firing: *const punctual_firing) -> c_int;

/// An actor in C.
pub(crate) struct CActor {
    fire: Fire,
    update: punctual_update_firing_rule,
    parameter: *mut c_void,
    /// Those of its last firing.
    inputs: Vec<punctual_tokens>,
    outputs: Vec<punctual_tokens>,
    copied: Vec<Cell<usize>>,
}

// SAFETY: the parameter goes where the actor goes, and its functions are called by one thread at a
// time; one that minds the thread breaks the contract of the header. Nobody follows the pointers to
// tokens after their firing.
unsafe impl Send for CActor {}

impl CActor {
    /// An actor that reads and writes so many FIFOs.
    ///
    /// # Safety
    /// Its functions may be called with its parameter, by one thread at a time.
    pub(crate) unsafe fn of(
        fire: Fire,
        update: punctual_update_firing_rule,
        parameter: *mut c_void,
        (inputs, outputs): (usize, usize),
    ) -> CActor {
        CActor {
            fire,
            update,
            parameter,
            inputs: Vec::with_capacity(inputs),
            outputs: Vec::with_capacity(outputs),
            copied: vec![Cell::new(0); inputs + outputs],
        }
    }

    /// An answer other than 0 is a panic, which ends the application on this tile.
    pub(crate) fn fire(firing: &mut Firing<'_>, actor: &mut CActor) {
        actor.copied.iter().for_each(|copied| copied.set(0));
        let inputs = &firing.inputs;
        actor.inputs.clear();
        actor.inputs.extend((0..inputs.count()).map(|at| {
            let tokens = inputs.tokens(at);
            punctual_tokens {
                data: tokens.as_ptr().cast_mut().cast(),
                bytes: tokens.len(),
                token_size: inputs.token_size(at),
            }
        }));
        actor.outputs.clear();
        let places = firing.outputs.all();
        actor
            .outputs
            .extend(places.map(|(places, token_size)| punctual_tokens {
                data: places.as_mut_ptr().cast(),
                bytes: places.len(),
                token_size,
            }));
        let call = punctual_firing {
            size: size_of::<punctual_firing>(),
            number: firing.number,
            phase: firing.phase as u64,
            parameter: actor.parameter,
            inputs: actor.inputs.len(),
            input: actor.inputs.as_ptr(),
            outputs: actor.outputs.len(),
            output: actor.outputs.as_ptr(),
        };
        let claims = Claims {
            firing: &call,
            shared: RefCell::new(firing.shared.again()),
            copied: &actor.copied,
        };
        let own: *const Claims<'_> = &raw const claims;
        let (fire, of): (_, *const punctual_firing) = (actor.fire, claims.firing);
        // SAFETY: a function of the program (the one who made the actor); the tokens are claimed
        // beyond this call, and it writes to outputs alone.
        let call = || unsafe { contained_call(|| fire(of)) };
        match within(Within::Firing(own.cast()), call) {
            Ok(0) => {}
            Ok(answer) => panic!("its function returned {answer}"),
            Err(said) => panic!("{said}"),
        }
    }

    pub(crate) fn update(actor: &mut CActor, rule: &mut NextRule<'_>) {
        let Some(update) = actor.update else {
            return;
        };
        let parameter = actor.parameter;
        let own: *mut NextRule<'_> = &raw mut *rule;
        // SAFETY: a function of the program with its own parameter (the one who made the actor).
        let call = || unsafe { contained_call(|| update(parameter)) };
        if let Err(said) = within(Within::Updating(own.cast()), call) {
            panic!("its update of the firing rule: {said}");
        }
    }
}

pub(crate) type Complete = unsafe extern "C" fn(parameter: *mut c_void);

/// A task in C.
pub(crate) struct CTask {
    code: Complete,
    parameter: *mut c_void,
}

// SAFETY: as for `CActor`.
unsafe impl Send for CTask {}

impl CTask {
    /// # Safety
    /// Its function may be called with its parameter, once.
    pub(crate) unsafe fn of(code: Complete, parameter: *mut c_void) -> CTask {
        CTask { code, parameter }
    }

    /// A crash is a panic, and the other tasks of the tile wait no more.
    pub(crate) fn run(self, fifos: &mut TaskFifos) {
        let (code, parameter) = (self.code, self.parameter);
        // SAFETY: a function of the program with its own parameter (the one who made the task).
        let call = || unsafe { contained_call(|| code(parameter)) };
        if let Err(said) = within(Within::Task(&raw mut *fifos), call) {
            fifos.stop();
            panic!("{said}");
        }
    }
}

/// The FIFOs of the task that calls; `None`: no task calls.
fn fifos_of_task<'a>() -> Option<&'a mut TaskFifos> {
    let Within::Task(fifos) = WITHIN.get() else {
        return None;
    };
    // SAFETY: the function of this task executes, on this thread, and makes one call at a time.
    Some(unsafe { &mut *fifos })
}

/// The bytes of so many tokens of this size.
fn bytes_of(size: Option<usize>, tokens: u32) -> Result<usize, Status> {
    let bytes = size.and_then(|size| size.checked_mul(tokens as usize));
    bytes.ok_or(Status::PUNCTUAL_INVALID)
}

fn has_moved(fifos: &TaskFifos, moved: bool) -> Answer {
    match moved {
        true => Ok(()),
        false if fifos.is_stopped() => Err(Status::PUNCTUAL_CANCELLED),
        false => Err(Status::PUNCTUAL_INVALID),
    }
}

type Decide = unsafe extern "C" fn(parameter: *mut c_void) -> c_int;

/// A task scheduler in C.
pub(crate) struct CScheduler {
    decide: Decide,
    parameter: *mut c_void,
}

// SAFETY: as for `CActor`.
unsafe impl Send for CScheduler {}

impl CScheduler {
    /// # Safety
    /// Its function may be called with its parameter, by one thread at a time.
    pub(crate) unsafe fn of(decide: Decide, parameter: *mut c_void) -> CScheduler {
        CScheduler { decide, parameter }
    }
}

impl TaskScheduler for CScheduler {
    fn next(&mut self, tasks: &dyn Tasks) -> Option<usize> {
        let (decide, parameter) = (self.decide, self.parameter);
        // SAFETY: only the lifetime changes, and `within` ends before this does.
        let own = unsafe { core::mem::transmute::<&dyn Tasks, *const dyn Tasks>(tasks) };
        // SAFETY: a function of the program with its own parameter (the one who made it).
        let call = || unsafe { contained_call(|| decide(parameter)) };
        match within(Within::Deciding(own), call) {
            Ok(PUNCTUAL_IDLE_TASK) => None,
            // A number that no task has is refused as one of a task that may not fire.
            Ok(answer) => Some(usize::try_from(answer).unwrap_or(usize::MAX)),
            Err(said) => panic!("{said}"),
        }
    }
}

/// Whether a task may fire, by its place among the actors of the tile: 1 if its tokens and its
/// space are there, else 0; 0 of a task that there is not. In a task scheduler; 0 elsewhere.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_check_firing_rules(task: u32) -> c_int {
    let Within::Deciding(tasks) = WITHIN.get() else {
        return 0;
    };
    // SAFETY: the scheduler that is asked executes, on this thread.
    let tasks = unsafe { &*tasks };
    c_int::from(usize::try_from(task).is_ok_and(|task| tasks.check_firing_rules(task)))
}

/// The task that fired last on this tile, by its place among its actors; `PUNCTUAL_IDLE_TASK` when
/// none has. In a task scheduler; `PUNCTUAL_IDLE_TASK` elsewhere.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_get_task_id() -> c_int {
    let Within::Deciding(tasks) = WITHIN.get() else {
        return PUNCTUAL_IDLE_TASK;
    };
    // SAFETY: as above.
    let last = unsafe { &*tasks }.task_id();
    let last = last.and_then(|last| c_int::try_from(last).ok());
    last.unwrap_or(PUNCTUAL_IDLE_TASK)
}

/// How many tasks the tile has. In a task scheduler; 0 elsewhere.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_task_count() -> u32 {
    let Within::Deciding(tasks) = WITHIN.get() else {
        return 0;
    };
    // SAFETY: as above.
    u32::try_from(unsafe { &*tasks }.count()).unwrap_or(u32::MAX)
}

fn next_rule(set: impl FnOnce(&mut NextRule<'static>) -> bool) -> punctual_status {
    answer(|| {
        let Within::Updating(rule) = WITHIN.get() else {
            return Err(Status::PUNCTUAL_NOT_ALLOWED);
        };
        // SAFETY: the update of this rule executes, on this thread, and calls one function at a
        // time.
        match set(unsafe { &mut *rule }) {
            true => Ok(()),
            false => Err(Status::PUNCTUAL_INVALID),
        }
    })
}

/// So many tokens of an input does the next firing take. `PUNCTUAL_INVALID` when the actor has no
/// such input, or its FIFO never holds so many: the rate stays as it was. In an update of a firing
/// rule; `PUNCTUAL_NOT_ALLOWED` elsewhere.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_consume(input: u32, tokens: u32) -> punctual_status {
    next_rule(|rule| usize::try_from(input).is_ok_and(|input| rule.consume(input, tokens)))
}

/// So many tokens does the next firing hand on to an output. `PUNCTUAL_INVALID` when the actor has
/// no such output, or its FIFO never holds so many: the rate stays as it was. In an update of a
/// firing rule; `PUNCTUAL_NOT_ALLOWED` elsewhere.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_produce(output: u32, tokens: u32) -> punctual_status {
    next_rule(|rule| usize::try_from(output).is_ok_and(|output| rule.produce(output, tokens)))
}

fn in_firing<R>(call: impl FnOnce(&Claims<'static>) -> Result<R, Status>) -> Result<R, Status> {
    let Within::Firing(claims) = WITHIN.get() else {
        return Err(Status::PUNCTUAL_NOT_ALLOWED);
    };
    // SAFETY: the function of this firing executes, on this thread.
    call(unsafe { &*claims })
}

/// The bytes of the next tokens of a claim, which are taken from it.
fn next_of(
    claims: &Claims<'_>,
    (ports, port, tokens): (*const punctual_tokens, usize, u32),
    copied: usize,
) -> Result<*mut [u8], Status> {
    // SAFETY: the caller has seen that the port is one of the firing.
    let claim = unsafe { ports.add(port).read() };
    let bytes = claim.token_size.checked_mul(tokens as usize);
    let begin = claims.copied[copied].get();
    let end = bytes.and_then(|bytes| begin.checked_add(bytes));
    let end = end.filter(|&end| end <= claim.bytes);
    let end = end.ok_or(Status::PUNCTUAL_NOTHING)?;
    claims.copied[copied].set(end);
    let from = claim.data.cast::<u8>().wrapping_add(begin);
    Ok(core::ptr::slice_from_raw_parts_mut(from, end - begin))
}

/// Copies the next tokens of an input into a buffer (CompOSe's `readFIFO`). The first call of a
/// firing begins with its first token. `PUNCTUAL_NOTHING` when the firing takes fewer; nothing is
/// copied then. The copy calls nothing, so a preemption does not wait for it. In a firing, and in a
/// task; `PUNCTUAL_NOT_ALLOWED` elsewhere.
///
/// In a task it waits until the tokens are there. `PUNCTUAL_INVALID` when the FIFO never holds so
/// many; `PUNCTUAL_CANCELLED` when the application was stopped, or the thread of the tile is to
/// end: clean up and return.
///
/// # Safety
/// `buffer` is null, or to as many writable bytes as the tokens have, outside of the FIFO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_read_fifo(
    input: u32,
    buffer: *mut c_void,
    tokens: u32,
) -> punctual_status {
    answer(|| {
        is_place(buffer)?;
        if let Some(fifos) = fifos_of_task() {
            let input = input as usize;
            let bytes = bytes_of(fifos.input_size(input), tokens)?;
            // SAFETY: as the caller vouches.
            let to = unsafe { core::slice::from_raw_parts_mut(buffer.cast::<u8>(), bytes) };
            let moved = match fifos.input_size(input) {
                Some(0) => fifos.skip(input, tokens),
                _ => fifos.read(input, to),
            };
            return has_moved(fifos, moved);
        }
        in_firing(|claims| {
            let input = input as usize;
            if input >= claims.firing.inputs {
                return Err(Status::PUNCTUAL_INVALID);
            }
            let from = next_of(claims, (claims.firing.input, input, tokens), input)?;
            // SAFETY: claimed, and as long as the claim.
            let from = unsafe { &*from };
            // SAFETY: as the caller vouches.
            let to = unsafe { core::slice::from_raw_parts_mut(buffer.cast::<u8>(), from.len()) };
            is_there(claims.shared.borrow_mut().copy(from, to))
        })
    })
}

/// Copies tokens from a buffer to the next places of an output (CompOSe's `writeFIFO`). Their
/// reader has them after the firing. `PUNCTUAL_NOTHING` when the firing hands on fewer; nothing is
/// copied then. As `punctual_read_fifo` otherwise.
///
/// # Safety
/// `buffer` is null, or to as many bytes as the tokens have, outside of the FIFO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_write_fifo(
    output: u32,
    buffer: *const c_void,
    tokens: u32,
) -> punctual_status {
    answer(|| {
        is_place(buffer)?;
        if let Some(fifos) = fifos_of_task() {
            let output = output as usize;
            let bytes = bytes_of(fifos.output_size(output), tokens)?;
            // SAFETY: as the caller vouches.
            let from = unsafe { core::slice::from_raw_parts(buffer.cast::<u8>(), bytes) };
            let moved = match fifos.output_size(output) {
                Some(0) => fifos.fill(output, tokens, 0),
                _ => fifos.write(output, from),
            };
            return has_moved(fifos, moved);
        }
        in_firing(|claims| {
            let output = output as usize;
            if output >= claims.firing.outputs {
                return Err(Status::PUNCTUAL_INVALID);
            }
            let copied = claims.firing.inputs + output;
            let to = next_of(claims, (claims.firing.output, output, tokens), copied)?;
            // SAFETY: claimed, and as long as the claim; the function has called this and writes
            // nothing meanwhile.
            let to = unsafe { &mut *to };
            // SAFETY: as the caller vouches.
            let from = unsafe { core::slice::from_raw_parts(buffer.cast::<u8>(), to.len()) };
            is_there(claims.shared.borrow_mut().copy(from, to))
        })
    })
}

/// Copies bytes from the place `at` of a memory that the tiles of the application share (CompOSe's
/// `readSHM`), by the copies of this application alone. `PUNCTUAL_INVALID` when the memory is not
/// there, or has not so many bytes; nothing is copied then. What another tile writes meanwhile may
/// be half there: a token that it hands on afterwards says that it is whole. The copy calls
/// nothing, so a preemption does not wait for it. In a firing; `PUNCTUAL_NOT_ALLOWED` elsewhere.
///
/// # Safety
/// `buffer` is null, or to that many writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_read_shm(
    buffer: *mut c_void,
    memory: u32,
    at: usize,
    bytes: usize,
) -> punctual_status {
    answer(|| {
        is_place(buffer)?;
        is_a_length(bytes)?;
        // SAFETY: as the caller vouches; no slice is longer.
        let into = unsafe { core::slice::from_raw_parts_mut(buffer.cast::<u8>(), bytes) };
        in_firing(|claims| {
            let mut shared = claims.shared.borrow_mut();
            is_there(shared.read(memory as usize, at, into))
        })
    })
}

/// Copies bytes to the place `at` of a memory that the tiles of the application share (CompOSe's
/// `writeSHM`). As `punctual_read_shm` otherwise.
///
/// # Safety
/// `buffer` is null, or to that many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_write_shm(
    memory: u32,
    at: usize,
    buffer: *const c_void,
    bytes: usize,
) -> punctual_status {
    answer(|| {
        is_place(buffer)?;
        is_a_length(bytes)?;
        // SAFETY: as the caller vouches; no slice is longer.
        let from = unsafe { core::slice::from_raw_parts(buffer.cast::<u8>(), bytes) };
        in_firing(|claims| {
            let mut shared = claims.shared.borrow_mut();
            is_there(shared.write(memory as usize, at, from))
        })
    })
}

/// No object has more bytes than a signed number counts.
fn is_a_length(bytes: usize) -> Result<(), Status> {
    is_there(isize::try_from(bytes).is_ok())
}

fn is_there(copied: bool) -> Result<(), Status> {
    match copied {
        true => Ok(()),
        false => Err(Status::PUNCTUAL_INVALID),
    }
}
