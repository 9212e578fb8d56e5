//! Random histories of trees in virtual time: no thread that was admitted is ever late.
//!
//! The core runs as it would on a platform that is always on time, and every job executes as long
//! as it may. Background work without an end stands at many homes, so that no budget is ever left.

use punctual_generate::Random;
use punctual_kern::{Decision, Event, Grant as Supplied, Next, NoSink, NodeId, NodeTerms, Request};
use punctual_kern::{Shard, State as Standing};
use punctual_model::{
    Cpu, Frequency, Instant, Machine, Ns, PolicyKind, Priority, Scheduler, Server, ServerKind,
    Span, Supply, System, ThreadId, Trust, Work,
};
use punctual_policy::AnyPolicy;
use punctual_tables::Tables;
use std::sync::Arc;

use super::{Admission, CpuId, Grant, NotAdmitted, Promises};
use crate::constraint::Constraint;

const FIXED: PolicyKind<Ns> = PolicyKind::FixedPriority { preemptive: true };
const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// A thread with a guarantee.
struct Admitted {
    name: String,
    id: ThreadId,
    grant: Grant,
    wcet: Work,
}

struct World {
    random: Random,
    shard: Shard<AnyPolicy>,
    decision: Decision,
    now: Instant,
    admission: Admission,
    promises: Arc<Promises>,
    admitted: Vec<Admitted>,
    nodes: Vec<NodeId>,
    root: PolicyKind<Ns>,
    /// For messages.
    history: Vec<String>,
    /// How often each request was done.
    done: [u32; 10],
    jobs: u32,
}

impl World {
    fn new(seed: u64, root: PolicyKind<Ns>) -> World {
        let cpu = Cpu {
            name: "0".to_owned(),
            host: None,
            policy: root,
        };
        let system = System {
            cpus: vec![cpu],
            ..System::default()
        };
        let mut tables = Tables::new(&system, Frequency::NANOSECONDS);
        tables.cpus[0].make_room(40, 6);
        let mut shard = tables.cpus[0].build(AnyPolicy::new).expect("tables");
        let promises: Arc<Promises> = Arc::default();
        let admission = Admission::new(root, Machine::default(), Arc::clone(&promises));
        World {
            random: Random::at(seed, &[37]),
            decision: shard.handle(Instant::ZERO, Event::Tick, &mut NoSink),
            shard,
            now: Instant::ZERO,
            admission,
            promises,
            admitted: Vec::new(),
            nodes: vec![NodeId::ROOT],
            root,
            history: Vec::new(),
            done: [0; 10],
            jobs: 0,
        }
    }

    fn ns(&self) -> Instant<Ns> {
        Instant::from_ns(self.now.ticks())
    }

    fn enter(&mut self, event: Event) -> bool {
        self.decision = self.shard.handle(self.now, event, &mut NoSink);
        self.nobody_is_late();
        self.decision.refused.is_none()
    }

    /// Runs until an instant.
    fn run(&mut self, until: Instant) {
        while self.now < until {
            let done = self.running().map(|(thread, left)| {
                let done = self.now.saturating_add(left.as_span());
                (done, thread)
            });
            let armed = self.decision.arm.unwrap_or(Instant::MAX).max(self.now);
            let next = done.map_or(armed, |(done, _)| done.min(armed)).min(until);
            self.now = next;
            match done {
                Some((at, thread)) if at == next => self.complete(thread),
                _ => {
                    let _ = self.enter(Event::Tick);
                }
            }
        }
    }

    /// The guaranteed thread that runs, and what its job has left to execute.
    fn running(&self) -> Option<(usize, Work)> {
        let Next::Thread(id) = self.decision.next else {
            return None;
        };
        let thread = self.admitted.iter().position(|t| t.id == id)?;
        let job = self.shard.job(id)?;
        Some((
            thread,
            self.admitted[thread].wcet.saturating_sub(job.received),
        ))
    }

    fn complete(&mut self, thread: usize) {
        let Admitted { id, name, .. } = &self.admitted[thread];
        let job = self.shard.job(*id).expect("it runs");
        let response = Span::from_ns(self.now.since(job.arrival).ticks());
        let promises = self.promises.read();
        let promise = promises.iter().find(|promise| promise.name == *name);
        let bound = promise.and_then(|promise| promise.response_bound);
        let kept = bound.is_some_and(|bound| response <= bound);
        assert!(
            kept,
            "{name}: {response:?}, promised {bound:?}\n{}",
            self.history.join("\n")
        );
        self.jobs += 1;
        let _ = self.enter(Event::Complete);
    }

    fn nobody_is_late(&self) {
        for thread in &self.admitted {
            let job = self.shard.job(thread.id);
            let late = job.is_some_and(|job| job.absolute_deadline < self.now);
            assert!(
                !late,
                "{} is late\n{}",
                thread.name,
                self.history.join("\n")
            );
        }
    }

    fn told(&mut self, kind: usize, what: String) {
        self.done[kind] += 1;
        self.history.push(format!("{}: {what}", self.now.ticks()));
    }

    fn node(&mut self) -> NodeId {
        *self.random.pick(&self.nodes).expect("the root")
    }

    fn spawn(&mut self) {
        let home = self.node();
        let period = Span::from_ns(self.random.within(5, 60) * MS);
        let wcet = Work::from_ns(self.random.within(100, 2_500) * US);
        let priority = u32::try_from(self.random.below(8)).expect("small");
        let mut constraint = Constraint::periodic(period, wcet).priority(priority);
        if self.random.happens(400) {
            let deadline = self.random.within(period.as_ns() / 2, period.as_ns());
            constraint = constraint.deadline(Span::from_ns(deadline));
        }
        let name = format!("t{}", self.history.len());
        let now = self.ns();
        let Ok(grant) = self.admission.add((&name, home), &constraint, now) else {
            return;
        };
        let in_core = constraint
            .in_core(Work::ZERO)
            .in_ticks(Frequency::NANOSECONDS);
        let (by, request) = (
            NodeId::ROOT,
            Request::Create {
                home,
                constraint: in_core,
            },
        );
        self.told(0, format!("{name} in {home:?}: {constraint:?}"));
        if self.enter(Event::Manage { by, request }) {
            let id = self.shard.last_created().expect("created");
            let wcet = Work::from_ticks(wcet.as_ns());
            self.admitted.push(Admitted {
                name,
                id,
                grant,
                wcet,
            });
        } else {
            self.admission.withdraw(grant);
        }
    }

    /// Background work that never ends.
    fn hog(&mut self) {
        let home = self.node();
        let hog = Constraint::aperiodic(3).in_core(Work::ZERO);
        let constraint = hog.in_ticks(Frequency::NANOSECONDS);
        let (by, request) = (NodeId::ROOT, Request::Create { home, constraint });
        if self.enter(Event::Manage { by, request }) {
            self.told(1, format!("a hog in {home:?}"));
        }
    }

    fn promote(&mut self) {
        let by = self.node();
        let period = self.random.within(4, 30) * MS;
        let receiver = self.random.happens(500).then(|| self.node());
        let receiver = receiver.filter(|receiver| *receiver != by);
        let share = if receiver.is_some() { 5 } else { 1 };
        let server = Server {
            kind: *self.random.pick(&ServerKind::ALL).expect("some"),
            // Slices are small, or there are few.
            budget: Work::from_ns(period * self.random.within(5, 45) / share / 100),
            period: Span::from_ns(period),
        };
        let shared = receiver.is_none() && self.random.happens(150);
        let priority = Priority::new(u32::try_from(self.random.below(8)).expect("small"));
        let scheduler = Scheduler {
            name: String::new(),
            cpu: CpuId(0),
            parent: None,
            policy: FIXED,
            priority,
            supply: if shared {
                Supply::Shared
            } else {
                Supply::Server(server)
            },
            trust: Trust::Inline,
            quota: None,
            receiver: None,
            fallback: None,
            code: None,
        };
        let in_ticks = server.in_ticks(Frequency::NANOSECONDS);
        let request = Request::Promote(NodeTerms {
            supply: if shared {
                Supplied::Shared
            } else {
                Supplied::Server(in_ticks)
            },
            priority,
            order: u32::MAX,
            trust: Trust::Inline,
            quota: None,
            receiver,
        });
        let now = self.ns();
        let aside = Admission::new(self.root, Machine::default(), Arc::default());
        let mut admission = core::mem::replace(&mut self.admission, aside);
        let made = admission.promote(by, ("s", scheduler, receiver), now, || {
            match self.enter(Event::Manage { by, request }) {
                true => Ok(self.shard.last_promoted().expect("promoted")),
                false => Err(NotAdmitted::NoScheduler(by)),
            }
        });
        self.admission = admission;
        if let Ok(node) = made {
            self.nodes.push(node);
            let kind = if receiver.is_some() { 7 } else { 2 };
            self.told(kind, format!("{node:?} below {by:?}: {request:?}"));
        }
    }

    fn moves(&mut self) {
        if self.admitted.is_empty() {
            return;
        }
        let place = self.random.index(self.admitted.len());
        let (id, grant) = (self.admitted[place].id, self.admitted[place].grant);
        let (by, other) = (self.node(), self.node());
        let holder = self.shard.tree().receiver(other);
        let down = holder.is_some() || self.random.happens(500);
        // A slice is its holder's to bind threads to.
        let by = holder.unwrap_or(by);
        let home = if down { other } else { by };
        let request = match down {
            true => Request::Grant {
                thread: id,
                to: home,
            },
            false => Request::Revoke { thread: id },
        };
        let now = self.ns();
        let Ok(Some(moved)) = self.admission.moves(grant, (by, home), now) else {
            return;
        };
        // What is due now comes first, as it does in a late entry.
        let _ = self.enter(Event::Tick);
        if self.shard.job(id).is_none() && self.enter(Event::Manage { by, request }) {
            self.admission.accept(Some(moved), now);
            let is_bound = self.shard.tree().receiver(home).is_some();
            let kind = if is_bound { 8 } else { 3 };
            let name = &self.admitted[place].name;
            self.told(kind, format!("{name} by {by:?}: {request:?}"));
        }
    }

    fn demote(&mut self) {
        let (by, node) = (self.node(), self.node());
        let now = self.ns();
        let Ok(Some(moved)) = self.admission.leaves((by, node), now) else {
            return;
        };
        let _ = self.enter(Event::Tick);
        let tree = self.shard.tree();
        let mut inside = self.admitted.iter().filter(|t| tree.falls_with(t.id, node));
        if inside.any(|t| self.shard.job(t.id).is_some()) {
            return;
        }
        let request = Request::Demote(node);
        if self.enter(Event::Manage { by, request }) {
            self.admission.accept(Some(moved), now);
            let tree = self.shard.tree();
            self.nodes
                .retain(|node| *node == NodeId::ROOT || tree.parent(*node).is_some());
            self.told(4, format!("{node:?} ended by {by:?}"));
        }
    }

    /// The first of all pairs that can.
    fn lend(&mut self) {
        let count = self.nodes.len();
        let first = self.random.index(count * count);
        let work = self.random.within(50, 1_500) * US;
        for pair in (first..count * count).chain(0..first) {
            let (by, to) = (self.nodes[pair / count], self.nodes[pair % count]);
            let now = self.ns();
            let lends = self.admission.lends((by, to), Work::from_ns(work), now);
            let Ok(Some(moved)) = lends else { continue };
            let request = Request::Lend {
                to,
                work: Work::from_ticks(work),
            };
            if self.enter(Event::Manage { by, request }) {
                self.admission.accept(Some(moved), now);
                return self.told(5, format!("{by:?} lends {to:?} {work}"));
            }
        }
    }

    fn replace(&mut self) {
        let node = self.node();
        let edf = PolicyKind::EarliestDeadlineFirst;
        let turns = PolicyKind::RoundRobin {
            timeslice: Span::from_ms(1),
        };
        let unpreempted = PolicyKind::FixedPriority { preemptive: false };
        let any = [FIXED, FIXED, edf, edf, turns, unpreempted];
        let policy = *self.random.pick(&any).expect("some");
        let Ok(moved) = self.admission.reorders(node, (policy, 1), self.ns()) else {
            return;
        };
        let _ = self.enter(Event::Tick);
        let rests = |grant: &Grant| {
            let mut threads = self.admitted.iter().filter(|thread| thread.grant == *grant);
            threads.all(|thread| self.shard.job(thread.id).is_none())
        };
        if !moved.threads.iter().all(|(grant, _)| rests(grant)) {
            return;
        }
        let kind = policy.in_ticks(Frequency::NANOSECONDS);
        let room = self.shard.tree().capacity().entities();
        drop(self.shard.unshelve(node));
        let _ = self.shard.shelve(node, AnyPolicy::new(kind, room, &[]));
        let request = Request::Replace { node, policy: kind };
        if self.enter(Event::Manage { by: node, request }) {
            assert!(!self.shard.is_replacing(), "all fits into one entry");
            self.admission.accept(Some(moved), self.ns());
            self.told(9, format!("{node:?} orders by {policy:?}"));
        }
    }

    fn end(&mut self) {
        if self.admitted.is_empty() {
            return;
        }
        let place = self.random.index(self.admitted.len());
        let Admitted {
            id, grant, name, ..
        } = self.admitted.swap_remove(place);
        let now = self.ns();
        self.admission.remove(grant, now);
        let _ = self.enter(Event::Kill(id));
        assert_eq!(self.shard.state(id), Standing::Dead);
        self.told(6, format!("{name} ends"));
    }

    fn step(&mut self) {
        let pause = self.random.within(10, 6_000) * US;
        let until = self.now.saturating_add(Span::from_ticks(pause));
        self.run(until);
        match self.random.below(23) {
            0..6 => self.spawn(),
            6 => self.hog(),
            7..10 => self.promote(),
            10..15 => self.moves(),
            15 => self.demote(),
            16..19 => self.lend(),
            19..22 => self.replace(),
            _ => self.end(),
        }
    }
}

#[test]
fn no_history_of_a_tree_makes_an_admitted_thread_late() {
    let mut done = [0_u32; 10];
    let mut jobs = 0;
    for seed in 0..HISTORIES {
        let edf = PolicyKind::EarliestDeadlineFirst;
        let root = if seed % 3 == 2 { edf } else { FIXED };
        let mut world = World::new(seed, root);
        world.history.push(format!("seed {seed}"));
        for _ in 0..60 {
            world.step();
        }
        world.run(world.now.saturating_add(Span::from_ticks(200 * MS)));
        jobs += world.jobs;
        for (all, one) in done.iter_mut().zip(world.done) {
            *all += one;
        }
    }
    // Each request was done, and the CPU had much to do.
    println!("{done:?}, {jobs} jobs");
    assert!(done.iter().all(|times| *times >= 1), "{done:?}");
    assert!(jobs > 300, "{jobs}");
}

/// Forty were drawn once, with 3,687 jobs of 452 threads: none was late.
const HISTORIES: u64 = 8;
