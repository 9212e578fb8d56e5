//! The price of what schedulers of a tree ask of the core, and of a child that decides by itself.
//!
//! In the core without the platform, and without the analysis that a program asks before. One grant
//! moves a ready thread into the care of a child; one promotion makes a child on a server; a switch
//! of capabilities is one half of a wake-up and the wait for the next, of two threads on two slices
//! of one giver. A decision on own time is everything from a yield to the other thread: the core
//! lets the child run, which looks, decides and answers, and the core believes it.

use punctual_child::ChildScheduler;
use punctual_kern::{
    Capacity, Constraint, Decision, Event, Grant, Next, NoSink, NodeId, NodeTerms, Request, Shard,
    Tree,
};
use punctual_model::{
    Class, CpuId, Frequency, Instant, PolicyKind, Priority, Server, ServerKind, Span, Task,
    ThreadId, Trust, Work,
};
use punctual_policy::AnyPolicy;
use punctual_rivals::{flips, groups, kernel};

use super::counting::units;
use super::figure::{Bench, Measured, time};
use super::live::place;
use super::switching::rival;

const SAMPLES: u32 = if cfg!(debug_assertions) { 10 } else { 2_000 };
const WARM_UP: u32 = SAMPLES / 10;
/// Threads that are granted in one sample.
const GRANTS: u32 = 32;
/// Children that are promoted in one sample.
const CHILDREN: u16 = 8;
/// Switches and decisions of one sample.
const ROUNDS: u32 = 100;
/// No budget and no period ends.
const LONG: u64 = 1 << 40;

pub(super) fn benches() -> Vec<Bench> {
    let bench = |name, ours: fn() -> Result<Vec<f64>, String>| {
        Bench::in_cycles(name, move || ours().map(Measured::from))
    };
    let inline = || decide(Trust::Inline);
    vec![
        bench("tree.grant", grants)
            .against("sched_setscheduler", move || flips::flips(place()?, 1)),
        bench("tree.promote", promotions).against("cgroup made", rival(groups::make)),
        bench("tree.own_time", || decide(Trust::OwnTime))
            .against("decided by the core", inline)
            .against("sched_yield", rival(kernel::sched_yield))
            .against("futex", rival(kernel::futex_same_cpu)),
        bench("capability.switch", capabilities)
            .against("one scheduler, no capability", || switches(None))
            .against("sched_yield", rival(kernel::sched_yield))
            .against("futex", rival(kernel::futex_same_cpu)),
    ]
}

fn terms(share: u64, priority: u32) -> NodeTerms {
    NodeTerms {
        supply: Grant::Server(Server {
            kind: ServerKind::Deferrable,
            budget: Work::from_ticks(LONG / share),
            period: Span::from_ticks(LONG),
        }),
        priority: Priority::new(priority),
        order: 0,
        trust: Trust::Inline,
        quota: None,
        receiver: None,
    }
}

const FIXED: PolicyKind = PolicyKind::FixedPriority { preemptive: true };

/// A thread with one job, which has come and whose budget nothing exhausts; the first is the most
/// urgent.
fn endless(index: u32) -> Constraint {
    let class = Class::Periodic {
        period: Span::from_ns(LONG),
        wcet: Work::from_ns(LONG),
        relative_deadline: Span::from_ns(LONG),
    };
    let mut task = Task::new("", CpuId(0), class);
    task.priority = Priority::new(u32::MAX - index);
    Constraint::of_task(&task, index).in_ticks(Frequency::NANOSECONDS)
}

/// A shard with a clock.
struct Core {
    shard: Shard<AnyPolicy>,
    now: Instant,
}

impl Core {
    /// Children of the root with these terms, room for so many more, and so many threads in the
    /// last of them (or in the root).
    fn new(
        kind: PolicyKind,
        children: &[NodeTerms],
        spare: u16,
        threads: u32,
    ) -> Result<Core, String> {
        let failed = |refusal| format!("{refusal:?}");
        let mut capacity = Capacity::for_threads(threads as usize);
        capacity.nodes = spare + u16::try_from(children.len()).map_err(|e| e.to_string())?;
        let by = |kind| AnyPolicy::new(kind, capacity.entities(), &[]);
        let policy = || by(kind);
        let mut tree = Tree::new(capacity, by(FIXED));
        let mut home = NodeId::ROOT;
        for terms in children {
            home = tree.add(NodeId::ROOT, policy(), *terms).map_err(failed)?;
        }
        for _ in 0..spare {
            tree.add_spare(policy()).map_err(failed)?;
        }
        let mut shard = Shard::new(tree);
        for index in 0..threads {
            let attached = shard.attach_to(home, endless(index));
            attached.map_err(|error| error.to_string())?;
        }
        let now = Instant::ZERO;
        while shard.handle(now, Event::Tick, &mut NoSink).arm == Some(now) {}
        Ok(Core { shard, now })
    }

    #[inline(always)]
    fn enter(&mut self, event: Event) -> Decision {
        self.now = self.now.saturating_add(Span::from_ticks(50));
        self.shard.handle(self.now, event, &mut NoSink)
    }

    fn ask(&mut self, by: NodeId, request: Request) -> Result<Decision, String> {
        let decision = self.enter(Event::Manage { by, request });
        match decision.refused {
            None => Ok(decision),
            Some(refusal) => Err(format!("{refusal:?}")),
        }
    }
}

/// Samples of a batch whose first are not kept.
fn sampled(mut sample: impl FnMut() -> Result<f64, String>) -> Result<Vec<f64>, String> {
    let mut all = Vec::new();
    for round in 0..WARM_UP + SAMPLES {
        let ns = sample()?;
        if round >= WARM_UP {
            all.push(ns);
        }
    }
    Ok(all)
}

fn grants() -> Result<Vec<f64>, String> {
    let mut core = Core::new(FIXED, &[], 1, GRANTS + 1)?;
    let _ = core.ask(NodeId::ROOT, Request::Promote(terms(1, 9)))?;
    let to = core.shard.last_promoted().ok_or("no child")?;
    let threads = || (0..GRANTS).map(|index| ThreadId::new(index, 0));
    sampled(|| {
        let mut refused = 0;
        let ns = time(GRANTS, || {
            for thread in threads() {
                let request = Request::Grant { thread, to };
                let by = NodeId::ROOT;
                let decision = core.enter(Event::Manage { by, request });
                refused += u32::from(decision.refused.is_some());
            }
        });
        for thread in threads() {
            let _ = core.ask(NodeId::ROOT, Request::Revoke { thread })?;
        }
        (refused == 0)
            .then_some(ns)
            .ok_or_else(|| format!("{refused} grants were refused"))
    })
}

fn promotions() -> Result<Vec<f64>, String> {
    let mut core = Core::new(FIXED, &[], CHILDREN, 2)?;
    sampled(|| {
        let mut made = Vec::with_capacity(CHILDREN.into());
        let ns = time(CHILDREN.into(), || {
            for _ in 0..CHILDREN {
                let request = Request::Promote(terms(64, 9));
                let by = NodeId::ROOT;
                let decision = core.enter(Event::Manage { by, request });
                let node = core.shard.last_promoted();
                made.extend(node.filter(|_| decision.refused.is_none()));
            }
        });
        for &node in &made {
            let _ = core.ask(NodeId::ROOT, Request::Demote(node))?;
        }
        match made.len() == usize::from(CHILDREN) {
            true => Ok(ns),
            false => Err(format!("{} of {CHILDREN} children were made", made.len())),
        }
    })
}

/// Two threads of the second child on slices of the first one.
fn capabilities() -> Result<Vec<f64>, String> {
    switches(Some([9, 8]))
}

/// One half of a wake-up and the wait for the next, of two threads of one child: on slices with
/// these priorities, or on its own supply.
fn switches(slices: Option<[u32; 2]>) -> Result<Vec<f64>, String> {
    let mut core = Core::new(FIXED, &[terms(2, 9), terms(2, 8)], 2, 2)?;
    let [giver, holder] = [1, 2].map(|place| NodeId::new(place, 0));
    let threads = [0, 1].map(|index| ThreadId::new(index, 0));
    for (thread, priority) in threads.into_iter().zip(slices.into_iter().flatten()) {
        let slice = NodeTerms {
            receiver: Some(holder),
            ..terms(8, priority)
        };
        let _ = core.ask(giver, Request::Promote(slice))?;
        let to = core.shard.last_promoted().ok_or("no slice")?;
        let _ = core.ask(holder, Request::Grant { thread, to })?;
    }
    let [urgent, other] = threads;
    let blocked = core.enter(Event::Block { until: None });
    if blocked.next != Next::Thread(other) {
        return Err(format!("{blocked:?}, not {other:?}"));
    }
    sampled(|| {
        let mut switched = 0;
        let rounds = units(ROUNDS);
        let ns = time(2 * rounds, || {
            for _ in 0..rounds {
                let woken = core.enter(Event::Wake(urgent));
                let blocked = core.enter(Event::Block { until: None });
                switched += u32::from(woken.next == Next::Thread(urgent));
                switched += u32::from(blocked.next == Next::Thread(other));
            }
        });
        match switched == 2 * rounds {
            true => Ok(ns),
            false => Err(format!("{switched} of {} switched", 2 * rounds)),
        }
    })
}

/// One yield between two equals of a child that decides there.
fn decide(trust: Trust) -> Result<Vec<f64>, String> {
    let child = NodeTerms {
        trust,
        ..terms(1, 9)
    };
    let order = PolicyKind::RoundRobin {
        timeslice: Span::from_ticks(LONG),
    };
    let mut core = Core::new(order, &[child], 0, 2)?;
    let order = AnyPolicy::new(order, 4, &[]);
    let mut code = ChildScheduler::new(NodeId::new(1, 0), 2, Box::new(order));
    let mut yielded = None;
    let mut settle = move |core: &mut Core, mut next: Next| {
        for _ in 0..4 {
            match next {
                Next::RunChild(_) => {
                    code.look(&core.shard);
                    if let Some(thread) = yielded.take() {
                        code.yield_now(thread);
                    }
                    let pick = code.decide(core.now);
                    next = core.enter(Event::ChildPicked(pick)).next;
                }
                Next::Thread(thread) => {
                    yielded = Some(thread);
                    return Some(thread);
                }
                _ => return None,
            }
        }
        None
    };
    let first = core.enter(Event::Tick).next;
    let mut last = settle(&mut core, first).ok_or("nobody runs")?;
    sampled(|| {
        let mut switched = 0;
        let rounds = units(ROUNDS);
        let ns = time(rounds, || {
            for _ in 0..rounds {
                let next = core.enter(Event::Yield).next;
                let Some(now) = settle(&mut core, next) else {
                    continue;
                };
                switched += u32::from(now != last);
                last = now;
            }
        });
        match switched == rounds {
            true => Ok(ns),
            false => Err(format!("{switched} of {rounds} yields switched")),
        }
    })
}
