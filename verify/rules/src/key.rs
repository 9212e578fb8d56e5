//! By which key each ready entity must be queued: its own, or what it inherits.
//!
//! A thread's own key is that of its job, or of the later release whose allotment the job lives on.
//! It inherits from those that wait for what it holds, and from ceilings (priority inheritance).
//! The log states each key that is not the job's own, and is held against this.

use punctual_kern::{Ceiling, ResourceTerms, WaitOrder};
use punctual_model::{Instant, Mode, Priority, Protocol, Span};

use crate::Rule;
use crate::entry::Judge;
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

/// The ceiling of a resource from `since` on.
fn ceiling(terms: &ResourceTerms, since: Instant, rank: u32) -> Option<Key> {
    use Protocol::{ImmediateCeiling, StackResource};
    let ceiling = Ceiling {
        priority: terms.ceiling,
        absolute_deadline: since.saturating_add(terms.floor),
    };
    let key = Key::at_least(!terms.real_time, ceiling, rank);
    matches!(terms.protocol, ImmediateCeiling | StackResource).then_some(key)
}

/// The key of a thread that holds what reaches beyond its scheduler: before all others within it.
const FIRST: Ceiling = Ceiling {
    priority: Priority::new(u32::MAX),
    absolute_deadline: Instant::ZERO,
};

impl Judge<'_> {
    /// What a thread may inherit, each with what it is compared by.
    fn inherited(&self, thread: usize, most: usize) -> Vec<(Key, WaitOrder)> {
        let mut all = Vec::new();
        let Some(most) = most.checked_sub(1) else {
            return all;
        };
        let order = self.threads[thread].constraint.order;
        for (claim, hold) in self.locks.sections(thread) {
            let terms = &claim.terms;
            if self.reaches_out(thread, terms) {
                all.push((Key::at_least(false, FIRST, order), WaitOrder::Priority));
                continue;
            }
            all.extend(ceiling(terms, hold.since, order).map(|key| (key, terms.wait_order)));
            if terms.spans_schedulers {
                continue;
            }
            for other in self.locks.waiting(claim.declared.resource) {
                for mut key in self.effective(other, most) {
                    if hold.mode == Mode::Shared {
                        // Several readers that one writer waits for must not tie.
                        key.release = key.release.saturating_sub(Span::from_ticks(1));
                        key.rank = order;
                    }
                    all.push((key, terms.wait_order));
                }
            }
        }
        let by = WaitOrder::of(self.nodes[ROOT].queue.policy);
        for (waiter, t) in self.threads.iter().enumerate() {
            if t.waits_on.is_some_and(|(holder, _)| holder == thread) {
                let lent = self.effective(waiter, most).into_iter();
                all.extend(lent.map(|key| (key, by)));
            }
        }
        let ceiling = self.threads[thread].ceiling.map(|ceiling| {
            let background = ceiling.absolute_deadline == Instant::MAX;
            (Key::at_least(background, ceiling, order), by)
        });
        all.extend(ceiling);
        all
    }

    /// The keys by which a thread may be queued: the most urgent that it inherits, if that is more
    /// urgent than its own. There are several where the policy does not tell them apart.
    fn effective(&self, thread: usize, most: usize) -> Vec<Key> {
        let own = self.threads[thread].own_key();
        let all = self.inherited(thread, most);
        let beats = |a: &Key, b: &Key, by| rank(a, by) < rank(b, by);
        let first = all
            .iter()
            .filter(|(key, by)| !all.iter().any(|(a, _)| beats(a, key, *by)));
        let lawful = first.map(|(key, by)| if beats(key, &own, *by) { *key } else { own });
        let mut lawful: Vec<Key> = lawful.collect();
        if lawful.is_empty() {
            lawful.push(own);
        }
        lawful
    }

    /// The log states by which key a ready thread is queued.
    pub(crate) fn ordered(&mut self, thread: usize, key: Key, yielded: bool) {
        let t = &self.threads[thread];
        let (at, entity) = (t.queue, Entity::Thread(thread));
        if !t.ready {
            return self.accuse(Rule::OnlyReadyRuns, entity, "is queued and not ready");
        }
        let to = self.queue_of(thread, key.background);
        for at in [at, to] {
            self.forget_answer(at);
        }
        let old = self.nodes[at].queue.key(entity);
        if to != at || old.is_some_and(|old| old.background != key.background) {
            // It comes behind those that take turns there.
            self.nodes[at].queue.leave(entity);
            self.threads[thread].queue = to;
            self.nodes[to].queue.enter(entity, key, Some(self.now));
        }
        self.nodes[to].queue.order(entity, key, yielded);
    }

    /// The log states on the allotment of which release a job lives: the last one, or a later place
    /// of the stream that became no job.
    pub(crate) fn deferred(&mut self, thread: usize, dates: (Instant, Instant)) {
        let now = self.now;
        let t = &self.threads[thread];
        let lives_on = t.current.as_ref().and_then(|current| current.lives_on);
        let lawful = lives_on.is_some_and(|(last, known)| {
            let deadline = t.deadline_of(dates.0).max(last.1);
            let later = (last.0..=now).contains(&dates.0) && dates.1 == deadline;
            // After the last release only places of the stream come.
            match known && dates.0 < t.constraint.until {
                true => dates == last,
                false => later,
            }
        });
        let what = format_args!("lives on the release {dates:?}, should {lives_on:?}");
        self.must(lawful, Rule::PolicyOrder, Entity::Thread(thread), what);
        let t = &mut self.threads[thread];
        if let Some(current) = t.current.as_mut() {
            (current.deferred, current.lives_on) = (Some(dates), None);
        }
        if t.ready {
            let (queue, key) = (&mut self.nodes[t.queue].queue, t.own_key());
            queue.order(Entity::Thread(thread), key, false);
        }
    }

    /// At the end of an entry the log has stated of which release each job is.
    pub(crate) fn deferrals_are_told(&mut self) {
        for thread in 0..self.threads.len() {
            let t = &mut self.threads[thread];
            let own = t.own_key();
            let current = t.current.as_mut().filter(|current| current.started);
            let lives_on = current.and_then(|current| current.lives_on.take());
            let told = lives_on
                .is_none_or(|(dates, known)| !known || dates == (own.release, own.deadline));
            let what = "lives on a later release, which nobody was told";
            self.must(told, Rule::PolicyOrder, Entity::Thread(thread), what);
        }
    }

    /// At the end of an entry: whoever is ready is queued by the best of its own key and what it
    /// inherits, and no other.
    pub(crate) fn keys_are_right(&mut self) {
        for thread in 0..self.threads.len() {
            let (at, entity) = (self.threads[thread].queue, Entity::Thread(thread));
            let Some(key) = self.nodes[at].queue.key(entity) else {
                continue;
            };
            let lawful = self.effective(thread, self.threads.len());
            // A stated key leaves out the last tie-break.
            let stated = |lawful: &&Key| lawful.with_rank(key.rank) == key;
            let Some(found) = lawful.iter().find(stated) else {
                let what = format_args!("is queued by {key:?}, should be by one of {lawful:?}");
                return self.accuse(Rule::PolicyOrder, entity, what);
            };
            self.nodes[at].queue.set_rank(entity, found.rank);
        }
    }

    /// Whether who holds this delays threads of schedulers other than its own.
    fn reaches_out(&self, thread: usize, terms: &ResourceTerms) -> bool {
        let common = terms.common.index();
        let home = self.threads[thread].home;
        terms.spans_schedulers && home != common && self.is_below(home, common)
    }

    /// At least how urgent a scheduler is while somebody in it holds what others share.
    fn raised(&self, at: usize) -> Option<Priority> {
        let parent = self.nodes[at].parent?;
        let mut raised: Option<Priority> = None;
        for (thread, t) in self.threads.iter().enumerate() {
            if !t.ready || !self.is_below(t.home, at) {
                continue;
            }
            for terms in self.locks.sections(thread).map(|(claim, _)| &claim.terms) {
                let common = terms.common.index();
                if !self.reaches_out(thread, terms) || !self.is_below(parent, common) {
                    continue;
                }
                let to = match parent == common {
                    true => terms.ceiling,
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
            let (raised, priority) = (self.raised(at), node.terms.priority);
            let raised = raised.filter(|to| !priority.is_higher_than(*to));
            let right = match raised {
                Some(to) => key.priority == to && key.release == Instant::ZERO,
                None => key.priority == priority,
            };
            let what = format_args!("is queued by {key:?}, should be raised to {raised:?}");
            self.must(right, Rule::PolicyOrder, Entity::Node(at), what);
        }
    }
}
