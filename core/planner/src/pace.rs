//! How much searching fits into the time that a request allows

use punctual_model::{Span, Ticks, Unit};

use crate::Search;

/// The cost of planning on a machine, at most, as measured there.
///
/// Evaluations dominate; the sort and the moves of a large plan are part of `segment`. A request
/// pays a segment for each that keeps its place too, and an evaluation for each that is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pace<U: Unit = Ticks> {
    /// One segment looked at.
    pub evaluation: Span<U>,
    /// One segment of the plan: its share of the sort, of placing it and of taking the plan over.
    /// Also a placement that is taken back, and made again.
    pub segment: Span<U>,
    /// Part of what a request allows that is not planned with (Spring: 50 ms).
    pub margin: Span<U>,
}

impl<U: Unit> Pace<U> {
    /// How many evaluations a plan of so many segments may take in `allowed`; `None`: not even the
    /// segments themselves fit.
    pub fn evaluations(&self, segments: usize, allowed: Span<U>) -> Option<u64> {
        let fixed = self.segment.saturating_mul(segments as u64);
        let left = allowed.checked_sub(fixed.saturating_add(self.margin))?;
        match self.evaluation.is_zero() {
            true => Some(u64::MAX),
            false => Some(left / self.evaluation),
        }
    }

    /// The most that so much planning has taken, but for the margin.
    pub fn spent(&self, segments: usize, evaluations: u64, backtracks: u64) -> Span<U> {
        let placed = (segments as u64).saturating_add(backtracks);
        let fixed = self.segment.saturating_mul(placed);
        fixed.saturating_add(self.evaluation.saturating_mul(evaluations))
    }

    /// A search of so many segments that ends in `allowed`, with the widest window that fits and at
    /// most that of `search`; the rest of the time is for going back. `None`: there is not
    /// enough time for any.
    pub fn search(&self, segments: usize, allowed: Span<U>, search: &Search) -> Option<Search> {
        let evaluations = self.evaluations(segments, allowed)?.min(search.evaluations);
        let window = Search::within(segments, evaluations)?.window;
        let window = window.min(search.window);
        let left = evaluations - crate::evaluations(segments, window);
        // A placement that is taken back costs a segment, and at most two windows of evaluations:
        // one for the next best in its place, and one behind that.
        let back = match self.evaluation.is_zero() {
            true => 0,
            false => self.segment / self.evaluation + 1,
        };
        let looks = (window as u64).saturating_mul(2);
        let backtracks = left / back.saturating_add(looks).max(1);
        let backtracks = backtracks.min(search.backtracks);
        Some(Search {
            window,
            backtracks,
            evaluations: evaluations - backtracks.saturating_mul(back),
            ..*search
        })
    }
}
