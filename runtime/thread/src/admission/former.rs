//! Changed constraints: how long the old one counts.
//!
//! A change is in force from the next zero-lag instant on, so the present job is finished under the
//! old constraint. Until the lag of the old one has passed, every question is asked three times.
//! It is about the system with the old constraint, about that with the new one, and about the way
//! from one to the other ([`admit_transition`]). That function knows one change at a time. The old
//! constraint of a second change stays as a thread that has left, beside the new one.

use punctual_analysis::{Change, Verdict, When, admit_transition};
use punctual_model::{Instant, Ns, System, Task, TaskId};

use super::{Admission, Grant, Moved, NotAdmitted, Owner, State, judge, task_name};
use crate::constraint::Constraint;

/// The constraint of a thread before a change.
#[derive(Clone, Debug)]
pub(super) struct Former {
    grant: Grant,
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
        let number = self.number();
        let mut changed = self.state.clone();
        let old = changed.system.tasks[place].clone();
        let mut task = constraint.task(&old.name);
        task.phase = old.phase;
        task.scheduler = old.scheduler;
        changed.system.tasks[place] = task;
        let owner = &mut changed.owners[place];
        let until = now.saturating_add(owner.lag);
        owner.lag = owner.lag.max(constraint.lag());
        if changed.former.is_none() {
            changed.former = Some(Former {
                grant,
                task: old,
                until,
            });
        } else {
            let left = Owner {
                grant: None,
                until: Some(until),
                blocked: Vec::new(),
                ..owner.clone()
            };
            let name = task_name(&left.name, number);
            changed.owners.push(left);
            changed.system.tasks.push(Task { name, ..old });
        }
        let verdict = changed.judge()?;
        Ok(Moved::staying(changed, verdict, now))
    }
}

impl State {
    /// The place of the thread that a change is not certainly in force for.
    pub(super) fn changing(&self) -> Option<usize> {
        let former = self.former.as_ref()?;
        self.place(former.grant)
    }

    /// Whether what a thread was counts no more.
    pub(super) fn is_former_over(&self, former: &Former, now: Instant<Ns>) -> bool {
        let home = self
            .place(former.grant)
            .map(|place| self.system.tasks[place].scheduler);
        home.is_none_or(|home| former.until <= now && self.is_quiet(home, former.until, now))
    }

    /// Judges a system of this state, and while a change is not certainly in force also what was
    /// before it and the way to it.
    pub(super) fn judge_changing(&self, system: &System) -> Result<Verdict, NotAdmitted> {
        let mut verdict = judge(system)?;
        let Some((former, place)) = self.former.as_ref().zip(self.changing()) else {
            return Ok(verdict);
        };
        let task = &system.tasks[place];
        let mut before = system.clone();
        before.tasks[place] = Task {
            scheduler: task.scheduler,
            ..former.task.clone()
        };
        less_favourable(&mut verdict, judge(&before)?);
        let id = TaskId(u32::try_from(place).unwrap_or(u32::MAX));
        let change = Change::Replace(id, task.clone());
        let transition = admit_transition(&before, &change).map_err(NotAdmitted::Analysis)?;
        match transition.when {
            When::AtOnce | When::ZeroLag => {}
            When::Idle => return Err(NotAdmitted::NoSafeInstant(transition.ground)),
            When::Never => return Err(NotAdmitted::Refused(Box::new(transition.verdict))),
        }
        for (task, row) in system.tasks.iter().zip(&mut verdict.tasks) {
            let mut meanwhile = transition.meanwhile.iter();
            if let Some((_, bound)) = meanwhile.find(|(name, _)| *name == task.name) {
                let both = row.response_bound.zip(*bound);
                row.response_bound = both.map(|(a, b)| a.max(b));
            }
        }
        Ok(verdict)
    }
}

/// Takes the larger bound of each task; `None` is larger than all.
pub(super) fn less_favourable(verdict: &mut Verdict, other: Verdict) {
    for (task, other) in verdict.tasks.iter_mut().zip(other.tasks) {
        let bounds = task.response_bound.zip(other.response_bound);
        if bounds.is_none_or(|(one, other)| other > one) && task.response_bound.is_some() {
            *task = other;
        }
    }
}
