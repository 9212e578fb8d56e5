//! The period as the worst circle: the most time for each token on it (Howard's algorithm)
//!
//! No schedule is faster than a circle of waiting firings allows: its time over its tokens. The
//! worst circle is reached. A *policy* gives every node one firing that it waits for; following it
//! ends in circles. The worst of these gives potentials; an arc that raises one improves the
//! policy. When none does, the potentials prove that no circle is worse.
//!
//! Sources: Cochet-Terrasson, Cohen, Gaubert, McGettrick and Quadrat 1998; Dasdan 2004.

use alloc::vec;
use alloc::vec::Vec;

use crate::components::components;
use crate::error::DataflowError;
use crate::firings::{Arc, Firings};
use crate::fraction::Fraction;
use crate::timed::Timed;

/// Most rounds of improvements of one part.
const MAX_ROUNDS: u64 = 10_000;

/// The circle that holds the period.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Circle {
    /// Time over tokens: the period of an iteration.
    pub period: Fraction,
    /// The time of its firings together.
    pub time: u64,
    /// The tokens on it: so many iterations are under way on it at once.
    pub tokens: u64,
    /// Its arcs in order; each ends where the next one begins.
    pub arcs: Vec<Arc>,
}

/// Part of a graph in which everybody waits for everybody.
struct Part<'a> {
    firings: &'a Firings,
    nodes: Vec<usize>,
    /// Where the arcs into each node begin and end in `arcs`.
    first: &'a [usize],
    arcs: &'a [Arc],
    part_of: &'a [usize],
    number: usize,
}

/// The worst circle of a graph that does not stop ([`crate::deadlock`]), by Howard's algorithm.
/// O(rounds · arcs); rounds are few in practice.
///
/// # Errors
///
/// [`DataflowError::TooLong`] beyond ten thousand rounds.
pub fn worst_circle(timed: &Timed, firings: &Firings) -> Result<Circle, DataflowError> {
    let (actor_part, parts) = components(timed.actors(), &timed.dependences());
    let part_of: Vec<usize> = firings.actor.iter().map(|&a| actor_part[a]).collect();
    let (first, arcs) = firings.incoming();
    let mut nodes = vec![Vec::new(); parts];
    for (node, &part) in part_of.iter().enumerate() {
        nodes[part].push(node);
    }
    let mut state = State {
        policy: vec![usize::MAX; firings.len()],
        value: vec![0; firings.len()],
        mark: vec![0; firings.len()],
    };
    let mut worst: Option<Circle> = None;
    for (number, nodes) in nodes.into_iter().enumerate() {
        let part = Part {
            firings,
            nodes,
            first: &first,
            arcs: &arcs,
            part_of: &part_of,
            number,
        };
        let circle = part.worst(&mut state)?;
        worst = slower(worst, circle);
    }
    worst.ok_or(DataflowError::Overflow {
        what: "a graph without firings",
    })
}

/// The circle with the longer period, the first of equals.
fn slower(worst: Option<Circle>, circle: Circle) -> Option<Circle> {
    match worst {
        Some(worst) if worst.period >= circle.period => Some(worst),
        _ => Some(circle),
    }
}

/// The knowledge of each node so far.
struct State {
    /// The arc by which it waits.
    policy: Vec<usize>,
    /// Its potential, in units of 1 / tokens of the circle.
    value: Vec<i128>,
    mark: Vec<u64>,
}

impl Part<'_> {
    /// The arcs into a node from this part, by their places.
    fn into(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let all = self.first[node]..self.first[node + 1];
        all.filter(|&arc| self.part_of[self.arcs[arc].from] == self.number)
    }

    fn worst(&self, state: &mut State) -> Result<Circle, DataflowError> {
        for &node in &self.nodes {
            let slowest = self.into(node).max_by_key(|&arc| self.time_of(arc));
            state.policy[node] = slowest.unwrap_or(usize::MAX);
        }
        for _ in 0..MAX_ROUNDS {
            let circle = self.circle_of_policy(state)?;
            self.evaluate(&circle, state);
            if !self.improve(&circle, state) {
                return Ok(circle);
            }
        }
        Err(DataflowError::TooLong {
            what: "the search for the worst circle",
            limit: MAX_ROUNDS,
        })
    }

    fn time_of(&self, arc: usize) -> u64 {
        self.firings.time[self.arcs[arc].from]
    }

    /// The worst of the circles that following the policy ends in.
    fn circle_of_policy(&self, state: &mut State) -> Result<Circle, DataflowError> {
        for &node in &self.nodes {
            state.mark[node] = 0;
        }
        let mut worst: Option<Circle> = None;
        for (walk, &start) in (1..).zip(&self.nodes) {
            let mut at = start;
            while state.mark[at] == 0 {
                state.mark[at] = walk;
                at = self.arcs[state.policy[at]].from;
            }
            if state.mark[at] != walk {
                continue;
            }
            let circle = self.circle_at(at, state)?;
            worst = slower(worst, circle);
        }
        worst.ok_or(DataflowError::Overflow {
            what: "a part without firings",
        })
    }

    fn circle_at(&self, start: usize, state: &State) -> Result<Circle, DataflowError> {
        let (mut time, mut tokens, mut arcs) = (0_u64, 0_u64, Vec::new());
        let mut at = start;
        loop {
            let arc = self.arcs[state.policy[at]];
            // Times of different firings: together at most those of an iteration.
            time = time.saturating_add(self.firings.time[arc.from]);
            tokens = tokens.saturating_add(arc.tokens);
            arcs.push(arc);
            at = arc.from;
            if at == start {
                break;
            }
        }
        arcs.reverse();
        let period = Fraction::new(time, tokens).ok_or(DataflowError::Overflow {
            what: "the period of a circle without tokens",
        })?;
        Ok(Circle {
            period,
            time,
            tokens,
            arcs,
        })
    }

    /// The length of an arc at the period of a circle, in units of 1 / its tokens.
    fn length(&self, arc: usize, circle: &Circle) -> i128 {
        let time = i128::from(self.time_of(arc)) * i128::from(circle.period.denominator());
        time - i128::from(self.arcs[arc].tokens) * i128::from(circle.period.numerator())
    }

    /// Potentials from the worst circle on, along the policy. Nodes whose policy leads elsewhere
    /// are turned towards it.
    fn evaluate(&self, circle: &Circle, state: &mut State) {
        let Some(root) = circle.arcs.first().map(|arc| arc.from) else {
            return;
        };
        for &node in &self.nodes {
            state.mark[node] = 0;
        }
        // Arcs of this part by the node that they leave.
        let mut out: Vec<(usize, usize)> = Vec::new();
        for &node in &self.nodes {
            out.extend(self.into(node).map(|arc| (self.arcs[arc].from, arc)));
        }
        out.sort_unstable();
        let from = |node: usize| {
            let begin = out.partition_point(|&(from, _)| from < node);
            out[begin..].iter().take_while(move |&&(at, _)| at == node)
        };
        (state.value[root], state.mark[root]) = (0, 1);
        let mut reached = vec![root];
        // First along the policy alone, then along any arc.
        for by_policy in [true, false] {
            let mut place = 0;
            while place < reached.len() {
                let node = reached[place];
                place += 1;
                for &(_, arc) in from(node) {
                    let to = self.arcs[arc].to;
                    if state.mark[to] != 0 || (by_policy && state.policy[to] != arc) {
                        continue;
                    }
                    state.mark[to] = 1;
                    state.policy[to] = arc;
                    state.value[to] = state.value[node] + self.length(arc, circle);
                    reached.push(to);
                }
            }
        }
    }

    /// Lets every node wait for what raises its potential most; whether any did.
    fn improve(&self, circle: &Circle, state: &mut State) -> bool {
        let mut improved = false;
        for &node in &self.nodes {
            let mut best = state.value[node];
            for arc in self.into(node) {
                let value = state.value[self.arcs[arc].from] + self.length(arc, circle);
                if value > best {
                    best = value;
                    state.policy[node] = arc;
                    improved = true;
                }
            }
        }
        improved
    }
}
