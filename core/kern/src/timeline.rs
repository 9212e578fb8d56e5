//! Pending releases, replenishments and timeouts: the next instant that matters.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use punctual_model::Instant;
use punctual_order::Capacity;

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

/// Ids of timers and places of the heap have 32 bits, and no place is [`ABSENT`].
const _: () = assert!(Capacity::MOST_THREADS as u64 * 2 + (ROOT as u64) < u32::MAX as u64);

const NOTHING: Group = Group([NEVER; ARITY as usize]);

/// The place of a timer that is not in the heap. All are so at first: a table of zeros is in memory
/// only as far as it is used.
const ABSENT: u32 = 0;

/// A link of a thread whose release is not in the line. All are so at first, too.
const OUTSIDE: u32 = 0;

/// Nobody is next to this one in the line.
const NOBODY: u32 = u32::MAX;

/// Two timers per thread; equal instants in the order of the file.
///
/// ```text
///   line     releases that were set behind all of the line: O(1)
///   heap     all others: O(log n)
///
///   heap, group 0    -  -  -  root
///         group 1    children of the root: places 4 to 7
///         group 2    children of place 4         ... of place p: group p - 2
/// ```
///
/// Where periods are equal, all that came again are in the line. Of several periods the longest
/// are; the others share a smaller heap. The place of each timer is kept, so any is set, moved or
/// cancelled in O(log n). A thread takes memory in the table of one of them alone, as long as its
/// neighbours are in the same.
#[derive(Debug)]
pub(crate) struct Timeline {
    line: Line,
    /// The heap: behind the last timer all are [`NEVER`]. It has room for all timers, and is made
    /// as far as it was ever used.
    groups: Vec<Group>,
    /// By id: where it is in the heap.
    place: Box<[u32]>,
    /// Of the heap.
    len: u32,
    /// The instant of the first; the last of all if there is none.
    soonest: Instant,
    /// Whether there is one.
    is_set: bool,
}

/// Timers in ascending order, linked: at most the release of each thread.
#[derive(Debug)]
struct Line {
    /// By row, which is the number of a thread and one. Nobody has the first.
    links: Box<[Link]>,
    /// [`NEVER`] if it is empty.
    head: Due,
    /// Less than any other if it is empty.
    tail: Due,
}

/// An instant in two halves, the order of the file, and the rows on both sides: numbers, all of
/// them zero ([`OUTSIDE`]) at first.
type Link = [u32; 5];

const AT: usize = 0;
const ORDER: usize = 2;
const NEXT: usize = 3;
const PREVIOUS: usize = 4;

#[inline]
fn link(due: Due, next: u32, previous: u32) -> Link {
    let [low, high] = halves(due.at());
    [low, high, due.order(), next, previous]
}

#[inline]
fn halves(at: Instant) -> [u32; 2] {
    let bytes = at.ticks().to_le_bytes();
    let [a, b, c, d, e, f, g, h] = bytes;
    [
        u32::from_le_bytes([a, b, c, d]),
        u32::from_le_bytes([e, f, g, h]),
    ]
}

/// When the release of a link comes.
#[inline]
fn instant(link: &Link) -> Instant {
    Instant::from_ticks(u64::from(link[AT + 1]) << 32 | u64::from(link[AT]))
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
        u32::try_from(self.0 & u128::from(u32::MAX)).unwrap_or(u32::MAX)
    }

    #[inline]
    fn order(self) -> u32 {
        u32::try_from(self.0 >> 32 & u128::from(u32::MAX)).unwrap_or(u32::MAX)
    }

    #[inline]
    fn thread(self) -> usize {
        (self.id() / 2) as usize
    }

    /// Where the line has the release of its thread.
    #[inline]
    fn row(self) -> u32 {
        self.id() / 2 + 1
    }

    #[inline]
    fn is_release(self) -> bool {
        self.id().is_multiple_of(2)
    }
}

#[inline]
fn id_of(thread: usize, timer: Timer) -> u32 {
    u32::try_from(2 * thread + usize::from(timer == Timer::Timeout)).unwrap_or(u32::MAX)
}

impl Timeline {
    pub(crate) fn new(threads: usize) -> Self {
        let timers = threads * 2;
        let most = (timers + ROOT as usize).div_ceil(ARITY as usize).max(1);
        let mut groups = Vec::with_capacity(most);
        groups.push(NOTHING);
        Timeline {
            groups,
            place: vec![ABSENT; timers].into_boxed_slice(),
            line: Line::new(threads),
            len: 0,
            soonest: Instant::MAX,
            is_set: false,
        }
    }

    #[inline]
    pub(crate) fn set(&mut self, thread: usize, timer: Timer, at: Instant, order: u32) {
        let id = id_of(thread, timer);
        let due = Due::new(at, order, id);
        if timer == Timer::Release && self.line.has(thread) {
            self.line.unlink(thread);
        }
        match self.place_of(id) {
            None if timer == Timer::Release && self.line.tail < due => self.line.append(due),
            None => self.push(due),
            Some(place) if due < self.get(place) => self.up(place, due),
            Some(place) => self.down(place, due),
        }
        self.note_soonest();
    }

    /// The earliest timer comes again, at a later instant.
    #[inline]
    pub(crate) fn defer_first(&mut self, at: Instant) {
        let (root, head) = (self.get(ROOT), self.line.head);
        let first = root.min(head);
        debug_assert!(self.next().is_some_and(|first| first <= at));
        let due = first.moved_to(at);
        let goes_last = self.line.tail < due && first.is_release();
        match (head < root, goes_last) {
            (true, true) => self.line.rotate(due),
            (false, false) => self.down(ROOT, due),
            (true, false) => {
                self.line.unlink(first.thread());
                self.push(due);
            }
            (false, true) => {
                self.remove(first.id(), ROOT);
                self.line.append(due);
            }
        }
        self.note_soonest();
    }

    #[inline]
    fn note_soonest(&mut self) {
        let first = self.get(ROOT).min(self.line.head);
        self.is_set = self.len > 0 || self.line.head != NEVER;
        debug_assert!(self.is_set || first.at() == Instant::MAX);
        self.soonest = first.at();
    }

    #[inline]
    pub(crate) fn cancel(&mut self, thread: usize, timer: Timer) {
        let id = id_of(thread, timer);
        if timer == Timer::Release && self.line.has(thread) {
            self.line.unlink(thread);
        } else if let Some(place) = self.place_of(id) {
            self.remove(id, place);
        } else {
            return;
        }
        self.note_soonest();
    }

    pub(crate) fn is_set(&self, thread: usize, timer: Timer) -> bool {
        let in_line = timer == Timer::Release && self.line.has(thread);
        in_line || self.place_of(id_of(thread, timer)).is_some()
    }

    #[inline]
    pub(crate) fn next(&self) -> Option<Instant> {
        self.is_set.then_some(self.soonest)
    }

    /// [`Timeline::next`], or the last of all instants.
    #[inline]
    pub(crate) fn next_or_end(&self) -> Instant {
        self.soonest
    }

    /// Whether all timers but the earliest are later than `now`.
    #[inline]
    pub(crate) fn others_are_later(&self, now: Instant) -> bool {
        let (root, head) = (self.get(ROOT), self.line.head);
        if head < root {
            return root.at() > now && self.line.second_is_later(now);
        }
        let children = self.groups.get((ROOT / ARITY) as usize + 1);
        head.at() > now && children.is_none_or(|Group(dues)| dues.iter().all(|due| due.at() > now))
    }

    /// The earliest timer, which there is: its thread and what it is for. It stays until moved or
    /// cancelled.
    #[inline]
    pub(crate) fn first(&self) -> (usize, Timer) {
        debug_assert!(self.is_set);
        let first = self.get(ROOT).min(self.line.head);
        let timer = match first.is_release() {
            true => Timer::Release,
            false => Timer::Timeout,
        };
        (first.thread(), timer)
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
    }

    /// A timer that is not set goes into the heap.
    #[inline]
    fn push(&mut self, due: Due) {
        let place = ROOT + self.len;
        if self.groups.len() == (place / ARITY) as usize {
            debug_assert!(self.groups.len() < self.groups.capacity());
            self.groups.push(NOTHING);
        }
        self.len += 1;
        self.up(place, due);
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

impl Line {
    fn new(threads: usize) -> Line {
        Line {
            links: vec![[OUTSIDE; 5]; threads + 1].into_boxed_slice(),
            head: NEVER,
            tail: Due(0),
        }
    }

    /// Whether the release of a thread is here.
    #[inline]
    fn has(&self, thread: usize) -> bool {
        self.links[thread + 1][NEXT] != OUTSIDE
    }

    /// The release in a row; `None`: there is no such row.
    #[inline]
    fn due_of(&self, row: u32) -> Option<Due> {
        let link = self.links.get(row as usize)?;
        Some(Due::new(instant(link), link[ORDER], row * 2 - 2))
    }

    #[inline]
    fn second_is_later(&self, now: Instant) -> bool {
        let next = self.links[self.head.row() as usize][NEXT];
        let second = self.links.get(next as usize);
        second.is_none_or(|second| instant(second) > now)
    }

    /// A timer that is not here, and is not before the last.
    #[inline]
    fn append(&mut self, due: Due) {
        let mut previous = NOBODY;
        if self.head == NEVER {
            self.head = due;
        } else {
            previous = self.tail.row();
            self.links[previous as usize][NEXT] = due.row();
        }
        self.links[due.row() as usize] = link(due, NOBODY, previous);
        self.tail = due;
    }

    /// The first comes again, as the last.
    #[inline]
    fn rotate(&mut self, due: Due) {
        let (first, last) = (self.head.row(), self.tail.row());
        self.tail = due;
        let own = &mut self.links[first as usize];
        [own[AT], own[AT + 1]] = halves(due.at());
        if first == last {
            self.head = due;
            return;
        }
        let next = own[NEXT];
        (own[NEXT], own[PREVIOUS]) = (NOBODY, last);
        self.links[last as usize][NEXT] = first;
        self.begin_with(next);
    }

    /// The release in this row is the first.
    #[inline]
    fn begin_with(&mut self, row: u32) {
        self.links[row as usize][PREVIOUS] = NOBODY;
        self.head = self.due_of(row).unwrap_or(NEVER);
    }

    /// A release leaves.
    fn unlink(&mut self, thread: usize) {
        let own = &mut self.links[thread + 1];
        let (next, previous) = (own[NEXT], own[PREVIOUS]);
        own[NEXT] = OUTSIDE;
        match (previous, next) {
            (NOBODY, NOBODY) => (self.head, self.tail) = (NEVER, Due(0)),
            (NOBODY, next) => self.begin_with(next),
            (previous, next) => {
                self.links[previous as usize][NEXT] = next;
                match self.links.get_mut(next as usize) {
                    Some(after) => after[PREVIOUS] = previous,
                    None => self.tail = self.due_of(previous).unwrap_or(Due(0)),
                }
            }
        }
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
        let mut longest_line = 0;
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
                // Around the first, now and then before it; or behind all, as most releases are.
                let first = list.first().map_or(0, |due| due.0.ticks());
                let last = list.last().map_or(0, |due| due.0.ticks());
                let at = match (timer, (x >> 53) % 2) {
                    (Timer::Release, 0) => last + (x >> 40) % 3,
                    _ => (first + (x >> 40) % 97).saturating_sub(10),
                };
                let at = Instant::from_ticks(at);
                timeline.set(thread, timer, at, id % 7);
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
            let in_line = timeline.line.walk();
            assert!(in_line.is_sorted(), "{in_line:?}");
            longest_line = longest_line.max(in_line.len());
            assert_eq!(timeline.len as usize + in_line.len(), list.len());
            for due in in_line {
                assert!(timeline.line.has(due.thread()));
                assert_eq!(timeline.place_of(due.id()), None, "in one of them");
                assert!(list.contains(&(due.at(), due.order(), due.id())));
            }
            assert_eq!(
                timeline.is_set(thread, timer),
                list.iter().any(|due| due.2 == id)
            );
        }
        // Miri does a hundredth of the rounds.
        let least = if cfg!(miri) { 2 } else { 10 };
        assert!(longest_line >= least, "{longest_line}");
    }

    impl Line {
        fn walk(&self) -> Vec<Due> {
            let mut all = Vec::new();
            let mut next = (self.head != NEVER).then(|| self.head.row());
            while let Some(due) = next.and_then(|row| self.due_of(row)) {
                all.push(due);
                next = Some(self.links[due.row() as usize][NEXT]);
            }
            assert_eq!(all.last().copied().unwrap_or(Due(0)), self.tail);
            all
        }
    }

    #[test]
    fn releases_of_one_period_are_all_in_the_line_after_the_first_of_each() {
        let mut timeline = Timeline::new(9);
        for thread in 0..9_usize {
            let at = Instant::from_ticks(7 * (thread * 5 % 9) as u64);
            timeline.set(thread, Timer::Release, at, 0);
        }
        assert!(timeline.len > 2, "some are between others");
        for served in 0..90 {
            let in_line = timeline.line.walk().len();
            assert!(in_line == 9 || served < 9, "{in_line} after {served}");
            let at = timeline.next().expect("all are set");
            assert_eq!(at.ticks(), 7 * served as u64);
            timeline.defer_first(at.saturating_add(Span::from_ticks(63)));
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
