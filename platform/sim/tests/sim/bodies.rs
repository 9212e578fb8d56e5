//! Bodies that a program brings: the questions they get, and the instants.

use std::cell::RefCell;
use std::rc::Rc;

use punctual_kern::Event;
use punctual_model::{
    Class, CpuId, Frequency, Instant, PolicyKind, Scheduler, SchedulerId, Slot, Span, Supply,
    System, Task, TaskId, Work,
};
use punctual_policy::AnyPolicy;
use punctual_sim::{Act, Body, CpuInput, Faults, Guests, Nudges, Options, Step, run_with};
use punctual_tables::{CpuTables, Tables};

use crate::common::{Tape, system};
use crate::trees::scheduler;

type Told = Rc<RefCell<Vec<(u64, &'static str)>>>;

/// Hands something on after each 30 ns of work, three times; then it is idle.
struct Giver {
    given: u32,
    peers: [TaskId; 1],
}

impl Body for Giver {
    fn begin(&mut self, _: u64, _: Option<Work>) {}

    fn next(&mut self, _: Instant, others: &mut Nudges) -> Step {
        if self.given > 0 {
            others.nudge(self.peers[0]);
        }
        self.given += 1;
        let work = (self.given <= 3).then_some(Work::from_ns(30).ticks_up(NS));
        let act = Act::Continue;
        Step { work, act }
    }

    fn peers(&self) -> &[TaskId] {
        &self.peers
    }
}

const NS: Frequency = Frequency::NANOSECONDS;

/// Polls, and notes when it looked, was switched out and in.
struct Poller(Told);

impl Poller {
    fn note(&self, now: Instant, what: &'static str) {
        self.0.borrow_mut().push((now.ticks(), what));
    }
}

impl Body for Poller {
    fn begin(&mut self, _: u64, _: Option<Work>) {}

    fn next(&mut self, now: Instant, _: &mut Nudges) -> Step {
        self.note(now, "looks");
        let (work, act) = (None, Act::Continue);
        Step { work, act }
    }

    fn switched_out(&mut self, now: Instant, left: Option<Work>) {
        assert_eq!(left, None);
        self.note(now, "out");
    }

    fn switched_in(&mut self, now: Instant) -> bool {
        self.note(now, "in");
        true
    }
}

/// A giver on a CPU for itself, and a poller in a slot from 20 to 70 of each 100 ns of another.
fn two_cpus() -> System {
    let mut system = system(2, PolicyKind::Fifo);
    system.cpus[1].policy = PolicyKind::Tdm {
        frame: Span::from_ns(100),
        scheduling: Span::ZERO,
    };
    let slot = Slot {
        at: Span::from_ns(20),
        length: Span::from_ns(50),
    };
    let own = scheduler("own", PolicyKind::Fifo, Supply::Slots(vec![slot]), 1);
    system.schedulers = vec![Scheduler {
        cpu: CpuId(1),
        ..own
    }];
    let poller = Task {
        scheduler: Some(SchedulerId(0)),
        ..Task::new("poller", CpuId(1), Class::Aperiodic)
    };
    system.tasks = vec![Task::new("giver", CpuId(0), Class::Aperiodic), poller];
    system
}

fn run(system: &System, bodies: Vec<(TaskId, Box<dyn Body>)>, duration: u64) -> Vec<Tape> {
    let tables = Tables::new(system, NS);
    let input = |cpu: &CpuTables| CpuInput {
        shard: cpu.build(AnyPolicy::new).expect("valid tables"),
        sink: Tape::default(),
    };
    let inputs = tables.cpus.iter().map(input).collect();
    let options = Options {
        duration: Span::from_ns(duration),
        seed: 0,
        faults: Faults::default(),
        plans: Vec::new(),
    };
    let guests = Guests {
        bodies,
        ..Guests::default()
    };
    let outcome = run_with(system, &tables, inputs, guests, &options, &mut ()).unwrap();
    outcome.cpus.into_iter().map(|cpu| cpu.sink).collect()
}

#[test]
fn a_body_is_told_of_its_slots_and_a_nudge_is_no_entry() {
    let system = two_cpus();
    let told = Told::default();
    let giver = Giver {
        given: 0,
        peers: [TaskId(1)],
    };
    let bodies: Vec<(TaskId, Box<dyn Body>)> = vec![
        (TaskId(0), Box::new(giver)),
        (TaskId(1), Box::new(Poller(Rc::clone(&told)))),
    ];
    let tapes = run(&system, bodies, 130);
    // Given at 30, 60 and 90. The last one finds it switched out.
    let expected = [
        (20, "looks"),
        (30, "looks"),
        (60, "looks"),
        (70, "out"),
        (120, "in"),
        (120, "looks"),
    ];
    assert_eq!(*told.borrow(), expected);
    let alone = run(&system, Vec::new(), 130);
    assert_eq!(tapes[1].events, alone[1].events);
    assert_eq!(tapes[0].events, [(Instant::ZERO, Event::Tick)]);
}

/// Two jobs, each of them a stretch that ends at once and one of 10 ns.
struct Jobs(Told);

impl Body for Jobs {
    fn begin(&mut self, job: u64, budget: Option<Work>) {
        assert_eq!(budget, Some(Work::from_ns(40).ticks_up(NS)));
        self.0.borrow_mut().push((job, "begins"));
    }

    fn next(&mut self, now: Instant, _: &mut Nudges) -> Step {
        let mut told = self.0.borrow_mut();
        let first = told.last().is_some_and(|(_, what)| *what == "begins");
        told.push((now.ticks(), "steps"));
        let (ns, act) = match first {
            true => (0, Act::Continue),
            false => (10, Act::Complete),
        };
        let work = Some(Work::from_ns(ns).ticks_up(NS));
        Step { work, act }
    }
}

#[test]
fn a_body_of_a_periodic_task_begins_and_completes_its_jobs() {
    let mut system = system(1, PolicyKind::Fifo);
    let class = Class::Periodic {
        period: Span::from_ns(100),
        wcet: Work::from_ns(40),
        relative_deadline: Span::from_ns(100),
    };
    system.tasks = vec![Task::new("jobs", CpuId(0), class)];
    let told = Told::default();
    let body: Box<dyn Body> = Box::new(Jobs(Rc::clone(&told)));
    let tapes = run(&system, vec![(TaskId(0), body)], 200);
    let expected = [
        (0, "begins"),
        (0, "steps"),
        (0, "steps"),
        (1, "begins"),
        (100, "steps"),
        (100, "steps"),
    ];
    assert_eq!(*told.borrow(), expected);
    assert_eq!(tapes[0].responses(0), [10, 10]);
}
