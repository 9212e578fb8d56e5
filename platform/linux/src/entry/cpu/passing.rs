//! The way of a yield: from one light thread to the next of its equals.
//!
//! Most switches of a busy CPU are this, and nothing of it depends on what else can be due. So it
//! has a function of its own, whose values stay in registers; whatever is different from that, the
//! ways of all events take, as if this had not been tried.

use punctual_kern::{Event, Next, Passed, Policy, Sink};
use punctual_model::Instant;

use super::{Core, Counting, Cpu, arm_for, enter};
use crate::entry::switch::{switch_between, switch_here};
use crate::record::light::Light;
use crate::record::per_cpu::PerCpu;

/// What has become of a yield.
pub(super) enum Yielded {
    /// From this light thread to that one.
    Passed(*const Light, *const Light),
    /// This one runs (null: the carrier).
    Concluded(*const Light),
    /// It is another yield, and nothing has happened.
    Otherwise,
}

/// [`enter`] for [`Event::Yield`].
///
/// # Safety
/// As for [`super::decide`].
pub(super) unsafe fn give_way<P: Policy, S: Sink>(host: *const PerCpu) {
    // SAFETY: as in `decide`; the borrows end before the switch.
    let yielded = unsafe {
        let cpu = &*host.cast::<Cpu<P, S>>();
        (*cpu.core.get()).pass_on(&cpu.host, cpu.host.clock().now())
    };
    match yielded {
        // SAFETY: gate closed; the target is another thread of this host that has been started; the
        // borrows above have ended.
        Yielded::Passed(from, to) => unsafe { switch_between(host, from, to) },
        // SAFETY: as the caller vouches.
        _ => unsafe { give_way_otherwise::<P, S>(host, yielded) },
    }
}

/// # Safety
/// As for [`super::decide`].
#[cold]
#[inline(never)]
unsafe fn give_way_otherwise<P: Policy, S: Sink>(host: *const PerCpu, yielded: Yielded) {
    match yielded {
        // SAFETY: as in `give_way`; whoever passes on has no group that would stand down.
        Yielded::Concluded(target) => unsafe { switch_here(host, target) },
        // SAFETY: as the caller vouches.
        _ => unsafe { enter::<P, S>(host, Event::Yield) },
    }
}

impl<P: Policy, S: Sink> Core<P, S> {
    /// A yield, if it is a matter of order alone and there is nothing else to look into.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn pass_on(&mut self, host: &PerCpu, now: Instant) -> Yielded {
        let Some((light, executed)) = self.calm_interval(host, now, &Event::Yield) else {
            return Yielded::Otherwise;
        };
        let mut sink = Counting {
            sink: &mut self.sink,
            tally: &mut self.tally,
            yields: true,
        };
        let passed = self.shard.pass_on_calmly(now, &mut sink);
        let Some(Passed { next, arm, stamp }) = passed else {
            return Yielded::Otherwise;
        };
        debug_assert!(!self.shard.has_message(), "a yield has no news for others");
        host.book_calmly(now, light, executed);
        let chosen = self.threads.get(next.index()).copied();
        // SAFETY: records of light threads outlive the run (INV-L1 of `light`).
        let chosen = unsafe { chosen.unwrap_or(core::ptr::null()).as_ref() };
        match chosen {
            Some(chosen) if arm > now.saturating_add(host.limits.near) => {
                self.show_as(chosen, stamp);
                arm_for(host, chosen, arm.min(self.calm_until), now);
                Yielded::Passed(light, chosen)
            }
            _ => {
                let next = Next::Thread(next);
                Yielded::Concluded(self.conclude_uncalmly(host, now, next, Some(arm)))
            }
        }
    }
}
