//! Tasks that run to completion go from state to state as Fig. 6 says, and wait with a reason.
//!
//! Everything is derived again from the graph and from the calls in the log. A tile sees what
//! another one took or handed on up to an instant, perhaps at that very instant.

use punctual_model::{ActorId, Fifo, Graph, GraphId, Instant};
use punctual_trace::{Call, Log, Mode, Moved, State};

use crate::{MAX_LISTED, Rule, Violation};

/// A task on its way through the states.
#[derive(Clone, Copy, Default)]
struct Task {
    state: State,
    preempted: bool,
    rounds: u64,
    /// The call that blocks it.
    waits: Option<Call>,
}

/// The tokens that went through one end of a FIFO.
#[derive(Clone, Default)]
struct End {
    /// Of the whole run: the instants, with the sums up to each.
    sums: Vec<(Instant, u128)>,
    /// Of the transitions that have been gone through.
    until_now: u128,
}

impl End {
    fn sum(&self, is_seen: impl Fn(Instant) -> bool) -> u128 {
        let seen = self.sums.partition_point(|(at, _)| is_seen(*at));
        seen.checked_sub(1).map_or(0, |last| self.sums[last].1)
    }
}

struct Judge<'a> {
    graph: &'a Graph,
    tasks: Vec<Task>,
    /// By FIFO: what was written, and what was read.
    ends: Vec<[End; 2]>,
    /// Virtual time: no time passes between two looks, and a right scheduler leaves nobody behind.
    is_exact: bool,
    may_idle: bool,
}

type Found = Vec<(Rule, String)>;

/// Holds the transitions of all graphs that are not real-time against the rules. O(transitions ·
/// (tasks + log of them)).
pub(crate) fn judge(log: &Log) -> Vec<Violation> {
    let mut violations = Vec::new();
    let lost = log.cpus.iter().filter_map(|cpu| cpu.lost_from).min();
    for (id, info) in (0..).map(GraphId).zip(&log.graphs) {
        if !info.graph.plain {
            continue;
        }
        let until = lost.into_iter().chain(info.lost_from).min();
        let until = until.unwrap_or(Instant::MAX);
        let mut judge = Judge::new(log, id, &info.graph);
        for (cpu, of_cpu) in log.cpus.iter().enumerate() {
            let here = of_cpu.moves.iter().filter(|moved| moved.graph == id);
            let here: Vec<&Moved> = here.take_while(|moved| moved.at < until).collect();
            for (place, moved) in here.iter().enumerate() {
                let mut found = judge.moved(cpu, moved);
                // Another tile of this CPU has its slots at other times.
                let tile = |m: &Moved| Some(info.graph.actors.get(m.actor.index())?.tile);
                let mut after = here[place + 1..].iter();
                let next = after.find(|next| tile(next) == tile(moved));
                if next.is_none_or(|next| next.at > moved.at) {
                    judge.leaves_nobody_behind(moved, &mut found);
                }
                violations.extend(found.into_iter().map(|(rule, detail)| Violation {
                    rule,
                    cpu: of_cpu.name.clone(),
                    now: moved.at,
                    detail: format!("{}: {detail}", info.graph.name),
                }));
                if violations.len() > MAX_LISTED {
                    return violations;
                }
            }
        }
    }
    violations
}

impl<'a> Judge<'a> {
    fn new(log: &Log, id: GraphId, graph: &'a Graph) -> Judge<'a> {
        let mut ends = vec![<[End; 2]>::default(); graph.fifos.len()];
        let moves = log.cpus.iter().flat_map(|cpu| &cpu.moves);
        for moved in moves.filter(|moved| moved.graph == id) {
            let Some((call, true)) = moved.call else {
                continue;
            };
            let (fifo, end, count) = parts(call);
            if let Some(ends) = ends.get_mut(fifo) {
                let end = &mut ends[end];
                let sum = end.sums.last().map_or(0, |(_, sum)| *sum);
                end.sums.push((moved.at, sum + u128::from(count)));
            }
        }
        let is_exact = log.header.mode == Mode::Virtual;
        Judge {
            graph,
            tasks: vec![Task::default(); graph.actors.len()],
            ends,
            is_exact,
            may_idle: !is_exact || !log.header.faults.is_empty(),
        }
    }

    fn moved(&mut self, cpu: usize, moved: &Moved) -> Found {
        let mut found = Found::new();
        let at = moved.actor.index();
        let (Some(task), Some(declared)) = (self.tasks.get(at), self.graph.actors.get(at)) else {
            return vec![(Rule::ActorStates, "a task that is not there".into())];
        };
        let (task, name) = (*task, &declared.name);
        if declared.tile.cpu.index() != cpu {
            found.push((Rule::ActorStates, format!("{name} is on another CPU")));
        }
        let begins = match moved.call {
            Some(_) => task.waits.is_some(),
            None => task.state == State::Idle,
        };
        if begins && let Some(other) = self.running(moved.actor) {
            let other = &self.graph.actors[other].name;
            let detail = format!("{name} goes on while {other} runs");
            found.push((Rule::ActorStates, detail));
        }
        match moved.call {
            Some((call, goes_on)) => self.called(moved, (call, goes_on), &mut found),
            None => {
                let ends = moved.firing == task.rounds + 1;
                if !follows(&task, moved, ends) || moved.firing != task.rounds + u64::from(ends) {
                    let from = task.state.name(task.preempted);
                    let to = moved.state.name(moved.preempted);
                    let (was, is) = (task.rounds, moved.firing);
                    let detail = format!("{name} goes from {from} to {to}, {was} to {is} rounds");
                    found.push((Rule::ActorStates, detail));
                }
            }
        }
        self.tasks[at] = Task {
            state: moved.state,
            preempted: moved.preempted,
            rounds: moved.firing,
            waits: moved.call.and_then(|(call, on)| (!on).then_some(call)),
        };
        found
    }

    /// Another task of the tile of this one, which runs or is preempted.
    fn running(&self, id: ActorId) -> Option<usize> {
        let tile = self.graph.actors[id.index()].tile;
        let runs = |(at, task): &(usize, &Task)| {
            let same = self.graph.actors[*at].tile == tile && *at != id.index();
            same && task.state == State::Run && task.waits.is_none()
        };
        let mut all = self.tasks.iter().enumerate();
        all.find(runs).map(|(at, _)| at)
    }

    /// A call of a task that runs: of its own FIFO, with its tokens or a reason to wait.
    fn called(&mut self, moved: &Moved, (call, goes_on): (Call, bool), found: &mut Found) {
        let task = self.tasks[moved.actor.index()];
        let name = &self.graph.actors[moved.actor.index()].name;
        let runs = task.state == State::Run && !task.preempted && !moved.preempted;
        let same = task.waits.is_none_or(|waits| waits == call && goes_on);
        if !runs || !same || moved.state != State::Run || moved.firing != task.rounds {
            let (word, state) = (call.name(goes_on), task.state.name(task.preempted));
            found.push((Rule::ActorStates, format!("{name} {word} in {state}")));
        }
        let (place, end, count) = parts(call);
        let own = |fifo: &&Fifo| [fifo.from, fifo.to][end] == moved.actor;
        let Some(fifo) = self.graph.fifos.get(place).filter(own) else {
            let detail = format!("{name} calls a FIFO that is not its own");
            found.push((Rule::FiringRules, detail));
            return;
        };
        // A look that went on may have seen all of this instant, and one in vain nothing of it.
        let has = self.has(fifo, place, end, |at| match goes_on {
            true => at <= moved.at,
            false => at < moved.at,
        });
        let enough = has.is_some_and(|has| has >= u128::from(count));
        if goes_on && !enough {
            let has = has.map_or("fewer than none".into(), |has| has.to_string());
            let detail = format!(
                "{name} {} {count}, of {has}, in {}",
                call.name(true),
                fifo.name
            );
            found.push((Rule::FiringRules, detail));
        }
        if !goes_on && enough && self.is_exact {
            let detail = format!("{name} waits for what is there in {}", fifo.name);
            found.push((Rule::FiringRules, detail));
        }
        if has.is_none() {
            let detail = format!(
                "more tokens left {} than came, or more are in it than it holds",
                fifo.name
            );
            found.push((Rule::TokensConserved, detail));
        }
        if goes_on {
            self.ends[place][end].until_now += u128::from(count);
        }
    }

    /// Tokens or space at an end of a FIFO; `None`: less than none. Its own tile has been gone
    /// through up to now, and of another one `is_seen` is.
    fn has(
        &self,
        fifo: &Fifo,
        place: usize,
        end: usize,
        is_seen: impl Fn(Instant) -> bool,
    ) -> Option<u128> {
        let tile = |id: ActorId| self.graph.actors[id.index()].tile;
        let ends = &self.ends[place];
        let own = ends[end].until_now;
        let other = match tile(fifo.from) == tile(fifo.to) {
            true => ends[1 - end].until_now,
            false => ends[1 - end].sum(is_seen),
        };
        let initial = u128::from(fifo.initial);
        match end {
            0 => {
                let most = fifo.capacity.map_or(u128::MAX / 2, u128::from);
                (most + other).checked_sub(initial + own)
            }
            _ => (initial + other).checked_sub(own),
        }
    }

    /// Behind this transition nobody runs on the tile for a while: then nobody can go on.
    fn leaves_nobody_behind(&self, moved: &Moved, found: &mut Found) {
        let Some(declared) = self.graph.actors.get(moved.actor.index()) else {
            return;
        };
        let own = &self.tasks[moved.actor.index()];
        let runs = own.state == State::Run && own.waits.is_none();
        if self.may_idle || runs || self.running(moved.actor).is_some() {
            return;
        }
        for (actor, task) in self.graph.actors.iter().zip(&self.tasks) {
            let able = match (task.state, task.waits) {
                (State::Idle, _) => true,
                (State::Run, Some(call)) => {
                    let (place, end, count) = parts(call);
                    let fifo = self.graph.fifos.get(place);
                    let has = fifo.and_then(|fifo| self.has(fifo, place, end, |at| at < moved.at));
                    has.is_some_and(|has| has >= u128::from(count))
                }
                _ => false,
            };
            if able && actor.tile == declared.tile {
                let detail = format!("nobody runs, and {} could", actor.name);
                found.push((Rule::WorkConserving, detail));
            }
        }
    }
}

/// The FIFO of a call, its end (0 writes, 1 reads), and its tokens.
const fn parts(call: Call) -> (usize, usize, u32) {
    match call {
        Call::Write(fifo, count) => (fifo as usize, 0, count),
        Call::Read(fifo, count) => (fifo as usize, 1, count),
    }
}

/// Fig. 6. A round that ends and is not the last leads from `Run` to `Run`.
fn follows(task: &Task, moved: &Moved, ends: bool) -> bool {
    let runs = task.state == State::Run && task.waits.is_none();
    match (task.preempted, moved.state, moved.preempted) {
        (false, State::Run, false) if ends => runs,
        (false, State::Run, false) => task.state == State::Idle,
        (false, State::Run, true) | (true, State::Run, false) => runs && !ends,
        (false, State::Finished, false) => runs && ends,
        _ => false,
    }
}
