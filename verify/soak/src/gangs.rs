//! Rounds of gangs: they join, are admitted, refused, changed and left, and members die in between.
//!
//! On two CPUs each lane goes through gangs, one after the other: a thread on either CPU creates
//! the members there, and ends the doomed one. All members of a gang do the same operations, whose
//! values everybody can tell beforehand.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use punctual_gang_thread::{Broken, Correction, Form, Gang, Member, NotAll, Options, Waiting, Why};
use punctual_generate::Random;
use punctual_model::{Instant, Machine, Ns, PolicyKind, Span, System, Work};
use punctual_thread::sync::Semaphore;
use punctual_thread::{Constraint, Finished, Guarantee, Runtime, StartError, thread};
use punctual_trace::{Header, Log, Recorder};

use crate::Cli;
use crate::field::{Round, now};
use crate::fly::{RECORDER_BYTES, Report, count, judged};

/// Every round with such a number is one of gangs.
const EVERY: u64 = 4;
/// Gangs at a time, and one after the other in each lane.
const LANES: usize = 3;
const GENERATIONS: usize = 60;
const CPUS: usize = 2;
/// A panic that is meant to be.
pub(crate) const LAST_WORDS: &str = "a member's last words";
/// No place yet.
const NOWHERE: usize = usize::MAX;
/// A thread looks so often whether something has come.
const LOOK: Span<Ns> = Span::from_us(100);
/// The longest time that a thread waits for another one of the round.
const PATIENCE: Span<Ns> = Span::from_ms(60_000);

/// Whether the round of a seed is one of gangs.
pub(crate) fn is_one(seed: u64, hosts: &[u32]) -> bool {
    seed % EVERY == EVERY - 1 && hosts.len() >= CPUS
}

/// How the doomed member of a gang ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Lives,
    Panics,
    Leaves,
    /// By the thread that created it, at any instant.
    Killed,
    /// It is silent for longer than the limit.
    Late,
}

/// An operation of a gang.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Act {
    Barrier,
    Elect,
    Sum,
    Broadcast,
    /// Period and work in microseconds.
    Admit(u64, u64),
    GiveBack,
}

/// One gang, as all of its members know it.
struct Crew {
    gang: Gang,
    each: usize,
    acts: Vec<Act>,
    correction: Correction,
    fate: Fate,
    /// The CPU of the doomed one, and the act before which it ends.
    doomed: (usize, usize),
    limit: Span<Ns>,
    /// The place of the doomed one, once it has joined.
    place: AtomicUsize,
    /// By act: members for which it was done, refused, broken.
    ends: Vec<[AtomicU64; 3]>,
    /// Members that were created, and those that came to an end.
    created: AtomicU64,
    ended: AtomicU64,
}

/// Everything that both CPUs of a round share.
struct Shared {
    round: &'static Round,
    lanes: Vec<Vec<Crew>>,
    /// By lane: so many gangs may begin, and whether these are all.
    begun: Vec<AtomicUsize>,
    over: Vec<AtomicUsize>,
}

fn draw(random: &mut Random, name: &str) -> Result<Crew, String> {
    let each = random.index(2) + 1;
    let fates = [Fate::Panics, Fate::Leaves, Fate::Killed, Fate::Late];
    let fate = match random.happens(450) {
        true => Fate::Lives,
        false => fates[random.index(fates.len())],
    };
    let limit = match fate {
        Fate::Late => Span::from_ms(20),
        _ => Span::from_ms(20_000),
    };
    let act = |random: &mut Random| match random.below(8) {
        0 => Act::Barrier,
        1 => Act::Elect,
        2 => Act::Sum,
        3 => Act::Broadcast,
        4 => Act::GiveBack,
        _ => {
            let period = 1_000 * random.within(2, 10);
            // One in five cannot be admitted.
            let share = if random.happens(200) {
                97
            } else {
                random.within(2, 14)
            };
            Act::Admit(period, period * share / 100)
        }
    };
    let acts: Vec<Act> = (0..random.within(2, 6)).map(|_| act(random)).collect();
    let corrections = [
        Correction::None,
        Correction::ByOrder(Span::from_us(5)),
        Correction::Agreed(Span::from_us(500)),
    ];
    let form = if random.happens(500) {
        Form::Tree
    } else {
        Form::Linear
    };
    let options = Options {
        form,
        waiting: Waiting::Sleep(Span::from_us(random.within(20, 150))),
        limit,
    };
    let gang = Gang::create(name, CPUS * each, options);
    Ok(Crew {
        gang: gang.map_err(|error| format!("gang {name}: {error}"))?,
        each,
        correction: corrections[random.index(corrections.len())],
        fate,
        doomed: (random.index(CPUS), random.index(acts.len())),
        limit,
        place: AtomicUsize::new(NOWHERE),
        ends: acts.iter().map(|_| Default::default()).collect(),
        acts,
        created: AtomicU64::new(0),
        ended: AtomicU64::new(0),
    })
}

/// The value of a member in an act: everybody can tell it.
fn value(place: usize, act: usize) -> u64 {
    let mixed = (place as u64 + 1).wrapping_mul(0x9e37_79b9) ^ (act as u64 * 0x85eb_ca6b);
    mixed % 100_000
}

impl Crew {
    fn members(&self) -> usize {
        CPUS * self.each
    }

    /// The life of a member, up to the end of the gang or its own.
    fn live(&self, is_doomed: bool, shared: &Shared) {
        let Ok(mut member) = self.gang.join() else {
            // Another one has ended it already.
            return;
        };
        if is_doomed {
            self.place.store(member.place(), Ordering::SeqCst);
        }
        for (at, act) in self.acts.iter().enumerate() {
            if is_doomed && at == self.doomed.1 {
                match self.fate {
                    // Without the hook: nobody is to be told.
                    Fate::Panics => std::panic::resume_unwind(Box::new(LAST_WORDS)),
                    Fate::Leaves => return,
                    Fate::Late => thread::sleep(Span::from_ns(5 * self.limit.as_ns())),
                    Fate::Lives | Fate::Killed => {}
                }
            }
            let end = match self.act(&mut member, *act, at) {
                Ok(true) => 0,
                Ok(false) => 1,
                Err(broken) => {
                    self.judge_break(broken, shared.round);
                    2
                }
            };
            self.ends[at][end].fetch_add(1, Ordering::SeqCst);
            shared.round.operations.fetch_add(1, Ordering::Relaxed);
            if end == 2 {
                return;
            }
        }
        // Nobody leaves before all are through.
        if let Err(broken) = member.barrier() {
            self.judge_break(broken, shared.round);
        }
    }

    /// Whether it was done, not refused.
    fn act(&self, member: &mut Member, act: Act, at: usize) -> Result<bool, Broken> {
        let (place, all) = (member.place(), self.members());
        let values = (0..all).map(|place| value(place, at));
        let (found, right) = match act {
            Act::Barrier => {
                member.barrier()?;
                (0, 0)
            }
            Act::Elect => {
                let bid = |place| u32::try_from(value(place, at)).unwrap_or(0);
                let highest = (0..all).rev().max_by_key(|place| bid(*place));
                let elected = member.elect(bid(place))?;
                (elected as u64, highest.unwrap_or(0) as u64)
            }
            Act::Sum => {
                let sum = member.reduce(value(place, at), |a, b| a + b)?;
                (sum, values.sum())
            }
            Act::Broadcast => {
                let root = at % all;
                (member.broadcast(root, value(place, at))?, value(root, at))
            }
            Act::GiveBack => {
                member.give_back();
                (0, 0)
            }
            Act::Admit(period, work) => {
                let (period, work) = (Span::from_us(period), Work::from_us(work));
                let constraint = Constraint::reservation(period, work).priority(45);
                return match member.admit(constraint, self.correction) {
                    Ok(_) => Ok(true),
                    Err(NotAll::Refused(_)) => Ok(false),
                    Err(NotAll::Broken(broken)) => Err(broken),
                };
            }
        };
        assert_eq!(found, right, "{act:?} of member {place} of {all}");
        Ok(true)
    }

    /// A gang is broken by its doomed member, and by nobody else.
    fn judge_break(&self, broken: Broken, round: &Round) {
        let doomed = self.place.load(Ordering::SeqCst);
        let fits = match self.fate {
            Fate::Lives => false,
            // With so short a limit any member may have been late.
            Fate::Late => true,
            Fate::Panics => broken.member == doomed && broken.why == Why::Panicked,
            Fate::Leaves => broken.member == doomed && broken.why == Why::Left,
            Fate::Killed => broken.member == doomed,
        };
        if !fits {
            let (fate, limit) = (self.fate, self.limit);
            round.note(format!(
                "a gang is broken by {broken:?}; its member {doomed} {fate:?}, limit {limit:?}"
            ));
        }
    }

    /// After all of its members have ended.
    fn settle(&self, name: &str, round: &Round) -> [u64; 3] {
        let count = |cell: &AtomicU64| cell.load(Ordering::SeqCst);
        let (created, ended) = (count(&self.created), count(&self.ended));
        if created != ended {
            round.note(format!("{name}: {created} members, {ended} ended"));
        }
        let mut sums = [0; 3];
        for (act, ends) in self.acts.iter().zip(&self.ends) {
            let ends = [0, 1, 2].map(|end| count(&ends[end]));
            let together = ends.iter().filter(|count| **count > 0).count() <= 1;
            // To give back is nobody else's business.
            if !together && *act != Act::GiveBack {
                let [done, refused, broken] = ends;
                round.note(format!(
                    "{name}: {act:?} was done for {done}, refused to {refused}, broken for {broken}"
                ));
            }
            if matches!(act, Act::Admit(..)) {
                sums[0] += u64::from(ends[0] > 0);
                sums[1] += u64::from(ends[1] > 0);
            }
            sums[2] += u64::from(ends[2] > 0);
        }
        sums
    }
}

/// Creates the members of a gang on this CPU, and sees to their ends.
fn lead(shared: &Arc<Shared>, (cpu, lane, generation): (usize, usize, usize), dice: &mut Random) {
    let crew = &shared.lanes[lane][generation];
    let mut threads = Vec::new();
    for number in 0..crew.each {
        let is_doomed = crew.fate != Fate::Lives && crew.doomed.0 == cpu && number == 0;
        let all = Arc::clone(shared);
        let body = move || all.lanes[lane][generation].live(is_doomed, &all);
        let constraint = Constraint::aperiodic(1 + u32::try_from(dice.below(30)).unwrap_or(0));
        match thread::spawn("member", constraint, body) {
            Ok(thread) => {
                crew.created.fetch_add(1, Ordering::SeqCst);
                threads.push((thread, is_doomed));
            }
            Err(error) => shared
                .round
                .note(format!("no thread for a member: {error}")),
        }
    }
    for (mut thread, is_doomed) in threads {
        if is_doomed && crew.fate == Fate::Killed {
            let mut looks = 0;
            while crew.place.load(Ordering::SeqCst) == NOWHERE && !thread.is_finished() {
                thread::sleep(LOOK);
                looks += 1;
                if looks > PATIENCE.as_ns() / LOOK.as_ns() {
                    break;
                }
            }
            thread::sleep(Span::from_us(dice.below(3_000)));
            thread.cancel();
        }
        loop {
            match thread.join_within(PATIENCE) {
                Err((_, Some(back))) if !shared.round.is_given_up() => {
                    shared.round.note(format!(
                        "a member does not end: {:?} {:?}, doomed {is_doomed}",
                        crew.acts, crew.fate
                    ));
                    shared.round.give_up();
                    thread = back;
                }
                _ => break,
            }
        }
        crew.ended.fetch_add(1, Ordering::SeqCst);
    }
}

/// One lane on one CPU. CPU 0 says which gangs begin.
fn go_through(shared: &Arc<Shared>, cpu: usize, lane: usize, mut dice: Random) {
    let (begun, over) = (&shared.begun[lane], &shared.over[lane]);
    for generation in 0..GENERATIONS {
        if cpu == 0 {
            if now() >= shared.round.end || shared.round.is_given_up() {
                break;
            }
            begun.store(generation + 1, Ordering::SeqCst);
        }
        while begun.load(Ordering::SeqCst) <= generation {
            if over.load(Ordering::SeqCst) > 0 && begun.load(Ordering::SeqCst) <= generation {
                return;
            }
            thread::sleep(LOOK);
        }
        lead(shared, (cpu, lane, generation), &mut dice);
    }
    over.store(1, Ordering::SeqCst);
}

/// All lanes on one CPU, beside work that takes the processor from them.
fn conduct(shared: &Arc<Shared>, cpu: usize, seed: u64) {
    let mut dice = Random::at(seed, &[21, cpu as u64]);
    let burn = || loop {
        thread::yield_now();
        std::hint::black_box((0..20_000).fold(0_u64, |sum, n| sum ^ (n * 7)));
    };
    let period = Span::from_us(dice.within(500, 3_000));
    let beside = Constraint::reservation(period, Work::from_ns(period.as_ns() / 10)).priority(90);
    let beside = [beside, Constraint::aperiodic(1)].map(|c| thread::spawn("beside", c, burn));
    let lane = |lane: usize| {
        let (all, dice) = (
            Arc::clone(shared),
            Random::at(seed, &[22, cpu as u64, lane as u64]),
        );
        let body = move || go_through(&all, cpu, lane, dice);
        thread::spawn("lane", Constraint::aperiodic(40), body)
    };
    let lanes: Vec<_> = (0..LANES).map(lane).collect();
    for lane in lanes {
        let ended = lane.map_err(|error| error.to_string());
        if let Err(error) = ended.and_then(|lane| lane.join().map_err(|error| format!("{error:?}")))
        {
            shared.round.note(format!("a lane of CPU {cpu}: {error}"));
        }
    }
    for beside in beside.into_iter().flatten() {
        beside.cancel();
        let _: Result<(), _> = beside.join();
    }
    // The room of every gang is free again: a large part of the CPU can be had.
    let large = Constraint::reservation(Span::from_ms(10), Work::from_ms(9)).priority(60);
    let asks = thread::spawn("asks", Constraint::aperiodic(50), move || {
        let mut granted = Guarantee::ask(large).map(drop);
        // Room is free from the zero-lag instant on.
        for _ in 0..400 {
            if granted.is_ok() {
                break;
            }
            thread::sleep(Span::from_ms(5));
            granted = Guarantee::ask(large).map(drop);
        }
        granted.map_err(|error| error.to_string())
    });
    let granted = asks.map_err(|error| error.to_string());
    let granted = granted.and_then(|asks| asks.join().map_err(|error| format!("{error:?}")));
    if let Err(error) = granted.and_then(|granted| granted) {
        shared
            .round
            .note(format!("room on CPU {cpu} is lost: {error}"));
    }
}

/// Flies a round of gangs on the last two of these host CPUs.
pub(crate) fn fly(cli: &Cli, hosts: &[u32]) -> Report {
    let mut report = Report::default();
    let flown = run(cli, hosts, &mut report);
    judged(cli, flown, report)
}

fn run(cli: &Cli, hosts: &[u32], report: &mut Report) -> Result<Log, String> {
    let (seed, ms) = (cli.seed, cli.round_ms);
    let mut random = Random::at(seed, &[20]);
    let policy = match random.happens(700) {
        true => PolicyKind::FixedPriority { preemptive: true },
        false => PolicyKind::EarliestDeadlineFirst,
    };
    report.name = format!("gangs under {} on two CPUs", policy.name());
    let end = Instant::from_ns(ms * 1_000_000);
    let mut lanes = Vec::new();
    for lane in 0..LANES {
        let crew = |number| draw(&mut random, &format!("soak {lane}.{number}"));
        lanes.push((0..GENERATIONS).map(crew).collect::<Result<Vec<_>, _>>()?);
    }
    let shared = Arc::new(Shared {
        round: Box::leak(Box::new(Round::new(CPUS, end))),
        lanes,
        begun: (0..LANES).map(|_| AtomicUsize::new(0)).collect(),
        over: (0..LANES).map(|_| AtomicUsize::new(0)).collect(),
    });
    let (here, there) = (Arc::clone(&shared), Arc::clone(&shared));
    let done = Arc::new(Semaphore::cross_cpu(0));
    let tells = Arc::clone(&done);
    let (first, second) = (hosts[hosts.len() - CPUS], hosts[hosts.len() - 1]);
    let runtime = Runtime::on(first, policy)
        .terms(Machine::default())
        .threads(24)
        .real_time(!cli.best_effort)
        .at_most(Span::from_ms(ms + PATIENCE.as_ns() / 1_000_000 + 20_000))
        .and(second, policy, move || {
            conduct(&there, 1, seed);
            let _ = tells.release();
        });
    let sink = |_: &_| {
        let bytes = RECORDER_BYTES;
        Recorder::with_capacity(bytes).map_err(|_| StartError::NoRecorder { bytes })
    };
    let finished = runtime.start_recorded(0, sink, move || {
        conduct(&here, 0, seed);
        done.acquire_within(PATIENCE).is_ok()
    });
    let finished = finished.map_err(|error| error.to_string())?;
    settle(&shared, finished.result == Some(true), report);
    Ok(log_of(finished, seed, report))
}

/// Balances the books: everybody has ended.
fn settle(shared: &Shared, came_to_its_end: bool, report: &mut Report) {
    let round = shared.round;
    if !came_to_its_end {
        round.note("the round did not come to its end".into());
    }
    for (lane, crews) in shared.lanes.iter().enumerate() {
        let begun = shared.begun[lane].load(Ordering::SeqCst);
        for (number, crew) in crews[..begun].iter().enumerate() {
            let sums = crew.settle(&format!("gang {lane}.{number}"), round);
            report.gangs += 1;
            for (sum, more) in report.of_gangs.iter_mut().zip(sums) {
                *sum += more;
            }
        }
    }
    report.operations = round.operations.load(Ordering::SeqCst);
    report.violations.extend(round.notes());
}

fn log_of(finished: Finished<Option<bool>, Recorder>, seed: u64, report: &mut Report) -> Log {
    let outcome = finished.outcome;
    report.real_time = outcome.mode == punctual_linux::Mode::RealTime;
    let meant = |panic: &&punctual_linux::Panic| panic.message == LAST_WORDS;
    for panic in outcome.panics.iter().filter(|panic| !meant(panic)) {
        let (name, message) = (&panic.name, &panic.message);
        report
            .violations
            .push(format!("{name} panicked: {message}"));
    }
    let header = Header {
        platform: "linux".to_owned(),
        tool: "soak".to_owned(),
        source: report.name.clone(),
        seed,
        stopped: Some("by its conductor".to_owned()),
        ..Header::default()
    };
    let mut log = Log::new(header, &System::default(), finished.tables);
    for (host, outcome) in finished.hosts.iter().zip(outcome.cpus) {
        count(&outcome, report);
        log.add_cpu(&host.to_string(), Some(*host), outcome.sink);
    }
    log.header.duration = Span::from_ns(log.ns(log.header.end.ticks()));
    log
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fate_act_and_correction_is_drawn() {
        let mut text = String::new();
        for seed in 0..150 {
            let crew = draw(&mut Random::at(seed, &[20]), &format!("drawn {seed}"));
            let crew = crew.expect("a gang");
            text += &format!("{:?} {:?} {:?} ", crew.fate, crew.acts, crew.correction);
            assert!(crew.doomed.1 < crew.acts.len());
            crew.gang.destroy();
        }
        for word in [
            "Lives",
            "Panics",
            "Leaves",
            "Killed",
            "Late",
            "Elect",
            "Sum",
            "Broadcast",
        ] {
            assert!(text.contains(word), "{word}");
        }
        for word in ["Barrier", "GiveBack", "Admit", "Agreed", "ByOrder", "None"] {
            assert!(text.contains(word), "{word}");
        }
    }

    #[test]
    fn one_round_in_four_on_two_cpus_has_gangs() {
        let seeds = (0..40).filter(|seed| is_one(*seed, &[0, 1]));
        assert_eq!(seeds.count(), 10);
        assert!(!is_one(3, &[0]));
    }

    /// The judges: an act done for some and broken for others, and a gang without a doomed member.
    #[test]
    fn books_that_do_not_balance_are_told() {
        let round = Round::new(CPUS, Instant::from_ns(0));
        let mut crew = draw(&mut Random::at(1, &[20]), "books").expect("a gang");
        crew.fate = Fate::Lives;
        crew.acts = vec![Act::Barrier];
        crew.ends = vec![Default::default()];
        crew.ends[0][0].store(1, Ordering::SeqCst);
        let _ = crew.settle("books", &round);
        assert!(round.notes().is_empty());
        crew.ends[0][2].store(1, Ordering::SeqCst);
        crew.created.store(2, Ordering::SeqCst);
        let _ = crew.settle("books", &round);
        let why = Why::Left;
        crew.judge_break(Broken { member: 0, why }, &round);
        let told = round.notes().join("; ");
        for words in ["2 members, 0 ended", "broken for 1", "is broken by"] {
            assert!(told.contains(words), "{words} in {told}");
        }
        crew.gang.destroy();
    }
}
