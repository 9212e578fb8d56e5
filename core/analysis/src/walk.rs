//! Streams of jobs, walked through in the order of their releases
//!
//! # Assumptions
//! 1. Those of the bound on the requests of each stream (`demand`); windows only grow.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use crate::demand::RequestBound;
use crate::error::{Checked, in_range};
use crate::fixed_point::SearchSteps;
use crate::units::{Span, TICK, Work};

const WHAT: &str = "busy window";
/// Steps of a search that take as long as one release here, with its place in the order.
const PASS_STEPS: usize = 16;

/// A stream of jobs, counted up to the end of the window.
pub(crate) struct Stream {
    pub(crate) requests: RequestBound,
    pub(crate) jobs: u64,
}

/// The releases of all that is more urgent, walked through in the order of their instants.
pub(crate) struct Walk {
    pub(crate) streams: Vec<Stream>,
    /// Up to which window the count of each stream is right.
    next: BinaryHeap<Reverse<(Span, usize)>>,
    /// The work of all jobs counted.
    pub(crate) work: Work,
    pub(crate) window: Span,
}

impl Walk {
    pub(crate) fn new() -> Walk {
        Walk {
            streams: Vec::new(),
            next: BinaryHeap::new(),
            work: Work::ZERO,
            window: TICK,
        }
    }

    /// Back to the shortest window, with the same streams. O(streams · log streams).
    pub(crate) fn rewind(&mut self) -> Checked<()> {
        let streams = core::mem::take(&mut self.streams);
        *self = Walk::new();
        streams.into_iter().try_for_each(|s| self.add(s.requests))
    }

    /// One more stream. O(log streams).
    pub(crate) fn add(&mut self, requests: RequestBound) -> Checked<()> {
        let jobs = requests.releases(self.window)?;
        let work = requests.work_of(jobs)?;
        self.work = in_range(self.work.checked_add(work), WHAT)?;
        let stream = Stream { requests, jobs };
        if let Some(until) = stream.until()? {
            self.next.push(Reverse((until, self.streams.len())));
        }
        self.streams.push(stream);
        Ok(())
    }

    /// Counts all that arrives before this window is over, and shows each stream whose count has
    /// changed to `see`. Whether one has. O(releases passed · log streams).
    pub(crate) fn pass(
        &mut self,
        window: Span,
        mut see: impl FnMut(usize, u64) -> Checked<()>,
    ) -> Checked<bool> {
        let mut passed = false;
        while let Some(mut top) = self.next.peek_mut() {
            let Reverse((until, place)) = *top;
            if until >= window {
                break;
            }
            let stream = &mut self.streams[place];
            let jobs = stream.requests.releases(window)?;
            see(place, jobs)?;
            let more = stream.requests.cost_of(jobs - stream.jobs)?;
            self.work = in_range(self.work.checked_add(more), WHAT)?;
            stream.jobs = jobs;
            // A stream of more than one job always has another.
            *top = Reverse((stream.until()?.unwrap_or(Span::MAX), place));
            passed = true;
        }
        self.window = self.window.max(window);
        Ok(passed)
    }

    /// The least window, from the present one on, that `first` and all that arrives in it fill.
    /// O(releases passed · log streams).
    pub(crate) fn extend(
        &mut self,
        first: Work,
        search_steps: &mut SearchSteps<'_>,
    ) -> Checked<Span> {
        loop {
            let filled = in_range(first.checked_add(self.work), WHAT)?.as_span();
            if !self.pass(filled, |_, _| search_steps.spend(PASS_STEPS, WHAT))? {
                return Ok(filled);
            }
        }
    }
}

impl Stream {
    /// The longest window with no more jobs; `None`: it has one alone.
    fn until(&self) -> Checked<Option<Span>> {
        let Some(separation) = self.requests.separation else {
            return Ok(None);
        };
        let until = in_range(separation.checked_mul(self.jobs), WHAT)?;
        Ok(Some(until.saturating_sub(self.requests.jitter)))
    }
}
