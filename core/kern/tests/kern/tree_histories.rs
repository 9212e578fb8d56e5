//! Random histories on random trees: invariants at every exit, and no server above its rule.

use punctual_kern::{ChildPick, Constraint, Event, Grant, Next, NodeId, NodeTerms, Request};
use punctual_model::{Instant, PolicyKind, ServerKind, Span, ThreadId, Trust};
use punctual_policy::AnyPolicy;

use crate::histories::{random_constraint, random_event};
use crate::trees::{FIXED, Grove, server, terms};
use punctual_generate::Dice;

pub(crate) const POLICIES: [PolicyKind; 5] = [
    FIXED,
    PolicyKind::FixedPriority { preemptive: false },
    PolicyKind::EarliestDeadlineFirst,
    PolicyKind::Fifo,
    PolicyKind::RoundRobin {
        timeslice: Span::from_ticks(3),
    },
];

pub(crate) fn index(dice: &mut Dice, below: usize) -> usize {
    usize::try_from(dice.below(u64::try_from(below).unwrap())).unwrap()
}

pub(crate) fn random_terms(dice: &mut Dice) -> (NodeTerms, Option<(u64, u64)>) {
    let priority = u32::try_from(dice.below(10)).unwrap();
    if dice.below(3) == 0 {
        return (terms(Grant::Shared, priority), None);
    }
    let period = 4 + dice.below(30);
    let budget = 1 + dice.below(period);
    let kind = ServerKind::ALL[index(dice, 5)];
    let supply = server(kind, budget, period);
    (terms(supply, priority), Some((budget, period)))
}

/// Budget and period of the server of each node, if it has one.
pub(crate) type Servers = Vec<Option<(u64, u64)>>;

/// A tree of up to six nodes and six threads; the server and the parent of each node.
pub(crate) fn random_grove(dice: &mut Dice) -> (Grove, Servers, Vec<u16>) {
    let count = 1 + dice.below(6);
    let (mut nodes, mut servers, mut parents) = (Vec::new(), vec![None], vec![0]);
    for place in 1..=count {
        let parent = u16::try_from(dice.below(place)).unwrap();
        let (terms, server) = random_terms(dice);
        nodes.push((parent, POLICIES[index(dice, 5)], terms));
        servers.push(server);
        parents.push(parent);
    }
    let threads: Vec<(u16, Constraint)> = (0..6)
        .map(|_| {
            let home = u16::try_from(dice.below(count + 1)).unwrap();
            (home, random_constraint(dice))
        })
        .collect();
    let root = POLICIES[index(dice, 5)];
    (Grove::new(root, &nodes, &threads), servers, parents)
}

/// One history with exact timers. What each node's subtree executed in each interval between two
/// entries is checked against its server: in any window of its period at most two budgets, and one
/// per period in the long run.
fn history(seed: u64) -> u64 {
    let mut dice = Dice::new(seed);
    let (mut grove, servers, parents) = random_grove(&mut dice);
    let mut now = 0;
    let mut used = vec![0_u64; servers.len()];
    let mut total = 0;
    for _ in 0..300 {
        let event = random_event(&mut dice, grove.shard.running(), now);
        let decision = grove.at(now, event);
        let free = 1 + dice.below(6);
        let armed = decision
            .arm
            .map_or(free, |at| at.ticks().saturating_sub(now));
        let step = free.min(armed);
        if let Next::Thread(id) = decision.next {
            let mut at = usize::from(grove.queue_of(id));
            total += step;
            while at != 0 {
                used[at] += step;
                at = usize::from(parents[at]);
            }
        }
        now += step;
    }
    for (node, server) in servers.iter().enumerate() {
        let Some((budget, period)) = server else {
            continue;
        };
        let most = (now / period + 2) * budget;
        assert!(used[node] <= most, "seed {seed}: node {node}: {used:?}");
    }
    total
}

#[test]
fn no_server_gives_more_than_its_rule_in_five_thousand_random_trees() {
    let executed: u64 = (0..5_000).map(history).sum();
    assert!(executed > 1_000_000, "only {executed} ticks executed");
}

/// A request or an answer, sensible or not.
pub(crate) fn random_request(
    dice: &mut Dice,
    grove: &mut Grove,
    deciding: Option<NodeId>,
    now: u64,
) -> Event {
    let place = |dice: &mut Dice| {
        let generation = u16::from(dice.below(6) == 0);
        NodeId::new(u16::try_from(dice.below(9)).unwrap(), generation)
    };
    let thread = ThreadId::new(u32::try_from(dice.below(9)).unwrap(), 0);
    let until = (dice.below(3) == 0).then(|| Instant::from_ticks(now + dice.below(20)));
    if let Some(child) = deciding
        && dice.below(3) > 0
    {
        let ready: Vec<ThreadId> = grove.shard.ready_in(child).map(|(t, _)| t).collect();
        let chosen = ready.get(index(dice, 4)).copied();
        return Event::ChildPicked(ChildPick {
            child,
            epoch: grove.shard.epoch(child).unwrap(),
            thread: chosen.or((dice.below(4) == 0).then_some(thread)),
            until,
        });
    }
    let by = place(dice);
    let request = match dice.below(10) {
        0 => Request::Create {
            home: place(dice),
            constraint: random_constraint(dice),
        },
        1 | 2 => Request::Grant {
            thread,
            to: place(dice),
        },
        3 => Request::Revoke { thread },
        4 => {
            let (mut terms, _) = random_terms(dice);
            terms.trust = random_trust(dice);
            Request::Promote(terms)
        }
        5 if dice.below(3) == 0 => Request::Demote(place(dice)),
        6 => Request::Wake(thread),
        7 | 8 => {
            let (node, policy) = (place(dice), POLICIES[index(dice, 5)]);
            let entities = grove.shard.tree().capacity().entities();
            if dice.below(4) > 0 {
                drop(grove.shard.unshelve(node));
                let made = AnyPolicy::new(policy, entities, &[]);
                let _ = grove.shard.shelve(node, made);
            }
            Request::Replace { node, policy }
        }
        _ => Request::Block {
            thread,
            exclusive: dice.below(2) == 0,
            until,
        },
    };
    Event::Manage { by, request }
}

fn random_trust(dice: &mut Dice) -> Trust {
    match dice.below(3) {
        0 => Trust::OwnTime,
        _ => Trust::Inline,
    }
}

/// One history of a tree that changes, with timers that may be late. The invariants are checked at
/// every exit; returns how many requests and answers were not refused.
fn changing_history(seed: u64) -> u64 {
    let mut dice = Dice::new(seed);
    let (mut grove, ..) = random_grove(&mut dice);
    let (mut now, mut done) = (0, 0);
    let mut deciding = None;
    for _ in 0..300 {
        let event = match dice.below(2) {
            0 => random_request(&mut dice, &mut grove, deciding, now),
            _ => random_event(&mut dice, grove.shard.running(), now),
        };
        let decision = grove.at(now, event);
        deciding = match decision.next {
            Next::RunChild(child) => Some(child),
            _ => None,
        };
        let asked = matches!(event, Event::Manage { .. } | Event::ChildPicked(_));
        done += u64::from(asked && decision.refused.is_none());
        now += dice.below(5);
    }
    done
}

#[test]
fn invariants_hold_while_the_tree_changes_and_timers_are_late() {
    let done: u64 = (0..4_000).map(changing_history).sum();
    assert!(done > 20_000, "only {done} requests done");
}
