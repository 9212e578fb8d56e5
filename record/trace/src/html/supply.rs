//! Supply and locks in the timeline: slots, budgets used up, resources held.

use punctual_model::Instant;

use super::svg::float;
use super::timeline::{Drawing, ROW, TOP};
use crate::behavior::{Behavior, WaitReason};
use crate::short::Short;
use crate::slots;

/// Most slots drawn in one row.
const MAX_SLOTS: usize = 2_000;

impl Drawing<'_> {
    /// Behind a row: when its slots are, and when a server above it has no budget.
    pub(super) fn supply(&mut self, cpu: usize, b: &Behavior, (thread, y): (usize, f64)) {
        let (from, to) = (self.stretch.start, self.stretch.end);
        let tables = &self.log.tables.cpus[cpu];
        let own = slots::of_thread(tables, thread, (from, to), MAX_SLOTS).unwrap_or_default();
        for slot in own {
            self.named("slot", slot, (y, ROW - TOP - 2.0), "its slot");
        }
        let home = tables.homes.get(thread).copied().map_or(0, usize::from);
        let up = |at: &usize| b.nodes.get(*at)?.parent;
        let above: Vec<usize> = std::iter::successors(Some(home), up)
            .take(b.nodes.len())
            .collect();
        let starved = b.starved.iter();
        let near = starved.filter(|s| s.end > from && s.start < to && above.contains(&s.node));
        for starved in near {
            let name = self.log.node_name(cpu, starved.node).to_string();
            let what = format!("{name} has no budget");
            let stretch = (starved.start.max(from), starved.end.min(to));
            self.named("starved", stretch, (y, ROW - TOP - 2.0), &what);
        }
    }

    /// Over the rows: resources that are held and waited for.
    pub(super) fn locks(&mut self, cpu: usize, b: &Behavior, (top, rows): (f64, usize)) {
        let (from, to) = (self.stretch.start, self.stretch.end);
        let row = |thread: usize| top + ROW * float(thread as u64);
        let near = b.holds.iter().filter(|h| h.end > from && h.start < to);
        for hold in near.filter(|h| h.thread.index() < rows) {
            let name = self.log.resource_name(cpu, hold.resource);
            let what = format!("holds {name}");
            let y = row(hold.thread.index()) + ROW - 5.0;
            let stretch = (hold.start.max(from), hold.end.min(to));
            self.named("hold", stretch, (y, 3.0), &what);
        }
        let near = b.waits.iter().filter(|w| w.end > from && w.start < to);
        for wait in near {
            let what = match wait.reason {
                WaitReason::Resource(resource) => {
                    format!("waits for {}", self.log.resource_name(cpu, resource))
                }
                WaitReason::Supply => "waits for a budget that its section fits into".into(),
                _ => continue,
            };
            let thread = b.jobs.get(wait.job).map_or(rows, |job| job.thread.index());
            if thread < rows {
                let y = row(thread) + TOP + 8.0;
                let stretch = (wait.start.max(from), wait.end.min(to));
                self.named("waits", stretch, (y, 4.0), &what);
            }
        }
    }

    /// The stretch with its length behind its name.
    fn named(&mut self, class: &str, of: (Instant, Instant), place: (f64, f64), name: &str) {
        let length = Short(self.log.ns(of.1.since(of.0).ticks()));
        self.rect(class, of, place, &format!("{name}: {length}"));
    }
}
