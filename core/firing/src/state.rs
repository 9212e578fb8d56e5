//! The states of actors, and their observer

use punctual_model::{ActorId, GraphId, Instant};

use crate::fifos::Fifos;

/// The state of an actor (CompOSe §4.3, Fig. 5), or of a task that runs to completion (Fig. 6:
/// `Idle`, `Run`, `Finished`). Each but the last may be preempted; then it is the state with the
/// same name and `PREEMPT_` before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum State {
    /// Between two firings.
    #[default]
    Idle,
    /// Its input is made local and its output has space.
    Claim,
    /// Its function executes.
    Compute,
    /// Its output is handed on and its input given back.
    Release,
    /// Its firing rule is updated, and it goes back to its start.
    Reset,
    /// A task has begun, and perhaps waits for a FIFO.
    Run,
    /// A task has ended.
    Finished,
}

impl State {
    /// All of them: those of a firing in its order, then those of a task.
    pub const ALL: [State; 7] = [
        State::Idle,
        State::Claim,
        State::Compute,
        State::Release,
        State::Reset,
        State::Run,
        State::Finished,
    ];

    /// The state with this word, and whether it is preempted in it.
    pub fn named(name: &str) -> Option<(State, bool)> {
        let twins = |state| [(state, false), (state, true)];
        let mut all = State::ALL.into_iter().flat_map(twins);
        all.find(|(state, preempted)| state.name(*preempted) == name)
    }

    /// The word in logs and messages, as in the paper.
    pub const fn name(self, preempted: bool) -> &'static str {
        match (self, preempted) {
            (State::Idle, false) => "IDLE",
            (State::Claim, false) => "CLAIM",
            (State::Compute, false) => "COMPUTE",
            (State::Release, false) => "RELEASE",
            (State::Reset, false) => "RESET",
            (State::Run, false) => "RUN",
            (State::Finished, _) => "FINISHED",
            (State::Idle, true) => "PREEMPT_IDLE",
            (State::Claim, true) => "PREEMPT_CLAIM",
            (State::Compute, true) => "PREEMPT_COMPUTE",
            (State::Release, true) => "PREEMPT_RELEASE",
            (State::Reset, true) => "PREEMPT_RESET",
            (State::Run, true) => "PREEMPT_RUN",
        }
    }
}

/// A call of a FIFO by a task that runs to completion. A FIFO is named by its place in the graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    /// It takes so many tokens.
    Read(u32, u32),
    /// It hands on so many.
    Write(u32, u32),
}

impl Call {
    /// Whether its tokens or its space are there.
    pub fn may_go_on(self, fifos: &(impl Fifos + ?Sized)) -> bool {
        match self {
            Call::Read(fifo, count) => fifos.tokens(fifo as usize) >= count,
            Call::Write(fifo, count) => fifos.space(fifo as usize) >= count,
        }
    }

    /// Takes its tokens, or hands them on.
    pub fn take(self, fifos: &mut impl Fifos) {
        match self {
            Call::Read(fifo, count) => fifos.consume(fifo as usize, count),
            Call::Write(fifo, count) => fifos.produce(fifo as usize, count),
        }
    }

    /// The word in logs, where it goes on and where it waits.
    pub const fn name(self, goes_on: bool) -> &'static str {
        match (self, goes_on) {
            (Call::Read(..), true) => "reads",
            (Call::Write(..), true) => "writes",
            (Call::Read(..), false) => "lacks-tokens",
            (Call::Write(..), false) => "lacks-space",
        }
    }
}

/// A transition of an actor, with its instant: the line of a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moved {
    /// The instant.
    pub at: Instant,
    /// Firings of the actor that have ended; of a task, its rounds.
    pub firing: u64,
    /// The actor.
    pub actor: ActorId,
    /// Its graph.
    pub graph: GraphId,
    /// Its state from then on.
    pub state: State,
    /// Whether it is preempted in it.
    pub preempted: bool,
    /// A task that runs calls a FIFO and stays in its state: the call, and whether it goes on.
    pub call: Option<(Call, bool)>,
}

/// Is told what an engine does, at the instant at which it does it.
pub trait Observer {
    /// The actor with this place on the tile is now in this state. `firing`: how many of its
    /// firings have ended.
    fn moved(&mut self, actor: usize, firing: u64, state: State, preempted: bool) {
        let _ = (actor, firing, state, preempted);
    }

    /// The task with this place calls a FIFO. `goes_on`: its tokens or its space are there; else it
    /// waits for them.
    fn called(&mut self, task: usize, rounds: u64, call: Call, goes_on: bool) {
        let _ = (task, rounds, call, goes_on);
    }

    /// The task scheduler named an actor that may not fire, or that the tile does not have.
    fn refused(&mut self, answer: usize) {
        let _ = answer;
    }
}

impl Observer for () {}
