//! The invariants of a shard, checked at the end of every entry in debug builds.

use punctual_order::Policy;

use super::Shard;
use crate::thread::{State, Thread};
use crate::traits::Traits;

impl<P: Policy> Shard<P> {
    /// What [`Shard::unsettled`] is to say. O(threads and waiting jobs).
    fn count_unsettled(&self) -> u64 {
        let of_thread = |(thread, t): (usize, &Thread)| {
            let job = t.job.iter().filter(|job| !job.settled);
            let waiting = self.pool.iter(&t.backlog).map(|job| job.arrival);
            let arrivals = job.map(|job| job.arrival).chain(waiting);
            arrivals.filter(|&at| self.counts(thread, at)).count() as u64
        };
        self.threads.iter().enumerate().map(of_thread).sum()
    }

    /// Checks the invariants that are cheap enough for every exit of a debug build, O(n).
    /// The error names the broken one.
    pub fn check(&self) -> Result<(), &'static str> {
        let mut running = 0;
        for (index, t) in self.threads.iter().enumerate() {
            let ready = matches!(t.state, State::Ready | State::Running);
            if ready != t.queued {
                return Err("I1: in a ready set exactly when ready or running");
            }
            if t.state == State::Running {
                running += 1;
                if self.running != Some(t.id(index)) {
                    return Err("I2: only the thread of the last decision runs");
                }
            }
            if !self.rares.agrees(t) {
                return Err("I10: a thread says what it has among the rare things");
            }
            let follows = self.precedences.has_predecessors(index);
            let is_followed = self.precedences.is_followed(index);
            let has = |one| t.traits.has(one);
            if (has(Traits::HAS_PREDECESSORS), has(Traits::IS_FOLLOWED)) != (follows, is_followed) {
                return Err("I10: a thread says what it has among the precedences");
            }
            if has(Traits::RUNS_PER_JOB) != t.constraint.class.runs_per_job() {
                return Err("a thread says how its body runs");
            }
            if t.taken > t.granted {
                return Err("I4: no budget is taken before it is granted");
            }
        }
        if !self.rares.are_all_of(&self.threads) {
            return Err("I10: a place among the rare things is a thread's, or free");
        }
        if running > 1 {
            return Err("I2: at most one thread runs");
        }
        if self.unsettled != self.count_unsettled() {
            return Err("I9: a job counts as unsettled from its release until it is settled");
        }
        let awaiting = self.threads.iter().filter(|t| t.awaits_predecessors());
        if awaiting.count() != self.awaiting.0 as usize {
            return Err("the threads that wait for predecessors are counted");
        }
        self.check_locks()?;
        self.tree.check()
    }
}
