//! Schedulers that decide on their own supply, honest ones and others.

use punctual_child::ChildScheduler;
use punctual_kern::{Attributes, Event, FallbackCause, NodeId, Pick, Policy, TraceEvent};
use punctual_model::{
    Fallback, Frequency, Instant, Ns, PolicyKind, Priority, Scheduler, SchedulerId, Server,
    ServerKind, Span, Supply, System, Task, ThreadId, Trust, Work,
};
use punctual_policy::AnyPolicy;
use punctual_sim::{CpuInput, Faults, Guests, Misconduct, Options, prepare, run_with};
use punctual_tables::Tables;

use crate::common::{Tape, periodic, system};

const FIXED: PolicyKind<Ns> = PolicyKind::FixedPriority { preemptive: true };
const RUN: u64 = 1_000_000;

/// `a` and `b` below a child on 40 us in every 200 us, `rest` on the CPU below it.
fn family() -> System {
    let mut system = system(1, FIXED);
    system.schedulers.push(Scheduler {
        name: "child".into(),
        cpu: punctual_model::CpuId(0),
        parent: None,
        policy: PolicyKind::EarliestDeadlineFirst,
        priority: Priority::new(9),
        supply: Supply::Server(Server {
            kind: ServerKind::Deferrable,
            budget: Work::from_ns(40_000),
            period: Span::from_ns(200_000),
        }),
        trust: Trust::OwnTime,
        quota: None,
        receiver: None,
        fallback: None,
        code: None,
    });
    let mut of_child = |mut task: Task| {
        task.scheduler = Some(SchedulerId(0));
        system.tasks.push(task);
    };
    of_child(periodic("a", 10_000, 200_000, 200_000));
    of_child(periodic("b", 20_000, 200_000, 100_000));
    system
        .tasks
        .push(periodic("rest", 100_000, 200_000, 200_000));
    system
}

fn simulate(system: &System, faults: Faults) -> Tape {
    let policy = AnyPolicy::new(PolicyKind::EarliestDeadlineFirst, 16, &[]);
    simulate_with(system, faults, Box::new(policy))
}

fn simulate_with(system: &System, faults: Faults, policy: Box<dyn Policy + Send>) -> Tape {
    let mut tables = Tables::new(system, Frequency::NANOSECONDS);
    let duration = Span::from_ns(RUN);
    tables.set_duration(system, duration);
    prepare(system, &mut tables, &faults);
    let cpu = &tables.cpus[0];
    let child = ChildScheduler::new(NodeId::new(1, 0), cpu.capacity.threads, policy);
    let input = CpuInput {
        shard: cpu.build(AnyPolicy::new).expect("valid tables"),
        sink: Tape::default(),
    };
    let options = Options {
        duration,
        seed: 0,
        faults,
        plans: Vec::new(),
    };
    let guests = Guests {
        children: vec![vec![child]],
        ..Guests::default()
    };
    let outcome = run_with(system, &tables, vec![input], guests, &options, &mut ());
    outcome.unwrap().cpus.remove(0).sink
}

fn costing(ticks: u64) -> Faults {
    Faults {
        decision_cost: Work::from_ns(ticks),
        ..Faults::default()
    }
}

fn misbehaving(how: Misconduct) -> Faults {
    Faults {
        children: vec![(SchedulerId(0), how)],
        ..costing(1_000)
    }
}

fn deciding(tape: &Tape) -> u64 {
    let charge = |(_, event): &(Instant, TraceEvent)| match event {
        TraceEvent::ChildCharged { work, .. } => Some(work.ticks()),
        _ => None,
    };
    tape.trace.iter().filter_map(charge).sum()
}

#[test]
fn a_child_orders_its_threads_by_its_own_policy_at_its_own_cost() {
    // Both come at 0; 1 us for each of three decisions, the last finds nobody and is spared.
    let tape = simulate(&family(), costing(1_000));
    assert_eq!(tape.responses(1), [21_000; 5], "b has the earlier deadline");
    assert_eq!(tape.responses(0), [32_000; 5], "then a");
    assert_eq!(tape.responses(2), [132_000; 5]);
    assert_eq!(deciding(&tape), 5 * 2_000);
}

#[test]
fn a_child_that_decides_in_no_time_is_as_good_as_one_inside() {
    let mut inline = family();
    inline.schedulers[0].trust = Trust::Inline;
    let own = simulate(&family(), Faults::default());
    let inside = simulate(&inline, Faults::default());
    for thread in 0..3 {
        assert_eq!(own.responses(thread), inside.responses(thread));
    }
}

#[test]
fn a_child_that_never_answers_wastes_its_own_budget_and_no_more() {
    let tape = simulate(&family(), misbehaving(Misconduct::Loops));
    assert!(tape.responses(0).is_empty());
    assert_eq!(tape.responses(2), [140_000; 5]);
    // Its jobs never end, so the run goes on for one deadline more.
    assert_eq!(deciding(&tape), 6 * 40_000);
}

#[test]
fn the_answers_of_a_liar_are_refused_and_others_do_not_notice() {
    let tape = simulate(&family(), misbehaving(Misconduct::Lies));
    let refused = tape.decisions.iter().filter(|d| d.1.refused.is_some());
    let refused = refused.count();
    assert!(refused > 10, "{refused}");
    let latest = tape.responses(2).into_iter().max();
    assert!(latest.is_some_and(|latest| latest <= 140_000), "{latest:?}");
    assert_eq!(tape.responses(2).len(), 5);
}

#[test]
fn a_child_that_wants_nobody_costs_only_its_decisions() {
    let tape = simulate(&family(), misbehaving(Misconduct::Silent));
    assert!(tape.responses(0).is_empty());
    let answers = tape
        .events
        .iter()
        .filter(|(_, e)| matches!(e, Event::ChildPicked(_)));
    let answers = u64::try_from(answers.count()).unwrap();
    assert_eq!(deciding(&tape), answers * 1_000);
    assert!(
        tape.responses(2)
            .iter()
            .all(|&r| r <= 100_000 + answers * 1_000)
    );
}

/// The family with a fallback after three periods of its supply.
fn with_fallback() -> System {
    let mut system = family();
    system.schedulers[0].fallback = Some(Fallback {
        policy: FIXED,
        after: 3,
    });
    system
}

fn fallbacks(tape: &Tape) -> Vec<(u64, FallbackCause)> {
    let fell = |(now, event): &(Instant, TraceEvent)| match event {
        TraceEvent::FellBack { cause, .. } => Some((now.ticks(), *cause)),
        _ => None,
    };
    tape.trace.iter().filter_map(fell).collect()
}

#[test]
fn the_threads_of_a_child_that_does_not_answer_go_on_under_its_fallback() {
    for how in [Misconduct::Loops, Misconduct::Lies, Misconduct::Silent] {
        let tape = simulate(&with_fallback(), misbehaving(how));
        // A lie may happen to be true, and the patience begins anew.
        let in_time = match how {
            Misconduct::Lies => 600_000..=700_000,
            _ => 600_000..=600_000,
        };
        let fell = fallbacks(&tape);
        let right = matches!(&fell[..], [(at, FallbackCause::Unanswered)] if in_time.contains(at));
        assert!(right, "{how:?}: {fell:?}");
        // From then on each period has the job that its budget has room for.
        let done = tape.responses(0).len() + tape.responses(1).len();
        assert!(done >= 4, "{how:?}: {done} jobs");
        assert!(
            tape.responses(2).iter().all(|&all| all <= 140_000),
            "{how:?}"
        );
        let late = |(now, event): &&(Instant, TraceEvent)| {
            now.ticks() > 700_000 && matches!(event, TraceEvent::ChildCharged { .. })
        };
        assert_eq!(
            tape.trace.iter().filter(late).count(),
            0,
            "it decides no more"
        );
    }
}

#[test]
fn an_honest_child_keeps_deciding_whatever_its_fallback() {
    let tape = simulate(&with_fallback(), costing(1_000));
    assert_eq!(fallbacks(&tape), []);
    assert_eq!(tape.responses(1), [21_000; 5]);
}

/// Panics when it is asked for the third time.
struct Fragile(AnyPolicy, u32);

impl Policy for Fragile {
    fn wake(&mut self, thread: ThreadId, a: &Attributes) {
        self.0.wake(thread, a);
    }
    fn block(&mut self, thread: ThreadId) {
        self.0.block(thread);
    }
    fn pick(&mut self, now: Instant) -> Pick {
        self.1 += 1;
        assert!(self.1 < 3, "the third decision");
        self.0.pick(now)
    }
}

#[test]
fn a_policy_that_panics_is_followed_by_its_fallback_at_once() {
    let entities = 16;
    let policy = AnyPolicy::new(PolicyKind::EarliestDeadlineFirst, entities, &[]);
    let tape = simulate_with(
        &with_fallback(),
        costing(1_000),
        Box::new(Fragile(policy, 0)),
    );
    let fell = fallbacks(&tape);
    assert!(matches!(fell[..], [(_, FallbackCause::Failed)]), "{fell:?}");
    assert_eq!(tape.responses(0).len() + tape.responses(1).len(), 10);
    // Without a fallback nobody of its threads runs any more.
    let policy = AnyPolicy::new(PolicyKind::EarliestDeadlineFirst, entities, &[]);
    let tape = simulate_with(&family(), costing(1_000), Box::new(Fragile(policy, 0)));
    assert_eq!(fallbacks(&tape), []);
    assert!(tape.responses(0).len() + tape.responses(1).len() <= 2);
}
