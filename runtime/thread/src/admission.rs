//! Admission of a running system, asked by the thread that wants something.
//!
//! The guaranteed threads of one CPU are a [`System`] of the model. Whoever wants to add one or to
//! change one asks the same function as `punctual check` does, about the system as it would be, on
//! its own time: the question costs what an analysis costs, and others preempt it. Bandwidth of a
//! thread that has ended stays taken until the zero-lag instant of its last job has passed.

use punctual_analysis::{AnalysisError, Change, Verdict, When, admit, admit_transition};
use punctual_model::{Instant, Machine, PolicyKind, Span, System, TaskId};

use crate::constraint::Constraint;

/// Why a constraint was not granted.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NotAdmitted {
    /// Somebody could be late; the verdict has a witness and a fix.
    Refused(Box<Verdict>),
    /// The parameters mean nothing, e.g. a period of zero.
    Meaningless(String),
    /// The analysis could not finish.
    Analysis(AnalysisError),
    /// The old and the new constraint are both fine, but no instant is known at which one may
    /// follow the other while others run.
    NoSafeInstant(String),
}

/// A granted constraint, by which it is given back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Grant(u64);

/// The guarantees of one CPU.
#[derive(Debug)]
pub(crate) struct Admission {
    system: System,
    /// Whose each task of the system is, and from when on (nanoseconds) it is nobody's.
    owners: Vec<(Grant, Option<Instant>)>,
    next: u64,
}

impl Admission {
    pub(crate) fn new(policy: PolicyKind, machine: Machine) -> Admission {
        let cpu = punctual_model::Cpu {
            name: "0".to_owned(),
            host: None,
            policy,
        };
        Admission {
            system: System {
                cpus: vec![cpu],
                machine,
                ..System::default()
            },
            owners: Vec::new(),
            next: 0,
        }
    }

    /// Grants a constraint if everybody, it included, is on time then.
    pub(crate) fn add(
        &mut self,
        name: &str,
        constraint: &Constraint,
        now: Instant,
    ) -> Result<Grant, NotAdmitted> {
        self.forget_until(now);
        let grant = Grant(self.next);
        let mut changed = self.system.clone();
        let mut task = constraint.task(&task_name(name, grant));
        // It may arrive at any instant.
        task.phase = Span::ZERO;
        changed.tasks.push(task);
        judge(&changed)?;
        self.system = changed;
        self.owners.push((grant, None));
        self.next += 1;
        Ok(grant)
    }

    /// Grants another constraint instead.
    pub(crate) fn replace(
        &mut self,
        grant: Grant,
        constraint: &Constraint,
        now: Instant,
    ) -> Result<(), NotAdmitted> {
        self.forget_until(now);
        let Some(place) = self.place(grant) else {
            return Err(NotAdmitted::Meaningless("nothing was granted".to_owned()));
        };
        let mut task = constraint.task(&self.system.tasks[place].name);
        task.phase = Span::ZERO;
        let id = TaskId(u32::try_from(place).unwrap_or(u32::MAX));
        let change = Change::Replace(id, task);
        let changed = change.apply(&self.system).map_err(NotAdmitted::Analysis)?;
        judge(&changed)?;
        let transition = admit_transition(&self.system, &change).map_err(NotAdmitted::Analysis)?;
        match transition.when {
            When::AtOnce | When::ZeroLag => {
                self.system = transition.system;
                Ok(())
            }
            When::Idle => Err(NotAdmitted::NoSafeInstant(transition.ground)),
            When::Never => Err(NotAdmitted::Refused(Box::new(transition.verdict))),
        }
    }

    /// The thread has ended: what was granted is free from `at` on.
    pub(crate) fn remove(&mut self, grant: Grant, at: Instant) {
        if let Some(place) = self.place(grant) {
            self.owners[place].1 = Some(at);
        }
    }

    /// The verdict about those that run now.
    pub(crate) fn verdict(&self) -> Result<Verdict, AnalysisError> {
        admit(&self.system)
    }

    fn place(&self, grant: Grant) -> Option<usize> {
        self.owners.iter().position(|owner| owner.0 == grant)
    }

    fn forget_until(&mut self, now: Instant) {
        let gone = |owner: &(Grant, Option<Instant>)| owner.1.is_some_and(|at| at <= now);
        while let Some(place) = self.owners.iter().position(gone) {
            let _ = self.owners.remove(place);
            let _ = self.system.tasks.remove(place);
        }
    }
}

/// Names of tasks are unique and simple, those of threads need not be.
fn task_name(name: &str, grant: Grant) -> String {
    let simple = |c: char| match c {
        '_' | '-' | '.' | ':' => c,
        c if c.is_ascii_alphanumeric() => c,
        _ => '-',
    };
    let name: String = name.chars().map(simple).collect();
    format!("{name}:{}", grant.0)
}

fn judge(system: &System) -> Result<(), NotAdmitted> {
    system.validate().map_err(|errors| {
        let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
        NotAdmitted::Meaningless(all.join("; "))
    })?;
    let verdict = admit(system).map_err(NotAdmitted::Analysis)?;
    if verdict.admitted {
        Ok(())
    } else {
        Err(NotAdmitted::Refused(Box::new(verdict)))
    }
}

impl core::fmt::Display for NotAdmitted {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            NotAdmitted::Refused(verdict) => {
                let first = verdict.refusals.first();
                let (name, reason) =
                    first.map_or(("", "refused"), |r| (r.name.as_str(), r.reason.as_str()));
                write!(f, "not admitted: {name}: {reason}")
            }
            NotAdmitted::Meaningless(what) => write!(f, "the constraint means nothing: {what}"),
            NotAdmitted::Analysis(error) => write!(f, "the analysis could not finish: {error}"),
            NotAdmitted::NoSafeInstant(why) => write!(f, "no safe instant for the change: {why}"),
        }
    }
}

impl std::error::Error for NotAdmitted {}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_model::Work;

    fn half(period_ms: u64) -> Constraint {
        let period = Span::from_ms(period_ms);
        Constraint::periodic(period, Work::from_ns(period.as_ns() / 2))
    }

    fn at(ms: u64) -> Instant {
        Instant::from_ns(ms * 1_000_000)
    }

    fn edf() -> Admission {
        Admission::new(PolicyKind::EarliestDeadlineFirst, Machine::default())
    }

    #[test]
    fn a_full_cpu_refuses_with_a_witness_and_stays_as_it_was() {
        let mut cpu = edf();
        cpu.add("a", &half(10), at(0)).expect("half");
        cpu.add("a", &half(20), at(0))
            .expect("the other half, under the same name");
        let refused = cpu.add("c", &half(40), at(0));
        let Err(NotAdmitted::Refused(verdict)) = refused else {
            panic!("{refused:?}");
        };
        assert!(!verdict.refusals.is_empty());
        assert!(
            cpu.verdict()
                .is_ok_and(|v| v.admitted && v.tasks.len() == 2)
        );
    }

    #[test]
    fn bandwidth_of_a_thread_that_has_ended_is_free_only_when_its_lag_is_zero() {
        let mut cpu = edf();
        let first = cpu.add("a", &half(10), at(0)).expect("half");
        cpu.add("b", &half(10), at(0)).expect("the other half");
        cpu.remove(first, at(15));
        assert!(cpu.add("c", &half(10), at(14)).is_err());
        assert!(cpu.add("c", &half(10), at(15)).is_ok());
    }

    #[test]
    fn a_change_is_judged_like_a_new_thread() {
        let mut cpu = edf();
        let first = cpu.add("a", &half(10), at(0)).expect("half");
        cpu.add("b", &half(10), at(0)).expect("the other half");
        assert!(cpu.replace(first, &half(20), at(1)).is_ok());
        let all = Constraint::periodic(Span::from_ms(10), Work::from_ms(9));
        assert!(cpu.replace(first, &all, at(2)).is_err());
        let nothing = Constraint::periodic(Span::ZERO, Work::from_ms(9));
        let meaningless = cpu.add("c", &nothing, at(3));
        assert!(matches!(meaningless, Err(NotAdmitted::Meaningless(_))));
    }
}
