//! Events as bits: threads wait for any or for all of several.

use ::punctual_thread::sync::{Flags, Want};
use punctual_model::Span;

use crate::edge::{answer, give, is_place, is_place_or_null, offer};
use crate::status::{punctual_status, punctual_status as Status};
use crate::table::Table;
use crate::time::on_a_thread;

static FLAGS: Table<Flags> = Table::new();

/// Event flags. All zero: none.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct punctual_flags {
    /// The library's.
    pub id: u64,
}

/// How a thread waits for flags: one of the first two, plus `PUNCTUAL_TAKE` if it lowers them.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum punctual_want {
    /// One of the mask is enough.
    PUNCTUAL_ANY = 0,
    /// All of the mask.
    PUNCTUAL_ALL = 1,
    /// Those of the mask that are raised then are lowered with it, for one thread only.
    PUNCTUAL_TAKE = 2,
}

/// Makes 62 flags, none raised. Legal everywhere; they belong to the CPU of their first use.
///
/// # Safety
/// `flags` is null, or to a place for them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_flags_create(flags: *mut punctual_flags) -> punctual_status {
    // SAFETY: as the caller vouches.
    answer(|| unsafe { FLAGS.create(flags, |id| punctual_flags { id }, || Ok(Flags::new())) })
}

/// `punctual_flags_create` for threads of every CPU of a run; waiting threads are served in
/// the order of coming. Legal everywhere.
///
/// # Safety
/// `flags` is null, or to a place for them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_flags_create_cross_cpu(
    flags: *mut punctual_flags,
) -> punctual_status {
    // SAFETY: as the caller vouches.
    answer(|| unsafe { FLAGS.create(flags, |id| punctual_flags { id }, || Ok(Flags::cross_cpu())) })
}

/// Ends them; `PUNCTUAL_BUSY` while somebody waits for them. Legal everywhere.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_flags_destroy(flags: punctual_flags) -> punctual_status {
    answer(|| FLAGS.remove(flags.id))
}

/// Raises flags: threads that have enough of them go on, the most urgent first. `PUNCTUAL_INVALID`
/// for bits from 62 on. A scheduling point when a more urgent thread goes on. On threads of a run.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_flags_raise(flags: punctual_flags, mask: u64) -> punctual_status {
    answer(|| {
        let flags = FLAGS.get(flags.id)?;
        Ok(flags.raise(known(mask)?)?)
    })
}

/// Lowers flags. On threads of a run.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_flags_lower(flags: punctual_flags, mask: u64) -> punctual_status {
    answer(|| {
        let flags = FLAGS.get(flags.id)?;
        Ok(flags.lower(known(mask)?)?)
    })
}

/// Waits for flags of `mask` as `want` says, for `within_ns` at most. `found`, if not null, gets
/// those of the mask that were raised then. A scheduling point when it waits. On threads of a run.
///
/// # Safety
/// `found` is null, or to a place for a mask.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_flags_wait(
    flags: punctual_flags,
    mask: u64,
    want: u32,
    within_ns: u64,
    found: *mut u64,
) -> punctual_status {
    answer(|| {
        is_place_or_null(found)?;
        let flags = FLAGS.get(flags.id)?;
        let mask = known(mask)?;
        let want = match want {
            0 => Want::any(mask),
            1 => Want::all(mask),
            2 => Want::any(mask).take(),
            3 => Want::all(mask).take(),
            _ => return Err(Status::PUNCTUAL_INVALID),
        };
        let raised = flags.wait_within(want, Span::from_ns(within_ns))?;
        // SAFETY: as the caller vouches.
        unsafe { offer(found, raised) }
    })
}

/// The flags that are raised. On threads of their CPU.
///
/// # Safety
/// `raised` is null, or to a place for a mask.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_flags_raised(
    flags: punctual_flags,
    raised: *mut u64,
) -> punctual_status {
    answer(|| {
        is_place(raised)?;
        on_a_thread()?;
        let found = FLAGS.get(flags.id)?.raised();
        // SAFETY: as the caller vouches.
        unsafe { give(raised, found.ok_or(Status::PUNCTUAL_OTHER_CPU)?) }
    })
}

/// A mask of flags that there are.
fn known(mask: u64) -> Result<u64, Status> {
    match mask & !Flags::MASK {
        0 => Ok(mask),
        _ => Err(Status::PUNCTUAL_INVALID),
    }
}
