//! Gaps in the execution of a thread that does nothing but look at the clock.

use std::collections::VecDeque;

use crate::sys::{self, HostClass};
use crate::time::clock::{Clock, clock_rate};

/// Shorter gaps are interrupts of the kernel's own.
const GAP_NS: u64 = 10_000;

/// Gaps in the execution of one thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Gaps {
    /// How many were longer than 10 us.
    pub count: u64,
    /// Their sum in nanoseconds.
    pub total_ns: u64,
    /// The longest in nanoseconds.
    pub longest_ns: u64,
    /// Most of it in any [`Gaps::WINDOW_NS`], in nanoseconds.
    pub densest_ns: u64,
    /// How long was looked, in nanoseconds.
    pub observed_ns: u64,
}

impl Gaps {
    /// The length of the window that [`Gaps::densest_ns`] is about.
    pub const WINDOW_NS: u64 = 10_000_000;
}

/// The gaps of the last window, and the most that was missing in any so far. All in ticks.
struct Window {
    length: u64,
    gaps: VecDeque<(u64, u64)>,
    missing: u64,
    densest: u64,
}

impl Window {
    /// Room for as many gaps of 10 us as a window holds: noting one takes no time of its own.
    fn new(length: u64) -> Window {
        Window {
            length,
            gaps: VecDeque::with_capacity(1_002),
            missing: 0,
            densest: 0,
        }
    }

    /// Nothing was executed between `start` and `end`. Among the windows in which most is missing
    /// one ends where a gap ends, so no other is looked at; what lies in it partly counts for that
    /// part.
    fn gap(&mut self, start: u64, end: u64) {
        self.gaps.push_back((start, end));
        self.missing += end - start;
        let begin = end.saturating_sub(self.length);
        while let Some(&(first, last)) = self.gaps.front()
            && last <= begin
        {
            self.missing -= last - first;
            self.gaps.pop_front();
        }
        let outside = match self.gaps.front() {
            Some(&(first, _)) => begin.saturating_sub(first),
            None => 0,
        };
        self.densest = self.densest.max(self.missing - outside);
    }
}

/// Spins on a host CPU for `ns` nanoseconds, under SCHED_FIFO where granted, and reports the gaps.
pub fn scan_gaps(host: u32, ns: u64) -> Gaps {
    let scan = move || {
        // A refusal shows in the figure.
        let _ = sys::pin(None, &[host]);
        // Not longer than the kernel tolerates: the scan must not freeze a machine of one CPU.
        if ns < 1_000_000_000 {
            let _ = sys::set_host_class(None, HostClass::fifo(1));
        }
        let clock = Clock::starting_in(clock_rate(), 0);
        let (end, least) = (clock.ticks(ns), clock.ticks(GAP_NS));
        let (mut gaps, mut last) = (Gaps::default(), clock.now());
        let mut window = Window::new(clock.ticks(Gaps::WINDOW_NS));
        while last.ticks() < end {
            let now = clock.now();
            let gap = now.since(last).ticks();
            if gap > least {
                gaps.count += 1;
                gaps.total_ns += clock.ns(gap);
                gaps.longest_ns = gaps.longest_ns.max(clock.ns(gap));
                window.gap(last.ticks(), now.ticks());
            }
            last = now;
        }
        gaps.observed_ns = clock.ns(last.ticks());
        gaps.densest_ns = clock.ns(window.densest);
        gaps
    };
    let thread = std::thread::Builder::new()
        .name("punctual/scan".to_owned())
        .spawn(scan);
    thread
        .ok()
        .and_then(|thread| thread.join().ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_densest_window_counts_parts_of_gaps_and_no_more_than_itself() {
        let mut window = Window::new(100);
        window.gap(10, 30);
        assert_eq!(window.densest, 20);
        window.gap(90, 120);
        // From 20 to 120: ten of the first, all of the second.
        assert_eq!(window.densest, 40);
        window.gap(500, 510);
        assert_eq!(window.densest, 40);
        window.gap(1_000, 2_000);
        assert_eq!(window.densest, 100);
    }
}
