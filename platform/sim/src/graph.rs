//! The bodies of graphs: an engine for each graph on each of its tiles, in virtual time.
//!
//! A firing takes its declared work, or its wcet. Decisions take no time here: their costs belong
//! to the wcets. The idle task works until a copy arrives; a release on another tile ends that by a
//! nudge. So a poll costs nothing and finds every token at the instant of its release.
//!
//! Claims and releases take the time of their copies where the graph says it. The tile waits for
//! the copies of a claim. A release is over when the copy engine begins with it. Its tokens arrive
//! when the engine has made the copy, also while another thread has the processor.
//!
//! Where the core decides, each actor has such a body. It fires once and yields; the last one of
//! its tile that may not fire polls.

pub(crate) mod asked;
pub(crate) mod copies;
pub(crate) mod turns;

use std::cell::RefCell;
use std::rc::Rc;
use std::slice;

use punctual_firing::{Activity, Call, Engine, Fifos, Moved, Observer, Rule, State, When};
use punctual_model::{
    Actor, ActorId, Graph, GraphId, GraphThread, Instant, Ns, Span, TaskId, Tile, Work, WorkSource,
};

use crate::RATE;
use crate::body::{Act, Body, Nudges, Step};
use crate::faults::Faults;
use crate::random::Random;
use asked::Asked;
use copies::Tokens;
use turns::OfTile;

/// Most transitions that are kept of a CPU.
const MAX_MOVES: usize = 1 << 23;

/// The transitions of all actors in a simulation, CPU by CPU in the order of time, and the faults
/// of their task schedulers.
#[derive(Clone, Debug, Default)]
pub struct Moves(Rc<RefCell<Vec<OfCpu>>>, Rc<RefCell<Vec<TileFault>>>);

/// A wrong task scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TileFault {
    /// The thread of the graph on its tile.
    pub task: TaskId,
    /// Answers that named an actor which may not fire. 0: it has never answered.
    pub refused: u64,
}

#[derive(Debug, Default)]
struct OfCpu {
    moves: Vec<Moved>,
    lost_from: Option<Instant>,
}

impl Moves {
    /// Those of a CPU, and the instant from which on there was no room for them. Takes them out.
    pub fn take(&self, cpu: usize) -> (Vec<Moved>, Option<Instant>) {
        let mut all = self.0.borrow_mut();
        let of_cpu = all.get_mut(cpu).map(std::mem::take).unwrap_or_default();
        (of_cpu.moves, of_cpu.lost_from)
    }

    /// The task schedulers that were wrong, in the order of their first faults.
    pub fn faults(&self) -> Vec<TileFault> {
        self.1.borrow().clone()
    }

    /// A task scheduler was wrong once more: its answer was refused, or it does not answer.
    pub(crate) fn fault(&self, task: TaskId, refused: u64) {
        let mut all = self.1.borrow_mut();
        match all.iter_mut().find(|fault| fault.task == task) {
            Some(fault) => fault.refused += refused,
            None => all.push(TileFault { task, refused }),
        }
    }

    fn push(&self, cpu: usize, moved: Moved) {
        let mut all = self.0.borrow_mut();
        if all.len() <= cpu {
            all.resize_with(cpu + 1, OfCpu::default);
        }
        let of_cpu = &mut all[cpu];
        if of_cpu.moves.len() < MAX_MOVES {
            of_cpu.moves.push(moved);
        } else if of_cpu.lost_from.is_none() {
            of_cpu.lost_from = Some(moved.at);
        }
    }
}

/// One graph on one tile.
pub(crate) struct GraphBody {
    graph: GraphId,
    tile: Tile,
    engine: Engine<Asked>,
    /// Tokens and space, for all tiles of the graph.
    fifos: Rc<RefCell<Tokens>>,
    of_tile: Rc<OfTile>,
    /// It waits for tokens: for any actor of its tile.
    polls: bool,
    moves: Moves,
    /// By the place of the actor: itself, its work by phase, and how much is left of a firing that
    /// was preempted.
    actors: Vec<ActorId>,
    works: Vec<Vec<Work>>,
    left: Vec<Work>,
    /// By the place of the actor: the end of its claim, or the begin of its release's copy; and
    /// when its tokens arrive.
    until: Vec<Instant>,
    arrives: Vec<Option<Instant>>,
    /// The actor whose firing is under way, and whether it computes.
    fires: Option<usize>,
    computes: bool,
    /// Decided when it was switched in.
    decided: Option<Activity>,
    has_begun: bool,
    /// By FIFO: the threads of another tile that may wait for its tokens, and for its space.
    ends: Vec<[Vec<TaskId>; 2]>,
    /// By FIFO: whether its tokens arrive with the copies of a release.
    copied: Vec<bool>,
    /// The FIFOs that this tile reads.
    read: Vec<usize>,
    declared: Graph,
    peers: Vec<TaskId>,
    /// Firings are shorter by chance.
    shorter: Option<Random>,
    task: TaskId,
    /// Its task scheduler never answers.
    loops: bool,
    /// By the place of the actor: its ports whose rates depend on its data, with the most of each.
    varying: Vec<Vec<(usize, u32)>>,
    /// The data of a simulation: chance.
    data: Random,
}

impl GraphBody {
    pub(crate) fn new(
        (graph, thread, own): (&Graph, &GraphThread, &[&GraphThread]),
        (faults, seed, moves): (&Faults, u64, &Moves),
        (fifos, of_tile): (Rc<RefCell<Tokens>>, Rc<OfTile>),
    ) -> GraphBody {
        let tile = thread.tile;
        let asked = Asked::of(graph, tile, faults);
        let loops = asked.loops();
        let engine = match thread.actor {
            Some(actor) => Engine::of(graph, [actor].into_iter(), When::Inline, asked),
            None => Engine::new(graph, tile, graph.when_on(tile), asked),
        };
        let places = 0..engine.actors();
        let actors: Vec<ActorId> = places.filter_map(|place| engine.actor(place)).collect();
        let work = |&actor: &ActorId| {
            let longer = faults.of_firings(thread.graph, actor);
            works(&graph.actors[actor.index()], longer)
        };
        let ends = ends(graph, tile, own);
        let place = place(thread, own);
        let varying = actors.iter().enumerate();
        let varying =
            varying.map(|(place, actor)| varying_ports(graph, *actor, engine.rule(place)));
        let copied = graph.fifos.iter().map(|fifo| graph.arrive_by_copy(fifo));
        let here = |fifo: &usize| graph.actors[graph.fifos[*fifo].to.index()].tile == tile;
        let mut body = GraphBody {
            copied: copied.collect(),
            read: (0..graph.fifos.len()).filter(here).collect(),
            declared: graph.clone(),
            of_tile,
            polls: false,
            until: vec![Instant::ZERO; actors.len()],
            arrives: vec![None; actors.len()],
            task: thread.task,
            loops,
            varying: varying.collect(),
            data: Random::new(seed, (1 << 33) + place),
            graph: thread.graph,
            tile,
            left: vec![Work::ZERO; actors.len()],
            works: actors.iter().map(work).collect(),
            actors,
            engine,
            fifos,
            moves: moves.clone(),
            fires: None,
            computes: false,
            decided: None,
            has_begun: false,
            peers: peers(&ends),
            ends,
            shorter: faults.short_firings.then(|| shorter(seed, place)),
        };
        for place in 0..body.actors.len() {
            body.draw_rates(place);
        }
        body
    }

    /// The output of the next firing of an actor that varies.
    fn draw_rates(&mut self, place: usize) {
        for &(port, most) in &self.varying[place] {
            let rate = self.data.span(Span::from_ticks(u64::from(most))).ticks();
            let rate = u32::try_from(rate).unwrap_or(u32::MAX);
            self.engine.set_rate(place, port, rate.min(most));
        }
    }

    /// Asks the engine, and tells the readers and writers of other tiles.
    fn ask(
        &mut self,
        now: Instant,
        others: &mut Nudges,
        ask: impl FnOnce(&mut Engine<Asked>, &mut Seen<'_>, &mut Told<'_>) -> Activity,
    ) -> Activity {
        let mut fifos = self.fifos.borrow_mut();
        fifos.settle(now);
        let mut seen = Seen {
            tokens: &mut fifos,
            ends: &self.ends,
            copied: &self.copied,
            arrival: self.fires.and_then(|place| self.arrives[place]),
            others,
        };
        let mut told = Told {
            at: now,
            graph: self.graph,
            cpu: self.tile.cpu.index(),
            actors: &self.actors,
            moves: &self.moves,
            task: self.task,
        };
        ask(&mut self.engine, &mut seen, &mut told)
    }

    /// The copies of a claim, and when they will have been made.
    fn claim(&mut self, place: usize, now: Instant) {
        let time = self.copying(place, 0);
        self.until[place] = match time.is_zero() {
            true => now,
            false => self.of_tile.copies.borrow_mut().copy(now, time).1,
        };
    }

    /// The copy of a release: the tile waits for its begin, and its tokens come at its end.
    fn release(&mut self, place: usize, now: Instant) {
        let time = self.copying(place, 1);
        (self.until[place], self.arrives[place]) = match time.is_zero() {
            true => (now, None),
            false => {
                let (begin, end) = self.of_tile.copies.borrow_mut().copy(now, time);
                (begin, Some(end))
            }
        };
    }

    /// The time of the copies of a claim (0) or a release (1).
    fn copying(&self, place: usize, end: usize) -> Span {
        let (graph, actor) = (&self.declared, self.actors[place]);
        let (ports, shared) = match (self.engine.rule(place), end) {
            (None, _) => (&[][..], Span::ZERO),
            (Some(rule), 0) => (rule.inputs(), graph.shm_read_time(actor)),
            (Some(rule), _) => (rule.outputs(), graph.shm_write_time(actor)),
        };
        let times = ports.iter().map(|port| {
            let fifo = &graph.fifos[port.fifo];
            let copied = match end {
                0 => graph.claim_copies(fifo),
                _ => graph.release_copies(fifo),
            };
            match copied {
                true => graph.copy_time(fifo, port.rate).ticks_up(RATE),
                false => Span::ZERO,
            }
        });
        times.fold(shared.ticks_up(RATE), Span::saturating_add)
    }

    /// The rest of a claim or a release. Copies go on while nobody waits for them.
    fn rest(&self, place: usize, now: Instant) -> Work {
        self.until[place].since(now).as_work()
    }

    /// Nobody fires until a copy arrives, or somebody else tells.
    fn idle(&self, now: Instant) -> Step {
        let fifos = self.fifos.borrow();
        let arrivals = self.read.iter().filter_map(|&fifo| fifos.arrival(fifo));
        let work = arrivals.min().map(|at| at.since(now).as_work());
        let act = Act::Poll;
        Step { work, act }
    }

    /// The thread of an actor has no firing to go on with: it begins one in its turn. So a firing
    /// begins with a whole turn, and after a wait it is the turn of another first.
    fn takes_turns(&mut self, ended: bool, now: Instant) -> Step {
        let yields = Step {
            work: Some(Work::ZERO),
            act: Act::Yield,
        };
        match ended {
            true => self.of_tile.changes(),
            false if self.of_tile.passes() => {
                self.polls = true;
                return self.idle(now);
            }
            false => {}
        }
        yields
    }

    /// The work of the firing that this actor begins.
    fn work(&mut self, place: usize) -> Work {
        let phase = self.engine.rule(place).map_or(0, |rule| rule.phase());
        let works = &self.works[place];
        let work = works.get(phase).or(works.first()).copied();
        let work = work.unwrap_or(Work::ZERO);
        match &mut self.shorter {
            Some(random) => shortened(random, work),
            None => work,
        }
    }
}

impl Body for GraphBody {
    fn begin(&mut self, _: u64, _: Option<Work>) {}

    fn next(&mut self, now: Instant, others: &mut Nudges) -> Step {
        self.computes = false;
        let act = Act::Continue;
        if self.loops {
            self.moves.fault(self.task, 0);
            return Step { work: None, act };
        }
        if std::mem::take(&mut self.polls) {
            return self.takes_turns(true, now);
        }
        let is_inline = self.of_tile.is_inline();
        loop {
            let fires = self.fires.is_some();
            let activity = match self.decided.take() {
                Some(decided) => decided,
                None if self.has_begun && (fires || !is_inline) => {
                    self.ask(now, others, |engine, fifos, told| engine.next(fifos, told))
                }
                None => self.ask(now, others, |engine, fifos, told| {
                    engine.resumed(fifos, told)
                }),
            };
            self.has_begun = true;
            self.fires = match activity {
                Activity::Claim(place)
                | Activity::Compute(place)
                | Activity::Release(place)
                | Activity::Reset(place)
                | Activity::GoOn(place) => Some(place),
                Activity::Idle => None,
            };
            let work = match activity {
                Activity::Compute(place) => {
                    self.computes = true;
                    self.work(place)
                }
                Activity::GoOn(place) => match self.engine.state(place) {
                    Some((State::Claim | State::Release, _)) => self.rest(place, now),
                    _ => {
                        self.computes = true;
                        self.left[place]
                    }
                },
                Activity::Idle if is_inline => return self.takes_turns(fires, now),
                Activity::Idle => return self.idle(now),
                Activity::Reset(place) => {
                    self.draw_rates(place);
                    continue;
                }
                Activity::Claim(place) => {
                    self.of_tile.changes();
                    self.claim(place, now);
                    self.rest(place, now)
                }
                Activity::Release(place) => {
                    self.release(place, now);
                    self.rest(place, now)
                }
            };
            let waits = !self.computes && work.is_zero();
            if !waits {
                let work = Some(work);
                return Step { work, act };
            }
        }
    }

    fn switched_out(&mut self, now: Instant, left: Option<Work>) {
        if let (Some(place), Some(left)) = (self.fires.filter(|_| self.computes), left) {
            self.left[place] = left;
        }
        self.ask(now, &mut Nudges::default(), |engine, _, told| {
            engine.preempted(told);
            Activity::Idle
        });
    }

    fn switched_in(&mut self, now: Instant) -> bool {
        if self.loops {
            return false;
        }
        if self.of_tile.is_inline() && self.fires.is_none() {
            return self.polls;
        }
        // A decision releases nothing, so nobody needs a nudge.
        let others = &mut Nudges::default();
        let decided = self.ask(now, others, |engine, fifos, told| {
            engine.resumed(fifos, told)
        });
        self.decided = Some(decided);
        true
    }

    fn peers(&self) -> &[TaskId] {
        &self.peers
    }
}

/// By FIFO: the threads of another tile that may wait for its tokens, and for its space. Any thread
/// of a tile may wait for all of it.
pub(crate) fn ends(graph: &Graph, tile: Tile, own: &[&GraphThread]) -> Vec<[Vec<TaskId>; 2]> {
    let elsewhere = |actor: ActorId| {
        let there = graph.actors[actor.index()].tile;
        let waiting = own
            .iter()
            .filter(|thread| thread.tile == there && there != tile);
        waiting.map(|thread| thread.task).collect()
    };
    let fifos = graph.fifos.iter();
    let ends = fifos.map(|fifo| [fifo.to, fifo.from].map(elsewhere));
    ends.collect()
}

/// All of them.
pub(crate) fn peers(ends: &[[Vec<TaskId>; 2]]) -> Vec<TaskId> {
    let mut peers: Vec<TaskId> = ends.iter().flatten().flatten().copied().collect();
    peers.sort_unstable();
    peers.dedup();
    peers
}

/// The number of a graph on a tile; not by its task's, which depends on the neighbours.
pub(crate) fn place(thread: &GraphThread, own: &[&GraphThread]) -> u64 {
    let place = own.iter().position(|one| one.task == thread.task);
    let place = place.map_or(0, |place| place as u64);
    (u64::from(thread.graph.0) << 16) + place
}

/// The chance that shortens firings.
pub(crate) fn shorter(seed: u64, place: u64) -> Random {
    Random::new(seed, (1 << 32) + place)
}

/// None is over at the instant at which it begins: its order among others stays known.
pub(crate) fn shortened(random: &mut Random, work: Work) -> Work {
    random
        .span(work.as_span())
        .as_work()
        .max(Work::from_ticks(1))
}

/// FIFOs that tell the other end what has come or gone.
pub(crate) struct Seen<'a> {
    pub(crate) tokens: &'a mut Tokens,
    pub(crate) ends: &'a [[Vec<TaskId>; 2]],
    pub(crate) copied: &'a [bool],
    /// When the copies of the firing that ends arrive.
    pub(crate) arrival: Option<Instant>,
    pub(crate) others: &'a mut Nudges,
}

impl Seen<'_> {
    fn tell(&mut self, fifo: usize, end: usize) {
        let tasks = self.ends.get(fifo).map(|ends| &*ends[end]);
        for &task in tasks.unwrap_or_default() {
            self.others.nudge(task);
        }
    }
}

impl Fifos for Seen<'_> {
    fn tokens(&self, fifo: usize) -> u32 {
        self.tokens.tokens(fifo)
    }

    fn space(&self, fifo: usize) -> u32 {
        self.tokens.space(fifo)
    }

    fn consume(&mut self, fifo: usize, count: u32) {
        self.tokens.consume(fifo, count);
        self.tell(fifo, 1);
    }

    fn produce(&mut self, fifo: usize, count: u32) {
        match self.arrival {
            Some(at) if self.copied[fifo] => self.tokens.send(fifo, count, at),
            _ => self.tokens.produce(fifo, count),
        }
        self.tell(fifo, 0);
    }
}

/// Writes the transitions down.
pub(crate) struct Told<'a> {
    pub(crate) at: Instant,
    pub(crate) graph: GraphId,
    pub(crate) cpu: usize,
    pub(crate) actors: &'a [ActorId],
    pub(crate) moves: &'a Moves,
    pub(crate) task: TaskId,
}

impl Observer for Told<'_> {
    fn moved(&mut self, place: usize, firing: u64, state: State, preempted: bool) {
        let moved = Moved {
            at: self.at,
            firing,
            actor: self.actors[place],
            graph: self.graph,
            state,
            preempted,
            call: None,
        };
        self.moves.push(self.cpu, moved);
    }

    fn called(&mut self, place: usize, rounds: u64, call: Call, goes_on: bool) {
        let moved = Moved {
            at: self.at,
            firing: rounds,
            actor: self.actors[place],
            graph: self.graph,
            state: State::Run,
            preempted: false,
            call: Some((call, goes_on)),
        };
        self.moves.push(self.cpu, moved);
    }

    fn refused(&mut self, _: usize) {
        self.moves.fault(self.task, 1);
    }
}

/// The ports of an actor whose rates depend on its data, by their places in its rule.
fn varying_ports(graph: &Graph, actor: ActorId, rule: Option<&Rule>) -> Vec<(usize, u32)> {
    let Some(rule) = rule.filter(|_| graph.actors[actor.index()].varies) else {
        return Vec::new();
    };
    let inputs = rule.inputs().len();
    let ports = (inputs..).zip(rule.outputs());
    let to_others = ports.filter(|(_, port)| graph.fifos[port.fifo].to != actor);
    to_others.map(|(at, port)| (at, port.rate)).collect()
}

/// The work of an actor's firings, by phase: `per_mille`/1000 of what is declared.
pub(crate) fn works(actor: &Actor, per_mille: u32) -> Vec<Work> {
    let declared = match &actor.work {
        Some(WorkSource::Burn(work)) => slice::from_ref(work),
        _ => &actor.wcet,
    };
    let scaled = |work: &Work<Ns>| {
        let ticks = u128::from(work.ticks_up(RATE).ticks()) * u128::from(per_mille);
        Work::from_ticks(u64::try_from(ticks.div_ceil(1_000)).unwrap_or(u64::MAX))
    };
    declared.iter().map(scaled).collect()
}
