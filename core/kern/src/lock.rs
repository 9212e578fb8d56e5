//! Locks of one shard: who may take them, who holds them, who waits.
//!
//! ```text
//!   thread --waits for--> lock --is held by--> thread --waits for--> lock ...
//! ```
//!
//! A lock of the file is declared beforehand by every thread that uses it, with how long and how.
//! A lock of a runtime is here only while somebody waits for it: the runtime itself grants it, and
//! tells the shard who waits for whom, under a key of its own. Priority inheritance goes along both
//! alike. There are never more of the latter than threads that wait, so their table is reserved
//! at setup and nothing is allocated after it. Rules, whatever the protocol:
//! * INV-LOCK: a lock has one exclusive holder, or readers, or no holder.
//! * A thread waits for at most one lock, and only for one that is held.
//! * A resource that comes free goes to the most urgent of those that want it when they have the
//!   processor; several readers share; a reader waits behind a more urgent writer.

mod sole;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use punctual_model::{AtBudgetEnd, Instant, Mode, Priority, Protocol, ResourceId, Span, Work};
use punctual_order::NodeId;

use crate::effective::WaitOrder;

/// The end of a list, and no lock that is waited for. Uses, locks and threads are counted from 1 in
/// all lists.
const END: u32 = 0;

/// Most resources that one thread holds at any one time.
pub const MAX_NESTING: u32 = 16;

/// What a shard must know about one of its resources. Times count ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResourceTerms {
    /// Which of the system's.
    pub resource: ResourceId,
    /// What keeps the wait for it short.
    pub protocol: Protocol,
    /// What becomes of a holder whose server runs out of budget.
    pub at_budget_end: AtBudgetEnd,
    /// How the closest common scheduler of its users orders them.
    pub wait_order: WaitOrder,
    /// The highest priority among its users, as that scheduler sees them; those with deadlines, if
    /// there are such.
    pub ceiling: Priority,
    /// The least relative deadline less jitter among its users; the longest span without any.
    pub floor: Span,
    /// One of its users has a deadline: the ceiling counts among real-time work.
    pub real_time: bool,
    /// The closest common scheduler of its users.
    pub common: NodeId,
    /// Not all of its users are that scheduler's own.
    pub spans_schedulers: bool,
}

/// What one thread declares about one resource. Times count ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UseTerms {
    /// Number of the resource on its shard.
    pub resource: u32,
    /// The strongest mode in which it locks it.
    pub mode: Mode,
    /// The longest section, inner sections included.
    pub length: Work,
    /// Its priority as the closest common scheduler of all users sees it.
    pub priority: Priority,
}

/// How urgent a thread is at least, whatever it is by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ceiling {
    /// Where priorities decide.
    pub priority: Priority,
    /// Where deadlines decide; [`Instant::MAX`]: among background work only.
    pub absolute_deadline: Instant,
}

/// A lock that a thread holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Hold {
    pub(crate) mode: Mode,
    /// When it was locked.
    pub(crate) since: Instant,
    /// Executed while it is held.
    pub(crate) used: Work,
    /// Held for longer than declared: nothing is inherited by it any more.
    pub(crate) lapsed: bool,
}

/// A thread and a lock that it holds, or has declared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Use {
    pub(crate) thread: u32,
    pub(crate) terms: UseTerms,
    pub(crate) hold: Option<Hold>,
    next_of_thread: u32,
    next_holder: u32,
}

#[derive(Debug)]
struct Lock {
    terms: ResourceTerms,
    /// Of a lock of a runtime: its key, and the use of its holder.
    runtime: Option<(u32, u32)>,
    first_holder: u32,
    /// Threads in the order of their asking.
    waiters: (u32, u32),
}

/// What a thread has to do with locks: numbers, all of them zero at first. So nothing of the table
/// is in memory where no thread has to do with any.
type Links = [u32; 6];

/// The first of its declared uses, and of the locks of a runtime that it holds.
const DECLARED: usize = 0;
const CONTENDED: usize = 1;
/// The lock that it waits for, and its neighbours among the waiters.
const WAITS_FOR: usize = 2;
const BEFORE: usize = 3;
const AFTER: usize = 4;
/// It is among those to be looked at.
const IS_QUEUED: usize = 5;

/// All locks of one shard and all uses of them.
#[derive(Debug)]
pub(crate) struct Locks {
    locks: Vec<Lock>,
    uses: Vec<Use>,
    threads: Box<[Links]>,
    /// By thread: the search that has seen it last.
    seen: Box<[u64]>,
    /// The first of those uses by which a lock of a runtime can be held, and is not.
    free: u32,
    /// First in, first out: threads to be looked at, each at most once.
    queue: VecDeque<u32>,
    searches: u64,
}

fn small(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// The number of the one at this place in its table, and the reverse.
#[inline]
fn number(place: usize) -> u32 {
    small(place + 1)
}

#[inline]
fn place(number: u32) -> usize {
    number.wrapping_sub(1) as usize
}

#[inline]
fn some(at: u32) -> Option<u32> {
    (at != END).then_some(at)
}

impl Locks {
    pub(crate) fn new(threads: usize) -> Self {
        Locks {
            locks: Vec::with_capacity(threads),
            uses: Vec::with_capacity(threads),
            threads: vec![[END; 6]; threads].into_boxed_slice(),
            seen: vec![0; threads].into_boxed_slice(),
            free: END,
            queue: VecDeque::with_capacity(threads),
            searches: 0,
        }
    }

    /// Adds a lock of the file.
    pub(crate) fn add(&mut self, terms: ResourceTerms) -> u32 {
        let lock = self.push(terms);
        self.locks.reserve(self.threads.len());
        lock
    }

    fn push(&mut self, terms: ResourceTerms) -> u32 {
        self.locks.push(Lock {
            terms,
            runtime: None,
            first_holder: END,
            waiters: (END, END),
        });
        small(self.locks.len() - 1)
    }

    /// Declares a use. A second declaration of the same thread and resource widens the first.
    pub(crate) fn declare(&mut self, thread: usize, terms: UseTerms) -> bool {
        if let Some(at) = self.find(thread, terms.resource) {
            let known = &mut self.uses[place(at)].terms;
            known.length = known.length.max(terms.length);
            if terms.mode == Mode::Exclusive {
                known.mode = Mode::Exclusive;
            }
            return true;
        }
        let lock = self.locks.get(terms.resource as usize);
        let is_known = lock.is_some_and(|lock| lock.runtime.is_none());
        if thread >= self.threads.len() || !is_known {
            return false;
        }
        let of = self.push_use(small(thread), terms);
        let next = core::mem::replace(&mut self.threads[thread][DECLARED], of);
        self.get_mut(of).next_of_thread = next;
        self.uses.reserve(self.threads.len());
        true
    }

    /// A thread has ended: the next one of its place has uses of its own. Those that wait for a
    /// lock of its runtime wait on, for nobody.
    pub(crate) fn forget(&mut self, thread: usize) {
        self.threads[thread][DECLARED] = END;
        while let Some(of) = some(self.threads[thread][CONTENDED]) {
            self.abandon(self.get(of).terms.resource);
        }
    }

    /// Those that wait for a lock of a runtime wait on, for nobody.
    pub(crate) fn abandon(&mut self, lock: u32) {
        while let Some(waiter) = self.first_waiter(lock) {
            let _ = self.leave(waiter);
        }
    }

    pub(crate) fn terms(&self, lock: u32) -> &ResourceTerms {
        &self.locks[lock as usize].terms
    }

    /// Whether somebody waits for a lock of a runtime. O(threads).
    pub(crate) fn has_contended(&self) -> bool {
        self.threads.iter().any(|links| links[CONTENDED] != END)
    }

    /// Whether a resource whose users this scheduler orders is handed on otherwise. O(resources).
    pub(crate) fn differs_in_order(&self, node: NodeId, order: WaitOrder) -> bool {
        let declared = self.locks.iter().filter(|lock| lock.runtime.is_none());
        let mut terms = declared.map(|lock| &lock.terms);
        terms.any(|terms| terms.common == node && terms.wait_order != order)
    }

    /// Everything that anybody holds. O(uses).
    pub(crate) fn held(&self) -> impl Iterator<Item = (&Use, Hold)> {
        let all = self.uses.iter();
        all.filter_map(|user| user.hold.map(|hold| (user, hold)))
    }

    pub(crate) fn get(&self, of: u32) -> &Use {
        &self.uses[place(of)]
    }

    pub(crate) fn get_mut(&mut self, of: u32) -> &mut Use {
        &mut self.uses[place(of)]
    }

    /// The use that `thread` declared of `resource`. O(uses of the thread).
    pub(crate) fn find(&self, thread: usize, resource: u32) -> Option<u32> {
        self.uses_of(thread)
            .find(|&of| self.get(of).terms.resource == resource)
    }

    /// The first of the declared uses of a thread.
    pub(crate) fn first_use(&self, thread: usize) -> Option<u32> {
        let links = self.threads.get(thread)?;
        some(links[DECLARED])
    }

    /// The use after this one, of the same thread.
    pub(crate) fn next_use(&self, of: u32) -> Option<u32> {
        some(self.get(of).next_of_thread)
    }

    /// The uses that a thread declared.
    pub(crate) fn uses_of(&self, thread: usize) -> impl Iterator<Item = u32> + '_ {
        core::iter::successors(self.first_use(thread), |&of| self.next_use(of))
    }

    /// The locks of a runtime that a thread holds and others wait for.
    fn contended_of(&self, thread: usize) -> impl Iterator<Item = u32> + '_ {
        core::iter::successors(some(self.threads[thread][CONTENDED]), |&of| {
            self.next_use(of)
        })
    }

    /// Everything that a thread holds, of both kinds.
    pub(crate) fn held_by(&self, thread: usize) -> impl Iterator<Item = (&Use, Hold)> + '_ {
        let all = self.uses_of(thread).chain(self.contended_of(thread));
        all.filter_map(|of| self.get(of).hold.map(|hold| (self.get(of), hold)))
    }

    fn holders(&self, lock: u32) -> impl Iterator<Item = &Use> + '_ {
        let first = some(self.locks[lock as usize].first_holder);
        let all = core::iter::successors(first, |&of| some(self.get(of).next_holder));
        all.map(|of| self.get(of))
    }

    /// Whether the holders leave room for one more in this mode.
    pub(crate) fn has_room(&self, lock: u32, mode: Mode) -> bool {
        self.holders(lock).all(|user| {
            let held = user.hold.map(|hold| hold.mode);
            (held, mode) == (Some(Mode::Shared), Mode::Shared)
        })
    }

    /// A thread holds what it has declared.
    pub(crate) fn hold(&mut self, of: u32, mode: Mode, since: Instant) {
        let lock = self.get(of).terms.resource;
        let first = &mut self.locks[lock as usize].first_holder;
        let next_holder = core::mem::replace(first, of);
        let user = self.get_mut(of);
        user.next_holder = next_holder;
        user.hold = Some(Hold {
            mode,
            since,
            used: Work::ZERO,
            lapsed: false,
        });
    }

    /// A thread holds a lock no more. O(holders).
    pub(crate) fn release(&mut self, of: u32) -> Option<Hold> {
        let lock = self.get(of).terms.resource;
        let next = core::mem::replace(&mut self.get_mut(of).next_holder, END);
        let first = self.locks[lock as usize].first_holder;
        if first == of {
            self.locks[lock as usize].first_holder = next;
        } else {
            let all = core::iter::successors(some(first), |&at| some(self.get(at).next_holder));
            let before = all.into_iter().find(|&at| self.get(at).next_holder == of);
            if let Some(before) = before {
                self.get_mut(before).next_holder = next;
            }
        }
        self.get_mut(of).hold.take()
    }

    /// The lock that a thread waits for.
    #[inline]
    pub(crate) fn waits_for(&self, thread: usize) -> Option<u32> {
        some(self.threads[thread][WAITS_FOR]).map(|lock| lock - 1)
    }

    pub(crate) fn first_waiter(&self, lock: u32) -> Option<usize> {
        some(self.locks[lock as usize].waiters.0).map(place)
    }

    /// Who waits for the same lock, and came next.
    pub(crate) fn next_waiter(&self, thread: usize) -> Option<usize> {
        some(self.threads[thread][AFTER]).map(place)
    }

    /// Who waits for a lock, in the order of their asking.
    pub(crate) fn waiters(&self, lock: u32) -> impl Iterator<Item = usize> + '_ {
        core::iter::successors(self.first_waiter(lock), |&thread| self.next_waiter(thread))
    }

    /// A thread, which waits for nothing, waits for a lock behind all others.
    pub(crate) fn wait(&mut self, thread: usize, lock: u32) {
        let (first, last) = self.locks[lock as usize].waiters;
        let me = number(thread);
        let links = &mut self.threads[thread];
        links[WAITS_FOR] = lock + 1;
        (links[BEFORE], links[AFTER]) = (last, END);
        match some(last) {
            Some(last) => self.threads[place(last)][AFTER] = me,
            None => debug_assert!(first == END, "INV-LOCK: the list of waiters has two ends"),
        }
        let first = if first == END { me } else { first };
        self.locks[lock as usize].waiters = (first, me);
    }

    /// A thread waits no more; for what it did. Those who held that are to be looked at. O(1), and
    /// for the last waiter of a lock of a runtime O(uses of its holder).
    pub(crate) fn leave(&mut self, thread: usize) -> Option<u32> {
        let lock = self.waits_for(thread)?;
        self.look_at_holders(lock);
        let links = &mut self.threads[thread];
        links[WAITS_FOR] = END;
        let (before, after) = (links[BEFORE], links[AFTER]);
        match some(before) {
            Some(before) => self.threads[place(before)][AFTER] = after,
            None => self.locks[lock as usize].waiters.0 = after,
        }
        match some(after) {
            Some(after) => self.threads[place(after)][BEFORE] = before,
            None => self.locks[lock as usize].waiters.1 = before,
        }
        let left = &self.locks[lock as usize];
        if let Some((_, of)) = left.runtime.filter(|_| left.waiters.0 == END) {
            self.unlink(of);
            let _ = self.release(of);
            self.get_mut(of).next_of_thread = core::mem::replace(&mut self.free, of);
        }
        Some(lock)
    }

    /// The lock of a runtime that `holder` holds under `key`, if anybody waits for it.
    /// O(contended locks of the holder).
    pub(crate) fn contended(&self, holder: usize, key: u32) -> Option<u32> {
        let locks = self.contended_of(holder);
        let mut locks = locks.map(|of| self.get(of).terms.resource);
        locks.find(|&lock| self.key(lock) == Some(key))
    }

    /// The same; somebody is about to wait for it.
    pub(crate) fn contend(&mut self, holder: usize, key: u32, wait_order: WaitOrder) -> u32 {
        if let Some(lock) = self.contended(holder, key) {
            return lock;
        }
        let terms = ResourceTerms {
            resource: ResourceId(u16::MAX),
            protocol: Protocol::Inheritance,
            at_budget_end: AtBudgetEnd::Overrun,
            wait_order,
            ceiling: Priority::LOWEST,
            floor: Span::ZERO,
            real_time: false,
            common: NodeId::ROOT,
            spans_schedulers: false,
        };
        let of = match some(self.free) {
            Some(of) => {
                self.free = self.get(of).next_of_thread;
                of
            }
            None => self.push_contended(terms),
        };
        let lock = self.get(of).terms.resource;
        let node = &mut self.locks[lock as usize];
        (node.terms, node.runtime) = (terms, Some((key, of)));
        self.hold(of, Mode::Exclusive, Instant::ZERO);
        self.link(of, holder);
        lock
    }

    /// One more lock of a runtime, with room for its holder. Both tables have room for as many as
    /// there are threads.
    fn push_contended(&mut self, terms: ResourceTerms) -> u32 {
        debug_assert!(
            self.locks.len() < self.locks.capacity(),
            "nothing is allocated"
        );
        let terms = UseTerms {
            resource: self.push(terms),
            mode: Mode::Exclusive,
            length: Work::MAX,
            priority: Priority::LOWEST,
        };
        self.push_use(u32::MAX, terms)
    }

    fn push_use(&mut self, thread: u32, terms: UseTerms) -> u32 {
        self.uses.push(Use {
            thread,
            terms,
            hold: None,
            next_of_thread: END,
            next_holder: END,
        });
        small(self.uses.len())
    }

    /// A lock of a runtime that somebody waits for is `to`'s from now on. One thread holds one lock
    /// under one key: its waiters join those of a lock that `to` holds under the same key.
    pub(crate) fn hand(&mut self, lock: u32, to: usize) {
        let Some((key, of)) = self.locks[lock as usize].runtime else {
            return;
        };
        match self.contended(to, key).filter(|&held| held != lock) {
            Some(held) => {
                while let Some(waiter) = self.first_waiter(lock) {
                    let _ = self.leave(waiter);
                    self.wait(waiter, held);
                }
            }
            None => {
                self.unlink(of);
                self.link(of, to);
            }
        }
    }

    fn key(&self, lock: u32) -> Option<u32> {
        self.locks[lock as usize].runtime.map(|(key, _)| key)
    }

    fn link(&mut self, of: u32, holder: usize) {
        let next = core::mem::replace(&mut self.threads[holder][CONTENDED], of);
        let user = self.get_mut(of);
        (user.thread, user.next_of_thread) = (small(holder), next);
    }

    fn unlink(&mut self, of: u32) {
        let user = *self.get(of);
        let (holder, next) = (user.thread as usize, user.next_of_thread);
        let before = self
            .contended_of(holder)
            .find(|&at| self.get(at).next_of_thread == of);
        match before {
            Some(before) => self.get_mut(before).next_of_thread = next,
            None => self.threads[holder][CONTENDED] = next,
        }
    }

    /// Puts a thread behind those to be looked at, unless it is among them.
    pub(crate) fn look_at(&mut self, thread: usize) {
        if core::mem::replace(&mut self.threads[thread][IS_QUEUED], 1) == 0 {
            self.queue.push_back(small(thread));
        }
    }

    /// Whether a thread is to be looked at.
    pub(crate) fn has_to_look(&self) -> bool {
        !self.queue.is_empty()
    }

    /// The next thread to be looked at.
    pub(crate) fn next_to_look_at(&mut self) -> Option<usize> {
        let thread = self.queue.pop_front()? as usize;
        self.threads[thread][IS_QUEUED] = 0;
        Some(thread)
    }

    /// Puts the holders of a lock behind those to be looked at.
    pub(crate) fn look_at_holders(&mut self, lock: u32) {
        let mut next = some(self.locks[lock as usize].first_holder);
        while let Some(of) = next {
            let user = *self.get(of);
            next = some(user.next_holder);
            self.look_at(user.thread as usize);
        }
    }

    /// Whether `thread` is reached from those to be looked at by going from each to the lock that
    /// it waits for or (by a use) `asks` for, to the holders of that, and so on.
    /// O(threads + holders).
    pub(crate) fn leads_to(&mut self, thread: usize, asks: impl Fn(usize) -> Option<u32>) -> bool {
        self.searches += 1;
        let mut found = false;
        while let Some(holder) = self.next_to_look_at() {
            found |= holder == thread;
            let seen = core::mem::replace(&mut self.seen[holder], self.searches);
            if seen == self.searches {
                continue;
            }
            let asked = asks(holder).map(|of| self.get(of).terms.resource);
            if let Some(lock) = self.waits_for(holder).or(asked) {
                self.look_at_holders(lock);
            }
        }
        found
    }

    /// Checks INV-LOCK, and that the lists of holders and waiters are whole. O(uses + threads).
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        for lock in 0..small(self.locks.len()) {
            let mode = |wanted: Mode| {
                let modes = self.holders(lock).filter_map(|user| user.hold);
                modes.filter(|hold| hold.mode == wanted).count()
            };
            let is_waited_for = self.first_waiter(lock).is_some();
            let (exclusive, shared) = (mode(Mode::Exclusive), mode(Mode::Shared));
            if exclusive > 1 || (exclusive == 1 && shared > 0) {
                return Err("I5: one exclusive holder, or readers only");
            }
            if self.key(lock).is_some() && exclusive > 0 && !is_waited_for {
                return Err("I8: a lock of a runtime is here while somebody waits for it");
            }
            if is_waited_for && exclusive + shared == 0 {
                return Err("I6: whoever waits waits for something that is held");
            }
            let mut before = END;
            for thread in self.waiters(lock) {
                let links = &self.threads[thread];
                if links[WAITS_FOR] != lock + 1 || links[BEFORE] != before {
                    return Err("I6: whoever waits for a lock is in its list");
                }
                before = number(thread);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
