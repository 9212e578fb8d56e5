//! The resources of a CPU and their declared uses, as the log states them.

use punctual_kern::{ResourceTerms, UseTerms};
use punctual_model::{AtBudgetEnd, Instant, Mode, Protocol};
use punctual_tables::CpuTables;

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
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    pub(crate) thread: usize,
    pub(crate) plan: UseTerms,
    pub(crate) state: State,
}

/// The resources of one CPU.
#[derive(Debug)]
pub(crate) struct Locks {
    pub(crate) plans: Vec<ResourceTerms>,
    pub(crate) claims: Vec<Claim>,
    /// Threads that may go on when a budget above them is used up, the last to begin last, and for
    /// how long.
    pub(crate) overruns: Vec<(usize, u64)>,
}

impl Locks {
    pub(crate) fn new(plan: &CpuTables) -> Locks {
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

    pub(crate) fn find(&self, thread: usize, resource: u32) -> Option<usize> {
        let is_it = |c: &Claim| c.thread == thread && c.plan.resource == resource;
        let known = (resource as usize) < self.plans.len();
        self.claims.iter().position(is_it).filter(|_| known)
    }

    pub(crate) fn plan(&self, claim: &Claim) -> Option<&ResourceTerms> {
        self.plans.get(claim.plan.resource as usize)
    }

    pub(crate) fn of(&self, thread: usize) -> impl Iterator<Item = &Claim> {
        self.claims.iter().filter(move |c| c.thread == thread)
    }

    /// The sections of a thread that are lent something.
    pub(crate) fn sections(
        &self,
        thread: usize,
    ) -> impl Iterator<Item = (&ResourceTerms, u64, &Claim)> {
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
        let shields = |plan: &ResourceTerms| {
            matches!(plan.protocol, Protocol::NonPreemptive | Protocol::Spin)
        };
        self.sections(thread).any(|(plan, ..)| shields(plan))
    }

    /// Room for one more holder.
    pub(crate) fn has_room(&self, resource: u32, mode: Mode) -> bool {
        let of_it = |c: &&Claim| c.plan.resource == resource;
        self.claims
            .iter()
            .filter(of_it)
            .all(|claim| match claim.state {
                State::Holds { mode: held, .. } => (held, mode) == (Mode::Shared, Mode::Shared),
                _ => true,
            })
    }

    /// Whether somebody who asks now gets a resource at once, as far as no urgency is known.
    pub(crate) fn could_have(&self, resource: u32, mode: Mode) -> bool {
        let any = |is: fn(&State) -> bool| {
            let mut of_it = self.claims.iter().filter(|c| c.plan.resource == resource);
            of_it.any(|c| is(&c.state))
        };
        let writer_waits = any(|state| *state == State::Waits(Mode::Exclusive));
        let is_held = any(|state| matches!(state, State::Holds { .. }));
        self.has_room(resource, mode) && !(mode == Mode::Shared && writer_waits && is_held)
    }

    /// What the sections of a thread may take that go on without budget.
    pub(crate) fn may_overrun(&self, thread: usize) -> Option<u64> {
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

    /// The place of a thread is another's from now on.
    pub(crate) fn forget(&mut self, thread: usize) {
        self.claims.retain(|claim| claim.thread != thread);
        self.overruns.retain(|(t, _)| *t != thread);
    }
}
