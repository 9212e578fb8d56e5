//! Kernel-backed threads: threads of the kernel that run in place of a light thread.
//!
//! ```text
//!   the core lets the light thread run   -> its group is raised, the carrier sleeps in the kernel
//!   the timer signal wakes the carrier   -> an entry, inside the signal
//!   the core lets somebody else run      -> the group is lowered, then the switch
//! ```
//!
//! Raised means SCHED_FIFO just below the carrier, so that the group runs whenever the carrier
//! sleeps; lowered means SCHED_IDLE: it gets what is left when nobody else wants the CPU. Where a
//! thread would not come back from there, as an ordinary user's would not, it means an ordinary
//! thread, and the run says so. Nothing asks the group to co-operate, so whole programs can be one
//! (`command` in a file). User space cannot see it block: it is scheduled as always ready, and
//! charged so.

use core::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::sys::program::{Standing, set_standing, thread};

/// More threads of one group than this stay at the standing that they have.
pub(crate) const MOST: usize = 256;

/// The kernel threads that run in place of one light thread.
#[derive(Debug)]
pub(crate) struct ThreadGroup {
    /// Their numbers; 0: no member. Written by whoever looks for them.
    members: [AtomicI32; MOST],
    /// SCHED_FIFO priority when raised; 0 once that has been refused.
    priority: AtomicI32,
    /// What the members are when it is not their turn.
    pub(crate) low: Standing,
    /// Lowered, it is to have nothing of its CPU's idle time.
    pub(crate) kept_out: AtomicBool,
    /// There is nothing left to run.
    pub(crate) over: AtomicBool,
    /// Its light thread will not run again: members that look are to end.
    dismissed: AtomicBool,
    /// It was raised before its light thread went on.
    ahead: AtomicBool,
}

/// All groups that were ever made, for a look at who is in one.
static GROUPS: Mutex<Vec<&'static ThreadGroup>> = Mutex::new(Vec::new());

/// Whether a thread is a member of some group. O(groups). On ordinary threads.
pub(crate) fn is_of_a_group(thread: i32) -> bool {
    let groups = GROUPS.lock().unwrap_or_else(PoisonError::into_inner);
    groups.iter().any(|group| group.has(thread))
}

impl ThreadGroup {
    /// A new one that stays for good: light threads that are abandoned in the middle of a job keep
    /// looking at it. On ordinary threads.
    pub(crate) fn to_stay(priority: i32, low: Standing) -> &'static ThreadGroup {
        let group: &'static ThreadGroup = Box::leak(Box::new(ThreadGroup::new(priority, low)));
        let mut groups = GROUPS.lock().unwrap_or_else(PoisonError::into_inner);
        groups.push(group);
        group
    }

    /// Nobody yet; to be raised to this priority of SCHED_FIFO, and lowered to `low`.
    pub(crate) fn new(priority: i32, low: Standing) -> ThreadGroup {
        ThreadGroup {
            members: [const { AtomicI32::new(0) }; MOST],
            priority: AtomicI32::new(priority),
            low,
            kept_out: AtomicBool::new(false),
            over: AtomicBool::new(false),
            dismissed: AtomicBool::new(false),
            ahead: AtomicBool::new(false),
        }
    }

    /// To be raised to this priority of SCHED_FIFO; none when it is not above 0.
    pub(crate) fn set_priority(&self, priority: i32) {
        self.priority.store(priority.max(0), Ordering::Relaxed);
    }

    /// One more member, if there is room. Any thread.
    pub(crate) fn add(&self, member: i32) -> bool {
        let order = Ordering::SeqCst;
        let mut places = self.members.iter();
        places.any(|place| place.compare_exchange(0, member, order, order).is_ok())
    }

    /// One more member, lowered until its next turn, if there is room and something to run. Any
    /// thread.
    pub(crate) fn join(&self, member: i32) -> bool {
        if !self.add(member) {
            return false;
        }
        self.put(member, self.low);
        let stays = !self.over.load(Ordering::SeqCst) && self.has(member);
        if !stays {
            self.remove(member);
        }
        stays
    }

    /// One member less, an ordinary thread from now on. Any thread.
    pub(crate) fn remove(&self, member: i32) {
        for place in &self.members {
            let order = Ordering::SeqCst;
            let _ = place.compare_exchange(member, 0, order, order);
        }
        set_standing(thread(member), Standing::Ordinary);
    }

    /// No members; all but `last` are ordinary threads from now on. Any thread.
    pub(crate) fn clear(&self, last: i32) {
        for place in &self.members {
            let member = place.swap(0, Ordering::SeqCst);
            if member != 0 && member != last {
                set_standing(thread(member), Standing::Ordinary);
            }
        }
    }

    /// Tells the members that look to end.
    pub(crate) fn dismiss(&self) {
        self.dismissed.store(true, Ordering::Relaxed);
    }

    /// Whether it was dismissed.
    pub(crate) fn is_dismissed(&self) -> bool {
        self.dismissed.load(Ordering::Relaxed)
    }

    /// These are the members now. Who is new is lowered or raised at the next switch; who stays
    /// keeps its place. One thread at a time.
    pub(crate) fn set_members(&self, members: &[i32]) {
        for place in &self.members {
            if !members.contains(&place.load(Ordering::Relaxed)) {
                place.store(0, Ordering::SeqCst);
            }
        }
        for &member in members {
            if !self.has(member) {
                self.add(member);
            }
        }
    }

    /// Whether it has a member of this number. O(places).
    pub(crate) fn has(&self, member: i32) -> bool {
        let mut places = self.members.iter();
        places.any(|place| place.load(Ordering::SeqCst) == member)
    }

    /// Nothing is left to run.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::SeqCst);
    }

    /// Runs from now on. On the carrier, in the kernel.
    pub(crate) fn raise(&self) {
        for member in self.members() {
            let priority = self.priority.load(Ordering::Relaxed);
            if priority > 0 && self.put(member, Standing::Fifo(priority)) {
                continue;
            }
            // Refused, or gone. Without the privilege the group is as urgent as everybody.
            if self.put(member, Standing::Ordinary) {
                self.priority.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Its light thread goes on next, and the carrier is above it until then. On the carrier.
    pub(crate) fn raise_ahead(&self) {
        self.raise();
        self.ahead.store(true, Ordering::Relaxed);
    }

    /// Whether it was, since the last time that this was asked.
    pub(crate) fn was_raised_ahead(&self) -> bool {
        self.ahead.swap(false, Ordering::Relaxed)
    }

    /// Somebody else runs now. Gate closed.
    pub(crate) fn lower(&self) {
        self.ahead.store(false, Ordering::Relaxed);
        for member in self.members() {
            self.put(member, self.low);
        }
    }

    /// Sets the standing of a member; `false`: refused, or there is no such thread.
    fn put(&self, member: i32, standing: Standing) -> bool {
        let done = set_standing(thread(member), standing);
        // Who left the group meanwhile may have been made an ordinary thread before the call above.
        if done && !self.has(member) {
            set_standing(thread(member), Standing::Ordinary);
        }
        done
    }

    fn members(&self) -> impl Iterator<Item = i32> {
        let members = self.members.iter().map(|m| m.load(Ordering::Relaxed));
        members.filter(|&member| member != 0)
    }
}
