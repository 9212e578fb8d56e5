//! Policies from shared objects: a table of C functions for a scheduler of own time.
//!
//! The function that the file names fills a [`PolicyTable`]. Each call gets the `parameter` of that
//! table back, threads are numbers, and times are nanoseconds. A function that is absent does
//! nothing, but for `update` and `renew`, which block and wake.

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use std::path::Path;

use punctual_kern::{Attributes, Pick, Policy};
use punctual_model::{Frequency, Instant, Span, ThreadId, Work};

use super::foreign::{ForeignError, foreign_symbol};

/// The attributes of a ready thread.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PolicyAttributes {
    /// A larger number is more urgent.
    pub priority: u32,
    /// The place in the file: the last tie-break.
    pub order: u32,
    /// The absolute deadline; `u64::MAX` without one.
    pub deadline_ns: u64,
    /// The release of the job: the first tie-break.
    pub release_ns: u64,
}

/// The choice of a policy.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PolicyPick {
    /// A thread that is ready, or -1: nobody.
    pub thread: i64,
    /// The instant at which it wants to be asked again; `u64::MAX`: until something changes.
    pub until_ns: u64,
}

type OfThread = unsafe extern "C" fn(*mut c_void, u32);
type WithAttributes = unsafe extern "C" fn(*mut c_void, u32, *const PolicyAttributes);

/// The functions of a policy, as the object fills them in.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PolicyTable {
    /// The size of the table as the object knows it.
    pub size: usize,
    /// Comes back with each call.
    pub parameter: *mut c_void,
    /// A thread becomes ready. Needed.
    pub wake: Option<WithAttributes>,
    /// A thread is no longer ready. Needed.
    pub block: Option<OfThread>,
    /// The thread to run from now on. Needed.
    pub pick: Option<unsafe extern "C" fn(*mut c_void, u64) -> PolicyPick>,
    /// The attributes of a ready thread have changed.
    pub update: Option<WithAttributes>,
    /// A ready thread goes on with a new budget.
    pub renew: Option<WithAttributes>,
    /// The running thread lets its equals go first.
    pub yield_now: Option<OfThread>,
    /// A thread has executed for so many nanoseconds.
    pub charge: Option<unsafe extern "C" fn(*mut c_void, u32, u64)>,
    /// The policy is not used any more.
    pub destroy: Option<unsafe extern "C" fn(*mut c_void)>,
}

/// Fills a table for threads below a number, and returns 0; another answer is a failure.
pub type PolicyMaker = unsafe extern "C" fn(u32, *mut PolicyTable) -> c_int;

/// A policy of a shared object, loaded and not made yet.
#[derive(Clone, Copy, Debug)]
pub struct ForeignMaker {
    make: PolicyMaker,
}

/// A policy of a shared object.
#[derive(Debug)]
pub struct ForeignPolicy {
    table: PolicyTable,
    frequency: Frequency,
    /// The threads that it was told of, by index.
    known: Vec<Option<ThreadId>>,
}

// SAFETY: the parameter goes where the policy goes, and its functions are called by one thread at a
// time; an object that minds the thread breaks the contract of its header.
unsafe impl Send for ForeignPolicy {}

/// Loads the policy behind `symbol` of the shared object at `path`, which stays loaded for the rest
/// of the process.
///
/// # Errors
/// When the object cannot be loaded or has no such symbol.
pub fn foreign_policy(path: &Path, symbol: &str) -> Result<ForeignMaker, ForeignError> {
    // SAFETY: the one who names the object vouches that the function has this form.
    let make = unsafe { foreign_symbol::<PolicyMaker>(path, symbol)? };
    Ok(ForeignMaker { make })
}

impl ForeignMaker {
    /// The policies that a function of the program makes.
    ///
    /// # Safety
    /// It keeps the contract of `punctual_policy.h`: it fills the table and returns 0, or returns
    /// something else, and the functions of the table may be called with its parameter, one at a
    /// time, by any kernel thread, until the last one, `destroy`.
    pub unsafe fn of(make: PolicyMaker) -> ForeignMaker {
        ForeignMaker { make }
    }

    /// A policy for threads with an index below `threads`, whose ticks have this frequency.
    ///
    /// # Errors
    /// In words: it could not be made, or lacks a function.
    pub fn make(&self, threads: usize, frequency: Frequency) -> Result<ForeignPolicy, String> {
        let mut table = PolicyTable {
            size: 0,
            parameter: null_mut(),
            wake: None,
            block: None,
            pick: None,
            update: None,
            renew: None,
            yield_now: None,
            charge: None,
            destroy: None,
        };
        let count = u32::try_from(threads).unwrap_or(u32::MAX);
        // SAFETY: a function of this form, in an object that stays loaded; the table lives during
        // the call.
        let answer = unsafe { (self.make)(count, &raw mut table) };
        if answer != 0 {
            return Err(format!("its function answered {answer}, and 0 is success"));
        }
        if table.size != size_of::<PolicyTable>() {
            let (theirs, ours) = (table.size, size_of::<PolicyTable>());
            return Err(format!(
                "its table has {theirs} bytes, and {ours} are known"
            ));
        }
        if table.wake.is_none() || table.block.is_none() || table.pick.is_none() {
            return Err("its table lacks `wake`, `block` or `pick`".into());
        }
        Ok(ForeignPolicy {
            table,
            frequency,
            known: vec![None; threads],
        })
    }
}

impl ForeignPolicy {
    fn with_attributes(&self, call: WithAttributes, thread: ThreadId, a: &Attributes) {
        let ns = |at: Instant| match at {
            Instant::MAX => u64::MAX,
            at => self.frequency.ns_down(at.ticks()),
        };
        let attributes = PolicyAttributes {
            priority: a.priority.number(),
            order: a.order,
            deadline_ns: ns(a.absolute_deadline),
            release_ns: ns(a.release),
        };
        // SAFETY: a function of the table, with its own parameter; the attributes live during the
        // call.
        unsafe { call(self.table.parameter, number(thread), &raw const attributes) };
    }

    fn of_thread(&self, call: Option<OfThread>, thread: ThreadId) {
        if let Some(call) = call {
            // SAFETY: a function of the table, with its own parameter.
            unsafe { call(self.table.parameter, number(thread)) };
        }
    }
}

fn number(thread: ThreadId) -> u32 {
    u32::try_from(thread.index()).unwrap_or(u32::MAX)
}

impl Policy for ForeignPolicy {
    fn wake(&mut self, thread: ThreadId, attributes: &Attributes) {
        if let Some(known) = self.known.get_mut(thread.index()) {
            *known = Some(thread);
        }
        if let Some(wake) = self.table.wake {
            self.with_attributes(wake, thread, attributes);
        }
    }

    fn block(&mut self, thread: ThreadId) {
        self.of_thread(self.table.block, thread);
    }

    fn update(&mut self, thread: ThreadId, attributes: &Attributes) {
        match self.table.update {
            Some(update) => self.with_attributes(update, thread, attributes),
            None => {
                self.block(thread);
                self.wake(thread, attributes);
            }
        }
    }

    fn renew(&mut self, thread: ThreadId, attributes: &Attributes) {
        match self.table.renew {
            Some(renew) => self.with_attributes(renew, thread, attributes),
            None => {
                self.block(thread);
                self.wake(thread, attributes);
            }
        }
    }

    fn yield_now(&mut self, thread: ThreadId) {
        self.of_thread(self.table.yield_now, thread);
    }

    fn charge(&mut self, thread: ThreadId, work: Work) {
        if let Some(charge) = self.table.charge {
            let work = self.frequency.ns_down(work.ticks());
            // SAFETY: a function of the table, with its own parameter.
            unsafe { charge(self.table.parameter, number(thread), work) };
        }
    }

    /// A number that it was never told of is passed on, and is refused by name; so is one that no
    /// thread can have.
    fn pick(&mut self, now: Instant) -> Pick {
        let Some(pick) = self.table.pick else {
            return Pick::NOBODY;
        };
        let now_ns = self.frequency.ns_down(now.ticks());
        // SAFETY: a function of the table, with its own parameter.
        let PolicyPick { thread, until_ns } = unsafe { pick(self.table.parameter, now_ns) };
        let named = |index: u32| {
            let known = self.known.get(index as usize).copied().flatten();
            known.unwrap_or(ThreadId::new(index, 0))
        };
        let until = (until_ns != u64::MAX).then(|| {
            let until = Span::from_ns(until_ns);
            Instant::ZERO.saturating_add(until.ticks_up(self.frequency))
        });
        Pick {
            entity: match thread {
                -1 => None,
                thread => Some(named(u32::try_from(thread).unwrap_or(u32::MAX))),
            },
            until,
        }
    }
}

impl Drop for ForeignPolicy {
    fn drop(&mut self) {
        if let Some(destroy) = self.table.destroy.take() {
            // SAFETY: a function of the table, with its own parameter, called once and last.
            unsafe { destroy(self.table.parameter) };
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;

    unsafe extern "C" fn wake(_: *mut c_void, _: u32, _: *const PolicyAttributes) {}

    unsafe extern "C" fn block(_: *mut c_void, _: u32) {}

    /// The instant as a number, of which 10 stands for 0.
    unsafe extern "C" fn pick(_: *mut c_void, now_ns: u64) -> PolicyPick {
        PolicyPick {
            thread: now_ns.cast_signed().wrapping_sub(10),
            until_ns: u64::MAX,
        }
    }

    unsafe extern "C" fn make(_: u32, table: *mut PolicyTable) -> c_int {
        // SAFETY: the caller's table lives during the call.
        let table = unsafe { &mut *table };
        table.wake = Some(wake);
        table.block = Some(block);
        table.pick = Some(pick);
        table.size = size_of::<PolicyTable>();
        0
    }

    #[test]
    fn nobody_is_minus_one_and_other_numbers_that_no_thread_has_are_passed_on() {
        let maker = ForeignMaker { make };
        let mut policy = maker.make(4, Frequency::NANOSECONDS).unwrap();
        let mut chosen = |thread: i64| {
            let now = Instant::from_ticks((thread + 10).cast_unsigned());
            policy.pick(now).entity
        };
        let none = ThreadId::new(u32::MAX, 0);
        assert_eq!(chosen(-1), None);
        assert_eq!(chosen(3), Some(ThreadId::new(3, 0)));
        assert_eq!(chosen(77), Some(ThreadId::new(77, 0)));
        assert_eq!((chosen(-2), chosen(1 << 40)), (Some(none), Some(none)));
    }
}
