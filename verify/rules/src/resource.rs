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
    Holds(Hold),
}

/// A section.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Hold {
    pub(crate) mode: Mode,
    pub(crate) since: Instant,
    pub(crate) used: u64,
    /// Longer than declared: it is lent nothing any more.
    pub(crate) lapsed: bool,
}

/// One declared use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    pub(crate) thread: usize,
    pub(crate) declared: UseTerms,
    pub(crate) terms: ResourceTerms,
    pub(crate) state: State,
}

impl Claim {
    /// Its section, if that is lent something.
    pub(crate) fn section(&self) -> Option<Hold> {
        match self.state {
            State::Holds(hold) if !hold.lapsed => Some(hold),
            _ => None,
        }
    }

    /// What is left of its section.
    pub(crate) fn left(&self) -> Option<u64> {
        let length = self.declared.length.ticks();
        Some(length.saturating_sub(self.section()?.used))
    }

    /// Whether its section goes on when a budget above its thread is used up.
    pub(crate) fn overruns(&self) -> bool {
        self.terms.at_budget_end == AtBudgetEnd::Overrun
    }
}

/// The declared uses of one CPU; those of whose threads a section changed last come last.
#[derive(Debug)]
pub(crate) struct Locks(pub(crate) Vec<Claim>);

impl Locks {
    pub(crate) fn new(tables: &CpuTables) -> Locks {
        let mut locks = Locks(Vec::new());
        for &(thread, declared) in &tables.uses {
            let Some(resource) = tables.resources.get(declared.resource as usize) else {
                continue;
            };
            match locks.find(thread as usize, declared.resource) {
                // A second declaration widens the first.
                Some(at) => {
                    let first = &mut locks.0[at].declared;
                    first.length = first.length.max(declared.length);
                    if declared.mode == Mode::Exclusive {
                        first.mode = Mode::Exclusive;
                    }
                }
                None => locks.0.push(Claim {
                    thread: thread as usize,
                    declared,
                    terms: *resource,
                    state: State::Free,
                }),
            }
        }
        locks
    }

    pub(crate) fn find(&self, thread: usize, resource: u32) -> Option<usize> {
        let is_it = |c: &Claim| c.thread == thread && c.declared.resource == resource;
        self.0.iter().position(is_it)
    }

    fn users(&self, resource: u32) -> impl Iterator<Item = &Claim> {
        self.0
            .iter()
            .filter(move |c| c.declared.resource == resource)
    }

    /// The threads that wait for a resource.
    pub(crate) fn waiting(&self, resource: u32) -> impl Iterator<Item = usize> {
        let waits = self
            .users(resource)
            .filter(|c| matches!(c.state, State::Waits(_)));
        waits.map(|claim| claim.thread)
    }

    pub(crate) fn of(&self, thread: usize) -> impl Iterator<Item = &Claim> {
        self.0.iter().filter(move |c| c.thread == thread)
    }

    /// Whether a thread waits for supply of its schedulers.
    pub(crate) fn is_postponed(&self, thread: usize) -> bool {
        self.of(thread)
            .any(|c| matches!(c.state, State::Postponed(_)))
    }

    /// The sections of a thread that are lent something.
    pub(crate) fn sections(&self, thread: usize) -> impl Iterator<Item = (&Claim, Hold)> {
        self.of(thread)
            .filter_map(|claim| Some((claim, claim.section()?)))
    }

    /// Whether a thread keeps its siblings away by what it holds.
    pub(crate) fn shields(&self, thread: usize) -> bool {
        use Protocol::{NonPreemptive, Spin};
        self.sections(thread)
            .any(|(c, _)| matches!(c.terms.protocol, NonPreemptive | Spin))
    }

    /// Room for one more holder.
    pub(crate) fn has_room(&self, resource: u32, mode: Mode) -> bool {
        self.users(resource).all(|claim| match claim.state {
            State::Holds(held) => (held.mode, mode) == (Mode::Shared, Mode::Shared),
            _ => true,
        })
    }

    /// Whether somebody who asks now gets a resource at once, as far as no urgency is known.
    pub(crate) fn could_have(&self, resource: u32, mode: Mode) -> bool {
        let any = |is: fn(&Claim) -> bool| self.users(resource).any(is);
        let writer_waits = any(|claim| claim.state == State::Waits(Mode::Exclusive));
        let is_held = any(|claim| matches!(claim.state, State::Holds(_)));
        self.has_room(resource, mode) && !(mode == Mode::Shared && writer_waits && is_held)
    }

    /// What the sections of a thread may take that go on without budget.
    pub(crate) fn may_overrun(&self, thread: usize) -> u64 {
        let sections = self.of(thread).filter(|claim| claim.overruns());
        sections.filter_map(Claim::left).max().unwrap_or(0)
    }

    /// The running thread has executed inside its sections.
    pub(crate) fn charge(&mut self, thread: usize, executed: u64) {
        for claim in self.0.iter_mut().filter(|c| c.thread == thread) {
            if let State::Holds(hold) = &mut claim.state {
                hold.used = hold.used.saturating_add(executed);
            }
        }
    }
}
