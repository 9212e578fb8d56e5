//! The states of actors, and their observer

use punctual_model::{ActorId, GraphId, Instant};

/// The state of an actor (CompOSe §4.3, Fig. 5). Each may be preempted; then it is the state with
/// the same name and `PREEMPT_` before it.
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
}

impl State {
    /// All of them, in the order of a firing.
    pub const ALL: [State; 5] = [
        State::Idle,
        State::Claim,
        State::Compute,
        State::Release,
        State::Reset,
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
            (State::Idle, true) => "PREEMPT_IDLE",
            (State::Claim, true) => "PREEMPT_CLAIM",
            (State::Compute, true) => "PREEMPT_COMPUTE",
            (State::Release, true) => "PREEMPT_RELEASE",
            (State::Reset, true) => "PREEMPT_RESET",
        }
    }
}

/// A transition of an actor, with its instant: the line of a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moved {
    /// The instant.
    pub at: Instant,
    /// Firings of the actor that have ended.
    pub firing: u64,
    /// The actor.
    pub actor: ActorId,
    /// Its graph.
    pub graph: GraphId,
    /// Its state from then on.
    pub state: State,
    /// Whether it is preempted in it.
    pub preempted: bool,
}

/// Is told what an engine does, at the instant at which it does it.
pub trait Observer {
    /// The actor with this place on the tile is now in this state. `firing`: how many of its
    /// firings have ended.
    fn moved(&mut self, actor: usize, firing: u64, state: State, preempted: bool) {
        let _ = (actor, firing, state, preempted);
    }

    /// The task scheduler named an actor that may not fire, or that the tile does not have.
    fn refused(&mut self, answer: usize) {
        let _ = answer;
    }
}

impl Observer for () {}
