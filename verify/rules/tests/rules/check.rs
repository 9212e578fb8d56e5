//! True traces obey every rule; for every rule a changed trace is rejected under its name.

use crate::common::{FIXED, missing, overrunning, periodic, rich, simulate, two_tasks};
use punctual_kern::{Event, Next, TraceEvent};
use punctual_model::{Instant, Ns, OnOverrun, PolicyKind, Span, TaskId, ThreadId, Work};
use punctual_rules::{Rule, check};
use punctual_trace::{Log, Record, RecordedEntry, Records};

const EDF: PolicyKind<Ns> = PolicyKind::EarliestDeadlineFirst;
const WAITING: PolicyKind<Ns> = PolicyKind::FixedPriority { preemptive: false };
const TURNS: PolicyKind<Ns> = PolicyKind::RoundRobin {
    timeslice: Span::from_ns(700_000),
};

#[test]
fn runs_of_every_policy_with_every_fault_obey_every_rule() {
    let rules = [
        OnOverrun::Throttle,
        OnOverrun::Demote,
        OnOverrun::Stop,
        OnOverrun::Signal,
    ];
    for policy in [FIXED, WAITING, EDF, PolicyKind::Fifo, TURNS] {
        for (seed, rule) in (0..).zip(rules) {
            for victim in ["first", "second", "sporadic", "last"] {
                let (mut system, mut faults) = overrunning(&rich(policy), victim, rule);
                system.tasks[0].jitter = Span::from_us(300 * seed);
                system.tasks[1].non_preemptive = Work::from_us(200);
                faults.jitter = true;
                faults.missing = missing(700, 11).missing;
                faults.late_timer = Span::from_us(100 * seed);
                faults.crashes = vec![punctual_sim::Crash {
                    task: TaskId(7),
                    job: 30,
                }];
                let log = simulate(&system, 600, seed, faults);
                let found = check(&log);
                assert!(
                    found.is_empty(),
                    "{policy:?} {rule:?} {victim}: {}",
                    found[0]
                );
            }
        }
    }
}

/// A busy log to change: preemptions, overruns, missing time, precedence on and across CPUs.
fn busy() -> Log {
    let (mut system, mut faults) = overrunning(&rich(FIXED), "sporadic", OnOverrun::Throttle);
    system.tasks[3] = periodic("reserved", 0, 40, 9_000, 2);
    faults.missing = missing(500, 13).missing;
    let log = simulate(&system, 300, 2, faults);
    let found = check(&log);
    assert!(found.is_empty(), "{}", found[0]);
    log
}

fn records(log: &Log, cpu: usize) -> Vec<Record> {
    log.cpus[cpu].records.iter().map(|(_, r)| r).collect()
}

/// Applies `change` to the records of `cpu` and expects the first violation to be of `rule`.
fn rejected(cpu: usize, rule: Rule, change: impl Fn(&mut Vec<Record>)) -> String {
    let mut log = busy();
    let mut all = records(&log, cpu);
    change(&mut all);
    assert_ne!(
        all,
        records(&log, cpu),
        "{}: nothing was changed",
        rule.name()
    );
    log.cpus[cpu].records = Records::from_iter(all);
    let found = check(&log);
    let first = found
        .first()
        .unwrap_or_else(|| panic!("{} was not noticed", rule.name()));
    assert_eq!(first.rule, rule, "{first}");
    first.detail.clone()
}

fn place(all: &[Record], wanted: impl Fn(&Record) -> bool) -> usize {
    all.iter().position(wanted).expect("such a record")
}

/// The place of the `nth` change that is `wanted`.
fn change_at(all: &[Record], nth: usize, wanted: impl Fn(&TraceEvent) -> bool) -> usize {
    let is = |r: &Record| matches!(r, Record::Trace(t) if wanted(t));
    let mut places = (0..all.len()).filter(|&at| is(&all[at]));
    places.nth(nth).expect("such a change")
}

#[test]
fn time_that_runs_backwards() {
    rejected(0, Rule::TimeRunsForward, |all| {
        let events =
            |r: &Record| matches!(r, Record::Entry(e) if e.now > Instant::from_ticks(50_000_000));
        let at = place(all, events);
        if let Record::Entry(entry) = &mut all[at] {
            entry.now = Instant::from_ticks(20_000_000);
        }
    });
}

#[test]
fn an_entry_without_its_decision() {
    rejected(0, Rule::EntriesAreWhole, |all| {
        let at = place(all, |r| matches!(r, Record::Decision(_)));
        let _ = all.remove(at);
    });
    rejected(0, Rule::EntriesAreWhole, |all| {
        let _ = all.pop();
    });
}

#[test]
fn a_switch_away_from_somebody_who_does_not_run() {
    rejected(0, Rule::OneThreadRuns, |all| {
        let switch = |t: &TraceEvent| matches!(t, TraceEvent::Switched { from: Some(_), .. });
        let at = change_at(all, 3, switch);
        if let Record::Trace(TraceEvent::Switched { from, .. }) = &mut all[at] {
            *from = None;
        }
    });
    rejected(0, Rule::OneThreadRuns, |all| {
        let switch = |t: &TraceEvent| matches!(t, TraceEvent::Switched { to: Some(_), .. });
        let at = change_at(all, 5, switch);
        let _ = all.remove(at);
    });
}

/// Makes the decision after `at`, and the switch before it, choose `chosen`.
fn choose(all: &mut [Record], at: usize, chosen: Option<ThreadId>) {
    if let Record::Trace(TraceEvent::Switched { to, .. }) = &mut all[at] {
        *to = chosen;
    }
    let decision = at + place(&all[at..], |r| matches!(r, Record::Decision(_)));
    if let Record::Decision(decision) = &mut all[decision] {
        decision.next = chosen.map_or(Next::Idle, Next::Thread);
    }
}

fn busy_switch(all: &[Record], nth: usize) -> usize {
    let both = |t: &TraceEvent| {
        matches!(
            t,
            TraceEvent::Switched {
                from: Some(_),
                to: Some(_),
                preempted: false
            }
        )
    };
    change_at(all, nth, both)
}

#[test]
fn a_thread_that_runs_without_a_job() {
    rejected(0, Rule::OnlyReadyRuns, |all| {
        // `once` (thread 4) has no job before 7 ms.
        let at = busy_switch(all, 0);
        choose(all, at, Some(ThreadId::new(4, 0)));
    });
}

#[test]
fn an_idle_processor_while_somebody_is_ready() {
    rejected(0, Rule::WorkConserving, |all| {
        let at = busy_switch(all, 2);
        choose(all, at, None);
    });
}

#[test]
fn a_less_urgent_thread_that_runs_first() {
    rejected(0, Rule::PolicyOrder, |all| {
        // `idle` (thread 5) is always ready and comes last.
        let at = busy_switch(all, 1);
        choose(all, at, Some(ThreadId::new(5, 0)));
    });
}

#[test]
fn the_orders_of_the_other_policies_are_held_too() {
    for policy in [WAITING, EDF, PolicyKind::Fifo, TURNS] {
        let log = simulate(&rich(policy), 200, 2, missing(500, 13));
        let good = records(&log, 0);
        let mut noticed = 0;
        let switches: Vec<usize> = (0..good.len())
            .filter(|&at| {
                matches!(
                    good[at],
                    Record::Trace(TraceEvent::Switched { to: Some(_), .. })
                )
            })
            .collect();
        for &at in &switches {
            for thread in 0..6 {
                let mut all = good.clone();
                choose(&mut all, at, Some(ThreadId::new(thread, 0)));
                let mut log = log.clone();
                log.cpus[0].records = Records::from_iter(all);
                noticed +=
                    usize::from(check(&log).first().map(|v| v.rule) == Some(Rule::PolicyOrder));
            }
        }
        assert!(
            noticed > 5,
            "{policy:?}: {noticed} wrong choices were noticed"
        );
    }
}

#[test]
fn a_thread_that_executes_more_than_its_allotments() {
    // The budget ends later than what is left of it.
    rejected(0, Rule::BudgetRespected, |all| {
        let armed = |r: &Record| matches!(r, Record::Decision(d) if d.next != Next::Idle);
        let at = place(all, armed);
        if let Record::Decision(decision) = &mut all[at] {
            decision.arm = Some(Instant::from_ticks(250_000_000));
        }
    });
    // More is granted than the task has.
    let told = rejected(0, Rule::BudgetRespected, |all| {
        let started = |t: &TraceEvent| {
            matches!(
                t,
                TraceEvent::Started {
                    budget: Some(_),
                    ..
                }
            )
        };
        let at = change_at(all, 4, started);
        if let Record::Trace(TraceEvent::Started { budget, .. }) = &mut all[at] {
            *budget = Some(Work::from_ticks(30_000_000));
        }
    });
    assert!(
        told.ends_with(" starts with a budget of 30000000 ticks, should be 2000000 ticks"),
        "{told}"
    );
    // A replenishment comes twice.
    rejected(0, Rule::BudgetRespected, |all| {
        let at = change_at(all, 0, |t| matches!(t, TraceEvent::Replenished { .. }));
        let again = all[at];
        all.insert(at, again);
    });
}

#[test]
fn a_job_that_starts_before_its_predecessor_is_done() {
    // On one CPU: `second` is told to be free while `first` still works.
    rejected(0, Rule::PrecedenceRespected, |all| {
        let blocked = |t: &TraceEvent| {
            matches!(
                t,
                TraceEvent::Blocked {
                    for_predecessors: true,
                    ..
                }
            )
        };
        let at = change_at(all, 0, blocked);
        let Record::Trace(TraceEvent::Blocked { thread, job, .. }) = all[at] else {
            return;
        };
        let woken = at + change_at(&all[at..], 0, |t| matches!(t, TraceEvent::Woken { .. }));
        let started = all.remove(woken + 1);
        let _ = all.remove(woken);
        all[at] = started;
        assert!(matches!(
            started,
            Record::Trace(TraceEvent::Started { thread: t, job: j, .. }) if (t, j) == (thread, job)
        ));
    });
}

#[test]
fn a_job_that_starts_before_its_predecessor_on_another_cpu_is_done() {
    let mut log = busy();
    // The predecessor's CPU says that it completed everything 3 ms later.
    let late: Vec<Record> = records(&log, 0)
        .into_iter()
        .map(|record| match record {
            Record::Entry(entry) => Record::Entry(RecordedEntry {
                now: entry.now.saturating_add(Span::from_ticks(3_000_000)),
                ..entry
            }),
            other => other,
        })
        .collect();
    log.cpus[0].records = Records::from_iter(late);
    let found = check(&log);
    let of_right = found.iter().find(|v| v.cpu == "right").map(|v| v.rule);
    assert_eq!(of_right, Some(Rule::PrecedenceRespected));
}

#[test]
fn releases_at_wrong_instants_doubled_or_left_out() {
    let released =
        |t: &TraceEvent| matches!(t, TraceEvent::Released { thread, .. } if thread.index() == 0);
    let told = rejected(0, Rule::ReleasesInTime, |all| {
        let at = change_at(all, 2, released);
        if let Record::Trace(TraceEvent::Released {
            arrival, deadline, ..
        }) = &mut all[at]
        {
            let later = Span::from_ticks(1);
            (*arrival, *deadline) = (
                arrival.saturating_sub(later),
                deadline.saturating_sub(later),
            );
        }
    });
    assert!(
        told.ends_with("at 19999999 ticks, but is due at 20000000 ticks"),
        "{told}"
    );
    rejected(0, Rule::ReleasesInTime, |all| {
        let at = change_at(all, 2, released);
        if let Record::Trace(TraceEvent::Released { job, .. }) = &mut all[at] {
            *job += 1;
        }
    });
    rejected(0, Rule::ReleasesInTime, |all| {
        let at = change_at(all, 2, released);
        let end = at + place(&all[at..], |r| matches!(r, Record::Decision(_)));
        let thread = |r: &Record| match r {
            Record::Trace(TraceEvent::Released { thread, .. }) => thread.index() == 0,
            Record::Trace(TraceEvent::Started { thread, .. }) => thread.index() == 0,
            _ => false,
        };
        let kept: Vec<Record> = all[at..end]
            .iter()
            .copied()
            .filter(|r| !thread(r))
            .collect();
        let _ = all.splice(at..end, kept);
    });
    rejected(0, Rule::ReleasesInTime, |all| {
        // An arrival that was never fed.
        let at = place(
            all,
            |r| matches!(r, Record::Entry(e) if matches!(e.event, Event::Arrive { .. })),
        );
        if let Record::Entry(entry) = &mut all[at] {
            entry.event = Event::Tick;
        }
    });
}

#[test]
fn dates_and_work_of_a_job_that_do_not_fit_together() {
    let completed = |t: &TraceEvent| matches!(t, TraceEvent::Completed { .. });
    rejected(0, Rule::JobArithmetic, |all| {
        let at = change_at(all, 3, completed);
        if let Record::Trace(TraceEvent::Completed { received, .. }) = &mut all[at] {
            *received = Work::from_ticks(received.ticks() + 1);
        }
    });
    rejected(0, Rule::JobArithmetic, |all| {
        let at = change_at(all, 3, completed);
        if let Record::Trace(TraceEvent::Completed { deadline, .. }) = &mut all[at] {
            *deadline = Instant::MAX;
        }
    });
    rejected(0, Rule::JobArithmetic, |all| {
        let at = change_at(all, 3, |t| matches!(t, TraceEvent::Released { .. }));
        if let Record::Trace(TraceEvent::Released { deadline, .. }) = &mut all[at] {
            *deadline = deadline.saturating_add(Span::from_ticks(1_000_000));
        }
    });
}

#[test]
fn jobs_that_end_twice_or_never() {
    let completed =
        |t: &TraceEvent| matches!(t, TraceEvent::Completed { thread, .. } if thread.index() == 0);
    rejected(0, Rule::JobsEndOnce, |all| {
        let at = change_at(all, 1, completed);
        let again = all[at];
        all.insert(at, again);
    });
    rejected(1, Rule::JobsEndOnce, |all| {
        let at = change_at(all, 0, |t| matches!(t, TraceEvent::Started { .. }));
        let again = all[at];
        all.insert(at + 1, again);
    });
}

#[test]
fn more_missing_time_than_there_was_time() {
    rejected(0, Rule::MissingWithinInterval, |all| {
        let at = place(
            all,
            |r| matches!(r, Record::Entry(e) if !e.missing.is_zero()),
        );
        if let Record::Entry(entry) = &mut all[at] {
            entry.missing.stolen = Span::from_ticks(100_000_000);
        }
    });
}

#[test]
fn a_live_trace_may_be_late_but_not_by_itself() {
    // Entries come late, so threads overshoot their budgets; that is tolerated as far as the
    // log shows it: the same overshoot without a late entry is not.
    let (system, mut faults) = overrunning(&two_tasks(), "fast", OnOverrun::Throttle);
    faults.late_timer = Span::from_us(400);
    let mut log = simulate(&system, 200, 3, faults);
    assert!(check(&log).is_empty());
    let in_time: Vec<Record> = records(&log, 0)
        .into_iter()
        .map(|record| match record {
            Record::Decision(mut decision) if decision.next != Next::Idle => {
                decision.arm = decision
                    .arm
                    .map(|arm| arm.saturating_add(Span::from_ticks(1_000_000)));
                Record::Decision(decision)
            }
            other => other,
        })
        .collect();
    log.cpus[0].records = Records::from_iter(in_time);
    let found = check(&log);
    assert_eq!(found.first().map(|v| v.rule), Some(Rule::BudgetRespected));
}
