//! Supply and locks in the timeline: slots, budgets left and used up, resources held.

use std::cmp::Ordering;
use std::fmt::Write;

use punctual_kern::Grant;
use punctual_model::Instant;

use super::svg::float;
use super::timeline::{Drawing, ROW, TOP};
use crate::behavior::{Behavior, WaitReason};
use crate::short::Short;
use crate::slots;

/// Height of what is drawn in a row.
const HEIGHT: f64 = ROW - TOP - 2.0;
/// Most slots drawn in one row.
const MAX_SLOTS: usize = 2_000;

impl Drawing<'_> {
    /// Behind a row: the slots of the thread.
    pub(super) fn slots(&mut self, cpu: usize, (thread, y): (usize, f64)) {
        let (from, to) = (self.stretch.start, self.stretch.end);
        let tables = &self.log.tables.cpus[cpu];
        for slot in slots::of_thread(tables, thread, (from, to), MAX_SLOTS) {
            self.named("slot", slot, (y, HEIGHT), "its slot");
        }
    }

    /// The row of a scheduler: its slots, or the budget that its server has left.
    pub(super) fn scheduler(&mut self, cpu: usize, b: &Behavior, (at, y): (usize, f64)) {
        let (from, to) = (self.stretch.start, self.stretch.end);
        let tables = &self.log.tables.cpus[cpu];
        let Some(node) = tables.nodes.get(at.saturating_sub(1)) else {
            return;
        };
        if let Grant::Slots = node.terms.supply {
            let place = u16::try_from(at).unwrap_or(0);
            for slot in slots::of_node(tables, place, (from, to), MAX_SLOTS) {
                self.named("slot", slot, (y, HEIGHT), "its slot");
            }
        }
        let what = format!("{} has no budget", self.log.node_name(cpu, at));
        let starved = b.starved.iter().filter(|s| s.node == at);
        for starved in starved.filter(|s| s.end > from && s.start < to) {
            let stretch = (starved.start.max(from), starved.end.min(to));
            self.named("starved", stretch, (y, HEIGHT), &what);
        }
        if let Grant::Server(server) = node.terms.supply {
            self.budget(b, (at, server.budget.ticks()), y);
        }
    }

    /// The budget that a server has left, as a filled curve.
    fn budget(&mut self, b: &Behavior, (node, full): (usize, u64), y: f64) {
        let (from, to) = (self.stretch.start, self.stretch.end);
        let first = b.budgets.partition_point(|left| left.at < from);
        let before = b.budgets[..first]
            .iter()
            .rev()
            .find(|left| left.node == node);
        let inside = b.budgets[first..].iter().take_while(|left| left.at < to);
        let height = |budget: u64| HEIGHT - HEIGHT * float(budget.min(full)) / float(full.max(1));
        let mut level = before.map_or(full, |left| left.budget.ticks());
        let mut path = format!("M0 {HEIGHT}V{:.1}", height(level));
        for left in inside.filter(|left| left.node == node) {
            if !self.counted() {
                break;
            }
            // A place in ten-thousandths of a percent.
            let (x, now) = (self.x(left.at) * 1e4, left.budget.ticks());
            match now.cmp(&level) {
                Ordering::Less => put!(path, "L{x:.1} {:.1}", height(now)),
                Ordering::Equal => put!(path, "H{x:.1}"),
                Ordering::Greater => put!(path, "H{x:.1}V{:.1}", height(now)),
            }
            level = now;
        }
        put!(
            self.body,
            "<svg y=\"{y:.0}\" width=\"100%\" height=\"{HEIGHT}\" viewBox=\"0 0 1000000 {HEIGHT}\" \
             preserveAspectRatio=\"none\"><path class=\"left\" d=\"{path}H1000000V{HEIGHT}z\"/></svg>"
        );
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
