//! The segments of one CPU as the events of its log state them

use std::collections::BTreeMap;

use punctual_kern::{AgendaStep, PlannedSegment};
use punctual_model::Instant;

/// The segments of one CPU as its events state them.
#[derive(Default, Debug)]
pub(crate) struct Agenda {
    pub(crate) in_force: BTreeMap<u64, Row>,
    staged: BTreeMap<u64, Row>,
    last_staged: Option<u64>,
    pub(crate) cutoff: Option<Instant>,
}

/// A segment, and the slots and frontiers that it needs.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) segment: PlannedSegment,
    pub(crate) needs: Vec<(u32, u64)>,
    pub(crate) dead: bool,
    pub(crate) cleans: bool,
}

impl Agenda {
    /// Takes over a step that was not refused.
    pub(crate) fn take(&mut self, step: &AgendaStep) {
        match *step {
            AgendaStep::Hold { cutoff } => {
                self.cutoff = cutoff;
                if cutoff.is_none() {
                    self.staged.clear();
                }
            }
            AgendaStep::Stage(segment) => {
                let row = Row {
                    segment,
                    needs: Vec::new(),
                    dead: false,
                    cleans: false,
                };
                self.staged.insert(segment.number, row);
                self.last_staged = Some(segment.number);
            }
            AgendaStep::Need { slot, frontier } => {
                let row = self.last_staged.and_then(|last| self.staged.get_mut(&last));
                row.into_iter()
                    .for_each(|row| row.needs.push((slot, frontier)));
            }
            AgendaStep::Commit { from } => {
                let _ = self.in_force.split_off(&from);
                self.in_force.append(&mut self.staged);
                self.cutoff = None;
            }
            AgendaStep::Kill { group, cleans } => {
                let rows = self.in_force.values_mut().chain(self.staged.values_mut());
                for row in rows.filter(|row| row.segment.group == group) {
                    row.dead = true;
                    row.cleans |=
                        cleans == Some(row.segment.number) && !row.segment.cleanup.is_zero();
                }
            }
        }
    }
}
