//! From a graph and functions to the tiles that execute it

use std::fmt;
use std::sync::Arc;

use punctual_dataflow::{Rates, firings_per_iteration};
use punctual_fifo::{CopyEngine, FifoError, Shape, Writer, fifo};
use punctual_firing::{Declared, Engine, Port, RoundRobin, Rule, TaskScheduler, When};
use punctual_model::{ActorId, Fifo, Graph, Place, Preempted, System, Tile as TileId, WorkSource};

use crate::actor::{Duty, Firing, Function, NextRule, With};
use crate::between::{AnyScheduler, Between};
use crate::book::{ActorBook, Notes, TileBook};
use crate::burn::{self, Burn, Sharing, Varying};
use crate::ends::Ends;
use crate::memory::Memory;
use crate::meter::Meter;
use crate::plain::{Code, PlainTile, TaskFifos};
use crate::slots::Slots;
use crate::tile::{Modes, Tile};
use crate::turns::{OfTile, Turns};

/// Transitions that a tile keeps where nobody says how many.
const TRANSITIONS: usize = 1 << 20;

/// Why an application could not be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GraphError {
    /// The graph has no actor with this name, or no FIFO.
    NoSuch(String),
    /// None of its actors is on this tile.
    NoTile(TileId),
    /// The core decides on this tile: nobody asks a task scheduler.
    Inline(TileId),
    /// The FIFO could not be made.
    Fifo(String, FifoError),
    /// The first tokens of a FIFO are not as many bytes as the graph says.
    Initial(String),
    /// The actors of this graph decide between slots on some tile, and no system says which these
    /// are ([`Application::tiles_in`]).
    BetweenSlots(String),
    /// The work of an actor is neither a function that a program brings nor time to burn.
    Work(String),
    /// This graph is not real-time: it has tasks ([`Application::task`]) in place of actors.
    NotRealTime(String),
    /// This graph is real-time: it has actors in place of tasks.
    RealTime(String),
    /// The function of an actor in a shared object could not be had: why, in words.
    Library(String, String),
    /// There is no memory for so many shared bytes.
    Shared(usize),
    /// The rates contradict each other, or an iteration has too many firings: see `check`.
    Rates(String),
}

impl fmt::Display for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GraphError::NoSuch(name) => write!(f, "the graph has no `{name}`"),
            GraphError::NoTile(tile) => write!(f, "the graph has no actor on {tile:?}"),
            GraphError::Inline(tile) => {
                write!(
                    f,
                    "the core decides on {tile:?}, and asks no task scheduler"
                )
            }
            GraphError::Fifo(name, error) => write!(f, "the FIFO `{name}`: {error}"),
            GraphError::Initial(name) => {
                write!(
                    f,
                    "the first tokens of the FIFO `{name}` have another length"
                )
            }
            GraphError::BetweenSlots(graph) => write!(
                f,
                "the graph `{graph}` decides between slots, and no system says which"
            ),
            GraphError::Work(actor) => {
                write!(
                    f,
                    "the actor `{actor}` needs a program that brings its function"
                )
            }
            GraphError::NotRealTime(graph) => {
                write!(f, "the graph `{graph}` is not real-time: it has no actors")
            }
            GraphError::RealTime(graph) => {
                write!(f, "the graph `{graph}` is real-time: it has no tasks")
            }
            GraphError::Library(actor, why) => write!(f, "the actor `{actor}`: {why}"),
            GraphError::Shared(bytes) => write!(f, "no memory for {bytes} shared bytes"),
            GraphError::Rates(graph) => write!(f, "the rates of the graph `{graph}` contradict"),
        }
    }
}

impl std::error::Error for GraphError {}

/// A graph with the functions of its actors. Actors without one burn their work.
pub struct Application {
    graph: Graph,
    /// Firings of each actor in an iteration.
    firings: Vec<u64>,
    duties: Vec<Option<Box<dyn Duty>>>,
    /// Of a graph that is not real-time.
    tasks: Vec<Option<Code>>,
    initial: Vec<Vec<u8>>,
    memories: Vec<Memory>,
    /// Among them the one that actors of a file read and write.
    declared: usize,
    schedulers: Vec<(TileId, AnyScheduler)>,
    transitions: usize,
}

impl fmt::Debug for Application {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Application")
            .field("graph", &self.graph.name)
            .finish_non_exhaustive()
    }
}

impl Application {
    /// An application whose actors have no functions yet, and whose first tokens are zeros.
    ///
    /// # Errors
    /// [`GraphError::Rates`]; [`GraphError::Fifo`] where there is no memory for first tokens.
    pub fn new(graph: &Graph) -> Result<Application, GraphError> {
        let firings = match graph.plain {
            // It has no iterations.
            true => vec![1; graph.actors.len()],
            false => match firings_per_iteration(graph) {
                Ok(Rates::Consistent(firings)) => firings,
                _ => return Err(GraphError::Rates(graph.name.clone())),
            },
        };
        let zeros = |fifo: &Fifo| {
            let mut bytes = Vec::new();
            let count = (fifo.initial as usize).saturating_mul(fifo.token_size as usize);
            let room = bytes.try_reserve_exact(count).map_err(FifoError::Memory);
            room.map_err(|error| GraphError::Fifo(fifo.name.clone(), error))?;
            bytes.resize(count, 0);
            Ok(bytes)
        };
        let initial: Result<_, GraphError> = graph.fifos.iter().map(zeros).collect();
        Ok(Application {
            graph: graph.clone(),
            firings,
            duties: graph.actors.iter().map(|_| None).collect(),
            tasks: graph.actors.iter().map(|_| None).collect(),
            initial: initial?,
            memories: Vec::new(),
            declared: 0,
            schedulers: Vec::new(),
            transitions: TRANSITIONS,
        })
    }

    pub(crate) fn is_of(&self, graph: &Graph) -> bool {
        self.graph == *graph
    }

    pub(crate) fn name(&self) -> &str {
        &self.graph.name
    }

    fn place(&self, actor: &str, is_task: bool) -> Result<usize, GraphError> {
        match (self.graph.plain, is_task) {
            (true, false) => return Err(GraphError::NotRealTime(self.graph.name.clone())),
            (false, true) => return Err(GraphError::RealTime(self.graph.name.clone())),
            _ => {}
        }
        let id = self.graph.actor_named(actor);
        id.map(ActorId::index)
            .ok_or_else(|| GraphError::NoSuch(actor.to_owned()))
    }

    /// The function of an actor, which has no value of its own.
    ///
    /// # Errors
    /// [`GraphError::NoSuch`].
    pub fn actor(
        &mut self,
        name: &str,
        function: fn(&mut Firing<'_>),
    ) -> Result<&mut Application, GraphError> {
        let place = self.place(name, false)?;
        self.duties[place] = Some(Box::new(Function(function)));
        Ok(self)
    }

    /// The function of an actor, the update of its firing rule, and their parameter: it is called
    /// after each firing, and says how many tokens the next one takes and hands on.
    ///
    /// # Errors
    /// [`GraphError::NoSuch`].
    pub fn actor_with<P: Send + 'static>(
        &mut self,
        name: &str,
        fire: fn(&mut Firing<'_>, &mut P),
        update_firing_rule: fn(&mut P, &mut NextRule<'_>),
        parameter: P,
    ) -> Result<&mut Application, GraphError> {
        let place = self.place(name, false)?;
        self.duties[place] = Some(Box::new(With {
            fire,
            update: update_firing_rule,
            parameter,
        }));
        Ok(self)
    }

    /// The code of a task of a graph that is not real-time: it runs to its end, and waits in calls
    /// of its FIFOs.
    ///
    /// # Errors
    /// [`GraphError::NoSuch`], [`GraphError::RealTime`].
    pub fn task(
        &mut self,
        name: &str,
        code: impl FnOnce(&mut TaskFifos) + Send + 'static,
    ) -> Result<&mut Application, GraphError> {
        let place = self.place(name, true)?;
        self.tasks[place] = Some(Box::new(code));
        Ok(self)
    }

    /// The first tokens of a FIFO.
    ///
    /// # Errors
    /// [`GraphError::NoSuch`], [`GraphError::Initial`].
    pub fn initial(&mut self, fifo: &str, bytes: &[u8]) -> Result<&mut Application, GraphError> {
        let mut fifos = self.graph.fifos.iter();
        let at = fifos.position(|one| one.name == fifo);
        let at = at.ok_or_else(|| GraphError::NoSuch(fifo.to_owned()))?;
        if bytes.len() != self.initial[at].len() {
            return Err(GraphError::Initial(fifo.to_owned()));
        }
        self.initial[at] = bytes.to_vec();
        Ok(self)
    }

    /// The task scheduler of one tile, in place of the graph's static order or of turns. It is not
    /// believed.
    ///
    /// # Errors
    /// [`GraphError::NoTile`], [`GraphError::Inline`].
    pub fn task_scheduler(
        &mut self,
        tile: TileId,
        scheduler: impl TaskScheduler + Send + 'static,
    ) -> Result<&mut Application, GraphError> {
        if !self.graph.actors.iter().any(|actor| actor.tile == tile) {
            return Err(GraphError::NoTile(tile));
        }
        if self.graph.when_on(tile) == When::Inline {
            return Err(GraphError::Inline(tile));
        }
        self.schedulers.retain(|(of, _)| *of != tile);
        self.schedulers.push((tile, Box::new(scheduler)));
        Ok(self)
    }

    /// Bytes that all its tiles copy from and to ([`crate::Shared`]), zero at first: their number
    /// among those of the application.
    ///
    /// # Errors
    /// [`GraphError::Shared`].
    pub fn shared_memory(&mut self, bytes: usize) -> Result<usize, GraphError> {
        let memory = Memory::try_new(bytes).ok_or(GraphError::Shared(bytes))?;
        self.memories.push(memory);
        Ok(self.memories.len() - 1)
    }

    /// How many transitions each tile keeps, the first ones; a million where nobody says it.
    pub fn keep_transitions(&mut self, count: usize) -> &mut Application {
        self.transitions = count;
        self
    }

    /// The tiles, in the order of their first actors, with all memory that they will use. Where the
    /// core decides there is one for each actor, in the order of the file.
    ///
    /// # Errors
    /// [`GraphError::BetweenSlots`], [`GraphError::Fifo`], [`GraphError::Work`].
    pub fn tiles(self) -> Result<Vec<Tile>, GraphError> {
        self.tiles_with(|_| None)
    }

    /// The same, with the slots of a system for tiles that decide between them.
    ///
    /// # Errors
    /// As [`Application::tiles`]; [`GraphError::BetweenSlots`] where such a tile has no slots.
    pub fn tiles_in(self, system: &System) -> Result<Vec<Tile>, GraphError> {
        let frequency = Meter::new().frequency();
        self.tiles_with(|tile| Slots::of(system, tile, frequency))
    }

    /// The same, where tiles that decide between slots get theirs later ([`Tile::settle`]).
    ///
    /// # Errors
    /// As [`Application::tiles`], without [`GraphError::BetweenSlots`].
    pub fn tiles_without_slots(self) -> Result<Vec<Tile>, GraphError> {
        self.tiles_with(|_| Some(Slots::none()))
    }

    fn tiles_with(
        mut self,
        slots: impl Fn(TileId) -> Option<Slots>,
    ) -> Result<Vec<Tile>, GraphError> {
        let mut tiles: Vec<TileId> = Vec::new();
        for (actor, duty) in self.graph.actors.iter().zip(&self.duties) {
            let burns = matches!(actor.work, None | Some(WorkSource::Burn(_)));
            let id = self.graph.actor_named(&actor.name);
            let is_brought = id.is_some_and(|id| self.tasks[id.index()].is_some());
            if duty.is_none() && !is_brought && !burns {
                return Err(GraphError::Work(actor.name.clone()));
            }
            if !tiles.contains(&actor.tile) {
                tiles.push(actor.tile);
            }
        }
        let count = self.graph.fifos.len();
        self.declared_memory()?;
        let memories: Arc<[Memory]> = core::mem::take(&mut self.memories).into();
        let new = || Ends::new(count, &memories);
        let mut ends: Vec<Ends> = tiles.iter().map(|_| new()).collect();
        let tile_of = |actor: ActorId| {
            let tile = self.graph.actors[actor.index()].tile;
            tiles.iter().position(|&one| one == tile).unwrap_or(0)
        };
        for (at, of) in self.graph.fifos.iter().enumerate() {
            let made = fifo(self.shape(of));
            let (mut writer, reader) =
                made.map_err(|error| GraphError::Fifo(of.name.clone(), error))?;
            fill(&mut writer, of, &self.initial[at]);
            ends[tile_of(of.from)].set_writer(at, writer);
            ends[tile_of(of.to)].set_reader(at, reader);
        }
        let mut made = tiles.iter().zip(ends);
        made.try_fold(Vec::new(), |mut all, (&tile, mut ends)| {
            let here: Vec<ActorId> = self.graph.actors_on(tile).collect();
            let between = match self.graph.when_on(tile) {
                When::OwnTime => None,
                When::Inline => {
                    let of_tile = Arc::new(OfTile::new(ends.watch(), here.len()));
                    for id in here {
                        let modes = Modes {
                            turns: Some(Turns::new(Arc::clone(&of_tile), Meter::new())),
                            ..Modes::default()
                        };
                        let own = ends.take(&Rule::of(&self.graph, id));
                        all.push(self.tile(tile, &[id], own, modes));
                    }
                    return Ok(all);
                }
                When::BetweenSlots(preempted) => {
                    let slots = slots(tile);
                    let no_slots = || GraphError::BetweenSlots(self.graph.name.clone());
                    let passes_over = preempted == Preempted::PassedOver;
                    Some(Between::new(slots.ok_or_else(no_slots)?, passes_over))
                }
            };
            let modes = Modes {
                between,
                ..Modes::default()
            };
            all.push(self.tile(tile, &here, ends, modes));
            Ok(all)
        })
    }

    /// Makes the memory that actors of a file read and write, behind those of the program.
    fn declared_memory(&mut self) -> Result<(), GraphError> {
        let actors = self.graph.actors.iter();
        let bytes = actors.map(|actor| actor.reads_shm.max(actor.writes_shm));
        match bytes.max().unwrap_or(0) {
            0 => Ok(()),
            bytes => {
                self.declared = self.shared_memory(bytes as usize)?;
                Ok(())
            }
        }
    }

    /// These actors of a tile.
    fn tile(&mut self, tile: TileId, ids: &[ActorId], mut ends: Ends, mut modes: Modes) -> Tile {
        let meter = Meter::new();
        let graph = &self.graph;
        let here = ids.iter().map(|&id| (id, &graph.actors[id.index()]));
        let here: Vec<_> = here.collect();
        let books = here.iter().map(|(id, actor)| {
            let wcet = actor.wcet.iter().map(|&wcet| meter.ticks(wcet));
            ActorBook::new(*id, &actor.name, wcet.collect(), self.firings[id.index()])
        });
        let of = (&*graph.name, tile);
        // The threads of one tile share what is kept of it.
        let share = graph.actors_on(tile).count() / here.len().max(1);
        let transitions = self.transitions / share.max(1);
        let mut book = TileBook::new(of, books.collect(), transitions, meter.frequency());
        let duties = here.iter().map(|(id, actor)| {
            let duty = self.duties[id.index()].take();
            duty.unwrap_or_else(|| {
                let burn = match &actor.work {
                    Some(WorkSource::Burn(work)) => Burn::new(&[*work]),
                    _ => {
                        let wcets = actor.wcet.iter();
                        Burn::new(&wcets.map(|&wcet| burn::of_wcet(wcet)).collect::<Vec<_>>())
                    }
                };
                let burns: Box<dyn Duty> = match actor.varies {
                    true => Box::new(Varying::new(burn, outputs_to_others(graph, *id))),
                    false => Box::new(burn),
                };
                match [actor.reads_shm, actor.writes_shm] {
                    [0, 0] => burns,
                    bytes => Box::new(Sharing::new(burns, self.declared, bytes)),
                }
            })
        });
        let duties = duties.collect();
        let chosen = self.schedulers.iter().position(|(of, _)| *of == tile);
        let scheduler = match chosen {
            Some(at) => self.schedulers.swap_remove(at).1,
            None => Box::new(Declared::of(graph, tile)),
        };
        let when = graph.when_on(tile);
        let scheduler: AnyScheduler = match graph.plain {
            false => scheduler,
            true => {
                let gauges = Arc::new(ends.gauges());
                book.keep_calls();
                let tasks = here.iter().map(|(id, _)| {
                    let code = self.tasks[id.index()].take();
                    let code = code.unwrap_or_else(|| burn::task_of(graph, *id));
                    let rule = Rule::of(graph, *id);
                    let places = |ports: &[Port]| ports.iter().map(|port| port.fifo).collect();
                    let fifos = [places(rule.inputs()), places(rule.outputs())];
                    (code, fifos, ends.take(&rule))
                });
                modes.plain = Some(PlainTile {
                    scheduler,
                    tasks: tasks.collect(),
                    gauges,
                });
                Box::new(RoundRobin)
            }
        };
        let engine = Engine::of(graph, ids.iter().copied(), when, scheduler);
        let notes = Notes::new(Arc::new(book), meter);
        Tile::new(engine, ends, duties, notes, modes)
    }

    /// A FIFO without a limit gets room for two iterations beyond its first tokens, or for two
    /// firings of each end: one is enough for no circle to stop (note 0049).
    fn shape(&self, fifo: &Fifo) -> Shape {
        let longest = |rates: &[u32]| rates.iter().copied().max().unwrap_or(0);
        let (write, read) = (longest(&fifo.produce), longest(&fifo.consume));
        let capacity = fifo.capacity.unwrap_or_else(|| {
            let firings = self.firings[fifo.from.index()];
            let cycle: u64 = fifo.produce.iter().map(|&rate| u64::from(rate)).sum();
            let iteration = (firings * cycle).div_ceil(fifo.produce.len().max(1) as u64);
            let room = u64::from(write.saturating_add(read)).max(iteration);
            let tokens = u64::from(fifo.initial).saturating_add(2 * room);
            u32::try_from(tokens).unwrap_or(u32::MAX)
        });
        let varies = |actor: ActorId| {
            let duty = self.duties[actor.index()].as_deref();
            // The calls of a task are of any length.
            self.graph.plain || duty.is_some_and(Duty::is_variable)
        };
        let longest = |rate: u32, actor| if varies(actor) { capacity } else { rate };
        let from = self.graph.actors[fifo.from.index()].tile;
        let is_local = from == self.graph.actors[fifo.to.index()].tile;
        Shape {
            longest_write: longest(write, fifo.from).min(capacity),
            longest_read: longest(read, fifo.to).min(capacity),
            is_remote_to_writer: !is_local && fifo.place != Place::Producer,
            is_remote_to_reader: !is_local && fifo.place != Place::Consumer,
            ..Shape::new(capacity, fifo.token_size)
        }
    }
}

/// The outputs of an actor to others, by their order among its outputs, with the rate of each.
fn outputs_to_others(graph: &Graph, actor: ActorId) -> Vec<(usize, u32)> {
    let written = graph.fifos.iter().filter(|fifo| fifo.from == actor);
    let others = written.enumerate().filter(|(_, fifo)| fifo.to != actor);
    let rate = |fifo: &Fifo| fifo.produce.first().copied().unwrap_or(0);
    others.map(|(at, fifo)| (at, rate(fifo))).collect()
}

/// Puts the first tokens into a FIFO that nobody uses yet, one by one: a claim is as long as that
/// of a firing.
fn fill(writer: &mut Writer, fifo: &Fifo, bytes: &[u8]) {
    let mut copies = CopyEngine::default();
    for token in 0..fifo.initial as usize {
        let size = fifo.token_size as usize;
        match size {
            0 => {
                if writer.claim(1) {
                    writer.release(1, &mut copies);
                }
            }
            _ => {
                writer.write(&bytes[token * size..(token + 1) * size], &mut copies);
            }
        }
    }
}
