//! How far a segment of a plan may grow before somebody is late, in the order of the plan
//!
//! The plan says who goes before whom: on a node, with a resource, in a thread, in a group. When a
//! segment grows, those behind it start later, and nobody starts earlier than planned. That order
//! with the longer segment is again a plan, as long as everybody is in time. Starts only move on as
//! lengths grow, so the growths that are allowed have a border.
//!
//! # Assumptions
//! 1. The plan is lawful.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use punctual_model::{GroupId, Instant, Mode, Ns, Spawn, System};

use super::answer::PlannedSegment;
use super::expand::Parts;
use crate::error::{Checked, in_range};
use crate::units::{Work, border};
use crate::verdict::Slack;

/// Most segments of a plan, times segments of a file, for which growth is searched.
const MOST: usize = 1_000_000;
/// No growth beyond this is told: a hundred thousand times itself.
const TENTHS: u64 = 100_000_000;

/// The segments of a plan, each with those that end before it starts.
pub(super) struct Ordered<'a> {
    parts: &'a Parts<'a>,
    segments: &'a [PlannedSegment],
    before: Vec<Vec<usize>>,
}

/// The users of one resource, while a plan is walked forwards.
#[derive(Default)]
struct Users {
    alone: Option<usize>,
    shared_since: Vec<usize>,
}

impl<'a> Ordered<'a> {
    /// `None` where the search would take too long. O(n · (uses + segments of a group)).
    pub(super) fn new(parts: &'a Parts<'a>, segments: &'a [PlannedSegment]) -> Option<Ordered<'a>> {
        let all: usize = parts.system.groups.iter().map(|g| g.segments.len()).sum();
        (segments.len().saturating_mul(all) <= MOST).then(|| Ordered {
            before: before(parts.system, segments),
            parts,
            segments,
        })
    }

    /// The largest growth of a segment of a group, in whole tenths of a percent.
    pub(super) fn slack(&self, group: GroupId, segment: usize) -> Checked<Slack> {
        let wcet = self.parts.system.groups[group.index()].segments[segment].wcet;
        let holds = |tenths: u64| {
            let grown = Slack(tenths).grown(wcet);
            self.is_lawful_with((group, segment), in_range(grown, "a segment")?)
        };
        if holds(TENTHS)? {
            return Ok(Slack(TENTHS));
        }
        Ok(Slack(border(TENTHS, 0, holds)?))
    }

    /// Whether everybody is in time when a segment takes so long.
    fn is_lawful_with(&self, (group, segment): (GroupId, usize), wcet: Work) -> Checked<bool> {
        let system = self.parts.system;
        let own = &system.groups[group.index()].segments[segment];
        let now = self.parts.lengths.of(group, segment)?;
        let grown = self.parts.lengths.of_wcet(own, wcet)?;
        let (home, away) = (
            grown.home.saturating_sub(now.home).as_span(),
            grown.away.saturating_sub(now.away).as_span(),
        );
        let mut ends: Vec<Instant<Ns>> = Vec::with_capacity(self.segments.len());
        for (planned, before) in self.segments.iter().zip(&self.before) {
            let mut length = planned.end.since(planned.start);
            if (planned.group, planned.segment) == (group, segment) {
                let more = match length < now.away.as_span() || now.home == now.away {
                    true => home,
                    false => away,
                };
                length = length.saturating_add(more);
            }
            let earlier = before.iter().map(|before| ends[*before]);
            let start = earlier.fold(planned.start, Instant::max);
            let end = start.saturating_add(length);
            let allowed = system.groups[planned.group.index()].relative_deadline;
            if end > planned.arrival.saturating_add(allowed) {
                return Ok(false);
            }
            ends.push(end);
        }
        Ok(true)
    }
}

/// Of each segment those that end before it starts.
fn before(system: &System, segments: &[PlannedSegment]) -> Vec<Vec<usize>> {
    let mut nodes: BTreeMap<usize, usize> = BTreeMap::new();
    let mut threads: BTreeMap<(GroupId, usize), usize> = BTreeMap::new();
    let mut users: BTreeMap<usize, Users> = BTreeMap::new();
    let mut places: BTreeMap<(GroupId, u64, usize), usize> = BTreeMap::new();
    let spawners = spawners(system);
    let mut all = Vec::with_capacity(segments.len());
    for (at, planned) in segments.iter().enumerate() {
        let group = &system.groups[planned.group.index()];
        let own = &group.segments[planned.segment];
        let mut before = Vec::new();
        before.extend(nodes.insert(planned.node, at));
        before.extend(threads.insert((planned.group, own.thread), at));
        for used in &own.uses {
            let users = users.entry(used.resource.index()).or_default();
            before.extend(users.alone);
            match used.mode {
                Mode::Exclusive => {
                    before.append(&mut users.shared_since);
                    users.alone = Some(at);
                }
                Mode::Shared => users.shared_since.push(at),
            }
        }
        let in_group = group.predecessors(planned.segment);
        let in_group = in_group.map(|before| (planned.group, before));
        for (group, segment) in in_group.chain(spawners[planned.group.index()]) {
            before.extend(places.get(&(group, planned.instance, segment)));
        }
        places.insert((planned.group, planned.instance, planned.segment), at);
        all.push(before);
    }
    all
}

/// Of each group the segment that spawns it, if it is planned with that.
fn spawners(system: &System) -> Vec<Option<(GroupId, usize)>> {
    let mut spawners = vec![None; system.groups.len()];
    for (id, group) in (0..=u16::MAX).map(GroupId).zip(&system.groups) {
        for (at, segment) in group.segments.iter().enumerate() {
            if let Some(Spawn::Dependent { group }) = segment.spawn {
                spawners[group.index()] = Some((id, at));
            }
        }
    }
    spawners
}
