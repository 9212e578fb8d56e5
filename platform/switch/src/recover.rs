//! Coherence from the records, whatever instruction the preemption signal hit.
//!
//! The signal plays the part of Slite's kernel (§III-A, §IV): the scheduler's own threads switch
//! without telling anybody, so the first thing the handler does is to find out who runs. All it
//! needs is the instruction pointer, `current`, and that thread's record.

use crate::dispatch::start;
use crate::frame::SignalFrame;
use crate::record::DispatchRecord;
use crate::scheduler::SchedulerRecord;

/// What the signal found. The frame on the stack is the interrupted thread's, or nobody's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "a dead frame must not be returned from"]
pub enum Recovered {
    /// `current` was executing: the frame is its own, and returning from the signal resumes it.
    Executing(*mut DispatchRecord),
    /// The dispatch to `current` was under way and is as good as done: its record (or its older
    /// frame) restores it. What the signal interrupted is over; the handler must not return, but
    /// go on with somebody ([`crate::abandon_to`]).
    InStore(*mut DispatchRecord),
}

impl Recovered {
    /// Who had the processor.
    pub const fn current(self) -> *mut DispatchRecord {
        match self {
            Recovered::Executing(current) | Recovered::InStore(current) => current,
        }
    }
}

/// Rolls a dispatch back that had not been committed to; and says who has the processor.
///
/// # Safety
/// * `scheduler.current()` is a valid record: the caller has checked it (an allegation).
/// * `frame` is that of the signal being handled, which interrupted code of this scheduler's
///   threads, a dispatch between them, or [`crate::abandon_to`] one of them.
pub unsafe fn recover(scheduler: &SchedulerRecord, frame: SignalFrame) -> Recovered {
    let current = scheduler.current();
    let begun = copies().find(|copy| copy.contains(frame.instruction()));
    let [from, _, _] = frame.arguments();
    if let Some(copy) = begun
        && from == current as u64
    {
        // Before the commitment (INV-6: `current` is still the thread that executes).
        // SAFETY: valid by the caller; the thread executes, so nobody else looks at its record.
        unsafe { (*current).roll_back() };
        // SAFETY: no instruction of the copy before the commitment changes what it began with.
        unsafe { frame.set_instruction(copy.begin) };
        return Recovered::Executing(current);
    }
    // SAFETY: valid by the caller.
    if unsafe { (*current).is_resumable() } {
        Recovered::InStore(current)
    } else {
        Recovered::Executing(current)
    }
}

/// Whether a record's instruction is one that dispatches leave behind: whoever did not write the
/// record himself asks before he jumps there.
pub fn is_entry(instruction: u64) -> bool {
    instruction == start as *const () as u64 || copies().any(|copy| copy.resume == instruction)
}

/// Whether the thread of a record executes. `is_current`: it is its scheduler's `current`;
/// `stack_pointer`: of the code that a signal has interrupted; `owns`: whether a stack is the
/// thread's own. For signal handlers: no thread writes the record meanwhile.
///
/// # Errors
/// The number of the invariant, INV-2 to INV-6, that the record breaks.
pub fn examine(
    record: &DispatchRecord,
    is_current: bool,
    stack_pointer: u64,
    owns: impl Fn(u64) -> bool,
) -> Result<bool, u32> {
    let (preempted, (instruction, stack)) = (record.is_preempted(), record.says());
    if stack != 0 && !is_entry(instruction) {
        return Err(2);
    }
    if stack != 0 && !owns(stack) {
        return Err(3);
    }
    if preempted && stack != 0 {
        return Err(5);
    }
    let executes = stack == 0 && !preempted;
    match (is_current, executes) {
        (true, true) if !owns(stack_pointer) => Err(4),
        (false, true) => Err(6),
        _ => Ok(executes),
    }
}

/// One inlined copy of the dispatch: everything before its commitment, or on the way from there to
/// the other thread, lies between the two.
#[derive(Clone, Copy, Debug)]
struct Copy {
    begin: u64,
    resume: u64,
}

impl Copy {
    fn contains(self, instruction: u64) -> bool {
        (self.begin..self.resume).contains(&instruction)
    }
}

unsafe extern "C" {
    #[link_name = "__start_punctual_dispatch"]
    static FIRST_COPY: [i32; 2];
    #[link_name = "__stop_punctual_dispatch"]
    static AFTER_COPIES: [i32; 2];
    #[link_name = "__start_punctual_steps"]
    static FIRST_STEP: i32;
    #[link_name = "__stop_punctual_steps"]
    static AFTER_STEPS: i32;
}

/// The address that a word of the tables points at, counted from its own place.
///
/// # Safety
/// `word` points into a table.
unsafe fn pointed_at(word: *const i32) -> u64 {
    // SAFETY: as the caller vouches.
    (word as u64).wrapping_add_signed(i64::from(unsafe { *word }))
}

fn copies() -> impl Iterator<Item = Copy> {
    let first = &raw const FIRST_COPY;
    let count = (&raw const AFTER_COPIES as usize - first as usize) / size_of::<[i32; 2]>();
    (0..count).map(move |number| {
        let entry = first.wrapping_add(number).cast::<i32>();
        // SAFETY: the linker puts the entries one after the other between the two symbols.
        let (begin, resume) = unsafe { (pointed_at(entry), pointed_at(entry.wrapping_add(1))) };
        Copy { begin, resume }
    })
}

/// The address of every instruction of the protocol in this program, in the order of the tables.
pub fn protocol_instructions() -> impl Iterator<Item = u64> {
    let first = &raw const FIRST_STEP;
    let count = (&raw const AFTER_STEPS as usize - first as usize) / size_of::<i32>();
    // SAFETY: as in `copies`.
    (0..count).map(move |number| unsafe { pointed_at(first.wrapping_add(number)) })
}
