//! One at a time between CPUs, by spinning for a moment.

use core::ffi::c_void;

use ::punctual_thread::sync::SpinMutex;

use crate::edge::answer;
use crate::status::{punctual_status, punctual_status as Status};
use crate::table::Table;

static SPINS: Table<SpinMutex<()>> = Table::new();

/// A mutex that is spun for. All zero: none.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct punctual_spin {
    /// The library's.
    pub id: u64,
}

/// A use of what a spin mutex guards, alone. It returns soon: no other thread executes on its CPU,
/// and a thread that waits on another one spins. It calls nothing that waits or prints;
/// of this library's calls, those that are for threads of a run answer `PUNCTUAL_NO_RUN` in it. It
/// may not be left by `longjmp`, nor by an exception.
pub type punctual_use = Option<unsafe extern "C" fn(argument: *mut c_void)>;

/// Makes a spin mutex, for threads of every CPU of a run. Legal everywhere; it belongs to the run
/// of its first use.
///
/// # Safety
/// `spin` is null, or to a place for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_spin_create(spin: *mut punctual_spin) -> punctual_status {
    // SAFETY: as the caller vouches.
    answer(|| unsafe { SPINS.create(spin, |id| punctual_spin { id }, || Ok(SpinMutex::new(()))) })
}

/// Ends a spin mutex; `PUNCTUAL_BUSY` while somebody uses it or spins for it. Legal everywhere.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_spin_destroy(spin: punctual_spin) -> punctual_status {
    answer(|| SPINS.remove(spin.id))
}

/// Does `once(argument)` while nobody else, on whatever CPU, uses this spin mutex, and without
/// preemption. Spins for one use on each other CPU at most, in the order of coming.
/// `PUNCTUAL_NO_RUN` also in a use, of whichever mutex. There is no lock and unlock, so that none
/// is forgotten. On threads of a run.
///
/// # Safety
/// `once` is null, or may be called with `argument`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_spin_with(
    spin: punctual_spin,
    once: punctual_use,
    argument: *mut c_void,
) -> punctual_status {
    answer(|| {
        let call = once.ok_or(Status::PUNCTUAL_INVALID)?;
        let spin = SPINS.get(spin.id)?;
        // SAFETY: as the caller vouches.
        Ok(spin.with(|()| unsafe { call(argument) })?)
    })
}
