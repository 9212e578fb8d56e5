//! From which situations a system is simulated, so that the worst has a chance to happen.

use punctual::{Faults, MissingTime, Overrun};
use punctual_generate::Random;
use punctual_model::{
    Arrivals, Class, CpuId, Instant, Ns, PolicyKind, Server, Span, Supply, System, Task, TaskId,
    Work, WorkSource,
};

use crate::claim::Fund;
use crate::observe::Look;
use crate::phases::{self, Alignment, blockers, common_instant, costs_are_simulated, groups};

/// A system in a situation that its description allows.
#[derive(Clone, Debug)]
pub(crate) struct Situation {
    /// What it is, in words.
    pub(crate) name: String,
    /// The system with its phases, arrivals and work.
    pub(crate) system: System,
    /// How to look at it.
    pub(crate) look: Look,
    /// First arrivals are those of the description, and no job does less than it says.
    pub(crate) as_described: bool,
    /// Tasks that do more than they may; nothing is claimed of them.
    pub(crate) culprits: Vec<usize>,
}

/// Of which system, and with how much effort.
#[derive(Clone, Debug)]
pub(crate) struct Stage<'a> {
    pub(crate) system: &'a System,
    pub(crate) seed: u64,
    /// Whether the logs of this system are held against the rules of scheduling.
    pub(crate) check_rules: bool,
    /// Budgets where the machine takes time for itself.
    pub(crate) fund: Fund,
}

impl Stage<'_> {
    /// All situations of a system, the cheapest and the most telling first. Equal streams give
    /// equal situations.
    pub(crate) fn situations(&self, random: &mut Random) -> Vec<Situation> {
        let mut all = vec![self.given(), self.together()];
        for task in 0..self.system.tasks.len() {
            if self.system.tasks[task].class.is_real_time() {
                self.critical(random, task, &mut all);
            }
        }
        let hierarchical = !self.system.schedulers.is_empty();
        for round in 0..if hierarchical { 6 } else { 2 } {
            all.push(self.random_phases(random, round));
            all.push(self.shorter(random, round));
        }
        all.extend(self.overrun(random));
        for task in 0..self.system.tasks.len() {
            all.extend(self.overruns_with_costs(random, task));
        }
        all
    }

    /// A situation of this system; `start`: when it begins in earnest.
    pub(crate) fn situation(&self, name: String, mut system: System, start: u64) -> Situation {
        let duration = phases::duration(&system, start);
        let paid = costs_are_simulated(&system);
        if paid {
            leave_room(&mut system);
        }
        let paid = |cost: Work<Ns>| if paid { cost } else { Work::ZERO };
        Situation {
            name,
            look: Look {
                faults: Faults {
                    dense_jitter: true,
                    missing: standstills(&system),
                    timer_cost: paid(system.machine.timer),
                    budget_timer_cost: paid(system.machine.budget_timer),
                    cache_delay: paid(system.machine.cache_delay),
                    ..Faults::default()
                },
                duration,
                seed: self.seed,
                check_rules: self.check_rules,
                transitions: None,
            },
            system,
            as_described: false,
            culprits: Vec::new(),
        }
    }

    /// One that begins in earnest at `at`: the machine takes its time from there on, too.
    fn at(&self, at: u64, name: String, system: System) -> Situation {
        let mut situation = self.situation(name, system, at);
        situation.look.faults.missing_from = Some(Instant::from_ns(at));
        situation
    }

    /// As described, with jitter drawn at random.
    fn given(&self) -> Situation {
        let mut system = self.system.clone();
        worst_work(&mut system);
        let mut situation = self.situation("as described".into(), system, 0);
        situation.look.faults.dense_jitter = false;
        situation.look.faults.jitter = true;
        situation.as_described = true;
        situation
    }

    /// Everything released together.
    fn together(&self) -> Situation {
        let at = common_instant(self.system, None);
        let alignment = Alignment {
            at,
            blocker: None,
            own: None,
        };
        self.aligned(alignment, "all released together".into())
    }

    /// Releases that need not fall together come a little more than a timer entry apart, that of
    /// the task first, so that none is served by the entry of another.
    fn apart(&self, task: usize) -> Option<Situation> {
        if !costs_are_simulated(self.system) {
            return None;
        }
        let at = common_instant(self.system, None);
        let mut system = self.system.clone();
        worst_work(&mut system);
        phases::set_apart(
            &mut system,
            task,
            (at, self.system.machine.timer.as_ns() + 1),
        );
        let name = &self.system.tasks[task].name;
        let words = format!("all released one timer entry apart, {name} first");
        Some(self.at(at, words, system))
    }

    /// Worst-case jobs released as `alignment` says.
    fn aligned(&self, alignment: Alignment, name: String) -> Situation {
        let mut system = self.system.clone();
        worst_work(&mut system);
        alignment.apply(&mut system);
        self.at(alignment.at, name, system)
    }

    /// The critical situations of one task: all released together behind the section of a less
    /// urgent one; and, below servers and in slots, at the instants at which supply has just gone.
    fn critical(&self, random: &mut Random, task: usize, all: &mut Vec<Situation>) {
        all.extend(self.apart(task));
        let name = &self.system.tasks[task].name;
        for blocker in blockers(self.system, task) {
            let alignment = Alignment {
                at: common_instant(self.system, Some(blocker)),
                blocker: Some(blocker),
                own: Some((task, 0)),
            };
            let section = &self.system.tasks[blocker.task].name;
            let words = format!("critical for {name}, behind a section of {section}");
            all.push(self.aligned(alignment, words));
        }
        for offset in supply_ends(self.system, &self.system.tasks[task], random) {
            let at = offset.after(common_instant(self.system, None));
            let alignment = Alignment {
                at,
                blocker: None,
                own: Some((task, 0)),
            };
            let words = format!("critical for {name}, all released at {at}");
            all.push(self.aligned(alignment, words));
        }
    }

    fn random_phases(&self, random: &mut Random, round: u64) -> Situation {
        let mut system = self.system.clone();
        worst_work(&mut system);
        scatter(random, &mut system);
        let mut situation = self.situation(format!("random phases {round}"), system, 0);
        situation.look.faults.dense_jitter = round.is_multiple_of(2);
        situation.look.faults.jitter = true;
        situation.look.seed = random.bits();
        situation
    }

    /// All jobs of one task need more than their worst case, whatever its rule for that; nobody
    /// else may notice.
    fn overrun(&self, random: &mut Random) -> Option<Situation> {
        if costs_are_simulated(self.system) {
            return None;
        }
        let mut situation = self.random_phases(random, 0);
        self.let_one_overrun(&mut situation, random)
            .then_some(situation)
    }

    /// Lets all jobs of one task need more than their worst case; whether there is one that may.
    pub(crate) fn let_one_overrun(&self, situation: &mut Situation, random: &mut Random) -> bool {
        let tasks = (0..).map(TaskId).zip(&self.system.tasks);
        let called = tasks.filter(|(_, task)| task.class.runs_per_job());
        let called: Vec<TaskId> = called.map(|(id, _)| id).collect();
        let Some(&task) = random.pick(&called) else {
            return false;
        };
        situation.name = format!("an overrun of {}", self.system.tasks[task.index()].name);
        situation.culprits = vec![task.index()];
        let per_mille = u32::try_from(random.within(1_200, 3_000)).unwrap_or(2_000);
        situation.look.faults.overruns = vec![Overrun { task, per_mille }];
        true
    }

    /// All jobs of all tasks but this one need more than their worst case, on the budgets of a
    /// machine that takes time: it may not notice.
    fn overruns_with_costs(&self, random: &mut Random, task: usize) -> Vec<Situation> {
        let tasks = self.system.tasks.iter().enumerate();
        let others = tasks.filter(|(other, t)| *other != task && t.class.runs_per_job());
        let culprits: Vec<usize> = others.map(|(other, _)| other).collect();
        if culprits.is_empty() || !costs_are_simulated(self.system) {
            return Vec::new();
        }
        let mut all = vec![self.together(), self.random_phases(random, 0)];
        all.extend(self.apart(task));
        for situation in &mut all {
            situation.name += ", all others overrun";
            for &culprit in &culprits {
                let task = &mut situation.system.tasks[culprit];
                (task.class, task.work) = (self.system.tasks[culprit].class, None);
                let task = TaskId(u32::try_from(culprit).unwrap_or(0));
                let per_mille = u32::try_from(random.within(1_001, 5_000)).unwrap_or(2_000);
                let overrun = Overrun { task, per_mille };
                situation.look.faults.overruns.push(overrun);
            }
            situation.culprits.clone_from(&culprits);
            situation.look.faults.funding = (self.fund)(self.system).ok();
        }
        all
    }

    /// Jobs that need less than their worst case: shorter is not always easier.
    fn shorter(&self, random: &mut Random, round: u64) -> Situation {
        let mut situation = self.random_phases(random, round);
        situation.name = format!("shorter execution {round}");
        for (task, original) in situation.system.tasks.iter_mut().zip(&self.system.tasks) {
            let (true, Some(wcet)) = (task.class.runs_per_job(), original.class.budget()) else {
                continue;
            };
            let least = match original.work {
                Some(WorkSource::Burn(work)) => work.as_ns(),
                _ => 1,
            };
            let work = random.within(least.min(wcet.as_ns()), wcet.as_ns());
            task.work = Some(WorkSource::Burn(Work::from_ns(work)));
        }
        situation
    }
}

/// Tasks that may be late with the culprits, and by rights. They wait for one, or for someone who
/// does; or they share a CPU with one that waits so, a culprit or not, whose jobs come closer
/// together.
pub(crate) fn late_with(system: &System, culprits: &[usize]) -> Vec<bool> {
    let mut late = vec![false; system.tasks.len()];
    culprits.iter().for_each(|&culprit| late[culprit] = true);
    // Each round reaches at least one more task, or none.
    for _ in 0..system.tasks.len() {
        let waits = |task: &&Task| {
            let mut waits_for = task.after.iter().chain(&task.follows);
            waits_for.any(|t| late[t.index()])
        };
        let waiting = system.tasks.iter().filter(waits);
        let cpus: Vec<CpuId> = waiting.map(|task| task.cpu).collect();
        for (late, task) in late.iter_mut().zip(&system.tasks) {
            *late |= cpus.contains(&task.cpu);
        }
    }
    late
}

/// Jobs execute their worst case.
pub(crate) fn worst_work(system: &mut System) {
    for task in &mut system.tasks {
        if task.class.runs_per_job() {
            task.work = None;
        }
    }
}

/// Jobs execute as much as they did, and may execute more: cold caches are no overrun, and no
/// budget ends at an entry that is still to be paid for.
fn leave_room(system: &mut System) {
    for task in &mut system.tasks {
        let room = task.class.relative_deadline().unwrap_or_default().as_work();
        if let Some(wcet) = task.class.budget_mut() {
            task.work.get_or_insert(WorkSource::Burn(*wcet));
            *wcet = room.max(*wcet);
        }
    }
}

/// Random first arrivals; half of the sporadic tasks arrive at random distances, too.
pub(crate) fn scatter(random: &mut Random, system: &mut System) {
    let groups = groups(system);
    for leader in 0..system.tasks.len() {
        let members = || (0..groups.len()).filter(|m| groups[*m] == leader);
        let cycle = |m: usize| {
            system.tasks[m]
                .class
                .min_separation()
                .map_or(50, Span::as_ns)
        };
        let longest = members().map(cycle).max().unwrap_or(1);
        let shift = Span::from_ns(random.below(longest));
        for member in members() {
            let phase = &mut system.tasks[member].phase;
            *phase = phase.saturating_add(shift);
        }
    }
    for task in &mut system.tasks {
        if let Class::Sporadic { min_separation, .. } = task.class
            && random.happens(500)
        {
            let more = random.below(min_separation.as_ns());
            task.arrivals = Arrivals::Random {
                mean: min_separation.saturating_add(Span::from_ns(more)),
            };
        }
    }
}

/// What the machine may take, taken: missing time and the reserves, each from a random phase on.
fn standstills(system: &System) -> Vec<MissingTime> {
    let machine = &system.machine;
    let reserves = machine.missing_time.iter().chain(&machine.reserves);
    reserves
        .map(|reserve| MissingTime {
            cpu: None,
            length: reserve.budget.as_span(),
            every: reserve.period,
        })
        .collect()
}

/// An instant of a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Offset {
    pub(crate) at: u64,
    pub(crate) cycle: u64,
}

impl Offset {
    /// The first such instant at or after `start`.
    pub(crate) fn after(self, start: u64) -> u64 {
        let cycle = self.cycle.max(1);
        let begin = start.div_ceil(cycle) * cycle;
        begin + self.at % cycle
    }
}

/// When the supply of a task has just gone: one tick into the periods of the servers above it, when
/// their budget may be spent, and at the ends of slots; some random ones besides.
pub(crate) fn supply_ends(system: &System, task: &Task, random: &mut Random) -> Vec<Offset> {
    let mut found = Vec::new();
    let mut at_ends = |slots: &[punctual_model::Slot<Ns>], frame: Span<Ns>| {
        for slot in slots {
            let cycle = frame.as_ns();
            let end = slot.at.as_ns() + slot.length.as_ns();
            found.push(Offset { at: end, cycle });
            found.push(Offset {
                at: end.saturating_sub(1),
                cycle,
            });
        }
    };
    let frame_of = |policy: PolicyKind<Ns>| match policy {
        PolicyKind::Tdm { frame, .. } => frame,
        _ => Span::ZERO,
    };
    let mut servers: Vec<Server<Ns>> = Vec::new();
    let mut node = task.scheduler;
    let policy = |node: Option<punctual_model::SchedulerId>| match node {
        Some(id) => system.schedulers[id.index()].policy,
        None => system.cpus[task.cpu.index()].policy,
    };
    at_ends(&task.slots, frame_of(policy(node)));
    while let Some(id) = node {
        let scheduler = &system.schedulers[id.index()];
        match &scheduler.supply {
            Supply::Server(server) => servers.push(*server),
            Supply::Slots(slots) => at_ends(slots, frame_of(policy(scheduler.parent))),
            Supply::Shared => {}
        }
        node = scheduler.parent;
    }
    for server in servers {
        let (budget, cycle) = (server.budget.as_ns(), server.period.as_ns());
        for at in [
            1,
            budget,
            budget + 1,
            random.below(cycle),
            random.below(cycle),
        ] {
            found.push(Offset { at, cycle });
        }
    }
    found
}
