//! Requests wait for their turn and are planned; plans made before the run are continued.

use std::collections::VecDeque;

use punctual_kern::AgendaStep;
use punctual_model::{Instant, Span};
use punctual_planner::{Ask, GroupKey, Mistake, Placement, Refusal, Segment, Segments, Why};

use super::{Order, Pending, Planning, tell_all};
use crate::requests::{GroupOutcome, Misplanning, PlannedFamily};

/// A request that waits: earliest first, then in the order of asking.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Waiting {
    at: std::cmp::Reverse<(Instant, u64)>,
    kind: usize,
    /// The instants of the group count from then.
    arrival: Instant,
    /// The outcome that arrived then; `None`: its own.
    origin: Option<usize>,
    /// Asked for if it is refused, in this order.
    otherwise: VecDeque<usize>,
}

impl Waiting {
    /// A group that arrives.
    pub(super) fn new(at: Instant, kind: usize) -> Waiting {
        Waiting {
            at: std::cmp::Reverse((at, 0)),
            kind,
            arrival: at,
            origin: None,
            otherwise: VecDeque::new(),
        }
    }

    /// The first of these kinds, asked for by a group that arrived before.
    pub(super) fn child(at: Instant, kinds: &[usize], parent: &GroupOutcome) -> Option<Waiting> {
        let mut otherwise: VecDeque<usize> = kinds.iter().copied().collect();
        let kind = otherwise.pop_front()?;
        Some(Waiting {
            arrival: parent.arrival,
            origin: Some(parent.origin),
            otherwise,
            ..Waiting::new(at, kind)
        })
    }

    pub(super) fn at(&self) -> Instant {
        self.at.0.0
    }

    pub(super) fn later(self, at: Instant) -> Waiting {
        let at = std::cmp::Reverse((at, 0));
        Waiting { at, ..self }
    }

    /// The request that follows if it is refused.
    fn next(mut self) -> Option<Waiting> {
        self.kind = self.otherwise.pop_front()?;
        Some(self)
    }
}

/// A family to be planned: its outcomes, and where its segments stand.
struct Family {
    /// The place of its first outcome; the others follow.
    first: usize,
    members: Vec<(usize, Option<(usize, usize)>)>,
    keys: Vec<GroupKey>,
}

impl Planning {
    pub(super) fn wait(&mut self, waiting: Waiting) {
        let at = waiting.at();
        if at >= self.horizon {
            return;
        }
        self.asked += 1;
        let at = std::cmp::Reverse((at, self.asked));
        self.waiting.push(Waiting { at, ..waiting });
    }

    /// When the next part of the plan that was made before the run begins, if one does.
    pub(super) fn next_part(&self) -> Option<Instant> {
        let plan = &self.groups.plan;
        match self.planned_until {
            None => Some(Instant::ZERO).filter(|_| !plan.first.is_empty() || plan_repeats(plan)),
            Some(until) => Some(until).filter(|_| plan_repeats(plan)),
        }
        .filter(|begin| *begin < self.horizon)
    }

    /// Takes over the next part of that plan. Nobody who is planned is moved.
    pub(super) fn go_on(&mut self, now: Instant, orders: &mut [VecDeque<Order>]) {
        let Some(begin) = self.next_part() else {
            return;
        };
        let plan = &self.groups.plan;
        let (families, end) = match self.planned_until {
            None => (plan.first.clone(), plan.repeats_from),
            Some(_) => (plan.repeating.clone(), plan.period),
        };
        match self.append(now, begin, &families) {
            Ok(first) => {
                self.planned_until = Some(begin.saturating_add(end));
                let mut steps = vec![Vec::new(); self.seen.len()];
                let from = self.stage(Some(first), &mut steps);
                for (steps, from) in steps.iter_mut().zip(from) {
                    steps.extend(from.map(|from| AgendaStep::Commit { from }));
                }
                self.tell(&steps, |_| true, orders);
            }
            Err(number) => {
                self.is_full = true;
                while self.outcomes.len() > number {
                    self.drop_last();
                }
            }
        }
    }

    /// Adds the families that arrive before the horizon to the book. The number of their first
    /// segment; without room, the place of the first outcome that is none.
    fn append(
        &mut self,
        now: Instant,
        begin: Instant,
        families: &[PlannedFamily],
    ) -> Result<usize, usize> {
        let before = self.outcomes.len();
        let mut set = Segments::new(self.groups.capacities);
        let mut places = Vec::new();
        for family in families {
            let arrival = begin.saturating_add(family.arrival);
            if arrival >= self.horizon {
                continue;
            }
            let new = self.enter(family.kind, arrival, None).ok_or(before)?;
            self.push(&mut set, &new).map_err(|_| before)?;
            for &(cpu, start, end) in family.places.iter().flatten() {
                let at = |span: Span| begin.saturating_add(span);
                let (start, end) = (at(start), at(end));
                places.push(Placement { cpu, start, end });
            }
            self.record(&new, arrival, now, None);
        }
        let first = self.book.append(now, &set, &places);
        first.map_err(|_| before)
    }

    /// Planning begins: the answer and the plan are there at the cutoff.
    pub(super) fn plan(&mut self, now: Instant, waiting: Waiting, orders: &mut [VecDeque<Order>]) {
        let (kind, asked, arrival) = (waiting.kind, waiting.at(), waiting.arrival);
        let off_line = self.groups.kinds[kind].off_line;
        let bound = match off_line {
            true => Span::ZERO,
            false => self.groups.bound,
        };
        if self.reach(now, (kind, arrival, bound), orders) {
            // A CPU that was away may begin with a part of it at once.
            return self.waiting.push(waiting);
        }
        let family = self.enter(kind, arrival, waiting.origin);
        let set = family.as_ref().and_then(|family| self.segments(family));
        let terms = &self.groups.kinds[kind];
        let frozen = match self.groups.misplanning {
            Some(Misplanning::Moves) => Span::ZERO,
            _ => bound,
        };
        let ask = Ask {
            pace: self.groups.pace.filter(|_| !off_line),
            // It has waited for those before it.
            max_wait: terms
                .max_wait
                .map(|most| most.saturating_sub(now.since(asked))),
            overload: self.groups.overload,
            ..Ask::new(now, frozen, self.groups.search)
        };
        let kills = &self.kills;
        let refused = match &set {
            Some(set) => {
                let dead = |group| kills.is_dead(group);
                self.book.ask(&ask, set, dead).err()
            }
            None => Some(no_room()),
        };
        // A request that was out of time at once has no cutoff.
        let cutoff = self.book.cutoff().max(now);
        let cutoff = cutoff.saturating_add(bound.saturating_sub(frozen));
        match family {
            Some(family) => self.record(&family, asked, cutoff, refused),
            None => self.outcomes.extend(self.unplanned(&waiting, cutoff)),
        }
        self.keys.resize(self.outcomes.len(), None);
        let steps = refused.is_none().then(|| self.steps(now));
        let held = AgendaStep::Hold {
            cutoff: Some(cutoff),
        };
        tell_all(orders, held);
        self.pending = Some(Pending {
            cutoff,
            steps,
            otherwise: refused.and_then(|_| waiting.next()),
        });
    }

    /// Everything that repeats is planned as far as this request reaches, and as planning it does;
    /// whether there was anything left.
    fn reach(
        &mut self,
        now: Instant,
        (kind, arrival, bound): (usize, Instant, Span),
        orders: &mut [VecDeque<Order>],
    ) -> bool {
        let members = self.groups.family(kind);
        let kinds = members.iter().map(|(kind, _)| &self.groups.kinds[*kind]);
        let deadlines = kinds.flat_map(|kind| kind.segments.iter().map(|one| one.deadline));
        let latest = arrival.saturating_add(deadlines.max().unwrap_or(Span::ZERO));
        let answered = now.max(self.book.cutoff()).saturating_add(bound);
        let until = latest.max(answered.saturating_add(Span::from_ticks(1)));
        let before = self.planned_until;
        while !self.is_full && self.next_part().is_some_and(|part| part < until) {
            self.go_on(now, orders);
        }
        before != self.planned_until
    }

    /// Keys for a family whose outcomes come next.
    fn enter(&mut self, kind: usize, arrival: Instant, origin: Option<usize>) -> Option<Family> {
        let first = self.outcomes.len();
        let members = self.groups.family(kind);
        let mut keys = Vec::with_capacity(members.len());
        for (kind, _) in &members {
            match self.kills.enter(u32::try_from(*kind).unwrap_or(u32::MAX)) {
                Some(key) => keys.push(key),
                None => {
                    for key in keys {
                        let _ = self.kills.leave(key);
                    }
                    return None;
                }
            }
        }
        for (kind, _) in &members {
            self.outcomes.push(GroupOutcome {
                kind: *kind,
                arrival,
                family: first,
                origin: origin.unwrap_or(first),
                requested: arrival,
                answered: arrival,
                refused: None,
                removed: None,
                killed: None,
                done: None,
                missed: false,
                executions: vec![None; self.groups.kinds[*kind].segments.len()],
                cleaned: Vec::new(),
            });
        }
        self.keys.extend(keys.iter().copied().map(Some));
        self.live.extend(first..first + members.len());
        Some(Family {
            first,
            members,
            keys,
        })
    }

    /// The answer to the request of a family.
    fn record(
        &mut self,
        family: &Family,
        requested: Instant,
        answered: Instant,
        refused: Option<Refusal>,
    ) {
        for place in family.first..family.first + family.members.len() {
            let outcome = &mut self.outcomes[place];
            (outcome.requested, outcome.answered, outcome.refused) = (requested, answered, refused);
        }
        if refused.is_some() {
            self.leave(family.first);
        }
    }

    /// A family for which there was no key.
    fn unplanned(&self, waiting: &Waiting, answered: Instant) -> Vec<GroupOutcome> {
        let first = self.outcomes.len();
        let members = self.groups.family(waiting.kind).into_iter();
        let outcome = |(kind, _): (usize, _)| GroupOutcome {
            kind,
            arrival: waiting.arrival,
            family: first,
            origin: waiting.origin.unwrap_or(first),
            requested: waiting.at(),
            answered,
            refused: Some(no_room()),
            removed: None,
            killed: None,
            done: None,
            missed: false,
            executions: vec![None; self.groups.kinds[kind].segments.len()],
            cleaned: Vec::new(),
        };
        members.map(outcome).collect()
    }

    /// The segments of a request; `None` without room for them and for all that repeats.
    fn segments(&self, family: &Family) -> Option<Segments> {
        let mut set = Segments::new(self.groups.capacities);
        self.push(&mut set, family).ok()?;
        let families = self.groups.plan.repeating.iter();
        let repeats = families.flat_map(|family| family.places.iter().map(Vec::len));
        let kept = self.book.segments().len() + set.len() + repeats.sum::<usize>();
        (kept <= self.groups.capacities.segments).then_some(set)
    }

    /// Adds the segments of a family.
    fn push(&self, set: &mut Segments, family: &Family) -> Result<(), Mistake> {
        let mut numbers: Vec<usize> = Vec::new();
        for (at, (kind, by)) in family.members.iter().enumerate() {
            let (outcome, key) = (family.first + at, family.keys[at]);
            let arrival = self.outcomes[outcome].arrival;
            let terms = &self.groups.kinds[*kind];
            let base = set.len();
            for (place, one) in terms.segments.iter().enumerate() {
                let segment = Segment {
                    group: key.place(),
                    release: arrival.saturating_add(one.release),
                    wcet: one.wcet,
                    absolute_deadline: arrival.saturating_add(one.deadline),
                };
                let own = set.push(segment, &one.uses)?;
                set.set_importance(own, terms.importance);
                set.set_family(own, family.keys[0].place());
                set.set_tag(own, (outcome as u64) << 32 | place as u64);
                if let Some(location) = one.location {
                    set.set_location(own, location);
                }
                let fits = set.set_cleanup(own, one.cleanup, &[]);
                fits.map_err(|_| Mistake::Empty)?;
                for &before in &one.after {
                    set.precede(base + before, own)?;
                }
                if let &Some((parent, segment)) = by {
                    set.precede(numbers[parent] + segment, own)?;
                }
            }
            numbers.push(base);
        }
        Ok(())
    }
}

fn plan_repeats(plan: &crate::requests::OffLine) -> bool {
    !plan.period.is_zero() && !plan.repeating.is_empty()
}

fn no_room() -> Refusal {
    Refusal {
        why: Why::TooLarge,
        late: None,
        evaluations: 0,
        backtracks: 0,
    }
}
