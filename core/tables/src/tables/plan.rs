//! The changes of a system as events for its shards, each with the threads for which it waits.
//!
//! A task that is not there is a thread that releases nothing (`until` is 0), at home with the
//! closest scheduler above its own that is there. It starts and stops by [`Event::Change`], finds
//! its home by requests of the schedulers on the way, and keeps its number for the whole run.

use alloc::vec;
use alloc::vec::Vec;

use punctual_kern::{Event, Grant, NodeId, NodeTerms, Plan, Planned, Request};
use punctual_model::{
    Change, Constraint, Instant, Ns, PolicyCode, PolicyKind, Scheduler, SchedulerId, Span, Stage,
    Step, System, TaskId, ThreadId,
};

use super::nodes::{Trees, grant, holder};
use super::{Grids, Tables, small};

/// When a change is carried out, once its time has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Carry {
    /// As soon as the threads that move or lose their scheduler are between two jobs.
    Soon,
    /// As soon as nobody on the CPU has a job that was promised something.
    WhenIdle,
    /// As soon as nobody below this scheduler has a job that was promised something.
    WhenBelowIdle(SchedulerId),
    /// Not at all.
    Never,
}

impl Tables {
    /// The plan of each CPU: `carry` says of each change when it is carried out; changes without
    /// an answer are not. To be asked when the duration is set ([`Tables::set_duration`]).
    /// O(changes · (tasks + schedulers · depth)).
    pub fn plans(&self, system: &System, duration: Option<Span<Ns>>, carry: &[Carry]) -> Vec<Plan> {
        let mut planner = Planner::new(self, system, duration);
        let mut plans = vec![Vec::new(); self.cpus.len()];
        for ((number, change), carry) in (0_u32..).zip(&system.changes).zip(carry) {
            if *carry == Carry::Never {
                continue;
            }
            for (plan, step) in plans.iter_mut().zip(planner.plan(change, *carry)) {
                if !step.events.is_empty() {
                    plan.push(Planned {
                        change: number,
                        ..step
                    });
                }
            }
        }
        plans.into_iter().map(Plan::new).collect()
    }
}

/// The policy of a scheduler, and its code.
type Ordered = (PolicyKind<Ns>, Option<PolicyCode>);

fn ordered_by(scheduler: &Scheduler) -> Ordered {
    (scheduler.policy, scheduler.code.clone())
}

/// The place of everything, as one change follows the other.
struct Planner<'a> {
    tables: &'a Tables,
    system: &'a System,
    grids: Grids,
    trees: Trees,
    stage: Stage<'a>,
    /// Jobs arrive before this.
    end: Instant,
    /// Of each task: its thread on its CPU.
    threads: Vec<u32>,
    /// Of each task: its home, also while it is not there.
    homes: Vec<Option<SchedulerId>>,
    /// How often each scheduler has gone.
    left: Vec<u16>,
    /// Of each scheduler: the policy in its place, also while it is not there.
    placed: Vec<Ordered>,
}

/// The home of a task, also while it is not there.
pub(super) fn home(stage: &Stage<'_>, id: TaskId) -> Option<SchedulerId> {
    match stage.task(id) {
        Some(task) => task.scheduler,
        None => stage.place(id),
    }
}

/// A scheduler and those above it, below the CPU's own.
fn above(system: &System, from: Option<SchedulerId>) -> impl Iterator<Item = SchedulerId> + '_ {
    let parent = |id: &SchedulerId| system.schedulers.get(id.index())?.parent;
    core::iter::successors(from, parent).take(punctual_model::MAX_DEPTH + 1)
}

impl<'a> Planner<'a> {
    fn new(tables: &'a Tables, system: &'a System, duration: Option<Span<Ns>>) -> Planner<'a> {
        let stage = Stage::at_start(system);
        let end = duration.map(|duration| duration.ticks_up(tables.frequency));
        let mut threads = vec![0; system.tasks.len()];
        for cpu in &tables.cpus {
            for ((task, _), thread) in cpu.threads.iter().zip(0..) {
                threads[task.index()] = thread;
            }
        }
        let ids = (0..).map(TaskId).take(system.tasks.len());
        Planner {
            tables,
            system,
            grids: Grids::new(system, tables.frequency),
            trees: Trees::new(system, tables.frequency),
            end: end.map_or(Instant::MAX, |end| Instant::ZERO.saturating_add(end)),
            threads,
            homes: ids.map(|id| home(&stage, id)).collect(),
            stage,
            left: vec![0; system.schedulers.len()],
            placed: system.schedulers.iter().map(ordered_by).collect(),
        }
    }

    /// The part of each CPU in one change. A change that means nothing does nothing.
    fn plan(&mut self, change: &Change, carry: Carry) -> Vec<Planned> {
        let mut next = self.stage.clone();
        if next.apply(change).is_err() {
            return Vec::new();
        }
        self.stage = next;
        let at = change.at.ticks_up(self.tables.frequency);
        let cpus = self.tables.cpus.iter();
        let mut planned: Vec<Planned> = cpus
            .map(|cpu| Planned {
                change: 0,
                at,
                quiet: match carry {
                    Carry::WhenIdle => (0..small(cpu.threads.len()))
                        .map(|index| ThreadId::new(index, 0))
                        .collect(),
                    Carry::WhenBelowIdle(top) => {
                        let threads = (0..).zip(&cpu.threads);
                        let below = threads.filter(|(_, (task, _))| {
                            above(self.system, self.homes[task.index()]).any(|up| up == top)
                        });
                        below.map(|(index, _)| ThreadId::new(index, 0)).collect()
                    }
                    Carry::Soon | Carry::Never => Vec::new(),
                },
                events: Vec::new(),
            })
            .collect();
        for place in change.in_order(&self.system.schedulers) {
            self.step(change, &change.steps[place], &mut planned);
        }
        planned
    }

    fn step(&mut self, change: &Change, step: &Step, planned: &mut [Planned]) {
        match *step {
            Step::Start(id) => {
                let Some(task) = self.stage.task(id).cloned() else {
                    return;
                };
                let cpu = &mut planned[task.cpu.index()];
                if self.homes[id.index()] != task.scheduler {
                    // It may still be at work on a job of its life before, in its home of then.
                    cpu.quiet.push(self.thread(id));
                }
                self.route(id, task.scheduler, cpu);
                let constraint = self.constraint(id, self.end);
                cpu.events.extend(constraint.map(|c| self.change(id, c)));
            }
            Step::Stop(id) => {
                let cpu = &mut planned[self.system.tasks[id.index()].cpu.index()];
                // What it leaves behind is completed under the constraint that it had.
                let constraint = self.constraint(id, Instant::ZERO);
                cpu.events.extend(constraint.map(|c| self.change(id, c)));
            }
            Step::Constrain(id, _) => {
                let cpu = &mut planned[self.system.tasks[id.index()].cpu.index()];
                let constraint = self.constraint(id, self.end);
                // Its phase has passed: it counts from when the task comes.
                let constraint = constraint.map(|constraint| Constraint {
                    phase: Span::ZERO,
                    ..constraint
                });
                cpu.events.extend(constraint.map(|c| self.change(id, c)));
            }
            Step::Move(id, _) => {
                let cpu = &mut planned[self.system.tasks[id.index()].cpu.index()];
                cpu.quiet.push(self.thread(id));
                self.route(id, self.stage.place(id), cpu);
            }
            Step::Join(id) => {
                self.join(id, planned);
                self.bind(change, id, planned);
            }
            Step::Leave(id) => self.leave(id, planned),
            Step::Reorder(id, policy, ref code) => {
                self.reorder(id, (policy, code.clone()), planned);
            }
            Step::ReorderCpu(id, policy) => {
                let event = self.replace(NodeId::ROOT, None, policy);
                planned[id.index()].events.push(event);
            }
            Step::Transfer { from, to, budget } => {
                let cpu = &mut planned[self.system.schedulers[from.index()].cpu.index()];
                let request = Request::Lend {
                    to: self.node(Some(to)),
                    work: budget.ticks_up(self.tables.frequency),
                };
                let by = self.node(Some(from));
                cpu.events.push(Event::Manage { by, request });
            }
            Step::Supply(id, server) => {
                let scheduler = &self.system.schedulers[id.index()];
                let supply = Grant::Server(server.in_ticks(self.tables.frequency));
                let request = Request::Supply {
                    node: self.node(Some(id)),
                    supply,
                };
                let by = self.node(scheduler.parent);
                let cpu = &mut planned[scheduler.cpu.index()];
                cpu.events.push(Event::Manage { by, request });
            }
        }
    }

    fn thread(&self, id: TaskId) -> ThreadId {
        ThreadId::new(self.threads[id.index()], 0)
    }

    fn change(&self, id: TaskId, constraint: Constraint) -> Event {
        Event::Change {
            thread: self.thread(id),
            constraint,
        }
    }

    /// The constraint of a task as it is now, or as it is declared when it is not there.
    fn constraint(&self, id: TaskId, until: Instant) -> Option<Constraint> {
        let declared = self.system.tasks.get(id.index())?;
        let task = self.stage.task(id).unwrap_or(declared);
        let cpu = self.tables.cpus.get(declared.cpu.index())?;
        let (_, at_start) = cpu.threads.get(self.threads[id.index()] as usize)?;
        Some(Constraint {
            until,
            fed: at_start.fed,
            ..self.grids.constraint(id.index(), task)
        })
    }

    fn node(&self, id: Option<SchedulerId>) -> NodeId {
        match id {
            Some(scheduler) => NodeId::new(self.trees.place(id), self.left[scheduler.index()]),
            None => NodeId::ROOT,
        }
    }

    /// Has a receiver bind to its new slice whatever tasks execute on it from now on. Those that
    /// come or move in the same change find their place then.
    fn bind(&mut self, change: &Change, slice: SchedulerId, planned: &mut [Planned]) {
        let cpu = &mut planned[self.system.schedulers[slice.index()].cpu.index()];
        for id in (0..).map(TaskId).take(self.system.tasks.len()) {
            let own_step = |step: &Step| match *step {
                Step::Move(other, _) | Step::Start(other) => other == id,
                _ => false,
            };
            let is_elsewhere = self.homes[id.index()] != Some(slice);
            if is_elsewhere
                && self.stage.place(id) == Some(slice)
                && !change.steps.iter().any(own_step)
            {
                cpu.quiet.push(self.thread(id));
                self.route(id, Some(slice), cpu);
            }
        }
    }

    /// The slice at a place, if it is one.
    fn slice(&self, at: Option<SchedulerId>) -> Option<SchedulerId> {
        at.filter(|id| self.system.schedulers[id.index()].receiver.is_some())
    }

    /// Has the schedulers on the way hand a thread on to its new home, and the last one bind it.
    fn route(&mut self, id: TaskId, to: Option<SchedulerId>, cpu: &mut Planned) {
        let from = self.homes[id.index()];
        if from == to {
            return;
        }
        let thread = self.thread(id);
        let (of, care) = (self.stage.care(from), self.stage.care(to));
        let down: Vec<SchedulerId> = above(self.system, care).collect();
        let common = above(self.system, of).find(|id| down.contains(id));
        if from != common {
            cpu.events.push(Event::Manage {
                by: self.node(common),
                request: Request::Revoke { thread },
            });
        }
        let mut by = common;
        let steps = down.iter().rev().skip_while(|id| {
            common.is_some_and(|common| {
                **id == common || above(self.system, Some(common)).any(|up| up == **id)
            })
        });
        for &next in steps {
            cpu.events.push(Event::Manage {
                by: self.node(by),
                request: Request::Grant {
                    thread,
                    to: self.node(Some(next)),
                },
            });
            by = Some(next);
        }
        if let Some(slice) = self.slice(to) {
            let to = self.node(Some(slice));
            cpu.events.push(Event::Manage {
                by: self.node(care),
                request: Request::Grant { thread, to },
            });
        }
        self.homes[id.index()] = to;
    }

    fn join(&mut self, id: SchedulerId, planned: &mut [Planned]) {
        let scheduler = &self.system.schedulers[id.index()];
        let first = small(self.system.tasks.len());
        let terms = NodeTerms {
            supply: match grant(&scheduler.supply, self.tables.frequency) {
                Grant::Slots => Grant::Shared,
                granted => granted,
            },
            priority: scheduler.priority,
            order: first.saturating_add(u32::from(id.0)),
            trust: scheduler.trust,
            quota: scheduler.quota,
            receiver: scheduler
                .receiver
                .as_ref()
                .map(|receiver| self.node(holder(self.system, receiver))),
        };
        planned[scheduler.cpu.index()].events.push(Event::Manage {
            by: self.node(scheduler.parent),
            request: Request::Promote(terms),
        });
        // Its place has kept the policy that it left with.
        if self.placed[id.index()] != ordered_by(scheduler) {
            self.reorder(id, ordered_by(scheduler), planned);
        }
    }

    fn reorder(&mut self, id: SchedulerId, by: Ordered, planned: &mut [Planned]) {
        let scheduler = &self.system.schedulers[id.index()];
        let event = self.replace(self.node(scheduler.parent), Some(id), by.0);
        planned[scheduler.cpu.index()].events.push(event);
        self.placed[id.index()] = by;
    }

    fn replace(&self, by: NodeId, id: Option<SchedulerId>, policy: PolicyKind<Ns>) -> Event {
        let request = Request::Replace {
            node: self.node(id),
            policy: policy.in_ticks(self.tables.frequency),
        };
        Event::Manage { by, request }
    }

    fn leave(&mut self, id: SchedulerId, planned: &mut [Planned]) {
        let scheduler = &self.system.schedulers[id.index()];
        let cpu = &mut planned[scheduler.cpu.index()];
        // Threads that have stopped there fall back to its parent, on a slice to its receiver.
        let heir = match self.slice(Some(id)) {
            Some(slice) => self.stage.care(Some(slice)),
            None => scheduler.parent,
        };
        for (index, home) in (0..).zip(&mut self.homes) {
            if *home == Some(id) {
                cpu.quiet.push(ThreadId::new(self.threads[index], 0));
                *home = heir;
            }
        }
        cpu.events.push(Event::Manage {
            by: self.node(scheduler.parent),
            request: Request::Demote(self.node(Some(id))),
        });
        self.left[id.index()] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use punctual_model::{
        Class, Cpu, CpuId, Frequency, PolicyKind, Priority, Supply, Task, Terms, Trust, Work,
    };

    const FIXED: PolicyKind<Ns> = PolicyKind::FixedPriority { preemptive: true };

    /// A task below a scheduler of its CPU, and these changes, 1 s apart.
    fn plan(steps: Vec<Step>) -> Plan {
        let class = Class::Periodic {
            period: Span::from_ms(10),
            wcet: Work::from_ms(1),
            relative_deadline: Span::from_ms(10),
        };
        let mut task = Task::new("t".to_string(), CpuId(0), class);
        task.phase = Span::from_ms(1_000);
        task.scheduler = Some(SchedulerId(0));
        let scheduler = Scheduler {
            name: "s".to_string(),
            cpu: CpuId(0),
            parent: None,
            policy: FIXED,
            priority: Priority::new(1),
            supply: Supply::Shared,
            trust: Trust::Inline,
            quota: None,
            receiver: None,
            fallback: None,
            code: None,
        };
        let changes = (1..).zip(steps).map(|(second, step)| Change {
            name: alloc::format!("c{second}"),
            at: Instant::from_ms(1_000 * second),
            steps: vec![step],
        });
        let system = System {
            cpus: vec![Cpu {
                name: "0".to_string(),
                host: None,
                policy: FIXED,
            }],
            schedulers: vec![scheduler],
            tasks: vec![task],
            changes: changes.collect(),
            ..System::default()
        };
        assert_eq!(system.validate(), Ok(()));
        let carry = vec![Carry::Soon; system.changes.len()];
        let tables = Tables::new(&system, Frequency::NANOSECONDS);
        tables.plans(&system, None, &carry).remove(0)
    }

    #[test]
    fn a_task_that_comes_again_elsewhere_is_quiet_before_it_moves() {
        let id = TaskId(0);
        let plan = plan(vec![Step::Move(id, None), Step::Stop(id), Step::Start(id)]);
        let [_, stop, start] = plan.steps() else {
            panic!("three changes");
        };
        assert!(stop.quiet.is_empty());
        assert_eq!(start.quiet, [ThreadId::new(0, 0)]);
    }

    #[test]
    fn a_scheduler_that_comes_again_comes_with_its_declared_policy() {
        let id = SchedulerId(0);
        let fifo = Step::Reorder(id, PolicyKind::Fifo, None);
        let away = Step::Move(TaskId(0), None);
        let plan = plan(vec![fifo, away, Step::Leave(id), Step::Join(id)]);
        let asked: Vec<_> = plan.policies().map(|(_, policy)| policy).collect();
        let declared = FIXED.in_ticks(Frequency::NANOSECONDS);
        assert_eq!(asked, [PolicyKind::Fifo, declared]);
        let node = NodeId::new(1, 1);
        let request = Request::Replace {
            node,
            policy: declared,
        };
        let by = NodeId::ROOT;
        assert_eq!(plan.steps()[3].events[1], Event::Manage { by, request });
    }

    #[test]
    fn what_one_change_tells_new_policies_fits_into_one_entry() {
        assert_eq!(Stage::MAX_REORDERED, punctual_kern::MAX_PLACES_PER_ENTRY);
    }

    #[test]
    fn a_task_that_changes_does_not_wait_for_its_phase_again() {
        let terms = Terms {
            budget: Some(Work::from_ms(2)),
            ..Terms::default()
        };
        let plan = plan(vec![Step::Constrain(TaskId(0), terms)]);
        let [Event::Change { constraint, .. }] = plan.steps()[0].events[..] else {
            panic!("one event");
        };
        assert_eq!(constraint.phase, Span::ZERO);
    }
}
