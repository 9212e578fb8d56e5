//! Locks: their holders, their waiters, the length of sections.

use punctual_kern::{Ceiling, CpuPlan, Event, ResourcePlan, UsePlan, WaitOrder};
use punctual_model::{AtBudgetEnd, Instant, Mode, Protocol, Work};

use crate::Rule;
use crate::entry::Judge;
use crate::queue::Key;

/// The state of a declared use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    Free,
    Waits(Mode),
    /// It waits for a budget of its schedulers that the section fits into.
    Postponed(Mode),
    Holds {
        mode: Mode,
        since: Instant,
        used: u64,
        /// Longer than declared: it is lent nothing any more.
        lapsed: bool,
    },
}

/// One declared use.
#[derive(Debug)]
pub(crate) struct Claim {
    thread: usize,
    pub(crate) plan: UsePlan,
    pub(crate) state: State,
}

/// The resources of one CPU.
#[derive(Debug)]
pub(crate) struct Locks {
    plans: Vec<ResourcePlan>,
    claims: Vec<Claim>,
    /// Threads that may go on when a budget above them is used up, the last to begin last, and for
    /// how long.
    overruns: Vec<(usize, u64)>,
}

impl Locks {
    pub(crate) fn new(plan: &CpuPlan) -> Locks {
        let mut claims: Vec<Claim> = Vec::new();
        for (thread, declared) in &plan.uses {
            let thread = *thread as usize;
            let known = declared.resource as usize;
            if thread >= plan.threads.len() || known >= plan.resources.len() {
                continue;
            }
            let known = |c: &&mut Claim| c.thread == thread && c.plan.resource == declared.resource;
            match claims.iter_mut().find(known) {
                // A second declaration widens the first.
                Some(claim) => {
                    claim.plan.length = claim.plan.length.max(declared.length);
                    if declared.mode == Mode::Exclusive {
                        claim.plan.mode = Mode::Exclusive;
                    }
                }
                None => claims.push(Claim {
                    thread,
                    plan: *declared,
                    state: State::Free,
                }),
            }
        }
        Locks {
            plans: plan.resources.clone(),
            claims,
            overruns: Vec::new(),
        }
    }

    /// The threads that wait for a resource.
    pub(crate) fn waiting(&self, resource: u32) -> impl Iterator<Item = usize> {
        let waits =
            move |c: &&Claim| c.plan.resource == resource && matches!(c.state, State::Waits(_));
        self.claims.iter().filter(waits).map(|claim| claim.thread)
    }

    /// Whether a thread waits for supply of its schedulers.
    pub(crate) fn is_postponed(&self, thread: usize) -> bool {
        let postponed = |c: &Claim| matches!(c.state, State::Postponed(_));
        self.of(thread).any(postponed)
    }

    fn find(&self, thread: usize, resource: u32) -> Option<usize> {
        let is_it = |c: &Claim| c.thread == thread && c.plan.resource == resource;
        let known = (resource as usize) < self.plans.len();
        self.claims.iter().position(is_it).filter(|_| known)
    }

    fn plan(&self, claim: &Claim) -> Option<&ResourcePlan> {
        self.plans.get(claim.plan.resource as usize)
    }

    fn of(&self, thread: usize) -> impl Iterator<Item = &Claim> {
        self.claims.iter().filter(move |c| c.thread == thread)
    }

    /// The sections of a thread that are lent something.
    pub(crate) fn sections(
        &self,
        thread: usize,
    ) -> impl Iterator<Item = (&ResourcePlan, u64, &Claim)> {
        self.of(thread).filter_map(|claim| match claim.state {
            State::Holds {
                used,
                lapsed: false,
                ..
            } => Some((
                self.plan(claim)?,
                claim.plan.length.ticks().saturating_sub(used),
                claim,
            )),
            _ => None,
        })
    }

    /// Whether a thread keeps its siblings away by what it holds.
    pub(crate) fn shields(&self, thread: usize) -> bool {
        let shields =
            |plan: &ResourcePlan| matches!(plan.protocol, Protocol::NonPreemptive | Protocol::Spin);
        self.sections(thread).any(|(plan, ..)| shields(plan))
    }

    /// Room for one more holder.
    fn has_room(&self, resource: u32, mode: Mode) -> bool {
        let of_it = |c: &&Claim| c.plan.resource == resource;
        self.claims
            .iter()
            .filter(of_it)
            .all(|claim| match claim.state {
                State::Holds { mode: held, .. } => (held, mode) == (Mode::Shared, Mode::Shared),
                _ => true,
            })
    }

    /// What the sections of a thread may take that go on without budget.
    fn may_overrun(&self, thread: usize) -> Option<u64> {
        let of = self.sections(thread);
        let of = of.filter(|(plan, ..)| plan.at_budget_end == AtBudgetEnd::Overrun);
        of.map(|(_, left, _)| left).max()
    }

    /// What a thread may execute beyond the budgets above it.
    pub(crate) fn allowance(&self, thread: usize) -> u64 {
        let found = self.overruns.iter().find(|(t, _)| *t == thread);
        found.map_or(0, |(_, left)| *left)
    }

    pub(crate) fn overdraw(&mut self, thread: usize, beyond: u64) {
        if let Some((_, left)) = self.overruns.iter_mut().find(|(t, _)| *t == thread) {
            *left = left.saturating_sub(beyond);
        }
    }

    /// The running thread has executed inside its sections.
    pub(crate) fn charge(&mut self, thread: usize, executed: u64) {
        for claim in self.claims.iter_mut().filter(|c| c.thread == thread) {
            if let State::Holds { used, .. } = &mut claim.state {
                *used = used.saturating_add(executed);
            }
        }
    }

    /// A thread waits for nothing any more; returns whether it was postponed.
    fn stop_waiting(&mut self, thread: usize) -> Option<u64> {
        let mut postponed = None;
        for claim in self.claims.iter_mut().filter(|c| c.thread == thread) {
            match claim.state {
                State::Waits(_) => claim.state = State::Free,
                State::Postponed(_) => {
                    claim.state = State::Free;
                    postponed = Some(claim.plan.length.ticks());
                }
                State::Free | State::Holds { .. } => {}
            }
        }
        postponed
    }

    /// The place of a thread is another's from now on.
    fn forget(&mut self, thread: usize) {
        self.claims.retain(|claim| claim.thread != thread);
        self.overruns.retain(|(t, _)| *t != thread);
    }
}

impl Judge<'_> {
    fn resource(&self, resource: u32) -> &str {
        self.log.resource_name(self.cpu, resource)
    }

    /// A thread holds a resource.
    pub(crate) fn locked(&mut self, thread: usize, resource: u32, mode: Mode) {
        let asked = self.threads[thread].request.take() == Some((resource, mode));
        let now = self.now;
        let claim = self.locks.find(thread, resource);
        let state = claim.map(|at| (at, self.locks.claims[at].state));
        let handed = matches!(state, Some((_, State::Waits(m) | State::Postponed(m))) if m == mode);
        let declared = |at: usize| {
            let most = self.locks.claims[at].plan.mode;
            mode == Mode::Shared || most == Mode::Exclusive
        };
        let what = match state {
            None => "did not declare it",
            Some((at, _)) if !declared(at) => "declared only to read it",
            Some((_, State::Holds { .. })) => "holds it already",
            Some((_, State::Free)) if !asked => "did not ask for it",
            Some(_) if !self.locks.has_room(resource, mode) => "locks what somebody holds",
            Some((_, State::Free)) => "",
            Some(_) if handed => "",
            Some(_) => "waited for it in another mode",
        };
        if !what.is_empty() {
            let what = format!(
                "{} {what}: `{}`",
                self.name(thread),
                self.resource(resource)
            );
            self.violation(Rule::LocksExclude, what);
        }
        let Some(at) = claim else { return };
        self.section_fits(thread, at, handed);
        self.locks.claims[at].state = State::Holds {
            mode,
            since: now,
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
        let checks = |plan: &ResourcePlan| plan.at_budget_end == AtBudgetEnd::CheckFirst;
        let first = self.locks.plan(claim).is_some_and(checks);
        let t = &self.threads[thread];
        if !handed && t.is_budgeted() && t.budget < length && length <= t.allotment() {
            let what = format!("{} begins a section beyond its budget", self.name(thread));
            self.violation(Rule::BudgetRespected, what);
        } else if first && !self.has_supply_for(thread, length) {
            let what = format!("{} begins a section beyond its supply", self.name(thread));
            self.violation(Rule::SupplyRespected, what);
        }
    }

    /// A thread waits for a resource.
    pub(crate) fn waits_for(&mut self, thread: usize, resource: u32, mode: Mode) {
        self.threads[thread].request = None;
        let free = self.locks.has_room(resource, mode);
        let others = self.locks.claims.iter();
        let mut writers = others.filter(|c| c.plan.resource == resource);
        let behind_writer = writers.any(|c| c.state == State::Waits(Mode::Exclusive));
        let Some(at) = self.locks.find(thread, resource) else {
            let what = format!("{} waits for what it did not declare", self.name(thread));
            return self.violation(Rule::LocksExclude, what);
        };
        if free && !(mode == Mode::Shared && behind_writer) {
            let (name, resource) = (self.name(thread), self.resource(resource));
            let what = format!("{name} waits for `{resource}`, which is free");
            self.violation(Rule::LocksPassOn, what);
        }
        self.locks.claims[at].state = State::Waits(mode);
    }

    /// A section waits for a budget that it fits into.
    pub(crate) fn postponed(&mut self, thread: usize, resource: u32) {
        let Some(at) = self.locks.find(thread, resource) else {
            let what = format!("{} waits for what it did not declare", self.name(thread));
            return self.violation(Rule::LocksExclude, what);
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
        let claim = self.locks.find(thread, resource);
        let held = |at: &usize| matches!(self.locks.claims[*at].state, State::Holds { .. });
        let Some(at) = claim.filter(held) else {
            let (name, resource) = (self.name(thread), self.resource(resource));
            let what = format!("{name} gives `{resource}` back, which it does not hold");
            return self.violation(Rule::LocksExclude, what);
        };
        let state = std::mem::replace(&mut self.locks.claims[at].state, State::Free);
        if !matches!(state, State::Holds { lapsed: true, .. }) {
            self.sections_changed(thread, at);
        }
        if !self.threads[thread].in_section && !self.locks.shields(thread) {
            self.unprotect(thread);
        }
    }

    /// A section is longer than declared.
    pub(crate) fn section_overran(&mut self, thread: usize, resource: u32) {
        let Some(at) = self.locks.find(thread, resource) else {
            return self.locks_nothing(thread);
        };
        let claim = &mut self.locks.claims[at];
        let length = claim.plan.length.ticks();
        let State::Holds { used, lapsed, .. } = &mut claim.state else {
            return self.locks_nothing(thread);
        };
        let (early, twice) = (*used < length, *lapsed);
        *lapsed = true;
        if early || twice {
            let what = format!("the section of {} is not over yet", self.name(thread));
            self.violation(Rule::SectionsBounded, what);
        }
        self.sections_changed(thread, at);
        if !self.threads[thread].in_section && !self.locks.shields(thread) {
            self.unprotect(thread);
        }
    }

    fn locks_nothing(&mut self, thread: usize) {
        let what = format!("{} has a section without a lock", self.name(thread));
        self.violation(Rule::LocksExclude, what);
    }

    /// A section has begun, ended or lapsed: what may go on without budget is another.
    fn sections_changed(&mut self, thread: usize, claim: usize) {
        let plan = self.locks.plan(&self.locks.claims[claim]);
        if plan.is_some_and(|plan| plan.at_budget_end == AtBudgetEnd::Overrun) {
            let most = self.locks.may_overrun(thread);
            self.locks.overruns.retain(|(t, _)| *t != thread);
            self.locks.overruns.extend(most.map(|most| (thread, most)));
        }
    }

    /// A thread waits for no lock any more: it has one, or its time is over, or it has ended.
    pub(crate) fn wait_is_over(&mut self, thread: usize) {
        if self.locks.stop_waiting(thread).is_some() {
            self.park(thread, false);
        }
    }

    /// What a thread waits for has come free: it asks again when it is chosen, unless it has been
    /// given it at once.
    pub(crate) fn asks_again(&mut self, thread: usize) {
        let mut of = self.locks.claims.iter_mut().filter(|c| c.thread == thread);
        let asked = of.find_map(|claim| match claim.state {
            State::Waits(mode) => {
                claim.state = State::Free;
                Some((claim.plan.resource, mode))
            }
            _ => None,
        });
        if asked.is_some() {
            self.threads[thread].request = asked;
        }
    }

    /// A thread has ended.
    pub(crate) fn forget_locks(&mut self, thread: usize) {
        self.wait_is_over(thread);
        let holds = |c: &&Claim| matches!(c.state, State::Holds { .. });
        let held = self.locks.of(thread).find(holds).map(|c| c.plan.resource);
        if let Some(resource) = held {
            let (name, resource) = (self.name(thread), self.resource(resource));
            let what = format!("{name} ends and keeps `{resource}`");
            self.violation(Rule::LocksPassOn, what);
        }
        self.locks.forget(thread);
    }

    /// Who goes on below a node whose budget is used up, and for how long.
    pub(crate) fn overdrawer(&self, at: usize) -> Option<(usize, u64)> {
        let may = |entry: &&(usize, u64)| {
            let t = &self.threads[entry.0];
            entry.1 > 0 && t.ready && self.is_below(t.queue, at)
        };
        self.locks.overruns.iter().rev().find(may).copied()
    }

    /// At the end of an entry nobody waits for what is free, or for supply that is there.
    pub(crate) fn locks_are_passed_on(&mut self) {
        let mut idle = None;
        for claim in &self.locks.claims {
            let resource = claim.plan.resource;
            let of_it = |c: &&Claim| c.plan.resource == resource;
            let others = || self.locks.claims.iter().filter(of_it);
            let writer = || others().any(|c| c.state == State::Waits(Mode::Exclusive));
            let free = match claim.state {
                State::Waits(Mode::Shared) if writer() => {
                    !others().any(|c| matches!(c.state, State::Holds { .. }))
                }
                State::Waits(mode) => self.locks.has_room(resource, mode),
                State::Postponed(_) => self.has_supply_for(claim.thread, claim.plan.length.ticks()),
                State::Free | State::Holds { .. } => false,
            };
            if free {
                idle = Some((claim.thread, resource));
            }
        }
        if let Some((thread, resource)) = idle {
            let (name, resource) = (self.name(thread), self.resource(resource));
            let what = format!("{name} waits for `{resource}` and could have it");
            self.violation(Rule::LocksPassOn, what);
        }
    }

    /// The core wants to be back when a section of the running thread is as long as declared.
    pub(crate) fn section_is_armed(&mut self, thread: usize, arm: Option<Instant>) {
        let left = self.locks.sections(thread).map(|(_, left, _)| left).min();
        let end = left.map(|left| self.now.saturating_add(Work::from_ticks(left).as_span()));
        if end.is_some_and(|end| arm.is_none_or(|arm| arm > end)) {
            let name = self.name(thread);
            let what = format!("{name}: nothing is armed for the end of its section");
            self.violation(Rule::SectionsBounded, what);
        }
    }
}

/// Somebody waits for a lock of a runtime.
#[derive(Clone, Copy, Debug)]
struct Lender {
    thread: usize,
    holder: usize,
    key: u32,
}

/// The locks of a runtime on one CPU, as far as the core knows them: a thread waits for another
/// (`block-on`), a lock has another holder (`hand-over`), the running thread has a ceiling
/// (`raise`). Keys of threads of different schedulers do not compare: in a tree none is inherited.
#[derive(Debug)]
pub(crate) struct Lenders {
    /// By what the threads of the CPU compare.
    pub(crate) by: WaitOrder,
    waiting: Vec<Lender>,
    ceilings: Vec<(usize, Ceiling)>,
}

impl Lenders {
    pub(crate) fn new(plan: &CpuPlan) -> Lenders {
        Lenders {
            by: WaitOrder::of(plan.policy),
            waiting: Vec::new(),
            ceilings: Vec::new(),
        }
    }

    /// A thread waits for nobody any more.
    pub(crate) fn goes_on(&mut self, thread: usize) {
        self.waiting.retain(|lender| lender.thread != thread);
    }

    /// A thread has ended.
    pub(crate) fn ended(&mut self, thread: usize) {
        self.goes_on(thread);
        self.waiting.retain(|lender| lender.holder != thread);
        self.ceilings.retain(|(holder, _)| *holder != thread);
    }

    /// The threads that wait for a thread.
    pub(crate) fn of(&self, thread: usize) -> impl Iterator<Item = usize> {
        let lenders = self.waiting.iter();
        let lenders = lenders.filter(move |lender| lender.holder == thread);
        lenders.map(|lender| lender.thread)
    }

    /// How urgent its ceilings make a thread that has this rank among equals.
    pub(crate) fn ceiling(&self, thread: usize, rank: u32) -> Option<Key> {
        let of_it = |(holder, _): &&(usize, Ceiling)| *holder == thread;
        let (_, ceiling) = self.ceilings.iter().find(of_it)?;
        Some(Key {
            background: ceiling.absolute_deadline == Instant::MAX,
            priority: ceiling.priority,
            deadline: ceiling.absolute_deadline,
            release: Instant::ZERO,
            rank,
        })
    }
}

impl Judge<'_> {
    /// The running thread is at least this urgent from now on.
    pub(crate) fn raised_to(&mut self, ceiling: Option<Ceiling>) {
        let Some(thread) = self.running.and_then(|id| self.find(id)) else {
            return;
        };
        let ceilings = &mut self.lenders.ceilings;
        ceilings.retain(|(holder, _)| *holder != thread);
        ceilings.extend(ceiling.map(|ceiling| (thread, ceiling)));
    }

    /// What a thread held is another's: who waits for it waits for the other.
    pub(crate) fn handed_over(&mut self, event: Event) {
        let Event::HandOver { key, from, to } = event else {
            return;
        };
        let (Some(from), Some(to)) = (self.find(from), self.find(to)) else {
            return;
        };
        if self.threads[from].dead || self.threads[to].dead {
            return;
        }
        let asks = self.threads[to].request.is_some();
        let is_it = |lender: &Lender| lender.holder == from && lender.key == key;
        self.lenders
            .waiting
            .retain(|lender| !(is_it(lender) && (asks || lender.thread == to)));
        for lender in &mut self.lenders.waiting {
            if is_it(lender) {
                lender.holder = to;
            }
        }
    }

    /// The thread that ran waits from now on, for a holder if its event says so.
    pub(crate) fn waits_for_holder(&mut self, thread: usize) {
        let Some(Event::BlockOn { holder, key, .. }) = self.event else {
            return;
        };
        let one_level = self.nodes.iter().filter(|node| node.alive).count() == 1;
        let holder = self.find(holder).filter(|_| one_level);
        if let Some(holder) = holder.filter(|&holder| !self.threads[holder].dead) {
            self.lenders.waiting.push(Lender {
                thread,
                holder,
                key,
            });
        }
    }
}
