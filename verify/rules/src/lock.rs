//! Locks: their holders, their waiters, the length of sections.

use punctual_kern::{Event, ResourceTerms};
use punctual_model::{AtBudgetEnd, Mode};

use crate::Rule;
use crate::entry::Judge;
use crate::resource::{Claim, State};

impl Judge<'_> {
    fn resource(&self, resource: u32) -> &str {
        self.log.resource_name(self.cpu, resource)
    }

    /// The declared use of a resource by a thread.
    fn claim(&mut self, thread: usize, resource: u32) -> Option<usize> {
        let found = self.locks.find(thread, resource);
        if found.is_none() {
            self.accuse(Rule::LocksExclude, thread, "uses what it did not declare");
        }
        found
    }

    /// A thread holds a resource.
    pub(crate) fn locked(&mut self, thread: usize, resource: u32, mode: Mode) {
        let asked = self.threads[thread].request.take() == Some((resource, mode));
        let Some(at) = self.claim(thread, resource) else {
            return;
        };
        let Claim { plan, state, .. } = self.locks.claims[at];
        let handed = matches!(state, State::Waits(m) | State::Postponed(m) if m == mode);
        let declared = mode == Mode::Shared || plan.mode == Mode::Exclusive;
        let wanted = handed || (asked && state == State::Free);
        if !wanted || !declared || !self.locks.has_room(resource, mode) {
            let resource = self.resource(resource);
            let what = format!("locks `{resource}` ({mode:?}), which it may not ({state:?})");
            self.accuse(Rule::LocksExclude, thread, what);
        }
        self.section_fits(thread, at, handed);
        self.locks.claims[at].state = State::Holds {
            mode,
            since: self.now,
            used: 0,
            lapsed: false,
        };
        let t = &self.threads[thread];
        if t.ready && self.locks.shields(thread) {
            self.nodes[t.queue].protected = Some(t.id);
        }
        self.sections_changed(thread, at);
    }

    /// No section begins that its budgets do not cover: the thread's own, and with `check-first`
    /// those of its schedulers.
    fn section_fits(&mut self, thread: usize, claim: usize, handed: bool) {
        let claim = &self.locks.claims[claim];
        let length = claim.plan.length.ticks();
        let checks = |plan: &ResourceTerms| plan.at_budget_end == AtBudgetEnd::CheckFirst;
        let first = self.locks.plan(claim).is_some_and(checks);
        let t = &self.threads[thread];
        if !handed && t.is_budgeted() && t.budget < length && length <= t.allotment() {
            let what = "begins a section beyond its budget";
            self.accuse(Rule::BudgetRespected, thread, what);
        } else if first && !self.has_supply_for(thread, length) {
            let what = "begins a section beyond its supply";
            self.accuse(Rule::SupplyRespected, thread, what);
        }
    }

    /// A thread waits for a resource.
    pub(crate) fn waits_for(&mut self, thread: usize, resource: u32, mode: Mode) {
        self.threads[thread].request = None;
        let Some(at) = self.claim(thread, resource) else {
            return;
        };
        self.locks.claims[at].state = State::Free;
        if self.locks.could_have(resource, mode) {
            let what = format!("waits for `{}`, which is free", self.resource(resource));
            self.accuse(Rule::LocksPassOn, thread, what);
        }
        self.locks.claims[at].state = State::Waits(mode);
    }

    /// A section waits for a budget that it fits into.
    pub(crate) fn postponed(&mut self, thread: usize, resource: u32) {
        let Some(at) = self.claim(thread, resource) else {
            return;
        };
        let claim = &self.locks.claims[at];
        let mode = match (claim.state, self.threads[thread].request) {
            (State::Waits(mode), _) | (_, Some((_, mode))) => mode,
            _ => claim.plan.mode,
        };
        self.locks.claims[at].state = State::Postponed(mode);
        self.threads[thread].request = Some((resource, mode));
        self.park(thread, true);
    }

    /// A thread gives a resource back.
    pub(crate) fn unlocked(&mut self, thread: usize, resource: u32) {
        let Some(at) = self.claim(thread, resource) else {
            return;
        };
        match std::mem::replace(&mut self.locks.claims[at].state, State::Free) {
            State::Holds { lapsed: true, .. } => {}
            State::Holds { .. } => self.sections_changed(thread, at),
            _ => {
                let what = format!(
                    "gives `{}` back, which it does not hold",
                    self.resource(resource)
                );
                self.accuse(Rule::LocksExclude, thread, what);
            }
        }
        self.unprotect_outside(thread);
    }

    /// A section is longer than declared.
    pub(crate) fn section_overran(&mut self, thread: usize, resource: u32) {
        let Some(at) = self.claim(thread, resource) else {
            return;
        };
        let claim = &mut self.locks.claims[at];
        let length = claim.plan.length.ticks();
        let over = match &mut claim.state {
            State::Holds { used, lapsed, .. } => {
                !std::mem::replace(lapsed, true) && *used >= length
            }
            _ => false,
        };
        if !over {
            self.accuse(Rule::SectionsBounded, thread, "has no section that is over");
        }
        self.sections_changed(thread, at);
        self.unprotect_outside(thread);
    }

    /// The thread keeps its siblings away no more, unless another section of it does.
    pub(crate) fn unprotect_outside(&mut self, thread: usize) {
        if !self.threads[thread].in_section && !self.locks.shields(thread) {
            self.unprotect(thread);
        }
    }

    /// A section has begun, ended or lapsed: the part that may go on without budget is another.
    fn sections_changed(&mut self, thread: usize, claim: usize) {
        let plan = self.locks.plan(&self.locks.claims[claim]);
        if plan.is_some_and(|plan| plan.at_budget_end == AtBudgetEnd::Overrun) {
            let most = self.locks.may_overrun(thread);
            self.locks.overruns.retain(|(t, _)| *t != thread);
            self.locks.overruns.extend(most.map(|most| (thread, most)));
        }
    }

    /// A thread waits for no lock any more. If the lock came free (`asks`), the thread asks for it
    /// again when it is chosen, unless it has been given it at once.
    pub(crate) fn wait_is_over(&mut self, thread: usize, asks: bool) {
        for claim in &mut self.locks.claims {
            match claim.state {
                _ if claim.thread != thread => {}
                State::Waits(mode) => {
                    claim.state = State::Free;
                    if asks {
                        self.threads[thread].request = Some((claim.plan.resource, mode));
                    }
                }
                State::Postponed(_) if !asks => {
                    claim.state = State::Free;
                    return self.park(thread, false);
                }
                _ => {}
            }
        }
    }

    /// A thread has ended.
    pub(crate) fn forget_locks(&mut self, thread: usize) {
        self.wait_is_over(thread, false);
        let holds = |c: &Claim| matches!(c.state, State::Holds { .. });
        if self.locks.of(thread).any(holds) {
            self.accuse(Rule::LocksPassOn, thread, "ends and keeps what it holds");
        }
        self.locks.forget(thread);
        for t in &mut self.threads {
            t.waits_on = t.waits_on.filter(|(holder, _)| *holder != thread);
        }
        (self.threads[thread].waits_on, self.threads[thread].ceiling) = (None, None);
    }

    /// The thread that goes on below a node whose budget is used up, and for how long.
    pub(crate) fn overdrawer(&self, at: usize) -> Option<(usize, u64)> {
        let may = |entry: &&(usize, u64)| {
            let t = &self.threads[entry.0];
            entry.1 > 0 && t.ready && self.is_below(t.queue, at)
        };
        self.locks.overruns.iter().rev().find(may).copied()
    }

    /// At the end of an entry no thread waits for what is free, or for supply that is there.
    pub(crate) fn locks_are_passed_on(&mut self) {
        let could = |claim: &&Claim| match claim.state {
            State::Waits(mode) => self.locks.could_have(claim.plan.resource, mode),
            State::Postponed(_) => self.has_supply_for(claim.thread, claim.plan.length.ticks()),
            State::Free | State::Holds { .. } => false,
        };
        if let Some(claim) = self.locks.claims.iter().find(could).copied() {
            let what = format!(
                "waits for `{}` and could have it",
                self.resource(claim.plan.resource)
            );
            self.accuse(Rule::LocksPassOn, claim.thread, what);
        }
    }

    /// The core wants to be back when a section of the running thread is as long as declared.
    pub(crate) fn section_is_armed(&mut self, thread: usize) {
        let left = self.locks.sections(thread).map(|(_, left, _)| left).min();
        if left.is_some_and(|left| !self.is_armed_within(left)) {
            let what = "runs, and nothing is armed for the end of its section";
            self.accuse(Rule::SectionsBounded, thread, what);
        }
    }

    /// A lock of a runtime is another thread's: its waiters wait for the other.
    pub(crate) fn handed_over(&mut self, event: Event) {
        let Event::HandOver { key, from, to } = event else {
            return;
        };
        let (Some(from), Some(to)) = (self.find_alive(from), self.find_alive(to)) else {
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
        let one_level = self.nodes.iter().filter(|node| node.alive).count() == 1;
        if let Some(Event::BlockOn { holder, key, .. }) = self.event.filter(|_| one_level) {
            let holder = self.find_alive(holder);
            self.threads[thread].waits_on = holder.map(|holder| (holder, key));
        }
    }
}
