//! Virtual time keeps the promises of admission: random systems, analysed and then run.
//!
//! Independent of the oracles inside `analysis`: there the analysis is compared with another
//! implementation of the same theory, here with the schedules that `kern` really makes.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::HashMap;

use punctual::{
    Class, Cpu, CpuId, Exactness, Faults, Ns, PolicyKind, Priority, SimOptions, Span, System, Task,
    TaskId, Verdict, Work, Workloads, admit, simulate,
};
use punctual_generate::Dice;
use punctual_kern::{Outcome, TraceEvent};
use punctual_trace::{Log, Record};

/// Periods whose least common multiple is 120: every hyperperiod is covered by two of them.
const PERIODS: [u64; 8] = [4, 5, 6, 8, 10, 12, 20, 30];
const HYPERPERIOD: u64 = 120;

fn policy(dice: &mut Dice) -> PolicyKind<Ns> {
    match dice.below(6) {
        0 | 1 => PolicyKind::FixedPriority { preemptive: true },
        2 | 3 => PolicyKind::EarliestDeadlineFirst,
        4 => PolicyKind::FixedPriority { preemptive: false },
        _ => PolicyKind::Fifo,
    }
}

fn task(dice: &mut Dice, index: u64, tasks: u64) -> Task {
    let period = PERIODS[usize::try_from(dice.below(8)).unwrap()];
    let wcet = 1 + dice.below((2 * period / tasks).max(1));
    let deadline = match dice.below(4) {
        0 => (period * 3 / 4).max(wcet),
        1 => period * 3 / 2,
        _ => period.max(wcet),
    };
    let class = Class::Periodic {
        period: Span::from_ns(period),
        wcet: Work::from_ns(wcet),
        relative_deadline: Span::from_ns(deadline),
    };
    let mut task = Task::new(format!("t{index}"), CpuId(0), class);
    task.priority = Priority::new(u32::try_from(1 + dice.below(5)).unwrap());
    task
}

/// Makes a system harder than synchronous independent tasks on one CPU.
fn complicate(dice: &mut Dice, system: &mut System) {
    let cpus = u16::try_from(system.cpus.len()).unwrap();
    for index in 0..system.tasks.len() {
        let task = &mut system.tasks[index];
        task.cpu = CpuId(u16::try_from(dice.below(u64::from(cpus))).unwrap());
        let wcet = task.class.budget().unwrap().as_ns();
        if dice.one_in(4) {
            task.phase = Span::from_ns(dice.below(15));
        }
        if dice.one_in(5) {
            task.jitter = Span::from_ns(1 + dice.below(3));
        }
        if dice.one_in(6) {
            task.max_suspension = Span::from_ns(1 + dice.below(2));
            task.suspensions = 1;
        }
        if dice.one_in(6) {
            task.non_preemptive = Work::from_ns(1 + dice.below(wcet));
        }
        if index > 0 && dice.one_in(3) {
            let before = TaskId(u32::try_from(dice.below(index as u64)).unwrap());
            let task = &mut system.tasks[index];
            if dice.one_in(3) {
                task.follows.push(before)
            } else {
                task.after.push(before)
            }
        }
    }
}

fn system(seed: u64, plain: bool) -> System {
    let mut dice = Dice::new(seed);
    let cpus = if plain { 1 } else { 1 + dice.below(3) };
    let cpu = |dice: &mut Dice, i: u64| Cpu {
        name: i.to_string(),
        host: None,
        policy: policy(dice),
    };
    let cpus = (0..cpus).map(|i| cpu(&mut dice, i)).collect();
    let count = 2 + dice.below(4);
    let tasks = (0..count)
        .map(|i| task(&mut dice, i, if plain { count } else { 3 * count }))
        .collect();
    let mut system = System {
        cpus,
        tasks,
        ..System::default()
    };
    if !plain {
        complicate(&mut dice, &mut system);
    }
    system
}

/// A system in a line per task, for messages.
fn describe(system: &System) -> String {
    let cpus: Vec<_> = system.cpus.iter().map(|cpu| cpu.policy).collect();
    let tasks = system.tasks.iter().map(|t| {
        let Class::Periodic { period, wcet, relative_deadline } = t.class else {
            return format!("  {}: {:?}\n", t.name, t.class);
        };
        format!(
            "  {} cpu {} p{} C{} T{} D{} phase {} jitter {} suspension {} section {} after {:?} follows {:?}\n",
            t.name, t.cpu.0, t.priority.number(), wcet.as_ns(), period.as_ns(),
            relative_deadline.as_ns(), t.phase.as_ns(), t.jitter.as_ns(), t.max_suspension.as_ns(),
            t.non_preemptive.as_ns(), t.after, t.follows,
        )
    });
    format!("{cpus:?}\n{}", tasks.collect::<String>())
}

/// The longest response of each task, in ticks, and whether any job missed its deadline.
fn observe(system: &System, seed: u64) -> (HashMap<u32, u64>, bool) {
    let options = SimOptions {
        duration: Some(Span::from_ns(3 * HYPERPERIOD)),
        seed: Some(seed),
        faults: Faults {
            jitter: true,
            ..Faults::default()
        },
        ..SimOptions::default()
    };
    let log = simulate(system, &options, &mut Workloads::new(), &mut |_| true).unwrap();
    responses(&log)
}

fn responses(log: &Log) -> (HashMap<u32, u64>, bool) {
    let mut longest = HashMap::new();
    let mut missed = false;
    for (cpu, tables) in log.cpus.iter().zip(&log.tables.cpus) {
        let mut pending = HashMap::new();
        for (now, record) in cpu.records.iter() {
            match record {
                Record::Trace(TraceEvent::Released {
                    thread,
                    job,
                    deadline,
                    ..
                }) => {
                    let _ = pending.insert((thread.index(), job), deadline);
                }
                Record::Trace(TraceEvent::Completed {
                    thread,
                    job,
                    arrival,
                    deadline,
                    outcome,
                    ..
                }) => {
                    assert_eq!(outcome, Outcome::Done);
                    let _ = pending.remove(&(thread.index(), job));
                    let task = tables.threads[thread.index()].0.0;
                    let slot: &mut u64 = longest.entry(task).or_default();
                    *slot = now.since(arrival).ticks().max(*slot);
                    missed |= now > deadline;
                }
                _ => {}
            }
        }
        missed |= pending.values().any(|deadline| *deadline <= log.header.end);
    }
    (longest, missed)
}

fn respects_bounds(system: &System, verdict: &Verdict, seed: u64) {
    let (longest, missed) = observe(system, seed);
    assert!(
        !missed,
        "seed {seed}: admitted, yet a deadline is missed:\n{}",
        describe(system)
    );
    for task in &verdict.tasks {
        let seen = longest.get(&task.task.0).copied().unwrap_or(0);
        let bound = task
            .response_bound
            .expect("admitted tasks have bounds")
            .as_ns();
        assert!(
            seen <= bound,
            "seed {seed}: {} took {seen}, bound {bound}:\n{}",
            task.name,
            describe(system)
        );
    }
}

#[test]
fn no_admitted_system_ever_misses_and_no_response_exceeds_its_bound() {
    let (mut admitted, mut valid) = (0_u32, 0_u32);
    for seed in 0..6_000 {
        let system = system(seed, false);
        if system.validate().is_err() {
            continue;
        }
        valid += 1;
        let verdict = admit(&system).unwrap();
        if verdict.admitted {
            admitted += 1;
            respects_bounds(&system, &verdict, seed);
        }
    }
    let share = admitted * 100 / valid;
    assert!(
        (20..=80).contains(&share) && valid > 4_000,
        "{admitted} of {valid} admitted"
    );
}

#[test]
fn where_the_test_is_exact_refused_systems_miss_and_bounds_are_reached() {
    let (mut refused, mut reached) = (0, 0);
    for seed in 0..4_000 {
        let system = system(seed, true);
        if system.validate().is_err() {
            continue;
        }
        let verdict = admit(&system).unwrap();
        if verdict.admitted {
            respects_bounds(&system, &verdict, seed);
        }
        // Fixed priority, fully preemptive, all released together: the critical instant happens.
        if system.cpus[0].policy != (PolicyKind::FixedPriority { preemptive: true }) {
            continue;
        }
        // Equal priorities can make a bound pessimistic; then the verdict says so.
        if verdict
            .tasks
            .iter()
            .any(|t| t.exactness != Exactness::Exact)
        {
            continue;
        }
        let (longest, missed) = observe(&system, seed);
        if verdict.admitted {
            for task in &verdict.tasks {
                let bound = task.response_bound.unwrap().as_ns();
                assert_eq!(longest[&task.task.0], bound, "seed {seed}: {}", task.name);
                reached += 1;
            }
        } else {
            assert!(
                missed,
                "seed {seed}: refused as exact, yet nothing is missed:\n{}",
                describe(&system)
            );
            refused += 1;
        }
    }
    assert!(
        refused > 500 && reached > 300,
        "{refused} refused, {reached} bounds reached"
    );
}
