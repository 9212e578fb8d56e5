//! Graphs as C describes them: actors, FIFOs, task schedulers, memory that tiles share.

use core::ffi::{c_char, c_void};

use ::punctual_graph::{Application, GraphError};
use punctual_model::{
    ActorId, Cpu, CpuId, Fifo, Graph, Order, OrderRule, Place, PolicyKind, Preempted, Priority,
    Scheduler, SchedulerId, Slot, Span, Supply, System, Tile, Trust, When, Work, WorkSource,
};

use crate::admission::{Why, keep_why};
use crate::edge::{all, is_place, sized, text};
use crate::firing::{
    CActor, CScheduler, CTask, punctual_complete, punctual_decide, punctual_fire,
    punctual_update_firing_rule,
};
use crate::status::{Answer, punctual_status as Status};

/// An actor: a function that is called when its tokens are there. Made by `punctual_actor_with`
/// below, which sets `size`; a field that is 0 or null means what is said of it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct punctual_actor {
    /// `sizeof(punctual_actor)`.
    pub size: usize,
    /// Its name, which no other actor of the graph has.
    pub name: *const c_char,
    /// The tile that executes it, a number below 256 that is the program's own.
    pub tile: u32,
    /// The longest execution of a firing, claims and decision with it.
    pub wcet_ns: u64,
    /// Instead of it one for each phase. Null: they are equal.
    pub phase_wcets_ns: *const u64,
    /// How many.
    pub phases: usize,
    /// Its work. Null: it burns its wcet.
    pub fire: punctual_fire,
    /// Says how many tokens its next firing takes and hands on. Null: as many as its FIFOs say.
    pub update: punctual_update_firing_rule,
    /// What they get.
    pub parameter: *mut c_void,
    /// Instead of `fire`: it is a task, and so are all others of its graph, which is not real-time.
    pub task: punctual_complete,
}

/// Where the tokens of a FIFO are kept: the values of `place`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum punctual_place {
    /// With the tile of its reader.
    PUNCTUAL_CONSUMER = 0,
    /// With the tile of its writer.
    PUNCTUAL_PRODUCER = 1,
    /// With neither: both ends copy.
    PUNCTUAL_MEMORY = 2,
}

/// A FIFO from one actor to another, or to itself: its state. Made by `punctual_fifo_between`
/// below, which sets `size`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct punctual_fifo {
    /// `sizeof(punctual_fifo)`.
    pub size: usize,
    /// Its name, which no other FIFO of the graph has.
    pub name: *const c_char,
    /// The actor that writes it: its place among the actors, from 0.
    pub from: u32,
    /// The actor that reads it.
    pub to: u32,
    /// Tokens that a firing of the writer hands on.
    pub produce: u32,
    /// Tokens that a firing of the reader takes.
    pub consume: u32,
    /// Instead of `produce` one number for each phase of the writer. Null: they are equal.
    pub produce_by_phase: *const u32,
    /// How many.
    pub produce_phases: usize,
    /// Instead of `consume` one number for each phase of the reader. Null: they are equal.
    pub consume_by_phase: *const u32,
    /// How many.
    pub consume_phases: usize,
    /// Bytes of a token.
    pub token_size: u32,
    /// Most tokens in it. 0: room for two iterations of the graph.
    pub capacity: u32,
    /// Tokens that are in it at first.
    pub initial: u32,
    /// One of `punctual_place`.
    pub place: u32,
    /// The bytes of these first tokens. Null: zeros.
    pub first: *const c_void,
}

/// The instants at which a tile decides: the values of `when`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum punctual_when {
    /// After each firing.
    PUNCTUAL_OWN_TIME = 0,
    /// Once in each slot, at its start, when a firing that the last slot interrupted goes on first.
    /// After a firing the rest of its slot stays empty. The thread that executes the tile is in the
    /// care of a branch in slots (`PUNCTUAL_SLOTS`) with `scheduling_ns` between them.
    PUNCTUAL_BETWEEN_SLOTS = 1,
    /// As `PUNCTUAL_BETWEEN_SLOTS`, but a firing that a slot interrupted is passed over until its
    /// turn comes. So each actor has a stack of its own of 256 KiB, and the tile is executed once,
    /// up to the stop of its application.
    PUNCTUAL_PASSED_OVER = 2,
    /// Never: as many threads as it has actors execute the tile, and each fires one of them. They
    /// are aperiodic equals in one place, whose turns are the order.
    PUNCTUAL_INLINE = 3,
}

/// The order of one tile. A tile without one has its actors fire by turns, in own time. Made by
/// `punctual_scheduled_by`, `punctual_scheduled_in_order`, `punctual_scheduled_between_slots`,
/// `punctual_scheduled_passing_over` and `punctual_scheduled_inline` below, which set `size`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct punctual_task_scheduler {
    /// `sizeof(punctual_task_scheduler)`.
    pub size: usize,
    /// The tile.
    pub tile: u32,
    /// Chooses. Null: turns, or `firings`.
    pub decide: punctual_decide,
    /// What it gets.
    pub parameter: *mut c_void,
    /// One of `punctual_when`.
    pub when: u32,
    /// Instead of `decide` a list of actors, by their places in the graph. In own time it is a
    /// static order: the firings of one iteration, again and again. With `PUNCTUAL_PASSED_OVER` it
    /// has the owners of the slots, one after the other; a slot whose owner may not fire stays
    /// empty. Null: none.
    pub firings: *const u32,
    /// How many.
    pub firing_count: usize,
}

/// An application: its actors and its FIFOs, and what goes with them. Made by `punctual_graph_of`
/// below, which sets `size`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct punctual_graph {
    /// `sizeof(punctual_graph)`.
    pub size: usize,
    /// Its name.
    pub name: *const c_char,
    /// Its actors.
    pub actors: *const punctual_actor,
    /// How many.
    pub actor_count: usize,
    /// Its FIFOs.
    pub fifos: *const punctual_fifo,
    /// How many.
    pub fifo_count: usize,
    /// Its own task schedulers. Null: none.
    pub schedulers: *const punctual_task_scheduler,
    /// How many.
    pub scheduler_count: usize,
    /// Bytes of each memory that its tiles share (`punctual_read_shm`). Null: none.
    pub memories: *const usize,
    /// How many.
    pub memory_count: usize,
}

/// What a description says, read once.
pub(crate) struct Parts {
    graph: Graph,
    actors: Vec<punctual_actor>,
    fifos: Vec<punctual_fifo>,
    schedulers: Vec<punctual_task_scheduler>,
    tiles: Tiles,
    memories: Vec<usize>,
}

/// The tiles of a program, as a system in which each that decides between slots has some. Which
/// ones, it learns from the thread that executes it.
struct Tiles {
    between: Vec<u16>,
    orders: Vec<(u32, When, OrderRule)>,
}

impl Tiles {
    /// # Safety
    /// `firings` of each is null or to as many as it says.
    unsafe fn of(schedulers: &[punctual_task_scheduler]) -> Result<Tiles, Status> {
        let (mut between, mut orders) = (Vec::new(), Vec::new());
        for (place, one) in schedulers.iter().enumerate() {
            let tile = number(one.tile)?;
            if schedulers.iter().take(place).any(|o| o.tile == one.tile) {
                return invalid(format!("tile {tile} has two task schedulers"));
            }
            let when = match one.when {
                OWN_TIME => When::OwnTime,
                BETWEEN_SLOTS => When::BetweenSlots(Preempted::Continues),
                PASSED_OVER => When::BetweenSlots(Preempted::PassedOver),
                INLINE => When::Inline,
                _ => return invalid(format!("tile {tile} decides at an unknown instant")),
            };
            // SAFETY: as the caller vouches.
            let firings = unsafe { all(one.firings, one.firing_count) }?;
            let listed: Vec<_> = firings.iter().map(|&actor| ActorId(actor)).collect();
            if one.decide.is_some() && (!listed.is_empty() || when == When::Inline) {
                return invalid(format!(
                    "tile {tile} has a task scheduler, and another order beside it"
                ));
            }
            let by = match when {
                _ if listed.is_empty() => OrderRule::RoundRobin,
                When::BetweenSlots(_) => OrderRule::Tdm(listed),
                When::OwnTime | When::Inline => OrderRule::Static(listed),
            };
            if when.is_between_slots() {
                between.push(tile);
            }
            orders.push((one.tile, when, by));
        }
        Ok(Tiles { between, orders })
    }

    fn tile(&self, tile: u32) -> Result<Tile, Status> {
        let tile = number(tile)?;
        let place = self.between.iter().position(|&one| one == tile);
        let scheduler = place.and_then(|place| u16::try_from(place).ok());
        Ok(Tile {
            cpu: CpuId(tile),
            scheduler: scheduler.map(SchedulerId),
        })
    }

    fn orders(&self) -> Result<Vec<Order>, Status> {
        let order = |(tile, when, by): &(u32, When, OrderRule)| {
            Ok(Order {
                tile: self.tile(*tile)?,
                when: *when,
                by: by.clone(),
            })
        };
        self.orders.iter().map(order).collect()
    }

    /// A system of so many CPUs for `graph`, whose firings fit into a slot.
    fn system(&self, cpus: u16, graph: &Graph) -> System {
        let wcets = graph.actors.iter().flat_map(|actor| &actor.wcet);
        let longest = wcets.max().copied().unwrap_or_default().as_span();
        let slot = Span::from_ms(1).saturating_add(longest);
        let scheduling = Span::from_us(1);
        let cpu = |tile: u16| Cpu {
            name: tile.to_string(),
            host: None,
            policy: match self.between.contains(&tile) {
                true => PolicyKind::Tdm {
                    frame: slot.saturating_add(scheduling),
                    scheduling,
                },
                false => PolicyKind::Fifo,
            },
        };
        let scheduler = |&tile: &u16| Scheduler {
            name: format!("tile-{tile}"),
            cpu: CpuId(tile),
            parent: None,
            policy: PolicyKind::Fifo,
            priority: Priority::LOWEST,
            supply: Supply::Slots(vec![Slot {
                at: Span::ZERO,
                length: slot,
            }]),
            trust: Trust::Inline,
            quota: None,
            receiver: None,
            fallback: None,
            code: None,
        };
        System {
            cpus: (0..cpus).map(cpu).collect(),
            schedulers: self.between.iter().map(scheduler).collect(),
            graphs: vec![graph.clone()],
            ..System::default()
        }
    }
}

const OWN_TIME: u32 = punctual_when::PUNCTUAL_OWN_TIME as u32;
const BETWEEN_SLOTS: u32 = punctual_when::PUNCTUAL_BETWEEN_SLOTS as u32;
const PASSED_OVER: u32 = punctual_when::PUNCTUAL_PASSED_OVER as u32;
const INLINE: u32 = punctual_when::PUNCTUAL_INLINE as u32;

/// An array of structures that begin with their size.
///
/// # Safety
/// `from` is null, or to that many.
unsafe fn all_sized<T: Copy>(from: *const T, count: usize) -> Result<Vec<T>, Status> {
    if count == 0 {
        return Ok(Vec::new());
    }
    is_place(from)?;
    // SAFETY: one of as many (the caller).
    let one = |place| unsafe { sized(from.wrapping_add(place)) };
    (0..count).map(one).collect()
}

impl Parts {
    /// # Safety
    /// `from` is null or to a description, with all that it points to.
    pub(crate) unsafe fn of(from: *const punctual_graph) -> Result<Parts, Status> {
        // SAFETY: as the caller vouches.
        let from = unsafe { sized(from) }?;
        // SAFETY: as the caller vouches.
        let actors = unsafe { all_sized(from.actors, from.actor_count) }?;
        // SAFETY: as the caller vouches.
        let fifos = unsafe { all_sized(from.fifos, from.fifo_count) }?;
        // SAFETY: as the caller vouches.
        let mut graph = Graph::new(unsafe { text(from.name) }?);
        // SAFETY: as the caller vouches.
        let schedulers = unsafe { all_sized(from.schedulers, from.scheduler_count) }?;
        // SAFETY: as the caller vouches.
        let tiles = unsafe { Tiles::of(&schedulers) }?;
        for actor in &actors {
            // SAFETY: as the caller vouches.
            unsafe { add_actor(&mut graph, &tiles, actor) }?;
        }
        graph.orders = tiles.orders()?;
        graph.plain = are_tasks(&actors)?;
        for fifo in &fifos {
            // SAFETY: as the caller vouches.
            unsafe { add_fifo(&mut graph, fifo) }?;
        }
        Ok(Parts {
            graph,
            actors,
            fifos,
            schedulers,
            tiles,
            // SAFETY: as the caller vouches.
            memories: unsafe { all(from.memories, from.memory_count) }?.to_vec(),
        })
    }

    pub(crate) fn actors(&self) -> usize {
        self.actors.len()
    }

    /// Whether the graph means something, and goes on for ever.
    pub(crate) fn is_sound(&self) -> Answer {
        let tiles = self.graph.actors.iter().map(|actor| actor.tile.cpu.0);
        let tiles = tiles.chain(self.tiles.between.iter().copied());
        let system = self.tiles.system(tiles.max().unwrap_or(0) + 1, &self.graph);
        if let Err(errors) = system.validate() {
            let words = errors.iter().map(|e| format!("{}: {}", e.message, e.help));
            return invalid(words.collect::<Vec<_>>().join("\n"));
        }
        // Nothing is known of rates that an update says.
        if self.actors.iter().any(|actor| actor.update.is_some()) {
            return Ok(());
        }
        match punctual_analysis::admit(&system) {
            Ok(verdict) if verdict.admitted => Ok(()),
            Ok(verdict) => {
                keep_why(Why::Verdict(Box::new(verdict)));
                Err(Status::PUNCTUAL_REFUSED)
            }
            Err(error) => invalid(error.to_string()),
        }
    }

    /// The application.
    ///
    /// # Safety
    /// The functions keep their contracts, with their parameters.
    pub(crate) unsafe fn make(&self) -> Result<Application, Status> {
        let made = Application::new(&self.graph);
        let mut made = made.map_err(|error| meaningless(&error))?;
        made.keep_transitions(0);
        for (actor, described) in self.graph.actors.iter().zip(&self.actors) {
            if let Some(code) = described.task {
                // SAFETY: as the caller vouches.
                let task = unsafe { CTask::of(code, described.parameter) };
                let added = made.task(&actor.name, move |fifos| task.run(fifos));
                added.map_err(|error| meaningless(&error))?;
                continue;
            }
            if described.fire.is_none() && described.update.is_none() {
                continue;
            }
            let Some(fire) = described.fire else {
                let name = &actor.name;
                return invalid(format!(
                    "actor `{name}` has an update and no function to fire"
                ));
            };
            // SAFETY: as the caller vouches.
            let own = unsafe {
                CActor::of(
                    fire,
                    described.update,
                    described.parameter,
                    self.ports(&actor.name),
                )
            };
            let added = made.actor_with(&actor.name, CActor::fire, CActor::update, own);
            added.map_err(|error| meaningless(&error))?;
        }
        for (fifo, described) in self.graph.fifos.iter().zip(&self.fifos) {
            let bytes = (fifo.initial as usize).checked_mul(fifo.token_size as usize);
            if !described.first.is_null() {
                let bytes = bytes.ok_or(Status::PUNCTUAL_INVALID)?;
                // SAFETY: as the caller vouches.
                let first = unsafe { all(described.first.cast::<u8>(), bytes) }?;
                let set = made.initial(&fifo.name, first);
                set.map_err(|error| meaningless(&error))?;
            }
        }
        for described in &self.schedulers {
            let tile = self.tiles.tile(described.tile)?;
            let declared = described.when != OWN_TIME || described.firing_count > 0;
            let decide = match described.decide {
                None if declared => continue,
                decide => decide.ok_or(Status::PUNCTUAL_INVALID)?,
            };
            // SAFETY: as the caller vouches.
            let own = unsafe { CScheduler::of(decide, described.parameter) };
            let set = made.task_scheduler(tile, own);
            if set.is_err() {
                return invalid(format!("no actor is on tile {}", described.tile));
            }
        }
        for &bytes in &self.memories {
            let added = made.shared_memory(bytes);
            added.map_err(|error| meaningless(&error))?;
        }
        Ok(made)
    }

    /// How many FIFOs an actor reads and writes.
    fn ports(&self, actor: &str) -> (usize, usize) {
        let id = self.graph.actor_named(actor);
        let count = |end: fn(&Fifo) -> ActorId| {
            let fifos = self.graph.fifos.iter();
            fifos.filter(|fifo| Some(end(fifo)) == id).count()
        };
        (count(|fifo| fifo.to), count(|fifo| fifo.from))
    }
}

/// Keeps why a graph could not be made.
pub(crate) fn meaningless(error: &GraphError) -> Status {
    keep_why(Why::Words(error.to_string()));
    match error {
        GraphError::Shared(_) => Status::PUNCTUAL_NO_MEMORY,
        _ => Status::PUNCTUAL_INVALID,
    }
}

/// Whether the actors of a graph are tasks: all of them, or none.
fn are_tasks(actors: &[punctual_actor]) -> Result<bool, Status> {
    let tasks = actors.iter().filter(|actor| actor.task.is_some());
    let both = |actor: &punctual_actor| {
        actor.task.is_some() && (actor.fire.is_some() || actor.update.is_some())
    };
    match tasks.count() {
        0 => Ok(false),
        count if count == actors.len() && !actors.iter().any(both) => Ok(true),
        _ => invalid("a graph has tasks alone, or actors that fire and no task".to_owned()),
    }
}

/// A mistake of the description, in words.
fn invalid<T>(words: String) -> Result<T, Status> {
    keep_why(Why::Words(words));
    Err(Status::PUNCTUAL_INVALID)
}

fn number(tile: u32) -> Result<u16, Status> {
    match u16::try_from(tile) {
        Ok(tile) if usize::from(tile) < System::MAX_CPUS => Ok(tile),
        _ => invalid(format!(
            "a tile has a number below {}, and not {tile}",
            System::MAX_CPUS
        )),
    }
}

/// # Safety
/// What it points to is there.
unsafe fn add_actor(graph: &mut Graph, tiles: &Tiles, from: &punctual_actor) -> Answer {
    // SAFETY: as the caller vouches.
    let name = unsafe { text(from.name) }?;
    let id = graph.actor(name, tiles.tile(from.tile)?, Work::from_ns(from.wcet_ns));
    if from.task.is_some() {
        // Any code: it says itself how many rounds it does.
        let name = graph.actors[id.index()].name.clone();
        graph.actors[id.index()].work = Some(WorkSource::Function(name));
    }
    // SAFETY: as the caller vouches.
    let by_phase = unsafe { all(from.phase_wcets_ns, from.phases) }?;
    if !by_phase.is_empty() {
        let wcets = by_phase.iter().map(|&ns| Work::from_ns(ns));
        graph.actors[id.index()].wcet = wcets.collect();
    }
    Ok(())
}

/// # Safety
/// What it points to is there.
unsafe fn add_fifo(graph: &mut Graph, from: &punctual_fifo) -> Answer {
    // SAFETY: as the caller vouches.
    let name = unsafe { text(from.name) }?;
    let fifo = graph.fifo(name, ActorId(from.from), ActorId(from.to));
    // SAFETY: as the caller vouches.
    let produce = unsafe { all(from.produce_by_phase, from.produce_phases) }?;
    // SAFETY: as the caller vouches.
    let consume = unsafe { all(from.consume_by_phase, from.consume_phases) }?;
    let rates = |constant: u32, by_phase: &[u32]| match by_phase {
        [] => vec![constant],
        by_phase => by_phase.to_vec(),
    };
    fifo.produce = rates(from.produce, produce);
    fifo.consume = rates(from.consume, consume);
    fifo.capacity = Some(from.capacity).filter(|&capacity| capacity > 0);
    fifo.initial = from.initial;
    fifo.token_size = from.token_size;
    fifo.place = match from.place {
        0 => Place::Consumer,
        1 => Place::Producer,
        2 => Place::Memory,
        _ => return Err(Status::PUNCTUAL_INVALID),
    };
    Ok(())
}
