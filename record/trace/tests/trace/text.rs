//! The written form: what is written is read, and nothing that is read panics.
#![allow(clippy::unwrap_used)] // A test may stop at the first surprise.

use crate::common::{FIXED, composed, missing, overrunning, required, rich, simulate, two_tasks};
use punctual_kern::{Ceiling, ChildPick, Constraint, Grant, NodeId, NodeTerms, Request};
use punctual_kern::{Decision, Message, Next, Outcome};
use punctual_kern::{Event, Refusal, TraceEvent, WakeCause};
use punctual_model::{CpuId, Instant, Mode, OnOverrun, Span, ThreadId, Work};
use punctual_model::{Priority, Server, ServerKind, Trust};
use punctual_sim::Faults;
use punctual_trace::{Log, Oracle, Record, RecordedEntry, text};

const OUTCOMES: [Outcome; 4] = [
    Outcome::Done,
    Outcome::Stopped,
    Outcome::Aborted,
    Outcome::Short,
];
const WAKES: [WakeCause; 6] = [
    WakeCause::Wake,
    WakeCause::EarlyWake,
    WakeCause::Timeout,
    WakeCause::Predecessors,
    WakeCause::Lock,
    WakeCause::Supply,
];
const MODES: [Mode; 2] = [Mode::Exclusive, Mode::Shared];

fn written(log: &Log) -> Vec<u8> {
    let mut bytes = Vec::new();
    text::write(log, &mut bytes).unwrap();
    bytes
}

/// Steele, Lea and Flood's SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % n as u64).unwrap()
    }

    /// Small, large and extreme numbers alike.
    fn number(&mut self) -> u64 {
        let bits = self.below(65);
        if bits == 64 {
            u64::MAX
        } else {
            self.next() & ((1 << bits) - 1)
        }
    }

    fn small(&mut self) -> u32 {
        u32::try_from(self.number() >> 32).unwrap()
    }

    fn instant(&mut self) -> Instant {
        Instant::from_ticks(self.number())
    }

    fn thread(&mut self) -> ThreadId {
        let generation = if self.next().is_multiple_of(4) {
            self.small()
        } else {
            0
        };
        // What happened can name no thread that the CPU has no room for.
        ThreadId::new(self.small() % 6, generation)
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    fn node(&mut self) -> NodeId {
        let generation = u16::try_from(self.below(3)).unwrap();
        NodeId::new(u16::try_from(self.small() >> 16).unwrap(), generation)
    }

    fn maybe<T>(&mut self, value: T) -> Option<T> {
        self.next().is_multiple_of(2).then_some(value)
    }

    fn terms(&mut self) -> NodeTerms {
        let server = Grant::Server(Server {
            kind: self.pick(&ServerKind::ALL),
            budget: Work::from_ticks(self.number().max(1)),
            period: Span::from_ticks(self.number().max(1)),
        });
        let quota = self.small();
        NodeTerms {
            supply: self.pick(&[Grant::Shared, Grant::Slots, server]),
            priority: Priority::new(self.small()),
            order: self.small(),
            trust: self.pick(&[Trust::Inline, Trust::OwnTime]),
            quota: self.maybe(quota),
        }
    }

    /// What schedulers ask and answer.
    fn tree_event(&mut self, constraint: Constraint) -> Event {
        let (by, node, thread) = (self.node(), self.node(), self.thread());
        let (until, work) = (self.instant(), Work::from_ticks(self.number()));
        let until = self.maybe(until);
        let exclusive = self.next().is_multiple_of(2);
        let picked = ChildPick {
            child: node,
            epoch: self.small(),
            thread: self.maybe(thread),
            until,
        };
        let terms = self.terms();
        let home = node;
        let requests = [
            Request::Create { home, constraint },
            Request::Grant { thread, to: node },
            Request::Revoke { thread },
            Request::Promote(terms),
            Request::Demote(node),
            Request::Lend { to: node, work },
            Request::Block {
                thread,
                exclusive,
                until,
            },
            Request::Wake(thread),
        ];
        let request = self.pick(&requests);
        self.pick(&[
            Event::ChildPicked(picked),
            Event::Manage { by, request },
            Event::Manage { by, request },
        ])
    }

    fn entry(&mut self, now: Instant, log: &Log) -> RecordedEntry {
        let mut entry = RecordedEntry::at(now, self.event(log));
        if self.next().is_multiple_of(3) {
            entry.missing.stolen = Span::from_ticks(self.number());
        }
        if self.next().is_multiple_of(3) {
            entry.missing.given_back = Span::from_ticks(self.number());
        }
        let until = self.next().is_multiple_of(2).then(|| self.instant());
        if self.next().is_multiple_of(3) {
            entry.ceiling = Some(until.map(|absolute_deadline| Ceiling {
                priority: Priority::new(self.small()),
                absolute_deadline,
            }));
        }
        entry
    }

    fn event(&mut self, log: &Log) -> Event {
        let constraint = log.tables.cpus[0].threads[self.below(6)].1;
        let until = (self.next().is_multiple_of(2)).then(|| self.instant());
        let (thread, arrival) = (self.thread(), self.instant());
        let (resource, mode) = (self.small(), self.pick(&MODES));
        let of_tree = self.tree_event(constraint);
        let message = Message {
            to: CpuId(7),
            slot: self.small(),
            frontier: self.number(),
        };
        self.pick(&[
            Event::Tick,
            Event::Complete,
            Event::Block { until },
            Event::Yield,
            Event::Exit,
            Event::Protect,
            Event::Unprotect,
            Event::Wake(thread),
            Event::Arrive { thread, arrival },
            Event::Create(constraint),
            Event::Change { thread, constraint },
            Event::Kill(thread),
            Event::Remote(message),
            Event::Lock {
                resource,
                mode,
                until,
            },
            Event::Unlock { resource },
            Event::BlockOn {
                holder: thread,
                key: resource,
                until,
            },
            Event::HandOver {
                key: resource,
                from: thread,
                to: thread,
            },
            of_tree,
            of_tree,
            of_tree,
        ])
    }

    /// What schedulers and locks change.
    fn tree_change(&mut self) -> TraceEvent {
        use TraceEvent as T;
        let (thread, node, parent) = (self.thread(), self.node(), self.node());
        let (work, resource) = (Work::from_ticks(self.number()), self.small());
        let mode = self.pick(&MODES);
        self.pick(&[
            T::ServerReplenished { node, budget: work },
            T::ServerExhausted { node },
            T::ChildCharged { node, work },
            T::Moved { thread, home: node },
            T::Promoted { node, parent },
            T::SchedulerEnded { node },
            T::Lent {
                from: node,
                to: parent,
                work,
            },
            T::Locked {
                thread,
                resource,
                mode,
            },
            T::Waits {
                thread,
                resource,
                mode,
            },
            T::Unlocked { thread, resource },
            T::SectionOverran { thread, resource },
            T::Postponed { thread, resource },
            T::CaughtUp,
            T::Deferred {
                thread,
                release: Instant::MAX,
                deadline: Instant::from_ticks(work.ticks()),
            },
            T::Ordered {
                thread,
                background: mode == Mode::Shared,
                priority: Priority::new(resource),
                deadline: Instant::from_ticks(work.ticks()),
                release: Instant::MAX,
                yielded: mode == Mode::Exclusive,
            },
            T::Queued {
                node,
                priority: Priority::new(resource),
                deadline: Instant::MAX,
                release: Instant::from_ticks(work.ticks()),
                budget: (resource > 3).then_some(work),
            },
            T::Unqueued {
                node,
                budget: (resource > 3).then_some(work),
            },
        ])
    }

    fn change(&mut self) -> TraceEvent {
        use TraceEvent as T;
        let (thread, job, arrival) = (self.thread(), self.number(), self.instant());
        let (deadline, work) = (self.instant(), Work::from_ticks(self.number()));
        let (budget, flag) = (
            (self.next().is_multiple_of(2)).then_some(work),
            self.next().is_multiple_of(2),
        );
        let from = flag.then(|| self.thread());
        let of_tree = self.tree_change();
        let (outcome, cause) = (self.pick(&OUTCOMES), self.pick(&WAKES));
        self.pick(&[
            T::Created { thread },
            T::Ended { thread },
            T::Changed { thread },
            T::Released {
                thread,
                job,
                arrival,
                deadline,
            },
            T::Skipped { thread, job },
            T::Lost { thread, job },
            T::Started {
                thread,
                job,
                budget,
            },
            T::Completed {
                thread,
                job,
                outcome,
                arrival,
                deadline,
                received: work,
            },
            T::Overran { thread, job },
            T::Throttled { thread, job },
            T::Replenished {
                thread,
                budget: work,
            },
            T::Demoted { thread, job },
            T::Blocked {
                thread,
                job,
                for_predecessors: flag,
            },
            T::Woken { thread, cause },
            T::Switched {
                from,
                to: budget.map(|_| thread),
                preempted: flag,
            },
            of_tree,
            of_tree,
            of_tree,
        ])
    }

    fn decision(&mut self) -> Decision {
        let (thread, slot, node) = (self.thread(), self.small(), self.node());
        Decision {
            next: self.pick(&[Next::Idle, Next::Thread(thread), Next::RunChild(node)]),
            arm: (self.next().is_multiple_of(2)).then(|| self.instant()),
            refused: self.pick(&[
                None,
                Some(Refusal::StaleThread(thread)),
                Some(Refusal::NobodyRuns),
                Some(Refusal::NoThreadLeft),
                Some(Refusal::NotSporadic(thread)),
                Some(Refusal::NoSuchSlot(slot)),
                Some(Refusal::InvalidConstraint),
                Some(Refusal::NotDeclared(slot)),
                Some(Refusal::AlreadyHeld(slot)),
                Some(Refusal::NotHeld(slot)),
                Some(Refusal::NestedTooDeep(slot)),
                Some(Refusal::Deadlock(slot)),
                Some(Refusal::UsesResources(thread)),
                Some(Refusal::NoSuchNode(node)),
                Some(Refusal::NoNodeLeft),
                Some(Refusal::TooDeep(node)),
                Some(Refusal::NotAParent(node)),
                Some(Refusal::QuotaExhausted(node)),
                Some(Refusal::NotDeciding(node)),
                Some(Refusal::StalePick(node)),
                Some(Refusal::NotItsOwn(thread)),
                Some(Refusal::NotReady(thread)),
                Some(Refusal::NotItsChild(node)),
                Some(Refusal::NotASibling(node)),
                Some(Refusal::TooLittleBudget(node)),
                Some(Refusal::OnlyRootCreates(node)),
                Some(Refusal::BlockedByTrusted(thread)),
                Some(Refusal::NotGrantable(node)),
            ]),
        }
    }
}

#[test]
fn every_record_survives_memory_and_file() {
    let mut random = Random(7);
    let mut log = simulate(&rich(FIXED), 20, 1, missing(100, 7));
    let mut records = Vec::new();
    for _ in 0..20_000 {
        let now = random.instant();
        records.push(match random.below(3) {
            0 => Record::Entry(random.entry(now, &log)),
            1 => Record::Trace(random.change()),
            _ => Record::Decision(random.decision()),
        });
    }
    log.cpus[0].records = records.iter().copied().collect();
    let kept: Vec<Record> = log.cpus[0].records.iter().map(|(_, r)| r).collect();
    for (kept, record) in kept.iter().zip(&records) {
        assert_eq!(kept, record);
    }
    assert_eq!(
        kept.len(),
        records.len(),
        "{:?}",
        records[kept.len()..].first()
    );
    let again = text::read(&mut written(&log).as_slice()).unwrap();
    assert_eq!(again, log);
}

#[test]
fn a_log_read_again_is_the_log_that_was_written() {
    let (system, faults) = overrunning(&rich(FIXED), "first", OnOverrun::Demote);
    let mut log = simulate(&system, 300, 5, faults);
    log.header.lost = vec![
        "no SCHED_FIFO: \"EPERM\"\nsecond line \\n".into(),
        String::new(),
    ];
    log.header.machine = vec![("cpu\tmodel".replace('\t', " "), "EPYC µ".into())];
    log.header.stopped = Some(String::new());
    log.header.faults = vec!["a task said: \r\n".into()];
    log.oracle = Some(Oracle {
        steps: 10,
        mismatches: 1,
    });
    log.cpus[0].host = Some(3);
    log.cpus[0].lost_from = Some(Instant::from_ticks(12));
    log.cpus[0].counters.others = vec![("given back".into(), 3), (String::new(), 0)];
    let bytes = written(&log);
    let again = text::read(&mut bytes.as_slice()).unwrap();
    assert_eq!(again, log);
    assert_eq!(written(&again), bytes);
}

/// Reads `bytes` with a few random changes; what can be read is used in every way that this crate
/// has.
fn damage(bytes: &[u8], random: &mut Random) -> bool {
    let mut damaged = bytes.to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(damaged.len());
        match random.below(4) {
            0 => damaged[at] = u8::try_from(random.below(256)).unwrap(),
            1 => damaged.truncate(at.max(1)),
            2 => drop(damaged.drain(at..(at + random.below(30)).min(damaged.len()))),
            _ => damaged.insert(at, random.pick(b"0129- \n:@+=x")),
        }
        if damaged.is_empty() {
            damaged.push(b'x');
        }
    }
    match text::read(&mut damaged.as_slice()) {
        Err(error) => {
            assert!(error.line >= 1 && !error.message.is_empty());
            true
        }
        // Damage can make another meaningful log; using it must not panic either.
        Ok(log) => {
            drop(punctual_trace::RunReport::new(&log).to_string());
            drop(punctual_rules::check(&log));
            drop(punctual_trace::html::page(&log, &punctual::judge(&log)));
            false
        }
    }
}

#[test]
fn no_damage_to_a_log_makes_the_reader_panic() {
    let logs = [
        simulate(&two_tasks(), 40, 1, missing(500, 7)),
        simulate(&composed(), 60, 1, missing(500, 7)),
    ];
    let mut random = Random(3);
    for log in &logs {
        let bytes = written(log);
        let refused = (0..4_000).filter(|_| damage(&bytes, &mut random)).count();
        assert!(refused > 1_000, "only {refused} damaged logs were refused");
    }
}

#[test]
fn requirements_are_part_of_the_written_form() {
    let log = simulate(&required(), 40, 1, Faults::default());
    let bytes = written(&log);
    assert_eq!(
        text::read(&mut &bytes[..]).unwrap().requirements,
        log.requirements
    );
    assert_eq!(log.requirements.len(), 3);
    let good = String::from_utf8(bytes).unwrap();
    for (right, wrong) in [
        ("require response 8000000 1", "require response 8000000"),
        ("require response 8000000 1", "require response 8000000 1 0"),
        ("require response 8000000 1", "require wish 8000000 1"),
        ("require jitter 5000000 0", "require jitter 5000000 7"),
        ("require chain 30000000 0 1", "require chain 30000000 0"),
    ] {
        assert!(good.contains(right), "{good}");
        let bad = good.replace(right, wrong);
        assert!(text::read(&mut bad.as_bytes()).is_err(), "{wrong}");
    }
}

/// What is changed into what, the line that is told, and a part of the message.
type Mistake = (&'static str, &'static str, usize, &'static str);

fn refuses(good: &str, mistakes: &[Mistake]) {
    for (from, to, line, message) in mistakes {
        let error = text::read(&mut good.replacen(from, to, 1).as_bytes()).unwrap_err();
        assert_eq!(error.line, *line, "{from} -> {to}: {error}");
        assert!(error.message.contains(message), "{from} -> {to}: {error}");
    }
}

/// A log, and the number of its first line that begins so.
fn good() -> (String, impl Fn(&str) -> usize) {
    let good = String::from_utf8(written(&simulate(&two_tasks(), 20, 1, missing(1, 5)))).unwrap();
    let lines = good.clone();
    (good, move |what: &str| {
        1 + lines.lines().position(|l| l.starts_with(what)).unwrap()
    })
}

#[test]
fn mistakes_have_their_line_and_a_reason() {
    let (good, line_of) = good();
    let mistakes = [
        ("punctual-log 4", "punctual-log 9", 1, "another version"),
        (
            "punctual-log 4",
            "punctual-log 3",
            1,
            "record the run again",
        ),
        ("punctual-log 4", "diary", 1, "this is no log"),
        ("mode virtual", "mode dreamt", line_of("mode"), "is no mode"),
        ("seed 1", "seed 01", line_of("seed"), "not a number"),
        (
            "ended ",
            "@ ceiling - -\nended ",
            1 + line_of("ended"),
            "has no event",
        ),
        ("cpu 0", "gpu 0", line_of("cpu"), "unknown here"),
        (
            "records 0",
            "records 1",
            line_of("records"),
            "no CPU number 1",
        ),
        (
            "counted 0",
            "counted 1",
            line_of("counted"),
            "no CPU number 1",
        ),
        ("mode virtual\n", "", good.lines().count() - 1, "no `mode`"),
        (
            "ended ",
            "end-of-log\nended ",
            line_of("ended"),
            "no `ended`",
        ),
    ];
    refuses(&good, &mistakes);
}

#[test]
fn mistakes_in_records_have_their_line_and_a_reason() {
    let (good, line_of) = good();
    let mistakes = [
        ("= run 0", "= run -", line_of("= run 0"), "cannot be absent"),
        (
            "+ released 0 0 ",
            "+ released 0 ",
            line_of("+ released 0"),
            "has 4 fields",
        ),
        (
            "+ released 0 0 ",
            "+ relaxed 0 0 ",
            line_of("+ released 0"),
            "no record",
        ),
        (
            "@ tick",
            "@ missing 1 0\n+ ended 0\n@ tick",
            1 + line_of("@ tick"),
            "has no event",
        ),
        (
            "@ tick",
            "@ missing 1 0\n@ missing 2 0\n@ tick",
            1 + line_of("@ tick"),
            "at most one each of `@ missing`",
        ),
        (
            "@ tick",
            "@ missing 1 0\n@ ceiling - -\n@ ceiling - -\n@ tick",
            2 + line_of("@ tick"),
            "at most one each of `@ missing`",
        ),
        (
            "@ tick",
            "@ ceiling - -\n@ missing 1 0\n@ tick",
            1 + line_of("@ tick"),
            "at most one each of `@ missing`",
        ),
        (
            "+ completed 1 ",
            "+ completed 83522607 ",
            line_of("+ completed 1"),
            "on a CPU with room for 2",
        ),
    ];
    refuses(&good, &mistakes);
}
