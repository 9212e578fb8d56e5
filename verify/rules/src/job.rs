//! Jobs are released at their instants, in order, none left out.

use punctual_kern::Event;
use punctual_model::Instant;

use crate::Rule;
use crate::entry::{InTicks, Judge};
use crate::queue::Entity;
use crate::thread::OpenJob;

impl Judge<'_> {
    /// A release became a job.
    pub(crate) fn released(&mut self, thread: usize, index: u64, dates: (Instant, Instant)) {
        let (arrival, deadline) = dates;
        let wrong = self.release_mistake(thread, index, arrival);
        let t = &mut self.threads[thread];
        t.starts = None;
        let due = t.deadline_of(arrival);
        if t.first.is_none() {
            (t.first, t.first_index) = (Some(arrival), index);
        }
        t.seen = arrival;
        let allotment = t.grant();
        t.open.push_back(OpenJob {
            index,
            arrival,
            deadline,
            allotment,
        });
        self.count_release(thread, index);
        let who = Entity::Thread(thread);
        if let Some((wrong, right)) = wrong {
            let (at, right) = (arrival.ticks(), InTicks(right.map(Instant::ticks)));
            let what = format_args!("releases job {index} at {at} ticks, {wrong} {right}");
            self.accuse(Rule::ReleasesInTime, who, what);
        }
        let what = format_args!("releases job {index} with deadline {deadline:?}, not {due:?}");
        self.must(due == deadline, Rule::JobArithmetic, who, what);
    }

    /// The mistake in the instant of a release, and the instant that it is held against.
    fn release_mistake(
        &self,
        thread: usize,
        index: u64,
        arrival: Instant,
    ) -> Option<(&'static str, Option<Instant>)> {
        let (t, now) = (&self.threads[thread], self.now);
        let (due, until) = (t.arrival_of(index), t.constraint.until);
        let fed = match self.event {
            Event::Arrive { thread, arrival } if thread == t.id => Some(arrival.min(now)),
            _ => t.starts,
        };
        let separation = t
            .constraint
            .class
            .min_separation()
            .filter(|_| !t.constraint.fed);
        let earliest = t.first.and(separation).map(|s| t.seen.saturating_add(s));
        let fresh = t.first.is_none();
        let not_before = t.not_before().filter(|_| fresh);
        let off = t.first.is_some() && due != Some(arrival);
        let wrongs = [
            (arrival > now, "before it arrives, now is", Some(now)),
            (arrival >= until, "but must release before", Some(until)),
            (t.is_clocked() && off, "but is due at", due),
            (
                !t.is_clocked() && t.fed == 0,
                "but nothing arrived until",
                Some(now),
            ),
            (
                t.constraint.fed && fed != Some(arrival),
                "but the arrival fed is",
                fed,
            ),
            (
                !t.is_clocked() && earliest > Some(arrival),
                "but not before",
                earliest,
            ),
            (
                not_before > Some(arrival),
                "though its change is in force from",
                not_before,
            ),
        ];
        let wrong = wrongs.into_iter().find(|wrong| wrong.0)?;
        Some((wrong.1, wrong.2))
    }

    /// A release became no job: it was skipped, or lost because too many wait.
    pub(crate) fn dropped(&mut self, thread: usize, index: u64) {
        let t = &self.threads[thread];
        let early = t.is_clocked() && t.arrival_of(index).is_some_and(|at| at > self.now);
        let free = t.current.is_none() && t.open.is_empty() && t.fed == 0;
        let who = Entity::Thread(thread);
        let due = InTicks(t.arrival_of(index).map(Instant::ticks));
        let what = format_args!("drops job {index} without need, which is due at {due}");
        self.must(!early && !free, Rule::ReleasesInTime, who, what);
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
        let what = format_args!("released job {index} where {expected} was next");
        let who = Entity::Thread(thread);
        self.must(index == expected, Rule::ReleasesInTime, who, what);
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
                let (at, arm) = (at.ticks(), InTicks(self.arm.map(Instant::ticks)));
                let what = format_args!("is not released at {at} ticks, and armed is {arm}");
                self.accuse(Rule::ReleasesInTime, Entity::Thread(thread), what);
                // Said once; the others are held against what was released.
                self.threads[thread].first = None;
            }
        }
    }
}
