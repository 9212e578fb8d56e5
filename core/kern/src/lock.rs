//! Resources of one shard: who uses them, who holds them, who waits.
//!
//! Every thread declares beforehand what it uses, for how long and how. Each such *use* is one
//! record, and everything that happens to it happens in that record: free, waited for, held. So
//! nothing is allocated after setup, and who holds or waits is found by looking at the users of the
//! resource: O(users of that resource). Rules, whatever the protocol:
//! * INV-RES: a resource has one exclusive holder, or readers, or no holder.
//! * What comes free goes to the most urgent of those that want it when they have the processor;
//!   several readers share; a reader waits behind a more urgent writer.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use punctual_model::{AtBudgetEnd, Instant, Mode, Priority, Protocol, ResourceId, Span, Work};

use crate::effective::Urgency;
use crate::node::NodeId;

const END: u32 = u32::MAX;

/// Most resources that one thread holds at any one time.
pub const MAX_NESTING: u32 = 16;

/// What a shard must know about one of its resources. Times count ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResourcePlan {
    /// Which of the system's.
    pub resource: ResourceId,
    /// What keeps the wait for it short.
    pub protocol: Protocol,
    /// What becomes of a holder whose server runs out of budget.
    pub at_budget_end: AtBudgetEnd,
    /// How the closest common scheduler of its users orders them.
    pub urgency: Urgency,
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
pub struct UsePlan {
    /// Number of the resource on its shard.
    pub resource: u32,
    /// The strongest mode in which it locks it.
    pub mode: Mode,
    /// The longest section, inner sections included.
    pub length: Work,
    /// Its priority as the closest common scheduler of all users sees it.
    pub priority: Priority,
}

/// What a use is at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum UseState {
    Free,
    Waits {
        mode: Mode,
        until: Option<Instant>,
        /// Number of the wait: the last tie-break between waiters.
        turn: u64,
    },
    Holds {
        mode: Mode,
        /// When it was locked.
        since: Instant,
        /// Executed while it is held.
        used: Work,
        /// Held for longer than declared: it lends no urgency any more.
        lapsed: bool,
    },
}

/// A thread and a resource that it may lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Use {
    pub(crate) thread: u32,
    pub(crate) plan: UsePlan,
    pub(crate) state: UseState,
    next_of_thread: u32,
    next_of_resource: u32,
}

impl Use {
    pub(crate) fn is_held(&self) -> bool {
        matches!(self.state, UseState::Holds { .. })
    }

    pub(crate) fn waits(&self) -> bool {
        matches!(self.state, UseState::Waits { .. })
    }
}

#[derive(Debug)]
struct Entry {
    plan: ResourcePlan,
    first_user: u32,
}

/// All resources of one shard and all uses of them.
#[derive(Debug)]
pub(crate) struct Resources {
    entries: Vec<Entry>,
    uses: Vec<Use>,
    first_of: Box<[u32]>,
    turns: u64,
    /// First in, first out, through `links`: threads to be looked at.
    queue: (u32, u32),
    /// For each thread: the next in the queue, and the search that has seen it last.
    links: Box<[(u32, u64)]>,
    searches: u64,
}

fn small(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(END)
}

impl Resources {
    pub(crate) fn new(threads: usize) -> Self {
        Resources {
            entries: Vec::new(),
            uses: Vec::new(),
            first_of: vec![END; threads].into_boxed_slice(),
            turns: 0,
            queue: (END, END),
            links: vec![(END, 0); threads].into_boxed_slice(),
            searches: 0,
        }
    }

    pub(crate) fn add(&mut self, plan: ResourcePlan) -> u32 {
        self.entries.push(Entry {
            plan,
            first_user: END,
        });
        small(self.entries.len() - 1)
    }

    /// Declares a use. A second declaration of the same thread and resource widens the first.
    pub(crate) fn declare(&mut self, thread: usize, plan: UsePlan) -> bool {
        if let Some(at) = self.find(thread, plan.resource) {
            let known = &mut self.uses[at as usize].plan;
            known.length = known.length.max(plan.length);
            if plan.mode == Mode::Exclusive {
                known.mode = Mode::Exclusive;
            }
            return true;
        }
        let id = small(self.uses.len());
        let Some(first_of) = self.first_of.get_mut(thread) else {
            return false;
        };
        let Some(entry) = self.entries.get_mut(plan.resource as usize) else {
            return false;
        };
        self.uses.push(Use {
            thread: small(thread),
            plan,
            state: UseState::Free,
            next_of_thread: *first_of,
            next_of_resource: entry.first_user,
        });
        *first_of = id;
        entry.first_user = id;
        true
    }

    /// A thread has ended: the next one of its place has uses of its own.
    pub(crate) fn forget(&mut self, thread: usize) {
        self.first_of[thread] = END;
    }

    pub(crate) fn plan(&self, resource: u32) -> &ResourcePlan {
        &self.entries[resource as usize].plan
    }

    /// Every use that was declared, also of threads that have ended.
    pub(crate) fn uses(&self) -> impl Iterator<Item = &Use> {
        self.uses.iter()
    }

    pub(crate) fn get(&self, at: u32) -> &Use {
        &self.uses[at as usize]
    }

    pub(crate) fn get_mut(&mut self, at: u32) -> &mut Use {
        &mut self.uses[at as usize]
    }

    /// The use that `thread` declared of `resource`. O(uses of the thread).
    pub(crate) fn find(&self, thread: usize, resource: u32) -> Option<u32> {
        self.uses_of(thread)
            .find(|&at| self.get(at).plan.resource == resource)
    }

    /// The first of the uses of a thread.
    pub(crate) fn first_use(&self, thread: usize) -> Option<u32> {
        self.first_of.get(thread).copied().filter(|&at| at != END)
    }

    /// The use after this one, of the same thread.
    pub(crate) fn next_use(&self, at: u32) -> Option<u32> {
        Some(self.get(at).next_of_thread).filter(|&at| at != END)
    }

    /// The uses that a thread declared.
    pub(crate) fn uses_of(&self, thread: usize) -> impl Iterator<Item = u32> + '_ {
        core::iter::successors(self.first_use(thread), |&at| self.next_use(at))
    }

    /// The first of everybody's uses of a resource.
    pub(crate) fn first_user(&self, resource: u32) -> Option<u32> {
        Some(self.entries[resource as usize].first_user).filter(|&at| at != END)
    }

    /// The use after this one, of the same resource.
    pub(crate) fn next_user(&self, at: u32) -> Option<u32> {
        Some(self.get(at).next_of_resource).filter(|&at| at != END)
    }

    /// Everybody's uses of a resource.
    pub(crate) fn users(&self, resource: u32) -> impl Iterator<Item = u32> + '_ {
        core::iter::successors(self.first_user(resource), |&at| self.next_user(at))
    }

    /// Whether the holders leave room for one more in this mode.
    pub(crate) fn has_room(&self, resource: u32, mode: Mode) -> bool {
        self.users(resource).all(|at| match self.get(at).state {
            UseState::Holds { mode: held, .. } => (held, mode) == (Mode::Shared, Mode::Shared),
            _ => true,
        })
    }

    pub(crate) fn take_turn(&mut self) -> u64 {
        self.turns += 1;
        self.turns
    }

    /// Puts a thread behind those to be looked at, unless it is among them.
    pub(crate) fn look_at(&mut self, thread: u32) {
        let (first, last) = self.queue;
        if self.links[thread as usize].0 != END || last == thread {
            return;
        }
        if first == END {
            self.queue = (thread, thread);
        } else {
            self.links[last as usize].0 = thread;
            self.queue.1 = thread;
        }
    }

    /// The next thread to be looked at.
    pub(crate) fn next_to_look_at(&mut self) -> Option<usize> {
        let (first, last) = self.queue;
        if first == END {
            return None;
        }
        let next = core::mem::replace(&mut self.links[first as usize].0, END);
        self.queue = if first == last {
            (END, END)
        } else {
            (next, last)
        };
        Some(first as usize)
    }

    /// Whether `thread` is reached by going from the holders of `resource`, and those to be looked
    /// at already, to what they ask for (`asked_by`, a use) or to whom they lend otherwise
    /// (`lends_to`), to the holders of that, and so on. O(threads + uses).
    pub(crate) fn leads_on(
        &mut self,
        resource: Option<u32>,
        thread: usize,
        asked_by: impl Fn(usize) -> Option<u32>,
        lends_to: impl Fn(usize) -> Option<usize>,
    ) -> bool {
        self.searches += 1;
        let mut found = false;
        if let Some(resource) = resource {
            self.look_at_holders(resource);
        }
        while let Some(holder) = self.next_to_look_at() {
            found |= holder == thread;
            let seen = core::mem::replace(&mut self.links[holder].1, self.searches);
            if seen == self.searches {
                continue;
            }
            if let Some(of) = asked_by(holder) {
                self.look_at_holders(self.get(of).plan.resource);
            }
            if let Some(holder) = lends_to(holder) {
                self.look_at(small(holder));
            }
        }
        found
    }

    /// Puts the holders of a resource behind those to be looked at.
    pub(crate) fn look_at_holders(&mut self, resource: u32) {
        let mut at = self.entries[resource as usize].first_user;
        while at != END {
            let user = *self.get(at);
            at = user.next_of_resource;
            if user.is_held() {
                self.look_at(user.thread);
            }
        }
    }

    /// Checks INV-RES and that whoever waits has something to wait for. O(uses · users).
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        for resource in 0..small(self.entries.len()) {
            let (mut exclusive, mut shared, mut waiting) = (0, 0, 0);
            for at in self.users(resource) {
                match self.get(at).state {
                    UseState::Free => {}
                    UseState::Waits { .. } => waiting += 1,
                    UseState::Holds {
                        mode: Mode::Exclusive,
                        ..
                    } => exclusive += 1,
                    UseState::Holds { .. } => shared += 1,
                }
            }
            if exclusive > 1 || (exclusive == 1 && shared > 0) {
                return Err("I5: one exclusive holder, or readers only");
            }
            if waiting > 0 && exclusive + shared == 0 {
                return Err("I6: whoever waits waits for something that is held");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(protocol: Protocol) -> ResourcePlan {
        ResourcePlan {
            resource: ResourceId(0),
            protocol,
            at_budget_end: AtBudgetEnd::Overrun,
            urgency: Urgency::Priority,
            ceiling: Priority::new(1),
            floor: Span::ZERO,
            real_time: true,
            common: NodeId::ROOT,
            spans_schedulers: false,
        }
    }

    fn a_use(resource: u32, mode: Mode, length: u64) -> UsePlan {
        UsePlan {
            resource,
            mode,
            length: Work::from_ticks(length),
            priority: Priority::new(1),
        }
    }

    fn table(uses: &[(usize, u32)]) -> Resources {
        let mut table = Resources::new(8);
        for _ in 0..4 {
            let _ = table.add(plan(Protocol::Inheritance));
        }
        for &(thread, resource) in uses {
            assert!(table.declare(thread, a_use(resource, Mode::Exclusive, 1)));
        }
        table
    }

    fn hold(table: &mut Resources, thread: usize, resource: u32, mode: Mode) {
        let at = table.find(thread, resource).expect("declared");
        table.get_mut(at).state = UseState::Holds {
            mode,
            since: Instant::ZERO,
            used: Work::ZERO,
            lapsed: false,
        };
    }

    #[test]
    fn only_declared_uses_are_found_and_a_second_declaration_widens_the_first() {
        let mut t = table(&[(0, 1), (0, 2), (3, 1)]);
        assert!(!t.declare(0, a_use(9, Mode::Shared, 1)), "no such resource");
        assert!(!t.declare(9, a_use(1, Mode::Shared, 1)), "no such thread");
        assert_eq!(t.find(3, 2), None);
        assert!(t.declare(5, a_use(3, Mode::Shared, 7)));
        assert!(t.declare(5, a_use(3, Mode::Exclusive, 4)));
        let at = t.find(5, 3).expect("declared");
        assert_eq!(t.get(at).plan, a_use(3, Mode::Exclusive, 7));
        assert_eq!(t.users(1).count(), 2);
        t.forget(3);
        assert_eq!(t.find(3, 1), None);
    }

    #[test]
    fn readers_leave_room_for_readers_and_a_writer_for_nobody() {
        let mut t = table(&[(0, 0), (1, 0)]);
        assert!(t.has_room(0, Mode::Exclusive));
        hold(&mut t, 0, 0, Mode::Shared);
        assert!(t.has_room(0, Mode::Shared) && !t.has_room(0, Mode::Exclusive));
        hold(&mut t, 1, 0, Mode::Exclusive);
        assert!(!t.has_room(0, Mode::Shared));
        assert!(t.check().is_err(), "INV-RES: a reader beside a writer");
    }

    fn leads(
        table: &mut Resources,
        resource: u32,
        thread: usize,
        asked: &impl Fn(usize) -> Option<u32>,
    ) -> bool {
        table.leads_on(Some(resource), thread, asked, |_| None)
    }

    #[test]
    fn a_search_goes_along_every_chain_and_ends() {
        // 0 holds r0 and asks r1; 1 and 2 read r1; 2 asks r2; 3 holds r2.
        let uses = [
            (0, 0),
            (0, 1),
            (1, 1),
            (2, 1),
            (2, 2),
            (3, 2),
            (3, 0),
            (4, 3),
        ];
        let mut t = table(&uses);
        hold(&mut t, 0, 0, Mode::Exclusive);
        hold(&mut t, 1, 1, Mode::Shared);
        hold(&mut t, 2, 1, Mode::Shared);
        hold(&mut t, 3, 2, Mode::Exclusive);
        let (of_0, of_2, of_3) = (t.find(0, 1), t.find(2, 2), t.find(3, 0));
        let asked = |thread| match thread {
            0 => of_0,
            2 => of_2,
            _ => None,
        };
        assert!(leads(&mut t, 0, 3, &asked) && leads(&mut t, 0, 1, &asked));
        assert!(!leads(&mut t, 0, 4, &asked) && !leads(&mut t, 2, 0, &asked));
        let circle = |thread| if thread == 3 { of_3 } else { asked(thread) };
        assert!(!leads(&mut t, 0, 4, &circle));
    }

    #[test]
    fn threads_are_looked_at_once_each_in_the_order_of_asking() {
        let mut t = table(&[]);
        for thread in [3, 1, 3, 7, 1] {
            t.look_at(thread);
        }
        let order: Vec<usize> = core::iter::from_fn(|| t.next_to_look_at()).collect();
        assert_eq!(order, [3, 1, 7]);
        t.look_at(3);
        assert_eq!(t.next_to_look_at(), Some(3));
    }
}
