//! Planned groups: whether their segments could be planned at all.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::Errors;
use crate::arrival::Arrivals;
use crate::group::{Group, GroupSegment, Overload, Request, Spawn};
use crate::id::{CpuId, GroupId};
use crate::readable::readable;
use crate::resource::Protocol;
use crate::system::{Fault, System};
use crate::time::{Ns, Span, Work};

/// Names of a circle that a message shows before it counts the rest.
const SHOWN_IN_CIRCLE: usize = 8;

/// Checks every group, and the ways from children to their parents. O(n log n) in segments, uses
/// and orders.
pub(super) fn check_all(system: &System, errors: &mut Errors) {
    check_planning(system, errors);
    let nodes = system.planned_nodes();
    let cpus: BTreeSet<CpuId> = nodes.iter().map(|node| node.cpu).collect();
    let mut names = BTreeSet::new();
    let mut homes = BTreeMap::new();
    for (id, group) in (0..=u16::MAX).map(GroupId).zip(&system.groups) {
        errors.check_name("group", &group.name, Fault::Group(id, "name"));
        let mut checker = Checker {
            system,
            id,
            group,
            errors,
        };
        if !names.insert(group.name.as_str()) {
            checker.add(
                "name",
                "its name is taken by another group".into(),
                "rename one of them",
            );
        }
        if cpus.is_empty() {
            checker.add(
                "segments",
                "nothing executes its segments".into(),
                "give a CPU, or a scheduler with slots or a server, `policy = \"planned\"`",
            );
        }
        checker.check_sizes();
        checker.check_times();
        checker.check_request();
        checker.check_threads(&cpus, &mut homes);
        checker.check_segments();
        checker.check_circles();
    }
    check_children(system, errors);
}

fn check_planning(system: &System, errors: &mut Errors) {
    let planning = &system.planning;
    if planning.window == Some(0) {
        let message = "a window of 0 segments".into();
        errors.add(
            Fault::Planning("window"),
            message,
            "look at one segment at least",
        );
    }
    if planning.heuristic.factor() == Some(0) {
        let message = "a factor of 0: the second term counts nothing".into();
        let help = "raise it, or write `heuristic = \"deadline\"`";
        errors.add(Fault::Planning("factor"), message, help);
    }
    if planning.margin > planning.within {
        let message = format!(
            "a margin of {} in an answer within {}",
            readable(planning.margin.as_ns()),
            readable(planning.within.as_ns())
        );
        errors.add(
            Fault::Planning("margin"),
            message,
            "lower it, or allow more with `within`",
        );
    }
    let worth = |group: &Group| group.importance;
    let least = system.groups.iter().map(worth).min();
    if planning.overload == Overload::Shed && least == system.groups.iter().map(worth).max() {
        errors.add(
            Fault::Planning("overload"),
            "all groups are equally important, so none is removed for another".into(),
            "give those that are kept longer an `importance`, or remove `overload`",
        );
    }
}

/// One group under examination.
struct Checker<'a, 'e> {
    system: &'a System,
    id: GroupId,
    group: &'a Group,
    errors: &'e mut Errors,
}

impl<'a> Checker<'a, '_> {
    fn add(&mut self, key: &'static str, problem: String, help: impl Into<String>) {
        let message = format!("group `{}`: {problem}", self.group.name);
        self.errors.add(Fault::Group(self.id, key), message, help);
    }

    fn add_segment(&mut self, at: usize, key: &'static str, problem: String, help: &str) {
        let message = format!("group `{}`: {problem}", self.group.name);
        self.errors
            .add(Fault::Segment(self.id, at, key), message, help);
    }

    fn check_sizes(&mut self) {
        let most = System::MAX_SEGMENTS;
        let counts = [
            ("segments", self.group.segments.len()),
            ("threads", self.group.threads.len()),
        ];
        for (what, count) in counts {
            if count > most {
                self.add(
                    what,
                    format!("it has {count} {what}"),
                    format!("a group has at most {most}"),
                );
            }
        }
        if self.group.segments.is_empty() {
            self.add(
                "segments",
                "it has no segments".into(),
                "add `segments = [{ name = \"main\", wcet = \"1ms\" }]`",
            );
        }
    }

    fn check_times(&mut self) {
        let (release, deadline) = (self.group.release, self.group.relative_deadline);
        if release >= deadline {
            self.add(
                "deadline",
                format!(
                    "nothing starts before {}, and all has ended by {}",
                    readable(release.as_ns()),
                    readable(deadline.as_ns())
                ),
                "both count from the arrival: raise the deadline, or lower `release`",
            );
        }
    }

    fn check_request(&mut self) {
        let deadline = self.group.relative_deadline;
        match &self.group.request {
            Request::Periodic { period } if *period < deadline => {
                let (period, deadline) = (readable(period.as_ns()), readable(deadline.as_ns()));
                self.add(
                    "deadline",
                    format!("its deadline of {deadline} is beyond its period of {period}"),
                    "each of its instances ends before the next arrives, so that the plan repeats: \
                     lower the deadline, or raise the period",
                );
            }
            Request::OnLine {
                arrivals,
                min_separation,
                ..
            } => self.check_arrivals(arrivals, *min_separation),
            _ => {}
        }
    }

    fn check_arrivals(&mut self, arrivals: &Arrivals, min_separation: Span<Ns>) {
        let (problem, help) = match arrivals {
            Arrivals::Every(span) if span.is_zero() => (
                "requests every 0s".into(),
                "give them a distance above zero".into(),
            ),
            Arrivals::Random { mean } if mean.is_zero() || *mean < min_separation => {
                let (mean, least) = (readable(mean.as_ns()), readable(min_separation.as_ns()));
                (
                    format!("a mean distance of {mean}, and a smallest of {least}"),
                    "raise the mean".into(),
                )
            }
            Arrivals::At(instants) if !instants.is_sorted() => (
                String::from("requests that go back in time"),
                String::from("list them in order"),
            ),
            _ => return,
        };
        self.add("arrivals", problem, help);
    }

    /// `homes` has the home of each process so far.
    fn check_threads(
        &mut self,
        cpus: &BTreeSet<CpuId>,
        homes: &mut BTreeMap<&'a str, Option<CpuId>>,
    ) {
        let mut names = BTreeSet::new();
        for (at, thread) in self.group.threads.iter().enumerate() {
            let fault = |key| Fault::GroupThread(self.id, at, key);
            let what = format!("group `{}`: thread `{}`", self.group.name, thread.name);
            self.errors
                .check_name("thread", &thread.name, fault("name"));
            self.errors
                .check_name("process", &thread.process, fault("process"));
            if !names.insert(thread.name.as_str()) {
                let message = format!("{what} is there twice");
                self.errors
                    .add(fault("name"), message, "rename one of them");
            }
            if thread.home.is_some_and(|home| !cpus.contains(&home)) {
                let message = format!("{what} is at home on a CPU that executes no segments");
                let help = "name a CPU with a planned node";
                self.errors.add(fault("home"), message, help);
            }
            let home = *homes.entry(&thread.process).or_insert(thread.home);
            if home != thread.home {
                let message = format!(
                    "{what} has another home than the other threads of process `{}`",
                    thread.process
                );
                let help = "the memory of a process is near one CPU: write the same `home`";
                self.errors.add(fault("home"), message, help);
            }
        }
    }

    fn check_segments(&mut self) {
        let mut names = BTreeSet::new();
        for (at, segment) in self.group.segments.iter().enumerate() {
            let fault = Fault::Segment(self.id, at, "name");
            self.errors.check_name("segment", &segment.name, fault);
            if !names.insert(segment.name.as_str()) {
                let problem = format!("two segments are named `{}`", segment.name);
                self.add_segment(at, "name", problem, "rename one of them");
            }
            if segment.thread >= self.group.threads.len() {
                let problem = format!("segment `{}` is of no thread", segment.name);
                self.add_segment(at, "thread", problem, "name a thread of the group");
            }
            self.check_lengths(at, segment);
            self.check_uses(at, segment);
            self.check_orders(at, segment);
            if segment.kills.contains(&self.id) {
                let problem = format!("segment `{}` kills its own group", segment.name);
                self.add_segment(at, "kills", problem, "name another group");
            }
            if segment.kills.iter().any(|id| self.unknown(*id)) {
                let problem = format!("segment `{}` kills a group that is not there", segment.name);
                self.add_segment(at, "kills", problem, "name a group of the system");
            }
        }
    }

    fn unknown(&self, id: GroupId) -> bool {
        id.index() >= self.system.groups.len()
    }

    fn check_lengths(&mut self, at: usize, segment: &GroupSegment) {
        let (name, group) = (&segment.name, self.group);
        let (timer, reset) = (self.system.machine.timer, self.system.planning.reset);
        let floor = timer.saturating_add(reset).max(Work::from_ns(1));
        let length = readable(segment.wcet.as_ns());
        if segment.wcet < floor {
            self.add_segment(
                at,
                "wcet",
                format!(
                    "segment `{name}` of {length} is below the floor of {}",
                    readable(floor.as_ns())
                ),
                "a killed thread is set back in the time of its next segment, by an entry and a \
                 reset: make it longer, or join it with its neighbour",
            );
        }
        let least = segment.wcet.as_span().saturating_add(segment.wait());
        let room = group.relative_deadline.saturating_sub(group.release);
        if least > room && !room.is_zero() {
            self.add_segment(
                at,
                "wcet",
                format!(
                    "segment `{name}` takes {}, and from release to deadline are {}",
                    readable(least.as_ns()),
                    readable(room.as_ns())
                ),
                "no plan has room for it: shorten it, or raise the deadline of its group",
            );
        }
        let away = segment.wcet_away;
        let at_home = group.threads.get(segment.thread);
        let at_home = at_home.is_some_and(|thread| thread.home.is_some());
        if away.is_some_and(|away| away < segment.wcet || !at_home) {
            self.add_segment(
                at,
                "wcet-away",
                format!("segment `{name}` is shorter away from home, or at home everywhere"),
                "give its thread a `home`, and `wcet-away` at least the `wcet`",
            );
        }
        let handled = segment.cleanup.saturating_add(floor);
        if !segment.cleanup.is_zero() && handled > segment.wcet {
            self.add_segment(
                at,
                "cleanup",
                format!(
                    "a handler of {} and {} to set its thread back take longer than segment \
                     `{name}` of {length}",
                    readable(segment.cleanup.as_ns()),
                    readable(floor.as_ns())
                ),
                "it executes in the place of the segment: shorten it, or lengthen the segment",
            );
        }
    }

    fn check_uses(&mut self, at: usize, segment: &GroupSegment) {
        let mut seen = BTreeSet::new();
        for used in &segment.uses {
            let resource = self.system.resources.get(used.resource.index());
            let Some(resource) = resource else {
                let problem = format!(
                    "segment `{}` uses resource number {}, which does not exist",
                    segment.name, used.resource.0
                );
                self.add_segment(at, "uses", problem, "name a resource of the system");
                continue;
            };
            if resource.protocol != Protocol::Planned {
                let problem = format!(
                    "segment `{}` uses `{}`, whose protocol is {}",
                    segment.name,
                    resource.name,
                    resource.protocol.name()
                );
                let help = "segments wait for no locks: say `protocol = \"planned\"`";
                self.add_segment(at, "uses", problem, help);
            }
            if !seen.insert(used.resource) {
                let problem = format!("segment `{}` uses `{}` twice", segment.name, resource.name);
                self.add_segment(at, "uses", problem, "name it once");
            }
        }
    }

    fn check_orders(&mut self, at: usize, segment: &GroupSegment) {
        for &before in &segment.after {
            if before >= self.group.segments.len() {
                let problem = format!("segment `{}` comes after one that is none", segment.name);
                self.add_segment(at, "after", problem, "name a segment of the group");
            }
        }
    }

    /// Segments that come after each other, in a circle.
    fn check_circles(&mut self) {
        let order = self.group.in_order();
        let count = self.group.segments.len();
        if order.len() == count {
            return;
        }
        let mut waits = vec![true; count];
        for &done in &order {
            waits[done] = false;
        }
        // From a segment that waits for ever back to ones that do, until one comes again.
        let Some(mut at) = waits.iter().position(|waits| *waits) else {
            return;
        };
        let mut path: Vec<usize> = Vec::new();
        while !path.contains(&at) {
            path.push(at);
            let mut before = self.group.predecessors(at);
            let Some(next) = before.find(|before| waits.get(*before) == Some(&true)) else {
                return;
            };
            at = next;
        }
        let begin = path.iter().position(|seen| *seen == at).unwrap_or(0);
        let circle = &path[begin..];
        let name = |at: &usize| self.group.segments[*at].name.as_str();
        let mut shown = format!("segment `{}`", name(&circle[0]));
        for before in circle.iter().skip(1).take(SHOWN_IN_CIRCLE) {
            shown += &format!(" comes after `{}`, which", name(before));
        }
        if circle.len() > SHOWN_IN_CIRCLE + 1 {
            shown += &format!(
                " comes after {} more, which",
                circle.len() - SHOWN_IN_CIRCLE - 1
            );
        }
        let problem = format!("{shown} comes after `{}`", name(&circle[0]));
        let help = "none of them could start: remove one `after`, or change the order in a thread";
        self.add_segment(circle[0], "after", problem, help);
    }
}

/// Each spawned group has one segment that spawns it, and the way up leads to one that arrives.
fn check_children(system: &System, errors: &mut Errors) {
    let count = system.groups.len();
    let mut parents: Vec<Option<GroupId>> = vec![None; count];
    let mut dependent = BTreeSet::new();
    for (id, group) in (0..=u16::MAX).map(GroupId).zip(&system.groups) {
        for (at, segment) in group.segments.iter().enumerate() {
            if let Some(Spawn::Dependent { group }) = segment.spawn {
                dependent.insert(group);
            }
            for &child in segment.children() {
                let fault = Fault::Segment(id, at, "spawns");
                let Some(spawned) = system.groups.get(child.index()) else {
                    let message = format!("segment `{}` spawns no group", segment.name);
                    errors.add(fault, message, "name a group of the system");
                    continue;
                };
                let what = format!("segment `{}` spawns `{}`", segment.name, spawned.name);
                if spawned.request != Request::Spawned {
                    let message = format!("{what}, which arrives by itself");
                    errors.add(
                        fault,
                        message,
                        "write `request = \"spawned\"` in its section",
                    );
                } else if parents[child.index()].replace(id).is_some() {
                    let message = format!("{what}, and another one does, too");
                    errors.add(fault, message, "one segment spawns a group: write it twice");
                }
            }
        }
    }
    for (id, group) in (0..=u16::MAX).map(GroupId).zip(&system.groups) {
        if group.request != Request::Spawned {
            continue;
        }
        let up = |at: &GroupId| parents.get(at.index()).copied().flatten();
        let root = core::iter::successors(Some(id), up).take(count + 1);
        let root = root.last().and_then(|root| system.groups.get(root.index()));
        match root {
            Some(root) if root.request != Request::Spawned => {
                // The one that it is planned with: one that is asked for is planned anew.
                let with = |at: &GroupId| up(at).filter(|_| dependent.contains(at));
                let with = core::iter::successors(Some(id), with).take(count + 1);
                if let Some(with) = with.last().filter(|with| *with != id) {
                    check_repeats(system, id, &system.groups[with.index()], errors);
                }
            }
            _ => errors.add(
                Fault::Group(id, "request"),
                format!("group `{}`: no group that arrives spawns it", group.name),
                "name it in `spawns` of a segment, or say how it is requested",
            ),
        }
    }
}

/// A child that is planned with a periodic group ends before the next instance arrives, too.
fn check_repeats(system: &System, id: GroupId, root: &Group, errors: &mut Errors) {
    let group = &system.groups[id.index()];
    if let Request::Periodic { period } = root.request
        && group.relative_deadline > period
    {
        errors.add(
            Fault::Group(id, "deadline"),
            format!(
                "group `{}`: its deadline of {} is beyond the period of `{}`, {}",
                group.name,
                readable(group.relative_deadline.as_ns()),
                root.name,
                readable(period.as_ns())
            ),
            "it is planned with its parent, and that plan repeats: lower the deadline",
        );
    }
}
