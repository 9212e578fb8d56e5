//! The loop: the earliest instant of all CPUs, again and again.

use std::collections::VecDeque;
use std::fmt;

use punctual_child::ChildScheduler;
use punctual_kern::{Plan, Policy, Shard, Sink};
use punctual_model::{Class, Clock, CpuId, Instant, Ns, Span, Step, System, TaskId};
use punctual_tables::{CpuTables, Tables};

use crate::agendas::{Order, Planner, Planning};
use crate::body::Body;
use crate::cpu::{Cpu, Threads};
use crate::faults::Faults;
use crate::groups::groups;
use crate::recorded::Recording;
use crate::requests::{GroupOutcome, Groups};
use crate::{MAX_CPUS, RATE};

/// What a simulation is asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Releases in [0, this) are covered.
    pub duration: Span<Ns>,
    /// Seed of arrivals and faults.
    pub seed: u64,
    /// What goes wrong.
    pub faults: Faults,
    /// The changes while it runs, CPU by CPU; nothing where there is no plan.
    pub plans: Vec<Plan>,
}

/// One CPU's part of the input: shard and recorder; the tables give the rest.
#[derive(Debug)]
pub struct CpuInput<P, S> {
    /// Its scheduler, built from the tables.
    pub shard: Shard<P>,
    /// What is told about it.
    pub sink: S,
}

/// A job that has just completed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// Whose.
    pub task: TaskId,
    /// Which.
    pub job: u64,
    /// When it arrived.
    pub arrival: Instant,
    /// When it completed.
    pub now: Instant,
}

/// Watches a simulation from outside.
pub trait Observer {
    /// A job has completed: the moment to execute its function, if it has one.
    fn completed(&mut self, completion: Completion) {
        let _ = completion;
    }

    /// Whether completions of CPUs that exchange no messages must be told in the order of time.
    /// Costs a comparison per CPU and event; otherwise they are told CPU by CPU.
    fn needs_order(&self) -> bool {
        false
    }

    /// Called now and then with the current instant; `false` ends the simulation early.
    fn goes_on(&mut self, now: Instant) -> bool {
        let _ = now;
        true
    }
}

impl Observer for () {}

/// What one CPU did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CpuOutcome<S> {
    /// Which CPU.
    pub cpu: CpuId,
    /// The recorder, filled.
    pub sink: S,
    /// Numbers of the platform.
    pub counters: Counters,
}

/// What a simulation gives back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome<S> {
    /// One per CPU, in the order of the file.
    pub cpus: Vec<CpuOutcome<S>>,
    /// The instant of the last event.
    pub end: Instant,
    /// The observer ended it early.
    pub stopped: bool,
    /// The requests for groups, in the order in which they were planned.
    pub groups: Vec<GroupOutcome>,
}

/// Counts of one virtual CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Entries of the scheduler.
    pub decisions: u64,
    /// Decisions that changed who runs.
    pub switches: u64,
    /// Time charged to nobody, in total.
    pub missing_total: Span,
    /// The longest piece of it.
    pub missing_max: Span,
}

impl Counters {
    pub(crate) fn missing(&mut self, span: Span) {
        self.missing_total = self.missing_total.saturating_add(span);
        self.missing_max = self.missing_max.max(span);
    }
}

/// Why a simulation was not started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SimError {
    /// More than [`MAX_CPUS`].
    TooManyCpus(usize),
    /// Not one input per CPU of the tables.
    InputsDoNotMatch,
    /// A resource of this name whose users stand on several CPUs: nothing would keep them apart.
    AcrossCpus(String),
}

impl fmt::Display for SimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SimError::TooManyCpus(n) => {
                write!(f, "{n} CPUs: virtual time runs at most {MAX_CPUS}")
            }
            SimError::InputsDoNotMatch => {
                write!(f, "one shard and one recorder per CPU needed")
            }
            SimError::AcrossCpus(name) => write!(
                f,
                "resource `{name}`: its users are on several CPUs, and waiting across CPUs is not \
                 bounded: place its users on one CPU"
            ),
        }
    }
}

impl std::error::Error for SimError {}

/// Marks the threads whose arrivals this platform feeds to draw their jitter. Part of the tables,
/// so that whoever replays a recorded run builds the same shards.
pub fn prepare(system: &System, tables: &mut Tables, faults: &Faults) {
    for (task, constraint) in tables.cpus.iter_mut().flat_map(|cpu| &mut cpu.threads) {
        let jitter = system.tasks[task.index()].jitter;
        let periodic = matches!(constraint.class, Class::Periodic { .. });
        let injected = faults.jitter || faults.dense_jitter;
        // Arrivals are fed by the declared period.
        let stays = !retimed(system, *task);
        let by_plan = constraint.fed && matches!(constraint.class, Class::Sporadic { .. });
        constraint.fed = by_plan || injected && periodic && stays && !jitter.is_zero();
    }
}

/// Whether a change gives this task another constraint.
pub(crate) fn retimed(system: &System, task: TaskId) -> bool {
    let mut steps = system.changes.iter().flat_map(|change| &change.steps);
    steps.any(|step| matches!(step, Step::Constrain(id, _) if *id == task))
}

/// How many steps pass between two questions whether to go on ([`Observer::goes_on`]).
pub const STEPS_PER_QUESTION: u32 = 4_096;

/// Runs a system, its tables prepared ([`prepare`]), in virtual time. Their frequency must be
/// nanoseconds. It ends when all jobs released in [0, duration) are done, or one longest relative
/// deadline after that.
///
/// Cost: O(events · (log threads + CPUs that exchange messages)).
///
/// # Errors
/// Too many CPUs, inputs that do not match, or a resource across CPUs.
pub fn run<P: Policy, S: Sink>(
    system: &System,
    tables: &Tables,
    inputs: Vec<CpuInput<P, S>>,
    options: &Options,
    observer: &mut impl Observer,
) -> Result<Outcome<S>, SimError> {
    run_with(system, tables, inputs, Guests::default(), options, observer)
}

/// Code that a program brings into a simulation.
#[derive(Default)]
pub struct Guests<'a> {
    /// Of schedulers that decide on their own supply, CPU by CPU. One without code never answers.
    pub children: Vec<Vec<ChildScheduler>>,
    /// The bodies of these tasks, in place of the declared ones.
    pub bodies: Vec<(TaskId, Box<dyn Body + 'a>)>,
    /// Groups that are planned while it runs.
    pub groups: Option<Groups>,
}

impl fmt::Debug for Guests<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tasks: Vec<TaskId> = self.bodies.iter().map(|(task, _)| *task).collect();
        f.debug_struct("Guests")
            .field("children", &self.children)
            .field("bodies", &tasks)
            .field("groups", &self.groups)
            .finish()
    }
}

/// [`run`] with code of a program: schedulers that decide on their own supply, and bodies.
///
/// # Errors
/// As [`run`].
pub fn run_with<'a, P: Policy, S: Sink>(
    system: &'a System,
    tables: &Tables,
    inputs: Vec<CpuInput<P, S>>,
    guests: Guests<'a>,
    options: &Options,
    observer: &mut impl Observer,
) -> Result<Outcome<S>, SimError> {
    if let Some(name) = shared_across_cpus(system) {
        return Err(SimError::AcrossCpus(name.into()));
    }
    let given = (&options.faults, options.seed);
    let plans = options.plans.iter().cloned();
    let mut plans = plans.chain(core::iter::repeat_with(Plan::default));
    let horizon = Instant::ZERO.saturating_add(options.duration.ticks_up(RATE));
    let Guests {
        children,
        mut bodies,
        groups: planned,
    } = guests;
    let links = links(system, &bodies);
    let threads = |cpu: &CpuTables| {
        let plan = plans.next().unwrap_or_default();
        Threads::declared(system, cpu, given, (plan, horizon), &mut bodies)
    };
    let grace = longest_deadline(system).max(later(options.plans.iter()));
    let grace = grace.max(planned.as_ref().map_or(Span::ZERO, Groups::grace));
    let planning = planned.map(|groups| Planning::new(groups, &tables.cpus, horizon));
    let limit = horizon.saturating_add(grace);
    let cpus = build(tables, inputs, children, given, threads)?;
    let groups = groups(&tables.cpus, &links);
    let clock = |cpu: &CpuTables| options.faults.clock(cpu.cpu, options.seed);
    let clocks: Vec<Clock> = tables.cpus.iter().map(clock).collect();
    let until = (horizon, limit);
    Ok(play(
        tables,
        cpus,
        (groups, &clocks, planning),
        until,
        observer,
    ))
}

/// The CPUs of bodies that nudge each other, in pairs.
fn links(system: &System, bodies: &[(TaskId, Box<dyn Body + '_>)]) -> Vec<(usize, usize)> {
    let cpu = |task: TaskId| system.tasks.get(task.index()).map(|task| task.cpu.index());
    let pairs = bodies.iter().flat_map(|(task, body)| {
        let peers = body.peers().iter();
        peers.filter_map(move |peer| Some((cpu(*task)?, cpu(*peer)?)))
    });
    pairs.collect()
}

/// Runs what was recorded, CPU by CPU, under the policies of `tables` and of `inputs`, which need
/// not be those of the run. `tables` counts ticks of any frequency, and so do the recordings. It
/// ends when everything released before `horizon` is done, or one longest relative deadline after
/// it.
///
/// # Errors
/// As [`run`].
pub fn run_recorded<P: Policy, S: Sink>(
    tables: &Tables,
    recordings: Vec<Recording>,
    inputs: Vec<CpuInput<P, S>>,
    children: Vec<Vec<ChildScheduler>>,
    horizon: Instant,
    observer: &mut impl Observer,
) -> Result<Outcome<S>, SimError> {
    let changed = later(recordings.iter().map(|recording| &recording.plan));
    let nothing = core::iter::repeat_with(Recording::default);
    let mut recordings = recordings.into_iter().chain(nothing);
    let threads = |cpu: &CpuTables| Threads::recorded(cpu, recordings.next().unwrap_or_default());
    let classes = tables.cpus.iter().flat_map(|cpu| &cpu.threads);
    let deadlines = classes.filter_map(|(_, constraint)| constraint.class.relative_deadline());
    let limit = horizon.saturating_add(deadlines.max().unwrap_or(Span::ZERO).max(changed));
    let faults = Faults::default();
    let cpus = build(tables, inputs, children, (&faults, 0), threads)?;
    let groups = groups(&tables.cpus, &[]);
    let until = (horizon, limit);
    Ok(play(tables, cpus, (groups, &[], None), until, observer))
}

fn build<'a, P: Policy, S: Sink>(
    tables: &Tables,
    inputs: Vec<CpuInput<P, S>>,
    children: Vec<Vec<ChildScheduler>>,
    given: (&Faults, u64),
    mut threads: impl FnMut(&CpuTables) -> Threads<'a>,
) -> Result<Vec<Option<Cpu<'a, P, S>>>, SimError> {
    if tables.cpus.len() > MAX_CPUS {
        return Err(SimError::TooManyCpus(tables.cpus.len()));
    }
    if inputs.len() != tables.cpus.len() {
        return Err(SimError::InputsDoNotMatch);
    }
    let children = children
        .into_iter()
        .chain(core::iter::repeat_with(Vec::new));
    let all = inputs.into_iter().zip(&tables.cpus).zip(children);
    let cpu = |((input, tables), codes): ((CpuInput<P, S>, &CpuTables), Vec<ChildScheduler>)| {
        Some(Cpu::new(threads(tables), tables, input, codes, given))
    };
    Ok(all.map(cpu).collect())
}

/// Runs the CPUs, together those that exchange messages.
fn play<P: Policy, S: Sink>(
    tables: &Tables,
    mut cpus: Vec<Option<Cpu<'_, P, S>>>,
    (groups, clocks, mut planning): (Vec<Vec<usize>>, &[Clock], Option<Planning>),
    (horizon, limit): (Instant, Instant),
    observer: &mut impl Observer,
) -> Outcome<S> {
    let mut end = Instant::ZERO;
    let mut stopped = false;
    let together = if observer.needs_order() {
        vec![(0..tables.cpus.len()).collect()]
    } else {
        groups
    };
    for group in together {
        let mut members: Vec<(usize, Cpu<'_, P, S>)> = group
            .iter()
            .filter_map(|&i| cpus[i].take().map(|cpu| (i, cpu)))
            .collect();
        if !stopped {
            let mut group = Group {
                members: &mut members,
                horizon,
                limit,
                now: Instant::ZERO,
                // Alone, a CPU knows no time but its own.
                clocks: match clocks.iter().all(|clock| clock.is_true()) || group.len() < 2 {
                    true => &[],
                    false => clocks,
                },
                seen: vec![Instant::ZERO; group.len()],
                planner: Planner::of(planning.as_mut(), &group),
            };
            stopped = !group.run(observer);
            end = end.max(group.now);
        }
        for (i, cpu) in members {
            cpus[i] = Some(cpu);
        }
    }
    let cpus = cpus
        .into_iter()
        .flatten()
        .zip(&tables.cpus)
        .map(|(cpu, tables)| {
            let counters = cpu.counters;
            CpuOutcome {
                cpu: tables.cpu,
                sink: cpu.sink,
                counters,
            }
        });
    Outcome {
        cpus: cpus.collect(),
        end,
        stopped,
        groups: planning.map_or_else(Vec::new, Planning::outcomes),
    }
}

/// The first resource whose users stand on several CPUs: nothing would keep those apart. O(uses).
pub fn shared_across_cpus(system: &System) -> Option<&str> {
    let mut cpu_of = vec![None; system.resources.len()];
    for task in &system.tasks {
        for one in &task.uses {
            let cpu = cpu_of.get_mut(one.resource.index())?;
            if *cpu.get_or_insert(task.cpu) != task.cpu {
                return Some(&system.resources[one.resource.index()].name);
            }
        }
    }
    None
}

/// The longest relative deadline that a change brings.
fn later<'a>(plans: impl Iterator<Item = &'a Plan>) -> Span {
    plans
        .map(Plan::longest_deadline)
        .max()
        .unwrap_or(Span::ZERO)
}

fn longest_deadline(system: &System) -> Span {
    let deadlines = system
        .tasks
        .iter()
        .filter_map(|task| task.class.relative_deadline());
    deadlines.max().unwrap_or(Span::ZERO).ticks_up(RATE)
}

/// CPUs that are simulated together.
struct Group<'g, 'a, P, S> {
    members: &'g mut [(usize, Cpu<'a, P, S>)],
    horizon: Instant,
    limit: Instant,
    now: Instant,
    /// The clocks of all CPUs, if any of them is wrong. Every CPU lives by its own; the order of
    /// what happens between them is that of true time.
    clocks: &'g [Clock],
    /// The last instant of each member, by its own clock.
    seen: Vec<Instant>,
    /// The planner of groups, if it plans for these members.
    planner: Option<Planner<'g>>,
}

impl<P: Policy, S: Sink> Group<'_, '_, P, S> {
    /// Returns `false` when the observer ended it.
    fn run(&mut self, observer: &mut impl Observer) -> bool {
        let mut steps = 0_u32;
        loop {
            let next = self.earliest();
            if self.plan(next.map(|(now, _)| now)) {
                continue;
            }
            let Some((now, at)) = next else { break };
            if now > self.limit || (now >= self.horizon && self.is_done()) {
                break;
            }
            if self.members[at].1.stand_still(now) {
                continue;
            }
            if self.clocks.is_empty() {
                self.now = now;
            } else {
                self.saw(at, now);
            }
            let completion = self.members[at].1.step(now);
            self.deliver_messages(at, now);
            self.deliver_nudges(at, now);
            self.tell_planner(at, now);
            if let Some(completion) = completion {
                observer.completed(completion);
            }
            steps = steps.wrapping_add(1);
            if steps.is_multiple_of(STEPS_PER_QUESTION) && !observer.goes_on(now) {
                return false;
            }
        }
        true
    }

    /// The planner of groups does its part, when all members have gone on to the instant at which
    /// that is due; `false`: nothing is.
    fn plan(&mut self, members: Option<Instant>) -> bool {
        let Some(planner) = &mut self.planner else {
            return false;
        };
        let due = planner.planning.next_instant();
        let due = due
            .map(|due| due.max(self.now))
            .filter(|&due| due <= self.limit);
        let Some(due) = due.filter(|&due| members.is_none_or(|now| due < now)) else {
            return false;
        };
        let obeyed = |&member: &usize| self.members[member].1.has_obeyed();
        if planner.planning.begins(due) && !planner.members.iter().all(obeyed) {
            return false;
        }
        self.now = due;
        let orders = planner.planning.act(due);
        let places = &planner.members;
        deliver(self.members, (places, due), orders);
        true
    }

    /// The planner sees how far a member is, and what follows.
    #[inline]
    fn tell_planner(&mut self, member: usize, now: Instant) {
        let Some(planner) = &mut self.planner else {
            return;
        };
        let cpu = planner.members.iter().position(|&at| at == member);
        if let Some(cpu) = cpu
            && let Some(orders) = planner
                .planning
                .see(cpu, now, self.members[member].1.agenda())
        {
            let places = &planner.members;
            deliver(self.members, (places, now), orders);
        }
    }

    /// The next instant and the member to which it belongs; equal instants in the order of CPUs.
    #[inline]
    fn earliest(&self) -> Option<(Instant, usize)> {
        if !self.clocks.is_empty() {
            return self.truly_earliest();
        }
        if let [(_, alone)] = &*self.members {
            return alone.next_instant().map(|at| (at, 0));
        }
        let instants = self.members.iter().enumerate();
        let instants = instants.filter_map(|(i, (_, cpu))| Some((cpu.next_instant()?, i)));
        instants.min()
    }

    /// The same where clocks differ.
    #[cold]
    fn truly_earliest(&self) -> Option<(Instant, usize)> {
        let instants = self.members.iter().enumerate();
        let instants = instants.filter_map(|(i, (_, cpu))| Some((cpu.next_instant()?, i)));
        instants.min_by_key(|&(instant, i)| (self.truly(i, instant), i))
    }

    /// A member takes a step, by its own clock. Another may have been ahead of it.
    #[cold]
    fn saw(&mut self, member: usize, now: Instant) {
        self.now = self.now.max(now);
        self.seen[member] = now;
    }

    /// The true time of an instant of a member.
    fn truly(&self, member: usize, at: Instant) -> i64 {
        let reads = i64::try_from(at.ticks()).unwrap_or(i64::MAX);
        let clock = self.clocks.get(self.members[member].0);
        clock.map_or(reads, |clock| clock.truly(reads))
    }

    /// The instant of member `to` at which it is `now` for member `from`.
    fn instant_of(&self, to: usize, (from, now): (usize, Instant)) -> Instant {
        let Some(clock) = self.clocks.get(self.members[to].0) else {
            return now;
        };
        let reads = clock.reads(self.truly(from, now));
        let reads = Instant::from_ticks(u64::try_from(reads).unwrap_or(0));
        reads.max(self.seen[to])
    }

    /// A job that was due before the horizon is still to come when its release is delayed past it.
    fn is_done(&self) -> bool {
        let plans = self.planner.as_ref();
        plans.is_none_or(|planner| planner.planning.is_idle())
            && self.members.iter().all(|(_, cpu)| {
                !cpu.unsettled()
                    && !cpu.has_arrivals()
                    && cpu.has_obeyed()
                    && !cpu.owes_timer_before(self.horizon)
            })
    }

    #[inline]
    fn deliver_nudges(&mut self, from: usize, now: Instant) {
        while let Some(task) = self.members[from].1.nudges.pop() {
            for to in 0..self.members.len() {
                let now = self.instant_of(to, (from, now));
                self.members[to].1.be_nudged(task, now);
            }
        }
    }

    fn deliver_messages(&mut self, from: usize, now: Instant) {
        while let Some(message) = self.members[from].1.take_message() {
            let to = self
                .members
                .iter()
                .position(|(cpu, _)| *cpu == message.to.index());
            if let Some(to) = to {
                let now = self.instant_of(to, (from, now));
                self.members[to].1.hear(now, message);
            }
        }
    }
}

/// Orders for the members at these places.
fn deliver<P: Policy, S: Sink>(
    members: &mut [(usize, Cpu<'_, P, S>)],
    (places, now): (&[usize], Instant),
    orders: Vec<VecDeque<Order>>,
) {
    for (&member, orders) in places.iter().zip(orders) {
        for order in orders {
            members[member].1.tell(now, order);
        }
    }
}
