//! The boundaries of a CPU's frame: the core's work there, and when the next slot begins.
//!
//! ```text
//!    slot of a      e                  s      slot of b
//!   ================|                  |=========================
//!                   [..late..|work]    [work|..raise..]
//!                            `--- the boundary takes the sum of both ---'
//! ```
//!
//! A slot starts where the frame says, whatever the boundary before it took. If somebody ran, a
//! boundary takes the time from the end of a slot until the core has nothing more to do for that.
//! Then it takes the time from the start of the next slot until its owner goes on.
//!
//! A boundary that takes more than the declared scheduling time is counted, by its cause. It is
//! missing time, if the boundary were within without it. Else it is the late timer, if the boundary
//! were within had the entries come in time; else the work of the core.
//!
//! The core decides on the next slot *before* it starts, as far as the time between the slots
//! reaches ([`AHEAD_NS`]). The entry has the instant of the start, sets the timer, raises a
//! program, and waits. So the owner goes on at the start, not after the time that deciding took.
//!
//! Source: CompOSe §3.3 and §4.1 (a constant time between slots, and what it is spent on).

use core::cell::{Cell, RefCell};

use punctual_kern::SlotTerms;
use punctual_model::{Instant, PolicyKind, Span};

use crate::record::outcome::{BoundaryCounters, HeldUp, HeldUpBy, Spread};
use crate::time::distribution::Distribution;

/// The core decides so long before a slot starts, at most: longer than an entry takes that sets the
/// timer, on a virtual machine.
pub(crate) const AHEAD_NS: u64 = 40_000;

/// Boundaries that were held up are kept, so many at most: 64 KiB.
const MOST_HELD_UP: usize = 4_096;

/// The frame of a CPU whose own policy divides time, in ticks.
#[derive(Clone, Debug)]
pub struct SlotFrame {
    length: u64,
    scheduling: Span,
    /// From the start of the frame: the starts and ends of slots, in order; an end before a start.
    edges: Box<[(u64, Edge)]>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Edge {
    End,
    Start,
}

impl SlotFrame {
    /// The frame of a CPU with this policy, of whose slots the CPU's own count (node 0); `None`: it
    /// does not divide time. O(n log n).
    pub fn of(policy: PolicyKind, slots: &[SlotTerms]) -> Option<SlotFrame> {
        let PolicyKind::Tdm { frame, scheduling } = policy else {
            return None;
        };
        let own = slots.iter().filter(|slot| slot.node == 0);
        let edges = own.flat_map(|slot| {
            let end = slot.at.saturating_add(slot.length);
            [(slot.at.ticks(), Edge::Start), (end.ticks(), Edge::End)]
        });
        let mut edges: Box<[_]> = edges.collect();
        edges.sort_unstable();
        (!edges.is_empty()).then_some(SlotFrame {
            length: frame.ticks().max(1),
            scheduling,
            edges,
        })
    }

    /// The last edge at or before an instant, and the first one behind it. O(log slots).
    fn around(&self, now: Instant) -> ((Instant, Edge), Instant) {
        let offset = now.ticks() % self.length;
        let frame = now.ticks() - offset;
        let next = self.edges.partition_point(|(at, _)| *at <= offset);
        let at = |frame: u64, index: usize| {
            Instant::from_ticks(frame.saturating_add(self.edges[index].0))
        };
        let last = match next.checked_sub(1) {
            Some(last) => (at(frame, last), self.edges[last].1),
            // In the frame before, if there was one.
            None => {
                let last = self.edges.len() - 1;
                (
                    at(frame.saturating_sub(self.length), last),
                    self.edges[last].1,
                )
            }
        };
        let behind = match next < self.edges.len() {
            true => at(frame, next),
            false => at(frame.saturating_add(self.length), 0),
        };
        (last, behind)
    }
}

/// The part of a boundary that is over.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    /// From the edge until the core had nothing more to do for it.
    taken: Span,
    /// Of that, until the entry had come: its timer was late.
    late: Span,
    /// The same of the start of the slot alone.
    late_start: Span,
    /// Executed by the core.
    work: Span,
    /// Of what was taken, nobody's.
    missing: Span,
    /// Of that, behind the start of the slot: this alone held its owner up.
    missing_start: Span,
}

/// An entry that is about to leave the core.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaving {
    /// Its instant, what it executed, and the time now.
    pub(crate) entered: Instant,
    pub(crate) work: Span,
    pub(crate) left: Instant,
    /// Whether a thread had the processor before.
    pub(crate) ran: bool,
    /// All missing time of the run so far.
    pub(crate) missing: Span,
    /// Whether a thread goes on, and whether a group of the kernel's runs in its place.
    pub(crate) runs: bool,
    pub(crate) by_group: bool,
}

/// The boundaries of one CPU as they were seen. To be used with its gate closed.
#[derive(Debug)]
pub(crate) struct Boundaries {
    frame: SlotFrame,
    /// Entries before this cross no edge.
    next: Cell<Instant>,
    /// A slot has ended, and the next has not begun; its entry left the core then.
    ended: Cell<Option<(Taken, Instant)>>,
    /// A slot has begun, and its group is about to be raised.
    raising: Cell<Option<(Instant, Taken)>>,
    missing_before: Cell<Span>,
    /// Less than this has not delayed anything.
    noise: Span,
    work: Distribution,
    late: Distribution,
    late_groups: Distribution,
    disturbed: Cell<u64>,
    over_own: Cell<u64>,
    over_timer: Cell<u64>,
    over_missing: Cell<u64>,
    /// The start of each slot, in ticks, that was held up by something outside of the core.
    held_up: RefCell<Vec<(Instant, HeldUpBy)>>,
}

impl Boundaries {
    /// Of this frame, and with this noise of missing time, from the start of the run on.
    /// Allocates 76 KiB.
    pub(crate) fn new(frame: SlotFrame, noise: Span) -> Boundaries {
        let (_, next) = frame.around(Instant::ZERO);
        Boundaries {
            frame,
            next: Cell::new(next),
            ended: Cell::new(None),
            raising: Cell::new(None),
            missing_before: Cell::new(Span::ZERO),
            noise,
            work: Distribution::new(),
            late: Distribution::new(),
            late_groups: Distribution::new(),
            disturbed: Cell::new(0),
            over_own: Cell::new(0),
            over_timer: Cell::new(0),
            over_missing: Cell::new(0),
            held_up: RefCell::new(Vec::with_capacity(MOST_HELD_UP)),
        }
    }

    /// The slots that were held up, in order, as far as there was room; in nanoseconds by `ns`.
    pub(crate) fn held_up(&self, ns: impl Fn(u64) -> u64) -> Vec<HeldUp> {
        let of = |&(start, by): &(Instant, HeldUpBy)| HeldUp {
            start_ns: ns(start.ticks()),
            by,
        };
        self.held_up.borrow().iter().map(of).collect()
    }

    /// The slot that began then was held up.
    fn note_held_up(&self, start: Instant, by: HeldUpBy) {
        // What has room does not allocate.
        if let Ok(mut all) = self.held_up.try_borrow_mut()
            && all.len() < all.capacity()
        {
            all.push((start, by));
        }
    }

    /// Whether an entry at `entered` comes behind an edge that none before it came behind.
    #[inline]
    pub(crate) fn is_crossed(&self, entered: Instant) -> bool {
        entered >= self.next.get()
    }

    /// The slot that starts next, if nobody's time lies between now and its start, and that is less
    /// than `within` away. O(log slots).
    pub(crate) fn starts_within(&self, now: Instant, within: Span) -> Option<Instant> {
        let ((_, kind), next) = self.frame.around(now);
        let is_start = || self.frame.around(next).0.1 == Edge::Start;
        (kind == Edge::End && next.since(now) <= within && is_start()).then_some(next)
    }

    /// Whether an instant is that of the next start, `within` which that is, or right `behind` it.
    pub(crate) fn is_of_next(&self, now: Instant, at: Instant, within: Span, behind: Span) -> bool {
        let is_its = |start: Instant| at >= start && at.since(start) <= behind;
        now < at && self.starts_within(now, within).is_some_and(is_its)
    }

    /// An entry that crossed an edge leaves the core. O(log slots).
    pub(crate) fn leave(&self, entry: Leaving) {
        let ((edge, kind), next) = self.frame.around(entry.entered);
        let since = self.next.replace(next);
        let new = entry
            .missing
            .saturating_sub(self.missing_before.replace(entry.missing));
        let taken = Taken {
            taken: entry.left.since(edge),
            late: entry.entered.since(edge),
            late_start: entry.entered.since(edge),
            work: entry.work,
            // What was missing before the edge has delayed nothing here.
            missing: new.min(entry.left.since(edge)),
            missing_start: new.min(entry.left.since(edge)),
        };
        if kind == Edge::End {
            self.ended.set(Some((taken, entry.left)));
            return;
        }
        // A slot that ended in the same breath is over since then.
        let with_end = entry.ran && since < edge && self.ended.get().is_none();
        let (before, free) = self.ended.take().unwrap_or_default();
        let (took, late) = match with_end {
            true => (entry.left.since(since), entry.entered.since(since)),
            false => (
                before.taken.saturating_add(taken.taken),
                before.late.saturating_add(taken.late),
            ),
        };
        let all = Taken {
            taken: took,
            late,
            late_start: taken.late_start,
            work: before.work.saturating_add(taken.work),
            missing: before.missing.saturating_add(taken.missing),
            // Nor has what was missing before the start, if time was free behind it.
            missing_start: before
                .missing
                .min(free.since(edge))
                .saturating_add(taken.missing)
                .min(taken.taken),
        };
        if entry.by_group {
            self.raising.set(Some((edge, all)));
        } else {
            self.close(all, entry.runs.then_some((edge, entry.left)), &self.late);
        }
    }

    /// The group whose slot has begun is raised now. Its carrier sleeps next.
    pub(crate) fn raised(&self, now: Instant) {
        if let Some((edge, mut all)) = self.raising.take() {
            let more = now.since(edge).saturating_sub(all.taken);
            (all.taken, all.work) = (
                all.taken.saturating_add(more),
                all.work.saturating_add(more),
            );
            self.close(all, Some((edge, now)), &self.late_groups);
        }
    }

    /// A boundary is over; its slot began at the first instant, its owner went on at the second.
    fn close(&self, all: Taken, began: Option<(Instant, Instant)>, late: &Distribution) {
        let more = |cell: &Cell<u64>| cell.set(cell.get() + 1);
        self.work.keep(all.work);
        if all.missing > self.noise {
            more(&self.disturbed);
        } else if let Some((edge, at)) = began {
            late.keep(at.since(edge));
        }
        let held_up = match () {
            () if all.missing_start > self.noise => Some(HeldUpBy::MissingTime),
            () if all.late_start > self.noise => Some(HeldUpBy::LateTimer),
            () => None,
        };
        if let (Some((edge, _)), Some(by)) = (began, held_up) {
            self.note_held_up(edge, by);
        }
        let declared = self.frame.scheduling;
        if !declared.is_zero() && all.taken > declared {
            let [ours, in_time] = [all.missing, all.late].map(|of| all.taken.saturating_sub(of));
            more(if ours <= declared {
                &self.over_missing
            } else if in_time.min(all.work) <= declared {
                &self.over_timer
            } else {
                &self.over_own
            });
        }
    }

    /// All of it, in nanoseconds by `ns`.
    pub(crate) fn counters(&self, ns: impl Fn(u64) -> u64) -> BoundaryCounters {
        let spread = |of: &Distribution| Spread {
            count: of.count(),
            p50_ns: ns(of.quantile(500).ticks()),
            p99_ns: ns(of.quantile(990).ticks()),
            max_ns: ns(of.longest().ticks()),
        };
        BoundaryCounters {
            declared_ns: ns(self.frame.scheduling.ticks()),
            work: spread(&self.work),
            late: spread(&self.late),
            late_programs: spread(&self.late_groups),
            disturbed: self.disturbed.get(),
            over_own: self.over_own.get(),
            over_timer: self.over_timer.get(),
            over_missing: self.over_missing.get(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ticks: u64) -> Instant {
        Instant::from_ticks(ticks)
    }

    /// A frame of 1,000 with slots from 0 to 400 and from 500 to 900.
    fn frame(scheduling: u64) -> SlotFrame {
        let slot = |(entity, at): (u32, u64)| SlotTerms {
            node: 0,
            entity,
            at: Span::from_ticks(at),
            length: Span::from_ticks(400),
        };
        let policy = PolicyKind::Tdm {
            frame: Span::from_ticks(1_000),
            scheduling: Span::from_ticks(scheduling),
        };
        let of = SlotFrame::of(policy, &[(1, 500), (0, 0)].map(slot));
        assert!(SlotFrame::of(PolicyKind::Fifo, &[]).is_none());
        of.expect("it divides time")
    }

    /// One entry after the other: when it came, how long it took, the missing time of the run.
    fn seen(scheduling: u64, entries: &[(u64, u64, u64)]) -> BoundaryCounters {
        let all = Boundaries::new(frame(scheduling), Span::from_ticks(4));
        for &(entered, work, missing) in entries {
            let entered = at(entered);
            if all.is_crossed(entered) {
                all.leave(Leaving {
                    entered,
                    work: Span::from_ticks(work),
                    left: entered.saturating_add(Span::from_ticks(work)),
                    ran: true,
                    missing: Span::from_ticks(missing),
                    runs: true,
                    by_group: false,
                });
            }
        }
        all.counters(|ticks| ticks)
    }

    #[test]
    fn a_boundary_takes_what_its_two_entries_take_of_the_frame() {
        let seen = seen(
            50,
            &[
                (0, 9, 0),
                (403, 5, 0),
                (450, 90, 0),
                (500, 7, 0),
                (600, 90, 0),
            ],
        );
        assert_eq!((seen.work.count, seen.work.max_ns), (1, 12));
        assert_eq!((seen.late.count, seen.late.max_ns), (1, 7));
        assert_eq!([seen.over_own, seen.over_missing, seen.disturbed], [0; 3]);
        assert_eq!(seen.over_timer, 0);
        assert_eq!(seen.declared_ns, 50);
    }

    #[test]
    fn one_that_takes_longer_than_declared_is_counted_by_its_cause() {
        let over = |of: &BoundaryCounters| [of.over_own, of.over_timer, of.over_missing];
        // In time, and 44 + 7 of work.
        let own = seen(50, &[(400, 44, 0), (500, 7, 0)]);
        assert_eq!((over(&own), own.disturbed), ([1, 0, 0], 0));
        // The work is 12; the timer was late by 40 at the end, and by 9 at the start.
        let timer = seen(50, &[(440, 5, 0), (509, 7, 0)]);
        assert_eq!((over(&timer), timer.disturbed), ([0, 1, 0], 0));
        // Late as well, but 51 of work are too much by themselves.
        let both = seen(50, &[(420, 44, 0), (509, 7, 0)]);
        assert_eq!(over(&both), [1, 0, 0]);
        // 45 of the 48 were missing: without them it is within.
        let missing = seen(50, &[(448, 5, 45), (500, 7, 45)]);
        assert_eq!(over(&missing), [0, 0, 1]);
        assert_eq!((missing.disturbed, missing.late.count), (1, 0));
        // What was missing before the end of the slot delayed nothing.
        let before = seen(50, &[(401, 60, 300), (500, 7, 300)]);
        assert_eq!(over(&before), [0, 0, 1]);
        let free = seen(0, &[(448, 500, 0), (1_003, 9, 0)]);
        assert_eq!(over(&free), [0; 3], "nothing is declared");
    }

    #[test]
    fn a_slot_that_was_held_up_is_kept_with_the_cause_and_no_other() {
        let all = Boundaries::new(frame(50), Span::from_ticks(4));
        let enter = |entered: u64, missing: u64| {
            all.leave(Leaving {
                entered: at(entered),
                work: Span::from_ticks(2),
                left: at(entered + 2),
                ran: true,
                missing: Span::from_ticks(missing),
                runs: true,
                by_group: false,
            });
        };
        // In time; at its start by nine late; late as well, because time was missing.
        enter(400, 0);
        enter(500, 0);
        enter(930, 0);
        enter(1_009, 0);
        enter(1_400, 0);
        enter(1_508, 8);
        let seen = all.held_up(|ticks| ticks);
        let seen: Vec<_> = seen.iter().map(|held| (held.start_ns, held.by)).collect();
        let missing = HeldUpBy::MissingTime;
        assert_eq!(seen, [(1_000, HeldUpBy::LateTimer), (1_500, missing)]);
    }

    #[test]
    fn what_was_missing_at_an_end_holds_the_next_slot_up_only_behind_its_start() {
        let held_up = |end: (u64, u64, u64), start: u64| {
            let all = Boundaries::new(frame(50), Span::from_ticks(4));
            let enter = |entered: u64, left: u64, missing: u64| {
                all.leave(Leaving {
                    entered: at(entered),
                    work: Span::from_ticks(2),
                    left: at(left),
                    ran: true,
                    missing: Span::from_ticks(missing),
                    runs: true,
                    by_group: false,
                });
            };
            enter(end.0, end.1, end.2);
            enter(start, start + 2, end.2);
            let seen = all.held_up(|ticks| ticks);
            seen.iter().map(|held| held.by).collect::<Vec<_>>()
        };
        // Time was free between the end and the start.
        assert_eq!(held_up((440, 442, 38), 500), []);
        assert_eq!(held_up((440, 442, 38), 509), [HeldUpBy::LateTimer]);
        // It was missing at the start, too.
        assert_eq!(held_up((440, 520, 75), 520), [HeldUpBy::MissingTime]);
    }

    #[test]
    fn an_end_that_is_served_with_the_next_start_took_all_the_time_between() {
        let late = seen(90, &[(520, 5, 0)]);
        assert_eq!((late.over_timer, late.late.max_ns), (1, 25));
        assert_eq!(late.work.max_ns, 5);
    }

    #[test]
    fn the_next_slot_is_decided_ahead_of_its_start_but_in_nobodys_slot() {
        let of = Boundaries::new(frame(50), Span::ZERO);
        let next = |now, within| of.starts_within(at(now), Span::from_ticks(within));
        assert_eq!(next(470, 40), Some(at(500)));
        assert_eq!(
            next(400, 100),
            Some(at(500)),
            "as soon as the slot before is over"
        );
        assert_eq!(next(980, 40), Some(at(1_000)), "in the next frame");
        assert_eq!(next(450, 40), None, "too far away");
        assert_eq!(next(399, 200), None, "somebody has the time before");
        assert_eq!(next(500, 600), None, "it has started");
    }

    #[test]
    fn an_instant_is_decided_ahead_for_the_start_that_is_near_alone() {
        let of = Boundaries::new(frame(50), Span::from_ticks(4));
        let is_of_next = |now, instant| {
            let [within, behind] = [40, 1].map(Span::from_ticks);
            of.is_of_next(at(now), at(instant), within, behind)
        };
        assert!(is_of_next(470, 500) && is_of_next(470, 501));
        assert!(!is_of_next(470, 502), "too far behind");
        assert!(!is_of_next(470, 1_500), "of another start");
        assert!(!is_of_next(470, 480), "before it");
        assert!(!is_of_next(450, 500), "not near yet");
        assert!(!is_of_next(500, 500), "it has started");
    }

    #[test]
    fn the_start_of_the_next_slot_does_not_move_whatever_the_boundary_took() {
        let of = frame(50);
        let starts = |late: u64| {
            let mut now = at(0);
            let mut all = Vec::new();
            while all.len() < 40 {
                let ((edge, kind), next) = of.around(now);
                if kind == Edge::Start {
                    all.push(edge.ticks());
                }
                now = next.saturating_add(Span::from_ticks(late));
            }
            all
        };
        let on_time = starts(0);
        assert_eq!(on_time[..4], [0, 500, 1_000, 1_500]);
        // So late that no slot is skipped, however often.
        assert_eq!(starts(99), on_time);
    }
}
