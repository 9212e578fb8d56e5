//! One iteration without time: whether it ends, and if not, the actors that wait for each other
//!
//! Which firings an iteration can make does not depend on their order: rates do not depend on
//! data. So one attempt decides for every schedule and all times.

use alloc::vec;
use alloc::vec::Vec;

use crate::timed::{Link, Timed};
use crate::tokens::Tokens;

/// A graph that stops.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Deadlock {
    /// Actors that wait for each other in a circle, each for the one after it.
    pub circle: Vec<Wait>,
    /// FIFOs in which somebody lacks space.
    pub full: Vec<usize>,
    /// Firings that were made before.
    pub firings: u64,
}

/// An actor that waits for another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wait {
    /// The actor.
    pub actor: usize,
    /// The actor that it waits for.
    pub for_actor: usize,
    /// The reason.
    pub link: Link,
    /// How many tokens, or how much space, it lacks; 0 for a turn.
    pub missing: u64,
}

/// Fires one iteration as far as it goes; `None`: it goes through, hence for ever. O(firings ·
/// FIFOs of an actor).
pub fn deadlock(timed: &Timed) -> Option<Deadlock> {
    let mut state = Tokens::at_first(timed);
    let mut left = timed.firings.clone();
    let mut open: Vec<usize> = (0..timed.actors()).collect();
    let mut firings = 0;
    while let Some(actor) = open.pop() {
        if left[actor] == 0 || !state.may_start(actor) {
            continue;
        }
        state.start(actor);
        state.end(actor);
        left[actor] -= 1;
        firings += 1;
        open.extend(state.affected(actor));
    }
    let first = left.iter().position(|&left| left > 0)?;
    let mut seen = vec![None; timed.actors()];
    let mut way: Vec<Wait> = Vec::new();
    let mut at = first;
    while seen[at].is_none() {
        let wait = wait_of(timed, &state, at)?;
        seen[at] = Some(way.len());
        way.push(wait);
        at = wait.for_actor;
    }
    let circle = way.split_off(seen[at].unwrap_or(0));
    let mut full: Vec<usize> = (0..timed.actors())
        .filter(|&actor| left[actor] > 0)
        .flat_map(|actor| state.lacking(actor).collect::<Vec<_>>())
        .filter_map(|(edge, _)| match timed.edges[edge].link {
            Link::Space(fifo) => Some(fifo),
            _ => None,
        })
        .collect();
    full.sort_unstable();
    full.dedup();
    Some(Deadlock {
        circle,
        full,
        firings,
    })
}

fn wait_of(timed: &Timed, state: &Tokens<'_>, actor: usize) -> Option<Wait> {
    if let Some((link, for_actor)) = state.ahead(actor) {
        return Some(Wait {
            actor,
            for_actor,
            link,
            missing: 0,
        });
    }
    let (edge, missing) = state.lacking(actor).next()?;
    let edge = &timed.edges[edge];
    Some(Wait {
        actor,
        for_actor: edge.from,
        link: edge.link,
        missing,
    })
}
