//! The nodes of a system that execute the segments of its groups.

use alloc::borrow::Cow;
use alloc::format;
use alloc::vec::Vec;

use crate::arrival::Arrivals;
use crate::group::{Group, Spawn};
use crate::id::{CpuId, GroupId, SchedulerId, TaskId};
use crate::scheduler::PolicyKind;
use crate::system::System;
use crate::task::{Class, Task};
use crate::time::{Ns, Span, Work};

/// A node that executes what is planned on its CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlannedNode {
    /// Its CPU; there is one such node on a CPU.
    pub cpu: CpuId,
    /// The scheduler whose policy is planned; `None`: the CPU's own is.
    pub scheduler: Option<SchedulerId>,
}

/// The thread of a group on one of the planned nodes. To the scheduler it is a task whose jobs are
/// its segments, released by the plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlannedThread {
    /// The group.
    pub group: GroupId,
    /// The thread's place in [`Group::threads`].
    pub thread: usize,
    /// The node's place in [`System::planned_nodes`].
    pub node: usize,
    /// The task that stands for it in [`System::with_planned_threads`].
    pub task: TaskId,
}

impl System {
    /// The threads of its groups, each on every planned node: group by group, thread by thread.
    /// Their tasks come after those that the system has. O(threads · nodes).
    pub fn planned_threads(&self) -> Vec<PlannedThread> {
        let nodes = self.planned_nodes().len();
        let mut all = Vec::new();
        for (group, of) in (0..=u16::MAX).map(GroupId).zip(&self.groups) {
            for thread in 0..of.threads.len() {
                for node in 0..nodes {
                    let task = u32::try_from(self.tasks.len() + all.len());
                    all.push(PlannedThread {
                        group,
                        thread,
                        node,
                        task: TaskId(task.unwrap_or(u32::MAX)),
                    });
                }
            }
        }
        all
    }

    /// The system as a platform executes it: with a task for each thread of a group on each planned
    /// node, named `GROUP.THREAD on NODE`. For a system as a file declares it; its verdict is that
    /// of the file.
    pub fn with_planned_threads(&self) -> Cow<'_, System> {
        if self.groups.is_empty() {
            return Cow::Borrowed(self);
        }
        let mut system = self.clone();
        let nodes = self.planned_nodes();
        for planned in self.planned_threads() {
            let (group, node) = (&self.groups[planned.group.index()], nodes[planned.node]);
            let class = Class::Sporadic {
                // Nothing but the plan separates its jobs, and no two of them are at one time.
                min_separation: Span::from_ns(1),
                wcet: longest(group, planned.thread),
                relative_deadline: group.relative_deadline,
            };
            let thread = &group.threads[planned.thread].name;
            let tile = crate::graph::Tile {
                cpu: node.cpu,
                scheduler: node.scheduler,
            };
            let name = format!("{}.{thread} on {}", group.name, self.tile_name(tile));
            system.tasks.push(Task {
                scheduler: node.scheduler,
                arrivals: Arrivals::External,
                on_overrun: group.on_overrun,
                ..Task::new(name, node.cpu, class)
            });
        }
        Cow::Owned(system)
    }

    /// How long the segment that asks for this group waits for the answer; `None`: nobody asks, or
    /// waits. O(segments).
    pub fn longest_wait(&self, child: GroupId) -> Option<Span<Ns>> {
        let segments = self.groups.iter().flat_map(|group| &group.segments);
        segments
            .filter_map(|segment| match &segment.spawn {
                Some(Spawn::Independent { groups, max_wait }) if groups.contains(&child) => {
                    Some(*max_wait)
                }
                _ => None,
            })
            .find(|most| !most.is_zero())
    }

    /// The nodes on which segments execute, in the order of their CPUs. Their places are the CPUs
    /// of a plan. O(n log n).
    pub fn planned_nodes(&self) -> Vec<PlannedNode> {
        let cpus = (0..=u16::MAX).map(CpuId).zip(&self.cpus);
        let own = cpus.filter(|(_, cpu)| cpu.policy == PolicyKind::Planned);
        let mut nodes: Vec<PlannedNode> = own
            .map(|(cpu, _)| PlannedNode {
                cpu,
                scheduler: None,
            })
            .collect();
        for (id, scheduler) in (0..=u16::MAX).map(SchedulerId).zip(&self.schedulers) {
            if scheduler.policy == PolicyKind::Planned && scheduler.receiver.is_none() {
                nodes.push(PlannedNode {
                    cpu: scheduler.cpu,
                    scheduler: Some(id),
                });
            }
        }
        nodes.sort_by_key(|node| node.cpu);
        nodes
    }

    /// The group with this name.
    pub fn group_named(&self, name: &str) -> Option<GroupId> {
        let mut named = (0..=u16::MAX).map(GroupId).zip(&self.groups);
        named
            .find(|(_, group)| group.name == name)
            .map(|(id, _)| id)
    }
}

/// The longest of a thread's segments, at least one nanosecond.
fn longest(group: &Group, thread: usize) -> Work<Ns> {
    let own = group.segments.iter().filter(|own| own.thread == thread);
    let lengths = own.map(|own| own.wcet_away.unwrap_or(own.wcet).max(own.wcet));
    lengths.max().unwrap_or_default().max(Work::from_ns(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::Cpu;

    #[test]
    fn each_thread_of_a_group_has_a_task_on_each_planned_node_after_the_tasks_of_the_file() {
        let cpu = |name: &str| Cpu {
            name: name.into(),
            host: None,
            policy: PolicyKind::Planned,
        };
        let mut group = Group::new("g", Span::from_ns(9));
        let left = group.thread("left");
        let right = group.thread("right");
        group.segment("a", left, Work::from_ns(2));
        group.segment("b", left, Work::from_ns(3));
        group.segment("c", right, Work::from_ns(1));
        let system = System {
            cpus: alloc::vec![cpu("0"), cpu("1")],
            tasks: alloc::vec![Task::new("t", CpuId(0), Class::Aperiodic)],
            groups: alloc::vec![group],
            ..System::default()
        };
        let lowered = system.with_planned_threads();
        let names: Vec<&str> = lowered.tasks.iter().map(|task| &*task.name).collect();
        let expected = ["g.left on 0", "g.left on 1", "g.right on 0", "g.right on 1"];
        assert_eq!(names[1..], expected);
        assert_eq!(lowered.tasks[1].class.budget(), Some(Work::from_ns(3)));
        let threads = system.planned_threads();
        let tasks: Vec<u32> = threads.iter().map(|planned| planned.task.0).collect();
        assert_eq!(tasks, [1, 2, 3, 4]);
        assert!(matches!(
            System::default().with_planned_threads(),
            Cow::Borrowed(_)
        ));
    }
}
