//! Trees: two levels and more, every kind of supply, against schedules worked out by hand.

use punctual_kern::{
    Capacity, Constraint, Event, Grant, Next, NodeId, NodeTerms, Shard, SlotTerms, TraceEvent, Tree,
};
use punctual_model::{
    Class, Instant, PolicyKind, Priority, Server, ServerKind, Span, ThreadId, Trust, Work,
};
use punctual_policy::AnyPolicy;

use crate::driver::{Log, constraint, periodic};

pub(crate) const FIXED: PolicyKind = PolicyKind::FixedPriority { preemptive: true };

/// A shard over a tree; threads and nodes are named by their indices.
pub(crate) struct Grove {
    pub(crate) shard: Shard<AnyPolicy>,
    pub(crate) log: Log,
    armed: Option<u64>,
    now: u64,
}

pub(crate) fn terms(supply: Grant, priority: u32) -> NodeTerms {
    NodeTerms {
        supply,
        priority: Priority::new(priority),
        order: 1_000 - priority,
        trust: Trust::Inline,
        quota: None,
        receiver: None,
    }
}

pub(crate) fn server(kind: ServerKind, budget: u64, period: u64) -> Grant {
    Grant::Server(Server {
        kind,
        budget: Work::from_ticks(budget),
        period: Span::from_ticks(period),
    })
}

pub(crate) fn node(place: u16) -> NodeId {
    NodeId::new(place, 0)
}

impl Grove {
    /// Nodes by (parent, policy, terms), threads by (home, constraint).
    pub(crate) fn new(
        root: PolicyKind,
        nodes: &[(u16, PolicyKind, NodeTerms)],
        threads: &[(u16, Constraint)],
    ) -> Grove {
        Grove::with_room(1, root, nodes, threads)
    }

    /// The same with room for so many more nodes.
    pub(crate) fn with_room(
        room: u16,
        root: PolicyKind,
        nodes: &[(u16, PolicyKind, NodeTerms)],
        threads: &[(u16, Constraint)],
    ) -> Grove {
        Grove::with_slots(room, (root, &[]), nodes, threads)
    }

    /// The same with slots of nodes in the frame of the root: (place, start, length).
    pub(crate) fn with_slots(
        room: u16,
        (root, slots): (PolicyKind, &[(u16, u64, u64)]),
        nodes: &[(u16, PolicyKind, NodeTerms)],
        threads: &[(u16, Constraint)],
    ) -> Grove {
        let mut capacity = Capacity::for_threads(threads.len() + 2);
        capacity.nodes = u16::try_from(nodes.len()).unwrap() + room;
        let entities = capacity.entities();
        let slot = |&(place, at, length): &(u16, u64, u64)| SlotTerms {
            node: 0,
            entity: capacity.entity_of(place),
            at: Span::from_ticks(at),
            length: Span::from_ticks(length),
        };
        let slots: Vec<SlotTerms> = slots.iter().map(slot).collect();
        let mut tree = Tree::new(capacity, AnyPolicy::new(root, entities, &slots));
        for (parent, policy, terms) in nodes {
            let policy = AnyPolicy::new(*policy, entities, &[]);
            let _ = tree.add(node(*parent), policy, *terms).unwrap();
        }
        for _ in 0..room {
            tree.add_spare(AnyPolicy::new(FIXED, entities, &[]))
                .unwrap();
        }
        let mut shard = Shard::new(tree);
        for (home, constraint) in threads {
            let _ = shard.attach_to(node(*home), *constraint).unwrap();
        }
        Grove {
            shard,
            log: Log::default(),
            armed: Some(0),
            now: 0,
        }
    }

    pub(crate) fn at(&mut self, now: u64, event: Event) -> punctual_kern::Decision {
        let decision = self
            .shard
            .handle(Instant::from_ticks(now), event, &mut self.log);
        assert_eq!(self.shard.check(), Ok(()), "at {now}");
        self.armed = decision.arm.map(Instant::ticks);
        self.now = now;
        decision
    }

    /// Lets time pass with exact timers. Each thread's jobs take what `work` says (by index).
    /// Returns who ran from when, up to `end`.
    pub(crate) fn run(&mut self, work: &[u64], end: u64) -> Vec<(u64, Option<usize>)> {
        let mut lane: Vec<(u64, Option<usize>)> = Vec::new();
        let mut runs = None;
        while self.now < end {
            let finish = runs.and_then(|thread: usize| {
                let id = ThreadId::new(u32::try_from(thread).unwrap(), 0);
                let job = self.shard.job(id)?;
                let left = work[thread].saturating_sub(job.received.ticks());
                Some(self.now + left)
            });
            let armed = self.armed.map(|at| at.max(self.now));
            let next = [finish, armed].into_iter().flatten().min().unwrap_or(end);
            if next > end {
                break;
            }
            let event = match finish {
                Some(at) if at == next => Event::Complete,
                _ => Event::Tick,
            };
            let decision = self.at(next, event);
            runs = match decision.next {
                Next::Thread(id) => Some(id.index()),
                _ => None,
            };
            if lane.last().is_none_or(|(_, last)| *last != runs) {
                if lane.last().is_some_and(|(at, _)| *at == next) {
                    let _ = lane.pop();
                }
                if lane.last().is_none_or(|(_, last)| *last != runs) {
                    lane.push((next, runs));
                }
            }
        }
        lane
    }

    /// The node on whose supply a thread runs.
    pub(crate) fn queue_of(&self, thread: ThreadId) -> u16 {
        let node = self.shard.tree().supplier(thread);
        node.map_or(0, |node| u16::try_from(node.index()).unwrap())
    }

    pub(crate) fn budgets(&self) -> Vec<(u64, u64)> {
        let replenished = |(now, event): &(u64, TraceEvent)| match event {
            TraceEvent::ServerReplenished { budget, .. } => Some((*now, budget.ticks())),
            TraceEvent::ServerExhausted { .. } => Some((*now, 0)),
            _ => None,
        };
        self.log.0.iter().filter_map(replenished).collect()
    }
}

pub(crate) fn at(phase: u64, mut constraint: Constraint) -> Constraint {
    constraint.phase = Span::from_ticks(phase);
    constraint
}

const LONG: u64 = 1_000_000;

/// Thread 0 below a server of (2 in 10) at priority 2, thread 1 on the CPU at priority 1.
fn served(kind: ServerKind, phase: u64, work: u64) -> Grove {
    Grove::new(
        FIXED,
        &[(0, FIXED, terms(server(kind, 2, 10), 2))],
        &[
            (1, at(phase, periodic(work, LONG, 5))),
            (0, periodic(LONG / 2, LONG, 1)),
        ],
    )
}

#[test]
fn a_deferrable_server_keeps_its_budget_to_the_end_of_the_period() {
    let mut grove = served(ServerKind::Deferrable, 9, 5);
    let lane = grove.run(&[5, LONG], 40);
    // Two budgets back to back: at the end of one period and the start of the next.
    let expected = [
        (0, Some(1)),
        (9, Some(0)),
        (12, Some(1)),
        (20, Some(0)),
        (22, Some(1)),
    ];
    assert_eq!(lane, expected);
}

#[test]
fn a_polling_server_has_nothing_for_what_comes_after_the_period_start() {
    let mut grove = served(ServerKind::Polling, 1, 3);
    let lane = grove.run(&[3, LONG], 40);
    let expected = [
        (0, Some(1)),
        (10, Some(0)),
        (12, Some(1)),
        (20, Some(0)),
        (21, Some(1)),
    ];
    assert_eq!(lane, expected);
}

#[test]
fn a_polling_server_serves_what_comes_exactly_at_the_period_start() {
    let mut grove = served(ServerKind::Polling, 10, 2);
    let lane = grove.run(&[2, LONG], 40);
    assert_eq!(lane, [(0, Some(1)), (10, Some(0)), (12, Some(1))]);
}

#[test]
fn a_sporadic_server_gets_back_one_period_after_the_use_began() {
    let mut grove = served(ServerKind::Sporadic, 3, 5);
    let lane = grove.run(&[5, LONG], 60);
    let expected = [
        (0, Some(1)),
        (3, Some(0)),
        (5, Some(1)),
        (13, Some(0)),
        (15, Some(1)),
        (23, Some(0)),
        (24, Some(1)),
    ];
    assert_eq!(lane, expected);
}

#[test]
fn a_constant_bandwidth_server_waits_for_its_deadline() {
    let mut grove = served(ServerKind::ConstantBandwidth, 4, 5);
    let lane = grove.run(&[5, LONG], 60);
    let expected = [
        (0, Some(1)),
        (4, Some(0)),
        (6, Some(1)),
        (14, Some(0)),
        (16, Some(1)),
        (24, Some(0)),
        (25, Some(1)),
    ];
    assert_eq!(lane, expected);
}

#[test]
fn the_budget_of_a_periodic_resource_passes_while_nothing_is_ready() {
    let mut grove = served(ServerKind::PeriodicResource, 11, 4);
    let lane = grove.run(&[4, LONG], 60);
    let expected = [
        (0, Some(1)),
        (11, Some(0)),
        (12, Some(1)),
        (20, Some(0)),
        (22, Some(1)),
        (30, Some(0)),
        (31, Some(1)),
    ];
    assert_eq!(lane, expected);
}

#[test]
fn budgets_are_reported_when_they_come_and_when_they_are_used_up() {
    let mut grove = served(ServerKind::Deferrable, 0, 5);
    let _ = grove.run(&[5, LONG], 40);
    assert_eq!(grove.budgets(), [(2, 0), (10, 2), (12, 0), (20, 2)]);
}

#[test]
fn a_shared_child_takes_what_is_there_at_its_priority() {
    let shared = |priority| terms(Grant::Shared, priority);
    let mut grove = Grove::new(
        FIXED,
        &[(0, FIXED, shared(2)), (0, PolicyKind::Fifo, shared(3))],
        &[
            (1, periodic(4, 100, 9)),
            (2, at(1, periodic(2, 100, 1))),
            (0, at(2, periodic(3, 100, 4))),
        ],
    );
    let lane = grove.run(&[4, 2, 3], 50);
    let expected = [
        (0, Some(0)),
        (1, Some(1)),
        (2, Some(2)),
        (5, Some(1)),
        (6, Some(0)),
        (9, None),
    ];
    assert_eq!(lane, expected);
}

#[test]
fn the_inner_server_and_every_server_above_it_pay() {
    let outer = terms(server(ServerKind::Deferrable, 4, 20), 2);
    let inner = terms(server(ServerKind::Deferrable, 3, 10), 2);
    let mut grove = Grove::new(
        FIXED,
        &[(0, FIXED, outer), (1, FIXED, inner)],
        &[(2, periodic(9, 100, 1))],
    );
    let lane = grove.run(&[9], 60);
    // The inner one gives 3 in every 10, the outer one 4 in every 20.
    let expected = [
        (0, Some(0)),
        (3, None),
        (10, Some(0)),
        (11, None),
        (20, Some(0)),
        (23, None),
        (30, Some(0)),
        (31, None),
        (40, Some(0)),
        (41, None),
    ];
    assert_eq!(lane, expected);
}

#[test]
fn under_a_deadline_parent_a_child_is_as_urgent_as_its_budget() {
    let edf = PolicyKind::EarliestDeadlineFirst;
    let mut grove = Grove::new(
        edf,
        &[(0, FIXED, terms(server(ServerKind::Deferrable, 5, 10), 0))],
        &[(1, periodic(8, 100, 1)), (0, periodic(6, 15, 1))],
    );
    let lane = grove.run(&[8, 6], 15);
    // Up to 10 the server's deadline is 10, earlier than 15; its second budget has deadline 20.
    let expected = [
        (0, Some(0)),
        (5, Some(1)),
        (11, Some(0)),
        (14, None),
        (15, Some(1)),
    ];
    assert_eq!(lane, expected);
}

#[test]
fn work_without_guarantees_is_charged_to_the_server_above_it() {
    let mut grove = Grove::new(
        FIXED,
        &[(0, FIXED, terms(server(ServerKind::Deferrable, 2, 10), 9))],
        &[
            (1, constraint(Class::Aperiodic, 1)),
            (1, at(1, periodic(1, 100, 1))),
            (0, periodic(50, 100, 1)),
        ],
    );
    let lane = grove.run(&[LONG, 1, 50], 15);
    // Below the real-time thread of its node, above the CPU's own, for 2 in every 10.
    let expected = [
        (0, Some(0)),
        (1, Some(1)),
        (2, Some(2)),
        (10, Some(0)),
        (12, Some(2)),
    ];
    assert_eq!(lane, expected);
}

#[test]
fn without_a_budget_above_it_work_without_guarantees_is_the_cpus() {
    let mut grove = Grove::new(
        FIXED,
        &[(0, FIXED, terms(Grant::Shared, 9))],
        &[
            (1, constraint(Class::Aperiodic, 1)),
            (0, periodic(5, 100, 1)),
        ],
    );
    let lane = grove.run(&[LONG, 5], 20);
    assert_eq!(lane, [(0, Some(1)), (5, Some(0))]);
}

#[test]
fn a_section_keeps_only_siblings_of_its_node_away() {
    let shared = terms(Grant::Shared, 1);
    let mut grove = Grove::new(
        FIXED,
        &[(0, FIXED, shared)],
        &[
            (1, periodic(10, 100, 1)),
            (1, at(2, periodic(1, 100, 2))),
            (0, at(4, periodic(3, 100, 2))),
        ],
    );
    let runs = |decision: punctual_kern::Decision| decision.next;
    let thread = |index| Next::Thread(ThreadId::new(index, 0));
    assert_eq!(runs(grove.at(0, Event::Tick)), thread(0));
    assert_eq!(runs(grove.at(1, Event::Protect)), thread(0));
    assert_eq!(
        runs(grove.at(2, Event::Tick)),
        thread(0),
        "the sibling waits"
    );
    assert_eq!(
        runs(grove.at(4, Event::Tick)),
        thread(2),
        "another node does not"
    );
    assert_eq!(runs(grove.at(7, Event::Complete)), thread(0), "still held");
    assert_eq!(runs(grove.at(8, Event::Unprotect)), thread(1));
}

#[test]
fn late_timers_never_give_a_server_more_than_its_rule() {
    for kind in ServerKind::ALL {
        let mut grove = served(kind, 0, LONG / 4);
        let _ = grove.at(0, Event::Tick);
        // The thread runs on for 25 because nobody entered in time; then timers are exact.
        let _ = grove.at(25, Event::Tick);
        let received = |grove: &Grove| {
            let job = grove.shard.job(ThreadId::new(0, 0)).unwrap();
            job.received.ticks()
        };
        let early = received(&grove);
        let _ = grove.run(&[LONG, LONG], 400);
        let total = received(&grove);
        assert!(early == 25, "{kind:?}");
        // 2 in every 10, and nothing on top for what it had taken before; one budget of slack.
        assert!((70..=82).contains(&total), "{kind:?}: {total}");
    }
}

#[test]
fn a_late_entry_takes_releases_and_budgets_in_the_order_in_which_they_were_due() {
    // The budget of the outer server passes from 10 on. Two reasons wake it in one late entry: a
    // new budget inside at 12, and a release.
    for (release, budget) in [(11, 5), (14, 4)] {
        let outer = terms(server(ServerKind::PeriodicResource, 6, 10), 2);
        let inner = terms(server(ServerKind::ConstantBandwidth, 3, 12), 2);
        let mut grove = Grove::new(
            FIXED,
            &[(0, FIXED, outer), (1, FIXED, inner)],
            &[
                (2, periodic(5, 100, 1)),
                (1, at(release, periodic(1, 100, 1))),
            ],
        );
        let _ = grove.at(0, Event::Tick);
        let _ = grove.at(3, Event::Tick);
        let _ = grove.at(15, Event::Tick);
        let now_there = grove.budgets().into_iter().filter(|(now, _)| *now == 15);
        assert_eq!(
            now_there.max_by_key(|(_, budget)| *budget),
            Some((15, budget))
        );
    }
}

#[test]
fn a_budget_that_debts_swallow_counts_from_when_there_is_one() {
    let class = Class::Sporadic {
        min_separation: Span::from_ticks(1_000),
        wcet: Work::from_ticks(10),
        relative_deadline: Span::from_ticks(1_000),
    };
    for (arrival, first) in [(125, 1), (131, 0)] {
        let inner = terms(server(ServerKind::Deferrable, 2, 10), 5);
        let mut grove = Grove::new(
            FIXED,
            &[(0, FIXED, inner)],
            &[(1, periodic(500, 1_000, 1)), (0, constraint(class, 5))],
        );
        let _ = grove.at(0, Event::Tick);
        // It owes 21 of what it took, and has a budget again from 130 on.
        let _ = grove.at(27, Event::Tick);
        let arrived = Event::Arrive {
            thread: ThreadId::new(1, 0),
            arrival: Instant::from_ticks(arrival),
        };
        let _ = grove.at(135, arrived);
        let running = grove.shard.running().map(ThreadId::index);
        assert_eq!(running, Some(first), "arrived at {arrival}");
    }
}
