//! A tree whose schedulers hold nobody back decides what its one policy would.

use punctual_kern::{
    Capacity, Constraint, Decision, Event, Grant, Next, NoSink, NodeId, Policy, Shard, Tree,
};
use punctual_model::{Instant, PolicyKind, ServerKind, ThreadId};
use punctual_policy::AnyPolicy;

use crate::histories::{random_constraint, random_event};
use crate::trees::{node, server, terms};
use punctual_generate::Dice;

const LEVELS: u16 = 3;

fn capacity() -> Capacity {
    let mut capacity = Capacity::for_threads(8);
    capacity.nodes = LEVELS;
    capacity
}

fn policy(kind: PolicyKind) -> AnyPolicy {
    AnyPolicy::new(kind, capacity().entities(), &[])
}

/// All threads at the end of a line of schedulers on this supply, or at the root.
fn tree(kind: PolicyKind, supply: Option<Grant>) -> (Tree<AnyPolicy>, NodeId) {
    let mut tree = Tree::new(capacity(), policy(kind));
    let mut home = NodeId::ROOT;
    if let Some(supply) = supply {
        for _ in 0..LEVELS {
            home = tree.add(home, policy(kind), terms(supply, 1)).unwrap();
        }
    }
    (tree, home)
}

fn populate<P: Policy>(shard: &mut Shard<P>, home: NodeId, constraints: &[Constraint]) {
    for constraint in constraints {
        let _ = shard.attach_to(home, *constraint).unwrap();
    }
}

fn who(decision: &Decision) -> Option<ThreadId> {
    match decision.next {
        Next::Thread(thread) => Some(thread),
        _ => None,
    }
}

fn history(seed: u64, kind: PolicyKind, supply: Option<Grant>) {
    let mut dice = Dice::new(seed);
    let constraints: Vec<_> = (0..6).map(|_| random_constraint(&mut dice)).collect();
    // No room for a second scheduler: it keeps no count of what is ready.
    let flat = Capacity {
        nodes: 0,
        ..capacity()
    };
    let mut one = Shard::new(Tree::new(flat, policy(kind)));
    let (tree, home) = tree(kind, supply);
    let mut many = Shard::new(tree);
    populate(&mut one, NodeId::ROOT, &constraints);
    populate(&mut many, home, &constraints);
    let mut now = 0;
    for _ in 0..300 {
        let event = match random_event(&mut dice, one.running(), now) {
            // It would come into the care of the root.
            Event::Create(_) => Event::Tick,
            other => other,
        };
        let at = Instant::from_ticks(now);
        let (a, b) = (
            one.handle(at, event, &mut NoSink),
            many.handle(at, event, &mut NoSink),
        );
        assert_eq!(
            who(&a),
            who(&b),
            "seed {seed}, {kind:?} at {now}: {event:?}"
        );
        assert_eq!(a.refused, b.refused, "seed {seed}");
        let free = 1 + dice.below(6);
        let armed = [a.arm, b.arm].into_iter().flatten().min();
        let until = armed.map_or(free, |at| at.ticks().saturating_sub(now));
        now += free.min(until);
    }
}

const POLICIES: [PolicyKind; 4] = [
    PolicyKind::FixedPriority { preemptive: true },
    PolicyKind::FixedPriority { preemptive: false },
    PolicyKind::EarliestDeadlineFirst,
    PolicyKind::Fifo,
];

#[test]
fn a_tree_of_the_root_alone_decides_like_its_policy() {
    for seed in 0..2_000 {
        history(seed, POLICIES[usize::try_from(seed % 4).unwrap()], None);
    }
}

#[test]
fn shared_supply_all_the_way_down_changes_nothing() {
    for seed in 0..2_000 {
        let kind = POLICIES[usize::try_from(seed % 4).unwrap()];
        history(seed, kind, Some(Grant::Shared));
    }
}

#[test]
fn servers_that_give_everything_change_nothing() {
    for seed in 0..2_000 {
        let kind = POLICIES[usize::try_from(seed % 4).unwrap()];
        let all = server(ServerKind::Deferrable, 37, 37);
        history(seed, kind, Some(all));
    }
}

#[test]
fn the_root_is_a_node_like_others() {
    let (tree, _) = tree(POLICIES[0], Some(Grant::Shared));
    assert_eq!(tree.nodes(), usize::from(LEVELS) + 1);
    assert_eq!(tree.parent(node(1)), Some(NodeId::ROOT));
    assert_eq!(tree.parent(NodeId::ROOT), None);
}
