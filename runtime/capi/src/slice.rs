//! Slices of a scheduler's supply in the hands of others.

use core::ffi::c_char;

use ::punctual_thread::tree::Slice;
use punctual_model::Work;

use crate::admission::refused;
use crate::authority::{Held, SLICES, forget_the_dead, held, hold, hold_new, recipient};
use crate::edge::{answer, give, is_place, sized, text};
use crate::scheduler::{find, punctual_recipient, punctual_scheduler, punctual_terms, terms};
use crate::status::{punctual_status, punctual_status as Status};
use crate::table::Used;
use crate::thread::{punctual_thread, with as with_thread};

/// A slice of a scheduler's supply in the hands of another, and the authority to hand on its time.
/// All zero: none.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct punctual_slice {
    /// The library's.
    pub id: u64,
    /// The library's, too.
    pub key: u64,
}

fn slice(handle: punctual_slice) -> Result<Used<'static, Held<Slice>>, Status> {
    held(&SLICES, (handle.id, handle.key))
}

/// A slice for the caller.
///
/// # Safety
/// `place` is null, or to a place for one.
unsafe fn hand(place: *mut punctual_slice, (id, key): (u64, u64)) -> Result<(), Status> {
    // SAFETY: as the caller vouches.
    unsafe { give(place, punctual_slice { id, key }) }
}

/// A slice of the supply of a scheduler goes into the hands of the one that `to` names, if
/// everybody stays on time beside it and all of it is sure to come in each of its periods. `asks`
/// are the terms of a server (`punctual_served`); their quota counts for nothing. The slice is for
/// the receiver to bind threads to. `PUNCTUAL_REFUSED` (`punctual_why` says why),
/// `PUNCTUAL_NO_BUDGET` beyond the supply, `PUNCTUAL_NO_SCHEDULER_LEFT` (`promotions` of
/// `punctual_options`: each slice takes a place). On threads of its CPU.
///
/// # Safety
/// `asks` is null or to terms; `slice` is null, or to a place for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_scheduler_delegate(
    scheduler: punctual_scheduler,
    to: punctual_recipient,
    asks: *const punctual_terms,
    slice: *mut punctual_slice,
) -> punctual_status {
    answer(|| {
        is_place(slice)?;
        // SAFETY: as the caller vouches.
        let terms = terms(&unsafe { sized(asks) }?)?;
        let (giver, to) = (find(scheduler)?, recipient((to.id, to.key))?);
        let made = hold_new(&SLICES, || giver.it.delegate(&to, terms).map_err(refused))?;
        // SAFETY: as the caller vouches.
        unsafe { hand(slice, made) }
    })
}

/// The slice of a name below a scheduler: one that a run starts with is named after its giver and
/// its receiver, `giver:receiver`. `PUNCTUAL_STALE` when there is none. On threads of its CPU.
///
/// # Safety
/// `name` is null or a string; `found` is null, or to a place for a slice.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_scheduler_find_slice(
    scheduler: punctual_scheduler,
    name: *const c_char,
    found: *mut punctual_slice,
) -> punctual_status {
    answer(|| {
        is_place(found)?;
        // SAFETY: as the caller vouches.
        let name = unsafe { text(name) }?;
        let there = find(scheduler)?.it.slice(&name).map_err(refused)?;
        // SAFETY: as the caller vouches.
        unsafe { hand(found, hold(&SLICES, there)?) }
    })
}

/// A thread of a scheduler's own executes on a slice that it holds, and waits for the next when
/// that is used up. It stays in the scheduler's care, and `punctual_scheduler_revoke` brings it
/// back to its supply. `PUNCTUAL_NOT_YOURS` when the slice is for another; else as
/// `punctual_scheduler_grant`. On threads of its CPU.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_scheduler_bind(
    scheduler: punctual_scheduler,
    thread: punctual_thread,
    to: punctual_slice,
) -> punctual_status {
    answer(|| {
        let (from, to) = (find(scheduler)?, slice(to)?);
        with_thread(thread, |thread| {
            from.it.bind(thread, &to.it).map_err(refused)
        })
    })
}

/// A slice of the supply of a scheduler, or of one below it, ends, with all that was delegated from
/// it: threads on them go on on the supply of their own schedulers. Otherwise as
/// `punctual_scheduler_demote`. On threads of its CPU.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_scheduler_take_back(
    scheduler: punctual_scheduler,
    ends: punctual_slice,
) -> punctual_status {
    answer(|| {
        let (giver, ends) = (find(scheduler)?, slice(ends)?);
        giver.it.take_back(&ends.it).map_err(refused)?;
        drop((giver, ends));
        forget_the_dead();
        Ok(())
    })
}

/// A slice of a slice goes into the hands of another, as by `punctual_scheduler_delegate`. On
/// threads of its CPU.
///
/// # Safety
/// As for `punctual_scheduler_delegate`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_slice_delegate(
    from: punctual_slice,
    to: punctual_recipient,
    asks: *const punctual_terms,
    made: *mut punctual_slice,
) -> punctual_status {
    answer(|| {
        is_place(made)?;
        // SAFETY: as the caller vouches.
        let terms = terms(&unsafe { sized(asks) }?)?;
        let (giver, to) = (slice(from)?, recipient((to.id, to.key))?);
        let given = hold_new(&SLICES, || giver.it.delegate(&to, terms).map_err(refused))?;
        // SAFETY: as the caller vouches.
        unsafe { hand(made, given) }
    })
}

/// What is left of a slice goes to a slice or a scheduler with the same giver, until the end of its
/// period; otherwise as `punctual_scheduler_lend`. On threads of its CPU.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_slice_transfer(
    from: punctual_slice,
    to: punctual_recipient,
    work_ns: u64,
) -> punctual_status {
    answer(|| {
        let (from, to) = (slice(from)?, recipient((to.id, to.key))?);
        let work = Work::from_ns(work_ns);
        from.it.transfer(&to, work).map_err(refused)
    })
}

/// A slice that was delegated from a slice ends, as by `punctual_scheduler_take_back`. On threads
/// of its CPU.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_slice_take_back(
    from: punctual_slice,
    ends: punctual_slice,
) -> punctual_status {
    answer(|| {
        let (giver, ends) = (slice(from)?, slice(ends)?);
        giver.it.take_back(&ends.it).map_err(refused)?;
        drop((giver, ends));
        forget_the_dead();
        Ok(())
    })
}

/// The handle by which others transfer time to a slice. On threads of a run.
///
/// # Safety
/// `to_lend` is null, or to a place for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_slice_recipient(
    of: punctual_slice,
    to_lend: *mut punctual_recipient,
) -> punctual_status {
    answer(|| {
        is_place(to_lend)?;
        let (id, key) = (of.id, slice(of)?.to_lend);
        // SAFETY: as the caller vouches.
        unsafe { give(to_lend, punctual_recipient { id, key }) }
    })
}
