//! No thread executes more than its allotments.
//!
//! A thread may execute beyond its budget only while the platform is late: between the instant that
//! the core armed for the end of the budget and the entry that then came. What it executes there is
//! its debt, taken from the next allotment. So are the used part of the grace, which ends its
//! budget, and the cost of stopping its job.

use punctual_kern::MAX_LOOKED_AT;
use punctual_model::{OnOverrun, Work};

use crate::Rule;
use crate::entry::{InTicks, Judge};
use crate::queue::Entity;
use crate::thread::Thread;

impl Judge<'_> {
    /// Charges the interval since the last entry.
    pub(crate) fn charge(&mut self, thread: usize, executed: u64) {
        let (who, late) = (Entity::Thread(thread), self.lateness());
        let t = &mut self.threads[thread];
        if executed > 0 && (t.in_section || self.locks.shields(thread)) {
            self.protect(thread);
        }
        let t = &mut self.threads[thread];
        if let Some(current) = &mut t.current {
            current.received = current.received.saturating_add(executed);
        }
        let queue = &mut self.nodes[t.queue].queue;
        if queue.key(who).is_some_and(|key| !key.background) {
            queue.charge(who, executed);
        }
        if t.background {
            return;
        }
        let beyond = executed.saturating_sub(t.budget);
        let ends = t.budget > 0 && executed >= t.budget;
        t.drained |= ends && t.constraint.class.runs_per_job();
        t.debt = t.debt.saturating_add(beyond);
        t.budget = t.budget.saturating_sub(executed);
        let what = format_args!("executed {beyond} ticks over its budget, {late} of them late");
        self.must(beyond <= late, Rule::BudgetRespected, who, what);
    }

    /// A job starts with `budget`.
    pub(crate) fn funded(&mut self, thread: usize, budget: Option<Work>) {
        let t = &mut self.threads[thread];
        let expected = (!t.background).then_some(t.budget);
        let budget = budget.map(Work::ticks);
        t.budget = budget.unwrap_or(t.budget);
        let (found, right) = (InTicks(budget), InTicks(expected));
        let who = Entity::Thread(thread);
        let what = format_args!("starts with a budget of {found}, should be {right}");
        self.must(budget == expected, Rule::BudgetRespected, who, what);
        self.allotments_are_due(thread);
    }

    /// The job of a thread is stopped: the cost is its debt, if it has used up a budget.
    pub(crate) fn stops(&mut self, thread: usize) {
        let cost = self.log.tables.cpus[self.cpu].capacity.stop_cost.ticks();
        let t = &mut self.threads[thread];
        if std::mem::take(&mut t.drained) {
            t.owed = t.owed.saturating_add(cost);
        }
    }

    /// A thread runs. If it preempts another for the first time on an allotment of a job, the part
    /// of that for cold caches goes to the other's budget.
    pub(crate) fn move_cache_delay(&mut self, preempted: Option<usize>, to: usize) {
        let cache_delay = self.log.tables.cpus[self.cpu].capacity.cache_delay.ticks();
        let t = &mut self.threads[to];
        let is_first = std::mem::take(&mut t.is_fresh);
        let Some(preempted) = preempted.filter(|_| is_first) else {
            return;
        };
        if !self.threads[preempted].background {
            let t = &mut self.threads[to];
            t.owed = t.owed.saturating_add(cache_delay.saturating_sub(t.budget));
            t.budget = t.budget.saturating_sub(cache_delay);
            let preempted = &mut self.threads[preempted];
            preempted.budget = preempted.budget.saturating_add(cache_delay);
        }
    }

    /// A release by the clock: the thread that ran is charged with an entry that is counted with
    /// the release, and gets it back, once per instant.
    pub(crate) fn spare(&mut self, released: usize) {
        let capacity = self.log.tables.cpus[self.cpu].capacity;
        let entry = capacity.entry.ticks();
        let comes = &self.threads[released];
        let is_job = comes.is_clocked() && comes.constraint.class.runs_per_job();
        let counts = is_job && capacity.nodes == 0 && entry > 0 && self.spared < self.now;
        let Some(thread) = self.before.filter(|_| counts) else {
            return;
        };
        let t = &mut self.threads[thread];
        if t.dead || t.background || !t.constraint.class.runs_per_job() {
            return;
        }
        self.spared = self.now;
        let beyond = t.debt.min(entry);
        t.debt -= beyond;
        t.budget = t.budget.saturating_add(entry - beyond);
        t.drained &= t.budget == 0;
    }

    /// Nobody runs. Unless a job has budget and waits for something else, nothing is owed any more.
    pub(crate) fn end_busy_window(&mut self) {
        let capacity = self.log.tables.cpus[self.cpu].capacity;
        let could_go_on = |t: &Thread| {
            let job = t.current.filter(|c| !c.settled);
            let waits = t.blocked || t.ready || t.awaits;
            let comes = job.is_none() && !t.open.is_empty();
            !t.dead && !t.background && (comes || (job.is_some() && waits))
        };
        let few = capacity.threads <= MAX_LOOKED_AT && capacity.nodes == 0;
        let costs = !capacity.stop_cost.is_zero();
        if few && costs && !self.threads.iter().any(could_go_on) {
            self.window += 1;
        }
    }

    /// The last part of budgets, which is lent.
    pub(crate) fn grace(&self) -> u64 {
        self.log.tables.cpus[self.cpu].capacity.grace.ticks()
    }

    /// A thread takes an allotment for a job that needs more than one.
    pub(crate) fn replenished(&mut self, thread: usize, budget: u64) {
        self.stops(thread);
        let (grace, window) = (self.grace(), self.window);
        let t = &mut self.threads[thread];
        let expected = t.settle_debt(grace, window);
        t.taken += 1;
        t.granted = t.granted.max(t.taken);
        let left = std::mem::replace(&mut t.budget, budget);
        t.defer();
        // What is too little for a section is forgone for it.
        let right = budget == expected && (left == 0 || t.request.is_some());
        let what = format_args!("is replenished to {budget} ticks, should be {expected}");
        self.must(right, Rule::BudgetRespected, Entity::Thread(thread), what);
        self.allotments_are_due(thread);
    }

    /// One allotment per release, and none before its time.
    fn allotments_are_due(&mut self, thread: usize) {
        let t = &self.threads[thread];
        let due = t.opportunities(self.now).unwrap_or(u64::MAX);
        let (due, taken) = (due.saturating_add(t.first_index), t.taken);
        let what = format_args!("took {taken} allotments, {due} were due");
        let who = Entity::Thread(thread);
        self.must(taken <= due, Rule::BudgetRespected, who, what);
    }

    /// The core wants to be back when the budget of the running thread ends. Without budget a
    /// thread runs on for no time: one that begins or ends a section with its last tick may still
    /// complete with it. A job without budget that an overrun ends gets as much as one allotment.
    pub(crate) fn running_is_funded(&mut self, thread: usize) {
        let t = &self.threads[thread];
        let stops = t.constraint.on_overrun == OnOverrun::Stop && t.constraint.class.runs_per_job();
        let left = match &t.current {
            _ if !t.background => t.budget,
            Some(current) if stops && !current.overran => {
                t.allotment().saturating_sub(current.received)
            }
            _ => return,
        };
        let (end, who) = (self.after(left), Entity::Thread(thread));
        self.ends(end, Rule::BudgetRespected, who, "its budget");
    }
}
