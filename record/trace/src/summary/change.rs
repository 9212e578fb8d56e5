//! The changes of a run: when each was asked for, and when it was done.

use std::fmt;

use punctual_kern::Event;
use punctual_model::Instant;

use crate::log::Log;
use crate::record::Record;
use crate::short::Short;

/// One change that the system declared.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ChangeReport {
    /// Its name in the file.
    pub name: String,
    /// The instant of the run at which it was asked for.
    pub at_ns: u64,
    /// From when on it keeps every promise: `at-once`, `zero-lag`, `idle`, `never`.
    pub when: String,
    /// By which rule of the analysis, or why not.
    pub ground: String,
    /// When all of it had been entered; absent: it was not.
    pub done_ns: Option<u64>,
    /// Why the scheduler refused it, or that a change before it was refused.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub refused: Option<String>,
}

/// The changes of a log, in its order. O(records) if there are any.
pub(super) fn changes(log: &Log) -> Vec<ChangeReport> {
    if log.changes.is_empty() {
        return Vec::new();
    }
    let mut entered: Vec<_> = log
        .cpus
        .iter()
        .map(|cpu| entries(cpu).into_iter())
        .collect();
    // Nothing comes after a refusal on its CPU: what follows was judged with what was refused.
    let mut ended: Vec<Option<String>> = vec![None; entered.len()];
    let report = |change: &crate::log::ChangeInfo| {
        let mut done = Some(Instant::ZERO);
        let mut refused = None;
        for ((entries, ended), &part) in entered.iter_mut().zip(&mut ended).zip(&change.parts) {
            if let (Some(before), 1..) = (&ended, part) {
                refused = refused.or(Some(format!("change {before} before it was refused")));
            }
            for at in 0..part {
                let Some(entry) = entries.next() else {
                    done = None;
                    break;
                };
                match entry {
                    (now, None) => done = done.map(|done: Instant| done.max(now)),
                    (_, Some(why)) => {
                        refused = Some(match at {
                            0 => why,
                            _ => format!("{why}, after {at} of its {part} parts here were done"),
                        });
                        *ended = Some(change.name.clone());
                        break;
                    }
                }
            }
        }
        let carried = change.when != "never";
        ChangeReport {
            name: change.name.clone(),
            at_ns: change.at.as_ns(),
            when: change.when.clone(),
            ground: change.ground.clone(),
            done_ns: done
                .filter(|_| carried && refused.is_none())
                .map(|done| log.ns(done.ticks())),
            refused,
        }
    };
    log.changes.iter().map(report).collect()
}

/// The entries of changes on one CPU, and why the scheduler refused them.
fn entries(cpu: &crate::log::CpuLog) -> Vec<(Instant, Option<String>)> {
    let mut found = Vec::new();
    let mut open = false;
    for (now, record) in &cpu.records {
        match record {
            Record::Entry(entry) => {
                open = matches!(entry.event, Event::Change { .. } | Event::Manage { .. });
            }
            Record::Decision(decision) if open => {
                found.push((
                    now,
                    decision.refused.map(|refusal| refusal.words().to_owned()),
                ));
                open = false;
            }
            _ => {}
        }
    }
    found
}

impl ChangeReport {
    /// Whether the run owes this change: the scheduler refused it, or it was admitted and asked
    /// for, and was not done in a run that is recorded whole and reached its end, at `end_ns`.
    pub(super) fn is_owed(&self, end_ns: Option<u64>) -> bool {
        let asked = end_ns.is_some_and(|end| self.at_ns < end);
        self.refused.is_some() || (self.when != "never" && self.done_ns.is_none() && asked)
    }
}

impl fmt::Display for ChangeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "change {}: asked for at {}, ",
            self.name,
            Short(self.at_ns)
        )?;
        match (&self.refused, self.done_ns) {
            (Some(refused), _) => write!(f, "REFUSED by the scheduler: {refused}")?,
            (None, Some(done)) => write!(f, "done at {}", Short(done))?,
            (None, None) if self.when == "never" => write!(f, "refused and not done")?,
            (None, None) => write!(f, "NOT DONE before the run ended")?,
        }
        write!(f, " ({}: {})", self.when, self.ground)
    }
}
