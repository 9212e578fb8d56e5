//! Responses of firings, from the slots of a tile and the other actors there

use super::{Decides, Graph, Tile};

/// Most slots that are walked for one firing.
const MOST_SLOTS: u128 = 1_000_000;

/// The longest from the instant at which a firing of this actor, with this wcet, may begin to its
/// end. `None`: its tile gives nothing, or the number is beyond 64 bits.
pub(super) fn of(graph: &Graph, actor: usize, wcet: u128) -> Option<u64> {
    let tile = &graph.tiles[graph.actors[actor].tile];
    let others = graph.actors.iter().enumerate();
    let others = others.filter(|(other, a)| *other != actor && a.tile == graph.actors[actor].tile);
    let longest =
        |(_, a): (usize, &super::Actor)| u128::from(a.wcet.iter().copied().max().unwrap_or(0));
    let others: Vec<u128> = others.map(longest).collect();
    match &tile.decides {
        None if tile.order.is_some() => supplied(tile, wcet),
        None => supplied(tile, wcet + others.iter().sum::<u128>()),
        Some(Decides::Threads { turn, cost }) => {
            let (turn, cost) = (u128::from(*turn), u128::from(*cost));
            let own = turn.checked_sub(cost).filter(|own| *own > 0)?;
            let rounds = wcet.div_ceil(own);
            let all = others.iter().map(|&other| other.min(turn) + cost);
            supplied(tile, wcet + rounds * (all.sum::<u128>() + cost))
        }
        Some(between) => {
            let slots = slots(tile, tile.frame?)?;
            let shortest = slots.iter().map(|(begin, end)| end - begin).min()?;
            let needs = |work: u128| work.div_ceil(shortest);
            let own = needs(wcet);
            let count = match between {
                Decides::Continues => own + others.iter().map(|&other| needs(other)).sum::<u128>(),
                Decides::Owners(owners) => turns(owners, actor, own)?,
                _ => own * (1 + others.len() as u128),
            };
            decided(tile, &slots, count, wcet - (own - 1) * shortest)
        }
    }
}

/// The most slots until the `own`-th one of an actor, from the slot of any turn on.
fn turns(owners: &[usize], actor: usize, own: u128) -> Option<u128> {
    if !owners.contains(&actor) || own > MOST_SLOTS {
        return None;
    }
    let walk = |from: usize| {
        let (mut left, mut count) = (own, 0);
        while left > 0 {
            let turn = (from as u128 + count) % owners.len() as u128;
            left -= u128::from(owners[usize::try_from(turn).unwrap_or(0)] == actor);
            count += 1;
        }
        count
    };
    (0..owners.len()).map(walk).max()
}

/// The longest from a decision that a firing has just missed until `rest` has been executed in the
/// slot that is `count` later. A slot decides before the machine takes its part of it.
fn decided(tile: &Tile, slots: &[(u128, u128)], count: u128, rest: u128) -> Option<u64> {
    let frame = u128::from(tile.frame?);
    let number = slots.len() as u128;
    let worst = (0..number).map(|missed| {
        let last = missed + count;
        let place = usize::try_from(last % number).unwrap_or(0);
        let begin = slots[place].0 + last / number * frame;
        let decision = slots[usize::try_from(missed).unwrap_or(0)].0 - u128::from(tile.overhead);
        begin + rest - decision
    });
    u64::try_from(worst.max()?).ok()
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
        let mut time = frames * u128::from(frame);
        let mut now = slots[from].1;
        for step in 1..=slots.len() {
            let (begin, end) = slots[(from + step) % slots.len()];
            let wraps = if from + step >= slots.len() {
                u128::from(frame)
            } else {
                0
            };
            let (begin, end) = (begin + wraps, end + wraps);
            time += begin - now;
            let done = left.min(end - begin);
            time += done;
            (left, now) = (left - done, end);
            if left == 0 {
                break;
            }
        }
        worst = worst.max(time);
    }
    u64::try_from(worst).ok()
}
