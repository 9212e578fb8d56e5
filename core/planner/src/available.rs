//! Earliest available times: from when on CPUs and resources are free

use alloc::vec::Vec;

use punctual_model::{Instant, Ticks, Unit};

use crate::Capacities;

/// From when on each CPU and each resource is free.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Available<U: Unit = Ticks> {
    /// Of each CPU.
    pub cpus: Vec<Instant<U>>,
    /// Of each resource, for shared use: not before the last exclusive use has ended.
    pub shared: Vec<Instant<U>>,
    /// Of each resource, for exclusive use: not before any use has ended.
    pub exclusive: Vec<Instant<U>>,
    /// Of each CPU, the process that it executed last.
    pub processes: Vec<Option<u32>>,
}

impl<U: Unit> Available<U> {
    /// Everything is free from one instant on.
    pub fn from(instant: Instant<U>, capacities: Capacities) -> Available<U> {
        let all = |count| core::iter::repeat_n(instant, count).collect();
        Available {
            cpus: all(capacities.cpus.max(1)),
            shared: all(capacities.resources),
            exclusive: all(capacities.resources),
            processes: core::iter::repeat_n(None, capacities.cpus.max(1)).collect(),
        }
    }

    /// Nothing is free before `instant`.
    pub(crate) fn reset(&mut self, instant: Instant<U>) {
        self.cpus.fill(instant);
        self.shared.fill(instant);
        self.exclusive.fill(instant);
        self.processes.fill(None);
    }
}
