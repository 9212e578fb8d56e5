//! Responses of firings, from the slots of a tile and the other actors there
//!
//! Every number is below 2^64 and every count of things below 2^32, so a sum or a product of two
//! fits into 128 bits; of more than two it is checked.

use super::copies::Firing;
use super::{Decides, Graph, Tile};

/// Most steps for the responses of an actor: slots and owners are walked from each of them.
const MOST_STEPS: u128 = 400_000_000;

/// The longest from the instant at which a firing of an actor may begin to its end, for each phase.
/// `None`: its tile gives nothing, a number is beyond 64 bits, or it would take too long to count.
/// O(phases · (slots² + owners²) + phases of the others).
pub(super) fn of(graph: &Graph, firings: &[Firing], actor: usize) -> Option<Vec<u64>> {
    let (own, firing) = (&graph.actors[actor], &firings[actor]);
    let tile = &graph.tiles[own.tile];
    let square = |count: usize| (count as u128).pow(2);
    let owners = match &tile.decides {
        Some(Decides::Owners(owners)) => owners.len(),
        _ => 0,
    };
    if firing.busy.len() as u128 * (square(tile.slots.len()) + square(owners)) > MOST_STEPS {
        return None;
    }
    let all = graph.actors.iter().zip(firings).enumerate();
    let others = all.filter(|(other, (a, _))| *other != actor && a.tile == own.tile);
    let others = others.map(|(_, (_, other))| other.busy.iter().copied().max().unwrap_or(0));
    let others: Vec<u128> = others.collect();
    let phases = firing.busy.iter().zip(&firing.arrives);
    phases
        .map(|(&busy, &arrives)| {
            let ends = response(tile, actor, &others, busy)?;
            u64::try_from(u128::from(ends) + arrives).ok()
        })
        .collect()
}

/// From the instant at which a firing may begin to that at which it has had so much of its tile.
fn response(tile: &Tile, actor: usize, others: &[u128], wcet: u128) -> Option<u64> {
    match &tile.decides {
        None if tile.order.is_some() => supplied(tile, wcet),
        None => supplied(tile, wcet + others.iter().sum::<u128>()),
        Some(Decides::Threads { turn, cost }) => {
            let (turn, cost) = (u128::from(*turn), u128::from(*cost));
            let own = turn.checked_sub(cost).filter(|own| *own > 0)?;
            let rounds = wcet.div_ceil(own);
            let all = others.iter().map(|&other| other.min(turn) + cost);
            let waits = rounds.checked_mul(all.sum::<u128>() + cost)?;
            supplied(tile, wcet.checked_add(waits)?)
        }
        Some(between) => {
            let slots = slots(tile, tile.frame?)?;
            // A slot without any work in it decides, too: a turn in vain.
            if slots.len() < tile.slots.len() {
                return None;
            }
            let shortest = slots.iter().map(|(begin, end)| end - begin).min()?;
            let needs = |work: u128| work.div_ceil(shortest);
            let own = needs(wcet);
            let count = match between {
                Decides::Continues => own + others.iter().map(|&other| needs(other)).sum::<u128>(),
                Decides::Owners(owners) => turns(owners, actor, own)?,
                _ => own.checked_mul(1 + others.len() as u128)?,
            };
            decided(tile, &slots, count, wcet - (own - 1) * shortest)
        }
    }
}

/// The most slots until the `own`-th one of an actor, from the slot of any turn on: whole cycles of
/// all turns, and a walk through the rest.
fn turns(owners: &[usize], actor: usize, own: u128) -> Option<u128> {
    let in_cycle = owners.iter().filter(|&&owner| owner == actor).count() as u128;
    let cycles = (own - 1).checked_div(in_cycle)?;
    let walk = |from: usize| {
        let mut left = own - cycles * in_cycle;
        let turns = owners.iter().cycle().skip(from);
        let until = turns.take_while(|&&owner| {
            left -= u128::from(owner == actor);
            left > 0
        });
        until.count() as u128 + 1
    };
    let rest = (0..owners.len()).map(walk).max()?;
    cycles.checked_mul(owners.len() as u128)?.checked_add(rest)
}

/// The longest from a decision that a firing has just missed until `rest` has been executed in the
/// slot that is `count` later. A slot decides before the machine takes its part of it.
fn decided(tile: &Tile, slots: &[(u128, u128)], count: u128, rest: u128) -> Option<u64> {
    let frame = u128::from(tile.frame?);
    let number = slots.len() as u128;
    let worst = (0..number).map(|missed| {
        let last = missed.checked_add(count)?;
        let place = usize::try_from(last % number).ok()?;
        let begin = (last / number)
            .checked_mul(frame)?
            .checked_add(slots[place].0)?;
        let decision = slots[usize::try_from(missed).ok()?].0 - u128::from(tile.overhead);
        begin.checked_add(rest)?.checked_sub(decision)
    });
    let worst: Option<Vec<u128>> = worst.collect();
    u64::try_from(worst?.into_iter().max()?).ok()
}

/// The slots of a tile without the machine's part: start and end of each in the frame.
fn slots(tile: &Tile, frame: u64) -> Option<Vec<(u128, u128)>> {
    let mut slots: Vec<(u128, u128)> = Vec::new();
    for &(begin, length) in &tile.slots {
        let end = u128::from(begin) + u128::from(length);
        slots.push((u128::from(begin) + u128::from(tile.overhead), end));
    }
    slots.retain(|(begin, end)| begin < end);
    slots.sort_unstable();
    let overlap = slots.windows(2).any(|pair| pair[0].1 > pair[1].0);
    let beyond = slots.last().is_none_or(|last| last.1 > u128::from(frame));
    (!overlap && !beyond).then_some(slots)
}

/// The longest time that `work` takes on a tile, from any instant on: it begins where a slot ends.
fn supplied(tile: &Tile, work: u128) -> Option<u64> {
    let Some(frame) = tile.frame else {
        return u64::try_from(work).ok();
    };
    let slots = slots(tile, frame)?;
    let total: u128 = slots.iter().map(|(begin, end)| end - begin).sum();
    let mut worst = 0;
    for from in 0..slots.len() {
        // Whole frames first, so that at least some work is left for the walk.
        let frames = (work - 1) / total;
        let mut left = work - frames * total;
        let mut time = frames.checked_mul(u128::from(frame))?;
        let mut now = slots[from].1;
        for step in 1..=slots.len() {
            let (begin, end) = slots[(from + step) % slots.len()];
            let wraps = if from + step >= slots.len() {
                u128::from(frame)
            } else {
                0
            };
            let (begin, end) = (begin + wraps, end + wraps);
            let done = left.min(end - begin);
            time = time.checked_add(begin - now + done)?;
            (left, now) = (left - done, end);
            if left == 0 {
                break;
            }
        }
        worst = worst.max(time);
    }
    u64::try_from(worst).ok()
}

#[cfg(test)]
mod tests {
    use super::super::{Actor, copies};
    use super::*;

    fn tile(slots: &[(u64, u64)], decides: Decides) -> Tile {
        Tile {
            name: "t".into(),
            frame: Some(100),
            slots: slots.to_vec(),
            overhead: 5,
            order: None,
            decides: Some(decides),
        }
    }

    fn of_first(graph: &Graph) -> Option<Vec<u64>> {
        of(graph, &copies::firings(graph)?, 0)
    }

    fn graph(tile: Tile, wcets: &[u64]) -> Graph {
        let actor = |&wcet: &u64| Actor {
            name: "a".into(),
            tile: 0,
            wcet: vec![wcet],
            shared: None,
        };
        Graph {
            name: "g".into(),
            tiles: vec![tile],
            actors: wcets.iter().map(actor).collect(),
            fifos: Vec::new(),
            every: None,
            within: None,
            copies: None,
        }
    }

    #[test]
    fn whole_cycles_of_owners_are_counted_and_not_walked() {
        let owners = [0, 1, 1, 0, 2];
        let walked = |actor: usize, own: u128| {
            let from = |from: usize| {
                let turns = owners.iter().cycle().skip(from).enumerate();
                let mut own_turns = turns.filter(|(_, owner)| **owner == actor);
                let last = own_turns.nth(usize::try_from(own - 1).expect("few"));
                last.expect("it has a turn in each cycle").0 as u128 + 1
            };
            (0..owners.len()).map(from).max()
        };
        for own in 1..20 {
            for actor in 0..3 {
                assert_eq!(turns(&owners, actor, own), walked(actor, own));
            }
        }
        assert_eq!(turns(&owners, 3, 1), None);
        let far = 1 << 63;
        assert_eq!(turns(&owners, 2, far), Some(far * 5));
    }

    /// The machine takes 5 of each slot.
    #[test]
    fn a_slot_that_the_machine_takes_whole_decides_in_vain() {
        let kinds = || {
            [
                Decides::Continues,
                Decides::PassesOver,
                Decides::Owners(vec![0, 1]),
            ]
        };
        for decides in kinds() {
            let long = tile(&[(0, 40), (50, 6)], decides);
            assert!(of_first(&graph(long, &[7, 7])).is_some());
        }
        for decides in kinds() {
            let short = tile(&[(0, 40), (50, 5)], decides);
            assert_eq!(of_first(&graph(short, &[7, 7])), None);
        }
    }

    #[test]
    fn numbers_beyond_64_bits_are_no_responses() {
        let (turn, cost) = (u64::MAX, u64::MAX - 1);
        let kinds = [
            Decides::Continues,
            Decides::PassesOver,
            Decides::Owners(vec![0, 1, 2]),
            Decides::Threads { turn, cost },
        ];
        for decides in kinds {
            let mut far = tile(&[(0, 6)], decides);
            far.frame = Some(u64::MAX);
            assert_eq!(of_first(&graph(far, &[u64::MAX; 3])), None);
        }
    }
}
