//! The one way to every plan: new groups beside those that are executed, of which there may be none
//!
//! [`Book`] plans them, as it does for virtual time. A segment that starts before the cutoff stays
//! where it is, and everything behind it is planned together, or nothing is changed.
//!
//! # Assumptions
//! 1. Running families have lawful places.

use alloc::vec;
use alloc::vec::Vec;

use punctual_model::{Instant, Ns, Span};
use punctual_planner::{Accepted, Ask, Book, Capacities, Placement, Refusal, Segments};

use super::answer::PlannedSegment;
use super::expand::{Expanded, Instance, Parts};
use crate::error::{AnalysisError, Checked};

/// One arrival of a group that is planned, with the children that are planned with it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Family {
    pub(crate) root: Instance,
    /// All its segments, in the order in which [`Parts::expand`] numbers them.
    pub(crate) segments: Vec<Executed>,
}

/// A planned segment, and how far it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Executed {
    pub(crate) planned: PlannedSegment,
    pub(crate) has_started: bool,
    pub(crate) has_ended: bool,
    /// It is over, and the planner has planned since: it takes no more time of it.
    pub(crate) is_forgotten: bool,
    /// Its group was killed before it started.
    pub(crate) is_dead: bool,
    /// It was taken out of the plan for that.
    pub(crate) is_gone: bool,
}

/// New arrivals beside running families, for a planner.
pub(crate) struct Beside {
    pub(crate) book: Book<Ns>,
    old: Expanded,
    pub(crate) new: Expanded,
    /// By arrival that runs: it was killed.
    dead: Vec<bool>,
}

impl Beside {
    /// The book of a planner in which these families run since `begin`, told how far they are.
    pub(crate) fn new(
        parts: &Parts<'_>,
        running: &[Family],
        begin: Instant<Ns>,
        arrivals: &[Instance],
    ) -> Checked<Beside> {
        let roots: Vec<Instance> = running.iter().map(|family| family.root).collect();
        let old = parts.expand(&roots, None)?;
        let new = parts.expand(arrivals, Some(&old))?;
        let mut book = Book::told(sum(old.segments.capacities(), new.segments.capacities()));
        let all = || running.iter().flat_map(|family| &family.segments);
        let mut dead = vec![false; old.instances.len()];
        for (one, &(whose, _)) in all().zip(&old.parts) {
            dead[whose] |= one.is_dead;
        }
        let (mut numbers, mut count) = (Vec::with_capacity(old.parts.len()), 0);
        for one in all() {
            numbers.push((!one.is_gone).then_some(count));
            count += usize::from(!one.is_gone);
        }
        let mut there = Segments::new(old.segments.capacities());
        let added = there.add(&old.segments, |number| numbers[number]);
        added.map_err(|_| another())?;
        let segments = || all().filter(|one| !one.is_gone);
        let places = segments().map(|one| Placement {
            cpu: one.planned.node,
            start: one.planned.start,
            end: one.planned.end,
        });
        let places: Vec<Placement<Ns>> = places.collect();
        let appended = book.append(begin, &there, &places);
        appended.map_err(|_| another())?;
        let order = (0..there.len()).map(|number| book.order().number(number));
        let order: Vec<u64> = order.collect();
        for (one, &order) in segments().zip(&order).filter(|(one, _)| one.is_forgotten) {
            book.done(one.planned.node, order + 1);
        }
        if segments().any(|one| one.is_forgotten) {
            // With nothing new, all that is done leaves the book.
            let nothing = Segments::new(old.segments.capacities());
            let _ = book.append(begin, &nothing, &[]);
        }
        for (one, &order) in segments().zip(&order) {
            if one.has_ended {
                book.done(one.planned.node, order + 1);
            } else if one.has_started {
                book.started(one.planned.node, order, one.planned.start);
            }
        }
        let beside = Beside {
            book,
            old,
            new,
            dead,
        };
        Ok(beside)
    }

    /// Plans the new arrivals beside the others.
    pub(crate) fn ask(&mut self, ask: &Ask<Ns>) -> Result<Accepted<Ns>, Refusal<Ns>> {
        let dead = |whose: u32| self.dead.get(whose as usize).is_some_and(|dead| *dead);
        self.book.ask(ask, &self.new.segments, dead)
    }

    /// The arrival and the place of the segment with this tag.
    pub(crate) fn part(&self, tag: u64) -> (Instance, usize) {
        let found = self.old.part(tag).or_else(|| self.new.part(tag));
        found.unwrap_or((self.new.instances[0], 0))
    }

    /// The groups that gave way to the new ones.
    pub(crate) fn removed(&self) -> Vec<Instance> {
        let numbers = self.book.removed().iter();
        let whose = numbers.filter_map(|&own| self.old.instances.get(own as usize).copied());
        whose.collect()
    }

    /// Some segment is not alike on all CPUs.
    pub(crate) fn is_located(&self) -> bool {
        self.old.located || self.new.located
    }
}

fn another() -> AnalysisError {
    AnalysisError::Invalid {
        what: "a plan that runs is of another system".into(),
    }
}

/// Before the run: nothing is executed, and planning takes no time.
pub(crate) fn before_the_run(search: punctual_planner::Search) -> Ask<Ns> {
    Ask::new(Instant::ZERO, Span::ZERO, search)
}

fn sum(one: Capacities, other: Capacities) -> Capacities {
    Capacities {
        segments: one.segments + other.segments,
        orders: one.orders + other.orders,
        uses: one.uses + other.uses,
        ..one
    }
}
