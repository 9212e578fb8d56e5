//! What a body asks about the job that it works on.

use core::ffi::c_int;

use punctual_linux::job;

use crate::backed::is_to_end;
use crate::edge::answer;
use crate::status::{punctual_status, punctual_status as Status};
use crate::time::on_a_thread;

/// Whether the caller may go on: `PUNCTUAL_CANCELLED` when it is to end, because its thread was
/// cancelled or its overrun rule stops its job; in the body of a `punctual_backed`, also because
/// the run is over. For long bodies without a call that waits; a few loads. A thread that has
/// promised checkpoints (`punctual_promise_checkpoints`) is preempted here, too. Legal everywhere:
/// outside of a run, nothing is to end.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_checkpoint() -> punctual_status {
    job::come_in_if_due();
    match job::should_stop() || is_to_end() {
        true => Status::PUNCTUAL_CANCELLED,
        false => Status::PUNCTUAL_OK,
    }
}

/// The calling thread promises to pass `punctual_checkpoint`, or anything else that enters the
/// scheduler, at least once in `within_ns` nanoseconds of its execution (20 ms at most counts),
/// from now on until it ends; 0 takes the promise back. It is then preempted at its checkpoints,
/// which read the clock for that, and by a timer only so much later: a signal costs many times
/// more. On threads of a run.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_promise_checkpoints(within_ns: u64) -> punctual_status {
    answer(|| {
        on_a_thread()?;
        job::promise_checkpoints(within_ns);
        Ok(())
    })
}

/// 1 if the present job has used up its budget at least once, else 0, also outside of a run. Legal
/// everywhere.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_has_overrun() -> c_int {
    c_int::from(job::has_overrun())
}

/// Executes for so many nanoseconds of the calling thread's own time: a stand-in for work. On
/// threads of a run.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_burn(work_ns: u64) -> punctual_status {
    answer(|| {
        on_a_thread()?;
        job::burn_ns(work_ns);
        Ok(())
    })
}
