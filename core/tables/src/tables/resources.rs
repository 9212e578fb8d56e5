//! The resources of each shard, from the tasks that use them.
//!
//! A ceiling is the highest priority, and a floor the least relative deadline less jitter, among
//! the users; those without deadlines count only among themselves. Where the users stand in
//! different schedulers, priorities are those of what the closest common scheduler orders.

use alloc::vec;
use alloc::vec::Vec;

use punctual_kern::{NodeId, ResourceTerms, UseTerms, WaitOrder};
use punctual_model::{
    CpuId, Frequency, Mode, Ns, PolicyKind, Priority, ResourceId, SchedulerId, Span, System, Task,
};

use super::nodes::Trees;
use super::{CpuTables, small};

/// Adds every resource to the tables of the CPUs whose tasks use it. `places` gives the thread of
/// each task on its CPU. O(uses · depth of the trees).
pub(super) fn add(
    system: &System,
    (frequency, trees): (Frequency, &Trees),
    places: &[u32],
    cpus: &mut [CpuTables],
) {
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); system.resources.len()];
    for (index, task) in system.tasks.iter().enumerate() {
        for one in &task.uses {
            let users = &mut users[one.resource.index()];
            if users.last() != Some(&index) {
                users.push(index);
            }
        }
    }
    for (resource, users) in users.iter().enumerate() {
        for cpu in cpus.iter_mut() {
            let here = |&index: &usize| system.tasks[index].cpu == cpu.cpu;
            let users: Vec<usize> = users.iter().copied().filter(here).collect();
            if !users.is_empty() {
                let group = Group::new(system, resource, users);
                group.add((frequency, trees), places, cpu);
            }
        }
    }
}

/// The users of one resource on one CPU.
struct Group<'a> {
    system: &'a System,
    resource: usize,
    users: Vec<usize>,
    /// The closest common scheduler of them; `None`: the CPU's own.
    common: Option<SchedulerId>,
    spans_schedulers: bool,
}

impl<'a> Group<'a> {
    fn new(system: &'a System, resource: usize, users: Vec<usize>) -> Self {
        let home = |index: usize| system.tasks[index].scheduler;
        let first = home(users[0]);
        let common = users[1..].iter().fold(first, |common, &index| {
            closest_common(system, common, home(index))
        });
        let spans_schedulers = users.iter().any(|&index| home(index) != common);
        Group {
            system,
            resource,
            users,
            common,
            spans_schedulers,
        }
    }

    fn tasks(&self) -> impl Iterator<Item = (usize, &'a Task)> + '_ {
        let tasks = &self.system.tasks;
        self.users.iter().map(move |&index| (index, &tasks[index]))
    }

    /// The priority of what stands for a task at the common scheduler.
    fn priority(&self, task: &Task) -> Priority {
        let mut at = task.scheduler;
        let mut priority = task.priority;
        while at != self.common {
            let Some(scheduler) = at.and_then(|at| self.system.schedulers.get(at.index())) else {
                break;
            };
            priority = scheduler.priority;
            at = scheduler.parent;
        }
        priority
    }

    fn policy(&self, cpu: CpuId) -> PolicyKind<Ns> {
        match self.common {
            Some(scheduler) => self.system.schedulers[scheduler.index()].policy,
            None => self.system.cpus[cpu.index()].policy,
        }
    }

    fn add(&self, (frequency, trees): (Frequency, &Trees), places: &[u32], cpu: &mut CpuTables) {
        let real_time = self.tasks().any(|(_, task)| task.class.is_real_time());
        let counts = |task: &Task| task.class.is_real_time() == real_time;
        let counted = || self.tasks().filter(|(_, task)| counts(task));
        let priorities = counted().map(|(_, task)| self.priority(task));
        let ceiling = priorities.reduce(|a, b| if b.is_higher_than(a) { b } else { a });
        let floor = |(index, task): (usize, &Task)| {
            let thread = &cpu.threads[places[index] as usize].1;
            let deadline = thread.class.relative_deadline()?;
            let jitter = task.jitter.ticks_up(frequency);
            Some(deadline.saturating_sub(jitter))
        };
        let floor = counted().filter_map(floor).min();
        let number = small(cpu.resources.len());
        let resource = &self.system.resources[self.resource];
        let terms = ResourceTerms {
            resource: ResourceId(u16::try_from(self.resource).unwrap_or(u16::MAX)),
            protocol: resource.protocol,
            at_budget_end: resource.at_budget_end,
            wait_order: WaitOrder::of(self.policy(cpu.cpu)),
            ceiling: ceiling.unwrap_or(Priority::LOWEST),
            floor: floor.unwrap_or(Span::from_ticks(u64::MAX)),
            real_time,
            common: NodeId::new(trees.place(self.common), 0),
            spans_schedulers: self.spans_schedulers,
        };
        cpu.resources.push(terms);
        for (index, task) in self.tasks() {
            let of_this = |one: &&punctual_model::Use| one.resource == terms.resource;
            let uses = || task.uses.iter().filter(of_this);
            let longest = uses().map(|one| one.length).max().unwrap_or_default();
            let exclusive = uses().any(|one| one.mode == Mode::Exclusive);
            let declared = UseTerms {
                resource: number,
                mode: if exclusive {
                    Mode::Exclusive
                } else {
                    Mode::Shared
                },
                length: longest.ticks_up(frequency),
                priority: self.priority(task),
            };
            cpu.uses.push((places[index], declared));
        }
    }
}

/// The deepest scheduler that both stand under, or are.
fn closest_common(
    system: &System,
    one: Option<SchedulerId>,
    other: Option<SchedulerId>,
) -> Option<SchedulerId> {
    let up = |at: SchedulerId| system.schedulers.get(at.index()).and_then(|s| s.parent);
    let path = |from: Option<SchedulerId>| core::iter::successors(from, move |&at| up(at));
    let depth = |from| path(from).count();
    let (mut one, mut other) = (one, other);
    while one != other {
        if depth(one) >= depth(other) {
            one = one.and_then(up);
        } else {
            other = other.and_then(up);
        }
    }
    one
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::Tables;
    use alloc::string::ToString;
    use punctual_model::Work;
    use punctual_model::{
        AtBudgetEnd, Class, Cpu, Protocol, Resource, Scheduler, Supply, Trust, Use,
    };

    const FIXED: PolicyKind<Ns> = PolicyKind::FixedPriority { preemptive: true };

    fn scheduler(parent: Option<u16>, priority: u32) -> Scheduler {
        Scheduler {
            name: "s".to_string(),
            cpu: CpuId(0),
            parent: parent.map(SchedulerId),
            policy: FIXED,
            priority: Priority::new(priority),
            supply: Supply::Shared,
            trust: Trust::Inline,
            quota: None,
            receiver: None,
            fallback: None,
            code: None,
        }
    }

    fn user(scheduler: Option<u16>, priority: u32, deadline: u64, lengths: &[u64]) -> Task {
        let class = Class::Periodic {
            period: Span::from_us(100),
            wcet: Work::from_us(20),
            relative_deadline: Span::from_us(deadline),
        };
        let mut task = Task::new("t", CpuId(0), class);
        task.scheduler = scheduler.map(SchedulerId);
        task.priority = Priority::new(priority);
        let section = |us: &u64| Use {
            resource: ResourceId(1),
            length: Work::from_us(*us),
            mode: Mode::Shared,
            inside: None,
        };
        task.uses = lengths.iter().map(section).collect();
        task
    }

    /// cpu over 0 over 1; cpu over 2.
    fn system(tasks: Vec<Task>) -> System {
        let cpu = Cpu {
            name: "0".to_string(),
            host: None,
            policy: PolicyKind::EarliestDeadlineFirst,
        };
        let resource = Resource {
            name: "r".to_string(),
            protocol: Protocol::ImmediateCeiling,
            at_budget_end: AtBudgetEnd::CheckFirst,
        };
        System {
            cpus: vec![cpu],
            schedulers: vec![
                scheduler(None, 3),
                scheduler(Some(0), 5),
                scheduler(None, 4),
            ],
            resources: vec![resource.clone(), resource],
            tasks,
            ..System::default()
        }
    }

    fn of(tasks: Vec<Task>) -> CpuTables {
        let mut tables = Tables::new(&system(tasks), Frequency::NANOSECONDS);
        tables.cpus.remove(0)
    }

    #[test]
    fn ceiling_and_floor_are_those_of_the_users_with_deadlines() {
        let mut background = user(None, 9, 1, &[1]);
        background.class = Class::Aperiodic;
        let mut jittery = user(None, 2, 60, &[1]);
        jittery.jitter = Span::from_us(15);
        let other = user(None, 8, 10, &[]);
        let tables = of(vec![background, user(None, 4, 50, &[1]), jittery, other]);
        let [resource] = tables.resources[..] else {
            panic!("only what is used: {:?}", tables.resources);
        };
        assert_eq!(resource.resource, ResourceId(1));
        assert_eq!(resource.ceiling, Priority::new(4));
        assert_eq!(resource.floor, Span::from_ticks(45_000));
        assert!(resource.real_time && !resource.spans_schedulers);
        assert_eq!(resource.wait_order, WaitOrder::Deadline);
        assert_eq!(resource.common, NodeId::ROOT);
    }

    #[test]
    fn several_sections_of_a_task_are_declared_as_the_longest_of_them() {
        let mut task = user(None, 1, 50, &[2, 7, 3]);
        task.uses[2].mode = Mode::Exclusive;
        let tables = of(vec![task]);
        let [(0, declared)] = tables.uses[..] else {
            panic!("one use: {:?}", tables.uses);
        };
        let longest = (declared.length, declared.mode);
        assert_eq!(longest, (Work::from_ticks(7_000), Mode::Exclusive));
    }

    #[test]
    fn users_of_several_schedulers_meet_at_the_closest_common_one() {
        let inner = user(Some(1), 7, 50, &[1]);
        let outer = user(Some(0), 6, 50, &[1]);
        let far = user(Some(2), 9, 50, &[1]);
        let tables = of(vec![inner.clone(), outer.clone()]);
        let found = tables.resources[0];
        assert_eq!(found.common, NodeId::new(1, 0), "the place of scheduler 0");
        assert_eq!(found.ceiling, Priority::new(6), "5 stands for the inner");
        assert!(found.spans_schedulers && found.wait_order == WaitOrder::Priority);
        let tables = of(vec![inner.clone(), outer, far]);
        let found = tables.resources[0];
        assert_eq!(found.common, NodeId::ROOT);
        assert_eq!(found.ceiling, Priority::new(4), "of schedulers 3 and 4");
        let priorities: Vec<u32> = tables.uses.iter().map(|u| u.1.priority.number()).collect();
        assert_eq!(priorities, [3, 3, 4]);
        let alone = of(vec![inner.clone(), inner]).resources[0];
        assert!(!alone.spans_schedulers);
        assert_eq!(alone.ceiling, Priority::new(7));
    }
}
