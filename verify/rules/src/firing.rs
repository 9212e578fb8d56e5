//! Actors fire as the states, the rates and the orders of their graph say.
//!
//! Everything is derived again from the graph of the log and from the transitions: nothing of the
//! engine is used. A tile sees what another one hands on while that one releases it, so tokens of
//! another tile count from the beginning of the release on. Where copies take time, in virtual
//! time, they count from a whole copy later on, and a claim lasts at least as long as its copies.

use punctual_model::{ActorId, Fifo, Graph, GraphId, Instant, OrderRule};
use punctual_trace::{Log, Mode, Moved, State};

use crate::{MAX_LISTED, Rule, Violation};

/// One actor on its way through the states.
#[derive(Clone, Default)]
struct Actor {
    state: State,
    preempted: bool,
    firings: u64,
    /// The beginnings of its releases, of the whole run.
    releases: Vec<Instant>,
    /// The beginning of its last claim.
    claimed: Instant,
}

/// What is known of one graph while its transitions are judged.
struct Judge<'a> {
    graph: &'a Graph,
    actors: Vec<Actor>,
    /// Of each static order: how many of its firings have begun.
    begun: Vec<usize>,
    /// The transition behind a tile's look at its FIFOs. Virtual time looks at the instant of the
    /// claim; a live tile reads its clock before it looks, and has looked when it computes.
    has_looked: State,
    /// Copies take the time that the graph says. A live tile copies at once.
    copies: bool,
}

/// Holds the transitions of all graphs against the rules. O(transitions · (FIFOs + log of them)).
pub(crate) fn judge(log: &Log) -> Vec<Violation> {
    let mut violations = Vec::new();
    let lost = log.cpus.iter().filter_map(|cpu| cpu.lost_from).min();
    let until = lost.unwrap_or(Instant::MAX);
    for (id, info) in (0..).map(GraphId).zip(&log.graphs) {
        if info.graph.plain {
            continue;
        }
        let mut judge = Judge::new(log, id, &info.graph);
        for (cpu, of_cpu) in log.cpus.iter().enumerate() {
            let mut last = Instant::ZERO;
            let here = of_cpu.moves.iter().filter(|moved| moved.graph == id);
            for moved in here.take_while(|moved| moved.at < until) {
                let found = judge.moved(cpu, moved, last);
                last = last.max(moved.at);
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

type Found = Vec<(Rule, String)>;

impl<'a> Judge<'a> {
    fn new(log: &Log, id: GraphId, graph: &'a Graph) -> Judge<'a> {
        let mut actors = vec![Actor::default(); graph.actors.len()];
        for of_cpu in &log.cpus {
            for moved in of_cpu.moves.iter().filter(|moved| moved.graph == id) {
                let Some(actor) = actors.get_mut(moved.actor.index()) else {
                    continue;
                };
                // It may be preempted in a release, and go on with it.
                let goes_on = actor.state == State::Release;
                actor.state = moved.state;
                if moved.state == State::Release && !goes_on {
                    actor.releases.push(moved.at);
                }
            }
        }
        for actor in &mut actors {
            actor.state = State::Idle;
        }
        Judge {
            graph,
            actors,
            begun: vec![0; graph.orders.len()],
            has_looked: match log.header.mode {
                Mode::Virtual => State::Claim,
                Mode::RealTime | Mode::BestEffort => State::Compute,
            },
            copies: log.header.mode == Mode::Virtual && graph.copies.is_some(),
        }
    }

    /// One transition on a CPU, where the one before was at `last`.
    fn moved(&mut self, cpu: usize, moved: &Moved, last: Instant) -> Found {
        let mut found = Found::new();
        let id = moved.actor;
        let actor = self.actors.get(id.index());
        let (Some(before), Some(declared)) = (
            actor.map(|actor| (actor.state, actor.preempted, actor.firings)),
            self.graph.actors.get(id.index()),
        ) else {
            return vec![(Rule::ActorStates, "an actor that is not there".into())];
        };
        let name = &declared.name;
        if moved.at < last {
            found.push((Rule::TimeRunsForward, format!("{name} moved before")));
        }
        if declared.tile.cpu.index() != cpu {
            found.push((Rule::ActorStates, format!("{name} is on another CPU")));
        }
        let word = |state: State, preempted| state.name(preempted);
        let twin = moved.state == before.0 && moved.preempted != before.1;
        let next = !before.1 && !moved.preempted && follows(before.0, moved.state);
        let ends = next && moved.state == State::Idle;
        if !(twin || next) {
            let (from, to) = (word(before.0, before.1), word(moved.state, moved.preempted));
            found.push((
                Rule::ActorStates,
                format!("{name} goes from {from} to {to}"),
            ));
        }
        if moved.firing != before.2 + u64::from(ends) {
            let (is, was) = (moved.firing, before.2);
            let detail = format!("{name} has {is} firings behind it, after {was}");
            found.push((Rule::ActorStates, detail));
        }
        if next && moved.state == State::Claim {
            self.begins(moved, &mut found);
        }
        if next && moved.state == State::Compute && self.copies {
            self.is_local(moved, &mut found);
        }
        if next && moved.state == self.has_looked {
            for fifo in &self.graph.fifos {
                self.has_tokens(moved, fifo, &mut found);
            }
        }
        let actor = &mut self.actors[id.index()];
        (actor.state, actor.preempted) = (moved.state, moved.preempted);
        actor.firings = moved.firing;
        if next && moved.state == State::Claim {
            actor.claimed = moved.at;
        }
        found
    }

    /// A firing begins: nobody else computes on its tile, and it has its turn.
    fn begins(&mut self, moved: &Moved, found: &mut Found) {
        let id = moved.actor;
        let tile = self.graph.actors[id.index()].tile;
        let name = |id: ActorId| &self.graph.actors[id.index()].name;
        let others = (0..).map(ActorId).zip(&self.actors);
        for (other, actor) in others.filter(|(other, _)| *other != id) {
            let same = self.graph.actors[other.index()].tile == tile;
            if same && actor.state != State::Idle && !actor.preempted {
                let detail = format!("{} begins while {} fires", name(id), name(other));
                found.push((Rule::ActorStates, detail));
            }
        }
        for (order, begun) in self.graph.orders.iter().zip(&mut self.begun) {
            if let (true, OrderRule::Static(firings)) = (order.tile == tile, &order.by)
                && !firings.is_empty()
            {
                let turn = firings[*begun % firings.len()];
                if turn != id {
                    let detail = format!("{} fires in the turn of {}", name(id), name(turn));
                    found.push((Rule::StaticOrder, detail));
                }
                *begun += 1;
            }
        }
    }

    /// The copies of a claim have been made before anybody computes with them.
    fn is_local(&self, moved: &Moved, found: &mut Found) {
        let (id, actor) = (moved.actor, &self.actors[moved.actor.index()]);
        let phase = self.phase(id, moved.firing);
        let (took, copies) = (
            moved.at.since(actor.claimed).ticks(),
            self.graph.claim_time(id, phase).as_ns(),
        );
        if took < copies {
            let name = &self.graph.actors[id.index()].name;
            let detail =
                format!("{name} computes {took} after its claim, whose copies take {copies}");
            found.push((Rule::FiringRules, detail));
        }
    }

    fn phase(&self, id: ActorId, firing: u64) -> usize {
        let phases = self.graph.phases(id) as u64;
        usize::try_from(firing % phases).unwrap_or(0)
    }

    /// The firing rule of one FIFO at the beginning of a firing, and its tokens between none and
    /// its capacity.
    fn has_tokens(&self, moved: &Moved, fifo: &Fifo, found: &mut Found) {
        let (reads, writes) = (fifo.to == moved.actor, fifo.from == moved.actor);
        if !reads && !writes {
            return;
        }
        let seen = |id: ActorId| self.firings_seen(id, moved);
        let total = |id: ActorId, rates: &[u32], firings| total(self.graph, id, rates, firings);
        let initial = u128::from(fifo.initial);
        let is_copied = self.copies && self.graph.arrive_by_copy(fifo);
        let arrived = match is_copied && reads {
            true => self.firings_arrived(fifo.from, moved.at),
            false => seen(fifo.from),
        };
        let given = initial + total(fifo.from, &fifo.produce, arrived);
        let taken = total(fifo.to, &fifo.consume, seen(fifo.to));
        let name = &self.graph.actors[moved.actor.index()].name;
        if reads {
            let needs = total(fifo.to, &fifo.consume, seen(fifo.to) + 1);
            if given < needs {
                let lacks = needs - given;
                let detail = format!("{name} begins, and lacks {lacks} tokens in {}", fifo.name);
                found.push((Rule::FiringRules, detail));
            }
        }
        // The data decides how much less than its rate a writer hands on.
        let varies = fifo.from != fifo.to && self.graph.actors[fifo.from.index()].varies;
        let capacity = fifo.capacity.filter(|_| !varies);
        if let (true, Some(capacity)) = (writes, capacity) {
            let holds = total(fifo.from, &fifo.produce, seen(fifo.from) + 1) + initial;
            if holds > taken + u128::from(capacity) {
                let lacks = holds - taken - u128::from(capacity);
                let detail = format!(
                    "{name} begins, and lacks space for {lacks} in {}",
                    fifo.name
                );
                found.push((Rule::FiringRules, detail));
            }
        }
        let most = capacity.map_or(u128::MAX, u128::from);
        if taken > given || given - taken > most {
            let detail = format!("{given} tokens came into {}, {taken} left it", fifo.name);
            found.push((Rule::TokensConserved, detail));
        }
    }

    /// Firings of an actor whose tokens have been copied. The data of one that varies decides how
    /// long that takes.
    fn firings_arrived(&self, id: ActorId, now: Instant) -> u64 {
        let varies = self.graph.actors[id.index()].varies;
        let arrives = |&(firing, at): &(usize, &Instant)| {
            let time = match varies {
                true => 0,
                false => self
                    .graph
                    .release_time(id, self.phase(id, firing as u64))
                    .as_ns(),
            };
            at.ticks().saturating_add(time) <= now.ticks()
        };
        let releases = &self.actors[id.index()].releases;
        let begun = releases.partition_point(|at| *at <= now);
        // Only the last few may be under way: an engine makes one copy after the other.
        let mut ended = releases[..begun].iter().enumerate().rev();
        ended
            .find(arrives)
            .map_or(0, |(firing, _)| firing as u64 + 1)
    }

    /// Firings of an actor whose tokens are seen on the tile of a transition.
    fn firings_seen(&self, id: ActorId, moved: &Moved) -> u64 {
        let actor = &self.actors[id.index()];
        let tile = |id: ActorId| self.graph.actors[id.index()].tile;
        match tile(id) == tile(moved.actor) {
            // Its transitions until now have been gone through. In `Reset` it has handed on.
            true => actor.firings + u64::from(actor.state == State::Reset),
            false => actor.releases.partition_point(|at| *at <= moved.at) as u64,
        }
    }
}

/// Fig. 5.
const fn follows(before: State, after: State) -> bool {
    matches!(
        (before, after),
        (State::Idle, State::Claim)
            | (State::Claim, State::Compute)
            | (State::Compute, State::Release)
            | (State::Release, State::Reset)
            | (State::Reset, State::Idle)
    )
}

/// The tokens of the first firings of an actor.
fn total(graph: &Graph, id: ActorId, rates: &[u32], firings: u64) -> u128 {
    let phases = graph.phases(id) as u64;
    let of = |phase: u64| {
        let place = usize::try_from(phase).unwrap_or(0);
        let rate = rates.get(place).or(rates.first());
        u128::from(rate.copied().unwrap_or(0))
    };
    let cycle: u128 = (0..phases).map(of).sum();
    let rest: u128 = (0..firings % phases).map(of).sum();
    cycle * u128::from(firings / phases) + rest
}
