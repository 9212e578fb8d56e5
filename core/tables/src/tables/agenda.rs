//! Threads that execute the segments of plans, and CPUs that tell each other how far they are

use alloc::vec::Vec;

use punctual_kern::{ConfigError, Policy, Shard};
use punctual_model::{Class, CpuId, Instant, Priority, TaskId};

use super::{Tables, small};

/// The parts of a shard that executes plans.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct AgendaTables {
    /// Segments in force and staged together, at most [`MAX_SEGMENTS`].
    pub room: u32,
    /// The other CPUs of the plan: the slot here of each, the CPU, the slot there of this one.
    pub peers: Vec<(u32, CpuId, u32)>,
}

/// Most segments of plans that one shard has room for.
pub const MAX_SEGMENTS: u32 = 1 << 16;

impl AgendaTables {
    /// Declares them to a shard.
    pub(super) fn reserve<P: Policy>(&self, shard: &mut Shard<P>) -> Result<(), ConfigError> {
        for &(slot, to, there) in &self.peers {
            shard.add_agenda_peer(slot, to, there)?;
        }
        if self.room > 0 {
            shard.reserve_agenda(self.room as usize);
        }
        Ok(())
    }
}

impl Tables {
    /// The threads of these tasks execute segments of plans, on CPUs with room for so many. Their
    /// jobs come by plans alone, and each CPU hears how far the others are.
    /// O(threads + CPUs² of them).
    pub fn add_agendas(&mut self, tasks: &[TaskId], room: u32) {
        let mut planned = Vec::new();
        for (place, cpu) in self.cpus.iter_mut().enumerate() {
            let threads = cpu.threads.iter_mut();
            for (_, constraint) in threads.filter(|(task, _)| tasks.contains(task)) {
                constraint.fed = matches!(constraint.class, Class::Sporadic { .. });
                constraint.until = Instant::MAX;
                // One that is stopped at the end of its wcet is done before other background work
                // goes on, since the plan waits for it.
                constraint.priority = Priority::new(u32::MAX);
                if planned.last() != Some(&place) {
                    planned.push(place);
                }
            }
        }
        let slots = |tables: &Tables, at: usize| small(tables.cpus[at].remotes.len());
        for (number, &one) in planned.iter().enumerate() {
            self.cpus[one].agenda.room = room;
            for &other in &planned[..number] {
                let (here, there) = (slots(self, one), slots(self, other));
                let cpus = (self.cpus[one].cpu, self.cpus[other].cpu);
                for (at, slot, peer, back) in
                    [(one, here, cpus.1, there), (other, there, cpus.0, here)]
                {
                    self.cpus[at].remotes.push((Instant::MAX, None));
                    self.cpus[at].agenda.peers.push((slot, peer, back));
                }
            }
        }
    }
}
