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
// There is one per CPU, and what every entry goes through is not to be behind one more pointer.
#[allow(clippy::large_enum_variant)]
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

/// Methods that pass on what they are told, by their signatures without `self`.
macro_rules! forward {
    (ref $(fn $name:ident($($arg:ident: $of:ty),*) -> $answer:ty;)*) => {$(
        #[inline]
        fn $name(&self, $($arg: $of),*) -> $answer {
            each!(self, h => h.$name($($arg),*))
        }
    )*};
    (mut $(fn $name:ident($($arg:ident: $of:ty),*) -> $answer:ty;)*) => {$(
        #[inline]
        fn $name(&mut self, $($arg: $of),*) -> $answer {
            each!(self, h => h.$name($($arg),*))
        }
    )*};
}

impl Hierarchy for AnyHierarchy {
    forward! { ref
        fn nodes() -> usize;
        fn is_one_level() -> bool;
        fn holds(thread: ThreadId) -> bool;
        fn next_timer() -> Option<Instant>;
        fn permit(by: NodeId, request: &Request) -> Result<(), Refusal>;
        fn permit_wake(thread: ThreadId) -> Result<(), Refusal>;
        fn parent(node: NodeId) -> Option<NodeId>;
        fn is_in_subtree(thread: ThreadId, node: NodeId) -> bool;
        fn closest_common(a: ThreadId, b: ThreadId) -> NodeId;
        fn epoch(child: NodeId) -> Option<u32>;
        fn is_ready_in(thread: ThreadId, child: NodeId) -> bool;
        fn fits(thread: ThreadId, length: Work) -> bool;
        fn child_towards(common: NodeId, thread: ThreadId) -> Option<NodeId>;
        fn check() -> Result<(), &'static str>;
    }

    forward! { mut
        fn begin(now: Instant) -> ();
        fn attach(thread: ThreadId, home: NodeId) -> Result<(), Refusal>;
        fn detach(thread: ThreadId) -> ();
        fn wake(now: Instant, since: Instant, thread: ThreadId, a: &Attributes, band: Band) -> ();
        fn block(now: Instant, thread: ThreadId, band: Band) -> ();
        fn update(thread: ThreadId, attributes: &Attributes, band: Band) -> ();
        fn renew(thread: ThreadId, attributes: &Attributes, band: Band) -> ();
        fn yield_now(thread: ThreadId, band: Band) -> ();
        fn hold(thread: ThreadId, band: Band) -> ();
        fn release(thread: ThreadId) -> ();
        fn catch_up(now: Instant, before: Instant) -> ();
        fn block_for(thread: ThreadId, by: NodeId) -> ();
        fn lend(now: Instant, by: NodeId, to: NodeId, work: Work) -> Result<(), Refusal>;
        fn rehome(thread: ThreadId, home: NodeId) -> ();
        fn promote(parent: NodeId, terms: &NodeTerms) -> Option<NodeId>;
        fn demote(now: Instant, node: NodeId) -> ();
        fn child_picked(now: Instant, pick: &ChildPick) -> Result<(), Refusal>;
        fn park(now: Instant, thread: ThreadId, length: Work) -> ();
        fn unpark(now: Instant, thread: ThreadId) -> ();
        fn take_fitting(now: Instant) -> Option<ThreadId>;
        fn overrun(now: Instant, thread: ThreadId, most: Option<Work>) -> ();
        fn raise(child: NodeId, priority: Option<Priority>) -> ();
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn heir(&self, thread: ThreadId, band: Band) -> Option<ThreadId> {
        match self {
            AnyHierarchy::OneLevel(h) => h.heir(thread, band),
            AnyHierarchy::Tree(_) => None,
        }
    }
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn pass_on(&mut self, thread: ThreadId, band: Band) {
        match self {
            AnyHierarchy::OneLevel(h) => h.pass_on(thread, band),
            AnyHierarchy::Tree(h) => h.yield_now(thread, band),
        }
    }
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn pick(&mut self, now: Instant) -> Choice {
        each!(self, h => h.pick(now))
    }
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn go_on<S: Sink>(
        &mut self,
        now: Instant,
        running: (ThreadId, Band),
        work: Work,
        gives_way: bool,
        sink: &mut S,
    ) -> Choice {
        each!(self, h => h.go_on(now, running, work, gives_way, sink))
    }
    #[inline]
    fn charge<S: Sink>(&mut self, now: Instant, t: ThreadId, band: Band, work: Work, s: &mut S) {
        each!(self, h => h.charge(now, t, band, work, s));
    }
    fn charge_child<S: Sink>(&mut self, now: Instant, child: NodeId, work: Work, sink: &mut S) {
        each!(self, h => h.charge_child(now, child, work, sink));
    }
    #[inline]
    fn serve_timers<S: Sink>(&mut self, now: Instant, strictly: bool, sink: &mut S) {
        each!(self, h => h.serve_timers(now, strictly, sink));
    }
}
