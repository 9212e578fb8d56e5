//! Jobs are released at their instants, in order, none left out.

use punctual_kern::Event;
use punctual_model::{Class, Instant};

use crate::Rule;
use crate::entry::Judge;
use crate::thread::{OpenJob, Thread};

impl Judge<'_> {
    /// A release became a job.
    pub(crate) fn released(&mut self, thread: usize, mut job: OpenJob) {
        let (now, event) = (self.now, self.event);
        let t = &mut self.threads[thread];
        let mut wrong = release_place(t, job, now, event);
        let deadline = t.deadline_of(job.arrival);
        if t.first.is_none() || t.last_arrival.is_none() && !t.is_clocked() {
            t.first = Some(job.arrival);
            t.first_index = job.index;
        }
        t.last_arrival = Some(job.arrival);
        t.seen = job.arrival;
        job.allotment = t.grant();
        if deadline != job.deadline && wrong.is_none() {
            let (is, should) = (job.deadline.ticks(), deadline.ticks());
            wrong = Some((
                Rule::JobArithmetic,
                format!("deadline {is}, should be {should}"),
            ));
        }
        t.open.push_back(job);
        self.count_release(thread, job.index);
        if let Some((rule, what)) = wrong {
            self.violation(
                rule,
                format!("{} job {}: {what}", self.name(thread), job.index),
            );
        }
    }

    /// A release became no job: it was skipped, or lost because too many wait.
    pub(crate) fn dropped(&mut self, thread: usize, index: u64) {
        let t = &self.threads[thread];
        let early = t.is_clocked() && t.arrival_of(index).is_some_and(|at| at > self.now);
        if early || (t.current.is_none() && t.open.is_empty() && t.fed == 0) {
            let what = format!("job {index} was dropped without need");
            self.accuse(Rule::ReleasesInTime, thread, what);
        }
        let t = &mut self.threads[thread];
        if let Some(arrival) = t.arrival_of(index).filter(|_| t.is_clocked()) {
            t.seen = arrival;
        }
        self.count_release(thread, index);
    }

    /// Releases are numbered without gaps.
    fn count_release(&mut self, thread: usize, index: u64) {
        let t = &mut self.threads[thread];
        let expected = t.next_index;
        t.next_index = index.saturating_add(1);
        t.fed = t.fed.saturating_sub(1);
        if index != expected {
            let what = format!("released job {index} where {expected} was next");
            self.accuse(Rule::ReleasesInTime, thread, what);
        }
    }

    /// At the end of an entry no release is overdue, unless the core wants to be back at once
    /// (`overdue`), and the core wants to be back when the next job is released.
    pub(crate) fn releases_are_in_time(&mut self, overdue: bool) {
        for thread in 0..self.threads.len() {
            let t = &self.threads[thread];
            let at = t.arrival_of(t.next_index).filter(|_| t.is_clocked());
            let at = at.filter(|&at| !t.dead && t.change.is_none() && at < t.constraint.until);
            let Some(at) = at else { continue };
            let wrong = match overdue {
                true => at <= self.now && self.arm != Some(self.now),
                false => !self.is_armed_by(at.max(self.now)),
            };
            if wrong {
                let what = format!(
                    "is not released at {}, and nothing is armed then",
                    at.ticks()
                );
                self.accuse(Rule::ReleasesInTime, thread, what);
                // Said once; the others are held against what was released.
                self.threads[thread].first = None;
            }
        }
    }
}

/// The mistake in the instant of a release.
fn release_place(
    t: &Thread,
    job: OpenJob,
    now: Instant,
    event: Option<Event>,
) -> Option<(Rule, String)> {
    let is = job.arrival.ticks();
    let wrong = |what: String| Some((Rule::ReleasesInTime, what));
    if job.arrival > now {
        return wrong(format!("released before its arrival at {is}"));
    }
    if job.arrival >= t.constraint.until {
        return wrong(format!("arrived at {is}, after the last release"));
    }
    if t.is_clocked() {
        return match t.arrival_of(job.index) {
            Some(at) if at != job.arrival => {
                wrong(format!("arrived at {is}, should be {}", at.ticks()))
            }
            None if t.first.is_some() => wrong(format!("arrived at {is}, should not arrive")),
            _ => None,
        };
    }
    if t.fed == 0 {
        return wrong(format!("released at {is}, but nothing arrived"));
    }
    if t.constraint.fed {
        return match event {
            Some(Event::Arrive { thread, arrival })
                if thread == t.id && arrival.min(now) == job.arrival =>
            {
                None
            }
            _ => wrong(format!("arrived at {is}, which is not what was fed")),
        };
    }
    if let (Class::Sporadic { min_separation, .. }, Some(last)) =
        (t.constraint.class, t.last_arrival)
        && job.arrival < last.saturating_add(min_separation)
    {
        let last = last.ticks();
        return wrong(format!("arrived at {is}, too soon after {last}"));
    }
    None
}
