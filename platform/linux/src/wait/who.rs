//! Threads of this CPU, as those that share a monitor know them.

use punctual_kern::Event;
use punctual_model::ThreadId;

use crate::entry::request::{enter, open_gate};
use crate::record::light::Light;
use crate::record::local::current_light;
use crate::record::per_cpu::PerCpu;

/// Where the generation stands in the word of an owner; below it is the address.
const BIRTH: u32 = 48;

/// A thread of this CPU, as monitors know it. It is told from a later one in the same place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Who {
    light: *const Light,
    generation: u64,
    home: u64,
}

// SAFETY: an address that is followed on the CPU of its thread only, in the same run.
unsafe impl Send for Who {}

// SAFETY: as above; a reference shows no more than a copy.
unsafe impl Sync for Who {}

impl Who {
    #[inline]
    pub(crate) fn of(light: &Light) -> Who {
        // SAFETY: the host outlives its threads.
        let home = unsafe { (*light.host()).pool.home.get() };
        Who {
            light,
            generation: light.pooled.generation.get(),
            home,
        }
    }

    /// As the word of an [`crate::Owner`].
    #[inline]
    pub(crate) fn as_owner(self) -> usize {
        let birth = usize::try_from(self.generation & u64::from(u16::MAX));
        self.light.expose_provenance() | birth.unwrap_or(0) << BIRTH
    }

    /// The thread that the word of an owner means, in a section of `me`; `None`: nobody. One that
    /// has ended is told from later ones in the same record, up to 2^16 of them.
    pub(crate) fn of_owner(word: usize, me: Who) -> Option<Who> {
        let address = word & ((1 << BIRTH) - 1);
        let light: *const Light = core::ptr::with_exposed_provenance(address);
        // SAFETY: null, or a record of this CPU in this run, which outlives it (INV-L1).
        let now = unsafe { light.as_ref() }?.pooled.generation.get();
        let older = now.wrapping_sub((word >> BIRTH) as u64) & u64::from(u16::MAX);
        Some(Who {
            light,
            generation: now.wrapping_sub(older),
            home: me.home,
        })
    }

    /// The calling light thread; `None` elsewhere.
    pub fn this() -> Option<Who> {
        current_light().map(Who::of)
    }

    /// Ends its [`crate::block`], the present or the next one. `false` when it has ended, or is on
    /// another CPU.
    pub fn wake(self) -> bool {
        let Some(me) = current_light() else {
            return false;
        };
        // SAFETY: the host outlives its threads; only its cells and atomics are used.
        let host = unsafe { &*me.host() };
        if host.gate.is_closed() {
            return false;
        }
        host.gate.close();
        let light = self.light(host).filter(|light| !light.pooled.is_over());
        if let Some(light) = light {
            light.wait_node.token.set(true);
            let _ = enter(me, Event::Wake(light.id()));
        }
        if !me.quit.get() {
            open_gate(host);
        }
        light.is_some()
    }

    /// Its id in the core; `None` when it has ended, or is on another CPU.
    pub fn id(self) -> Option<ThreadId> {
        let me = current_light()?;
        // SAFETY: the host outlives its threads; only its cells and atomics are used.
        let host = unsafe { &*me.host() };
        if host.gate.is_closed() {
            return None;
        }
        host.gate.close();
        let light = self.light(host).filter(|light| !light.pooled.is_over());
        let id = light.map(Light::id);
        open_gate(host);
        id
    }

    /// The thread, if it is of the CPU and run of `host` and lives. Gate closed.
    pub(crate) fn light(self, host: &PerCpu) -> Option<&'static Light> {
        if self.home != host.pool.home.get() {
            return None;
        }
        // SAFETY: a record of this CPU in this run, which outlives it (INV-L1).
        let light = unsafe { &*self.light };
        (light.pooled.generation.get() == self.generation).then_some(light)
    }
}
