//! The threads of a virtual CPU, with the arrivals that it feeds to them.

use punctual_kern::Plan;
use punctual_model::{ArrivalTimes, Class, Instant, Span, System, TaskId};
use punctual_tables::CpuTables;

use crate::RATE;
use crate::body::Body;
use crate::declared::Declared;
use crate::doing::{Doing, Kind};
use crate::faults::Faults;
use crate::parts::retimed;
use crate::recorded::{Gap, Recorded, RecordedThread, Recording};

/// Arrivals that this platform feeds to one thread.
pub(super) struct Feed<'a> {
    pub(super) thread: u32,
    pub(super) times: Times<'a>,
    /// Release jitter to draw for each.
    pub(super) jitter: Span,
    /// Nothing is released before this instant.
    pub(super) not_before: Instant,
    pub(super) until: Instant,
}

/// Where arrivals come from.
pub(super) enum Times<'a> {
    Declared(ArrivalTimes<'a>),
    /// Releases, and the arrivals behind them.
    Recorded(std::vec::IntoIter<(Instant, Instant)>),
}

/// What the threads of a CPU do, and when its sporadic ones arrive.
pub(crate) struct Threads<'a> {
    pub(super) doing: Vec<Doing<'a>>,
    pub(super) feeds: Vec<Feed<'a>>,
    pub(super) gaps: Vec<Gap>,
    pub(super) plan: Plan,
}

impl<'a> Threads<'a> {
    /// What the system declares, and the faults add. Nothing arrives at `end` or later.
    pub(crate) fn declared(
        system: &'a System,
        tables: &CpuTables,
        (faults, seed): (&Faults, u64),
        (plan, end): (Plan, Instant),
        own: &mut Vec<(TaskId, Box<dyn Body + 'a>)>,
    ) -> Self {
        let doing = |&(id, _): &(TaskId, _)| {
            if let Some(at) = own.iter().position(|(task, _)| *task == id) {
                return Doing::new(Kind::Own(own.swap_remove(at).1));
            }
            let task = &system.tasks[id.index()];
            let body = Declared::new(id, task, tables, faults);
            Doing::new(Kind::Declared(match retimed(system, id) {
                true => body.following(faults.per_mille(id)),
                false => body,
            }))
        };
        Threads {
            doing: tables.threads.iter().map(doing).collect(),
            feeds: feeds(system, tables, (faults, seed), end),
            gaps: Vec::new(),
            plan,
        }
    }

    /// What was recorded.
    pub(crate) fn recorded(tables: &CpuTables, recording: Recording) -> Threads<'static> {
        let nothing = std::iter::repeat_with(RecordedThread::default);
        let threads = recording.threads.into_iter().chain(nothing);
        let mut feeds = Vec::new();
        let mut doing = Vec::new();
        for ((index, _), mut thread) in (0..).zip(&tables.threads).zip(threads) {
            let times = std::mem::take(&mut thread.arrivals);
            feeds.push(Feed {
                thread: index,
                times: Times::Recorded(times.into_iter()),
                jitter: Span::ZERO,
                not_before: Instant::ZERO,
                until: Instant::MAX,
            });
            doing.push(Doing::new(Kind::Recorded(Recorded::new(thread))));
        }
        Threads {
            doing,
            feeds,
            gaps: recording.gaps,
            plan: recording.plan,
        }
    }
}

/// The arrivals until `end`, also of what a change starts: the core takes those that come while the
/// constraint in force covers them.
fn feeds<'a>(
    system: &'a System,
    tables: &CpuTables,
    (faults, seed): (&Faults, u64),
    end: Instant,
) -> Vec<Feed<'a>> {
    let mut feeds = Vec::new();
    for (thread, (id, constraint)) in tables.threads.iter().enumerate() {
        let task = &system.tasks[id.index()];
        let sporadic = matches!(constraint.class, Class::Sporadic { .. });
        if !sporadic && !constraint.fed {
            continue;
        }
        let separation = task.class.min_separation().unwrap_or(Span::ZERO);
        let seed = seed.wrapping_add(u64::from(id.0) << 32);
        feeds.push(Feed {
            thread: u32::try_from(thread).unwrap_or(u32::MAX),
            times: Times::Declared(if sporadic {
                ArrivalTimes::new(&task.arrivals, task.phase, separation, seed)
            } else {
                ArrivalTimes::every(separation, task.phase)
            }),
            jitter: if constraint.fed && !faults.dense_jitter {
                task.jitter.ticks_up(RATE)
            } else {
                Span::ZERO
            },
            not_before: if constraint.fed && faults.dense_jitter {
                let first = Instant::ZERO.saturating_add(task.phase);
                first.saturating_add(task.jitter).ticks_up(RATE)
            } else {
                Instant::ZERO
            },
            until: end,
        });
    }
    feeds
}
