//! Replay: a recorded run through the core again, compared record by record.
//!
//! The core is deterministic and has no clock, so the events of a log must give its changes and
//! decisions again, on whatever machine they were recorded (DESIGN §1, invariant 1). A difference
//! means that the log, the policy or the core is not the one of the run.

use std::fmt;

use punctual_kern::{
    ConfigError, Decision, Entry, Event, Policy, Refusal, Request, Shard, Sink, SlotTerms,
    TraceEvent,
};
use punctual_model::{Instant, PolicyKind};

use crate::log::Log;
use crate::record::{Iter, Record, RecordedEntry};
use crate::text::line;

/// The counts of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReplayStats {
    /// Events fed.
    pub events: u64,
    /// Changes that were equal.
    pub changes: u64,
    /// Decisions that were equal.
    pub decisions: u64,
}

/// The first difference.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Divergence {
    /// The CPU, as its place in the tables.
    pub cpu: usize,
    /// Its name.
    pub name: String,
    /// Number of the record on that CPU, from 0.
    pub record: u64,
    /// The instant of the entry.
    pub now: Instant,
    /// What differs.
    pub difference: Difference,
    /// What was equal before, on all CPUs.
    pub equal: ReplayStats,
}

impl Divergence {
    /// The records of that CPU before the difference, the last `most` of them, oldest first.
    /// O(records).
    pub fn context(&self, log: &Log, most: usize) -> Vec<Record> {
        let Some(cpu) = log.cpus.get(self.cpu) else {
            return Vec::new();
        };
        let before = usize::try_from(self.record).unwrap_or(usize::MAX);
        let records = cpu.records.iter().map(|(_, record)| record);
        let skipped = before.saturating_sub(most);
        records.take(before).skip(skipped).collect()
    }
}

impl Difference {
    /// What the log has there, if it has anything.
    pub fn recorded(&self) -> Option<Record> {
        match self {
            Difference::Record { recorded, .. } => *recorded,
            Difference::Missing { recorded } => Some(*recorded),
            Difference::Config(_) | Difference::Cpus => None,
        }
    }

    /// What the replay has there, if it has anything.
    pub fn replayed(&self) -> Option<Record> {
        match self {
            Difference::Record { replayed, .. } => Some(*replayed),
            _ => None,
        }
    }
}

/// How a replay differs from its log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Difference {
    /// The core did something other than what was recorded (`None`: the log ends there).
    Record {
        /// What the core did.
        replayed: Record,
        /// What the log has.
        recorded: Option<Record>,
    },
    /// The log has a change or a decision that the core did not make.
    Missing {
        /// What the log has.
        recorded: Record,
    },
    /// The shard cannot be built from the tables.
    Config(ConfigError),
    /// The log names more or fewer CPUs than its tables.
    Cpus,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, record, now) = (&self.name, self.record, self.now.ticks());
        write!(f, "CPU {name}, record {record}, tick {now}: ")?;
        match &self.difference {
            Difference::Record {
                replayed,
                recorded: Some(recorded),
            } => {
                let (recorded, replayed) = (line(recorded), line(replayed));
                write!(f, "the log has `{recorded}`, the replay `{replayed}`")
            }
            Difference::Record { replayed, .. } => {
                write!(f, "the log ends, the replay has `{}`", line(replayed))
            }
            Difference::Missing { recorded } => {
                write!(f, "the log has `{}`, the replay nothing", line(recorded))
            }
            Difference::Config(error) => write!(f, "the shard cannot be built: {error}"),
            Difference::Cpus => write!(f, "the log does not have the CPUs of its tables"),
        }
    }
}

impl std::error::Error for Divergence {}

/// Feeds the events of every CPU to a shard built from the tables, with the policies that
/// `policy` makes, and compares. A log that was cut is compared as far as it goes.
/// O(records · log threads).
///
/// # Errors
/// The first difference.
pub fn replay<P: Policy>(
    log: &Log,
    policy: impl Fn(PolicyKind, usize, &[SlotTerms]) -> P,
) -> Result<ReplayStats, Box<Divergence>> {
    let mut stats = ReplayStats::default();
    if log.cpus.len() != log.tables.cpus.len() {
        return Err(differs(log, 0, (0, Instant::ZERO), Difference::Cpus, stats));
    }
    for (cpu, tables) in log.tables.cpus.iter().enumerate() {
        let start = (0, Instant::ZERO);
        let mut shard = tables
            .build(&policy)
            .map_err(|error| differs(log, cpu, start, Difference::Config(error), stats))?;
        let mut comparison = Comparison {
            rest: log.cpus[cpu].records.iter(),
            at: 0,
            stats: &mut stats,
            difference: None,
            entry: None,
        };
        while let Some(entry) = comparison.next_entry() {
            comparison.shelve(&mut shard, |kind| {
                policy(kind, tables.capacity.entities(), &[])
            });
            let _ = shard.handle_entry(&entry.as_entry(), &mut comparison);
            // News for other CPUs is in their logs as events; the outbox must not fill up.
            while shard.take_message().is_some() {}
            if comparison.difference.is_some() {
                break;
            }
        }
        if let Some((at, now, difference)) = comparison.difference {
            return Err(differs(log, cpu, (at, now), difference, stats));
        }
    }
    Ok(stats)
}

fn differs(
    log: &Log,
    cpu: usize,
    at: (u64, Instant),
    difference: Difference,
    equal: ReplayStats,
) -> Box<Divergence> {
    let name = log.cpus.get(cpu).map_or("?", |cpu| cpu.name.as_str());
    Box::new(Divergence {
        cpu,
        name: name.into(),
        record: at.0,
        now: at.1,
        difference,
        equal,
    })
}

/// A sink that expects what the log has.
struct Comparison<'a> {
    rest: Iter<'a>,
    /// Number of the next record.
    at: u64,
    stats: &'a mut ReplayStats,
    difference: Option<(u64, Instant, Difference)>,
    /// The entry that is replayed.
    entry: Option<RecordedEntry>,
}

impl Comparison<'_> {
    /// The next record must be an entry.
    fn next_entry(&mut self) -> Option<RecordedEntry> {
        match self.rest.next()? {
            (_, Record::Entry(entry)) => {
                self.at += 1;
                self.stats.events += 1;
                self.entry = Some(entry);
                self.entry
            }
            (now, recorded) => {
                let difference = Difference::Missing { recorded };
                self.difference = Some((self.at, now, difference));
                None
            }
        }
    }

    /// The one that asked for another policy had put it there, and took away the one before.
    fn shelve<P: Policy>(&self, shard: &mut Shard<P>, make: impl FnOnce(PolicyKind) -> P) {
        let event = self.entry.as_ref().map(|entry| entry.event);
        if let Some(Event::Manage { request, .. }) = event
            && let Request::Replace { node, policy } = request
        {
            drop(shard.unshelve(node));
            if !self.is_refused_as(Refusal::NothingShelved(node)) {
                let _ = shard.shelve(node, make(policy));
            }
        }
    }

    /// Whether the entry that is replayed was refused for this reason.
    fn is_refused_as(&self, refusal: Refusal) -> bool {
        let decision = self.rest.clone().find_map(|(_, record)| match record {
            Record::Decision(decision) => Some(decision),
            _ => None,
        });
        decision.is_some_and(|decision| decision.refused == Some(refusal))
    }

    /// Whether the next record is the one that was made.
    fn expect(&mut self, now: Instant, replayed: Record) -> bool {
        if self.difference.is_some() {
            return false;
        }
        let recorded = self.rest.next().map(|(_, record)| record);
        let equal = recorded == Some(replayed);
        if !equal {
            let difference = Difference::Record { replayed, recorded };
            self.difference = Some((self.at, now, difference));
        }
        self.at += 1;
        equal
    }
}

impl Sink for Comparison<'_> {
    /// The core takes no more time as missing than has passed, and no instant before the last.
    fn begin(&mut self, entry: &Entry<'_>) {
        let replayed = Some(Record::Entry(RecordedEntry::of(entry)));
        let recorded = self.entry.take().map(Record::Entry);
        if let Some(replayed) =
            replayed.filter(|_| replayed != recorded && self.difference.is_none())
        {
            let difference = Difference::Record { replayed, recorded };
            self.difference = Some((self.at, entry.now, difference));
        }
    }

    fn trace(&mut self, now: Instant, event: TraceEvent) {
        let equal = self.expect(now, Record::Trace(event));
        self.stats.changes += u64::from(equal);
    }

    fn decision(&mut self, now: Instant, decision: &Decision) {
        let equal = self.expect(now, Record::Decision(*decision));
        self.stats.decisions += u64::from(equal);
    }
}
