//! Instances of groups as segments of one plan
//!
//! # Assumptions
//! 1. The system is valid: precedence has no circles, and children lead to a group that arrives.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec;
use alloc::vec::Vec;

use punctual_model::{
    GroupId, GroupSegment, Instant, Ns, PlannedNode, Protocol, Request, Spawn, System,
};
use punctual_planner::{Capacities, Location, Segment, Segments, Use};

use super::length::Lengths;
use crate::error::{AnalysisError, Checked, in_range};
use crate::units::{Span, Work};

/// Most segments of one plan.
pub(crate) const MOST_SEGMENTS: usize = 20_000;

/// One arrival of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Instance {
    pub(crate) group: GroupId,
    /// Which arrival of its family, counted from 0.
    pub(crate) number: u64,
    pub(crate) arrival: Instant<Ns>,
    /// The period of its family; zero: it arrives once.
    pub(crate) every: Span,
}

/// Segments of a plan, and whose they are.
pub(crate) struct Expanded {
    pub(crate) instances: Vec<Instance>,
    pub(crate) segments: Segments<Ns>,
    /// By segment of the plan: its instance, and its place in the group.
    pub(crate) parts: Vec<(usize, usize)>,
    /// Some segment is not alike on all CPUs.
    pub(crate) located: bool,
    /// So many instances and segments have numbers before these.
    before: (usize, usize),
}

impl Expanded {
    /// The arrival and the place of the segment with this number in the plan, by its tag, if it is
    /// one of these.
    pub(crate) fn part(&self, tag: u64) -> Option<(Instance, usize)> {
        let own = usize::try_from(tag).ok()?.checked_sub(self.before.1)?;
        let &(instance, place) = self.parts.get(own)?;
        Some((self.instances[instance], place))
    }
}

/// The groups of a system as the planner numbers their threads and processes.
pub(crate) struct Parts<'a> {
    pub(crate) system: &'a System,
    pub(crate) lengths: &'a Lengths<'a>,
    pub(crate) nodes: Vec<PlannedNode>,
    /// By group: the number of its first thread, behind the planned resources.
    threads: Vec<usize>,
    processes: BTreeMap<&'a str, u32>,
    resources: usize,
}

impl<'a> Parts<'a> {
    pub(crate) fn new(system: &'a System, lengths: &'a Lengths<'a>) -> Parts<'a> {
        let mut threads = Vec::with_capacity(system.groups.len());
        let mut next = system.resources.len();
        let mut processes = BTreeMap::new();
        for group in &system.groups {
            threads.push(next);
            next += group.threads.len();
            for thread in &group.threads {
                let number = u32::try_from(processes.len()).unwrap_or(u32::MAX);
                processes.entry(thread.process.as_str()).or_insert(number);
            }
        }
        Parts {
            system,
            lengths,
            nodes: system.planned_nodes(),
            threads,
            processes,
            resources: next,
        }
    }

    /// These arrivals, each with the children that are planned with it, `behind` others in a plan.
    /// A segment has its number in that plan as its tag. Members of a family have the order that a
    /// planner gives them while it runs, since ties are decided by number. O(n log n).
    pub(crate) fn expand(
        &self,
        arrivals: &[Instance],
        behind: Option<&Expanded>,
    ) -> Checked<Expanded> {
        let mut instances = Vec::new();
        let mut spawned = Vec::new();
        for &root in arrivals {
            let mut open = VecDeque::from([(root, None)]);
            let family = instances.len();
            while let Some((instance, by)) = open.pop_front() {
                let own = instances.len();
                instances.push(instance);
                spawned.push((family, by));
                let group = &self.system.groups[instance.group.index()];
                for at in group.in_order() {
                    if let Some(Spawn::Dependent { group }) = group.segments[at].spawn {
                        open.push_back((Instance { group, ..instance }, Some((own, at))));
                    }
                }
            }
        }
        let capacities = self.capacities(&instances)?;
        let mut expanded = Expanded {
            instances,
            segments: Segments::new(capacities),
            parts: Vec::new(),
            located: false,
            before: behind.map_or((0, 0), |others| {
                (others.instances.len(), others.parts.len())
            }),
        };
        let mut first = Vec::with_capacity(spawned.len());
        for (own, (family, by)) in spawned.into_iter().enumerate() {
            let after = by.and_then(|(parent, at): (usize, usize)| {
                let numbers: &Vec<usize> = first.get(parent)?;
                numbers.get(at).copied()
            });
            first.push(self.push(&mut expanded, (own, family), after)?);
        }
        Ok(expanded)
    }

    /// Room for these instances.
    fn capacities(&self, instances: &[Instance]) -> Checked<Capacities> {
        let mut capacities = Capacities {
            segments: 0,
            orders: 0,
            uses: 0,
            cpus: self.nodes.len(),
            resources: self.resources,
        };
        for instance in instances {
            let group = &self.system.groups[instance.group.index()];
            capacities.segments += group.segments.len();
            if capacities.segments > MOST_SEGMENTS {
                return Err(self.too_many(instance.group));
            }
            for segment in &group.segments {
                capacities.uses += segment.uses.len() + 1;
                capacities.orders += segment.after.len() + 2;
            }
        }
        Ok(capacities)
    }

    /// The error for a plan of too many segments, some of which are of this group.
    pub(crate) fn too_many(&self, group: GroupId) -> AnalysisError {
        let name = &self.system.groups[group.index()].name;
        let what = alloc::format!(
            "a plan of more than {MOST_SEGMENTS} segments, among them group `{name}`"
        );
        AnalysisError::Unsupported { what }
    }

    /// The segments of one instance, `after` the one that spawns it; their numbers in the plan.
    fn push(
        &self,
        expanded: &mut Expanded,
        (own, family): (usize, usize),
        after: Option<usize>,
    ) -> Checked<Vec<usize>> {
        let instance = expanded.instances[own];
        let before = expanded.before;
        let number_of = |own: usize| u32::try_from(before.0 + own).unwrap_or(u32::MAX);
        let group = &self.system.groups[instance.group.index()];
        let mut numbers = vec![usize::MAX; group.segments.len()];
        let at = |span| in_range(instance.arrival.checked_add(span), "an instant of a plan");
        let (release, deadline) = (at(group.release)?, at(group.relative_deadline)?);
        for place in group.in_order() {
            let length = self.lengths.of(instance.group, place)?;
            let segment = &group.segments[place];
            let number = expanded
                .segments
                .push(
                    Segment {
                        group: number_of(own),
                        release,
                        wcet: length.home,
                        absolute_deadline: deadline,
                    },
                    &self.uses(instance.group, segment),
                )
                .map_err(|mistake| broken(&mistake))?;
            let (planned, tag) = (&mut expanded.segments, before.1 + number);
            planned.set_importance(number, group.importance);
            planned.set_family(number, number_of(family));
            planned.set_tag(number, tag as u64);
            let fits = planned.set_cleanup(number, segment.cleanup, &[]);
            fits.map_err(|_| AnalysisError::Invalid {
                what: alloc::format!("a handler for `{}` that is too long", segment.name),
            })?;
            let location = self.location(instance.group, segment, length.away);
            if let Some(location) = location {
                expanded.located = true;
                expanded.segments.set_location(number, location);
            }
            let before: BTreeSet<usize> = group.predecessors(place).collect();
            let before = before.into_iter().map(|place| numbers[place]).chain(after);
            for before in before {
                let order = expanded.segments.precede(before, number);
                order.map_err(|mistake| broken(&mistake))?;
            }
            numbers[place] = number;
            expanded.parts.push((own, place));
        }
        Ok(numbers)
    }

    /// Its resources, and the place of its thread.
    fn uses(&self, group: GroupId, segment: &GroupSegment) -> Vec<Use> {
        let place = Use {
            resource: self.threads[group.index()] + segment.thread,
            mode: punctual_model::Mode::Exclusive,
        };
        let uses = segment.uses.iter().map(|used| Use {
            resource: used.resource.index(),
            mode: used.mode,
        });
        uses.chain([place]).collect()
    }

    /// `None` where all CPUs are alike for it.
    fn location(&self, group: GroupId, segment: &GroupSegment, away: Work) -> Option<Location<Ns>> {
        let thread = &self.system.groups[group.index()].threads[segment.thread];
        let planning = &self.system.planning;
        let switch = self.lengths.switch();
        if thread.home.is_none() && switch.is_zero() && !planning.within_process {
            return None;
        }
        let at = |cpu| self.nodes.iter().position(|node| node.cpu == cpu);
        Some(Location {
            process: self.processes.get(&*thread.process).copied().unwrap_or(0),
            home: thread.home.and_then(at),
            away,
            switch,
        })
    }

    /// The latest instant at which something of a family that arrives at 0 may end.
    pub(crate) fn end_of_family(&self, root: GroupId) -> Span {
        let mut latest = Span::ZERO;
        let mut open = vec![root];
        while let Some(id) = open.pop() {
            let group = &self.system.groups[id.index()];
            latest = latest.max(group.relative_deadline);
            for segment in &group.segments {
                if let Some(Spawn::Dependent { group }) = segment.spawn {
                    open.push(group);
                }
            }
        }
        latest
    }

    /// The groups that arrive with a period, with it.
    pub(crate) fn periodic(&self) -> impl Iterator<Item = (GroupId, Span)> + '_ {
        let groups = (0..=u16::MAX).map(GroupId).zip(&self.system.groups);
        groups.filter_map(|(id, group)| match group.request {
            Request::Periodic { period } => Some((id, period)),
            _ => None,
        })
    }

    /// How a resource of the planner is named: one of the file, or a thread's place.
    pub(crate) fn resource_name(&self, resource: usize) -> alloc::string::String {
        if let Some(own) = self.system.resources.get(resource) {
            debug_assert_eq!(own.protocol, Protocol::Planned, "others are not used");
            return own.name.clone();
        }
        let group = self.threads.partition_point(|first| *first <= resource) - 1;
        let (own, thread) = (&self.system.groups[group], resource - self.threads[group]);
        alloc::format!("thread {}.{}", own.name, own.threads[thread].name)
    }
}

/// A valid system has no such segment.
fn broken(mistake: &punctual_planner::Mistake) -> AnalysisError {
    let what = alloc::format!("a segment of a group: {mistake}");
    AnalysisError::Invalid { what }
}
