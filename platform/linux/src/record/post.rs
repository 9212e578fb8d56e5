//! Messages between the CPUs of one run, and how a sleeping CPU learns of them.
//!
//! One ring per ordered pair of CPUs, so each has one sender and one receiver; beside them are the
//! pending-wake lists: notified [`crate::Notify`]s and answered threads (`pending`). Whoever has
//! put something there sees to it that the CPU looks (`mailbox`).

use std::sync::{Arc, OnceLock};

use punctual_kern::Message;

use crate::record::light::Light;
use crate::record::notify::{self, NotifyState};
use crate::shared::atomic::AtomicU32;
use crate::shared::mailbox::{Call, Mailbox};
use crate::shared::pending::PendingList;
use crate::shared::ring::Ring;
use crate::sys::{self, Tid};

/// Messages that one pair holds; a full ring makes the sender keep its news until its next entry.
const SLOTS: usize = 256;

/// One CPU as the others see it.
#[derive(Debug)]
pub(crate) struct Mail {
    mailbox: Mailbox,
    carrier: OnceLock<Tid>,
    /// Those that others have notified.
    notified: PendingList<NotifyState>,
    /// Threads that others have answered.
    woken: PendingList<Light>,
}

impl Mail {
    /// Whether nothing has come that flags tell of: no kick, no notify, nobody answered.
    #[inline]
    pub(crate) fn is_quiet(&self) -> bool {
        !self.mailbox.has_news()
    }

    /// The lists are about to be looked at. By the CPU itself.
    pub(crate) fn hear_listed(&self) {
        self.mailbox.hear_listed();
    }
}

/// CPUs that have something pending.
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
    cpus: Vec<Arc<Mail>>,
    rings: Vec<Ring<Message, SLOTS>>,
    signal: i32,
}

impl Post {
    /// For `cpus` CPUs that are kicked by this signal.
    pub(crate) fn new(cpus: usize, signal: i32) -> Post {
        let cpu = || {
            Arc::new(Mail {
                mailbox: Mailbox::new(),
                carrier: OnceLock::new(),
                notified: PendingList::new(),
                woken: PendingList::new(),
            })
        };
        Post {
            cpus: (0..cpus).map(|_| cpu()).collect(),
            rings: (0..cpus * cpus).map(|_| Ring::new()).collect(),
            signal,
        }
    }

    /// How many CPUs there are.
    pub(crate) fn cpus(&self) -> usize {
        self.cpus.len()
    }

    /// Says which kernel thread carries a CPU.
    pub(crate) fn register(&self, cpu: usize, carrier: Tid) {
        // Registered once per run by the carrier itself.
        let _ = self.cpus[cpu].carrier.set(carrier);
    }

    /// The kernel thread that carries a CPU.
    pub(crate) fn carrier(&self, cpu: usize) -> Option<Tid> {
        self.cpus[cpu].carrier.get().copied()
    }

    fn ring(&self, from: usize, to: usize) -> &Ring<Message, SLOTS> {
        &self.rings[from * self.cpus.len() + to]
    }

    /// Sends; `false` when the ring is full. Called by CPU `from` only.
    #[must_use]
    pub(crate) fn send(&self, from: usize, message: Message) -> bool {
        let to = message.to.index();
        if to >= self.cpus.len() {
            return true;
        }
        let sent = self.ring(from, to).push(message);
        self.kick(to);
        sent
    }

    /// The next message for CPU `to`. Called by it only.
    pub(crate) fn receive(&self, to: usize) -> Option<Message> {
        (0..self.cpus.len()).find_map(|from| self.ring(from, to).pop())
    }

    fn has_mail(&self, to: usize) -> bool {
        let has_message = (0..self.cpus.len()).any(|from| !self.ring(from, to).is_empty());
        has_message || !self.cpus[to].notified.is_empty() || !self.cpus[to].woken.is_empty()
    }

    /// The threads of a CPU that others have answered.
    #[inline]
    pub(crate) fn woken(&self, cpu: usize) -> &PendingList<Light> {
        &self.cpus[cpu].woken
    }

    /// A thread of CPU `cpu` goes on: with the lock of the monitor held in which it was answered.
    pub(crate) fn wake(&self, cpu: usize, light: &Light) {
        if light.wait_node.link.announce() {
            // SAFETY: records outlive the run (INV-L1 of `light`), and so what is on the list.
            unsafe { self.cpus[cpu].woken.put(light) };
            self.cpus[cpu].mailbox.note_listed();
        }
    }

    /// Puts a notification on the list of a CPU.
    ///
    /// # Safety
    /// It has been announced, and lives until it has been taken off.
    pub(crate) unsafe fn notify(&self, cpu: usize, state: *const NotifyState) {
        // SAFETY: as the caller vouches.
        unsafe { self.cpus[cpu].notified.put(state) };
        self.cpus[cpu].mailbox.note_listed();
    }

    /// Has CPUs look at their lists. O(CPUs) when there are any.
    #[inline]
    pub(crate) fn kick_all(&self, kicks: Kicks) {
        if kicks == Kicks::NONE {
            return;
        }
        for cpu in 0..self.cpus.len() {
            if let Some(soon) = kicks.of(cpu) {
                self.call_on(cpu, soon);
            }
        }
    }

    /// The pending-wake list of a CPU: what has been notified.
    pub(crate) fn notified(&self, cpu: usize) -> &PendingList<NotifyState> {
        &self.cpus[cpu].notified
    }

    /// After the run: what nobody has heard holds on to this post no longer.
    pub(crate) fn forget_notified(&self) {
        self.cpus
            .iter()
            .for_each(|cpu| notify::forget(&cpu.notified));
    }

    /// Has a CPU look at its rings soon.
    pub(crate) fn kick(&self, to: usize) {
        self.call_on(to, true);
    }

    /// Has a CPU look at its rings; one that executes a thread, only if it is to be soon.
    fn call_on(&self, to: usize, soon: bool) {
        let cpu = &self.cpus[to];
        match cpu.mailbox.kick(soon) {
            Call::Nothing => {}
            Call::Wake => sys::futex_wake(cpu.mailbox.word()),
            Call::Signal => {
                if let Some(&carrier) = cpu.carrier.get() {
                    sys::signal_thread(carrier, self.signal);
                }
            }
        }
    }

    /// Says that CPU `cpu` executes a thread from now on.
    pub(crate) fn executes(&self, cpu: usize) {
        self.cpus[cpu].mailbox.executes();
    }

    /// Says that CPU `cpu` looks at its rings all the time from now on.
    pub(crate) fn polls(&self, cpu: usize) {
        self.cpus[cpu].mailbox.polls();
    }

    /// Whether somebody has news for a CPU that runs.
    #[inline]
    pub(crate) fn is_signalled(&self, cpu: usize) -> bool {
        self.cpus[cpu].mailbox.is_signalled()
    }

    /// The mail of a CPU.
    pub(crate) fn mail(&self, cpu: usize) -> Arc<Mail> {
        Arc::clone(&self.cpus[cpu])
    }

    /// Others may send a kick by signal again. Called before the rings are read.
    pub(crate) fn acknowledge(&self, cpu: usize) {
        self.cpus[cpu].mailbox.acknowledge();
    }

    /// Sleeps at most `ns`, or until the next kick, or not at all when there is mail. `wait` sleeps
    /// while a word has a value, at most so many nanoseconds; it may return early.
    pub(crate) fn sleep(&self, cpu: usize, ns: u64, wait: impl FnOnce(&AtomicU32, u32, u64)) {
        let mailbox = &self.cpus[cpu].mailbox;
        mailbox.sleep(|| self.has_mail(cpu), |word, seen| wait(word, seen, ns));
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
        post.polls(1);
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
        post.polls(1);
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
