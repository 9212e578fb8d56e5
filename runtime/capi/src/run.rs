//! A run: what a C program is in between the call that starts it and that call's end.

use core::ffi::{c_char, c_void};
use core::sync::atomic::{AtomicBool, Ordering};

use ::punctual_thread::{NotAdmitted, Runtime, StartError};
use punctual_linux::{Panic, RunError, is_forked, libraries_with_locals};
use punctual_model::{Machine, Ns, PolicyKind};

use crate::admission::{Why, forget_why, keep_why, why_of};
use crate::application::forget_end;
use crate::authority::forget_all;
use crate::constraint::{constraint, punctual_constraint};
use crate::edge::{all, answer, is_place, is_place_or_null, offer, sized};
use crate::mutex::forget_holders;
use crate::policy::{policy, punctual_own_policy, with_policies, with_scheduling};
use crate::report::keep_report;
use crate::rwlock::forget_users;
use crate::scheduler::{punctual_branch, tree};
use crate::spread::{forget_offered, punctual_spread, spread};
use crate::status::{punctual_status, punctual_status as Status};
use crate::thread::{Carried, first_work, forget_threads, punctual_body};
use crate::tree_file::tree_of_file;

/// A CPU of a run, and what its first thread executes there.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct punctual_cpu {
    /// The CPU, as the kernel counts them.
    pub host: u32,
    /// One of `punctual_policy_kind`.
    pub policy: u32,
    /// For `PUNCTUAL_ROUND_ROBIN` the longest turn, for `PUNCTUAL_TIME_DIVISION` the frame, else 0.
    pub timeslice_ns: u64,
    /// What its first thread executes.
    pub first: punctual_body,
    /// With which argument.
    pub argument: *mut c_void,
}

/// How a run starts. Made by `punctual_defaults` below, which sets `size`; a field that is 0 or
/// null means what is said of it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct punctual_options {
    /// `sizeof(punctual_options)`, by which later versions tell earlier ones.
    pub size: usize,
    /// CPUs beside the one of the call, each with a first thread of its own. Null: none.
    pub beside: *const punctual_cpu,
    /// How many.
    pub beside_count: usize,
    /// How many threads each CPU may have at a time beside its first, less than 2^20. 0: 64.
    pub threads: usize,
    /// Usable bytes of each stack, at most 1 GiB. 0: 64 KiB.
    pub stack_bytes: usize,
    /// The constraint of the first thread of each CPU. Null: background work of the highest
    /// priority, so that only threads with a guarantee go before it.
    pub first_asks: *const punctual_constraint,
    /// 1: do not try for real-time priority and locked memory; guarantees are observations then.
    pub best_effort: u32,
    /// 1: admission counts nothing for the costs of this machine. 0: they are measured before the
    /// run, which takes up to half a second. With 1 its answers are the same on every machine, but
    /// for budgets that two entries of the scheduler use up: those are refused. The first start on
    /// a CPU measures an entry then, in some 40 ms, and for 20 s at most where others have the CPU.
    pub without_terms: u32,
    /// How work is spread over the CPUs (`punctual_offer`). Null: none is.
    pub spread: *const punctual_spread,
    /// The schedulers below the policies of the CPUs. Null: none.
    pub schedulers: *const punctual_branch,
    /// How many.
    pub scheduler_count: usize,
    /// How many schedulers each CPU may have at a time beside them (`punctual_scheduler_promote`).
    pub promotions: u32,
    /// The program's own policies for some of `schedulers`. Null: none.
    pub policies: *const punctual_own_policy,
    /// How many.
    pub policy_count: usize,
    /// 1: all of each stack is in memory before the run. 0: its first 64 KiB are (of a smaller
    /// stack what it was declared with, and a page). The first use of each page below them takes a
    /// page fault.
    pub lock_stacks: u32,
    /// Not looked at.
    pub reserved: u32,
    /// 1: no run begins where a library keeps `__thread` variables from being new in each thread.
    /// 0: the first such run says so on standard error, and begins.
    pub strict: u32,
    /// The constant time in which the scheduler decides before each slot: at least so far apart do
    /// the slots of each frame lie (`PUNCTUAL_TIME_DIVISION`).
    pub scheduling_ns: u64,
    /// The path of a system file whose schedulers stand in place of `schedulers`. It has these
    /// CPUs, in this order and with these policies, and nothing but schedulers on them. Its slices
    /// are found by `giver:receiver` (`punctual_scheduler_find_slice`), and it may name policies in
    /// C. `policies` counts its schedulers in the order of the file. Null: none.
    pub tree_file: *const c_char,
}

/// No field begins where an earlier header had padding: `size` would not tell them apart.
const _: () = assert!(size_of::<punctual_options>() == 136);

static RUNS: AtomicBool = AtomicBool::new(false);

/// The one run of this process; its end.
struct Alone;

impl Alone {
    fn begin() -> Result<Alone, Status> {
        match RUNS.swap(true, Ordering::Acquire) {
            true => Err(Status::PUNCTUAL_BUSY),
            false => Ok(Alone),
        }
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        forget_threads();
        forget_offered();
        forget_all();
        // SAFETY: the run is over, and the next one begins after this.
        unsafe {
            forget_holders();
            forget_users();
        }
        RUNS.store(false, Ordering::Release);
    }
}

/// Starts a run on the CPUs that are described, and returns when it is over: it ends when
/// `cpu->first` returns, whose result goes to `result`, if that is not null. Threads that are left
/// end where they wait; what they have on their stacks is not cleaned up. `options` may be null.
///
/// `PUNCTUAL_INVALID` also when its schedulers mean nothing, as slots that overlap;
/// `PUNCTUAL_BUSY` when a run is on in this process; `PUNCTUAL_CANNOT_RUN` when the machine
/// refuses what a run needs, or a policy cannot be made; `PUNCTUAL_REFUSED` when the first thread
/// does not get the guarantee that it asks for; `PUNCTUAL_OVER` when the run ended before the first
/// thread did, or that failed (`punctual_why` says more in all three cases). On threads of the
/// program, not of a run.
///
/// # Safety
/// Each pointer is null or to what it says, for as long as the call takes; the bodies may be
/// called with their arguments, each on a kernel thread of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_run(
    cpu: *const punctual_cpu,
    options: *const punctual_options,
    result: *mut *mut c_void,
) -> punctual_status {
    answer(|| {
        is_place(cpu)?;
        is_place_or_null(result)?;
        // SAFETY: neither null nor misaligned, and a description (the caller).
        let cpu = unsafe { cpu.read() };
        let own = policy(cpu.policy, cpu.timeslice_ns)?;
        let (runtime, is_strict) = match options.is_null() {
            true => (Runtime::on(cpu.host, own), false),
            // SAFETY: as the caller vouches.
            false => unsafe { with_options((cpu.host, own), options) }?,
        };
        let first = cpu.first.ok_or(Status::PUNCTUAL_INVALID)?;
        let argument = Carried(cpu.argument);
        not_in_a_child()?;
        let alone = Alone::begin()?;
        forget_why();
        forget_end();
        if !is_strict {
            say_stale_locals();
        }
        let runtime = runtime.strict(is_strict);
        // SAFETY: as the caller vouches.
        let finished = runtime.start(move || unsafe { first_work(first, argument) });
        drop(alone);
        let finished = finished.map_err(|error| not_started(&error))?;
        let (pointer, rest) = finished.split();
        keep_report(rest);
        // SAFETY: as the caller vouches.
        unsafe { offer(result, pointer.pointer()) }
    })
}

/// A child of a fork has the state of its parent's run, which nobody ends there.
fn not_in_a_child() -> Result<(), Status> {
    if !is_forked() {
        return Ok(());
    }
    let words = "a child of a fork that a thread of a run made has no run of its own: exec one";
    keep_why(Why::Words(words.to_owned()));
    Err(Status::PUNCTUAL_CANNOT_RUN)
}

/// Names the libraries that keep thread-locals from being new, once on standard error. A strict run
/// does not begin beside them.
fn say_stale_locals() {
    static SAID: AtomicBool = AtomicBool::new(false);
    let libraries = libraries_with_locals();
    if !libraries.is_empty() && !SAID.swap(true, Ordering::Relaxed) {
        eprintln!("punctual: {}", StartError::StaleLocals { libraries });
    }
}

/// The run, and whether it is strict.
///
/// # Safety
/// As for [`punctual_run`].
unsafe fn with_options(
    (host, own): (u32, PolicyKind<Ns>),
    options: *const punctual_options,
) -> Result<(Runtime, bool), Status> {
    // SAFETY: as the caller vouches.
    let options = unsafe { sized(options) }?;
    let scheduling = options.scheduling_ns;
    let choices = [
        options.best_effort,
        options.without_terms,
        options.lock_stacks,
        options.strict,
    ];
    let is_known = choices.iter().all(|choice| *choice <= 1);
    if !is_known || (options.beside.is_null() && options.beside_count > 0) {
        return Err(Status::PUNCTUAL_INVALID);
    }
    let mut runtime = Runtime::on(host, with_scheduling(own, scheduling))
        .real_time(options.best_effort == 0)
        .lock_stacks(options.lock_stacks == 1);
    if options.without_terms == 1 {
        runtime = runtime.terms(Machine::default()).floor(true);
    }
    if options.threads > 0 {
        runtime = runtime.threads(options.threads);
    }
    if options.stack_bytes > 0 {
        runtime = runtime.stack_bytes(options.stack_bytes);
    }
    if !options.first_asks.is_null() {
        // SAFETY: as the caller vouches.
        let asks = unsafe { sized(options.first_asks) }?;
        runtime = runtime.main(constraint(&asks)?);
    }
    if !options.spread.is_null() {
        // SAFETY: as the caller vouches.
        runtime = runtime.spread(unsafe { spread(options.spread) }?);
    }
    // SAFETY: as the caller vouches.
    let mut tree = unsafe { tree((options.schedulers, options.scheduler_count), scheduling) }?;
    if !options.tree_file.is_null() {
        if !tree.is_empty() {
            return Err(Status::PUNCTUAL_INVALID);
        }
        // SAFETY: as the caller vouches.
        let policies = unsafe { policies_of(own, &options) }?;
        // SAFETY: as the caller vouches.
        (runtime, tree) = unsafe { tree_of_file(runtime, options.tree_file, &policies) }?;
    }
    let own = (options.policies, options.policy_count);
    // SAFETY: as the caller vouches.
    runtime = unsafe { with_policies(runtime, &mut tree, own) }?.tree(tree);
    let promotions = u16::try_from(options.promotions);
    runtime = runtime.promotions(promotions.map_err(|_| Status::PUNCTUAL_INVALID)?);
    for place in 0..options.beside_count {
        let beside = options.beside.wrapping_add(place);
        is_place(beside)?;
        // SAFETY: one of as many descriptions (the caller).
        let beside = unsafe { beside.read() };
        let first = beside.first.ok_or(Status::PUNCTUAL_INVALID)?;
        let argument = Carried(beside.argument);
        runtime = runtime.and(
            beside.host,
            with_scheduling(policy(beside.policy, beside.timeslice_ns)?, scheduling),
            move || {
                // SAFETY: as the caller vouches.
                let _ = unsafe { first_work(first, argument) };
            },
        );
    }
    Ok((runtime, options.strict == 1))
}

/// The policies of the CPUs of a run.
///
/// # Safety
/// As for [`punctual_run`].
unsafe fn policies_of(
    own: PolicyKind<Ns>,
    options: &punctual_options,
) -> Result<Vec<PolicyKind<Ns>>, Status> {
    let scheduling = options.scheduling_ns;
    // SAFETY: as the caller vouches.
    let beside = unsafe { all(options.beside, options.beside_count) }?;
    let beside = beside
        .iter()
        .map(|cpu| policy(cpu.policy, cpu.timeslice_ns));
    let all = [Ok(own)].into_iter().chain(beside);
    all.map(|policy| Ok(with_scheduling(policy?, scheduling)))
        .collect()
}

fn not_started(error: &StartError) -> Status {
    let (why, status) = match error {
        StartError::NotAdmitted(why @ NotAdmitted::Meaningless(_)) => {
            (why_of(why), Status::PUNCTUAL_INVALID)
        }
        StartError::NotAdmitted(why) => (why_of(why), Status::PUNCTUAL_REFUSED),
        StartError::Run(RunError::Busy) => return Status::PUNCTUAL_BUSY,
        StartError::Config(_) => (Why::Words(error.to_string()), Status::PUNCTUAL_INVALID),
        StartError::NoResult { panics } => (Why::Words(unfinished(panics)), Status::PUNCTUAL_OVER),
        StartError::Ended { .. } => (Why::Words(error.to_string()), Status::PUNCTUAL_OVER),
        _ => (Why::Words(error.to_string()), Status::PUNCTUAL_CANNOT_RUN),
    };
    keep_why(why);
    status
}

/// What is said of a run whose first thread left no result.
fn unfinished(panics: &[Panic]) -> String {
    let mut words = "the first thread did not come to its end".to_owned();
    for panic in panics {
        words += &format!("; `{}` failed: {}", panic.name, panic.message);
    }
    words
}
