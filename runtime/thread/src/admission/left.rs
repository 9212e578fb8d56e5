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
//! instant itself.)
//!
//! Where bandwidth alone decides, before and after a change, the zero-lag instant is enough for
//! deadlines, and only they are promised while the window may last. Any other newcomer, with a
//! shorter deadline or a scheduler, is judged beside all that the window may hold.

use std::collections::BTreeMap;

use punctual_analysis::{Verdict, bandwidth_decides};
use punctual_linux::Who;
use punctual_model::{CpuId, Instant, Ns, PolicyKind, SchedulerId, Span, Supply, System, Task};

use super::{Admission, Grant, Moved, NotAdmitted, State};
use crate::admission::tree::Branch;
use crate::constraint::Constraint;

/// Of the processor, in the unit of rates.
const WHOLE: u128 = 1_000_000_000;

/// This many former terms are kept past their zero-lag instants where bandwidth decides: a window
/// of a full processor has no end.
const KEPT: usize = 64;

/// The former terms of a thread.
#[derive(Clone, Debug)]
pub(super) struct Former {
    pub(super) grant: Grant,
    /// With the home that it had.
    pub(super) task: Task,
    /// From when on its lag is zero.
    pub(super) until: Instant<Ns>,
}

/// The systems that count in a question.
pub(super) struct Past {
    /// Oldest first, the system that runs last.
    pub(super) systems: Vec<System>,
    /// Bandwidth frees terms whose window may last: deadlines hold, and no shorter response.
    pub(super) deadlines_only: bool,
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
        self.not_below_the_floor(&changed, place)?;
        let owner = &mut changed.owners[place];
        owner.lag = owner.lag.max(constraint.lag());
        let verdict = self.state.judge(&changed, now)?;
        Ok(Moved::staying(changed, verdict, now))
    }
}

impl Admission {
    /// All that a thread was granted: it has ended.
    pub(crate) fn remove_all_of(&mut self, thread: Who, now: Instant<Ns>) {
        let of_it = self
            .state
            .owners
            .iter()
            .filter(|o| o.thread == Some(thread));
        let grants: Vec<Grant> = of_it.map(|owner| owner.grant).collect();
        grants.into_iter().for_each(|grant| self.remove(grant, now));
    }

    /// The response bound of the task of a grant beside all others; `None`: there is none.
    pub(crate) fn response_bound(&self, grant: Grant) -> Result<Option<Span<Ns>>, NotAdmitted> {
        let verdict = self.verdict().map_err(NotAdmitted::Analysis)?;
        let task = self.state.place(grant).and_then(|at| verdict.tasks.get(at));
        Ok(task.and_then(|task| task.response_bound))
    }

    /// A thread is to get another constraint, not before it says so ([`Admission::settle`]): until
    /// then it has the former, whose room is kept for its lag and `hold`.
    pub(crate) fn exchange(
        &mut self,
        grant: Grant,
        constraint: &Constraint,
        now: Instant<Ns>,
        hold: Span<Ns>,
    ) -> Result<(), NotAdmitted> {
        let mut moved = self.replaces(grant, constraint, now)?;
        moved.hold(grant, hold);
        self.accept(Some(moved), now);
        Ok(())
    }

    /// The former terms of a thread count until its lag is zero, from now on.
    pub(crate) fn settle(&mut self, grant: Grant, now: Instant<Ns>) {
        let Some(place) = self.state.place(grant) else {
            return;
        };
        let until = now.saturating_add(self.state.owners[place].lag);
        let former = self.state.former.iter_mut().filter(|f| f.grant == grant);
        former.for_each(|former| former.until = former.until.min(until));
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

    /// All that may still have an effect when this state becomes `after`.
    pub(super) fn counts(&self, after: &System, now: Instant<Ns>) -> Result<Past, NotAdmitted> {
        let systems = self.past(|_| true);
        let bandwidth = systems.iter().chain([after]).all(by_bandwidth);
        if self.unkept.is_some() && !bandwidth {
            let what =
                "many changes came shortly before, and bandwidth alone allows more: ask again";
            return Err(NotAdmitted::NoSafeInstant(what.to_owned()));
        }
        let is_free = |former: &Former| former.until <= now;
        if bandwidth && self.former.iter().any(is_free) {
            return Ok(Past {
                systems: self.past(|former| !is_free(former)),
                deadlines_only: true,
            });
        }
        Ok(Past {
            systems,
            deadlines_only: false,
        })
    }

    /// No response shorter than the deadline is in this verdict about this state.
    pub(super) fn promise_deadlines(&self, verdict: &mut Verdict) {
        for (row, task) in verdict.tasks.iter_mut().zip(&self.system.tasks) {
            let both = row.response_bound.zip(task.class.relative_deadline());
            row.response_bound = both.map(|(bound, deadline)| bound.max(deadline));
        }
    }

    /// The systems since the oldest of the former terms that count, the one that runs last. A name
    /// never comes again, so each system has what every thread was one change before the next.
    fn past(&self, counts: impl Fn(&Former) -> bool) -> Vec<System> {
        let owners = self.owners.iter().zip(&self.system.tasks);
        let owners = owners.map(|(owner, task)| (&task.name, owner.grant.0));
        let left = self.former.iter();
        let left = left.map(|former| (&former.task.name, former.grant.0));
        let came: BTreeMap<&String, u64> = owners.chain(left).collect();
        // They stand first, and nobody comes before them.
        let entries = self.entries().len();
        let mut past = vec![self.judged()];
        let mut seen: Vec<Grant> = Vec::new();
        for former in self.former.iter().rev().filter(|former| counts(former)) {
            let back = 1 + seen.iter().filter(|grant| **grant == former.grant).count();
            seen.push(former.grant);
            if past.len() == back {
                past.push(past[back - 1].clone());
            }
            for system in &mut past[back..] {
                let name = &former.task.name;
                match system.tasks.iter_mut().find(|task| task.name == *name) {
                    Some(task) => *task = former.task.clone(),
                    None => {
                        // Threads that tie go in the order in which they came.
                        let later = |task: &Task| {
                            came.get(&task.name)
                                .is_none_or(|grant| *grant > former.grant.0)
                        };
                        let at = system.tasks[entries..].iter().position(later);
                        let at = at.map_or(system.tasks.len(), |at| entries + at);
                        system.tasks.insert(at, former.task.clone());
                    }
                }
            }
        }
        past.reverse();
        past
    }

    /// Takes out the former terms that count no more, and those that are too many.
    pub(super) fn forget_former(&mut self, now: Instant<Ns>) {
        while let Some(place) = (0..self.former.len()).find(|place| self.is_over(*place, now)) {
            let _ = self.former.remove(place);
        }
        let is_free = |former: &Former| former.until <= now;
        let free = self.former.iter().filter(|former| is_free(former)).count();
        if free > KEPT && self.past(|_| true).iter().all(by_bandwidth) {
            for _ in KEPT..free {
                if let Some(place) = self.former.iter().position(is_free) {
                    let until = self.former.remove(place).until;
                    self.unkept = self.unkept.max(Some(until));
                }
            }
        }
        let unkept = self.unkept;
        self.unkept = unkept.filter(|left| !self.is_quiet(None, *left, now));
    }

    /// Whether the former terms of a thread count no more.
    fn is_over(&self, place: usize, now: Instant<Ns>) -> bool {
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
        for replaced in &self.replaced {
            work += u128::from(replaced.work.as_ns().saturating_add(stretch));
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

/// Whether bandwidth alone decides on the one CPU of this system.
fn by_bandwidth(system: &System) -> bool {
    bandwidth_decides(system, CpuId(0))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ROOT, at, change, edf, half};
    use super::*;
    use punctual_model::{Machine, Work};
    use std::sync::Arc;

    #[test]
    fn a_thread_that_has_left_counts_until_no_window_holds_jobs_of_it_and_of_a_newcomer() {
        let policy = PolicyKind::FixedPriority { preemptive: true };
        let mut cpu = Admission::new(policy, Machine::default(), Arc::default());
        let periodic = |period, wcet, priority| {
            let wcet = Work::from_ms(wcet);
            Constraint::periodic(Span::from_ms(period), wcet).priority(priority)
        };
        let low = periodic(30, 8, 1).deadline(Span::from_ms(15));
        let high = cpu
            .add(("high", ROOT), &periodic(10, 3, 3), at(0))
            .expect("alone");
        let _ = cpu.add(("low", ROOT), &low, at(0)).expect("14 of 15 ms");
        // It leaves at 0 and its lag is zero at 10. The job of `low` that arrived at 0 is not done
        // then: with 6 ms more from 10 on it would take 17 ms.
        cpu.remove(high, at(0));
        let next = periodic(20, 6, 2);
        assert!(cpu.add(("next", ROOT), &next, at(10)).is_err());
        assert!(cpu.add(("next", ROOT), &next, at(45)).is_ok());
    }

    #[test]
    fn the_old_constraint_counts_until_its_lag_is_zero() {
        let tenths = |n| Constraint::periodic(Span::from_ms(10), Work::from_ms(n));
        let mut cpu = edf();
        let a = cpu.add(("a", ROOT), &tenths(5), at(0)).expect("half");
        cpu.add(("b", ROOT), &tenths(5), at(0)).expect("the other");
        change(&mut cpu, a, &tenths(1), at(1)).expect("less");
        // What it had until then it may have again, and no more.
        let before = cpu.state.clone();
        assert!(change(&mut cpu, a, &tenths(5), at(2)).is_ok());
        assert!(change(&mut cpu, a, &tenths(6), at(2)).is_err());
        cpu.state = before;
        // The present job of `a` still has its 5 ms.
        let early = cpu.add(("c", ROOT), &tenths(4), at(1));
        assert!(
            matches!(early, Err(NotAdmitted::NoSafeInstant(_))),
            "{early:?}"
        );
        assert!(cpu.add(("c", ROOT), &tenths(4), at(10)).is_err());
        assert!(cpu.add(("c", ROOT), &tenths(4), at(11)).is_ok());
    }

    #[test]
    fn what_is_held_for_an_exchange_is_free_when_its_thread_ends_before_it_begins() {
        let tenths = |n| Constraint::periodic(Span::from_ms(10), Work::from_ms(n));
        let mut cpu = edf();
        let a = cpu.add(("a", ROOT), &tenths(9), at(0)).expect("alone");
        let hold = Span::from_ms(200_000);
        cpu.exchange(a, &tenths(1), at(1), hold).expect("less");
        assert!(cpu.add(("b", ROOT), &tenths(9), at(100)).is_err());
        cpu.remove(a, at(100));
        // The job of `a` at its end has its 10 ms.
        assert!(cpu.add(("b", ROOT), &tenths(9), at(109)).is_err());
        assert!(cpu.add(("b", ROOT), &tenths(9), at(200)).is_ok());
    }

    #[test]
    fn two_changes_at_a_time_count_together() {
        let tenths = |n| Constraint::periodic(Span::from_ms(10), Work::from_ms(n));
        let mut cpu = edf();
        let a = cpu.add(("a", ROOT), &tenths(3), at(0)).expect("alone");
        let b = cpu.add(("b", ROOT), &tenths(3), at(0)).expect("both");
        change(&mut cpu, a, &tenths(1), at(1)).expect("less");
        change(&mut cpu, b, &tenths(1), at(2)).expect("less");
        // 3 of `a`, 3 of `b`.
        assert!(cpu.add(("c", ROOT), &tenths(5), at(3)).is_err());
        // 1 of `a`, 3 of `b`.
        assert!(cpu.add(("c", ROOT), &tenths(7), at(11)).is_err());
        assert!(cpu.add(("c", ROOT), &tenths(8), at(12)).is_ok());
    }

    #[test]
    fn bandwidth_decides_only_among_threads_whose_jobs_recur() {
        let mut cpu = edf();
        let once = Constraint::once(Work::from_ms(8), Span::from_ms(10));
        let first = cpu.add(("once", ROOT), &once, at(0)).expect("alone");
        let next = Constraint::periodic(Span::from_ms(40), Work::from_ms(8));
        let _ = cpu.add(("a", ROOT), &next, at(0)).expect("both");
        cpu.remove(first, at(0));
        // Bandwidth alone would be free at 10.
        cpu.forget_until(at(10));
        assert_eq!(cpu.state.former.len(), 1);
        cpu.forget_until(at(60));
        assert_eq!(cpu.state.former.len(), 0);
    }

    fn of(wcet_us: u64, period_us: u64) -> Constraint {
        Constraint::periodic(Span::from_us(period_us), Work::from_us(wcet_us))
    }

    #[test]
    fn bandwidth_that_is_free_does_not_hide_a_burst_from_a_newcomer_with_a_short_deadline() {
        let mut cpu = edf();
        let a = cpu
            .add(("a", ROOT), &of(1_000, 2_000), at(0))
            .expect("half");
        let _ = cpu.add(("b", ROOT), &half(10), at(0)).expect("the other");
        cpu.remove(a, at(5));
        // Of the 5 ms of `b` due at 10, 3 are left at 7: with `c` that is 7 ms until 11, and `b` is
        // ahead.
        let c = of(4_000, 10_000).deadline(Span::from_ms(4));
        let refused = cpu.add(("c", ROOT), &c, at(7));
        assert!(
            matches!(refused, Err(NotAdmitted::NoSafeInstant(_))),
            "{refused:?}"
        );
        // Without the short deadline, bandwidth decides.
        let before = cpu.state.clone();
        assert!(cpu.add(("d", ROOT), &of(4_000, 10_000), at(7)).is_ok());
        cpu.state = before;
        // 15 ms of work of `b` at half the processor are over after 30.
        assert!(cpu.add(("c", ROOT), &c, at(36)).is_err());
        assert!(cpu.add(("c", ROOT), &c, at(37)).is_ok());
    }

    #[test]
    fn bandwidth_that_is_free_promises_no_response_shorter_than_the_deadline() {
        let mut cpu = edf();
        let _ = cpu.add(("b", ROOT), &of(4_000, 8_000), at(0)).expect("b");
        let a = cpu.add(("a", ROOT), &of(1_000, 2_000), at(0)).expect("a");
        change(&mut cpu, a, &of(1, 1_000_000), at(2)).expect("less");
        // At 4.1 ms, 1.9 of `b` are left, which are due at 8: 2.9 ms, while both alone take 2.
        let now = Instant::from_ns(4_100_000);
        let _ = cpu.add(("c", ROOT), &of(1_000, 4_000), now).expect("c");
        let promised = |cpu: &Admission, name| {
            let promises = cpu.promises.read();
            let promise = promises.iter().find(|promise| promise.name == name);
            promise.and_then(|promise| promise.response_bound)
        };
        assert_eq!(promised(&cpu, "c"), Some(Span::from_ms(4)));
        // What comes after the window has its own bound.
        let _ = cpu.add(("late", ROOT), &of(1, 20), at(200)).expect("late");
        assert!(promised(&cpu, "late") < Some(Span::from_us(20)));
    }

    #[test]
    fn a_full_processor_keeps_no_more_former_terms_than_it_has_room_for() {
        let mut cpu = edf();
        let b = cpu.add(("b", ROOT), &half(10), at(0)).expect("half");
        let many = u64::try_from(2 * KEPT).expect("small");
        for change in 0..many {
            let now = at(10 * change);
            let other = cpu.add(("a", ROOT), &half(10), now).expect("the other");
            cpu.remove(other, now);
        }
        let now = 10 * many;
        let _ = cpu.add(("a", ROOT), &half(10), at(now)).expect("the other");
        assert_eq!(cpu.state.former.len(), KEPT);
        // A window of a full processor has no end, and one of a half has.
        cpu.remove(b, at(now));
        let short = of(1, 10_000).deadline(Span::from_ms(9));
        let refused = cpu.add(("c", ROOT), &short, at(now + 10));
        assert!(
            matches!(refused, Err(NotAdmitted::NoSafeInstant(_))),
            "{refused:?}"
        );
        assert!(cpu.add(("c", ROOT), &short, at(now + 100)).is_ok());
        assert_eq!(cpu.state.former.len(), 0);
        assert_eq!(cpu.state.unkept, None);
    }
}
