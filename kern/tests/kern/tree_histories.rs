//! Random histories on random trees: invariants at every exit, and no server above its rule.

use punctual_kern::{Constraint, Event, Grant, Next, NodeTerms};
use punctual_model::{PolicyKind, ServerKind, Span};

use crate::histories::{Dice, random_constraint, random_event};
use crate::trees::{FIXED, Grove, server, terms};

const POLICIES: [PolicyKind; 5] = [
    FIXED,
    PolicyKind::FixedPriority { preemptive: false },
    PolicyKind::EarliestDeadlineFirst,
    PolicyKind::Fifo,
    PolicyKind::RoundRobin {
        timeslice: Span::from_ticks(3),
    },
];

fn index(dice: &mut Dice, below: usize) -> usize {
    usize::try_from(dice.below(u64::try_from(below).unwrap())).unwrap()
}

fn random_terms(dice: &mut Dice) -> (NodeTerms, Option<(u64, u64)>) {
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

/// A tree of up to six nodes and six threads; the server of each node, if it has one.
fn random_grove(dice: &mut Dice) -> (Grove, Vec<Option<(u64, u64)>>, Vec<u16>) {
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
    let mut dice = Dice(seed);
    let (mut grove, servers, parents) = random_grove(&mut dice);
    let mut now = 0;
    let mut used = vec![0_u64; servers.len()];
    let mut total = 0;
    for _ in 0..300 {
        let event = match random_event(&mut dice, grove.shard.running(), now) {
            // Missing time is charged to nobody, so what servers paid could not be counted here.
            Event::Missing { .. } => Event::Tick,
            other => other,
        };
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
fn no_server_gives_more_than_its_rule_in_ten_thousand_random_trees() {
    let executed: u64 = (0..10_000).map(history).sum();
    assert!(executed > 2_000_000, "only {executed} ticks executed");
}
