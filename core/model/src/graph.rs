//! Graphs: streaming applications of actors that fire, and of FIFOs between them.
//!
//! An [`Actor`] fires again and again, one firing at a time: it takes tokens from its input
//! [`Fifo`]s, executes, and hands tokens on. How many is its *rate*, one number or a cycle of
//! numbers, one for each *phase*. Actors keep nothing between firings but in a FIFO to themselves.
//!
//! A firing claims its space at its start and gives back what it consumed at its end (CompOSe
//! §3.1, §4.2). Where rates depend on data ([`Actor::varies`]), the graph executes, and nothing is
//! promised of it. So does an application that is not real-time ([`Graph::plain`]).

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use crate::id::{ActorId, CpuId, SchedulerId};
use crate::task::WorkSource;
use crate::time::{Ns, Span, Work};

/// One application: actors, FIFOs between them, and what is required of both together.
///
/// # Examples
///
/// ```
/// use punctual_model::{CpuId, Graph, Tile, Work};
///
/// let tile = Tile::cpu(CpuId(0));
/// let mut graph = Graph::new("pipeline");
/// let read = graph.actor("read", tile, Work::from_ms(2));
/// let filter = graph.actor("filter", tile, Work::from_ms(3));
/// let samples = graph.fifo("samples", read, filter);
/// (samples.produce, samples.capacity) = (vec![4], Some(8));
/// assert_eq!(graph.fifos.len(), 1);
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Graph {
    /// Unique among the graphs of a system.
    pub name: String,
    /// It is not real-time: its actors are tasks that run to completion, and nothing is promised of
    /// them. Each does its rounds ([`Actor::times`]): it reads its inputs one after the other, and
    /// waits for them; it works; it writes its outputs in the same way (CompOSe §4.2.3).
    pub plain: bool,
    /// In the order of the file.
    pub actors: Vec<Actor>,
    /// In the order of the file.
    pub fifos: Vec<Fifo>,
    /// How the actors of a tile take turns. On a tile without one: in own time, by round robin.
    pub orders: Vec<Order>,
    /// The time that copies between memories take; `None`: the wcets contain it.
    pub copies: Option<Copies>,
    /// The longest period allowed: an iteration at least so often.
    pub every: Option<Span<Ns>>,
    /// The longest time allowed from the start of an iteration's period to its last output. Means
    /// nothing without `every`, which is that period.
    pub within: Option<Span<Ns>>,
}

/// The copy engines of one application: one on each of its tiles, all alike. An engine makes one
/// copy at a time, in the order of requests, also while its tile computes or has no slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Copies {
    /// From the request to the first byte of each FIFO's copy.
    pub latency: Span<Ns>,
    /// Bytes that are copied in a microsecond; at least 1.
    pub bytes_per_us: u32,
}

/// One task of a streaming application.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Actor {
    /// Unique among the actors of its graph.
    pub name: String,
    /// The processor time that executes it.
    pub tile: Tile,
    /// Longest execution of a firing: one for all phases, or one for each.
    pub wcet: Vec<Work<Ns>>,
    /// The work of a firing; its wcet when absent.
    pub work: Option<WorkSource>,
    /// Its output depends on its data: into each FIFO to another actor a firing hands on at most
    /// the tokens of its rate. No analysis knows such a graph. An actor that varies has one phase.
    pub varies: bool,
    /// Its rounds, where its graph is not real-time; then it has finished.
    pub times: Option<u32>,
    /// Bytes that a firing reads from a memory tile, beside its tokens (CompOSe's `readSHM`): a
    /// copy of its claim. Only in graphs whose copies take time; else the wcet contains it.
    pub reads_shm: u32,
    /// Bytes that a firing writes there (`writeSHM`): a copy of its release, before which none of
    /// its tokens arrives.
    pub writes_shm: u32,
}

/// The processor time of actors: a whole CPU, or the slots of a scheduler on it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Tile {
    /// The CPU.
    pub cpu: CpuId,
    /// The scheduler whose slots it has; `None`: the whole CPU.
    pub scheduler: Option<SchedulerId>,
}

impl Tile {
    /// A whole CPU.
    pub const fn cpu(cpu: CpuId) -> Tile {
        let scheduler = None;
        Tile { cpu, scheduler }
    }
}

/// A queue of tokens from one actor to another, or to itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fifo {
    /// Unique among the FIFOs of its graph.
    pub name: String,
    /// The only actor that writes it.
    pub from: ActorId,
    /// The only actor that reads it.
    pub to: ActorId,
    /// Tokens of a firing of the writer: one number for all phases, or one for each.
    pub produce: Vec<u32>,
    /// Tokens of a firing of the reader, in the same way.
    pub consume: Vec<u32>,
    /// Tokens that are in it before anything fires.
    pub initial: u32,
    /// Most tokens that it can hold; `None`: as many as come.
    pub capacity: Option<u32>,
    /// Bytes of one token.
    pub token_size: u32,
    /// Where its tokens are kept.
    pub place: Place,
}

/// Where the tokens of a FIFO are kept.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Place {
    /// In the memory of the tile of its writer.
    Producer,
    /// In the memory of the tile of its reader.
    #[default]
    Consumer,
    /// In a memory tile, which executes nobody.
    Memory,
}

impl Place {
    /// All of them.
    pub const ALL: [Place; 3] = [Place::Producer, Place::Consumer, Place::Memory];

    /// The word in files and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Place::Producer => "producer",
            Place::Consumer => "consumer",
            Place::Memory => "memory",
        }
    }
}

/// The order of the firings on one tile, and the instants at which it is asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Order {
    /// The tile.
    pub tile: Tile,
    /// When it is asked.
    pub when: When,
    /// Its rule.
    pub by: OrderRule,
}

/// The instants at which an application decides which of its actors fires.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum When {
    /// After each firing, on the application's own time. A firing that was preempted goes on.
    #[default]
    OwnTime,
    /// Once per slot, at its start; after a firing the rest of the slot stays empty (CompOSe's OS
    /// time).
    BetweenSlots(Preempted),
    /// The core decides: each actor of the tile is a thread of it. One that has fired, or may not
    /// fire, yields to the others; a firing that is longer than [`When::TURN`] takes turns with
    /// theirs.
    Inline,
}

impl When {
    /// The longest that a thread without deadlines executes before its equals have their turns.
    pub const TURN: Span<Ns> = Span::from_ms(10);

    /// Whether it decides once per slot.
    pub const fn is_between_slots(self) -> bool {
        matches!(self, When::BetweenSlots(_))
    }
}

/// The fate of a firing that the end of a slot has preempted, where the next slot decides.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Preempted {
    /// It goes on before anybody else begins.
    #[default]
    Continues,
    /// It waits for its turn like all the others.
    PassedOver,
}

/// The rule of an order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum OrderRule {
    /// The next actor of the file that may fire, after the one that ran last.
    #[default]
    RoundRobin,
    /// The firings of one iteration, in the order in which they begin: each actor of the tile as
    /// often as it fires in an iteration. In own time.
    Static(Vec<ActorId>),
    /// The owners of the slots, one after the other, again and again; a slot whose owner cannot
    /// fire stays empty. Between slots, and a preempted firing is passed over.
    Tdm(Vec<ActorId>),
}

impl OrderRule {
    /// The actors that it lists.
    pub fn listed(&self) -> &[ActorId] {
        match self {
            OrderRule::RoundRobin => &[],
            OrderRule::Static(listed) | OrderRule::Tdm(listed) => listed,
        }
    }
}

impl Order {
    /// A static order, in own time.
    pub const fn fixed(tile: Tile, firings: Vec<ActorId>) -> Order {
        Order {
            tile,
            when: When::OwnTime,
            by: OrderRule::Static(firings),
        }
    }
}

impl Graph {
    /// A graph without actors.
    pub fn new(name: impl Into<String>) -> Graph {
        Graph {
            name: name.into(),
            ..Graph::default()
        }
    }

    /// Adds an actor of one phase, which burns its wcet.
    pub fn actor(&mut self, name: impl Into<String>, tile: Tile, wcet: Work<Ns>) -> ActorId {
        let id = ActorId(u32::try_from(self.actors.len()).unwrap_or(u32::MAX));
        self.actors.push(Actor {
            name: name.into(),
            tile,
            wcet: vec![wcet],
            work: None,
            varies: false,
            times: None,
            reads_shm: 0,
            writes_shm: 0,
        });
        id
    }

    /// Adds a FIFO without tokens and without limit, one token per firing on both sides. Set the
    /// rest in the value that it returns.
    pub fn fifo(&mut self, name: impl Into<String>, from: ActorId, to: ActorId) -> &mut Fifo {
        let fifo = Fifo {
            name: name.into(),
            from,
            to,
            produce: vec![1],
            consume: vec![1],
            initial: 0,
            capacity: None,
            token_size: 0,
            place: Place::default(),
        };
        self.fifos.push(fifo);
        let last = self.fifos.len() - 1;
        &mut self.fifos[last]
    }

    /// The number of phases of an actor: the longest cycle among its wcets and rates. O(FIFOs).
    pub fn phases(&self, actor: ActorId) -> usize {
        let wcets = self.actors.get(actor.index()).map(|a| a.wcet.len());
        let written = self.fifos.iter().filter(|fifo| fifo.from == actor);
        let read = self.fifos.iter().filter(|fifo| fifo.to == actor);
        let rates = written.map(|fifo| fifo.produce.len());
        let rates = rates.chain(read.map(|fifo| fifo.consume.len()));
        rates.chain(wcets).max().unwrap_or(1).max(1)
    }

    /// The order of a tile, if it has one of its own.
    pub fn order_on(&self, tile: Tile) -> Option<&Order> {
        self.orders.iter().find(|order| order.tile == tile)
    }

    /// The actors of a tile, in the order of the file.
    pub fn actors_on(&self, tile: Tile) -> impl Iterator<Item = ActorId> {
        let all = (0..).map(ActorId).zip(&self.actors);
        all.filter(move |(_, actor)| actor.tile == tile)
            .map(|(id, _)| id)
    }

    /// When a tile decides.
    pub fn when_on(&self, tile: Tile) -> When {
        self.order_on(tile)
            .map_or(When::OwnTime, |order| order.when)
    }

    /// The static orders, with their tiles.
    pub fn static_orders(&self) -> impl Iterator<Item = (Tile, &[ActorId])> {
        self.orders.iter().filter_map(|order| match &order.by {
            OrderRule::Static(firings) => Some((order.tile, firings.as_slice())),
            _ => None,
        })
    }

    /// The first actor whose output depends on its data.
    pub fn varying(&self) -> Option<ActorId> {
        let mut actors = (0..).map(ActorId).zip(&self.actors);
        actors.find(|(_, actor)| actor.varies).map(|(id, _)| id)
    }

    /// Whether an analysis knows such a graph. None does where it is not real-time, or where rates
    /// depend on data: it executes, and nothing is promised of it. O(actors).
    pub fn is_analysed(&self) -> bool {
        !self.plain && self.varying().is_none()
    }

    /// The actor with this name.
    pub fn actor_named(&self, name: &str) -> Option<ActorId> {
        let mut named = (0..).map(ActorId).zip(&self.actors);
        named
            .find(|(_, actor)| actor.name == name)
            .map(|(id, _)| id)
    }
}
