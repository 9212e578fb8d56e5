//! Chains across locks of a file and locks of a runtime: priority is inherited along them alike.

use punctual_generate::Dice;
use punctual_kern::{Ceiling, Event, Next, Refusal, State, TraceEvent, UseTerms, WaitOrder};
use punctual_model::{Class, Instant, Mode, OnOverrun, Priority, Protocol, Span, ThreadId, Work};

use crate::contended::random_wait;
use crate::driver::{Driver, constraint, id, periodic};
use crate::histories::{random_constraint, random_entry, random_event};
use crate::lock_histories::{random_lock, random_use};
use crate::locks::{a_use, lock, resource, unlock};

const KEY: u32 = 7;
const BLOCK: Event = Event::Block { until: None };

fn block_on(holder: u32, until: Option<u64>) -> Event {
    Event::BlockOn {
        holder: id(holder),
        key: KEY,
        until: until.map(Instant::from_ticks),
    }
}

fn lock_until(resource: u32, until: u64) -> Event {
    Event::Lock {
        resource,
        mode: Mode::Exclusive,
        until: Some(Instant::from_ticks(until)),
    }
}

fn hand(from: u32, to: u32) -> Event {
    Event::HandOver {
        key: KEY,
        from: id(from),
        to: id(to),
    }
}

/// Thread k has priority k+1 and arrives at 10·k; all of them use one resource for 50 ticks.
fn four() -> Driver {
    let constraints: Vec<_> = (0..4_u32)
        .map(|k| {
            let mut c = periodic(500, 5_000, k + 1);
            c.phase = Span::from_ticks(u64::from(k) * 10);
            c
        })
        .collect();
    let mut d = Driver::new(&constraints);
    let number = d.shard.add_resource(resource(Protocol::Inheritance, 4));
    for thread in 0..4 {
        d.shard.declare_use(id(thread), a_use(number, 50)).unwrap();
    }
    d
}

/// 0 holds the resource, 1 waits for it, and 3 blocks on 1; 2 is ready from tick 20 on.
fn file_below_runtime() -> Driver {
    let mut d = four();
    assert_eq!(d.runs(0, Event::Tick), Some(0));
    assert_eq!(d.runs(1, lock(0)), Some(0));
    assert_eq!(d.runs(10, Event::Tick), Some(1));
    assert_eq!(d.runs(11, lock(0)), Some(0));
    assert_eq!(d.runs(20, Event::Tick), Some(2));
    assert_eq!(d.runs(30, Event::Tick), Some(3));
    assert_eq!(d.runs(31, block_on(1, Some(45))), Some(0), "through 1");
    d
}

/// 1 holds the resource and blocks on 0; 3 waits for the resource; 2 is ready from tick 20 on.
fn runtime_below_file() -> Driver {
    let mut d = four();
    assert_eq!(d.runs(0, Event::Tick), Some(0));
    assert_eq!(d.runs(10, Event::Tick), Some(1));
    assert_eq!(d.runs(11, lock(0)), Some(1));
    assert_eq!(d.runs(12, block_on(0, None)), Some(0));
    assert_eq!(d.runs(20, Event::Tick), Some(2));
    assert_eq!(d.runs(30, Event::Tick), Some(3));
    assert_eq!(d.runs(31, lock_until(0, 45)), Some(0), "through 1");
    d
}

#[test]
fn a_waiter_for_a_lock_of_the_runtime_is_inherited_through_a_resource() {
    let mut d = file_below_runtime();
    assert!(d.shard.goes_before(id(0), id(2)) && !d.shard.goes_before(id(3), id(1)));
    assert_eq!(d.runs(35, unlock(0)), Some(1), "which 3 waits for");
    assert!(d.shard.goes_before(id(2), id(0)));
    assert_eq!(d.runs(36, hand(1, 3)), Some(3));
    assert_eq!(d.runs(37, Event::Complete), Some(2));
    assert!(d.shard.goes_before(id(2), id(1)));
}

#[test]
fn a_waiter_for_a_resource_is_inherited_through_a_lock_of_the_runtime() {
    let mut d = runtime_below_file();
    assert!(d.shard.goes_before(id(0), id(2)) && d.shard.goes_before(id(1), id(2)));
    assert_eq!(d.runs(35, hand(0, 1)), Some(1));
    assert!(d.shard.goes_before(id(2), id(0)));
    assert_eq!(d.runs(36, unlock(0)), Some(3));
    assert!(d.shard.holds(id(3), 0) && d.shard.goes_before(id(2), id(1)));
}

#[test]
fn a_timeout_at_the_end_of_a_mixed_chain_is_felt_at_its_other_end() {
    for mut d in [file_below_runtime(), runtime_below_file()] {
        assert_eq!(d.runs(44, Event::Tick), Some(0));
        assert_eq!(d.runs(45, Event::Tick), Some(3));
        assert!(d.shard.goes_before(id(2), id(0)));
        assert!(!d.shard.goes_before(id(1), id(0)), "1 waits as before");
        assert_eq!(d.runs(46, Event::Complete), Some(2));
    }
}

#[test]
fn a_thread_that_ends_in_the_middle_of_a_mixed_chain_passes_nothing_on() {
    let mut d = file_below_runtime();
    assert_eq!(d.runs(35, Event::Kill(id(1))), Some(2));
    assert_eq!(
        d.shard.state(id(3)),
        State::Blocked,
        "its runtime's business"
    );
    assert!(d.shard.goes_before(id(2), id(0)));
    assert_eq!(d.runs(36, Event::Wake(id(3))), Some(3));

    let mut d = runtime_below_file();
    assert_eq!(d.runs(35, Event::Kill(id(1))), Some(3), "has the resource");
    assert!(d.shard.holds(id(3), 0) && d.shard.goes_before(id(2), id(0)));
}

#[test]
fn a_holder_that_ends_leaves_no_priority_behind() {
    let mut d = runtime_below_file();
    assert_eq!(d.runs(35, Event::Kill(id(0))), Some(2));
    assert_eq!(d.shard.state(id(1)), State::Blocked);
    let refused = d.at(36, hand(0, 1)).refused;
    assert_eq!(refused, Some(Refusal::StaleThread(id(0))));
    // Who comes to the place of the dead holds nothing.
    let _ = d.at(37, Event::Create(periodic(500, 5_000, 1)));
    let new = d.shard.last_created().unwrap();
    assert_eq!(new.index(), 0);
    assert!(d.shard.goes_before(id(2), new));
    assert_eq!(d.runs(45, Event::Tick), Some(3));
}

#[test]
fn a_ceiling_is_inherited_from_a_waiter_along_a_mixed_chain() {
    let mut d = four();
    assert_eq!(d.runs(0, Event::Tick), Some(0));
    assert_eq!(d.runs(1, lock(0)), Some(0));
    assert_eq!(d.runs(10, Event::Tick), Some(1));
    let ceiling = Ceiling {
        priority: Priority::new(9),
        absolute_deadline: Instant::from_ticks(1),
    };
    assert_eq!(d.raised(11, Some(ceiling), lock(0)), Some(0));
    assert_eq!(d.runs(20, Event::Tick), Some(0));
    assert_eq!(d.runs(30, Event::Tick), Some(0), "as urgent as the ceiling");
    assert_eq!(d.runs(31, unlock(0)), Some(1));
    assert_eq!(d.raised(32, None, Event::Tick), Some(3));
}

#[test]
fn a_section_that_lapses_is_cut_out_of_a_mixed_chain() {
    let mut d = file_below_runtime();
    let armed = d.at(40, Event::Tick).arm.unwrap().ticks();
    // 11 before 1 came, and what it has had since 31.
    assert_eq!(armed, 45, "the timeout of 3 comes first");
    assert_eq!(d.runs(45, Event::Tick), Some(3));
    assert_eq!(d.runs(46, block_on(1, None)), Some(0));
    let mut now = 46;
    loop {
        let arm = d.at(now, Event::Tick).arm.unwrap().ticks();
        if d.shard.running() != Some(id(0)) {
            break;
        }
        now = arm;
    }
    assert_eq!(d.shard.running(), Some(id(2)));
    let overran = |e: &(u64, TraceEvent)| matches!(e.1, TraceEvent::SectionOverran { .. });
    assert!(d.log.0.iter().any(overran));
    assert!(!d.shard.goes_before(id(3), id(1)), "1 inherits still");
}

#[test]
fn a_circle_of_mixed_locks_is_refused_from_either_side() {
    let mut d = four();
    assert_eq!(d.runs(0, Event::Tick), Some(0));
    assert_eq!(d.runs(1, lock(0)), Some(0));
    assert_eq!(d.runs(10, Event::Tick), Some(1));
    assert_eq!(d.runs(11, lock(0)), Some(0));
    let refused = d.at(12, block_on(1, None)).refused;
    assert_eq!(refused, Some(Refusal::Deadlock(KEY)));

    let mut d = four();
    assert_eq!(d.runs(0, Event::Tick), Some(0));
    assert_eq!(d.runs(10, Event::Tick), Some(1));
    assert_eq!(d.runs(11, lock(0)), Some(1));
    assert_eq!(d.runs(12, block_on(0, None)), Some(0));
    assert_eq!(d.at(13, lock(0)).refused, Some(Refusal::Deadlock(0)));
}

#[test]
fn a_demoted_holder_is_real_time_again_while_a_real_time_thread_waits_for_it_by_a_chain() {
    let mut low = periodic(5, 1_000, 1);
    low.on_overrun = OnOverrun::Demote;
    let mut high = periodic(100, 1_000, 3);
    high.phase = Span::from_ticks(20);
    let free = |priority| constraint(Class::Aperiodic, priority);
    let mut d = Driver::new(&[low, free(9), high, free(1)]);
    let number = d.shard.add_resource(resource(Protocol::Inheritance, 3));
    for thread in 0..4 {
        d.shard.declare_use(id(thread), a_use(number, 50)).unwrap();
    }
    assert_eq!(d.runs(0, Event::Tick), Some(0));
    assert_eq!(d.runs(5, Event::Tick), Some(1), "0 is demoted");
    assert_eq!(d.runs(6, BLOCK), Some(3), "equal, and first");
    assert_eq!(d.runs(7, lock(0)), Some(3));
    assert_eq!(d.runs(8, block_on(0, None)), Some(0));
    assert_eq!(d.runs(9, Event::Wake(id(1))), Some(1));
    assert_eq!(d.runs(20, Event::Tick), Some(2));
    assert_eq!(d.runs(21, lock(0)), Some(0), "for 3, for which 2 waits");
    assert_eq!(d.runs(22, hand(0, 3)), Some(3));
    assert_eq!(d.runs(23, unlock(0)), Some(2));
    assert_eq!(d.runs(24, Event::Complete), Some(1));
}

#[test]
fn where_threads_take_turns_a_background_holder_is_real_time_while_a_real_time_thread_waits() {
    let mut high = periodic(100, 1_000, 3);
    high.phase = Span::from_ticks(10);
    let free = |priority| constraint(Class::Aperiodic, priority);
    let mut d = Driver::new(&[free(1), free(9), high]);
    d.shard.set_wait_order(WaitOrder::Fifo);
    assert_eq!(d.runs(0, Event::Tick), Some(1));
    assert_eq!(d.runs(1, BLOCK), Some(0));
    assert_eq!(d.runs(10, Event::Tick), Some(2));
    assert_eq!(d.runs(11, block_on(0, None)), Some(0));
    assert_eq!(d.runs(12, Event::Wake(id(1))), Some(0), "which 2 waits for");
    assert_eq!(d.runs(13, hand(0, 2)), Some(2));
    assert_eq!(d.runs(14, Event::Complete), Some(1));
}

#[test]
fn a_lock_that_is_handed_to_a_thread_that_waits_for_a_resource_closes_no_circle() {
    let mut d = file_below_runtime();
    // 3 waits for 1, which waits for the resource of 0: what 1 held cannot be 0's waiter's.
    assert_eq!(d.runs(32, hand(1, 1)), Some(2));
    assert!(d.shard.goes_before(id(2), id(0)), "nobody inherits from 3");
    assert_eq!(d.runs(45, Event::Tick), Some(3));
}

const THREADS: usize = 6;
const RESOURCES: u32 = 3;
/// Locks by the order in which they are taken: the even ones are resources, the odd ones the
/// runtime's.
const LOCKS: usize = 6;

fn is_resource(lock: usize) -> bool {
    lock.is_multiple_of(2)
}

fn small(n: usize) -> u32 {
    u32::try_from(n).unwrap()
}

/// A runtime and its threads: what each holds and waits for, told from what it did and the trace.
struct World {
    d: Driver,
    own: Vec<u32>,
    holds: Vec<Vec<usize>>,
    waits: Vec<Option<usize>>,
    steps: Vec<u32>,
    seen: usize,
    longest: usize,
}

impl World {
    fn new(dice: &mut Dice) -> World {
        let own: Vec<u32> = (0..THREADS).map(|_| small(dice.index(10))).collect();
        let constraints = own.iter().zip(0_u32..).map(|(&priority, order)| {
            let mut c = periodic(300, 600, priority);
            (c.order, c.phase) = (order, Span::from_ticks(dice.below(60)));
            c
        });
        let mut d = Driver::new(&constraints.collect::<Vec<_>>());
        for _ in 0..RESOURCES {
            let number = d.shard.add_resource(resource(Protocol::Inheritance, 9));
            for thread in 0..THREADS {
                let terms = UseTerms {
                    length: Work::from_ticks(200),
                    ..a_use(number, 1)
                };
                d.shard.declare_use(id(small(thread)), terms).unwrap();
            }
        }
        World {
            d,
            own,
            holds: vec![Vec::new(); THREADS],
            waits: vec![None; THREADS],
            steps: vec![0; THREADS],
            seen: 0,
            longest: 0,
        }
    }

    /// What the trace tells of resources. (A lock of the runtime goes to whom it is handed.)
    fn follow(&mut self) {
        for (_, event) in &self.d.log.0[self.seen..] {
            match *event {
                TraceEvent::Locked {
                    thread, resource, ..
                } => {
                    self.waits[thread.index()] = None;
                    self.holds[thread.index()].push(2 * resource as usize);
                }
                TraceEvent::Unlocked { thread, resource } => {
                    self.holds[thread.index()].retain(|held| *held != 2 * resource as usize);
                }
                TraceEvent::Waits {
                    thread, resource, ..
                } => self.waits[thread.index()] = Some(2 * resource as usize),
                TraceEvent::Woken { thread, .. } => self.waits[thread.index()] = None,
                _ => {}
            }
        }
        self.seen = self.d.log.0.len();
    }

    fn effective(&self) -> Vec<u32> {
        let mut all = self.own.clone();
        for _ in 0..THREADS {
            for thread in 0..THREADS {
                for (waiter, waits) in self.waits.iter().enumerate() {
                    if waits.is_some_and(|lock| self.holds[thread].contains(&lock)) {
                        all[thread] = all[thread].max(all[waiter]);
                    }
                }
            }
        }
        all
    }

    fn holder_of(&self, lock: usize) -> Option<usize> {
        self.holds.iter().position(|holds| holds.contains(&lock))
    }

    /// How many waits one after the other begin with this thread, and whether both kinds are there.
    fn chain_of(&self, thread: usize) -> (usize, bool) {
        let (mut at, mut length) = (thread, 0);
        let (mut files, mut runtimes) = (false, false);
        while let Some(lock) = self.waits[at] {
            files |= is_resource(lock);
            runtimes |= !is_resource(lock);
            length += 1;
            let Some(holder) = self.holder_of(lock) else {
                break;
            };
            at = holder;
        }
        (length, files && runtimes)
    }

    /// What the running thread does next: locks in the order of the numbers, unlocks in any order.
    fn next_of(&mut self, dice: &mut Dice, runs: ThreadId, now: u64) -> Event {
        let thread = runs.index();
        let above = self.holds[thread].iter().map(|held| held + 1).max();
        let above = above.unwrap_or(0);
        self.steps[thread] += 1;
        let over = self.steps[thread] > 8;
        if !over && dice.below(4) == 0 {
            let until = Some(Instant::from_ticks(now + dice.below(60)));
            return Event::Block { until };
        }
        if !over && above < LOCKS && dice.below(3) > 0 {
            return self.take(thread, above + dice.index((LOCKS - above).min(2)));
        }
        if !self.holds[thread].is_empty() {
            let held = self.holds[thread][dice.index(self.holds[thread].len())];
            return self.give_back(thread, held);
        }
        if over {
            self.steps[thread] = 0;
            return Event::Complete;
        }
        Event::Tick
    }

    fn take(&mut self, thread: usize, lock_number: usize) -> Event {
        if is_resource(lock_number) {
            return lock(small(lock_number / 2));
        }
        let Some(holder) = self.holder_of(lock_number) else {
            self.holds[thread].push(lock_number);
            return Event::Tick;
        };
        self.waits[thread] = Some(lock_number);
        Event::BlockOn {
            holder: id(small(holder)),
            key: small(lock_number),
            until: None,
        }
    }

    fn give_back(&mut self, thread: usize, held: usize) -> Event {
        if is_resource(held) {
            return unlock(small(held / 2));
        }
        self.holds[thread].retain(|lock| *lock != held);
        let effective = self.effective();
        let waiters = (0..THREADS).filter(|&other| self.waits[other] == Some(held));
        let Some(to) = waiters.max_by_key(|&waiter| effective[waiter]) else {
            return Event::Tick;
        };
        self.waits[to] = None;
        self.holds[to].push(held);
        Event::HandOver {
            key: small(held),
            from: id(small(thread)),
            to: id(small(to)),
        }
    }
}

/// Returns the jobs done, and the longest chain in which both kinds of lock were.
fn orderly(seed: u64) -> (usize, usize) {
    let mut dice = Dice::new(seed);
    let mut world = World::new(&mut dice);
    let (mut now, mut event) = (0, Event::Tick);
    for _ in 0..500 {
        let decision = world.d.at(now, event);
        assert_eq!(decision.refused, None, "seed {seed}");
        world.follow();
        let effective = world.effective();
        let is_ready = |thread: &usize| {
            let state = world.d.shard.state(id(small(*thread)));
            matches!(state, State::Ready | State::Running | State::Woken)
        };
        let most = (0..THREADS).filter(is_ready);
        let most = most.map(|thread| effective[thread]).max();
        let runs = match decision.next {
            Next::Thread(thread) => Some(effective[thread.index()]),
            _ => None,
        };
        assert_eq!(runs, most, "seed {seed} at {now}");
        for thread in 0..THREADS {
            let (length, mixed) = world.chain_of(thread);
            world.longest = world.longest.max(length * usize::from(mixed));
        }
        let armed = decision.arm.map_or(1, |at| at.ticks().saturating_sub(now));
        let step = (1 + dice.below(4)).min(armed.max(1));
        now += step;
        event = match world.d.shard.running() {
            Some(runs) if step < armed => world.next_of(&mut dice, runs, now),
            _ => Event::Tick,
        };
    }
    let done = |(_, e): &&(u64, TraceEvent)| matches!(e, TraceEvent::Completed { .. });
    (world.d.log.0.iter().filter(done).count(), world.longest)
}

#[test]
fn the_highest_effective_priority_runs_whatever_locks_the_chains_go_through() {
    let (mut done, mut long) = (0, 0);
    for seed in 0..1_000 {
        let (jobs, longest) = orderly(seed);
        done += jobs;
        long += usize::from(longest >= 3);
    }
    assert!(done > 5_000, "only {done} jobs in all histories");
    assert!(long > 40, "only {long} histories with a long mixed chain");
}

/// Any events in any order, with both kinds of lock: `check` is called at every exit.
#[test]
fn no_history_of_mixed_locks_breaks_an_invariant() {
    let (mut waits, mut blocks) = (0, 0);
    for seed in 0..1_000 {
        let mut dice = Dice::new(seed);
        let mut d = Driver::new(&[]);
        for order in 0..6 {
            let mut c = random_constraint(&mut dice);
            c.order = order;
            let _ = d.shard.attach(c).unwrap();
        }
        for number in 0..4 {
            let protocol = Protocol::ALL[dice.index(5)];
            let _ = d.shard.add_resource(resource(protocol, 9));
            for thread in 0..6 {
                let terms = random_use(&mut dice, number);
                d.shard.declare_use(id(thread), terms).unwrap();
            }
        }
        let mut now = 0;
        for _ in 0..300 {
            let event = match dice.below(4) {
                0 => random_event(&mut dice, d.shard.running(), now),
                1 => random_wait(&mut dice, now),
                _ => random_lock(&mut dice, now),
            };
            let decision = d.enter(&random_entry(&mut dice, now, &event));
            let is_wait = matches!(event, Event::BlockOn { .. });
            blocks += u32::from(is_wait && decision.refused.is_none());
            now += dice.below(4);
        }
        let waited = |(_, e): &&(u64, TraceEvent)| matches!(e, TraceEvent::Waits { .. });
        waits += d.log.0.iter().filter(waited).count();
    }
    assert!(
        waits > 1_000 && blocks > 1_000,
        "{waits} and {blocks} waits"
    );
}
