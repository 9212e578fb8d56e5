//! The summary of a run: counts, verdict, and a cause for every miss that is the true one.
#![allow(clippy::unwrap_used)] // A test may stop at the first surprise.

use crate::common::{FIXED, missing, overrunning, periodic, required, rich, simulate, two_tasks};
use punctual_model::{
    Class, CpuId, Instant, Late, OnOverrun, PolicyKind, Requirement, Span, System, TaskId, Work,
};
use punctual_sim::Faults;
use punctual_trace::{
    Behavior, Cause, Oracle, RequirementReport, RunReport, RunVerdict, TakingThread, text,
};

fn report(system: &System, ms: u64, faults: Faults) -> RunReport {
    punctual::judge(&simulate(system, ms, 1, faults))
}

/// The causes of the misses of `task`, without repetitions.
fn causes(report: &RunReport, task: &str) -> Vec<Cause> {
    let of_task = report.misses.iter().filter(|m| m.task == task);
    let mut causes: Vec<Cause> = of_task.map(|m| m.cause).collect();
    causes.dedup();
    causes
}

fn misses(report: &RunReport) -> Vec<u64> {
    report.tasks.iter().map(|t| t.misses).collect()
}

#[test]
fn ten_seconds_of_10_ms_and_20_ms_are_1000_and_500_jobs() {
    let report = report(&two_tasks(), 10_000, Faults::default());
    let jobs: Vec<u64> = report.tasks.iter().map(|t| t.jobs).collect();
    assert_eq!((jobs, report.verdict), (vec![1_000, 500], RunVerdict::Met));
    let slow = report.tasks[1].response_ns;
    assert_eq!(
        (slow.p50, slow.max, slow.n),
        (Some(7_000_000), Some(7_000_000), 500)
    );
    let cpu = &report.cpus[0];
    assert_eq!((cpu.executed_ns, cpu.preemptions), (4_500_000_000, 0));
    assert_eq!(report.exit_code(), 0);
}

#[test]
fn the_json_has_the_keys_of_the_contract() {
    let mut faults = missing(9_000, 30);
    faults.late_timer = Span::from_us(10);
    let value = serde_json::to_value(report(&two_tasks(), 100, faults)).unwrap();
    assert_eq!(value["format"], 1);
    assert_eq!(value["verdict"], "excused");
    assert_eq!(value["mode"], "virtual");
    let contract: [(&serde_json::Value, &[&str]); 5] = [
        (&value, &["duration_ns", "tasks", "cpus", "misses"]),
        (
            &value["tasks"][0],
            &[
                "name",
                "cpu",
                "jobs",
                "misses",
                "overruns",
                "skipped",
                "response_ns",
                "bound_ns",
                "machine_bound_ns",
            ],
        ),
        (&value["tasks"][0]["response_ns"], &["p50", "p99", "max"]),
        (
            &value["cpus"][0],
            &[
                "id",
                "decisions",
                "switches",
                "preemptions",
                "deferred_max_ns",
                "missing_time_ns",
                "missing_time_max_ns",
                "missing_time_by",
            ],
        ),
        (
            &value["misses"][0],
            &[
                "task",
                "job",
                "release_ns",
                "lateness_ns",
                "cause",
                "detail",
            ],
        ),
    ];
    for (object, keys) in contract {
        for key in keys {
            assert!(object.get(key).is_some(), "{key} in {object}");
        }
    }
    assert!(value.get("oracle").is_none());
}

#[test]
fn a_miss_that_missing_time_explains_is_excused_with_its_arithmetic() {
    let report = report(&two_tasks(), 2_000, missing(9_000, 30));
    assert_eq!(report.verdict, RunVerdict::Excused);
    assert_eq!(report.exit_code(), 0);
    for miss in &report.misses {
        assert_eq!((miss.cause, miss.excused), (Cause::MissingTime, true));
        let excuse = "before the deadline: excused";
        assert!(miss.detail.ends_with(excuse), "{}", miss.detail);
    }
    assert!(!report.misses.is_empty());
}

/// 5 ms of work in each 20 ms over 2 s, by the core's own account.
#[test]
fn the_processor_time_of_a_program_stands_beside_its_turns() {
    let mut log = simulate(&two_tasks(), 2_000, 1, Faults::default());
    log.cpus[0].counters.programs = vec![(TaskId(1), 750_000_000)];
    let report = RunReport::new(&log);
    assert_eq!(report.tasks[0].program, None);
    let had = report.tasks[1].program.unwrap();
    let all = (had.processor_ns, had.turns_ns, had.beyond_ns);
    assert_eq!(all, (750_000_000, 500_000_000, 250_000_000));
    let line = "the program of `slow` had 750ms of processor time; its turns were 500ms, 250ms is \
                beyond them\n";
    assert!(report.to_string().contains(line), "{report}");
}

#[test]
fn the_one_who_took_missing_time_is_told_per_cpu_and_per_miss() {
    let log = simulate(&two_tasks(), 2_000, 1, missing(9_000, 30));
    let mut text = Vec::new();
    text::write(&log, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let lines = text
        .lines()
        .map(|line| match line.starts_with("@ missing") {
            true => format!("{line}\n@ taken-by kernel\n"),
            false => format!("{line}\n"),
        });
    let told: String = lines.collect();
    let mut told = text::read(&mut told.as_bytes()).unwrap();
    let taking = |at_ms: u64, ns: u64, name: &str| TakingThread {
        at: Instant::from_ticks(Span::from_ms(at_ms).as_ns()),
        ns,
        name: name.into(),
    };
    let end_ms = 2_000;
    told.cpus[0].counters.takers = vec![
        taking(1, 1_000, "sh"),
        taking(end_ms, 5_000, "make"),
        taking(end_ms, 4_500, "sh"),
    ];
    let report = RunReport::new(&told);
    let cpu = &report.cpus[0];
    assert!(cpu.missing_time_ns > 0);
    assert_eq!(cpu.missing_time_by.kernel_ns, cpu.missing_time_ns);
    assert_eq!(cpu.missing_time_by.below_ns, 0);
    let by = cpu.missing_time_by.to_string();
    assert!(by.ends_with(" (`sh` 5.5us, `make` 5us)"), "{by}");
    let first = &report.misses[0].detail;
    assert!(!first.contains("make"), "after it: {first}");
    assert!(report.misses[0].detail.contains(" (kernel "), "{report}");
    assert_eq!(RunReport::new(&log).cpus[0].missing_time_by.to_string(), "");
}

#[test]
fn a_gap_that_lets_a_job_meet_the_next_release_excuses_more_than_its_length() {
    // Alone, `slow` is done at 4 + 5.5 = 9.5 ms; a gap of 1 ms makes it meet `fast` again at 10 ms.
    let mut system = two_tasks();
    system.tasks[0] = periodic("fast", 0, 10, 4_000, 2);
    system.tasks[1].class = Class::Periodic {
        period: Span::from_ms(20),
        wcet: Work::from_us(5_500),
        relative_deadline: Span::from_ms(12),
    };
    let run = report(&system, 2_000, missing(1_000, 50));
    assert_eq!(run.verdict, RunVerdict::Excused, "{run}");
    let late: Vec<_> = run
        .misses
        .iter()
        .map(|m| (m.lateness_ns, &m.detail))
        .collect();
    assert!(late.iter().all(|(ns, _)| *ns == 2_500_000), "{late:?}");
    assert!(
        late[0]
            .1
            .ends_with("done 2.5ms before the deadline: excused"),
        "{late:?}"
    );
    // A deadline that the work does not meet by itself is not excused by the same gap.
    system.tasks[0] = periodic("fast", 0, 10, 5_000, 2);
    let run = report(&system, 2_000, missing(1_000, 50));
    assert_eq!(run.verdict, RunVerdict::Missed);
}

#[test]
fn a_gap_while_nobody_urgent_wants_to_run_excuses_nothing() {
    // `slow` overruns and is late by itself; the gaps hit the idle processor before and after.
    let mut system = two_tasks();
    system.tasks[0].class = Class::Aperiodic;
    system.tasks[1].phase = Span::from_ms(3);
    let (system, mut faults) = overrunning(&system, "slow", OnOverrun::Demote);
    faults.missing = missing(2_000, 500).missing;
    let run = report(&system, 400, faults);
    let excused: u64 = run.tasks.iter().map(|t| t.excused).sum();
    assert_eq!(
        (run.verdict == RunVerdict::Met, excused),
        (false, 0),
        "{run}"
    );
}

#[test]
fn missing_time_excuses_nothing_that_would_be_late_anyway() {
    let mut system = two_tasks();
    system.tasks[1] = periodic("slow", 0, 20, 19_000, 1);
    let report = report(&system, 2_000, missing(100, 15));
    assert_eq!(report.verdict, RunVerdict::Missed);
    assert_eq!(report.exit_code(), 1);
    assert_eq!(causes(&report, "fast"), []);
    assert_eq!(causes(&report, "slow"), [Cause::HigherPriority]);
}

#[test]
fn missing_time_before_the_busy_window_excuses_nothing() {
    // The gap ends long before the overrunning job is released; the job is late by its own doing.
    let mut system = two_tasks();
    system.tasks[1].phase = Span::from_ms(100);
    let (system, mut faults) = overrunning(&system, "slow", OnOverrun::Throttle);
    let length = Span::from_ms(5);
    faults.missing = missing(5_000, 1_000).missing;
    faults.missing[0].length = length;
    let report = report(&system, 300, faults);
    assert_eq!(report.verdict, RunVerdict::Missed);
    assert_eq!(causes(&report, "slow"), [Cause::Overrun]);
}

#[test]
fn an_overrun_is_the_fault_of_its_own_task_alone() {
    for rule in [OnOverrun::Throttle, OnOverrun::Signal] {
        let (system, faults) = overrunning(&two_tasks(), "fast", rule);
        let report = report(&system, 200, faults);
        assert_eq!(causes(&report, "fast"), [Cause::Overrun]);
        assert_eq!(misses(&report)[1], 0);
        assert!(report.tasks[0].overruns > 0);
    }
}

#[test]
fn overload_under_fixed_priority_is_blamed_on_more_urgent_work() {
    let mut system = two_tasks();
    system.tasks[0] = periodic("fast", 0, 10, 6_000, 2);
    system.tasks[1] = periodic("slow", 0, 20, 9_000, 1);
    let report = report(&system, 1_000, Faults::default());
    assert_eq!(misses(&report)[0], 0);
    let first = &report.misses[0];
    assert_eq!((first.task.as_str(), first.job), ("slow", 0));
    assert_eq!(
        (first.lateness_ns, first.cause),
        (7_000_000, Cause::HigherPriority)
    );
    assert!(
        first.detail.contains("more urgent work 18ms (`fast` 18ms)"),
        "{}",
        first.detail
    );
    assert!(report.tasks[1].jobs == 50 && report.tasks[1].misses == 50);
}

#[test]
fn waiting_for_less_urgent_work_is_blocking() {
    let mut system = two_tasks();
    system.cpus[0].policy = PolicyKind::Fifo;
    system.tasks[0].phase = Span::from_ms(1);
    system.tasks[1] = periodic("slow", 0, 40, 15_000, 1);
    let report = report(&system, 400, Faults::default());
    // Under FIFO the earlier job is the more urgent one.
    assert_eq!(causes(&report, "fast"), [Cause::HigherPriority]);
    system.cpus[0].policy = PolicyKind::FixedPriority { preemptive: false };
    let report = RunReport::new(&simulate(&system, 400, 1, Faults::default()));
    assert_eq!(causes(&report, "fast"), [Cause::Blocked]);
}

#[test]
fn waiting_for_a_predecessor_is_blocking_and_a_late_entry_is_a_late_timer() {
    let mut system = two_tasks();
    system.tasks[1].after = vec![TaskId(0)];
    system.tasks[1].class = Class::Periodic {
        period: Span::from_ms(20),
        wcet: Work::from_us(100),
        relative_deadline: Span::from_us(150),
    };
    system.tasks[1].cpu = CpuId(0);
    let report1 = report(&system, 200, Faults::default());
    assert_eq!(causes(&report1, "slow"), [Cause::Blocked]);
    let faults = Faults {
        late_timer: Span::from_ms(9),
        ..Faults::default()
    };
    let mut system = two_tasks();
    let _ = system.tasks.pop();
    let report2 = report(&system, 2_000, faults);
    assert_eq!(causes(&report2, "fast"), [Cause::LateTimer]);
}

#[test]
fn a_reservation_gets_its_slice_in_every_period_and_the_table_names_all() {
    let report = report(&rich(FIXED), 1_000, Faults::default());
    assert_eq!(report.verdict, RunVerdict::Met, "{report}");
    let jobs: Vec<u64> = report.tasks.iter().map(|t| t.jobs).collect();
    assert_eq!(
        (jobs[0], jobs[1], jobs[3], jobs[4], jobs[6], jobs[7]),
        (100, 50, 50, 1, 50, 100)
    );
    let text = report.to_string();
    for task in &report.tasks {
        assert!(text.contains(&task.name), "{text}");
    }
}

#[test]
fn a_reservation_that_wants_no_more_is_over_with_its_period_however_late_the_entry_comes() {
    let mut system = rich(FIXED);
    system.tasks = vec![system.tasks.swap_remove(3)];
    let mut text = Vec::new();
    text::write(&simulate(&system, 60, 1, Faults::default()), &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    // Its slice is used up after 3 ms. Instead it waits from then on, and the entry at the end of
    // its period comes 500 ns late; or it runs until then.
    let end = |found: &str| {
        let done = "+ completed 0 0 done 0 20000000 3000000\n";
        let throttled = "+ throttled 0 0\n";
        assert!(
            text.contains(&format!("{done}{throttled}{found}")),
            "{text}"
        );
        let text = text.replacen(done, "", 1).replacen(throttled, "", 1);
        let text = text.replacen(found, "", 1);
        let late = text.replacen("@ tick 20000000\n", &format!("@ tick 20000500\n{done}"), 1);
        let log = text::read(&mut late.as_bytes()).unwrap();
        let behavior = Behavior::new(&log, 0);
        let job = behavior.jobs[0];
        (job.ended.unwrap().ticks(), job.missed(behavior.end))
    };
    assert_eq!(end(""), (20_000_000, false));
    let switch = "+ switched 0 - no\n= idle 20000000\n";
    assert_eq!(end(switch), (20_000_500, true));
}

#[test]
fn requirements_are_judged_by_the_jobs_that_ran() {
    // `fast` 2 ms in 10 ms, `slow` 5 ms in 20 ms below it: `slow` answers after 7 ms, an effect
    // that `fast` has at its completion is out with the next job of `slow` that began after it.
    let mut system = required();
    let seen = |system: &System, faults| {
        let report = report(system, 400, faults);
        let of = |r: &RequirementReport| (r.requirement, r.seen_ns.unwrap(), r.verdict);
        let seen: Vec<_> = report.requirements.iter().map(of).collect();
        (seen, report.verdict)
    };
    let kept = [
        ("response", 7_000_000, RunVerdict::Met),
        ("jitter", 0, RunVerdict::Met),
        ("chain", 17_000_000, RunVerdict::Met),
    ];
    let found = seen(&system, Faults::default());
    assert_eq!(found, (kept.to_vec(), RunVerdict::Met));
    // A gap of 2 ms breaks what has less slack than that, and excuses it.
    let (gaps, verdict) = seen(&system, missing(2_000, 30));
    assert_eq!(verdict, RunVerdict::Excused);
    assert_eq!(gaps[0].2, RunVerdict::Excused, "{gaps:?}");
    // A requirement that is out of reach is not excused.
    system.requirements[0] = Requirement::Response {
        task: TaskId(1),
        within: Span::from_ms(6),
    };
    let (gaps, verdict) = seen(&system, missing(2_000, 30));
    assert_eq!(
        (gaps[0].2, verdict),
        (RunVerdict::Missed, RunVerdict::Missed)
    );
}

#[test]
fn a_skipped_release_and_a_wrong_result_are_misses_of_the_run() {
    let mut system = two_tasks();
    system.tasks[1].late = Late::Skip;
    system.tasks[1].class = Class::Periodic {
        period: Span::from_ms(20),
        wcet: Work::from_us(5_000),
        relative_deadline: Span::from_ms(40),
    };
    let run = report(&system, 400, missing(19_000, 100));
    let (late, skipped) = (run.tasks[1].misses, run.tasks[1].skipped);
    assert!(skipped > 0, "{late} late, {skipped} skipped: {run}");
    assert_eq!(run.verdict, RunVerdict::Excused, "{run}");
    let mut log = simulate(&two_tasks(), 100, 1, Faults::default());
    log.oracle = Some(Oracle {
        steps: 10,
        mismatches: 1,
    });
    let run = punctual::judge(&log);
    assert_eq!((run.verdict, run.exit_code()), (RunVerdict::Missed, 1));
    assert_eq!(run.reasons(), ["1 steps differ from the reference"]);
}

#[test]
fn what_is_late_by_itself_is_not_excused_by_a_microsecond() {
    let tight = |rule| {
        let mut system = two_tasks();
        system.tasks[0].class = Class::Periodic {
            period: Span::from_ms(10),
            wcet: Work::from_us(2_000),
            relative_deadline: Span::from_us(2_500),
        };
        overrunning(&system, "fast", rule)
    };
    let mut cases = vec![
        tight(OnOverrun::Stop),
        tight(OnOverrun::Demote),
        tight(OnOverrun::Throttle),
    ];
    let late = |faults: Faults| {
        let (system, _) = tight(OnOverrun::Throttle);
        (system, faults)
    };
    cases.push(late(Faults {
        late_timer: Span::from_ms(3),
        ..Faults::default()
    }));
    let (mut jitters, _) = tight(OnOverrun::Throttle);
    jitters.tasks[0].jitter = Span::from_ms(3);
    cases.push((
        jitters,
        Faults {
            jitter: true,
            ..Faults::default()
        },
    ));
    for (at, (system, faults)) in cases.into_iter().enumerate() {
        let clean = report(&system, 1_000, faults.clone());
        assert!(clean.tasks[0].misses > 10, "{at}: {clean}");
        let faults = Faults {
            missing: missing(1, 10).missing,
            ..faults
        };
        let run = report(&system, 1_000, faults);
        let excused: u64 = run.tasks.iter().map(|task| task.excused).sum();
        // A gap may decide where a job ends to the microsecond.
        assert!(excused * 20 <= clean.tasks[0].misses, "{at}: {run}");
        assert_eq!(run.verdict, RunVerdict::Missed, "{at}: {run}");
    }
}

#[test]
fn a_job_that_a_late_timer_moves_into_a_gap_is_excused() {
    let mut system = two_tasks();
    system.tasks.truncate(1);
    system.tasks[0].class = Class::Periodic {
        period: Span::from_ms(10),
        wcet: Work::from_us(100),
        relative_deadline: Span::from_ms(5),
    };
    // Played again, with its gaps, a job is done before a gap that begins just behind its arrival.
    let late_timer = Span::from_us(1_500);
    let faults = |missing| Faults {
        late_timer,
        missing,
        ..Faults::default()
    };
    let alone = report(&system, 4_000, faults(Vec::new()));
    assert_eq!(alone.verdict, RunVerdict::Met, "{alone}");
    let run = report(&system, 4_000, faults(missing(8_000, 33).missing));
    let late = &run.tasks[0];
    assert!(late.misses > 10, "{run}");
    assert_eq!(late.excused, late.misses, "{run}");
    assert_eq!(run.verdict, RunVerdict::Excused, "{run}");
}

#[test]
fn an_effect_that_never_arrives_breaks_its_chain() {
    let mut system = required();
    system.requirements.truncate(3);
    let chain = system.requirements.remove(2);
    system.requirements = vec![chain];
    system.tasks[1] = periodic("slow", 0, 400, 5_000, 1);
    let run = report(&system, 390, Faults::default());
    assert_eq!(run.requirements[0].verdict, RunVerdict::Missed, "{run}");
    assert!(run.requirements[0].seen_ns > Some(300_000_000), "{run}");
}

#[test]
fn a_crash_is_a_miss_of_its_own_task_alone() {
    let crash = punctual_sim::Crash {
        task: TaskId(0),
        job: 3,
    };
    let faults = Faults {
        crashes: vec![crash],
        ..Faults::default()
    };
    let report = report(&two_tasks(), 100, faults);
    assert_eq!(misses(&report), [1, 0]);
    assert!(report.misses[0].detail.starts_with("its thread ended"));
    assert_eq!(report.tasks[0].jobs, 4);
}

#[test]
fn a_schedulable_system_is_late_by_missing_time_only() {
    // Harmonic periods, rate-monotonic priorities, U <= 1: schedulable (Liu and Layland 1973), by
    // EDF too. So every miss is due to the gaps, and the summary must find that out.
    let mut late = 0;
    for seed in 0..60_u64 {
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut below = |n: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) % n
        };
        let mut system = two_tasks();
        if seed % 2 == 1 {
            system.cpus[0].policy = PolicyKind::EarliestDeadlineFirst;
        }
        system.tasks.clear();
        let mut left = 1_000;
        for (index, period_ms) in [5, 10, 20, 40, 80].into_iter().enumerate() {
            // The last one takes nearly all that is left.
            let rest = if index == 4 {
                left * 19 / 20
            } else {
                below(left / 2)
            };
            let share = rest.max(20);
            left = left.saturating_sub(share);
            let priority = 9 - u32::try_from(index).unwrap();
            let name = format!("t{index}");
            system
                .tasks
                .push(periodic(&name, 0, period_ms, period_ms * share, priority));
        }
        let faults = missing(300 + below(1_000), 12 + below(20));
        let run = report(&system, 1_000, faults);
        late += run.misses.len();
        let unexcused = run.misses.iter().find(|m| !m.excused);
        assert_eq!(unexcused, None, "seed {seed}");
    }
    assert!(late > 300, "only {late} misses to explain");
}

#[test]
fn an_overloaded_system_is_not_excused_by_a_little_missing_time() {
    // U = 1.1: `slow` falls behind by itself. Gaps of 10 us do not change whose fault that is.
    for policy in [FIXED, PolicyKind::EarliestDeadlineFirst] {
        let mut system = two_tasks();
        system.cpus[0].policy = policy;
        system.tasks[0] = periodic("fast", 0, 10, 6_000, 2);
        system.tasks[1] = periodic("slow", 0, 20, 10_000, 1);
        let run = report(&system, 2_000, missing(10, 7));
        let late = run.misses.len();
        let excused = run.misses.iter().filter(|m| m.excused).count();
        assert!(
            late > 90 && excused * 20 <= late,
            "{excused} of {late} are excused"
        );
    }
}

#[test]
fn an_overrun_with_a_hole_in_it_is_possibly_taken_where_holes_are_sampled() {
    let (system, mut faults) = overrunning(&two_tasks(), "fast", OnOverrun::Throttle);
    faults.missing = missing(7, 1).missing;
    let mut log = simulate(&system, 200, 1, faults);
    let late = |log: &punctual_trace::Log| -> Vec<bool> {
        let report = punctual::judge(log);
        let overrun = report
            .misses
            .iter()
            .filter(|m| m.detail.contains("over its budget"));
        overrun
            .map(|m| m.detail.contains("possibly taken"))
            .collect()
    };
    // Virtual time knows where each hole begins.
    let exact = late(&log);
    assert!(!exact.is_empty() && !exact.contains(&true), "{exact:?}");
    log.cpus[0].counters.missing_method = "late timers".into();
    let sampled = late(&log);
    assert_eq!(sampled.len(), exact.len());
    assert!(sampled.contains(&true), "{sampled:?}");
}
