//! No thread executes more than its allotments.
//!
//! A thread may execute beyond its budget only while the platform is late: between the instant that
//! the core armed for the end of the budget and the entry that then came. What it executes there is
//! its debt, taken from the next allotment.

use punctual_model::{OnOverrun, Work};

use crate::Rule;
use crate::entry::Judge;
use crate::queue::Entity;

impl Judge<'_> {
    /// Charges the interval since the last entry.
    pub(crate) fn charge(&mut self, executed: u64) {
        let Some(id) = self.running else { return };
        let late = self.lateness();
        let Some(thread) = self.find(id) else { return };
        let t = &mut self.threads[thread];
        let queue = t.queue;
        if executed > 0 && (t.in_section || self.locks.shields(thread)) {
            self.nodes[queue].protected = Some(id);
        }
        let background = self.nodes[queue].queue.key(Entity::Thread(id));
        let background = background.is_none_or(|key| key.background);
        let t = &mut self.threads[thread];
        if let Some(current) = &mut t.current {
            current.received = current.received.saturating_add(executed);
        }
        if !background {
            self.nodes[queue].queue.charge(Entity::Thread(id), executed);
        }
        let t = &mut self.threads[thread];
        if !t.is_budgeted() {
            return;
        }
        let beyond = executed.saturating_sub(t.budget);
        t.debt = t.debt.saturating_add(beyond);
        t.budget = t.budget.saturating_sub(executed);
        if beyond > late {
            let what = format!("executed {beyond} ticks over its budget, {late} of them late");
            self.accuse(Rule::BudgetRespected, thread, what);
        }
    }

    /// A job starts with `budget`.
    pub(crate) fn funded(&mut self, thread: usize, budget: Option<Work>) {
        let t = &mut self.threads[thread];
        let budget = match (budget, t.is_budgeted()) {
            (None, false) => return,
            (Some(budget), true) => budget.ticks(),
            _ => {
                let what = "has a budget where none belongs";
                return self.accuse(Rule::BudgetRespected, thread, what);
            }
        };
        let expected = std::mem::replace(&mut t.budget, budget);
        if budget != expected {
            let what = format!("starts with {budget}, should be {expected}");
            self.accuse(Rule::BudgetRespected, thread, what);
        }
        self.allotments_are_due(thread);
    }

    /// A thread takes an allotment for a job that needs more than one.
    pub(crate) fn replenished(&mut self, thread: usize, budget: u64) {
        let t = &mut self.threads[thread];
        let full = t.allotment();
        let expected = full.saturating_sub(t.debt);
        t.debt = t.debt.saturating_sub(full);
        t.taken += 1;
        t.granted = t.granted.max(t.taken);
        let left = std::mem::replace(&mut t.budget, budget);
        t.defer();
        // What is too little for a section is forgone for it.
        if budget != expected || (left > 0 && t.request.is_none()) {
            let what = format!("is replenished to {budget}, should be {expected}");
            self.accuse(Rule::BudgetRespected, thread, what);
        }
        self.allotments_are_due(thread);
    }

    /// One allotment per release, and none before its time.
    fn allotments_are_due(&mut self, thread: usize) {
        let t = &self.threads[thread];
        let Some(due) = t.opportunities(self.now) else {
            return;
        };
        let due = due.saturating_add(t.first_index);
        if t.taken > due {
            let (name, taken) = (self.name(thread), t.taken);
            let what = format!("{name} took {taken} allotments, {due} were due");
            self.violation(Rule::BudgetRespected, what);
        }
    }

    /// The core wants to be back when the budget of the running thread ends. Without budget a
    /// thread runs on for no time: one that begins or ends a section with its last tick may still
    /// complete with it. A job without budget that an overrun ends gets as much as one allotment.
    pub(crate) fn running_is_funded(&mut self, thread: usize) {
        let t = &self.threads[thread];
        let stops = t.constraint.on_overrun == OnOverrun::Stop && t.constraint.class.runs_per_job();
        let left = match &t.current {
            _ if t.is_budgeted() => t.budget,
            Some(current) if stops && !current.overran => {
                t.allotment().saturating_sub(current.received)
            }
            _ => return,
        };
        if !self.is_armed_within(left) {
            let what = format!("runs, and nothing is armed for the end of its {left} ticks");
            self.accuse(Rule::BudgetRespected, thread, what);
        }
    }
}
