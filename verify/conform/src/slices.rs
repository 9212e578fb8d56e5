//! Slices of time in other hands, ordered by a policy: no time is made, and nobody is lost.
//!
//! Two schedulers with servers and one without, all ordered by policies of the same make. They and
//! the holders of slices delegate, transfer, bind threads, unbind them and take back at random. The
//! books here are kept from the outside: of the tree they read where a thread is at home, and of
//! each decision the thread that runs.

use std::collections::BTreeMap;

use punctual_kern::{
    Capacity, Constraint, Event, Grant, Next, NoSink, NodeId, NodeTerms, Policy, Request, Shard,
    Tree,
};
use punctual_model::{Class, Instant, Priority, Server, ServerKind, Span, ThreadId, Trust, Work};

use crate::dice::Dice;

/// All amounts are so many ticks, and an entry comes after each.
const UNIT: u64 = 100;
/// Units of a history, and those in which everybody has to end his job afterwards.
const UNITS: u64 = 120;
const AFTERWARDS: u64 = 400;

/// How often what was done, in all histories.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sliced {
    /// Slices that were delegated, also from slices.
    pub delegated: u64,
    /// Threads that were bound to one.
    pub bound: u64,
    /// Slices that were taken back.
    pub taken_back: u64,
    /// Loans between siblings, slices among them.
    pub transferred: u64,
    /// Units that threads executed on slices.
    pub executed: u64,
}

/// The work of a scheduler or slice, and its loans, in ticks.
#[derive(Debug, Default)]
struct Account {
    budget: u64,
    period: u64,
    executed: u64,
    in_period: BTreeMap<u64, u64>,
    lent: u64,
    borrowed: u64,
}

struct World<P> {
    shard: Shard<P>,
    now: u64,
    accounts: BTreeMap<NodeId, Account>,
    /// All that may ask, and those of them that are slices.
    nodes: Vec<NodeId>,
    slices: Vec<NodeId>,
    done: Sliced,
}

/// Draws `histories` of delegations under policies of this make. Equal seeds make equal histories.
///
/// # Errors
/// In words: a scheduler or a slice has executed more than it has, or a ready thread never goes on.
pub fn check_slices<P: Policy>(
    make: impl Fn(usize) -> P,
    histories: u64,
) -> Result<Sliced, String> {
    let mut done = Sliced::default();
    for seed in 0..histories {
        let mut dice = Dice::new(seed);
        let mut world = World::new(&make).ok_or("the system cannot be built")?;
        let told = |what: String| format!("history {seed}: {what}");
        while world.now < UNITS * UNIT {
            world.ask(&mut dice);
            let _ran = world.pass().map_err(told)?;
        }
        world.finish().map_err(told)?;
        let of = world.done;
        done.delegated += of.delegated;
        done.bound += of.bound;
        done.taken_back += of.taken_back;
        done.transferred += of.transferred;
        done.executed += of.executed;
    }
    Ok(done)
}

fn id(index: u32) -> ThreadId {
    ThreadId::new(index, 0)
}

fn terms(supply: Grant, priority: u32, receiver: Option<NodeId>) -> NodeTerms {
    NodeTerms {
        supply,
        priority: Priority::new(priority),
        order: priority,
        trust: Trust::Inline,
        quota: None,
        receiver,
    }
}

fn server(budget: u64, period: u64) -> Grant {
    Grant::Server(Server {
        kind: ServerKind::Deferrable,
        budget: Work::from_ticks(budget * UNIT),
        period: Span::from_ticks(period * UNIT),
    })
}

impl<P: Policy> World<P> {
    /// Schedulers with 4 and 2 of each 10 units, and one without a server. Each has a thread, and
    /// so has the CPU's own; each thread has one job.
    fn new(make: &impl Fn(usize) -> P) -> Option<World<P>> {
        let capacity = Capacity {
            nodes: 9,
            ..Capacity::for_threads(4)
        };
        let policy = || make(capacity.entities());
        let mut tree = Tree::new(capacity, policy());
        let mut accounts = BTreeMap::new();
        for (priority, budget) in [(9, Some(4)), (8, Some(2)), (7, None)] {
            let supply = budget.map_or(Grant::Shared, |budget| server(budget, 10));
            let node = tree.add(NodeId::ROOT, policy(), terms(supply, priority, None));
            open(&mut accounts, node.ok()?, supply);
        }
        // Places for slices.
        while tree.add_spare(policy()).is_ok() {}
        let mut shard = Shard::new(tree);
        for thread in 0..4_u16 {
            let constraint = Constraint {
                class: Class::Periodic {
                    period: Span::from_ticks(1 << 40),
                    wcet: Work::from_ticks(1 << 39),
                    relative_deadline: Span::from_ticks(1 << 40),
                },
                priority: Priority::new(1),
                order: u32::from(thread),
                ..Constraint::default()
            };
            let home = NodeId::new((thread + 1) % 4, 0);
            let _ = shard.attach_to(home, constraint).ok()?;
        }
        Some(World {
            shard,
            now: 0,
            accounts,
            nodes: (0..4).map(|place| NodeId::new(place, 0)).collect(),
            slices: Vec::new(),
            done: Sliced::default(),
        })
    }

    fn enter(&mut self, event: Event) -> (Next, bool) {
        let now = Instant::from_ticks(self.now);
        let decision = self.shard.handle(now, event, &mut NoSink);
        (decision.next, decision.refused.is_none())
    }

    /// Up to two operations, by anybody, on anybody.
    fn ask(&mut self, dice: &mut Dice) {
        for _ in 0..dice.below(3) {
            let (mut by, mut to) = (self.any(dice), self.any(dice));
            let thread = id(dice.small(4));
            let kind = dice.below(5);
            // Else hardly anybody binds a thread of his own to a slice of his own.
            if kind == 1
                && let Some(&slice) = self.slices.last()
                && let Some(receiver) = self.shard.tree().receiver(slice)
                && !dice.once_in(4)
            {
                (by, to) = (receiver, slice);
            }
            let work = Work::from_ticks((1 + dice.below(2)) * UNIT);
            let budget = 1 + dice.below(3);
            let period = [5, 10, 20][usize::from(dice.once_in(2)) + usize::from(dice.once_in(2))];
            let given = terms(server(budget, period), 1 + dice.small(8), Some(to));
            let request = match kind {
                0 => Request::Promote(given),
                1 => Request::Grant { thread, to },
                2 => Request::Revoke { thread },
                // Schedulers stay.
                3 if self.slices.contains(&to) => Request::Demote(to),
                3 => continue,
                _ => Request::Lend { to, work },
            };
            if self.enter(Event::Manage { by, request }).1 {
                self.book((by, request));
            }
        }
    }

    fn any(&self, dice: &mut Dice) -> NodeId {
        let many = u64::try_from(self.nodes.len()).unwrap_or(u64::MAX);
        let place = usize::try_from(dice.below(many)).unwrap_or(0);
        self.nodes[place]
    }

    /// Something was done.
    fn book(&mut self, (by, request): (NodeId, Request)) {
        match request {
            Request::Promote(terms) => {
                if let Some(made) = self.shard.last_promoted() {
                    open(&mut self.accounts, made, terms.supply);
                    self.nodes.push(made);
                    self.slices.push(made);
                    self.done.delegated += 1;
                }
            }
            Request::Lend { to, work } => {
                let lender = self.accounts.entry(by).or_default();
                lender.lent += work.ticks();
                let borrower = self.accounts.entry(to).or_default();
                borrower.borrowed += work.ticks();
                self.done.transferred += 1;
            }
            Request::Grant { to, .. } => self.done.bound += u64::from(self.slices.contains(&to)),
            Request::Demote(_) => self.done.taken_back += 1,
            _ => {}
        }
    }

    /// One unit passes: all schedulers above the thread that executes in it pay.
    fn pass(&mut self) -> Result<Option<ThreadId>, String> {
        let (next, _) = self.enter(Event::Tick);
        let now = self.now;
        self.now += UNIT;
        let Next::Thread(thread) = next else {
            return Ok(None);
        };
        let tree = self.shard.tree();
        let home = tree.home(thread).ok_or("a thread without a home runs")?;
        self.done.executed += u64::from(self.slices.contains(&home));
        for at in core::iter::successors(Some(home), |&at| tree.parent(at)) {
            let Some(account) = self.accounts.get_mut(&at) else {
                continue;
            };
            let period = now / account.period;
            let in_period = account.in_period.entry(period).or_default();
            *in_period += UNIT;
            account.executed += UNIT;
            // Whatever came before: one budget per period, and what siblings went without.
            let most = account.budget + account.borrowed;
            let all = (period + 1) * account.budget + account.borrowed;
            if *in_period > most || account.executed + account.lent > all {
                return Err(format!("{at:?} has made time at {now}: {account:?}"));
            }
        }
        Ok(Some(thread))
    }

    /// From now on each job ends as soon as its thread runs.
    fn finish(&mut self) -> Result<(), String> {
        let mut waits: Vec<ThreadId> = (0..4).map(id).collect();
        for _ in 0..AFTERWARDS {
            if let Some(thread) = self.pass()? {
                waits.retain(|other| *other != thread);
                let _ = self.enter(Event::Complete);
            }
            if waits.is_empty() {
                return Ok(());
            }
        }
        Err(format!("{waits:?} wait for ever"))
    }
}

fn open(accounts: &mut BTreeMap<NodeId, Account>, node: NodeId, supply: Grant) {
    if let Grant::Server(server) = supply {
        let account = Account {
            budget: server.budget.ticks(),
            period: server.period.ticks(),
            ..Account::default()
        };
        let _ = accounts.insert(node, account);
    }
}
