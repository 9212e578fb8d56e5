//! Plans in execution: early ends, holes in time, requests, kills

use std::collections::BTreeMap;

use punctual_generate::Dice;
use punctual_model::{Mode, Span, Work};
use punctual_planner::{Ask, Book, Capacities, Search, Segment, Segments, Use};

use crate::common::{at, segment};

const CPUS: usize = 3;
const CAPACITIES: Capacities = Capacities::new(60, CPUS, 3);

/// A segment as a dispatcher knows it.
#[derive(Clone, Debug)]
struct Row {
    segment: Segment,
    start: u64,
    needs: Vec<u64>,
    uses: Vec<Use>,
    /// CPU and number of those that it comes after.
    after: Vec<(usize, u64)>,
}

type Table = BTreeMap<(usize, u64), Row>;

fn table(book: &Book) -> Table {
    let (segments, order) = (book.segments(), book.order());
    let key = |number: usize| (book.placements()[number].cpu, order.number(number));
    let row = |(number, segment): (usize, &Segment)| {
        let before = (0..segments.len())
            .filter(|&one| segments.successors(one).any(|after| after == number));
        let row = Row {
            segment: *segment,
            start: book.placements()[number].start.ticks(),
            needs: order.needs(number).to_vec(),
            uses: segments.uses(number).to_vec(),
            after: before.map(key).collect(),
        };
        (key(number), row)
    };
    segments.iter().enumerate().map(row).collect()
}

/// One segment in execution.
#[derive(Clone, Debug)]
struct Running {
    row: Row,
    left: u64,
}

/// How an execution differs from its plan.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Differs {
    /// Segments end early.
    Early,
    /// The same, and CPUs lose time.
    Holes,
}

#[derive(Default, Debug)]
struct Counts {
    executed: u32,
    started_early: u32,
    started_late: u32,
    held_back: u32,
    accepted: u32,
    refused: u32,
}

/// Dispatchers that read one table, in steps of a tick.
struct World {
    dice: Dice,
    differs: Differs,
    now: u64,
    done: Vec<u64>,
    running: Vec<Option<Running>>,
    table: Table,
    /// From a request until its cutoff: no segment behind that starts early.
    pending: Option<u64>,
    counts: Counts,
}

impl World {
    fn new(seed: u64, differs: Differs) -> World {
        World {
            dice: Dice::new(seed),
            differs,
            now: 0,
            done: vec![0; CPUS],
            running: vec![None; CPUS],
            table: Table::new(),
            pending: None,
            counts: Counts::default(),
        }
    }

    /// Each CPU executes for a tick, unless it loses that.
    fn step(&mut self, book: &mut Book) {
        for cpu in 0..CPUS {
            if self.start(cpu) {
                book.started(cpu, self.done[cpu], at(self.now));
            }
        }
        for cpu in 0..CPUS {
            let lost = self.differs == Differs::Holes && self.dice.one_in(10);
            let Some(running) = self.running[cpu].as_mut().filter(|_| !lost) else {
                continue;
            };
            running.left -= 1;
            if running.left == 0 {
                self.running[cpu] = None;
                self.done[cpu] += 1;
                book.done(cpu, self.done[cpu]);
                self.counts.executed += 1;
            }
        }
        self.now += 1;
    }

    /// Starts what is next on a CPU, if it may.
    fn start(&mut self, cpu: usize) -> bool {
        let key = (cpu, self.done[cpu]);
        let Some(row) = self.table.get(&key).filter(|_| self.running[cpu].is_none()) else {
            return false;
        };
        let needs = row.needs.iter().zip(&self.done);
        if !needs.clone().all(|(need, done)| need <= done) {
            return false;
        }
        let early = row.start > self.now;
        if early && self.pending.is_some_and(|cutoff| row.start >= cutoff) {
            self.counts.held_back += 1;
            return false;
        }
        // Not even the release of the group is passed.
        if row.segment.release.ticks() > self.now {
            return false;
        }
        self.judge(key, row);
        self.counts.started_early += u32::from(early);
        self.counts.started_late += u32::from(row.start < self.now);
        let wcet = row.segment.wcet.ticks();
        let left = [wcet, 1 + self.dice.below(wcet)][self.dice.index(2)];
        let row = row.clone();
        self.running[cpu] = Some(Running { row, left });
        true
    }

    /// A segment that starts: nobody who executes excludes it, and its predecessors are done.
    fn judge(&self, key: (usize, u64), row: &Row) {
        let now = self.now;
        for other in self.running.iter().flatten() {
            for used in &other.row.uses {
                let mut own = row.uses.iter().filter(|own| own.resource == used.resource);
                let conflict =
                    own.any(|own| own.mode == Mode::Exclusive || used.mode == Mode::Exclusive);
                assert!(!conflict, "at {now}: {key:?} {row:?} beside {other:?}");
            }
        }
        for &(cpu, number) in &row.after {
            assert!(number < self.done[cpu], "at {now}: {key:?} {row:?}");
        }
        if self.differs == Differs::Early {
            assert!(now <= row.start, "at {now}: {key:?} starts late: {row:?}");
        }
    }
}

fn group(dice: &mut Dice, now: u64) -> Segments {
    let mut segments = Segments::new(CAPACITIES);
    for number in 0..1 + dice.index(5) {
        let (release, wcet) = (now + dice.below(30), 1 + dice.below(12));
        let own = segment(release, wcet, release + wcet + dice.below(120));
        let modes = [
            None,
            Some(Mode::Shared),
            Some(Mode::Shared),
            Some(Mode::Exclusive),
        ];
        let uses: Vec<Use> = (0..3)
            .filter_map(|resource| {
                let mode = modes[dice.index(4)]?;
                dice.one_in(2).then_some(Use { resource, mode })
            })
            .collect();
        assert_eq!(segments.push(own, &uses), Ok(number));
        if number > 0 && dice.one_in(2) {
            assert_eq!(segments.precede(dice.index(number), number), Ok(()));
        }
    }
    segments
}

fn execute(seed: u64, differs: Differs) -> Counts {
    let mut world = World::new(seed, differs);
    let mut book: Book = Book::told(CAPACITIES);
    let mut waiting = Vec::new();
    while world.now < 600 {
        if world.now < 400 && world.dice.one_in(8) {
            waiting.push(group(&mut world.dice, world.now));
        }
        if world.pending.is_some_and(|cutoff| cutoff <= world.now) {
            world.pending = None;
            world.table = table(&book);
        }
        if world.pending.is_none()
            && let Some(group) = waiting.pop()
        {
            let ask = Ask::new(at(world.now), Span::from_ticks(3), Search::default());
            let answer = book.ask(&ask, &group, |_| false);
            world.counts.accepted += u32::from(answer.is_ok());
            world.counts.refused += u32::from(answer.is_err());
            world.pending = Some(book.cutoff().ticks());
        }
        world.step(&mut book);
    }
    let left = world
        .table
        .keys()
        .filter(|&&(cpu, number)| number >= world.done[cpu]);
    assert_eq!(
        left.count(),
        0,
        "seed {seed}: all that is guaranteed executes"
    );
    world.counts
}

fn total(differs: Differs) -> Counts {
    let mut total = Counts::default();
    for seed in 0..400 {
        let counts = execute(seed, differs);
        total.executed += counts.executed;
        total.started_early += counts.started_early;
        total.started_late += counts.started_late;
        total.held_back += counts.held_back;
        total.accepted += counts.accepted;
        total.refused += counts.refused;
    }
    total
}

#[test]
fn early_ends_never_make_any_start_later_than_planned() {
    let total = total(Differs::Early);
    assert_eq!(total.started_late, 0);
    let counts = [total.executed, total.started_early, total.held_back];
    assert!(counts.iter().all(|&count| count > 1_000), "{total:?}");
    assert!(total.accepted > 1_000 && total.refused > 500, "{total:?}");
}

#[test]
fn a_hole_in_time_makes_a_plan_late_and_never_wrong() {
    let total = total(Differs::Holes);
    assert!(total.started_late > 1_000, "{total:?}");
    assert!(total.executed > 1_000, "{total:?}");
}

#[test]
fn the_dead_are_taken_out_when_it_is_planned_next_and_their_handlers_stay() {
    let capacities = Capacities::new(10, 1, 1);
    let mut book: Book = Book::told(capacities);
    let mut victim = Segments::new(capacities);
    let named = |group| Segment {
        group,
        ..segment(0, 10, 1_000)
    };
    for number in 0..4 {
        assert_eq!(victim.push(named(1), &[]), Ok(number));
        assert!(number == 0 || victim.precede(number - 1, number).is_ok());
    }
    // A handler behind the first segment, and one behind the second.
    assert_eq!(victim.set_cleanup(1, Work::from_ticks(4), &[]), Ok(()));
    assert_eq!(victim.set_cleanup(2, Work::from_ticks(4), &[]), Ok(()));
    let other = |group| {
        let mut other = Segments::new(capacities);
        assert_eq!(other.push(named(group), &[]), Ok(0));
        other
    };
    let groups = |book: &Book| -> Vec<(u32, u64)> {
        let of = |segment: &Segment| segment.group;
        let starts = book.placements().iter().map(|place| place.start.ticks());
        book.segments().iter().map(of).zip(starts).collect()
    };
    let ask = |now| Ask::new(at(now), Span::from_ticks(2), Search::default());
    assert!(book.ask(&ask(0), &victim, |_| false).is_ok());
    assert!(book.ask(&ask(2), &other(2), |_| false).is_ok());
    let whole = [(1, 2), (1, 12), (1, 22), (1, 32), (2, 42)];
    assert_eq!(groups(&book), whole);
    // Killed while the first one executes: what comes behind it is its handler.
    assert!(book.ask(&ask(5), &other(3), |group| group == 1).is_ok());
    assert_eq!(groups(&book), [(1, 2), (1, 12), (2, 22), (3, 32)]);
    // Killed before its start: nothing is left, also of its handlers.
    assert!(book.ask(&ask(8), &other(4), |group| group == 3).is_ok());
    assert_eq!(groups(&book), [(1, 2), (1, 12), (2, 22), (4, 32)]);
    // The first one ends early. What the dead have left is planned with.
    book.done(0, 1);
    assert!(book.ask(&ask(9), &other(5), |group| group == 2).is_ok());
    assert_eq!(groups(&book), [(1, 12), (4, 22), (5, 32)]);
}

#[test]
fn a_handler_needs_no_more_than_the_segment_in_whose_place_it_executes() {
    let mut segments = Segments::new(CAPACITIES);
    let uses = |mode| [Use { resource: 0, mode }];
    assert_eq!(
        segments.push(segment(0, 10, 99), &uses(Mode::Shared)),
        Ok(0)
    );
    let work = Work::from_ticks;
    let mut admits = |wcet, uses: &[Use]| segments.set_cleanup(0, work(wcet), uses);
    assert_eq!(admits(11, &[]), Err(work(10)));
    assert_eq!(admits(10, &uses(Mode::Exclusive)), Err(work(10)));
    assert_eq!(admits(10, &uses(Mode::Shared)), Ok(()));
    assert_eq!(segments.cleanup(0), work(10));
}

#[test]
fn a_dependent_child_is_planned_with_its_parent_behind_one_boundary() {
    let capacities = Capacities::new(10, 2, 0);
    let chain = |group: u32, wcets: &[u64], deadline| {
        let mut chain = Segments::new(capacities);
        for (number, &wcet) in wcets.iter().enumerate() {
            let own = Segment {
                group,
                ..segment(0, wcet, deadline)
            };
            assert_eq!(chain.push(own, &[]), Ok(number));
            assert!(number == 0 || chain.precede(number - 1, number).is_ok());
        }
        chain
    };
    let (mut parent, grandchild) = (chain(0, &[10, 20], 100), chain(2, &[3], 60));
    let mut child = chain(1, &[5, 6], 50);
    assert_eq!(child.attach(&grandchild, 0), Ok(2));
    assert_eq!(parent.attach(&child, 0), Ok(2));
    assert!(parent.attach(&child, 9).is_err());
    let plan = |set: &Segments| {
        let mut book: Book = Book::new(capacities);
        let done = book.request(at(0), Span::ZERO, set, &Search::default());
        done.map(|_| {
            let places = book.placements().iter();
            places.map(|place| place.start.ticks()).collect::<Vec<_>>()
        })
    };
    // The child is behind the first segment, and its child behind the child's first. Both are more
    // urgent than the rest of the parent.
    assert_eq!(plan(&parent), Ok(vec![0, 18, 10, 15, 15]));
    // Together or not at all.
    let mut parent = chain(0, &[10, 20], 100);
    assert_eq!(parent.attach(&chain(1, &[5, 6], 20), 0), Ok(2));
    assert!(plan(&parent).is_err());
}
