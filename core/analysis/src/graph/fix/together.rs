//! Several capacities and slots that mend a graph together
//!
//! With every capacity unlimited and every slot as long as its frame allows, a graph is as fast as
//! these can make it. From there each goes back to its value in the file where the rest suffices,
//! slots first. The rest shrinks as far as the others let it, one after the other. So the
//! result is minimal in each parameter, and not always the smallest in bytes.
//!
//! # Assumptions
//! 1. Those of the graphs.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use punctual_model::{Graph, GraphId, SchedulerId, Supply, System};

use super::{explain, holds, slots};
use crate::error::Checked;
use crate::lookup::slot_room;
use crate::units::{Span, border};
use crate::verdict::GraphFix;

/// Most worst circles that the search looks at; beyond it there is no fix of several parameters.
const MOST_TRIALS: u32 = 400;

/// A parameter that may grow, with its value in the file.
#[derive(Clone, Copy)]
enum Parameter {
    Capacity(usize, u32),
    Slot(SchedulerId, usize, Span, Span),
}

/// The system with some of its parameters changed.
struct Search<'a> {
    system: System,
    graph: Graph,
    file: &'a System,
    trials: u32,
}

/// The parameters that mend a graph together; none: they cannot, or the search took too long.
/// O(parameters · log · cost of a worst circle), bounded by [`MOST_TRIALS`].
pub(crate) fn several(system: &System, id: GraphId) -> Checked<Vec<GraphFix>> {
    let Some(graph) = system.graphs.get(id.index()) else {
        return Ok(Vec::new());
    };
    let mut search = Search {
        system: system.clone(),
        graph: graph.clone(),
        file: system,
        trials: 0,
    };
    let parameters = search.parameters();
    for &parameter in &parameters {
        search.grow(parameter);
    }
    if !search.holds()? {
        return Ok(Vec::new());
    }
    let mut grown = Vec::new();
    for parameter in parameters {
        search.back(parameter);
        if !search.holds()? {
            search.grow(parameter);
            grown.push(parameter);
        }
    }
    let mut fixes = Vec::new();
    for &parameter in &grown {
        fixes.extend(search.shrink(parameter)?);
    }
    // What was tried last need not be what was found.
    Ok(match search.holds()? && search.trials < MOST_TRIALS {
        true => fixes,
        false => Vec::new(),
    })
}

impl Search<'_> {
    /// Slots first: they go back first, since what they grow by is nobody else's any more.
    fn parameters(&self) -> Vec<Parameter> {
        let mut found = Vec::new();
        for (id, place) in slots(self.file, &self.graph) {
            let scheduler = &self.file.schedulers[id.index()];
            let Supply::Slots(own) = &scheduler.supply else {
                continue;
            };
            let slot = own[place];
            let room = slot_room(self.file, (scheduler.cpu, scheduler.parent), slot);
            if let Some(room) = room.filter(|room| *room > slot.length) {
                found.push(Parameter::Slot(id, place, slot.length, room));
            }
        }
        let fifos = self.graph.fifos.iter().enumerate();
        let bounded = fifos.filter(|(_, fifo)| fifo.from != fifo.to);
        found
            .extend(bounded.filter_map(|(at, fifo)| Some(Parameter::Capacity(at, fifo.capacity?))));
        found
    }

    /// Whether the graph holds as it is now; also not once it was asked too often.
    fn holds(&mut self) -> Checked<bool> {
        self.trials = self.trials.saturating_add(1);
        match self.trials < MOST_TRIALS {
            true => holds(&self.system, &self.graph),
            false => Ok(false),
        }
    }

    fn grow(&mut self, parameter: Parameter) {
        match parameter {
            Parameter::Capacity(fifo, _) => self.graph.fifos[fifo].capacity = None,
            Parameter::Slot(id, place, _, room) => self.set_slot(id, place, room),
        }
    }

    fn back(&mut self, parameter: Parameter) {
        match parameter {
            Parameter::Capacity(fifo, now) => self.graph.fifos[fifo].capacity = Some(now),
            Parameter::Slot(id, place, now, _) => self.set_slot(id, place, now),
        }
    }

    fn set_slot(&mut self, id: SchedulerId, place: usize, length: Span) {
        if let Some(Supply::Slots(slots)) = self
            .system
            .schedulers
            .get_mut(id.index())
            .map(|scheduler| &mut scheduler.supply)
        {
            slots[place].length = length;
        }
    }

    /// The least value of a parameter beside the others as they are now, which it keeps.
    fn shrink(&mut self, parameter: Parameter) -> Checked<Option<GraphFix>> {
        match parameter {
            Parameter::Slot(id, place, now, room) => {
                let least = border(now, room, |length| {
                    self.set_slot(id, place, length);
                    self.holds()
                })?;
                self.set_slot(id, place, least);
                let name = &self.file.schedulers[id.index()].name;
                Ok(Some(GraphFix {
                    parameter: format!("scheduler.{name}.slots[{place}].length"),
                    from: explain::span_text(now),
                    to: explain::span_text(least),
                }))
            }
            Parameter::Capacity(fifo, now) => {
                let mut with = |capacity: u32| {
                    self.graph.fifos[fifo].capacity = Some(capacity);
                    self.holds()
                };
                let mut enough = now.max(1);
                while !with(enough)? {
                    match enough.checked_mul(2) {
                        Some(more) => enough = more,
                        None => return Ok(None),
                    }
                }
                let narrow = |wide: u64| u32::try_from(wide).unwrap_or(u32::MAX);
                let least = border(u64::from(now), u64::from(enough), |middle| {
                    with(narrow(middle))
                })?;
                self.graph.fifos[fifo].capacity = Some(narrow(least));
                Ok(Some(GraphFix {
                    parameter: format!("graph.{}.fifos[{fifo}].capacity", self.graph.name),
                    from: now.to_string(),
                    to: least.to_string(),
                }))
            }
        }
    }
}
