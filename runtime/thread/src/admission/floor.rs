//! The least budget with which a thread gets anywhere.
//!
//! An entry of the scheduler begins each stretch of execution, and another one ends it: both take
//! their time from the budget of the thread. A budget of less than that is used up before the
//! thread has done anything, in each of its periods, so it never ends, not even when it is told to.
//! The analysis knows nothing of it where it counts no costs of the machine (design note 0089).

use punctual_analysis::{Fix, FixTarget, Refusal, Subject, Witness, admit};
use punctual_model::{Class, CpuId, Ns, PolicyKind, System, Task, TaskId, Work};

use super::{Admission, NotAdmitted};

impl Admission {
    /// With budgets refused that are less than this. The costs of the scheduler that admission
    /// counts for a job are a part of its budget.
    pub(crate) fn with_floor(self, floor: Work<Ns>) -> Admission {
        Admission { floor, ..self }
    }

    /// The least budget that a constraint of this class may have; `None`: any.
    fn least(&self, class: Class<Ns>) -> Option<Work<Ns>> {
        let machine = &self.state.system.machine;
        let added = machine
            .stretch()
            .saturating_add(machine.funding(Vec::new()).grace);
        match class {
            Class::Periodic { .. } | Class::Sporadic { .. } => {
                Some(self.floor.saturating_sub(added))
            }
            // Nothing is added to a slice.
            Class::Reservation { .. } => Some(self.floor),
            // It goes on in the background.
            Class::Once { .. } | Class::Aperiodic => None,
        }
    }

    /// Refuses a budget below the floor, with the budget that is none.
    pub(super) fn not_below_the_floor(&self, task: &Task) -> Result<(), NotAdmitted> {
        let (Some(budget), Some(least)) = (task.class.budget(), self.least(task.class)) else {
            return Ok(());
        };
        if budget >= least || budget.is_zero() {
            return Ok(());
        }
        let alone = self.alone(task);
        super::meaning(&alone)?;
        let mut verdict = admit(&alone).map_err(NotAdmitted::Analysis)?;
        let shown = least.as_span().readable();
        let refusal = Refusal {
            subject: Subject::Task(TaskId(0)),
            name: task.name.clone(),
            reason: format!(
                "a budget of {} is used up by the scheduler before the thread does anything: two \
                 entries take {shown} on this machine",
                budget.as_span().readable()
            ),
            witness: Some(Witness::Demand {
                at: task.class.min_separation().unwrap_or_default(),
                demand: least,
                supply: budget,
            }),
            situation: "in each period one entry begins its execution and another one ends it"
                .to_owned(),
            fix: Some(Fix {
                target: FixTarget::Budget(TaskId(0)),
                parameter: format!("task.{}.{}", task.name, word(task.class)),
                from: budget.as_span(),
                to: least.as_span(),
            }),
            advice: format!("{} = {shown} mends it", word(task.class)),
        };
        verdict.admitted = false;
        verdict.refusals = vec![refusal];
        Err(NotAdmitted::Refused(Box::new(verdict)))
    }

    /// The thread without all others.
    fn alone(&self, task: &Task) -> System {
        let mut cpus = self.state.system.cpus.clone();
        for cpu in &mut cpus {
            cpu.policy = PolicyKind::EarliestDeadlineFirst;
        }
        let task = Task {
            cpu: CpuId(0),
            scheduler: None,
            ..task.clone()
        };
        System {
            cpus,
            tasks: vec![task],
            machine: self.state.system.machine.clone(),
            free_phases: true,
            ..System::default()
        }
    }
}

/// The key of a budget in a file.
const fn word(class: Class<Ns>) -> &'static str {
    match class {
        Class::Reservation { .. } => "slice",
        _ => "wcet",
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ROOT, at, edf};
    use super::*;
    use crate::constraint::Constraint;
    use punctual_model::{Machine, Span};
    use std::sync::Arc;

    fn refused(cpu: &mut Admission, asks: &Constraint) -> Refusal {
        match cpu.add(("small", ROOT), asks, at(0)) {
            Err(NotAdmitted::Refused(verdict)) => verdict.refusals[0].clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_budget_below_the_floor_is_refused_with_the_least_that_is_not() {
        let mut cpu = edf().with_floor(Work::from_us(12));
        let period = Span::from_ms(1);
        for asks in [
            Constraint::periodic(period, Work::from_us(1)),
            Constraint::sporadic(period, Work::from_us(1)),
            Constraint::reservation(period, Work::from_us(1)),
        ] {
            let refusal = refused(&mut cpu, &asks);
            assert!(
                refusal.reason.contains("two entries take 12us"),
                "{refusal:?}"
            );
            let witness = Witness::Demand {
                at: period,
                demand: Work::from_us(12),
                supply: Work::from_us(1),
            };
            assert_eq!(refusal.witness, Some(witness));
            assert_eq!(refusal.fix.map(|fix| fix.to), Some(Span::from_us(12)));
        }
        // One step short of the fix is refused, and the fix is not.
        let nearly = Constraint::periodic(period, Work::from_ns(11_999));
        let _ = refused(&mut cpu, &nearly);
        let least = Constraint::periodic(period, Work::from_us(12));
        let grant = cpu.add(("least", ROOT), &least, at(0)).expect("the fix");
        // Nor does it come down to less by a change.
        assert!(cpu.replaces(grant, &nearly, at(1)).is_err());
        let once = Constraint::once(Work::from_us(1), period);
        assert!(cpu.add(("once", ROOT), &once, at(0)).is_ok());
    }

    #[test]
    fn what_admission_counts_for_the_scheduler_is_in_the_budget() {
        let machine = Machine {
            switch: Work::from_us(2),
            timer: Work::from_us(4),
            preemption: Work::from_us(6),
            ..Machine::default()
        };
        let policy = PolicyKind::EarliestDeadlineFirst;
        let cpu = Admission::new(policy, machine, Arc::default());
        let mut cpu = cpu.with_floor(Work::from_us(8));
        let one = Constraint::periodic(Span::from_ms(1), Work::from_us(1));
        assert!(cpu.add(("funded", ROOT), &one, at(0)).is_ok());
    }
}
