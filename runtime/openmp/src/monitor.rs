//! The monitor: carriers that are still while somebody could be carried get a replacement.
//!
//! A carrier is still when it sleeps in the kernel, or when the code that it carries passes no
//! scheduling point. If a member could run and every carrier is still or busy, a reserve takes the
//! place of each that was still between two looks. So members that spin for each other, sleep or
//! read do what they would do with a kernel thread each, no more than two looks later.
//!
//! The monitor sleeps unless somebody had something to run and found no carrier for it.

use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::parts::{Carrier, Identity};
use crate::pool::{self, ARMED, LISTS};
use crate::seek;
use crate::sys;

/// Nanoseconds between two looks: a carrier is replaced after two, which is less than 2 ms.
const BETWEEN: u32 = 700_000;
/// Looks without anything to do before it sleeps.
const QUIET: u32 = 14;
/// Nanoseconds after which an identity that sleeps over a thread that is ready is reported.
const STUCK: u64 = 1_000_000_000;

/// Waits for nothing.
static TICK: AtomicU32 = AtomicU32::new(0);

/// Replacements that there were.
static REPLACED: AtomicU64 = AtomicU64::new(0);

/// How many there were.
pub(crate) fn replaced() -> u64 {
    REPLACED.load(Ordering::Relaxed)
}

static STARTED: AtomicU32 = AtomicU32::new(0);

/// The child of a fork has none.
pub(crate) fn forget() {
    STARTED.store(0, Ordering::Relaxed);
}

/// Starts the monitor, once.
pub(crate) fn start() {
    if STARTED.swap(1, Ordering::Relaxed) == 0 {
        let has_begun = sys::start_thread(watch, core::ptr::null_mut());
        if !has_begun {
            // Members that spin for each other would do so for ever.
            sys::end_program("punctual-openmp: the C library could not make the monitor's thread");
        }
    }
}

extern "C" fn watch(_: *mut c_void) -> *mut c_void {
    let mut quiet = 0;
    loop {
        if quiet >= QUIET {
            ARMED.store(0, Ordering::Relaxed);
            quiet = 0;
        }
        while ARMED.load(Ordering::Relaxed) == 0 {
            sys::futex_wait(&ARMED, 0);
        }
        sys::futex_wait_for(&TICK, 0, BETWEEN);
        quiet = if look() { 0 } else { quiet + 1 };
    }
}

/// Looks once; whether there was something to see.
fn look() -> bool {
    let runnable = seek::runnable();
    let now = sys::now();
    let lists = LISTS.lock();
    let mut still: Vec<&'static Carrier> = Vec::new();
    let mut active = 0;
    let mut stuck = false;
    for carrier in &lists.carriers {
        let is_still = note(carrier, now);
        stuck |= is_still && sleeps_over_another(carrier, now);
        if pool::is_active(carrier) && carried(carrier).is_some() {
            active += 1;
            if is_still {
                still.push(carrier);
            }
        }
    }
    drop(lists);
    if runnable == 0 {
        return stuck;
    }
    if pool::idle() > 0 {
        for root in pool::teams().filter_map(|team| team.root.get()) {
            pool::wake(Some(root), 1);
        }
        return true;
    }
    replace(&still, active, runnable);
    true
}

fn carried(carrier: &Carrier) -> Option<&'static Identity> {
    // SAFETY: identities are never unmade.
    unsafe { carrier.carries.load(Ordering::Relaxed).as_ref() }
}

/// Whether a carrier has done nothing since the last look.
fn note(carrier: &Carrier, now: u64) -> bool {
    let beat = carrier.beat.load(Ordering::Relaxed);
    let is_still = carrier.last_beat.replace(beat) == beat;
    if !is_still {
        carrier.still_since.set(now);
        carrier.was_reported.set(false);
    }
    is_still
}

/// Puts reserves in the places of carriers that are still. When all are, nobody is left to take
/// the next work: then there is one for everything that could run.
fn replace(still: &[&'static Carrier], active: usize, runnable: usize) {
    let mut started = 0;
    for carrier in still.iter().take(runnable) {
        if pool::replace(carrier) {
            started += usize::from(pool::activate_one());
        }
    }
    if still.len() >= active {
        while started < runnable && pool::activate_one() {
            started += 1;
        }
    }
    REPLACED.fetch_add(started as u64, Ordering::Relaxed);
}

/// Whether an identity sleeps in the kernel while another thread of it could go on; after a second
/// of that, it is said.
fn sleeps_over_another(carrier: &Carrier, now: u64) -> bool {
    let Some(identity) = carried(carrier) else {
        return false;
    };
    if !identity.standing.has_ready() {
        return false;
    }
    let since = now.saturating_sub(carrier.still_since.get());
    let kernel_thread = carrier.kernel_thread.load(Ordering::Relaxed);
    if since >= STUCK && !carrier.was_reported.get() && sys::sleeps(kernel_thread) {
        carrier.was_reported.set(true);
        report(identity);
    }
    true
}

fn report(identity: &Identity) {
    let body = identity.item.get().and_then(|item| item.body.get());
    let body = body.map(|body| body as *const c_void);
    let name = body
        .and_then(sys::name_of)
        .unwrap_or_else(|| "a region".to_owned());
    sys::say(&format!(
        "punctual-openmp: {name} has slept for a second on a thread whose other items could go on; \
         if it waits for a mutex that one of them holds, PUNCTUAL_OMP_TSC=strict keeps them in order"
    ));
}
