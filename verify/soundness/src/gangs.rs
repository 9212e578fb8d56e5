//! Gangs: do members start within their skew, and does time replace the barriers that it may?
//!
//! Drawn gangs stand among drawn tasks on 2 to 16 CPUs, with equal work before their members or
//! with other work on each CPU. They are simulated with shorter jobs, with clocks that differ as
//! much as declared, and with missing time. Barriers that the verdict leaves out are not there.

use std::collections::BTreeMap;

use punctual::{Faults, MissingTime, RunReport, SimOptions, Workloads, simulate_unjudged};
use punctual_analysis::{BarrierVerdict, Verdict, admit, without_needless_barriers};
use punctual_generate::Random;
use punctual_model::{
    Class, Cpu, CpuId, Gang, Ns, PolicyKind, Priority, Reserve, Span, Superstep, System, Task,
    TaskId, Work, WorkSource,
};
use punctual_trace::{Behavior, Log};

use crate::describe::describe;
use crate::tally::{Tally, Violation};

/// Releases before this are observed.
const DURATION: u64 = 60_000;
/// Situations of each system.
const SITUATIONS: u64 = 4;
/// Priority of the gang under fixed priority; others are above or below.
const OF_THE_GANG: u32 = 5;

/// A verdict on a system with a gang; `None`: nothing.
pub type GangAnalysis = fn(&System) -> Option<Verdict>;

/// The analysis of the project.
pub fn gang_analysis(system: &System) -> Option<Verdict> {
    admit(system).ok()
}

/// Draws gangs, and tries to prove an analysis of them wrong.
#[derive(Clone, Debug)]
pub struct GangJudge {
    /// A seed and an index give a system.
    pub seed: u64,
    /// The analysis that is judged.
    pub analysis: GangAnalysis,
}

impl GangJudge {
    /// The system with this number.
    pub fn draw(&self, index: u64) -> System {
        draw(&mut Random::at(self.seed, &[index, 30]))
    }

    /// Judges what the analysis says of this system.
    pub fn judge(&self, index: u64, tally: &mut Tally) {
        let system = self.draw(index);
        tally.systems += 1;
        let mut broken = |situation: &str, what: String, system: &System| {
            tally.violations.push(Violation {
                index,
                situation: situation.into(),
                what,
                system: describe(system),
            });
        };
        if let Err(errors) = system.validate() {
            return broken("drawing", format!("{errors:?}"), &system);
        }
        let Some(verdict) = (self.analysis)(&system) else {
            *tally.unanswered.entry("no verdict".into()).or_default() += 1;
            return;
        };
        if !verdict.admitted {
            tally.refused += 1;
            return;
        }
        let random = &mut Random::at(self.seed, &[index, 31]);
        for situation in 0..SITUATIONS {
            let name = format!("situation {situation}");
            let played = without_needless_barriers(&system, &verdict.gangs);
            let played = shorter(random, played, situation == 0);
            let faults = faults(random, &system);
            if let Err(what) = contradiction(&played, &verdict, faults, situation) {
                broken(&name, what, &played);
                break;
            }
        }
        tally.admitted += 1;
        tally.situations += SITUATIONS;
        for branch in branches(&verdict) {
            *tally.branches.entry(branch.into()).or_default() += 1;
        }
    }
}

/// Branches that a long run must have taken.
pub(crate) const GANG_BRANCHES: [&str; 4] = [
    "gang: equal decisions",
    "gang: latest start",
    "gang: a barrier left out",
    "gang: a barrier kept",
];

fn branches(verdict: &Verdict) -> Vec<&'static str> {
    let mut found = Vec::new();
    for gang in &verdict.gangs {
        found.extend(gang.supersteps.iter().map(|step| match step.test.name {
            "equal decisions" => GANG_BRANCHES[0],
            _ => GANG_BRANCHES[1],
        }));
        found.extend(gang.barriers.iter().map(|barrier| match barrier.left_out {
            true => GANG_BRANCHES[2],
            false => GANG_BRANCHES[3],
        }));
    }
    found.sort_unstable();
    found.dedup();
    found
}

fn draw(random: &mut Random) -> System {
    let count = if random.happens(20) {
        16
    } else {
        [2, 2, 3, 4][random.index(4)]
    };
    let by_priority = random.happens(700);
    let policy = match by_priority {
        true => PolicyKind::FixedPriority { preemptive: true },
        false => PolicyKind::EarliestDeadlineFirst,
    };
    let mut system = System::default();
    for number in 0..count {
        system.cpus.push(Cpu {
            name: format!("{number}"),
            host: None,
            policy,
        });
    }
    system.machine.clock_error = Span::from_ns([0, 3, 40, 200][random.index(4)]);
    if random.happens(300) {
        system.machine.missing_time = Some(Reserve {
            name: "missing-time".into(),
            budget: Work::from_ns(random.within(1, 300)),
            period: Span::from_ns(random.within(5_000, 20_000)),
        });
    }
    let cpus: Vec<CpuId> = (0..count).map(CpuId).collect();
    if random.happens(500) {
        // The same work before all members.
        for number in 0..random.within(1, 3) {
            let class = reservation(random);
            let phase = phase(random);
            for cpu in &cpus {
                let priority = 6 + u32::try_from(number).unwrap_or(0);
                add(
                    &mut system,
                    format!("r{number}.{}", cpu.0),
                    (*cpu, class),
                    (priority, phase),
                );
            }
        }
    } else {
        for cpu in &cpus {
            for number in 0..random.below(3) {
                let class = match random.happens(400) {
                    true => reservation(random),
                    false => periodic(period(random), random.within(50, 900)),
                };
                let priority = u32::try_from(random.within(1, 9)).unwrap_or(1);
                let phase = phase(random);
                add(
                    &mut system,
                    format!("t{number}.{}", cpu.0),
                    (*cpu, class),
                    (priority, phase),
                );
            }
        }
    }
    add_gang(random, &mut system, &cpus);
    system
}

fn add_gang(random: &mut Random, system: &mut System, cpus: &[CpuId]) {
    let (every, first) = (period(random), phase(random));
    let supersteps = if random.happens(400) { 2 } else { 1 };
    let endless = supersteps == 1 && random.happens(300);
    let mut gang = Gang {
        name: "g".into(),
        supersteps: Vec::new(),
    };
    let mut at = first;
    for number in 0..supersteps {
        let work = random.within(50, every / 4);
        let class = match endless {
            true => Class::Reservation {
                period: Span::from_ns(every),
                slice: Work::from_ns(work),
            },
            false => periodic(every, work),
        };
        let mut members = Vec::new();
        let below = u32::from(number > 0 && random.happens(500));
        for cpu in cpus {
            let name = format!("g{number}.{}", cpu.0);
            members.push(add(system, name, (*cpu, class), (OF_THE_GANG - below, at)));
        }
        gang.supersteps.push(Superstep {
            name: if supersteps > 1 {
                format!("s{number}")
            } else {
                String::new()
            },
            members,
        });
        // Close behind the work of this one, or anywhere.
        at += match random.happens(500) {
            true => work + random.below(250),
            false => random.within(50, every / 2),
        };
    }
    system.gangs.push(gang);
    for barrier in system.gangs[0].barriers() {
        system.keep_barrier(0, barrier);
    }
}

fn period(random: &mut Random) -> u64 {
    [1_000, 2_000, 2_500, 4_000, 5_000, 10_000][random.index(6)]
}

fn phase(random: &mut Random) -> u64 {
    if random.happens(500) {
        0
    } else {
        random.below(2_000)
    }
}

fn reservation(random: &mut Random) -> Class<Ns> {
    let period = period(random);
    Class::Reservation {
        period: Span::from_ns(period),
        slice: Work::from_ns(random.within(20, period / 4)),
    }
}

fn periodic(period: u64, wcet: u64) -> Class<Ns> {
    Class::Periodic {
        period: Span::from_ns(period),
        wcet: Work::from_ns(wcet.min(period)),
        relative_deadline: Span::from_ns(period),
    }
}

fn add(
    system: &mut System,
    name: String,
    (cpu, class): (CpuId, Class<Ns>),
    (priority, phase): (u32, u64),
) -> TaskId {
    let id = TaskId(u32::try_from(system.tasks.len()).unwrap_or(u32::MAX));
    let mut task = Task::new(name, cpu, class);
    task.priority = Priority::new(priority);
    task.phase = Span::from_ns(phase);
    system.tasks.push(task);
    id
}

/// Jobs of some tasks that take less, each task another part.
fn shorter(random: &mut Random, mut system: System, worst: bool) -> System {
    for task in &mut system.tasks {
        if let (false, Class::Periodic { wcet, .. }) = (worst || random.happens(500), task.class) {
            let work = random.within(1, wcet.as_ns());
            task.work = Some(WorkSource::Burn(Work::from_ns(work)));
        }
    }
    system
}

/// Clocks that differ by at most the declared error until long after the run, and missing time.
fn faults(random: &mut Random, system: &System) -> Faults {
    let mut faults = Faults::default();
    let error = system.machine.clock_error.as_ns();
    let drifts = random.happens(300) && error > 10;
    for cpu in (0..).map(CpuId).take(system.cpus.len()) {
        let offset = match (drifts, random.below(3)) {
            (true, _) => random.within(0, error / 2),
            (false, 0) => 0,
            (false, 1) => error,
            _ => random.within(0, error),
        };
        faults
            .clock_offsets
            .push((Some(cpu), Span::from_ns(offset)));
        if drifts {
            // It gains at most the other half, less two for rounding, in twice the run.
            let gained = random.within(0, error / 2 - 2);
            let ppb = gained * 1_000_000_000 / (2 * DURATION);
            faults
                .clock_drifts
                .push((Some(cpu), u32::try_from(ppb).unwrap_or(0)));
        }
    }
    if let Some(missing) = &system.machine.missing_time {
        faults.missing.push(MissingTime {
            cpu: None,
            length: missing.budget.as_span(),
            every: missing.period,
        });
    }
    faults
}

/// Simulates, and compares with what was promised.
fn contradiction(
    system: &System,
    verdict: &Verdict,
    faults: Faults,
    seed: u64,
) -> Result<(), String> {
    let options = SimOptions {
        duration: Some(Span::from_ns(DURATION)),
        seed: Some(seed),
        faults,
        ..SimOptions::default()
    };
    let log = simulate_unjudged(system, &options, &mut Workloads::new(), &mut |_| true)
        .map_err(|error| format!("the simulation does not start: {error}"))?;
    if let Some(rule) = punctual_rules::check(&log).first() {
        return Err(format!("a rule is broken: {rule}"));
    }
    let report = RunReport::new(&log);
    if let Some(late) = report.tasks.iter().find(|task| task.misses > 0) {
        return Err(format!("{} is late {} times", late.name, late.misses));
    }
    let bounds = verdict.gangs.iter().flat_map(|gang| &gang.supersteps);
    for (seen, promised) in report.gangs.iter().zip(bounds) {
        let (max, bound) = (seen.skew_ns.max, promised.bound.map(Span::as_ns));
        if max.zip(bound).is_some_and(|(max, bound)| max > bound) {
            return Err(format!(
                "skew of {}: {max:?} ns, bound {bound:?}",
                seen.name
            ));
        }
    }
    let cpus = 0..log.cpus.len();
    let behaviors: Vec<Behavior> = cpus.map(|cpu| Behavior::new(&log, cpu)).collect();
    for (gang, promised) in system.gangs.iter().zip(&verdict.gangs) {
        for barrier in promised.barriers.iter().filter(|barrier| barrier.left_out) {
            check_barrier(&log, &behaviors, gang, barrier)?;
        }
    }
    Ok(())
}

/// From arrivals of the gang's first superstep, in units of its period, to first starts or last
/// ends of one superstep.
type Instants = BTreeMap<u64, i64>;

/// Every member has ended one superstep, in true time, before any begins the next.
fn check_barrier(
    log: &Log,
    behaviors: &[Behavior],
    gang: &Gang,
    barrier: &BarrierVerdict,
) -> Result<(), String> {
    let which = barrier.barrier;
    let (_, ends) = instants(log, behaviors, &gang.supersteps[which.before]);
    let (starts, _) = instants(log, behaviors, &gang.supersteps[which.next]);
    for (number, end) in &ends {
        let next = starts.get(&(number + u64::from(which.wraps())));
        if next.is_some_and(|start| start < end) {
            let (before, next) = (&barrier.before, &barrier.next);
            return Err(format!(
                "{next} begins before {before} has ended, without barrier"
            ));
        }
    }
    Ok(())
}

/// The first start and the last end of each job number of a superstep, in true time.
fn instants(log: &Log, behaviors: &[Behavior], superstep: &Superstep) -> (Instants, Instants) {
    let (mut starts, mut ends) = (Instants::new(), Instants::new());
    for (cpu, behavior) in behaviors.iter().enumerate() {
        let clock = log.cpus[cpu].clock;
        let truly = |ticks: u64| clock.truly(i64::try_from(ticks).unwrap_or(i64::MAX));
        let member = |thread| {
            let task = log.task_of(cpu, thread);
            task.is_some_and(|task| superstep.members.contains(&task))
        };
        for segment in behavior.segments.iter().filter(|s| member(s.thread)) {
            let Some(job) = segment.job.map(|job| behavior.jobs[job]) else {
                continue;
            };
            let start = truly(segment.start.ticks());
            let first = starts.entry(job.index).or_insert(start);
            *first = (*first).min(start);
            if let Some(end) = job.ended {
                let end = truly(end.ticks());
                let last = ends.entry(job.index).or_insert(end);
                *last = (*last).max(end);
            }
        }
    }
    (starts, ends)
}
