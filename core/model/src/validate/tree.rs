//! The trees of schedulers: which nodes lead to their CPU, and what orders whom.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::Errors;
use crate::id::{CpuId, SchedulerId};
use crate::scheduler::{MAX_DEPTH, PolicyKind};
use crate::system::{Fault, System};
use crate::task::Task;
use crate::time::Ns;

/// Names of a long circle that a message shows before it counts the rest.
const SHOWN_IN_CIRCLE: usize = 8;

/// Something that orders tasks and schedulers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Node {
    /// A CPU's own policy.
    Cpu(CpuId),
    /// A scheduler below one.
    Scheduler(SchedulerId),
}

/// The schedulers of a system with their levels below the CPU.
pub(super) struct Tree<'a> {
    pub(super) system: &'a System,
    /// 1 for a child of a CPU; `None`: it does not lead to a CPU within [`MAX_DEPTH`] levels.
    levels: Vec<Option<usize>>,
}

/// State of a scheduler while its way up is followed.
#[derive(Clone, Copy)]
enum Mark {
    Unseen,
    OnPath,
    Level(Option<usize>),
}

impl<'a> Tree<'a> {
    /// Follows every scheduler up to its CPU and reports what is in the way. O(n).
    pub(super) fn new(system: &'a System, errors: &mut Errors) -> Tree<'a> {
        let count = system.schedulers.len().min(System::MAX_SCHEDULERS);
        let mut marks = vec![Mark::Unseen; count];
        for start in (0..=u16::MAX).map(SchedulerId).take(count) {
            follow(system, start, &mut marks, errors);
        }
        let level = |mark| match mark {
            Mark::Level(level) => level,
            Mark::Unseen | Mark::OnPath => None,
        };
        Tree {
            system,
            levels: marks.into_iter().map(level).collect(),
        }
    }

    /// The parent that supplies a scheduler; `None` unless both lead to the CPU.
    pub(super) fn parent_of(&self, id: SchedulerId) -> Option<Node> {
        self.levels.get(id.index()).copied().flatten()?;
        let scheduler = self.system.schedulers.get(id.index())?;
        Some(match scheduler.parent {
            Some(parent) => Node::Scheduler(parent),
            None => Node::Cpu(scheduler.cpu),
        })
    }

    /// The policy that orders a task; `None` unless it leads to the task's CPU.
    pub(super) fn node_of(&self, task: &Task) -> Option<Node> {
        match task.scheduler {
            None => self
                .system
                .cpus
                .get(task.cpu.index())
                .map(|_| Node::Cpu(task.cpu)),
            Some(id) => {
                self.levels.get(id.index()).copied().flatten()?;
                let scheduler = self.system.schedulers.get(id.index())?;
                (scheduler.cpu == task.cpu).then_some(Node::Scheduler(id))
            }
        }
    }

    /// The scheduler that has a task in its care, also while it executes on a slice of another's
    /// supply; `None` unless both lead to the task's CPU.
    pub(super) fn care_of(&self, task: &Task) -> Option<Node> {
        let home = self.node_of(task)?;
        match (home, self.system.care_of(task)) {
            (Node::Cpu(_), _) => Some(home),
            (Node::Scheduler(_), None) => Some(Node::Cpu(task.cpu)),
            (Node::Scheduler(_), Some(care)) => {
                self.levels.get(care.index()).copied().flatten()?;
                Some(Node::Scheduler(care))
            }
        }
    }

    /// A node and everything above it, from the bottom. At most [`MAX_DEPTH`] + 1 of them.
    pub(super) fn path(&self, node: Node) -> impl Iterator<Item = Node> {
        core::iter::successors(Some(node), |node| match node {
            Node::Scheduler(id) => self.parent_of(*id),
            Node::Cpu(_) => None,
        })
    }

    /// The closest node that is above or equal to both; `None` on different CPUs.
    pub(super) fn closest_common(&self, one: Node, other: Node) -> Option<Node> {
        self.path(one)
            .find(|node| self.path(other).any(|above| above == *node))
    }

    /// The policy of a node; `None` when there is no such node.
    pub(super) fn policy(&self, node: Node) -> Option<PolicyKind<Ns>> {
        match node {
            Node::Cpu(id) => self.system.cpus.get(id.index()).map(|cpu| cpu.policy),
            Node::Scheduler(id) => {
                let scheduler = self.system.schedulers.get(id.index());
                scheduler.map(|scheduler| scheduler.policy)
            }
        }
    }

    /// A node in words: "CPU `0`" or "scheduler `app`".
    pub(super) fn describe(&self, node: Node) -> String {
        let named =
            |what, name: Option<&String>| format!("{what} `{}`", name.map_or("?", String::as_str));
        match node {
            Node::Cpu(id) => {
                let cpu = self.system.cpus.get(id.index());
                named("CPU", cpu.map(|cpu| &cpu.name))
            }
            Node::Scheduler(id) => {
                let scheduler = self.system.schedulers.get(id.index());
                named("scheduler", scheduler.map(|scheduler| &scheduler.name))
            }
        }
    }
}

/// Finds the levels of `start` and of all above it that are not known yet.
fn follow(system: &System, start: SchedulerId, marks: &mut [Mark], errors: &mut Errors) {
    let mut path = Vec::new();
    let mut at = start;
    let mut level = loop {
        let Some(mark) = marks.get_mut(at.index()) else {
            break None;
        };
        match *mark {
            Mark::Level(level) => break level,
            Mark::OnPath => {
                let begin = path.iter().position(|id| *id == at).unwrap_or(0);
                report_circle(system, &path[begin..], errors);
                break None;
            }
            Mark::Unseen => {}
        }
        *mark = Mark::OnPath;
        path.push(at);
        match step(system, at, errors) {
            Ok(Some(parent)) => at = parent,
            Ok(None) => break Some(0),
            Err(Unplaced) => break None,
        }
    };
    for id in path.into_iter().rev() {
        if level == Some(MAX_DEPTH) {
            add(
                system,
                id,
                format!("it is more than {MAX_DEPTH} levels below its CPU"),
                "every decision walks down the tree: place it higher",
                errors,
            );
        }
        level = level
            .filter(|level| *level < MAX_DEPTH)
            .map(|level| level + 1);
        marks[id.index()] = Mark::Level(level);
    }
}

/// A scheduler whose mistake has been reported.
struct Unplaced;

/// The parent of a scheduler; nothing when that is its CPU.
fn step(
    system: &System,
    id: SchedulerId,
    errors: &mut Errors,
) -> Result<Option<SchedulerId>, Unplaced> {
    let Some(scheduler) = system.schedulers.get(id.index()) else {
        return Err(Unplaced);
    };
    if scheduler.cpu.index() >= system.cpus.len() {
        let problem = format!(
            "it is on CPU number {}, which does not exist",
            scheduler.cpu.0
        );
        add(system, id, problem, "name a CPU of the system", errors);
        return Err(Unplaced);
    }
    let Some(parent_id) = scheduler.parent else {
        return Ok(None);
    };
    let problem = match system.schedulers.get(parent_id.index()) {
        Some(parent) if parent.cpu == scheduler.cpu => return Ok(Some(parent_id)),
        Some(parent) => format!("its parent `{}` is on another CPU", parent.name),
        None => format!(
            "it is on scheduler number {}, which does not exist",
            parent_id.0
        ),
    };
    add(system, id, problem, "name a scheduler of its CPU", errors);
    Err(Unplaced)
}

fn report_circle(system: &System, circle: &[SchedulerId], errors: &mut Errors) {
    let name = |id: &SchedulerId| {
        let scheduler = system.schedulers.get(id.index());
        scheduler.map_or("?", |scheduler| scheduler.name.as_str())
    };
    let Some(first) = circle.first() else { return };
    let mut shown = String::new();
    for id in circle.iter().skip(1).take(SHOWN_IN_CIRCLE) {
        shown += &format!("on `{}`, which is ", name(id));
    }
    if circle.len() > SHOWN_IN_CIRCLE + 1 {
        shown += &format!("on {} more, the last ", circle.len() - SHOWN_IN_CIRCLE - 1);
    }
    let problem = format!(
        "it is {shown}on `{}`: none of them leads to a CPU",
        name(first)
    );
    add(
        system,
        *first,
        problem,
        "place one of them on a CPU",
        errors,
    );
}

/// Adds a mistake in where a scheduler is placed.
fn add(system: &System, id: SchedulerId, problem: String, help: &str, errors: &mut Errors) {
    let scheduler = system.schedulers.get(id.index());
    let name = scheduler.map_or("?", |scheduler| scheduler.name.as_str());
    errors.add(
        Fault::Scheduler(id, "on"),
        format!("scheduler `{name}`: {problem}"),
        help,
    );
}
