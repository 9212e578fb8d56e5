//! By which key each ready entity must be queued: its own, or what it inherits.
//!
//! A thread's own key is that of its job, or of the later release whose allotment the job lives on.
//! It inherits from those that wait for what it holds, and from ceilings (priority inheritance).
//! The log states each key that is not the job's own, and is held against this.

use punctual_kern::{ResourcePlan, WaitOrder};
use punctual_model::{Instant, Mode, Priority, Protocol, Span};

use crate::Rule;
use crate::entry::Judge;
use crate::lock::State;
use crate::node::ROOT;
use crate::queue::{Entity, Key};

type Rank = (bool, u64, Instant, u32);

fn rank(key: &Key, by: WaitOrder) -> Rank {
    let by_priority = u64::from(u32::MAX - key.priority.number());
    match by {
        WaitOrder::Priority => (key.background, by_priority, key.release, key.rank),
        _ if key.background => (true, by_priority, key.release, key.rank),
        WaitOrder::Deadline => (false, key.deadline.ticks(), key.release, key.rank),
        WaitOrder::Fifo => (false, 0, Instant::ZERO, 0),
    }
}

/// What a ceiling lends from `since` on.
fn ceiling(plan: &ResourcePlan, since: Instant, rank: u32) -> Option<Key> {
    use Protocol::{ImmediateCeiling, StackResource};
    matches!(plan.protocol, ImmediateCeiling | StackResource).then_some(Key {
        background: !plan.real_time,
        priority: plan.ceiling,
        deadline: since.saturating_add(plan.floor),
        release: Instant::ZERO,
        rank,
    })
}

impl Judge<'_> {
    /// What a thread may inherit, each with what it is compared by.
    fn inherited(&self, thread: usize, most: usize) -> Vec<(Key, WaitOrder)> {
        let mut all = Vec::new();
        let Some(most) = most.checked_sub(1) else {
            return all;
        };
        let order = self.threads[thread].constraint.order;
        for (plan, _, claim) in self.locks.sections(thread) {
            let State::Holds { mode, since, .. } = claim.state else {
                continue;
            };
            if self.reaches_out(thread, plan) {
                let first = Key {
                    background: false,
                    priority: Priority::new(u32::MAX),
                    deadline: Instant::ZERO,
                    release: Instant::ZERO,
                    rank: order,
                };
                all.push((first, WaitOrder::Priority));
                continue;
            }
            all.extend(ceiling(plan, since, order).map(|key| (key, plan.wait_order)));
            if plan.spans_schedulers {
                continue;
            }
            for other in self.locks.waiting(claim.plan.resource) {
                let mut key = self.effective(other, most);
                if mode == Mode::Shared {
                    // Several readers that one writer waits for must not tie.
                    key.release = key.release.saturating_sub(Span::from_ticks(1));
                    key.rank = order;
                }
                all.push((key, plan.wait_order));
            }
        }
        let by = self.lenders.by;
        let lenders = self.lenders.of(thread);
        all.extend(lenders.map(|lender| (self.effective(lender, most), by)));
        all.extend(self.lenders.ceiling(thread, order).map(|key| (key, by)));
        all
    }

    /// Whether somebody who waits for what a thread holds lives on an allotment whose release the
    /// log has not stated: what it lends is not known.
    fn inherits_unknown(&self, thread: usize, most: usize) -> bool {
        let Some(most) = most.checked_sub(1) else {
            return false;
        };
        let held = self.locks.sections(thread);
        let waiting = held.flat_map(|(.., claim)| self.locks.waiting(claim.plan.resource));
        let mut all = waiting.chain(self.lenders.of(thread));
        all.any(|waiter| {
            let current = self.threads[waiter].current.as_ref();
            current.is_some_and(|c| c.hidden) || self.inherits_unknown(waiter, most)
        })
    }

    /// By which key a thread that waits would be queued.
    fn effective(&self, thread: usize, most: usize) -> Key {
        let mut best = self.threads[thread].own_key();
        for (key, by) in self.inherited(thread, most) {
            if rank(&key, by) < rank(&best, by) {
                best = key;
            }
        }
        best
    }

    /// The log states by which key a ready thread is queued.
    pub(crate) fn ordered(&mut self, thread: usize, key: Key, yielded: bool) {
        let t = &self.threads[thread];
        if !t.ready {
            let what = format!("{} is queued and not ready", self.name(thread));
            return self.violation(Rule::OnlyReadyRuns, what);
        }
        let (at, entity, own) = (t.queue, Entity::Thread(t.id), t.own_key());
        if key != own
            && self.may_be_deferred_to(thread, &key)
            && let Some(current) = self.threads[thread].current.as_mut()
        {
            current.deferred = Some((key.release, key.deadline));
            current.hidden = false;
        }
        let to = self.queue_of(thread, key.background);
        for at in [at, to] {
            if self.nodes[at].own_time {
                self.forget_answer(at);
            }
        }
        if to != at
            || self.nodes[at]
                .queue
                .key(entity)
                .is_some_and(|old| old.background != key.background)
        {
            // It comes behind those that take turns there.
            let alone = self.nodes[at].protected == Some(self.threads[thread].id);
            self.nodes[at].queue.leave(entity);
            self.unprotect(thread);
            self.threads[thread].queue = to;
            self.nodes[to].queue.enter(entity, key, Some(self.now));
            if alone {
                self.nodes[to].protected = Some(self.threads[thread].id);
            }
        }
        self.nodes[to].queue.order(entity, key, yielded);
    }

    /// Whether a job may live on the allotment of a release that this key is of: the last one told,
    /// or a later place of the stream that became no job.
    fn may_be_deferred_to(&self, thread: usize, key: &Key) -> bool {
        let t = &self.threads[thread];
        let own = Key {
            release: key.release,
            deadline: key.deadline,
            ..t.own_key()
        };
        let Some(current) = t.current.as_ref().filter(|_| own == *key) else {
            return false;
        };
        let job = current.job;
        let deadline = job.deadline.max(t.deadline_of(key.release));
        let last = t.seen_then.max(job.arrival);
        let period = t
            .constraint
            .class
            .min_separation()
            .map_or(1, Span::ticks)
            .max(1);
        let goes_on = t.change.is_none() && key.release < t.constraint.until;
        let lawful = match t.is_clocked() && goes_on {
            true => key.release == last,
            false => key.release >= last && key.release <= self.now,
        };
        let on_grid = !t.is_clocked() || key.release.since(last).ticks().is_multiple_of(period);
        lawful && on_grid && key.deadline == deadline
    }

    /// At the end of an entry: whoever is ready is queued by the best of its own key and what it
    /// inherits, and no other.
    pub(crate) fn keys_are_right(&mut self) {
        for thread in 0..self.threads.len() {
            let t = &self.threads[thread];
            if !t.ready || t.dead || self.inherits_unknown(thread, self.threads.len()) {
                continue;
            }
            let Some(key) = self.nodes[t.queue].queue.key(Entity::Thread(t.id)) else {
                continue;
            };
            let (own, at, entity) = (t.own_key(), t.queue, Entity::Thread(t.id));
            let hidden = t.current.as_ref().is_some_and(|current| current.hidden);
            let inherited = self.inherited(thread, self.threads.len());
            let is_it = |other: &Key| {
                Key {
                    rank: key.rank,
                    ..*other
                } == key
            };
            let from = inherited.iter().find(|(other, _)| is_it(other));
            let by_own_key = is_it(&own);
            let key = match from.filter(|_| !by_own_key) {
                Some((other, _)) => *other,
                None => Key {
                    rank: own.rank,
                    ..key
                },
            };
            self.nodes[at].queue.set_rank(entity, key.rank);
            let known = by_own_key || from.is_some();
            let beaten = |(other, by): &(Key, WaitOrder)| rank(other, *by) < rank(&key, *by);
            let by_own = key != own
                && !hidden
                && inherited
                    .iter()
                    .all(|(_, by)| rank(&own, *by) <= rank(&key, *by));
            if !known || by_own || inherited.iter().any(beaten) {
                let name = self.name(thread);
                let what = format!(
                    "{name} is queued by {key:?}, its own is {own:?}, inherits {inherited:?}"
                );
                self.violation(Rule::PolicyOrder, what);
                return;
            }
        }
    }

    /// Whether who holds this delays threads of schedulers other than its own.
    fn reaches_out(&self, thread: usize, plan: &ResourcePlan) -> bool {
        let common = plan.common.index();
        let home = self.threads[thread].home;
        plan.spans_schedulers && home != common && self.is_below(home, common)
    }

    /// At least how urgent a scheduler is while somebody in it holds what others share.
    fn raised(&self, at: usize) -> Option<Priority> {
        let parent = self.nodes[at].parent?;
        let mut raised: Option<Priority> = None;
        for (thread, t) in self.threads.iter().enumerate() {
            if !t.ready || !self.is_below(t.home, at) {
                continue;
            }
            for (plan, ..) in self.locks.sections(thread) {
                let common = plan.common.index();
                if !self.reaches_out(thread, plan) || !self.is_below(parent, common) {
                    continue;
                }
                let to = match parent == common {
                    true => plan.ceiling,
                    false => Priority::new(u32::MAX),
                };
                let higher = |old: Priority| if to.is_higher_than(old) { to } else { old };
                raised = Some(raised.map_or(to, higher));
            }
        }
        raised
    }

    /// At the end of an entry: schedulers are as urgent as on their terms, or as what their threads
    /// hold makes them.
    pub(crate) fn schedulers_are_raised(&mut self) {
        for at in ROOT + 1..self.nodes.len() {
            let node = &self.nodes[at];
            let parent = node.parent.unwrap_or(ROOT);
            let Some(key) = self.nodes[parent].queue.key(Entity::Node(at)) else {
                continue;
            };
            let raised = self.raised(at);
            let raised = raised.filter(|to| !node.priority.is_higher_than(*to));
            let right = match raised {
                Some(to) => key.priority == to && key.release == Instant::ZERO,
                None => key.priority == node.priority,
            };
            if !right {
                let name = self.node_name(at);
                let what = format!("{name} is queued by {key:?}, should be raised to {raised:?}");
                self.violation(Rule::PolicyOrder, what);
            }
        }
    }
}
