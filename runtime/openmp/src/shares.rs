//! Constructs whose work the members share: loops and sections.
//!
//! A team has a ring of places. Construct number `i` of a region uses place `i` modulo their count.
//! The first member that comes to it fills the place in. The last that leaves frees it for the
//! construct one round later. So a member is at most one round of `nowait` constructs ahead.
//!
//! Iterations are numbered from 0. A dynamic chunk is one fetch-and-add (Slite paper §VII.B). A
//! guided chunk depends on what is left, so it is taken by an exchange that may fail. A static one
//! is arithmetic alone, by libgomp's formula.

use core::sync::atomic::{Ordering, fence};

use punctual_switch::instructions::pause;

use crate::carry::make_ready;
use crate::parts::{Identity, Member, SHARES, Share, Team};
use crate::settings::{AUTO, DYNAMIC, GUIDED, MONOTONIC, STATIC};
use crate::wait::{Atop, wait};

/// A loop as the compiler tells it: iterations, the first value, the distance of values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loop {
    pub(crate) count: u64,
    pub(crate) begin: u64,
    /// The value to stop at.
    pub(crate) end: u64,
    pub(crate) step: u64,
    pub(crate) kind: u32,
    pub(crate) chunk: u64,
}

impl Loop {
    /// A loop from `begin` until before `end`.
    pub(crate) fn signed(begin: i64, end: i64, step: i64, kind: u32, chunk: i64) -> Loop {
        let (from, to) = if step > 0 { (begin, end) } else { (end, begin) };
        let span = if from < to {
            to.wrapping_sub(from).cast_unsigned()
        } else {
            0
        };
        let count = span.div_ceil(step.unsigned_abs().max(1));
        Loop::new(
            count,
            [begin, end].map(i64::cast_unsigned),
            step.cast_unsigned(),
            kind,
            chunk,
        )
    }

    /// The same for unsigned values; `up`: the step is positive.
    pub(crate) fn unsigned(up: bool, ends: [u64; 2], step: u64, kind: u32, chunk: u64) -> Loop {
        let [begin, end] = ends;
        let (from, to, by) = match up {
            true => (begin, end, step),
            false => (end, begin, step.wrapping_neg()),
        };
        let count = to.saturating_sub(from).div_ceil(by.max(1));
        let chunk = i64::try_from(chunk).unwrap_or(i64::MAX);
        Loop::new(count, ends, step, kind, chunk)
    }

    fn new(count: u64, [begin, end]: [u64; 2], step: u64, kind: u32, chunk: i64) -> Loop {
        let (kind, chunk) = match kind & !MONOTONIC {
            AUTO => (STATIC, 0),
            kind => (kind, chunk),
        };
        let chunk = u64::try_from(chunk).unwrap_or(0);
        let chunk = if kind == STATIC { chunk } else { chunk.max(1) };
        Loop {
            count,
            begin,
            end,
            step,
            kind,
            chunk,
        }
    }
}

fn fill(share: &Share, of: &Loop) {
    share.count.set(of.count);
    share.begin.set(of.begin);
    share.end.set(of.end);
    share.step.set(of.step);
    share.kind.set(of.kind);
    // One chunk too many per member must not pass the end of the numbers.
    share.chunk.set(of.chunk.min(1 << 40));
    share.next.0.store(0, Ordering::Relaxed);
    share.ordered.store(0, Ordering::Relaxed);
    share.chunks.store(0, Ordering::Relaxed);
}

/// Fills the first construct of a region in before its members begin.
pub(crate) fn prepare_first(team: &'static Team, of: &Loop) {
    let number = team.share_base.get();
    let share = place(team, number);
    fill(share, of);
    share.serves.store(2 * number + 1, Ordering::Release);
}

/// A member begins in that construct.
pub(crate) fn open_first(member: &Member) {
    let number = member.shares.get();
    member.shares.set(number + 1);
    set_turn(member, number);
}

fn index(number: u64) -> usize {
    usize::try_from(number % SHARES as u64).unwrap_or_default()
}

fn place(team: &'static Team, number: u64) -> &'static Share {
    &team.shares[index(number)]
}

fn set_turn(member: &Member, number: u64) {
    let slot = index(number);
    member.turn.set(crate::parts::Turn {
        slot,
        ..Default::default()
    });
}

/// The next construct, filled in if this member is the first to come to it.
pub(crate) fn start(identity: &'static Identity, of: &Loop) {
    let member = identity.hat();
    let number = member.shares.get();
    member.shares.set(number + 1);
    set_turn(member, number);
    let share = place(member.team, number);
    let free = 2 * number;
    if share.serves.load(Ordering::Acquire) < free {
        // Somebody is a whole round behind.
        let is_free = || share.serves.load(Ordering::Acquire) >= free;
        wait_for(identity, share, is_free);
    }
    // While it is filled in, it serves nobody: the number of a round that never comes.
    let order = (Ordering::Acquire, Ordering::Acquire);
    let first = share
        .serves
        .compare_exchange(free, FILLING, order.0, order.1);
    if first.is_ok() {
        fill(share, of);
        share.serves.store(free + 1, Ordering::Release);
        return;
    }
    while share.serves.load(Ordering::Acquire) == FILLING {
        pause();
    }
}

/// Somebody fills a place in.
const FILLING: u64 = u64::MAX;

/// Waits for a change of the construct's words, which [`tell`] follows.
fn wait_for(identity: &'static Identity, share: &'static Share, has_come: impl Fn() -> bool) {
    wait(identity, Atop::Nothing, &has_come, |thread| {
        let mut waiters = share.waiters.lock();
        share.waiting.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if has_come() {
            share.waiting.fetch_sub(1, Ordering::Relaxed);
            return false;
        }
        waiters.push(thread);
        true
    });
}

/// Has all look again who wait for a change.
fn tell(share: &Share) {
    fence(Ordering::SeqCst);
    if share.waiting.load(Ordering::Relaxed) == 0 {
        return;
    }
    let mut waiters = share.waiters.lock();
    let all = core::mem::take(&mut *waiters);
    share.waiting.fetch_sub(all.len(), Ordering::Relaxed);
    drop(waiters);
    all.into_iter().for_each(make_ready);
}

/// Leaves the construct; the last one frees its place.
pub(crate) fn leave(member: &Member) {
    let share = &member.team.shares[member.turn.get().slot];
    let size = member.team.size.load(Ordering::Relaxed);
    if share.left.fetch_add(1, Ordering::AcqRel) + 1 == size {
        share.left.store(0, Ordering::Relaxed);
        let served = share.serves.load(Ordering::Relaxed);
        let free = served - 1 + 2 * SHARES as u64;
        // In one total order with the count of waiters: no fence is needed.
        share.serves.swap(free, Ordering::SeqCst);
        if share.waiting.load(Ordering::SeqCst) != 0 {
            tell(share);
        }
    }
}

/// The next iterations of the running member's loop: `[first, end)` by number.
pub(crate) fn take(member: &Member) -> Option<(u64, u64)> {
    let share = &member.team.shares[member.turn.get().slot];
    match share.kind.get() {
        STATIC => take_static(member, share),
        GUIDED => take_guided(member, share),
        _ => take_dynamic(share),
    }
}

fn take_dynamic(share: &Share) -> Option<(u64, u64)> {
    let (count, chunk) = (share.count.get(), share.chunk.get());
    if count > 1 << 62 {
        // A sum of chunks could pass the end of the numbers.
        return exchange(share, |_| chunk);
    }
    let first = share.next.0.fetch_add(chunk, Ordering::Relaxed);
    (first < count).then(|| (first, count.min(first + chunk)))
}

fn take_guided(member: &Member, share: &Share) -> Option<(u64, u64)> {
    let size = member.team.size.load(Ordering::Relaxed) as u64;
    exchange(share, |left| left.div_ceil(size).max(share.chunk.get()))
}

fn exchange(share: &Share, chunk: impl Fn(u64) -> u64) -> Option<(u64, u64)> {
    let count = share.count.get();
    let mut first = share.next.0.load(Ordering::Relaxed);
    loop {
        let left = count.checked_sub(first).filter(|&left| left > 0)?;
        let end = first + chunk(left).min(left);
        let order = (Ordering::Relaxed, Ordering::Relaxed);
        match share
            .next
            .0
            .compare_exchange_weak(first, end, order.0, order.1)
        {
            Ok(_) => return Some((first, end)),
            Err(now) => first = now,
        }
    }
}

fn take_static(member: &Member, share: &Share) -> Option<(u64, u64)> {
    let mut turn = member.turn.get();
    let trip = turn.trips;
    turn.trips += 1;
    member.turn.set(turn);
    let size = member.team.size.load(Ordering::Relaxed) as u64;
    static_part(
        share.count.get(),
        share.chunk.get(),
        size,
        member.number as u64,
        trip,
    )
}

/// The share of a member in its so-manieth turn: equal parts, the first ones longer by one,
/// or chunks in rotation.
fn static_part(count: u64, chunk: u64, size: u64, me: u64, trip: u64) -> Option<(u64, u64)> {
    if chunk == 0 {
        let (part, longer) = (count / size, count % size);
        let first = me * part + me.min(longer);
        let end = first + part + u64::from(me < longer);
        return (trip == 0 && first < end).then_some((first, end));
    }
    let first = trip
        .checked_mul(size)?
        .checked_add(me)?
        .checked_mul(chunk)?;
    (first < count).then(|| (first, count.min(first.saturating_add(chunk))))
}

/// The values that a range of iterations begins and ends with.
pub(crate) fn values(member: &Member, (first, end): (u64, u64)) -> (u64, u64) {
    let share = &member.team.shares[member.turn.get().slot];
    let value = |number: u64| {
        if number == share.count.get() {
            // A whole step beyond the last value may be no number at all.
            return share.end.get();
        }
        let distance = number.wrapping_mul(share.step.get());
        share.begin.get().wrapping_add(distance)
    };
    (value(first), value(end))
}

/// The same for an ordered loop: the chunk gets a number, in the order of its iterations, and the
/// one that the member had is behind it.
pub(crate) fn take_ordered(identity: &'static Identity) -> Option<(u64, u64)> {
    let member = identity.hat();
    pass_on(identity);
    let share = &member.team.shares[member.turn.get().slot];
    let (part, chunk) = match share.kind.get() {
        STATIC => {
            let part = take_static(member, share)?;
            (part, static_number(member, share))
        }
        _ => {
            let _alone = share.turn.lock();
            let part = take(member)?;
            (part, share.chunks.fetch_add(1, Ordering::Relaxed))
        }
    };
    let mut turn = member.turn.get();
    (turn.chunk, turn.has_chunk) = (chunk, true);
    member.turn.set(turn);
    Some(part)
}

/// The place of a static chunk in the order of iterations.
fn static_number(member: &Member, share: &Share) -> u64 {
    let size = member.team.size.load(Ordering::Relaxed) as u64;
    let trip = member.turn.get().trips - 1;
    let me = member.number as u64;
    if share.chunk.get() == 0 {
        me
    } else {
        trip * size + me
    }
}

/// Waits until all earlier chunks are through.
pub(crate) fn wait_for_turn(identity: &'static Identity) {
    let member = identity.hat();
    let turn = member.turn.get();
    let share = &member.team.shares[turn.slot];
    if !turn.has_chunk {
        return;
    }
    let has_come = || share.ordered.load(Ordering::Acquire) == turn.chunk;
    wait_for(identity, share, has_come);
}

/// The member is through with its chunk of an ordered loop: the next one may go on.
pub(crate) fn pass_on(identity: &'static Identity) {
    let member = identity.hat();
    let mut turn = member.turn.get();
    if turn.has_chunk {
        wait_for_turn(identity);
        turn.has_chunk = false;
        member.turn.set(turn);
        let share = &member.team.shares[turn.slot];
        share.ordered.store(turn.chunk + 1, Ordering::Release);
        tell(share);
    }
}

/// The schedule of `schedule(runtime)`.
pub(crate) fn runtime_schedule(identity: &Identity) -> (u32, i64) {
    let (kind, chunk) = identity.controls().schedule;
    let default = i32::from(kind & !MONOTONIC == DYNAMIC);
    (kind, i64::from(chunk.max(default)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_static_loop_gives_every_iteration_to_one_member() {
        for (count, chunk, size) in [(10, 0, 3), (10, 0, 4), (3, 0, 8), (10, 3, 2), (1, 1, 4)] {
            let mut seen = vec![0; 10];
            for me in 0..size {
                let parts = (0..20).filter_map(|trip| static_part(count, chunk, size, me, trip));
                for (first, end) in parts {
                    (first..end).for_each(|i| seen[usize::try_from(i).expect("small")] += 1);
                }
            }
            let expected: Vec<i32> = (0..10).map(|i| i32::from(i < count)).collect();
            assert_eq!(seen, expected, "{count} {chunk} {size}");
        }
        assert_eq!(static_part(10, 0, 4, 1, 0), Some((3, 6)), "as libgomp does");
    }

    #[test]
    fn loops_are_counted_up_and_down_and_to_the_ends_of_the_numbers() {
        let count = |begin, end, step| Loop::signed(begin, end, step, DYNAMIC, 1).count;
        assert_eq!(count(0, 10, 3), 4);
        assert_eq!(count(10, 0, -3), 4);
        assert_eq!(count(5, 5, 1), 0);
        assert_eq!(count(6, 5, 1), 0);
        assert_eq!(count(i64::MIN, i64::MAX, 1), u64::MAX);
        let count = |up, begin, end, step| Loop::unsigned(up, [begin, end], step, GUIDED, 1).count;
        assert_eq!(count(true, 0, u64::MAX, 1), u64::MAX);
        assert_eq!(count(false, 10, 0, 3_u64.wrapping_neg()), 4);
    }
}
