//! The work of an answer, and its limit.
//!
//! A step is one entry of a scheduler. Most do one thing, but one that comes late serves many
//! timers, and in a tree the budgets of many servers come at one instant: these are counted
//! besides. All else costs a step no more than the tables of its CPU are long. A release counts
//! several times, since it takes memory in records and reports.

use std::cell::Cell;
use std::rc::Rc;

use punctual_kern::{Decision, Entry, Grant, Sink, TraceEvent};
use punctual_model::{Instant, PolicyKind, Span, ThreadId};
use punctual_sim::{Observer, STEPS_PER_QUESTION};
use punctual_tables::{CpuTables, Tables};
use punctual_trace::{Log, Record, RecordedEntry, Records};

use crate::Progress;

/// Most that an answer takes, beside what it may take for each recorded word. A recorded event is
/// two words or more, and another policy may switch more often.
const MOST: u64 = 1_000_000;
const MOST_PER_WORD: u64 = 64;

/// A release, also one that is dropped, counts as so many steps. The record of one has a dozen
/// words or more.
pub(super) const PER_RELEASE: u64 = 10;

/// Bytes within which an entry fits, as a rule. A longer one takes what it needs.
const ENTRY: usize = 1 << 14;

/// Records what is played, up to the room that it has, and counts what one step can do many times.
#[derive(Debug)]
pub(super) struct Counting {
    records: Records,
    room: usize,
    lost_from: Option<Instant>,
    /// Bytes that it wanted when there was no more memory.
    refused: Option<usize>,
    /// Of all CPUs.
    counted: Rc<Cell<u64>>,
}

impl Counting {
    fn add(&self, more: u64) {
        self.counted.set(self.counted.get().saturating_add(more));
    }

    fn push(&mut self, record: &Record) {
        if self.lost_from.is_none() {
            self.records.push(record);
        }
    }

    /// There is room for another entry, or nothing more is recorded.
    fn make_room(&mut self, now: Instant) {
        let bytes = self.records.bytes();
        let is_full = bytes.saturating_add(ENTRY) > self.room;
        if !is_full && self.records.try_reserve(ENTRY).is_err() {
            self.refused = Some(bytes.saturating_add(ENTRY));
        }
        if is_full || self.refused.is_some() {
            self.lost_from = Some(now);
        }
    }

    /// How much it wanted when there was no more memory.
    pub(super) fn refused(&self) -> Option<usize> {
        self.refused
    }

    /// Whether there was no room, with memory left.
    pub(super) fn is_full(&self) -> bool {
        self.lost_from.is_some() && self.refused.is_none()
    }

    pub(super) fn lost_from(&self) -> Option<Instant> {
        self.lost_from
    }

    pub(super) fn records(self) -> Records {
        self.records
    }
}

impl Sink for Counting {
    fn begin(&mut self, entry: &Entry<'_>) {
        if self.lost_from.is_none() {
            self.make_room(entry.now);
        }
        self.push(&Record::Entry(RecordedEntry::of(entry)));
    }

    fn served(&mut self, timers: usize) {
        self.add(timers as u64);
    }

    fn trace(&mut self, _: Instant, event: TraceEvent) {
        match event {
            TraceEvent::Released { .. } | TraceEvent::Skipped { .. } | TraceEvent::Lost { .. } => {
                self.add(PER_RELEASE);
            }
            TraceEvent::ServerReplenished { .. }
            | TraceEvent::ServerExhausted { .. }
            | TraceEvent::Queued { .. }
            | TraceEvent::Unqueued { .. } => self.add(1),
            _ => {}
        }
        self.push(&Record::Trace(event));
    }

    fn decision(&mut self, _: Instant, decision: &Decision) {
        self.push(&Record::Decision(*decision));
    }
}

/// Counts an answer while it is played, and ends it at its limit.
pub(super) struct Watch<'a> {
    log: &'a Log,
    progress: &'a mut dyn FnMut(Progress) -> bool,
    steps: u64,
    counted: Rc<Cell<u64>>,
    most: u64,
}

impl<'a> Watch<'a> {
    pub(super) fn new(log: &'a Log, progress: &'a mut dyn FnMut(Progress) -> bool) -> Watch<'a> {
        let words: usize = log.cpus.iter().map(|cpu| cpu.records.bytes() / 8).sum();
        Watch {
            log,
            progress,
            steps: 0,
            counted: Rc::default(),
            most: MOST.saturating_add(MOST_PER_WORD.saturating_mul(words as u64)),
        }
    }

    /// A recorder of at most so many bytes, whose work counts here.
    pub(super) fn recorder(&self, room: usize) -> Counting {
        Counting {
            records: Records::default(),
            room,
            lost_from: None,
            refused: None,
            counted: Rc::clone(&self.counted),
        }
    }

    /// The steps up to the last question, and what was counted besides up to now.
    pub(super) fn taken(&self) -> u64 {
        self.steps.saturating_add(self.counted.get())
    }

    /// The limit, if it was passed.
    pub(super) fn passed(&self) -> Option<u64> {
        (self.taken() > self.most).then_some(self.most)
    }
}

impl Observer for Watch<'_> {
    fn goes_on(&mut self, now: Instant) -> bool {
        self.steps = self.steps.saturating_add(STEPS_PER_QUESTION.into());
        self.passed().is_none()
            && (self.progress)(Progress {
                passed: Span::from_ns(self.log.ns(now.ticks())),
                total: self.log.header.duration,
            })
    }
}

/// Something that comes by itself, until when, how often, and which it is.
struct Comes {
    until: Instant,
    every: Span,
    what: String,
}

/// In words: the task, the turn or the budget that comes most often by these tables until `end`;
/// `None`: nothing comes by itself.
pub(super) fn most_often(log: &Log, tables: &Tables, end: Instant) -> Option<String> {
    let cpus = tables.cpus.iter().enumerate();
    let all = cpus.flat_map(|(number, cpu)| {
        let releases = releases(log, number, cpu);
        releases.chain(turns_and_budgets(log, number, cpu))
    });
    let times = |comes: &Comes| comes.until.min(end).ticks() / comes.every.ticks().max(1);
    let most = all.max_by_key(times)?;
    let (what, every, times) = (&most.what, most.every.ticks(), times(&most));
    (times > 0).then(|| format!("{what} every {every} ticks, {times} times"))
}

fn releases(log: &Log, number: usize, cpu: &CpuTables) -> impl Iterator<Item = Comes> {
    let threads = (0_u32..).zip(&cpu.threads);
    threads.filter_map(move |(thread, (_, constraint))| {
        let task = log.task_name(number, ThreadId::new(thread, 0));
        Some(Comes {
            until: constraint.until,
            every: constraint.separation()?,
            what: format!("`{task}` may be released"),
        })
    })
}

fn turns_and_budgets(log: &Log, number: usize, cpu: &CpuTables) -> impl Iterator<Item = Comes> {
    let root = (0, cpu.policy, None);
    let below = (1..).zip(&cpu.nodes).map(|(place, node)| {
        let server = match node.terms.supply {
            Grant::Server(server) => Some(server.period),
            Grant::Shared | Grant::Slots => None,
        };
        (place, node.policy, server)
    });
    let all = std::iter::once(root).chain(below);
    all.flat_map(move |(place, policy, server)| {
        let name = log.node_name(number, place);
        let turn = match policy {
            PolicyKind::RoundRobin { timeslice } => Some((timeslice, "gives a turn")),
            PolicyKind::Tdm { frame, .. } => Some((frame, "begins a frame")),
            _ => None,
        };
        let budget = server.map(|period| (period, "gets its budget"));
        let both = turn.into_iter().chain(budget);
        both.map(move |(every, does)| Comes {
            until: Instant::MAX,
            every,
            what: format!("`{name}` {does}"),
        })
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use punctual_model::{Class, Cpu, CpuId, Ns, OnOverrun, System, Task, Work};
    use punctual_sim::{Faults, MissingTime};
    use punctual_thread::Workloads;

    use super::*;
    use crate::{PolicyChange, SimOptions, WhatIfError, simulate_unjudged, what_if};

    const EDF: PolicyKind<Ns> = PolicyKind::EarliestDeadlineFirst;
    const FIXED: PolicyKind<Ns> = PolicyKind::FixedPriority { preemptive: true };

    /// Two tasks of fixed priorities on one CPU, and what was recorded of so many milliseconds.
    fn recorded(missing: Vec<MissingTime>, policy: PolicyKind<Ns>, ms: u64) -> Log {
        let task = |name: &str, period: u64, wcet: u64| {
            let class = Class::Periodic {
                period: Span::from_us(period),
                wcet: Work::from_us(wcet),
                relative_deadline: Span::from_us(period),
            };
            Task::new(name, CpuId(0), class)
        };
        let system = System {
            cpus: vec![Cpu {
                name: "0".into(),
                host: None,
                policy,
            }],
            tasks: vec![task("short", 1_000, 100), task("long", 500_000, 200_000)],
            ..System::default()
        };
        let options = SimOptions {
            duration: Some(Span::from_ms(ms)),
            faults: Faults {
                missing,
                ..Faults::default()
            },
            ..SimOptions::default()
        };
        simulate_unjudged(&system, &options, &mut Workloads::new(), &mut |_| true).unwrap()
    }

    /// The log with another period of one of its tasks, which is released up to `until`.
    fn mutated(mut log: Log, (task, period): (usize, u64), until: Instant) -> Log {
        let (_, constraint) = &mut log.tables.cpus[0].threads[task];
        constraint.class = Class::Periodic {
            period: Span::from_ticks(period),
            wcet: Work::from_ticks(1),
            relative_deadline: Span::from_ticks(period),
        };
        constraint.until = until;
        log
    }

    /// The words of the refusal, its limit, and how many steps were made at least.
    fn refused(log: &Log, policy: PolicyKind<Ns>) -> (String, u64, u64) {
        let mut steps = 0;
        let change = PolicyChange { on: None, policy };
        let answer = what_if(log, &[change], &mut |_| {
            steps += u64::from(STEPS_PER_QUESTION);
            true
        });
        let refusal = answer.expect_err("refused");
        let WhatIfError::TooLong { most, .. } = refusal else {
            panic!("refused otherwise: {refusal}");
        };
        (refusal.to_string(), most, steps)
    }

    /// A third of the processor is missing, so that entries come late and serve many timers.
    fn holes() -> Vec<MissingTime> {
        vec![MissingTime {
            cpu: None,
            length: Span::from_us(500),
            every: Span::from_us(1_500),
        }]
    }

    #[test]
    fn jobs_every_other_tick_are_refused_after_a_fifth_of_the_steps_and_the_task_is_named() {
        for missing in [Vec::new(), holes()] {
            let log = mutated(recorded(missing, FIXED, 5), (0, 2), Instant::MAX);
            let (words, most, steps) = refused(&log, EDF);
            assert!(steps <= most / 5, "{steps} steps of {most}");
            let named = "`short` may be released every 2 ticks, ";
            assert!(words.contains(named), "{words}");
        }
    }

    #[test]
    fn timers_that_release_nothing_count_as_well() {
        // The first job works to the end, and nothing comes behind it.
        let mut log = mutated(recorded(holes(), FIXED, 20), (1, 2), Instant::from_ticks(1));
        log.tables.cpus[0].threads[1].1.on_overrun = OnOverrun::Demote;
        let (_, most, steps) = refused(&log, EDF);
        assert!(steps <= most / 2, "{steps} steps of {most}");
    }

    #[test]
    fn turns_that_are_far_shorter_than_jobs_are_answered_to_the_end() {
        for (ms, timeslice) in [(2_000, Span::from_us(10)), (20, Span::from_ns(100))] {
            let log = recorded(Vec::new(), FIXED, ms);
            let policy = PolicyKind::RoundRobin { timeslice };
            let change = PolicyChange { on: None, policy };
            let answer = what_if(&log, &[change], &mut |_| true).unwrap().log;
            assert_eq!(answer.cpus[0].lost_from, None);
            assert!(answer.cpus[0].records.bytes() > 2 * log.cpus[0].records.bytes());
        }
    }

    #[test]
    fn the_same_run_again_writes_no_more_than_was_recorded() {
        let turns = |timeslice| PolicyKind::RoundRobin { timeslice };
        let mut log = recorded(Vec::new(), turns(Span::from_us(100)), 20);
        assert!(what_if(&log, &[], &mut |_| true).is_ok());
        log.tables.cpus[0].policy = PolicyKind::RoundRobin {
            timeslice: Span::from_ticks(50),
        };
        let refusal = what_if(&log, &[], &mut |_| true).expect_err("refused");
        let words = refusal.to_string();
        assert!(words.contains("`0` gives a turn every 50 ticks"), "{words}");
    }

    #[test]
    fn an_answer_that_does_not_fit_says_from_when_on_it_is_missing() {
        let log = recorded(Vec::new(), FIXED, 20);
        let watch = &mut |_: Progress| true;
        let mut recorder = Watch::new(&log, watch).recorder(ENTRY + 8);
        let idle = Decision {
            next: punctual_kern::Next::Idle,
            arm: None,
            refused: None,
        };
        for now in [1, 2, 3].map(Instant::from_ticks) {
            recorder.begin(&Entry::at(now, &punctual_kern::Event::Tick));
            recorder.decision(now, &idle);
        }
        assert_eq!(recorder.lost_from(), Some(Instant::from_ticks(2)));
        assert_eq!(recorder.records().iter().count(), 2);
    }
}
