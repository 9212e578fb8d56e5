//! Values from the literature, from other tools and by hand

use crate::common::{
    EDF, FP, NP_FP, bounds, empty, periodic, require_response, span, sporadic, work,
};
use punctual_analysis::{Exactness, QuickAnswer, Subject, Verdict, Witness, admit};
use punctual_model::{
    Change, Class, CpuId, Instant, PolicyKind, Priority, Reserve, Share, Stage, Step, System, Task,
    TaskId, Terms,
};

const MS: u64 = 1_000_000;

fn verdict(system: &System) -> Verdict {
    admit(system).expect("analysis ends")
}

/// The file of `examples/two-tasks.toml`.
fn two_tasks() -> System {
    let mut system = periodic(
        FP,
        &[(2 * MS, 10 * MS, 10 * MS), (5 * MS, 20 * MS, 20 * MS)],
    );
    system.tasks[0].name = "fast".into();
    system.tasks[1].name = "slow".into();
    system
}

fn slacks(system: &System) -> Vec<String> {
    let slack = |t: &punctual_analysis::TaskVerdict| t.slack.expect("admitted").to_string();
    verdict(system).tasks.iter().map(slack).collect()
}

#[test]
fn two_tasks_have_bounds_of_2_and_7_ms_and_the_slack_of_the_semantics() {
    let mut system = two_tasks();
    let v = verdict(&system);
    assert!(v.admitted);
    assert_eq!(bounds(&system), [Some(2 * MS), Some(7 * MS)]);
    assert!(
        v.tasks.iter().all(|t| t.exactness == Exactness::Exact),
        "{:?}",
        v.tasks
    );
    assert_eq!(v.tasks[1].explanation, "7ms = 5ms (own slow) + 2ms (fast)");
    assert_eq!(slacks(&system), ["275.0 %", "220.0 %"]);
    require_response(&mut system, 1, 8 * MS);
    assert_eq!(slacks(&system), ["50.0 %", "20.0 %"]);
}

#[test]
fn rate_monotonic_responses_are_3_6_20() {
    let system = periodic(FP, &[(3, 7, 7), (3, 12, 12), (5, 20, 20)]);
    assert_eq!(bounds(&system), [Some(3), Some(6), Some(20)]);
}

#[test]
fn edf_responses_by_spuri_are_3_8_16() {
    let system = periodic(EDF, &[(3, 7, 7), (3, 12, 12), (5, 20, 20)]);
    assert_eq!(bounds(&system), [Some(3), Some(8), Some(16)]);
    let v = verdict(&system);
    assert!(v.admitted && v.tasks.iter().all(|t| t.exactness == Exactness::Exact));
}

#[test]
fn processor_demand_admits_the_one_set_and_refuses_the_other_at_4() {
    assert!(verdict(&periodic(EDF, &[(2, 10, 5), (3, 15, 9), (4, 20, 12)])).admitted);
    let v = verdict(&periodic(EDF, &[(3, 5, 4), (2, 10, 3), (2, 20, 20)]));
    assert!(!v.admitted);
    assert_eq!(v.refusals.len(), 1);
    assert_eq!(v.refusals[0].subject, Subject::Cpu(CpuId(0)));
    let expected = Witness::Demand {
        at: span(4),
        demand: work(5),
        supply: work(4),
    };
    assert_eq!(v.refusals[0].witness, Some(expected));
}

#[test]
fn lehoczky_example_is_worst_at_a_later_job() {
    // Lehoczky 1990, Table 1: (26, 70), (62, 100): responses 114, 102, 116, 104, 118, 106, 94.
    let system = periodic(FP, &[(26, 70, 70), (62, 100, 120)]);
    assert_eq!(bounds(&system), [Some(26), Some(118)]);
    let v = verdict(&periodic(FP, &[(26, 70, 70), (62, 100, 117)]));
    let expected = Witness::Response {
        task: TaskId(1),
        job: 4,
        offset: span(400),
        response: span(118),
        deadline: span(117),
    };
    assert_eq!(v.refusals[0].witness, Some(expected));
}

#[test]
fn can_bus_example_is_worst_at_the_second_job_without_preemption() {
    // Davis, Burns, Bril and Lukkien 2007, Table 1, in hundredths of the length of a message: the
    // first job of the third message takes 300, the second 350.
    let set = [(100, 250, 250), (100, 350, 350), (100, 350, 350)];
    assert_eq!(
        bounds(&sporadic(NP_FP, &set)),
        [Some(199), Some(299), Some(350)]
    );
    let mut tight = set;
    tight[2].2 = 349;
    let v = verdict(&sporadic(NP_FP, &tight));
    let expected = Witness::Response {
        task: TaskId(2),
        job: 1,
        offset: span(350),
        response: span(350),
        deadline: span(349),
    };
    assert_eq!(v.refusals[0].witness, Some(expected));
}

#[test]
fn fifo_is_bounded_by_the_work_of_all() {
    let fifo = PolicyKind::Fifo;
    let system = sporadic(fifo, &[(79, 120, 120), (11, 34, 120), (1, 190, 190)]);
    assert_eq!(bounds(&system)[2], Some(91));
    assert_eq!(verdict(&system).tasks[2].exactness, Exactness::Exact);
}

#[test]
fn planner_misses_alone_and_core3_is_overloaded() {
    let mut system = empty(FP, 2);
    for (cpu, name) in ["Core0", "Core3"].into_iter().enumerate() {
        system.cpus[cpu].name = name.into();
    }
    let mut add = |name: &str, cpu, period: u64, wcet_us: u64, deadline: u64, priority| {
        let class = Class::Periodic {
            period: span(period * MS),
            wcet: work(wcet_us * 1_000),
            relative_deadline: span(deadline * MS),
        };
        let mut task = Task::new(name, CpuId(cpu), class);
        task.priority = Priority::new(priority);
        system.tasks.push(task);
    };
    add("Planner", 0, 15, 12_437, 12, 9);
    add("PRE_Localization", 1, 400, 17_640, 400, 4);
    add("Localization", 1, 400, 387_400, 400, 3);
    let v = verdict(&system);
    let names: Vec<_> = v.refusals.iter().map(|r| r.name.as_str()).collect();
    assert_eq!(names, ["Planner", "Core3"]);
    assert_eq!(v.tasks[0].response_bound, Some(span(12_437_000)));
    assert_eq!(v.cpus[1].utilization_ppm, 1_012_600);
    // Two CPUs are refused: each says what would mend it, neither alone mends the system.
    assert!(v.refusals.iter().all(|r| r.fix.is_none()));
    assert!(
        v.refusals[0]
            .advice
            .contains("task.Planner.wcet = \"12ms\""),
        "{v:?}"
    );
}

#[test]
fn reserves_and_missing_time_come_before_everybody() {
    let mut system = periodic(FP, &[(3, 10, 10), (5, 40, 40)]);
    let reserve = |name: &str, budget, period| Reserve {
        name: name.into(),
        budget: work(budget),
        period: span(period),
    };
    system.machine.reserves.push(reserve("fair server", 2, 10));
    system.machine.missing_time = Some(reserve("missing time", 1, 20));
    // 3 + 2 + 1 = 6; 5 + 2·3 + 2·2 + 1 = 16.
    assert_eq!(bounds(&system), [Some(6), Some(16)]);
    let explanation = &verdict(&system).tasks[1].explanation;
    assert!(
        explanation.contains("2 x 2ns (fair server) + 1ns (missing time)"),
        "{explanation}"
    );
}

#[test]
fn overheads_are_paid_by_every_job_and_every_release() {
    let mut system = periodic(FP, &[(10, 100, 100), (20, 200, 200)]);
    system.tasks[1].phase = span(1);
    system.machine.switch = work(1);
    system.machine.preemption = work(3);
    system.machine.cache_delay = work(2);
    system.machine.timer = work(1);
    // 10 + 7 + two timer entries, and an overrun that has begun: a grace of 2 and a preemption to
    // stop it. 20 + 7 + 17 + two timer entries and two overruns.
    assert_eq!(bounds(&system), [Some(24), Some(56)]);
    let v = verdict(&system);
    assert!(v.tasks.iter().all(|t| t.exactness == Exactness::Sufficient));
    system.machine.budget_timer = work(4);
    assert_eq!(bounds(&system), [Some(32), Some(64)]);
}

#[test]
fn a_job_that_resumes_pays_for_the_timer_that_it_left_behind() {
    let mut system = periodic(FP, &[(10, 100, 100)]);
    system.machine.timer = work(1);
    system.machine.budget_timer = work(4);
    // An overrun that has begun: 2 + 1.
    assert_eq!(bounds(&system), [Some(18)]);
    system.tasks[0].max_suspension = span(20);
    system.tasks[0].suspensions = 2;
    // 10 + 20, and two whole entries for each suspension.
    assert_eq!(bounds(&system), [Some(42)]);
}

#[test]
fn releases_that_fall_together_share_a_timer_entry_and_a_preemption() {
    let mut system = periodic(FP, &[(10, 500, 500), (20, 1_000, 1_000)]);
    system.machine.switch = work(1);
    system.machine.preemption = work(3);
    system.machine.cache_delay = work(2);
    system.machine.timer = work(32);
    // 10 + 7 + an entry of 32 and a sixteenth; the second job pays two switches alone. An overrun
    // takes three entries.
    assert_eq!(bounds(&system), [Some(147), Some(265)]);
    let second = &verdict(&system).tasks[1];
    let expected = "265ns = 22ns (own t1) + 17ns (t0) + 96ns (overruns of t0) + 32ns (timer entry of \
                    t0) + 2ns (share of t1 in the timer entry of t0) + 96ns (an overrun that has \
                    begun)";
    assert!(
        second.explanation.starts_with(expected),
        "{}",
        second.explanation
    );
    let said = "each release falls on one of t0: one timer entry serves both; t0 goes first, so it \
                preempts nobody by itself";
    assert!(second.assumptions.iter().any(|a| a == said));

    // 27 + 17 + two entries of 32 and two overruns.
    let alone = [Some(177), Some(300)];
    let other = |change: &dyn Fn(&mut System)| {
        let mut system = system.clone();
        change(&mut system);
        bounds(&system)
    };
    assert_eq!(other(&|s| s.tasks[1].phase = span(99)), alone);
    assert_eq!(other(&|s| s.free_phases = true), alone);
    // A leader that goes second leaves the preemption to the other.
    let preempts = other(&|s| s.tasks[0].priority = Priority::new(0));
    assert_eq!(preempts, [Some(270), Some(157)]);
    // What joins while it runs has phases that nobody knows.
    let mut stage = Stage::at_start(&system);
    let terms = Terms {
        priority: Some(system.tasks[1].priority),
        ..Terms::default()
    };
    let change = Change {
        name: "same".into(),
        at: Instant::ZERO,
        steps: vec![Step::Constrain(TaskId(1), terms)],
    };
    stage.apply(&change).expect("it is there");
    assert_eq!(bounds(&stage.system()), alone);
}

#[test]
fn a_utilization_above_the_limit_is_refused_without_a_witness() {
    let mut system = periodic(FP, &[(5, 10, 10)]);
    system.machine.limits.utilization = Share::try_from_ppm(499_999).expect("a share");
    let v = verdict(&system);
    assert_eq!(v.refusals.len(), 1);
    assert_eq!(v.refusals[0].witness, None);
    assert_eq!(
        v.refusals[0].fix.as_ref().expect("shorter work").to,
        span(4)
    );
    system.machine.limits.utilization = Share::try_from_ppm(500_000).expect("a share");
    assert!(verdict(&system).admitted);
}

#[test]
fn equal_priorities_are_served_in_the_order_of_arrival() {
    let mut system = sporadic(FP, &[(2, 10, 10), (3, 10, 10), (4, 20, 20)]);
    for task in &mut system.tasks {
        task.priority = Priority::new(7);
    }
    // The second waits for the first on a tie, the first waits when it comes just after the second.
    assert_eq!(bounds(&system), [Some(8), Some(8), Some(9)]);
}

#[test]
fn sections_block_for_one_tick_less_than_their_length() {
    let mut system = sporadic(FP, &[(2, 10, 10), (6, 30, 30)]);
    system.tasks[1].non_preemptive = work(4);
    assert_eq!(bounds(&system), [Some(5), Some(8)]);
    assert!(
        verdict(&system)
            .tasks
            .iter()
            .all(|t| t.exactness == Exactness::Exact)
    );
    let mut clocked = periodic(FP, &[(2, 10, 10), (6, 30, 30)]);
    clocked.tasks[1].non_preemptive = work(4);
    assert_eq!(verdict(&clocked).tasks[0].exactness, Exactness::Sufficient);
}

#[test]
fn background_work_has_no_bound_and_costs_nothing_but_its_sections() {
    let mut system = periodic(FP, &[(2, 10, 10)]);
    let mut logger = Task::new("logger", CpuId(0), Class::Aperiodic);
    logger.priority = Priority::new(99);
    system.tasks.push(logger);
    assert_eq!(bounds(&system), [Some(2), None]);
    system.tasks[1].non_preemptive = work(4);
    assert_eq!(bounds(&system), [Some(5), None]);
}

#[test]
fn different_phases_make_the_bound_sufficient_unless_releases_still_meet() {
    let mut system = periodic(FP, &[(2, 10, 10), (3, 15, 15)]);
    system.tasks[1].phase = span(10);
    assert_eq!(
        verdict(&system).tasks[1].exactness,
        Exactness::Exact,
        "10 = 10 + 0·15"
    );
    system.tasks[1].phase = span(1);
    let v = verdict(&system);
    assert_eq!(v.tasks[0].exactness, Exactness::Exact, "nothing delays it");
    assert_eq!(v.tasks[1].exactness, Exactness::Sufficient);
}

#[test]
fn quick_answers_inform_and_never_decide() {
    let v = verdict(&periodic(FP, &[(1, 4, 4), (1, 5, 5), (1, 10, 10)]));
    assert!(
        v.cpus[0]
            .quick
            .iter()
            .all(|q| q.answer == QuickAnswer::Admits)
    );
    // U = 0.953: above both bounds, and yet exactly schedulable.
    let v = verdict(&periodic(FP, &[(3, 7, 7), (3, 12, 12), (5, 20, 20)]));
    assert!(
        v.admitted
            && v.cpus[0]
                .quick
                .iter()
                .all(|q| q.answer == QuickAnswer::CannotTell)
    );
    // Harmonic, U = 1: exact arithmetic admits.
    assert!(verdict(&periodic(FP, &[(1, 2, 2), (1, 4, 4), (2, 8, 8)])).admitted);
    // Bini's own point: U1 = U2 = √2 − 1 is on the hyperbola; a rational just inside is admitted.
    let v = verdict(&periodic(
        FP,
        &[(41_421, 100_000, 100_000), (41_421, 100_000, 100_000)],
    ));
    assert_eq!(v.cpus[0].quick[1].answer, QuickAnswer::Admits);
}

#[test]
fn reservations_and_single_jobs_have_bounds() {
    let mut system = empty(EDF, 1);
    let reservation = Class::Reservation {
        period: span(10),
        slice: work(4),
    };
    let once = Class::Once {
        size: work(7),
        relative_deadline: span(15),
    };
    system
        .tasks
        .push(Task::new("server", CpuId(0), reservation));
    system.tasks.push(Task::new("boot", CpuId(0), once));
    // boot: 7 + 4 (the second slice's deadline, 20, is later than 15).
    assert_eq!(bounds(&system)[1], Some(11));
    assert!(verdict(&system).admitted);
}

#[test]
fn a_single_job_below_a_full_processor_is_never_done() {
    let mut system = periodic(FP, &[(5, 10, 10), (5, 10, 10)]);
    let once = Class::Once {
        size: work(1),
        relative_deadline: span(1_000),
    };
    system.tasks.push(Task::new("boot", CpuId(0), once));
    assert_eq!(bounds(&system), [Some(5), Some(10), None]);
    assert!(!verdict(&system).admitted);
}

#[test]
fn an_equal_released_late_in_the_window_keeps_it_open() {
    // The second has its worst job only in a window that the third, later in the file, keeps open.
    let mut system = sporadic(FP, &[(2, 5, 4), (1, 4, 8), (1, 3, 6)]);
    system.tasks[1].priority = system.tasks[2].priority;
    assert_eq!(bounds(&system), [Some(2), Some(4), Some(4)]);
}
