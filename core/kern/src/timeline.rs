//! Pending releases, replenishments and timeouts: the next instant that matters.

use alloc::boxed::Box;
use alloc::vec;

use punctual_model::Instant;

/// What a timer is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Timer {
    /// The next release of a thread, or the replenishment of a throttled one.
    Release,
    /// The end of a wait.
    Timeout,
}

/// Children of a place, side by side in one cache line.
const ARITY: u32 = 4;

/// Where the least key is: the last of the first group, so that the children of a place fill one.
const ROOT: u32 = ARITY - 1;

/// No timer; greater than any.
const NEVER: Due = Due(u128::MAX);

/// The place of a timer that is not set.
const ABSENT: u32 = u32::MAX;

/// Two timers per thread in one 4-ary heap of fixed size; equal instants in the order of the file.
/// The place of each is kept, so any is set, moved or cancelled in O(log n).
///
/// ```text
///   group 0    -  -  -  root
///   group 1    children of the root: places 4 to 7
///   group 2    children of place 4         ... of place p: group p - 2
/// ```
#[derive(Debug)]
pub(crate) struct Timeline {
    /// Behind the last timer all are [`NEVER`].
    groups: Box<[Group]>,
    /// By id: where it is.
    place: Box<[u32]>,
    len: u32,
    /// The instant of the first, if there is any.
    soonest: Instant,
}

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Group([Due; ARITY as usize]);

/// An instant, then the order of the file, then the id, as one number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Due(u128);

impl Due {
    #[inline]
    fn new(at: Instant, order: u32, id: u32) -> Due {
        let rest = u64::from(order) << 32 | u64::from(id);
        Due(u128::from(at.ticks()) << 64 | u128::from(rest))
    }

    /// The same timer at another instant.
    #[inline]
    fn moved_to(self, at: Instant) -> Due {
        Due(u128::from(at.ticks()) << 64 | self.0 & u128::from(u64::MAX))
    }

    #[inline]
    fn at(self) -> Instant {
        Instant::from_ticks(u64::try_from(self.0 >> 64).unwrap_or(u64::MAX))
    }

    #[inline]
    fn id(self) -> u32 {
        u32::try_from(self.0 & u128::from(u32::MAX)).unwrap_or(ABSENT)
    }
}

#[inline]
fn id_of(thread: usize, timer: Timer) -> u32 {
    u32::try_from(2 * thread + usize::from(timer == Timer::Timeout)).unwrap_or(u32::MAX)
}

impl Timeline {
    pub(crate) fn new(threads: usize) -> Self {
        let timers = threads * 2;
        let row = Group([NEVER; ARITY as usize]);
        let groups = (timers + ROOT as usize).div_ceil(ARITY as usize).max(1);
        Timeline {
            groups: vec![row; groups].into_boxed_slice(),
            place: vec![ABSENT; timers].into_boxed_slice(),
            len: 0,
            soonest: Instant::MAX,
        }
    }

    #[inline]
    pub(crate) fn set(&mut self, thread: usize, timer: Timer, at: Instant, order: u32) {
        let id = id_of(thread, timer);
        let due = Due::new(at, order, id);
        match self.place_of(id) {
            None => {
                self.len += 1;
                self.up(ROOT + self.len - 1, due);
            }
            Some(place) if due < self.get(place) => self.up(place, due),
            Some(place) => self.down(place, due),
        }
        self.soonest = self.get(ROOT).at();
    }

    /// Sets a timer that is not set. Most are of a thread that begins, and later than the others.
    #[inline]
    pub(crate) fn add(&mut self, thread: usize, timer: Timer, at: Instant, order: u32) {
        let id = id_of(thread, timer);
        debug_assert!(self.place_of(id).is_none());
        let due = Due::new(at, order, id);
        let place = ROOT + self.len;
        if place == ROOT || due < self.get(parent(place)) {
            return self.set(thread, timer, at, order);
        }
        self.put(place, due);
        self.len += 1;
    }

    /// The earliest timer comes again, at a later instant.
    #[inline]
    pub(crate) fn defer_first(&mut self, at: Instant) {
        let first = self.get(ROOT);
        debug_assert!(self.len > 0 && first.at() <= at);
        self.down(ROOT, first.moved_to(at));
        self.soonest = self.get(ROOT).at();
    }

    #[inline]
    pub(crate) fn cancel(&mut self, thread: usize, timer: Timer) {
        let id = id_of(thread, timer);
        if let Some(place) = self.place_of(id) {
            self.remove(id, place);
        }
    }

    pub(crate) fn is_set(&self, thread: usize, timer: Timer) -> bool {
        self.place_of(id_of(thread, timer)).is_some()
    }

    #[inline]
    pub(crate) fn next(&self) -> Option<Instant> {
        (self.len > 0).then_some(self.soonest)
    }

    /// Whether all timers but the earliest are later than `now`.
    #[inline]
    pub(crate) fn others_are_later(&self, now: Instant) -> bool {
        let others = self.groups.get((ROOT / ARITY) as usize + 1);
        others.is_none_or(|Group(dues)| dues.iter().all(|due| due.at() > now))
    }

    /// The earliest timer, which there is: its thread and what it is for. It stays until moved or
    /// cancelled.
    #[inline]
    pub(crate) fn first(&self) -> (usize, Timer) {
        debug_assert!(self.len > 0);
        let id = self.get(ROOT).id();
        let timer = match id % 2 {
            0 => Timer::Release,
            _ => Timer::Timeout,
        };
        ((id / 2) as usize, timer)
    }

    #[inline]
    fn place_of(&self, id: u32) -> Option<u32> {
        let place = *self.place.get(id as usize)?;
        (place != ABSENT).then_some(place)
    }

    #[inline]
    fn get(&self, place: u32) -> Due {
        self.groups[(place / ARITY) as usize].0[(place % ARITY) as usize]
    }

    #[inline]
    fn put(&mut self, place: u32, due: Due) {
        self.groups[(place / ARITY) as usize].0[(place % ARITY) as usize] = due;
        self.place[due.id() as usize] = place;
    }

    fn remove(&mut self, id: u32, place: u32) {
        let end = ROOT + self.len - 1;
        let last = self.get(end);
        self.groups[(end / ARITY) as usize].0[(end % ARITY) as usize] = NEVER;
        self.place[id as usize] = ABSENT;
        self.len -= 1;
        if place != end {
            if place > ROOT && last < self.get(parent(place)) {
                self.up(place, last);
            } else {
                self.down(place, last);
            }
        }
        self.soonest = self.get(ROOT).at();
    }

    #[inline]
    fn up(&mut self, mut place: u32, due: Due) {
        while place > ROOT {
            let above = self.get(parent(place));
            if above <= due {
                break;
            }
            self.put(place, above);
            place = parent(place);
        }
        self.put(place, due);
    }

    /// Written without jumps between the children: which of them is the least is anybody's guess.
    #[inline]
    fn down(&mut self, mut place: u32, due: Due) {
        while let Some(Group(children)) = self.groups.get((place - 2) as usize) {
            let one = u32::from(children[1] < children[0]);
            let other = 2 + u32::from(children[3] < children[2]);
            let least = match children[other as usize] < children[one as usize] {
                true => other,
                false => one,
            };
            let below = children[least as usize];
            if due <= below {
                break;
            }
            self.put(place, below);
            place = (place - 2) * ARITY + least;
        }
        self.put(place, due);
    }
}

/// Of a place behind the root.
#[inline]
fn parent(place: u32) -> u32 {
    place / ARITY + 2
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use punctual_model::Span;

    use super::*;

    #[test]
    fn timers_are_in_the_order_of_instants_then_of_the_file_then_of_ids() {
        let instants = [0, 1, u64::MAX - 1, u64::MAX].map(Instant::from_ticks);
        let numbers = [0, 1, u32::MAX];
        let orders = move |at| numbers.into_iter().map(move |order| (at, order));
        let pairs = instants.into_iter().flat_map(orders);
        let all: Vec<(Instant, u32, u32)> = pairs
            .flat_map(|(at, order)| numbers.map(|id| (at, order, id)))
            .collect();
        let due = |&(at, order, id): &(Instant, u32, u32)| Due::new(at, order, id);
        for (a, b) in all.iter().flat_map(|a| all.iter().map(move |b| (a, b))) {
            assert_eq!(due(a).cmp(&due(b)), a.cmp(b), "{a:?} {b:?}");
        }
        for (at, order, id) in all {
            let due = Due::new(at, order, id);
            assert_eq!((due.at(), due.id()), (at, id));
            assert!(due < NEVER || (order, id) == (u32::MAX, u32::MAX));
        }
    }

    /// A seeded mix of all operations, checked against a sorted list.
    #[test]
    fn agrees_with_a_sorted_list_under_any_operations() {
        const THREADS: usize = 25;
        let mut timeline = Timeline::new(THREADS);
        let mut list: Vec<(Instant, u32, u32)> = Vec::new();
        let mut x = 1_u64;
        // An interpreter (`cargo xtask miri`) takes a thousand times as long.
        let rounds = if cfg!(miri) { 200 } else { 20_000 };
        for _ in 0..rounds {
            x = x
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let id = u32::try_from((x >> 33) % 50).expect("below 50");
            let (thread, timer) = match id % 2 {
                0 => (id as usize / 2, Timer::Release),
                _ => (id as usize / 2, Timer::Timeout),
            };
            if (x >> 50) % 8 == 7 && !list.is_empty() {
                let (thread, timer) = timeline.first();
                let first = list.iter_mut().find(|due| due.2 == id_of(thread, timer));
                let first = first.expect("it is there");
                first.0 = first.0.saturating_add(Span::from_ticks((x >> 40) % 97));
                timeline.defer_first(first.0);
            } else if (x >> 20).is_multiple_of(3) {
                list.retain(|due| due.2 != id);
                timeline.cancel(thread, timer);
            } else {
                list.retain(|due| due.2 != id);
                let at = Instant::from_ticks((x >> 40) % 97);
                match timeline.is_set(thread, timer) {
                    true => timeline.set(thread, timer, at, id % 7),
                    false => timeline.add(thread, timer, at, id % 7),
                }
                list.push((at, id % 7, id));
            }
            list.sort_unstable();
            let first = list.first().map(|due| (due.0, due.2));
            if let Some((_, id)) = first {
                let (thread, timer) = timeline.first();
                assert_eq!(id_of(thread, timer), id);
            }
            assert_eq!(timeline.next(), first.map(|first| first.0));
            let second = list.get(1).map_or(u64::MAX, |due| due.0.ticks());
            for now in [second.saturating_sub(1), second, 50] {
                let later = timeline.others_are_later(Instant::from_ticks(now));
                assert_eq!(later, now < second || list.len() < 2 && now < u64::MAX);
            }
            assert_eq!(timeline.len as usize, list.len());
            assert_eq!(
                timeline.is_set(thread, timer),
                list.iter().any(|due| due.2 == id)
            );
        }
    }

    #[test]
    fn siblings_fill_one_cache_line() {
        assert_eq!((size_of::<Group>(), align_of::<Group>()), (64, 64));
        for place in ROOT..1_000 {
            let first = (place - 2) * ARITY;
            assert!((first..first + ARITY).all(|child| parent(child) == place));
        }
    }
}
