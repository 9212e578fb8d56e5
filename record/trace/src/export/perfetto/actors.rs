//! Actors: a track for each, with a slice per firing and, in it, one per state.

use std::io::{self, Write};

use punctual_model::Instant;

use super::Trace;
use crate::graphs::{Call, GraphInfo, Moved, State};

/// First track of actors.
const ACTOR_TRACKS: u64 = 1 << 51;

fn actor_track(graph: usize, actor: usize) -> u64 {
    ACTOR_TRACKS + ((graph as u64) << 32) + actor as u64
}

/// The slices of an actor that are open.
#[derive(Clone, Default)]
struct Open {
    /// The firing under way, by its number.
    firing: Option<u64>,
    state: Option<String>,
    /// The instant of its last event.
    last: Instant,
}

impl<W: Write> Trace<'_, W> {
    /// The tracks of all actors.
    pub(super) fn describe_actors(&mut self) -> io::Result<()> {
        let log = self.log;
        for (graph, info) in log.graphs.iter().enumerate() {
            for (actor, declared) in info.graph.actors.iter().enumerate() {
                let tile = declared.tile;
                let scheduler = tile.scheduler.and_then(|id| log.schedulers.get(id.index()));
                let cpu = log.cpus.get(tile.cpu.index()).map(|cpu| &cpu.name);
                let place = scheduler.or(cpu).map_or("?", String::as_str);
                let name = format!("actor {}.{} on {place}", info.graph.name, declared.name);
                self.child(actor_track(graph, actor), &name)?;
            }
        }
        Ok(())
    }

    /// The transitions of all actors. Open slices are closed at `end`. O(transitions).
    pub(super) fn actors(&mut self, end: Instant) -> io::Result<()> {
        let log = self.log;
        let all = log.graphs.iter();
        let all = all.map(|info| vec![Open::default(); info.graph.actors.len()]);
        let mut open: Vec<Vec<Open>> = all.collect();
        for moved in log.cpus.iter().flat_map(|cpu| &cpu.moves) {
            let (graph, actor) = (moved.graph.index(), moved.actor.index());
            let own = open.get_mut(graph).and_then(|all| all.get_mut(actor));
            if let Some(own) = own {
                let state = state(&log.graphs[graph], moved);
                let firing = state.is_some().then_some(moved.firing);
                self.step(actor_track(graph, actor), own, moved.at, (firing, state))?;
            }
        }
        for (graph, all) in open.iter_mut().enumerate() {
            for (actor, own) in all.iter_mut().enumerate() {
                self.step(actor_track(graph, actor), own, end, (None, None))?;
            }
        }
        Ok(())
    }

    /// Closes what is over, then opens what begins.
    fn step(
        &mut self,
        track: u64,
        open: &mut Open,
        at: Instant,
        (firing, state): (Option<u64>, Option<String>),
    ) -> io::Result<()> {
        if (open.firing, &open.state) == (firing, &state) {
            return Ok(());
        }
        let at = at.max(open.last);
        if open.state.is_some() {
            self.event(at, (2, track), "", &[])?;
        }
        if open.firing != firing {
            if open.firing.is_some() {
                self.event(at, (2, track), "", &[])?;
            }
            if let Some(number) = firing {
                let notes = [("firing", number)];
                self.event(at, (1, track), &format!("firing {number}"), &notes)?;
            }
        }
        if let Some(state) = &state {
            self.event(at, (1, track), state, &[])?;
        }
        *open = Open {
            firing,
            state,
            last: at,
        };
        Ok(())
    }
}

/// The words for a state between `IDLE` and the next one; `None`: nothing is under way.
fn state(info: &GraphInfo, moved: &Moved) -> Option<String> {
    let fifo = |index: u32| {
        let fifo = info.graph.fifos.get(index as usize);
        fifo.map_or("?", |fifo| fifo.name.as_str())
    };
    match (moved.state, moved.call) {
        (State::Idle | State::Finished, _) => None,
        (_, Some((Call::Read(at, ..), false))) => Some(format!("waits for tokens in {}", fifo(at))),
        (_, Some((Call::Write(at, ..), false))) => Some(format!("waits for space in {}", fifo(at))),
        (state, _) => Some(state.name(moved.preempted).into()),
    }
}
