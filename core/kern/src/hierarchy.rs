//! The seam to the order of one CPU: one policy, or a tree of schedulers.
//!
//! A [`crate::Shard`] keeps threads, jobs and their budgets. Which of the ready threads runs is the
//! business of its hierarchy: [`crate::OneLevel`] asks one policy (the common case, with nothing in
//! the way), a tree of schedulers walks down from its root. Contract, beyond that of
//! [`crate::Policy`]: of one entry, [`Hierarchy::begin`] comes first, then `charge`, then changes,
//! [`Hierarchy::serve_timers`] before and after the event, and `pick` last.

use punctual_model::{Instant, Priority, ThreadId, Work};

use crate::event::{Next, Refusal};
use crate::manage::{ChildPick, Request};
use crate::node::NodeId;
use crate::policy::Attributes;
use crate::trace::Sink;
use crate::tree::NodeTerms;

/// Which ready set a thread belongs to. Real-time work always goes before background work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Band {
    /// Ordered by the policy.
    RealTime,
    /// Runs when no real-time thread of the same node wants to.
    Background,
}

/// Who runs, and until when that stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "the processor goes to whom the hierarchy chose"]
pub struct Choice {
    /// Who runs.
    pub next: Next,
    /// Ask again at this instant at the latest; `None`: until something happens.
    pub until: Option<Instant>,
}

impl Choice {
    /// Of two instants of which either may not be, the earlier.
    #[inline]
    pub(crate) fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
        match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (one, None) | (None, one) => one,
        }
    }
}

/// Orders the ready threads of one CPU.
pub trait Hierarchy {
    /// How many schedulers it has, the root included.
    fn nodes(&self) -> usize {
        1
    }

    /// Whether it is one policy and nothing else: no supply, no timers, nobody parked, and nothing
    /// that a sink would hear of.
    #[inline]
    fn is_one_level(&self) -> bool {
        false
    }

    /// An entry begins: everything before `now` is over.
    #[inline]
    fn begin(&mut self, now: Instant) {
        let _ = now;
    }

    /// A thread comes into the care of the scheduler `home`, not ready yet.
    ///
    /// # Errors
    /// No such scheduler, or a quota is exhausted; nothing has changed then.
    fn attach(&mut self, thread: ThreadId, home: NodeId) -> Result<(), Refusal>;

    /// A thread leaves for good; it is not ready.
    fn detach(&mut self, thread: ThreadId);

    /// A thread becomes ready. It has wanted the processor since `since`, at or before `now`, which
    /// is earlier when a timer was served late.
    fn wake(
        &mut self,
        now: Instant,
        since: Instant,
        thread: ThreadId,
        attributes: &Attributes,
        band: Band,
    );

    /// A thread is no longer ready.
    fn block(&mut self, now: Instant, thread: ThreadId, band: Band);

    /// A ready thread's attributes have changed.
    fn update(&mut self, thread: ThreadId, attributes: &Attributes, band: Band);

    /// A ready thread goes on with a new budget, whose attributes these are.
    fn renew(&mut self, thread: ThreadId, attributes: &Attributes, band: Band);

    /// The running thread lets others of the same urgency go first.
    fn yield_now(&mut self, thread: ThreadId, band: Band);

    /// Who runs when the running thread gives way, as [`crate::Policy::heir`] says; `None`:
    /// [`Hierarchy::go_on`] will tell.
    #[inline]
    fn heir(&self, thread: ThreadId, band: Band) -> Option<ThreadId> {
        let _ = (thread, band);
        None
    }

    /// A thread that has an heir gives way to it.
    #[inline]
    fn pass_on(&mut self, thread: ThreadId, band: Band) {
        self.yield_now(thread, band);
    }

    /// The running thread has executed for this long, up to `now`.
    fn charge<S: Sink>(
        &mut self,
        now: Instant,
        thread: ThreadId,
        band: Band,
        work: Work,
        sink: &mut S,
    );

    /// The scheduler `child` has spent this long on deciding, up to `now`.
    fn charge_child<S: Sink>(&mut self, now: Instant, child: NodeId, work: Work, sink: &mut S) {
        let _ = (now, child, work, sink);
    }

    /// What most entries consist of, in one call: the running thread of this band has executed
    /// `work`, lets others of the same urgency go first if it `gives_way`, and who runs then.
    #[inline]
    fn go_on<S: Sink>(
        &mut self,
        now: Instant,
        (thread, band): (ThreadId, Band),
        work: Work,
        gives_way: bool,
        sink: &mut S,
    ) -> Choice {
        if !work.is_zero() {
            self.charge(now, thread, band, work, sink);
        }
        if gives_way {
            self.yield_now(thread, band);
        }
        self.pick(now)
    }

    /// The running thread has executed inside a non-preemptive section: no sibling of its node is
    /// chosen until `release`, or until it is no longer ready.
    fn hold(&mut self, thread: ThreadId, band: Band);

    /// The section of a thread is over, if it had begun.
    fn release(&mut self, thread: ThreadId);

    /// Whether a thread keeps its siblings away.
    fn holds(&self, thread: ThreadId) -> bool;

    /// Serves what was due by itself before `before`, which has passed: a late entry takes releases
    /// and budgets in the order in which they were due.
    #[inline]
    fn catch_up(&mut self, now: Instant, before: Instant) {
        let _ = (now, before);
    }

    /// Serves what is due by itself (supply that comes again) before `now`, or also at it.
    #[inline]
    fn serve_timers<S: Sink>(&mut self, now: Instant, strictly: bool, sink: &mut S) {
        let _ = (now, strictly, sink);
    }

    /// When something is due by itself next.
    #[inline]
    fn next_timer(&self) -> Option<Instant> {
        None
    }

    /// Who runs from now on.
    fn pick(&mut self, now: Instant) -> Choice;

    /// Whether the scheduler `by` may ask for this. A single level is a tree of its root alone.
    ///
    /// # Errors
    /// Why not; nothing has changed then.
    fn permit(&self, by: NodeId, request: &Request) -> Result<(), Refusal> {
        if by != NodeId::ROOT {
            return Err(Refusal::NoSuchNode(by));
        }
        match *request {
            Request::Create { home, .. } if home != NodeId::ROOT => Err(Refusal::NoSuchNode(home)),
            Request::Grant { to, .. } => Err(Refusal::NoSuchNode(to)),
            Request::Revoke { thread } => Err(Refusal::NotItsOwn(thread)),
            Request::Promote(_) => Err(Refusal::NoNodeLeft),
            Request::Lend { to, .. } => Err(Refusal::NoSuchNode(to)),
            Request::Demote(node) => Err(Refusal::NoSuchNode(node)),
            Request::Create { .. } | Request::Block { .. } | Request::Wake(_) => Ok(()),
        }
    }

    /// Whether a thread may be woken on behalf of the scheduler that has it.
    ///
    /// # Errors
    /// A more trusted scheduler has blocked it for itself.
    #[inline]
    fn permit_wake(&self, thread: ThreadId) -> Result<(), Refusal> {
        let _ = thread;
        Ok(())
    }

    /// Only `by` and those above it may wake this waiting thread.
    fn block_for(&mut self, thread: ThreadId, by: NodeId) {
        let _ = (thread, by);
    }

    /// Moves `work` from the budget of `by` to that of its sibling `to`.
    ///
    /// # Errors
    /// No siblings, no budgets, or too little; nothing has changed then.
    fn lend(&mut self, now: Instant, by: NodeId, to: NodeId, work: Work) -> Result<(), Refusal> {
        let _ = (now, by, work);
        Err(Refusal::NoSuchNode(to))
    }

    /// A thread that is not ready goes into the care of `home`, as has been permitted.
    fn rehome(&mut self, thread: ThreadId, home: NodeId) {
        let _ = (thread, home);
    }

    /// A new scheduler below `parent`, as has been permitted.
    fn promote(&mut self, parent: NodeId, terms: &NodeTerms) -> Option<NodeId> {
        let _ = (parent, terms);
        None
    }

    /// A scheduler and those below it, which have no threads any more, end.
    fn demote(&mut self, now: Instant, node: NodeId) {
        let _ = (now, node);
    }

    /// The scheduler above; `None` for the root and for what is none.
    fn parent(&self, node: NodeId) -> Option<NodeId> {
        let _ = node;
        None
    }

    /// Whether a thread is in the care of `node` or of a scheduler below it.
    fn is_in_subtree(&self, thread: ThreadId, node: NodeId) -> bool {
        let _ = thread;
        node == NodeId::ROOT
    }

    /// The closest scheduler that has both threads below it.
    fn closest_common(&self, a: ThreadId, b: ThreadId) -> NodeId {
        let _ = (a, b);
        NodeId::ROOT
    }

    /// Whether every server above a thread has `length` left, or as much as it ever has.
    fn fits(&self, thread: ThreadId, length: Work) -> bool {
        let _ = (thread, length);
        true
    }

    /// A thread that is not ready (any more) waits until it [`Hierarchy::fits`].
    fn park(&mut self, now: Instant, thread: ThreadId, length: Work) {
        let _ = (now, thread, length);
    }

    /// A thread waits for budgets no more, if it did: it has ended, or its time is over. Comes
    /// before it changes its home.
    fn unpark(&mut self, now: Instant, thread: ThreadId) {
        let _ = (now, thread);
    }

    /// The next parked thread that fits by now; it is parked no more, and is to be woken. To be
    /// asked after [`Hierarchy::serve_timers`], until there is none.
    fn take_fitting(&mut self, now: Instant) -> Option<ThreadId> {
        let _ = now;
        None
    }

    /// A thread in a section may execute this much beyond the budgets above it, which pay from
    /// their next; `None`: no more. (At least 1 as long as the section lasts.)
    fn overrun(&mut self, now: Instant, thread: ThreadId, most: Option<Work>) {
        let _ = (now, thread, most);
    }

    /// The child of the scheduler `common` in whose subtree a thread is; `None`: it is `common`'s
    /// own, or not below it.
    fn child_towards(&self, common: NodeId, thread: ThreadId) -> Option<NodeId> {
        let _ = (common, thread);
        None
    }

    /// A child is at least this urgent among its siblings and goes before its equals; `None`: as
    /// urgent as on its own terms.
    fn raise(&mut self, child: NodeId, priority: Option<Priority>) {
        let _ = (child, priority);
    }

    /// Takes in the choice of a child that was let run.
    ///
    /// # Errors
    /// Why it is not believed; nothing has changed then.
    fn child_picked(&mut self, now: Instant, pick: &ChildPick) -> Result<(), Refusal> {
        let _ = now;
        Err(Refusal::NoSuchNode(pick.child))
    }

    /// How often the ready threads of a child have changed; `None`: no such child.
    fn epoch(&self, child: NodeId) -> Option<u32> {
        let _ = child;
        None
    }

    /// Whether a thread is ready in the care of a child that decides on its own supply.
    fn is_ready_in(&self, thread: ThreadId, child: NodeId) -> bool {
        let _ = (thread, child);
        false
    }

    /// Checks the invariants, at entry and exit of a debug build; the error names the broken one.
    ///
    /// # Errors
    /// The name of the broken invariant.
    fn check(&self) -> Result<(), &'static str> {
        Ok(())
    }
}
