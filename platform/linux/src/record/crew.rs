//! Kernel-backed threads: threads of the kernel that run in place of a light thread.
//!
//! ```text
//!   the core lets the light thread run   -> its crew is raised, the carrier sleeps in the kernel
//!   the timer signal wakes the carrier   -> an entry, inside the signal
//!   the core lets somebody else run      -> the crew is lowered, then the switch
//! ```
//!
//! Raised means SCHED_FIFO just below the carrier, so that the crew runs whenever the carrier
//! sleeps; lowered means SCHED_IDLE: it gets what is left when nobody else wants the CPU. Where a
//! thread would not come back from there, as an ordinary user's would not, it means an ordinary
//! thread, and the run says so. Nothing asks the crew to co-operate, so whole programs can be one
//! (`command` in a file). User space cannot see it block: it is scheduled as always ready, and
//! charged so.

use core::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::io;
use std::sync::mpsc::{RecvError, channel};
use std::thread::Builder;

use punctual_kern::Event;

use crate::host::Host;
use crate::job::{Body, promise, rest};
use crate::light::Light;
use crate::local::current_light;
use crate::sys::current_thread;
use crate::sys::program::{Standing, hold_signals, nap, number, set_standing, thread};
use crate::sys::set_mask;

/// More threads of one crew than this stay at the standing that they have.
pub(crate) const MOST: usize = 256;
/// A crew that is not interrupted is looked at this often.
const LOOK_NS: u64 = 20_000_000;

/// The kernel threads that run in place of one light thread.
#[derive(Debug)]
pub(crate) struct Crew {
    /// Their numbers; 0: no member. Written by whoever looks for them.
    members: [AtomicI32; MOST],
    /// SCHED_FIFO priority when raised; 0 once that has been refused.
    priority: AtomicI32,
    /// What the members are when it is not their turn.
    low: Standing,
    /// There is nothing left to run.
    over: AtomicBool,
    /// Its light thread will not run again: members that look are to end.
    dismissed: AtomicBool,
}

impl Crew {
    /// Nobody yet; to be raised to this priority of SCHED_FIFO, and lowered to `low`.
    pub(crate) fn new(priority: i32, low: Standing) -> Crew {
        Crew {
            members: [const { AtomicI32::new(0) }; MOST],
            priority: AtomicI32::new(priority),
            low,
            over: AtomicBool::new(false),
            dismissed: AtomicBool::new(false),
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
    pub(crate) fn enlist(&self, member: i32) -> bool {
        if !self.add(member) {
            return false;
        }
        self.put(member, self.low);
        let stays = !self.over.load(Ordering::SeqCst) && self.has(member);
        if !stays {
            self.discharge(member);
        }
        stays
    }

    /// One member less, an ordinary thread from now on. Any thread.
    pub(crate) fn discharge(&self, member: i32) {
        for place in &self.members {
            let order = Ordering::SeqCst;
            let _ = place.compare_exchange(member, 0, order, order);
        }
        set_standing(thread(member), Standing::Ordinary);
    }

    /// No members; all but `last` are ordinary threads from now on. Any thread.
    pub(crate) fn disband(&self, last: i32) {
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

    fn has(&self, member: i32) -> bool {
        let mut places = self.members.iter();
        places.any(|place| place.load(Ordering::SeqCst) == member)
    }

    /// Nothing is left to run.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::SeqCst);
    }

    /// Runs in place of the calling light thread, from `begin` until there is nothing left to run.
    /// `ended` is closed at its other end then; without it, the end is noticed when somebody looks.
    pub(crate) fn stand_in(&'static self, light: &Light, begin: impl FnOnce(), ended: Option<i32>) {
        // First, so that whoever has begun is told of the end of the run.
        light.crew.set(Some(self));
        // Its crew comes to no checkpoint of this thread's.
        promise(light, 0);
        if self.low != Standing::Idle {
            // SAFETY: hosts outlive the light threads that run on them.
            let shared = unsafe { &(*light.host()).shared };
            shared.crews_stay.store(true, Ordering::Relaxed);
        }
        begin();
        // Preempted between the two calls below, it would sleep with its crew lowered.
        let open = hold_signals();
        while !self.over.load(Ordering::Acquire) {
            if light.seat.cancelled.get() {
                self.dismiss();
            }
            self.raise();
            nap(LOOK_NS, ended, open);
        }
        set_mask(open);
        light.crew.set(None);
    }

    fn raise(&self) {
        for member in self.members() {
            let priority = self.priority.load(Ordering::Relaxed);
            if priority > 0 && self.put(member, Standing::Fifo(priority)) {
                continue;
            }
            // Refused, or gone. Without the privilege the crew is as urgent as everybody.
            if self.put(member, Standing::Ordinary) {
                self.priority.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Somebody else runs now. Gate closed.
    pub(crate) fn lower(&self) {
        for member in self.members() {
            self.put(member, self.low);
        }
    }

    /// Sets the standing of a member; `false`: refused, or there is no such thread.
    fn put(&self, member: i32, standing: Standing) -> bool {
        let done = set_standing(thread(member), standing);
        // Who left the crew meanwhile may have been made an ordinary thread before the call above.
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

/// What a crew is to be when it is not its turn: the last of all, unless its threads would stay
/// that for good. The kernel lets a thread leave SCHED_IDLE only with the capability
/// `CAP_SYS_NICE` (of the first user namespace) or a limit `RLIMIT_NICE` of 20, so a thread
/// tries. On an ordinary thread.
pub(crate) fn lowest() -> io::Result<Standing> {
    let (tell, told) = channel();
    let (end, ends) = channel::<()>();
    let wait = move || {
        // Whoever waits for it below is alive.
        let _ = tell.send(number(current_thread()));
        let _: Result<(), RecvError> = ends.recv();
    };
    Builder::new()
        .name("punctual/standing".to_owned())
        .spawn(wait)?;
    let tries = thread(told.recv().map_err(io::Error::other)?);
    let returns = set_standing(tries, Standing::Idle) && set_standing(tries, Standing::Ordinary);
    // It ends when its processor has nothing else to do, if it has to; nobody waits for that.
    drop(end);
    Ok(if returns {
        Standing::Idle
    } else {
        Standing::Ordinary
    })
}

/// Whoever runs in place of the light thread that has the processor. Gate closed.
#[inline]
pub(crate) fn at_work(host: &Host) -> Option<&'static Crew> {
    // SAFETY: records of light threads outlive the run (INV-L1 of `light`).
    unsafe { host.current.get().as_ref() }?.crew.get()
}

impl Host {
    /// Lowers the crew at work, unless its light thread goes on. Gate closed.
    #[inline]
    pub(crate) fn stand_down_for(&self, target: *const Light) {
        if let Some(crew) = at_work(self)
            && self.current.get() != target
        {
            crew.lower();
        }
    }
}

/// The body of a light thread that its crew stands in for.
pub(crate) fn body(crew: &'static Crew) -> Body {
    Box::new(move |_| {
        let Some(light) = current_light() else { return };
        crew.stand_in(light, || (), None);
        loop {
            rest(Event::Block { until: None });
        }
    })
}
