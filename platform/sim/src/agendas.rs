//! Groups that are planned in virtual time: plans behind their cutoffs, and what CPUs hear of them
//!
//! One planner for all CPUs of a simulation, as the system processor of Spring. It is told of
//! starts and ends, and tells CPUs their plans as events, which stand in the log.
//!
//! ```text
//!   request          begin of planning            cutoff
//!   ---+------ waits -----+------- bound ------------+---------->
//!                         | every CPU: Hold          | every CPU: Stage ..., Commit
//! ```
//!
//! A CPU that stands still hears of both when it goes on, in this order and before it does anything
//! else. So it starts nothing of a plan that another one has replaced.
//!
//! A plan made before the run is taken over part by part: the next one when the last is over, or
//! when a request reaches beyond it (design note 0072).

mod asking;
mod ending;

use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

use punctual_kern::{AgendaStep, AgendaView, PlannedSegment};
use punctual_model::{Instant, Work};
use punctual_tables::CpuTables;

use crate::requests::{GroupOutcome, Groups, Misplanning};
use asking::Waiting;
use punctual_planner::{Book, GroupKey, Kills};

/// A plan that is not in force yet.
#[derive(Clone, Debug)]
struct Pending {
    cutoff: Instant,
    /// By CPU: the steps that bring it in force; `None`: it was refused.
    steps: Option<Vec<Vec<AgendaStep>>>,
    /// Asked for instead.
    otherwise: Option<Waiting>,
}

/// A segment in force: its group's outcome, and its place in that.
type Identity = (usize, usize);

/// The planner of a simulation.
#[derive(Debug)]
pub(crate) struct Planning {
    groups: Groups,
    book: Book,
    kills: Kills,
    waiting: BinaryHeap<Waiting>,
    asked: u64,
    pending: Option<Pending>,
    /// When it last did something.
    now: Instant,
    /// Nothing is requested then or later.
    horizon: Instant,
    /// Up to then the plan that was made before the run has been taken over; `None`: nothing of it.
    planned_until: Option<Instant>,
    /// There was no room for the next part of it.
    is_full: bool,
    outcomes: Vec<GroupOutcome>,
    /// By outcome.
    keys: Vec<Option<GroupKey>>,
    /// Outcomes with a key.
    live: BTreeSet<usize>,
    /// By CPU and number: a segment, and its planned start.
    identities: BTreeMap<(usize, u64), (Identity, Instant)>,
    /// By CPU: the last that was seen of it.
    seen: Vec<AgendaView>,
    /// By CPU, then by another: the slot of the other there.
    slots: Vec<Vec<u32>>,
}

/// The planner among the CPUs that it plans for.
pub(crate) struct Planner<'g> {
    pub(crate) planning: &'g mut Planning,
    /// By CPU of the planner: its place among them.
    pub(crate) members: Vec<usize>,
}

impl<'g> Planner<'g> {
    /// Its CPUs are simulated together, as they exchange messages.
    pub(crate) fn of(planning: Option<&'g mut Planning>, group: &[usize]) -> Option<Planner<'g>> {
        let planning = planning?;
        let member = |cpu: usize| group.iter().position(|&at| at == cpu);
        let members: Option<Vec<usize>> = planning.cpus().into_iter().map(member).collect();
        let members = members?;
        Some(Planner { planning, members })
    }
}

/// An event for the shard of a CPU, with the work behind a segment that is staged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Order {
    pub(crate) step: AgendaStep,
    pub(crate) executes: Work,
    /// It comes from a planner that is wrong on purpose.
    pub(crate) misplanned: Option<Misplanning>,
}

impl Order {
    /// One without work behind it.
    fn of(step: AgendaStep) -> Order {
        Order {
            step,
            executes: Work::ZERO,
            misplanned: None,
        }
    }
}

impl Planning {
    pub(crate) fn new(groups: Groups, tables: &[CpuTables], horizon: Instant) -> Planning {
        let slot = |here: usize, there: usize| {
            let peers = tables[here].agenda.peers.iter();
            let mut found = peers.filter(|peer| peer.1 == tables[there].cpu);
            found.next().map_or(u32::MAX, |peer| peer.0)
        };
        let places = || groups.executors.iter().map(|(cpu, _)| *cpu);
        let row = |here| places().map(|there| slot(here, there)).collect();
        let slots = places().map(row).collect();
        let room = u32::try_from(groups.capacities.segments).unwrap_or(u32::MAX);
        let mut planning = Planning {
            book: Book::told(groups.capacities),
            kills: Kills::new(room),
            waiting: BinaryHeap::new(),
            asked: 0,
            pending: None,
            now: Instant::ZERO,
            horizon,
            planned_until: None,
            is_full: false,
            outcomes: Vec::new(),
            keys: Vec::new(),
            live: BTreeSet::new(),
            identities: BTreeMap::new(),
            seen: vec![AgendaView::default(); groups.executors.len()],
            slots,
            groups,
        };
        for (at, kind) in planning.groups.requests.clone() {
            planning.wait(Waiting::new(at, kind));
        }
        planning
    }

    /// The places of its CPUs in the tables, by number of the planner.
    pub(crate) fn cpus(&self) -> Vec<usize> {
        self.groups.executors.iter().map(|(cpu, _)| *cpu).collect()
    }

    pub(crate) fn outcomes(self) -> Vec<GroupOutcome> {
        self.outcomes
    }

    /// When it does something by itself next.
    pub(crate) fn next_instant(&self) -> Option<Instant> {
        if let Some(pending) = &self.pending {
            return Some(pending.cutoff);
        }
        // Not before the CPUs have obeyed the orders of the last one.
        let waiting = self.waiting.peek().map(|waiting| waiting.at());
        let part = self.next_part().filter(|_| !self.is_full);
        let next = waiting.into_iter().chain(part).min();
        next.map(|at| at.max(self.now))
    }

    /// Does that. The orders for each CPU of the planner.
    pub(crate) fn act(&mut self, now: Instant) -> Vec<VecDeque<Order>> {
        self.now = now;
        let mut orders = vec![VecDeque::new(); self.seen.len()];
        if let Some(pending) = self.pending.take() {
            self.put_in_force(now, pending, &mut orders);
        } else if self.continues(now) {
            self.go_on(now, &mut orders);
        } else if let Some(waiting) = self.waiting.pop() {
            self.plan(now, waiting, &mut orders);
        }
        orders
    }

    /// Whether it takes over a part of a plan that was made before, with nothing pending.
    fn continues(&self, now: Instant) -> bool {
        !self.is_full && self.next_part().is_some_and(|part| part <= now)
    }

    /// Whether it begins to plan next, for which all CPUs must have obeyed.
    pub(crate) fn begins(&self, now: Instant) -> bool {
        self.pending.is_none() && !self.continues(now)
    }

    /// Whether anything of it is still to come.
    pub(crate) fn is_idle(&self) -> bool {
        let planned = self.seen.iter().any(|view| view.left > 0);
        let nothing = self.pending.is_none() && self.waiting.is_empty();
        nothing && !planned && self.next_part().is_none()
    }

    /// The steps that bring the plan of the book in force, by CPU.
    fn steps(&mut self, now: Instant) -> Vec<Vec<AgendaStep>> {
        let mut steps = vec![Vec::new(); self.seen.len()];
        for removed in self.book.removed().to_vec() {
            let gone = |at: &usize| self.keys[*at].is_some_and(|key| key.place() == removed);
            if let Some(at) = self.live.iter().copied().find(gone) {
                self.outcomes[at].removed = Some(now);
            }
        }
        // The numbers of those that stay; all behind them are given anew.
        let mut stay: Vec<Option<u64>> = vec![None; self.seen.len()];
        let count = self.book.segments().len();
        for number in (0..count).filter(|&number| self.book.is_frozen(number)) {
            let cpu = self.book.placements()[number].cpu;
            stay[cpu] = stay[cpu].max(Some(self.book.order().number(number)));
        }
        let stays = |cpu: usize, number: u64| stay[cpu].is_some_and(|last| number <= last);
        self.identities
            .retain(|&(cpu, number), _| stays(cpu, number));
        let from = self.stage(None, &mut steps);
        for (cpu, steps) in steps.iter_mut().enumerate() {
            let behind = stay[cpu].map(|last| last + 1);
            let first = from[cpu].or(behind).unwrap_or(self.seen[cpu].frontier);
            steps.push(AgendaStep::Commit { from: first });
        }
        self.forget_removed();
        steps
    }

    /// Stages the segments of the book from `first` on, or all that are not frozen; by CPU the
    /// first of their numbers.
    fn stage(&mut self, first: Option<usize>, steps: &mut [Vec<AgendaStep>]) -> Vec<Option<u64>> {
        let (segments, order) = (self.book.segments(), self.book.order());
        let mut from: Vec<Option<u64>> = vec![None; self.seen.len()];
        for &number in order.by_start() {
            let place = self.book.placements()[number];
            let stays = match first {
                Some(first) => number < first,
                None => self.book.is_frozen(number),
            };
            if stays {
                continue;
            }
            let (segment, cpu) = (segments.get(number), place.cpu);
            let Some(segment) = segment else { continue };
            let identity = identity(segments.tag(number));
            let (kind, which) = (self.outcomes[identity.0].kind, identity.1);
            let kind = &self.groups.kinds[kind].segments[which];
            let away = segments.location(number).and_then(|location| location.home);
            let away = usize::from(away.is_some_and(|home| home != cpu));
            let own = order.number(number);
            from[cpu].get_or_insert(own);
            steps[cpu].push(AgendaStep::Stage(PlannedSegment {
                number: own,
                thread: self.groups.executors[cpu].1[kind.flow],
                earliest: segment.release,
                start: place.start,
                wcet: kind.budgets[away],
                deadline: segment.absolute_deadline,
                group: segment.group,
                cleanup: segments.cleanup(number),
            }));
            for (other, &frontier) in order.needs(number).iter().enumerate() {
                if other != cpu && frontier > 0 {
                    let slot = self.slots[cpu][other];
                    steps[cpu].push(AgendaStep::Need { slot, frontier });
                }
            }
            self.identities.insert((cpu, own), (identity, place.start));
        }
        from
    }

    /// The cutoff has come.
    fn put_in_force(&mut self, now: Instant, pending: Pending, orders: &mut [VecDeque<Order>]) {
        match pending.steps {
            None => tell_all(orders, AgendaStep::Hold { cutoff: None }),
            Some(steps) => {
                let commits = |step: &AgendaStep| matches!(step, AgendaStep::Commit { .. });
                self.tell(&steps, |step| !commits(step), orders);
                self.bury(orders);
                self.tell(&steps, commits, orders);
            }
        }
        if let Some(otherwise) = pending.otherwise {
            self.wait(otherwise.later(now));
        }
    }

    /// The CPUs hear of some of these steps.
    fn tell(
        &self,
        steps: &[Vec<AgendaStep>],
        which: impl Fn(&AgendaStep) -> bool,
        orders: &mut [VecDeque<Order>],
    ) {
        for (cpu, steps) in steps.iter().enumerate() {
            for &step in steps.iter().filter(|step| which(step)) {
                let misplanned = self.groups.misplanning;
                let needs = matches!(step, AgendaStep::Need { .. });
                if needs && misplanned == Some(Misplanning::Hastens) {
                    continue;
                }
                orders[cpu].push_back(Order {
                    step,
                    executes: self.work(cpu, &step),
                    misplanned,
                });
            }
        }
    }

    fn work(&self, cpu: usize, step: &AgendaStep) -> Work {
        let AgendaStep::Stage(segment) = step else {
            return Work::ZERO;
        };
        let identity = self.identities.get(&(cpu, segment.number));
        let kind = identity.and_then(|&((group, which), _)| {
            let kind = self.outcomes[group].kind;
            self.groups.kinds[kind].segments[which].executes
        });
        kind.unwrap_or(segment.wcet)
    }
}

fn identity(tag: u64) -> Identity {
    let part = |part: u64| usize::try_from(part & u64::from(u32::MAX)).unwrap_or(usize::MAX);
    (part(tag >> 32), part(tag))
}

fn tell_all(orders: &mut [VecDeque<Order>], step: AgendaStep) {
    for orders in orders {
        orders.push_back(Order::of(step));
    }
}
