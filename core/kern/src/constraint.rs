//! What one thread asks of the scheduler, in ticks of its platform.

use punctual_model::{Class, Instant, Late, OnOverrun, Priority, Span, Task};

/// The timing parameters of a thread. The quantities count ticks of the platform.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Constraint {
    /// The kind of work.
    pub class: Class,
    /// Urgency under fixed priority, and among background work.
    pub priority: Priority,
    /// First arrival after the instant of creation or change.
    pub phase: Span,
    /// What becomes of releases that find the job before unfinished.
    pub late: Late,
    /// What happens to a job that exhausts its budget.
    pub on_overrun: OnOverrun,
    /// The last tie-break: the order in the file.
    pub order: u32,
    /// Jobs that arrive at or after this instant are not released; jobs released before keep their
    /// replenishments. [`Instant::MAX`]: for ever.
    pub until: Instant,
    /// The platform feeds each arrival as an event, though the class arrives by the clock (used
    /// for injected release jitter).
    pub fed: bool,
}

impl Constraint {
    /// The constraint of a task of the model, whose times are already ticks of the platform.
    pub fn of_task(task: &Task, order: u32) -> Constraint {
        Constraint {
            class: task.class,
            priority: task.priority,
            phase: task.phase,
            late: task.late,
            on_overrun: task.on_overrun,
            order,
            until: Instant::MAX,
            fed: false,
        }
    }

    /// The same constraint on a timeline with another tick: `demand` converts work (rounded up)
    /// and `time` converts spans.
    pub fn convert(mut self, time: impl Fn(u64) -> u64, demand: impl Fn(u64) -> u64) -> Self {
        use punctual_model::Work;
        let span = |s: Span| Span::from_ticks(time(s.ticks()));
        let work = |w: Work| Work::from_ticks(demand(w.ticks()));
        self.phase = span(self.phase);
        self.class = match self.class {
            Class::Periodic {
                period,
                wcet,
                relative_deadline,
            } => Class::Periodic {
                period: span(period),
                wcet: work(wcet),
                relative_deadline: span(relative_deadline),
            },
            Class::Sporadic {
                min_separation,
                wcet,
                relative_deadline,
            } => Class::Sporadic {
                min_separation: span(min_separation),
                wcet: work(wcet),
                relative_deadline: span(relative_deadline),
            },
            Class::Reservation { period, slice } => Class::Reservation {
                period: span(period),
                slice: work(slice),
            },
            Class::Once {
                size,
                relative_deadline,
            } => Class::Once {
                size: work(size),
                relative_deadline: span(relative_deadline),
            },
            Class::Aperiodic => Class::Aperiodic,
        };
        self
    }

    /// When the job with this index arrives by the clock; saturates. For work that arrives once,
    /// the instant just after its arrival for every index but 0.
    pub(crate) fn nominal_arrival(&self, index: u64) -> Instant {
        let first = Instant::ZERO.saturating_add(self.phase);
        let after_first = match self.class.min_separation() {
            Some(period) => period.ticks().saturating_mul(index),
            None => index.min(1),
        };
        first.saturating_add(Span::from_ticks(after_first))
    }

    /// Whether the core itself releases jobs, by its timeline.
    pub(crate) fn released_by_clock(&self) -> bool {
        !self.fed && !matches!(self.class, Class::Sporadic { .. })
    }

    /// Distance that the core keeps between releases; `None` for work that is released once, or
    /// that the platform feeds.
    pub(crate) fn separation(&self) -> Option<Span> {
        if self.fed {
            None
        } else {
            self.class.min_separation()
        }
    }

    /// Parameters with which the core would not terminate or make sense.
    pub(crate) fn is_valid(&self) -> bool {
        let separated = self.class.min_separation().is_none_or(|s| !s.is_zero());
        let funded = self.class.budget().is_none_or(|b| !b.is_zero());
        separated && funded
    }
}
