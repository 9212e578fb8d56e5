//! How much missing time delayed a job: what its excuse is worth.
//!
//! Only gaps that can have delayed it count: those that hit while it or more urgent work executed,
//! in the unbroken stretch of such work that reaches back from its arrival and until its
//! completion; those that hit while it was ready behind work that could not be preempted; and those
//! during which it arrived, as far as they reach beyond its arrival. While it waits for
//! predecessors, what counts is what hit their CPUs. Everything else passed it by, and excuses
//! nothing.
//!
//! A gap can delay a job by more than its own length: it then meets the next release of more urgent
//! work. So where plain subtraction does not do, the work of the busy window is laid out again
//! without the gaps ([`Inquiry::without_missing`]).

use punctual_kern::{MissingCause, Source};
use punctual_model::{Instant, Span};

use super::cause::{Inquiry, MAX_WINDOW};
use crate::behavior::{JobRecord, Missing};

impl Inquiry<'_> {
    /// Start of the unbroken stretch of work at least as urgent as `job` that its arrival falls
    /// into; the arrival itself when there is none.
    pub(super) fn stretch_start(&self, job: &JobRecord) -> Instant {
        let (segments, gaps) = (&self.behavior.segments, &self.behavior.missing);
        let mut start = job.arrival;
        let mut segment = segments.partition_point(|s| s.start < start);
        let mut gap = gaps.partition_point(|g| g.start < start);
        for _ in 0..MAX_WINDOW {
            let urgent = |at: Option<usize>| {
                at.is_some_and(|at| self.is_urgent(&self.behavior.jobs[at], job))
            };
            let last = segment.checked_sub(1).map(|at| segments[at]);
            let hole = gap.checked_sub(1).map(|at| gaps[at]);
            if let Some(last) = last.filter(|s| s.end >= start && urgent(s.job)) {
                start = last.start;
                segment -= 1;
            } else if let Some(hole) = hole.filter(|g| g.end >= start && urgent(g.during)) {
                start = hole.start;
                gap -= 1;
            } else {
                break;
            }
        }
        start
    }

    /// Ticks of missing time that delayed `job`, which was over at `end`.
    pub(super) fn excuse(&self, job: &JobRecord, start: Instant, end: Instant) -> u64 {
        let held_back = !job.held_back.is_zero();
        let ready = match (held_back, job.started) {
            (true, started) => started.unwrap_or(end).min(end),
            (false, _) => job.arrival,
        };
        let here = |from, to| self.delaying(job, from, to);
        let waiting = here(job.arrival, ready).max(self.predecessors_lost(job, ready));
        here(start, job.arrival) + waiting + here(ready, end)
    }

    fn delaying(&self, job: &JobRecord, from: Instant, to: Instant) -> u64 {
        let gaps = &self.behavior.missing;
        let first = gaps.partition_point(|g| g.end <= from);
        let gaps = gaps[first..].iter().take_while(|g| g.start < to);
        let stolen = gaps.filter(|g| g.cause == MissingCause::Stolen);
        stolen
            .map(|gap| {
                let since = self.delays_from(gap, job).max(from);
                gap.end.min(to).since(since).ticks()
            })
            .sum()
    }

    /// From which instant on a gap delayed `job`; its end when it did not.
    fn delays_from(&self, gap: &Missing, job: &JobRecord) -> Instant {
        let jobs = &self.behavior.jobs;
        if gap.during.is_some_and(|at| self.is_urgent(&jobs[at], job)) {
            return gap.start;
        }
        if job.started.is_some_and(|started| started <= gap.start) {
            return gap.start;
        }
        // Releases that came late because of it, of this job or of more urgent ones.
        let first = jobs.partition_point(|j| j.released < gap.entry);
        let late = jobs[first..].iter().take_while(|j| j.released == gap.entry);
        let late = late.filter(|j| self.is_urgent(j, job)).map(|j| j.arrival);
        late.min()
            .map_or(gap.end, |arrival| arrival.clamp(gap.start, gap.end))
    }

    /// When `job` would have been over without the missing time in its busy window: all work at
    /// least as urgent that was released before that instant is done by then (the fixed point of
    /// Joseph and Pandya 1986, over the work that was really executed). What else delayed it
    /// (`others`, in ticks) is added in full. `None`: the window is too long to say.
    pub(super) fn without_missing(
        &self,
        job: &JobRecord,
        (start, end): (Instant, Instant),
        others: u64,
    ) -> Option<Instant> {
        let segments = self.behavior.segments_in(start, end);
        if segments.len() > MAX_WINDOW {
            return None;
        }
        let is_it = |j: &JobRecord| (j.thread, j.index) == (job.thread, job.index);
        // What it still wants at the end of the run is among the others, but it comes at its turn.
        let mut work = vec![(self.could_start(job).max(start), true, 0)];
        for segment in segments {
            let Some(at) = segment.job else { continue };
            let other = &self.behavior.jobs[at];
            if self.is_urgent(other, job) {
                let executed = segment.end.min(end).since(segment.start.max(start));
                let release = self.could_start(other).max(start);
                work.push((release, is_it(other), executed.ticks()));
            }
        }
        work.sort_unstable();
        let mut done = start.saturating_add(Span::from_ticks(others));
        let mut met = false;
        for (release, it, executed) in work {
            if release >= done && met && !it {
                break;
            }
            met |= it;
            done = done.max(release).saturating_add(Span::from_ticks(executed));
        }
        Some(done)
    }

    /// When a job could have started had no gap delayed its release.
    fn could_start(&self, job: &JobRecord) -> Instant {
        if !job.held_back.is_zero() {
            return job.started.unwrap_or(job.released);
        }
        let stolen = MissingCause::Stolen;
        let gaps = self
            .behavior
            .missing_during(job.arrival, job.released, stolen);
        job.released.saturating_sub(gaps).max(job.arrival)
    }

    /// The most that any CPU of a predecessor lost while `job` waited for it.
    fn predecessors_lost(&self, job: &JobRecord, ready: Instant) -> u64 {
        if ready <= job.arrival {
            return 0;
        }
        let cpus = self.predecessor_cpus(job.thread.index());
        let lost = cpus.into_iter().filter_map(|cpu| self.all.get(cpu));
        let lost = lost.map(|b| b.missing_during(job.arrival, ready, MissingCause::Stolen));
        lost.max().unwrap_or_default().ticks()
    }

    /// The CPUs of all direct and indirect predecessors of a thread. O(precedences).
    fn predecessor_cpus(&self, thread: usize) -> Vec<usize> {
        let tables = &self.log.tables.cpus;
        let mut seen = vec![(self.cpu, thread)];
        let mut at = 0;
        while let Some(&(cpu, thread)) = seen.get(at) {
            at += 1;
            let edges = tables[cpu].edges.iter();
            for (_, edge) in edges.filter(|(to, _)| *to as usize == thread) {
                let from = match edge.from {
                    Source::Local(thread) => Some((cpu, thread.index())),
                    Source::Remote { slot } => behind_slot(tables, cpu, slot),
                };
                seen.extend(from.filter(|from| !seen.contains(from)));
            }
        }
        let mut cpus: Vec<usize> = seen.iter().skip(1).map(|(cpu, _)| *cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        cpus
    }
}

/// The CPU and the thread whose news arrive in a slot of `cpu`.
fn behind_slot(
    tables: &[punctual_tables::CpuTables],
    cpu: usize,
    slot: u32,
) -> Option<(usize, usize)> {
    let here = tables[cpu].cpu;
    tables.iter().enumerate().find_map(|(there, tables)| {
        let mut all = tables.notifications.iter();
        let found = all.find(|(_, to, s)| (*to, *s) == (here, slot))?;
        Some((there, found.0 as usize))
    })
}
