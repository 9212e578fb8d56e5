//! The ring through which the light threads of one CPU do what would block.
//!
//! One ring per CPU, made by its carrier and used on that kernel thread alone, with the gate
//! closed. The kernel finishes operations only when it is asked to (`DEFER_TASKRUN`): so nothing of
//! it runs between two instructions of a thread, and whether there is something to finish is one
//! load of a flag (`TASKRUN_FLAG`). Both need Linux 6.1.
//!
//! INV-R1: an [`Operation`] and the memory that its entry names outlive the operation. Whoever
//! started it waits for its result before it returns; a thread that is abandoned in between at the
//! end of a run is leaked with its stack, by the platform.

use core::cell::Cell;
use core::fmt;
use core::sync::atomic::AtomicU32;
use std::collections::VecDeque;
use std::io;

use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};

use crate::sys::{self, calls};

/// Entries of the submission queue. Each start submits at once, so few are enough.
const ENTRIES: u32 = 64;
/// Operations that may be outstanding on one CPU; a call beyond that is made directly.
const MOST: u32 = 4_096;

/// The answer of an entry that nobody waits for.
const NOBODY: u64 = 0;
/// The answer of the entry that waits for a kick by another CPU.
const KICK: u64 = 1;

/// Which thread an answer is for, in the platform's own words: the address of its record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Waiter(pub *const ());

/// What a light thread waits for. Lives on its stack.
#[derive(Debug, Default)]
pub struct Operation {
    result: Cell<Option<i32>>,
    /// Who is to be woken; `None`: nobody blocks for it (yet).
    waiter: Cell<Option<Waiter>>,
}

impl Operation {
    /// Not begun.
    pub const fn new() -> Operation {
        Operation {
            result: Cell::new(None),
            waiter: Cell::new(None),
        }
    }

    /// What the kernel answered: a count, or a negated error.
    pub fn result(&self) -> Option<i32> {
        self.result.get()
    }

    /// The thread blocks for it from now on.
    pub fn wakes(&self, waiter: Waiter) {
        self.waiter.set(Some(waiter));
    }

    /// Nobody blocks for it any more.
    pub(crate) fn wakes_nobody(&self) {
        self.waiter.set(None);
    }
}

/// The ring of one CPU.
pub struct Ring {
    ring: IoUring,
    outstanding: u32,
    /// Threads whose operations are over, and that have not been woken yet.
    woken: VecDeque<Waiter>,
    awaits_kick: bool,
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring").finish_non_exhaustive()
    }
}

impl Ring {
    /// A ring for the calling kernel thread alone, which is pinned to this CPU.
    ///
    /// # Errors
    /// When the kernel has no such rings, or refuses one.
    pub fn try_new(cpu: u32) -> io::Result<Ring> {
        let mut builder = IoUring::builder();
        builder.setup_single_issuer().setup_defer_taskrun();
        let ring = builder.setup_taskrun_flag().build(ENTRIES)?;
        // What the kernel can only do by waiting it does in threads of its own: not on this CPU,
        // where they would have to wait for it. A refusal leaves them where they are.
        if let Some(others) = calls::other_cpus(cpu) {
            let _ = ring.submitter().register_iowq_aff(&others);
        }
        Ok(Ring {
            ring,
            outstanding: 0,
            // Each waits for one operation, so this never grows on a scheduling path.
            woken: VecDeque::with_capacity(MOST as usize),
            awaits_kick: false,
        })
    }

    /// Whether any operation is outstanding.
    #[inline]
    pub fn is_busy(&self) -> bool {
        self.outstanding > 0
    }

    /// Starts an operation; `false`: there are too many, or the kernel refused. Operations that
    /// need not wait are over when this returns.
    ///
    /// # Safety
    /// INV-R1 holds for the entry and the operation.
    #[must_use]
    pub unsafe fn start(&mut self, entry: squeue::Entry, operation: &Operation) -> bool {
        let address = (&raw const *operation).expose_provenance() as u64;
        // SAFETY: as the caller vouches.
        self.outstanding < MOST && unsafe { self.push(entry.user_data(address)) } && {
            self.outstanding += 1;
            true
        }
    }

    /// Asks the kernel to give up an operation; it will be over soon, with whatever result.
    pub(crate) fn cancel(&mut self, operation: &Operation) {
        let address = (&raw const *operation).expose_provenance() as u64;
        let entry = opcode::AsyncCancel::new(address).build().user_data(NOBODY);
        // A refusal means that the kernel has no memory: the operation is waited for instead.
        // SAFETY: the entry names no memory.
        let _ = unsafe { self.push(entry) };
    }

    /// # Safety
    /// The memory that the entry names is valid until its answer has come.
    unsafe fn push(&mut self, entry: squeue::Entry) -> bool {
        // SAFETY: as the caller vouches; each entry is submitted below, so there is room.
        if unsafe { self.ring.submission().push(&entry) }.is_err() {
            return false;
        }
        loop {
            match self.ring.submit() {
                Ok(_) => return true,
                Err(error) if error.raw_os_error() == Some(sys::EINTR) => {}
                // It stays in the queue: the next submission takes it along, so it must count.
                Err(_) => return true,
            }
        }
    }

    /// Whether an answer has come, or the kernel has one to finish.
    pub fn has_answers(&mut self) -> bool {
        !self.woken.is_empty()
            || self.is_busy()
                && (self.ring.submission().taskrun() || !self.ring.completion().is_empty())
    }

    /// Takes the answers that have come into their operations.
    pub(crate) fn collect(&mut self) {
        if self.ring.submission().taskrun() {
            // The kernel has something to finish. Nothing is waited for; an interruption or lack
            // of memory leaves the flag set, for the next time.
            let _ = self.ring.submit();
        }
        for answer in self.ring.completion() {
            match answer.user_data() {
                NOBODY => {}
                KICK => self.awaits_kick = false,
                address => {
                    self.outstanding -= 1;
                    let address = usize::try_from(address).unwrap_or(0);
                    let operation: *const Operation = core::ptr::with_exposed_provenance(address);
                    // SAFETY: an operation outlives its answer (INV-R1).
                    let operation = unsafe { &*operation };
                    operation.result.set(Some(answer.result()));
                    self.woken.extend(operation.waiter.get());
                }
            }
        }
    }

    /// The next thread that is to be woken, because what it blocks for is over.
    #[inline]
    pub fn next_woken(&mut self) -> Option<Waiter> {
        if self.is_busy() {
            self.collect();
        }
        self.woken.pop_front()
    }

    /// Waits, without the scheduler, until an operation is over that has been cancelled: at the end
    /// of a run.
    pub(crate) fn drain(&mut self, operation: &Operation) {
        while operation.result().is_none() {
            // An interruption is no reason to give up: see INV-R1.
            let _ = self.ring.submit_and_wait(1);
            self.collect();
        }
    }

    /// Sleeps until an operation is over, somebody kicks, or `ns` have passed.
    pub fn sleep(&mut self, kicks: &AtomicU32, seen: u32, ns: u64) {
        const SIZE_32_BITS_AND_PRIVATE: u32 = 2 | 128;
        const ANYBODY: u64 = u32::MAX as u64;
        if !self.awaits_kick {
            let word = kicks.as_ptr().cast_const();
            let seen = u64::from(seen);
            let entry = opcode::FutexWait::new(word, seen, ANYBODY, SIZE_32_BITS_AND_PRIVATE);
            // SAFETY: the word outlives the ring, which belongs to a host of the same run.
            self.awaits_kick = unsafe { self.push(entry.build().user_data(KICK)) };
        }
        let time = Timespec::new()
            .sec(ns / 1_000_000_000)
            .nsec(u32::try_from(ns % 1_000_000_000).unwrap_or(0));
        // Interruptions and timeouts end the sleep, and so does everything else.
        let _ = self
            .ring
            .submitter()
            .submit_with_args(1, &SubmitArgs::new().timespec(&time));
    }
}
