//! Nodes that divide time: slots as supply for those below, and as work for those above
//!
//! # Assumptions
//! 1. Those of the tree, number 3.

use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use punctual_model::{Ns, SchedulerId, Slot};

use super::{PREEMPTIVE, Solved, Walk};
use crate::demand::{Cost, RequestBound};
use crate::entity::{Arrival, Entity, Reserved, Source, Unserved, Who};
use crate::error::{Checked, invalid};
use crate::lookup::{children, slots_of, tasks_of};
use crate::node::{FromParent, Node};
use crate::overhead;
use crate::supply::Supply;
use crate::supply::slots::SlotTable;
use crate::units::{Span, Work};

impl Walk<'_> {
    /// The slots of a node that divides time, as work that comes once per frame.
    pub(super) fn slot_requests(
        &self,
        scheduler: Option<SchedulerId>,
        id: SchedulerId,
        frame: Span,
    ) -> Checked<Vec<Entity>> {
        if frame.is_zero() {
            return Err(invalid("a frame of 0s"));
        }
        let tasks = tasks_of(self.system, (self.cpu, scheduler)).flat_map(|(_, task)| &task.slots);
        let children =
            children(self.system, (self.cpu, scheduler)).flat_map(|(_, child)| slots_of(child));
        let requests = |slot: &Slot<Ns>| Entity {
            who: Who::Server(id),
            requests: RequestBound::of_jobs(Some(frame), slot.length.as_work(), Span::ZERO),
            kept: Span::ZERO,
            deadline: frame,
            priority: 0,
            section: Work::ZERO,
            whole: false,
            arrival: Arrival::Clock(slot.at),
            cost: Cost::default(),
            waiting: Span::ZERO,
        };
        Ok(tasks.chain(children).map(requests).collect())
    }

    /// A node that divides time: each of its tasks is alone in its slots.
    pub(super) fn visit_slots(
        &self,
        scheduler: Option<SchedulerId>,
        frame: Span,
        from_parent: &FromParent,
        solved: &mut Vec<Solved>,
        open: &mut Vec<(Option<SchedulerId>, FromParent)>,
    ) -> Checked<()> {
        let head = FromParent {
            background: None,
            held_above: Work::ZERO,
            ..from_parent.clone()
        };
        let mut all = Node::build(
            self.system,
            (self.cpu, scheduler),
            head.clone(),
            self.waiting,
        )?;
        for entity in core::mem::take(&mut all.entities) {
            let slots = entity
                .who
                .task()
                .map(|t| &self.system.tasks[t.index()].slots[..]);
            let mut node = Node::build(self.system, (self.cpu, scheduler), head.clone(), &[])?;
            let owned = self.slotted(from_parent, frame, slots.unwrap_or_default())?;
            (node.supply, node.reserved) = (owned.supply, owned.reserved);
            node.background = None;
            node.policy = PREEMPTIVE;
            node.is_whole = false;
            node.entities = vec![entity];
            let bounds = (self.bounds)(&node)?;
            solved.push(Solved { node, bounds });
        }
        // The head stands for the node itself: its load is its slots.
        let id = scheduler.unwrap_or(SchedulerId(u16::MAX));
        let requests = self.slot_requests(scheduler, id, frame)?;
        let unserved = |entity| Unserved { child: id, entity };
        all.unserved = requests.into_iter().map(unserved).collect();
        solved.push(Solved {
            node: all,
            bounds: Vec::new(),
        });
        for (id, child) in children(self.system, (self.cpu, scheduler)) {
            open.push((Some(id), self.slotted(from_parent, frame, slots_of(child))?));
        }
        Ok(())
    }

    /// The share of the node's supply that the owner of these slots gets.
    pub(super) fn slotted(
        &self,
        from_parent: &FromParent,
        frame: Span,
        slots: &[Slot<Ns>],
    ) -> Checked<FromParent> {
        let intervals: Vec<(Span, Span)> = slots.iter().map(|s| (s.at, s.length)).collect();
        let overhead = overhead::episode(&self.system.machine)?;
        let table = SlotTable::new(frame, &intervals, overhead);
        let mut reserved = from_parent.reserved.clone();
        let supply = match (&from_parent.supply, table) {
            (Supply::Nothing, _) | (_, None) => Supply::Nothing,
            (Supply::Dedicated, Some(table)) => Supply::Slots(table),
            (Supply::Slots(outer), Some(table)) => {
                let common = outer.common(&table);
                common.map_or(Supply::Nothing, Supply::Slots)
            }
            (Supply::Budget(_), Some(table)) => {
                reserved.extend(table.gaps().iter().map(|&(at, length)| Reserved {
                    name: "time outside of its slots".to_string(),
                    requests: RequestBound::of_jobs(
                        Some(table.frame()),
                        length.as_work(),
                        Span::ZERO,
                    ),
                    source: Source::Work(Arrival::Clock(at)),
                }));
                from_parent.supply.clone()
            }
        };
        Ok(FromParent {
            supply,
            reserved,
            background: None,
            held_above: from_parent.held_above,
        })
    }
}
