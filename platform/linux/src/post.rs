//! Messages between the CPUs of one run, and how a sleeping CPU learns of them.
//!
//! One ring per ordered pair of CPUs, so each has one writer and one reader. A CPU that sleeps says
//! so before it looks at its rings for the last time; a sender looks at that word after it has
//! written. One of the two always sees the other (both orders are sequentially consistent).

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, fence};
use std::sync::OnceLock;

use punctual_kern::Message;

use crate::bell::Rung;
use crate::between::Called;
use crate::light::Light;
use crate::sys::{self, Tid};

/// Messages that one pair holds; a full ring makes the sender keep its news until its next entry.
const SLOTS: usize = 256;

/// What a CPU does, for those who have news for it.
pub(crate) mod activity {
    /// It executes a thread: only a signal reaches it before its next entry.
    pub(crate) const RUNNING: u32 = 0;
    /// It looks at its rings all the time.
    pub(crate) const POLLING: u32 = 1;
    /// It sleeps on its word.
    pub(crate) const SLEEPING: u32 = 2;
}

/// Single writer, single reader.
#[derive(Debug)]
#[repr(align(128))]
struct Ring {
    /// Written by the sender.
    written: AtomicUsize,
    /// Written by the receiver.
    read: AtomicUsize,
    slots: [UnsafeCell<MaybeUninit<Message>>; SLOTS],
}

// SAFETY: a slot is written by the only sender before `written` covers it, and read by the only
// receiver before `read` releases it; the two counters order these accesses.
unsafe impl Sync for Ring {}

impl Ring {
    fn new() -> Ring {
        Ring {
            written: AtomicUsize::new(0),
            read: AtomicUsize::new(0),
            slots: [const { UnsafeCell::new(MaybeUninit::uninit()) }; SLOTS],
        }
    }

    /// Called by the sender only.
    fn push(&self, message: Message) -> bool {
        let written = self.written.load(Ordering::Relaxed);
        if written.wrapping_sub(self.read.load(Ordering::Acquire)) == SLOTS {
            return false;
        }
        // SAFETY: the slot is free (just checked) and this is the only writer.
        unsafe { (*self.slots[written % SLOTS].get()).write(message) };
        self.written
            .store(written.wrapping_add(1), Ordering::Release);
        true
    }

    /// Called by the receiver only.
    fn pop(&self) -> Option<Message> {
        let read = self.read.load(Ordering::Relaxed);
        if self.written.load(Ordering::Acquire) == read {
            return None;
        }
        // SAFETY: the slot was written before `written` covered it, and this is the only reader.
        let message = unsafe { (*self.slots[read % SLOTS].get()).assume_init() };
        self.read.store(read.wrapping_add(1), Ordering::Release);
        Some(message)
    }

    fn is_empty(&self) -> bool {
        self.written.load(Ordering::SeqCst) == self.read.load(Ordering::Relaxed)
    }
}

/// One CPU as the others see it.
#[derive(Debug)]
#[repr(align(128))]
struct Mailbox {
    /// One of [`activity`].
    activity: AtomicU32,
    /// Changes with every kick; the futex a CPU sleeps on.
    kicks: AtomicU32,
    /// A kick by signal is on its way.
    signalled: AtomicBool,
    carrier: OnceLock<Tid>,
    /// Bells that others have rung.
    rung: Rung,
    /// Threads that others have answered.
    called: Called,
}

/// CPUs to be told of news.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Kicks {
    /// Those that are to look soon, and those that need not be interrupted: a bit for each; the
    /// last stands for all from there on.
    soon: u64,
    idle: u64,
}

impl Kicks {
    pub(crate) const NONE: Kicks = Kicks { soon: 0, idle: 0 };

    pub(crate) fn add(&mut self, cpu: usize, soon: bool) {
        let bit = 1 << cpu.min(63);
        match soon {
            true => self.soon |= bit,
            false => self.idle |= bit,
        }
    }

    /// Whether a CPU is to be told, and whether soon.
    fn of(self, cpu: usize) -> Option<bool> {
        let bit = 1 << cpu.min(63);
        let soon = self.soon & bit != 0;
        (soon || self.idle & bit != 0).then_some(soon)
    }
}

/// Everything that the CPUs of one run share.
#[derive(Debug)]
pub(crate) struct Post {
    boxes: Vec<Mailbox>,
    rings: Vec<Ring>,
    signal: i32,
}

impl Post {
    /// For `cpus` CPUs that are kicked by this signal.
    pub(crate) fn new(cpus: usize, signal: i32) -> Post {
        let mailbox = || Mailbox {
            activity: AtomicU32::new(activity::RUNNING),
            kicks: AtomicU32::new(0),
            signalled: AtomicBool::new(false),
            carrier: OnceLock::new(),
            rung: Rung::new(),
            called: Called::new(),
        };
        Post {
            boxes: (0..cpus).map(|_| mailbox()).collect(),
            rings: (0..cpus * cpus).map(|_| Ring::new()).collect(),
            signal,
        }
    }

    /// Says which kernel thread carries a CPU.
    pub(crate) fn register(&self, cpu: usize, carrier: Tid) {
        // Registered once per run by the carrier itself.
        let _ = self.boxes[cpu].carrier.set(carrier);
    }

    /// The kernel thread that carries a CPU.
    pub(crate) fn carrier(&self, cpu: usize) -> Option<Tid> {
        self.boxes[cpu].carrier.get().copied()
    }

    fn ring(&self, from: usize, to: usize) -> &Ring {
        &self.rings[from * self.boxes.len() + to]
    }

    /// Sends; `false` when the ring is full. Called by CPU `from` only.
    #[must_use]
    pub(crate) fn send(&self, from: usize, message: Message) -> bool {
        let to = message.to.index();
        if to >= self.boxes.len() {
            return true;
        }
        let sent = self.ring(from, to).push(message);
        self.kick(to);
        sent
    }

    /// The next message for CPU `to`. Called by it only.
    pub(crate) fn receive(&self, to: usize) -> Option<Message> {
        (0..self.boxes.len()).find_map(|from| self.ring(from, to).pop())
    }

    fn has_mail(&self, to: usize) -> bool {
        let has_message = (0..self.boxes.len()).any(|from| !self.ring(from, to).is_empty());
        has_message || !self.boxes[to].rung.is_empty() || !self.boxes[to].called.is_empty()
    }

    /// The threads of a CPU that others have answered.
    #[inline]
    pub(crate) fn called(&self, cpu: usize) -> &Called {
        &self.boxes[cpu].called
    }

    /// A thread of CPU `cpu` goes on: in a turn of the monitor in which it was answered.
    pub(crate) fn call(&self, cpu: usize, light: &Light) {
        self.boxes[cpu].called.put(light);
    }

    /// Has CPUs look at their lists. O(CPUs) when there are any.
    #[inline]
    pub(crate) fn kick_all(&self, kicks: Kicks) {
        if kicks == Kicks::NONE {
            return;
        }
        for cpu in 0..self.boxes.len() {
            match kicks.of(cpu) {
                Some(true) => self.kick(cpu),
                Some(false) => self.nudge(cpu),
                None => {}
            }
        }
    }

    /// Has a CPU look at its rings if it sleeps; one that runs is not interrupted.
    fn nudge(&self, to: usize) {
        let mailbox = &self.boxes[to];
        fence(Ordering::SeqCst);
        if mailbox.activity.load(Ordering::SeqCst) == activity::SLEEPING {
            mailbox.kicks.fetch_add(1, Ordering::SeqCst);
            sys::futex_wake(&mailbox.kicks);
        }
    }

    /// The bells of a CPU that have been rung.
    pub(crate) fn rung(&self, cpu: usize) -> &Rung {
        &self.boxes[cpu].rung
    }

    /// After the run: what nobody has heard holds on to this post no longer.
    pub(crate) fn forget_bells(&self) {
        self.boxes.iter().for_each(|mailbox| mailbox.rung.clear());
    }

    /// Has a CPU look at its rings soon.
    pub(crate) fn kick(&self, to: usize) {
        let mailbox = &self.boxes[to];
        fence(Ordering::SeqCst);
        match mailbox.activity.load(Ordering::SeqCst) {
            activity::SLEEPING => {
                mailbox.kicks.fetch_add(1, Ordering::SeqCst);
                sys::futex_wake(&mailbox.kicks);
            }
            activity::RUNNING if !mailbox.signalled.swap(true, Ordering::SeqCst) => {
                if let Some(&carrier) = mailbox.carrier.get() {
                    sys::signal_thread(carrier, self.signal);
                }
            }
            _ => {}
        }
    }

    /// Says what CPU `cpu` does from now on.
    pub(crate) fn set_activity(&self, cpu: usize, what: u32) {
        self.boxes[cpu].activity.store(what, Ordering::SeqCst);
    }

    /// Whether somebody has news for a CPU that runs.
    #[inline]
    pub(crate) fn is_signalled(&self, cpu: usize) -> bool {
        self.boxes[cpu].signalled.load(Ordering::Relaxed)
    }

    /// Others may send a kick by signal again. Called before the rings are read.
    pub(crate) fn acknowledge(&self, cpu: usize) {
        self.boxes[cpu].signalled.store(false, Ordering::SeqCst);
    }

    /// Sleeps at most `ns`, or until the next kick, or not at all when there is mail. `wait` sleeps
    /// while a word has a value, at most so many nanoseconds; it may return early.
    pub(crate) fn sleep(&self, cpu: usize, ns: u64, wait: impl FnOnce(&AtomicU32, u32, u64)) {
        let mailbox = &self.boxes[cpu];
        let seen = mailbox.kicks.load(Ordering::SeqCst);
        mailbox.activity.store(activity::SLEEPING, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if !self.has_mail(cpu) {
            wait(&mailbox.kicks, seen, ns);
        }
        mailbox.activity.store(activity::POLLING, Ordering::SeqCst);
    }

    /// Whether a message waits for CPU `cpu`.
    pub(crate) fn waits(&self, cpu: usize) -> bool {
        self.has_mail(cpu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_model::CpuId;

    fn news(to: u16, frontier: u64) -> Message {
        Message {
            to: CpuId(to),
            slot: 0,
            frontier,
        }
    }

    #[test]
    fn a_full_ring_refuses_and_loses_nothing() {
        let post = Post::new(2, 0);
        post.set_activity(1, activity::POLLING);
        let sent = (0..).take_while(|&n| post.send(0, news(1, n))).count();
        assert_eq!(sent, SLOTS);
        let received: Vec<u64> = core::iter::from_fn(|| post.receive(1))
            .map(|m| m.frontier)
            .collect();
        assert_eq!(received, (0..SLOTS as u64).collect::<Vec<_>>());
        assert!(!post.waits(1));
    }

    #[test]
    fn a_sleeper_is_woken_by_mail_however_the_two_fall_together() {
        let post = Post::new(2, 0);
        post.set_activity(1, activity::POLLING);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for n in 0..20_000 {
                    while !post.send(0, news(1, n)) {
                        std::thread::yield_now();
                    }
                }
            });
            let mut expected = 0;
            while expected < 20_000 {
                // An hour: a lost kick would hang this test.
                post.sleep(1, 3_600_000_000_000, sys::futex_wait);
                while let Some(message) = post.receive(1) {
                    assert_eq!(message.frontier, expected);
                    expected += 1;
                }
            }
        });
    }
}
