//! The short way through an entry of a tree leads where the long one leads.

use punctual_kern::{
    Constraint, Decision, Entry, Event, FastOutcome, Grant, Next, NodeId, NodeTerms, Request,
    ResourceTerms,
};
use punctual_model::{AtBudgetEnd, Instant, PolicyKind, Protocol, Span, ThreadId, Work};

use crate::driver::id;
use crate::fast_path::Told;
use crate::histories::{random_constraint, random_event};
use crate::lock_histories::{random_lock, random_use};
use crate::locks::resource;
use crate::tree_histories::{POLICIES, index, random_grove, random_request, random_terms};
use crate::trees::{Grove, node, terms};
use punctual_generate::Dice;

/// Two equal trees: one takes the short way where it is open, the other never does.
struct Both {
    fast: Grove,
    slow: Grove,
    seed: u64,
    now: u64,
    deciding: Option<NodeId>,
    /// How many entries took the short way, and by how many of those the processor changed hands.
    taken: u64,
    switched: u64,
}

impl Both {
    fn new(seed: u64, dice: &mut Dice, grove: impl Fn(&mut Dice) -> Grove) -> Both {
        let fast = grove(&mut dice.clone());
        Both {
            fast,
            slow: grove(dice),
            seed,
            now: 0,
            deciding: None,
            taken: 0,
            switched: 0,
        }
    }

    /// One entry on both; everything that they tell and decide is the same.
    fn enter(&mut self, event: Event) -> Decision {
        let (seed, now) = (self.seed, self.now);
        let at = Instant::from_ticks(now);
        let (mut short, mut long) = (Told::default(), Told::default());
        let ran = self.fast.shard.running();
        let a = match self.fast.shard.handle_in_tree(at, &event, &mut short) {
            Some(FastOutcome { next, arm, stamp }) => {
                if let Next::Thread(thread) = next {
                    assert_eq!(stamp, self.fast.shard.job_stamp(thread));
                }
                self.taken += 1;
                self.switched += u64::from(ran != self.fast.shard.running());
                let refused = None;
                Decision { next, arm, refused }
            }
            None => self
                .fast
                .shard
                .handle_slowly(Entry::at(at, &event), &mut short),
        };
        let b = self
            .slow
            .shard
            .handle_slowly(Entry::at(at, &event), &mut long);
        assert_eq!(a, b, "seed {seed} at {now}: {event:?}");
        assert_eq!(short, long, "seed {seed} at {now}: {event:?}");
        let counted = |grove: &Grove| (grove.shard.counters(), grove.shard.unsettled());
        assert_eq!(
            counted(&self.fast),
            counted(&self.slow),
            "seed {seed} at {now}"
        );
        assert_eq!(self.fast.shard.check(), Ok(()), "seed {seed} at {now}");
        self.deciding = match a.next {
            Next::RunChild(child) => Some(child),
            _ => None,
        };
        a
    }

    /// A request to the tree, or a child's answer.
    fn request(&mut self, dice: &mut Dice) -> Event {
        if dice.below(6) == 0 {
            let mut place = || node(u16::try_from(dice.below(7)).unwrap());
            let (by, to) = (place(), place());
            let work = Work::from_ticks(dice.below(5));
            let request = Request::Lend { to, work };
            return Event::Manage { by, request };
        }
        let mut same = dice.clone();
        let event = random_request(dice, &mut self.fast, self.deciding, self.now);
        let again = random_request(&mut same, &mut self.slow, self.deciding, self.now);
        assert_eq!(event, again);
        event
    }

    /// Time goes on, as a rule not beyond the instant that the decision named.
    fn pass_time(&mut self, dice: &mut Dice, arm: Option<Instant>, mostly: u64) {
        let free = dice.below(mostly);
        let until = arm.map_or(free, |at| at.ticks().saturating_sub(self.now));
        let is_late = dice.below(25) == 0;
        self.now += if is_late { 4 * free } else { free.min(until) };
    }
}

/// What threads do: most often they yield, wait, wake each other, or nothing.
fn random_step(dice: &mut Dice, running: Option<ThreadId>, now: u64) -> Event {
    let thread = id(u32::try_from(dice.below(6)).unwrap());
    match dice.below(10) {
        0..=2 => Event::Yield,
        3 => Event::Tick,
        4 => Event::Block { until: None },
        5 | 6 => Event::Wake(thread),
        _ => random_event(dice, running, now),
    }
}

/// A tree of any supplies and policies, that changes now and then.
fn history(seed: u64, changes: u64) -> (u64, u64) {
    let mut dice = Dice::new(seed);
    let mut both = Both::new(seed, &mut dice, |dice| random_grove(dice).0);
    for _ in 0..300 {
        let event = match dice.below(12) < changes {
            true => both.request(&mut dice),
            false => random_step(&mut dice, both.fast.shard.running(), both.now),
        };
        let arm = both.enter(event).arm;
        both.pass_time(&mut dice, arm, 5);
    }
    (both.taken, both.switched)
}

fn total(histories: impl Iterator<Item = (u64, u64)>) -> (u64, u64) {
    histories.fold((0, 0), |(taken, switched), (a, b)| {
        (taken + a, switched + b)
    })
}

#[test]
fn both_ways_through_an_entry_of_a_tree_report_and_decide_the_same() {
    let (taken, switched) = total((0..2_000).map(|seed| history(seed, 0)));
    assert!(taken > 50_000, "only {taken} of 600,000 took the short way");
    assert!(switched > 10_000, "only {switched} of them switched");
}

#[test]
fn both_ways_are_one_while_a_tree_is_changed_lent_and_decided_by_its_children() {
    let (taken, _) = total((0..2_000).map(|seed| history(seed, 4)));
    assert!(taken > 20_000, "only {taken} of 600,000 took the short way");
}

const FRAME: u64 = 40;

/// Slots of three schedulers in a frame: whose, from when, how long.
fn slots(dice: &mut Dice) -> Vec<(u16, u64, u64)> {
    let slot = |slot: u64| {
        let owner = 1 + u16::try_from(dice.below(3)).unwrap();
        (owner, 10 * slot, 4 + dice.below(7))
    };
    (0..4).map(slot).collect()
}

/// A frame with slots of three schedulers, with any supply below them.
fn slotted(dice: &mut Dice) -> Grove {
    let root = PolicyKind::Tdm {
        frame: Span::from_ticks(FRAME),
        scheduling: Span::ZERO,
    };
    let slots = slots(dice);
    let mut nodes: Vec<(u16, PolicyKind, NodeTerms)> = (1..=3)
        .map(|priority| (0, POLICIES[index(dice, 5)], terms(Grant::Slots, priority)))
        .collect();
    for _ in 0..dice.below(3) {
        let parent = 1 + u16::try_from(index(dice, nodes.len())).unwrap();
        nodes.push((parent, POLICIES[index(dice, 5)], random_terms(dice).0));
    }
    let threads: Vec<(u16, Constraint)> = (0..6)
        .map(|_| {
            let home = 1 + u16::try_from(index(dice, nodes.len())).unwrap();
            (home, random_constraint(dice))
        })
        .collect();
    Grove::with_slots(1, (root, &slots), &nodes, &threads)
}

#[test]
fn both_ways_are_one_in_slots_and_in_servers_below_slots() {
    let slots = |seed| {
        let mut dice = Dice::new(seed);
        let mut both = Both::new(seed, &mut dice, slotted);
        for _ in 0..300 {
            let event = random_step(&mut dice, both.fast.shard.running(), both.now);
            let arm = both.enter(event).arm;
            both.pass_time(&mut dice, arm, 5);
        }
        (both.taken, both.switched)
    };
    let (taken, switched) = total((0..1_500).map(slots));
    assert!(taken > 20_000, "only {taken} of 450,000 took the short way");
    assert!(switched > 2_500, "only {switched} of them switched");
}

/// The owner of the slot that an instant is in.
fn owner_at(slots: &[(u16, u64, u64)], now: u64) -> Option<u16> {
    let offset = now % FRAME;
    let inside = |(_, at, length): &&(u16, u64, u64)| (*at..at + length).contains(&offset);
    slots.iter().find(inside).map(|(owner, ..)| *owner)
}

/// Below which child of the root a thread is queued.
fn child_of(grove: &Grove, thread: ThreadId) -> u16 {
    let tree = grove.shard.tree();
    let mut at = grove.queue_of(thread);
    while let Some(above) = tree.parent(node(at)).filter(|above| above.index() > 0) {
        at = u16::try_from(above.index()).unwrap();
    }
    at
}

/// Threads that keep others of their scheduler away: within its slots, and no longer.
#[test]
fn a_thread_that_protects_itself_keeps_its_slot_and_takes_no_other() {
    let (mut taken, mut kept, mut cut) = (0, 0, 0);
    for seed in 0..1_500 {
        let mut dice = Dice::new(seed);
        let slots = slots(&mut dice.clone());
        let mut both = Both::new(seed, &mut dice, slotted);
        let mut protected = None;
        for _ in 0..300 {
            let running = both.fast.shard.running();
            let event = match dice.below(8) {
                0 | 1 => Event::Protect,
                2 => Event::Unprotect,
                3 => Event::Wake(id(u32::try_from(dice.below(6)).unwrap())),
                4 | 5 => Event::Tick,
                _ => random_step(&mut dice, running, both.now),
            };
            let told = both.enter(event);
            let next = both.fast.shard.running();
            match event {
                Event::Protect if told.refused.is_none() => protected = running,
                Event::Tick | Event::Wake(_) => {}
                _ => protected = None,
            }
            let owner = owner_at(&slots, both.now);
            if let Some(thread) = next {
                let (child, now) = (child_of(&both.fast, thread), both.now);
                assert_eq!(owner, Some(child), "seed {seed} at {now}");
            }
            if let Some(thread) = protected {
                kept += u64::from(next == protected);
                cut += u64::from(owner != Some(child_of(&both.fast, thread)));
            }
            both.pass_time(&mut dice, told.arm, 5);
        }
        taken += both.taken;
    }
    assert!(taken > 20_000, "only {taken} of 450,000 took the short way");
    assert!(kept > 10_000, "only {kept} times was a slot kept");
    assert!(cut > 1_000, "only {cut} times did a slot end first");
}

/// A tree in which some threads share resources, whose sections overrun budgets or wait for them.
fn with_resources(dice: &mut Dice) -> Grove {
    let mut grove = random_grove(dice).0;
    for number in 0..3 {
        let terms = ResourceTerms {
            at_budget_end: [AtBudgetEnd::Overrun, AtBudgetEnd::CheckFirst][index(dice, 2)],
            common: NodeId::ROOT,
            ..resource(Protocol::ALL[index(dice, 5)], 9)
        };
        let _ = grove.shard.add_resource(terms);
        for thread in 0..6 {
            if dice.below(3) == 0 {
                let terms = random_use(dice, number);
                grove.shard.declare_use(id(thread), terms).unwrap();
            }
        }
    }
    grove
}

#[test]
fn both_ways_are_one_with_sections_that_overrun_budgets_or_wait_for_them() {
    let sections = |seed| {
        let mut dice = Dice::new(seed);
        let mut both = Both::new(seed, &mut dice, with_resources);
        for _ in 0..300 {
            let event = match dice.below(4) {
                0 => random_lock(&mut dice, both.now),
                _ => random_step(&mut dice, both.fast.shard.running(), both.now),
            };
            let arm = both.enter(event).arm;
            both.pass_time(&mut dice, arm, 5);
        }
        (both.taken, both.switched)
    };
    let (taken, _) = total((0..1_500).map(sections));
    assert!(taken > 20_000, "only {taken} of 450,000 took the short way");
}
