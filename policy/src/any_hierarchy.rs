//! What orders a CPU of a file: one built-in policy, or a tree of them.

use alloc::boxed::Box;

use punctual_kern::{
    Attributes, Band, ChildPick, Choice, CpuPlan, Hierarchy, NodeId, NodeTerms, OneLevel, Refusal,
    Request, Sink, Tree,
};
use punctual_model::{Instant, PolicyKind, Priority, ThreadId, Work};

use crate::{AnyPolicy, AnyServer};

/// The hierarchy of a CPU that a file describes.
#[derive(Debug)]
pub enum AnyHierarchy {
    /// One policy: the common case, at full speed.
    OneLevel(OneLevel<AnyPolicy>),
    /// Schedulers below schedulers.
    Tree(Box<Tree<AnyPolicy, AnyServer>>),
}

impl AnyHierarchy {
    /// What orders the CPU of this plan. O(threads · schedulers). A plan that was changed by hand
    /// into something meaningless is refused by [`CpuPlan::build`].
    pub fn new(plan: &CpuPlan) -> Self {
        let capacity = plan.capacity;
        if capacity.nodes == 0 {
            let policy = policy(plan, 0, plan.policy);
            return AnyHierarchy::OneLevel(OneLevel::new(capacity, policy));
        }
        let mut tree = Tree::new(capacity, policy(plan, 0, plan.policy));
        for (place, node) in (1..).zip(&plan.nodes) {
            let parent = NodeId::new(node.parent, 0);
            let policy = policy(plan, place, node.policy);
            if tree.add(parent, policy, node.terms).is_err() {
                break;
            }
        }
        // What is left of the capacity is for schedulers that are promoted later.
        let spare = PolicyKind::FixedPriority { preemptive: true };
        while tree.add_spare(policy(plan, u16::MAX, spare)).is_ok() {}
        AnyHierarchy::Tree(Box::new(tree))
    }
}

/// The policy of the node at this place.
fn policy(plan: &CpuPlan, place: u16, kind: PolicyKind) -> AnyPolicy {
    let slots = plan.slots.iter().filter(|slot| slot.node == place);
    AnyPolicy::new(kind, plan.capacity.entities(), slots.copied())
}

/// Runs `$body` with `$h` bound to whichever hierarchy it is.
macro_rules! each {
    ($any:expr, $h:ident => $body:expr) => {
        match $any {
            AnyHierarchy::OneLevel($h) => $body,
            AnyHierarchy::Tree($h) => $body,
        }
    };
}

impl Hierarchy for AnyHierarchy {
    fn nodes(&self) -> usize {
        each!(self, h => h.nodes())
    }
    #[inline]
    fn begin(&mut self, now: Instant) {
        each!(self, h => h.begin(now));
    }
    fn attach(&mut self, thread: ThreadId, home: NodeId) -> Result<(), Refusal> {
        each!(self, h => h.attach(thread, home))
    }
    fn detach(&mut self, thread: ThreadId) {
        each!(self, h => h.detach(thread));
    }
    #[inline]
    fn wake(&mut self, now: Instant, since: Instant, t: ThreadId, a: &Attributes, band: Band) {
        each!(self, h => h.wake(now, since, t, a, band));
    }
    #[inline]
    fn block(&mut self, now: Instant, thread: ThreadId, band: Band) {
        each!(self, h => h.block(now, thread, band));
    }
    fn update(&mut self, thread: ThreadId, attributes: &Attributes, band: Band) {
        each!(self, h => h.update(thread, attributes, band));
    }
    fn yield_now(&mut self, thread: ThreadId, band: Band) {
        each!(self, h => h.yield_now(thread, band));
    }
    #[inline]
    fn charge<S: Sink>(&mut self, now: Instant, t: ThreadId, band: Band, work: Work, s: &mut S) {
        each!(self, h => h.charge(now, t, band, work, s));
    }
    fn charge_child<S: Sink>(&mut self, now: Instant, child: NodeId, work: Work, sink: &mut S) {
        each!(self, h => h.charge_child(now, child, work, sink));
    }
    fn hold(&mut self, thread: ThreadId, band: Band) {
        each!(self, h => h.hold(thread, band));
    }
    #[inline]
    fn release(&mut self, thread: ThreadId) {
        each!(self, h => h.release(thread));
    }
    fn holds(&self, thread: ThreadId) -> bool {
        each!(self, h => h.holds(thread))
    }
    #[inline]
    fn serve_timers<S: Sink>(&mut self, now: Instant, strictly: bool, sink: &mut S) {
        each!(self, h => h.serve_timers(now, strictly, sink));
    }
    #[inline]
    fn next_timer(&self) -> Option<Instant> {
        each!(self, h => h.next_timer())
    }
    #[inline]
    fn pick(&mut self, now: Instant) -> Choice {
        each!(self, h => h.pick(now))
    }
    fn permit(&self, by: NodeId, request: &Request) -> Result<(), Refusal> {
        each!(self, h => h.permit(by, request))
    }
    #[inline]
    fn permit_wake(&self, thread: ThreadId) -> Result<(), Refusal> {
        each!(self, h => h.permit_wake(thread))
    }
    fn block_for(&mut self, thread: ThreadId, by: NodeId) {
        each!(self, h => h.block_for(thread, by));
    }
    fn lend(&mut self, now: Instant, by: NodeId, to: NodeId, work: Work) -> Result<(), Refusal> {
        each!(self, h => h.lend(now, by, to, work))
    }
    fn rehome(&mut self, thread: ThreadId, home: NodeId) {
        each!(self, h => h.rehome(thread, home));
    }
    fn promote(&mut self, parent: NodeId, terms: &NodeTerms) -> Option<NodeId> {
        each!(self, h => h.promote(parent, terms))
    }
    fn demote(&mut self, now: Instant, node: NodeId) {
        each!(self, h => h.demote(now, node));
    }
    fn parent(&self, node: NodeId) -> Option<NodeId> {
        each!(self, h => h.parent(node))
    }
    fn is_in_subtree(&self, thread: ThreadId, node: NodeId) -> bool {
        each!(self, h => h.is_in_subtree(thread, node))
    }
    fn closest_common(&self, a: ThreadId, b: ThreadId) -> NodeId {
        each!(self, h => h.closest_common(a, b))
    }
    fn child_picked(&mut self, now: Instant, pick: &ChildPick) -> Result<(), Refusal> {
        each!(self, h => h.child_picked(now, pick))
    }
    fn epoch(&self, child: NodeId) -> Option<u32> {
        each!(self, h => h.epoch(child))
    }
    fn is_ready_in(&self, thread: ThreadId, child: NodeId) -> bool {
        each!(self, h => h.is_ready_in(thread, child))
    }
    fn fits(&self, thread: ThreadId, length: Work) -> bool {
        each!(self, h => h.fits(thread, length))
    }
    fn park(&mut self, now: Instant, thread: ThreadId, length: Work) {
        each!(self, h => h.park(now, thread, length));
    }
    fn unpark(&mut self, now: Instant, thread: ThreadId) {
        each!(self, h => h.unpark(now, thread));
    }
    #[inline]
    fn take_fitting(&mut self, now: Instant) -> Option<ThreadId> {
        each!(self, h => h.take_fitting(now))
    }
    fn overrun(&mut self, now: Instant, thread: ThreadId, most: Option<Work>) {
        each!(self, h => h.overrun(now, thread, most));
    }
    fn child_towards(&self, common: NodeId, thread: ThreadId) -> Option<NodeId> {
        each!(self, h => h.child_towards(common, thread))
    }
    fn raise(&mut self, child: NodeId, priority: Option<Priority>) {
        each!(self, h => h.raise(child, priority));
    }
    fn check(&self) -> Result<(), &'static str> {
        each!(self, h => h.check())
    }
}
