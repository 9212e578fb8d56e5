//! Faults to inject: what a real machine and real programs do to a schedule.

use punctual_model::{
    ActorId, Clock, CpuId, Funding, GraphId, Instant, Ns, SchedulerId, Span, TaskId, Work,
};

use crate::random::Random;

/// The purpose of the random numbers of clocks, CPU by CPU.
const CLOCKS: u64 = 0x0c10_c000;

/// All faults of a run; the default injects none.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Faults {
    /// Time that nobody gets.
    pub missing: Vec<MissingTime>,
    /// The first standstill of each begins here; `None`: at a random phase.
    pub missing_from: Option<Instant<Ns>>,
    /// Every timer fires late by up to this, uniformly.
    pub late_timer: Span<Ns>,
    /// Releases of tasks with a declared jitter follow their arrival by up to that, uniformly.
    pub jitter: bool,
    /// The first release of tasks with a declared jitter is as late as that allows, and no later
    /// one waits longer than for it: the densest releases there are. Goes before `jitter`.
    pub dense_jitter: bool,
    /// Jobs that need more than declared.
    pub overruns: Vec<Overrun>,
    /// Tasks that end in the middle of a job.
    pub crashes: Vec<Crash>,
    /// Every unfinished job that is switched in again works this much more, for its caches are
    /// cold: whether others or nobody ran meanwhile, as on a processor that keeps its applications
    /// apart by starting each slot cold.
    pub cache_delay: Work<Ns>,
    /// Every entry at which a timer or an arrival comes takes so long.
    pub timer_cost: Work<Ns>,
    /// Every job that is done takes so long behind its end, for its timer is set anew.
    pub budget_timer_cost: Work<Ns>,
    /// Budgets hold more than the work of jobs, as on a machine that takes time for itself.
    pub funding: Option<Funding>,
    /// What every decision costs a scheduler that decides on its own supply.
    pub decision_cost: Work<Ns>,
    /// Firings of graphs take any time up to their work, at least one tick, by the seed.
    pub short_firings: bool,
    /// Firings of actors, and rounds of tasks, that need more than declared.
    pub long_firings: Vec<LongFirings>,
    /// Clocks that are ahead from the start, by CPU; without a CPU, by any time up to this on each.
    pub clock_offsets: Vec<(Option<CpuId>, Span<Ns>)>,
    /// Clocks that are too fast by so many parts per billion, likewise.
    pub clock_drifts: Vec<(Option<CpuId>, u32)>,
    /// Schedulers that decide on their own supply, and tiles whose graphs do: what is wrong with
    /// them.
    pub children: Vec<(SchedulerId, Misconduct)>,
}

impl Faults {
    /// How much of their work the jobs of a task execute.
    pub(crate) fn per_mille(&self, task: TaskId) -> u32 {
        let overrun = self.overruns.iter().find(|overrun| overrun.task == task);
        overrun.map_or(1_000, |overrun| overrun.per_mille)
    }

    /// The clock of a CPU; its random part comes from the seed.
    pub fn clock(&self, cpu: CpuId, seed: u64) -> Clock {
        let mut random = Random::new(seed, CLOCKS + u64::from(cpu.0));
        let mut up_to = |most: u64| random.span(Span::from_ticks(most)).ticks();
        let mut clock = Clock::default();
        let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        for (of, most) in &self.clock_offsets {
            let drawn = up_to(most.as_ns());
            let offset = of.map_or(drawn, |of| if of == cpu { most.as_ns() } else { 0 });
            clock.offset_ns = clock.offset_ns.saturating_add(signed(offset));
        }
        for (of, most) in &self.clock_drifts {
            let drawn = up_to(u64::from(*most));
            let most = u64::from(*most);
            let drift = of.map_or(drawn, |of| if of == cpu { most } else { 0 });
            clock.drift_ppb = clock.drift_ppb.saturating_add(signed(drift));
        }
        clock
    }

    /// How much of their work the firings of an actor execute.
    pub(crate) fn of_firings(&self, graph: GraphId, actor: ActorId) -> u32 {
        let mut all = self.long_firings.iter();
        let of_actor = all.find(|long| (long.graph, long.actor) == (graph, actor));
        of_actor.map_or(1_000, |long| long.per_mille)
    }
}

/// Firings of an actor execute `per_mille`/1000 of their work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LongFirings {
    /// Its graph.
    pub graph: GraphId,
    /// Whose firings.
    pub actor: ActorId,
    /// 1000 is no overrun.
    pub per_mille: u32,
}

/// What a scheduler that decides on its own supply may do instead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Misconduct {
    /// It never answers, and runs as long as it is let.
    Loops,
    /// It names threads that are not its own, not ready, or not there, or decides on the past.
    Lies,
    /// It answers that nobody shall run.
    Silent,
}

/// The processor stands still for `length`, about once every `every`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MissingTime {
    /// Where; `None`: on every CPU, each for itself.
    pub cpu: Option<CpuId>,
    /// For how long.
    pub length: Span<Ns>,
    /// Distance of the beginnings, from the first on.
    pub every: Span<Ns>,
}

/// Jobs of a task execute `per_mille`/1000 of their work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Overrun {
    /// Whose jobs.
    pub task: TaskId,
    /// 1000 is no overrun.
    pub per_mille: u32,
}

/// The task ends half-way through this job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crash {
    /// Which task.
    pub task: TaskId,
    /// Which job, from 0.
    pub job: u64,
}
