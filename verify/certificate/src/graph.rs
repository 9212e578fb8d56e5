//! Graphs: a periodic schedule that proves a period and a latency, and its checker
//!
//! The certificate of a graph claims the firings of an iteration, the response of each, and a start
//! for each in a schedule that repeats. The checker counts the tokens that have been handed over by
//! each start, iteration by iteration, and whether they suffice. It derives no period and searches
//! nothing. A graph that fires whenever it may is never later than a lawful schedule.
//!
//! Starts count in parts of a nanosecond: the denominator of the period says which.

mod beside;
mod copies;
mod response;

use serde::{Deserialize, Serialize};

use crate::{Certificate, Why, Wrong};

/// The version of the format.
pub const GRAPH_FORMAT: u32 = 1;

/// Most comparisons of one FIFO: the rest would take too long to count.
const MOST: u128 = 4_000_000_000;

/// Graphs, and what is claimed of each.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphCertificate {
    /// [`GRAPH_FORMAT`].
    pub format: u32,
    /// The graphs.
    pub graphs: Vec<Graph>,
    /// A schedule of each.
    pub schedules: Vec<Schedule>,
    /// The certificate of the tasks in the same file, where there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<Certificate>,
}

/// Everything that the verdict on a graph depends on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Graph {
    /// Its name in the file.
    pub name: String,
    /// The processor times of its actors.
    pub tiles: Vec<Tile>,
    /// In the order of the file.
    pub actors: Vec<Actor>,
    /// In the order of the file.
    pub fifos: Vec<Fifo>,
    /// The longest period allowed.
    pub every: Option<u64>,
    /// The longest latency allowed.
    pub within: Option<u64>,
    /// The copies between its memories, where these take time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copies: Option<Copies>,
}

/// The time of a copy. Each tile has an engine of its own for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Copies {
    /// Of each copy, in nanoseconds.
    pub latency: u64,
    /// Bytes in a microsecond, besides.
    pub bytes_per_us: u64,
}

/// A whole CPU, or slots of a frame.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tile {
    /// Its name in the file.
    pub name: String,
    /// Length of the frame; `None`: a whole CPU.
    pub frame: Option<u64>,
    /// Start and length of each slot.
    pub slots: Vec<(u64, u64)>,
    /// The machine takes so much at the start of each slot.
    pub overhead: u64,
    /// The fixed order of its firings; `None`: by turns.
    pub order: Option<Vec<usize>>,
    /// When its firings are chosen; `None`: whenever one ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decides: Option<Decides>,
}

/// When the firings of a tile are chosen, if not whenever one ends.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Decides {
    /// Once per slot, by turns; a firing that the end of a slot interrupts continues in the next.
    Continues,
    /// Once per slot, by turns; such a firing waits for its own.
    PassesOver,
    /// Once per slot, which belongs to one of these actors, one after the other.
    Owners(Vec<usize>),
    /// Each actor is a thread of the core.
    Threads {
        /// The longest turn of one.
        turn: u64,
        /// The cost of a turn besides.
        cost: u64,
    },
}

/// An actor.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Actor {
    /// Its name in the file.
    pub name: String,
    /// Its tile, by place.
    pub tile: usize,
    /// Of each phase, or one for all.
    pub wcet: Vec<u64>,
    /// Bytes that a firing copies from shared memory at its claim, and to it at its release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<[u32; 2]>,
}

/// A FIFO.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fifo {
    /// Its name in the file.
    pub name: String,
    /// Its writer, by place.
    pub from: usize,
    /// Its reader, by place.
    pub to: usize,
    /// Tokens of each phase, or one for all.
    pub produce: Vec<u32>,
    /// The same for the reader.
    pub consume: Vec<u32>,
    /// Tokens in it at first.
    pub initial: u32,
    /// Most tokens that it holds.
    pub capacity: Option<u32>,
    /// Its tokens, in a graph whose copies take time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Kept>,
}

/// The tokens of a FIFO in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    /// Their place.
    pub memory: Memory,
    /// Of one token.
    pub bytes: u32,
}

/// The memory of a tile, or one that executes nobody.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Memory {
    /// Of the tile of the writer.
    Writer,
    /// Of the tile of the reader.
    Reader,
    /// Of a memory tile.
    Tile,
}

/// A schedule that repeats.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// The period, above the line.
    pub numerator: u64,
    /// Below the line.
    pub denominator: u64,
    /// Of each actor: the response of each phase, or one for all.
    pub responses: Vec<Vec<u64>>,
    /// Of each actor: the starts of its firings in the first iteration.
    pub starts: Vec<Vec<u64>>,
    /// From the start of a period to the end of the last output of its iteration, rounded up.
    pub latency: u64,
}

/// Reads a certificate of graphs strictly.
///
/// # Errors
///
/// [`Wrong::Form`].
pub fn read_graphs(text: &str) -> Result<GraphCertificate, Wrong> {
    let read: GraphCertificate =
        serde_json::from_str(text).map_err(|error| Wrong::Form(error.to_string()))?;
    match read.format {
        GRAPH_FORMAT => Ok(read),
        other => Err(Wrong::Form(format!(
            "its format is {other}, this checker reads {GRAPH_FORMAT}"
        ))),
    }
}

/// Checks every schedule against its graph.
///
/// # Errors
///
/// [`Wrong`]: the first thing that is.
pub fn verify_graphs(certificate: &GraphCertificate) -> Result<(), Wrong> {
    let (graphs, schedules) = (&certificate.graphs, &certificate.schedules);
    if graphs.len() != schedules.len() {
        return Err(number(
            "the number of schedules",
            schedules.len(),
            graphs.len(),
        ));
    }
    graphs
        .iter()
        .zip(schedules)
        .try_for_each(|(graph, schedule)| {
            let check = Check { graph, schedule };
            check.shape()?;
            check.responses()?;
            check.turns()?;
            graph.fifos.iter().try_for_each(|fifo| check.fifo(fifo))?;
            check.requirements()
        })?;
    match &certificate.rest {
        Some(rest) => beside::check(graphs, rest),
        None => Ok(()),
    }
}

fn number(place: &str, claimed: impl ToString, follows: impl ToString) -> Wrong {
    Wrong::Number {
        place: place.into(),
        claimed: claimed.to_string(),
        follows: follows.to_string(),
    }
}

fn not(what: String) -> Wrong {
    Wrong::Verdict(Why::new(what))
}

/// The value of a cycle at a firing.
fn at<T: Copy + Default>(cycle: &[T], firing: usize) -> T {
    let place = firing.checked_rem(cycle.len()).unwrap_or(0);
    cycle.get(place).copied().unwrap_or_default()
}

/// A schedule and its graph.
struct Check<'a> {
    graph: &'a Graph,
    schedule: &'a Schedule,
}

impl Check<'_> {
    /// Lists of the right lengths, places that exist, numbers that are not zero.
    fn shape(&self) -> Result<(), Wrong> {
        let (graph, claim) = (self.graph, self.schedule);
        let name = &graph.name;
        let (actors, tiles) = (graph.actors.len(), graph.tiles.len());
        let places = graph.actors.iter().all(|actor| actor.tile < tiles);
        let ends = graph
            .fifos
            .iter()
            .all(|fifo| fifo.from < actors && fifo.to < actors);
        let orders = graph.tiles.iter().filter_map(|tile| tile.order.as_ref());
        let orders = orders.flatten().all(|&actor| actor < actors);
        if !(places && ends && orders) {
            return Err(not(format!(
                "graph `{name}` names something that is not there"
            )));
        }
        if claim.starts.len() != actors || claim.responses.len() != actors {
            return Err(number(
                &format!("the actors of {name}"),
                claim.starts.len(),
                actors,
            ));
        }
        let none = graph
            .actors
            .iter()
            .zip(&claim.starts)
            .any(|(actor, starts)| {
                let phases = actor.wcet.len();
                phases == 0 || starts.is_empty() || !starts.len().is_multiple_of(phases)
            });
        // An iteration is whole cycles of every rate: else the next one would begin in mid-cycle.
        let torn = graph.fifos.iter().any(|fifo| {
            let ends = [(fifo.from, &fifo.produce), (fifo.to, &fifo.consume)];
            ends.iter().any(|(actor, cycle)| {
                cycle.is_empty() || !claim.starts[*actor].len().is_multiple_of(cycle.len())
            })
        });
        if none || torn {
            return Err(not(format!(
                "the schedule of `{name}` leaves out firings or phases"
            )));
        }
        let timeless = graph.actors.iter().any(|actor| actor.wcet.contains(&0));
        if timeless || claim.denominator == 0 || claim.numerator == 0 {
            return Err(not(format!("`{name}` has a wcet or a period of nothing")));
        }
        Ok(())
    }

    /// The response of every phase, from the slots of its tile and the turns on it.
    fn responses(&self) -> Result<(), Wrong> {
        let Some(firings) = copies::firings(self.graph) else {
            let name = &self.graph.name;
            return Err(not(format!("the copies of `{name}` say no time")));
        };
        for (index, actor) in self.graph.actors.iter().enumerate() {
            let responses = response::of(self.graph, &firings, index);
            let claimed = &self.schedule.responses[index];
            if responses.as_ref() != Some(claimed) {
                let place = format!("the responses of {}", actor.name);
                return Err(number(
                    &place,
                    format!("{claimed:?}"),
                    format!("{responses:?}"),
                ));
            }
        }
        Ok(())
    }

    /// Start and end of a firing, in parts of a nanosecond.
    fn firing(&self, actor: usize, firing: usize) -> (u128, u128) {
        let start = u128::from(at(&self.schedule.starts[actor], firing));
        let response = u128::from(at(&self.schedule.responses[actor], firing));
        (
            start,
            start + response * u128::from(self.schedule.denominator),
        )
    }

    /// Firings that are made one at a time: those of an actor, and those of a fixed order.
    fn turns(&self) -> Result<(), Wrong> {
        for (actor, starts) in self.schedule.starts.iter().enumerate() {
            let own: Vec<(usize, usize)> = (0..starts.len()).map(|k| (actor, k)).collect();
            self.one_at_a_time(&own)?;
        }
        for order in self
            .graph
            .tiles
            .iter()
            .filter_map(|tile| tile.order.as_ref())
        {
            let mut next = vec![0; self.graph.actors.len()];
            let firings: Vec<(usize, usize)> = order
                .iter()
                .map(|&actor| {
                    next[actor] += 1;
                    (actor, next[actor] - 1)
                })
                .collect();
            for &actor in order {
                let (listed, needed) = (next[actor], self.schedule.starts[actor].len());
                if listed != needed {
                    let place = format!("the turns of {}", self.graph.actors[actor].name);
                    return Err(number(&place, listed, needed));
                }
            }
            self.one_at_a_time(&firings)?;
        }
        // Of actors that share a tile with an order, all must stand in it.
        for (index, actor) in self.graph.actors.iter().enumerate() {
            let order = self.graph.tiles[actor.tile].order.as_ref();
            if order.is_some_and(|order| !order.contains(&index)) {
                return Err(not(format!("`{}` has no turn", actor.name)));
            }
        }
        Ok(())
    }

    fn one_at_a_time(&self, firings: &[(usize, usize)]) -> Result<(), Wrong> {
        let period = u128::from(self.schedule.numerator);
        let mut ends = 0;
        for &(actor, k) in firings {
            let (start, end) = self.firing(actor, k);
            if start < ends {
                let name = &self.graph.actors[actor].name;
                return Err(not(format!(
                    "firing {k} of `{name}` starts before the one before ends"
                )));
            }
            ends = end;
        }
        let first = firings
            .first()
            .map_or(0, |&(actor, k)| self.firing(actor, k).0);
        if ends > first + period {
            return Err(not(format!(
                "an iteration of `{}` overlaps the next",
                self.graph.name
            )));
        }
        Ok(())
    }

    /// Tokens at each start of the reader, and space at each start of the writer.
    fn fifo(&self, fifo: &Fifo) -> Result<(), Wrong> {
        let sums = |cycle: &[u32], actor: usize| -> u128 {
            let firings = 0..self.schedule.starts[actor].len();
            firings.map(|k| u128::from(at(cycle, k))).sum()
        };
        let (made, taken) = (sums(&fifo.produce, fifo.from), sums(&fifo.consume, fifo.to));
        if made != taken {
            let place = format!("tokens through {} in an iteration", fifo.name);
            return Err(number(&place, made, taken));
        }
        let initial = u128::from(fifo.initial);
        self.enough(
            &fifo.name,
            (fifo.from, &fifo.produce),
            (fifo.to, &fifo.consume),
            initial,
        )?;
        let Some(space) = fifo.capacity.map(|c| u128::from(c).checked_sub(initial)) else {
            return Ok(());
        };
        let Some(space) = space else {
            return Err(not(format!(
                "`{}` holds more than it can at first",
                fifo.name
            )));
        };
        self.enough(
            &fifo.name,
            (fifo.to, &fifo.consume),
            (fifo.from, &fifo.produce),
            space,
        )
    }

    /// Whether at each start of `taker` the ends of `giver` have given enough, beside what was
    /// there at first. Once every end of the giver's first iteration has come, each iteration
    /// gives as much as it takes: all later ones are alike.
    fn enough(
        &self,
        name: &str,
        (giver, gives): (usize, &[u32]),
        (taker, takes): (usize, &[u32]),
        at_first: u128,
    ) -> Result<(), Wrong> {
        let (givers, takers) = (&self.schedule.starts[giver], &self.schedule.starts[taker]);
        let period = u128::from(self.schedule.numerator);
        let ends = (0..givers.len()).map(|j| self.firing(giver, j).1);
        let begin = (0..takers.len()).map(|k| self.firing(taker, k).0).min();
        let apart = ends.max().unwrap_or(0).saturating_sub(begin.unwrap_or(0));
        let iterations = apart / period + 2;
        let work = iterations * givers.len() as u128 * takers.len() as u128;
        if work > MOST {
            return Err(not(format!("FIFO `{name}` would take too long to count")));
        }
        let mut needed = 0;
        for iteration in 0..iterations {
            for k in 0..takers.len() {
                needed += u128::from(at(takes, k));
                let start = self.firing(taker, k).0 + iteration * period;
                let given: u128 = (0..givers.len())
                    .map(|j| {
                        let end = self.firing(giver, j).1;
                        let times = match start.checked_sub(end) {
                            Some(since) => since.checked_div(period).unwrap_or(0) + 1,
                            None => 0,
                        };
                        times * u128::from(at(gives, j))
                    })
                    .sum();
                if at_first + given < needed {
                    let actor = &self.graph.actors[taker].name;
                    return Err(not(format!(
                        "firing {k} of `{actor}` in iteration {iteration} starts with {} in \
                         `{name}` where {needed} are needed",
                        at_first + given
                    )));
                }
            }
        }
        Ok(())
    }

    /// The latency that the schedule shows, and what is required of it and of the period.
    fn requirements(&self) -> Result<(), Wrong> {
        let (graph, claim) = (self.graph, self.schedule);
        let hands_on = |actor: usize| {
            let mut fifos = graph.fifos.iter();
            fifos.any(|fifo| fifo.from == actor && fifo.to != actor)
        };
        let all = 0..graph.actors.len();
        let nobody = all.clone().all(hands_on);
        let outputs = all.filter(|&actor| nobody || !hands_on(actor));
        let ends = outputs.flat_map(|actor| {
            let firings = 0..claim.starts[actor].len();
            firings.map(move |k| self.firing(actor, k).1)
        });
        let last = ends
            .max()
            .unwrap_or(0)
            .div_ceil(u128::from(claim.denominator));
        if last != u128::from(claim.latency) {
            return Err(number(
                &format!("the latency of {}", graph.name),
                claim.latency,
                last,
            ));
        }
        let period = u128::from(claim.numerator);
        let every = graph
            .every
            .map(|every| u128::from(every) * u128::from(claim.denominator));
        if every.is_some_and(|every| period > every) {
            return Err(not(format!(
                "the period of `{}` is longer than required",
                graph.name
            )));
        }
        if graph.within.is_some_and(|within| claim.latency > within) {
            return Err(not(format!(
                "the latency of `{}` is longer than required",
                graph.name
            )));
        }
        Ok(())
    }
}
