//! The barriers of gangs, as waits of tasks.

use alloc::vec::Vec;

use crate::gang::Barrier;
use crate::id::TaskId;
use crate::system::System;

impl System {
    /// Adds the waits of a barrier: each member of the next superstep waits for all of the one
    /// before. O(members²).
    pub fn keep_barrier(&mut self, gang: usize, barrier: Barrier) {
        let Some((before, next)) = self.sides(gang, barrier) else {
            return;
        };
        for id in next {
            if let Some(waits) = self.waits(id, barrier) {
                let new = before.iter().filter(|task| !waits.contains(task));
                let new: Vec<TaskId> = new.copied().collect();
                waits.extend(new);
            }
        }
    }

    /// Takes the waits of a barrier away again, where time alone keeps both supersteps apart.
    /// O(members²).
    pub fn leave_out_barrier(&mut self, gang: usize, barrier: Barrier) {
        let Some((before, next)) = self.sides(gang, barrier) else {
            return;
        };
        for id in next {
            if let Some(waits) = self.waits(id, barrier) {
                waits.retain(|task| !before.contains(task));
            }
        }
    }

    /// Whether every wait of a barrier is there.
    pub fn has_barrier(&self, gang: usize, barrier: Barrier) -> bool {
        let Some((before, next)) = self.sides(gang, barrier) else {
            return false;
        };
        next.iter().all(|id| {
            let task = self.tasks.get(id.index());
            task.is_some_and(|task| {
                let waits = if barrier.wraps() {
                    &task.follows
                } else {
                    &task.after
                };
                before.iter().all(|id| waits.contains(id))
            })
        })
    }

    fn waits(&mut self, id: TaskId, barrier: Barrier) -> Option<&mut Vec<TaskId>> {
        let task = self.tasks.get_mut(id.index())?;
        Some(if barrier.wraps() {
            &mut task.follows
        } else {
            &mut task.after
        })
    }

    fn sides(&self, gang: usize, barrier: Barrier) -> Option<(Vec<TaskId>, Vec<TaskId>)> {
        let gang = self.gangs.get(gang)?;
        let members = |place: usize| {
            let superstep = gang.supersteps.get(place);
            superstep.map(|superstep| superstep.members.clone())
        };
        Some((members(barrier.before)?, members(barrier.next)?))
    }
}
