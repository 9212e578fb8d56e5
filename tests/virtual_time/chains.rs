//! Chains through the schedules that `kern` really makes: no effect takes longer than its bound
//!
//! Random systems on one or two CPUs, with servers, jitter, precedence and jobs shorter than their
//! wcets. Each job of the first task is followed from hand to hand: the next task's first job that
//! began to execute after the completion, and so on to the end of the chain.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use punctual::{
    Class, Cpu, CpuId, Faults, PolicyKind, Priority, SimOptions, Span, System, Task, TaskId, Work,
    WorkSource, Workloads, admit, simulate,
};
use punctual_generate::Dice;
use punctual_model::{Requirement, Scheduler, SchedulerId, Server, ServerKind, Supply, Trust};
use punctual_trace::{Behavior, Log, RunReport};

fn random_task(dice: &mut Dice, index: u32, cpus: u64) -> Task {
    let period = [8, 10, 12, 15, 20, 24, 30][usize::try_from(dice.below(7)).unwrap()];
    let wcet = 1 + dice.below(period / 5);
    let class = Class::Periodic {
        period: Span::from_ns(period),
        wcet: Work::from_ns(wcet),
        relative_deadline: Span::from_ns(period),
    };
    let cpu = CpuId(u16::try_from(dice.below(cpus)).unwrap());
    let mut task = Task::new(format!("t{index}"), cpu, class);
    task.priority = Priority::new(1 + dice.small(5));
    task.phase = Span::from_ns(dice.below(12));
    if dice.one_in(4) {
        task.jitter = Span::from_ns(1 + dice.below(3));
    }
    if dice.one_in(3) {
        task.work = Some(WorkSource::Burn(Work::from_ns(1 + dice.below(wcet))));
    }
    if index > 0 && dice.one_in(3) {
        let before = TaskId(index - 1);
        match dice.below(2) {
            0 => task.after.push(before),
            _ => task.follows.push(before),
        }
    }
    task
}

fn server(dice: &mut Dice) -> Scheduler {
    let kinds = [
        ServerKind::Deferrable,
        ServerKind::PeriodicResource,
        ServerKind::Polling,
        ServerKind::ConstantBandwidth,
    ];
    Scheduler {
        name: "app".into(),
        cpu: CpuId(0),
        parent: None,
        policy: PolicyKind::FixedPriority { preemptive: true },
        priority: Priority::new(3),
        supply: Supply::Server(Server {
            kind: kinds[usize::try_from(dice.below(4)).unwrap()],
            budget: Work::from_ns(2 + dice.below(2)),
            period: Span::from_ns(5),
        }),
        trust: Trust::Inline,
        quota: None,
        receiver: None,
        fallback: None,
        code: None,
    }
}

fn random_system(dice: &mut Dice) -> (System, Vec<u32>) {
    let cpus = 1 + dice.below(2);
    let count = 2 + dice.small(3);
    let mut system = System::default();
    for index in 0..cpus {
        let policy = match dice.below(2) {
            0 => PolicyKind::EarliestDeadlineFirst,
            _ => PolicyKind::FixedPriority { preemptive: true },
        };
        system.cpus.push(Cpu {
            name: index.to_string(),
            host: None,
            policy,
        });
    }
    system.tasks = (0..count).map(|i| random_task(dice, i, cpus)).collect();
    if dice.one_in(3) {
        system.schedulers.push(server(dice));
        let mut here = system.tasks.iter_mut().filter(|t| t.cpu == CpuId(0));
        if let Some(task) = here.next() {
            task.scheduler = Some(SchedulerId(0));
        }
    }
    let mut chain: Vec<u32> = (0..count).collect();
    if dice.one_in(3) {
        chain.reverse();
    }
    chain.truncate(2 + usize::try_from(dice.below(2)).unwrap());
    system.requirements.push(Requirement::Chain {
        tasks: chain.iter().map(|&t| TaskId(t)).collect(),
        within: Span::from_ns(100_000),
    });
    (system, chain)
}

/// By task: (arrival, start, completion) of every job that completed, in order.
fn jobs(log: &Log, tasks: usize) -> Vec<Vec<(u64, u64, u64)>> {
    let mut jobs = vec![Vec::new(); tasks];
    for (cpu, tables) in log.tables.cpus.iter().enumerate() {
        let behavior = Behavior::new(log, cpu);
        let mut starts = vec![None; behavior.jobs.len()];
        for segment in &behavior.segments {
            if let Some(job) = segment.job {
                starts[job].get_or_insert(segment.start.ticks());
            }
        }
        for (job, start) in behavior.jobs.iter().zip(starts) {
            if let (Some(start), Some(ended)) = (start, job.ended) {
                let task = tables.threads[job.thread.index()].0.index();
                jobs[task].push((job.arrival.ticks(), start, ended.ticks()));
            }
        }
    }
    jobs
}

fn longest(jobs: &[Vec<(u64, u64, u64)>], chain: &[u32]) -> u64 {
    let mut longest = 0;
    for &(arrival, _, mut seen) in &jobs[chain[0] as usize] {
        let mut whole = true;
        for &task in &chain[1..] {
            match jobs[task as usize].iter().find(|job| job.1 >= seen) {
                Some(&(_, _, completion)) => seen = completion,
                None => whole = false,
            }
        }
        if whole {
            longest = longest.max(seen - arrival);
        }
    }
    longest
}

#[test]
fn no_effect_takes_longer_along_a_chain_than_its_bound() {
    let mut dice = Dice::new(2);
    let (mut judged, mut close, mut trees) = (0, 0, 0);
    for seed in 0..1_500 {
        let (system, chain) = random_system(&mut dice);
        if system.validate().is_err() {
            continue;
        }
        let Ok(verdict) = admit(&system) else {
            continue;
        };
        if !verdict.admitted {
            continue;
        }
        let bound = verdict.chains[0].bound.unwrap().as_ns();
        let options = SimOptions {
            duration: Some(Span::from_ns(480)),
            seed: Some(seed),
            faults: Faults {
                jitter: true,
                ..Faults::default()
            },
            ..SimOptions::default()
        };
        let log = simulate(&system, &options, &mut Workloads::new(), &mut |_| true).unwrap();
        let seen = longest(&jobs(&log, system.tasks.len()), &chain);
        let reported = RunReport::new(&log).requirements[0].seen_ns;
        assert_eq!(reported.unwrap_or(0), seen, "seed {seed}");
        let why = &verdict.chains[0].explanation;
        assert!(
            seen <= bound,
            "seed {seed}: {seen} over {bound}, {why}: {system:#?}"
        );
        judged += 1;
        close += u64::from(seen * 10 >= bound * 8);
        trees += u64::from(!system.schedulers.is_empty());
    }
    assert!(
        judged > 300 && trees > 50,
        "{judged} judged, {trees} with a server"
    );
    assert!(
        close * 5 > judged,
        "{close} of {judged} came close to their bounds"
    );
}
