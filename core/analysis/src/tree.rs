//! The nodes of one CPU from the root down: the entities of each, and the supply of each child
//!
//! ```text
//!   CPU (fixed priority)          entities: task, server of `a`; unserved: the tasks of `b`
//!    ├─ task
//!    ├─ a: server 2ms in 10ms     its supply follows from the response of the server above
//!    └─ b: shared                 its supply is the CPU's, less what is more urgent than `b`
//! ```
//!
//! # Assumptions
//! 1. A section that lets nobody preempt, and a ceiling inside a node, keep only siblings away. A
//!    child with a server is blocked at its parent by less urgent tasks there, not by what is below
//!    other children. A child without one is blocked by these and by its own.
//! 2. A server interferes with its whole budget in every period, whether its tasks need it or not.
//!    A deferrable one may use a budget at the end of its period and the next at once: as if
//!    released up to T − Q late. (Davis and Burns 2005; Ghazalie and Baker 1995 under EDF). So may
//!    a polling server or a periodic resource that waits with a section. A
//!    constant-bandwidth one demands in any portions, at its rate and one budget ahead of it.
//!    Where holders may overrun its budget, they do so once in a window (`blocking`).
//! 3. Slots are kept by time alone. Above a node that divides time, only slots can be cut out of
//!    slots exactly; from a budget, the time between the slots is reserved demand like any other.
//! 4. Under a policy other than preemptive fixed priority, a child without a budget may have to
//!    wait for everything else of its parent.

mod server;
mod slots;

use alloc::format;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use punctual_model::{Class, CpuId, Ns, PolicyKind, SchedulerId, System};

use crate::blocking::limits;
use crate::bounds::Bound;
use crate::entity::{Entity, Reserved, Source, Unserved, Who};
use crate::error::{Checked, in_range, invalid};
use crate::fixed_point::StepBudget;
use crate::lookup::{ancestors, children, policy_of, schedulers, tasks};
use crate::node::{FromParent, Node, note_background};
use crate::overhead;
use crate::supply::Supply;
use crate::together;
use crate::units::{Span, Work};

const PREEMPTIVE: PolicyKind<Ns> = PolicyKind::FixedPriority { preemptive: true };

/// A node with the bounds of its entities, in their order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Solved {
    pub(crate) node: Node,
    pub(crate) bounds: Vec<Option<Bound>>,
}

/// How the nodes of a tree are to be bounded.
pub(crate) struct Walk<'a> {
    pub(crate) system: &'a System,
    pub(crate) cpu: CpuId,
    /// By task: the jitter that precedence adds; `None`: nothing bounds it.
    pub(crate) waiting: &'a [Option<Span>],
    /// The test of one node.
    pub(crate) bounds: &'a dyn Fn(&Node) -> Checked<Vec<Option<Bound>>>,
    /// Whether to go no further.
    pub(crate) hopeless: &'a dyn Fn(&Solved) -> bool,
    /// The steps left for the whole query.
    pub(crate) step_budget: &'a StepBudget,
}

impl Walk<'_> {
    /// Adds every node of the CPU, parents before children, up to a hopeless one; whether there is
    /// one. O(nodes · cost of the test).
    pub(crate) fn solve(&self, solved: &mut Vec<Solved>) -> Checked<bool> {
        let mut open = vec![(None, self.root()?)];
        while let Some((scheduler, from_parent)) = open.pop() {
            let from = solved.len();
            if let PolicyKind::Tdm { frame, .. } = policy_of(self.system, (self.cpu, scheduler))? {
                self.visit_slots(scheduler, frame, &from_parent, solved, &mut open)?;
            } else {
                let node = self.node(scheduler, from_parent)?;
                let bounds = (self.bounds)(&node)?;
                self.supply_children(&node, &bounds, &mut open)?;
                solved.push(Solved { node, bounds });
            }
            if solved[from..].iter().any(|s| (self.hopeless)(s)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The supply of the CPU itself: all of it, less the demand of the machine. Nothing is sure
    /// where a resource is used in a way that no test bounds.
    fn root(&self) -> Checked<FromParent> {
        let mut reserved = overhead::reserves(&self.system.machine)?;
        let here = |task: &&punctual_model::Task| task.cpu == self.cpu;
        reserved.extend(together::timers(self.system, self.cpu));
        for (_, scheduler) in self.schedulers() {
            reserved.extend(overhead::server_timers(&self.system.machine, scheduler)?);
        }
        let mut background = None;
        for (id, task) in tasks(self.system).filter(|(_, t)| here(t)) {
            let ends = matches!(task.class, Class::Aperiodic | Class::Once { .. });
            if ends && self.shares_with_root(task.scheduler) {
                note_background(&mut background, id, task.non_preemptive);
            }
        }
        let unbounded = limits::cpus(self.system).any(|cpu| cpu == self.cpu);
        Ok(FromParent {
            supply: if unbounded {
                Supply::Nothing
            } else {
                Supply::Dedicated
            },
            reserved,
            background,
            held_above: Work::ZERO,
        })
    }

    fn schedulers(&self) -> impl Iterator<Item = (SchedulerId, &punctual_model::Scheduler)> {
        schedulers(self.system).filter(|(_, s)| s.cpu == self.cpu)
    }

    /// Whether nothing above this node has a supply of its own: then its background work is the
    /// CPU's.
    fn shares_with_root(&self, scheduler: Option<SchedulerId>) -> bool {
        ancestors(self.system, scheduler).all(|(_, s)| s.supply == punctual_model::Supply::Shared)
    }

    /// A node with its servers and its work below children without one.
    fn node(&self, scheduler: Option<SchedulerId>, from_parent: FromParent) -> Checked<Node> {
        let mut node = Node::build(
            self.system,
            (self.cpu, scheduler),
            from_parent,
            self.waiting,
        )?;
        for (id, child) in children(self.system, (self.cpu, scheduler)) {
            match &child.supply {
                punctual_model::Supply::Server(server) => {
                    let entity = server::entity_of(self.system, id, child, server, node.policy)?;
                    self.add_overrun(&mut node, id, &entity)?;
                    node.entities.push(entity);
                }
                punctual_model::Supply::Shared => self.add_unserved(&mut node, id, child)?,
                punctual_model::Supply::Slots(_) => {
                    let what = format!(
                        "`{}` has slots, its parent does not divide time",
                        child.name
                    );
                    return Err(invalid(&what));
                }
            }
        }
        Ok(node)
    }

    /// All work below a child without a budget of its own.
    fn add_unserved(
        &self,
        node: &mut Node,
        id: SchedulerId,
        child: &punctual_model::Scheduler,
    ) -> Checked<()> {
        if node.policy == PolicyKind::EarliestDeadlineFirst {
            let what = format!("`{}` is below EDF and has no server", child.name);
            return Err(invalid(&what));
        }
        let policy = policy_of(self.system, (self.cpu, Some(id)))?;
        let work = if let PolicyKind::Tdm { frame, .. } = policy {
            self.slot_requests(Some(id), id, frame)?
        } else {
            let from_parent = FromParent::of(node.supply.clone());
            let below = self.node(Some(id), from_parent)?;
            // Begun in the background, it is finished for whoever is ready beside it.
            if let Some((task, section)) = below.background {
                note_background(&mut node.background, task, section);
            }
            let unserved = below.unserved.into_iter().map(|g| g.entity);
            below.entities.into_iter().chain(unserved).collect()
        };
        for mut entity in work {
            entity.priority = child.priority.number();
            entity.section = Work::ZERO;
            entity.whole = false;
            node.unserved.push(Unserved { child: id, entity });
        }
        Ok(())
    }

    /// The supply of each child of a node, from the bounds found there.
    fn supply_children(
        &self,
        node: &Node,
        bounds: &[Option<Bound>],
        open: &mut Vec<(Option<SchedulerId>, FromParent)>,
    ) -> Checked<()> {
        for (place, entity) in node.entities.iter().enumerate() {
            let Who::Server(id) = entity.who else {
                continue;
            };
            let response = bounds.get(place).copied().flatten().map(|b| b.response);
            let supply = self.supply_of(node, place, response)?;
            let supply = supply.map_or(Supply::Nothing, Supply::Budget);
            open.push((Some(id), FromParent::of(supply)));
        }
        for (id, child) in children(self.system, (self.cpu, node.scheduler)) {
            if child.supply == punctual_model::Supply::Shared {
                open.push((Some(id), shared_from_parent(self.system, node, id, child)?));
            }
        }
        Ok(())
    }
}

/// The supply of a child without a budget: its parent's, less everything more urgent there.
fn shared_from_parent(
    system: &System,
    node: &Node,
    id: SchedulerId,
    child: &punctual_model::Scheduler,
) -> Checked<FromParent> {
    let mut reserved = node.reserved.clone();
    let mut background = node.background;
    let goes_before =
        |c: &Entity| node.policy != PREEMPTIVE || c.priority >= child.priority.number();
    let unserved = node.unserved.iter().filter(|g| g.child != id);
    for entity in node.entities.iter().chain(unserved.map(|g| &g.entity)) {
        if goes_before(entity) {
            reserved.push(Reserved {
                name: entity.who.name(system).to_string(),
                requests: entity.requests,
                source: match entity.who {
                    Who::Task(_) => Source::Work(entity.arrival),
                    Who::Server(_) => Source::Budget,
                },
            });
        } else if let Who::Task(task) = entity.who {
            note_background(&mut background, task, entity.section);
        }
    }
    let urgency = i128::from(child.priority.number());
    let held = node.blocking(urgency, Some(Who::Server(id)))?.total;
    Ok(FromParent {
        supply: node.supply.clone(),
        reserved,
        background,
        held_above: in_range(node.held_above.checked_add(held), "blocking")?,
    })
}
