//! Task sets for acceptance studies: shares, periods, deadlines, and a system made of them.

use punctual_model::{Class, Cpu, CpuId, Ns, PolicyKind, Priority, Span, System, Task, Work};

use crate::error::GenerateError;
use crate::fixed_sum::fixed_sum;
use crate::period::{Periods, real, whole};
use crate::random::Random;
use crate::uunifast::uunifast_discard;
use crate::waters::Runnable;

/// Where the shares of the tasks come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Generator {
    /// [`uunifast_discard`].
    UUniFastDiscard,
    /// [`fixed_sum`] in [0, largest share].
    FixedSum,
    /// Each task a runnable of the WATERS 2015 statistics, with its period; all worst cases are
    /// scaled by one factor to the wanted utilization. The periods of the parameters are not used.
    Waters2015,
}

impl Generator {
    /// All of them, for readers of words.
    pub const ALL: [Generator; 3] = [
        Generator::UUniFastDiscard,
        Generator::FixedSum,
        Generator::Waters2015,
    ];

    /// The word for this generator in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Generator::UUniFastDiscard => "uunifast-discard",
            Generator::FixedSum => "fixed-sum",
            Generator::Waters2015 => "waters-2015",
        }
    }
}

/// How relative deadlines follow from periods.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Deadlines {
    /// The period.
    #[default]
    Implicit,
    /// Uniform from the middle between wcet and period up to the period.
    Constrained,
    /// Uniform from half the period (at least the wcet) up to twice the period.
    Arbitrary,
}

impl Deadlines {
    /// All of them, for readers of words.
    pub const ALL: [Deadlines; 3] = [
        Deadlines::Implicit,
        Deadlines::Constrained,
        Deadlines::Arbitrary,
    ];

    /// The word in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Deadlines::Implicit => "implicit",
            Deadlines::Constrained => "constrained",
            Deadlines::Arbitrary => "arbitrary",
        }
    }
}

/// What kind of set is wanted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SetParameters {
    /// Where the shares come from.
    pub generator: Generator,
    /// How many tasks.
    pub tasks: usize,
    /// Their utilization together, in parts per million.
    pub utilization_ppm: u32,
    /// The largest share of one task, in parts per million, at most a whole processor.
    pub largest_share_ppm: u32,
    /// How periods are drawn.
    pub periods: Periods,
    /// How deadlines are drawn.
    pub deadlines: Deadlines,
}

/// One task of a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// Distance between releases.
    pub period: Span<Ns>,
    /// Worst-case execution time.
    pub wcet: Work<Ns>,
    /// From release to deadline.
    pub relative_deadline: Span<Ns>,
}

impl SetParameters {
    /// Draws a set. Each wcet is rounded down to a tick and is at least one, so the utilization is
    /// the wanted one to within a tick per period and task, and never more where no wcet is raised
    /// to its first tick: a set that wants all of the processor does not need more than that.
    ///
    /// # Errors
    /// Shares that cannot have this sum, a range without periods, or a generator that gave up.
    pub fn draw(&self, random: &mut Random) -> Result<Vec<Row>, GenerateError> {
        let total = f64::from(self.utilization_ppm) / 1e6;
        let limit = f64::from(self.largest_share_ppm.min(1_000_000)) / 1e6;
        if self.tasks == 0 || total > limit * real(self.tasks as u64) {
            return Err(GenerateError::CannotReach {
                tasks: self.tasks,
                utilization_ppm: self.utilization_ppm,
                largest_share_ppm: self.largest_share_ppm,
            });
        }
        let shares = match self.generator {
            Generator::UUniFastDiscard => uunifast_discard(random, self.tasks, total, limit)?,
            Generator::FixedSum => fixed_sum(random, self.tasks, total, (0.0, limit))?,
            Generator::Waters2015 => return Ok(self.runnables(random, total)),
        };
        let mut rows = Vec::with_capacity(self.tasks);
        for share in shares {
            let period = self.periods.draw(random)?;
            rows.push(self.row(random, period, share * real(period.as_ns())));
        }
        Ok(rows)
    }

    fn runnables(&self, random: &mut Random, total: f64) -> Vec<Row> {
        let drawn: Vec<Runnable> = (0..self.tasks).map(|_| Runnable::draw(random)).collect();
        let share = |r: &Runnable| real(r.worst.as_ns()) / real(r.period().as_ns());
        let factor = total / drawn.iter().map(share).sum::<f64>();
        drawn
            .iter()
            .map(|r| self.row(random, r.period(), real(r.worst.as_ns()) * factor))
            .collect()
    }

    fn row(&self, random: &mut Random, period: Span<Ns>, wcet: f64) -> Row {
        let wcet = whole(wcet).max(1);
        let t = period.as_ns();
        let relative_deadline = match self.deadlines {
            Deadlines::Implicit => t,
            Deadlines::Constrained => random.within(wcet + t.saturating_sub(wcet) / 2, t),
            Deadlines::Arbitrary => random.within(wcet.max(t / 2), t.saturating_mul(2)),
        };
        Row {
            period,
            wcet: Work::from_ns(wcet),
            // A runnable that was scaled beyond its period keeps a deadline that means something.
            relative_deadline: Span::from_ns(relative_deadline.max(wcet)),
        }
    }
}

/// The set on one CPU under `policy`: periodic tasks `t0`, `t1`, ... released together, the one
/// with the shorter deadline at the higher priority (deadline-monotonic; equal ones share a
/// priority, and the order in the set decides). O(n log n).
pub fn one_cpu(rows: &[Row], policy: PolicyKind<Ns>) -> System {
    let mut deadlines: Vec<Span<Ns>> = rows.iter().map(|row| row.relative_deadline).collect();
    deadlines.sort_unstable();
    deadlines.dedup();
    let task_of = |(index, row): (usize, &Row)| {
        let class = Class::Periodic {
            period: row.period,
            wcet: row.wcet,
            relative_deadline: row.relative_deadline,
        };
        let mut task = Task::new(format!("t{index}"), CpuId(0), class);
        let shorter = deadlines.partition_point(|d| *d < row.relative_deadline);
        let priority = u32::try_from(deadlines.len() - shorter).unwrap_or(u32::MAX);
        task.priority = Priority::new(priority);
        task
    };
    System {
        cpus: vec![Cpu {
            name: "0".into(),
            host: None,
            policy,
        }],
        tasks: rows.iter().enumerate().map(task_of).collect(),
        ..System::default()
    }
}
