//! The groups of a system, as virtual time plans and executes them

use std::collections::{BTreeMap, BTreeSet};

use punctual_model::{
    ArrivalTimes, CpuId, Group, GroupId, GroupSegment, Instant, Mode, Ns, PlannedThread, Request,
    Span, Spawn, System, TaskId, ThreadId, Work, WorkSource,
};
use punctual_planner::{Capacities, Location, Pace, Search, Use};
use punctual_tables::{MAX_SEGMENTS, Tables};

use crate::RATE;
use crate::requests::{GroupKind, Groups, OffLine, PlannedFamily, SegmentKind};

/// Most segments that a plan has room for, and most instances of a group that are counted for it.
const MOST: usize = MAX_SEGMENTS as usize / 2;
const MOST_INSTANCES: u64 = 64;

/// A segment of a plan that was made before the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placed {
    /// Its group.
    pub group: GroupId,
    /// The arrival of its instance.
    pub arrival: Instant<Ns>,
    /// Its place in its group.
    pub segment: usize,
    /// The planned node.
    pub node: usize,
    /// It starts then at the latest.
    pub start: Instant<Ns>,
    /// It has ended by then.
    pub end: Instant<Ns>,
}

/// The answers of the analysis about the groups of a system.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct GroupTerms {
    /// The planned lengths of the segments at home and away, by group and place.
    pub lengths: Vec<Vec<[Work<Ns>; 2]>>,
    /// The cost of a switch between processes, added to lengths.
    pub process_switch: Work<Ns>,
    /// The plan of all that is planned before the run; without one, each of these groups is asked
    /// for when it arrives.
    pub plan: Option<Vec<Placed>>,
    /// It repeats from this instant on.
    pub repeats_from: Span<Ns>,
    /// The length of the part that repeats; zero: none does.
    pub period: Span<Ns>,
}

/// The groups of a system, numbered as the planner does.
struct Parts<'a> {
    system: &'a System,
    terms: &'a GroupTerms,
    /// By group: the first of its threads among all of them.
    flows: Vec<usize>,
    threads: usize,
    /// By group: its segments in an order that precedence allows.
    orders: Vec<Vec<usize>>,
    processes: BTreeMap<&'a str, u32>,
    homes: Vec<CpuId>,
}

impl Groups {
    /// The groups of `system`, which has a task for each of `planned`, its threads. Nothing arrives
    /// at `duration` or later. O(arrivals + segments · log segments).
    ///
    /// # Panics
    /// Terms or tables of another system.
    pub fn of_system(
        (system, planned): (&System, &[PlannedThread]),
        tables: &Tables,
        terms: &GroupTerms,
        (duration, seed): (Span<Ns>, u64),
    ) -> Groups {
        let parts = Parts::new(system, terms);
        let kinds: Vec<GroupKind> = ids(system).map(|id| parts.kind(id)).collect();
        let planning = &system.planning;
        let pace = planning.counts().then(|| Pace {
            evaluation: planning.evaluation.ticks_up(RATE).as_span(),
            segment: planning.segment_cost().ticks_up(RATE).as_span(),
            margin: planning.margin.ticks_up(RATE),
        });
        let mut groups = Groups {
            capacities: Capacities::new(0, 1, 0),
            executors: parts.executors(planned, tables),
            bound: planning.within.ticks_up(RATE),
            search: Search::of_request(planning),
            pace,
            overload: planning.overload,
            kinds,
            plan: OffLine::default(),
            requests: parts.requests(duration, seed),
            misplanning: None,
        };
        if let Some(placed) = &terms.plan {
            groups.plan = parts.plan(&groups, placed);
        }
        groups.capacities = parts.capacities(&groups);
        groups
    }

    /// The tasks that execute segments, and how many segments each CPU has room for
    /// ([`Tables::add_agendas`]).
    pub fn agendas(&self, planned: &[PlannedThread]) -> (Vec<TaskId>, u32) {
        let tasks = planned.iter().map(|thread| thread.task).collect();
        let room = self.capacities.segments.saturating_mul(2);
        (tasks, u32::try_from(room).unwrap_or(MAX_SEGMENTS))
    }

    /// How many events the plans of one CPU are at most, if every request is granted.
    pub fn steps(&self, duration: Span) -> u64 {
        let parts = match self.plan.period.is_zero() {
            true => 0,
            false => duration / self.plan.period + 1,
        };
        let places = |families: &[PlannedFamily]| {
            let all = families.iter().flat_map(|family| &family.places);
            all.map(Vec::len).sum::<usize>() as u64
        };
        let cpus = self.executors.len() as u64 + 1;
        let whole = self.capacities.segments as u64;
        let children = self.kinds.len() as u64;
        let asked = (self.requests.len() as u64).saturating_mul(children.clamp(1, 4));
        let once = parts.saturating_mul(places(&self.plan.repeating)) + places(&self.plan.first);
        asked
            .saturating_mul(whole)
            .saturating_add(once)
            .saturating_mul(cpus)
    }
}

fn ids(system: &System) -> impl Iterator<Item = GroupId> {
    (0..=u16::MAX).map(GroupId).take(system.groups.len())
}

impl<'a> Parts<'a> {
    fn new(system: &'a System, terms: &'a GroupTerms) -> Parts<'a> {
        let (mut flows, mut threads) = (Vec::new(), 0);
        let mut processes = BTreeMap::new();
        for group in &system.groups {
            flows.push(threads);
            threads += group.threads.len();
            for thread in &group.threads {
                let number = u32::try_from(processes.len()).unwrap_or(u32::MAX);
                processes.entry(thread.process.as_str()).or_insert(number);
            }
        }
        let nodes = system.planned_nodes().into_iter();
        Parts {
            system,
            terms,
            flows,
            threads,
            orders: system.groups.iter().map(Group::in_order).collect(),
            processes,
            homes: nodes.map(|node| node.cpu).collect(),
        }
    }

    /// By planned node: its CPU, and the threads there.
    fn executors(&self, planned: &[PlannedThread], tables: &Tables) -> Vec<(usize, Vec<ThreadId>)> {
        let of_node = |(node, cpu): (usize, &CpuId)| {
            let place = tables.cpus.iter().position(|tables| tables.cpu == *cpu);
            let place = place.unwrap_or(cpu.index());
            let thread = |task: TaskId| {
                let mut threads = (0..).zip(&tables.cpus[place].threads);
                let found = threads.find(|(_, (of, _))| *of == task);
                ThreadId::new(found.map_or(u32::MAX, |(at, _)| at), 0)
            };
            let own = planned.iter().filter(|thread| thread.node == node);
            (place, own.map(|planned| thread(planned.task)).collect())
        };
        self.homes.iter().enumerate().map(of_node).collect()
    }

    fn kind(&self, id: GroupId) -> GroupKind {
        let group = &self.system.groups[id.index()];
        let order = self.orders[id.index()].iter();
        GroupKind {
            importance: group.importance,
            max_wait: self.system.longest_wait(id).map(|most| most.ticks_up(RATE)),
            off_line: group.is_off_line(),
            segments: order.map(|&place| self.segment(id, place)).collect(),
        }
    }

    fn segment(&self, id: GroupId, place: usize) -> SegmentKind {
        let group = &self.system.groups[id.index()];
        let segment = &group.segments[place];
        let order = &self.orders[id.index()];
        let [home, away] = self.terms.lengths[id.index()][place].map(|work| work.ticks_up(RATE));
        let flow = self.flows[id.index()] + segment.thread;
        let before: BTreeSet<usize> = group
            .predecessors(place)
            .filter_map(|before| order.iter().position(|&at| at == before))
            .collect();
        let uses = segment.uses.iter().map(|used| Use {
            resource: used.resource.index(),
            mode: used.mode,
        });
        let place_of_thread = Use {
            resource: self.system.resources.len() + flow,
            mode: Mode::Exclusive,
        };
        let index = |ids: &[GroupId]| ids.iter().map(|id| id.index()).collect::<Vec<usize>>();
        let budget = segment.wcet.ticks_up(RATE);
        SegmentKind {
            flow,
            release: group.release.ticks_up(RATE),
            deadline: group.relative_deadline.ticks_up(RATE),
            wcet: home,
            budgets: [
                budget,
                segment.wcet_away.map_or(budget, |away| away.ticks_up(RATE)),
            ],
            uses: uses.chain([place_of_thread]).collect(),
            location: self.location(group, segment, away),
            after: before.into_iter().collect(),
            executes: match &segment.work {
                Some(WorkSource::Burn(work)) => Some(work.ticks_up(RATE)),
                _ => None,
            },
            cleanup: segment.cleanup.ticks_up(RATE),
            spawns: match &segment.spawn {
                Some(Spawn::Dependent { group }) => Some(group.index()),
                _ => None,
            },
            kills: index(&segment.kills),
            asks: match &segment.spawn {
                Some(Spawn::Independent { groups, .. }) => index(groups),
                _ => Vec::new(),
            },
        }
    }

    /// `None` where all CPUs are alike for it.
    fn location(&self, group: &Group, segment: &GroupSegment, away: Work) -> Option<Location> {
        let thread = &group.threads[segment.thread];
        let switch = self.terms.process_switch.ticks_up(RATE);
        if thread.home.is_none() && switch.is_zero() && !self.system.planning.within_process {
            return None;
        }
        let at = |cpu| self.homes.iter().position(|home| *home == cpu);
        Some(Location {
            process: self.processes.get(&*thread.process).copied().unwrap_or(0),
            home: thread.home.and_then(at),
            away,
            switch,
        })
    }

    /// The arrivals that are asked for while it runs: those of sources, and off-line ones where
    /// there is no plan.
    fn requests(&self, duration: Span<Ns>, seed: u64) -> Vec<(Instant, usize)> {
        let end = Instant::ZERO.saturating_add(duration);
        let mut requests = Vec::new();
        for id in ids(self.system) {
            let group = &self.system.groups[id.index()];
            let unplanned = self.terms.plan.is_none();
            let times: Vec<Instant<Ns>> = match &group.request {
                Request::Once { at } if unplanned => vec![*at],
                Request::Periodic { period } if unplanned => {
                    let times = ArrivalTimes::every(*period, Span::ZERO);
                    times.take_while(|at| *at < end).collect()
                }
                Request::OnLine {
                    arrivals,
                    phase,
                    min_separation,
                } => {
                    let seed = seed.wrapping_add((1 << 62) + (u64::from(id.0) << 32));
                    let times = ArrivalTimes::new(arrivals, *phase, *min_separation, seed);
                    spaced(times.take_while(|at| *at < end), *min_separation)
                }
                _ => Vec::new(),
            };
            let times = times.into_iter().filter(|at| *at < end);
            requests.extend(times.map(|at| (at.ticks_up(RATE), id.index())));
        }
        requests
    }

    /// The families of a plan.
    fn plan(&self, groups: &Groups, placed: &[Placed]) -> OffLine {
        let places: BTreeMap<(usize, Instant<Ns>, usize), Placed> = placed
            .iter()
            .map(|one| ((one.group.index(), one.arrival, one.segment), *one))
            .collect();
        let from = Instant::ZERO.saturating_add(self.terms.repeats_from);
        let mut plan = OffLine {
            repeats_from: self.terms.repeats_from.ticks_up(RATE),
            period: self.terms.period.ticks_up(RATE),
            ..OffLine::default()
        };
        let arrivals: BTreeSet<(Instant<Ns>, usize)> = placed
            .iter()
            .map(|one| (one.arrival, one.group.index()))
            .collect();
        for (arrival, kind) in arrivals {
            if self.system.groups[kind].request == Request::Spawned {
                continue;
            }
            let begin = match arrival < from {
                true => Instant::ZERO,
                false => from,
            };
            let since = |at: Instant<Ns>| at.since(begin).ticks_up(RATE);
            let members = groups.family(kind);
            let of_member = |(kind, _): &(usize, _)| {
                let order = self.orders[*kind].iter();
                let place = order.filter_map(|&segment| places.get(&(*kind, arrival, segment)));
                let place = place.map(|one| (one.node, since(one.start), since(one.end)));
                place.collect::<Vec<_>>()
            };
            let family = PlannedFamily {
                kind,
                arrival: since(arrival),
                places: members.iter().map(of_member).collect(),
            };
            match arrival < from {
                true => plan.first.push(family),
                false => plan.repeating.push(family),
            }
        }
        plan
    }

    /// Room for all that repeats as far as a request may reach, and for the requests of that time.
    fn capacities(&self, groups: &Groups) -> Capacities {
        let segments = |families: &[PlannedFamily]| {
            let all = families.iter().flat_map(|family| &family.places);
            all.map(Vec::len).sum::<usize>()
        };
        let most = |of: fn(&SegmentKind) -> usize| {
            let all = groups.kinds.iter().flat_map(|kind| &kind.segments);
            all.map(of).max().unwrap_or(0)
        };
        let all = groups.kinds.iter().flat_map(|kind| &kind.segments);
        let reach = all.map(|one| one.deadline).max().unwrap_or(Span::ZERO);
        let reach = reach.saturating_add(groups.bound);
        let parts = match groups.plan.period.is_zero() {
            true => 0,
            false => reach / groups.plan.period + 3,
        };
        let parts = usize::try_from(parts).unwrap_or(usize::MAX);
        let mut count = segments(&groups.plan.repeating).saturating_mul(parts);
        count = count.saturating_add(segments(&groups.plan.first));
        for group in &self.system.groups {
            let apart = match &group.request {
                Request::OnLine { min_separation, .. } => min_separation.ticks_up(RATE),
                _ => reach,
            };
            let apart = apart.max(Span::from_ticks(1));
            let instances = (reach / apart + 2).min(MOST_INSTANCES);
            let instances = usize::try_from(instances).unwrap_or(usize::MAX);
            count = count.saturating_add(group.segments.len().saturating_mul(instances));
        }
        let spawned = |group: &&Group| group.request == Request::Spawned;
        let children = self.system.groups.iter().filter(spawned);
        let children: usize = children.map(|group| group.segments.len()).sum();
        let count = count.saturating_add(children.saturating_mul(62)).min(MOST);
        Capacities {
            segments: count,
            orders: count.saturating_mul(most(|one| one.after.len()) + 1),
            uses: count.saturating_mul(most(|one| one.uses.len())),
            cpus: self.homes.len().max(1),
            resources: self.system.resources.len() + self.threads,
        }
    }
}

/// These instants with at least this between them: one that comes too early waits.
fn spaced(times: impl Iterator<Item = Instant<Ns>>, apart: Span<Ns>) -> Vec<Instant<Ns>> {
    let mut spaced: Vec<Instant<Ns>> = Vec::new();
    for at in times {
        let last = spaced.last().map(|last| last.saturating_add(apart));
        spaced.push(last.map_or(at, |last| at.max(last)));
    }
    spaced
}
