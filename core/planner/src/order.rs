//! The needs of a segment: others that have to be done before it may start, at any time
//!
//! A plan is instants; executions are shorter than planned, or late where time was taken. So
//! exclusion never rests on instants. The segments of a CPU are numbered in the order of their
//! starts and done in that order, so one number tells how far a CPU is. A segment needs one number
//! of each CPU. It counts the last segment there that the plan has before it on that CPU, on a
//! resource with which it conflicts, or by precedence.
//!
//! ```text
//!   exclusive use   needs the last exclusive use, and all shared ones since
//!   shared use      needs the last exclusive use
//! ```
//!
//! Those are all: others before them are done when they are. With that a segment may also start
//! *before* its planned start: nobody starts later than planned by it. Source: Shen, Ramamritham
//! and Stankovic, TPDS 4(4), 1993 (resource reclaiming); the rule by dependencies is our own.

use alloc::vec::Vec;

use punctual_model::{Mode, Unit};

use crate::{Capacities, Placement, Segments};

/// The needs of the segments of a plan. Nothing is allocated after [`Order::new`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Order {
    cpus: usize,
    /// By segment: which of its CPU it is.
    numbers: Vec<u64>,
    /// By segment, then by CPU: how many must be done there.
    needs: Vec<u64>,
    by_start: Vec<usize>,
    /// By CPU: the number of the next segment.
    next: Vec<u64>,
    /// By resource, then by CPU: the need of a shared use, which is the last exclusive one.
    exclusive: Vec<u64>,
    /// Likewise: the shared uses since.
    shared: Vec<u64>,
}

impl Order {
    /// Room for the plans of a planner of the same capacities.
    pub fn new(capacities: Capacities) -> Order {
        let (n, cpus) = (capacities.segments, capacities.cpus.max(1));
        Order {
            cpus,
            numbers: Vec::with_capacity(n),
            needs: Vec::with_capacity(n * cpus),
            by_start: Vec::with_capacity(n),
            next: Vec::with_capacity(cpus),
            exclusive: Vec::with_capacity(capacities.resources * cpus),
            shared: Vec::with_capacity(capacities.resources * cpus),
        }
    }

    /// That of a plan, a placement for each segment, where so many were done on each CPU before all
    /// that it has.
    ///
    /// O(n log n) to sort n segments by their starts, then O(m) for each use, with m CPUs, and O(1)
    /// for each order.
    ///
    /// # Panics
    /// A segment without a placement, or other capacities.
    pub fn set<U: Unit>(
        &mut self,
        segments: &Segments<U>,
        placements: &[Placement<U>],
        done: &[u64],
    ) {
        let (n, m) = (segments.len(), self.cpus);
        let resources = segments.capacities().resources;
        self.numbers.clear();
        self.numbers.resize(n, 0);
        for (times, length) in [
            (&mut self.needs, n * m),
            (&mut self.exclusive, resources * m),
            (&mut self.shared, resources * m),
        ] {
            times.clear();
            times.resize(length, 0);
        }
        self.next.clear();
        self.next.extend_from_slice(done);
        self.by_start.clear();
        self.by_start.extend(0..n);
        // Segments are not empty, so of two that exclude each other the first one starts first.
        self.by_start
            .sort_unstable_by_key(|&number| (placements[number].start, number));
        for position in 0..n {
            let segment = self.by_start[position];
            let cpu = placements[segment].cpu;
            let number = self.next[cpu];
            self.next[cpu] += 1;
            self.numbers[segment] = number;
            self.need(segment, cpu, number);
            for used in segments.uses(segment) {
                self.need_uses(segment, used.resource * m, used.mode);
            }
            for used in segments.uses(segment) {
                self.use_by(used.resource * m, used.mode, cpu, number + 1);
            }
            for after in segments.successors(segment) {
                self.need(after, cpu, number + 1);
            }
        }
    }

    fn need(&mut self, segment: usize, cpu: usize, number: u64) {
        let need = &mut self.needs[segment * self.cpus + cpu];
        *need = number.max(*need);
    }

    /// `row` is where the numbers of the resource begin.
    fn need_uses(&mut self, segment: usize, row: usize, mode: Mode) {
        for cpu in 0..self.cpus {
            self.need(segment, cpu, self.exclusive[row + cpu]);
            if mode == Mode::Exclusive {
                self.need(segment, cpu, self.shared[row + cpu]);
            }
        }
    }

    fn use_by(&mut self, row: usize, mode: Mode, cpu: usize, done: u64) {
        match mode {
            Mode::Shared => self.shared[row + cpu] = done,
            Mode::Exclusive => {
                self.shared[row..row + self.cpus].fill(0);
                self.exclusive[row..row + self.cpus].fill(0);
                self.exclusive[row + cpu] = done;
            }
        }
    }

    /// Which of its CPU a segment is.
    ///
    /// # Panics
    /// A number that is none.
    pub fn number(&self, segment: usize) -> u64 {
        self.numbers[segment]
    }

    /// How many must be done on each CPU before a segment starts.
    ///
    /// # Panics
    /// A number that is none.
    pub fn needs(&self, segment: usize) -> &[u64] {
        &self.needs[segment * self.cpus..][..self.cpus]
    }

    /// Whether a segment may start when so many are done on each CPU. O(CPUs).
    ///
    /// # Panics
    /// A number that is none.
    pub fn may_start(&self, segment: usize, done: &[u64]) -> bool {
        self.needs(segment)
            .iter()
            .zip(done)
            .all(|(need, done)| need <= done)
    }

    /// The segments in the order of their starts.
    pub fn by_start(&self) -> &[usize] {
        &self.by_start
    }
}
