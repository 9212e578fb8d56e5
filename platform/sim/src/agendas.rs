//! Groups that are planned in virtual time: requests, plans behind their cutoffs, kills
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

use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use punctual_kern::{AgendaStep, AgendaView, PlannedSegment};
use punctual_model::{Instant, Span, Work};
use punctual_tables::CpuTables;

use crate::requests::{Execution, GroupOutcome, Groups};
use punctual_planner::{Ask, Book, Capacities, GroupKey, Kills, Refusal, Segment, Segments};

/// A request that waits: earliest first, then in the order of asking.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Waiting {
    at: std::cmp::Reverse<(Instant, u64)>,
    kind: usize,
    /// Asked for if it is refused, in this order.
    otherwise: Vec<usize>,
}

/// A plan that is not in force yet.
#[derive(Clone, Debug)]
struct Pending {
    cutoff: Instant,
    /// By CPU: the steps that bring it in force; `None`: it was refused.
    steps: Option<Vec<Vec<AgendaStep>>>,
    otherwise: Vec<usize>,
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
    outcomes: Vec<GroupOutcome>,
    keys: Vec<Option<GroupKey>>,
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
            outcomes: Vec::new(),
            keys: Vec::new(),
            identities: BTreeMap::new(),
            seen: vec![AgendaView::default(); groups.executors.len()],
            slots,
            groups,
        };
        for (at, kind) in planning.groups.requests.clone() {
            planning.wait(at, kind, Vec::new());
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

    fn wait(&mut self, at: Instant, kind: usize, otherwise: Vec<usize>) {
        if at >= self.horizon {
            return;
        }
        self.asked += 1;
        let at = std::cmp::Reverse((at, self.asked));
        self.waiting.push(Waiting {
            at,
            kind,
            otherwise,
        });
    }

    /// When it does something by itself next.
    pub(crate) fn next_instant(&self) -> Option<Instant> {
        match &self.pending {
            Some(pending) => Some(pending.cutoff),
            // Not before the CPUs have obeyed the orders of the last one.
            None => self
                .waiting
                .peek()
                .map(|waiting| waiting.at.0.0.max(self.now)),
        }
    }

    /// Does that. The orders for each CPU of the planner.
    pub(crate) fn act(&mut self, now: Instant) -> Vec<VecDeque<Order>> {
        self.now = now;
        let mut orders = vec![VecDeque::new(); self.seen.len()];
        if let Some(pending) = self.pending.take() {
            self.put_in_force(now, pending, &mut orders);
        } else if let Some(waiting) = self.waiting.pop() {
            self.plan(now, waiting, &mut orders);
        }
        orders
    }

    /// Planning begins: the answer and the plan are there at the cutoff.
    fn plan(&mut self, now: Instant, waiting: Waiting, orders: &mut [VecDeque<Order>]) {
        let Waiting {
            at,
            kind,
            otherwise,
        } = waiting;
        let asked = at.0.0;
        let number = self.outcomes.len();
        let key = self.kills.enter(u32::try_from(kind).unwrap_or(u32::MAX));
        let set = key.and_then(|key| self.segments(kind, asked, (number, key)));
        let terms = &self.groups.kinds[kind];
        let ask = Ask {
            pace: self.groups.pace.filter(|_| !terms.off_line),
            // It has waited for those before it.
            max_wait: terms
                .max_wait
                .map(|most| most.saturating_sub(now.since(asked))),
            overload: self.groups.overload,
            ..Ask::new(now, Span::ZERO, self.groups.search)
        };
        let bound = if terms.off_line {
            Span::ZERO
        } else {
            self.groups.bound
        };
        let ask = Ask { bound, ..ask };
        let none = Segments::new(Capacities::new(0, 1, 0));
        let kills = &self.kills;
        let answer = self.book.ask(&ask, set.as_ref().unwrap_or(&none), |group| {
            kills.is_dead(group)
        });
        let refused = match (answer, set) {
            (Err(refusal), _) => Some(refusal),
            (Ok(_), None) => Some(Refusal {
                why: punctual_planner::Why::TooLarge,
                late: None,
                evaluations: 0,
                backtracks: 0,
            }),
            (Ok(_), Some(_)) => None,
        };
        // A request that was out of time at once has no cutoff.
        let cutoff = self.book.cutoff().max(now);
        self.outcomes.push(GroupOutcome {
            kind,
            requested: asked,
            answered: cutoff,
            refused,
            removed: None,
            killed: None,
            done: None,
            missed: false,
            executions: vec![None; self.groups.kinds[kind].segments.len()],
            cleaned: Vec::new(),
        });
        self.keys.push(key.filter(|_| refused.is_none()));
        if let Some(key) = key.filter(|_| refused.is_some()) {
            let _ = self.kills.leave(key);
        }
        let steps = refused.is_none().then(|| self.steps(now));
        let held = AgendaStep::Hold {
            cutoff: Some(cutoff),
        };
        tell_all(orders, held);
        self.pending = Some(Pending {
            cutoff,
            steps,
            otherwise: if refused.is_some() {
                otherwise
            } else {
                Vec::new()
            },
        });
    }

    /// The segments of a request; `None` without room.
    fn segments(
        &self,
        kind: usize,
        at: Instant,
        (number, key): (usize, GroupKey),
    ) -> Option<Segments> {
        let terms = &self.groups.kinds[kind];
        let mut set = Segments::new(self.groups.capacities);
        for (place, one) in terms.segments.iter().enumerate() {
            let segment = Segment {
                group: key.place(),
                release: at.saturating_add(one.release),
                wcet: one.wcet,
                absolute_deadline: at.saturating_add(one.deadline),
            };
            let own = set.push(segment, &one.uses).ok()?;
            set.set_importance(own, terms.importance);
            set.set_tag(own, (number as u64) << 32 | place as u64);
            if let Some(location) = one.location {
                set.set_location(own, location);
            }
            set.set_cleanup(own, one.cleanup, &[]).ok()?;
            for &before in &one.after {
                set.precede(before, own).ok()?;
            }
        }
        Some(set)
    }

    /// The steps that bring the plan of the book in force, by CPU.
    fn steps(&mut self, now: Instant) -> Vec<Vec<AgendaStep>> {
        let (segments, order) = (self.book.segments(), self.book.order());
        let mut steps = vec![Vec::new(); self.seen.len()];
        let mut from: Vec<Option<u64>> = vec![None; self.seen.len()];
        for removed in self.book.removed() {
            let gone = |key: &&Option<GroupKey>| key.is_some_and(|key| key.place() == *removed);
            if let Some(at) = self.keys.iter().rposition(|key| gone(&key)) {
                self.outcomes[at].removed = Some(now);
                if let Some(key) = self.keys[at].take() {
                    let _ = self.kills.leave(key);
                }
            }
        }
        // The numbers of those that stay; all behind them are given anew.
        let mut stay: Vec<Option<u64>> = vec![None; self.seen.len()];
        for number in (0..segments.len()).filter(|&number| self.book.is_frozen(number)) {
            let cpu = self.book.placements()[number].cpu;
            stay[cpu] = stay[cpu].max(Some(order.number(number)));
        }
        let stays = |cpu: usize, number: u64| stay[cpu].is_some_and(|last| number <= last);
        self.identities
            .retain(|&(cpu, number), _| stays(cpu, number));
        for &number in order.by_start() {
            let place = self.book.placements()[number];
            if self.book.is_frozen(number) {
                continue;
            }
            let (segment, cpu) = (segments.get(number), place.cpu);
            let Some(segment) = segment else { continue };
            let identity = identity(segments.tag(number));
            let (kind, which) = (self.outcomes[identity.0].kind, identity.1);
            let flow = self.groups.kinds[kind].segments[which].flow;
            let own = order.number(number);
            from[cpu].get_or_insert(own);
            steps[cpu].push(AgendaStep::Stage(PlannedSegment {
                number: own,
                thread: self.groups.executors[cpu].1[flow],
                earliest: segment.release,
                start: place.start,
                wcet: place.end.since(place.start).as_work(),
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
        for (cpu, steps) in steps.iter_mut().enumerate() {
            let behind = stay[cpu].map(|last| last + 1);
            let first = from[cpu].or(behind).unwrap_or(self.seen[cpu].frontier);
            steps.push(AgendaStep::Commit { from: first });
        }
        steps
    }

    /// The cutoff has come.
    fn put_in_force(&mut self, now: Instant, pending: Pending, orders: &mut [VecDeque<Order>]) {
        match pending.steps {
            None => tell_all(orders, AgendaStep::Hold { cutoff: None }),
            Some(steps) => {
                let tell = |planning: &Planning, orders: &mut [VecDeque<Order>], commit| {
                    for (cpu, steps) in steps.iter().enumerate() {
                        let is_it = |step: &&AgendaStep| {
                            commit == matches!(step, AgendaStep::Commit { .. })
                        };
                        for &step in steps.iter().filter(is_it) {
                            let executes = planning.work(cpu, &step);
                            orders[cpu].push_back(Order { step, executes });
                        }
                    }
                };
                tell(self, orders, false);
                self.bury(orders);
                tell(self, orders, true);
            }
        }
        let mut otherwise = pending.otherwise.into_iter();
        if let Some(kind) = otherwise.next() {
            self.wait(now, kind, otherwise.collect());
        }
    }

    /// Groups that were killed while planning was pending are staged like others. The place of one
    /// that has nothing left is free.
    fn bury(&mut self, orders: &mut [VecDeque<Order>]) {
        for number in 0..self.outcomes.len() {
            let dead = self.keys[number].filter(|key| self.kills.is_dead(key.place()));
            let Some(key) = dead else { continue };
            self.tell_kill(number, key.place(), orders);
            let left = self.identities.values();
            if left.clone().all(|((group, _), _)| *group != number) {
                self.keys[number] = None;
                let _ = self.kills.leave(key);
            }
        }
    }

    fn work(&self, cpu: usize, step: &AgendaStep) -> Work {
        let AgendaStep::Stage(segment) = step else {
            return Work::ZERO;
        };
        let identity = self.identities.get(&(cpu, segment.number));
        let kind = identity.map(|&((group, which), _)| {
            let kind = self.outcomes[group].kind;
            self.groups.kinds[kind].segments[which].executes
        });
        kind.unwrap_or(segment.wcet)
    }

    /// A CPU has gone on. The orders that follow for each CPU of the planner, if any do.
    pub(crate) fn see(
        &mut self,
        cpu: usize,
        now: Instant,
        view: AgendaView,
    ) -> Option<Vec<VecDeque<Order>>> {
        let before = std::mem::replace(&mut self.seen[cpu], view);
        if before == view {
            return None;
        }
        self.book.done(cpu, view.frontier);
        if let Some(at) = view.started {
            self.book.started(cpu, view.frontier, at);
        }
        let mut orders = vec![VecDeque::new(); self.seen.len()];
        for number in before.frontier..view.frontier {
            let start = before.started.filter(|_| number == before.frontier);
            if let Some((identity, planned)) = self.identities.remove(&(cpu, number)) {
                let execution = start.map(|start| Execution {
                    cpu: self.groups.executors[cpu].0,
                    start,
                    end: now,
                    planned,
                });
                self.ended(identity, (execution, before.cleans), &mut orders);
            }
        }
        orders
            .iter()
            .any(|orders| !orders.is_empty())
            .then_some(orders)
    }

    /// A segment is over, or passed over.
    fn ended(
        &mut self,
        (group, which): Identity,
        (execution, cleans): (Option<Execution>, bool),
        orders: &mut [VecDeque<Order>],
    ) {
        let Some(execution) = execution else { return };
        let outcome = &mut self.outcomes[group];
        if cleans {
            return outcome.cleaned.push(execution);
        }
        let segment = &self.groups.kinds[outcome.kind].segments[which];
        let now = execution.end;
        outcome.missed |= now > outcome.requested.saturating_add(segment.deadline);
        outcome.executions[which] = Some(execution);
        if outcome.executions.iter().all(Option::is_some) {
            outcome.done = Some(now);
            if let Some(key) = self.keys[group].take() {
                let _ = self.kills.leave(key);
            }
        }
        // The dead ask for nothing any more.
        if outcome.killed.is_some() {
            return;
        }
        let (kills, asks) = (segment.kills.clone(), segment.asks.clone());
        for kind in kills {
            self.kill(kind, now, orders);
        }
        let mut asks = asks.into_iter();
        if let Some(kind) = asks.next() {
            self.wait(now, kind, asks.collect());
        }
    }

    /// All groups of a kind, before they start or at their next boundary.
    fn kill(&mut self, kind: usize, now: Instant, orders: &mut [VecDeque<Order>]) {
        for number in 0..self.outcomes.len() {
            let key = self.keys[number].filter(|_| self.outcomes[number].kind == kind);
            let Some(key) = key.filter(|key| !self.kills.is_dead(key.place())) else {
                continue;
            };
            if self.kills.kill(key).is_ok() {
                self.outcomes[number].killed = Some(now);
                self.tell_kill(number, key.place(), orders);
            }
        }
    }

    /// Each CPU hears of a kill, and of the handlers there: in the place of the next segment of
    /// each flow that has begun.
    fn tell_kill(&self, number: usize, group: u32, orders: &mut [VecDeque<Order>]) {
        tell_all(
            orders,
            AgendaStep::Kill {
                group,
                cleans: None,
            },
        );
        let outcome = &self.outcomes[number];
        let segments = &self.groups.kinds[outcome.kind].segments;
        let running = |cpu: usize, own: u64| {
            self.seen[cpu].frontier == own && self.seen[cpu].started.is_some()
        };
        for (&(cpu, own), &((of, which), _)) in &self.identities {
            if of != number || running(cpu, own) {
                continue;
            }
            let flow = segments[which].flow;
            let Some(before) = (0..which).rev().find(|&one| segments[one].flow == flow) else {
                continue;
            };
            let mut still = self.identities.iter();
            let runs = still.any(|(&(cpu, own), &(identity, _))| {
                identity == (number, before) && running(cpu, own)
            });
            if outcome.executions[before].is_some() || runs {
                let cleans = Some(own);
                let step = AgendaStep::Kill { group, cleans };
                let executes = Work::ZERO;
                orders[cpu].push_back(Order { step, executes });
            }
        }
    }

    /// Whether it begins to plan next, for which all CPUs must have obeyed.
    pub(crate) fn begins(&self) -> bool {
        self.pending.is_none()
    }

    /// Whether anything of it is still to come.
    pub(crate) fn is_idle(&self) -> bool {
        let planned = self.seen.iter().any(|view| view.left > 0);
        self.pending.is_none() && self.waiting.is_empty() && !planned
    }
}

fn identity(tag: u64) -> Identity {
    let part = |part: u64| usize::try_from(part & u64::from(u32::MAX)).unwrap_or(usize::MAX);
    (part(tag >> 32), part(tag))
}

fn tell_all(orders: &mut [VecDeque<Order>], step: AgendaStep) {
    for orders in orders {
        let executes = Work::ZERO;
        orders.push_back(Order { step, executes });
    }
}
