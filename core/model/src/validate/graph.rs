//! Graphs: tiles of one application, FIFOs of one writer and one reader, rates that move something.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::Errors;
use crate::graph::{Actor, Fifo, Graph, Order, OrderRule, Preempted, Tile, When};
use crate::id::{ActorId, GraphId};
use crate::scheduler::{PolicyKind, Supply, Trust};
use crate::system::{Fault, System};
use crate::task::WorkSource;

impl System {
    /// Most actors of one graph.
    pub const MAX_ACTORS: usize = 10_000;
    /// Most FIFOs of one graph.
    pub const MAX_FIFOS: usize = 100_000;
    /// Most phases of one actor.
    pub const MAX_PHASES: usize = 10_000;
    /// Most entries of one static order.
    pub const MAX_ORDER: usize = 100_000;
}

/// Checks every graph. O(n log n) in the actors, FIFOs and phases.
pub(super) fn check_all(system: &System, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    let mut owners = BTreeMap::new();
    for (id, graph) in (0..=u16::MAX).map(GraphId).zip(&system.graphs) {
        errors.check_name("graph", &graph.name, Fault::Graph(id, "name"));
        if !names.insert(graph.name.as_str()) {
            errors.add(
                Fault::Graph(id, "name"),
                format!("two graphs are named `{}`", graph.name),
                "rename one of them",
            );
        }
        let sound = check_sizes(id, graph, errors);
        if !sound {
            continue;
        }
        let phases = phases(graph);
        check_actors(id, graph, &phases, errors);
        check_fifos(id, graph, &phases, errors);
        for (index, actor) in (0..).map(ActorId).zip(&graph.actors) {
            check_tile(system, (id, index), actor.tile, &mut owners, errors);
        }
        check_orders(system, id, graph, errors);
        if !graph.plain {
            check_connected(id, graph, errors);
        }
        check_copies(id, graph, errors);
        check_required(id, graph, errors);
    }
}

fn check_sizes(id: GraphId, graph: &Graph, errors: &mut Errors) -> bool {
    let counts = [
        ("actors", graph.actors.len(), System::MAX_ACTORS),
        ("fifos", graph.fifos.len(), System::MAX_FIFOS),
    ];
    let mut sound = true;
    for (what, count, most) in counts {
        if count > most {
            sound = false;
            errors.add(
                Fault::Graph(id, what),
                format!("{count} {what}, more than the {most} that one graph can have"),
                "split the graph",
            );
        }
    }
    if graph.actors.is_empty() {
        sound = false;
        errors.add(
            Fault::Graph(id, "actors"),
            format!("graph `{}` has no actors", graph.name),
            "give it at least one",
        );
    }
    sound
}

/// The number of phases of each actor: the longest of its cycles.
fn phases(graph: &Graph) -> Vec<usize> {
    let mut phases: Vec<usize> = graph.actors.iter().map(|a| a.wcet.len().max(1)).collect();
    for fifo in &graph.fifos {
        for (actor, cycle) in [(fifo.from, &fifo.produce), (fifo.to, &fifo.consume)] {
            if let Some(known) = phases.get_mut(actor.index()) {
                *known = (*known).max(cycle.len());
            }
        }
    }
    phases
}

fn check_actors(id: GraphId, graph: &Graph, phases: &[usize], errors: &mut Errors) {
    let mut names = BTreeSet::new();
    for ((index, actor), &phases) in (0..).map(ActorId).zip(&graph.actors).zip(phases) {
        let fault = |key| Fault::Actor(id, index, key);
        errors.check_name("actor", &actor.name, fault("name"));
        if !names.insert(actor.name.as_str()) {
            errors.add(
                fault("name"),
                format!(
                    "two actors of graph `{}` are named `{}`",
                    graph.name, actor.name
                ),
                "rename one of them",
            );
        }
        let what = format!("actor `{}`", actor.name);
        check_cycle(
            &what,
            ("wcet", actor.wcet.len()),
            phases,
            fault("wcet"),
            errors,
        );
        if actor.wcet.iter().any(|wcet| wcet.is_zero()) {
            errors.add(
                fault("wcet"),
                format!("a firing of {what} takes 0s"),
                "every phase takes some time, at least \"1ns\"",
            );
        }
        if actor.varies && phases > 1 {
            errors.add(
                fault("varies"),
                format!("{what} varies with its data and has {phases} phases"),
                "give it one phase, or remove `varies`",
            );
        }
        for (key, bytes) in [
            ("reads-shm", actor.reads_shm),
            ("writes-shm", actor.writes_shm),
        ] {
            if bytes > 0 && graph.copies.is_none() {
                errors.add(
                    fault(key),
                    format!("{what} copies from or to shared memory, which takes no time here"),
                    "add `copies` to the graph, or remove it: the wcet contains the copy",
                );
            }
        }
        if let Some((key, message, help)) = completion_problem(graph, actor) {
            errors.add(fault(key), format!("{what} {message}"), help);
        }
        if matches!(actor.work, Some(WorkSource::Command(_))) {
            errors.add(
                fault("work"),
                format!("{what} is a whole program, which knows no firings"),
                "let it burn, call a C function, or name a function of the program",
            );
        }
    }
}

/// An actor that does not fit its graph, which is real-time or runs to completion.
fn completion_problem(
    graph: &Graph,
    actor: &Actor,
) -> Option<(&'static str, &'static str, &'static str)> {
    match (graph.plain, actor.times) {
        (true, None) if matches!(actor.work, None | Some(WorkSource::Burn(_))) => Some((
            "times",
            "runs to completion, and has no end",
            "say how many rounds it does: `times`",
        )),
        (true, Some(0)) => Some((
            "times",
            "runs to completion, and does nothing before",
            "give it at least one round",
        )),
        (true, Some(_)) if actor.varies => Some((
            "varies",
            "varies with its data in a graph that is not real-time",
            "remove `varies`: nothing is promised of it anyway",
        )),
        (false, Some(_)) => Some((
            "times",
            "has an end, and its graph is real-time",
            "remove `times`, or add `real-time = false` to the graph",
        )),
        _ => None,
    }
}

/// A cycle has one value for all phases, or one for each.
fn check_cycle(
    what: &str,
    (key, values): (&str, usize),
    phases: usize,
    fault: Fault,
    errors: &mut Errors,
) {
    let (message, help) = if values == 0 {
        (
            format!("{what} has an empty `{key}`"),
            String::from("give one value, or one for each phase"),
        )
    } else if values > System::MAX_PHASES {
        (
            format!("{what} has {values} phases in `{key}`"),
            format!("an actor has at most {} phases", System::MAX_PHASES),
        )
    } else if values != 1 && values != phases {
        (
            format!("{what} has {phases} phases elsewhere, and {values} in `{key}`"),
            format!("give one value for all phases, or {phases}"),
        )
    } else {
        return;
    };
    errors.add(fault, message, help);
}

fn check_fifos(id: GraphId, graph: &Graph, phases: &[usize], errors: &mut Errors) {
    let mut writers: BTreeMap<&str, &Fifo> = BTreeMap::new();
    for (index, fifo) in graph.fifos.iter().enumerate() {
        let fault = |key| Fault::Fifo(id, index, key);
        errors.check_name("FIFO", &fifo.name, fault("name"));
        if let Some(first) = writers.insert(&fifo.name, fifo) {
            let name = |id: ActorId| graph.actors.get(id.index()).map_or("?", |a| &a.name);
            let (message, help) = if first.to == fifo.to && first.from != fifo.from {
                let (one, two) = (name(first.from), name(fifo.from));
                (
                    format!(
                        "FIFO `{}` has two producers, `{one}` and `{two}`",
                        fifo.name
                    ),
                    "give each producer a FIFO of its own",
                )
            } else {
                let message = format!(
                    "two FIFOs of graph `{}` are named `{}`",
                    graph.name, fifo.name
                );
                (message, "rename one of them")
            };
            errors.add(fault("name"), message, help);
        }
        let what = format!("FIFO `{}`", fifo.name);
        for (key, actor, cycle) in [
            ("produce", fifo.from, &fifo.produce),
            ("consume", fifo.to, &fifo.consume),
        ] {
            let end = if key == "produce" { "from" } else { "to" };
            let Some(phases) = phases.get(actor.index()) else {
                let message = format!("{what} names actor number {}, which is not there", actor.0);
                errors.add(fault(end), message, "name an actor of its graph");
                continue;
            };
            let sides = format!("{what}, at its `{end}`,");
            check_cycle(&sides, (key, cycle.len()), *phases, fault(key), errors);
            if !cycle.is_empty() && cycle.iter().all(|&rate| rate == 0) {
                let message = format!("`{key}` of {what} is 0: no token ever passes");
                errors.add(fault(key), message, "give it a rate, or remove the FIFO");
            }
        }
        if fifo
            .capacity
            .is_some_and(|capacity| capacity < fifo.initial)
        {
            let (most, initial) = (fifo.capacity.unwrap_or(0), fifo.initial);
            errors.add(
                fault("capacity"),
                format!("{what} holds at most {most} tokens, and {initial} are in it at first"),
                "raise `capacity`, or lower `initial`",
            );
        }
    }
}

/// A tile is a whole CPU or the slots of a scheduler, and nobody else executes there.
fn check_tile(
    system: &System,
    (graph, actor): (GraphId, ActorId),
    tile: Tile,
    owners: &mut BTreeMap<Tile, GraphId>,
    errors: &mut Errors,
) {
    let first = *owners.entry(tile).or_insert(graph);
    let fault = Fault::Actor(graph, actor, "on");
    let name = |id: GraphId| system.graphs.get(id.index()).map_or("?", |g| &g.name);
    let (message, help) = if first != graph {
        let (here, there) = (name(graph), name(first));
        (
            format!("graphs `{there}` and `{here}` share a tile: none is analysed by itself"),
            "give each its own slots",
        )
    } else if let Some(problem) = supply_problem(system, tile) {
        problem
    } else if let Some(other) = stranger(system, tile) {
        (
            format!(
                "{other} executes where actors of graph `{}` do",
                name(graph)
            ),
            "give the graph slots of its own",
        )
    } else {
        return;
    };
    // Once per tile and graph: all its actors there have the same mistake.
    let same = |error: &crate::system::ModelError| {
        error.message == message && matches!(error.fault, Fault::Actor(at, ..) if at == graph)
    };
    if !errors.0.iter().any(same) {
        errors.add(fault, message, help);
    }
}

/// The reason why a tile has no supply that is constant.
fn supply_problem(system: &System, tile: Tile) -> Option<(String, &'static str)> {
    let Some(cpu) = system.cpus.get(tile.cpu.index()) else {
        let message = format!("an actor on CPU number {}, which is not there", tile.cpu.0);
        return Some((message, "name a CPU of the system"));
    };
    let mut at = tile.scheduler;
    let own = at.and_then(|id| system.schedulers.get(id.index()));
    let (what, name, policy) = match own {
        Some(own) => ("scheduler", &own.name, own.policy),
        None => ("CPU", &cpu.name, cpu.policy),
    };
    if policy == PolicyKind::Planned {
        let message =
            format!("{what} `{name}` executes what is planned, and actors fire by tokens");
        return Some((message, "place them on another scheduler with slots"));
    }
    if matches!(policy, PolicyKind::Tdm { .. }) {
        let message = format!("{what} `{name}` divides its time, and actors have no slots");
        return Some((message, "place them on a scheduler with slots"));
    }
    // A circle of schedulers has been reported; it ends here by the number of steps.
    for _ in 0..system.schedulers.len() {
        let id = at?;
        let scheduler = system.schedulers.get(id.index());
        let Some(scheduler) = scheduler else {
            let message = format!("an actor on scheduler number {}, which is not there", id.0);
            return Some((message, "name a scheduler of the system"));
        };
        if !matches!(scheduler.supply, Supply::Slots(_)) {
            let message = format!(
                "scheduler `{}` has no slots: what actors on it get would depend on others",
                scheduler.name
            );
            return Some((message, "place them on a CPU, or on a scheduler with slots"));
        }
        at = scheduler.parent;
    }
    None
}

/// Something else that executes on the supply of a tile.
fn stranger(system: &System, tile: Tile) -> Option<String> {
    let on = |cpu, scheduler| cpu == tile.cpu && scheduler == tile.scheduler;
    let task = system
        .tasks
        .iter()
        .find(|task| on(task.cpu, task.scheduler));
    let mut below = system.schedulers.iter();
    let child = below.find(|child| on(child.cpu, child.parent));
    let task = task.map(|task| format!("task `{}`", task.name));
    task.or_else(|| child.map(|child| format!("scheduler `{}`", child.name)))
}

fn check_orders(system: &System, id: GraphId, graph: &Graph, errors: &mut Errors) {
    let mut tiles = BTreeSet::new();
    for (index, order) in graph.orders.iter().enumerate() {
        let listed = order.by.listed().len();
        if !tiles.insert(order.tile) {
            let message = "a second order of the firings on one tile";
            errors.add(Fault::Order(id, index), message.into(), "remove one");
        } else if let Some((message, help)) = mode_problem(system, graph, order) {
            errors.add(Fault::Order(id, index), message.into(), help);
        } else {
            let problem = match listed > System::MAX_ORDER {
                true => Some(format!("an order of {listed} firings")),
                false => order_problem(graph, order),
            };
            if let Some(message) = problem {
                let help = match order.by {
                    OrderRule::Static(_) => {
                        "list each actor of the tile as often as it fires in an iteration"
                    }
                    _ => "list each actor of the tile, and no other",
                };
                errors.add(Fault::Order(id, index), message, help);
            }
        }
    }
}

/// Rules that mean nothing at the instants at which they would be asked.
fn mode_problem(
    system: &System,
    graph: &Graph,
    order: &Order,
) -> Option<(&'static str, &'static str)> {
    match (&order.by, order.when) {
        _ if graph.plain && (&order.by, order.when) != (&OrderRule::RoundRobin, When::OwnTime) => {
            Some((
                "an order of tasks that run to completion: they change where one waits",
                "remove it, or use \"round-robin\" in own time",
            ))
        }
        (OrderRule::Static(_) | OrderRule::Tdm(_), When::Inline) => Some((
            "a list of firings where actors are threads of the core, which take turns",
            "remove `by` and `firings`, or decide in own time",
        )),
        (_, When::Inline) if is_own_time(system, order.tile) => Some((
            "an inline order on a scheduler that decides on its own supply",
            "use `trust = \"inline\"`, or decide in own time",
        )),
        (OrderRule::Static(_), When::BetweenSlots(_)) => Some((
            "a static order between slots: each slot would hold one firing of it",
            "use \"round-robin\" or \"tdm\" between slots, or the static order in own time",
        )),
        (OrderRule::Tdm(_), When::OwnTime) => Some((
            "an order by \"tdm\" in own time: no slot would be its owner's",
            "add `when = \"between-slots\"`, or use \"round-robin\"",
        )),
        (OrderRule::Tdm(_), When::BetweenSlots(Preempted::Continues)) => Some((
            "a preempted firing that continues in a slot of another's turn",
            "use `preempted = \"passed-over\"`, which is the only rule of \"tdm\"",
        )),
        (_, When::BetweenSlots(_)) if order.tile.scheduler.is_none() => Some((
            "an order between the slots of a whole CPU, which has none",
            "give the graph a scheduler with slots, or decide in own time",
        )),
        (_, When::BetweenSlots(_)) if !has_time_to_decide(system, order.tile) => Some((
            "an order between slots whose frame has no time between them",
            "give the frame a `scheduling-time` above 0",
        )),
        _ => None,
    }
}

fn is_own_time(system: &System, tile: Tile) -> bool {
    let scheduler = tile
        .scheduler
        .and_then(|id| system.schedulers.get(id.index()));
    scheduler.is_some_and(|scheduler| scheduler.trust == Trust::OwnTime)
}

/// Whether every frame above a tile has a scheduling time: then a boundary lies between any two of
/// its slots.
fn has_time_to_decide(system: &System, tile: Tile) -> bool {
    let mut at = tile.scheduler;
    for _ in 0..system.schedulers.len() {
        let Some(scheduler) = at.and_then(|id| system.schedulers.get(id.index())) else {
            break;
        };
        at = scheduler.parent;
        let above = at.and_then(|id| system.schedulers.get(id.index()));
        let policy = match above {
            Some(above) => Some(above.policy),
            None => system.cpus.get(tile.cpu.index()).map(|cpu| cpu.policy),
        };
        if matches!(policy, Some(PolicyKind::Tdm { scheduling, .. }) if scheduling.is_zero()) {
            return false;
        }
    }
    true
}

fn order_problem(graph: &Graph, order: &Order) -> Option<String> {
    let mut missing: BTreeSet<ActorId> = (0..)
        .map(ActorId)
        .zip(&graph.actors)
        .filter(|(_, actor)| actor.tile == order.tile)
        .map(|(id, _)| id)
        .collect();
    if missing.is_empty() {
        return Some("an order of a tile without actors of this graph".into());
    }
    if order.by == OrderRule::RoundRobin {
        return None;
    }
    for firing in order.by.listed() {
        match graph.actors.get(firing.index()) {
            Some(actor) if actor.tile == order.tile => missing.remove(firing),
            Some(actor) => return Some(format!("`{}` is on another tile", actor.name)),
            None => return Some(format!("an order with actor number {}", firing.0)),
        };
    }
    let absent = missing.first().and_then(|id| graph.actors.get(id.index()));
    absent.map(|actor| format!("`{}` is on this tile and not in its order", actor.name))
}

/// Parts that no FIFO joins have no iteration in common.
fn check_connected(id: GraphId, graph: &Graph, errors: &mut Errors) {
    let mut beside = vec![Vec::new(); graph.actors.len()];
    for fifo in &graph.fifos {
        let (from, to) = (fifo.from.index(), fifo.to.index());
        if from.max(to) < beside.len() {
            beside[from].push(to);
            beside[to].push(from);
        }
    }
    let mut seen = vec![false; graph.actors.len()];
    let mut open = vec![0];
    while let Some(at) = open.pop() {
        if !core::mem::replace(&mut seen[at], true) {
            open.extend(beside[at].iter().filter(|&&next| !seen[next]));
        }
    }
    let apart = seen.iter().position(|&seen| !seen);
    if let Some(apart) = apart.and_then(|index| graph.actors.get(index)) {
        errors.add(
            Fault::Graph(id, "fifos"),
            format!(
                "no FIFO joins actor `{}` to the first ones of its graph",
                apart.name
            ),
            "add one, or give its part a graph of its own",
        );
    }
}

/// Copies take time, and there are some.
fn check_copies(id: GraphId, graph: &Graph, errors: &mut Errors) {
    let Some(copies) = graph.copies else { return };
    if graph.plain {
        errors.add(
            Fault::Graph(id, "copies"),
            format!(
                "copies of graph `{}`, which is not real-time: it claims and releases nothing",
                graph.name
            ),
            "remove `copies`: its calls copy at once",
        );
        return;
    }
    if copies.bytes_per_us == 0 {
        errors.add(
            Fault::Graph(id, "copies"),
            format!("copies of graph `{}` never end", graph.name),
            "copy at least one byte in a microsecond",
        );
    }
    let is_copied = |fifo: &Fifo| graph.claim_copies(fifo) || graph.release_copies(fifo);
    let mut copied = graph.fifos.iter().filter(|fifo| is_copied(fifo));
    let mut actors = graph.actors.iter();
    let shares = actors.any(|actor| actor.reads_shm > 0 || actor.writes_shm > 0);
    if !shares && !copied.any(|fifo| fifo.token_size > 0) {
        errors.add(
            Fault::Graph(id, "copies"),
            format!("no FIFO of graph `{}` has bytes to copy", graph.name),
            "give tokens between tiles a `token-size`, or remove `copies`",
        );
    }
}

fn check_required(id: GraphId, graph: &Graph, errors: &mut Errors) {
    for (key, span) in [("throughput", graph.every), ("latency", graph.within)] {
        if span.is_some_and(|span| span.is_zero()) {
            errors.add(
                Fault::Graph(id, key),
                format!("graph `{}` is required to need no time", graph.name),
                "allow at least the wcets of its actors",
            );
        }
    }
    let required = graph.every.or(graph.within);
    if graph.plain && required.is_some() {
        let key = if graph.every.is_some() {
            "throughput"
        } else {
            "latency"
        };
        errors.add(
            Fault::Graph(id, key),
            format!(
                "graph `{}` is not real-time: nothing can be promised of it",
                graph.name
            ),
            "remove what is required, or `real-time = false`",
        );
    } else if graph.within.is_some() && graph.every.is_none() {
        errors.add(
            Fault::Graph(id, "latency"),
            format!(
                "a latency of graph `{}` is required, and no throughput",
                graph.name
            ),
            "say the period against which it is measured: `throughput`",
        );
    }
}
