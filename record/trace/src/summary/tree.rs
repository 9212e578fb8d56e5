//! Where jobs stand in the tree of their CPU: who can delay whom, and who waits for supply.

use punctual_kern::Grant;
use punctual_model::{Instant, PolicyKind};
use punctual_tables::{CpuTables, NodeRow};

use super::cause::{Inquiry, MAX_WINDOW};
use crate::behavior::JobRecord;

impl Inquiry<'_> {
    fn tables(&self) -> Option<&CpuTables> {
        self.log.tables.cpus.get(self.cpu)
    }

    /// The row of a scheduler; `None` for the CPU's own and for those promoted in the run.
    fn node(&self, place: usize) -> Option<&NodeRow> {
        self.tables()?.nodes.get(place.checked_sub(1)?)
    }

    /// A scheduler and everything above it, the CPU's own last.
    pub(super) fn lineage(&self, place: usize) -> Vec<usize> {
        let most = self.behavior.nodes.len();
        let up = |at: &usize| self.behavior.nodes.get(*at)?.parent;
        std::iter::successors(Some(place), up).take(most).collect()
    }

    /// Whether a scheduler's supply is bounded.
    fn is_bounded(&self, place: usize) -> bool {
        let node = self.node(place);
        node.is_some_and(|node| node.terms.supply != Grant::Shared)
    }

    /// The schedulers between a job and the closest one that it has in common with `other` (below
    /// that), and the common one.
    fn branch(&self, job: &JobRecord, other: usize) -> (Vec<usize>, usize) {
        let above = self.lineage(other);
        let mut branch = self.lineage(job.home);
        let common = branch.iter().position(|at| above.contains(at));
        let common_at = common.unwrap_or(branch.len().saturating_sub(1));
        let place = branch.get(common_at).copied().unwrap_or(0);
        branch.truncate(common_at);
        (branch, place)
    }

    /// Its closest scheduler with a bounded supply, or its own one if that gives it slots.
    pub(super) fn supplier(&self, job: &JobRecord) -> Option<usize> {
        if self.gives_slots(job.home) {
            return Some(job.home);
        }
        let mut lineage = self.lineage(job.home).into_iter();
        lineage.find(|&at| self.is_bounded(at))
    }

    /// Whether all that a scheduler orders has slots there.
    fn gives_slots(&self, place: usize) -> bool {
        matches!(self.policy(place), PolicyKind::Tdm { .. })
    }

    fn policy(&self, place: usize) -> PolicyKind {
        match (self.node(place), self.tables()) {
            (Some(node), _) => node.policy,
            (None, Some(tables)) => tables.policy,
            (None, None) => PolicyKind::Fifo,
        }
    }

    /// Whether the closest common scheduler of two jobs puts `other` at least as high as `job`, so
    /// that it can delay it.
    pub(super) fn goes_first(&self, other: &JobRecord, job: &JobRecord) -> bool {
        let (below, other_below, common) = match other.home == job.home {
            true => (Vec::new(), Vec::new(), job.home),
            false => {
                let (below, common) = self.branch(job, other.home);
                (below, self.branch(other, job.home).0, common)
            }
        };
        let bounded = other_below.iter().any(|&at| self.is_bounded(at));
        if other.absolute_deadline == Instant::MAX && !bounded {
            return false;
        }
        let of = |branch: &[usize], of: &JobRecord| match branch.last() {
            Some(&top) => self.node(top).map(|node| (node.terms.priority, None)),
            None => Some((self.priority(of), Some((of.absolute_deadline, of.arrival)))),
        };
        let (Some(first), Some(second)) = (of(&other_below, other), of(&below, job)) else {
            return true;
        };
        match (self.policy(common), first.1, second.1) {
            (PolicyKind::FixedPriority { .. }, ..) => !second.0.is_higher_than(first.0),
            (PolicyKind::EarliestDeadlineFirst, Some(a), Some(b)) => a.0 <= b.0,
            (PolicyKind::Fifo, Some(a), Some(b)) => a.1 <= b.1,
            // In slots of one frame nobody delays anybody else.
            (PolicyKind::Tdm { .. }, ..) => false,
            _ => true,
        }
    }

    /// Whether a job may lack supply while a thread of scheduler `running` executes.
    pub(super) fn may_lack_supply(&self, job: &JobRecord, running: usize) -> bool {
        let (below, common) = self.branch(job, running);
        self.gives_slots(common) || below.iter().any(|&at| self.is_bounded(at))
    }

    /// Ticks of [`from`, `to`) in which a job was ready and nobody executed: whoever idles then
    /// waits for supply.
    pub(super) fn idle_while_ready(&self, job: &JobRecord, from: Instant, to: Instant) -> u64 {
        if self.supplier(job).is_none() {
            return 0;
        }
        let b = self.behavior;
        let within = |start: Instant, end: Instant| end.min(to).since(start.max(from)).ticks();
        let executed = b.segments_in(from, to).iter();
        let executed: u64 = executed.map(|s| within(s.start, s.end)).sum();
        let first = b.missing.partition_point(|m| m.end <= from);
        let gaps = b.missing[first..].iter().take_while(|m| m.start < to);
        let gaps: u64 = gaps.map(|m| within(m.start, m.end)).sum();
        let first = b.deciding.partition_point(|d| d.end <= from);
        let deciding = b.deciding[first..].iter().take_while(|d| d.start < to);
        let deciding: u64 = deciding.map(|d| within(d.start, d.end)).sum();
        let waits = self.waits(job, from, to).not_ready();
        let busy = [executed, gaps, deciding, waits];
        let busy = busy.into_iter().fold(0, u64::saturating_add);
        to.since(from).ticks().saturating_sub(busy)
    }

    /// Whether a thread held a resource somewhere in [`from`, `to`).
    pub(super) fn held_something(&self, thread: usize, from: Instant, to: Instant) -> bool {
        let holds = &self.behavior.holds;
        let first = holds.partition_point(|hold| hold.end <= from);
        let mut near = holds[first..].iter().take(MAX_WINDOW);
        near.any(|hold| hold.thread.index() == thread && hold.start < to)
    }

    /// The resource that a job waited for last, and who held it then.
    pub(super) fn last_lock(&self, job: &JobRecord) -> Option<(&str, &str)> {
        use crate::behavior::WaitReason;
        let is_it = |at: usize| {
            let of = &self.behavior.jobs[at];
            (of.thread, of.index) == (job.thread, job.index)
        };
        let waits = self.behavior.waits.iter().rev().take(MAX_WINDOW);
        let mut waits = waits.filter(|wait| is_it(wait.job));
        let (wait, resource) = waits.find_map(|wait| match wait.reason {
            WaitReason::Resource(resource) => Some((wait, resource)),
            _ => None,
        })?;
        let holds = &self.behavior.holds;
        let first = holds.partition_point(|hold| hold.end <= wait.start);
        let mut near = holds[first..].iter().take(MAX_WINDOW);
        let holder = near.find(|hold| {
            hold.resource == resource && hold.start < wait.end && hold.thread != job.thread
        })?;
        let holder = self.log.task_name(self.cpu, holder.thread);
        Some((self.log.resource_name(self.cpu, resource), holder))
    }
}
