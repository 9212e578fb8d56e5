//! Hyperperiod simulation: by hand, against the tick simulator, and never above a bound

use crate::common::draw::signed;
use crate::common::random::{Deadlines, Random, set};
use crate::common::simulator::{Script, simulate};
use crate::common::{EDF, FP, NP_FP, empty, periodic, span, work};
use punctual_analysis::{
    AnalysisError, Exactness, SimulatedJob, Simulation, admit, simulate_hyperperiod,
};
use punctual_model::{
    Class, CpuId, Ns, PolicyKind, Priority, Requirement, Scheduler, SchedulerId, Slot, Supply,
    System, TaskId, Trust,
};

fn responses(system: &System) -> Vec<Option<u64>> {
    let simulation = simulate_hyperperiod(system).expect("valid");
    let ticks =
        |r: &Option<punctual_model::Span<punctual_model::Ns>>| r.map(punctual_model::Span::as_ns);
    simulation.responses.iter().map(ticks).collect()
}

#[test]
fn textbook_sets_give_textbook_responses() {
    let rows = [(3, 7, 7), (3, 12, 12), (5, 20, 20)];
    assert_eq!(
        responses(&periodic(FP, &rows)),
        [Some(3), Some(6), Some(20)]
    );
    // Equal deadlines: the earlier release first.
    assert_eq!(
        responses(&periodic(EDF, &rows)),
        [Some(3), Some(8), Some(14)]
    );
}

#[test]
fn phases_that_keep_tasks_apart_are_seen() {
    let mut system = periodic(FP, &[(4, 10, 10), (4, 10, 4)]);
    assert!(!admit(&system).expect("analysis ends").admitted);
    system.tasks[1].phase = span(5);
    assert_eq!(responses(&system), [Some(4), Some(4)]);
}

#[test]
fn an_overload_never_repeats_and_is_told() {
    let mut system = periodic(FP, &[(6, 10, 10), (5, 10, 10)]);
    system.tasks[1].late = punctual_model::Late::Queue { backlog: u32::MAX };
    let simulation = simulate_hyperperiod(&system).expect("valid");
    assert_eq!(simulation.responses, [None, None]);
    assert!(
        simulation.reasons[0].contains("backlog"),
        "{:?}",
        simulation.reasons
    );
}

#[test]
fn what_is_not_known_beforehand_is_not_simulated() {
    let base = periodic(FP, &[(2, 10, 10), (3, 12, 12)]);
    let reason = |change: &dyn Fn(&mut System)| {
        let mut system = base.clone();
        change(&mut system);
        let simulation = simulate_hyperperiod(&system).expect("valid");
        assert_eq!(simulation.responses, [None, None]);
        simulation.reasons[0].clone()
    };
    assert!(reason(&|s| s.tasks[1].jitter = span(1)).contains("jitter"));
    assert!(reason(&|s| s.tasks[1].max_suspension = span(1)).contains("suspends"));
    assert!(reason(&|s| s.tasks[1].non_preemptive = work(2)).contains("section"));
    assert!(reason(&|s| s.machine.timer = work(1)).contains("timer"));
    let sporadic = |s: &mut System| {
        s.tasks[1].class = Class::Sporadic {
            min_separation: span(12),
            wcet: work(3),
            relative_deadline: span(12),
        };
    };
    assert!(reason(&sporadic).contains("when it likes"));
    let long = |s: &mut System| {
        for (task, period) in s.tasks.iter_mut().zip([1_000_003, 1_000_033]) {
            task.class = Class::Periodic {
                period: span(period),
                wcet: work(3),
                relative_deadline: span(period),
            };
        }
    };
    assert!(reason(&long).contains("the limit is"));
}

/// Periods with a least common multiple of 120.
const PERIODS: [u64; 8] = [4, 5, 6, 8, 10, 12, 20, 30];

fn with_phases(random: &mut Random) -> System {
    let policies = [FP, EDF, NP_FP, PolicyKind::Fifo];
    let pick = |random: &mut Random, n: usize| {
        usize::try_from(random.within(0, n as u64 - 1)).expect("small")
    };
    let policy = policies[pick(random, 4)];
    let n = pick(random, 4) + 2;
    let mut rows = Vec::new();
    for _ in 0..n {
        let period = PERIODS[pick(random, 8)];
        let wcet = random.within(1, (2 * period / n as u64).max(1));
        rows.push((wcet, period, random.within(wcet, 2 * period)));
    }
    let mut system = periodic(policy, &rows);
    system.cpus = empty(policy, 2).cpus;
    for (id, (task, row)) in (0_u32..).zip(system.tasks.iter_mut().zip(&rows)) {
        task.cpu = CpuId(u16::from(random.within(0, 3) == 0));
        task.phase = span(random.within(0, 12));
        if random.within(0, 3) == 0 {
            task.priority = Priority::new(2);
        }
        if random.within(0, 5) == 0 {
            task.non_preemptive = work(row.0);
        }
        if id > 0 && random.within(0, 4) == 0 {
            let from = TaskId(id - 1);
            match random.within(0, 1) {
                0 => task.after.push(from),
                _ => task.follows.push(from),
            }
        }
    }
    system
}

/// The same arrivals for the simulator of the tests, which shares nothing with the crate.
fn by_ticks(system: &System, end: i64) -> Vec<Vec<Option<i64>>> {
    let jobs = system.tasks.iter().map(|task| {
        let period = signed(task.class.min_separation().expect("periodic").as_ns());
        let first = signed(task.phase.as_ns());
        let arrivals = (0..).map(|k| first + k * period).take_while(|&a| a < end);
        arrivals.map(|a| (a, a)).collect()
    });
    let script = Script {
        jobs: jobs.collect(),
        section_at: vec![0; system.tasks.len()],
        suspend: vec![None; system.tasks.len()],
        loses_ties: None,
        end,
    };
    simulate(system, &script)
}

#[test]
fn every_completion_is_the_one_of_the_tick_simulator() {
    let mut random = Random::new(17);
    let mut compared = 0;
    for seed in 0..1_000 {
        let system = with_phases(&mut random);
        let simulation = simulate_hyperperiod(&system).expect("valid");
        let completions = by_ticks(&system, 200);
        let on_time = simulation
            .jobs
            .iter()
            .filter(|j| j.completion.as_ns() <= 200);
        for job in on_time {
            let task = job.task.index();
            let task_of = &system.tasks[task];
            let period = task_of.class.min_separation().expect("periodic").as_ns();
            let index = (job.arrival.as_ns() - task_of.phase.as_ns()) / period;
            // Across CPUs the other simulator learns of completions one tick later.
            if task_of.after.is_empty() && task_of.follows.is_empty() && no_edges(&system) {
                let expected = completions[task][usize::try_from(index).expect("few")];
                let found = Some(signed(job.completion.as_ns()));
                assert_eq!(found, expected, "seed {seed} {job:?} {system:#?}");
                compared += 1;
            }
        }
    }
    assert!(compared > 5_000, "{compared}");
}

fn no_edges(system: &System) -> bool {
    let alone = |t: &punctual_model::Task| t.after.is_empty() && t.follows.is_empty();
    system.tasks.iter().all(alone)
}

#[test]
fn nothing_simulated_is_above_its_bound() {
    let mut random = Random::new(23);
    let (mut compared, mut equal) = (0, 0);
    for seed in 0..3_000 {
        let system = with_phases(&mut random);
        let verdict = admit(&system).expect("analysis ends");
        for (task, simulated) in responses(&system).iter().enumerate() {
            let row = &verdict.tasks[task];
            let (Some(bound), Some(simulated)) = (row.response_bound, simulated) else {
                continue;
            };
            let bound = bound.as_ns();
            assert!(
                *simulated <= bound,
                "seed {seed}: {simulated} over {bound} {system:#?}"
            );
            compared += 1;
            equal += usize::from(*simulated == bound);
        }
    }
    assert!(compared > 5_000, "{compared}");
    assert!(
        equal * 3 > compared,
        "{equal} of {compared} bounds were reached"
    );
}

#[test]
fn synchronous_preemptive_bounds_are_reached() {
    let mut random = Random::new(29);
    let mut reached = 0;
    for seed in 0..500 {
        let rows = set(&mut random, 4, 0.9, (4.0, 30.0), Deadlines::Constrained);
        let system = periodic(FP, &rows);
        let verdict = admit(&system).expect("analysis ends");
        for (row, simulated) in verdict.tasks.iter().zip(responses(&system)) {
            if row.exactness == Exactness::Exact && simulated.is_some() {
                let bound = row.response_bound.map(punctual_model::Span::as_ns);
                assert_eq!(simulated, bound, "seed {seed} {rows:?}");
                reached += 1;
            }
        }
    }
    assert!(reached > 1_000, "{reached}");
}

/// Two owners on a frame of 10: the task `a` in [0, 3), the scheduler `b` in [4, 7) and [8, 9).
fn divided(policy: PolicyKind<Ns>) -> System {
    let tdm = PolicyKind::Tdm {
        frame: span(10),
        scheduling: span(1),
    };
    let slot = |at, length| Slot {
        at: span(at),
        length: span(length),
    };
    let mut system = periodic(tdm, &[(2, 10, 10), (2, 10, 10), (4, 20, 20)]);
    system.schedulers.push(Scheduler {
        name: "b".into(),
        cpu: CpuId(0),
        parent: None,
        policy,
        priority: Priority::LOWEST,
        supply: Supply::Slots(vec![slot(4, 3), slot(8, 1)]),
        trust: Trust::Inline,
        quota: None,
        receiver: None,
        fallback: None,
        code: None,
    });
    system.tasks[0].slots.push(slot(0, 3));
    for task in &mut system.tasks[1..] {
        task.scheduler = Some(SchedulerId(0));
    }
    system
}

#[test]
fn owners_of_slots_run_in_them_alone() {
    // t1: [4, 6); t2: [6, 7), [8, 9), [16, 17), [18, 19).
    assert_eq!(responses(&divided(FP)), [Some(2), Some(6), Some(19)]);
    let simulation = simulate_hyperperiod(&divided(FP)).expect("valid");
    let starts: Vec<u64> = simulation
        .jobs
        .iter()
        .map(|j| j.start.as_ns() % 10)
        .collect();
    assert!(starts.iter().all(|at| [0, 4, 6].contains(at)), "{starts:?}");
    // Not preemptive, and kept across slots: t2 has begun when t1 comes, and keeps [8, 9).
    let mut system = divided(NP_FP);
    system.tasks[1].phase = span(5);
    assert_eq!(responses(&system), [Some(2), Some(11), Some(9)]);
}

#[test]
fn slots_bound_what_the_analysis_says_of_them() {
    let system = divided(FP);
    match admit(&system) {
        Ok(verdict) => {
            for (row, simulated) in verdict.tasks.iter().zip(responses(&system)) {
                let bound = row.response_bound.map(punctual_model::Span::as_ns);
                assert!(simulated <= bound, "{}: {simulated:?} {bound:?}", row.name);
            }
        }
        Err(AnalysisError::Invalid { what }) => assert!(what.contains("slots"), "{what}"),
        Err(error) => panic!("{error}"),
    }
}

/// The longest time from a job of the first task to the completion of the last that saw it.
fn longest_chain(simulation: &Simulation, tasks: &[u32]) -> u64 {
    let of = |task: u32| -> Vec<&SimulatedJob> {
        simulation
            .jobs
            .iter()
            .filter(|j| j.task == TaskId(task))
            .collect()
    };
    let rows: Vec<_> = tasks.iter().map(|&task| of(task)).collect();
    let mut longest = 0;
    for first in &rows[0] {
        let mut seen = first.completion;
        let mut whole = true;
        for row in &rows[1..] {
            match row.iter().find(|job| job.start >= seen) {
                Some(job) => seen = job.completion,
                None => whole = false,
            }
        }
        if whole {
            longest = longest.max(seen.since(first.arrival).as_ns());
        }
    }
    longest
}

#[test]
fn chains_stay_within_their_bounds_when_starts_are_known() {
    let mut random = Random::new(31);
    let (mut compared, mut reached) = (0, 0);
    for seed in 0..3_000 {
        let mut system = with_phases(&mut random);
        let mut tasks: Vec<u32> = (0..u32::try_from(system.tasks.len()).expect("few")).collect();
        tasks.truncate(usize::try_from(random.within(2, 4)).expect("few"));
        if random.within(0, 2) == 0 {
            tasks.reverse();
        }
        system.requirements.push(Requirement::Chain {
            tasks: tasks.iter().map(|&t| TaskId(t)).collect(),
            within: span(10_000),
        });
        let simulation = simulate_hyperperiod(&system).expect("valid");
        let verdict = admit(&system).expect("analysis ends");
        let Some(bound) = verdict.chains[0].bound else {
            continue;
        };
        let seen = longest_chain(&simulation, &tasks);
        assert!(
            seen <= bound.as_ns(),
            "seed {seed}: {seen} over {bound:?} {system:#?}"
        );
        compared += 1;
        reached += usize::from(seen == bound.as_ns());
    }
    assert!(compared > 1_000, "{compared}");
    assert!(
        reached * 8 > compared,
        "{reached} of {compared} bounds were reached"
    );
}
