//! The least budget with which a thread gets anywhere.
//!
//! An entry of the scheduler begins each stretch of execution, and another one ends it: both take
//! their time from the budget of the thread. A budget of less than that is used up before the
//! thread has done anything, in each of its periods, so it never ends, not even when it is told to.
//! The analysis knows nothing of it where it counts no costs of the machine (design note 0089).

use punctual_analysis::{Fix, FixTarget, Refusal, Subject, Witness, admit, is_admitted};
use punctual_model::{Class, CpuId, Ns, PolicyKind, System, Task, TaskId, Work};

use super::{Admission, NotAdmitted, State};

impl Admission {
    /// With budgets refused that are less than this. The costs of the scheduler that admission
    /// counts for a job are a part of its budget.
    pub(crate) fn with_floor(self, floor: Work<Ns>) -> Admission {
        Admission { floor, ..self }
    }

    /// Admission counts so much for the scheduler beside the budget of a constraint of this class.
    /// `None`: its budget may be any.
    fn counted(&self, class: Class<Ns>) -> Option<Work<Ns>> {
        let machine = &self.state.system.machine;
        match class {
            Class::Periodic { .. } | Class::Sporadic { .. } => {
                let grace = machine.funding(Vec::new()).grace;
                Some(machine.stretch().saturating_add(grace))
            }
            // Nothing is added to a slice.
            Class::Reservation { .. } => Some(Work::ZERO),
            // It goes on in the background.
            Class::Once { .. } | Class::Aperiodic => None,
        }
    }

    /// Refuses a budget below the floor, with the least that is not, if that is admitted.
    /// `changed` has the task at `place`.
    pub(super) fn not_below_the_floor(
        &self,
        changed: &State,
        place: usize,
    ) -> Result<(), NotAdmitted> {
        let Some(task) = changed.system.tasks.get(place) else {
            return Ok(());
        };
        let (Some(budget), Some(counted)) = (task.class.budget(), self.counted(task.class)) else {
            return Ok(());
        };
        let least = self.floor.saturating_sub(counted);
        if budget >= least || budget.is_zero() {
            return Ok(());
        }
        let alone = self.alone(task);
        super::meaning(&alone)?;
        let mut verdict = admit(&alone).map_err(NotAdmitted::Analysis)?;
        let (floor, word) = (self.floor.as_span().readable(), word(task.class));
        let counted = match counted.is_zero() {
            true => String::new(),
            false => format!(
                ", and {} are counted beside it",
                counted.as_span().readable()
            ),
        };
        let is_mended = is_admitted_with(changed, place, least)?;
        let refusal = Refusal {
            subject: Subject::Task(TaskId(0)),
            name: task.name.clone(),
            reason: format!(
                "a budget of {} is used up by the scheduler before the thread does anything: two \
                 entries take {floor} on this machine{counted}",
                budget.as_span().readable()
            ),
            witness: Some(Witness::Demand {
                at: task.class.min_separation().unwrap_or_default(),
                demand: least,
                supply: budget,
            }),
            situation: "in each period one entry begins its execution and another one ends it"
                .to_owned(),
            fix: is_mended.then(|| Fix {
                target: FixTarget::Budget(TaskId(0)),
                parameter: format!("task.{}.{word}", task.name),
                from: budget.as_span(),
                to: least.as_span(),
            }),
            advice: match is_mended {
                true => format!("{word} = {} mends it", least.as_span().readable()),
                false => format!("no {word} mends it with this period and deadline here"),
            },
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

/// Whether a task is admitted beside all others with this budget. A larger one takes no less.
fn is_admitted_with(changed: &State, place: usize, budget: Work<Ns>) -> Result<bool, NotAdmitted> {
    let mut system = changed.judged();
    if let Some(of_task) = system.tasks[place].class.budget_mut() {
        *of_task = budget;
    }
    // The budget may be longer than the deadline.
    Ok(super::meaning(&system).is_ok() && is_admitted(&system).map_err(NotAdmitted::Analysis)?)
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

    #[test]
    fn terms_that_are_less_than_two_entries_are_told_apart_from_them() {
        let machine = Machine {
            switch: Work::from_us(2),
            ..Machine::default()
        };
        let policy = PolicyKind::EarliestDeadlineFirst;
        let cpu = Admission::new(policy, machine.clone(), Arc::default());
        let mut cpu = cpu.with_floor(Work::from_us(20));
        let counted = cpu.counted(
            Constraint::periodic(Span::from_ms(1), Work::from_us(1))
                .task("t")
                .class,
        );
        let counted = counted.expect("a budget");
        assert!(!counted.is_zero() && counted < Work::from_us(20));
        let refusal = refused(
            &mut cpu,
            &Constraint::periodic(Span::from_ms(1), Work::from_us(1)),
        );
        let says = format!(
            "two entries take 20us on this machine, and {} are counted beside it",
            counted.as_span().readable()
        );
        assert!(refusal.reason.contains(&says), "{refusal:?}");
        let least = Work::from_us(20).saturating_sub(counted).as_span();
        assert_eq!(refusal.fix.map(|fix| fix.to), Some(least));
    }

    #[test]
    fn a_fix_that_would_be_refused_is_none() {
        let mut cpu = edf().with_floor(Work::from_us(12));
        let small = Work::from_us(1);
        let period = Span::from_ms(1);
        // Its deadline and its period are before the end of two entries.
        for asks in [
            Constraint::periodic(period, small).deadline(Span::from_us(11)),
            Constraint::periodic(Span::from_us(10), small),
            Constraint::reservation(Span::from_us(10), small),
        ] {
            let refusal = refused(&mut cpu, &asks);
            assert_eq!(refusal.fix, None, "{refusal:?}");
            assert!(refusal.advice.starts_with("no "), "{refusal:?}");
        }
        let asks = Constraint::periodic(period, small);
        assert!(refused(&mut cpu, &asks).fix.is_some());
        // So much is left that its own budget would be admitted, and the floor not.
        let most = Constraint::periodic(period, Work::from_us(995));
        cpu.add(("most", ROOT), &most, at(0)).expect("alone");
        assert_eq!(refused(&mut cpu, &asks).fix, None);
    }
}
