//! Work that any CPU of a run may begin.

use core::ffi::c_void;
use std::sync::OnceLock;

use ::punctual_thread::spread::{Choice, OfferError, Offered, Spread, offer as offer_work};
use ::punctual_thread::thread::JoinError;
use punctual_model::Span;

use crate::admission::{Why, keep_why};
use crate::edge::{answer, is_place_or_null, offer, sized};
use crate::fault::{execute, fail};
use crate::status::{punctual_status, punctual_status as Status};
use crate::table::{Reserved, Table};
use crate::thread::{Carried, Returned, keep_fault, punctual_body};
use crate::time::on_a_thread;

static OFFERED: Table<Entry> = Table::new();

/// Where a CPU looks for work when its own queue is empty: what `choice` says.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum punctual_choice {
    /// Two queues drawn at random, the longer one first: two looks however many CPUs there are; a
    /// CPU may find nothing while a third one has work.
    PUNCTUAL_TWO_RANDOM = 0,
    /// Every queue once: no CPU stays idle while work waits.
    PUNCTUAL_EVERY_QUEUE = 1,
}

/// How a run spreads work over its CPUs: `spread` of `punctual_options`. Made by
/// `punctual_spread_with` below, which sets `size`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct punctual_spread {
    /// `sizeof(punctual_spread)`, by which later versions tell earlier ones.
    pub size: usize,
    /// One of `punctual_choice`.
    pub choice: u32,
    /// The priority of the workers, as background work.
    pub priority: u32,
    /// Threads of each CPU that do such work, beside `threads` of the options.
    pub workers: usize,
    /// Work that may wait in the queue of each CPU.
    pub room: usize,
}

/// Work that was offered. All zero: none.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct punctual_offered {
    /// The library's.
    pub id: u64,
}

struct Entry {
    /// Empty until the call that offers it comes back.
    offered: OnceLock<Offered<()>>,
    returned: Returned,
}

/// # Safety
/// `from` is to a `punctual_spread` whose size is set, if it is neither null nor misaligned.
pub(crate) unsafe fn spread(from: *const punctual_spread) -> Result<Spread, Status> {
    // SAFETY: as the caller vouches.
    let from = unsafe { sized(from) }?;
    let choice = match from.choice {
        0 => Choice::TwoRandom,
        1 => Choice::EveryQueue,
        _ => return Err(Status::PUNCTUAL_INVALID),
    };
    if from.workers == 0 || from.room == 0 {
        return Err(Status::PUNCTUAL_INVALID);
    }
    Ok(Spread {
        choice,
        workers: from.workers,
        priority: from.priority,
        room: from.room,
    })
}

/// The run is over, and what was offered in it.
pub(crate) fn forget_offered() {
    OFFERED.each(|entry| {
        entry.retire();
    });
}

/// Offers `body(argument)` to all CPUs of the run, that of the caller first: a worker of one that
/// has nothing more urgent to do executes it once, and it stays there. `offered`, if not null, gets
/// its handle, to be joined or detached once; a null pointer detaches it at once.
/// `PUNCTUAL_NOT_ALLOWED` in a run that spreads nothing (`spread` of `punctual_options`),
/// `PUNCTUAL_FULL` when the queue of this CPU is full. Allocates. On threads of a run.
///
/// # Safety
/// `offered` is null, or to a place for one; `body` may be called with `argument` on another stack
/// and kernel thread, as long as it likes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_offer(
    offered: *mut punctual_offered,
    body: punctual_body,
    argument: *mut c_void,
) -> punctual_status {
    answer(|| {
        is_place_or_null(offered)?;
        let body = body.ok_or(Status::PUNCTUAL_INVALID)?;
        on_a_thread()?;
        let id = OFFERED.insert(Entry {
            offered: OnceLock::new(),
            returned: Returned::default(),
        })?;
        let mut reserved = Reserved::of(OFFERED.get(id)?);
        let argument = Carried(argument);
        // SAFETY: as the caller vouches.
        let work = move || unsafe { do_work(id, body, argument) };
        let made = offer_work(work).map_err(|error| refused(&error))?;
        // Nobody else sets it.
        let _ = reserved.entry().offered.set(made);
        if offered.is_null() {
            return Ok(());
        }
        reserved.keep();
        // SAFETY: as the caller vouches.
        unsafe { offer(offered, punctual_offered { id }) }
    })
}

/// What a worker does.
///
/// # Safety
/// The body may be called with this argument.
unsafe fn do_work(
    handle: u64,
    body: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    argument: Carried,
) {
    // SAFETY: as the caller vouches.
    let result = unsafe { execute(body, argument.pointer()) };
    let result = result.unwrap_or_else(|said| fail(said));
    if let Ok(entry) = OFFERED.get(handle) {
        entry.returned.keep(result);
    }
}

fn refused<F>(error: &OfferError<F>) -> Status {
    match error {
        OfferError::Full(_) => Status::PUNCTUAL_FULL,
        OfferError::NoSpread(_) => {
            let words = "this run spreads no work: set `spread` of its options";
            keep_why(Why::Words(words.to_owned()));
            Status::PUNCTUAL_NOT_ALLOWED
        }
    }
}

/// Waits for the end of work for `within_ns` at most, takes what it returned into `result`, if that
/// is not null, and ends the handle. `PUNCTUAL_FAILED` as for `punctual_thread_join`. A scheduling
/// point. On threads of the run, of any CPU.
///
/// # Safety
/// `result` is null, or to a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_offered_join(
    offered: punctual_offered,
    within_ns: u64,
    result: *mut *mut c_void,
) -> punctual_status {
    answer(|| {
        is_place_or_null(result)?;
        on_a_thread()?;
        let entry = OFFERED.get(offered.id)?;
        let made = entry.offered.get().ok_or(Status::PUNCTUAL_STALE)?;
        let ended = made.wait_end(Span::from_ns(within_ns));
        let failed = match ended {
            Ok(()) => None,
            Err(JoinError::Panicked(said)) => Some(said),
            Err(error) => return Err(error.into()),
        };
        if !entry.retire() {
            return Err(Status::PUNCTUAL_STALE);
        }
        if let Some(said) = failed {
            return Err(keep_fault(&said));
        }
        // SAFETY: as the caller vouches.
        unsafe { entry.returned.offer(result) }
    })
}

/// Ends the handle and lets the work go on alone. On threads of a run.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_offered_detach(offered: punctual_offered) -> punctual_status {
    answer(|| {
        on_a_thread()?;
        match OFFERED.get(offered.id)?.retire() {
            true => Ok(()),
            false => Err(Status::PUNCTUAL_STALE),
        }
    })
}
