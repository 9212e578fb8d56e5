//! Former terms of threads, and schedulers that have left: how long they count.
//!
//! A thread that changes its constraint or home, or ends, completes its present job on its former
//! terms. Until those count no more, each question is about them, too.
//!
//! The zero-lag instant frees bandwidth, and not the burst: a window of work that began before it
//! may hold jobs of the one that left and of one that comes. So one that has left counts until no
//! such window can be left, at the scheduler that orders it.
//!
//! Of each that stays, at most `ceil(D / T) + 1` jobs are pending, and one comes at once: three
//! where the deadline is no later than the period. They want the rate `u` of a supply at rate `a`.
//! So the scheduler has had nothing to do before a time of `(work + a * blackout) / (a - u)` has
//! passed, for the `work` of all these jobs. (Real and Crespo 2004 wait for the idle
//! instant itself.) Where bandwidth alone decides, the zero-lag instant is enough.

use punctual_model::{Instant, Ns, PolicyKind, SchedulerId, Span, Supply, System, Task};

use super::{Admission, Grant, Moved, NotAdmitted, State};
use crate::admission::tree::Branch;
use crate::constraint::Constraint;

/// Of the processor, in the unit of rates.
const WHOLE: u128 = 1_000_000_000;

/// The former terms of a thread.
#[derive(Clone, Debug)]
pub(super) struct Former {
    pub(super) grant: Grant,
    /// With the home that it had.
    pub(super) task: Task,
    /// From when on its lag is zero.
    pub(super) until: Instant<Ns>,
}

impl Admission {
    /// Judges that a thread gets another constraint.
    pub(crate) fn replaces(
        &mut self,
        grant: Grant,
        constraint: &Constraint,
        now: Instant<Ns>,
    ) -> Result<Moved, NotAdmitted> {
        self.forget_until(now);
        let place = self.state.granted(grant)?;
        let mut changed = self.state.clone();
        changed.was(place, now);
        let old = &changed.system.tasks[place];
        let mut task = constraint.task(&old.name);
        task.phase = old.phase;
        task.scheduler = old.scheduler;
        changed.system.tasks[place] = task;
        let owner = &mut changed.owners[place];
        owner.lag = owner.lag.max(constraint.lag());
        let verdict = self.state.judge(&changed)?;
        Ok(Moved::staying(changed, verdict, now))
    }
}

impl State {
    /// The thread at this place will be something else, or nothing.
    pub(super) fn was(&mut self, place: usize, now: Instant<Ns>) {
        let owner = &self.owners[place];
        self.former.push(Former {
            grant: owner.grant,
            task: self.system.tasks[place].clone(),
            until: now.saturating_add(owner.lag),
        });
    }

    /// All that may still have an effect, oldest first, the system that runs last. A name never
    /// comes again, so each system has what every thread was one change before the next.
    pub(super) fn past(&self) -> Vec<System> {
        let mut past = vec![self.judged()];
        let mut seen: Vec<Grant> = Vec::new();
        for former in self.former.iter().rev() {
            let back = 1 + seen.iter().filter(|grant| **grant == former.grant).count();
            seen.push(former.grant);
            if past.len() == back {
                past.push(past[back - 1].clone());
            }
            for system in &mut past[back..] {
                let name = &former.task.name;
                match system.tasks.iter_mut().find(|task| task.name == *name) {
                    Some(task) => *task = former.task.clone(),
                    None => system.tasks.push(former.task.clone()),
                }
            }
        }
        past.reverse();
        past
    }

    /// Whether the former terms of a thread count no more.
    pub(super) fn is_over(&self, place: usize, now: Instant<Ns>) -> bool {
        let Former { until, task, .. } = &self.former[place];
        *until <= now && self.is_quiet(task.scheduler, *until, now)
    }

    /// Whether a scheduler that left counts no more.
    pub(super) fn is_branch_over(&self, place: usize, now: Instant<Ns>) -> bool {
        let Branch { until, .. } = self.branches[place];
        let above = self.system.schedulers[place].parent;
        until.is_some_and(|at| at <= now && self.is_quiet(above, at, now))
    }

    /// Whether a loan counts no more.
    pub(super) fn is_loan_over(&self, place: usize, now: Instant<Ns>) -> bool {
        let loan = self.loans[place];
        let borrower = self.place_of(loan.to).ok().flatten();
        let above = borrower.and_then(|borrower| self.parent(borrower));
        loan.ends <= now && self.is_quiet(above, loan.ends, now)
    }

    /// Whether no window of work of before `left` can go on at `now` where `home` belongs.
    pub(super) fn is_quiet(
        &self,
        home: Option<SchedulerId>,
        left: Instant<Ns>,
        now: Instant<Ns>,
    ) -> bool {
        if self.decides_by_bandwidth() {
            return true;
        }
        let node = self.supplier(home);
        let stays = |until: Option<Instant<Ns>>| until.is_none_or(|until| until > left);
        let (mut work, mut rate) = (0_u128, 0_u128);
        let stretch = self.system.machine.stretch().as_ns();
        let mut add = |jobs: u64, cost: u64, period: u64| {
            work += u128::from(jobs) * u128::from(cost);
            rate += (u128::from(cost) * WHOLE).div_ceil(u128::from(period.max(1)));
        };
        let tasks = self.system.tasks.iter().map(|task| (None, task));
        let former = self.former.iter();
        let former = former.map(|former| (Some(former.until), &former.task));
        for (until, task) in tasks.chain(former) {
            if stays(until) && self.supplier(task.scheduler) == node {
                let cost = task.class.budget().unwrap_or_default().as_ns();
                let cost = cost.saturating_add(task.max_suspension.as_ns());
                let period = task.class.min_separation().map_or(u64::MAX, Span::as_ns);
                let deadline = task.class.relative_deadline().unwrap_or_default().as_ns();
                let pending = deadline.div_ceil(period.max(1)).max(1).saturating_add(2);
                add(pending, cost.saturating_add(stretch), period);
            }
        }
        for (branch, scheduler) in self.branches.iter().zip(&self.system.schedulers) {
            if let Supply::Server(server) = scheduler.supply
                && stays(branch.until)
                && self.supplier(scheduler.parent) == node
            {
                let cost = server.budget.as_ns().saturating_add(stretch);
                add(3, cost, server.period.as_ns());
            }
        }
        for loan in &self.loans {
            work += 3 * u128::from(loan.work.as_ns());
        }
        let (supply, blackout) = self.supply_at(node);
        if work == 0 {
            return true;
        }
        let left_over = supply.saturating_sub(rate);
        let busy = (work * WHOLE + supply * u128::from(blackout)).checked_div(left_over);
        let busy = busy.and_then(|ns| u64::try_from(ns).ok());
        busy.is_some_and(|ns| left.saturating_add(Span::from_ns(ns)) <= now)
    }

    /// A single level under deadlines that are no earlier than the periods, without costs.
    fn decides_by_bandwidth(&self) -> bool {
        let machine = &self.system.machine;
        let taken = machine.reserves.is_empty() && machine.missing_time.is_none();
        let late = |task: &punctual_model::Task| {
            let terms = task.class.relative_deadline();
            let terms = terms.zip(task.class.min_separation());
            let late = terms.is_some_and(|(deadline, separation)| deadline >= separation);
            task.max_suspension.is_zero() && late
        };
        let former = self.former.iter().map(|former| &former.task);
        self.branches.is_empty()
            && taken
            && machine.stretch().is_zero()
            && self.system.cpus[0].policy == PolicyKind::EarliestDeadlineFirst
            && self.system.tasks.iter().chain(former).all(late)
    }

    /// The closest scheduler from `home` up that has a supply of its own; `None`: the CPU's own.
    fn supplier(&self, home: Option<SchedulerId>) -> Option<SchedulerId> {
        let mut above = core::iter::successors(home, |id| self.parent(*id));
        above.find(|id| self.system.schedulers[id.index()].supply != Supply::Shared)
    }

    /// The rate of a supply, and how long there may be none of it, in nanoseconds.
    fn supply_at(&self, node: Option<SchedulerId>) -> (u128, u64) {
        let rate = |part: u64, of: u64| u128::from(part) * WHOLE / u128::from(of.max(1));
        let Some(id) = node else {
            let machine = &self.system.machine;
            let taken = machine.reserves.iter().chain(&machine.missing_time);
            let (mut supply, mut blackout) = (WHOLE, 0_u64);
            for reserve in taken {
                let (part, of) = (reserve.budget.as_ns(), reserve.period.as_ns());
                supply = supply.saturating_sub(rate(part, of) + 1);
                blackout = blackout.saturating_add(part.saturating_mul(2));
            }
            return (supply, blackout);
        };
        let scheduler = &self.system.schedulers[id.index()];
        match &scheduler.supply {
            Supply::Server(server) => {
                let (budget, period) = (server.budget.as_ns(), server.period.as_ns());
                (rate(budget, period), period.saturating_mul(2))
            }
            Supply::Slots(slots) => {
                let policy = match scheduler.parent {
                    None => self.system.cpus[0].policy,
                    Some(above) => self.system.schedulers[above.index()].policy,
                };
                let frame = match policy {
                    PolicyKind::Tdm { frame, .. } => frame.as_ns(),
                    _ => u64::MAX,
                };
                let all = slots.iter().map(|slot| slot.length.as_ns()).sum::<u64>();
                (rate(all, frame), frame.saturating_mul(2))
            }
            Supply::Shared => (0, 0),
        }
    }
}
