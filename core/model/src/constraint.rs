//! The demands of one thread on the scheduler, in ticks of its platform or in nanoseconds.

use crate::priority::Priority;
use crate::task::{Class, Late, OnOverrun, Task};
use crate::time::{Frequency, Instant, Ns, Span, Ticks, Unit, Work};

/// The timing parameters of a thread, in one unit of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Constraint<U = Ticks> {
    /// The kind of work.
    pub class: Class<U>,
    /// Urgency under fixed priority, and among background work.
    pub priority: Priority,
    /// First arrival after the instant of creation or change.
    pub phase: Span<U>,
    /// The fate of releases that find the job before unfinished.
    pub late: Late,
    /// The consequence for a job that exhausts its budget.
    pub on_overrun: OnOverrun,
    /// The last tie-break: the order in the file.
    pub order: u32,
    /// Jobs that arrive at or after this instant are not released; jobs released before keep their
    /// replenishments. [`Instant::MAX`]: for ever.
    pub until: Instant<U>,
    /// The platform feeds each arrival as an event, though the class arrives by the clock (used
    /// for injected release jitter).
    pub fed: bool,
}

impl<U: Unit> Default for Constraint<U> {
    /// A body without deadline at the lowest priority, for ever.
    fn default() -> Self {
        Constraint {
            class: Class::Aperiodic,
            priority: Priority::LOWEST,
            phase: Span::ZERO,
            late: Late::default(),
            on_overrun: OnOverrun::default(),
            order: 0,
            until: Instant::MAX,
            fed: false,
        }
    }
}

impl Constraint<Ns> {
    /// The constraint of a task of the model.
    pub fn of_task(task: &Task, order: u32) -> Constraint<Ns> {
        Constraint {
            class: task.class,
            priority: task.priority,
            phase: task.phase,
            late: task.late,
            on_overrun: task.on_overrun,
            order,
            ..Constraint::default()
        }
    }

    /// The same constraint in ticks of a platform: `time` converts spans and `demand` work.
    pub fn convert(
        self,
        time: impl Fn(Span<Ns>) -> Span,
        demand: impl Fn(Work<Ns>) -> Work,
    ) -> Constraint {
        Constraint {
            class: self.class.convert(&time, demand),
            priority: self.priority,
            phase: time(self.phase),
            late: self.late,
            on_overrun: self.on_overrun,
            order: self.order,
            until: match self.until {
                Instant::MAX => Instant::MAX,
                until => Instant::ZERO.saturating_add(time(until.since(Instant::ZERO))),
            },
            fed: self.fed,
        }
    }

    /// The same constraint in ticks of a platform, everything rounded up.
    pub fn in_ticks(self, frequency: Frequency) -> Constraint {
        self.convert(
            |span| span.ticks_up(frequency),
            |work| work.ticks_up(frequency),
        )
    }
}

impl<U> Constraint<U> {
    /// The same constraint with another budget (on a live machine: the wcet and its overheads).
    pub fn with_budget(mut self, budget: Work<U>) -> Self {
        match &mut self.class {
            Class::Periodic { wcet, .. } | Class::Sporadic { wcet, .. } => *wcet = budget,
            Class::Reservation { slice, .. } => *slice = budget,
            Class::Once { size, .. } => *size = budget,
            Class::Aperiodic => {}
        }
        self
    }
}

impl Constraint {
    /// When the job with this index arrives by the clock; saturates. For work that arrives once,
    /// the instant just after its arrival for every index but 0.
    #[inline]
    pub fn nominal_arrival(&self, index: u64) -> Instant {
        let first = Instant::ZERO.saturating_add(self.phase);
        let after_first = match self.class.min_separation() {
            Some(period) => period.ticks().saturating_mul(index),
            None => index.min(1),
        };
        first.saturating_add(Span::from_ticks(after_first))
    }

    /// Whether the core itself releases jobs, by its timeline.
    #[inline]
    pub fn released_by_clock(&self) -> bool {
        !self.fed && !matches!(self.class, Class::Sporadic { .. })
    }

    /// Distance that the core keeps between releases; `None` for work that is released once, or
    /// that the platform feeds.
    #[inline]
    pub fn separation(&self) -> Option<Span> {
        if self.fed {
            None
        } else {
            self.class.min_separation()
        }
    }

    /// Parameters with which the core would not terminate or make sense.
    pub fn is_valid(&self) -> bool {
        let separated = self.class.min_separation().is_none_or(|s| !s.is_zero());
        let funded = self.class.budget().is_none_or(|b| !b.is_zero());
        separated && funded
    }
}
