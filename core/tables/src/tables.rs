//! From a system of the model to the shards that run it, on a platform with a given tick.
//!
//! Each task becomes one thread on its CPU's shard. Times become ticks here and nowhere else.
//! Tasks that precede each other must keep their common instants: 2 · 5 ms is 10 ms in ticks too,
//! or a job would wait for a predecessor that arrives one tick later. So within a set of tasks
//! joined by precedence, the greatest common divisor of all periods is rounded once. Each time is a
//! multiple of it and a rest: equal sums stay equal, and the error stays below half a tick per
//! divisor. A divisor of a few ticks would change the rate of everything: then each time is
//! rounded alone, and instants that coincide in the file may come a tick apart per period. Tasks
//! whose releases fall on those of a leader ([`System::leaders`]) are rounded on its divisor, or
//! else on its period, for one timer entry is to serve both.

mod agenda;
mod nodes;
mod plan;
mod resources;

use alloc::vec;
use alloc::vec::Vec;

use nodes::Trees;
use punctual_kern::{
    Capacity, ConfigError, Constraint, Edge, NodeId, Plan, Policy, Refusal, ResourceTerms, Shard,
    SlotTerms, Source, Tree, UseTerms, WaitOrder,
};
use punctual_model::{
    Class, CpuId, Frequency, Funding, Instant, Late, Ns, PolicyKind, Protocol, SchedulerId, Span,
    Stage, System, Task, TaskId, ThreadId, Use, When, Work,
};

pub use agenda::{AgendaTables, MAX_SEGMENTS};
pub use nodes::{FallbackRow, NodeRow};
pub use plan::Carry;

/// Most waiting jobs that one shard reserves room for, however large the backlogs are.
const MAX_PENDING: usize = 1 << 20;
/// Smallest common divisor, in ticks, that times are rounded on together: half a tick of it is then
/// at most 1/20,000 of the rate.
const LEAST_STEP: u64 = 10_000;
/// Longest turn of a background thread among its equals.
const BACKGROUND_TURN: Span<Ns> = When::TURN;

/// The shards of a system, in ticks of one platform.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tables {
    /// Ticks per second of everything below.
    pub frequency: Frequency,
    /// One per CPU, in the order of the file.
    pub cpus: Vec<CpuTables>,
}

/// The tables of one shard.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CpuTables {
    /// Which CPU.
    pub cpu: CpuId,
    /// Its policy; a timeslice counts ticks.
    pub policy: PolicyKind,
    /// Room in the shard.
    pub capacity: Capacity,
    /// Thread i runs the i-th of these, under the constraint beside it.
    pub threads: Vec<(TaskId, Constraint)>,
    /// The scheduler of thread i: the place of its node, 0 for the CPU's own.
    pub homes: Vec<u16>,
    /// The schedulers below the CPU's own; the first is the node at place 1. Parents come before
    /// their children.
    pub nodes: Vec<NodeRow>,
    /// The places of those that are not there at the start: a change lets them come.
    pub absent: Vec<u16>,
    /// Slots in the frames of nodes that divide time.
    pub slots: Vec<SlotTerms>,
    /// The policies of schedulers that decide on their own supply, for when they do not.
    pub fallbacks: Vec<FallbackRow>,
    /// Precedences: the successor's thread, and the edge.
    pub edges: Vec<(u32, Edge)>,
    /// Predecessors on other CPUs, by slot: first arrival and period.
    pub remotes: Vec<(Instant, Option<Span>)>,
    /// Which threads other shards wait for: the thread, the CPU, the slot there.
    pub notifications: Vec<(u32, CpuId, u32)>,
    /// The resources that threads of this shard lock, by their number here.
    pub resources: Vec<ResourceTerms>,
    /// Which thread declares which use.
    pub uses: Vec<(u32, UseTerms)>,
    /// For the segments of plans.
    pub agenda: AgendaTables,
}

impl Tables {
    /// Covers only the releases in [0, `duration`), which are counted in nanoseconds: rounding to
    /// ticks neither adds nor loses one. `system` is the one that the tables are of.
    pub fn set_duration(&mut self, system: &System, duration: Span<Ns>) {
        let end = Instant::ZERO.saturating_add(duration.ticks_up(self.frequency));
        let last = Instant::ZERO.saturating_add(duration.saturating_sub(Span::from_ns(1)));
        let stage = Stage::at_start(system);
        for cpu in &mut self.cpus {
            let by_clock = |(_, constraint): &&mut (TaskId, Constraint)| {
                !(constraint.fed && matches!(constraint.class, Class::Sporadic { .. }))
            };
            for (task, constraint) in cpu.threads.iter_mut().filter(by_clock) {
                let arrivals = system.tasks[task.index()].arrivals_until(last);
                let is_there = stage.task(*task).is_some();
                constraint.until = match (duration.is_zero() || !is_there, arrivals) {
                    (true, _) => Instant::ZERO,
                    (false, None) => end,
                    (false, Some(count)) => constraint.nominal_arrival(count),
                };
            }
        }
    }

    /// Budgets get room for the time that the machine takes on behalf of their jobs. A section,
    /// too, is charged for the scheduler inside it. `system` is the one that the tables are of.
    pub fn fund(&mut self, system: &System, funding: &Funding) {
        let mut cpus = core::mem::take(&mut self.cpus);
        for cpu in &mut cpus {
            cpu.capacity.grace = funding.grace.ticks_up(self.frequency);
            cpu.capacity.stop_cost = funding.stop.ticks_up(self.frequency);
            cpu.capacity.entry = funding.entry.ticks_up(self.frequency);
            cpu.capacity.cache_delay = funding.cache_delay.ticks_up(self.frequency);
            let each = funding.section.ticks_up(self.frequency);
            for (_, declared) in &mut cpu.uses {
                declared.length = declared.length.saturating_add(each);
            }
            for (id, constraint) in &mut cpu.threads {
                *constraint = self.funded(*constraint, (*id, system), funding);
            }
        }
        self.cpus = cpus;
    }

    /// A constraint of this task with the room in its budget. A stretch is counted at the start of
    /// a job, and after each suspension and each lock that may have to wait. The grace is on top.
    pub fn funded(
        &self,
        constraint: Constraint,
        (id, system): (TaskId, &System),
        funding: &Funding,
    ) -> Constraint {
        let task = &system.tasks[id.index()];
        let waits = |used: &&Use| {
            let resource = system.resources.get(used.resource.index());
            resource.is_some_and(|r| r.protocol == Protocol::Inheritance)
        };
        let again =
            u64::from(task.most_suspensions()) + task.uses.iter().filter(waits).count() as u64;
        let again = funding.again.ticks_up(self.frequency).saturating_mul(again);
        let costs = self.stretch(id, funding).saturating_add(again);
        let costs = costs.saturating_add(funding.grace.ticks_up(self.frequency));
        match constraint.class.budget() {
            Some(budget) if constraint.class.runs_per_job() => {
                constraint.with_budget(budget.saturating_add(costs))
            }
            _ => constraint,
        }
    }

    fn stretch(&self, id: TaskId, funding: &Funding) -> Work {
        let stretch = funding.stretches.get(id.index());
        stretch.map_or(Work::ZERO, |each| each.ticks_up(self.frequency))
    }

    /// The tables of a valid system. O(tasks + precedences).
    pub fn new(system: &System, frequency: Frequency) -> Tables {
        let grids = Grids::new(system, frequency);
        let mut cpus: Vec<CpuTables> = (0..system.cpus.len())
            .map(|index| CpuTables::empty(system, index, frequency))
            .collect();
        let trees = Trees::new(system, frequency);
        let stage = Stage::at_start(system);
        let mut places = Vec::with_capacity(system.tasks.len());
        for (index, task) in system.tasks.iter().enumerate() {
            let cpu = &mut cpus[task.cpu.index()];
            places.push(small(cpu.threads.len()));
            let id = TaskId(small(index));
            cpu.homes.push(trees.place(plan::home(&stage, id)));
            let mut constraint = grids.constraint(index, task);
            if stage.task(id).is_none() {
                constraint.until = Instant::ZERO;
            }
            cpu.threads.push((id, constraint));
        }
        for cpu in &mut cpus {
            cpu.size();
        }
        resources::add(system, (frequency, &trees), &places, &mut cpus);
        trees.plant(system, &places, &mut cpus);
        for (id, scheduler) in (0..).map(SchedulerId).zip(&system.schedulers) {
            if stage.scheduler(id).is_none() {
                let absent = &mut cpus[scheduler.cpu.index()].absent;
                absent.push(trees.place(Some(id)));
            }
        }
        let mut tables = Tables { frequency, cpus };
        for (index, task) in system.tasks.iter().enumerate() {
            let kinds = [(&task.after, false), (&task.follows, true)];
            for (predecessors, strict) in kinds {
                for &from in predecessors {
                    tables.connect(system, &places, (from, TaskId(small(index))), strict);
                }
            }
        }
        tables
    }

    fn connect(&mut self, system: &System, places: &[u32], edge: (TaskId, TaskId), strict: bool) {
        let (from, to) = edge;
        let from_cpu = system.tasks[from.index()].cpu;
        let to_cpu = system.tasks[to.index()].cpu;
        let (from_thread, to_thread) = (places[from.index()], places[to.index()]);
        let source = if from_cpu == to_cpu {
            Source::Local(ThreadId::new(from_thread, 0))
        } else {
            let class = &self.cpus[from_cpu.index()].threads[from_thread as usize].1;
            let arrivals = (
                Instant::ZERO.saturating_add(class.phase),
                class.class.min_separation(),
            );
            let remotes = &mut self.cpus[to_cpu.index()].remotes;
            let slot = small(remotes.len());
            remotes.push(arrivals);
            self.cpus[from_cpu.index()]
                .notifications
                .push((from_thread, to_cpu, slot));
            Source::Remote { slot }
        };
        self.cpus[to_cpu.index()].edges.push((
            to_thread,
            Edge {
                from: source,
                strict,
            },
        ));
    }
}

impl CpuTables {
    fn empty(system: &System, index: usize, frequency: Frequency) -> CpuTables {
        CpuTables {
            cpu: CpuId(u16::try_from(index).unwrap_or(u16::MAX)),
            policy: system.cpus[index].policy.in_ticks(frequency),
            capacity: Capacity {
                threads: 0,
                pending: 0,
                background_turn: BACKGROUND_TURN.ticks_up(frequency),
                nodes: 0,
                grace: Work::ZERO,
                stop_cost: Work::ZERO,
                entry: Work::ZERO,
                cache_delay: Work::ZERO,
            },
            threads: Vec::new(),
            homes: Vec::new(),
            nodes: Vec::new(),
            absent: Vec::new(),
            slots: Vec::new(),
            fallbacks: Vec::new(),
            edges: Vec::new(),
            remotes: Vec::new(),
            notifications: Vec::new(),
            resources: Vec::new(),
            uses: Vec::new(),
            agenda: AgendaTables::default(),
        }
    }

    fn size(&mut self) {
        let backlogs = self
            .threads
            .iter()
            .map(|(_, constraint)| match constraint.late {
                // The waiting jobs, and room for those of threads that come while it runs.
                Late::Queue { backlog } => (backlog as usize).saturating_mul(2),
                Late::Skip => 1,
            });
        self.capacity.threads = self.threads.len();
        self.capacity.pending = backlogs.fold(0, usize::saturating_add).min(MAX_PENDING);
    }

    /// Builds the shard. Thread i has index i and generation 0. `policy` makes the policy of a
    /// node, for entities with an index below that number, and with these slots.
    ///
    /// # Errors
    /// When the tables were changed by hand into something meaningless.
    pub fn build<P: Policy>(
        &self,
        policy: impl Fn(PolicyKind, usize, &[SlotTerms]) -> P,
    ) -> Result<Shard<P>, ConfigError> {
        let tree = self.tree(policy).map_err(ConfigError::Refused)?;
        let mut shard = Shard::new(tree);
        shard.set_wait_order(WaitOrder::of(self.policy));
        for row in &self.fallbacks {
            shard.set_fallback(NodeId::new(row.node, 0), row.policy, row.patience)?;
        }
        for (index, (_, constraint)) in self.threads.iter().enumerate() {
            let home = self.homes.get(index).copied().unwrap_or(0);
            let _ = shard.attach_to(NodeId::new(home, 0), *constraint)?;
        }
        for &(first_arrival, period) in &self.remotes {
            let _ = shard.add_remote(first_arrival, period);
        }
        for &(successor, edge) in &self.edges {
            shard.add_precedence(ThreadId::new(successor, 0), edge)?;
        }
        for &(thread, to, slot) in &self.notifications {
            shard.add_notification(ThreadId::new(thread, 0), to, slot)?;
        }
        for &resource in &self.resources {
            let _ = shard.add_resource(resource);
        }
        for &(thread, declared) in &self.uses {
            shard.declare_use(ThreadId::new(thread, 0), declared)?;
        }
        self.agenda.reserve(&mut shard)?;
        Ok(shard)
    }
}

impl CpuTables {
    /// The shard of a run with this plan: [`CpuTables::build`], with the policies that the plan
    /// asks for in stock.
    ///
    /// # Errors
    /// As [`CpuTables::build`].
    pub fn build_for<P: Policy>(
        &self,
        plan: &Plan,
        policy: impl Fn(PolicyKind, usize, &[SlotTerms]) -> P,
    ) -> Result<Shard<P>, ConfigError> {
        let mut shard = self.build(&policy)?;
        let made = |kind| (kind, policy(kind, self.capacity.entities(), &[]));
        shard.stock(self.policies_in_core(plan).map(made));
        Ok(shard)
    }

    /// Makes room for threads that are created and schedulers that are promoted while it runs.
    pub fn make_room(&mut self, threads: usize, nodes: u16) {
        let before = small(self.capacity.threads);
        self.capacity.threads += threads;
        self.capacity.pending = (self.capacity.pending + 4 * threads + 64).min(MAX_PENDING);
        self.capacity.nodes = self.capacity.nodes.saturating_add(nodes);
        // Schedulers come after the threads among the entities of a policy.
        for slot in self.slots.iter_mut().filter(|slot| slot.entity >= before) {
            slot.entity = slot.entity.saturating_add(small(threads));
        }
    }

    /// The slots in the frame of the node at this place.
    pub fn slots_of(&self, place: u16) -> Vec<SlotTerms> {
        let slots = self.slots.iter().filter(|slot| slot.node == place);
        slots.copied().collect()
    }

    /// The tree that orders the CPU. O(threads · schedulers).
    fn tree<P: Policy>(
        &self,
        policy: impl Fn(PolicyKind, usize, &[SlotTerms]) -> P,
    ) -> Result<Tree<P>, Refusal> {
        let policy = |place: u16, kind: PolicyKind| {
            policy(kind, self.capacity.entities(), &self.slots_of(place))
        };
        let mut tree = Tree::new(self.capacity, policy(0, self.policy));
        for (place, node) in (1..).zip(&self.nodes) {
            let parent = NodeId::new(node.parent, 0);
            // One that decides on its own supply has a policy here for when it does not.
            let fallback = self.fallbacks.iter().find(|row| row.node == place);
            let kind = fallback.map_or(node.policy, |row| row.policy);
            if self.absent.contains(&place) {
                tree.add_kept(policy(place, kind), node.terms.order)?;
                continue;
            }
            let _ = tree.add(parent, policy(place, kind), node.terms)?;
        }
        if self.nodes.iter().any(|node| node.terms.receiver.is_some()) {
            tree.check_slices()?;
        }
        // What is left of the capacity is for schedulers that are promoted later.
        let spare = PolicyKind::FixedPriority { preemptive: true };
        while tree.add_spare(policy(u16::MAX, spare)).is_ok() {}
        Ok(tree)
    }
}

/// For each task, the divisor on which its times are rounded, in nanoseconds and in ticks.
struct Grids {
    frequency: Frequency,
    steps: Vec<Option<(u64, u64)>>,
}

impl Grids {
    fn new(system: &System, frequency: Frequency) -> Grids {
        let groups = system.joined_by_precedence();
        let mut divisors = vec![0_u64; system.tasks.len()];
        for (task, &group) in system.tasks.iter().zip(&groups) {
            let period = task.class.min_separation().map_or(0, Span::as_ns);
            divisors[group] = gcd(divisors[group], period);
        }
        let connected = |t: &Task| !(t.after.is_empty() && t.follows.is_empty());
        let mut has_edges = vec![false; system.tasks.len()];
        for (index, task) in system.tasks.iter().enumerate() {
            has_edges[groups[index]] |= connected(task);
        }
        let step = |divisor: u64| match divisor {
            0 => None,
            divisor => Some((divisor, frequency.ticks_nearest(divisor))),
        };
        let of_group = |group: usize| {
            let step = step(divisors[group]).filter(|_| has_edges[group]);
            step.filter(|&(_, ticks)| ticks >= LEAST_STEP)
        };
        let mut steps: Vec<_> = groups.iter().map(|&group| of_group(group)).collect();
        for (index, leader) in system.leaders().into_iter().enumerate() {
            let Some(leader) = leader.map(TaskId::index) else {
                continue;
            };
            let period = system.tasks[leader].class.min_separation();
            let of_leader = of_group(groups[leader]).or(step(period.map_or(0, Span::as_ns)));
            (steps[index], steps[leader]) = (of_leader, of_leader);
        }
        Grids { frequency, steps }
    }

    fn constraint(&self, index: usize, task: &Task) -> Constraint {
        let frequency = self.frequency;
        let time = |span: Span<Ns>| match self.steps[index] {
            Some((divisor, ticks)) => {
                let rest = frequency.ticks_nearest(span.as_ns() % divisor);
                let steps = (span.as_ns() / divisor).saturating_mul(ticks);
                Span::from_ticks(steps.saturating_add(rest))
            }
            None => span.ticks_nearest(frequency),
        };
        let order = small(index);
        Constraint::of_task(task, order).convert(time, |work| work.ticks_up(frequency))
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn small(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use punctual_model::{Class, Work};

    fn periodic(name: &str, cpu: u16, ms: u64) -> Task {
        let class = Class::Periodic {
            period: Span::from_ms(ms),
            wcet: Work::from_us(10),
            relative_deadline: Span::from_ms(ms),
        };
        Task::new(name.to_string(), CpuId(cpu), class)
    }

    fn two_cpus() -> System {
        let cpu = |name: &str| punctual_model::Cpu {
            name: name.to_string(),
            host: None,
            policy: PolicyKind::EarliestDeadlineFirst,
        };
        let mut system = System {
            cpus: vec![cpu("0"), cpu("1")],
            ..System::default()
        };
        system.tasks = vec![
            periodic("a", 0, 5),
            periodic("b", 0, 10),
            periodic("c", 1, 15),
        ];
        system.tasks[1].after = vec![TaskId(0)];
        system.tasks[2].follows = vec![TaskId(1)];
        system
    }

    #[test]
    fn tasks_joined_by_precedence_keep_their_common_instants_at_any_frequency() {
        for hertz in [2_249_987_654, 999_999_937, 33_333_333, 3_000_000_001] {
            let frequency = Frequency::try_new(hertz).expect("not zero");
            let tables = Tables::new(&two_cpus(), frequency);
            let period = |cpu: usize, thread: usize| {
                let class = tables.cpus[cpu].threads[thread].1.class;
                class.min_separation().expect("periodic").ticks()
            };
            assert_eq!(period(0, 1), 2 * period(0, 0));
            assert_eq!(period(1, 0), 3 * period(0, 0));
            let ideal = u128::from(hertz) * 15 / 1_000;
            assert!(u128::from(period(1, 0)).abs_diff(ideal) <= 3);
        }
    }

    #[test]
    fn releases_that_fall_together_do_so_in_ticks_at_any_frequency() {
        let mut system = two_cpus();
        system.tasks = [
            (2_000, 0),
            (2_500, 0),
            (4_000, 6_000),
            (12_500, 5_000),
            (7, 1),
        ]
        .map(|(period, phase)| {
            let mut task = periodic("t", 0, 1);
            *task.class.relative_deadline_mut().expect("it has one") = Span::from_us(period);
            if let Class::Periodic { period: own, .. } = &mut task.class {
                *own = Span::from_us(period);
            }
            task.phase = Span::from_us(phase);
            task
        })
        .into();
        let leaders = system.leaders();
        assert_eq!(
            leaders,
            [None, None, Some(TaskId(0)), Some(TaskId(1)), None]
        );
        for hertz in [2_445_434_097, 999_999_937, 33_333_333, 3_000_000_001] {
            let frequency = Frequency::try_new(hertz).expect("not zero");
            let tables = Tables::new(&system, frequency);
            let row = |thread: usize| {
                let constraint = tables.cpus[0].threads[thread].1;
                let period = constraint.class.min_separation().expect("periodic");
                (period.ticks(), constraint.phase.ticks())
            };
            for (own, leader) in (0..).zip(&leaders) {
                let (period, phase) = row(own);
                let ideal = |us: u64| u128::from(hertz) * u128::from(us) / 1_000_000;
                let class = &system.tasks[own].class;
                let us = class.min_separation().expect("periodic").as_ns() / 1_000;
                assert!(
                    u128::from(period).abs_diff(ideal(us)) <= 4,
                    "{us} at {hertz}"
                );
                if let Some(leader) = leader {
                    let (step, first) = row(leader.index());
                    assert_eq!((period % step, phase % step), (0, first % step));
                }
            }
        }
    }

    #[test]
    fn an_odd_nanosecond_does_not_change_the_rate_of_joined_tasks() {
        let frequency = Frequency::try_new(2_249_987_654).expect("not zero");
        let ticks = |system: &System, thread: usize| {
            let tables = Tables::new(system, frequency);
            let class = tables.cpus[0].threads[thread].1.class;
            class.min_separation().expect("periodic").ticks()
        };
        let mut phased = two_cpus();
        phased.tasks[1].phase = Span::from_ns(1);
        assert!(ticks(&phased, 1).abs_diff(22_499_877) <= 3, "of a phase");
        assert_eq!(ticks(&phased, 1), 2 * ticks(&phased, 0));
        let mut odd = two_cpus();
        odd.tasks[0] = Task {
            class: Class::Periodic {
                period: Span::from_ns(3_333_333),
                wcet: Work::from_us(10),
                relative_deadline: Span::from_ms(3),
            },
            ..periodic("a", 0, 5)
        };
        assert!(ticks(&odd, 1).abs_diff(22_499_877) <= 3, "of a period");
    }

    #[test]
    fn a_duration_covers_exactly_the_releases_that_it_has_in_nanoseconds() {
        let system = two_cpus();
        let frequency = Frequency::try_new(2_249_987_654).expect("not zero");
        let mut tables = Tables::new(&system, frequency);
        tables.set_duration(&system, Span::from_ms(10_000));
        let count = |cpu: usize, thread: usize| {
            let c = tables.cpus[cpu].threads[thread].1;
            let period = c.class.min_separation().expect("periodic").ticks();
            c.until.ticks().div_ceil(period)
        };
        assert_eq!([count(0, 0), count(0, 1), count(1, 0)], [2_000, 1_000, 667]);
    }

    #[test]
    fn a_predecessor_on_another_cpu_is_a_slot_here_and_a_notification_there() {
        let tables = Tables::new(&two_cpus(), Frequency::NANOSECONDS);
        assert_eq!(tables.cpus[0].notifications, [(1, CpuId(1), 0)]);
        assert_eq!(
            tables.cpus[1].remotes,
            [(Instant::ZERO, Some(Span::from_ticks(10_000_000)))]
        );
        let edge = Edge {
            from: Source::Remote { slot: 0 },
            strict: true,
        };
        assert_eq!(tables.cpus[1].edges, [(0, edge)]);
    }
}
