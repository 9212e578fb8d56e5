//! The constraint of a thread: one of the five kinds of work, with its parameters in nanoseconds.

use punctual_model::{Class, CpuId, Instant, Late, Ns, OnOverrun, Priority, Span, Task, Work};

/// The constraint of a thread, by the kind of its work. Only what is admitted is granted; enforced
/// is all of it.
///
/// ```
/// use punctual_model::{Span, Work};
/// use punctual_thread::Constraint;
///
/// let control = Constraint::periodic(Span::from_ms(10), Work::from_ms(2)).priority(5);
/// let logging = Constraint::aperiodic(1);
/// assert!(control.has_guarantee() && !logging.has_guarantee());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Constraint {
    class: Class<Ns>,
    priority: Priority,
    phase: Span<Ns>,
    late: Late,
    on_overrun: OnOverrun,
    max_suspension: Span<Ns>,
    suspensions: u32,
}

impl Constraint {
    fn of(class: Class<Ns>) -> Constraint {
        Constraint {
            class,
            priority: Priority::LOWEST,
            phase: Span::ZERO,
            late: Late::default(),
            on_overrun: OnOverrun::default(),
            max_suspension: Span::ZERO,
            suspensions: 0,
        }
    }

    /// A job every `period`, of `wcet` at most, to be done within the period.
    pub fn periodic(period: Span<Ns>, wcet: Work<Ns>) -> Constraint {
        Constraint::of(Class::Periodic {
            period,
            wcet,
            relative_deadline: period,
        })
    }

    /// A job per release ([`crate::Thread::release`]), never closer than `min_separation`, of
    /// `wcet` at most, to be done within that separation.
    pub fn sporadic(min_separation: Span<Ns>, wcet: Work<Ns>) -> Constraint {
        Constraint::of(Class::Sporadic {
            min_separation,
            wcet,
            relative_deadline: min_separation,
        })
    }

    /// An endless body that gets `slice` in every `period`.
    pub fn reservation(period: Span<Ns>, slice: Work<Ns>) -> Constraint {
        Constraint::of(Class::Reservation { period, slice })
    }

    /// `size` of work within `deadline` from now, afterwards background work.
    pub fn once(size: Work<Ns>, deadline: Span<Ns>) -> Constraint {
        Constraint::of(Class::Once {
            size,
            relative_deadline: deadline,
        })
    }

    /// Background work: below everything that has a guarantee, by priority.
    pub fn aperiodic(priority: u32) -> Constraint {
        Constraint::of(Class::Aperiodic).priority(priority)
    }

    /// Urgency under fixed priority and among background work; a larger number is more urgent.
    #[must_use]
    pub fn priority(self, number: u32) -> Constraint {
        Constraint {
            priority: Priority::new(number),
            ..self
        }
    }

    /// From arrival to deadline. Without effect on classes that have none of their own.
    #[must_use]
    pub fn deadline(mut self, deadline: Span<Ns>) -> Constraint {
        if let Some(own) = self.class.relative_deadline_mut() {
            *own = deadline;
        }
        self
    }

    /// The first arrival, counted from the creation or the change.
    #[must_use]
    pub fn phase(self, phase: Span<Ns>) -> Constraint {
        Constraint { phase, ..self }
    }

    /// The rule for a release that finds the job before unfinished.
    #[must_use]
    pub fn late(self, late: Late) -> Constraint {
        Constraint { late, ..self }
    }

    /// The rule for a job that needs more than its budget.
    #[must_use]
    pub fn on_overrun(self, on_overrun: OnOverrun) -> Constraint {
        Constraint { on_overrun, ..self }
    }

    /// Each job may wait for `most` in total, in `times` waits at most: by itself, or because a
    /// scheduler blocks it ([`crate::tree::Scheduler::block`]). Admission counts it.
    #[must_use]
    pub fn suspension(self, most: Span<Ns>, times: u32) -> Constraint {
        Constraint {
            max_suspension: most,
            suspensions: times,
            ..self
        }
    }

    /// Whether anything is promised to it, so that admission has to be asked.
    pub fn has_guarantee(&self) -> bool {
        self.class.is_real_time()
    }

    /// As a task of the model, on its first CPU.
    pub fn task(&self, name: &str) -> Task {
        let mut task = Task::new(name, CpuId(0), self.class);
        task.priority = self.priority;
        task.phase = self.phase;
        task.late = self.late;
        task.on_overrun = self.on_overrun;
        task.max_suspension = self.max_suspension;
        task.suspensions = self.suspensions;
        task
    }

    /// As the core wants it, whose budgets also pay for `overhead` of the scheduler per job.
    pub(crate) fn in_core(&self, overhead: Work<Ns>) -> punctual_kern::Constraint<Ns> {
        let constraint = punctual_kern::Constraint {
            class: self.class,
            priority: self.priority,
            phase: self.phase,
            late: self.late,
            on_overrun: self.on_overrun,
            order: 0,
            until: Instant::MAX,
            fed: false,
        };
        match (self.class.runs_per_job(), self.class.budget()) {
            (true, Some(budget)) => constraint.with_budget(budget.saturating_add(overhead)),
            _ => constraint,
        }
    }

    /// How long after its end its bandwidth is certainly free: the zero-lag instant of its last job
    /// has passed then.
    pub(crate) fn lag(&self) -> Span<Ns> {
        let separation = self.class.min_separation().unwrap_or_default();
        separation.max(self.class.relative_deadline().unwrap_or_default())
    }
}
