//! Schedulers that decide on their own supply, on a real CPU: honest ones, and others.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::{Log, alone, for_ms, input_of, one_cpu, periodic};
use punctual_kern::{Attributes, Event, FallbackCause, Pick, Policy, TraceEvent};
use punctual_linux::{CpuOutcome, Ending, Outcome, run};
use punctual_model::{
    CpuId, Fallback, Instant, PolicyKind, Priority, Scheduler, SchedulerId, Server, ServerKind,
    Span, Supply, System, ThreadId, Trust, Work,
};
use punctual_policy::EarliestDeadlineFirst;

/// Tasks `a` and `b` of 10 ms below a child on 4 ms in every 10 ms, `rest` of 10 ms below it.
fn family() -> System {
    let task = |name, priority| periodic(name, priority, 10_000, 2_000, |_| {}).task;
    let mut system = one_cpu(vec![task("a", 1), task("b", 1), task("rest", 1)]);
    system.schedulers.push(Scheduler {
        name: "child".to_owned(),
        cpu: CpuId(0),
        parent: None,
        policy: PolicyKind::EarliestDeadlineFirst,
        priority: Priority::new(9),
        supply: Supply::Server(Server {
            kind: ServerKind::Deferrable,
            budget: Work::from_us(4_000),
            period: Span::from_us(10_000),
        }),
        trust: Trust::OwnTime,
        quota: None,
        receiver: None,
        fallback: None,
        code: None,
    });
    for task in &mut system.tasks[..2] {
        task.scheduler = Some(SchedulerId(0));
    }
    system
}

/// How many jobs each of the three tasks had, and the outcome.
fn fly(policy: impl Policy + Send + 'static) -> ([u64; 3], Outcome<Log>) {
    fly_as(&family(), policy)
}

fn fly_as(system: &System, policy: impl Policy + Send + 'static) -> ([u64; 3], Outcome<Log>) {
    let counts: [Arc<AtomicU64>; 3] = Default::default();
    let body = |count: &Arc<AtomicU64>| -> punctual_linux::Body {
        let count = Arc::clone(count);
        Box::new(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
        })
    };
    let bodies = counts.iter().map(body).collect();
    let log = Log::with_room(100_000);
    let input = input_of(system, bodies, vec![Box::new(policy)], log);
    let mut options = for_ms(200);
    // Starved jobs never complete.
    options.grace_ns = 20_000_000;
    let outcome = run(vec![input], &options).expect("a run");
    assert_eq!(outcome.ending, Ending::Complete);
    (counts.map(|count| count.load(Ordering::Relaxed)), outcome)
}

fn deciding_ticks(cpu: &CpuOutcome<Log>) -> Vec<u64> {
    let charge = |(_, event): &(Instant, TraceEvent)| match event {
        TraceEvent::ChildCharged { work, .. } => Some(work.ticks()),
        _ => None,
    };
    cpu.sink.traces.iter().filter_map(charge).collect()
}

/// Periods in which the machine took what is left of 10 ms beside the child's 4 ms.
fn stolen(outcome: &Outcome<Log>) -> u64 {
    outcome.cpus[0].counters.missing_ns / 6_000_000
}

/// Of the twenty jobs of each task all ran, but in periods that were stolen.
fn assert_all_ran(jobs: &[u64], outcome: &Outcome<Log>) {
    let stolen = stolen(outcome);
    let all = jobs.iter().all(|jobs| jobs + stolen >= 20);
    assert!(all, "{jobs:?}, {stolen} periods stolen");
}

fn refusals(cpu: &CpuOutcome<Log>) -> usize {
    let decisions = cpu.sink.decisions.iter();
    decisions.filter(|(_, d)| d.refused.is_some()).count()
}

#[test]
fn the_threads_of_a_child_run_by_its_choice_at_its_cost() {
    let _alone = alone();
    let (jobs, outcome) = fly(EarliestDeadlineFirst::new(8));
    assert_all_ran(&jobs, &outcome);
    let cpu = &outcome.cpus[0];
    let most = 20 - stolen(&outcome).min(20);
    assert!(deciding_ticks(cpu).len() as u64 >= most);
    assert_eq!(cpu.abandoned, 0);
    let answers = cpu.sink.events.iter();
    let answers = answers.filter(|(_, e)| matches!(e, Event::ChildPicked(_)));
    assert!(answers.count() as u64 >= most);
    assert_eq!(outcome.panics, []);
}

/// Wraps a policy, and does something else when it should choose.
struct Instead<F> {
    order: EarliestDeadlineFirst,
    choose: F,
}

impl<F: FnMut(&mut EarliestDeadlineFirst, Instant) -> Pick> Policy for Instead<F> {
    fn wake(&mut self, thread: ThreadId, attributes: &Attributes) {
        self.order.wake(thread, attributes);
    }
    fn block(&mut self, thread: ThreadId) {
        self.order.block(thread);
    }
    fn pick(&mut self, now: Instant) -> Pick {
        (self.choose)(&mut self.order, now)
    }
}

fn instead<F>(choose: F) -> Instead<F>
where
    F: FnMut(&mut EarliestDeadlineFirst, Instant) -> Pick,
{
    let order = EarliestDeadlineFirst::new(8);
    Instead { order, choose }
}

#[test]
fn a_child_that_never_answers_is_preempted_when_its_budget_ends() {
    let _alone = alone();
    let (jobs, outcome) = fly(instead(|_, _| {
        loop {
            std::hint::spin_loop();
        }
    }));
    assert_eq!(jobs[..2], [0, 0]);
    assert_all_ran(&jobs[2..], &outcome);
    assert_eq!(
        outcome.cpus[0].abandoned, 1,
        "the child is left in its loop"
    );
    assert!(!deciding_ticks(&outcome.cpus[0]).is_empty());
}

#[test]
fn the_answers_of_a_liar_are_refused_and_others_do_not_notice() {
    let _alone = alone();
    let mut lies = 0_u32;
    let (jobs, outcome) = fly(instead(move |_, _| {
        lies += 1;
        Pick::run(ThreadId::new(lies % 7 + 2, lies % 3))
    }));
    assert_eq!(jobs[..2], [0, 0]);
    assert_all_ran(&jobs[2..], &outcome);
    // Not more than one a millisecond, but for the first ten of a quarrel.
    let refused = refusals(&outcome.cpus[0]);
    assert!((20..400).contains(&refused), "{refused}");
}

#[test]
fn a_child_whose_policy_panics_is_named_and_others_run_on() {
    let _alone = alone();
    let mut choices = 0;
    let (jobs, outcome) = fly(instead(move |order, now| {
        choices += 1;
        if choices >= 10 {
            // A panic that prints nothing: a trace of the stack may take its supply for seconds.
            resume_unwind(Box::new("out of ideas"));
        }
        order.pick(now)
    }));
    assert!((1..20).contains(&jobs[0]), "{jobs:?}");
    assert_all_ran(&jobs[2..], &outcome);
    let panics = &outcome.panics;
    assert_eq!(panics.len(), 1);
    assert_eq!(
        (panics[0].name.as_str(), panics[0].message.as_str()),
        ("child 1", "out of ideas")
    );
}

/// The family with a fallback after three periods of its supply.
fn with_fallback() -> System {
    let mut system = family();
    system.schedulers[0].fallback = Some(Fallback {
        policy: PolicyKind::FixedPriority { preemptive: true },
        after: 3,
    });
    system
}

fn fallbacks(outcome: &Outcome<Log>) -> Vec<FallbackCause> {
    let fell = |(_, event): &(Instant, TraceEvent)| match event {
        TraceEvent::FellBack { cause, .. } => Some(*cause),
        _ => None,
    };
    outcome.cpus[0]
        .sink
        .traces
        .iter()
        .filter_map(fell)
        .collect()
}

#[test]
fn the_threads_of_a_child_that_loops_lies_or_is_silent_go_on_under_its_fallback() {
    let _alone = alone();
    let loops = instead(|_, _| {
        loop {
            std::hint::spin_loop();
        }
    });
    let lies = instead(|_, _| Pick::run(ThreadId::new(2, 0)));
    let silent = instead(|_, _| Pick::NOBODY);
    let flights = [
        fly_as(&with_fallback(), loops),
        fly_as(&with_fallback(), lies),
        fly_as(&with_fallback(), silent),
    ];
    for (jobs, outcome) in flights {
        assert_eq!(fallbacks(&outcome), [FallbackCause::Unanswered]);
        let stolen = outcome.cpus[0].counters.missing_ns / 6_000_000;
        // Three of twenty periods have passed, and the jobs of these are late.
        assert!(
            jobs[..2].iter().all(|n| n + stolen >= 15),
            "{jobs:?}, {stolen} stolen"
        );
        assert_all_ran(&jobs[2..], &outcome);
    }
}

#[test]
fn a_child_that_panics_is_followed_by_its_fallback_and_loses_no_job() {
    let _alone = alone();
    let mut decisions = 0;
    let fragile = instead(move |order, now| {
        decisions += 1;
        if decisions == 5 {
            resume_unwind(Box::new("enough"));
        }
        order.pick(now)
    });
    let (jobs, outcome) = fly_as(&with_fallback(), fragile);
    assert_eq!(fallbacks(&outcome), [FallbackCause::Failed]);
    assert_all_ran(&jobs, &outcome);
}
