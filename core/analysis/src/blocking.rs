//! Blocking by critical sections: locks that less urgent work holds when a busy window begins
//!
//! The sections that can block work of some urgency are those of less urgent holders whose
//! resource somebody of that urgency, or above, may lock as well: the *ceiling* of the resource.
//! Urgency is the priority. Under EDF it is the relative deadline less the jitter, with that of
//! waiting for predecessors: a section blocks deadlines up to t when its own is later and some
//! user's is not.
//!
//! * Immediate ceiling, stack resource, non-preemptive: one section at most, the longest; once a
//!   job has begun, nobody stands in its way.
//! * Inheritance: each less urgent task may hold one section when the window begins, and each
//!   resource is held once: the smaller of the two sums (Sha, Rajkumar and Lehoczky 1990, Theorems
//!   1 and 2). A holder may itself wait: a lock inside of a section on r counts with the
//!   ceiling of r.
//! * Sections in shared mode do not block each other: the ceiling of a reader is the most urgent
//!   writer, and readers of one resource may hold it together.
//!
//! Jobs that overrun may go on in the background (`demote`, `stop`) and lock there, on nobody's
//! account: their sections count as those of the least urgent holder.
//!
//! A resource shared between nodes (immediate ceilings only) raises the holder's way up to the
//! closest common node to its ceiling there, and above all tasks beside that way.
//!
//! # Assumptions
//! 1. No section is longer than declared (`kern` takes its urgency away, then), and no job suspends
//!    itself inside of one. A section ends before the one around it does: to give back takes time.
//! 2. Locks of one job are properly nested and their order has no circle (checked by the model).
//! 3. Where users of a resource are apart, a holder below a server never waits inside of its
//!    section, neither for a lock nor for budget ([`limits`] refuses those that may).
//! 4. In a busy window less urgent work runs only to end the sections that it had begun before: it
//!    blocks the window once, not each job in it. A section begins with its lock, which may be at
//!    the very start of the window: it counts in full.
//! 5. Where protocols are nested in each other, every less urgent holder is taken to block once.
//!
//! Sources: Sha, Rajkumar and Lehoczky 1990; Baker 1991; Baruah 2006 (SRP in processor demand);
//! Burns, Gutierrez, Aldea and Gonzalez 2014 (deadline floors, the same bounds as SRP).

pub(crate) mod budget_end;
pub(crate) mod limits;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use punctual_model::{
    CpuId, Mode, Ns, OnOverrun, PolicyKind, Protocol, ResourceId, SchedulerId, Supply, System,
    Task, TaskId,
};

use crate::entity::Who;
use crate::error::{Checked, in_range};
use crate::lookup::{NodeId, ancestors, tasks};
use crate::units::{Span, Work, signed};

const WHAT: &str = "blocking";

/// By task: how much later than its arrival it is released because it waits for predecessors.
type Waiting<'a> = &'a [Option<Span>];

/// One section that may block in a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Section {
    /// The entity of this node that holds it.
    pub(crate) who: Who,
    /// The task whose job holds it.
    pub(crate) holder: TaskId,
    pub(crate) resource: ResourceId,
    pub(crate) length: Work,
    /// Urgency of the holder here.
    rank: i128,
    /// It blocks nobody more urgent than this.
    ceiling: i128,
    shared: bool,
    /// It may be waited for, rather than keep others from beginning.
    inherits: bool,
}

/// The sections of a node.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Locks {
    sections: Vec<Section>,
}

/// The sections that block work of one urgency.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Blocking<'a> {
    pub(crate) total: Work,
    pub(crate) sections: Vec<&'a Section>,
}

impl Locks {
    /// Whether nobody locks anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.sections.is_empty()
    }

    /// More than any blocking can be. O(sections).
    pub(crate) fn at_most(&self) -> Work {
        let all = self.sections.iter().map(|s| s.length);
        all.fold(Work::ZERO, Work::saturating_add)
    }

    /// Under EDF: the instants at which the blocking of deadlines changes.
    pub(crate) fn deadlines(&self) -> impl Iterator<Item = Span> + '_ {
        let both = self.sections.iter().flat_map(|s| [s.rank, s.ceiling]);
        both.filter_map(|rank| u64::try_from(rank.checked_neg()?).ok().map(Span::from_ns))
    }

    /// The sections that block work of this urgency: the longest of one kind and all of the other.
    /// O(sections · log).
    pub(crate) fn blocking(&self, urgency: i128, own: Option<Who>) -> Checked<Blocking<'_>> {
        if self.is_empty() {
            return Ok(Blocking::default());
        }
        let reaches = |s: &&Section| {
            s.rank < urgency && s.ceiling >= urgency && own.is_none_or(|own| own != s.who)
        };
        let mut single: Option<&Section> = None;
        let mut by_holder: BTreeMap<TaskId, &Section> = BTreeMap::new();
        let mut by_resource: BTreeMap<ResourceId, Vec<&Section>> = BTreeMap::new();
        for section in self.sections.iter().filter(reaches) {
            if !section.inherits {
                if single.is_none_or(|s| section.length > s.length) {
                    single = Some(section);
                }
                continue;
            }
            let known = by_holder.entry(section.holder).or_insert(section);
            if section.length > known.length {
                *known = section;
            }
            by_resource
                .entry(section.resource)
                .or_default()
                .push(section);
        }
        let mut sections: Vec<&Section> = by_holder.into_values().collect();
        let others: Vec<&Section> = by_resource.into_values().flat_map(held_together).collect();
        if sum(&others)? < sum(&sections)? {
            sections = others;
        }
        sections.extend(single);
        Ok(Blocking {
            total: sum(&sections)?,
            sections,
        })
    }

    /// The sections of one node of the tree. O(tasks · sections · depth), nothing without
    /// resources.
    pub(crate) fn of_node(
        system: &System,
        (cpu, scheduler): NodeId,
        policy: PolicyKind<Ns>,
        waiting: Waiting<'_>,
    ) -> Locks {
        let mut locks = Locks::default();
        if system.resources.is_empty() {
            return locks;
        }
        let place = Place {
            system,
            cpu,
            scheduler,
            policy,
            waiting,
            ceilings: Ceilings::of(system, (cpu, scheduler), policy, waiting),
            overruns_are_owed: budget_end::are_owed(system, scheduler),
        };
        for (id, task) in tasks(system) {
            if task.cpu == cpu && !task.uses.is_empty() {
                place.add_sections(task, id, &mut locks);
            }
        }
        locks
    }
}

/// Whether a job of this task may lock after it has overrun, below all real-time work.
fn locks_in_background(task: &Task) -> bool {
    !task.uses.is_empty() && matches!(task.on_overrun, OnOverrun::Demote | OnOverrun::Stop)
}

/// The sections of background holders in one busy window, where turns or arrivals decide and no
/// task is less urgent by a rank. O(tasks · depth).
pub(crate) fn held_in_background(
    system: &System,
    (cpu, scheduler): NodeId,
    policy: PolicyKind<Ns>,
) -> Checked<Work> {
    // In slots every task is alone.
    let counted = matches!(
        policy,
        PolicyKind::Fifo
            | PolicyKind::RoundRobin { .. }
            | PolicyKind::FixedPriority { preemptive: false }
    );
    let mut sum = Work::ZERO;
    for (id, task) in tasks(system) {
        let here = task.cpu == cpu && entity(system, id, scheduler).is_some();
        if counted && here && locks_in_background(task) {
            let lengths = task.uses.iter().map(|section| section.length);
            sum = in_range(sum.checked_add(lengths.max().unwrap_or_default()), WHAT)?;
        }
    }
    Ok(sum)
}

/// The longest of the holders that exclude each other, or all those that read together.
fn held_together(sections: Vec<&Section>) -> Vec<&Section> {
    let mut readers: BTreeMap<TaskId, &Section> = BTreeMap::new();
    let mut writer: Option<&Section> = None;
    for section in sections {
        if section.shared {
            let known = readers.entry(section.holder).or_insert(section);
            if section.length > known.length {
                *known = section;
            }
        } else if writer.is_none_or(|w| section.length > w.length) {
            writer = Some(section);
        }
    }
    let together: Vec<&Section> = readers.into_values().collect();
    let read = sum_exactly(&together);
    match writer {
        Some(writer) if u128::from(writer.length.as_ns()) >= read => alloc::vec![writer],
        _ => together,
    }
}

fn sum(sections: &[&Section]) -> Checked<Work> {
    let sum = u64::try_from(sum_exactly(sections)).ok();
    in_range(sum.map(Work::from_ns), WHAT)
}

/// In nanoseconds, which may be beyond 64 bits.
fn sum_exactly(sections: &[&Section]) -> u128 {
    let lengths = sections.iter().map(|s| u128::from(s.length.as_ns()));
    lengths.sum()
}

/// The entity of `task` in `node`: itself, the child that it is below, or nobody.
pub(crate) fn entity(system: &System, task: TaskId, scheduler: Option<SchedulerId>) -> Option<Who> {
    let home = system.tasks.get(task.index())?.scheduler;
    if home == scheduler {
        return Some(Who::Task(task));
    }
    let mut above = ancestors(system, home);
    let child = above.find(|(_, s)| s.parent == scheduler);
    child.map(|(id, _)| Who::Server(id))
}

/// How urgent an entity is in a node of this policy; larger is more urgent.
fn rank(system: &System, (policy, waiting): (PolicyKind<Ns>, Waiting<'_>), who: Who) -> i128 {
    let by_deadline = policy == PolicyKind::EarliestDeadlineFirst;
    match who {
        Who::Task(id) => {
            let Some(task) = system.tasks.get(id.index()) else {
                return i128::MIN;
            };
            if by_deadline {
                let deadline = task.class.relative_deadline().unwrap_or(Span::MAX);
                let waiting = waiting.get(id.index()).copied().flatten();
                let late = task.jitter.saturating_add(waiting.unwrap_or_default());
                -signed(deadline.saturating_sub(late))
            } else {
                i128::from(task.priority.number())
            }
        }
        Who::Server(id) => match system.schedulers.get(id.index()) {
            Some(scheduler) if by_deadline => match scheduler.supply {
                Supply::Server(server) => -signed(server.period),
                _ => i128::MIN,
            },
            Some(scheduler) => i128::from(scheduler.priority.number()),
            None => i128::MIN,
        },
    }
}

/// Ceilings of every resource in one node, for sections in exclusive and in shared mode.
struct Ceilings {
    any: Vec<i128>,
    writers: Vec<i128>,
    /// Resources with users beside the way to this node: they are shared above it.
    shared_above: Vec<bool>,
    /// Resources whose sections are nested with those of another protocol.
    mixed: Vec<bool>,
}

impl Ceilings {
    fn of(
        system: &System,
        (cpu, scheduler): NodeId,
        policy: PolicyKind<Ns>,
        waiting: Waiting<'_>,
    ) -> Ceilings {
        let n = system.resources.len();
        let mut found = Ceilings {
            any: alloc::vec![i128::MIN; n],
            writers: alloc::vec![i128::MIN; n],
            shared_above: alloc::vec![false; n],
            mixed: alloc::vec![false; n],
        };
        for (id, task) in tasks(system).filter(|(_, t)| t.cpu == cpu) {
            for section in &task.uses {
                let r = section.resource.index();
                if r >= n {
                    continue;
                }
                let Some(who) = entity(system, id, scheduler) else {
                    found.shared_above[r] = true;
                    continue;
                };
                let rank = rank(system, (policy, waiting), who);
                found.any[r] = found.any[r].max(rank);
                if section.mode == Mode::Exclusive {
                    found.writers[r] = found.writers[r].max(rank);
                }
                let protocol = |r: ResourceId| system.resources.get(r.index()).map(|r| r.protocol);
                if let Some(outer) = section.inside
                    && protocol(outer) != protocol(section.resource)
                {
                    found.mixed[r] = true;
                    if let Some(mixed) = found.mixed.get_mut(outer.index()) {
                        *mixed = true;
                    }
                }
            }
        }
        found.spread_inside(system, cpu);
        found
    }

    /// A task that waits for a holder waits also for the locks that the holder waits for.
    fn spread_inside(&mut self, system: &System, cpu: CpuId) {
        let here = || system.tasks.iter().filter(|t| t.cpu == cpu);
        // Each round carries a ceiling one level further in.
        for _ in 0..system.resources.len() {
            let mut changed = false;
            for section in here().flat_map(|t| &t.uses) {
                let (Some(outer), inner) = (section.inside, section.resource.index()) else {
                    continue;
                };
                let outer = self.any.get(outer.index()).copied().unwrap_or(i128::MIN);
                if inner >= self.any.len() {
                    continue;
                }
                let writes = section.mode == Mode::Exclusive;
                changed |= self.any[inner] < outer || (writes && self.writers[inner] < outer);
                self.any[inner] = self.any[inner].max(outer);
                if writes {
                    self.writers[inner] = self.writers[inner].max(outer);
                }
            }
            if !changed {
                return;
            }
        }
    }
}

struct Place<'a> {
    system: &'a System,
    waiting: Waiting<'a>,
    cpu: CpuId,
    scheduler: Option<SchedulerId>,
    policy: PolicyKind<Ns>,
    ceilings: Ceilings,
    /// Sections that go on at the end of a budget are counted in the supply.
    overruns_are_owed: bool,
}

impl Place<'_> {
    /// The sections of one task, as they count in this node.
    fn add_sections(&self, task: &Task, id: TaskId, locks: &mut Locks) {
        let Some(who) = entity(self.system, id, self.scheduler) else {
            return;
        };
        let in_background = locks_in_background(task);
        let rank = match in_background {
            true => i128::MIN,
            false => rank(self.system, (self.policy, self.waiting), who),
        };
        // What goes on below a server stays within its budget.
        let escapes = in_background && !self.is_server(who);
        for section in &task.uses {
            let r = section.resource.index();
            let Some(resource) = self.system.resources.get(r) else {
                continue;
            };
            let above = self.ceilings.shared_above[r];
            if !escapes && self.is_local_to_a_child(section.resource, who, above) {
                continue;
            }
            if self.overruns_are_owed && !in_background && budget_end::goes_on(self.system, section)
            {
                continue;
            }
            // A ceiling is the same in either mode; a task that waits for a reader wants to write.
            let reads = section.mode == Mode::Shared && resource.protocol == Protocol::Inheritance;
            let ceiling = match resource.protocol {
                _ if above => i128::MAX,
                Protocol::NonPreemptive | Protocol::Spin => i128::MAX,
                _ if reads => self.ceilings.writers[r],
                _ => self.ceilings.any[r],
            };
            locks.sections.push(Section {
                who,
                holder: id,
                resource: section.resource,
                length: section.length,
                rank,
                ceiling,
                shared: reads,
                inherits: resource.protocol == Protocol::Inheritance || self.ceilings.mixed[r],
            });
        }
    }

    fn is_server(&self, who: Who) -> bool {
        let Who::Server(id) = who else { return false };
        let scheduler = self.system.schedulers.get(id.index());
        scheduler.is_some_and(|s| s.supply != Supply::Shared)
    }

    /// Whether all users are below the same child: then it is no business of this node.
    fn is_local_to_a_child(&self, resource: ResourceId, who: Who, above: bool) -> bool {
        let Who::Server(_) = who else { return false };
        let uses = |task: &Task| task.uses.iter().any(|u| u.resource == resource);
        let mut here = tasks(self.system).filter(|(_, task)| task.cpu == self.cpu && uses(task));
        !above && here.all(|(id, _)| entity(self.system, id, self.scheduler) == Some(who))
    }
}
