//! Slices of time in other hands: what executes on them pays for them, and no time is made.

use std::collections::BTreeMap;

use punctual_generate::Dice;
use punctual_kern::{
    Event, Grant, Next, NodeId, NodeTerms, Plan, Planned, Refusal, Request, TraceEvent,
};
use punctual_model::{
    Frequency, Instant, PolicyKind, Priority, Server, ServerKind, Span, ThreadId, Work,
};

use punctual_policy::AnyPolicy;

use crate::driver::{id, periodic};
use crate::trees::{FIXED, Grove, node, server, terms};

const LONG: u64 = 1_000_000;

/// Of random histories, in ticks.
const UNIT: u64 = 100;

/// Node 1 on (4 in 10), node 2 on (2 in 10), node 3 shared; threads 0 to 2 at home there, thread 3
/// on the CPU, least urgent. Room for six slices.
fn grove(root: PolicyKind) -> Grove {
    grove_in(root, 1)
}

/// The same, and each unit of time has so many ticks. Shares are counted to a tick.
fn grove_in(root: PolicyKind, unit: u64) -> Grove {
    let of = |budget| server(ServerKind::Deferrable, budget * unit, 10 * unit);
    let own = |budget, priority| terms(of(budget), priority);
    let nodes = [
        (0, FIXED, own(4, 9)),
        (0, FIXED, own(2, 8)),
        (0, FIXED, terms(Grant::Shared, 7)),
    ];
    let endless = |priority| periodic(LONG / 2, LONG, priority);
    let threads = [(1, 1), (2, 1), (3, 1), (0, 1)].map(|(home, p)| (home, endless(p)));
    Grove::with_room(6, root, &nodes, &threads)
}

fn ask(grove: &mut Grove, now: u64, by: NodeId, request: Request) -> Result<(), Refusal> {
    let refused = grove.at(now, Event::Manage { by, request }).refused;
    refused.map_or(Ok(()), Err)
}

fn slice(to: NodeId, (budget, period): (u64, u64), priority: u32) -> NodeTerms {
    NodeTerms {
        receiver: Some(to),
        ..terms(server(ServerKind::Deferrable, budget, period), priority)
    }
}

/// The slice that `by` delegates now.
fn delegate(grove: &mut Grove, now: u64, by: NodeId, terms: NodeTerms) -> Result<NodeId, Refusal> {
    ask(grove, now, by, Request::Promote(terms))?;
    Ok(grove.shard.last_promoted().expect("promoted"))
}

fn bind(grove: &mut Grove, now: u64, by: NodeId, thread: ThreadId, to: NodeId) {
    let bound = ask(grove, now, by, Request::Grant { thread, to });
    assert_eq!(bound, Ok(()));
}

fn home(grove: &Grove, thread: u32) -> Option<NodeId> {
    grove.shard.tree().home(id(thread))
}

#[test]
fn another_policy_of_a_slice_knows_the_threads_that_are_bound_to_it() {
    let mut grove = grove(FIXED);
    let given = delegate(&mut grove, 0, node(1), slice(node(2), (1, 10), 5)).unwrap();
    bind(&mut grove, 0, node(2), id(1), given);
    let entities = grove.shard.tree().capacity().entities();
    let policy = PolicyKind::Fifo;
    let new = AnyPolicy::new(policy, entities, &[]);
    assert!(grove.shard.shelve(given, new).is_ok());
    let request = Request::Replace {
        node: given,
        policy,
    };
    assert_eq!(ask(&mut grove, 0, NodeId::ROOT, request), Ok(()));
    assert_eq!(grove.shard.running(), Some(id(1)));
}

#[test]
fn a_bound_thread_executes_on_its_slice_and_waits_until_it_comes_again() {
    let mut grove = grove(FIXED);
    let given = delegate(&mut grove, 0, node(1), slice(node(2), (1, 10), 5)).unwrap();
    assert_eq!(grove.shard.tree().receiver(given), Some(node(2)));
    bind(&mut grove, 0, node(2), id(1), given);
    assert_eq!(
        grove.shard.running(),
        Some(id(1)),
        "5 is more urgent than 1"
    );
    assert_eq!(grove.at(1, Event::Tick).next, Next::Thread(id(0)), "spent");
    // 4 in 10 for both together; node 2 has nobody ready on its own supply.
    assert_eq!(grove.at(4, Event::Tick).next, Next::Thread(id(2)));
    assert_eq!(grove.at(10, Event::Tick).next, Next::Thread(id(1)));
    // Its own scheduler blocks it and takes it back; the giver cannot.
    let revoke = Request::Revoke { thread: id(1) };
    let not_mine = Err(Refusal::NotItsOwn(id(1)));
    assert_eq!(ask(&mut grove, 10, node(1), revoke), not_mine);
    assert_eq!(ask(&mut grove, 10, node(2), revoke), Ok(()));
    assert_eq!(home(&grove, 1), Some(node(2)));
}

#[test]
fn a_slice_is_taken_back_with_all_that_was_delegated_from_it() {
    let mut grove = grove(FIXED);
    let first = delegate(&mut grove, 0, node(1), slice(node(2), (3, 10), 5)).unwrap();
    let second = delegate(&mut grove, 0, first, slice(node(3), (1, 10), 5)).unwrap();
    let other = delegate(&mut grove, 0, node(2), slice(node(3), (1, 10), 5)).unwrap();
    bind(&mut grove, 0, node(2), id(1), first);
    bind(&mut grove, 0, node(3), id(2), second);
    assert_eq!(ask(&mut grove, 1, node(1), Request::Demote(first)), Ok(()));
    assert_eq!(home(&grove, 1), Some(node(2)), "home, not to another slice");
    assert_eq!(home(&grove, 2), Some(node(3)));
    for gone in [first, second] {
        let again = ask(&mut grove, 1, node(1), Request::Demote(gone));
        assert_eq!(again, Err(Refusal::NoSuchNode(gone)));
    }
    // A scheduler that ends takes along the slices that it holds.
    bind(&mut grove, 1, node(3), id(2), other);
    assert_eq!(
        ask(&mut grove, 1, node(0), Request::Demote(node(3))),
        Ok(())
    );
    assert_eq!(home(&grove, 2), Some(NodeId::ROOT));
    let ended = TraceEvent::SchedulerEnded { node: other };
    assert!(grove.log.0.contains(&(1, ended)));
}

#[test]
fn nobody_delegates_more_than_it_has_nor_what_it_does_not_hold() {
    let mut grove = grove_in(FIXED, 100);
    let by = node(1);
    let _first = delegate(&mut grove, 0, by, slice(node(2), (300, 1_000), 5)).unwrap();
    let too_much = Err(Refusal::TooLittleBudget(by));
    assert_eq!(
        delegate(&mut grove, 0, by, slice(node(2), (110, 1_000), 5)),
        too_much
    );
    let rest = delegate(&mut grove, 0, by, slice(node(3), (200, 2_000), 5)).unwrap();
    let shared = delegate(&mut grove, 0, node(3), slice(by, (100, 1_000), 5));
    assert_eq!(
        shared,
        Err(Refusal::NotGrantable(node(3))),
        "its time is not its own"
    );
    let to_itself = delegate(&mut grove, 0, by, slice(by, (100, 10_000), 5));
    assert_eq!(to_itself, Err(Refusal::NotGrantable(by)));
    let no_scheduler = Err(Refusal::NotAScheduler(rest));
    let below = terms(server(ServerKind::Deferrable, 100, 10_000), 1);
    assert_eq!(delegate(&mut grove, 0, rest, below), no_scheduler);
    assert_eq!(
        delegate(&mut grove, 0, by, slice(rest, (100, 10_000), 5)),
        no_scheduler
    );
    // Somebody else's slice.
    let grant = Request::Grant {
        thread: id(1),
        to: rest,
    };
    let refused = ask(&mut grove, 0, node(2), grant);
    assert_eq!(refused, Err(Refusal::NotItsChild(rest)));
    let supply = Request::Supply {
        node: rest,
        supply: server(ServerKind::Deferrable, 100, 2_000),
    };
    // It would be full again within its period.
    let refilled = ask(&mut grove, 0, by, supply);
    assert_eq!(refilled, Err(Refusal::NotAScheduler(rest)));
}

#[test]
fn slices_that_fit_in_time_fit_in_the_ticks_of_any_clock() {
    type Terms = (u64, u64);
    let clocks = [2_499_998_200, 2_112_000_777, 24_000_001, 999_999_999];
    // Giver and slices in microseconds; each giver has delegated all that it has.
    let all: [(Terms, &[Terms]); 4] = [
        ((2_000, 10_000), &[(1_000, 10_000), (1_000, 10_000)]),
        ((2_000, 10_000), &[(3_000, 30_000), (100, 1_000)]),
        ((7, 21), &[(1_000, 9_000), (1_000, 9_000), (1_000, 9_000)]),
        ((1, 3), &[(10_000, 30_000)]),
    ];
    for (hertz, (giver, slices)) in clocks.iter().flat_map(|hz| all.map(|of| (hz, of))) {
        let clock = Frequency::try_new(*hertz).expect("a clock");
        let terms = |(budget, period): (u64, u64)| {
            let kind = ServerKind::Deferrable;
            let (budget, period) = (Work::from_us(budget), Span::from_us(period));
            let server = Server {
                kind,
                budget,
                period,
            };
            terms(Grant::Server(server.in_ticks(clock)), 5)
        };
        let nodes = [(0, FIXED, terms(giver)), (0, FIXED, terms((1, 10)))];
        let mut grove = Grove::with_room(6, FIXED, &nodes, &[]);
        let mut ask = |of| {
            let receiver = Some(node(2));
            let of = NodeTerms {
                receiver,
                ..terms(of)
            };
            delegate(&mut grove, 0, node(1), of).map(|_| ())
        };
        for slice in slices {
            assert_eq!(ask(*slice), Ok(()), "{slice:?} of {giver:?} at {clock:?}");
        }
        let more = ask((1_000, 10_000));
        assert_eq!(more, Err(Refusal::TooLittleBudget(node(1))));
    }
}

#[test]
fn what_a_slice_has_used_stays_used_when_it_ends_and_is_given_again() {
    let mut grove = grove(FIXED);
    let all = slice(node(2), (4, 10), 5);
    let first = delegate(&mut grove, 0, node(1), all).unwrap();
    bind(&mut grove, 0, node(2), id(1), first);
    let _ = grove.at(2, Event::Tick);
    assert_eq!(ask(&mut grove, 2, node(1), Request::Demote(first)), Ok(()));
    let again = delegate(&mut grove, 3, node(1), all);
    assert_eq!(again, Err(Refusal::TooLittleBudget(node(1))));
    let _ = grove.at(11, Event::Tick);
    assert!(delegate(&mut grove, 11, node(1), all).is_err());
    assert!(delegate(&mut grove, 12, node(1), all).is_ok());
}

#[test]
fn preemption_asks_everybody_who_had_a_say_in_both() {
    let mut grove = grove(FIXED);
    let high = delegate(&mut grove, 0, node(1), slice(node(2), (1, 10), 7)).unwrap();
    let low = delegate(&mut grove, 0, node(1), slice(node(3), (2, 10), 6)).unwrap();
    let onward = delegate(&mut grove, 0, low, slice(node(2), (1, 10), 9)).unwrap();
    let tree = grove.shard.tree();
    assert_eq!(tree.preempts(high, low), Ok(true));
    assert_eq!(tree.preempts(low, high), Ok(false));
    // Node 3 finds it 9, but node 1, which had a say in both, 6 against 7.
    assert_eq!(tree.preempts(onward, high), Ok(false));
    assert_eq!(tree.preempts(high, onward), Ok(true));
    // To the CPU, all that is below node 1 is as urgent as node 1.
    assert_eq!(tree.preempts(onward, node(2)), Ok(true));
    assert_eq!(tree.preempts(node(2), onward), Ok(false));
    assert_eq!(tree.preempts(high, high), Ok(false));
    bind(&mut grove, 0, node(2), id(1), high);
    assert_eq!(
        grove.shard.preempts(id(1), id(0)),
        Ok(false),
        "its home has no say above itself"
    );
    assert_eq!(grove.shard.preempts(id(1), id(2)), Ok(true));
}

#[test]
fn a_deadline_fits_into_what_a_scheduler_thinks_of_a_capability() {
    let mut grove = grove(PolicyKind::EarliestDeadlineFirst);
    let all = [(10, 1 << 40), (10, (1 << 40) + 1)];
    let [sooner, later] = all.map(|terms| {
        let given = delegate(&mut grove, 0, NodeId::ROOT, slice(node(1), terms, 0));
        given.unwrap()
    });
    assert_eq!(grove.shard.tree().preempts(sooner, later), Ok(true));
    assert_eq!(grove.shard.tree().preempts(later, sooner), Ok(false));
}

/// What each node, by its name, executed and was lent.
#[derive(Default)]
struct Account {
    budget: u64,
    period: u64,
    executed: u64,
    in_period: BTreeMap<u64, u64>,
    lent: u64,
    borrowed: u64,
}

#[derive(Default)]
struct Accounts(BTreeMap<NodeId, Account>);

impl Accounts {
    fn open(&mut self, node: NodeId, supply: Grant) {
        if let Grant::Server(server) = supply {
            let account = Account {
                budget: server.budget.ticks(),
                period: server.period.ticks(),
                ..Account::default()
            };
            let _ = self.0.insert(node, account);
        }
    }

    /// One unit of a thread at home at `node`.
    fn execute(&mut self, grove: &Grove, now: u64, node: NodeId) {
        let tree = grove.shard.tree();
        let above = std::iter::successors(Some(node), |&at| tree.parent(at));
        for at in above {
            let Some(account) = self.0.get_mut(&at) else {
                continue;
            };
            account.executed += UNIT;
            *account.in_period.entry(now / account.period).or_default() += UNIT;
            // Whatever came before: one budget per period, and what siblings went without.
            let most = account.budget + account.borrowed;
            assert!(
                account.in_period[&(now / account.period)] <= most,
                "{at:?} at {now}"
            );
            let all = (now / account.period + 1) * account.budget + account.borrowed;
            assert!(account.executed + account.lent <= all, "{at:?} at {now}");
        }
    }
}

/// Everything that schedulers and holders of slices can ask, in any order.
fn history(seed: u64) -> [u64; 6] {
    let mut dice = Dice::new(seed);
    let mut grove = grove_in(FIXED, UNIT);
    let mut accounts = Accounts::default();
    for (place, budget) in [(1, 4), (2, 2)] {
        accounts.open(
            node(place),
            server(ServerKind::Deferrable, budget * UNIT, 10 * UNIT),
        );
    }
    let mut nodes = vec![NodeId::ROOT, node(1), node(2), node(3)];
    let mut done = [0; 6];
    for now in (0..120).map(|unit| unit * UNIT) {
        for _ in 0..dice.below(3) {
            let [by, to] = [(); 2].map(|()| nodes[dice.index(nodes.len())]);
            let thread = id(dice.small(4));
            let work = Work::from_ticks((1 + dice.below(2)) * UNIT);
            let (budget, period) = (
                (1 + dice.below(3)) * UNIT,
                [5, 10, 20][dice.index(3)] * UNIT,
            );
            let given = slice(to, (budget, period), 1 + dice.small(8));
            let kind = usize::try_from(dice.below(6)).expect("small");
            let request = match kind {
                0 => Request::Promote(given),
                1 => Request::Grant { thread, to },
                2 => Request::Revoke { thread },
                // Schedulers stay: who is left would do nothing.
                3 | 5 if grove.shard.tree().receiver(to).is_none() => continue,
                3 => Request::Demote(to),
                5 => Request::Supply {
                    node: to,
                    supply: given.supply,
                },
                _ => Request::Lend { to, work },
            };
            let refused = ask(&mut grove, now, by, request).err();
            // Nobody fills a slice again within its period.
            done[kind] += u64::from(refused == (kind == 5).then_some(Refusal::NotAScheduler(to)));
            if refused.is_some() {
                continue;
            }
            match request {
                Request::Promote(terms) => {
                    let made = grove.shard.last_promoted().expect("promoted");
                    accounts.open(made, terms.supply);
                    nodes.push(made);
                }
                Request::Lend { to, work } => {
                    accounts.0.get_mut(&by).expect("a server").lent += work.ticks();
                    accounts.0.get_mut(&to).expect("a server").borrowed += work.ticks();
                }
                _ => {}
            }
        }
        if let Next::Thread(thread) = grove.at(now, Event::Tick).next {
            let at = grove.shard.tree().home(thread).expect("a home");
            accounts.execute(&grove, now, at);
        }
    }
    done
}

#[test]
fn no_sequence_of_operations_makes_time() {
    let mut done = [0; 6];
    for seed in 0..1_000 {
        for (sum, n) in done.iter_mut().zip(history(seed)) {
            *sum += n;
        }
    }
    let words = [
        "delegated",
        "bound",
        "unbound",
        "taken back",
        "lent",
        "refused",
    ];
    for (n, word) in done.into_iter().zip(words) {
        assert!(n > 500, "{word} {n} times");
    }
}

#[test]
fn priorities_of_slices_order_them_among_what_their_giver_orders() {
    let mut grove = grove(FIXED);
    let given = delegate(&mut grove, 0, node(1), slice(node(2), (2, 10), 0)).unwrap();
    bind(&mut grove, 0, node(2), id(1), given);
    assert_eq!(
        grove.shard.running(),
        Some(id(0)),
        "1 is more urgent than 0"
    );
    assert_eq!(Priority::new(0), Priority::LOWEST);
}

/// The last change of a plan delegates (300 in 1,000), where (200 in 1,000) of (400 in 1,000) came
/// back at 300.
#[test]
fn a_planned_delegation_waits_until_a_slice_that_was_taken_back_counts_no_more() {
    let mut grove = grove_in(FIXED, 100);
    let given = delegate(&mut grove, 0, node(1), slice(node(2), (200, 1_000), 5)).unwrap();
    let more = Event::Manage {
        by: node(1),
        request: Request::Promote(slice(node(2), (300, 1_000), 5)),
    };
    let step = |at, event| Planned {
        change: 0,
        at: Instant::from_ticks(at),
        quiet: Vec::new(),
        events: vec![event],
    };
    let back = Event::Manage {
        by: node(1),
        request: Request::Demote(given),
    };
    let mut plan = Plan::new(vec![step(300, back), step(400, more)]);
    let mut carry = |grove: &mut Grove, now| {
        let event = plan.next(Instant::from_ticks(now), &grove.shard);
        if let Some(event) = event {
            let decision = grove.at(now, event);
            assert_eq!(decision.refused, None, "at {now}");
            plan.hear(&decision);
        }
        (event.is_some(), plan.due().map(Instant::ticks))
    };
    let _ = grove.at(300, Event::Tick);
    assert_eq!(carry(&mut grove, 300), (true, Some(400)));
    let _ = grove.at(400, Event::Tick);
    assert_eq!(
        carry(&mut grove, 400),
        (false, Some(1_300)),
        "one period on"
    );
    let _ = grove.at(1_299, Event::Tick);
    assert_eq!(carry(&mut grove, 1_299), (false, Some(1_300)));
    let _ = grove.at(1_300, Event::Tick);
    assert_eq!(carry(&mut grove, 1_300), (true, None));
}

/// Each of (150 in 1,000) fits beside (200 in 1,000) that came back at 300, and both do not.
#[test]
fn slices_of_one_change_wait_together() {
    let mut grove = grove_in(FIXED, 100);
    let given = delegate(&mut grove, 0, node(1), slice(node(2), (200, 1_000), 5)).unwrap();
    let _ = grove.at(300, Event::Tick);
    assert_eq!(
        ask(&mut grove, 300, node(1), Request::Demote(given)),
        Ok(())
    );
    let half = |priority| Event::Manage {
        by: node(1),
        request: Request::Promote(slice(node(2), (150, 1_000), priority)),
    };
    let mut plan = Plan::new(vec![Planned {
        change: 0,
        at: Instant::from_ticks(400),
        quiet: Vec::new(),
        events: vec![half(5), half(6)],
    }]);
    let _ = grove.at(400, Event::Tick);
    assert_eq!(plan.next(Instant::from_ticks(400), &grove.shard), None);
    assert_eq!(plan.due(), Some(Instant::from_ticks(1_300)));
    let _ = grove.at(1_300, Event::Tick);
    for _ in 0..2 {
        let event = plan.next(Instant::from_ticks(1_300), &grove.shard);
        let decision = grove.at(1_300, event.expect("both"));
        assert_eq!(decision.refused, None);
        plan.hear(&decision);
    }
    assert_eq!((plan.due(), plan.waits()), (None, false));
}
