//! Any code, in place of a thread of a run.
//!
//! It is for libraries that wait in the kernel by ways of their own, and for runtimes with threads
//! of their own. A body of C is executed by a kernel thread that was started before the run. It has
//! the processor when the light thread in whose place it runs would have it.

use core::cell::{Cell, RefCell};
use core::ffi::{c_char, c_void};
use std::sync::{Mutex, OnceLock, PoisonError};

use punctual_linux::{Backed, Joined, Member, NotBacked};

use crate::admission::{Why, keep_why};
use crate::edge::{answer, give, is_place, is_place_or_null, offer, text};
use crate::fault::execute;
use crate::status::{punctual_status, punctual_status as Status};
use crate::table::Table;
use crate::thread::{Carried, keep_fault, punctual_body};
use crate::time::on_a_thread;

static BACKED: Table<Entry> = Table::new();

/// A body that a kernel thread executes. All zero: none.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct punctual_backed {
    /// The library's.
    pub id: u64,
}

struct Entry {
    /// Until it runs.
    waits: Mutex<Option<Backed<Result<Carried, String>>>>,
    /// Once it has begun.
    member: OnceLock<Member>,
}

thread_local! {
    /// To whose group the calling kernel thread belongs.
    static GROUP: Cell<Option<Member>> = const { Cell::new(None) };
    /// Its membership, if it was not there from the beginning.
    static JOINED: RefCell<Option<Joined>> = const { RefCell::new(None) };
}

/// Whether the calling kernel thread works in place of a thread that is to end.
pub(crate) fn is_to_end() -> bool {
    GROUP.get().is_some_and(|member| member.is_over())
}

/// Starts a kernel thread of this name that waits for `punctual_backed_run`, to execute
/// `body(argument)`: code that waits in the kernel, or starts kernel threads of its own.
/// `PUNCTUAL_CANNOT_RUN` when the machine has no thread or pipe for it, `PUNCTUAL_NOT_ALLOWED` on
/// threads of a run, which start none (`punctual_why` says more). On threads of the program, not
/// of a run.
///
/// # Safety
/// `backed` is null, or to a place for one; `name` is null or a string; `body` may be called with
/// `argument` on another kernel thread, as long as it likes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_backed_create(
    backed: *mut punctual_backed,
    name: *const c_char,
    body: punctual_body,
    argument: *mut c_void,
) -> punctual_status {
    answer(|| {
        is_place(backed)?;
        // SAFETY: as the caller vouches.
        let name = unsafe { text(name) }?;
        let body = body.ok_or(Status::PUNCTUAL_INVALID)?;
        let id = BACKED.insert(Entry {
            waits: Mutex::new(None),
            member: OnceLock::new(),
        })?;
        let argument = Carried(argument);
        let execute = move |member: &Member| {
            GROUP.set(Some(*member));
            if let Ok(entry) = BACKED.get(id) {
                // Nobody else sets it.
                let _ = entry.member.set(*member);
            }
            // SAFETY: as the caller vouches.
            unsafe { execute(body, argument.pointer()) }.map(Carried)
        };
        let made = Backed::try_new(&name, execute).map_err(|error| {
            keep_why(Why::Words(error.to_string()));
            // It was made here, and nobody else knows of it.
            let _ = BACKED.remove(id);
            match error.kind() {
                std::io::ErrorKind::Unsupported => Status::PUNCTUAL_NOT_ALLOWED,
                _ => Status::PUNCTUAL_CANNOT_RUN,
            }
        })?;
        let entry = BACKED.get(id)?;
        *entry.waits.lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
        // SAFETY: as the caller vouches.
        unsafe { give(backed, punctual_backed { id }) }
    })
}

/// Ends a body that was never run, and its kernel thread; `PUNCTUAL_BUSY` while it runs, and for
/// good when the run ended before it did. Legal everywhere.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_backed_destroy(backed: punctual_backed) -> punctual_status {
    answer(|| BACKED.remove(backed.id))
}

/// Executes the body in place of the calling thread until it returns; `result`, if not null, gets
/// what it returned. It has the processor whenever this thread would have it, budgets and slots
/// included, and is charged for it also while it waits, which nobody can see. The handle is at its
/// end then, whatever the code. When this thread is to end, `punctual_checkpoint` says so in the
/// body. `PUNCTUAL_FAILED` when the body failed (`punctual_fail`), `PUNCTUAL_TAKEN` when somebody
/// runs it already, `PUNCTUAL_CANNOT_RUN` when its kernel thread cannot come to this CPU
/// (`punctual_why` says more). A scheduling point. On threads of a run.
///
/// # Safety
/// `result` is null, or to a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_backed_run(
    backed: punctual_backed,
    result: *mut *mut c_void,
) -> punctual_status {
    answer(|| {
        is_place_or_null(result)?;
        on_a_thread()?;
        let entry = BACKED.get(backed.id)?;
        // Held for a moment, by whoever comes first.
        let waits = undisturbed_take(&entry).ok_or(Status::PUNCTUAL_TAKEN)?;
        let ended = waits.run();
        entry.retire();
        match ended {
            // SAFETY: as the caller vouches.
            Ok(Ok(returned)) => unsafe { offer(result, returned.pointer()) },
            Ok(Err(said)) => Err(keep_fault(&said)),
            Err(NotBacked::NoRun) => Err(Status::PUNCTUAL_NO_RUN),
            Err(error) => {
                keep_why(Why::Words(error.to_string()));
                Err(Status::PUNCTUAL_CANNOT_RUN)
            }
        }
    })
}

/// Takes what waits; whoever is preempted in here would keep the others out.
fn undisturbed_take(entry: &Entry) -> Option<Backed<Result<Carried, String>>> {
    punctual_linux::undisturbed(|| {
        let mut waits = entry.waits.lock().unwrap_or_else(PoisonError::into_inner);
        waits.take()
    })
}

/// From the next turn on the calling kernel thread, which a body has started, runs and waits with
/// that body, until `punctual_backed_leave` or its end. Others compete for the CPU like everybody.
/// `PUNCTUAL_NOT_ALLOWED` on threads of a run, and before the body has begun;
/// `PUNCTUAL_ALREADY_HELD` for a member; `PUNCTUAL_FULL` when there are 256 already, or the body
/// has returned.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_backed_join(backed: punctual_backed) -> punctual_status {
    answer(|| {
        if punctual_linux::job::is_light() {
            return Err(not_allowed(
                "only kernel threads that a body has started join it",
            ));
        }
        let entry = BACKED.get(backed.id)?;
        let member = entry.member.get();
        let member = *member.ok_or_else(|| not_allowed("the body has not begun"))?;
        if GROUP.get().is_some() {
            return Err(Status::PUNCTUAL_ALREADY_HELD);
        }
        let joined = member.join().ok_or(Status::PUNCTUAL_FULL)?;
        GROUP.set(Some(member));
        JOINED.set(Some(joined));
        Ok(())
    })
}

/// The end of a `punctual_backed_join`, on the same kernel thread: `PUNCTUAL_NOT_HELD` without
/// one.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_backed_leave() -> punctual_status {
    answer(|| {
        let joined = JOINED.take().ok_or(Status::PUNCTUAL_NOT_HELD)?;
        GROUP.set(None);
        drop(joined);
        Ok(())
    })
}

fn not_allowed(why: &str) -> Status {
    keep_why(Why::Words(why.to_owned()));
    Status::PUNCTUAL_NOT_ALLOWED
}
