//! A tree that a run starts with, from a file.

use core::ffi::{CStr, c_char};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ::punctual_thread::Runtime;
use punctual_linux::{clock_rate, foreign_policy};
use punctual_model::{Ns, PolicyKind, Scheduler, System};

use crate::admission::{Why, keep_why};
use crate::edge::is_place;
use crate::status::punctual_status as Status;

/// The schedulers of the file `from`, whose CPUs are ordered by these policies, and the run with
/// the code in C that the file names for some. A mistake of the file is kept in words.
///
/// # Safety
/// `from` is null or a text; the functions that the file names keep the contract of
/// `punctual_policy.h`.
pub(crate) unsafe fn tree_of_file(
    mut runtime: Runtime,
    from: *const c_char,
    policies: &[PolicyKind<Ns>],
) -> Result<(Runtime, Vec<Scheduler>), Status> {
    is_place(from)?;
    // SAFETY: not null, so a text (the caller).
    let bytes = unsafe { CStr::from_ptr(from) }.to_bytes();
    let path = Path::new(OsStr::from_bytes(bytes));
    let system = punctual_spec::load(path).map_err(|error| refused(error.to_string()))?;
    let system = system.system;
    check(&system, policies).map_err(|what| refused(format!("{}: {what}", path.display())))?;
    for scheduler in &system.schedulers {
        let Some(code) = &scheduler.code else {
            continue;
        };
        let library = path.parent().unwrap_or(Path::new("")).join(&code.library);
        let failed = |what: String| refused(format!("scheduler `{}`: {what}", scheduler.name));
        let maker = foreign_policy(&library, &code.symbol);
        let maker = maker.map_err(|error| failed(error.to_string()))?;
        runtime = runtime.try_policy(&scheduler.name, move |threads| {
            maker.make(threads, clock_rate().frequency)
        });
    }
    Ok((runtime, system.schedulers))
}

fn refused(what: String) -> Status {
    keep_why(Why::Words(what));
    Status::PUNCTUAL_INVALID
}

/// A file has CPUs and their schedulers; a program brings the rest itself.
fn check(system: &System, policies: &[PolicyKind<Ns>]) -> Result<(), String> {
    let rest = [
        (system.tasks.len(), "tasks"),
        (system.resources.len(), "resources"),
        (system.changes.len(), "changes"),
        (system.graphs.len(), "graphs"),
        (system.gangs.len(), "gangs"),
        (system.groups.len(), "groups"),
    ];
    if let Some((_, what)) = rest.iter().find(|(many, _)| *many > 0) {
        return Err(format!(
            "it has {what}, which a program makes itself: leave CPUs and schedulers"
        ));
    }
    let (has, runs) = (system.cpus.len(), policies.len());
    if has != runs {
        return Err(format!(
            "it has {has} CPUs, and the run has {runs}: the first is that of the call, the others \
             stand in `beside`"
        ));
    }
    let mut pairs = system.cpus.iter().zip(policies);
    match pairs.find(|(cpu, policy)| cpu.policy != **policy) {
        Some((cpu, policy)) => Err(format!(
            "cpu.{} is ordered by {}, and in the run by {}: both have to be the same, with the same \
             times",
            cpu.name,
            cpu.policy.name(),
            policy.name()
        )),
        None => Ok(()),
    }
}
