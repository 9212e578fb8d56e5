//! Copies between memories: the time that they keep a tile busy, and the time after a firing
//!
//! On each tile the graph has a copy engine, which makes one copy at a time. A claim keeps the tile
//! busy until its copies are made. A release keeps it busy until the engine has begun with the
//! output, and the copy itself goes on beside the next firings.
//!
//! Where a firing goes on before another begins, the engine may still be busy with the output of
//! the firing before: for the longest copy K of a release there, from that firing's end on. A
//! firing with claim c and wcet C keeps its tile busy for
//!
//! * K + c + C if it claims, since the claim waits for all of K;
//! * max(C, K) if it only releases, since the engine works while it computes;
//! * C if it copies nothing.
//!
//! Where a preempted firing may be passed over, between slots or in turns, the copies of all others
//! may be in between, once before the claim and once before the release.
//!
//! Its tokens arrive one copy after it has ended. That copy counts in its response.
//!
//! # Assumptions
//! 1. Those of the graphs.
//! 2. The engine belongs to the graph, and its copies take as long as declared, whatever else is
//!    copied elsewhere (CompOSe §3.2: the network is composable, too).

use alloc::vec;
use alloc::vec::Vec;

use punctual_model::{ActorId, Graph, Preempted, Tile, When};

use crate::error::{Checked, in_range};
use crate::units::{Span, Work};

/// The firings of a graph as its tiles and copy engines see them, by actor and phase.
pub(super) struct Firing {
    /// The tile is busy.
    pub(super) busy: Vec<Vec<Work>>,
    /// From then on until the tokens have arrived.
    pub(super) copied: Vec<Vec<Span>>,
}

impl Firing {
    /// The longest that each actor keeps its tile busy.
    pub(super) fn longest(&self) -> Vec<Work> {
        let longest = |busy: &Vec<Work>| busy.iter().copied().max().unwrap_or(Work::ZERO);
        self.busy.iter().map(longest).collect()
    }
}

/// The claims and releases of one actor, by phase.
struct Own {
    tile: Tile,
    claims: Vec<Span>,
    releases: Vec<Span>,
}

impl Own {
    fn longest_claim(&self) -> Span {
        self.claims.iter().copied().max().unwrap_or(Span::ZERO)
    }

    fn longest_release(&self) -> Span {
        self.releases.iter().copied().max().unwrap_or(Span::ZERO)
    }
}

/// The firings of all actors. O(phases · FIFOs + actors²).
pub(super) fn firings(graph: &Graph) -> Checked<Firing> {
    if graph.copies.is_none() {
        return Ok(Firing {
            busy: graph
                .actors
                .iter()
                .map(|actor| actor.wcet.clone())
                .collect(),
            copied: graph
                .actors
                .iter()
                .map(|actor| vec![Span::ZERO; actor.wcet.len()])
                .collect(),
        });
    }
    let ids = (0..).map(ActorId).zip(&graph.actors);
    let copies = ids.map(|(id, actor)| {
        let phases = 0..graph.phases(id);
        Own {
            tile: actor.tile,
            claims: phases.clone().map(|at| graph.claim_time(id, at)).collect(),
            releases: phases.map(|at| graph.release_time(id, at)).collect(),
        }
    });
    let copies: Vec<Own> = copies.collect();
    let mut busy = Vec::with_capacity(copies.len());
    for (index, (actor, own)) in graph.actors.iter().zip(&copies).enumerate() {
        let before = before(graph, &copies, index)?;
        let mut phases = Vec::with_capacity(own.claims.len());
        for (phase, (&claim, &release)) in own.claims.iter().zip(&own.releases).enumerate() {
            let wcet = actor.wcet.get(phase).or(actor.wcet.first());
            let wcet = wcet.copied().unwrap_or(Work::ZERO);
            let time = match (claim.is_zero(), release.is_zero()) {
                (true, true) => Some(wcet),
                _ if before.passed_over => {
                    let times = u64::from(!claim.is_zero()) + u64::from(!release.is_zero());
                    let others = before.others.checked_mul(times);
                    let waits = others.and_then(|others| others.checked_add(before.longest));
                    let waits = waits.and_then(|waits| waits.checked_add(claim));
                    waits.and_then(|waits| wcet.checked_add(waits.as_work()))
                }
                (true, false) => Some(wcet.max(before.longest.as_work())),
                (false, _) => {
                    let waits = before.longest.checked_add(claim);
                    waits.and_then(|waits| wcet.checked_add(waits.as_work()))
                }
            };
            phases.push(in_range(time, "the copies of a firing")?);
        }
        busy.push(phases);
    }
    let copied = copies.into_iter().map(|own| own.releases).collect();
    Ok(Firing { busy, copied })
}

/// The copies that an engine may have to make before those of a firing.
struct Before {
    /// A preempted firing may be passed over.
    passed_over: bool,
    /// The longest of an output before; its own, where firings are passed over.
    longest: Span,
    /// The claims and outputs of the others on the tile, once each.
    others: Span,
}

fn before(graph: &Graph, copies: &[Own], actor: usize) -> Checked<Before> {
    let tile = copies[actor].tile;
    let order = graph.order_on(tile).map(|order| order.when);
    let passed_over = matches!(
        order,
        Some(When::BetweenSlots(Preempted::PassedOver) | When::Inline)
    );
    let here = || copies.iter().filter(|own| own.tile == tile);
    let longest = match passed_over {
        true => copies[actor].longest_release(),
        false => here().map(Own::longest_release).max().unwrap_or(Span::ZERO),
    };
    let others = copies.iter().enumerate();
    let others = others.filter(|&(at, own)| at != actor && own.tile == tile);
    let sum = others.into_iter().try_fold(Span::ZERO, |sum, (_, own)| {
        let both = own.longest_claim().checked_add(own.longest_release())?;
        sum.checked_add(both)
    });
    Ok(Before {
        passed_over,
        longest,
        others: in_range(sum, "the copies of a tile")?,
    })
}
