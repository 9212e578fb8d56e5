//! Segments of plans: their order, their needs and their instants, on all CPUs together

use std::collections::BTreeMap;

use punctual_kern::{Event, TraceEvent};
use punctual_model::{Class, Instant, ThreadId};
use punctual_trace::{Log, Record};

use crate::agenda::{Agenda, Row};
use crate::entry::Judge;
use crate::{Rule, Violation};

impl Judge<'_> {
    /// A segment starts: its thread has its budget and its deadline. The order of segments is
    /// judged with all CPUs at hand.
    pub(crate) fn segment_started(
        &mut self,
        thread: usize,
        number: u64,
        cleans: bool,
    ) -> Option<()> {
        let segment = self.agenda.in_force.get(&number)?.segment;
        let t = &mut self.threads[thread];
        (t.starts, t.fed) = (Some(self.now), t.fed + 1);
        if let Class::Sporadic {
            wcet,
            relative_deadline,
            ..
        } = &mut t.constraint.class
        {
            *wcet = if cleans {
                segment.cleanup
            } else {
                segment.wcet
            };
            *relative_deadline = segment.deadline.since(self.now);
        }
        Some(())
    }
}

/// A segment that has started.
#[derive(Clone, Debug)]
struct Start {
    now: Instant,
    row: Row,
    /// It is passed over, which it may be when it could start, too.
    skipped: bool,
}

/// One CPU, read from its first record to its last.
#[derive(Default)]
struct Run {
    agenda: Agenda,
    starts: Vec<Start>,
    /// By number: when a segment was done, or passed over.
    done: BTreeMap<u64, Instant>,
    running: Option<(u64, ThreadId)>,
    next: u64,
    /// Time was missing here, a job overran, or an entry was late.
    disturbed: bool,
    violations: Vec<(Rule, Instant, String)>,
}

impl Run {
    fn read(log: &Log, cpu: usize) -> Run {
        let mut run = Run::default();
        let (mut now, mut step, mut armed) = (Instant::ZERO, None, None);
        for (_, record) in &log.cpus[cpu].records {
            match record {
                Record::Entry(entry) => {
                    now = entry.now;
                    run.disturbed |= !entry.missing.is_zero();
                    run.disturbed |= armed.is_some_and(|armed| armed < now);
                    step = match entry.event {
                        Event::Agenda(step) => Some(step),
                        _ => None,
                    };
                }
                Record::Trace(change) => {
                    // A step takes effect before anything that it lets go on.
                    step.take().iter().for_each(|step| run.agenda.take(step));
                    run.change(now, change);
                }
                Record::Decision(decision) => {
                    let step = step.take().filter(|_| decision.refused.is_none());
                    step.iter().for_each(|step| run.agenda.take(step));
                    armed = decision.arm;
                }
            }
        }
        run
    }

    fn must(&mut self, holds: bool, rule: Rule, now: Instant, what: String) {
        if !holds {
            self.violations.push((rule, now, what));
        }
    }

    fn change(&mut self, now: Instant, change: TraceEvent) {
        match change {
            TraceEvent::SegmentStarted {
                number,
                thread,
                cleans,
            } => {
                self.starts_one(now, number, (thread, cleans));
            }
            TraceEvent::SegmentSkipped { number } => {
                let row = self.take(now, number);
                let lawful = row.as_ref().is_some_and(|row| row.dead && !row.cleans);
                let skipped = true;
                self.starts
                    .extend(row.map(|row| Start { now, row, skipped }));
                let what = format!("segment {number} is passed over without need");
                self.must(lawful, Rule::PlanFollowed, now, what);
                self.done.insert(number, now);
            }
            TraceEvent::Overran { .. } => self.disturbed = true,
            TraceEvent::Completed { thread, .. } => {
                if let Some((number, _)) = self.running.take_if(|running| running.1 == thread) {
                    self.done.insert(number, now);
                }
            }
            _ => {}
        }
    }

    /// The next segment in the order of the plan.
    fn take(&mut self, now: Instant, number: u64) -> Option<Row> {
        let next = std::mem::replace(&mut self.next, number.saturating_add(1));
        let what = format!("segment {number} comes where {next} was next");
        self.must(next == number, Rule::PlanFollowed, now, what);
        let row = self.agenda.in_force.remove(&number);
        let what = format!("segment {number} is not in force");
        self.must(row.is_some(), Rule::PlanFollowed, now, what);
        row
    }

    fn starts_one(&mut self, now: Instant, number: u64, (thread, cleans): (ThreadId, bool)) {
        let cutoff = self.agenda.cutoff;
        let before = self.running.replace((number, thread));
        let Some(row) = self.take(now, number) else {
            return;
        };
        let segment = row.segment;
        let faults = [
            (before.is_some(), "while another one is not done".to_owned()),
            (segment.thread != thread, format!("on thread {thread:?}")),
            (row.dead && !cleans, "though its group is dead".to_owned()),
            (cleans && !row.cleans, "to clean up without need".to_owned()),
            (
                now < segment.earliest,
                format!("before its release at {:?}", segment.earliest),
            ),
            (
                cutoff.is_some_and(|cutoff| segment.start >= cutoff),
                format!("behind the pending cutoff {cutoff:?}"),
            ),
        ];
        for (wrong, what) in faults {
            let what = format!("segment {number} starts {what}");
            self.must(!wrong, Rule::PlanFollowed, now, what);
        }
        let skipped = false;
        self.starts.push(Start { now, row, skipped });
    }
}

/// Holds every start against the ends of all segments that it needs, and against the plan.
pub(crate) fn judge(log: &Log, cpus: usize) -> Vec<Violation> {
    let mut violations = Vec::new();
    let tables = &log.tables.cpus[..cpus];
    if tables.iter().all(|tables| tables.agenda.room == 0) {
        return violations;
    }
    let mut runs: Vec<Run> = (0..cpus).map(|cpu| Run::read(log, cpu)).collect();
    let disturbed = runs.iter().any(|run| run.disturbed);
    for (cpu, tables) in tables.iter().enumerate() {
        for Start { now, row, skipped } in std::mem::take(&mut runs[cpu].starts) {
            let number = row.segment.number;
            for &(slot, frontier) in &row.needs {
                let peer = tables.agenda.peers.iter().find(|peer| peer.0 == slot);
                let there = peer.and_then(|peer| {
                    log.tables.cpus[..cpus]
                        .iter()
                        .position(|tables| tables.cpu == peer.1)
                });
                let last = frontier.checked_sub(1);
                let ends = there
                    .zip(last)
                    .and_then(|(there, last)| runs[there].done.get(&last));
                let met = last.is_none() || ends.is_some_and(|&end| end <= now);
                let known = there
                    .is_none_or(|there| log.cpus[there].lost_from.is_none_or(|lost| now < lost));
                let what = format!("segment {number} starts before {frontier} are done at {slot}");
                runs[cpu].must(met || !known, Rule::PlanNeeds, now, what);
            }
            let late = now > row.segment.start && !skipped;
            let what = format!("segment {number} starts after {:?}", row.segment.start);
            runs[cpu].must(!late || disturbed, Rule::PlanInTime, now, what);
        }
    }
    for (cpu, run) in runs.into_iter().enumerate() {
        violations.extend(
            run.violations
                .into_iter()
                .map(|(rule, now, detail)| Violation {
                    rule,
                    cpu: log.cpus[cpu].name.clone(),
                    now,
                    detail,
                }),
        );
    }
    violations
}
