//! The beginning of every random system: independent periodic tasks on one CPU.

use punctual_model::{Cpu, CpuId, Ns, PolicyKind, Priority, Span, System, Task, Work};

use crate::period::{real, whole};
use crate::random::Random;
use crate::uunifast::uunifast;

/// The sizes of periods and everything that goes with them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// Periods of 2 to 6 ticks with a hyperperiod of 12: all phases can be tried.
    Tiny,
    /// Periods of 4 to 30 ticks with a hyperperiod of 120: every off-by-one counts.
    Ticks,
    /// Periods of 5 to 200 ms with a hyperperiod of 200 ms, and times in nanoseconds.
    Milliseconds,
    /// `Ticks` or `Milliseconds`.
    Any,
}

const TINY: [u64; 4] = [2, 3, 4, 6];
const TICKS: [u64; 8] = [4, 5, 6, 8, 10, 12, 20, 30];
const MILLISECONDS: [u64; 8] = [5, 10, 20, 25, 40, 50, 100, 200];

impl Scale {
    pub(super) fn settle(self, random: &mut Random) -> Scale {
        match self {
            Scale::Any if random.happens(700) => Scale::Ticks,
            Scale::Any => Scale::Milliseconds,
            settled => settled,
        }
    }

    /// One of the periods of this scale.
    pub(super) fn period(self, random: &mut Random) -> Span<Ns> {
        let (list, unit): (&[u64], u64) = match self {
            Scale::Tiny => (&TINY, 1),
            Scale::Ticks | Scale::Any => (&TICKS, 1),
            Scale::Milliseconds => (&MILLISECONDS, 1_000_000),
        };
        Span::from_ns(random.pick(list).copied().unwrap_or(1) * unit)
    }

    /// A short time: 1 to `most` ticks, or so many tenths of a millisecond and some nanoseconds.
    pub(super) fn short(self, random: &mut Random, most: u64) -> u64 {
        match self {
            Scale::Milliseconds => random.within(1, most * 100_000),
            Scale::Tiny => random.within(1, most.div_ceil(2)),
            _ => random.within(1, most),
        }
    }

    /// Slots are longer than this: shorter ones only make long logs.
    pub(super) fn least_slot(self) -> u64 {
        match self {
            Scale::Milliseconds => 100_000,
            _ => 0,
        }
    }
}

/// A policy for a CPU, the analysed ones more often.
pub(super) fn policy(random: &mut Random, scale: Scale) -> PolicyKind<Ns> {
    match random.below(12) {
        0..4 => PolicyKind::FixedPriority { preemptive: true },
        4..8 => PolicyKind::EarliestDeadlineFirst,
        8..10 => PolicyKind::FixedPriority { preemptive: false },
        10 => PolicyKind::Fifo,
        _ => PolicyKind::RoundRobin {
            timeslice: match scale {
                // Shorter ones only make long logs.
                Scale::Milliseconds => Span::from_us(random.within(100, 2_000)),
                _ => Span::from_ns(random.within(1, 4)),
            },
        },
    }
}

/// 2 to `most` tasks; with `features` to come, so much less load that some are still admitted.
pub(super) fn system(random: &mut Random, scale: Scale, most: usize, features: usize) -> System {
    let most = most.max(2);
    let count = 2 + random.index(most - 1);
    let policy = policy(random, scale);
    let (low, high) = match features {
        0 => (0.65, 1.08),
        1..3 => (0.35, 1.0),
        _ => (0.15, 0.85),
    };
    let total = low + (high - low) * random.unit();
    let tight = random.happens(500);
    let tasks = uunifast(random, count, total).into_iter().enumerate();
    System {
        cpus: vec![Cpu {
            name: "0".into(),
            host: None,
            policy,
        }],
        tasks: tasks
            .map(|(index, share)| task(random, scale, index, share, tight))
            .collect(),
        ..System::default()
    }
}

fn task(random: &mut Random, scale: Scale, index: usize, share: f64, tight: bool) -> Task {
    let period = scale.period(random);
    let t = period.as_ns();
    let wcet = whole(libm::round(share * real(t))).clamp(1, t);
    let relative_deadline = match random.below(6) {
        0 if tight => random.within(wcet + (t - wcet) / 2, t),
        1 if tight => random.within(t, 2 * t),
        _ => t,
    };
    let class = punctual_model::Class::Periodic {
        period,
        wcet: Work::from_ns(wcet),
        relative_deadline: Span::from_ns(relative_deadline),
    };
    let mut task = Task::new(format!("t{index}"), CpuId(0), class);
    // Five levels for up to seven tasks: equal priorities occur, and orders that are not monotonic.
    let number = random.within(1, 5);
    task.priority = Priority::new(u32::try_from(number).unwrap_or(1));
    task
}
