//! The gangs of a log, with the bounds of their skew.

use punctual_model::{Ns, Span, System, TaskId};

/// One superstep of a gang: its members start at one instant, as far as clocks and CPUs let them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GangInfo {
    /// The gang's name, with that of the superstep.
    pub name: String,
    /// Its tasks.
    pub members: Vec<TaskId>,
    /// The greatest difference of starts, by the verdict; `None`: nothing bounds it.
    pub bound: Option<Span<Ns>>,
    /// The bound counts with clocks that differ by at most this.
    pub clock_error: Span<Ns>,
    /// Every member ends within this after its arrival, as its own clock shows: the next superstep
    /// begins without a barrier then. `None`: a barrier is kept, or no superstep comes next.
    pub ends_within: Option<Span<Ns>>,
    /// That barrier was left out without proof.
    pub forced: bool,
}

impl GangInfo {
    /// The supersteps of all gangs of a system, without bounds.
    pub fn of_system(system: &System) -> Vec<GangInfo> {
        let of_gang = |gang: &punctual_model::Gang| {
            let supersteps = gang.supersteps.iter().enumerate();
            let info = supersteps.map(|(place, superstep)| GangInfo {
                name: gang.name_of(place),
                members: superstep.members.clone(),
                bound: None,
                clock_error: system.machine.clock_error,
                ends_within: None,
                forced: false,
            });
            info.collect::<Vec<_>>()
        };
        system.gangs.iter().flat_map(of_gang).collect()
    }
}
