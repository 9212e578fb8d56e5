//! From a system to all claims of its certificate

use crate::Why;
use crate::chain;
use crate::claims::{Claims, DemandClaim, EntityClaim, LateClaim, NodeClaim, RequiredClaim};
use crate::gang;
use crate::node::{Entity, Node, Place, Who, is_on, reserves, slots_of};
use crate::system::{Policy, Required, Supply, System};
use crate::together;
use crate::waits::{self, Waits};
use crate::window;

/// Most rounds in which waiting on one CPU lengthens that on another.
const ROUNDS: usize = 256;

/// Everything that proves a system to be admitted.
///
/// # Errors
///
/// [`Why`]: something does not hold, or is nothing that is certified.
pub(crate) fn admitted(system: &System) -> Result<Claims, Why> {
    check_places(system)?;
    gang::check(system)?;
    let waits = Waits::of(system)?;
    let mut waiting = vec![0; system.tasks.len()];
    for _ in 0..ROUNDS {
        let round = Round::of(system, &waits, &waiting)?;
        let next = waits.waiting(&round.bounds, &waiting)?;
        if next == waiting {
            return claims(system, &waits, round);
        }
        waits::check_price(system)?;
        waiting = next;
    }
    Err(Why::new("waiting without an end in sight"))
}

/// All nodes and bounds, where tasks wait for so long.
struct Round {
    nodes: Vec<NodeClaim>,
    bounds: Vec<Option<u64>>,
    waiting: Vec<u64>,
}

impl Round {
    fn of(system: &System, waits: &Waits<'_>, waiting: &[u64]) -> Result<Round, Why> {
        // A job that waits is one that is released late.
        let mut late = system.clone();
        for (task, waiting) in late.tasks.iter_mut().zip(waiting) {
            task.jitter = task.jitter.saturating_add(*waiting);
        }
        let asked: Vec<usize> = waits.predecessors().chain(gang::members(system)).collect();
        let cpus = (0..system.cpus.len()).map(Place::Cpu);
        let places = cpus.chain((0..system.schedulers.len()).map(Place::Scheduler));
        let mut nodes = Vec::new();
        let mut bounds = vec![None; system.tasks.len()];
        for place in places {
            let claim = node(&late, place, (&asked, waiting), &mut bounds)?;
            nodes.extend(claim.filter(|claim| !claim.entities.is_empty()));
        }
        for cpu in 0..system.cpus.len() {
            check_limit(&late, cpu)?;
        }
        Ok(Round {
            nodes,
            bounds,
            waiting: waiting.to_vec(),
        })
    }
}

/// The claims from the bounds of all tasks.
fn claims(system: &System, waits: &Waits<'_>, round: Round) -> Result<Claims, Why> {
    let bounds = &round.bounds;
    let bound = |task: usize| {
        let bound = bounds.get(task).copied().flatten();
        bound.ok_or_else(|| Why::new("a required response that nothing bounds"))
    };
    let mut required = Vec::new();
    for requirement in &system.required {
        let (bound, within) = match requirement {
            Required::Response { task, within } => (bound(*task)?, *within),
            Required::Chain { tasks, within } => {
                let waits = tasks.iter().find(|&&task| round.waiting[task] > 0);
                if let Some(&task) = waits {
                    let name = &system.tasks[task].name;
                    return Err(Why::new(format!("a chain through {name}, which may wait")));
                }
                (chain::bound(system, tasks, bound)?, *within)
            }
            Required::Jitter { task, within } => (
                bound(*task)?.saturating_sub(system.tasks[*task].shortest),
                *within,
            ),
        };
        if bound > within {
            return Err(Why::new(format!(
                "a requirement of {within} ns, bounded by {bound} ns"
            )));
        }
        required.push(RequiredClaim { bound, within });
    }
    Ok(Claims::Admitted {
        led: together::claims(system),
        required,
        waits: waits.claims(bounds)?,
        gangs: gang::claims(system, bounds, &round.waiting)?,
        nodes: round.nodes,
    })
}

/// More is due on a CPU by `at` than it can supply.
pub(crate) fn overdue(system: &System, cpu: &str, at: u64) -> Result<DemandClaim, Why> {
    check_places(system)?;
    let found = system.cpus.iter().position(|c| c.name == cpu);
    let place = found.ok_or_else(|| Why::new("a CPU that does not exist"))?;
    refuse_waits(system, Place::Cpu(place))?;
    let claim = window::overdue(&Node::of(system, Place::Cpu(place))?, cpu, at)?;
    if claim.demand <= claim.supply {
        return Err(Why::new(format!(
            "{} ns, by which all that is due is done",
            at
        )));
    }
    Ok(claim)
}

/// The job of a task that is released at `offset` is late, or the budget of `scheduler.NAME`.
pub(crate) fn late(system: &System, task: &str, offset: u64) -> Result<LateClaim, Why> {
    check_places(system)?;
    let (who, place) = late_one(system, task)?;
    refuse_waits(system, place)?;
    let node = Node::of(system, place)?;
    let own = node.entities.iter().position(|c| c.who == who);
    let own = own.ok_or_else(|| Why::new("a task without a deadline"))?;
    let response = window::response(&node, own, offset)?;
    let allowed = window::narrow(node.entities[own].allowed);
    if response <= allowed {
        return Err(Why::new(format!("{task}, which is on time")));
    }
    Ok(LateClaim {
        task: task.to_string(),
        offset,
        response,
        allowed,
    })
}

/// The task or the server that is late, and its node.
fn late_one(system: &System, name: &str) -> Result<(Who, Place), Why> {
    if let Some(id) = system.tasks.iter().position(|t| t.name == name) {
        let scheduler = system.tasks[id].scheduler;
        let place = scheduler.map_or(Place::Cpu(system.tasks[id].cpu), Place::Scheduler);
        return Ok((Who::Task(id), place));
    }
    let named =
        |s: &crate::system::Scheduler| Some(s.name.as_str()) == name.strip_prefix("scheduler.");
    let found = system.schedulers.iter().position(named);
    let id = found.ok_or_else(|| Why::new("a task that does not exist"))?;
    let scheduler = &system.schedulers[id];
    match scheduler.parent {
        None => Ok((Who::Server(id), Place::Cpu(scheduler.cpu))),
        Some(above) => Err(Why::new(format!(
            "the late budget of {}, for that of {} above it is only known to come by the end of \
             its period, and may come earlier",
            scheduler.name, system.schedulers[above].name
        ))),
    }
}

/// The witness of a refusal says nothing of waiting: nobody waits there.
fn refuse_waits(system: &System, place: Place) -> Result<(), Why> {
    let tasks = system.tasks.iter().enumerate();
    let mut here = tasks.filter(|(_, task)| is_on(task, place) && task.deadline.is_some());
    here.try_for_each(|(id, _)| waits::refuse(system, id))
}

/// References that everything else follows without asking.
fn check_places(system: &System) -> Result<(), Why> {
    let (cpus, schedulers) = (system.cpus.len(), system.schedulers.len());
    let node = |cpu: usize, scheduler: Option<usize>| {
        let on_cpu = |s: usize| system.schedulers.get(s).is_some_and(|s| s.cpu == cpu);
        cpu < cpus && scheduler.is_none_or(|s| s < schedulers && on_cpu(s))
    };
    let above = |(id, s): (usize, &crate::system::Scheduler)| {
        node(s.cpu, s.parent) && s.parent.is_none_or(|parent| parent < id)
    };
    let tasks = |list: &[usize]| list.iter().all(|&t| t < system.tasks.len());
    let resource = |u: &crate::system::Use| {
        u.resource < system.resources.len()
            && u.inside.is_none_or(|outer| outer < system.resources.len())
    };
    let required = |r: &Required| match r {
        Required::Response { task, .. } | Required::Jitter { task, .. } => tasks(&[*task]),
        Required::Chain { tasks: chain, .. } => tasks(chain),
    };
    let sound = system
        .tasks
        .iter()
        .all(|t| node(t.cpu, t.scheduler) && tasks(&t.after) && tasks(&t.follows))
        && system.schedulers.iter().enumerate().all(above)
        && system.required.iter().all(required)
        && system.tasks.iter().flat_map(|t| &t.uses).all(resource)
        && system.machine.reserves.iter().all(|t| t.period > 0);
    if sound {
        Ok(())
    } else {
        Err(Why::new(
            "a reference to what does not exist, or a period of nothing",
        ))
    }
}

fn node(
    system: &System,
    place: Place,
    (asked, waiting): (&[usize], &[u64]),
    bounds: &mut [Option<u64>],
) -> Result<Option<NodeClaim>, Why> {
    let empty = !system
        .tasks
        .iter()
        .any(|t| is_on(t, place) && t.deadline.is_some());
    if let (Place::Scheduler(id), true) = (place, empty)
        && system.schedulers.iter().all(|s| s.parent != Some(id))
    {
        // It asks for nothing; what it may take is a entity above.
        return Ok(None);
    }
    let node = Node::of(system, place)?;
    let mut claim = NodeClaim {
        node: node.name.clone(),
        entities: Vec::new(),
        points: Vec::new(),
    };
    if node.policy == Policy::Edf {
        claim.points = window::points(&node)?;
    }
    for index in 0..node.entities.len() {
        let mut entity = match (node.policy, place, node.entities[index].who) {
            (Policy::Tdm { .. }, Place::Cpu(cpu), Who::Task(task)) => {
                owner(system, (&node, index), cpu, task, asked)?
            }
            (Policy::Tdm { .. }, ..) => return Err(Why::new("slots below a scheduler")),
            (Policy::Planned, ..) => return Err(Why::new("deadlines on a planned node")),
            _ => entity(system, &node, index, asked)?,
        };
        if entity.bound > entity.allowed {
            let (name, bound) = (&entity.name, entity.bound);
            let what = format!("{name}, bounded by {bound} ns of {} ns", entity.allowed);
            return Err(Why::new(what));
        }
        if let Who::Task(task) = node.entities[index].who {
            bounds[task] = Some(entity.bound);
            entity.waiting = waiting[task];
        }
        claim.entities.push(entity);
    }
    Ok(Some(claim))
}

fn entity(system: &System, node: &Node, index: usize, asked: &[usize]) -> Result<EntityClaim, Why> {
    let own = &node.entities[index];
    let is_listed = matches!(own.who, Who::Task(id) if asked.contains(&id));
    let jobs = match node.policy {
        Policy::RoundRobin { .. } => Vec::new(),
        Policy::Edf if !is_listed && !is_asked(system, own) => Vec::new(),
        _ => window::jobs(node, index)?,
    };
    let jitter = window::narrow(own.stream.jitter);
    let bound = match node.policy {
        _ if !jobs.is_empty() => {
            let responses = jobs
                .iter()
                .map(|j| j.completion.saturating_sub(j.offset).saturating_add(jitter));
            responses.max().unwrap_or(u64::MAX)
        }
        Policy::Edf => window::narrow(own.deadline),
        _ => window::narrow(window::longest(node)? + own.stream.jitter),
    };
    Ok(EntityClaim {
        name: own.name.clone(),
        cost: window::narrow(own.stream.cost),
        section: window::narrow(own.section),
        waiting: 0,
        jobs,
        bound,
        allowed: window::narrow(own.allowed),
    })
}

/// Whether the response itself is needed, not only that the deadline holds.
fn is_asked(system: &System, own: &Entity) -> bool {
    let Who::Task(id) = own.who else {
        return false;
    };
    let asks = |required: &Required| match required {
        Required::Response { task, .. } | Required::Jitter { task, .. } => *task == id,
        Required::Chain { tasks, .. } => tasks.contains(&id),
    };
    system.required.iter().any(asks)
}

/// A task in slots of its own.
fn owner(
    system: &System,
    (node, index): (&Node, usize),
    cpu: usize,
    task: usize,
    asked: &[usize],
) -> Result<EntityClaim, Why> {
    let alone = Node {
        name: node.name.clone(),
        policy: Policy::FixedPriority { preemptive: true },
        supply: slots_of(system, cpu, &system.tasks[task].slots)?,
        entities: vec![node.entities[index].clone()],
        background: 0,
        sections: Vec::new(),
    };
    if !node.sections.is_empty() {
        return Err(Why::new("locks of tasks in slots of their own"));
    }
    check_overlap(system, cpu)?;
    entity(system, &alone, 0, asked)
}

/// No slot of a CPU belongs to two.
pub(crate) fn check_overlap(system: &System, cpu: usize) -> Result<(), Why> {
    let tasks = system
        .tasks
        .iter()
        .filter(|t| t.cpu == cpu && t.scheduler.is_none());
    let mut slots: Vec<_> = tasks.flat_map(|t| t.slots.iter().copied()).collect();
    for child in system
        .schedulers
        .iter()
        .filter(|s| s.cpu == cpu && s.parent.is_none())
    {
        if let Supply::Slots(own) = &child.supply {
            slots.extend(own.iter().copied());
        }
    }
    slots_of(system, cpu, &slots).map(|_| ())
}

/// Everything on a CPU together stays below the limit; each share is rounded up.
fn check_limit(system: &System, cpu: usize) -> Result<(), Why> {
    const WHOLE: u128 = 1_000_000;
    const FINE: u128 = 1 << 40;
    let limit = u128::from(system.machine.limit_ppm);
    if limit >= WHOLE {
        return Ok(());
    }
    let mut sum: u128 = 0;
    for place in (0..system.schedulers.len())
        .map(Place::Scheduler)
        .chain([Place::Cpu(cpu)])
    {
        if matches!(place, Place::Scheduler(id) if system.schedulers[id].cpu != cpu) {
            continue;
        }
        let node = Node::of(system, place)?;
        for entity in node
            .entities
            .iter()
            .filter(|c| matches!(c.who, Who::Task(_)))
        {
            let own = share(entity.stream.cost, entity.stream.separation, FINE);
            sum = sum.saturating_add(own);
        }
    }
    for reserve in reserves(system, cpu) {
        sum = sum.saturating_add(share(reserve.cost, reserve.separation, FINE));
    }
    if sum.saturating_mul(WHOLE) > limit * FINE {
        return Err(Why::new(format!(
            "cpu.{}, used above its limit",
            system.cpus[cpu].name
        )));
    }
    Ok(())
}

fn share(cost: u128, separation: Option<u128>, fine: u128) -> u128 {
    separation.map_or(0, |t| cost.saturating_mul(fine).div_ceil(t))
}
