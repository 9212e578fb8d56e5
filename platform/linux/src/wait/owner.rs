//! The word that says who has what one thread of a CPU has at a time.
//!
//! ```text
//!   [ birth: 16 bits ][ address of the record ........ ][ asked ]
//! ```
//!
//! Nearly always a lock is free when a thread wants it, and nobody wants it when that thread is
//! done. Then one instruction takes it and one gives it back, without the gate: one kernel thread
//! carries the CPU, and a signal comes before that instruction or behind it. All else happens in
//! critical sections of the [`Monitor`] that the others wait in. *Asked* sends the owner there when
//! it gives back; *birth* tells it from a later thread in the same record.
//!
//! INV-M3: the word is changed by threads of the monitor's CPU alone: from free to taken and back
//! by one instruction, else with the gate closed. The constructor asks for that. A fork's child has
//! a word of its own: there a guard that it inherited may write what nobody reads.

use core::sync::atomic::{AtomicUsize, Ordering};

use punctual_switch::exchange_if_on_one_processor;

use crate::record::local::current_light;
use crate::wait::monitor::Monitor;
use crate::wait::waiters::Waiters;
use crate::wait::who::Who;

const FREE: usize = 0;
const ASKED: usize = 1;

/// The owner of a thing that one thread of a CPU has at a time, while the others wait in a
/// [`Monitor`].
#[derive(Debug)]
pub struct Owner(AtomicUsize);

impl Owner {
    /// Nobody has it.
    ///
    /// # Safety
    /// One monitor alone is named to [`Owner::take`]; [`Owner::get`], [`Owner::set`] and
    /// [`Owner::ask`] are called in its critical sections; [`Owner::give_back`] by the thread that
    /// has it. Nothing of an earlier run is set (INV-M3).
    pub const unsafe fn new() -> Owner {
        Owner(AtomicUsize::new(FREE))
    }

    /// Nobody has it; it is taken and given back in critical sections only, if these keep to it
    /// ([`Owner::set`]).
    ///
    /// # Safety
    /// As for [`Owner::new`].
    pub const unsafe fn asked() -> Owner {
        Owner(AtomicUsize::new(ASKED))
    }

    /// The caller has it, if nobody had it. `false`: somebody has, or `monitor`, where others wait
    /// for it, has no section for the caller or had none yet; a section says which it is. O(1).
    #[inline(always)]
    pub fn take<S, const QUEUES: usize>(&self, monitor: &Monitor<S, QUEUES>) -> bool {
        let Some(light) = current_light() else {
            return false;
        };
        // SAFETY: the host outlives its threads; only its cells and atomics are used.
        let host = unsafe { &*light.host() };
        // Before the word is touched (INV-M3): the instruction writes in any case.
        let is_here = monitor.home.load(Ordering::Relaxed) == host.pool.home.get();
        is_here && !host.gate.is_closed() && self.replace(FREE, Who::of(light).as_owner())
    }

    /// Nobody has it. Called by its owner. `false`: nothing has happened, since somebody asked.
    /// O(1).
    #[inline(always)]
    pub fn give_back(&self) -> bool {
        let seen = self.0.load(Ordering::Relaxed);
        seen & ASKED == 0 && self.replace(seen, FREE)
    }

    #[inline(always)]
    fn replace(&self, old: usize, new: usize) -> bool {
        // SAFETY: a word of ours, which threads of one CPU alone change, as the caller of the
        // constructor vouched (INV-M3).
        unsafe { exchange_if_on_one_processor(self.0.as_ptr(), old, new) }
    }

    /// The owner, in a section of the monitor where others wait for it.
    #[inline]
    pub fn get(&self, waiters: &Waiters<'_>) -> Option<Who> {
        Who::of_owner(self.0.load(Ordering::Relaxed) & !ASKED, waiters.me())
    }

    /// `who` has it from now on, and gives it back in a section if `asked`. In such a section.
    #[inline]
    pub fn set(&self, who: Option<Who>, asked: bool) {
        let word = who.map_or(FREE, Who::as_owner);
        self.0.store(word | usize::from(asked), Ordering::Relaxed);
    }

    /// Its owner gives it back in a section. In such a section.
    #[inline]
    pub fn ask(&self) {
        let seen = self.0.load(Ordering::Relaxed);
        self.0.store(seen | ASKED, Ordering::Relaxed);
    }
}
