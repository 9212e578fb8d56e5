//! Arrivals, requests and demand: how much work a stream of jobs brings into an interval
//!
//! # Assumptions
//! 1. Arrivals of one stream are at least `separation` apart; a release follows its arrival by at
//!    most `jitter`, in the order of arrivals.
//! 2. No job needs more than `cost`, and all jobs of a window together no more than `once` beyond.
//! 3. A *fluid* stream never requests more than `cost` at once and cost/separation in the long run,
//!    in any portions. A constant-bandwidth server that wakes up with part of its budget left keeps
//!    it when it is less than its share until its deadline, and then gets the next in full.
//!
//! Sources: Lehoczky 1990 and Tindell, Burns and Wellings 1994 (requests with jitter). Baruah,
//! Mok and Rosier 1990 (demand bound function). Spuri 1996 (demand with jitter); Abeni and Buttazzo
//! 1998 (what a constant-bandwidth server demands by its deadlines).

use crate::error::{Checked, in_range};
use crate::units::{Span, TICK, Work, share};
use crate::utilization::Ratio;

const WHAT: &str = "work of many jobs";

/// A stream of jobs as the tests see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RequestBound {
    /// Smallest distance of arrivals; `None`: a single job.
    pub(crate) separation: Option<Span>,
    /// Most that one job takes from the processor.
    pub(crate) cost: Work,
    /// Latest release after the arrival.
    pub(crate) jitter: Span,
    /// In any portions at this rate, instead of whole jobs.
    pub(crate) is_fluid: bool,
    /// Its jobs may take so much beyond that in any window in which there are some.
    pub(crate) once: Work,
}

impl RequestBound {
    /// The bound of whole jobs.
    pub(crate) fn of_jobs(separation: Option<Span>, cost: Work, jitter: Span) -> RequestBound {
        RequestBound {
            separation,
            cost,
            jitter,
            is_fluid: false,
            once: Work::ZERO,
        }
    }

    /// Most jobs released in a half-open interval of length `window`: ⌈(window + J)/T⌉. O(1).
    pub(crate) fn releases(&self, window: Span) -> Checked<u64> {
        if window.is_zero() {
            return Ok(0);
        }
        match self.separation {
            None => Ok(1),
            Some(t) => Ok(in_range(window.checked_add(self.jitter), "releases")?.div_ceil(t)),
        }
    }

    /// Most work requested in a half-open interval of length `window`. O(1).
    pub(crate) fn request_bound(&self, window: Span) -> Checked<Work> {
        if self.is_fluid && !window.is_zero() {
            return in_range(self.cost.checked_add(self.share_of(window)?), WHAT);
        }
        self.work_of(self.releases(window)?)
    }

    /// The most work of this many jobs, that beyond their cost included. O(1).
    pub(crate) fn work_of(&self, jobs: u64) -> Checked<Work> {
        let once = if jobs > 0 { self.once } else { Work::ZERO };
        in_range(self.cost_of(jobs)?.checked_add(once), WHAT)
    }

    /// The cost of this many jobs. O(1).
    pub(crate) fn cost_of(&self, jobs: u64) -> Checked<Work> {
        in_range(self.cost.checked_mul(jobs), WHAT)
    }

    /// How many jobs can have a deadline at or before `at`, when the first is released at 0 with
    /// its largest jitter: ⌊(at + J − D)/T⌋ + 1, or none. O(1).
    pub(crate) fn deadlines_until(&self, at: Span, relative_deadline: Span) -> Checked<u64> {
        let reach = in_range(at.checked_add(self.jitter), "deadlines")?;
        Ok(
            match (reach.checked_sub(relative_deadline), self.separation) {
                (None, _) => 0,
                (Some(_), None) => 1,
                (Some(rest), Some(t)) => rest / t + 1,
            },
        )
    }

    /// cost/separation of `window`, in whole ticks.
    pub(crate) fn share_of(&self, window: Span) -> Checked<Work> {
        let separation = self.separation.unwrap_or(Span::MAX);
        in_range(share(self.cost, window, separation), WHAT)
    }

    /// The demand bound function: work released in [0, `at`] with deadlines in it. O(1).
    pub(crate) fn demand_bound(&self, at: Span, relative_deadline: Span) -> Checked<Work> {
        if self.is_fluid {
            return self.share_of(at);
        }
        self.work_of(self.deadlines_until(at, relative_deadline)?)
    }

    /// The latest deadline before `before`, in the same situation; jobs that are late when they are
    /// released count at 0. O(1).
    pub(crate) fn last_deadline(&self, before: Span, relative_deadline: Span) -> Option<Span> {
        let limit = before.checked_sub(TICK)?.checked_add(self.jitter)?;
        let rest = limit.checked_sub(relative_deadline)?;
        let periods = self
            .separation
            .map_or(Span::ZERO, |t| rest.saturating_sub(rest % t));
        let deadline = relative_deadline.checked_add(periods)?;
        Some(deadline.saturating_sub(self.jitter))
    }

    /// Long-run share of the processor; a single job has none.
    pub(crate) fn ratio(&self) -> Option<Ratio> {
        let separation = self.separation?;
        Some(Ratio::of(self.cost, separation))
    }
}

/// The cost of one job, in parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Cost {
    /// Its own work.
    pub(crate) wcet: Work,
    /// Switches, preemption, caches.
    pub(crate) overhead: Work,
    /// Suspension, and what may block it when it resumes.
    pub(crate) suspension: Work,
}

impl Cost {
    /// All of it.
    pub(crate) fn total(&self) -> Checked<Work> {
        in_range(
            self.computing()?.checked_add(self.suspension),
            "cost of a job",
        )
    }

    /// Whether something is counted as computation that is none: no simulation would show it.
    pub(crate) fn is_padded(&self) -> bool {
        !self.suspension.is_zero()
    }

    /// The part that is spent on the processor without a break.
    pub(crate) fn computing(&self) -> Checked<Work> {
        in_range(self.wcet.checked_add(self.overhead), "cost of a job")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(ns: u64) -> Span {
        Span::from_ns(ns)
    }

    fn work(ns: u64) -> Work {
        Work::from_ns(ns)
    }

    #[test]
    fn bounds_match_counting_every_arrival() {
        for (t, j, d) in [(5, 0, 5), (5, 3, 4), (5, 12, 9), (7, 1, 20), (4, 9, 2)] {
            let requests = RequestBound {
                separation: Some(span(t)),
                cost: work(2),
                jitter: span(j),
                is_fluid: false,
                once: Work::ZERO,
            };
            for window in 0..60_u64 {
                // Arrivals at -J, -J+T, ...; each released as late as it may, but not before 0.
                let arrivals = || (0..40_u64).map(|k| k * t);
                let released = arrivals().filter(|a| a.saturating_sub(j) < window).count() as u64;
                assert_eq!(
                    requests.releases(span(window)),
                    Ok(released),
                    "T {t} J {j} window {window}"
                );
                let due = arrivals().filter(|a| a + d <= window + j).count() as u64;
                assert_eq!(
                    requests.deadlines_until(span(window), span(d)),
                    Ok(due),
                    "T {t} J {j} at {window}"
                );
                let last = arrivals()
                    .map(|a| (a + d).saturating_sub(j))
                    .filter(|&at| at < window)
                    .max();
                assert_eq!(
                    requests.last_deadline(span(window), span(d)),
                    last.map(span),
                    "T {t} J {j} at {window}"
                );
            }
        }
    }

    #[test]
    fn a_single_job_arrives_once() {
        let requests = RequestBound {
            separation: None,
            cost: work(3),
            jitter: Span::ZERO,
            is_fluid: false,
            once: Work::ZERO,
        };
        assert_eq!(requests.request_bound(Span::ZERO), Ok(Work::ZERO));
        assert_eq!(requests.request_bound(Span::MAX), Ok(work(3)));
        assert_eq!(requests.demand_bound(span(9), span(10)), Ok(Work::ZERO));
        assert_eq!(requests.demand_bound(span(10), span(10)), Ok(work(3)));
        assert_eq!(requests.ratio(), None);
    }
}
