//! Graphs executed tick by tick on their slots: no iteration ends later than its bound.

use punctual_generate::Random;
use punctual_model::{
    ActorId, Graph, Order, OrderRule, PolicyKind, Preempted, Supply, System, Tile, When, Work,
};

use crate::graphs::{span, tiles, verdict};

/// Executes a graph tick by tick: slots, turns and orders as the assumptions say, firings that
/// take as long as drawn. It shares no code with the analysis.
struct Execution<'a> {
    graph: &'a Graph,
    /// Whether a tile is supplied in a tick of its frame; its frame may begin anywhere.
    supplied: Vec<Vec<bool>>,
    tiles: &'a [Tile],
    held: Vec<u32>,
    space: Vec<Option<u32>>,
    /// Firings begun and ended of each actor.
    begun: Vec<usize>,
    ended: Vec<usize>,
    /// Of each tile: the firing actor and its time left, and the actor of the last turn.
    firing: Vec<Option<(usize, u64)>>,
    turn: Vec<usize>,
    /// Of each actor: the time left of a firing that was passed over.
    passed_over: Vec<Option<u64>>,
}

impl Execution<'_> {
    fn rate(cycle: &[u32], firing: usize) -> u32 {
        cycle[firing % cycle.len()]
    }

    fn may_start(&self, actor: usize) -> bool {
        self.graph.fifos.iter().enumerate().all(|(index, fifo)| {
            let firing = self.begun[actor];
            let taken = fifo.to.index() == actor;
            let given = fifo.from.index() == actor;
            (!taken || self.held[index] >= Self::rate(&fifo.consume, firing))
                && (!given
                    || self.space[index].is_none_or(|s| s >= Self::rate(&fifo.produce, firing)))
        })
    }

    fn choose(&mut self, tile: usize) -> Option<usize> {
        let order = self
            .graph
            .static_orders()
            .find(|&(at, _)| at == self.tiles[tile]);
        if let Some((_, firings)) = order {
            let next = firings[self.turn[tile] % firings.len()].index();
            let starts = self.may_start(next);
            self.turn[tile] += usize::from(starts);
            return starts.then_some(next);
        }
        let count = self.graph.actors.len();
        let here = |&actor: &usize| self.graph.actors[actor].tile == self.tiles[tile];
        let mut by_turns = (1..=count)
            .map(|step| (self.turn[tile] + step) % count)
            .filter(here);
        let next = by_turns.find(|&actor| self.may_start(actor))?;
        self.turn[tile] = next;
        Some(next)
    }

    /// The decision of a tick: in own time whenever nobody fires; between slots in the first tick
    /// of a slot, where a firing may go on.
    fn decide(&mut self, tile: usize, now: usize) -> Option<usize> {
        let frame = self.supplied[tile].len();
        let on = self.supplied[tile][now % frame];
        let begins = on && !self.supplied[tile][(now + frame - 1) % frame];
        let order = self.graph.order_on(self.tiles[tile]);
        let Some(When::BetweenSlots(rule)) = order.map(|order| order.when) else {
            return (on && self.firing[tile].is_none())
                .then(|| self.choose(tile))
                .flatten();
        };
        if !begins || (rule == Preempted::Continues && self.firing[tile].is_some()) {
            return None;
        }
        if let Some((actor, left)) = self.firing[tile].take() {
            self.passed_over[actor] = Some(left);
        }
        let here = |&actor: &usize| self.graph.actors[actor].tile == self.tiles[tile];
        let able = |actor: usize| self.passed_over[actor].is_some() || self.may_start(actor);
        let chosen = match order.map(|order| &order.by) {
            Some(OrderRule::Tdm(owners)) => {
                let owner = owners[self.turn[tile] % owners.len()].index();
                let able = able(owner);
                self.turn[tile] += 1;
                able.then_some(owner)
            }
            _ => {
                let count = self.graph.actors.len();
                let by_turns = (1..=count).map(|step| (self.turn[tile] + step) % count);
                let next = by_turns.filter(here).find(|&actor| able(actor));
                self.turn[tile] = next.unwrap_or(self.turn[tile]);
                next
            }
        };
        if let Some(actor) = chosen
            && let Some(left) = self.passed_over[actor].take()
        {
            self.firing[tile] = Some((actor, left));
            return None;
        }
        chosen
    }

    fn tick(&mut self, now: usize, random: &mut Random) {
        for tile in 0..self.tiles.len() {
            if let Some(actor) = self.decide(tile, now) {
                let firing = self.begun[actor];
                let wcets = &self.graph.actors[actor].wcet;
                let wcet = wcets[firing % wcets.len()].as_ns();
                let time = if random.happens(700) {
                    wcet
                } else {
                    random.within(1, wcet)
                };
                self.firing[tile] = Some((actor, time));
                for (index, fifo) in self.graph.fifos.iter().enumerate() {
                    if fifo.to.index() == actor {
                        self.held[index] -= Self::rate(&fifo.consume, firing);
                    }
                    if fifo.from.index() == actor
                        && let Some(space) = &mut self.space[index]
                    {
                        *space -= Self::rate(&fifo.produce, firing);
                    }
                }
                self.begun[actor] += 1;
            }
        }
        for tile in 0..self.tiles.len() {
            let on = self.supplied[tile][now % self.supplied[tile].len()];
            let Some((actor, left)) = self.firing[tile].filter(|_| on) else {
                continue;
            };
            self.firing[tile] = Some((actor, left - 1)).filter(|(_, left)| *left > 0);
            if left > 1 {
                continue;
            }
            let firing = self.ended[actor];
            self.ended[actor] += 1;
            for (index, fifo) in self.graph.fifos.iter().enumerate() {
                if fifo.from.index() == actor {
                    self.held[index] += Self::rate(&fifo.produce, firing);
                }
                if fifo.to.index() == actor
                    && let Some(space) = &mut self.space[index]
                {
                    *space += Self::rate(&fifo.consume, firing);
                }
            }
        }
    }
}

/// A chain of two to four actors on one to three tiles, with a way back now and then.
fn draw(random: &mut Random) -> (System, Vec<Tile>, Graph, u64) {
    let frame = random.within(4, 12);
    let slots: Vec<Vec<(u64, u64)>> = (0..random.within(1, 3))
        .map(|_| match random.below(3) {
            0 => Vec::new(),
            1 => {
                let at = random.below(frame - 2);
                vec![(at, random.within(1, frame - at - 1))]
            }
            _ => {
                let first = random.within(1, frame / 2 - 1);
                let second = random.within(first + 1, frame - 1);
                vec![(0, first), (second, random.within(1, frame - second))]
            }
        })
        .collect();
    let lists: Vec<&[(u64, u64)]> = slots.iter().map(Vec::as_slice).collect();
    let (mut system, tiles) = tiles(frame, &lists);
    let mut graph = Graph::new("drawn");
    let count = random.within(2, 4);
    let mut ids = Vec::new();
    for index in 0..count {
        let tile = tiles[random.index(tiles.len())];
        let id = graph.actor(format!("a{index}"), tile, Work::from_ns(1));
        let phases = random.within(1, 2);
        let wcet = (0..phases)
            .map(|_| Work::from_ns(random.within(1, 6)))
            .collect();
        graph.actors[id.index()].wcet = wcet;
        ids.push(id);
    }
    for pair in ids.windows(2) {
        let (p, c) = (random.within(1, 3), random.within(1, 3));
        let narrow = |n| u32::try_from(n).expect("few");
        let fifo = graph.fifo(format!("f{}", pair[1].0), pair[0], pair[1]);
        (fifo.produce, fifo.consume) = (vec![narrow(p)], vec![narrow(c)]);
        fifo.initial = narrow(random.below(3));
        fifo.capacity = Some(fifo.initial + narrow(p + c - 1 + random.below(3)));
    }
    for (tile, slots) in tiles.iter().zip(&slots) {
        // Without a boundary between its last slot and its first nobody would decide there.
        let joined = slots.first().is_none_or(|first| first.0 == 0)
            && slots.last().is_none_or(|last| last.0 + last.1 == frame);
        if !joined && random.happens(500) {
            let (frame, scheduling) = (span(frame), span(1));
            system.cpus[tile.cpu.index()].policy = PolicyKind::Tdm { frame, scheduling };
            graph.orders.extend(draw_order(&graph, *tile, random));
        }
    }
    (system, tiles, graph, frame)
}

/// An order between slots, of a tile that has actors.
fn draw_order(graph: &Graph, tile: Tile, random: &mut Random) -> Option<Order> {
    let ids = (0..).map(ActorId).zip(&graph.actors);
    let here = ids.filter(|(_, actor)| actor.tile == tile);
    let mut owners: Vec<ActorId> = here.map(|(id, _)| id).collect();
    let again = *random.pick(&owners)?;
    let (by, preempted) = match random.below(3) {
        0 => (OrderRule::RoundRobin, Preempted::Continues),
        1 => (OrderRule::RoundRobin, Preempted::PassedOver),
        _ => {
            owners.push(again);
            random.shuffle(&mut owners);
            (OrderRule::Tdm(owners), Preempted::PassedOver)
        }
    };
    let when = When::BetweenSlots(preempted);
    Some(Order { tile, when, by })
}

#[test]
fn no_iteration_ends_later_than_its_bound_on_any_offset_of_its_slots() {
    let (mut checked, mut between) = (0, [0; 3]);
    for seed in 0..1_500 {
        let random = &mut Random::at(seed, &[5]);
        let (system, tiles, graph, frame) = draw(random);
        let found = verdict(&system, &graph);
        let (Some(period), Some(latency)) = (found.period, found.latency) else {
            continue;
        };
        checked += 1;
        for order in &graph.orders {
            match (&order.by, order.when) {
                (OrderRule::Tdm(_), _) => between[2] += 1,
                (_, When::BetweenSlots(Preempted::PassedOver)) => between[1] += 1,
                _ => between[0] += 1,
            }
        }
        let supplied = tiles.iter().map(|tile| {
            let mut on = vec![tile.scheduler.is_none(); usize::try_from(frame).expect("short")];
            if let Some(id) = tile.scheduler
                && let Supply::Slots(slots) = &system.schedulers[id.index()].supply
            {
                for slot in slots {
                    let begin = usize::try_from(slot.at.as_ns()).expect("short");
                    let length = usize::try_from(slot.length.as_ns()).expect("short");
                    on[begin..begin + length].fill(true);
                }
            }
            let offset = random.index(on.len());
            on.rotate_left(offset);
            on
        });
        let mut run = Execution {
            graph: &graph,
            supplied: supplied.collect(),
            tiles: &tiles,
            held: graph.fifos.iter().map(|fifo| fifo.initial).collect(),
            space: graph
                .fifos
                .iter()
                .map(|f| f.capacity.map(|c| c - f.initial))
                .collect(),
            begun: vec![0; graph.actors.len()],
            ended: vec![0; graph.actors.len()],
            firing: vec![None; tiles.len()],
            turn: vec![0; tiles.len()],
            passed_over: vec![None; graph.actors.len()],
        };
        let last = graph.actors.len() - 1;
        let firings = found.actors[last].firings.expect("it goes on");
        let mut now = 0;
        for iteration in 1..=5_u64 {
            // The end of iteration number i - 1 comes by the latency and i - 1 periods.
            let periods = (iteration - 1) * period.numerator();
            let by = latency.as_ns() + periods / period.denominator();
            while (run.ended[last] as u64) < firings * iteration {
                assert!(
                    now < by,
                    "seed {seed}, iteration {iteration}\n{system:?}\n{graph:?}"
                );
                run.tick(usize::try_from(now).expect("short"), random);
                now += 1;
            }
        }
    }
    assert!(checked > 1_000, "{checked}");
    assert!(between.iter().all(|&count| count > 100), "{between:?}");
}
