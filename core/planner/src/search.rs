//! How a plan is searched for, and why there is none

use core::fmt;

use punctual_model::{Heuristic, Instant, Locality, Planning, Ticks, Unit};

/// The effort of a planner before it refuses a set of segments.
///
/// Without any bound the search is complete: each order of the segments that could be a plan is
/// tried. That ends in useful time for about ten segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Search {
    /// Which segment is next.
    pub heuristic: Heuristic,
    /// How many eligible segments are looked at, at least 1; `usize::MAX`: all.
    pub window: usize,
    /// How often a placement is taken back.
    pub backtracks: u64,
    /// Never more evaluations than this.
    pub evaluations: u64,
    /// Where segments with a home execute.
    pub locality: Locality,
    /// Prefers segments of the process that their CPU executed last, to switch less. A request
    /// that is not planned so is planned without the preference.
    pub within_process: bool,
}

impl Default for Search {
    /// The least d + 4 s of seven, without going back, however long it takes.
    fn default() -> Search {
        Search {
            heuristic: Heuristic::DeadlineAndStart { factor: 4 },
            window: 7,
            backtracks: 0,
            evaluations: u64::MAX,
            locality: Locality::Earliest,
            within_process: false,
        }
    }
}

/// Most segments that the search of a request looks at, where the file sets no time for planning.
const EVALUATIONS: u64 = 400_000;

impl Search {
    /// That of a request while a system runs: all that `planning` allows. Its time is in a
    /// [`Pace`](crate::Pace).
    pub fn of_request(planning: &Planning) -> Search {
        Search {
            heuristic: planning.heuristic,
            window: planning.window.map_or(usize::MAX, |window| window as usize),
            backtracks: planning.backtracks,
            evaluations: EVALUATIONS,
            locality: planning.locality,
            within_process: planning.within_process,
        }
    }

    /// The complete search: a refusal after it says that there is no plan.
    pub fn complete() -> Search {
        Search {
            window: usize::MAX,
            backtracks: u64::MAX,
            ..Search::default()
        }
    }

    /// The widest window with which that many segments are planned within so many evaluations,
    /// without going back; `None` when even one is too wide. O(log segments).
    pub fn within(segments: usize, allowed: u64) -> Option<Search> {
        let fits = |window: usize| evaluations(segments, window) <= allowed;
        let (mut low, mut high) = (1, segments.max(1));
        if !fits(low) {
            return None;
        }
        while low < high {
            let middle = high - (high - low) / 2;
            match fits(middle) {
                true => low = middle,
                false => high = middle - 1,
            }
        }
        Some(Search {
            window: low,
            evaluations: allowed,
            ..Search::default()
        })
    }
}

/// How many evaluations the plan of n segments takes with a window of k where nothing is cut and
/// all are eligible: k·n - k(k-1)/2, with k at most n.
pub fn evaluations(segments: usize, window: usize) -> u64 {
    let (n, k) = (segments as u64, window.min(segments) as u64);
    k.saturating_mul(n)
        .saturating_sub(k * k.saturating_sub(1) / 2)
}

/// Why there is no plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// The evaluations allowed were used up.
    OutOfTime,
    /// The search has ended.
    NoPlanFound {
        /// Nothing was left untried: there is none.
        complete: bool,
    },
    /// There is no room for so many segments, uses or orders, or the available times are of other
    /// capacities.
    TooLarge,
}

/// A segment that could not be in time behind a partial plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Late<U: Unit = Ticks> {
    /// Its number.
    pub segment: usize,
    /// It could not start before.
    pub start: Instant<U>,
    /// It had to end by then, for itself and for its successors.
    pub effective_deadline: Instant<U>,
    /// So many segments were placed before: 0 says that no plan exists, unless it has a location.
    pub behind: usize,
}

/// A refusal, with how far the search went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refusal<U: Unit = Ticks> {
    /// The reason.
    pub why: Why,
    /// The first segment that could not be in time.
    pub late: Option<Late<U>>,
    /// Segments looked at.
    pub evaluations: u64,
    /// Placements taken back.
    pub backtracks: u64,
}

impl<U: Unit> fmt::Display for Refusal<U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.why {
            Why::OutOfTime => write!(f, "out of time")?,
            Why::NoPlanFound { complete: false } => write!(f, "no plan found")?,
            Why::NoPlanFound { complete: true } => write!(f, "there is no plan")?,
            Why::TooLarge => return write!(f, "no room for these segments"),
        }
        write!(f, ", after {} evaluations", self.evaluations)
    }
}

impl<U: Unit> core::error::Error for Refusal<U> {}
