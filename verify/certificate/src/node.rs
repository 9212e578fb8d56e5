//! A node as its tests see it: entities, their costs, and the supply
//!
//! Every rule here is one of the model. A job costs two switches, a preemption and a refill of the
//! caches, again whenever it resumes (but see `together`); suspension counts as computation. Other
//! rules are those of blocking, of precedence that costs nothing, and of the supply of servers and
//! slots.

use crate::Why;
use crate::locks::{self, Section};
use crate::supply::{LIMIT, Stream, Supply};
use crate::system::{self, Policy, System, Task};
use crate::together;

/// A CPU's own scheduler or one below.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    Cpu(usize),
    Scheduler(usize),
}

/// The task or child whose entity it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Who {
    Task(usize),
    Server(usize),
}

/// A task or a server, on its node.
#[derive(Clone, Debug)]
pub(crate) struct Entity {
    pub(crate) who: Who,
    pub(crate) name: String,
    pub(crate) stream: Stream,
    /// The jitter with which it hits others: budget that waited for the end of its period.
    pub(crate) hits: Stream,
    pub(crate) deadline: u128,
    pub(crate) allowed: u128,
    pub(crate) priority: u32,
    pub(crate) section: u128,
    /// It asks for its budget in any portions at its rate: a constant-bandwidth server, which keeps
    /// its deadline for what is left of a budget when it wakes up.
    pub(crate) fluid: bool,
    /// Once it has started, it runs to its end.
    pub(crate) whole: bool,
    /// Part of the cost in which it does not compute.
    suspension: u128,
}

/// A node with everything that its test needs.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) policy: Policy,
    pub(crate) supply: Supply,
    pub(crate) entities: Vec<Entity>,
    /// Longest section of background work; below 2 it blocks nobody.
    pub(crate) background: u128,
    pub(crate) sections: Vec<Section>,
}

impl Node {
    /// The node at `place`; its entities in the order of the file, tasks first.
    pub(crate) fn of(system: &System, place: Place) -> Result<Node, Why> {
        let (name, policy) = match place {
            Place::Cpu(cpu) => (
                format!("cpu.{}", system.cpus[cpu].name),
                system.cpus[cpu].policy,
            ),
            Place::Scheduler(id) => {
                let scheduler = &system.schedulers[id];
                (format!("scheduler.{}", scheduler.name), scheduler.policy)
            }
        };
        let supply = supply_of(system, place)?;
        let tasks = || {
            system
                .tasks
                .iter()
                .enumerate()
                .filter(|(_, t)| is_on(t, place))
        };
        let mut entities = Vec::new();
        let mut background = 0;
        let leaders = together::leaders(system);
        for (id, task) in tasks() {
            if task.deadline.is_none() && !task.uses.is_empty() {
                return Err(Why::new(format!("the critical sections of {}", task.name)));
            }
            if let (Some(wcet), Some(deadline)) = (task.wcet, task.deadline) {
                let preempts = together::preempts(system, policy, id, leaders[id]);
                let own = (id, preempts);
                entities.push(entity(system, policy, own, wcet.into(), deadline.into())?);
            }
            if task.class == "aperiodic" || task.class == "once" {
                background = background.max(u128::from(task.section));
            }
        }
        for (id, child) in system.schedulers.iter().enumerate() {
            if place_of_parent(child) == place {
                entities.extend(server(policy, id, child)?);
            }
        }
        if matches!(supply, Supply::Server { .. })
            && let Some((_, task)) = tasks().find(|(_, t)| t.suspension > 0)
        {
            return Err(Why::new(format!(
                "the suspension of {} in a server",
                task.name
            )));
        }
        add_resumes(system, &mut entities, background);
        if let Some(large) = entities.iter().find(|c| c.stream.cost > LIMIT) {
            return Err(Why::new(format!("the cost of {}", large.name)));
        }
        let sections = locks::sections(system, policy, &supply, &entities)?;
        Ok(Node {
            name,
            policy,
            supply,
            entities,
            background,
            sections,
        })
    }
}

pub(crate) fn is_on(task: &Task, place: Place) -> bool {
    match (place, task.scheduler) {
        (Place::Cpu(cpu), None) => task.cpu == cpu,
        (Place::Scheduler(id), Some(scheduler)) => scheduler == id,
        _ => false,
    }
}

fn place_of_parent(scheduler: &system::Scheduler) -> Place {
    scheduler
        .parent
        .map_or(Place::Cpu(scheduler.cpu), Place::Scheduler)
}

/// Reserves and missing time, each with a timer that it may let fire too early where there are
/// budgets. On the CPU the timer entries for releases and budgets, and once the overruns of tasks
/// below schedulers, and one that has begun before.
pub(crate) fn reserves(system: &System, cpu: usize) -> Vec<Stream> {
    let machine = &system.machine;
    let serves =
        |s: &system::Scheduler| s.cpu == cpu && matches!(s.supply, system::Supply::Server { .. });
    let granted = |t: &system::Task| t.cpu == cpu && t.deadline.is_some();
    let early = match system.tasks.iter().any(granted) || system.schedulers.iter().any(serves) {
        true => machine.timer,
        false => 0,
    };
    let reserves = machine.reserves.iter().filter(|t| t.budget > 0);
    let mut reserves: Vec<Stream> = reserves
        .map(|t| Stream {
            separation: Some(t.period.into()),
            cost: u128::from(t.budget) + u128::from(early),
            jitter: 0,
            once: 0,
        })
        .collect();
    let mut begun = 0;
    for (task, leader) in system.tasks.iter().zip(together::leaders(system)) {
        if task.cpu != cpu || task.deadline.is_none() {
            continue;
        }
        let costs = [
            together::entry(machine, leader),
            together::budget_entry(machine, task),
        ];
        reserves.extend(costs.map(|cost| Stream {
            separation: task.separation.map(u128::from),
            cost: cost.into(),
            jitter: task.jitter.into(),
            once: 0,
        }));
        let overrun = u128::from(together::overrun(machine, task));
        begun = begun.max(overrun);
        if task.scheduler.is_some() {
            reserves.push(single(overrun));
        }
    }
    reserves.push(single(begun));
    reserves.retain(|stream| stream.cost > 0);
    reserves
}

/// Taken once.
fn single(cost: u128) -> Stream {
    Stream {
        separation: None,
        cost,
        jitter: 0,
        once: 0,
    }
}

fn supply_of(system: &System, place: Place) -> Result<Supply, Why> {
    let scheduler = match place {
        Place::Cpu(cpu) => return Ok(Supply::Whole(reserves(system, cpu))),
        Place::Scheduler(id) => &system.schedulers[id],
    };
    let machine = &system.machine;
    if machine.has_prices() {
        let what = format!("what switching costs the supply of {}", scheduler.name);
        return Err(Why::new(what));
    }
    match &scheduler.supply {
        system::Supply::Shared => Err(Why::new(format!(
            "the scheduler {}, which has no supply of its own",
            scheduler.name
        ))),
        system::Supply::Slots(_) if scheduler.parent.is_some() => {
            Err(Why::new("slots below a scheduler"))
        }
        system::Supply::Slots(slots) => slots_of(system, scheduler.cpu, slots),
        system::Supply::Server {
            kind,
            budget,
            period,
        } => {
            let (budget, period) = (u128::from(*budget), u128::from(*period));
            let late = period.saturating_sub(budget);
            let blackout = match kind.as_str() {
                "deferrable" | "periodic-resource" => 2 * late,
                "polling" => period + late,
                "constant-bandwidth" if keeps_rests(system, scheduler)? => 2 * late,
                "constant-bandwidth" => period + late,
                _ => return Err(Why::new(format!("a server of the kind {kind}"))),
            };
            Ok(Supply::Server {
                budget,
                period,
                blackout,
            })
        }
    }
}

/// Whether a constant-bandwidth server has the rest of a budget by its deadline, too. Else the rest
/// may come up to a period after it woke up, and the next budget a period after that.
fn keeps_rests(system: &System, scheduler: &system::Scheduler) -> Result<bool, Why> {
    let above = Node::of(system, place_of_parent(scheduler))?;
    let blocks = above.background > 0 || above.entities.iter().any(|c| c.section > 1);
    let is_whole = matches!(&above.supply, Supply::Whole(reserves) if reserves.is_empty());
    Ok(is_whole && !blocks && above.sections.is_empty())
}

/// Slots on a CPU that divides its time; nothing may be taken from them.
pub(crate) fn slots_of(system: &System, cpu: usize, slots: &[system::Slot]) -> Result<Supply, Why> {
    let Policy::Tdm { frame } = system.cpus[cpu].policy else {
        return Err(Why::new("slots on a node that does not divide its time"));
    };
    if !reserves(system, cpu).is_empty() {
        return Err(Why::new("slots on a CPU from which the machine takes time"));
    }
    let mut places: Vec<(u128, u128)> = slots
        .iter()
        .map(|s| (u128::from(s.at), u128::from(s.length)))
        .collect();
    places.sort_unstable();
    let apart = places
        .windows(2)
        .all(|pair| pair[0].0 + pair[0].1 <= pair[1].0);
    let inside = places
        .last()
        .is_none_or(|last| last.0 + last.1 <= u128::from(frame));
    if !apart || !inside {
        return Err(Why::new("slots that overlap, or end after their frame"));
    }
    Ok(Supply::Slots(frame.into(), places))
}

fn entity(
    system: &System,
    policy: Policy,
    (id, preempts): (usize, bool),
    wcet: u128,
    deadline: u128,
) -> Result<Entity, Why> {
    let task = &system.tasks[id];
    let machine = &system.machine;
    let preemption = u128::from(machine.preemption) + u128::from(machine.cache_delay);
    let episode = 2 * u128::from(machine.switch) + preemption;
    let resumes = resumes(task);
    // Its wake-up, and the timer that it has left behind.
    let again = 2 * u128::from(machine.timer);
    let (episodes, timers) = match policy {
        Policy::RoundRobin { timeslice: 0 } => return Err(Why::new("a timeslice of nothing")),
        Policy::RoundRobin { timeslice } => {
            let turns = wcet.div_ceil(timeslice.into());
            (turns + resumes, turns)
        }
        _ => (1 + resumes, 0),
    };
    let computing = wcet
        .saturating_add(episodes.saturating_mul(episode))
        .saturating_sub(if preempts { 0 } else { preemption })
        .saturating_add(timers.saturating_mul(machine.timer.into()))
        .saturating_add(resumes.saturating_mul(again));
    let section = u128::from(task.section);
    let runs_through = match policy {
        Policy::Fifo | Policy::FixedPriority { preemptive: false } => true,
        Policy::RoundRobin { .. } => false,
        _ => section >= wcet,
    };
    let within = system
        .required
        .iter()
        .filter_map(|required| match *required {
            system::Required::Response { task, within } if task == id => Some(u128::from(within)),
            _ => None,
        });
    let stream = Stream {
        separation: task.separation.map(u128::from),
        cost: computing.saturating_add(task.suspension.into()),
        jitter: task.jitter.into(),
        once: match task.scheduler {
            None => together::overrun(machine, task).into(),
            Some(_) => 0,
        },
    };
    if stream.separation == Some(0) || stream.cost > LIMIT {
        return Err(Why::new(format!("the period or the cost of {}", task.name)));
    }
    Ok(Entity {
        who: Who::Task(id),
        name: task.name.clone(),
        stream,
        hits: stream,
        deadline,
        allowed: within.chain([deadline]).min().unwrap_or(deadline),
        priority: task.priority,
        section: if runs_through {
            computing
        } else {
            section.min(wcet)
        },
        fluid: false,
        whole: runs_through && task.suspension == 0,
        suspension: task.suspension.into(),
    })
}

fn resumes(task: &Task) -> u128 {
    if task.suspension == 0 {
        0
    } else {
        u128::from(task.suspensions.max(1))
    }
}

/// Whenever a task resumes it may meet the longest section of another.
fn add_resumes(system: &System, entities: &mut [Entity], background: u128) {
    let sections: Vec<u128> = entities.iter().map(|c| c.section).collect();
    for (index, entity) in entities.iter_mut().enumerate() {
        let Who::Task(task) = entity.who else {
            continue;
        };
        if entity.suspension == 0 {
            continue;
        }
        let others = sections.iter().enumerate().filter(|&(i, _)| i != index);
        let longest = others
            .map(|(_, &s)| s)
            .chain([background])
            .max()
            .unwrap_or(0);
        entity.stream.cost += longest * resumes(&system.tasks[task]);
        entity.hits = entity.stream;
    }
}

/// A child as its parent's node sees it: work of its budget per period. Owners of slots are no
/// entities.
fn server(policy: Policy, id: usize, child: &system::Scheduler) -> Result<Option<Entity>, Why> {
    let (kind, budget, period) = match &child.supply {
        system::Supply::Slots(_) => return Ok(None),
        system::Supply::Shared => {
            let what = format!(
                "the scheduler {}, which has no supply of its own",
                child.name
            );
            return Err(Why::new(what));
        }
        system::Supply::Server {
            kind,
            budget,
            period,
        } => (kind.as_str(), u128::from(*budget), u128::from(*period)),
    };
    // Elsewhere a server might keep its siblings away for a whole budget.
    let preemptive = matches!(
        policy,
        Policy::FixedPriority { preemptive: true } | Policy::Edf
    );
    if !preemptive || budget > period || period == 0 {
        return Err(Why::new(format!("the server of {}", child.name)));
    }
    let waits = kind == "deferrable";
    if waits && policy == Policy::Edf {
        return Err(Why::new("a deferrable server under EDF"));
    }
    let fluid = kind == "constant-bandwidth";
    if fluid && policy != Policy::Edf {
        return Err(Why::new("a constant-bandwidth server under priorities"));
    }
    let stream = Stream {
        separation: Some(period),
        cost: budget,
        jitter: 0,
        once: 0,
    };
    let late = if waits { period - budget } else { 0 };
    Ok(Some(Entity {
        who: Who::Server(id),
        name: child.name.clone(),
        stream,
        hits: Stream {
            jitter: late,
            ..stream
        },
        deadline: period,
        allowed: period,
        priority: child.priority,
        section: 0,
        fluid,
        whole: false,
        suspension: 0,
    }))
}
