//! The segments that a CPU executes by a plan, in their order: work guaranteed before it starts
//!
//! The segments of a CPU are numbered in the order of their starts and done in that order. So one
//! number tells how far a CPU is, the *frontier*; other CPUs hear of it by [`crate::Message`]. A
//! segment may start when the frontiers that it needs are reached. Its planned start is not asked:
//! with its needs met it starts earlier, and a plan that is late stays right. Only behind the
//! cutoff of a plan to come nobody starts.
//!
//! ```text
//!   in force   5 6 7 8 9      Hold(cutoff): 8 and 9 start behind it and wait
//!   staged           8 9 10   Commit(from 8): these take the place of 8 and 9
//! ```
//!
//! Source: Humphrey and Stankovic (Spring), §2.2, §3.3.6, §4.4.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use punctual_model::{CpuId, Instant, ThreadId, Work};

/// A segment with its place in the plan: a job of its thread, with its wcet as budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlannedSegment {
    /// Which of its CPU.
    pub number: u64,
    /// The thread that executes it; jobs of this thread come from plans alone.
    pub thread: ThreadId,
    /// It does not start before (the release of its group).
    pub earliest: Instant,
    /// It starts then at the latest, where no time is missing.
    pub start: Instant,
    /// Its budget.
    pub wcet: Work,
    /// The absolute deadline of its job.
    pub deadline: Instant,
    /// Its group, for [`AgendaStep::Kill`].
    pub group: u32,
    /// If its group is killed at the boundary before it, a handler executes instead, for this long.
    pub cleanup: Work,
}

/// A part of a change of what a CPU executes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AgendaStep {
    /// A plan is being made: no segment whose start is at this or later starts until it is in
    /// force, or given up (`None`, which also forgets what is staged).
    Hold {
        /// The cutoff line.
        cutoff: Option<Instant>,
    },
    /// A segment of the next plan; numbers ascend one by one.
    Stage(PlannedSegment),
    /// The segment staged last needs another CPU to be so far.
    Need {
        /// The remote predecessor that stands for that CPU ([`crate::Shard::add_remote`]).
        slot: u32,
        /// Segments of smaller numbers are done there.
        frontier: u64,
    },
    /// The staged segments are in force from now on, in place of those from this number on.
    Commit {
        /// None of them has started.
        from: u64,
    },
    /// The segments of this group that have not started are not executed, in force or staged.
    Kill {
        /// As in [`PlannedSegment::group`].
        group: u32,
        /// But in the place of this one a handler cleans up.
        cleans: Option<u64>,
    },
}

/// Where a CPU is in its plan.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct AgendaView {
    /// Segments of smaller numbers are done.
    pub frontier: u64,
    /// The segment of that number has started, then.
    pub started: Option<Instant>,
    /// Its thread.
    pub thread: Option<ThreadId>,
    /// It cleans up.
    pub cleans: bool,
    /// Segments in force that are not done.
    pub left: usize,
}

/// A segment and its needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Row {
    segment: PlannedSegment,
    /// Where its needs are.
    place: u32,
    dead: bool,
    cleans: bool,
}

/// The next segment, and how it goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Head {
    /// It starts now; or it cleans up.
    Starts(PlannedSegment, bool),
    /// It is not executed.
    Skipped(u64),
}

/// The plan of one shard. Nothing is allocated after setup.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    in_force: VecDeque<Row>,
    staged: Vec<Row>,
    /// By place, then by peer.
    needs: Box<[u64]>,
    places: Vec<u32>,
    /// The remote predecessors that stand for other CPUs, by peer.
    peers: Vec<u32>,
    /// The shards that hear of the frontier: CPU and slot there, and whether it is news.
    outs: Vec<(CpuId, u32, bool)>,
    frontier: u64,
    started: Option<Instant>,
    cleans: bool,
    hold: Option<Instant>,
}

impl Agenda {
    /// Room for so many segments in force and staged together, of shards with these peers.
    pub(crate) fn reserve(&mut self, room: usize) {
        let (rows, peers) = (room.min(1 << 24), self.peers.len());
        self.in_force = VecDeque::with_capacity(rows);
        self.staged = Vec::with_capacity(rows);
        self.needs = vec![0; rows * peers].into_boxed_slice();
        self.places = (0..u32::try_from(rows).unwrap_or(u32::MAX)).rev().collect();
    }

    pub(crate) fn add_peer(&mut self, slot: u32, to: CpuId, there: u32) {
        self.peers.push(slot);
        self.outs.push((to, there, false));
    }

    pub(crate) fn view(&self) -> AgendaView {
        AgendaView {
            frontier: self.frontier,
            started: self.started,
            thread: self.running(),
            cleans: self.cleans,
            left: self.in_force.len(),
        }
    }

    pub(crate) fn hold(&mut self, cutoff: Option<Instant>) {
        self.hold = cutoff;
        if cutoff.is_none() {
            self.forget_staged();
        }
    }

    fn forget_staged(&mut self) {
        self.places
            .extend(self.staged.drain(..).map(|row| row.place));
    }

    /// `false`: there is no room, or it does not come next.
    pub(crate) fn stage(&mut self, segment: PlannedSegment) -> bool {
        let follows = self
            .staged
            .last()
            .is_none_or(|row| row.segment.number.checked_add(1) == Some(segment.number));
        let Some(place) = self.places.pop_if(|_| follows) else {
            return false;
        };
        let peers = self.peers.len();
        self.needs[place as usize * peers..][..peers].fill(0);
        self.staged.push(Row {
            segment,
            place,
            dead: false,
            cleans: false,
        });
        true
    }

    /// `false`: nothing is staged, or no peer has this slot.
    pub(crate) fn need(&mut self, slot: u32, frontier: u64) -> bool {
        let peer = self.peers.iter().position(|&peer| peer == slot);
        let (Some(row), Some(peer)) = (self.staged.last(), peer) else {
            return false;
        };
        self.needs[row.place as usize * self.peers.len() + peer] = frontier;
        true
    }

    /// `false`: the staged ones do not follow those that stay, or one from `from` on has started.
    pub(crate) fn commit(&mut self, from: u64) -> bool {
        let first_to_go = match self.started {
            Some(_) => self.frontier + 1,
            None => self.frontier,
        };
        let before = usize::try_from(from.saturating_sub(self.frontier));
        let stay = self.in_force.len().min(before.unwrap_or(usize::MAX));
        let next = self.frontier + stay as u64;
        let follows = self
            .staged
            .first()
            .is_none_or(|row| row.segment.number == next);
        if from < first_to_go || !follows {
            return false;
        }
        while self.in_force.len() > stay {
            self.places
                .extend(self.in_force.pop_back().map(|row| row.place));
        }
        self.in_force.extend(self.staged.drain(..));
        self.hold = None;
        true
    }

    /// O(segments).
    pub(crate) fn kill(&mut self, group: u32, cleans: Option<u64>) {
        let started = usize::from(self.started.is_some());
        let waiting = self.in_force.iter_mut().skip(started);
        let of_group = |row: &&mut Row| row.segment.group == group;
        for row in waiting.chain(&mut self.staged).filter(of_group) {
            let cleaned_up = !row.segment.cleanup.is_zero();
            row.cleans |= cleans == Some(row.segment.number) && cleaned_up;
            row.dead = true;
        }
    }

    /// The next segment, if it goes on at `now`; `remote` tells how far the CPU behind a slot is.
    /// O(CPUs).
    pub(crate) fn next(&mut self, now: Instant, remote: impl Fn(u32) -> u64) -> Option<Head> {
        let row = self.in_force.front().filter(|_| self.started.is_none())?;
        let segment = row.segment;
        // Behind a cutoff numbers are given anew, also those of the dead.
        if self.hold.is_some_and(|cutoff| segment.start >= cutoff) {
            return None;
        }
        let peers = self.peers.len();
        let needs = &self.needs[row.place as usize * peers..][..peers];
        let mut each = self.peers.iter().zip(needs);
        if !each.all(|(&slot, &need)| remote(slot) >= need) {
            return None;
        }
        let cleans = row.cleans;
        if row.dead && !cleans {
            // Not before: others count on it that those before it are done when it is.
            self.end();
            return Some(Head::Skipped(segment.number));
        }
        if now < segment.earliest {
            return None;
        }
        (self.started, self.cleans) = (Some(now), cleans);
        Some(Head::Starts(segment, cleans))
    }

    /// When the next segment's release comes, if that is all that it waits for.
    pub(crate) fn due(&self) -> Option<Instant> {
        let row = self.in_force.front().filter(|_| self.started.is_none())?;
        let held = self.hold.is_some_and(|cutoff| row.segment.start >= cutoff);
        (!held).then_some(row.segment.earliest)
    }

    /// The thread of the segment that has started.
    pub(crate) fn running(&self) -> Option<ThreadId> {
        let row = self.in_force.front().filter(|_| self.started.is_some())?;
        Some(row.segment.thread)
    }

    /// The first segment is done.
    pub(crate) fn end(&mut self) {
        self.places
            .extend(self.in_force.pop_front().map(|row| row.place));
        self.frontier += 1;
        self.started = None;
        for out in &mut self.outs {
            out.2 = true;
        }
    }

    #[inline]
    pub(crate) fn has_message(&self) -> bool {
        self.outs.iter().any(|out| out.2)
    }

    /// The CPU that is to hear of the frontier, this CPU's slot there, and the frontier.
    pub(crate) fn take_news(&mut self) -> Option<(CpuId, u32, u64)> {
        let news = self.outs.iter_mut().find(|out| out.2)?;
        news.2 = false;
        let (to, slot, _) = *news;
        Some((to, slot, self.frontier))
    }
}
