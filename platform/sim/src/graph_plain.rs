//! The bodies of applications that are not real-time: tasks that run to completion.
//!
//! A round reads its inputs one after the other, works, and writes its outputs in the same way. A
//! call that has to wait asks the application for another task. If nobody can go on, the idle task
//! works until another tile reads or writes, or the next slot begins.

use std::cell::RefCell;
use std::rc::Rc;

use punctual_firing::{Call, Plain};
use punctual_model::{ActorId, Graph, GraphId, GraphThread, Instant, TaskId, Tile, Work};

use crate::body::{Act, Body, Nudges, Step};
use crate::faults::Faults;
use crate::graph::asked::Asked;
use crate::graph::copies::Tokens;
use crate::graph::{Moves, Seen, Told, ends, peers, place, shortened, shorter, works};
use crate::random::Random;

/// One application on one tile.
pub(crate) struct PlainBody {
    graph: GraphId,
    tile: Tile,
    task: TaskId,
    engine: Plain<Asked>,
    /// Tokens and space, for all tiles of the graph.
    fifos: Rc<RefCell<Tokens>>,
    moves: Moves,
    actors: Vec<ActorId>,
    /// By the place of the actor.
    tasks: Vec<Code>,
    /// A task works: else it is about to call a FIFO, or nobody runs.
    works: bool,
    /// By FIFO: the thread of another tile that reads it, and the one that writes it.
    ends: Vec<[Vec<TaskId>; 2]>,
    peers: Vec<TaskId>,
    /// Rounds are shorter by chance.
    shorter: Option<Random>,
    /// Its task scheduler never answers.
    loops: bool,
}

/// A task: its rounds, and how far it is in one.
struct Code {
    times: u64,
    /// FIFOs with the tokens of each phase.
    reads: Vec<(u32, Vec<u32>)>,
    writes: Vec<(u32, Vec<u32>)>,
    work: Vec<Work>,
    phases: usize,
    phase: usize,
    /// Its next step: so many reads, its work, then its writes.
    step: usize,
}

/// The next step of a round.
enum Next {
    Call(Call),
    Work(Work),
    /// None is left.
    End,
}

impl Code {
    fn of(graph: &Graph, id: ActorId, per_mille: u32) -> Code {
        let actor = &graph.actors[id.index()];
        let fifos = || (0_u32..).zip(&graph.fifos);
        let reads = fifos().filter(|(_, fifo)| fifo.to == id);
        let writes = fifos().filter(|(_, fifo)| fifo.from == id);
        Code {
            times: u64::from(actor.times.unwrap_or(1)),
            reads: reads.map(|(at, fifo)| (at, fifo.consume.clone())).collect(),
            writes: writes
                .map(|(at, fifo)| (at, fifo.produce.clone()))
                .collect(),
            work: works(actor, per_mille),
            phases: graph.phases(id),
            phase: 0,
            step: 0,
        }
    }

    fn next(&self) -> Next {
        let reads = self.reads.len();
        if let Some((fifo, rates)) = self.reads.get(self.step) {
            return Next::Call(Call::Read(*fifo, self.now(rates)));
        }
        if self.step == reads {
            return Next::Work(self.now(&self.work));
        }
        match self.writes.get(self.step - reads - 1) {
            Some((fifo, rates)) => Next::Call(Call::Write(*fifo, self.now(rates))),
            None => Next::End,
        }
    }

    /// The value of this phase.
    fn now<T: Copy + Default>(&self, cycle: &[T]) -> T {
        let value = cycle.get(self.phase).or(cycle.first());
        value.copied().unwrap_or_default()
    }
}

impl PlainBody {
    pub(crate) fn new(
        (graph, thread, own): (&Graph, &GraphThread, &[&GraphThread]),
        (faults, seed, moves): (&Faults, u64, &Moves),
        fifos: Rc<RefCell<Tokens>>,
    ) -> PlainBody {
        let tile = thread.tile;
        let asked = Asked::of(graph, tile, faults);
        let here = (0..).map(ActorId).zip(&graph.actors);
        let here = here.filter(|(_, actor)| actor.tile == tile);
        let actors: Vec<ActorId> = here.map(|(id, _)| id).collect();
        let ends = ends(graph, tile, own);
        let place = place(thread, own);
        PlainBody {
            graph: thread.graph,
            tile,
            task: thread.task,
            loops: asked.loops(),
            engine: Plain::new(actors.len(), asked),
            fifos,
            moves: moves.clone(),
            tasks: actors
                .iter()
                .map(|&id| Code::of(graph, id, faults.of_firings(thread.graph, id)))
                .collect(),
            actors,
            works: false,
            peers: peers(&ends),
            ends,
            shorter: faults.short_firings.then(|| shorter(seed, place)),
        }
    }

    /// Goes on until somebody works, or nobody can go on.
    fn go_on(&mut self, now: Instant, others: &mut Nudges) -> Option<Work> {
        let mut fifos = self.fifos.borrow_mut();
        let mut seen = Seen {
            tokens: &mut fifos,
            // Its copies take no time.
            copied: &[],
            arrival: None,
            ends: &self.ends,
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
        loop {
            let current = match self.engine.running() {
                Some(current) => current,
                None => self.engine.next(&seen, &mut told)?,
            };
            let code = &mut self.tasks[current];
            match code.next() {
                Next::Call(call) => {
                    let moves = !matches!(call, Call::Read(_, 0) | Call::Write(_, 0));
                    if !moves || self.engine.call(call, &seen, &mut told) {
                        call.take(&mut seen);
                        code.step += 1;
                    }
                }
                Next::Work(work) => {
                    code.step += 1;
                    self.works = true;
                    return Some(match &mut self.shorter {
                        Some(random) => shortened(random, work),
                        None => work,
                    });
                }
                Next::End => {
                    (code.step, code.phase) = (0, (code.phase + 1) % code.phases);
                    if self.engine.rounds(current) + 1 < code.times {
                        self.engine.goes_on(&mut told);
                    } else {
                        self.engine.ends(&mut told);
                    }
                }
            }
        }
    }

    /// Tells the engine of the borders of slots.
    fn tell(&mut self, now: Instant, tell: impl FnOnce(&mut Plain<Asked>, &mut Told<'_>)) {
        let mut told = Told {
            at: now,
            graph: self.graph,
            cpu: self.tile.cpu.index(),
            actors: &self.actors,
            moves: &self.moves,
            task: self.task,
        };
        tell(&mut self.engine, &mut told);
    }
}

impl Body for PlainBody {
    fn begin(&mut self, _: u64, _: Option<Work>) {}

    fn next(&mut self, now: Instant, others: &mut Nudges) -> Step {
        self.works = false;
        let act = Act::Continue;
        if self.loops {
            self.moves.fault(self.task, 0);
            return Step { work: None, act };
        }
        let work = self.go_on(now, others);
        Step { work, act }
    }

    fn switched_out(&mut self, now: Instant, _: Option<Work>) {
        self.tell(now, |engine, told| engine.preempted(told));
    }

    /// A task that works goes on with it; else somebody may be able to by now.
    fn switched_in(&mut self, now: Instant) -> bool {
        self.tell(now, |engine, told| {
            engine.resumed(told);
        });
        !self.works && !self.loops
    }

    fn peers(&self) -> &[TaskId] {
        &self.peers
    }
}
