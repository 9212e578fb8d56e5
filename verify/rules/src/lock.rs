//! Locks: their holders, their waiters, the length of sections.

use punctual_kern::Event;
use punctual_model::{AtBudgetEnd, Mode, ThreadId};

use crate::Rule;
use crate::entry::Judge;
use crate::queue::Entity;
use crate::resource::{Claim, Hold, State};

impl Judge<'_> {
    /// The declared use of a resource by a thread.
    pub(crate) fn claim(&self, thread: ThreadId, resource: u32) -> Option<usize> {
        self.locks.find(self.find(thread)?, resource)
    }

    /// What must hold of a declared use.
    fn lawful(&mut self, holds: bool, rule: Rule, claim: &Claim, what: &str) {
        let resource = self.log.resource_name(self.cpu, claim.declared.resource);
        let what = format_args!("{what} `{resource}` ({:?})", claim.state);
        self.must(holds, rule, Entity::Thread(claim.thread), what);
    }

    /// A thread holds a resource.
    pub(crate) fn locked(&mut self, at: usize, mode: Mode) {
        let claim = self.locks.0[at];
        let (thread, resource) = (claim.thread, claim.declared.resource);
        let asked = self.threads[thread].request.take() == Some((resource, mode));
        let handed = matches!(claim.state, State::Waits(m) | State::Postponed(m) if m == mode);
        let declared = mode == Mode::Shared || claim.declared.mode == Mode::Exclusive;
        let wanted = handed || (asked && claim.state == State::Free);
        let right = wanted && declared && self.locks.has_room(resource, mode);
        self.lawful(right, Rule::LocksExclude, &claim, "locks, and may not,");
        self.section_fits(&claim, handed);
        self.locks.0[at].state = State::Holds(Hold {
            mode,
            since: self.now,
            used: 0,
            lapsed: false,
        });
        if self.threads[thread].ready && self.locks.shields(thread) {
            self.protect(thread);
        }
        self.sections_changed(&claim);
    }

    /// No section begins that its budgets do not cover: the thread's own, and with `check-first`
    /// those of its schedulers.
    fn section_fits(&mut self, claim: &Claim, handed: bool) {
        let length = claim.declared.length.ticks();
        let first = claim.terms.at_budget_end == AtBudgetEnd::CheckFirst;
        let t = &self.threads[claim.thread];
        let fits = handed || t.background || t.budget >= length || length > t.allotment();
        let what = "has too little budget for";
        self.lawful(fits, Rule::BudgetRespected, claim, what);
        let fits = !first || self.has_supply_for(claim.thread, length);
        let what = "has too little supply for";
        self.lawful(fits, Rule::SupplyRespected, claim, what);
    }

    /// A thread waits for a resource.
    pub(crate) fn waits_for(&mut self, at: usize, mode: Mode) {
        let claim = self.locks.0[at];
        self.waits(claim.thread);
        self.threads[claim.thread].request = None;
        self.locks.0[at].state = State::Free;
        let taken = !self.locks.could_have(claim.declared.resource, mode);
        self.lawful(taken, Rule::LocksPassOn, &claim, "waits for what is free:");
        self.locks.0[at].state = State::Waits(mode);
    }

    /// A section waits for a budget that it fits into.
    pub(crate) fn postponed(&mut self, at: usize) {
        let Claim {
            thread,
            declared,
            state,
            ..
        } = self.locks.0[at];
        self.waits(thread);
        let mode = match (state, self.threads[thread].request) {
            (State::Waits(mode), _) | (_, Some((_, mode))) => mode,
            _ => declared.mode,
        };
        self.locks.0[at].state = State::Postponed(mode);
        self.threads[thread].request = Some((declared.resource, mode));
        self.parks(thread);
    }

    /// A thread gives a resource back.
    pub(crate) fn unlocked(&mut self, at: usize) {
        let claim = self.locks.0[at];
        self.locks.0[at].state = State::Free;
        let holds = matches!(claim.state, State::Holds(_));
        let what = "gives back, and has not,";
        self.lawful(holds, Rule::LocksExclude, &claim, what);
        if claim.section().is_some() {
            self.sections_changed(&claim);
        }
        self.unprotect(claim.thread);
    }

    /// A section is longer than declared.
    pub(crate) fn section_overran(&mut self, at: usize) {
        let claim = self.locks.0[at];
        if let State::Holds(hold) = &mut self.locks.0[at].state {
            hold.lapsed = true;
        }
        let over = claim.left() == Some(0);
        let what = "is not at the end of its section:";
        self.lawful(over, Rule::SectionsBounded, &claim, what);
        self.sections_changed(&claim);
        self.unprotect(claim.thread);
    }

    /// A section has begun, ended or lapsed: the last to do so overruns first.
    fn sections_changed(&mut self, claim: &Claim) {
        if claim.overruns() {
            self.locks.0.sort_by_key(|c| c.thread == claim.thread);
            self.threads[claim.thread].overdraft = self.locks.may_overrun(claim.thread);
        }
    }

    /// A thread waits for no lock any more. If the lock came free (`asks`), the thread asks for it
    /// again when it is chosen, unless it has been given it at once.
    pub(crate) fn wait_is_over(&mut self, thread: usize, asks: bool) {
        for claim in self.locks.0.iter_mut().filter(|c| c.thread == thread) {
            match claim.state {
                State::Waits(mode) => {
                    claim.state = State::Free;
                    if asks {
                        self.threads[thread].request = Some((claim.declared.resource, mode));
                    }
                }
                State::Postponed(_) if !asks => claim.state = State::Free,
                _ => {}
            }
        }
    }

    /// A thread has ended.
    pub(crate) fn forget_locks(&mut self, thread: usize) {
        let holds = |c: &Claim| matches!(c.state, State::Holds(_));
        let (who, what) = (Entity::Thread(thread), "ends and keeps what it holds");
        let freed = !self.locks.of(thread).any(holds);
        self.must(freed, Rule::LocksPassOn, who, what);
        self.locks.0.retain(|claim| claim.thread != thread);
        for t in &mut self.threads {
            t.waits_on = t.waits_on.filter(|(holder, _)| *holder != thread);
        }
        let t = &mut self.threads[thread];
        (t.waits_on, t.ceiling, t.request) = (None, None, None);
    }

    /// The thread that goes on below a node whose budget is used up, and for how long.
    pub(crate) fn overdrawer(&self, at: usize) -> Option<(usize, u64)> {
        let mut last = self.locks.0.iter().rev();
        let claim = last.find(|claim| {
            let t = &self.threads[claim.thread];
            t.overdraft > 0 && t.ready && self.is_below(t.queue, at)
        })?;
        Some((claim.thread, self.threads[claim.thread].overdraft))
    }

    /// At the end of an entry no thread waits for what is free, or for supply that is there.
    pub(crate) fn locks_are_passed_on(&mut self) {
        let could = |claim: &&Claim| match claim.state {
            State::Waits(mode) => self.locks.could_have(claim.declared.resource, mode),
            State::Postponed(_) => self.has_supply_for(claim.thread, claim.declared.length.ticks()),
            State::Free | State::Holds(_) => false,
        };
        if let Some(claim) = self.locks.0.iter().find(could).copied() {
            let what = "could have what it waits for:";
            self.lawful(false, Rule::LocksPassOn, &claim, what);
        }
    }

    /// The core wants to be back when a section of the running thread is as long as declared.
    pub(crate) fn section_is_armed(&mut self, thread: usize) {
        if let Some(left) = self.locks.of(thread).filter_map(Claim::left).min() {
            let (end, who) = (self.after(left), Entity::Thread(thread));
            self.ends(end, Rule::SectionsBounded, who, "its section");
        }
    }

    /// A lock of a runtime is another thread's: its waiters wait for the other.
    pub(crate) fn handed_over(&mut self, key: u32, (from, to): (ThreadId, ThreadId)) {
        let (Some(from), Some(to)) = (self.find(from), self.find(to)) else {
            return;
        };
        let asks = self.threads[to].request.is_some();
        for (thread, t) in self.threads.iter_mut().enumerate() {
            if t.waits_on == Some((from, key)) {
                t.waits_on = (!asks && thread != to).then_some((to, key));
            }
        }
    }

    /// The thread that ran waits from now on, for a holder if its event says so. Keys of threads of
    /// different schedulers do not compare: in a tree none is inherited by locks of a runtime.
    pub(crate) fn waits_for_holder(&mut self, thread: usize) {
        let one_level = self.nodes.iter().all(|node| node.parent.is_none());
        if let (true, Event::BlockOn { holder, key, .. }) = (one_level, self.event) {
            let holder = self.find(holder);
            self.threads[thread].waits_on = holder.map(|holder| (holder, key));
        }
    }
}
