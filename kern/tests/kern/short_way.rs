//! The short way through an entry leads where the long one leads.

use punctual_kern::{
    Attributes, Band, Capacity, Choice, Decision, Event, Hierarchy, NodeId, OneLevel, Refusal,
    Shard, Sink, TraceEvent,
};
use punctual_model::{Instant, PolicyKind, Span, ThreadId, Work};
use punctual_policy::AnyPolicy;

use crate::histories::{Dice, random_constraint, random_event};

/// One level that does not say so: every entry takes the long way.
struct LongWay(OneLevel<AnyPolicy>);

impl Hierarchy for LongWay {
    fn attach(&mut self, thread: ThreadId, home: NodeId) -> Result<(), Refusal> {
        self.0.attach(thread, home)
    }
    fn detach(&mut self, thread: ThreadId) {
        self.0.detach(thread);
    }
    fn wake(&mut self, now: Instant, since: Instant, t: ThreadId, a: &Attributes, band: Band) {
        self.0.wake(now, since, t, a, band);
    }
    fn block(&mut self, now: Instant, thread: ThreadId, band: Band) {
        self.0.block(now, thread, band);
    }
    fn update(&mut self, thread: ThreadId, attributes: &Attributes, band: Band) {
        self.0.update(thread, attributes, band);
    }
    fn renew(&mut self, thread: ThreadId, attributes: &Attributes, band: Band) {
        self.0.renew(thread, attributes, band);
    }
    fn yield_now(&mut self, thread: ThreadId, band: Band) {
        self.0.yield_now(thread, band);
    }
    fn charge<S: Sink>(&mut self, now: Instant, t: ThreadId, band: Band, work: Work, s: &mut S) {
        self.0.charge(now, t, band, work, s);
    }
    fn hold(&mut self, thread: ThreadId, band: Band) {
        self.0.hold(thread, band);
    }
    fn release(&mut self, thread: ThreadId) {
        self.0.release(thread);
    }
    fn holds(&self, thread: ThreadId) -> bool {
        self.0.holds(thread)
    }
    fn pick(&mut self, now: Instant) -> Choice {
        self.0.pick(now)
    }
}

/// Everything that a shard tells.
#[derive(Default, PartialEq, Debug)]
struct Told {
    events: Vec<(Instant, Event)>,
    traces: Vec<(Instant, TraceEvent)>,
    decisions: Vec<(Instant, Decision)>,
}

impl Sink for Told {
    fn event(&mut self, now: Instant, event: &Event) {
        self.events.push((now, *event));
    }
    fn trace(&mut self, now: Instant, event: TraceEvent) {
        self.traces.push((now, event));
    }
    fn decision(&mut self, now: Instant, decision: &Decision) {
        self.decisions.push((now, *decision));
    }
}

const POLICIES: [PolicyKind; 5] = [
    PolicyKind::FixedPriority { preemptive: true },
    PolicyKind::FixedPriority { preemptive: false },
    PolicyKind::EarliestDeadlineFirst,
    PolicyKind::Fifo,
    PolicyKind::RoundRobin {
        timeslice: Span::from_ticks(3),
    },
];

/// Both ways side by side; returns how many entries could take the short one.
fn history(seed: u64) -> u32 {
    let kind = POLICIES[usize::try_from(seed % 5).unwrap()];
    let mut dice = Dice(seed);
    let mut capacity = Capacity::for_threads(8);
    capacity.background_turn = Span::from_ticks(4);
    let one_level = || OneLevel::new(capacity, AnyPolicy::new(kind, capacity.entities(), []));
    let mut short = Shard::new(capacity, one_level());
    let mut long = Shard::new(capacity, LongWay(one_level()));
    for _ in 0..6 {
        let constraint = random_constraint(&mut dice);
        let _ = short.attach(constraint).unwrap();
        let _ = long.attach(constraint).unwrap();
    }
    let (mut now, mut taken) = (0, 0);
    for _ in 0..300 {
        let event = random_event(&mut dice, short.running(), now);
        let at = Instant::from_ticks(now);
        let (mut from_short, mut from_long) = (Told::default(), Told::default());
        let calm = short.handle_calmly(at, &event, &mut from_short);
        taken += u32::from(calm.is_some());
        let a = match calm {
            Some((next, arm)) => Decision {
                next,
                arm,
                refused: None,
            },
            None => short.handle(at, event, &mut from_short),
        };
        let b = long.handle(at, event, &mut from_long);
        assert_eq!(a, b, "seed {seed}, {kind:?} at {now}: {event:?}");
        assert_eq!(from_short, from_long, "seed {seed}, {kind:?} at {now}");
        assert_eq!(long.handle_calmly(at, &Event::Tick, &mut from_long), None);
        let free = 1 + dice.below(6);
        let until = a.arm.map_or(free, |at| at.ticks().saturating_sub(now));
        now += free.min(until);
    }
    taken
}

#[test]
fn both_ways_through_an_entry_tell_and_decide_the_same() {
    let taken: u32 = (0..2_000).map(history).sum();
    assert!(taken > 50_000, "only {taken} of 600,000 entries were calm");
}
