//! Resources held, urgency inherited and budget lent, across the replacement of a policy.
//!
//! Jobs, budgets, locks and loans are the core's. So the entry that replaces a policy by another of
//! its make may change who runs, and nothing else. A thread that waits for a lock gets it
//! afterwards.

use punctual_kern::{
    Capacity, Constraint, Event, Grant, JobView, Next, NoSink, NodeId, NodeTerms, Policy, Request,
    ResourceTerms, Shard, State, Tree, UseTerms, WaitOrder,
};
use punctual_model::{
    AtBudgetEnd, Class, Instant, Mode, PolicyKind, Priority, Protocol, ResourceId, ServerKind,
    Span, ThreadId, Trust, Work,
};

use crate::dice::Dice;

const THREADS: u32 = 6;
const LABEL: PolicyKind = PolicyKind::FixedPriority { preemptive: true };

/// How often a policy was replaced, and what was held, waited for or lent at that instant.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Held {
    /// Replacements that were done.
    pub replaced: u64,
    /// While somebody held a declared resource.
    pub held: u64,
    /// While somebody waited for one, or for a lock of a runtime.
    pub awaited: u64,
    /// While budget was lent.
    pub lent: u64,
}

/// Two servers under one policy, each with three threads under another of its make. Some lock
/// resources, wait for each other's locks, and their schedulers lend each other budget.
struct World<P> {
    shard: Shard<P>,
    now: Instant,
    /// The runtime's lock: its holder, and the threads that wait for it.
    holder: Option<ThreadId>,
    waiters: Vec<ThreadId>,
    running: Option<ThreadId>,
    arm: Option<Instant>,
}

/// The part of a thread that no policy may change.
#[derive(PartialEq, Debug)]
struct Kept {
    /// Its job, and what is lent.
    core: (ThreadId, Option<JobView>, Option<Work>),
    /// Whether it runs or waits, and whether it holds its resource.
    stands: (State, bool),
    /// Before whom it goes where somebody waits, by what it inherits, too.
    before: Vec<bool>,
}

/// Replaces policies of this make by others of it, in the midst of `histories` random histories
/// with locks and loans. Equal seeds make equal histories.
///
/// # Errors
/// In words: the replacement changed something, or somebody waits for ever.
pub fn check_held<P: Policy>(make: impl Fn(usize) -> P, histories: u64) -> Result<Held, String> {
    let mut held = Held::default();
    for seed in 0..histories {
        let mut dice = Dice::new(seed);
        let mut world = World::new(&make, &mut dice).ok_or("the system cannot be built")?;
        for _ in 0..400 {
            world.step(&mut dice);
            if dice.once_in(4) {
                world
                    .replace(&make, &mut dice, &mut held)
                    .map_err(|what| format!("history {seed}: {what}"))?;
            }
        }
        world
            .finish()
            .map_err(|what| format!("history {seed}: {what}"))?;
    }
    Ok(held)
}

fn id(index: u32) -> ThreadId {
    ThreadId::new(index, 0)
}

fn server(dice: &mut Dice) -> NodeTerms {
    let period = 100 + dice.below(100);
    NodeTerms {
        supply: Grant::Server(punctual_model::Server {
            kind: ServerKind::Deferrable,
            budget: Work::from_ticks(period / 3),
            period: Span::from_ticks(period),
        }),
        priority: Priority::new(dice.small(5)),
        order: dice.small(2),
        trust: Trust::Inline,
        quota: None,
        receiver: None,
    }
}

impl<P: Policy> World<P> {
    fn new(make: &impl Fn(usize) -> P, dice: &mut Dice) -> Option<World<P>> {
        let capacity = Capacity {
            nodes: 2,
            ..Capacity::for_threads(THREADS as usize)
        };
        let policy = || make(capacity.entities());
        let mut tree = Tree::new(capacity, policy());
        for _ in 0..2 {
            let _ = tree.add(NodeId::ROOT, policy(), server(dice)).ok()?;
        }
        let mut shard = Shard::new(tree);
        shard.set_wait_order(WaitOrder::Priority);
        for thread in 0..THREADS {
            let period = 60 + dice.below(300);
            let mut constraint = Constraint {
                class: Class::Periodic {
                    period: Span::from_ticks(period),
                    wcet: Work::from_ticks(5 + dice.below(20)),
                    relative_deadline: Span::from_ticks(period),
                },
                ..Constraint::default()
            };
            constraint.priority = Priority::new(dice.small(9));
            constraint.phase = Span::from_ticks(dice.below(period));
            constraint.order = thread;
            let home = NodeId::new(1 + u16::from(thread >= THREADS / 2), 0);
            let _ = shard.attach_to(home, constraint).ok()?;
        }
        for (number, protocol) in [Protocol::Inheritance, Protocol::ImmediateCeiling]
            .into_iter()
            .enumerate()
        {
            let resource = shard.add_resource(ResourceTerms {
                resource: ResourceId(u16::try_from(number).ok()?),
                protocol,
                at_budget_end: AtBudgetEnd::Overrun,
                wait_order: WaitOrder::Priority,
                ceiling: Priority::new(9),
                floor: Span::from_ticks(60),
                real_time: true,
                common: NodeId::new(1 + u16::try_from(number).ok()?, 0),
                spans_schedulers: false,
            });
            let first = resource * (THREADS / 2);
            for thread in first..first + THREADS / 2 {
                let terms = UseTerms {
                    resource,
                    mode: Mode::Exclusive,
                    length: Work::from_ticks(20),
                    priority: Priority::new(9),
                };
                shard.declare_use(id(thread), terms).ok()?;
            }
        }
        Some(World {
            shard,
            now: Instant::ZERO,
            holder: None,
            waiters: Vec::new(),
            running: None,
            arm: None,
        })
    }

    fn enter(&mut self, event: Event) -> bool {
        let decision = self.shard.handle(self.now, event, &mut NoSink);
        self.arm = decision.arm;
        self.running = match decision.next {
            Next::Thread(thread) => Some(thread),
            _ => None,
        };
        decision.refused.is_none()
    }

    fn pass(&mut self, ticks: u64) {
        let ticks = self
            .arm
            .map_or(ticks, |at| ticks.min(at.since(self.now).ticks()));
        self.now = self.now.saturating_add(Span::from_ticks(ticks));
        let _ = self.enter(Event::Tick);
    }

    /// The lock of the runtime goes to the next who waits for it.
    fn hand_over(&mut self, from: ThreadId) {
        self.holder = None;
        if !self.waiters.is_empty() {
            let to = self.waiters.remove(0);
            let key = 7;
            let _ = self.enter(Event::HandOver { key, from, to });
            self.holder = Some(to);
        }
    }

    fn resource_of(thread: ThreadId) -> u32 {
        u32::from(thread.index() >= THREADS as usize / 2)
    }

    fn step(&mut self, dice: &mut Dice) {
        self.pass(dice.below(8));
        let Some(me) = self.running else {
            return self.pass(1 + dice.below(40));
        };
        let resource = World::<P>::resource_of(me);
        match dice.below(10) {
            0..3 if !self.shard.holds(me, resource) => {
                let (mode, until) = (Mode::Exclusive, None);
                let _ = self.enter(Event::Lock {
                    resource,
                    mode,
                    until,
                });
            }
            3 if self.shard.holds(me, resource) => {
                let _ = self.enter(Event::Unlock { resource });
            }
            4 | 5 if !self.shard.holds(me, resource) => match self.holder {
                None => self.holder = Some(me),
                Some(holder) if holder == me => self.hand_over(me),
                Some(holder) => {
                    let (key, until) = (7, None);
                    if self.enter(Event::BlockOn { holder, key, until }) {
                        self.waiters.push(me);
                    }
                }
            },
            6 => {
                let (by, to) = match dice.once_in(2) {
                    true => (NodeId::new(1, 0), NodeId::new(2, 0)),
                    false => (NodeId::new(2, 0), NodeId::new(1, 0)),
                };
                let work = Work::from_ticks(1 + dice.below(10));
                let request = Request::Lend { to, work };
                let _ = self.enter(Event::Manage { by, request });
            }
            7 if self.holder != Some(me) => {
                let _ = self.enter(Event::Complete);
            }
            _ => {}
        }
    }

    /// All that is the core's, by thread.
    fn snapshot(&self) -> Vec<Kept> {
        let lent = self.shard.tree().lent_below(NodeId::ROOT);
        let of = |thread: ThreadId| Kept {
            core: (thread, self.shard.job(thread), lent),
            stands: (
                self.shard.state(thread),
                self.shard.holds(thread, World::<P>::resource_of(thread)),
            ),
            before: (0..THREADS)
                .map(|other| self.shard.goes_before(thread, id(other)))
                .collect(),
        };
        (0..THREADS).map(id).map(of).collect()
    }

    fn replace(
        &mut self,
        make: &impl Fn(usize) -> P,
        dice: &mut Dice,
        held: &mut Held,
    ) -> Result<(), String> {
        let node = NodeId::new(u16::try_from(dice.below(3)).unwrap_or(0), 0);
        // What is due now comes first.
        let _ = self.enter(Event::Tick);
        let before = self.snapshot();
        drop(self.shard.unshelve(node));
        let entities = self.shard.tree().capacity().entities();
        let _ = self.shard.shelve(node, make(entities));
        let request = Request::Replace {
            node,
            policy: LABEL,
        };
        if !self.enter(Event::Manage { by: node, request }) {
            return Err(format!("{node:?} is not replaced"));
        }
        let after = self.snapshot();
        // Another one, chosen now, may get or begin to wait for a resource that it has asked for.
        let same = before.iter().zip(&after).all(|(b, a)| b.stands == a.stands);
        for (before, after) in before.iter().zip(&after) {
            let kept = before.core == after.core && (!before.stands.1 || after.stands.1);
            if !kept || (same && before != after) {
                return Err(format!("{before:?} became {after:?}"));
            }
        }
        let lent = self.shard.tree().lent_below(NodeId::ROOT);
        let is_held = |thread: u32| {
            self.shard
                .holds(id(thread), World::<P>::resource_of(id(thread)))
        };
        held.replaced += 1;
        held.held += u64::from((0..THREADS).any(is_held));
        held.awaited += u64::from(!self.waiters.is_empty());
        held.lent += u64::from(lent.is_some_and(|lent| !lent.is_zero()));
        Ok(())
    }

    /// Everybody gives back what he holds: nobody may be left who waits for it.
    fn finish(&mut self) -> Result<(), String> {
        for _ in 0..20_000 {
            let Some(me) = self.running else {
                self.pass(u64::MAX);
                continue;
            };
            let resource = World::<P>::resource_of(me);
            if self.holder == Some(me) {
                self.hand_over(me);
            } else if self.shard.holds(me, resource) {
                let _ = self.enter(Event::Unlock { resource });
            } else if self.waiters.is_empty() && self.holder.is_none() {
                return Ok(());
            } else {
                let _ = self.enter(Event::Complete);
            }
        }
        Err(format!("{:?} wait for ever", self.waiters))
    }
}
