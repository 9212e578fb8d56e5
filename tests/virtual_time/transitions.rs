//! Constraints that change while a system runs: `kern` keeps the promises of the analysis.
//!
//! The analysis says from when on a change keeps every promise. Here a shard is driven through
//! random histories in which a task joins, leaves or asks for other constraints at a random
//! instant. No job may be late, neither before the change nor after it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use punctual::{Class, Cpu, CpuId, PolicyKind, Priority, Span, System, Task, TaskId, Work, admit};
use punctual_analysis::{AnalysisError, Transition, When, admit_transition};
use punctual_generate::Dice;
use punctual_kern::{
    Capacity, Constraint, Decision, Event, Next, Policy, Shard, Sink, TraceEvent, Tree,
};
use punctual_model::{Frequency, Instant, Machine, Ns, ThreadId};
use punctual_policy::{EarliestDeadlineFirst, FixedPriority};

const HORIZON: u64 = 600;

/// A change of one task.
#[derive(Clone, Debug)]
enum Change {
    Add(Task),
    Remove(TaskId),
    Replace(TaskId, Task),
}

/// The answer of the analysis to a change, with the system after it.
fn judged(system: &System, change: &Change) -> Result<Transition, AnalysisError> {
    let mut after = system.clone();
    after.free_phases = true;
    match change {
        Change::Add(task) => after.tasks.push(task.clone()),
        Change::Remove(id) => drop(after.tasks.remove(id.index())),
        Change::Replace(id, task) => {
            let name = after.tasks[id.index()].name.clone();
            after.tasks[id.index()] = Task {
                name,
                ..task.clone()
            };
        }
    }
    admit_transition(std::slice::from_ref(system), after)
}

/// The first job that was late.
#[derive(Default)]
struct Watch {
    late: Option<String>,
    changed: bool,
    completed: u64,
}

impl Sink for Watch {
    fn trace(&mut self, now: Instant, event: TraceEvent) {
        match event {
            TraceEvent::Completed {
                thread,
                job,
                deadline,
                ..
            } => {
                self.completed += 1;
                if now > deadline {
                    let late = format!("job {job} of {thread:?}: {now:?} after {deadline:?}");
                    self.late.get_or_insert(late);
                }
            }
            TraceEvent::Changed { .. } => self.changed = true,
            _ => {}
        }
    }
}

struct Run<P: Policy> {
    shard: Shard<P>,
    watch: Watch,
    threads: Vec<ThreadId>,
    now: u64,
    decision: Option<Decision>,
}

impl<P: Policy> Run<P> {
    fn new(policy: impl Fn(usize) -> P, system: &System) -> Run<P> {
        let capacity = Capacity::for_threads(8);
        let mut shard = Shard::new(Tree::new(capacity, policy(capacity.threads)));
        let mut threads = Vec::new();
        for (task, order) in system.tasks.iter().zip(0..) {
            threads.push(
                shard
                    .attach(Constraint::of_task(task, order).in_ticks(Frequency::NANOSECONDS))
                    .unwrap(),
            );
        }
        Run {
            shard,
            watch: Watch::default(),
            threads,
            now: 0,
            decision: None,
        }
    }

    fn at(&mut self, event: Event) {
        let now = Instant::from_ticks(self.now);
        let decision = self.shard.handle(now, event, &mut self.watch);
        assert_eq!(decision.refused, None, "{event:?}");
        assert_eq!(self.shard.check(), Ok(()));
        self.decision = Some(decision);
    }

    /// Runs until `until`; the thread that runs completes each job after its whole work.
    fn until(&mut self, until: u64) {
        if self.decision.is_none() {
            self.at(Event::Tick);
        }
        while self.now < until {
            let decision = self.decision.unwrap();
            let done = match decision.next {
                Next::Thread(thread) => self.shard.job(thread).map(|job| {
                    let budget = job.budget.map_or(0, Work::ticks);
                    self.now + budget
                }),
                _ => None,
            };
            let armed = decision.arm.map(Instant::ticks).filter(|&at| at > self.now);
            let next = done.into_iter().chain(armed).chain([until]).min().unwrap();
            self.now = next;
            self.at(if done == Some(next) {
                Event::Complete
            } else {
                Event::Tick
            });
        }
    }

    fn is_idle(&self) -> bool {
        matches!(self.decision.unwrap().next, Next::Idle)
    }

    /// No job is late, not even one that still runs.
    fn judge(&self) -> Result<(), String> {
        if let Some(late) = &self.watch.late {
            return Err(late.clone());
        }
        let overdue = |&&thread: &&ThreadId| {
            let job = self.shard.job(thread);
            job.is_some_and(|job| job.absolute_deadline.ticks() < self.now)
        };
        match self.threads.iter().find(overdue) {
            Some(thread) => Err(format!("{thread:?} still runs at {}", self.now)),
            None => Ok(()),
        }
    }
}

fn periodic(name: &str, (wcet, period, deadline): (u64, u64, u64), priority: u64) -> Task {
    let class = Class::Periodic {
        period: Span::from_ns(period),
        wcet: Work::from_ns(wcet),
        relative_deadline: Span::from_ns(deadline),
    };
    let mut task = Task::new(name, CpuId(0), class);
    task.priority = Priority::new(u32::try_from(priority).unwrap());
    task
}

fn random_task(dice: &mut Dice, name: &str, tasks: u64) -> Task {
    let period = [4, 5, 6, 8, 10, 12, 20, 30][usize::try_from(dice.below(8)).unwrap()];
    let wcet = 1 + dice.below((2 * period / tasks).max(1)).min(period - 1);
    let deadline = if dice.one_in(2) {
        period
    } else {
        wcet + dice.below(period)
    };
    let mut task = periodic(name, (wcet, period, deadline), 1 + dice.below(4));
    task.phase = Span::from_ns(dice.below(6));
    task
}

fn system(policy: PolicyKind<Ns>, tasks: Vec<Task>) -> System {
    let cpu = Cpu {
        name: "0".into(),
        host: None,
        policy,
    };
    System {
        cpus: vec![cpu],
        tasks,
        ..System::default()
    }
}

fn drive<P: Policy>(
    policy: impl Fn(usize) -> P,
    system: &System,
    change: &Change,
    when: When,
    at: u64,
) -> Result<bool, String> {
    let mut run = Run::new(policy, system);
    run.until(at);
    if when == When::Idle {
        let mut patience = HORIZON;
        while !run.is_idle() && patience > 0 {
            run.until(run.now + 1);
            patience -= 1;
        }
        if !run.is_idle() {
            return Ok(false);
        }
    }
    let order = u32::try_from(system.tasks.len()).unwrap();
    match change {
        Change::Add(task) => {
            run.at(Event::Create(
                Constraint::of_task(task, order).in_ticks(Frequency::NANOSECONDS),
            ));
            let created = run.shard.last_created().unwrap();
            run.threads.push(created);
        }
        Change::Remove(id) => {
            let thread = run.threads.remove(id.index());
            run.at(Event::Kill(thread));
        }
        Change::Replace(id, task) => run.at(Event::Change {
            thread: run.threads[id.index()],
            constraint: Constraint::of_task(task, id.0).in_ticks(Frequency::NANOSECONDS),
        }),
    }
    run.until(at + HORIZON);
    run.judge()?;
    Ok(run.watch.completed > 0)
}

fn random_change(dice: &mut Dice, system: &System) -> Change {
    let tasks = system.tasks.len() as u64;
    let id = TaskId(u32::try_from(dice.below(tasks)).unwrap());
    match dice.below(6) {
        0 => Change::Add(random_task(dice, "new", tasks + 1)),
        1 => Change::Remove(id),
        _ => {
            let mut task = random_task(dice, "other", tasks);
            if dice.one_in(3) {
                task.priority = system.tasks[id.index()].priority;
            }
            task.phase = Span::from_ns(dice.below(2));
            Change::Replace(id, task)
        }
    }
}

#[test]
fn no_job_is_late_when_a_change_comes_when_the_analysis_allows_it() {
    let mut dice = Dice::new(12);
    let mut driven = std::collections::BTreeMap::new();
    let mut seed = 0;
    while seed < 4_000 {
        seed += 1;
        let edf = dice.one_in(2);
        let policy = if edf {
            PolicyKind::EarliestDeadlineFirst
        } else {
            PolicyKind::FixedPriority { preemptive: true }
        };
        let count = 2 + dice.below(3);
        let names = ["a", "b", "c", "d"];
        let names = names.iter().take(usize::try_from(count).unwrap());
        let tasks = names
            .map(|name| random_task(&mut dice, name, count))
            .collect();
        let system = system(policy, tasks);
        if !admit(&system).unwrap().admitted {
            continue;
        }
        let change = random_change(&mut dice, &system);
        let transition = judged(&system, &change).unwrap();
        if transition.when == When::Never {
            continue;
        }
        let at = dice.below(80);
        let done = if edf {
            drive(
                EarliestDeadlineFirst::new,
                &system,
                &change,
                transition.when,
                at,
            )
        } else {
            drive(FixedPriority::new, &system, &change, transition.when, at)
        };
        match done {
            Ok(done) => *driven.entry(transition.ground).or_insert(0) += u32::from(done),
            Err(late) => panic!(
                "seed {seed}: {late}; {change:?} at {at}, {}: {system:#?}",
                transition.ground
            ),
        }
    }
    // Every rule was tried.
    let tried = |word: &str| {
        driven
            .iter()
            .any(|(ground, &n)| ground.contains(word) && n > 10)
    };
    for word in ["joins", "leaves", "covers", "bandwidth", "together", "meet"] {
        assert!(tried(word), "{word}: {driven:?}");
    }
}

/// Under EDF (1, 2, 2) becomes (2, 10, 3) beside (3, 10, 5).
fn burst() -> (System, Change) {
    let edf = PolicyKind::EarliestDeadlineFirst;
    let tasks = vec![
        periodic("changes", (1, 2, 2), 1),
        periodic("stays", (3, 10, 5), 1),
    ];
    let change = Change::Replace(TaskId(0), periodic("changes", (2, 10, 3), 1));
    (system(edf, tasks), change)
}

#[test]
fn two_admitted_systems_do_not_make_an_admitted_change() {
    let (system, change) = burst();
    assert!(admit(&system).unwrap().admitted);
    let transition = judged(&system, &change).unwrap();
    assert!(transition.verdict.admitted);
    assert_eq!(transition.when, When::Idle);
    let at_zero_lag = drive(
        EarliestDeadlineFirst::new,
        &system,
        &change,
        When::ZeroLag,
        0,
    );
    assert!(at_zero_lag.is_err(), "{at_zero_lag:?}");
    for at in 0..20 {
        let idle = drive(EarliestDeadlineFirst::new, &system, &change, When::Idle, at);
        assert_eq!(idle, Ok(true), "at {at}");
    }
}

#[test]
fn bandwidth_decides_only_where_the_machine_takes_nothing() {
    let tasks = vec![
        periodic("changes", (20, 100, 100), 1),
        periodic("stays", (30, 100, 100), 1),
    ];
    let free = system(PolicyKind::EarliestDeadlineFirst, tasks);
    let change = Change::Replace(TaskId(0), periodic("changes", (40, 120, 120), 1));
    let by_bandwidth = |system: &System| {
        let ground = judged(system, &change).unwrap().ground;
        ground.contains("bandwidth")
    };
    assert!(by_bandwidth(&free));
    let terms: [fn(&mut Machine) -> &mut Work<Ns>; 5] = [
        |machine| &mut machine.switch,
        |machine| &mut machine.timer,
        |machine| &mut machine.budget_timer,
        |machine| &mut machine.preemption,
        |machine| &mut machine.cache_delay,
    ];
    for (at, term) in terms.into_iter().enumerate() {
        let mut costly = free.clone();
        *term(&mut costly.machine) = Work::from_ns(1);
        assert!(!by_bandwidth(&costly), "term {at}");
    }
}

#[test]
fn a_change_to_what_is_refused_never_comes() {
    let (system, _) = burst();
    let change = Change::Add(periodic("more", (5, 10, 10), 1));
    let transition = judged(&system, &change).unwrap();
    assert_eq!(transition.when, When::Never);
    let leaves = judged(&transition.system, &Change::Remove(TaskId(0)));
    assert!(leaves.is_err(), "the system before is refused already");
}
